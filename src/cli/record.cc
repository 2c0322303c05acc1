/// `waymark record`: runs a program and writes the trace that a unit would have given.
#include <fmt/ranges.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "commands.h"
#include "cortex_m/record.h"
#include "dpu/record.h"
#include "options.h"
#include "perf/record.h"
#include "spe/record.h"
#include "status_line.h"
#include "trouble.h"
#include "unit_program.h"
#include "waymark/core/quote.h"
#include "waymark/core/wire.h"
#include "waymark/image/symbols.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record_m/cortex_m.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;

struct RecordOptions {
    std::string unit;
    bool quiet = false, from_start = false;
    bool is_cortex_m = false;  ///< the unit is one of a Cortex-M
    record::FlowRecording
        flow;  ///< `units` is null for units without program flow; the options common to all units are here too
    SpeRecordOptions spe;
    DpuRecordOptions dpu;
    CortexMRecordOptions cortex_m;
    PerfRecordOptions perf;
    std::vector<CLI::Option*> flow_only, spe_only, dpu_only,
        cortex_m_only;                                                  ///< options that are valid for some units only
    CLI::Option *buffer_option = nullptr, *registers_option = nullptr;  ///< all but spe
    std::uint64_t after_trigger = 0;
    CLI::Option* after_option = nullptr;
    bool scatter_list = false;
};

/// The buffer of `--sink KIND[:BYTES]`, for a recording other than perf.data; nullopt without --sink.
Result<std::optional<sink::PathSetup>> sink_of(const RecordOptions& options) {
    const std::string& text = options.perf.to.sink;
    if (text.empty()) {
        if (options.after_option->count() != 0)
            return Error{Errc::usage,
                         "--stop-after-trigger is only for --sink, as in --sink tmc-etb --stop-after-trigger 1024"};
        if (options.scatter_list) return Error{Errc::usage, "--scatter-list is only for --sink tmc-etr"};
        return std::optional<sink::PathSetup>();
    }
    const std::size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    std::uint64_t number = 0;
    if (colon != text.npos && !wire::scan_number(text.substr(colon + 1), number))
        return Error{Errc::usage, fmt::format("--sink {}: expected {} after the colon, as in {}", text,
                                              kind == "tpiu" ? "the number of pins" : "the size in bytes",
                                              kind == "tpiu" ? "tpiu:4" : kind + ":4096")};
    if (kind == "tpiu") {
        constexpr unsigned usual_pins = 4, most_pins = 32;
        if (options.after_option->count() != 0 || options.scatter_list)
            return Error{Errc::usage,
                         "--stop-after-trigger and --scatter-list are for trace buffers, not for --sink tpiu"};
        sink::PathSetup port;
        port.port_pins =
            colon == text.npos ? usual_pins : static_cast<unsigned>(std::min<std::uint64_t>(number, most_pins + 1));
        return std::optional(std::move(port));
    }
    std::vector<std::string_view> names;
    std::optional<sink::SinkSetup> out;
    for (const sink::SinkName& one : sink::sink_names()) {
        names.push_back(one.name);
        if (one.name == kind) out = sink::SinkSetup{.buffer = {.kind = one.kind}};
    }
    if (!out)
        return Error{Errc::usage, fmt::format("--sink {}: there are {}, each with :BYTES or without, and tpiu, with "
                                              ":PINS or without; etr and trbe go with --as perf only",
                                              text, fmt::join(names, ", "))};
    if (options.scatter_list && out->buffer.kind != sink::SinkKind::etr)
        return Error{Errc::usage, fmt::format("--scatter-list is only for --sink tmc-etr, not for {}", kind)};
    if (colon != text.npos) out->buffer.memory_bytes = number;
    // The address of an ETR's memory does not matter here, but the setup needs one.
    constexpr std::uint64_t somewhere = 0x80000000;
    if (out->buffer.kind == sink::SinkKind::etr) out->buffer.base = somewhere;
    if (options.after_option->count() != 0) out->after_trigger = options.after_trigger;
    out->scatter_list = options.scatter_list;
    return std::optional(sink::PathSetup{.buffer = std::move(out), .registers = {}});
}

