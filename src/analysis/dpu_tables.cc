#include "waymark/analysis/dpu_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/analysis/dpu_ratios.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/packet.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// An address in the notation that the tables of all commands use.
Cell address_cell(std::uint32_t address) { return {fmt::format("{:#010x}", address), fmt::format("{:#x}", address)}; }

template <class Rows, class Counts>
DpuCounts sum_of(const Rows& rows, const Counts& counts) {
    DpuCounts sum{};
    for (const auto& row : rows) add(sum, counts(row));
    return sum;
}

/// Rows of a map, those with the greatest counts first.
template <class Map, class Counts>
auto by_counts(const Map& map, const Counts& counts) {
    std::vector<const typename Map::value_type*> rows;
    for (const auto& row : map) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(), [&](auto* a, auto* b) { return counts(*a) > counts(*b); });
    return rows;
}

/// Keeps the first `most` rows; 0 keeps all. Returns the number of removed rows.
template <class Rows>
std::size_t keep(Rows& rows, std::size_t most) {
    if (most == 0 || rows.size() <= most) return 0;
    const std::size_t removed = rows.size() - most;
    rows.resize(most);
    return removed;
}

}  // namespace

std::string function_text(const DpuCode::Function& function) {
    return function.name.empty() ? fmt::format("{:#010x}", function.address) : function.name;
}
std::string context_text(const DpuSaid& said, const dpu::TaskContext& context) {
    const auto found = said.tasks.find(context.id);
    return to_text(context) + (found == said.tasks.end() ? "" : fmt::format(" ({})", found->second));
}
std::string owner_text(const DpuSaid& said, const DpuOwner& owner) {
    return owner.is_context() ? context_text(said, owner.context) : to_text(owner);
}

DpuTables::DpuTables(const DpuCosts& costs, const DpuCode& code, const DpuSaid& said, unsigned sorted_by)
    : costs_(costs), code_(code), said_(said), key_(sorted_by) {
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (!said.events[c].empty()) counters_.push_back(c);
}

// ---- parts shared by all tables

std::string DpuTables::event(unsigned counter) const {
    return said_.events[counter].empty() ? std::string(name(dpu::EventWire::none)) : said_.events[counter];
}
Cell DpuTables::count(const DpuCounts& counts, unsigned counter, bool known) const {
    return known && said_.counts(counter) ? Cell(counts[counter]) : Cell::none();
}
Cell DpuTables::share(const DpuCounts& counts, bool known) const {
    return known ? Cell::share(counts[key_], costs_.total()[key_]) : Cell::none();
}
void DpuTables::counter_columns(std::vector<Column>& columns) const {
    for (const unsigned c : counters_) columns.push_back(Column::count(event(c)));
}
void DpuTables::counter_cells(std::vector<Cell>& row, const DpuCounts& counts, bool known) const {
    for (const unsigned c : counters_) row.push_back(count(counts, c, known));
}
/// Events per 1000 cycles.
void DpuTables::rate_columns(std::vector<Column>& columns, bool for_readers) const {
    for (const unsigned c : counters_)
        if (said_.cycles && c != *said_.cycles)
            columns.push_back(Column::real(event(c) + " per 1000 cycles", for_readers ? event(c) + "/1000" : ""));
}
void DpuTables::rate_cells(std::vector<Cell>& row, const DpuCounts& counts, bool known) const {
    for (const unsigned c : counters_) {
        if (!said_.cycles || c == *said_.cycles) continue;
        const std::uint64_t cycles = counts[*said_.cycles];
        if (!known || cycles == 0 || !said_.counts(c)) {
            row.emplace_back();
            continue;
        }
        const double value = 1000.0 * static_cast<double>(counts[c]) / static_cast<double>(cycles);
        row.emplace_back(decimal_text(value), value);
    }
}
std::string DpuTables::needs(std::string_view mode, std::string_view option) const {
    return fmt::format("mode {} does not record it; record with --mode {} ({})", said_.mode_text, option, mode);
}

// ---- tables

