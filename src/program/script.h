/// Shared code of the writers of scripts.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

#include "waymark/program/script.h"

namespace waymark::program {

/// The sentences at the top of a plan's script: the programmed units, requirements of the hardware, and the proof.
[[nodiscard]] std::vector<std::string> head_of(const Plan& plan, const Proof& proof);

/// Calls `f(component, steps)` in the order of a command.
enum class ScriptPart : std::uint8_t { start, stop, release };
void for_each_part(const Plan& plan, ScriptPart command,
                   const std::function<void(const Component&, std::span<const flow::RegisterStep>)>& f);

[[nodiscard]] Result<std::string> sysfs_script(const Plan& plan, const Proof& proof, const LinuxWords& words);
[[nodiscard]] Result<std::string> perf_script(const Plan& plan, const Proof& proof, const LinuxWords& words);
[[nodiscard]] std::string json_script(const Plan& plan, const Proof& proof);

}  // namespace waymark::program
