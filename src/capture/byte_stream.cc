#include "waymark/capture/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "packed_stream.h"
#include "waymark/capture/sigrok.h"
#include "waymark/core/file_error.h"
#include "waymark/core/regular_file.h"

namespace waymark::capture {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 16;

/// An open file, read from front to back. Bytes that `peek` has read are returned again first.
class File {
public:
    File(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
    File(File&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)),
          name_(std::move(other.name_)),
          head_(other.head_),
          head_bytes_(other.head_bytes_),
          given_(other.given_) {}
    File& operator=(File&&) = delete;
    ~File() {
        if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
    }

    [[nodiscard]] static Result<File> open(const std::filesystem::path& path) {
        if (path == "-") return File(STDIN_FILENO, "standard input");
        if (path.native().find('\0') != std::string::npos)
            return Error{Errc::not_found, fmt::format("{}: no file has a name with a NUL byte", path.c_str())};
        if (const auto error = no_regular_file(path)) return *error;
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (descriptor < 0) {
            const int error_number = errno;
            if (error_number == ENOENT || error_number == ENOTDIR)
                return Error{Errc::not_found, fmt::format("{}: there is no such file; check the name", path.string())};
            if (error_number == EACCES)
                return Error{Errc::unreadable, fmt::format("{}: no permission to read it; check the owner and mode of "
                                                           "the file and of the folders above it",
                                                           path.string())};
            return Error{Errc::unreadable,
                         fmt::format("{}: cannot be opened: {}", path.string(), reason(error_number))};
        }
        File file(descriptor, path.string());
        struct stat status {};
        if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode))
            return Error{Errc::unreadable,
                         fmt::format("{}: is a folder where a file was expected; name the file in it", path.string())};
        return file;
    }

    /// The first bytes, fewer only where the file is shorter.
    [[nodiscard]] Result<Bytes> peek() {
        while (head_bytes_ < head_.size()) {
            WM_ASSIGN_OR_RETURN(const std::size_t got, raw_read(std::span(head_).subspan(head_bytes_)));
            if (got == 0) break;
            head_bytes_ += got;
        }
        return Bytes(head_).first(head_bytes_);
    }

    [[nodiscard]] Result<std::size_t> read(std::span<std::uint8_t> into) {
        if (given_ < head_bytes_) {
            const std::size_t count = std::min(into.size(), head_bytes_ - given_);
            std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(given_), count, into.begin());
            given_ += count;
            return count;
        }
        WM_ASSIGN_OR_RETURN(const std::size_t got, raw_read(into));
        given_ += got;
        return got;
    }

    [[nodiscard]] std::optional<std::uint64_t> size() const {
        struct stat status {};
        if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
        // Standard input may be a file whose beginning another program has read.
        if (descriptor_ == STDIN_FILENO) return std::nullopt;
        return static_cast<std::uint64_t>(status.st_size);
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] int descriptor() const { return descriptor_; }
    /// Number of bytes returned so far.
    [[nodiscard]] std::uint64_t given() const { return given_; }

private:
    [[nodiscard]] Result<std::size_t> raw_read(std::span<std::uint8_t> into) const {
        while (true) {
            const ssize_t got = ::read(descriptor_, into.data(), into.size());
            if (got >= 0) return static_cast<std::size_t>(got);
            const int error_number = errno;
            if (error_number == EINTR) continue;
            return Error{Errc::unreadable,
                         fmt::format("{}: offset {:#x}: cannot be read: {}", name_, given_, reason(error_number)),
                         Offset{given_}};
        }
    }

    int descriptor_;
    std::string name_;
    std::array<std::uint8_t, 4> head_{};
    std::size_t head_bytes_ = 0;
    std::uint64_t given_ = 0;
};

class PlainStream final : public ByteStream, public DescriptorStream {
public:
    explicit PlainStream(File file) : file_(std::move(file)) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override { return file_.read(into); }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return file_.size(); }
    [[nodiscard]] int descriptor() const override { return file_.descriptor(); }

