/// The registers of the model as software and debuggers see them: the success of accesses, the locks, claim tags,
/// power, and whether the unit is enabled (docs/spec/etm4-registers.md, 1.1, 1.6 and 2.1). The session decides which
/// code is traced.
#pragma once

#include <cstdint>

#include "waymark/etm4/access.h"
#include "waymark/etm4/model.h"

namespace waymark::etm4 {

class ModelRegisters {
public:
    explicit ModelRegisters(const Registers& registers);

    /// The unit's state in 2.1, as TRCSTATR shows it.
    struct Status {
        bool idle = true, stable = true;
    };
    /// These fields are fixed if nothing can be programmed (1.3).
    [[nodiscard]] AccessResult write(unsigned offset, std::uint32_t value, Requester from, Status status, bool running);
    /// `now`: all registers, with the present state of the resources.
    [[nodiscard]] ReadResult read(unsigned offset, Requester from, Status status, const Registers& now);

    /// TRCPRGCTLR.EN, the OS Lock and power combined (2.1).
    [[nodiscard]] bool enabled() const { return file_.prgctlr.enable && !locks_.os_locked() && powered(); }
    void set_enable(bool on) { file_.prgctlr.enable = on; }
    /// The processor's lock, which applies if the unit has none of its own (1.6, OSLM 4).
    void set_os_lock(bool locked) {
        if (lock_model() == 4) locks_.lock_os(locked);
    }
    void set_power(bool on);
    [[nodiscard]] bool powered() const { return locks_.powered(); }

    [[nodiscard]] Registers& file() { return file_; }
    [[nodiscard]] const Registers& file() const { return file_; }

private:
    [[nodiscard]] bool ete() const { return file_.devarch.archver == 5; }
    [[nodiscard]] unsigned lock_model() const { return file_.oslsr.oslm_high * 2U + (file_.oslsr.oslm_low ? 1U : 0U); }
    /// Whether an access is answered with an error (1.1, access classes).
    [[nodiscard]] bool refused(unsigned offset, Requester from) const;
    /// 1.1, reset: everything programmable becomes 0.
    void forget_program();

    Registers file_;
    flow::UnitLocks locks_;
};

}  // namespace waymark::etm4
