/// Answers from samples made by hand, with known results.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/sanitized.h"
#include "support/spe_capture.h"
#include "support/temporary_folder.h"
#include "waymark/analysis/branches.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/program.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/analysis/sharing.h"

namespace waymark::analysis {
namespace {

using spe::OperationClass;
using support::SpeFile;
using support::SpeSample;

// The segment begins at file offset 64, where the ELF header ends, so that is 0x400000.
constexpr std::uint64_t loaded = 0x400000 + 64 - 0x1000, sum = loaded + 0x1000, spin = sum + 0x40, fill = sum + 0x80;

SpeSample load(std::uint64_t pc, std::uint16_t total, std::uint64_t address, std::uint8_t source = 0) {
    SpeSample s;
    s.pc = pc;
    s.total = total;
    s.issue = static_cast<std::uint16_t>(total / 4);
    s.address = address;
    s.source = source;
    s.time = 100;
    return s;
}
SpeSample store(std::uint64_t pc, std::uint64_t address, std::uint32_t cpu = 0) {
    SpeSample s = load(pc, 5, address);
    s.type = 1;
    s.source.reset();
    s.cpu = cpu;
    return s;
}
SpeSample branch(std::uint64_t pc, std::uint64_t target, std::uint64_t events, std::uint8_t type = 1) {
    SpeSample s;
    s.pc = pc;
    s.operation_class = OperationClass::branch;
    s.type = type;
    s.events = events;
    s.target = target;
    s.total = 10;
    s.issue = 8;
    return s;
}

class SampleAnswers : public testing::Test {
protected:
    SampleCapture open(const SpeFile& made) { return open(made.build()); }
    SampleCapture open(const std::vector<std::uint8_t>& bytes) {
        const auto path = folder_.write("perf.data", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        auto capture = open_samples(path);
        EXPECT_TRUE(capture) << capture.error().message;
        return std::move(*capture);
    }
    ProgramOptions symfs() {
        const auto elf = support::server_elf();
        folder_.write("root/usr/bin/server", {reinterpret_cast<const char*>(elf.data()), elf.size()});
        return {{folder_.path() / "root", {}}, {}};
    }
    TemporaryFolder folder_;
};

TEST_F(SampleAnswers, SumsOfAPlace) {
    SpeFile made;
    made.samples = {load(sum, 40, 0x10000, 0xe), load(sum, 20, 0x10008, 0), load(spin, 8, 0x20000)};
    made.samples[0].translation = 7;
    made.samples[0].events = 2 | 1U << 5 | 1U << 3 | 1U << 9;
    made.samples[1].translation = 1;
    made.samples[1].events = 0;  // not retired
    const SampleCapture capture = open(made);
    Profile profile;
    const SampleTotals totals = run_samples(capture, {}, profile, 1);
    EXPECT_EQ(totals.selected(), 3U);
    ASSERT_EQ(profile.places().size(), 2U);
    EXPECT_EQ(profile.places()[0].pc, sum);
    const Measures& m = profile.measures()[0];
    EXPECT_EQ(m.samples, 2U);
    EXPECT_EQ(m.total, 60U);
    EXPECT_EQ(m.issue, 15U);
    EXPECT_EQ(m.execution, 45U);
    EXPECT_EQ(m.translation, 8U);
    EXPECT_EQ(m.walks, 1U);
    EXPECT_EQ(m.walk_translation, 7U);
    EXPECT_EQ(m.walk_total, 40U);
    EXPECT_EQ(m.l1_misses, 1U);
    EXPECT_EQ(m.llc_misses, 1U);
    EXPECT_EQ(m.not_retired, 1U);
    EXPECT_EQ(m.loads, 2U);
    EXPECT_EQ(m.longest, 40U);
    ASSERT_EQ(profile.sources().size(), 3U);  // two of the first place, one of the second
    EXPECT_EQ(profile.sources()[0].code, 0xe);
    EXPECT_EQ(profile.sources()[0].midr, 0x410fd490U);
    EXPECT_EQ(profile.source_sums()[0].total, 40U);
    ASSERT_EQ(profile.threads().size(), 1U);
    EXPECT_EQ(profile.threads().begin()->first, (Profile::Thread{77, 77}));
}

TEST_F(SampleAnswers, LatencyBucketsAndSaturation) {
    SpeFile made;
    for (const unsigned total : {0U, 1U, 2U, 3U, 4U, 4095U, 4095U})
        made.samples.push_back(load(sum, static_cast<std::uint16_t>(total), 0x1000));
    Profile profile;
    static_cast<void>(run_samples(open(made), {}, profile, 1));
    const auto& loads = profile.latency()[0];
    EXPECT_EQ(loads[0], 1U);
    EXPECT_EQ(loads[1], 1U);
    EXPECT_EQ(loads[2], 2U);
    EXPECT_EQ(loads[3], 1U);
    EXPECT_EQ(loads[12], 2U);
    EXPECT_EQ(profile.saturated(), 2U);
    // two samples of the first place, one of the second
    made.samples.push_back(load(sum, 5000, 0x1000));
    made.samples.push_back(load(sum, 65535, 0x1000));
    Profile wide;
    static_cast<void>(run_samples(open(made), {}, wide, 1));
    EXPECT_EQ(wide.saturated(), 1U);
}

TEST(Wilson, KnownIntervals) {
    using answers::Interval;
    const Interval half = answers::wilson_95(50, 100);
    EXPECT_NEAR(half.low, 0.4038, 0.0001);
    EXPECT_NEAR(half.high, 0.5962, 0.0001);
    const Interval none = answers::wilson_95(0, 10);
    EXPECT_EQ(none.low, 0);
    EXPECT_NEAR(none.high, 0.2775, 0.0001);
    EXPECT_EQ(answers::wilson_95(0, 0).high, 1);
}

TEST_F(SampleAnswers, FunctionsThroughTheMapping) {
    SpeFile made;
    made.samples = {load(sum + 4, 1, 0), load(fill, 1, 0)};
    const SampleCapture capture = open(made);
    Profile profile;
    static_cast<void>(run_samples(capture, {}, profile, 1));
    Program program(capture, symfs());
    const auto code = program.find(profile.places()[0].mapping, sum + 4);
    EXPECT_EQ(program.function_text(code.function), "sum");
    ASSERT_TRUE(code.address);
    EXPECT_EQ(code.address->value, 0x401004U);
    EXPECT_EQ(program.function_text(program.find(profile.places()[1].mapping, fill).function), "fill");
    EXPECT_EQ(program.function_text(program.find(profile.places()[0].mapping, sum + 0x400).function), "fill+0x80?");
}

TEST_F(SampleAnswers, AMissingFileIsNamed) {
    SpeFile made;
    made.samples = {load(sum, 1, 0)};
    const SampleCapture capture = open(made);
    Program program(capture, {{folder_.path() / "nothing", {}}, {}});
    const auto code = program.find(2, sum);
    EXPECT_EQ(program.function_text(code.function), "(no symbol) server");
    EXPECT_NE(program.file(code.file).problem.find("/usr/bin/server was not found in"), std::string::npos);
}

TEST_F(SampleAnswers, KernelNamesFromKallsyms) {
    SpeFile made;
    made.samples = {load(0xffff800008001010, 1, 0)};
    made.samples[0].el = 2;
    const SampleCapture capture = open(made);
    Profile profile;
    static_cast<void>(run_samples(capture, {}, profile, 1));
    EXPECT_EQ(profile.places()[0].mapping, 1U);
    EXPECT_EQ(profile.places()[0].exception_level, 2);
    const auto kallsyms = folder_.write("kallsyms",
                                        "ffff800008000000 T _text\nffff800008001000 t do_work\nbad line\n"
                                        "ffff800008001100 T after\t[module]\n");
    Program program(capture, {{}, kallsyms});
    EXPECT_EQ(program.function_text(program.find(1, 0xffff800008001010).function), "do_work");
    EXPECT_EQ(program.function_text(program.find(1, 0xffff800008001104).function), "after");
    EXPECT_TRUE(program.file(program.find(1, 0xffff800008001010).file).symbols);
    EXPECT_EQ(program.file(program.find(1, 0xffff800008001010).file).path, kallsyms.string());
}

TEST_F(SampleAnswers, Selections) {
    SpeFile made;
    made.samples = {load(sum, 1, 0), load(spin, 1, 0), load(fill, 1, 0)};
    made.samples[2].cpu = 1;
    const SampleCapture capture = open(made);
    const auto count = [&](const Selection& selection) {
        Profile profile;
        const std::uint64_t selected = run_samples(capture, selection, profile, 1).selected();
        EXPECT_EQ(profile.all().samples, selected);
        return selected;
    };
    EXPECT_EQ(count({}), 3U);
    EXPECT_EQ(count({{1}, {}, {}, {}}), 1U);
    EXPECT_EQ(count({{}, {77}, {}, {}}), 2U);
    EXPECT_EQ(count({{}, {}, {"worker"}, {}}), 1U);
    EXPECT_EQ(count({{}, {}, {"nobody"}, {}}), 0U);
    EXPECT_EQ(count({{}, {}, {}, [](std::uint32_t, std::uint64_t pc) { return pc == spin; }}), 1U);
}

/// Samples of every kind on four CPUs.
SpeFile random_file(unsigned seed, std::size_t count) {
    std::mt19937 random(seed);
    SpeFile made;
    made.pieces = 3;
    for (std::size_t i = 0; i < count; ++i) {
        SpeSample s;
        s.cpu = random() % 4;
        s.time = 100 + i;
        s.pc = sum + random() % 64 * 4;
        s.operation_class = static_cast<OperationClass>(random() % 3);
        s.type = static_cast<std::uint8_t>(random());
        s.events = random();
        s.total = static_cast<std::uint16_t>(random() % 500);
        s.issue = static_cast<std::uint16_t>(random() % 100);
        if (s.operation_class == OperationClass::load_store) {
            s.address = 0x10000 + random() % 4096;
            s.translation = static_cast<std::uint16_t>(random() % 9);
            if (random() % 2 != 0) s.source = static_cast<std::uint8_t>(random() % 16);
        }
        if (s.operation_class == OperationClass::branch) s.target = sum + random() % 64 * 4;
        if (random() % 3 == 0) s.context = 77 + random() % 2;
        made.samples.push_back(s);
    }
    return made;
}

template <class Key, class Value>
std::vector<std::pair<Key, Value>> sorted(const std::vector<Key>& keys, const std::vector<Value>& values, auto less) {
    std::vector<std::pair<Key, Value>> out;
    for (std::size_t i = 0; i < keys.size(); ++i) out.emplace_back(keys[i], values[i]);
    std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return less(a.first, b.first); });
    return out;
}

void expect_same(const Profile& a, const Profile& b) {
    EXPECT_EQ(a.all(), b.all());
    EXPECT_EQ(a.threads(), b.threads());
    EXPECT_EQ(a.latency(), b.latency());
    EXPECT_EQ(a.vector_lengths(), b.vector_lengths());
    EXPECT_EQ(a.saturated(), b.saturated());
    EXPECT_EQ(sorted(a.places(), a.measures(), std::less<>()), sorted(b.places(), b.measures(), std::less<>()));
    const auto sources = [](const Profile& p) {
        std::vector<std::tuple<SampledPlace, std::uint32_t, std::uint16_t, std::uint64_t, std::uint64_t>> out;
        for (std::size_t i = 0; i < p.sources().size(); ++i)
            out.emplace_back(p.places()[p.sources()[i].place], p.sources()[i].midr, p.sources()[i].code,
                             p.source_sums()[i].samples, p.source_sums()[i].total);
        std::sort(out.begin(), out.end());
        return out;
    };
    EXPECT_EQ(sources(a), sources(b));
}

TEST_F(SampleAnswers, WorkersGiveWhatOneGives) {
    for (unsigned seed = 1; seed <= sized(3U, 1U); ++seed) {
        SCOPED_TRACE(seed);
        const SampleCapture capture = open(random_file(seed, 3000));
        Profile one;
        const SampleTotals totals = run_samples(capture, {}, one, 1);
        Branches branches;
        static_cast<void>(run_samples(capture, {}, branches, 1));
        LineCandidates candidates(64);
        static_cast<void>(run_samples(capture, {}, candidates, 1));
        Sharing sharing(candidates);
        static_cast<void>(run_samples(capture, {}, sharing, 1));
        EXPECT_FALSE(sharing.lines().empty());
        for (const unsigned workers : {2U, 3U, 7U}) {
            SCOPED_TRACE(workers);
            Profile many;
            const SampleTotals again = run_samples(capture, {}, many, workers);
            expect_same(one, many);
            EXPECT_EQ(totals.records(), again.records());
            EXPECT_EQ(totals.with_context, again.with_context);
            for (std::size_t i = 0; i < totals.streams.size(); ++i) {
                EXPECT_EQ(totals.streams[i].totals, again.streams[i].totals);
                EXPECT_EQ(totals.streams[i].last_ticks, again.streams[i].last_ticks);
            }
            Branches more_branches;
            static_cast<void>(run_samples(capture, {}, more_branches, workers));
            EXPECT_EQ(sorted(branches.pairs(), branches.sums(), std::less<>()),
                      sorted(more_branches.pairs(), more_branches.sums(), std::less<>()));
            LineCandidates more_candidates(64);
            static_cast<void>(run_samples(capture, {}, more_candidates, workers));
            Sharing more_sharing(more_candidates);
            static_cast<void>(run_samples(capture, {}, more_sharing, workers));
            const auto a = sharing.lines(), b = more_sharing.lines();
            ASSERT_EQ(a.size(), b.size());
            for (std::size_t i = 0; i < a.size(); ++i) {
                EXPECT_EQ(a[i].key, b[i].key);
                EXPECT_EQ(a[i].kind, b[i].kind);
                EXPECT_EQ(a[i].apart, b[i].apart);
                EXPECT_EQ(a[i].accesses, b[i].accesses);
            }
        }
    }
}

TEST_F(SampleAnswers, PartsOfAStream) {
    SpeFile file;
    for (unsigned i = 0; i < 4000; ++i) {
        SpeSample& s = file.samples.emplace_back();
        s.time = i + 1;
        s.pc = 0x401000 + i % 50 * 4;
        s.total = static_cast<std::uint16_t>(i % 300);
    }
    const auto check = [](const SampleCapture& capture) {
        Profile one;
        const SampleTotals totals = run_samples(capture, {}, one, 1);
        for (const std::uint64_t part_bytes : {1U, 100U, 10'000U}) {
            SCOPED_TRACE(part_bytes);
            Profile many;
            const SampleTotals again = run_samples(capture, {}, many, 3, nullptr, part_bytes);
            expect_same(one, many);
            EXPECT_EQ(totals.streams[0].totals, again.streams[0].totals);
            EXPECT_EQ(totals.streams[0].selected, again.streams[0].selected);
            EXPECT_EQ(totals.streams[0].first_ticks, again.streams[0].first_ticks);
            EXPECT_EQ(totals.streams[0].last_ticks, again.streams[0].last_ticks);
        }
        return totals.records();
    };
    file.pieces = 40;  // each begins with a record
    EXPECT_EQ(check(open(file)), 4000U);
    for (file.pieces = 41; file.pieces < 48; ++file.pieces) {  // they begin anywhere
        SCOPED_TRACE(file.pieces);
        EXPECT_EQ(check(open(file)), 4000U);
    }
}

TEST_F(SampleAnswers, JoiningIsAssociative) {
    std::vector<Profile> parts(3);
    for (unsigned i = 0; i < 3; ++i) static_cast<void>(run_samples(open(random_file(10 + i, 500)), {}, parts[i], 1));
    Profile left, right, inner;
    left.join(parts[0]);  // (0 + 1) + 2
    left.join(parts[1]);
    left.join(parts[2]);
    inner.join(parts[2]);  // 0 + (2 + 1)
    inner.join(parts[1]);
    right.join(parts[0]);
    right.join(inner);
    expect_same(left, right);
}

TEST_F(SampleAnswers, ThreadsByContextAndBySwitches) {
    SpeFile made;
    made.samples = {load(sum, 1, 0), load(sum, 1, 0), load(sum, 1, 0)};
    made.samples[1].context = 78;
    made.samples[2].cpu = 1;
    const SampleCapture capture = open(made);
    Profile profile;
    const SampleTotals totals = run_samples(capture, {}, profile, 1);
    EXPECT_EQ(totals.with_context, 1U);
    EXPECT_EQ(totals.without_thread, 0U);
    EXPECT_EQ(profile.threads().at({77, 77}).samples, 1U);
    EXPECT_EQ(profile.threads().at({77, 78}).samples, 2U);
}

TEST_F(SampleAnswers, FalseSharingIsToldFromTrue) {
    SpeFile made;
    const auto read_by = [](std::uint64_t pc, std::uint64_t address, std::uint32_t cpu, std::uint8_t source) {
        SpeSample s = load(pc, 50, address, source);
        s.cpu = cpu;
        return s;
    };
    // One thread writes +0, another reads +8; each only ever touches its own place.
    for (int i = 0; i < 3; ++i) made.samples.push_back(store(fill, 0x10000));
    made.samples.push_back(read_by(sum, 0x10008, 1, 0x9));
    // Both write +0.
    made.samples.push_back(store(fill, 0x20000));
    made.samples.push_back(store(fill, 0x20000, 1));
    // Both threads only read: sharing without cost. One thread alone: no sharing.
    made.samples.push_back(store(fill, 0x30000));
    made.samples.push_back(read_by(sum, 0x30000, 1, 0));
    made.samples.push_back(read_by(sum, 0x30010, 1, 0));
    // Read by both: no sharing that costs anything. One thread alone: none at all.
    made.samples.push_back(read_by(sum, 0x40000, 0, 0));
    made.samples.push_back(read_by(sum, 0x40000, 1, 0));
    made.samples.push_back(store(fill, 0x50000));
    made.samples.push_back(read_by(sum, 0x50008, 0, 0));
    const SampleCapture capture = open(made);
    LineCandidates candidates(64);
    static_cast<void>(run_samples(capture, {}, candidates, 1));
    Sharing sharing(candidates);
    static_cast<void>(run_samples(capture, {}, sharing, 1));
    const std::vector<SharedLine> lines = sharing.lines();
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0].key, (LineKey{0x10000, 77, false}));
    EXPECT_EQ(lines[0].kind, SharedLine::Kind::false_sharing);
    EXPECT_EQ(lines[0].stores, 3U);
    EXPECT_EQ(lines[0].loads, 1U);
    EXPECT_EQ(lines[0].from_other, 1U);
    EXPECT_EQ(lines[0].apart, 1U);
    EXPECT_EQ(lines[0].writers, 1U);
    EXPECT_EQ(lines[1].kind, SharedLine::Kind::mixed);
    EXPECT_EQ(lines[1].key.line, 0x30000U);
    EXPECT_EQ(lines[2].kind, SharedLine::Kind::true_sharing);
    EXPECT_EQ(lines[2].key.line, 0x20000U);
    // Lines of 8 bytes: the former line is several lines.
    LineCandidates small(8);
    static_cast<void>(run_samples(capture, {}, small, 1));
    Sharing apart(small);
    static_cast<void>(run_samples(capture, {}, apart, 1));
    EXPECT_EQ(apart.lines().size(), 2U);
}

