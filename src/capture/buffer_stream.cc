#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "waymark/capture/byte_stream.h"
#include "waymark/capture/capture.h"

namespace waymark::capture {

namespace {

Error shorter(const ByteFile& file, std::uint64_t at) {
    return {Errc::unreadable,
            fmt::format("{}: offset {:#x}: the file became shorter while it was read", file.name(), at), Offset{at}};
}

/// A part of a file whose bytes are stored uncompressed.
class PlainPart final : public ByteStream {
public:
    PlainPart(const ByteFile& file, const BufferPart& part) : file_(file), part_(part) {}

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        const std::uint64_t left = part_.bytes - done_;
        if (left == 0) return std::size_t{0};
        const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
        WM_ASSIGN_OR_RETURN(const std::size_t got, file_.read_at(part_.offset + done_, into.first(want)));
        if (got == 0) return shorter(file_, part_.offset + done_);
        done_ += got;
        return got;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return part_.bytes; }

private:
    const ByteFile& file_;
    const BufferPart part_;
    std::uint64_t done_ = 0;
};

/// A part of a file whose bytes are compressed.
class PackedPart final : public ByteStream {
public:
    PackedPart(const ByteFile& file, const BufferPart& part)
        : file_(file), part_(part), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {}

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        std::vector<std::uint8_t> passed_over;
        while (skipped_ < part_.skip) {
            if (passed_over.empty()) passed_over.resize(packed_piece);
            const auto want =
                static_cast<std::size_t>(std::min<std::uint64_t>(passed_over.size(), part_.skip - skipped_));
            WM_ASSIGN_OR_RETURN(const std::size_t got, unpack(std::span(passed_over).first(want)));
            if (got == 0) return std::size_t{0};
            skipped_ += got;
        }
        const std::uint64_t left = part_.bytes - done_;
        if (left == 0) return std::size_t{0};
        const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
        WM_ASSIGN_OR_RETURN(const std::size_t got, unpack(into.first(want)));
        if (got == 0)
            return Error{Errc::unreadable,
                         fmt::format("{}: offset {:#x}: compressed trace unpacks to {} bytes less than it should",
                                     file_.name(), part_.offset, left),
                         Offset{part_.offset}};
        done_ += got;
        return got;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return part_.bytes; }

private:
    static constexpr std::size_t packed_piece = std::size_t{1} << 16;

    Result<std::size_t> unpack(std::span<std::uint8_t> into) {
        ZSTD_outBuffer out{into.data(), into.size(), 0};
        while (out.pos == 0) {
            if (in_.pos == in_.size) {
                const std::uint64_t left = part_.packed - read_;
                if (left == 0) break;
                packed_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(packed_piece, left)));
                WM_ASSIGN_OR_RETURN(const std::size_t got, file_.read_at(part_.offset + read_, packed_));
                if (got == 0) return shorter(file_, part_.offset + read_);
                read_ += got;
                in_ = {packed_.data(), got, 0};
            }
            const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in_);
            if (ZSTD_isError(status) != 0)
                return Error{Errc::unreadable,
                             fmt::format("{}: offset {:#x}: compressed trace cannot be unpacked: {}", file_.name(),
                                         part_.offset, ZSTD_getErrorName(status)),
                             Offset{part_.offset}};
        }
        return out.pos;
    }

    const ByteFile& file_;
    const BufferPart part_;
    std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
    std::vector<std::uint8_t> packed_;
    ZSTD_inBuffer in_{};
    std::uint64_t read_ = 0, skipped_ = 0, done_ = 0;
};

class AllParts final : public ByteStream {
public:
    AllParts(std::shared_ptr<const ByteFile> file, std::vector<BufferPart> parts)
        : file_(std::move(file)), parts_(std::move(parts)) {}

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        for (;;) {
            if (!now_) {
                if (next_ == parts_.size()) return std::size_t{0};
                now_ = open_part(*file_, parts_[next_++]);
            }
            WM_ASSIGN_OR_RETURN(const std::size_t got, now_->read(into));
            if (got != 0) return got;
            now_.reset();
        }
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return bytes_in(parts_); }

private:
    const std::shared_ptr<const ByteFile> file_;
    const std::vector<BufferPart> parts_;
    std::unique_ptr<ByteStream> now_;
    std::size_t next_ = 0;
};

}  // namespace

std::uint64_t bytes_in(const std::vector<BufferPart>& parts) {
    return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const BufferPart& part) { return sum + part.bytes; });
}

std::unique_ptr<ByteStream> open_part(const ByteFile& container, const BufferPart& part) {
    if (part.packed != 0) return std::make_unique<PackedPart>(container, part);
    return std::make_unique<PlainPart>(container, part);
}

Result<std::unique_ptr<ByteStream>> open_buffer(const Buffer& buffer) {
    // The description may say that nothing was written.
    const auto is_empty = [](const std::filesystem::path& file) {
        std::error_code none;
        return std::filesystem::file_size(file, none) == 0;
    };
    if (buffer.length == 0U && std::all_of(buffer.files.begin(), buffer.files.end(), is_empty)) return from_memory({});
    if (buffer.container == nullptr) return concatenate(buffer.files);
    return std::unique_ptr<ByteStream>(std::make_unique<AllParts>(buffer.container, buffer.parts));
}

}  // namespace waymark::capture
