/// Recordings from beginning to end with a program in place of QEMU, which puts given chunks into the shared memory:
/// how QEMU is started, what is taken from it, and every message about how the recording came out.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "record/run_parts.h"
#include "support/approved.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/etm4/unit.h"
#include "waymark/pft/unit.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/recording_texts.h"

namespace waymark::record {
namespace {

using namespace std::string_view_literals;

using support::joined;
using support::Parts;
using support::Words;

// ---- the program in place of QEMU: this test program itself, if it is started with a plugin

/// `definitions:WORD,…`, `execution:THREAD:WORD,…` (queued), `rest:THREAD:WORD,…` (left unqueued), `exit:STATUS`,
/// `signal:NUMBER`, `arguments:FILE` (writes the command to it), `detached` (the plugin never attached).
[[noreturn]] void play(int argc, char** argv) {
    std::string ring_path;
    const char* script = nullptr;
    for (int i = 1; i + 1 < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "-plugin") {
            const std::string value = argv[i + 1];
            const std::size_t at = value.find("ring=") + 5;
            ring_path = value.substr(at, value.find(',', at) - at);
        }
        if (argument == "--script") script = argv[i + 1];
    }
    const int file = open(ring_path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0 || script == nullptr) _exit(99);
    auto* const ring = static_cast<Ring*>(mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (ring == MAP_FAILED || ring->magic != Ring::expected_magic ||
        ring->recorder != static_cast<std::uint32_t>(getppid()))
        _exit(98);
    ring->attached = 1;
    // QEMU ends like this too.
    std::signal(SIGTERM, [](int) { _exit(0); });
    std::ifstream in(script);
    std::uint32_t next = 0;
    for (std::string line; std::getline(in, line);) {
        const std::string what = line.substr(0, line.find(':'));
        std::string rest = what.size() < line.size() ? line.substr(what.size() + 1) : "";
        if (what == "exit") _exit(std::atoi(rest.c_str()));
        if (what == "signal") kill(getpid(), std::atoi(rest.c_str()));
        if (what == "detached") ring->attached = 0;
        if (what == "interrupt") {
            kill(getppid(), std::atoi(rest.c_str()));
            pause();
        }
        if (what == "stopped")
            while (ring->stop.load() == 0) usleep(100);
        if (what == "wait")
            while (true) pause();
        if (what == "arguments") {
            std::ofstream out(rest);
            for (int i = 1; i < argc; ++i) out << argv[i] << '\n';
        }
        if (what != "definitions" && what != "execution" && what != "rest") continue;
        while (ring->chunks[next].state.load() != ChunkState::empty) usleep(100);
        Chunk& chunk = ring->chunks[next];
        chunk.state = ChunkState::filling;
        chunk.kind = what == "definitions" ? ChunkKind::definitions : ChunkKind::execution;
        chunk.owner = static_cast<std::uint32_t>(getpid());
        chunk.thread = what == "definitions" ? 0 : static_cast<std::uint32_t>(std::strtoul(rest.c_str(), nullptr, 10));
        if (what != "definitions") rest = rest.substr(rest.find(':') + 1);
        std::uint32_t count = 0;
        std::istringstream words(rest);
        for (std::string word; std::getline(words, word, ',');)
            chunk.data[count++] = static_cast<std::uint32_t>(std::stoul(word));
        chunk.count = count;
        if (what != "rest") {
            chunk.state = ChunkState::queued;
            const std::uint32_t n = ring->queued.load();
            ring->queue[n % Ring::chunk_count] = next;
            ring->queued = n + 1;
        }
        next = (next + 1) % Ring::chunk_count;
    }
    _exit(0);
}
__attribute__((constructor)) void play_if_asked(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]) == "--script") play(argc, argv);
}

// ---- recordings

constexpr std::uint32_t nop = 0xe320f000, bx_lr = 0xe12fff1e, mov_1 = 0xe3a00001;

