#include "waymark/capture/perf_file.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace waymark::capture::perf {

namespace fs = std::filesystem;

namespace {

/// Several files, read as one.
class JoinedFile final : public ByteFile {
public:
    explicit JoinedFile(std::string name) : name_(std::move(name)) {}
    void add(std::unique_ptr<ByteFile> file) {
        files_.push_back({size_, std::move(file)});
        size_ += files_.back().file->size();
    }

    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) const override {
        std::size_t done = 0;
        while (done < into.size() && offset + done < size_) {
            const std::uint64_t at = offset + done;
            const auto after = std::upper_bound(files_.begin(), files_.end(), at,
                                                [](std::uint64_t place, const One& one) { return place < one.first; });
            const One& one = *(after - 1);
            const std::uint64_t left = one.first + one.file->size() - at;
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(into.size() - done, left));
            WM_ASSIGN_OR_RETURN(const std::size_t got, one.file->read_at(at - one.first, into.subspan(done, want)));
            done += got;
            if (got < want) break;  // the file became shorter meanwhile
        }
        return done;
    }
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    struct One {
        std::uint64_t first{};
        std::unique_ptr<ByteFile> file;
    };
    std::string name_;
    std::vector<One> files_;
    std::uint64_t size_ = 0;
};

}  // namespace

bool is_perf_folder(const fs::path& path) {
    std::error_code none;
    if (!fs::is_directory(path, none) || !fs::is_regular_file(path / "data", none)) return false;
    const auto file = open_byte_file(path / "data");
    if (!file) return false;
    std::array<std::uint8_t, 16> head{};
    const auto got = (*file)->read_at(0, head);
    return got && is_perf_data(Bytes(head).first(*got));
}

Result<PerfFile> open_perf_file(const fs::path& path) {
    PerfFile out;
    std::error_code none;
    if (!fs::is_directory(path, none)) {
        WM_ASSIGN_OR_RETURN(out.file, open_byte_file(path, &out.damage));
        return out;
    }
    auto joined = std::make_shared<JoinedFile>(path.string());
    WM_ASSIGN_OR_RETURN(auto first, open_byte_file(path / "data"));
    joined->add(std::move(first));
    for (unsigned i = 0;; ++i) {
        const fs::path next = path / ("data." + std::to_string(i));
        if (!fs::is_regular_file(next, none)) break;
        if (fs::file_size(next, none) == 0) continue;
        WM_ASSIGN_OR_RETURN(auto file, open_byte_file(next));
        out.runs.push_back({joined->size(), file->size()});
        joined->add(std::move(file));
    }
    out.file = std::move(joined);
    return out;
}

}  // namespace waymark::capture::perf
