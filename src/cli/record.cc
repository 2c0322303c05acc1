/// `waymark record`: runs a program and writes the trace a unit would have given.
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "commands.h"
#include "options.h"
#include "waymark/core/wire.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"
#include "waymark/record/qemu.h"
#include "waymark/record/recorder.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;

/// Beside the statuses of every command.
enum RecordStatus : int {
    program_died = 4,  ///< by a signal
    interrupted = 5,   ///< we were told to end
    cut_off = 6,       ///< something could not be written
};

struct RecordOptions {
    std::string unit = "ptm", folder, sysroot, start_at, stop_at;
    record::PtmOptions ptm;
    bool truth = false, blocks = false, quiet = false, system = false;
    std::uint64_t limit = 0;
    std::vector<std::string> program;
};

/// ELF type ET_DYN, with which position-independent programs are marked.
bool is_position_independent(const std::string& program) {
    std::ifstream in(program, std::ios::binary);
    std::array<char, 18> head{};
    in.read(head.data(), head.size());
    return in && head[16] == 3 && head[17] == 0;
}

Result<Address> place(const std::string& text, const char* option, const std::string& program) {
    std::uint64_t value = 0;
    if (wire::scan_number(text, value)) return Address{value & ~std::uint64_t{1}};
    if (is_position_independent(program))
        return Error{
            Errc::usage,
            fmt::format("--{} {}: {} is position-independent, so where its symbols come to stand is not known "
                        "before it runs; give an address (0x…), which a first recording shows, or link it with "
                        "-no-pie",
                        option, text, program)};
    image::Symbols symbols;
    WM_ASSIGN_OR_RETURN(const std::size_t taken, symbols.add_elf(program));
    if (const auto found = symbols.address_of(text)) return *found;
    return Error{Errc::usage, fmt::format("--{} {}: {} has no such symbol{}; an address (0x…) does as well", option,
                                          text, program, taken == 0 ? " (it has none at all)" : "")};
}

/// Arm's own programs only, and a message that helps otherwise.
waymark::Status check_program(const std::string& program) {
    image::MemoryMap map;
    const auto added = map.add_elf(program);
    if (!added) return added.error();
    return Nothing{};
}

std::string signal_name(int number) {
    const char* const name = sigabbrev_np(number);
    return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

Status run_record(const RecordOptions& options) {
    if (options.system)
        return fail(
            {Errc::usage, "--system (bare-metal images under qemu-system-arm) is not offered yet; Linux programs are"});
    if (options.program.empty())
        return fail({Errc::usage, "no program given: waymark record -o DIR -- PROGRAM [ARGS…]"});
    if (const auto status = record::check(options.ptm); !status) return fail(status.error());
    const std::string& program = options.program.front();
    if (const auto status = check_program(program); !status) return fail(status.error());
    const auto qemu = record::find_qemu("qemu-arm", "qemu-user");
    if (!qemu) return fail(qemu.error());
    const auto plugin = record::find_plugin();
    if (!plugin) return fail(plugin.error());

    record::RecorderOptions to;
    to.folder = options.folder;
    to.description = program;
    for (std::size_t i = 1; i < options.program.size(); ++i) to.description += " " + options.program[i];
    to.description = "recorded under QEMU: " + to.description;
    to.ptm = options.ptm;
    to.truth_ranges = options.truth;
    to.limit_instructions = options.limit;
    for (const auto& [text, option, address] :
         {std::tuple{&options.start_at, "start-at", &to.start_at}, {&options.stop_at, "stop-at", &to.stop_at}}) {
        if (text->empty()) continue;
        const auto found = place(*text, option, program);
        if (!found) return fail(found.error());
        *address = *found;
    }
    auto recorder = record::Recorder::create(std::move(to));
    if (!recorder) return fail(recorder.error());

    record::QemuOptions how{*qemu, *plugin, {}, options.program, !options.blocks};
    std::string sysroot = options.sysroot;
    constexpr const char* cross_libraries = "/usr/arm-linux-gnueabihf";
    if (sysroot.empty() && std::getenv("QEMU_LD_PREFIX") == nullptr && fs::exists(cross_libraries))
        sysroot = cross_libraries;
    if (!sysroot.empty()) how.qemu_arguments = {"-L", sysroot};

    // A write beyond a limit of the file size then fails and is told as any other.
    std::signal(SIGXFSZ, SIG_IGN);
    ProgressLine progress;
    const auto ending =
        record::run_qemu(how, **recorder,
                         progress.active() ? record::RecordProgress([&](const record::Recorded& r) {
                             progress.text(fmt::format("recorded {} instructions, {} bytes of trace",
                                                       grouped(r.instructions), grouped(r.trace_bytes)));
                         })
                                           : nullptr);
    const bool whole = ending && !ending->killed;
    const auto finished = (*recorder)->finish(whole);
    const record::Recorded r = (*recorder)->recorded();
    if (!ending) return fail(ending.error());
    if (!options.quiet)
        say("note", fmt::format("{}: {} instructions in {} ranges, {} thread{}, {} bytes of trace, {} bytes of code{}",
                                options.folder, grouped(r.instructions), grouped(r.ranges), r.threads,
                                r.threads == 1 ? "" : "s", grouped(r.trace_bytes), grouped(r.code_bytes),
                                r.epochs == 1 ? ""
                                              : fmt::format(", in {} buffers since code changed {} time{}", r.epochs,
                                                            r.code_changes, r.code_changes == 1 ? "" : "s")));
    if (!finished) {
        say("error", finished.error().message + "; the program was ended, what was written before can be decoded");
        return static_cast<Status>(cut_off);
    }
    if (!r.began) {
        say("error", fmt::format("nothing recorded: execution never reached --start-at {}", options.start_at));
        return nothing;
    }
    if (r.instructions == 0) {
        say("error", "nothing recorded: the program executed nothing");
        return nothing;
    }
    if (ending->interrupt) {
        say("note",
            fmt::format("interrupted by {}; everything up to there is recorded", signal_name(*ending->interrupt)));
        return static_cast<Status>(interrupted);
    }
    if (ending->kind == record::Ending::Kind::signalled) {
        say("note",
            fmt::format("the program was ended by {}; everything up to there is recorded", signal_name(ending->code)));
        return static_cast<Status>(program_died);
    }
    if (ending->code != 0 && !options.quiet) say("note", fmt::format("the program exited with {}", ending->code));
    return decoded;
}

}  // namespace

