/// The parts of a program's run: what instructions mean for a recording, the part of a block that ran, signals that are
/// delivered, and the program that is started.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/record/child.h"
#include "waymark/record/code.h"
#include "waymark/record/mapped_file.h"
#include "waymark/record/record_outcome.h"
#include "waymark/record/recorded_extent.h"
#include "waymark/record/signals.h"

namespace waymark::record {
namespace {

using isa::Isa;

Code code(Isa isa, const std::vector<std::uint16_t>& halfwords, std::uint32_t instructions, bool each = false,
          std::uint64_t address = 0x8000) {
    Definition d{{address}, {}, instructions, {}, {}};
    for (const std::uint16_t half : halfwords) {
        d.bytes.push_back(static_cast<std::uint8_t>(half));
        d.bytes.push_back(static_cast<std::uint8_t>(half >> 8));
    }
    return understand(d, isa, {}, each);
}
std::vector<std::uint16_t> halves(std::uint32_t word) {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16)};
}
/// Size, whether it is a waypoint, its meaning, and whether it may stop.
std::string meaning(Isa isa, std::uint32_t word, bool one_halfword = false) {
    std::vector<std::uint16_t> all = halves(word);
    if (one_halfword) all.pop_back();
    const Code c = code(isa, all, 1);
    if (c.instructions.size() != 1) return "none";
    const CodeInstruction& i = c.instructions[0];
    constexpr const char* names[] = {"", " call", " undefined", " breakpoint", " wait"};
    EXPECT_EQ(c.waypoints.size(), i.waypoint != isa::Waypoint::none ? 1U : 0U);
    return fmt::format("{}{}{}{}", i.bytes, i.waypoint != isa::Waypoint::none ? " waypoint" : "",
                       names[static_cast<std::size_t>(i.special)], i.may_stop ? " stops" : "");
}

TEST(Understood, InstructionsOfA32) {
    EXPECT_EQ(meaning(Isa::a32, 0xe320f000), "4");             // nop
    EXPECT_EQ(meaning(Isa::a32, 0xea000000), "4 waypoint");    // b
    EXPECT_EQ(meaning(Isa::a32, 0xef000000), "4 call");        // svc
    EXPECT_EQ(meaning(Isa::a32, 0x0f123456), "4 call");        // svceq
    EXPECT_EQ(meaning(Isa::a32, 0xe1200070), "4 breakpoint");  // bkpt
    EXPECT_EQ(meaning(Isa::a32, 0xe12fff7f), "4 breakpoint");  // bkpt #0xffff
    EXPECT_EQ(meaning(Isa::a32, 0xe320f003), "4 wait");        // wfi
    EXPECT_EQ(meaning(Isa::a32, 0x0320f003), "4 wait");        // wfieq
    EXPECT_EQ(meaning(Isa::a32, 0xe320f002), "4");             // wfe
    EXPECT_EQ(meaning(Isa::a32, 0xe7f000f0), "4 undefined");   // udf
    EXPECT_EQ(meaning(Isa::a32, 0xe5912000), "4 stops");       // ldr
    EXPECT_EQ(meaning(Isa::a32, 0xe5912000, true), "none");    // cut short
}

TEST(Understood, InstructionsOfT32) {
    EXPECT_EQ(meaning(Isa::t32, 0xbf00), "2");  // nop
    EXPECT_EQ(meaning(Isa::t32, 0xbf00, true), "2");
    EXPECT_EQ(meaning(Isa::t32, 0xdf00), "2 call");  // svc
    EXPECT_EQ(meaning(Isa::t32, 0xdfff), "2 call");
    EXPECT_EQ(meaning(Isa::t32, 0xbe00), "2 breakpoint");  // bkpt
    EXPECT_EQ(meaning(Isa::t32, 0xbeab), "2 breakpoint");
    EXPECT_EQ(meaning(Isa::t32, 0xbf30), "2 wait");          // wfi
    EXPECT_EQ(meaning(Isa::t32, 0xbf20), "2");               // wfe
    EXPECT_EQ(meaning(Isa::t32, 0x8003f3af), "4 wait");      // wfi.w
    EXPECT_EQ(meaning(Isa::t32, 0x8002f3af), "4");           // wfe.w
    EXPECT_EQ(meaning(Isa::t32, 0xde00), "2 undefined");     // udf
    EXPECT_EQ(meaning(Isa::t32, 0x4770), "2 waypoint");      // bx lr
    EXPECT_EQ(meaning(Isa::t32, 0x6808), "2 stops");         // ldr
    EXPECT_EQ(meaning(Isa::t32, 0x3b04f850), "4 stops");     // ldr.w
    EXPECT_EQ(meaning(Isa::t32, 0x3b04f850, true), "none");  // cut short
}

