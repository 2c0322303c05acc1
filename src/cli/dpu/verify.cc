#include "verify.h"

#include "../options.h"
#include "../views.h"
#include "input.h"
#include "listing.h"
#include "waymark/verify/dpu.h"

namespace waymark::cli {

namespace {

void print(const record::DpuCompared& c, Output& out) {
    out.print("  {:<26} {:>20} {:>20}\n", "", "executed", "decoded");
    for (const record::DpuFigure& sum : c.sums)
        out.print("  {:<26} {:>20} {:>20}{}\n", sum.name, grouped(sum.executed), grouped(sum.decoded),
                  sum.executed == sum.decoded ? "" : "  *");
    for (const record::DpuFigure& d : c.differences)
        out.print("  {}: executed {}, decoded {}\n", d.name, grouped(d.executed), grouped(d.decoded));
    if (c.different > c.differences.size()) out.print("  … and {} more\n", grouped(c.different - c.differences.size()));
    for (const std::string& note : c.notes) out.print("  {}\n", note);
    const bool wrong = c.different != 0 || c.damaged;
    if (c.compared == 0)
        out.print("{}: there was nothing that could be compared\n", wrong ? "DIFFERENT" : "NOT COMPARED");
    else
        out.print("{}: {} compared{}{}\n",
                  wrong     ? "DIFFERENT"
                  : c.whole ? "equal"
                            : "equal as far as the trace goes",
                  counted(c.compared, "figure"),
                  c.different == 0 ? std::string() : fmt::format(", {} differ", grouped(c.different)),
                  c.counters_left_out == 0 ? std::string()
                                           : fmt::format("; {} not compared", counted(c.counters_left_out, "counter")));
}

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
    print(compared, out);
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
