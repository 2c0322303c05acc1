/// `waymark dpu`: what a trace of the Debug and Profiling Unit cost, and whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "commands.h"
#include "dpu_answers.h"
#include "options.h"
#include "table.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/packet.h"

namespace waymark::cli {

namespace {

using analysis::DpuCode;
using analysis::DpuCosts;
using analysis::DpuCounts;
using nlohmann::ordered_json;

struct DpuOptions {
    std::string capture, format = "text", output, counter;
    std::vector<std::string> images, ranges;
    std::uint64_t limit = 50;
    bool strict = false;

    void add_to(CLI::App& command, bool rows) {
        command.add_option("CAPTURE", capture, "Folder with a dpu.ini, as 'waymark record --unit dpu' writes it")
            ->required();
        command.add_option("--format", format, "text: for reading; tsv, json: for programs")
            ->type_name("FORMAT")
            ->check(one_of({"text", "tsv", "json"}))
            ->capture_default_str();
        command.add_option("-o,--output", output, "Write to this file")->type_name("FILE");
        command
            .add_option("--image", images,
                        "One more program with names for addresses, as FILE or FILE@LOAD_BIAS. May be repeated")
            ->type_name("FILE")
            ->take_all();
        command.add_flag("--strict", strict, "Exit with 1 if anything was lost");
        if (!rows) return;
        command.add_option("--counter", counter, "The counter rows are sorted by, such as A0 or CYCLES. Default: A0")
            ->type_name("NAME");
        command.add_option("--limit", limit, "Show so many rows; 0: all. tsv and json have all")
            ->type_name("N")
            ->capture_default_str();
    }
};

/// A capture, decoded and added up.
class DpuAnswer {
public:
    static Result<std::unique_ptr<DpuAnswer>> make(const DpuOptions& options) {
        WM_ASSIGN_OR_RETURN(DpuInput input, DpuInput::open(options.capture));
        std::unique_ptr<DpuAnswer> out(new DpuAnswer(std::move(input), options));
        WM_RETURN_IF_ERROR(out->prepare());
        const DpuInput& in = out->input_;
        out->costs_ = std::make_unique<DpuCosts>(out->setup_, out->code_);
        WM_ASSIGN_OR_RETURN(out->decoded_, pipeline::decode_dpu(in.trace(), in.dump(), *out->costs_));
        out->costs_->finish();
        return out;
    }

    [[nodiscard]] const DpuInput& input() const { return input_; }
    [[nodiscard]] const DpuCosts& costs() const { return *costs_; }
    [[nodiscard]] const DpuCode& code() const { return code_; }
    [[nodiscard]] const pipeline::DpuDecoded& decoded() const { return decoded_; }
    [[nodiscard]] const std::vector<std::string>& range_names() const { return range_names_; }
    [[nodiscard]] const analysis::DpuSetup& setup() const { return setup_; }

