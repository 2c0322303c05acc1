/// Random streams of several sources, for property tests.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "waymark/coresight/formatter.h"

namespace waymark::coresight::testing {

struct Piece {
    TraceId id;
    std::vector<std::uint8_t> bytes;
};

inline unsigned below(std::mt19937& random, unsigned limit) { return static_cast<unsigned>(random() % limit); }

/// Runs of 1 to `longest` bytes; many bytes are bytes of sync packets.
inline std::vector<Piece> random_pieces(std::mt19937& random, unsigned count, unsigned longest) {
    constexpr std::array<std::uint8_t, 6> ids{0x01, 0x10, 0x11, 0x6F, 0x7D, 0x7B};
    std::vector<Piece> pieces(count);
    for (auto& piece : pieces) {
        piece.id = {ids[below(random, below(random, 8) == 0 ? 6 : 4)]};
        piece.bytes.resize(1 + below(random, longest));
        for (auto& byte : piece.bytes) {
            constexpr std::array<std::uint8_t, 4> special{0xFF, 0x7F, 0x00, 0xFE};
            byte = below(random, 3) == 0 ? special[below(random, 4)] : static_cast<std::uint8_t>(random());
        }
    }
    return pieces;
}

using Streams = std::map<unsigned, std::vector<std::uint8_t>>;

inline Streams streams_of(const std::vector<Piece>& pieces) {
    Streams streams;
    for (const auto& piece : pieces) {
        auto& stream = streams[piece.id.value];
        stream.insert(stream.end(), piece.bytes.begin(), piece.bytes.end());
    }
    return streams;
}

/// A capture of the pieces. With `full_sync_frames`, half syncs too, at random; and ID repeats at random places.
inline std::vector<std::uint8_t> format(std::mt19937& random, const std::vector<Piece>& pieces,
                                        FormatterOptions options) {
    std::vector<std::uint8_t> capture;
    Formatter formatter(capture, options);
    for (const auto& piece : pieces) {
        const auto at = below(random, static_cast<unsigned>(piece.bytes.size()));
        formatter.add(piece.id, Bytes(piece.bytes).first(at));
        if (options.full_sync_frames > 0 && below(random, 2) == 0) formatter.idle();
        if (below(random, 8) == 0) formatter.repeat_id();
        formatter.add(piece.id, Bytes(piece.bytes).subspan(at));
        if (below(random, 50) == 0) formatter.flush();
    }
    formatter.flush();
    return capture;
}

}  // namespace waymark::coresight::testing
