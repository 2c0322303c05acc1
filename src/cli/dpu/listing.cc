#include "listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "../trouble.h"
#include "input.h"
#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/answers/account.h"
#include "waymark/core/quote.h"
#include "waymark/doctor/dpu.h"
#include "waymark/listing/dpu_elements.h"
#include "waymark/listing/dpu_info.h"
#include "waymark/listing/packets.h"

namespace waymark::cli {

namespace {

class NoElements final : public dpu::ElementSink {
    void consume(const dpu::Batch&) override {}
};

Result<doctor::DpuSums> added_up(const DpuInput& input) {
    analysis::DpuSetup setup = input.setup();
    return doctor::add_up(input.trace(), input.trace_bytes(), setup, {});
}

}  // namespace

Result<answers::Account> dpu_account_of(const DpuInput& input) {
    WM_ASSIGN_OR_RETURN(const doctor::DpuSums sums, added_up(input));
    return listing::dpu_account(input, sums);
}

ExitStatus run_dpu_info(const InputOptions& input, const std::string& format) {
    if (!not_for_dpu(input).empty()) return refuse(input);
    const auto opened = DpuInput::open(input.capture);
    if (!opened) return fail(opened.error());
    const auto sums = added_up(*opened);
    if (!sums) return fail(sums.error());
    const pipeline::DpuDecoded* const done = &sums->decoded;
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    const auto nexus = nexus_bytes(*opened);
    if (!nexus) return fail(nexus.error());
    const bool messages = listing::print_dpu_info(*out, *opened, *sums, nexus->bytes(), listing::format_of(format));
    if (const ExitStatus status = out->close(); status != decoded) return status;
    const bool cut = opened->is_cut(*done);
    if (cut) say("error", opened->cut_text());
    const bool any = DpuInput::has_content(done->totals) || messages;
    if (!any) say("error", "nothing decoded: " + opened->why_nothing());
    return cut ? unreadable : any ? decoded : nothing;
}

ExitStatus run_dpu_packets(const InputOptions& input, const std::string& format,
                           const std::vector<std::string>& types) {
    if (!not_for_dpu(input).empty()) return refuse(input);
    const auto opened = DpuInput::open(input.capture);
    if (!opened) return fail(opened.error());
    warn(*opened);
    const auto nexus = nexus_bytes(*opened);
    if (!nexus) return fail(nexus.error());
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    say_layout(format);
    const auto listed = listing::list_dpu_packets(*opened, nexus->bytes(), *out, listing::format_of(format),
                                                  {types.begin(), types.end()});
    if (!listed) return fail(listed.error());
    if (const ExitStatus status = out->close(); status != decoded) return status;
    if (listed->cut) say("error", opened->cut_text());
    say_gaps(*listed);
    ExitStatus found = nothing;
    if (listed->packets == 0)
        say("error", "nothing decoded: " + opened->why_nothing());
    else
        found = say_types_not_found(types, *listed, "entry", "entries");
    return listed->cut ? unreadable : found;
}

ExitStatus run_dpu_flow(const InputOptions& input, const std::string& format, bool strict) {
    if (!not_for_dpu(input).empty()) return refuse(input);
    if (format == "calls")
        return fail({Errc::usage,
                     fmt::format("--format calls is for instruction trace; waymark dpu paths {} has the calls of a DPU",
                                 shell_file(input.capture))});
    const auto opened = DpuInput::open(input.capture);
    if (!opened) return fail(opened.error());
    warn(*opened);
    analysis::DpuCode code;
    auto files = input.file_search();
    if (!files) return fail(files.error());
    code.look_in(std::move(*files));
    for (const std::string& problem : opened->name_code(code)) say("warning", problem);
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    say_layout(format);
    NoElements none;
    std::optional<listing::DpuListing> lines;
    if (format != "summary") lines.emplace(*out, listing::format_of(format), *opened, code);
    const auto done = pipeline::decode_dpu(opened->trace(), opened->trace_bytes(),
                                           lines ? static_cast<dpu::ElementSink&>(*lines) : none);
    if (!done) return fail(done.error());
    if (format == "summary") {
        const auto nexus = nexus_bytes(*opened);
        if (!nexus) return fail(nexus.error());
        const auto sums = added_up(*opened);
        if (!sums) return fail(sums.error());
        listing::print_dpu_info(*out, *opened, *sums, nexus->bytes(), listing::LineFormat::text);
    }
    if (const ExitStatus status = out->close(); status != decoded) return status;
    const bool cut = opened->is_cut(*done);
    if (cut) say("error", opened->cut_text());
    const dpu::Totals& t = done->totals;
    if (!DpuInput::has_content(t)) say("error", "nothing decoded: " + opened->why_nothing());
    const analysis::DpuSaid said = opened->said(opened->setup(), *done);
    const std::vector<analysis::DpuFinding> losses = analysis::dpu_losses(said);
    for (const analysis::DpuFinding& loss : losses)
        if (loss.kind != analysis::DpuFinding::Kind::cut) say("warning", loss.what);
    if (const std::string left_out = analysis::dpu_left_out(said); !left_out.empty()) say("note", left_out);
    if (t.wide != 0) say("warning", listing::wide_differences(t));
    if (cut) return unreadable;
    const bool lost = !losses.empty() || t.doubtful != 0 || t.wide != 0;
    if (strict && lost)
        say("error", fmt::format("--strict: something was lost or is doubtful; waymark dpu health {} shows what",
                                 shell_file(input.capture)));
    return !DpuInput::has_content(t) || (strict && lost) ? nothing : decoded;
}

}  // namespace waymark::cli
