#include "waymark/record_spe/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <utility>

namespace waymark::record {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// Type numbers of PMUs are given by the running kernel; this one is as good as any.
constexpr std::uint32_t pmu_type = 10;
constexpr std::size_t spe_attr = 0, dummy_attr = 1;

/// How far a thread runs ahead of another before that one goes on.
constexpr std::uint64_t slice_cycles = 50;
/// Chunks that wait for a thread of which nothing comes, before it is waited for no more.
constexpr std::size_t most_held = 256;
/// What is in a unit's buffer is written out after so much of the model's time.
constexpr std::uint64_t flushes_per_second = 20;

std::vector<perf::Attr> attributes(const ProfilerOptions& options) {
    perf::Attr spe;
    spe.type = pmu_type;
    spe.config = options.spe.config();
    spe.config1 = options.spe.event_filter;
    spe.config2 = options.spe.min_latency;
    spe.config3 = options.spe.inv_event_filter;
    spe.config4 = options.spe.inv_data_src_filter;
    spe.sample_period = options.spe.period & ~0xffU;
    spe.ids = {1};
    spe.name = "arm_spe_0//u";
    like_tracking_event(spe);
    return {spe, tracking_event({2})};
}

perf::AuxtraceInfo info_of(const ProfilerOptions& options) {
    perf::AuxtraceInfo info{.type = perf::AuxtraceInfo::arm_spe};
    constexpr std::uint64_t per_cpu = 1, min_interval = 256;
    if (options.info_version == 1) {
        info.words = {pmu_type, per_cpu};
        return info;
    }
    info.words = {2, 4, pmu_type, options.machine.cpus};
    constexpr std::uint64_t magic = 0x1010101010101010;
    for (std::uint32_t cpu = 0; cpu < options.machine.cpus; ++cpu)
        info.words.insert(info.words.end(), {magic, cpu, 3, options.machine.midr, pmu_type, min_interval});
    return info;
}

spe::Operation operation_of(const isa::A64Instruction& i) {
    using Kind = spe::Operation::Kind;
    spe::Operation o;
    o.conditional = i.conditional;
    o.indirect = i.indirect;
    o.floating_point = i.floating_point;
    o.simd = i.simd;
    if (i.kind == isa::A64Class::branch) {
        o.kind = Kind::branch;
        using Call = spe::Operation::Call;
        o.call = i.link ? Call::call : i.function_return ? Call::procedure_return : Call::neither;
        return o;
    }
    if (i.kind == isa::A64Class::other) {
        o.kind = i.sve ? Kind::sve : Kind::other;
        return o;
    }
    o.store = i.kind == isa::A64Class::store;
    o.load = !o.store;
    o.acquire_release = i.acquire_release;
    o.exclusive = i.exclusive;
    o.atomic = i.atomic;
    o.predicated = i.predicated;
    o.gather_scatter = i.gather_scatter;
    switch (i.data) {
        case isa::A64Data::general:
            o.kind = i.acquire_release || i.exclusive || i.atomic ? Kind::extended : Kind::general;
            break;
        case isa::A64Data::simd_fp: o.kind = Kind::simd_fp; break;
        case isa::A64Data::sve:
        case isa::A64Data::sme: o.kind = Kind::sve_memory; break;
        case isa::A64Data::tag: o.kind = Kind::allocation_tag; break;
        case isa::A64Data::copy: o.kind = Kind::memory_copy; break;
        case isa::A64Data::set: o.kind = Kind::memory_set; break;
    }
    return o;
}

}  // namespace

// ---- options

std::uint64_t SpeOptions::config() const {
    return std::uint64_t{ts_enable} | std::uint64_t{pa_enable} << 1 | std::uint64_t{jitter} << 16 |
           std::uint64_t{branch_filter} << 32 | std::uint64_t{load_filter} << 33 | std::uint64_t{store_filter} << 34 |
           std::uint64_t{discard} << 35 | std::uint64_t{branch_filter_mask} << 36 |
           std::uint64_t{load_filter_mask} << 37 | std::uint64_t{store_filter_mask} << 38 |
           std::uint64_t{simd_filter} << 39 | std::uint64_t{simd_filter_mask} << 40 |
           std::uint64_t{float_filter} << 41 | std::uint64_t{float_filter_mask} << 42;
}

