/// `waymark dpu`: what a trace of the Debug and Profiling Unit cost, and whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <utility>

#include "../commands.h"
#include "../options.h"
#include "../table.h"
#include "../views.h"
#include "input.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/dpu_tables.h"
#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/doctor/dpu.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::cli {

namespace {

using analysis::DpuCode;
using analysis::DpuCosts;
using analysis::DpuCounts;
using analysis::DpuTable;
using nlohmann::ordered_json;

/// What a recording says of itself where the program came to its own end.
constexpr std::string_view whole_run = "exit";

struct DpuOptions {
    std::string capture, format = "text", output, counter;
    std::vector<std::string> images, ranges;
    InputOptions folders;                ///< --symfs and --debug-dir of it
    std::optional<std::uint64_t> limit;  ///< rows for reading; none: as the view likes
    bool strict = false;
    CLI::Option* format_option = nullptr;

    void add_to(CLI::App& command, bool rows) {
        command.add_option("CAPTURE", capture, "Folder with a dpu.ini, as 'waymark record --unit dpu' writes it")
            ->required();
        format_option = command.add_option("--format", format, "text: for reading; tsv, json: for programs")
                            ->type_name("FORMAT")
                            ->transform(one_of({"text", "tsv", "json"}))
                            ->capture_default_str();
        command.add_option("-o,--output", output, "Write to this file")->type_name("FILE");
        command
            .add_option("--image", images,
                        "One more program with names for addresses, as FILE or FILE@LOAD_BIAS. May be repeated")
            ->type_name("FILE")
            ->take_all();
        folders.add_folders_to(command);
        command.add_flag("--strict", strict, "Exit with status 1 if trace was lost or a figure is doubtful");
        if (!rows) return;
        command.add_option("--counter", counter, "The counter rows are sorted by, such as A0 or CYCLES. Default: A0")
            ->type_name("NAME");
        command
            .add_option("--limit", limit,
                        "Maximum number of rows of a table; 0: all. Default: 50, in the report 15. tsv and json "
                        "contain all rows")
            ->type_name("N")
            ->check(not_negative());
    }
};

ordered_json trust_json(const answers::Trust& trust) {
    return {{"exact", trust.exact}, {"estimated", trust.estimated}, {"not_known", trust.not_known}};
}

std::vector<std::string> sentences(const std::vector<analysis::DpuFinding>& findings) {
    std::vector<std::string> out;
    for (const analysis::DpuFinding& each : findings) out.push_back(each.what);
    return out;
}

/// A capture, decoded and added up.
class DpuAnswer {
public:
    static Result<std::unique_ptr<DpuAnswer>> make(const DpuOptions& options, std::string_view view) {
        WM_ASSIGN_OR_RETURN(DpuInput input, DpuInput::open(options.capture));
        std::unique_ptr<DpuAnswer> out(new DpuAnswer(std::move(input), options));
        WM_RETURN_IF_ERROR(out->prepare());
        const DpuInput& in = out->input_;
        WM_ASSIGN_OR_RETURN(doctor::DpuSums sums,
                            doctor::add_up(in.trace(), in.trace_bytes(), out->setup_, out->code_));
        out->sums_ = std::move(sums);
        out->said_ = in.said(out->setup_, out->sums_.decoded);
        out->tables_.emplace(*out->sums_.costs, out->code_, out->said_, out->sorted_by_);
        out->trust_ = analysis::trust_in(view == "ratios" ? "report" : view, out->said_, *out->sums_.costs);
        return out;
    }

    [[nodiscard]] const DpuInput& input() const { return input_; }
    [[nodiscard]] const DpuCosts& costs() const { return *sums_.costs; }
    [[nodiscard]] const analysis::DpuTables& tables() const { return *tables_; }
    [[nodiscard]] const analysis::DpuSaid& said() const { return said_; }
    [[nodiscard]] const std::vector<std::string>& range_names() const { return range_names_; }
    [[nodiscard]] const analysis::DpuSetup& setup() const { return setup_; }
    [[nodiscard]] const answers::Trust& trust() const { return trust_; }

    [[nodiscard]] unsigned sorted_by() const { return sorted_by_; }
    /// There is something besides padding.
    [[nodiscard]] bool has_content() const { return DpuInput::has_content(sums_.decoded.totals); }

    // ---- above and below every table

