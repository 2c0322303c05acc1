#include "ini.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text.h"
#include "waymark/core/nearest.h"

namespace waymark::capture {

void ProblemList::add(const std::filesystem::path& file, unsigned line, std::string message,
                      const std::filesystem::path& lacks, Problem::Kind kind) {
    if (count_[file]++ < limit) problems_.push_back({file, line, std::move(message), lacks, kind});
}

std::string ProblemList::suggestion(const std::filesystem::path& file, std::string_view word,
                                    const std::vector<std::string_view>& candidates) const {
    const auto count = count_.find(file);
    if (count != count_.end() && count->second >= limit) return {};
    const std::string_view best = nearest(word, candidates);
    return best.empty() ? std::string() : fmt::format(" Did you mean '{}'?", best);
}

std::vector<Problem> ProblemList::take() {
    for (const auto& [file, count] : count_)
        if (count > limit)
            problems_.push_back(
                {file, 0,
                 fmt::format("{} more problems in this file are not listed. Correct the first ones and read it again.",
                             count - limit)});
    count_.clear();
    return std::exchange(problems_, {});
}

Ini::Ini(std::filesystem::path file, std::string_view text, ProblemList& problems) : file_(std::move(file)) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.substr(0, byte_order_mark.size()) == byte_order_mark) text.remove_prefix(byte_order_mark.size());

    std::size_t current = std::string::npos;  // section, as index: the vector grows
    unsigned number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        // A `#` or `;` begins a comment anywhere, even in a value. The format's other reader does the same.
        line = text::trim(line.substr(0, line.find_first_of(";#")));
        if (line.empty()) continue;

        if (line.front() == '[') {
            const std::size_t close = line.find(']');
            const std::string_view section_name =
                text::trim(line.substr(1, close == line.npos ? line.npos : close - 1));
            if (close == line.npos)
                problems.add(file_, number, fmt::format("The section header '{}' has no closing ']'. Add it.", line));
            else if (close + 1 != line.size())
                problems.add(
                    file_, number,
                    fmt::format(
                        "The section header [{}] is followed by '{}', which was ignored. Move it to a separate line.",
                        section_name, text::trim(line.substr(close + 1))));
            const auto [known, added] = index_.try_emplace(text::lower(section_name), sections_.size());
            if (added)
                sections_.push_back({std::string(section_name), number});
            else
                problems.add(file_, number,
                             fmt::format("Section [{}] appears again (first at line {}); the two were read as one. "
                                         "Join them, or give them different names.",
                                         section_name, sections_[known->second].line));
            current = known->second;
            continue;
        }
        const std::size_t equals = line.find('=');
        if (equals == line.npos) {
            problems.add(
                file_, number,
                fmt::format("'{}' is neither [section] nor key=value and was ignored. Mend or remove the line.",
                            line.substr(0, 80)));
            continue;
        }
        const std::string_view key = text::trim(line.substr(0, equals)), value = text::trim(line.substr(equals + 1));
        if (key.empty())
            problems.add(file_, number, fmt::format("There is no key before '={}'; it was ignored. Add one.", value));
        else if (current == std::string::npos)
            problems.add(
                file_, number,
                fmt::format("Key '{}' comes before any section and was ignored. Move it below its [section].", key));
        else
            sections_[current].entries.push_back({std::string(key), std::string(value), number});
    }
}

const IniSection* Ini::section(std::string_view name) const {
    const auto found = index_.find(text::lower(name));
    return found == index_.end() ? nullptr : &sections_[found->second];
}

const IniEntry* Ini::single(const IniSection& section, std::string_view key, ProblemList& problems) const {
    const IniEntry* first = nullptr;
    for (const IniEntry& entry : section.entries) {
        if (!text::equal_ignoring_case(entry.key, key)) continue;
        if (first == nullptr) {
            first = &entry;
            continue;
        }
        problems.add(
            file_, entry.line,
            fmt::format("Key '{}' appears again in [{}] with '{}'; the first, '{}' at line {}, is used. Remove one.",
                        key, section.name, entry.value, first->value, first->line));
    }
    return first;
}

Status check_value(std::string_view file, std::string_view what, std::string_view text, std::string_view forbidden) {
    const std::string bad = std::string(";#\r\n") + '\0' + std::string(forbidden);
    const std::size_t at = text.find_first_of(bad);
    if (at != text.npos)
        return Error{Errc::usage, fmt::format("{} '{}' cannot be written to {}: an ini file cannot contain the "
                                              "character {:#04x} there; choose another",
                                              what, text, file, static_cast<unsigned char>(text[at]))};
    if (text::trim(text) != text)
        return Error{Errc::usage,
                     fmt::format("{} '{}' cannot be written to {}: blanks at its ends would be lost; remove them", what,
                                 text, file)};
    return Nothing{};
}

}  // namespace waymark::capture
