#include "waymark/record_m/cortex_m.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <tuple>
#include <utility>

#include "etm_unit.h"
#include "itm_unit.h"
#include "mtb_unit.h"
#include "stm_unit.h"
#include "trace_output.h"
#include "unit.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/numbers.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"
#include "waymark/record/child.h"
#include "waymark/record/files.h"
#include "waymark/record/images.h"
#include "waymark/record/mapped_file.h"
#include "waymark/record/qemu.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/ring.h"
#include "waymark/record_m/core_log.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

constexpr const char* core_name = "core_0";
using Etm = CortexMRecording::Etm;
using Moment = std::chrono::steady_clock;

/// A machine of QEMU with a Cortex-M, by the architecture of its programs, and the ETM of its core.
struct Machine {
    const char *architecture, *name, *core;
    Etm etm;
};
constexpr std::array machines{Machine{"ARMv6-M", "microbit", "Cortex-M0", Etm::none},
                              Machine{"ARMv6S-M", "microbit", "Cortex-M0", Etm::none},
                              Machine{"ARMv7-M", "mps2-an385", "Cortex-M3", Etm::v3},
                              Machine{"ARMv7E-M", "mps2-an386", "Cortex-M4", Etm::v3},
                              Machine{"ARMv7E-M", "mps2-an500", "Cortex-M7", Etm::v4},
                              Machine{"ARMv8-M.base", "mps2-an505", "Cortex-M33", Etm::v4},
                              Machine{"ARMv8-M.main", "mps2-an505", "Cortex-M33", Etm::v4},
                              Machine{"ARMv8.1-M.main", "mps3-an547", "Cortex-M55", Etm::v4}};

/// The first machine for the architecture whose core has such an ETM; for Etm::none, with any ETM or none. `name`: only
/// the machine with this name, unless it is empty. Null: there is none.
const Machine* machine_for(const std::string& architecture, Etm etm, const std::string& name = {}) {
    const auto* const found = std::find_if(machines.begin(), machines.end(), [&](const Machine& machine) {
        return architecture == machine.architecture && (etm == Etm::none || etm == machine.etm) &&
               (name.empty() || name == machine.name);
    });
    return found == machines.end() ? nullptr : &*found;
}

Error usage(std::string message) { return {Errc::usage, std::move(message)}; }

Status check_units(const CortexMRecording& o) {
    if (o.mtb && (!std::has_single_bit(o.mtb_bytes) || o.mtb_bytes < least_mtb_bytes || o.mtb_bytes > most_mtb_bytes))
        return usage(fmt::format("--mtb-size {}: an MTB has a power of two of bytes, from {} to {}", o.mtb_bytes,
                                 least_mtb_bytes, most_mtb_bytes));
    if (o.mtb && o.mtb_watermark &&
        (*o.mtb_watermark % 8 != 0 || *o.mtb_watermark == 0 || *o.mtb_watermark > o.mtb_bytes))
        return usage(
            fmt::format("--mtb-watermark {}: the watermark is a multiple of 8, at most the size of the buffer ({})",
                        *o.mtb_watermark, o.mtb_bytes));
    if (o.itm && (o.ports % 4 != 0 || o.ports > 0xfffffc00))
        return usage(fmt::format(
            "--itm-ports {:#x}: the address is a multiple of 4, and 1,024 bytes must follow it below 2^32", o.ports));
    if (o.stm && (o.stm_ports % 256 != 0 || o.stm_ports > 0xff000000))
        return usage(fmt::format(
            "--stm-ports {:#x}: the address is a multiple of 256, and 16 MiB must follow it below 2^32", o.stm_ports));
    return Nothing{};
}

