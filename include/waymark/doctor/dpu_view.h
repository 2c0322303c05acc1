/// A capture of a Debug and Profiling Unit, decoded and added up: the base of the views of `waymark dpu`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_tables.h"
#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/doctor/dpu_input.h"

namespace waymark::doctor {

/// Adds the program that `text` names, as FILE or FILE@LOAD_BIAS. Errors: `usage`, `unreadable`; `unsupported`: it is
/// for another machine.
[[nodiscard]] Status add_image(analysis::DpuCode& code, const std::string& text);

/// The answers of a capture. Its code has the names of its own programs and of `options.images`; messages call it
/// `name`. `timeline`: whether the timeline is filled. Errors: the errors of add_image and of decoding; `not_found`,
/// with the reason: nothing was decoded; `if_cut`: the same if the file of the buffer is cut.
[[nodiscard]] Result<answers::Answers> answers_of(const DpuInput& input, const CaptureInput& options,
                                                  const std::string& name, const analysis::DpuAnswersOptions& wanted,
                                                  bool timeline, Errc if_cut = Errc::not_found);

/// The options of a view. Messages name the corresponding options of the command line.
struct DpuViewOptions {
    CaptureInput input;               ///< the capture, its images (FILE or FILE@LOAD_BIAS) and folders
    std::string counter;              ///< the counter by which rows are sorted; empty: the first
    std::vector<std::string> ranges;  ///< FROM-TO, or a function
};

class DpuView {
public:
    /// `view`: a view of analysis::trust_in, or `ratios`. Errors: the errors of reading the folder and the images, and
    /// of decoding; `usage`: a counter or range that does not exist.
    [[nodiscard]] static Result<std::unique_ptr<DpuView>> make(const DpuViewOptions& options, std::string_view view);

    [[nodiscard]] const DpuInput& input() const { return input_; }
    [[nodiscard]] const analysis::DpuCosts& costs() const { return *sums_.costs; }
    [[nodiscard]] const analysis::DpuTables& tables() const { return *tables_; }
    [[nodiscard]] const analysis::DpuSaid& said() const { return said_; }
    [[nodiscard]] const answers::Trust& trust() const { return trust_; }
    /// Programs and names that could not be read.
    [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
    /// The counters that count an event.
    [[nodiscard]] const std::vector<unsigned>& counters() const { return counters_; }
    [[nodiscard]] unsigned sorted_by() const { return sorted_by_; }
    /// Whether there is anything other than padding.
    [[nodiscard]] bool has_content() const { return DpuInput::has_content(sums_.decoded.totals); }
    [[nodiscard]] bool is_cut() const { return input_.is_cut(sums_.decoded); }
    /// Sentences about impossible or implausible values in the trace.
    [[nodiscard]] std::vector<std::string> doubts() const;
    [[nodiscard]] std::vector<std::string> losses() const;
    /// The part that a filter excludes, in a sentence; empty if none.
    [[nodiscard]] std::string left_out() const;
    [[nodiscard]] bool reconciles(const analysis::DpuCounts& rows) const;
    /// The tables of the view, at most `limit` rows of each for reading; 0: all. Adds remarks to `notes`.
    [[nodiscard]] std::vector<analysis::DpuTable> parts(std::uint64_t limit, std::vector<std::string>& notes) const;

private:
    DpuView(DpuInput input, std::string_view view) : input_(std::move(input)), view_(view) {}
    [[nodiscard]] Status prepare(const DpuViewOptions& options);
    [[nodiscard]] Status choose_counter(const std::string& counter);
    [[nodiscard]] Status add_range(const std::string& text);

    DpuInput input_;
    std::string view_;
    analysis::DpuCode code_;
    std::vector<std::string> problems_, range_names_;
    analysis::DpuSetup setup_;
    DpuSums sums_;
    std::vector<unsigned> counters_;
    unsigned sorted_by_ = 0;
    analysis::DpuSaid said_;
    std::optional<analysis::DpuTables> tables_;
    answers::Trust trust_;
};

}  // namespace waymark::doctor
