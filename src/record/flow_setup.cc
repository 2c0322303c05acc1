#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "waymark/core/quote.h"
#include "waymark/core/wire.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"
#include "waymark/record/a64_system.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/system_program.h"
#include "waymark/record/vectors.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

/// Reads the file of such an option.
Status read_registers(const std::string& option, const std::string& path, std::string_view example,
                      std::vector<flow::RegisterSetting>& out) {
    std::ifstream in(path, std::ios::binary);
    std::error_code none;
    if (!in || fs::is_directory(path, none))
        return Error{Errc::unreadable, fmt::format("{} {}: cannot be read; name a text file with lines such as '{}'",
                                                   option, path, example)};
    std::string text;
    constexpr std::size_t most = 1 << 20;
    text.resize(most);
    in.read(text.data(), static_cast<std::streamsize>(most));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() == most)
        return Error{Errc::bad_format, fmt::format("{}: is not a file of registers: too large", path)};
    WM_ASSIGN_OR_RETURN(out, flow::read_register_settings(text, path));
    if (out.empty())
        return Error{Errc::bad_format,
                     fmt::format("{}: sets no register; expected lines NAME VALUE, as in '{}'", path, example)};
    return Nothing{};
}

/// Accepts only programs for Arm, with a helpful message otherwise.
Status read_program(const FlowRecording& options, image::MemoryMap& map) {
    const std::string& program = options.program.front();
    if (kind_of(program).aarch64 && !options.units->traces_aarch64())
        return Error{
            Errc::unsupported,
            fmt::format("{} is an AArch64 program; --unit {} traces only AArch32 cores and takes a 32-bit program "
                        "(arm-linux-gnueabihf-gcc); --unit {} records this one",
                        program, options.unit_name, options.aarch64_units)};
    std::string begins(2, '\0');
    std::ifstream(program, std::ios::binary).read(begins.data(), static_cast<std::streamsize>(begins.size()));
    if (begins == "#!")
        return Error{Errc::bad_format,
                     fmt::format("{} is a script, which QEMU cannot run; name the Arm program that interprets it, and "
                                 "give it the script: waymark record -o DIR -- INTERPRETER {}",
                                 program, shell_file(program))};
    const auto added = map.add_elf(program);
    if (!added) return added.error();
    return Nothing{};
}

/// Refuses options that are valid only for the other way of running a program.
Status check_way(const FlowRecording& options) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (options.system) {
        const bool aarch64 = kind_of(options.program.front()).aarch64;
        if (!aarch64 && options.units->traces_aarch64())
            return wrong(
                fmt::format("--system --unit {} takes an AArch64 image, and {} is none; a 32-bit one is recorded with "
                            "--unit ptm, under qemu-system-arm",
                            options.unit_name, options.program.front()));
        if (aarch64) WM_RETURN_IF_ERROR(check_a64_log(options.qemu_options));
        if (aarch64 && !options.vectors.empty())
            return wrong("--vectors is for 32-bit images; for AArch64, QEMU's log shows every exception anyway");
        if (!options.sysroot.empty())
            return wrong("--sysroot is for Linux programs; with --system there are no libraries");
        if (!aarch64 && options.unit.context_id_bytes != 0)
            return wrong(
                "--context-id cannot be used with --system and a 32-bit image: QEMU does not show the recorder what "
                "the program writes to CONTEXTIDR");
        if (!aarch64 && options.unit.vmid)
            return wrong("--vmid is for AArch64 images; VMIDs of a 32-bit hypervisor are not recorded");
        const bool counted = std::any_of(options.qemu_options.begin(), options.qemu_options.end(),
                                         [](const std::string& o) { return o == "-icount" || o == "--icount"; });
        if (counted && options.blocks)
            return wrong(
                "--blocks cannot be used with -icount: QEMU then leaves blocks in front of every access to a "
                "device, which only exact recording notices");
        return Nothing{};
    }
    for (const auto& [given, name] : {std::pair{!options.machine.empty(), "--machine"},
                                      {options.unit.vmid, "--vmid"},
                                      {options.processors != 1, "--smp"},
                                      {!options.vectors.empty(), "--vectors"}})
        if (given) return wrong(fmt::format("{} is only for --system", name));
    return Nothing{};
}