namespace {

/// The unit of a version: bits that are nobody's are not filtered by.
spe::Architecture unit_of(spe::Version version) {
    spe::Architecture arch = spe::Architecture::of(version);
    arch.own_events = 0;
    arch.sve = version > spe::Version::v1_0;
    return arch;
}

}  // namespace

spe::Version SpeOptions::version() const {
    spe::Version least = spe::Version::v1_0;
    if (discard || inv_event_filter != 0) least = spe::Version::v1_2;
    if (inv_data_src_filter != 0 || extended_types()) least = spe::Version::v1_4;
    constexpr std::array all{spe::Version::v1_0, spe::Version::v1_1, spe::Version::v1_2, spe::Version::v1_3,
                             spe::Version::v1_4};
    for (const spe::Version version : all)
        if (version >= least && ((event_filter | inv_event_filter) & ~filterable_events(unit_of(version))) == 0)
            return version;
    return spe::Version::v1_4;
}

Status set_from_event(SpeOptions& options, std::string_view event) {
    const std::string_view all = event;
    const auto wrong = [&](std::string what) {
        return Error{Errc::usage,
                     fmt::format("{}: {}; expected such as arm_spe/load_filter=1,min_latency=30/", all, what)};
    };
    const auto slash = event.find('/');
    const std::string_view unit = event.substr(0, slash);
    if (unit != "arm_spe" && unit != "arm_spe_0") return wrong(fmt::format("{} is not arm_spe", unit));
    event = slash == event.npos ? std::string_view{} : event.substr(slash + 1);
    const auto end = event.find('/');
    if (slash != all.npos && end == event.npos) return wrong("a second / is missing");
    if (end != event.npos && event.substr(end + 1) != "" && event.substr(end + 1) != "u")
        return wrong(fmt::format("/{}: only what the program itself executes (u) is there", event.substr(end + 1)));
    event = event.substr(0, end == event.npos ? 0 : end);
    while (!event.empty()) {
        const auto comma = event.find(',');
        const std::string_view term = event.substr(0, comma);
        event = comma == event.npos ? std::string_view{} : event.substr(comma + 1);
        const auto equals = term.find('=');
        const std::string_view name = term.substr(0, equals);
        std::uint64_t value = 1;
        if (equals != term.npos) {
            std::string_view digits = term.substr(equals + 1);
            const int base = digits.starts_with("0x") ? 16 : 10;
            if (base == 16) digits.remove_prefix(2);
            const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
            if (error != std::errc{} || rest != digits.data() + digits.size() || digits.empty())
                return wrong(fmt::format("{} is not a number", term.substr(equals + 1)));
        }
        bool found = false, fits = true;
        std::string names;
        SpeOptions::for_each(options, [&](std::string_view each, auto& field, const char*) {
            names += (names.empty() ? "" : ", ") + std::string(each);
            if (each != name) return;
            found = true;
            using Field = std::remove_reference_t<decltype(field)>;
            fits = value <= std::numeric_limits<Field>::max();
            if (fits) field = static_cast<Field>(value);
        });
        if (name == "period" && value <= std::numeric_limits<std::uint32_t>::max()) {
            options.period = static_cast<std::uint32_t>(value);
            continue;
        }
        if (!found) return wrong(fmt::format("no term {}; there are {}, period", name, names));
        if (!fits) return wrong(fmt::format("{} = {} is too large", name, value));
    }
    return Nothing{};
}

Status check(const SpeOptions& options) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (options.period < 256)
        return wrong(fmt::format("period {}: an interval has at least 256 operations", options.period));
    if (options.min_latency > 4095) return wrong(fmt::format("min_latency {}: at most 4095", options.min_latency));
    const std::uint64_t filterable = filterable_events(unit_of(options.version()));
    for (const auto& [name, events] :
         {std::pair{"event_filter", options.event_filter}, {"inv_event_filter", options.inv_event_filter}})
        if ((events & ~filterable) != 0)
            return wrong(
                fmt::format("{} {:#x}: no version of SPE up to v1.4 filters by the events {:#x}; it can by {:#x}", name,
                            events, events & ~filterable, filterable));
    if ((options.event_filter & options.inv_event_filter) != 0)
        return wrong(fmt::format("event_filter and inv_event_filter both have {:#x}, which no operation can satisfy",
                                 options.event_filter & options.inv_event_filter));
    return Nothing{};
}

