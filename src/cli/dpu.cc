/// `waymark dpu`: what a trace of the Debug and Profiling Unit cost, and whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <utility>

#include "commands.h"
#include "dpu_answers.h"
#include "options.h"
#include "table.h"
#include "views.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_ratios.h"
#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/doctor/dpu.h"
#include "waymark/dpu/packet.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::cli {

namespace {

using analysis::add;
using analysis::DpuCode;
using analysis::DpuCosts;
using analysis::DpuCounts;
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
        command.add_flag("--strict", strict, "Exit with 1 if anything was lost or is doubtful");
        if (!rows) return;
        command.add_option("--counter", counter, "The counter rows are sorted by, such as A0 or CYCLES. Default: A0")
            ->type_name("NAME");
        command
            .add_option("--limit", limit,
                        "Show so many rows of a table; 0: all. Default: 50, in the report 15. tsv and json have all")
            ->type_name("N")
            ->check(not_negative());
    }
};

ordered_json trust_json(const answers::Trust& trust) {
    return {{"exact", trust.exact}, {"estimated", trust.estimated}, {"not_known", trust.not_known}};
}

/// An address as the tables of all commands have it.
Cell address_value(std::uint32_t address) {
    return Cell(fmt::format("{:#010x}", address), fmt::format("{:#x}", address));
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
        analysis::DpuSaid said;
        said.mode = in.mode();
        said.mode_text = in.mode_text();
        said.totals = out->decoded().totals;
        said.overwritten = out->decoded().overwritten;
        said.cut = out->decoded().cut;
        said.complete = out->setup_.complete;
        said.missing_bytes = out->input_.missing_bytes();
        said.rules = in.counter_rules();
        out->trust_ = analysis::trust_in(view == "ratios" ? "report" : view, said, *out->sums_.costs);
        return out;
    }

    [[nodiscard]] const DpuInput& input() const { return input_; }
    [[nodiscard]] const DpuCosts& costs() const { return *sums_.costs; }
    [[nodiscard]] const DpuCode& code() const { return code_; }
    [[nodiscard]] const pipeline::DpuDecoded& decoded() const { return sums_.decoded; }
    [[nodiscard]] const std::vector<std::string>& range_names() const { return range_names_; }
    [[nodiscard]] const analysis::DpuSetup& setup() const { return setup_; }
    [[nodiscard]] const answers::Trust& trust() const { return trust_; }

    /// Counters that count something, in order.
    [[nodiscard]] const std::vector<unsigned>& counters() const { return counters_; }
    [[nodiscard]] unsigned sorted_by() const { return sorted_by_; }
    [[nodiscard]] Cell count(const DpuCounts& counts, unsigned counter, bool known = true) const {
        return known && input_.is_driven(counter) ? Cell(counts[counter]) : Cell::none();
    }
    [[nodiscard]] Cell share(const DpuCounts& counts, bool known = true) const {
        return known ? Cell::share(counts[sorted_by_], sums_.costs->total()[sorted_by_]) : Cell::none();
    }
    /// There is something besides padding.
    [[nodiscard]] bool tells() const { return DpuInput::tells(sums_.decoded.totals); }
    void counter_columns(std::vector<Column>& columns, const std::string& suffix = {}) const {
        for (const unsigned c : counters_)
            columns.push_back(Column::count(input_.event_name(c) + suffix, input_.event_name(c) + suffix));
    }
    void counter_values(std::vector<Cell>& row, const DpuCounts& counts, bool known = true) const {
        for (const unsigned c : counters_) row.push_back(count(counts, c, known));
    }
    [[nodiscard]] std::string task_text(const dpu::Context& context) const {
        const std::string thread = input_.parameter(fmt::format("task{}", context.id));
        return analysis::to_text(context) + (thread.empty() ? "" : fmt::format(" ({})", thread));
    }
    [[nodiscard]] std::string owner_text(const analysis::DpuOwner& who) const {
        return who.is_context() ? task_text(who.context) : analysis::to_text(who);
    }
    [[nodiscard]] static std::string function_text(const DpuCode::Function& f) {
        return f.name.empty() ? fmt::format("{:#010x}", f.address) : f.name;
    }

    // ---- what stands around every table

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
        if (!tells()) return;
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
    [[nodiscard]] std::vector<std::string> doubts() const { return doubts_of(input_, sums_, counters_, sorted_by_); }
    [[nodiscard]] std::vector<std::string> losses() const {
        std::vector<std::string> out = doctor::losses(sums_, input_.missing_bytes(), setup_.complete);
        if (input_.parameter("ended") == record::limited_run)
            out.push_back(fmt::format("the recording ended {}", record::limited_run));
        return out;
    }
    /// Of a view whose rows, those that are not shown too, add up to `rows`.
    [[nodiscard]] Table reconciliation(const DpuCounts& rows) const {
        Table table{.columns = {Column::text("counter", "counter"), Column::text("event", "event"),
                                Column::count("sum", "sum of all rows"), Column::count("first", "first value"),
                                Column::count("last", "last value"), Column::count("counted", "first - last"),
                                Column::count("residual", "residual")}};
        const auto all = sums_.costs->reconciled(rows);
        const auto hex = [](const std::optional<std::uint32_t>& v) {
            return v ? Cell(fmt::format("{:#010x}", *v), *v) : Cell::none();
        };
        for (const unsigned c : counters_) {
            const bool known = all[c].from && all[c].to;
            table.add({Cell(std::string(dpu::counter_name(c))), Cell(input_.event_name(c)), Cell(all[c].sum),
                       hex(all[c].from), hex(all[c].to), known ? Cell(std::uint64_t{all[c].counted()}) : Cell::none(),
                       known ? Cell(all[c].residual()) : Cell::none()});
        }
        return table;
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
        print_text(out, reconciliation(rows), 0, "  ");
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
                {"nothing_decoded", tells() ? std::string() : input_.why_nothing()},
                {"time", tells() ? ordered_json(sums_.costs->time()) : ordered_json()},
                {"time_in", sums_.costs->knows_time() ? "cycles" : "readings"},
                {"lost", losses()},
                {"doubtful", tells() ? doubts() : std::vector<std::string>()},
                {"trust", trust_json(tells() ? trust_ : answers::Trust())}};
    }

    /// `adds_up`: the rows that were shown do.
    Status finish(Output& out, bool adds_up) const {
        if (out.close() != cli::decoded) return unreadable;
        warn(input_);
        for (const std::string& problem : problems_) say("warning", problem);
        // A buffer that is cut goes before what it is cut to.
        const bool cut = input_.is_cut(sums_.decoded);
        if (cut) say("error", input_.cut_text());
        if (!tells()) {
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
    answers::Trust trust_;
};

// ---- views

/// Events per 1000 cycles.
Cell rate(const DpuAnswer& a, const DpuCounts& counts, unsigned counter) {
    const auto cycles = a.setup().cycles;
    if (!cycles || counts[*cycles] == 0 || !a.input().is_driven(counter)) return {};
    const double value = 1000.0 * static_cast<double>(counts[counter]) / static_cast<double>(counts[*cycles]);
    return {decimal_text(value), value};
}

Table tasks(const DpuAnswer& a) {
    const unsigned key = a.sorted_by();
    const std::string name = a.input().event_name(key);
    std::vector<Column> columns{Column::text("task", "task"), Column::count("stays", "stays"),
                                Column::real("share", "share")};
    a.counter_columns(columns);
    columns.insert(columns.end(),
                   {Column::real("mean " + name, "mean stay"), Column::count("least " + name, "least"),
                    Column::count("most " + name, "most"), Column::count("sampled", ""), Column::count("tail", "")});
    for (const unsigned c : a.counters())
        if (a.setup().cycles && c != *a.setup().cycles)
            columns.push_back(Column::real(a.input().event_name(c) + " per 1000 cycles", ""));
    Table table{.columns = columns};
    std::vector<std::pair<analysis::DpuOwner, analysis::DpuTask>> rows(a.costs().tasks().begin(),
                                                                       a.costs().tasks().end());
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& x, const auto& y) { return x.second.sum[key] > y.second.sum[key]; });
    // Outside modes TASK and FLOW a stay has no beginning and no end, but EONCE modes show how many there were.
    const bool stays = a.costs().knows_stays();
    for (const auto& [who, task] : rows) {
        const bool is_task = who.is_context();
        const bool known = task.known && (!is_task || stays || a.costs().readings() != 0);
        std::vector<Cell> row{Cell(a.owner_text(who)),
                              is_task && stays               ? Cell(task.stays.times)
                              : is_task && task.entered != 0 ? Cell(task.entered)
                                                             : Cell::none(),
                              a.share(task.sum, known)};
        a.counter_values(row, task.sum, known);
        const bool spread = stays && task.stays.times != 0;
        row.push_back(spread ? Cell::mean(task.stays.sum[key], task.stays.times) : Cell::none());
        row.push_back(spread ? Cell(task.stays.least[key]) : Cell::none());
        row.push_back(spread ? Cell(task.stays.most[key]) : Cell::none());
        row.push_back(a.count(task.sampled, key, known));
        row.push_back(a.count(task.tail, key, known));
        for (const unsigned c : a.counters())
            if (a.setup().cycles && c != *a.setup().cycles) row.push_back(known ? rate(a, task.sum, c) : Cell());
        table.add(std::move(row));
    }
    return table;
}

