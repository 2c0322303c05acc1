#include "waymark/capture/byte_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "packed_stream.h"
#include "waymark/capture/temporary_file.h"
#include "waymark/core/file_error.h"
#include "waymark/core/numbers.h"

namespace waymark::capture {
namespace {

class DiskFile final : public ByteFile {
public:
    DiskFile(int descriptor, std::uint64_t size, std::string name)
        : descriptor_(descriptor), size_(size), name_(std::move(name)) {}
    DiskFile(const DiskFile&) = delete;
    DiskFile& operator=(const DiskFile&) = delete;
    ~DiskFile() override { ::close(descriptor_); }

    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) const override {
        std::size_t done = 0;
        while (done < into.size() && offset + done < size_) {
            const ssize_t got =
                ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
            if (got == 0) break;  // the file became shorter meanwhile
            if (got > 0) {
                done += static_cast<std::size_t>(got);
                continue;
            }
            if (errno == EINTR) continue;
            return Error{Errc::unreadable,
                         fmt::format("{}: offset {:#x}: cannot be read: {}", name_, offset + done, reason(errno)),
                         Offset{offset + done}};
        }
        return done;
    }
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    int descriptor_;
    std::uint64_t size_;
    std::string name_;
};

class MemoryFile final : public ByteFile {
public:
    MemoryFile(std::vector<std::uint8_t> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) const override {
        if (offset >= bytes_.size()) return std::size_t{0};
        const std::size_t count = std::min<std::uint64_t>(into.size(), bytes_.size() - offset);
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
        return count;
    }
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    std::vector<std::uint8_t> bytes_;
    std::string name_;
};

}  // namespace

Result<int> open_temporary_file(const std::string& what) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    const auto failed = [&](int number) {
        return Error{Errc::unreadable,
                     fmt::format("{}: no temporary file can be made in {}: {}; set TMPDIR to a folder "
                                 "with room",
                                 what, folder.empty() ? "the folder of TMPDIR" : folder.c_str(), reason(number))};
    };
    if (error) return failed(error.value());
    constexpr mode_t mode = S_IRUSR | S_IWUSR;
    if (const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode); file >= 0) return file;
    // Reached if the file system does not support unnamed files.
    std::string path = (folder / "waymark-XXXXXX").string();
    const int file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) return failed(errno);
    ::unlink(path.c_str());
    return file;
}

Result<std::unique_ptr<ByteFile>> spooled(ByteStream& stream, const std::string& name, std::vector<Error>* damage,
                                          UnpackBounds most) {
    WM_ASSIGN_OR_RETURN(const int descriptor, open_temporary_file(name));
    auto out = std::make_unique<DiskFile>(descriptor, 0, name);
    std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
    std::uint64_t size = 0;
    const auto* const packed = dynamic_cast<const PackedStream*>(&stream);
    while (true) {
        auto got = stream.read(buffer);
        if (!got) {
            if (damage != nullptr) damage->push_back(std::move(got.error()));
            break;
        }
        if (*got == 0) break;
        for (std::size_t done = 0; done < *got;) {
            const ssize_t put = ::write(descriptor, buffer.data() + done, *got - done);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0)
                return Error{Errc::unreadable,
                             fmt::format("{}: cannot be unpacked into a temporary file: {}; set TMPDIR to a folder "
                                         "with room",
                                         name, reason(errno))};
            done += static_cast<std::size_t>(put);
        }
        size += *got;
        if (packed != nullptr && size > most.bytes && size / most.times > packed->taken())
            return Error{
                Errc::unsupported,
                fmt::format("{}: offset {:#x}: unpacks to more than {} bytes and more than {} times its size, which no "
                            "capture does; if this one does, unpack it with zstd -d or gzip -d, and name the result",
                            name, packed->taken(), grouped(most.bytes), grouped(most.times)),
                Offset{packed->taken()}};
    }
    const int kept = ::dup(descriptor);
    return std::unique_ptr<ByteFile>(std::make_unique<DiskFile>(kept, size, name));
}

namespace {

/// The file of a stream that gives its bytes unchanged; null if the stream unpacks a file or is standard input.
Result<std::unique_ptr<ByteFile>> plain_file(const ByteStream& stream, const std::string& name) {
    const auto* const plain = dynamic_cast<const DescriptorStream*>(&stream);
    const auto size = stream.size();
    if (plain == nullptr || !size) return std::unique_ptr<ByteFile>();
    const int descriptor = ::fcntl(plain->descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) return Error{Errc::unreadable, fmt::format("{}: cannot be opened: {}", name, reason(errno))};
    return std::unique_ptr<ByteFile>(std::make_unique<DiskFile>(descriptor, *size, name));
}

}  // namespace

Result<std::unique_ptr<ByteFile>> open_byte_file(const std::filesystem::path& path, std::vector<Error>* damage) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, open_bytes(path));
    const std::string name = path == "-" ? "standard input" : path.string();
    WM_ASSIGN_OR_RETURN(std::unique_ptr<ByteFile> plain, plain_file(*stream, name));
    if (plain == nullptr) return spooled(*stream, name, damage);
    return plain;
}

Result<FileHead> open_head(const std::filesystem::path& path, std::size_t most) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, open_bytes(path));
    FileHead out;
    WM_ASSIGN_OR_RETURN(out.file, plain_file(*stream, path.string()));
    out.bytes.resize(most);
    std::size_t have = 0;
    while (have < most) {
        const auto count = stream->read(std::span(out.bytes).subspan(have));
        if (!count || *count == 0) break;  // the reader of the whole file reports the failure
        have += *count;
    }
    out.bytes.resize(have);
    return out;
}

std::unique_ptr<ByteFile> byte_file_from_memory(std::vector<std::uint8_t> bytes, std::string name) {
    return std::make_unique<MemoryFile>(std::move(bytes), std::move(name));
}

}  // namespace waymark::capture
