/// Random cases for the model of the macrocell: a program, its execution, and the unit's programming and features, all
/// determined by the class of the configuration and a seed; the checks of each case; and the smallest case that still
/// fails.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pft/support.h"
#include "support/model_driver.h"
#include "support/synthetic.h"
#include "waymark/pft/model.h"

namespace waymark::synthetic {

struct ModelCase {
    pft::ModelConfig model;
    ProgramOptions program;
    WalkOptions walk;
    ModelDriverOptions driver;
    std::uint64_t steps = 1200;                  ///< waypoints and exceptions
    unsigned ranges = 0, starts = 0, stops = 0;  ///< comparators of TraceEnable, set to places in the program
    std::uint64_t places = 0;                    ///< the seed of these places
};

/// The origin of a case. As text: `class seed=7 steps=40 blocks=30 without=timestamps,vmid`.
struct CaseName {
    std::string class_name;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> steps{};
    std::optional<unsigned> blocks{};
    std::vector<std::string> without{};  ///< the features switched off, by the names of simplifications()

    [[nodiscard]] std::string text() const;
    /// nullopt if the text is no case.
    [[nodiscard]] static std::optional<CaseName> from_text(std::string_view text);
};

/// Configurations with one certain property, and otherwise random properties; plain ones have only that property.
[[nodiscard]] std::vector<std::string_view> case_classes();
[[nodiscard]] std::vector<std::string_view> simplifications();

/// Cases up to this seed are long; later ones are short, so that many of them can be run.
inline constexpr std::uint64_t long_cases = 12;

[[nodiscard]] ModelCase make_case(const CaseName& name);

/// Sets the comparators of TraceEnable to places in the program; `ranges`, `starts` and `stops` of the case are their
/// numbers.
void place_comparators(ModelCase& c, const Program& program);

struct CaseTotals {
    pft::ModelCounts counts;
    std::uint64_t elements = 0, timestamps = 0;
};

/// Changes the bytes of the model's trace, as a mistake in the model would.
using Spoil = std::function<void(const ModelCase&, std::vector<std::uint8_t>&)>;

/// Makes the trace of a case, decodes it and checks its packets. Returns the first mistake, with the packets around it;
/// empty if there is none.
[[nodiscard]] std::string check_case(const ModelCase& c, CaseTotals& totals, const Spoil& spoil = {});

/// Damages the trace of a case in several ways. Both decoders must agree on the rest, and after the first A-sync that
/// they recognise, all elements must be as without damage. Returns the first mistake.
struct DamageTotals {
    std::uint64_t damaged = 0, recovered = 0, late = 0;  ///< late: the first A-sync was not recognised
};
[[nodiscard]] std::string check_damage(const ModelCase& c, std::uint64_t seed, DamageTotals& totals);

/// The smallest case made from `name` that still fails: fewer steps, a smaller program, and without every feature that
/// the failure does not need. `name` must fail.
[[nodiscard]] CaseName minimised(CaseName name, const std::function<bool(const CaseName&)>& fails);

/// The configuration for decoders that fits the choices; if any configuration is right, `other`.
[[nodiscard]] pft::Config reading(const pft::ModelConfig& model, bool other);

/// Zero bits before each one bit, bytes least significant bit first, outside A-syncs (docs/spec/pft.md, 5.7, 2).
[[nodiscard]] std::uint64_t longest_zeros(const pft::test::Collected& packets, Bytes bytes);

}  // namespace waymark::synthetic