TEST(Understood, InstructionsOfA64) {
    EXPECT_EQ(meaning(Isa::a64, 0xd503201f), "4");             // nop
    EXPECT_EQ(meaning(Isa::a64, 0xd4000001), "4 call");        // svc
    EXPECT_EQ(meaning(Isa::a64, 0xd41fffe1), "4 call");        // svc #0xffff
    EXPECT_EQ(meaning(Isa::a64, 0xd4000002), "4");             // hvc
    EXPECT_EQ(meaning(Isa::a64, 0xd4200000), "4 breakpoint");  // brk
    EXPECT_EQ(meaning(Isa::a64, 0xd43fffe0), "4 breakpoint");  // brk #0xffff
    EXPECT_EQ(meaning(Isa::a64, 0xd503207f), "4 wait");        // wfi
    EXPECT_EQ(meaning(Isa::a64, 0xd503205f), "4");             // wfe
    EXPECT_EQ(meaning(Isa::a64, 0x00000000), "4 undefined");   // udf
    EXPECT_EQ(meaning(Isa::a64, 0xf9400020), "4 stops");       // ldr
    EXPECT_EQ(meaning(Isa::a64, 0xd65f03c0), "4 waypoint");    // ret
    EXPECT_EQ(meaning(Isa::a64, 0xd503201f, true), "none");    // cut short
}

TEST(Understood, BlocksHavePlacesOfInstructions) {
    // nop; ldr.w; bx lr, of which the bytes have one instruction more
    const Code c = code(Isa::t32, {0xbf00, 0xf850, 0x3b04, 0x4770, 0xbf00}, 3);
    EXPECT_EQ(c.address, Address{0x8000});
    EXPECT_EQ(c.isa, Isa::t32);
    EXPECT_EQ(c.end(), Address{0x8008});
    ASSERT_EQ(c.instructions.size(), 3U);
    EXPECT_EQ(c.instructions[1].offset, 2U);
    EXPECT_EQ(c.instructions[2].offset, 6U);
    ASSERT_EQ(c.waypoints.size(), 1U);
    EXPECT_EQ(c.waypoints[0].index, 2U);
    EXPECT_EQ(c.waypoints[0].address, Address{0x8006});
    const auto index = [&](std::uint64_t at) {
        const auto found = c.index_of({at});
        return found ? static_cast<int>(*found) : -1;
    };
    EXPECT_EQ(index(0x7ffe), -1);
    EXPECT_EQ(index(0x8000), 0);
    EXPECT_EQ(index(0x8002), 1);
    EXPECT_EQ(index(0x8004), -1) << "within an instruction";
    EXPECT_EQ(index(0x8006), 2);
    EXPECT_EQ(index(0x8008), -1);
    const Code each = code(Isa::t32, {0xbf00, 0xf850, 0x3b04, 0x4770}, 3, true);
    ASSERT_EQ(each.waypoints.size(), 3U);
    EXPECT_EQ(each.waypoints[1].index, 1U);
    EXPECT_EQ(each.waypoints[1].address, Address{0x8002});
    const Code a64 = code(Isa::a64, {0x201f, 0xd503, 0x03c0, 0xd65f, 0x201f, 0xd503}, 2, true);
    EXPECT_EQ(a64.bytes.size(), 8U);
    ASSERT_EQ(a64.waypoints.size(), 2U);
    EXPECT_EQ(a64.waypoints[1].address, Address{0x8004});
    EXPECT_EQ(code(Isa::a64, {0x201f, 0xd503, 0x03c0, 0xd65f}, 2).waypoints.size(), 1U);
}

