#include "waymark/record/images.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace waymark::record {

namespace {
/// Calls f(page number, offset in page, piece) for the pieces of a stretch of memory.
template <class F>
void by_page(Address address, Bytes bytes, F&& f) {
    while (!bytes.empty()) {
        const std::uint64_t offset = address.value % page_bytes;
        const std::size_t count = std::min<std::size_t>(bytes.size(), page_bytes - offset);
        f(address.value / page_bytes, static_cast<std::size_t>(offset), bytes.first(count));
        bytes = bytes.subspan(count);
        address = address + count;
    }
}
}  // namespace

Images::~Images() {
    if (descriptor_ >= 0) close(descriptor_);
}

void Images::saw_page(Address address, Bytes bytes) {
    if (bytes.size() != page_bytes) return;
    std::copy(bytes.begin(), bytes.end(), seen_[address.value / page_bytes].begin());
}

bool Images::fits(Address address, Bytes code) const {
    bool fits = true;
    by_page(address, code, [&](std::uint64_t number, std::size_t offset, Bytes piece) {
        const auto found = held_.find(number);
        if (found == held_.end()) return;
        for (std::size_t i = 0; i < piece.size() && fits; ++i)
            fits = found->second.bytes[offset + i] == piece[i] || !found->second.executed[offset + i];
    });
    return fits;
}

Images::Held& Images::hold(std::uint64_t number) {
    const auto [found, is_new] = held_.try_emplace(number);
    Held& held = found->second;
    if (!is_new) return held;
    const auto seen = seen_.find(number);
    const auto stored = stored_.find(number);
    if (seen != seen_.end())
        held.bytes = seen->second;
    else if (stored != stored_.end())
        held.bytes = stored->second.bytes;
    if (stored != stored_.end() && stored->second.bytes == held.bytes) {
        held.slot = stored->second.slot;
        held.shared = true;
    } else {
        held.slot = slots_++;
        held.dirty = true;
    }
    changed_ = true;
    return held;
}

void Images::add(Address address, Bytes code) {
    by_page(address, code, [&](std::uint64_t number, std::size_t offset, Bytes piece) {
        Held& held = hold(number);
        for (std::size_t i = 0; i < piece.size(); ++i) {
            held.executed.set(offset + i);
            if (held.bytes[offset + i] == piece[i]) continue;
            if (held.shared) {
                held.slot = slots_++;
                held.shared = false;
            }
            held.bytes[offset + i] = piece[i];
            held.dirty = changed_ = true;
        }
    });
}

void Images::new_epoch() {
    for (const auto& [number, held] : held_) stored_.insert_or_assign(number, Stored{held.slot, held.bytes});
    held_.clear();
    changed_ = true;
}

Status Images::flush() {
    const auto fail = [&](const char* what) {
        return Error{Errc::unreadable, fmt::format("cannot {} {}: {}", what, file_.string(), std::strerror(errno))};
    };
    if (descriptor_ < 0) descriptor_ = open(file_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ < 0) return fail("create");
    for (auto& [number, held] : held_) {
        if (!held.dirty) continue;
        std::size_t done = 0;
        while (done < held.bytes.size()) {
            const ssize_t n = pwrite(descriptor_, held.bytes.data() + done, held.bytes.size() - done,
                                     static_cast<off_t>(held.slot * page_bytes + done));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return fail("write");
            done += static_cast<std::size_t>(n);
        }
        held.dirty = false;
        pages_written_ = std::max(pages_written_, held.slot + 1);
    }
    changed_ = false;
    return Nothing{};
}

std::vector<capture::MemoryDump> Images::dumps(const std::string& core) const {
    std::vector<capture::MemoryDump> out;
    for (const auto& [number, held] : held_) {
        const std::uint64_t address = number * page_bytes, offset = held.slot * page_bytes;
        if (!out.empty() && out.back().address.value + *out.back().length == address &&
            out.back().offset + *out.back().length == offset) {
            *out.back().length += page_bytes;
            continue;
        }
        out.push_back({core, file_, {address}, offset, page_bytes, {}});
    }
    return out;
}

}  // namespace waymark::record