/// Resolves the variables of --watch.
Result<std::vector<WatchedBytes>> watched_variables(const CortexMRecording& o) {
    std::vector<WatchedBytes> out;
    if (o.watch.size() > most_watched_variables)
        return usage(
            fmt::format("--watch: {} variables; a DWT has {} comparators", o.watch.size(), most_watched_variables));
    image::Symbols symbols;
    WM_RETURN_IF_ERROR(symbols.add_elf(o.program.front()));
    const std::vector<image::Symbol> all = symbols.all();
    for (const std::string& name : o.watch) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const image::Symbol& s) {
            return s.kind == image::SymbolKind::object && (s.name == name || s.linkage_name == name);
        });
        if (found == all.end())
            return usage(
                fmt::format("--watch {}: {} has no variable of that name; nm lists them", name, o.program.front()));
        if (found->bytes == 0)
            return usage(fmt::format("--watch {}: the symbol has no size, so the bytes to watch are not known", name));
        out.push_back(
            {name, static_cast<std::uint32_t>(found->address.value), static_cast<std::uint32_t>(found->bytes)});
    }
    return out;
}

/// A pipe into which QEMU writes its log.
class LogPipe {
public:
    static Result<std::unique_ptr<LogPipe>> create() {
        std::array<int, 2> ends{-1, -1};
        // The program inherits the write end.
        if (pipe(ends.data()) != 0)
            return Error{Errc::unreadable,
                         fmt::format("cannot create a pipe for QEMU's log: {}", std::strerror(errno))};
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        return std::unique_ptr<LogPipe>(new LogPipe(ends));
    }
    ~LogPipe() {
        close(ends_[0]);
        close_writer();
    }
    LogPipe(const LogPipe&) = delete;
    LogPipe& operator=(const LogPipe&) = delete;
    [[nodiscard]] std::string path() const { return fmt::format("/dev/fd/{}", ends_[1]); }
    void close_writer() {
        if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
    }
    /// Reads the available bytes, waiting at most a fifth of a second; false at the end.
    template <class F>
    bool read_some(F&& take) {
        pollfd one{ends_[0], POLLIN, 0};
        if (poll(&one, 1, 200) <= 0) return true;
        const ssize_t count = read(ends_[0], buffer_.data(), buffer_.size());
        if (count > 0) take(std::string_view(buffer_.data(), static_cast<std::size_t>(count)));
        return count > 0 || (count < 0 && errno == EINTR);
    }

private:
    explicit LogPipe(std::array<int, 2> ends) : ends_(ends) {}
    std::array<int, 2> ends_;
    std::vector<char> buffer_ = std::vector<char>(1 << 16);
};

/// Writes the folder of the recording, and drives the trace units.
class CortexMRecorder final : public CoreListener {
public:
    static Result<std::unique_ptr<CortexMRecorder>> create(const CortexMRecording& options) {
        std::unique_ptr<CortexMRecorder> out(new CortexMRecorder(options));
        WM_RETURN_IF_ERROR(out->find_places());
        WM_ASSIGN_OR_RETURN(std::vector<WatchedBytes> watched, watched_variables(options));
        WM_RETURN_IF_ERROR(out->open_folder());
        if (options.mtb) {
            WM_ASSIGN_OR_RETURN(auto unit, MtbUnit::create(options.folder, options.mtb_bytes, options.mtb_watermark));
            out->units_.push_back(std::move(unit));
        }
        // Trace IDs as probes usually number the units of a Cortex-M.
        constexpr coresight::TraceId itm_id{1}, etm_id{2}, stm_id{3};
        if (options.etm != Etm::none) {
            const bool v4 = options.etm == Etm::v4;
            WM_ASSIGN_OR_RETURN(const auto to, out->output_.add(v4 ? etm4_name : etm3_name, "ETB", etm_id));
            WM_ASSIGN_OR_RETURN(auto unit, EtmUnit::create(options.folder, v4, out->core(), to));
            out->units_.push_back(std::move(unit));
        }
        if (options.itm) {
            itm::ModelConfig config;
            config.timestamps = options.timestamps;
            config.sync_messages = 256;
            config.keep_truth = false;
            WM_ASSIGN_OR_RETURN(const auto to, out->output_.add(itm_name, "SWO", itm_id));
            out->units_.push_back(
                std::make_unique<ItmUnit>(to, config,
                                          ItmOptions{static_cast<std::uint32_t>(options.ports), options.sample_cycles,
                                                     options.exceptions, std::move(watched)}));
        }
        if (options.stm) {
            WM_ASSIGN_OR_RETURN(const auto to, out->output_.add(stm_name, "STM", stm_id));
            out->units_.push_back(std::make_unique<StmUnit>(to, static_cast<std::uint32_t>(options.stm_ports)));
        }
        out->show_program();
        if (!out->start_) out->enable(true);
        return out;
    }
    ~CortexMRecorder() override {
        if (aside_) take_recordings_back(options_.folder);
    }
    CortexMRecorder(const CortexMRecorder&) = delete;
    CortexMRecorder& operator=(const CortexMRecorder&) = delete;

