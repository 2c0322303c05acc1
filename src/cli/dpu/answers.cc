#include <fmt/format.h>

#include <optional>

#include "../trouble.h"
#include "../unit_answers.h"
#include "input.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/doctor/dpu_view.h"

namespace waymark::cli {

Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "a capture of a DPU, which describes how it was recorded"));
    const auto opened = DpuInput::open(options.input.capture);
    if (!opened) return not_opened(opened.error());
    const DpuInput& input = *opened;
    analysis::DpuCode code;
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.input.file_search());
    code.look_in(std::move(files));
    std::vector<std::string> problems = input.name_code(code);
    for (const std::string& image : options.input.images) WM_RETURN_IF_ERROR(doctor::add_image(code, image));
    for (std::string& sentence : gathered(input.capture().problems)) problems.push_back(std::move(sentence));
    analysis::DpuSetup setup = input.setup();
    std::optional<analysis::DpuTimes> times;
    const auto beside = [&](const analysis::DpuSetup& with) {
        return options.timeline ? &times.emplace(with) : nullptr;
    };
    WM_ASSIGN_OR_RETURN(const doctor::DpuSums sums,
                        doctor::add_up(input.trace(), input.trace_bytes(), setup, code, beside));
    if (times) times->finish();
    const pipeline::DpuDecoded& decoded = sums.decoded;
    const analysis::DpuCosts& costs = *sums.costs;
    if (!DpuInput::has_content(decoded.totals))
        return Error{input.is_cut(decoded) ? Errc::unreadable : Errc::not_found,
                     fmt::format("{}: nothing was decoded: {}", options.input.capture, input.why_nothing())};
    analysis::DpuSaid said = input.said(setup, decoded);
    said.problems = std::move(problems);
    analysis::DpuAnswersOptions wanted;
    wanted.most_slices = options.most_slices;
    return finished(analysis::answers_of_dpu(costs, times ? &*times : nullptr, code, said, wanted), options);
}

}  // namespace waymark::cli