Status check(const ProfilerOptions& options) {
    WM_RETURN_IF_ERROR(check(options.spe));
    WM_RETURN_IF_ERROR(check(options.machine));
    if (options.info_version != 1 && options.info_version != 2)
        return Error{Errc::usage, fmt::format("--info-version {}: AUXTRACE_INFO of Arm SPE has versions 1 and 2",
                                              options.info_version)};
    constexpr std::uint64_t least = 8192, most = 1U << 30;
    if (options.aux_bytes < least || options.aux_bytes > most || (options.aux_bytes & (page_bytes - 1)) != 0)
        return Error{Errc::usage, fmt::format("a buffer of {} bytes: whole pages, from {} to {} bytes",
                                              options.aux_bytes, least, most)};
    return Nothing{};
}

std::string to_text(const Profiled& p, const ProfilerOptions& options, bool complete) {
    std::string text = "# What really executed, and what became of the samples.\n";
    const auto line = [&](std::string_view name, const auto& value) { text += fmt::format("{} {}\n", name, value); };
    line("complete", complete ? "yes" : "no");
    line("period", options.spe.period & ~0xffU);
    line("unit", "modelled");
    line("threads", p.threads);
    line("cpus", p.cpus);
    line("operations", p.instructions);
    constexpr std::array<const char*, 5> classes{"other", "loads", "stores", "load-atomics", "branches"};
    for (std::size_t i = 0; i < classes.size(); ++i) line(std::string("operations.") + classes[i], p.classes[i]);
    line("branches.conditional-taken", p.taken);
    line("branches.conditional-not-taken", p.not_taken);
    line("not-completed", p.not_completed);
    line("modelled.mispredicted", p.mispredicted);
    line("modelled.cycles", p.cycles);
    line("samples.chosen", p.chosen);
    for (std::size_t i = 0; i < spe::fate_count; ++i)
        line(fmt::format("samples.{}", name(static_cast<spe::Fate>(i))), p.fates[i]);
    line("trace-bytes", p.trace_bytes);
    return text;
}

struct Profiler::Cpu {
    Cpu(std::uint32_t n, const ProfilerOptions& options)
        : number(n), buffer(Address{0x10'0000'0000 + (std::uint64_t{n} << 32)}, options.aux_bytes) {}
    std::uint32_t number;
    spe::ProfilingBuffer buffer;
    std::unique_ptr<spe::Model> model;
    std::uint64_t ring = 0;     ///< position in the AUX ring
    std::uint64_t flushed = 0;  ///< cycle
    const Thread* who = nullptr;
};

// ---- Profiler

Profiler::Profiler(ProfilerOptions options)
    : options_(std::move(options)),
      machine_(options_.machine),
      conversion_(conversion_of(options_.machine.counter_hz)),
      cpus_(options_.machine.cpus),
      threads_on_(options_.machine.cpus) {
    const std::uint64_t divisor = std::gcd(options_.machine.counter_hz, options_.machine.hz);
    counter_numerator_ = options_.machine.counter_hz / divisor;
    counter_denominator_ = options_.machine.hz / divisor;
}

Profiler::~Profiler() = default;

Result<std::unique_ptr<Profiler>> Profiler::create(ProfilerOptions options) {
    WM_RETURN_IF_ERROR(check(options));
    WM_ASSIGN_OR_RETURN(std::unique_ptr<RecordedPerfFile> file,
                        RecordedPerfFile::create(options.file, attributes(options)));
    std::unique_ptr<Profiler> profiler(new Profiler(std::move(options)));
    Profiler& p = *profiler;
    p.file_ = std::move(file);
    p.file_->writer().time_conversion(p.conversion_);
    p.file_->writer().auxtrace_info(info_of(p.options_));
    p.check_file();
    if (p.failure_) return *p.failure_;
    return profiler;
}

std::uint64_t Profiler::ticks(std::uint64_t cycle) const {
    // A second into the life of the machine: time 0 is perf's word for "before everything".
    __extension__ using Wide = unsigned __int128;
    return options_.machine.counter_hz +
           static_cast<std::uint64_t>(Wide{cycle} * counter_numerator_ / counter_denominator_);
}
std::uint64_t Profiler::time(std::uint64_t cycle) const { return conversion_.to_ns(ticks(cycle)); }

perf::PerfWriter::At Profiler::at(const Thread& t, std::uint64_t cycle, std::size_t attr) const {
    return {.pid = t.pid, .tid = t.tid, .cpu = t.cpu, .time = time(cycle), .attr = attr};
}

