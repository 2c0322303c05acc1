#include "contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "addressed_dump.h"
#include "literal_texts.h"
#include "plain_text.h"
#include "waymark/core/numbers.h"

namespace waymark::doctor {

namespace {

struct FileKind {
    std::size_t at;
    std::string_view magic, name;
};
using namespace std::string_view_literals;
constexpr std::array file_kinds{FileKind{0, "PK\x03\x04"sv, "a zip archive, as .jar and .apk are"},
                                FileKind{0, "\x89PNG\r\n"sv, "a PNG picture"},
                                FileKind{0, "\xff\xd8\xff\xe0"sv, "a JPEG picture"},
                                FileKind{0, "%PDF-"sv, "a PDF document"},
                                FileKind{0, "GIF8"sv, "a GIF picture"},
                                FileKind{0,
                                         "\xfd"
                                         "7zXZ\0"sv,
                                         "a file that xz compressed"},
                                FileKind{0, "BZh"sv, "a file that bzip2 compressed"},
                                FileKind{0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive"},
                                FileKind{257, "ustar"sv, "a tar archive"},
                                FileKind{0, "!<arch>\n"sv, "a static library"},
                                FileKind{0, "SQLite format 3\0"sv, "an SQLite database"},
                                FileKind{0, "\xd4\xc3\xb2\xa1"sv, "a capture of a network (pcap)"},
                                FileKind{0, "\x0a\x0d\x0d\x0a"sv, "a capture of a network (pcapng)"},
                                FileKind{0, "RIFF"sv, "a RIFF file (sound or film)"},
                                FileKind{0, "\xcf\xfa\xed\xfe"sv, "a Mach-O program"},
                                FileKind{0, "\xca\xfe\xba\xbe"sv, "a Java class or Mach-O program"},
                                FileKind{0, "\xd0\x0d\xfe\xed"sv, "a device tree"},
                                FileKind{0, "\x27\x05\x19\x56"sv, "a U-Boot image"},
                                FileKind{0, "\xc1\x1f\xfc\xc1"sv, "a trace in the Common Trace Format"},
                                FileKind{0,
                                         "\x7f"
                                         "ELF"sv,
                                         "an ELF file, a program or library"}};

/// Texts that do not have the bytes of a trace, by a part of them.
struct TextKind {
    std::string_view has, name, cause, advice;
};
constexpr std::array text_kinds{
    TextKind{"$enddefinitions", "levels of lines over time (VCD)", "a logic analyser or a simulator recorded lines",
             "save the session of the analyser as a file of sigrok (.sr), or let the program decode the UART or the "
             "port, and export its bytes"},
    TextKind{" nul nul ", "names of characters, as od -a prints them without the highest bit of each byte",
             "od was called with -a",
             "print the bytes with od -v -t x1, or save the buffer's memory as a binary file"}};

bool holds(Bytes bytes, std::size_t at, std::string_view what) {
    if (bytes.size() < at + what.size()) return false;
    return std::equal(what.begin(), what.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char c, std::uint8_t b) { return static_cast<std::uint8_t>(c) == b; });
}

/// The shortest period of all bytes, up to 16; 0 if there is none. Equal entries of a unit have a longer period.
std::size_t period_of(const BufferSample& sample) {
    constexpr std::size_t longest = 16;
    for (std::size_t period = 1; period <= longest; ++period) {
        const bool repeats = std::all_of(sample.pieces.begin(), sample.pieces.end(), [&](const Piece& piece) {
            const auto& b = piece.bytes;
            return b.size() >= 4 * period &&
                   std::equal(b.begin() + static_cast<std::ptrdiff_t>(period), b.end(), b.begin());
        });
        if (repeats) return period;
    }
    return 0;
}

/// Whether the bytes are only syncs of a trace port: FF FF FF 7F between frames, FF 7F within one (docs/spec/pft.md,
/// 6.3).
bool is_idle_port(const BufferSample& sample) {
    return std::all_of(sample.pieces.begin(), sample.pieces.end(), [](const Piece& piece) {
        const auto& b = piece.bytes;
        // A piece may begin in the middle of a sync.
        std::size_t at = 0;
        while (at < b.size() && at < 3 && b[at] == 0xff) ++at;
        std::uint64_t syncs = 0;
        if (at < b.size() && b[at] == 0x7f) ++at, ++syncs;
        while (at < b.size()) {
            std::size_t ones = 0;
            while (at < b.size() && b[at] == 0xff) ++at, ++ones;
            if (at == b.size()) return syncs != 0 && ones <= 3;
            if (b[at] != 0x7f || (ones != 1 && ones != 3)) return false;
            ++at;
            ++syncs;
        }
        return syncs >= 4;
    });
}

// ---- digits

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
unsigned digit(char c) {
    if (c <= '9') return static_cast<unsigned>(c - '0');
    return static_cast<unsigned>((c | 0x20) - 'a') + 10;
}

/// A number in a line, with its digits.
struct Number {
    std::string_view digits;
    bool prefixed = false;  ///< has the prefix 0x
};

/// The numbers in a text, each with its digits.
struct Numbers {
    std::vector<std::string_view> tokens;
    std::uint64_t strange = 0;   ///< count of characters that are neither number nor punctuation
    std::uint64_t prefixed = 0;  ///< count of distinct numbers with the prefix 0x, as debuggers print words
    std::uint64_t repeated = 0;  ///< count of repetitions of equal numbers
    std::string words{};         ///< other words at the beginning of the line
    bool dumped = false;         ///< lines begin with an address and a colon, without 0x: xxd
};

/// Whether the line is input to a debugger, not its output.
bool is_prompt(std::string_view line) {
    constexpr std::array prompts{"(gdb)"sv, "(lldb)"sv, ">"sv, "pyocd>"sv, "J-Link>"sv, "$ "sv, "# "sv};
    return std::any_of(prompts.begin(), prompts.end(), [&](std::string_view p) { return line.starts_with(p); });
}

/// Size of the address at the beginning of a line of a dump, with its end mark: `20000000 = ` of a J-Link,
/// `SD:20000000|` of TRACE32. 0 if there is none.
std::size_t address_before(std::string_view line) {
    std::size_t at = std::min(line.find_first_not_of(" \t"), line.size());
    const bool of_class = line.find('|') != line.npos;
    if (const auto colon = line.find(':', at);
        of_class && colon != line.npos && colon > at && colon - at <= 4 &&
        std::all_of(line.begin() + static_cast<std::ptrdiff_t>(at), line.begin() + static_cast<std::ptrdiff_t>(colon),
                    [](unsigned char c) { return std::isupper(c) != 0; }))
        at = colon + 1;
    constexpr std::size_t least_digits = 6;
    const std::size_t digits = at;
    while (at < line.size() && is_hex(line[at])) ++at;
    if (at < digits + least_digits) return 0;
    at = std::min(line.find_first_not_of(' ', at), line.size());
    const bool ends = at < line.size() && (line[at] == '=' || line[at] == '|');
    return ends ? at + 1 : 0;
}

/// The part of a TRACE32 line after the bar that contains numbers of one width, one of which the cursor may mark,
/// without the characters that follow them.
std::string_view without_characters(std::string_view line) {
    std::size_t at = 0, width = 0;
    while (at < line.size()) {
        const std::size_t first = std::min(line.find_first_not_of(" >", at), line.size());
        const std::size_t end = std::min(line.find_first_of(" >", first), line.size());
        const std::string_view token = line.substr(first, end - first);
        if (token.empty() || !std::all_of(token.begin(), token.end(), is_hex)) break;
        if (width != 0 && token.size() != width) break;
        width = token.size();
        at = end;
    }
    return line.substr(line.starts_with('>') ? 1 : 0, at - (line.starts_with('>') ? 1U : 0U));
}

/// Removes comment, address and the column of characters, which begins at `characters`, from a line.
std::string_view numbers_of_line(std::string_view line, std::size_t characters, Numbers& out) {
    if (is_prompt(line)) return {};
    line = line.substr(0, characters);
    if (const std::size_t address = address_before(line); address != 0) {
        const bool bar = line[address - 1] == '|';
        line.remove_prefix(address);
        return bar ? without_characters(line) : line;
    }
    for (const std::string_view comment : {"//"sv, "#"sv, "--"sv}) line = line.substr(0, line.find(comment));
    if (const auto bar = line.find('|'); bar != line.npos && line.find('|', bar + 1) != line.npos)
        line = line.substr(0, bar);  // hexdump -C
    if (const auto end = line.find_last_not_of(" \r"); end != line.npos && line[end] == '<')
        line = line.substr(0, line.find("  >"));  // od -t x1z
    if (const auto at = line.find_first_not_of(" \t"); at == line.npos || line[at] == '@') return {};
    if (const auto brace = line.find('{'); brace != line.npos && line.substr(0, brace).find('=') != line.npos)
        line = line.substr(brace + 1);  // behind the name of an array
    if (const auto colon = line.find(':'); colon != line.npos && line.find_first_of("\"'") > colon) {
        const std::string_view before = line.substr(0, colon);
        line = line.substr(colon + 1);
        if (before.find("0x") == before.npos && std::all_of(before.begin(), before.end(), is_hex)) {
            out.dumped = true;
            const auto first = line.find_first_not_of(' ');
            if (first != line.npos) line = line.substr(0, line.find("  ", first));  // xxd: two blanks, and characters
        }
    }
    return line;
}

/// Handles `0x0 <repeats 14 times>`, which gdb prints for 14 equal numbers; `rest` begins after `repeats`. Returns how
/// many numbers it adds to the row: 0 if they would exceed `most`.
std::size_t repeat(std::vector<Number>& row, std::string_view& rest, std::size_t most) {
    const auto end = std::min(rest.find('>'), rest.size());
    const std::string_view times = rest.substr(std::min(rest.find_first_not_of(' '), end), end);
    std::size_t count = 0;
    std::from_chars(times.data(), times.data() + times.size(), count);
    rest.remove_prefix(end);
    if (count < 2 || count > most) return 0;
    row.insert(row.end(), count - 1, Number(row.back()));
    return count - 1;
}

/// Whether `0b` begins bits; a hexadecimal word may begin with it too.
bool is_bits(std::string_view token) {
    const std::string_view bits = token.substr(2);
    return bits.size() >= 8 && bits.size() % 8 == 0 &&
           std::all_of(bits.begin(), bits.end(), [](char c) { return c == '0' || c == '1'; });
}

/// The column, after two blanks, at which most lines with an address show their bytes as characters; npos if they show
/// none.
std::size_t column_of_characters(std::string_view text) {
    std::map<std::size_t, std::size_t> columns;
    std::size_t lines = 0;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const auto colon = line.find(':');
        if (colon == line.npos || line.find('|') != line.npos) continue;
        ++lines;
        const auto other = std::find_if(line.rbegin(), std::make_reverse_iterator(line.begin() + colon + 1),
                                        [](char c) { return !is_hex(c) && c != ' ' && c != '\r'; });
        const auto last = static_cast<std::size_t>(line.rend() - other);  // the number of signs up to that one
        // Characters may include blanks, so every column that is followed by other signs than digits counts.
        for (auto at = line.find("  ", colon + 1); at != line.npos; at = line.find("  ", at)) {
            at = line.find_first_not_of(' ', at);
            if (at == line.npos || at >= last) break;
            ++columns[at];
        }
    }
    const auto most = std::max_element(columns.begin(), columns.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most != columns.end() && most->second * 2 > lines ? most->first : std::string_view::npos;
}

void add_line(std::string_view line, std::size_t characters, Numbers& out) {
    line = numbers_of_line(line, characters, out);
    std::vector<Number> row;
    std::string words;
    std::uint64_t strange = 0, prefixed = 0, repeated = 0;
    constexpr std::string_view separators = " \t\r,;=<>{}()[]";
    while (!line.empty()) {
        const auto first = line.find_first_not_of(separators);
        if (first == line.npos) break;
        line.remove_prefix(first);
        std::string_view token = line.substr(0, line.find_first_of(separators));
        line.remove_prefix(token.size());
        const bool hexadecimal = token.starts_with("0x") || token.starts_with("0X");
        if (hexadecimal) {
            token.remove_prefix(2);
            token = token.substr(0, token.find_last_not_of("uUlL") + 1);  // as in C
            ++prefixed;
        } else if (token == "repeats" && !row.empty()) {
            constexpr std::size_t most_repeated = 1U << 20;  // limit for all numbers in the text
            const std::size_t added =
                repeat(row, line, most_repeated - std::min(out.repeated + repeated, most_repeated));
            repeated += added;
            if (added == 0)
                out.strange += std::uint64_t{1}
                               << 32;  // without these, the numbers that follow would be at other offsets
            continue;
        } else if (token[0] == '$' ||
                   std::none_of(token.begin(), token.end(), [](unsigned char c) { return std::isalnum(c) != 0; })) {
            continue;  // a value's name in gdb, an arrow, or the dots at the end of a list
        } else if (token.starts_with("0b") && is_bits(token)) {
            token.remove_prefix(2);
        }
        if (token.empty() || !std::all_of(token.begin(), token.end(), is_hex)) {
            ++strange;
            words.append(token).push_back(' ');
        } else {
            row.push_back({token, hexadecimal});
        }
    }
    // Among numbers with 0x, numbers without it are line numbers; words that occur in each line are headings: source,
    // destination.
    const bool listing = prefixed != 0 && prefixed * 2 >= row.size() - repeated;
    if (listing) std::erase_if(row, [](const Number& n) { return !n.prefixed; });
    if (!listing || words != out.words) out.strange += strange;
    if (listing) out.words = std::move(words);
    out.prefixed += prefixed;
    out.repeated += repeated;
    // od and hexdump print an address without a colon, with another width than the numbers.
    const auto width = [&](std::size_t i) { return row[i].digits.size(); };
    if (!listing && row.size() >= 2 && width(0) >= 6 && width(0) != width(1) &&
        std::all_of(row.begin() + 1, row.end(), [&](const Number& n) { return n.digits.size() == width(1); }))
        row.erase(row.begin());
    else if (row.size() == 1 && width(0) >= 6 && width(0) <= 8 && !out.tokens.empty() &&
             out.tokens.back().size() != width(0))
        row.clear();  // the last line of od is the end address
    for (const Number& number : row) out.tokens.push_back(number.digits);
}

Numbers numbers_in(std::string_view text) {
    Numbers out;
    // A .coe file has labelled parts.
    if (const auto vector = text.find("memory_initialization_vector"); vector != text.npos)
        text = text.substr(std::min(text.find('=', vector), text.size() - 1) + 1);
    const std::size_t characters = column_of_characters(text);
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        add_line(line, characters, out);
    }
    return out;
}

/// Records of Intel HEX and of Motorola (S19): bytes at addresses, each with a sum.
class RecordFile {
public:
    /// Returns false if it is not a record, or its sum is wrong.
    bool take(std::string_view line) {
        const bool intel = line.starts_with(':');
        const bool motorola = line.size() > 1 && line.front() == 'S' && line[1] >= '0' && line[1] <= '9';
        if (!intel && !motorola) return false;
        const std::string_view digits = line.substr(intel ? 1 : 2);
        if (digits.size() % 2 != 0 || !std::all_of(digits.begin(), digits.end(), is_hex)) return false;
        std::vector<std::uint8_t> bytes;
        unsigned sum = 0;
        for (std::size_t i = 0; i < digits.size(); i += 2) {
            bytes.push_back(static_cast<std::uint8_t>(digit(digits[i]) << 4U | digit(digits[i + 1])));
            sum += bytes.back();
        }
        name_ = intel ? "Intel HEX" : "Motorola S-records";
        return intel ? take_intel(bytes, sum) : take_motorola(line[1], bytes, sum);
    }
    [[nodiscard]] std::string_view name() const { return name_; }
    /// The longest run of consecutive bytes, and the number of runs.
    [[nodiscard]] std::pair<std::vector<std::uint8_t>, std::size_t> longest() const {
        std::pair<std::vector<std::uint8_t>, std::size_t> out;
        std::vector<std::uint8_t> run;
        std::uint64_t end = 0;
        for (const auto& [address, bytes] : pieces_) {
            if (address != end || out.second == 0) {
                if (run.size() > out.first.size()) out.first = std::move(run);
                run.clear();
                ++out.second;
            }
            run.insert(run.end(), bytes.begin(), bytes.end());
            end = address + bytes.size();
        }
        if (run.size() > out.first.size()) out.first = std::move(run);
        return out;
    }

private:
    bool take_intel(const std::vector<std::uint8_t>& b, unsigned sum) {
        constexpr std::size_t around = 5;  // length, address, type and sum
        if (b.size() < around || b.size() != around + b[0] || (sum & 0xffU) != 0) return false;
        const std::uint64_t low = std::uint64_t{b[1]} << 8 | b[2],
                            high = b[0] == 2 ? std::uint64_t{b[4]} << 8 | b[5] : 0;
        if (b[3] == 0) add(base_ + low, {b.begin() + 4, b.end() - 1});
        if (b[3] == 2 && b[0] == 2) base_ = high << 4;
        if (b[3] == 4 && b[0] == 2) base_ = high << 16;
        return true;
    }
    bool take_motorola(char type, const std::vector<std::uint8_t>& b, unsigned sum) {
        constexpr std::array<std::size_t, 4> address_bytes{2, 2, 3, 4};
        if (b.size() < 4 || b.size() != 1U + b[0] || (sum & 0xffU) != 0xff) return false;
        if (type < '1' || type > '3') return true;
        const std::size_t size = address_bytes[static_cast<std::size_t>(type - '0')];
        if (b.size() < size + 2) return false;
        std::uint64_t address = 0;
        for (std::size_t i = 0; i < size; ++i) address = address << 8 | b[1 + i];
        add(address, {b.begin() + 1 + static_cast<std::ptrdiff_t>(size), b.end() - 1});
        return true;
    }
    void add(std::uint64_t address, std::vector<std::uint8_t> bytes) {
        if (!bytes.empty()) pieces_[address] = std::move(bytes);
    }
    std::map<std::uint64_t, std::vector<std::uint8_t>> pieces_;
    std::uint64_t base_ = 0;
    std::string_view name_;
};

/// The bytes of a text that consists only of such records.
std::optional<DecodedText> records_in(std::string_view text) {
    RecordFile file;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
        if (!line.empty() && !file.take(line)) return std::nullopt;
    }
    auto [bytes, runs] = file.longest();
    if (bytes.empty()) return std::nullopt;
    return DecodedText{
        runs == 1 ? std::string(file.name()) : fmt::format("{}, the longest of {} pieces of memory", file.name(), runs),
        std::move(bytes)};
}

