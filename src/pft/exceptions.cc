#include "waymark/pft/exceptions.h"

#include <array>

#include "waymark/core/result.h"

namespace waymark::pft {

namespace {

using flow::ExceptionClass;

constexpr auto exception_table = [] {
    std::array<flow::ExceptionType, exception_numbers> rows{};
    // Numbers from 16 on belong to the M profile, for which there is no PTM.
    for (std::uint32_t n = 0; n < rows.size(); ++n) rows[n].number = n;
    const auto row = [&](std::uint32_t n, ExceptionClass kind, std::string_view name) { rows[n] = {n, kind, name}; };
    row(0, ExceptionClass::reserved, "none");
    row(1, ExceptionClass::debug_halt, "Debug state entry");
    row(2, ExceptionClass::monitor_call, "SMC");
    row(3, ExceptionClass::hypervisor_call, "Hyp mode entry");
    row(4, ExceptionClass::system_error, "asynchronous Data Abort");
    row(5, ExceptionClass::check_failed, "ThumbEE check failed");
    row(6, ExceptionClass::reserved, "reserved");
    row(7, ExceptionClass::reserved, "reserved");
    row(8, ExceptionClass::reset, "processor reset");
    row(9, ExceptionClass::undefined, "Undefined Instruction");
    row(10, ExceptionClass::supervisor_call, "SVC");
    row(11, ExceptionClass::prefetch_abort, "Prefetch Abort or breakpoint");
    row(12, ExceptionClass::data_abort, "synchronous Data Abort or watchpoint");
    row(13, ExceptionClass::other, "generic");
    row(14, ExceptionClass::irq, "IRQ");
    row(15, ExceptionClass::fiq, "FIQ");
    return rows;
}();

}  // namespace

const flow::ExceptionType& exception_type(std::uint32_t number) {
    WM_CHECK(number < exception_numbers);
    return exception_table[number];
}

std::uint32_t exception_number(ExceptionClass kind) {
    switch (kind) {
        case ExceptionClass::debug_halt: return 1;
        case ExceptionClass::monitor_call: return 2;
        case ExceptionClass::hypervisor_call:
        case ExceptionClass::trap: return 3;
        case ExceptionClass::system_error: return 4;
        case ExceptionClass::check_failed: return 5;
        case ExceptionClass::reset: return 8;
        case ExceptionClass::undefined: return 9;
        case ExceptionClass::supervisor_call: return 10;
        case ExceptionClass::prefetch_abort:
        case ExceptionClass::breakpoint: return 11;
        case ExceptionClass::data_abort:
        case ExceptionClass::watchpoint: return 12;
        case ExceptionClass::irq: return 14;
        case ExceptionClass::fiq: return 15;
        default: return 13;
    }
}

std::uint64_t linux_vector(ExceptionClass kind) {
    switch (kind) {
        case ExceptionClass::undefined: return 0xffff0004;
        case ExceptionClass::supervisor_call: return 0xffff0008;
        case ExceptionClass::breakpoint:
        case ExceptionClass::prefetch_abort: return 0xffff000c;
        case ExceptionClass::data_abort: return 0xffff0010;
        default: return 0xffff0018;  // IRQ
    }
}

}  // namespace waymark::pft
