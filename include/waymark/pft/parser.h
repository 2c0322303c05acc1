/// Bytes → packets (docs/spec/pft.md, sections 2.10 and 2.11).
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>

#include "waymark/core/cursor.h"
#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/core/wire.h"
#include "waymark/pft/config.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

using wire::Extent;

/// Takes packets: callable with every packet type of the protocol, and with gaps. A handler that does not care for some
/// packets says so with a catch-all overload.
template <class H, class List = Packets>
inline constexpr bool handles_all = false;
template <class H, class... P>
inline constexpr bool handles_all<H, wire::PacketList<P...>> = (std::invocable<H&, const P&, Extent> && ...);
template <class H>
concept PacketHandler = handles_all<H> && std::invocable<H&, const Gap&>;

/// Stops the compiler at the packet a handler forgot: the message names P.
template <class H, class P>
consteval void check_handles() {
    static_assert(std::invocable<H&, const P&, Extent>, "the handler has no overload for packet P");
}

/// A handler may read plain packets itself: `take(at, end, offset of at)` handles as many whole packets as it likes and
/// gives back where the next one starts. Those it takes must be such as `parse_one` would have given it.
template <class H>
concept TakesPackets = requires(H& handler, const std::uint8_t* at, Offset here) {
    { handler.take(at, at, here) } -> std::same_as<const std::uint8_t*>;
};

/// What one try at a packet gave.
struct Parsed {
    Step step{};
    std::size_t bytes{};  ///< consumed, when ok
    bool reserved{};      ///< when bad: the header starts no packet at all
};

/// One packet of type P at the start of `bytes`; calls `take(packet, size in bytes)` when it is whole.
template <class P, class Take>
WM_INLINE Parsed parse_as(Bytes bytes, const Config& config, Take&& take) {
    Cursor cursor(bytes);
    wire::Reader reader(cursor);
    P packet{};
    P::fields(reader, packet, config);
    if (cursor.step() == Step::ok) [[likely]]
        take(static_cast<const P&>(packet), cursor.consumed());
    return {cursor.step(), cursor.consumed(), false};
}

template <class List>
struct Dispatch;
template <class... P>
struct Dispatch<wire::PacketList<P...>> {
    /// A chain of compares in list order: measured faster than a jump table.
    template <class Take>
    WM_INLINE static Parsed parse(Bytes bytes, const Config& config, Take&& take) {
        Parsed result{Step::bad, 0, true};
        const std::uint8_t header = bytes[0];
        (void)(((header & P::info.mask) == P::info.value && (result = parse_as<P>(bytes, config, take), true)) || ...);
        return result;
    }
};

/// One packet of any type at the start of `bytes`, which must not be empty. Stateless.
template <class Take>
WM_INLINE Parsed parse_one(Bytes bytes, const Config& config, Take&& take) {
    return Dispatch<Packets>::parse(bytes, config, take);
}

/// What a parser remembers between two calls.
struct ParserProgress {
    /// Everything up to `at` was read, and a packet begins there.
    [[nodiscard]] bool at_packet(Offset at) const { return state_ == State::packets && carried_ == 0 && at_ == at; }

    /// The bytes read so far end inside a packet.
    [[nodiscard]] bool amid_packet() const { return state_ == State::packets && carried_ != 0; }

protected:
    enum class State : std::uint8_t { searching, zeros, packets };
    static constexpr std::size_t carry_bytes = Packets::max_bytes;

    Offset at_{};  // of the next byte to be fed
    State state_ = State::searching;
    GapReason gap_reason_ = GapReason::unsynchronised;
    Offset gap_first_{};       // searching: where what could not be parsed began
    std::uint64_t zeros_ = 0;  // searching, zeros: length of the run of zeros that ends at at_
    std::size_t carried_ = 0;  // packets: bytes of an unfinished packet, kept in carry_
    std::array<std::uint8_t, carry_bytes> carry_{};
};

