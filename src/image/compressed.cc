#include "compressed.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

namespace waymark::image {
namespace {

std::vector<std::uint8_t> from_xz(Bytes packed) {
    std::uint64_t memory_limit = most_decompressed;
    constexpr std::size_t least_room = 1 << 16;
    for (std::size_t room = std::clamp(packed.size() * 8, least_room, most_decompressed);;
         room = std::min(room * 4, most_decompressed)) {
        std::vector<std::uint8_t> out(room);
        std::size_t in_at = 0, out_at = 0;
        const lzma_ret status = lzma_stream_buffer_decode(&memory_limit, 0, nullptr, packed.data(), &in_at,
                                                          packed.size(), out.data(), &out_at, out.size());
        if (status == LZMA_BUF_ERROR && in_at < packed.size() && room < most_decompressed) continue;
        out.resize(status == LZMA_OK ? out_at : 0);
        return out;
    }
}

std::vector<std::uint8_t> from_zstd(Bytes packed) {
    const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    std::vector<std::uint8_t> out;
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    std::size_t left = 1;
    while (context != nullptr && out.size() < most_decompressed) {
        const std::size_t before = out.size();
        out.resize(std::min(before + ZSTD_DStreamOutSize(), most_decompressed));
        ZSTD_outBuffer to{out.data() + before, out.size() - before, 0};
        const std::size_t in_before = in.pos;
        left = ZSTD_decompressStream(context.get(), &to, &in);
        out.resize(before + to.pos);
        if (ZSTD_isError(left) != 0) return {};
        if (left == 0 && in.pos == in.size) return out;
        if (to.pos == 0 && in.pos == in_before) break;
    }
    return {};
}

std::vector<std::uint8_t> from_gzip(Bytes packed) {
    z_stream stream{};
    constexpr int gzip = 16;
    if (packed.size() > std::numeric_limits<uInt>::max() || inflateInit2(&stream, gzip + MAX_WBITS) != Z_OK) return {};
    const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
    // zlib's interface takes a non-const pointer, but does not change the input.
    stream.next_in = const_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    std::vector<std::uint8_t> out;
    constexpr std::size_t step = 1 << 20;
    while (out.size() < most_decompressed) {
        const std::size_t before = out.size();
        out.resize(before + step);
        stream.next_out = out.data() + before;
        stream.avail_out = step;
        const int status = inflate(&stream, Z_NO_FLUSH);
        out.resize(before + step - stream.avail_out);
        if (status == Z_STREAM_END) return out;
        if (status != Z_OK || out.size() == before) break;
    }
    return {};
}

}  // namespace

std::vector<std::uint8_t> decompressed(Bytes packed) {
    const std::string_view head(reinterpret_cast<const char*>(packed.data()), std::min<std::size_t>(packed.size(), 6));
    if (head == std::string_view("\xfd"
                                 "7zXZ\0",
                                 6))
        return from_xz(packed);
    if (head.starts_with("\x28\xb5\x2f\xfd")) return from_zstd(packed);
    if (head.starts_with("\x1f\x8b")) return from_gzip(packed);
    return {};
}

}  // namespace waymark::image
