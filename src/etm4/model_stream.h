/// The packets of a session: P0 elements, and the packets before and after each (docs/spec/etm4-registers.md, 2.12 and
/// 2.13).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "model_packets.h"
#include "model_resources.h"
#include "waymark/core/wire.h"

namespace waymark::etm4 {

/// State that continues while the unit is disabled, from one session to the next.
struct ModelCore {
    isa::Place start{}, position{};  ///< start of the block; place of the next instruction
    flow::Context context{}, new_context{};
    bool in_debug = false, in_transaction = false;
    std::uint64_t now = 0;
    ModelCounts counts{};
    std::uint32_t inputs = 0;  ///< external inputs that are asserted
    wire::Random random{0};
};

class ModelStream : protected ModelPackets {
    using Waypoint = isa::Waypoint;

protected:
    ModelStream(const ModelConfig& config, ByteSink& trace, const ModelCore& core)
        : ModelPackets(config, trace),
          resources_(config.registers),
          victlr_(config.registers.victlr),
          bbctlr_(config.registers.bbctlr),
          qctlr_(config.registers.qctlr),
          q_filtered_(config.registers.idr0.qfilt),
          sync_period_(config.registers.syncpr.period == 0 ? 0 : std::uint64_t{1} << config.registers.syncpr.period),
          random_(core.random),
          q_(config_.q_elements && !config_.branch_broadcast && choices_.q_one_in != 0),
          mispredicts_(config_.max_speculation >= 2 && choices_.mispredict_one_in != 0) {
        const std::uint32_t half = std::max(config_.max_speculation / 2, 1U);
        commit_after_ = choices_.commit_after == 0 ? half : choices_.commit_after;
        start_ = core.start;
        position_ = core.position;
        context_ = core.context;
        new_context_ = core.new_context;
        in_debug_ = core.in_debug;
        in_transaction_ = core.in_transaction;
        now_ = core.now;
        counts_ = core.counts;
        for (unsigned n = 0; n < 4; ++n) resources_.external_input(n, (core.inputs >> n & 1U) != 0);
    }

    // ---- place of execution

    void advance(std::uint64_t cycle) {
        if (cycle <= now_) return;
        drain(cycle - now_);
        if (enabled_ && !resources_.trivial()) {
            resources_.advance(cycle - now_);
            take_events();
        }
        now_ = cycle;
    }
    void go_on(const isa::Place& next) {
        start_ = position_ = next;
        context_ = new_context_;
    }
    [[nodiscard]] unsigned step() const { return start_.isa == isa::Isa::t32 ? 2 : 4; }
    /// ViewInst for the code since the last P0 element, up to and including the instruction at `last`.
    [[nodiscard]] bool view(Address last) {
        if (prohibited(context_)) return false;
        if (resources_.trivial()) return true;
        return enabled_ && !in_debug_ && resources_.view({start_.address, last, step(), context_});
    }
    /// 2.18: whether the authentication interface forbids tracing here.
    [[nodiscard]] bool prohibited(const flow::Context& context) const {
        if (permission_ == flow::TracePermission{}) return false;
        if (context.security() == flow::Security::non_secure) return !permission_.non_secure && !config_.ete();
        return !permission_.secure;
    }
    /// Events are sent also while ViewInst is inactive (2.17).
    void take_events() {
        if (resources_.take_bus_trigger() && trigger_output_) trigger_output_();
        events_due_ |= resources_.take_events();
        if (config_.timestamps && resources_.take_timestamp()) timestamp_due_ = true;
        if (events_due_ == 0 || (overflowing() && !empty())) return;
        begin_stream();
        Event p;
        p.events = std::exchange(events_due_, std::uint8_t{0});
        send(p);
    }
    /// 2.18: whether a taken direct branch here is broadcast.
    [[nodiscard]] bool broadcasts(Address branch) const {
        if (!config_.branch_broadcast) return false;
        if (bbctlr_.range == 0) return !bbctlr_.mode;
        return resources_.in_range(branch, context_, bbctlr_.range) == bbctlr_.mode;
    }
    /// 2.18: whether a Q element may contain the block: one instruction where Q elements are permitted is enough.
    [[nodiscard]] bool permits_q(Address last) const {
        if (!q_filtered_ || (qctlr_.range == 0 && !qctlr_.mode)) return true;
        for (Address at = start_.address; at <= last; at = at + step())
            if (resources_.in_range(at, context_, qctlr_.range) == qctlr_.mode) return true;
        return false;
    }
    /// The next instruction does not follow from the trace.
    void stop() { tracing_ = false; }

    // ---- packets before a P0 element

