#include "waymark/record_dpu/dpu.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "dpu_cache.h"
#include "dpu_wires.h"
#include "driven_unit.h"
#include "recorded_images.h"
#include "waymark/core/file_error.h"
#include "waymark/image/system_calls.h"
#include "waymark/record/definition_parts.h"
#include "waymark/record/files.h"
#include "waymark/record/truth.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {

namespace fs = std::filesystem;
using namespace happened;
using dpu::EonceItem;
using dpu::ItemKind;

namespace {

constexpr std::uint32_t os_signal = 1, os_timer = 2, os_first_call = 3, os_last_call = 1019, os_line_0 = 1020,
                        os_readout = 1023;
constexpr std::uint8_t first_id = 2, last_id = 255;

/// Recorded programs are for 32-bit Arm.
std::string system_call_name(std::uint32_t number) {
    const std::string_view name = image::SystemCall{number, false}.name();
    return name.empty() ? std::to_string(number) : std::string(name);
}

bool write_all(int file, Bytes bytes) { return write_some(file, bytes) == bytes.size(); }

}  // namespace

// ---- begin

DpuRecorder::DpuRecorder(DpuOptions options, bool nexus)
    : options_(std::move(options)),
      unit_(std::make_unique<DrivenUnit>(options_, first_id)),
      images_(std::make_unique<RecordedImages>(options_.folder, nexus)),
      icache_(std::make_unique<DpuCache>(options_.core.icache_kib, options_.core)),
      dcache_(std::make_unique<DpuCache>(options_.core.dcache_kib, options_.core)) {
    for (unsigned id = first_id; id <= last_id; ++id) free_ids_.push_back(static_cast<std::uint8_t>(id));
}

DpuRecorder::~DpuRecorder() {
    for (const int file : {file_, nexus_file_})
        if (file >= 0) close(file);
    if (!finished_) discard();
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
    WM_ASSIGN_OR_RETURN(const bool aside, set_recordings_aside(folder));
    bool nexus = false;
    options.each_write([&](const dpu::RegisterWrite& w) {
        nexus |= w.offset == dpu::DpTc::offset && from_value<dpu::DpTc>(w.value).nxmode != 0;
    });
    std::unique_ptr<DpuRecorder> recorder(new DpuRecorder(std::move(options), nexus));
    recorder->lock_ = std::move(lock);
    recorder->made_folder_ = made;
    recorder->earlier_aside_ = aside;
    recorder->sums_.replaced = replaced;
    const auto create = [&](const char* name) {
        return open((folder / name).c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    };
    if ((recorder->file_ = create(dpu_buffer_file)) < 0) return cannot("create", folder / dpu_buffer_file);
    if (nexus && (recorder->nexus_file_ = create(dpu_nexus_file)) < 0) return cannot("create", folder / dpu_nexus_file);
    WM_RETURN_IF_ERROR(recorder->describe());
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
    for_each_part(parts, [&](const DefinitionPart& part) {
        BlockPart block;
        MapPart map;
        UnmapPart unmap;
        StillMappedPart still_mapped;
        if (part.is(block) && may_follow(block.id, blocks_.size())) {
            if (block.id >= blocks_.size()) blocks_.resize(block.id + 1);
            blocks_[block.id] = {};
            blocks_[block.id].module = images_->module_at({block.address});
            blocks_[block.id].definition = part.definition(block);
        } else if (part.is(map)) {
            images_->mapped(map, part.name(map), *unit_);
        } else if (part.is(unmap)) {
            images_->unmapped(unmap, *unit_);
        } else if (part.is(still_mapped)) {
            images_->still_mapped(still_mapped, *unit_);
        }
    });
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
            if (w.overlaps(at, 1)) block.watches.push_back({i, ItemKind::edca, w.channel});
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
                        unit_->write(dpu::DpTd::offset, datum);
                        user_data_.emplace_back(t.id, datum);
                        ++sums_.user_data;
                    }
                    break;
                case words::thread_end: end_thread(t); break;
                default: break;
            }
        }
    }
    if (unit_->written().size() >= write_bytes) {
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
    // The branch that led here is not yet in the trace, so the code at its target counts from here on.
    images_->ran(block.module, *unit_);
    const auto address = static_cast<std::uint32_t>(block.code.address.value);
    arrive(t, address);
    const Happened before = unit_->total();
    execute(t, block, end);
    t.accesses.clear();
    t.isa = block.code.isa;
    t.expected.reset();
    if (size == 0) {
        // A helper of the kernel, which QEMU emulates.
        t.stands = next;
        if (next) unit_->item({.kind = ItemKind::ret, .after = unit_->now(), .src = address, .dst = *next});
    } else if (end != size) {
        t.stands = address + block.code.instructions[end].offset;
    } else {
        leave(t, block, next);
    }
    block.happened += unit_->total() - before;
    unit_->due_writes();
    if (unit_->has_effects() && current_ == &t && !in_os_) unit_->catch_up();
    // An interrupt is taken before the next instruction of the program: first the interrupt of a readout, then line 0,
    // line 1, and debug requests. Further interrupts stay pending until the program continues.
    const auto may_take = [&] { return next && current_ == &t && !in_os_; };
    if (may_take() && unit_->requested()) serve_readout(t);
    for (const Service service : all_services)
        if (may_take() && unit_->raised(service)) serve(t, service);
    if (options_.limit_instructions != 0 && sums_.instructions >= options_.limit_instructions)
        stopped_ = sums_.limited = true;
}

