// Limits of rules, written by hand from docs/spec/pft.md: registers after a reset, patterns that a packet does not
// have, programs with more blocks than a decoder initially has room for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "pft/support.h"
#include "support/elements.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/reference_decoder.h"
#include "waymark/pft/registers.h"

namespace waymark::pft {
namespace {

// Section 3: events are "never", except TraceEnable, which is "always".
TEST(RegisterFile, AfterReset) {
    struct Row {
        unsigned number, count;
        std::uint32_t value;
    };
    constexpr auto rows = std::to_array<Row>({
        {0x02, 1, 0x406f},      // ETMTRIGGER
        {0x08, 1, 0x6f},        // ETMTEEVR
        {0x09, 1, 0x01000000},  // ETMTECR1: exclude, and no range is excluded
        {0x10, 16, 0},          // ETMACVR
        {0x20, 16, 1},          // ETMACTR: execution
        {0x50, 4, 0},           // ETMCNTRLDVR
        {0x54, 4, 0x2406f},     // ETMCNTENR
        {0x58, 4, 0x406f},      // ETMCNTRLDEVR
        {0x5c, 4, 0},           // ETMCNTVR
        {0x60, 6, 0x406f},      // ETMSQEVR
        {0x68, 4, 0x406f},      // ETMEXTOUTEVR
        {0x6c, 3, 0},           // ETMCIDCVR
        {0x78, 1, 1024},        // ETMSYNCFR
        {0x7e, 1, 0x406f},      // ETMTSEVR
        {0x80, 1, 0x10},        // ETMTRACEIDR
    });
    const Registers reset;
    for (const Row& row : rows)
        for (unsigned i = 0; i < row.count; ++i) EXPECT_EQ(reset.get(row.number + i), row.value) << row.number + i;
}

TEST(RegisterFile, HoldsWhatWasWritten) {
    Registers r;
    for (unsigned i = 0; i < 16; ++i) {
        const std::uint32_t value = 0x81234567U + 0x01010101U * i;
        EXPECT_TRUE(r.set(0x10 + i, value));
        EXPECT_EQ(r.get(0x10 + i), value);
        EXPECT_EQ(r.acvr[i].value, value);
    }
    EXPECT_TRUE(r.set(0x78, 0x321));
    EXPECT_EQ(r.syncfr.value, 0x321U);
    const Registers before = r;
    for (const unsigned nothing : {0x30U, 0x56aU, 0x1000U}) {
        EXPECT_FALSE(r.set(nothing, 1)) << nothing;
        EXPECT_EQ(r.get(nothing), std::nullopt);
    }
    EXPECT_EQ(r, before);
}

// Section 2.7: the fifth address byte of a waypoint update has the patterns of ARM and Thumb, not Jazelle's.
TEST(WaypointUpdates, AreNotInJazelleState) {
    const auto second = [](std::string_view text) {
        const auto got = test::collect(test::with_async(test::hex(text)), {});
        return got.items.at(1).text.substr(0, 15);
    };
    EXPECT_EQ(second("72 81 80 80 80 08"), "WAYPOINT-UPDATE");
    EXPECT_EQ(second("72 81 80 80 80 10"), "WAYPOINT-UPDATE");
    EXPECT_EQ(second("72 81 80 80 80 20").substr(0, 3), "GAP");
}

// Section 2.7: a waypoint update in words, depending on the place before it.
TEST(WaypointUpdates, InWords) {
    const auto got = test::collect(test::with_async(test::hex("08 00 10 00 00 21  72 03  72 05")), {});
    ASSERT_EQ(got.packets.size(), 4U);
    Explainer explain({});
    (void)explain(got.packets[1]);
    EXPECT_EQ(explain(got.packets[2]), "executed up to 0x00001004 A32");
    EXPECT_EQ(explain(got.packets[3]), "executed up to 0x00001008 A32");
}

// Before an I-sync only those bits of an address are known that a packet carries (2.5).
TEST(Branches, InWordsBeforeAnISync) {
    Explainer explain({});
    const auto to = [&](std::uint32_t bits, std::uint8_t bytes) {
        return explain(Packet(BranchAddress{.target = {.bits = bits, .bytes = bytes}}));
    };
    EXPECT_EQ(to(0x17, 1), "to 0x??????5c");
    EXPECT_EQ(to(0x155, 2), "to 0x?????554");
    EXPECT_EQ(to(0x155, 3), "to 0x???00554");
    EXPECT_EQ(to(0x155, 4), "to 0x?0000554");
    EXPECT_EQ(to(0x2401, 5), "to 0x00009004 A32");
    EXPECT_EQ(to(2, 1), "to 0x??????08");  // a whole address is not a synchronisation point
}

/// 0x1000: BX R0, and nothing else.
class OneReturn final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        return address.value == 0x1000 ? isa::Code{bytes_, 0} : isa::Code{};
    }

private:
    std::vector<std::uint8_t> bytes_ = test::hex("10 ff 2f e1");
};

