/// Whole perf.data files: every record, header and figure of recordings that contain each kind of event, beside
/// approved text in tests/record/whole. WM_UPDATE_APPROVED=1 writes the text: review it like code. That the file reads
/// back to what ran is tested in perf_recorder_test.cc and by recordings under QEMU.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "../../src/record/perf_recorder_options.h"
#include "record/run_parts.h"
#include "support/approved.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/capture/byte_file.h"
#include "waymark/etm4/unit.h"
#include "waymark/pft/unit.h"
#include "waymark/record/perf_recorder.h"

namespace waymark::record {
namespace {

namespace perf = capture::perf;
using support::joined;
using support::Parts;
using support::signal_32;
using support::signal_64;
using support::Words;

constexpr std::uint32_t nop = 0xd503201f, ret = 0xd65f03c0, svc = 0xd4000001, ldr = 0xf9400020, brk = 0xd4200000;
constexpr std::uint32_t call = words::system_call, thread_end = words::thread_end;

std::string text(const PerfRecorded& r) {
    return fmt::format(
        "instructions {} ranges {} trace {} aux {} lost {} processes {} threads {} cpus {} began {} stopped {} known "
        "{} "
        "{} replaced {}\n",
        r.instructions, r.ranges, r.trace_bytes, r.aux_ranges, r.lost_bytes, r.processes, r.threads, r.cpus, r.began,
        r.stopped, r.start_known, r.stop_known, r.replaced);
}

/// Header, attributes and records as bytes, and what the features say.
std::string text(const std::filesystem::path& path) {
    const std::string bytes = support::contents(path);
    const auto number = [&](std::size_t at) {
        std::uint64_t out = 0;
        if (at + 8 <= bytes.size()) std::memcpy(&out, bytes.data() + at, 8);
        return out;
    };
    constexpr std::size_t header = 104, data_offset = 40, data_size = 48;
    const std::uint64_t end = number(data_offset) + number(data_size);
    std::string out = support::as_hex(std::string_view(bytes).substr(0, header));
    out += support::as_hex(std::string_view(bytes).substr(header, end - header));
    auto file = capture::open_byte_file(path);
    EXPECT_TRUE(file);
    const auto data = perf::read_perf_data(**file);
    EXPECT_TRUE(data);
    if (!data) return out;
    utsname host{};
    EXPECT_EQ(uname(&host), 0);
    EXPECT_EQ(data->hostname, host.nodename);
    EXPECT_EQ(data->release, host.release);
    EXPECT_EQ(data->loss_count, 0U);
    out += fmt::format("version {} arch {} cpu {} {} cpus {} {} command {}\n", data->version, data->architecture,
                       data->cpu_id, data->cpu_description, data->cpus_online.value_or(0),
                       data->cpus_available.value_or(0), data->command_line);
    for (const auto& [type, name] : data->pmus) out += fmt::format("pmu {} {}\n", type, name);
    for (const perf::Attr& a : data->attrs) out += fmt::format("event {} ids {}\n", a.name, fmt::join(a.ids, " "));
    for (const perf::BuildId& b : data->build_ids)
        out += fmt::format("build ID {} {:02x} {}\n", b.pid, fmt::join(b.id, ""),
                           std::filesystem::path(b.file).filename().string());
    // The topology of NUMA nodes is a feature that only perf reads.
    const std::size_t node = bytes.find("\0\0\x80\0\0\0\0\0\0\0\x80\0\0\0\0\0\x40\0\0\0", 0, 20);
    out += node == bytes.npos ? "no node\n" : support::as_hex(std::string_view(bytes).substr(node - 8, 96));
    return out;
}

/// Chunks and ranges of a file that is too large for all its bytes.
std::string summary(const std::filesystem::path& path) {
    const std::string bytes = support::contents(path);
    auto file = capture::open_byte_file(path);
    EXPECT_TRUE(file);
    const auto data = perf::read_perf_data(**file);
    EXPECT_TRUE(data);
    if (!data) return "";
    std::string out;
    for (const perf::Chunk& c : data->chunks) {
        std::uint64_t hash = truth_hash_start;
        for (const char byte : std::string_view(bytes).substr(c.payload, c.bytes))
            hash = truth_hash(hash, static_cast<unsigned char>(byte), 0);
        out +=
            fmt::format("chunk {} of ring {:#x} reference {} index {} cpu {} tid {} hash {:#x}\n", c.bytes, c.ring,
                        c.reference, c.index, static_cast<std::int32_t>(c.cpu), static_cast<std::int32_t>(c.tid), hash);
    }
    for (const perf::AuxRange& a : data->aux)
        out += fmt::format("range {:#x}+{} flags {:#x} {}/{} cpu {} at {}\n", a.offset, a.bytes, a.flags,
                           a.id.pid.value_or(0), a.id.tid.value_or(0), static_cast<std::int32_t>(a.id.cpu.value_or(0)),
                           a.id.time.value_or(0));
    return out;
}

struct Step {
    std::uint32_t thread;  ///< 0: definitions
    Words words;
};

class WholePerf : public testing::Test {
protected:
    PerfRecorderOptions etm4(std::size_t factory, PerfRecorderOptions o) {
        o.units = etm4::unit_factories()[factory];
        o.unit = o.units->defaults();
        o.unit.sync_bytes = 256;
        o.aarch64 = true;
        if (!o.per_thread) o.unit.context_id_bytes = 4;
        o.command = {"/bin/a program with a long name", "-x", "y z"};
        return o;
    }
    void add(std::string_view name, PerfRecorderOptions options, const std::vector<Step>& steps, bool complete = true,
             const std::vector<Step>& next = {}) {
        std::ostream& out = approved_.add(name);
        const std::filesystem::path folder = folder_.path() / fmt::format("out{}", ++runs_);
        std::filesystem::create_directory(folder);
        options.file = folder / "perf.data";
        auto recorder = PerfRecorder::create(std::move(options));
        ASSERT_TRUE(recorder) << recorder.error().message;
        run(**recorder, steps);
        if (!next.empty()) {
            (*recorder)->next_program({"/usr/bin/next"});
            run(**recorder, next);
        }
        const Status finished = (*recorder)->finish(complete);
        if (!finished) out << "error: " << finished.error().message << '\n';
        out << text((*recorder)->recorded());
        recorder->reset();
        out << text(folder / "perf.data");
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string file = entry.path().filename().string();
            if (file != "perf.data") files_.push_back(file);
        }
        std::sort(files_.begin(), files_.end());
        for (const std::string& file : files_) {
            const std::string bytes = support::contents(folder / file);
            out << "---- " << file << '\n' << (file.ends_with(".txt") ? bytes : support::as_hex(bytes));
        }
        files_.clear();
    }
    static void run(PerfRecorder& recorder, const std::vector<Step>& steps) {
        for (const Step& step : steps) {
            if (step.thread == 0)
                recorder.definitions(step.words);
            else
                recorder.execution(step.thread, step.words);
        }
    }
    TemporaryFolder folder_;
    support::Approved approved_;
    std::vector<std::string> files_;
    int runs_ = 0;
};

Words code() {
    return Parts()
        .block(1, 0x400000, {nop, ret})
        .block(2, 0x410000, {nop, ldr, ret})
        .block(3, 0x418000, {svc})
        .block(4, 0x419000, {nop, brk})
        .map(0x400000, 0x20000)
        .words;
}

/// Two threads, a child, a signal of each way, code that is translated again, and names.
std::vector<Step> threads_and_processes() {
    return {
        {0, code()},
        {1, {1}},  // not known yet
        {0, Parts().thread(1, 100, 100).words},
        {1, {1, 2, 3, call, 1, 2}},
        {0, Parts().thread(2, 100, 101).thread(2, 100, 101, "worker").words},
        {2, {1, 1, 2, words::cut | 1}},
        {1, joined({{2}, signal_64(words::raised | 11, 0x410004), {1, 3, call}})},
        {1, joined({{4}, signal_64(words::raised | 5, 0x419004), {1, 3, call}})},
        {1, joined({{1}, signal_64(10, 0x410000), {2, 3, call}})},
        {0, Parts().process(1, 0, 200, 100, 100).block(5, 0x420000, {nop, ret}).thread(3, 200, 200).words},
        {0, Parts().block(5, 0x430000, {nop, nop, ret}).words},
        {3, {1, 5, 1, 5, 3, call, thread_end}},
        {1, {5, 1, 5, 3, call}},
        {0, Parts().unmap(0x400000, 0x1000, 1).map(0x400000, 0x20000).words},
        {0, Parts().process(1, 0, 200, 100, 100).map(0x400000, 0x20000).words},
        {2, {1, 2, 3, call, thread_end}},
        {1, {6, 1, 2, 99}},  // there are no blocks 6 and 99
    };
}

TEST_F(WholePerf, ThreadsAndProcesses) {
    add("TRBE, two CPUs", etm4(0, {.sink = TraceSink::trbe, .cpus = 2, .truth_ranges = true}), threads_and_processes());
    add("ETR, IDs of sinks", etm4(1, {.sink = TraceSink::etr, .cpus = 1, .sink_ids = true}), threads_and_processes(),
        false);
    add("TRBE, IDs of sinks", etm4(0, {.sink = TraceSink::trbe, .cpus = 2, .sink_ids = true}), threads_and_processes());
    add("A ring for each thread, and a second program", etm4(1, {.per_thread = true, .cpus = 2}),
        threads_and_processes(), true,
        {{0, Parts().block(1, 0x500000, {nop, nop, ret}).thread(1, 300, 300).words}, {1, {1, 1, 3, 1}}});
    approved_.check("record/whole/perf_threads.txt");
}

/// Three threads on two CPUs fill small rings many times.
TEST_F(WholePerf, FullRings) {
    const auto add_rings = [&](std::string_view name, PerfRecorderOptions options) {
        std::ostream& out = approved_.add(name);
        options = etm4(0, std::move(options));
        options.file = folder_.path() / fmt::format("rings{}", ++runs_);
        options.aux_bytes = 8192;
        const std::filesystem::path file = options.file;
        auto recorder = PerfRecorder::create(std::move(options));
        ASSERT_TRUE(recorder) << recorder.error().message;
        Words words;
        for (int i = 0; i < 400; ++i) words = joined({words, {1, 2}});
        (*recorder)->definitions(code());
        (*recorder)->definitions(Parts().thread(1, 100, 100).thread(2, 100, 101).thread(3, 100, 102).words);
        for (int round = 0; round < 2; ++round)
            for (const std::uint32_t thread : {1U, 1U, 1U, 1U, 1U, 1U, 1U, 1U, 2U, 1U, 3U})
                (*recorder)->execution(thread, words);
        ASSERT_TRUE((*recorder)->flush());
        ASSERT_TRUE((*recorder)->finish(true));
        out << text((*recorder)->recorded()) << summary(file) << support::contents(perf_truth_file(file));
    };
    add_rings("TRBE", {.sink = TraceSink::trbe, .cpus = 2});
    add_rings("TRBE, read late", {.sink = TraceSink::trbe, .cpus = 2, .loss = TraceLoss::late});
    add_rings("TRBE, a snapshot", {.sink = TraceSink::trbe, .cpus = 2, .loss = TraceLoss::snapshot});
    add_rings("ETR", {.sink = TraceSink::etr, .cpus = 2});
    add_rings("ETR, read late", {.sink = TraceSink::etr, .cpus = 2, .loss = TraceLoss::late});
    add_rings("ETR, a snapshot", {.sink = TraceSink::etr, .cpus = 2, .loss = TraceLoss::snapshot});
    add_rings("a ring for each thread", {.sink = TraceSink::etr, .per_thread = true, .cpus = 2});
    approved_.check("record/whole/perf_rings.txt");
}

TEST_F(WholePerf, PartsOfARun) {
    add("A limit", etm4(0, {.sink = TraceSink::trbe, .limit_instructions = 12}), threads_and_processes());
    add("From a place to a place",
        etm4(0, {.start_at = CodePlace(Address{0x410004}), .stop_at = CodePlace(Address{0x430004}, "stop")}),
        threads_and_processes());
    add("A place that is never reached", etm4(0, {.start_at = CodePlace(Address{0x7000})}), threads_and_processes());
    approved_.check("record/whole/perf_parts.txt");
}

TEST_F(WholePerf, A32) {
    constexpr std::uint32_t nop32 = 0xe320f000, bx_lr = 0xe12fff1e, svc32 = 0xef000000, udf = 0xe7f000f0;
    PerfRecorderOptions o;
    o.units = &pft::unit_factory();
    o.unit = o.units->defaults();
    o.per_thread = true;
    o.cpus = 1;
    o.instruction_set = [](Address at) { return at.value == 0x9000 ? std::optional(isa::Isa::t32) : std::nullopt; };
    add("PTM", o,
        {{0, Parts()
                 .block(1, 0x8000, {nop32, bx_lr}, "nop ")
                 .block(2, 0x8100, {nop32, svc32})
                 .block(3, 0x8108, {nop32, udf})
                 .thumb(4, 0x9000, 2, {0xbf00, 0x4770})
                 .thread(1, 100, 100)
                 .words},
         {1, joined({{1, 2, call, 4, 1, 3}, signal_32(words::raised | 4, 0x810c, 0), {1, 2, call, thread_end}})}});
    approved_.check("record/whole/perf_a32.txt");
}

TEST_F(WholePerf, MappedFilesAndBuildIds) {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.segments = {{.address = 0x400000, .bytes = std::vector<std::uint8_t>(0x100)}};
    elf.sections = {{.name = ".note.gnu.build-id",
                     .type = SHT_NOTE,
                     .flags = SHF_ALLOC,
                     .address = 0x7000,
                     .bytes = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4}}};
    const std::string program = folder_.write("program", elf.build()).string();
    const std::filesystem::path folder = folder_.path() / "mapped";
    std::filesystem::create_directory(folder);
    PerfRecorderOptions o = etm4(0, {.sink = TraceSink::trbe});
    o.file = folder / "perf.data";
    auto recorder = PerfRecorder::create(o);
    ASSERT_TRUE(recorder);
    (*recorder)->definitions(code());
    (*recorder)->definitions(Parts()
                                 .map(0x400000, 0x3000, program)
                                 .thread(1, 100, 100)
                                 .map(0x400000, 0x3000, program)
                                 .map(0x401000, 0x1000, "/none", 0x5000)
                                 .unmap(0x401000, 0x1000, 1)
                                 .map(0x500000, 0x3000, program)
                                 .words);
    (*recorder)->execution(1, Words{1, 2, 3, call});
    ASSERT_TRUE((*recorder)->finish(true));
    const auto file = capture::open_byte_file(o.file);
    ASSERT_TRUE(file);
    const auto data = perf::read_perf_data(**file);
    ASSERT_TRUE(data);
    std::string found;
    for (const perf::Mapping& m : data->mappings)
        found += fmt::format("{}/{} {:#x} {:#x} {:#x} {} {} {:02x} {}\n", m.pid, m.tid, m.address.value, m.bytes,
                             m.file_offset, m.protection, m.flags, fmt::join(m.build_id, ""),
                             std::filesystem::path(m.file).filename().string());
    for (const perf::BuildId& b : data->build_ids)
        found += fmt::format("{} {:02x} {}\n", b.pid, fmt::join(b.id, ""),
                             std::filesystem::path(b.file).filename().string());
    EXPECT_EQ(found,
              "100/100 0x400000 0x20000 0x0 5 2  anon\n"
              "100/100 0x400000 0x1000 0x0 5 2 01020304 program\n"
              "100/100 0x401000 0x1000 0x5000 5 2  none\n"
              "100/100 0x500000 0x1000 0x0 5 2 01020304 program\n"
              "4294967295 01020304 program\n");
}

