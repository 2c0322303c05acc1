/// The packets of the model and what they are compressed against: the state that was sent last (docs/spec/pft.md,
/// sections 2 and 5.3).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "model_output.h"
#include "model_return_stack.h"

namespace waymark::pft {

class ModelPackets : protected ModelOutput {
protected:
    ModelPackets(const ModelConfig& config, ByteSink& trace)
        : ModelOutput(config, trace), stack_(config_.return_stack ? choices_.return_stack_depth : 0U) {}
    ~ModelPackets() = default;

    /// What the trace has said of the core.
    struct Sent {
        bool ns = false, hyp = false;
        std::uint32_t context_id = 0;
        std::uint8_t vmid = 0;
        std::uint64_t timestamp = 0;
    };

    /// 2.5.
    void branch(const Place& to, std::uint32_t exception, bool ns, bool hyp, std::uint32_t cycles, unsigned least = 1) {
        BranchAddress p;
        const bool information = exception != 0 || ns != sent_.ns || hyp != sent_.hyp || alt_isa_differs(to.isa);
        if (information) least = std::max(least, exception == 0 && !choices_.short_information ? 5U : 2U);  // OQ11
        p.target = compressed(to, least);
        p.target.information = information;
        if (config_.cycle_accurate) p.cycles = cycles;
        if (information) {
            const bool set = choices_.hyp_information == ModelChoices::HypInformation::set_or_changed && hyp;  // OQ5
            p.exception_3_0 = static_cast<std::uint8_t>(exception & 0xf);
            p.exception_8_4 = static_cast<std::uint8_t>(exception >> 4 & 0x1f);
            p.more = set || hyp != sent_.hyp || exception > 15;
            p.alt_isa = to.isa == Isa::tee;
            p.ns = ns;
            p.hyp = p.more && hyp;
        }
        send(p);
        base_ = other_base_ = to;
        sent_.ns = ns;
        sent_.hyp = hyp;
    }
    /// OQ10: into a prohibited region. Where it goes must not be seen, nor in which state.
    bool hidden_branch(std::uint32_t exception, std::uint64_t cycle) {
        flush_atoms();
        if (choices_.prohibited_entry == ModelChoices::ProhibitedEntry::address_zero) {
            branch({{0}, Isa::a32}, exception, sent_.ns, sent_.hyp, clock_.count(cycle));
            return true;
        }
        if (group_lost()) return false;
        drop_group();  // a waypoint update with nothing behind it would say too much
        --counts_.waypoints;
        ++counts_.untraced;
        return false;
    }
    /// 2.7.
    void update(const Place& place) {
        WaypointUpdate p;
        p.target = compressed(place, 1);
        p.target.information = alt_isa_differs(place.isa);
        p.alt_isa = p.target.information && place.isa == Isa::tee;
        send(p);
        if (choices_.update_base == ModelChoices::UpdateBase::is_not_base) return;  // OQ1
        base_ = place;
        if (choices_.update_base == ModelChoices::UpdateBase::is_base) other_base_ = place;
    }
    /// Gives the place of the most recent waypoint's target; executes nothing. False: the FIFO has no room. `cycle`:
    /// of that waypoint.
    bool isync(ISyncReason reason, const Place& place, bool ns, bool hyp, std::uint32_t context_id,
               std::uint64_t cycle) {
        flush_atoms();
        ISync p;
        p.address_31_1 = static_cast<std::uint32_t>(place.address.value >> 1);
        p.reason = reason;
        p.thumb = place.isa != Isa::a32;
        p.alt_isa = place.isa == Isa::tee;
        p.ns = ns;
        p.hyp = hyp;
        p.context_id = context_id;
        if (reason != ISyncReason::periodic) p.cycles = clock_.count(cycle, true);
        send(p);
        if (fifo_.draining()) return false;
        stack_.clear();  // 4.5: even a periodic one empties it
        base_ = other_base_ = place;
        sent_.ns = ns;
        sent_.hyp = hyp;
        sent_.context_id = context_id;
        return true;
    }
    /// `ticks`: of the last waypoint, which was at `cycle`. `whole`: all bytes. False: the FIFO has no room.
    bool timestamp(std::uint64_t ticks, std::uint64_t cycle, bool whole, bool frequency_changed) {
        flush_atoms();
        // v1.1 gives the time of the last waypoint, v1.0 that of the packet.
        const std::uint64_t delay = config_.minor_version == 0 ? choices_.packet_delay_cycles : 0;
        std::uint64_t value = ticks + clock_.ticks_of(delay);
        if (config_.timestamp_bytes == 7) value &= (std::uint64_t{1} << 48) - 1;
        const std::uint64_t sent = config_.gray_timestamps ? to_gray(value) : value;
        Timestamp p;
        p.value = compress_timestamp(sent, sent_.timestamp, whole, config_);
        p.cycles = clock_.count(cycle + delay);
        p.frequency_changed = frequency_changed;
        send(p);
        if (fifo_.draining()) return false;
        sent_.timestamp = sent;
        return true;
    }
    void context_id(std::uint32_t value) {
        flush_atoms();
        send(ContextId{value});
        sent_.context_id = value;
    }
    void vmid(std::uint8_t value) {
        flush_atoms();
        send(Vmid{value});
        sent_.vmid = value;
    }

