#include "answers.h"

#include "trouble.h"
#include "unit_answers.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/pipeline/message_answers.h"

namespace waymark::cli {

void add_timestamp_hz(CLI::App& command, AnswersOptions& options) {
    command
        .add_option("--timestamp-hz", options.timestamp_hz,
                    "Frequency of the trace's timestamps in Hz (suffixes K, M, G); the timeline is then "
                    "in nanoseconds. Default: the value in the snapshot")
        ->option_text("HZ")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::uint64_t>{{"hz", 1},
                                                                               {"k", 1000},
                                                                               {"khz", 1000},
                                                                               {"m", 1000000},
                                                                               {"mhz", 1000000},
                                                                               {"g", 1000000000},
                                                                               {"ghz", 1000000000}},
                                          CLI::AsNumberWithUnit::CASE_INSENSITIVE))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000'000}));
}

void add_kallsyms(CLI::App& command, std::string& file) {
    command.add_option("--kallsyms", file, "A copy of the recorded machine's /proc/kallsyms")
        ->type_name("FILE")
        ->group("Names");
}

void add_branch_list_version(CLI::App& command, std::string& version) {
    command
        .add_option("--branch-list-version", version,
                    "branch-list: 1 writes a header with a version, for newer simpleperf; 1z the same with compressed "
                    "messages; 0 "
                    "one message, which every simpleperf reads (default)")
        ->type_name("N")
        ->transform(one_of({"0", "1", "1z"}));
}

void add_autofdo_addresses(CLI::App& command, std::string& addresses) {
    command
        .add_option(
            "--autofdo-addresses", addresses,
            "AutoFDO text: offsets in the file, as simpleperf and newer create_llvm_prof have them (default), or "
            "loaded, counted from where the file begins in memory, as create_llvm_prof 0.19 (Debian's) does")
        ->type_name("RULE")
        ->transform(one_of({"offsets", "loaded"}));
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