std::string chunk(std::string_view kind, const Words& words) {
    return fmt::format("{}:{}\n", kind, fmt::join(words, ","));
}
std::string code() {
    return chunk("definitions", Parts()
                                    .block(1, 0x8000, {nop, bx_lr})
                                    .block(2, 0x8008, {nop, nop, bx_lr})
                                    .block(3, 0x8000, {mov_1, bx_lr})
                                    .block(4, 0x8100, {nop, nop})
                                    .block(5, 0x8108, {nop})
                                    .block(6, 0x5018, {nop, bx_lr})
                                    .words);
}
std::string run(const Words& words, unsigned thread = 1) { return chunk(fmt::format("execution:{}", thread), words); }

class Programs : public testing::Test {
protected:
    Programs() {
        options_.program = {"program", "argument"};
        options_.folder = (folder_.path() / "out").string();
        options_.units = &pft::unit_factory();
        options_.unit = options_.units->defaults();
    }
    FlowSetup setup(const std::string& script) {
        FlowSetup out;
        out.recorder.folder = options_.folder;
        out.recorder.units = options_.units;
        out.recorder.unit = options_.unit;
        out.recorder.aarch64 = options_.units->traces_aarch64();
        out.recorder.system = options_.system;
        out.recorder.sink = options_.sink;
        out.recorder.buffer_bytes = options_.buffer;
        out.recorder.limit_instructions = options_.limit;
        out.qemu.qemu = qemu_;
        out.qemu.plugin = "/plugin.so";
        out.qemu.program = options_.program;
        const auto file = folder_.write(fmt::format("script{}", ++scripts_), script);
        out.qemu.qemu_arguments = {"--script", std::string(file)};
        return out;
    }
    /// Kind of the outcome and its remarks, a line each.
    std::string text(const Result<RecordOutcome>& outcome) const {
        if (!outcome) return "error: " + replaced(outcome.error().message) + "\n";
        using Kind = RecordOutcome::Kind;
        const RecordOutcome& o = *outcome;
        std::string out = o.kind == Kind::recorded       ? "recorded"
                          : o.kind == Kind::nothing      ? "nothing"
                          : o.kind == Kind::program_died ? "died"
                          : o.kind == Kind::interrupted  ? "interrupted"
                                                         : "cut off";
        out += fmt::format("{}{}\n", o.decodable ? "" : ", not decodable", o.trigger_missed ? ", trigger missed" : "");
        for (const RecordOutcome::Remark& r : o.remarks)
            out += fmt::format("{}: {}\n",
                               r.level == RecordOutcome::Level::summary    ? "summary"
                               : r.level == RecordOutcome::Level::note     ? "note"
                               : r.level == RecordOutcome::Level::repeated ? "repeated"
                               : r.level == RecordOutcome::Level::warning  ? "warning"
                                                                           : "error",
                               replaced(r.text));
        return out;
    }
    std::string replaced(std::string text) const {
        for (const auto& [path, name] : {std::pair(options_.folder, "OUT"), std::pair(qemu_.string(), "QEMU")})
            for (std::size_t at; (at = text.find(path)) != text.npos;) text.replace(at, path.size(), name);
        return text;
    }
    std::string record(const std::string& script, const std::function<void(FlowSetup&)>& change = {}) {
        FlowSetup made = setup(script);
        if (change) change(made);
        return text(record_flow(options_, std::move(made), {}));
    }
    void add(std::string_view name, const std::string& script, const std::function<void(FlowSetup&)>& change = {}) {
        approved_.add(name) << record(script, change);
    }
    std::string description() const {
        const std::string ini = support::contents(std::filesystem::path(options_.folder) / "snapshot.ini");
        const std::size_t at = ini.find("description=");
        return at == ini.npos ? "" : ini.substr(at + 12, ini.find('\n', at) - at - 12);
    }
    TemporaryFolder folder_;
    const std::filesystem::path qemu_ = std::filesystem::read_symlink("/proc/self/exe");
    FlowRecording options_;
    support::Approved approved_;
    int scripts_ = 0;
};

