#include "waymark/etm3/decoder.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "waymark/etm3/exceptions.h"
#include "waymark/etm3/parser.h"
#include "waymark/etm3/state.h"
#include "waymark/follow/cuts.h"
#include "waymark/follow/elements.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/time_order.h"
#include "waymark/pft/late_timestamps.h"

namespace waymark::etm3 {

namespace {

/// Outcomes by header byte.
using OutcomeTable = std::array<Outcomes, 256>;
constexpr OutcomeTable outcome_table(bool cycle_accurate) {
    OutcomeTable all{};
    for (unsigned byte = 0; byte < all.size(); ++byte)
        all[byte] = outcomes_of(static_cast<std::uint8_t>(byte), cycle_accurate);
    return all;
}
constexpr std::array<OutcomeTable, 2> outcome_tables{outcome_table(false), outcome_table(true)};

/// A decoder's state in its stream. The follower keeps the place of execution.
struct InstructionMachineState {
    bool synced_ = false, async_seen_ = false;
    Offset async_end_{};
    LastState last_;
    bool executed_ = false;  ///< an instruction was executed since the last packet with an address
    /// The last outcome of a P-header, and the exception return packet after it, wait until the next packet, which
    /// could cancel them.
    bool atom_held_ = false, atom_e_ = false, return_held_ = false;
    std::uint32_t atom_cycles_ = flow::no_cycles;
    Offset atom_at_{}, return_at_{};
    TimestampState timestamps_;
    follow::TimeOrder times_;
    Offset isync_end_{};  ///< end of the last I-sync
};

template <class Out>
class InstructionMachine : private InstructionMachineState {
    using Follower = follow::Follower<Out>;

public:
    InstructionMachine(const Config& config, const isa::CodeReader& code, Out& out,
                       std::shared_ptr<follow::BlockLogs> logs = {})
        : config_(config),
          outcomes_(outcome_tables[config.cycle_accurate ? 1 : 0]),
          time_config_(timestamp_config(config)),
          out_(out),
          elements_(out),
          follower_({.walk = {{}, config_.max_walk_bytes, true}, .indirect = follow::Rules::Indirect::waits}, code,
                    elements_, std::move(logs)),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        forget(parser_.offset());
        elements_.forget();
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] Offset offset() const { return parser_.offset(); }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        Offset first = elements_.unplaced_first().value_or(parser_.pending());
        if (async_seen_) first = std::min(first, async_end_);
        if (atom_held_) first = std::min(first, atom_at_);
        if (return_held_) first = std::min(first, return_at_);
        return {parser_.pending(), first};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- packets

