/// `waymark record`: runs a program and writes the trace a unit would have given.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "commands.h"
#include "dpu/record.h"
#include "options.h"
#include "perf/record.h"
#include "spe/record.h"
#include "waymark/core/wire.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_kind.h"
#include "waymark/image/symbols.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/record/a64_system.h"
#include "waymark/record/qemu.h"
#include "waymark/record/recorder.h"
#include "waymark/record/vectors.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;

struct RecordOptions {
    std::string unit, folder, sysroot, start_at, stop_at, registers, trigger_at;
    std::vector<std::string> view_ranges, exclude_ranges;
    const flow::UnitFactory* units = nullptr;  ///< of program flow; null: another unit
    flow::UnitOptions programmed;
    bool truth = false, blocks = false, quiet = false, system = false, force = false;
    std::string machine;
    unsigned processors = 1;
    std::vector<std::string> vectors, qemu_options;
    std::uint64_t buffer = 0;
    std::uint64_t limit = 0;
    std::uint32_t changes = record::RecorderOptions{}.limit_changes;
    std::vector<std::string> program;
    SpeRecordOptions spe;
    DpuRecordOptions dpu;
    PerfRecordOptions perf;
    std::vector<CLI::Option*> flow_only, spe_only, dpu_only;            ///< options that go with some units alone
    CLI::Option *buffer_option = nullptr, *registers_option = nullptr;  ///< all but spe
};

/// How the program is run; of a file that is none, which is found out when it is read, nothing is known.
image::ProgramKind kind_of(const std::string& program) {
    const auto kind = image::program_kind(program);
    return kind ? *kind : image::ProgramKind{};
}

/// After a message that a name is not found.
constexpr std::string_view overloads_hint =
    ", or several functions of that name; give the parameters too, as in 'sort(int*, int)', or the symbol as nm prints "
    "it";

Result<Address> place(const std::string& text, const char* option, const std::string& program) {
    std::uint64_t value = 0;
    if (wire::scan_number(text, value)) return Address{value & ~std::uint64_t{1}};
    if (kind_of(program).position_independent)
        return Error{
            Errc::usage,
            fmt::format("--{} {}: {} is position-independent, so the addresses of its symbols are not known "
                        "before it runs; give an address (0x…), which a first recording shows, or link it with "
                        "-no-pie",
                        option, text, program)};
    image::Symbols symbols;
    WM_ASSIGN_OR_RETURN(const std::size_t taken, symbols.add_elf(program));
    if (const auto found = symbols.function_called(text)) return *found;
    return Error{Errc::usage,
                 fmt::format("--{} {}: {} has no such symbol{}{}; an address (0x…) does as well", option, text, program,
                             taken == 0 ? " (it has none at all)" : "", taken == 0 ? "" : overloads_hint)};
}

/// Where recording begins or stops: a symbol may be of a file that is mapped anywhere.
Result<record::CodePlace> code_place(const std::string& text, const char* option, const RecordOptions& options) {
    const std::string& program = options.program.front();
    std::uint64_t value = 0;
    const image::ProgramKind kind = kind_of(program);
    const bool loaded_anywhere = !options.system && kind.position_independent;
    image::Symbols symbols;
    const bool number = wire::scan_number(text, value);
    // Other files may be mapped when it runs if it is linked dynamically, or is the dynamic linker itself.
    const bool in_program = !number && symbols.add_elf(program) && symbols.function_called(text);
    if (number || (in_program ? !loaded_anywhere : options.system || !kind.dynamic)) {
        WM_ASSIGN_OR_RETURN(const Address address, place(text, option, program));
        return number ? record::CodePlace(address) : record::CodePlace(address, text);
    }
    std::error_code error;
    return record::CodePlace(text, in_program ? fs::canonical(program, error) : fs::path());
}

/// `START-STOP`, or a symbol for all of its function.
Result<record::PlacedRange> code_range(const std::string& text, const char* option, const RecordOptions& options) {
    // Not the minus of an operator's name.
    std::size_t minus = text.find('-', text.starts_with('-') ? 1 : 0);
    while (minus != std::string::npos && text.substr(0, minus).ends_with("operator")) minus = text.find('-', minus + 1);
    if (minus != std::string::npos) {
        WM_ASSIGN_OR_RETURN(record::CodePlace first, code_place(text.substr(0, minus), option, options));
        WM_ASSIGN_OR_RETURN(record::CodePlace end, code_place(text.substr(minus + 1), option, options));
        if (first.address() && end.address() && *end.address() <= *first.address())
            return Error{Errc::usage,
                         fmt::format("--{} {}: the range ends at {:#x}, where it begins or before; STOP is the "
                                     "address after it",
                                     option, text, end.address()->value)};
        return record::PlacedRange{std::move(first), std::move(end)};
    }
    std::uint64_t value = 0;
    if (wire::scan_number(text, value))
        return Error{Errc::usage,
                     fmt::format("--{} {}: an address alone is no range; give START-STOP or the symbol of a "
                                 "function",
                                 option, text)};
    WM_ASSIGN_OR_RETURN(record::CodePlace function, code_place(text, option, options));
    if (function.address()) {
        image::Symbols symbols;
        WM_RETURN_IF_ERROR(symbols.add_elf(options.program.front()));
        const auto symbol = symbols.find(*function.address());
        if (!symbol || symbol->symbol.bytes == 0)
            return Error{Errc::usage, fmt::format("--{} {}: the symbol has no size; give START-STOP", option, text)};
        function.set_bytes(symbol->symbol.bytes);
    }
    return record::PlacedRange{std::move(function)};
}