/// Checks the requested sink.
Status check_sink(const FlowRecording& options) {
    if (!options.sink) {
        if (options.sink_registers.empty()) return Nothing{};
        return Error{Errc::usage, "--sink-registers is only for --sink, as in --sink tmc-etb --sink-registers FILE"};
    }
    WM_RETURN_IF_ERROR(options.sink->check());
    if (options.buffer != 0)
        return Error{Errc::usage,
                     "--buffer cannot be used with --sink, which has a size of its own: --sink KIND:BYTES"};
    if (options.sink->after_trigger() && options.trigger_at.empty() && options.registers.empty())
        return Error{Errc::usage,
                     "--stop-after-trigger: nothing is a trigger; add --trigger-at SYMBOL, or --registers with the "
                     "unit's trigger event"};
    return Nothing{};
}

/// Sets the signals in a text such as `NIDEN=0,SPNIDEN=1`.
Status read_authentication(const std::string& text, SignalChange& out) {
    for (std::size_t at = 0; at <= text.size();) {
        const std::string one = text.substr(at, text.find(',', at) - at);
        at += one.size() + 1;
        const std::size_t equals = one.find('=');
        std::string name = one.substr(0, equals);
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
        std::optional<bool>* const signal = name == "NIDEN"     ? &out.niden
                                            : name == "DBGEN"   ? &out.dbgen
                                            : name == "SPNIDEN" ? &out.spniden
                                            : name == "SPIDEN"  ? &out.spiden
                                                                : nullptr;
        const std::string value = equals == one.npos ? std::string() : one.substr(equals + 1);
        if (signal == nullptr || (value != "0" && value != "1"))
            return Error{Errc::usage,
                         fmt::format("--authentication {}: expected NIDEN, DBGEN, SPNIDEN or SPIDEN with =0 "
                                     "or =1 and commas between, as in NIDEN=0,SPNIDEN=0",
                                     text)};
        if (*signal)
            return Error{Errc::usage, fmt::format("--authentication {}: {} is given twice; give it once", text, name)};
        *signal = value == "1";
    }
    return Nothing{};
}

/// The signals that two changes have in common: `NIDEN`, `the power`; empty if there are none.
std::string same_signal(const SignalChange& a, const SignalChange& b) {
    if (a.of != b.of) return {};
    if (a.of == SignalChange::Of::power) return "the power";
    if (a.of == SignalChange::Of::os_lock) return "the OS Lock";
    for (const auto& [name, both] : {std::pair{"NIDEN", a.niden && b.niden},
                                     {"DBGEN", a.dbgen && b.dbgen},
                                     {"SPNIDEN", a.spniden && b.spniden},
                                     {"SPIDEN", a.spiden && b.spiden}})
        if (both) return name;
    return {};
}

