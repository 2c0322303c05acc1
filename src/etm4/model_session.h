/// One trace session of the model, from enabled to disabled: the executed code, and the part that is traced
/// (docs/spec/etm4-registers.md, 2.1, 2.12 and 2.13). The base classes decide which packets are sent and where they go.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "model_blocks.h"

namespace waymark::etm4 {

class ModelSession final : ModelBlocks {
    using Waypoint = isa::Waypoint;

public:
    /// The unit is disabled until enable(), which uses the programming in `config.registers`.
    ModelSession(const ModelConfig& config, ByteSink& trace, const ModelCore& core)
        : ModelBlocks(config, trace, core) {}
    [[nodiscard]] ModelCore core() const {
        return {start_,          position_, context_, new_context_,        in_debug_,
                in_transaction_, now_,      counts_,  resources_.inputs(), random_};
    }

    // ---- the session

    /// `active`: TRCRSR.TA of an ETE (2.12).
    void enable(bool active) {
        enabled_ = true;
        active_ = active;
        forget_sent();
        go_on(position_);
    }
    [[nodiscard]] bool enabled() const { return enabled_; }
    /// 2.1, disabling: sends the rest, including a due Overflow, and a Discard if a transaction is open in the trace.
    void disable() {
        if (!enabled_) return;
        flush();
        if (overflowing()) {
            drain_all();
            recover();
            shown_transaction_ = false;
        }
        if (std::exchange(shown_transaction_, false)) send(Discard{});
        stop();
        enabled_ = false;
    }
    /// Power is lost: waiting packets and uncommitted elements are lost.
    void abandon() {
        const std::uint64_t lost = std::uint64_t{atom_count_} + depth();
        counts_.p0 -= lost;
        counts_.untraced += lost;
        drop_atoms();
        drain_all();
        stop();
        shown_transaction_ = enabled_ = false;
    }
    /// Time passes without execution.
    void pass(std::uint64_t cycle) { advance(cycle); }
    [[nodiscard]] bool drained() const { return empty(); }
    [[nodiscard]] std::uint64_t now() const { return now_; }
    /// The place of execution at the beginning.
    void arrive(const Arrival& first) {
        now_ = std::max(now_, first.cycle);
        start_ = position_ = first.place;
    }

    // ---- execution; each function first sends what the previous P0 element left to be sent

    void set_context(const flow::Context& context) { new_context_ = context; }

    void run(std::uint32_t bytes, std::uint64_t cycle) {
        if (bytes == 0) return;
        settle();
        advance(cycle);
        position_.address = position_.address + bytes;
    }

    void retire_block(const Retired& w) {
        if (w.isa != position_.isa || w.address < position_.address) [[unlikely]]
            discontinuity({{w.address, w.isa}, w.cycle});
        settle();
        advance(w.cycle);
        const isa::Place after{w.address + w.instruction.bytes, w.isa};
        const bool viewed = view(w.address);
        if (!in_debug_) active_ = viewed;
        if (begin_element(viewed, start_)) {
            ++counts_.p0;
            p0_instruction(w, after);
            end_element();
        }
        go_on(w.passed ? w.next : after);
    }

    std::size_t retire_blocks(std::span<const RetiredBlock> blocks) {
        const std::uint64_t overflowed = counts_.overflowed;
        std::size_t taken = 0;
        while (taken < blocks.size() && counts_.overflowed == overflowed) {
            if (ordinary()) taken += retire_ordinary(blocks.subspan(taken));
            if (taken == blocks.size()) break;
            const RetiredBlock& b = blocks[taken++];
            retire_block({.address = b.address,
                          .isa = b.isa,
                          .instruction = *b.instruction,
                          .passed = b.passed,
                          .next = {b.next, b.next_isa},
                          .cycle = b.cycle});
        }
        return taken;
    }

    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> prepare(const isa::Place& from,
                                                                  std::span<const RetiredBlock> blocks) const {
        return ordinary_sequence(from, blocks);
    }
    std::size_t retire_sequences(std::span<const flow::RetiredSequence> sequences) {
        return ordinary() ? retire_ordinary_sequences(sequences) : 0;
    }