// A decoder that begins at a known place gets the base of address compression separately.
TEST(Standings, AddressesAreCompressedAgainstTheLast) {
    const OneReturn code;
    for (const std::uint64_t last : {0x1000U, 0x4000U, 0x12345678U}) {
        flow::BlockTable table;
        synthetic::ElementSink sink;
        flow::BatchWriter out(table, sink);
        ReferenceDecoder decoder({}, code, out);
        decoder.begin_at({0}, Standing{{{0x1000}, Isa::a32}, {{last}, Isa::a32}});
        decoder.feed(test::hex("03 84"));  // to A[7:2] = 1 of the same 256 bytes, and an atom there
        decoder.finish();
        const auto found = sink.take();
        const auto lost = std::find_if(found.begin(), found.end(), [](const synthetic::Element& e) {
            return e.kind == synthetic::Kind::no_memory;
        });
        ASSERT_NE(lost, found.end());
        EXPECT_EQ(lost->a, (last & ~std::uint64_t{0xff}) + 4);
    }
}

/// 3,000 branches, each to the instruction after it, from 0x1000 on: in ARM state, then the same in Thumb state.
class Branches final : public isa::CodeReader {
public:
    static constexpr std::size_t count = 3000;
    explicit Branches(bool thumb) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto branch = test::hex(thumb ? "ff e7" : "ff ff ff ea");
            bytes_.insert(bytes_.end(), branch.begin(), branch.end());
        }
    }
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < 0x1000 || address.value >= 0x1000 + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - 0x1000), 0};
    }

private:
    std::vector<std::uint8_t> bytes_;
};

template <class D>
std::vector<synthetic::Element> decode_branches(bool thumb) {
    const Branches code(thumb);
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    D decoder({}, code, out);
    // The same path twice, so that known blocks recur.
    for (unsigned twice = 0; twice < 2; ++twice) {
        decoder.feed(test::with_async(test::hex(thumb ? "08 01 10 00 00 21" : "08 00 10 00 00 21")));
        const std::vector<std::uint8_t> atoms(Branches::count / 5, 0xc0);  // five E each
        decoder.feed(atoms);
    }
    decoder.finish();
    return sink.take();
}

/// Counts ranges; joining adds the counts of forks.
class RangeCount final : public flow::Sink {
public:
    explicit RangeCount(flow::Split split) : split_(split) {}
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch, [&](const flow::Block&, const flow::Range&) { ++ranges; }, [](const flow::Event&) {});
    }
    [[nodiscard]] flow::Split split() const override { return split_; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override { return std::make_unique<RangeCount>(split_); }
    void join(flow::Sink& fork) override { ranges += dynamic_cast<RangeCount&>(fork).ranges; }
    std::uint64_t ranges = 0;

private:
    flow::Split split_;
};

// A sink gets all ranges, however the stream is split.
TEST(Blocks, InForksOfASink) {
    const Branches code(false);
    std::vector<std::uint8_t> stream;
    constexpr std::uint64_t times = 100;
    for (std::uint64_t i = 0; i < times; ++i) {
        const auto begin = test::with_async(test::hex("08 00 10 00 00 01"));
        stream.insert(stream.end(), begin.begin(), begin.end());
        stream.insert(stream.end(), Branches::count / 5, 0xc0);
    }
    for (const flow::Split split :
         {flow::Split::none, flow::Split::per_chunk, flow::Split::when_behind, flow::Split::per_worker}) {
        flow::BlockTable table;
        RangeCount sink(split);
        ParallelDecoder decoder({}, code, table, sink, {.workers = 4, .piece_bytes = 1024});
        decoder.feed(stream);
        decoder.finish();
        EXPECT_EQ(sink.ranges, times * Branches::count) << static_cast<unsigned>(split);
    }
}

