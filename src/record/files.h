/// What recorders share about the files they write.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "waymark/core/result.h"

namespace waymark::record {

/// Trace is written in pieces of this many bytes.
constexpr std::size_t write_bytes = 1 << 20;

/// `cannot write out/cstrace.bin: No space left on device`, by errno.
inline Error cannot(const char* what, const std::filesystem::path& path) {
    return {Errc::unreadable, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno))};
}

/// A text as an ini file can hold it, which cannot hold everything a command line can.
inline std::string ini_text(std::string text) {
    for (char& c : text)
        if (c == ';' || c == '#' || static_cast<unsigned char>(c) < ' ' || c == '\'' || c == '"') c = ' ';
    const std::size_t first = text.find_first_not_of(' ');
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace waymark::record