Run add_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    CLI::App& command =
        *app.add_subcommand("record", "Run an Arm program under QEMU and write the trace a unit would give");
    command.add_option("-o,--output", options->folder, "Folder for the capture: new, empty, or an earlier recording")
        ->type_name("DIR")
        ->required();
    command.add_option("PROGRAM", options->program, "The program and its arguments, after --")->required();
    command.add_option("--unit", options->unit, "The trace unit: ptm, a Program Trace Macrocell")
        ->check(CLI::IsMember({"ptm"}))
        ->capture_default_str();
    command.add_option("--core", options->ptm.core, "cortex-a9 (PFT v1.0) or cortex-a15 (PFT v1.1)")
        ->check(CLI::IsMember({"cortex-a9", "cortex-a15"}))
        ->capture_default_str();
    const auto unit = [&](CLI::Option* option) { option->group("How the unit is programmed"); };
    unit(command.add_flag("--cycle-accurate", options->ptm.cycle_accurate,
                          "Cycle counts: one cycle an instruction, since QEMU knows no others"));
    unit(command.add_flag("--timestamps", options->ptm.timestamps, "Timestamps; they count these cycles"));
    unit(command.add_flag("--return-stack", options->ptm.return_stack,
                          "Returns to where a call came from need no address"));
    unit(command.add_flag("--branch-broadcast", options->ptm.branch_broadcast, "Addresses of direct branches too"));
    unit(command
             .add_option("--context-id", options->ptm.context_id_bytes,
                         "Trace the Context ID with so many bytes: 0, 1, 2 or 4; it is the number of the thread")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command
             .add_option("--sync", options->ptm.sync_bytes,
                         "Trace bytes between periodic synchronisations (ETMSYNCFR), up to 4095; 0: none")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command
             .add_option("--fifo", options->ptm.fifo_bytes,
                         "Size of the FIFO; when it is full, trace is lost as on hardware. 0: it never fills")
             ->type_name("BYTES")
             ->capture_default_str());
    unit(command.add_option("--drain", options->ptm.drain_cycles, "Four bytes leave the FIFO in so many cycles")
             ->type_name("CYCLES")
             ->capture_default_str());
    command.add_flag("--truth", options->truth,
                     "Write every executed range too, so that 'waymark verify' can show the first difference. Sums and "
                     "a hash are always written");
    command.add_flag(
        "--blocks", options->blocks,
        "One callback a block instead of exact ones: less work for QEMU, though the recorder usually sets the "
        "pace. Given up: a block that a fault ends early is recorded as if it had run to its end, and the fault "
        "as if it came behind it");
    command.add_option("--limit", options->limit, "Stop recording after so many instructions; the program runs on")
        ->type_name("N");
    command.add_option("--start-at", options->start_at, "Begin when execution first reaches this symbol or address")
        ->type_name("SYMBOL");
    command
        .add_option("--stop-at", options->stop_at,
                    "Stop when execution reaches this symbol or address; the program runs on")
        ->type_name("SYMBOL");
    command
        .add_option("--sysroot", options->sysroot,
                    "Where the program's dynamic linker and libraries are (QEMU's -L). Default: "
                    "/usr/arm-linux-gnueabihf if there, else QEMU's own")
        ->type_name("DIR");
    command.add_flag("--system", options->system, "Bare-metal images under qemu-system-arm: not offered yet");
    command.add_flag("-q,--quiet", options->quiet, "Say nothing when all went well");
    command.footer(
        "The capture is a snapshot folder with the executed code in it: every other command reads it as it stands, "
        "also\n"
        "while it is being written. Each thread is a source. The kernel is not traced: a system call shows as its\n"
        "exception, and trace goes on behind it with an I-sync. Changed code begins a new buffer with its own memory.\n"
        "\n"
        "Exit status: 0 recorded (the program's own status is told, not passed on); 1 nothing recorded; 2 usage;\n"
        "3 the program or QEMU cannot be started, or the folder not be made; 4 the program was ended by a signal;\n"
        "5 interrupted by SIGINT, SIGTERM or SIGHUP; 6 something could not be written, such as on a full disk.\n"
        "After 4, 5 and 6 too the capture can be decoded.\n"
        "\n"
        "Examples:\n"
        "  waymark record -o out -- ./program --its-option\n"
        "  waymark record --core cortex-a9 --cycle-accurate --timestamps --start-at main --limit 1000000 -o out -- "
        "./program\n"
        "  waymark flow out --symbols ./program --format calls\n"
        "  waymark record --truth -o out -- ./program && waymark verify out\n"
        "\n"
        "  waymark record --fifo 64 --drain 8 --cycle-accurate -o out -- ./program    loses trace as a full FIFO "
        "does\n");
    return [options] { return run_record(*options); };
}

}  // namespace waymark::cli