std::uint64_t Profiler::now() const {
    std::uint64_t earliest = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [number, t] : threads_)
        if (!t.ended && (t.running || !t.chunks.empty())) earliest = std::min(earliest, machine_.cycle(t.cpu));
    return std::min(earliest, now_);
}

// ---- definitions

void Profiler::definitions(std::span<const std::uint32_t> parts) {
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
        if (kind == PartKind::block && size >= sizeof(BlockPart)) {
            BlockPart part;
            std::memcpy(&part, bytes, sizeof part);
            if (sizeof part + part.code_bytes <= size && part.id <= words::max_block)
                define_block(part, bytes + sizeof part);
        } else if (kind == PartKind::map && size >= sizeof(MapPart)) {
            MapPart part;
            std::memcpy(&part, bytes, sizeof part);
            define_map(part, text(sizeof part, part.name_bytes));
        } else if (kind == PartKind::thread && size >= sizeof(ThreadPart)) {
            ThreadPart part;
            std::memcpy(&part, bytes, sizeof part);
            define_thread(part, text(sizeof part, part.name_bytes));
        }
        parts = parts.subspan(words);
    }
}

void Profiler::define_block(const BlockPart& part, const std::uint8_t* code) {
    // The plugin counts; what is far off did not come from it.
    constexpr std::size_t ahead = 1 << 16;
    if (part.id > blocks_.size() + ahead) return;
    if (part.id >= blocks_.size()) {
        // Threads keep pointers into it.
        std::vector<std::optional<std::uint32_t>> open;
        for (auto& [number, t] : threads_)
            open.push_back(t.open == nullptr ? std::nullopt
                                             : std::optional(static_cast<std::uint32_t>(t.open - blocks_.data())));
        blocks_.resize(std::max<std::size_t>(part.id + 1, blocks_.size() * 2));
        std::size_t i = 0;
        for (auto& [number, t] : threads_) {
            t.open = open[i] ? &blocks_[*open[i]] : nullptr;
            ++i;
        }
    }
    Block& block = blocks_[part.id];
    block = {};
    block.address = Address{part.address};
    for (std::uint32_t offset = 0; offset + 4 <= part.code_bytes; offset += 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, code + offset, 4);
        const isa::A64Instruction& i = block.instructions.emplace_back(isa::decode_a64(word));
        ++block.classes[static_cast<std::size_t>(i.kind)];
        block.memory.push_back({i.access_bytes, i.kind == isa::A64Class::store ? MachineSimulation::Kind::store
                                                : i.kind == isa::A64Class::load_atomic
                                                    ? MachineSimulation::Kind::atomic
                                                    : MachineSimulation::Kind::load});
        if (i.must_access) block.must_access.push_back(static_cast<std::uint16_t>(offset / 4));
    }
}

void Profiler::define_map(const MapPart& part, std::string_view name) {
    // Code is translated before the thread that runs it has said who it is.
    if (program_pid_ == 0) {
        early_maps_.emplace_back(part, name);
        return;
    }
    file_->mapped(part, name, {.pid = program_pid_, .tid = program_pid_, .time = time(now()), .attr = dummy_attr});
}

void Profiler::define_thread(const ThreadPart& part, std::string_view name) {
    const bool known = threads_.contains(part.thread);
    Thread& t = threads_[part.thread];
    t.number = part.thread;
    t.pid = part.pid;
    t.tid = part.tid;
    if (program_pid_ == 0) program_pid_ = part.pid;
    if (known) {
        if (name.empty()) return;
        t.name = name;
        const perf::TaskEvent comm{perf::TaskEvent::Kind::comm, t.pid, t.tid, 0, 0, 0, t.name};
        file_->writer().task(comm, at(t, machine_.cycle(t.cpu), dummy_attr));
        return;
    }
    introduce(t);
    for (const auto& [map, file] : std::exchange(early_maps_, {})) define_map(map, file);
}

