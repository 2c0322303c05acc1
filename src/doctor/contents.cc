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

std::string hex_bytes(const std::vector<std::uint8_t>& bytes, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += fmt::format("{}{:02x}", i == 0 ? "" : " ", bytes[i]);
    return out;
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

/// Removes comment, address and the column of characters from a line.
std::string_view numbers_of_line(std::string_view line, Numbers& out) {
    if (is_prompt(line)) return {};
    for (const std::string_view comment : {"//"sv, "#"sv, "--"sv}) line = line.substr(0, line.find(comment));
    if (const auto bar = line.find('|'); bar != line.npos && line.find('|', bar + 1) != line.npos)
        line = line.substr(0, bar);  // hexdump -C
    if (const auto at = line.find_first_not_of(" \t"); at == line.npos || line[at] == '@') return {};
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

void add_line(std::string_view line, Numbers& out) {
    line = numbers_of_line(line, out);
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
        } else if (token.starts_with("0b")) {
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
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        add_line(line, out);
    }
    return out;
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

bool is_text(Bytes bytes) {
    constexpr std::size_t least = 8;
    if (bytes.size() < least) return false;
    std::uint64_t beyond = 0;  // number of bytes outside of ASCII, which are valid as UTF-8 sequences
    unsigned others = 0;
    for (const std::uint8_t c : bytes) {
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
        } else if (!((c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t' || c == '\f')) {
            return false;
        }
    }
    return beyond * 2 <= bytes.size();
}

void swap_words(std::vector<std::uint8_t>& bytes, std::size_t word_size) {
    for (std::size_t at = 0; at + word_size <= bytes.size(); at += word_size)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + word_size));
}

std::vector<DecodedText> decode_text(Bytes text) {
    if (!is_text(text)) return {};
    const Numbers numbers = numbers_in({reinterpret_cast<const char*>(text.data()), text.size()});
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

std::optional<NoTrace> no_trace_in(const BufferSample& sample) {
    if (sample.pieces.empty() || sample.bytes() == 0) return {};
    const std::vector<std::uint8_t>& head = sample.pieces.front().bytes;
    const std::string all = counted(sample.bytes(), "byte");
    constexpr std::size_t least = 64;
    for (const FileKind& kind : file_kinds)
        if (holds(head, kind.at, kind.magic))
            return NoTrace{"other-file", fmt::format("{}", kind.name), "another file was named",
                           "name the file of the trace buffer"};
    if (is_text(head))
        return NoTrace{"text", fmt::format("a text of {}, and no numbers that could be bytes of trace", all),
                       "another file was named, or what a tool printed", "save the buffer's memory as a binary file"};
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
