#include "waymark/pft/resources.h"

#include <algorithm>
#include <bit>

namespace waymark::pft {
namespace {

constexpr std::uint32_t always = 0x006f, never = 0x406f;

/// Access types of an ETMv3: 0 fetch, 1 execute, 2 and 3 execute with its condition true or false; others are for data.
constexpr bool instruction_access(unsigned type, bool passed) {
    return type <= 1 || (type == 2 && passed) || (type == 3 && !passed);
}

/// The bits of an instruction's address that a single comparator of an ETMv3 ignores, by its size in bits 4:3: 1
/// halfword, 3 word.
std::uint32_t ignored_bits(const Etmactr& access) { return to_value(access) >> 3 & 3U; }

template <class Register>
std::uint32_t event_value(const Register& r) {
    return to_value(r) & 0x1ffffU;
}
constexpr bool bit(std::uint32_t bits, unsigned n) { return (bits >> n & 1U) != 0; }

}  // namespace

Resources::Resources(const Registers& registers, ModelChoices::StartAndStop start_and_stop)
    : r_(registers), start_and_stop_choice_(start_and_stop) {
    const auto is_none = [](const auto& group) {
        return std::all_of(group.begin(), group.end(), [](const auto& r) { return event_value(r) == never; });
    };
    trivial_ = event_value(r_.teevr) == always && !r_.tecr1.start_stop && r_.tecr1.exclude && r_.tecr1.ranges == 0 &&
               r_.tecr2.single == 0 && event_value(r_.trigger) == never && event_value(r_.tsevr) == never &&
               is_none(r_.extoutevr) && to_value(r_.tsscr) == 0 && to_value(r_.tesseicr) == 0;
    note_use();
    trivial_ = trivial_ && !sequencer_used_ && !counters_used_;
    start_stop_ = start_stop_now_ = r_.sr.start_stop;
    sequencer_ = std::clamp(r_.sqr.value + 1, 1U, 3U);
    for (unsigned i = 0; i < counters_.size(); ++i) {
        counters_[i] = r_.cntvr[i].value;
        at_zero_[i] = counters_[i] == 0;
    }
    sample();
    // An event that is true from the beginning has not become true.
    trigger_rose_ = timestamp_rose_ = false;
}

void Resources::note_use() {
    const auto resource_used = [&](unsigned type, unsigned index) {
        if (type == 0) used_single_ |= 1U << index;
        if (type == 1 && index < 8) used_ranges_ |= 1U << index;
        counters_used_ |= type == 4;
        sequencer_used_ |= type == 5 && index < 3;
    };
    const auto used = [&](const EventFields& e) {
        resource_used(e.a_type, e.a_index);
        if (e.function >= 2) resource_used(e.b_type, e.b_index);
    };
    const auto all = [&](const auto& group) {
        for (const auto& e : group) used(e);
    };
    used(r_.teevr), used(r_.trigger), used(r_.tsevr);
    all(r_.extoutevr), all(r_.cntenr), all(r_.cntrldevr), all(r_.sqevr);
    // The states of these resources can be read, even if no event uses them.
    sequencer_used_ |=
        std::any_of(r_.sqevr.begin(), r_.sqevr.end(), [](const auto& r) { return event_value(r) != never; });
    const auto counts = [](const auto& r) { return !r.by_event || event_value(r) != never; };
    counters_used_ |= std::any_of(r_.cntenr.begin(), r_.cntenr.end(), counts) ||
                      (r_.ccer.reduced_counter && r_.cntrldvr[0].value != 0);
    used_single_ |= r_.tsscr.start | std::uint32_t{r_.tsscr.stop} | r_.tecr2.single;
    used_ranges_ |= r_.tecr1.ranges;
    const auto some = [](const auto& group) {
        return std::any_of(group.begin(), group.end(), [](const auto& r) { return event_value(r) != never; });
    };
    events_used_ = event_value(r_.trigger) != never || event_value(r_.tsevr) != never || some(r_.extoutevr);
}

bool Resources::compare(const ComparedBlock& block) {
    ns_ = block.ns;
    context_ids_ = 0;
    for (unsigned i = 0; i < r_.cidcvr.size(); ++i)
        if (((r_.cidcvr[i].value ^ block.context_id) & ~r_.cidcmr.value) == 0) context_ids_ |= 1U << i;
    vmid_ = r_.vmidcvr.value == block.vmid;
    single_ = included_ = excluded_ = 0;
    if (!block.jazelle) {
        for (std::uint32_t left = used_single_; left != 0; left &= left - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(left));
            const std::uint32_t value = r_.acvr[i].value, low = r_.is_etmv3() ? ignored_bits(r_.actr[i]) : 0;
            if ((block.start & ~std::uint64_t{low}) <= value && (value & ~low) <= block.end &&
                permitted(r_.actr[i], block))
                single_ |= 1U << i;
        }
        for (std::uint32_t left = used_ranges_; left != 0; left &= left - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(left));
            const std::uint64_t low = r_.acvr[2 * i].value, high = r_.acvr[2 * i + 1].value;
            if (!permitted(r_.actr[2 * i], block)) continue;
            // To include a block or cause an event, a range must overlap the block; to exclude it, contain it.
            if (low <= block.end && high > block.start) included_ |= 1U << i;
            if (low <= block.start && high > block.end) excluded_ |= 1U << i;
        }
    }
    run_start_stop();
    sample();
    const bool single = (single_ & r_.tecr2.single) != 0;
    const bool selected =
        r_.tecr1.exclude ? (excluded_ & r_.tecr1.ranges) == 0 && !single : (included_ & r_.tecr1.ranges) != 0 || single;
    const bool enabled = event(r_.teevr) && (!r_.tecr1.start_stop || start_stop_now_) && selected;
    if (sequencer_used_) run_sequencer();
    if (counters_used_) reload_counters();
    return enabled;
}

