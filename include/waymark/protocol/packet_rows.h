/// Lists packets as tab-separated rows at speed: the parser's handler writes each row, without an object or a virtual
/// call for each packet. A listing asks a configuration for RowSource; without it, it takes packets from
/// Configuration::list, which gives the same rows. tests/listing compare both.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/append_number.h"
#include "waymark/core/offset_map.h"
#include "waymark/core/text_cursor.h"
#include "waymark/core/wire.h"
#include "waymark/protocol/packets.h"
#include "waymark/protocol/parsing_reader.h"

namespace waymark::protocol {

/// A text that is copied in steps of fixed length, beyond its end.
class CopiedText {
public:
    static constexpr std::size_t step = 16;
    explicit CopiedText(std::string_view text) : text_(text), size_(text.size()) {
        text_.resize((size_ + step - 1) / step * step);
    }
    WM_INLINE void put(TextCursor& out) const {
        for (std::size_t at = 0; at < text_.size(); at += step) std::memcpy(out.at() + at, &text_[at], step);
        out = TextCursor(out.at() + size_);
    }

private:
    std::string text_;
    std::size_t size_;
};

/// Rows of packets: the text `before`, offset and length, name, fields, meaning, bytes, and the text `after`.
class PacketRows {
public:
    /// Number of bytes of a packet that a row shows.
    static constexpr std::size_t shown_bytes = 16;

    /// The texts contain no tabs and line breaks. `offsets` is borrowed.
    PacketRows(const OffsetMap& offsets, std::string_view before, std::string_view after)
        : offsets_(offsets),
          before_(std::string(before) + "\t0x"),
          after_("\t" + std::string(after) + "\n"),
          text_(kept + row_bytes + before.size() + after.size()) {}
    virtual ~PacketRows() = default;
    PacketRows(const PacketRows&) = delete;
    PacketRows& operator=(const PacketRows&) = delete;

    /// The bytes of the stream from `first` on, borrowed until the next call.
    void set_bytes(Bytes bytes, std::uint64_t first) {
        bytes_ = bytes;
        first_ = first;
        // With one stretch of the buffer, all bytes are at the same distance.
        adjacent_ = offsets_.entries() <= 1;
        const std::uint64_t end = first + bytes.size();
        distance_ = offsets_.capture(Offset{end}).value - end;
    }
    /// Passes the rows written so far to take().
    void deliver() {
        if (size_ != 0) take({text_.data(), std::exchange(size_, 0)}, std::exchange(packets_, 0));
    }
    virtual void gap(const Gap& gap) = 0;

    /// One row. `write(cursor)` writes fields, a tab, and the meaning: at most 1 KiB.
    template <class Write>
    WM_INLINE void row(std::string_view name, Extent at, Write&& write) {
        if (size_ > kept) [[unlikely]]
            deliver();
        if (awaited_) [[unlikely]]
            settle();
        ++packets_;
        TextCursor out(text_.data() + size_);
        before_.put(out);
        out.hexadecimal_digits(adjacent_ ? at.first.value + distance_ : offsets_.capture(at.first).value);
        out += '\t';
        out.decimal(at.bytes);
        out += '\t';
        out += name;
        out += '\t';
        write(out);
        out += '\t';
        put_bytes(out, at);
        after_.put(out);
        size_ = static_cast<std::size_t>(out.at() - text_.data());
    }

protected:
    /// Whole rows of `count` packets, valid during the call.
    virtual void take(std::string_view rows, std::uint64_t count) = 0;
    /// Called before the next row if await() was called.
    virtual void settle() = 0;
    void await(bool awaited) { awaited_ = awaited; }

private:
    static constexpr std::size_t kept = std::size_t{1} << 16, row_bytes = 2048;

