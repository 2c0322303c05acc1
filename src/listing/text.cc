#include "waymark/listing/text.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "print.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/quote.h"

namespace waymark::listing {

namespace {

using nlohmann::ordered_json;

/// Prints every leaf as a line: its path and its value.
void print_leaves(TextSink& out, const ordered_json& value, const std::string& path) {
    if (value.is_structured()) {
        std::size_t index = 0;
        for (const auto& [key, below] : value.items()) {
            const std::string step = value.is_array() ? std::to_string(index++) : key;
            print_leaves(out, below, path.empty() ? step : path + "/" + step);
        }
        return;
    }
    print(out, "{}\t{}\n", path, value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump());
}

}  // namespace

LineFormat format_of(std::string_view name) {
    return name == "tsv" ? LineFormat::tsv : name == "json" ? LineFormat::json : LineFormat::text;
}

Coloured::Coloured(std::string_view text, answers::Colour colour, bool colours) : text_(one_line(text)) {
    constexpr const char* codes[] = {"", "1", "2", "31", "32", "33", "36"};
    if (colours && colour != answers::Colour::plain && !text_.empty())
        text_ = fmt::format("\033[{}m{}\033[0m", codes[static_cast<std::size_t>(colour)], text_);
}

std::size_t shown_width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string json_string(std::string_view text) { return waymark::json_text(text); }

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
    std::istringstream words{std::string(text)};
    std::vector<std::string> out;
    for (std::string word; words >> word;) {
        if (out.empty() || shown_width(out.back()) + 1 + shown_width(word) > columns)
            out.push_back(word);
        else
            out.back() += ' ' + word;
    }
    return out;
}

std::string about(const std::string& capture, const std::string& sentence) {
    return sentence.starts_with(capture) ? sentence : fmt::format("{}: {}", capture, sentence);
}

void print_account(TextSink& out, const answers::Account& account, std::size_t indent) {
    std::string_view label = "run";
    for (const std::string& clause : answers::account_clauses(account))
        print(out, "{:<{}}{}\n", std::exchange(label, ""), indent, clause);
}

void print_document(TextSink& out, const ordered_json& document, LineFormat format) {
    if (format == LineFormat::json) {
        out.write(json_text(document) + "\n");
        return;
    }
    out.write("item\tvalue\n");
    print_leaves(out, document, "");
}

void print_document(TextSink& out, std::string_view json, LineFormat format) {
    print_document(out, ordered_json::parse(json), format);
}

}  // namespace waymark::listing