private:
    File file_;
};

/// What the two decompressors share: a chunk of compressed input, and an error that is kept back until everything
/// decompressed before it was handed out.
class CompressedStream : public ByteStream, public PackedStream {
public:
    explicit CompressedStream(File file) : file_(std::move(file)) {}

    Result<std::size_t> read(std::span<std::uint8_t> into) final {
        if (failure_) return *failure_;
        if (ended_) return std::size_t{0};
        const std::size_t count = decompress(into);
        if (count == 0 && failure_) return *failure_;
        return count;
    }
    [[nodiscard]] std::uint64_t taken() const final { return file_.given(); }

protected:
    /// Writes as many bytes as possible; returns 0 when the stream has ended or failed.
    virtual std::size_t decompress(std::span<std::uint8_t> into) = 0;

    /// Makes sure there is input unless the file has ended. False: reading failed, and the failure is recorded.
    bool refill() {
        if (next_ != filled_ || at_end_) return true;
        auto got = file_.read(input_);
        if (!got) {
            failure_ = std::move(got.error());
            return false;
        }
        next_ = 0;
        filled_ = *got;
        at_end_ = *got == 0;
        return true;
    }
    [[nodiscard]] Bytes pending() const { return Bytes(input_).subspan(next_, filled_ - next_); }
    void consume(std::size_t count) { next_ += count; }
    [[nodiscard]] bool at_end() const { return at_end_; }
    void end() { ended_ = true; }

    void fail(std::string_view what, std::string_view advice) {
        const std::uint64_t offset = file_.given() - (filled_ - next_);
        failure_ = Error{Errc::unreadable,
                         fmt::format("{}: offset {:#x}: {}; everything before it was delivered. {}", file_.name(),
                                     offset, what, advice),
                         Offset{offset}};
    }
    static constexpr std::string_view copy_again = "Copy the file again from where it was captured.";

private:
    File file_;
    std::array<std::uint8_t, chunk_bytes> input_{};
    std::size_t next_ = 0, filled_ = 0;
    bool at_end_ = false, ended_ = false;
    std::optional<Error> failure_;
};

class GzipStream final : public CompressedStream {
public:
    explicit GzipStream(File file) : CompressedStream(std::move(file)) {
        constexpr int window_bits = 15, gzip_wrapper = 16;
        WM_CHECK(inflateInit2(&inflater_, window_bits + gzip_wrapper) == Z_OK);
    }
    GzipStream(const GzipStream&) = delete;
    GzipStream& operator=(const GzipStream&) = delete;
    ~GzipStream() override { inflateEnd(&inflater_); }

private:
    std::size_t decompress(std::span<std::uint8_t> into) override {
        const auto limit = static_cast<uInt>(std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max()));
        inflater_.next_out = into.data();
        inflater_.avail_out = limit;
        while (inflater_.avail_out == limit) {
            if (!refill()) break;
            if (between_members_) {
                if (!next_member()) break;
                continue;
            }
            // At the end of the file zlib may still hold output: call it once more without input. Its interface
            // predates const.
            inflater_.next_in = const_cast<Bytef*>(pending().data());
            inflater_.avail_in = static_cast<uInt>(pending().size());
            const int outcome = inflate(&inflater_, Z_NO_FLUSH);
            consume(pending().size() - inflater_.avail_in);
            if (outcome == Z_STREAM_END) {
                between_members_ = true;
            } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
                fail(fmt::format("the gzip data are damaged ({})", inflater_.msg != nullptr ? inflater_.msg : "zlib"),
                     copy_again);
                break;
            } else if (at_end() && inflater_.avail_out == limit) {
                fail("the gzip data end inside a member", copy_again);
                break;
            }
        }
        return limit - inflater_.avail_out;
    }

    /// Moves to the next member. False: there is nothing more to decompress. Call it with input available, or at the
    /// end of the file.
    bool next_member() {
        if (at_end()) {
            end();
            return false;
        }
        // Zeros after the last member are padding from block devices; gzip itself passes over them too.
        if (pending().front() == 0) {
            const auto zeros = std::find_if(pending().begin(), pending().end(), [](std::uint8_t b) { return b != 0; });
            consume(static_cast<std::size_t>(zeros - pending().begin()));
            return true;
        }
        constexpr std::uint8_t first_magic_byte = 0x1f;
        if (pending().front() != first_magic_byte) {
            fail("after the gzip data, there are bytes that are not gzip",
                 "Remove them, or move them to a separate file.");
            return false;
        }
        WM_CHECK(inflateReset(&inflater_) == Z_OK);
        between_members_ = false;
        return true;
    }

    z_stream inflater_{};
    bool between_members_ = false;
};

