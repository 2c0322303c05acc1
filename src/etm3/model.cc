#include "waymark/etm3/model.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model_atoms.h"
#include "waymark/pft/model_clock.h"
#include "waymark/pft/model_fifo.h"
#include "waymark/pft/model_unit.h"
#include "waymark/pft/resources.h"

namespace waymark::etm3 {

namespace {

/// From a cleared Programming bit to the next change of registers.
class Session {
public:
    Session(const ModelConfig& config, ByteSink& trace)
        : registers_(config.registers),
          config_(config.packets()),
          choices_(config.choices),
          clock_(config_, choices_),
          fifo_(choices_, trace),
          atoms_(config_, choices_.header_cycles),
          resources_(registers_, pft::ModelChoices{}.start_and_stop) {}

    /// Continues a session that the Programming bit has stopped, with registers that were written since.
    void take_over(const Session& before) {
        here_ = before.here_;
        ns_ = before.ns_;
        hyp_ = before.hyp_;
        user_ = before.user_;
        in_debug_ = before.in_debug_;
        started_ = before.started_;
        prohibited_ = before.prohibited_;
        authentication_ = before.authentication_;
        context_id_ = before.context_id_;
        vmid_ = before.vmid_;
        frequency_changed_ = before.frequency_changed_;
        counts_ = before.counts_;
        clock_.take_over(before.clock_);
        resources_.take_signals(before.resources_);
    }

    // ---- execution

    void start(const Arrival& first) {
        programming_ = false;
        started_ = true;
        clock_.advance(first.cycle);
        clock_.count_from(first.cycle);
        arrive(first);
    }
    void instruction(const Executed& i) {
        if (Place{i.address, i.isa} != here_) discontinuity({{i.address, i.isa}, ns_, hyp_, i.cycle});
        advance(i.cycle);
        enabled_ = trace_enable(i.passed);
        if (begin()) {
            atoms_.add(i.passed, clock_.count(i.cycle));
            const bool moved = i.passed && !i.tail_chains && i.instruction.waypoint != isa::Waypoint::none &&
                               i.instruction.waypoint != isa::Waypoint::barrier;
            const bool changed = i.ns != sent_.ns || i.hyp != sent_.hyp || i.next.isa != base_.isa;
            const bool addressed =
                moved && (i.instruction.waypoint == isa::Waypoint::indirect || config_.branch_output || changed);
            const bool returns = moved && i.instruction.exception_return;
            if (addressed || returns) send_atoms();
            if (returns) put(ExceptionReturn{});
            // Nothing in a prohibited region is visible.
            if (addressed && !prohibited(i.ns)) branch(i.next, 0, i.ns, i.hyp, {});
            if (atoms_.full()) send_atoms();
            commit();
            if (returns) request_timestamp();
        }
        go(i.next, i.ns, i.hyp);
    }
    void exception(const ExceptionTaken& e) {
        advance(e.cycle);
        // The trace shows it with the instruction before it, or with the one that it cancels.
        if (e.cancels || !enabled_) enabled_ = trace_enable(true);
        if (begin()) {
            if (e.cancels) {
                // These outcomes are sent in a separate header, so that a decoder that cancels whole headers gives the
                // right result too.
                send_atoms();
                atoms_.add(true, clock_.count(e.cycle));
            }
            send_atoms(e.cancels ? 1 : 0);
            if (e.cancels_return) put(ExceptionReturn{});
            if (!prohibited(e.ns)) branch(e.vector, e.number, e.ns, e.hyp, e);
            ++group_exceptions_;
            commit();
            request_timestamp();
        }
        go(e.vector, e.ns, e.hyp);
    }
    void discontinuity(const Arrival& next) {
        flush();
        advance(next.cycle);
        stop(ISyncReason::trace_enabled);
        arrive(next);
    }
    void debug_entry(std::uint64_t cycle) {
        advance(cycle);
        if (!enabled_) enabled_ = trace_enable(true);
        if (begin()) {
            send_atoms();
            // Address and state have no meaning.
            ExceptionTaken debug;
            debug.number = 1;
            branch({{0}, Isa::a32}, debug.number, sent_.ns, sent_.hyp, debug);
            ++group_exceptions_;
            commit();
        }
        stop(ISyncReason::debug_exit);
        in_debug_ = true;
    }
    void debug_exit(const Arrival& restart) {
        advance(restart.cycle);
        in_debug_ = false;
        arrive(restart);
    }
    void wait(std::uint64_t cycle) {
        advance(cycle);
        flush();
        fifo_.flush();
    }