TEST(PerfRecorderOptions, CommandTermsAndCores) {
    PerfRecorderOptions o;
    o.units = etm4::unit_factories()[0];
    o.unit = o.units->defaults();
    o.command = {"a", "b c"};
    const auto command = [&] { return fmt::format("{}", fmt::join(perf_command(o), "|")); };
    EXPECT_EQ(command(), "perf|record|-e|cs_etm//u|--|a|b c");
    o.per_thread = true;
    o.loss = TraceLoss::snapshot;
    o.unit.cycle_accurate = o.unit.branch_broadcast = o.unit.return_stack = true;
    EXPECT_EQ(command(), "perf|record|-e|cs_etm/branch_broadcast,cycacc,retstack/u|--per-thread|-S|--|a|b c");
    for (const auto& [core, midr] : {std::pair<const char*, std::uint64_t>{"armv9-a", 0x410fd461},
                                     {"cortex-a53", 0x410fd034},
                                     {"cortex-a15", 0x413fc0f2},
                                     {"cortex-a7", 0x410fc075},
                                     {"cortex-a9", 0x413fc090},
                                     {"other", 0}})
        EXPECT_EQ(midr_of(core), midr) << core;
    o.unit.registers = {{"TRCCNTRLDVR0", "", 5000, "--strobe"}, {"TRCCNTRLDVR1", "", 7000, "--strobe"}};
    EXPECT_EQ(terms_of(o).window, 5000U);
    EXPECT_EQ(terms_of(o).period, 7000U);
    const auto contexts = [&](unsigned bytes, bool in_vmid) {
        o.unit.context_id_bytes = bytes;
        o.unit.context_in_vmid = in_vmid;
        return fmt::format("{} {}", terms_of(o).context_id, terms_of(o).context_id2);
    };
    EXPECT_EQ(contexts(0, false), "false false");
    EXPECT_EQ(contexts(0, true), "false false");
    EXPECT_EQ(contexts(4, false), "true false");
    EXPECT_EQ(contexts(4, true), "false true");
}

