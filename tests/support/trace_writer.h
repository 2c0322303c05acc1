/// Turns an execution into Program Flow Trace by the rules of docs/spec/pft.md, section 5, and writes down the expected
/// result of decoders. It is a small stand-in for a macrocell in tests: it is informed about blocks that ran, not about
/// single instructions, and has no registers. Of the decoders it shares packet formats, `compress` and
/// `compress_timestamp` only; its truth follows from what it was given.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "support/elements.h"
#include "support/executed_hash.h"
#include "support/random.h"
#include "waymark/flow/flow.h"
#include "waymark/pft/config.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/state.h"

namespace waymark::synthetic {

using isa::Isa;

/// A block that ran up to and including the waypoint instruction that ends it.
struct Executed {
    flow::Block block{};               ///< from the place where execution entered it
    std::uint8_t before_last_bytes{};  ///< size of the instruction before the waypoint instruction, if there is one
    std::uint32_t last_section{};      ///< of the waypoint instruction; blocks longer than 4096 bytes only
    bool passed = true;                ///< the waypoint instruction passed its condition
    pft::Place to{};                   ///< where execution continued
    bool ns{}, hyp{};                  ///< there
    std::uint64_t cycle{};
};

/// A block that ended in an exception.
struct Interrupted {
    flow::Block block{};  ///< the instructions since the last waypoint, perhaps none; no waypoint instruction in it
    bool update = true;   ///< the exception upgrades the last instruction to a waypoint (table of 4.7)
    std::uint32_t number{};
    pft::Place vector{};
    bool ns{}, hyp{};     ///< in the handler
    bool hidden = false;  ///< entry to a region where trace is prohibited: address 0, and tracing stops
    std::uint64_t cycle{};
};

/// Receives the execution of an invented program.
class Execution {
public:
    virtual ~Execution() = default;
    virtual void waypoint(const Executed& executed) = 0;
    virtual void exception(const Interrupted& interrupted) = 0;
    /// The values that apply after the last waypoint.
    virtual void context_id(std::uint32_t value) = 0;
    virtual void vmid(std::uint8_t value) = 0;
    /// TraceEnable, in addition to address ranges; takes effect at the next waypoint.
    virtual void enable(bool on) = 0;
    /// The FIFO is full: the next `waypoints` waypoints and exceptions are lost.
    virtual void overflow(unsigned waypoints) = 0;
};

struct TraceWriterOptions {
    std::uint64_t seed = 1;
    std::uint32_t sync_bytes = 1024;          ///< ETMSYNCFR; 0: no periodic synchronisation
    unsigned return_stack_depth = 1;          ///< used when Config::return_stack
    std::uint32_t trigger_chance = 0;         ///< in 10 000 waypoints
    std::uint32_t ignore_chance = 0;          ///< in 10 000 waypoints
    std::uint32_t timestamp_chance = 0;       ///< in 10 000 waypoints, beside the ones that section 5.5 requires
    std::uint32_t barrier_packet_chance = 0;  ///< branch broadcast: in 10 000 barriers, traced by packet (OQ8)
    /// Address ranges [first, second) of TraceEnable; empty: everything.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{};
    bool exclude = false;     ///< the ranges are excluded, not included
    bool delay_isync = true;  ///< a periodic I-sync may follow its A-sync some packets later
    bool keep_truth = true;   ///< false: bytes and `range_truth` only, for benchmarks
};

/// The ranges of an execution in three numbers, which flow::Summary has too; known without keeping the ranges.
struct RangeTruth {
    std::uint64_t ranges = 0, instructions = 0;
    ExecutedHash hash;
};

/// An I-sync, and the last A-sync before it.
struct SyncPoint {
    std::uint64_t async{}, isync{};  ///< offsets
    bool own_async{};                ///< the A-sync came after the preceding I-sync
};

class TraceWriter final : public Execution {
public:
    TraceWriter(const pft::Config& config, const TraceWriterOptions& options);

