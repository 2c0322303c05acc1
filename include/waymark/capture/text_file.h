/// Small files of settings and symbols, read into memory as a whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "waymark/core/result.h"

namespace waymark::capture {

/// Maximum size of a file of registers or of a model's parameters.
inline constexpr std::size_t most_settings_bytes = std::size_t{1} << 20;

/// The error for a path that `read_text_file` refuses: a folder, a device, a socket. nullopt for `-`, a file, a named
/// pipe, and a path that does not exist, which opening reports.
[[nodiscard]] std::optional<Error> no_text_file(const std::filesystem::path& path);

/// Reads a whole file, a pipe up to its end (such as `<(command)` in a shell), or standard input (`-`). Nothing is read
/// twice or kept open, so pipes work like files. `unreadable`: it is refused, cannot be opened or read, or is a named
/// pipe without a writer; `unsupported`: it has more than `most_bytes`.
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace waymark::capture
