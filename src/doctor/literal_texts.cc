#include "literal_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>

namespace waymark::doctor {

namespace {

constexpr std::string_view blanks = " \t\r\n\f";

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    text.remove_suffix(text.size() - std::min(text.find_last_not_of(blanks) + 1, text.size()));
    return text;
}

/// The part between the first `open` and the last `close`; a name or a type may precede it, as in `trace = [`. nullopt:
/// a bracket is missing, or other text follows.
std::optional<std::string_view> between(std::string_view text, char open, char close) {
    text = trimmed(text);
    constexpr std::size_t longest_name = 80;
    const auto first = text.find(open), last = text.rfind(close);
    if (first == text.npos || last == text.npos || last < first || first > longest_name) return std::nullopt;
    const std::string_view name = text.substr(0, first), rest = text.substr(last + 1);
    if (name.find_first_of(",\n") != name.npos || rest.find_first_not_of(")};\r\n\t ") != rest.npos)
        return std::nullopt;
    return text.substr(first + 1, last - first - 1);
}

/// A number in decimal without leading zeros, which only columns of digits have, or in hexadecimal in quotes.
std::optional<std::int64_t> number_in(std::string_view item) {
    const bool quoted =
        item.size() >= 2 && (item.front() == '\'' || item.front() == '"') && item.back() == item.front();
    if (quoted) item = item.substr(1, item.size() - 2);
    const bool hexadecimal = quoted && item.starts_with("0x");
    if (hexadecimal) item.remove_prefix(2);
    if (item.empty() || (!hexadecimal && item.size() > 1 && item.front() == '0')) return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number, hexadecimal ? 16 : 10);
    if (error != std::errc{} || end != item.data() + item.size()) return std::nullopt;
    return number;
}

DecodedText words_of(const std::vector<std::int64_t>& numbers, std::size_t word_size) {
    DecodedText out;
    out.how = word_size == 1 ? std::string("bytes as numbers without leading zeros")
                             : fmt::format("words of {} bits as numbers without leading zeros", word_size * 8);
    for (const std::int64_t number : numbers)
        for (std::size_t byte = 0; byte < word_size; ++byte)
            out.bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(number) >> 8 * byte));
    return out;
}

/// The size of a word of memory that holds all numbers, in bytes.
std::size_t word_size_of(std::int64_t least, std::int64_t most) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
        const std::int64_t values = std::int64_t{1} << 8 * size;
        if (most < values && least >= -values / 2) return size;
    }
    return sizeof(std::int64_t);
}

bool fits_a_byte(std::int64_t number) { return number >= -128 && number <= 255; }

/// The index of the first number that is not a byte, if nearly all others are bytes: words of memory are not so small.
std::optional<std::size_t> stray_number(const std::vector<std::int64_t>& numbers) {
    constexpr std::size_t one_in = 16;
    const auto others = static_cast<std::size_t>(
        std::count_if(numbers.begin(), numbers.end(), [](std::int64_t n) { return !fits_a_byte(n); }));
    if (others == 0 || others * one_in > numbers.size()) return std::nullopt;
    const auto bytes =
        std::count_if(numbers.begin(), numbers.end(), [](std::int64_t n) { return fits_a_byte(n) && n != 0; });
    if (static_cast<std::size_t>(bytes) * 2 < numbers.size()) return std::nullopt;  // words, most of them 0
    return static_cast<std::size_t>(std::find_if_not(numbers.begin(), numbers.end(), fits_a_byte) - numbers.begin());
}

constexpr std::size_t least_numbers = 16;

std::optional<DecodedText> read_numbers(const std::vector<std::int64_t>& numbers) {
    if (numbers.size() < least_numbers || stray_number(numbers)) return std::nullopt;
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    return words_of(numbers, word_size_of(*least, *most));
}

/// The value of an escape in a literal; removes its characters from `text`. nullopt: an unknown escape.
std::optional<std::uint8_t> escaped(std::string_view& text) {
    const char c = text.front();
    text.remove_prefix(1);
    constexpr std::array<std::pair<char, std::uint8_t>, 10> known{{{'a', 0x07},
                                                                   {'b', 0x08},
                                                                   {'f', 0x0c},
                                                                   {'n', 0x0a},
                                                                   {'r', 0x0d},
                                                                   {'t', 0x09},
                                                                   {'v', 0x0b},
                                                                   {'\\', 0x5c},
                                                                   {'\'', 0x27},
                                                                   {'"', 0x22}}};
    if (c >= '0' && c <= '7') {
        unsigned value = static_cast<unsigned>(c - '0');
        for (unsigned more = 0; more < 2 && !text.empty() && text.front() >= '0' && text.front() <= '7'; ++more) {
            value = value * 8 + static_cast<unsigned>(text.front() - '0');
            text.remove_prefix(1);
        }
        if (value > 0xff) return std::nullopt;
        return static_cast<std::uint8_t>(value);
    }
    if (c == 'x') {
        std::uint8_t value = 0;
        const std::string_view digits = text.substr(0, 2);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (error != std::errc{} || end != digits.data() + 2) return std::nullopt;
        text.remove_prefix(2);
        return value;
    }
    for (const auto& [name, value] : known)
        if (c == name) return value;
    return std::nullopt;
}

