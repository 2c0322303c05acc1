#include "suggest.h"

#include <algorithm>
#include <cctype>

#include "waymark/core/letter_changes.h"

namespace waymark::command_line {

namespace {

constexpr std::size_t most_suggested = 3;

std::string_view without_dashes(std::string_view word) {
    const std::size_t begin = word.find_first_not_of('-');
    return begin == word.npos ? std::string_view() : word.substr(begin);
}

bool same_letter(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool begins_with(std::string_view word, std::string_view beginning) {
    return word.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), word.begin(), same_letter);
}

}  // namespace

std::vector<std::string> similar(std::string_view word, const std::vector<std::string>& known) {
    const std::string_view wrong = without_dashes(word);
    constexpr std::size_t longest = 64;  // no word is longer
    if (wrong.empty() || wrong.size() > longest) return {};
    std::size_t least = std::max<std::size_t>(1, wrong.size() / 3) + 1;
    std::vector<std::string> out;
    for (const std::string& each : known) {
        const std::size_t far = letter_changes(wrong, without_dashes(each));
        // A word without any letters left matches nothing.
        if (far > least || far >= wrong.size() || (out.empty() && far == least)) continue;
        if (far < least) out.clear();
        least = far;
        out.push_back(each);
    }
    constexpr std::size_t shortest_beginning = 2;
    if (out.empty() && wrong.size() >= shortest_beginning)
        for (const std::string& each : known)
            if (begins_with(without_dashes(each), wrong)) out.push_back(each);
    if (out.size() > most_suggested) out.resize(most_suggested);
    return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    const std::vector<std::string> words = similar(word, known);
    if (words.empty()) return {};
    std::string out = "; did you mean ";
    for (std::size_t i = 0; i < words.size(); ++i)
        out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return out + '?';
}

}  // namespace waymark::command_line