/// The access type of a comparator: security state, privilege, Context ID and VMID may also be conditions, and of an
/// ETMv3 the instruction's condition.
bool Resources::permitted(const Etmactr& access, const ComparedBlock& block) const {
    if (r_.is_etmv3() && !instruction_access(access.access, block.passed)) return false;
    const unsigned control =
        block.ns ? access.ns_high * 2U + access.ns_low : access.secure_high * 2U + access.secure_low;
    if (control == 1 || (control == 2 && block.user) || (control == 3 && !block.user)) return false;
    if (access.hyp && block.hyp) return false;
    if (access.context_id != 0 && !bit(context_ids_, access.context_id - 1U)) return false;
    return !access.vmid || vmid_;
}

/// After a stop the present block stays on, and the next block is off.
void Resources::run_start_stop() {
    const bool start = (single_ & r_.tsscr.start) != 0 || (watchpoints_ & r_.tesseicr.start) != 0;
    const bool stop = (single_ & r_.tsscr.stop) != 0 || (watchpoints_ & r_.tesseicr.stop) != 0;
    const bool before = start_stop_;
    start_stop_now_ = before || start;
    if (start && stop) {
        switch (start_and_stop_choice_) {  // OQ7
            case ModelChoices::StartAndStop::turns: start_stop_ = !before; break;
            case ModelChoices::StartAndStop::off: start_stop_ = false; break;
            case ModelChoices::StartAndStop::on: start_stop_ = true; break;
        }
    } else {
        start_stop_ = stop ? false : start_stop_now_;
    }
}

void Resources::run_sequencer() {
    // The order is that of the registers: 1 to 2, 2 to 1, 2 to 3, 3 to 1, 3 to 2, 1 to 3.
    constexpr unsigned from[] = {1, 2, 2, 3, 3, 1}, to[] = {2, 1, 3, 1, 2, 3};
    unsigned next = 0, count = 0;
    for (unsigned i = 0; i < 6; ++i)
        if (from[i] == sequencer_ && event(r_.sqevr[i])) {
            next = to[i];
            ++count;
        }
    if (count == 1) sequencer_ = next;  // two at once contradict each other: the state stays
}

void Resources::advance(std::uint64_t cycles) {
    if (frozen_ || cycles == 0 || !counters_used_) return;
    for (unsigned i = 0; i < counters_.size(); ++i) {
        const std::uint32_t reload = r_.cntrldvr[i].value;
        if (i == 0 && r_.ccer.reduced_counter) {
            // A counter that counts every cycle and reloads by itself; it is at zero for one cycle.
            at_zero_[i] = cycles >= counters_[i];
            counters_[i] = at_zero_[i] ? reload - static_cast<std::uint32_t>((cycles - counters_[i]) % (reload + 1ULL))
                                       : counters_[i] - static_cast<std::uint32_t>(cycles);
            continue;
        }
        if (r_.cntenr[i].by_event && !event(r_.cntenr[i])) continue;
        counters_[i] = cycles >= counters_[i] ? 0 : counters_[i] - static_cast<std::uint32_t>(cycles);
        at_zero_[i] = counters_[i] == 0;
    }
    sample();
}

