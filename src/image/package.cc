#include "waymark/image/package.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <minizip/unzip.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <type_traits>
#include <utility>

#include "compressed.h"

namespace waymark::image {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 3> module_endings{".ko.xz", ".ko.zst", ".ko.gz"};

struct CloseZip {
    void operator()(unzFile zip) const { unzClose(zip); }
};
using Zip = std::unique_ptr<std::remove_pointer_t<unzFile>, CloseZip>;

Error damaged_package(const fs::path& package, std::string_view what) {
    return {Errc::bad_format,
            fmt::format("{}: {}, so files in it are not read; copy the package again", package.string(), what)};
}

Result<Zip> open_package(const fs::path& package) {
    Zip zip(unzOpen64(package.c_str()));
    if (zip == nullptr) return damaged_package(package, "it has no table of contents of a zip file");
    return zip;
}

struct PackageEntry {
    PackedFile file;
    bool stored = false;
};

/// The current entry. For a stored entry it includes the offset, which is in the entry's local header.
Result<PackageEntry> entry_of(const Zip& zip, const fs::path& package) {
    constexpr std::size_t name_room = 4096;
    std::array<char, name_room> name{};
    unz_file_info64 info{};
    if (unzGetCurrentFileInfo64(zip.get(), &info, name.data(), name.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
        return damaged_package(package, "its table of contents is damaged");
    constexpr unsigned encrypted = 1;
    PackageEntry out{
        {name.data(), 0, info.uncompressed_size},
        info.compression_method == 0 && (info.flag & encrypted) == 0 && info.compressed_size == info.uncompressed_size};
    if (!out.stored) return out;
    if (unzOpenCurrentFile(zip.get()) != UNZ_OK)
        return damaged_package(package, fmt::format("{} in it has a damaged header", out.file.name));
    out.file.offset = unzGetCurrentFileZStreamPos64(zip.get());
    unzCloseCurrentFile(zip.get());
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(package, error);
    if (error || out.file.offset > bytes || out.file.bytes > bytes - out.file.offset)
        return damaged_package(package, fmt::format("{} in it has {} bytes from {:#x} on, more than the package",
                                                    out.file.name, out.file.bytes, out.file.offset));
    return out;
}

struct OpenFile {
    explicit OpenFile(int number) : value(number) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (value >= 0) ::close(value);
    }
    int value;
};

/// Bytes of memory used by copies of compressed modules.
std::atomic<std::uint64_t> memory_of_modules{0};

/// A file in memory, which exists as long as this object.
class Copy {
public:
    explicit Copy(int descriptor) : file_(descriptor) {
        constexpr std::uint64_t block = 512;
        struct stat status {};
        if (::fstat(descriptor, &status) == 0) memory_ = static_cast<std::uint64_t>(status.st_blocks) * block;
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    ~Copy() {
        if (is_module_) memory_of_modules -= memory_;
    }
    [[nodiscard]] fs::path path() const { return fmt::format("/proc/self/fd/{}", file_.value); }
    [[nodiscard]] std::uint64_t memory() const { return memory_; }
    void count_as_module() {
        is_module_ = true;
        memory_of_modules += memory_;
    }

private:
    const OpenFile file_;
    std::uint64_t memory_ = 0;
    bool is_module_ = false;
};

/// `fill` writes the file, and returns whether that succeeded (otherwise see errno).
template <class Fill>
Result<std::shared_ptr<Copy>> file_in_memory(std::string_view called, Fill&& fill) {
    const auto failed = [&](std::string_view what) {
        return Error{Errc::unreadable, fmt::format("{}: {}: {}", called, what, std::generic_category().message(errno))};
    };
    const int to = ::memfd_create("waymark-package", MFD_CLOEXEC);
    if (to < 0) return failed("cannot be held in memory");
    if (!fill(to)) {
        const Error error = failed("cannot be read");
        ::close(to);
        return error;
    }
    return std::make_shared<Copy>(to);
}

/// Copies these bytes of the package to memory.
Result<std::shared_ptr<Copy>> copy_to_memory(const fs::path& package, const PackedFile& file) {
    return file_in_memory(fmt::format("{}{}{}", package.string(), in_package, file.name), [&](int to) {
        const OpenFile from(::open(package.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
        auto at = static_cast<off_t>(file.offset);
        for (std::uint64_t left = file.bytes; left != 0;) {
            constexpr std::uint64_t most = 1 << 30;
            const ssize_t copied =
                from.value < 0 ? -1 : ::sendfile(to, from.value, &at, static_cast<std::size_t>(std::min(left, most)));
            if (copied <= 0) return false;
            left -= static_cast<std::uint64_t>(copied);
        }
        return true;
    });
}

/// Writes the bytes to a new file of the same size. Pages of zeros take no memory.
bool write_sparse(int to, Bytes contents) {
    constexpr std::size_t page = 4096;
    const auto is_zero = [](Bytes bytes) {
        return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
    };
    for (std::size_t at = 0; at < contents.size();) {
        const Bytes piece = contents.subspan(at, std::min(page, contents.size() - at));
        const ssize_t written = is_zero(piece) ? static_cast<ssize_t>(piece.size())
                                               : ::pwrite(to, piece.data(), piece.size(), static_cast<off_t>(at));
        if (written <= 0) return false;
        at += static_cast<std::size_t>(written);
    }
    return ::ftruncate(to, static_cast<off_t>(contents.size())) == 0;
}

/// Whether the path is a compressed kernel module.
bool is_compressed_module(const fs::path& path) {
    const std::string name = path.filename().string();
    return std::any_of(module_endings.begin(), module_endings.end(),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

Result<std::shared_ptr<Copy>> unpack_module(const fs::path& path) {
    std::error_code error;
    std::vector<std::uint8_t> packed;
    if (const std::uintmax_t bytes = fs::file_size(path, error); !error && bytes <= most_decompressed) {
        std::ifstream in(path, std::ios::binary);
        packed.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    const std::vector<std::uint8_t> contents = decompressed(packed);
    if (contents.empty())
        return Error{Errc::bad_format, fmt::format("{}: is not a compressed file, or damaged, or far larger than any "
                                                   "module; copy it again, or unpack it and name the result",
                                                   path.string())};
    WM_ASSIGN_OR_RETURN(std::shared_ptr<Copy> copy,
                        file_in_memory(path.string(), [&](int to) { return write_sparse(to, contents); }));
    copy->count_as_module();
    return copy;
}

/// The copies in memory.
class Copies {
public:
    /// The existing copy; if there is none, `make` creates it.
    template <class Make>
    Result<Openable> of(const fs::path& path, Make&& make) {
        const std::scoped_lock lock(mutex_);
        std::weak_ptr<Copy>& known = all_[path];
        std::shared_ptr<Copy> copy = known.lock();
        if (copy == nullptr) {
            WM_ASSIGN_OR_RETURN(copy, make());
            known = copy;
        }
        keep(copy);
        return Openable{copy->path(), copy};
    }

private:
    /// A file that was opened is usually opened again soon, for its code, its symbols and its lines.
    void keep(const std::shared_ptr<Copy>& copy) {
        kept_.remove(copy);
        kept_.push_front(copy);
        std::uint64_t sum = 0;
        const auto more = std::find_if(kept_.begin(), kept_.end(), [&](const std::shared_ptr<Copy>& each) {
            sum += each->memory();
            return sum > most_kept;
        });
        kept_.erase(more == kept_.begin() ? std::next(more) : more, kept_.end());
    }

    std::mutex mutex_;
    std::map<fs::path, std::weak_ptr<Copy>> all_;
    std::list<std::shared_ptr<Copy>> kept_;  // most recently used first
};

/// The package and the name in it; if the first is empty, the path does not name a file in a package.
std::pair<fs::path, std::string> split_at_package(const std::string& path) {
    for (std::size_t at = path.find(in_package); at != path.npos; at = path.find(in_package, at + 1)) {
        const fs::path package = path.substr(0, at);
        std::error_code none;
        if (fs::is_regular_file(package, none)) return {package, path.substr(at + in_package.size())};
    }
    return {};
}

Result<std::shared_ptr<Copy>> unpack(const fs::path& package, const std::string& name) {
    WM_ASSIGN_OR_RETURN(const Zip zip, open_package(package));
    constexpr int with_case = 1;
    if (unzLocateFile(zip.get(), name.c_str(), with_case) != UNZ_OK)
        return Error{Errc::not_found, fmt::format("{}: has no {}", package.string(), name)};
    WM_ASSIGN_OR_RETURN(const PackageEntry entry, entry_of(zip, package));
    if (!entry.stored)
        return Error{Errc::unsupported,
                     fmt::format("{}: {} is compressed in it, so it was not mapped from there, and is not unpacked. "
                                 "Give the file that was mapped: --symdir and its folder",
                                 package.string(), name)};
    return copy_to_memory(package, entry.file);
}

}  // namespace

Result<std::vector<PackedFile>> packed_files(const fs::path& package) {
    WM_ASSIGN_OR_RETURN(const Zip zip, open_package(package));
    std::vector<PackedFile> out;
    int status = unzGoToFirstFile(zip.get());
    for (; status == UNZ_OK; status = unzGoToNextFile(zip.get())) {
        WM_ASSIGN_OR_RETURN(PackageEntry entry, entry_of(zip, package));
        if (entry.stored && entry.file.bytes != 0) out.push_back(std::move(entry.file));
    }
    if (status != UNZ_END_OF_LIST_OF_FILE) return damaged_package(package, "its table of contents is damaged");
    std::sort(out.begin(), out.end(), [](const PackedFile& a, const PackedFile& b) { return a.offset < b.offset; });
    return out;
}

Result<Openable> openable(const fs::path& path) {
    const std::pair<fs::path, std::string> split = split_at_package(path.string());
    const fs::path& package = split.first;
    std::error_code none;
    const bool compressed = package.empty() && is_compressed_module(path) && fs::is_regular_file(path, none);
    if (package.empty() && !compressed) return Openable{path};
    static Copies copies;
    return copies.of(path, [&]() -> Result<std::shared_ptr<Copy>> {
        if (!compressed) return unpack(package, split.second);
        if (const std::uint64_t used = memory_of_modules; used >= most_unpacked)
            return Error{Errc::unsupported, fmt::format("{}: is not unpacked, because the modules in use occupy {} MiB "
                                                        "of memory; unpack it and give the result with --image",
                                                        path.string(), used >> 20)};
        return unpack_module(path);
    });
}

}  // namespace waymark::image
