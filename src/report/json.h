/// A report consists mostly of numbers: a comma and its number are appended at once.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "waymark/core/quote.h"

namespace waymark::report {

class Json {
public:
    /// A member's name, in an object.
    Json& key(std::string_view name) {
        separate();
        text(name);
        out_ += ':';
        first_ = true;
        return *this;
    }
    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }

    void string(std::string_view value) {
        separate();
        text(value);
    }
    template <class Number>
    void number(Number value) {
        if constexpr (std::is_integral_v<Number>) {
            // Most of a report are numbers: a comma and its number are appended at once.
            std::array<char, 24> text;
            text[0] = ',';
            const char* const end = std::to_chars(text.data() + 1, text.data() + text.size(), value).ptr;
            const char* const begin = text.data() + (first_ ? 1 : 0);
            out_.append(begin, static_cast<std::size_t>(end - begin));
            first_ = false;
        } else {
            separate();
            out_ += fmt::to_string(value);
        }
    }
    void boolean(bool value) {
        separate();
        out_ += value ? "true" : "false";
    }
    void null() {
        separate();
        out_ += "null";
    }

    /// Writes an array of `value(row)` for each row.
    template <class Rows, class Value>
    void column(std::string_view name, const Rows& rows, Value&& value) {
        key(name).begin_array();
        for (const auto& row : rows) number(value(row));
        end_array();
    }
    template <class Rows, class Value>
    void strings(std::string_view name, const Rows& rows, Value&& value) {
        key(name).begin_array();
        for (const auto& row : rows) string(value(row));
        end_array();
    }
    /// Writes the first value, then differences, which compress better if rows are sorted.
    template <class Rows, class Value>
    void differences(std::string_view name, const Rows& rows, Value&& value) {
        std::int64_t last = 0;
        column(name, rows, [&](const auto& row) {
            const auto now = static_cast<std::int64_t>(value(row));
            return now - std::exchange(last, now);
        });
    }
    /// Writes addresses as differences; an address too large for a number of JavaScript is written in full, as a
    /// hexadecimal string.
    template <class Rows, class Value>
    void addresses(std::string_view name, const Rows& rows, Value&& value) {
        constexpr std::uint64_t most = std::uint64_t{1} << 52;
        std::uint64_t last = 0;
        key(name).begin_array();
        for (const auto& row : rows) {
            const std::uint64_t now = value(row), up = now - last, down = last - now;
            if (up < most)
                number(up);
            else if (down < most)
                number(-static_cast<std::int64_t>(down));
            else
                string(fmt::format("{:x}", now));
            last = now;
        }
        end_array();
    }

    [[nodiscard]] const std::string& str() const { return out_; }

private:
    void open(char bracket) {
        separate();
        out_ += bracket;
        first_ = true;
    }
    void close(char bracket) {
        out_ += bracket;
        first_ = false;
    }
    void separate() {
        if (!first_) out_ += ',';
        first_ = false;
    }
    void text(std::string_view value) {
        // The page shows texts unchanged.
        const bool ascii = std::none_of(value.begin(), value.end(), [](char c) { return (c & 0x80) != 0; });
        const std::string shown = ascii ? std::string() : without_direction_marks(value);
        json_pieces(ascii ? value : shown, [&](std::string_view piece) { out_ += piece; });
    }

    std::string out_;
    bool first_ = true;
};

}  // namespace waymark::report
