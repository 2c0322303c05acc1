#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/exceptions.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"

namespace waymark::flow {
namespace {

Block block(std::uint64_t start, std::uint32_t bytes = 8) {
    return {.start = start, .bytes = bytes, .instructions = bytes / 4, .end = End::direct, .last_bytes = 4};
}

TEST(BlockTable, SameBlockSameId) {
    BlockTable table;
    EXPECT_EQ(table.intern(block(0x8000)), 0U);
    EXPECT_EQ(table.intern(block(0x9000)), 1U);
    EXPECT_EQ(table.intern(block(0x8000)), 0U);
    EXPECT_EQ(table.intern(block(0x8000, 12)), 2U);
    Block other = block(0x8000);
    other.section = 1;
    EXPECT_EQ(table.intern(other), 3U);
    EXPECT_EQ(table.blocks().size(), 4U);
}

TEST(BlockTable, SpansStayValidWhileItGrows) {
    BlockTable table;
    (void)table.intern(block(0));
    const auto before = table.blocks();
    for (std::uint32_t i = 1; i < 10000; ++i) EXPECT_EQ(table.intern(block(i * 16)), i);
    EXPECT_EQ(before.size(), 1U);
    EXPECT_EQ(before[0], block(0));
    for (std::uint32_t i = 0; i < 10000; ++i) EXPECT_EQ(table.blocks()[i], block(i * 16));
}

TEST(BlockTable, ThreadsGetOneIdForOneBlock) {
    constexpr std::uint32_t blocks = 5000;
    constexpr unsigned threads = 4;
    BlockTable table;
    std::array<std::vector<std::uint32_t>, threads> ids;
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            ids[t].resize(blocks);
            // Each table meets the blocks in another order, and twice.
            for (std::uint32_t i = 0; i < 2 * blocks; ++i) {
                const std::uint32_t which = (i * 7 + t * 1234) % blocks;
                ids[t][which] = table.intern(block(which * 16));
                EXPECT_EQ(table.blocks()[ids[t][which]], block(which * 16));
            }
        });
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(table.blocks().size(), blocks);
    for (unsigned t = 0; t < threads; ++t) EXPECT_EQ(ids[t], ids[0]);
    for (std::uint32_t i = 0; i < blocks; ++i) EXPECT_EQ(table.blocks()[ids[0][i]], block(i * 16));
}

class Recorder final : public Sink {
public:
    void consume(const Batch& batch) override {
        ++batches;
        in_order(
            batch,
            [&](const Block& b, const Range& r) {
                text.push_back("r" + std::to_string(b.start) + "@" + std::to_string((batch.base + r.offset).value));
            },
            [&](const Event& e) { text.push_back("e@" + std::to_string(e.offset.value)); });
    }
    unsigned batches = 0;
    std::vector<std::string> text;
};

TEST(BatchWriter, KeepsTheOrder) {
    Recorder sink;
    BlockTable table;
    BatchWriter out(table, sink);
    const std::uint32_t id = table.intern(block(16));
    out.event({1}, Trigger{});
    out.range(id * 2, {2});
    out.range(id * 2, {3});
    out.event({4}, Trigger{});
    out.event({5}, Trigger{});
    out.range(id * 2, {6});
    out.flush();
    out.flush();
    EXPECT_EQ(sink.text, (std::vector<std::string>{"e@1", "r16@2", "r16@3", "e@4", "e@5", "r16@6"}));
    EXPECT_EQ(sink.batches, 1U);
}

TEST(BatchWriter, ManyElementsAndFarOffsets) {
    Recorder sink;
    BlockTable table;
    BatchWriter out(table, sink);
    const std::uint32_t id = table.intern(block(0));
    std::vector<std::string> expected;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        const Offset at{i * 0x1000'0000};  // beyond 2^32 after sixteen
        if (i % 3 == 0) {
            out.event(at, Trigger{});
            expected.push_back("e@" + std::to_string(at.value));
        } else {
            out.range(id * 2 + 1, at);
            expected.push_back("r0@" + std::to_string(at.value));
        }
    }
    out.flush();
    EXPECT_EQ(sink.text, expected);
}

