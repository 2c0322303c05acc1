/// A capture of a Debug and Profiling Unit, decoded and added up: what `waymark dpu` shows a view of.
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

/// What is asked for. Messages name the options of the command line with which each is given.
struct DpuViewOptions {
    CaptureInput input;               ///< the capture, its images (FILE or FILE@LOAD_BIAS) and folders
    std::string counter;              ///< by which rows are sorted; empty: the first
    std::vector<std::string> ranges;  ///< FROM-TO, or a function
};

class DpuView {
public:
    /// `view`: as analysis::trust_in has them; `ratios` too. Errors: the errors of reading the folder and the images,
    /// and of decoding; `usage`: a counter or range that is not there.
    [[nodiscard]] static Result<std::unique_ptr<DpuView>> make(const DpuViewOptions& options, std::string_view view);

    [[nodiscard]] const DpuInput& input() const { return input_; }
    [[nodiscard]] const analysis::DpuCosts& costs() const { return *sums_.costs; }
    [[nodiscard]] const analysis::DpuTables& tables() const { return *tables_; }
    [[nodiscard]] const analysis::DpuSaid& said() const { return said_; }
    [[nodiscard]] const answers::Trust& trust() const { return trust_; }
    /// What could not be read of programs and names.
    [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
    /// Those that count something.
    [[nodiscard]] const std::vector<unsigned>& counters() const { return counters_; }
    [[nodiscard]] unsigned sorted_by() const { return sorted_by_; }
    /// There is something besides padding.
    [[nodiscard]] bool has_content() const { return DpuInput::has_content(sums_.decoded.totals); }
    [[nodiscard]] bool is_cut() const { return input_.is_cut(sums_.decoded); }
    /// What there is but cannot be so, or hardly.
    [[nodiscard]] std::vector<std::string> doubts() const;
    [[nodiscard]] std::vector<std::string> losses() const;
    /// What a filter leaves out, in a sentence; empty: nothing.
    [[nodiscard]] std::string left_out() const;
    [[nodiscard]] bool reconciles(const analysis::DpuCounts& rows) const;
    /// The tables of the view, `limit` rows of each for reading; 0: all. Adds remarks on them to `notes`.
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
