/// A System Trace Macrocell whose stimulus ports the core writes to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace_output.h"
#include "unit.h"
#include "waymark/stm/model.h"

namespace waymark::record {

class StmUnit final : public CoreUnit {
public:
    /// `ports`: address of the extended stimulus ports.
    StmUnit(TraceOutput::Input to, std::uint32_t ports) : to_(to), ports_(ports) { model_.sync(); }
    void enable(bool on) override { enabled_ = on; }
    void instruction(const CoreInstruction& instruction, std::uint32_t next, std::uint64_t cycle) override;
    void lost(const CoreInstruction& i, std::uint64_t cycle) override { instruction(i, 0, cycle); }
    void exception(std::uint32_t, std::optional<std::uint32_t>, std::uint32_t, std::uint64_t) override {}
    void handler_ended(std::uint32_t, std::uint64_t) override {}
    void returned(std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t) override {}
    [[nodiscard]] Status finish(const std::string& core, const std::string& core_type, std::uint32_t vectors,
                                capture::Capture& capture, Truth& truth) override;
    [[nodiscard]] std::string summary() const override;
    [[nodiscard]] bool any() const override { return messages_ != 0; }

private:
    void write(std::uint32_t offset, std::uint32_t value, std::uint8_t bytes, std::uint64_t cycle);
    [[nodiscard]] std::uint64_t so_far() const { return put_ + model_.bytes().size(); }

    const TraceOutput::Input to_;
    const std::uint32_t ports_;
    stm::Model model_;
    SourceTruth truth_;  // its ranges stand for messages
    std::uint64_t messages_ = 0;
    std::uint64_t put_ = 0;           // bytes that the model does not hold any more
    std::uint64_t synchronised_ = 0;  // bytes up to the last synchronisation
    bool enabled_ = false;
};

}  // namespace waymark::record
