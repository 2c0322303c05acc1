/// Parses bytes into packets, for protocols whose synchronisation point is a run of zeros and 0x80. This file has the
/// common part: chunks of any size, a packet cut by the end of a chunk, the search for the next synchronisation point,
/// gaps with place and reason. A protocol provides the rest:
///
///     struct Protocol {
///         using Config = …;
///         using Packets = wire::PacketList<…>;                 // all packets, with the synchronisation packet
///         using Sync = …;                                      // the synchronisation packet; it takes all zeros of
///                                                              // the run if it can be made from their number
///         static constexpr std::uint64_t sync_zeros = 11;      // minimum number of zeros before its 0x80
///         static constexpr std::size_t max_bytes = 30;         // longest packet except the synchronisation packet
///
///         // One packet at the start of `bytes`, whose first byte is not 0: calls take(packet, size in bytes).
///         static Parsed parse_one(Bytes bytes, const Config&, auto&& take);
///
///         // Only if packets other than Sync begin with 0: a packet of the two bytes 0 and `second`, which is not 0.
///         using AfterZero = wire::PacketList<…>;
///         static Parsed parse_after_zero(std::uint8_t second, const Config&, auto&& take);
///
///         // Only for SharedParser: an AnyParserOf<Protocol>.
///         static std::unique_ptr<AnyParser<Protocol>> any_parser(const Config&, const AnyHandler<Packets>&);
///     };
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "waymark/core/cursor.h"
#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/core/wire.h"

namespace waymark::wire {

/// The position of a packet in its stream.
struct Extent {
    Offset first;
    std::uint64_t bytes{};
    [[nodiscard]] constexpr Offset end() const { return first + bytes; }
    friend bool operator==(const Extent&, const Extent&) = default;
};

/// The result of parsing one packet.
struct Parsed {
    Step step{};
    std::size_t bytes{};  ///< consumed, when ok
    bool reserved{};      ///< if bad: the header begins no packet under this configuration
};

/// A handler can be called with every packet type of a list, and with gaps. A handler that ignores some packets has a
/// catch-all overload for them. The compiler stops at a packet that a handler lacks, and names it P.
template <class H, class P, class At>
consteval void check_handles_packet() {
    static_assert(std::invocable<H&, const P&, At>, "the handler has no overload for packet P");
}
template <class H, class List, class At = Extent>
consteval void check_handles() {
    List::for_each([]<class P>() { check_handles_packet<H, P, At>(); });
    static_assert(std::invocable<H&, const Gap&>, "the handler must take Gap");
}

/// A handler may read plain packets itself: `take(at, end, offset of at)` handles any number of whole packets and
/// returns where the next one begins. The result must be the same as with the parser.
template <class H>
concept TakesPackets = requires(H& handler, const std::uint8_t* at, Offset here) {
    { handler.take(at, at, here) } -> std::same_as<const std::uint8_t*>;
};

/// Parses one packet of type P at the start of `bytes`; calls `take(packet, size in bytes)` if it is complete.
/// `config`: the configuration that the packet's description needs, if any.
template <class P, class Take, class... Config>
WM_INLINE Parsed parse_as(Bytes bytes, Take&& take, const Config&... config) {
    Cursor cursor(bytes);
    Reader reader(cursor);
    P packet{};
    P::fields(reader, packet, config...);
    if (cursor.step() == Step::ok) [[likely]]
        take(static_cast<const P&>(packet), cursor.consumed());
    return {cursor.step(), cursor.consumed(), false};
}

/// The same for any packet of a list whose first byte is a header. A chain of comparisons in the order of the list:
/// measured faster than a jump table if few packets are frequent.
template <class List>
struct Dispatch;
template <class... P>
struct Dispatch<PacketList<P...>> {
    template <class Take, class... Config>
    WM_INLINE static Parsed parse(Bytes bytes, Take&& take, const Config&... config) {
        return parse(bytes[0], bytes, take, config...);
    }
    /// The same if the header is not the first byte.
    template <class Take, class... Config>
    WM_INLINE static Parsed parse(std::uint8_t header, Bytes bytes, Take&& take, const Config&... config) {
        Parsed result{Step::bad, 0, true};
        (void)(((header & P::info.mask) == P::info.value && (result = parse_as<P>(bytes, take, config...), true)) ||
               ...);
        return result;
    }
};

/// The state of a parser between two calls.
template <class Protocol>
struct ParserProgress {
    /// Whether everything before `at` was read, and a packet begins there.
    [[nodiscard]] bool at_packet(Offset at) const { return state_ == State::packets && carried_ == 0 && at_ == at; }

