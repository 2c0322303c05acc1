/// `waymark record`: runs a program and writes the trace that a unit would have given.
#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
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
#include "trouble.h"
#include "unit_program.h"
#include "waymark/command_line/status_line.h"
#include "waymark/core/quote.h"
#include "waymark/image/symbols.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/recording_texts.h"
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
    std::vector<Option> flow_only, spe_only, dpu_only,
        cortex_m_only;                       ///< options that are valid for some units only
    Option buffer_option, registers_option;  ///< all but spe
    std::uint64_t after_trigger = 0;
    Option after_option;
    bool scatter_list = false;
};

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
        for (const Option& option : *only) {
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
    for (const Option& option : {options.buffer_option, options.registers_option})
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
        auto sink =
            record::read_sink(options.perf.to.sink,
                              options.after_option->count() == 0 ? std::nullopt : std::optional(options.after_trigger),
                              options.scatter_list);
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

Run add_record(const Command& app) {
    auto options = std::make_shared<RecordOptions>();
    record::FlowRecording& flow = options->flow;
    const Command command = app.add("record");
    command.option("--output", flow.folder);
    command.option("PROGRAM", flow.program);
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
    const auto flow_only = [&](const Option& option) {
        options->flow_only.push_back(option);
        return option;
    };
    const auto unit = [&](const Option& option) {
        flow_only(option)->group(fmt::format("--unit {}: how the unit is programmed", pipeline::flow_unit_names()));
    };
    for (const Option& option : add_unit_program(command, flow)) unit(option);
    unit(command.option("--fifo", flow.unit.fifo_bytes));
    unit(command.option("--drain", flow.unit.drain_cycles));
    unit(command.option("--speculation", flow.unit.speculation_depth));
    unit(command.option("--speculation-seed", flow.unit.seed));
    options->registers_option = command.option("--registers", flow.registers);
    options->buffer_option = command.option("--buffer", flow.buffer);
    const auto signal = [&](const char* name, std::vector<std::string>& values, const char* help, const char* type) {
        flow_only(command.add_option(name, values, help)->type_name(type)->repeated())
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
    const auto way = [&](const Option& option) { flow_only(option)->group("The way of the trace"); };
    way(command.option("--sink", options->perf.to.sink));
    options->after_option = command.option("--stop-after-trigger", options->after_trigger);
    way(options->after_option);
    way(command.flag("--scatter-list", options->scatter_list));
    way(command.option("--sink-registers", flow.sink_registers));
    unit(command.flag("--truth", flow.truth));
    unit(command.flag("--blocks", flow.blocks));
    command.option("--limit", flow.limit);
    unit(command.option("--start-at", flow.start_at));
    command.flag("--from-start", options->from_start)->excludes(command.get_option("--start-at"));
    unit(command.option("--stop-at", flow.stop_at));
    command.option("--sysroot", flow.sysroot);
    unit(command.option("--max-changes", flow.changes));
    const auto system = [&](const Option& option) { flow_only(option)->group("A whole system"); };
    system(command.flag("--system", flow.system));
    system(command.option("--machine", flow.machine));
    system(command.option("--smp", flow.processors)->check(range(1, 32)));
    system(command.option("--vectors", flow.vectors));
    command.option("--qemu", flow.qemu_options);
    command.flag("--force", flow.force);
    command.flag("--quiet", options->quiet);
    options->perf.add_to(command);
    options->flow_only.push_back(options->perf.as_option);
    for (const Option& option : options->perf.only) options->flow_only.push_back(option);
    options->spe.add_to(command, options->spe_only);
    options->dpu.add_to(command, options->dpu_only);
    options->cortex_m.add_to(command, options->cortex_m_only);
    return [options] { return run_record(*options); };
}

}  // namespace waymark::cli
