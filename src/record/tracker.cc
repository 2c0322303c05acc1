#include "waymark/record/tracker.h"

#include <algorithm>
#include <utility>

#include "waymark/record/ring.h"

namespace waymark::record {

namespace {

/// An indirect branch at which execution may go on after it because its condition failed; T32 has IT blocks.
bool may_fail(const isa::Instruction& branch, isa::Isa isa) {
    return branch.conditional || (isa != isa::Isa::a32 && isa != isa::Isa::a64);
}

}  // namespace

OrdinaryBlock row_of(const Code& code, std::uint32_t epoch) {
    OrdinaryBlock row;
    const auto count = static_cast<std::uint32_t>(code.instructions.size());
    if (count == 0 || (code.isa != isa::Isa::a64 && code.end().value > 0xffffffff) || code.waypoints.size() > 1)
        return row;
    for (const CodeInstruction& i : code.instructions)
        if (i.special != Special::none) return row;
    std::uint32_t before = count;
    row.before_bytes = static_cast<std::uint32_t>(code.bytes.size());
    if (!code.waypoints.empty()) {
        const CodeWaypoint& w = code.waypoints.front();
        if (w.index + 1 != count || w.instruction.waypoint == isa::Waypoint::barrier) return row;
        row.instruction = &w.instruction;
        row.may_fail = may_fail(w.instruction, code.isa);
        row.before_bytes = static_cast<std::uint32_t>(w.address - code.address);
        before = w.index;
    }
    row.address = code.address.value;
    row.instructions = count;
    row.isa = code.isa;
    row.last_bytes = before == 0 ? std::uint8_t{0} : code.instructions[before - 1].bytes;
    row.epoch = epoch;
    row.key = key_of(code.address, code.isa);
    if (row.instruction == nullptr) return row;
    row.branch_epoch = epoch;
    row.direct = row.instruction->waypoint == isa::Waypoint::direct;
    row.branch = row.address + row.before_bytes;
    row.end = row.branch + row.instruction->bytes;
    const std::uint64_t after = key_of({row.end}, code.isa);
    if (row.direct) row.target = key_of(row.instruction->target, row.instruction->target_isa);
    if ((row.direct && row.target != after) || row.may_fail) row.failed = after;
    return row;
}

namespace {

/// Blocks that each begin behind a branch and end with the next, one for each word of a chunk. A word says that the
/// block of the one before ran to its end.
struct OrdinaryRun {
    const std::uint32_t* word;  ///< not the first of its chunk
    const std::uint32_t* const word_end;
    const std::span<const OrdinaryBlock> rows;
    const std::uint32_t epoch;
    const std::uint64_t limit;
    flow::RetiredBlock* out;
    flow::RetiredBlock* const out_end;
    const OrdinaryBlock* last;  ///< the block whose branch has not come out yet
    std::uint64_t cycle, hash;

