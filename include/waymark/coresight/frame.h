/// The frame of a CoreSight formatter, in both directions (docs/spec/pft.md, 6.1 and 6.4).
///
/// A frame has sixteen bytes. Bytes 0, 2, … 14 are mixed: bit 0 shows whether the byte is an ID or data. Bytes 1, 3, …
/// 13 are data. Byte 15 is the auxiliary byte. Its bit k is bit 0 of the data in byte 2k, or shows from where on the ID
/// in byte 2k applies.
#pragma once

#include <array>
#include <cstdint>

namespace waymark::coresight {

inline constexpr unsigned frame_bytes = 16;
inline constexpr unsigned frame_pairs = 8;        ///< a mixed byte and the byte after it
inline constexpr unsigned frame_data_bytes = 15;  ///< maximum number of data bytes in a frame

/// Full sync (FSYNC, 0x7FFFFFFF): between frames only.
inline constexpr std::array<std::uint8_t, 4> full_sync{0xFF, 0xFF, 0xFF, 0x7F};
/// Half sync (HSYNC, 0x7FFF): between frames or at an even place inside one; the port has nothing to output.
inline constexpr std::array<std::uint8_t, 2> half_sync{0xFF, 0x7F};
/// Four full syncs in place of a frame: the boundary between two unrelated captures (6.5).
inline constexpr std::array<std::uint8_t, 16> barrier_frame{0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F,
                                                            0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F};

}  // namespace waymark::coresight
