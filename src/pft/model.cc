#include "waymark/pft/model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "resources.h"
#include "waymark/core/result.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

using isa::Waypoint;

class Model::Machine {
public:
    Machine(const ModelConfig& config, ByteSink& trace)
        : config_(effective(config)),
          registers_(config.registers),
          choices_(config.choices),
          trace_(trace),
          resources_(config.registers, config.choices.start_and_stop) {
        choices_.return_stack_depth =
            std::min(choices_.return_stack_depth, static_cast<std::uint8_t>(return_stack_.size()));
        if (choices_.fifo_bytes != 0) choices_.fifo_bytes = std::max(choices_.fifo_bytes, least_fifo_bytes);
        ordinary_config_ = !config_.cycle_accurate && !config_.timestamps && !config_.branch_broadcast &&
                           !config_.vmid_trace && choices_.fifo_bytes == 0 && resources_.trivial();
    }

    // ---- execution; each begins with what the waypoint before it left to be sent

    void start(const Arrival& first) {
        programming_ = false;
        count_base_ = sent_count_base_ = first.cycle;
        arrive(first);
        forget_sent();
    }

    void retire(const Retired& i) {
        ++counts_.instructions;
        if (i.address != position_.address || i.isa != position_.isa) [[unlikely]]
            return_from_elsewhere({i.address, i.isa});
        if (i.instruction.waypoint != Waypoint::none) return waypoint(i);
        settle();
        clock(i.cycle);
        executed({i.address, i.isa}, i.instruction.bytes);
        if (i.dmb_dsb) barrier_timestamp();
        if (state_of(i.ns, i.hyp) != State{ns_, hyp_}) change_state(i.ns, i.hyp);
    }

    void run(std::uint32_t bytes, std::uint8_t last_bytes, std::uint64_t cycle) {
        if (bytes == 0) return;
        ++counts_.instructions;
        settle();
        clock(cycle);
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
            w.address = {b.address};
            w.isa = b.isa;
            w.instruction = *b.instruction;
            w.passed = b.passed;
            w.next = {{b.next}, b.next_isa};
            w.ns = ns;
            w.hyp = hyp;
            w.cycle = b.cycle;
            retire_block(w, b.bytes_before);
        }
        return taken;
    }

    /// 5.3, "Waypoint instruction"; the numbers are its rules.
    void waypoint(const Retired& w) {
        settle();
        clock(w.cycle);
        const auto [ns, hyp] = state_of(w.ns, w.hyp);
        const bool to_prohibited = prohibited(ns);
        const Place behind{{(w.address.value + w.instruction.bytes) & 0xffffffffU}, w.isa};
        if (begin_block(w.address)) {  // 1, 2
            begin_group();
            large_block_update(w);  // 3
            const bool shown_ns = sent_ns_;
            bool shown = true;
            if (w.passed && to_prohibited) {
                shown = hidden_branch(exceptions::none, w.cycle);
            } else if (w.passed && needs_packet(w, ns, hyp)) {  // 4
                flush_atoms();
                branch(w.next, exceptions::none, ns, hyp, count(w.cycle));
            } else {
                atom(w.passed, count(w.cycle));
            }
            // 5: the pop came first. An entry made while a change of security state by MCR or MSR waits to be reported
            // would hold a state that the trace does not show: it is never matched.
            if (w.passed && w.instruction.link) push({behind, shown_ns, shown_ns == ns});
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
        clock(e.cycle);
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
                branch(e.vector, e.number, handler ? ns : sent_ns_, handler ? hyp : sent_hyp_, count(e.cycle));
            if (end_group() && !registers_.auxcr.no_exception_timestamps) request_timestamp();
        }
        go_on(e.vector, ns, hyp, e.cycle);
    }

    void discontinuity(const Arrival& next) {
        settle();
        flush_atoms();
        clock(next.cycle);
        stop(ISyncReason::trace_enabled);
        arrive(next);
    }

    /// 5.3, "Debug entry": like an exception, but address and state in its packet mean nothing.
    void debug_entry(std::uint64_t cycle) {
        settle();
        clock(cycle);
        if (begin_block(last_ ? last_->address : start_.address)) {
            begin_group();
            flush_atoms();
            if (last_) update(*last_);
            branch({{0}, Isa::a32}, exceptions::debug_entry, sent_ns_, sent_hyp_, count(cycle), 5);
            end_group();
        }
        last_cycle_ = cycle;
        stop(ISyncReason::debug_exit);
        in_debug_ = true;
    }

    void debug_exit(const Arrival& restart) {
        clock(restart.cycle);
        in_debug_ = false;
        // The count of its I-sync ends at the debug entry, the most recent waypoint.
        const std::uint64_t entry = last_cycle_;
        arrive(restart);
        last_cycle_ = entry;
        stop(ISyncReason::debug_exit);
    }

    /// 1.1: WFI and WFE drain pending atoms and the FIFO.
    void wait(std::uint64_t cycle) {
        settle();
        clock(cycle);
        flush_atoms();
        level_ = 0;
    }

    // A block runs in the context with which it began; what changes inside counts from the next waypoint on (4.8).
    void set_context_id(std::uint32_t value) {
        new_context_id_ = config_.context_id_bytes == 1   ? value & 0xffU
                          : config_.context_id_bytes == 2 ? value & 0xffffU
                                                          : value;
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
    void set_timestamp(std::uint64_t ticks) {
        ticks_base_ = ticks;
        ticks_cycle_ = now_;
        ticks_set_ = true;
    }
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
            clock(cycle);
            programming_ = false;
            forget_sent();
            begin_at(position_);
            last_cycle_ = cycle;
            return;
        }
        // Tracing stops at once, even between waypoints; what ran since the last one is lost.
        settle();
        clock(cycle);
        flush_atoms();
        stop(ISyncReason::trace_enabled);
        programming_ = true;
        level_ = 0;
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
    [[nodiscard]] std::uint64_t now() const { return now_; }

