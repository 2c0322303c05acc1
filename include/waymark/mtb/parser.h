/// Parses bytes to packets (docs/spec/mtb.md, 1). A packet is eight bytes at a multiple of eight; nothing marks its
/// beginning.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/mtb/packet.h"

namespace waymark::mtb {

using wire::Extent;

inline constexpr std::size_t packet_bytes = 8;

/// The state of a parser between two calls.
struct JumpProgress {
    [[nodiscard]] bool amid_packet() const { return carried != 0; }

    Offset at{};                        // offset of the next byte to be fed
    std::optional<Offset> unwritten{};  // beginning of words of zeros, to which no packet was written
    std::size_t carried = 0;            // bytes of an unfinished packet
    std::array<std::uint8_t, packet_bytes> carry{};
};

/// Parses a stream of packets, in chunks of any size: the division into chunks never changes the result. After
/// finish(), every byte fed is in exactly one packet or one gap.
template <class Handler>
class Parser {
public:
    /// `handler` is borrowed and must outlive the parser.
    Parser(const Config&, Handler& handler) : handler_(handler) { wire::check_handles<Handler, Packets>(); }

    void feed(Bytes chunk) {
        while (!chunk.empty()) {
            if (p_.carried == 0 && chunk.size() >= packet_bytes) {
                take(chunk.first(packet_bytes));
                chunk = chunk.subspan(packet_bytes);
                continue;
            }
            const std::size_t added = std::min(chunk.size(), packet_bytes - p_.carried);
            std::copy_n(chunk.data(), added, p_.carry.begin() + static_cast<std::ptrdiff_t>(p_.carried));
            p_.carried += added;
            chunk = chunk.subspan(added);
            if (p_.carried < packet_bytes) return;
            p_.carried = 0;
            const auto whole = p_.carry;
            take(whole);
        }
    }
    void finish() {
        end_unwritten();
        const Offset rest = p_.at;
        p_.at = p_.at + std::exchange(p_.carried, 0);
        if (rest != p_.at) handler_(Gap{rest, p_.at, GapReason::incomplete_packet});
    }
    /// The bytes that follow do not continue earlier ones. Always reports a gap, even an empty one.
    void reset(GapReason why = GapReason::framing) {
        if (why == GapReason::stopped) finish();
        end_unwritten();
        const Offset first = p_.at;
        p_.at = p_.at + std::exchange(p_.carried, 0);
        handler_(Gap{first, p_.at, why});
    }

    [[nodiscard]] Offset offset() const { return p_.at + p_.carried; }
    /// Beginning of the bytes that are not reported yet.
    [[nodiscard]] Offset pending() const { return p_.unwritten.value_or(p_.at); }
    [[nodiscard]] const JumpProgress& progress() const { return p_; }
    void resume(const JumpProgress& progress) { p_ = progress; }
    void resume_at(Offset at) { p_ = {.at = at}; }

private:
    void take(Bytes bytes) {
        if (std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; })) {
            if (!p_.unwritten) p_.unwritten = p_.at;
            p_.at = p_.at + packet_bytes;
            return;
        }
        end_unwritten();
        (void)wire::parse_as<JumpPacket>(bytes, [&](const JumpPacket& packet, std::size_t size) {
            const Extent at{p_.at, size};
            p_.at = at.end();
            handler_(packet, at);
        });
    }
    void end_unwritten() {
        if (p_.unwritten) handler_(Gap{*p_.unwritten, p_.at, GapReason::padding});
        p_.unwritten.reset();
    }

    Handler& handler_;
    JumpProgress p_;
};

}  // namespace waymark::mtb
