#include "waymark/record/tracker.h"

#include <utility>

namespace waymark::record {

void Tracker::attach(flow::Unit& unit, SourceTruth& truth, RangeWriter* ranges, bool signals) {
    signals_ = signals;
    unit_ = &unit;
    truth_ = &truth;
    ranges_ = ranges;
    started_ = false;
    away_ = true;
    pending_ = stopped_ = false;
    straight_ = {};
    straight_count_ = 0;
    may_lose_ = unit.may_lose();
    untraced_ = 0;
    forget_sequences();
    unit.context(context_);
}

void Tracker::detach() {
    if (unit_ == nullptr) return;
    truth_->unfinished_instructions += straight_count_ + (pending_ ? 1 : 0);
    if (started_) tell_unit([&] { unit_->finish(); });
    for (const TruthRange& range : recent_) commit(range);
    recent_.clear();
    unit_ = nullptr;
}

std::optional<Tracker::Open> Tracker::open_branch() const {
    if (unit_ == nullptr || away_ || !pending_ || pending_instruction_.waypoint == isa::Waypoint::barrier) return {};
    return Open{start_, straight_, straight_count_, pending_address_, pending_instruction_};
}

void Tracker::hand_over() {
    pending_ = false;
    straight_ = {};
    straight_count_ = 0;
}

void Tracker::take_over(const Open& branch) {
    arrive(branch.start);
    straight_ = branch.straight;
    straight_count_ = branch.straight_count;
    pending_ = true;
    pending_address_ = branch.address;
    pending_instruction_ = branch.instruction;
}

std::optional<isa::Isa> Tracker::arriving(Address address) const {
    if (away_) return std::nullopt;
    if (!pending_) {
        if (address == here().address) return start_.isa;
        return std::nullopt;
    }
    const isa::Instruction& i = pending_instruction_;
    if (i.waypoint == isa::Waypoint::direct && address == i.target) return i.target_isa;
    if (address == pending_address_ + i.bytes) return start_.isa;
    return std::nullopt;
}

void Tracker::begin(Place place) {
    start_ = place;
    straight_ = {};
    straight_count_ = 0;
    pending_ = stopped_ = false;
    last_special_ = Special::none;
}

void Tracker::commit(const TruthRange& range) {
    if (range.instructions == 0) return;
    truth_->add(range);
    if (ranges_ != nullptr) ranges_->add(range);
}

void Tracker::lose(std::uint64_t count) {
    for (auto range = recent_.rbegin(); range != recent_.rend() && count != 0; ++range) {
        if (range->lost) continue;
        range->lost = true;
        --count;
    }
}

void Tracker::add(TruthRange range, Address last, std::uint64_t lost_before) {
    const unsigned step = start_.isa == isa::Isa::a64 || start_.isa == isa::Isa::a32 ? 4 : 2;
    const std::uint64_t untraced = std::exchange(untraced_, selected_ ? 0 : unit_->untraced());
    const bool filtered = selected_ ? !selected_->selects({range.start}, last, step) : untraced_ != untraced;
    if (filters_ && filtered && range.instructions != 0) {
        ++truth_->filtered_ranges;
        truth_->filtered_instructions += range.instructions;
        if (signals_ && programmed_ && programmed_->selects({range.start}, last, step)) {
            ++not_permitted_;
            not_permitted_instructions_ += range.instructions;
        } else if (signals_ && !programmed_) {
            ++perhaps_not_permitted_;
        }
        return;
    }
    if (!may_lose_ && !signals_) {
        commit(range);
        return;
    }
    // In a unit, at most 24 atoms wait, and the elements that are not yet committed.
    constexpr std::size_t most_kept = 320;
    const std::uint64_t lost = unit_->lost() - lost_before;
    range.lost = lost != 0 && unit_->overflowing();
    lose(lost - (range.lost ? 1 : 0));
    recent_.push_back(range);
    if (recent_.size() <= most_kept) return;
    commit(recent_.front());
    recent_.pop_front();
}

template <class F>
void Tracker::tell_unit(F&& f) {
    const std::uint64_t before = unit_->lost();
    f();
    lose(unit_->lost() - before);
}

template <class F>
void Tracker::signal(F&& f) {
    flow::UnitSignals* const signals = unit_ == nullptr ? nullptr : flow::signals_of(*unit_);
    if (signals == nullptr || !started_) return;
    const std::uint64_t before = unit_->untraced();
    tell_unit([&] { f(*signals); });
    untraced_ = unit_->untraced();
    for (std::uint64_t gone = untraced_ - before; gone != 0 && !recent_.empty(); --gone) {
        if (recent_.back().instructions != 0) {
            ++truth_->filtered_ranges;
            if (programmed_) {
                ++not_permitted_;
                not_permitted_instructions_ += recent_.back().instructions;
            } else {
                ++perhaps_not_permitted_;
            }
        }
        truth_->filtered_instructions += recent_.back().instructions;
        recent_.pop_back();
    }
}

void Tracker::permit(const flow::TracePermission& permission) {
    signal([&](flow::UnitSignals& unit) { unit.permit(permission, clock_.cycle); });
}

void Tracker::power(bool on, const flow::UnitOptions& options) {
    signal([&](flow::UnitSignals& unit) {
        unit.set_power(on, clock_.cycle);
        if (on) unit_->program(options, clock_.cycle);
    });
}

void Tracker::os_lock(bool locked) {
    signal([&](flow::UnitSignals& unit) { unit.set_os_lock(locked, clock_.cycle); });
}

void Tracker::program(const flow::UnitOptions& options) {
    if (started_) tell_unit([&] { unit_->program(options, clock_.cycle); });
}

void Tracker::waypoint(bool passed, Place next) {
    const std::uint64_t lost = unit_->lost();
    unit_->waypoint(straight_, {pending_address_, start_.isa, pending_instruction_, passed, next}, clock_.cycle);
    add({start_.address.value, pending_address_.value + pending_instruction_.bytes, straight_count_ + 1},
        pending_address_, lost);
    begin(next);
}

void Tracker::ordinary(std::uint8_t bytes) {
    pending_address_ = start_.address;
    pending_instruction_ = {};
    pending_instruction_.bytes = bytes;
    waypoint(true, {start_.address + bytes, start_.isa});
}

void Tracker::interrupt(ExceptionClass kind, std::optional<Place> handler) {
    const std::uint64_t lost = unit_->lost();
    unit_->exception(straight_, kind, handler, clock_.cycle);
    // A reset has no waypoint update (docs/spec/pft.md, 4.7): nothing shows the code since the last waypoint.
    if (kind == ExceptionClass::reset)
        truth_->unfinished_instructions += straight_count_;
    else
        add({start_.address.value, here().address.value, straight_count_}, here().address - straight_.last_bytes, lost);
    straight_ = {};
    straight_count_ = 0;
    pending_ = false;
    away_ = true;
}

void Tracker::unseen_exception(Place place) {
    ExceptionClass kind = stopped_                               ? ExceptionClass::data_abort
                          : last_special_ == Special::undefined  ? ExceptionClass::undefined
                          : last_special_ == Special::breakpoint ? ExceptionClass::breakpoint
                                                                 : ExceptionClass::irq;
    if (system_ && place.address == reset_) {
        interrupt(ExceptionClass::reset, place);
        away_ = false;
        begin(place);
        return;
    }
    if (!system_) {
        interrupt(kind, std::nullopt);
        return;
    }
    // QEMU's log shows every exception of AArch64, so this is not an exception.
    if (start_.isa == isa::Isa::a64) {
        ++jumps_;
        lose_place();
        return;
    }
    // The block is in an undescribed vector table; its offset there shows which exception it was.
    switch (place.address.value % 0x20) {
        case 0x04: kind = ExceptionClass::undefined; break;
        case 0x08: kind = ExceptionClass::supervisor_call; break;
        case 0x0c: kind = ExceptionClass::prefetch_abort; break;
        case 0x10: kind = ExceptionClass::data_abort; break;
        case 0x14: kind = ExceptionClass::hypervisor_call; break;
        case 0x18: kind = ExceptionClass::irq; break;
        case 0x1c: kind = ExceptionClass::fiq; break;
        default: interrupt(kind, std::nullopt); return;
    }
    unknown_vector_ = place.address;
    interrupt(kind, place);
    away_ = false;
    begin(place);
}

void Tracker::resolve(Place place) {
    if (!pending_) return;
    const isa::Instruction& i = pending_instruction_;
    const Place after{pending_address_ + i.bytes, start_.isa};
    switch (i.waypoint) {
        case isa::Waypoint::direct: {
            const Place target{i.target, i.target_isa};
            if (place == target || place == after) {
                waypoint(place == target, place);
            } else {
                // A signal came between the branch and its target. For a conditional branch it is not known whether it
                // was taken; the executed code is the same.
                waypoint(!i.conditional, i.conditional ? after : target);
            }
            break;
        }
        case isa::Waypoint::barrier: waypoint(true, after); break;
        default:
            // A conditional branch that led to the next instruction is assumed not taken: the flow is the same. A
            // signal taken directly after it cannot be distinguished from its target.
            waypoint(place != after || !may_fail(i, start_.isa), place);
            break;
    }
}

void Tracker::lose_place() {
    if (away_ || unit_ == nullptr) return;
    truth_->unfinished_instructions += straight_count_ + (pending_ ? 1 : 0);
    straight_ = {};
    straight_count_ = 0;
    pending_ = stopped_ = false;
    last_special_ = Special::none;
    away_ = true;
}

void Tracker::exception(ExceptionClass kind, std::optional<Place> back, std::optional<Place> handler,
                        const std::optional<flow::Context>& state) {
    if (away_) {
        if (state) context(*state);
        return;
    }
    // Without `back`, the exception came from an instruction that ran, so no waypoint is open.
    wait();
    if (pending_ && (back || handler)) resolve(back ? *back : *handler);
    if (state) context(*state);
    interrupt(kind, handler);
    if (!handler) return;
    away_ = false;
    begin(*handler);
}

void Tracker::context(const flow::Context& context) {
    context_ = context;
    if (unit_ != nullptr) unit_->context(context);
}

void Tracker::wait() {
    // QEMU ends the block there; only a system waits.
    if (!system_ || pending_ || last_special_ != Special::wait) return;
    tell_unit([&] { unit_->wait(clock_.cycle); });
    last_special_ = Special::none;
}

void Tracker::arrive(Place place) {
    if (!away_) {
        wait();
        // With -icount, QEMU leaves a block before an access to a device, performs the access, and does not report it.
        if (stopped_ && !pending_ && place == Place{here().address + stopped_bytes_, start_.isa}) {
            ++clock_.cycle;
            if (each_instruction_) {
                ordinary(stopped_bytes_);
            } else {
                straight_.bytes += stopped_bytes_;
                straight_.last_bytes = stopped_bytes_;
                ++straight_count_;
            }
        }
        resolve(place);
        if (place != here()) unseen_exception(place);
    }
    if (!away_) {
        stopped_ = false;
        return;
    }
    away_ = false;
    if (started_)
        tell_unit([&] { unit_->resume(place, clock_.cycle); });
    else
        unit_->start(place, clock_.cycle);
    started_ = true;
    begin(place);
}

void Tracker::run(const Code& code, std::uint32_t first, std::uint32_t end, bool stopped) {
    // A BKPT raises its exception without having executed (docs/spec/pft.md, 4.7), and ends its block. For some units
    // an undefined instruction behaves alike.
    const Special ended_by = end > first ? code.instructions[end - 1].special : Special::none;
    const bool stays = ended_by == Special::breakpoint || (ended_by == Special::undefined && !undefined_executes_);
    if (stays) --end;
    std::uint32_t at = first;
    const auto straight = [&](std::uint32_t to) {
        if (at >= to) return;
        const CodeInstruction& last = code.instructions[to - 1];
        straight_.bytes += last.offset + last.bytes - code.instructions[at].offset;
        straight_.last_bytes = last.bytes;
        straight_count_ += to - at;
        last_special_ = last.special;
        at = to;
    };
    for (const CodeWaypoint& w : code.waypoints) {
        if (w.index < first) continue;
        if (w.index >= end) break;
        clock_.cycle += w.index - at + 1;
        straight(w.index);
        if (w.instruction.waypoint == isa::Waypoint::none) {
            ordinary(w.instruction.bytes);
            last_special_ = code.instructions[w.index].special;
            at = w.index + 1;
            continue;
        }
        pending_ = true;
        pending_address_ = w.address;
        pending_instruction_ = w.instruction;
        at = w.index + 1;
        // Only a barrier, or a branch that QEMU saw fail during translation, can be followed by instructions in its
        // block.
        if (at < code.instructions.size() && (at < end || stopped))
            waypoint(w.instruction.waypoint == isa::Waypoint::barrier, {w.address + w.instruction.bytes, code.isa});
    }
    clock_.cycle += end - at;
    straight(end);
    if (stays) last_special_ = ended_by;
    stopped_ = stopped;
    stopped_bytes_ = stopped ? code.instructions[end].bytes : std::uint8_t{0};
}

void Tracker::system_call() {
    if (!away_ && !pending_) interrupt(ExceptionClass::supervisor_call, std::nullopt);
}

}  // namespace waymark::record