/// The file of --registers.
waymark::Status read_registers(const std::string& path, std::vector<flow::RegisterSetting>& out) {
    std::ifstream in(path, std::ios::binary);
    std::error_code none;
    if (!in || fs::is_directory(path, none))
        return Error{Errc::unreadable,
                     fmt::format("--registers {}: cannot be read; name a text file with lines such as "
                                 "'TRCCCCTLR 0x100'",
                                 path)};
    std::string text;
    constexpr std::size_t most = 1 << 20;
    text.resize(most);
    in.read(text.data(), static_cast<std::streamsize>(most));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() == most)
        return Error{Errc::bad_format, fmt::format("{}: is no file of registers: too large", path)};
    WM_ASSIGN_OR_RETURN(out, flow::read_register_settings(text, path));
    if (out.empty())
        return Error{Errc::bad_format, fmt::format("{}: sets no register; expected lines NAME VALUE, as in "
                                                   "'TRCCCCTLR 0x100'",
                                                   path)};
    return Nothing{};
}

/// Arm's own programs only, and a message that helps otherwise.
waymark::Status read_program(const std::string& program, const flow::UnitFactory& units, image::MemoryMap& map) {
    if (kind_of(program).aarch64 && !units.traces_aarch64())
        return Error{
            Errc::unsupported,
            fmt::format("{} is an AArch64 program; --unit {} traces AArch32 cores alone, so it takes a 32-bit one "
                        "(arm-linux-gnueabihf-gcc); --unit {} records this one",
                        program, pipeline::option_name(units), pipeline::aarch64_unit_names())};
    std::string begins(2, '\0');
    std::ifstream(program, std::ios::binary).read(begins.data(), static_cast<std::streamsize>(begins.size()));
    if (begins == "#!")
        return Error{
            Errc::bad_format,
            fmt::format("{} is a script; QEMU runs programs alone, so name the Arm program that interprets it, and "
                        "give it the script: waymark record -o DIR -- INTERPRETER {}",
                        program, program)};
    const auto added = map.add_elf(program);
    if (!added) return added.error();
    return Nothing{};
}

/// What belongs to one way of running a program and makes no sense in the other.
waymark::Status check_way(const RecordOptions& options) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (options.system) {
        const bool aarch64 = kind_of(options.program.front()).aarch64;
        if (!aarch64 && options.units->traces_aarch64())
            return wrong(
                fmt::format("--system --unit {} takes an AArch64 image, and {} is none; a 32-bit one is recorded with "
                            "--unit ptm, under qemu-system-arm",
                            pipeline::option_name(*options.units), options.program.front()));
        const bool own_log = std::any_of(options.qemu_options.begin(), options.qemu_options.end(),
                                         [](const std::string& o) { return o == "-d" || o == "-D"; });
        if (aarch64 && own_log)
            return wrong(
                "--qemu=-d and --qemu=-D cannot be used with --system and an AArch64 image: QEMU has one log, from "
                "which "
                "this reads the exceptions");
        if (aarch64 && !options.vectors.empty())
            return wrong("--vectors is for 32-bit images; of an AArch64 system QEMU's log shows every exception");
        if (!options.sysroot.empty())
            return wrong("--sysroot is for Linux programs; with --system there are no libraries");
        if (!aarch64 && options.programmed.context_id_bytes != 0)
            return wrong(
                "--context-id cannot be used with --system and a 32-bit image: QEMU does not show the recorder what "
                "the program writes to CONTEXTIDR");
        const bool counted = std::any_of(options.qemu_options.begin(), options.qemu_options.end(),
                                         [](const std::string& o) { return o == "-icount" || o == "--icount"; });
        if (counted && options.blocks)
            return wrong(
                "--blocks cannot be used with -icount: QEMU then leaves blocks in front of every access to a "
                "device, which only exact recording notices");
        return Nothing{};
    }
    for (const auto& [given, name] : {std::pair{!options.machine.empty(), "--machine"},
                                      {options.processors != 1, "--smp"},
                                      {!options.vectors.empty(), "--vectors"}})
        if (given) return wrong(fmt::format("{} goes with --system only", name));
    return Nothing{};
}

std::string machine(const RecordOptions& options) {
    if (!options.machine.empty()) return options.machine;
    if (options.units->traces_aarch64()) return "virt,secure=on,virtualization=on";
    return options.programmed.core == "cortex-a9" ? "vexpress-a9" : "vexpress-a15";
}