    /// Whether the bytes so far end inside a packet, or after zeros with which a packet other than Sync may begin.
    [[nodiscard]] bool amid_packet() const {
        return (state_ == State::zeros && has_after_zero) || (state_ == State::packets && carried_ != 0);
    }

protected:
    enum class State : std::uint8_t { searching, zeros, packets };
    static constexpr bool has_after_zero = requires { typename Protocol::AfterZero; };

    Offset at_{};  // offset of the next byte to be fed
    State state_ = State::searching;
    GapReason gap_reason_ = GapReason::unsynchronised;
    Offset gap_first_{};       // searching: beginning of the bytes that could not be parsed
    std::uint64_t zeros_ = 0;  // searching, zeros: length of the run of zeros that ends at at_
    std::size_t carried_ = 0;  // packets: bytes of an unfinished packet, kept in carry_
    std::array<std::uint8_t, Protocol::max_bytes> carry_{};
};

/// Parses a stream of packets, in chunks of any size: the division into chunks never changes the result. Starts
/// unsynchronised. After finish(), every byte fed is in exactly one packet or one gap. After an invalid byte or packet,
/// the search for the next synchronisation point begins at the byte after its first one.
template <class Protocol, class Handler>
class PacketParser : private ParserProgress<Protocol> {
    using Progress = ParserProgress<Protocol>;
    using State = typename Progress::State;
    using Config = typename Protocol::Config;
    using Sync = typename Protocol::Sync;
    static constexpr bool sync_takes_zeros = requires { Sync{std::uint64_t{}}; };

public:
    /// Both are borrowed and must outlive the parser.
    PacketParser(const Config& config, Handler& handler) : config_(config), handler_(handler) {
        check_handles<Handler, typename Protocol::Packets>();
    }

    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes chunk) {
        while (carried_ != 0 && !chunk.empty()) chunk = feed_carried(chunk);
        run(chunk);
    }

    /// The stream ends: reports the unfinished rest as a gap.
    void finish() {
        // Zeros up to the end are not an error: raw captures are padded with zeros.
        report_gap(pending(), at_,
                   state_ == State::searching ? gap_reason_
                   : state_ == State::zeros   ? GapReason::padding
                                              : GapReason::incomplete_packet);
        carried_ = 0;
        search(at_, GapReason::unsynchronised);
    }

    /// The bytes that follow do not continue earlier ones, for the reason `why`: reports the rest, and is
    /// unsynchronised again. Always reports a gap, even an empty one, so that the handler is informed.
    void reset(GapReason why = GapReason::framing) {
        // A stopped unit ends its stream.
        if (why == GapReason::stopped || (why == GapReason::missing && state_ == State::searching)) finish();
        const bool keeps = why == GapReason::framing && state_ == State::searching;
        handler_(Gap{pending(), at_, keeps ? gap_reason_ : why});
        carried_ = 0;
        search(at_, GapReason::unsynchronised);
    }

    /// Offset after the bytes fed so far.
    [[nodiscard]] Offset offset() const { return at_; }
    /// Beginning of the bytes that are not reported yet: a gap, a run of zeros, or a packet cut by the end of a chunk.
    [[nodiscard]] Offset pending() const {
        return state_ == State::searching ? gap_first_ : at_ - (state_ == State::zeros ? zeros_ : carried_);
    }

    /// The state of the parser; `resume` of another parser continues from it.
    [[nodiscard]] const Progress& progress() const { return *this; }
    void resume(const Progress& progress) { Progress::operator=(progress); }
    /// Continues as if everything before `at` had been read, and a packet began there.
    void resume_at(Offset at) {
        resume({});
        at_ = at;
        state_ = State::packets;
    }

private:
    using Progress::at_;
    using Progress::carried_;
    using Progress::carry_;
    using Progress::gap_first_;
    using Progress::gap_reason_;
    using Progress::state_;
    using Progress::zeros_;

    void search(Offset from, GapReason reason) {
        state_ = State::searching;
        gap_first_ = from;
        gap_reason_ = reason;
        zeros_ = 0;
    }

    void report_gap(Offset first, Offset end, GapReason reason) {
        if (first != end) handler_(Gap{first, end, reason});
    }

    void run(Bytes chunk) {
        const std::uint8_t* at = chunk.data();
        const std::uint8_t* const end = at + chunk.size();
        while (at != end) {
            switch (state_) {
                case State::searching: at = find_sync(at, end); break;
                case State::zeros: at = count_zeros(at, end); break;
                case State::packets: at = parse_packets(at, end); break;
            }
        }
    }

