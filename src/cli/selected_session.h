/// Opens a capture for the commands that decode it: what they share between reading options and decoding.
#pragma once

#include <vector>

#include "options.h"
#include "waymark/pipeline/session.h"

namespace waymark::cli {

struct SelectedSession {
    pipeline::Session session;
    std::vector<const pipeline::Source*> selected;  ///< the sources that the options select; they belong to `session`
};

/// Opens the capture, prints its problems as warnings, and selects sources.
[[nodiscard]] Result<SelectedSession> open_selected(const InputOptions& options);

}  // namespace waymark::cli
