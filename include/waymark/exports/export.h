/// What all exports have in common: the table of formats, what an export reports, and which metric it is about. Every
/// format is one function in a header of its own, from `answers::Answers` to bytes.
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

/// What came of an export.
struct ExportReport {
    std::uint64_t bytes{};  ///< written
    /// What was left out, merged, or is not what a reader of the format would expect: a sentence each.
    std::vector<std::string> notes;
};

/// A format, for people who choose one and for what has to be asked of a capture beforehand.
struct Format {
    std::string_view name;
    std::string_view what;   ///< what is in it
    std::string_view opens;  ///< which program reads it
    std::string_view needs;  ///< of the capture
    std::string_view extension;
    // Which parts of the answers it is made from, where there are such.
    bool calls{}, timeline{}, instructions{}, ranges{};
};

/// Every format, in the order in which lists show them.
[[nodiscard]] std::span<const Format> formats();
/// What `llvm-profile` was called before there was Google's AutoFDO text, `autofdo-text`; find_format knows it.
inline constexpr std::string_view old_name_of_llvm_profile = "autofdo";
/// Null: there is none of that name.
[[nodiscard]] const Format* find_format(std::string_view name);

/// Index of a metric, by its name or a part of the name that no other metric has; empty: the first. `usage`: there is
/// none, with the names there are.
[[nodiscard]] Result<std::size_t> find_metric(const answers::Answers& answers, std::string_view name);

}  // namespace waymark::exports
