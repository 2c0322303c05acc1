#include "waymark/flow/summary.h"

#include <type_traits>

namespace waymark::flow {

namespace {
constexpr std::uint64_t hash_prime = 1099511628211U;
}  // namespace

std::string_view name(TraceOnReason reason) {
    constexpr std::array<std::string_view, trace_on_reasons> names{"begin", "trace enabled", "overflow",
                                                                   "debug restart", "recovered"};
    return names[static_cast<unsigned>(reason)];
}

std::string_view name(Conflict conflict) {
    constexpr std::array<std::string_view, conflicts> names{
        "sync disagrees",        "branch disagrees",  "update behind",       "no return address",
        "undefined instruction", "runaway walk",      "update disagrees",    "VMID missing",
        "always taken",          "address disagrees", "no exception return", "time goes back"};
    return names[static_cast<unsigned>(conflict)];
}

std::string_view name(Security security) {
    constexpr std::array<std::string_view, 4> names{"S", "NS", "Root", "Realm"};
    return names[static_cast<unsigned>(security)];
}

std::string_view branch_name(const Block& b) {
    switch (b.end) {
        case End::direct: return "direct";
        case End::indirect: return "indirect";
        case End::barrier:
            if ((b.flags & Block::wait) != 0) return "wait";
            return (b.flags & Block::transaction_start) != 0 ? "tstart" : "barrier";
        case End::not_a_waypoint: break;
    }
    return "none";
}

std::uint64_t Totals::gap_bytes() const {
    std::uint64_t sum = 0;
    for (const Count& c : gaps) sum += c.bytes;
    return sum;
}

bool Totals::hides_code() const { return unplaced + reached + untraced + uncommitted != 0; }

bool Totals::has_gaps() const {
    for (unsigned reason = 0; reason < gap_reasons; ++reason)
        if (gaps[reason].times != 0 && is_loss(static_cast<GapReason>(reason))) return true;
    for (const std::uint64_t times : inconsistencies)
        if (times != 0) return true;
    return no_memory != 0 || hides_code() || trace_on[static_cast<unsigned>(TraceOnReason::overflow)] != 0;
}

Totals& Totals::operator+=(const Totals& other) {
    ranges += other.ranges;
    instructions += other.instructions;
    cycles += other.cycles;
    unknown_cycle_counts += other.unknown_cycle_counts;
    exceptions += other.exceptions;
    exception_returns += other.exception_returns;
    contexts += other.contexts;
    timestamps += other.timestamps;
    triggers += other.triggers;
    no_memory += other.no_memory;
    unplaced += other.unplaced;
    reached += other.reached;
    untraced += other.untraced;
    unseen_instructions += other.unseen_instructions;
    uncommitted += other.uncommitted;
    marks += other.marks;
    for (unsigned i = 0; i < trace_on_reasons; ++i) trace_on[i] += other.trace_on[i];
    for (unsigned i = 0; i < conflicts; ++i) inconsistencies[i] += other.inconsistencies[i];
    for (unsigned i = 0; i < gap_reasons; ++i) {
        gaps[i].times += other.gaps[i].times;
        gaps[i].bytes += other.gaps[i].bytes;
    }
    if (!first_timestamp) first_timestamp = other.first_timestamp;
    if (other.last_timestamp) last_timestamp = other.last_timestamp;
    hash = (hash ^ other.hash) * hash_prime;
    return *this;
}

void Summary::consume(const Batch& batch) {
    Totals& t = totals_;
    t.ranges += batch.ranges.size();
    // Kept in registers: storing and loading the hash takes longer than its two multiplications.
    std::uint64_t instructions = 0, cycles = 0, hash = t.hash;
    for (const Range& range : batch.ranges) {
        const Block& block = batch.blocks[range.block()];
        instructions += std::uint64_t{block.instructions} * range.times;
        cycles += range.cycles != no_cycles ? range.cycles : 0;
        hash = (hash ^ block.start) * hash_prime;
        hash = (hash ^ (block.start + block.bytes)) * hash_prime;
    }
    t.instructions += instructions;
    t.cycles += cycles;
    t.hash = hash;
    for (const Event& event : batch.events) count(event);
}

void Summary::count(const Event& event) {
    Totals& t = totals_;
    const auto add_cycles = [&](std::uint32_t cycles) { t.cycles += cycles == no_cycles ? 0 : cycles; };
    std::visit(
        [&](const auto& what) {
            using T = std::decay_t<decltype(what)>;
            if constexpr (std::is_same_v<T, Gap>) {
                Count& c = t.gaps[static_cast<unsigned>(what.reason)];
                ++c.times;
                c.bytes += what.bytes();
            } else if constexpr (std::is_same_v<T, TraceOn>) {
                ++t.trace_on[static_cast<unsigned>(what.reason)];
                add_cycles(what.cycles);
            } else if constexpr (std::is_same_v<T, Context>) {
                ++t.contexts;
            } else if constexpr (std::is_same_v<T, Timestamp>) {
                ++t.timestamps;
                if (!what.counted_again) add_cycles(what.cycles);
                if (what.known) {
                    if (!t.first_timestamp) t.first_timestamp = what.value;
                    t.last_timestamp = what.value;
                }
            } else if constexpr (std::is_same_v<T, Exception>) {
                ++t.exceptions;
                add_cycles(what.cycles);
            } else if constexpr (std::is_same_v<T, ExceptionReturn>) {
                ++t.exception_returns;
            } else if constexpr (std::is_same_v<T, NoMemory>) {
                ++t.no_memory;
            } else if constexpr (std::is_same_v<T, Trigger>) {
                ++t.triggers;
            } else if constexpr (std::is_same_v<T, Cycles>) {
                if (what.of != Cycles::Of::ranges) t.cycles += what.cycles.value_or(0);
                t.unknown_cycle_counts += what.cycles ? 0 : 1;
            } else if constexpr (std::is_same_v<T, Atoms>) {
                t.unplaced += what.taken + what.not_taken;
            } else if constexpr (std::is_same_v<T, Reached>) {
                ++t.reached;
            } else if constexpr (std::is_same_v<T, Untraced>) {
                ++t.untraced;
                t.unseen_instructions += what.instructions;
            } else if constexpr (std::is_same_v<T, Mark>) {
                ++t.marks;
                if (what.kind == Mark::Kind::uncommitted) t.uncommitted += what.value;
            } else {
                static_assert(std::is_same_v<T, Inconsistency>);
                ++t.inconsistencies[static_cast<unsigned>(what.conflict)];
            }
        },
        event.what);
}

}  // namespace waymark::flow
