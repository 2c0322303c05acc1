#include "waymark/record_dpu/dpu.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "system_calls.h"
#include "waymark/core/file_error.h"
#include "waymark/image/symbols.h"
#include "waymark/record/files.h"
#include "waymark/record/mapped_file.h"
#include "waymark/record/truth.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {

namespace fs = std::filesystem;
using dpu::EonceItem;
using dpu::EventWire;
using dpu::ItemKind;

namespace {

constexpr std::uint32_t vtb_base = 0x20000000, line_bytes = 32;
constexpr std::uint64_t least_buffer = 2 * line_bytes, most_buffer = 1U << 30;
/// The operating system: entry k at +16k, exit at 8 behind it. Linux has no program there.
constexpr std::uint32_t os_base = dpu::default_dpu_base + dpu::flag_page_bytes, os_exit = 8;
constexpr std::uint32_t os_signal = 1, os_timer = 2, os_first_call = 3, os_last_call = 1019, os_readout = 1023;
constexpr std::uint8_t first_id = 2, last_id = 255;

constexpr std::size_t index_of(EventWire wire) {
    std::size_t at = 0;
    while (at < truth_wires.size() && truth_wires[at] != wire) ++at;
    return at;
}
constexpr std::size_t cycles = index_of(EventWire::cycles), vles = index_of(EventWire::vles),
                      stall_all = index_of(EventWire::stall_all), stall_prog = index_of(EventWire::stall_prog),
                      stall_data = index_of(EventWire::stall_data), stall_cof = index_of(EventWire::stall_cof),
                      ic_hit = index_of(EventWire::ic_hit), ic_miss = index_of(EventWire::ic_miss),
                      ic_thrash = index_of(EventWire::ic_thrash), dc_hit = index_of(EventWire::dc_hit),
                      dc_miss = index_of(EventWire::dc_miss), dc_thrash = index_of(EventWire::dc_thrash),
                      dc_wback = index_of(EventWire::dc_wback), interrupts = index_of(EventWire::interrupts),
                      exceptions = index_of(EventWire::exceptions), task_switches = index_of(EventWire::task_switches),
                      mark = index_of(EventWire::mark), edca0 = index_of(EventWire::edca0);

std::string_view kind_name(ItemKind kind) {
    switch (kind) {
        case ItemKind::call: return "call";
        case ItemKind::ret: return "return";
        case ItemKind::rte: return "interrupt-return";
        case ItemKind::interrupt: return "interrupt";
        case ItemKind::cof: return "jump";
        case ItemKind::loop_short: return "short-loop";
        case ItemKind::loop_long: return "long-loop";
        case ItemKind::mark: return "mark";
        default: return "other";
    }
}

/// The register that rules a counter: its own, or that of its triad.
dpu::DpTac control_of(const dpu::Registers& r, unsigned counter) {
    const std::array own{to_value(r.ca0c), to_value(r.ca1c), to_value(r.ca2c),
                         to_value(r.cb0c), to_value(r.cb1c), to_value(r.cb2c)};
    const auto all = from_value<dpu::DpTac>(counter < dpu::counters_per_triad ? to_value(r.tac) : to_value(r.tbc));
    return all.tcen ? all : from_value<dpu::DpTac>(own[counter]);
}

std::string context_text(const dpu::CoreContext& c) {
    return fmt::format("{}:{}", c.supervisor ? "supervisor" : "user", c.pid);
}

bool write_all(int file, Bytes bytes) {
    while (!bytes.empty()) {
        const ssize_t n = write(file, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
}

/// How far a mapped file lies from the addresses in it; none if it is no ELF file.
std::optional<std::uint32_t> load_bias(const MappedFile& file, const MapPart& map) {
    const MappedPiece piece = executable_pieces(file, map).front();
    for (const MappedFile::Part& part : file.executable)
        if (piece.file_offset >= part.offset && piece.file_offset - part.offset < part.bytes)
            return static_cast<std::uint32_t>(piece.address - (part.address + (piece.file_offset - part.offset)));
    return std::nullopt;
}

Error wrong(std::string message) { return {Errc::usage, std::move(message)}; }

}  // namespace

// ---- options

Status set(CoreModel& model, std::string_view name, std::uint64_t value) {
    std::string names;
    bool found = false, fits = true;
    CoreModel::for_each(model, [&](std::string_view each, std::uint32_t& field, const char*) {
        names += (names.empty() ? "" : ", ") + std::string(each);
        if (each != name) return;
        found = true;
        fits = value <= 0xffffffff;
        if (fits) field = static_cast<std::uint32_t>(value);
    });
    if (!found) return wrong(fmt::format("the modelled core has no number '{}'; there are {}", name, names));
    if (!fits) return wrong(fmt::format("{} = {} is too large; at most 4294967295", name, value));
    return Nothing{};
}

Status check(const CoreModel& m) {
    const auto power = [](std::uint64_t n) { return n != 0 && std::has_single_bit(n); };
    if (!power(m.line_bytes) || m.line_bytes < 8 || m.line_bytes > 4096)
        return wrong(fmt::format("line_bytes {}: a power of two from 8 to 4096", m.line_bytes));
    if (m.ways == 0 || m.ways > 64) return wrong(fmt::format("ways {}: from 1 to 64", m.ways));
    for (const auto& [name, kib] : {std::pair{"icache_kib", m.icache_kib}, {"dcache_kib", m.dcache_kib}}) {
        const std::uint64_t bytes = std::uint64_t{kib} << 10, way = std::uint64_t{m.line_bytes} * m.ways;
        if (kib > 1 << 20 || bytes % way != 0 || !power(bytes / way))
            return wrong(fmt::format("{} {}: a power of two times ways ({}) and line_bytes ({})", name, kib, m.ways,
                                     m.line_bytes));
    }
    if (m.os_cycles == 0 || m.os_cycles > 1'000'000)
        return wrong(fmt::format("os_cycles {}: from 1 to 1000000", m.os_cycles));
    for (const auto& [name, n] : {std::pair{"miss_cycles", m.miss_cycles}, {"flow_cycles", m.flow_cycles}})
        if (n > 100'000) return wrong(fmt::format("{} {}: at most 100000", name, n));
    return Nothing{};
}

std::string to_text(const CoreModel& model) {
    std::string out;
    CoreModel::for_each(model, [&](const char* name, std::uint32_t value, const char* what) {
        out += fmt::format("{:<16} {:>6}  {}\n", name, value, what);
    });
    return out;
}

const std::vector<std::pair<std::string, dpu::TraceMode>>& dpu_modes() {
    using enum dpu::TraceMode;
    static const std::vector<std::pair<std::string, dpu::TraceMode>> modes{
        {"task", task},   {"flow", flow},        {"sample", sw_sample},
        {"edca5", edca5}, {"raw", eonce_raw},    {"compressed", eonce_comp},
        {"user", user},   {"user-raw", user_raw}};
    return modes;
}

const std::vector<EventWire>& driven_wires() {
    static const std::vector<EventWire> wires = [] {
        std::set<EventWire> out(truth_wires.begin(), truth_wires.end());
        for (unsigned i = 0; i < dpu::event_wires; ++i)
            if (const auto wire = static_cast<EventWire>(i); wire != EventWire::none && dpu::is_own(wire))
                out.insert(wire);
        out.insert(EventWire::wait);  // the core never waits: time stands still while no thread runs
        return std::vector<EventWire>(out.begin(), out.end());
    }();
    return wires;
}

namespace {

/// The registers that options ask for.
dpu::RegisterProgram program_of(const DpuOptions& o) {
    dpu::RegisterProgram program;
    const auto write = [&](std::uint32_t offset, std::uint32_t value) { program.push_back({0, offset, value, 0}); };
    dpu::DpTsa tsa;
    tsa.value = vtb_base / line_bytes;
    const auto lines = static_cast<std::uint32_t>(std::max<std::uint64_t>(o.buffer_bytes / line_bytes, 1));
    dpu::DpTea tea;
    tea.value = tsa.value + lines - 1;
    write(dpu::DpTsa::offset, to_value(tsa));
    write(dpu::DpTea::offset, to_value(tea));
    write(dpu::DpTw::offset, to_value(tsa));
    if (o.request) {
        // The middle of the buffer: one half is read out while the other fills.
        dpu::DpTer ter;
        ter.value = to_value(tsa) + (lines / 2 - 1) * line_bytes;
        write(dpu::DpTer::offset, to_value(ter));
        dpu::DpCr cr;
        cr.detb = static_cast<std::uint8_t>(dpu::Action::line_0);
        write(dpu::DpCr::offset, to_value(cr));
    }
    for (const std::uint32_t offset : {dpu::DpCa0v::offset, dpu::DpCa1v::offset, dpu::DpCa2v::offset,
                                       dpu::DpCb0v::offset, dpu::DpCb1v::offset, dpu::DpCb2v::offset})
        write(offset, o.initial);
    const auto triad = [&](auto control, std::uint8_t ceg) {
        control.tenm = static_cast<std::uint8_t>(dpu::Selector::immediate);
        control.ceg = ceg;
        control.cmode = static_cast<std::uint8_t>(dpu::CounterMode::trace);
        control.tcen = true;
        write(control.offset, to_value(control));
    };
    triad(dpu::DpTac{}, o.events[0]);
    triad(dpu::DpTbc{}, o.events[1]);
    dpu::DpTc tc;
    tc.prov = true;
    tc.tmode = static_cast<std::uint8_t>(o.mode);
    tc.vtbwm = static_cast<std::uint8_t>(o.buffer_bytes == 0 ? dpu::VtbMode::single_address
                                         : o.request         ? dpu::VtbMode::trace_event_request
                                                             : dpu::VtbMode::overwrite);
    tc.uden = o.user_data && o.mode != dpu::TraceMode::user_raw;
    tc.nxmode = static_cast<std::uint8_t>(o.nexus);
    tc.en = true;
    write(dpu::DpTc::offset, to_value(tc));
    return program;
}

/// Whether what the program waits for can come: samples, and what its EDCA channels and MARK watch.
Status check_sources(DpuOptions& o) {
    dpu::Registers r;
    bool samples = o.sample_every != 0, size_told = false;
    std::set<EventWire> waited;
    const auto watched = [&](unsigned channel) {
        return std::any_of(o.watchpoints.begin(), o.watchpoints.end(),
                           [&](const Watchpoint& w) { return w.channel == channel; });
    };
    for (const dpu::RegisterWrite& w : *o.program) {
        r.set(w.offset, w.value);
        const std::uint64_t bytes = std::uint64_t{to_value(r.tea)} - to_value(r.tsa) + line_bytes;
        if (w.offset != dpu::DpTc::offset || !r.tc.en) continue;
        samples |= r.tc.sample;
        size_told |= r.tc.vtb_mode() != dpu::VtbMode::single_address && to_value(r.tea) >= to_value(r.tsa) &&
                     bytes > most_buffer;
    }
    if (size_told)
        return wrong(
            fmt::format("the trace buffer of the register program is larger than {} bytes; a recording holds "
                        "no more: give DP_TEA a smaller address",
                        most_buffer));
    for (const dpu::RegisterWrite& w : *o.program) {
        const auto tc = from_value<dpu::DpTc>(w.value);
        if (w.offset != dpu::DpTc::offset || !tc.en || tc.tmode >= dpu::trace_modes) continue;
        if (tc.mode() == dpu::TraceMode::sw_sample && !samples)
            return wrong(
                "the register program traces in TMODE SWSAMPLE, but nothing asks for a sample, so the trace "
                "would be empty: add --sample-every CYCLES, or lines such as "
                "'@5000 DP_TC TMODE=SWSAMPLE SAMPLE=1 EN=1'");
        if (tc.mode() == dpu::TraceMode::edca5 && !watched(5))
            return wrong(
                "the register program traces in TMODE EDCA5, but EDCA5 watches nothing, so the trace would be "
                "empty: add --edca 5=SYMBOL");
    }
    // Events that counters count, or begin and end with.
    const auto control = [&](const auto& c, unsigned first, unsigned count) {
        if (c.ceg < dpu::event_sets && c.tenm != 0)
            for (unsigned i = first; i < first + count; ++i) waited.insert(dpu::event_set(c.ceg)[i]);
        for (const unsigned selector : {unsigned{c.tenm}, unsigned{c.tdm}}) {
            if (selector >= 1 && selector <= 6)
                waited.insert(static_cast<EventWire>(static_cast<unsigned>(EventWire::edca0) + selector - 1));
            if (selector == static_cast<unsigned>(dpu::Selector::mark)) waited.insert(EventWire::mark);
            if (selector == static_cast<unsigned>(dpu::Selector::edcd) ||
                selector == static_cast<unsigned>(dpu::Selector::debugev))
                o.warnings.push_back("a counter waits for EDCD or DEBUGEV, which no recorded program has");
        }
    };
    const auto triad = [&](const auto& all, const auto& a, const auto& b, const auto& c) {
        if (all.tcen) return control(all, 0, dpu::counters_per_triad);
        unsigned place = 0;
        for (const std::uint32_t value : {to_value(a), to_value(b), to_value(c)})
            control(from_value<dpu::DpTac>(value), place++, 1);
    };
    triad(r.tac, r.ca0c, r.ca1c, r.ca2c);
    triad(r.tbc, r.cb0c, r.cb1c, r.cb2c);
    for (unsigned channel = 0; channel < 6; ++channel)
        if (waited.contains(static_cast<EventWire>(static_cast<unsigned>(EventWire::edca0) + channel)) &&
            !watched(channel))
            o.warnings.push_back(
                fmt::format("counters wait for EDCA{0}, which watches nothing and never happens: add "
                            "--edca {0}=SYMBOL",
                            channel));
    if (waited.contains(EventWire::mark) && o.marks.empty())
        o.warnings.emplace_back("counters wait for MARK, which nothing executes: add --mark SYMBOL");
    return Nothing{};
}

}  // namespace

Status resolve(DpuOptions& o) {
    WM_RETURN_IF_ERROR(check(o.core));
    if (!o.program) {
        for (const unsigned ceg : o.events)
            if (ceg >= dpu::event_sets)
                return wrong(fmt::format("event set {}: there are sets 0 to {}; --events-help lists them", ceg,
                                         dpu::event_sets - 1));
        if (o.initial > dpu::counter_mask)
            return wrong(fmt::format("a counter begins at {:#x} at most, not {:#x}", dpu::counter_mask, o.initial));
        if (o.buffer_bytes != 0 &&
            (o.buffer_bytes % line_bytes != 0 || o.buffer_bytes < least_buffer || o.buffer_bytes > most_buffer))
            return wrong(
                fmt::format("a buffer of {} bytes: a multiple of {} (a line), from {} to {}; 0 keeps everything",
                            o.buffer_bytes, line_bytes, least_buffer, most_buffer));
        if (o.request && o.buffer_bytes == 0)
            return wrong("a buffer that keeps everything has no end at which to request its readout; give a size");
        if (o.sample_every != 0 && o.mode == dpu::TraceMode::user_raw)
            return wrong("mode user-raw has no samples; choose another mode, or do without sampling");
        if (o.sample_every == 0 && o.mode == dpu::TraceMode::sw_sample)
            return wrong("mode sample needs to know how often: --sample-every CYCLES");
        const bool edca5 =
            std::any_of(o.watchpoints.begin(), o.watchpoints.end(), [](const Watchpoint& w) { return w.channel == 5; });
        if (o.mode == dpu::TraceMode::edca5 && !edca5)
            return wrong("mode edca5 needs to know what EDCA5 watches: --edca 5=SYMBOL");
        o.program = program_of(o);
    } else if (o.program->empty()) {
        return wrong("the register program is empty; it would neither count nor trace");
    }
    // The EOnCE traces what any mode of the program needs.
    o.eonce = {};
    bool first = true;
    for (const dpu::RegisterWrite& write : *o.program) {
        const auto tc = from_value<dpu::DpTc>(write.value);
        if (write.offset != dpu::DpTc::offset || !tc.en || tc.tmode >= dpu::trace_modes) continue;
        if (std::exchange(first, false)) o.mode = tc.mode();
        const dpu::EonceSetup needed = dpu::EonceSetup::for_mode(tc.mode());
        o.eonce.tint |= needed.tint;
        o.eonce.trte |= needed.trte;
        o.eonce.tsub |= needed.tsub;
        if (tc.mode() != dpu::TraceMode::eonce_raw && tc.mode() != dpu::TraceMode::eonce_comp) continue;
        o.eonce.tchof = o.eonce.tint = true;
        o.eonce.tloop = o.loops;
        o.eonce.tmark = !o.marks.empty();
    }
    dpu::ModelConfig config;
    config.eonce = o.eonce;
    config.choices = o.choices;
    WM_RETURN_IF_ERROR(config.check());
    std::string mistakes;
    for (const dpu::Diagnosis& d : diagnose(*o.program, config)) {
        const std::string text =
            fmt::format("{}{}", d.line == 0 ? std::string() : fmt::format("line {}: ", d.line), d.message);
        if (d.doubtful)
            o.warnings.push_back(text);
        else
            mistakes += "\n  " + text;
    }
    if (!mistakes.empty()) return wrong("the register program is wrong:" + mistakes);
    WM_RETURN_IF_ERROR(check_sources(o));
    return Nothing{};
}

// ---- caches

class DpuRecorder::Cache {
public:
    Cache(std::uint32_t kib, const CoreModel& core)
        : sets_((kib << 10) / core.line_bytes, core.ways), window_(core.thrash_window), evicted_(1 << 12) {}
    struct Found {
        bool hit, thrash, wrote_back;
    };
    Found access(std::uint32_t line, bool store, std::uint64_t cycle) {
        constexpr std::uint8_t clean = 1, dirty = 2;
        if (std::uint8_t* const state = sets_.find(line)) {
            if (store) *state = dirty;
            return {true, false, false};
        }
        const Evicted& before = evicted_[line % evicted_.size()];
        const bool thrash = before.known && before.line == line && cycle - before.cycle <= window_;
        const SetAssociative::Evicted out = sets_.insert(line, store ? dirty : clean);
        if (out.state != 0) {
            const auto left = static_cast<std::uint32_t>(out.tag);
            evicted_[left % evicted_.size()] = {cycle, left, true};
        }
        return {false, thrash, out.state == dirty};
    }

private:
    struct Evicted {
        std::uint64_t cycle = 0;
        std::uint32_t line = 0;
        bool known = false;
    };
    SetAssociative sets_;
    std::uint64_t window_;
    std::vector<Evicted> evicted_;  // lately, by the low bits of the line
};

// ---- begin

DpuRecorder::DpuRecorder(DpuOptions options)
    : options_(std::move(options)),
      icache_(std::make_unique<Cache>(options_.core.icache_kib, options_.core)),
      dcache_(std::make_unique<Cache>(options_.core.dcache_kib, options_.core)) {
    dpu::ModelConfig config;
    config.eonce = options_.eonce;
    config.choices = options_.choices;
    model_ = std::make_unique<dpu::Model>(config);
    for (unsigned id = first_id; id <= last_id; ++id) free_ids_.push_back(static_cast<std::uint8_t>(id));
    context_ = now_ = {false, first_id, first_id};
    id_before_ = first_id;
    next_sample_ = options_.sample_every;
    dpu::Registers registers;
    for (; next_write_ < options_.program->size() && (*options_.program)[next_write_].cycle == 0; ++next_write_) {
        const dpu::RegisterWrite& w = (*options_.program)[next_write_];
        model_->write(w.offset, w.value);
    }
    // The kind of buffer is that of tracing, whatever is written to turn it off.
    bool single = true;
    for (const dpu::RegisterWrite& w : *options_.program) {
        registers.set(w.offset, w.value);
        if (w.offset == dpu::DpTc::offset && registers.tc.en)
            single &= registers.tc.vtb_mode() == dpu::VtbMode::single_address;
    }
    // Writes act in the unit's first cycle, the program runs from the next one on.
    dpu::CycleInput in;
    in.ctx = now_;
    give(model_->step(in));
    programmed_ = model_->registers();
    if (!single) ring_ = std::make_unique<dpu::VirtualTraceBuffer>(to_value(registers.tsa), to_value(registers.tea));
    if (reads_out()) readout_.emplace(to_value(registers.tsa), to_value(registers.tea), to_value(programmed_.tw));
}

DpuRecorder::~DpuRecorder() {
    for (const int file : {file_, nexus_file_})
        if (file >= 0) close(file);
}

Result<std::unique_ptr<DpuRecorder>> DpuRecorder::create(DpuOptions options) {
    std::error_code error;
    const fs::path folder = options.folder;
    const bool made = !fs::exists(folder, error);
    const auto holds_recording = [&] {
        std::error_code none;
        return fs::exists(folder / capture::dpu_ini, none);
    };
    WM_ASSIGN_OR_RETURN(OutputLock lock, lock_folder(folder, holds_recording, "a recording of a DPU", options.force));
    const bool replaced = holds_recording() || fs::exists(folder / truth_file, error);
    remove_recordings(folder);
    std::unique_ptr<DpuRecorder> recorder(new DpuRecorder(std::move(options)));
    recorder->lock_ = std::move(lock);
    recorder->made_folder_ = made;
    recorder->sums_.replaced = replaced;
    const auto create = [&](const char* name) {
        return open((folder / name).c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    };
    if ((recorder->file_ = create(dpu_buffer_file)) < 0) return cannot("create", folder / dpu_buffer_file);
    const bool nexus = std::any_of(
        recorder->options_.program->begin(), recorder->options_.program->end(), [](const dpu::RegisterWrite& w) {
            return w.offset == dpu::DpTc::offset && from_value<dpu::DpTc>(w.value).nxmode != 0;
        });
    if (nexus && (recorder->nexus_file_ = create(dpu_nexus_file)) < 0) return cannot("create", folder / dpu_nexus_file);
    if (nexus) recorder->modules_by_message_.emplace();
    if (Status described = recorder->describe(); !described) {
        recorder->discard();
        return described.error();
    }
    return recorder;
}

DpuRecorder::Thread& DpuRecorder::thread(std::uint32_t number) {
    const auto found = threads_.find(number);
    if (found != threads_.end()) return found->second;
    Thread& t = threads_[number];
    t.number = number;
    ++sums_.threads;
    t.id = free_ids_.empty() ? last_id : free_ids_.front();
    if (free_ids_.empty())
        sums_.shared_id = true;
    else
        free_ids_.erase(free_ids_.begin());
    threads_of_id_[t.id].push_back(number);
    return t;
}

// ---- definitions

void DpuRecorder::definitions(std::span<const std::uint32_t> parts) {
    while (parts.size() >= 2) {
        const auto kind = static_cast<PartKind>(parts[0]);
        const std::size_t words = parts[1];
        if (words < 2 || words > parts.size()) return;
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(parts.data());
        const std::size_t size = words * 4;
        if (kind == PartKind::block && size >= sizeof(BlockPart)) {
            BlockPart part;
            std::memcpy(&part, bytes, sizeof part);
            if (sizeof part + part.code_bytes + part.text_bytes <= size && part.id <= words::max_block)
                define_block(part, bytes + sizeof part);
        } else if (kind == PartKind::map && size >= sizeof(MapPart)) {
            MapPart part;
            std::memcpy(&part, bytes, sizeof part);
            define_map(part, {reinterpret_cast<const char*>(bytes) + sizeof part,
                              std::min<std::size_t>(part.name_bytes, size - sizeof part)});
        } else if (kind == PartKind::unmap && size >= sizeof(UnmapPart)) {
            UnmapPart part;
            std::memcpy(&part, bytes, sizeof part);
            each_map([&](Modules& modules, std::uint64_t now) { modules.unmapped(part, now); });
        } else if (kind == PartKind::still_mapped && size >= sizeof(StillMappedPart)) {
            StillMappedPart part;
            std::memcpy(&part, bytes, sizeof part);
            each_map([&](Modules& modules, std::uint64_t) { modules.still_mapped(part); });
        }
        parts = parts.subspan(words);
    }
}

void DpuRecorder::define_block(const BlockPart& part, const std::uint8_t* code) {
    // The plugin counts; what is far off did not come from it.
    constexpr std::size_t ahead = 1 << 16;
    if (part.id > blocks_.size() + ahead) return;
    if (part.id >= blocks_.size()) blocks_.resize(std::max<std::size_t>(part.id + 1, blocks_.size() * 2));
    blocks_[part.id] = {};
    blocks_[part.id].module = modules_.at({part.address});
    blocks_[part.id].definition = Definition{{part.address},
                                             {code, code + part.code_bytes},
                                             part.instructions,
                                             part.second == 0 ? std::nullopt : std::optional<Address>{{part.second}},
                                             {reinterpret_cast<const char*>(code) + part.code_bytes, part.text_bytes}};
}

/// Maps of files, each with the place in the trace so far: where what happens next will be.
void DpuRecorder::each_map(auto&& f) {
    constexpr std::uint64_t word_bytes = 4;
    f(modules_, model_->counts().words * word_bytes);
    if (modules_by_message_) f(*modules_by_message_, model_->counts().nexus_bytes);
}

void DpuRecorder::define_map(const MapPart& part, std::string_view name) {
    each_map([&](Modules& modules, std::uint64_t now) { modules.mapped(part, name, now); });
    if (name.empty()) return;
    const std::string file(name);
    const MappedFile mapped = read_mapped_file(file);
    const auto bias = load_bias(mapped, part);
    if (!bias) return;
    const std::size_t index = image(part, file, *bias);
    for (const MappedPiece& piece : executable_pieces(mapped, part))
        if (const std::uint32_t module = modules_.at({piece.address}); module != Modules::none)
            image_of_[module] = index;
}

/// The image that this is. A new one is copied at once, for the program may be built anew before anybody asks.
std::size_t DpuRecorder::image(const MapPart& part, const std::string& name, std::uint32_t load_bias) {
    std::error_code error;
    MappedImage fresh{name, part.inode, fs::file_size(name, error), fs::last_write_time(name, error), load_bias,
                      {},   {}};
    for (std::size_t i = images_.size(); i-- > 0;) {
        const MappedImage& known = images_[i];
        if (known.file != name || known.inode != fresh.inode || known.bytes != fresh.bytes ||
            known.changed != fresh.changed)
            continue;
        if (known.load_bias == load_bias) return i;
        fresh.copy = known.copy;
        fresh.build_id = known.build_id;
    }
    if (fresh.copy.empty()) {
        // A file of this name that is there is not ours.
        do fresh.copy = options_.folder / fmt::format("{}{}.elf", dpu_image_prefix, copies_++);
        while (fs::exists(fresh.copy, error));
        fs::copy_file(name, fresh.copy, error);
        if (error) fresh.copy = name;
        fresh.build_id = read_mapped_file(fresh.copy.string()).build_id;
    }
    images_.push_back(std::move(fresh));
    return images_.size() - 1;
}

DpuRecorder::Block& DpuRecorder::known(Thread& t, std::uint32_t id) {
    Block& block = blocks_[id];
    if (!block.definition) return block;
    const auto isa = instruction_set(*block.definition);
    block.code = understand(*block.definition, isa ? *isa : t.expected.value_or(t.isa), {});
    block.definition.reset();
    const auto address = static_cast<std::uint32_t>(block.code.address.value);
    for (std::uint32_t i = 0; i < block.code.instructions.size(); ++i) {
        const std::uint32_t at = address + block.code.instructions[i].offset, line = at / options_.core.line_bytes;
        if (block.lines.empty() || block.lines.back().first != line) block.lines.emplace_back(line, 0);
        ++block.lines.back().second;
        for (const Address watched : options_.marks)
            if (watched.value == at) block.watches.push_back({i, ItemKind::mark, 0});
        for (const Watchpoint& w : options_.watchpoints)
            if (w.address.value == at) block.watches.push_back({i, ItemKind::edca, w.channel});
    }
    return block;
}

// ---- execution

void DpuRecorder::execution(std::uint32_t number, std::span<const std::uint32_t> chunk) {
    if (stopped_ || failure_) return;
    Thread& t = thread(number);
    for (const std::uint32_t word : chunk) {
        if (stopped_ || failure_) return;
        if (t.wide) {
            t.wide = false;
            t.access.address = word;
            t.accesses.push_back(t.access);
        } else if ((word & words::access_mask) == words::access) {
            t.wide = true;
            t.access = {word >> words::access_index_bit & words::access_index_mask, 0,
                        1U << (word >> words::access_size_bit & words::access_size_mask),
                        (word & words::access_store) != 0};
        } else if (word != 0 && word <= words::max_block) {
            if (word >= blocks_.size()) continue;
            const Block& next = blocks_[word];
            settle(t,
                   static_cast<std::uint32_t>((next.definition ? next.definition->address : next.code.address).value));
            t.held = word;
        } else {
            const std::uint32_t value = word & words::value_mask;
            switch (word & words::kind_mask) {
                case words::cut: t.cut = value; break;
                case words::system_call:
                    settle(t, std::nullopt);
                    if (value == words::user_data_call) {
                        t.halves_due = 2;
                        t.halves.clear();
                    } else if (current_ == &t && !in_os_) {
                        const std::uint32_t place = std::min(value, os_last_call);
                        enter_os(t.last_pc, os_first_call + place, dpu::InterruptCause::system_call,
                                 "[sys] " + (value > os_last_call ? "others" : system_call_name(value)));
                    }
                    break;
                case words::half:
                    if (t.halves_due == 0) break;
                    t.halves.push_back(value);
                    if (--t.halves_due == 0 && current_ == &t) {
                        const std::uint32_t datum = t.halves[0] | t.halves[1] << 16;
                        writes_.emplace_back(dpu::DpTd::offset, datum);
                        user_data_.emplace_back(t.id, datum);
                        ++sums_.user_data;
                    }
                    break;
                case words::thread_end: end_thread(t); break;
                default: break;
            }
        }
    }
    if (written_.size() >= write_bytes) {
        if (const Status status = flush(); !status) fail(status.error());
    }
}

void DpuRecorder::settle(Thread& t, std::optional<std::uint32_t> next) {
    if (t.held == 0) return;
    Block& block = known(t, std::exchange(t.held, 0));
    const auto size = static_cast<std::uint32_t>(block.code.instructions.size());
    std::uint32_t end = size;
    if (t.cut && *t.cut < size && block.code.instructions[*t.cut].may_stop) end = *t.cut;
    t.cut.reset();
    // What led here is not yet in the trace, so that what it led to counts as what is mapped from here on.
    each_map([&](Modules& modules, std::uint64_t now) {
        if (modules.conflicts(block.module)) modules.new_epoch();
        modules.run(block.module, now);
    });
    const auto address = static_cast<std::uint32_t>(block.code.address.value);
    arrive(t, address);
    const Happened before = total_;
    execute(t, block, end);
    t.accesses.clear();
    t.isa = block.code.isa;
    t.expected.reset();
    if (size == 0) {
        // A helper of the kernel, which QEMU does itself.
        t.stands = next;
        if (next) item({.kind = ItemKind::ret, .after = now_, .src = address, .dst = *next});
    } else if (end != size) {
        t.stands = address + block.code.instructions[end].offset;
    } else {
        leave(t, block, next);
    }
    block.happened += total_ - before;
    due_writes();
    // The interrupt that asks for a readout is taken where the program would go on.
    if (next && requested_ && current_ == &t && !in_os_) serve_readout(t);
    if (options_.limit_instructions != 0 && sums_.instructions >= options_.limit_instructions)
        stopped_ = sums_.limited = true;
}

/// The thread executes at `place` next, whatever the core did before.
void DpuRecorder::arrive(Thread& t, std::uint32_t place) {
    if (current_ == nullptr && !in_os_) {
        now_ = context_ = {false, t.id, t.id};
        id_before_ = t.id;
        interval_context_ = now_;
        interval_start_ = place;
        if (!first_) {
            first_ = Key{now_.supervisor, now_.pid, place};
            ++stays_[{now_.supervisor, now_.pid}];
        }
    } else if (current_ != &t && !in_os_) {
        enter_os(current_->last_pc, os_timer, dpu::InterruptCause::interrupt, "[timer]");
    } else if (!in_os_ && t.stands && *t.stands != place) {
        enter_os(t.last_pc, os_signal, dpu::InterruptCause::interrupt, "[signal]");
    }
    if (in_os_) leave_os(t, place);
    // Elsewhere than it was: whatever ran before does not run on.
    if (!t.stands || *t.stands != place) t.arrival = place;
    current_ = &t;
}

void DpuRecorder::execute(Thread& t, Block& block, std::uint32_t end) {
    std::vector<Watch> watches = block.watches;
    for (const Watchpoint& w : options_.watchpoints)
        for (const Access& a : t.accesses)
            if (a.index < end && w.address.value - a.address < a.bytes)
                watches.push_back({a.index, ItemKind::edca, w.channel});
    std::stable_sort(watches.begin(), watches.end(), [](const Watch& a, const Watch& b) { return a.index < b.index; });
    std::uint32_t first = 0;
    std::size_t access = 0;
    for (const Watch& w : watches) {
        if (w.index >= end) break;
        cost(block, first, w.index + 1, t, access);
        first = w.index + 1;
        const auto pc = static_cast<std::uint32_t>(block.code.address.value) + block.code.instructions[w.index].offset;
        ++total_.count[w.kind == ItemKind::mark ? mark : edca0 + w.channel];
        item({.kind = w.kind, .channel = w.channel, .after = now_, .src = pc});
    }
    cost(block, first, end, t, access);
    if (end != 0)
        t.last_pc = static_cast<std::uint32_t>(block.code.address.value) + block.code.instructions[end - 1].offset;
    sums_.instructions += end;
}

/// What instructions [first, end) of a block cost.
void DpuRecorder::cost(const Block& block, std::uint32_t first, std::uint32_t end, const Thread& t,
                       std::size_t& access) {
    if (first >= end) return;
    begin_cost();
    const CoreModel& core = options_.core;
    auto& n = total_.count;
    const std::uint64_t now = n[cycles];
    std::uint32_t at = 0;
    for (const auto& [line, instructions] : block.lines) {
        const std::uint32_t from = std::max(at, first), to = std::min(at + instructions, end);
        at += instructions;
        if (from >= to) continue;
        const Cache::Found found = icache_->access(line, false, now);
        n[ic_hit] += to - from - (found.hit ? 0U : 1U);
        if (found.hit) continue;
        ++n[ic_miss];
        n[ic_thrash] += found.thrash ? 1U : 0U;
        n[stall_prog] += core.miss_cycles;
        n[stall_all] += core.miss_cycles;
        n[cycles] += core.miss_cycles;
    }
    n[vles] += end - first;
    n[cycles] += end - first;
    for (; access < t.accesses.size() && t.accesses[access].index < end; ++access) {
        const Access& a = t.accesses[access];
        const std::uint32_t last = (a.address + a.bytes - 1) / core.line_bytes;
        for (std::uint32_t line = a.address / core.line_bytes;; ++line) {
            const Cache::Found found = dcache_->access(line, a.store, now);
            if (found.hit) {
                ++n[dc_hit];
            } else {
                ++n[dc_miss];
                n[dc_thrash] += found.thrash ? 1U : 0U;
                n[dc_wback] += found.wrote_back ? 1U : 0U;
                n[stall_data] += core.miss_cycles;
                n[stall_all] += core.miss_cycles;
                n[cycles] += core.miss_cycles;
            }
            if (line == last) break;
        }
    }
}

/// The item of a branch that led to `next`; none if it did not change the flow, or something else did.
std::optional<EonceItem> DpuRecorder::branch(const Thread& t, const Block& block, const CodeWaypoint& w,
                                             std::uint32_t next) const {
    const isa::Instruction& i = w.instruction;
    const auto pc = static_cast<std::uint32_t>(w.address.value), after = pc + i.bytes;
    EonceItem out{.after = now_, .src = pc, .dst = next};
    if (i.waypoint == isa::Waypoint::direct) {
        const auto target = static_cast<std::uint32_t>(i.target.value);
        if (next != target || (next == after && !i.link)) return std::nullopt;
        // A loop body that has just run straight through (13.2).
        const bool back = target <= pc && t.arrival <= target;
        if (i.link) {
            out.kind = ItemKind::call;
        } else if (back && options_.loops) {
            std::uint32_t body = 0;
            for (const CodeInstruction& each : block.code.instructions)
                body += block.code.address.value + each.offset >= target && block.code.address.value + each.offset <= pc
                            ? 1
                            : 0;
            const bool whole = target >= block.code.address.value;
            out.kind = whole && body <= options_.core.short_loop_max ? ItemKind::loop_short : ItemKind::loop_long;
        } else {
            out.kind = ItemKind::cof;
        }
        return out;
    }
    if (next == after && !i.link && (i.conditional || block.code.isa != isa::Isa::a32)) return std::nullopt;
    out.kind = i.link ? ItemKind::call : i.function_return ? ItemKind::ret : ItemKind::cof;
    return out;
}

/// The block ran to its end, and execution goes on at `next`.
void DpuRecorder::leave(Thread& t, const Block& block, std::optional<std::uint32_t> next) {
    const auto end = static_cast<std::uint32_t>(block.code.end().value);
    t.stands = end;
    if (block.code.waypoints.empty()) return;
    const CodeWaypoint& w = block.code.waypoints.back();
    if (w.index + 1 != block.code.instructions.size() || w.instruction.waypoint == isa::Waypoint::barrier) return;
    if (!next) {
        t.stands.reset();
        return;
    }
    const auto what = branch(t, block, w, *next);
    if (!what) {
        // Not taken, unless it led neither to its target nor on: then the system chose the place.
        if (w.instruction.waypoint == isa::Waypoint::direct && *next != end && !w.instruction.conditional)
            t.stands = static_cast<std::uint32_t>(w.instruction.target.value);
        return;
    }
    t.stands = *next;
    if (w.instruction.waypoint == isa::Waypoint::direct) t.expected = w.instruction.target_isa;
    if (what->kind != ItemKind::loop_short && what->kind != ItemKind::loop_long) {
        total_.count[stall_cof] += options_.core.flow_cycles;
        total_.count[stall_all] += options_.core.flow_cycles;
        total_.count[cycles] += options_.core.flow_cycles;
    }
    t.arrival = *next;
    item(*what);
}

void DpuRecorder::end_thread(Thread& t) {
    settle(t, std::nullopt);
    if (current_ == &t) {
        if (!in_os_) enter_os(t.last_pc, os_timer, dpu::InterruptCause::interrupt, "[timer]");
        current_ = nullptr;
    }
    if (t.id != last_id || !sums_.shared_id) free_ids_.push_back(t.id);
}

// ---- the operating system

void DpuRecorder::enter_os(std::uint32_t pc, std::uint32_t entry, dpu::InterruptCause cause, std::string name) {
    const std::uint32_t at = os_base + 16 * entry;
    os_symbols_.try_emplace(at, std::move(name));
    ++total_.count[cause == dpu::InterruptCause::interrupt ? interrupts : exceptions];
    item({.kind = ItemKind::interrupt, .cause = cause, .after = {true, now_.pid, now_.did}, .src = pc, .dst = at});
    in_os_ = true;
    os_exit_ = at + os_exit;
    begin_cost();
    for (const std::size_t each : {cycles, vles, ic_hit}) total_.count[each] += options_.core.os_cycles;
}

void DpuRecorder::leave_os(Thread& t, std::uint32_t place) {
    if (t.id != now_.pid) ++sums_.switches;
    item({.kind = ItemKind::rte, .after = {false, t.id, t.id}, .src = os_exit_, .dst = place});
    in_os_ = false;
}

// ---- readout in request mode

/// The request interrupts the core, and the buffer stays where it is: then the operating system reads it out.
bool DpuRecorder::reads_out() const {
    bool all = true;
    dpu::Registers registers;
    for (const dpu::RegisterWrite& w : *options_.program) {
        registers.set(w.offset, w.value);
        all &= w.cycle == 0 || (w.offset != dpu::DpTsa::offset && w.offset != dpu::DpTea::offset &&
                                w.offset != dpu::DpTw::offset && w.offset != dpu::DpMr::offset);
        if (w.offset == dpu::DpTc::offset && registers.tc.en)
            all &= registers.tc.vtb_mode() == dpu::VtbMode::trace_event_request;
    }
    const auto action = static_cast<dpu::Action>(programmed_.cr.detb);
    return all && programmed_.tc.vtb_mode() == dpu::VtbMode::trace_event_request && ring_ &&
           (action == dpu::Action::line_0 || action == dpu::Action::line_1);
}

/// An interrupt like any other; its service reads what is new, takes back the request and asks for the next half.
void DpuRecorder::serve_readout(const Thread& t) {
    enter_os(t.last_pc, os_readout, dpu::InterruptCause::interrupt, "[DPU readout]");
    read_out();
    const dpu::Registers r = model_->registers();
    dpu::DpMr clear;
    clear.drtb = clear.twrap = true;
    model_->write(dpu::DpMr::offset, to_value(clear));
    const std::uint32_t lines = r.tea.value - r.tsa.value + 1;
    const std::uint32_t line = (r.tw.value - r.tsa.value + lines / 2) % lines;
    model_->write(dpu::DpTer::offset, to_value(r.tsa) + line * line_bytes);
    requested_ = false;
    ++sums_.readouts;
}

void DpuRecorder::read_out() {
    const dpu::Registers r = model_->registers();
    const dpu::Readout::Piece piece = readout_->take(to_value(r.tw), r.mr.twrap);
    const Bytes bytes = ring_->bytes();
    if (piece.overrun || lines_ - read_lines_ > bytes.size() / line_bytes) {
        overruns_.push_back(read_bytes_);
        std::uint64_t kept = 0;
        for (const dpu::Stretch& s : piece.stretches) kept += s.bytes;
        written_before_.push_back(lines_ * line_bytes - kept);
        ++sums_.overruns;
    }
    read_lines_ = lines_;
    for (const dpu::Stretch& s : piece.stretches) {
        const Bytes part = bytes.subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.bytes));
        written_.insert(written_.end(), part.begin(), part.end());
        read_bytes_ += s.bytes;
    }
}

// ---- the unit

/// Something happens in the last cycle.
void DpuRecorder::item(EonceItem what) {
    switch (what.kind) {
        case ItemKind::call:
        case ItemKind::ret:
        case ItemKind::rte:
        case ItemKind::interrupt: {
            const bool changes = what.after != now_;
            end_interval(what.dst);
            now_ = interval_context_ = what.after;
            if (changes) ++stays_[{now_.supervisor, now_.pid}];
            break;
        }
        default: break;
    }
    if (options_.eonce.passes(what.kind)) {
        auto& [times, destinations] = changes_[std::uint64_t{what.src} << 8 | static_cast<std::uint64_t>(what.kind)];
        ++times;
        destinations += what.dst;
    }
    const bool own = what.kind == ItemKind::interrupt || what.kind == ItemKind::mark || what.kind == ItemKind::edca;
    // An item that only changes the context has to be given all the same.
    if (own || what.kind == ItemKind::rte || options_.eonce.passes(what.kind)) items_.push_back(what);
}

void DpuRecorder::end_interval(std::uint32_t start) {
    auto& [times, sum] = intervals_[{interval_context_.supervisor, interval_context_.pid, interval_start_}];
    ++times;
    sum += total_ - interval_;
    interval_ = total_;
    interval_start_ = start;
}

/// Before cycles are added: what belongs to the last one is given to the unit.
void DpuRecorder::begin_cost() {
    if (!items_.empty() || !writes_.empty()) advance();
    if (now_.pid != std::exchange(id_before_, now_.pid)) ++total_.count[task_switches];
}

namespace {

constexpr std::array seconds_of_a_cycle{vles, stall_prog, stall_data, stall_cof};

/// One cycle out of `rest`; `all`: with all that only happens. In a stretch where nothing looks at the counters the
/// order of its cycles is not seen.
void one_cycle(dpu::CycleInput& in, Happened& rest, bool last, bool all) {
    in.wire.fill(0);
    const auto take = [&](std::size_t what) {
        if (rest.count[what] == 0) return false;
        --rest.count[what];
        in.set(truth_wires[what], 1);
        if (what != vles) {
            --rest.count[stall_all];
            in.set(EventWire::stall_all, 1);
        }
        return true;
    };
    if (!(last && take(stall_cof)))
        for (const std::size_t what : seconds_of_a_cycle)
            if (take(what)) break;
    --rest.count[cycles];
    if (!all) return;
    for (const std::size_t what : {ic_hit, ic_miss, ic_thrash, dc_hit, dc_miss, dc_thrash, dc_wback})
        in.set(truth_wires[what], std::exchange(rest.count[what], 0));
}

void whole(dpu::CycleInput& in, const Happened& happened) {
    in.wire.fill(0);
    for (std::size_t i = vles; i <= dc_wback; ++i) in.set(truth_wires[i], happened.count[i]);
}

}  // namespace

/// Gives the unit what happened since the last call; items and writes belong to the last cycle of it.
void DpuRecorder::advance() {
    Happened rest = total_ - done_;
    done_ = total_;
    const std::uint64_t left = rest.count[cycles];
    dpu::CycleInput in;
    in.ctx = context_;
    const bool special = !items_.empty() || !writes_.empty();
    if (left == 0) return;
    const std::uint64_t stretch = left - (special ? 1 : 0);
    if (stretch != 0) {
        // The last cycle is the branch's, or a stall of it.
        Happened last = rest;
        if (special) {
            dpu::CycleInput unused;
            one_cycle(unused, rest, true, false);
        }
        whole(in, rest);
        if (const dpu::CycleOutput* out = model_->run(in, stretch)) {
            give(*out);
        } else {
            for (std::uint64_t i = 0; i < stretch; ++i) {
                one_cycle(in, rest, false, i == 0);
                give(model_->step(in));
            }
        }
        if (special) {
            one_cycle(in, last, true, false);
        }
    } else if (special) {
        one_cycle(in, rest, true, true);
    }
    if (!special) return;
    for (const auto& [offset, value] : writes_) model_->write(offset, value);
    writes_.clear();
    in.items = items_;
    give(model_->step(in));
    items_.clear();
    context_ = now_;
}

/// SAMPLE, and writes of the register program, where their time has come.
void DpuRecorder::due_writes() {
    const std::uint64_t now = total_.count[cycles];
    if (options_.sample_every != 0 && now >= next_sample_) {
        dpu::DpTc tc = from_value<dpu::DpTc>(model_->read(dpu::DpTc::offset));
        tc.sample = true;
        writes_.emplace_back(dpu::DpTc::offset, to_value(tc));
        next_sample_ = (now / options_.sample_every + 1) * options_.sample_every;
    }
    const dpu::RegisterProgram& program = *options_.program;
    for (; next_write_ < program.size() && program[next_write_].cycle <= now; ++next_write_)
        writes_.emplace_back(program[next_write_].offset, program[next_write_].value);
}

void DpuRecorder::give(const dpu::CycleOutput& out) {
    while (period_lines_.size() < model_->periods().size()) period_lines_.push_back(lines_);
    for (const dpu::Burst& burst : out.bursts) {
        lines_ += burst.lines;
        if (ring_) {
            (void)ring_->store(burst);
            requested_ |= readout_ && model_->registers().mr.drtb;
            continue;
        }
        for (const std::uint32_t word : burst.used())
            for (unsigned shift = 32; shift != 0;) written_.push_back(static_cast<std::uint8_t>(word >> (shift -= 8)));
    }
    nexus_.insert(nexus_.end(), out.nexus.begin(), out.nexus.end());
    sums_.nexus_bytes += out.nexus.size();
    sums_.errors.insert(sums_.errors.end(), out.errors.begin(), out.errors.end());
}

/// Counting ends, then tracing, and everything reaches the buffer.
void DpuRecorder::stop_unit() {
    for (auto& [number, t] : threads_) settle(t, std::nullopt);
    if (current_ != nullptr && !in_os_)
        enter_os(current_->last_pc, os_timer, dpu::InterruptCause::interrupt, "[timer]");
    const std::uint32_t tc = model_->read(dpu::DpTc::offset);
    if (options_.mode == dpu::TraceMode::sw_sample && total_.count[cycles] != 0) {
        dpu::DpTc sample = from_value<dpu::DpTc>(tc);
        sample.sample = true;
        writes_.emplace_back(dpu::DpTc::offset, to_value(sample));
    }
    advance();
    end_interval(0);
    // Where tracing was disabled before, what was counted since is in nobody's interval.
    stopped_registers_ = model_->registers();
    history_ = model_->counter_history();
    const auto& periods = model_->periods();
    const bool was_off = !periods.empty() && !stopped_registers_->tc.en && periods.back().final;
    final_ = was_off ? *periods.back().final : model_->values();
    counted_all_ = !periods.empty() && periods.front().cycle == 0 && !was_off;

    dpu::CycleInput in;
    in.ctx = context_;
    constexpr std::uint32_t disable = 0xfU << 24;
    for (const std::uint32_t offset :
         {dpu::DpTac::offset, dpu::DpTbc::offset, dpu::DpCa0c::offset, dpu::DpCa1c::offset, dpu::DpCa2c::offset,
          dpu::DpCb0c::offset, dpu::DpCb1c::offset, dpu::DpCb2c::offset})
        model_->write(offset, (model_->read(offset) & ~(0xfU << 16)) | disable);
    dpu::DpTc off = from_value<dpu::DpTc>(model_->read(dpu::DpTc::offset));
    off.en = false;
    model_->write(dpu::DpTc::offset, to_value(off));
    constexpr unsigned most = 100'000;
    for (unsigned i = 0; i < most; ++i) {
        give(model_->step(in));
        if (model_->idle()) break;
    }
    if (readout_) read_out();
}

// ---- the end

void DpuRecorder::fail(Error error) {
    if (!failure_) failure_ = std::move(error);
}

Status DpuRecorder::flush() {
    if (failure_) return *failure_;
    if (ring_ && !readout_) {
        const Bytes bytes = ring_->bytes();
        if (lseek(file_, 0, SEEK_SET) < 0 || !write_all(file_, bytes))
            fail(cannot("write", options_.folder / dpu_buffer_file));
    } else if (!write_all(file_, written_)) {
        fail(cannot("write", options_.folder / dpu_buffer_file));
    }
    if (nexus_file_ >= 0 && !write_all(nexus_file_, nexus_)) fail(cannot("write", options_.folder / dpu_nexus_file));
    written_.clear();
    nexus_.clear();
    if (failure_) return *failure_;
    return describe();
}

Status DpuRecorder::describe() {
    capture::DpuCapture c;
    c.layout = std::string(dpu::layout_name);
    c.buffer = options_.folder / dpu_buffer_file;
    if (nexus_file_ >= 0) c.nexus = options_.folder / dpu_nexus_file;
    dpu::Registers registers = model_->registers();
    if (stopped_registers_) {
        // As they were while the program ran: stopping wrote to them.
        const dpu::Registers& r = *stopped_registers_;
        registers.tac = r.tac;
        registers.tbc = r.tbc;
        registers.ca0c = r.ca0c;
        registers.ca1c = r.ca1c;
        registers.ca2c = r.ca2c;
        registers.cb0c = r.cb0c;
        registers.cb1c = r.cb1c;
        registers.cb2c = r.cb2c;
        const bool twba = registers.sr.twba;
        registers.sr = r.sr;
        registers.sr.twba = twba;
    }
    dpu::Registers::for_each(registers, [&](const auto& r) {
        if (r.offset < dpu::DpTd::offset) c.registers.push_back({std::string(r.name), to_value(r), {}});
    });
    const auto& periods = model_->periods();
    if (!periods.empty()) {
        c.initial = periods.front().initial;
        const dpu::CoreContext& context = periods.front().context;
        c.initial_context = capture::DpuContext{context.supervisor, context.pid, context.did};
    }
    if (periods.size() > 1)
        for (std::size_t i = 0; i < periods.size(); ++i) {
            const dpu::TracePeriod& p = periods[i];
            const capture::DpuContext context{p.context.supervisor, p.context.pid, p.context.did};
            c.periods.push_back({p.tw, p.tc, context, period_lines_[i]});
        }
    if (final_) c.final = *final_;
    if (const auto& filters = model_->filters(); filters.size() > 1)
        for (const dpu::FilterChange& f : filters)
            c.filters.push_back({f.words, f.idflt, f.tids, f.tidcm, f.rpid, f.rdid,
                                 nexus_file_ >= 0 ? std::optional(f.nexus_bytes) : std::nullopt});
    const dpu::CounterHistory history = history_.value_or(model_->counter_history());
    c.history = capture::DpuCounterHistory{history.partial, history.changed, history.rewritten};
    c.readout = readout_.has_value();
    c.overruns = overruns_;
    c.lines_written = model_->counts().lines_written;
    std::vector<std::string>& classes = c.eonce_classes.emplace();
    const dpu::EonceSetup& e = options_.eonce;
    for (const auto& [on, name] : {std::pair{e.tchof, "TCHOF"},
                                   {e.tint, "TINT"},
                                   {e.texec, "TEXEC"},
                                   {e.tmark, "TMARK"},
                                   {e.tloop, "TLOOP"},
                                   {e.tsub, "TSUB"},
                                   {e.trte, "TRTE"}})
        if (on) classes.emplace_back(name);
    c.eonce_counters = 0;
    std::vector<std::string>& driven = c.driven.emplace();
    for (const EventWire wire : driven_wires()) driven.emplace_back(dpu::name(wire));
    // Messages are what is read where nothing went to the buffer.
    describe_code(c, modules_by_message_ && registers.tc.nexus_mode() == dpu::NexusMode::only);
    c.parameters.emplace_back("program", ini_text(fmt::format("{}", fmt::join(options_.command, " "))));
    c.parameters.emplace_back("ended", ini_text(ended_));
    c.parameters.emplace_back("cycles", "modelled, as are caches and stalls");
    c.parameters.emplace_back("pid_and_did", "equal");
    for (const auto& [id, numbers] : threads_of_id_)
        c.parameters.emplace_back(fmt::format("task{}", id), fmt::format("thread {}", fmt::join(numbers, " and ")));
    CoreModel::for_each(options_.core, [&](const char* name, std::uint32_t value, const char*) {
        c.parameters.emplace_back(name, std::to_string(value));
    });
    return capture::write_dpu_folder(c, options_.folder);
}

/// Which programs and libraries lay where, and when.
void DpuRecorder::describe_code(capture::DpuCapture& c, bool by_message) const {
    c.modules = by_message ? modules_by_message_->map() : modules_.map();
    c.modules.clock = capture::trace_bytes_clock;
    for (capture::Module& m : c.modules.modules) {
        if (by_message) break;
        m.from = place_in_file(m.from);
        if (m.to) m.to = place_in_file(*m.to);
    }
    for (const MappedImage& image : images_) {
        c.images.push_back({image.copy, image.load_bias});
        capture::CopiedFile copied{image.copy.filename().string(), image.build_id, image.file};
        if (image.copy.parent_path() == options_.folder &&
            std::find(c.modules.copies.begin(), c.modules.copies.end(), copied) == c.modules.copies.end())
            c.modules.copies.push_back(std::move(copied));
    }
    for (const auto& [address, name] : os_symbols_) {
        c.symbols.push_back({address, name});
        c.symbols.push_back({address + os_exit, name + " exit"});
    }
}

/// Where the file has what the unit wrote after so many bytes; of what was overwritten unread, where that is missing.
std::uint64_t DpuRecorder::place_in_file(std::uint64_t written) const {
    std::uint64_t out = written;
    for (std::size_t i = 0; i < overruns_.size(); ++i) {
        if (written < written_before_[i]) return std::min(out, overruns_[i]);
        out = overruns_[i] + (written - written_before_[i]);
    }
    return out;
}

/// Tracing was on in one mode from the first instruction to the last.
bool DpuRecorder::traces_all() const {
    dpu::DpTc first = programmed_.tc;
    if (model_->periods().size() != 1 || model_->filters().size() != 1 || !first.en || first.tmpdis) return false;
    return std::all_of(options_.program->begin(), options_.program->end(), [&](const dpu::RegisterWrite& w) {
        if (w.offset != dpu::DpTc::offset || w.cycle == 0) return true;
        auto tc = from_value<dpu::DpTc>(w.value);
        tc.sample = first.sample;
        return tc == first;
    });
}

/// The counter counted its event from the first instruction to the last, whoever ran.
bool DpuRecorder::counts_all(unsigned counter) const {
    const dpu::DpTac control = control_of(programmed_, counter);
    const bool always = control.tenm == static_cast<std::uint8_t>(dpu::Selector::immediate) && control.tdm == 0 &&
                        control.cegp == 0 && control.cmode == static_cast<std::uint8_t>(dpu::CounterMode::trace);
    return always && std::all_of(options_.program->begin(), options_.program->end(), [](const dpu::RegisterWrite& w) {
               return w.cycle == 0 || w.offset < dpu::DpTac::offset || w.offset > dpu::DpCb2v::offset;
           });
}

std::string DpuRecorder::truth_text() const {
    std::string out = "# What truly happened, counted beside the unit. Cycles, stalls and caches are modelled.\n";
    out += fmt::format("complete {}\nended {}\n", ended_ == whole_run ? "yes" : "no", ini_text(ended_));
    out +=
        "# whether the unit traced from the first instruction to the last; counters that counted so long, and what\n";
    out += fmt::format("traced {}\n", traces_all() ? "whole" : "part");
    out += "# whether the counters' first and last values in the capture are of these, too\n";
    out += fmt::format("counted {}\ncounters", counted_all_ ? "whole" : "part");
    for (unsigned i = 0; i < dpu::counter_count; ++i) {
        const dpu::DpTac control = control_of(programmed_, i);
        const EventWire wire =
            control.ceg < dpu::event_sets ? dpu::event_set(control.ceg)[i % dpu::counters_per_triad] : EventWire::none;
        out += counts_all(i) && wire != EventWire::none ? fmt::format(" {}", dpu::name(wire)) : " -";
    }
    out += "\nwires";
    for (const EventWire wire : truth_wires) out += fmt::format(" {}", dpu::name(wire));
    const auto counts = [](const Happened& h) { return fmt::format("{}", fmt::join(h.count, " ")); };
    out += fmt::format("\ntotal {}\n", counts(total_));
    std::map<std::pair<bool, std::uint8_t>, Happened> contexts;
    for (const auto& [key, value] : intervals_) contexts[{key.supervisor, key.id}] += value.second;
    out += "# context, its stays: uninterrupted, the first included\n";
    for (const auto& [key, sum] : contexts) {
        const auto stays = stays_.find(key);
        out += fmt::format("context {} {} {}\n", context_text({key.first, key.second, 0}),
                           stays == stays_.end() ? 0 : stays->second, counts(sum));
    }
    if (first_)
        out += fmt::format("first {} {:#010x}\n", context_text({first_->supervisor, first_->id, 0}), first_->start);
    out +=
        "# from where a call, return, interrupt or return from one led to the next such change: context, address, "
        "times\n";
    for (const auto& [key, value] : intervals_)
        out += fmt::format("interval {} {:#010x} {} {}\n", context_text({key.supervisor, key.id, 0}), key.start,
                           value.first, counts(value.second));
    out += "# what the EOnCE traced: kind, source, times, sum of the destinations\n";
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> changes(changes_.begin(), changes_.end());
    for (const auto& [key, value] : changes)
        out += fmt::format("change {} {:#010x} {} {:#x}\n", kind_name(static_cast<ItemKind>(key & 0xff)), key >> 8,
                           value.first, value.second);
    // Each block has the names of the file it ran from, wherever others lay before or after it.
    std::map<std::size_t, image::Symbols> symbols;
    const auto symbol_at = [&](const Block& block) -> std::optional<image::SymbolOffset> {
        const auto image = image_of_.find(block.module);
        if (image == image_of_.end()) return std::nullopt;
        const auto [at, fresh] = symbols.try_emplace(image->second);
        const MappedImage& from = images_[image->second];
        if (fresh) (void)at->second.add_elf(from.copy, from.load_bias);
        return at->second.find(block.code.address);
    };
    std::map<std::pair<std::uint64_t, std::string>, Happened> functions;
    for (const Block& block : blocks_) {
        if (block.happened.count[cycles] == 0) continue;
        const auto found = symbol_at(block);
        const auto key = found && found->symbol.kind == image::SymbolKind::function
                             ? std::pair(found->symbol.address.value, std::string(found->symbol.linkage_name))
                             : std::pair(block.code.address.value, std::string("?"));
        functions[key] += block.happened;
    }
    out += "# by where the instructions lie: address, name\n";
    for (const auto& [key, sum] : functions)
        out += fmt::format("code {:#010x} {} {}\n", key.first, key.second, counts(sum));
    for (const auto& [id, datum] : user_data_) out += fmt::format("user-data {} {:#010x}\n", id, datum);
    return out;
}

Status DpuRecorder::finish(std::string_view ended) {
    if (finished_) return Nothing{};
    finished_ = true;
    ended_ = ended;
    if (!failure_) {
        stop_unit();
        WM_RETURN_IF_ERROR(flush());
    }
    if (failure_) return *failure_;
    const fs::path path = options_.folder / dpu_truth_file;
    std::ofstream truth(path);
    truth << truth_text();
    if (!truth.flush()) return cannot("write", path);
    return Nothing{};
}

void DpuRecorder::discard() {
    finished_ = true;
    remove_dpu_recording(options_.folder);
    std::error_code error;
    if (made_folder_ && fs::is_empty(options_.folder, error)) fs::remove(options_.folder, error);
}

DpuRecorded DpuRecorder::recorded() const {
    DpuRecorded out = sums_;
    out.cycles = total_.count[cycles];
    out.lines = model_->counts().lines_written;
    out.lost = model_->counts().lost;
    out.entries = model_->counts().entries;
    if (ring_ && !readout_) out.buffer = ring_->bytes().size() / line_bytes;
    return out;
}

}  // namespace waymark::record
