/// What kinds of exceptions there are, whatever the protocol. A trace unit sends a number; its protocol has a table
/// that says what each number means, so that nothing else needs to know the numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace waymark::flow {

/// What made the processor leave the program's own order. A unit may send one number for several of these, as PFT does
/// for a Prefetch Abort and a breakpoint: such a number has the class that is named first in the protocol's table.
enum class ExceptionClass : std::uint8_t {
    unknown,   ///< the protocol's description does not name this number
    reserved,  ///< the protocol's description reserves it
    other,     ///< a cause that the unit itself does not name: generic, implementation defined

    reset,
    debug_halt,  ///< entry to Debug state
    breakpoint,  ///< debug exception of an instruction: breakpoint, BKPT, software step
    watchpoint,  ///< debug exception of a data access
    debug_monitor,

    supervisor_call,  ///< SVC
    hypervisor_call,  ///< HVC; where the unit has no class for traps, every entry to Hyp mode
    monitor_call,     ///< SMC
    call,             ///< one of these three
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
    external_interrupt,  ///< M profile: one of those that are numbered

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

/// `IRQ`, `supervisor call`.
[[nodiscard]] std::string_view name(ExceptionClass kind);

/// The table of a protocol's exceptions is constant and in static storage: a pointer to a row stays valid.
struct ExceptionType {
    std::uint32_t number{};  ///< as the unit sends it
    ExceptionClass kind{};
    std::string_view name{"unknown"};  ///< in the words of the protocol's description; in static storage

    /// The description says what it is.
    [[nodiscard]] constexpr bool known() const {
        return kind != ExceptionClass::unknown && kind != ExceptionClass::reserved;
    }
    friend auto operator<=>(const ExceptionType&, const ExceptionType&) = default;
};

inline constexpr ExceptionType unknown_exception{};

}  // namespace waymark::flow
