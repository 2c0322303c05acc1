/// Exceptions and signals of a recording: derives from QEMU's log how far the block before an exception came, and which
/// exception the unit should trace.
#include <fmt/format.h>

#include <utility>

#include "waymark/record/recorder.h"
#include "waymark/record/signals.h"
#include "waymark/record/vectors.h"

namespace waymark::record {

namespace {

/// Whether an instruction that is found undefined counts as executed: for some units it does, but an undefined branch
/// is not a waypoint.
bool counts_when_undefined(const CodeInstruction& instruction, const flow::UnitFactory& units) {
    return units.undefined_executes() && instruction.waypoint == isa::Waypoint::none;
}

}  // namespace

flow::Context Recorder::context_of(std::uint32_t bits, std::uint32_t thread) {
    return {.ns = (bits & words::ns) != 0, .hyp = (bits & words::hyp) != 0, .context_id = thread};
}

/// Index in the last entered block of the instruction at `address`.
std::optional<std::uint32_t> Recorder::index_in_held(Thread& t, Address address) {
    if (t.held == 0 || t.held >= blocks_.size()) return std::nullopt;
    return known(t, t.held).code.index_of(address);
}

void Recorder::exception_aarch32(Thread& t) {
    const Address link{t.halves[0] | t.halves[1] << 16}, vector{t.halves[2] | t.halves[3] << 16};
    const std::uint32_t number = t.exception, state = t.halves[4];
    t.halves.clear();
    // The value of the link register: the Architecture Reference Manual's table of exception return offsets. Hyp mode
    // has its return address in another register, which QEMU's log does not show.
    const bool has_link = (state & words::hyp) == 0;
    enum QemuException : std::uint32_t {
        undefined = 1,
        supervisor_call,
        prefetch_abort,
        data_abort,
        irq,
        fiq,
        breakpoint,
        hypervisor_call = 11,
        hyp_trap,
        secure_monitor_call,
        virtual_irq,
        virtual_fiq,
        virtual_serror = 24
    };
    constexpr std::uint64_t hyp_trap_vector = 0x14;
    const auto before_link = [&](std::uint64_t bytes) {
        return has_link ? std::optional<Address>{{(link.value - bytes) & 0xffffffff}} : std::nullopt;
    };
    ExceptionClass kind = ExceptionClass::other;
    std::optional<Address> back;       // the instruction that runs when the handler returns
    std::optional<std::uint32_t> end;  // first instruction of the last entered block that did not complete
    switch (number) {
        case undefined: {
            // The instruction counts as executed. If only an access check found it, its block may have further
            // instructions.
            kind = ExceptionClass::undefined;
            const bool thumb = t.held != 0 && t.held < blocks_.size() && known(t, t.held).code.isa != isa::Isa::a32;
            if (const auto at = before_link(thumb ? 2 : 4)) {
                if (const auto index = index_in_held(t, *at)) {
                    end = *index;
                    if (counts_when_undefined(blocks_[t.held].code.instructions[*index], *options_.units))
                        end = *index + 1;
                    else
                        back = at;
                }
            }
            break;
        }
        case supervisor_call: kind = ExceptionClass::supervisor_call; break;
        case breakpoint:
        case prefetch_abort:
            kind = number == breakpoint ? ExceptionClass::breakpoint : ExceptionClass::prefetch_abort;
            back = before_link(4);
            break;
        case data_abort:
            kind = ExceptionClass::data_abort;
            back = before_link(8);
            if (back) end = index_in_held(t, *back);
            break;
        case irq:
        case virtual_irq:
            kind = ExceptionClass::irq;
            back = before_link(4);
            break;
        case fiq:
        case virtual_fiq:
            kind = ExceptionClass::fiq;
            back = before_link(4);
            break;
        case hypervisor_call: kind = ExceptionClass::hypervisor_call; break;
        case hyp_trap: kind = ExceptionClass::trap; break;
        case secure_monitor_call: kind = ExceptionClass::monitor_call; break;
        case virtual_serror: kind = ExceptionClass::system_error; break;
        default: break;
    }
    // With -icount, QEMU leaves a block before an access to a device and does not report the access itself: an
    // interrupt comes before or after it.
    if (!end && t.cut && back && t.held != 0 && t.held < blocks_.size()) {
        const Code& code = known(t, t.held).code;
        const auto size = static_cast<std::uint32_t>(code.instructions.size());
        const std::uint32_t at = *back == code.end() ? size : code.index_of(*back).value_or(0);
        if (at >= *t.cut) end = at;
    }
    // An exception that Hyp mode traps from a lower mode uses Hyp mode's own vector, regardless of its kind in the
    // lower mode.
    if ((state & words::hyp) != 0 && vector.value % vector_table_bytes == hyp_trap_vector &&
        kind != ExceptionClass::hypervisor_call)
        kind = ExceptionClass::trap;
    settle(t, end, number == data_abort && end.has_value());
    if (!t.tracker.attached() || recorded_.stopped) return;
    std::optional<Place> place;
    if (back) place = Place{*back, isa_at(t, *back)};
    t.tracker.context(context_of(state, t.number));
    t.tracker.exception(kind, place, Place{vector, (state & words::thumb) != 0 ? isa::Isa::t32 : isa::Isa::a32});
    notice_progress(t, vector);
}

/// Finds the exception that led into the kernel, which then delivered the signal.
void Recorder::signal(Thread& t) {
    const DeliveredSignal signal(t.exception, t.halves, options_.aarch64);
    t.halves.clear();
    const bool holds = signal.raised && t.held != 0 && t.held < blocks_.size();
    const SignalException taken =
        exception_of(signal, holds ? &known(t, t.held).code : nullptr, options_.units->undefined_executes());
    settle(t, taken.end);
    if (!extent_.began()) earlier_code_.interrupted(t.number);
    if (!t.tracker.attached() || recorded_.stopped) return;
    t.tracker.exception(taken.kind, taken.executed ? std::nullopt : std::optional<Place>(signal.back), std::nullopt);
}

void Recorder::exception_aarch64(Thread& t) {
    const auto wide = [&](std::size_t at) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 4; ++i) value |= std::uint64_t{t.halves[at + i]} << 16 * i;
        return value;
    };
    const Address back{wide(0)}, vector{wide(4)};
    const std::uint32_t number = t.exception, state = t.halves[8], syndrome = t.halves[9];
    t.halves.clear();
    if (t.a64.aarch32()) {
        // The signal was taken from code that is not recorded: trace begins again in the handler.
        settle(t);
        t.a64.state(state);
        t.tracker.context(t.a64.context());
        return;
    }
    const std::optional<std::uint32_t> index = index_in_held(t, back);
    const ExceptionClass kind = a64_exception(number, syndrome, !index);
    std::optional<std::uint32_t> end;
    // An instruction that could not be fetched may be the first of the previous block, to which it returned; the check
    // of a branch target fails when the instruction is fetched.
    constexpr std::uint32_t fetch = 0x20, fetch_same = 0x21;
    if (index && stops_instruction(kind) && syndrome != fetch && syndrome != fetch_same) {
        end = *index;
    } else if (t.cut && t.held != 0 && t.held < blocks_.size()) {
        // With -icount, this is an interrupt before or after an access to a device.
        const Code& code = known(t, t.held).code;
        const auto size = static_cast<std::uint32_t>(code.instructions.size());
        const std::uint32_t at = back == code.end() ? size : code.index_of(back).value_or(0);
        if (at >= *t.cut) end = at;
    }
    settle(t, end, kind == ExceptionClass::data_abort && end.has_value());
    t.a64.state(state);
    if (recorded_.stopped) return;
    if (!t.tracker.attached()) return notice_progress(t, vector);
    t.tracker.exception(kind, Place{back, isa::Isa::a64}, Place{vector, isa::Isa::a64}, t.a64.context());
    notice_progress(t, vector);
}

