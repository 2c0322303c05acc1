#include "addressed_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "waymark/core/numbers.h"

namespace waymark::doctor {

namespace {

constexpr std::string_view dump_blanks = " \t\r";

/// The notation of numbers in a dump.
enum class Digits { hexadecimal, octal_words, octal_bytes, decimal_bytes };
constexpr std::array all_digits{Digits::hexadecimal, Digits::octal_words, Digits::octal_bytes, Digits::decimal_bytes};

struct DumpLine {
    std::string_view whole, address;  ///< no address: a line of another form
    std::vector<std::string_view> numbers{};
    bool colon = false;
    bool star = false;
};

std::optional<std::uint64_t> value_in(std::string_view digits, int base) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

DumpLine dump_line(std::string_view whole) {
    DumpLine out{.whole = whole, .address = {}};
    std::string_view line = whole;
    line.remove_prefix(std::min(line.find_first_not_of(dump_blanks), line.size()));
    line.remove_suffix(line.size() - std::min(line.find_last_not_of(dump_blanks) + 1, line.size()));
    out.star = line == "*";
    const std::size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
    constexpr std::size_t least_digits = 6, most_digits = 16;
    if (digits < least_digits || digits > most_digits) return out;
    std::string_view rest = line.substr(digits);
    constexpr std::string_view equals = " = ";  // of J-Link Commander
    if (rest.starts_with(equals)) rest.remove_prefix(equals.size() - 1);
    out.colon = rest.starts_with(':');
    if (!rest.empty() && !out.colon && dump_blanks.find(rest.front()) == dump_blanks.npos) return out;
    out.address = line.substr(0, digits);
    if (out.colon) {
        rest.remove_prefix(1);
        rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
        rest = rest.substr(0, rest.find("  "));  // the characters of xxd
    }
    rest = rest.substr(0, rest.find('|'));    // of hexdump -C
    rest = rest.substr(0, rest.find("  >"));  // of od -t x1z
    for (;;) {
        rest.remove_prefix(std::min(rest.find_first_not_of(dump_blanks), rest.size()));
        if (rest.empty()) return out;
        out.numbers.push_back(rest.substr(0, rest.find_first_of(dump_blanks)));
        rest.remove_prefix(out.numbers.back().size());
    }
}

/// The bytes of a number; empty if it is not written in this notation.
std::vector<std::uint8_t> bytes_of_number(std::string_view number, Digits digits) {
    const auto word = [&](std::size_t width, int base, std::uint64_t most) -> std::optional<std::uint64_t> {
        const auto value = number.size() == width ? value_in(number, base) : std::nullopt;
        return value && *value <= most ? value : std::nullopt;
    };
    switch (digits) {
        case Digits::hexadecimal:
            if (number.size() % 2 != 0 || number.size() > 16 || !value_in(number, 16)) return {};
            return std::vector<std::uint8_t>(number.size() / 2);
        case Digits::octal_words:
            if (const auto value = word(6, 8, 0xffff))
                return {static_cast<std::uint8_t>(*value), static_cast<std::uint8_t>(*value >> 8)};
            return {};
        case Digits::octal_bytes:
            if (const auto value = word(3, 8, 0xff)) return {static_cast<std::uint8_t>(*value)};
            return {};
        case Digits::decimal_bytes: {
            const bool negative = number.starts_with('-');
            if (negative) number.remove_prefix(1);
            if (number.size() > 1 && number.front() == '0') return {};
            const auto value = value_in(number, 10);
            if (!value || *value > (negative ? 0x80U : 0xffU)) return {};
            return {static_cast<std::uint8_t>(negative ? 0x100 - *value : *value)};
        }
    }
    return {};
}

/// One reading of addresses and numbers.
struct AddressReading {
    int base = 16;
    Digits digits = Digits::hexadecimal;
    std::size_t right = 0, wrong = 0;  ///< lines whose bytes end where the next one begins, and others
};

class Dump {
public:
    explicit Dump(std::string_view text) {
        while (!text.empty()) {
            const std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(line.size() + 1, text.size()));
            if (line.find_first_not_of(dump_blanks) != line.npos) lines_.push_back(dump_line(line));
        }
    }

    std::optional<AddressedDump> read() {
        const auto addressed =
            std::count_if(lines_.begin(), lines_.end(), [](const DumpLine& l) { return !l.address.empty() || l.star; });
        if (addressed < 2 || static_cast<std::size_t>(addressed) * 2 <= lines_.size() || !choose()) return std::nullopt;
        AddressedDump out;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            take_line(i, lines_[i], out);
            if (i + 1 < lines_.size()) look_between(i, out);
        }
        if (!lines_.empty() && lines_.back().star) unknown_repeats_ += 1;
        conclude(out);
        return out;
    }

private:
    [[nodiscard]] static std::size_t bytes_in(const DumpLine& line, Digits digits) {
        std::size_t out = 0;
        for (const std::string_view number : line.numbers) out += bytes_of_number(number, digits).size();
        return out;
    }
    [[nodiscard]] static std::optional<std::uint64_t> distance(const DumpLine& from, const DumpLine& to, int base) {
        const auto first = value_in(from.address, base), second = value_in(to.address, base);
        if (from.address.empty() || to.address.empty() || !first || !second || *second < *first) return std::nullopt;
        return *second - *first;
    }

