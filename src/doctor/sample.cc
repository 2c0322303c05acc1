#include "waymark/doctor/sample.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "waymark/capture/byte_stream.h"

namespace waymark::doctor {

namespace {

namespace fs = std::filesystem;

/// Size of a file that supports random access; nullopt for all others.
std::optional<std::uint64_t> plain_size(const fs::path& path) {
    std::error_code error;
    if (path == "-" || !fs::is_regular_file(path, error)) return {};
    const auto stream = capture::open_bytes(path);
    return stream ? (*stream)->size() : std::nullopt;
}

Result<BufferSample> from_the_beginning(const std::vector<fs::path>& files, std::uint64_t most_bytes) {
    WM_ASSIGN_OR_RETURN(const auto stream, capture::concatenate(files));
    BufferSample out;
    Piece piece{{}, {}};
    std::vector<std::uint8_t> chunk(std::size_t{1} << 20);
    while (piece.bytes.size() < most_bytes) {
        const std::size_t want = std::min<std::uint64_t>(chunk.size(), most_bytes - piece.bytes.size());
        const auto count = stream->read(std::span(chunk).first(want));
        if (!count) {
            out.damage = count.error();
            out.size_bytes = piece.bytes.size();
            break;
        }
        if (*count == 0) {
            out.size_bytes = piece.bytes.size();
            break;
        }
        piece.bytes.insert(piece.bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(*count));
    }
    out.pieces.push_back(std::move(piece));
    return out;
}

}  // namespace

std::uint64_t BufferSample::bytes() const {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.bytes.size();
    return sum;
}

Result<BufferSample> take_sample(const std::vector<fs::path>& files, std::uint64_t most_bytes) {
    std::optional<std::uint64_t> size = files.size() == 1 ? plain_size(files.front()) : std::nullopt;
    if (!size || *size <= most_bytes) return from_the_beginning(files, most_bytes);

    BufferSample out;
    out.size_bytes = *size;
    std::ifstream in(files.front(), std::ios::binary);
    constexpr std::uint64_t frame = 16;
    const std::uint64_t bytes = std::max<std::uint64_t>(most_bytes / sample_pieces & ~(frame - 1), frame);
    for (std::uint64_t i = 0; i < sample_pieces; ++i) {
        const bool last = i + 1 == sample_pieces;
        const std::uint64_t wanted = last ? *size - bytes + frame - 1 : (*size - bytes) / (sample_pieces - 1) * i;
        const std::uint64_t first = wanted & ~(frame - 1);
        const std::uint64_t end = last ? *size : first + bytes;
        Piece piece{{first}, std::vector<std::uint8_t>(end - first)};
        in.seekg(static_cast<std::streamoff>(first));
        in.read(reinterpret_cast<char*>(piece.bytes.data()), static_cast<std::streamsize>(piece.bytes.size()));
        if (!in) {
            piece.bytes.resize(static_cast<std::size_t>(in.gcount()));
            out.damage = Error{Errc::unreadable, files.front().string() + ": cannot be read to its end", Offset{first}};
            out.pieces.push_back(std::move(piece));
            break;
        }
        out.pieces.push_back(std::move(piece));
    }
    return out;
}

Result<BufferSample> take_sample(const capture::Buffer& buffer, std::uint64_t most_bytes) {
    if (buffer.container == nullptr) return take_sample(buffer.files, most_bytes);
    BufferSample out;
    std::uint64_t at = 0, taken = 0, sum = 0;
    for (const capture::BufferPart& part : buffer.parts) sum += part.bytes;
    out.size_bytes = sum;
    for (const capture::BufferPart& part : buffer.parts) {
        const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(part.bytes, most_bytes - taken));
        if (bytes == 0) break;
        if (!part.follows || out.pieces.empty()) out.pieces.push_back({{at}, {}});
        std::vector<std::uint8_t>& into = out.pieces.back().bytes;
        const std::size_t before = into.size();
        into.resize(before + bytes);
        const auto stream = capture::open_part(*buffer.container, part);
        std::size_t got = 0;
        while (got < bytes) {
            const auto count = stream->read(std::span(into).subspan(before + got));
            if (!count) out.damage = count.error();
            if (!count || *count == 0) break;
            got += *count;
        }
        into.resize(before + got);
        taken += got;
        at += part.bytes;
        if (got < bytes) break;
    }
    if (out.pieces.empty()) out.pieces.push_back({{}, {}});
    return out;
}

}  // namespace waymark::doctor
