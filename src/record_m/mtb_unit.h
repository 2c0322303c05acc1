/// A Micro Trace Buffer beside the core, and the truth that its trace can show.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unit.h"
#include "waymark/mtb/model.h"

namespace waymark::record {

class MtbUnit final : public CoreUnit {
public:
    /// Errors: `unreadable`: the file with the truth cannot be created.
    [[nodiscard]] static Result<std::unique_ptr<CoreUnit>> create(const std::filesystem::path& folder,
                                                                  std::uint64_t bytes,
                                                                  std::optional<std::uint64_t> watermark);
    void enable(bool on) override;
    void instruction(const CoreInstruction& instruction, std::uint32_t next, std::uint64_t cycle) override;
    void lost(const CoreInstruction& instruction, std::uint64_t cycle) override;
    void exception(std::uint32_t number, std::optional<std::uint32_t> preferred_return, std::uint32_t handler,
                   std::uint64_t cycle) override;
    void handler_ended(std::uint32_t, std::uint64_t) override {}
    void returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t resumed, std::uint64_t cycle) override;
    [[nodiscard]] Status finish(const std::string& core, const std::string& core_type, std::uint32_t vectors,
                                capture::Capture& capture, Truth& truth) override;
    [[nodiscard]] std::string summary() const override;
    [[nodiscard]] bool any() const override { return model_.packets() != 0; }

private:
    MtbUnit(std::filesystem::path folder, const mtb::ModelConfig& config, std::unique_ptr<RangeWriter> ranges)
        : folder_(std::move(folder)), model_(config), ranges_(std::move(ranges)) {}
    void step(const CoreInstruction& instruction);
    void close_range();
    /// Call it after each call of the model: a packet that the model wrote shows everything before the packet.
    void settle(std::uint64_t packets_before);
    /// Code since the last packet does not occur in any packet.
    void forget();

    const std::filesystem::path folder_;
    mtb::Model model_;
    std::unique_ptr<RangeWriter> ranges_;
    SourceTruth truth_;
    bool wanted_ = false;              ///< tracing is enabled, unless the watermark stopped it
    bool placed_ = false;              ///< a packet shows where the present stretch began
    TruthRange open_{};                ///< instructions 0: none
    std::vector<TruthRange> waiting_;  ///< ranges that no packet shows yet
};

}  // namespace waymark::record