Table functions(const DpuAnswer& a, std::uint64_t limit, std::size_t& left_out) {
    const unsigned key = a.sorted_by();
    const std::string name = a.input().event_name(key);
    std::vector<Column> columns{Column::text("function", "function"), Column::address("address", ""),
                                Column::count("calls", "calls"), Column::real("share", "share")};
    // Inclusive costs are those of outermost calls: where no function calls itself, these are all of them.
    const bool recursion = std::any_of(
        a.costs().functions().begin(), a.costs().functions().end(),
        [](const auto& each) { return each.first.address != 0 && each.second.activations.times < each.second.calls; });
    a.counter_columns(columns);
    columns.insert(columns.end(), {Column::count(name + " inclusive", "with callees"),
                                   Column::count("outermost calls", recursion ? "outermost" : ""),
                                   Column::real("mean " + name, recursion ? "mean of these" : "mean call"),
                                   Column::count("least " + name, "least"), Column::count("most " + name, "most"),
                                   Column::count(name + " crossed", "")});
    for (const unsigned c : a.counters())
        if (c != key) columns.push_back(Column::count(a.input().event_name(c) + " inclusive", ""));
    Table table{.columns = columns};
    std::vector<std::pair<DpuCode::Function, analysis::DpuFunctionCost>> rows(a.costs().functions().begin(),
                                                                              a.costs().functions().end());
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& x, const auto& y) { return x.second.self[key] > y.second.self[key]; });
    left_out = limit == 0 || rows.size() <= limit ? 0 : rows.size() - limit;
    rows.resize(rows.size() - left_out);
    for (const auto& [f, cost] : rows) {
        const bool none = f.address == 0;
        std::vector<Cell> row{Cell(DpuAnswer::function_text(f)), none ? Cell() : address_value(f.address),
                              none ? Cell::none() : Cell(cost.calls), a.share(cost.self, cost.known)};
        a.counter_values(row, cost.self, cost.known);
        const auto& calls = cost.activations;
        row.push_back(none ? Cell() : a.count(cost.inclusive, key));
        row.push_back(none ? Cell() : Cell(calls.times));
        row.push_back(Cell::mean(calls.sum[key], calls.times));
        row.push_back(calls.times == 0 ? Cell() : Cell(calls.least[key]));
        row.push_back(calls.times == 0 ? Cell() : Cell(calls.most[key]));
        row.push_back(a.count(cost.crossed, key));
        for (const unsigned c : a.counters())
            if (c != key) row.push_back(a.count(cost.inclusive, c));
        table.add(std::move(row));
    }
    return table;
}