TEST_F(Programs, EndsOfPrograms) {
    add("to its end", code() + run({1, 2, 1}));
    add("with two threads and a status", code() + run({1, 2, 1}) + run({1, 1}, 2) + "exit:3\n");
    EXPECT_EQ(description(), ", exited with 3");
    add("with code that changes once", code() + run({1, 2, 3, 2}));
    add("with code that changes often", code() + run({1, 2, 1, 3, 1, 3, 1}));
    add("what was not queued", code() + chunk("rest:1", {1, 2, 1}));
    add("ended by a signal", code() + run({1, 2, 1}) + "signal:11\n");
    EXPECT_EQ(description(), ", ended by SIGSEGV");
    add("interrupted", code() + run({1, 2, 1}) + "interrupt:15\n");
    EXPECT_EQ(description(), ", interrupted by SIGTERM");
    add("nothing, with a status", "exit:2\n");
    add("nothing, by a signal", "signal:9\n");
    add("without the plugin", "detached\nexit:4\n");
    approved_.check("record/whole/ends.txt");
}

TEST_F(Programs, NoBranchRan) {
    const std::string script = code() + run({4, 5});
    add("no branch", script);
    for (const char* option : {"start", "stop", "limit"}) {
        FlowRecording before = options_;
        if (option == "start"sv) options_.start_at = "0x8100";
        if (option == "stop"sv) options_.stop_at = "0x9000";
        if (option == "limit"sv) options_.limit = 1'000'000;
        add(option, script, [](FlowSetup& s) { s.recorder.stop_at = CodePlace(Address{0x9000}); });
        options_ = before;
    }
    options_.system = true;
    options_.machine = "virt";
    add("no branch of a system", script);
    approved_.check("record/whole/no_branch.txt");
}

TEST_F(Programs, PlacesThatWereNotReached) {
    const std::string script = code() + run({1, 2, 1});
    const CodePlace known(Address{0x7000}, "place"), unknown("place", std::filesystem::path());
    options_.start_at = "place";
    add("start", script, [&](FlowSetup& s) { s.recorder.start_at = known; });
    add("unknown start", script, [&](FlowSetup& s) { s.recorder.start_at = unknown; });
    options_.start_at.clear();
    options_.stop_at = "place";
    add("stop", script, [&](FlowSetup& s) { s.recorder.stop_at = known; });
    add("unknown stop", script, [&](FlowSetup& s) { s.recorder.stop_at = unknown; });
    add("stop that is reached", script, [](FlowSetup& s) { s.recorder.stop_at = CodePlace(Address{0x8008}, "place"); });
    options_.stop_at.clear();
    options_.trigger_at = "place";
    add("trigger and ranges", script, [&](FlowSetup& s) {
        s.recorder.ranges = {{unknown, {}, false}};
        s.recorder.trigger_at = known;
    });
    add("signals", script, [&](FlowSetup& s) {
        SignalChange change;
        change.of = SignalChange::Of::os_lock;
        change.option = "--os-lock on@0x7000";
        change.at = known;
        s.recorder.signals = {change};
        change.option = "--os-lock on@place";
        change.at = unknown;
        s.recorder.signals.push_back(change);
    });
    approved_.check("record/whole/places.txt");
}

TEST_F(Programs, WhatWasNotPermitted) {
    const std::string script = code() + run({1, 2, 1, 2, 1});
    const auto authentication = [](std::optional<CodePlace> at) {
        return [at](FlowSetup& s) {
            SignalChange change;
            change.niden = false;
            change.option = "--authentication NIDEN=0";
            change.at = at;
            s.recorder.signals = {change};
        };
    };
    add("nothing is permitted", script, authentication({}));
    add("the beginning is permitted", script, authentication(CodePlace(Address{0x8008})));
    add("power and lock", script, [](FlowSetup& s) {
        SignalChange power, lock;
        power.of = SignalChange::Of::power;
        power.at = CodePlace(Address{0x8008});
        lock.of = SignalChange::Of::os_lock;
        lock.on = true;
        lock.at = CodePlace(Address{0x8000});
        s.recorder.signals = {power, lock};
    });
    add("a range, and nothing is permitted", script, [&](FlowSetup& s) {
        authentication({})(s);
        s.recorder.ranges = {{CodePlace(Address{0x8008}), CodePlace(Address{0x8014}), false}};
    });
    add("a range in which nothing ran", script, [](FlowSetup& s) {
        s.recorder.ranges = {{CodePlace(Address{0x9008}), CodePlace(Address{0x9014}), false}};
    });
    add("a range", script, [](FlowSetup& s) {
        s.recorder.ranges = {{CodePlace(Address{0x8008}), CodePlace(Address{0x8014}), false}};
    });
    approved_.check("record/whole/permission.txt");
}

