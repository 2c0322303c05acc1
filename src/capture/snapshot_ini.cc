#include "snapshot_ini.h"

#include <fmt/format.h>

#include <algorithm>

#include "text.h"

namespace waymark::capture {

namespace fs = std::filesystem;

fs::path SnapshotIni::resolve(const IniEntry& entry, std::string_view written) {
    fs::path relative{std::string(written)};
    // Captures saved on Windows have backslashes.
    if (written.find('\\') != written.npos && !parts_.files.size(parts_.folder / relative)) {
        std::string slashes(written);
        std::replace(slashes.begin(), slashes.end(), '\\', '/');
        if (parts_.files.size(parts_.folder / slashes)) relative = slashes;
    }
    const fs::path normal = relative.lexically_normal();
    if (relative.is_absolute() || (!normal.empty() && *normal.begin() == ".."))
        problem(entry.line,
                fmt::format(
                    "'{}' lies outside the snapshot folder. It is read, but is lost when the folder is copied; move "
                    "it into the folder.",
                    written));
    return parts_.folder / relative;
}

void SnapshotIni::unknown_sections(const std::vector<std::string_view>& known) {
    for (const IniSection& section : ini_.sections()) {
        const bool is_known = std::any_of(
            known.begin(), known.end(), [&](std::string_view k) { return text::equal_ignoring_case(k, section.name); });
        if (is_known) continue;
        // Further sections are allowed, but a likely typing error gets a message.
        const std::string suggestion = did_you_mean(section.name, known);
        if (!suggestion.empty())
            problem(section.line, fmt::format("Section [{}] is unknown and was ignored.{}", section.name, suggestion));
    }
}

void SnapshotIni::unknown_keys(const IniSection& section, const std::vector<std::string_view>& known,
                               bool others_allowed) {
    for (const IniEntry& entry : section.entries) {
        const bool is_known = std::any_of(known.begin(), known.end(),
                                          [&](std::string_view k) { return text::equal_ignoring_case(k, entry.key); });
        if (is_known) continue;
        const std::string suggestion = did_you_mean(entry.key, known);
        if (others_allowed && suggestion.empty()) continue;
        problem(entry.line,
                fmt::format("Key '{}' is unknown in [{}] and was ignored.{}", entry.key, section.name,
                            suggestion.empty() ? fmt::format(" Known are: {}.", fmt::join(known, ", ")) : suggestion));
    }
}

std::optional<std::uint64_t> SnapshotIni::number(const IniSection& section, const IniEntry& entry,
                                                 std::string_view consequence) {
    const auto value = text::number(text::unquote(entry.value));
    if (!value)
        problem(
            entry.line,
            fmt::format("'{}' in [{}] is '{}', which is not a number of up to 64 bits (0x… hexadecimal, 0… octal, else "
                        "decimal); {}. Correct it.",
                        entry.key, section.name, entry.value, consequence));
    return value;
}

}  // namespace waymark::capture
