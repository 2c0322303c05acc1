#include "answers.h"

#include "trouble.h"
#include "unit_answers.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/pipeline/message_answers.h"

namespace waymark::cli {

void add_timestamp_hz(const Command& command, AnswersOptions& options) {
    command.option("--timestamp-hz", options.timestamp_hz)
        ->option_text("HZ")
        ->transform(with_unit({{"hz", 1},
                               {"k", 1000},
                               {"khz", 1000},
                               {"m", 1000000},
                               {"mhz", 1000000},
                               {"g", 1000000000},
                               {"ghz", 1000000000}}))
        ->check(range(std::uint64_t{1}, std::uint64_t{100'000'000'000}));
}

exports::BranchListVersion branch_list_version(const std::string& version) {
    return version == "1"    ? exports::BranchListVersion::one
           : version == "1z" ? exports::BranchListVersion::compressed
                             : exports::BranchListVersion::old;
}

Result<answers::Answers> answers_of(const AnswersOptions& options) {
    const open::Container& container = options.input.container();
    if (auto taken_out = trace_taken_out(container)) return std::move(*taken_out);
    if (container.contents() == Content::answers) return answers_of_file(options);
    if (container.contents() == Content::counters) return answers_of_dpu_folder(options);
    if (container.contents() == Content::samples) return answers_of_profile(options);
    if (!options.kallsyms.empty()) WM_RETURN_IF_ERROR(analysis::check_kallsyms(options.kallsyms));
    InputOptions input = options.input;
    input.kallsyms = options.kallsyms;
    // A capture may contain only the pages that ran, so a function may be longer than its bytes in the capture.
    input.code_of_files = options.instructions;
    auto opened = open_session(input);
    if (!opened) return not_opened(opened.error());
    const pipeline::Session session = std::move(*opened);
    warn(session);
    WM_ASSIGN_OR_RETURN(const std::vector<const pipeline::Source*> selected, session.select(options.input.sources));
    pipeline::FlowAnswersOptions wanted = options;
    wanted.workers = workers(options.jobs);
    ProgressLine progress;
    auto answers =
        pipeline::trace_answers(session, selected, wanted, shown_on(progress), [&](const pipeline::Report& report) {
            report_read_errors(session, report);
            const auto filtered = pipeline::filter_note(session, report);
            if (filtered && !filtered->nothing_passed) say("note", filtered->text);
        });
    if (!answers) {
        Error error = std::move(answers.error());
        if (error.code == Errc::not_found && error.message.starts_with("nothing decoded: "))
            error.message = with_doctor(std::move(error.message), options.input.capture, options.input.images);
        return error;
    }
    answers->capture = options.input.capture;
    answers->version = WAYMARK_VERSION;
    return answers;
}

}  // namespace waymark::cli
