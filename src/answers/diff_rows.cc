#include "diff_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "columns.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/interval.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

std::string percent_text(double value, unsigned decimals) {
    const unsigned scale = decimals == 1 ? 10 : 100;
    if (value != 0 && value * scale < 0.5) return decimals == 1 ? "<0.1" : "<0.01";
    if (value >= 1e15) return fmt::format("{:.3e}", value);
    const auto parts = static_cast<std::uint64_t>(std::floor(value * scale + 0.5));
    return fmt::format("{}.{:0{}}", grouped(parts / scale), parts % scale, decimals);
}
std::string signed_text(std::int64_t change) {
    return fmt::format("{}{}",
                       change < 0   ? "-"
                       : change > 0 ? "+"
                                    : "",
                       grouped(static_cast<std::uint64_t>(std::abs(change))));
}

namespace {

/// Collects costs of all captures of a side, or their average.
void gather(const Answers& answers, std::size_t metric, bool inclusive, std::size_t captures, const DiffNames& names,
            const DiffImages& images, bool before, std::map<RowKey, DiffChange>& rows, DiffSums& sums) {
    // Functions of one name become one, so that inclusive costs count them once.
    Answers named;
    named.metrics = answers.metrics;
    named.calls = answers.calls;
    if (answers.calls.empty()) named.instructions = answers.instructions;
    std::map<std::pair<RowKey, bool>, Index> known;
    std::vector<Index> number;
    std::vector<const RowKey*> keys;
    std::vector<bool> chosen;
    for (Index i = 0; i < answers.functions.size(); ++i) {
        const Function& f = answers.functions[i];
        const RowKey& row = names.row(before, i);
        const bool wanted = names.is_chosen(answers, f, row, images);
        const auto [at, fresh] = known.try_emplace({row, wanted}, static_cast<Index>(known.size()));
        if (fresh) {
            named.functions.push_back(f);
            keys.push_back(&row);
            chosen.push_back(wanted);
        }
        number.push_back(at->second);
    }
    const auto renumber = [&](Index& function) {
        if (function < number.size()) function = number[function];
    };
    for (CallNode& node : named.calls) renumber(node.function);
    for (Instruction& instruction : named.instructions) renumber(instruction.function);

    const auto costs = function_costs(named);
    const bool sampled = answers.metrics.front().unit == "samples";
    DiffSums sum;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::string image = images.key(answers, named.functions[i].image);
        const std::uint64_t own = metric < costs[i].self.size() ? costs[i].self[metric] : 0;
        sum.all = saturating(sum.all, own);
        if (!chosen[i]) continue;
        sum.chosen = saturating(sum.chosen, own);
        const auto& of = inclusive ? costs[i].inclusive : costs[i].self;
        const std::uint64_t cost = metric < of.size() ? of[metric] : 0;
        if (cost == 0 && costs[i].calls == 0) continue;
        DiffChange& row = rows[*keys[i]];
        if (row.image.empty()) row.image = image;
        if (row.source.empty()) row.source = path_text(answers, named.functions[i].source);
        row.several = names.is_several(*keys[i]);
        row.unnamed |= is_unnamed(named.functions[i]);
        DiffSide& s = before ? row.before : row.after;
        s.cost = saturating(s.cost, cost);
        s.calls = saturating(s.calls, costs[i].calls);
        if (sampled && !costs[i].self.empty()) s.samples = saturating(s.samples, costs[i].self.front());
        s.there = true;
    }
    const auto each = [&](std::uint64_t n) { return (n + captures / 2) / captures; };
    for (auto& [name, row] : rows) {
        DiffSide& s = before ? row.before : row.after;
        s.cost = each(s.cost);
        s.calls = each(s.calls);
    }
    sums = {each(sum.all), each(sum.chosen)};
}

double share(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// The same with its sign: `+1.50`, `-<0.01`.
std::string signed_percent_text(double value, unsigned decimals = 2) {
    return (value < 0 ? "-" : value > 0 ? "+" : "") + percent_text(std::abs(value), decimals);
}

}  // namespace

DiffRows::DiffRows(const Answers& before, const Answers& after, const DiffOptions& options, const DiffNames& names,
                   const DiffImages& images, std::size_t metric_before, std::size_t metric_after)
    : before_(before),
      after_(after),
      options_(options),
      names_(names),
      images_(images),
      metric_(before.metrics[metric_before]),
      metric_after_(after.metrics[metric_after]) {
    const bool inclusive = options.by == "inclusive";
    gather(before, metric_before, inclusive, options.mean ? captures_in(before) : 1, names, images, true, rows_,
           sum_before_);
    gather(after, metric_after, inclusive, options.mean ? captures_in(after) : 1, names, images, false, rows_,
           sum_after_);
    call_rows();
    for (const auto& row : rows_) order_.push_back(&row);
    std::stable_sort(order_.begin(), order_.end(), [&](const auto* a, const auto* b) {
        return options_.sort == "name" ? false : weight(a->second) > weight(b->second);
    });
}

