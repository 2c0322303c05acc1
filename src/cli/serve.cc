/// `waymark serve`: the report of a capture in a browser, with windows of single calls that are decoded on request.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "answers.h"
#include "commands.h"
#include "report_parts.h"
#include "trouble.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/report_notes.h"
#include "waymark/report/report.h"
#include "waymark/serve/pages.h"
#include "waymark/serve/server.h"

namespace waymark::cli {

namespace {

struct ServeCommandOptions {
    AnswersOptions answers;
    serve::ServerOptions server;
    double most_megabytes = 10;
    std::uint32_t most_steps = 100'000;
    std::string index{};
    std::uint64_t spacing = serve::IndexOptions{}.spacing;
    unsigned idle_minutes = 0;
    bool no_sources = false;
    std::vector<std::string> source_roots{};
    answers::CodeKind code = answers::CodeKind::own;
};

// Other threads read this.
std::atomic<int> serving_over{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler of signals takes no locks");
extern "C" void end_serving(int signal) {
    // A second signal ends the program at once, without waiting for work in progress.
    if (serving_over.exchange(1) != 0) _exit(128 + signal);
}

/// Ends a pass over the trace when the server ends.
struct ReadingEnds {};

/// The capture as a session, if it has program flow; nullopt: it can only be shown as a whole.
Result<std::optional<pipeline::Session>> session_of(const AnswersOptions& options) {
    const open::Content content = options.input.container().contents();
    if (content != open::Content::flow && content != open::Content::bytes) return std::optional<pipeline::Session>();
    if (!options.kallsyms.empty()) WM_RETURN_IF_ERROR(analysis::check_kallsyms(options.kallsyms));
    InputOptions input = options.input;
    input.kallsyms = options.kallsyms;
    input.code_of_files = true;
    WM_ASSIGN_OR_RETURN(pipeline::Session session, open_session(input));
    return std::optional(std::move(session));
}

ExitStatus run_server(const ServeCommandOptions& options) {
    if (const Status possible = check_page(options.most_megabytes); !possible) return fail(possible.error());
    AnswersOptions wanted = options.answers;
    wanted.calls = wanted.timeline = wanted.instructions = wanted.disassembly = wanted.inlined = true;
    wanted.all_functions = wanted.without_code = true;
    if (auto taken_out = trace_taken_out(wanted.input.container())) return fail(*taken_out);
    auto opened = session_of(wanted);
    if (!opened) return fail(opened.error());
    const std::optional<pipeline::Session> session = std::move(*opened);
    std::vector<const pipeline::Source*> selected;
    if (session) {
        warn(*session);
        auto sources = session->select(wanted.input.sources);
        if (!sources) return fail(sources.error());
        selected = std::move(*sources);
        const bool flow = std::any_of(selected.begin(), selected.end(), [](const auto* s) { return s->has_flow(); });
        if (!flow && !pipeline::has_messages_alone(selected)) {
            say("error",
                fmt::format("{}: no source has program flow or messages that can be decoded", wanted.input.capture));
            return nothing;
        }
    }
    if (!options.index.empty()) {
        if (const Status replaceable = serve::check_index_file(options.index); !replaceable)
            return fail(replaceable.error());
    }
    // A capture that can only be shown as a whole is read at once, so that an unreadable capture is an error of the
    // command.
    std::optional<answers::Answers> all_there_is;
    if (!session) {
        auto read = answers_of(wanted);
        if (!read) return fail_answers(read.error(), {wanted.input.capture});
        all_there_is.emplace(std::move(*read));
    }

    serve::PagesOptions pages;
    pages.capture = wanted.input.capture;
    pages.version = WAYMARK_VERSION;
    pages.index_file = options.index;
    pages.index.spacing = options.spacing;
    pages.report.most_bytes = static_cast<std::uint64_t>(options.most_megabytes * 1e6);
    pages.report.most_steps = options.most_steps;
    pages.report.code = options.code;
    pages.window.most_slices = pages.report.most_slices;
    pages.window.most_steps = options.most_steps;
    pages.window.timestamp_hz = wanted.timestamp_hz;
    wanted.most_slices = pages.report.most_slices;
    wanted.most_steps = options.most_steps;
    // Uses half of the processors: the other half makes the index meanwhile.
    wanted.workers = std::max(1U, workers(wanted.jobs) / 2);
    std::mutex saying;
    const auto say_one = [&](const char* kind, const std::string& text) {
        const std::scoped_lock lock(saying);
        say(kind, text);
    };
    pages.answers = [&](const pipeline::OpenBuffer& open, bool whole, const std::function<bool()>& stop,
                        answers::Steps& steps) -> Result<answers::Answers> {
        if (!session) return *all_there_is;
        pipeline::FlowAnswersOptions how = wanted;
        how.open = open;
        how.steps = &steps;
        try {
            return pipeline::trace_answers(
                *session, selected, how,
                [&](std::uint64_t, std::optional<std::uint64_t>) {
                    if (stop()) throw ReadingEnds{};
                },
                [&](const pipeline::Report& report) {
                    if (!whole || stop()) return;
                    const std::scoped_lock lock(saying);
                    report_read_errors(*session, report);
                });
        } catch (const ReadingEnds&) {
            return Error{Errc::unreadable, "reading was ended"};
        }
    };
    pages.complete = [&](answers::Answers& answers) {
        const std::scoped_lock lock(saying);
        if (!options.no_sources)
            if (const Status read = include_sources(answers, wanted.input, options.source_roots); !read)
                say("warning", read.error().message);
        if (!answers.instructions.empty()) pipeline::note_missing_symbols(answers);
    };

    struct sigaction action {};
    action.sa_handler = end_serving;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);

    serve::Pages all(session ? &*session : nullptr, selected, std::move(pages));
    serve::ServerOptions server = options.server;
    server.idle = std::chrono::minutes(options.idle_minutes);
    const Status served = serve::serve(
        all, server, [] { return serving_over != 0; },
        [&](const std::string& url) {
            const std::string line = printable(url) + "\n";
            std::fwrite(line.data(), 1, line.size(), stdout);
            std::fflush(stdout);
            say_one("note", "open this address in a browser; Ctrl-C ends the server");
            if (!serve::is_of_this_machine_alone(server.address))
                say_one("warning", "other machines can read the capture, unencrypted, if they know this address");
            all.start([&](const std::string& sentence) { say_one("note", sentence); });
        });
    if (!served) return fail(served.error());
    return decoded;
}

}  // namespace

Run add_serve(const Command& app) {
    auto options = std::make_shared<ServeCommandOptions>();
    const Command command = app.add("serve");
    AnswersOptions& answers = options->answers;
    answers.input.add_to(command);
    answers.input.selection.add_to(command);
    command.remove_option("--output");
    command.option("--jobs", answers.jobs);
    command.option("--port", options->server.port);
    command.option("--listen", options->server.address);
    command.option("--index", options->index);
    command.option("--index-every", options->spacing)->check(range(std::uint64_t{1024}, std::uint64_t{1} << 40));
    command.option("--idle", options->idle_minutes)->check(range(0U, 100'000U));
    command.option("--max-size", options->most_megabytes);
    command.option("--steps", options->most_steps)->check(range(0U, 100'000'000U));
    add_timestamp_hz(command, answers);
    command.option("--kallsyms", answers.kallsyms);
    add_code(command, options->code, "What the report's filter 'own code' keeps: ");
    command.flag("--no-sources", options->no_sources);
    command.option("--source-root", options->source_roots);
    return [options] { return run_server(*options); };
}

}  // namespace waymark::cli
