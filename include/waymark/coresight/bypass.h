/// A capture with the formatter in bypass: the unformatted bytes of one source, and an end mark (docs/spec/pft.md,
/// 6.5).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::coresight {

/// The widest memory interface of a CoreSight buffer.
inline constexpr unsigned max_memory_width_bytes = 16;

/// Returns the trace in `capture` without the end mark: a part of the same memory, from its start.
///
/// When a buffer stops in bypass, it writes one byte 0x01 after the last byte of trace, and then zeros until the memory
/// width is full. The padding is therefore the last 0x01 of the capture and the zeros after it, at most
/// `memory_width_bytes - 1`; a 0x01 or zeros before that mark are trace. If there is no such mark (the buffer was read
/// while it ran, or more zeros follow, as in an A-sync), nothing is removed.
///
/// A capture that was never stopped may happen to end in `01 00 …`, which cannot be distinguished from a mark and is
/// treated as one. This costs a decoder at most one packet, but a mark that is not removed would be decoded as a branch
/// that never ran.
///
/// `memory_width_bytes`: the buffer's width, if known; it limits the number of zeros accepted. The default is the
/// largest width that exists.
[[nodiscard]] Bytes strip_bypass_padding(Bytes capture, unsigned memory_width_bytes = max_memory_width_bytes);

/// The inverse: ends `trace` as a buffer of this width does, with the mark and zeros up to a multiple of the width. A
/// mark is always written, even if the trace alone fills the width. `memory_width_bytes` is not 0.
void append_bypass_padding(std::vector<std::uint8_t>& trace, unsigned memory_width_bytes);

}  // namespace waymark::coresight