    /// A synchronisation packet ends at at_. The run of zeros before it began at `first`; if it is longer than the
    /// packet can be, the rest is a gap for `reason`.
    void synchronise(Offset first, GapReason reason) {
        const std::uint64_t bytes = (sync_takes_zeros ? zeros_ : Protocol::sync_zeros) + 1;
        const Offset sync = at_ - bytes;
        report_gap(first, sync, reason);
        if constexpr (sync_takes_zeros)
            handler_(Sync{zeros_}, Extent{sync, bytes});
        else
            handler_(Sync{}, Extent{sync, bytes});
        state_ = State::packets;
    }

    /// Unsynchronised: searches up to and including the next synchronisation packet.
    const std::uint8_t* find_sync(const std::uint8_t* at, const std::uint8_t* end) {
        const std::uint8_t* const begin = at;
        while (at != end) {
            const std::uint8_t byte = *at++;
            if (byte == 0) {
                ++zeros_;
                continue;
            }
            if (byte == 0x80 && zeros_ >= Protocol::sync_zeros) {
                at_ = at_ + static_cast<std::uint64_t>(at - begin);
                synchronise(gap_first_, gap_reason_);
                return at;
            }
            zeros_ = 0;
        }
        at_ = at_ + static_cast<std::uint64_t>(at - begin);
        return at;
    }

    /// Synchronised, inside a run of zeros: a synchronisation packet, the first byte of a packet of two bytes, or an
    /// illegal sequence.
    const std::uint8_t* count_zeros(const std::uint8_t* at, const std::uint8_t* end) {
        const std::uint8_t* const begin = at;
        while (at != end && *at == 0) ++at;
        zeros_ += static_cast<std::uint64_t>(at - begin);
        at_ = at_ + static_cast<std::uint64_t>(at - begin);
        if (at == end) return at;
        const Offset first = at_ - zeros_;
        if (*at == 0x80 && zeros_ >= Protocol::sync_zeros) {
            at_ = at_ + 1;
            synchronise(first, GapReason::padding);
            return at + 1;
        }
        if constexpr (Progress::has_after_zero) {
            const auto take = [&](const auto& packet, std::size_t bytes) { handler_(packet, Extent{first, bytes}); };
            if (zeros_ == 1 && Protocol::parse_after_zero(*at, config_, take).step == Step::ok) {
                at_ = at_ + 1;
                state_ = State::packets;
                return at + 1;
            }
        }
        search(first, GapReason::malformed_packet);  // the search continues at the byte after the zeros
        return at;
    }

    const std::uint8_t* parse_packets(const std::uint8_t* at, const std::uint8_t* end) {
        Offset here = at_;
        while (at != end) {
            if constexpr (TakesPackets<Handler>) {
                const std::uint8_t* const next = handler_.take(at, end, here);
                here = here + static_cast<std::uint64_t>(next - at);
                at = next;
                if (at == end) break;
            }
            if (*at == 0) {
                at_ = here;
                zeros_ = 0;
                state_ = State::zeros;
                return at;
            }
            const Parsed parsed =
                Protocol::parse_one(Bytes(at, end), config_, [&](const auto& packet, std::size_t bytes) {
                    handler_(packet, Extent{here, bytes});
                });
            if (parsed.step != Step::ok) [[unlikely]] {
                at_ = here;
                return fail(parsed, at, end);
            }
            at += parsed.bytes;
            here = here + parsed.bytes;
        }
        at_ = here;
        return at;
    }

    const std::uint8_t* fail(const Parsed& parsed, const std::uint8_t* at, const std::uint8_t* end) {
        if (parsed.step == Step::need_more) {
            carried_ = static_cast<std::size_t>(end - at);
            std::copy(at, end, carry_.begin());
            at_ = at_ + carried_;
            return end;
        }
        search(at_, parsed.reserved ? GapReason::reserved_header : GapReason::malformed_packet);
        at_ = at_ + 1;
        return at + 1;
    }

    /// Parses the bytes carried over, with enough of the chunk for the longest packet; returns the rest of the chunk.
    /// Uses the same loop as all packets, so that handlers are compiled into one function.
    Bytes feed_carried(Bytes chunk) {
        auto bytes = carry_;
        const std::size_t before = std::exchange(carried_, 0);
        const std::size_t added = std::min(chunk.size(), bytes.size() - before);
        std::copy_n(chunk.data(), added, bytes.begin() + static_cast<std::ptrdiff_t>(before));
        at_ = at_ - before;
        run(Bytes(bytes.data(), before + added));
        return chunk.subspan(added);
    }

