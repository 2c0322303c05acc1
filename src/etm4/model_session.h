/// One trace session of the model, from enabled to disabled: what is executed, and what of it is to be traced
/// (docs/spec/etm4-registers.md, 2.1, 2.12 and 2.13). Where packets come from and where they go is in the classes below
/// it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "model_stream.h"
#include "recent_addresses.h"

namespace waymark::etm4 {

class ModelSession final : ModelStream {
    using Waypoint = isa::Waypoint;

public:
    /// The unit is disabled until enable(); `config.registers` is how it is programmed then.
    ModelSession(const ModelConfig& config, ByteSink& trace, const ModelCore& core)
        : ModelStream(config, trace, core),
          ordinary_config_((!config_.cycle_counting || config_.commit_mode_1) &&
                           (!config_.branch_broadcast || bbctlr_.range == 0) && !q_ && config_.max_speculation == 0 &&
                           choices_.fifo_bytes == 0 && !choices_.source_address_after && resources_.trivial()) {}
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
    /// 2.1, disabling: what remains is sent, a due Overflow too, and a Discard if a transaction is open in the trace.
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
    /// Power is gone: what waits is lost, and so is what was not committed.
    void abandon() {
        const std::uint64_t lost = std::uint64_t{atom_count_} + depth();
        counts_.p0 -= lost;
        counts_.untraced += lost;
        drop_atoms();
        drain_all();
        stop();
        shown_transaction_ = enabled_ = false;
    }
    /// Time passes in which nothing runs.
    void pass(std::uint64_t cycle) { advance(cycle); }
    [[nodiscard]] bool drained() const { return empty(); }
    [[nodiscard]] std::uint64_t now() const { return now_; }
    /// Where execution is before anything ran.
    void arrive(const Arrival& first) {
        now_ = std::max(now_, first.cycle);
        start_ = position_ = first.place;
    }

    // ---- execution; each begins with what the P0 element before it left to be sent

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

    /// 2.12 and 2.13, step 5.
    void exception(const ExceptionTaken& e) {
        settle();
        advance(e.cycle);
        const bool reset = e.type == exceptions::pe_reset;
        // Traced if what was executed before it was, or if it is forced.
        const bool nothing_ran = position_ == start_;
        const bool viewed =
            nothing_ran ? (config_.ete() ? active_ : tracing_) : view({position_.address.value - step()});
        const bool forced = (reset && victlr_.trcreset) || (e.type == exceptions::system_error && victlr_.trcerr);
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
        shown_transaction_ = false;
        if (tracing_ && !overflowing()) show_transaction();
    }
    void transaction_commit(std::uint64_t cycle) {
        advance(cycle);
        if (std::exchange(in_transaction_, false) && std::exchange(shown_transaction_, false)) {
            send(TransactionCommit{});
        }
    }
    void transaction_fail(const Arrival& resume) {
        advance(resume.cycle);
        if (std::exchange(in_transaction_, false) && std::exchange(shown_transaction_, false)) {
            Exception p;
            p.type_4_0 = exceptions::transaction_failure;
            p.e0 = true;
            send(p);
        }
        // The address of `resume` comes before any outcome, so a decoder does not pop.
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

    void set_external_input(unsigned selector, bool level) { resources_.external_input(selector, level); }
    [[nodiscard]] std::uint8_t external_outputs() const { return resources_.outputs(); }
    void read_back(Registers& registers) const {
        resources_.read_back(registers);
        registers.rsr.ta = config_.ete() && active_;
    }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] bool tracing() const { return tracing_; }
    [[nodiscard]] bool is_overflowing() const { return overflowing(); }

private:
    // ---- many blocks at once: what retire_block() does where nothing but atoms, addresses and cycle counts can come
    // of it

