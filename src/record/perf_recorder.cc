#include "waymark/record/perf_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "waymark/core/file_error.h"
#include "waymark/record/files.h"
#include "waymark/record/signals.h"

namespace waymark::record {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// Type numbers of PMUs are given by the running kernel; this one is as good as any.
constexpr std::uint32_t pmu_type = 8;
constexpr std::size_t etm_attr = 0, dummy_attr = 1;
/// Of the counter that timestamps count, and perf's time when it was 0: a machine that was booted a while ago.
constexpr std::uint64_t counter_hz = 25'000'000, counter_zero_ns = 3'600'000'000'000;
/// Blocks that run before it is looked at how full the sink is.
constexpr std::size_t piece_words = 256;
/// Of trace that waits for its AUXTRACE record.
constexpr std::uint64_t most_pending = 1U << 20;
/// Rows are of code that never changes: a block that is translated again has another number.
constexpr std::uint32_t only_epoch = 1;

perf::CsEtmTerms terms_of(const PerfRecorderOptions& o) {
    return {.branch_broadcast = o.unit.branch_broadcast,
            .cycle_accurate = o.unit.cycle_accurate,
            .context_id = o.unit.context_id_bytes != 0,
            .timestamps = o.unit.timestamps,
            .return_stack = o.unit.return_stack};
}

/// MIDR_EL1, or MIDR of a core in AArch32.
std::uint64_t midr_of(const std::string& core) {
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> known{{
        {"armv9-a", 0x410fd461},  // Cortex-A510
        {"cortex-a53", 0x410fd034},
        {"cortex-a15", 0x413fc0f2},
        {"cortex-a9", 0x413fc090},
    }};
    for (const auto& [name, midr] : known)
        if (name == core) return midr;
    return 0;
}

std::vector<perf::CsEtmUnit> units_of(const PerfRecorderOptions& o) {
    std::vector<perf::CsEtmUnit> out;
    for (std::uint32_t cpu = 0; cpu < o.cpus; ++cpu)
        out.push_back({cpu, o.units->registers(o.unit, perf::cs_etm_trace_id(cpu))});
    return out;
}

std::vector<perf::Attr> attributes(const PerfRecorderOptions& o) {
    const perf::CsEtmTerms terms = terms_of(o);
    constexpr std::uint64_t disabled = 1, exclude_hv = 1 << 6, enable_on_exec = 1 << 12;
    perf::Attr etm;
    etm.type = pmu_type;
    etm.config = terms.config();
    etm.sample_period = 1;
    etm.flags = disabled | exclude_hv | enable_on_exec;
    etm.name = terms.event();
    like_tracking_event(etm);
    // One of each event on each CPU.
    std::vector<std::uint64_t> tracking_ids;
    const std::uint32_t count = o.per_thread ? 1 : o.cpus;
    for (std::uint32_t cpu = 0; cpu < count; ++cpu) {
        etm.ids.push_back(1 + cpu);
        tracking_ids.push_back(1 + count + cpu);
    }
    return {etm, tracking_event(std::move(tracking_ids))};
}

}  // namespace

Status check(const PerfRecorderOptions& o) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (o.cpus == 0 || o.cpus > perf::most_cs_etm_cpus)
        return wrong(fmt::format("--cpus {}: from 1 to {}, for so many trace source IDs there are", o.cpus,
                                 perf::most_cs_etm_cpus));
    constexpr std::uint64_t least = 8192, most = 1U << 30;
    if (o.aux_bytes < least || o.aux_bytes > most || (o.aux_bytes & (page_bytes - 1)) != 0)
        return wrong(fmt::format("a buffer of {} bytes: whole pages, from {} to {} bytes", o.aux_bytes, least, most));
    if (o.per_thread && (o.unit.context_id_bytes != 0 || o.unit.timestamps))
        return wrong("--per-thread goes with neither --context-id nor --timestamps: perf sets neither there");
    const std::vector<RegisterValue> registers = o.units->registers(o.unit, perf::cs_etm_trace_id(0));
    const perf::CsEtmBlock* const block = perf::cs_etm_block_for(registers);
    if (block == nullptr) return wrong(fmt::format("perf.data has no form for the unit {}", o.units->name()));
    const RegisterValue* const config = find_register(registers, "TRCCONFIGR");
    if (config != nullptr && (config->value & perf::CsEtmTerms::other_trcconfigr_bits()) != 0)
        return wrong(fmt::format("TRCCONFIGR {:#x}: perf programs no such unit, and its file cannot describe one",
                                 config->value));
    if (!o.per_thread && !block->event_word.empty())
        return wrong(fmt::format(
            "--unit {} needs --per-thread: perf programs no context IDs of it, and without them a file with a ring for "
            "each CPU does not show who ran",
            o.units->name()));
    if (!o.per_thread && o.unit.context_id_bytes == 0)
        return wrong("--context-id 0 needs --per-thread: a ring for each CPU does not show who ran without it");
    WM_ASSIGN_OR_RETURN([[maybe_unused]] const perf::AuxtraceInfo info,
                        perf::cs_etm_info(o.info_version, pmu_type, false, terms_of(o), units_of(o)));
    return Nothing{};
}