    /// Sections 2.12 and 2.13, step 5.
    void exception(const ExceptionTaken& e) {
        settle();
        advance(e.cycle);
        const bool reset = e.type == exceptions::pe_reset;
        // Traced if the preceding code was traced, or if tracing of exceptions is forced.
        const bool nothing_ran = position_ == start_;
        const bool permitted = !prohibited(context_);
        const bool viewed = permitted && (nothing_ran ? (config_.ete() ? active_ : tracing_)
                                                      : view({position_.address.value - step()}));
        const bool forced =
            permitted && ((reset && victlr_.trcreset) || (e.type == exceptions::system_error && victlr_.trcerr));
        const bool in_debug = in_debug_;
        if (begin_element(viewed || forced, start_, &e)) send_exception(e, reset);
        if (!in_debug) active_ = viewed || forced;
        if (!e.handler) stop();
        go_on(e.handler.value_or(position_));
        address_due_ = AddressDue::always;
    }

    void discontinuity(const Arrival& next) {
        settle();
        advance(next.cycle);
        if (config_.max_speculation != 0) commit_all();
        flush_atoms();
        stop();
        go_on(next.place);
    }

    void debug_entry(std::uint64_t cycle) {
        exception({.type = exceptions::debug_halt, .back = {}, .handler = {}, .cycle = cycle});
        in_debug_ = true;
    }
    void debug_exit(const Arrival& restart) {
        in_debug_ = false;
        discontinuity(restart);
    }
    void wait(std::uint64_t cycle) {
        settle();
        advance(cycle);
        flush();
        drain_all();
    }

    // ---- transactions and instrumentation

    void transaction_start(std::uint64_t cycle) {
        if (!config_.ete() || in_transaction_) return;
        settle();
        advance(cycle);
        in_transaction_ = true;
        resources_.begin_transaction();
        shown_transaction_ = false;
        if (tracing_ && !overflowing()) show_transaction();
    }
    void transaction_commit(std::uint64_t cycle) {
        advance(cycle);
        resources_.end_transaction(true);
        if (std::exchange(in_transaction_, false) && std::exchange(shown_transaction_, false)) {
            send(TransactionCommit{});
        }
    }
    void transaction_fail(const Arrival& resume) {
        advance(resume.cycle);
        resources_.end_transaction(false);
        if (std::exchange(in_transaction_, false) && std::exchange(shown_transaction_, false)) {
            Exception p;
            p.type_4_0 = exceptions::transaction_failure;
            p.e0 = true;
            send(p);
        }
        // The address of `resume` comes before any outcome, so a decoder does not pop its return stack.
        if (std::exchange(popped_, false)) push(start_);
        go_on(resume.place);
        address_due_ = AddressDue::always;
    }
    void instrument(std::uint64_t value, std::uint64_t cycle) {
        advance(cycle);
        if (!enabled_ || in_debug_ || config_.version < 0x53) return;
        if (overflowing() && !empty()) return;
        begin_stream();
        send(Instrumentation{value, fields_of(new_context_, isa::Isa::a64).el});
    }

    // ---- requests

    void request_sync() { sync_requested_ = true; }
    void flush() {
        settle();
        if (config_.max_speculation != 0) commit_all();
        flush_atoms();
    }
    /// 2.15: the trace bus requests a flush. An ETE adds a timestamp, unless nothing was traced since the last
    /// timestamp.
    void flush_for_bus() {
        flush();
        if (!config_.ete() || !config_.timestamps || !unstamped_ || !tracing_ || overflowing()) return;
        send_timestamp(*unstamped_);
        if (!timestamp_due_) unstamped_.reset();
    }

    void set_external_input(unsigned selector, bool level) { resources_.external_input(selector, level); }
    /// 2.18, prohibited region. Instructions executed so far are sent, as at an entry without a P0 element.
    void set_permission(const flow::TracePermission& permission) {
        const bool before = prohibited(context_);
        permission_ = permission;
        if (!enabled_ || before || !prohibited(context_)) return;
        settle();
        if (config_.max_speculation != 0) commit_all();
        flush_atoms();
        stop();
        active_ = false;
    }
    void on_trigger(std::function<void()> called) { trigger_output_ = std::move(called); }
    [[nodiscard]] std::uint8_t external_outputs() const { return resources_.outputs(); }
    void read_back(Registers& registers) const {
        resources_.read_back(registers);
        registers.rsr.ta = config_.ete() && active_;
    }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] bool tracing() const { return tracing_; }
    [[nodiscard]] bool is_overflowing() const { return overflowing(); }
};

}  // namespace waymark::etm4
