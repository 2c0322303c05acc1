#include "waymark/pipeline/gathered.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "waymark/core/numbers.h"

namespace waymark::pipeline {

namespace {

/// The subject of a sentence: the place before its first `: `, otherwise the first name in single quotes.
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
        // Places that the sentence itself does not name.
        std::vector<std::string> places{subject_of(sentences[i])};
        for (std::size_t k = 1; k < alike.size() && places.size() < shown; ++k)
            if (std::string place = subject_of(sentences[alike[k]]);
                std::find(places.begin(), places.end(), place) == places.end())
                places.push_back(std::move(place));
        std::string named;
        for (std::size_t k = 1; k < places.size(); ++k) named += (k == 1 ? ", as in " : ", ") + places[k];
        out.push_back(fmt::format("{} (the same {} more{})", sentences[i], times(alike.size() - 1), named));
    }
    return out;
}

std::vector<std::string> gathered(const std::vector<capture::Problem>& problems) {
    std::vector<std::string> sentences;
    for (const capture::Problem& problem : problems) sentences.push_back(capture::to_string(problem));
    return gathered(sentences);
}

}  // namespace waymark::pipeline
