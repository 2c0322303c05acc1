#include "waymark/dpu/decoder.h"

#include "element_builder.h"

namespace waymark::dpu {

namespace {

/// Decodes entries in place. Bit 0 of the words gives the length of each entry, then every field that may be invalid is
/// tested: entries that fail are left to the parser.
template <ByteOrder Order>
class Scanner {
public:
    Scanner(const TraceFormat& format, ElementBuilder& out) : format_(format), out_(out) {}

    /// Decodes whole entries at the start of `bytes`, which begin with a head; `first` is their offset in the stream.
    /// Returns the number of bytes consumed.
    template <TraceMode Mode>
    std::size_t scan(Bytes bytes, Offset first) {
        // An entry ends where the next one begins, so one word after it is read.
        constexpr std::size_t reach = 4 * (std::size_t{max_entry_words} + 1);
        std::size_t at = 0;
        while (bytes.size() - at >= reach) {
            const unsigned words = entry<Mode>(bytes.data() + at, first + at);
            if (words == 0) break;
            at += std::size_t{4} * words;
        }
        return at;
    }

private:
    WM_INLINE static std::uint32_t word(const std::uint8_t* at, unsigned i) { return load_word(at + 4 * i, Order); }
    /// Decodes the piece at `at`, which has `Words` words.
    template <unsigned Words>
    WM_INLINE static bool is(const std::uint8_t* at) {
        std::uint32_t any = 0;
        for (unsigned i = 1; i < Words; ++i) any |= word(at, i);
        return (any & 1U) == 0 && (word(at, Words) & 1U) != 0;
    }
    template <unsigned First>
    WM_INLINE static Counters counters(const std::uint8_t* at) {
        Counters out;
        for (unsigned i = 0; i < counter_count; ++i) out[i] = word(at, First + i) >> 1;
        return out;
    }
    WM_INLINE bool task_flag(std::uint32_t word, TaskContext& context) const {
        const std::uint32_t kind = (word ^ format_.dpu_base) >> 9;
        context = {kind == 2, static_cast<std::uint8_t>(word >> 1)};
        return kind - 1 < 2;  // one test: privilege is hard to predict
    }
    WM_INLINE bool page(std::uint32_t word) const { return format_.in_flag_page(word); }

    /// Decodes one entry: returns its number of words, or 0 if it is not one of the usual kinds.
    template <TraceMode Mode>
    WM_INLINE unsigned entry(const std::uint8_t* at, Offset first) {
        const std::uint32_t head = word(at, 0);
        if constexpr (Mode == TraceMode::user_raw) {
            if (page(head)) [[unlikely]]
                return 0;
            out_(UserRaw{head}, {first, 4});
            return 1;
        }
        if (page(head)) [[unlikely]]
            return flagged<Mode>(head, at, first);
        const std::uint32_t pc = head & ~1U;
        TaskContext context;
        if constexpr (Mode == TraceMode::task || Mode == TraceMode::flow) {
            constexpr bool task = Mode == TraceMode::task;
            const std::uint32_t to = word(at, task ? 7 : 8);
            if (!is<9>(at) || page(to) || !task_flag(word(at, task ? 8 : 7), context)) return 0;
            if constexpr (task)
                out_(TaskSwitch{pc, to, counters<1>(at), context}, {first, 36});
            else
                out_(Flow{pc, to, counters<1>(at), context}, {first, 36});
            return 9;
        } else if constexpr (Mode == TraceMode::eonce_comp) {
            if (!task_flag(word(at, 1), context) || (word(at, 1) & 1U) != 0) return 0;
            const std::uint32_t to = word(at, 2);
            if ((to & 1U) != 0) {
                out_(CompressedPc{pc, context}, {first, 8});
                return 2;
            }
            if ((word(at, 3) & 1U) == 0 || page(to)) return 0;
            out_(CompressedFlow{pc, to, context}, {first, 12});
            return 3;
        } else if constexpr (Mode == TraceMode::eonce_raw) {
            if (format_.eonce_counters != 0) return 0;
            const std::uint32_t to = word(at, 1);
            if ((to & 1U) != 0) {
                out_(RawPc{pc, {}}, {first, 4});
                return 1;
            }
            if ((word(at, 2) & 1U) == 0 || page(to)) return 0;
            out_(RawPair{pc, to, {}}, {first, 8});
            return 2;
        } else {
            return 0;
        }
    }

