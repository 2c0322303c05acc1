#include "plain_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>

namespace waymark::doctor {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t least_bytes = 8;
constexpr char escape = '\x1b';

bool is_printable(std::uint8_t c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t' || c == '\f'; }

/// The characters of UTF-16, `?` for those beyond ASCII; nullopt: it is something else. Without a byte order mark all
/// characters have to be ASCII, with one at least half of them.
std::optional<std::string> of_utf16(Bytes bytes) {
    const bool little = bytes[0] == 0xff && bytes[1] == 0xfe, big = bytes[0] == 0xfe && bytes[1] == 0xff;
    const bool marked = little || big;
    if (marked) bytes = bytes.subspan(2);
    const std::size_t high = big || (!little && bytes[0] == 0) ? 0 : 1;
    std::string out;
    for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
        const bool ascii = bytes[at + high] == 0;
        if (!ascii && !marked) return std::nullopt;
        out.push_back(ascii ? static_cast<char>(bytes[at + 1 - high]) : '?');
    }
    if (static_cast<std::size_t>(std::count(out.begin(), out.end(), '?')) * 2 > out.size()) return std::nullopt;
    return out;
}

/// Removes what moves a terminal's cursor or changes its colours.
void remove_control(std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] != escape) {
            if (text[at] != '\a' && text[at] != '\b') out.push_back(text[at]);
            ++at;
            continue;
        }
        const bool sequence = text.compare(at, 2, "\x1b[") == 0;
        const std::size_t end = sequence ? text.find_first_not_of("0123456789;?", at + 2) : at + 1;
        at = std::min(end, text.size() - 1) + 1;
    }
    text = std::move(out);
}

/// Valid UTF-8, in which at most half of the bytes are beyond ASCII.
bool is_utf8(std::string_view text) {
    std::uint64_t beyond = 0;
    unsigned others = 0;
    for (const char character : text) {
        const auto c = static_cast<std::uint8_t>(character);
        if ((c & 0xc0U) == 0x80) {
            if (others == 0) return false;
            --others;
            ++beyond;
            continue;
        }
        if (others != 0) return false;
        if (c >= 0xc2 && c <= 0xf4) {
            others = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
            ++beyond;
        } else if (!is_printable(c)) {
            return false;
        }
    }
    return beyond * 2 <= text.size();
}

/// `\r\n`, and `\r` alone, become `\n`.
void end_lines(std::string& text) {
    std::size_t to = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\r' && at + 1 < text.size() && (text[at + 1] == '\n' || text[at + 1] == '\r')) continue;
        text[to++] = text[at] == '\r' ? '\n' : text[at];
    }
    text.resize(to);
}

/// The length of all up to `[   12.000001] `, which the Linux kernel begins its lines with; a time of day and the name
/// of a machine may come before it. 0: the line has none.
std::size_t kernel_time(std::string_view line) {
    constexpr std::size_t longest = 80;
    const std::size_t end = line.substr(0, longest).find("] ");
    if (end == line.npos) return 0;
    const std::size_t begin = line.rfind('[', end);
    if (begin == line.npos) return 0;
    const std::string_view time = line.substr(begin + 1, end - begin - 1);
    const bool is_time = std::count(time.begin(), time.end(), '.') == 1 && time.size() >= 3 &&
                         time.find_first_not_of(" 0123456789.") == time.npos;
    return is_time ? end + 2 : 0;
}

void remove_times(std::string& text) {
    if (kernel_time(std::string_view(text).substr(0, text.find('\n'))) == 0) return;
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
        out += line.substr(kernel_time(line));
        rest.remove_prefix(line.size());
    }
    text = std::move(out);
}

/// Removes the marks of a quotation, `> `, where a mail program put them before most lines.
void remove_quotation(std::string& text) {
    std::size_t lines = 0, quoted = 0;
    for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1) {
        lines += text[at] != '\n' ? 1 : 0;
        quoted += text[at] == '>' ? 1 : 0;
    }
    if (quoted < 2 || quoted * 4 < lines * 3) return;
    std::string out;
    bool begins = true;
    for (const char c : text) {
        if (!begins || (c != '>' && c != ' ')) out.push_back(c);
        begins = c == '\n' || (begins && (c == '>' || c == ' '));
    }
    text = std::move(out);
}

/// Removes the tags of a page, and writes its entities as characters.
void remove_tags(std::string& text) {
    constexpr std::size_t head = 4096;
    constexpr std::array tags{"<html"sv, "<pre"sv, "<body"sv, "<!DOCTYPE"sv, "<HTML"sv, "<PRE"sv, "<code"sv};
    const std::string_view begins = std::string_view(text).substr(0, head);
    if (std::none_of(tags.begin(), tags.end(), [&](std::string_view tag) { return begins.find(tag) != begins.npos; }))
        return;
    constexpr std::array<std::pair<std::string_view, char>, 5> entities{
        {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&nbsp;", ' '}}};
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char next = at + 1 < text.size() ? text[at + 1] : ' ';
        const bool tag =
            text[at] == '<' && (next == '/' || next == '!' || std::isalpha(static_cast<unsigned char>(next)) != 0);
        if (tag) {
            const std::size_t end = std::min(text.find('>', at), text.size() - 1);
            if (text.compare(at, 3, "<br") == 0) out.push_back('\n');
            at = end;
            continue;
        }
        const auto* const entity = std::find_if(entities.begin(), entities.end(), [&](const auto& e) {
            return text.compare(at, e.first.size(), e.first) == 0;
        });
        out.push_back(entity == entities.end() ? text[at] : entity->second);
        if (entity != entities.end()) at += entity->first.size() - 1;
    }
    text = std::move(out);
}

}  // namespace

std::optional<std::string> plain_text(Bytes bytes) {
    if (bytes.size() < least_bytes) return std::nullopt;
    auto text = of_utf16(bytes);
    if (!text) {
        constexpr auto mark = "\xef\xbb\xbf"sv;
        text.emplace(bytes.begin(), bytes.end());
        if (text->starts_with(mark)) text->erase(0, mark.size());
    }
    if (text->find_first_of("\x1b\a\b") != text->npos) remove_control(*text);
    if (text->size() < least_bytes || !is_utf8(*text)) return std::nullopt;
    if (text->find('\r') != text->npos) end_lines(*text);
    remove_tags(*text);
    remove_quotation(*text);
    remove_times(*text);
    return text;
}

}  // namespace waymark::doctor
