/// The Embedded Trace EtmModel of a Cortex-M, and the truth of what it traced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "macrocell.h"
#include "trace_output.h"
#include "unit.h"

namespace waymark::record {

class EtmUnit final : public CoreUnit {
public:
    /// `v4`: an ETMv4 rather than an ETMv3; `core`: such as `Cortex-M7`. Errors: `unreadable`: the file with the truth
    /// cannot be created.
    [[nodiscard]] static Result<std::unique_ptr<CoreUnit>> create(const std::filesystem::path& folder, bool v4,
                                                                  const std::string& core, TraceOutput::Input to);
    void enable(bool on) override;
    void state(const CoreMode& state) override { state_ = state; }
    void instruction(const CoreInstruction& instruction, std::uint32_t next, std::uint64_t cycle) override;
    void lost(const CoreInstruction& instruction, std::uint64_t cycle) override;
    void exception(std::uint32_t number, std::optional<std::uint32_t> preferred_return, std::uint32_t handler,
                   std::uint64_t cycle) override;
    void handler_ended(std::uint32_t, std::uint64_t) override {}
    void returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t resumed, std::uint64_t cycle) override;
    [[nodiscard]] Status finish(const std::string& core, const std::string& core_type, std::uint32_t vectors,
                                capture::Capture& capture, Truth& truth) override;
    [[nodiscard]] std::string summary() const override;
    [[nodiscard]] bool any() const override { return truth_.instructions != 0; }

private:
    EtmUnit(bool v4, const std::string& core, TraceOutput::Input to, std::string truth_name,
            std::unique_ptr<RangeWriter> ranges);
    /// An exception return whose destination is not known yet.
    struct Return {
        CoreInstruction instruction;
        std::uint64_t cycle{};
    };
    /// `next`: nothing where another exception replaces the return.
    void trace_return(const Return& from, std::optional<std::uint32_t> next);
    void trace(const EtmModel::Step& step);
    void omit();
    /// The instructions up to here are in the trace.
    void shown();

    const bool v4_;
    const coresight::TraceId id_;
    const std::unique_ptr<EtmModel> macrocell_;
    const std::string truth_name_;
    std::unique_ptr<RangeWriter> ranges_;
    SourceTruth truth_;
    TruthRange waiting_{};  ///< instructions that are not in the trace yet
    std::optional<Return> returning_;
    CoreMode state_;
    bool wanted_ = false, started_ = false;
    std::uint64_t cycle_ = 0;
};

}  // namespace waymark::record
