#pragma once

#include "waymark/answers/views.h"

namespace waymark::answers {

/// `profile_view` by level, with the same errors.
[[nodiscard]] Result<View> level_view(const Answers& answers, const ProfileOptions& options, std::size_t metric);

}  // namespace waymark::answers
