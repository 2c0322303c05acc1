/// `waymark diff`: what changed between two captures, function by function.
#include <algorithm>
#include <cmath>
#include <map>

#include "views.h"
#include "waymark/analysis/profile.h"

namespace waymark::cli {

namespace {

using analysis::Answers;

struct Side {
    std::uint64_t cost{}, calls{}, samples{};  ///< samples: of estimates from samples
    bool there{};
};
struct Row {
    Side before, after;
    std::string image;
    [[nodiscard]] std::int64_t change() const {
        return static_cast<std::int64_t>(after.cost) - static_cast<std::int64_t>(before.cost);
    }
};

/// Functions go by their names: addresses change from build to build.
void gather(const Answers& answers, std::size_t metric, bool inclusive, Side Row::*side,
            std::map<std::string, Row>& rows, std::uint64_t& all) {
    const auto costs = analysis::function_costs(answers);
    const bool sampled = answers.metrics.front().unit == "samples";
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const auto& of = inclusive ? costs[i].inclusive : costs[i].self;
        const std::uint64_t cost = metric < of.size() ? of[metric] : 0;
        all += metric < costs[i].self.size() ? costs[i].self[metric] : 0;
        if (cost == 0 && costs[i].calls == 0) continue;
        Row& row = rows[answers.functions[i].name];
        if (row.image.empty()) row.image = image_name(answers, answers.functions[i].image);
        Side& s = row.*side;
        s.cost += cost;
        s.calls += costs[i].calls;
        if (sampled && !costs[i].self.empty()) s.samples += costs[i].self.front();
        s.there = true;
    }
}

double share(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// `+1,234`.
std::string signed_text(std::int64_t change) {
    return fmt::format("{}{}",
                       change < 0   ? "-"
                       : change > 0 ? "+"
                                    : "",
                       grouped(static_cast<std::uint64_t>(std::abs(change))));
}

class Diff {
public:
    Diff(const Answers& before, const Answers& after, const DiffOptions& options, std::size_t metric_before,
         std::size_t metric_after)
        : before_(before), after_(after), options_(options), metric_(before.metrics[metric_before]) {
        const bool inclusive = options.by == "inclusive";
        gather(before, metric_before, inclusive, &Row::before, rows_, all_before_);
        gather(after, metric_after, inclusive, &Row::after, rows_, all_after_);
        for (const auto& [name, row] : rows_) order_.push_back(&*rows_.find(name));
        std::stable_sort(order_.begin(), order_.end(), [&](const auto* a, const auto* b) {
            return options_.sort == "name" ? false : weight(a->second) > weight(b->second);
        });
    }

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Sums of estimates grow with how long was recorded; their shares do not.
    [[nodiscard]] bool by_share() const { return !metric_.exact; }

    /// Of the whole before, or in points of share: how much a function, or all of it, grew.
    [[nodiscard]] double growth(const Row& row) const {
        if (by_share()) return 100 * (share(row.after.cost, all_after_) - share(row.before.cost, all_before_));
        if (all_before_ == 0) return row.after.cost == 0 ? 0 : 100;
        return 100 * static_cast<double>(row.change()) / static_cast<double>(all_before_);
    }
    [[nodiscard]] double growth_of_all() const {
        return growth({{all_before_, 0, 0, true}, {all_after_, 0, 0, true}, {}});
    }

    /// Samples: the intervals of both shares do not touch. Counts are as they are.
    [[nodiscard]] bool is_sure(const Row& row) const {
        if (metric_.exact) return true;
        // Intervals are of numbers of samples. Sums of latencies have none, but of few samples they say little.
        if (metric_.unit != "samples")
            return before_.metrics.front().unit != "samples" ||
                   std::max(row.before.samples, row.after.samples) >= analysis::few_samples;
        const analysis::Interval a = analysis::wilson_95(row.before.cost, all_before_);
        const analysis::Interval b = analysis::wilson_95(row.after.cost, all_after_);
        return a.high < b.low || b.high < a.low;
    }

    [[nodiscard]] Rows table() const {
        const bool shares = by_share();
        Rows out({{"change_points", shares ? "points" : "of all before"},
                  {"before", "before"},
                  {"after", "after"},
                  {"change", "change"},
                  {"change_share", shares ? "" : "change"},
                  {"share_before", "share before"},
                  {"share_after", "after"},
                  {"calls_before", calls() ? "calls before" : ""},
                  {"calls_after", calls() ? "after" : ""},
                  {"what", "what", true},
                  {"sure", ""},
                  {"function", "function", true},
                  {"image", ""}});
        for (const auto* at : order_) {
            const auto& [name, r] = *at;
            if (options_.format == "text" && r.change() == 0 && r.before.there == r.after.there &&
                r.before.calls == r.after.calls && !shares)
                continue;
            const bool sure = is_sure(r);
            const Colour colour = !sure || growth(r) == 0 ? Colour::dim : growth(r) > 0 ? Colour::red : Colour::green;
            const double points = growth(r);
            const std::string what = !r.before.there  ? "new"
                                     : !r.after.there ? "gone"
                                     : points == 0    ? r.before.calls == r.after.calls ? "same" : "other calls"
                                     : !sure          ? "within noise"
                                     : points > 0     ? "more"
                                                      : "less";
            Cell relative;
            if (r.before.cost != 0) {
                const double ratio = static_cast<double>(r.change()) / static_cast<double>(r.before.cost);
                relative = {fmt::format("{:+.1f}%", 100 * ratio), fmt::format("{}", ratio)};
            }
            out.add({Cell(fmt::format("{:+.2f}{}", points, shares ? "" : "%"), fmt::format("{}", points), colour),
                     Cell(r.before.cost), Cell(r.after.cost),
                     Cell(signed_text(r.change()), std::to_string(r.change()), shares ? Colour::plain : colour),
                     relative, Cell::share(r.before.cost, all_before_), Cell::share(r.after.cost, all_after_),
                     Cell(r.before.calls), Cell(r.after.calls), Cell(what).in(colour),
                     Cell(std::string(), sure ? "true" : "false"), Cell(name).in(Colour::bold), Cell(r.image)});
        }
        return out;
    }

    Status print(Output& out) const {
        const Rows rows = table();
        if (options_.format == "tsv") {
            rows.print_tsv(out);
        } else if (options_.format == "json") {
            out.print(
                "{{\n  \"before\": {{{}}},\n  \"after\": {{{}}},\n  \"metric\": {},\n  \"exact\": {},\n"
                "  \"sum_before\": {},\n  \"sum_after\": {},\n  \"rows\": {}\n}}\n",
                json_head(before_), json_head(after_), json_string(metric_.name), metric_.exact, all_before_,
                all_after_, rows.json());
        } else {
            out.print("before\n");
            print_head(out, before_);
            out.print("after\n");
            print_head(out, after_);
            const std::int64_t change = static_cast<std::int64_t>(all_after_) - static_cast<std::int64_t>(all_before_);
            out.print("\n{}  {} before, {} after: {}{}\n", costs_name(metric_), grouped(all_before_),
                      grouped(all_after_), signed_text(change),
                      all_before_ == 0 ? ""
                                       : fmt::format(" ({:+.2f}%)", 100 * static_cast<double>(change) /
                                                                        static_cast<double>(all_before_)));
            if (rows.size() == 0)
                out.write("\nno function changed\n");
            else {
                out.print("\nper function: {}\n", options_.by == "inclusive" ? "with what it called" : "its own");
                rows.print_text(out, options_.limit, "  ");
            }
            if (by_share())
                out.write(
                    "Sums of estimates grow with how long was recorded, so shares are compared, in points. Within "
                    "noise:\nthe 95 % intervals of both shares touch.\n");
        }
        return decoded;
    }

    /// Whether more grew than is allowed; says what.
    [[nodiscard]] bool exceeds(double threshold) const {
        std::size_t many = 0;
        std::string worst;
        for (const auto* at : order_) {
            if (growth(at->second) <= threshold || !is_sure(at->second)) continue;
            if (many++ == 0) worst = fmt::format("{} by {:.2f}{}", at->first, growth(at->second), unit());
        }
        const bool all = !by_share() && growth_of_all() > threshold;
        if (all)
            say("error", fmt::format("{} grew by {:.2f} % in all, more than the {:g} % allowed", metric_.name,
                                     growth_of_all(), threshold));
        if (many != 0)
            say("error",
                fmt::format("{} grew by more than the {:g}{} allowed: {}{}", counted(many, "function"), threshold,
                            unit(), worst, many == 1 ? "" : fmt::format(", and {} more", many - 1)));
        if (!all && many == 0)
            say("note", fmt::format("no function grew by more than the {:g}{} allowed", threshold, unit()));
        return all || many != 0;
    }

private:
    [[nodiscard]] const char* unit() const { return by_share() ? " points of share" : " % of all before"; }
    [[nodiscard]] double weight(const Row& row) const { return std::abs(growth(row)); }
    [[nodiscard]] bool calls() const {
        return std::any_of(rows_.begin(), rows_.end(),
                           [](const auto& r) { return r.second.before.calls + r.second.after.calls != 0; });
    }

    const Answers &before_, &after_;
    const DiffOptions& options_;
    analysis::Metric metric_;
    std::map<std::string, Row> rows_;
    std::vector<const std::pair<const std::string, Row>*> order_;
    std::uint64_t all_before_ = 0, all_after_ = 0;
};

}  // namespace

Status show_diff(const Answers& before, const Answers& after, const DiffOptions& options, Output& out) {
    const auto metric = find_metric(before, options.metric);
    if (!metric) {
        say("error", metric.error().message);
        return usage;
    }
    const analysis::Metric& what = before.metrics[*metric];
    const auto other = find_metric(after, what.name);
    if (!other || after.metrics[*other].unit != what.unit || after.metrics[*other].exact != what.exact) {
        say("error", fmt::format("{} tells {}, but {} does not, or not in the same way: captures of the same kind of "
                                 "unit, programmed alike, can be compared",
                                 before.capture, costs_name(what), after.capture));
        return usage;
    }
    const Diff diff(before, after, options, *metric, *other);
    if (diff.empty()) {
        say("error", "neither capture tells a function that cost anything");
        return nothing;
    }
    static_cast<void>(diff.print(out));
    return options.threshold && diff.exceeds(*options.threshold) ? nothing : decoded;
}

}  // namespace waymark::cli