std::string calls_text(const DpuAnswer& a, std::size_t at) {
    std::string out;
    for (; at != 0; at = a.costs().paths()[at].parent) {
        const analysis::DpuPath& p = a.costs().paths()[at];
        std::string name = DpuAnswer::function_text(p.function);
        // The separators of folded stacks.
        std::replace(name.begin(), name.end(), ';', ':');
        if (p.root) name = analysis::to_text(*p.root) + ";" + name;
        out = name + (out.empty() ? "" : ";") + out;
    }
    return out;
}

Table paths(const DpuAnswer& a, std::uint64_t limit, std::size_t& left_out) {
    const unsigned key = a.sorted_by();
    std::vector<Column> columns{Column::text("path", ""), Column::count("calls", "calls"),
                                Column::real("share", "share")};
    a.counter_columns(columns);
    columns.push_back(Column::bar("path"));
    Table table{.columns = columns};
    std::vector<std::size_t> order;
    for (std::size_t i = 1; i < a.costs().paths().size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
        return a.costs().paths()[x].self[key] > a.costs().paths()[y].self[key];
    });
    left_out = limit == 0 || order.size() <= limit ? 0 : order.size() - limit;
    order.resize(order.size() - left_out);
    for (const std::size_t i : order) {
        const analysis::DpuPath& p = a.costs().paths()[i];
        const std::string text = calls_text(a, i);
        std::vector<Cell> row{Cell(text), Cell(p.calls), a.share(p.self, p.known)};
        a.counter_values(row, p.self, p.known);
        row.push_back(Cell(text, nullptr));
        table.add(std::move(row));
    }
    return table;
}

