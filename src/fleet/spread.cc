#include "waymark/fleet/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "hasher.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/own_code.h"

namespace waymark::fleet {

namespace {

using Groups = std::array<std::uint64_t, CaptureProfile::groups>;

double distance(const Groups& one, const Groups& all, std::uint64_t cost, std::uint64_t cost_of_all) {
    const double own = static_cast<double>(cost), others = static_cast<double>(cost_of_all - cost);
    if (own == 0 || others == 0) return 0;
    double sum = 0;
    for (std::size_t g = 0; g < one.size(); ++g)
        sum += std::fabs(static_cast<double>(one[g]) / own - static_cast<double>(all[g] - one[g]) / others);
    return sum / 2;
}

ProgramSpread spread_of_program(const std::vector<const CaptureProfile*>& profiles) {
    ProgramSpread out;
    out.program = profiles.front()->program;
    out.captures = profiles.size();
    Groups all{};
    std::uint64_t cost = 0;
    std::vector<std::uint64_t> costs;
    for (const CaptureProfile* p : profiles) {
        for (std::size_t g = 0; g < all.size(); ++g) all[g] = saturating(all[g], p->by_group[g]);
        cost = saturating(cost, p->cost);
        costs.push_back(p->cost);
    }
    std::sort(costs.begin(), costs.end());
    out.least = costs.front();
    out.median = costs[costs.size() / 2];
    out.most = costs.back();
    std::vector<double> distances;
    for (const CaptureProfile* p : profiles) {
        distances.push_back(distance(p->by_group, all, p->cost, cost));
        ++out.by_distance[std::min<std::size_t>(static_cast<std::size_t>(distances.back() * 10), 9)];
        if (distances.back() >= least_outlying) out.outliers.push_back({p->capture, distances.back()});
    }
    std::sort(distances.begin(), distances.end());
    out.median_distance = distances[distances.size() / 2];
    std::sort(out.outliers.begin(), out.outliers.end(), [](const OutlyingCapture& a, const OutlyingCapture& b) {
        return a.distance != b.distance ? a.distance > b.distance : a.capture < b.capture;
    });
    return out;
}

}  // namespace

CaptureProfile profile_of(const answers::Answers& answers, const PlannedCapture& capture) {
    CaptureProfile out;
    out.capture = capture.path;
    const bool only_system = std::ranges::all_of(capture.ran, answers::is_system_file, &RanFile::name);
    for (const RanFile& f : capture.ran)
        if (only_system || !answers::is_system_file(f.name)) out.program += (out.program.empty() ? "" : " ") + f.name;
    const std::vector<answers::FunctionCosts> costs = answers::function_costs(answers);
    for (std::size_t n = 0; n < costs.size() && n < answers.functions.size(); ++n) {
        if (costs[n].self.empty() || costs[n].self[0] == 0) continue;
        Hasher hasher;
        hasher.add(answers.functions[n].linkage_name.empty() ? answers.functions[n].name
                                                             : answers.functions[n].linkage_name);
        const std::size_t group = std::stoul(hasher.text().substr(0, 2), nullptr, 16) % CaptureProfile::groups;
        out.by_group[group] = saturating(out.by_group[group], costs[n].self[0]);
        out.cost = saturating(out.cost, costs[n].self[0]);
    }
    return out;
}

std::vector<ProgramSpread> spread_of(std::vector<CaptureProfile> profiles) {
    std::sort(profiles.begin(), profiles.end(),
              [](const CaptureProfile& a, const CaptureProfile& b) { return a.capture < b.capture; });
    std::map<std::string, std::vector<const CaptureProfile*>> programs;
    for (const CaptureProfile& p : profiles) programs[p.program].push_back(&p);
    std::vector<ProgramSpread> out;
    for (const auto& [program, captures] : programs) out.push_back(spread_of_program(captures));
    return out;
}

void add_spread(answers::Answers& sum, const std::vector<ProgramSpread>& spread) {
    using answers::Cell;
    using answers::Column;
    if (spread.empty()) return;
    const std::string unit = sum.metrics.empty() ? std::string() : sum.metrics.front().name;
    answers::Table programs{
        "captures by program",
        "Distance: half the sum of the differences between the shares of groups of functions in a capture and in the "
        "others of its program; 0: alike, 1: nothing in common.",
        {Column::text("program", "program", "files that ran, except the system's"),
         Column::count("captures", "captures", "captures of the program"),
         Column::count("least", "least " + unit, "cost of the cheapest capture", unit),
         Column::count("median", "median", "cost of a capture in the middle", unit),
         Column::count("most", "most", "cost of the most expensive capture", unit),
         Column::real("distance", "distance", "median distance of a capture from the others"),
         Column::count("outliers", "outliers", fmt::format("captures with a distance of {} or more", least_outlying))},
        {}};
    answers::Table outliers{fmt::format("captures that differ by {} or more", least_outlying),
                            programs.note,
                            {Column::real("distance", "distance", "from the other captures of the program"),
                             Column::text("capture", "capture", "its path"),
                             Column::text("program", "program", "files that ran, except the system's")},
                            {}};
    answers::Chart chart{answers::Chart::Kind::histogram,
                         "Distance of captures from the others of their program",
                         "distance",
                         "captures",
                         programs.note,
                         {}};
    std::array<std::uint64_t, 10> by_distance{};
    const auto distance_cell = [](double value) { return Cell(fmt::format("{:.3f}", value), answers::Value(value)); };
    for (const ProgramSpread& s : spread) {
        const std::string program = s.program.empty() ? "(not known)" : s.program;
        programs.add({Cell(program), Cell(s.captures), Cell(s.least), Cell(s.median), Cell(s.most),
                      distance_cell(s.median_distance), Cell(std::uint64_t{s.outliers.size()})});
        for (const OutlyingCapture& o : s.outliers)
            outliers.add({distance_cell(o.distance), Cell(o.capture), Cell(program)});
        for (std::size_t n = 0; n < by_distance.size(); ++n) by_distance[n] += s.by_distance[n];
    }
    // A table with thousands of rows is for programs: the job's report has all rows.
    constexpr std::size_t most_rows = 1000;
    programs.keep(most_rows);
    outliers.keep(most_rows);
    for (std::size_t n = 0; n < by_distance.size(); ++n)
        chart.bars.push_back({fmt::format("0.{} to {:.1f}", n, static_cast<double>(n + 1) / 10), by_distance[n], {}});
    sum.tables.push_back(std::move(programs));
    if (!outliers.empty()) sum.tables.push_back(std::move(outliers));
    sum.charts.push_back(std::move(chart));
}

}  // namespace waymark::fleet