    /// Counters that count something, in order.
    [[nodiscard]] const std::vector<unsigned>& counters() const { return counters_; }
    [[nodiscard]] unsigned sorted_by() const { return sorted_by_; }
    [[nodiscard]] Value count(const DpuCounts& counts, unsigned counter) const {
        return input_.is_driven(counter) ? Value(counts[counter]) : Value("-", nullptr);
    }
    void counter_columns(std::vector<Table::Column>& columns, const std::string& suffix = {}) const {
        for (const unsigned c : counters_)
            columns.push_back({input_.event_name(c) + suffix, input_.event_name(c) + suffix});
    }
    void counter_values(std::vector<Value>& row, const DpuCounts& counts) const {
        for (const unsigned c : counters_) row.push_back(count(counts, c));
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
        std::vector<std::string> names;
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (const std::string name = input_.event_name(c); name == dpu::counter_name(c))
                names.push_back(name + " (what it counts is not known)");
            else if (name != "–")
                names.push_back(
                    fmt::format("{} {}{}", dpu::counter_name(c), name, input_.is_driven(c) ? "" : " (not connected)"));
        out.print("mode      {}\n", input_.mode() ? input_.mode_text() : "not known: DP_TC is missing");
        out.print("counters  {}\n", fmt::join(names, ", "));
        if (const std::string how = input_.parameter("cycles"); !how.empty()) out.print("cycles    {}\n", how);
        if (costs_->knows_time())
            out.print("time      {} cycles in {} intervals\n", grouped(costs_->time()),
                      grouped(costs_->readings() + 1));
        else
            out.print(
                "time      no counter counts CYCLES: places in time are numbers of readings, and there are no rates\n");
        const auto troubles = losses();
        if (troubles.empty()) out.write("lost      nothing\n");
        for (const std::string& trouble : troubles) out.print("lost      {}\n", trouble);
    }
    [[nodiscard]] std::vector<std::string> losses() const {
        std::vector<std::string> out;
        const dpu::Totals& t = decoded_.totals;
        if (t.lost != 0)
            out.push_back(
                fmt::format("{} found no room in the trace write buffer; the intervals around are "
                            "<unattributed>",
                            counted(t.lost, "entry", "entries")));
        if (decoded_.overwritten) out.emplace_back("older trace was overwritten; what came before is <before>");
        if (const std::uint64_t missing = input_.missing_bytes(); missing != 0)
            out.push_back(fmt::format("the file of the buffer lacks {} that were written; give the whole one",
                                      counted(missing, "byte")));
        else if (decoded_.cut)
            out.emplace_back("the file of the buffer is cut; give the whole one to see the rest");
        for (unsigned r = 0; r < gap_reasons; ++r)
            if (const auto reason = static_cast<GapReason>(r); t.gaps[r] != 0 && reason != GapReason::padding)
                out.push_back(fmt::format("{} in {}: {}", counted(t.gap_bytes[r], "byte"),
                                          counted(t.gaps[r], "stretch", "stretches"), name(reason)));
        if (!setup_.complete) out.emplace_back("the unit still held trace when the buffer was read");
        return out;
    }
    [[nodiscard]] Table reconciliation() const {
        Table table({{"counter", "counter", true},
                     {"event", "event", true},
                     {"sum", "sum of all rows"},
                     {"first", "first value"},
                     {"last", "last value"},
                     {"counted", "first - last"},
                     {"residual", "residual"}});
        const auto all = costs_->reconciled();
        const auto hex = [](const std::optional<std::uint32_t>& v) {
            return v ? Value(fmt::format("{:#010x}", *v), *v) : Value("-", nullptr);
        };
        for (const unsigned c : counters_)
            table.add({Value(std::string(dpu::counter_name(c))), Value(input_.event_name(c)), Value(all[c].sum),
                       hex(all[c].from), hex(all[c].to), Value(std::uint64_t{all[c].counted()}),
                       Value(all[c].residual())});
        return table;
    }
    [[nodiscard]] bool reconciles() const {
        const auto all = costs_->reconciled();
        return std::all_of(all.begin(), all.end(), [](const auto& r) { return r.residual() == 0; });
    }
    void print_reconciliation(Output& out) const {
        out.write(
            "\nreconciled: the rows of every view add up to what the counters say (modulo 2^31, as they count)\n");
        reconciliation().print_text(out, "  ");
        if (costs_->wide() != 0)
            out.print("  {} with a difference above 2^30: a counter may have wrapped unseen in it\n",
                      counted(costs_->wide(), "interval"));
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
                {"time", costs_->time()},
                {"time_in", costs_->knows_time() ? "cycles" : "readings"},
                {"lost", losses()},
                {"reconciled", reconciliation().json()}};
    }

