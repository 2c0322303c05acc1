/// `waymark diff`: what changed between two captures, function by function.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "only.h"
#include "views.h"
#include "waymark/analysis/profile.h"

namespace waymark::cli {

namespace {

using analysis::Answers;

struct Side {
    std::uint64_t cost{}, calls{}, samples{};  ///< samples: of estimates from samples
    bool there{};
};
struct Change {
    Side before, after;
    std::string image{};
    [[nodiscard]] std::int64_t change() const {
        return static_cast<std::int64_t>(after.cost) - static_cast<std::int64_t>(before.cost);
    }
};

/// Functions go by their names: addresses change from build to build.
class Names {
public:
    /// Errors: `usage`: no `OLD=NEW`, or not clear which `=` is meant.
    static Result<Names> of(const DiffOptions& options) {
        Names out(options.only);
        for (const std::string& rename : options.renames) {
            const std::size_t equals = rename.find('=');
            if (equals == 0 || equals == rename.npos || equals + 1 == rename.size())
                return Error{Errc::usage, fmt::format("--rename {}: give OLD=NEW, two names of functions", rename)};
            if (rename.find('=', equals + 1) != rename.npos)
                return Error{Errc::usage, fmt::format("--rename {}: names that contain = are ambiguous here; "
                                                      "give OLD=NEW with one",
                                                      rename)};
            out.renames_[rename.substr(0, equals)] = without_suffix(std::string_view(rename).substr(equals + 1));
        }
        return out;
    }
    [[nodiscard]] std::string of(std::string_view name, bool before) const {
        const std::string_view base = without_suffix(name);
        if (before)
            for (const std::string_view old : {name, base})
                if (const auto found = renames_.find(std::string(old)); found != renames_.end()) return found->second;
        return std::string(base);
    }
    /// Tells which names there are, so that it is known what --only asks for.
    void add(const Answers& answers, bool before) {
        for (const analysis::Function& f : answers.functions) {
            only_.add(f);
            if (before) only_.add(Only::Kind::function, of(f.name, before));
            only_.add(Only::Kind::source, path_text(answers, f.source));
        }
        for (const analysis::Image& i : answers.images) only_.add(i);
    }
    [[nodiscard]] const Only& only() const { return only_; }
    /// Old names of --rename that no function has.
    [[nodiscard]] std::vector<std::string> not_renamed(const Answers& before) const {
        std::vector<std::string> out;
        for (const auto& [old, now] : renames_)
            if (std::none_of(before.functions.begin(), before.functions.end(),
                             [&old = old](const auto& f) { return f.name == old || without_suffix(f.name) == old; }))
                out.push_back(old);
        return out;
    }
    [[nodiscard]] bool wanted(const Answers& answers, const analysis::Function& f) const {
        return only_.asks_for(f) || only_.asks_for(Only::Kind::source, path_text(answers, f.source)) ||
               (f.image < answers.images.size() && only_.asks_for(answers.images[f.image]));
    }

private:
    explicit Names(const std::vector<std::string>& only) : only_(only) {}
    Only only_;
    std::map<std::string, std::string> renames_;
};

/// Costs of all captures of a side, or of one of them on average.
void gather(const Answers& answers, std::size_t metric, bool inclusive, std::size_t captures, const Names& names,
            bool before, std::map<std::string, Change>& rows, std::uint64_t& all) {
    // Functions of one name are one, so that what is inclusive counts them once.
    Answers named;
    named.metrics = answers.metrics;
    named.calls = answers.calls;
    if (answers.calls.empty()) named.instructions = answers.instructions;
    std::map<std::string, analysis::Index> known;
    std::vector<analysis::Index> number;
    for (const analysis::Function& f : answers.functions) {
        const auto [at, fresh] =
            known.try_emplace(names.of(f.name, before), static_cast<analysis::Index>(known.size()));
        if (fresh) {
            named.functions.push_back(f);
            named.functions.back().name = at->first;
        }
        number.push_back(at->second);
    }
    const auto renumber = [&](analysis::Index& function) {
        if (function < number.size()) function = number[function];
    };
    for (analysis::CallNode& node : named.calls) renumber(node.function);
    for (analysis::Instruction& instruction : named.instructions) renumber(instruction.function);

    const auto costs = analysis::function_costs(named);
    const bool sampled = answers.metrics.front().unit == "samples";
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::string& name = named.functions[i].name;
        const std::string_view image = image_name(answers, named.functions[i].image);
        const bool wanted = names.wanted(answers, named.functions[i]);
        // Shares are of everything.
        if (wanted || !answers.metrics[metric].exact) sum += metric < costs[i].self.size() ? costs[i].self[metric] : 0;
        if (!wanted) continue;
        const auto& of = inclusive ? costs[i].inclusive : costs[i].self;
        const std::uint64_t cost = metric < of.size() ? of[metric] : 0;
        if (cost == 0 && costs[i].calls == 0) continue;
        Change& row = rows[name];
        if (row.image.empty()) row.image = image;
        Side& s = before ? row.before : row.after;
        s.cost += cost;
        s.calls += costs[i].calls;
        if (sampled && !costs[i].self.empty()) s.samples += costs[i].self.front();
        s.there = true;
    }
    const auto each = [&](std::uint64_t n) { return (n + captures / 2) / captures; };
    for (auto& [name, row] : rows) {
        Side& s = before ? row.before : row.after;
        s.cost = each(s.cost);
        s.calls = each(s.calls);
    }
    all = each(sum);
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
    Diff(const Answers& before, const Answers& after, const DiffOptions& options, const Names& names,
         std::size_t metric_before, std::size_t metric_after)
        : before_(before), after_(after), options_(options), metric_(before.metrics[metric_before]) {
        const bool inclusive = options.by == "inclusive";
        gather(before, metric_before, inclusive, options.mean ? options.captures_before : 1, names, true, rows_,
               all_before_);
        gather(after, metric_after, inclusive, options.mean ? options.captures_after : 1, names, false, rows_,
               all_after_);
        for (const auto& row : rows_) order_.push_back(&row);
        std::stable_sort(order_.begin(), order_.end(), [&](const auto* a, const auto* b) {
            return options_.sort == "name" ? false : weight(a->second) > weight(b->second);
        });
    }

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Sums of estimates grow with how long was recorded; their shares do not.
    [[nodiscard]] bool by_share() const { return !metric_.exact; }

