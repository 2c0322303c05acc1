/// Functions that the answers of samples consist of (spe_answers.cc). Each adds to `SpeFill::out`.
#pragma once

#include <string>
#include <utility>

#include "waymark/analysis/quality.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/perf_data.h"

namespace waymark::analysis {

/// What the parts need. `out` is owned by the caller; all other members are borrowed or derived from borrowed ones.
struct SpeFill {
    const SampleCapture& capture;
    const SampleTotals& totals;
    const GatheredSamples& gathered;
    Program& program;
    const SampleAnswersOptions& options;
    Quality quality = quality_of(capture, totals);
    capture::perf::Tasks tasks{*capture.data};
    answers::Answers out{};
    answers::SyntheticTable synthetic{out};

    void say(answers::Finding::Severity severity, std::string what, std::string todo = {}) {
        out.health.push_back({severity, std::move(what), std::move(todo), {}});
    }
    /// `name 123`
    [[nodiscard]] std::string thread_text(const Profile::Thread& thread) const;
};

/// Adds the metrics, the trust in them, and summary figures.
void fill_sample_health(SpeFill& fill);
/// Adds images, functions, instructions, lines, branches and edges.
void fill_sample_code(SpeFill& fill);
/// Needs the functions.
void fill_sample_timeline(SpeFill& fill);

}  // namespace waymark::analysis