/// A stream of packets, in chunks of any size: how the input is cut never changes what is reported. Starts
/// unsynchronised. Every byte fed is in exactly one packet or one gap once finish() was called. After a byte or packet
/// that cannot be, the search for the next A-sync starts directly behind its first byte.
template <class Handler>
class Parser : private ParserProgress {
public:
    /// Both are borrowed and must outlive the parser.
    Parser(const Config& config, Handler& handler) : config_(config), handler_(handler) {
        Packets::for_each([]<class P>() { check_handles<Handler, P>(); });
        static_assert(PacketHandler<Handler>, "the handler must take every packet of pft::Packets, and Gap");
    }

    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes chunk) {
        if (carried_ != 0) chunk = feed_carried(chunk);
        run(chunk);
    }

    /// The stream ends here: reports what is left over as a gap.
    void finish() {
        // Zeros up to the end are no error: raw captures are padded like this (2.2).
        report_gap(pending(), at_,
                   state_ == State::searching ? gap_reason_
                   : state_ == State::zeros   ? GapReason::padding
                                              : GapReason::incomplete_packet);
        carried_ = 0;
        search(at_, GapReason::unsynchronised);
    }

    /// What comes next does not follow what came before: reports what is left over, and is unsynchronised again.
    /// Always reports a gap, even an empty one, so that the handler knows.
    void reset() {
        const Offset first =
            state_ == State::searching ? gap_first_ : at_ - (state_ == State::zeros ? zeros_ : carried_);
        handler_(Gap{first, at_, state_ == State::searching ? gap_reason_ : GapReason::framing});
        carried_ = 0;
        search(at_, GapReason::unsynchronised);
    }

    /// Bytes fed so far.
    [[nodiscard]] Offset offset() const { return at_; }
    /// Where what is not yet reported began: a gap, a run of zeros or a packet cut by the end of a chunk.
    [[nodiscard]] Offset pending() const {
        return state_ == State::searching ? gap_first_ : at_ - (state_ == State::zeros ? zeros_ : carried_);
    }

    /// Where the parser stands; `resume` of another parser goes on from there.
    [[nodiscard]] const ParserProgress& progress() const { return *this; }
    void resume(const ParserProgress& progress) { ParserProgress::operator=(progress); }
    /// Goes on as if all before `at` were read, and a packet began there.
    void resume_at(Offset at) {
        resume({});
        at_ = at;
        state_ = State::packets;
    }

private:
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
                case State::searching: at = find_async(at, end); break;
                case State::zeros: at = count_zeros(at, end); break;
                case State::packets: at = parse_packets(at, end); break;
            }
        }
    }

    /// Out of sync: up to and including the next A-sync.
    const std::uint8_t* find_async(const std::uint8_t* at, const std::uint8_t* end) {
        const std::uint8_t* const begin = at;
        while (at != end) {
            const std::uint8_t byte = *at++;
            if (byte == 0) {
                ++zeros_;
                continue;
            }
            if (byte == 0x80 && zeros_ >= 5) {
                at_ = at_ + static_cast<std::uint64_t>(at - begin);
                const Offset first = at_ - (zeros_ + 1);
                report_gap(gap_first_, first, gap_reason_);
                handler_(ASync{zeros_}, Extent{first, zeros_ + 1});
                state_ = State::packets;
                return at;
            }
            zeros_ = 0;
        }
        at_ = at_ + static_cast<std::uint64_t>(at - begin);
        return at;
    }

    /// In sync, inside a run of zeros: an A-sync unless it is too short or something else than 0x80 follows.
    const std::uint8_t* count_zeros(const std::uint8_t* at, const std::uint8_t* end) {
        const std::uint8_t* const begin = at;
        while (at != end && *at == 0) ++at;
        zeros_ += static_cast<std::uint64_t>(at - begin);
        at_ = at_ + static_cast<std::uint64_t>(at - begin);
        if (at == end) return at;
        const Offset first = at_ - zeros_;
        if (*at == 0x80 && zeros_ >= 5) {
            at_ = at_ + 1;
            handler_(ASync{zeros_}, Extent{first, zeros_ + 1});
            state_ = State::packets;
            return at + 1;
        }
        search(first, GapReason::malformed_packet);  // the search goes on at the byte behind the zeros
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
            const Parsed parsed = parse_one(Bytes(at, end), config_, [&](const auto& packet, std::size_t bytes) {
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

    /// Completes the packet whose head was carried over; gives back what of the chunk is left.
    Bytes feed_carried(Bytes chunk) {
        const std::size_t before = carried_;
        const std::size_t added = std::min(chunk.size(), carry_bytes - before);
        std::copy_n(chunk.data(), added, carry_.begin() + static_cast<std::ptrdiff_t>(before));
        const Offset first = at_ - before;
        const Parsed parsed =
            parse_one(Bytes(carry_.data(), before + added), config_, [&](const auto& packet, std::size_t bytes) {
                handler_(packet, Extent{first, bytes});
            });
        if (parsed.step == Step::ok) {
            carried_ = 0;
            at_ = first + parsed.bytes;
            return chunk.subspan(parsed.bytes - before);
        }
        if (parsed.step == Step::need_more) {  // so the whole chunk is in: no packet is longer than the carry
            carried_ += added;
            at_ = at_ + added;
            return {};
        }
        // The bad packet may have eaten the start of the next sync: search what was carried, from its second byte on.
        std::array<std::uint8_t, carry_bytes> again = carry_;
        carried_ = 0;
        at_ = first + 1;
        search(first, parsed.reserved ? GapReason::reserved_header : GapReason::malformed_packet);
        run(Bytes(again.data() + 1, before - 1));
        return carried_ != 0 ? feed_carried(chunk) : chunk;
    }

    const Config& config_;
    Handler& handler_;
};

}  // namespace waymark::pft
