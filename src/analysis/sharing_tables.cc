/// Tables of cache lines that threads share.
#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "waymark/analysis/spe_tables.h"
#include "waymark/capture/perf_data.h"

namespace waymark::analysis {

namespace perf = capture::perf;
using answers::Cell;
using answers::Column;
using answers::Columns;
using answers::Table;

std::string line_text(const LineKey& key) {
    if (key.physical) return fmt::format("{:#x} physical", key.line);
    return fmt::format("{:#x}{}", key.line,
                       key.pid == perf::nobody ? std::string() : fmt::format(" of process {}", key.pid));
}

namespace {
/// The first three names, and the number of further ones.
std::string first_names(const std::set<std::string>& names) {
    constexpr std::size_t most = 3;
    std::string out;
    std::size_t shown = 0;
    for (const std::string& name : names) {
        if (++shown > most) break;
        out += (out.empty() ? "" : ", ") + name;
    }
    return names.size() > most ? out + fmt::format(" and {} more", names.size() - most) : out;
}
}  // namespace

std::string SharingTables::variables_of(const SharedLine& line) const {
    std::set<std::string> names;
    if (!line.key.physical)
        for (const LineAccess& a : line.accesses)
            if (const auto found = program_.variable(a.mapping, line.key.line + a.offset)) names.emplace(found->name);
    return first_names(names);
}

std::string SharingTables::variable_of(const SharedLine& line, const LineAccess& a) const {
    if (line.key.physical) return {};
    const auto found = program_.variable(a.mapping, line.key.line + a.offset);
    if (!found) return {};
    return found->offset == 0 ? std::string(found->name) : fmt::format("{}+{:#x}", found->name, found->offset);
}

std::string SharingTables::place_of(const LineAccess& a, bool whole) const {
    if (const auto line = program_.line(a.mapping, a.pc))
        return fmt::format("{}:{}", whole ? line->file : Program::short_name(line->file), line->line);
    return fmt::format("{:#x}", a.pc);
}

Table SharingTables::summary(const std::vector<SharedLine>& lines) const {
    Columns<SharedLine> columns;
    const auto count = [&](const char* name, const char* what, auto value) {
        columns.add(Column::count(name, name, what), [=](const SharedLine& l) { return std::uint64_t{value(l)}; });
    };
    columns.add(Column::text("sharing", "sharing", "false, mixed or true"),
                [](const SharedLine& l) { return name(l.kind); });
    columns.add(Column::count("samples", "samples ", "of accesses"),
                [](const SharedLine& l) { return sample_count(l.samples()); });
    count("loads", "of these", [](const SharedLine& l) { return l.loads; });
    count("stores", "of these", [](const SharedLine& l) { return l.stores; });
    count("apart", "at bytes no other thread writes, while another thread writes elsewhere in the line",
          [](const SharedLine& l) { return l.apart; });
    count("threads", "that use it", [](const SharedLine& l) { return l.accessors; });
    count("writers", "of these", [](const SharedLine& l) { return l.writers; });
    columns.add(Column::count("from_other", "from other core", "samples with data from another core's cache"),
                [](const SharedLine& l) { return Cell(Cell::share(l.from_other, l.samples()).shown, l.from_other); });
    columns.add(Column::real("mean_total", "cycles", "mean total latency", "cycles"),
                [](const SharedLine& l) { return Cell::mean(l.total, l.samples()); });
    columns.add(Column::text("line", "line", "its address"), [](const SharedLine& l) { return line_text(l.key); });
    columns.add(Column::text("variables", "variable", "that lie in it"),
                [&](const SharedLine& l) { return variables_of(l); });
    columns.add(Column::text("places", "written and read in", "functions"), [&](const SharedLine& l) {
        std::set<std::string> functions;
        for (const LineAccess& a : l.accesses) functions.insert(function_or_address(program_, a.mapping, a.pc));
        return first_names(functions);
    });
    return columns.table(lines);
}

Table SharingTables::places(const SharedLine& line) const {
    struct Sum {
        std::uint64_t loads{}, stores{}, total{}, from_other{};
        std::string variable;
        [[nodiscard]] std::uint64_t samples() const { return loads + stores; }
    };
    std::map<std::tuple<std::uint32_t, Accessor, std::string, std::string>, Sum> rows;
    for (const LineAccess& a : line.accesses) {
        Sum& s = rows[{a.offset, a.accessor, function_or_address(program_, a.mapping, a.pc), place_of(a, false)}];
        (a.store ? s.stores : s.loads) += a.samples;
        s.total += a.total;
        s.from_other += a.from_other;
        if (s.variable.empty()) s.variable = variable_of(line, a);
    }
    using Row = std::pair<const std::tuple<std::uint32_t, Accessor, std::string, std::string>, Sum>;
    Columns<Row> columns;
    columns.add(Column::count("offset", "offset", "in the line", "bytes"),
                [](const Row& r) { return Cell(fmt::format("+{:#04x}", std::get<0>(r.first)), std::get<0>(r.first)); });
    columns.add(Column::text("thread", "thread", "or CPU, where threads are not known"), [&](const Row& r) {
        const Accessor a = std::get<1>(r.first);
        return Cell(a.is_cpu() ? fmt::format("CPU {}", a.number()) : thread_(perf::nobody, a.number()));
    });
    columns.add(Column::count("samples", "samples ", "of accesses"),
                [](const Row& r) { return sample_count(r.second.samples()); });
    columns.add(Column::count("loads", "loads", "of these"), [](const Row& r) { return r.second.loads; });
    columns.add(Column::count("stores", "stores", "of these"), [](const Row& r) { return r.second.stores; });
    columns.add(Column::count("from_other", "from other core", "samples with data from another core's cache"),
                [](const Row& r) {
                    return Cell(Cell::share(r.second.from_other, r.second.samples()).shown, r.second.from_other);
                });
    columns.add(Column::real("mean_total", "cycles", "mean total latency", "cycles"),
                [](const Row& r) { return Cell::mean(r.second.total, r.second.samples()); });
    columns.add(Column::text("variable", "variable", "and offset in it"),
                [](const Row& r) { return r.second.variable; });
    columns.add(Column::text("function", "function", "that accesses it"),
                [](const Row& r) { return std::get<2>(r.first); });
    columns.add(Column::text("place", "at", "line of source, or address"),
                [](const Row& r) { return std::get<3>(r.first); });
    return columns.table(rows);
}

Table SharingTables::accesses(const std::vector<SharedLine>& lines, bool of_lines) const {
    using Row = std::pair<const SharedLine*, const LineAccess*>;
    std::vector<Row> rows;
    for (const SharedLine& l : lines)
        for (const LineAccess& a : l.accesses) rows.emplace_back(&l, &a);
    const auto if_known = [](bool known, std::uint64_t v) { return known ? Cell(v) : Cell(); };
    Columns<Row> columns;
    const auto of_line = [&](Column column, auto show) {
        if (of_lines) columns.add(std::move(column), [=](const Row& r) { return Cell(show(*r.first)); });
    };
    const auto add = [&](Column column, auto show) {
        columns.add(std::move(column), [=](const Row& r) { return Cell(show(*r.second)); });
    };
    of_line(Column::address("line", "", "its first byte"),
            [](const SharedLine& l) { return fmt::format("{:#x}", l.key.line); });
    of_line(Column::count("pid", "", "process of a virtual line"),
            [=](const SharedLine& l) { return if_known(!l.key.physical && l.key.pid != perf::nobody, l.key.pid); });
    of_line(Column::flag("physical", "", "the address is physical"),
            [](const SharedLine& l) { return Cell("", l.key.physical); });
    of_line(Column::text("sharing", "", "false, mixed or true"), [](const SharedLine& l) { return name(l.kind); });
    add(Column::count("offset", "", "in the line", "bytes"),
        [](const LineAccess& a) { return std::uint64_t{a.offset}; });
    add(Column::count("tid", "", "thread"),
        [=](const LineAccess& a) { return if_known(!a.accessor.is_cpu(), a.accessor.number()); });
    add(Column::count("cpu", "", "CPU, where threads are not known"),
        [=](const LineAccess& a) { return if_known(a.accessor.is_cpu(), a.accessor.number()); });
    add(Column::flag("store", "", "or an atomic operation"), [](const LineAccess& a) { return Cell("", a.store); });
    add(Column::count("samples", "", "of it"), [](const LineAccess& a) { return a.samples; });
    add(Column::count("cycles", "", "sum of total latencies", "cycles"), [](const LineAccess& a) { return a.total; });
    add(Column::count("from_other", "", "samples with data from another core's cache"),
        [](const LineAccess& a) { return a.from_other; });
    add(Column::address("pc", "", "of the instruction"),
        [](const LineAccess& a) { return fmt::format("{:#x}", a.pc); });
    add(Column::text("function", "", "it is in"),
        [&](const LineAccess& a) { return function_or_address(program_, a.mapping, a.pc); });
    add(Column::text("place", "", "line of source, or address"),
        [&](const LineAccess& a) { return place_of(a, true); });
    columns.add(Column::text("variable", "", "and offset in it"),
                [&](const Row& r) { return variable_of(*r.first, *r.second); });
    return columns.table(rows);
}

}  // namespace waymark::analysis