int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    if (c == '/' || c == '_') return 63;
    return -1;
}

/// The items of a list, up to the first one that is not a number.
struct ListItems {
    std::vector<std::int64_t> numbers{};
    std::optional<std::string_view> stranger{};
};
ListItems items_of(std::string_view list) {
    ListItems out;
    while (!trimmed(list).empty()) {
        const std::string_view item = trimmed(list.substr(0, list.find(',')));
        list.remove_prefix(std::min(list.find(','), list.size() - 1) + 1);
        const auto number = number_in(item);
        if (!number) {
            out.stranger = item;
            break;
        }
        out.numbers.push_back(*number);
    }
    return out;
}

constexpr std::array brackets{std::pair('[', ']'), std::pair('{', '}'), std::pair('(', ')')};

/// The longest part of an object of JSON between `open` and the next `close`.
std::optional<std::string_view> longest_of_object(std::string_view text, char open, char close) {
    text = trimmed(text);
    if (!text.starts_with('{') || !text.ends_with('}') || text.find("\":") > text.find(':')) return std::nullopt;
    std::optional<std::string_view> out;
    for (std::size_t first = text.find(open); first != text.npos; first = text.find(open, first)) {
        const std::size_t last = text.find(close, ++first);
        if (last == text.npos) break;
        if (!out || last - first > out->size()) out = text.substr(first, last - first);
        first = last + 1;
    }
    return out;
}

std::optional<std::string_view> list_in(std::string_view text) {
    std::optional<std::string_view> list = longest_of_object(text, '[', ']');
    for (const auto& [open, close] : brackets)
        if (!list) list = between(text, open, close);
    return list;
}

}  // namespace

std::optional<DecodedText> numbers_in_brackets(std::string_view text) {
    const auto list = list_in(text);
    if (!list) return std::nullopt;
    const ListItems items = items_of(*list);
    return items.stranger ? std::nullopt : read_numbers(items.numbers);
}

std::string why_no_list(std::string_view text) {
    text = trimmed(text);
    const auto list = list_in(text);
    if (!list) {
        constexpr std::size_t longest_name = 80;
        for (const auto& [open, close] : brackets) {
            const std::size_t first = text.find(open);
            if (first > longest_name || text.find(close) != text.npos) continue;
            if (items_of(text.substr(first + 1)).numbers.size() >= least_numbers)
                return fmt::format("a list without its closing '{}'", close);
        }
        return {};
    }
    const ListItems items = items_of(*list);
    const std::size_t count = items.numbers.size();
    if (!items.stranger) {
        const auto stray = count < least_numbers ? std::nullopt : stray_number(items.numbers);
        if (!stray) return {};
        return fmt::format("number {} of the list is {} and does not fit into a byte", *stray + 1,
                           items.numbers[*stray]);
    }
    const bool perhaps_hexadecimal =
        !items.stranger->empty() &&
        items.stranger->find_first_not_of("0123456789abcdefABCDEFxX") == std::string_view::npos &&
        items.stranger->size() <= 16;
    if (count < least_numbers || perhaps_hexadecimal) return {};
    const bool digits = items.stranger->size() > 1 &&
                        items.stranger->find_first_not_of("-0123456789") == std::string_view::npos &&
                        items.stranger->front() != '0';
    return items.stranger->empty() ? fmt::format("number {} of the list is missing", count + 1)
           : digits                ? fmt::format("number {} of the list is {} and does not fit into a byte", count + 1,
                                                 items.stranger->substr(0, 40))
                    : fmt::format("'{}' in place {} of the list is not a whole number", items.stranger->substr(0, 40),
                                  count + 1);
}

