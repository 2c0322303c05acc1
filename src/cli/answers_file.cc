/// `waymark answers`: what a capture says, as a file; and that file in place of a capture.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "commands.h"
#include "unit_answers.h"
#include "waymark/answers/file.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/placed_file.h"

namespace waymark::cli {

namespace {

using answers::Answers;
using answers::Index;

/// Leaves out what was not asked for: a command that shows less of a capture shows as little of the file.
void keep_what_is_asked(Answers& a, const AnswersOptions& options) {
    if (!options.calls) a.calls.clear();
    if (!options.timeline) a.timeline = {};
    if (!options.ranges) {
        a.ranges.clear();
        a.jumps.clear();
    }
    if (!options.instructions) {
        a.instructions.clear();
        a.lines.clear();
        a.branches.clear();
        a.blocks.clear();
        a.loops.clear();
    }
    if (!options.all_functions) {
        std::vector<bool> entered(a.functions.size());
        for (const answers::Instruction& i : a.instructions)
            if (i.seen == answers::Seen::executed && i.function < entered.size()) entered[i.function] = true;
        const auto never = [&](const auto& row) { return row.function < entered.size() && !entered[row.function]; };
        std::erase_if(a.instructions, never);
        std::erase_if(a.branches, never);
        // A line is that of the first function with code of it, which need not be the one that ran.
        std::erase_if(a.lines, [&](const answers::Line& l) { return l.seen != answers::Seen::executed && never(l); });
    }
    if (!options.inlined) {
        a.inlined.clear();
        for (answers::Instruction& i : a.instructions) i.inlined = answers::none;
    }
    if (!options.disassembly)
        for (answers::Instruction& i : a.instructions) i.text.clear();
    if (options.sources) answers::read_sources(a, {});
}

struct WriteOptions {
    AnswersOptions answers;
    bool only_ranges = false;
};

ExitStatus write(const WriteOptions& options) {
    AnswersOptions wanted = options.answers;
    wanted.ranges = true;
    if (!options.only_ranges) {
        wanted.calls = wanted.timeline = wanted.instructions = wanted.inlined = wanted.disassembly = true;
        wanted.all_functions = wanted.input.code_of_files = true;  // as of waymark coverage
    }
    auto answers = answers_of(wanted);
    if (!answers) return fail_answers(answers.error(), {wanted.input.capture});
    // What takes long to find, and says nothing of ranges.
    if (options.only_ranges) answers->edges.clear();
    const auto bytes = write_answers_file(*answers, wanted.input.output, wanted.input.files());
    if (!bytes) return fail(bytes.error());
    using Health = answers::Finding::Severity;
    for (const answers::Finding& f : answers->health)
        if (f.severity == Health::warning || (f.severity == Health::bad && !answers->cut)) say("warning", f.what);
    if (options.only_ranges && answers->ranges.empty())
        say("warning",
            "there are no ranges in it: exact ranges and branches are of program flow, in files that are found");
    if (wanted.input.output != "-")
        say("note", fmt::format("wrote {}, {}; every command that shows answers takes it like a capture",
                                wanted.input.output, counted(*bytes, "byte")));
    return answers->cut ? unreadable : decoded;
}

}  // namespace

bool is_answers_file(const std::string& path) { return answers::is_answers_file(first_bytes(path)); }

Result<Answers> read_answers_file(const std::string& path) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::ByteStream> stream, capture::open_bytes(path));
    constexpr std::uint64_t most = std::uint64_t{1} << 36;
    WM_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, capture::read_all(*stream, most));
    return answers::read_answers(bytes, path);
}

Result<Answers> answers_of_file(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "an answers file, which has its names and places already"));
    if (!options.input.images.empty())
        return Error{Errc::usage, fmt::format("{} is an answers file, and what ran is known: leave out --image",
                                              options.input.capture)};
    auto read = read_answers_file(options.input.capture);
    if (!read) return not_opened(read.error());
    Answers& a = *read;
    keep_what_is_asked(a, options);
    const auto lacks = [&](const char* what) {
        say("warning", fmt::format("{} has no {}: it was written without them", options.input.capture, what));
    };
    if (options.instructions && a.instructions.empty()) lacks("instructions");
    a.capture = options.input.capture;
    return read;
}

Result<std::uint64_t> write_answers_file(const Answers& answers, const std::string& path,
                                         const std::vector<std::string>& inputs) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::FileSink> file, capture::FileSink::open(path, inputs));
    class Counting final : public ByteSink {
    public:
        explicit Counting(ByteSink& sink) : sink_(sink) {}
        void write(Bytes bytes) override {
            count += bytes.size();
            sink_.write(bytes);
        }
        std::uint64_t count = 0;

    private:
        ByteSink& sink_;
    } sink(*file);
    answers::write_answers(answers, sink);
    WM_RETURN_IF_ERROR(file->commit());
    return sink.count;
}

Run add_answers(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("answers", "What a capture says, as one file for all other commands");
    auto options = std::make_shared<WriteOptions>();
    AnswersOptions& answers = options->answers;
    answers.input.add_to(command);
    command.get_option("--output")->required()->description("The answers file to write; - is standard output");
    command.add_flag("--only-ranges", options->only_ranges,
                     "Only the exact tables of ranges and branches by build ID: what compiler profiles need");
    command.add_option("--jobs", answers.jobs, "Number of threads; 0: one per core")
        ->type_name("N")
        ->check(CLI::Range(0U, 256U))
        ->capture_default_str();
    add_timestamp_hz(command, answers);
    add_kallsyms(command, answers);
    command.footer(
        "The file holds functions, calls, coverage, branches, loops, exceptions, the timeline, and exact tables of\n"
        "ranges and branches by build ID, without the trace. profile, coverage, branches, loops, exceptions, diff, "
        "report,\nexport and pgo take it like a capture; waymark merge adds files up. docs/answers-file.md describes "
        "it.\n"
        "\n"
        "  waymark answers out --symbols program -o monday.answers\n"
        "  waymark profile monday.answers\n"
        "\n"
        "Exit status: 0 written; 1 nothing could be decoded; 2 usage; 3 the capture cannot be read, or not to its\n"
        "end (what could is written), or the output not be written.\n");
    return [options] { return write(*options); };
}

}  // namespace waymark::cli
