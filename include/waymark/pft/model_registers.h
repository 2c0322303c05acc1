/// The registers of the model as software and debuggers see them: the success of accesses, the locks, claim tags and
/// power (docs/spec/pft.md, 3.1). The session decides which code is traced.
#pragma once

#include <cstdint>
#include <utility>

#include "waymark/pft/access.h"
#include "waymark/pft/model.h"

namespace waymark::pft {

class ModelRegisters {
public:
    explicit ModelRegisters(const Registers& registers) : file_(registers) { file_.cr.programming = true; }

    /// `programming`: the unit has stopped (ETMSR bit 1).
    [[nodiscard]] AccessResult write(unsigned number, std::uint32_t value, Requester from, bool programming);
    /// `now`: all registers, with the present state of the resources.
    [[nodiscard]] ReadResult read(unsigned number, Requester from, const Registers& now);

    /// Whether the Programming bit, the power-down bit, the OS Lock or missing power prevents all tracing (5.3).
    [[nodiscard]] bool stopped() const {
        return file_.cr.programming || file_.cr.power_down || locks_.os_locked() || !powered();
    }
    void set_programming(bool set) { file_.cr.programming = set; }
    void set_power(bool on) {
        if (locks_.set_power(on)) forget_program();
    }
    [[nodiscard]] bool powered() const { return locks_.powered(); }
    /// Whether anything was written since the last call.
    [[nodiscard]] bool take_written() { return std::exchange(written_, false); }

    [[nodiscard]] Registers& file() { return file_; }
    [[nodiscard]] const Registers& file() const { return file_; }

private:
    void forget_program();

    Registers file_;
    flow::UnitLocks locks_;
    bool written_ = false;
};

}  // namespace waymark::pft