Table interrupts(const DpuAnswer& a) {
    const unsigned key = a.sorted_by();
    const std::string name = a.input().event_name(key);
    std::vector<Column> columns{Column::text("service", "service"), Column::address("entry", "entry"),
                                Column::count("times", "times")};
    a.counter_columns(columns);
    columns.insert(columns.end(), {Column::real("mean " + name, "mean"), Column::count("least " + name, "least"),
                                   Column::count("most " + name, "most")});
    Table table{.columns = columns};
    for (const auto& [entry, service] : a.costs().services()) {
        std::vector<Cell> row{Cell(DpuAnswer::function_text(a.code().function(entry))), address_value(entry),
                              Cell(service.stays.times)};
        a.counter_values(row, service.stays.sum);
        row.push_back(Cell::mean(service.stays.sum[key], service.stays.times));
        row.push_back(Cell(service.stays.least[key]));
        row.push_back(Cell(service.stays.most[key]));
        table.add(std::move(row));
    }
    return table;
}

Table ranges(const DpuAnswer& a) {
    std::vector<Column> columns{Column::text("range", "range"), Column::text("part", "part"),
                                Column::count("intervals", "intervals")};
    a.counter_columns(columns);
    Table table{.columns = columns};
    const auto row = [&](const std::string& name, const char* part, Cell intervals, const DpuCounts& counts) {
        std::vector<Cell> values{Cell(name), Cell(part), std::move(intervals)};
        a.counter_values(values, counts);
        table.add(std::move(values));
    };
    for (std::size_t i = 0; i < a.range_names().size(); ++i) {
        const analysis::DpuRange& r = a.costs().ranges()[i];
        row(a.range_names()[i], "inside", Cell(r.intervals), r.inside);
        row(a.range_names()[i], "crossing its border", Cell(r.crossings), r.crossing);
    }
    row("everything else", "", {}, a.costs().outside_ranges());
    return table;
}

Table timeline(const DpuAnswer& a, std::uint64_t limit, std::size_t& left_out) {
    std::vector<Column> columns{Column::count("begin", "begin"), Column::count("end", "end"),
                                Column::text("task", "task")};
    a.counter_columns(columns);
    for (const unsigned c : a.counters())
        if (a.setup().cycles && c != *a.setup().cycles)
            columns.push_back(
                Column::real(a.input().event_name(c) + " per 1000 cycles", a.input().event_name(c) + "/1000"));
    Table table{.columns = columns};
    const auto& stays = a.costs().stays();
    const std::size_t shown = limit == 0 ? stays.size() : std::min<std::size_t>(stays.size(), limit);
    left_out = stays.size() - shown + a.costs().stays_left_out();
    for (std::size_t i = 0; i < shown; ++i) {
        const analysis::DpuStay& s = stays[i];
        std::vector<Cell> row{Cell(s.begin), Cell(s.end), Cell(a.task_text(s.context))};
        a.counter_values(row, s.counts);
        for (const unsigned c : a.counters())
            if (a.setup().cycles && c != *a.setup().cycles) row.push_back(rate(a, s.counts, c));
        table.add(std::move(row));
    }
    return table;
}

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
    for (const auto& [who, lane] : lanes) width = std::max(width, a.task_text({who.first, who.second}).size());
    constexpr std::array<std::string_view, 5> marks{"·", "░", "▒", "▓", "█"};
    for (const auto& [who, lane] : lanes) {
        std::string text;
        for (const double part : lane) {
            const auto level =
                part <= 0 ? std::size_t{0} : std::min<std::size_t>(1 + static_cast<std::size_t>(part * 4), 4);
            text += marks[level];
        }
        out.print("  {:<{}}  {}\n", a.task_text({who.first, who.second}), width, text);
    }
    out.print("  {:<{}}  0{:>{}}\n", "", width, grouped(all), columns - 1);
}

