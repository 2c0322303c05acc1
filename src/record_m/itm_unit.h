/// An Instrumentation Trace EtmModel with the Data Watchpoint and Trace unit beside the core.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trace_output.h"
#include "unit.h"
#include "waymark/itm/model.h"

namespace waymark::record {

/// The range that a comparator watches.
struct WatchedBytes {
    std::string name;
    std::uint32_t address{}, bytes{};
};

struct ItmOptions {
    std::uint32_t ports{};            ///< address of the stimulus ports
    std::uint64_t sample_cycles = 0;  ///< 0: no samples
    bool exceptions = true;
    std::vector<WatchedBytes> watched{};
};

class ItmUnit final : public CoreUnit {
public:
    ItmUnit(TraceOutput::Input to, const itm::ModelConfig& config, ItmOptions options);
    void enable(bool on) override { enabled_ = on; }
    void instruction(const CoreInstruction& instruction, std::uint32_t next, std::uint64_t cycle) override;
    void lost(const CoreInstruction& i, std::uint64_t cycle) override { instruction(i, 0, cycle); }
    void exception(std::uint32_t number, std::optional<std::uint32_t> preferred_return, std::uint32_t handler,
                   std::uint64_t cycle) override;
    void handler_ended(std::uint32_t number, std::uint64_t cycle) override;
    void returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t resumed, std::uint64_t cycle) override;
    [[nodiscard]] Status finish(const std::string& core, const std::string& core_type, std::uint32_t vectors,
                                capture::Capture& capture, Truth& truth) override;
    [[nodiscard]] std::string summary() const override;
    [[nodiscard]] bool any() const override { return messages_ != 0; }

private:
    void store(std::uint32_t pc, std::uint32_t address, std::uint32_t value, std::uint8_t bytes, std::uint64_t cycle);
    void tell(protocol::Message message, std::uint64_t cycle);
    void tell_exception(std::uint32_t number, protocol::Message::Change change, std::uint64_t cycle);
    void write();

    const TraceOutput::Input to_;
    const itm::ModelConfig config_;
    const ItmOptions options_;
    itm::Model model_;
    SourceTruth truth_;  // its ranges stand for messages
    std::uint64_t messages_ = 0, bytes_ = 0;
    bool enabled_ = false;
};

}  // namespace waymark::record
