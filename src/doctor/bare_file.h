/// Infers the description of a bare trace file from its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"

namespace waymark::doctor {

/// Receives the inferences as sentences.
using Note = std::function<void(const std::string&)>;

/// The first 64 KiB of a file, unpacked if it is compressed, and without the syncs of a port that was idle at first
/// (coresight::idle_bytes). Errors: the errors of capture::open_bytes.
[[nodiscard]] Result<std::vector<std::uint8_t>> file_head(const std::string& path);

/// The error for a bare file without options: its protocol and framing, as far as its bytes show them, and how to read
/// it.
[[nodiscard]] Error what_it_takes(const CaptureInput& options);

/// Opens the file as a capture, with the protocol and the settings in the options. Framing and sources are inferred if
/// the options do not state them. Errors: `usage`: invalid options; the errors of reading.
[[nodiscard]] Result<capture::Capture> bare_capture(const CaptureInput& options, const Note& note);

}  // namespace waymark::doctor
