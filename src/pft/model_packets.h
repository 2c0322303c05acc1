/// The packets of the model and the state against which they are compressed: the state that was sent last
/// (docs/spec/pft.md, sections 2 and 5.3).
#pragma once

#include <algorithm>
#include <cstdint>

#include "model_output.h"
#include "model_return_stack.h"

namespace waymark::pft {

class ModelPackets : protected ModelOutput {
protected:
    ModelPackets(const ModelConfig& config, ByteSink& trace)
        : ModelOutput(config, trace), stack_(config_.return_stack ? choices_.return_stack_depth : 0U) {}
    ~ModelPackets() = default;

    /// The state that the trace has shown.
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
    /// OQ10: whether this is a branch into a prohibited region. Neither its target nor the state there may be visible.
    bool hidden_branch(std::uint32_t exception, std::uint64_t cycle) {
        flush_atoms();
        if (choices_.prohibited_entry == ModelChoices::ProhibitedEntry::address_zero) {
            branch({{0}, Isa::a32}, exception, sent_.ns, sent_.hyp, clock_.count(cycle));
            return true;
        }
        if (group_lost()) return false;
        drop_group();  // a waypoint update with nothing after it would reveal too much
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
    /// Sends the most recent waypoint's target, without executing anything. Returns false if the FIFO has no room.
    /// `cycle`: cycle of that waypoint.
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
        stack_.clear();  // 4.5: even a periodic I-sync empties it
        base_ = other_base_ = place;
        sent_.ns = ns;
        sent_.hyp = hyp;
        sent_.context_id = context_id;
        return true;
    }
    /// `ticks`: time of the last waypoint, which was in `cycle`. `whole`: with all bytes. Returns false if the FIFO has
    /// no room.
    bool timestamp(std::uint64_t ticks, std::uint64_t cycle, bool whole, bool frequency_changed) {
        flush_atoms();
        // v1.1 sends the time of the last waypoint, v1.0 the time of the packet.
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

    /// 5.3, rule 4: whether a waypoint instruction that passed gives a branch packet; otherwise it gives an atom.
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
        if (!top.certain || top.place != w.next || top.ns != ns) return true;  // the stack does not change (4.5)
        const bool returns = w.instruction.exception_return && config_.minor_version >= 1;
        if (change || returns) {  // OQ3
            if (choices_.matched_change == ModelChoices::MatchedChange::packet_pops_entry) stack_.pop();
            return true;
        }
        stack_.pop();
        return false;
    }

    Sent sent_;
    ModelReturnStack stack_;

    // A waypoint update may or may not be the base of the next address (OQ1): `base_` assumes that it is the base,
    // `other_base_` that it is not.
    Place base_{}, other_base_{};

private:
    /// AltISA counts as 0 for an ARM or Jazelle target.
    [[nodiscard]] bool alt_isa_differs(Isa isa) const {
        return (isa == Isa::tee) != (base_.isa == Isa::tee) || (isa == Isa::tee) != (other_base_.isa == Isa::tee);
    }
    /// An address after a waypoint update, long enough for both interpretations of OQ1.
    [[nodiscard]] Target compressed(const Place& to, unsigned least) const {
        const Target one = compress(to, base_, least), other = compress(to, other_base_, least);
        return one.bytes >= other.bytes ? one : other;
    }
};

}  // namespace waymark::pft