    Status finish(Output& out) const {
        std::string why;
        if (out.close(why) != cli::decoded) {
            say("error", why);
            return unreadable;
        }
        warn(input_);
        for (const std::string& problem : problems_) say("warning", problem);
        const dpu::Totals& t = decoded_.totals;
        std::uint64_t entries = 0;
        for (const std::uint64_t n : t.entries) entries += n;
        if (entries == 0) {
            say("error", fmt::format("{}: not one entry of trace: {}", options_.capture,
                                     input_.capture().buffer.empty() ? "the capture has no buffer, only Nexus messages"
                                     : t.bytes == t.gap_bytes[static_cast<std::size_t>(GapReason::padding)]
                                         ? "nothing was written to the buffer"
                                         : "its words are no entries of the mode that DP_TC "
                                           "says; check dpu_base, byte_order and DP_TC"));
            return nothing;
        }
        if (!reconciles()) {
            say("error",
                "the rows do not add up to what the counters say: damaged trace that looks like readings, or "
                "registers of another run; 'waymark packets' shows the entries");
            return nothing;
        }
        if (decoded_.cut) return unreadable;
        return options_.strict && !losses().empty() ? nothing : cli::decoded;
    }

private:
    DpuAnswer(DpuInput input, const DpuOptions& options) : input_(std::move(input)), options_(options) {}

    waymark::Status prepare() {
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
        std::vector<std::string> names;
        for (const unsigned c : counters_) {
            const std::string full = input_.event_name(c);
            if (options_.counter == dpu::counter_name(c) || options_.counter == full) {
                sorted_by_ = c;
                return Nothing{};
            }
            names.push_back(full);
        }
        return Error{Errc::usage, fmt::format("--counter {}: no counter counts that; there are {}", options_.counter,
                                              fmt::join(names, ", "))};
    }
    /// `0x8000-0x9000` or `main`: a function, from its first byte to the next symbol.
    waymark::Status add_range(const std::string& text) {
        const auto dash = text.find('-');
        std::uint64_t from = 0, to = 0;
        if (dash != text.npos && wire::scan_number(text.substr(0, dash), from) &&
            wire::scan_number(text.substr(dash + 1), to)) {
            if (to <= from || to > 0xffffffff)
                return Error{Errc::usage, fmt::format("--range {}: the second address lies behind the first", text)};
        } else if (const auto address = code_.address_of(text)) {
            from = *address;
            constexpr std::uint64_t longest = 1 << 20;
            const auto whole = code_.function(*address);
            for (to = from + 2; to < from + longest && code_.function(static_cast<std::uint32_t>(to)) == whole;)
                to += 2;
        } else {
            return Error{Errc::usage,
                         fmt::format("--range {}: expected addresses such as 0x8000-0x9000, or a function of "
                                     "the program",
                                     text)};
        }
        range_names_.push_back(text);
        setup_.ranges.emplace_back(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to));
        return Nothing{};
    }

    DpuInput input_;
    const DpuOptions& options_;
    DpuCode code_;
    std::vector<std::string> problems_, range_names_;
    analysis::DpuSetup setup_;
    std::unique_ptr<DpuCosts> costs_;
    pipeline::DpuDecoded decoded_;
    std::vector<unsigned> counters_;
    unsigned sorted_by_ = 0;
};

// ---- views

/// Events per 1000 cycles.
Value rate(const DpuAnswer& a, const DpuCounts& counts, unsigned counter) {
    const auto cycles = a.setup().cycles;
    if (!cycles || counts[*cycles] == 0 || !a.input().is_driven(counter)) return {};
    const double value = 1000.0 * static_cast<double>(counts[counter]) / static_cast<double>(counts[*cycles]);
    return {fmt::format("{:.1f}", value), value};
}