TEST(InstructionSets, ByEvidence) {
    const auto set = [](std::uint64_t address, std::vector<std::uint8_t> bytes, std::optional<Address> second,
                        const char* text) {
        const auto found = instruction_set({{address}, std::move(bytes), 1, second, text});
        return found ? std::string(isa::name(*found)) : "unknown";
    };
    const std::vector<std::uint8_t> bl{0x00, 0xf0, 0x02, 0xf8}, b{0x00, 0x00, 0x00, 0xea};
    for (const std::uint64_t odd : {0x8001U, 0x8002U, 0x8003U}) EXPECT_EQ(set(odd, b, {}, "b #0x8008"), "T32");
    EXPECT_EQ(set(0x8000, b, Address{0x8002}, "b #0x8008"), "T32");
    EXPECT_EQ(set(0x8000, b, Address{0x8004}, "b #0x8008"), "A32");
    EXPECT_EQ(set(0x8000, {0x00, 0xbf, 0x00}, {}, "nop"), "T32") << "less than an A32 instruction";
    EXPECT_EQ(set(0x8000, b, {}, "b #0x8008   "), "A32") << "blanks at the end";
    EXPECT_EQ(set(0x8000, bl, {}, "bl #0x8008"), "T32");
    EXPECT_EQ(set(0x8000, b, {}, "b #0x800c"), "unknown") << "neither";
    EXPECT_EQ(set(0x8000, b, {}, ""), "unknown");
}

TEST(CompletedParts, OfABlock) {
    // nop; ldr; nop; bx lr
    const Code c = code(Isa::a32, {0xf000, 0xe320, 0x2000, 0xe591, 0xf000, 0xe320, 0xff1e, 0xe12f}, 4);
    const auto part = [&](std::optional<std::uint32_t> end, bool stopped, std::optional<std::uint32_t> cut) {
        const CompletedPart p = completed_part(c, end, stopped, cut);
        return fmt::format("{}-{}{}", p.first, p.end, p.stopped ? " stopped" : "");
    };
    EXPECT_EQ(part({}, false, {}), "0-4");
    EXPECT_EQ(part(2, false, {}), "0-2");
    EXPECT_EQ(part(9, false, {}), "0-4");
    EXPECT_EQ(part(1, true, {}), "0-1 stopped");
    EXPECT_EQ(part(2, true, {}), "0-4") << "a nop cannot stop";
    EXPECT_EQ(part(4, true, {}), "0-4");
    EXPECT_EQ(part({}, false, 1), "0-1 stopped") << "by the plugin";
    EXPECT_EQ(part({}, false, 2), "0-4") << "the plugin took a nop for something else";
    EXPECT_EQ(part(0, false, 1), "0-0") << "what is known is better than what the plugin says";
}

