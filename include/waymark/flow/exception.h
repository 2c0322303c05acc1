/// Classes of exceptions, independent of the protocol. A trace unit sends a number. Its protocol has a table with the
/// meaning of each number, so that other layers do not need the numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace waymark::flow {

/// The cause of leaving the program's order. A unit may send one number for several of these, as PFT does for a
/// Prefetch Abort and a breakpoint: such a number has the class that comes first in the protocol's table.
enum class ExceptionClass : std::uint8_t {
    unknown,   ///< the protocol's description does not name this number
    reserved,  ///< the protocol's description reserves it
    other,     ///< a cause without a class: generic, implementation defined

    reset,
    debug_halt,  ///< entry to Debug state
    breakpoint,  ///< debug exception of an instruction: breakpoint, BKPT, software step
    watchpoint,  ///< debug exception of a data access
    debug_monitor,

    supervisor_call,  ///< SVC
    hypervisor_call,  ///< HVC; for units without a class for traps, every entry to Hyp mode
    monitor_call,     ///< SMC
    call,             ///< SVC, HVC or SMC, not distinguished
    trap,             ///< an instruction that a higher exception level does not permit
    undefined,        ///< undefined instruction
    check_failed,     ///< a check of ThumbEE

    prefetch_abort,  ///< an instruction could not be fetched
    data_abort,      ///< a data access failed, synchronously
    alignment,       ///< misaligned PC, SP or access
    system_error,    ///< asynchronous abort, SError

    irq,
    fiq,
    nmi,
    external_interrupt,  ///< M profile: a numbered external interrupt

    // M profile
    hard_fault,
    memory_fault,  ///< MemManage
    bus_fault,
    usage_fault,
    secure_fault,
    pend_sv,
    sys_tick,
    lazy_fp_push,
    lockup,

    transaction_failure,  ///< a transaction of TME failed
};
inline constexpr unsigned exception_classes = static_cast<unsigned>(ExceptionClass::transaction_failure) + 1;

/// Words such as `IRQ`, `supervisor call`.
[[nodiscard]] std::string_view name(ExceptionClass kind);

/// A row of a protocol's table of exceptions, which is constant and in static storage: pointers to rows stay valid.
struct ExceptionType {
    std::uint32_t number{};  ///< number that the unit sends
    ExceptionClass kind{};
    std::string_view name{"unknown"};  ///< in the words of the protocol's description; in static storage

    /// Whether the description defines this exception.
    [[nodiscard]] constexpr bool known() const {
        return kind != ExceptionClass::unknown && kind != ExceptionClass::reserved;
    }
    friend auto operator<=>(const ExceptionType&, const ExceptionType&) = default;
};

inline constexpr ExceptionType unknown_exception{};

}  // namespace waymark::flow
