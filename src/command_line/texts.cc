#include "waymark/command_line/texts.h"

#include <algorithm>

namespace waymark::command_line {

namespace {

std::string_view next_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        out.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + separator.size(), text.size()));
    }
    return out;
}

/// Whether a list such as `-o,--output` contains the name.
bool has_name(std::string_view names, std::string_view name) {
    for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || names[at - 1] == ',') && (end == names.size() || names[end] == ',')) return true;
    }
    return false;
}

constexpr std::string_view footer_mark = "===";

std::optional<OptionText> find(std::string_view text, std::string_view option) {
    std::string_view group;
    while (!text.empty()) {
        std::string_view line = next_line(text);
        if (line == footer_mark) return std::nullopt;
        if (line.empty() || line.front() == ' ') continue;
        if (line.starts_with("# ")) {
            group = line.substr(2);
            continue;
        }
        const std::size_t end = std::min(line.find(' '), line.size());
        const std::string_view names = line.substr(0, end);
        if (!has_name(names.substr(0, names.find('{')), option)) continue;
        OptionText out;
        out.names = names;
        out.group = group;
        line.remove_prefix(end);
        if (const std::size_t open = line.find("  ("); open != line.npos) {
            out.properties = split(line.substr(open + 3, line.size() - open - 4), ", ");
            line = line.substr(0, open);
        }
        if (const std::size_t open = line.find(" {"); open != line.npos) {
            for (const std::string_view word : split(line.substr(open + 2, line.size() - open - 3), ","))
                out.words.emplace_back(word);
            line = line.substr(0, open);
        }
        if (!line.empty()) out.type = line.substr(1);
        while (text.starts_with(' ')) {
            line = next_line(text);
            out.help += (out.help.empty() ? "" : " ") + std::string(line.substr(line.find_first_not_of(' ')));
        }
        return out;
    }
    return std::nullopt;
}

/// The sentence of a kind; its lines are put together.
std::optional<std::string> find_sentence(std::string_view text, std::string_view kind) {
    while (!text.empty()) {
        std::string_view line = next_line(text);
        if (line == footer_mark) return std::nullopt;
        if (!line.starts_with(kind) || !line.substr(kind.size()).starts_with(": ")) continue;
        std::string out(line.substr(kind.size() + 2));
        while (text.starts_with(' ')) {
            line = next_line(text);
            out += " " + std::string(line.substr(line.find_first_not_of(' ')));
        }
        return out;
    }
    return std::nullopt;
}

}  // namespace

Texts::Texts(std::span<const std::string_view> texts) {
    for (std::string_view text : texts) {
        const std::string_view head = next_line(text);
        texts_.push_back({head, text});
    }
}

std::optional<CommandText> Texts::command(std::string_view command) const {
    const auto found = std::ranges::find(texts_, command, &Headed::head);
    if (found == texts_.end()) return std::nullopt;
    std::string_view text = found->rest;
    CommandText out{.title = std::string(next_line(text)), .footer = {}};
    while (!text.empty())
        if (next_line(text) == footer_mark) {
            out.footer = text;
            break;
        }
    return out;
}

template <class Find>
auto Texts::first_of(std::string_view command, const Find& find) const -> decltype(find(std::string_view())) {
    for (const auto& [head, rest] : texts_)
        if (head == command)
            if (auto own = find(rest)) return own;
    constexpr std::string_view shared_by = "options of ";
    for (std::string_view of = command;; of = of.substr(0, of.rfind(' '))) {
        for (const auto& [head, rest] : texts_)
            if (head.size() == shared_by.size() + of.size() && head.ends_with(of) && head.starts_with(shared_by))
                if (auto shared = find(rest)) return shared;
        if (of.find(' ') == of.npos) return std::nullopt;
    }
}

std::optional<OptionText> Texts::option(std::string_view command, std::string_view option) const {
    return first_of(command, [option](std::string_view text) { return find(text, option); });
}

std::optional<std::string> Texts::sentence(std::string_view command, std::string_view kind) const {
    auto out = first_of(command, [kind](std::string_view text) { return find_sentence(text, kind); });
    for (std::size_t at = out ? out->find("{}") : std::string::npos; at != std::string::npos;
         at = out->find("{}", at + command.size()))
        out->replace(at, 2, command);
    return out;
}

}  // namespace waymark::command_line
