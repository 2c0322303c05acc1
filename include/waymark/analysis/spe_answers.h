/// Converts samples of the Statistical Profiling Extension to `Answers` (docs/spec/spe.md, sections 4 to 6). Addresses
/// are relative to the files, so that a place that is mapped at many addresses is one place; addresses of code without
/// a file are as traced. Samples do not show calls: `calls` stays empty.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/analysis/branches.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/program.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/analysis/sharing.h"
#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// Number of samples over time, by CPU and by thread. Memory does not grow with the samples: time is divided into bins
/// of a power of two ticks, the smallest with at most `most_bins` bins. Samples without a timestamp, and damaged ones,
/// are in no bin.
class SampleTimes final : public SampleSink {
public:
    static constexpr unsigned most_bins = 512;
    /// Threads beyond this number are counted together, as one without IDs.
    static constexpr std::size_t most_threads = 4096;
    using Bins = std::array<std::uint64_t, most_bins>;

    void consume(const SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<SampleTimes>(); }
    void join(SampleSink& fork) override;

    [[nodiscard]] bool empty() const { return empty_; }
    /// Time of the first sample; meaningless if `empty`.
    [[nodiscard]] std::uint64_t first_ticks() const { return first_ticks_; }
    [[nodiscard]] std::uint64_t last_ticks() const { return last_ticks_; }
    /// The number of a bin is its first tick shifted right by this number of bits.
    [[nodiscard]] unsigned shift() const { return shift_; }
    [[nodiscard]] static std::uint64_t count(const Bins& bins, std::uint64_t bin) { return bins[bin % most_bins]; }
    [[nodiscard]] const std::map<std::uint32_t, Bins>& cpus() const { return cpus_; }
    [[nodiscard]] const std::map<Profile::Thread, Bins>& threads() const { return threads_; }

private:
    void make_room(std::uint64_t first, std::uint64_t last);
    Bins& of(const Profile::Thread& thread);

    bool empty_ = true;
    unsigned shift_ = 0;
    std::uint64_t first_ticks_ = 0, last_ticks_ = 0;
    std::map<std::uint32_t, Bins> cpus_;
    std::map<Profile::Thread, Bins> threads_;
};

/// Everything that `answers_of_samples` needs from one pass over the samples.
class GatheredSamples final : public SampleSink {
public:
    struct Wanted {
        bool times = false;
        std::uint32_t line_bytes =
            0;  ///< size of cache lines; if not 0, also gathers what `Sharing` needs for its pass
    };
    explicit GatheredSamples(Wanted wanted);
    void consume(const SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override {
        return std::make_unique<GatheredSamples>(wanted_);
    }
    void join(SampleSink& fork) override;

    Profile profile;
    Branches branches;
    std::optional<SampleTimes> times;
    std::optional<LineCandidates> candidates;

private:
    Wanted wanted_;
};

struct SampleAnswersOptions {
    bool inlined = false;               ///< the inlined calls of instructions
    std::size_t most_slices = 200000;   ///< of the timeline
    std::uint32_t line_bytes = 64;      ///< of cache lines
    std::size_t most_shared = 1000;     ///< number of cache lines in the table of shared ones
    std::size_t most_thread_rows = 64;  ///< limit for the timeline: threads with the most samples
};

/// How much of the run the samples cover. `quality`: for these `totals`. Empty: the capture contains no record.
[[nodiscard]] answers::Account samples_account(const SampleCapture& capture, const SampleTotals& totals,
                                               const Quality& quality);

/// Fills everything except `capture` and `version`. The result does not depend on how the samples were divided.
/// `sharing` may be null.
[[nodiscard]] answers::Answers answers_of_samples(const SampleCapture& capture, const SampleTotals& totals,
                                                  const GatheredSamples& gathered, const Sharing* sharing,
                                                  Program& program, const SampleAnswersOptions& options = {});

}  // namespace waymark::analysis
