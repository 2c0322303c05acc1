/// Parses bytes to packets (docs/spec/etm4.md, sections 2 and 3). An invalid byte or packet begins a gap, which ends at
/// the next A-sync: nothing in between can be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "waymark/core/packet_parser.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/packet.h"

namespace waymark::etm4 {

using wire::Extent;
using wire::Parsed;

template <class List>
struct HeaderDispatch;
template <class... P>
struct HeaderDispatch<wire::PacketList<P...>> {
    /// Dispatches by index in the list, which is compiled to a jump table.
    template <class Take>
    WM_INLINE static Parsed parse(unsigned index, Bytes bytes, const Config& config, Take&& take) {
        return parse_at(index, bytes, config, take, std::index_sequence_for<P...>());
    }

private:
    template <class One, class Take>
    WM_INLINE static void parse_allowed(Bytes bytes, const Config& config, Take&& take, Parsed& result) {
        if (is_allowed<One>(config)) result = wire::parse_as<One>(bytes, take, config);
    }
    template <class Take, std::size_t... I>
    WM_INLINE static Parsed parse_at(unsigned index, Bytes bytes, const Config& config, Take&& take,
                                     std::index_sequence<I...>) {
        Parsed result{Step::bad, 0, true};
        (void)((index == I && (parse_allowed<P>(bytes, config, take, result), true)) || ...);
        return result;
    }
};

/// Parses one packet at the start of `bytes`, which must not be empty and whose first byte must not be 0. Stateless.
template <class Take>
WM_INLINE Parsed parse_one(Bytes bytes, const Config& config, Take&& take) {
    const std::uint8_t header = bytes[0];
    if (is_header<Atom>(header)) [[likely]]
        return wire::parse_as<Atom>(bytes, take, config);
    return HeaderDispatch<HeaderPackets>::parse(header_table[header], bytes, config, take);
}

/// The interface that wire::PacketParser requires from a protocol.
struct ParserRules {
    using Config = etm4::Config;
    using Packets = etm4::Packets;
    using Sync = ASync;
    using AfterZero = ExtensionPackets;
    static constexpr std::uint64_t sync_zeros = 11;
    static constexpr std::size_t max_bytes = Packets::max_bytes;
    [[nodiscard]] static std::unique_ptr<wire::AnyParser<ParserRules>> any_parser(
        const Config& config, const wire::AnyHandler<Packets>& handler);

    template <class Take>
    WM_INLINE static Parsed parse_one(Bytes bytes, const Config& config, Take&& take) {
        return etm4::parse_one(bytes, config, take);
    }
    template <class Take>
    static Parsed parse_after_zero(std::uint8_t second, const Config& config, Take&& take) {
        Parsed result{Step::bad, 0, false};
        const std::uint8_t bytes[] = {0, second};
        AfterZero::for_each([&]<class P>() {
            if constexpr (!std::is_same_v<P, ASync>)
                if (is_header<P>(second) && is_allowed<P>(config)) result = wire::parse_as<P>(bytes, take, config);
        });
        return result;
    }
};

/// Parses a stream of packets, in chunks of any size; `Handler` takes every packet of `Packets`, and Gap.
template <class Handler>
using Parser = wire::SharedParser<ParserRules, Handler>;
/// The same, compiled for the handler: for decoders.
template <class Handler>
using FastParser = wire::PacketParser<ParserRules, Handler>;
using ParserProgress = wire::ParserProgress<ParserRules>;

}  // namespace waymark::etm4