/// Miss rates, load and the like, of tasks or functions.
Table ratios(const DpuAnswer& a, bool by_function) {
    std::vector<std::string> names;
    for (const unsigned c : a.counters()) names.push_back(a.input().is_driven(c) ? a.input().event_name(c) : "");
    const std::vector<analysis::DpuRatio> ratios = analysis::dpu_ratios(names);
    std::vector<Column> columns{Column::text(by_function ? "function" : "task", by_function ? "function" : "task")};
    for (const analysis::DpuRatio& r : ratios) columns.push_back(Column::real(r.name, r.name));
    Table table{.columns = columns};
    const auto add = [&](const std::string& of, const DpuCounts& counts) {
        std::vector<std::uint64_t> values;
        for (const unsigned c : a.counters()) values.push_back(counts[c]);
        std::vector<Cell> row{Cell(of)};
        bool any = false;
        for (const analysis::DpuRatio& r : ratios) {
            const auto value = r.value(values);
            any |= value.has_value();
            row.push_back(value ? Cell(fmt::format("{:.4f}", *value), *value) : Cell::none());
        }
        if (any) table.add(std::move(row));
    };
    if (!by_function) add("all", a.costs().total());
    if (by_function)
        for (const auto& [f, cost] : a.costs().functions()) add(DpuAnswer::function_text(f), cost.self);
    else
        for (const auto& [who, task] : a.costs().tasks()) add(a.owner_text(who), task.sum);
    return table;
}

Table loops(const DpuAnswer& a) {
    // Headings and order as those of 'waymark loops'.
    Table table{.columns = {Column::count("runs", "entries"), Column::count("iterations", "iterations"),
                            Column::real("mean", "mean"), Column::count("least", "least"),
                            Column::count("most", "most"), Column::count("body", "body"),
                            Column::count("instructions", "instructions"), Column::address("start", "head"),
                            Column::address("last", "tail"), Column::text("where", "in"),
                            Column::text("kind", "kind")}};
    std::vector<std::pair<DpuCode::Place, analysis::DpuLoop>> rows(a.costs().loops().begin(), a.costs().loops().end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
        return x.second.jumps + x.second.runs > y.second.jumps + y.second.runs;
    });
    for (const auto& [last, loop] : rows) {
        const std::uint64_t iterations = loop.jumps + loop.runs;
        std::optional<std::uint64_t> body;
        if (loop.start) body = a.code().instructions(*loop.start, last);
        table.add({Cell(loop.runs), Cell(iterations), Cell::mean(iterations, loop.runs), Cell(loop.least + 1),
                   Cell(loop.most + 1), body ? Cell(*body) : Cell::none(),
                   body ? Cell(*body * iterations) : Cell::none(),
                   loop.start ? address_value(*loop.start) : Cell::none(), address_value(last.address),
                   Cell(DpuAnswer::function_text(a.code().function(last))),
                   Cell(std::string(loop.is_short ? "short" : "long"))});
    }
    return table;
}

Table data(const DpuAnswer& a, std::uint64_t limit, std::size_t& left_out) {
    Table table{.columns = {Column::text("offset", "offset"), Column::count("time", "time"),
                            Column::text("task", "task"), Column::text("value", "value")}};
    const auto& all = a.costs().data();
    const std::size_t shown = limit == 0 ? all.size() : std::min<std::size_t>(all.size(), limit);
    left_out = all.size() - shown;
    for (std::size_t i = 0; i < shown; ++i) {
        const analysis::DpuDatum& d = all[i];
        table.add({Cell(fmt::format("{:#x}", d.offset.value), d.offset.value),
                   a.costs().readings() != 0 ? Cell(d.time) : Cell::none(),
                   d.context ? Cell(a.task_text(*d.context)) : Cell::none(),
                   Cell(fmt::format("{:#010x}", d.value), d.value)});
    }
    return table;
}

Table health(const DpuAnswer& a) {
    Table table{
        .columns = {Column::text("item", "what"), Column::count("count", "count"), Column::count("bytes", "bytes")}};
    const dpu::Totals& t = a.decoded().totals;
    std::size_t at = 0;
    dpu::Entries::for_each([&]<class P>() {
        if (const std::uint64_t n = t.entries[at++]; n != 0)
            table.add({Cell(fmt::format("{} {}", P::info.id, P::info.name)), Cell(n), Cell(n * 4 * P::info.words)});
    });
    for (unsigned r = 0; r < gap_reasons; ++r)
        if (t.gaps[r] != 0)
            table.add(
                {Cell(fmt::format("gap: {}", name(static_cast<GapReason>(r)))), Cell(t.gaps[r]), Cell(t.gap_bytes[r])});
    table.add({Cell("entries lost for want of room"), Cell(t.lost), Cell::none()});
    table.add({Cell("times tracing was held"), Cell(t.holds), Cell::none()});
    table.add({Cell("doubtful, next to damage"), Cell(t.doubtful), Cell::none()});
    table.add({Cell("readings that cannot be true, left out"), Cell(a.costs().doubted().readings), Cell::none()});
    table.add({Cell("intervals with a difference of 2^30 or more"), Cell(a.costs().wide().intervals), Cell::none()});
    table.add({Cell("all"), Cell::none(), Cell(t.bytes)});
    return table;
}

