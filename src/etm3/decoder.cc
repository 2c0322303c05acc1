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
#include "waymark/follow/elements.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/reference_follower.h"
#include "waymark/follow/time_order.h"

namespace waymark::etm3 {

namespace {

/// By header byte.
using OutcomeTable = std::array<Outcomes, 256>;
constexpr OutcomeTable outcome_table(bool cycle_accurate) {
    OutcomeTable all{};
    for (unsigned byte = 0; byte < all.size(); ++byte)
        all[byte] = outcomes_of(static_cast<std::uint8_t>(byte), cycle_accurate);
    return all;
}
constexpr std::array<OutcomeTable, 2> outcome_tables{outcome_table(false), outcome_table(true)};

/// What a decoder knows of its stream. The place of execution is the follower's.
struct InstructionMachineState {
    bool synced_ = false, async_seen_ = false;
    Offset async_end_{};
    LastState last_;
    bool executed_ = false;  ///< an instruction, since the last packet with an address
    /// The last outcome of a P-header, and the exception return packet behind it, wait until the next packet that
    /// could cancel them.
    bool atom_held_ = false, atom_e_ = false, return_held_ = false;
    std::uint32_t atom_cycles_ = flow::no_cycles;
    Offset atom_at_{}, return_at_{};
    TimestampState timestamps_;
    follow::TimeOrder times_;
};

struct NothingCarried {};
struct NoCut : LastState {
    void carry(NothingCarried) {}
};

template <class Follower, class Out>
class InstructionMachine : private InstructionMachineState {
public:
    InstructionMachine(const Config& config, const isa::CodeReader& code, Out& out,
                       std::shared_ptr<follow::BlockLogs> logs = {})
        : config_(config),
          outcomes_(outcome_tables[config.cycle_accurate ? 1 : 0]),
          time_config_(timestamp_config(config)),
          out_(out),
          elements_(out),
          follower_(make_follower(code, std::move(logs))),
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
    void operator()(const ISync& p, Extent at) { isync(p, flow::no_cycles, at); }
    void operator()(const ISyncCycles& p, Extent at) { isync(p, std::min(p.cycles, flow::no_cycles - 1), at); }
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
    void operator()(const BranchAddress& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        // On a Cortex-M, what is cancelled behind an exception return packet is the return, not the instruction.
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
        commit();
        const flow::Timestamp now{timestamps_.value(time_config_),
                                  timestamps_.known() && timestamps_.transmitted() != 0, p.frequency_changed};
        if (const auto before = times_.take(now))
            elements_.event(at.first, flow::Inconsistency{flow::Conflict::time_goes_back, {*before}, {now.value}});
        elements_.event(at.first, now);
    }
    void operator()(const CycleCount& p, Extent at) { event(at, flow::Cycles{.cycles = p.cycles}); }
    void operator()(const Trigger&, Extent at) { event(at, flow::Trigger{}); }
    /// Data packets come between an instruction and what cancels it, and say nothing of flow.
    void operator()(const auto&, Extent) { ++packets_; }

    // ---- for follow::Parallel, which is given no place to cut

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
    }
    using Carried = NothingCarried;
    void begin_at(Offset at, const NoCut&) { parser_.resume_at(at); }
    [[nodiscard]] static bool continues(const Snapshot&, Offset, const NoCut&) { return false; }
    [[nodiscard]] static Carried carried(const Snapshot&) { return {}; }
    struct Late {};
    [[nodiscard]] Late late() const { return {}; }
    [[nodiscard]] static bool late_contradicts(const Config&, const Snapshot&, const Late&) { return false; }
    static void complete_late(const Config&, const Snapshot&, const Late&, const follow::Batches&, Snapshot&) {}

private:
    [[nodiscard]] Follower make_follower(const isa::CodeReader& code, std::shared_ptr<follow::BlockLogs> logs) {
        const follow::Rules rules{.walk = {{}, config_.max_walk_bytes, true},
                                  .indirect = follow::Rules::Indirect::waits};
        if constexpr (std::is_same_v<Follower, follow::ReferenceFollower>)
            return Follower(rules, code, elements_);
        else
            return Follower(rules, code, elements_, std::move(logs));
    }

    void event(Extent at, flow::What what) {
        ++packets_;
        if (!synced_) return;
        commit();
        elements_.event(at.first, std::move(what));
    }

    /// What was held back was not cancelled.
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

    void isync(const ISync& p, std::uint32_t cycles, Extent at) {
        ++packets_;
        commit();
        if (!synced_ && async_end_ < at.first)
            elements_.event(at.first, Gap{async_end_, at.first, GapReason::unsynchronised});
        const LastState to = isync_state(p, last_.vmid, config_);
        if (!synced_ || p.reason != ISyncReason::periodic) {
            constexpr flow::TraceOnReason reasons[] = {flow::TraceOnReason::begin, flow::TraceOnReason::enabled,
                                                       flow::TraceOnReason::overflow,
                                                       flow::TraceOnReason::debug_restart};
            elements_.event(at.first, flow::TraceOn{reasons[static_cast<unsigned>(p.reason)], cycles});
        } else {
            if (!config_.data_only) follower_.confirm(to.place(), to.context(), at.first);
            if (cycles != flow::no_cycles && cycles != 0) elements_.event(at.first, flow::Cycles{.cycles = cycles});
        }
        synced_ = true;
        async_seen_ = false;
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

    /// As before the first byte: nothing is known of the core.
    void forget(Offset at) {
        commit();
        if (!synced_ && async_seen_ && async_end_ < at)
            elements_.event(at, Gap{async_end_, at, GapReason::unsynchronised});
        InstructionMachineState::operator=({});
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
};

template <class Out>
using FastMachine = InstructionMachine<follow::Follower<Out>, Out>;

struct ParallelInstructions {
    using Config = etm3::Config;
    struct Cut {
        using State = NoCut;
        std::size_t at{};
        State state;
    };
    template <class Out>
    using Decoder = FastMachine<Out>;
    static std::optional<Cut> find_cut(Bytes, std::size_t, std::size_t, const Config&) { return {}; }
};

}  // namespace

Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out) {
    hold<FastMachine<flow::BatchWriter>>(config, code, out);
}
ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options)
    : HeldParallel(follow::make_parallel<ParallelInstructions>(config, code, table, sink, options)) {}

}  // namespace waymark::etm3