    /// Up to the first word that needs more, or until there is no room. `ran`: for each of `out` what ran, or nothing.
    template <class... Ran>
    void go(Ran*... ran) {
        // Copies, since what is written could be these members.
        const std::uint32_t* at = word;
        const OrdinaryBlock *const first = rows.data(), *before = last;
        const auto known = static_cast<std::uint32_t>(std::min<std::size_t>(rows.size(), words::max_block + 1U));
        const std::uint32_t current = epoch;
        const std::uint64_t stop = limit;
        flow::RetiredBlock* to = out;
        std::uint64_t now = cycle, sum = hash;
        if (at[-1] < known) {
            for (; at != word_end && to != out_end && *at < known; ++at, ++to) {
                const OrdinaryBlock& next = first[at[-1]];
                const std::uint64_t then = now + next.instructions;
                if ((next.branch_epoch != current) | (then >= stop)) [[unlikely]]
                    break;
                // Without jumps: which way a branch goes is what nobody foresees.
                const bool passed = next.key != before->failed;
                if (static_cast<int>(passed) & static_cast<int>(next.key != before->target) &
                    static_cast<int>(before->direct)) [[unlikely]]
                    break;
                *to = {before->instruction, now,      {before->branch},   {next.address},
                       before->isa,         next.isa, before->last_bytes, passed};
                if constexpr (sizeof...(ran) == 0)
                    sum = truth_hash(sum, before->address, before->end);
                else
                    ((*ran++ = {before->address, before->instructions}), ...);
                now = then;
                before = &next;
            }
        }
        word = at;
        out = to;
        last = before;
        cycle = now;
        hash = sum;
    }
};

}  // namespace

void Tracker::attach(flow::Unit& unit, SourceTruth& truth, RangeWriter* ranges) {
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
    const bool wide = start_.isa == isa::Isa::a64 || start_.isa == isa::Isa::a32;
    const std::uint64_t untraced = std::exchange(untraced_, selected_ ? 0 : unit_->untraced());
    const bool filtered = selected_ ? !selected_->selects({range.start}, last, wide ? 4 : 2) : untraced_ != untraced;
    if (filters_ && filtered && range.instructions != 0) {
        ++truth_->filtered_ranges;
        truth_->filtered_instructions += range.instructions;
        return;
    }
    if (!may_lose_) {
        commit(range);
        return;
    }
    // Units keep at most 24 atoms back, and what waits for its commit.
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

void Tracker::interrupt(ExceptionClass kind, std::optional<Place> handler) {
    const std::uint64_t lost = unit_->lost();
    unit_->exception(straight_, kind, handler, clock_.cycle);
    // A reset brings no waypoint update (docs/spec/pft.md, 4.7): nothing says what ran since the last waypoint.
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
    // QEMU's log shows every exception of AArch64: this is none.
    if (start_.isa == isa::Isa::a64) {
        ++jumps_;
        lose_place();
        return;
    }
    // It is a vector table that nobody described; the place in it says which exception it was.
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
                // A signal came between the branch and where it goes. Of a conditional one nobody knows whether it
                // passed; what ran is the same.
                waypoint(!i.conditional, i.conditional ? after : target);
            }
            break;
        }
        case isa::Waypoint::barrier: waypoint(true, after); break;
        default:
            // One that may fail and went to the instruction after it is taken to have failed: the flow is the same. A
            // signal taken right after it cannot be distinguished from its target.
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
    // Without `back` the exception came from an instruction that ran, so no waypoint is open.
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
        // With -icount QEMU leaves a block in front of an access to a device, makes the access, and says nothing of it.
        if (stopped_ && !pending_ && place == Place{here().address + stopped_bytes_, start_.isa}) {
            straight_.bytes += stopped_bytes_;
            straight_.last_bytes = stopped_bytes_;
            ++straight_count_;
            ++clock_.cycle;
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
    // A BKPT raises its exception without having executed (docs/spec/pft.md, 4.7), and ends its block. So does an
    // undefined instruction, to some units.
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
        pending_ = true;
        pending_address_ = w.address;
        pending_instruction_ = w.instruction;
        at = w.index + 1;
        // Only a barrier has anything after it in its block, or a branch that QEMU saw fail while it translated.
        if (at < code.instructions.size() && (at < end || stopped))
            waypoint(w.instruction.waypoint == isa::Waypoint::barrier, {w.address + w.instruction.bytes, code.isa});
    }
    clock_.cycle += end - at;
    straight(end);
    if (stays) last_special_ = ended_by;
    stopped_ = stopped;
    stopped_bytes_ = stopped ? code.instructions[end].bytes : std::uint8_t{0};
}

template <bool sums>
void Tracker::tell(Place from, std::size_t count, std::uint64_t instructions, std::uint64_t hash) {
    const std::span<const flow::RetiredBlock> blocks(blocks_.data(), count);
    for (std::size_t at = 0; at < count;) {
        const std::uint64_t before = unit_->lost();
        const std::size_t end = at + unit_->waypoints(from, blocks.subspan(at));
        if constexpr (sums) {
            at = end;
            from = {blocks[at - 1].next, blocks[at - 1].next_isa};
        } else {
            for (; at < end; ++at) {
                const flow::RetiredBlock& b = blocks[at];
                // Of all calls to the unit, only the last lost anything.
                add({ran_[at].start, b.address.value + b.instruction->bytes, ran_[at].instructions}, b.address,
                    at + 1 == end ? before : unit_->lost());
                from = {b.next, b.next_isa};
            }
        }
    }
    if constexpr (sums) {
        truth_->ranges += count;
        truth_->instructions += instructions;
        truth_->hash = hash;
    }
}

std::size_t Tracker::follow(std::span<const std::uint32_t> chunk, std::span<const OrdinaryBlock> rows,
                            std::uint32_t epoch, std::uint64_t limit, std::uint32_t& held) {
    if (unit_ == nullptr || away_ || stopped_ || last_special_ != Special::none || !selected_) return 0;
    if (pending_ && pending_instruction_.waypoint == isa::Waypoint::barrier) return 0;
    return only_sums() ? follow_rows<true>(chunk, rows, epoch, limit, held)
                       : follow_rows<false>(chunk, rows, epoch, limit, held);
}