    // ---- changes that the trace shows from the next instruction on

    void set_context_id(std::uint32_t value) { context_id_ = value; }
    void set_vmid(std::uint8_t value) { vmid_ = value; }
    void set_user_mode(bool user) { user_ = user; }
    void set_authentication(const Authentication& signals) {
        authentication_ = signals;
        prohibition_changed();
    }
    template <class F>
    void signal(F&& change) {
        change(resources_);
        take_events();
    }
    void on_trigger(std::function<void()> called) { trigger_output_ = std::move(called); }
    void trigger() { trigger_due_ = true; }
    void clock_changed() {
        frequency_changed_ = true;
        request_timestamp();
    }
    void request_sync() { sync_due_ = true; }
    void flush() {
        send_atoms();
        commit();
    }
    void set_programming(bool set, std::uint64_t cycle) {
        if (set == programming_) return;
        if (!set && !started_) return start({here_, ns_, hyp_, cycle});
        advance(cycle);
        enabled_.reset();
        if (set) {
            flush();
            stop(ISyncReason::trace_enabled);
            fifo_.flush();
        } else {
            fifo_.reset();
            async_sent_ = triggered_ = trigger_due_ = false;
            whole_timestamp_ = true;
        }
        programming_ = set;
    }
    /// Power is lost: waiting packets are lost.
    void abandon() {
        counts_.untraced += atoms_.count();
        atoms_.clear();
        stop(ISyncReason::trace_enabled);
        enabled_.reset();
        programming_ = true;
        fifo_.flush();
    }
    [[nodiscard]] bool programming() const { return programming_; }
    /// Counters, sequencer, start/stop block and trigger.
    void read_back(Registers& registers) const {
        resources_.read_back(registers);
        registers.sr = status();
    }
    /// Time passes without execution.
    void pass(std::uint64_t cycle) { advance(cycle); }

    [[nodiscard]] std::uint64_t now() const { return clock_.now(); }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] pft::Etmsr status() const {
        pft::Etmsr s;
        s.triggered = triggered_;
        s.start_stop = resources_.start_stop();
        s.programming = programming_;
        s.overflow = restart_ == ISyncReason::overflow_restart;
        return s;
    }

private:
    void advance(std::uint64_t cycle) {
        const std::uint64_t passed = clock_.advance(cycle);
        fifo_.pass(passed);
        if (resources_.trivial() || programming_) return;
        resources_.advance(passed);
        take_events();
    }
    void arrive(const Arrival& a) {
        clock_.advance(a.cycle);
        enabled_.reset();
        go(a.place, a.ns, a.hyp);
    }
    void go(const Place& to, bool ns, bool hyp) {
        here_ = to;
        ns_ = ns;
        hyp_ = hyp;
        if (prohibited(ns_) != prohibited_) prohibition_changed();
        if (to.isa == Isa::jazelle && tracing_) {  // bytecodes are not traced by this model
            flush();
            stop(ISyncReason::trace_enabled);
        }
        if (to.isa == Isa::jazelle) enabled_.reset();
    }
    void stop(ISyncReason restart) {
        tracing_ = false;
        // The next I-sync reports the loss, even if tracing was off for another reason meanwhile.
        if (restart_ != ISyncReason::overflow_restart) restart_ = restart;
    }

