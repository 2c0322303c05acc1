/// Why there are samples, or none: the functions of architecture.h asked for every exception level, and everything else
/// in the registers that keeps samples from reaching the buffer.
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
    may,    ///< it depends on the implementation, or on what the program does, whether any does
    note,   ///< worth knowing; stops nothing
};

/// Something in the registers that matters for what is sampled.
struct RegisterFinding {
    Weight weight{};
    std::string section;  ///< of docs/spec/spe.md
    std::string text;
    std::vector<Fact> facts;
    std::optional<std::uint64_t> remedy;  ///< for the first fact
};

/// An access to one register that is not what the others of its group get.
struct OwnAccess {
    std::string_view name;
    Decision<SysRegAccess> access;
};

/// What holds at one exception level.
struct Level {
    std::uint8_t el{};
    Decision<bool> sampled;  ///< operations are; what becomes of the samples is another matter
    /// All conditions between operations and records: the reason of `sampled`, what would be the reason once that is
    /// remedied, and so on; then the findings that stop samples, likewise.
    std::vector<RegisterFinding> obstacles;
    Decision<SysRegAccess> buffer_access, profiling_access;
    std::vector<OwnAccess> own_accesses;  ///< of registers with an enable of their own that was given
    // What a record would hold; meaningful where samples are taken.
    Decision<bool> context_idr1, context_idr2, physical_address;
    Decision<TimeStamp> time_stamp;

    /// Samples are taken here, and nothing keeps them from the buffer.
    [[nodiscard]] bool samples() const { return obstacles.empty(); }
};

struct Explanation {
    Decision<Owner> owner;
    Decision<bool> buffer;
    std::vector<Level> levels;  ///< the current one alone, or all that can be sampled, from EL0 up
    std::vector<RegisterFinding> findings;

    /// At some of these levels.
    [[nodiscard]] bool samples() const;
};

struct ExplainOptions {
    bool current_level_only = false;  ///< the level in PSTATE.EL, instead of all
    /// Whether a register (`PMSIRR_EL1`) or a field (`PMBLIMITR_EL1.LIMIT`) was given. What was not counts as it is
    /// where the functions ask; else it is not judged, and a note says so if there are samples.
    std::function<bool(std::string_view)> given = [](std::string_view) { return true; };
};

[[nodiscard]] Explanation explain(const State& s, const ExplainOptions& options);

/// The bits of a register that are set and mean nothing in this architecture: RES0, or of a feature that is not there.
[[nodiscard]] std::vector<Field> without_meaning(const State& s, std::string_view register_name);

}  // namespace waymark::spe
