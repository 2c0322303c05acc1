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

/// Properties of a unit's trace on which the search depends.
struct HeadRules {
    isa::DecodeOptions decode{};  ///< options that decide which instructions are waypoints
    isa::Space space{};           ///< memory from which code is read
    std::vector<Isa> isas{};      ///< possible instruction sets
    bool return_stack{};
    Rules::Indirect indirect = Rules::Indirect::pops;
    /// A packet without instruction set means that of the last address; otherwise that of the previous code.
    bool isa_of_base{};
    bool reached_is_base = true;  ///< whether seen::Reached is a base for compressing later addresses
    std::uint8_t history = 1;     ///< number of recent addresses that serve as base: 1 to 3
};

/// Performs the search. The last observation is a seen::Sync: the place where decoding begins without the search.
/// `unseen`: the share of the trace in unknown code, less than 1. Sets all members of `out` except those that the
/// protocol knows: the place of the head and of its synchronisation. `limits` bound time and memory, whatever the
/// observations.
void search_head(const HeadRules& rules, const isa::CodeReader& code, std::span<const CodeExtent> extents,
                 std::span<const Observation> observations, double unseen, const RecoverLimits& limits,
                 HeadRecovery& out);

/// The part of `extents` within 32-bit addresses.
[[nodiscard]] std::vector<CodeExtent> below_4gb(std::span<const CodeExtent> extents);

/// Whether `held` has a synchronisation packet (`zeros` zeros and 0x80), and after it the bytes that unseen_share()
/// examines: enough to recover the trace before the packet.
[[nodiscard]] bool holds_sync(Bytes held, std::size_t zeros);

/// Chains of packets that lead from the first bytes of a head to its synchronisation packet, without those that are
/// part of another. That packet begins with zeros, and a packet before it may end in zeros too: chains end at or after
/// `first_end`, up to the end of the head.
class HeadChains {
public:
    /// `packet_at(i)`: the length of the packet that begins at byte i of the head, up to 255; 0: none. It is called
    /// once for each i < `first_end`. `longest`: maximum length of a packet.
    HeadChains(std::size_t head_bytes, std::size_t first_end, std::size_t longest,
               const std::function<std::size_t(std::size_t)>& packet_at);

    /// Where all chains have joined. A chain may begin at any of the first bytes, as many as a packet has at most
    /// beyond its header: the rest of a truncated packet can look like packets. nullopt if they do not all join.
    [[nodiscard]] std::optional<std::size_t> joined() const;
    [[nodiscard]] std::size_t length(std::size_t at) const { return length_[at]; }

private:
    const std::size_t first_end_, longest_;
    std::vector<std::uint8_t> leads_, length_;
};

/// The share of the bytes that report execution in unknown code, or in code that differs from the image's, in trace
/// where execution is known: `decode(bytes, out)` decodes the first judged_bytes of `behind`, which begins with a
/// synchronisation packet.
[[nodiscard]] double unseen_share(Bytes behind, const std::function<void(Bytes, flow::BatchWriter&)>& decode);

/// Delivers the recovered flow: `stretch(s, out)` decodes each stretch. A gap is inserted between two, and after the
/// last if it ends before the sync.
void decode_head(const HeadRecovery& head, flow::BatchWriter& out,
                 const std::function<void(const HeadStretch&, flow::BatchWriter&)>& stretch);

}  // namespace waymark::follow