    [[nodiscard]] bool prohibited(bool ns) const {
        return !authentication_.non_invasive || (!ns && !authentication_.secure_non_invasive);
    }
    void prohibition_changed() {
        prohibited_ = prohibited(ns_);
        resources_.prohibited(prohibited_, !authentication_.non_invasive);
        take_events();
        enabled_.reset();
        if (!prohibited_) return;
        flush();
        stop(ISyncReason::trace_enabled);
    }
    /// TraceEnable for the instruction at `here_`.
    bool trace_enable(bool passed) {
        if (programming_ || in_debug_ || prohibited_ || here_.isa == Isa::jazelle) return false;
        if (resources_.trivial()) return true;
        const std::uint64_t at = here_.address.value;
        const bool enabled = resources_.compare({at, at, ns_, hyp_, user_, false, context_id_, vmid_, passed});
        take_events();
        return enabled;
    }
    void take_events() {
        if (resources_.take_trigger() && !programming_) {
            if (tracing_) flush();
            if (trigger_output_) trigger_output_();
            triggered_ = trigger_due_ = true;
            // Elsewhere it follows the I-sync with which tracing begins.
            if (async_sent_ && !fifo_.draining()) {
                send_trigger();
                commit();
            }
        }
        if (resources_.take_timestamp()) request_timestamp();
    }
    [[nodiscard]] std::uint32_t shown_context_id() const {
        return config_.context_id_bytes == 1   ? context_id_ & 0xffU
               : config_.context_id_bytes == 2 ? context_id_ & 0xffffU
                                               : context_id_;
    }

    /// Sends the packets that must precede an instruction or exception; false if it is not traced.
    bool begin() {
        if (!*enabled_) {
            if (tracing_) {
                flush();
                stop(ISyncReason::trace_enabled);
            }
            // Reason 3 is only for the first instruction after Debug state.
            if (restart_ == ISyncReason::debug_exit && !in_debug_) restart_ = ISyncReason::trace_enabled;
            ++counts_.untraced;
            return false;
        }
        if (!fifo_.draining()) before();
        if (!fifo_.draining()) return true;
        ++counts_.lost;
        return false;
    }
    void before() {
        const bool periodic = registers_.syncfr.value != 0 && sync_bytes_ >= registers_.syncfr.value;
        if (!tracing_) {
            synchronise(restart_, !async_sent_ || sync_due_ || periodic);
            return;
        }
        const bool context = config_.context_id_bytes != 0 && shown_context_id() != sent_.context_id;
        const bool vmid = config_.vmid_trace && vmid_ != sent_.vmid;
        const bool sync = sync_due_ || periodic;
        if (!sync && !context && !vmid && !timestamp_due_ && !trigger_due_) return;
        send_atoms();
        // A periodic I-sync repeats known state.
        if (context) send_context_id();
        if (sync) return synchronise(ISyncReason::periodic, true);
        if (vmid) send_vmid();
        if (timestamp_due_) timestamp();
        send_trigger();
        commit();
    }
    /// Sends an I-sync, preceded by an A-sync if one is due.
    void synchronise(ISyncReason reason, bool async) {
        if (async) put(ASync{});
        ISyncCycles p;
        p.reason = reason;
        p.jazelle = here_.isa == Isa::jazelle;
        p.alt_isa = here_.isa == Isa::tee;
        p.address = static_cast<std::uint32_t>(here_.address.value) | (here_.isa == Isa::a32 ? 0U : 1U);
        p.ns = ns_;
        p.hyp = hyp_;
        p.context_id = shown_context_id();
        if (config_.cycle_accurate && reason != ISyncReason::periodic) {
            p.cycles = clock_.count(clock_.now(), true);
            put(p);
        } else {
            put(static_cast<const ISync&>(p));
        }
        if (config_.vmid_trace) send_vmid();
        // A whole timestamp, which decoders use to complete later ones.
        if (config_.timestamps && (async || whole_timestamp_)) {
            whole_timestamp_ = true;
            timestamp();
        }
        send_trigger();
        if (!commit()) return;
        if (async) {
            async_sent_ = true;
            sync_due_ = false;
            sync_bytes_ = 0;
        }
        tracing_ = true;
        restart_ = ISyncReason::trace_enabled;
        base_ = here_;
        sent_.ns = ns_;
        sent_.hyp = hyp_;
        sent_.context_id = p.context_id;
    }

