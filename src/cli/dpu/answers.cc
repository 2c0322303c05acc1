#include "../unit_answers.h"
#include "input.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/doctor/dpu_view.h"

namespace waymark::cli {

Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "a capture of a DPU, which describes how it was recorded"));
    const auto opened = DpuInput::open(options.input.capture);
    if (!opened) return not_opened(opened.error());
    analysis::DpuAnswersOptions wanted;
    wanted.most_slices = options.most_slices;
    WM_ASSIGN_OR_RETURN(answers::Answers out, doctor::answers_of(*opened, options.input, options.input.capture, wanted,
                                                                 options.timeline, Errc::unreadable));
    return finished(std::move(out), options);
}

}  // namespace waymark::cli