double DiffRows::growth(const DiffChange& row) const {
    if (by_share()) return 100 * (share(row.after.cost, sum_after_.all) - share(row.before.cost, sum_before_.all));
    if (sum_before_.all == 0) return row.after.cost == 0 ? 0 : 100;
    return 100 * static_cast<double>(row.change()) / static_cast<double>(sum_before_.all);
}

double DiffRows::growth_of_all() const {
    return growth({{sum_before_.chosen, 0, 0, true}, {sum_after_.chosen, 0, 0, true}, {}});
}

bool DiffRows::is_sure(const DiffChange& row) const {
    if (metric_.exact) return true;
    // Bursts are the unit of sampling, regardless of how much of a function each burst contains.
    if (metric_.stretches != 0) {
        const Interval a = wilson_95_of(row.before.cost, sum_before_.all, metric_.stretches);
        const Interval b = wilson_95_of(row.after.cost, sum_after_.all, metric_after_.stretches);
        return a.high < b.low || b.high < a.low;
    }
    // Intervals exist for numbers of samples. Sums of latencies have none, but they mean little with few samples.
    if (metric_.unit != "samples")
        return before_.metrics.front().unit != "samples" ||
               std::max(row.before.samples, row.after.samples) >= few_samples;
    // A mean relates to the samples of all its captures together.
    const std::uint64_t of_before = options_.mean ? captures_in(before_) : 1;
    const std::uint64_t of_after = options_.mean ? captures_in(after_) : 1;
    const Interval a = wilson_95(of_before * row.before.cost, of_before * sum_before_.all);
    const Interval b = wilson_95(of_after * row.after.cost, of_after * sum_after_.all);
    return a.high < b.low || b.high < a.low;
}

const ImagePair* DiffRows::uncompared(const DiffChange& row) const {
    if (const ImagePair* const pair = images_.unequal(row.image)) return pair;
    return row.unnamed ? images_.unpairable(row.image) : nullptr;
}

bool DiffRows::is_unjudged(const Row& row) const {
    return uncompared(row.second) != nullptr && (row.second.before.there != row.second.after.there ||
                                                 row.first.first == DiffImages::unnamed(row.second.image));
}

bool DiffRows::exceeds(const DiffChange& row, Limit limit) const {
    if (std::max(row.before.cost, row.after.cost) < options_.least || !is_sure(row)) return false;
    switch (limit) {
        case Limit::of_all: return options_.threshold && growth(row) > *options_.threshold;
        case Limit::of_itself:
            if (!options_.threshold_each) return false;
            if (const auto own = growth_of_itself(row)) return *own > *options_.threshold_each;
            return row.after.cost != 0;
        case Limit::count:
            return options_.threshold_count && row.change() > 0 &&
                   static_cast<std::uint64_t>(row.change()) > *options_.threshold_count;
    }
    return false;
}

bool DiffRows::exceeds_any(const DiffChange& row) const {
    return exceeds(row, Limit::of_all) || exceeds(row, Limit::of_itself) || exceeds(row, Limit::count);
}

std::optional<double> DiffRows::growth_of_itself(const DiffChange& row) const {
    if (row.before.cost == 0) return std::nullopt;
    if (!by_share()) return 100 * static_cast<double>(row.change()) / static_cast<double>(row.before.cost);
    const double was = share(row.before.cost, sum_before_.all);
    return 100 * (share(row.after.cost, sum_after_.all) - was) / was;
}

void DiffRows::show(View& view) const {
    view.table = table();
    view.table.title = view.table.empty()
                           ? "no function changed"
                           : fmt::format("{} per function", options_.by == "inclusive" ? "total cost" : "self cost");
    const auto sums = [&](std::string_view whose, std::uint64_t before, std::uint64_t after) {
        const std::int64_t change = difference(after, before);
        view.above.push_back(
            fmt::format("{}{}  {} before, {} after: {}{}", costs_name(metric_), whose, grouped(before), grouped(after),
                        signed_text(change),
                        before == 0 ? ""
                                    : fmt::format(" ({}%)", signed_percent_text(100 * static_cast<double>(change) /
                                                                                static_cast<double>(before)))));
    };
    sums("", sum_before_.all, sum_after_.all);
    if (!options_.only.empty()) sums(" of --only", sum_before_.chosen, sum_after_.chosen);
    if (by_share())
        view.below = {
            "Sums of estimates grow with how long was recorded, so shares are compared, in points. Within noise:",
            "the 95 % intervals of both shares touch."};
    if (metric_.note == metric_after_.note) {
        if (!metric_.note.empty()) view.below.push_back(fmt::format("{}: {}", metric_.name, metric_.note));
        return;
    }
    for (const auto& [side, metric] : {std::pair(&before_, &metric_), std::pair(&after_, &metric_after_)})
        if (!metric->note.empty())
            view.below.push_back(fmt::format("{} of {}: {}", metric->name, side->capture, metric->note));
}