TEST_F(Programs, Buffers) {
    Words many;
    for (int i = 0; i < 60; ++i) many = joined({many, {1, 2}});
    const std::string script = code() + run(many);
    options_.buffer = 64;
    add("a buffer that wraps", script);
    add("buffers that wrap", script + run(joined({{3}, many, {3}})));
    options_.buffer = 0;
    const auto sink = [&](const char* text, std::optional<std::uint64_t> after) {
        auto setup = read_sink(text, after, false);
        ASSERT_TRUE(setup);
        options_.sink = *setup;
    };
    const auto trigger = [](std::uint64_t at) {
        return [at](FlowSetup& s) { s.recorder.trigger_at = CodePlace(Address{at}, "at"); };
    };
    options_.trigger_at = "at";
    sink("etb:1024", 64);
    add("stopped by the trigger", script, trigger(0x8008));
    add("stopped by the only trigger", script + run({5, 1, 2, 1, 2, 1, 2}) + script, trigger(0x8108));
    add("a trigger that is never reached", script, trigger(0x7000));
    options_.trigger_at.clear();
    add("an event that never comes", script);
    options_.trigger_at = "at";
    sink("etb:1024", 900);
    add("too few bytes", code() + run({1, 2, 1, 2, 1, 2, 1}), trigger(0x8008));
    add("more, and too few bytes", script, trigger(0x8008));
    sink("etb:64", 32);
    add("a small buffer that the trigger stops", code() + run(joined({many, {5}, many})), trigger(0x8108));
    sink("etb:64", {});
    add("a trigger that stops nothing", script, trigger(0x8008));
    options_.trigger_at.clear();
    add("a small buffer", script);
    sink("tmc-etr:4096", {});
    options_.sink->registers = {{"FFCR", "", 0, "FILE"}};
    add("a large buffer", script);
    approved_.check("record/whole/outcomes_of_buffers.txt");
}

TEST_F(Programs, RunsThatAreStopped) {
    Words often;
    for (int i = 0; i < 5; ++i) often = joined({often, {1, 3}});
    options_.changes = 2;
    add("too many changes", code() + run(often), [](FlowSetup& s) { s.recorder.limit_changes = 2; });
    options_.system = true;
    options_.machine = "virt";
    Words stuck{1};
    for (int i = 0; i < 1100; ++i) stuck = joined({stuck, support::exception_32(3, 0x10, 0xc, words::ns)});
    add("exceptions without end", code() + run(stuck));
    add("an unknown vector", code() + run({4, 6, 1, 2}));
    add("a system that ends with its recording", code() + run({1, 2, 1, 2, 1}) + "stopped\nwait\n", [](FlowSetup& s) {
        s.recorder.limit_instructions = 4;
        s.qemu.watched = {{Address{0}, Address{4}}};
    });
    constexpr std::uint32_t nop64 = 0xd503201f, ret64 = 0xd65f03c0;
    options_.units = etm4::unit_factories()[0];
    options_.unit = options_.units->defaults();
    const std::string code64 =
        chunk("definitions", Parts().block(1, 0x80000, {nop64, ret64}).block(2, 0x80100, {nop64, nop64, ret64}).words);
    const Words unread = support::written_64(words::unread | static_cast<std::uint32_t>(A64Register::scr_el3), 0);
    const std::string system = code64 + run(joined({{1, 2, 1}, unread, {2, 1, words::state | words::aarch32, 1, 2}}));
    add("a system that goes to AArch32", system);
    options_.unit.vmid = true;
    add("registers that were not read", code64 + run(joined({{1}, unread, unread, {2, 1}})), [](FlowSetup& s) {
        s.qemu.watched.assign(most_watched_writes + 1, {Address{0}, Address{4}});
    });
    approved_.check("record/whole/stopped.txt");
}