TEST(PerfRecorderOptions, EachRefusalNamesItsLimit) {
    PerfRecorderOptions o;
    o.units = etm4::unit_factories()[0];
    o.unit = o.units->defaults();
    const auto message = [&](const auto& change) {
        PerfRecorderOptions changed = o;
        change(changed);
        const Status status = check(changed);
        return status ? std::string() : status.error().message;
    };
    for (const std::uint32_t cpus : {1U, 48U}) EXPECT_EQ(message([&](auto& c) { c.cpus = cpus; }), "");
    EXPECT_EQ(message([](auto& c) { c.cpus = 0; }), "--cpus 0: must be from 1 to 48, the number of trace source IDs");
    EXPECT_EQ(message([](auto& c) { c.cpus = 49; }), "--cpus 49: must be from 1 to 48, the number of trace source IDs");
    for (const std::uint64_t bytes : {8192U, 12288U, 1U << 30})
        EXPECT_EQ(message([&](auto& c) { c.aux_bytes = bytes; }), "");
    for (const std::uint64_t bytes : {4096U, 8193U, 10240U, (1U << 30) + 4096U})
        EXPECT_EQ(message([&](auto& c) { c.aux_bytes = bytes; }),
                  fmt::format("a buffer of {} bytes: whole pages, from 8192 to 1073741824 bytes", bytes));
    const std::string neither =
        "--per-thread cannot be used with --context-id or --timestamps: perf sets neither there";
    EXPECT_EQ(message([](auto& c) { c.per_thread = true; }), "");
    EXPECT_EQ(message([](auto& c) {
                  c.per_thread = true;
                  c.unit.context_id_bytes = 4;
              }),
              neither);
    EXPECT_EQ(message([](auto& c) { c.per_thread = c.unit.timestamps = true; }), neither);
    EXPECT_EQ(
        message([](auto& c) {
            c.units = &pft::unit_factory();
            c.unit = c.units->defaults();
        }),
        fmt::format("--unit {} needs --per-thread: perf does not program the unit's context IDs, and without them a "
                    "file with a ring for each CPU does not show who ran",
                    pft::unit_factory().name()));
}