/// Chooses the unit, and refuses options that are not valid for it.
waymark::Status choose_unit(RecordOptions& options) {
    const image::ProgramKind kind = record::kind_of(options.flow.program.front());
    const bool aarch64 = kind.aarch64, for_cortex_m = !record::machine_of(kind.architecture).empty();
    const bool is_spe = options.unit == "spe", is_dpu = options.unit == "dpu";
    const bool is_cortex_m = options.is_cortex_m = CortexMRecordOptions::is_unit(options.unit, for_cortex_m);
    const bool is_flow = !is_spe && !is_dpu && !is_cortex_m;
    if (is_flow && for_cortex_m)
        return Error{
            Errc::usage,
            fmt::format("{} was built for {}, a Cortex-M: choose --unit mtb (which instructions ran), etmv3 "
                        "or etmv4 (the same, of a Cortex-M3 or M4, and of an M7, M33 or M55), itm (messages of "
                        "software, exceptions, watched "
                        "variables), stm (messages of software) or several, such as mtb,itm",
                        options.flow.program.front(), kind.architecture)};
    if (is_flow)
        for (const flow::UnitFactory* const units : pipeline::flow_units())
            if (options.unit.empty() ? units->traces_aarch64() == aarch64 && options.flow.units == nullptr
                                     : pipeline::option_name(*units) == options.unit)
                options.flow.units = units;
    for (const auto& [only, unit, is_it] : {std::tuple{&options.flow_only, pipeline::flow_unit_names(), is_flow},
                                            {&options.spe_only, std::string("spe"), is_spe},
                                            {&options.dpu_only, std::string("dpu"), is_dpu},
                                            {&options.cortex_m_only, std::string("mtb, itm and stm"), is_cortex_m}})
        for (const CLI::Option* option : *only) {
            const bool for_perf = only == &options.spe_only && PerfRecordOptions::shared_with_spe(option->get_name());
            const bool shared = (is_cortex_m && CortexMRecordOptions::shares(option->get_name())) ||
                                (is_spe && SpeRecordOptions::shares(option->get_name()));
            const bool given = option->count() != 0;
            if (given && is_cortex_m && !shared && only == &options.flow_only && options.unit.starts_with("etm"))
                return Error{
                    Errc::usage,
                    fmt::format("{} cannot be used with the ETM of a Cortex-M, which is recorded with fixed settings",
                                option->get_name())};
            if (!is_it && !shared && given && !(for_perf && !is_dpu && options.perf.chosen()))
                return Error{Errc::usage, fmt::format("{} is only for --unit {}{}", option->get_name(), unit,
                                                      for_perf ? " and --as perf" : "")};
        }
    for (const CLI::Option* const option : {options.buffer_option, options.registers_option})
        if ((is_spe || is_cortex_m) && option->count() != 0 && !(is_spe && option == options.registers_option)) {
            std::string units = pipeline::flow_unit_names();
            constexpr std::string_view last = " and ";
            if (const auto at = units.rfind(last); at != units.npos) units.replace(at, last.size(), ", ");
            return Error{Errc::usage, fmt::format("{} is only for --unit {} and dpu", option->get_name(), units)};
        }
    return options.perf.check();
}

/// Exit statuses in addition to those of every command.
enum RecordStatus : int { program_died = 4, interrupted = 5, cut_off = 6 };

