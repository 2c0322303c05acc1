#include <algorithm>
#include <map>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/answers/schema.h"
#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"

namespace waymark::report {

using namespace answers;

PageSection calls_section(const Answers& answers, Limit most_calls) {
    const std::vector<CallNode>& nodes = answers.calls;
    const std::vector<std::uint64_t> inclusive = inclusive_costs(answers, 0);
    // A caller costs no less than its callees and comes before them, so the callers of each kept node are kept.
    const auto kept =
        greatest(nodes.size(), most_calls, [&](std::size_t a, std::size_t b) { return inclusive[a] > inclusive[b]; });

    struct Row {
        std::int64_t parent, function;
        int kind;
        std::uint64_t calls;
        Costs self;
    };
    constexpr int folded = static_cast<int>(schema::nodes.size());
    std::vector<Row> rows;
    std::vector<std::size_t> row_of(nodes.size(), nodes.size());
    for (const std::size_t i : kept) {
        const CallNode& node = nodes[i];
        row_of[i] = rows.size();
        rows.push_back({node.parent == none ? -1 : static_cast<std::int64_t>(row_of[node.parent]), index(node.function),
                        static_cast<int>(node.kind), node.calls, node.self});
    }
    // Omitted nodes are combined into one for each kept node.
    std::map<std::size_t, Row> rest;
    std::vector<std::size_t> above(nodes.size());
    for (std::size_t i = 0; i < nodes.size() && kept.size() < nodes.size(); ++i) {
        if (row_of[i] != nodes.size()) {
            above[i] = row_of[i];
            continue;
        }
        above[i] = nodes[i].parent == none ? 0 : above[nodes[i].parent];
        Row& row =
            rest.try_emplace(above[i], Row{static_cast<std::int64_t>(above[i]), -1, folded, 0, {}}).first->second;
        add_saturating(row.calls, nodes[i].calls);
        add(row.self, nodes[i].self);
    }
    for (auto& [parent, row] : rest) rows.push_back(std::move(row));

    Json json;
    json.begin_object();
    json.differences("parent", rows, [](const Row& r) { return r.parent; });
    json.column("function", rows, [](const Row& r) { return r.function; });
    json.column("kind", rows, [](const Row& r) { return r.kind; });
    json.column("calls", rows, [](const Row& r) { return r.calls; });
    write_costs(json, "self", answers, rows, [](const Row& r) -> const Costs& { return r.self; });
    json.end_object();
    if (kept.size() == nodes.size()) return {json.str()};
    return {json.str(), fmt::format("The flame graph shows the {} most costly of {} calls one by one; the others are "
                                    "summed up for each caller.",
                                    grouped(kept.size()), grouped(nodes.size()))};
}

}  // namespace waymark::report