// ---- the file itself

class PerfFiles : public testing::Test {
protected:
    std::filesystem::path path(const char* name) { return folder_.path() / name; }
    static std::string refusal(const std::filesystem::path& file) {
        const auto made = RecordedPerfFile::create(file, {tracking_event({1})});
        return made ? "" : made.error().message;
    }
    TemporaryFolder folder_;
};

TEST_F(PerfFiles, WhatIsThereIsReplacedOnlyIfItIsOne) {
    EXPECT_EQ(refusal(path("new")), "");
    folder_.write("empty", std::string_view());
    EXPECT_EQ(refusal(path("empty")), "");
    folder_.write("earlier", std::string_view("PERFILE2"));
    const auto replacing = RecordedPerfFile::create(path("earlier"), {tracking_event({1})});
    ASSERT_TRUE(replacing);
    EXPECT_TRUE((*replacing)->replaced());
    EXPECT_EQ(refusal(path("earlier")), path("earlier").string() +
                                            ": another 'waymark record' is writing there; wait until it has ended, or "
                                            "name another place");
    folder_.write("letter", std::string_view("PERFILEX"));
    EXPECT_EQ(refusal(path("letter")),
              path("letter").string() + " exists and is not a perf.data file; name another file, or remove it");
    EXPECT_EQ(refusal(folder_.path()), "cannot create " + folder_.path().string() + ": it is a folder; name a file");
    EXPECT_EQ(refusal("/dev/null"),
              "/dev/null is not a regular file, which perf.data needs: its header is written last. Name a file");
    EXPECT_EQ(refusal(path("no") / "file"), "cannot create " + (path("no") / "file").string() +
                                                ": there is no folder " + path("no").string() + "; make it first");
    EXPECT_EQ(support::contents(path("letter")), "PERFILEX");
}

