#include "waymark/record_spe/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "operation.h"
#include "profiled_cpu.h"
#include "profiler_options.h"
#include "waymark/core/numbers.h"
#include "waymark/record/definition_parts.h"
#include "waymark/record/mapped_file.h"
#include "waymark/spe/architecture.h"

namespace waymark::record {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// The distance by which a thread may run ahead of another.
constexpr std::uint64_t slice_cycles = 50;
/// Maximum number of chunks that wait for a silent thread; after that, they no longer wait for it.
constexpr std::size_t most_held = 256;
constexpr unsigned page_bits = 12;
constexpr std::uint64_t jitter_bit = 1U << 16;

/// The published name of a register of the unit, without aliases.
std::string_view name_of(A64Register reg) {
    switch (reg) {
        case A64Register::pmscr_el1:
        case A64Register::pmscr_el12: return "PMSCR_EL1";
        case A64Register::pmscr_el2: return "PMSCR_EL2";
        case A64Register::pmsfcr_el1: return "PMSFCR_EL1";
        case A64Register::pmsevfr_el1: return "PMSEVFR_EL1";
        case A64Register::pmsnevfr_el1: return "PMSNEVFR_EL1";
        case A64Register::pmslatfr_el1: return "PMSLATFR_EL1";
        case A64Register::pmsdsfr_el1: return "PMSDSFR_EL1";
        case A64Register::pmsirr_el1: return "PMSIRR_EL1";
        case A64Register::pmsicr_el1: return "PMSICR_EL1";
        case A64Register::pmblimitr_el1: return "PMBLIMITR_EL1";
        case A64Register::pmbptr_el1: return "PMBPTR_EL1";
        case A64Register::pmbsr_el1: return "PMBSR_EL1";
        default: return "";
    }
}

/// The address of an access of a system: words have its bits up to 52.
std::uint64_t extended(std::uint64_t address) {
    constexpr std::uint64_t top = std::uint64_t{1} << 52;
    return (address & top) == 0 ? address : address | ~(top - 1);
}

/// How often the contents of a unit's buffer are written out, in the model's time.
constexpr std::uint64_t flushes_per_second = 20;

}  // namespace

struct Profiler::Cpu {
    Cpu(std::uint32_t number, const ProfilerOptions& options, CounterRatio counter, std::uint64_t now)
        : unit(number, options, counter), flushed(now) {}
    ProfiledCpu unit;
    std::uint64_t flushed;  ///< cycle
    const Thread* who = nullptr;
};

// ---- Profiler

Profiler::Profiler(ProfilerOptions options)
    : options_(std::move(options)),
      machine_(options_.machine),
      conversion_(conversion_of(options_.machine.counter_hz)),
      counter_(options_.machine.counter_ratio()),
      cpus_(options_.machine.cpus),
      threads_on_(options_.machine.cpus) {}

Profiler::~Profiler() = default;

Result<std::unique_ptr<Profiler>> Profiler::create(ProfilerOptions options) {
    WM_RETURN_IF_ERROR(check(options));
    WM_ASSIGN_OR_RETURN(std::unique_ptr<RecordedPerfFile> file,
                        RecordedPerfFile::create(options.file, attributes(options)));
    std::unique_ptr<Profiler> profiler(new Profiler(std::move(options)));
    Profiler& p = *profiler;
    p.file_ = std::move(file);
    p.file_->writer().time_conversion(p.conversion_);
    p.file_->writer().auxtrace_info(auxtrace_info(p.options_));
    p.check_file();
    if (p.failure_) return *p.failure_;
    return profiler;
}

std::uint64_t Profiler::ticks(std::uint64_t cycle) const {
    // One second after the start of the machine: to perf, time 0 means "before everything".
    __extension__ using Wide = unsigned __int128;
    return options_.machine.counter_hz +
           static_cast<std::uint64_t>(Wide{cycle} * counter_.numerator / counter_.denominator);
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
    for_each_part(parts, [&](const DefinitionPart& part) {
        BlockPart block;
        MapPart map;
        ThreadPart thread;
        if (part.is(block))
            define_block(block, part.after(block).data());
        else if (part.is(map))
            define_map(map, part.name(map));
        else if (part.is(thread))
            define_thread(thread, part.name(thread));
    });
}