DpuTable DpuTables::tasks(std::size_t most) const {
    const std::string name = event(key_);
    // Outside modes TASK and FLOW a stay has no beginning and no end, but EONCE modes show the number of stays.
    const bool stays = costs_.knows_stays();
    DpuTable out;
    Table& table = out.table;
    table.title = "tasks";
    table.note = "per task: its counts";
    if (stays)
        table.note += key_ == said_.cycles ? std::string(", and how long it stayed")
                                           : fmt::format(", and how much of {} a stay had", name);
    table.columns = {Column::text("task"), Column::count("stays"), Column::real("share", "share")};
    counter_columns(table.columns);
    for (Column column : {Column::real("mean " + name, key_ == said_.cycles ? "mean stay" : "mean in a stay"),
                          Column::count("least " + name, "least"), Column::count("most " + name, "most"),
                          Column::count("sampled", ""), Column::count("tail", "")})
        table.columns.push_back(std::move(column));
    rate_columns(table.columns, false);
    for (const auto* each : by_counts(costs_.tasks(), [&](const auto& row) { return row.second.sum[key_]; })) {
        const auto& [who, task] = *each;
        const bool is_task = who.is_context();
        const bool known = task.known && (!is_task || stays || costs_.readings() != 0);
        std::vector<Cell> row{owner_text(said_, who),
                              is_task && (stays || task.entered != 0) ? Cell(task.entered) : Cell::none(),
                              share(task.sum, known)};
        counter_cells(row, task.sum, known);
        const bool spread = stays && task.stays.times != 0;
        row.push_back(spread ? Cell::mean(task.stays.sum[key_], task.stays.times) : Cell::none());
        row.push_back(spread ? Cell(task.stays.least[key_]) : Cell::none());
        row.push_back(spread ? Cell(task.stays.most[key_]) : Cell::none());
        row.push_back(count(task.sampled, key_, known));
        row.push_back(count(task.tail, key_, known));
        rate_cells(row, task.sum, known);
        table.add(std::move(row));
    }
    out.sum = sum_of(costs_.tasks(), [](const auto& each) { return each.second.sum; });
    out.left_out = table.keep(most);
    return out;
}

DpuTable DpuTables::functions(std::size_t most) const {
    const std::string name = event(key_);
    const auto& functions = costs_.functions();
    // Inclusive costs count outermost calls only. If no function calls itself, all calls are outermost.
    const bool recursion = std::any_of(functions.begin(), functions.end(), [](const auto& each) {
        return each.first.address != 0 && each.second.activations.times < each.second.calls;
    });
    DpuTable out;
    Table& table = out.table;
    table.title = "functions";
    table.note = "per function: self and total cost";
    table.columns = {Column::text("function"), Column::address("address", ""), Column::count("calls"),
                     Column::real("share", "share")};
    counter_columns(table.columns);
    for (Column column : {Column::count(name + " inclusive", "with callees"),
                          Column::count("outermost calls", recursion ? "outermost" : ""),
                          Column::real("mean " + name, recursion ? "mean outermost" : "mean call"),
                          Column::count("least " + name, "least"), Column::count("most " + name, "most"),
                          Column::count(name + " crossed", "")})
        table.columns.push_back(std::move(column));
    for (const unsigned c : counters_)
        if (c != key_) table.columns.push_back(Column::count(event(c) + " inclusive", ""));
    auto rows = by_counts(functions, [&](const auto& row) { return row.second.self[key_]; });
    out.left_out = keep(rows, most);
    for (const auto* each : rows) {
        const auto& [f, cost] = *each;
        const bool none = f.address == 0;
        std::vector<Cell> row{function_text(f), none ? Cell() : address_cell(f.address),
                              none ? Cell::none() : Cell(cost.calls), share(cost.self, cost.known)};
        counter_cells(row, cost.self, cost.known);
        const auto& calls = cost.activations;
        row.push_back(none ? Cell() : count(cost.inclusive, key_));
        row.push_back(none ? Cell() : Cell(calls.times));
        row.push_back(Cell::mean(calls.sum[key_], calls.times));
        row.push_back(calls.times == 0 ? Cell() : Cell(calls.least[key_]));
        row.push_back(calls.times == 0 ? Cell() : Cell(calls.most[key_]));
        row.push_back(count(cost.crossed, key_));
        for (const unsigned c : counters_)
            if (c != key_) row.push_back(count(cost.inclusive, c));
        table.add(std::move(row));
    }
    if (said_.mode == dpu::TraceMode::flow)
        out.sum = sum_of(functions, [](const auto& each) { return each.second.self; });
    else
        out.empty = needs("FLOW", "flow");
    return out;
}

