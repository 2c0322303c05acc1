/// How far samples can be trusted: each statement about a capture, word by word.
#include "waymark/analysis/quality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "analysis/whole_answers.h"
#include "support/spe_capture.h"
#include "support/temporary_folder.h"
#include "waymark/analysis/branches.h"
#include "waymark/analysis/file_branches.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/analysis/spe_tables.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using spe::OperationClass;
using support::SpeFile;
using support::SpeSample;

constexpr std::uint64_t sum_at = 0x400000 + 64, spin_at = sum_at + 0x40, fill_at = sum_at + 0x80;

SpeSample access(std::uint64_t pc, std::uint64_t address, bool store, std::uint32_t cpu = 0) {
    SpeSample s;
    s.cpu = cpu;
    s.pc = pc;
    s.el = pc >> 63 != 0 ? 1 : 0;
    s.type = store ? 1 : 0;
    s.address = address;
    s.total = 20;
    s.issue = 5;
    s.translation = 2;
    return s;
}
SpeSample jump(std::uint64_t pc, std::uint64_t target, std::uint64_t events) {
    SpeSample s;
    s.pc = pc;
    s.el = pc >> 63 != 0 ? 1 : 0;
    s.operation_class = OperationClass::branch;
    s.type = 1;
    s.events = events;
    s.target = target;
    s.total = 10;
    return s;
}

class SampleStatements : public testing::Test {
protected:
    SampleCapture open(const SpeFile& made) {
        auto capture = open_samples(folder_.write("perf.data", made.build()));
        EXPECT_TRUE(capture) << capture.error().message;
        return std::move(*capture);
    }
    void write(
        std::string_view what, const SampleCapture& capture,
        const std::function<void(SampleTotals&)>& change = [](SampleTotals&) {}, bool with_tables = false) {
        folder_.write("root/usr/bin/server", support::server_elf());
        GatheredSamples gathered({true, 64});
        SampleTotals totals = run_samples(capture, {}, gathered, 1, nullptr, 64);
        change(totals);
        Sharing sharing(*gathered.candidates);
        static_cast<void>(run_samples(capture, {}, sharing, 1, nullptr, 64));
        Program program(capture, {{folder_.path() / "root", {}}, {}});
        std::ostream& out = whole_.next(what);
        support::write_answers_text(out, answers_of_samples(capture, totals, gathered, &sharing, program, {}),
                                    folder_.path());
        const Quality q = quality_of(capture, totals);
        out << "why no samples: " << why_no_samples(capture, q) << "\nwhy no address: " << why_no_address(q) << '\n';
        for (const StreamQuality& s : q.streams)
            out << fmt::format(
                "stream {} {} {:#x}: {} bytes, {} records, {} selected, {} without PC, {} damaged, {} "
                "inconsistent, {} lost, {} damaged bytes, {} {} {} {}, {} ns, at least {}\n",
                s.cpu, s.tid, s.midr, s.bytes, s.records, s.selected, s.no_pc, s.damaged, s.inconsistent, s.lost_bytes,
                s.damaged_bytes, s.collided.bytes, s.truncated.bytes, s.partial.bytes, s.overwritten.bytes,
                s.mean_ns.value_or(-1), s.min_interval);
        for (const Sampling& s : q.sampling)
            out << fmt::format("asked {}, interval {}, jitter {}, timestamps {}, physical {}, {} to {}: {}\n", s.asked,
                               interval_text(s), s.jitter, s.timestamps, s.physical_addresses, s.scale_low(),
                               s.scale_high(), fmt::join(s.filters, "; "));
        out << fmt::format("without thread {}, with context {}, without mapping {}, without address {}, clock {}\n",
                           q.without_thread, q.with_context, q.without_mapping, q.without_address, q.clock);
        if (!with_tables) return;
        const ThreadText thread = [](std::uint32_t pid, std::uint32_t tid) { return fmt::format("{}/{}", pid, tid); };
        const ProfileTables tables(gathered.profile, program, thread);
        for (const char* by : {"function", "line", "pc", "file", "thread"})
            for (const std::string& key : {std::string("samples"), profile_sort_keys().back()})
                for (const std::size_t most : {std::size_t{0}, std::size_t{1}}) {
                    const FirstRows rows = tables.rows(by, key, most);
                    support::write_table(out, rows.table, folder_.path());
                    out << "left out " << rows.left_out << '\n';
                }
        for (const bool functions : {false, true})
            support::write_table(out, tables.sources(functions, 0).table, folder_.path());
        support::write_table(out, tables.event_table(), folder_.path());
        support::write_table(out, tables.latency_table(), folder_.path());
        for (const bool pairs : {false, true})
            for (const bool by_samples : {false, true})
                for (const std::size_t most : {std::size_t{0}, std::size_t{1}}) {
                    const FirstRows rows = branch_table(gathered.branches, program, pairs, by_samples, most);
                    support::write_table(out, rows.table, folder_.path());
                    out << "left out " << rows.left_out << '\n';
                }
        const SharingTables shared(program, thread);
        const std::vector<SharedLine> lines = sharing.lines();
        support::write_table(out, shared.summary(lines));
        for (const SharedLine& line : lines) support::write_table(out, shared.places(line));
        for (const bool of_lines : {false, true}) support::write_table(out, shared.accesses(lines, of_lines));
        for (const char* asked : {"", "server", "/usr/bin/server", "other"}) {
            const auto file = file_of_branches(gathered.branches, program, asked);
            out << "branches of '" << asked << "': " << (file ? *file : file.error().message) << '\n';
        }
    }
    TemporaryFolder folder_;
    support::WholeAnswers whole_;
};

