/// Whether answers are of samples.
#pragma once

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Single instructions were sampled: what has no sample may have run all the same, and nothing is known of what came
/// before or after one.
[[nodiscard]] inline bool of_samples(const Answers& answers) {
    return !answers.metrics.empty() && answers.metrics.front().unit == "samples";
}

}  // namespace waymark::answers
