/// A trace unit beside a recorded Cortex-M core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/record/truth.h"
#include "waymark/record_m/core_log.h"

namespace waymark::record {

inline constexpr std::string_view itm_name = "ITM_0", stm_name = "STM_0";

/// Calls come in the order of execution. Each instruction takes one cycle.
class CoreUnit {
public:
    virtual ~CoreUnit() = default;
    /// Tracing begins or ends.
    virtual void enable(bool on) = 0;
    /// As CoreListener::state().
    virtual void state(const CoreMode&) {}
    virtual void instruction(const CoreInstruction& instruction, std::uint32_t next, std::uint64_t cycle) = 0;
    /// The instruction completed; it is not known where execution continued before the next exception.
    virtual void lost(const CoreInstruction& instruction, std::uint64_t cycle) = 0;
    virtual void exception(std::uint32_t number, std::optional<std::uint32_t> preferred_return, std::uint32_t handler,
                           std::uint64_t cycle) = 0;
    virtual void handler_ended(std::uint32_t number, std::uint64_t cycle) = 0;
    virtual void returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t resumed, std::uint64_t cycle) = 0;
    /// Writes the rest of the trace, and describes it. `vectors`: address of the vector table.
    [[nodiscard]] virtual Status finish(const std::string& core, const std::string& core_type, std::uint32_t vectors,
                                        capture::Capture& capture, Truth& truth) = 0;
    /// A summary of the recording, as a part of a sentence.
    [[nodiscard]] virtual std::string summary() const = 0;
    /// Whether the trace contains anything.
    [[nodiscard]] virtual bool any() const = 0;
};

}  // namespace waymark::record
