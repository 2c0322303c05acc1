/// `waymark dpu`: the costs in a trace of the Debug and Profiling Unit, by task, function or code.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "../commands.h"
#include "../options.h"
#include "../views.h"
#include "input.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/doctor/dpu_view.h"
#include "waymark/listing/dpu_report.h"

namespace waymark::cli {

namespace {

using analysis::DpuTable;
using doctor::DpuView;

struct DpuOptions {
    InputOptions input;  ///< capture, images, folders and output
    std::string format = "text", counter;
    std::vector<std::string> ranges;
    std::optional<std::uint64_t> limit;  ///< maximum rows in text; nullopt: the view's default
    bool strict = false;
    Option format_option;

    void add_to(const Command& command, bool rows) {
        command.option("CAPTURE", input.capture);
        format_option = command.option("--format", format);
        command.option("--output", input.output);
        command.option("--image", input.images);
        input.add_folders_to(command);
        command.flag("--strict", strict);
        if (!rows) return;
        command.option("--counter", counter);
        command.option("--limit", limit);
    }
};

/// Ends a report. `adds_up`: the costs of the shown rows add up to the total; `headed`: losses and doubts were printed
/// above them.
ExitStatus finish(const DpuOptions& options, const DpuView& a, Output& out, bool adds_up, bool headed) {
    if (out.close() != cli::decoded) return unreadable;
    warn(a.input());
    for (const std::string& problem : a.problems()) say("warning", problem);
    // Losses of a buffer that was cut are reported before the cut itself.
    const bool cut = a.is_cut();
    if (cut) say("error", a.input().cut_text());
    if (!a.has_content()) {
        say("error", fmt::format("{}: nothing was decoded: {}", options.input.capture, a.input().why_nothing()));
        return cut ? unreadable : nothing;
    }
    if (!adds_up)
        say("error",
            "the rows do not add up to the counters' own values: damaged trace that looks like readings, or registers "
            "of another run; 'waymark packets' shows the entries");
    if (!headed)
        for (const auto& sentences : {a.losses(), a.doubts()})
            for (const std::string& each : sentences) say("warning", each);
    if (cut || !adds_up) return cut ? unreadable : nothing;
    if (!options.strict || !answers::completeness(analysis::dpu_account(a.said(), a.costs())).strict)
        return cli::decoded;
    for (const std::string& each : a.losses()) say("error", "--strict: " + each);
    for (const std::string& each : a.doubts()) say("error", "--strict: " + each);
    return nothing;
}

Result<std::unique_ptr<DpuView>> open_view(const DpuOptions& options, std::string_view view) {
    return DpuView::make({options.input, options.counter, options.ranges}, view);
}

ExitStatus run_view(const DpuOptions& options, const std::string& view) {
    const auto made = open_view(options, view);
    if (!made) return fail(made.error());
    const DpuView& a = **made;
    auto out = Output::open(options.input.output, {options.input.capture});
    if (!out) return fail(out.error());
    const listing::LineFormat format = listing::format_of(options.format);
    const listing::DpuReport report = listing::dpu_report(a, view, format, options.limit);
    const DpuTable& first = report.parts.front();
    if (format == listing::LineFormat::tsv) {
        say("note", dpu::layout_note);
        answers::Answers run;
        if (a.has_content()) run.account = analysis::dpu_account(a.said(), a.costs());
        say_head(run);
        if (view == "report")
            say("note",
                "tsv contains only the tasks; 'waymark dpu functions' and the other views have separate tables");
    }
    listing::print_dpu_report(*out, a, report, format);
    if (format == listing::LineFormat::tsv && a.has_content() && first.table.empty() && !report.has_only_rows())
        say("note", first.empty);
    const ExitStatus status = finish(options, a, *out, report.adds_up(a), format == listing::LineFormat::text);
    // The status of waymark loops in the same situation.
    if (status != cli::decoded || !report.has_only_rows() || !first.table.empty()) return status;
    say("error", fmt::format("{}: {}", options.input.capture, first.empty));
    return nothing;
}

/// Prints one line for each path: names from the root, and the count.
ExitStatus run_folded(const DpuOptions& options) {
    if (options.format_option->count() != 0)
        return fail({Errc::usage, "--folded is a format of its own; leave out --format"});
    if (options.limit) return fail({Errc::usage, "--folded has every path; leave out --limit"});
    const auto made = open_view(options, "paths");
    if (!made) return fail(made.error());
    const DpuView& a = **made;
    if (a.has_content() && a.input().mode() != dpu::TraceMode::flow) {
        say("error", "there are no paths: " + a.tables().needs("FLOW", "flow"));
        return nothing;
    }
    auto out = Output::open(options.input.output, {options.input.capture});
    if (!out) return fail(out.error());
    say("note", dpu::layout_note);
    if (a.has_content()) listing::print_dpu_paths(*out, a);
    const auto sum = a.tables().paths(1).sum;
    return finish(options, a, *out, !sum || a.reconciles(*sum), false);
}

}  // namespace

Run add_dpu_program(const Command& dpu);
Run add_dpu_run(const Command& dpu);

Run add_dpu(const Command& app) {
    const Command dpu = app.add("dpu");
    std::vector<std::function<Run(const Command&)>> adds;
    // Rows of the first ones are sorted by a counter, and limited.
    constexpr std::array views{"report",   "tasks", "functions", "paths",  "interrupts", "ranges",
                               "timeline", "loops", "data",      "ratios", "health"};
    constexpr std::size_t with_rows = 7;
    for (std::size_t i = 0; i < views.size(); ++i)
        adds.emplace_back([view = std::string(views[i]), rows = i < with_rows](const Command& below) -> Run {
            auto options = std::make_shared<DpuOptions>();
            const Command command = below.add(view);
            options->add_to(command, rows);
            auto folded = std::make_shared<bool>(false);
            if (view == "paths") command.flag("--folded", *folded);
            if (view == "ranges") command.option("--range", options->ranges);
            return [options, folded, view] { return *folded ? run_folded(*options) : run_view(*options, view); };
        });
    adds.emplace_back(add_dpu_program);
    adds.emplace_back(add_dpu_run);
    return add_below(dpu, adds);
}

}  // namespace waymark::cli
