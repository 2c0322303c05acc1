/// Buffer management events: where they are recorded, what they raise, and what they stop (docs/spec/spe.md, 1.6;
/// FEAT_SPE_EXC).
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/spe/model.h"

namespace waymark::spe {

/// The status registers of the buffer: PMBSR_EL1, and the ones at higher exception levels.
class ManagementEvents {
public:
    /// The state is borrowed.
    explicit ManagementEvents(State& state) : state_(state) {}

    /// Whether an event was recorded, so that profiling stays off until software clears it.
    [[nodiscard]] bool stopped() const {
        return state_.regs.pmbsr_el1.s || (el2_takes() && state_.regs.pmbsr_el2.s) ||
               (el3_takes() && state_.regs.pmbsr_el3.s);
    }

    /// The same as Model's functions with these names.
    [[nodiscard]] bool pmbirq() const { return state_.regs.pmbsr_el1.s && !exception_form(); }

    [[nodiscard]] std::optional<std::uint8_t> profiling_exception() const {
        const Registers& r = state_.regs;
        const std::uint8_t el = r.pstate.el;
        if (!state_.arch.exc) return std::nullopt;
        if (all_to_el3() && r.pmbsr_el3.s && el < EL3) return EL3;
        if (el2_takes() && r.pmbsr_el2.s && (el < EL2 || (el == EL2 && r.pmscr_el2.ke))) return EL2;
        if (exception_form() && r.pmbsr_el1.s && (el == EL0 || (el == EL1 && r.pmscr_el1.ke))) return EL1;
        return std::nullopt;
    }

    /// `control`: whether the counters are programmed to freeze in that case.
    [[nodiscard]] bool pmu_frozen(bool control) const {
        const bool frozen = state_.arch.version >= Version::v1_2 && state_.regs.pmblimitr_el1.pmfz && stopped();
        return frozen && control;
    }

    /// A sample collided with one in flight.
    void collision() { status(false).coll = true; }
    /// The buffer is full.
    void full() {
        PmbsrFields& s = status(false);
        s.s = true;
        s.ec = 0;
        s.mss = 0x0001;
        s.mss2 = 0;
    }
    /// A write to the buffer faulted. `partial`: some bytes of the record were written.
    void fault(const WriteFault& fault, bool partial) {
        using Kind = WriteFault::Kind;
        const bool stage2 = fault.kind == Kind::stage2, granule = fault.kind == Kind::granule_protection;
        PmbsrFields& s = status(stage2);
        s.s = true;
        s.ec = granule ? 0x1e : stage2 ? 0x25 : 0x24;
        s.mss = granule ? 0 : fault.status & 0x3fU;
        s.mss2 = fault.mss2 & 0xff'ffffU;
        s.ea = fault.kind == Kind::external_abort;
        s.dl = partial;
    }

private:
    [[nodiscard]] bool el3_takes() const {
        return state_.arch.exc && state_.arch.el3 && (state_.regs.mdcr_el3.pmsee & 0b10) != 0;
    }
    [[nodiscard]] bool all_to_el3() const { return el3_takes() && state_.regs.mdcr_el3.pmsee == 0b11; }
    [[nodiscard]] bool el2_takes() const {
        return state_.arch.exc && state_.arch.el2 && (state_.regs.pmscr_el2.ee & 0b10) != 0;
    }
    /// Whether EL1 gets an exception instead of PMBIRQ.
    [[nodiscard]] bool exception_form() const {
        return state_.arch.exc && state_.regs.pmscr_el1.ee == 0b11 &&
               (!EL2Enabled(state_) || state_.regs.pmscr_el2.ee != 0b00);
    }
    /// The register in which a buffer management event is recorded.
    [[nodiscard]] PmbsrFields& status(bool stage2) {
        if (all_to_el3()) return state_.regs.pmbsr_el3;
        if (el2_takes() && (stage2 || state_.regs.pmscr_el2.ee == 0b11)) return state_.regs.pmbsr_el2;
        return state_.regs.pmbsr_el1;
    }

    State& state_;
};

}  // namespace waymark::spe