    /// Of the whole before, or in points of share: how much a function, or all of it, grew.
    [[nodiscard]] double growth(const Change& row) const {
        if (by_share()) return 100 * (share(row.after.cost, all_after_) - share(row.before.cost, all_before_));
        if (all_before_ == 0) return row.after.cost == 0 ? 0 : 100;
        return 100 * static_cast<double>(row.change()) / static_cast<double>(all_before_);
    }
    [[nodiscard]] double growth_of_all() const {
        return growth({{all_before_, 0, 0, true}, {all_after_, 0, 0, true}, {}});
    }

    /// Samples: the intervals of both shares do not touch. Counts are as they are.
    [[nodiscard]] bool is_sure(const Change& row) const {
        if (metric_.exact) return true;
        // Intervals are of numbers of samples. Sums of latencies have none, but of few samples they say little.
        if (metric_.unit != "samples")
            return before_.metrics.front().unit != "samples" ||
                   std::max(row.before.samples, row.after.samples) >= analysis::few_samples;
        // A mean is of as many samples as its captures have together.
        const std::uint64_t of_before = options_.mean ? options_.captures_before : 1;
        const std::uint64_t of_after = options_.mean ? options_.captures_after : 1;
        const analysis::Interval a = analysis::wilson_95(of_before * row.before.cost, of_before * all_before_);
        const analysis::Interval b = analysis::wilson_95(of_after * row.after.cost, of_after * all_after_);
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
                  {"exceeds", ""},
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
            out.add(
                {Cell(fmt::format("{:+.2f}{}", points, shares ? "" : "%"), fmt::format("{}", points), colour),
                 Cell(r.before.cost), Cell(r.after.cost),
                 Cell(signed_text(r.change()), std::to_string(r.change()), shares ? Colour::plain : colour), relative,
                 Cell::share(r.before.cost, all_before_), Cell::share(r.after.cost, all_after_), Cell(r.before.calls),
                 Cell(r.after.calls), Cell(what).in(colour), Cell(std::string(), sure ? "true" : "false"),
                 Cell(std::string(), exceeds_any(r) ? "true" : "false"), Cell(name).in(Colour::bold), Cell(r.image)});
        }
        return out;
    }