    /// 5.3, rule 4: a waypoint instruction that passed gets a branch packet; else an atom.
    bool needs_packet(const Retired& w, bool ns, bool hyp) {
        const bool change = ns != sent_.ns || hyp != sent_.hyp || alt_isa_differs(w.next.isa);
        switch (w.instruction.waypoint) {
            case isa::Waypoint::direct: return change || config_.branch_broadcast;
            case isa::Waypoint::barrier:
                return change || (config_.branch_broadcast &&
                                  choices_.broadcast_barrier == ModelChoices::BroadcastBarrier::packet);  // OQ8
            case isa::Waypoint::indirect: break;
            case isa::Waypoint::none: break;
        }
        if (stack_.empty()) return true;
        const ModelReturnStack::Entry& top = stack_.top();
        if (!top.certain || top.place != w.next || top.ns != ns) return true;  // the stack stays as it is (4.5)
        const bool returns = w.instruction.exception_return && config_.minor_version >= 1;
        if (change || returns) {  // OQ3
            if (choices_.matched_change == ModelChoices::MatchedChange::packet_pops_entry) stack_.pop();
            return true;
        }
        stack_.pop();
        return false;
    }

    // ---- many blocks at once: where nothing but atoms and plain branch packets can come of them

    /// The bases of addresses are one, and AltISA is 0.
    [[nodiscard]] bool plain_bases() const { return base_ == other_base_ && plain(base_.isa); }
    /// AltISA is 0 and an I-sync is not needed.
    static constexpr bool plain(Isa isa) { return isa == Isa::a32 || isa == Isa::t32; }

    /// Sends the atoms and branch packets of blocks that begin at `start`, in the state that was sent last, and sets
    /// `start` to where the block after them begins. Stops before the first that may need more, and behind the one with
    /// which `sync_bytes` (0: never) ask for synchronisation. Returns how many it took. Precondition: plain_bases().
    std::size_t plain_blocks(std::span<const RetiredBlock> blocks, Place& start, std::uint64_t sync_bytes) {
        if (config_.cycle_accurate)
            return config_.branch_broadcast ? plain_blocks_as<true, true>(blocks, start, sync_bytes)
                                            : plain_blocks_as<true, false>(blocks, start, sync_bytes);
        return config_.branch_broadcast ? plain_blocks_as<false, true>(blocks, start, sync_bytes)
                                        : plain_blocks_as<false, false>(blocks, start, sync_bytes);
    }

