/// One trace session of the model, from a cleared Programming bit to the next change of registers: the executed code,
/// and the part that is traced (docs/spec/pft.md, 5.3 and 5.5). The base classes decide which packets are sent and
/// where they go.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "model_blocks.h"
#include "waymark/pft/resources.h"

namespace waymark::pft {

class ModelSession final : ModelBlocks {
    using Waypoint = isa::Waypoint;

public:
    ModelSession(const ModelConfig& config, ByteSink& trace)
        : ModelBlocks(config, trace), resources_(config.registers, config.choices.start_and_stop) {
        ordinary_config_ = !config_.vmid_trace && choices_.fifo_bytes == 0 && resources_.trivial();
    }

    /// Continues a session that the Programming bit has stopped, with registers that were written since.
    void take_over(const ModelSession& before) {
        start_ = before.start_;
        position_ = before.position_;
        last_ = before.last_;
        ns_ = before.ns_;
        hyp_ = before.hyp_;
        user_ = before.user_;
        in_debug_ = before.in_debug_;
        started_ = before.started_;
        prohibited_ = before.prohibited_;
        authentication_ = before.authentication_;
        whole_context_id_ = before.whole_context_id_;
        context_id_ = new_context_id_ = shown_context_id(whole_context_id_);
        vmid_ = before.vmid_;
        new_vmid_ = before.new_vmid_;
        last_cycle_ = before.last_cycle_;
        last_ticks_ = before.last_ticks_;
        frequency_changed_ = before.frequency_changed_;
        counts_ = before.counts_;
        clock_.take_over(before.clock_);
        resources_.take_signals(before.resources_);
    }

    void on_trigger(std::function<void()> called) { trigger_output_ = std::move(called); }

    // ---- execution; each function first sends what the previous waypoint left to be sent

    void start(const Arrival& first) {
        programming_ = false;
        started_ = true;
        clock_.count_from(first.cycle);
        arrive(first);
        forget_sent();
    }

    void retire(const Retired& i) {
        ++counts_.instructions;
        if (i.address != position_.address || i.isa != position_.isa) [[unlikely]]
            return_from_elsewhere({i.address, i.isa});
        if (i.instruction.waypoint != Waypoint::none) return waypoint(i);
        settle();
        advance(i.cycle);
        executed({i.address, i.isa}, i.instruction.bytes);
        if (i.dmb_dsb) barrier_timestamp();
        if (state_of(i.ns, i.hyp) != State{ns_, hyp_}) change_state(i.ns, i.hyp);
    }

    void run(std::uint32_t bytes, std::uint8_t last_bytes, std::uint64_t cycle) {
        if (bytes == 0) return;
        ++counts_.instructions;
        settle();
        advance(cycle);
        executed({position_.address + (bytes - last_bytes), position_.isa}, last_bytes);
    }

    void retire_block(const Retired& w, std::uint8_t bytes_before) {
        counts_.instructions += 2;
        if (w.isa != position_.isa || w.address < position_.address) [[unlikely]]
            return_from_elsewhere({w.address, w.isa});
        if (bytes_before != 0 && w.address != position_.address)
            executed({w.address - bytes_before, w.isa}, bytes_before);
        waypoint(w);
    }

    std::size_t retire_blocks(std::span<const RetiredBlock> blocks, bool ns, bool hyp) {
        const std::uint64_t overflowed = counts_.overflowed;
        std::size_t taken = 0;
        while (taken < blocks.size() && counts_.overflowed == overflowed) {
            if (ordinary(ns, hyp)) taken += retire_ordinary(blocks.subspan(taken));
            if (taken == blocks.size()) break;
            const RetiredBlock& b = blocks[taken++];
            Retired w;
            w.address = b.address;
            w.isa = b.isa;
            w.instruction = *b.instruction;
            w.passed = b.passed;
            w.next = {b.next, b.next_isa};
            w.ns = ns;
            w.hyp = hyp;
            w.cycle = b.cycle;
            retire_block(w, b.bytes_before);
        }
        return taken;
    }

    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> prepare(const Place& from, std::uint64_t cycle,
                                                                  std::span<const RetiredBlock> blocks) const {
        return ordinary_config_ ? plain_sequence(from, cycle, blocks) : nullptr;
    }
    std::size_t retire_sequences(std::span<const flow::RetiredSequence> sequences, bool ns, bool hyp) {
        if (!ordinary(ns, hyp)) return 0;
        const auto [taken, blocks] = plain_sequences(sequences, start_, registers_.syncfr.value);
        if (taken != 0) retired_ordinary(blocks, sequences[taken - 1].cycle);
        return taken;
    }