std::optional<DecodedText> decimal_columns(std::string_view text) {
    std::vector<std::int64_t> numbers;
    std::size_t with_address = 0, without = 0;
    while (!text.empty()) {
        std::string_view line = trimmed(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
        if (line.empty()) continue;
        const auto colon = line.find(':');
        const bool addressed = colon != line.npos && line.starts_with("0x");
        ++(addressed ? with_address : without);
        if (with_address != 0 && without != 0) return std::nullopt;
        for (line.remove_prefix(addressed ? colon + 1 : 0); !(line = trimmed(line)).empty();) {
            const std::string_view item = line.substr(0, line.find_first_of(" \t,"));
            const auto number = number_in(item);
            if (!number || item.front() == '"' || item.front() == '\'') return std::nullopt;
            numbers.push_back(*number);
            line.remove_prefix(item.size());
            line.remove_prefix(!addressed && line.starts_with(',') ? 1 : 0);
        }
    }
    if (with_address == 0 && !(std::all_of(numbers.begin(), numbers.end(), fits_a_byte) &&
                               std::any_of(numbers.begin(), numbers.end(), [](std::int64_t n) { return n > 99; })))
        return std::nullopt;
    return read_numbers(numbers);
}

std::optional<DecodedText> bytes_literal(std::string_view text) {
    text = trimmed(text);
    constexpr std::size_t longest_name = 80, least_bytes = 16;
    const auto python = std::min(text.find("b'"), text.find("b\""));
    const bool of_python = python != text.npos && python <= longest_name;
    const std::size_t begin = of_python ? python + 1 : text.find('"');
    if (begin > longest_name || (of_python && text.substr(0, begin).find('\n') != text.npos)) return std::nullopt;
    const char quote = text[begin];
    text.remove_prefix(begin + 1);
    DecodedText out{of_python ? "bytes in a literal of Python" : "bytes in a string of C", {}};
    std::size_t escapes = 0;
    while (!text.empty() && text.front() != quote) {
        const char c = text.front();
        text.remove_prefix(1);
        if (c != '\\') {
            out.bytes.push_back(static_cast<std::uint8_t>(c));
        } else {
            if (text.empty()) return std::nullopt;
            const auto value = escaped(text);
            if (!value) return std::nullopt;
            out.bytes.push_back(*value);
            ++escapes;
        }
        // C joins adjacent strings.
        if (of_python || !text.starts_with(quote)) continue;
        if (const std::size_t next = text.find_first_not_of(" \t\r\n\\", 1); next != text.npos && text[next] == quote)
            text.remove_prefix(next + 1);
    }
    if (text.empty() || text.find_first_not_of(");\r\n\t ", 1) != text.npos) return std::nullopt;
    // In quotes there may also be a sentence.
    constexpr std::size_t escapes_one_in = 4;
    if (out.bytes.size() < least_bytes || (!of_python && escapes * escapes_one_in < out.bytes.size()))
        return std::nullopt;
    return out;
}

std::optional<DecodedText> column_of_table(std::string_view text) {
    constexpr std::size_t least_rows = 16;
    std::vector<std::vector<std::uint8_t>> bytes;  // of each column
    std::size_t columns = 0, lines = 0;
    for (text = trimmed(text); !text.empty(); ++lines) {
        std::string_view line = trimmed(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
        const auto here = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
        if (lines == 0) {
            columns = here;
            bytes.resize(columns);
            if (columns < 2 || line.find("0x") != line.npos) return std::nullopt;
            continue;
        }
        if (here != columns) return std::nullopt;
        for (std::size_t n = 0; n < columns; ++n) {
            std::string_view field = trimmed(line.substr(0, line.find(',')));
            line.remove_prefix(std::min(line.find(','), line.size() - 1) + 1);
            if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
                field = field.substr(1, field.size() - 2);
            std::uint8_t value = 0;
            if (!field.starts_with("0x") && !field.starts_with("0X")) continue;
            const auto [end, error] = std::from_chars(field.data() + 2, field.data() + field.size(), value, 16);
            if (error != std::errc{} || end != field.data() + field.size()) continue;
            bytes[n].push_back(value);
        }
    }
    const auto fits = [&](const auto& column) { return column.size() + 1 == lines && column.size() >= least_rows; };
    const auto column = std::find_if(bytes.begin(), bytes.end(), fits);
    if (column == bytes.end() || std::count_if(bytes.begin(), bytes.end(), fits) != 1) return std::nullopt;
    return DecodedText{fmt::format("bytes in column {} of a table", column - bytes.begin() + 1), std::move(*column)};
}

std::optional<DecodedText> base64(std::string_view text) {
    DecodedText out{"bytes in base64", {}};
    if (const auto of_object = longest_of_object(text, '"', '"')) text = *of_object;
    std::size_t width = 0;
    bool last = false;        // a line that is shorter than the others came
    bool hexadecimal = true;  // each line is digits, 0x before them or not
    std::string digits;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        line = trimmed(line);
        // The frame of PEM and of uuencode -m.
        if (line.empty() || line.starts_with("-----") || line.starts_with("begin-base64 ") || line == "====") continue;
        if (last) return std::nullopt;
        if (width == 0) width = line.size();
        if (line.size() > width) return std::nullopt;
        last = line.size() < width || line.back() == '=';
        digits += line;
        line.remove_prefix(line.starts_with("0x") || line.starts_with("0X") ? 2 : 0);
        hexadecimal &= std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
    }
    constexpr std::size_t least_bytes = 64, most_padding = 2;
    std::size_t padding = 0;
    for (; !digits.empty() && digits.back() == '='; ++padding) digits.pop_back();
    if (padding > most_padding || digits.size() % 4 == 1 || digits.size() / 4 * 3 < least_bytes) return std::nullopt;
    if (hexadecimal) return std::nullopt;
    std::uint32_t value = 0;
    unsigned bits = 0;
    for (const char c : digits) {
        const int digit = base64_digit(c);
        if (digit < 0) return std::nullopt;
        value = value << 6U | static_cast<std::uint32_t>(digit);
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out.bytes.push_back(static_cast<std::uint8_t>(value >> bits));
    }
    return out;
}

std::optional<DecodedText> uuencoded(std::string_view text) {
    DecodedText out{"bytes in uuencode", {}};
    // begin 644 NAME
    const auto begin = text.starts_with("begin ") ? 0 : text.find("\nbegin ") + 1;
    constexpr std::size_t mode = 6, mode_digits = 3;
    if (begin == 0 && !text.starts_with("begin ")) return std::nullopt;
    text.remove_prefix(begin);
    if (text.substr(mode, mode_digits).find_first_not_of("01234567") != text.npos) return std::nullopt;
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line == "end") return out.bytes.empty() ? std::nullopt : std::optional(std::move(out));
        const auto six = [&](std::size_t at) {  // a mail program removes spaces at the end
            return at < line.size() ? static_cast<unsigned>(line[at] - ' ') & 0x3fU : 0U;
        };
        if (std::any_of(line.begin(), line.end(), [](char c) { return c < ' ' || c > '`'; })) return std::nullopt;
        const std::size_t bytes = six(0);
        if (line.size() > 2 + (bytes + 2) / 3 * 4) return std::nullopt;
        for (std::size_t i = 0; i < bytes; ++i) {
            const std::size_t at = 1 + i / 3 * 4 + i % 3;
            const unsigned shift = 2 * (static_cast<unsigned>(i % 3) + 1);
            out.bytes.push_back(static_cast<std::uint8_t>(six(at) << shift | six(at + 1) >> (6 - shift)));
        }
    }
    return std::nullopt;
}

