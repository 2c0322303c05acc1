#include "readers.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "explain.h"
#include "waymark/core/numbers.h"
#include "waymark/itm/parser.h"
#include "waymark/itm/state.h"
#include "waymark/protocol/message_survey.h"

namespace waymark::itm {

namespace {

using protocol::Survey;

/// Counts accesses as MessageDecoder joins their packets.
class AccessGroup {
public:
    void end() { group_ = none; }
    /// Whether the packet begins another access.
    bool see(unsigned discriminator, unsigned size) {
        const unsigned comparator = (discriminator >> 1 & 3U) << 2 | open;
        const bool is_value = discriminator >= 16, is_address = !is_value && (discriminator & 1U) != 0;
        const unsigned part = is_value ? 0U : is_address ? address : pc;
        const bool is_match = part == pc && size == 1;
        const bool begins = (group_ & ~(address | pc)) != comparator || is_match || (group_ & part) != 0;
        group_ = is_value || is_match ? none : (begins ? comparator : group_) | part;
        return begins;
    }

private:
    static constexpr unsigned none = 0, open = 1, address = 16, pc = 32;  // bits 3:2 are the comparator
    unsigned group_ = none;
};

/// What take() does with a packet, by its header. Packets of length 0 are left to the parser.
struct Head {
    std::uint8_t length{};     ///< up to the first byte of a timestamp
    std::uint8_t continues{};  ///< 3: a timestamp goes on after `length` bytes as its continuation bits say
    bool dwt{};                ///< whether it is reserved, or an access, depends on more than the header
    HardwareSource packet{};
};
constexpr auto heads = [] {
    std::array<Head, 256> out{};
    HeaderPackets::for_each([&]<class P>() {
        for (unsigned byte = 0; byte < out.size(); ++byte) {
            if (header_kinds[byte] >= HeaderPackets::size ||
                HeaderPackets::infos[header_kinds[byte]].name != P::info.name)
                continue;
            const auto size = static_cast<std::uint8_t>(byte & 3U);
            if constexpr (std::is_same_v<P, Stimulus>) {
                out[byte] = {static_cast<std::uint8_t>(1 + payload_bytes(size)), 0, false, {}};
            } else if constexpr (std::is_same_v<P, HardwareSource>) {
                const auto discriminator = static_cast<std::uint8_t>(byte >> 3);
                out[byte] = {static_cast<std::uint8_t>(1 + payload_bytes(size)),
                             0,
                             !(discriminator == 2 && size == 3),
                             {discriminator, size, 0}};
            } else if constexpr (std::is_same_v<P, ShortTimestamp>) {
                out[byte] = {1, 0, false, {}};
            } else if constexpr (std::is_same_v<P, LocalTimestamp>) {
                out[byte] = {2, 3, false, {}};
            }
        }
    });
    return out;
}();

/// Results of a survey that only ITM has.
class More {
public:
    explicit More(const Config& config) : state_(config) {}