class ZstdStream final : public CompressedStream {
public:
    explicit ZstdStream(File file) : CompressedStream(std::move(file)), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
        WM_CHECK(context_ != nullptr);
    }

private:
    std::size_t decompress(std::span<std::uint8_t> into) override {
        ZSTD_outBuffer out{into.data(), into.size(), 0};
        while (out.pos == 0) {
            if (!refill()) break;
            // At the end of the file the decompressor may still hold output: call it once more without input.
            ZSTD_inBuffer in{pending().data(), pending().size(), 0};
            const bool no_input = in.size == 0;
            if (no_input && frame_done_) {
                end();
                break;
            }
            const std::size_t outcome = ZSTD_decompressStream(context_.get(), &out, &in);
            consume(in.pos);
            if (ZSTD_isError(outcome) != 0) {
                damaged(outcome);
                break;
            }
            frame_done_ = outcome == 0;
            if (no_input && !frame_done_ && out.pos == 0) {
                fail("the zstd data end inside a frame", copy_again);
                break;
            }
        }
        return out.pos;
    }

    void damaged(std::size_t outcome) {
        const std::string_view what = ZSTD_getErrorName(outcome);
        if (what.find("memory") != std::string_view::npos)
            fail(fmt::format("the zstd frame cannot be read in bounded memory ({})", what),
                 "Decompress it first with zstd -d --long=31.");
        else if (frame_done_)
            fail("after the zstd data, there are bytes that are not zstd",
                 "Remove them, or move them to a separate file.");
        else
            fail(fmt::format("the zstd data are damaged ({})", what), copy_again);
    }

    std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
    bool frame_done_ = false;
};

class MemoryStream final : public ByteStream {
public:
    explicit MemoryStream(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        const std::size_t count = std::min(into.size(), bytes_.size() - next_);
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(next_), count, into.begin());
        next_ += count;
        return count;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return bytes_.size(); }

private:
    std::vector<std::uint8_t> bytes_;
    std::size_t next_ = 0;
};

/// An open stream, or null if the file is empty.
Result<std::unique_ptr<ByteStream>> open_unless_empty(const std::filesystem::path& path) {
    WM_ASSIGN_OR_RETURN(File file, File::open(path));
    WM_ASSIGN_OR_RETURN(const Bytes head, file.peek());
    if (head.empty()) return std::unique_ptr<ByteStream>();
    // gzip: magic, deflate, no reserved flag (RFC 1952, 2.3). zstd: a frame, or a skippable frame as pzstd writes in
    // front (RFC 8878, 3.1).
    const bool gzip = head.size() == 4 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 && (head[3] & 0xe0) == 0;
    const bool zstd =
        head.size() == 4 && ((head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd) ||
                             ((head[0] & 0xf0) == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18));
    if (may_be_sigrok(head) && path != "-") {
        WM_ASSIGN_OR_RETURN(auto session, open_sigrok(path));
        if (session != nullptr) return session;
    }
    if (gzip) return std::unique_ptr<ByteStream>(std::make_unique<GzipStream>(std::move(file)));
    if (zstd) return std::unique_ptr<ByteStream>(std::make_unique<ZstdStream>(std::move(file)));
    return std::unique_ptr<ByteStream>(std::make_unique<PlainStream>(std::move(file)));
}