    [[nodiscard]] bool ordinary() const {
        return ordinary_config_ && enabled_ && tracing_ && !in_debug_ && !in_transaction_ && position_ == start_ &&
               !sync_due() && !timestamp_due_ && addresses_known() && (!config_.cycle_counting || count_from_) &&
               new_context_ == context_ && context_known(fields_of(context_, start_.isa)) &&
               start_.isa == isa::Isa::a64;
    }
    [[nodiscard]] bool addresses_known() const {
        for (unsigned n = 0; n < 3; ++n)
            if (~state_.addresses().entry(n).known != 0) return false;
        return true;
    }
    /// Stops before the first block that may need more. Precondition: ordinary(). The bytes are those of
    /// retire_block(), and so is the state it leaves.
    std::size_t retire_ordinary(std::span<const RetiredBlock> blocks) {
        const bool broadcast = config_.branch_broadcast && !bbctlr_.mode;
        if (config_.cycle_counting)
            return broadcast ? retire_ordinary_as<true, true>(blocks) : retire_ordinary_as<true, false>(blocks);
        return broadcast ? retire_ordinary_as<false, true>(blocks) : retire_ordinary_as<false, false>(blocks);
    }
    /// `counts`: with cycle counts; `broadcast`: taken direct branches are broadcast.
    template <bool counts, bool broadcast>
    std::size_t retire_ordinary_as(std::span<const RetiredBlock> blocks) {
        std::array<std::uint8_t, 4096> bytes;
        // More atoms may wait here than the unit keeps: the same packets come of them, and several are made at once.
        // Not where counts come between them.
        constexpr unsigned most_here = counts ? most_atoms : 56;
        // Of a block: atoms, an address and a count, and what a store writes beyond them.
        constexpr std::size_t most_of_a_block = most_here + 9 + 4 + 8;
        const std::uint64_t room = sync_period_ == 0 ? bytes.size() : sync_period_ - sync_bytes_;
        std::uint8_t* out = bytes.data();
        const std::uint8_t* const stop = bytes.data() + std::min<std::uint64_t>(room, bytes.size() - most_of_a_block);
        // Before a synchronisation is due, no more wait than the unit keeps, since their bytes count.
        const std::uint8_t* check = counts ? stop : stop - std::min<std::ptrdiff_t>(stop - bytes.data(), most_here);
        Address at = start_.address;
        std::size_t taken = 0;
        // Copies: a byte that is written may be any member's, so members would be read again after each.
        std::uint64_t atoms = atoms_;
        unsigned atom_count = atom_count_, most = most_here;
        AddressDue due = address_due_;
        bool popped = popped_;
        std::uint64_t now = now_, counted = count_from_.value_or(0);
        const std::uint64_t threshold = std::max<std::uint64_t>(threshold_, 1);
        const bool stacks = stack_entries_ != 0;
        RecentAddresses recent(state_.addresses());
        const auto send_first = [&] {
            const auto eight = static_cast<std::uint8_t>(atoms);
            const AtomPacket packet =
                eight == 0xff ? next_packet(static_cast<std::uint32_t>(atoms), std::min(atom_count, most_atoms))
                              : packets_of_eight[eight];
            *out++ = packet.header;
            atoms >>= packet.count;
            atom_count -= packet.count;
        };
        const auto send_full = [&] {
            while (atom_count >= most_atoms) send_first();
        };
        const auto send_all = [&] {
            while (atom_count > 8) send_first();
            const std::uint64_t packets = packets_of_rest[1U << atom_count | static_cast<std::uint32_t>(atoms)];
            put_eight(out, packets);
            out += packets >> 56;
            atoms = 0;
            atom_count = 0;
        };
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            if (out >= check) [[unlikely]] {
                send_full();
                most = most_atoms;
                check = stop;
                if (out >= stop) break;
            }
            if (b.isa != isa::Isa::a64 || b.next_isa != isa::Isa::a64 || b.address < at || i.exception_return ||
                i.waypoint == Waypoint::barrier) [[unlikely]]
                break;
            const Address after = b.address + i.bytes;
            if (due != AddressDue::no) {
                send_all();
                out = put_address(out, at, recent);
                due = AddressDue::no;
            }
            popped = false;
            atoms |= std::uint64_t{b.passed} << atom_count;
            if (++atom_count >= most) send_full();
            if (stacks && b.passed && i.link) push({after, isa::Isa::a64});
            if (i.waypoint == Waypoint::indirect && b.passed) {
                popped = stacks && matches({b.next, isa::Isa::a64});
                if (!popped) due = AddressDue::branch_target;
            } else if (broadcast && b.passed) {
                due = AddressDue::always;
            }
            if constexpr (counts) {
                now = std::max(now, b.cycle);
                if (now - counted >= threshold) {
                    send_all();
                    out = put_count(out, now - counted);
                    counted = now;
                }
            }
            at = b.passed ? b.next : after;
            ++taken;
        }
        send_full();
        atoms_ = static_cast<std::uint32_t>(atoms);
        atom_count_ = atom_count;
        address_due_ = due;
        popped_ = popped;
        if (recent.moved()) recent.give(state_.addresses());
        if (taken == 0) return 0;
        counts_.p0 += taken;
        if (out != bytes.data()) put_made({bytes.data(), static_cast<std::size_t>(out - bytes.data())});
        now_ = std::max(now_, blocks[taken - 1].cycle);
        if constexpr (counts) count_from_ = counted;
        start_ = position_ = {at, isa::Isa::a64};
        unsettled_ = true;
        return taken;
    }
    /// `cycles`: since the last count; the threshold at least.
    std::uint8_t* put_count(std::uint8_t* out, std::uint64_t cycles) const {
        if (cycles > most_cycles()) {  // unknown
            *out++ = 0x0f;
            return out;
        }
        auto count = static_cast<std::uint32_t>(cycles - threshold_);
        if (count <= 3) {
            *out++ = static_cast<std::uint8_t>(0x10 | count);
        } else if (count <= 15 && choices_.cycle_count_format_2) {
            *out++ = 0x0d;
            *out++ = static_cast<std::uint8_t>(0xf0 | count);
        } else {
            *out++ = 0x0e;
            for (; count > 0x7f; count >>= 7) *out++ = static_cast<std::uint8_t>(count | 0x80);
            *out++ = static_cast<std::uint8_t>(count);
        }
        return out;
    }
    /// The first in the least significant byte.
    WM_INLINE static void put_eight(std::uint8_t* out, std::uint64_t bytes) {
        for (unsigned n = 0; n < 8; ++n) out[n] = static_cast<std::uint8_t>(bytes >> 8 * n);
    }
    /// In the fewest bytes, as compress() has it. Which form it takes is what nobody foresees: nothing here jumps by
    /// it.
    WM_INLINE static std::uint8_t* put_address(std::uint8_t* out, Address at, RecentAddresses& recent) {
        const std::uint64_t a = at.value & address_mask(8, false);
        const auto [newest, middle, oldest] = recent.entries();
        recent.set({a, newest, middle});
        const auto changed = static_cast<unsigned>(std::bit_width(a ^ (newest & ~std::uint64_t{1})));
        const std::uint64_t low = (a >> 2 & 0x7f) << 8;
        const bool two = changed > address_bits(1, false);
        std::uint64_t packet = 0x95 | low | (two ? 0x8000 | (a >> 9 & 0xff) << 16 : 0);
        unsigned count = two ? 3 : 2;
        const bool long_form = changed > address_bits(2, false), wide = changed > address_bits(4, false);
        packet = long_form ? (wide ? 0x9d : 0x9a) | low | (a >> 9 & 0x7f) << 16 | a >> 16 << 24 : packet;
        count = long_form ? (wide ? 9 : 5) : count;
        const bool match = (a == newest) | (a == middle) | (a == oldest);
        packet = match ? (a == newest ? 0x90 : a == middle ? 0x91 : 0x92) : packet;
        count = match ? 1 : count;
        put_eight(out, packet);
        out[8] = static_cast<std::uint8_t>(a >> 56);
        return out + count;
    }

    const bool ordinary_config_;  // no speculation, nothing that resources decide, no FIFO that fills
};

}  // namespace waymark::etm4