    template <class P>
    void see(const P& packet, Extent at, const OffsetMap& offsets, Survey& survey) {
        if (!survey.first_sync) survey.first_sync = offsets.capture(at.first);
        state_.see(packet);
        if (!state_.confirmed()) {
            ++unconfirmed_;
            unconfirmed_bytes_ += at.bytes;
        }
        if constexpr (std::is_same_v<P, HardwareSource>)
            see_hardware(packet, at, offsets);
        else
            group_.end();
        if constexpr (std::is_same_v<P, GlobalTimestamp1> || std::is_same_v<P, GlobalTimestamp2>) {
            if (const auto time = state_.global()) {
                ++counts_.messages;
                survey.last_timestamp = *time;
                if (!survey.first_timestamp) survey.first_timestamp = *time;
            }
        } else if constexpr (std::is_same_v<P, Overflow>) {
            counts_.overflow(at, offsets);
        } else if constexpr (std::is_same_v<P, Stimulus>) {
            ++counts_.messages;
        } else if constexpr (std::is_same_v<P, Extension>) {
            if (packet.more || packet.hardware) counts_.reserved(at, offsets);
        } else if constexpr (std::is_same_v<P, Sync>) {
            ++syncs_;
        }
    }
    /// Counts the packets of most programs by their headers, up to one that needs the parser. A packet of the longest
    /// kind fits into the bytes read at once, so nothing is read beyond `end`.
    const std::uint8_t* take(const std::uint8_t* at, const std::uint8_t* end, Offset here, const OffsetMap& offsets,
                             Survey& survey) {
        constexpr std::ptrdiff_t read_at_once = 8;
        const std::uint8_t* const begin = at;
        std::uint64_t packets = 0;
        while (end - at >= read_at_once) {
            const Head& head = heads[*at];
            std::uint32_t next = 0;
            std::memcpy(&next, at + 1, sizeof next);
            if constexpr (std::endian::native == std::endian::big) next = __builtin_bswap32(next);
            const std::uint32_t ends = ~next & 0x80808080U;
            if (head.length == 0 || (head.continues != 0 && ends == 0)) break;
            ++headers_[*at];
            ++packets;
            const unsigned more = static_cast<unsigned>(std::countr_zero(ends | 0x80000000U)) / 8;
            if (head.dwt) {
                HardwareSource p = head.packet;
                p.data = head.length == 5 ? next : next & (head.length == 3 ? 0xffffU : 0xffU);
                see_hardware(p, {here + static_cast<std::uint64_t>(at - begin), head.length}, offsets);
            } else {
                group_.end();
            }
            at += head.length + (more & head.continues);
        }
        if (at == begin) return at;
        if (!survey.first_sync) survey.first_sync = offsets.capture(here);
        const auto bytes = static_cast<std::uint64_t>(at - begin);
        survey.bytes_in_packets += bytes;
        if (!state_.confirmed()) {
            unconfirmed_ += packets;
            unconfirmed_bytes_ += bytes;
        }
        return at;
    }
    void gap(const Gap& gap, const OffsetMap& offsets) {
        state_.see(gap);
        group_.end();
        counts_.see(gap, offsets);
    }
    void finish(Survey& survey) const {
        for (unsigned byte = 0; byte < headers_.size(); ++byte)
            if (headers_[byte] != 0)
                survey.packets[std::string(HeaderPackets::infos[header_kinds[byte]].name)] += headers_[byte];
        if (const std::uint64_t overflows = counts_.troubles.overflows.times; overflows != 0)
            survey.troubles.push_back(fmt::format("it overflowed {}; packets are missing there",
                                                  overflows == 1 ? "once" : counted(overflows, "time")));
        if (reserved_ != 0)
            survey.troubles.push_back(fmt::format("{} of the DWT {} reserved; bytes may be damaged",
                                                  counted(reserved_, "packet"), are(reserved_)));
        if (syncs_ == 0 && unconfirmed_ != 0)
            survey.troubles.emplace_back(
                "it has no synchronisation packet: a packet is assumed to begin at its first byte, and nothing "
                "confirms it");
        else if (unconfirmed_ != 0)
            survey.troubles.push_back(
                fmt::format("{} ({}) before its first synchronisation packet, or between damage and the next one: "
                            "nothing confirms where these packets begin",
                            counted(unconfirmed_, "packet"), counted(unconfirmed_bytes_, "byte")));
    }
    [[nodiscard]] protocol::MessageCounts messages() const {
        protocol::MessageCounts out = counts_;
        for (unsigned byte = 0; byte < headers_.size(); ++byte) {
            const std::string_view name = header_kinds[byte] < HeaderPackets::size
                                              ? HeaderPackets::infos[header_kinds[byte]].name
                                              : std::string_view();
            if (name == Stimulus::info.name) out.messages += headers_[byte];
            // Others of the DWT were counted one by one.
            if (name == HardwareSource::info.name && !heads[byte].dwt) {
                out.messages += headers_[byte];
                out.samples |= headers_[byte] != 0;
            }
        }
        return out;
    }

private:
    void see_hardware(const HardwareSource& p, Extent at, const OffsetMap& offsets) {
        const bool reserved = is_reserved(p);
        if (!reserved && p.discriminator >= 8) {
            counts_.messages += group_.see(p.discriminator, p.size) ? 1 : 0;
            return;
        }
        group_.end();
        if (reserved) {
            ++reserved_;
            counts_.reserved(at, offsets);
            return;
        }
        ++counts_.messages;
        counts_.samples |= p.discriminator == 2;
    }

    SourceState state_;
    protocol::MessageCounts counts_;
    AccessGroup group_;
    std::array<std::uint64_t, 256> headers_{};  // packets that take() counted, by their first byte
    std::uint64_t reserved_ = 0, syncs_ = 0, unconfirmed_ = 0, unconfirmed_bytes_ = 0;
};

}  // namespace

std::unique_ptr<protocol::Surveyor> make_surveyor(const Config& config, const OffsetMap& offsets) {
    return std::make_unique<protocol::MessageSurveyorOf<Config, Parser, More>>(config, offsets);
}
std::unique_ptr<protocol::Reader> make_row_writer(const Config& config, protocol::PacketRows& rows) {
    return std::make_unique<protocol::RowsOf<Config, Parser, Explainer>>(config, rows);
}

}  // namespace waymark::itm
