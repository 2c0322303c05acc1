/// Perfetto traces, read back packet by packet as the viewer would: every slice, counter and instant.
#include "waymark/exports/perfetto.h"

#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>

#include "exports/some_answers.h"
#include "exports/tools.h"
#include "support/sanitized.h"

namespace waymark::exports {
namespace {

using protozero::pbf_reader;
using support::random_answers;
using support::small_answers;
using support::written;

struct ReadSlice {
    std::string track, name;
    std::uint64_t begin{}, end{}, depth{}, merged = 1;
    friend auto operator<=>(const ReadSlice&, const ReadSlice&) = default;
};
struct ReadTrace {
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, std::uint64_t> parents;
    std::vector<ReadSlice> slices;
    std::vector<std::pair<std::uint64_t, std::string>> instants;
    std::map<std::string, std::vector<std::pair<std::uint64_t, double>>> counters;
};

/// The state of a sequence of packets so far.
struct Sequence {
    std::uint64_t track{}, time{};
    std::map<std::uint64_t, std::string> names;
    std::vector<ReadSlice> open;
};

class TraceReader {
public:
    ReadTrace read(const std::string& bytes) {
        pbf_reader trace(bytes);
        while (trace.next()) {
            EXPECT_EQ(trace.tag(), 1U);
            packet(trace.get_message());
        }
        for (const auto& [id, sequence] : sequences_) EXPECT_TRUE(sequence.open.empty()) << "never closed";
        return std::move(out_);
    }

private:
    void packet(pbf_reader p) {
        std::uint64_t timestamp = 0, flags = 0, clock = 0;
        std::string event, defaults, interned, descriptor;
        Sequence* sequence = nullptr;
        while (p.next()) {
            switch (p.tag()) {
                case 8: timestamp = p.get_uint64(); break;
                case 10: sequence = &sequences_[p.get_uint32()]; break;
                case 13: flags = p.get_uint32(); break;
                case 58: clock = p.get_uint32(); break;
                case 59: defaults = p.get_string(); break;
                case 11: event = p.get_string(); break;
                case 12: interned = p.get_string(); break;
                case 60: descriptor = p.get_string(); break;
                default: p.skip();
            }
        }
        ASSERT_NE(sequence, nullptr);
        if (!descriptor.empty()) describe(pbf_reader(descriptor));
        if ((flags & 1) != 0) {
            *sequence = {};
            sequence->time = timestamp;
            EXPECT_EQ(clock, 6U);
            pbf_reader d(defaults);
            ASSERT_TRUE(d.next(11));
            pbf_reader e(d.get_message());
            ASSERT_TRUE(e.next(11));
            sequence->track = e.get_uint64();
        } else if ((flags & 2) != 0) {
            sequence->time += timestamp;
        }
        if (!interned.empty()) {
            pbf_reader i(interned);
            ASSERT_TRUE(i.next(2));
            pbf_reader entry(i.get_message());
            ASSERT_TRUE(entry.next(1));
            const std::uint64_t iid = entry.get_uint64();
            ASSERT_TRUE(entry.next(2));
            EXPECT_TRUE(sequence->names.emplace(iid, entry.get_string()).second);
        }
        if (!event.empty()) on_event(*sequence, pbf_reader(event));
    }
    void describe(pbf_reader d) {
        std::uint64_t uuid = 0, parent = 0;
        std::string name;
        while (d.next()) {
            if (d.tag() == 1)
                uuid = d.get_uint64();
            else if (d.tag() == 5)
                parent = d.get_uint64();
            else if (d.tag() == 2)
                name = d.get_string();
            else
                d.skip();
        }
        EXPECT_TRUE(out_.tracks.emplace(uuid, name).second);
        out_.parents[uuid] = parent;
        EXPECT_TRUE(parent == 0 || out_.tracks.contains(parent)) << "a track before the one it is below";
    }
    void on_event(Sequence& s, pbf_reader e) {
        std::int32_t type = 0;
        std::string name;
        std::uint64_t merged = 1;
        double value = 0;
        while (e.next()) {
            switch (e.tag()) {
                case 9: type = e.get_int32(); break;
                case 10: {
                    const std::uint64_t iid = e.get_uint64();
                    EXPECT_TRUE(s.names.contains(iid));
                    name = s.names[iid];
                    break;
                }
                case 30: value = static_cast<double>(e.get_int64()); break;
                case 44: value = e.get_double(); break;
                case 4: {
                    pbf_reader a(e.get_message());
                    while (a.next()) {
                        if (a.tag() == 3)
                            merged = a.get_uint64();
                        else
                            a.skip();
                    }
                    break;
                }
                default: e.skip();
            }
        }
        ASSERT_TRUE(out_.tracks.contains(s.track));
        const std::string& track = out_.tracks[s.track];
        if (type == 1) {
            s.open.push_back({track, name, s.time, 0, s.open.size(), merged});
        } else if (type == 2) {
            ASSERT_FALSE(s.open.empty());
            s.open.back().end = s.time;
            out_.slices.push_back(s.open.back());
            s.open.pop_back();
        } else if (type == 3) {
            out_.instants.emplace_back(s.time, name);
        } else {
            ASSERT_EQ(type, 4);
            out_.counters[track].emplace_back(s.time, value);
        }
    }

