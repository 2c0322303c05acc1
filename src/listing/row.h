/// Rows of a listing. A function describes the cells of a row once, each by a call with its name, whether its value is
/// known, and the value. A writer turns the calls into a row of tab-separated values, a JSON object, or the names of
/// the columns. The writers are fast enough for millions of lines; general formatting is not. bench/text_row_rates.cc:
/// a row of `spe records --format tsv` takes 38 ns, but 778 ns with one call of fmt for the row (g++ 12, -O3); the
/// whole command takes 140 ns for each record (docs/performance.md).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "waymark/core/number_text.h"
#include "waymark/core/types.h"
#include "waymark/core/utf8.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// Whether the text is printable ASCII, so that one_line() would change nothing.
[[nodiscard]] inline bool is_plain(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
}

/// Text that grows at its end.
class RowText {
public:
    [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }
    void clear() { size_ = 0; }
    /// Room for the next `bytes`; taken() states how many were used.
    [[nodiscard]] char* room(std::size_t bytes) {
        if (text_.size() - size_ < bytes) text_.resize(std::max(text_.size() * 2, size_ + bytes));
        return text_.data() + size_;
    }
    void taken(const char* end) { size_ = static_cast<std::size_t>(end - text_.data()); }
    void put(std::string_view s) { taken(std::copy(s.begin(), s.end(), room(s.size()))); }
    /// Number of bytes up to `at`, a place in the latest room().
    [[nodiscard]] std::size_t size_to(const char* at) const { return static_cast<std::size_t>(at - text_.data()); }
    [[nodiscard]] std::string_view view_from(std::size_t first, const char* at) const {
        return {text_.data() + first, size_to(at) - first};
    }
    void replace_last(char c) { text_[size_ - 1] = c; }

private:
    std::vector<char> text_;
    std::size_t size_ = 0;
};

/// The values that determine a text shared by several rows.
using SameKey = std::array<std::uint64_t, 9>;

/// Texts that several rows share: formatted once, then copied.
class SameTexts {
public:
    static constexpr std::size_t parts = 4, text_bytes = 1200, copy_bytes = 32;
    class Text {
    public:
        /// Copies a part if it is remembered, and returns its end; otherwise null. There must be room for `copy_bytes`
        /// more.
        [[nodiscard]] WM_INLINE char* put(std::size_t part, char* at) const {
            const std::size_t first = begin(part), end = ends_[part];
            if (end == 0) [[unlikely]]
                return nullptr;
            for (std::size_t from = first; from < end; from += copy_bytes)
                std::memcpy(at + (from - first), &text_[from], copy_bytes);
            return at + (end - first);
        }
        /// Parts are remembered in order. If one does not fit, later parts, which begin at its end, do not fit either.
        void remember(std::size_t part, std::string_view written) {
            const std::size_t first = begin(part);
            if ((part != 0 && ends_[part - 1] == 0) || first + written.size() > text_bytes) return;
            std::copy(written.begin(), written.end(), text_.begin() + static_cast<std::ptrdiff_t>(first));
            ends_[part] = static_cast<std::uint16_t>(first + written.size());
        }

    private:
        friend class SameTexts;
        [[nodiscard]] std::size_t begin(std::size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }
        [[nodiscard]] WM_INLINE bool is(const SameKey& key) const {
            std::uint64_t different = 0;
            for (std::size_t i = 0; i < key.size(); ++i) different |= key[i] ^ key_[i];
            return different == 0 && used_;
        }

        SameKey key_{};
        bool used_ = false;
        std::array<std::uint16_t, parts> ends_{};         // 0: not remembered
        std::array<char, text_bytes + copy_bytes> text_;  // copies of fixed length may read beyond the end
    };

    /// The remembered cells of rows with this key; empty if no such row was seen lately.
    [[nodiscard]] WM_INLINE Text& find(const SameKey& key) {
        constexpr std::uint64_t odd = 0x9e37'79b9'7f4a'7c15U;
        const std::uint64_t mixed = (key[0] >> 2 ^ key[1] << 3 ^ key[2] << 1 ^ key[3]) * odd ^ key[6] * odd;
        Text& text = texts_[(mixed >> 32) % texts];
        if (!text.is(key)) [[unlikely]] {
            text.key_ = key;
            text.used_ = true;
            text.ends_ = {};
        }
        return text;
    }
    void clear() {
        for (Text& text : texts_) text.used_ = false;
    }

private:
    static constexpr std::size_t texts = 2048;
    std::vector<Text> texts_ = std::vector<Text>(texts);
};

