#include "answers.h"

#include "unit_answers.h"
#include "waymark/capture/dpu_folder.h"

namespace waymark::cli {

Result<analysis::Answers> answers_of(const AnswersOptions& options) {
    if (capture::is_dpu_folder(options.input.capture)) return answers_of_dpu_folder(options);
    if (is_profile(options.input.capture)) return answers_of_profile(options);
    return Error{Errc::unsupported, "program flow is not told yet"};
}

}  // namespace waymark::cli
