/// Infers the probable format of an unlabelled dump: frames of memory, a trace port's stream, or the raw bytes of one
/// source (docs/spec/pft.md, 6.5). It is a suggestion for users, not a way to configure a decoder.
#pragma once

#include <cstdint>

#include "waymark/core/types.h"

namespace waymark::coresight {

enum class BufferKind : std::uint8_t {
    aligned,  ///< `Framing::aligned`
    tpiu,     ///< `Framing::tpiu`
    raw,      ///< no frames: one source with the formatter in bypass, or something else
};

enum class Confidence : std::uint8_t { low, high };

/// What decided.
enum class FramingEvidence : std::uint8_t {
    too_short,      ///< less than one frame
    full_syncs,     ///< tpiu: whole frames between full syncs
    steady_ids,     ///< aligned: few IDs, each announced again and again, and no forbidden ones
    plausible_ids,  ///< aligned: the bytes can be frames, but have few ID bytes to judge by
    few_damaged,    ///< aligned: a few frames are invalid, the others agree on few IDs
    no_ids,         ///< raw: as frames, the bytes would not name any source
    scattered_ids,  ///< raw: as frames, the bytes would name more sources than any system has, or reserved IDs
    forbidden_ids,  ///< raw: as frames, many would contain the forbidden ID
};

struct FramingGuess {
    BufferKind kind{};
    Confidence confidence{};
    FramingEvidence evidence{};
    bool footers = false;  ///< stored in the blocks of a DSTREAM, each with a footer (dstream.h)

    friend bool operator==(const FramingGuess&, const FramingGuess&) = default;
};

/// Judges a dump by its first bytes; a few KB are enough, and time grows with the size. Never fails: a dump without
/// frames is `raw`. Aligned frames are assumed to begin at the first byte, so `head` must be the beginning of the dump.
[[nodiscard]] FramingGuess guess_framing(Bytes head);

/// The number of bytes at the beginning that are syncs of an idle port, which give no information about the format. One
/// sync stays before the trace, and the rest begins at a block boundary of a DSTREAM.
[[nodiscard]] std::size_t idle_bytes(Bytes bytes);

}  // namespace waymark::coresight
