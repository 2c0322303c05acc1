/// Code that processes recorded themselves while they generated it (jitdump).
#pragma once

#include <functional>
#include <string>

#include "waymark/capture/capture.h"
#include "waymark/pipeline/changed_code.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// Reads the files that processes of the capture mapped, and the files of `options.jitdumps`, each for the process that
/// it names. The former are searched by their recorded names, below the root of `options.files` and next to the
/// capture. `problem`: a file of the capture cannot be found or read, or its times are unusable. Errors: a file of the
/// options cannot be read.
[[nodiscard]] Status add_written_code(const capture::Capture& capture, const SessionOptions& options, ChangedCode& to,
                                      const std::function<void(std::string)>& problem);

}  // namespace waymark::pipeline
