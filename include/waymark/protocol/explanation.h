/// Why a trace unit traces, or nothing: what the values of its registers decide, in words. Each protocol makes an
/// explanation of the registers of its unit (Protocol::explain).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::protocol {

enum class TraceEffect : std::uint8_t {
    stops,  ///< nothing is traced
    may,    ///< whether something is traced depends on what runs, or on signals
    note,   ///< worth knowing; keeps nothing out of the trace for good
};
[[nodiscard]] constexpr std::string_view name(TraceEffect effect) {
    return effect == TraceEffect::stops ? "stops" : effect == TraceEffect::may ? "may" : "note";
}

/// Something in the registers that decides whether there is trace.
struct TraceCondition {
    TraceEffect effect{};
    std::string field;    ///< `TRCPRGCTLR.EN`
    std::string text;     ///< a sentence that names the field and its value
    std::string remedy;   ///< what to write instead; empty: nothing needs to be written
    std::string section;  ///< of UnitExplanation::document: `2.1`
    bool operator==(const TraceCondition&) const = default;
};

/// An exception level, or a mode, in which instructions run.
struct TracedLevel {
    std::string name;                       ///< `EL0, Non-secure`
    std::vector<TraceCondition> obstacles;  ///< `stops` and `may`; empty: everything that runs here is traced
};

/// A part of the trace, which a field asks for.
struct TraceContent {
    std::string what;   ///< `cycle counts`
    bool traced{};      ///< the registers ask for it, and the unit has it
    std::string text;   ///< more about it: `at least 256 cycles apart (TRCCCCTLR.THRESHOLD)`; may be empty
    std::string field;  ///< `TRCCONFIGR.CCI`
};

struct UnitExplanation {
    std::string unit;                        ///< `ETMv4.2`
    std::string document;                    ///< of the sections: `docs/spec/etm4-registers.md`
    std::vector<TraceCondition> findings{};  ///< about all levels
    std::vector<TracedLevel> levels{};       ///< those that the unit can trace
    std::vector<TraceContent> contents{};    ///< what is in the trace of an instruction that is traced
    std::vector<std::string> undecided{};    ///< registers that decide whether there is trace, and were not given
    std::vector<std::string> undescribed{};  ///< others that were not given, of which `contents` needs more

    /// Something keeps the unit from tracing at every level.
    [[nodiscard]] bool stopped() const {
        return std::any_of(findings.begin(), findings.end(),
                           [](const auto& f) { return f.effect == TraceEffect::stops; });
    }
    /// At least at one level something may be traced.
    [[nodiscard]] bool traces() const {
        return !stopped() && std::any_of(levels.begin(), levels.end(), [](const TracedLevel& level) {
            return std::none_of(level.obstacles.begin(), level.obstacles.end(),
                                [](const TraceCondition& f) { return f.effect == TraceEffect::stops; });
        });
    }
};

/// Whether a register, by its name with its number (`TRCACVR3`), was given.
using Given = std::function<bool(std::string_view)>;

}  // namespace waymark::protocol