    void operator()(const Gap& gap) {
        // The lost bytes may cancel the held-back elements.
        if (is_loss(gap.reason)) atom_held_ = return_held_ = false;
        forget(gap.first);
        elements_.event(gap.first, gap);
        elements_.forget();
    }
    void operator()(const ASync&, Extent at) {
        ++packets_;
        if (synced_ || async_seen_) return;
        async_seen_ = true;
        async_end_ = at.end();
    }
    void operator()(const ISync& p, Extent at) { isync(p, std::nullopt, at); }
    void operator()(const ISyncCycles& p, Extent at) { isync(p, p.cycles, at); }
    WM_INLINE void operator()(const PHeader& p, Extent at) {
        ++packets_;
        if (!synced_) [[unlikely]]
            return;
        commit();
        const Outcomes& o = outcomes_[p.header];
        if (o.count == 0) {
            if (o.first_cycles != 0) elements_.event(at.first, flow::Cycles{.cycles = o.first_cycles});
            return;
        }
        const bool counted = config_.cycle_accurate;
        for (unsigned i = 0; i + 1U < o.count; ++i)
            place(o.passed(i), at.first, counted ? o.cycles(i) : flow::no_cycles);
        const unsigned newest = o.count - 1U;
        atom_held_ = true;
        atom_e_ = o.passed(newest);
        atom_cycles_ = counted ? o.cycles(newest) : flow::no_cycles;
        atom_at_ = at.first;
    }
    /// Handles consecutive P-headers without cycle counts, as far as known blocks lead; the others are left to the
    /// calls for single packets, which do the same one by one.
    const std::uint8_t* take(const std::uint8_t* const first, const std::uint8_t* end, Offset here) {
        if (!synced_ || config_.cycle_accurate || return_held_ || outcomes_[*first].count == 0) return first;
        commit();
        if (follower_.find_position() < 0) return first;
        // A limit, so that offsets minus the base of a batch fit 32 bits.
        end = first + std::min<std::ptrdiff_t>(end - first, 1 << 30);
        const std::uint8_t* at = first;
        unsigned placed = 0;  // outcomes of the last packet that could be followed
        bool held = false, whole = true;
        {
            using follow::Position;
            typename Out::Run run(out_, here, static_cast<std::uint64_t>(end - first));
            const Position* const links = follower_.cache().links();
            Position now = follower_.position();
            const auto follow = [&](bool e, Offset packet) __attribute__((always_inline)) {
                const std::ptrdiff_t edge = now + (e ? 1 : 0);
                const Position next = links[edge];
                if (next < 0) [[unlikely]]
                    return false;
                run.reserve(packet);
                run.goes_on_at(now);
                (void)run.put(packet, flow::no_cycles, 1, edge);
                now = next;
                return true;
            };
            while (at != end && whole) {
                const Outcomes& o = outcomes_[*at];
                const Offset packet = here + static_cast<std::uint64_t>(at - first);
                if (o.count == 0 || (held && !follow(atom_e_, packet - 1))) break;
                const unsigned newest = o.count - 1U;
                for (placed = 0; placed != newest && follow(o.passed(placed), packet);) ++placed;
                whole = placed == newest;
                held = true;
                atom_e_ = o.passed(newest);
                ++at;
            }
            follower_.set_position(now);
        }
        packets_ += static_cast<std::uint64_t>(at - first);
        executed_ = true;
        atom_at_ = here + static_cast<std::uint64_t>(at - 1 - first);
        if (!whole)
            for (const Outcomes& o = outcomes_[at[-1]]; placed + 1U < o.count; ++placed)
                place(o.passed(placed), atom_at_, flow::no_cycles);
        atom_held_ = true;
        atom_cycles_ = flow::no_cycles;
        return at;
    }
    void operator()(const BranchAddress& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        // On a Cortex-M, a cancel after an exception return packet cancels the return, not the instruction.
        const bool return_alone = config_.m_profile && return_held_;
        if (p.cancels()) {
            return_held_ = false;
            if (!return_alone) {
                atom_held_ = false;
                executed_ = false;
            }
        }
        commit();
        last_ = branch_state(p, last_, config_);
        if (const std::uint32_t number = p.exception(); number != 0) {
            flow::Exception e{&exception_type(number, config_.m_profile), {}, {}, flow::no_cycles};
            const bool debug_entry = e.type->kind == flow::ExceptionClass::debug_halt;
            if (!debug_entry) e.vector = last_.address;
            follower_.exception(e, at.first);
            // An I-sync follows when the core leaves Debug state.
            if (debug_entry) return follower_.lose();
        } else if (executed_) {
            follower_.expect(last_.place(), at.first);
        }
        go(at.first);
    }
    void operator()(const ContextId& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        commit();
        last_.context_id = p.context_id;
        set_context(at.first);
    }
    void operator()(const Vmid& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        commit();
        last_.vmid = p.vmid;
        set_context(at.first);
    }
    void operator()(const ExceptionReturn&, Extent at) {
        ++packets_;
        if (!synced_) return;
        if (return_held_) commit();
        return_held_ = true;
        return_at_ = at.first;
    }
    void operator()(const Timestamp& p, Extent at) {
        ++packets_;
        timestamps_.update(p.value, time_config_);
        if (!synced_) return;
        late_.see(p.value, timestamps_);
        commit();
        const flow::Timestamp now{timestamps_.value(time_config_),
                                  timestamps_.known() && timestamps_.transmitted() != 0, p.frequency_changed};
        if (const auto before = times_.take(now))
            elements_.event(at.first, flow::Inconsistency{flow::Conflict::time_goes_back, {*before}, {now.value}});
        elements_.event(at.first, now);
    }
    void operator()(const CycleCount& p, Extent at) { event(at, flow::Cycles{.cycles = p.cycles}); }
    void operator()(const Trigger&, Extent at) { event(at, flow::Trigger{}); }
    /// Data packets come between an instruction and the packet that cancels it, and do not concern flow.
    void operator()(const auto&, Extent) { ++packets_; }

