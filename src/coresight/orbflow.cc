#include "waymark/coresight/orbflow.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "waymark/coresight/formatter.h"

namespace waymark::coresight {

namespace {

/// Tag, payload and sum.
constexpr std::size_t least_frame = 3, most_frame = 1 + 4094 + 1;

/// Unpacks one frame without the zero at its end; empty if it is invalid.
std::vector<std::uint8_t> unpack_cobs(Bytes packed) {
    std::vector<std::uint8_t> out;
    for (std::size_t at = 0; at < packed.size();) {
        const std::size_t code = packed[at], copied = code - 1;
        if (at + code > packed.size()) return {};
        out.insert(out.end(), packed.begin() + static_cast<std::ptrdiff_t>(at + 1),
                   packed.begin() + static_cast<std::ptrdiff_t>(at + 1 + copied));
        at += code;
        if (code != 0xff && at < packed.size()) out.push_back(0);
        if (out.size() > most_frame) return {};
    }
    return out;
}
bool is_frame(const std::vector<std::uint8_t>& frame) {
    return frame.size() >= least_frame && (std::accumulate(frame.begin(), frame.end(), 0U) & 0xffU) == 0;
}

}  // namespace

std::optional<Orbflow> read_orbflow(Bytes bytes) {
    Orbflow out;
    std::vector<std::pair<std::uint8_t, std::vector<std::uint8_t>>> pieces;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (bytes[at] != 0) continue;
        const Bytes packed = bytes.subspan(begin, at - begin);
        std::vector<std::uint8_t> frame = unpack_cobs(packed);
        if (is_frame(frame)) {
            ++out.frames;
            const std::uint8_t tag = frame.front();
            frame.pop_back();
            frame.erase(frame.begin());
            if (is_source({tag})) {
                out.bytes[tag] += frame.size();
                pieces.emplace_back(tag, std::move(frame));
            } else {
                out.other_bytes += frame.size();
            }
        } else if (begin == 0) {
            out.cut_bytes += packed.size() + 1;  // the file may begin inside a frame
        } else if (!packed.empty()) {
            if (out.damaged_frames++ == 0) out.first_damage = Offset{begin};
            out.damaged_bytes += packed.size() + 1;
        }
        begin = at + 1;
        // One sum in 256 is right by chance.
        if (out.damaged_frames > 16 && out.damaged_frames * 8 > out.frames) return {};
    }
    out.cut_bytes += bytes.size() - begin;
    constexpr std::uint64_t enough = 3;
    if (out.frames < (out.damaged_frames == 0 && out.cut_bytes == 0 ? 2 : enough)) return {};
    if (out.damaged_frames * 8 > out.frames || out.cut_bytes > 2 * (most_frame + most_frame / 254 + 2)) return {};
    const auto sources = std::count_if(out.bytes.begin(), out.bytes.end(), [](std::uint64_t n) { return n != 0; });
    if (sources == 0) return {};
    if (sources == 1) {
        out.only = TraceId{pieces.front().first};
        for (const auto& [tag, piece] : pieces) out.payload.insert(out.payload.end(), piece.begin(), piece.end());
        return out;
    }
    out.framed = true;
    Formatter formatter(out.payload);
    for (const auto& [tag, piece] : pieces) formatter.add({tag}, piece);
    formatter.flush();
    return out;
}

}  // namespace waymark::coresight