    /// For an exception or block that began at `from` and is traced if `view`: first sends the packets that readers
    /// need before it. Returns false if it is not traced, or lost. `at_target`: an exception, which may contain that
    /// address itself.
    bool begin_element(bool view, const isa::Place& from, const ExceptionTaken* at_target = nullptr) {
        if (!enabled_ || in_debug_ || !view) {
            stop();
            ++counts_.untraced;
            return false;
        }
        if (!overflowing() || empty()) {
            begin_stream();
            if (!tracing_) {
                send_trace_on();
                tracing_ = true;
            }
            const ContextFields context = fields_of(context_, from.isa);
            folded_ = at_target != nullptr && folds(*at_target, from, context);
            if (!folded_) send_place(from, context);
            if (in_transaction_ && !shown_transaction_) show_transaction();
        }
        if (!overflowing()) return true;
        ++counts_.overflowed;
        tracing_ = false;
        return false;
    }
    /// Whether the address of an exception is also the target of the indirect branch before it (docs/spec/etm4.md, 9).
    [[nodiscard]] bool folds(const ExceptionTaken& e, const isa::Place& from, const ContextFields& context) const {
        return choices_.folds_exception_address && address_due_ == AddressDue::branch_target && position_ == from &&
               (!e.back || *e.back == from) && e.type != exceptions::pe_reset && context_known(context);
    }
    /// Non-periodic synchronisation (2.13): at the beginning, and after an overflow.
    void begin_stream() {
        if (overflowing()) {
            recover();
            forget_sent();
            synchronised_ = tracing_ = false;
            shown_transaction_ = false;
        }
        // A periodic synchronisation is sent with the next Trace On if nothing is traced meanwhile.
        if (synchronised_ && (tracing_ || !sync_due())) return;
        send_sync(shown_transaction_);
        synchronised_ = true;
        sync_requested_ = false;
    }
    void show_transaction() {
        shown_transaction_ = true;
        send(TransactionStart{}, config_.transaction_start_p0 ? 1 : 0);
    }

    // ---- P0 elements

    /// 2.13, step 6, and its effect on the next address.
    void p0_instruction(const Retired& w, const isa::Place& after) {
        const isa::Instruction& i = w.instruction;
        const bool broadcast = i.waypoint == Waypoint::direct && w.passed && broadcasts(w.address);
        popped_ = false;
        // A Q element would not show the outcome of a branch to the next instruction.
        const bool hides_outcome = i.conditional && i.waypoint == Waypoint::direct && i.target == after.address;
        if (q_ && !hides_outcome && !i.exception_return && !i.transaction_start && w.isa != isa::Isa::t32 &&
            permits_q(w.address) && one_in(choices_.q_one_in)) {
            const auto instructions = static_cast<std::uint32_t>((after.address - start_.address) / 4);
            if (!send_q(w.passed ? w.next : after, instructions)) return lose_element();
            address_due_ = AddressDue::no;
            return;
        }
        if (!outcome(w)) return;
        if (w.passed && i.link) push(after);
        if (i.waypoint == Waypoint::indirect && w.passed) {
            popped_ = !i.exception_return && matches(w.next);
            if (!popped_) address_due_ = AddressDue::branch_target;
        } else if (broadcast) {
            address_due_ = AddressDue::always;
        }
        const bool returned = i.exception_return && w.passed;
        if (returned && !config_.ete()) send_exception_return();
        const bool barrier = i.waypoint == Waypoint::barrier && w.passed && !i.wait && !i.transaction_start;
        if (config_.timestamps && (returned || barrier)) timestamp_due_ = true;
    }
    /// Beside a core of the M profile it is a P0 element of its own (docs/spec/etm4.md, 9).
    void send_exception_return() {
        if (config_.profile != CoreProfile::m) {
            send(ExceptionReturn{});
        } else if (send(ExceptionReturn{}, 1)) {
            ++counts_.p0;
        }
    }
    /// Sends E or N, or an address in place of E. Returns false if it is lost.
    bool outcome(const Retired& w) {
        if (mispredicts_ && w.instruction.conditional && w.instruction.waypoint == Waypoint::direct &&
            !w.instruction.link && one_in(choices_.mispredict_one_in))
            return mispredicted(w);
        if (w.passed && choices_.source_address_after && config_.ete() && only_n_atoms() &&
            atom_count_ >= *choices_.source_address_after) {
            const std::uint64_t merged = atom_count_;
            drop_atoms();
            if (send_source({w.address, w.isa})) return true;
            counts_.p0 -= merged;
            counts_.overflowed += merged;
            lose_element();
            return false;
        }
        add_atom(w.passed);
        return true;
    }
    /// Whether the core mispredicted this branch (2.16; docs/spec/etm4.md, 8).
    bool mispredicted(const Retired& w) {
        flush_atoms();
        const std::uint32_t most = std::min(config_.max_speculation - 1, 6U);
        const auto wrong = static_cast<std::uint32_t>(random_() % (most + 1));
        // The stream must not implicitly commit the branch and the code after it.
        if (depth() + 1 + wrong > config_.max_speculation) commit_all();
        if (wrong == 0 && one_in(2)) {
            // The packet itself contains the atom.
            if (send(Mispredict{static_cast<std::uint8_t>(w.passed ? 3 : 1)}, 1)) return true;
            lose_element();
            return false;
        }
        // The group is lost or sent as a whole: a wrong outcome must not remain alone.
        begin_group();
        send(Atom{{1, w.passed ? 0U : 1U}}, 1);
        const std::uint32_t commits = choices_.mispredict_committed && one_in(2) ? depth() + 1 : 0;
        const bool at_once = commits != 0 && one_in(2);
        if (at_once) send(Commit{commits});
        if (!w.passed && broadcasts(w.address)) send_address({w.instruction.target, w.instruction.target_isa}, {});
        for (std::uint32_t n = 0; n < wrong; ++n) {
            send(Atom{{1, one_in(2) ? 1U : 0U}}, 1);
            if (one_in(4)) send_address({w.instruction.target, w.instruction.target_isa}, {});
        }
        if (commits != 0 && !at_once) send(Commit{commits});
        if (wrong == 0) {
            send(Mispredict{0});
        } else if (wrong == 1 && one_in(2)) {
            send(CancelF2{0});
        } else if (wrong >= 2 && wrong <= 5 && one_in(2)) {
            send(CancelF3{static_cast<std::uint8_t>(wrong - 2), false});
        } else if (one_in(2)) {
            send(CancelF1{wrong, true});
        } else {
            send(CancelF1{wrong, false});
            send(Mispredict{0});
        }
        if (!end_group()) {
            lose_element();
            return false;
        }
        counts_.cancelled += wrong;
        committed(commits);
        cancelled(wrong);
        return true;
    }
    void send_exception(const ExceptionTaken& e, bool reset) {
        Exception p;
        p.type_4_0 = e.type & 0x1fU;
        p.type_9_5 = static_cast<std::uint8_t>(e.type >> 5 & 0x1fU);
        p.more = p.type_9_5 != 0;
        p.e1 = folded_;
        p.e0 = !folded_;
        popped_ = false;
        begin_group();
        if (reset && config_.ete()) {
            send(p, 1);
        } else {
            send(p);
            // After a reset it is not known how far execution came (2.13: unknown).
            send_address(reset ? start_ : e.back.value_or(position_), nullptr, 1);
        }
        if (!end_group()) {
            ++counts_.overflowed;
            tracing_ = false;
            return;
        }
        ++counts_.p0;
        if (config_.timestamps) timestamp_due_ = true;
        end_element();
    }
    void lose_element() {
        --counts_.p0;
        ++counts_.overflowed;
        tracing_ = false;
    }
    /// 2.13, step 7.
    void end_element() {
        if (config_.max_speculation != 0 ? depth() + atom_count_ >= commit_after_ : config_.cycle_counting)
            commit(now_);
        unstamped_ = now_;
        if (timestamp_due_ && (send_timestamp(now_), !timestamp_due_)) unstamped_.reset();
        if (overflowing()) tracing_ = false;
        unsettled_ = true;
    }