    void waypoint(const Executed& executed) override;
    void exception(const Interrupted& interrupted) override;
    void context_id(std::uint32_t value) override;
    void vmid(std::uint8_t value) override;
    void enable(bool on) override { enabled_ = on; }
    void overflow(unsigned waypoints) override;
    /// Sends pending atoms.
    void finish() { flush_atoms(); }

    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    [[nodiscard]] const std::vector<Element>& truth() const { return truth_; }
    [[nodiscard]] const std::vector<SyncPoint>& syncs() const { return syncs_; }
    [[nodiscard]] const RangeTruth& range_truth() const { return range_truth_; }
    /// Waypoints and exceptions that were traced.
    [[nodiscard]] std::uint64_t traced() const { return traced_count_; }

private:
    struct StackEntry {
        std::uint64_t address;
        Isa isa;
        bool ns, certain;
    };

    [[nodiscard]] std::uint64_t here() const { return bytes_.size(); }
    template <class P>
    void send(const P& packet) {
        pft::encode(bytes_, packet, config_);
    }
    void expect_range(std::uint64_t offset, const flow::Block& block, bool taken,
                      std::uint32_t cycles = flow::no_cycles) {
        ++range_truth_.ranges;
        range_truth_.instructions += block.instructions;
        range_truth_.hash.add(block.start);
        range_truth_.hash.add(block.start + block.bytes);
        if (options_.keep_truth) truth_.push_back(range_element(offset, block, taken, cycles));
    }
    void expect_event(std::uint64_t offset, const flow::What& what) {
        if (options_.keep_truth) truth_.push_back(event_element(offset, what));
    }
    void tell_context(std::uint64_t offset);

    bool enter(const pft::Place& start, std::uint64_t end);
    [[nodiscard]] bool in_ranges(std::uint64_t start, std::uint64_t end) const;
    void stop(pft::ISyncReason restart);
    void send_async();
    void send_isync(pft::ISyncReason reason, const pft::Place& place);
    void after_isync(bool whole_timestamp);
    void send_vmid();
    void boundary(const pft::Place& start);
    void noise();
    void timestamp(bool whole);
    void atom(bool e, const flow::Block& block, std::uint32_t cycles);
    void flush_atoms();
    std::uint64_t update(const flow::Block& walked);
    std::uint64_t branch(const pft::Place& to, std::uint32_t exception, bool ns, bool hyp, std::uint32_t cycles);
    [[nodiscard]] pft::Target compressed(const pft::Place& to, unsigned least) const;
    std::uint32_t count(std::uint64_t cycle);
    [[nodiscard]] std::uint32_t delivered(std::uint32_t cycles) const {
        // The largest count means "none" in an element, so it is delivered as one less.
        return config_.cycle_accurate ? std::min(cycles, flow::no_cycles - 1) : flow::no_cycles;
    }

    const pft::Config config_;
    const TraceWriterOptions options_;
    Random random_;
    std::vector<std::uint8_t> bytes_;
    std::vector<Element> truth_;
    RangeTruth range_truth_;
    std::vector<SyncPoint> syncs_;
    std::uint64_t traced_count_ = 0;

    // The state of the core, whether traced or not.
    bool ns_ = false, hyp_ = false, enabled_ = true;
    std::uint32_t context_id_ = 0;
    std::uint8_t vmid_ = 0;
    std::uint64_t last_waypoint_cycle_ = 0;

    // The last sent address. A waypoint update may or may not be the base of the next address (OQ1): `base_` is right
    // if it is, `other_base_` if it is not, and every address packet is long enough for both.
    bool tracing_ = false, started_ = false;
    pft::ISyncReason restart_ = pft::ISyncReason::trace_enabled;
    unsigned overflow_left_ = 0;
    pft::Place base_{}, other_base_{};
    bool traced_ns_ = false, traced_hyp_ = false;
    std::optional<std::uint32_t> sent_context_id_, sent_vmid_;
    std::optional<flow::Context> told_context_;
    std::uint64_t sent_timestamp_ = 0, timestamp_base_ = 0;
    bool whole_timestamp_sent_ = false;
    std::uint64_t count_base_ = 0;
    std::uint64_t synced_at_ = 0, last_async_ = 0;
    bool async_is_new_ = false, isync_pending_ = false, vmid_pending_ = false;
    std::deque<StackEntry> stack_;

    struct PendingAtom {
        bool e;
        flow::Block block;
    };
    std::array<PendingAtom, 5> atoms_{};
    unsigned atom_count_ = 0;
};

}  // namespace waymark::synthetic
