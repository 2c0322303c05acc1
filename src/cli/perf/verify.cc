#include "verify.h"

#include <fmt/format.h>

#include <filesystem>

#include "../dpu/verify.h"
#include "../selected_session.h"
#include "../views.h"
#include "waymark/listing/verified.h"
#include "waymark/pipeline/account.h"
#include "waymark/record/perf_file.h"
#include "waymark/record/truth.h"
#include "waymark/verify/perf.h"

namespace waymark::cli {

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
    listing::print_verified(*out, all);
    std::vector<Error> unread;
    print_account(*out, pipeline::account_of(session, opened->selected, {}, &unread));
    if (all.instructions == 0 && all.verdict() == verify::Verdict::not_compared)
        say("error", "nothing to compare: no instruction is decoded");
    using verify::Verdict;
    const Verdict verdict = all.verdict();
    listing::print_verdict(*out, all, truth->sources.size());
    if (out->close() != decoded) return unreadable;
    if (read_errors || say_unread(unread)) return unreadable;
    return verdict == Verdict::equal       ? decoded
           : verdict == Verdict::different ? nothing
                                           : static_cast<ExitStatus>(not_compared);
}

}  // namespace waymark::cli
