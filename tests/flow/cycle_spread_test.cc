#include "waymark/flow/cycle_spread.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/random.h"
#include "waymark/flow/blocks.h"

namespace waymark::flow {
namespace {

using Of = Cycles::Of;

/// Ranges and events in order: `3` instructions with `=5` cycles; events in words. Forks may be joined.
class Log final : public Sink {
public:
    std::string text;
    Context begun{};
    std::uint64_t in_ranges = 0, apart = 0, again = 0;

    void consume(const Batch& batch) override {
        in_order(
            batch,
            [&](const Block& block, const Range& range) {
                text += std::to_string(block.instructions);
                if (range.cycles != no_cycles) {
                    text += "=" + std::to_string(range.cycles);
                    in_ranges += range.cycles;
                }
                text += "@" + std::to_string((batch.base + range.offset).value) + " ";
            },
            [&](const Event& event) {
                if (const auto* cycles = std::get_if<Cycles>(&event.what)) {
                    constexpr const char* names[] = {"apart", "flow", "again"};
                    text += std::string(names[static_cast<unsigned>(cycles->of)]) + ":" +
                            (cycles->cycles ? std::to_string(*cycles->cycles) : "?");
                    if (cycles->of == Of::ranges) again += *cycles->cycles;
                    if (cycles->of == Of::unknown) apart += cycles->cycles.value_or(0);
                } else {
                    text += "e" + std::to_string(event.what.index());
                }
                text += "@" + std::to_string(event.offset.value) + " ";
            });
    }
    [[nodiscard]] Split split() const override { return Split::per_chunk; }
    [[nodiscard]] std::unique_ptr<Sink> fork() const override { return std::make_unique<Log>(); }
    void begin_at(const Context& context) override { begun = context; }
    void join(Sink& sink) override {
        const Log& fork = static_cast<Log&>(sink);
        text += fork.text;
        in_ranges += fork.in_ranges;
        apart += fork.apart;
        again += fork.again;
    }
};

/// Blocks of this many instructions, and events, through the stage.
class Stream {
public:
    Stream() = default;

