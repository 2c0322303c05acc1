/// Reads copies of /proc/kallsyms: names and addresses of the running kernel's functions.
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

/// Checks whether a file can be a copy. A pipe is not examined, since it can be read only once. `usage`: the file does
/// not exist, or names no function with an address; others: it cannot be read.
[[nodiscard]] Status check_kallsyms(const std::filesystem::path& file);

/// The reason why a readable file is not such a copy, as the end of a sentence.
inline constexpr std::string_view no_kallsyms =
    "has no lines like those in /proc/kallsyms, or only addresses of 0, which users other than root see";

/// A function of the running kernel, or of one of its modules.
struct KernelFunction {
    std::uint64_t address{};
    std::string name{};
    std::string module{};  ///< empty for the kernel itself
    bool global{};         ///< other files can call it by this name
};

/// Calls `take` for each function, from a line `ADDRESS TYPE NAME` or `ADDRESS TYPE NAME [MODULE]`, until it returns
/// false.
void kallsyms_functions(std::string_view text, const std::function<bool(KernelFunction function)>& take);

}  // namespace waymark::analysis
