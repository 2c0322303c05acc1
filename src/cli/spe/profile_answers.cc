#include <fmt/format.h>

#include <optional>

#include "../unit_answers.h"
#include "answers.h"
#include "waymark/analysis/sampled_code.h"
#include "waymark/analysis/spe_answers.h"

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
    auto opened = Answer::open(input);
    if (!opened) return not_opened(opened.error());
    Answer answer = std::move(*opened);
    analysis::SampleAnswersOptions wanted;
    wanted.inlined = options.inlined;
    wanted.most_slices = options.most_slices;
    analysis::GatheredSamples gathered({options.timeline, options.timeline ? wanted.line_bytes : 0});
    answer.run(gathered);
    const analysis::SampleTotals totals = answer.totals();
    if (answer.quality().selected == 0)
        return Error{answer.say_damage() ? Errc::unreadable : Errc::not_found,
                     fmt::format("{}: no SPE samples: {}", options.input.capture, answer.why_nothing())};
    std::optional<analysis::Sharing> sharing;
    if (gathered.candidates) {
        sharing.emplace(*gathered.candidates);
        answer.run(*sharing);
    }
    answers::Answers answers = analysis::answers_of_samples(answer.capture(), totals, gathered,
                                                            sharing ? &*sharing : nullptr, answer.program(), wanted);
    if (options.disassembly) analysis::disassemble(answers);
    return finished(std::move(answers), options);
}

}  // namespace waymark::cli
