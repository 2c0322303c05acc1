/// The fast path for ordinary blocks: converts many words of a chunk to calls of the unit at once.
#include <algorithm>

#include "waymark/record/ring.h"
#include "waymark/record/tracker.h"

namespace waymark::record {

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
        const isa::Waypoint kind = w.instruction.waypoint;
        if (w.index + 1 != count || kind == isa::Waypoint::barrier || kind == isa::Waypoint::none) return row;
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

/// Consecutive blocks, each of which begins after a branch and ends with the next branch, one for each word of a chunk.
/// A word proves that the block of the previous word ran to its end.
struct OrdinaryRun {
    const std::uint32_t* word;  ///< not the first word of its chunk
    const std::uint32_t* const word_end;
    const std::span<const OrdinaryBlock> rows;
    const std::uint32_t epoch;
    const std::uint64_t limit;
    flow::RetiredBlock* out;
    flow::RetiredBlock* const out_end;
    const OrdinaryBlock* last;  ///< the block whose branch has no known outcome yet
    std::uint64_t cycle, hash;

    /// Processes words up to the first one that needs more work, or until there is no room. `ran`: the executed range
    /// for each entry of `out`, or empty.
    template <class... Ran>
    void go(Ran*... ran) {
        // Local copies, since the compiler must assume that stores change members.
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
                // Computed without jumps, since the direction of a branch cannot be predicted.
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
                // Among all calls of the unit, only the last one lost something.
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

void Tracker::begin_to_learn() {
    // Units change when threads take turns on a CPU.
    constexpr std::uint64_t least = 1U << 14;
    if (followed_ >= least) known_ = std::make_unique<KnownSequences>();
}

void Tracker::report_sequences(std::size_t count, std::uint64_t instructions, std::uint64_t hash) {
    for (std::size_t at = 0; at < count;) {
        at += unit_->sequences({sequences_.data() + at, count - at});
        if (at == count) break;
        std::array<flow::RetiredBlock, KnownSequence::blocks> blocks = *found_sequences_[at]->retired;
        const std::uint64_t began = sequences_[at].cycle - blocks.back().cycle;
        for (flow::RetiredBlock& b : blocks) b.cycle += began;
        const KnownSequence::Executed& first = found_sequences_[at]->ranges.front();
        static_cast<void>(unit_->waypoints({{first.start}, blocks.front().isa}, blocks));
        ++at;
    }
    truth_->ranges += count * KnownSequence::blocks;
    truth_->instructions += instructions;
    truth_->hash = hash;
}

void Tracker::learn(const KnownSequence::Key& key, const OrdinaryBlock& before, std::span<const OrdinaryBlock> rows,
                    std::span<const flow::RetiredBlock> blocks) {
    const std::uint64_t began = blocks.front().cycle - before.instructions;
    KnownSequence made{.key = key,
                       .prepared = unit_->prepare({{before.address}, before.isa}, began, blocks),
                       .retired = std::make_unique<std::array<flow::RetiredBlock, KnownSequence::blocks>>()};
    for (std::size_t n = 0; n < blocks.size(); ++n) {
        const OrdinaryBlock& from = rows[key.number(n)];
        made.instructions += rows[key.number(n + 1)].instructions;
        made.ranges[n] = {from.address, from.end};
        (*made.retired)[n] = blocks[n];
        (*made.retired)[n].cycle -= began;
    }
    known_->slot(key) = std::move(made);
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
    // `blocks_` begins here. If no block is lost, the truth stays unchanged.
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

        // Nearly all blocks begin after one branch and end with the next branch.
        const OrdinaryBlock* last = &row;
        ++taken;
        for (;;) {
            const std::uint64_t before = cycle - last->instructions;
            bool learns = false;
            KnownSequence::Key key{};
            std::size_t words_to_go = chunk.size() - taken;
            if constexpr (sums) {
                std::size_t found = 0;
                bool missed = false;
                while (known_ != nullptr && !known_->rests() && chunk.size() - taken >= KnownSequence::blocks) {
                    key = {static_cast<std::uint32_t>(last - rows.data()), chunk.data() + taken - 1};
                    const KnownSequence* const known = known_->find(key);
                    // The last of its blocks also ran to its end.
                    if (known == nullptr || chunk[taken + KnownSequence::blocks - 1] > words::max_block ||
                        cycle + known->instructions >= limit) [[unlikely]] {
                        missed = known == nullptr;
                        break;
                    }
                    if (count != 0) {
                        tell_all();
                        from = {{last->address}, last->isa};
                    }
                    for (const KnownSequence::Executed& r : known->ranges) hash = truth_hash(hash, r.start, r.end);
                    cycle += known->instructions;
                    last = &rows[key.number(KnownSequence::blocks)];
                    sequences_[found] = {known->prepared.get(), cycle - last->instructions};
                    found_sequences_[found++] = known;
                    taken += KnownSequence::blocks;
                    if (found == sequences_.size()) break;
                }
                if (found != 0) {
                    report_sequences(found, cycle - last->instructions - before, hash);
                    from = {{last->address}, last->isa};
                    words_to_go = chunk.size() - taken;
                    if (!missed) continue;
                }
                if (missed) {
                    learns = known_->missed(key);
                    if (!known_->rests()) words_to_go = std::min(words_to_go, KnownSequence::blocks);
                    if (count + KnownSequence::blocks > blocks_.size()) {
                        tell_all();
                        from = {{last->address}, last->isa};
                    }
                }
            }
            OrdinaryRun run{chunk.data() + taken,   chunk.data() + taken + words_to_go, rows, epoch, limit,
                            blocks_.data() + count, blocks_.data() + blocks_.size(),    last, cycle, hash};
            const std::uint64_t began = cycle - last->instructions;
            const OrdinaryBlock& first = *last;
            if constexpr (sums)
                run.go();
            else
                run.go(ran_.data() + count);
            const auto ran = static_cast<std::size_t>(run.word - chunk.data()) - taken;
            taken += ran;
            count = static_cast<std::size_t>(run.out - blocks_.data());
            last = run.last;
            cycle = run.cycle;
            hash = run.hash;
            instructions += cycle - last->instructions - began;
            if constexpr (sums) {
                if (learns && ran == KnownSequence::blocks)
                    learn(key, first, rows, {blocks_.data() + count - KnownSequence::blocks, KnownSequence::blocks});
                if (known_ != nullptr)
                    known_->followed(ran);
                else
                    begin_to_learn();
            }
            const bool full = count == blocks_.size();
            if (!full && ran != words_to_go) break;
            if (full) {
                tell_all();
                from = {{last->address}, last->isa};
            }
            if (taken == chunk.size()) break;
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
    followed_ += taken;
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

}  // namespace waymark::record
