/// Copies of /proc/kallsyms: names of the running kernel's functions, at their addresses as it ran.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "waymark/core/result.h"

namespace waymark::analysis {

/// The text of a copy. Errors: the errors of reading.
[[nodiscard]] Result<std::string> read_kallsyms(const std::filesystem::path& file);

/// Whether a file can be a copy. A pipe is not looked at: it can be read once. `usage`: there is no such file, or it
/// names no function at an address; others: it cannot be read.
[[nodiscard]] Status check_kallsyms(const std::filesystem::path& file);

/// Why a file that can be read is none, as an end of a sentence.
inline constexpr std::string_view no_kallsyms =
    "has no lines like the ones of /proc/kallsyms, or only addresses of 0, as others than root see them";

/// A function of the running kernel, or of one of its modules.
struct KernelFunction {
    std::uint64_t address{};
    std::string name{};
    std::string module{};  ///< empty: the kernel itself
    bool global{};         ///< other files can call it by this name
};

/// Calls `take` for each function, a line `ADDRESS TYPE NAME` or `ADDRESS TYPE NAME [MODULE]`; false from it ends that.
void kallsyms_functions(std::string_view text, const std::function<bool(KernelFunction function)>& take);

}  // namespace waymark::analysis