Table tasks(const DpuAnswer& a) {
    const unsigned key = a.sorted_by();
    const std::string name = a.input().event_name(key);
    std::vector<Table::Column> columns{{"task", "task", true}, {"activations", "stays"}, {"share", "share"}};
    a.counter_columns(columns);
    columns.insert(columns.end(), {{"mean " + name, "mean stay"},
                                   {"least " + name, "least"},
                                   {"most " + name, "most"},
                                   {"sampled", ""},
                                   {"tail", ""}});
    for (const unsigned c : a.counters())
        if (a.setup().cycles && c != *a.setup().cycles)
            columns.push_back({a.input().event_name(c) + " per 1000 cycles", ""});
    Table table(columns);
    std::vector<std::pair<analysis::DpuOwner, analysis::DpuTask>> rows(a.costs().tasks().begin(),
                                                                       a.costs().tasks().end());
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& x, const auto& y) { return x.second.sum[key] > y.second.sum[key]; });
    for (const auto& [who, task] : rows) {
        std::vector<Value> row{Value(a.owner_text(who)),
                               who.is_context() ? Value(task.stays.times) : Value("-", nullptr),
                               Value::ratio(task.sum[key], a.costs().total()[key])};
        a.counter_values(row, task.sum);
        row.push_back(Value::mean(task.stays.sum[key], task.stays.times));
        row.push_back(task.stays.times == 0 ? Value() : Value(task.stays.least[key]));
        row.push_back(task.stays.times == 0 ? Value() : Value(task.stays.most[key]));
        row.push_back(a.count(task.sampled, key));
        row.push_back(a.count(task.tail, key));
        for (const unsigned c : a.counters())
            if (a.setup().cycles && c != *a.setup().cycles) row.push_back(rate(a, task.sum, c));
        table.add(std::move(row));
    }
    return table;
}

Table functions(const DpuAnswer& a, std::uint64_t limit, std::size_t& left_out) {
    const unsigned key = a.sorted_by();
    const std::string name = a.input().event_name(key);
    std::vector<Table::Column> columns{
        {"function", "function", true}, {"address", ""}, {"calls", "calls"}, {"share", "share"}};
    a.counter_columns(columns);
    columns.insert(columns.end(), {{name + " inclusive", "with callees"},
                                   {"mean " + name, "mean call"},
                                   {"least " + name, "least"},
                                   {"most " + name, "most"},
                                   {name + " crossed", ""}});
    for (const unsigned c : a.counters())
        if (c != key) columns.push_back({a.input().event_name(c) + " inclusive", ""});
    Table table(columns);
    std::vector<std::pair<DpuCode::Function, analysis::DpuFunctionCost>> rows(a.costs().functions().begin(),
                                                                              a.costs().functions().end());
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& x, const auto& y) { return x.second.self[key] > y.second.self[key]; });
    left_out = limit == 0 || rows.size() <= limit ? 0 : rows.size() - limit;
    rows.resize(rows.size() - left_out);
    for (const auto& [f, cost] : rows) {
        const bool none = f.address == 0;
        std::vector<Value> row{
            Value(DpuAnswer::function_text(f)), none ? Value() : Value(fmt::format("{:#010x}", f.address), f.address),
            none ? Value("-", nullptr) : Value(cost.calls), Value::ratio(cost.self[key], a.costs().total()[key])};
        a.counter_values(row, cost.self);
        const auto& calls = cost.activations;
        row.push_back(none ? Value() : a.count(cost.inclusive, key));
        row.push_back(Value::mean(calls.sum[key], calls.times));
        row.push_back(calls.times == 0 ? Value() : Value(calls.least[key]));
        row.push_back(calls.times == 0 ? Value() : Value(calls.most[key]));
        row.push_back(a.count(cost.crossed, key));
        for (const unsigned c : a.counters())
            if (c != key) row.push_back(a.count(cost.inclusive, c));
        table.add(std::move(row));
    }
    return table;
}

std::string path_text(const DpuAnswer& a, std::size_t at) {
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
    std::vector<Table::Column> columns{{"path", "", true}, {"calls", "calls"}, {"share", "share"}};
    a.counter_columns(columns);
    columns.push_back({"", "path", true, true});
    Table table(columns);
    std::vector<std::size_t> order;
    for (std::size_t i = 1; i < a.costs().paths().size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
        return a.costs().paths()[x].self[key] > a.costs().paths()[y].self[key];
    });
    left_out = limit == 0 || order.size() <= limit ? 0 : order.size() - limit;
    order.resize(order.size() - left_out);
    for (const std::size_t i : order) {
        const analysis::DpuPath& p = a.costs().paths()[i];
        const std::string text = path_text(a, i);
        std::vector<Value> row{Value(text), Value(p.calls), Value::ratio(p.self[key], a.costs().total()[key])};
        a.counter_values(row, p.self);
        row.push_back(Value(text, nullptr));
        table.add(std::move(row));
    }
    return table;
}