/// Two threads write parts of a line, a third line has physical addresses; branches, and code of the kernel.
SpeFile several() {
    SpeFile made;
    for (std::uint32_t i = 0; i < 12; ++i) {
        made.samples.push_back(access(sum_at + 4 * (i % 3), 0x10000 + 8 * (i % 2), i % 3 == 0, i % 2));
        made.samples.back().time = 100 + 10 * i;
        made.samples.back().events |= 1U << (i % 12);
        if (i % 4 == 1) made.samples.back().source = static_cast<std::uint8_t>(i);
    }
    made.samples[5].physical = 0x80000040;
    made.samples[6].context = 77;
    made.samples[7].address.reset();
    for (const std::uint64_t events : {2U, 2U | 1U << 7, 2U | 1U << 6})
        made.samples.push_back(jump(spin_at, fill_at, events));
    made.samples.push_back(jump(fill_at, sum_at, 2));
    SpeSample kernel = access(0xffff800008001000, 0xffff000000001000, true);
    kernel.el = 1;
    made.samples.push_back(kernel);
    made.samples.push_back(access(0x10, 0x20, false));
    for (std::size_t i = 12; i < made.samples.size(); ++i) made.samples[i].time = 300 + i;
    return made;
}

TEST_F(SampleStatements, OfSeveralThreads) {
    write(
        "as recorded", open(several()), [](SampleTotals&) {}, true);
}

/// Six places use one line, the latencies are all from 0 on, and branches are in two files.
TEST_F(SampleStatements, OfManyPlaces) {
    SpeFile made;
    constexpr std::uint64_t places[] = {sum_at, spin_at, fill_at, 0xffff800008001000, 0x10, 0x20};
    for (std::uint32_t i = 0; i < 24; ++i) {
        made.samples.push_back(access(places[i % 6], 0x20000 + 8 * (i % 2), i % 4 < 2, i % 2));
        made.samples.back().total = static_cast<std::uint16_t>(i < 20 ? i : 1U << (i - 16));
        made.samples.back().time = 100 + 10 * i;
    }
    for (std::uint64_t i = 0; i < 5; ++i) {
        made.samples.push_back(jump(i < 3 ? spin_at : 0xffff800008001010, fill_at, 2));
        made.samples.back().time = 1000 + i;
    }
    write(
        "six places", open(made), [](SampleTotals&) {}, true);
}

TEST_F(SampleStatements, OfAFileWithoutDescriptions) {
    SpeFile made = several();
    made.midr = 0;
    made.config = 0x1;
    write("no filters, core not known", open(made));
}

