/// Tells whether answers come from samples, or only from messages.
#pragma once

#include <algorithm>
#include <string_view>

#include "waymark/answers/account.h"
#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Single instructions were sampled: code without a sample may have run too, and nothing is known of the code before or
/// after one.
[[nodiscard]] inline bool of_samples(const Answers& answers) {
    return !answers.metrics.empty() && answers.metrics.front().unit == "samples";
}

/// Output of programs and units (ITM, STM) without samples of the program counter: nothing is known about code.
[[nodiscard]] inline bool of_messages(const Answers& answers) {
    const auto has = [&](AccountReason reason) {
        return std::any_of(answers.account.begin(), answers.account.end(),
                           [reason](const AccountRow& row) { return row.reason == reason; });
    };
    return of_samples(answers) && has(AccountReason::decoded) && !has(AccountReason::sampled);
}

/// The contents of answers without program flow: `counters`, `messages` or `samples`. Otherwise empty.
[[nodiscard]] inline std::string_view subject_without_flow(const Answers& answers) {
    return answers.unit == "DPU"  ? "counters"
           : of_messages(answers) ? "messages"
           : of_samples(answers)  ? "samples"
                                  : "";
}

}  // namespace waymark::answers
