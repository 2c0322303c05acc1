/// Program flow before the first A-sync: what a wrapped buffer still holds of its oldest trace
/// (docs/spec/pft.md, 2.11).
///
/// Where packets begin follows from the end: every chain of packets that leads exactly to the A-sync is one of the
/// candidates, and the search begins where they have become one. Where execution stood is searched: every place in the
/// program is followed through the packets, and dies at the first one that contradicts its code. No place that may be
/// right is dropped unless another is a million times likelier: what lay on the return stack is any place behind a
/// call. What all paths that are left at the first I-sync behind an A-sync have in common is recovered; the rest is a
/// gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {

/// Addresses that hold program bytes.
struct CodeExtent {
    Address first{};
    std::uint64_t bytes{};
    friend bool operator==(const CodeExtent&, const CodeExtent&) = default;
};

/// What bounds the search. What lies beyond is not searched, and the result says so.
struct RecoverLimits {
    std::size_t head_bytes = std::size_t{1} << 18;  ///< the part of the head nearest to the A-sync
    std::size_t places = std::size_t{1} << 20;      ///< followed at once
    std::uint64_t steps = std::uint64_t{1} << 25;   ///< instructions and places looked at
};

/// Of what follows the A-sync, so much is decoded to see what part of the program is known.
inline constexpr std::size_t judged_bytes = std::size_t{1} << 14;

/// Why there is nothing, or not more.
enum class HeadOutcome : std::uint8_t {
    recovered,
    no_head,      ///< the stream begins with its A-sync
    no_sync,      ///< no A-sync, or no I-sync behind it, in the bytes given
    no_parse,     ///< no chain of packets leads to the A-sync: another configuration, or damage
    no_code,      ///< there is no program to hold the packets against
    no_path,      ///< no place in the program explains the packets up to the sync
    ambiguous,    ///< several do
    unconfirmed,  ///< one does, but too little speaks for it
    too_much,     ///< the limits ended the search
};
[[nodiscard]] std::string_view name(HeadOutcome outcome);

/// A part of the head, and how the core stood at its beginning.
struct HeadStretch {
    Offset first{}, end{};
    Standing standing{};
};

struct HeadRecovery {
    HeadOutcome outcome{};
    Offset sync{};                         ///< of the I-sync behind the first A-sync: the head is everything before it
    Offset async{};                        ///< of that A-sync
    Offset first{};                        ///< where what is recovered begins; `sync` if nothing is
    std::vector<HeadStretch> stretches{};  ///< recovered, in order; what lies between is ambiguous
    std::uint64_t packets{};               ///< recovered
    std::uint64_t checks{};                ///< outcomes and addresses that the path had to explain, and did
    std::uint64_t places{};                ///< from which it was told apart
    std::uint64_t paths{};                 ///< left at the sync, before any was chosen
    double unseen{};                       ///< share of the trace behind the A-sync that tells of code not known
    double chance{};   ///< share of checks that places pass which turn out wrong, as measured in this search
    bool confirmed{};  ///< the I-sync is periodic and names the address the path has reached
    /// How sure the least sure of the recovered ranges are: 1 / (1 + r). A place can be wrong only if execution was
    /// where no code is known, which odds of `unseen` say; r is those odds times min(1, places · chance^checks) of a
    /// place that passes all checks by chance: up to the sync, with p = 1 / places if `confirmed`, plus up to the first
    /// address, which execution could have come to from there.
    double confidence{};
    [[nodiscard]] std::uint64_t bytes() const;  ///< recovered, up to the I-sync
    /// Recovered of the `async` bytes before the A-sync, which are what is not known without it.
    [[nodiscard]] std::uint64_t bytes_before_async() const;
};

/// A path less sure than this is not given.
inline constexpr double least_confidence = 0.9;

/// Searches the head of a stream; `stream` begins where the stream does and holds its first A-sync and the I-sync
/// behind it. `extents`: where `code` has bytes, for a search must list them. Time and memory are bounded by `limits`,
/// whatever the bytes.
[[nodiscard]] HeadRecovery recover_head(const Config& config, const isa::CodeReader& code,
                                        std::span<const CodeExtent> extents, Bytes stream,
                                        const RecoverLimits& limits = {});

/// Decodes what was recovered: of each stretch a `TraceOn` with the reason `recovered`, then what the decoders would
/// have given for it, had they known where they stood; a gap between stretches and behind the last, if it ends before
/// the sync. Context ID and VMID stay unknown until a packet tells them. All is delivered.
void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out);

}  // namespace waymark::pft