    void print_head(Output& out) const {
        out.print("capture   {}\n", input_.capture().path.string());
        out.print("          {}\n", dpu::layout_note);
        if (const std::string program = input_.parameter("program"); !program.empty())
            out.print("program   {}\n", program);
        if (const std::string ended = input_.parameter("ended"); !ended.empty() && ended != whole_run)
            out.print("ended     {}\n", ended);
        std::vector<std::string> names;
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (const std::string name = input_.event_name(c); name == dpu::counter_name(c))
                names.push_back(name + " (what it counts is not known)");
            else if (name != "–")
                names.push_back(
                    fmt::format("{} {}{}", dpu::counter_name(c), name, input_.is_driven(c) ? "" : " (not connected)"));
        out.print("mode      {}\n", input_.mode() ? input_.mode_text() : "not known: DP_TC is missing");
        out.print("counters  {}\n",
                  names.empty() ? "none: event set 0 counts nothing" : fmt::format("{}", fmt::join(names, ", ")));
        if (!has_content()) return;
        if (const std::string how = input_.parameter("cycles"); !how.empty()) out.print("cycles    {}\n", how);
        if (sums_.costs->knows_time())
            out.print("time      {} in {}\n", counted(sums_.costs->time(), "cycle"),
                      counted(sums_.costs->readings() + 1, "interval"));
        else
            out.print(
                "time      no counter counts CYCLES: places in time are numbers of readings, and there are no rates\n");
        const auto troubles = losses();
        if (troubles.empty()) out.write("lost      nothing\n");
        for (const std::string& trouble : troubles) out.print("lost      {}\n", trouble);
        for (const std::string& doubt : doubts()) out.print("doubtful  {}\n", doubt);
        for (const std::string& line : answers::trust_lines(trust_)) out.print("{}\n", line);
    }
    /// What there is but cannot be so, or hardly.
    [[nodiscard]] std::vector<std::string> doubts() const {
        return sentences(analysis::dpu_doubts(*sums_.costs, said_, sorted_by_));
    }
    [[nodiscard]] std::vector<std::string> losses() const {
        std::vector<std::string> out = sentences(analysis::dpu_losses(said_));
        if (input_.parameter("ended") == record::limited_run)
            out.push_back(fmt::format("the recording ended {}", record::limited_run));
        return out;
    }
    [[nodiscard]] bool reconciles(const DpuCounts& rows) const {
        const auto all = sums_.costs->reconciled(rows);
        return std::all_of(all.begin(), all.end(), [](const auto& r) { return r.residual() == 0; });
    }
    void print_reconciliation(Output& out, const DpuCounts& rows) const {
        if (counters_.empty()) return;
        const auto all = sums_.costs->reconciled(rows);
        if (std::none_of(counters_.begin(), counters_.end(), [&](unsigned c) { return all[c].from && all[c].to; })) {
            out.write("\nnot reconciled: the counters' first or last values are not known\n");
            return;
        }
        out.write(reconciles(rows)
                      ? "\nreconciled: all rows add up to what the counters say (modulo 2^31, as they count)\n"
                      : "\nNOT reconciled: the rows do not add up to what the counters say\n");
        print_text(out, tables_->reconciliation(rows), 0, "  ");
    }
    [[nodiscard]] ordered_json json_head() const {
        ordered_json events = ordered_json::object();
        for (const unsigned c : counters_) events[std::string(dpu::counter_name(c))] = input_.event_name(c);
        return {{"capture", input_.capture().path.string()},
                {"layout", dpu::layout_name},
                {"layout_note", dpu::layout_note},
                {"program", input_.parameter("program")},
                {"mode", input_.mode() ? ordered_json(input_.mode_text()) : ordered_json()},
                {"counters", events},
                {"cycles", input_.parameter("cycles")},
                {"ended", input_.parameter("ended")},
                {"nothing_decoded", has_content() ? std::string() : input_.why_nothing()},
                {"time", has_content() ? ordered_json(sums_.costs->time()) : ordered_json()},
                {"time_in", sums_.costs->knows_time() ? "cycles" : "readings"},
                {"lost", losses()},
                {"doubtful", has_content() ? doubts() : std::vector<std::string>()},
                {"trust", trust_json(has_content() ? trust_ : answers::Trust())}};
    }

