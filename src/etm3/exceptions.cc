#include "waymark/etm3/exceptions.h"

#include <array>

#include "waymark/core/result.h"

namespace waymark::etm3 {

namespace {

using flow::ExceptionClass;
using Table = std::array<flow::ExceptionType, exception_numbers>;

constexpr Table exceptions_of_a_and_r = [] {
    Table rows{};
    for (std::uint32_t n = 0; n < rows.size(); ++n) rows[n] = {n, ExceptionClass::reserved, "reserved"};
    const auto row = [&](std::uint32_t n, ExceptionClass kind, std::string_view name) { rows[n] = {n, kind, name}; };
    row(0, ExceptionClass::reserved, "none");
    row(1, ExceptionClass::debug_halt, "Debug state entry");
    row(2, ExceptionClass::monitor_call, "SMC");
    row(3, ExceptionClass::hypervisor_call, "Hyp mode entry");
    row(4, ExceptionClass::system_error, "asynchronous Data Abort");
    row(5, ExceptionClass::check_failed, "Jazelle");
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

constexpr Table exceptions_of_m = [] {
    Table rows{};
    // From 24 on, IRQ8 and the following interrupts.
    for (std::uint32_t n = 0; n < rows.size(); ++n)
        rows[n] = n < 24 ? flow::ExceptionType{n, ExceptionClass::reserved, "reserved"}
                         : flow::ExceptionType{n, ExceptionClass::external_interrupt, "external interrupt"};
    const auto row = [&](std::uint32_t n, ExceptionClass kind, std::string_view name) { rows[n] = {n, kind, name}; };
    row(0, ExceptionClass::reserved, "none");
    constexpr std::array<std::string_view, 8> first{"IRQ0", "IRQ1", "IRQ2", "IRQ3", "IRQ4", "IRQ5", "IRQ6", "IRQ7"};
    for (std::uint32_t n = 1; n < 8; ++n) row(n, ExceptionClass::external_interrupt, first[n]);
    row(8, ExceptionClass::external_interrupt, first[0]);
    row(9, ExceptionClass::usage_fault, "UsageFault");
    row(10, ExceptionClass::nmi, "NMI");
    row(11, ExceptionClass::supervisor_call, "SVC");
    row(12, ExceptionClass::watchpoint, "DebugMonitor");
    row(13, ExceptionClass::memory_fault, "MemManage");
    row(14, ExceptionClass::pend_sv, "PendSV");
    row(15, ExceptionClass::sys_tick, "SysTick");
    row(17, ExceptionClass::reset, "Reset");
    row(19, ExceptionClass::hard_fault, "HardFault");
    row(21, ExceptionClass::bus_fault, "BusFault");
    return rows;
}();

}  // namespace

const flow::ExceptionType& exception_type(std::uint32_t number, bool m_profile) {
    WM_CHECK(number < exception_numbers);
    return (m_profile ? exceptions_of_m : exceptions_of_a_and_r)[number];
}

}  // namespace waymark::etm3