/// Everything before and about the image; a comma in a value is written twice.
std::vector<std::string> system_arguments(const RecordOptions& options) {
    // QEMU has no core with an ETE; its "max" has what an Armv9-A core has.
    const std::string& core = options.programmed.core;
    std::vector<std::string> out{"-M", machine(options), "-cpu", core == "armv9-a" ? "max" : core, "-smp"};
    out.push_back(std::to_string(options.processors));
    // The lines of its log then belong together.
    if (options.units->traces_aarch64()) out.insert(out.end(), {"-accel", "tcg,thread=single"});
    // A board with a sound chip else complains of sound cards that are not there.
    out.insert(out.end(), {"-display", "none", "-monitor", "none", "-serial", "stdio", "-audiodev", "none,id=silent"});
    out.push_back("-semihosting-config");
    std::string semihosting = "enable=on,target=native";
    for (const std::string& argument : options.program) {
        semihosting += ",arg=";
        for (const char c : argument) semihosting += c == ',' ? ",," : std::string(1, c);
    }
    out.push_back(semihosting);
    const auto is_network = [](const std::string& o) { return o == "-nic" || o == "-net" || o == "-netdev"; };
    if (std::none_of(options.qemu_options.begin(), options.qemu_options.end(), is_network))
        out.insert(out.end(), {"-nic", "none"});
    out.insert(out.end(), options.qemu_options.begin(), options.qemu_options.end());
    out.push_back("-kernel");
    return out;
}

