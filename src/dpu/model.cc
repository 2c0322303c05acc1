#include "waymark/dpu/model.h"

#include "model_unit.h"

namespace waymark::dpu {

namespace {

/// Counter actions of DP_CR, A0 first.
Action counter_action(const DpCr& cr, unsigned i) {
    const std::uint8_t codes[] = {cr.deca0, cr.deca1, cr.deca2, cr.decb0, cr.decb1, cr.decb2};
    return static_cast<Action>(codes[i]);
}

/// ISEDCAn and EIS: bit 0 line 0, bit 1 line 1.
std::uint8_t channel_lines(const DpCr& cr, unsigned channel) {
    const std::uint8_t codes[] = {cr.isedca0, cr.isedca1, cr.isedca2, cr.isedca3, cr.isedca4, cr.isedca5};
    return codes[channel % 6];
}

}  // namespace

// ---- one cycle

void Model::Unit::whole_cycle(const CycleInput& in) {
    begin_output();
    if (!power(in)) {
        ++cycle_;
        return;
    }
    ++counts_.cycles;
    counters_.begin_cycle();
    apply_writes(in);  // 1
    match_ = id_match(in.ctx);
    occurrences(in);
    counters_.resolve(selectors_, in.ctx.supervisor, match_);  // 2
    counters_.note_match(match_);
    if (registers_.tc.en) history_.partial |= not_counting();
    count(in);           // 3, 4
    entries(in);         // 5, 6
    bus(in.bus_others);  // 7
    const Phase before = phase_;
    advance_phase();
    nexus_.drain(output_.nexus, 1);
    counts_.nexus_lost = nexus_.lost();
    counts_.nexus_bytes = nexus_.accepted();
    outputs(in);  // 8
    last_context_ = in.ctx;
    last_match_ = match_;
    seen_a_cycle_ = true;
    find_plain(in);
    plain_ = plain_ && phase_ == before;  // a flush may have been waiting for this
    ++cycle_;
}

void Model::Unit::begin_output() {
    output_.pic = {};
    output_.debug_request = false;
    output_.bursts.clear();
    output_.nexus.clear();
    output_.errors.clear();
    lines_pulsed_ = 0;
}

/// M_CR.DPUE changed, or is 0.
bool Model::Unit::power_changed(const CycleInput& in) {
    if (was_powered_ && !in.dpue) {
        dead_ = true;
        if (registers_.tc.en || holds_data())
            report(DpTc::offset,
                   "the unit was disabled with trace data in its buffer, which are lost; write EN = 0 and wait for "
                   "DP_SR.TWBA = 0 before M_CR.DPUE is cleared");
    }
    powered_ = in.dpue && !dead_;
    was_powered_ = powered_;
    if (powered_) return true;
    for (const Write& w : writes_)
        report(w.offset, dead_ ? "the unit was disabled and stays so until a platform reset; the write does nothing"
                               : "the unit is not enabled; set M_CR.DPUE before its registers are written");
    writes_.clear();
    plain_ = false;
    return false;
}

// ---- 2: occurrences

void Model::Unit::occurrences(const CycleInput& in) {
    selectors_ = 0;
    std::fill(&own(EventWire::task_active), &own(EventWire::debugev) + 1, 0);
    own(EventWire::cycles) = in.in_debug ? 0 : 1;
    own(EventWire::task_active) = match_ && !in.in_debug ? 1 : 0;
    own(EventWire::task_in) = match_ && !last_match_ ? 1 : 0;
    own(EventWire::task_switches) = seen_a_cycle_ && shown_as(in.ctx).id != shown_as(last_context_).id ? 1 : 0;
    own(EventWire::twb_low) = std::exchange(low_, 0);
    own(EventWire::twb_high) = std::exchange(high_, 0);
    own(EventWire::trace_lost) = std::exchange(lost_now_, 0);
    for (const EonceItem& item : in.items) {
        switch (item.kind) {
            case ItemKind::interrupt:
                ++own(item.cause == InterruptCause::interrupt ? EventWire::interrupts : EventWire::exceptions);
                break;
            case ItemKind::mark:
                ++own(EventWire::mark);
                selectors_ |= 1U << static_cast<unsigned>(Selector::mark);
                break;
            case ItemKind::debugev:
                ++own(EventWire::debugev);
                selectors_ |= 1U << static_cast<unsigned>(Selector::debugev);
                break;
            case ItemKind::edcd: selectors_ |= 1U << static_cast<unsigned>(Selector::edcd); break;
            case ItemKind::edca: {
                const unsigned channel = item.channel % 6U;
                ++own_[static_cast<std::size_t>(EventWire::edca0) + channel];
                selectors_ |= 1U << (static_cast<unsigned>(Selector::edca0) + channel);
                lines_pulsed_ |= channel_lines(registers_.cr, channel);
                break;
            }
            default: break;
        }
    }
}

// ---- 3 and 4: counting

void Model::Unit::count(const CycleInput& in) {
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if (!counters_.counting(i) || !qualified(c.count_in, in.ctx.supervisor, match_)) continue;
        std::uint64_t n = is_own(c.event) ? own(c.event) : in.wire[static_cast<std::size_t>(c.event)];
        if (c.event == EventWire::task_total) n = counters_.total_open(i) && !in.in_debug ? 1 : 0;
        if (n != 0 && counters_.count(i, n)) counter_event(i);
    }
}

