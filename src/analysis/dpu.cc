#include "waymark/analysis/dpu.h"

#include <algorithm>

namespace waymark::analysis {

using dpu::Element;
using dpu::ElementKind;
using dpu::Reading;

namespace {

constexpr std::size_t most_data = std::size_t{1} << 20;

DpuCounts widened(const dpu::Counters& counters) {
    DpuCounts out{};
    std::copy(counters.begin(), counters.end(), out.begin());
    return out;
}

}  // namespace

// ---- DpuFilter

bool DpuFilter::matches(std::uint8_t pid, std::uint8_t did) const {
    if (!on) return true;
    switch (compare) {
        case dpu::IdCompare::neither: return true;
        case dpu::IdCompare::program: return pid == rpid;
        case dpu::IdCompare::data: return did == rdid;
        case dpu::IdCompare::both: return pid == rpid && did == rdid;
    }
    return true;
}

std::optional<bool> DpuFilter::matches(const dpu::TaskContext& context) const {
    if (!on || compare == dpu::IdCompare::neither) return true;
    if (same_ids) return matches(context.id, context.id);
    const bool compares_shown = compare == dpu::IdCompare::both || (compare == dpu::IdCompare::data) == shows_did;
    if (!compares_shown) return std::nullopt;
    if (context.id != (shows_did ? rdid : rpid)) return false;
    return compare == dpu::IdCompare::both ? std::nullopt : std::optional(true);
}

// ---- DpuReadings

const Reading* DpuReadings::doubt() {
    doubted_ = next_ < doubtful_.size() ? doubtful_[next_++] : nothing;
    skipped_ = true;
    return nullptr;
}

const Reading* DpuReadings::join(const Reading& reading) {
    skipped_ = false;
    joined_ = reading;
    joined_.flags = static_cast<std::uint8_t>(reading.flags | (values_ ? Reading::lossy : Reading::first));
    joined_.wide = 0;
    for (unsigned i = 0; i < dpu::counter_count; ++i) {
        joined_.deltas[i] = values_ ? dpu::counted((*values_)[i], reading.values[i]) : 0;
        joined_.wide = static_cast<std::uint8_t>(joined_.wide | dpu::is_wide(joined_.deltas[i]) << i);
    }
    values_ = reading.values;
    return &joined_;
}

// ---- DpuCosts

DpuCosts::DpuCosts(DpuSetup setup, const DpuCode& code)
    : setup_(std::move(setup)),
      code_(code),
      changes_(setup_.mode == dpu::TraceMode::task || setup_.mode == dpu::TraceMode::flow),
      eonce_(setup_.mode == dpu::TraceMode::eonce_raw || setup_.mode == dpu::TraceMode::eonce_comp),
      context_(setup_.initial_context),
      readings_checked_(setup_),
      first_values_(setup_.initial),
      calls_(code),
      ranges_(setup_.ranges.size()),
      loops_(code) {
    if (changes_ && context_ && shown(0) == true) {
        stay(context_, !setup_.began_before, true);
        ++tasks_[{DpuOwner::Kind::context, *context_, {}}].entered;
    }
    if (context_ && eonce_)
        show(*context_);
    else
        shown_ = context_;
}

DpuCosts::~DpuCosts() = default;

void DpuCosts::consume(const dpu::Batch& batch) {
    for (const Element& e : batch.elements) {
        if (setup_.mode != dpu::TraceMode::eonce_raw) loops_.take(e);
        const bool known = e.has(Element::id_known) && e.has(Element::privilege_known);
        const std::optional<dpu::TaskContext> context = known ? std::optional(e.context) : std::nullopt;
        if (context && !e.has(Element::doubtful)) show(*context);
        switch (e.kind) {
            case ElementKind::task_switch:
            case ElementKind::flow:
            case ElementKind::sample: reading(e, batch.readings[e.value]); break;
            case ElementKind::user_data:
            case ElementKind::user_raw:
                if (data_.size() < most_data) data_.push_back({e.offset, context, e.value, time_});
                break;
            case ElementKind::lost:
            case ElementKind::held:
            case ElementKind::enabled: lossy_ = true; break;
            case ElementKind::gap:
                // Data from before the buffer wrapped are missing; the data that follow are whole.
                if (e.reason != GapReason::padding && e.reason != GapReason::unsynchronised) lossy_ = true;
                break;
            case ElementKind::context:
                if (context && !e.has(Element::doubtful) && context != context_) mixed_ = true;
                break;
            default: break;
        }
    }
}

/// In EONCE modes the trace shows each change of context, even if no reading comes with it.
void DpuCosts::show(const dpu::TaskContext& context) {
    if (!eonce_ || shown_ == context) return;
    shown_ = context;
    ++tasks_[{DpuOwner::Kind::context, context, {}}].entered;
}

DpuOwner DpuCosts::owner(const Element& e, const Reading& r) const {
    using Kind = DpuOwner::Kind;
    if (r.has(Reading::lossy)) return {Kind::unattributed};
    if (r.has(Reading::first) || !context_) return {readings_ == 0 ? Kind::before : Kind::unattributed};
    const auto is_shown = shown(e.offset.value);
    if (!is_shown) return {Kind::unattributed};
    if (!*is_shown) return {Kind::filtered};
    if (changes_) return {Kind::context, *context_};
    if (*context_ == e.context && !r.has(Reading::mixed)) return {Kind::sampled, *context_};
    return {Kind::between, *context_, e.context};
}

/// Whether the filters since the previous reading let the trace show that a context ended; nullopt if not known.
std::optional<bool> DpuCosts::shown(std::uint64_t end) const {
    bool known = true;
    for (std::size_t i = 0; i < setup_.filters.size(); ++i) {
        const DpuFilter& f = setup_.filters[i];
        const bool over = i + 1 < setup_.filters.size() && reading_at_ && setup_.filters[i + 1].from <= *reading_at_;
        if (over || (f.from > end && i != 0)) continue;
        const auto match = readings_ == 0 && setup_.initial_ids
                               ? std::optional(f.matches(setup_.initial_ids->first, setup_.initial_ids->second))
                               : f.matches(*context_);
        if (match == false) return false;
        known &= match.has_value();
    }
    return known ? std::optional(true) : std::nullopt;
}

/// Whether the trace will show the end of a context that begins here.
bool DpuCosts::stays_shown(const dpu::TaskContext& context, std::uint64_t at) const {
    for (std::size_t i = setup_.filters.size(); i-- > 0;)
        if (i == 0 || setup_.filters[i].from <= at) return setup_.filters[i].matches(context) == true;
    return true;
}

bool DpuCosts::filtered() const {
    return std::any_of(setup_.filters.begin(), setup_.filters.end(), [](const DpuFilter& f) { return f.on; });
}

bool DpuCosts::filter_changed() const { return setup_.filters.size() > 1 && filtered(); }

bool DpuCosts::has_unattributed() const {
    const auto found = tasks_.find({DpuOwner::Kind::unattributed});
    return found != tasks_.end() &&
           std::any_of(found->second.sum.begin(), found->second.sum.end(), [](std::uint64_t n) { return n != 0; });
}

/// The sum of waiting and stalled cycles cannot exceed the counted cycles.
bool DpuCosts::beyond(const DpuCounts& counts) const {
    if (!setup_.cycles) return false;
    for (std::size_t i = 0; i < counts.size(); ++i)
        if ((setup_.within_cycles >> i & 1U) != 0 && counts[i] > counts[*setup_.cycles]) return true;
    return false;
}

/// Notes an implausible interval.
void DpuCosts::doubt(const DpuCounts& counts, std::uint8_t wide, std::optional<Offset> at, bool lossy) {
    wide = static_cast<std::uint8_t>(wide & ~setup_.rewritten);
    const bool is_beyond = beyond(counts);
    if (wide == 0 && !is_beyond) return;
    if (wide_.intervals == 0 && wide_.beyond == 0) wide_.first = at;
    ++(wide != 0 ? wide_.intervals : wide_.beyond);
    wide_.lossy += wide != 0 && lossy ? 1U : 0U;
    wide_.counters |= wide;
}

void DpuCosts::reading(const Element& e, const Reading& sent) {
    const bool skipped = readings_checked_.skipped();
    const Reading* const believed = readings_checked_.next(sent);
    if (believed == nullptr) {
        if (doubted_.readings++ == 0) doubted_.first = e.offset;
        doubted_.last = e.offset;
        // The entry still tells which context runs now.
        context_ = e.context;
        reading_at_ = e.offset.value;
        return;
    }
    const Reading& r = *believed;
    const DpuOwner who = owner(e, r);
    const DpuCounts counts = widened(r.deltas);
    if (!first_values_ || r.has(Reading::first)) first_values_ = r.values;
    if (!r.has(Reading::first)) doubt(counts, r.wide, e.offset, sent.has(Reading::lossy));
    if (skipped) [[unlikely]] {
        ++doubted_.intervals;
        add(doubted_.counts, counts);
    }
    add(intervals_, counts);
    if (who.kind == DpuOwner::Kind::unattributed) lose_stacks();
    const bool changed = e.kind != ElementKind::sample;
    book(who, counts, changed ? last_place(e) : std::nullopt, !r.has(Reading::first));
    time_ += setup_.cycles ? counts[*setup_.cycles] : 1;
    ++readings_;
    lossy_ = mixed_ = false;

    // The ending context is known if the whole interval belongs to it.
    if (changed) calls_.change(e, who.is_context() ? context_ : std::nullopt);
    if (changed) {
        run_ = code_.at(e.to, e.offset);
        run_came_from_ = e.from;
    }
    const bool stays = stays_shown(e.context, e.offset.value);
    if (!stay_ || stay_->context != e.context) {
        // After entries that a filter left out, this entry exists because its context begins to match.
        const bool begins = who.is_context() || who.kind == DpuOwner::Kind::filtered;
        stay(stays ? std::optional(e.context) : std::nullopt, begins, true);
    }
    if (changes_) {
        if (stays && shown_ != e.context) ++tasks_[{DpuOwner::Kind::context, e.context, {}}].entered;
        shown_ = e.context;
    }
    context_ = e.context;
    reading_at_ = e.offset.value;
}

/// Where the code of the interval before a change of flow ended. An interrupt names the last instruction before it
/// (docs/spec/dpu.md, 9). After a call or return that has led elsewhere, the code ended at the call or return itself:
/// nothing ran at its target.
std::optional<DpuCode::Place> DpuCosts::last_place(const Element& e) const {
    const Place place = code_.at(e.from, e.offset);
    const bool interrupt = context_ && !context_->supervisor && e.context.supervisor;
    if (!interrupt || !run_ || run_came_from_ != e.from || code_.home(*run_) == code_.home(place)) return place;
    return run_;
}

void DpuCosts::lose_stacks() {
    calls_.lose();
    run_.reset();
}

/// Adds an interval's counts to one bucket of each view.
void DpuCosts::book(const DpuOwner& who, const DpuCounts& counts, std::optional<Place> last_pc, bool known) {
    add(total_, counts);
    DpuTask& task = tasks_[who];
    task.known &= known;
    add(task.sum, counts);
    if (who.kind == DpuOwner::Kind::sampled) add(task.sampled, counts);
    if (who.kind == DpuOwner::Kind::tail_context) add(task.tail, counts);
    if (who.is_context() && stay_ && stay_->context == who.context)
        add(stay_->counts, counts);
    else if (!who.is_context())
        stay(std::nullopt, false, false);
    if (who.kind == DpuOwner::Kind::filtered)
        calls_.pass_unseen();
    else
        calls_.pass(counts);

    // In modes TASK and FLOW, the code of an interval begins at the target of the previous reading and ends at the
    // source of this one.
    const bool in_code = who.is_context() && changes_ && run_;
    bool in_range = false;
    for (std::size_t i = 0; i < setup_.ranges.size(); ++i) {
        if (!in_code) break;
        const auto inside = [&](const Place& pc) {
            const DpuCodeRange& range = setup_.ranges[i];
            return pc.address >= range.first && pc.address < range.second &&
                   (range.image == DpuCode::no_image || range.image == code_.image(pc));
        };
        const bool first = inside(*run_), last = last_pc ? inside(*last_pc) : first;
        if (!first && !last) continue;
        in_range = true;
        add(first && last ? ranges_[i].inside : ranges_[i].crossing, counts);
        ++(first && last ? ranges_[i].intervals : ranges_[i].crossings);
    }
    if (!in_range) add(outside_, counts);

    if (setup_.mode != dpu::TraceMode::flow) return;
    calls_.book(who, counts, in_code ? run_ : std::nullopt, last_pc, known);
}

/// Begins a stay. `context` nullopt: the context is not known. `begins`: the stay begins here. `ended`: the previous
/// stay ended here.
void DpuCosts::stay(const std::optional<dpu::TaskContext>& context, bool begins, bool ended) {
    if (stay_) {
        if (stay_->begins && ended) tasks_[{DpuOwner::Kind::context, stay_->context, {}}].stays.take(stay_->counts);
        stay_->end = time_;
        if (stays_.size() < setup_.most_stays)
            stays_.push_back(*stay_);
        else
            ++stays_left_out_;
    }
    stay_.reset();
    if (context) stay_ = DpuStay{*context, time_, time_, {}, begins};
}

// ---- the end

void DpuCosts::finish() {
    bool ended = false;
    if (const auto& values = readings_checked_.values(); setup_.final && values) {
        DpuCounts counts{};
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = dpu::counted((*values)[i], (*setup_.final)[i]);
        const bool skipped = readings_checked_.skipped();
        if (skipped) {
            ++doubted_.intervals;
            add(doubted_.counts, counts);
        }
        add(intervals_, counts);
        using Kind = DpuOwner::Kind;
        DpuOwner who{Kind::tail};
        if (lossy_ || skipped)
            who = {Kind::unattributed};
        else if (const auto is_shown = context_ ? shown(~std::uint64_t{0}) : std::optional(true); is_shown != true)
            who = {is_shown ? Kind::filtered : Kind::unattributed};
        else if (changes_ && setup_.complete && context_)
            who = {Kind::tail_context, *context_};
        if (who.kind == Kind::unattributed) lose_stacks();
        const bool any = std::any_of(counts.begin(), counts.end(), [](std::uint64_t n) { return n != 0; });
        if (any) book(who, counts, std::nullopt, true);
        ended = !setup_.ended_after && (who.is_context() || (!any && who.kind != Kind::unattributed));
        std::uint8_t wide = 0;
        for (std::size_t i = 0; i < counts.size(); ++i)
            wide = static_cast<std::uint8_t>(wide | (dpu::is_wide(counts[i]) ? 1U : 0U) << i);
        doubt(counts, wide, {}, lossy_);
        time_ += setup_.cycles ? counts[*setup_.cycles] : 1;
    }
    stay(std::nullopt, false, ended);
    // If the program went on, open calls did so too, for an unknown time.
    if (!ended) calls_.lose();
    calls_.finish();
    loops_.finish();
}

std::array<DpuReconciled, dpu::counter_count> DpuCosts::reconciled(const DpuCounts& rows) const {
    std::array<DpuReconciled, dpu::counter_count> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].sum = rows[i];
        out[i].intervals = intervals_[i];
        if (first_values_) out[i].from = (*first_values_)[i];
        if (setup_.final)
            out[i].to = (*setup_.final)[i];
        else if (const auto& values = readings_checked_.values())
            out[i].to = (*values)[i];
    }
    return out;
}

}  // namespace waymark::analysis