ExitStatus run_record(RecordOptions options) {
    if (options.program.empty())
        return fail({Errc::usage, "no program given: waymark record -o DIR -- PROGRAM [ARGS…]"});
    // To open a pipe would wait for whoever writes to it.
    if (std::error_code none; fs::exists(options.program.front(), none) && fs::is_other(options.program.front(), none))
        return fail({Errc::unreadable, fmt::format("{} is no regular file, so it cannot be run as a program; name an "
                                                   "ELF file",
                                                   options.program.front())});
    if (std::error_code none; !options.sysroot.empty() && !fs::is_directory(options.sysroot, none))
        return fail(
            {Errc::not_found,
             fmt::format("--sysroot {} is no folder; name the one in which the program's lib/ lies", options.sysroot)});
    // A write beyond a limit of the file size then fails and is reported as any other.
    std::signal(SIGXFSZ, SIG_IGN);
    const bool is_spe = options.unit == "spe", is_dpu = options.unit == "dpu";
    const bool aarch64 = kind_of(options.program.front()).aarch64;
    if (!is_spe && !is_dpu)
        for (const flow::UnitFactory* const units : pipeline::flow_units())
            if (options.unit.empty() ? units->traces_aarch64() == aarch64 && options.units == nullptr
                                     : pipeline::option_name(*units) == options.unit)
                options.units = units;
    for (const auto& [only, unit, is_it] :
         {std::tuple{&options.flow_only, pipeline::flow_unit_names(), !is_spe && !is_dpu},
          {&options.spe_only, std::string("spe"), is_spe},
          {&options.dpu_only, std::string("dpu"), is_dpu}})
        for (const CLI::Option* option : *only) {
            const bool for_perf = only == &options.spe_only && PerfRecordOptions::shared_with_spe(option->get_name());
            if (!is_it && option->count() != 0 && !(for_perf && !is_dpu && options.perf.chosen()))
                return fail({Errc::usage, fmt::format("{} goes with --unit {}{} only", option->get_name(), unit,
                                                      for_perf ? " and --as perf" : "")});
        }
    for (const CLI::Option* const option : {options.buffer_option, options.registers_option})
        if (is_spe && option->count() != 0)
            return fail({Errc::usage, fmt::format("{} goes with --unit {} and dpu only", option->get_name(),
                                                  pipeline::flow_unit_names())});
    if (const auto status = options.perf.check(); !status) return fail(status.error());
    options.dpu.registers = options.registers;
    const RecordCommon common{options.folder, options.sysroot, options.program, options.qemu_options,
                              options.limit,  options.quiet,   options.force};
    if (is_spe) return run_record_spe(common, options.spe);
    if (is_dpu)
        return run_record_dpu(common, options.buffer, options.dpu, [&](const std::string& text, const char* option) {
            return place(text, option, options.program.front());
        });
    if (options.programmed.core.empty()) options.programmed.core = options.units->defaults().core;
    if (options.perf.chosen()) program_like_perf(options.perf, *options.units, options.programmed);
    if (!options.registers.empty())
        if (const auto status = read_registers(options.registers, options.programmed.registers); !status)
            return fail(status.error());
    std::vector<record::PlacedRange> ranges;
    for (const bool exclude : {false, true})
        for (const std::string& text : exclude ? options.exclude_ranges : options.view_ranges) {
            auto range = code_range(text, exclude ? "exclude-range" : "view-range", options);
            if (!range) return fail(range.error());
            range->exclude = exclude;
            ranges.push_back(*std::move(range));
        }
    // As many comparators as there are ranges, wherever they will lie.
    flow::UnitOptions with_ranges = options.programmed;
    for (const record::PlacedRange& range : ranges)
        (range.exclude ? with_ranges.exclude : with_ranges.view).push_back({{0x1000}, {0x1004}});
    if (!options.trigger_at.empty()) with_ranges.trigger_at = Address{0x1000};
    if (const auto status = options.units->check(with_ranges); !status) return fail(status.error());
    if (with_ranges.programmed() && options.programmed.fifo_bytes != 0)
        return fail({Errc::usage,
                     "--fifo does not go with --registers, --view-range, --exclude-range, --trigger-at and "
                     "--cycle-threshold: what a full FIFO lost could not be distinguished from what "
                     "was not to be traced"});
    if (const auto status = check_way(options); !status) return fail(status.error());
    const std::string& program = options.program.front();
    image::MemoryMap memory;
    if (const auto status = read_program(program, *options.units, memory); !status) return fail(status.error());
    const auto qemu = options.system
                          ? record::find_qemu(aarch64 ? "qemu-system-aarch64" : "qemu-system-arm", "qemu-system-arm")
                          : record::find_qemu(aarch64 ? "qemu-aarch64" : "qemu-arm", "qemu-user");
    if (!qemu) return fail(qemu.error());
    const auto plugin = record::find_plugin();
    if (!plugin) return fail(plugin.error());

    record::RecorderOptions to;
    to.folder = options.folder;
    to.description = program;
    for (std::size_t i = 1; i < options.program.size(); ++i) to.description += " " + options.program[i];
    to.description = "recorded under QEMU: " + to.description;
    to.units = options.units;
    to.unit = options.programmed;
    to.truth_ranges = options.truth;
    to.limit_instructions = options.limit;
    to.buffer_bytes = options.buffer;
    to.limit_changes = options.changes;
    to.aarch64 = aarch64;
    to.system = options.system;
    if (options.system) to.system_image = program;
    image::Symbols symbols;
    if (!aarch64 && !kind_of(program).position_independent && symbols.add_elf(program))
        to.instruction_set = [&symbols](Address address) -> std::optional<isa::Isa> {
            const auto contents = symbols.contents(address);
            return contents ? image::instruction_set(*contents) : std::nullopt;
        };
    for (const auto& [text, option, address] :
         {std::tuple{&options.start_at, "start-at", &to.start_at}, {&options.stop_at, "stop-at", &to.stop_at}}) {
        if (text->empty()) continue;
        const auto found = code_place(*text, option, options);
        if (!found) return fail(found.error());
        *address = *found;
    }
    to.ranges = std::move(ranges);
    if (!options.trigger_at.empty()) {
        const auto found = code_place(options.trigger_at, "trigger-at", options);
        if (!found) return fail(found.error());
        to.trigger_at = *found;
    }
    to.force = options.force;
    if (!options.system)
        if (const auto status = check_executable(program); !status) return fail(status.error());
    if (options.system) to.reset = kind_of(program).entry;
    record::QemuOptions how{
        .qemu = *qemu, .plugin = *plugin, .program = options.program, .aarch64 = aarch64, .exact = !options.blocks};
    if (options.system) {
        how.qemu_arguments = system_arguments(options);
        how.program = {program};
        if (aarch64) {
            how.watched = record::after_register_writes(memory);
        } else {
            std::vector<Address> tables = record::vector_tables(memory);
            for (const std::string& text : options.vectors) {
                const auto table = place(text, "vectors", program);
                if (!table) return fail(table.error());
                tables.push_back(*table);
            }
            for (const Address table : tables) how.watched.emplace_back(table, table + record::vector_table_bytes);
        }
        const Address entry = kind_of(program).entry;
        how.watched.emplace_back(entry, entry + 4);
    }
    std::string sysroot = options.sysroot;
    const char* const cross_libraries = aarch64 ? "/usr/aarch64-linux-gnu" : "/usr/arm-linux-gnueabihf";
    if (!options.system && sysroot.empty() && std::getenv("QEMU_LD_PREFIX") == nullptr && fs::exists(cross_libraries))
        sysroot = cross_libraries;
    if (!sysroot.empty()) how.qemu_arguments = {"-L", sysroot};
    // QEMU has one log: asked for by the user, it is theirs.
    how.signals =
        !options.system && std::none_of(options.qemu_options.begin(), options.qemu_options.end(),
                                        [](const std::string& o) { return o == "-d" || o == "-D" || o == "-strace"; });
    if (!options.system)
        how.qemu_arguments.insert(how.qemu_arguments.end(), options.qemu_options.begin(), options.qemu_options.end());

    if (options.perf.chosen()) {
        how.threads = how.children = true;
        return run_record_perf(std::move(to), how, options.perf, options.spe.buffer_kib, options.spe.info_version,
                               options.quiet);
    }
    auto recorder = record::Recorder::create(std::move(to));
    if (!recorder) return fail(recorder.error());
    const auto began = fs::file_time_type::clock::now() - std::chrono::seconds(1);  // file systems have coarse clocks
    ProgressLine progress;
    const auto ending =
        record::run_qemu(how, **recorder,
                         progress.active() ? record::RecordProgress([&] {
                             const record::Recorded r = (*recorder)->recorded();
                             progress.text(fmt::format("recorded {} instructions, {} bytes of trace",
                                                       grouped(r.instructions), grouped(r.trace_bytes)));
                         })
                                           : nullptr);
    const bool whole = ending && !ending->killed;
    if (ending && !options.system)
        if (const auto taken = (*recorder)->take_generated_names(ending->process, began); !taken)
            say("warning", fmt::format("{}; code that was generated has no names from it", taken.error().message));
    const auto finished = (*recorder)->finish(whole);
    const record::Recorded r = (*recorder)->recorded();
    if (!ending) return fail(ending.error());
    if (r.replaced && !options.quiet)
        say("note", fmt::format("{}: replaced the recording that was there", options.folder));
    if (!options.quiet && r.decodable)
        say("note", fmt::format("{}: {} instructions in {} ranges, {} {}{}, {} bytes of trace, {} bytes of code{}",
                                options.folder, grouped(r.instructions), grouped(r.ranges), r.threads,
                                options.system ? "core" : "thread", r.threads == 1 ? "" : "s", grouped(r.trace_bytes),
                                grouped(r.code_bytes),
                                r.epochs == 1 ? ""
                                              : fmt::format(", in {} buffers since code changed {} time{}", r.epochs,
                                                            r.code_changes, r.code_changes == 1 ? "" : "s")));
    if (r.kept_bytes < r.trace_bytes)
        say("warning",
            fmt::format("{} wrapped: of {} of trace {} the last {}; what the program did before is gone. A larger "
                        "--buffer, or none, keeps more",
                        r.epochs == 1 ? "the buffer" : "buffers", counted(r.trace_bytes, "byte"),
                        r.epochs == 1 ? "it holds" : "they hold", counted(r.kept_bytes, "byte")));
    if (!finished) {
        say("error",
            fmt::format("{}{}{}", finished.error().message, whole ? "" : "; the program was ended",
                        r.decodable ? "; what was written before can be decoded"
                                    : "; nothing of the recording can be decoded: make room and record again"));
        return static_cast<ExitStatus>(cut_off);
    }
    if (!r.began) {
        say("error", fmt::format("nothing recorded: {} --start-at {}{}",
                                 r.start_known ? "execution never reached" : "no file that ran has the symbol of",
                                 options.start_at, r.start_known ? "" : overloads_hint));
        return nothing;
    }
    for (const std::string& place : r.unknown_places)
        say("warning",
            fmt::format("{}: no file that ran has such a symbol{}; the unit's comparator for it never matched", place,
                        overloads_hint));
    const bool never_stopped = !options.stop_at.empty() && !r.stopped;
    if (never_stopped)
        say("warning", fmt::format("--stop-at {}: {}; nothing stopped the recording", options.stop_at,
                                   r.stop_known ? std::string("execution never reached it")
                                                : fmt::format("no file that ran has such a symbol{}", overloads_hint)));
    if (r.instructions == 0 && !r.stuck) {
        say("error", fmt::format("nothing recorded: the program executed nothing; {} {}{}", qemu->filename().string(),
                                 ending->kind == record::Ending::Kind::signalled
                                     ? "was ended by " + signal_name(ending->code)
                                     : fmt::format("ended with status {}", ending->code),
                                 !options.system && kind_of(program).dynamic
                                     ? "; the program needs its dynamic linker and libraries, in the folder that "
                                       "--sysroot names"
                                     : ""));
        return nothing;
    }
    if (r.unknown_vector)
        say("note", fmt::format("exceptions went through a vector table at {:#x} that the image does not show; those "
                                "taken right after an indirect branch look like its target; give --vectors {:#x}",
                                r.unknown_vector->value & ~std::uint64_t{record::vector_table_bytes - 1},
                                r.unknown_vector->value & ~std::uint64_t{record::vector_table_bytes - 1}));
    if (r.stays_in_aarch32 != 0)
        say("warning", fmt::format("the program went to AArch32 state {}; what ran there is not recorded",
                                   counted(r.stays_in_aarch32, "time")));
    if (r.unread_registers != 0)
        say("warning",
            fmt::format("{} of SCR_EL3, HCR_EL2 or CONTEXTIDR_EL1 by code that is not in the image{}: the "
                        "values are not known, so the security state or Context ID may be wrong",
                        counted(r.unread_registers, "write"),
                        how.watched.size() > record::most_watched_writes ? ", or has too many of them" : ""));
    if (r.jumps != 0)
        say("warning", fmt::format("{} execution went on at a place to which no branch or exception led, as when a "
                                   "core is reset or started; the trace has a gap there",
                                   counted(r.jumps, "time")));
    if (const auto status = ended_by_signal(*ending)) return *status;
    if (r.changed_too_often) {
        say("error",
            fmt::format("code that had executed changed more than {} times; what came up to there is recorded. "
                        "Each change begins a buffer of its own; --max-changes allows more",
                        grouped(options.changes)));
        return static_cast<ExitStatus>(cut_off);
    }
    if (r.lost_way) {
        say("error",
            fmt::format(
                "recording stopped at {:#x}: half a megabyte ran without a single branch, as empty memory does{}",
                r.lost_way->value,
                options.system ? fmt::format("; is the image made for the machine {}? --machine and --core choose "
                                             "another",
                                             machine(options))
                               : std::string()));
        return r.ranges == 0 ? nothing : static_cast<ExitStatus>(cut_off);
    }
    if (r.stuck) {
        say("error",
            fmt::format("recording stopped: at {:#x} exception followed exception and nothing executed, as where "
                        "there is no memory; is the image made for the machine {}? --machine and --core choose "
                        "another",
                        r.stuck->value, machine(options)));
        return r.ranges == 0 ? nothing : static_cast<ExitStatus>(cut_off);
    }
    if (r.ranges == 0 && r.filtered_ranges != 0) {
        say("error", fmt::format("nothing recorded: {} executed in {} ranges, none of which the unit was programmed to "
                                 "trace; look at --view-range, --exclude-range and --registers",
                                 counted(r.instructions, "instruction"), grouped(r.filtered_ranges)));
        return nothing;
    }
    if (r.ranges == 0) {
        say("error",
            fmt::format("nothing recorded: {} executed, but no branch, so the trace shows none of them{}",
                        counted(r.instructions, "instruction"),
                        options.system ? fmt::format("; is the image made for the machine {}?", machine(options))
                        : options.start_at.empty() && options.stop_at.empty() && options.limit == 0
                            ? ""
                            : "; let --start-at, --stop-at or --limit leave more of the run"));
        return nothing;
    }
    if (ending->ended) {
        if (!options.quiet) say("note", "the recording was stopped as asked for, and QEMU ended");
        return decoded;
    }
    if (ending->code != 0 && !options.quiet) say("note", fmt::format("the program exited with {}", ending->code));
    // All is recorded, but not what was asked for.
    return never_stopped ? nothing : decoded;
}

}  // namespace

