#include "waymark/syst/printf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "waymark/core/numbers.h"
#include "waymark/syst/message.h"

namespace waymark::syst {

namespace {

constexpr unsigned most_width = 1024;
constexpr std::size_t most_formatted = std::size_t{1} << 20;

/// One conversion of a format.
struct Conversion {
    std::string flags;
    std::string length;  // hh, h, l, ll, j, z, t, L, or empty
    std::optional<int> width{}, precision{};
    char letter{};
};

class Formatter {
public:
    Formatter(std::string_view format, Bytes arguments, unsigned word)
        : format_(format), arguments_(arguments), word_(word) {}

    Formatted run() {
        while (at_ < format_.size() && problem_.empty()) {
            const std::size_t percent = std::min(format_.find('%', at_), format_.size());
            text_ += format_.substr(at_, percent - at_);
            at_ = percent;
            if (at_ == format_.size()) break;
            begin_ = at_;
            if (!convert()) break;
            if (text_.size() > most_formatted) problem_ = "the text is longer than a million bytes";
        }
        if (!problem_.empty())
            text_ += format_.substr(begin_);
        else if (used_ != arguments_.size())
            problem_ = fmt::format("of {} of arguments {} in no conversion", counted(arguments_.size(), "byte"),
                                   counted(arguments_.size() - used_, "is", "are"));
        return {std::move(text_), std::move(problem_)};
    }

private:
    bool fail(std::string why) {
        problem_ = std::move(why);
        return false;
    }
    [[nodiscard]] char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }
    std::optional<std::uint64_t> take(unsigned size) {
        if (arguments_.size() - used_ < size) {
            fail("the arguments end after " + counted(arguments_.size(), "byte"));
            return {};
        }
        const std::uint64_t out = number_in(arguments_, used_, size);
        used_ += size;
        return out;
    }
    /// A width or precision: digits, or `*` and an argument.
    bool count(std::optional<int>& out) {
        if (peek() == '*') {
            ++at_;
            const auto value = take(4);
            if (!value) return false;
            out = static_cast<int>(static_cast<std::int32_t>(*value));
        } else {
            int value = 0;
            bool any = false;
            for (; peek() >= '0' && peek() <= '9'; ++at_) {
                value = std::min<int>(10 * value + (peek() - '0'), 10 * most_width);
                any = true;
            }
            if (any) out = value;
        }
        if (out && (*out > static_cast<int>(most_width) || *out < -static_cast<int>(most_width)))
            return fail(fmt::format("a width or precision of {}", *out));
        return true;
    }
    bool convert() {
        Conversion c;
        ++at_;
        while (std::string_view("-+ #0").find(peek()) != std::string_view::npos && peek() != '\0')
            c.flags += format_[at_++];
        if (!count(c.width)) return false;
        if (peek() == '.') {
            ++at_;
            c.precision = 0;
            if (!count(c.precision)) return false;
            // A negative precision counts as an absent one.
            if (*c.precision < 0) c.precision.reset();
        }
        while (std::string_view("hljztL").find(peek()) != std::string_view::npos && peek() != '\0')
            c.length += format_[at_++];
        c.letter = peek();
        if (c.letter == '\0') return fail("the format ends inside a conversion");
        ++at_;
        switch (c.letter) {
            case '%': text_ += '%'; return true;
            case 'd':
            case 'i':
            case 'u':
            case 'o':
            case 'x':
            case 'X': return integer(c);
            case 'c': {
                const auto value = take(4);
                if (!value) return false;
                const std::string one(1, static_cast<char>(*value & 0xffU));
                pad(one, c);
                return true;
            }
            case 'f':
            case 'F':
            case 'e':
            case 'E':
            case 'g':
            case 'G':
            case 'a':
            case 'A': {
                const auto value = take(8);
                if (!value) return false;
                print(c, "", std::bit_cast<double>(*value));
                return true;
            }
            case 'p': {
                const auto value = take(word_);
                if (!value) return false;
                pad(fmt::format("{:#x}", *value), c);
                return true;
            }
            case 'n': return take(word_).has_value();
            case 's': return string(c);
            default: return fail(fmt::format("no conversion {}", format_.substr(begin_, at_ - begin_)));
        }
    }
    bool integer(const Conversion& c) {
        const bool is_signed = c.letter == 'd' || c.letter == 'i';
        unsigned size = 4, significant = 4;
        if (c.length == "l" || c.length == "z" || c.length == "t")
            size = significant = word_;
        else if (c.length == "ll" || c.length == "j")
            size = significant = 8;
        else if (c.length == "h")
            significant = 2;
        else if (c.length == "hh")
            significant = 1;
        else if (!c.length.empty())
            return fail(fmt::format("no conversion {}", format_.substr(begin_, at_ - begin_)));
        const auto taken = take(size);
        if (!taken) return false;
        const unsigned unused = 64 - 8 * significant;
        if (is_signed)
            print(c, "ll", static_cast<long long>(*taken << unused) >> unused);
        else
            print(c, "ll", static_cast<unsigned long long>(*taken << unused >> unused));
        return true;
    }
    bool string(const Conversion& c) {
        const auto rest = arguments_.subspan(used_);
        const auto end = std::find(rest.begin(), rest.end(), std::uint8_t{0});
        if (end == rest.end()) return fail("a string has no end");
        std::string value(rest.begin(), end);
        used_ += value.size() + 1;
        if (c.precision) value.resize(std::min(value.size(), static_cast<std::size_t>(*c.precision)));
        pad(value, c);
        return true;
    }
    void pad(const std::string& value, const Conversion& c) {
        const int width = c.width.value_or(0);
        const auto least = static_cast<std::size_t>(width < 0 ? -width : width);
        const std::string blanks(least > value.size() ? least - value.size() : 0, ' ');
        const bool left = width < 0 || c.flags.find('-') != std::string::npos;
        text_ += left ? value + blanks : blanks + value;
    }
    /// Calls the C library with a format that consists of verified parts.
    template <class T>
    void print(const Conversion& c, const char* length, T value) {
        std::string how = "%";
        for (const char flag : {'-', '+', ' ', '#', '0'})
            if (c.flags.find(flag) != std::string::npos) how += flag;
        // A negative width from an argument means a flag and a width.
        if (c.width && *c.width < 0) how += '-';
        if (c.width) how += std::to_string(*c.width < 0 ? -*c.width : *c.width);
        if (c.precision) how += '.' + std::to_string(*c.precision);
        how += length;
        how += c.letter;
        // The longest number is a double of 309 digits with a precision.
        std::array<char, 2 * most_width + 512> buffer{};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        const int size = std::snprintf(buffer.data(), buffer.size(), how.c_str(), value);
#pragma GCC diagnostic pop
        if (size > 0) text_.append(buffer.data(), std::min(static_cast<std::size_t>(size), buffer.size() - 1));
    }

    std::string_view format_;
    Bytes arguments_;
    unsigned word_;
    std::size_t at_ = 0, begin_ = 0, used_ = 0;
    std::string text_, problem_;
};

}  // namespace

Formatted format_packed(std::string_view format, Bytes arguments, unsigned word) {
    return Formatter(format, arguments, word).run();
}

}  // namespace waymark::syst
