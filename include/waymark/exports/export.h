/// Shared declarations of all exports: the table of formats, the report of an export, and the choice of a metric. Every
/// format is one function in a separate header, from `answers::Answers` to bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"

namespace waymark::exports {

/// The outcome of an export.
struct ExportReport {
    std::uint64_t bytes{};  ///< written
    /// What was omitted, merged, or differs from what a reader of the format would expect: one sentence each.
    std::vector<std::string> notes;
};

/// A format: its description for users, and the parts of a capture that it needs.
struct Format {
    std::string_view name;
    std::string_view what;   ///< its contents
    std::string_view opens;  ///< the programs that read it
    std::string_view needs;  ///< of the capture
    std::string_view extension;
    // The parts of the answers it uses, if they exist.
    bool calls{}, timeline{}, instructions{}, ranges{};
};

/// Every format, in the order in which lists show them.
[[nodiscard]] std::span<const Format> formats();
/// The former name of `llvm-profile`, before there was Google's AutoFDO text, `autofdo-text`; find_format accepts it.
inline constexpr std::string_view old_name_of_llvm_profile = "autofdo";
/// Null if there is no format with that name.
[[nodiscard]] const Format* find_format(std::string_view name);

/// Index of a metric, by its name or a part of the name that identifies it; empty: the first. `usage`: there is none,
/// with the existing names.
[[nodiscard]] Result<std::size_t> find_metric(const answers::Answers& answers, std::string_view name);

}  // namespace waymark::exports
