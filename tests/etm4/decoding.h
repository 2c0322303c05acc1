/// Decodes streams in every way, for tests that compare the results.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "etm4/support.h"
#include "support/elements.h"
#include "support/paths.h"
#include "waymark/etm4/decoder.h"
#include "waymark/etm4/parallel_decoder.h"
#include "waymark/etm4/reference_decoder.h"

namespace waymark::etm4::test {

/// The elements of a whole stream, fed in pieces of this number of bytes; 0: in one piece.
template <class AnyDecoder>
std::vector<synthetic::Element> decode(Bytes bytes, const Config& config, const isa::CodeReader& code,
                                       std::size_t piece = 0, std::uint64_t* packets = nullptr) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    synthetic::vary_paths();
    AnyDecoder decoder(config, code, out);
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t now = piece == 0 ? bytes.size() : std::min(piece, bytes.size() - at);
        decoder.feed(bytes.subspan(at, now));
        at += now;
    }
    decoder.finish();
    if (packets != nullptr) *packets = decoder.packets();
    return sink.take();
}

inline std::vector<synthetic::Element> decode_parallel(Bytes bytes, const Config& config, const isa::CodeReader& code,
                                                       unsigned workers, std::size_t piece_bytes,
                                                       std::uint64_t* repeated = nullptr,
                                                       std::uint64_t* packets = nullptr) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    ParallelDecoder::Options options;
    options.workers = workers;
    options.piece_bytes = piece_bytes;
    synthetic::vary_paths();
    ParallelDecoder decoder(config, code, table, sink, options);
    decoder.feed(bytes);
    decoder.finish();
    if (repeated != nullptr) *repeated = decoder.repeated();
    if (packets != nullptr) *packets = decoder.packets();
    return sink.take();
}

/// How often each block went in each direction.
using Counts = std::map<std::vector<std::uint64_t>, std::uint64_t>;
inline std::vector<std::uint64_t> count_key(const flow::Block& b, bool taken) {
    return {b.start,
            b.target,
            b.bytes,
            b.instructions,
            b.section,
            static_cast<std::uint64_t>(b.isa),
            std::uint64_t{b.flags},
            static_cast<std::uint64_t>(b.end),
            taken ? 1U : 0U};
}

/// The ways to decode a stream: the fast decoder in chunks of four sizes, the reference decoder in chunks, one to three
/// threads, and counts.
inline constexpr unsigned ways = 9;

/// Decoded in one of the `ways`, the stream gives these elements too.
inline void expect_agrees(unsigned way, const std::vector<synthetic::Element>& elements, Bytes bytes,
                          const Config& config, const isa::CodeReader& code) {
    if (way == 8) {
        Counts expected, found;
        for (const synthetic::Element& e : elements)
            if (e.kind == synthetic::Kind::range) ++expected[count_key(e.block, e.taken)];
        flow::BlockTable table;
        synthetic::ElementSink events;
        flow::CountWriter out(table, events);
        synthetic::vary_paths();
        Decoder decoder(config, code, out);
        decoder.feed(bytes);
        decoder.finish();
        for (std::size_t edge = 0; edge < out.counts().size(); ++edge)
            if (out.counts()[edge] != 0) found[count_key(table.blocks()[edge / 2], edge % 2 != 0)] = out.counts()[edge];
        ASSERT_EQ(found, expected);
        ASSERT_EQ(synthetic::difference(synthetic::events_of(events.elements()), synthetic::events_of(elements),
                                        "counting", "reference"),
                  "");
        ASSERT_EQ(synthetic::ways_with<Decoder>({.eager = true}, bytes, config, code),
                  synthetic::ways_with<Decoder>({.none = true}, bytes, config, code));
        return;
    }
    constexpr std::size_t pieces[] = {0, 1, 7, 100};
    std::uint64_t packets = 0;
    const auto found = way < 4    ? decode<Decoder>(bytes, config, code, pieces[way], &packets)
                       : way == 4 ? decode<ReferenceDecoder>(bytes, config, code, 3, &packets)
                                  : decode_parallel(bytes, config, code, way - 4, 64, nullptr, &packets);
    ASSERT_EQ(synthetic::difference(found, elements, "this way", "reference"), "") << "way " << way;
    ASSERT_EQ(packets, collect(bytes, config).packets.size()) << "way " << way;
}

/// Every way gives these elements too.
inline void expect_all_agree(const std::vector<synthetic::Element>& elements, Bytes bytes, const Config& config,
                             const isa::CodeReader& code) {
    for (unsigned way = 0; way < ways; ++way)
        ASSERT_NO_FATAL_FAILURE(expect_agrees(way, elements, bytes, config, code));
}

/// WAYMARK_PROPERTY_PROGRAMS=10000 in the environment tries that many random programs of each class.
inline std::uint64_t programs(unsigned usual) {
    const char* const wanted = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return wanted != nullptr ? static_cast<std::uint64_t>(std::atoll(wanted)) : usual;
}
/// For one of many programs: if there are a thousand or more, the fast decoder and one other way, in turn.
inline void expect_agree(std::uint64_t seed, std::uint64_t programs, const std::vector<synthetic::Element>& elements,
                         Bytes bytes, const Config& config, const isa::CodeReader& code) {
    if (programs < 1000) return expect_all_agree(elements, bytes, config, code);
    ASSERT_NO_FATAL_FAILURE(expect_agrees(0, elements, bytes, config, code));
    expect_agrees(1 + static_cast<unsigned>(seed % (ways - 1)), elements, bytes, config, code);
}

}  // namespace waymark::etm4::test
