/// The Embedded Trace Macrocell of a Cortex-M3 or M4 (ETMv3.5), and the truth of what it traced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "trace_output.h"
#include "unit.h"
#include "waymark/etm3/model.h"

namespace waymark::record {

class EtmUnit final : public CoreUnit {
public:
    /// Errors: `unreadable`: the file with the truth cannot be created.
    [[nodiscard]] static Result<std::unique_ptr<CoreUnit>> create(const std::filesystem::path& folder,
                                                                  TraceOutput::Input to);
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
    [[nodiscard]] bool any() const override { return model_.counts().instructions != 0; }

private:
    EtmUnit(TraceOutput::Input to, std::unique_ptr<RangeWriter> ranges);
    /// An exception return whose destination is not known yet.
    struct Return {
        CoreInstruction instruction;
        std::uint64_t cycle{};
    };
    void trace(const CoreInstruction& instruction, std::uint32_t next, std::uint64_t cycle);
    /// `next`: nothing where another exception replaces the return.
    void trace_return(const Return& from, std::optional<std::uint32_t> next);
    void give(etm3::Executed executed, const CoreInstruction& instruction);
    void omit();

    const coresight::TraceId id_;
    etm3::Model model_;
    std::unique_ptr<RangeWriter> ranges_;
    SourceTruth truth_;
    std::optional<Return> returning_;
    bool wanted_ = false, started_ = false;
    std::uint64_t cycle_ = 0;
};

}  // namespace waymark::record
