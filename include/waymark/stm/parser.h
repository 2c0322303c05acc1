/// Parses nibbles to packets (docs/spec/stm.md, 1 and 4). A packet may begin in either half of a byte. A byte belongs
/// to the packet with its low nibble: a packet that begins in the high nibble has the place of the next byte, and if it
/// also ends in that nibble, it has no byte.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/stm/config.h"
#include "waymark/stm/packet.h"

namespace waymark::stm {

using wire::Extent;
using wire::Parsed;

/// The packet whose opcode begins with two nibbles, the first one in bits 3:0, as an index into OpcodePackets;
/// reserved_header if a longer opcode does.
inline constexpr auto opcode_kinds = [] {
    std::array<std::uint8_t, 256> out{};
    out.fill(wire::reserved_header);
    std::uint8_t index = 0;
    OpcodePackets::for_each([&]<class P>() {
        for (unsigned two = 0; two < out.size(); ++two)
            if (P::opcode.nibbles == 1 ? (two & 0xfU) == P::opcode.value
                                       : P::opcode.nibbles == 2 && ((two & 0xfU) << 4 | two >> 4) == P::opcode.value)
                out[two] = index;
        ++index;
    });
    return out;
}();

/// A handler may count plain packets itself, like wire::TakesPackets: `take(bytes, at)` handles any number of whole
/// packets from nibble `at` on, and returns where the next one begins.
template <class H>
concept TakesNibbles = requires(H& handler, Bytes bytes, std::size_t at) {
    { handler.take(bytes, at) } -> std::same_as<std::size_t>;
};

/// Parses the packet whose opcode begins at nibble `at` of `bytes`, which must exist; calls `take(packet, nibble after
/// it)` if it is complete.
template <class List>
struct OpcodeDispatch;
template <class... P>
struct OpcodeDispatch<wire::PacketList<P...>> {
    template <class Take>
    WM_INLINE static Parsed parse(Bytes bytes, std::size_t at, Take& take) {
        const std::size_t end = 2 * bytes.size();
        std::size_t next = at;
        std::uint32_t opcode = nibble_at(bytes.data(), next++);
        if (next != end) {
            const std::uint8_t kind = opcode_kinds[opcode | nibble_at(bytes.data(), next) << 4];
            if (kind != wire::reserved_header) [[likely]] {
                // A table of functions: a chain of comparisons takes twice as long.
                static constexpr std::array<Parsed (*)(Bytes, std::size_t, Take&), sizeof...(P)> parse{
                    parse_as<P, Take>...};
                return parse[kind](bytes, at, take);
            }
        }
        // F, F0 and F0F are not opcodes: another nibble follows.
        while (opcode == 0xf || opcode == 0xf0 || opcode == 0xf0f) {
            if (next == end) return {Step::need_more, 0, false};
            opcode = opcode << 4 | nibble_at(bytes.data(), next++);
        }
        Parsed out{Step::bad, 0, true};
        (void)((opcode == P::opcode.value && (out = parse_as<P>(bytes, at, take), true)) || ...);
        return out;
    }

private:
    template <class One, class Take>
    static Parsed parse_as(Bytes bytes, std::size_t at, Take& take) {
        NibbleCursor cursor(bytes, at + One::opcode.nibbles);
        One packet{};
        NibbleFieldReader reader(cursor);
        One::fields(reader, packet);
        if (cursor.step() == Step::ok) [[likely]]
            take(static_cast<const One&>(packet), cursor.at());
        return {cursor.step(), cursor.at() - at, false};
    }
};

/// Parses a stream of packets, in chunks of any size: the division into chunks never changes the result. Starts
/// unsynchronised. After finish(), every byte fed is in exactly one packet or one gap.
template <class Handler>
class Parser {
public:
    /// `handler` is borrowed and must outlive the parser.
    Parser(const Config&, Handler& handler) : handler_(handler) { wire::check_handles<Handler, Packets>(); }

    void feed(Bytes chunk) {
        while (carried_ != 0 && !chunk.empty()) {
            auto bytes = carry_;
            const std::size_t before = std::exchange(carried_, 0);
            const std::size_t added = std::min(chunk.size(), bytes.size() - before);
            std::copy_n(chunk.data(), added, bytes.begin() + static_cast<std::ptrdiff_t>(before));
            at_ = at_ - before;
            run(Bytes(bytes.data(), before + added), std::exchange(half_, false) ? 1 : 0);
            chunk = chunk.subspan(added);
        }
        if (!chunk.empty()) run(chunk, 0);
    }
    /// A cut packet is a gap, which has no byte if only the packet's first nibble is there.
    void finish() {
        if (state_ == State::searching)
            report(first_, 2 * at_.value, reason_);
        else if (state_ == State::ones || carried_ != 0)
            handler_(Gap{pending(), at_, GapReason::incomplete_packet});
        search(2 * at_.value, GapReason::unsynchronised);
        forget();
    }
    /// The bytes that follow do not continue earlier ones. Always reports a gap, even an empty one.
    void reset(GapReason why = GapReason::framing) {
        if (why == GapReason::stopped || (why == GapReason::missing && state_ == State::searching)) finish();
        const bool keeps = why == GapReason::framing && state_ == State::searching;
        handler_(Gap{pending(), at_, keeps ? reason_ : why});
        search(2 * at_.value, GapReason::unsynchronised);
        forget();
    }