    void instruction(const CoreInstruction& i, std::uint32_t next) override {
        if (!arrive(i.address)) return;
        ++cycle_;
        for (auto& unit : units_) unit->instruction(i, next, cycle_);
        see_limit();
    }
    void lost(const CoreInstruction& i) override {
        if (!arrive(i.address)) return;
        ++cycle_;
        ++lost_;
        for (auto& unit : units_) unit->lost(i, cycle_);
        see_limit();
    }
    void exception(std::uint32_t number, std::optional<std::uint32_t> back, std::uint32_t handler,
                   std::uint32_t vector) override {
        if (stopped_) return;
        vectors_ = vector - 4 * number;
        // The table may be in memory that the program filled.
        const std::uint32_t word = handler | 1U;
        std::array<std::uint8_t, 4> bytes{};
        for (unsigned n = 0; n < 4; ++n) bytes[n] = static_cast<std::uint8_t>(word >> 8 * n);
        if (images_.fits({vector}, bytes)) images_.add({vector}, bytes);
        if (!enabled_) return;
        ++exceptions_;
        for (auto& unit : units_) unit->exception(number, back, handler, cycle_);
    }
    void state(const CoreMode& state) override {
        for (auto& unit : units_) unit->state(state);
    }
    void handler_ended(std::uint32_t number) override {
        if (enabled_)
            for (auto& unit : units_) unit->handler_ended(number, cycle_);
    }
    void returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t resumed) override {
        if (enabled_)
            for (auto& unit : units_) unit->returned(exc_return, to, resumed, cycle_);
    }
    void code(std::uint32_t address, Bytes bytes) override {
        if (stopped_) return;
        if (images_.fits({address}, bytes)) {
            images_.add({address}, bytes);
            return;
        }
        changed_ = address;
        stop(fmt::format("where code at {:#x} that had executed changed", address));
    }

    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] std::string progress() const { return fmt::format("recorded {} instructions", grouped(cycle_)); }
    [[nodiscard]] Result<RecordOutcome> finish(const Ending& ending, const std::string& problem) {
        // An earlier recording is only replaced by one that contains something.
        if (!aside_ || records_something()) WM_RETURN_IF_ERROR(write(!ending.killed));
        return outcome(ending, problem);
    }