/// Prints the outcome of a recording and how to show it, and returns the status.
ExitStatus finish_recording(const Result<record::RecordOutcome>& outcome, const std::string& place, bool quiet) {
    using Level = record::RecordOutcome::Level;
    if (!outcome) return fail(outcome.error());
    std::vector<std::string> repeated;
    for (const auto& [level, text] : outcome->remarks) {
        if (level == Level::repeated) {
            repeated.push_back(text);
            continue;
        }
        say_gathered("warning", std::exchange(repeated, {}));
        if (level == Level::summary && quiet) continue;
        say(level == Level::error ? "error" : level == Level::warning ? "warning" : "note", text);
    }
    say_gathered("warning", repeated);
    if (!quiet && outcome->decodable && outcome->kind != record::RecordOutcome::Kind::nothing)
        say("next", "waymark report " + shell_file(place));
    constexpr std::array<int, 5> statuses{decoded, nothing, program_died, interrupted, cut_off};
    return static_cast<ExitStatus>(statuses[static_cast<std::size_t>(outcome->kind)]);
}

/// Whether the recording begins at main because no option says otherwise. perf records a process from its first
/// instruction on, and a system has no main.
bool chooses_begin(const RecordOptions& options) {
    return !options.from_start && !options.flow.system && options.flow.start_at.empty() && !options.perf.chosen();
}

bool has_main(const std::string& program) {
    image::Symbols symbols;
    return symbols.add_elf(program) && symbols.function_called("main");
}

ExitStatus run_record(RecordOptions options) {
    record::FlowRecording& flow = options.flow;
    if (flow.program.empty()) return fail({Errc::usage, "no program given: waymark record -- PROGRAM [ARGS…]"});
    // Opening a pipe would block until it has a writer.
    const std::string& program = flow.program.front();
    if (std::error_code none; fs::exists(program, none) && fs::is_other(program, none))
        return fail(
            {Errc::unreadable,
             fmt::format("{} is not a regular file, so it cannot be run as a program; name an ELF file", program)});
    if (std::error_code none; !flow.sysroot.empty() && !fs::is_directory(flow.sysroot, none))
        return fail({Errc::not_found,
                     fmt::format("--sysroot {} is not a folder; name the folder that contains the program's lib/",
                                 flow.sysroot)});
    // A write beyond the file size limit then fails and is reported like any other error.
    std::signal(SIGXFSZ, SIG_IGN);
    if (const auto status = choose_unit(options); !status) return fail(status.error());
    if (flow.folder.empty()) flow.folder = options.unit == "spe" || options.perf.chosen() ? "perf.data" : "recording";
    // The program writes to the same terminal.
    StatusLine progress;
    record::ShowRecording show;
    if (progress.active()) show = [&](const std::string& line) { progress.show(line); };
    if (options.unit == "spe")
        return finish_recording(run_record_spe(flow, options.spe, show), flow.folder, options.quiet);
    if (options.unit == "dpu")
        return finish_recording(run_record_dpu(flow, options.dpu, show), flow.folder, options.quiet);
    if (options.is_cortex_m)
        return finish_recording(run_record_cortex_m(flow, options.unit, options.cortex_m, show), flow.folder,
                                options.quiet);
    flow.unit_name = pipeline::option_name(*flow.units);
    flow.aarch64_units = pipeline::aarch64_unit_names();
    for (const flow::UnitFactory* const units : pipeline::flow_units())
        if (const flow::MakesUnitSignals* const makes = flow::with_signals(*units)) {
            const auto add = [&](std::string& to) {
                to += (to.empty() ? "--unit " : " or --unit ") + pipeline::option_name(*units);
            };
            if (makes->signals(units->defaults()).non_secure) add(flow.niden_units);
        }
    const bool chooses = chooses_begin(options), at_main = chooses && has_main(program);
    if (at_main) flow.start_at = "main";
    if (flow.unit.core.empty()) flow.unit.core = flow.units->defaults().core;
    if (!options.perf.chosen()) {
        auto sink = sink_of(options);
        if (!sink) return fail(sink.error());
        flow.sink = *std::move(sink);
    }
    if (options.perf.chosen()) program_like_perf(options.perf, *flow.units, flow.unit);
    auto setup = record::set_up(flow);
    if (!setup) return fail(setup.error());
    for (const std::string& text :
         registers_without_effect(setup->recorder.unit, "each source gets another, so the recorder chooses"))
        say("note", text);
    if (chooses && !options.quiet)
        say("note", at_main ? "the recording begins at main; --from-start also records earlier code"
                            : program + " has no symbol main, so its recording begins with its first instruction");
    if (!options.perf.chosen()) {
        const auto outcome = record::record_flow(flow, std::move(*setup), show);
        const ExitStatus status = finish_recording(outcome, flow.folder, options.quiet);
        if (status == nothing && at_main && !(outcome && outcome->trigger_missed))
            say("note", "the recording was to begin at main; --from-start also records earlier code");
        return status;
    }
    options.perf.to.aux_kib = options.spe.buffer_kib;
    options.perf.to.info_version = options.spe.info_version;
    return finish_recording(record::record_perf(std::move(*setup), options.perf.to, show), flow.folder, options.quiet);
}

}  // namespace

