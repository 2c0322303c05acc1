/// Whether answers are of samples, or of messages alone.
#pragma once

#include <algorithm>
#include <string_view>

#include "waymark/answers/account.h"
#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Single instructions were sampled: what has no sample may have run all the same, and nothing is known of what came
/// before or after one.
[[nodiscard]] inline bool of_samples(const Answers& answers) {
    return !answers.metrics.empty() && answers.metrics.front().unit == "samples";
}

/// What programs and units wrote (ITM, STM), and no sample of the program counter: nothing is known of code.
[[nodiscard]] inline bool of_messages(const Answers& answers) {
    const auto has = [&](AccountReason reason) {
        return std::any_of(answers.account.begin(), answers.account.end(),
                           [reason](const AccountRow& row) { return row.reason == reason; });
    };
    return of_samples(answers) && has(AccountReason::decoded) && !has(AccountReason::sampled);
}

/// What answers are of, where they are not of program flow: `counters`, `messages` or `samples`. Else empty.
[[nodiscard]] inline std::string_view subject_without_flow(const Answers& answers) {
    return answers.unit == "DPU"  ? "counters"
           : of_messages(answers) ? "messages"
           : of_samples(answers)  ? "samples"
                                  : "";
}

}  // namespace waymark::answers