TEST_F(SampleAnswers, PhysicalLinesAreOneAcrossProcesses) {
    SpeFile made;
    made.samples = {store(fill, 0x7000), store(fill, 0x9008)};
    made.samples[0].physical = 0x80001000;
    made.samples[1].physical = 0x80001008;
    made.samples[1].context = 500;  // a thread of an unknown process
    const SampleCapture capture = open(made);
    LineCandidates candidates(64);
    static_cast<void>(run_samples(capture, {}, candidates, 1));
    Sharing sharing(candidates);
    static_cast<void>(run_samples(capture, {}, sharing, 1));
    ASSERT_EQ(sharing.lines().size(), 1U);
    EXPECT_EQ(sharing.lines()[0].key, (LineKey{0x80001000, 0, true}));
    EXPECT_EQ(sharing.lines()[0].kind, SharedLine::Kind::false_sharing);
}

TEST_F(SampleAnswers, BranchPairs) {
    SpeFile made;
    made.samples = {branch(sum, fill, 2), branch(sum, fill, 2 | 1U << 7), branch(sum, sum + 4, 2 | 1U << 6),
                    branch(spin, fill, 2, 2)};
    Branches branches;
    static_cast<void>(run_samples(open(made), {}, branches, 1));
    ASSERT_EQ(branches.pairs().size(), 3U);
    EXPECT_EQ(branches.sums()[0], (BranchSum{2, 1, 0, 0, 20}));
    EXPECT_EQ(branches.sums()[1], (BranchSum{1, 0, 1, 0, 10}));
    EXPECT_EQ(branches.pairs()[1].to, sum + 4);
    EXPECT_EQ(branches.all().samples, 4U);
}

