/// The options of a recording: what each combination means for recorder and QEMU, and each refusal, beside approved
/// text in tests/record/whole. WM_UPDATE_APPROVED=1 writes the text: review it like code.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "record/run_parts.h"
#include "support/approved.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/etm4/unit.h"
#include "waymark/pft/unit.h"
#include "waymark/record/a64_system.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/recording_texts.h"
#include "waymark/record/system_program.h"

namespace waymark::record {
namespace {

std::string text(const std::optional<CodePlace>& place) {
    if (!place) return "-";
    return fmt::format("{}@{}+{}", place->text(),
                       place->address() ? fmt::format("{:#x}", place->address()->value) : "later", place->bytes());
}
std::string text(const flow::UnitOptions& u) {
    std::string out = "unit";
    for (const auto& [name, ranges] : {std::pair("view", &u.view), std::pair("exclude", &u.exclude)})
        for (const flow::AddressRange& r : *ranges)
            out += fmt::format(" {} {:#x}-{:#x}", name, r.first.value, r.end.value);
    if (u.trigger_at) out += fmt::format(" trigger {:#x}", u.trigger_at->value);
    for (const flow::RegisterSetting& r : u.registers)
        out += fmt::format(" {}{}{}={:#x} by {}", r.name, r.field.empty() ? "" : ".", r.field, r.value,
                           std::filesystem::path(r.where).filename().string());
    return out + "\n";
}
std::string text(const FlowSetup& s) {
    const RecorderOptions& r = s.recorder;
    const QemuOptions& q = s.qemu;
    std::string out = fmt::format(
        "recorder {} '{}' {} force {} truth {} limit {} changes {} start {} first thread {} stop {} trigger {} buffer "
        "{} "
        "aarch64 {} system {} reset {} image {} sets {}\n",
        r.folder.string(), r.description, r.units->name(), r.force, r.truth_ranges, r.limit_instructions,
        r.limit_changes, text(r.start_at), r.start_of_first_thread, text(r.stop_at), text(r.trigger_at), r.buffer_bytes,
        r.aarch64, r.system, r.reset ? fmt::format("{:#x}", r.reset->value) : "-", r.system_image.string(),
        r.instruction_set != nullptr);
    for (const PlacedRange& range : r.ranges)
        out += fmt::format("{} {} to {}\n", range.exclude ? "exclude" : "view", text(range.first), text(range.end));
    for (const SignalChange& c : r.signals) {
        const auto level = [](const std::optional<bool>& b) { return b ? *b ? "1" : "0" : "-"; };
        out += fmt::format("signal {} of {} on {} at {} {} {} {} {}\n", c.option, static_cast<int>(c.of), c.on,
                           text(c.at), level(c.niden), level(c.dbgen), level(c.spniden), level(c.spiden));
    }
    if (r.sink) {
        out += fmt::format("sink {}\n", r.sink->name());
        for (const auto& setting : r.sink->registers) out += fmt::format("  {}={:#x}\n", setting.name, setting.value);
    }
    out += text(r.unit);
    out += fmt::format(
        "qemu {} [{}] {} aarch64 {} exact {} memory {} sized {} threads {} children {} input {} signals {}\n",
        q.qemu.filename().string(), fmt::join(q.qemu_arguments, "|"), fmt::join(q.program, "|"), q.aarch64, q.exact,
        q.memory, q.sized, q.threads, q.children, q.input, q.signals);
    for (const auto& [first, end] : q.watched) out += fmt::format("watch {:#x}-{:#x}\n", first.value, end.value);
    return out;
}

class FlowSetups : public testing::Test {
protected:
    FlowSetups() {
        std::filesystem::create_directory(path("bin"));
        for (const char* name : {"qemu-arm", "qemu-aarch64", "qemu-system-arm", "qemu-system-aarch64"}) {
            folder_.write(std::string("bin/") + name, std::string_view("x"));
            std::filesystem::permissions(path("bin") / name, std::filesystem::perms::owner_all);
        }
        if (const char* const before = std::getenv("PATH")) path_before_ = before;
        setenv("PATH", path("bin").c_str(), 1);
        TinyElf elf;
        // b . at the vectors of undefined, supervisor call, prefetch abort, data abort and IRQ.
        std::vector<std::uint8_t> code(0x200);
        for (std::size_t at : {4U, 8U, 12U, 16U, 24U}) {
            code[0x100 + at] = 0xfe;
            code[0x100 + at + 1] = code[0x100 + at + 2] = 0xff;
            code[0x100 + at + 3] = 0xea;
        }
        elf.segments = {{.address = 0x8000, .bytes = code}};
        elf.sections = {{.name = ".text", .address = 0x8000, .bytes = code}};
        elf.symbols = {{.name = "main", .value = 0x8010, .bytes = 16, .section = 1},
                       {.name = "no_size", .value = 0x8020, .section = 1}};
        arm_ = program("arm", elf);
        elf.type = ET_DYN;
        anywhere_ = program("anywhere", elf);
        elf.type = ET_EXEC;
        elf.is_64 = true;
        elf.machine = EM_AARCH64;
        constexpr std::array<std::uint8_t, 8> write_scr{0x00, 0x11, 0x1e, 0xd5, 0x00, 0x21, 0x1c, 0xd5};  // and VTTBR
        std::copy(write_scr.begin(), write_scr.end(), code.begin());
        elf.segments = {{.address = 0x80000, .bytes = code}};
        elf.sections = {{.name = ".text", .address = 0x80000, .bytes = code}};
        elf.symbols = {{.name = "main", .value = 0x80010, .bytes = 16, .section = 1}};
        a64_ = program("a64", elf);
        options_.folder = "out";
        options_.sysroot = "/libraries";
        options_.aarch64_units = "ete or etm4";
        options_.niden_units = "--unit ptm";
        use(false);
    }
    ~FlowSetups() override { setenv("PATH", path_before_.c_str(), 1); }
    std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
    std::string program(const char* name, const TinyElf& elf) {
        const std::string file = folder_.write(name, elf.build()).string();
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        return file;
    }
    void use(bool a64) {
        options_.units = a64 ? etm4::unit_factories()[1] : &pft::unit_factory();
        options_.unit_name = a64 ? "etm4" : "ptm";
        options_.unit = options_.units->defaults();
        options_.program = {a64 ? a64_ : arm_, "-x", "y z"};
    }
    std::string named(std::string out) const {
        const std::string folder = folder_.path().string();
        for (std::size_t at; (at = out.find(folder)) != out.npos;) out.replace(at, folder.size(), "FOLDER");
        return out;
    }
    void add(std::string_view name, const std::function<void(FlowRecording&)>& change = {}) {
        FlowRecording o = options_;
        if (change) change(o);
        const auto made = set_up(o);
        approved_.add(name) << named(
            made ? text(*made)
                 : fmt::format("error {}: {}\n", static_cast<int>(made.error().code), made.error().message));
    }
    void add_placed(std::string_view name, const std::function<void(FlowRecording&)>& change = {}) {
        FlowRecording o = options_;
        if (change) change(o);
        const auto made = placed_unit(o);
        approved_.add(name) << named(
            made ? text(*made)
                 : fmt::format("error {}: {}\n", static_cast<int>(made.error().code), made.error().message));
    }
    TemporaryFolder folder_;
    std::string path_before_, arm_, anywhere_, a64_;
    FlowRecording options_;
    support::Approved approved_;
};

TEST_F(FlowSetups, Programs) {
    using O = FlowRecording;
    add("the program alone");
    add("everything", [](O& o) {
        o.start_at = "main";
        o.stop_at = "0x8030";
        o.trigger_at = "main";
        o.view_ranges = {"main", "0x8000-0x8010"};
        o.truth = o.blocks = o.force = true;
        o.buffer = 4096;
        o.limit = 77;
        o.changes = 5;
        o.qemu_options = {"-cpu", "max"};
    });
    add("another start", [](O& o) { o.start_at = "0x8010"; });
    add("an excluded range", [](O& o) { o.exclude_ranges = {"0x8000-main"}; });
    for (const char* own : {"-d", "-D", "-strace"}) add("QEMU's own log", [&](O& o) { o.qemu_options = {own, "x"}; });
    add("a program that is loaded anywhere", [&](O& o) {
        o.program = {anywhere_};
        o.start_at = "main";
        o.stop_at = "elsewhere";
    });
    use(true);
    add("AArch64", [](O& o) { o.start_at = "main"; });
    approved_.check("record/whole/setup_programs.txt");
}

TEST_F(FlowSetups, Systems) {
    using O = FlowRecording;
    options_.system = true;
    options_.sysroot.clear();
    add("32 bit");
    add("32 bit, with vectors and more", [](O& o) {
        o.vectors = {"0x40", "main"};
        o.processors = 2;
        o.machine = "virt";
        o.qemu_options = {"-nic", "user"};
        o.start_at = "main";
    });
    add("a Cortex-A9", [](O& o) { o.unit.core = "cortex-a9"; });
    use(true);
    add("AArch64");
    add("AArch64 with VMIDs", [](O& o) { o.unit.vmid = true; });
    add("AArch64 on one core of Armv9-A", [](O& o) {
        o.units = etm4::unit_factories()[0];
        o.unit = o.units->defaults();
    });
    approved_.check("record/whole/setup_systems.txt");
}

TEST_F(FlowSetups, SignalsAndSinks) {
    using O = FlowRecording;
    add("signals", [](O& o) {
        o.authentication = {"NIDEN=0,dbgen=1", "SPNIDEN=1,SPIDEN=0@main", "NIDEN=1@0x8020"};
        o.unit_power = {"off@main", "on@0x8020"};
        o.os_lock = {"on@main"};
    });
    for (const char* wrong : {"", "NIDEN", "NIDEN=2", "NIDEN=", "X=1", "NIDEN=1,", "NIDEN=1,NIDEN=0", "NIDEN=1@"})
        add(std::string("authentication ") + wrong, [&](O& o) { o.authentication = {wrong}; });
    for (const char* wrong : {"off", "@main", "of@main", "off@", "off@none"})
        add(std::string("power ") + wrong, [&](O& o) { o.unit_power = {wrong}; });
    add("one signal twice", [](O& o) { o.authentication = {"NIDEN=0", "NIDEN=1"}; });
    add("one signal twice at a place", [](O& o) { o.authentication = {"DBGEN=0@main", "SPIDEN=1,DBGEN=1@main"}; });
    add("another signal twice", [](O& o) { o.authentication = {"SPNIDEN=0@main", "SPNIDEN=1@main"}; });
    add("and another", [](O& o) { o.authentication = {"SPIDEN=0@main", "SPIDEN=1@main"}; });
    add("power twice", [](O& o) { o.unit_power = {"off@main", "on@main"}; });
    add("lock twice", [](O& o) { o.os_lock = {"off@main", "on@main"}; });
    add("signals with a FIFO", [](O& o) {
        o.unit_power = {"off@main"};
        o.unit.fifo_bytes = 64;
    });
    const auto sink = [](O& o, const char* text, std::optional<std::uint64_t> after) {
        auto setup = read_sink(text, after, false);
        ASSERT_TRUE(setup);
        o.sink = *setup;
    };
    const std::string settings = folder_.write("settings", std::string_view("FFCR 0x3\n")).string();
    folder_.write("none", std::string_view("# nothing\n"));
    folder_.write("wrong", std::string_view("FFCR\n"));
    folder_.write("large", std::string(1 << 20, '#'));
    add("a sink", [&](O& o) {
        sink(o, "tmc-etb:4096", 64);
        o.trigger_at = "main";
        o.sink_registers = settings;
    });
    for (const char* name : {"none", "wrong", "large", "gone", "bin"}) {
        add(std::string("registers of a sink: ") + name, [&](O& o) {
            sink(o, "tmc-etb:4096", {});
            o.sink_registers = path(name).string();
        });
        add(std::string("registers: ") + name, [&](O& o) { o.registers = path(name).string(); });
    }
    add("registers without a sink", [&](O& o) { o.sink_registers = settings; });
    add("a sink of no size", [&](O& o) { sink(o, "tmc-etb:5", {}); });
    add("a sink and a buffer", [&](O& o) {
        sink(o, "tmc-etb:4096", {});
        o.buffer = 16;
    });
    add("no trigger", [&](O& o) { sink(o, "tmc-etb:4096", 64); });
    use(true);
    add("a sink of an ETMv4", [&](O& o) {
        sink(o, "tmc-etb:4096", 64);
        o.trigger_at = "main";
    });
    add("NIDEN of an ETMv4", [](O& o) { o.authentication = {"NIDEN=0"}; });
    add("SPIDEN of an ETMv4", [](O& o) { o.authentication = {"SPIDEN=0"}; });
    for (const char* signal : {"NIDEN=0", "DBGEN=1", "SPIDEN=0"})
        add(std::string("of an ETE: ") + signal, [&](O& o) {
            o.units = etm4::unit_factories()[0];
            o.unit = o.units->defaults();
            o.authentication = {signal};
        });
    use(false);
    add("the lock of a Cortex-A9", [](O& o) {
        o.unit.core = "cortex-a9";
        o.os_lock = {"on@main"};
    });
    approved_.check("record/whole/setup_signals.txt");
}

TEST_F(FlowSetups, Refusals) {
    using O = FlowRecording;
    for (const auto& [name, change] : std::vector<std::pair<const char*, std::function<void(O&)>>>{
             {"machine", [](O& o) { o.machine = "virt"; }},
             {"vmid", [](O& o) { o.unit.vmid = true; }},
             {"smp", [](O& o) { o.processors = 2; }},
             {"vectors", [](O& o) { o.vectors = {"0"}; }},
             {"view and FIFO",
              [](O& o) {
                  o.view_ranges = {"main"};
                  o.unit.fifo_bytes = 64;
              }},
             {"empty range", [](O& o) { o.view_ranges = {""}; }},
             {"range that ends before", [](O& o) { o.view_ranges = {"0x8010-0x8010"}; }},
             {"address as a range", [](O& o) { o.exclude_ranges = {"0x8010"}; }},
             {"symbol without a size", [](O& o) { o.exclude_ranges = {"no_size"}; }},
             {"no such symbol", [](O& o) { o.start_at = "gone"; }},
             {"too many ranges", [](O& o) { o.view_ranges.assign(20, "main"); }},
             {"A64 program", [&](O& o) { o.program = {a64_}; }},
             {"script",
              [&](O& o) { o.program = {folder_.write("a script", std::string_view("#!/bin/sh\n")).string()}; }},
             {"no program", [&](O& o) { o.program = {folder_.write("text", std::string_view("text")).string()}; }},
             {"not executable",
              [&](O& o) {
                  std::filesystem::copy_file(arm_, path("plain"));
                  std::filesystem::permissions(path("plain"), std::filesystem::perms::owner_read);
                  o.program = {path("plain").string()};
              }},
             {"sysroot of a system", [](O& o) { o.system = true; }},
             {"context IDs of a system",
              [](O& o) {
                  o.system = true;
                  o.sysroot.clear();
                  o.unit.context_id_bytes = 4;
              }},
             {"VMIDs of a 32-bit system",
              [](O& o) {
                  o.system = o.unit.vmid = true;
                  o.sysroot.clear();
              }},
             {"icount and blocks",
              [](O& o) {
                  o.system = o.blocks = true;
                  o.sysroot.clear();
                  o.qemu_options = {"--icount", "1"};
              }},
             {"no QEMU", [&](O&) { std::filesystem::remove(path("bin/qemu-arm")); }},
         })
        add(name, change);
    use(true);
    options_.sysroot.clear();
    options_.system = true;
    add("32-bit image for an ETMv4", [&](O& o) { o.program = {arm_}; });
    add("vectors of AArch64", [](O& o) { o.vectors = {"0"}; });
    for (const char* log : {"-d", "-D"}) add("a log of AArch64", [&](O& o) { o.qemu_options = {log}; });
    approved_.check("record/whole/setup_refusals.txt");
}

TEST_F(FlowSetups, UnitsWithoutARun) {
    using O = FlowRecording;
    const std::string settings = folder_.write("settings", std::string_view("ETMTEEVR 0x6f\n")).string();
    add_placed("nothing");
    add_placed("symbols", [&](O& o) {
        o.view_ranges = {"main", "0x8000-no_size"};
        o.exclude_ranges = {"main-0x8040"};
        o.trigger_at = "no_size";
        o.registers = settings;
    });
    add_placed("addresses without a program", [](O& o) {
        o.program.clear();
        o.view_ranges = {"0x8000-0x8010"};
        o.trigger_at = "0x9000";
    });
    add_placed("symbols without a program", [](O& o) {
        o.program.clear();
        o.view_ranges = {"main"};
    });
    add_placed("a symbol and an address", [](O& o) {
        o.program.clear();
        o.exclude_ranges = {"main-0x9000"};
    });
    add_placed("a trigger without a program", [](O& o) {
        o.program.clear();
        o.trigger_at = "main";
    });
    add_placed("a program that is loaded anywhere", [&](O& o) {
        o.program = {anywhere_};
        o.trigger_at = "main";
    });
    add_placed("A64 for a PTM", [&](O& o) { o.program = {a64_}; });
    add_placed("no registers", [&](O& o) { o.registers = path("gone").string(); });
    approved_.check("record/whole/setup_units.txt");
}

TEST_F(FlowSetups, EmulatorOfASystemAlone) {
    image::MemoryMap memory;
    ASSERT_TRUE(memory.add_elf(a64_));
    const SystemProgram image{
        .command = {a64_}, .machine = "virt", .cpu = "max", .processors = 1, .aarch64 = true, .qemu_options = {}};
    for (const A64Needs needs : {A64Needs{}, A64Needs{.vmid = true}, A64Needs{.profiling = true}}) {
        const auto how = a64_system_emulator(image, memory, needs);
        ASSERT_TRUE(how) << how.error().message;
        std::ostream& out = approved_.add(fmt::format("vmid {} profiling {}", needs.vmid, needs.profiling));
        out << named(fmt::format("{} {} {} {} {}\n", how->qemu.string(), fmt::join(how->qemu_arguments, " "),
                                 fmt::join(how->program, " "), how->aarch64, how->input));
        for (const auto& [first, end] : how->watched) out << fmt::format("watch {:#x}-{:#x}\n", first.value, end.value);
    }
    approved_.check("record/whole/setup_emulator.txt");
    SystemProgram logs = image;
    logs.qemu_options = {"-D"};
    EXPECT_FALSE(a64_system_emulator(logs, memory, {}));
}

TEST_F(FlowSetups, EmulatorOfALinuxProgram) {
    const LinuxProgram of{.elf_class = 2,
                          .machine = static_cast<char>(EM_AARCH64),
                          .qemu = "qemu-aarch64",
                          .cross_libraries = "/no such folder",
                          .otherwise = "a 64-bit program"};
    const auto how = linux_emulator({a64_, "x"}, "/libraries", of);
    ASSERT_TRUE(how) << how.error().message;
    EXPECT_EQ(named(fmt::format("{} {} {} {} {}", how->qemu.string(), fmt::join(how->qemu_arguments, " "),
                                fmt::join(how->program, " "), how->aarch64, how->memory)),
              "FOLDER/bin/qemu-aarch64 -L /libraries FOLDER/a64 x false true");
    EXPECT_TRUE(linux_emulator({a64_}, "", of)->qemu_arguments.empty() || std::getenv("QEMU_LD_PREFIX") != nullptr);
    EXPECT_TRUE(check_linux_program(a64_, of));
    EXPECT_EQ(named(check_linux_program(arm_, of).error().message), "FOLDER/arm is not a 64-bit program");
    EXPECT_EQ(check_linux_program("/none", of).error().message, "cannot read /none; is it a program?");
    folder_.write("short", std::string_view("\x7f"
                                            "ELF"));
    EXPECT_EQ(named(check_linux_program(path("short").string(), of).error().message),
              "FOLDER/short is not a 64-bit program");
}

// ---- texts of options

TEST(SystemPrograms, ArgumentsOfQemu) {
    const auto arguments = [](const SystemProgram& p) {
        return fmt::format("{}", fmt::join(system_arguments(p), " "));
    };
    const std::string usual =
        " -display none -monitor none -serial stdio -audiodev none,id=silent -semihosting-config "
        "enable=on,target=native,arg=image";
    EXPECT_EQ(
        arguments(
            {.command = {"image"}, .machine = "m", .cpu = "c", .processors = 1, .aarch64 = false, .qemu_options = {}}),
        "-M m -cpu c -smp 1" + usual + " -nic none -kernel");
    EXPECT_EQ(arguments({.command = {"image", "a,b", ""},
                         .machine = "m",
                         .cpu = "c",
                         .processors = 4,
                         .aarch64 = true,
                         .qemu_options = {"-x"}}),
              "-M m -cpu c -smp 4 -accel tcg,thread=single" + usual + ",arg=a,,b,arg= -nic none -x -kernel");
    for (const char* network : {"-nic", "-net", "-netdev"})
        EXPECT_EQ(arguments({.command = {"image"},
                             .machine = "m",
                             .cpu = "c",
                             .processors = 1,
                             .aarch64 = false,
                             .qemu_options = {network}}),
                  fmt::format("-M m -cpu c -smp 1{} {} -kernel", usual, network));
}

TEST(RecordingTexts, Sinks) {
    const auto sink = [](const char* text, std::optional<std::uint64_t> after = {}, bool scatter = false) {
        const auto read = read_sink(text, after, scatter);
        if (!read) return read.error().message;
        if (!*read) return std::string("none");
        const sink::PathSetup& s = **read;
        if (!s.buffer) return fmt::format("port {}", s.port_pins);
        return fmt::format("{} {} bytes at {:#x} after {} scatter {}", s.name(), s.buffer->buffer.memory_bytes,
                           s.buffer->buffer.base, s.buffer->after_trigger.value_or(0), s.buffer->scatter_list);
    };
    EXPECT_EQ(sink(""), "none");
    EXPECT_EQ(sink("", 4), "--stop-after-trigger is only for --sink, as in --sink tmc-etb --stop-after-trigger 1024");
    EXPECT_EQ(sink("", {}, true), "--scatter-list is only for --sink tmc-etr");
    EXPECT_EQ(sink("etb:x"), "--sink etb:x: expected the size in bytes after the colon, as in etb:4096");
    EXPECT_EQ(sink("tpiu:x"), "--sink tpiu:x: expected the number of pins after the colon, as in tpiu:4");
    EXPECT_EQ(sink("tpiu"), "port 4");
    EXPECT_EQ(sink("tpiu:16"), "port 16");
    EXPECT_EQ(sink("tpiu:32"), "port 32");
    EXPECT_EQ(sink("tpiu:1000"), "port 33") << "one more than any port has";
    const std::string not_for_port =
        "--stop-after-trigger and --scatter-list are for trace buffers, not for --sink tpiu";
    EXPECT_EQ(sink("tpiu", 4), not_for_port);
    EXPECT_EQ(sink("tpiu", {}, true), not_for_port);
    EXPECT_EQ(
        sink("x"),
        "--sink x: there are etb, tmc-etb, tmc-etf, tmc-etr, each with :BYTES or without, and tpiu, with :PINS or "
        "without; etr and trbe go with --as perf only");
    EXPECT_EQ(sink("etb:64", {}, true), "--scatter-list is only for --sink tmc-etr, not for etb");
    const std::string usual = std::to_string(sink::TmcConfig{}.memory_bytes);
    EXPECT_EQ(sink("etb:64", 32).substr(4), "64 bytes at 0x0 after 32 scatter false");
    EXPECT_NE(sink("tmc-etf").find(" " + usual + " bytes at 0x0 after 0 scatter false"), std::string::npos)
        << sink("tmc-etf");
    EXPECT_NE(sink("tmc-etr:8192", 8, true).find(" 8192 bytes at 0x80000000 after 8 scatter true"), std::string::npos)
        << sink("tmc-etr:8192", 8, true);
}

TEST(RecordingTexts, Strobing) {
    const auto strobe = [](const char* text) {
        const auto read = strobing(text);
        if (!read) return read.error().message;
        std::string out;
        for (const flow::RegisterSetting& r : *read)
            out += fmt::format("{}{}{}={:#x} {}\n", r.name, r.field.empty() ? "" : ".", r.field, r.value, r.where);
        return out;
    };
    EXPECT_EQ(strobe("65535/1"),
              "TRCRSCTLR2=0x20001 --strobe\nTRCRSCTLR3=0x20002 --strobe\nTRCCNTRLDVR0=0xffff --strobe\n"
              "TRCCNTVR0=0xffff --strobe\nTRCCNTCTLR0=0x10001 --strobe\nTRCCNTRLDVR1=0x1 --strobe\n"
              "TRCCNTVR1=0x1 --strobe\nTRCCNTCTLR1=0x8102 --strobe\nTRCSEQEVR0=0x81 --strobe\n"
              "TRCVICTLR.EVENT.SEL=0x3 --strobe\n");
    for (const char* wrong :
         {"", "5", "5/", "/5", "0/5", "5/0", "65536/5", "5/65536", "100000/5", "-5/5", "5/5x", "5/5/5"})
        EXPECT_EQ(strobe(wrong),
                  fmt::format("--strobe {}: expected WINDOW/PERIOD, two numbers from 1 to 65535, such as "
                              "5000/10000",
                              wrong));
}

TEST(RecordingTexts, Settings) {
    const auto setting = [](const char* text) {
        const auto read = read_setting(text, "--set", "A=1");
        return read ? fmt::format("{} is {}", read->first, read->second) : read.error().message;
    };
    EXPECT_EQ(setting("X=0x10"), "X is 16");
    EXPECT_EQ(setting("=7"), " is 7");
    for (const char* wrong : {"X", "X=", "X=y", "X=1=2"})
        EXPECT_EQ(setting(wrong), fmt::format("--set {}: expected such as A=1", wrong));
}

TEST(RecordedPrograms, FolderOfLibraries) {
    const char* const before = std::getenv("QEMU_LD_PREFIX");
    const std::string kept = before == nullptr ? "" : before;
    unsetenv("QEMU_LD_PREFIX");
    EXPECT_EQ(library_folder("", "/tmp"), "/tmp");
    EXPECT_EQ(library_folder("/own", "/tmp"), "/own");
    EXPECT_EQ(library_folder("", "/no such folder"), "");
    setenv("QEMU_LD_PREFIX", "/x", 1);
    EXPECT_EQ(library_folder("", "/tmp"), "");
    EXPECT_EQ(library_folder("/own", "/tmp"), "/own");
    before == nullptr ? unsetenv("QEMU_LD_PREFIX") : setenv("QEMU_LD_PREFIX", kept.c_str(), 1);
}

}  // namespace
}  // namespace waymark::record
