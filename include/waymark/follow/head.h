/// The search for execution before the first synchronisation point of a trace: which paths through the program explain
/// all that packets say (docs/recover.md). Every place of the program is followed through the observations, and dropped
/// at the first one that contradicts its code. What all paths that are left have in common is recovered.
///
/// A protocol finds where packets begin (HeadChains), makes observations of them (observation.h), says how its unit
/// traces (HeadRules), measures how much of execution the images explain (unseen_share), and decodes what was recovered
/// with a decoder that begins in the middle (decode_head).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/block_cache.h"
#include "waymark/follow/observation.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"

namespace waymark::follow {

/// How a unit traces, as far as the search depends on it.
struct HeadRules {
    isa::DecodeOptions decode{};  ///< which instructions are waypoint instructions
    isa::Space space{};           ///< where code is read from
    std::vector<Isa> isas{};      ///< that execution may be in
    bool return_stack{};
    Rules::Indirect indirect = Rules::Indirect::pops;
    /// A packet that names no instruction set means that of the last address; else that of the code before it.
    bool isa_of_base{};
    bool reached_is_base = true;  ///< seen::Reached is an address that later ones are compressed against
    std::uint8_t history = 1;     ///< number of recent addresses that addresses are compressed against: 1 to 3
};

/// Searches. The last observation is a seen::Sync: the place where decoding begins without the search. `unseen`: the
/// share of the trace that is of unknown code, less than 1. Fills in all of `out` but what the protocol knows, which is
/// where the head and its synchronisation are. Time and memory are bounded by `limits`, whatever the observations.
void search_head(const HeadRules& rules, const isa::CodeReader& code, std::span<const CodeExtent> extents,
                 std::span<const Observation> observations, double unseen, const RecoverLimits& limits,
                 HeadRecovery& out);

/// The part of `extents` that 32-bit addresses reach.
[[nodiscard]] std::vector<CodeExtent> below_4gb(std::span<const CodeExtent> extents);

/// True if `held` has a synchronisation packet, `zeros` zeros and 0x80, and after it the bytes that unseen_share()
/// looks at: enough to recover the trace before the packet.
[[nodiscard]] bool holds_sync(Bytes held, std::size_t zeros);

/// The chains of packets that lead from the first bytes of a head to its synchronisation packet, none of them part of
/// another. That packet begins with zeros, and a packet before it may end in zeros too: chains end at `first_end` or
/// after it, up to the end of the head.
class HeadChains {
public:
    /// `packet_at(i)`: the length of the packet that begins at byte i of the head, up to 255; 0: none does. It is asked
    /// of i < `first_end`, each once. `longest`: of all packets.
    HeadChains(std::size_t head_bytes, std::size_t first_end, std::size_t longest,
               const std::function<std::size_t(std::size_t)>& packet_at);

    /// Where all of them have become one. A chain may begin at any of the first bytes, as many as a packet has at most
    /// beyond its header: the rest of one that was cut can look like packets. Nothing if they meet nowhere.
    [[nodiscard]] std::optional<std::size_t> joined() const;
    [[nodiscard]] std::size_t length(std::size_t at) const { return length_[at]; }

private:
    const std::size_t first_end_, longest_;
    std::vector<std::uint8_t> leads_, length_;
};

/// The share of the bytes that report execution where no code is known, or code other than the image's, in trace where
/// execution is known: `decode(bytes, out)` decodes the first judged_bytes of `behind`, which begins with a
/// synchronisation packet.
[[nodiscard]] double unseen_share(Bytes behind, const std::function<void(Bytes, flow::BatchWriter&)>& decode);

/// Delivers what was recovered: `stretch(s, out)` decodes each stretch. A gap between two, and after the last if it
/// ends before the sync.
void decode_head(const HeadRecovery& head, flow::BatchWriter& out,
                 const std::function<void(const HeadStretch&, flow::BatchWriter&)>& stretch);

}  // namespace waymark::follow