TEST(RecordedExtents, FromAPlaceToAPlace) {
    const Code first = code(Isa::a32, {0xf000, 0xe320, 0xf000, 0xe320, 0xf000, 0xe320}, 3, false, 0x8000),
               second = code(Isa::a32, {0xf000, 0xe320, 0xf000, 0xe320}, 2, false, 0x9000);
    const auto piece = [](RecordedExtent& e, const Code& c, CompletedPart part, bool anyway = false) {
        const auto p = e.piece(c, part, anyway);
        if (!p) return std::string("none");
        return fmt::format("{}-{}{}{}{}", p->part.first, p->part.end, p->part.stopped ? " stopped" : "",
                           p->stops ? " stops" : "", p->has_stop ? " has" : "");
    };
    RecordedExtent all({}, {});
    EXPECT_TRUE(all.began());
    EXPECT_FALSE(all.start_known() || all.stop_known());
    EXPECT_EQ(piece(all, first, {0, 3, true}), "0-3 stopped");
    RecordedExtent some(CodePlace(Address{0x8004}), CodePlace(Address{0x9004}));
    EXPECT_TRUE(some.start_known() && some.stop_known());
    EXPECT_EQ(piece(some, second, {0, 2, false}), "none");
    EXPECT_EQ(piece(some, second, {0, 1, false}, true), "0-1 has") << "of another thread";
    EXPECT_EQ(piece(some, first, {0, 1, false}), "none") << "it did not come that far";
    EXPECT_FALSE(some.began());
    EXPECT_EQ(piece(some, first, {0, 2, false}), "1-2");
    EXPECT_TRUE(some.began());
    EXPECT_EQ(piece(some, first, {0, 3, true}), "0-3 stopped");
    EXPECT_EQ(piece(some, second, {0, 1, true}), "0-1 stopped has");
    EXPECT_EQ(piece(some, second, {0, 2, true}), "0-1 stops has");
    RecordedExtent same(CodePlace(Address{0x8004}), CodePlace(Address{0x8000}));
    EXPECT_EQ(piece(same, first, {0, 3, false}), "1-3 has") << "it stops when it comes there again";
    EXPECT_EQ(piece(same, first, {0, 3, false}), "0-0 stops has");
}

TEST(DeliveredSignals, AndTheirExceptions) {
    const Code c =
        code(Isa::a32, {0xf000, 0xe320, 0x0070, 0xe120, 0x00f0, 0xe7f0, 0xff1e, 0xe12f}, 4);  // nop bkpt udf bx
    const auto delivered = [&](std::uint32_t value, std::uint32_t back, bool held = true, bool executes = true) {
        const std::vector<std::uint32_t> halves{back & 0xffff, back >> 16, 0};
        const SignalException e = exception_of(DeliveredSignal(value, halves, false), held ? &c : nullptr, executes);
        return fmt::format("{} {}{}", flow::name(e.kind), e.end ? std::to_string(*e.end) : "-",
                           e.executed ? " executed" : "");
    };
    constexpr std::uint32_t raised = words::raised;
    const std::string irq = std::string(flow::name(flow::ExceptionClass::irq)),
                      undefined = std::string(flow::name(flow::ExceptionClass::undefined)),
                      breakpoint = std::string(flow::name(flow::ExceptionClass::breakpoint)),
                      data = std::string(flow::name(flow::ExceptionClass::data_abort)),
                      prefetch = std::string(flow::name(flow::ExceptionClass::prefetch_abort));
    EXPECT_EQ(delivered(SIGSEGV, 0x8004), irq + " -") << "sent by kill";
    EXPECT_EQ(delivered(raised | SIGSEGV, 0x8004), data + " 1");
    EXPECT_EQ(delivered(raised | SIGBUS, 0x8000), data + " 0");
    EXPECT_EQ(delivered(raised | SIGSEGV, 0x9000), prefetch + " -");
    EXPECT_EQ(delivered(raised | SIGBUS, 0x8004, false), prefetch + " -");
    EXPECT_EQ(delivered(raised | SIGTRAP, 0x8004), breakpoint + " 1");
    EXPECT_EQ(delivered(raised | SIGTRAP, 0x9004), breakpoint + " -");
    EXPECT_EQ(delivered(raised | SIGTRAP, 0x8008), undefined + " 3 executed") << "Linux' own breakpoint";
    EXPECT_EQ(delivered(raised | SIGTRAP, 0x8008, true, false), undefined + " 2");
    EXPECT_EQ(delivered(raised | SIGILL, 0x8008), undefined + " 3 executed");
    EXPECT_EQ(delivered(raised | SIGFPE, 0x8000), undefined + " 1 executed");
    EXPECT_EQ(delivered(raised | SIGILL, 0x800c), undefined + " 3") << "a branch";
    EXPECT_EQ(delivered(raised | SIGILL, 0x9000), undefined + " -");
    EXPECT_EQ(delivered(raised | SIGUSR1, 0x8004), irq + " 1");
    const std::vector<std::uint32_t> three{0x1234, 0x5678, words::thumb}, five{1, 2, 3, 4, 0};
    const DeliveredSignal thumb(raised | 11, three, false), wide(10, five, true);
    EXPECT_EQ(thumb.number, 11);
    EXPECT_TRUE(thumb.raised);
    EXPECT_EQ(thumb.back, (isa::Place{{0x56781234}, Isa::t32}));
    EXPECT_EQ(wide.number, 10);
    EXPECT_FALSE(wide.raised);
    EXPECT_EQ(wide.back, (isa::Place{{0x0004000300020001}, Isa::a64}));
}

