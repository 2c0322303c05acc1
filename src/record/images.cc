#include "waymark/record/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "waymark/record/files.h"

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

/// A file that is written from front to back.
class File {
public:
    File(const std::filesystem::path& path, const char* mode) : file_(std::fopen(path.c_str(), mode)) {}
    void append(const std::vector<std::uint8_t>& bytes) {
        good_ = good_ && file_ && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
    }
    [[nodiscard]] bool finish() { return good_ && file_ && std::fflush(file_.get()) == 0; }

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file_;
    bool good_ = true;
};

}  // namespace

void Images::saw_page(Address address, Bytes bytes) {
    if (bytes.size() != page_bytes) return;
    Seen& seen = seen_[address.value / page_bytes];
    std::copy(bytes.begin(), bytes.end(), seen.bytes.begin());
    seen.fresh = true;
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
        const auto seen = seen_.find(number);
        if (is_new) {
            if (seen != seen_.end()) held.bytes = seen->second.bytes;
            changed_ = true;
        } else if (seen != seen_.end() && seen->second.fresh) {
            // Adds code that was written to the page since then.
            for (std::size_t i = 0; i < page_bytes; ++i) {
                if (held.executed[i] || held.bytes[i] == seen->second.bytes[i]) continue;
                held.bytes[i] = seen->second.bytes[i];
                changed_ = true;
            }
        }
        if (seen != seen_.end()) seen->second.fresh = false;
        for (std::size_t i = 0; i < piece.size(); ++i) {
            held.executed.set(offset + i);
            if (held.bytes[offset + i] == piece[i]) continue;
            held.bytes[offset + i] = piece[i];
            changed_ = true;
        }
    });
}

void Images::new_epoch() {
    held_.clear();
    stretches_.clear();
    file_.clear();
    ++epoch_;
    version_ = 0;
    changed_ = false;
}

std::vector<Images::Stretch> Images::stretches() const {
    std::vector<Stretch> out;
    for (const auto& [number, held] : held_) {
        const std::uint64_t address = number * page_bytes;
        // OpenCSD does not read an instruction across two dumps, so adjacent pages are merged.
        if (!out.empty() && out.back().address + out.back().bytes == address)
            out.back().bytes += page_bytes;
        else
            out.push_back({address, 0, page_bytes});
    }
    return out;
}

std::vector<std::uint8_t> Images::pages(const Stretch& stretch) const {
    std::vector<std::uint8_t> out;
    out.reserve(stretch.bytes);
    for (std::uint64_t at = stretch.address; at < stretch.address + stretch.bytes; at += page_bytes) {
        const Page& page = held_.at(at / page_bytes).bytes;
        out.insert(out.end(), page.begin(), page.end());
    }
    return out;
}

Status Images::write() {
    if (!changed_) return Nothing{};
    const std::filesystem::path path = folder_ / (epoch_ == 1 ? fmt::format("code_{}.bin", ++version_)
                                                              : fmt::format("code_{}_{}.bin", epoch_, ++version_));
    File file(path, "wb");
    // OpenCSD treats a dump at offset 0 as the whole file, so no dump begins there.
    file.append(std::vector<std::uint8_t>(page_bytes));
    std::vector<Stretch> stretches = this->stretches();
    std::uint64_t offset = page_bytes;
    for (Stretch& stretch : stretches) {
        file.append(pages(stretch));
        stretch.offset = std::exchange(offset, offset + stretch.bytes);
    }
    if (!file.finish()) return cannot("write", path);
    if (!file_.empty()) outdated_.push_back(file_);
    file_ = path;
    stretches_ = std::move(stretches);
    changed_ = false;
    return Nothing{};
}

Status Images::archive() {
    if (held_.empty()) return Nothing{};
    std::vector<Stretch> stretches = this->stretches();
    for (Stretch& stretch : stretches) {
        WM_ASSIGN_OR_RETURN(stretch.offset, archive(pages(stretch)));
    }
    if (!file_.empty()) outdated_.push_back(file_);
    file_ = folder_ / archive_file;
    stretches_ = std::move(stretches);
    changed_ = false;
    return Nothing{};
}

/// Offset of these pages in the archive; appends them if they are new.
Result<std::uint64_t> Images::archive(const std::vector<std::uint8_t>& pages) {
    const std::filesystem::path path = folder_ / archive_file;
    const std::uint64_t hash =
        std::hash<std::string_view>{}({reinterpret_cast<const char*>(pages.data()), pages.size()});
    const auto [first, end] = archived_.equal_range(hash);
    if (first != end) {
        std::ifstream in(path, std::ios::binary);
        std::vector<char> there(pages.size());
        for (auto at = first; at != end; ++at) {
            in.clear();
            in.seekg(static_cast<std::streamoff>(at->second));
            if (in.read(there.data(), static_cast<std::streamsize>(there.size())) &&
                std::memcmp(there.data(), pages.data(), pages.size()) == 0)
                return at->second;
        }
    }
    File file(path, archived_bytes_ == 0 ? "wb" : "ab");
    if (archived_bytes_ == 0) file.append(std::vector<std::uint8_t>(page_bytes));  // as in `write`
    file.append(pages);
    if (!file.finish()) return cannot("write", path);
    const std::uint64_t offset = page_bytes + archived_bytes_;
    archived_bytes_ += pages.size();
    archived_.emplace(hash, offset);
    return offset;
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
