/// `waymark spe branches`: sampled branches, for readers and for tools that lay out code.
#include <memory>

#include "answers.h"
#include "commands.h"
#include "waymark/analysis/file_branches.h"
#include "waymark/core/numbers.h"
#include "waymark/exports/write.h"

namespace waymark::cli {

namespace {

struct SpeBranchOptions : AnswerOptions {
    listing::SampledBranchLayout layout;
    std::string file;
};

/// Prints the taken branches of one file, as `waymark export` writes them. `usage`: the file contains no branch.
ExitStatus print_profile(Output& out, doctor::ProfileView& view, const analysis::Branches& branches,
                         const SpeBranchOptions& options) {
    const auto file = analysis::file_of_branches(branches, view.program(), options.file);
    if (!file) return fail(file.error());
    ShowProgress progress;
    const auto answers = doctor::answers_of(view, options.capture, {}, false, &progress);
    if (!answers) return fail(answers.error());
    exports::WriteOptions how;
    how.image = analysis::Program::short_name(*file);
    ByteCollector bytes;
    const auto report =
        exports::write(*exports::find_format(options.format == "bolt" ? "bolt" : "autofdo-text"), *answers, how, bytes);
    if (!report) return fail(report.error());
    out.write({reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()});
    say_all("note", report->notes);
    if (const std::uint64_t not_retired = branches.all().not_retired; not_retired != 0)
        say("note", fmt::format("{} were not retired, but are counted", counted(not_retired, "branch", "branches")));
    return decoded;
}

ExitStatus branches(SpeBranchOptions& options) {
    auto view = open_profile(options);
    if (!view) return fail(view.error());
    analysis::Branches branches;
    ShowProgress progress;
    view->run(branches, &progress);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    ExitStatus status = decoded;
    options.layout.format = options.line_format();
    if (view->quality().selected != 0 && (options.format == "bolt" || options.format == "autofdo"))
        status = print_profile(*out, *view, branches, options);
    else if (view->quality().selected != 0)
        listing::print_sampled_branches(*out, *view, branches, options.layout);
    const ExitStatus end = finish(*view, options, *out, true);
    return status != decoded ? status : end;
}

}  // namespace

Run add_spe_branches(const Command& spe) {
    auto options = std::make_shared<SpeBranchOptions>();
    const Command command = spe.add("branches");
    options->add_to(command,
                    {"bolt: pre-aggregated profile for perf2bolt --pa", "autofdo: text profile for create_llvm_prof"});
    command.option("--by", options->layout.by);
    command.option("--sort", options->layout.sort);
    command.option("--limit", options->layout.limit);
    command.option("--file", options->file);
    return [options] { return branches(*options); };
}

}  // namespace waymark::cli