void Model::Unit::counter_event(unsigned i) {
    registers_.mr = from_value<DpMr>(to_value(registers_.mr) | 1U << i);
    causes_ = true;
    if (counter_action(registers_.cr, i) == Action::debug_request) output_.debug_request = true;
    plain_ = false;
}

/// Whether the next cycle only counts, if it gets no new input.
void Model::Unit::find_plain(const CycleInput& in) {
    plain_ = now_ == in.ctx && nexus_.idle() && low_ == 0 && high_ == 0 && lost_now_ == 0 &&
             !(context_due_ && phase_ == Phase::run) && !flushing() && request() == TraceWriteBuffer::Request::none;
    planned_ = false;
}

/// Finds the counters that count while nothing changes. Among the unit's own events, only events of the clock occur
/// then.
void Model::Unit::plan() {
    planned_ = true;
    plan_size_ = 0;
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if ((counters_.enabled() >> i & 1U) == 0 || !qualified(c.count_in, last_context_.supervisor, match_)) continue;
        const bool clock = c.event == EventWire::cycles || (c.event == EventWire::task_active && match_) ||
                           (c.event == EventWire::task_total && (match_ || counters_.total_open(i)));
        if (clock || !is_own(c.event)) plan_[plan_size_++] = {static_cast<std::uint8_t>(i), clock, c.event};
    }
}

/// A cycle in which only counting can happen.
void Model::Unit::count_plain(const CycleInput& in) {
    if (!planned_) plan();
    bool fired = false;
    for (unsigned k = 0; k < plan_size_; ++k) {
        const Planned& p = plan_[k];
        const std::uint64_t n = p.clock ? (in.in_debug ? 0 : 1) : in.wire[static_cast<std::size_t>(p.wire)];
        if (counters_.count(p.counter, n)) [[unlikely]] {
            counter_event(p.counter);
            fired = true;
        }
    }
    ++counts_.cycles;
    if (fired) [[unlikely]] {
        outputs(in);
        find_plain(in);
    }
    ++cycle_;
}

// ---- 7: the bus

void Model::Unit::bus(bool others) {
    const auto asked = request();
    if (asked == TraceWriteBuffer::Request::none) return;
    ++(asked == TraceWriteBuffer::Request::high ? high_ : low_);
    if (cycle_ >= bus_free_at_ && granted(asked, others)) grant(lines_in_a_burst());
}

/// Full::stall: the core waits while lines leave.
bool Model::Unit::make_room(std::size_t words) {
    if (config_.choices.full != ModelChoices::Full::stall || config_.choices.high == ModelChoices::Grant::never)
        return false;
    while (!buffer_.fits(words)) {
        const unsigned lines = lines_in_a_burst();
        counts_.stalled_cycles += std::uint64_t{config_.choices.bus_cycles_per_line} * lines;
        grant(lines);
    }
    return true;
}

unsigned Model::Unit::lines_in_a_burst() const {
    const std::uint32_t lines = std::min(registers_.tc.burst_lines(), buffer_.lines_held());
    if (registers_.tc.vtb_mode() == VtbMode::single_address) return lines;
    std::uint32_t left = registers_.tea.value - registers_.tw.value;  // one less than the buffer has
    if (registers_.tc.vtb_mode() == VtbMode::trace_event_request) {
        const std::uint32_t requested = line_of(registers_.ter.value) / line_bytes;
        if (requested >= registers_.tw.value) left = std::min(left, requested - registers_.tw.value);
    }
    return left < lines ? left + 1 : lines;
}

