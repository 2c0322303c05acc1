/// What one PTM's bytes hold, without a program image: packets by name, gaps by reason, and where they begin.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>

#include "waymark/pft/parser.h"
#include "waymark/pft/state.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

class PacketCounter final : public Consumer {
public:
    explicit PacketCounter(const StreamInfo& stream)
        : offsets_(stream.offsets), config_(stream.source.config), parser_(config_, *this) {}

    void feed(Bytes bytes) override { parser_.feed(bytes); }
    void reset() override { parser_.reset(); }
    void finish() override { parser_.finish(); }
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {parser_.pending(), parser_.pending()}; }
    [[nodiscard]] bool amid_packet() override { return parser_.progress().amid_packet(); }

    template <class P>
    void operator()(const P& packet, pft::Extent at) {
        ++packets[std::string(P::info.name)];
        bytes_in_packets += at.bytes;
        if constexpr (std::is_same_v<P, pft::ASync>) {
            if (!first_sync) first_sync = offsets_.capture(at.first);
        } else if constexpr (std::is_same_v<P, pft::ISync>) {
            ++isyncs[static_cast<unsigned>(packet.reason)];
            if (packet.context_id != 0) ++with_context;
        } else if constexpr (std::is_same_v<P, pft::Timestamp>) {
            timestamps_.update(packet.value, config_);
            if (timestamps_.known()) {
                last_timestamp = timestamps_.value(config_);
                if (!first_timestamp) first_timestamp = last_timestamp;
            }
        }
    }
    void operator()(const Gap& gap) {
        timestamps_.forget();
        auto& [times, bytes, first] = gaps[static_cast<unsigned>(gap.reason)];
        if (times++ == 0) first = offsets_.capture(gap.first);
        bytes += gap.bytes();
    }

    struct Gaps {
        std::uint64_t times{}, bytes{};
        Offset first{};
    };
    std::map<std::string, std::uint64_t> packets;
    std::uint64_t bytes_in_packets = 0, with_context = 0;
    std::array<std::uint64_t, 4> isyncs{};
    std::array<Gaps, gap_reasons> gaps{};
    std::optional<Offset> first_sync;
    std::optional<std::uint64_t> first_timestamp, last_timestamp;

private:
    const OffsetMap& offsets_;
    const pft::Config config_;
    pft::Parser<PacketCounter> parser_;
    pft::TimestampState timestamps_;
};

}  // namespace waymark::pipeline
