/// Parses bytes to packets (docs/spec/itm.md, 3). This parser, unlike others, does not wait for synchronisation
/// packets, because many units never send any. It tries a packet at the first byte of a stream; after a byte that
/// begins no packet, it tries at the next one. SourceState::confirmed() shows whether a synchronisation packet confirms
/// the position of packets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/itm/config.h"
#include "waymark/itm/packet.h"

namespace waymark::itm {

using wire::Extent;
using wire::Parsed;

/// Packets other than Sync. A header belongs to the first whose info matches.
using HeaderPackets = wire::PacketList<Overflow, ShortTimestamp, LocalTimestamp, GlobalTimestamp1, GlobalTimestamp2,
                                       Extension, HardwareSource, Stimulus>;

/// For each first byte of a packet, the index in HeaderPackets of the packet that it begins; reserved_header for 0 and
/// for reserved headers.
inline constexpr auto header_kinds = [] {
    std::array<std::uint8_t, 256> out{};
    for (unsigned byte = 0; byte < out.size(); ++byte) {
        const auto header = static_cast<std::uint8_t>(byte);
        out[byte] = wire::reserved_header;
        if (header == 0 || is_reserved(header)) continue;
        for (std::size_t i = HeaderPackets::size; i-- != 0;)
            if ((header & HeaderPackets::infos[i].mask) == HeaderPackets::infos[i].value)
                out[byte] = static_cast<std::uint8_t>(i);
    }
    return out;
}();

/// Parses the packet at the start of `bytes`, whose header is not 0.
template <class Take>
WM_INLINE Parsed parse_one(Bytes bytes, Take&& take) {
    const std::uint8_t kind = header_kinds[bytes[0]];
    Parsed out{Step::bad, 0, true};
    const auto is = [&]<class P>() __attribute__((always_inline)) {
        constexpr auto index = [] {
            std::uint8_t at = 0, found = 0;
            HeaderPackets::for_each([&]<class Other>() {
                if (std::is_same_v<P, Other>) found = at;
                ++at;
            });
            return found;
        }();
        if (kind != index) return false;
        out = wire::parse_as<P>(bytes, take);
        return true;
    };
    // The most frequent first.
    (void)(is.template operator()<Stimulus>() || is.template operator()<ShortTimestamp>() ||
           is.template operator()<LocalTimestamp>() || is.template operator()<HardwareSource>() ||
           is.template operator()<GlobalTimestamp1>() || is.template operator()<GlobalTimestamp2>() ||
           is.template operator()<Extension>() || is.template operator()<Overflow>());
    return out;
}

/// Parses a stream of packets, in chunks of any size: the division into chunks never changes the result. After
/// finish(), every byte fed is in exactly one packet or one gap.
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
            run(Bytes(bytes.data(), before + added));
            chunk = chunk.subspan(added);
        }
        run(chunk);
    }
    void finish() {
        const Offset rest = at_ - (zeros_ + carried_);
        report(rest);
        if (rest != at_) handler_(Gap{rest, at_, zeros_ != 0 ? GapReason::padding : GapReason::incomplete_packet});
        zeros_ = 0;
        carried_ = 0;
    }
    /// The bytes that follow do not continue earlier ones. Always reports a gap, even an empty one.
    void reset(GapReason why = GapReason::framing) {
        if (why == GapReason::stopped) finish();
        handler_(Gap{pending(), at_, why});
        lost_.reset();
        zeros_ = 0;
        carried_ = 0;
    }

    [[nodiscard]] Offset offset() const { return at_; }
    /// Beginning of the bytes that are not reported yet.
    [[nodiscard]] Offset pending() const { return lost_ ? lost_->first : at_ - (zeros_ + carried_); }
    [[nodiscard]] const Parser& progress() const { return *this; }
    [[nodiscard]] bool amid_packet() const { return carried_ != 0; }

private:
    struct Lost {
        Offset first;
        GapReason reason;
    };

    void lose(Offset first, GapReason reason) {
        if (!lost_) lost_ = Lost{first, first < head_ ? GapReason::unsynchronised : reason};
    }
    void report(Offset end) {
        if (lost_ && lost_->first != end) handler_(Gap{lost_->first, end, lost_->reason});
        lost_.reset();
    }
    void run(Bytes chunk) {
        const std::uint8_t* at = chunk.data();
        const std::uint8_t* const end = at + chunk.size();
        while (at != end) {
            if (zeros_ != 0 || *at == 0) {
                at = count_zeros(at, end);
                continue;
            }
            if constexpr (wire::TakesPackets<Handler>) {
                if (!lost_) {
                    const std::uint8_t* const next = handler_.take(at, end, at_);
                    at_ = at_ + static_cast<std::uint64_t>(next - at);
                    at = next;
                    if (at == end || *at == 0) continue;
                }
            }
            Parsed parsed = parse_one(Bytes(at, end), [&](const auto& packet, std::size_t bytes) {
                report(at_);
                handler_(packet, Extent{at_, bytes});
            });
            if (parsed.step == Step::need_more) {
                carried_ = static_cast<std::size_t>(end - at);
                std::copy(at, end, carry_.begin());
                at_ = at_ + carried_;
                return;
            }
            if (parsed.step == Step::bad) {
                lose(at_, parsed.reserved ? GapReason::reserved_header : GapReason::malformed_packet);
                parsed.bytes = 1;
            }
            at += parsed.bytes;
            at_ = at_ + parsed.bytes;
        }
    }
    /// Counts a run of zeros: up to the end of a synchronisation packet, or to a byte that may begin another packet.
    const std::uint8_t* count_zeros(const std::uint8_t* at, const std::uint8_t* end) {
        for (; at != end; ++at) {
            if (*at == 0) {
                ++zeros_;
                at_ = at_ + 1;
                continue;
            }
            const Offset first = at_ - zeros_;
            const std::uint64_t zeros = std::exchange(zeros_, 0);
            if (*at == 0x80 && zeros >= 5) {
                report(first);
                at_ = at_ + 1;
                head_ = {};
                handler_(Sync{zeros}, Extent{first, zeros + 1});
                return at + 1;
            }
            lose(first, GapReason::malformed_packet);
            return at;
        }
        return at;
    }

    Handler& handler_;
    Offset at_{};               // offset of the next byte to be fed
    std::uint64_t zeros_ = 0;   // length of the run of zeros that ends at at_
    std::optional<Lost> lost_;  // bytes outside of packets that are not reported yet
    Offset head_{7};            // a stream may begin amid a packet, the longest of which has 7 bytes
    std::size_t carried_ = 0;   // bytes of an unfinished packet, kept in carry_
    std::array<std::uint8_t, 8> carry_{};
};

}  // namespace waymark::itm
