#include "support/wmt_text.h"

#include <algorithm>
#include <sstream>
#include <system_error>

namespace waymark::test {
namespace {

/// One step from `expected` to `found`.
struct Edit {
    char kind;  ///< ' ' both, '-' only in expected, '+' only in found
    std::size_t expected, found;
};

/// The shortest way from one to the other.
std::vector<Edit> edits(const std::vector<std::string>& expected, const std::vector<std::string>& found) {
    const std::size_t rows = expected.size(), columns = found.size();
    std::vector<std::vector<std::size_t>> common(rows + 1, std::vector<std::size_t>(columns + 1));
    for (std::size_t i = rows; i-- > 0;)
        for (std::size_t k = columns; k-- > 0;)
            common[i][k] =
                expected[i] == found[k] ? common[i + 1][k + 1] + 1 : std::max(common[i + 1][k], common[i][k + 1]);
    std::vector<Edit> out;
    for (std::size_t i = 0, k = 0; i < rows || k < columns;) {
        if (i < rows && k < columns && expected[i] == found[k])
            out.push_back({' ', i++, k++});
        else if (i < rows && (k == columns || common[i + 1][k] >= common[i][k + 1]))
            out.push_back({'-', i++, k});
        else
            out.push_back({'+', i, k++});
    }
    return out;
}

}  // namespace

std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> out;
    std::istringstream in{std::string(text)};
    for (std::string word; in >> word;) out.push_back(word);
    return out;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& part : parts) out += (out.empty() ? "" : " ") + part;
    return out;
}

std::string without_comment(std::string_view line) { return joined(words(line.substr(0, line.find('#')))); }

std::pair<std::string, std::string> key_value(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return {word, ""};
    return {word.substr(0, equals), word.substr(equals + 1)};
}

std::vector<std::filesystem::path> wmt_files(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> out;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        if (entry.path().extension() == ".wmt") out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
}

std::string difference(const std::vector<std::string>& expected, const std::vector<std::string>& found) {
    if (expected == found) return "";
    std::string out;
    for (const Edit& edit : edits(expected, found)) {
        out += edit.kind;
        out += ' ' + (edit.kind == '+' ? found[edit.found] : expected[edit.expected]) + '\n';
    }
    return out;
}

std::string with_part(const std::vector<std::string>& lines, std::size_t part_line,
                      const std::vector<std::string>& part, const std::vector<std::string>& found) {
    std::string out;
    const auto add = [&](const std::string& line) { out += line + '\n'; };
    for (std::size_t i = 0; i < part_line; ++i) add(lines[i]);
    std::size_t line = part_line;
    const auto copy_comments = [&] {
        while (line < lines.size() && without_comment(lines[line]).empty()) add(lines[line++]);
    };
    for (const Edit& edit : edits(part, found)) {
        if (edit.kind == '+') {
            add(found[edit.found]);
        } else {
            copy_comments();
            if (edit.kind == ' ') add(lines[line]);
            ++line;
        }
    }
    copy_comments();
    return out;
}

}  // namespace waymark::test