std::string DpuTables::path_text(std::size_t path) const {
    std::string out;
    for (; path != 0; path = costs_.paths()[path].parent) {
        const DpuPath& p = costs_.paths()[path];
        std::string name = function_text(p.function);
        // Folded stacks use these characters as separators.
        std::replace(name.begin(), name.end(), ';', ':');
        if (p.root) name = to_text(*p.root) + ";" + name;
        out = name + (out.empty() ? "" : ";") + out;
    }
    return out;
}

DpuTable DpuTables::paths(std::size_t most) const {
    const auto& paths = costs_.paths();
    DpuTable out;
    Table& table = out.table;
    table.title = "paths";
    table.note = "per call path: cost of its last function";
    table.columns = {Column::text("path", ""), Column::count("calls"), Column::real("share", "share")};
    counter_columns(table.columns);
    table.columns.push_back(Column::bar("path"));
    std::vector<std::size_t> order;
    for (std::size_t i = 1; i < paths.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return paths[x].self[key_] > paths[y].self[key_]; });
    out.left_out = keep(order, most);
    for (const std::size_t i : order) {
        const std::string text = path_text(i);
        std::vector<Cell> row{text, paths[i].calls, share(paths[i].self, paths[i].known)};
        counter_cells(row, paths[i].self, paths[i].known);
        row.emplace_back(text, nullptr);
        table.add(std::move(row));
    }
    if (said_.mode == dpu::TraceMode::flow)
        out.sum = sum_of(paths, [](const DpuPath& p) { return p.self; });
    else
        out.empty = needs("FLOW", "flow");
    return out;
}

DpuTable DpuTables::interrupts(std::size_t most) const {
    const std::string name = event(key_);
    DpuTable out;
    Table& table = out.table;
    table.title = "interrupts";
    table.note = "per interrupt and system call: from entry to return";
    table.columns = {Column::text("service"), Column::address("entry", "entry"), Column::count("times")};
    counter_columns(table.columns);
    for (Column column : {Column::real("mean " + name, "mean"), Column::count("least " + name, "least"),
                          Column::count("most " + name, "most")})
        table.columns.push_back(std::move(column));
    for (const auto& [entry, service] : costs_.services()) {
        const DpuSpread& stays = service.stays;
        std::vector<Cell> row{function_text(code_.function(entry)), address_cell(entry), stays.times};
        counter_cells(row, stays.sum);
        row.push_back(Cell::mean(stays.sum[key_], stays.times));
        row.emplace_back(stays.least[key_]);
        row.emplace_back(stays.most[key_]);
        table.add(std::move(row));
    }
    out.left_out = table.keep(most);
    out.empty = costs_.knows_stays() ? "no interrupt, exception or system call is in the trace"
                                     : needs("TASK or FLOW", "task or flow");
    return out;
}

DpuTable DpuTables::ranges(const std::vector<std::string>& names, std::vector<DpuCodeRange> ranges) const {
    DpuTable out;
    Table& table = out.table;
    table.title = "ranges";
    table.note = "per range of code; an interval that crosses a border is not split";
    table.columns = {Column::text("range"), Column::text("part"), Column::count("intervals")};
    counter_columns(table.columns);
    const auto row = [&](const std::string& name, const char* part, Cell intervals, const DpuCounts& counts) {
        std::vector<Cell> cells{name, part, std::move(intervals)};
        counter_cells(cells, counts);
        table.add(std::move(cells));
    };
    DpuCounts sum = costs_.outside_ranges();
    for (std::size_t i = 0; i < names.size(); ++i) {
        const DpuRange& r = costs_.ranges()[i];
        row(names[i], "inside", r.intervals, r.inside);
        row(names[i], "crossing its border", r.crossings, r.crossing);
        add(sum, r.inside);
        add(sum, r.crossing);
    }
    row("everything else", "", {}, costs_.outside_ranges());
    std::sort(ranges.begin(), ranges.end());
    bool overlap = false;
    for (std::size_t i = 1; i < ranges.size(); ++i) {
        const DpuCodeRange &before = ranges[i - 1], &range = ranges[i];
        overlap |= range.first < before.second && (range.image == before.image || range.image == DpuCode::no_image ||
                                                   before.image == DpuCode::no_image);
    }
    if (!overlap) out.sum = sum;
    return out;
}