    /// `adds_up`: the rows that were shown do.
    ExitStatus finish(Output& out, bool adds_up) const {
        if (out.close() != cli::decoded) return unreadable;
        warn(input_);
        for (const std::string& problem : problems_) say("warning", problem);
        // A buffer that is cut goes before what it is cut to.
        const bool cut = input_.is_cut(sums_.decoded);
        if (cut) say("error", input_.cut_text());
        if (!has_content()) {
            say("error", fmt::format("{}: nothing was decoded: {}", options_.capture, input_.why_nothing()));
            return cut ? unreadable : nothing;
        }
        if (!adds_up)
            say("error",
                "the rows do not add up to what the counters say: damaged trace that looks like readings, or "
                "registers of another run; 'waymark packets' shows the entries");
        if (cut || !adds_up) return cut ? unreadable : nothing;
        if (!options_.strict || (losses().empty() && doubts().empty())) return cli::decoded;
        for (const std::string& each : losses()) say("error", "--strict: " + each);
        for (const std::string& each : doubts()) say("error", "--strict: " + each);
        return nothing;
    }

private:
    DpuAnswer(DpuInput input, const DpuOptions& options) : input_(std::move(input)), options_(options) {}

    waymark::Status prepare() {
        WM_ASSIGN_OR_RETURN(image::FileSearch files, options_.folders.file_search());
        code_.look_in(std::move(files));
        problems_ = input_.name_code(code_);
        for (const std::string& text : options_.images) WM_RETURN_IF_ERROR(add_image(code_, text));
        setup_ = input_.setup();
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (input_.event(c) != dpu::EventWire::none) counters_.push_back(c);
        WM_RETURN_IF_ERROR(choose_counter());
        for (const std::string& text : options_.ranges) WM_RETURN_IF_ERROR(add_range(text));
        return Nothing{};
    }
    waymark::Status choose_counter() {
        if (!counters_.empty()) sorted_by_ = counters_.front();
        if (options_.counter.empty()) return Nothing{};
        const auto same = [&](std::string_view name) {
            return std::equal(name.begin(), name.end(), options_.counter.begin(), options_.counter.end(),
                              [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); });
        };
        std::vector<std::string> names, alike;
        unsigned only_alike = 0;
        for (const unsigned c : counters_) {
            const std::string full = input_.event_name(c);
            const auto wire = input_.event(c);
            if (same(dpu::counter_name(c)) || same(full)) {
                sorted_by_ = c;
                return Nothing{};
            }
            if (wire && same(name(*wire))) {
                alike.emplace_back(dpu::counter_name(c));
                only_alike = c;
            }
            names.push_back(full.starts_with(dpu::counter_name(c)) ? full
                                                                   : fmt::format("{} {}", dpu::counter_name(c), full));
        }
        if (alike.size() == 1) {
            sorted_by_ = only_alike;
            return Nothing{};
        }
        if (!alike.empty())
            return Error{Errc::usage, fmt::format("--counter {}: {} count that; name one of them", options_.counter,
                                                  fmt::join(alike, " and "))};
        return Error{Errc::usage, fmt::format("--counter {}: no counter counts that; there are {}", options_.counter,
                                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
    }
    /// `0x8000-0x9000` or `main`: a function, from its first byte to the next symbol.
    waymark::Status add_range(const std::string& text) {
        const auto dash = text.find('-');
        std::uint64_t from = 0, to = 0;
        if (dash != text.npos && wire::scan_number(text.substr(0, dash), from) &&
            wire::scan_number(text.substr(dash + 1), to)) {
            if (to <= from || to > 0xffffffff)
                return Error{Errc::usage, fmt::format("--range {}: the second address is not after the first", text)};
        } else if (const auto places = code_.places_of(text); !places.empty()) {
            // Libraries may have functions of one name, and lie at one address one after the other: each is a range.
            for (const DpuCode::Place& place : places) {
                const auto whole = code_.function(place);
                constexpr std::uint32_t longest = 1 << 20;
                std::uint32_t end = place.address + 2;
                while (end < place.address + longest && code_.function(DpuCode::Place{end, place.layer}) == whole)
                    end += 2;
                const std::size_t image = places.size() == 1 && place.layer == 0 ? DpuCode::no_image : whole.image;
                setup_.ranges.push_back({place.address, end, image});
                range_names_.push_back(text);
                if (places.size() > 1 && whole.image != DpuCode::no_image)
                    range_names_.back() += fmt::format(" in {}", code_.images()[whole.image].name);
            }
            return Nothing{};
        } else {
            return Error{Errc::usage,
                         fmt::format("--range {}: expected addresses such as 0x8000-0x9000, or a function of "
                                     "the program",
                                     text)};
        }
        range_names_.push_back(text);
        setup_.ranges.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
        return Nothing{};
    }

    DpuInput input_;
    const DpuOptions& options_;
    DpuCode code_;
    std::vector<std::string> problems_, range_names_;
    analysis::DpuSetup setup_;
    doctor::DpuSums sums_;
    std::vector<unsigned> counters_;
    unsigned sorted_by_ = 0;
    analysis::DpuSaid said_;
    std::optional<analysis::DpuTables> tables_;
    answers::Trust trust_;
};

/// Lanes: who had the core, a column for an equal part of the time. Rows of the table are exact, these are a picture.
void print_lanes(const DpuAnswer& a, Output& out) {
    constexpr std::size_t columns = 64;
    const std::uint64_t all = std::max<std::uint64_t>(a.costs().time(), 1);
    std::map<std::pair<bool, std::uint8_t>, std::array<double, columns>> lanes;
    for (const analysis::DpuStay& s : a.costs().stays()) {
        auto& lane = lanes.try_emplace({s.context.supervisor, s.context.id}).first->second;
        for (std::size_t c = static_cast<std::size_t>(s.begin * columns / all); c < columns; ++c) {
            const double first = static_cast<double>(all) * static_cast<double>(c) / columns;
            const double last = static_cast<double>(all) * static_cast<double>(c + 1) / columns;
            if (first >= static_cast<double>(s.end)) break;
            lane[c] += (std::min(last, static_cast<double>(s.end)) - std::max(first, static_cast<double>(s.begin))) /
                       (last - first);
        }
    }
    std::size_t width = 0;
    for (const auto& [who, lane] : lanes)
        width = std::max(width, analysis::context_text(a.said(), {who.first, who.second}).size());
    constexpr std::array<std::string_view, 5> marks{"·", "░", "▒", "▓", "█"};
    for (const auto& [who, lane] : lanes) {
        std::string text;
        for (const double part : lane) {
            const auto level =
                part <= 0 ? std::size_t{0} : std::min<std::size_t>(1 + static_cast<std::size_t>(part * 4), 4);
            text += marks[level];
        }
        out.print("  {:<{}}  {}\n", analysis::context_text(a.said(), {who.first, who.second}), width, text);
    }
    out.print("  {:<{}}  0{:>{}}\n", "", width, grouped(all), columns - 1);
}

// ---- commands

struct DpuView {
    const char *name, *title, *help, *footer;
    bool rows;  ///< sorted by a counter, and limited
};

/// The tables of a view, `limit` rows of each for reading; 0: all.
std::vector<DpuTable> parts_of(const DpuAnswer& a, const std::string& view, std::uint64_t limit,
                               std::vector<std::string>& notes) {
    const DpuCosts& costs = a.costs();
    const analysis::DpuTables& tables = a.tables();
    const auto most = static_cast<std::size_t>(limit);
    const bool report = view == "report", flow = a.input().mode() == dpu::TraceMode::flow;
    std::vector<DpuTable> out;
    if (report || view == "tasks") out.push_back(tables.tasks(most));
    if (report || view == "functions") {
        out.push_back(tables.functions(most));
        if (flow && !report && costs.returns_without_call() != 0)
            notes.push_back(
                fmt::format("{} led to where no call is open", counted(costs.returns_without_call(), "return")));
    }
    if (view == "paths") out.push_back(tables.paths(most));
    if (report || view == "interrupts") out.push_back(tables.interrupts(most));
    if (view == "ranges") {
        out.push_back(tables.ranges(a.range_names(), a.setup().ranges));
        if (a.range_names().empty()) notes.emplace_back("no range given: --range 0x8000-0x9000 or --range FUNCTION");
        if (!out.back().sum) notes.emplace_back("ranges overlap, and what lies in two is in both rows");
        if (!costs.knows_stays()) notes.push_back(tables.needs("FLOW", "flow"));
    }
    if (view == "timeline") {
        out.push_back(tables.timeline(most));
        if (!out.back().sum && costs.knows_stays())
            notes.emplace_back("the rows do not hold all counts: 'waymark dpu tasks' shows the rest in angle brackets");
    }
    if (report || view == "loops") {
        out.push_back(tables.loops(most));
        if (view == "loops" && !a.trust().not_known.empty()) out.back().empty = a.trust().not_known;
    }
    if (view == "ratios") {
        out.push_back(tables.ratios(false));
        if (flow) out.push_back(tables.ratios(true));
    }
    if (report || view == "data") out.push_back(tables.data(most));
    if (view == "health") out.push_back(tables.health());
    return out;
}

void print_parts(const DpuAnswer& a, Output& out, const std::string& view, const std::vector<DpuTable>& parts,
                 const std::vector<std::string>& notes) {
    a.print_head(out);
    if (!a.has_content()) {
        out.print("\nnothing was decoded: {}\n", a.input().why_nothing());
        return;
    }
    const bool report = view == "report";
    for (const DpuTable& part : parts) {
        if (part.table.empty()) {
            // A report omits what this mode does not record.
            if (!report && view != "loops") out.print("\n{}\n", part.empty);
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
            a.print_reconciliation(out, *part.sum);
            break;  // of a report the tasks; its functions add up to the same, or finish() says so
        }
}

ExitStatus run_view(const DpuOptions& options, const std::string& view) {
    const auto made = DpuAnswer::make(options, view);
    if (!made) return fail(made.error());
    const DpuAnswer& a = **made;
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    const bool text = options.format == "text", report = view == "report";
    constexpr std::uint64_t of_report = 15, of_view = 50;
    // Views without the option show all.
    const std::uint64_t usual = report ? of_report : view == "loops" || view == "data" ? 0 : of_view;
    std::vector<std::string> notes;
    const std::vector<DpuTable> parts = parts_of(a, view, text ? options.limit.value_or(usual) : 0, notes);
    if (options.format == "json") {
        ordered_json json = a.json_head();
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
        if (report)
            say("note", "tsv holds the tasks alone; 'waymark dpu functions' and the other views have their own");
        DpuTable first = parts.front();
        if (!a.has_content()) first.table.rows.clear();
        print_tsv(*out, first.table);
        if (a.has_content() && first.table.empty() && view != "loops") say("note", first.empty);
    } else {
        print_parts(a, *out, view, parts, notes);
    }
    const ExitStatus status = a.finish(*out, std::all_of(parts.begin(), parts.end(), [&](const DpuTable& part) {
        return !part.sum || a.reconciles(*part.sum);
    }));
    // As waymark loops does.
    if (status != cli::decoded || view != "loops" || !parts.front().table.empty()) return status;
    say("error", fmt::format("{}: {}", options.capture, parts.front().empty));
    return nothing;
}

/// One line for each path: names from the root, and the count.
ExitStatus run_folded(const DpuOptions& options) {
    if (options.format_option->count() != 0)
        return fail({Errc::usage, "--folded is a format of its own; leave out --format"});
    if (options.limit) return fail({Errc::usage, "--folded has every path; leave out --limit"});
    const auto made = DpuAnswer::make(options, "paths");
    if (!made) return fail(made.error());
    const DpuAnswer& a = **made;
    if (a.has_content() && a.input().mode() != dpu::TraceMode::flow) {
        say("error", "there are no paths: " + a.tables().needs("FLOW", "flow"));
        return nothing;
    }
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    say("note", dpu::layout_note);
    if (a.has_content())
        for (std::size_t i = 1; i < a.costs().paths().size(); ++i)
            if (const std::uint64_t n = a.costs().paths()[i].self[a.sorted_by()]; n != 0)
                out->print("{} {}\n", a.tables().path_text(i), n);
    const auto sum = a.tables().paths(1).sum;
    return a.finish(*out, !sum || a.reconciles(*sum));
}

}  // namespace

Run add_dpu_program(CLI::App& dpu);

Run add_dpu(CLI::App& app) {
    CLI::App& dpu = *app.add_subcommand("dpu", "Counters and trace of a Debug and Profiling Unit (DPU)");
    dpu.require_subcommand(1);
    dpu.footer(
        "Captures are folders with a dpu.ini. Every view says which of its figures are exact, which estimated and "
        "which\n"
        "the trace mode does not record; if its rows cover everything that was counted, it shows that they add up.\n"
        "Words of the trace have layout WL-1: flags, entries and event sets as Waymark defines them, for the "
        "published\n"
        "description of the unit omits them.\n");
    auto commands = std::make_shared<std::vector<std::pair<CLI::App*, Run>>>();
    constexpr const char* status =
        "\nExit status: 0 there is an answer; 1 there is no entry, the rows do not add up, or something was lost "
        "or is\n"
        "doubtful under --strict; 2 usage; 3 the capture cannot be read completely, or the output cannot be written.\n";
    const std::array<DpuView, 10> views{{
        {"report", "Tasks, functions, interrupts, loops and user data at a glance", "", "  waymark dpu report DIR\n",
         true},
        {"tasks", "Cost of each task in user and supervisor mode, and of each period in which it ran (stay)", "",
         "A row is a task ID in user or supervisor state. A stay is one uninterrupted time on the core. Rows in angle\n"
         "brackets hold what belongs to no task for certain, such as intervals in which trace was lost.\n\n"
         "  waymark dpu tasks DIR --counter STALL_ALL\n",
         true},
        {"functions", "Cost of each function, without and with its callees (mode flow)", "",
         "Readings come with each call, return and interrupt; what lies between two of them is the cost of the "
         "function\n"
         "the first led to. The trace has no jumps: a function that is seen to run after one, as after a tail call\n"
         "or through the procedure linkage table (puts@plt), counts as called. The cost up to the next call or return\n"
         "is its own where the program leads there without a condition, and else that of the function before (column\n"
         "crossed of tsv). Of a function that calls itself, outermost calls alone have a cost with callees.\n\n"
         "  waymark dpu "
         "functions DIR --limit 0\n",
         true},
        {"paths", "Cost of each call path (mode flow)", "",
         "--folded writes lines for flame graphs, of the counter --counter names.\n\n"
         "  waymark dpu paths DIR --folded --counter DC_MISS > stacks.txt\n",
         true},
        {"interrupts", "Cost of each interrupt and system call, from entry to return", "", "", true},
        {"ranges", "Cost of address ranges", "", "  waymark dpu ranges DIR --range main --range 0x10400-0x10800\n",
         true},
        {"timeline", "Which task ran when, with the rates of the counters", "", "", true},
        {"loops", "Loops: where, how often, how long (mode compressed)", "", "", false},
        {"data", "What the program wrote to DP_TD", "", "", false},
        {"ratios", "Miss rates, load, stall shares, use of the bus: figures derived from the counters", "",
         "A figure is there where the counters count all that it takes: load = 1 - WAIT / CYCLES, cycles per set =\n"
         "CYCLES / VLES, miss rates = MISS / (HIT + MISS), stalled = STALL / CYCLES, cycles lost per DC miss =\n"
         "STALL_DATA / DC_MISS, bus utilisation = BUS_BUSY / (BUS_BUSY + BUS_WAIT + BUS_IDLE). Several runs with\n"
         "different events together: waymark report or waymark profile with all of them.\n\n"
         "  waymark dpu ratios DIR\n",
         false},
    }};
    const auto add_view = [&](const DpuView& view) {
        auto options = std::make_shared<DpuOptions>();
        CLI::App& command = *dpu.add_subcommand(view.name, view.title);
        options->add_to(command, view.rows);
        command.footer(std::string(view.footer) + status);
        auto folded = std::make_shared<bool>(false);
        if (std::string_view(view.name) == "paths")
            command.add_flag("--folded", *folded, "Lines for flame graphs: names from the root, and the count");
        if (std::string_view(view.name) == "ranges")
            command.add_option("--range", options->ranges, "Addresses FROM-TO, or a function. May be repeated")
                ->type_name("RANGE")
                ->take_all();
        commands->emplace_back(&command, [options, folded, name = std::string(view.name)] {
            return *folded ? run_folded(*options) : run_view(*options, name);
        });
    };
    for (const DpuView& view : views) add_view(view);
    add_view({"health", "Contents of the buffer: entries by kind, padding, gaps, losses", "", "", false});
    Run program = add_dpu_program(dpu);
    commands->emplace_back(dpu.get_subcommand("program"), std::move(program));
    return [commands] {
        for (const auto& [command, go] : *commands)
            if (command->parsed()) return go();
        return usage;
    };
}

}  // namespace waymark::cli