private:
    explicit CortexMRecorder(const CortexMRecording& options)
        : options_(options),
          images_(options.folder),
          output_(options.folder, options.etm != Etm::none && (options.itm || options.stm)) {}

    [[nodiscard]] bool records_something() const {
        return std::any_of(units_.begin(), units_.end(), [](const auto& unit) { return unit->any(); });
    }
    Status find_places() {
        const std::string& program = options_.program.front();
        WM_RETURN_IF_ERROR(memory_.add_elf(program));
        for (const auto& [text, option, place] :
             {std::tuple{&options_.start_at, "start-at", &start_}, {&options_.stop_at, "stop-at", &stop_}}) {
            if (text->empty()) continue;
            WM_ASSIGN_OR_RETURN(*place, address_of(*text, option, program));
        }
        return Nothing{};
    }

    Status open_folder() {
        const fs::path folder = options_.folder;
        const auto holds_recording = [&] {
            std::error_code none;
            return fs::exists(folder / truth_file, none) && fs::exists(folder / "snapshot.ini", none) &&
                   !fs::exists(folder / capture::dpu_ini, none);
        };
        WM_ASSIGN_OR_RETURN(lock_, lock_folder(folder, holds_recording, "a recording", options_.force));
        WM_ASSIGN_OR_RETURN(aside_, set_recordings_aside(folder));
        replaced_ = aside_;
        return Nothing{};
    }

    /// Shows memory from the program's file: for tables, and code that was not executed.
    void show_program() {
        for (const image::Region& region : memory_.regions()) {
            if (region.shadowed_by) continue;
            const std::uint64_t end = region.address.value + region.bytes;
            for (std::uint64_t page = region.address.value / page_bytes * page_bytes; page < end; page += page_bytes) {
                std::vector<std::uint8_t> bytes(page_bytes);
                const std::uint64_t first = std::max(page, region.address.value),
                                    last = std::min(page + page_bytes, end);
                if (isa::read(memory_, {}, {first}, std::span(bytes).subspan(first - page, last - first)) != 0)
                    images_.saw_page({page}, bytes);
            }
        }
    }

    void enable(bool on) {
        enabled_ = on;
        began_ = began_ || on;
        for (auto& unit : units_) unit->enable(on);
    }
    void stop(std::string where) {
        stopped_ = true;
        enabled_ = false;
        ends_ = std::move(where);
    }
    void see_limit() {
        if (options_.limit != 0 && cycle_ >= options_.limit)
            stop(fmt::format("after {} (--limit)", counted(options_.limit, "instruction")));
    }
    /// An instruction executes. Returns false if it is not recorded.
    bool arrive(std::uint32_t address) {
        if (stopped_) return false;
        if (start_ && !began_ && address == start_->value) enable(true);
        if (stop_ && enabled_ && address == stop_->value) {
            reached_stop_ = true;
            stop(fmt::format("where execution reached {} (--stop-at)", options_.stop_at));
        }
        return enabled_;
    }

    /// The type of the traced core, such as `Cortex-M33`.
    [[nodiscard]] std::string core() const {
        const std::string architecture = kind_of(options_.program.front()).architecture;
        const Machine* machine = machine_for(architecture, options_.etm, options_.machine);
        // Of a machine without a row here, the core is not known; its ETM shows which it may be.
        if (machine == nullptr) machine = machine_for(architecture, options_.etm);
        return machine == nullptr ? "Cortex-M" : machine->core;
    }
    Status write(bool complete) {
        const std::string& program = options_.program.front();
        WM_RETURN_IF_ERROR(images_.write());
        capture::Capture described;
        described.description = ini_text("recorded under QEMU: " + program);
        described.cores.push_back({.name = core_name, .type = core()});
        Truth truth;
        truth.complete = complete;
        for (auto& unit : units_) WM_RETURN_IF_ERROR(unit->finish(core_name, core(), vectors_, described, truth));
        WM_RETURN_IF_ERROR(output_.finish(described));
        // A snapshot can describe one source of a core. The first is the source of program flow, if there is one.
        for (std::size_t n = 1; n < described.sources.size(); ++n) described.sources[n].core.clear();
        described.dumps = images_.dumps(core_name);
        for (capture::Buffer& buffer : described.buffers) {
            if (start_) buffer.begins = fmt::format("where execution first reached {} (--start-at)", options_.start_at);
            buffer.ends = ends_;
        }
        map_program(described);
        WM_RETURN_IF_ERROR(capture::write_snapshot(described, options_.folder));
        const fs::path file = fs::path(options_.folder) / truth_file;
        if (!(std::ofstream(file, std::ios::binary) << to_text(truth)).flush()) return cannot("write", file);
        images_.remove_outdated();
        if (std::exchange(aside_, false)) forget_recordings_aside(options_.folder);
        return Nothing{};
    }

    /// Maps the program, so that its symbols name the code.
    void map_program(capture::Capture& described) const {
        std::error_code none;
        const std::string path = fs::absolute(options_.program.front(), none).string();
        const MappedFile file = read_mapped_file(path);
        described.modules.clock = capture::instructions_clock;
        for (const MappedFile::Part& part : file.executable)
            described.modules.modules.push_back({.address = {part.address},
                                                 .bytes = part.bytes,
                                                 .offset = part.offset,
                                                 .file = path,
                                                 .build_id = file.build_id});
    }

    RecordOutcome outcome(const Ending& ending, const std::string& problem) const {
        using Kind = RecordOutcome::Kind;
        RecordOutcome out;
        if (replaced_)
            out.summary(aside_ ? fmt::format("{}: the recording that was there is kept, because nothing was recorded",
                                             options_.folder)
                               : fmt::format("{}: replaced the previous recording", options_.folder));
        std::string units;
        for (const auto& unit : units_) units += ", " + unit->summary();
        out.summary(fmt::format("{}: {} instructions, {}{}, {} bytes of code", options_.folder, grouped(cycle_),
                                counted(exceptions_, "exception"), units, grouped(images_.bytes())));
        if (lost_ != 0)
            out.warning(fmt::format(
                "{} an interrupt came right after a branch whose target QEMU does not show; the trace has a gap there",
                counted(lost_, "time")));
        if (!problem.empty()) return out.failed(cycle_ == 0 ? Kind::nothing : Kind::cut_off, problem);
        if (changed_)
            return out.failed(
                Kind::cut_off,
                fmt::format(
                    "recording stopped: code at {:#x}, which had executed, changed; the run up to there is recorded",
                    *changed_));
        if (!began_)
            return out.failed(Kind::nothing, fmt::format("nothing recorded: execution never reached --start-at {}",
                                                         options_.start_at));
        if (out.ended_by_signal(ending)) return out;
        if (cycle_ == 0)
            return out.failed(Kind::nothing, fmt::format("nothing recorded: the program executed nothing; is it made "
                                                         "for the machine {}? --machine chooses another",
                                                         options_.machine));
        if (!records_something())
            return out.failed(Kind::nothing, "nothing recorded: nothing happened that the unit traces");
        if (ending.ended)
            out.summary("the recording was stopped as asked for, and QEMU ended");
        else
            out.say_status(ending);
        if (stop_ && !reached_stop_) {
            out.warning(fmt::format("--stop-at {}: execution never reached it; nothing stopped the recording",
                                    options_.stop_at));
            out.kind = Kind::nothing;
        }
        return out;
    }

    const CortexMRecording& options_;
    OutputLock lock_;
    bool aside_ = false, replaced_ = false;
    image::MemoryMap memory_;
    Images images_;
    TraceOutput output_;
    std::vector<std::unique_ptr<CoreUnit>> units_;
    std::optional<Address> start_, stop_;
    bool enabled_ = false, began_ = false, stopped_ = false, reached_stop_ = false;
    std::string ends_;
    std::optional<std::uint32_t> changed_;
    std::uint32_t vectors_ = 0;
    std::uint64_t cycle_ = 0, exceptions_ = 0, lost_ = 0;
};