/// A thread appears: it gets a CPU, and perf learns of it.
void Profiler::introduce(Thread& t) {
    ++sums_.threads;
    const auto least = std::min_element(threads_on_.begin(), threads_on_.end());
    t.cpu = static_cast<std::uint32_t>(least - threads_on_.begin());
    ++*least;
    t.running = true;
    machine_.wait(t.cpu, now_);
    const std::uint64_t when = machine_.cycle(t.cpu);
    std::string program = options_.command.empty() ? "program" : fs::path(options_.command.front()).filename().string();
    t.name = program.substr(0, 15);
    if (t.tid != t.pid)
        file_->writer().task({perf::TaskEvent::Kind::fork, t.pid, t.tid, t.pid, t.pid, time(when), {}},
                             at(t, when, dummy_attr));
    else
        file_->writer().task({perf::TaskEvent::Kind::exec, t.pid, t.tid, 0, 0, 0, t.name}, at(t, when, dummy_attr));
    file_->writer().itrace_start(t.pid, t.tid, at(t, when, spe_attr));
}

Profiler::Cpu& Profiler::cpu(std::uint32_t number) {
    std::unique_ptr<Cpu>& c = cpus_[number];
    if (c) return *c;
    ++sums_.cpus;
    c = std::make_unique<Cpu>(number, options_);
    // A Neoverse N1 is v1.0 and has no SVE; what else is modelled has it, and v1.1 is the first that reports it.
    constexpr std::uint64_t part = 0xff00fff0, neoverse_n1 = 0x4100d0c0;
    const spe::Version least = (options_.machine.midr & part) == neoverse_n1 ? spe::Version::v1_0 : spe::Version::v1_1;
    const spe::Version version = std::max(options_.spe.version(), least);
    spe::ModelConfig config = spe::ModelConfig::linux_user(version, options_.spe.period, c->buffer);
    config.choices = spe::ModelChoices::neoverse();
    if (version > spe::Version::v1_0) config.state.arch.own_events = 0;
    config.state.arch.sve = version > spe::Version::v1_0;
    if (version >= spe::Version::v1_4) {
        // Events above 15 are recorded, which makes records longer.
        config.choices.event_bytes = 4;
        config.state.regs.pmsidr_el1.max_size = 7;
        config.state.arch.eft = config.state.regs.pmsidr_el1.eft = options_.spe.extended_types();
    }
    config.choices.seed = options_.seed + number;
    config.choices.counter_first = options_.machine.counter_hz;
    config.choices.counter_numerator = static_cast<std::uint32_t>(counter_numerator_);
    config.choices.counter_denominator = static_cast<std::uint32_t>(counter_denominator_);
    const SpeOptions& o = options_.spe;
    spe::Registers& r = config.state.regs;
    r.pmsirr_el1.rnd = o.jitter;
    r.pmscr_el2.ts = o.ts_enable;
    r.pmscr_el2.pa = o.pa_enable;
    r.pmsfcr_el1.b = o.branch_filter;
    r.pmsfcr_el1.ld = o.load_filter;
    r.pmsfcr_el1.st = o.store_filter;
    r.pmsfcr_el1.ft = o.branch_filter || o.load_filter || o.store_filter;
    r.pmsfcr_el1.fe = o.event_filter != 0;
    r.pmsfcr_el1.fl = o.min_latency != 0;
    if (o.extended_types()) {
        r.pmsfcr_el1.ft = true;
        r.pmsfcr_el1.simd = o.simd_filter;
        r.pmsfcr_el1.fp = o.float_filter;
        r.pmsfcr_el1.b_m = o.branch_filter_mask;
        r.pmsfcr_el1.ld_m = o.load_filter_mask;
        r.pmsfcr_el1.st_m = o.store_filter_mask;
        r.pmsfcr_el1.simd_m = o.simd_filter_mask;
        r.pmsfcr_el1.fp_m = o.float_filter_mask;
    }
    r.pmsfcr_el1.fn_e = o.inv_event_filter != 0;
    r.set("PMSNEVFR_EL1", o.inv_event_filter);
    r.pmsfcr_el1.fds = o.inv_data_src_filter != 0;
    if (o.inv_data_src_filter != 0) r.set("PMSDSFR_EL1", ~o.inv_data_src_filter);
    constexpr std::uint8_t discard_mode = 0b10;
    if (o.discard) r.pmblimitr_el1.fm = discard_mode;
    r.set("PMSEVFR_EL1", o.event_filter);
    r.set("PMSLATFR_EL1", o.min_latency);
    c->model = std::make_unique<spe::Model>(config, c->buffer);
    c->flushed = machine_.cycle(number);
    return *c;
}

