/// Bytes → packets (docs/spec/spe.md, section 4.1).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "waymark/core/cursor.h"
#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/core/wire.h"
#include "waymark/spe/packet.h"

namespace waymark::spe {

using wire::Extent;
using wire::Parsed;

/// Parses one packet after a prefix byte.
template <class Take>
Parsed parse_extended(Bytes bytes, Take&& take) {
    if (bytes.size() < 2) return {Step::need_more, 0, false};
    const std::uint8_t prefix = bytes[0], header = bytes[1];
    if (header == 0 && (prefix & Alignment::info.mask) == Alignment::info.value)
        return wire::parse_as<Alignment>(bytes, take);
    if (header < 0x40) return {Step::bad, 0, false};
    if ((prefix & 0xfcU) == 0x20) {
        const Parsed result = wire::Dispatch<wire::PacketList<AddressPacket, Counter>>::parse(header, bytes, take);
        if (!result.reserved) return result;
    }
    return wire::parse_as<Unknown>(bytes, take);
}

/// Parses one packet of any type at the start of `bytes`, which must not be empty. Stateless: padding is one byte,
/// alignment only its header.
template <class Take>
WM_INLINE Parsed parse_one(Bytes bytes, Take&& take) {
    const Parsed result = wire::Dispatch<NamedPackets>::parse(bytes, take);
    if (!result.reserved) [[likely]]
        return result;
    const std::uint8_t header = bytes[0];
    if (is_prefix(header)) return parse_extended(bytes, take);
    if (header >= 0x40) return wire::parse_as<Unknown>(bytes, take);
    return result;
}

/// Parses a stream of packets, in chunks of any size: the division into chunks never changes the result. After
/// finish(), every byte fed is in exactly one packet or one gap. A byte that starts no packet is lost alone: parsing
/// continues directly after it, and a run of such bytes is one gap. If the handler has `bool done() const`, it is
/// called after each packet, and `feed` ends when it returns true.
template <class Handler>
class Parser {
public:
    /// The handler is borrowed and must outlive the parser.
    explicit Parser(Handler& handler) : handler_(handler) { wire::check_handles<Handler, Packets>(); }

    /// The next bytes of the stream, borrowed for the call. Returns the unused bytes: none unless the handler was done.
    Bytes feed(Bytes chunk) {
        stopped_ = false;
        while (!chunk.empty() && !stopped_) {
            if (carried_ != 0)
                chunk = feed_carried(chunk);
            else if (skipped_ != 0)
                chunk = skip(chunk);
            else if (zeros_ != 0)
                chunk = count_zeros(chunk);
            else
                chunk = parse_packets(chunk);
        }
        return chunk;
    }

    /// The stream ends: reports the unfinished rest.
    void finish() { leave(GapReason::incomplete_packet); }

    /// The bytes that follow do not continue earlier ones: reports the rest, and always a gap, even an empty one, so
    /// that the handler is informed.
    void reset() {
        const bool reported = carried_ + skipped_ != 0;
        leave(GapReason::framing);
        if (!reported) handler_(Gap{at_, at_, GapReason::framing});
    }

    /// Skips bytes that another object has parsed. Precondition: nothing is pending.
    void advance(std::uint64_t bytes) { at_ = at_ + bytes; }

    /// Offset after the bytes fed so far.
    [[nodiscard]] Offset offset() const { return at_; }
    /// Beginning of the bytes that are not reported yet: a run of zeros or bad bytes, or a packet cut by the end of a
    /// chunk.
    [[nodiscard]] Offset pending() const { return at_ - (bad_ + zeros_ + carried_ + skipped_); }

private:
    static constexpr std::size_t carry_bytes = Packets::max_bytes;

    template <class P>
    void report(const P& packet, Extent at) {
        if (bad_ != 0) [[unlikely]]
            report_bad(at.first);
        handler_(packet, at);
        if constexpr (requires { handler_.done(); }) stopped_ = handler_.done();
    }

    void report_bad(Offset end) {
        const std::uint64_t bytes = bad_;
        bad_ = 0;
        handler_(Gap{end - bytes, end, bad_reason_});
    }

    /// The byte at at_ starts no packet.
    void bad_byte(const Parsed& parsed) {
        const GapReason reason = parsed.reserved ? GapReason::reserved_header : GapReason::malformed_packet;
        if (bad_ != 0 && reason != bad_reason_) report_bad(at_);
        bad_reason_ = reason;
        ++bad_;
        at_ = at_ + 1;
    }

