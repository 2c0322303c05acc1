/// The models of Embedded Trace Macrocells behind one interface, as EtmUnit drives them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "waymark/capture/capture.h"
#include "waymark/core/byte_sink.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/isa/place.h"
#include "waymark/record_m/core_log.h"

namespace waymark::record {

[[nodiscard]] inline isa::Place thumb_at(std::uint32_t address) { return {{address}, isa::Isa::t32}; }

/// Calls come in the order of execution, and cycles never decrease.
class EtmModel {
public:
    /// An instruction that completed.
    struct Step {
        const CoreInstruction& instruction;
        std::uint32_t next{};  ///< where execution continued, unless `chained`
        std::uint64_t cycle{};
        bool returns = false;  ///< an exception return
        bool chained = false;  ///< an exception return that the following exception() replaces
        CoreMode after{};
    };
    struct Taken {
        std::uint32_t number{};  ///< as ARMv7-M and ARMv8-M number exceptions
        std::uint32_t vector{};  ///< address of the handler
        std::uint64_t cycle{};
        bool chained = false;  ///< it replaces the exception return that was the last step
        CoreMode after{};
    };

    virtual ~EtmModel() = default;
    /// Tracing begins at `first`. Called once, before all others but enable(false).
    virtual void start(const CoreInstruction& first, std::uint64_t cycle) = 0;
    virtual void instruction(const Step& step) = 0;
    virtual void exception(const Taken& taken) = 0;
    /// Execution continues at the handler `to`, on an unknown path.
    virtual void discontinuity(std::uint32_t to, const CoreMode& after, std::uint64_t cycle) = 0;
    virtual void enable(bool on, std::uint64_t cycle) = 0;
    virtual void finish() = 0;
    /// Whether the trace contains all instructions up to the last call, rather than up to the last branch.
    [[nodiscard]] virtual bool shows_all() const = 0;
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
    /// Name, type and registers of the source.
    [[nodiscard]] virtual capture::Source source(coresight::TraceId id) const = 0;
};

/// The ETMv3.5 of a Cortex-M3 or M4, and the ETMv4 of a Cortex-M7, M33 or M55. `trace` is borrowed. A
/// Cortex-M7 has the ID registers of docs/spec/etm4-registers.md, 3.
[[nodiscard]] std::unique_ptr<EtmModel> make_etm3(ByteSink& trace);
[[nodiscard]] std::unique_ptr<EtmModel> make_etm4(const std::string& core, ByteSink& trace);
inline constexpr std::string_view etm3_name = "ETMV3_0", etm4_name = "ETMV4_0";

}  // namespace waymark::record
