#include "waymark/analysis/spe_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "spe_fill.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

using namespace answers;

namespace perf = capture::perf;

namespace {

void charts(SpeFill& fill) {
    constexpr std::array<const char*, Profile::kinds> names{"loads", "stores", "branches", "other operations"};
    const auto& latency = fill.gathered.profile.latency();
    for (unsigned kind = 0; kind < Profile::kinds; ++kind) {
        Chart chart{Chart::Kind::histogram, fmt::format("latency of {}", names[kind]), "cycles", "samples", {}, {}};
        unsigned first = 0, last = Profile::buckets;
        while (first < last && latency[kind][first] == 0) ++first;
        while (last > first && latency[kind][last - 1] == 0) --last;
        for (unsigned b = first; b < last; ++b)
            chart.bars.push_back(
                {b < 2 ? std::to_string(b) : fmt::format("{}-{}", 1U << (b - 1), (1U << b) - 1), latency[kind][b], {}});
        if (chart.bars.empty()) continue;
        if (fill.gathered.profile.saturated() != 0)
            chart.note = fmt::format("counters stopped at {} cycles", grouped(fill.gathered.profile.all().longest));
        fill.out.charts.push_back(std::move(chart));
    }
    std::map<std::string, Profile::SourceSum> sums;
    for (std::size_t i = 0; i < fill.gathered.profile.sources().size(); ++i) {
        const Profile::SourceKey& key = fill.gathered.profile.sources()[i];
        const std::string_view name = spe::data_source_name(key.midr, key.code);
        Profile::SourceSum& sum = sums[name.empty() ? fmt::format("unknown (code {})", key.code) : std::string(name)];
        sum.samples += fill.gathered.profile.source_sums()[i].samples;
        sum.total += fill.gathered.profile.source_sums()[i].total;
    }
    if (fill.gathered.profile.rest_sources() != 0)
        sums["at further addresses"].samples = fill.gathered.profile.rest_sources();
    if (sums.empty()) return;
    std::vector<std::pair<std::string, Profile::SourceSum>> order(sums.begin(), sums.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second.samples > b.second.samples; });
    Chart chart{Chart::Kind::shares, "where loads got their data", "", "samples", "loads with a data source", {}};
    for (const auto& [name, sum] : order)
        chart.bars.push_back({name, sum.samples, fmt::format("{} cycles", grouped(sum.total))});
    fill.out.charts.push_back(std::move(chart));
}

void shared_lines(SpeFill& fill, const Sharing& sharing) {
    const std::vector<SharedLine> lines = sharing.lines();
    Table table;
    table.title = "cache lines that threads share";
    table.note = fmt::format(
        "lines of {} bytes that several threads use and one writes; false: no thread uses the bytes that "
        "another writes",
        fill.options.line_bytes);
    table.columns = {Column::text("line"),    Column::text("sharing"),  Column::count("samples"),
                     Column::count("loads"),  Column::count("stores"),  Column::count("from other"),
                     Column::count("apart"),  Column::count("threads"), Column::count("writers"),
                     Column::count("cycles"), Column::text("where")};
    for (const SharedLine& line : lines) {
        if (table.rows.size() == fill.options.most_shared) {
            table.note += fmt::format("; {} more lines are left out", grouped(lines.size() - table.rows.size()));
            break;
        }
        std::set<std::string> where;
        for (const LineAccess& access : line.accesses)
            where.insert(fill.program.function_text(fill.program.find(access.mapping, access.pc).function));
        std::string text;
        for (const std::string& name : where) text += (text.empty() ? "" : ", ") + name;
        table.rows.push_back({fmt::format("{:#x}{}", line.key.line, line.key.physical ? " physical" : ""),
                              name(line.kind), line.samples(), line.loads, line.stores, line.from_other, line.apart,
                              line.accessors, line.writers, line.total, text});
    }
    if (!table.rows.empty()) fill.out.tables.push_back(std::move(table));
}

void threads(SpeFill& fill) {
    Table table;
    table.title = "threads";
    table.columns = {Column::text("thread"),          Column::text("process"), Column::count("samples"),
                     Column::count("latency cycles"), Column::count("loads"),  Column::count("stores"),
                     Column::count("branches")};
    std::vector<std::pair<Profile::Thread, Measures>> rows(fill.gathered.profile.threads().begin(),
                                                           fill.gathered.profile.threads().end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.samples > b.second.samples; });
    for (const auto& [thread, m] : rows)
        table.rows.push_back({fill.thread_text(thread),
                              thread.pid == perf::nobody ? Cell() : Cell(std::to_string(thread.pid)), m.samples,
                              m.total, m.loads, m.stores, m.branches});
    if (!table.rows.empty()) fill.out.tables.push_back(std::move(table));
}

}  // namespace

Answers answers_of_samples(const SampleCapture& capture, const SampleTotals& totals, const GatheredSamples& gathered,
                           const Sharing* sharing, Program& program, const SampleAnswersOptions& options) {
    SpeFill fill{capture, totals, gathered, program, options};
    fill.out.unit = "SPE";
    for (const StreamQuality& s : fill.quality.streams) fill.out.trace_bytes += s.bytes;
    fill_sample_health(fill);
    fill_sample_code(fill);
    fill_sample_timeline(fill);
    charts(fill);
    if (sharing != nullptr) shared_lines(fill, *sharing);
    threads(fill);
    sort_findings(fill.out);
    return std::move(fill.out);
}

}  // namespace waymark::analysis