TEST_F(SampleStatements, OfLosses) {
    SpeFile made = several();
    made.midr = 0x410fd0c0;  // a Neoverse N1 with errata
    made.collision_cpu = 1;
    SampleCapture capture = open(made);
    for (const std::uint64_t n : {1U, 3U}) {
        capture.data->lost_records = n;
        capture.data->loss_count = n;
        capture.data->lost_bytes = 100 * n;
        capture.data->counts[5] = n;
        capture.data->unfinished = n == 3;
        write(fmt::format("{} of each", n), capture, [&](SampleTotals& totals) {
            for (StreamTotals& s : totals.streams) {
                s.totals.lost_bytes = 4 * n;
                s.totals.damaged_bytes = n;
                s.missing_bytes = 16 * n;
                s.unread_bytes = 64 * n;
            }
            totals.errors.push_back({Errc::unreadable, "it cannot be read"});
        });
    }
    capture.damage.push_back({Errc::bad_format, "a piece is damaged"});
    for (auto& range : capture.data->aux) range.flags = 0xf;
    write("every flag", capture);
}

TEST_F(SampleStatements, WhyThereAreNone) {
    const auto why = [](const SampleCapture& capture) { return why_no_samples(capture, quality_of(capture, {})); };
    SpeFile nothing;
    SampleCapture capture = open(nothing);
    EXPECT_EQ(
        why(capture),
        "the unit wrote nothing (no AUXTRACE record): no code ran where it sampled, its filters excluded everything, "
        "or the core's SPE is off for this exception level (waymark spe explain)");
    capture.data->unfinished = true;
    EXPECT_EQ(why(capture), "the recorder was ended before it wrote any sample into the file");
    capture.data->loss_count = 1;
    EXPECT_EQ(
        why(capture),
        "the readable part of the file has no trace; whether the unit wrote any is not known: copy the whole file "
        "again, or record again");
    nothing.info = false;
    capture = open(nothing);
    EXPECT_EQ(
        why(capture),
        "the file contains no trace of a hardware unit (no AUXTRACE_INFO record): was it recorded with perf record "
        "-e arm_spe// ?");
    capture.data->loss_count = 1;
    EXPECT_EQ(
        why(capture),
        "the AUXTRACE_INFO record, which describes the unit that traced, is in the missing or damaged part of the "
        "file: copy the whole file again, or record again");
    EXPECT_EQ(why(*open_samples(folder_.write("zeros", std::string(100, '\0')))),
              "no record found: the file is neither perf.data nor an SPE buffer");
    Quality quality;
    capture = open(several());
    EXPECT_EQ(why_no_samples(capture, quality), "the file was cut: it has the headers of trace, but no bytes of trace");
    quality.streams.resize(2);
    quality.streams[0].bytes = 1000;
    quality.streams[1].bytes = 234;
    EXPECT_EQ(why_no_samples(capture, quality), "no record in 1,234 bytes of trace: they are damaged, or only padding");
    quality.records = quality.streams[0].records = quality.streams[0].no_pc = 1500;
    --quality.streams[0].no_pc;
    EXPECT_EQ(why_no_samples(capture, quality),
              "none of the 1,500 records is from the requested CPUs, threads and functions");
    ++quality.streams[0].no_pc;
    EXPECT_EQ(why_no_samples(capture, quality),
              "none of the 1,500 records contains a PC: the file is not an SPE buffer, or is badly damaged");
}

