#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"

namespace waymark::report {

using namespace answers;

namespace {

constexpr std::size_t root = 0, nowhere = ~std::size_t{0};

/// The calls of two captures, merged into one tree by name, since addresses and indices differ from build to build.
class BothTrees {
public:
    BothTrees() { nodes_.push_back({nowhere, "", static_cast<int>(CallNode::Kind::root), {}}); }

    void add(const Answers& answers, std::size_t side, std::size_t metric) {
        std::vector<std::size_t> at(answers.calls.size());
        for (std::size_t i = 0; i < answers.calls.size(); ++i) {
            const CallNode& node = answers.calls[i];
            at[i] = node.parent == none ? root : below(at[node.parent], node, answers);
            add_saturating(nodes_[at[i]].cost[side], cost_of(node.self, metric));
        }
    }

    /// Writes the most costly nodes; returns their number.
    std::size_t write(Json& json, Limit most) const {
        std::vector<std::uint64_t> all(nodes_.size());
        for (std::size_t i = nodes_.size(); i-- > 0;) {
            add_saturating(all[i], nodes_[i].cost[0]);
            add_saturating(all[i], nodes_[i].cost[1]);
            if (i != root) add_saturating(all[nodes_[i].parent], all[i]);
        }
        const auto kept = greatest(nodes_.size(), most, [&](std::size_t a, std::size_t b) { return all[a] > all[b]; });
        std::vector<Node> rows;
        std::vector<std::size_t> row_of(nodes_.size(), nowhere), above(nodes_.size());
        std::map<std::size_t, Node> rest;
        for (const std::size_t i : kept) {
            row_of[i] = rows.size();
            rows.push_back(nodes_[i]);
            if (i != root) rows.back().parent = row_of[nodes_[i].parent];
        }
        constexpr int folded = static_cast<int>(CallNode::Kind::signal) + 1;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            above[i] = row_of[i] != nowhere ? row_of[i] : above[nodes_[i].parent];
            if (row_of[i] != nowhere) continue;
            Node& row = rest.try_emplace(above[i], Node{above[i], "", folded, {}}).first->second;
            for (const std::size_t side : {0, 1}) add_saturating(row.cost[side], nodes_[i].cost[side]);
        }
        for (const auto& [parent, row] : rest) rows.push_back(row);
        SharedTexts texts;
        json.key("tree").begin_object();
        json.differences("parent", rows,
                         [](const Node& n) { return n.parent == nowhere ? -1 : static_cast<std::int64_t>(n.parent); });
        json.column("name", rows, [&](const Node& n) { return texts.add(n.name); });
        json.column("kind", rows, [](const Node& n) { return n.kind; });
        json.column("before", rows, [](const Node& n) { return n.cost[0]; });
        json.column("after", rows, [](const Node& n) { return n.cost[1]; });
        json.end_object();
        texts.write(json, "names");
        return nodes_.size();
    }

private:
    struct Node {
        std::size_t parent;
        std::string name;
        int kind;
        std::uint64_t cost[2];
    };
    std::size_t below(std::size_t parent, const CallNode& node, const Answers& answers) {
        std::string name(function_name(answers, node.function));
        const auto key = std::tuple(parent, name, node.kind);
        const auto [at, fresh] = place_.try_emplace(key, nodes_.size());
        if (fresh) nodes_.push_back({parent, std::move(name), static_cast<int>(node.kind), {}});
        return at->second;
    }

    std::vector<Node> nodes_;
    std::map<std::tuple<std::size_t, std::string, CallNode::Kind>, std::size_t> place_;
};

void write_lines(Json& json, std::string_view name, const std::vector<std::string>& lines) {
    json.strings(name, lines, [](const std::string& line) -> const std::string& { return line; });
}

}  // namespace

PageSection against_section(const Answers& before, const Against& against, Limit most_rows) {
    const DiffView& diff = against.diff;
    Json json;
    json.begin_object();
    json.key("capture").string(against.after.capture);
    json.key("metric").string(diff.metric.name);
    json.key("unit").string(diff.metric.unit);
    json.key("counted").boolean(diff.metric.exact);
    json.key("before").number(diff.before);
    json.key("after").number(diff.after);
    json.key("runs").begin_array();
    for (const Answers* side : {&before, &against.after}) json.string(account_sentence(side->account));
    json.end_array();
    write_lines(json, "above", diff.view.above);
    write_lines(json, "below", diff.view.below);
    json.key("remarks").begin_array();
    for (const Finding& finding : diff.view.remarks) {
        json.begin_object();
        json.key("severity").number(static_cast<int>(finding.severity));
        json.key("what").string(sentence_of(finding));
        json.key("todo").string(finding.todo);
        json.end_object();
    }
    json.end_array();
    // Uses the form for programs, since the page formats numbers itself.
    const Table& table = diff.view.table;
    const std::size_t rows = std::min<std::size_t>(table.size(), most_rows);
    json.key("table").begin_object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        const Column& column = table.columns[c];
        if (column.name.empty()) continue;
        json.key(column.name).begin_array();
        for (std::size_t i = 0; i < rows; ++i) json.string(table.rows[i][c].field());
        json.end_array();
    }
    json.end_object();
    std::size_t calls = 0;
    if (!before.calls.empty() && !against.after.calls.empty()) {
        BothTrees trees;
        for (const std::size_t side : {0, 1}) {
            const Answers& answers = side == 0 ? before : against.after;
            if (const auto metric = find_metric(answers, diff.metric.name)) trees.add(answers, side, *metric);
        }
        calls = trees.write(json, most_rows);
    }
    json.end_object();
    std::string left_out;
    if (rows < table.size())
        left_out = fmt::format("The comparison has {} of {} functions.", grouped(rows), grouped(table.size()));
    if (calls > most_rows)
        left_out += fmt::format("{}The difference flame graph shows the {} most costly of {} calls one by one.",
                                left_out.empty() ? "" : " ", grouped(most_rows), grouped(calls));
    return {json.str(), left_out};
}

}  // namespace waymark::report
