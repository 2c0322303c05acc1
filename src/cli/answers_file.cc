/// `waymark answers`: writes the results of a capture as a file, which other commands take in place of the capture.
#include <memory>

#include "commands.h"
#include "unit_answers.h"
#include "views.h"
#include "waymark/answers/file.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/pipeline/answers_file.h"

namespace waymark::cli {

namespace {

using answers::Answers;

struct WriteOptions {
    AnswersOptions answers;
    bool only_ranges = false;
};

ExitStatus write(const WriteOptions& options) {
    AnswersOptions wanted = options.answers;
    wanted.ranges = true;
    if (!options.only_ranges) {
        wanted.calls = wanted.timeline = wanted.instructions = wanted.inlined = wanted.disassembly = true;
        wanted.all_functions = true;  // the same as for waymark coverage
    }
    auto answers = answers_of(wanted);
    if (!answers) return fail_answers(answers.error(), {wanted.input.capture});
    // Omit tables that take long to compute and do not concern ranges.
    if (options.only_ranges) answers->edges.clear();
    const auto bytes = pipeline::write_answers_file(*answers, wanted.input.output, wanted.input.files());
    if (!bytes) return fail(bytes.error());
    say_head(*answers);
    if (options.only_ranges && answers->ranges.empty())
        say("warning", "it contains no ranges: these need program flow trace, and the program's files");
    if (wanted.input.output != "-")
        say("note", fmt::format("wrote {}, {}; read it with {}", wanted.input.output, counted(*bytes, "byte"),
                                options.only_ranges ? "pgo and merge"
                                                    : "profile, coverage, branches, loops, diff, report, export"));
    return answers->cut ? unreadable : decoded;
}

}  // namespace

Result<Answers> answers_of_file(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "an answers file, which is already decoded"));
    if (!options.input.images.empty())
        return Error{Errc::usage, fmt::format("{} is an answers file, which is already decoded: leave out --image",
                                              options.input.capture)};
    auto read = options.summand ? pipeline::read_summand(options.input.capture)
                                : pipeline::read_answers_file(options.input.capture);
    if (!read) return not_opened(read.error());
    Answers& a = *read;
    if (answers::has_only_ranges(a) && !options.ranges && (options.calls || options.instructions || options.timeline)) {
        Error lacks{
            Errc::not_found,
            fmt::format(
                "{} was written with --only-ranges: it has the tables of compiler profiles and "
                "exceptions, but no functions, branches, levels or timeline; write it again without --only-ranges",
                options.input.capture)};
        if (options.instructions || options.timeline) return lacks;
        say("warning", lacks.message);
    }
    pipeline::keep_what_is_asked(a, options);
    if (options.all_functions)
        for (const answers::Finding& f : a.health)
            if (f.what == without_functions_that_never_ran) say("note", fmt::format("{} ({})", f.what, f.todo));
    a.capture = options.input.capture;
    return read;
}

Run add_answers(const Command& app) {
    const Command command = app.add("answers");
    auto options = std::make_shared<WriteOptions>();
    AnswersOptions& answers = options->answers;
    answers.input.add_to(command);
    answers.input.selection.add_to(command);
    command.get_option("--output")->required()->description("The answers file to write; - is standard output");
    command.flag("--only-ranges", options->only_ranges);
    command.option("--jobs", answers.jobs)->check(range(0U, 256U));
    add_timestamp_hz(command, answers);
    command.option("--kallsyms", answers.kallsyms);
    return [options] { return write(*options); };
}

}  // namespace waymark::cli