    const Config& config_;
    Handler& handler_;
};

/// Passes packets of any type of a list, and gaps, to a handler of a hidden type, through a table with a function for
/// each packet type. The handler is borrowed.
template <class List>
class AnyHandler;
template <class... P>
class AnyHandler<PacketList<P...>> {
public:
    template <class Handler>
    explicit AnyHandler(Handler& handler) : handler_(&handler), functions_(&functions_of<Handler>) {}

    template <class One>
    void operator()(const One& packet, Extent at) {
        static_cast<const Function<One>&>(*functions_).packet(handler_, packet, at);
    }
    void operator()(const Gap& gap) { functions_->gap(handler_, gap); }

private:
    template <class One>
    struct Function {
        void (*packet)(void* handler, const One& packet, Extent at);
    };
    struct Functions : Function<P>... {
        void (*gap)(void* handler, const Gap& gap);
    };
    template <class Handler, class One>
    static void give(void* handler, const One& packet, Extent at) {
        (*static_cast<Handler*>(handler))(packet, at);
    }
    template <class Handler>
    static void give_gap(void* handler, const Gap& gap) {
        (*static_cast<Handler*>(handler))(gap);
    }
    template <class Handler>
    static constexpr Functions functions_of{Function<P>{give<Handler, P>}..., give_gap<Handler>};

    void* handler_;
    const Functions* functions_;
};

/// A PacketParser with any handler, as an object that is compiled once for each protocol.
template <class Protocol>
class AnyParser {
public:
    using Handler = AnyHandler<typename Protocol::Packets>;
    using Progress = ParserProgress<Protocol>;

    virtual ~AnyParser() = default;
    virtual void feed(Bytes chunk) = 0;
    virtual void finish() = 0;
    virtual void reset(GapReason why) = 0;
    [[nodiscard]] virtual Offset offset() const = 0;
    [[nodiscard]] virtual Offset pending() const = 0;
    [[nodiscard]] virtual const Progress& progress() const = 0;
    virtual void resume(const Progress& progress) = 0;
    virtual void resume_at(Offset at) = 0;
};

/// For the protocol's one source file that compiles its parser: `Protocol::any_parser` returns such an object.
template <class Protocol>
class AnyParserOf final : public AnyParser<Protocol> {
    using typename AnyParser<Protocol>::Handler;
    using typename AnyParser<Protocol>::Progress;

public:
    AnyParserOf(const typename Protocol::Config& config, const Handler& handler)
        : handler_(handler), parser_(config, handler_) {}
    void feed(Bytes chunk) override { parser_.feed(chunk); }
    void finish() override { parser_.finish(); }
    void reset(GapReason why) override { parser_.reset(why); }
    [[nodiscard]] Offset offset() const override { return parser_.offset(); }
    [[nodiscard]] Offset pending() const override { return parser_.pending(); }
    [[nodiscard]] const Progress& progress() const override { return parser_.progress(); }
    void resume(const Progress& progress) override { parser_.resume(progress); }
    void resume_at(Offset at) override { parser_.resume_at(at); }

private:
    Handler handler_;
    PacketParser<Protocol, Handler> parser_;
};

/// A PacketParser for handlers whose speed does not matter: each packet costs a call through a pointer, and the parser
/// is not compiled again for each handler.
template <class Protocol, class Handler>
class SharedParser {
public:
    /// Both are borrowed and must outlive the parser.
    SharedParser(const typename Protocol::Config& config, Handler& handler)
        : parser_(Protocol::any_parser(config, AnyHandler<typename Protocol::Packets>(handler))) {
        check_handles<Handler, typename Protocol::Packets>();
        static_assert(!TakesPackets<Handler>, "packets that a handler takes itself are for a PacketParser");
    }
    void feed(Bytes chunk) { parser_->feed(chunk); }
    void finish() { parser_->finish(); }
    void reset(GapReason why = GapReason::framing) { parser_->reset(why); }
    [[nodiscard]] Offset offset() const { return parser_->offset(); }
    [[nodiscard]] Offset pending() const { return parser_->pending(); }
    [[nodiscard]] const ParserProgress<Protocol>& progress() const { return parser_->progress(); }
    void resume(const ParserProgress<Protocol>& progress) { parser_->resume(progress); }
    void resume_at(Offset at) { parser_->resume_at(at); }

private:
    std::unique_ptr<AnyParser<Protocol>> parser_;
};

}  // namespace waymark::wire