/// Converts the digits to bytes, in the order of the text.
std::vector<std::uint8_t> bytes_of(const std::vector<std::string_view>& tokens, unsigned bits_a_digit) {
    std::vector<std::uint8_t> out;
    unsigned value = 0, bits = 0;
    for (const std::string_view token : tokens)
        for (const char c : token) {
            value = value << bits_a_digit | digit(c);
            bits += bits_a_digit;
            if (bits != 8) continue;
            out.push_back(static_cast<std::uint8_t>(value));
            value = bits = 0;
        }
    return out;
}

/// The values as words of each size that holds `longest` digits, in the byte order of memory and in the reverse order.
/// Numbers of at most two digits are most likely bytes, others words of 32 bits.
std::vector<DecodedText> values_in(const std::vector<std::string_view>& tokens, std::size_t longest) {
    constexpr const char* digits = "in hexadecimal digits, without leading zeros";
    std::vector<DecodedText> out;
    for (const unsigned word_size : {4U, 2U, 1U}) {
        if (longest > std::size_t{2} * word_size) break;
        std::vector<std::uint8_t> little;
        for (const std::string_view token : tokens) {
            std::uint32_t value = 0;
            std::from_chars(token.data(), token.data() + token.size(), value, 16);
            for (unsigned byte = 0; byte < word_size; ++byte)
                little.push_back(static_cast<std::uint8_t>(value >> 8 * byte));
        }
        DecodedText read{word_size == 1 ? fmt::format("bytes {}", digits)
                                        : fmt::format("words of {} bits {}", 8 * word_size, digits),
                         std::move(little)};
        constexpr std::size_t byte_digits = 2;
        out.insert(longest <= byte_digits && word_size == 1 ? out.begin() : out.end(), read);
        if (word_size == 1) continue;
        swap_words(read.bytes, word_size);
        read.how += ", the byte at the lowest address first";
        out.push_back(std::move(read));
    }
    return out;
}

}  // namespace