Table interrupts(const DpuAnswer& a) {
    const unsigned key = a.sorted_by();
    const std::string name = a.input().event_name(key);
    std::vector<Table::Column> columns{{"service", "service", true}, {"entry", "entry", true}, {"times", "times"}};
    a.counter_columns(columns);
    columns.insert(columns.end(), {{"mean " + name, "mean"}, {"least " + name, "least"}, {"most " + name, "most"}});
    Table table(columns);
    for (const auto& [entry, service] : a.costs().services()) {
        std::vector<Value> row{Value(DpuAnswer::function_text(a.code().function(entry))),
                               Value(fmt::format("{:#010x}", entry), entry), Value(service.stays.times)};
        a.counter_values(row, service.stays.sum);
        row.push_back(Value::mean(service.stays.sum[key], service.stays.times));
        row.push_back(Value(service.stays.least[key]));
        row.push_back(Value(service.stays.most[key]));
        table.add(std::move(row));
    }
    return table;
}

Table ranges(const DpuAnswer& a) {
    std::vector<Table::Column> columns{{"range", "range", true}, {"part", "part", true}, {"intervals", "intervals"}};
    a.counter_columns(columns);
    Table table(columns);
    const auto row = [&](const std::string& name, const char* part, Value intervals, const DpuCounts& counts) {
        std::vector<Value> values{Value(name), Value(std::string(part)), std::move(intervals)};
        a.counter_values(values, counts);
        table.add(std::move(values));
    };
    for (std::size_t i = 0; i < a.range_names().size(); ++i) {
        const analysis::DpuRange& r = a.costs().ranges()[i];
        row(a.range_names()[i], "inside", Value(r.intervals), r.inside);
        row(a.range_names()[i], "crossing its border", Value(r.crossings), r.crossing);
    }
    row("everything else", "", {}, a.costs().outside_ranges());
    return table;
}