/// Keeps ranges where they are written.
class Keeper final : public Sink {
public:
    explicit Keeper(std::size_t room_ranges) : room_ranges_(room_ranges) {}
    void consume(const Batch& batch) override {
        if (!batch.ranges.empty()) batches.push_back(batch);
        for (const Range& r : batch.ranges) at_once.push_back(batch.base.value + r.offset);
    }
    std::span<Range> room(std::size_t least) override {
        return rooms.emplace_back(room_ranges_ == 0 ? least : room_ranges_);
    }
    std::vector<Batch> batches;
    std::vector<std::uint64_t> at_once;
    std::deque<std::vector<Range>> rooms;

private:
    std::size_t room_ranges_;
};

TEST(BatchWriter, WritesWhereTheSinkKeepsRanges) {
    for (const std::size_t room : {std::size_t{0}, std::size_t{1500}, std::size_t{100'000}}) {
        Keeper sink(room);
        BlockTable table;
        BatchWriter out(table, sink);
        const std::uint32_t id = table.intern(block(0));
        std::vector<std::uint64_t> expected;
        for (std::uint64_t i = 0; i < 5000; ++i) {
            // The last offsets are far from the others, and from each other.
            const Offset at{i < 4000 ? i * 8 : i * 0x1000'0000};
            out.range(id * 2, at);
            expected.push_back(at.value);
            if (i % 77 == 0) out.flush();
        }
        out.flush();
        EXPECT_EQ(sink.at_once, expected);
        std::vector<std::uint64_t> later;
        std::size_t places = 0;
        for (std::size_t i = 0; i < sink.batches.size(); ++i) {
            const Batch& b = sink.batches[i];
            for (const Range& r : b.ranges) later.push_back(b.base.value + r.offset);
            EXPECT_TRUE(later.back() >= 4000 * 8 || b.base == Offset{});
            places +=
                i == 0 || sink.batches[i - 1].ranges.data() + sink.batches[i - 1].ranges.size() != b.ranges.data();
        }
        EXPECT_EQ(later, expected);
        EXPECT_LE(places, room == 100'000 ? 1U : sink.rooms.size());
    }
}

TEST(BatchWriter, ARoomThatIsTooSmallIsNotUsed) {
    Keeper sink(100);
    BlockTable table;
    BatchWriter out(table, sink);
    for (std::uint64_t i = 0; i < 200; ++i) out.range(0, {i});
    out.flush();
    EXPECT_EQ(sink.at_once.size(), 200U);
    ASSERT_EQ(sink.batches.size(), 1U);
    EXPECT_NE(sink.batches[0].ranges.data(), sink.rooms[0].data());
}

TEST(Exceptions, EachClassHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (unsigned kind = 0; kind < exception_classes; ++kind)
        EXPECT_TRUE(names.insert(name(static_cast<ExceptionClass>(kind))).second) << kind;
    EXPECT_FALSE(names.contains(""));
    EXPECT_EQ(name(ExceptionClass::irq), "IRQ");
    EXPECT_EQ(name(ExceptionClass::transaction_failure), "transaction failure");
    EXPECT_FALSE(unknown_exception.known());
    EXPECT_EQ(Exception{}.type, &unknown_exception);
}

TEST(Contexts, SecurityIsSelectedByTwoBits) {  // docs/spec/etm4.md, section 6
    const auto security = [](bool nse, bool ns) {
        Context context;
        context.nse = nse;
        context.ns = ns;
        return context.security();
    };
    EXPECT_EQ(security(false, false), Security::secure);
    EXPECT_EQ(security(false, true), Security::non_secure);
    EXPECT_EQ(security(true, false), Security::root);
    EXPECT_EQ(security(true, true), Security::realm);
    EXPECT_EQ(name(Security::root), "Root");
    EXPECT_EQ(name(Security::realm), "Realm");
    EXPECT_EQ(name(Security::secure), "S");
    EXPECT_EQ(name(Security::non_secure), "NS");
}

TEST(Contexts, RealmAndNonSecureCodeAreOfTwoSpaces) {
    const Context normal{.ns = true, .hyp = false, .context_id = 3, .vmid = 4};
    Context realm = normal;
    realm.nse = true;
    EXPECT_NE(normal.space(), realm.space());
    EXPECT_EQ(normal.space(), (isa::Space{.ns = true, .hyp = false, .context_id = 3, .vmid = 4, .nse = false}));
    // Fields that do not select memory make no new space.
    Context user = normal;
    user.el = 0;
    EXPECT_NE(user, normal);
    EXPECT_EQ(user.space(), normal.space());
}

TEST(Summary, CountsAndHashes) {
    Summary summary;
    BlockTable table;
    BatchWriter out(table, summary);
    const std::uint32_t id = table.intern(block(0x8000));
    out.range(id * 2 + 1, {0}, 5);
    out.range(id * 2, {1});
    out.event({2}, Gap{{2}, {9}, GapReason::malformed_packet});
    out.event({9}, TraceOn{TraceOnReason::overflow, 7});
    out.event({9}, Timestamp{.value = 3, .known = false});
    out.event({9}, Timestamp{.value = 4});
    out.event({9}, Exception{&synthetic::exception_type(14), {}, {}, 1});
    out.event({9}, NoMemory{});
    out.event({9}, Inconsistency{Conflict::runaway_walk, {}, {}});
    out.event({9}, Cycles{.cycles = 100});
    out.flush();
    const Totals& t = summary.totals();
    EXPECT_EQ(t.ranges, 2U);
    EXPECT_EQ(t.instructions, 4U);
    EXPECT_EQ(t.cycles, 113U);
    EXPECT_EQ(t.gaps[static_cast<unsigned>(GapReason::malformed_packet)].bytes, 7U);
    EXPECT_EQ(t.gap_bytes(), 7U);
    EXPECT_EQ(t.first_timestamp, 4U);
    EXPECT_EQ(t.exceptions, 1U);
    EXPECT_EQ(t.no_memory, 1U);
    EXPECT_TRUE(t.has_gaps());
    std::uint64_t h = 1469598103934665603U;
    for (unsigned i = 0; i < 2; ++i)
        for (const std::uint64_t address : {0x8000U, 0x8008U}) h = (h ^ address) * 1099511628211U;
    EXPECT_EQ(t.hash, h);
}

// Each cycle once, also with the largest count; an unknown count adds nothing.
TEST(Summary, AddsEachCountOnce) {
    Summary summary;
    BlockTable table;
    BatchWriter out(table, summary);
    out.range(table.intern(block(0x8000)) * 2, {0}, 5);
    out.event({1}, Cycles{.cycles = 5, .of = Cycles::Of::ranges});
    out.event({2}, Cycles{.cycles = 0xffffffff});
    out.event({3}, Cycles{.of = Cycles::Of::flow});
    out.event({4}, Timestamp{.value = 1, .cycles = 3, .counted_again = true});
    out.event({5}, Timestamp{.value = 1, .cycles = 4});
    out.flush();
    EXPECT_EQ(summary.totals().cycles, 0xffffffffU + std::uint64_t{9});
    EXPECT_EQ(summary.totals().unknown_cycle_counts, 1U);
    EXPECT_FALSE(summary.totals().has_gaps());
}

TEST(Summary, WhatRanUnseenIsALoss) {
    for (const What& what :
         {What{Untraced{{}, {}, 40}}, What{Atoms{1, 0}}, What{Mark{Mark::Kind::uncommitted, 2, 0}}}) {
        Summary summary;
        BlockTable table;
        BatchWriter out(table, summary);
        out.event({1}, what);
        out.flush();
        EXPECT_TRUE(summary.totals().hides_code());
        EXPECT_TRUE(summary.totals().has_gaps());
        EXPECT_EQ(summary.totals().unseen_instructions, std::holds_alternative<Untraced>(what) ? 40U : 0U);
    }
}

TEST(Summary, PaddingIsNoGap) {
    Totals t;
    t.gaps[static_cast<unsigned>(GapReason::padding)] = {1, 3};
    EXPECT_FALSE(t.has_gaps());
    t.gaps[static_cast<unsigned>(GapReason::unsynchronised)] = {1, 3};
    EXPECT_TRUE(t.has_gaps());
}

}  // namespace
}  // namespace waymark::flow
