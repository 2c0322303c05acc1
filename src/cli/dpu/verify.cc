#include "verify.h"

#include "../options.h"
#include "../views.h"
#include "input.h"
#include "listing.h"
#include "waymark/listing/verified.h"
#include "waymark/verify/dpu.h"

namespace waymark::cli {

namespace {

ExitStatus print_verified(const DpuInput& input, const record::DpuTruth& truth, Output& out) {
    const auto verified = verify::verify_dpu(input, truth);
    if (!verified) return fail(verified.error());
    if (!verified->has_content) {
        say("error", "nothing to compare: nothing was decoded: " + input.why_nothing());
        return static_cast<ExitStatus>(not_compared);
    }
    const record::DpuCompared& compared = verified->compared;
    out.print("capture {}\n  mode {}, {}\n", input.capture().path.string(), input.mode_text(),
              !truth.complete ? "a part of the program's run: " + truth.ended
              : truth.traced  ? std::string("the whole run of the program")
                              : std::string("the program's run to its end, traced in part"));
    const auto account = dpu_account_of(input);
    if (!account) return fail(account.error());
    print_account(out, *account);
    listing::print_verified(out, compared);
    for (const std::string& warning : verified->warnings) say("warning", warning);
    if (verified->cut) return unreadable;
    if (compared.different != 0 || compared.damaged) return nothing;
    return compared.compared == 0 ? static_cast<ExitStatus>(not_compared) : decoded;
}

}  // namespace

ExitStatus run_verify_dpu(const std::string& folder, const std::string& output) {
    const auto input = DpuInput::open(folder);
    if (!input) return fail(input.error());
    const auto truth = record::read_dpu_truth(input->capture().path.parent_path());
    if (!truth) {
        const ExitStatus status = fail(truth.error());
        return truth.error().code == Errc::not_found ? static_cast<ExitStatus>(not_compared) : status;
    }
    warn(*input);
    auto out = Output::open(output, {folder});
    if (!out) return fail(out.error());
    const ExitStatus status = print_verified(*input, *truth, *out);
    return out->close() == decoded ? status : unreadable;
}

}  // namespace waymark::cli