/// The thread executes next at `place`, which may not follow from its last code.
void DpuRecorder::arrive(Thread& t, std::uint32_t place) {
    if (current_ == nullptr && !in_os_) {
        unit_->begin({false, t.id, t.id}, place);
    } else if (current_ != &t && !in_os_) {
        enter_os(current_->last_pc, os_timer, dpu::InterruptCause::interrupt, "[timer]");
    } else if (!in_os_ && t.stands && *t.stands != place) {
        enter_os(t.last_pc, os_signal, dpu::InterruptCause::interrupt, "[signal]");
    }
    if (in_os_) leave_os(t, place);
    // This is another place than before: the earlier code does not continue.
    if (!t.stands || *t.stands != place) t.arrival = place;
    current_ = &t;
}

void DpuRecorder::execute(Thread& t, Block& block, std::uint32_t end) {
    std::vector<Watch> watches = block.watches;
    for (const Watchpoint& w : options_.watchpoints)
        for (const Access& a : t.accesses)
            if (a.index < end && w.overlaps(a.address, a.bytes))
                watches.push_back({a.index, ItemKind::edca, w.channel});
    std::stable_sort(watches.begin(), watches.end(), [](const Watch& a, const Watch& b) { return a.index < b.index; });
    std::uint32_t first = 0;
    std::size_t access = 0;
    for (const Watch& w : watches) {
        if (w.index >= end) break;
        cost(block, first, w.index + 1, t, access);
        first = w.index + 1;
        const auto pc = static_cast<std::uint32_t>(block.code.address.value) + block.code.instructions[w.index].offset;
        ++unit_->total().count[w.kind == ItemKind::mark ? mark : edca0 + w.channel];
        unit_->item({.kind = w.kind, .channel = w.channel, .after = unit_->now(), .src = pc});
    }
    cost(block, first, end, t, access);
    if (end != 0)
        t.last_pc = static_cast<std::uint32_t>(block.code.address.value) + block.code.instructions[end - 1].offset;
    sums_.instructions += end;
}

