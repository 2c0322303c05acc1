/// `waymark spe quality`: how far samples can be trusted.
#include <functional>
#include <memory>

#include "../dpu/listing.h"
#include "../info_others.h"
#include "answers.h"
#include "commands.h"

namespace waymark::cli {

namespace {

ExitStatus print_samples(const AnswerOptions& options,
                         const std::function<void(Output&, const doctor::ProfileView&)>& print) {
    auto view = open_profile(options);
    if (!view) return fail(view.error());
    ShowProgress progress;
    view->run(&progress);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    print(*out, *view);
    return finish(*view, options, *out, false);
}

}  // namespace

ExitStatus run_profile_info(const InputOptions& input, const std::string& format) {
    if (const std::string given = not_for_dpu(input); !given.empty())
        return fail(
            {Errc::usage, fmt::format("{} is a perf.data file, which describes how it was recorded; leave out {}",
                                      input.capture, given)});
    AnswerOptions options;
    options.capture = input.capture;
    options.names.lookup = input.lookup;
    options.format = format;
    options.output = input.output;
    return print_samples(options, [&](Output& out, const doctor::ProfileView& view) {
        listing::print_profile_info(out, view, input.capture, options.line_format());
    });
}

Run add_spe_quality(const Command& spe) {
    auto options = std::make_shared<AnswerOptions>();
    const Command command = spe.add("quality");
    options->add_to(command);
    return [options] {
        return print_samples(*options, [&](Output& out, const doctor::ProfileView& view) {
            listing::print_quality(out, view, options->line_format());
        });
    };
}

}  // namespace waymark::cli