    std::map<std::uint32_t, Sequence> sequences_;
    ReadTrace out_;
};

/// Slices of answers in nanoseconds.
std::vector<ReadSlice> expected(const answers::Answers& a, std::uint64_t ns_per_unit) {
    std::vector<ReadSlice> out;
    for (const auto& s : a.timeline.slices) {
        std::string name;
        // Random names contain one byte that is no UTF-8.
        for (const char c : a.functions[s.function].name)
            name += c == '\xff' ? std::string("\xef\xbf\xbd") : std::string(1, c);
        out.push_back(
            {a.timeline.tracks[s.track].name, name, s.begin * ns_per_unit, s.end * ns_per_unit, s.depth, s.merged});
    }
    std::sort(out.begin(), out.end());
    return out;
}

constexpr PerfettoOptions no_limit{~std::uint64_t{0}};

TEST(Perfetto, EverythingIsThere) {
    const auto answers = small_answers();
    const auto out = written([&](ByteSink& sink) { return write_perfetto(answers, no_limit, sink); });
    ReadTrace trace = TraceReader().read(out.text);
    std::sort(trace.slices.begin(), trace.slices.end());
    EXPECT_EQ(trace.slices, expected(answers, 1000));  // cycles of a megahertz
    ASSERT_EQ(trace.instants.size(), 2U);
    EXPECT_EQ(trace.instants[0], (std::pair<std::uint64_t, std::string>{1'028'000, "gap"}));
    EXPECT_EQ(trace.instants[1], (std::pair<std::uint64_t, std::string>{1'041'000, "exception"}));
    const std::vector<std::pair<std::uint64_t, double>> points{{1'000'000, 1.25}, {1'030'000, 2}};
    EXPECT_EQ(trace.counters["cycles per instruction"], points);
    EXPECT_EQ(trace.parents[3], 2U);  // interrupts, nested below the core
    EXPECT_TRUE(out.report.notes.empty()) << out.notes();
}

TEST(Perfetto, SlicesAtRandomComeBack) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(seed);
        const auto answers = random_answers(seed, 2000);
        const auto out = written([&](ByteSink& sink) { return write_perfetto(answers, no_limit, sink); });
        ReadTrace trace = TraceReader().read(out.text);
        std::sort(trace.slices.begin(), trace.slices.end());
        EXPECT_EQ(trace.slices, expected(answers, 1));
        EXPECT_EQ(trace.instants.size(), answers.timeline.marks.size());
    }
}