Table timeline(const DpuAnswer& a, std::uint64_t limit, std::size_t& left_out) {
    std::vector<Table::Column> columns{{"begin", "begin"}, {"end", "end"}, {"task", "task", true}};
    a.counter_columns(columns);
    for (const unsigned c : a.counters())
        if (a.setup().cycles && c != *a.setup().cycles)
            columns.push_back({a.input().event_name(c) + " per 1000 cycles", a.input().event_name(c) + "/1000"});
    Table table(columns);
    const auto& stays = a.costs().stays();
    const std::size_t shown = limit == 0 ? stays.size() : std::min<std::size_t>(stays.size(), limit);
    left_out = stays.size() - shown + a.costs().stays_left_out();
    for (std::size_t i = 0; i < shown; ++i) {
        const analysis::DpuStay& s = stays[i];
        std::vector<Value> row{Value(s.begin), Value(s.end), Value(a.task_text(s.context))};
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

Table loops(const DpuAnswer& a) {
    Table table({{"last", "last address", true},
                 {"start", "start", true},
                 {"kind", "kind", true},
                 {"runs", "runs"},
                 {"iterations", "iterations"},
                 {"mean", "mean"},
                 {"least", "least"},
                 {"most", "most"},
                 {"body", "body"},
                 {"instructions", "instructions"},
                 {"where", "where", true}});
    std::vector<std::pair<std::uint32_t, analysis::DpuLoop>> rows(a.costs().loops().begin(), a.costs().loops().end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
        return x.second.jumps + x.second.runs > y.second.jumps + y.second.runs;
    });
    for (const auto& [last, loop] : rows) {
        const std::uint64_t iterations = loop.jumps + loop.runs;
        std::optional<std::uint64_t> body;
        if (loop.start) body = a.code().instructions(*loop.start, last);
        table.add({Value(fmt::format("{:#010x}", last), last),
                   loop.start ? Value(fmt::format("{:#010x}", *loop.start), *loop.start) : Value("-", nullptr),
                   Value(std::string(loop.is_short ? "short" : "long")), Value(loop.runs), Value(iterations),
                   Value::mean(iterations, loop.runs), Value(loop.least + 1), Value(loop.most + 1),
                   body ? Value(*body) : Value("-", nullptr), body ? Value(*body * iterations) : Value("-", nullptr),
                   Value(DpuAnswer::function_text(a.code().function(last)))});
    }
    return table;
}

Table data(const DpuAnswer& a) {
    Table table({{"offset", "offset", true}, {"time", "time"}, {"task", "task", true}, {"value", "value", true}});
    for (const analysis::DpuDatum& d : a.costs().data())
        table.add({Value(fmt::format("{:#x}", d.offset.value), d.offset.value), Value(d.time),
                   d.context ? Value(a.task_text(*d.context)) : Value("-", nullptr),
                   Value(fmt::format("{:#010x}", d.value), d.value)});
    return table;
}

Table health(const DpuAnswer& a) {
    Table table({{"item", "what", true}, {"count", "count"}, {"bytes", "bytes"}});
    const dpu::Totals& t = a.decoded().totals;
    std::size_t at = 0;
    dpu::Entries::for_each([&]<class P>() {
        if (const std::uint64_t n = t.entries[at++]; n != 0)
            table.add({Value(fmt::format("{} {}", P::info.id, P::info.name)), Value(n), Value(n * 4 * P::info.words)});
    });
    for (unsigned r = 0; r < gap_reasons; ++r)
        if (t.gaps[r] != 0)
            table.add({Value(fmt::format("gap: {}", name(static_cast<GapReason>(r)))), Value(t.gaps[r]),
                       Value(t.gap_bytes[r])});
    table.add({Value(std::string("entries lost for want of room")), Value(t.lost), Value("-", nullptr)});
    table.add({Value(std::string("doubtful, next to damage")), Value(t.doubtful), Value("-", nullptr)});
    table.add({Value(std::string("intervals that may have wrapped")), Value(t.wide), Value("-", nullptr)});
    table.add({Value(std::string("all")), Value("-", nullptr), Value(t.bytes)});
    return table;
}

// ---- commands

struct View {
    const char *name, *title, *help, *footer;
    bool rows;  ///< sorted by a counter, and limited
};

/// Why a view that needs another mode is empty.
std::string needs(const DpuAnswer& a, const char* mode, const char* option) {
    return fmt::format("mode {} does not tell: record with --mode {} ({})", a.input().mode_text(), option, mode);
}

Status run_view(const DpuOptions& options, const std::string& view) {
    const auto made = DpuAnswer::make(options);
    if (!made) return fail(made.error());
    const DpuAnswer& a = **made;
    auto out = Output::open(options.output, options.capture);
    if (!out) return fail(out.error());
    const bool text = options.format == "text";
    const std::uint64_t limit = text ? options.limit : 0;
    std::size_t left_out = 0;
    const bool flow = a.input().mode() == dpu::TraceMode::flow;
    struct Titled {
        std::string title;
        Table table;
        std::size_t left_out;
    };
    std::vector<Titled> tables;
    std::vector<std::string> notes;
    const auto add = [&](const char* title, Table table) {
        tables.push_back({title, std::move(table), std::exchange(left_out, 0)});
    };
    const bool report = view == "report";
    if (report || view == "tasks") add("per task: what each had of the counters, and how long it stayed", tasks(a));
    if (report || view == "functions") {
        if (flow)
            add("per function: its own cost, and with what it called",
                functions(a, report && limit != 0 ? 15 : limit, left_out));
        else if (!report)
            notes.push_back(needs(a, "FLOW", "flow"));
        if (flow && !report && a.costs().returns_without_call() != 0)
            notes.push_back(
                fmt::format("{} led to where no call is open", counted(a.costs().returns_without_call(), "return")));
    }
    if (view == "paths") {
        if (flow)
            add("per call path: what was spent at its end", paths(a, limit, left_out));
        else
            notes.push_back(needs(a, "FLOW", "flow"));
    }
    if (report || view == "interrupts") {
        Table table = interrupts(a);
        if (!table.empty())
            add("per interrupt and system call: from entry to return", std::move(table));
        else if (!report)
            notes.emplace_back("no interrupt, exception or system call is in the trace; modes task and flow show them");
    }
    if (view == "ranges") {
        add("per range of code; an interval that crosses a border is not split", ranges(a));
        if (options.ranges.empty()) notes.emplace_back("no range given: --range 0x8000-0x9000 or --range FUNCTION");
    }
    if (view == "timeline")
        add(a.costs().knows_time() ? "stays, in cycles from the first" : "stays, by number of the reading",
            timeline(a, limit, left_out));
    if (report || view == "loops") {
        Table table = loops(a);
        if (!table.empty())
            add("loops: iterations (jumps back + 1 for each run); instructions are iterations times the body",
                std::move(table));
        else if (!report)
            notes.push_back(needs(a, "EONCE_COMP", "compressed"));
    }
    if (report || view == "data") {
        Table table = data(a);
        if (!table.empty())
            add("user data: what the program wrote to DP_TD", std::move(table));
        else if (!report)
            notes.emplace_back(
                "the program wrote nothing to DP_TD (waymark_dpu.h), or neither UDEN nor mode user was on");
    }
    if (view == "health") add("what the buffer held", health(a));

    if (options.format == "json") {
        ordered_json json = a.json_head();
        for (const auto& [title, table, more] : tables) {
            const std::string key = report ? title.substr(0, title.find(':')) : "rows";
            json[key] = table.json();
        }
        if (!notes.empty()) json["notes"] = notes;
        out->write(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    } else if (options.format == "tsv") {
        say("note", dpu::layout_note);
        if (!tables.empty()) tables.front().table.print_tsv(*out);
    } else {
        a.print_head(*out);
        for (const auto& [title, table, more] : tables) {
            out->print("\n{}\n", title);
            if (view == "timeline") print_lanes(a, *out);
            table.print_text(*out, "  ");
            if (more != 0) out->print("  … and {} more; --limit 0 shows all\n", grouped(more));
        }
        for (const std::string& note : notes) out->print("\n{}\n", note);
        a.print_reconciliation(*out);
    }
    return a.finish(*out);
}

/// One line for each path: names from the root, and the count.
Status run_folded(const DpuOptions& options) {
    const auto made = DpuAnswer::make(options);
    if (!made) return fail(made.error());
    const DpuAnswer& a = **made;
    auto out = Output::open(options.output, options.capture);
    if (!out) return fail(out.error());
    say("note", dpu::layout_note);
    for (std::size_t i = 1; i < a.costs().paths().size(); ++i)
        if (const std::uint64_t n = a.costs().paths()[i].self[a.sorted_by()]; n != 0)
            out->print("{} {}\n", path_text(a, i), n);
    return a.finish(*out);
}

}  // namespace

Run add_dpu_program(CLI::App& dpu);

Run add_dpu(CLI::App& app) {
    CLI::App& dpu = *app.add_subcommand("dpu", "Counters and trace of a Debug and Profiling Unit (DPU)");
    dpu.require_subcommand(1);
    dpu.footer(
        "Captures are folders with a dpu.ini. Every view adds up to what the counters say, and shows that it does.\n"
        "Words of the trace have layout WL-1: flags, entries and event sets as Waymark defines them, for the "
        "published\n"
        "description of the unit omits them.\n");
    auto commands = std::make_shared<std::vector<std::pair<CLI::App*, Run>>>();
    constexpr const char* status =
        "\nExit status: 0 there is an answer; 1 there is no entry, the rows do not add up, or something was lost "
        "under\n"
        "--strict; 2 usage; 3 the capture cannot be read to its end, or the output not be written.\n";
    const std::array<View, 9> views{{
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
         "the first led to. Code that jumps elsewhere without a call is counted there all the same (column crossed of\n"
         "tsv). With recursion the outermost activation counts.\n\n  waymark dpu functions DIR --limit 0\n",
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
