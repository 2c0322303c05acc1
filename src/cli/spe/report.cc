/// `waymark spe report`: where sampled operations spend their cycles.
#include <fmt/ranges.h>

#include <memory>

#include "answers.h"
#include "commands.h"
#include "waymark/analysis/spe_tables.h"

namespace waymark::cli {

namespace {

struct ReportOptions : AnswerOptions {
    listing::ProfileLayout layout;
};

ExitStatus report(ReportOptions& options) {
    auto view = open_profile(options);
    if (!view) return fail(view.error());
    analysis::Profile profile;
    ShowProgress progress;
    view->run(profile, &progress);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    options.layout.format = options.line_format();
    if (view->quality().selected != 0) listing::print_profile(*out, *view, profile, options.layout);
    return finish(*view, options, *out, options.layout.by != "thread");
}

}  // namespace

Run add_spe_report(const Command& spe) {
    auto options = std::make_shared<ReportOptions>();
    const Command command = spe.add("report");
    options->add_to(command);
    command.option("--by", options->layout.by);
    const std::vector<std::string> keys = analysis::profile_sort_keys();
    command
        .add_option("--sort", options->layout.sort,
                    fmt::format("Sort order of the rows, also shown as bars: {}", fmt::join(keys, ", ")))
        ->type_name("NAME")
        ->transform(one_of(keys))
        ->capture_default_str();
    command.option("--limit", options->layout.limit);
    return [options] { return report(*options); };
}

}  // namespace waymark::cli
