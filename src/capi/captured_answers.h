/// A capture of any kind → answers.
#pragma once

#include <functional>

#include "objects.h"
#include "waymark/pipeline/flow_answers.h"

namespace waymark::capi {

/// `keeps_on` is called regularly with the number of bytes read and the total, 0 if not known; it may throw to cancel.
/// Errors: the errors of reading; `not_found`: nothing could be decoded, with the reason.
[[nodiscard]] Result<answers::Answers> answers_of(const wm_capture& capture, pipeline::FlowAnswersOptions options,
                                                  const std::function<void(std::uint64_t, std::uint64_t)>& keeps_on);

}  // namespace waymark::capi
