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
/// When a buffer stops in bypass, it writes one byte 0x01 after the last byte of trace and then zeros until the memory
/// width is full. Padding is therefore the last 0x01 of the capture and the at most `memory_width_bytes - 1` zeros
/// after it; a 0x01 or zeros before that mark are trace. Without a mark there (a buffer read while it ran, or longer
/// zeros, as an A-sync has) nothing is stripped, zeros included. Nothing distinguishes a mark from a capture that was
/// never stopped and whose trace happens to end in `01 00 …`; this takes it for a mark, which costs a decoder one
/// packet at most, whereas a mark left in would decode as a branch that never was.
///
/// `memory_width_bytes`: of the buffer, if known; the limit of the zeros accepted. The default is the widest there is.
[[nodiscard]] Bytes strip_bypass_padding(Bytes capture, unsigned memory_width_bytes = max_memory_width_bytes);

/// The inverse: ends `trace` as a buffer of this width does, with the mark and zeros up to a multiple of the width. A
/// mark is always written, even if the trace alone fills the width. `memory_width_bytes` is not 0.
void append_bypass_padding(std::vector<std::uint8_t>& trace, unsigned memory_width_bytes);

}  // namespace waymark::coresight