TEST_F(Programs, HowQemuIsStarted) {
    const std::filesystem::path file = folder_.path() / "arguments";
    const auto arguments = [&](const std::function<void(FlowSetup&)>& change) {
        static_cast<void>(record("arguments:" + file.string() + "\n", change));
        std::string out = support::contents(file);
        // The number of this process and of the file differ in each run.
        for (std::size_t at = 0; (at = out.find("/proc/", at)) != out.npos; at += 6) {
            const std::size_t end = out.find_first_of(",\n", at);
            out.replace(at, end - at, "/proc/…");
        }
        for (const std::string& path : {folder_.path().string()})
            for (std::size_t at; (at = out.find(path)) != out.npos;) out.replace(at, path.size(), "FOLDER");
        return out;
    };
    EXPECT_EQ(arguments({}),
              "-plugin\n/plugin.so,ring=/proc/…,exact=on,memory=off\n--script\nFOLDER/script1\nprogram\nargument\n");
    EXPECT_EQ(arguments([](FlowSetup& s) {
                  s.qemu.aarch64 = s.qemu.threads = s.qemu.children = true;
                  s.qemu.exact = false;
                  s.qemu.memory = true;
                  s.qemu.plugin = "/a,b";
              }),
              "-plugin\n/a,,b,ring=/proc/…,exact=off,memory=on,aarch64=on,threads=on,children=on\n--script\n"
              "FOLDER/script2\nprogram\nargument\n");
    EXPECT_EQ(
        arguments([](FlowSetup& s) {
            s.qemu.sized = true;
            s.qemu.watched = {{Address{0x10}, Address{0x18}}, {Address{0xffff0000}, Address{0xffff0020}}};
        }),
        "-d\nint,exec,cpu\n-dfilter\n0x10+0x8,0xffff0000+0x20\n-D\n/proc/…\n-plugin\n"
        "/plugin.so,ring=/proc/…,exact=on,memory=sized,watch=10-18,watch=ffff0000-ffff0020,log=/proc/…\n--script\n"
        "FOLDER/script3\nprogram\nargument\n");
    std::string signals = arguments([](FlowSetup& s) { s.qemu.signals = true; });
    EXPECT_TRUE(signals.starts_with("-d\ntid,")) << signals;
    EXPECT_NE(signals.find("/%d\n-plugin\n/plugin.so,ring=/proc/…,exact=on,memory=off,signals="), std::string::npos)
        << signals;
}

TEST_F(Programs, FindsQemuOnPath) {
    const char* const before = std::getenv("PATH");
    const std::string kept = before == nullptr ? "" : before;
    const auto found = [](const char* name) {
        const auto at = find_qemu(name, "qemu-user");
        return at ? at->string() : at.error().message;
    };
    const auto program = folder_.path() / "bin" / "qemu-x";
    std::filesystem::create_directories(program.parent_path());
    std::filesystem::create_directories(folder_.path() / "other" / "qemu-x");
    folder_.write("bin/qemu-x", std::string_view("x"));
    folder_.write("bin/qemu-y", std::string_view("y"));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    setenv("PATH", ((folder_.path() / "other").string() + ":" + program.parent_path().string()).c_str(), 1);
    EXPECT_EQ(found("qemu-x"), program.string());
    EXPECT_EQ(found("qemu-y"),
              "qemu-y is not on PATH; it is in the Debian package qemu-user: apt-get install qemu-user");
    unsetenv("PATH");
    EXPECT_EQ(found("sh"), "/usr/bin/sh");
    setenv("PATH", kept.c_str(), 1);
}

// ---- perf.data

