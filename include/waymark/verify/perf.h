/// Compares a recording of program flow as perf.data with its truth: the execution of each thread, address by address.
/// Threads move between CPUs, so the order of their instructions is not compared.
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

/// A thread, compared with its truth.
struct VerifiedThread {
    std::string name;  ///< `PID/TID` as in the truth; `all`: all threads together
    Verdict verdict = Verdict::not_compared;
    bool ran = true;                      ///< else the truth does not have it, and it was decoded all the same
    std::uint64_t executed{}, decoded{};  ///< instructions that the trace should have, and has
    std::uint64_t without_file{};         ///< number of further instructions, whose code is in no file
    std::uint64_t unfinished{};           ///< executed after the last waypoint
    std::uint64_t not_traced{};           ///< executed while the unit did not trace
    bool with_ranges = false;             ///< else only sums are compared
    std::optional<record::ExecutedAddresses::Change> difference{};
};

struct VerifiedPerf {
    std::vector<VerifiedThread> threads;
    pipeline::Report report;
    std::vector<pipeline::Damage> missing;  ///< code that was not found, or whose file is uncertain
    std::uint64_t instructions{};           ///< decoded, of all
    bool together = false;                  ///< the trace does not say which thread ran
    bool partial = false;                   ///< trace was lost, or only a part of the trace was decoded
    /// The worst verdict of all threads. Also `not_compared` if nothing was decoded.
    [[nodiscard]] Verdict verdict() const;
};

/// `folder`: the folder of the truth.
[[nodiscard]] VerifiedPerf verify_perf(const pipeline::Session& session,
                                       const std::vector<const pipeline::Source*>& selected, const record::Truth& truth,
                                       const std::filesystem::path& folder);

}  // namespace waymark::verify