    /// 5.3, "Waypoint instruction"; the numbers are its rules.
    void waypoint(const Retired& w) {
        settle();
        advance(w.cycle);
        const auto [ns, hyp] = state_of(w.ns, w.hyp);
        const bool to_prohibited = prohibited(ns);
        const Place behind{{(w.address.value + w.instruction.bytes) & 0xffffffffU}, w.isa};
        if (begin_block(w.address)) {  // 1, 2
            begin_group();
            large_block_update(w);  // 3
            const bool shown_ns = sent_.ns;
            bool shown = true;
            if (w.passed && to_prohibited) {
                shown = hidden_branch(exceptions::none, w.cycle);
            } else if (w.passed && needs_packet(w, ns, hyp)) {  // 4
                flush_atoms();
                branch(w.next, exceptions::none, ns, hyp, clock_.count(w.cycle));
            } else {
                atom(w.passed, clock_.count(w.cycle));
            }
            // Rule 5: the pop came first. If a change of security state by MCR or MSR waits to be reported, an entry
            // would have a state that the trace does not show, so it never matches.
            if (w.passed && w.instruction.link) stack_.push({behind, shown_ns, shown_ns == ns});
            const bool returned = w.passed && w.instruction.exception_return && config_.minor_version >= 1 && shown;
            if (returned) send(ExceptionReturn{});  // 6
            const bool traced = end_group();
            if (atoms_.count == 5) flush_atoms();
            if (traced && w.passed && w.instruction.waypoint == Waypoint::barrier) {
                if (w.dmb_dsb)
                    barrier_timestamp();
                else
                    request_timestamp();  // ISB
            }
            if (traced && returned && !registers_.auxcr.no_exception_timestamps) request_timestamp();
        }
        go_on(w.passed ? w.next : behind, ns, hyp, w.cycle);  // 7, 8
    }

    /// 5.3, "Exception".
    void exception(const ExceptionTaken& e) {
        settle();
        advance(e.cycle);
        if (e.raised_by) executed(*e.raised_by, e.raised_by_bytes);
        const auto [ns, hyp] = state_of(e.ns, e.hyp);
        if (begin_block(last_ ? last_->address : start_.address)) {
            const bool hidden = prohibited(ns);
            begin_group();
            flush_atoms();
            const bool updates = last_ && e.number != exceptions::reset &&
                                 (e.number != exceptions::hyp_entry || choices_.hyp_entry_updates);  // OQ14
            if (updates) update(*last_);
            const bool handler = choices_.exception_state == ModelChoices::ExceptionState::handler;  // OQ17
            if (hidden)
                hidden_branch(e.number, e.cycle);
            else
                branch(e.vector, e.number, handler ? ns : sent_.ns, handler ? hyp : sent_.hyp, clock_.count(e.cycle));
            if (end_group() && !registers_.auxcr.no_exception_timestamps) request_timestamp();
        }
        go_on(e.vector, ns, hyp, e.cycle);
    }

    void discontinuity(const Arrival& next) {
        settle();
        flush_atoms();
        advance(next.cycle);
        stop(ISyncReason::trace_enabled);
        arrive(next);
    }