// ---- commands

struct View {
    const char *name, *title, *help, *footer;
    bool rows;  ///< sorted by a counter, and limited
};

/// A table of a view.
struct Part {
    std::string title;
    Table table;
    std::size_t left_out = 0;
    std::optional<DpuCounts> sum{};  ///< of all its rows, where they should hold everything
    std::string empty{};             ///< instead of a table without rows, for reading
};

template <class Rows, class Counts>
DpuCounts sum_of(const Rows& rows, const Counts& counts) {
    DpuCounts sum{};
    for (const auto& row : rows) add(sum, counts(row));
    return sum;
}

/// Why a view that needs another mode is empty.
std::string needs(const DpuAnswer& a, const char* mode, const char* option) {
    return fmt::format("mode {} does not record it; record with --mode {} ({})", a.input().mode_text(), option, mode);
}

/// Adds up all rows of the table of ranges; nothing where ranges overlap and count twice.
std::optional<DpuCounts> sum_of_ranges(const DpuAnswer& a) {
    auto borders = a.setup().ranges;
    std::sort(borders.begin(), borders.end());
    for (std::size_t i = 1; i < borders.size(); ++i)
        if (borders[i].first < borders[i - 1].second &&
            (borders[i].image == borders[i - 1].image || borders[i].image == DpuCode::no_image ||
             borders[i - 1].image == DpuCode::no_image))
            return std::nullopt;
    DpuCounts sum = sum_of(a.costs().ranges(), [](const analysis::DpuRange& r) {
        DpuCounts both = r.inside;
        add(both, r.crossing);
        return both;
    });
    add(sum, a.costs().outside_ranges());
    return sum;
}

/// Of stays: nothing where some are left out, or not all counts are of a stay.
std::optional<DpuCounts> sum_of_stays(const DpuAnswer& a) {
    const DpuCosts& costs = a.costs();
    const bool all = costs.knows_stays() && costs.stays_left_out() == 0 &&
                     std::all_of(costs.tasks().begin(), costs.tasks().end(),
                                 [](const auto& each) { return each.first.is_context(); });
    if (!all) return std::nullopt;
    return sum_of(costs.stays(), [](const analysis::DpuStay& stay) { return stay.counts; });
}

/// The tables of a view, `limit` rows of each for reading; 0: all.
std::vector<Part> parts_of(const DpuAnswer& a, const std::string& view, std::uint64_t limit,
                           std::vector<std::string>& notes) {
    const DpuCosts& costs = a.costs();
    const bool report = view == "report", flow = a.input().mode() == dpu::TraceMode::flow;
    std::vector<Part> out;
    std::size_t left_out = 0;
    const auto add = [&](const char* title, Table table, std::optional<DpuCounts> sum, std::string empty) -> Part& {
        return out.emplace_back(Part{title, std::move(table), std::exchange(left_out, 0), sum, std::move(empty)});
    };
    const auto shorten = [&](Part& part) {
        if (limit != 0) part.left_out = part.table.keep(static_cast<std::size_t>(limit));
    };
    if (report || view == "tasks")
        shorten(add(costs.knows_stays() ? "per task: what each had of the counters, and how long it stayed"
                                        : "per task: what each had of the counters",
                    tasks(a), sum_of(costs.tasks(), [](const auto& each) { return each.second.sum; }), ""));
    if (report || view == "functions") {
        Table table = functions(a, limit, left_out);
        add("per function: its own cost, and with what it called", std::move(table),
            flow ? std::optional(sum_of(costs.functions(), [](const auto& each) { return each.second.self; }))
                 : std::nullopt,
            flow ? "" : needs(a, "FLOW", "flow"));
        if (flow && !report && costs.returns_without_call() != 0)
            notes.push_back(
                fmt::format("{} led to where no call is open", counted(costs.returns_without_call(), "return")));
    }
    if (view == "paths") {
        Table table = paths(a, limit, left_out);
        add("per call path: what was spent at its end", std::move(table),
            flow ? std::optional(sum_of(costs.paths(), [](const analysis::DpuPath& p) { return p.self; }))
                 : std::nullopt,
            flow ? "" : needs(a, "FLOW", "flow"));
    }
    if (report || view == "interrupts")
        shorten(add("per interrupt and system call: from entry to return", interrupts(a), std::nullopt,
                    costs.knows_stays() ? "no interrupt, exception or system call is in the trace"
                                        : needs(a, "TASK or FLOW", "task or flow")));
    if (view == "ranges") {
        const auto sum = sum_of_ranges(a);
        add("per range of code; an interval that crosses a border is not split", ranges(a), sum, "");
        if (a.range_names().empty()) notes.emplace_back("no range given: --range 0x8000-0x9000 or --range FUNCTION");
        if (!sum) notes.emplace_back("ranges overlap, and what lies in two is in both rows");
        if (!costs.knows_stays()) notes.push_back(needs(a, "FLOW", "flow"));
    }
    if (view == "timeline") {
        Table table = timeline(a, limit, left_out);
        const auto sum = sum_of_stays(a);
        std::string title = costs.knows_stays() ? "stays" : "stretches between samples that show one task";
        title += costs.knows_time() ? ", in cycles from the first" : ", by number of the reading";
        add(title.c_str(), std::move(table), sum,
            costs.readings() == 0 ? "there is no reading in the trace" : "no task stayed from one reading to the next");
        if (!sum && costs.knows_stays())
            notes.emplace_back("the rows do not hold all counts: 'waymark dpu tasks' shows the rest in angle brackets");
    }
    if (report || view == "loops")
        shorten(add(std::string(answers::hardware_loops).c_str(), loops(a), std::nullopt,
                    view == "loops" && !a.trust().not_known.empty() ? a.trust().not_known
                                                                    : std::string(answers::no_hardware_loop)));
    if (view == "ratios") {
        add("figures derived from the counters, by task", ratios(a, false), std::nullopt,
            "the counters of this capture give no ratio: record events that go together, such as --events 1,7");
        if (flow) add("by function", ratios(a, true), std::nullopt, "");
    }
    if (report || view == "data") {
        Table table = data(a, limit, left_out);
        add("user data: what the program wrote to DP_TD", std::move(table), std::nullopt,
            "the program wrote nothing to DP_TD (waymark_dpu.h), or neither UDEN nor mode user was on");
    }
    if (view == "health") add("what the buffer held", health(a), std::nullopt, "");
    return out;
}