/// Adds the cost of instructions [first, end) of a block.
void DpuRecorder::cost(const Block& block, std::uint32_t first, std::uint32_t end, const Thread& t,
                       std::size_t& access) {
    if (first >= end) return;
    unit_->begin_cost();
    const CoreModel& core = options_.core;
    auto& n = unit_->total().count;
    const std::uint64_t now = n[cycles];
    std::uint32_t at = 0;
    for (const auto& [line, instructions] : block.lines) {
        const std::uint32_t from = std::max(at, first), to = std::min(at + instructions, end);
        at += instructions;
        if (from >= to) continue;
        const DpuCache::Found found = icache_->access(line, false, now);
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
            const DpuCache::Found found = dcache_->access(line, a.store, now);
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

/// The item of a branch that led to `next`; nullopt if it did not change the flow, or another event did.
std::optional<EonceItem> DpuRecorder::branch(const Thread& t, const Block& block, const CodeWaypoint& w,
                                             std::uint32_t next) const {
    const isa::Instruction& i = w.instruction;
    const auto pc = static_cast<std::uint32_t>(w.address.value), after = pc + i.bytes;
    EonceItem out{.after = unit_->now(), .src = pc, .dst = next};
    if (i.waypoint == isa::Waypoint::direct) {
        const auto target = static_cast<std::uint32_t>(i.target.value);
        if (next != target || (next == after && !i.link)) return std::nullopt;
        // A loop body that has just run from its start to its end (13.2).
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

/// The block ran to its end, and execution continues at `next`.
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
        // The branch was not taken. If it led neither to its target nor to the next instruction, the system chose the
        // place.
        if (w.instruction.waypoint == isa::Waypoint::direct && *next != end && !w.instruction.conditional)
            t.stands = static_cast<std::uint32_t>(w.instruction.target.value);
        return;
    }
    t.stands = *next;
    if (w.instruction.waypoint == isa::Waypoint::direct) t.expected = w.instruction.target_isa;
    if (what->kind != ItemKind::loop_short && what->kind != ItemKind::loop_long) {
        unit_->total().count[stall_cof] += options_.core.flow_cycles;
        unit_->total().count[stall_all] += options_.core.flow_cycles;
        unit_->total().count[cycles] += options_.core.flow_cycles;
    }
    t.arrival = *next;
    unit_->item(*what);
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
    ++unit_->total().count[cause == dpu::InterruptCause::interrupt ? interrupts : exceptions];
    unit_->item({.kind = ItemKind::interrupt,
                 .cause = cause,
                 .after = {true, unit_->now().pid, unit_->now().did},
                 .src = pc,
                 .dst = at});
    in_os_ = true;
    os_exit_ = at + os_exit;
    unit_->begin_cost();
    for (const std::size_t each : {cycles, vles, ic_hit}) unit_->total().count[each] += options_.core.os_cycles;
}

void DpuRecorder::leave_os(Thread& t, std::uint32_t place) {
    if (t.id != unit_->now().pid) ++sums_.switches;
    unit_->item({.kind = ItemKind::rte, .after = {false, t.id, t.id}, .src = os_exit_, .dst = place});
    in_os_ = false;
}

/// An ordinary interrupt: its service reads the new data, withdraws the request and requests the next half.
void DpuRecorder::serve_readout(const Thread& t) {
    enter_os(t.last_pc, os_readout, dpu::InterruptCause::interrupt, "[DPU readout]");
    unit_->serve_readout();
    ++sums_.readouts;
}

/// The core takes an interrupt or a debug exception of the unit, or stops in debug state.
void DpuRecorder::serve(const Thread& t, Service service) {
    const auto place = static_cast<std::uint32_t>(service);
    if (service == Service::debug && !options_.routines[place]) {
        sums_.debug_state = unit_->cause(service);
        if (sums_.debug_state.empty()) sums_.debug_state = "its cause is no longer in DP_MR";
        stopped_ = true;
        return;
    }
    ++sums_.served[place];
    if (service == Service::debug)
        enter_os(t.last_pc, os_line_0 + place, dpu::InterruptCause::exception, "[DPU debug exception]");
    else
        enter_os(t.last_pc, os_line_0 + place, dpu::InterruptCause::interrupt, fmt::format("[DPU line {}]", place));
    unit_->serve(service);
}

// ---- the end

/// Stops counting, then tracing, and flushes everything to the buffer.
void DpuRecorder::stop_unit() {
    for (auto& [number, t] : threads_) settle(t, std::nullopt);
    if (current_ != nullptr && !in_os_)
        enter_os(current_->last_pc, os_timer, dpu::InterruptCause::interrupt, "[timer]");
    unit_->stop();
}

void DpuRecorder::fail(Error error) {
    if (!failure_) failure_ = std::move(error);
}

Status DpuRecorder::flush() {
    if (failure_) return *failure_;
    if (const auto ring = unit_->ring()) {
        if (lseek(file_, 0, SEEK_SET) < 0 || !write_all(file_, *ring))
            fail(cannot("write", options_.folder / dpu_buffer_file));
    } else if (!write_all(file_, unit_->written())) {
        fail(cannot("write", options_.folder / dpu_buffer_file));
    }
    if (nexus_file_ >= 0 && !write_all(nexus_file_, unit_->messages()))
        fail(cannot("write", options_.folder / dpu_nexus_file));
    unit_->clear_written();
    if (failure_) return *failure_;
    return describe();
}

Status DpuRecorder::finish(std::string_view ended) {
    if (finished_) return Nothing{};
    ended_ = ended;
    if (!failure_) {
        stop_unit();
        static_cast<void>(flush());
    }
    if (!failure_) {
        const fs::path path = options_.folder / dpu_truth_file;
        std::ofstream truth(path);
        truth << truth_text();
        if (!truth.flush()) fail(cannot("write", path));
    }
    // Without a whole buffer, the earlier recording is more valuable.
    if (failure_ && earlier_aside_) {
        discard();
    } else if (earlier_aside_) {
        forget_recordings_aside(options_.folder);
    }
    finished_ = true;
    return failure_ ? Status(*failure_) : Status(Nothing{});
}

void DpuRecorder::discard() {
    finished_ = true;
    take_recordings_back(options_.folder);
    std::error_code error;
    if (made_folder_ && fs::is_empty(options_.folder, error)) fs::remove(options_.folder, error);
}

DpuRecorded DpuRecorder::recorded() const {
    DpuRecorded out = sums_;
    out.cycles = unit_->total().count[cycles];
    out.lines = unit_->model().counts().lines_written;
    out.lost = unit_->model().counts().lost;
    out.entries = unit_->model().counts().entries;
    out.nexus_bytes = unit_->message_bytes();
    out.overruns = unit_->overruns();
    out.errors = unit_->errors();
    if (const auto ring = unit_->ring()) out.buffer = ring->size() / line_bytes;
    return out;
}

}  // namespace waymark::record
