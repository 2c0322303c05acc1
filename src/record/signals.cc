#include "waymark/record/signals.h"

#include <csignal>

#include "waymark/record/ring.h"

namespace waymark::record {

using flow::ExceptionClass;

DeliveredSignal::DeliveredSignal(std::uint32_t value, std::span<const std::uint32_t> halves, bool aarch64)
    : number(static_cast<int>(value & (words::raised - 1))), raised((value & words::raised) != 0) {
    for (std::size_t i = 0; i + 1 < halves.size(); ++i) back.address.value |= std::uint64_t{halves[i]} << 16 * i;
    back.isa = aarch64 ? isa::Isa::a64 : (halves.back() & words::thumb) != 0 ? isa::Isa::t32 : isa::Isa::a32;
}

SignalException exception_of(const DeliveredSignal& signal, const Code* held, bool undefined_executes) {
    SignalException out;
    if (!signal.raised) return out;
    if (held != nullptr) out.end = held->index_of(signal.back.address);
    // Linux has breakpoints that are undefined instructions, and sends SIGTRAP for them too.
    const CodeInstruction* const cause = out.end ? &held->instructions[*out.end] : nullptr;
    if (signal.number == SIGTRAP && (cause == nullptr || cause->special == Special::breakpoint)) {
        out.kind = ExceptionClass::breakpoint;
    } else if (signal.number == SIGILL || signal.number == SIGFPE || signal.number == SIGTRAP) {
        out.kind = ExceptionClass::undefined;
        // A branch that is found undefined is not a waypoint.
        out.executed = cause != nullptr && undefined_executes && cause->waypoint == isa::Waypoint::none;
        if (out.executed) ++*out.end;
    } else if (signal.number == SIGSEGV || signal.number == SIGBUS) {
        out.kind = out.end ? ExceptionClass::data_abort : ExceptionClass::prefetch_abort;
    }
    return out;
}

}  // namespace waymark::record
