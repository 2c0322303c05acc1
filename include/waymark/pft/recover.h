/// Program flow before the first A-sync: what a wrapped buffer still holds of its oldest trace
/// (docs/spec/pft.md, 2.11).
///
/// Where packets begin follows from the end: a chain of packets must lead exactly to the A-sync. Where execution stood
/// is searched: every place in the program is followed through the packets, and dies at the first one that contradicts
/// its code. A path counts if it is the only one left where the first I-sync behind an A-sync confirms it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

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

struct HeadRecovery {
    HeadOutcome outcome{};
    Offset sync{};            ///< of the I-sync behind the first A-sync: the head is everything before it
    Offset async{};           ///< of that A-sync
    Offset first{};           ///< recovered is [first, sync); `sync` if nothing is
    Standing standing{};      ///< of the core at `first`
    std::uint64_t packets{};  ///< recovered
    std::uint64_t checks{};   ///< outcomes and addresses that the path had to explain, and did
    std::uint64_t places{};   ///< from which it was told apart
    std::uint64_t paths{};    ///< left at the sync, before any was chosen
    double chance{};          ///< share of checks that places pass which turn out wrong, as measured in this search
    bool confirmed{};         ///< the I-sync is periodic and names the address the path has reached
    /// 1 / (1 + places · chance^checks · p), where p is 1 / places if `confirmed` and else 1: how sure the path is, if
    /// before any check all places were equally likely. With several stretches, cut by I-syncs, that of the least sure.
    double confidence{};
    [[nodiscard]] std::uint64_t bytes() const { return sync - first; }
};

/// A path less sure than this is not given.
inline constexpr double least_confidence = 0.9;

/// Searches the head of a stream; `stream` begins where the stream does and holds its first A-sync and the I-sync
/// behind it. `extents`: where `code` has bytes, for a search must list them. Time and memory are bounded by `limits`,
/// whatever the bytes.
[[nodiscard]] HeadRecovery recover_head(const Config& config, const isa::CodeReader& code,
                                        std::span<const CodeExtent> extents, Bytes stream,
                                        const RecoverLimits& limits = {});

/// Decodes what was recovered: a `TraceOn` with the reason `recovered`, then what the decoders would have given for
/// [first, sync), had they known where they stood. Context ID and VMID stay unknown until a packet tells them.
void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out);

}  // namespace waymark::pft