PerfRecorder::PerfRecorder(PerfRecorderOptions options)
    : options_(std::move(options)),
      program_(options_.command),
      conversion_(conversion_of(counter_hz, counter_zero_ns)),
      selected_(options_.units->selects(options_.unit)) {
    recorded_.began = !options_.start_at.has_value();
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
    const bool snapshot = options.loss == TraceLoss::snapshot;
    WM_ASSIGN_OR_RETURN(const perf::AuxtraceInfo info, perf::cs_etm_info(options.info_version, pmu_type, snapshot,
                                                                         terms_of(options), units_of(options)));
    std::unique_ptr<PerfRecorder> recorder(new PerfRecorder(std::move(options)));
    PerfRecorder& r = *recorder;
    r.file_ = std::move(file);
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
    while (parts.size() >= 2) {
        const auto kind = static_cast<PartKind>(parts[0]);
        const std::size_t words = parts[1];
        if (words < 2 || words > parts.size()) return;
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(parts.data());
        const std::size_t size = words * 4;
        const auto text = [&](std::size_t header, std::uint32_t length) {
            return std::string_view(reinterpret_cast<const char*>(bytes) + header,
                                    std::min<std::size_t>(length, size - header));
        };
        const auto is = [&]<class Part>(Part& part) {
            if (kind != part.kind || size < sizeof part) return false;
            std::memcpy(&part, bytes, sizeof part);
            return true;
        };
        BlockPart block;
        MapPart map;
        UnmapPart unmap;
        ThreadPart thread;
        ProcessPart process;
        if (is(block)) {
            if (sizeof block + block.code_bytes + block.text_bytes <= size)
                define_block(*p, block, bytes + sizeof block);
        } else if (is(map)) {
            define_map(*p, map, text(sizeof map, map.name_bytes));
        } else if (is(unmap)) {
            file_->unmapped(p->pid, unmap);
        } else if (is(thread)) {
            define_thread(*p, thread, text(sizeof thread, thread.name_bytes));
        } else if (is(process)) {
            p = &this->process(process);
        }
        parts = parts.subspan(words);
    }
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

void PerfRecorder::define_block(Process& p, const BlockPart& part, const std::uint8_t* code) {
    // The plugin counts; what is far off did not come from it.
    constexpr std::size_t ahead = 1 << 16;
    if (part.id > p.blocks.size() + ahead) return;
    if (part.id >= p.blocks.size()) {
        p.blocks.resize(part.id + 1);
        p.rows.resize(p.blocks.size());
    }
    p.rows[part.id] = {};
    p.blocks[part.id] = std::make_shared<Block>();
    p.blocks[part.id]->definition =
        Definition{{part.address},
                   {code, code + part.code_bytes},
                   part.instructions,
                   part.second == 0 ? std::nullopt : std::optional<Address>{{part.second}},
                   {reinterpret_cast<const char*>(code) + part.code_bytes, part.text_bytes}};
}

void PerfRecorder::define_map(Process& p, const MapPart& part, std::string_view name) {
    for (std::optional<CodePlace>* place : {&options_.start_at, &options_.stop_at})
        if (*place) (*place)->mapped(std::string(name), {part.address}, part.file_offset, part.bytes);
    // Code is translated before the thread that runs it has said who it is.
    if (p.pid == 0)
        p.early_maps.emplace_back(part, name);
    else
        file_->mapped(part, name, {.pid = p.pid, .tid = p.pid, .time = time(), .attr = dummy_attr});
}

void PerfRecorder::define_thread(Process& p, const ThreadPart& part, std::string_view name) {
    const auto [found, is_new] = threads_.try_emplace(part.thread, clock_, options_.units->undefined_executes());
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

/// A thread appears: perf learns of it, and its truth begins.
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
    t.tracker.context({.ns = true, .context_id = t.tid});
    t.truth = truth_.sources.size();
    truth_.sources.push_back({.source = fmt::format("{}/{}", t.pid, t.tid)});
    if (!options_.truth_ranges) return;
    t.ranges_file = fmt::format("{}.truth_{}.bin", options_.file.string(), truth_.sources.size());
    if (auto writer = RangeWriter::create(t.ranges_file)) {
        t.ranges = std::move(*writer);
        truth_.sources.back().file = t.ranges_file.filename().string();
    } else {
        fail(writer.error());
    }
}

// ---- CPUs, units and sinks

void PerfRecorder::schedule(Thread& t) {
    if (t.cpu && cpus_[*t.cpu].running == &t) return;
    // Where it ran last, else on one that is free, else on the one whose thread has run longest.
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
        // A perf before 6.3 takes these in a file without CPUs for a contradiction.
        if (!options_.per_thread) file_->writer().hardware_id(perf::cs_etm_hardware_id(c.id.value), at(t, etm_attr));
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
    // After each range the sink begins anew, and its reader knows no ID.
    if (!to.formatter) to.formatter = std::make_unique<coresight::Formatter>(to.bytes);
    to.formatter->add(c.id, bytes);
}

void PerfRecorder::stop_unit(Cpu& c) {
    if (!c.unit) return;
    Thread& t = *c.running;
    if (t.tracker.attached()) {
        // It is interrupted before the block that it entered last, of which nothing is known yet.
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

std::uint64_t PerfRecorder::lose(std::vector<std::uint8_t>& trace) {
    if (options_.loss != TraceLoss::late || trace.size() <= options_.aux_bytes) return 0;
    const std::uint64_t lost = trace.size() - options_.aux_bytes;
    mark_lost(lost);
    if (options_.sink == TraceSink::trbe) {
        // Full, it takes nothing more until the interrupt is served.
        trace.resize(options_.aux_bytes);
        return perf::AuxRange::collision;
    }
    // The newest frames are left, and the driver writes a barrier over the first of them: four full syncs.
    trace.erase(trace.begin(), trace.begin() + static_cast<std::ptrdiff_t>(lost));
    constexpr std::array<std::uint8_t, 4> full_sync{0xff, 0xff, 0xff, 0x7f};
    for (std::size_t i = 0; i < coresight::frame_bytes; ++i) trace[i] = full_sync[i % full_sync.size()];
    return perf::AuxRange::truncated;
}

void PerfRecorder::close_range(Cpu& c, std::vector<std::uint8_t> trace) {
    const Thread& t = *c.running;
    Ring& ring = rings_[options_.per_thread ? t.tid : c.number];
    perf::AuxRange range;
    range.flags = lose(trace);
    range.offset = ring.position;
    range.bytes = trace.size();
    if (options_.sink == TraceSink::trbe) range.flags |= perf::cs_etm_raw;
    const bool snapshot = options_.loss == TraceLoss::snapshot;
    if (snapshot) {
        // In a ring that is overwritten the record says where its bytes end.
        range.flags |= perf::AuxRange::overwrite;
        range.offset += range.bytes;
    }
    ring.ranges.emplace_back(range, at(t, etm_attr));
    ring.pending.insert(ring.pending.end(), trace.begin(), trace.end());
    ring.position += trace.size();
    pending_bytes_ += trace.size();
    recorded_.trace_bytes += trace.size();
    ++recorded_.aux_ranges;
    if (snapshot && ring.pending.size() > options_.aux_bytes) {
        const std::uint64_t lost = ring.pending.size() - options_.aux_bytes;
        ring.pending.erase(ring.pending.begin(), ring.pending.begin() + static_cast<std::ptrdiff_t>(lost));
        mark_lost(lost);
    }
    if (!snapshot && pending_bytes_ >= most_pending) drain();
}

void PerfRecorder::drain() {
    perf::PerfWriter& w = file_->writer();
    std::uint32_t index = 0;
    for (auto& [key, ring] : rings_) {
        if (!ring.pending.empty()) {
            perf::Chunk chunk;
            chunk.ring = ring.position - ring.pending.size();
            chunk.reference = index + 1;
            chunk.index = options_.per_thread ? index : key;
            chunk.cpu = options_.per_thread ? perf::nobody : key;
            chunk.tid = options_.per_thread ? key : perf::nobody;
            w.auxtrace(chunk, ring.pending);
            ring.pending.clear();
        }
        for (const auto& [range, when] : ring.ranges) w.aux(range, when);
        ring.ranges.clear();
        ++index;
    }
    pending_bytes_ = 0;
    w.finished_round();
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
    if (t.ranges && !t.ranges->flush()) fail(cannot("write", t.ranges_file));
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
        // Half full it is read, so that nothing is lost while that takes place.
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
        if (t.cut) settle(t, std::nullopt, false);
        chunk = chunk.subspan(t.tracker.follow(chunk, t.process->rows, only_epoch, limit, t.held));
        if (chunk.empty()) return;
        const std::uint32_t word = chunk.front();
        chunk = chunk.subspan(1);
        if (word <= words::max_block) {
            settle(t, std::nullopt, false);
            t.held = word;
            continue;
        }
        switch (word & words::kind_mask) {
            case words::cut: t.cut = word & words::value_mask; break;
            case words::system_call:
                settle(t, std::nullopt, false);
                if (t.tracker.attached()) t.tracker.system_call();
                break;
            case words::thread_end:
                settle(t, std::nullopt, false);
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

void PerfRecorder::settle(Thread& t, std::optional<std::uint32_t> end, bool stopped) {
    const std::optional<std::uint32_t> cut = std::exchange(t.cut, std::nullopt);
    if (t.held == 0) return;
    if (!end && cut) {
        end = cut;
        stopped = true;
    }
    const std::uint32_t id = std::exchange(t.held, 0);
    const Code* const code = known(t, id);
    if (recorded_.stopped || code == nullptr) return;
    const auto size = static_cast<std::uint32_t>(code->instructions.size());
    if (stopped && (*end >= size || !code->instructions[*end].may_stop)) {
        end = size;
        stopped = false;
    }
    execute(t, id, std::min(end.value_or(size), size), stopped);
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
        understand(*block.definition, isa.value_or(isa::Isa::a32), options_.units->decode_options(options_.unit));
    block.definition.reset();
    return &block.code;
}

void PerfRecorder::execute(Thread& t, std::uint32_t id, std::uint32_t end, bool stopped) {
    const Code& code = t.process->blocks[id]->code;
    std::uint32_t first = 0;
    if (!recorded_.began) {
        const std::optional<Address> start = options_.start_at->address();
        const auto index = start ? code.index_of(*start) : std::nullopt;
        if (!index || *index >= end) return;
        first = *index;
        recorded_.began = true;
    }
    bool stop_here = false, has_stop = false;
    if (const std::optional<Address> stop_at = options_.stop_at ? options_.stop_at->address() : std::nullopt) {
        has_stop = *stop_at >= code.address && *stop_at < code.end();
        if (const auto index = code.index_of(*stop_at); index && *index >= first && *index < end) {
            end = *index;
            stopped = false;
            stop_here = true;
        }
    }
    if (!t.tracker.attached()) start_unit(cpus_[*t.cpu]);
    t.tracker.arrive({code.address + (first == 0 ? 0 : code.instructions[first].offset), code.isa});
    // A block without instructions is one of the kernel's helpers, which QEMU does itself.
    if (code.instructions.empty()) return t.tracker.leave();
    if (OrdinaryBlock& row = t.process->rows[id]; row.epoch == 0 && !has_stop) row = row_of(code, only_epoch);
    t.tracker.run(code, first, end, stopped);
    if (stop_here || t.tracker.lost_way() ||
        (options_.limit_instructions != 0 && clock_.cycle >= options_.limit_instructions))
        stop();
}

void PerfRecorder::signal(Thread& t) {
    const DeliveredSignal signal(*t.signal, t.halves, options_.aarch64);
    t.signal.reset();
    t.halves.clear();
    const SignalException taken = exception_of(signal, known(t, t.held), options_.units->undefined_executes());
    settle(t, taken.end, false);
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
    r.start_known = options_.start_at && options_.start_at->address();
    r.stop_known = options_.stop_at && options_.stop_at->address();
    for (const SourceTruth& s : truth_.sources) r.ranges += s.ranges + s.lost_ranges;
    return r;
}

void PerfRecorder::end_program() {
    // How far a block ran is unknown if nothing is known after it; that it was entered settles the one before.
    for (auto& [number, t] : threads_)
        if (t.cpu && cpus_[*t.cpu].running == &t) settle(t, 0, false);
    // The first thread last, as the process ends with it.
    for (auto t = threads_.rbegin(); t != threads_.rend(); ++t) end(t->second);
    threads_.clear();
    processes_.clear();
}

void PerfRecorder::next_program(std::vector<std::string> command) {
    end_program();
    program_ = std::move(command);
    // It was of the first one's symbols.
    options_.instruction_set = {};
}

Status PerfRecorder::finish(bool complete) {
    if (!failure_) {
        end_program();
        drain();
        std::vector<std::string> command{"perf", "record", "-e", terms_of(options_).event()};
        if (options_.per_thread) command.emplace_back("--per-thread");
        if (options_.loss == TraceLoss::snapshot) command.emplace_back("-S");
        command.emplace_back("--");
        command.insert(command.end(), options_.command.begin(), options_.command.end());
        fail(file_->finish({.arch = options_.aarch64 ? "aarch64" : "armv7l",
                            .midr = midr_of(options_.unit.core),
                            .cpus = options_.cpus,
                            .pmus = {{pmu_type, "cs_etm"}},
                            .command = std::move(command)}));
    }
    truth_.complete = complete && !failure_;
    std::ofstream truth(perf_truth_file(options_.file), std::ios::binary);
    truth << to_text(truth_);
    if (!truth.flush()) fail(cannot("write", perf_truth_file(options_.file)));
    return failure_ ? Status(*failure_) : Status(Nothing{});
}

}  // namespace waymark::record
