#include "waymark/pipeline/gathered.h"

#include <fmt/format.h>

#include <map>

#include "waymark/core/numbers.h"

namespace waymark::pipeline {

namespace {

/// What a sentence is about: the place before its first `: `, else the first name in single quotes.
std::string subject_of(const std::string& sentence) {
    if (const std::size_t place = sentence.find(": "); place != sentence.npos) return sentence.substr(0, place);
    const std::size_t quote = sentence.find('\'');
    const std::size_t end = quote == sentence.npos ? quote : sentence.find('\'', quote + 1);
    return end == sentence.npos ? sentence : sentence.substr(quote, end + 1 - quote);
}

}  // namespace

std::vector<std::string> gathered(const std::vector<std::string>& sentences) {
    constexpr std::size_t shown = 3;
    std::map<std::string, std::vector<std::size_t>> kinds;
    std::vector<std::string> kind_of;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        kind_of.push_back(without_particulars(sentences[i]));
        kinds[kind_of.back()].push_back(i);
    }
    std::vector<std::string> out;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        const std::vector<std::size_t>& alike = kinds[kind_of[i]];
        if (alike.size() <= shown) {
            out.push_back(sentences[i]);
            continue;
        }
        if (alike.front() != i) continue;
        std::string places;
        for (std::size_t k = 1; k < shown; ++k) places += (k == 1 ? "" : ", ") + subject_of(sentences[alike[k]]);
        out.push_back(fmt::format("{} (the same {} more, as in {})", sentences[i], times(alike.size() - 1), places));
    }
    return out;
}

std::vector<std::string> gathered(const std::vector<capture::Problem>& problems) {
    std::vector<std::string> sentences;
    for (const capture::Problem& problem : problems) sentences.push_back(capture::to_string(problem));
    return gathered(sentences);
}

}  // namespace waymark::pipeline
