#include "waymark/record/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

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

std::vector<std::uint8_t> Images::executed(Address address, std::size_t bytes) const {
    std::vector<std::uint8_t> out;
    out.reserve(bytes);
    for (std::uint64_t at = address.value; out.size() < bytes; ++at) {
        const auto found = held_.find(at / page_bytes);
        if (found == held_.end() || !found->second.executed[at % page_bytes]) return {};
        out.push_back(found->second.bytes[at % page_bytes]);
    }
    return out;
}

void Images::add(Address address, Bytes code) {
    by_page(address, code, [&](std::uint64_t number, std::size_t offset, Bytes piece) {
        const auto [found, is_new] = held_.try_emplace(number);
        Held& held = found->second;
        if (is_new) {
            if (const auto seen = seen_.find(number); seen != seen_.end()) held.bytes = seen->second;
            changed_ = true;
        }
        for (std::size_t i = 0; i < piece.size(); ++i) {
            held.executed.set(offset + i);
            if (held.bytes[offset + i] == piece[i]) continue;
            held.bytes[offset + i] = piece[i];
            changed_ = true;
        }
    });
}

void Images::new_epoch() {
    earlier_bytes_ += held_.size() * page_bytes;
    held_.clear();
    stretches_.clear();
    file_.clear();
    ++epoch_;
    version_ = 0;
    changed_ = false;
}

Status Images::write() {
    if (!changed_) return Nothing{};
    const std::filesystem::path path = folder_ / (epoch_ == 1 ? fmt::format("code_{}.bin", ++version_)
                                                              : fmt::format("code_{}_{}.bin", epoch_, ++version_));
    const auto close = [](std::FILE* file) { std::fclose(file); };
    const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "wb"), close);
    bool good = file != nullptr;
    const auto put = [&](const Page& page) {
        good = good && std::fwrite(page.data(), 1, page.size(), file.get()) == page.size();
    };
    // OpenCSD takes a dump at offset 0 to be the whole file, so none is there; and it reads no instruction across two
    // dumps, so neighbouring pages are one.
    put(Page{});
    std::vector<Stretch> stretches;
    std::uint64_t offset = page_bytes;
    for (const auto& [number, held] : held_) {
        put(held.bytes);
        const std::uint64_t address = number * page_bytes;
        if (!stretches.empty() && stretches.back().address + stretches.back().bytes == address)
            stretches.back().bytes += page_bytes;
        else
            stretches.push_back({address, offset, page_bytes});
        offset += page_bytes;
    }
    if (!good || std::fflush(file.get()) != 0)
        return Error{Errc::unreadable, fmt::format("cannot write {}: {}", path.string(), std::strerror(errno))};
    if (!file_.empty()) outdated_.push_back(file_);
    file_ = path;
    stretches_ = std::move(stretches);
    changed_ = false;
    return Nothing{};
}

void Images::remove_outdated() {
    std::error_code error;
    for (const std::filesystem::path& path : outdated_) std::filesystem::remove(path, error);
    outdated_.clear();
}

std::vector<capture::MemoryDump> Images::dumps(const std::string& core) const {
    std::vector<capture::MemoryDump> out;
    for (const Stretch& s : stretches_) out.push_back({core, file_, {s.address}, s.offset, s.bytes, {}});
    return out;
}

}  // namespace waymark::record
