/// `waymark dpu`: the costs in a trace of the Debug and Profiling Unit, by task, function or code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "../commands.h"
#include "../options.h"
#include "../table.h"
#include "../views.h"
#include "input.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/dpu_lanes.h"
#include "waymark/core/numbers.h"
#include "waymark/doctor/dpu_view.h"

namespace waymark::cli {

namespace {

using analysis::DpuCounts;
using analysis::DpuTable;
using doctor::DpuView;
using nlohmann::ordered_json;

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

ordered_json trust_json(const answers::Trust& trust) {
    return {{"exact", trust.exact}, {"estimated", trust.estimated}, {"not_known", trust.not_known}};
}

// ---- head and end of every table

void print_head(const DpuView& a, Output& out) {
    out.print("capture   {}\n", a.input().capture().path.string());
    out.print("          {}\n", dpu::layout_note);
    if (const std::string program = a.input().parameter("program"); !program.empty())
        out.print("program   {}\n", program);
    if (const std::string ended = a.input().parameter("ended"); !ended.empty() && ended != capture::whole_run)
        out.print("ended     {}\n", ended);
    std::vector<std::string> names;
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (const std::string name = a.input().event_name(c); name == dpu::counter_name(c))
            names.push_back(name + " (its event is not known)");
        else if (name != "–")
            names.push_back(
                fmt::format("{} {}{}", dpu::counter_name(c), name, a.input().is_driven(c) ? "" : " (not connected)"));
    out.print("mode      {}\n", a.input().mode() ? a.input().mode_text() : "not known: DP_TC is missing");
    out.print("counters  {}\n",
              names.empty() ? "none: event set 0 counts nothing" : fmt::format("{}", fmt::join(names, ", ")));
    if (!a.has_content()) return;
    if (const std::string how = a.input().parameter("cycles"); !how.empty()) out.print("cycles    {}\n", how);
    if (a.costs().knows_time())
        out.print("time      {} in {}\n", counted(a.costs().time(), "cycle"),
                  counted(a.costs().readings() + 1, "interval"));
    else
        out.print(
            "time      no counter counts CYCLES: places in time are numbers of readings, and there are no rates\n");
    print_account(out, analysis::dpu_account(a.said(), a.costs()), 10);
    const auto troubles = a.losses();
    if (troubles.empty()) out.write("lost      nothing\n");
    for (const std::string& trouble : troubles) out.print("lost      {}\n", trouble);
    if (const std::string left_out = a.left_out(); !left_out.empty()) out.print("left out  {}\n", left_out);
    for (const std::string& doubt : a.doubts()) out.print("doubtful  {}\n", doubt);
    for (const std::string& line : answers::trust_lines(a.trust())) out.print("{}\n", line);
}

void print_reconciliation(const DpuView& a, Output& out, const DpuCounts& rows) {
    if (a.counters().empty()) return;
    const auto all = a.costs().reconciled(rows);
    if (std::none_of(a.counters().begin(), a.counters().end(), [&](unsigned c) { return all[c].from && all[c].to; })) {
        out.write("\nnot reconciled: the counters' first or last values are not known\n");
        return;
    }
    out.write(a.reconciles(rows)
                  ? "\nreconciled: all rows add up to what the counters say (modulo 2^31, as they count)\n"
                  : "\nNOT reconciled: the rows do not add up to what the counters say\n");
    print_text(out, a.tables().reconciliation(rows), 0, "  ");
}

ordered_json json_head(const DpuView& a) {
    ordered_json events = ordered_json::object();
    for (const unsigned c : a.counters()) events[std::string(dpu::counter_name(c))] = a.input().event_name(c);
    return {{"capture", a.input().capture().path.string()},
            {"layout", dpu::layout_name},
            {"layout_note", dpu::layout_note},
            {"program", a.input().parameter("program")},
            {"mode", a.input().mode() ? ordered_json(a.input().mode_text()) : ordered_json()},
            {"counters", events},
            {"cycles", a.input().parameter("cycles")},
            {"ended", a.input().parameter("ended")},
            {"nothing_decoded", a.has_content() ? std::string() : a.input().why_nothing()},
            {"time", a.has_content() ? ordered_json(a.costs().time()) : ordered_json()},
            {"time_in", a.costs().knows_time() ? "cycles" : "readings"},
            {"run", a.has_content() ? answers::account_sentence(analysis::dpu_account(a.said(), a.costs())) : ""},
            {"lost", a.losses()},
            {"left_out", a.has_content() ? a.left_out() : std::string()},
            {"doubtful", a.has_content() ? a.doubts() : std::vector<std::string>()},
            {"trust", trust_json(a.has_content() ? a.trust() : answers::Trust())}};
}

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

/// Rows of the table are exact; the lanes are a picture.
void print_lanes(const DpuView& a, Output& out) {
    const std::vector<analysis::DpuLane> lanes = analysis::dpu_lanes(a.costs(), a.said());
    std::size_t width = 0;
    for (const analysis::DpuLane& lane : lanes) width = std::max(width, lane.who.size());
    constexpr std::array<std::string_view, 5> marks{"·", "░", "▒", "▓", "█"};
    for (const analysis::DpuLane& lane : lanes) {
        std::string text;
        for (const double part : lane.parts)
            text +=
                marks[part <= 0 ? std::size_t{0} : std::min<std::size_t>(1 + static_cast<std::size_t>(part * 4), 4)];
        out.print("  {:<{}}  {}\n", lane.who, width, text);
    }
    out.print("  {:<{}}  0{:>{}}\n", "", width, grouped(std::max<std::uint64_t>(a.costs().time(), 1)),
              analysis::DpuLane::columns - 1);
}

Result<std::unique_ptr<DpuView>> open_view(const DpuOptions& options, std::string_view view) {
    return DpuView::make({options.input, options.counter, options.ranges}, view);
}

/// Views of data that the program or the unit itself reports. Without rows there is nothing to show, as in other
/// commands.
bool has_only_rows(std::string_view view) { return view == "loops" || view == "data"; }

// ---- commands

void print_parts(const DpuView& a, Output& out, const std::string& view, const std::vector<DpuTable>& parts,
                 const std::vector<std::string>& notes) {
    print_head(a, out);
    if (!a.has_content()) {
        out.print("\nnothing was decoded: {}\n", a.input().why_nothing());
        return;
    }
    const bool report = view == "report";
    for (const DpuTable& part : parts) {
        if (part.table.empty()) {
            // A report omits the parts that this mode does not record.
            if (!report && !has_only_rows(view)) out.print("\n{}\n", part.empty);
            continue;
        }
        out.print("\n{}\n", part.table.note);
        if (view == "timeline") print_lanes(a, out);
        print_text(out, part.table, 0, "  ");
        if (part.left_out != 0) out.print("  … and {} more; --limit 0 shows all\n", grouped(part.left_out));
    }
    for (const std::string& note : notes) out.print("\n{}\n", note);
    for (const DpuTable& part : parts)
        if (part.sum) {
            print_reconciliation(a, out, *part.sum);
            break;  // the report lists tasks; its functions add up to the same, or finish() says otherwise
        }
}

ExitStatus run_view(const DpuOptions& options, const std::string& view) {
    const auto made = open_view(options, view);
    if (!made) return fail(made.error());
    const DpuView& a = **made;
    auto out = Output::open(options.input.output, {options.input.capture});
    if (!out) return fail(out.error());
    const bool text = options.format == "text", report = view == "report";
    constexpr std::uint64_t of_report = 15, of_view = 50;
    // Views without the option --limit show all rows.
    const std::uint64_t usual = report ? of_report : has_only_rows(view) ? 0 : of_view;
    std::vector<std::string> notes;
    const std::vector<DpuTable> parts = a.parts(text ? options.limit.value_or(usual) : 0, notes);
    if (options.format == "json") {
        ordered_json json = json_head(a);
        json["reconciled"] = ordered_json::array();
        for (const DpuTable& part : parts) {
            const std::string key = report ? part.table.note.substr(0, part.table.note.find(':')) : "rows";
            json[key] = a.has_content() ? to_json(part.table) : ordered_json::array();
            if (a.has_content() && part.sum && json["reconciled"].empty())
                json["reconciled"] = to_json(a.tables().reconciliation(*part.sum));
        }
        json["notes"] = notes;
        for (const DpuTable& part : parts)
            if (a.has_content() && part.table.empty()) json["notes"].push_back(part.empty);
        out->write(json_text(json) + "\n");
    } else if (options.format == "tsv") {
        say("note", dpu::layout_note);
        answers::Answers run;
        if (a.has_content()) run.account = analysis::dpu_account(a.said(), a.costs());
        say_head(run);
        if (report)
            say("note",
                "tsv contains only the tasks; 'waymark dpu functions' and the other views have separate tables");
        DpuTable first = parts.front();
        if (!a.has_content()) first.table.rows.clear();
        print_tsv(*out, first.table);
        if (a.has_content() && first.table.empty() && !has_only_rows(view)) say("note", first.empty);
    } else {
        print_parts(a, *out, view, parts, notes);
    }
    const ExitStatus status =
        finish(options, a, *out,
               std::all_of(parts.begin(), parts.end(),
                           [&](const DpuTable& part) { return !part.sum || a.reconciles(*part.sum); }),
               text);
    // The status of waymark loops in the same situation.
    if (status != cli::decoded || !has_only_rows(view) || !parts.front().table.empty()) return status;
    say("error", fmt::format("{}: {}", options.input.capture, parts.front().empty));
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
    if (a.has_content())
        for (std::size_t i = 1; i < a.costs().paths().size(); ++i)
            if (const std::uint64_t n = a.costs().paths()[i].self[a.sorted_by()]; n != 0)
                out->print("{} {}\n", a.tables().path_text(i), n);
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