/// What the unit's buffer holds goes to the file, as the driver does at an interrupt; and profiling goes on.
void Profiler::write_out(Cpu& c, bool last) {
    const std::uint64_t cycle = machine_.cycle(c.number);
    spe::Model& model = *c.model;
    const spe::Registers before = model.registers();
    model.drain(cycle);
    const bool collided = model.registers().pmbsr_el1.coll;
    const Bytes trace = c.buffer.written(model.pointer());
    const Thread& who = *c.who;
    if (!trace.empty() || collided) {
        perf::Chunk chunk;
        chunk.ring = c.ring;
        chunk.reference = c.number;
        chunk.index = chunk.cpu = c.number;
        if (!trace.empty()) file_->writer().auxtrace(chunk, trace);
        perf::AuxRange range;
        range.offset = c.ring;
        range.bytes = trace.size();
        range.flags = collided ? perf::AuxRange::collision : 0;
        file_->writer().aux(range, at(who, cycle, spe_attr));
        sums_.trace_bytes += trace.size();
        c.ring += trace.size();
    }
    c.flushed = cycle;
    if (!last)
        model.change(cycle, [&](spe::State& s) {
            s.regs.pmscr_el1 = before.pmscr_el1;
            s.regs.pmscr_el2 = before.pmscr_el2;
            s.regs.pmbsr_el1 = {};
            s.regs.pmbptr_el1.ptr = c.buffer.base().value;
            s.regs.pmblimitr_el1 = before.pmblimitr_el1;
        });
    check_file();
}

// ---- execution

void Profiler::execution(std::uint32_t number, std::span<const std::uint32_t> chunk) {
    if (stopped_ || failure_ || chunk.empty()) return;
    Thread& t = thread(number);
    if (!t.running && t.chunks.empty()) machine_.wait(t.cpu, now_);
    // The plugin hands a chunk over when it is full, and before system calls.
    t.running = chunk.size() + 1 >= Chunk::capacity;
    t.chunks.emplace_back(chunk.begin(), chunk.end());
    ++held_;
    schedule(false);
}

Profiler::Thread& Profiler::thread(std::uint32_t number) {
    const auto found = threads_.find(number);
    if (found != threads_.end()) return found->second;
    Thread& t = threads_[number];
    t.number = number;
    t.pid = t.tid = program_pid_ == 0 ? 1 : program_pid_;
    introduce(t);
    return t;
}

/// Runs what is here, always the thread whose time is earliest. Where nothing of that one is here yet, it waits, unless
/// `all`, or too much would have to wait.
void Profiler::schedule(bool all) {
    while (!stopped_ && !failure_) {
        Thread* first = nullptr;
        Thread* ready = nullptr;
        std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
        for (auto& [number, t] : threads_) {
            if (t.ended || (!t.running && t.chunks.empty())) continue;
            const std::uint64_t cycle = machine_.cycle(t.cpu);
            if (first == nullptr || cycle < machine_.cycle(first->cpu)) {
                if (first != nullptr) next = machine_.cycle(first->cpu);
                first = &t;
            } else {
                next = std::min(next, cycle);
            }
            if (!t.chunks.empty() && (ready == nullptr || cycle < machine_.cycle(ready->cpu))) ready = &t;
        }
        if (ready == nullptr) return;
        if (first != ready && !all && held_ < most_held) return;
        const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - slice_cycles;
        run(*ready, first == ready ? std::min(next, most) + slice_cycles : machine_.cycle(ready->cpu) + slice_cycles);
    }
}

/// Executes what is here of a thread until its time has come that far.
void Profiler::run(Thread& t, std::uint64_t until) {
    Cpu& c = cpu(t.cpu);
    if (c.who != &t) {
        c.who = &t;
        c.model->set_context(0, t.tid);
    }
    while (!t.chunks.empty()) {
        const std::vector<std::uint32_t>& chunk = t.chunks.front();
        const std::size_t size = chunk.size();
        while (t.at < size) {
            const std::uint32_t word = chunk[t.at++];
            if ((word & words::access_mask) == words::access) {
                if (t.at == size) break;
                const std::uint64_t high = word & words::access_high_mask;
                t.accesses.push_back(
                    {word >> words::access_index_bit & words::access_index_mask, high << 32 | chunk[t.at++]});
            } else if (word != 0 && word <= words::max_block) {
                const Block* const block = word < blocks_.size() ? &blocks_[word] : nullptr;
                settle(t, block == nullptr ? std::nullopt : std::optional(block->address));
                t.open = block;
                if (stopped_ || failure_) return;
                if (machine_.cycle(t.cpu) >= until) {
                    now_ = machine_.cycle(t.cpu);
                    if (t.at == size) break;
                    return;
                }
            } else if ((word & words::kind_mask) == words::system_call) {
                settle(t, std::nullopt);
                machine_.wait(t.cpu, machine_.cycle(t.cpu) + options_.machine.system_call_cycles);
            } else if ((word & words::kind_mask) == words::thread_end) {
                settle(t, std::nullopt);
                end(t);
            }
        }
        t.chunks.pop_front();
        t.at = 0;
        --held_;
        now_ = machine_.cycle(t.cpu);
        if (now_ >= until) return;
    }
}