    [[nodiscard]] Offset offset() const { return at_; }
    /// Beginning of the bytes that are not reported yet.
    [[nodiscard]] Offset pending() const {
        return state_ == State::packets ? at_ - carried_ + (half_ ? 1U : 0U) : place(first_);
    }
    [[nodiscard]] const Parser& progress() const { return *this; }
    [[nodiscard]] bool amid_packet() const { return state_ == State::ones || carried_ != 0; }

private:
    enum class State : std::uint8_t {
        searching,
        packets,
        ones,  ///< inside an ASYNC
    };

    /// The byte that contains a nibble.
    [[nodiscard]] static Offset place(std::uint64_t nibble) { return Offset{(nibble + 1) / 2}; }

    void search(std::uint64_t from, GapReason reason) {
        state_ = State::searching;
        first_ = from;
        reason_ = reason;
        ones_ = 0;
    }
    void forget() {
        carried_ = 0;
        half_ = false;
        tail_ones_ = 0;
    }
    void report(std::uint64_t first, std::uint64_t end, GapReason reason) {
        if (place(first) != place(end)) handler_(Gap{place(first), place(end), reason});
    }
    template <class P>
    void give(const P& packet, std::uint64_t first, std::uint64_t end) {
        handler_(packet, Extent{place(first), place(end) - place(first)});
    }
    /// The number of nibbles F directly before a nibble; at most as many as in an ASYNC.
    [[nodiscard]] std::uint64_t ones_before(Bytes bytes, std::size_t at) const {
        std::uint64_t ones = 0;
        while (at != 0 && ones < Async::least && nibble_at(bytes.data(), at - 1) == 0xf) {
            ++ones;
            --at;
        }
        return std::min(Async::least, at == 0 ? ones + tail_ones_ : ones);
    }

    /// Parses from a nibble of the first byte on.
    void run(Bytes bytes, std::size_t at) {
        const std::size_t end = 2 * bytes.size();
        const std::uint64_t base = 2 * at_.value;
        std::size_t rest = end;
        while (at != end) {
            if (state_ == State::packets) {
                at = parse(bytes, at, base);
                if (state_ == State::packets && at != end) {
                    rest = at;
                    break;
                }
            } else {
                at = count_ones(bytes, at, base);
            }
        }
        carried_ = bytes.size() - rest / 2;
        half_ = carried_ != 0 && rest % 2 != 0;
        std::copy_n(bytes.data() + rest / 2, carried_, carry_.begin());
        tail_ones_ = ones_before(bytes, 2 * (rest / 2));
        at_ = at_ + bytes.size();
    }
    /// Parses packets up to one that is cut, an impossible one, or an ASYNC.
    std::size_t parse(Bytes bytes, std::size_t at, std::uint64_t base) {
        const std::size_t end = 2 * bytes.size();
        auto take = [&](const auto& packet, std::size_t next) __attribute__((always_inline)) {
            give(packet, base + at, base + next);
        };
        while (at != end) {
            if constexpr (TakesNibbles<Handler>) {
                at = handler_.take(bytes, at);
                if (at == end) break;
            }
            const Parsed parsed = OpcodeDispatch<OpcodePackets>::parse(bytes, at, take);
            if (parsed.step == Step::ok) [[likely]] {
                at += parsed.bytes;
                continue;
            }
            if (parsed.step == Step::need_more) return at;
            const bool async = nibble_at(bytes.data(), at) == 0xf && nibble_at(bytes.data(), at + 1) == 0xf;
            const std::uint64_t before = ones_before(bytes, at);
            search(base + at, parsed.reserved ? GapReason::reserved_header : GapReason::malformed_packet);
            if (async) {
                state_ = State::ones;
                reason_ = GapReason::malformed_packet;
                before_ = before;
            } else {
                // The packet may have begun inside an ASYNC.
                ones_ = before;
            }
            return at;
        }
        return at;
    }
    /// Skips up to and including the next ASYNC.
    std::size_t count_ones(Bytes bytes, std::size_t at, std::uint64_t base) {
        for (const std::size_t end = 2 * bytes.size(); at != end; ++at) {
            const unsigned nibble = nibble_at(bytes.data(), at);
            if (nibble == 0xf) {
                ++ones_;
                continue;
            }
            const std::uint64_t here = base + at, ones = std::exchange(ones_, 0);
            if (state_ == State::ones && nibble == 0 && ones >= Async::least) {
                give(Async{ones}, first_, here + 1);
            } else {
                // Nibbles of an ASYNC inside the previous packet count too.
                const std::uint64_t all = ones + (state_ == State::ones ? before_ : 0);
                state_ = State::searching;
                if (nibble != 0 || all < Async::least) continue;
                const std::uint64_t sync = here >= Async::least ? here - Async::least : 0;
                if (sync < first_) {
                    report(first_, here + 1, reason_);
                } else {
                    report(first_, sync, reason_);
                    give(Async{}, sync, here + 1);
                }
            }
            state_ = State::packets;
            return at + 1;
        }
        return at;
    }

    Handler& handler_;
    Offset at_{};  // offset of the next byte to be fed
    State state_ = State::searching;
    GapReason reason_ = GapReason::unsynchronised;
    std::uint64_t first_ = 0;      // searching, ones: the nibble where it began
    std::uint64_t ones_ = 0;       // searching, ones: nibbles F that end here
    std::uint64_t before_ = 0;     // ones: nibbles F before first_
    std::uint64_t tail_ones_ = 0;  // nibbles F before the first byte that run() has
    std::size_t carried_ = 0;      // packets: bytes with an unfinished packet, kept in carry_
    bool half_ = false;            // that packet begins in the high nibble of its first byte
    std::array<std::uint8_t, (max_nibbles + 1) / 2 + 2> carry_{};
};

}  // namespace waymark::stm
