/// `waymark diff`: what changed between two captures, function by function.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

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
    std::string image{};  ///< as Images calls it
    [[nodiscard]] std::int64_t change() const {
        return static_cast<std::int64_t>(after.cost) - static_cast<std::int64_t>(before.cost);
    }
};

/// What one side has of an image.
struct ImageSide {
    std::string name{}, build_id{};
    std::uint64_t cost{}, unnamed{};  ///< of all its code; of that without a symbol
    [[nodiscard]] double share_unnamed() const {
        return cost == 0 ? 0 : static_cast<double>(unnamed) / static_cast<double>(cost);
    }
};
/// An image of both sides: of one build, whatever its files are called, or else of one name.
struct ImagePair {
    ImageSide before, after;
    [[nodiscard]] bool same_build() const { return !before.build_id.empty() && before.build_id == after.build_id; }
    [[nodiscard]] bool other_build() const {
        return !before.build_id.empty() && !after.build_id.empty() && before.build_id != after.build_id;
    }
    /// One side lacks names that the other one has: a function that is there on both sides looks new or gone.
    [[nodiscard]] bool named_on_one_side() const {
        constexpr double alike = 0.01;
        return before.cost != 0 && after.cost != 0 && !same_build() &&
               std::abs(before.share_unnamed() - after.share_unnamed()) > alike;
    }
    [[nodiscard]] bool lacks_names_before() const { return before.share_unnamed() > after.share_unnamed(); }
};

[[nodiscard]] bool is_unnamed(const analysis::Function& f) { return !f.synthetic && f.linkage_name.empty(); }

/// The images of both sides, and names for code that has none.
class Images {
public:
    Images(const Answers& before, const Answers& after) {
        std::map<std::string, std::string> builds;  // to names before
        for (const analysis::Image& i : before.images)
            if (!i.build_id.empty()) builds.emplace(i.build_id, i.name);
        for (const Answers* side : {&before, &after}) {
            keys_[side];  // of a side without images too
            for (const analysis::Image& i : side->images) {
                const auto found = builds.find(i.build_id);
                keys_[side].push_back(found == builds.end() || i.build_id.empty() ? i.name : found->second);
                ImagePair& pair = pairs_[keys_[side].back()];
                ImageSide& one = side == &before ? pair.before : pair.after;
                one.name = i.name;
                one.build_id = i.build_id;
            }
        }
    }
    [[nodiscard]] std::string key(const Answers& side, analysis::Index image) const {
        const std::vector<std::string>& keys = keys_.at(&side);
        return image < keys.size() ? keys[image] : std::string();
    }
    /// All code of an image that has no names.
    [[nodiscard]] static std::string unnamed(const std::string& key) { return "(no symbol) in " + key; }
    [[nodiscard]] ImagePair& pair(const std::string& key) { return pairs_[key]; }
    [[nodiscard]] const std::map<std::string, ImagePair>& pairs() const { return pairs_; }
    /// What code without a symbol is called: by its place where both sides have one build, so that it is found again;
    /// with all such code of its image, where places mean something else on the other side.
    [[nodiscard]] std::string name(const Answers& side, const analysis::Function& f) const {
        const std::string own(image_name(side, f.image)), shared = key(side, f.image);
        const auto found = pairs_.find(shared);
        const std::string all = unnamed(shared);
        if (found != pairs_.end() && !found->second.same_build() &&
            (found->second.other_build() || found->second.named_on_one_side()))
            return all;
        if (own == shared || own.empty()) return f.name;
        if (f.name == unnamed(own)) return all;
        return f.name.starts_with(own + "+") ? shared + f.name.substr(own.size()) : f.name;
    }

private:
    std::map<const Answers*, std::vector<std::string>> keys_;
    std::map<std::string, ImagePair> pairs_;
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
            out.renames_[rename.substr(0, equals)] =
                analysis::without_suffix(std::string_view(rename).substr(equals + 1));
        }
        return out;
    }
    [[nodiscard]] std::string of(std::string_view name, bool before) const {
        const std::string_view base = analysis::without_suffix(name);
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
    /// Chooses what --only asks for, by name: a function of either side is chosen on both, whatever its file is called.
    void choose(const Answers& before, const Answers& after, const Images& images) {
        for (const Answers* side : {&before, &after})
            for (const analysis::Function& f : side->functions)
                if (wanted(*side, f)) chosen_.insert(called(*side, f, side == &before, images));
    }
    [[nodiscard]] bool is_chosen(const std::string& name) const { return chosen_.contains(name); }
    [[nodiscard]] std::string called(const Answers& side, const analysis::Function& f, bool before,
                                     const Images& images) const {
        return is_unnamed(f) ? images.name(side, f) : of(f.name, before);
    }
    /// Old names of --rename that no function has.
    [[nodiscard]] std::vector<std::string> not_renamed(const Answers& before) const {
        std::vector<std::string> out;
        for (const auto& [old, now] : renames_)
            if (std::none_of(before.functions.begin(), before.functions.end(), [&old = old](const auto& f) {
                    return f.name == old || analysis::without_suffix(f.name) == old;
                }))
                out.push_back(old);
        return out;
    }

private:
    [[nodiscard]] bool wanted(const Answers& answers, const analysis::Function& f) const {
        return only_.asks_for(f) || only_.asks_for(Only::Kind::source, path_text(answers, f.source)) ||
               (f.image < answers.images.size() && only_.asks_for(answers.images[f.image]));
    }

    explicit Names(const std::vector<std::string>& only) : only_(only) {}
    Only only_;
    std::set<std::string> chosen_;
    std::map<std::string, std::string> renames_;
};

