/// Private to this layer: lines of packets, in the same form for every kind of unit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "line.h"
#include "waymark/listing/packets.h"

namespace waymark::listing {

/// How the packets of one kind of unit are listed.
struct PacketColumns {
    std::string_view packet, wire;  ///< names of columns
    std::string_view gap;           ///< the name of a gap in tsv
    bool sources = false, buffers = false, ids = false;
    bool doubts = false;     ///< has columns for doubts, and for the name of the stream at the end
    bool gap_bytes = false;  ///< text states the length of a gap
    unsigned wire_width = 32;
};

/// A packet or gap.
struct PacketLine {
    std::uint64_t offset{}, bytes{};    ///< in the file
    std::string_view id{}, name{};      ///< of its type
    std::string_view fields{}, json{};  ///< as text and as a JSON object
    std::string_view meaning{};         ///< for a gap: its reason
    std::string_view wire{};            ///< its bytes
    bool doubtful = false, gap = false;
};

template <class Row>
void write_row(Row out, const PacketColumns& columns, const PacketLine& p, std::string_view source,
               std::string_view buffer) {
    constexpr bool json = Row::json;
    constexpr std::string_view doubt = "doubtful: next to damage";
    if (columns.sources) out.always("source", source);
    if constexpr (json)
        if (columns.buffers) out.always("buffer", buffer);
    out.offset("offset", p.offset);
    if constexpr (json) {
        if (p.gap) {
            out.word("gap", true, p.meaning);
            out.number("length", true, p.bytes);
        } else {
            out.always(columns.wire, p.wire);
            if (columns.ids) out.word("id", true, p.id);
            out.word(columns.packet, true, p.name);
            out.object("fields", p.json);
            out.always("meaning", p.meaning);
            if (columns.doubts) out.flag("doubtful", true, p.doubtful);
        }
        if (columns.doubts) out.always("stream", buffer);
    } else {
        out.number("length", true, p.bytes);
        if (columns.ids) out.word("id", true, p.id);
        out.word(columns.packet, true, p.gap ? columns.gap : p.name);
        out.text("fields", true, p.fields);
        out.text("meaning", true, p.meaning);
        out.text(columns.wire, true, p.wire);
        if (columns.doubts) out.word("doubt", p.doubtful, doubt);
        if (columns.buffers) out.text("buffer", true, buffer);
        if (columns.doubts) out.text("stream", true, buffer);
    }
    out.end();
}

/// Writes packets of the requested types, and counts all packets.
class PacketLines {
public:
    PacketLines(TextSink& out, LineFormat format, const PacketColumns& columns, const PacketTypes& types)
        : out_(out), format_(format), columns_(columns), types_(types) {
        if (format == LineFormat::tsv) put_header(out, [&](HeaderRow row) { write_row(row, columns, {}, {}, {}); });
    }

    [[nodiscard]] TextSink& out() { return out_; }
    [[nodiscard]] LineFormat format() const { return format_; }
    /// Counts the packet; returns false if its type was not requested.
    [[nodiscard]] bool is_wanted(std::string_view name) {
        ++listed.packets;
        if (types_.empty()) return true;
        if (!types_.contains(name)) return false;
        listed.found.emplace(name);
        return true;
    }
    /// Whether put_rows() may be called in place of put(): the rows of all packets are wanted, as tsv.
    [[nodiscard]] bool takes_rows() const {
        return format_ == LineFormat::tsv && types_.empty() && columns_.sources && columns_.buffers && !columns_.ids &&
               !columns_.doubts;
    }
    /// Whole rows of `count` packets.
    void put_rows(std::string_view rows, std::uint64_t count) {
        listed.packets += count;
        out_.write(rows);
    }
    /// Writes the headings above lines for reading: the name of the source, and the heads of columns.
    void put_heads(const std::string& title, std::string_view wire, std::string_view packet) {
        if (format_ != LineFormat::text) return;
        if (columns_.sources && headed_) out_.write("\n");
        headed_ = true;
        put_line(out_, "# {}", title);
        put_line(out_, "# {:>8}  {:<{}} {}{:<16} meaning; fields", "offset", wire, columns_.wire_width,
                 columns_.ids ? "    " : "", packet);
    }
    void put(const PacketLine& p) {
        NoSame none;
        row_.clear();
        switch (format_) {
            case LineFormat::text: return put_text(p);
            case LineFormat::tsv: write_row(TsvRow(row_, nullptr, none), columns_, p, source, buffer); break;
            case LineFormat::json: write_row(JsonRow(row_, none), columns_, p, source, buffer); break;
        }
        out_.write(row_.view());
    }

