#include "counter_logic.h"

namespace waymark::dpu {

namespace {

template <class Register>
CounterLogic::Control control_from(const Register& r, unsigned position) {
    CounterLogic::Control c;
    c.enable = static_cast<Selector>(r.tenm);
    c.disable = static_cast<Selector>(r.tdm);
    c.enable_in = static_cast<Qualifier>(r.tenmp);
    c.disable_in = static_cast<Qualifier>(r.tdmp);
    c.count_in = static_cast<Qualifier>(r.cegp);
    c.event = event_set(r.ceg)[position];
    c.wraps = r.cmode == static_cast<std::uint8_t>(CounterMode::trace);
    return c;
}

}  // namespace

void CounterLogic::control_written(const Registers& registers, std::uint32_t offset, bool changed_tcen) {
    // A register applies if it controls its counters now: a triad's register under TCEN, a counter's own register
    // without.
    std::uint8_t ruled = 0;
    const auto triad = [&](const auto& group, unsigned first, const auto&... own) {
        if (offset == group.offset && changed_tcen) {
            enabled_ &= static_cast<std::uint8_t>(~(7U << first));
            counting_ &= static_cast<std::uint8_t>(~(7U << first));
        }
        if (offset == group.offset && group.tcen) ruled = static_cast<std::uint8_t>(7U << first);
        unsigned position = 0;
        const auto counter = [&](const auto& r) {
            const unsigned i = first + position;
            controls_[i] = group.tcen ? control_from(group, position) : control_from(r, position);
            if (offset == r.offset && !group.tcen) ruled = static_cast<std::uint8_t>(1U << i);
            ++position;
        };
        (counter(own), ...);
    };
    triad(registers.tac, 0, registers.ca0c, registers.ca1c, registers.ca2c);
    triad(registers.tbc, counters_per_triad, registers.cb0c, registers.cb1c, registers.cb2c);

    for (unsigned i = 0; i < counter_count; ++i) {
        const auto bit = static_cast<std::uint8_t>(1U << i);
        if ((ruled & bit) == 0) continue;
        if (controls_[i].enable == Selector::immediate) enabling_ |= bit;
        if (controls_[i].disable == Selector::immediate) disabling_ |= bit;
    }
}

}  // namespace waymark::dpu
