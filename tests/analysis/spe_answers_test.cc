/// Samples made by hand → Answers: nothing is added, nothing is lost.
#include "waymark/analysis/spe_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "analysis/whole_answers.h"
#include "support/spe_capture.h"
#include "support/temporary_folder.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using spe::OperationClass;
using support::SpeFile;
using support::SpeSample;

constexpr std::uint64_t loaded = 0x400000 + 64 - 0x1000, sum = loaded + 0x1000, spin = sum + 0x40, fill = sum + 0x80;

class SpeAnswers : public testing::Test {
protected:
    SampleCapture open(const SpeFile& made) {
        const auto bytes = made.build();
        const auto path = folder_.write("perf.data", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        auto capture = open_samples(path);
        EXPECT_TRUE(capture) << capture.error().message;
        return std::move(*capture);
    }
    Answers answers(const SampleCapture& capture, unsigned workers = 1, const SampleAnswersOptions& options = {}) {
        const auto elf = support::server_elf();
        folder_.write("root/usr/bin/server", {reinterpret_cast<const char*>(elf.data()), elf.size()});
        GatheredSamples gathered({true, 64});
        const SampleTotals totals = run_samples(capture, {}, gathered, workers, nullptr, 64);
        Sharing sharing(*gathered.candidates);
        static_cast<void>(run_samples(capture, {}, sharing, workers, nullptr, 64));
        all_ = gathered.profile.all();
        Program program(capture, {{folder_.path() / "root", {}}, {}});
        Answers out = answers_of_samples(capture, totals, gathered, &sharing, program, options);
        // Answers of thousands of samples are too long to be read.
        if (std::max(out.instructions.size(), out.timeline.slices.size()) < 40) whole_answers_.add(out, folder_.path());
        return out;
    }
    static const Function& function(const Answers& a, const std::string& name) {
        const auto found =
            std::find_if(a.functions.begin(), a.functions.end(), [&](const Function& f) { return f.name == name; });
        EXPECT_NE(found, a.functions.end()) << name;
        return *found;
    }
    TemporaryFolder folder_;
    Measures all_;
    support::WholeAnswers whole_answers_;
};

SpeSample branch(std::uint64_t pc, std::uint64_t target, std::uint64_t events, std::uint8_t type = 1) {
    SpeSample s;
    s.pc = pc;
    s.operation_class = OperationClass::branch;
    s.type = type;
    s.events = events;
    s.target = target;
    s.total = 10;
    return s;
}

SpeFile random_file(unsigned seed, std::size_t count) {
    std::mt19937 random(seed);
    SpeFile made;
    made.pieces = 3;
    for (std::size_t i = 0; i < count; ++i) {
        SpeSample s;
        s.cpu = static_cast<std::uint32_t>(random() % 3);
        s.time = 1000 + i * (1 + random() % 7);
        s.pc = sum + random() % 64 * 4;
        s.operation_class = static_cast<OperationClass>(random() % 3);
        s.type = static_cast<std::uint8_t>(random());
        s.events = random();
        s.total = static_cast<std::uint16_t>(random() % 500);
        if (s.operation_class == OperationClass::load_store) {
            s.address = 0x10000 + random() % 4096;
            s.translation = static_cast<std::uint16_t>(random() % 9);
            if (random() % 2 != 0) s.source = static_cast<std::uint8_t>(random() % 16);
        }
        if (s.operation_class == OperationClass::branch) s.target = sum + random() % 64 * 4;
        made.samples.push_back(s);
    }
    return made;
}

/// Everything that is counted, as text, so that two can be compared.
std::string text_of(const Answers& a) {
    std::ostringstream out;
    for (const Image& i : a.images) out << i.name << ' ' << i.path << '\n';
    for (const Function& f : a.functions) out << f.name << ' ' << f.address << ' ' << f.image << '\n';
    for (const Instruction& i : a.instructions) {
        out << i.address << ' ' << i.function;
        for (const std::uint64_t cost : i.costs) out << ' ' << cost;
        out << '\n';
    }
    for (const Branch& b : a.branches)
        out << b.address << ' ' << b.target << ' ' << static_cast<int>(b.kind) << ' ' << b.taken << ' ' << b.not_taken
            << ' ' << *b.mispredicted << '\n';
    for (const Edge& e : a.edges) out << e.from << ' ' << e.to << ' ' << e.times << '\n';
    for (const Series& s : a.timeline.series) {
        out << s.name << ' ' << s.unit;
        for (const Series::Point& p : s.points) out << ' ' << p.time << ':' << p.value;
        out << '\n';
    }
    for (const Slice& s : a.timeline.slices)
        out << s.track << ' ' << s.begin << ' ' << s.end << ' ' << s.function << ' ' << s.merged << '\n';
    for (const Chart& c : a.charts)
        for (const Chart::Bar& b : c.bars) out << c.title << ' ' << b.label << ' ' << b.value << '\n';
    for (const Table& t : a.tables)
        for (const auto& row : t.rows)
            for (const Cell& cell : row) out << cell.field() << '\n';
    for (const Finding& f : a.health) out << static_cast<int>(f.severity) << ' ' << f.what << '\n';
    return out.str();
}

TEST_F(SpeAnswers, SumsAreThoseOfTheProfile) {
    const Answers a = answers(open(random_file(1, 2000)));
    ASSERT_EQ(a.metrics.size(), 5U);
    EXPECT_EQ(a.metrics[0].name, "samples");
    for (const Metric& m : a.metrics) EXPECT_FALSE(m.exact);
    Costs instructions(5), functions(5);
    for (const Instruction& i : a.instructions)
        for (std::size_t m = 0; m < 5; ++m) instructions[m] += i.costs[m];
    for (const FunctionCosts& f : function_costs(a)) {
        EXPECT_TRUE(f.inclusive.empty());
        for (std::size_t m = 0; m < 5; ++m) functions[m] += f.self[m];
    }
    const Costs all{all_.samples, all_.total, all_.translation, all_.llc_misses, all_.mispredicts};
    EXPECT_EQ(all_.samples, 2000U);
    EXPECT_EQ(instructions, all);
    EXPECT_EQ(functions, all);
    std::uint64_t branches = 0, mispredicted = 0, edges = 0;
    for (const Branch& b : a.branches) {
        branches += b.taken + b.not_taken;
        mispredicted += *b.mispredicted;
    }
    for (const Edge& e : a.edges) edges += e.times;
    EXPECT_EQ(branches, all_.branches);
    EXPECT_EQ(edges, all_.branches);
    EXPECT_EQ(mispredicted, all_.mispredicts);
    EXPECT_TRUE(a.calls.empty());
    double by_cpu = 0, by_thread = 0;
    for (const Series& s : a.timeline.series)
        for (const Series::Point& p : s.points)
            (a.timeline.tracks[s.track].name.starts_with("CPU") ? by_cpu : by_thread) += p.value;
    EXPECT_EQ(by_cpu, 2000);
    EXPECT_EQ(by_thread, 2000);
    EXPECT_TRUE(std::is_sorted(a.instructions.begin(), a.instructions.end(),
                               [](const auto& x, const auto& y) { return x.address < y.address; }));
}

TEST_F(SpeAnswers, DoNotDependOnWorkers) {
    const SampleCapture capture = open(random_file(2, 3000));
    const std::string one = text_of(answers(capture, 1));
    EXPECT_EQ(text_of(answers(capture, 3)), one);
    EXPECT_EQ(text_of(answers(capture, 7)), one);
}

TEST_F(SpeAnswers, PlacesAndBranches) {
    SpeFile made;
    made.samples = {branch(sum, fill, 2), branch(sum, fill, 2 | 1U << 7), branch(sum, sum + 4, 2 | 1U << 6),
                    branch(spin, fill, 2, 2)};
    const Answers a = answers(open(made));
    ASSERT_EQ(a.images.size(), 1U);
    EXPECT_EQ(a.images[0].name, "server");
    EXPECT_EQ(function(a, "sum").address, 0x401000U);
    EXPECT_EQ(function(a, "fill").name, "fill") << "no sample is of it, but branches lead there";
    ASSERT_EQ(a.branches.size(), 2U);
    EXPECT_EQ(a.branches[0].address, 0x401000U);
    EXPECT_EQ(a.branches[0].target, 0x401080U);
    EXPECT_EQ(a.branches[0].kind, Branch::Kind::conditional);
    EXPECT_EQ(a.branches[0].taken, 2U);
    EXPECT_EQ(a.branches[0].not_taken, 1U);
    EXPECT_EQ(a.branches[0].mispredicted, 1U);
    EXPECT_EQ(a.branches[0].seen_taken, Seen::executed);
    EXPECT_EQ(a.branches[1].kind, Branch::Kind::indirect);
    EXPECT_EQ(a.branches[1].target, 0U) << "an indirect branch has no one target";
    EXPECT_EQ(a.branches[1].seen_not_taken, Seen::not_observed) << "samples never show that something did not happen";
    ASSERT_EQ(a.edges.size(), 3U);
    EXPECT_EQ(a.edges[0].to, 0x401004U);
    EXPECT_EQ(a.edges[0].times, 1U);
}

TEST_F(SpeAnswers, Timeline) {
    SpeFile made;
    for (unsigned i = 0; i < 1000; ++i) {
        SpeSample s;
        s.pc = sum;
        s.time = 1000 + i * 10;
        made.samples.push_back(s);
    }
    const Answers a = answers(open(made));
    const Timeline& t = a.timeline;
    EXPECT_EQ(t.axis.unit, "ns");
    EXPECT_EQ(t.axis.end, (1000U + 9990) * 40);
    ASSERT_EQ(t.tracks.size(), 3U);
    EXPECT_EQ(t.tracks[0].name, "CPU 0");
    EXPECT_EQ(t.tracks[2].name, "server 77");
    ASSERT_EQ(t.series.size(), 2U);
    EXPECT_LE(t.series[0].points.size(), SampleTimes::most_bins);
    EXPECT_GT(t.series[0].points.size(), SampleTimes::most_bins / 2 - 1);
    // Thread 77 on CPU 0, 78 on CPU 1, each from the first switch to the end; and the first once more on its own track.
    ASSERT_EQ(t.slices.size(), 3U);
    EXPECT_EQ(a.functions[t.slices[0].function].name, "server 77");
    EXPECT_TRUE(a.functions[t.slices[0].function].synthetic);
    EXPECT_EQ(a.functions[t.slices[1].function].name, "worker 78");
    EXPECT_EQ(a.functions[t.slices[2].function].name, "CPU 0");
}

TEST_F(SpeAnswers, Health) {
    SpeFile made;
    for (unsigned i = 0; i < 40; ++i) made.samples.push_back(branch(sum, fill, 2));
    Answers a = answers(open(made));
    ASSERT_EQ(a.health.size(), 1U);
    EXPECT_EQ(a.health[0].severity, Finding::Severity::good);
    made.collision_cpu = 0;
    a = answers(open(made));
    EXPECT_EQ(a.health[0].severity, Finding::Severity::warning);
    EXPECT_NE(a.health[0].what.find("collided"), std::string::npos);
    EXPECT_NE(a.health[0].todo, "");
    for (const Finding& f : a.health) EXPECT_NE(f.severity, Finding::Severity::good);
}

/// Many short stays are merged, so that the number of slices stays within the limit and every stay is counted.
TEST_F(SpeAnswers, WhatPerfLostIsSaid) {
    SampleCapture capture = open(random_file(3, 10));
    capture.data->lost_records = 5;
    capture.data->loss_count = 2;
    capture.data->lost_bytes = 700;
    const Answers a = answers(capture);
    EXPECT_TRUE(std::any_of(a.health.begin(), a.health.end(), [](const Finding& f) {
        return f.what == "perf lost 5 records about threads and mappings: names may be wrong";
    }));
    GatheredSamples gathered({true, 64});
    const Quality q = quality_of(capture, run_samples(capture, {}, gathered, 1, nullptr, 64));
    EXPECT_EQ(q.lost_events, 5U);
    EXPECT_EQ(q.container_losses, 2U);
    EXPECT_EQ(q.container_lost_bytes, 700U);
}

TEST_F(SpeAnswers, AProgramIsNoCapture) {
    const auto opened = [&](const std::string& bytes) { return open_samples(folder_.write("f", bytes)); };
    EXPECT_FALSE(opened("\177ELF"));
    EXPECT_NE(opened(std::string("\177ELF") + std::string(60, '\0')).error().message.find("is a program or library"),
              std::string::npos);
    ASSERT_TRUE(opened("\177EL"));
    EXPECT_TRUE(opened("\177EL")->bare);
}

TEST_F(SpeAnswers, SlicesAreBounded) {
    SpeFile made;
    made.switches = 500;
    for (unsigned i = 0; i < 100; ++i) {
        SpeSample s;
        s.pc = sum;
        s.time = 1 + i * 100;
        made.samples.push_back(s);
    }
    const SampleCapture capture = open(made);
    const Answers all = answers(capture);
    EXPECT_EQ(all.timeline.resolution, 0U);
    SampleAnswersOptions few;
    few.most_slices = 20;
    const Answers a = answers(capture, 1, few);
    EXPECT_LE(a.timeline.slices.size(), 20U);
    EXPECT_NE(a.timeline.resolution, 0U);
    std::size_t merged = 0;
    for (const Slice& s : a.timeline.slices) merged += s.merged;
    EXPECT_EQ(merged, all.timeline.slices.size());
    EXPECT_GT(merged, 700U);
}

}  // namespace
}  // namespace waymark::analysis