DpuTable DpuTables::timeline(std::size_t most) const {
    DpuTable out;
    Table& table = out.table;
    table.title = "timeline";
    table.note = costs_.knows_stays() ? "stays" : "stretches between samples that show one task";
    table.note += costs_.knows_time() ? ", in cycles from the first" : ", by number of the reading";
    table.columns = {Column::count("begin"), Column::count("end"), Column::text("task")};
    counter_columns(table.columns);
    rate_columns(table.columns, true);
    const auto& stays = costs_.stays();
    const std::size_t shown = most == 0 ? stays.size() : std::min(stays.size(), most);
    out.left_out = stays.size() - shown + costs_.stays_left_out();
    for (std::size_t i = 0; i < shown; ++i) {
        const DpuStay& s = stays[i];
        std::vector<Cell> row{s.begin, s.end, context_text(said_, s.context)};
        counter_cells(row, s.counts);
        rate_cells(row, s.counts);
        table.add(std::move(row));
    }
    // Stays hold all counts if none is left out and every count belongs to a context.
    if (costs_.knows_stays() && costs_.stays_left_out() == 0 &&
        std::all_of(costs_.tasks().begin(), costs_.tasks().end(),
                    [](const auto& each) { return each.first.is_context(); }))
        out.sum = sum_of(stays, [](const DpuStay& stay) { return stay.counts; });
    out.empty = costs_.readings() == 0 ? "there is no reading in the trace"
                                       : "no task ran without interruption from one reading to the next";
    return out;
}

DpuTable DpuTables::loops(std::size_t most) const {
    DpuTable out;
    Table& table = out.table;
    table.title = "loops";
    table.note = hardware_loops;
    // Headings and order as in 'waymark loops'.
    table.columns = {Column::count("runs", "entries"),
                     Column::count("iterations"),
                     Column::real("mean", "mean"),
                     Column::count("least"),
                     Column::count("most"),
                     Column::count("body"),
                     Column::count("instructions"),
                     Column::address("start", "head"),
                     Column::address("last", "tail"),
                     Column::text("where", "in"),
                     Column::text("kind")};
    for (const auto* each : by_counts(costs_.loops(), [](const auto& l) { return l.second.iterations(); })) {
        const auto& [last, loop] = *each;
        const std::uint64_t iterations = loop.iterations();
        std::optional<std::uint64_t> body;
        if (loop.start) body = code_.instructions(*loop.start, last);
        table.add({loop.runs, iterations, Cell::mean(iterations, loop.runs), loop.least, loop.most,
                   body ? Cell(*body) : Cell::none(), body ? Cell(*body * iterations) : Cell::none(),
                   loop.start ? address_cell(*loop.start) : Cell::none(), address_cell(last.address),
                   function_text(code_.function(last)), loop.is_short ? "short" : "long"});
    }
    out.left_out = table.keep(most);
    out.empty = no_hardware_loop;
    return out;
}

DpuTable DpuTables::data(std::size_t most) const {
    DpuTable out;
    Table& table = out.table;
    table.title = "user data";
    table.note = "user data: what the program wrote to DP_TD";
    table.columns = {Column::text("offset"), Column::count("time"), Column::text("task"), Column::text("value")};
    const auto& all = costs_.data();
    const std::size_t shown = most == 0 ? all.size() : std::min(all.size(), most);
    out.left_out = all.size() - shown;
    for (std::size_t i = 0; i < shown; ++i) {
        const DpuDatum& d = all[i];
        table.add({Cell(fmt::format("{:#x}", d.offset.value), d.offset.value),
                   costs_.readings() != 0 ? Cell(d.time) : Cell::none(),
                   d.context ? Cell(context_text(said_, *d.context)) : Cell::none(),
                   Cell(fmt::format("{:#010x}", d.value), d.value)});
    }
    out.empty = "the program wrote nothing to DP_TD (waymark_dpu.h), or neither UDEN nor mode user was on";
    return out;
}