    // ---- for follow::Parallel: a stream can be cut behind an I-sync, which gives all but the VMID and the last
    // timestamp. No outcome waits there.

    struct Snapshot {
        ParserProgress parser;
        InstructionMachineState machine;
        follow::FollowerState follower;
        typename follow::Elements<Out>::State elements;
    };
    [[nodiscard]] Snapshot snapshot() const {
        return {parser_.progress(), *this, follower_.snapshot(), elements_.state()};
    }
    void resume(const Snapshot& s) {
        parser_.resume(s.parser);
        InstructionMachineState::operator=(s.machine);
        elements_.resume(s.elements);
        follower_.resume(s.follower);
        late_ = {};
    }
    void begin_at(Offset at, const LastState& state) {
        parser_.resume_at(at);
        InstructionMachineState::operator=({});
        synced_ = true;
        last_ = state;
        isync_end_ = at;
        times_.begin_inside();
        follower_.resume({.context = state.context(), .place = state.place(), .known = true});
        elements_.resume({.context = state.context()});
        late_ = {};
        late_.to_the_end = true;
    }
    [[nodiscard]] static bool continues(const Snapshot& s, Offset at, const LastState& state) {
        const InstructionMachineState& m = s.machine;
        return m.synced_ && s.follower.known && m.isync_end_ == at && s.parser.at_packet(at) && m.last_ == state &&
               s.follower.place == state.place() && s.follower.context == state.context();
    }
    using Carried = std::optional<std::uint32_t>;  ///< the VMID
    [[nodiscard]] static Carried carried(const Snapshot& s) { return s.follower.context.vmid; }
    using Late = pft::LateTimestamps;
    [[nodiscard]] Late late() const { return {late_.sent, late_.to_the_end, times_}; }
    [[nodiscard]] static bool late_contradicts(const Config& config, const Snapshot& before, const Late& late) {
        TimestampState last = before.machine.timestamps_;
        follow::TimeOrder times = before.machine.times_;
        return late.contradict(timestamp_config(config), last, times);
    }
    static void complete_late(const Config& config, const Snapshot& before, const Late& late,
                              const follow::Batches& batches, Snapshot& end) {
        const pft::Config times_as = timestamp_config(config);
        const TimestampState last =
            pft::complete_timestamps(times_as, before.machine.timestamps_, late, batches, false);
        if (late.to_the_end) end.machine.timestamps_ = last;
        TimestampState behind = before.machine.timestamps_;
        follow::TimeOrder times = before.machine.times_;
        (void)late.contradict(times_as, behind, times);
        end.machine.times_.join(times);
    }

    // Functions for follow::Cutting.

    [[nodiscard]] static follow::CutMemory memory(const Snapshot& s) {
        return {.vmid = carried(s),
                .timestamp = s.machine.timestamps_.transmitted(),
                .timestamp_known = s.machine.timestamps_.known(),
                .latest = s.machine.times_.latest()};
    }
    [[nodiscard]] static Carried carried(const follow::CutMemory& memory) { return memory.vmid; }
    static void remember(Snapshot& s, const follow::CutMemory& memory) {
        s.machine.timestamps_.go_on_behind(memory.timestamp, memory.timestamp_known);
        s.machine.times_.go_on_behind(memory.latest);
    }

private:
    void event(Extent at, flow::What what) {
        ++packets_;
        if (!synced_) return;
        commit();
        elements_.event(at.first, std::move(what));
    }

    /// The held-back outcome was not cancelled.
    WM_INLINE void commit() {
        if (atom_held_) {
            atom_held_ = false;
            place(atom_e_, atom_at_, atom_cycles_);
        }
        if (return_held_) [[unlikely]] {
            return_held_ = false;
            elements_.event(return_at_, flow::ExceptionReturn{});
        }
    }
    WM_INLINE void place(bool e, Offset at, std::uint32_t cycles) {
        executed_ = true;
        if (follower_.ready(at) && follower_.atom(e, at, cycles)) [[likely]]
            return;
        elements_.unplaced(at, {e ? 1U : 0U, e ? 0U : 1U});
        if (cycles != flow::no_cycles && cycles != 0) elements_.event(at, flow::Cycles{.cycles = cycles});
    }

