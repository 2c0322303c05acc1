#include "answers.h"

#include "../trouble.h"
#include "../views.h"
#include "waymark/answers/account_effects.h"

namespace waymark::cli {

void ProfileInput::add_capture_to(const Command& command) { command.option("CAPTURE", capture); }

void ProfileInput::add_reading_to(const Command& command) {
    command.option("--midr", midr);
    command.option("--jobs", jobs);
    command.flag("--mid-record", mid_record);
    command.flag("--strict", strict);
    command.option("--output", output);
}

void AnswerOptions::add_to(const Command& command, std::vector<std::string> formats) {
    add_capture_to(command);
    std::vector<std::string> all{"text", "tsv", "json"};
    std::string list = "text: for reading; tsv, json: for programs";
    for (const std::string& extra : formats) {
        list += "; " + extra;
        all.push_back(extra.substr(0, extra.find(':')));
    }
    command.add_option("--format", format, list)->type_name("FORMAT")->transform(one_of(all))->capture_default_str();
    command.option("--cpu", cpus);
    command.option("--thread", threads);
    command.option("--function", functions);
    names.add_folders_to(command);
    command.option("--kallsyms", kallsyms);
    add_reading_to(command);
}

Result<doctor::ProfileView> open_profile(const AnswerOptions& options) {
    doctor::ProfileViewOptions wanted{.input = options.names,
                                      .cpus = options.cpus,
                                      .threads = options.threads,
                                      .functions = options.functions,
                                      .mid_record = options.mid_record,
                                      .workers = workers(options.jobs)};
    wanted.input.capture = options.capture;
    wanted.input.kallsyms = options.kallsyms;
    if (!options.midr.empty()) {
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, read_number(options.midr, "--midr", 0xffffffff));
        wanted.midr = static_cast<std::uint32_t>(value);
    }
    ShowProgress progress;
    return doctor::ProfileView::open(wanted, &progress);
}

bool say_all(std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences) say(kind, sentence);
    return !sentences.empty();
}

ExitStatus finish(const doctor::ProfileView& view, const AnswerOptions& options, Output& out, bool names_used) {
    if (out.close() != decoded) return unreadable;
    const bool cut = say_all("error", view.damage());
    say_all("warning", view.losses());
    if (names_used) say_all("note", view.unnamed());
    const analysis::Quality& q = view.quality();
    if (q.selected == 0) {
        say("error", fmt::format("{}: no SPE samples: {}", options.capture, view.why_nothing()));
        return cut ? unreadable : nothing;
    }
    // A file with missing parts was not read to its end, even if the other parts gave results.
    if (cut) return unreadable;
    std::uint64_t doubtful = 0;
    for (const analysis::StreamQuality& s : q.streams) doubtful += s.damaged + s.no_pc;
    if (const auto doubt = doctor::hardly_a_buffer(view.capture(), options.capture, doubtful, q.records)) {
        say("error", *doubt);
        return nothing;
    }
    answers::Answers run;
    run.account = view.account();
    if (options.format != "text" && options.format != "json") say_head(run);
    if (!options.strict || !answers::completeness(run.account).strict) return decoded;
    say("error", "--strict: " + answers::account_sentence(run.account));
    return nothing;
}

}  // namespace waymark::cli