    Sent sent_;
    ModelReturnStack stack_;

private:
    /// `counts`: cycle-accurate; `broadcast`: branch broadcast.
    template <bool counts, bool broadcast>
    std::size_t plain_blocks_as(std::span<const RetiredBlock> blocks, Place& start, std::uint64_t sync_bytes) {
        constexpr std::size_t most_bytes = counts ? 10 : 6;  // of a block: atoms, then an address, or that and a count
        constexpr std::size_t most_blocks = 400;
        std::array<std::uint8_t, most_blocks * most_bytes + sizeof(std::uint64_t)> bytes;
        std::uint8_t* out = bytes.data();
        blocks = blocks.first(std::min(blocks.size(), most_blocks));
        // A block that finds more bytes sent than this first asks for synchronisation.
        const std::uint64_t room = sync_bytes > sync_bytes_ ? sync_bytes - sync_bytes_ : 0;
        const std::uint8_t* const sync =
            sync_bytes == 0 || room > bytes.size() ? bytes.data() + bytes.size() : bytes.data() + room;
        const bool stacks = config_.return_stack;
        Isa isa = start.isa, base_isa = base_.isa;
        auto at = static_cast<std::uint32_t>(start.address.value);
        auto base = static_cast<std::uint32_t>(base_.address.value);
        // Atoms with the marker before them, as they are sent.
        std::uint32_t atoms = 1U << atoms_.count | atoms_.n;
        std::uint64_t counted = clock_.counted();
        std::size_t taken = 0;
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            const auto address = static_cast<std::uint32_t>(b.address.value),
                       next = static_cast<std::uint32_t>(b.next.value);
            if (out >= sync || b.isa != isa || !plain(b.next_isa) || address < at || address + i.bytes - at > 4096 ||
                i.exception_return) [[unlikely]]
                break;
            const std::uint32_t behind = address + i.bytes;
            const std::uint64_t cycles = b.cycle > counted ? b.cycle - counted : 0;
            if (i.waypoint == isa::Waypoint::barrier || behind < address || (counts && cycles > 0xffffffffU))
                [[unlikely]]
                break;
            bool addressed = b.passed & (broadcast | (i.waypoint != isa::Waypoint::direct));
            if (stacks && addressed) addressed = !returned_by_stack(b);
            if (addressed) {
                if constexpr (!counts) {
                    if (atoms != 1) *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                    atoms = 1;
                }
                out = put_target(out, next, b.next_isa, base, base_isa);
                base = next;
                base_isa = b.next_isa;
            } else if constexpr (!counts) {
                atoms = atoms << 1 | (b.passed ? 0U : 1U);
                *out = static_cast<std::uint8_t>(0x80U | atoms << 1);
                out += atoms >> 5;
                atoms = atoms >= 32 ? 1 : atoms;
            }
            if constexpr (counts) {
                const MadeBytes count = count_bytes(static_cast<std::uint32_t>(cycles));
                put_made(out, {count.bytes | (addressed ? 0U : 0x80U | (b.passed ? 0U : 2U)), count.count});
                out += count.count;
                counted += cycles;
            }
            if (stacks && i.link && b.passed) stack_.push({{{behind}, isa}, sent_.ns, true});
            at = b.passed ? next : behind;
            isa = b.passed ? b.next_isa : isa;
            ++taken;
        }
        if (taken == 0) return 0;
        start = {{at}, isa};
        base_ = other_base_ = {{base}, base_isa};
        atoms_.count = static_cast<std::uint8_t>(std::bit_width(atoms) - 1);
        atoms_.n = static_cast<std::uint8_t>(atoms & ~(1U << atoms_.count));
        if constexpr (counts) clock_.count_to(counted);
        if (out != bytes.data()) put({bytes.data(), static_cast<std::size_t>(out - bytes.data())});
        return taken;
    }
    /// 2.5: the address bytes of a branch packet without information, AltISA being 0. Mostly as few as for the one
    /// before at the same branch, so jumps are foreseen.
    WM_INLINE static std::uint8_t* put_target(std::uint8_t* out, std::uint32_t to, Isa isa, std::uint32_t base,
                                              Isa base_isa) {
        const unsigned shift = isa == Isa::a32 ? 2 : 1;
        const std::uint32_t bits = to >> shift, differs = (to ^ base) >> shift;
        const auto put = [&](std::uint32_t byte) { *out++ = static_cast<std::uint8_t>(byte); };
        if (isa != base_isa || differs >> target_bits(4) != 0) {  // all five bytes
            put(0x80 | (bits & 0x3f) << 1 | 1);
            for (unsigned n = 6; n < 27; n += 7) put(0x80 | bits >> n);
            put(bits >> 27 | (isa == Isa::a32 ? 0x08U : 0x10U));
        } else if (differs >> target_bits(1) == 0) {
            put((bits & 0x3f) << 1 | 1);
        } else {
            put(0x80 | (bits & 0x3f) << 1 | 1);
            unsigned n = 6;
            // Of a last byte, bit 6 says that information follows.
            for (; differs >> (n + 6) != 0; n += 7) put(0x80 | bits >> n);
            put(bits >> n & 0x3f);
        }
        return out;
    }
    /// Up to eight bytes, the first the least significant.
    struct MadeBytes {
        std::uint64_t bytes;
        unsigned count;
    };
    /// All eight, of which `count` stay.
    WM_INLINE static void put_made(std::uint8_t* out, const MadeBytes& made) {
        for (unsigned n = 0; n < 8; ++n) out[n] = static_cast<std::uint8_t>(made.bytes >> 8 * n);
    }
    /// 2.3: a cycle count, bit 7 of its first byte 0.
    WM_INLINE static MadeBytes count_bytes(std::uint32_t cycles) {
        static constexpr std::array<std::uint8_t, 33> counts = [] {
            std::array<std::uint8_t, 33> table{};
            for (unsigned width = 0; width < table.size(); ++width)
                table[width] = static_cast<std::uint8_t>(width <= 4 ? 1 : 1 + (width - 4 + 6) / 7);
            return table;
        }();
        static constexpr std::array<std::uint64_t, 6> more{0, 0, 0x40, 0x8040, 0x808040, 0x80808040};
        const unsigned count = counts[static_cast<unsigned>(std::bit_width(cycles))];
        const std::uint64_t all = (cycles & 0xfU) << 2 | (cycles & 0x7f0U) << 4 | (cycles & 0x3f800U) << 5 |
                                  std::uint64_t{cycles & 0x1fc0000U} << 6 | std::uint64_t{cycles & 0xfe000000U} << 7;
        return {all | more[count], count};
    }
    /// The part of needs_packet() where the state does not change; false: a packet.
    bool returned_by_stack(const RetiredBlock& b) {
        if (stack_.empty()) return false;
        const ModelReturnStack::Entry& top = stack_.top();
        if (!top.certain || top.place != Place{b.next, b.next_isa} || top.ns != sent_.ns) return false;
        stack_.pop();
        return true;
    }
    /// AltISA counts as 0 for an ARM or Jazelle target.
    [[nodiscard]] bool alt_isa_differs(Isa isa) const {
        return (isa == Isa::tee) != (base_.isa == Isa::tee) || (isa == Isa::tee) != (other_base_.isa == Isa::tee);
    }
    /// Behind a waypoint update, long enough for both readings of OQ1.
    [[nodiscard]] Target compressed(const Place& to, unsigned least) const {
        const Target one = compress(to, base_, least), other = compress(to, other_base_, least);
        return one.bytes >= other.bytes ? one : other;
    }

    // A waypoint update may or may not be the base of the next address (OQ1): `base_` says it is, `other_base_` that it
    // is not.
    Place base_{}, other_base_{};
};

}  // namespace waymark::pft