    Stream& ran(std::uint32_t instructions) {
        Block b;
        b.start = 0x1000 + std::uint64_t{instructions} * 0x1000;
        b.bytes = 4 * instructions;
        b.instructions = instructions;
        out_.range(table_.intern(b) * 2, next());
        return *this;
    }
    Stream& event(What what) {
        out_.event(next(), std::move(what));
        return *this;
    }
    Stream& count(std::optional<std::uint32_t> cycles) { return event(Cycles{.cycles = cycles, .of = Of::flow}); }
    Stream& flush() {
        out_.flush();
        return *this;
    }
    std::string end() {
        out_.flush();
        spread_.release();
        return std::exchange(log_.text, {});
    }
    [[nodiscard]] const CycleSpread& spread() const { return spread_; }
    [[nodiscard]] const Log& log() const { return log_; }

private:
    Offset next() { return {at_++}; }
    BlockTable table_;
    Log log_;
    CycleSpread spread_{log_};
    BatchWriter out_{table_, spread_};
    std::uint64_t at_ = 0;
};

TEST(CycleSpread, DividesByInstructions) {
    EXPECT_EQ(Stream().ran(3).ran(1).count(8).ran(5).count(5).end(), "3=6@0 1=2@1 again:8@2 5=5@3 again:5@4 ");
    // Shares are whole numbers, and their sum is the count.
    EXPECT_EQ(Stream().ran(3).ran(3).ran(3).count(10).end(), "3=3@0 3=3@1 3=4@2 again:10@3 ");
    EXPECT_EQ(Stream().ran(3).ran(3).count(1).end(), "3=0@0 3=1@1 again:1@2 ");
}

TEST(CycleSpread, LeavesUnknownWhatIsUnknown) {
    // The first count has no number, and after the last one there was no count.
    EXPECT_EQ(Stream().ran(3).count({}).ran(2).count(4).ran(1).end(), "3@0 flow:?@1 2=4@2 again:4@3 1@4 ");
    // No instruction is known to have run.
    EXPECT_EQ(Stream().count(7).ran(1).count(1).end(), "apart:7@0 1=1@1 again:1@2 ");
    // Flow was lost in between, up to the next count.
    for (const What& lost :
         {What{Gap{{0}, {4}, GapReason::framing}}, What{NoMemory{}}, What{Atoms{1, 0}}, What{Reached{}},
          What{TraceOn{TraceOnReason::overflow}}, What{Inconsistency{Conflict::runaway_walk}},
          What{Mark{Mark::Kind::uncommitted, 1, 0}}, What{Untraced{}}}) {
        const std::string what = "e" + std::to_string(lost.index());
        EXPECT_EQ(Stream().ran(1).event(lost).ran(1).count(9).ran(2).count(2).end(),
                  "1@0 " + what + "@1 1@2 apart:9@3 2=2@4 again:2@5 ");
    }
}

TEST(CycleSpread, UnseenInstructionsHaveTheirShare) {
    EXPECT_EQ(Stream().ran(2).event(Untraced{{}, {}, 5}).ran(1).event(Untraced{{}, {}, 2}).count(20).end(),
              "2=4@0 e12@1 apart:10@1 1=2@2 e12@3 apart:4@3 again:20@4 ");
}

TEST(CycleSpread, TimeWithoutTraceCounts) {
    Stream stream;
    EXPECT_EQ(stream.ran(1).event(TraceOn{TraceOnReason::enabled}).ran(1).count(6).end(),
              "1=3@0 e1@1 1=3@2 again:6@3 ");
}

TEST(CycleSpread, HoldsWhatWaits) {
    Stream stream;
    stream.ran(1).count(2).ran(3).event(Trigger{}).flush();
    EXPECT_EQ(stream.log().text, "1=2@0 again:2@1 ");
    ASSERT_TRUE(stream.spread().first());
    EXPECT_EQ(*stream.spread().first(), Offset{2});
    stream.ran(1).count(4).flush();
    EXPECT_EQ(stream.log().text, "1=2@0 again:2@1 3=3@2 e7@3 1=1@4 again:4@5 ");
    EXPECT_FALSE(stream.spread().first());
}

TEST(CycleSpread, GivesUpBeyondItsMemory) {
    Stream stream;
    for (std::size_t n = 0; n <= CycleSpread::most_ranges; ++n) stream.ran(1);
    stream.flush();
    EXPECT_FALSE(stream.spread().first());
    stream.count(77).ran(1).count(1).end();
    EXPECT_EQ(stream.log().apart, 77U);
    EXPECT_EQ(stream.log().in_ranges, 1U);
}

// The shares from forks equal those from one pass, wherever the stream is cut, and cycles add up.
TEST(CycleSpread, ForksAgree) {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE(seed);
        synthetic::Random random(seed);
        BlockTable table;
        Log whole, parts;
        CycleSpread one(whole), many(parts);
        BatchWriter kept(table);
        std::uint64_t at = 0, sum = 0;
        const std::uint32_t one_in = 2 + random.below(12);
        const std::size_t pieces = 1 + random.below(6);
        std::vector<std::vector<std::unique_ptr<BatchWriter::Owned>>> all;
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            for (std::uint32_t n = random.below(40); n-- != 0;) {
                const std::uint32_t instructions = 1 + random.below(9);
                Block b;
                b.start = instructions;
                b.bytes = 4 * instructions;
                b.instructions = instructions;
                kept.range(table.intern(b) * 2, {at++});
                switch (random.below(one_in)) {
                    case 0: {
                        const std::uint32_t cycles = random.below(100);
                        const bool known = random.below(8) != 0;
                        sum += known ? cycles : 0;
                        kept.event({at++},
                                   Cycles{.cycles = known ? std::optional(cycles) : std::nullopt, .of = Of::flow});
                        break;
                    }
                    case 1: kept.event({at++}, TraceOn{TraceOnReason::enabled}); break;
                    case 2:
                        if (random.below(6) == 0) kept.event({at++}, NoMemory{});
                        break;
                    case 3: kept.event({at++}, Untraced{{}, {}, random.below(5)}); break;
                    case 4: {
                        Context context;
                        context.context_id = random.below(4);
                        kept.event({at++}, context);
                        break;
                    }
                    default: break;
                }
            }
            kept.flush();
            all.push_back(kept.take());
        }
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            const bool forks = random.half();
            const std::unique_ptr<Sink> fork = forks ? many.fork() : nullptr;
            if (fork) fork->begin_at({});
            for (const auto& batch : all[piece]) {
                one.consume(batch->batch(table.blocks()));
                (fork ? *fork : many).consume(batch->batch(table.blocks()));
            }
            if (fork) many.join(*fork);
        }
        one.release();
        many.release();
        ASSERT_EQ(parts.text, whole.text);
        ASSERT_EQ(whole.in_ranges + whole.apart, sum);
        ASSERT_LE(whole.in_ranges, whole.again);
    }
}

}  // namespace
}  // namespace waymark::flow