Error empty_file(const std::filesystem::path& path) {
    return Error{Errc::bad_format, fmt::format("{}: is empty; check that the capture was saved",
                                               path == "-" ? "standard input" : path.string())};
}

class ConcatenatedStream final : public ByteStream {
public:
    explicit ConcatenatedStream(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)) {}

    /// Opens the next file that is not empty; `current_` is null after the last.
    Status advance() {
        current_.reset();
        while (current_ == nullptr && next_ < paths_.size()) {
            WM_ASSIGN_OR_RETURN(current_, open_unless_empty(paths_[next_++]));
        }
        return Nothing{};
    }
    [[nodiscard]] bool at_end() const { return current_ == nullptr; }

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        if (failure_) return *failure_;
        while (current_ != nullptr) {
            auto got = current_->read(into);
            if (!got) return got;
            if (*got != 0) return got;
            if (auto status = advance(); !status) {
                failure_ = std::move(status.error());
                return *failure_;
            }
        }
        return std::size_t{0};
    }

private:
    std::vector<std::filesystem::path> paths_;
    std::size_t next_ = 0;
    std::unique_ptr<ByteStream> current_;
    std::optional<Error> failure_;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> open_bytes(const std::filesystem::path& path) {
    WM_ASSIGN_OR_RETURN(auto stream, open_unless_empty(path));
    if (stream == nullptr) return empty_file(path);
    return stream;
}

Result<std::unique_ptr<ByteStream>> concatenate(std::vector<std::filesystem::path> paths) {
    if (paths.empty()) return Error{Errc::usage, "no file was named to read bytes from; name at least one"};
    if (paths.size() == 1) return open_bytes(paths.front());
    const std::filesystem::path first = paths.front();
    auto stream = std::make_unique<ConcatenatedStream>(std::move(paths));
    WM_RETURN_IF_ERROR(stream->advance());
    if (stream->at_end()) return empty_file(first);
    return std::unique_ptr<ByteStream>(std::move(stream));
}

std::vector<std::uint8_t> peek_standard_input(std::size_t most) {
    std::vector<std::uint8_t> out(most);
    ssize_t got = 0;
    struct stat status {};
    if (::fstat(STDIN_FILENO, &status) != 0) return {};
    if (S_ISREG(status.st_mode)) {
        got = ::pread(STDIN_FILENO, out.data(), most, ::lseek(STDIN_FILENO, 0, SEEK_CUR));
    } else if (std::array<int, 2> copy{}; S_ISFIFO(status.st_mode) && ::pipe2(copy.data(), O_CLOEXEC) == 0) {
        got = ::tee(STDIN_FILENO, copy[1], most, 0);
        if (got > 0) got = ::read(copy[0], out.data(), static_cast<std::size_t>(got));
        for (const int end : copy) ::close(end);
    }
    out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return out;
}

std::unique_ptr<ByteStream> from_memory(std::vector<std::uint8_t> bytes) {
    return std::make_unique<MemoryStream>(std::move(bytes));
}

Result<std::vector<std::uint8_t>> read_all(ByteStream& stream, std::uint64_t limit) {
    std::vector<std::uint8_t> all;
    std::array<std::uint8_t, chunk_bytes> chunk{};
    while (true) {
        WM_ASSIGN_OR_RETURN(const std::size_t got, stream.read(chunk));
        if (got == 0) return all;
        if (got > limit - all.size())
            return Error{Errc::unsupported, fmt::format("there are more bytes than the limit of {}", limit),
                         Offset{limit}};
        all.insert(all.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
    }
}

}  // namespace waymark::capture