    Status print(Output& out) const {
        const Rows rows = table();
        if (options_.format == "tsv") {
            rows.print_tsv(out);
        } else if (options_.format == "json") {
            out.write(
                fmt::format("{{\n  \"before\": {{{}}},\n  \"after\": {{{}}},\n  \"metric\": {},\n  \"exact\": {},\n"
                            "  \"sum_before\": {},\n  \"sum_after\": {},\n  \"rows\": {}\n}}\n",
                            json_head(before_), json_head(after_), json_string(metric_.name), metric_.exact,
                            all_before_, all_after_, rows.json()));
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
    [[nodiscard]] bool exceeds() const {
        bool any = false;
        const auto total = [&](bool too_much, const std::string& by, const std::string& allowed) {
            if (!too_much) return;
            any = true;
            say("error", fmt::format("{} grew by {} in all, more than the {} allowed", metric_.name, by, allowed));
        };
        const auto functions = [&](Limit limit, const std::string& allowed, auto&& by) {
            std::size_t many = 0;
            std::string worst;
            for (const auto* at : order_) {
                if (!exceeds(at->second, limit)) continue;
                if (many++ == 0) worst = fmt::format("{} by {}", at->first, by(at->second));
            }
            if (many == 0) return;
            any = true;
            say("error", fmt::format("{} grew by more than the {} allowed: {}{}", counted(many, "function"), allowed,
                                     worst, many == 1 ? "" : fmt::format(", and {} more", many - 1)));
        };
        std::string all_allowed;
        const auto allow = [&](std::string text) {
            all_allowed += (all_allowed.empty() ? "" : " or ") + text;
            return text;
        };
        if (options_.threshold) {
            const std::string allowed = allow(fmt::format("{:g}{}", *options_.threshold, unit()));
            total(!by_share() && growth_of_all() > *options_.threshold, fmt::format("{:.2f}%", growth_of_all()),
                  fmt::format("{:g}%", *options_.threshold));
            functions(Limit::of_all, allowed,
                      [&](const Change& r) { return fmt::format("{:.2f}{}", growth(r), unit()); });
        }
        if (options_.threshold_each) {
            const std::string allowed = allow(fmt::format("{:g}% of their own cost before", *options_.threshold_each));
            functions(Limit::of_itself, allowed, [&](const Change& r) {
                const auto own = growth_of_itself(r);
                return own ? fmt::format("{:.2f}%", *own) : fmt::format("{}, from nothing", grouped(r.after.cost));
            });
        }
        if (options_.threshold_count) {
            const std::string allowed = allow(fmt::format("{} {}", grouped(*options_.threshold_count), metric_.name));
            total(all_after_ > all_before_ && all_after_ - all_before_ > *options_.threshold_count,
                  grouped(all_after_ - std::min(all_after_, all_before_)), allowed);
            functions(Limit::count, allowed, [](const Change& r) { return signed_text(r.change()); });
        }
        if (!any && !all_allowed.empty())
            say("note", fmt::format("no function grew by more than the {} allowed", all_allowed));
        return any;
    }

private:
    enum class Limit : std::uint8_t { of_all, of_itself, count };
    [[nodiscard]] bool exceeds(const Change& row, Limit limit) const {
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
    [[nodiscard]] bool exceeds_any(const Change& row) const {
        return exceeds(row, Limit::of_all) || exceeds(row, Limit::of_itself) || exceeds(row, Limit::count);
    }
    /// In per cent of what it cost before, or of its share; nothing: it cost nothing.
    [[nodiscard]] std::optional<double> growth_of_itself(const Change& row) const {
        if (row.before.cost == 0) return std::nullopt;
        if (!by_share()) return 100 * static_cast<double>(row.change()) / static_cast<double>(row.before.cost);
        const double was = share(row.before.cost, all_before_);
        return 100 * (share(row.after.cost, all_after_) - was) / was;
    }
    [[nodiscard]] const char* unit() const { return by_share() ? " points of share" : "% of all before"; }
    [[nodiscard]] double weight(const Change& row) const { return std::abs(growth(row)); }
    [[nodiscard]] bool calls() const {
        return std::any_of(rows_.begin(), rows_.end(),
                           [](const auto& r) { return r.second.before.calls + r.second.after.calls != 0; });
    }

    const Answers &before_, &after_;
    const DiffOptions& options_;
    analysis::Metric metric_;
    std::map<std::string, Change> rows_;
    std::vector<const std::pair<const std::string, Change>*> order_;
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
        say("error",
            fmt::format("{} contains {}, but {} does not, or not in the same way: captures of the same kind of "
                        "unit, programmed alike, can be compared",
                        before.capture, costs_name(what), after.capture));
        return usage;
    }
    auto names = Names::of(options);
    if (!names) {
        say("error", names.error().message);
        return usage;
    }
    names->add(before, true);
    names->add(after, false);
    if (const std::string unknown = names->only().unknown(); !unknown.empty()) {
        say("error", "--only: " + unknown);
        return nothing;
    }
    for (const std::string& old : names->not_renamed(before))
        say("warning", fmt::format("--rename: {} has no function '{}'", before.capture, old));
    if (options.threshold_count && !what.exact) {
        say("error", fmt::format("--threshold-count: how many {} there are depends on how long was recorded; "
                                 "--threshold and --threshold-each compare shares",
                                 what.name));
        return usage;
    }
    const Diff diff(before, after, options, *names, *metric, *other);
    if (diff.empty()) {
        say("error", options.only.empty() ? "neither capture has a function with a cost"
                                          : "nothing that --only asks for cost anything");
        return nothing;
    }
    if (options.captures_before != options.captures_after && what.exact && !options.mean)
        say("note", fmt::format("{} before and {} after: their sums are compared; --mean compares what one cost",
                                counted(options.captures_before, "capture"), options.captures_after));
    static_cast<void>(diff.print(out));
    return diff.exceeds() ? nothing : decoded;
}

}  // namespace waymark::cli