    /// Decodes an entry that begins with a flag.
    template <TraceMode Mode>
    WM_INLINE unsigned flagged(std::uint32_t head, const std::uint8_t* at, Offset first) {
        TaskContext context;
        if (task_flag(head, context)) {
            if (!is<8>(at) || word(at, 7) != format_.word({FlagKind::dummy})) return 0;
            out_(Sample{context, counters<1>(at)}, {first, 32});
            return 8;
        }
        if ((head ^ format_.word({FlagKind::user_data, 0, true})) < 0x200) {
            const std::uint32_t high = word(at, 2), low = word(at, 3);
            if (!is<4>(at) || !task_flag(word(at, 1), context) || context.id != static_cast<std::uint8_t>(head >> 1) ||
                (high | low) >= 0x20000)
                return 0;
            out_(UserData{context, high >> 1 << 16 | low >> 1}, {first, 16});
            return 4;
        }
        if constexpr (Mode == TraceMode::eonce_comp) {
            const std::uint32_t kind = (head ^ format_.dpu_base) >> 9;
            const bool is_short = kind == static_cast<std::uint32_t>(FlagKind::short_loop);
            if (!is_short && kind != static_cast<std::uint32_t>(FlagKind::long_loop)) return 0;
            const std::uint32_t last = word(at, 1), reps = word(at, 2) >> 1;
            if (!is<3>(at) || page(last) || reps == 0) return 0;
            const auto id = static_cast<std::uint8_t>(head >> 1);
            if (is_short)
                out_(ShortLoop{id, last, reps}, {first, 12});
            else
                out_(LongLoop{id, last, reps}, {first, 12});
            return 3;
        }
        return 0;
    }

    const TraceFormat& format_;
    ElementBuilder& out_;
};

}  // namespace

class Decoder::Machine {
public:
    Machine(const TraceFormat& format, ByteOrder order, ElementSink& out, const StartState& start)
        : format_(format), order_(order), builder_(out, start), parser_(format, order, builder_) {}

    void feed(Bytes bytes) {
        while (!bytes.empty()) {
            if (parser_.unaligned() == 0 && bytes.size() >= 4 && is_head(bytes.data())) {
                parser_.cut();
                if (parser_.idle()) {
                    const std::size_t done = scan(bytes);
                    parser_.advance(done);
                    bytes = bytes.subspan(done);
                }
            }
            const std::size_t piece = piece_bytes(bytes);
            parser_.feed(bytes.first(piece));
            bytes = bytes.subspan(piece);
        }
    }
    void reset() { parser_.reset(); }
    void restart(const TraceFormat& format, const StartState& start) {
        parser_.finish(true);
        parser_.set_format(format);
        format_ = format;
        builder_.restart(start, parser_.offset());
    }
    void finish(bool complete) {
        parser_.finish(complete);
        builder_.flush();
    }
    const Totals& totals() {
        builder_.totals().bytes = parser_.offset().value;
        return builder_.totals();
    }

private:
    [[nodiscard]] bool is_head(const std::uint8_t* at) const {
        return format_.mode == TraceMode::user_raw || (load_word(at, order_) & 1U) != 0;
    }

    std::size_t scan(Bytes bytes) {
        return order_ == ByteOrder::big ? scan<ByteOrder::big>(bytes) : scan<ByteOrder::little>(bytes);
    }
    template <ByteOrder Order>
    std::size_t scan(Bytes bytes) {
        Scanner<Order> scanner(format_, builder_);
        const Offset at = parser_.offset();
        if (!format_.mode) return 0;
        switch (*format_.mode) {
            case TraceMode::eonce_raw: return scanner.template scan<TraceMode::eonce_raw>(bytes, at);
            case TraceMode::eonce_comp: return scanner.template scan<TraceMode::eonce_comp>(bytes, at);
            case TraceMode::task: return scanner.template scan<TraceMode::task>(bytes, at);
            case TraceMode::flow: return scanner.template scan<TraceMode::flow>(bytes, at);
            case TraceMode::sw_sample:
            case TraceMode::edca5:
            case TraceMode::user: return scanner.template scan<TraceMode::sw_sample>(bytes, at);
            case TraceMode::user_raw: return scanner.template scan<TraceMode::user_raw>(bytes, at);
        }
        return 0;
    }

    /// Number of bytes up to the next head after the first word: the parser takes these bytes before this decoder is
    /// tried again.
    [[nodiscard]] std::size_t piece_bytes(Bytes bytes) const {
        if (bytes.empty()) return 0;
        std::size_t at = parser_.unaligned() != 0 ? parser_.unaligned() : 4;
        while (at + 4 <= bytes.size() && !is_head(bytes.data() + at)) at += 4;
        return at + 4 <= bytes.size() ? at : bytes.size();
    }

    TraceFormat format_;
    ByteOrder order_;
    ElementBuilder builder_;
    Parser<ElementBuilder> parser_;
};

Decoder::Decoder(const TraceFormat& format, ByteOrder order, ElementSink& out, const StartState& start)
    : machine_(std::make_unique<Machine>(format, order, out, start)) {}
Decoder::~Decoder() = default;
void Decoder::feed(Bytes bytes) { machine_->feed(bytes); }
void Decoder::reset() { machine_->reset(); }
void Decoder::restart(const TraceFormat& format, const StartState& start) { machine_->restart(format, start); }
void Decoder::finish(bool complete) { machine_->finish(complete); }
const Totals& Decoder::totals() const { return machine_->totals(); }

}  // namespace waymark::dpu