void Recorder::notice_progress(Thread& t, Address vector) {
    constexpr std::uint32_t most_fruitless = 1000;
    t.fruitless = std::exchange(t.exception_cycle, clock_.cycle) == clock_.cycle ? t.fruitless + 1 : 0;
    if (t.fruitless < most_fruitless) return;
    recorded_.stuck = vector;
    stop(fmt::format("at {:#x}, where exception followed exception and nothing executed", vector.value));
}

void Recorder::state(Thread& t, std::uint32_t bits) {
    settle(t);
    if (!options_.aarch64) {
        t.tracker.context(context_of(bits, t.number));
        return;
    }
    const bool was_aarch32 = t.a64.aarch32();
    t.a64.state(bits);
    if (t.a64.aarch32() && !was_aarch32) {
        // The target of an exception return to AArch32 cannot be recorded.
        ++recorded_.stays_in_aarch32;
        t.tracker.lose_place();
    }
    t.tracker.context(t.a64.context());
}

void Recorder::written(Thread& t) {
    const std::uint32_t which = t.exception;
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 4; ++i) value |= std::uint64_t{t.halves[i]} << 16 * i;
    t.halves.clear();
    settle(t);
    const auto reg = static_cast<A64Register>(which & (words::unread - 1));
    if ((which & words::unread) != 0) {
        if (options_.unit.vmid || !is_of_vmid_only(reg)) ++recorded_.unread_registers;
        return;
    }
    t.a64.wrote(reg, value);
    t.tracker.context(t.a64.context());
}

}  // namespace waymark::record