TEST_F(SampleStatements, FiltersAreNamed) {
    const auto filters = [&](std::uint64_t config, std::uint64_t config1 = 0, std::uint64_t config2 = 0,
                             std::uint64_t config3 = 0, std::uint64_t config4 = 0, std::uint64_t flags = 0) {
        SampleCapture capture = open(several());
        capture::perf::Attr& attr = capture.data->attrs.front();
        attr.config = config;
        attr.config1 = config1;
        attr.config2 = config2;
        attr.config3 = config3;
        attr.config4 = config4;
        attr.flags = flags;
        const Quality q = quality_of(capture, {});
        return q.sampling.empty() ? "none" : fmt::format("{}", fmt::join(q.sampling.front().filters, "; "));
    };
    const auto bit = [](unsigned n) { return std::uint64_t{1} << n; };
    EXPECT_EQ(filters(0), "");
    EXPECT_EQ(filters(bit(32)), "branches");
    EXPECT_EQ(filters(bit(33)), "loads");
    EXPECT_EQ(filters(bit(34)), "stores");
    EXPECT_EQ(filters(bit(35)), "discard: nothing is written");
    EXPECT_EQ(filters(bit(36)), "filter masks 0x1 (config bits 36 to 42)");
    EXPECT_EQ(filters(bit(39)), "SIMD");
    EXPECT_EQ(filters(bit(40)), "filter masks 0x10 (config bits 36 to 42)");
    EXPECT_EQ(filters(bit(41)), "floating point");
    EXPECT_EQ(filters(bit(42)), "filter masks 0x40 (config bits 36 to 42)");
    EXPECT_EQ(filters(bit(43)), "");
    EXPECT_EQ(filters(0, 0x80), "events 0x80 all set");
    EXPECT_EQ(filters(0, 0, 0xf01e), "latency at least 30 cycles");
    EXPECT_EQ(filters(0, 0, 0xf000), "");
    EXPECT_EQ(filters(0, 0, 0, 0x40), "events 0x40 all clear");
    EXPECT_EQ(filters(0, 0, 0, 0, 0x3), "data sources but 0x3");
    EXPECT_EQ(filters(0, 0, 0, 0, 0, bit(4)), "not user space");
    EXPECT_EQ(filters(0, 0, 0, 0, 0, bit(5)), "not the kernel");
    EXPECT_EQ(
        filters(bit(32) | bit(34), 1, 2, 3, 4, 0x30),
        "branches or stores; events 0x1 all set; events 0x3 all clear; latency at least 2 cycles; data sources but "
        "0x4; not user space; not the kernel");
}

TEST(CoreNames, SayTheRevisionAndWhetherTheCoreIsAModel) {
    EXPECT_EQ(core_name(0), "not known");
    EXPECT_EQ(core_name(0x413fd0c1), "Neoverse N1 r3p1");
    EXPECT_EQ(core_name(0x41000fff), "implementer 0x41 part 0x0ff r0p15");
    EXPECT_EQ(core_name(0x41000ff2), "implementer 0x41 part 0x0ff r0p2");
    EXPECT_EQ(core_name(0, true), "modelled");
    EXPECT_EQ(core_name(0x413fd0c1, true), "modelled (near Neoverse N1)");
}

TEST(Errata, HoldUpToTheRevisionThatMendsThem) {
    const auto numbers = [](std::uint32_t midr) {
        std::string out;
        for (const Erratum& e : sampling_errata(midr)) out += fmt::format("{} ", e.number);
        return out;
    };
    EXPECT_EQ(numbers(0x410fd0c0), "1694299 1912195 ");
    EXPECT_EQ(numbers(0x413fd0cf), "1694299 1912195 ");
    EXPECT_EQ(numbers(0x414fd0c0), "1694299 1912195 ");
    EXPECT_EQ(numbers(0x414fd0c1), "1912195 ");
    EXPECT_EQ(numbers(0x415fd0c0), "1912195 ");
    EXPECT_EQ(numbers(0x410fd490), "");
    EXPECT_EQ(numbers(0x420fd0c0), "");
}

TEST(Intervals, SayWhetherTheyChanged) {
    Sampling s;
    s.interval = s.longest = 1024;
    EXPECT_EQ(interval_text(s), "1,024");
    s.longest = 4096;
    EXPECT_EQ(interval_text(s), "1,024 to 4,096 (it changed)");
    EXPECT_EQ(s.scale_low(), 1025);
    EXPECT_EQ(s.scale_high(), 4097);
    s.jitter = true;
    EXPECT_EQ(s.scale_high(), 4224.5);
    Quality q;
    EXPECT_EQ(why_no_address(q), "");
    q.without_address = 5;
    EXPECT_EQ(why_no_address(q), "");
    q.sve_without_address = 3;
    EXPECT_EQ(why_no_address(q), "3 of SVE; 2 others");
    q.modelled = true;
    EXPECT_EQ(why_no_address(q), "3 of SVE: QEMU reports to plugins only the addresses of LDR, STR and LD1R; 2 others");
    q.without_address = 3;
    EXPECT_EQ(why_no_address(q), "3 of SVE: QEMU reports to plugins only the addresses of LDR, STR and LD1R");
}

}  // namespace
}  // namespace waymark::analysis
