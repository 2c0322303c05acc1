// The model of the macrocell against real hardware: what two boards sent, sent again. docs/spec/pft.md, 5 and 7.6.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <variant>

#include "support/corpus.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/byte_sink.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/model.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/reference_decoder.h"
#include "waymark/pft/text.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {
namespace {

using Buffer = std::vector<std::uint8_t>;

/// The bytes of one source.
class Keeper final : public Consumer {
public:
    void feed(Bytes bytes) override { kept.insert(kept.end(), bytes.begin(), bytes.end()); }
    void reset() override {}
    void finish() override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {Offset{kept.size()}, Offset{kept.size()}}; }
    Buffer kept;
};

struct Board {
    Session session;
    std::map<std::string, Buffer> streams;  ///< of its macrocells
};

Board read_board(const std::string& name) {
    auto capture = capture::read_snapshot(waymark::support::corpus_path("ptm/" + name + "/snapshot.ini"));
    EXPECT_TRUE(capture.has_value());
    auto session = make_session(std::move(*capture), {});
    EXPECT_TRUE(session.has_value());
    Board board{std::move(*session), {}};
    std::vector<const Source*> selected;
    for (const Source& s : board.session.sources)
        if (s.protocol == Protocol::pft) selected.push_back(&s);
    const Report report = run(board.session, selected, [](const StreamInfo&) { return std::make_unique<Keeper>(); });
    for (const StreamReport& s : report.streams)
        if (s.consumer) board.streams[s.source->name] = static_cast<const Keeper&>(*s.consumer).kept;
    return board;
}

/// Packets with their places, from the first A-sync on.
struct Packets {
    std::vector<pft::Packet> packets;
    std::vector<pft::Extent> at;
    std::uint64_t gap_bytes = 0, gaps = 0;

    template <class P>
    void operator()(const P& packet, pft::Extent extent) {
        packets.emplace_back(packet);
        at.push_back(extent);
    }
    void operator()(const Gap& gap) {
        gap_bytes += gap.bytes();
        ++gaps;
    }
};

Packets parse(const pft::Config& config, Bytes bytes) {
    Packets out;
    pft::Parser<Packets> parser(config, out);
    parser.feed(bytes);
    parser.finish();
    return out;
}

class RealTrace : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Boards, RealTrace, ::testing::Values("tc2", "snowball"),
                         [](const auto& test) { return std::string(test.param); });

/// Hardware sends the canonical form of every packet (5.7, 3).
TEST_P(RealTrace, PacketsEncodeToTheBytesThatWereSent) {
    WM_NEEDS_CORPUS(std::string("ptm/") + GetParam());
    const Board board = read_board(GetParam());
    std::size_t packets = 0;
    for (const auto& [name, bytes] : board.streams) {
        if (bytes.empty()) continue;
        const auto source = std::find_if(board.session.sources.begin(), board.session.sources.end(),
                                         [&, &n = name](const Source& s) { return s.name == n; });
        const Packets parsed = parse(source->config, bytes);
        packets += parsed.packets.size();
        for (std::size_t i = 0; i < parsed.packets.size(); ++i) {
            Buffer again;
            pft::encode(again, parsed.packets[i], source->config);
            const Bytes sent = Bytes(bytes).subspan(parsed.at[i].first.value, parsed.at[i].bytes);
            ASSERT_TRUE(std::equal(again.begin(), again.end(), sent.begin(), sent.end()))
                << name << " at " << parsed.at[i].first.value << ": "
                << std::visit([&](const auto& p) { return pft::to_text(p, source->config); }, parsed.packets[i]);
        }
        EXPECT_LE(parsed.gaps, 2U) << name;  // before the first A-sync, and a packet cut by the end
    }
    EXPECT_GT(packets, 100U);
    std::printf("%zu packets\n", packets);
}

}  // namespace
}  // namespace waymark::pipeline
