#include "waymark/record/perf_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "perf_recorder_options.h"
#include "waymark/core/numbers.h"
#include "waymark/record/definition_parts.h"
#include "waymark/record/files.h"
#include "waymark/record/signals.h"

namespace waymark::record {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// The counter of the timestamps: its frequency, and perf's time when it was 0 (the machine booted earlier).
constexpr std::uint64_t counter_hz = 25'000'000, counter_zero_ns = 3'600'000'000'000;
/// The recorder checks how full the sink is after this number of blocks.
constexpr std::size_t piece_words = 256;
/// The code of a row never changes: a block that is translated again receives a new number.
constexpr std::uint32_t only_epoch = 1;

}  // namespace

PerfRecorder::PerfRecorder(PerfRecorderOptions options)
    : options_(std::move(options)),
      extent_(std::move(options_.start_at), std::move(options_.stop_at)),
      program_(options_.command),
      conversion_(conversion_of(counter_hz, counter_zero_ns)),
      selected_(options_.units->selects(options_.unit)),
      rings_(options_) {
    for (std::uint32_t n = 0; n < options_.cpus; ++n) {
        Cpu& c = cpus_.emplace_back();
        c.number = n;
        c.id = {perf::cs_etm_trace_id(n)};
    }
}

PerfRecorder::~PerfRecorder() = default;

Result<std::unique_ptr<PerfRecorder>> PerfRecorder::create(PerfRecorderOptions options) {
    WM_CHECK(options.units != nullptr);
    WM_RETURN_IF_ERROR(check(options));
    WM_ASSIGN_OR_RETURN(std::unique_ptr<RecordedPerfFile> file,
                        RecordedPerfFile::create(options.file, attributes(options)));
    WM_ASSIGN_OR_RETURN(const perf::AuxtraceInfo info, auxtrace_info(options));
    std::unique_ptr<PerfRecorder> recorder(new PerfRecorder(std::move(options)));
    PerfRecorder& r = *recorder;
    r.file_ = std::move(file);
    r.recorded_.replaced = r.file_->replaced();
    r.file_->writer().time_conversion(r.conversion_);
    r.file_->writer().auxtrace_info(info);
    WM_RETURN_IF_ERROR(r.file_->status());
    return recorder;
}

perf::PerfWriter::At PerfRecorder::at(const Thread& t, std::size_t attr) const {
    return {.pid = t.pid,
            .tid = t.tid,
            .cpu = options_.per_thread ? perf::nobody : t.cpu.value_or(0),
            .time = time(),
            .attr = attr};
}

void PerfRecorder::fail(const Status& status) {
    if (!status && !failure_) failure_ = status.error();
}

// ---- definitions

void PerfRecorder::definitions(std::span<const std::uint32_t> parts) {
    Process* p = &processes_[0];
    for_each_part(parts, [&](const DefinitionPart& part) {
        BlockPart block;
        MapPart map;
        UnmapPart unmap;
        ThreadPart thread;
        ProcessPart process;
        if (part.is(block))
            define_block(*p, block.id, part.definition(block));
        else if (part.is(map))
            define_map(*p, map, part.name(map));
        else if (part.is(unmap))
            file_->unmapped(p->pid, unmap);
        else if (part.is(thread))
            define_thread(*p, thread, part.name(thread));
        else if (part.is(process))
            p = &this->process(process);
    });
}

PerfRecorder::Process& PerfRecorder::process(const ProcessPart& part) {
    const auto [found, is_new] = processes_.try_emplace(part.process);
    Process& p = found->second;
    if (!is_new) return p;
    const Process& parent = processes_[part.parent];
    p.pid = part.pid;
    p.parent_pid = part.parent_pid;
    p.parent_tid = part.parent_tid;
    p.blocks = parent.blocks;
    p.rows = parent.rows;
    file_->forked(part.parent_pid, part.pid);
    return p;
}

