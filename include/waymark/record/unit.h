/// A trace unit, as the recorder drives it: blocks that ran up to a waypoint, exceptions, and the places where
/// execution left what is recorded and came back. Tests put their own in its place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/model.h"

namespace waymark::record {

struct Place {
    Address address;
    isa::Isa isa = isa::Isa::a32;
    friend bool operator==(const Place&, const Place&) = default;
};

/// Instructions that follow one another from where execution stood, none of them a waypoint instruction.
struct Straight {
    std::uint32_t bytes{};
    std::uint8_t last_bytes{};
};

/// A waypoint instruction that completed.
struct Waypoint {
    Address address;
    isa::Isa isa = isa::Isa::a32;
    const isa::Instruction& instruction;
    bool passed{};
    Place next;
};

/// What a processor is in beside its instruction set.
struct State {
    bool ns = true, hyp = false;
    friend bool operator==(const State&, const State&) = default;
};

class Unit {
public:
    virtual ~Unit() = default;
    /// From what follows on; before the exception that leads to it. Before `start`: to begin with. Default: State{}.
    virtual void state(const State& state) = 0;
    virtual void start(Place first, std::uint64_t cycle) = 0;
    virtual void waypoint(const Straight& before, const Waypoint& waypoint, std::uint64_t cycle) = 0;
    /// Many of them, each with what ran straight to it, the first from `from` on. Returns how many it took: all, or
    /// those up to and including the first with which lost() rose.
    [[nodiscard]] virtual std::size_t waypoints(Place from, std::span<const pft::RetiredBlock> blocks);
    /// `number` as docs/spec/pft.md, 2.5, has it. Execution goes on at `handler`; nothing: what comes behind is not
    /// recorded, up to `resume`.
    virtual void exception(const Straight& before, std::uint32_t number, std::optional<Place> handler,
                           std::uint64_t cycle) = 0;
    /// The processor waits for an interrupt (WFI) among what ran since the last waypoint.
    virtual void wait(std::uint64_t cycle) = 0;
    virtual void resume(Place next, std::uint64_t cycle) = 0;
    virtual void finish() = 0;
    /// Waypoints and exceptions it lost to a full FIFO so far. It may lose the one it was told last and those shortly
    /// before it, which it had not sent yet.
    [[nodiscard]] virtual std::uint64_t lost() const = 0;
    /// It is losing them, so the one told last is among the lost.
    [[nodiscard]] virtual bool overflowing() const = 0;
    /// False if it never loses any.
    [[nodiscard]] virtual bool may_lose() const = 0;
};

/// How a Program Trace Macrocell is programmed for a recording.
struct PtmOptions {
    std::string core = "cortex-a15";  ///< cortex-a9: PFTv1.0; cortex-a15: PFTv1.1
    bool cycle_accurate = false, timestamps = false, return_stack = false, branch_broadcast = false;
    unsigned context_id_bytes = 0;  ///< 0, 1, 2 or 4; the Context ID is the number of the thread
    unsigned sync_bytes = 1024;     ///< between periodic synchronisations, 0 to 4095; 0: none
    unsigned fifo_bytes = 0;        ///< 0: the FIFO never fills
    unsigned drain_cycles = 1;      ///< four bytes leave it in so many cycles
};

/// Errors: `usage`: a combination the core's macrocell does not have; the message says which.
[[nodiscard]] Status check(const PtmOptions& options);

/// `Cortex-A15`, `PTM1.1`.
[[nodiscard]] std::string core_type(const PtmOptions& options);
[[nodiscard]] std::string source_type(const PtmOptions& options);
/// The registers a decoder needs, and those that say how the unit was programmed.
[[nodiscard]] std::vector<capture::Register> registers(const PtmOptions& options, std::uint8_t trace_id);
[[nodiscard]] isa::DecodeOptions decode_options(const PtmOptions& options);

/// `trace` is borrowed. `thread` is the Context ID.
[[nodiscard]] std::unique_ptr<Unit> make_ptm(const PtmOptions& options, std::uint32_t thread, ByteSink& trace);

}  // namespace waymark::record