DpuTable DpuTables::ratios(bool by_function) const {
    std::vector<std::string> names;
    for (const unsigned c : counters_) names.push_back(said_.counts(c) ? event(c) : std::string());
    std::vector<DpuRatioRow> rows;
    const auto add_row = [&](std::string of, const DpuCounts& counts) {
        Costs& values = rows.emplace_back(DpuRatioRow{std::move(of), {}}).second;
        for (const unsigned c : counters_) values.push_back(counts[c]);
    };
    if (by_function) {
        for (const auto& [f, cost] : costs_.functions()) add_row(function_text(f), cost.self);
    } else {
        add_row("all", costs_.total());
        for (const auto& [who, task] : costs_.tasks()) add_row(owner_text(said_, who), task.sum);
    }
    DpuTable out;
    out.table = ratio_table(by_function ? "function" : "task", dpu_ratios(names), rows);
    out.table.note = by_function ? "by function" : "figures derived from the counters, by task";
    if (!by_function)
        out.empty =
            "the counters of this capture give no ratio: record events that belong together, such as --events 1,7";
    return out;
}

DpuTable DpuTables::health() const {
    DpuTable out;
    Table& table = out.table;
    table.title = "health";
    table.note = "what the buffer held";
    table.columns = {Column::text("item", "what"), Column::count("count"), Column::count("bytes")};
    const dpu::Totals& t = said_.totals;
    std::size_t at = 0;
    dpu::Entries::for_each([&]<class P>() {
        if (const std::uint64_t n = t.entries[at++]; n != 0)
            table.add({fmt::format("{} {}", P::info.id, P::info.name), n, n * 4 * P::info.words});
    });
    for (unsigned r = 0; r < gap_reasons; ++r)
        if (t.gaps[r] != 0)
            table.add({fmt::format("gap: {}", name(static_cast<GapReason>(r))), t.gaps[r], t.gap_bytes[r]});
    const auto row = [&](const char* what, std::uint64_t times) { table.add({what, times, Cell::none()}); };
    row("entries lost because the buffer was full", t.lost);
    row("times tracing was held", t.holds);
    row("times tracing was off and began again", said_.offs);
    row("doubtful, next to damage", t.doubtful);
    row("implausible readings, ignored", costs_.doubted().readings);
    row("intervals with a difference of 2^30 or more", costs_.wide().intervals);
    table.add({"all", Cell::none(), t.bytes});
    return out;
}

Table DpuTables::reconciliation(const DpuCounts& sum) const {
    Table table{.title = "reconciliation",
                .note = "rows of every view add up to what the counters say, modulo 2^31",
                .columns = {Column::text("counter"), Column::text("event"), Column::count("sum", "sum of all rows"),
                            Column::count("first", "first value"), Column::count("last", "last value"),
                            Column::count("counted", "first - last"), Column::count("residual")}};
    const auto all = costs_.reconciled(sum);
    const auto hex = [](const std::optional<std::uint32_t>& v) {
        return v ? Cell(fmt::format("{:#010x}", *v), *v) : Cell::none();
    };
    for (const unsigned c : counters_) {
        const DpuReconciled& r = all[c];
        // The differences of a counter whose value was written are not counts.
        const bool counts = !said_.rewritten[c], known = counts && r.from && r.to;
        table.add({dpu::counter_name(c), event(c), counts ? Cell(r.sum) : Cell::none(), hex(r.from), hex(r.to),
                   known ? Cell(std::uint64_t{r.counted()}) : Cell::none(), known ? Cell(r.residual()) : Cell::none()});
    }
    return table;
}

}  // namespace waymark::analysis