namespace {

/// What `od -c` prints for a byte.
std::optional<std::uint8_t> cell_of_od(std::string_view cell) {
    cell = trimmed(cell);
    if (cell.size() <= 1) return static_cast<std::uint8_t>(cell.empty() ? ' ' : cell.front());
    if (cell.front() == '\\') {
        constexpr std::string_view letters = "0abtnvfr", values{"\0\a\b\t\n\v\f\r", 8};
        const auto at = cell.size() == 2 ? letters.find(cell[1]) : letters.npos;
        if (at == letters.npos) return std::nullopt;
        return static_cast<std::uint8_t>(values[at]);
    }
    std::uint8_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value, 8);
    if (error != std::errc{} || end != cell.data() + cell.size() || cell.size() != 3) return std::nullopt;
    return value;
}

}  // namespace

std::optional<DecodedText> cells_of_od(std::string_view text) {
    constexpr std::size_t address_digits = 7, cell_size = 4, least_bytes = 16, most_bytes = std::size_t{1} << 24;
    DecodedText out{"characters and octal digits, as od -c prints bytes", {}};
    std::string_view cells;                  // of the line before
    std::optional<std::size_t> from, first;  // its address
    std::size_t width = 16, escapes = 0;
    bool repeats = false;
    for (; !text.empty(); text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1)) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.empty() || line == "*") {
            repeats |= !line.empty();
            continue;
        }
        std::size_t to = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), to, 8);
        if (error != std::errc{} || end < line.data() + address_digits || (from && to <= *from)) return std::nullopt;
        if (!first) first = to;
        if (to - *first > most_bytes) return std::nullopt;
        if (from) {
            if (!repeats) width = to - *from;
            if (cells.size() > width * cell_size) return std::nullopt;
            for (std::size_t at = *from; at < to; ++at) {
                const std::size_t cell = (at - *from) % width * cell_size;
                const auto byte = cell_of_od(cells.substr(std::min(cell, cells.size()), cell_size));
                if (!byte) return std::nullopt;
                out.bytes.push_back(*byte);
            }
            escapes += static_cast<std::size_t>(std::count(cells.begin(), cells.end(), '\\'));
        }
        from = to;
        cells = line.substr(static_cast<std::size_t>(end - line.data()));
        repeats = false;
    }
    if (!trimmed(cells).empty() || out.bytes.size() < least_bytes || escapes == 0) return std::nullopt;
    return out;
}

}  // namespace waymark::doctor
