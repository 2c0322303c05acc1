/// Parses the words of a virtual trace buffer, in reading order, to entries and gaps (docs/spec/dpu.md, section 7.3).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <variant>

#include "waymark/core/cursor.h"
#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/packet.h"
#include "waymark/dpu/vtb.h"

namespace waymark::dpu {

/// The position of an entry in its stream.
struct EntryExtent {
    Offset first;
    std::uint64_t bytes{};
    /// Whether the entry is next to a piece that is not an entry, and of a kind that damage often produces: context,
    /// padding, gap (7.3, 4).
    bool doubtful = false;
    [[nodiscard]] constexpr Offset end() const { return first + bytes; }
    friend bool operator==(const EntryExtent&, const EntryExtent&) = default;
};

/// The word in memory at `at`.
[[nodiscard]] WM_INLINE std::uint32_t load_word(const std::uint8_t* at, ByteOrder order) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return (order == ByteOrder::big) == (std::endian::native == std::endian::big) ? word : __builtin_bswap32(word);
}

/// Decodes an entry of type P, if the piece is one; calls `take(entry)`. `piece` has words least significant byte
/// first.
template <class P, class Take>
WM_INLINE bool parse_as(Bytes piece, const TraceFormat& format, Take&& take) {
    if (piece.size() != std::size_t{4} * entry_words<P>(format)) return false;
    Cursor cursor(piece);
    wire::Reader reader(cursor);
    P entry{};
    P::fields(reader, entry, format);
    if (cursor.step() != Step::ok) return false;
    take(static_cast<const P&>(entry));
    return true;
}

/// Decodes a whole piece of trace as one entry: a word with bit 0 set and the words up to the next such word. Returns
/// false if the piece is not an entry. Stateless. Counter words may look like flags: length, head and mode decide.
template <class Take>
bool parse_one(Bytes piece, const TraceFormat& format, Take&& take) {
    bool found = false;
    Entries::for_each([&]<class P>() { found = found || (legal<P>(format) && parse_as<P>(piece, format, take)); });
    return found;
}

/// Whether a longer entry with this head is legal, so that the piece may have been truncated (7.3, 3).
[[nodiscard]] inline bool may_be_cut(std::uint32_t head, std::uint64_t words, const TraceFormat& format) {
    bool longer = false;
    Entries::for_each([&]<class P>() {
        longer =
            longer || (legal<P>(format) && P::info.head == head_of(head, format) && entry_words<P>(format) > words);
    });
    return longer;
}

/// Parses a stream of words, in chunks of any number of bytes: the division into chunks never changes the result. After
/// finish(), every byte fed is in exactly one entry or one gap. Gaps are: `unsynchronised`, words before the first
/// entry, and `padding` if they are all zero, like memory that was never written; `malformed_packet`, one piece that is
/// not an entry; `incomplete_packet`, the stream ends inside an entry; `framing`, an entry that reset() cut.
template <class Handler>
class Parser {
public:
    /// The handler is borrowed and must outlive the parser.
    Parser(const TraceFormat& format, ByteOrder order, Handler& handler)
        : format_(format), order_(order), handler_(handler) {
        wire::check_handles<Handler, Entries, EntryExtent>();
    }

    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes chunk) {
        while (!chunk.empty() && carried_ != 0) {
            carry_[carried_++] = chunk[0];
            chunk = chunk.subspan(1);
            if (carried_ == 4) {
                carried_ = 0;
                take(load_word(carry_.data(), order_));
            }
        }
        for (; chunk.size() >= 4; chunk = chunk.subspan(4)) take(load_word(chunk.data(), order_));
        for (const std::uint8_t byte : chunk) carry_[carried_++] = byte;
    }

    /// The stream ends. `complete`: the unit had written everything (TWBA = 0), so the last entry is whole.
    void finish(bool complete) {
        end_filling(true);
        if (words_ != 0 && headed_ && !(complete && carried_ == 0) && may_be_cut(head_, words_, format_))
            lose(GapReason::incomplete_packet);
        else
            end_piece();
        leave(GapReason::incomplete_packet);
    }

    /// The words that follow do not continue earlier ones: reports the rest, and always a gap, even an empty one, so
    /// that the handler is informed.
    void reset() {
        end_filling(false);
        const bool reported = words_ != 0 || carried_ != 0;
        if (words_ != 0) lose(headed_ ? GapReason::framing : headless());
        leave(GapReason::framing);
        if (!reported) handler_(Gap{at_, at_, GapReason::framing});
    }

    /// Words from here on have another format. Call it only after finish() or reset().
    void set_format(const TraceFormat& format) { format_ = format; }

    /// Ends the current piece, because the next word begins an entry: it has bit 0 set, or any word is an entry
    /// (USERRAW).
    void cut() {
        if (carried_ == 0) end_piece();
    }
    /// Whether nothing is pending, so that later words cannot change the meaning of earlier ones.
    [[nodiscard]] bool idle() const {
        return words_ == 0 && carried_ == 0 && filling_ == 0 && !held_ && !after_malformed_;
    }
    /// Number of bytes until the next word begins; 0 at a word boundary.
    [[nodiscard]] std::size_t unaligned() const { return carried_ == 0 ? 0 : 4 - carried_; }
    /// Skips whole entries that the caller has parsed. Only while idle.
    void advance(std::uint64_t bytes) { at_ = at_ + bytes; }

    /// Offset after the bytes fed so far.
    [[nodiscard]] Offset offset() const { return at_ + 4 * (words_ + filling_) + carried_; }

