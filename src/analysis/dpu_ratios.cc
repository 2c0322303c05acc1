#include "waymark/analysis/dpu_ratios.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace waymark::analysis {

using namespace answers;

namespace {

constexpr std::string_view ratios_title = "ratios";

/// The name of a counter split into event and qualifier, without the counter's own name: `A0 CYCLES (user)` gives
/// `CYCLES` and ` (user)`.
struct NameParts {
    std::string_view event, when;
};
NameParts parts_of(std::string_view name) {
    const bool counter =
        name.size() > 3 && (name[0] == 'A' || name[0] == 'B') && name[1] >= '0' && name[1] <= '2' && name[2] == ' ';
    if (counter) name.remove_prefix(3);
    const auto space = name.find(' ');
    return {name.substr(0, space), space == name.npos ? std::string_view() : name.substr(space)};
}

struct Definition {
    std::string_view name, formula;
    std::array<std::string_view, 1> above;
    std::array<std::string_view, 3> below;
    bool complement = false;
};
constexpr std::array definitions{
    Definition{"load", "1 - WAIT / CYCLES", {"WAIT"}, {"CYCLES"}, true},
    Definition{"cycles per set", "CYCLES / VLES", {"CYCLES"}, {"VLES"}},
    Definition{"stalled", "STALL_ALL / CYCLES", {"STALL_ALL"}, {"CYCLES"}},
    Definition{"stalled for program", "STALL_PROG / CYCLES", {"STALL_PROG"}, {"CYCLES"}},
    Definition{"stalled for data", "STALL_DATA / CYCLES", {"STALL_DATA"}, {"CYCLES"}},
    Definition{"stalled by interlocks", "STALL_INTERLOCK / CYCLES", {"STALL_INTERLOCK"}, {"CYCLES"}},
    Definition{"stalled by changes of flow", "STALL_COF / CYCLES", {"STALL_COF"}, {"CYCLES"}},
    Definition{"stalled by write buffers", "STALL_WB / CYCLES", {"STALL_WB"}, {"CYCLES"}},
    Definition{"stalled by banks", "STALL_BANK / CYCLES", {"STALL_BANK"}, {"CYCLES"}},
    Definition{"IC miss rate", "IC_MISS / (IC_HIT + IC_MISS)", {"IC_MISS"}, {"IC_HIT", "IC_MISS"}},
    Definition{"DC miss rate", "DC_MISS / (DC_HIT + DC_MISS)", {"DC_MISS"}, {"DC_HIT", "DC_MISS"}},
    Definition{"L2 miss rate", "L2_MISS / (L2_HIT + L2_MISS)", {"L2_MISS"}, {"L2_HIT", "L2_MISS"}},
    Definition{"cycles lost per DC miss", "STALL_DATA / DC_MISS", {"STALL_DATA"}, {"DC_MISS"}},
    Definition{"bus utilisation",
               "BUS_BUSY / (BUS_BUSY + BUS_WAIT + BUS_IDLE)",
               {"BUS_BUSY"},
               {"BUS_BUSY", "BUS_WAIT", "BUS_IDLE"}},
};

}  // namespace

std::optional<double> DpuRatio::value(std::span<const std::uint64_t> counts) const {
    const auto sum = [&](const std::vector<std::size_t>& places) {
        std::uint64_t out = 0;
        for (const std::size_t at : places) out += at < counts.size() ? counts[at] : 0;
        return out;
    };
    const std::uint64_t over = sum(below);
    if (over == 0) return std::nullopt;
    const double quotient = static_cast<double>(sum(above)) / static_cast<double>(over);
    return complement ? 1 - quotient : quotient;
}

std::vector<DpuRatio> dpu_ratios(const std::vector<std::string>& names) {
    std::vector<std::string_view> whens;
    for (const std::string& name : names) {
        const std::string_view when = parts_of(name).when;
        // A counter that changed has counts of several events.
        if (when.find("changed on the way") != when.npos) continue;
        if (std::find(whens.begin(), whens.end(), when) == whens.end()) whens.push_back(when);
    }
    std::vector<DpuRatio> out;
    for (const std::string_view when : whens)
        for (const Definition& d : definitions) {
            DpuRatio ratio{std::string(d.name) + std::string(when), std::string(d.formula), {}, {}, d.complement};
            const auto find = [&](std::string_view event, std::vector<std::size_t>& to) {
                if (event.empty()) return true;
                const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
                    const NameParts parts = parts_of(name);
                    return parts.event == event && parts.when == when;
                });
                if (found == names.end()) return false;
                to.push_back(static_cast<std::size_t>(found - names.begin()));
                return true;
            };
            const auto all = [&](const auto& events, std::vector<std::size_t>& to) {
                return std::all_of(events.begin(), events.end(), [&](std::string_view e) { return find(e, to); });
            };
            if (all(d.above, ratio.above) && all(d.below, ratio.below)) out.push_back(std::move(ratio));
        }
    return out;
}

Table ratio_table(const std::string& of, const std::vector<DpuRatio>& ratios, const std::vector<DpuRatioRow>& rows) {
    Table table{.title = std::string(ratios_title), .columns = {Column::text(of)}};
    for (const DpuRatio& r : ratios) {
        table.columns.push_back(Column::real(r.name, r.name));
        table.note += fmt::format("{}{} = {}", table.note.empty() ? "" : "; ", r.name, r.formula);
    }
    for (const auto& [name, counts] : rows) {
        std::vector<Cell> row{name};
        bool any = false;
        for (const DpuRatio& r : ratios) {
            const auto value = r.value(counts);
            any |= value.has_value();
            row.push_back(value ? Cell(fmt::format("{:.4f}", *value), *value) : Cell::none());
        }
        if (any) table.rows.push_back(std::move(row));
    }
    return table;
}

void add_dpu_ratios(Answers& answers) {
    std::erase_if(answers.tables, [](const Table& t) { return t.title == ratios_title; });
    std::vector<std::string> names;
    for (const Metric& m : answers.metrics) names.push_back(m.name);
    const std::vector<DpuRatio> ratios = dpu_ratios(names);
    if (ratios.empty()) return;
    const std::vector<FunctionCosts> functions = function_costs(answers);
    Costs all(names.size());
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        for (std::size_t m = 0; m < std::min(all.size(), functions[i].self.size()); ++m) all[m] += functions[i].self[m];
        if (!functions[i].self.empty()) order.push_back(i);
    }
    std::vector<DpuRatioRow> rows{{"all", all}};
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return functions[a].self[0] > functions[b].self[0]; });
    for (const std::size_t i : order) rows.emplace_back(answers.functions[i].name, functions[i].self);
    answers.tables.push_back(ratio_table("of", ratios, rows));
}

}  // namespace waymark::analysis
