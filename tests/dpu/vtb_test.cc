// The virtual trace buffer as a ring (docs/spec/dpu.md, sections 3.4 and 5.7).
#include "waymark/dpu/vtb.h"

#include <gtest/gtest.h>

#include "support.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;

/// Memory with lines at the places where the unit writes them.
struct Ring {
    std::uint32_t tsa, tea, tw;
    Bytes8 memory;
    Bytes8 written{};
    bool wrapped = false;
    std::uint64_t lines = 0;
    Ring(std::uint32_t first, std::uint32_t count, std::uint32_t start)
        : tsa(first),
          tea(first + (count - 1) * line_bytes),
          tw(first + start * line_bytes),
          memory(count * line_bytes) {}
    void write(Bytes line) {
        std::copy(line.begin(), line.end(), memory.begin() + (tw - tsa));
        written.insert(written.end(), line.begin(), line.end());
        wrapped = wrapped || tw == tea;
        tw = tw == tea ? tsa : tw + line_bytes;
        ++lines;
    }
    [[nodiscard]] VtbState state(bool with_lines) const {
        VtbState s{tsa, tea, tw, false, wrapped, {}};
        if (with_lines) s.lines_written = lines;
        return s;
    }
};
Bytes8 line(wire::Random& random) {
    Bytes8 out(line_bytes);
    for (auto& byte : out) byte = static_cast<std::uint8_t>(random());
    return out;
}
Bytes8 read(const ReadingOrder& order, const Bytes8& memory) {
    Bytes8 out;
    for (const Stretch& s : order.stretches)
        out.insert(out.end(), memory.begin() + static_cast<std::ptrdiff_t>(s.offset),
                   memory.begin() + static_cast<std::ptrdiff_t>(s.offset + s.bytes));
    return out;
}

// Section 5.7: with the number of lines exactly the last written trace; without it the same, or more where DP_TW did
// not begin at DP_TSA.
//
// Requirements: R39 R41 R96
TEST(Vtb, ReadsWhatWasWrittenLast) {
    wire::Random random(1);
    for (unsigned round = 0; round < 500; ++round) {
        const auto count = static_cast<std::uint32_t>(1 + random() % 6);
        const std::uint32_t start = round % 2 == 0 ? 0 : static_cast<std::uint32_t>(random() % count);
        Ring ring(0x20000000, count, start);
        for (std::uint64_t n = random() % 16; n-- > 0;) ring.write(line(random));
        const std::size_t kept = std::min<std::size_t>(ring.written.size(), ring.memory.size());
        const Bytes8 last(ring.written.end() - static_cast<std::ptrdiff_t>(kept), ring.written.end());

        const auto exact = reading_order(ring.state(true), ring.memory.size());
        ASSERT_TRUE(exact.has_value());
        EXPECT_EQ(read(*exact, ring.memory), last);
        EXPECT_EQ(exact->overwritten, ring.written.size() > ring.memory.size());
        EXPECT_FALSE(exact->cut);

        const auto from_registers = reading_order(ring.state(false), ring.memory.size());
        ASSERT_TRUE(from_registers.has_value());
        const Bytes8 all = read(*from_registers, ring.memory);
        ASSERT_GE(all.size(), last.size());
        EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), all.rbegin()));
        // The rest was never written: zeros.
        EXPECT_TRUE(std::all_of(all.begin(), all.end() - static_cast<std::ptrdiff_t>(last.size()),
                                [](std::uint8_t byte) { return byte == 0; }));
        EXPECT_TRUE(start != 0 || all.size() == last.size());
    }
}

// Section 10.1: four lines in a buffer of four; reading starts at DP_TW, nothing was overwritten.
TEST(Vtb, ExactlyFull) {
    const auto order = reading_order({0x20000000, 0x20000060, 0x20000000, false, true, 4}, 128);
    ASSERT_TRUE(order.has_value());
    EXPECT_EQ(order->stretches, (std::vector<Stretch>{{0, 128, false}}));
    EXPECT_FALSE(order->overwritten);
    EXPECT_TRUE(reading_order({0x20000000, 0x20000060, 0x20000000, false, true, {}}, 128)->overwritten);
}

// One address takes all words: the dump is the trace.
// Requirements: R42
TEST(Vtb, SingleAddress) {
    const auto order = reading_order({0x20000000, 0, 0x40001000, true, false, 3}, 96);
    ASSERT_TRUE(order.has_value());
    EXPECT_EQ(order->stretches, (std::vector<Stretch>{{0, 96, false}}));
    EXPECT_TRUE(reading_order({0, 0, 0, true, false, {}}, 0)->stretches.empty());
}

TEST(Vtb, WrongRegisters) {
    const auto below = reading_order({0x20000060, 0x20000000, 0x20000000, false, false, {}}, 128);
    ASSERT_FALSE(below.has_value());
    EXPECT_EQ(below.error().code, Errc::bad_format);
    EXPECT_NE(below.error().message.find("DP_TEA 0x20000000 is lower than DP_TSA 0x20000060"), std::string::npos);
    const auto outside = reading_order({0x20000000, 0x20000060, 0x20000080, false, false, {}}, 128);
    ASSERT_FALSE(outside.has_value());
    EXPECT_NE(outside.error().message.find("DP_TW 0x20000080 lies outside"), std::string::npos);
    // The whole address space is no overflow.
    EXPECT_TRUE(reading_order({0, 0xFFFFFFE0, 0x40, false, true, {}}, 128).has_value());
}