std::vector<std::string> qemu_command(const CortexMRecording& o, const fs::path& qemu, const std::string& log) {
    std::vector<std::string> out{qemu.string(), "-M",   o.machine, "-display", "none",
                                 "-monitor",    "none", "-serial", "stdio",    "-semihosting-config"};
    std::string semihosting = "enable=on,target=native";
    for (const std::string& argument : o.program) {
        semihosting += ",arg=";
        for (const char c : argument) semihosting += c == ',' ? ",," : std::string(1, c);
    }
    out.push_back(semihosting);
    // One instruction takes a nanosecond of the machine's time, so that a program behaves the same in each run.
    out.insert(out.end(), {"-singlestep", "-icount", "shift=0", "-d", "exec,nochain,int,cpu,in_asm", "-D", log});
    out.insert(out.end(), o.qemu_options.begin(), o.qemu_options.end());
    out.insert(out.end(), {"-kernel", o.program.front()});
    return out;
}

Ending ending_of(int status) {
    Ending ending;
    if (WIFSIGNALED(status)) {
        ending.kind = Ending::Kind::signalled;
        ending.code = WTERMSIG(status);
    } else {
        ending.code = WEXITSTATUS(status);
    }
    return ending;
}

}  // namespace

std::string machine_of(const std::string& architecture) {
    const Machine* const machine = machine_for(architecture, CortexMRecording::Etm::none);
    return machine == nullptr ? "" : machine->name;
}