/// The signals that change, in the order of the options.
Result<std::vector<SignalChange>> signal_changes(const FlowRecording& options) {
    std::vector<SignalChange> out;
    const flow::MakesUnitSignals* const makes = flow::with_signals(*options.units);
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    const auto lacks = [&](std::string_view option, std::string_view what) {
        return wrong(fmt::format("{}: the unit of --unit {} {}", option, options.unit_name, what));
    };
    for (const auto& [texts, option, of] :
         {std::tuple{&options.authentication, "authentication", SignalChange::Of::authentication},
          {&options.unit_power, "unit-power", SignalChange::Of::power},
          {&options.os_lock, "os-lock", SignalChange::Of::os_lock}})
        for (const std::string& text : *texts) {
            WM_CHECK(makes != nullptr);  // each unit of a recording has them
            const flow::MakesUnitSignals::Signals has = makes->signals(options.unit);
            SignalChange& change = out.emplace_back();
            change.of = of;
            change.option = fmt::format("--{} {}", option, text);
            const std::size_t mark = text.find('@');
            const std::string what = text.substr(0, mark);
            if (of == SignalChange::Of::authentication) {
                WM_RETURN_IF_ERROR(read_authentication(what, change));
                if (!has.non_secure && (change.niden || change.dbgen))
                    return lacks(
                        "--authentication",
                        fmt::format("always traces Non-secure state, so NIDEN and DBGEN change nothing; SPNIDEN and "
                                    "SPIDEN are for Secure state; {} obeys NIDEN",
                                    options.niden_units));
            } else {
                if ((what != "on" && what != "off") || mark == text.npos)
                    return wrong(fmt::format("--{} {}: expected on or off and where, as in off@SYMBOL", option, text));
                change.on = what == "on";
                if (of == SignalChange::Of::os_lock && !has.os_lock) return lacks("--os-lock", "has no OS Lock");
            }
            // If two changes were at one place, the second would replace the first.
            const auto place = [](const std::string& of_option) {
                const std::size_t at = of_option.find('@');
                return at == of_option.npos ? std::string() : of_option.substr(at);
            };
            for (const SignalChange& other : std::span(out).first(out.size() - 1))
                if (const std::string both = same_signal(change, other);
                    !both.empty() && place(other.option) == place(change.option))
                    return wrong(fmt::format("{} and {}: both set {} {}; give one of them", other.option, change.option,
                                             both, mark == text.npos ? "from the beginning" : "at the same place"));
            if (mark == text.npos) continue;
            if (mark + 1 == text.size())
                return wrong(fmt::format("{}: no symbol or address follows @{}", change.option,
                                         of == SignalChange::Of::authentication
                                             ? "; leave the @ out for a signal that has this level from the beginning"
                                             : ", as in off@SYMBOL"));
            WM_ASSIGN_OR_RETURN(change.at,
                                code_place(text.substr(mark + 1), option, options.program.front(), options.system));
        }
    if (!out.empty() && options.unit.fifo_bytes != 0)
        return wrong(
            "--fifo cannot be used with --authentication, --unit-power and --os-lock: what a full FIFO lost could not "
            "be distinguished from what was not permitted");
    return out;
}

/// The image, and how QEMU runs it.
SystemProgram system_program(const FlowRecording& options) {
    // QEMU has no core with an ETE; its "max" has the features of an Armv9-A core.
    const std::string& core = options.unit.core;
    return {.command = options.program,
            .machine = options.machine_name(),
            .cpu = core == "armv9-a" ? "max" : core,
            .processors = options.processors,
            .aarch64 = options.units->traces_aarch64(),
            .qemu_options = options.qemu_options};
}

/// The ranges that the unit's comparators watch. Errors: `usage`: the unit cannot be programmed like this.
Result<std::vector<PlacedRange>> placed_ranges(const FlowRecording& options, const flow::UnitOptions& unit) {
    std::vector<PlacedRange> ranges;
    for (const bool exclude : {false, true})
        for (const std::string& text : exclude ? options.exclude_ranges : options.view_ranges) {
            WM_ASSIGN_OR_RETURN(PlacedRange range, code_range(text, exclude ? "exclude-range" : "view-range",
                                                              options.program.front(), options.system));
            range.exclude = exclude;
            ranges.push_back(std::move(range));
        }
    // One comparator for each range; the addresses do not matter here.
    flow::UnitOptions with_ranges = unit;
    for (const PlacedRange& range : ranges)
        (range.exclude ? with_ranges.exclude : with_ranges.view).push_back({{0x1000}, {0x1004}});
    if (!options.trigger_at.empty()) with_ranges.trigger_at = Address{0x1000};
    WM_RETURN_IF_ERROR(options.units->check(with_ranges));
    if (with_ranges.programmed() && unit.fifo_bytes != 0)
        return Error{
            Errc::usage,
            "--fifo cannot be used with --registers, --view-range, --exclude-range, --trigger-at and "
            "--cycle-threshold: what a full FIFO lost could not be distinguished from what was not to be traced"};
    return ranges;
}

