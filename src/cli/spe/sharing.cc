/// `waymark spe sharing`: cache lines that several threads use.
#include <bit>
#include <memory>

#include "answers.h"
#include "commands.h"

namespace waymark::cli {

namespace {

struct SharingOptions : AnswerOptions {
    listing::SharingLayout layout;
    std::uint32_t line_bytes = 64;
};

ExitStatus sharing(SharingOptions& options) {
    if (!std::has_single_bit(options.line_bytes) || options.line_bytes < 8 || options.line_bytes > (1U << 21))
        return fail({Errc::usage, fmt::format("--line-size takes a power of two from 8 to 2097152 bytes, not {}",
                                              options.line_bytes)});
    auto view = open_profile(options);
    if (!view) return fail(view.error());
    ShowProgress progress;
    analysis::LineCandidates candidates(options.line_bytes);
    view->run(candidates, &progress);
    analysis::Sharing sharing(candidates);
    view->run(sharing, &progress);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    if (!options.threads.empty() || !options.cpus.empty() || !options.functions.empty())
        say("note", "only the selected samples were examined: sharing with other threads or CPUs is not shown");
    options.layout.format = options.line_format();
    if (view->quality().selected != 0) {
        const std::string none = listing::print_sharing(*out, *view, candidates, sharing, options.layout);
        if (options.format != "text" && !none.empty()) say("note", none);
    }
    return finish(*view, options, *out, true);
}

}  // namespace

Run add_spe_sharing(const Command& spe) {
    auto options = std::make_shared<SharingOptions>();
    const Command command = spe.add("sharing");
    options->add_to(command);
    command.option("--line-size", options->line_bytes);
    command.flag("--all", options->layout.all);
    command.option("--sort", options->layout.sort);
    command.option("--limit", options->layout.limit);
    return [options] { return sharing(*options); };
}

}  // namespace waymark::cli
