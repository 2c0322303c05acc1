#include "waymark/flow/register_steps.h"

#include <fmt/format.h>

#include <utility>

namespace waymark::flow {

RegisterStep write_step(unsigned offset, std::uint32_t value, std::string name, std::string why) {
    return {RegisterStep::Kind::write, offset, value, 0xffffffff, std::move(name), std::move(why)};
}
RegisterStep wait_step(unsigned offset, std::uint32_t mask, std::uint32_t value, std::string name, std::string why) {
    return {RegisterStep::Kind::wait, offset, value, mask, std::move(name), std::move(why)};
}

std::string_view text_of(AccessResult result) {
    switch (result) {
        case AccessResult::done: return "it was done";
        case AccessResult::not_idle: return "the unit has not stopped";
        case AccessResult::locked: return "the software lock is set";
        case AccessResult::read_only: return "the register is read-only";
        case AccessResult::write_only: return "the register is write-only";
        case AccessResult::not_present: return "the unit has no such register";
        case AccessResult::error: return "the bus answers with an error: the OS Lock is set, or power is missing";
    }
    return {};
}

Status carry_out(std::span<const RegisterStep> steps, RegisterPort& port, std::uint64_t& cycle,
                 std::uint64_t most_reads) {
    for (const RegisterStep& step : steps) {
        const auto refused = [&](std::string_view access, AccessResult result) {
            return Error{Errc::bad_format,
                         fmt::format("{} of {} ({:#05x}): {}", access, step.name, step.offset, text_of(result))};
        };
        if (step.kind == RegisterStep::Kind::write) {
            if (const AccessResult result = port.write(step.offset, step.value, cycle); result != AccessResult::done)
                return refused("write", result);
            ++cycle;
            continue;
        }
        for (std::uint64_t reads = 0;; ++reads) {
            const ReadResult read = port.read(step.offset, cycle);
            if (read.result != AccessResult::done) return refused("read", read.result);
            if ((read.value & step.mask) == step.value) break;
            if (reads == most_reads)
                return Error{Errc::bad_format, fmt::format("{} ({:#05x}) stays {:#x}; bits {:#x} were to become {:#x}",
                                                           step.name, step.offset, read.value, step.mask, step.value)};
            ++cycle;
        }
    }
    return Nothing{};
}

}  // namespace waymark::flow