TEST_F(PerfFiles, ItsTruthIsPlacedWithItAndEarlierTruthGoes) {
    for (const char* old : {"f.truth.txt", "f.truth_1.bin", "f.truth_12.bin"})
        folder_.write(old, std::string_view("old"));
    for (const char* other : {"f.truth_x.bin", "f.truth_1.txt", "g.truth_1.bin", "f.truth_1"})
        folder_.write(other, std::string_view("mine"));
    std::filesystem::create_directory(path("f.part"));
    folder_.write("f.part/left", std::string_view("of a killed one"));
    {
        auto file = RecordedPerfFile::create(path("f"), {tracking_event({7})});
        ASSERT_TRUE(file);
        EXPECT_EQ((*file)->beside(".truth_2.bin"), path("f.part") / "f.truth_2.bin");
        EXPECT_EQ(
            (*file)->as_placed({Errc::unreadable, "cannot write " + path("f.part").string() + "/x: full"}).message,
            "cannot write " + path("x").string() + ": full");
        EXPECT_EQ((*file)->as_placed({Errc::unreadable, "else"}).message, "else");
        folder_.write("f.part/f.truth_2.bin", std::string_view("new"));
        folder_.write("f.part/f.truth_3.bi", std::string_view("no"));
        EXPECT_FALSE(std::filesystem::exists(path("f")));
        ASSERT_TRUE((*file)->finish({.arch = "a", .midr = 1, .cpus = 65, .pmus = {{4, "p"}}, .command = {"c"}}));
        ASSERT_TRUE((*file)->finish_with_truth("truth\n"));
    }
    std::vector<std::string> there;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        there.push_back(entry.path().filename().string() + "=" +
                        (entry.path().filename() == "f" ? "perf" : support::contents(entry.path())));
    std::sort(there.begin(), there.end());
    EXPECT_EQ(there,
              (std::vector<std::string>{"f.truth.txt=truth\n", "f.truth_1.txt=mine", "f.truth_1=mine",
                                        "f.truth_2.bin=new", "f.truth_x.bin=mine", "f=perf", "g.truth_1.bin=mine"}));
}