    /// 5.3, "Debug entry": like an exception, but address and state in its packet have no meaning.
    void debug_entry(std::uint64_t cycle) {
        settle();
        advance(cycle);
        if (begin_block(last_ ? last_->address : start_.address)) {
            begin_group();
            flush_atoms();
            if (last_) update(*last_);
            branch({{0}, Isa::a32}, exceptions::debug_entry, sent_.ns, sent_.hyp, clock_.count(cycle), 5);
            end_group();
        }
        last_cycle_ = cycle;
        stop(ISyncReason::debug_exit);
        in_debug_ = true;
    }

    void debug_exit(const Arrival& restart) {
        advance(restart.cycle);
        in_debug_ = false;
        // The count of its I-sync ends at the debug entry, the most recent waypoint.
        const std::uint64_t entry = last_cycle_;
        arrive(restart);
        last_cycle_ = entry;
        stop(ISyncReason::debug_exit);
    }

    /// 1.1: WFI and WFE send pending atoms and empty the FIFO.
    void wait(std::uint64_t cycle) {
        settle();
        advance(cycle);
        flush_atoms();
        fifo_.flush();
    }

    // A block runs in the context with which it began; changes inside it apply from the next waypoint on (4.8).
    void set_context_id(std::uint32_t value) {
        new_context_id_ = shown_context_id(value);
        whole_context_id_ = value;
        if (last_) return;
        context_id_ = new_context_id_;
        unsettled_ = true;
    }
    void set_vmid(std::uint8_t value) {
        new_vmid_ = value;
        if (last_) return;
        vmid_ = new_vmid_;
        unsettled_ = true;
    }
    void set_user_mode(bool user) { user_ = user; }

    // ---- signals

    void set_authentication(const Authentication& signals) {
        authentication_ = signals;
        prohibition_changed();
    }
    void set_timestamp(std::uint64_t ticks) { clock_.set_ticks(ticks); }
    void clock_changed() {
        frequency_changed_ = true;
        request_timestamp();
    }
    void request_sync() {
        if (programming_) return;
        const bool unfinished = isync_pending_ || sync_requested_;
        sync_requested_ = unsettled_ = true;
        if (tracing_ && unfinished && !registers_.auxcr.no_forced_overflow) forced_overflow();
    }
    void flush() {
        settle();
        flush_atoms();
    }
    void set_programming(bool set, std::uint64_t cycle) {
        if (set == programming_) return;
        if (!set) {
            if (!started_) return start({position_, ns_, hyp_, cycle});
            advance(cycle);
            programming_ = false;
            forget_sent();
            begin_at(position_);
            last_cycle_ = cycle;
            return;
        }
        // Tracing stops at once, even between waypoints; the code since the last waypoint is lost.
        settle();
        advance(cycle);
        flush_atoms();
        stop(ISyncReason::trace_enabled);
        programming_ = true;
        fifo_.flush();
    }

    template <class F>
    void signal(F&& change) {
        change(resources_);
        take_events();
    }

    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] bool tracing() const { return tracing_; }
    [[nodiscard]] bool external_output(unsigned number) const { return resources_.external_output(number); }
    [[nodiscard]] Etmsr status() const {
        Etmsr s;
        s.triggered = triggered_;
        s.start_stop = resources_.start_stop();
        s.programming = programming_;
        s.overflow = restart_ == ISyncReason::overflow_restart;
        return s;
    }
    [[nodiscard]] std::uint64_t now() const { return clock_.now(); }

    /// Power is lost: waiting packets are lost.
    void abandon() {
        counts_.waypoints -= atoms_.count;
        counts_.untraced += atoms_.count;
        atoms_ = {0, 0};
        stop(ISyncReason::trace_enabled);
        programming_ = true;
        fifo_.flush();
    }
    [[nodiscard]] bool programming() const { return programming_; }
    /// Stores the present state of counters, sequencer, start/stop block and trigger.
    void read_back(Registers& registers) const {
        resources_.read_back(registers);
        registers.sr = status();
    }
    /// Time passes without execution.
    void pass(std::uint64_t cycle) { advance(cycle); }

private:
    struct State {
        bool ns, hyp;
        friend bool operator==(const State&, const State&) = default;
    };
    /// Without Security Extensions a macrocell traces as if it were always Secure (3); only v1.1 has Hyp.
    [[nodiscard]] State state_of(bool ns, bool hyp) const {
        return {ns && registers_.idr.security != 0, hyp && config_.minor_version >= 1};
    }

