/// Signals of a Linux program as its trace shows them: which exception led into the kernel that delivered one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "waymark/flow/exception.h"
#include "waymark/isa/place.h"
#include "waymark/record/code.h"

namespace waymark::record {

/// What a word `words::signal` and its halves (record/ring.h) say.
struct DeliveredSignal {
    int number{};
    bool raised{};      ///< by the thread's own instruction
    isa::Place back{};  ///< where the handler returns to
    DeliveredSignal(std::uint32_t value, std::span<const std::uint32_t> halves, bool aarch64);
};

struct SignalException {
    flow::ExceptionClass kind = flow::ExceptionClass::irq;
    /// Of the block entered last: its first instruction that did not complete; none: the block ran to its end.
    std::optional<std::uint32_t> end{};
    bool executed{};  ///< the instruction that raised it counts as executed, so execution does not go on at `back`
};
/// `held`: the block entered last, null if there is none. `undefined_executes`: flow::UnitFactory's.
[[nodiscard]] SignalException exception_of(const DeliveredSignal& signal, const Code* held, bool undefined_executes);

}  // namespace waymark::record