class PerfPrograms : public Programs {
protected:
    PerfPrograms() {
        options_.folder = (folder_.path() / "perf.data").string();
        perf_.aux_kib = 64;
        perf_.per_thread = true;
    }
    std::string record_perf_data(const std::string& script, const std::function<void(FlowSetup&)>& change = {}) {
        FlowSetup made = setup(script);
        if (change) change(made);
        return text(record_perf(std::move(made), perf_, {}));
    }
    void add_perf(std::string_view name, const std::string& script,
                  const std::function<void(FlowSetup&)>& change = {}) {
        approved_.add(name) << record_perf_data(script, change);
    }
    static std::string thread(unsigned number = 1, unsigned tid = 100) {
        return chunk("definitions", Parts().thread(number, 100, tid).words);
    }
    static std::string code64() {
        constexpr std::uint32_t nop64 = 0xd503201f, ret64 = 0xd65f03c0;
        return chunk(
            "definitions",
            Parts().block(1, 0x400000, {nop64, ret64}).block(2, 0x410000, {nop64, ret64}).thread(1, 100, 100).words);
    }
    static Words many() {
        Words out;
        for (int i = 0; i < 3000; ++i) {
            out.push_back(1);
            out.push_back(2);
        }
        return out;
    }
    PerfRecording perf_;
};

TEST_F(PerfPrograms, Outcomes) {
    const std::string script = code() + thread() + run({1, 2, 1});
    add_perf("to its end", script);
    add_perf("two threads and a status", script + thread(2, 101) + run({1, 1}, 2) + "exit:5\n");
    add_perf("nothing", code() + thread() + "exit:0\n");
    add_perf("no branch", code() + thread() + run({4, 5}));
    add_perf("ended by a signal", script + "signal:11\n");
    add_perf("interrupted", script + "interrupt:2\n");
    const CodePlace known(Address{0x7000}, "place"), unknown("place", std::filesystem::path());
    add_perf("start", script, [&](FlowSetup& s) { s.recorder.start_at = known; });
    add_perf("unknown start", script, [&](FlowSetup& s) { s.recorder.start_at = unknown; });
    add_perf("stop", script, [&](FlowSetup& s) { s.recorder.stop_at = known; });
    add_perf("unknown stop", script, [&](FlowSetup& s) { s.recorder.stop_at = unknown; });
    add_perf("limit", script, [&](FlowSetup& s) { s.recorder.limit_instructions = 2; });
    approved_.check("record/whole/perf_outcomes.txt");
}

TEST_F(PerfPrograms, ProcessesAndLoss) {
    options_.units = etm4::unit_factories()[0];
    options_.unit = options_.units->defaults();
    options_.unit.context_id_bytes = 4;
    options_.unit.branch_broadcast = true;
    perf_.per_thread = false;
    perf_.cpus = 2;
    perf_.aux_kib = 8;
    perf_.loss = "late";
    constexpr std::uint32_t nop64 = 0xd503201f, ret64 = 0xd65f03c0;
    Words many;
    for (int i = 0; i < 7000; ++i) many = joined({many.size() > 4000 ? Words{} : many, {1, 2}});
    std::string script =
        chunk("definitions",
              Parts().block(1, 0x400000, {nop64, ret64}).block(2, 0x410000, {nop64, ret64}).thread(1, 100, 100).words) +
        chunk("definitions", Parts().process(1, 0, 200, 100, 100).thread(2, 200, 200).words) + run({1, 2, 1}, 2);
    for (int i = 0; i < 12; ++i) script += run(many);
    const std::string said = record_perf_data(script);
    EXPECT_TRUE(said.starts_with("recorded\n")) << said;
    EXPECT_NE(said.find(" ranges, 2 processes, 2 threads on 2 CPUs, "), std::string::npos) << said;
    EXPECT_NE(said.find(" of trace lost, as --loss late requests\n"), std::string::npos) << said;
}