    void leave(GapReason cut) {
        if (bad_ != 0) report_bad(at_ - carried_);
        if (zeros_ != 0) report(Padding{zeros_}, Extent{at_ - zeros_, zeros_});
        if (const std::uint64_t left = carried_ + skipped_; left != 0) handler_(Gap{at_ - left, at_, cut});
        zeros_ = skipped_ = carried_ = 0;
    }

    Bytes parse_packets(Bytes chunk) {
        while (!chunk.empty()) {
            if (chunk[0] == 0) {
                if (bad_ != 0) report_bad(at_);
                return count_zeros(chunk);
            }
            const Parsed parsed = parse_here(chunk, at_);
            if (parsed.step == Step::need_more) {
                carried_ = chunk.size();
                std::copy(chunk.begin(), chunk.end(), carry_.begin());
                at_ = at_ + carried_;
                return {};
            }
            if (parsed.step == Step::bad) {
                bad_byte(parsed);
                chunk = chunk.subspan(1);
                continue;
            }
            at_ = at_ + parsed.bytes;
            chunk = chunk.subspan(parsed.bytes);
            if (stopped_ || skipped_ != 0) break;
        }
        return chunk;
    }

    /// Parses one packet that begins at `first`. An alignment packet only begins here: `bytes` has the bytes read so
    /// far.
    Parsed parse_here(Bytes bytes, Offset first) {
        bool aligning = false;
        Parsed parsed = parse_one(bytes, [&](const auto& packet, std::size_t size) {
            if constexpr (std::same_as<std::decay_t<decltype(packet)>, Alignment>) {
                aligning = true;
                skip_ = packet.skip;
                skip_.bytes = static_cast<std::uint32_t>(skip_.unit - (first.value & (skip_.unit - 1)));
            } else {
                report(packet, Extent{first, size});
            }
        });
        if (aligning) [[unlikely]] {
            if (bad_ != 0) report_bad(first);
            skipped_ = parsed.bytes = 1;
            if (skip_.bytes == 1) end_skip(first + 1);
        }
        return parsed;
    }

    Bytes skip(Bytes chunk) {
        const std::size_t take = std::min<std::size_t>(chunk.size(), skip_.bytes - skipped_);
        skipped_ += take;
        at_ = at_ + take;
        if (skipped_ == skip_.bytes) end_skip(at_);
        return chunk.subspan(take);
    }
    void end_skip(Offset end) {
        skipped_ = 0;
        report(Alignment{skip_}, Extent{end - skip_.bytes, skip_.bytes});
    }

    Bytes count_zeros(Bytes chunk) {
        const auto other = std::find_if(chunk.begin(), chunk.end(), [](std::uint8_t byte) { return byte != 0; });
        const auto count = static_cast<std::size_t>(other - chunk.begin());
        zeros_ += count;
        at_ = at_ + count;
        if (other != chunk.end()) {
            const std::uint64_t zeros = zeros_;
            zeros_ = 0;
            report(Padding{zeros}, Extent{at_ - zeros, zeros});
        }
        return chunk.subspan(count);
    }

    /// Completes the packet whose head was carried over; returns the rest of the chunk.
    Bytes feed_carried(Bytes chunk) {
        const std::size_t before = carried_;
        const std::size_t added = std::min(chunk.size(), carry_bytes - before);
        std::copy_n(chunk.data(), added, carry_.begin() + static_cast<std::ptrdiff_t>(before));
        const Offset first = at_ - before;
        carried_ = 0;
        at_ = first;
        const Parsed parsed = parse_here(Bytes(carry_.data(), before + added), first);
        if (parsed.step == Step::ok) {
            at_ = first + parsed.bytes;
            return chunk.subspan(parsed.bytes - before);
        }
        if (parsed.step == Step::need_more) {  // so the whole chunk is in: no packet is longer than the carry
            carried_ = before + added;
            at_ = first + carried_;
            return {};
        }
        bad_byte(parsed);  // only a prefix was carried: its next byte decides first
        return chunk;
    }

    Handler& handler_;
    Offset at_{};                // offset of the next byte to be fed
    GapReason bad_reason_{};     // reason of the run of bad_ bytes that ends where the pending packet begins
    std::uint64_t bad_ = 0;      // bytes that start no packet
    std::uint64_t zeros_ = 0;    // length of the run of zeros that ends at at_
    std::uint64_t skipped_ = 0;  // bytes of the alignment packet skip_ so far
    std::size_t carried_ = 0;    // bytes of an unfinished packet, kept in carry_
    bool stopped_ = false;       // the handler was done
    Skip skip_{};
    std::array<std::uint8_t, carry_bytes> carry_{};
};

}  // namespace waymark::spe