void PerfRecorder::define_block(Process& p, std::uint32_t id, Definition definition) {
    if (!may_follow(id, p.blocks.size())) return;
    if (id >= p.blocks.size()) {
        p.blocks.resize(id + 1);
        p.rows.resize(p.blocks.size());
    }
    if (p.rows[id].epoch != 0)
        for (auto& [number, t] : threads_)
            if (t.process == &p) t.tracker.forget_sequences();
    p.rows[id] = {};
    p.blocks[id] = std::make_shared<Block>();
    p.blocks[id]->definition = std::move(definition);
}

void PerfRecorder::define_map(Process& p, const MapPart& part, std::string_view name) {
    extent_.mapped(part, name);
    // Code may be translated before the plugin knows the thread that runs it.
    if (p.pid == 0)
        p.early_maps.emplace_back(part, name);
    else
        file_->mapped(part, name, {.pid = p.pid, .tid = p.pid, .time = time(), .attr = dummy_attr});
}

void PerfRecorder::define_thread(Process& p, const ThreadPart& part, std::string_view name) {
    const auto [found, is_new] = threads_.try_emplace(part.thread, clock_, *options_.units);
    Thread& t = found->second;
    if (!is_new) {
        if (!name.empty())
            file_->writer().task({perf::TaskEvent::Kind::comm, t.pid, t.tid, 0, 0, 0, std::string(name)},
                                 at(t, dummy_attr));
        return;
    }
    t.number = part.thread;
    t.pid = p.pid = part.pid;
    t.tid = part.tid;
    t.process = &p;
    introduce(t);
}

/// Called for a new thread: writes its perf records and begins its truth.
void PerfRecorder::introduce(Thread& t) {
    ++recorded_.threads;
    perf::PerfWriter& w = file_->writer();
    Process& p = *t.process;
    if (t.tid != t.pid) {
        w.task({perf::TaskEvent::Kind::fork, t.pid, t.tid, t.pid, t.pid, time(), {}}, at(t, dummy_attr));
    } else if (p.parent_pid != 0) {
        ++recorded_.processes;
        w.task({perf::TaskEvent::Kind::fork, t.pid, t.tid, p.parent_pid, p.parent_tid, time(), {}}, at(t, dummy_attr));
    } else {
        ++recorded_.processes;
        const std::string program = program_.empty() ? "program" : fs::path(program_.front()).filename().string();
        constexpr std::size_t most_comm = 15;
        w.task({perf::TaskEvent::Kind::exec, t.pid, t.tid, 0, 0, 0, program.substr(0, most_comm)}, at(t, dummy_attr));
    }
    for (const auto& [part, name] : std::exchange(p.early_maps, {})) file_->mapped(part, name, at(t, dummy_attr));
    t.tracker.context({.ns = true, .context_id = t.tid, .vmid = t.tid});
    t.truth = truth_.sources.size();
    truth_.sources.push_back({.source = fmt::format("{}/{}", t.pid, t.tid)});
    if (!options_.truth_ranges) return;
    t.ranges_file = file_->beside(fmt::format(".truth_{}.bin", truth_.sources.size()));
    if (auto writer = RangeWriter::create(t.ranges_file)) {
        t.ranges = std::move(*writer);
        truth_.sources.back().file = t.ranges_file.filename().string();
    } else {
        fail(file_->as_placed(writer.error()));
    }
}

// ---- CPUs, units and sinks

void PerfRecorder::schedule(Thread& t) {
    if (t.cpu && cpus_[*t.cpu].running == &t) return;
    // Prefers the CPU where the thread ran last, then a free CPU, then the CPU whose thread has run longest.
    Cpu* to = t.cpu && cpus_[*t.cpu].running == nullptr ? &cpus_[*t.cpu] : nullptr;
    for (Cpu& c : cpus_)
        if (to == nullptr && c.running == nullptr) to = &c;
    if (to == nullptr)
        to = &*std::min_element(cpus_.begin(), cpus_.end(),
                                [](const Cpu& a, const Cpu& b) { return a.since < b.since; });
    if (to->running != nullptr) {
        stop_unit(*to);
        to->running = nullptr;
    }
    const bool first = !t.cpu;
    to->running = &t;
    to->since = clock_.cycle;
    t.cpu = to->number;
    if (first) file_->writer().itrace_start(t.pid, t.tid, at(t, etm_attr));
}

