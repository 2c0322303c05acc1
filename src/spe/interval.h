/// Decides when an operation is sampled: the interval counter, and the random numbers that lengthen intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "waymark/core/result.h"
#include "waymark/spe/sampling.h"

namespace waymark::spe {

/// SplitMix64.
class RandomSource {
public:
    explicit RandomSource(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
        z = (z ^ z >> 27) * 0x94d049bb133111ebU;
        return z ^ z >> 31;
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>((*this)() >> 56); }

private:
    std::uint64_t state_;
};

/// The interval counter (1.2), and its next random number.
class IntervalCounter {
public:
    /// `zero`: the meaning of an interval of 0.
    IntervalCounter(std::uint64_t seed, std::uint32_t zero)
        : zero_(zero & 0xff'ffffU), source_(seed), draw_(source_.byte()) {}

    /// Counts one member; returns true if it is chosen.
    bool count(Registers& registers) {
        const bool draws = takes_draw(registers);
        const std::uint32_t written = registers.pmsirr_el1.interval;
        if (written == 0) registers.pmsirr_el1.interval = zero_;
        const bool chosen = count_member(registers, draw_);
        registers.pmsirr_el1.interval = written;
        if (draws) draw_ = source_.byte();
        return chosen;
    }

    /// Skips members, none of which is chosen.
    void skip(Registers& registers, std::uint64_t members) {
        if (never(registers)) return;
        while (members != 0) {
            const std::uint64_t jump = std::min(members, plain(registers));
            if (jump == 0) {
                WM_CHECK(!count(registers));
                --members;
                continue;
            }
            PmsicrEl1& counter = registers.pmsicr_el1;
            counter.count_31_0 -= static_cast<std::uint32_t>(jump);
            if (after(registers) && counter.ecount != 0) counter.ecount -= static_cast<std::uint8_t>(jump);
            members -= jump;
        }
    }

    /// Number of members before the next chosen one.
    [[nodiscard]] std::uint64_t until_chosen(Registers registers) const {
        if (never(registers)) return std::numeric_limits<std::uint64_t>::max();
        IntervalCounter ahead = *this;
        std::uint64_t members = 0;
        // Without an interval, every reload may be 0.
        for (unsigned steps = 0; steps < 16; ++steps) {
            const std::uint64_t jump = ahead.plain(registers);
            ahead.skip(registers, jump);
            members += jump;
            if (ahead.count(registers)) return members;
            ++members;
        }
        return members;  // at least this number
    }

private:
    /// Without an interval nothing is ever chosen, unless jitter replaces it; and no state changes.
    [[nodiscard]] bool never(const Registers& r) const {
        if (r.pmsirr_el1.interval != 0 || zero_ != 0 || r.pmsicr_el1.count_31_0 != 0) return false;
        return !r.pmsirr_el1.rnd || (r.pmsidr_el1.e_rnd && r.pmsicr_el1.ecount == 0);
    }
    [[nodiscard]] static bool after(const Registers& r) { return r.pmsirr_el1.rnd && r.pmsidr_el1.e_rnd; }
    [[nodiscard]] static bool takes_draw(const Registers& r) {
        return r.pmsirr_el1.rnd && r.pmsicr_el1.count_31_0 == (r.pmsidr_el1.e_rnd ? 1U : 0U);
    }
    /// Number of members that only decrement the counter.
    [[nodiscard]] static std::uint64_t plain(const Registers& r) {
        const PmsicrEl1& counter = r.pmsicr_el1;
        if (counter.count_31_0 == 0) return 0;
        const std::uint64_t count = counter.count_31_0 - 1;
        return after(r) && counter.ecount != 0 ? std::min<std::uint64_t>(count, counter.ecount - 1U) : count;
    }

    std::uint32_t zero_;
    RandomSource source_;
    std::uint8_t draw_;
};

}  // namespace waymark::spe