private:
    void take(std::uint32_t word) {
        if (format_.mode == TraceMode::user_raw) return take_literal(word);
        if ((word & 1U) != 0) {
            end_piece();
            headed_ = true;
            head_ = word;
        }
        if (words_ < max_entry_words)
            for (unsigned i = 0; i < 4; ++i) piece_[4 * words_ + i] = static_cast<std::uint8_t>(word >> (8 * i));
        ++words_;
        if (!headed_) zeros_ = zeros_ && word == 0;
    }

    /// Literal user data (USERRAW): each word is a datum, whatever its bits. The unit fills lines with words of its
    /// own, always up to the end of a line: DUMMY at a hold, VTB FILLED where tracing ends. Such words elsewhere are
    /// data.
    void take_literal(std::uint32_t word) {
        if (filling_ != 0 && (word != filler_ || line_is_full())) end_filling(false);
        const bool dummy = word == format_.word({FlagKind::dummy, 0, true});
        if (!dummy && word != closed_word()) return literal(UserRaw{word});
        filler_ = word;
        ++filling_;
        // Nothing follows the words that fill a line where tracing ends.
        if (dummy && line_is_full()) end_filling(true);
    }
    [[nodiscard]] std::uint32_t closed_word() const { return format_.word({FlagKind::vtb_filled, 0, true}); }
    [[nodiscard]] bool line_is_full() const { return (at_.value + 4 * filling_) % line_bytes == 0; }
    /// Ends a run of words that may fill a line: they do if `fills` and they reach its end; otherwise they are data.
    void end_filling(bool fills) {
        fills = fills && line_is_full();
        // If a line is full when tracing ends, no line of filling follows (5.10), so the first word belongs to the
        // program.
        const bool closed = filler_ == closed_word();
        if (fills && closed && filling_ == line_bytes / 4) {
            literal(UserRaw{filler_});
            --filling_;
        }
        for (; filling_ != 0; --filling_) {
            if (!fills)
                literal(UserRaw{filler_});
            else if (closed)
                literal(Closed{});
            else
                literal(Pad{});
        }
    }
    template <class P>
    void literal(const P& entry) {
        const Offset first = at_;
        at_ = first + 4;
        handler_(entry, EntryExtent{first, 4});
    }

    [[nodiscard]] GapReason headless() const { return zeros_ ? GapReason::padding : GapReason::unsynchronised; }

    /// All words since the last head belong to its piece.
    void end_piece() {
        if (words_ == 0) return;
        if (!headed_) return lose(headless());
        const bool entry = words_ <= max_entry_words &&
                           parse_one(Bytes(piece_.data(), 4 * words_), format_, [&](const auto& e) { report(e); });
        if (!entry) lose(GapReason::malformed_packet);
    }

    template <class P>
    void report(const P& entry) {
        release(false);
        const EntryExtent extent{at_, 4 * words_, after_malformed_};
        after_malformed_ = false;
        at_ = extent.end();
        words_ = 0;
        if constexpr (std::constructible_from<Held, P>) {
            held_ = entry;
            held_extent_ = extent;
        } else {
            handler_(entry, EntryExtent{extent.first, extent.bytes});
        }
    }

    void lose(GapReason reason) {
        const bool malformed = reason == GapReason::malformed_packet;
        release(malformed);
        const Gap gap{at_, at_ + 4 * words_, reason};
        after_malformed_ = malformed;
        at_ = gap.end;
        words_ = 0;
        handler_(gap);
    }

    /// Reports the entry that was kept back until the next piece was known.
    void release(bool doubtful) {
        if (!held_) return;
        held_extent_.doubtful = held_extent_.doubtful || doubtful;
        std::visit([&](const auto& e) { handler_(e, held_extent_); }, *held_);
        held_.reset();
    }

    void leave(GapReason cut) {
        release(false);
        if (carried_ != 0) {
            handler_(Gap{at_, at_ + carried_, cut});
            at_ = at_ + carried_;
        }
        carried_ = 0;
        headed_ = after_malformed_ = false;
        zeros_ = true;
    }

    using Held = std::variant<ContextEntry, Pad, GapEntry>;

    TraceFormat format_;
    ByteOrder order_;
    Handler& handler_;
    Offset at_{};                   // offset of the current piece
    std::uint64_t words_ = 0;       // words of the piece so far; the first ones are in piece_
    std::uint32_t head_ = 0;        // its first word
    std::uint32_t filler_ = 0;      // value of the words after at_ that may fill a line
    std::size_t filling_ = 0;       // number of these words
    bool headed_ = false;           // a head has come
    bool zeros_ = true;             // no head yet, and nothing but zeros
    bool after_malformed_ = false;  // the previous piece was not an entry
    std::size_t carried_ = 0;       // bytes of an unfinished word, kept in carry_
    std::optional<Held> held_;
    EntryExtent held_extent_;
    std::array<std::uint8_t, 4> carry_{};
    std::array<std::uint8_t, std::size_t{4} * max_entry_words> piece_{};
};

}  // namespace waymark::dpu