void print_parts(const DpuAnswer& a, Output& out, const std::string& view, const std::vector<Part>& parts,
                 const std::vector<std::string>& notes) {
    a.print_head(out);
    if (!a.tells()) {
        out.print("\nnothing was decoded: {}\n", a.input().why_nothing());
        return;
    }
    const bool report = view == "report";
    for (const Part& part : parts) {
        if (part.table.empty()) {
            // What this mode cannot tell a report does not speak of.
            if (!report && view != "loops") out.print("\n{}\n", part.empty);
            continue;
        }
        out.print("\n{}\n", part.title);
        if (view == "timeline") print_lanes(a, out);
        print_text(out, part.table, 0, "  ");
        if (part.left_out != 0) out.print("  … and {} more; --limit 0 shows all\n", grouped(part.left_out));
    }
    for (const std::string& note : notes) out.print("\n{}\n", note);
    for (const Part& part : parts)
        if (part.sum) {
            a.print_reconciliation(out, *part.sum);
            break;  // of a report the tasks; its functions add up to the same, or finish() says so
        }
}

Status run_view(const DpuOptions& options, const std::string& view) {
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
    const std::vector<Part> parts = parts_of(a, view, text ? options.limit.value_or(usual) : 0, notes);
    if (options.format == "json") {
        ordered_json json = a.json_head();
        json["reconciled"] = ordered_json::array();
        for (const Part& part : parts) {
            const std::string key = report ? part.title.substr(0, part.title.find(':')) : "rows";
            json[key] = a.tells() ? to_json(part.table) : ordered_json::array();
            if (a.tells() && part.sum && json["reconciled"].empty())
                json["reconciled"] = to_json(a.reconciliation(*part.sum));
        }
        json["notes"] = notes;
        for (const Part& part : parts)
            if (a.tells() && part.table.empty()) json["notes"].push_back(part.empty);
        out->write(json_text(json) + "\n");
    } else if (options.format == "tsv") {
        say("note", dpu::layout_note);
        if (report)
            say("note", "tsv holds the tasks alone; 'waymark dpu functions' and the other views have their own");
        Part first = parts.front();
        if (!a.tells()) first.table.rows.clear();
        print_tsv(*out, first.table);
        if (a.tells() && first.table.empty() && view != "loops") say("note", first.empty);
    } else {
        print_parts(a, *out, view, parts, notes);
    }
    const Status status = a.finish(*out, std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
        return !part.sum || a.reconciles(*part.sum);
    }));
    // As waymark loops does.
    if (status != cli::decoded || view != "loops" || !parts.front().table.empty()) return status;
    say("error", fmt::format("{}: {}", options.capture, parts.front().empty));
    return nothing;
}