TEST_F(SampleAnswers, QualityOfAFile) {
    SpeFile made;
    made.samples = {load(sum, 1, 0), load(sum, 1, 0)};
    made.samples[1].time = 200;
    made.midr = 0x413fd0c1;  // Neoverse N1 r3p1
    made.collision_cpu = 0;
    made.config2 = 30;
    made.config1 = 0x80;
    const SampleCapture capture = open(made);
    Profile profile;
    const Quality q = quality_of(capture, run_samples(capture, {}, profile, 1));
    ASSERT_EQ(q.streams.size(), 1U);
    EXPECT_EQ(q.streams[0].records, 2U);
    EXPECT_EQ(q.streams[0].collided.stretches, 1U);
    ASSERT_TRUE(q.streams[0].mean_ns);
    EXPECT_EQ(*q.streams[0].mean_ns, 4000);  // 100 ticks of 40 ns
    ASSERT_EQ(q.sampling.size(), 1U);
    EXPECT_EQ(q.sampling[0].interval, 1024U);
    EXPECT_EQ(q.sampling[0].scale_low(), 1025);
    EXPECT_EQ(q.sampling[0].scale_high(), 1152.5);
    EXPECT_EQ(q.sampling[0].filters,
              (std::vector<std::string>{"branches or loads", "events 0x80 all set", "latency at least 30 cycles"}));
    EXPECT_EQ(q.errata.size(), 2U);
    EXPECT_EQ(q.lost_bytes() + q.damaged_bytes(), 0U);
}

