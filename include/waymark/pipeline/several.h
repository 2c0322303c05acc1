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

/// A capture among several that gave no answers.
struct LeftOut {
    std::string capture, why;
};

/// The answers of several captures added up, each as `read` returns them: of an answers file, pipeline::read_summand.
/// Runs of counters, which may count different events, are added like in analysis::merge_counter_runs, unless one of
/// them is a sum. Captures that exist but give nothing (`not_found`) are added
/// to `left_out` if others give something. Precondition: there is a capture. Errors: the errors of `read`; `usage`:
/// captures of several units.
[[nodiscard]] Result<answers::Answers> answers_of_all(
    const std::vector<std::string>& captures,
    const std::function<Result<answers::Answers>(const std::string& capture)>& read, std::vector<LeftOut>& left_out);

/// Whether a capture with this error may be left out if others give something: it exists, but contains nothing that can
/// be decoded.
[[nodiscard]] bool may_be_left_out(const std::string& capture, const Error& error);

/// Figures of units of one protocol add up; for units of different protocols, returns the error (`usage`). `first`,
/// `capture`: names.
[[nodiscard]] std::optional<Error> not_of_one_unit(const std::string& first, const std::string& first_unit,
                                                   const std::string& capture, const std::string& unit);

/// The reasons why one of these answers is not complete, the worst first: trace that is missing, damaged or
/// contradicted; then a part of the run that its account names; then a file that was given and that no capture needs.
/// `of` is null if there is none.
struct Shortcoming {
    const answers::Answers* of{};
    std::string what{};  ///< a sentence
};
[[nodiscard]] Shortcoming shortcoming_of(const std::vector<const answers::Answers*>& all);

}  // namespace waymark::pipeline