    [[nodiscard]] std::uint32_t shown_context_id(std::uint32_t value) const {
        return config_.context_id_bytes == 1 ? value & 0xffU : config_.context_id_bytes == 2 ? value & 0xffffU : value;
    }

    // ---- time

    void advance(std::uint64_t cycle) {
        const std::uint64_t passed = clock_.advance(cycle);
        fifo_.pass(passed);
        if (!resources_.trivial() && !programming_) {
            resources_.advance(passed);
            take_events();
        }
    }

    // ---- place of execution

    void executed(const Place& place, std::uint8_t bytes) {
        last_ = place;
        position_ = {{(place.address.value + bytes) & 0xffffffffU}, place.isa};
    }
    void begin_at(const Place& place) {
        start_ = position_ = place;
        last_.reset();
        context_id_ = new_context_id_;
        vmid_ = new_vmid_;
        unsettled_ = true;
    }
    void go_on(const Place& next, bool ns, bool hyp, std::uint64_t cycle) {
        ns_ = ns;
        hyp_ = hyp;
        last_cycle_ = cycle;
        if (config_.timestamps) last_ticks_ = clock_.ticks(cycle);
        begin_at(next);
        if (prohibited(ns_) != prohibited_) [[unlikely]]
            prohibition_changed();
        if (next.isa == Isa::jazelle) [[unlikely]]
            stop(ISyncReason::trace_enabled);  // bytecodes are never traced
    }
    void arrive(const Arrival& a) {
        const auto [ns, hyp] = state_of(a.ns, a.hyp);
        clock_.advance(a.cycle);
        go_on(a.place, ns, hyp, a.cycle);
    }
    /// Execution is at another place than expected: it moved untraced.
    void return_from_elsewhere(const Place& place) { discontinuity({place, ns_, hyp_, clock_.now()}); }
    /// The state changes by MCR or MSR inside a block: the next taken branch or exception shows it (4.8).
    void change_state(bool ns, bool hyp) {
        const State state = state_of(ns, hyp);
        ns_ = state.ns;
        hyp_ = state.hyp;
        if (prohibited(ns_) != prohibited_) prohibition_changed();
    }

    [[nodiscard]] bool prohibited(bool ns) const {
        return !authentication_.non_invasive || (!ns && !authentication_.secure_non_invasive);
    }
    /// 5.3, "Prohibited region". If an exception or branch entered it, its packet was sent already.
    void prohibition_changed() {
        prohibited_ = prohibited(ns_);
        resources_.prohibited(prohibited_, !authentication_.non_invasive);
        take_events();
        if (prohibited_) {
            flush_atoms();
            stop(ISyncReason::trace_enabled);
        } else if (last_) {
            begin_at(position_);  // its I-sync names the first instruction that may be visible
        }
    }

    // ---- many blocks at once: the same result as waypoint() where only atoms and plain branch packets are possible,
    // with cycle counts if there are any

    /// Whether tracing is on, execution is at the start of a block, and nothing is pending or different from the sent
    /// state.
    [[nodiscard]] bool ordinary(bool ns, bool hyp) const {
        if (!ordinary_config_ || !tracing_ || programming_ || in_debug_ || prohibited_ || last_) return false;
        if (isync_pending_ || sync_requested_ || vmid_pending_ || timestamp_pending_ || trigger_pending_) return false;
        if (state_of(ns, hyp) != State{ns_, hyp_} || ns_ != sent_.ns || hyp_ != sent_.hyp || prohibited(ns_))
            return false;
        if (new_context_id_ != context_id_ || new_vmid_ != vmid_ || context_id_ != sent_.context_id) return false;
        return plain_bases() && plain(start_.isa);
    }

