#include "views.h"

#include "trouble.h"
#include "waymark/answers/account_effects.h"
#include "waymark/listing/views.h"

namespace waymark::cli {

using answers::Answers;
using answers::Finding;
using answers::View;

namespace {

listing::ViewLayout layout_of(const ViewFormat& how) {
    return {listing::format_of(how.format), how.limit, how.widest()};
}

/// Prints why there is no view, and returns the status.
ExitStatus fail_view(const Error& error) {
    say("error", error.message);
    return error.code == Errc::usage ? usage : nothing;
}

/// Prints the remarks of a view; returns `nothing` if a gate failed.
ExitStatus remark(const View& view) {
    ExitStatus out = decoded;
    for (const Finding& f : view.remarks) {
        const bool fails = f.severity == Finding::Severity::bad;
        if (fails) out = nothing;
        say(fails ? "error" : f.severity == Finding::Severity::warning ? "warning" : "note", f.what);
    }
    return out;
}

}  // namespace

void say_head(const Answers& answers, bool named) {
    for (const Finding& f : answers.health) {
        if (f.severity < Finding::Severity::warning || was_said(f.what) || was_said(about(answers.capture, f.what)))
            continue;
        say("warning", named ? about(answers.capture, listing::finding_sentence(f)) : listing::finding_sentence(f));
    }
    if (answers::is_part_of_run(answers.account)) {
        const std::string run = "of the run: " + answers::account_sentence(answers.account);
        say("note", named ? about(answers.capture, run) : run);
    }
}

ExitStatus show(const Answers& answers, const Result<View>& view, const ViewFormat& how, Output& out) {
    // Without a view the head is printed too, because it may show losses that are the reason.
    if (!view || how.format != "text") say_head(answers);
    if (!view) return fail_view(view.error());
    listing::print_view(out, answers, *view, layout_of(how));
    return remark(*view);
}

ExitStatus show_diff(const Answers& before, const Answers& after, const answers::DiffOptions& options,
                     const ViewFormat& how, Output& out) {
    const auto compared = compare(before, after, options);
    if (how.format != "text" || !compared)
        for (const Answers* answers : {&before, &after}) say_head(*answers, true);
    if (!compared) return fail_view(compared.error());
    listing::print_diff(out, before, after, *compared, options, layout_of(how));
    return remark(compared->view);
}

}  // namespace waymark::cli