/// How much of each image has names.
void gather_images(const Answers& answers, std::size_t metric, bool before, Images& images) {
    const auto costs = analysis::function_costs(answers);
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const analysis::Function& f = answers.functions[i];
        if (f.image == analysis::none || metric >= costs[i].self.size()) continue;
        ImagePair& pair = images.pair(images.key(answers, f.image));
        ImageSide& side = before ? pair.before : pair.after;
        side.cost += costs[i].self[metric];
        if (is_unnamed(f)) side.unnamed += costs[i].self[metric];
    }
}

/// What was spent.
struct Sums {
    std::uint64_t all{};     ///< by everything, of which shares are
    std::uint64_t chosen{};  ///< by what --only asks for
};

/// Costs of all captures of a side, or of one of them on average.
void gather(const Answers& answers, std::size_t metric, bool inclusive, std::size_t captures, const Names& names,
            const Images& images, bool before, std::map<std::string, Change>& rows, Sums& sums) {
    // Functions of one name are one, so that what is inclusive counts them once.
    Answers named;
    named.metrics = answers.metrics;
    named.calls = answers.calls;
    if (answers.calls.empty()) named.instructions = answers.instructions;
    std::map<std::string, analysis::Index> known;
    std::vector<analysis::Index> number;
    for (const analysis::Function& f : answers.functions) {
        const auto [at, fresh] =
            known.try_emplace(names.called(answers, f, before, images), static_cast<analysis::Index>(known.size()));
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
    Sums sum;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::string& name = named.functions[i].name;
        const std::string image = images.key(answers, named.functions[i].image);
        const std::uint64_t own = metric < costs[i].self.size() ? costs[i].self[metric] : 0;
        sum.all += own;
        if (!names.is_chosen(name)) continue;
        sum.chosen += own;
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
    sums = {each(sum.all), each(sum.chosen)};
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

/// Why an image that --only asks for cannot be compared: it has another name on the other side. Empty: all can.
std::string missing_images(const Only& only, const Answers& before, const Answers& after, const Images& images) {
    std::vector<std::string> words[2];  // that name an image of one side only
    for (const std::string& word : only.words(Only::Kind::image)) {
        std::set<std::string> keys[2];
        for (const Answers* side : {&before, &after})
            for (analysis::Index i = 0; i < side->images.size(); ++i)
                if (names_file(word, side->images[i].name) || names_file(word, side->images[i].path))
                    keys[side == &after].insert(images.key(*side, i));
        // One build is one image, whatever it is called.
        std::set<std::string> same;
        for (const std::set<std::string>& of : keys)
            for (const std::string& key : of)
                if (const auto pair = images.pairs().find(key);
                    pair != images.pairs().end() && pair->second.same_build())
                    same.insert(key);
        for (std::set<std::string>& of : keys) of.insert(same.begin(), same.end());
        if (keys[0].empty() != keys[1].empty()) words[keys[0].empty()].push_back(word);
    }
    // A name for each side: what was renamed.
    if (words[0].size() == words[1].size()) return {};
    const bool after_lacks = words[0].size() > words[1].size();
    const Answers& lacks = after_lacks ? after : before;
    std::string others;
    for (const analysis::Image& i : lacks.images) others += (others.empty() ? "" : ", ") + i.name;
    return fmt::format(
        "{} has no image called '{}', so nothing of it can be compared. It has: {}. Where it is called "
        "otherwise, give --only once for each name",
        lacks.capture, words[after_lacks ? 0 : 1].front(), others);
}

class Diff {
public:
    Diff(const Answers& before, const Answers& after, const DiffOptions& options, const Names& names,
         const Images& images, std::size_t metric_before, std::size_t metric_after)
        : before_(before), after_(after), options_(options), images_(images), metric_(before.metrics[metric_before]) {
        const bool inclusive = options.by == "inclusive";
        gather(before, metric_before, inclusive, options.mean ? options.captures_before : 1, names, images, true, rows_,
               sum_before_);
        gather(after, metric_after, inclusive, options.mean ? options.captures_after : 1, names, images, false, rows_,
               sum_after_);
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
        if (by_share()) return 100 * (share(row.after.cost, sum_after_.all) - share(row.before.cost, sum_before_.all));
        if (sum_before_.all == 0) return row.after.cost == 0 ? 0 : 100;
        return 100 * static_cast<double>(row.change()) / static_cast<double>(sum_before_.all);
    }
    [[nodiscard]] double growth_of_all() const {
        return growth({{sum_before_.chosen, 0, 0, true}, {sum_after_.chosen, 0, 0, true}, {}});
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
        const analysis::Interval a = analysis::wilson_95(of_before * row.before.cost, of_before * sum_before_.all);
        const analysis::Interval b = analysis::wilson_95(of_after * row.after.cost, of_after * sum_after_.all);
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
            out.add({Cell(fmt::format("{:+.2f}{}", points, shares ? "" : "%"), fmt::format("{}", points), colour),
                     Cell(r.before.cost), Cell(r.after.cost),
                     Cell(signed_text(r.change()), std::to_string(r.change()), shares ? Colour::plain : colour),
                     relative, Cell::share(r.before.cost, sum_before_.all), Cell::share(r.after.cost, sum_after_.all),
                     Cell(r.before.calls), Cell(r.after.calls), Cell(what).in(colour),
                     Cell(std::string(), sure ? "true" : "false"),
                     Cell(std::string(), exceeds_any(r) && !is_unjudged(*at) ? "true" : "false"),
                     Cell(name).in(Colour::bold), Cell(r.image)});
        }
        return out;
    }

    Status print(Output& out) const {
        const Rows rows = table();
        if (options_.format == "tsv") {
            rows.print_tsv(out);
        } else if (options_.format == "json") {
            const std::string only = options_.only.empty()
                                         ? std::string()
                                         : fmt::format("  \"only_before\": {},\n  \"only_after\": {},\n",
                                                       sum_before_.chosen, sum_after_.chosen);
            out.write(
                fmt::format("{{\n  \"before\": {{{}}},\n  \"after\": {{{}}},\n  \"metric\": {},\n  \"exact\": {},\n"
                            "  \"sum_before\": {},\n  \"sum_after\": {},\n{}  \"rows\": {}\n}}\n",
                            json_head(before_), json_head(after_), json_string(metric_.name), metric_.exact,
                            sum_before_.all, sum_after_.all, only, rows.json()));
        } else {
            out.print("before\n");
            print_head(out, before_);
            out.print("after\n");
            print_head(out, after_);
            const auto sums = [&](std::string_view whose, std::uint64_t before, std::uint64_t after) {
                const std::int64_t change = static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
                out.print("{}{}  {} before, {} after: {}{}\n", costs_name(metric_), whose, grouped(before),
                          grouped(after), signed_text(change),
                          before == 0 ? ""
                                      : fmt::format(" ({:+.2f}%)",
                                                    100 * static_cast<double>(change) / static_cast<double>(before)));
            };
            out.write("\n");
            sums("", sum_before_.all, sum_after_.all);
            if (!options_.only.empty()) sums(" of --only", sum_before_.chosen, sum_after_.chosen);
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
                if (!exceeds(at->second, limit) || is_unjudged(*at)) continue;
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
            const std::uint64_t before = sum_before_.chosen, after = sum_after_.chosen;
            total(after > before && after - before > *options_.threshold_count,
                  grouped(after - std::min(after, before)), allowed);
            functions(Limit::count, allowed, [](const Change& r) { return signed_text(r.change()); });
        }
        if (!all_allowed.empty() && cannot_judge()) return true;
        if (!any && !all_allowed.empty())
            say("note", fmt::format("no function grew by more than the {} allowed", all_allowed));
        return any;
    }

    /// Says of which images functions cannot be compared one by one.
    void say_without_names() const {
        for (const auto& [key, pair] : images_.pairs()) {
            if (!is_shown(key)) continue;
            if (pair.named_on_one_side())
                say("warning", fmt::format("functions of {} cannot be compared: {}. {}", key, lacking(pair), remedy));
            else if (pair.other_build() && pair.before.unnamed + pair.after.unnamed != 0)
                say("note",
                    fmt::format("{} has code without names on both sides, of two builds: it is compared as a whole",
                                key));
        }
    }

private:
    static constexpr std::string_view remedy =
        "Give the file of that build with --symbols, or its debug file with --debug-dir";
    [[nodiscard]] std::string lacking(const ImagePair& pair) const {
        const bool before = pair.lacks_names_before();
        return fmt::format("{} knows no names for {:.1f}% of it, {} for {:.1f}%", (before ? before_ : after_).capture,
                           100 * (before ? pair.before : pair.after).share_unnamed(),
                           (before ? after_ : before_).capture,
                           100 * (before ? pair.after : pair.before).share_unnamed());
    }
    [[nodiscard]] bool is_shown(const std::string& key) const {
        return std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.image == key; });
    }
    using Row = std::pair<const std::string, Change>;
    /// Nothing can be said of how much it grew: the other side may know the same code by no name.
    [[nodiscard]] bool is_unjudged(const Row& row) const {
        const auto found = images_.pairs().find(row.second.image);
        return found != images_.pairs().end() && found->second.named_on_one_side() &&
               (row.second.before.there != row.second.after.there || row.first == Images::unnamed(row.second.image));
    }
    /// Whether a gate must not pass, for what it asks about cannot be compared; says why. No function grew by more than
    /// it costs now, nor by more than all code without names does; of one that --only asks for, neither may be known.
    [[nodiscard]] bool cannot_judge() const {
        std::set<std::string> images;
        for (const Row& row : rows_)
            if (is_unjudged(row) && (exceeds_any(row.second) || (!options_.only.empty() && !row.second.after.there &&
                                                                 row.first != Images::unnamed(row.second.image))))
                images.insert(row.second.image);
        for (const std::string& key : images)
            say("error", fmt::format("functions of {} cannot be compared, so no threshold is judged for them: {}", key,
                                     lacking(images_.pairs().at(key))));
        return !images.empty();
    }
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
        const double was = share(row.before.cost, sum_before_.all);
        return 100 * (share(row.after.cost, sum_after_.all) - was) / was;
    }
    [[nodiscard]] const char* unit() const { return by_share() ? " points of share" : "% of all before"; }
    [[nodiscard]] double weight(const Change& row) const { return std::abs(growth(row)); }
    [[nodiscard]] bool calls() const {
        return std::any_of(rows_.begin(), rows_.end(),
                           [](const auto& r) { return r.second.before.calls + r.second.after.calls != 0; });
    }

    const Answers &before_, &after_;
    const DiffOptions& options_;
    const Images& images_;
    analysis::Metric metric_;
    std::map<std::string, Change> rows_;
    std::vector<const std::pair<const std::string, Change>*> order_;
    Sums sum_before_, sum_after_;
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
    Images images(before, after);
    gather_images(before, *metric, true, images);
    gather_images(after, *other, false, images);
    if (!options.only.empty())
        if (const std::string missing = missing_images(names->only(), before, after, images); !missing.empty()) {
            say("error", "--only: " + missing);
            return nothing;
        }
    names->choose(before, after, images);
    const Diff diff(before, after, options, *names, images, *metric, *other);
    if (diff.empty()) {
        say("error", options.only.empty() ? "neither capture has a function with a cost"
                                          : "nothing that --only asks for cost anything");
        return nothing;
    }
    if (options.captures_before != options.captures_after && what.exact && !options.mean)
        say("note", fmt::format("{} before and {} after: their sums are compared; --mean compares what one cost",
                                counted(options.captures_before, "capture"), options.captures_after));
    diff.say_without_names();
    static_cast<void>(diff.print(out));
    return diff.exceeds() ? nothing : decoded;
}

}  // namespace waymark::cli
