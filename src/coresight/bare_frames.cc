#include "waymark/coresight/bare_frames.h"

#include <algorithm>

namespace waymark::coresight {

namespace {

constexpr std::size_t pair_bytes = half_sync.size();

struct Pairs {
    std::uint64_t half_syncs = 0, impossible = 0;
};

/// Counts the pairs that begin with 0xFF at places like `parity`.
Pairs pairs_of(Bytes stream, std::size_t parity) {
    Pairs out;
    for (std::size_t at = parity; at + pair_bytes <= stream.size(); at += pair_bytes)
        if (stream[at] == half_sync[0]) ++(stream[at + 1] == half_sync[1] ? out.half_syncs : out.impossible);
    return out;
}

}  // namespace

std::optional<HalfSyncs> read_half_syncs(Bytes stream) {
    constexpr std::uint64_t least = 4, impossible_share = 16;
    if (std::search(stream.begin(), stream.end(), full_sync.begin(), full_sync.end()) != stream.end()) return {};
    const Pairs even = pairs_of(stream, 0), odd = pairs_of(stream, 1);
    const std::size_t parity = odd.half_syncs > even.half_syncs ? 1 : 0;
    const Pairs& pairs = parity == 1 ? odd : even;
    if (pairs.half_syncs < least || pairs.impossible * impossible_share > pairs.half_syncs) return {};
    HalfSyncs out;
    out.frames.reserve(stream.size() - pair_bytes * pairs.half_syncs);
    for (std::size_t at = parity; at < stream.size(); at += pair_bytes) {
        const Bytes pair = stream.subspan(at, std::min(pair_bytes, stream.size() - at));
        if (std::equal(pair.begin(), pair.end(), half_sync.begin(), half_sync.end())) {
            if (out.count++ == 0) out.first = {at};
        } else {
            out.frames.insert(out.frames.end(), pair.begin(), pair.end());
        }
    }
    return out;
}

std::optional<std::vector<std::uint8_t>> read_frames_without_ids(Bytes bytes, std::size_t skip) {
    constexpr std::size_t least_frames = 8, odd_share = 8;
    if (bytes.size() < skip + least_frames * frame_bytes) return {};
    std::vector<std::uint8_t> out;
    std::size_t odd = 0, pairs = 0;
    for (std::size_t at = skip; at + frame_bytes <= bytes.size(); at += frame_bytes) {
        const Bytes frame = bytes.subspan(at, frame_bytes);
        const unsigned low_bits = frame[frame_data_bytes];
        for (unsigned k = 0; k < frame_pairs; ++k) {
            const std::uint8_t even = frame[2 * k];
            if ((even & 1U) != 0) return {};
            out.push_back(static_cast<std::uint8_t>(even | (low_bits >> k & 1U)));
            if (2 * k + 1 == frame_data_bytes) break;
            out.push_back(frame[2 * k + 1]);
            ++pairs;
            odd += frame[2 * k + 1] & 1U;
        }
    }
    if (odd * odd_share < pairs) return {};
    return out;
}

std::array<std::uint8_t, frame_bytes> frame_that_names(TraceId id) {
    std::array<std::uint8_t, frame_bytes> out{};
    out[0] = null_id.value << 1 | 1U;
    out[frame_data_bytes - 1] = static_cast<std::uint8_t>(id.value << 1 | 1U);
    return out;
}

}  // namespace waymark::coresight