void Profiler::end(Thread& t) {
    if (t.ended) return;
    t.ended = true;
    --threads_on_[t.cpu];
    const std::uint64_t when = machine_.cycle(t.cpu);
    // What is in the unit is the thread's, while it is still known.
    if (cpus_[t.cpu] && cpus_[t.cpu]->who == &t) write_out(*cpus_[t.cpu], false);
    file_->writer().task({perf::TaskEvent::Kind::exit, t.pid, t.tid, t.pid, t.pid, time(when), {}},
                         at(t, when, dummy_attr));
}

void Profiler::settle(Thread& t, std::optional<Address> next) {
    if (t.open == nullptr) {
        t.accesses.clear();
        return;
    }
    const Block& block = *t.open;
    t.open = nullptr;
    auto stop = static_cast<std::uint32_t>(block.instructions.size());
    // Where an access is missing that the instruction must make, execution left in front of it.
    std::size_t a = 0;
    for (const std::uint16_t must : block.must_access) {
        while (a < t.accesses.size() && t.accesses[a].index < must) ++a;
        if (a < t.accesses.size() && t.accesses[a].index == must) continue;
        stop = must;
        ++sums_.not_completed;
        break;
    }
    execute(t, block, stop, next);
    t.accesses.clear();
}

bool Profiler::is_taken(const Block& block, const isa::A64Instruction& last, Address next) const {
    return !last.conditional || next != block.address + block.instructions.size() * 4;
}

/// All accesses of an instruction, in the caches. `from`: its first; behind its last afterwards.
std::optional<Accessed> Profiler::accesses(Thread& t, Memory memory, std::uint32_t index, std::size_t& from) {
    const std::size_t first = from;
    while (from < t.accesses.size() && t.accesses[from].index == index) ++from;
    if (first == from) return std::nullopt;
    if (memory.bytes != 0) return machine_.access(t.cpu, Address{t.accesses[first].address}, memory.bytes, memory.kind);
    Accessed slowest;
    for (std::size_t a = first; a < from; ++a) {
        const Accessed one = machine_.access(t.cpu, Address{t.accesses[a].address}, 1, memory.kind);
        const std::uint64_t events = slowest.events | one.events;
        if (one.cycles >= slowest.cycles) slowest = one;
        slowest.events = events;
    }
    return slowest;
}

