#include "waymark/answers/only.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "waymark/core/nearest.h"

namespace waymark::answers {

namespace {

bool fits(std::string_view pattern, std::string_view text) {
    if (pattern.find_first_of("*?[") == pattern.npos) return false;
    return fnmatch(std::string(pattern).c_str(), std::string(text).c_str(), FNM_NOESCAPE) == 0;
}

bool names(std::string_view word, Only::Kind kind, std::string_view name) {
    const bool of_code = kind == Only::Kind::function || kind == Only::Kind::named_by_image;
    return of_code ? names_function(word, name) : names_file(word, name);
}

}  // namespace

bool names_function(std::string_view word, std::string_view name) {
    const std::string_view base = without_suffix(name);
    if (word == name || word == base) return true;
    if (base.starts_with(word) && base[word.size()] == '(') return true;
    return fits(word, name) || fits(word, base);
}

bool names_file(std::string_view word, std::string_view path) {
    if (word.starts_with("./")) word.remove_prefix(2);
    if (word.empty() || path.empty()) return false;
    const std::string below = fmt::format("/{}", word);
    if (word.ends_with('/')) return path.starts_with(word) || path.find(below) != path.npos;
    return word == path || path.ends_with(below) || fits(word, path) || fits("*" + below, path);
}

bool is_named_by_image(const Answers& answers, const Function& function) {
    if (function.synthetic || !function.linkage_name.empty() || function.image >= answers.images.size()) return false;
    std::string_view name = function.name;
    const std::string_view image = answers.images[function.image].name;
    if (name.starts_with("(no symbol) ")) return name.ends_with(image);
    if (!name.starts_with(image)) return false;
    name.remove_prefix(image.size());
    return name.starts_with("+0x") && name.ends_with('?');
}

void Only::add(Kind kind, std::string_view name) {
    constexpr std::size_t most_alike = 5;
    if (words_.empty()) return;
    const bool file = kind == Kind::image || kind == Kind::source;
    all_.emplace(file ? name.substr(name.rfind('/') + 1) : name.substr(0, name.find('(')));
    for (Word& word : words_) {
        if (names(word.text, kind, name)) word.kind = std::max(word.kind, kind);
        if (word.kind == Kind::nothing && word.alike.size() < most_alike && name.find(word.text) != name.npos &&
            std::find(word.alike.begin(), word.alike.end(), name) == word.alike.end())
            word.alike.emplace_back(name);
    }
}

void Only::add(const Answers& answers, const Function& function) {
    add(is_named_by_image(answers, function) ? Kind::named_by_image : Kind::function, function.name);
    if (!function.linkage_name.empty()) add(Kind::function, function.linkage_name);
}

void Only::add(const Image& image) {
    add(Kind::image, image.name);
    if (!image.path.empty()) add(Kind::image, image.path);
}

bool Only::is_by_whole_names() const {
    return !words_.empty() && std::all_of(words_.begin(), words_.end(), [](const Word& word) {
        return word.kind == Kind::function && word.text.find_first_of("*?[") == word.text.npos;
    });
}

std::vector<std::string> Only::words(Kind kind) const {
    std::vector<std::string> out;
    for (const Word& word : words_)
        if (word.kind == kind) out.push_back(word.text);
    return out;
}

bool Only::asks_for(const Answers& answers, const Function& function) const {
    return asks_for(Kind::function, function.name) || asks_for(Kind::function, function.linkage_name) ||
           (is_named_by_image(answers, function) && asks_for(Kind::named_by_image, function.name));
}

bool Only::asks_for(const Image& image) const {
    return asks_for(Kind::image, image.name) || asks_for(Kind::image, image.path);
}

bool Only::asks_for(Kind kind, std::string_view name) const {
    return empty() || std::any_of(words_.begin(), words_.end(),
                                  [&](const Word& word) { return word.kind == kind && names(word.text, kind, name); });
}

std::string Only::unknown(std::string_view things, bool patterns) const {
    std::string out;
    for (const Word& word : words_) {
        if (word.kind != Kind::nothing) continue;
        out += fmt::format("{}no {} is called '{}'", out.empty() ? "" : "; ", things, word.text);
        if (word.alike.empty()) {
            const std::string_view near = nearest(word.text, {all_.begin(), all_.end()});
            if (!near.empty()) out += fmt::format(", but {}", near);
            continue;
        }
        out += fmt::format(", but {}", fmt::join(word.alike, ", "));
        if (patterns) out += fmt::format("; a pattern such as '*{}*' asks for several", word.text);
    }
    return out;
}

Chosen::Chosen(const Answers& answers, const std::vector<std::string>& only, CodeKind code)
    : capture_(answers.capture), only_(only), code_(code) {
    if (code_ != CodeKind::system) {
        of_kind_ = functions_of(answers, code_);
        images_of_kind_.resize(answers.images.size());
        for (std::size_t i = 0; i < of_kind_.size(); ++i)
            if (of_kind_[i]) images_of_kind_[answers.functions[i].image] = true;
    }
    if (only_.empty()) return;
    using Kind = Only::Kind;
    for (const Function& f : answers.functions) only_.add(answers, f);
    for (const SourceFile& s : answers.sources) only_.add(Kind::source, s.path);
    for (const Image& i : answers.images) only_.add(i);
    for (const InlinedCall& c : answers.inlined) only_.add(Kind::function, c.name);
    // Evaluated once for each image, not for each instruction.
    for (const Image& i : answers.images) images_.push_back(only_.asks_for(i));
    for (const Function& f : answers.functions)
        functions_.push_back(only_.asks_for(answers, f) || (f.image < images_.size() && images_[f.image]));
    for (const SourceFile& s : answers.sources) sources_.push_back(only_.asks_for(Kind::source, s.path));
}

std::string Chosen::options() const {
    std::string out =
        code_ == CodeKind::system ? "" : fmt::format("--code {}", code_words[static_cast<std::size_t>(code_)]);
    if (!only_.empty()) out += out.empty() ? "--only" : " and --only";
    return out;
}

std::string Chosen::unknown() const {
    if (code_ != CodeKind::system && !of_kind_.empty() && std::ranges::find(of_kind_, true) == of_kind_.end())
        return fmt::format(
            "--code {}: {}: by the names of files, no function is known to be the program's own; leave out --code, or "
            "name files with --only",
            code_words[static_cast<std::size_t>(code_)], capture_);
    const std::string unknown = only_.unknown();
    return unknown.empty() ? unknown : fmt::format("--only: {}: {}", capture_, unknown);
}

}  // namespace waymark::answers