void Profiler::define_block(const BlockPart& part, const std::uint8_t* code) {
    if (!may_follow(part.id, blocks_.size())) return;
    if (part.id >= blocks_.size()) {
        // Threads keep pointers to its elements.
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
        // HINT #17; DSB with any domain.
        constexpr std::uint32_t psb_csync = 0xd503223f, dsb = 0xd503309f, domain = 0xf00;
        if (word == psb_csync) block.psb_csync.push_back(static_cast<std::uint16_t>(offset / 4));
        if ((word & ~domain) == dsb) block.dsb.push_back(static_cast<std::uint16_t>(offset / 4));
    }
}

void Profiler::define_map(const MapPart& part, std::string_view name) {
    // Code may be translated before its thread has identified itself.
    if (program_pid_ == 0) {
        early_maps_.emplace_back(part, name);
        return;
    }
    file_->mapped(part, name, {.pid = program_pid_, .tid = program_pid_, .time = time(now()), .attr = tracking_attr});
}

void Profiler::define_thread(const ThreadPart& part, std::string_view name) {
    if (options_.system) return;  // these are threads of QEMU
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
        file_->writer().task(comm, at(t, machine_.cycle(t.cpu), tracking_attr));
        return;
    }
    introduce(t);
    for (const auto& [map, file] : std::exchange(early_maps_, {})) define_map(map, file);
}

/// A new thread gets a CPU, and its perf records are written.
void Profiler::introduce(Thread& t) {
    ++sums_.threads;
    const auto least = options_.system ? threads_on_.begin() + (t.number - 1)
                                       : std::min_element(threads_on_.begin(), threads_on_.end());
    t.cpu = static_cast<std::uint32_t>(least - threads_on_.begin());
    ++*least;
    t.running = true;
    machine_.wait(t.cpu, now_);
    const std::uint64_t when = machine_.cycle(t.cpu);
    std::string program = options_.command.empty() ? "program" : fs::path(options_.command.front()).filename().string();
    t.name = program.substr(0, 15);
    if (t.tid != t.pid)
        file_->writer().task({perf::TaskEvent::Kind::fork, t.pid, t.tid, t.pid, t.pid, time(when), {}},
                             at(t, when, tracking_attr));
    else
        file_->writer().task({perf::TaskEvent::Kind::exec, t.pid, t.tid, 0, 0, 0, t.name}, at(t, when, tracking_attr));
    file_->writer().itrace_start(t.pid, t.tid, at(t, when, spe_attr));
}

Profiler::Cpu& Profiler::cpu(std::uint32_t number) {
    std::unique_ptr<Cpu>& c = cpus_[number];
    if (c) return *c;
    ++sums_.cpus;
    c = std::make_unique<Cpu>(number, options_, counter_, machine_.cycle(number));
    return *c;
}

void Profiler::write_out(Cpu& c, bool last) {
    const std::uint64_t cycle = machine_.cycle(c.unit.number());
    sums_.trace_bytes += c.unit.write_out(file_->writer(), at(*c.who, cycle, spe_attr), cycle, last);
    c.flushed = cycle;
    check_file();
}

// ---- execution

void Profiler::execution(std::uint32_t number, std::span<const std::uint32_t> chunk) {
    if (stopped_ || failure_ || chunk.empty()) return;
    Thread& t = thread(number);
    if (!t.running && t.chunks.empty()) machine_.wait(t.cpu, now_);
    // The plugin queues a chunk when it is full, and before system calls.
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
    if (options_.system) t.tid = number;
    introduce(t);
    if (options_.system && program_pid_ == 0) map_system_image();
    return t;
}

/// Runs available chunks, always of the thread with the earliest time. If that thread has no chunk yet, waits for it,
/// unless `all` is true or too many chunks would have to wait.
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

