/// Several captures of one program together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"

namespace waymark::pipeline {

/// A capture of several that gave nothing.
struct LeftOut {
    std::string capture, why;
};

/// The answers of several captures added up, each as `read` returns them; runs of counters, which need not count the
/// same, as analysis::merge_counter_runs does. Captures that exist but give nothing (`not_found`) are added to
/// `left_out` if others give something. Precondition: there is a capture. Errors: the errors of `read`; `usage`:
/// captures of several units.
[[nodiscard]] Result<answers::Answers> answers_of_all(
    const std::vector<std::string>& captures,
    const std::function<Result<answers::Answers>(const std::string& capture)>& read, std::vector<LeftOut>& left_out);

/// Whether a capture with this error may be left out where others give something: it exists, and contains nothing that
/// could be decoded.
[[nodiscard]] bool may_be_left_out(const std::string& capture, const Error& error);

/// Figures of units of one protocol add up; for units of different protocols, returns the error (`usage`). `first`,
/// `capture`: names.
[[nodiscard]] std::optional<Error> not_of_one_unit(const std::string& first, const std::string& first_unit,
                                                   const std::string& capture, const std::string& unit);

/// Why one of these is not complete, the worst first: trace that is missing, damaged or contradicted; then
/// a part of the run that its account names; then a file that was given and that no capture needs. `of` is null where
/// there is nothing.
struct Shortcoming {
    const answers::Answers* of{};
    std::string what{};  ///< a sentence
};
[[nodiscard]] Shortcoming shortcoming_of(const std::vector<const answers::Answers*>& all);

}  // namespace waymark::pipeline
