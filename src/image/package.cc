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
#include <cerrno>
#include <fstream>
#include <iterator>
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

/// The entry that was just gone to; of a stored one with its offset, which its local header has.
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

/// A file of nothing but memory. It stays open. `fill` writes it, and returns whether that worked (else see errno).
template <class Fill>
Result<fs::path> file_in_memory(std::string_view called, Fill&& fill) {
    const auto failed = [&](std::string_view what) {
        return Error{Errc::unreadable, fmt::format("{}: {}: {}", called, what, std::generic_category().message(errno))};
    };
    const int to = ::memfd_create("waymark-package", MFD_CLOEXEC);
    if (to < 0) return failed("cannot be held in memory");
    if (!fill(to)) {
        ::close(to);
        return failed("cannot be read");
    }
    return fs::path(fmt::format("/proc/self/fd/{}", to));
}

/// These bytes of the package.
Result<fs::path> copy_to_memory(const fs::path& package, const PackedFile& file) {
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

/// Writes the bytes to a new file, which must be as large. Pages of zeros take no memory.
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

/// Kernel modules are often kept compressed.
bool is_compressed_module(const fs::path& path) {
    const std::string name = path.filename().string();
    return std::any_of(module_endings.begin(), module_endings.end(),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

Result<fs::path> unpack_module(const fs::path& path) {
    std::error_code error;
    std::vector<std::uint8_t> packed;
    if (const std::uintmax_t bytes = fs::file_size(path, error); !error && bytes <= most_decompressed) {
        std::ifstream in(path, std::ios::binary);
        packed.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    const std::vector<std::uint8_t> contents = decompressed(packed);
    if (contents.empty())
        return Error{
            Errc::bad_format,
            fmt::format("{}: is no compressed file, a damaged one, or far larger than any module; copy it again, or "
                        "unpack it and name the result",
                        path.string())};
    return file_in_memory(path.string(), [&](int to) { return write_sparse(to, contents); });
}

/// Bytes of memory that the file, which has no other place, takes.
std::uint64_t memory_of(const fs::path& file) {
    constexpr std::uint64_t block = 512;
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * block : 0;
}

/// The package and the name in it; no package: the path is an ordinary one.
std::pair<fs::path, std::string> split_at_package(const std::string& path) {
    for (std::size_t at = path.find(in_package); at != path.npos; at = path.find(in_package, at + 1)) {
        const fs::path package = path.substr(0, at);
        std::error_code none;
        if (fs::is_regular_file(package, none)) return {package, path.substr(at + in_package.size())};
    }
    return {};
}

Result<fs::path> unpack(const fs::path& package, const std::string& name) {
    WM_ASSIGN_OR_RETURN(const Zip zip, open_package(package));
    constexpr int with_case = 1;
    if (unzLocateFile(zip.get(), name.c_str(), with_case) != UNZ_OK)
        return Error{Errc::not_found, fmt::format("{}: has no {}", package.string(), name)};
    WM_ASSIGN_OR_RETURN(const PackageEntry entry, entry_of(zip, package));
    if (!entry.stored)
        return Error{Errc::unsupported,
                     fmt::format("{}: {} is compressed in it, so it was not mapped from there, and is not unpacked. "
                                 "Give the file that was mapped: with --symdir and the folder in which it is",
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

Result<fs::path> openable(const fs::path& path) {
    const auto [package, name] = split_at_package(path.string());
    std::error_code none;
    const bool compressed = package.empty() && is_compressed_module(path) && fs::is_regular_file(path, none);
    if (package.empty() && !compressed) return path;
    static std::mutex mutex;
    static std::map<fs::path, fs::path> copies;
    const std::scoped_lock lock(mutex);
    static std::uint64_t unpacked = 0;
    if (const auto known = copies.find(path); known != copies.end()) return known->second;
    if (compressed && unpacked >= most_unpacked)
        return Error{Errc::unsupported,
                     fmt::format("{}: is not unpacked, as the modules that were unpacked before take {} MiB of memory; "
                                 "unpack it and give the result with --image",
                                 path.string(), unpacked >> 20)};
    WM_ASSIGN_OR_RETURN(const fs::path copy, compressed ? unpack_module(path) : unpack(package, name));
    if (compressed) unpacked += memory_of(copy);
    copies.emplace(path, copy);
    return copy;
}

}  // namespace waymark::image
