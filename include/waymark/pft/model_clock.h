/// Time as a model knows it: cycles, ticks of the timestamp bus, and the cycle counts of packets (docs/spec/pft.md,
/// 5.5).
#pragma once

#include <algorithm>
#include <cstdint>

namespace waymark::pft {

/// `Config` has cycle_accurate; `Choices` has cycle_overflow, and timestamp_first, _numerator and _denominator.
template <class Config, class Choices>
class ModelClock {
public:
    /// Both are borrowed.
    ModelClock(const Config& config, const Choices& choices) : config_(config), choices_(choices) {}

    [[nodiscard]] std::uint64_t now() const { return now_; }
    /// Returns how many cycles have passed; time does not run back.
    std::uint64_t advance(std::uint64_t cycle) {
        const std::uint64_t passed = cycle > now_ ? cycle - now_ : 0;
        now_ += passed;
        return passed;
    }

    /// Sets the present value of the timestamp bus.
    void set_ticks(std::uint64_t ticks) {
        ticks_base_ = ticks;
        ticks_cycle_ = now_;
        ticks_set_ = true;
    }
    [[nodiscard]] std::uint64_t ticks(std::uint64_t cycle) const {
        const std::uint64_t passed = cycle > ticks_cycle_ ? cycle - ticks_cycle_ : 0;
        return (ticks_set_ ? ticks_base_ : choices_.timestamp_first) + ticks_of(passed);
    }
    [[nodiscard]] std::uint64_t ticks_of(std::uint64_t cycles) const {
        return cycles * choices_.timestamp_numerator / std::max(choices_.timestamp_denominator, 1U);
    }

    /// Continues with the time of another clock.
    void take_over(const ModelClock& before) {
        now_ = before.now_;
        ticks_base_ = before.ticks_base_;
        ticks_cycle_ = before.ticks_cycle_;
        ticks_set_ = before.ticks_set_;
        count_base_ = before.count_base_;
        sent_count_base_ = before.sent_count_base_;
    }

    /// Cycle counts start at this cycle.
    void count_from(std::uint64_t cycle) { count_base_ = sent_count_base_ = cycle; }
    /// The cycles since the last count.
    std::uint32_t count(std::uint64_t cycle, bool isync = false) {
        if (!config_.cycle_accurate || cycle <= count_base_) return 0;
        const std::uint64_t cycles = cycle - count_base_;
        count_base_ = cycle;
        if (cycles <= 0xffffffffU || choices_.cycle_overflow == Choices::CycleOverflow::wrap)
            return static_cast<std::uint32_t>(cycles);
        // OQ6
        return isync && choices_.cycle_overflow == Choices::CycleOverflow::saturate_zero_isync ? 0 : 0xffffffffU;
    }
    /// The cycle up to which cycles were counted.
    [[nodiscard]] std::uint64_t counted() const { return count_base_; }
    /// Another part of the model counted the cycles up to here.
    void count_to(std::uint64_t cycle) { count_base_ = cycle; }
    /// The trace contains the counted cycles.
    void counts_sent() { sent_count_base_ = count_base_; }
    /// The cycles counted since then were lost: the next packet counts them again.
    void take_back_counts() { count_base_ = sent_count_base_; }

private:
    const Config& config_;
    const Choices& choices_;
    std::uint64_t now_ = 0;
    std::uint64_t ticks_base_ = 0, ticks_cycle_ = 0;
    bool ticks_set_ = false;
    std::uint64_t count_base_ = 0, sent_count_base_ = 0;
};

}  // namespace waymark::pft