TEST(Errata, ByRevision) {
    EXPECT_EQ(sampling_errata(0x413fd0c1).size(), 2U);  // r3p1
    EXPECT_EQ(sampling_errata(0x414fd0c0).size(), 2U);  // r4p0
    ASSERT_EQ(sampling_errata(0x414fd0c1).size(), 1U);  // r4p1
    EXPECT_EQ(sampling_errata(0x414fd0c1)[0].number, 1912195U);
    EXPECT_TRUE(sampling_errata(0x410fd490).empty());
    EXPECT_EQ(core_name(0x413fd0c1), "Neoverse N1 r3p1");
    EXPECT_EQ(core_name(0), "not known");
}

TEST_F(SampleAnswers, CutAndDamagedFilesAreCountedAndEnd) {
    const auto whole = random_file(5, 200).build();
    for (std::size_t length = 0; length < whole.size(); length += 97) {
        SCOPED_TRACE(length);
        const auto path = folder_.write("cut", {reinterpret_cast<const char*>(whole.data()), length});
        auto capture = open_samples(path);
        if (!capture) continue;
        Profile profile;
        const SampleTotals totals = run_samples(*capture, {}, profile, 2);
        EXPECT_EQ(totals.selected(), profile.all().samples);
        EXPECT_LE(profile.all().samples, capture->bare ? 1000U : 200U);
    }
    std::mt19937 random(1);
    for (unsigned i = 0; i < 60; ++i) {
        SCOPED_TRACE(i);
        auto bytes = whole;
        for (unsigned n = 0; n < 20; ++n)
            bytes[200 + random() % (bytes.size() - 200)] = static_cast<std::uint8_t>(random());
        const auto path = folder_.write("bad", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        auto capture = open_samples(path);
        if (!capture) continue;
        Profile profile;
        const SampleTotals totals = run_samples(*capture, {}, profile, 2);
        const Quality q = quality_of(*capture, totals);
        EXPECT_EQ(q.selected, profile.all().samples);
        Program program(*capture, {});
        for (const SampledPlace& place : profile.places()) static_cast<void>(program.find(place.mapping, place.pc));
    }
}

TEST_F(SampleAnswers, AFileWithoutTraceIsNoError) {
    SpeFile made;
    const SampleCapture empty = open(made);
    Profile profile;
    EXPECT_EQ(run_samples(empty, {}, profile, 4).selected(), 0U);
    const auto nothing = open_samples(folder_.write("empty", ""));
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().code, Errc::bad_format);
    // Not perf.data, but a buffer's bytes, or bytes that could be taken for a buffer's.
    auto bare = open_samples(folder_.write("zeros", std::string(100, 0)));
    ASSERT_TRUE(bare);
    EXPECT_TRUE(bare->bare);
    EXPECT_EQ(run_samples(*bare, {}, profile, 4).records(), 0U);
}

}  // namespace
}  // namespace waymark::analysis