    // ---- packets: a call's packets go into the FIFO together, or none does

    template <class P>
    void put(const P& packet) {
        encode(group_, packet, config_);
    }
    /// `cancelled`: number of instructions among them that did not complete.
    void send_atoms(unsigned cancelled = 0) {
        group_instructions_ += atoms_.count() - cancelled;
        atoms_.send(group_);
    }
    void branch(const Place& to, std::uint32_t exception, bool ns, bool hyp, const ExceptionTaken& e) {
        BranchAddress p;
        const bool information =
            exception != 0 || ns != sent_.ns || hyp != sent_.hyp || (to.isa == Isa::tee) != (base_.isa == Isa::tee);
        // In the original encoding only the fifth byte can announce information bytes.
        p.target = compress(to, base_, config_, !information ? 1U : config_.alternative_branches ? 2U : 5U);
        p.target.information = information;
        if (information) {
            p.alt_isa = to.isa == Isa::tee;
            p.cancelled = e.cancels || e.cancels_return;
            p.exception_3_0 = static_cast<std::uint8_t>(exception & 15U);
            p.ns = ns;
            const bool byte_1 = exception > 15 || hyp != sent_.hyp || hyp;
            p.more = byte_1 || e.resume != 0;
            if (byte_1) {
                p.second = static_cast<std::uint8_t>((hyp ? 0x20U : 0U) | (exception >> 4 & 0x1fU));
                p.second_more = e.resume != 0;
                p.third = e.resume;
            } else if (e.resume != 0) {
                p.second_is_resume = true;
                p.second = e.resume;
            }
        }
        put(p);
        base_ = to;
        sent_.ns = ns;
        sent_.hyp = hyp;
    }
    void send_context_id() {
        sent_.context_id = shown_context_id();
        put(ContextId{sent_.context_id});
    }
    void send_vmid() {
        put(Vmid{vmid_});
        sent_.vmid = vmid_;
    }
    void send_trigger() {
        if (std::exchange(trigger_due_, false)) put(Trigger{});
    }
    void request_timestamp() { timestamp_due_ = config_.timestamps; }
    void timestamp() {
        std::uint64_t value = clock_.ticks(clock_.now());
        if (config_.timestamp_bytes == 7) value &= (std::uint64_t{1} << 48) - 1;
        const std::uint64_t code = config_.gray_timestamps ? value ^ value >> 1 : value;
        put(Timestamp{pft::compress_timestamp(code, sent_.timestamp, whole_timestamp_, timestamp_config(config_)),
                      frequency_changed_});
        sent_.timestamp = code;
        timestamp_due_ = whole_timestamp_ = frequency_changed_ = false;
    }

    /// False: the group did not fit and is lost. Outcomes never wait while a group is open.
    bool commit() {
        if (group_.empty()) return true;
        const bool fits = fifo_.put(group_, 0);
        if (fits) {
            counts_.instructions += group_instructions_;
            counts_.exceptions += group_exceptions_;
            counts_.bytes += group_.size();
            sync_bytes_ += group_.size();
            clock_.counts_sent();
        } else {
            ++counts_.overflows;
            counts_.lost += group_instructions_ + group_exceptions_;
            clock_.take_back_counts();
            fifo_.drain();
            tracing_ = false;
            restart_ = ISyncReason::overflow_restart;
            whole_timestamp_ = true;
        }
        group_.clear();
        group_instructions_ = group_exceptions_ = 0;
        return fits;
    }

    const Registers registers_;
    const Config config_;
    const ModelChoices choices_;
    pft::ModelClock<Config, ModelChoices> clock_;
    pft::ModelFifo<ModelChoices> fifo_;
    ModelAtoms atoms_;
    pft::Resources resources_;
    ModelCounts counts_;