template <bool sums>
std::size_t Tracker::follow_rows(std::span<const std::uint32_t> chunk, std::span<const OrdinaryBlock> rows,
                                 std::uint32_t epoch, std::uint64_t limit, std::uint32_t& held) {
    const isa::Instruction* branch = pending_ ? &pending_instruction_ : nullptr;
    std::uint64_t branch_address = pending_address_.value, cycle = clock_.cycle;
    bool branch_may_fail = pending_ && may_fail(pending_instruction_, start_.isa);
    std::uint64_t start = start_.address.value;
    isa::Isa isa = start_.isa;
    Straight straight = straight_;
    std::uint32_t straight_count = straight_count_;
    std::uint32_t block = held;
    // What `blocks_` holds begins here; the truth as it is if nothing of it is lost.
    Place from = start_;
    std::size_t count = 0, taken = 0;
    std::uint64_t instructions = 0, hash = truth_->hash;
    const auto tell_all = [&] {
        tell<sums>(from, count, instructions, hash);
        count = instructions = 0;
    };
    for (; taken < chunk.size(); ++taken) {
        const std::uint32_t word = chunk[taken];
        if (word > words::max_block || block >= rows.size()) break;
        const OrdinaryBlock& row = rows[block];
        if (row.epoch != epoch || cycle + row.instructions >= limit || straight.bytes > longest_straight) [[unlikely]]
            break;
        if (branch != nullptr) {
            const std::uint64_t after = branch_address + branch->bytes;
            const bool direct = branch->waypoint == isa::Waypoint::direct;
            const bool follows = (row.address == after) & (row.isa == isa);
            const bool arrives = (row.address == branch->target.value) & (row.isa == branch->target_isa);
            const bool passed = (direct & arrives) | (!direct & !(follows & branch_may_fail));
            if (direct & !arrives & !follows) [[unlikely]]
                break;
            blocks_[count] = {branch,
                              cycle,
                              {branch_address},
                              {row.address},
                              isa,
                              row.isa,
                              straight.bytes == 0 ? std::uint8_t{0} : straight.last_bytes,
                              passed};
            if constexpr (!sums) ran_[count] = {start, straight_count + 1};
            instructions += straight_count + 1;
            hash = truth_hash(hash, start, after);
            start = row.address;
            isa = row.isa;
            straight = {};
            straight_count = 0;
            if (++count == blocks_.size()) {
                tell_all();
                from = {{start}, isa};
            }
        } else if (row.address != start + straight.bytes || row.isa != isa) [[unlikely]] {
            break;
        }
        const bool begins = straight.bytes == 0;
        cycle += row.instructions;
        branch = row.instruction;
        branch_may_fail = row.may_fail;
        branch_address = row.address + row.before_bytes;
        straight.bytes += row.before_bytes;
        if (row.last_bytes != 0) straight.last_bytes = row.last_bytes;
        straight_count += row.instructions - (branch != nullptr ? 1 : 0);
        block = word;
        if (branch == nullptr || !begins) continue;

        // Nearly all blocks begin behind one branch and end with the next.
        const OrdinaryBlock* last = &row;
        ++taken;
        for (;;) {
            OrdinaryRun run{chunk.data() + taken,   chunk.data() + chunk.size(),     rows, epoch, limit,
                            blocks_.data() + count, blocks_.data() + blocks_.size(), last, cycle, hash};
            const std::uint64_t before = cycle - last->instructions;
            if constexpr (sums)
                run.go();
            else
                run.go(ran_.data() + count);
            taken = static_cast<std::size_t>(run.word - chunk.data());
            count = static_cast<std::size_t>(run.out - blocks_.data());
            last = run.last;
            cycle = run.cycle;
            hash = run.hash;
            instructions += cycle - last->instructions - before;
            if (count != blocks_.size()) break;
            tell_all();
            from = {{last->address}, last->isa};
        }
        block = chunk[taken - 1];
        branch = last->instruction;
        branch_may_fail = last->may_fail;
        branch_address = last->address + last->before_bytes;
        start = last->address;
        isa = last->isa;
        straight.bytes = last->before_bytes;
        straight.last_bytes = last->last_bytes;
        straight_count = last->instructions - 1;
        --taken;
    }
    if (taken == 0) return 0;
    held = block;
    tell_all();
    start_ = {{start}, isa};
    straight_ = straight;
    straight_count_ = straight_count;
    pending_ = branch != nullptr;
    if (pending_) {
        pending_address_ = {branch_address};
        pending_instruction_ = *branch;
    }
    clock_.cycle = cycle;
    return taken;
}

void Tracker::system_call() {
    if (!away_ && !pending_) interrupt(ExceptionClass::supervisor_call, std::nullopt);
}

}  // namespace waymark::record