Table DiffRows::table() const {
    const bool shares = by_share(), with_calls = calls(), calls_before = !before_.calls.empty(),
               calls_after = !after_.calls.empty();
    std::vector<const Row*> rows;
    for (const Row* at : order_) {
        const DiffChange& r = at->second;
        const bool same = r.change() == 0 && r.before.there == r.after.there && r.before.calls == r.after.calls;
        if (!options_.changed_only || !same || shares) rows.push_back(at);
    }
    const auto colour = [this](const DiffChange& r) {
        return !is_sure(r) || growth(r) == 0 ? Colour::dim : growth(r) > 0 ? Colour::red : Colour::green;
    };
    const std::string unit = metric_.unit;
    Columns<Row> columns;
    const auto add = [&](Column column, auto show) {
        columns.add(std::move(column), [show](const Row& row) { return Cell(show(row.second)); });
    };
    add(Column::real("change_points", shares ? "points" : "of all before",
                     "change in per cent of the total before; for estimates: change of the share, in points", "%"),
        [=, this](const DiffChange& r) {
            return Cell(signed_percent_text(growth(r)) + (shares ? "" : "%"), growth(r), colour(r));
        });
    add(Column::count("before", "before", "own cost before", unit), [](const DiffChange& r) { return r.before.cost; });
    add(Column::count("after", "after", "own cost after", unit), [](const DiffChange& r) { return r.after.cost; });
    add(Column::count("change", "change", "cost after less cost before", unit), [=](const DiffChange& r) {
        return Cell(signed_text(r.change()), r.change(), shares ? Colour::plain : colour(r));
    });
    add(Column::real("change_share", shares ? "" : "change", "part of its own cost before"), [](const DiffChange& r) {
        if (r.before.cost == 0) return Cell();
        const double ratio = static_cast<double>(r.change()) / static_cast<double>(r.before.cost);
        return Cell(signed_percent_text(100 * ratio, 1) + "%", ratio);
    });
    add(Column::real("share_before", "share before", "own cost before, as a part of all cost"),
        [this](const DiffChange& r) { return Cell::share(r.before.cost, sum_before_.all); });
    add(Column::real("share_after", "after", "own cost after, as a part of all cost"),
        [this](const DiffChange& r) { return Cell::share(r.after.cost, sum_after_.all); });
    add(Column::count("calls_before", with_calls ? "calls before" : "",
                      "times the function was called before; unknown where samples were taken"),
        [=](const DiffChange& r) { return calls_before ? Cell(r.before.calls) : Cell(); });
    add(Column::count("calls_after", with_calls ? "after" : "",
                      "times the function was called after; unknown where samples were taken"),
        [=](const DiffChange& r) { return calls_after ? Cell(r.after.calls) : Cell(); });
    add(Column::text("what", "what", "new, gone, same, other calls, more, less; within noise (only for estimates)"),
        [=, this](const DiffChange& r) { return Cell(what(r)).in(colour(r)); });
    add(Column::flag("sure", "", "exact, or the 95 % intervals of both shares do not touch"),
        [this](const DiffChange& r) { return Cell("", is_sure(r)); });
    columns.add(Column::flag("exceeds", "", "the change exceeds a threshold that was given"),
                [this](const Row& row) { return Cell("", exceeds_any(row.second) && !is_unjudged(row)); });
    columns.add(Column::text("function", "function", "name of the function, without what compilers add to it"),
                [](const Row& row) { return Cell(row.second.shown, row.first.first, Colour::bold); });
    add(Column::text("image", "", meaning::image), [](const DiffChange& r) { return r.image; });
    add(Column::text("file", "", meaning::file_path), [](const DiffChange& r) { return r.source; });
    return columns.table(rows);
}

void DiffRows::call_rows() {
    std::map<std::string_view, std::vector<Row*>> by_name;
    for (Row& row : rows_) by_name[row.first.first].push_back(&row);
    for (const auto& [name, rows] : by_name) {
        std::map<std::string_view, unsigned> images;
        for (const Row* row : rows) ++images[row->second.image];
        for (Row* row : rows) {
            DiffChange& r = row->second;
            r.shown = std::string(name);
            if (rows.size() == 1) continue;
            const std::string_view file = std::string_view(r.source).substr(r.source.rfind('/') + 1);
            const std::string_view where = images[r.image] == 1 || file.empty() ? std::string_view(r.image) : file;
            if (!where.empty()) r.shown += fmt::format(" in {}", where);
        }
    }
}

std::string_view DiffRows::what(const DiffChange& r) const {
    if (!r.before.there) return "new";
    if (!r.after.there) return "gone";
    const bool both = !before_.calls.empty() && !after_.calls.empty();
    if (growth(r) == 0) return !both || r.before.calls == r.after.calls ? "same" : "other calls";
    if (!is_sure(r)) return "within noise";
    return growth(r) > 0 ? "more" : "less";
}

bool DiffRows::calls() const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [](const auto& r) { return r.second.before.calls + r.second.after.calls != 0; });
}

}  // namespace waymark::answers
