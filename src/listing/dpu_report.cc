#include "waymark/listing/dpu_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "print.h"
#include "table_json.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/dpu_lanes.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"
#include "waymark/dpu/program_effects.h"
#include "waymark/dpu/registers.h"

namespace waymark::listing {

namespace {

using analysis::DpuCounts;
using analysis::DpuTable;
using doctor::DpuView;
using nlohmann::ordered_json;

ordered_json trust_json(const answers::Trust& trust) {
    return {{"exact", trust.exact}, {"estimated", trust.estimated}, {"not_known", trust.not_known}};
}

void print_head(const DpuView& a, TextSink& out) {
    print(out, "capture   {}\n", a.input().capture().path.string());
    print(out, "          {}\n", dpu::layout_note);
    if (const std::string program = a.input().parameter("program"); !program.empty())
        print(out, "program   {}\n", program);
    if (const std::string ended = a.input().parameter("ended"); !ended.empty() && ended != capture::whole_run)
        print(out, "ended     {}\n", ended);
    std::vector<std::string> names;
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (const std::string name = a.input().event_name(c); name == dpu::counter_name(c))
            names.push_back(name + " (its event is not known)");
        else if (name != "–")
            names.push_back(
                fmt::format("{} {}{}", dpu::counter_name(c), name, a.input().is_driven(c) ? "" : " (not connected)"));
    print(out, "mode      {}\n", a.input().mode() ? a.input().mode_text() : "not known: DP_TC is missing");
    print(out, "counters  {}\n",
          names.empty() ? "none: event set 0 counts nothing" : fmt::format("{}", fmt::join(names, ", ")));
    if (!a.has_content()) return;
    if (const std::string how = a.input().parameter("cycles"); !how.empty()) print(out, "cycles    {}\n", how);
    if (a.costs().knows_time())
        print(out, "time      {} in {}\n", counted(a.costs().time(), "cycle"),
              counted(a.costs().readings() + 1, "interval"));
    else
        print(out,
              "time      no counter counts CYCLES: places in time are numbers of readings, and there are no rates\n");
    print_account(out, analysis::dpu_account(a.said(), a.costs()), 10);
    const auto troubles = a.losses();
    if (troubles.empty()) out.write("lost      nothing\n");
    for (const std::string& trouble : troubles) print(out, "lost      {}\n", trouble);
    if (const std::string left_out = a.left_out(); !left_out.empty()) print(out, "left out  {}\n", left_out);
    for (const std::string& doubt : a.doubts()) print(out, "doubtful  {}\n", doubt);
    for (const std::string& line : answers::trust_lines(a.trust())) print(out, "{}\n", line);
}

void print_reconciliation(const DpuView& a, TextSink& out, const DpuCounts& rows) {
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

/// Rows of the table are exact; the lanes are a picture.
void print_lanes(const DpuView& a, TextSink& out) {
    const std::vector<analysis::DpuLane> lanes = analysis::dpu_lanes(a.costs(), a.said());
    std::size_t width = 0;
    for (const analysis::DpuLane& lane : lanes) width = std::max(width, lane.who.size());
    constexpr std::array<std::string_view, 5> marks{"·", "░", "▒", "▓", "█"};
    for (const analysis::DpuLane& lane : lanes) {
        std::string text;
        for (const double part : lane.parts)
            text +=
                marks[part <= 0 ? std::size_t{0} : std::min<std::size_t>(1 + static_cast<std::size_t>(part * 4), 4)];
        print(out, "  {:<{}}  {}\n", lane.who, width, text);
    }
    print(out, "  {:<{}}  0{:>{}}\n", "", width, grouped(std::max<std::uint64_t>(a.costs().time(), 1)),
          analysis::DpuLane::columns - 1);
}

void print_parts(const DpuView& a, TextSink& out, const DpuReport& shown) {
    print_head(a, out);
    if (!a.has_content()) {
        print(out, "\nnothing was decoded: {}\n", a.input().why_nothing());
        return;
    }
    const bool report = shown.view == "report";
    for (const DpuTable& part : shown.parts) {
        if (part.table.empty()) {
            // A report omits the parts that this mode does not record.
            if (!report && !shown.has_only_rows()) print(out, "\n{}\n", part.empty);
            continue;
        }
        print(out, "\n{}\n", part.table.note);
        if (shown.view == "timeline") print_lanes(a, out);
        print_text(out, part.table, 0, "  ");
        if (part.left_out != 0) print(out, "  … and {} more; --limit 0 shows all\n", grouped(part.left_out));
    }
    for (const std::string& note : shown.notes) print(out, "\n{}\n", note);
    for (const DpuTable& part : shown.parts)
        if (part.sum) {
            print_reconciliation(a, out, *part.sum);
            break;  // the report lists tasks; its functions add up to the same, or DpuReport::adds_up() says otherwise
        }
}

ordered_json report_json(const DpuView& a, const DpuReport& report) {
    ordered_json json = json_head(a);
    json["reconciled"] = ordered_json::array();
    for (const DpuTable& part : report.parts) {
        const std::string key = report.view == "report" ? part.table.note.substr(0, part.table.note.find(':')) : "rows";
        json[key] = a.has_content() ? to_json(part.table) : ordered_json::array();
        if (a.has_content() && part.sum && json["reconciled"].empty())
            json["reconciled"] = to_json(a.tables().reconciliation(*part.sum));
    }
    json["notes"] = report.notes;
    for (const DpuTable& part : report.parts)
        if (a.has_content() && part.table.empty()) json["notes"].push_back(part.empty);
    return json;
}

}  // namespace

bool DpuReport::adds_up(const DpuView& of) const {
    return std::ranges::all_of(parts, [&](const DpuTable& part) { return !part.sum || of.reconciles(*part.sum); });
}

bool DpuReport::has_only_rows() const { return view == "loops" || view == "data"; }

DpuReport dpu_report(const DpuView& of, const std::string& view, LineFormat format,
                     std::optional<std::uint64_t> limit) {
    DpuReport out{view, {}, {}};
    constexpr std::uint64_t of_report = 15, of_view = 50;
    // Views without the option --limit show all rows.
    const std::uint64_t usual = view == "report" ? of_report : out.has_only_rows() ? 0 : of_view;
    out.parts = of.parts(format == LineFormat::text ? limit.value_or(usual) : 0, out.notes);
    return out;
}

void print_dpu_report(TextSink& out, const DpuView& of, const DpuReport& report, LineFormat format) {
    if (format == LineFormat::text) return print_parts(of, out, report);
    if (format == LineFormat::json) return out.write(json_text(report_json(of, report)) + "\n");
    answers::Table first = report.parts.front().table;
    if (!of.has_content()) first.rows.clear();
    print_tsv(out, first);
}

void print_dpu_paths(TextSink& out, const DpuView& of) {
    for (std::size_t i = 1; i < of.costs().paths().size(); ++i)
        if (const std::uint64_t n = of.costs().paths()[i].self[of.sorted_by()]; n != 0)
            print(out, "{} {}\n", of.tables().path_text(i), n);
}

void print_dpu_program(TextSink& out, const dpu::RegisterProgram& program, const std::vector<dpu::Diagnosis>& wrong,
                       LineFormat format) {
    if (format == LineFormat::json) {
        ordered_json json{{"layout", dpu::layout_name}, {"layout_note", dpu::layout_note}};
        json["writes"] = ordered_json::array();
        for (const dpu::RegisterWrite& w : program) {
            ordered_json fields = ordered_json::object();
            dpu::Registers one;
            one.set(w.offset, w.value);
            for (const dpu::Field& f : one.fields(w.offset))
                if (!f.reserved() || f.value != 0) fields[std::string(f.name)] = f.value;
            json["writes"].push_back({{"line", w.line},
                                      {"cycle", w.cycle},
                                      {"register", dpu::Registers::find(w.offset)->name},
                                      {"value", fmt::format("{:#010x}", w.value)},
                                      {"fields", fields}});
        }
        json["does"] = effects_of(program);
        json["wrong"] = ordered_json::array();
        json["doubtful"] = ordered_json::array();
        for (const dpu::Diagnosis& d : wrong)
            json[d.doubtful ? "doubtful" : "wrong"].push_back(
                {{"line", d.line}, {"cycle", d.cycle}, {"message", d.message}});
        return out.write(json_text(json) + "\n");
    }
    print(out, "# {}\n", dpu::layout_note);
    out.write(to_text(program));
    out.write("\nwhat it does\n");
    for (const std::string& sentence : effects_of(program)) print(out, "  - {}\n", sentence);
    if (wrong.empty()) out.write("\nNothing wrong was found.\n");
    for (const bool doubtful : {false, true}) {
        if (std::none_of(wrong.begin(), wrong.end(), [&](const auto& d) { return d.doubtful == doubtful; })) continue;
        out.write(doubtful ? "\nwhat is doubtful\n" : "\nwhat is wrong\n");
        for (const dpu::Diagnosis& d : wrong)
            if (d.doubtful == doubtful)
                print(out, "  - {}{}\n", d.line == 0 ? std::string() : fmt::format("line {}: ", d.line), d.message);
    }
}

}  // namespace waymark::listing
