/// The way of the model's packets to the FIFO: one at a time, or in groups that are sent or lost as a whole; and the
/// atoms that are collected to be sent together (docs/spec/pft.md, 5.4 and 5.5).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/pft/config.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/model.h"
#include "waymark/pft/model_clock.h"
#include "waymark/pft/model_fifo.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

class ModelOutput {
protected:
    /// `trace` is borrowed.
    ModelOutput(const ModelConfig& config, ByteSink& trace)
        : config_(effective(config)), choices_(config.choices), clock_(config_, choices_), fifo_(choices_, trace) {
        if (choices_.fifo_bytes != 0) choices_.fifo_bytes = std::max(choices_.fifo_bytes, least_fifo_bytes);
    }
    ~ModelOutput() = default;

    /// Unsent packets are lost, and tracing has to begin again when the FIFO is empty.
    virtual void overflowed() = 0;

    template <class P>
    void send(const P& packet) {
        if (fifo_.draining()) return clock_.take_back_counts();
        encode(group_, packet, config_);
        if (!grouping_) commit();
    }
    /// Packets up to end_group() go into the FIFO as a whole or not at all.
    void begin_group() {
        grouping_ = true;
        group_lost_ = false;
    }
    /// Returns false if the group did not fit, so that the waypoint is lost.
    bool end_group() {
        grouping_ = false;
        // An atom that waits while a group is open belongs to the waypoint whose waypoint update is in the group.
        const bool own_atom = !group_.empty() && atoms_.count != 0;
        commit(own_atom);
        if (!group_lost_) {
            kept_atom_ |= own_atom;
            return true;
        }
        if (own_atom) return false;  // overflow() counted it
        --counts_.waypoints;
        ++counts_.overflowed;
        return false;
    }
    /// Whether the present group did not fit.
    [[nodiscard]] bool group_lost() const { return group_lost_; }
    void drop_group() { group_.clear(); }

    void atom(bool e, std::uint32_t cycles) {
        if (group_lost_) return;
        if (config_.cycle_accurate) return send(Atom{{{1, static_cast<std::uint8_t>(e ? 0 : 1)}, cycles}});
        atoms_.n = static_cast<std::uint8_t>(atoms_.n << 1 | (e ? 0 : 1));
        ++atoms_.count;  // five atoms are sent when this waypoint is finished
    }
    /// Older waypoints do not belong to the present group: they are sent before it.
    void flush_atoms() {
        if (atoms_.count == 0) return;
        const Atoms atoms = atoms_;
        const bool was = grouping_;
        WM_CHECK(group_.empty());
        grouping_ = kept_atom_ = false;
        if (!fifo_.draining()) {
            encode(group_, Atom{{atoms, 0}}, config_);
            commit();
        }
        atoms_ = {0, 0};
        grouping_ = was;
    }

    /// The FIFO is full, or synchronisation is late. Nothing more is sent until the FIFO is empty.
    void overflow() {
        ++counts_.overflows;
        if (kept_atom_) {
            group_.clear();
            flush_atoms();
        }
        counts_.waypoints -= atoms_.count;
        counts_.overflowed += atoms_.count;
        atoms_ = {0, 0};
        group_.clear();
        clock_.take_back_counts();
        fifo_.drain();
        group_lost_ = true;
        overflowed();
    }

    /// Adds bytes of packets that were made elsewhere. Precondition: the FIFO never fills.
    void put(Bytes bytes) {
        const bool fits = fifo_.put(bytes, 0);
        WM_CHECK(fits);
        sent(bytes.size());
    }

    const Config config_;
    ModelChoices choices_;
    ModelClock<Config, ModelChoices> clock_;
    ModelFifo<ModelChoices> fifo_;
    ModelCounts counts_;
    Atoms atoms_{0, 0};
    std::uint64_t sync_bytes_ = 0;  ///< since the last A-sync

private:
    /// Room for an A-sync and the longest I-sync; with less, tracing would never restart.
    static constexpr std::uint32_t least_fifo_bytes = 24;

    /// The registers can request features that the architecture forbids or the version lacks; hardware ignores them.
    static Config effective(const ModelConfig& config) {
        Config c = config.packets();
        c.return_stack = c.return_stack && !c.branch_broadcast;  // 4.5
        c.vmid_trace = c.vmid_trace && c.minor_version >= 1;     // 2.8
        return c;
    }
    /// Keeps room for an atom that belongs to packets in the FIFO.
    WM_INLINE void commit(bool atom_follows = false) {
        if (group_.empty()) return;
        if (!fifo_.put(group_, atom_follows || kept_atom_ ? 1 : 0)) return overflow();
        sent(group_.size());
        group_.clear();
    }
    void sent(std::size_t bytes) {
        sync_bytes_ += bytes;
        counts_.bytes += bytes;
        clock_.counts_sent();
    }

    std::vector<std::uint8_t> group_;
    bool grouping_ = false, group_lost_ = false;
    bool kept_atom_ = false;  // the waypoint update of a waiting atom is in the FIFO: they are not split (5.5)
};

}  // namespace waymark::pft
