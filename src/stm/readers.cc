#include "readers.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "explain.h"
#include "waymark/core/numbers.h"
#include "waymark/protocol/message_survey.h"
#include "waymark/stm/parser.h"
#include "waymark/stm/state.h"

namespace waymark::stm {

namespace {

using protocol::Survey;

/// Whether MessageDecoder makes a message of the packet.
template <class P>
constexpr bool is_message = requires {
    P::nibbles;
}
|| std::is_same_v<P, FlagPacket> || std::is_same_v<P, FlagTimed> || std::is_same_v<P, Trigger> ||
    std::is_same_v<P, TriggerTimed> || std::is_same_v<P, Frequency> || std::is_same_v<P, FrequencyTimed> ||
    std::is_same_v<P, Frequency40> || std::is_same_v<P, Frequency40Timed>;

/// Packets that change nothing in a survey but counts and the time.
template <class P>
constexpr bool is_plain = requires {
    P::nibbles;
}
|| std::is_same_v<P, FlagPacket> || std::is_same_v<P, FlagTimed> || std::is_same_v<P, Null> ||
    std::is_same_v<P, Master8> || std::is_same_v<P, Master16> || std::is_same_v<P, Channel8> ||
    std::is_same_v<P, Channel16>;

template <class T, unsigned Nibbles>
constexpr unsigned value_nibbles(const NumberPacket<T, Nibbles>*) {
    return Nibbles;
}
template <class T, unsigned Nibbles>
constexpr unsigned value_nibbles(const NumberStampPacket<T, Nibbles>*) {
    return Nibbles;
}
constexpr unsigned value_nibbles(const void*) { return 0; }

/// What take() does with a packet, by its first two nibbles. Packets of length 0 are left to the parser.
struct Head {
    std::uint8_t nibbles{};  ///< up to the size of the timestamp, if it has one
    bool timed{};
};
constexpr auto heads = [] {
    std::array<Head, 256> out{};
    std::uint8_t index = 0;
    OpcodePackets::for_each([&]<class P>() {
        for (unsigned two = 0; two < out.size(); ++two)
            if (is_plain<P> && opcode_kinds[two] == index)
                out[two] = {
                    static_cast<std::uint8_t>(P::opcode.nibbles + value_nibbles(static_cast<const P*>(nullptr))),
                    requires(const P& p){p.time; }
};
++index;
});
return out;
}
();

/// Results of a survey that only STM has.
class More {
public:
    explicit More(const Config& config) : state_(config) {}

    template <class P>
    void see(const P& packet, Extent at, const OffsetMap& offsets, Survey& survey) {
        state_.see(packet);
        counts_.messages += is_message<P> ? 1 : 0;
        if constexpr (std::is_same_v<P, Async>) {
            if (!survey.first_sync) survey.first_sync = offsets.capture(at.first);
        } else if constexpr (std::is_same_v<P, MasterError> || std::is_same_v<P, GlobalError>) {
            counts_.overflow(at, offsets);
        } else if constexpr (std::is_same_v<P, VersionPacket>) {
            other_versions_ += packet.version < 3 ? 1 : 0;
        }
        if constexpr (requires { packet.time; }) see_time(survey);
    }
    /// Counts plain packets by their opcodes, up to one that needs the parser. A packet of the longest kind fits into
    /// the nibbles left, so nothing is read beyond the end. Master and channel, which a survey does not have, are not
    /// followed.
    std::size_t take(Bytes bytes, std::size_t at, const OffsetMap&, Survey& survey) {
        constexpr std::size_t longest = max_nibbles + 18;
        const std::size_t begin = at, end = 2 * bytes.size();
        while (end - at >= longest) {
            const unsigned two = nibble_at(bytes.data(), at) | nibble_at(bytes.data(), at + 1) << 4;
            const Head head = heads[two];
            if (head.nibbles == 0) break;
            if (head.timed) {
                const std::size_t size = at + head.nibbles;
                const unsigned code = nibble_at(bytes.data(), size);
                if (code == 15) break;
                FlagTimed stamped;
                stamped.time.nibbles = static_cast<std::uint8_t>(code == 13 ? 14 : code == 14 ? 16 : code);
                if (code != 0)
                    stamped.time.low = number_of(sixteen_nibbles(bytes.data(), size + 1), stamped.time.nibbles);
                state_.see(stamped);
                see_time(survey);
                at = size + 1 + stamped.time.nibbles;
            } else {
                at += head.nibbles;
            }
            ++opcodes_[two];
        }
        // A byte belongs to the packet with its low nibble.
        survey.bytes_in_packets += (at + 1) / 2 - (begin + 1) / 2;
        return at;
    }
    void gap(const Gap& gap, const OffsetMap& offsets) {
        state_.see(gap);
        counts_.see(gap, offsets);
    }
    void finish(Survey& survey) const {
        for (unsigned two = 0; two < opcodes_.size(); ++two)
            if (opcodes_[two] != 0)
                survey.packets[std::string(OpcodePackets::infos[opcode_kinds[two]].name)] += opcodes_[two];
        if (const std::uint64_t losses = counts_.troubles.overflows.times; losses != 0)
            survey.troubles.push_back(fmt::format("it lost writes {}", losses == 1 ? "once" : counted(losses, "time")));
        if (other_versions_ != 0)
            survey.troubles.push_back(
                fmt::format("{} of a version other than 3 and 4: its timestamps are not read",
                            counted(other_versions_, "VERSION packet is", "VERSION packets are")));
        if (untimed_ != 0)
            survey.troubles.push_back(fmt::format("{} without a VERSION packet that says how to read {}",
                                                  counted(untimed_, "timestamp"), untimed_ == 1 ? "it" : "them"));
    }
    [[nodiscard]] protocol::MessageCounts messages() const {
        protocol::MessageCounts out = counts_;
        std::uint8_t index = 0;
        OpcodePackets::for_each([&]<class P>() {
            for (unsigned two = 0; two < opcodes_.size(); ++two)
                if (is_message<P> && opcode_kinds[two] == index) out.messages += opcodes_[two];
            ++index;
        });
        return out;
    }

private:
    void see_time(Survey& survey) {
        if (const auto time = state_.time()) {
            survey.last_timestamp = *time;
            if (!survey.first_timestamp) survey.first_timestamp = *time;
        } else {
            ++untimed_;
        }
    }

    SourceState state_;
    protocol::MessageCounts counts_;
    std::array<std::uint64_t, 256> opcodes_{};  // packets that take() counted, by their first two nibbles
    std::uint64_t other_versions_ = 0, untimed_ = 0;
};

}  // namespace

std::unique_ptr<protocol::Surveyor> make_surveyor(const Config& config, const OffsetMap& offsets) {
    return std::make_unique<protocol::MessageSurveyorOf<Config, Parser, More>>(config, offsets);
}
std::unique_ptr<protocol::Reader> make_row_writer(const Config& config, protocol::PacketRows& rows) {
    return std::make_unique<protocol::RowsOf<Config, Parser, Explainer>>(config, rows);
}

}  // namespace waymark::stm