void Model::Unit::grant(unsigned lines) {
    const DpTc& tc = registers_.tc;
    Burst& burst = output_.bursts.emplace_back();
    burst.cycle = cycle_;
    burst.address = to_value(registers_.tw);
    burst.lines = static_cast<std::uint8_t>(lines);
    burst.prov = tc.prov;
    burst.global = tc.global;
    burst.fixed = tc.vtb_mode() == VtbMode::single_address;
    buffer_.take(lines, burst.words);
    bus_free_at_ = cycle_ + std::uint64_t{config_.choices.bus_cycles_per_line} * lines;
    counts_.lines_written += lines;
    for (unsigned i = 0; i < lines && !burst.fixed; ++i) line_written(to_value(registers_.tw));
}

/// 5.7: the pointer advances, and reaching the watched line is signalled.
void Model::Unit::line_written(std::uint32_t address) {
    if (registers_.tc.vtb_mode() == VtbMode::trace_event_request && address == line_of(registers_.ter.value) &&
        !registers_.mr.drtb) {
        registers_.mr.drtb = causes_ = true;
        if (static_cast<Action>(registers_.cr.detb) == Action::debug_request) output_.debug_request = true;
    }
    if (address == to_value(registers_.tea)) {
        registers_.tw.value = registers_.tsa.value;
        registers_.mr.twrap = true;
    } else {
        registers_.tw = from_value<DpTw>(address + line_bytes);
    }
}

/// 5.10: a flush ends when everything has reached memory.
void Model::Unit::advance_phase() {
    if (!flushing() || buffer_.held() != 0 || gap_waits() || hold_due_ || cycle_ + 1 < bus_free_at_) return;
    if (phase_ == Phase::close) {
        phase_ = Phase::off;
    } else if (registers_.tc.tmpdis) {
        phase_ = Phase::held;
    } else {
        resume();
    }
}

// ---- 8: interrupts and debug requests

void Model::Unit::outputs(const CycleInput& in) {
    if (in.eonce_irq) lines_pulsed_ |= registers_.cr.eis;
    if (in.debug_ext) registers_.mr.dra = true;
    if (in.debug_nexus) registers_.mr.drn = true;
    if (in.debug_ext || in.debug_nexus) output_.debug_request = true;
    std::uint8_t level = 0;
    if (causes_) {
        const std::uint32_t causes = to_value(registers_.mr);
        const auto route = [&](bool cause, Action action) {
            if (cause && action == Action::line_0) level |= 1;
            if (cause && action == Action::line_1) level |= 2;
        };
        for (unsigned i = 0; i < counter_count; ++i) route((causes >> i & 1U) != 0, counter_action(registers_.cr, i));
        route(registers_.mr.drtb, static_cast<Action>(registers_.cr.detb));
    }
    output_.pic = {((level | lines_pulsed_) & 1U) != 0, ((level | lines_pulsed_) & 2U) != 0};
    // Pulses and bursts must be seen only once, so the next cycle is computed in full.
    dirty_output_ = lines_pulsed_ != 0 || output_.debug_request || !output_.bursts.empty() || !output_.nexus.empty() ||
                    !output_.errors.empty();
}

// ---- many cycles at once