TEST(MappedFiles, WholePagesOfSegments) {
    const TemporaryFolder folder;
    TinyElf elf;
    elf.segments = {{.address = 0x18034, .bytes = std::vector<std::uint8_t>(0x2000)},
                    {.address = 0x32034, .bytes = std::vector<std::uint8_t>(0x100)}};
    const MappedFile file = read_mapped_file(folder.write("program", elf.build()).string());
    // The bytes are at offset 0x34, up to 0x2034, and then up to 0x2134.
    ASSERT_EQ(file.executable.size(), 2U);
    EXPECT_EQ(file.executable[1].offset, 0x2000U);
    EXPECT_EQ(file.executable[1].bytes, 0x1000U);
    EXPECT_EQ(file.executable[1].address, 0x32000U);
    EXPECT_EQ(file.executable[0].offset, 0U);
    EXPECT_EQ(file.executable[0].bytes, 0x3000U);
    EXPECT_EQ(file.executable[0].address, 0x18000U);
    EXPECT_TRUE(file.build_id.empty());
    EXPECT_TRUE(read_mapped_file((folder.path() / "none").string()).executable.empty());
    EXPECT_TRUE(read_mapped_file(folder.write("text", std::string_view("text")).string()).executable.empty());
}

TEST(MappedFiles, ExecutablePieces) {
    MappedFile file;
    file.executable = {{0x1000, 0x2000, 0}, {0x5000, 0x1000, 0}};
    const auto pieces = [&](std::uint64_t address, std::uint64_t bytes, std::uint64_t offset) {
        MapPart part;
        part.address = address;
        part.bytes = bytes;
        part.file_offset = offset;
        std::string out;
        for (const MappedPiece& p : executable_pieces(file, part))
            out += fmt::format("{:x}+{:x}@{:x} ", p.address, p.bytes, p.file_offset);
        return out;
    };
    EXPECT_EQ(pieces(0x400000, 0x6000, 0), "401000+2000@1000 405000+1000@5000 ");
    EXPECT_EQ(pieces(0x400000, 0x1000, 0x2000), "400000+1000@2000 ");
    EXPECT_EQ(pieces(0x400000, 0x3000, 0x2000), "400000+1000@2000 ");
    EXPECT_EQ(pieces(0x400000, 0x1000, 0x3000), "400000+1000@3000 ")
        << "it holds no executable segment, and is one piece";
    file.executable.clear();
    EXPECT_EQ(pieces(0x400000, 0x3000, 0x2000), "400000+3000@2000 ");
}

// ---- the program

TEST(StartedPrograms, StatusAndInput) {
    const auto status = [](const std::vector<std::string>& command, bool input) {
        const auto pid = start_program(command, input);
        EXPECT_TRUE(pid);
        int out = 0;
        EXPECT_EQ(waitpid(*pid, &out, 0), *pid);
        return WIFEXITED(out) ? WEXITSTATUS(out) : -WTERMSIG(out);
    };
    EXPECT_EQ(status({"/bin/sh", "-c", "exit 7"}, true), 7);
    EXPECT_EQ(status({"/bin/sh", "-c", "kill -9 $$"}, true), -9);
    EXPECT_EQ(status({"/no/such/program"}, true), 127);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const int before = dup(STDIN_FILENO);
    ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    const std::vector<std::string> is_empty{"/bin/sh", "-c", "test \"$(readlink /proc/$$/fd/0)\" = /dev/null"};
    EXPECT_EQ(status(is_empty, false), 0);
    EXPECT_EQ(status(is_empty, true), 1);
    before < 0 ? close(STDIN_FILENO) : dup2(before, STDIN_FILENO);
    for (const int file : {ends[0], ends[1], before})
        if (file >= 0) close(file);
}

