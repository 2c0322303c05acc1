#include "pack.h"

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::report {

namespace {

std::vector<std::uint8_t> deflated(std::string_view text) {
    z_stream stream{};
    // Negative window bits: no header. For these texts, the size at level 6 is within a twentieth of the size at level
    // 9, and it takes a third of the time.
    WM_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    std::vector<std::uint8_t> out(1 << 16);
    std::size_t used = 0, taken = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
        // zlib counts in unsigned int; texts may be longer.
        constexpr std::size_t most = std::size_t{1} << 30;
        const std::size_t now = std::min(text.size() - taken, most);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + taken));
        stream.avail_in = static_cast<uInt>(now);
        do {
            if (used == out.size()) out.resize(out.size() * 2);
            const std::size_t room = std::min(out.size() - used, most);
            stream.next_out = out.data() + used;
            stream.avail_out = static_cast<uInt>(room);
            status = deflate(&stream, taken + now == text.size() ? Z_FINISH : Z_NO_FLUSH);
            WM_CHECK(status != Z_STREAM_ERROR);
            used += room - stream.avail_out;
        } while (stream.avail_out == 0 && status != Z_STREAM_END);
        taken += now;
    }
    deflateEnd(&stream);
    out.resize(used);
    return out;
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
    static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t left = bytes.size() - i;
        const std::uint32_t three = static_cast<std::uint32_t>(bytes[i]) << 16 |
                                    (left > 1 ? static_cast<std::uint32_t>(bytes[i + 1]) << 8 : 0U) |
                                    (left > 2 ? static_cast<std::uint32_t>(bytes[i + 2]) : 0U);
        out += digits[three >> 18];
        out += digits[three >> 12 & 63];
        out += left > 1 ? digits[three >> 6 & 63] : '=';
        out += left > 2 ? digits[three & 63] : '=';
    }
    return out;
}

}  // namespace

std::string pack(std::string_view text) { return base64(deflated(text)); }

}  // namespace waymark::report