void PerfRecorder::start_unit(Cpu& c) {
    Thread& t = *c.running;
    if (!c.announced) {
        c.announced = true;
        ++recorded_.cpus;
        // perf before 6.3 rejects these records in a file without CPUs.
        const std::uint32_t sink = options_.sink == TraceSink::trbe ? c.number : 0;
        if (!options_.per_thread)
            file_->writer().hardware_id(
                options_.sink_ids ? perf::cs_etm_hardware_id(c.id.value, sink) : perf::cs_etm_hardware_id(c.id.value),
                at(t, etm_attr));
    }
    c.unit = options_.units->make(options_.unit, c.trace);
    t.tracker.attach(*c.unit, truth_.sources[t.truth], t.ranges.get());
    t.tracker.select(selected_);
}

void PerfRecorder::collect(Cpu& c) {
    std::vector<std::uint8_t> bytes = c.trace.take();
    c.trace = {};
    if (bytes.empty()) return;
    Memory& to = sink(c);
    if (options_.sink == TraceSink::trbe) {
        to.bytes.insert(to.bytes.end(), bytes.begin(), bytes.end());
        return;
    }
    // Each range starts a new formatter stream, because its reader does not know the current ID.
    if (!to.formatter) to.formatter = std::make_unique<coresight::Formatter>(to.bytes);
    to.formatter->add(c.id, bytes);
}

void PerfRecorder::stop_unit(Cpu& c) {
    if (!c.unit) return;
    Thread& t = *c.running;
    if (t.tracker.attached()) {
        // The interrupt comes before the block entered last, because it is not known yet how far that block ran.
        std::optional<Place> back;
        if (const Code* const code = known(t, t.held)) back = Place{code->address, code->isa};
        t.tracker.exception(ExceptionClass::irq, back, std::nullopt);
        t.tracker.detach();
    }
    collect(c);
    c.unit.reset();
    // The ETR is read when the last of its units stops.
    const bool last = std::none_of(cpus_.begin(), cpus_.end(), [](const Cpu& other) { return other.unit != nullptr; });
    if (shares_sink() && !last) return close_range(c, {});
    Memory& from = sink(c);
    if (from.formatter) from.formatter->flush();
    from.formatter.reset();
    close_range(c, std::exchange(from.bytes, {}));
}

void PerfRecorder::mark_lost(std::uint64_t bytes) {
    recorded_.lost_bytes += bytes;
    for (auto& [number, t] : threads_)
        if (!t.ended) truth_.sources[t.truth].wrapped = true;
}

void PerfRecorder::close_range(Cpu& c, std::vector<std::uint8_t> trace) {
    const Thread& t = *c.running;
    const AuxRings::Closed closed =
        rings_.close_range(options_.per_thread ? t.tid : c.number, std::move(trace), at(t, etm_attr));
    recorded_.trace_bytes += closed.bytes;
    ++recorded_.aux_ranges;
    if (closed.lost != 0) mark_lost(closed.lost);
    if (rings_.is_due()) drain();
}

void PerfRecorder::drain() {
    rings_.drain(file_->writer());
    fail(file_->status());
}

void PerfRecorder::stop_all() {
    for (Cpu& c : cpus_) stop_unit(c);
}

void PerfRecorder::end(Thread& t) {
    if (t.ended) return;
    t.ended = true;
    if (t.cpu && cpus_[*t.cpu].running == &t) {
        stop_unit(cpus_[*t.cpu]);
        cpus_[*t.cpu].running = nullptr;
    }
    if (t.ranges && !t.ranges->flush()) fail(file_->as_placed(cannot("write", t.ranges_file)));
    t.ranges.reset();
    file_->writer().task({perf::TaskEvent::Kind::exit, t.pid, t.tid, t.pid, t.pid, time(), {}}, at(t, dummy_attr));
}