/// The text cache for rows whose cells are formatted each time.
struct NoSame {
    [[nodiscard]] char* put(std::size_t, char*) const { return nullptr; }
    void remember(std::size_t, std::string_view) {}
};

/// A number that mostly grows in small steps: all but its last four digits are kept as text.
class RisingNumber {
public:
    [[nodiscard]] WM_INLINE char* put(char* at, std::uint64_t value) {
        const std::uint64_t high = value / 10000;
        if (high == 0) return put_decimal(at, value);
        if (high != high_) [[unlikely]] {
            high_ = high;
            bytes_ = static_cast<std::size_t>(put_decimal(text_.data(), high) - text_.data());
        }
        std::memcpy(at, text_.data(), number_room);
        const auto low = static_cast<unsigned>(value % 10000);
        std::memcpy(at + bytes_, &decimal_pairs[2 * (low / 100)], 2);
        std::memcpy(at + bytes_ + 2, &decimal_pairs[2 * (low % 100)], 2);
        return at + bytes_ + 4;
    }

private:
    std::uint64_t high_ = 0;
    std::size_t bytes_ = 0;
    std::array<char, number_room> text_{};
};
/// The rising numbers of a row, in order.
using TsvNumbers = std::array<RisingNumber, 2>;

/// Writes the cells of a row as tab-separated values. The output of same() is equal in all rows with one `Same`.
template <class Same>
class TsvRow {
public:
    static constexpr bool json = false;
    /// `rising`: null if no cell of the row uses a RisingNumber.
    WM_INLINE TsvRow(RowText& out, TsvNumbers* rising, Same& same)
        : out_(out), rising_(rising == nullptr ? nullptr : rising->data()), same_(same), at_(out.room(row_bytes)) {}
    WM_INLINE void end() {
        at_[-1] = '\n';
        out_.taken(at_);
    }
    WM_INLINE void number(std::string_view, bool known, std::uint64_t value) {
        if (known) at_ = put_decimal(at_, value);
        *at_++ = '\t';
    }
    WM_INLINE void rising(std::string_view, bool known, std::uint64_t value) {
        if (known) at_ = rising_->put(at_, value);
        ++rising_;
        *at_++ = '\t';
    }
    WM_INLINE void hex(std::string_view, bool known, std::uint64_t value) {
        if (known) at_ = put_hexadecimal(at_, value);
        *at_++ = '\t';
    }
    /// Writes at least eight digits.
    WM_INLINE void address(std::string_view, bool known, std::uint64_t value) {
        if (known) at_ = put_address(at_, value);
        *at_++ = '\t';
    }
    /// Offset of a packet or record: hexadecimal here, a number in JSON.
    WM_INLINE void offset(std::string_view name, std::uint64_t value) { hex(name, true, value); }
    void flag(std::string_view, bool known, bool value) {
        if (known) *at_++ = value ? '1' : '0';
        *at_++ = '\t';
    }
    /// A word from a fixed list: short, and without tabs.
    void word(std::string_view, bool known, std::string_view value) {
        if (known) at_ = std::copy(value.begin(), value.end(), at_);
        *at_++ = '\t';
    }
    /// A word; if it is empty, it is null in JSON.
    void nullable(std::string_view name, bool known, std::string_view value) { word(name, known, value); }
    /// Text that JSON contains even if it is empty.
    void always(std::string_view name, std::string_view value) { text(name, true, value); }
    /// Any text.
    void text(std::string_view, bool known, std::string_view value) {
        if (known) {
            std::string clean;
            if (!is_plain(value)) {
                clean = one_line(value);
                value = clean;
            }
            if (value.size() > short_text) {
                out_.taken(at_);
                at_ = out_.room(value.size() + row_bytes);
            }
            at_ = std::copy(value.begin(), value.end(), at_);
        }
        *at_++ = '\t';
    }
    /// The cells that `write(writer)` writes.
    template <class Write>
    WM_INLINE void same(std::size_t part, Write&& write) {
        if (char* const end = same_.put(part, at_); end != nullptr) [[likely]] {
            at_ = end;
            return;
        }
        at_ = write_new(*this, part, write);
    }

private:
    /// Uses a separate writer: its write position stays in a register, because its address is not taken.
    template <class Write>
    [[gnu::noinline, gnu::cold]] static char* write_new(TsvRow w, std::size_t part, Write& write) {
        const std::size_t before = w.out_.size_to(w.at_);
        write(w);
        w.same_.remember(part, w.out_.view_from(before, w.at_));
        return w.at_;
    }