TEST(Perfetto, StaysInProportion) {
    for (std::uint64_t seed = 1; seed <= sized(5U, 1U); ++seed) {
        SCOPED_TRACE(seed);
        auto answers = random_answers(seed, 20000);
        for (const std::uint64_t bytes : {100'000U, 40'000U, 10'000U, 3'000U}) {
            SCOPED_TRACE(bytes);
            answers.trace_bytes = bytes;
            const auto out = written([&](ByteSink& sink) { return write_perfetto(answers, {}, sink); });
            EXPECT_LE(out.text.size(), 3 * bytes);
            // Not wasted, either.
            EXPECT_GE(out.text.size(), bytes);
            EXPECT_NE(out.notes().find("left out"), std::string::npos) << out.notes();
            const ReadTrace trace = TraceReader().read(out.text);
            EXPECT_FALSE(trace.slices.empty());
            std::uint64_t shortest = ~std::uint64_t{0}, longest = 0;
            for (const ReadSlice& s : trace.slices) {
                shortest = std::min(shortest, s.end - s.begin);
                longest = std::max(longest, s.end - s.begin);
            }
            EXPECT_GT(shortest, 0U);
            // The longest slice is still there.
            std::uint64_t true_longest = 0;
            for (const auto& s : answers.timeline.slices) true_longest = std::max(true_longest, s.end - s.begin);
            EXPECT_EQ(longest, true_longest);
        }
    }
}

TEST(Perfetto, MergedSlicesSayForHowManyTheyStand) {
    using namespace answers;
    Answers a = small_answers();
    a.timeline.axis = {"ns", 0, 0, 1'000'000, 0, ""};
    a.timeline.slices = {{0, 1'000'000, 0, 0, 0, 1}};
    a.timeline.marks.clear();
    a.timeline.series.clear();
    for (std::uint64_t i = 0; i < 10'000; ++i)
        a.timeline.slices.push_back({i * 90, i * 90 + (i % 10 == 0 ? 20 : 60), 0, i % 10 == 0 ? 1U : 2U, 1, 1});
    const auto out = written([&](ByteSink& sink) { return write_perfetto(a, {2000}, sink); });
    EXPECT_LE(out.text.size(), 2000U);
    const ReadTrace trace = TraceReader().read(out.text);
    std::uint64_t stand_for = 0;
    for (const ReadSlice& s : trace.slices)
        if (s.depth == 1) {
            stand_for += s.merged;
            EXPECT_EQ(s.name, "compare");  // it had most of the time
        }
    EXPECT_EQ(stand_for, 10'000U);
    EXPECT_NE(out.notes().find("10,000 slices merged"), std::string::npos) << out.notes();
}

TEST(Perfetto, WithoutATimelineThereIsNothingToShow) {
    ByteCollector sink;
    const auto result = write_perfetto(support::sampled_answers(), {}, sink);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::not_found);
    EXPECT_NE(result.error().message.find("SPE"), std::string::npos);
    EXPECT_TRUE(sink.bytes().empty());
}

TEST(Perfetto, TooSmallALimitIsRefused) {
    ByteCollector sink;
    const auto result = write_perfetto(small_answers(), {50}, sink);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::usage);
    EXPECT_NE(result.error().message.find("too small"), std::string::npos) << result.error().message;
}

TEST(Perfetto, SlicesThatDoNotNestAreCut) {
    answers::Answers a = small_answers();
    a.timeline.slices = {
        {1000, 1010, 0, 0, 0, 1}, {1005, 1050, 0, 1, 1, 1}, {1007, 1003, 0, 2, 2, 1}, {1004, 1020, 0, 1, 0, 1}};
    const auto out = written([&](ByteSink& sink) { return write_perfetto(a, no_limit, sink); });
    EXPECT_EQ(TraceReader().read(out.text).slices.size(), 4U);
}

TEST(Perfetto, ProtocReadsIt) {
    WM_NEEDS_TOOL("protoc");
    const TemporaryFolder folder;
    const auto answers = random_answers(3, 500);
    const auto out = written([&](ByteSink& sink) { return write_perfetto(answers, no_limit, sink); });
    const auto file = folder.write("trace.pftrace", out.text);
    const support::Ran ran = support::run("protoc --decode_raw < " + shell_word(file));
    EXPECT_EQ(ran.status, 0) << ran.output.substr(0, 500);
    EXPECT_NE(ran.output.find("\"core 0\""), std::string::npos);
}

}  // namespace
}  // namespace waymark::exports
