#include "waymark/flow/exception.h"

#include <array>

namespace waymark::flow {

std::string_view name(ExceptionClass kind) {
    constexpr std::array<std::string_view, exception_classes> names{"unknown",
                                                                    "reserved",
                                                                    "other",
                                                                    "reset",
                                                                    "debug halt",
                                                                    "breakpoint",
                                                                    "watchpoint",
                                                                    "debug monitor",
                                                                    "supervisor call",
                                                                    "hypervisor call",
                                                                    "monitor call",
                                                                    "call",
                                                                    "trap",
                                                                    "undefined instruction",
                                                                    "check failed",
                                                                    "prefetch abort",
                                                                    "data abort",
                                                                    "alignment",
                                                                    "system error",
                                                                    "IRQ",
                                                                    "FIQ",
                                                                    "NMI",
                                                                    "external interrupt",
                                                                    "hard fault",
                                                                    "memory fault",
                                                                    "bus fault",
                                                                    "usage fault",
                                                                    "secure fault",
                                                                    "PendSV",
                                                                    "SysTick",
                                                                    "lazy FP push",
                                                                    "lockup",
                                                                    "transaction failure"};
    static_assert(!names.back().empty());
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace waymark::flow