private:
    /// An A-sync and the longest I-sync, or tracing would never restart.
    static constexpr std::uint32_t least_fifo_bytes = 24;

    struct State {
        bool ns, hyp;
        friend bool operator==(const State&, const State&) = default;
    };
    struct StackEntry {
        Place place;
        bool ns{}, certain{};
    };

    /// The registers can ask for what the architecture forbids or the version lacks; hardware then does without.
    static Config effective(const ModelConfig& config) {
        Config c = config.packets();
        c.return_stack = c.return_stack && !c.branch_broadcast;  // 4.5
        c.vmid_trace = c.vmid_trace && c.minor_version >= 1;     // 2.8
        return c;
    }
    /// Without Security Extensions a macrocell traces as if always Secure (3); Hyp is of v1.1.
    [[nodiscard]] State state_of(bool ns, bool hyp) const {
        return {ns && registers_.idr.security != 0, hyp && config_.minor_version >= 1};
    }

    // ---- time

    void clock(std::uint64_t cycle) {
        const std::uint64_t passed = cycle > now_ ? cycle - now_ : 0;
        now_ += passed;
        if (choices_.fifo_bytes != 0) drain(passed);
        if (!resources_.trivial() && !programming_) {
            resources_.advance(passed);
            take_events();
        }
    }
    void drain(std::uint64_t cycles) {
        drained_ += cycles * choices_.drain_bytes;
        const std::uint64_t bytes = drained_ / std::max(choices_.drain_cycles, 1U);
        drained_ %= std::max(choices_.drain_cycles, 1U);
        level_ = bytes >= level_ ? 0 : level_ - bytes;
        if (level_ == 0) {
            drained_ = 0;
            draining_ = false;
        }
    }
    [[nodiscard]] std::uint64_t ticks(std::uint64_t cycle) const {
        const std::uint64_t passed = cycle > ticks_cycle_ ? cycle - ticks_cycle_ : 0;
        return (ticks_set_ ? ticks_base_ : choices_.timestamp_first) +
               passed * choices_.timestamp_numerator / std::max(choices_.timestamp_denominator, 1U);
    }
    /// Cycles since the last count, which this one becomes (5.5).
    std::uint32_t count(std::uint64_t cycle, bool isync = false) {
        if (!config_.cycle_accurate || cycle <= count_base_) return 0;
        const std::uint64_t cycles = cycle - count_base_;
        count_base_ = cycle;
        if (cycles <= 0xffffffffU || choices_.cycle_overflow == ModelChoices::CycleOverflow::wrap)
            return static_cast<std::uint32_t>(cycles);
        // OQ6
        return isync && choices_.cycle_overflow == ModelChoices::CycleOverflow::saturate_zero_isync ? 0 : 0xffffffffU;
    }

    // ---- where execution stands

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
        if (config_.timestamps) last_ticks_ = ticks(cycle);
        begin_at(next);
        if (prohibited(ns_) != prohibited_) [[unlikely]]
            prohibition_changed();
        if (next.isa == Isa::jazelle) [[unlikely]]
            stop(ISyncReason::trace_enabled);  // bytecodes are never traced
    }
    void arrive(const Arrival& a) {
        const auto [ns, hyp] = state_of(a.ns, a.hyp);
        now_ = std::max(now_, a.cycle);
        go_on(a.place, ns, hyp, a.cycle);
    }
    /// Execution is not where it stood: it went there untold.
    void return_from_elsewhere(const Place& place) { discontinuity({place, ns_, hyp_, now_}); }
    /// By MCR or MSR, inside a block: shown by the next taken branch or exception (4.8).
    void change_state(bool ns, bool hyp) {
        const State state = state_of(ns, hyp);
        ns_ = state.ns;
        hyp_ = state.hyp;
        if (prohibited(ns_) != prohibited_) prohibition_changed();
    }

    [[nodiscard]] bool prohibited(bool ns) const {
        return !authentication_.non_invasive || (!ns && !authentication_.secure_non_invasive);
    }
    /// 5.3, "Prohibited region". Entered by an exception or branch, its packet was sent already.
    void prohibition_changed() {
        prohibited_ = prohibited(ns_);
        resources_.prohibited(prohibited_, !authentication_.non_invasive);
        take_events();
        if (prohibited_) {
            flush_atoms();
            stop(ISyncReason::trace_enabled);
        } else if (last_) {
            begin_at(position_);  // its I-sync gives the first instruction that may be seen
        }
    }

    // ---- many blocks at once: what waypoint() does where nothing but atoms and plain branch packets can come of it

    /// Tracing is on, execution stands at the start of a block, and nothing is pending or different from what was sent.
    [[nodiscard]] bool ordinary(bool ns, bool hyp) const {
        if (!ordinary_config_ || !tracing_ || programming_ || in_debug_ || prohibited_ || last_) return false;
        if (isync_pending_ || sync_requested_ || vmid_pending_ || timestamp_pending_ || trigger_pending_) return false;
        if (state_of(ns, hyp) != State{ns_, hyp_} || ns_ != sent_ns_ || hyp_ != sent_hyp_ || prohibited(ns_))
            return false;
        if (new_context_id_ != context_id_ || new_vmid_ != vmid_ || context_id_ != sent_context_id_) return false;
        return base_ == other_base_ && simple(start_.isa) && simple(base_.isa);
    }
    /// AltISA is 0 and an I-sync is not needed.
    static constexpr bool simple(Isa isa) { return isa == Isa::a32 || isa == Isa::t32; }

    /// Stops before the first block that may need more. Precondition: ordinary(). The bytes are those of
    /// waypoint(), and so is the state it leaves.
    std::size_t retire_ordinary(std::span<const RetiredBlock> blocks) {
        constexpr std::size_t most_bytes = 6;  // of a block: atoms, then an address
        constexpr std::size_t most_blocks = 400;
        std::array<std::uint8_t, most_blocks * most_bytes> bytes;
        std::uint8_t* out = bytes.data();
        blocks = blocks.first(std::min(blocks.size(), most_blocks));
        // A block that finds more bytes sent than this first asks for synchronisation.
        const std::uint64_t wanted = registers_.syncfr.value, room = wanted > sync_bytes_ ? wanted - sync_bytes_ : 0;
        const std::uint8_t* const sync =
            wanted == 0 || room > bytes.size() ? bytes.data() + bytes.size() : bytes.data() + room;
        Isa isa = start_.isa, base_isa = base_.isa;
        auto start = static_cast<std::uint32_t>(start_.address.value);
        auto base = static_cast<std::uint32_t>(base_.address.value);
        // Atoms with the marker before them, as they are sent.
        std::uint32_t atoms = 1U << atoms_.count | atoms_.n;
        std::size_t taken = 0;
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            if (out >= sync || b.isa != isa || !simple(b.next_isa) || b.address < start ||
                b.address + i.bytes - start > 4096 || i.exception_return) [[unlikely]]
                break;
            const std::uint32_t behind = b.address + i.bytes;
            if (i.waypoint == Waypoint::barrier || behind < b.address) [[unlikely]]
                break;
            if (i.waypoint == Waypoint::direct || !b.passed || returned_by_stack(b)) {
                atoms = atoms << 1 | (b.passed ? 0U : 1U);
                if (atoms >= 32) {
                    *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                    atoms = 1;
                }
            } else {
                const unsigned shift = address_shift(b.next_isa);
                std::uint32_t left = b.next >> shift, differs = (b.next ^ base) >> shift;
                if (atoms != 1) *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                atoms = 1;
                std::uint32_t byte = 1 | (left & 0x3f) << 1;
                if (b.next_isa != base_isa || differs >> target_bits(4) != 0) {  // all five bytes
                    left >>= 6;
                    for (unsigned n = 1; n < 5; ++n, left >>= 7) {
                        *out++ = static_cast<std::uint8_t>(byte | 0x80);
                        byte = left & 0x7f;
                    }
                    byte |= b.next_isa == Isa::a32 ? 0x08U : 0x10U;
                } else {
                    bool more = differs >> 6 != 0;
                    for (left >>= 6, differs >>= 6; more; left >>= 7, differs >>= 7) {
                        *out++ = static_cast<std::uint8_t>(byte | 0x80);
                        more = differs >> 6 != 0;  // of a last byte, bit 6 says that information follows
                        byte = left & (more ? 0x7f : 0x3f);
                    }
                }
                *out++ = static_cast<std::uint8_t>(byte);
                base = b.next;
                base_isa = b.next_isa;
            }
            if (i.link && b.passed) push({{{behind}, isa}, sent_ns_, true});
            start = b.passed ? b.next : behind;
            isa = b.passed ? b.next_isa : isa;
            ++taken;
        }
        if (taken == 0) return 0;
        const RetiredBlock& last = blocks[taken - 1];
        counts_.instructions += 2 * taken;
        counts_.waypoints += taken;
        traced_since_timestamp_ = unsettled_ = true;
        now_ = std::max(now_, last.cycle);
        last_cycle_ = last.cycle;
        start_ = position_ = {{start}, isa};
        base_ = other_base_ = {{base}, base_isa};
        atoms_.count = static_cast<std::uint8_t>(std::bit_width(atoms) - 1);
        atoms_.n = static_cast<std::uint8_t>(atoms & ~(1U << atoms_.count));
        if (out != bytes.data()) {
            const auto count = static_cast<std::size_t>(out - bytes.data());
            trace_.write({bytes.data(), count});
            sync_bytes_ += count;
            counts_.bytes += count;
            sent_count_base_ = count_base_;
        }
        return taken;
    }
    /// The part of needs_packet() where the state does not change; false: a packet.
    bool returned_by_stack(const RetiredBlock& b) {
        if (!config_.return_stack || stack_size_ == 0) return false;
        const StackEntry& top = return_stack_[stack_top_];
        if (!top.certain || top.place != Place{{b.next}, b.next_isa} || top.ns != ns_) return false;
        pop();
        return true;
    }

    // ---- whether a block is traced

    /// 5.3, rules 1 and 2: a block ends at `end`. Sends what stands at its start.
    bool begin_block(Address end) {
        const bool possible = !programming_ && !in_debug_ && !prohibited_ && start_.isa != Isa::jazelle;
        if (!possible || (!resources_.trivial() && !compare(end))) {
            if (tracing_) stop(ISyncReason::trace_enabled);
            // Reason 3 is for the instruction behind Debug state itself.
            if (restart_ == ISyncReason::debug_exit && !in_debug_) restart_ = ISyncReason::trace_enabled;
            ++counts_.untraced;
            return false;
        }
        if (draining_) {
            ++counts_.overflowed;
            return false;
        }
        if (!tracing_)
            trace_on();
        else if (isync_pending_ && isync_delay_-- == 0)
            periodic_isync();
        if (vmid_pending_) send_vmid();  // at the latest before the next atom or branch packet
        if (draining_) {
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
        }
        if (resources_.take_timestamp()) request_timestamp();
    }

    /// 5.5: the first output after the Programming bit was cleared is an A-sync; a pending request is satisfied too.
    void trace_on() {
        if (sync_due()) sync_requested_ = true;  // since tracing went off, or overflows kept it from being asked for
        const bool whole = sync_requested_ || isync_pending_ || whole_timestamp_due_;
        const bool overflowed = restart_ == ISyncReason::overflow_restart;
        if (!async_sent_ || sync_requested_ || (overflowed && choices_.overflow_async)) send_async();
        isync(restart_);
        if (draining_) return;
        tracing_ = true;
        restart_ = ISyncReason::trace_enabled;
        after_isync(whole);
    }
    void periodic_isync() {
        isync(ISyncReason::periodic);
        if (!draining_) after_isync(true);
    }
    /// A VMID follows an I-sync, and a timestamp one that synchronises.
    void after_isync(bool whole_timestamp) {
        if (config_.vmid_trace) {
            vmid_pending_ = true;
            send_vmid();
        }
        timestamp_pending_ = false;
        if (whole_timestamp || choices_.trace_on_timestamp) timestamp(whole_timestamp);
    }
    /// Gives the target of the most recent waypoint; executes nothing.
    void isync(ISyncReason reason) {
        flush_atoms();
        ISync p;
        p.address_31_1 = static_cast<std::uint32_t>(start_.address.value >> 1);
        p.reason = reason;
        p.thumb = start_.isa != Isa::a32;
        p.alt_isa = start_.isa == Isa::tee;
        p.ns = ns_;
        p.hyp = hyp_;
        p.context_id = context_id_;
        if (reason != ISyncReason::periodic) p.cycles = count(last_cycle_, true);
        send(p);
        if (draining_) return;
        isync_pending_ = false;
        stack_size_ = 0;  // 4.5: even a periodic one empties it
        base_ = other_base_ = start_;
        sent_ns_ = ns_;
        sent_hyp_ = hyp_;
        sent_context_id_ = context_id_;
    }

    /// What the last waypoint left to be sent at the boundary behind it, in the order of 5.5. Done when the next event
    /// comes, so that changes told after the waypoint are in it.
    void settle() {
        if (!unsettled_) return;
        unsettled_ = false;
        if (programming_) return;
        if (tracing_) {
            if (config_.context_id_bytes != 0 && context_id_ != sent_context_id_) {
                flush_atoms();
                send(ContextId{context_id_});
                sent_context_id_ = context_id_;
            }
            if (config_.vmid_trace && vmid_ != sent_vmid_) {
                vmid_pending_ = true;
                send_vmid();
            }
            periodic_request();
        }
        // A timestamp that synchronisation asks for serves for all.
        if (tracing_ && timestamp_pending_ && !(isync_pending_ && isync_delay_ == 0)) {
            timestamp_pending_ = false;
            // OQ16
            if (traced_since_timestamp_ || choices_.timestamp_filter == ModelChoices::TimestampFilter::none)
                timestamp(false);
        }
        // Where it stands is imprecise anyhow: it does not wait for atoms, nor they for it.
        if (trigger_pending_ && async_sent_ && !draining_) {
            trigger_pending_ = false;
            send(Trigger{});
        }
    }
    [[nodiscard]] bool sync_due() const {
        return registers_.syncfr.value != 0 && sync_bytes_ >= registers_.syncfr.value;
    }
    void periodic_request() {
        if (sync_due()) {
            const bool unfinished = isync_pending_ || sync_requested_;
            sync_requested_ = true;
            if (unfinished && !registers_.auxcr.no_forced_overflow) return forced_overflow();
        }
        if (!sync_requested_ || !tracing_) return;
        if (choices_.async_flushes_atoms) flush_atoms();  // OQ15
        send_async();
        if (!isync_pending_) isync_delay_ = choices_.isync_delay_waypoints;
        isync_pending_ = true;
    }
    // ---- stopping

    void stop(ISyncReason restart) {
        flush_atoms();
        tracing_ = false;
        // What was lost is told by the next I-sync, whatever else kept tracing off meanwhile.
        if (restart_ != ISyncReason::overflow_restart) restart_ = restart;
    }
    /// 5.5: the FIFO is full, or synchronisation is late. Nothing more is sent until it is empty.
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
        count_base_ = sent_count_base_;
        tracing_ = vmid_pending_ = timestamp_pending_ = false;
        draining_ = level_ != 0;
        whole_timestamp_due_ = true;
        restart_ = ISyncReason::overflow_restart;
        group_lost_ = true;
    }
    /// 5.5: a request while the synchronisation before is not finished. What is pending still leaves.
    void forced_overflow() {
        flush_atoms();
        overflow();
    }
    void forget_sent() {
        tracing_ = async_sent_ = draining_ = isync_pending_ = vmid_pending_ = timestamp_pending_ = false;
        sync_requested_ = trigger_pending_ = triggered_ = false;
        whole_timestamp_due_ = true;
        restart_ = ISyncReason::trace_enabled;
        sync_bytes_ = 0;
    }

    // ---- packets

    template <class P>
    void send(const P& packet) {
        if (draining_) {
            count_base_ = sent_count_base_;  // the cycles it counted are still to be told
            return;
        }
        encode(group_, packet, config_);
        if (!grouping_) commit();
    }
    /// What is sent from here to end_group() goes into the FIFO as a whole or not at all.
    void begin_group() {
        grouping_ = true;
        group_lost_ = false;
    }
    /// False: it did not fit, and the waypoint is lost.
    bool end_group() {
        grouping_ = false;
        // An atom that waits beside a group is of the same waypoint, whose waypoint update is in the group.
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
    /// Room stays for an atom that belongs to what is in the FIFO already.
    void commit(bool atom_follows = false) {
        if (group_.empty()) return;
        if (choices_.fifo_bytes != 0) {
            const std::uint64_t kept = atom_follows || kept_atom_ ? 1 : 0;
            if (level_ != 0 && level_ + group_.size() + kept > choices_.fifo_bytes) return overflow();
            level_ += group_.size();
        }
        trace_.write(group_);
        sync_bytes_ += group_.size();
        counts_.bytes += group_.size();
        sent_count_base_ = count_base_;
        group_.clear();
    }

    void send_async() {
        send(ASync{});
        if (draining_) return;
        sync_requested_ = false;
        async_sent_ = true;
        sync_bytes_ = 0;  // the counter starts again with the sync, not with the request
    }
    void send_vmid() {
        flush_atoms();
        send(Vmid{vmid_});
        sent_vmid_ = vmid_;
        vmid_pending_ = false;
    }

    void request_timestamp() {
        if (!config_.timestamps || programming_) return;
        timestamp_pending_ = unsettled_ = true;
    }
    void barrier_timestamp() {
        if (registers_.ccer.barrier_timestamps && !registers_.auxcr.no_barrier_timestamps) request_timestamp();
    }
    void timestamp(bool whole) {
        if (!config_.timestamps) return;
        flush_atoms();
        // v1.1 gives the time of the last waypoint, v1.0 that of the packet.
        const std::uint64_t delay = config_.minor_version == 0 ? choices_.packet_delay_cycles : 0;
        std::uint64_t value =
            last_ticks_ + delay * choices_.timestamp_numerator / std::max(choices_.timestamp_denominator, 1U);
        if (config_.timestamp_bytes == 7) value &= (std::uint64_t{1} << 48) - 1;
        const std::uint64_t sent = config_.gray_timestamps ? to_gray(value) : value;
        whole |= whole_timestamp_due_;
        Timestamp p;
        p.value = compress_timestamp(sent, sent_timestamp_, whole, config_);
        p.cycles = count(last_cycle_ + delay);
        p.frequency_changed = frequency_changed_;
        send(p);
        if (draining_) return;
        sent_timestamp_ = sent;
        whole_timestamp_due_ = frequency_changed_ = false;
        traced_since_timestamp_ = false;
    }

    /// 5.4.
    void atom(bool e, std::uint32_t cycles) {
        if (group_lost_) return;
        if (config_.cycle_accurate) return send(Atom{{{1, static_cast<std::uint8_t>(e ? 0 : 1)}, cycles}});
        atoms_.n = static_cast<std::uint8_t>(atoms_.n << 1 | (e ? 0 : 1));
        ++atoms_.count;  // five are sent when this waypoint is done
    }
    /// Older waypoints do not belong to the group at hand: they stand before it, and alone.
    void flush_atoms() {
        if (atoms_.count == 0) return;
        const Atoms atoms = atoms_;
        const bool was = grouping_;
        WM_CHECK(group_.empty());
        grouping_ = kept_atom_ = false;
        if (!draining_) {
            encode(group_, Atom{{atoms, 0}}, config_);
            commit();
        }
        atoms_ = {0, 0};
        grouping_ = was;
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

    /// 5.3, rule 4: a waypoint instruction that passed gets a branch packet; else an atom.
    bool needs_packet(const Retired& w, bool ns, bool hyp) {
        const bool change = ns != sent_ns_ || hyp != sent_hyp_ || alt_isa_differs(w.next.isa);
        switch (w.instruction.waypoint) {
            case Waypoint::direct: return change || config_.branch_broadcast;
            case Waypoint::barrier:
                return change || (config_.branch_broadcast &&
                                  choices_.broadcast_barrier == ModelChoices::BroadcastBarrier::packet);  // OQ8
            case Waypoint::indirect: break;
            case Waypoint::none: break;
        }
        if (!config_.return_stack || stack_size_ == 0) return true;
        const StackEntry& top = return_stack_[stack_top_];
        if (!top.certain || top.place != w.next || top.ns != ns) return true;  // the stack stays as it is (4.5)
        const bool returns = w.instruction.exception_return && config_.minor_version >= 1;
        if (change || returns) {  // OQ3
            if (choices_.matched_change == ModelChoices::MatchedChange::packet_pops_entry) pop();
            return true;
        }
        pop();
        return false;
    }

    /// 2.5.
    void branch(const Place& to, std::uint32_t exception, bool ns, bool hyp, std::uint32_t cycles, unsigned least = 1) {
        BranchAddress p;
        const bool information = exception != 0 || ns != sent_ns_ || hyp != sent_hyp_ || alt_isa_differs(to.isa);
        if (information) least = std::max(least, exception == 0 && !choices_.short_information ? 5U : 2U);  // OQ11
        p.target = compressed(to, least);
        p.target.information = information;
        if (config_.cycle_accurate) p.cycles = cycles;
        if (information) {
            const bool set = choices_.hyp_information == ModelChoices::HypInformation::set_or_changed && hyp;  // OQ5
            p.exception_3_0 = static_cast<std::uint8_t>(exception & 0xf);
            p.exception_8_4 = static_cast<std::uint8_t>(exception >> 4 & 0x1f);
            p.more = set || hyp != sent_hyp_ || exception > 15;
            p.alt_isa = to.isa == Isa::tee;
            p.ns = ns;
            p.hyp = p.more && hyp;
        }
        send(p);
        base_ = other_base_ = to;
        sent_ns_ = ns;
        sent_hyp_ = hyp;
    }
    /// OQ10: into a prohibited region. Where it goes must not be seen, nor in which state.
    bool hidden_branch(std::uint32_t exception, std::uint64_t cycle) {
        flush_atoms();
        if (choices_.prohibited_entry == ModelChoices::ProhibitedEntry::address_zero) {
            branch({{0}, Isa::a32}, exception, sent_ns_, sent_hyp_, count(cycle));
            return true;
        }
        if (group_lost_) return false;
        group_.clear();  // a waypoint update with nothing behind it would say too much
        --counts_.waypoints;
        ++counts_.untraced;
        return false;
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

    // ---- return stack, 4.5: a ring whose oldest entry is thrown away

    void push(const StackEntry& entry) {
        if (!config_.return_stack || choices_.return_stack_depth == 0) return;
        stack_top_ = (stack_top_ + 1) % choices_.return_stack_depth;
        return_stack_[stack_top_] = entry;
        stack_size_ = std::min<unsigned>(stack_size_ + 1, choices_.return_stack_depth);
    }
    void pop() {
        stack_top_ = (stack_top_ + choices_.return_stack_depth - 1U) % choices_.return_stack_depth;
        --stack_size_;
    }

    const Config config_;
    const Registers registers_;
    ModelChoices choices_;
    bool ordinary_config_ = false;  // neither counts nor times, and nothing that resources or a FIFO decide
    ByteSink& trace_;
    Resources resources_;
    ModelCounts counts_;

    // The core.
    Place start_{}, position_{};  // of the block; of the next instruction
    std::optional<Place> last_;   // the last instruction executed since the last waypoint
    bool ns_ = false, hyp_ = false, user_ = false;
    bool in_debug_ = false, prohibited_ = false;
    Authentication authentication_;
    std::uint32_t context_id_ = 0, new_context_id_ = 0, whole_context_id_ = 0;
    std::uint8_t vmid_ = 0, new_vmid_ = 0;
    std::uint64_t now_ = 0, last_cycle_ = 0;  // cycle of the last waypoint
    std::uint64_t last_ticks_ = 0, ticks_base_ = 0, ticks_cycle_ = 0;
    bool ticks_set_ = false;

    // What was sent. A waypoint update may or may not be the base of the next address (OQ1): `base_` says it is,
    // `other_base_` that it is not.
    Place base_{}, other_base_{};
    bool sent_ns_ = false, sent_hyp_ = false;
    std::uint32_t sent_context_id_ = 0;
    std::uint8_t sent_vmid_ = 0;
    std::uint64_t sent_timestamp_ = 0;
    std::uint64_t count_base_ = 0, sent_count_base_ = 0;
    std::array<StackEntry, 16> return_stack_{};
    unsigned stack_top_ = 0, stack_size_ = 0;
    Atoms atoms_{0, 0};

    // What is to be sent.
    bool programming_ = true, tracing_ = false, async_sent_ = false;
    ISyncReason restart_ = ISyncReason::trace_enabled;
    bool unsettled_ = false, sync_requested_ = false, isync_pending_ = false, vmid_pending_ = false;
    bool timestamp_pending_ = false, whole_timestamp_due_ = true, frequency_changed_ = false;
    bool traced_since_timestamp_ = false;
    bool trigger_pending_ = false, triggered_ = false;
    unsigned isync_delay_ = 0;
    std::uint64_t sync_bytes_ = 0;

    // The FIFO.
    std::vector<std::uint8_t> group_;
    bool grouping_ = false, group_lost_ = false, draining_ = false;
    bool kept_atom_ = false;  // the waypoint update of an atom that waits is in the FIFO: they are not split (5.5)
    std::uint64_t level_ = 0, drained_ = 0;
};

Model::Model(const ModelConfig& config, ByteSink& trace) : machine_(std::make_unique<Machine>(config, trace)) {}
Model::~Model() = default;
void Model::start(const Arrival& first) { machine_->start(first); }
void Model::retire(const Retired& instruction) { machine_->retire(instruction); }
void Model::run(std::uint32_t bytes, std::uint8_t last_bytes, std::uint64_t cycle) {
    machine_->run(bytes, last_bytes, cycle);
}
void Model::retire_block(const Retired& waypoint, std::uint8_t bytes_before) {
    machine_->retire_block(waypoint, bytes_before);
}
std::size_t Model::retire_blocks(std::span<const RetiredBlock> blocks, bool ns, bool hyp) {
    return machine_->retire_blocks(blocks, ns, hyp);
}
void Model::exception(const ExceptionTaken& taken) { machine_->exception(taken); }
void Model::discontinuity(const Arrival& next) { machine_->discontinuity(next); }
void Model::debug_entry(std::uint64_t cycle) { machine_->debug_entry(cycle); }
void Model::debug_exit(const Arrival& restart) { machine_->debug_exit(restart); }
void Model::wait(std::uint64_t cycle) { machine_->wait(cycle); }
void Model::set_context_id(std::uint32_t value) { machine_->set_context_id(value); }
void Model::set_vmid(std::uint8_t value) { machine_->set_vmid(value); }
void Model::set_user_mode(bool user) { machine_->set_user_mode(user); }
void Model::set_authentication(const Authentication& signals) { machine_->set_authentication(signals); }
void Model::set_timestamp(std::uint64_t ticks) { machine_->set_timestamp(ticks); }
void Model::clock_changed() { machine_->clock_changed(); }
void Model::set_external_input(unsigned number, bool level) {
    machine_->signal([&](Resources& r) { r.external(number, level); });
}
void Model::set_extended_input(unsigned number, bool level) {
    machine_->signal([&](Resources& r) { r.extended(number, level); });
}
void Model::set_watchpoint(unsigned number, bool level) {
    machine_->signal([&](Resources& r) { r.watchpoint(number, level); });
}
void Model::set_instrumentation(unsigned number, bool level) {
    machine_->signal([&](Resources& r) { r.instrumentation(number, level); });
}
void Model::request_sync() { machine_->request_sync(); }
void Model::flush() { machine_->flush(); }
void Model::set_programming(bool set, std::uint64_t cycle) { machine_->set_programming(set, cycle); }
void Model::finish() { machine_->set_programming(true, machine_->now()); }
const ModelCounts& Model::counts() const { return machine_->counts(); }
bool Model::tracing() const { return machine_->tracing(); }
Etmsr Model::status() const { return machine_->status(); }
bool Model::external_output(unsigned number) const { return machine_->external_output(number); }

}  // namespace waymark::pft