    /// Stops before the first block that may need packets other than atoms and plain branches. Precondition:
    /// ordinary(). Bytes and state afterwards are the same as with waypoint().
    std::size_t retire_ordinary(std::span<const RetiredBlock> blocks) {
        const std::size_t taken = plain_blocks(blocks, start_, registers_.syncfr.value);
        if (taken != 0) retired_ordinary(taken, blocks[taken - 1].cycle);
        return taken;
    }
    /// `blocks` blocks were sent, the last one in `cycle`.
    void retired_ordinary(std::size_t blocks, std::uint64_t cycle) {
        counts_.instructions += 2 * blocks;
        counts_.waypoints += blocks;
        traced_since_timestamp_ = unsettled_ = true;
        last_cycle_ = cycle;
        clock_.advance(last_cycle_);
        if (config_.timestamps) last_ticks_ = clock_.ticks(last_cycle_);
        position_ = start_;
    }

    // ---- whether a block is traced

    /// 5.3, rules 1 and 2: a block ends at `end`. Sends the packets for its start.
    bool begin_block(Address end) {
        const bool possible = !programming_ && !in_debug_ && !prohibited_ && start_.isa != Isa::jazelle;
        if (!possible || (!resources_.trivial() && !compare(end))) {
            if (tracing_) stop(ISyncReason::trace_enabled);
            // Reason 3 is only for the first instruction after Debug state.
            if (restart_ == ISyncReason::debug_exit && !in_debug_) restart_ = ISyncReason::trace_enabled;
            ++counts_.untraced;
            return false;
        }
        if (fifo_.draining()) {
            ++counts_.overflowed;
            return false;
        }
        if (!tracing_)
            trace_on();
        else if (isync_pending_ && isync_delay_-- == 0)
            periodic_isync();
        if (vmid_pending_) send_vmid();  // at the latest before the next atom or branch packet
        if (fifo_.draining()) {
            ++counts_.overflowed;
            return false;
        }
        ++counts_.waypoints;
        traced_since_timestamp_ = true;
        return true;
    }

    bool compare(Address end) {
        const bool enabled = resources_.compare({start_.address.value, end.value, ns_, hyp_, user_,
                                                 start_.isa == Isa::jazelle, whole_context_id_, new_vmid_});
        take_events();
        return enabled;
    }
    void take_events() {
        if (resources_.take_trigger() && !programming_) {
            trigger_pending_ = triggered_ = true;
            unsettled_ = true;
            if (trigger_output_) trigger_output_();
        }
        if (resources_.take_timestamp()) request_timestamp();
    }

    /// 5.3, rule 3.
    void large_block_update(const Retired& w) {
        const std::uint64_t length = choices_.large_block_test == ModelChoices::LargeBlockTest::distance  // OQ4
                                         ? w.address - start_.address
                                         : w.address + w.instruction.bytes - start_.address;
        if (length <= 4096 || !last_) return;
        flush_atoms();
        update(choices_.large_block_address == ModelChoices::LargeBlockAddress::waypoint ? Place{w.address, w.isa}
                                                                                         : *last_);
    }
    bool ordinary_config_ = false;  // no decisions by resources or a FIFO
    Resources resources_;

    // The state of the core that packets do not show.
    Place position_{};           // place of the next instruction
    std::optional<Place> last_;  // the last instruction executed since the last waypoint
    bool user_ = false;
    bool in_debug_ = false, prohibited_ = false;
    bool started_ = false;  ///< the Programming bit was cleared at least once
    Authentication authentication_;
    std::function<void()> trigger_output_;
    std::uint32_t new_context_id_ = 0, whole_context_id_ = 0;
    std::uint8_t new_vmid_ = 0;
};

}  // namespace waymark::pft
