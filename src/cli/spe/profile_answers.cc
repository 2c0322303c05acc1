#include "../unit_answers.h"
#include "answers.h"
#include "waymark/analysis/sampled_code.h"

namespace waymark::cli {

Result<answers::Answers> answers_of_profile(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "a profile, which describes how it was recorded"));
    if (!options.input.images.empty())
        return Error{Errc::usage,
                     "--image: files of a profile are found by their recorded names; --symfs DIR names a folder with "
                     "copies of them"};
    AnswerOptions input;
    input.capture = options.input.capture;
    input.names = options.input;
    input.kallsyms = options.kallsyms;
    input.jobs = options.jobs;
    auto opened = open_profile(input);
    if (!opened) return not_opened(opened.error());
    analysis::SampleAnswersOptions wanted;
    wanted.inlined = options.inlined;
    wanted.most_slices = options.most_slices;
    ShowProgress progress;
    auto answers = doctor::answers_of(*opened, input.capture, wanted, options.timeline, &progress);
    if (!answers) {
        if (say_all("error", opened->damage())) answers.error().code = Errc::unreadable;
        return answers;
    }
    if (options.disassembly) analysis::disassemble(*answers);
    return finished(std::move(*answers), options);
}

}  // namespace waymark::cli