/// Waits until a started program is that program: before, it has this program's handlers.
void wait_for(int pid, const std::string& name) {
    for (std::string now; now != name;) {
        std::ifstream in(fmt::format("/proc/{}/comm", pid));
        std::getline(in, now);
    }
}

TEST(SignalHandling, PassesSignalsOn) {
    const auto before = std::signal(SIGHUP, SIG_IGN), interrupt = std::signal(SIGINT, SIG_DFL);
    {
        SignalHandlers handlers;
        EXPECT_EQ(handlers.received(), std::nullopt);
        EXPECT_EQ(raise(SIGHUP), 0);
        EXPECT_EQ(handlers.received(), std::nullopt) << "it was ignored before";
        const auto program = start_program({"/bin/sleep", "100"}, true);
        ASSERT_TRUE(program);
        wait_for(*program, "sleep");
        handlers.pass_to(*program);
        EXPECT_EQ(raise(SIGTERM), 0);
        EXPECT_EQ(handlers.received(), SIGTERM);
        int status = 0;
        EXPECT_EQ(waitpid(*program, &status, 0), *program);
        EXPECT_TRUE(WIFSIGNALED(status));
        EXPECT_EQ(WTERMSIG(status), SIGTERM);
        handlers.pass_to(0);
    }
    std::signal(SIGHUP, SIG_DFL);
    {
        SignalHandlers handlers;
        EXPECT_EQ(handlers.received(), std::nullopt) << "each begins anew";
        EXPECT_EQ(raise(SIGHUP), 0);
        EXPECT_EQ(handlers.received(), SIGHUP);
        const auto program = start_program({"/bin/sh", "-c", "trap '' INT; exec sleep 100"}, true);
        ASSERT_TRUE(program);
        wait_for(*program, "sleep");
        handlers.pass_to(*program);
        EXPECT_EQ(raise(SIGINT), 0) << "the second";
        int status = 0;
        EXPECT_EQ(waitpid(*program, &status, 0), *program);
        EXPECT_TRUE(WIFSIGNALED(status));
        EXPECT_EQ(WTERMSIG(status), SIGKILL);
        handlers.pass_to(0);
    }
    EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_DFL) << "as before";
    std::signal(SIGINT, interrupt);
    std::signal(SIGHUP, before);
    EXPECT_EXIT(
        {
            SignalHandlers handlers;
            for (int i = 0; i < 3; ++i) raise(SIGTERM);
            _exit(0);
        },
        testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(StartedPrograms, EndWithTheRecorder) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t recorder = fork();
    if (recorder == 0) {
        const auto program = start_program({"/bin/sleep", "100"}, true);
        const int pid = program ? *program : 0;
        wait_for(pid, "sleep");
        _exit(write(ends[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
    }
    int pid = 0;
    ASSERT_EQ(read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    ASSERT_EQ(waitpid(recorder, nullptr, 0), recorder);
    // Another process may have to collect it before its number is free.
    const auto runs = [&] {
        std::string line;
        std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), line);
        return line.find("(sleep) S") != line.npos || line.find("(sleep) R") != line.npos;
    };
    for (int i = 0; i < 20'000 && runs(); ++i) usleep(1000);
    EXPECT_FALSE(runs());
    if (runs()) kill(pid, SIGKILL);
    close(ends[0]);
    close(ends[1]);
}

TEST(SignalNames, OfEachNumber) {
    EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
    EXPECT_EQ(signal_name(SIGINT), "SIGINT");
    EXPECT_EQ(signal_name(200), "signal 200");
}

}  // namespace
}  // namespace waymark::record
