/// Tells whether answers come from samples, or only from messages.
#pragma once

#include <string_view>

#include "waymark/answers/account.h"
#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Whether single instructions were sampled. Code without a sample may have run too, and the code before or after a
/// sampled instruction is unknown.
[[nodiscard]] inline bool of_samples(const Answers& answers) {
    return !answers.metrics.empty() && answers.metrics.front().unit == "samples";
}

/// Whether answers come from output of programs and units (ITM, STM) without samples of the program counter, so that
/// nothing is known about code.
[[nodiscard]] inline bool of_messages(const Answers& answers) {
    return of_samples(answers) && has_reason(answers.account, AccountReason::decoded) &&
           !has_reason(answers.account, AccountReason::sampled);
}

/// The contents of answers without program flow: `counters`, `messages` or `samples`. Otherwise empty.
[[nodiscard]] inline std::string_view subject_without_flow(const Answers& answers) {
    return answers.unit == "DPU"  ? "counters"
           : of_messages(answers) ? "messages"
           : of_samples(answers)  ? "samples"
                                  : "";
}

}  // namespace waymark::answers
