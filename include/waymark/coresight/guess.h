/// What an unlabelled dump probably is: frames of memory, a trace port's stream, or the raw bytes of one source
/// (docs/spec/pft.md, 6.5). A help for people, not a way to configure a decoder.
#pragma once

#include <cstdint>

#include "waymark/core/types.h"

namespace waymark::coresight {

enum class BufferKind : std::uint8_t {
    aligned,  ///< `Framing::aligned`
    tpiu,     ///< `Framing::tpiu`
    raw,      ///< no frames: one source with the formatter in bypass, or something else altogether
};

enum class Confidence : std::uint8_t { low, high };

/// What decided.
enum class FramingEvidence : std::uint8_t {
    too_short,      ///< less than one frame
    full_syncs,     ///< tpiu: whole frames between full syncs
    steady_ids,     ///< aligned: few IDs, each announced again and again, and nothing forbidden
    plausible_ids,  ///< aligned: nothing speaks against frames, but there are few ID bytes to judge by
    few_damaged,    ///< aligned: a few frames cannot be, the others agree on few IDs
    no_ids,         ///< raw: frames would never name a source
    scattered_ids,  ///< raw: as frames, the bytes would name more sources than any system has, or reserved IDs
    forbidden_ids,  ///< raw: as frames, the forbidden ID would stand in many
};

struct FramingGuess {
    BufferKind kind{};
    Confidence confidence{};
    FramingEvidence evidence{};
    bool footers = false;  ///< in the blocks of a DSTREAM, each with a footer (dstream.h)

    friend bool operator==(const FramingGuess&, const FramingGuess&) = default;
};

/// Judges a dump by its first bytes; a few KB are plenty, more costs time in proportion. Never fails: what has no
/// frames is `raw`. Aligned frames are looked for from the first byte on, so `head` must start where the dump does.
[[nodiscard]] FramingGuess guess_framing(Bytes head);

/// The bytes at the beginning that are the syncs of an idle port: they are no head to judge by. One sync stays before
/// the trace, and the rest begins where a block of a DSTREAM would.
[[nodiscard]] std::size_t idle_bytes(Bytes bytes);

}  // namespace waymark::coresight