void swap_words(std::vector<std::uint8_t>& bytes, std::size_t word_size) {
    for (std::size_t at = 0; at + word_size <= bytes.size(); at += word_size)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + word_size));
}

void swap_bits(std::vector<std::uint8_t>& bytes, std::size_t) {
    for (std::uint8_t& byte : bytes) {
        unsigned turned = 0;
        for (unsigned bit = 0; bit < 8; ++bit) turned |= (byte >> bit & 1U) << (7 - bit);
        byte = static_cast<std::uint8_t>(turned);
    }
}

void invert(std::vector<std::uint8_t>& bytes, std::size_t) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(~byte);
}

void swap_halves(std::vector<std::uint8_t>& bytes, std::size_t word_size) {
    for (std::size_t at = 0; at + word_size <= bytes.size(); at += word_size) {
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        std::swap_ranges(first, first + static_cast<std::ptrdiff_t>(word_size / 2),
                         first + static_cast<std::ptrdiff_t>(word_size / 2));
    }
}

namespace {

/// The readings of digits in columns.
std::vector<DecodedText> decode_columns(std::string_view characters) {
    const Numbers numbers = numbers_in(characters);
    constexpr std::size_t least_numbers = 4, least_bytes = 16;
    if (numbers.tokens.size() < 1 || numbers.strange * 16 > numbers.tokens.size()) return {};
    std::map<std::size_t, std::size_t> widths;
    for (const std::string_view token : numbers.tokens) ++widths[token.size()];
    const auto most = std::max_element(widths.begin(), widths.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    // gdb and scripts print numbers without leading zeros.
    constexpr std::size_t least_words = 8, word_digits = 8;
    const std::size_t longest = widths.rbegin()->first;
    if (widths.size() > 1 && numbers.prefixed >= least_words &&
        numbers.prefixed + numbers.repeated >= numbers.tokens.size() && longest <= word_digits)
        return values_in(numbers.tokens, longest);
    const std::size_t width = most->first;
    if (most->second * 8 < numbers.tokens.size() * 7) return {};
    // Words of another width are unrelated text; the last one may be shorter.
    std::vector<std::string_view> words;
    for (const std::string_view token : numbers.tokens)
        if (token.size() == width || (!words.empty() && token.size() % 2 == 0 && token.size() < width))
            words.push_back(token);
    const bool bits = width % 8 == 0 && std::all_of(words.begin(), words.end(), [](std::string_view t) {
                          return std::all_of(t.begin(), t.end(), [](char c) { return c == '0' || c == '1'; });
                      });
    if (!bits && (width % 2 != 0 || (words.size() < least_numbers && width < 2 * least_bytes))) return {};
    const std::size_t word_size = bits ? width / 8 : width / 2;
    std::vector<std::uint8_t> bytes = bytes_of(words, bits ? 1 : 4);
    if (bytes.size() < least_bytes) return {};
    const char* const digits = bits ? "bits" : "hexadecimal digits";
    if (word_size == 1) return {{fmt::format("bytes in {}", digits), std::move(bytes)}};
    if (word_size > 8) return {{fmt::format("bytes in {}, {} in each number", digits, word_size), std::move(bytes)}};
    DecodedText as_written{
        fmt::format("words of {} bits in {}, the byte at the lowest address first", word_size * 8, digits), bytes};
    swap_words(bytes, word_size);
    DecodedText turned{fmt::format("words of {} bits in {}, most significant byte first", word_size * 8, digits),
                       std::move(bytes)};
    std::vector<DecodedText> out;
    out.push_back(std::move(numbers.dumped && numbers.prefixed == 0 ? as_written : turned));
    out.push_back(std::move(numbers.dumped && numbers.prefixed == 0 ? turned : as_written));
    return out;
}

}  // namespace

std::vector<DecodedText> decode_text(Bytes text) {
    auto plain = plain_text(text);
    if (!plain) return {};
    // Pairs of digits with a colon between them, as OpenSSL prints bytes.
    if (std::count(plain->begin(), plain->end(), ':') * 7 >= static_cast<std::ptrdiff_t>(plain->size()) * 2 &&
        plain->find_first_not_of("0123456789abcdefABCDEF: \n") == plain->npos)
        std::replace(plain->begin(), plain->end(), ':', ' ');
    const std::string_view characters = *plain;
    for (const auto reader : {records_in, uuencoded, cells_of_od, numbers_in_brackets, bytes_literal, column_of_table,
                              decimal_columns, base64})
        if (auto read = reader(characters)) return {std::move(*read)};
    if (!why_no_list(characters).empty()) return {};
    const auto dump = addressed_dump(characters);
    if (!dump) return decode_columns(characters);
    std::vector<DecodedText> out = dump->readings.empty() ? decode_columns(dump->text) : dump->readings;
    for (DecodedText& reading : out) reading.lacks = dump->lacks;
    return out;
}

std::string hex_bytes(const std::vector<std::uint8_t>& bytes, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += fmt::format("{}{:02x}", i == 0 ? "" : " ", bytes[i]);
    return out;
}

std::optional<Fill> fill_at_the_end(const std::vector<std::uint8_t>& bytes) {
    constexpr std::size_t least_bytes = 256;
    for (const std::size_t period : {1U, 2U, 4U, 8U}) {
        if (bytes.size() < least_bytes) return std::nullopt;
        std::size_t begin = bytes.size() - period;
        while (begin != 0 && bytes[begin - 1] == bytes[begin - 1 + period]) --begin;
        if (bytes.size() - begin < least_bytes) continue;
        // Memory is filled by aligned words.
        const std::size_t aligned = (begin + period - 1) / period * period;
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(aligned);
        Fill out{begin, {first, first + static_cast<std::ptrdiff_t>(period)}};
        BufferSample repeated;
        repeated.pieces.push_back({{}, {bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end()}});
        if (out.repeated == std::vector<std::uint8_t>(1, 0) || is_idle_port(repeated)) return std::nullopt;
        return out;
    }
    return std::nullopt;
}

std::optional<NoTrace> no_trace_in(const BufferSample& sample) {
    if (sample.pieces.empty() || sample.bytes() == 0) return {};
    const std::vector<std::uint8_t>& head = sample.pieces.front().bytes;
    const std::string all = counted(sample.bytes(), "byte");
    constexpr std::size_t least = 64;
    for (const FileKind& kind : file_kinds)
        if (holds(head, kind.at, kind.magic))
            return NoTrace{"other-file", fmt::format("{}", kind.name), "another file was named",
                           "name the file of the trace buffer"};
    if (const auto text = plain_text(head)) {
        const std::string why = why_no_list(*text);
        if (!why.empty())
            return NoTrace{"text", fmt::format("a text of {}, whose numbers are not bytes of trace: {}", all, why),
                           "a line was cut or changed, or the numbers have another meaning",
                           "save the buffer's memory as a binary file, or print all of its bytes"};
        for (const TextKind& kind : text_kinds)
            if (text->find(kind.has) != text->npos)
                return NoTrace{"text", fmt::format("a text of {}: {}", all, kind.name), std::string(kind.cause),
                               std::string(kind.advice)};
        return NoTrace{"text", fmt::format("a text of {}, but no numbers that could be bytes of trace", all),
                       "another file was named, or what a tool printed", "save the buffer's memory as a binary file"};
    }
    if (sample.bytes() < least) return {};
    if (const std::size_t period = period_of(sample); period == 1) {
        const unsigned value = head.front();
        if (value == 0xff)
            return NoTrace{"erased", fmt::format("{}, all of them 0xff", all),
                           "erased flash memory, or a bus that nothing answered on",
                           "check that the sink was enabled and its address; record again"};
        if (value == 0)
            return NoTrace{"never-written", fmt::format("{}, all of them 0", all),
                           "memory that was cleared, and no trace unit wrote to it",
                           "check that unit, funnel and sink were enabled and the core's clock was on; record again"};
        return NoTrace{"pattern", fmt::format("{}, all of them {:#04x}", all, value),
                       "memory that was filled, and no trace unit wrote to it",
                       "check that the sink was enabled, and the address of the dump; record again"};
    } else if (is_idle_port(sample)) {
        return NoTrace{"idle-port", fmt::format("{} of syncs of a trace port, and no frame", all),
                       "the port was idle: no unit sent anything, or the formatter was never started",
                       "enable a trace unit and its port of the funnel, then record again"};
    } else if (period != 0) {
        return NoTrace{"pattern",
                       fmt::format("{} that repeat {} {}", all, counted(period, "byte"), hex_bytes(head, period)),
                       "memory that was filled, and no trace unit wrote to it",
                       "check that the sink was enabled, and the address of the dump; record again"};
    }
    return {};
}

}  // namespace waymark::doctor
