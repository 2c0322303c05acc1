/// A bare trace file: the description that its bytes give.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"

namespace waymark::doctor {

/// Takes what was guessed.
using Note = std::function<void(const std::string&)>;

/// The first 64 KiB of a file, unpacked if it is compressed, and without the syncs of a port that was idle at first
/// (coresight::idle_bytes). Errors: the errors of capture::open_bytes.
[[nodiscard]] Result<std::vector<std::uint8_t>> file_head(const std::string& path);

/// A bare file that nothing describes: its protocol and framing, as far as its bytes show them, and how to read it.
[[nodiscard]] Error what_it_takes(const CaptureInput& options);

/// The file as a capture, with the protocol and what else the options say. How it is framed, and which sources are in
/// it, is inferred where they do not. Errors: `usage`: options that cannot be meant; those of reading.
[[nodiscard]] Result<capture::Capture> bare_capture(const CaptureInput& options, const Note& note);

}  // namespace waymark::doctor
