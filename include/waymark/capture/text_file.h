/// Small files of settings and symbols, read into memory as a whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "waymark/core/result.h"

namespace waymark::capture {

/// What a file of registers or of a model's numbers may hold.
inline constexpr std::size_t most_settings_bytes = std::size_t{1} << 20;

/// The error for what `read_text_file` refuses: a folder, a device, a socket. Nothing for `-`, a file, a named pipe,
/// and for what does not exist: opening it reports that.
[[nodiscard]] std::optional<Error> no_text_file(const std::filesystem::path& path);

/// The whole of a file, of a pipe up to its end (`<(command)` in a shell is one), or of standard input (`-`). Nothing
/// is read twice and nothing is kept open, so a pipe serves as well as a file here. `unreadable`: it is refused, cannot
/// be opened or read, or is a named pipe that nobody writes to; `unsupported`: it has more than `most_bytes`.
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace waymark::capture