// ---- execution

void PerfRecorder::execution(std::uint32_t number, std::span<const std::uint32_t> chunk) {
    const auto found = threads_.find(number);
    if (recorded_.stopped || failure_ || found == threads_.end()) return;
    Thread& t = found->second;
    while (!chunk.empty() && !recorded_.stopped && !t.ended) {
        schedule(t);
        const auto piece = chunk.first(std::min(chunk.size(), piece_words));
        chunk = chunk.subspan(piece.size());
        run(t, piece);
        if (t.ended) break;
        Cpu& c = cpus_[*t.cpu];
        if (!c.unit) continue;
        collect(c);
        // The sink is read when half full, so that nothing is lost during the readout.
        const std::uint64_t enough =
            options_.loss == TraceLoss::late ? options_.aux_bytes * 3 / 2 : options_.aux_bytes / 2;
        if (sink(c).bytes.size() < enough) continue;
        if (shares_sink())
            stop_all();
        else
            stop_unit(c);
    }
}

void PerfRecorder::run(Thread& t, std::span<const std::uint32_t> chunk) {
    const std::uint64_t limit = options_.limit_instructions != 0 ? options_.limit_instructions : ~std::uint64_t{0};
    while (!chunk.empty() && !recorded_.stopped) {
        if (t.cut) settle(t);
        chunk = chunk.subspan(t.tracker.follow(chunk, t.process->rows, only_epoch, limit, t.held));
        if (chunk.empty()) return;
        const std::uint32_t word = chunk.front();
        chunk = chunk.subspan(1);
        if (word <= words::max_block) {
            settle(t);
            t.held = word;
            continue;
        }
        switch (word & words::kind_mask) {
            case words::cut: t.cut = word & words::value_mask; break;
            case words::system_call:
                settle(t);
                if (t.tracker.attached()) t.tracker.system_call();
                break;
            case words::thread_end:
                settle(t);
                end(t);
                return;
            case words::signal:
                t.signal = word & words::value_mask;
                t.halves.clear();
                break;
            case words::half: {
                t.halves.push_back(word & words::value_mask);
                const std::size_t all = options_.aarch64 ? 5 : 3;
                if (t.signal && t.halves.size() == all) signal(t);
                break;
            }
            default: break;
        }
    }
}

void PerfRecorder::settle(Thread& t, std::optional<std::uint32_t> end) {
    const std::optional<std::uint32_t> cut = std::exchange(t.cut, std::nullopt);
    if (t.held == 0) return;
    const std::uint32_t id = std::exchange(t.held, 0);
    const Code* const code = known(t, id);
    if (recorded_.stopped || code == nullptr) return;
    execute(t, id, completed_part(*code, end, false, cut));
}

const Code* PerfRecorder::known(const Thread& t, std::uint32_t id) {
    const auto& blocks = t.process->blocks;
    if (id >= blocks.size() || blocks[id] == nullptr) return nullptr;
    Block& block = *blocks[id];
    if (!block.definition) return &block.code;
    const Address address = block.definition->address;
    auto isa = options_.aarch64 ? std::optional(isa::Isa::a64) : instruction_set(*block.definition);
    if (!isa) isa = t.tracker.arriving(address);
    if (!isa && options_.instruction_set) isa = options_.instruction_set(address);
    block.code =
        understand(*block.definition, isa.value_or(isa::Isa::a32), options_.units->decode_options(options_.unit),
                   flow::traces_each_instruction(*options_.units));
    block.definition.reset();
    return &block.code;
}