    static constexpr std::size_t row_bytes = 8192, short_text = 1024;
    RowText& out_;
    RisingNumber* rising_;
    Same& same_;
    char* at_;
};

/// Writes a JSON object, without unknown values; an empty text counts as unknown.
template <class Same>
class JsonRow {
public:
    static constexpr bool json = true;
    JsonRow(RowText& out, Same& same) : out_(out), same_(same) {}
    void end() { out_.put("}\n"); }
    void number(std::string_view name, bool known, std::uint64_t value) {
        if (!known) return;
        key(name);
        out_.taken(put_decimal(out_.room(number_room), value));
    }
    void hex(std::string_view name, bool known, std::uint64_t value) {
        if (!known) return;
        key(name);
        quoted<put_hexadecimal>(value);
    }
    void address(std::string_view name, bool known, std::uint64_t value) {
        if (!known) return;
        key(name);
        quoted<put_address>(value);
    }
    void offset(std::string_view name, std::uint64_t value) { number(name, true, value); }
    void flag(std::string_view name, bool known, bool value) {
        if (!known) return;
        key(name);
        out_.put(value ? "true" : "false");
    }
    void rising(std::string_view name, bool known, std::uint64_t value) { number(name, known, value); }
    void word(std::string_view name, bool known, std::string_view value) { text(name, known, value); }
    void text(std::string_view name, bool known, std::string_view value) {
        if (known && !value.empty()) always(name, value);
    }
    void nullable(std::string_view name, bool known, std::string_view value) {
        if (!known || !value.empty()) return word(name, known, value);
        key(name);
        out_.put("null");
    }
    void always(std::string_view name, std::string_view value) {
        key(name);
        out_.put(json_string(value));
    }
    /// An object, which JSON contains unchanged.
    void object(std::string_view name, std::string_view value) {
        key(name);
        out_.put(value);
    }
    template <class Write>
    void same(std::size_t part, Write&& write) {
        char* const at = out_.room(SameTexts::text_bytes + SameTexts::copy_bytes);
        const std::size_t before = out_.size_to(at);
        if (char* const end = same_.put(part, at); end != nullptr) {
            out_.taken(end);
        } else {
            write(*this);
            same_.remember(part, out_.view().substr(before));
        }
        if (out_.view().size() != before) before_ = ',';
    }

private:
    void key(std::string_view name) {
        char* at = out_.room(name.size() + 4);
        *at++ = before_;
        *at++ = '"';
        at = std::copy(name.begin(), name.end(), at);
        *at++ = '"';
        *at++ = ':';
        out_.taken(at);
        before_ = ',';
    }
    template <char* (*Put)(char*, std::uint64_t)>
    void quoted(std::uint64_t value) {
        char* at = out_.room(number_room + 2);
        *at++ = '"';
        at = Put(at, value);
        *at++ = '"';
        out_.taken(at);
    }
    RowText& out_;
    Same& same_;
    char before_ = '{';
};

/// The names of the cells.
class HeaderRow {
public:
    static constexpr bool json = false;
    explicit HeaderRow(RowText& out) : out_(out) {}
    void end() { out_.replace_last('\n'); }
    void number(std::string_view name, bool, std::uint64_t) { put(name); }
    void rising(std::string_view name, bool, std::uint64_t) { put(name); }
    void hex(std::string_view name, bool, std::uint64_t) { put(name); }
    void address(std::string_view name, bool, std::uint64_t) { put(name); }
    void offset(std::string_view name, std::uint64_t) { put(name); }
    void flag(std::string_view name, bool, bool) { put(name); }
    void word(std::string_view name, bool, std::string_view) { put(name); }
    void nullable(std::string_view name, bool, std::string_view) { put(name); }
    void always(std::string_view name, std::string_view) { put(name); }
    void text(std::string_view name, bool, std::string_view) { put(name); }
    template <class Write>
    void same(std::size_t, Write&& write) {
        write(*this);
    }

private:
    void put(std::string_view name) {
        out_.put(name);
        out_.put("\t");
    }
    RowText& out_;
};

}  // namespace waymark::listing
