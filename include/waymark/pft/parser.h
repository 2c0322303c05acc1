/// Parses bytes to packets (docs/spec/pft.md, sections 2.10 and 2.11). An A-sync includes all zeros before its 0x80.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "waymark/core/packet_parser.h"
#include "waymark/pft/config.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

using wire::Extent;
using wire::Parsed;

/// Parses one packet of any type at the start of `bytes`, which must not be empty. Stateless.
template <class Take>
WM_INLINE Parsed parse_one(Bytes bytes, const Config& config, Take&& take) {
    return wire::Dispatch<Packets>::parse(bytes, take, config);
}

/// The rules of this protocol for wire::PacketParser.
struct ParserRules {
    using Config = pft::Config;
    using Packets = pft::Packets;
    using Sync = ASync;
    static constexpr std::uint64_t sync_zeros = 5;
    static constexpr std::size_t max_bytes = Packets::max_bytes;
    [[nodiscard]] static std::unique_ptr<wire::AnyParser<ParserRules>> any_parser(
        const Config& config, const wire::AnyHandler<Packets>& handler);

    template <class Take>
    WM_INLINE static Parsed parse_one(Bytes bytes, const Config& config, Take&& take) {
        return pft::parse_one(bytes, config, take);
    }
};

/// Parses a stream of packets, in chunks of any size; `Handler` takes every packet of `Packets`, and Gap.
template <class Handler>
using Parser = wire::SharedParser<ParserRules, Handler>;
/// The same, compiled for the handler: for decoders.
template <class Handler>
using FastParser = wire::PacketParser<ParserRules, Handler>;
using ParserProgress = wire::ParserProgress<ParserRules>;

}  // namespace waymark::pft