    [[nodiscard]] bool has_gaps() const { return types_.empty(); }
    /// Counts the gap; `offset`: in the file.
    void met(const Gap& gap, std::uint64_t offset) { add(listed.gaps, gap, offset); }
    static void add(std::array<flow::Trouble, gap_reasons>& to, const Gap& gap, std::uint64_t offset) {
        if (gap.bytes() == 0) return;
        flow::Trouble& trouble = to[static_cast<unsigned>(gap.reason)];
        if (trouble.times++ == 0) trouble.offset = offset;
        trouble.bytes += gap.bytes();
    }
    /// Writes a gap, unless only certain types were requested.
    void put_gap(const Gap& gap, std::uint64_t offset, const std::string& wire) {
        if (has_gaps())
            put({.offset = offset, .bytes = gap.bytes(), .meaning = name(gap.reason), .wire = wire, .gap = true});
    }

    PacketsListed listed;
    std::string source{}, buffer{};  ///< name of the packets' source; `buffer`: the stream, if columns have doubts
    const pipeline::Source* last_source = nullptr;  ///< source of the last heading

private:
    void put_text(const PacketLine& p) {
        const std::string what =
            p.gap ? (columns_.gap_bytes ? counted(p.bytes, "byte") + ": " : "") + std::string(p.meaning)
                  : fmt::format("{}{}{}{}", p.meaning, p.meaning.empty() || p.fields.empty() ? "" : "; ", p.fields,
                                p.doubtful ? "; doubtful: next to damage" : "");
        const std::string id = columns_.ids ? fmt::format("{:<3} ", p.id) : std::string();
        put_line(out_, "{}",
                 trimmed(fmt::format("{:>#10x}  {:<{}} {}{:<16} {}", p.offset, p.wire, columns_.wire_width, id,
                                     p.gap ? "(gap)" : p.name, what)));
    }

    TextSink& out_;
    const LineFormat format_;
    const PacketColumns& columns_;
    const PacketTypes& types_;
    RowText row_;
    bool headed_ = false;
};

/// The first `most` bytes as text, `a0 08 00`; `…` follows if there are more.
[[nodiscard]] inline std::string bytes_text(Bytes bytes, std::uint64_t all, std::size_t most = 16) {
    std::string out;
    for (std::size_t i = 0; i < std::min(bytes.size(), most); ++i) {
        constexpr std::string_view digits = "0123456789abcdef";
        if (i != 0) out += ' ';
        out += digits[bytes[i] >> 4];
        out += digits[bytes[i] & 15];
    }
    return all > most ? out + " …" : out;
}

/// The most recently fed bytes of a stream, to show the bytes of packets.
class RecentBytes {
public:
    /// The next bytes begin at `first`.
    void restart(std::uint64_t first) {
        bytes_.clear();
        first_ = first;
    }
    void add(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    /// Forgets bytes that no packet beginning at or after `pending` can need: bytes of a long gap are not shown.
    void forget(Offset pending) {
        constexpr std::size_t most_kept = 64;
        const std::uint64_t keep =
            std::max(pending.value, first_ + bytes_.size() - std::min<std::size_t>(bytes_.size(), most_kept));
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(keep - first_));
        first_ = keep;
    }
    [[nodiscard]] Bytes bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t first() const { return first_; }
    [[nodiscard]] std::string text(wire::Extent at) const {
        if (at.first.value < first_) return "…";
        const std::size_t from = std::min<std::size_t>(at.first.value - first_, bytes_.size());
        return bytes_text(Bytes(bytes_).subspan(
                              from, static_cast<std::size_t>(std::min<std::uint64_t>(at.bytes, bytes_.size() - from))),
                          at.bytes);
    }

private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t first_ = 0;
};

}  // namespace waymark::listing