TEST_F(PerfFiles, ASymbolicLinkStays) {
    folder_.write("target", std::string_view("PERFILE2"));
    std::filesystem::create_symlink("target", path("link"));
    {
        auto file = RecordedPerfFile::create(path("link"), {tracking_event({1})});
        ASSERT_TRUE(file);
        ASSERT_TRUE((*file)->finish({.arch = "a", .cpus = 1}));
        ASSERT_TRUE((*file)->finish_with_truth("t"));
    }
    EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
    EXPECT_GT(std::filesystem::file_size(path("target")), 100U);
    EXPECT_TRUE(std::filesystem::exists(path("target.truth.txt")));
}

TEST_F(PerfFiles, WhatIsNotFinishedLeavesNothing) {
    { EXPECT_EQ(refusal(path("f")), ""); }
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST(PerfFile, EventAndClock) {
    const perf::Attr dummy = tracking_event({3, 4});
    EXPECT_EQ(dummy.type, 1U);
    EXPECT_EQ(dummy.config, 9U);
    EXPECT_EQ(dummy.sample_period, 1U);
    EXPECT_EQ(dummy.name, "dummy:u");
    EXPECT_EQ(dummy.ids, (std::vector<std::uint64_t>{3, 4}));
    // inherit, exclude_kernel, mmap, comm, task, sample_id_all, mmap2, comm_exec (perf_event_open(2)).
    EXPECT_EQ(dummy.flags, 1U << 1 | 1U << 5 | 1U << 8 | 1U << 9 | 1U << 13 | 1U << 18 | 1U << 23 | 1U << 24);
    // IP, TID, TIME, CPU, PERIOD, IDENTIFIER
    EXPECT_EQ(dummy.sample_type, 1U | 1U << 1 | 1U << 2 | 1U << 7 | 1U << 8 | 1U << 16);
    const perf::TimeConversion clock = conversion_of(25'000'000, 77);
    EXPECT_EQ(clock.shift, 20U);
    EXPECT_EQ(clock.multiplier, 40U << 20);
    EXPECT_EQ(clock.to_ns(3), 77U + 120);
}

}  // namespace
}  // namespace waymark::record