    /// Chooses the reading that agrees with the distances between lines.
    bool choose() {
        const bool colon = std::any_of(lines_.begin(), lines_.end(), [](const DumpLine& l) { return l.colon; });
        for (const Digits digits : all_digits)
            for (const int base : {8, 16, 10}) {
                if (colon && (base != 16 || digits != Digits::hexadecimal)) continue;
                AddressReading tried{base, digits, 0, 0};
                for (std::size_t i = 0; i + 1 < lines_.size(); ++i) {
                    const DumpLine &line = lines_[i], &next = lines_[i + 1];
                    if (line.address.empty() || next.address.empty() || line.numbers.empty()) continue;
                    ++(distance(line, next, base) == bytes_in(line, digits) ? tried.right : tried.wrong);
                }
                if (tried.right > best_.right) best_ = tried;
            }
        return best_.right != 0 && best_.right > best_.wrong;
    }

    void take_line(std::size_t at, const DumpLine& line, AddressedDump& out) {
        if (line.star) return;
        add(line, out);
        if (line.address.empty()) return;
        for (const std::string_view number : line.numbers)
            if (bytes_of_number(number, best_.digits).empty() && unreadable_++ == 0)
                first_unreadable_ = fmt::format("'{}' behind address {}", number, lines_[at].address);
    }
    void add(const DumpLine& line, AddressedDump& out) {
        out.text.append(line.whole).push_back('\n');
        for (const std::string_view number : line.numbers)
            for (const std::uint8_t byte : bytes_of_number(number, best_.digits)) bytes_.push_back(byte);
    }

    /// Reports what the addresses show about the place after this line.
    void look_between(std::size_t at, AddressedDump& out) {
        const DumpLine &line = lines_[at], &next = lines_[at + 1];
        if (line.address.empty() || line.numbers.empty()) return;
        const std::uint64_t bytes = bytes_in(line, best_.digits);
        if (next.star) {
            const auto apart =
                at + 2 < lines_.size() ? distance(line, lines_[at + 2], best_.base) : std::optional<std::uint64_t>();
            constexpr std::uint64_t most_repeated = std::uint64_t{1} << 24;
            if (!apart || bytes == 0 || *apart % bytes != 0 || *apart > most_repeated - repeated_) {
                if (at + 2 < lines_.size()) ++unknown_repeats_;  // at the end: read()
                return;
            }
            repeated_ += *apart;
            for (std::uint64_t n = 1; n < *apart / bytes; ++n) add(line, out);
        } else if (!next.address.empty() && unreadable_in(line) == 0) {
            const auto apart = distance(line, next, best_.base);
            if (apart != bytes && gaps_++ == 0)
                first_gap_ = apart && *apart > bytes
                                 ? fmt::format("{} between the lines of addresses {} and {}",
                                               counted(*apart - bytes, "byte"), line.address, next.address)
                                 : fmt::format("address {} behind {}", next.address, line.address);
        }
    }
    [[nodiscard]] std::size_t unreadable_in(const DumpLine& line) const {
        return static_cast<std::size_t>(
            std::count_if(line.numbers.begin(), line.numbers.end(),
                          [&](std::string_view number) { return bytes_of_number(number, best_.digits).empty(); }));
    }

    void conclude(AddressedDump& out) {
        const auto say = [&](std::string sentence) { out.lacks += (out.lacks.empty() ? "" : "; ") + sentence; };
        const auto others = [](std::size_t n) { return n == 1 ? std::string() : fmt::format(", and {} more", n - 1); };
        if (unreadable_ != 0) say(fmt::format("what is no number: {}{}", first_unreadable_, others(unreadable_)));
        if (gaps_ != 0) say(fmt::format("addresses that do not follow: {}{}", first_gap_, others(gaps_)));
        if (unknown_repeats_ != 0)
            say(fmt::format("{} of '*' whose number of repeated lines is not known",
                            counted(unknown_repeats_, "line")));
        constexpr std::size_t least_bytes = 16;
        if (best_.digits == Digits::hexadecimal || bytes_.size() < least_bytes) return;
        if (best_.digits != Digits::octal_words) {
            out.readings.push_back({best_.digits == Digits::octal_bytes ? "bytes in octal digits"
                                                                        : "bytes as numbers without leading zeros",
                                    std::move(bytes_)});
            return;
        }
        std::vector<std::uint8_t> turned = bytes_;
        swap_words(turned, 2);
        out.readings.push_back({"words of 16 bits in octal digits, most significant byte first", std::move(bytes_)});
        out.readings.push_back(
            {"words of 16 bits in octal digits, the byte at the lowest address first", std::move(turned)});
    }

    std::vector<DumpLine> lines_;
    AddressReading best_;
    std::vector<std::uint8_t> bytes_;  // of numbers that are not hexadecimal
    std::uint64_t repeated_ = 0;
    std::size_t unreadable_ = 0, gaps_ = 0, unknown_repeats_ = 0;
    std::string first_unreadable_, first_gap_;
};

}  // namespace

std::optional<AddressedDump> addressed_dump(std::string_view text) { return Dump(text).read(); }

}  // namespace waymark::doctor