void Resources::reload_counters() {
    for (unsigned i = 0; i < counters_.size(); ++i)
        if (event(r_.cntrldevr[i])) {
            counters_[i] = r_.cntrldvr[i].value;
            at_zero_[i] = counters_[i] == 0;
        }
}

bool Resources::resource(unsigned type, unsigned index) const {
    switch (type) {
        case 0: return bit(single_, index);
        case 1:
            if (index < 8) return bit(included_, index);
            return index < 12 && bit(instrumentation_, index - 8);
        case 2: return index < 8 && bit(watchpoints_, index);
        case 4: return index < 4 && at_zero_[index];
        case 5:
            if (index < 3) return sequencer_ == index + 1;
            if (index >= 8 && index < 11) return !prohibited_ && bit(context_ids_, index - 8);
            if (index == 11) return !prohibited_ && vmid_;
            return index == 15 && start_stop_now_;
        case 6: {
            if (index < 4) return bit(inputs_, index);
            const std::uint8_t selected[] = {r_.extinselr.first, r_.extinselr.second, r_.extinselr.third,
                                             r_.extinselr.fourth};
            if (index >= 8 && index < 12) return extended_[selected[index - 8]];
            if (index == 13) return ns_ && !prohibited_;
            if (index == 14) return prohibited_;
            return index == 15;
        }
        default: return false;
    }
}

bool Resources::event(const EventFields& e) const {
    const bool a = resource(e.a_type, e.a_index), b = resource(e.b_type, e.b_index);
    switch (e.function) {
        case 0: return a;
        case 1: return !a;
        case 2: return a && b;
        case 3: return !a && b;
        case 4: return !a && !b;
        case 5: return a || b;
        case 6: return !a || b;
        default: return !a || !b;
    }
}

/// Events are evaluated whenever a resource may have changed.
void Resources::sample() {
    if (frozen_ || !events_used_) return;
    const bool trigger = event(r_.trigger) && !prohibited_, timestamp = event(r_.tsevr);
    trigger_rose_ |= trigger && !trigger_;
    timestamp_rose_ |= timestamp && !timestamp_;
    trigger_ = trigger;
    timestamp_ = timestamp;
    for (unsigned i = 0; i < outputs_.size(); ++i) outputs_[i] = event(r_.extoutevr[i]);
}

namespace {
void set_bit(std::uint32_t& bits, unsigned number, bool level) {
    const std::uint32_t mask = 1U << (number - 1);
    bits = level ? bits | mask : bits & ~mask;
}
}  // namespace

void Resources::external(unsigned number, bool level) {
    set_bit(inputs_, number, level);
    sample();
}
void Resources::extended(unsigned number, bool level) {
    extended_.at(number) = level;
    sample();
}
void Resources::watchpoint(unsigned number, bool level) {
    set_bit(watchpoints_, number, level);
    sample();
}
void Resources::instrumentation(unsigned number, bool level) {
    set_bit(instrumentation_, number, level);
    sample();
}
void Resources::take_signals(const Resources& before) {
    inputs_ = before.inputs_;
    watchpoints_ = before.watchpoints_;
    instrumentation_ = before.instrumentation_;
    extended_ = before.extended_;
    ns_ = before.ns_;
    prohibited_ = before.prohibited_;
    frozen_ = before.frozen_;
    sample();
    trigger_rose_ = timestamp_rose_ = false;
}
void Resources::read_back(Registers& registers) const {
    for (unsigned i = 0; i < counters_.size(); ++i) registers.cntvr[i].value = counters_[i] & 0xffffU;
    registers.sqr.value = sequencer_ - 1;
    registers.sr.start_stop = start_stop_;
}
void Resources::prohibited(bool on, bool frozen) {
    prohibited_ = on;
    frozen_ = frozen;
    if (on) single_ = included_ = excluded_ = 0;
    sample();
}

}  // namespace waymark::pft