Result<RecordOutcome> record_cortex_m(const CortexMRecording& asked, const ShowRecording& show) {
    CortexMRecording options = asked;
    WM_RETURN_IF_ERROR(check_units(options));
    WM_ASSIGN_OR_RETURN(const image::ProgramKind kind, image::program_kind(options.program.front()));
    if (machine_of(kind.architecture).empty())
        return Error{Errc::unsupported,
                     fmt::format("{} was built for {}; --unit mtb, itm, stm, etmv3,itm and etmv4,itm take a program "
                                 "for a Cortex-M without an "
                                 "operating system (-mcpu=cortex-m33)",
                                 options.program.front(),
                                 kind.architecture.empty() ? "cores other than those it names" : kind.architecture)};
    const Machine* const machine = machine_for(kind.architecture, options.etm);
    if (machine == nullptr) {
        const bool v3 = options.etm == Etm::v3;
        const bool other = machine_for(kind.architecture, v3 ? Etm::v4 : Etm::v3) != nullptr;
        return usage(fmt::format(
            "--unit {}: {} was built for {}, whose recorded cores have none; a {}{}", v3 ? "etmv3" : "etmv4",
            options.program.front(), kind.architecture,
            v3 ? "Cortex-M3 or M4 has one (-mcpu=cortex-m3)" : "Cortex-M7, M33 or M55 has one (-mcpu=cortex-m33)",
            !other ? ""
            : v3   ? "; --unit etmv4 records this program"
                   : "; --unit etmv3 records this program"));
    }
    if (options.machine.empty()) options.machine = machine->name;
    if (const Machine* const asked_for = machine_for(kind.architecture, Etm::none, options.machine);
        asked_for != nullptr && options.etm != Etm::none && asked_for->etm != options.etm)
        return usage(
            fmt::format("--machine {}: its {} has no such ETM as --unit {} records; leave out --machine ({}), "
                        "or record --unit {}",
                        asked_for->name, asked_for->core, options.etm == Etm::v3 ? "etmv3" : "etmv4", machine->name,
                        options.etm == Etm::v3 ? "etmv4" : "etmv3"));
    WM_ASSIGN_OR_RETURN(const fs::path qemu, find_qemu("qemu-system-arm", "qemu-system-arm"));
    WM_ASSIGN_OR_RETURN(const auto recorder, CortexMRecorder::create(options));
    WM_ASSIGN_OR_RETURN(const auto pipe, LogPipe::create());
    CoreLog log(*recorder);
    SignalHandlers handlers;
    WM_ASSIGN_OR_RETURN(const pid_t pid, start_program(qemu_command(options, qemu, pipe->path()), false));
    handlers.pass_to(pid);
    pipe->close_writer();
    bool ended = false;
    auto shown = Moment::now();
    while (pipe->read_some([&](std::string_view text) {
        if (!recorder->stopped()) log.feed(text);
    })) {
        if ((recorder->stopped() || !log.problem().empty()) && !std::exchange(ended, true)) kill(pid, SIGTERM);
        const auto now = Moment::now();
        if (show && now - shown >= std::chrono::milliseconds(200)) {
            show(recorder->progress());
            shown = now;
        }
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    handlers.pass_to(0);
    Ending ending = ending_of(status);
    ending.process = static_cast<std::uint32_t>(pid);
    ending.ended = ended;
    ending.interrupt = handlers.received();
    return recorder->finish(ending, log.problem());
}

}  // namespace waymark::record