/// Converts the options, with their places, to options of the recorder.
Result<RecorderOptions> recorder_options(const FlowRecording& options, bool aarch64) {
    const std::string& program = options.program.front();
    RecorderOptions to;
    to.folder = options.folder;
    to.description = program;
    for (std::size_t i = 1; i < options.program.size(); ++i) to.description += " " + options.program[i];
    to.description = "recorded under QEMU: " + to.description;
    to.units = options.units;
    // Only the first thread runs main.
    to.start_of_first_thread = !options.system && options.start_at == "main";
    to.truth_ranges = options.truth;
    to.limit_instructions = options.limit;
    to.buffer_bytes = options.buffer;
    to.sink = options.sink;
    if (!options.sink_registers.empty()) {
        WM_RETURN_IF_ERROR(
            read_registers("--sink-registers", options.sink_registers, "FUNCTL 0x300", to.sink->registers));
        WM_RETURN_IF_ERROR(to.sink->check());
    }
    to.limit_changes = options.changes;
    to.aarch64 = aarch64;
    to.system = options.system;
    if (options.system) to.system_image = program;
    if (options.system) to.reset = kind_of(program).entry;
    to.force = options.force;
    auto symbols = std::make_shared<image::Symbols>();
    if (!aarch64 && !kind_of(program).position_independent && symbols->add_elf(program))
        to.instruction_set = [symbols](Address address) -> std::optional<isa::Isa> {
            const auto contents = symbols->contents(address);
            return contents ? image::instruction_set(*contents) : std::nullopt;
        };
    for (const auto& [text, option, place] : {std::tuple{&options.start_at, "start-at", &to.start_at},
                                              {&options.stop_at, "stop-at", &to.stop_at},
                                              {&options.trigger_at, "trigger-at", &to.trigger_at}}) {
        if (text->empty()) continue;
        WM_ASSIGN_OR_RETURN(*place, code_place(*text, option, program, options.system));
    }
    return to;
}

/// Address ranges for which QEMU's log should show how execution came there.
Result<std::vector<std::pair<Address, Address>>> watched_places(const FlowRecording& options, bool aarch64,
                                                                const image::MemoryMap& memory) {
    const std::string& program = options.program.front();
    std::vector<std::pair<Address, Address>> out;
    if (aarch64) {
        out = after_register_writes(memory, {.vmid = options.unit.vmid});
    } else {
        std::vector<Address> tables = vector_tables(memory);
        for (const std::string& text : options.vectors) {
            WM_ASSIGN_OR_RETURN(const Address table, address_of(text, "vectors", program));
            tables.push_back(table);
        }
        for (const Address table : tables) out.emplace_back(table, table + vector_table_bytes);
    }
    const Address entry = kind_of(program).entry;
    out.emplace_back(entry, entry + 4);
    return out;
}

}  // namespace

void send_trigger_on_bus(flow::UnitOptions& unit, const flow::UnitFactory& units, std::string option) {
    if (units.traces_aarch64()) unit.registers.push_back({"TRCEVENTCTL1R", "ATB", 1, std::move(option)});
}

std::string FlowRecording::machine_name() const {
    if (!machine.empty()) return machine;
    if (units->traces_aarch64()) return a64_board;
    return unit.core == "cortex-a9" ? "vexpress-a9" : "vexpress-a15";
}

