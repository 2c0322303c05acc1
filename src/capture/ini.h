/// The ini dialect of snapshot folders (docs/spec/pft.md, 7.5). Every entry keeps its line number, for messages.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/ini_value.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// Collects problems. After `limit` problems in one file, further ones are only counted, so that a binary file that is
/// read as ini does not give a million lines.
class ProblemList {
public:
    static constexpr std::size_t limit = 100;

    void add(const std::filesystem::path& file, unsigned line, std::string message,
             const std::filesystem::path& lacks = {}, Problem::Kind kind = {});
    /// The suggestion ` Did you mean …?`, or an empty text if no candidate is similar. Returns empty at once if the
    /// file's limit is reached.
    [[nodiscard]] std::string suggestion(const std::filesystem::path& file, std::string_view word,
                                         const std::vector<std::string_view>& candidates) const;
    /// All problems; the last one of a file states how many more there are.
    [[nodiscard]] std::vector<Problem> take();

private:
    std::vector<Problem> problems_;
    std::map<std::filesystem::path, std::size_t> count_;
};

struct IniEntry {
    std::string key, value;  // trimmed
    unsigned line{};
};

struct IniSection {
    std::string name;  // as written
    unsigned line{};
    std::vector<IniEntry> entries{};
};

/// A parsed ini file. Names of sections and keys are not case-sensitive.
class Ini {
public:
    /// Never fails: every line that cannot be parsed becomes a problem.
    Ini(std::filesystem::path file, std::string_view text, ProblemList& problems);

    [[nodiscard]] const std::filesystem::path& file() const { return file_; }
    [[nodiscard]] const std::vector<IniSection>& sections() const { return sections_; }
    [[nodiscard]] const IniSection* section(std::string_view name) const;

    /// The entry of a key that may occur once. Further entries of that key are problems. Null if there is none.
    const IniEntry* single(const IniSection& section, std::string_view key, ProblemList& problems) const;

private:
    std::filesystem::path file_;
    std::vector<IniSection> sections_;
    std::map<std::string, std::size_t, std::less<>> index_;  // lower-case name → section
};

}  // namespace waymark::capture