/// Executes available chunks of a thread until its time reaches `until`.
void Profiler::run(Thread& t, std::uint64_t until) {
    Cpu& c = cpu(t.cpu);
    if (c.who != &t) {
        c.who = &t;
        if (!options_.system) c.unit.model().set_context(0, t.tid);
    }
    while (!t.chunks.empty()) {
        const std::vector<std::uint32_t>& chunk = t.chunks.front();
        const std::size_t size = chunk.size();
        while (t.at < size) {
            const std::uint32_t word = chunk[t.at++];
            if ((word & words::access_mask) == words::access) {
                if (t.at == size) break;
                const std::uint64_t high = word & words::access_high_mask;
                std::uint64_t address = high << 32 | chunk[t.at++], physical = 0;
                if (options_.system) {
                    address = extended(address);
                    const auto page = t.pages.find(address >> page_bits);
                    physical = page == t.pages.end() ? address >> page_bits : page->second;
                }
                t.accesses.push_back({word >> words::access_index_bit & words::access_index_mask, address, physical});
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
            } else if (options_.system) {
                system_word(t, word);
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
    // Writes the unit's contents while they are still known to belong to the thread.
    if (cpus_[t.cpu] && cpus_[t.cpu]->who == &t) write_out(*cpus_[t.cpu], false);
    file_->writer().task({perf::TaskEvent::Kind::exit, t.pid, t.tid, t.pid, t.pid, time(when), {}},
                         at(t, when, tracking_attr));
}

void Profiler::settle(Thread& t, std::optional<Address> next, std::optional<Address> stopped_at) {
    if (t.open == nullptr) {
        t.accesses.clear();
        take_effect(t);
        return;
    }
    const Block& block = *t.open;
    t.open = nullptr;
    auto stop = static_cast<std::uint32_t>(block.instructions.size());
    if (stopped_at && *stopped_at >= block.address && *stopped_at < block.address + stop * std::uint64_t{4}) {
        stop = static_cast<std::uint32_t>((*stopped_at - block.address) / 4);
        ++sums_.not_completed;
    }
    // If an access that the instruction must make is missing, execution stopped before the instruction.
    std::size_t a = 0;
    for (const std::uint16_t must : block.must_access) {
        if (must >= stop) break;
        while (a < t.accesses.size() && t.accesses[a].index < must) ++a;
        if (a < t.accesses.size() && t.accesses[a].index == must) continue;
        stop = must;
        ++sums_.not_completed;
        break;
    }
    execute(t, block, stop, next);
    t.accesses.clear();
    take_effect(t);
}

bool Profiler::is_taken(const Block& block, const isa::A64Instruction& last, Address next) const {
    return !last.conditional || next != block.address + block.instructions.size() * 4;
}

/// Passes all accesses of an instruction through the caches. `from` is advanced past the instruction's accesses.
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

/// An instruction that makes samples reach memory (docs/spec/spe.md, 1.7).
void Profiler::barrier(Thread& t, const Block& block, std::uint32_t index) {
    Cpu& c = *cpus_[t.cpu];
    const auto is = [&](const std::vector<std::uint16_t>& places) {
        return std::find(places.begin(), places.end(), index) != places.end();
    };
    if (is(block.psb_csync)) {
        ++sums_.barriers;
        c.unit.model().psb_csync();
        if (c.unit.model().pmbirq()) write_out(c, false);
    }
    if (is(block.dsb)) c.unit.model().dsb();
}

void Profiler::execute(Thread& t, const Block& block, std::uint32_t stop, std::optional<Address> next) {
    if (stop == 0) return;
    spe::Model& model = cpus_[t.cpu]->unit.model();
    sums_.instructions += stop;
    if (options_.system) sums_.levels[model.registers().pstate.el & 3U] += stop;
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
    const bool barriers = !block.psb_csync.empty() || !block.dsb.empty();
    if (model.until_next() >= stop && !barriers) {
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
                    if (options_.system)
                        e.access->physical = Address{t.accesses[first].physical << page_bits |
                                                     (address.value & ((std::uint64_t{1} << page_bits) - 1))};
                    else if (options_.spe.pa_enable)
                        e.access->physical = machine_.physical(address);
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
                if (model.pmbirq()) {
                    ++sums_.interrupts;
                    write_out(*cpus_[t.cpu], false);
                }
            }
            if (barriers) barrier(t, block, index);
        }
    }
    Cpu& c = *cpus_[t.cpu];
    if (machine_.cycle(t.cpu) - c.flushed > options_.machine.hz / flushes_per_second) write_out(c, false);
    if (options_.limit_instructions != 0 && sums_.instructions >= options_.limit_instructions) stopped_ = true;
}

// ---- a system

void Profiler::map_system_image() {
    program_pid_ = 1;
    std::error_code error;
    const std::string path = fs::absolute(options_.command.front(), error).string();
    for (const MappedFile::Part& part : read_mapped_file(path).executable) {
        MapPart map;
        map.address = part.address;
        map.bytes = part.bytes;
        map.file_offset = part.offset;
        // Readers look for samples of EL0 in the process, and for others in the kernel.
        for (const std::uint32_t pid : {program_pid_, perf::nobody})
            file_->mapped(map, path, {.pid = pid, .tid = pid, .time = time(now()), .attr = tracking_attr});
    }
}

void Profiler::change_event() {
    for (const auto& c : cpus_)
        if (c) c->unit.notice_programming();
    const auto programmed = profiled().programmed;
    const auto most = std::max_element(programmed.begin(), programmed.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (!options_.system || most == programmed.end()) return;
    const ProgrammedEvent& event = most->first;
    perf::Attr attr = attributes(options_).front();
    constexpr std::uint64_t contents = 7;  // timestamps and physical addresses are not about which operations
    attr.sample_period = event.period;
    attr.config = (attr.config & contents) | event.config;
    attr.config1 = event.config1;
    attr.config2 = event.config2;
    // Without room for these fields, the part of the run states them.
    if (attr.config3 != 0) attr.config3 = event.config3;
    if (attr.config4 != 0) attr.config4 = event.config4;
    file_->writer().change_attr(0, attr);
}

void Profiler::system_word(Thread& t, std::uint32_t word) {
    switch (word & words::kind_mask) {
        case words::exception:
        case words::written:
        case words::page:
            t.word = word;
            t.halves.clear();
            break;
        case words::half: {
            t.halves.push_back(word & words::value_mask);
            const std::uint32_t kind = t.word & words::kind_mask;
            if (t.halves.size() == (kind == words::exception ? 10U : kind == words::page ? 8U : 4U)) take_halves(t);
            break;
        }
        case words::state: t.state = word & words::value_mask; break;
        default: break;
    }
}

void Profiler::take_halves(Thread& t) {
    const auto wide = [&](std::size_t at) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 4; ++i) value |= std::uint64_t{t.halves[at + i]} << 16 * i;
        return value;
    };
    switch (t.word & words::kind_mask) {
        case words::page: t.pages[wide(0)] = wide(4); break;
        case words::written:
            t.written.push_back({static_cast<A64Register>(t.word & (words::unread - 1)),
                                 (t.word & words::unread) != 0 ? std::nullopt : std::optional(wide(0))});
            break;
        default: {
            const Address back{wide(0)};
            // Where the program wrote a register that QEMU lacks, the exception is QEMU's: the instruction executed.
            const bool lacks = !t.written.empty() && is_unknown_to_qemu(t.written.back().first);
            settle(t, back, lacks ? std::nullopt : std::optional(back));
            change_state(t, t.halves[8]);
        }
    }
    t.halves.clear();
}