Result<flow::UnitOptions> placed_unit(const FlowRecording& options) {
    flow::UnitOptions unit = options.unit;
    if (!options.registers.empty())
        WM_RETURN_IF_ERROR(read_registers("--registers", options.registers, "TRCCCCTLR 0x100", unit.registers));
    const std::string program = options.program.empty() ? std::string() : options.program.front();
    if (!program.empty()) {
        image::MemoryMap map;
        WM_RETURN_IF_ERROR(read_program(options, map));
    }
    const auto place = [&](const std::string& text, const char* option) -> Result<Address> {
        std::uint64_t value = 0;
        if (program.empty() && !wire::scan_number(text, value))
            return Error{
                Errc::usage,
                fmt::format("--{} {}: name the PROGRAM that has this symbol, or give an address (0x…)", option, text)};
        return address_of(text, option, program);
    };
    for (const bool exclude : {false, true})
        for (const std::string& text : exclude ? options.exclude_ranges : options.view_ranges) {
            const char* const option = exclude ? "exclude-range" : "view-range";
            const std::size_t minus = text.find('-', 1);
            if (program.empty() || minus == text.npos) WM_RETURN_IF_ERROR(place(text.substr(0, minus), option));
            WM_ASSIGN_OR_RETURN(const PlacedRange range, code_range(text, option, program, true));
            const Address first = *range.first.address();
            (exclude ? unit.exclude : unit.view)
                .push_back({first, range.end ? *range.end->address() : Address{first.value + range.first.bytes()}});
        }
    if (!options.trigger_at.empty()) {
        WM_ASSIGN_OR_RETURN(unit.trigger_at, place(options.trigger_at, "trigger-at"));
    }
    return unit;
}

Result<FlowSetup> set_up(const FlowRecording& options) {
    const std::string& program = options.program.front();
    const bool aarch64 = kind_of(program).aarch64;
    flow::UnitOptions unit = options.unit;
    if (!options.registers.empty())
        WM_RETURN_IF_ERROR(read_registers("--registers", options.registers, "TRCCCCTLR 0x100", unit.registers));
    WM_RETURN_IF_ERROR(check_sink(options));
    if (options.sink && !options.trigger_at.empty()) send_trigger_on_bus(unit, *options.units, "--sink");
    WM_ASSIGN_OR_RETURN(std::vector<PlacedRange> ranges, placed_ranges(options, unit));
    WM_RETURN_IF_ERROR(check_way(options));
    image::MemoryMap memory;
    WM_RETURN_IF_ERROR(read_program(options, memory));
    WM_ASSIGN_OR_RETURN(const auto qemu,
                        options.system
                            ? find_qemu(aarch64 ? "qemu-system-aarch64" : "qemu-system-arm", "qemu-system-arm")
                            : find_qemu(aarch64 ? "qemu-aarch64" : "qemu-arm", "qemu-user"));
    WM_ASSIGN_OR_RETURN(const auto plugin, find_plugin());
    WM_ASSIGN_OR_RETURN(RecorderOptions to, recorder_options(options, aarch64));
    WM_ASSIGN_OR_RETURN(to.signals, signal_changes(options));
    to.unit = std::move(unit);
    to.ranges = std::move(ranges);
    QemuOptions how{
        .qemu = qemu, .plugin = plugin, .program = options.program, .aarch64 = aarch64, .exact = !options.blocks};
    if (options.system) {
        how.qemu_arguments = system_arguments(system_program(options));
        how.input = false;
        how.program = {program};
        WM_ASSIGN_OR_RETURN(how.watched, watched_places(options, aarch64, memory));
    } else {
        WM_RETURN_IF_ERROR(check_executable(program));
        const std::string folder =
            library_folder(options.sysroot, aarch64 ? "/usr/aarch64-linux-gnu" : "/usr/arm-linux-gnueabihf");
        if (!folder.empty()) how.qemu_arguments = {"-L", folder};
        // QEMU has only one log: if the user asks for it, the user gets it.
        how.signals = std::none_of(options.qemu_options.begin(), options.qemu_options.end(),
                                   [](const std::string& o) { return o == "-d" || o == "-D" || o == "-strace"; });
        how.qemu_arguments.insert(how.qemu_arguments.end(), options.qemu_options.begin(), options.qemu_options.end());
    }
    return FlowSetup{std::move(to), std::move(how)};
}

}  // namespace waymark::record
