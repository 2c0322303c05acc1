#include "waymark/flow/troubles.h"

#include <algorithm>
#include <variant>

namespace waymark::flow {

namespace {

/// No program executes this many bytes without a branch.
constexpr std::uint32_t implausible_bytes = 64 * 1024;

void add(Trouble& to, const Trouble& later) {
    const std::uint64_t times = to.times + later.times, bytes = to.bytes + later.bytes;
    const std::uint64_t amount = to.amount + later.amount;
    if (to.times == 0) to = later;
    to.times = times;
    to.bytes = bytes;
    to.amount = amount;
}

}  // namespace

CycleCounts& CycleCounts::operator+=(const CycleCounts& later) {
    counts += later.counts;
    unknown += later.unknown;
    spread += later.spread;
    off += later.off;
    apart += later.apart;
    threshold = std::max(threshold, later.threshold);
    return *this;
}

Troubles& Troubles::operator+=(const Troubles& later) {
    for (unsigned i = 0; i < gap_reasons; ++i) add(gaps[i], later.gaps[i]);
    for (unsigned i = 0; i < conflicts; ++i) add(contradictions[i], later.contradictions[i]);
    add(no_memory, later.no_memory);
    add(overflows, later.overflows);
    add(long_walks, later.long_walks);
    add(unplaced, later.unplaced);
    add(untraced, later.untraced);
    add(uncommitted, later.uncommitted);
    untraced_unsized += later.untraced_unsized;
    cycles += later.cycles;
    without_code += later.without_code;
    contexts += later.contexts;
    timestamps += later.timestamps;
    triggers += later.triggers;
    handlers_left_out += later.handlers_left_out;
    resumptions += later.resumptions;
    if (later.early_on_) began_again(ran_);
    (ran_ ? handlers_left_out : early_handlers_) += later.early_handlers_;
    (ran_ ? resumptions : early_resumptions_) += later.early_resumptions_;
    if (ran_) untraced_unsized += later.early_resets_.times;
    add(ran_ ? untraced : early_resets_, later.early_resets_);
    if (later.after_exception_ || later.gaps[static_cast<unsigned>(GapReason::missing)].times != 0)
        after_exception_ = later.after_exception_;
    if (!first_timestamp) first_timestamp = later.first_timestamp;
    if (later.last_timestamp) last_timestamp = later.last_timestamp;
    if (later.last_) last_ = later.last_;
    ran_ |= later.ran_;
    without_image_ = later.without_image_;
    return *this;
}

/// Trace began again. `ran`: code was executed before.
void Troubles::began_again(bool ran) {
    if (!after_exception_)
        // The unit that begins again behind missing trace did not pause: its buffer was full.
        early_on_ |= gaps[static_cast<unsigned>(GapReason::missing)].times == 0;
    else if (*after_exception_)
        ++(ran ? handlers_left_out : early_handlers_);
    else
        ++(ran ? resumptions : early_resumptions_);
    after_exception_ = false;
}

void Troubles::consume(const Batch& batch, const MapOffset& offset) {
    const auto block = [&](std::size_t range) { return batch.blocks[batch.ranges[range].block()]; };
    std::size_t ranges = 0;
    for (const Event& event : batch.events) {
        if (event.before > ranges) without_image_ = false, after_exception_ = false;
        ranges = event.before;
        if (std::holds_alternative<NoMemory>(event.what) && event.before != 0 && event.before <= batch.ranges.size())
            last_ = block(event.before - 1), ran_ = true;
        note(event, offset);
    }
    if (!batch.ranges.empty()) last_ = block(batch.ranges.size() - 1), ran_ = true;
    if (ranges < batch.ranges.size()) without_image_ = false, after_exception_ = false;
}

void Troubles::note(const Event& event, const MapOffset& offset) {
    const auto keep = [&](Trouble& trouble, Offset at, std::uint64_t address = 0, std::uint64_t expected = 0) {
        if (trouble.times++ == 0) trouble = {1, trouble.bytes, offset(at), address, expected, trouble.amount};
    };
    if (const auto* gap = std::get_if<Gap>(&event.what)) {
        without_image_ = false;
        Trouble& trouble = gaps[static_cast<unsigned>(gap->reason)];
        keep(trouble, gap->first);
        trouble.bytes += gap->bytes();
        if (gap->reason == GapReason::missing) after_exception_.reset();
    } else if (const auto* on = std::get_if<TraceOn>(&event.what)) {
        without_image_ = false;
        if (on->reason == TraceOnReason::overflow) keep(overflows, event.offset);
        if (on->reason == TraceOnReason::enabled) began_again(ran_ || event.before != 0);
    } else if (const auto* what = std::get_if<Inconsistency>(&event.what)) {
        without_image_ = false;
        keep(contradictions[static_cast<unsigned>(what->conflict)], event.offset, what->found.value,
             what->expected.value);
    } else if (const auto* no = std::get_if<NoMemory>(&event.what)) {
        without_image_ = true;
        after_exception_ = false;
        keep(no_memory, event.offset, no->address.value);
        if (last_ && last_->bytes >= implausible_bytes && last_->start + last_->bytes == no->address.value)
            keep(long_walks, event.offset, last_->start);
    } else if (const auto* atoms = std::get_if<Atoms>(&event.what)) {
        if (without_image_) {
            without_code += atoms->taken + atoms->not_taken;
            return;
        }
        keep(unplaced, event.offset);
        unplaced.amount += atoms->taken + atoms->not_taken;
    } else if (const auto* hidden = std::get_if<Untraced>(&event.what)) {
        keep(untraced, event.offset, hidden->from.value, hidden->to.value);
        untraced.amount += hidden->instructions;
        if (hidden->instructions == 0) ++untraced_unsized;
    } else if (const auto* mark = std::get_if<Mark>(&event.what)) {
        if (mark->kind == Mark::Kind::overflow_at_end) keep(overflows, event.offset);
        if (mark->kind != Mark::Kind::uncommitted) return;
        keep(uncommitted, event.offset);
        uncommitted.amount += mark->value;
    } else if (const auto* count = std::get_if<Cycles>(&event.what)) {
        ++cycles.counts;
        cycles.threshold = std::max(cycles.threshold, count->threshold);
        if (!count->cycles) ++cycles.unknown;
        if (count->of == Cycles::Of::unknown) cycles.apart += count->cycles.value_or(0);
        if (count->several) ++cycles.spread;
        if (count->off) ++cycles.off;
    } else if (const auto* exception = std::get_if<Exception>(&event.what)) {
        after_exception_ = true;
        if (exception->type->kind != ExceptionClass::reset) {
            ran_ = true;  // only running code has such an exception
            return;
        }
        const bool ran = ran_ || event.before != 0;
        keep(ran ? untraced : early_resets_, event.offset);
        if (ran) ++untraced_unsized;
    } else if (std::holds_alternative<Context>(event.what)) {
        ++contexts;
    } else if (const auto* time = std::get_if<Timestamp>(&event.what)) {
        ++timestamps;
        if (!time->known) return;
        if (!first_timestamp) first_timestamp = time->value;
        last_timestamp = time->value;
    } else if (std::holds_alternative<Trigger>(event.what)) {
        ++triggers;
    }
}

bool Troubles::hides_code() const { return unplaced.times + untraced.times + uncommitted.times != 0; }

Trouble Troubles::contradicted() const {
    Trouble out;
    for (const Trouble& one : contradictions) {
        if (one.times == 0) continue;
        const std::uint64_t times = out.times + one.times;
        if (out.times == 0 || one.offset < out.offset) out = one;
        out.times = times;
    }
    return out;
}

Inconsistency Troubles::first_contradiction() const {
    unsigned first = 0;
    for (unsigned i = 1; i < conflicts; ++i)
        if (contradictions[i].times != 0 &&
            (contradictions[first].times == 0 || contradictions[i].offset < contradictions[first].offset))
            first = i;
    const Trouble& one = contradictions[first];
    return {static_cast<Conflict>(first), {one.address}, {one.expected}};
}

}  // namespace waymark::flow
