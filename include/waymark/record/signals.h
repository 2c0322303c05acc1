/// Signals of a Linux program in its trace: the exception that led into the kernel, which then delivered the signal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "waymark/flow/exception.h"
#include "waymark/isa/place.h"
#include "waymark/record/code.h"

namespace waymark::record {

/// Contents of a word `words::signal` and its halves (record/ring.h).
struct DeliveredSignal {
    int number{};
    bool raised{};      ///< by the thread's own instruction
    isa::Place back{};  ///< the place to which the handler returns
    DeliveredSignal(std::uint32_t value, std::span<const std::uint32_t> halves, bool aarch64);
};

struct SignalException {
    flow::ExceptionClass kind = flow::ExceptionClass::irq;
    /// First instruction of the last entered block that did not complete; nullopt: the block ran to its end.
    std::optional<std::uint32_t> end{};
    bool executed{};  ///< the instruction that raised it counts as executed, so execution does not continue at `back`
};
/// `held`: the last entered block, null if there is none. `undefined_executes`: the result of flow::UnitFactory.
[[nodiscard]] SignalException exception_of(const DeliveredSignal& signal, const Code* held, bool undefined_executes);

}  // namespace waymark::record