    // The state of the core at the beginning of the next instruction.
    Place here_;
    bool ns_ = false, hyp_ = false, user_ = false, in_debug_ = false, programming_ = true;
    bool started_ = false;  ///< the Programming bit was cleared at least once
    bool prohibited_ = false;
    Authentication authentication_;
    std::optional<bool> enabled_;  ///< TraceEnable for the last instruction; none since execution arrived
    std::uint32_t context_id_ = 0;
    std::uint8_t vmid_ = 0;

    // The state that the trace has shown, and the packets to send.
    struct Sent {
        bool ns = false, hyp = false;
        std::uint32_t context_id = 0;
        std::uint8_t vmid = 0;
        std::uint64_t timestamp = 0;
    } sent_;
    Place base_;  // address base: the last address sent
    bool tracing_ = false, async_sent_ = false, sync_due_ = false;
    bool timestamp_due_ = false, whole_timestamp_ = true, frequency_changed_ = false;
    bool trigger_due_ = false, triggered_ = false;
    std::function<void()> trigger_output_;
    ISyncReason restart_ = ISyncReason::trace_enabled;
    std::uint64_t sync_bytes_ = 0;  // since the last A-sync

    std::vector<std::uint8_t> group_;
    std::uint64_t group_instructions_ = 0, group_exceptions_ = 0;
};

}  // namespace

class Model::Unit : public pft::ModelUnit<Session, ModelConfig> {
    using ModelUnit::ModelUnit;
};

Model::Model(const ModelConfig& config, ByteSink& trace) : unit_(std::make_unique<Unit>(config, trace)) {}
Model::~Model() = default;
void Model::start(const Arrival& first) { unit_->start(first); }
void Model::instruction(const Executed& executed) { unit_->session().instruction(executed); }
void Model::exception(const ExceptionTaken& taken) { unit_->session().exception(taken); }
void Model::discontinuity(const Arrival& next) { unit_->session().discontinuity(next); }
void Model::debug_entry(std::uint64_t cycle) { unit_->session().debug_entry(cycle); }
void Model::debug_exit(const Arrival& restart) { unit_->session().debug_exit(restart); }
void Model::wait(std::uint64_t cycle) { unit_->session().wait(cycle); }
void Model::set_context_id(std::uint32_t value) { unit_->session().set_context_id(value); }
void Model::set_vmid(std::uint8_t value) { unit_->session().set_vmid(value); }
void Model::set_user_mode(bool user) { unit_->session().set_user_mode(user); }
void Model::set_authentication(const Authentication& signals) { unit_->session().set_authentication(signals); }
void Model::set_external_input(unsigned number, bool level) {
    unit_->session().signal([&](pft::Resources& r) { r.external(number, level); });
}
void Model::trigger() { unit_->session().trigger(); }
void Model::clock_changed() { unit_->session().clock_changed(); }
void Model::request_sync() { unit_->session().request_sync(); }
void Model::flush() { unit_->session().flush(); }
void Model::set_programming(bool set, std::uint64_t cycle) { unit_->set_programming(set, cycle); }
void Model::finish() { unit_->set_programming(true, unit_->session().now()); }
const ModelCounts& Model::counts() const { return unit_->session().counts(); }
pft::Etmsr Model::status() const { return unit_->session().status(); }
void Model::on_trigger(std::function<void()> called) { unit_->on_trigger(std::move(called)); }
AccessResult Model::write(unsigned number, std::uint32_t value, std::uint64_t cycle, Requester from) {
    return unit_->write(number, value, cycle, from);
}
ReadResult Model::read(unsigned number, std::uint64_t cycle, Requester from) {
    return unit_->read(number, cycle, from);
}
void Model::set_power(bool on, std::uint64_t cycle) { unit_->set_power(on, cycle); }
Registers Model::registers() const { return unit_->registers(); }

}  // namespace waymark::etm3
