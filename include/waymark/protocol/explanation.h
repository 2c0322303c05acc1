/// Explains why a trace unit traces or does not: the decisions of its registers, in words. Each protocol makes an
/// explanation from the registers of its unit (Protocol::explain).
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
    may,    ///< the executing code or signals decide whether something is traced
    note,   ///< worth knowing; leaves nothing out of the trace for good
};
[[nodiscard]] constexpr std::string_view name(TraceEffect effect) {
    return effect == TraceEffect::stops ? "stops" : effect == TraceEffect::may ? "may" : "note";
}

/// A fact in the registers that decides whether there is trace.
struct TraceCondition {
    TraceEffect effect{};
    std::string field;    ///< `TRCPRGCTLR.EN`
    std::string text;     ///< a sentence that names the field and its value
    std::string remedy;   ///< the setting to write instead; empty: none is needed
    std::string section;  ///< of UnitExplanation::document: `2.1`
    /// With `may`, the condition of an exception, which depends on registers that were not given: nothing is traced
    /// unless, for example, `the unit has no address comparators (TRCIDR4, not given)`. `text` ends with it.
    std::string unless{};
    bool operator==(const TraceCondition&) const = default;
};

/// An exception level, or a mode, in which instructions run.
struct TracedLevel {
    std::string name;                       ///< `EL0, Non-secure`
    std::vector<TraceCondition> obstacles;  ///< `stops` and `may`; empty: everything that runs here is traced
};

/// A part of the trace, which a field requests.
struct TraceContent {
    std::string what;   ///< `cycle counts`
    bool traced{};      ///< the registers request it, and the unit has the feature
    std::string text;   ///< details: `at least 256 cycles apart (TRCCCCTLR.THRESHOLD)`; may be empty
    std::string field;  ///< `TRCCONFIGR.CCI`
};

struct UnitExplanation {
    std::string unit;                        ///< `ETMv4.2`
    std::string document;                    ///< of the sections: `docs/spec/etm4-registers.md`
    std::vector<TraceCondition> findings{};  ///< about all levels
    std::vector<TracedLevel> levels{};       ///< the levels that the unit can trace
    std::vector<TraceContent> contents{};    ///< facts in the trace about a traced instruction
    std::vector<std::string> undecided{};    ///< registers that decide whether there is trace, and were not given
    std::vector<std::string>
        undescribed{};  ///< further registers that were not given; `contents` needs them for more detail

    /// Whether a condition keeps the unit from tracing at every level.
    [[nodiscard]] bool stopped() const {
        return std::any_of(findings.begin(), findings.end(),
                           [](const auto& f) { return f.effect == TraceEffect::stops; });
    }
    /// Whether some code may be traced at one level or more.
    [[nodiscard]] bool traces() const {
        return !stopped() && std::any_of(levels.begin(), levels.end(), [](const TracedLevel& level) {
            return std::none_of(level.obstacles.begin(), level.obstacles.end(),
                                [](const TraceCondition& f) { return f.effect == TraceEffect::stops; });
        });
    }
};

/// Whether a register was given, by its name with its number (`TRCACVR3`).
using Given = std::function<bool(std::string_view)>;

}  // namespace waymark::protocol
