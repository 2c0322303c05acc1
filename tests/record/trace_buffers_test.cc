// Sinks in a recording: the written files, compared with the whole stream of frames read with plain arithmetic.

#include "waymark/record/trace_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "waymark/coresight/formatter.h"
#include "waymark/record/comparison.h"

namespace waymark::record {
namespace {

using coresight::TraceId;

std::vector<std::uint8_t> contents_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::uint64_t register_of(const sink::Tmc& sink, std::string_view name) {
    for (const RegisterValue& r : sink.registers())
        if (r.name == name) return r.value;
    ADD_FAILURE() << "no register " << name;
    return 0;
}

/// The frames of all bytes, without a memory that could wrap, and the number of frames that an endless memory would
/// have when the sink stops.
struct WholeStream {
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter{frames};
    std::optional<std::uint64_t> triggered{}, stops{};

    /// Byte by byte, since a sink stops between two bytes.
    bool add(TraceId id, std::uint8_t byte, std::optional<std::uint64_t> after) {
        if (stops) return false;
        formatter.add(id, Bytes(&byte, 1));
        look(after);
        return true;
    }
    void trigger(std::optional<std::uint64_t> after) {
        if (stops) return;
        if (!triggered) triggered = frames.size();
        const std::uint8_t none = 0;
        formatter.add(coresight::trigger_id, Bytes(&none, 1));
        look(after);
    }
    void look(std::optional<std::uint64_t> after) {
        if (!triggered || !after || frames.size() - *triggered < *after) return;
        formatter.flush();
        stops = frames.size();
    }
};

TEST(Sinks, HoldTheLastBytesUpToTheStop) {
    const TemporaryFolder folder;
    std::mt19937_64 random(20261129);
    std::size_t wrapped = 0, stopped = 0;
    for (unsigned round = 0; round < 400; ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const auto below = [&](std::uint64_t n) { return random() % n; };
        sink::SinkSetup setup;
        setup.buffer.kind = sink::sink_names()[below(4)].kind;
        setup.buffer.memory_bytes = 16 * (16 + below(60));
        if (setup.buffer.kind == sink::SinkKind::etr) setup.buffer.base = 0x80000000 + 16 * below(1000);
        if (below(3) != 0)
            setup.after_trigger = 4 * (1 + below(setup.buffer.memory_bytes / 4 - 8));  // the trigger stays
        ASSERT_TRUE(setup.check());
        TraceBuffers buffers(0, sink::PathSetup{.buffer = setup, .registers = {}});
        const std::filesystem::path file = folder.path() / "trace.bin";
        ASSERT_TRUE(buffers.open(file));
        for (const int id : {0x10, 0x11, 0x12}) buffers.connect(TraceId{static_cast<std::uint8_t>(id)});
        WholeStream whole;
        const std::uint64_t pieces = below(200);
        const std::uint64_t trigger_in = below(200);
        for (std::uint64_t n = 0; n < pieces; ++n) {
            if (n == trigger_in || (n > trigger_in && below(40) == 0)) {
                buffers.trigger(TraceId{static_cast<std::uint8_t>(0x10 + below(3))});
                whole.trigger(setup.after_trigger);
            }
            const TraceId id{static_cast<std::uint8_t>(0x10 + below(3))};
            std::vector<std::uint8_t> bytes(1 + below(30));
            for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
            buffers.add(id, bytes);
            for (const std::uint8_t byte : bytes) whole.add(id, byte, setup.after_trigger);
            EXPECT_EQ(buffers.stopped(), whole.stops.has_value());
        }
        buffers.flush();
        if (!whole.stops) whole.formatter.flush();
        ASSERT_TRUE(buffers.write_ram());
        const std::uint64_t size = setup.buffer.memory_bytes, sent = whole.frames.size();
        const std::uint64_t kept = std::min(sent, size);
        const std::vector<std::uint8_t> expected(whole.frames.end() - static_cast<std::ptrdiff_t>(kept),
                                                 whole.frames.end());
        EXPECT_EQ(contents_of(file), expected);
        EXPECT_EQ(buffers.sent_bytes(), sent);
        EXPECT_EQ(buffers.kept_bytes(), kept);
        EXPECT_EQ(buffers.replaced(), sent - kept);
        // Registers as a debugger reads them before the trace.
        const sink::Tmc& sink = *buffers.sink();
        const std::uint64_t unit = setup.buffer.kind == sink::SinkKind::etb11 ? 4 : 1;
        EXPECT_EQ(register_of(sink, "RWP"), setup.buffer.base + sent % size / unit);
        EXPECT_EQ(register_of(sink, "RRP"), setup.buffer.base + (sent > size ? sent % size : 0) / unit);
        EXPECT_EQ(register_of(sink, "RSZ"), size / 4);
        EXPECT_EQ(register_of(sink, "TRG"), 0U);
        const std::uint64_t status = register_of(sink, "STS");
        EXPECT_EQ((status & sink::Sts::full) != 0, sent >= size);
        EXPECT_NE(status & sink::Sts::ready, 0U);
        EXPECT_EQ(sink.trigger_at(), whole.triggered);
        if (setup.after_trigger) {
            EXPECT_EQ((status & sink::Sts::triggered) != 0, whole.stops.has_value());
        }
        wrapped += sent > size ? 1 : 0;
        stopped += whole.stops ? 1 : 0;
        buffers.close();
        EXPECT_EQ(buffers.kept_bytes(), kept);
    }
    EXPECT_GT(wrapped, 100U);
    EXPECT_GT(stopped, 50U);
}

TEST(Sinks, LastPlaceOfRangesInTheTruth) {
    const TemporaryFolder folder;
    std::mt19937_64 random(5);
    for (unsigned round = 0; round < 300; ++round) {
        const std::filesystem::path file = folder.path() / "ranges.bin";
        std::vector<TruthRange> executed(random() % 60);
        {
            auto writer = RangeWriter::create(file);
            ASSERT_TRUE(writer);
            for (TruthRange& range : executed) {
                range.start = 0x1000 + 0x10 * (random() % 2);
                range.end = range.start + 8;
                range.instructions = 2;
                range.lost = random() % 10 == 0;
                (*writer)->add(range);
            }
            ASSERT_TRUE((*writer)->flush());
        }
        std::vector<TruthRange> there;
        std::copy_if(executed.begin(), executed.end(), std::back_inserter(there),
                     [](const auto& r) { return !r.lost; });
        const std::size_t from = there.empty() ? 0 : random() % there.size();
        const std::size_t count = there.empty() ? 0 : random() % std::min<std::size_t>(there.size() - from, 6);
        std::vector<TruthRange> wanted(there.begin() + static_cast<std::ptrdiff_t>(from),
                                       there.begin() + static_cast<std::ptrdiff_t>(from + count));
        if (count != 0 && random() % 4 == 0) wanted.back().end += 4;  // nowhere
        std::optional<std::uint64_t> expected;
        for (std::size_t at = 0; at + wanted.size() <= there.size(); ++at)
            if (std::equal(wanted.begin(), wanted.end(), there.begin() + static_cast<std::ptrdiff_t>(at),
                           [](const auto& a, const auto& b) { return a.start == b.start && a.end == b.end; }))
                expected = at;
        auto reader = RangeReader::open(file);
        ASSERT_TRUE(reader);
        EXPECT_EQ(last_place_of(wanted, std::move(*reader)), expected);
    }
}

}  // namespace
}  // namespace waymark::record
