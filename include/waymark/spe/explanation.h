/// Explains why a Statistical Profiling unit takes samples or none, from registers in the forms that people use: the
/// given values, the assumed ones, and the answer (spe/explain.h) as text and as JSON.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/protocol/explanation.h"
#include "waymark/spe/explain.h"
#include "waymark/spe/register_file.h"

namespace waymark::spe {

/// The implemented features of the architecture, by the names of options.
struct ExplainedUnit {
    std::string version = "v1.0";            ///< `none`, or `v1.0` to `v1.5`
    std::string revision;                    ///< of the functions: `first`, `modern`; empty: the version's own
    bool as_printed = false;                 ///< CollectContextIDR2 of the first revision as printed
    std::vector<std::string> with, without;  ///< names of `features()`
    [[nodiscard]] static std::vector<std::string> features();
};

/// The given registers. Missing ones count as 0 except three fields (`assumed`).
class ExplainInput {
public:
    /// Sets a register, or a field of a register, to a number. It overrides files. `usage`: there is no such register,
    /// it was given already, or the value is invalid.
    Status add(std::string_view name, std::string_view value);
    /// The text of a file of registers; `path` is for messages. Errors: the errors of read_settings().
    Status add_file(const std::string& path, std::string_view text);
    /// Ends the input. `usage`: a name is not a register, or such a unit is impossible.
    Status finish(const ExplainedUnit& unit);

    /// The answer; notes of finish() are part of `notes()`.
    [[nodiscard]] Explanation explain() const;

    [[nodiscard]] const State& state() const { return state_; }
    /// Whether a field of this register was given; or this field, for a name such as `PMBLIMITR_EL1.LIMIT`.
    [[nodiscard]] bool given(std::string_view register_name) const;
    /// Whether this field was given, or its whole register.
    [[nodiscard]] bool field_given(std::string_view field) const;
    /// Missing fields whose assumed value is not 0.
    [[nodiscard]] const std::vector<Fact>& assumed() const { return assumed_; }
    /// Sentences on how the input was interpreted.
    [[nodiscard]] std::vector<std::string> notes() const;

private:
    Status choose_unit(const ExplainedUnit& unit);

    State state_;
    std::vector<NamedValue> settings_, own_;  // from files; given directly
    std::set<std::string> names_;             // names of given registers and fields
    std::vector<Fact> assumed_;
    std::vector<std::string> unknown_, notes_;
};

/// The answer for people, in lines with the section of docs/spec/spe.md.
[[nodiscard]] std::string explanation_text(const ExplainInput& input, const Explanation& explanation);
/// The same in the words that all units share. A condition on a missing register is not an obstacle; the register is
/// among the undecided ones, for all levels or for one. Parts of records that depend on a missing register are not
/// known either.
struct CommonExplanation {
    protocol::UnitExplanation unit;
    std::vector<std::vector<std::string>> undecided;           ///< of each level
    std::vector<std::vector<std::string>> undecided_contents;  ///< of each content
};
[[nodiscard]] CommonExplanation unit_explanation(const ExplainInput& input, const Explanation& explanation);
/// The same as one JSON object, ended by a line feed.
[[nodiscard]] std::string explanation_json(const ExplainInput& input, const Explanation& explanation);

}  // namespace waymark::spe