void Profiler::take_effect(Thread& t) {
    if (!options_.system) return;
    for (const auto& [reg, value] : std::exchange(t.written, {})) write_register(t, reg, value);
    if (t.state) change_state(t, *std::exchange(t.state, std::nullopt));
}

void Profiler::change_state(Thread& t, std::uint32_t bits) {
    const auto el = static_cast<std::uint8_t>((bits & words::el_mask) >> words::el_bit);
    cpu(t.cpu).unit.model().change(machine_.cycle(t.cpu), [&](spe::State& s) {
        s.regs.pstate.el = el;
        if ((bits & words::ns_known) != 0 && el != spe::EL3) s.regs.scr_el3.ns = (bits & words::ns) != 0;
    });
}

void Profiler::write_register(Thread& t, A64Register reg, std::optional<std::uint64_t> value) {
    ProfiledCpu& unit = cpu(t.cpu).unit;
    const spe::Registers& now = unit.model().registers();
    const bool host = now.pstate.el == spe::EL2 && now.hcr_el2.e2h;  // names of EL1's registers mean EL2's
    const auto set = [&](std::string_view name) {
        unit.model().change(machine_.cycle(t.cpu), [&](spe::State& s) { s.regs.set(name, *value); });
    };
    if (!value && !is_unknown_to_qemu(reg)) {
        ++sums_.registers_unread;
        return;
    }
    switch (reg) {
        case A64Register::none:
        case A64Register::vttbr_el2: return;
        case A64Register::contextidr_el1:
        case A64Register::contextidr_el12:
        case A64Register::contextidr_el2: {
            const bool el2 = reg == A64Register::contextidr_el2 || (reg == A64Register::contextidr_el1 && host);
            (el2 ? t.context_el2 : t.context_el1) = static_cast<std::uint32_t>(*value);
            return unit.model().set_context(t.context_el1, t.context_el2);
        }
        case A64Register::scr_el3: return set("SCR_EL3");
        case A64Register::hcr_el2: return set("HCR_EL2");
        case A64Register::mdcr_el2: return set("MDCR_EL2");
        case A64Register::mdcr_el3: return set("MDCR_EL3");
        default: break;
    }
    const std::string_view name = host && reg == A64Register::pmscr_el1 ? "PMSCR_EL2" : name_of(reg);
    const spe::Decision<spe::SysRegAccess> access = spe::check_register_access(unit.model().state(), name);
    if (access.value != spe::SysRegAccess::OK) {
        if (sums_.registers_refused++ == 0)
            sums_.refused =
                fmt::format("{} at EL{}: {} ({})", name, now.pstate.el, spe::name(access.value), access.why.text);
        return;
    }
    if (!value) {
        ++sums_.registers_unread;
        return;
    }
    ++sums_.registers_written;
    unit.notice_programming();
    set(name);
    if (reg == A64Register::pmbptr_el1) unit.restarts_at(Address{*value});
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
        p.cycles = std::max(p.cycles, machine_.cycle(c->unit.number()));
        const spe::ModelCounts& counts = c->unit.model().counts();
        p.chosen += counts.chosen;
        p.outside += counts.outside;
        for (const auto& [event, chosen] : c->unit.programmed()) p.programmed[event] += chosen;
        for (std::size_t i = 0; i < spe::fate_count; ++i) p.fates[i] += counts.fates[i];
    }
    return p;
}