void PerfRecorder::execute(Thread& t, std::uint32_t id, CompletedPart part) {
    const Code& code = t.process->blocks[id]->code;
    const std::optional<RecordedExtent::Piece> piece = extent_.piece(code, part);
    if (!piece) return;
    const auto [first, end, stopped] = piece->part;
    if (!t.tracker.attached()) start_unit(cpus_[*t.cpu]);
    t.tracker.arrive({code.address + (first == 0 ? 0 : code.instructions[first].offset), code.isa});
    // A block without instructions is a kernel helper, which QEMU emulates itself.
    if (code.instructions.empty()) return t.tracker.leave();
    if (OrdinaryBlock& row = t.process->rows[id]; row.epoch == 0 && !piece->has_stop) row = row_of(code, only_epoch);
    t.tracker.run(code, first, end, stopped);
    if (piece->stops || t.tracker.lost_way() ||
        (options_.limit_instructions != 0 && clock_.cycle >= options_.limit_instructions))
        stop();
}

void PerfRecorder::signal(Thread& t) {
    const DeliveredSignal signal(*t.signal, t.halves, options_.aarch64);
    t.signal.reset();
    t.halves.clear();
    const SignalException taken = exception_of(signal, known(t, t.held), options_.units->undefined_executes());
    settle(t, taken.end);
    if (!t.tracker.attached() || recorded_.stopped) return;
    t.tracker.exception(taken.kind, taken.executed ? std::nullopt : std::optional<Place>(signal.back), std::nullopt);
}

void PerfRecorder::stop() {
    recorded_.stopped = true;
    stop_all();
}

// ---- the end

Status PerfRecorder::flush() {
    for (auto& [number, t] : threads_)
        if (t.ranges) t.ranges->flush();
    fail(file_->flush());
    return failure_ ? Status(*failure_) : Status(Nothing{});
}

PerfRecorded PerfRecorder::recorded() const {
    PerfRecorded r = recorded_;
    r.instructions = clock_.cycle;
    r.began = extent_.began();
    r.start_known = extent_.start_known();
    r.stop_known = extent_.stop_known();
    for (const SourceTruth& s : truth_.sources) r.ranges += s.ranges + s.lost_ranges;
    return r;
}

void PerfRecorder::end_program() {
    // It is not known how far the last block of a thread ran; its entry proves that the previous block is complete.
    for (auto& [number, t] : threads_)
        if (t.cpu && cpus_[*t.cpu].running == &t) settle(t, 0);
    // The first thread ends last, since the process ends with it.
    for (auto t = threads_.rbegin(); t != threads_.rend(); ++t) end(t->second);
    threads_.clear();
    processes_.clear();
}

void PerfRecorder::next_program(std::vector<std::string> command) {
    end_program();
    program_ = std::move(command);
    // It was derived from the symbols of the first program.
    options_.instruction_set = {};
}

capture::perf::RecordedPart PerfRecorder::recorded_part(bool complete) const {
    capture::perf::RecordedPart out;
    if (extent_.start())
        out.begins = fmt::format("where execution first reached {} (--start-at)", extent_.start()->text());
    if (options_.limit_instructions != 0 && clock_.cycle >= options_.limit_instructions)
        out.ends = fmt::format("after {} (--limit)", counted(options_.limit_instructions, "instruction"));
    else if (recorded_.stopped && extent_.stop())
        out.ends = fmt::format("where execution reached {} (--stop-at)", extent_.stop()->text());
    else if (recorded_.stopped || !complete)
        out.ends = "before the program did, or still goes on";
    return out;
}

Status PerfRecorder::finish(bool complete) {
    if (!failure_) {
        end_program();
        drain();
        fail(file_->finish({.arch = options_.aarch64 ? "aarch64" : "armv7l",
                            .midr = midr_of(options_.unit.core),
                            .cpus = options_.cpus,
                            .pmus = {{cs_etm_pmu, "cs_etm"}},
                            .command = perf_command(options_),
                            .part = recorded_part(complete)}));
    }
    truth_.complete = complete && !failure_;
    if (!failure_) fail(file_->finish_with_truth(to_text(truth_)));
    return failure_ ? Status(*failure_) : Status(Nothing{});
}

}  // namespace waymark::record
