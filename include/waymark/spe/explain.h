/// Explains why there are samples or none: the answers of architecture.h's functions for every exception level, and all
/// other register contents that keep samples from the buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/spe/architecture.h"

namespace waymark::spe {

enum class Weight : std::uint8_t {
    stops,  ///< no sample reaches the buffer
    may,    ///< the implementation or the program decides whether samples do
    note,   ///< worth knowing; keeps no sample from the buffer
};

/// Register contents that matter for sampling.
struct RegisterFinding {
    Weight weight{};
    std::string section;  ///< of docs/spec/spe.md
    std::string text;
    std::vector<Fact> facts;
    std::optional<std::uint64_t> remedy;  ///< for the first fact
};

/// An access to one register whose answer differs from its group's.
struct OwnAccess {
    std::string_view name;
    Decision<SysRegAccess> access;
};

/// The conditions at one exception level.
struct Level {
    std::uint8_t el{};
    Decision<bool> sampled;  ///< operations are sampled; the samples may still be lost later
    /// All conditions between operations and records: the reason in `sampled`, the reason that would be next after its
    /// remedy, and so on; then the findings that stop samples, in the same way.
    std::vector<RegisterFinding> obstacles;
    Decision<SysRegAccess> buffer_access, profiling_access;
    std::vector<OwnAccess> own_accesses;  ///< accesses to registers with a separate enable, if it was given
    // Decisions about the contents of a record; meaningful if samples are taken.
    Decision<bool> context_idr1, context_idr2, physical_address;
    Decision<TimeStamp> time_stamp;

    /// Whether samples are taken here, and all can reach the buffer.
    [[nodiscard]] bool samples() const { return obstacles.empty(); }
};

struct Explanation {
    Decision<Owner> owner;
    Decision<bool> buffer;
    std::vector<Level> levels;  ///< the current level alone, or all levels that can be sampled, from EL0 up
    std::vector<RegisterFinding> findings;

    /// Whether samples reach the buffer at one of these levels or more.
    [[nodiscard]] bool samples() const;
};

struct ExplainOptions {
    bool current_level_only = false;  ///< the level in PSTATE.EL, instead of all
    /// Whether a register (`PMSIRR_EL1`) or a field (`PMBLIMITR_EL1.LIMIT`) was given. A missing one counts with its
    /// value in the state when the functions need it; otherwise it is not judged, and a note states this if there are
    /// samples.
    std::function<bool(std::string_view)> given = [](std::string_view) { return true; };
};

[[nodiscard]] Explanation explain(const State& s, const ExplainOptions& options);

/// The set bits of a register that have no meaning in this architecture: RES0, or bits of a missing feature.
[[nodiscard]] std::vector<Field> without_meaning(const State& s, std::string_view register_name);

}  // namespace waymark::spe
