/// Whole recordings: every file that a recorder writes and every figure it reports, for runs that contain each kind of
/// word, definition and option, beside approved text in tests/record/whole. WM_UPDATE_APPROVED=1 writes the text:
/// review it like code. That the trace decodes to what ran is tested in recorder_test.cc and by recordings under QEMU.
#include <gtest/gtest.h>

#include "record/run_parts.h"
#include "support/approved.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/etm4/unit.h"
#include "waymark/pft/unit.h"
#include "waymark/record/recorder.h"
#include "waymark/record/recording_texts.h"

namespace waymark::record {
namespace {

using support::exception_32;
using support::exception_64;
using support::joined;
using support::Parts;
using support::signal_32;
using support::signal_64;
using support::Words;
using support::written_64;

// A32
constexpr std::uint32_t nop = 0xe320f000, svc = 0xef000000, bx_lr = 0xe12fff1e, ldr = 0xe5912000, isb = 0xf57ff06f,
                        udf = 0xe7f000f0, bkpt = 0xe1200070, beq_plus_16 = 0x0a000002, blx_plus_16 = 0xfa000002,
                        wfi = 0xe320f003, mov_1 = 0xe3a00001;
// A64
constexpr std::uint32_t nop64 = 0xd503201f, ret64 = 0xd65f03c0, svc64 = 0xd4000001, ldr64 = 0xf9400020,
                        cbz64_plus_16 = 0xb4000080, brk64 = 0xd4200000, udf64 = 0, wfi64 = 0xd503207f,
                        eret64 = 0xd69f03e0, isb64 = 0xd5033fdf;

std::string text(const Recorded& r) {
    std::string out = fmt::format(
        "instructions {} ranges {} trace {} code {} filtered {} {} not permitted {} kept {} threads {} changes {} "
        "epochs "
        "{}\nbegan {} wrapped {} triggers {} before {} after {} by trigger {} known {} {} unreached {}\ndecodable {} "
        "replaced {} kept earlier {} stopped {} too often {} jumps {} aarch32 {} unread {}\n",
        r.instructions, r.ranges, r.trace_bytes, r.code_bytes, r.filtered_ranges, r.filtered_instructions,
        r.not_permitted_ranges, r.kept_bytes, r.threads, r.code_changes, r.epochs, r.began, r.wrapped, r.triggers,
        r.before_trigger ? std::to_string(*r.before_trigger) : "none", r.after_trigger, r.stopped_by_trigger,
        r.start_known, r.stop_known, r.trigger_unreached, r.decodable, r.replaced, r.kept_earlier, r.stopped,
        r.changed_too_often, r.jumps, r.stays_in_aarch32, r.unread_registers);
    const auto place = [&](const char* name, const std::optional<Address>& at) {
        if (at) out += fmt::format("{} {:#x}\n", name, at->value);
    };
    place("lost way", r.lost_way);
    place("stuck", r.stuck);
    place("unknown vector", r.unknown_vector);
    for (const auto& p : r.prohibited)
        out += fmt::format("prohibited {} {} {}\n", p.reason, p.ranges ? std::to_string(*p.ranges) : "?",
                           p.instructions ? std::to_string(*p.instructions) : "?");
    for (const auto& p : r.unknown_places) out += fmt::format("unknown place {}\n", p);
    for (const auto& [option, known] : r.unreached_signals) out += fmt::format("unreached {} {}\n", option, known);
    return out;
}

/// A step of a run.
struct Step {
    std::uint32_t thread;  ///< 0: definitions
    Words words;
};
struct Example {
    const char* name;
    RecorderOptions options;
    std::vector<Step> steps;
    bool complete = true;
    const char* ended = "";
};

class WholeRecording : public testing::Test {
protected:
    RecorderOptions ptm(const std::function<void(RecorderOptions&)>& change = {}) {
        RecorderOptions o;
        o.units = &pft::unit_factory();
        o.unit = o.units->defaults();
        if (change) change(o);
        return o;
    }
    RecorderOptions etm4(std::size_t factory, const std::function<void(RecorderOptions&)>& change = {}) {
        RecorderOptions o;
        o.units = etm4::unit_factories()[factory];
        o.unit = o.units->defaults();
        o.aarch64 = true;
        if (change) change(o);
        return o;
    }
    void add(Example run) {
        std::ostream& out = approved_.add(run.name);
        const std::filesystem::path folder = folder_.path() / fmt::format("out{}", ++runs_);
        run.options.folder = folder;
        if (run.options.description.empty()) run.options.description = "a run";
        auto recorder = Recorder::create(std::move(run.options));
        ASSERT_TRUE(recorder) << recorder.error().message;
        for (const Step& step : run.steps) {
            if (step.thread == 0)
                (*recorder)->definitions(step.words);
            else
                (*recorder)->execution(step.thread, step.words);
        }
        const Status finished = (*recorder)->finish(run.complete, run.ended);
        if (!finished) out << "error: " << finished.error().message << '\n';
        out << text((*recorder)->recorded());
        recorder->reset();
        std::string files = support::as_text(folder);
        const std::string outer = folder_.path().string();
        for (std::size_t at; (at = files.find(outer)) != files.npos;) files.replace(at, outer.size(), "OUTER");
        out << files;
    }
    TemporaryFolder folder_;
    support::Approved approved_;
    int runs_ = 0;
};

/// Blocks of A32 and T32 code, each with another end.
Words blocks_32() {
    return Parts()
        .block(1, 0x8000, {nop, bx_lr}, "nop ")
        .block(2, 0x8008, {ldr, ldr, beq_plus_16}, "ldr r2, [r1] ")
        .block(3, 0x8014, {nop, nop, svc}, "nop ")
        .block(4, 0x8020, {isb, nop, bx_lr})
        .block(5, 0x8030, {nop, udf})
        .block(6, 0x8038, {nop, bkpt})
        .block(7, 0x8040, {nop, blx_plus_16})
        .thumb(8, 0x8054, 3, {0xbf00, 0x6808, 0x4770})     // nop; ldr; bx lr
        .thumb(9, 0x805a, 2, {0xf3bf, 0x8f6f, 0x4770}, 4)  // isb; bx lr
        .block(10, 0x9000, {nop, bx_lr})
        .block(11, 0x9100, {wfi})
        .block(12, 0x9104, {nop, bx_lr})
        .block(13, 0xffff0fc0, {})  // a kernel helper
        .words;
}

TEST_F(WholeRecording, Threads32) {
    constexpr std::uint32_t call = words::system_call, cut = words::cut;
    const std::vector<Step> steps{
        {0, Parts().map(0x8000, 0x1000, "/no/such/program").map(0x9000, 0x1000).page(0x8000, '\x11').words},
        {0, blocks_32()},
        {1, {1, 2, 3, call, 1, 4, 7, 8, 9}},
        {2, {2, 4, 1, cut | 1}},
        {1, {2, cut | 1}},
        // Signals: from elsewhere between blocks, from within a block by its load, by code that is undefined and by a
        // breakpoint.
        {1, joined({{1}, signal_32(10, 0x8008, 0), {10, call}})},
        {1, joined({{2}, signal_32(words::raised | 11, 0x800c, 0), {10, 1}})},
        {1, joined({{5}, signal_32(words::raised | 4, 0x8034, 0), {10, call}})},
        {1, joined({{6}, signal_32(words::raised | 5, 0x803c, 0), {10, 1}})},
        {1, joined({{8}, signal_32(words::raised | 7, 0x8056, words::thumb), {10, call}})},
        {2, {3, call, 13, 1, words::thread_end}},
        {0, Parts().unmap(0x9000, 0x1000, 1).still_mapped(1).unmap(0x9000, 0x800, 2).words},
        {1, {10, 12, 12}},
        {0, Parts().unmap(0x9000, 0x1000, 3).map(0x9000, 0x1000, "/no/other").block(14, 0x9000, {mov_1, bx_lr}).words},
        {1, {1, 14, 1, 10, 1}},
        {1, {15, 1, 99, 1, 1}},  // there are no such blocks
    };
    add({"Every packet that a PTM can add", ptm([](RecorderOptions& o) {
             o.unit.cycle_accurate = o.unit.timestamps = o.unit.branch_broadcast = o.unit.return_stack = true;
             o.unit.context_id_bytes = 4;
             o.truth_ranges = true;
         }),
         steps, true, "exited with 3"});
    add({"From a place to a place", ptm([](RecorderOptions& o) {
             o.start_at = CodePlace(Address{0x8018}, "start; here");
             o.stop_at = CodePlace(Address{0x9004});
             o.description = "a#b;c'd\"e\n ";
         }),
         steps});
    add({"Only the first thread waits", ptm([](RecorderOptions& o) {
             o.start_at = CodePlace(Address{0x8020});
             o.start_of_first_thread = true;
         }),
         steps, false});
    add({"A limit of instructions", ptm([](RecorderOptions& o) { o.limit_instructions = 20; }), steps});
    add({"A limit of changes", ptm([](RecorderOptions& o) { o.limit_changes = 0; }), steps});
    add({"A start that is never reached", ptm([](RecorderOptions& o) { o.start_at = CodePlace(Address{0x7000}); }),
         steps});
    // At first it stops before the place is reached; then it is an ordinary block, but for the place.
    add({"A place in a block that stopped before it",
         ptm([](RecorderOptions& o) { o.stop_at = CodePlace(Address{0x8010}); }),
         {{0, blocks_32()}, {1, {2, cut | 1}}, {1, {2, cut | 1}}, {1, {1, 1, 2, 1, 2, 1, 2, 1}}}});
    Words loop, changed;
    for (int i = 0; i < 40; ++i) {
        loop = joined({loop, {1, 10, 1, 12}});
        changed = joined({changed, {1, 14, 1, 12}});
    }
    add({"Loops before and after code changed",
         ptm([](RecorderOptions& o) {
             o.unit.cycle_accurate = o.unit.timestamps = true;
             o.truth_ranges = true;
         }),
         {{0, blocks_32()},
          {0, Parts().block(14, 0x9000, {mov_1, bx_lr}).words},
          {1, loop},
          {2, loop},
          {1, changed},
          {2, changed},
          {1, loop}}});
    approved_.check("record/whole/threads_32.txt");
}

TEST_F(WholeRecording, Threads64) {
    constexpr std::uint32_t call = words::system_call, cut = words::cut;
    const Words blocks = Parts()
                             .block(1, 0x400000, {nop64, ret64})
                             .block(2, 0x400008, {ldr64, ldr64, cbz64_plus_16})
                             .block(3, 0x400014, {nop64, svc64})
                             .block(4, 0x40001c, {isb64, nop64, ret64})
                             .block(5, 0x400028, {nop64, udf64})
                             .block(6, 0x400030, {nop64, brk64})
                             .block(7, 0xffff00001000, {nop64, nop64, ret64})
                             .words;
    const std::vector<Step> steps{
        {0, blocks},
        {1, {1, 2, 3, call, 4, 1, 7}},
        {2, {2, 4, 1, cut | 1}},
        {1, joined({{2}, signal_64(words::raised | 11, 0x40000c), {7, call}})},
        {1, joined({{5}, signal_64(words::raised | 4, 0x40002c), {7, call}})},
        {1, joined({{6}, signal_64(words::raised | 5, 0x400034), {7, 1}})},
        {1, joined({{1}, signal_64(14, 0xffff00001000), {4, call}})},
        {1, {7, 7, 7}},
        {2, {words::thread_end}},
    };
    add({"ETE",
         etm4(0,
              [](RecorderOptions& o) {
                  o.unit.cycle_accurate = o.unit.timestamps = o.unit.branch_broadcast = true;
                  o.unit.context_id_bytes = 4;
                  o.truth_ranges = true;
              }),
         steps});
    add({"ETMv4", etm4(1), steps, false});
    approved_.check("record/whole/threads_64.txt");
}

TEST_F(WholeRecording, System32) {
    const Words blocks = Parts()
                             .block(1, 0x8000, {nop, bx_lr})
                             .block(2, 0x8008, {ldr, ldr, beq_plus_16})
                             .block(3, 0x8100, {nop, svc})
                             .block(4, 0x8200, {nop, udf, nop, bx_lr})
                             .block(5, 0x8300, {nop, bkpt})
                             .block(6, 0x8400, {nop, wfi})
                             .block(7, 0x8408, {nop, bx_lr})
                             .block(8, 0x18, {nop, 0xe25ef004})  // subs pc, lr, #4
                             .block(9, 0x10, {nop, 0xe25ef008})
                             .block(10, 0x4, {nop, 0xe1b0f00e})       // movs pc, lr
                             .block(11, 0x5014, {nop, bx_lr})         // at a vector that nothing describes
                             .block(12, 0x9000, {})                   // cannot be fetched
                             .thumb(13, 0x9102, 2, {0xbf00, 0xde00})  // nop; udf
                             .block(14, 0x5020, {nop, bx_lr})
                             .words;
    const auto all_numbers = [] {
        Words out;
        for (const std::uint32_t number : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 11U, 12U, 13U, 14U, 15U, 24U, 99U})
            out = joined({out, {1}, exception_32(number, 0x8100 + 4, 0x18, words::ns), {8, 3}});
        return out;
    };
    const std::vector<Step> steps{
        {0, blocks},
        {1, {words::state, 1, 3}},
        {1, joined({exception_32(2, 0x8108, 0x8, 0), {1, words::state | words::ns, 1}})},
        {1, joined({{2}, exception_32(4, 0x800c + 8, 0x10, words::ns), {9, 1}})},
        {1, joined({{4}, exception_32(1, 0x8204 + 4, 0x4, words::ns), {10, 1}})},
        {1, joined({{13}, exception_32(1, 0x9104 + 2, 0x4, words::ns | words::thumb), {10, 1}})},
        {1, joined({{5}, exception_32(7, 0x8304 + 4, 0xc, words::ns), {9, 1}})},
        {1, joined({{6}, exception_32(5, 0x8408 + 4, 0x18, words::ns), {8, 7, 1}})},
        {1, joined({{2, words::cut | 1}, exception_32(5, 0x8010 + 4, 0x18, words::ns), {8, 1}})},
        {1, joined({{2, words::cut | 1}, exception_32(5, 0x8014 + 4, 0x18, words::ns), {8, 1}})},
        {1, joined({{2, words::cut | 2}, exception_32(6, 0x800c + 4, 0x1c, words::ns), {8, 1}})},
        {1, joined({{1}, exception_32(4, 0x9000 + 8, 0x14, words::hyp | words::ns), {9, 1}})},
        {1, joined({{1}, exception_32(11, 0x9000, 0x14, words::hyp | words::ns), {9, 1}})},
        {1, all_numbers()},
        {1, {1, 11, 1, 14, 12, 1}},
        {2, {words::state | words::ns, 6, 7, 1, 1}},
        {1, {10, 1, 1}},
    };
    const auto options = [&](const std::function<void(RecorderOptions&)>& change = {}) {
        return ptm([&](RecorderOptions& o) {
            o.system = true;
            o.reset = Address{0x4};
            o.truth_ranges = true;
            if (change) change(o);
        });
    };
    add({"Exceptions of every kind", options(), steps});
    add({"As they come from other settings", options([](RecorderOptions& o) {
             o.unit.cycle_accurate = o.unit.timestamps = true;
             o.truth_ranges = false;
             o.reset.reset();
             o.instruction_set = [](Address at) {
                 return at.value == 0x9100 ? std::optional(isa::Isa::t32) : std::nullopt;
             };
         }),
         steps});
    std::vector<Step> stuck{{0, blocks}, {1, {1}}};
    for (int i = 0; i < 1003; ++i) stuck.push_back({1, exception_32(3, 0x18 + 4, 0xc, words::ns)});
    stuck.push_back({1, {1, 1}});
    add({"Exceptions without end", options([](RecorderOptions& o) { o.truth_ranges = false; }), stuck});
    approved_.check("record/whole/system_32.txt");
}

TEST_F(WholeRecording, System64) {
    constexpr std::uint32_t el1 = 1U << words::el_bit, el2 = 2U << words::el_bit, el3 = 3U << words::el_bit;
    const Words blocks = Parts()
                             .block(1, 0x80000, {nop64, ret64})
                             .block(2, 0x80008, {ldr64, ldr64, cbz64_plus_16})
                             .block(3, 0x80014, {nop64, svc64})
                             .block(4, 0x80020, {nop64, wfi64})
                             .block(5, 0x80028, {nop64, ret64})
                             .block(6, 0x80200, {nop64, eret64})
                             .block(7, 0x80300, {nop64, 0xd51e1100})  // msr scr_el3, x0
                             .block(8, 0x80308, {nop64, ret64})
                             .block(9, 0x80400, {nop64, brk64})
                             .words;
    const auto all_classes = [&] {
        Words out;
        for (std::uint32_t ec = 0; ec < 0x40; ++ec)
            out = joined({out, {1}, exception_64(1, 0x80008, 0x80200, el1, ec), {6, 2}});
        for (const std::uint32_t number : {5U, 6U, 14U, 15U, 24U})
            out = joined({out, {1}, exception_64(number, 0x80008, 0x80200, el2, 0), {6, 2}});
        return out;
    };
    const auto wrote = [](A64Register reg, std::uint64_t value) {
        return written_64(static_cast<std::uint32_t>(reg), value);
    };
    const std::vector<Step> steps{
        {0, blocks},
        {1, {words::state | el3, 1, 7}},
        {1, joined({wrote(A64Register::scr_el3, 1), {8, words::state | el1, 1}})},
        {1, joined({{3}, exception_64(2, 0x8001c, 0x80200, el1 | words::ns_known | words::ns, 0x15), {6, 4}})},
        {1, joined({exception_64(5, 0x80028, 0x80200, el2, 0), {6, 5, 1}})},
        {1, joined({{2}, exception_64(4, 0x8000c, 0x80200, el1, 0x25), {6, 2}})},
        {1, joined({{2}, exception_64(4, 0x80008, 0x80200, el1, 0x21), {6, 1}})},
        {1, joined({{9}, exception_64(7, 0x80404, 0x80200, el1, 0x3c), {6, 1}})},
        {1, joined({{2, words::cut | 1}, exception_64(5, 0x80010, 0x80200, el1, 0), {6, 1}})},
        {1, joined({{2, words::cut | 2}, exception_64(5, 0x8000c, 0x80200, el1, 0), {6, 1}})},
        {1, joined({{2, words::cut | 1}, exception_64(5, 0x80014, 0x80200, el1, 0), {6, 1}})},
        {1, joined({{7}, wrote(A64Register::contextidr_el1, 0x1234), {8, 1}})},
        {1, joined({{7}, wrote(A64Register::vttbr_el2, 0x00050000'00000000), {8, 1}})},
        {1, joined({{7}, wrote(A64Register::hcr_el2, std::uint64_t{1} << 34), {8, words::state | el2, 1}})},
        {1, joined({{7}, wrote(A64Register::contextidr_el1, 0x77), {8, 1}})},
        {1, joined({{7}, wrote(A64Register::contextidr_el12, 0x88), {8, 1}})},
        {1, joined({{7}, wrote(A64Register::contextidr_el2, 0x99), {8, 1}})},
        {1, joined({{7}, written_64(words::unread | static_cast<std::uint32_t>(A64Register::scr_el3), 0), {8, 1}})},
        {1, joined({{7}, written_64(words::unread | static_cast<std::uint32_t>(A64Register::vttbr_el2), 0), {8, 1}})},
        {1, all_classes()},
        // A stay in AArch32, which ends by an exception; and places to which nothing led.
        {1, {words::state | words::aarch32, 1, 1}},
        {1, joined({exception_64(2, 0x8000, 0x80200, el1, 0x11), {6, 1, 5, 3, 1}})},
        {2, {words::state | el1 | words::ns_known, 4, 5, 1, 1}},
    };
    add({"ETE of a system",
         etm4(0,
              [](RecorderOptions& o) {
                  o.system = true;
                  o.unit.context_id_bytes = 4;
                  o.unit.vmid = true;
                  o.unit.timestamps = true;
              }),
         steps});
    add({"ETMv4 of a system",
         etm4(1,
              [](RecorderOptions& o) {
                  o.system = o.truth_ranges = true;
                  o.reset = Address{0x80000};
              }),
         steps});
    approved_.check("record/whole/system_64.txt");
}

/// A long run of one thread with branches to two functions.
std::vector<Step> many_rounds(std::size_t rounds) {
    Words words;
    for (std::size_t i = 0; i < rounds; ++i) words = joined({words, {1, 10, 1, 12}});
    return {{0, blocks_32()}, {1, words}, {2, {10, 10, 10}}, {1, {1, 10}}};
}

TEST_F(WholeRecording, Buffers) {
    const auto sink = [](const char* text, std::optional<std::uint64_t> after) {
        auto setup = read_sink(text, after, false);
        EXPECT_TRUE(setup) << (setup ? "" : setup.error().message);
        return setup ? *setup : std::nullopt;
    };
    add({"A buffer that wraps", ptm([](RecorderOptions& o) { o.buffer_bytes = 64; }), many_rounds(60)});
    add({"A buffer that holds all", ptm([](RecorderOptions& o) { o.buffer_bytes = 4096; }), many_rounds(3)});
    add({"A trigger that stops the buffer", ptm([&](RecorderOptions& o) {
             o.sink = sink("tmc-etb:1024", 64);
             o.trigger_at = CodePlace(Address{0x9104}, "at");
         }),
         many_rounds(200)});
    add({"A trigger that comes too late", ptm([&](RecorderOptions& o) {
             o.sink = sink("etb:512", 256);
             o.trigger_at = CodePlace(Address{0x8000});
         }),
         many_rounds(2)});
    add({"A trace port", ptm([&](RecorderOptions& o) { o.sink = sink("tpiu:4", {}); }), many_rounds(2)});
    add({"A trigger that never comes", ptm([&](RecorderOptions& o) {
             o.sink = sink("tmc-etr:4096", {});
             o.trigger_at = CodePlace(Address{0x8400});
         }),
         many_rounds(2)});
    approved_.check("record/whole/buffers.txt");
}

TEST_F(WholeRecording, ComparatorsAndSignals) {
    const std::string program = [&] {
        TinyElf elf;
        elf.segments = {{.address = 0x8000, .bytes = std::vector<std::uint8_t>(0x2000)}};
        elf.sections = {{.name = ".text", .address = 0x8000, .bytes = std::vector<std::uint8_t>(0x2000)}};
        elf.symbols = {{.name = "far", .value = 0x9000, .bytes = 8, .section = 1}};
        return folder_.write("program", elf.build()).string();
    }();
    std::vector<Step> mapped = many_rounds(4);
    mapped.insert(mapped.begin() + 2, {0, Parts().map(0x8000, 0x2000, program, 0x34).words});
    add({"Ranges and a trigger", ptm([](RecorderOptions& o) {
             o.ranges = {{CodePlace(Address{0x9000}), CodePlace(Address{0x9008}), false}};
             o.trigger_at = CodePlace(Address{0x9104});
         }),
         many_rounds(4)});
    add({"An excluded range, and places that are found later or never", ptm([&](RecorderOptions& o) {
             o.ranges = {{CodePlace("far", program), {}, true},
                         {CodePlace("none", program), CodePlace("nor", program), true}};
         }),
         mapped});
    const auto change = [](SignalChange::Of of, std::optional<CodePlace> at, bool on, const char* option,
                           std::optional<bool> niden = {}) {
        SignalChange out;
        out.of = of;
        out.at = std::move(at);
        out.on = on;
        out.option = option;
        out.niden = niden;
        return out;
    };
    using Of = SignalChange::Of;
    add({"Signals that change", ptm([&](RecorderOptions& o) {
             o.signals = {change(Of::authentication, {}, false, "from the beginning", false),
                          change(Of::authentication, CodePlace(Address{0x9100}), false, "never", true),
                          change(Of::authentication, CodePlace(Address{0x9104}), false, "niden", true),
                          change(Of::os_lock, CodePlace("gone", std::filesystem::path()), true, "unknown")};
             o.truth_ranges = true;
         }),
         many_rounds(3)});
    add({"Power that goes and comes", ptm([&](RecorderOptions& o) {
             o.signals = {change(Of::power, CodePlace(Address{0x9000}), false, "off"),
                          change(Of::power, CodePlace(Address{0x9108}), true, "on")};
         }),
         many_rounds(3)});
    add({"A lock that closes and opens", ptm([&](RecorderOptions& o) {
             o.signals = {change(Of::os_lock, CodePlace(Address{0x9004}), true, "on"),
                          change(Of::os_lock, CodePlace(Address{0x9104}), false, "off")};
         }),
         many_rounds(3)});
    add({"Signals of a unit that counters start", ptm([&](RecorderOptions& o) {
             o.unit.registers = {{"ETMTEEVR", "", 0x40, "file:1"}};
             o.signals = {change(Of::os_lock, CodePlace(Address{0x9004}), true, "on"),
                          change(Of::os_lock, CodePlace(Address{0x9104}), false, "off"),
                          change(Of::authentication, CodePlace(Address{0x8000}), false, "niden", false),
                          change(Of::authentication, CodePlace(Address{0x9000}), false, "niden", true)};
         }),
         many_rounds(6)});
    add({"Power, lock and permission at once", ptm([&](RecorderOptions& o) {
             o.signals = {change(Of::power, CodePlace(Address{0x9000}), false, "off"),
                          change(Of::os_lock, CodePlace(Address{0x9004}), true, "on"),
                          change(Of::authentication, CodePlace(Address{0x9104}), false, "niden", false),
                          change(Of::power, CodePlace(Address{0x9108}), true, "on")};
             o.unit.context_id_bytes = 4;
         }),
         many_rounds(3)});
    approved_.check("record/whole/signals.txt");
}

}  // namespace
}  // namespace waymark::record