// A dump that is cut is read to its end, and reports what is missing.
TEST(Vtb, CutDump) {
    const VtbState state{0x20000000, 0x20000060, 0x20000040, false, true, {}};
    const auto in_older = reading_order(state, 100);
    EXPECT_EQ(in_older->stretches, (std::vector<Stretch>{{64, 36, false}, {0, 64, true}}));
    EXPECT_FALSE(in_older->cut);
    const auto in_newer = reading_order(state, 40);
    EXPECT_EQ(in_newer->stretches, (std::vector<Stretch>{{0, 40, true}}));
    EXPECT_TRUE(in_newer->cut);
    EXPECT_TRUE(reading_order(state, 0)->stretches.empty());
    EXPECT_EQ(reading_order(state, 1000)->bytes(), 128U);
}

TEST(Vtb, LinesNeverWritten) {
    Bytes8 dump(160);
    EXPECT_EQ(without_unwritten(dump).size(), 0U);
    dump[33] = 1;
    EXPECT_EQ(without_unwritten(dump).size(), 64U);
    EXPECT_EQ(without_unwritten(Bytes(dump).first(40)).size(), 40U);
    EXPECT_EQ(without_unwritten({}).size(), 0U);
}

// Request mode: each request reads the trace since the previous request, oldest first; an unread lap is detected.
// Requirements: R43
TEST(Vtb, Readout) {
    wire::Random random(2);
    for (unsigned round = 0; round < 200; ++round) {
        const auto count = static_cast<std::uint32_t>(2 + random() % 6);
        Ring ring(0x1000, count, static_cast<std::uint32_t>(random() % count));
        Readout readout(ring.tsa, ring.tea, ring.tw);
        Bytes8 all;
        for (unsigned request = 0; request < 20; ++request) {
            for (std::uint64_t n = random() % count; n-- > 0;) ring.write(line(random));
            const Readout::Piece piece = readout.take(ring.tw, ring.wrapped);
            ring.wrapped = false;
            EXPECT_FALSE(piece.overrun);
            const Bytes8 bytes = read({piece.stretches, false, false}, ring.memory);
            all.insert(all.end(), bytes.begin(), bytes.end());
        }
        EXPECT_EQ(all, ring.written);
        // A second wrap in one request cannot be seen.
        if (ring.tw == ring.tea) continue;
        for (std::uint32_t n = 0; n <= count; ++n) ring.write(line(random));
        const Readout::Piece piece = readout.take(ring.tw, ring.wrapped);
        EXPECT_TRUE(piece.overrun);
        EXPECT_EQ(read({piece.stretches, false, false}, ring.memory),
                  Bytes8(ring.written.end() - static_cast<std::ptrdiff_t>(ring.memory.size()), ring.written.end()));
    }
}

// The beginnings of periods: exact by lines, otherwise by their pointers.
TEST(Vtb, Periods) {
    wire::Random random(3);
    for (unsigned round = 0; round < 300; ++round) {
        const auto count = static_cast<std::uint32_t>(4 + random() % 8);
        Ring ring(0x1000, count, 0);
        std::vector<PeriodStart> exact, by_pointer;
        std::vector<std::uint64_t> begins;
        for (unsigned period = 0; period < 4; ++period) {
            for (std::uint64_t n = random() % count; n-- > 0;) ring.write(line(random));
            exact.push_back({ring.tw, ring.lines});
            by_pointer.push_back({ring.tw, {}});
            begins.push_back(ring.lines);
        }
        for (std::uint64_t n = random() % count; n-- > 0;) ring.write(line(random));
        const VtbState state = ring.state(true);
        const auto order = reading_order(state, ring.memory.size());
        const auto a = period_starts(state, *order, exact), b = period_starts(state, *order, by_pointer);
        EXPECT_EQ(a, b);
        for (std::size_t i = 0; i < begins.size(); ++i) {
            const std::uint64_t since = (ring.lines - begins[i]) * line_bytes;
            const bool there = since <= order->bytes();
            EXPECT_EQ(a[i], there ? std::optional(order->bytes() - since) : std::nullopt);
        }
    }
}

// The trace before a stop can be read from a ring that was overwritten, from the first whole entry on.
// Requirements: R41
TEST(Vtb, OverwrittenTraceDecodes) {
    const TraceFormat format = in(TraceMode::flow);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        RandomTrace trace(format, seed);
        Words stream;
        std::vector<std::pair<std::uint64_t, Entry>> entries;
        while (stream.size() < 400) {
            entries.emplace_back(4 * stream.size(), trace.entry());
            ASSERT_TRUE(encode(stream, entries.back().second, format));
        }
        while (stream.size() % 8 != 0) {
            entries.emplace_back(4 * stream.size(), Closed{});
            ASSERT_TRUE(encode(stream, Entry(Closed{}), format));
        }
        Ring ring(0x1000, static_cast<std::uint32_t>(4 + trace.random()() % 20), 0);
        const Bytes8 bytes = memory(stream);
        for (std::size_t at = 0; at < bytes.size(); at += line_bytes) ring.write(Bytes(bytes).subspan(at, line_bytes));
        const auto order = reading_order(ring.state(true), ring.memory.size());
        const std::uint64_t dropped = bytes.size() - order->bytes();
        std::vector<Entry> expected;
        for (const auto& [at, entry] : entries)
            if (at >= dropped) expected.push_back(entry);
        EXPECT_EQ(parse(read(*order, ring.memory), format).entries, expected) << "seed " << seed;
    }
}

}  // namespace