void Profiler::execute(Thread& t, const Block& block, std::uint32_t stop, std::optional<Address> next) {
    if (stop == 0) return;
    spe::Model& model = *cpus_[t.cpu]->model;
    sums_.instructions += stop;
    const bool whole = stop == block.instructions.size();
    const isa::A64Instruction& last = block.instructions.back();
    const bool branches = whole && last.kind == isa::A64Class::branch && next.has_value();
    if (whole)
        for (std::size_t i = 0; i < sums_.classes.size(); ++i) sums_.classes[i] += block.classes[i];
    else
        for (std::uint32_t i = 0; i < stop; ++i) ++sums_.classes[static_cast<std::size_t>(block.instructions[i].kind)];
    if (branches && last.conditional) ++(is_taken(block, last, *next) ? sums_.taken : sums_.not_taken);
    const auto branch = [&] {
        if (!branches) return false;
        const bool wrong =
            machine_.branch(t.cpu, block.address + (stop - 1) * 4, last, is_taken(block, last, *next), *next);
        sums_.mispredicted += wrong ? 1 : 0;
        return wrong;
    };
    std::size_t a = 0;
    if (model.until_next() >= stop) {
        std::uint32_t done = 0;
        const std::size_t count = t.accesses.size();
        while (a < count && t.accesses[a].index < stop) {
            const Access& access = t.accesses[a];
            const Memory memory = block.memory[access.index];
            if (memory.bytes != 0 && machine_.is_quick(t.cpu, Address{access.address}, memory.bytes, memory.kind)) {
                for (++a; a < count && t.accesses[a].index == access.index;) ++a;
                continue;
            }
            machine_.dispatch(t.cpu, std::max(access.index, done) - done);
            done = std::max(access.index, done);
            accesses(t, memory, access.index, a);
        }
        machine_.dispatch(t.cpu, stop - done);
        branch();
        model.skip(stop);
    } else {
        for (std::uint32_t index = 0; index < stop; ++index) {
            const isa::A64Instruction& i = block.instructions[index];
            const std::uint64_t cycle = machine_.cycle(t.cpu);
            const std::size_t first = a;
            while (a < t.accesses.size() && t.accesses[a].index < index) ++a;
            const std::optional<Accessed> accessed = accesses(t, block.memory[index], index, a);
            machine_.dispatch(t.cpu, 1);
            const bool wrong = index + 1 == stop && branch();
            if (model.until_next() != 0) {
                model.skip(1);
            } else {
                const auto work = static_cast<std::size_t>(i.work);
                spe::Executed e;
                e.pc = block.address + index * 4;
                e.cycle = cycle;
                e.operation = operation_of(i);
                e.issue_latency = options_.machine.issue[work];
                e.total_latency = e.issue_latency + (accessed ? accessed->cycles : options_.machine.execute[work]);
                if (accessed && (e.operation.load || e.operation.store)) {
                    e.events |= accessed->events;
                    e.translation_latency = accessed->translation;
                    const Address address{t.accesses[first].address};
                    e.access = spe::Access{.address = address};
                    if (options_.spe.pa_enable) e.access->physical = machine_.physical(address);
                    if (i.kind != isa::A64Class::store) e.data_source = accessed->source;
                }
                if (i.kind == isa::A64Class::branch) {
                    if (wrong) e.events |= spe::event::mispredict;
                    const Address target = next.value_or(e.pc + 4);
                    e.target.address = target;
                    e.condition_failed = i.conditional && branches && !is_taken(block, i, target);
                }
                if (i.system_call) e.events |= spe::event::exception;
                model.retire(e);
                if (model.pmbirq()) write_out(*cpus_[t.cpu], false);
            }
        }
    }
    Cpu& c = *cpus_[t.cpu];
    if (machine_.cycle(t.cpu) - c.flushed > options_.machine.hz / flushes_per_second) write_out(c, false);
    if (options_.limit_instructions != 0 && sums_.instructions >= options_.limit_instructions) stopped_ = true;
}

// ---- the end

void Profiler::check_file() {
    if (failure_) return;
    if (const Status status = file_->status(); !status) failure_ = status.error();
}

Status Profiler::flush() {
    if (const Status status = file_->flush(); !status && !failure_) failure_ = status.error();
    if (failure_) return *failure_;
    return Nothing{};
}

Profiled Profiler::profiled() const {
    Profiled p = sums_;
    for (const auto& c : cpus_) {
        if (!c) continue;
        p.cycles = std::max(p.cycles, machine_.cycle(c->number));
        const spe::ModelCounts& counts = c->model->counts();
        p.chosen += counts.chosen;
        for (std::size_t i = 0; i < spe::fate_count; ++i) p.fates[i] += counts.fates[i];
    }
    return p;
}

Status Profiler::finish(bool complete) {
    if (!failure_) {
        schedule(true);
        for (auto& [number, t] : threads_) {
            settle(t, std::nullopt);
            if (cpus_[t.cpu] && !t.ended) end(t);
        }
        for (const auto& c : cpus_)
            if (c) write_out(*c, true);
        file_->writer().finished_round();
        const Status finished = file_->finish({.arch = "aarch64",
                                               .midr = options_.machine.midr,
                                               .cpus = options_.machine.cpus,
                                               .pmus = {{pmu_type, "arm_spe_0"}},
                                               .command = options_.command});
        if (!finished) failure_ = finished.error();
    }
    if (failure_) return *failure_;
    std::ofstream truth(perf_truth_file(options_.file));
    truth << to_text(profiled(), options_, complete);
    if (!truth.flush())
        return Error{Errc::unreadable, fmt::format("cannot write {}", perf_truth_file(options_.file).string())};
    return Nothing{};
}

}  // namespace waymark::record
