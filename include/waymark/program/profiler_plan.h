/// How software programs a Statistical Profiling unit: writes of system registers and barriers, in legal order, and
/// their proof on the unit's model (docs/spec/spe.md, 1.7 and 2). The software runs at EL2 as the host (HCR_EL2.E2H and
/// TGE are 1), as Linux does, and profiles EL0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/program/script.h"
#include "waymark/record_spe/spe_options.h"
#include "waymark/spe/model.h"

namespace waymark::program {

/// One step: a system register is written, or a barrier.
struct ProfilerStep {
    enum class Kind : std::uint8_t { write, isb, psb_csync, dsb };
    Kind kind = Kind::write;
    std::string name{};  ///< of the register: `PMSFCR_EL1`
    std::uint64_t value = 0;
    std::string why{};  ///< a clause for a comment
    bool operator==(const ProfilerStep&) const = default;
};

struct ProfilerPlan {
    record::SpeOptions options{};
    std::uint64_t buffer = 0, buffer_bytes = 0;  ///< virtual addresses, in pages of 4 KB
    std::vector<ProfilerStep> start{}, stop{};   ///< afterwards PMBPTR_EL1 and PMBSR_EL1 are read
    std::vector<std::string> needs{};            ///< of the unit, by its identification registers
};
/// Errors: `usage`: the options or the buffer are impossible, with the reason.
[[nodiscard]] Result<ProfilerPlan> make_profiler_plan(const record::SpeOptions& options, std::uint64_t buffer,
                                                      std::uint64_t buffer_bytes);

/// The rules of order that a plan breaks, as sentences: each names the step. The unit may be in any state before.
[[nodiscard]] std::vector<std::string> order_objections(const ProfilerPlan& plan);

/// Two models execute the same operations: one as `record` programs it, one that was found with random values in its
/// registers, perhaps profiling, and was programmed by the steps.
struct ProfilerProof {
    std::uint64_t operations = 0;  ///< executed in each run
    std::uint64_t samples = 0;     ///< records of the run that `record` programs
    std::uint64_t wanted_bytes = 0, given_bytes = 0;
    std::optional<std::uint64_t> differs_at{};  ///< the first byte that differs
    std::vector<std::string> objections{};      ///< order_objections()
    [[nodiscard]] bool same() const { return !differs_at && objections.empty(); }
};
/// `seed` decides the operations and the old contents of the registers. Errors: `bad_format`: the architecture refuses
/// a write; the message names the register.
[[nodiscard]] Result<ProfilerProof> prove(const ProfilerPlan& plan, std::uint64_t seed = 1);

/// Whether software of the target can program an SPE: perf, c and json. Errors: `unsupported`: another target cannot
/// write system registers.
[[nodiscard]] Status takes_profiler(Language target);
/// `command`: for perf: the program to profile; may be empty. Errors: as takes_profiler().
[[nodiscard]] Result<std::string> script(const ProfilerPlan& plan, Language target, const ProfilerProof& proof,
                                         const std::string& command);

}  // namespace waymark::program
