#include "waymark/listing/views.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "print.h"
#include "table_json.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/core/numbers.h"
#include "waymark/core/short_name.h"

namespace waymark::listing {

using answers::Answers;
using answers::Colour;
using answers::Finding;
using answers::View;
using nlohmann::ordered_json;

namespace {

ordered_json account_json(const answers::Account& account) {
    ordered_json out = ordered_json::array();
    for (const answers::AccountRow& row : account) {
        ordered_json json{{"state", answers::name(answers::account_rule(row.reason).state)},
                          {"reason", answers::account_reason_words[static_cast<std::size_t>(row.reason)]},
                          {"of", row.of},
                          {"times", row.times}};
        const auto add = [&](const char* name, const std::optional<std::uint64_t>& size) {
            json[name] = size ? ordered_json(*size) : ordered_json();
        };
        add("bytes", row.bytes);
        add("instructions", row.instructions);
        add("ranges", row.ranges);
        add("records", row.records);
        out.push_back(std::move(json));
    }
    return out;
}

ordered_json head_json(const Answers& answers) {
    ordered_json metrics = ordered_json::array(), health = ordered_json::array();
    for (const answers::Metric& m : answers.metrics) {
        const std::string_view figures = answers::word_of(answers.account, m.exact);
        metrics.push_back({{"name", m.name},
                           {"unit", m.unit},
                           {"exact", figures == "exact"},
                           {"figures", figures},
                           {"note", m.note}});
    }
    constexpr std::array<const char*, 4> names{"good", "note", "warning", "bad"};
    for (const Finding& f : answers.health)
        health.push_back(
            {{"severity", names[static_cast<std::size_t>(f.severity)]}, {"what", f.what}, {"todo", f.todo}});
    return {{"capture", answers.capture},
            {"unit", answers.unit},
            {"metrics", metrics},
            {"run", answers::account_sentence(answers.account)},
            {"account", account_json(answers.account)},
            {"health", health}};
}

/// The head of every view: the capture, and warnings about the figures below.
void print_head(TextSink& out, const Answers& answers) {
    const bool colours = out.colours();
    print(out, "capture  {} ({})\n", Coloured(answers.capture, Colour::bold, colours), answers.unit);
    print_account(out, answers.account);
    for (const Finding& f : answers.health) {
        if (f.severity < Finding::Severity::warning) continue;
        const bool bad = f.severity == Finding::Severity::bad;
        std::string sentence = finding_sentence(f);
        if (f.todo.empty() && sentence.ends_with('.')) sentence.pop_back();
        print(out, "{}  {}\n", Coloured(bad ? "bad    " : "warning", bad ? Colour::red : Colour::yellow, colours),
              sentence);
    }
}

void print_table(TextSink& out, const View& view, const ViewLayout& layout) {
    if (!view.above.empty()) out.write("\n");
    for (const std::string& line : view.above) print(out, "{}\n", line);
    print(out, "\n{}\n", view.table.title);
    if (!view.table.empty()) print_text(out, view.table, layout.limit, "  ", layout.widest);
    for (const std::string& line : view.below) print(out, "{}\n", line);
}

}  // namespace

std::string finding_sentence(const Finding& f) {
    const std::string said = answers::sentence_of(f);
    if (f.todo.empty()) return said;
    const std::string_view what = std::string_view(said).substr(0, said.size() - (said.ends_with('.') ? 1 : 0));
    return fmt::format("{}. {}", what, f.todo);
}

void print_view(TextSink& out, const Answers& answers, const View& view, const ViewLayout& layout) {
    if (layout.format == LineFormat::tsv) return print_tsv(out, view.table);
    if (layout.format == LineFormat::json) {
        ordered_json head = head_json(answers);
        for (const auto& [name, sums] : view.sums)
            for (const auto& [sum, value] : sums) head[name][sum] = value;
        return out.write(rows_json(head, view.table));
    }
    print_head(out, answers);
    print_table(out, view, layout);
}

void print_diff(TextSink& out, const Answers& before, const Answers& after, const answers::DiffView& differences,
                const answers::DiffOptions& options, const ViewLayout& layout) {
    const answers::DiffView& c = differences;
    if (layout.format == LineFormat::tsv) return print_tsv(out, c.view.table);
    if (layout.format == LineFormat::json) {
        const auto is_exact = [&](const Answers& side) {
            return answers::word_of(side.account, c.metric.exact) == "exact";
        };
        ordered_json head{{"before", head_json(before)}, {"after", head_json(after)},
                          {"metric", c.metric.name},     {"exact", is_exact(before) && is_exact(after)},
                          {"sum_before", c.before},      {"sum_after", c.after}};
        if (!options.only.empty()) {
            head["only_before"] = c.chosen_before;
            head["only_after"] = c.chosen_after;
        }
        return out.write(rows_json(head, c.view.table));
    }
    out.write("before\n");
    print_head(out, before);
    out.write("after\n");
    print_head(out, after);
    print_table(out, c.view, layout);
}

void print_calls_tree(TextSink& out, const answers::Answers& answers, std::uint64_t most) {
    const std::vector<answers::CallNode>& calls = answers.calls;
    print(out, "{:>14} {:>14} {:>10}  {}\n", "instructions", "self", "calls", "share of all");
    const std::vector<std::uint64_t> inclusive = answers::inclusive_costs(answers, 0);
    // No function costs more than its caller, so the most costly rows form a tree too.
    std::uint64_t least = 0, left_out = 0;
    if (most != 0 && calls.size() > most) {
        std::vector<std::uint64_t> costs(inclusive.begin() + 1, inclusive.end());
        std::ranges::nth_element(costs, costs.begin() + static_cast<std::ptrdiff_t>(most - 1), std::greater<>());
        least = costs[most - 1];
    }
    constexpr std::size_t numbers = 14 + 1 + 14 + 1 + 10, bar = 2 + 20, share = 2 + 7, shortest_name = 24;
    const bool narrow = out.columns() != 0 && out.columns() < numbers + bar + share + shortest_name;
    const auto shown_share = [&](std::uint64_t cost) {
        const std::string text = answers::bar_text(cost, inclusive[0]);
        return narrow ? text.substr(text.size() - std::min<std::size_t>(text.size(), 7)) : text;
    };
    std::vector<unsigned> depth(calls.size());
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const answers::CallNode& node = calls[i];
        const std::uint64_t self = node.self[0];
        if (i == 0) {
            if (self != 0)
                print(out, "{:>14} {:>14} {:>10}  {}  (where no function is known)\n", grouped(self), grouped(self), "",
                      shown_share(self));
            continue;
        }
        depth[i] = node.parent == 0 ? 0 : depth[node.parent] + 1;
        if (inclusive[i] < least || (most != 0 && rows == most)) {
            ++left_out;
            continue;
        }
        ++rows;
        // The indentation of a deep recursion is limited.
        constexpr unsigned most_indented = 100;
        const std::size_t taken = numbers + (narrow ? share : bar + share) + 2;
        const std::size_t room = out.columns() > taken + shortest_name ? out.columns() - taken : 0;
        const unsigned indented = room == 0 ? most_indented : static_cast<unsigned>((room - shortest_name) / 2);
        const std::string deeper = depth[i] > indented ? fmt::format("({} deep) ", grouped(depth[i])) : "";
        const std::size_t indent = 2 * std::size_t{std::min(depth[i], indented)};
        const std::string& name = answers.functions[node.function].name;
        const std::size_t before = indent + deeper.size();
        print(
            out, "{:>14} {:>14} {:>10}  {}  {:{}}{}{}\n", grouped(inclusive[i]), grouped(self), grouped(node.calls),
            shown_share(inclusive[i]), "", indent, deeper,
            out.columns() == 0 ? name : shortened(name, std::max<std::size_t>(room > before ? room - before : 0, 12)));
    }
    if (left_out != 0)
        print(out, "… and {} of at most {} each; --limit 0 shows all\n", counted(left_out, "more row"),
              counted(least, "instruction"));
}

}  // namespace waymark::listing