TEST_F(PerfPrograms, EachOptionHasItsEffect) {
    const std::filesystem::path arguments = folder_.path() / "arguments";
    const auto recorded = [&](const PerfRecording& perf) {
        perf_ = perf;
        const std::string out = record_perf_data(code64() + "arguments:" + arguments.string() + "\n" + run(many(), 1));
        EXPECT_TRUE(out.starts_with("recorded\n")) << out;
        auto file = capture::open_byte_file(options_.folder);
        EXPECT_TRUE(file);
        const auto data = capture::perf::read_perf_data(**file);
        EXPECT_TRUE(data);
        std::string said = fmt::format("cpus {} command {} info {} ids", data->cpus_online.value_or(0),
                                       data->command_line, data->auxtrace_info->words.at(0));
        for (const auto& id : data->hardware_ids) said += fmt::format(" {:#x}", id.id);
        std::uint64_t flags = 0, most = 0;
        for (const auto& range : data->aux) {
            flags |= range.flags;
            most = std::max(most, range.bytes);
        }
        return said + fmt::format(" flags {:#x} ranges of up to {} KiB", flags, most / 1024);
    };
    options_.units = etm4::unit_factories()[1];
    options_.unit = options_.units->defaults();
    options_.unit.branch_broadcast = true;
    options_.unit.context_id_bytes = 4;
    const auto perf = [](const char* sink, const char* loss, std::uint32_t cpus, std::uint64_t aux_kib,
                         bool sink_ids = false, bool per_thread = false) {
        PerfRecording out;
        out.sink = sink;
        out.loss = loss;
        out.cpus = cpus;
        out.aux_kib = aux_kib;
        out.sink_ids = sink_ids;
        out.per_thread = per_thread;
        return out;
    };
    approved_.add("ETMv4") << recorded(perf("", "none", 3, 16)) << '\n';
    approved_.add("late") << recorded(perf("", "late", 1, 8)) << '\n';
    approved_.add("snapshot") << recorded(perf("", "snapshot", 1, 8)) << '\n';
    approved_.add("TRBE") << recorded(perf("trbe", "none", 1, 8)) << '\n';
    approved_.add("IDs of sinks") << recorded(perf("", "none", 2, 8, true)) << '\n';
    options_.units = etm4::unit_factories()[0];
    options_.unit = options_.units->defaults();
    options_.unit.branch_broadcast = true;
    options_.unit.context_id_bytes = 4;
    approved_.add("ETE") << recorded(perf("", "none", 1, 8)) << '\n';
    approved_.add("ETE with an ETR") << recorded(perf("etr", "none", 1, 8)) << '\n';
    options_.unit.context_id_bytes = 0;
    approved_.add("a ring for each thread") << recorded(perf("", "none", 1, 8, false, true)) << '\n';
    approved_.check("record/whole/perf_options.txt");
    EXPECT_NE(support::contents(arguments).find(",threads=on,children=on\n"), std::string::npos);
}

TEST_F(PerfPrograms, FurtherPrograms) {
    TinyElf elf;
    elf.segments = {{.address = 0x8000, .bytes = std::vector<std::uint8_t>(64)}};
    const std::string arm = folder_.write("arm", elf.build()).string();
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    const std::string other = folder_.write("a64", elf.build()).string();
    std::filesystem::permissions(other, std::filesystem::perms::owner_all);
    const std::string script = code() + thread() + run({1, 2, 1});
    perf_.also = {arm + " x"};
    EXPECT_EQ(record_perf_data(script),
              "error: " + arm + " is not executable; chmod +x makes it so, if it is the program\n");
    std::filesystem::permissions(arm, std::filesystem::perms::owner_all);
    EXPECT_EQ(
        record_perf_data(script),
        "recorded\nsummary: OUT: 10 instructions in 4 ranges, 2 processes, 2 threads on 1 CPU, 64 bytes of trace in 2 "
        "AUX ranges\n");
    EXPECT_EQ(record_perf_data(script + "signal:11\n").find("10 instructions") != std::string::npos, true);
    perf_.also = {" "};
    EXPECT_EQ(record_perf_data(script), "error: --also: no program given\n");
    perf_.also = {other};
    EXPECT_EQ(
        record_perf_data(script),
        fmt::format("error: --also {}: all programs of a file are of one kind, and this one is a 64-bit one\n", other));
}

}  // namespace
}  // namespace waymark::record