/// One line for each path: names from the root, and the count.
Status run_folded(const DpuOptions& options) {
    if (options.format_option->count() != 0)
        return fail({Errc::usage, "--folded is a format of its own; leave out --format"});
    if (options.limit) return fail({Errc::usage, "--folded has every path; leave out --limit"});
    const auto made = DpuAnswer::make(options, "paths");
    if (!made) return fail(made.error());
    const DpuAnswer& a = **made;
    if (a.tells() && a.input().mode() != dpu::TraceMode::flow) {
        say("error", "there are no paths: " + needs(a, "FLOW", "flow"));
        return nothing;
    }
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    say("note", dpu::layout_note);
    if (a.tells())
        for (std::size_t i = 1; i < a.costs().paths().size(); ++i)
            if (const std::uint64_t n = a.costs().paths()[i].self[a.sorted_by()]; n != 0)
                out->print("{} {}\n", calls_text(a, i), n);
    return a.finish(*out, a.reconciles(sum_of(a.costs().paths(), [](const analysis::DpuPath& p) { return p.self; })));
}

}  // namespace

Run add_dpu_program(CLI::App& dpu);

Run add_dpu(CLI::App& app) {
    CLI::App& dpu = *app.add_subcommand("dpu", "Counters and trace of a Debug and Profiling Unit (DPU)");
    dpu.require_subcommand(1);
    dpu.footer(
        "Captures are folders with a dpu.ini. Every view says which of its figures are exact, which estimated and "
        "which\n"
        "the trace mode cannot tell; where its rows hold all that was counted, it shows that they add up.\n"
        "Words of the trace have layout WL-1: flags, entries and event sets as Waymark defines them, for the "
        "published\n"
        "description of the unit omits them.\n");
    auto commands = std::make_shared<std::vector<std::pair<CLI::App*, Run>>>();
    constexpr const char* status =
        "\nExit status: 0 there is an answer; 1 there is no entry, the rows do not add up, or something was lost "
        "or is\n"
        "doubtful under --strict; 2 usage; 3 the capture cannot be read to its end, or the output not be written.\n";
    const std::array<View, 10> views{{
        {"report", "Tasks, functions, interrupts, loops and user data at a glance", "", "  waymark dpu report DIR\n",
         true},
        {"tasks", "What each task cost, in both privileges, and each of its stays", "",
         "A row is a task ID in user or supervisor state. A stay is one uninterrupted time on the core. Rows in angle\n"
         "brackets hold what belongs to no task for certain, such as intervals in which trace was lost.\n\n"
         "  waymark dpu tasks DIR --counter STALL_ALL\n",
         true},
        {"functions", "What each function cost by itself and with what it called (mode flow)", "",
         "Readings come with each call, return and interrupt; what lies between two of them is the cost of the "
         "function\n"
         "the first led to. The trace has no jumps: a function that is seen to run after one, as after a tail call\n"
         "or through the procedure linkage table (puts@plt), counts as called. The cost up to the next call or return\n"
         "is its own where the program leads there without a condition, and else that of the function before (column\n"
         "crossed of tsv). Of a function that calls itself, outermost calls alone have a cost with callees.\n\n"
         "  waymark dpu "
         "functions DIR --limit 0\n",
         true},
        {"paths", "What each call path cost (mode flow)", "",
         "--folded writes lines for flame graphs, of the counter --counter names.\n\n"
         "  waymark dpu paths DIR --folded --counter DC_MISS > stacks.txt\n",
         true},
        {"interrupts", "What each interrupt and system call cost, from entry to return", "", "", true},
        {"ranges", "What ranges of code cost", "", "  waymark dpu ranges DIR --range main --range 0x10400-0x10800\n",
         true},
        {"timeline", "Who had the core when, with the rates of the counters", "", "", true},
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
    const auto add_view = [&](const View& view) {
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
    for (const View& view : views) add_view(view);
    add_view({"health", "What the buffer held: entries by kind, pads, gaps, losses", "", "", false});
    Run program = add_dpu_program(dpu);
    commands->emplace_back(dpu.get_subcommand("program"), std::move(program));
    return [commands] {
        for (const auto& [command, go] : *commands)
            if (command->parsed()) return go();
        return usage;
    };
}

}  // namespace waymark::cli
