/// A profile of the Statistical Profiling Extension, opened, with the names of its code: the base of the views of
/// `waymark spe`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/analysis/program.h"
#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"

namespace waymark::doctor {

struct ProfileViewOptions {
    CaptureInput input;      ///< the capture, folders of its files, and symbols of its kernel
    std::uint32_t midr = 0;  ///< SampleCapture::midr
    std::vector<std::string> cpus{}, threads{}, functions{};  ///< of the selected samples, as in --cpu; empty: all
    bool mid_record = false;                                  ///< streams may begin inside a record
    unsigned workers = 1;
};

class ProfileView {
public:
    /// `progress` may be null. Errors: the errors of open::open_samples; `usage`: a CPU or folder that does not exist;
    /// errors of reading the kernel's symbols.
    [[nodiscard]] static Result<ProfileView> open(const ProfileViewOptions& options,
                                                  capture::perf::Progress* progress = nullptr);

    /// Decodes everything into `sink`; may be called again.
    void run(analysis::SampleSink& sink, capture::perf::Progress* progress = nullptr);
    /// Decodes everything for the totals and the quality alone.
    void run(capture::perf::Progress* progress = nullptr);

    [[nodiscard]] const analysis::SampleCapture& capture() const { return *capture_; }
    [[nodiscard]] analysis::Program& program() const { return *program_; }
    // Of the last run.
    [[nodiscard]] const analysis::Quality& quality() const { return quality_; }
    [[nodiscard]] const analysis::SampleTotals& totals() const { return totals_; }
    /// How much of the run the samples cover.
    [[nodiscard]] answers::Account account() const;

    /// Text such as `worker 1234 of 1200`; `unknown` for a thread that is not known.
    [[nodiscard]] std::string thread_text(std::uint32_t pid, std::uint32_t tid) const;

    // Sentences.
    /// The reason why there is no sample.
    [[nodiscard]] std::string why_nothing() const { return analysis::why_no_samples(*capture_, quality_); }
    /// What prevented the file from being read to its end.
    [[nodiscard]] std::vector<std::string> damage() const;
    /// What is missing among the records.
    [[nodiscard]] std::vector<std::string> losses() const;
    /// The files whose code has no names.
    [[nodiscard]] std::vector<std::string> unnamed() const;

private:
    ProfileView() = default;
    std::unique_ptr<analysis::SampleCapture> capture_;
    std::unique_ptr<analysis::Program> program_;
    std::unique_ptr<capture::perf::Tasks> tasks_;
    analysis::Selection selection_;
    analysis::SampleTotals totals_;
    analysis::Quality quality_;
    unsigned workers_ = 1;
};

/// The answers of a profile; messages call it `name`. `timeline`: whether the timeline and the shared cache lines are
/// filled. Errors: `not_found`: there is no sample, with the reason.
[[nodiscard]] Result<answers::Answers> answers_of(ProfileView& view, const std::string& name,
                                                  const analysis::SampleAnswersOptions& wanted, bool timeline,
                                                  capture::perf::Progress* progress = nullptr);

/// Sentences about damage of a capture's file.
[[nodiscard]] std::vector<std::string> file_damage(const analysis::SampleCapture& capture);
/// The message for bare bytes most of whose records are malformed; nullopt for others.
[[nodiscard]] std::optional<std::string> hardly_a_buffer(const analysis::SampleCapture& capture,
                                                         const std::string& name, std::uint64_t doubtful,
                                                         std::uint64_t records);

}  // namespace waymark::doctor