const CycleOutput* Model::Unit::run(const CycleInput& in, std::uint64_t cycles) {
    const bool powers_down = was_powered_ && !in.dpue;
    if (!in.items.empty() || !writes_.empty() || powers_down) return nullptr;
    if (dead_ || !in.dpue) {
        powered_ = false;
        begin_output();
        cycle_ += cycles;
        return &output_;
    }

    // The sums that each counter will count. The buffer has at most one request and one loss in each cycle, and the
    // waiting ones.
    const bool match = id_match(in.ctx);
    const std::uint64_t clock = in.in_debug ? 0 : cycles;
    std::array<std::uint64_t, counter_count> totals{};
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if ((counters_.enabled() >> i & 1U) == 0 || !qualified(c.count_in, in.ctx.supervisor, match)) continue;
        std::uint64_t unsure = 0;
        switch (c.event) {
            case EventWire::cycles: totals[i] = clock; break;
            case EventWire::task_active: totals[i] = match ? clock : 0; break;
            case EventWire::task_total: totals[i] = match || counters_.total_open(i) ? clock : 0; break;
            case EventWire::task_in: totals[i] = cycles != 0 && match && !last_match_ ? 1 : 0; break;
            case EventWire::task_switches:
                totals[i] = cycles != 0 && seen_a_cycle_ && shown_as(in.ctx).id != shown_as(last_context_).id ? 1 : 0;
                break;
            case EventWire::twb_low: unsure = cycles + low_; break;
            case EventWire::twb_high: unsure = cycles + high_; break;
            case EventWire::trace_lost: unsure = cycles + lost_now_ + 4; break;
            default: totals[i] = is_own(c.event) ? 0 : in.wire[static_cast<std::size_t>(c.event)]; break;
        }
        if (!c.wraps && totals[i] + unsure >= counters_.until_zero(i)) return nullptr;
    }
    begin_output();
    if (cycles == 0) return &output_;
    powered_ = was_powered_ = true;
    match_ = match;
    counters_.note_match(match);
    counts_.cycles += cycles;

    std::uint64_t low = 0, high = 0, lost = 0;
    const auto collect = [&] {
        low += std::exchange(low_, 0);
        high += std::exchange(high_, 0);
        lost += std::exchange(lost_now_, 0);
    };
    Phase before = phase_;
    for (const std::uint64_t end = cycle_ + cycles; cycle_ != end;) {
        collect();
        before = phase_;
        entries(in);
        bus(in.bus_others);
        advance_phase();
        nexus_.drain(output_.nexus, 1);
        ++cycle_;
        if (phase_ != before || (context_due_ && phase_ == Phase::run)) continue;

        // From here on all cycles are alike: cycles without a request, with a refused request, or waiting for the bus.
        const auto asked = request();
        std::uint64_t alike = end - cycle_;
        if (asked != TraceWriteBuffer::Request::none && granted(asked, in.bus_others))
            alike = bus_free_at_ > cycle_ ? std::min(alike, bus_free_at_ - cycle_) : 0;
        else if (asked == TraceWriteBuffer::Request::none && flushing())
            alike = bus_free_at_ > cycle_ + 1 ? std::min(alike, bus_free_at_ - 1 - cycle_) : 0;
        if (alike == 0) continue;
        collect();
        if (asked == TraceWriteBuffer::Request::low) low += alike - 1, low_ = 1;
        if (asked == TraceWriteBuffer::Request::high) high += alike - 1, high_ = 1;
        nexus_.drain(output_.nexus, alike);
        cycle_ += alike;
        before = phase_;
    }
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if ((counters_.enabled() >> i & 1U) == 0 || !qualified(c.count_in, in.ctx.supervisor, match)) continue;
        if (c.event == EventWire::twb_low) totals[i] = low;
        if (c.event == EventWire::twb_high) totals[i] = high;
        if (c.event == EventWire::trace_lost) totals[i] = lost;
        WM_CHECK(!counters_.count(i, totals[i]));
    }
    counts_.nexus_lost = nexus_.lost();
    counts_.nexus_bytes = nexus_.accepted();
    outputs(in);
    last_context_ = in.ctx;
    last_match_ = match;
    seen_a_cycle_ = true;
    find_plain(in);
    plain_ = plain_ && phase_ == before;
    return &output_;
}

// ---- Model

Model::Model(const ModelConfig& config) : unit_(std::make_unique<Unit>(config)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

void Model::reset() { unit_ = std::make_unique<Unit>(unit_->config()); }
void Model::write(std::uint32_t offset, std::uint32_t value) { unit_->write(offset, value); }
std::uint32_t Model::read(std::uint32_t offset) const { return unit_->read(offset); }
const CycleOutput& Model::step(const CycleInput& in) { return unit_->step(in); }
const CycleOutput* Model::run(const CycleInput& in, std::uint64_t cycles) { return unit_->run(in, cycles); }
std::uint64_t Model::cycle() const { return unit_->cycle(); }
Status Model::set_eonce(const EonceSetup& eonce) { return unit_->set_eonce(eonce); }
void Model::set_arbiter(ModelChoices::Grant high, ModelChoices::Grant low) { unit_->set_arbiter(high, low); }
void Model::capture(std::uint8_t mask) { unit_->capture(mask); }
const Counters& Model::shadow() const { return unit_->shadow(); }
Counters Model::values() const { return unit_->values(); }
Registers Model::registers() const { return unit_->registers(); }
bool Model::idle() const { return unit_->idle(); }
const ModelCounts& Model::counts() const { return unit_->counts(); }
const std::vector<TracePeriod>& Model::periods() const { return unit_->periods(); }
const std::vector<FilterChange>& Model::filters() const { return unit_->filters(); }
CounterHistory Model::counter_history() const { return unit_->counter_history(); }
const ModelConfig& Model::config() const { return unit_->config(); }

}  // namespace waymark::dpu