    /// The texts `00 `, `01 `, …
    static constexpr auto byte_texts = [] {
        std::array<std::array<char, 4>, 256> out{};
        constexpr std::string_view digits = "0123456789abcdef";
        for (unsigned byte = 0; byte < 256; ++byte) out[byte] = {digits[byte >> 4], digits[byte & 15], ' ', ' '};
        return out;
    }();
    WM_INLINE void put_bytes(TextCursor& out, Extent at) const {
        if (at.first.value < first_) [[unlikely]] {
            out += "…";
            return;
        }
        const std::size_t from = std::min<std::size_t>(at.first.value - first_, bytes_.size());
        const std::size_t count =
            std::min<std::uint64_t>(std::min<std::uint64_t>(at.bytes, bytes_.size() - from), shown_bytes);
        if (count == 0) return;
        char* to = out.at();
        for (const std::uint8_t byte : bytes_.subspan(from, count)) {
            std::memcpy(to, byte_texts[byte].data(), 4);
            to += 3;
        }
        out = TextCursor(to - 1);
        if (at.bytes > shown_bytes) [[unlikely]]
            out += " …";
    }

    const OffsetMap& offsets_;
    const CopiedText before_, after_;
    std::vector<char> text_;
    std::size_t size_ = 0;
    std::uint64_t packets_ = 0;
    bool awaited_ = false;
    Bytes bytes_{};
    std::uint64_t first_ = 0, distance_ = 0;
    bool adjacent_ = false;
};

/// Also implemented by the Configuration of a protocol whose packets can be listed at speed.
class RowSource {
public:
    virtual ~RowSource() = default;
    /// `rows` is borrowed and must outlive the reader.
    [[nodiscard]] virtual std::unique_ptr<Reader> write_rows(PacketRows& rows) const = 0;
};

/// A walker of core/wire.h that prints fields like wire::Printer.
class PrintFields {
public:
    WM_INLINE explicit PrintFields(TextCursor& out) : out_(out) {}
    template <class... Parts>
    WM_INLINE void byte(Parts... parts) {
        (print(parts), ...);
    }
    template <class... Parts>
    WM_INLINE void word(Parts... parts) {
        (print(parts), ...);
    }
    template <class... Parts>
    WM_INLINE void doubleword(Parts... parts) {
        (print(parts), ...);
    }
    template <class T, class Codec>
    WM_INLINE void field(std::string_view name, const T& value, const Codec& codec) {
        begin(name);
        codec.print(out_, value);
    }
    template <class T>
    WM_INLINE void le(std::string_view name, const T& value, unsigned bytes) {
        if (bytes == 0) return;
        begin(name);
        wire::append_number(out_, static_cast<std::uint64_t>(value));
    }
    WM_INLINE void impossible() {}

private:
    WM_INLINE void begin(std::string_view name) {
        if (!std::exchange(first_, false)) out_ += ' ';
        out_ += name;
        out_ += '=';
    }
    template <unsigned Hi, unsigned Lo, class T>
    WM_INLINE void print(wire::Bits<Hi, Lo, T> part) {
        begin(part.name);
        wire::append_number(out_, static_cast<std::uint64_t>(part.value));
    }
    template <unsigned Hi, unsigned Lo>
    WM_INLINE void print(wire::Fixed<Hi, Lo>) {}
    template <unsigned Hi, unsigned Lo>
    WM_INLINE void print(wire::ShouldBe<Hi, Lo>) {}

    TextCursor& out_;
    bool first_ = true;
};

/// Writes the rows of `Parser<H>(config, handler)`. `Explainer(config)` writes meanings: explain(packet, cursor).
template <class Config, template <class> class Parser, class Explainer>
class RowsOf final : public ParsingReader<Reader, Config, Parser, RowsOf<Config, Parser, Explainer>> {
public:
    RowsOf(const Config& config, PacketRows& rows)
        : RowsOf::ParsingReader(config, *this), rows_(rows), explain_(this->config_) {}

    // Called by the parser.
    template <class P>
    WM_INLINE void operator()(const P& packet, Extent at) {
        rows_.row(
            P::info.name, at, [&](TextCursor & out) __attribute__((always_inline)) {
                PrintFields fields(out);
                P::fields(fields, packet, this->config_);
                out += '\t';
                explain_.explain(packet, out);
            });
    }
    void operator()(const Gap& gap) {
        explain_(gap);
        rows_.gap(gap);
    }

private:
    PacketRows& rows_;
    Explainer explain_;
};

}  // namespace waymark::protocol
