/// The search for execution before the first synchronisation point of a trace: it finds the paths through the program
/// that explain all packets (docs/recover.md). It follows every place of the program through the observations, and
/// drops a place at the first observation that contradicts its code. The common part of all remaining paths is
/// recovered.
///
/// A protocol finds the beginnings of packets (HeadChains), makes observations of them (observation.h), describes how
/// its unit traces (HeadRules), measures the share of execution that the images explain (unseen_share), and decodes the
/// recovered part with a decoder that begins in the middle (decode_head).
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
    /// A packet without an instruction set has the instruction set of the last address; otherwise that of the previous
    /// code.
    bool isa_of_base{};
    bool reached_is_base = true;  ///< whether seen::Reached is a base for compressing later addresses
    std::uint8_t history = 1;     ///< number of recent addresses that serve as base: 1 to 3
};

/// Performs the search. The last observation is a seen::Sync: the place where decoding begins without the search.
/// `unseen`: the share of the trace in unknown code, less than 1. Sets all members of `out` except the place of the
/// head and of its synchronisation, which the protocol knows. `limits` bound time and memory for any observations.
void search_head(const HeadRules& rules, const isa::CodeReader& code, std::span<const CodeExtent> extents,
                 std::span<const Observation> observations, double unseen, const RecoverLimits& limits,
                 HeadRecovery& out);

/// The part of `extents` within 32-bit addresses.
[[nodiscard]] std::vector<CodeExtent> below_4gb(std::span<const CodeExtent> extents);

/// Whether `held` has a synchronisation packet (`zeros` zeros and 0x80), and after it the bytes that unseen_share()
/// examines: enough to recover the trace before the packet.
[[nodiscard]] bool holds_sync(Bytes held, std::size_t zeros);

/// Chains of packets that lead from the first bytes of a head to its synchronisation packet, without chains that are
/// part of another. That packet begins with zeros, and a packet before it may end in zeros too, so chains end at or
/// after `first_end`, up to the end of the head.
class HeadChains {
public:
    /// `packet_at(i)`: the length of the packet that begins at byte i of the head, up to 255; 0 if none begins there.
    /// It is called once for each i < `first_end`. `longest`: maximum length of a packet.
    HeadChains(std::size_t head_bytes, std::size_t first_end, std::size_t longest,
               const std::function<std::size_t(std::size_t)>& packet_at);

    /// The place where all chains have joined. The first bytes can be the rest of a truncated packet, which can look
    /// like packets, so a chain may begin at any of them: the number of such bytes is the maximum size of a packet
    /// after its header. nullopt if the chains do not all join.
    [[nodiscard]] std::optional<std::size_t> joined() const;
    [[nodiscard]] std::size_t length(std::size_t at) const { return length_[at]; }

private:
    const std::size_t first_end_, longest_;
    std::vector<std::uint8_t> leads_, length_;
};

/// The share of the bytes that report execution in unknown code, or in code that differs from the image's code, in
/// trace where execution is known. `decode(bytes, out)` decodes the first judged_bytes of `behind`, which begins with a
/// synchronisation packet.
[[nodiscard]] double unseen_share(Bytes behind, const std::function<void(Bytes, flow::BatchWriter&)>& decode);

/// Delivers the recovered flow: `stretch(s, out)` decodes each stretch. A gap is inserted between two stretches, and
/// after the last one if it ends before the sync.
void decode_head(const HeadRecovery& head, flow::BatchWriter& out,
                 const std::function<void(const HeadStretch&, flow::BatchWriter&)>& stretch);

}  // namespace waymark::follow