    void isync(const ISync& p, std::optional<std::uint32_t> cycles, Extent at) {
        ++packets_;
        commit();
        if (!synced_ && async_end_ < at.first)
            elements_.event(at.first, Gap{async_end_, at.first, GapReason::unsynchronised});
        const LastState to = isync_state(p, last_.vmid, config_);
        if (!synced_ || p.reason != ISyncReason::periodic) {
            constexpr flow::TraceOnReason reasons[] = {flow::TraceOnReason::begin, flow::TraceOnReason::enabled,
                                                       flow::TraceOnReason::overflow,
                                                       flow::TraceOnReason::debug_restart};
            // In elements the largest count means "none", so it is delivered as an event of its own.
            if (cycles == flow::no_cycles) elements_.event(at.first, flow::Cycles{.cycles = *cycles});
            elements_.event(at.first,
                            flow::TraceOn{reasons[static_cast<unsigned>(p.reason)], cycles.value_or(flow::no_cycles)});
        } else {
            if (!config_.data_only) follower_.confirm(to.place(), to.context(), at.first);
            if (cycles.value_or(0) != 0) elements_.event(at.first, flow::Cycles{.cycles = *cycles});
        }
        synced_ = true;
        async_seen_ = false;
        isync_end_ = at.end();
        last_ = to;
        if (!config_.data_only) return go(at.first);
        follower_.lose();
        set_context(at.first);
    }
    void go(Offset at) {
        executed_ = false;
        follower_.go(last_.place(), last_.context(), at);
    }
    void set_context(Offset at) { follower_.set_context(last_.context(), at); }

    /// Resets to the state before the first byte, in which nothing is known about the core.
    void forget(Offset at) {
        commit();
        if (!synced_ && async_seen_ && async_end_ < at)
            elements_.event(at, Gap{async_end_, at, GapReason::unsynchronised});
        follow::TimeOrder times = times_;
        times.forget();
        InstructionMachineState::operator=({});
        times_ = times;
        late_.to_the_end = false;
        follower_.forget();
    }

    const Config config_;
    const OutcomeTable& outcomes_;
    const pft::Config time_config_;
    Out& out_;
    follow::Elements<Out> elements_;
    Follower follower_;
    FastParser<InstructionMachine> parser_;
    std::uint64_t packets_ = 0;
    pft::LateTimestamps late_;  // set for a piece whose time base is not known yet; its times are times_
};

struct ParallelInstructions {
    using Config = etm3::Config;
    struct Cut {
        using State = LastState;
        std::size_t at{};  ///< after the I-sync
        State state;       ///< state that the I-sync gives, except the VMID
    };
    template <class Out>
    using Decoder = InstructionMachine<Out>;
    static std::optional<Cut> find_cut(Bytes bytes, std::size_t from, std::size_t end, const Config& config) {
        if (config.data_only) return {};
        const auto isync = [&](std::size_t behind) {
            return follow::cut_behind<Cut>(bytes, behind, [&](Bytes rest, std::size_t at, std::optional<Cut>& cut) {
                return parse_one(rest, config, [&]<class P>(const P& packet, std::size_t size) {
                    if constexpr (std::is_base_of_v<ISync, P>) cut = Cut{at + size, isync_state(packet, {}, config)};
                });
            });
        };
        return follow::first_cut<ParserRules::sync_zeros>(bytes, from, end, isync);
    }
};

}  // namespace

Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out) {
    hold<InstructionMachine<flow::BatchWriter>>(config, code, out);
}
ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options)
    : HeldParallel(follow::make_parallel<ParallelInstructions>(config, code, table, sink, options)) {}

std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                              flow::BatchWriter& out) {
    return std::make_unique<follow::CuttingDecoder<ParallelInstructions>>(config, code, out);
}

}  // namespace waymark::etm3