perf::RecordedPart Profiler::recorded_part(const Profiled& p, bool complete) const {
    perf::RecordedPart out;
    if (stopped_)
        out.ends = fmt::format("after {} (--limit)", counted(options_.limit_instructions, "instruction"));
    else if (!complete)
        out.ends = "before the program did, or still goes on";
    if (!options_.system) return out;
    std::set<std::uint64_t> intervals;
    std::set<ProgrammedEvent> filters;
    for (const auto& [event, chosen] : p.programmed) {
        intervals.insert(event.period);
        ProgrammedEvent filter = event;
        filter.period = 0;
        filter.config &= ~std::uint64_t{jitter_bit};
        filters.insert(filter);
    }
    if (intervals.size() > 1) out.intervals.assign(intervals.begin(), intervals.end());
    const auto add = [&](const std::string& clause) { out.left_out += (out.left_out.empty() ? "" : ", ") + clause; };
    if (p.outside != 0) add(fmt::format("profiling off for {}", counted(p.outside, "operation")));
    if (filters.size() > 1) add("filters that changed");
    const auto inverse = [](const ProgrammedEvent& f) { return (f.config3 | f.config4) != 0; };
    if (filters.size() <= 1 && std::any_of(filters.begin(), filters.end(), inverse))
        add("events or data sources of PMSNEVFR_EL1 or PMSDSFR_EL1");
    return out;
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
        change_event();
        const Status finished = file_->finish({.arch = "aarch64",
                                               .midr = options_.machine.midr,
                                               .cpus = options_.machine.cpus,
                                               .pmus = {{arm_spe_pmu, "arm_spe_0"}},
                                               .command = options_.command,
                                               .part = recorded_part(profiled(), complete)});
        if (!finished) failure_ = finished.error();
    }
    if (failure_) return *failure_;
    return file_->finish_with_truth(to_text(profiled(), options_, complete));
}

}  // namespace waymark::record