/// Counts ranges by Context ID.
class ContextCount final : public flow::Sink {
public:
    explicit ContextCount(flow::Split split) : split_(split) {}
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch, [&](const flow::Block&, const flow::Range&) { ++ranges[now_]; },
            [&](const flow::Event& event) {
                if (const auto* context = std::get_if<flow::Context>(&event.what)) now_ = context->context_id;
            });
    }
    [[nodiscard]] flow::Split split() const override { return split_; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override { return std::make_unique<ContextCount>(split_); }
    void begin_at(const flow::Context& context) override { now_ = began_ = context.context_id; }
    void join(flow::Sink& fork) override {
        auto& other = dynamic_cast<ContextCount&>(fork);
        EXPECT_EQ(other.began_, now_);
        for (const auto& [context, count] : other.ranges) ranges[context] += count;
        now_ = other.now_;
    }
    std::map<std::optional<std::uint32_t>, std::uint64_t> ranges;

private:
    flow::Split split_;
    std::optional<std::uint32_t> now_, began_;
};

// A fork begins in the context that applies there, even if its piece begins between synchronisation points.
TEST(Blocks, InForksThatBeginInAContext) {
    const Branches code(false);
    const Config config{.context_id_bytes = 1};
    constexpr std::size_t piece = 64;
    std::map<std::optional<std::uint32_t>, std::uint64_t> expected;
    std::vector<std::uint8_t> stream;
    for (std::uint8_t i = 0; i < 200; ++i) {
        auto begin = test::with_async(test::hex("08 00 10 00 00 01"));
        begin.push_back(i);  // the Context ID
        stream.insert(stream.end(), begin.begin(), begin.end());
        const std::size_t packets = i % 20 == 7 ? Branches::count / 5 : 40U + i;
        stream.insert(stream.end(), packets, 0xc0);
        expected[i] = packets * 5;
    }
    for (const flow::Split split : {flow::Split::none, flow::Split::per_chunk, flow::Split::when_behind}) {
        flow::BlockTable table;
        ContextCount sink(split);
        ParallelDecoder decoder(config, code, table, sink, {.workers = 4, .piece_bytes = piece});
        decoder.feed(stream);
        decoder.finish();
        EXPECT_EQ(sink.ranges, expected) << static_cast<unsigned>(split);
    }
}