Run add_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    record::FlowRecording& flow = options->flow;
    CLI::App& command = *app.add_subcommand(
        "record", "Run an Arm program under QEMU and write the trace that a hardware unit would produce");
    add_output(
        command, flow.folder,
        "Folder for the capture: new, empty, or of an earlier recording, which is replaced; other files stay. "
        "With --unit spe and --as perf: the perf.data file. Refused while another 'waymark record' writes there. "
        "Default: recording, or perf.data")
        ->type_name("PATH");
    command.add_option("PROGRAM", flow.program, "The program and its arguments, after --")->required();
    std::vector<std::string> units;
    std::string about;
    for (const protocol::Protocol* const row : pipeline::protocols())
        for (const flow::UnitFactory* const factory : row->units()) {
            units.push_back(pipeline::option_name(*factory));
            const std::string_view title = units.back() == "ete"     ? "Embedded Trace Extension"
                                           : units.back() == "etmv4" ? "Embedded Trace Macrocell v4"
                                                                     : row->words().unit_title;
            about += fmt::format("{}: {} {} ({}){}; ", units.back(),
                                 std::string_view("AEIOU").find(title.front()) != std::string_view::npos ? "an" : "a",
                                 title, factory->core_type(factory->defaults()),
                                 factory->traces_aarch64() ? "" : ", for 32-bit programs");
        }
    units.insert(units.end(), {"spe", "dpu"});
    units.insert(units.end(), CortexMRecordOptions::units.begin(), CortexMRecordOptions::units.end());
    command
        .add_option(
            "--unit", options->unit,
            about +
                "spe: a statistical profiling unit, for AArch64 programs; dpu: a Debug and Profiling Unit of a DSP "
                "core; a 32-bit Arm program runs instead of DSP code; mtb: the Micro Trace Buffer of a Cortex-M; itm: "
                "the Instrumentation Trace Macrocell and DWT of a Cortex-M; stm: a System Trace Macrocell beside it; "
                "mtb,itm, etmv4,itm and so on: several of them. Default: ete for AArch64, ptm for 32-bit programs")
        ->type_name("UNIT")
        ->transform(one_of(units));
    const auto flow_only = [&](CLI::Option* option) {
        options->flow_only.push_back(option);
        return option;
    };
    const auto unit = [&](CLI::Option* option) {
        flow_only(option)->group(fmt::format("--unit {}: how the unit is programmed", pipeline::flow_unit_names()));
    };
    for (CLI::Option* const option : add_unit_program(command, flow)) unit(option);
    unit(command
             .add_option("--fifo", flow.unit.fifo_bytes,
                         "Size of the FIFO; when it is full, trace is lost as on hardware. 0: it never fills")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command.add_option("--drain", flow.unit.drain_cycles, "Number of cycles in which four bytes leave the FIFO")
             ->type_name("CYCLES")
             ->capture_default_str());
    unit(command
             .add_option(
                 "--speculation", flow.unit.speculation_depth,
                 "ete and etmv4: maximum number of uncommitted P0 elements, 2 to 256. The core then takes "
                 "wrong paths, which are INVENTED and cancelled in the trace; the decoded execution is the same. 0: "
                 "it does not speculate")
             ->type_name("N")
             ->capture_default_str());
    unit(command.add_option("--speculation-seed", flow.unit.seed, "Seed of the random numbers for wrong paths")
             ->type_name("N")
             ->capture_default_str());
    options->registers_option =
        command
            .add_option(
                "--registers", flow.registers,
                "Program the unit by its registers. ptm, etmv3, etmv4, ete: before the other options; lines NAME "
                "VALUE, "
                "NAME.FIELD VALUE or NAME FIELD=VALUE …, or the [regs] of a snapshot's device file. dpu: instead "
                "of the other options; 'waymark dpu program FILE' checks it. spe with --system: values from the "
                "beginning, as 'waymark spe explain' takes them")
            ->type_name("FILE");
    options->buffer_option =
        command
            .add_option("--buffer", flow.buffer,
                        "Size of the trace memory, which wraps like an ETB and keeps the newest trace. A multiple "
                        "of 16, of 32 with --unit dpu; 0: unlimited. Not with --unit spe")
            ->type_name("BYTES")
            ->check(not_negative())
            ->capture_default_str();
    const auto signal = [&](const char* name, std::vector<std::string>& values, const char* help, const char* type) {
        flow_only(command.add_option(name, values, help)->type_name(type)->allow_extra_args(false)->take_all())
            ->group("Signals from outside the unit");
    };
    signal(
        "--authentication", flow.authentication,
        "Debug authentication: NIDEN, DBGEN, SPNIDEN and SPIDEN with =0 or =1; with @SYMBOL whenever execution reaches "
        "it, else from the beginning. Without the option NIDEN and SPNIDEN are 1, DBGEN and SPIDEN 0. NIDEN=0 "
        "with DBGEN=0 forbids all trace but that of an ete, SPNIDEN=0 with SPIDEN=0 that of Secure state. May be "
        "repeated",
        "SIGNALS[@SYMBOL]");
    signal("--unit-power", flow.unit_power,
           "off@SYMBOL: the unit of the core or thread that reaches the symbol or address loses its power, and with it "
           "what "
           "it had not sent; on@SYMBOL: it has power again, and software programs it as before. May be repeated",
           "on|off@SYMBOL");
    signal(
        "--os-lock", flow.os_lock,
        "on@SYMBOL: the OS Lock is set there, so the unit does not trace; off@SYMBOL: it is cleared. May be repeated",
        "on|off@SYMBOL");
    const auto way = [&](CLI::Option* option) { flow_only(option)->group("The way of the trace"); };
    way(command
            .add_option(
                "--sink", options->perf.to.sink,
                "Where trace goes. In a snapshot: the model of a trace buffer, which keeps the newest trace: etb, "
                "tmc-etb, tmc-etf or tmc-etr, each with :BYTES for its size, 65536 without; the capture is what "
                "a debugger reads from it, with its registers. Or tpiu, a trace port, with :PINS, 4 without; the "
                "capture is what leaves through its pins. Both are behind a funnel and a replicator, and cross "
                "triggers lead the unit's trigger there. With --as perf: etr, one buffer for all CPUs, in "
                "CoreSight frames; trbe, a buffer for each CPU, its unit's bytes unformatted; default: trbe for "
                "ete, else etr")
            ->type_name("SINK"));
    options->after_option =
        command
            .add_option("--stop-after-trigger,--stop-on-trigger", options->after_trigger,
                        "With --sink: stop the capture this number of bytes after --trigger-at was reached, a multiple "
                        "of 4, at most the size of the buffer less 32. The program runs on, with --system it ends")
            ->type_name("BYTES")
            ->check(not_negative());
    way(options->after_option);
    way(command.add_flag("--scatter-list", options->scatter_list,
                         "With --sink tmc-etr: its pages of 4 KB lie scattered in memory, and a list names them"));
    way(command
            .add_option("--sink-registers", flow.sink_registers,
                        "With --sink: lines NAME VALUE, which replace what the program of the funnel (FUNCTL, PRICTL), "
                        "the replicator (IDFILTER0), the cross triggers (CTICONTROL, CTIGATE, CTIINEN4, CTIOUTEN1) or "
                        "the sink (CTL, FFCR, MODE, …) writes: to see what a mistake does")
            ->type_name("FILE"));
    unit(command.add_flag(
        "--truth", flow.truth,
        "Write every executed range too, so that 'waymark verify' can show the first difference. Sums and "
        "a hash are always written"));
    unit(command.add_flag(
        "--blocks", flow.blocks,
        "One QEMU callback per block instead of exact ones: less work for QEMU, although the recorder usually limits "
        "the speed. Inexact: a block that a fault ends early is recorded as if it had run to its end, and the fault "
        "as if it occurred after it"));
    command
        .add_option(
            "--limit", flow.limit,
            "Stop recording after this number of instructions; the program continues, but ends with --system and "
            "with --unit mtb, itm and stm. 0: record everything")
        ->type_name("N")
        ->check(not_negative());
    unit(command
             .add_option(
                 "--start-at", flow.start_at,
                 "Begin when execution first reaches this address or symbol, of the program or else of a library. "
                 "Default: main, if the program has such a symbol")
             ->type_name("SYMBOL"));
    command
        .add_flag("--from-start", options->from_start,
                  "Begin with the first instruction of the process: record the dynamic linker and what else runs "
                  "before main. --unit spe, dpu, mtb, itm and stm and --system do so by default, and so does --as perf")
        ->excludes("--start-at");
    unit(command
             .add_option(
                 "--stop-at", flow.stop_at,
                 "Stop when execution reaches this symbol or address; the program runs on, with --system it ends")
             ->type_name("SYMBOL"));
    command
        .add_option("--sysroot", flow.sysroot,
                    "Where the program's dynamic linker and libraries are (QEMU's -L). Default: "
                    "/usr/arm-linux-gnueabihf or /usr/aarch64-linux-gnu if there, else QEMU's own")
        ->type_name("DIR");
    unit(command
             .add_option(
                 "--max-changes", flow.changes,
                 "Stop after this number of changes of executed code; each begins a buffer with its own memory dump")
             ->type_name("N")
             ->capture_default_str());
    const auto system = [&](CLI::Option* option) { flow_only(option)->group("A whole system"); };
    system(command.add_flag(
        "--system", flow.system,
        "PROGRAM is a bare-metal image (ELF) and runs under qemu-system-aarch64 or qemu-system-arm, with "
        "its interrupts and exceptions. Each core is a source. --unit spe: all exception levels are profiled"));
    system(command
               .add_option("--machine", flow.machine,
                           "QEMU's machine. Default: virt,secure=on,virtualization=on for an AArch64 image; else "
                           "vexpress-a9 or vexpress-a15, according to --core")
               ->type_name("NAME"));
    system(command.add_option("--smp", flow.processors, "How many cores")
               ->type_name("N")
               ->check(CLI::Range(1, 32))
               ->capture_default_str());
    system(
        command
            .add_option("--vectors", flow.vectors,
                        "A vector table that is not in the 32-bit image, for example because the program creates it. "
                        "Tables in the image are found without this option. May be repeated")
            ->type_name("SYMBOL")
            ->allow_extra_args(false)
            ->take_all());
    command
        .add_option("--qemu", flow.qemu_options,
                    "One more argument for QEMU, as in --qemu=-m --qemu=64. May be repeated")
        ->type_name("ARG")
        ->allow_extra_args(false)  // otherwise the option takes the -- before PROGRAM as its own
        ->take_all();
    command.add_flag("--force", flow.force,
                     "Record into a folder with other contents. A recording of another unit in it is removed; other "
                     "files stay. Refused while another 'waymark record' writes there");
    command.add_flag("-q,--quiet", options->quiet, "Print only warnings and errors");
    command.footer(
        "The capture is a snapshot folder with the executed code in it: every other command reads it directly, "
        "also\n"
        "while it is being written. Each thread is a source. The kernel is not traced: a system call shows as its\n"
        "exception, and trace continues after it with an I-sync or Trace On. Changed code begins a new buffer with its "
        "own "
        "memory.\n"
        "\n"
        "With --system everything is traced, handlers too. The program may write through semihosting, and ends with "
        "its\n"
        "exit call; where it has none, Ctrl-C, --limit or --stop-at end the recording and QEMU.\n"
        "\n"
        "--as perf writes the file that `perf record -e cs_etm//u` would write. Threads run on --cpus CPUs; forked "
        "children\n"
        "are recorded too. PATH.truth.txt contains sums of the real execution. The code is not in the file: perf and "
        "Waymark\n"
        "read the files that were mapped, so keep them.\n"
        "\n"
        "--unit spe writes what `perf record -e arm_spe//` would: perf script, report, mem and c2c read it. Which "
        "operations\n"
        "ran, their data addresses and the outcomes of branches are real. Latencies, data sources, physical\n"
        "addresses and events of caches, TLBs and branch prediction are MODELLED with the parameters that "
        "--machine-help "
        "lists.\n"
        "They are close to a Neoverse N1, but not measured on one, and can be changed. The kernel is not sampled; "
        "with\n"
        "--system all exception levels are, and the program's writes to the unit's registers take effect.\n"
        "PATH.truth.txt contains sums of the real execution.\n"
        "\n"
        "--unit dpu writes the folder of a StarCore Debug and Profiling Unit for 'waymark dpu', info, packets and "
        "flow.\n"
        "Instructions, branches, accesses and system calls are real; one virtual core runs the threads. Each thread "
        "is\n"
        "a task with an ID; a system call is a period in supervisor state. Cycles, stalls and caches are MODELLED, "
        "with the\n"
        "parameters that --core-help lists. DIR/truth.txt contains what really executed. Programs that include "
        "waymark_dpu.h "
        "can\n"
        "write to DP_TD. Words of the trace have layout WL-1: flags, entries and event sets as Waymark defines them, "
        "for\n"
        "the published description of the unit omits them.\n"
        "\n"
        "Exit status: 0 recorded (the program's own status is printed, not passed on); 1 nothing recorded, or all of "
        "the\nrun, for --stop-at was never reached, or the trigger of --stop-after-trigger never came, or came too "
        "late "
        "to stop\nthe trace buffer; 2 usage;\n"
        "3 the program or QEMU cannot be started, or the output cannot be created; 4 a signal ended the "
        "program;\n"
        "5 interrupted by SIGINT, SIGTERM or SIGHUP; 6 something could not be written, such as on a full disk,\n"
        "code changed more than --max-changes times, or execution ran into empty memory.\n"
        "After 4, 5 and 6 the capture can still be decoded.\n"
        "\n"
        "Examples:\n"
        "  waymark record -o out -- ./program --its-option\n"
        "  waymark record --core cortex-a9 --cycle-accurate --timestamps --limit 1000000 -o out -- "
        "./program\n"
        "  waymark flow out --format calls\n"
        "  waymark record --truth -o out -- ./program && waymark verify out\n"
        "  waymark record --sink tmc-etr:65536 --trigger-at fault --stop-after-trigger 4096 -o out -- ./program\n"
        "  waymark record --system --context-id 4 -o out -- firmware-for-aarch64.elf\n"
        "  waymark record --system --core cortex-a9 -o out -- firmware.elf\n"
        "  waymark record --unit spe --system -o perf.data -- firmware-for-aarch64.elf\n"
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
    options->cortex_m.add_to(command, options->cortex_m_only);
    return [options] { return run_record(*options); };
}

}  // namespace waymark::cli
