/// A recording of program flow as perf.data against its truth: what each thread executed, address by address. Threads
/// move between CPUs, so the order of their instructions is not compared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
#include "waymark/record/thread_comparison.h"
#include "waymark/record/truth.h"
#include "waymark/verify/verdict.h"

namespace waymark::verify {

/// A thread, held against its truth.
struct VerifiedThread {
    std::string name;  ///< `PID/TID` as in the truth; `all`: of all threads together
    Verdict verdict = Verdict::not_compared;
    bool ran = true;                      ///< else the truth does not have it, and it was decoded all the same
    std::uint64_t executed{}, decoded{};  ///< instructions
    std::uint64_t without_file{};         ///< more of them executed in code that is in no file
    std::uint64_t unfinished{};           ///< executed after the last waypoint
    bool with_ranges = false;             ///< else only sums are compared
    std::optional<record::ExecutedAddresses::Change> difference{};
};

struct VerifiedPerf {
    std::vector<VerifiedThread> threads;
    pipeline::Report report;
    std::vector<pipeline::Damage> missing;  ///< code that was not found, or may be another's
    std::uint64_t instructions{};           ///< decoded, of all
    bool together = false;                  ///< the trace does not say which thread ran
    bool partial = false;                   ///< trace was lost, or only a part of the trace was decoded
    /// Of all threads: the worst. `not_compared` too where nothing was decoded.
    [[nodiscard]] Verdict verdict() const;
};

/// `folder`: that of the truth.
[[nodiscard]] VerifiedPerf verify_perf(const pipeline::Session& session,
                                       const std::vector<const pipeline::Source*>& selected, const record::Truth& truth,
                                       const std::filesystem::path& folder);

}  // namespace waymark::verify