    // ---- after a P0 element: sent when the next event comes

    [[nodiscard]] bool sync_due() const {
        return sync_requested_ || (sync_period_ != 0 && sync_bytes_ >= sync_period_);
    }
    void settle() {
        if (!std::exchange(unsettled_, false)) return;
        if (!enabled_ || !tracing_ || overflowing() || !sync_due()) return;
        sync_requested_ = false;
        popped_ = false;
        send_sync(shown_transaction_);
        send_place(start_, fields_of(context_, start_.isa));
        if (overflowing()) tracing_ = false;
    }
    [[nodiscard]] bool one_in(std::uint32_t n) { return random_() % n == 0; }

    // The programming.
    ModelResources resources_;
    const Trcvictlr victlr_;
    const Trcbbctlr bbctlr_;
    const Trcqctlr qctlr_;
    const bool q_filtered_;
    const std::uint64_t sync_period_;
    wire::Random random_;
    const bool q_, mispredicts_;
    std::uint32_t commit_after_ = 1;

    // The core.
    isa::Place start_{}, position_{};  // start of the block; place of the next instruction
    flow::Context context_, new_context_;
    bool in_debug_ = false, in_transaction_ = false;
    std::uint64_t now_ = 0;
    std::optional<std::uint64_t> unstamped_;  ///< the cycle of the last P0 element, if no timestamp came since

    // Packets to be sent.
    std::function<void()> trigger_output_;
    flow::TracePermission permission_;
    std::uint8_t events_due_ = 0;
    bool enabled_ = false, tracing_ = false, synchronised_ = false;
    bool active_ = false;  ///< the last instruction or exception was traced (TRCRSR.TA)
    bool sync_requested_ = false, unsettled_ = false, folded_ = false;
    bool popped_ = false;             // readers find the place after the last P0 element by the return stack
    bool shown_transaction_ = false;  // its start is in the trace
};

}  // namespace waymark::etm4
