#include "verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "../dpu/verify.h"
#include "../selected_session.h"
#include "../views.h"
#include "waymark/core/numbers.h"
#include "waymark/pipeline/account.h"
#include "waymark/record/perf_file.h"
#include "waymark/record/truth.h"
#include "waymark/verify/perf.h"

namespace waymark::cli {

namespace {

using verify::VerifiedThread;

void print_thread(const VerifiedThread& thread, bool partial, Output& out) {
    using verify::Verdict;
    out.print("thread {}: {}\n", thread.name,
              thread.verdict == Verdict::different      ? "DIFFERENT"
              : thread.verdict == Verdict::not_compared ? "NOT COMPARED"
              : partial                                 ? "equal, as far as the buffer kept it"
                                                        : "equal");
    if (!thread.ran)
        return out.print("  {} instructions decoded of a thread that did not run\n", grouped(thread.decoded));
    out.print("  executed {}, decoded {} instructions\n", grouped(thread.executed), grouped(thread.decoded));
    if (thread.not_traced != 0)
        out.print("  {} instructions more executed that the unit was programmed not to trace\n",
                  grouped(thread.not_traced));
    if (!thread.with_ranges) {
        if (thread.verdict == Verdict::not_compared)
            out.write("  trace or code is missing: only a recording made with --truth can be compared then\n");
        return;
    }
    if (thread.without_file != 0)
        out.print("  {} instructions more executed in code of which no file was found, so it cannot be decoded\n",
                  grouped(thread.without_file));
    if (thread.unfinished != 0)
        out.print("  {} instructions executed after the last waypoint, which no unit traces\n",
                  grouped(thread.unfinished));
    if (const auto& difference = thread.difference)
        out.print("  first difference: {:#x} was decoded {} {} often than it executed\n", difference->address,
                  counted(static_cast<std::uint64_t>(std::abs(difference->more)), "time"),
                  difference->more > 0 ? "more" : "less");
}

}  // namespace

ExitStatus verify_perf(const InputOptions& options) {
    const auto truth = record::read_truth_file(record::perf_truth_file(options.capture));
    if (!truth) {
        const ExitStatus status = fail(truth.error());
        return truth.error().code == Errc::not_found ? static_cast<ExitStatus>(not_compared) : status;
    }
    const auto opened = open_selected(options);
    if (!opened) return fail(opened.error());
    const pipeline::Session& session = opened->session;
    auto out = Output::open(options.output, options.files());
    if (!out) return fail(out.error());
    const verify::VerifiedPerf all =
        verify::verify_perf(session, opened->selected, *truth, std::filesystem::path(options.capture).parent_path());
    const bool read_errors = report_read_errors(session, all.report);
    for (const pipeline::Damage& damage : all.missing) say("warning", damage.sentence);
    if (all.together) out->write("threads are not in the trace: what all executed together is compared\n");
    for (const VerifiedThread& thread : all.threads) print_thread(thread, all.partial, *out);
    std::vector<Error> unread;
    print_account(*out, pipeline::account_of(session, opened->selected, {}, &unread));
    if (all.instructions == 0 && all.verdict() == verify::Verdict::not_compared)
        say("error", "nothing to compare: no instruction is decoded");
    using verify::Verdict;
    const Verdict verdict = all.verdict();
    // The truth consists of addresses only.
    const bool uncertain = std::any_of(all.missing.begin(), all.missing.end(), [](const pipeline::Damage& damage) {
        return damage.kind == pipeline::Damage::Kind::uncertain_code;
    });
    out->print("{}: {} instructions of {}\n",
               verdict == Verdict::equal       ? uncertain ? "equal by address, though of uncertain files" : "equal"
               : verdict == Verdict::different ? "DIFFERENT"
                                               : "NOT COMPARED",
               grouped(all.instructions), counted(truth->sources.size(), "thread"));
    if (out->close() != decoded) return unreadable;
    if (read_errors || say_unread(unread)) return unreadable;
    return verdict == Verdict::equal       ? decoded
           : verdict == Verdict::different ? nothing
                                           : static_cast<ExitStatus>(not_compared);
}

}  // namespace waymark::cli
