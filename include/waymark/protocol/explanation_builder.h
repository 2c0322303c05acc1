/// The common parts of all units' explanations: findings, obstacles at each level, and registers that were not given.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/protocol/explanation.h"

namespace waymark::protocol {

class ExplanationBuilder {
public:
    /// `given` is borrowed.
    explicit ExplanationBuilder(const Given& given) : given_(given) {}

    /// Whether the register was given; if not, the explanation lists it.
    bool asked(std::string_view register_name) {
        if (given_(register_name)) return true;
        if (std::find(missing_->begin(), missing_->end(), register_name) == missing_->end())
            missing_->emplace_back(register_name);
        return false;
    }
    [[nodiscard]] bool given(std::string_view register_name) const { return given_(register_name); }
    /// From here on, a missing register no longer decides whether there is trace.
    void describe() { missing_ = &out.undescribed; }

    void find(TraceEffect effect, std::string field, std::string text, std::string remedy, std::string section) {
        out.findings.push_back({effect, std::move(field), std::move(text), std::move(remedy), std::move(section)});
    }
    void obstacle(std::size_t level, TraceEffect effect, std::string field, std::string text, std::string remedy,
                  std::string section) {
        out.levels[level].obstacles.push_back(
            {effect, std::move(field), std::move(text), std::move(remedy), std::move(section)});
    }
    /// Adds a condition because of which nothing is traced, except in the case `unless`, which depends on registers
    /// that were not given. `text` states why nothing is traced; the case is appended to it.
    static TraceCondition never_unless(std::string unless, std::string field, std::string text, std::string remedy,
                                       std::string section) {
        text.append("; then nothing is traced, unless ").append(unless);
        return {TraceEffect::may,  std::move(field),   std::move(text),
                std::move(remedy), std::move(section), std::move(unless)};
    }
    /// Adds a value that the architecture reserves: it counts if all registers in the message were given. `prefix`
    /// begins the registers' names: `TRC`.
    void object(const std::string& message, std::string_view prefix, std::string section) {
        std::string first;
        for (std::size_t at = message.find(prefix); at != message.npos; at = message.find(prefix, at + 1)) {
            std::size_t end = at;
            while (end < message.size() && std::isalnum(static_cast<unsigned char>(message[end])) != 0) ++end;
            const std::string name = message.substr(at, end - at);
            if (!given_(name)) return;
            if (first.empty()) first = name;
        }
        find(TraceEffect::may, std::move(first), message + ": the unit may do anything", "", std::move(section));
    }
    /// An obstacle at every level becomes an obstacle of the unit.
    void lift() {
        if (out.levels.empty()) return;
        const std::vector<TraceCondition> candidates = out.levels[0].obstacles;
        for (const TraceCondition& f : candidates) {
            const auto has = [&](const TracedLevel& level) {
                return std::find(level.obstacles.begin(), level.obstacles.end(), f) != level.obstacles.end();
            };
            if (!std::all_of(out.levels.begin(), out.levels.end(), has)) continue;
            out.findings.push_back(f);
            for (TracedLevel& level : out.levels) std::erase(level.obstacles, f);
        }
    }

    UnitExplanation out;

private:
    const Given& given_;
    std::vector<std::string>* missing_ = &out.undecided;
};

}  // namespace waymark::protocol