/// The first call waits until a fork helps.
class SlowCount final : public flow::Sink {
public:
    SlowCount() : forks_(std::make_shared<std::atomic<unsigned>>()) {}
    void consume(const flow::Batch& batch) override {
        // The other worker forks it as soon as it runs; if that never happens, CTest ends the test.
        while (!fork_ && !waited_ && *forks_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        waited_ = true;
        ranges += batch.ranges.size();
    }
    [[nodiscard]] flow::Split split() const override { return flow::Split::when_behind; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override {
        ++*forks_;
        auto fork = std::make_unique<SlowCount>();
        fork->fork_ = true;
        return fork;
    }
    void join(flow::Sink& fork) override { joined += dynamic_cast<SlowCount&>(fork).ranges; }
    std::uint64_t ranges = 0, joined = 0;

private:
    std::shared_ptr<std::atomic<unsigned>> forks_;
    bool fork_ = false, waited_ = false;
};

TEST(Blocks, InForksOfASinkThatIsBehind) {
    const Branches code(false);
    std::vector<std::uint8_t> stream;
    for (std::uint64_t i = 0; i < 200; ++i) {
        const auto begin = test::with_async(test::hex("08 00 10 00 00 01"));
        stream.insert(stream.end(), begin.begin(), begin.end());
        stream.insert(stream.end(), 40, 0xc0);
    }
    flow::BlockTable table;
    SlowCount sink;
    ParallelDecoder decoder({}, code, table, sink, {.workers = 2, .piece_bytes = 64});
    decoder.feed(stream);
    decoder.finish();
    EXPECT_GT(sink.ranges, 0U);
    EXPECT_GT(sink.joined, 0U);
    EXPECT_EQ(sink.ranges + sink.joined, 200U * 200U);
}

// A cut packet includes the zeros of an A-sync. The search for a place to cut finds the A-sync all the same, and an
// I-sync after it; the piece that begins there is decoded again once it is known that the trace does not go on so.
TEST(Blocks, WhereAPieceDoesNotBeginAsItSeems) {
    const Branches code(false);
    const Config config{.context_id_bytes = 4};
    std::map<std::optional<std::uint32_t>, std::uint64_t> expected;
    std::vector<std::uint8_t> stream;
    std::uint64_t executed = 0;
    for (std::uint8_t i = 0; i < 200; ++i) {
        const bool lost = i % 5 == 3;
        if (lost) stream.push_back(0x6e);  // a Context ID of four bytes, which are now 0
        auto begin = test::with_async(test::hex("08 00 10 00 00 01"));
        begin.insert(begin.end(), {i, 0, 0, 0});
        stream.insert(stream.end(), begin.begin(), begin.end());
        stream.insert(stream.end(), 30, 0xc0);
        if (!lost) executed += expected[i] = 150;
    }
    const ParallelDecoder::Options options{.workers = 4, .piece_bytes = 30};
    for (const flow::Split split :
         {flow::Split::none, flow::Split::per_chunk, flow::Split::when_behind, flow::Split::per_worker}) {
        flow::BlockTable table;
        ContextCount contexts(split);
        RangeCount ranges(split);
        const bool per_worker = split == flow::Split::per_worker;
        ParallelDecoder decoder(config, code, table, per_worker ? static_cast<flow::Sink&>(ranges) : contexts, options);
        decoder.feed(stream);
        decoder.finish();
        EXPECT_GT(decoder.repeated(), 0U);
        if (per_worker)
            EXPECT_EQ(ranges.ranges, executed);
        else
            EXPECT_EQ(contexts.ranges, expected);
    }
    flow::BlockTable table;
    synthetic::ElementSink sink;
    ParallelDecoder::Options counted = options;
    counted.ranges = ParallelDecoder::Ranges::counted;
    ParallelDecoder decoder(config, code, table, sink, counted);
    decoder.feed(stream);
    decoder.finish();
    EXPECT_GT(decoder.repeated(), 0U);
    // Each time the first 150 branches, all taken.
    const std::vector<std::uint64_t> counts = decoder.counts();
    for (std::size_t edge = 0; edge < counts.size(); ++edge) {
        const bool ran = edge < 2 * table.blocks().size() && edge % 2 == 1 && table.blocks()[edge / 2].start < 0x1258;
        EXPECT_EQ(counts[edge], ran ? expected.size() : 0U) << edge;
    }
}

TEST(Blocks, ThousandsOfThem) {
    for (const bool thumb : {false, true}) {
        const auto found = decode_branches<Decoder>(thumb);
        EXPECT_EQ(found, decode_branches<ReferenceDecoder>(thumb));
        std::uint64_t ranges = 0;
        for (const synthetic::Element& e : found)
            if (e.kind == synthetic::Kind::range) {
                EXPECT_EQ(e.block.start, 0x1000 + ranges % Branches::count * (thumb ? 2 : 4));
                EXPECT_EQ(e.block.instructions, 1U);
                ++ranges;
            }
        EXPECT_EQ(ranges, 2 * Branches::count);
    }
}

// Counts have room for every edge.
TEST(Blocks, ThousandsOfThemCounted) {
    const Branches code(false);
    flow::BlockTable table;
    synthetic::ElementSink sink;
    ParallelDecoder decoder({}, code, table, sink, {.workers = 1, .ranges = ParallelDecoder::Ranges::counted});
    for (unsigned twice = 0; twice < 2; ++twice) {
        decoder.feed(test::with_async(test::hex("08 00 10 00 00 21")));
        decoder.feed(std::vector<std::uint8_t>(Branches::count / 5, 0xc0));
    }
    decoder.finish();
    const std::vector<std::uint64_t> counts = decoder.counts();
    ASSERT_GE(counts.size(), 2 * Branches::count);
    for (std::size_t edge = 0; edge < counts.size(); ++edge)
        EXPECT_EQ(counts[edge], edge < 2 * Branches::count && edge % 2 == 1 ? 2U : 0U) << edge;
}

}  // namespace
}  // namespace waymark::pft