waymark::Status check_executable(const std::string& program) {
    if (access(program.c_str(), X_OK) == 0 || errno != EACCES) return Nothing{};
    return Error{Errc::unreadable,
                 fmt::format("{} is not executable; chmod +x makes it so, if it is the program", program)};
}

Run add_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    CLI::App& command = *app.add_subcommand(
        "record", "Run an Arm program under QEMU and write the trace that a hardware unit would produce");
    command
        .add_option(
            "-o,--output", options->folder,
            "Folder for the capture: new, empty, or an earlier recording, which is replaced; other files in it stay. "
            "With --unit spe and --as perf: the perf.data file. Refused while another 'waymark record' writes there")
        ->type_name("PATH")
        ->required();
    command.add_option("PROGRAM", options->program, "The program and its arguments, after --")->required();
    std::vector<std::string> units;
    std::string about;
    for (const protocol::Protocol* const row : pipeline::protocols())
        for (const flow::UnitFactory* const factory : row->units()) {
            const std::string_view title = row->words().unit_title;
            units.push_back(pipeline::option_name(*factory));
            about += fmt::format("{}: {} {}{}; ", units.back(),
                                 std::string_view("AEIOU").find(title.front()) != std::string_view::npos ? "an" : "a",
                                 title, factory->traces_aarch64() ? "" : ", for 32-bit programs");
        }
    units.insert(units.end(), {"spe", "dpu"});
    command
        .add_option(
            "--unit", options->unit,
            about +
                "spe: a statistical profiling unit, for AArch64 programs; dpu: a Debug and Profiling Unit of a DSP "
                "core; a 32-bit Arm program is run in place of DSP code. Default: the first that traces such a program")
        ->check(CLI::IsMember(units));
    const auto flow = [&](CLI::Option* option) {
        options->flow_only.push_back(option);
        return option;
    };
    const auto unit = [&](CLI::Option* option) {
        flow(option)->group(fmt::format("--unit {}: how the unit is programmed", pipeline::flow_unit_names()));
    };
    unit(command.add_option("--core", options->programmed.core,
                            "ptm: cortex-a9 (PFT v1.0) or cortex-a15 (PFT v1.1, the default); etmv4: cortex-a53 "
                            "(ETMv4.0); ete: armv9-a (ETE 1.0)"));
    unit(command.add_flag("--cycle-accurate", options->programmed.cycle_accurate,
                          "Cycle counts; each instruction counts as one cycle, since QEMU models no timing"));
    unit(command.add_flag("--timestamps", options->programmed.timestamps, "Timestamps; they count these cycles"));
    unit(command.add_flag("--return-stack", options->programmed.return_stack,
                          "Return stack: a return to its call is traced without an address"));
    unit(command.add_flag("--branch-broadcast", options->programmed.branch_broadcast,
                          "Trace the target addresses of direct branches too"));
    unit(command
             .add_option("--context-id", options->programmed.context_id_bytes,
                         "Size of the traced Context ID, the number of the thread: 0 (not traced), 1, 2 or 4, of an "
                         "AArch64 system CONTEXTIDR_EL1")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command
             .add_option("--sync", options->programmed.sync_bytes,
                         "Trace bytes between periodic synchronisations (ETMSYNCFR), up to 4095; of ete and etmv4 "
                         "(TRCSYNCPR) a power of two from 256 to 1048576; 0: none")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command
             .add_option("--fifo", options->programmed.fifo_bytes,
                         "Size of the FIFO; when it is full, trace is lost as on hardware. 0: it never fills")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command
             .add_option("--drain", options->programmed.drain_cycles,
                         "Number of cycles in which four bytes leave the FIFO")
             ->type_name("CYCLES")
             ->capture_default_str());
    unit(command
             .add_option(
                 "--speculation", options->programmed.speculation_depth,
                 "ete and etmv4: maximum number of uncommitted P0 elements, 2 to 256. The core then takes "
                 "wrong paths, which are INVENTED and cancelled in the trace; the decoded execution is the same. 0: "
                 "it does not speculate")
             ->type_name("N")
             ->capture_default_str());
    unit(command
             .add_option("--speculation-seed", options->programmed.seed, "Seed of the random numbers for wrong paths")
             ->type_name("N")
             ->capture_default_str());
    unit(
        command
            .add_option("--cycle-threshold", options->programmed.cycle_threshold,
                        "ete and etmv4, with --cycle-accurate: counts wait until there are so many cycles (TRCCCCTLR), "
                        "up to 4095. 0: the least there is")
            ->type_name("CYCLES")
            ->capture_default_str());
    unit(command
             .add_option("--view-range", options->view_ranges,
                         "Trace blocks with code of this range alone: the symbol of a function, or START-STOP, each an "
                         "address or a symbol, STOP the address after it. May be repeated: the unit has four pairs of "
                         "address comparators")
             ->type_name("RANGE")
             ->take_all());
    unit(command
             .add_option(
                 "--exclude-range", options->exclude_ranges,
                 "Do not trace blocks that lie in this range as a whole. May be repeated; with --view-range too, "
                 "but not on a ptm")
             ->type_name("RANGE")
             ->take_all());
    unit(
        command
            .add_option("--trigger-at", options->trigger_at,
                        "Execution of this symbol or address is in the trace: as a Trigger packet of a ptm, as event 0 "
                        "of ete and etmv4")
            ->type_name("SYMBOL"));
    options->registers_option =
        command
            .add_option(
                "--registers", options->registers,
                "Program the unit by its registers. ptm, etmv4, ete: before the other options; lines NAME VALUE, "
                "NAME.FIELD VALUE or NAME FIELD=VALUE …, or the [regs] of a snapshot's device file. dpu: instead "
                "of the other options; 'waymark dpu program FILE' checks it. Not with --unit spe")
            ->type_name("FILE");
    options->buffer_option =
        command
            .add_option("--buffer", options->buffer,
                        "Size of the trace memory, which wraps like an ETB and keeps the newest trace. A multiple "
                        "of 16, of 32 with --unit dpu; 0: endless. Not with --unit spe")
            ->type_name("BYTES")
            ->check(not_negative())
            ->capture_default_str();
    unit(command.add_flag(
        "--truth", options->truth,
        "Write every executed range too, so that 'waymark verify' can show the first difference. Sums and "
        "a hash are always written"));
    unit(command.add_flag(
        "--blocks", options->blocks,
        "One QEMU callback per block instead of exact ones: less work for QEMU, although the recorder usually limits "
        "the "
        "speed. Inexact: a block that a fault ends early is recorded as if it had run to its end, and the fault "
        "as if it occurred after it"));
    command
        .add_option("--limit", options->limit,
                    "Stop recording after this number of instructions; the program continues, with --system it ends")
        ->type_name("N")
        ->check(not_negative());
    unit(command
             .add_option(
                 "--start-at", options->start_at,
                 "Begin when execution first reaches this address or symbol, of the program or else of a library")
             ->type_name("SYMBOL"));
    unit(command
             .add_option(
                 "--stop-at", options->stop_at,
                 "Stop when execution reaches this symbol or address; the program runs on, with --system it ends")
             ->type_name("SYMBOL"));
    command
        .add_option("--sysroot", options->sysroot,
                    "Where the program's dynamic linker and libraries are (QEMU's -L). Default: "
                    "/usr/arm-linux-gnueabihf or /usr/aarch64-linux-gnu if there, else QEMU's own")
        ->type_name("DIR");
    unit(
        command
            .add_option(
                "--max-changes", options->changes,
                "Stop after so many changes of executed code; each change begins a new buffer with its own memory dump")
            ->type_name("N")
            ->capture_default_str());
    const auto system = [&](CLI::Option* option) { flow(option)->group("A whole system"); };
    system(command.add_flag(
        "--system", options->system,
        "PROGRAM is a bare-metal image (ELF) and runs under qemu-system-aarch64 or qemu-system-arm, with "
        "its interrupts and exceptions. Each core is a source"));
    system(command
               .add_option("--machine", options->machine,
                           "QEMU's machine. Default: virt,secure=on,virtualization=on of an AArch64 image, else "
                           "vexpress-a9 or vexpress-a15, as --core is")
               ->type_name("NAME"));
    system(command.add_option("--smp", options->processors, "How many cores")
               ->type_name("N")
               ->check(CLI::Range(1, 32))
               ->capture_default_str());
    system(
        command
            .add_option("--vectors", options->vectors,
                        "A vector table that a 32-bit image does not show, as when it is made while the program runs. "
                        "Tables in the image are found. May be repeated")
            ->type_name("SYMBOL")
            ->allow_extra_args(false)
            ->take_all());
    command
        .add_option("--qemu", options->qemu_options,
                    "One more argument for QEMU, as in --qemu=-m --qemu=64. May be repeated")
        ->type_name("ARG")
        ->allow_extra_args(false)  // else it takes the -- before PROGRAM for itself
        ->take_all();
    command.add_flag("--force", options->force,
                     "Record into a folder that contains anything but a recording of this unit. Other files stay; a "
                     "recording of another unit is removed. Never where another 'waymark record' is still writing");
    command.add_flag("-q,--quiet", options->quiet, "Print only warnings and errors");
    command.footer(
        "The capture is a snapshot folder with the executed code in it: every other command reads it directly, "
        "also\n"
        "while it is being written. Each thread is a source. The kernel is not traced: a system call shows as its\n"
        "exception, and trace continues after it with an I-sync or Trace On. Changed code begins a new buffer with its "
        "own "
        "memory.\n"
        "With --system everything is traced, handlers too. The program may write through semihosting, and ends with "
        "its\n"
        "exit call; where it has none, Ctrl-C, --limit or --stop-at end the recording and QEMU.\n"
        "\n"
        "--as perf writes what `perf record -e cs_etm//u` would: a thread is a context on one of --cpus CPUs, forked\n"
        "children are recorded too, and what really ran is summed in PATH.truth.txt. perf decodes it with the files "
        "that\n"
        "were mapped: the code is not in it.\n"
        "\n"
        "--unit spe writes what `perf record -e arm_spe//` would: perf script, report, mem and c2c read it. Which "
        "operations\n"
        "ran, their data addresses and how branches came out is the program's own. Latencies, data sources, physical\n"
        "addresses and events of caches, TLBs and branch prediction are MODELLED, after numbers that --machine-help "
        "lists\n"
        "and you may change; near a Neoverse N1, but no measurement of one. The kernel is not sampled. What really ran "
        "is\n"
        "summed in PATH.truth.txt.\n"
        "\n"
        "--unit dpu writes the folder of a StarCore Debug and Profiling Unit for 'waymark dpu', info, packets and "
        "flow.\n"
        "Instructions, branches, accesses and system calls are the program's own; one virtual core runs its threads, "
        "each\n"
        "a task with an ID, and system calls are stays in supervisor state. Cycles, stalls and caches are MODELLED, "
        "after\n"
        "numbers that --core-help lists. What really executed is in DIR/truth.txt. Programs that include waymark_dpu.h "
        "can\n"
        "write to DP_TD. Words of the trace have layout WL-1: flags, entries and event sets as Waymark defines them, "
        "for\n"
        "the published description of the unit omits them.\n"
        "\n"
        "Exit status: 0 recorded (the program's own status is printed, not passed on); 1 nothing recorded, or\n"
        "--stop-at never reached, so that all of the run is recorded; 2 usage;\n"
        "3 the program or QEMU cannot be started, or the folder cannot be created; 4 the program was ended by a "
        "signal;\n"
        "5 interrupted by SIGINT, SIGTERM or SIGHUP; 6 something could not be written, such as on a full disk,\n"
        "code changed more than --max-changes times, or execution ran into empty memory.\n"
        "After 4, 5 and 6 too the capture can be decoded.\n"
        "\n"
        "Examples:\n"
        "  waymark record -o out -- ./program --its-option\n"
        "  waymark record --core cortex-a9 --cycle-accurate --timestamps --start-at main --limit 1000000 -o out -- "
        "./program\n"
        "  waymark flow out --format calls\n"
        "  waymark record --truth -o out -- ./program && waymark verify out\n"
        "  waymark record --system --context-id 4 -o out -- firmware-for-aarch64.elf\n"
        "  waymark record --system --core cortex-a9 -o out -- firmware.elf\n"
        "  waymark record --unit etmv4 --cycle-accurate --speculation 8 -o out -- ./program-for-aarch64\n"
        "  waymark record --as perf -o perf.data -- ./program && perf report --stdio\n"
        "  waymark record --unit spe --period 1024 -e arm_spe/load_filter=1,min_latency=30/ -o perf.data -- ./program\n"
        "  waymark record --unit dpu --events 2,7 -o out -- ./program && waymark dpu functions out\n"
        "\n"
        "  waymark record --fifo 64 --drain 8 --cycle-accurate -o out -- ./program    loses trace as a full FIFO "
        "does\n");
    options->perf.add_to(command);
    options->flow_only.push_back(options->perf.as_option);
    for (CLI::Option* const option : options->perf.only) options->flow_only.push_back(option);
    options->spe.add_to(command, options->spe_only);
    options->dpu.add_to(command, options->dpu_only);
    return [options] { return run_record(*options); };
}

}  // namespace waymark::cli
