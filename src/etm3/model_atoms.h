/// Outcomes that are collected and sent as P-headers (docs/spec/etmv3.md, 3).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "waymark/etm3/encoder.h"

namespace waymark::etm3 {

/// Grouped as by a captured Cortex-M3: E up to the first N, at most 15. A captured cycle-accurate Cortex-A7 also has
/// two outcomes of one cycle in a header, and headers with cycles only.
class ModelAtoms {
public:
    ModelAtoms(const Config& config, std::uint32_t header_cycles) : config_(config), header_cycles_(header_cycles) {}

    [[nodiscard]] unsigned count() const { return count_; }
    void add(bool passed, std::uint32_t cycles) { atoms_[count_++] = {passed, cycles}; }
    /// Whether another outcome would begin a new header.
    [[nodiscard]] bool full() const {
        if (count_ == 0) return false;
        if (!config_.cycle_accurate) return count_ == 15 || !atoms_[count_ - 1].passed;
        return count_ == 8 || (count_ == 7 && atoms_[count_ - 1].passed);
    }
    /// They are lost.
    void clear() { count_ = 0; }
    void send(std::vector<std::uint8_t>& out) {
        for (unsigned at = 0; at < count_;) at += config_.cycle_accurate ? with_cycles(out, at) : without(out, at);
        count_ = 0;
    }

private:
    struct Atom {
        bool passed;
        std::uint32_t cycles;
    };
    static constexpr std::uint8_t last_n = 0x40, no_cycles = 0x92, two = 0x82, only_cycles = 0xa0, then_e = 0x40;
    static constexpr std::uint8_t first_is_n = 8, second_is_n = 4;

    void header(std::vector<std::uint8_t>& out, unsigned byte) const {
        encode(out, PHeader{static_cast<std::uint8_t>(byte)}, config_);
    }
    /// Writes a header of format 1; returns the number of outcomes in it.
    unsigned without(std::vector<std::uint8_t>& out, unsigned at) const {
        return run(out, at, 15, [](const Atom&) { return true; });
    }
    template <class Fits>
    unsigned run(std::vector<std::uint8_t>& out, unsigned at, unsigned most, Fits&& fits) const {
        unsigned e = 0;
        while (e < most && at + e < count_ && atoms_[at + e].passed && fits(atoms_[at + e])) ++e;
        const bool n = at + e < count_ && !atoms_[at + e].passed && fits(atoms_[at + e]);
        header(out, 0x80U | e << 2 | (n ? last_n : 0U));
        return e + (n ? 1U : 0U);
    }
    unsigned with_cycles(std::vector<std::uint8_t>& out, unsigned at) {
        Atom& atom = atoms_[at];
        if (atom.cycles == 0) {  // format 4
            header(out, no_cycles | (atom.passed ? 0U : second_is_n));
            return 1;
        }
        if (atom.cycles > header_cycles_) {
            encode(out, CycleCount{atom.cycles - 1}, config_);
            atom.cycles = 1;
        }
        // Writes headers of format 3: cycles only, or with an E after the last cycle.
        for (constexpr unsigned most = 8; atom.cycles > 1;) {
            const bool e = atom.passed && atom.cycles <= most;
            const unsigned cycles = std::min(e ? atom.cycles : atom.cycles - 1U, most);
            header(out, only_cycles | (cycles - 1U) << 2 | (e ? then_e : 0U));
            if (e) return 1;
            atom.cycles -= cycles;
        }
        if (at + 1 < count_ && atoms_[at + 1].cycles == 0) {  // format 2
            header(out, two | (atom.passed ? 0U : first_is_n) | (atoms_[at + 1].passed ? 0U : second_is_n));
            return 2;
        }
        // Format 1 holds the outcomes up to an instruction that begins format 2.
        unsigned single = at;
        while (single + 1 < count_ && atoms_[single + 1].cycles == 1 &&
               !(single + 2 < count_ && atoms_[single + 2].cycles == 0))
            ++single;
        return run(out, at, 7, [&](const Atom& a) { return a.cycles == 1 && &a <= &atoms_[single]; });
    }

    const Config& config_;
    const std::uint32_t header_cycles_;
    std::array<Atom, 16> atoms_{};
    unsigned count_ = 0;
};

}  // namespace waymark::etm3
