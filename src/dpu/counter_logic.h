/// The counting half of the counter and register logic: six counters, what enables and disables them, and the events
/// they see (docs/spec/dpu.md, section 4).
#pragma once

#include <array>
#include <cstdint>

#include "waymark/dpu/codec.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/registers.h"

namespace waymark::dpu {

/// Whether an event counts in this context (3.3).
[[nodiscard]] constexpr bool qualified(Qualifier qualifier, bool supervisor, bool id_match) {
    switch (qualifier) {
        case Qualifier::any: return true;
        case Qualifier::user_match: return !supervisor && id_match;
        case Qualifier::supervisor_match: return supervisor && id_match;
        case Qualifier::match: return id_match;
    }
    return false;
}

/// Sets of counters are masks: bit 0 is A0, bit 5 is B2.
class CounterLogic {
public:
    /// The control of one counter, from its own register or its triad's.
    struct Control {
        Selector enable{}, disable{};
        Qualifier enable_in{}, disable_in{}, count_in{};
        EventWire event{};
        bool wraps = false;  ///< trace mode
    };

    // ---- step 1 of a cycle (4.2)

    void begin_cycle() {
        counting_ = enabled_;
        enabling_ = disabling_ = 0;
    }
    /// A control register was written at `offset`; `controls` has the present contents of all control registers.
    /// `changed_tcen`: the triad's TCEN changed, so its counters are disabled first (4.3).
    void control_written(const Registers& registers, std::uint32_t offset, bool changed_tcen);
    void set_value(unsigned i, std::uint32_t value) { values_[i] = value & counter_mask; }

    // ---- step 2

    /// Applies events that enable and disable counters. `occurred`: a bit for each Selector. Disabling wins.
    void resolve(std::uint32_t occurred, bool supervisor, bool id_match) {
        if (occurred != 0)
            for (unsigned i = 0; i < counter_count; ++i) {
                const Control& c = controls_[i];
                const auto bit = static_cast<std::uint8_t>(1U << i);
                if ((occurred >> static_cast<unsigned>(c.enable) & 1U) != 0 &&
                    qualified(c.enable_in, supervisor, id_match))
                    enabling_ |= bit;
                if ((occurred >> static_cast<unsigned>(c.disable) & 1U) != 0 &&
                    qualified(c.disable_in, supervisor, id_match))
                    disabling_ |= bit;
            }
        total_open_ &= static_cast<std::uint8_t>(~(enabling_ & ~enabled_));
        enabled_ = static_cast<std::uint8_t>((enabled_ | enabling_) & ~disabling_);
        counting_ &= static_cast<std::uint8_t>(~disabling_);
    }
    /// For TASK_TOTAL: set from the first match after enabling on.
    void note_match(bool id_match) {
        if (id_match) total_open_ |= enabled_;
    }

    // ---- steps 3 and 4

    /// Counts `n` events. Returns true if the counter, in one-shot mode, has reached zero and stopped.
    bool count(unsigned i, std::uint64_t n) {
        const std::uint32_t value = values_[i];
        if (!controls_[i].wraps && value != 0 && n >= value) [[unlikely]] {
            values_[i] = 0;
            enabled_ &= static_cast<std::uint8_t>(~(1U << i));
            return true;
        }
        values_[i] = static_cast<std::uint32_t>(value - n) & counter_mask;
        return false;
    }
    /// Number of events until a one-shot counter stops; a counter at 0 needs 2^31.
    [[nodiscard]] std::uint64_t until_zero(unsigned i) const {
        return values_[i] != 0 ? values_[i] : std::uint64_t{counter_mask} + 1;
    }

    // ---- reading

    [[nodiscard]] const Control& control(unsigned i) const { return controls_[i]; }
    [[nodiscard]] std::uint8_t enabled() const { return enabled_; }
    [[nodiscard]] bool counting(unsigned i) const { return (counting_ >> i & 1U) != 0; }
    [[nodiscard]] bool total_open(unsigned i) const { return (total_open_ >> i & 1U) != 0; }
    [[nodiscard]] std::uint32_t value(unsigned i) const { return values_[i]; }
    [[nodiscard]] const Counters& values() const { return values_; }

private:
    std::array<Control, counter_count> controls_{};
    Counters values_{};
    std::uint8_t enabled_ = 0, counting_ = 0, enabling_ = 0, disabling_ = 0, total_open_ = 0;
};

}  // namespace waymark::dpu
