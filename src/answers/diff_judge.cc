#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "columns.h"
#include "diff_rows.h"
#include "waymark/answers/costs.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {

class DiffJudge {
public:
    explicit DiffJudge(const DiffRows& rows)
        : rows_(rows),
          before_(rows.before_answers()),
          after_(rows.after_answers()),
          options_(rows.options()),
          names_(rows.names()),
          images_(rows.images()) {}

    /// Names the images whose functions cannot be compared one by one.
    void remark_names(View& view) const {
        Unequal unequal;
        for (const Row& row : rows_.rows())
            if (const ImagePair* pair = rows_.uncompared(row.second)) add(unequal, pair, row.second.image);
        for (const auto& [pair, of] : unequal)
            view.remark(Finding::Severity::warning,
                        fmt::format("functions {}cannot be compared: {}. {}", in_images(*pair, of), lacking(*pair),
                                    images_.is_all(pair) ? remedy_for_files : remedy));
        if (options_.threshold || options_.threshold_each || options_.threshold_count) return;  // judge() reports it
        for (const auto& [key, pair] : images_.pairs())
            if (is_shown(key) && !pair.named_on_one_side() && pair.other_build() &&
                pair.before.unnamed + pair.after.unnamed != 0)
                view.remark(
                    Finding::Severity::note,
                    fmt::format("{} has code without names on both sides, from two builds: it is compared as a whole",
                                both_names(key, pair)));
    }
    /// Reports what grew more than allowed.
    void judge(View& view) const {
        using enum Finding::Severity;
        bool any = false;
        const auto total = [&](bool too_much, const std::string& by, const std::string& allowed) {
            if (!too_much) return;
            any = true;
            view.remark(Finding::Severity::bad, fmt::format("{} grew by {} in total, more than the {} allowed",
                                                            rows_.metric().name, by, allowed));
        };
        const auto functions = [&](Limit limit, const std::string& allowed, auto&& by) {
            std::size_t many = 0;
            std::string worst;
            for (const auto* at : rows_.order()) {
                if (!rows_.exceeds(at->second, limit) || rows_.is_unjudged(*at)) continue;
                if (many++ == 0) worst = fmt::format("{} by {}", at->second.shown, by(at->second));
            }
            if (many == 0) return;
            any = true;
            view.remark(Finding::Severity::bad,
                        fmt::format("{} grew by more than {}: {}{}", counted(many, "function"), allowed, worst,
                                    many == 1 ? "" : fmt::format(", and {} more", many - 1)));
        };
        std::string all_allowed;
        const auto allow = [&](std::string text) {
            all_allowed += (all_allowed.empty() ? "" : " or ") + text;
            return text;
        };
        if (options_.threshold) {
            const std::string allowed = allow(fmt::format("{:g}{}", *options_.threshold, unit()));
            total(!rows_.by_share() && rows_.growth_of_all() > *options_.threshold,
                  percent_text(rows_.growth_of_all()) + "%", fmt::format("{:g}%", *options_.threshold));
            functions(Limit::of_all, allowed,
                      [&](const DiffChange& r) { return percent_text(rows_.growth(r)) + unit(); });
        }
        if (options_.threshold_each) {
            const std::string allowed = allow(fmt::format("{:g}% of their cost before", *options_.threshold_each));
            functions(Limit::of_itself, allowed, [&](const DiffChange& r) {
                const auto own = rows_.growth_of_itself(r);
                return own ? percent_text(*own) + "%" : fmt::format("{}, from nothing", grouped(r.after.cost));
            });
        }
        if (options_.threshold_count) {
            const std::string allowed =
                allow(fmt::format("{} {}", grouped(*options_.threshold_count), rows_.metric().name));
            const std::uint64_t before = rows_.before().chosen, after = rows_.after().chosen;
            total(after > before && after - before > *options_.threshold_count,
                  grouped(after - std::min(after, before)), allowed);
            functions(Limit::count, allowed, [](const DiffChange& r) { return signed_text(r.change()); });
        }
        if (all_allowed.empty()) return;
        const bool doubted = doubt_wholes(view), missing = doubt_missing(view);
        if (cannot_judge(view) || any || (options_.strict && (doubted || missing))) return;
        view.remark(note,
                    fmt::format("no function {}grew by more than {}",
                                doubted ? "that can be compared alone, and no code as a whole, " : "", all_allowed));
    }

private:
    using Row = DiffRows::Row;
    using Limit = DiffRows::Limit;
    /// Image pairs with names on one side only, in the order of rows, and the images of the rows concerned.
    using Unequal = std::vector<std::pair<const ImagePair*, std::set<std::string>>>;
    static constexpr std::string_view remedy =
        "Give the file of that build with --symbols, or its debug file with --debug-dir";
    static constexpr std::string_view remedy_for_files =
        "Is its maps.txt missing, which says where files were mapped? Copy it again, or give files with --image "
        "FILE@ADDRESS";

    /// Checks rows that combine several functions: one function may have grown while others became cheaper. No function
    /// grew by more than its present cost, so if that cost is within the limits, no growth is hidden.
    [[nodiscard]] bool doubt_wholes(View& view) const {
        std::map<const ImagePair*, std::set<std::string>> unnamed;
        std::vector<std::string> several, lack_sources;
        for (const Row& row : rows_.rows()) {
            const DiffChange& r = row.second;
            const bool is_unnamed_code = row.first.first == DiffImages::unnamed(r.image);
            if ((!is_unnamed_code && !r.several) || rows_.is_unjudged(row)) continue;
            DiffChange most;
            most.after = r.after;
            if (r.after.cost == 0 || !rows_.exceeds_any(most)) continue;
            if (!is_unnamed_code) {
                several.push_back(r.shown);
                if (names_.lacks_sources(row.first)) lack_sources.push_back(r.shown);
            } else if (const ImagePair* const pair = images_.pair(r.image); pair != nullptr && pair->other_build()) {
                unnamed[pair].insert(r.image);
            }
        }
        for (const auto& [pair, keys] : unnamed)
            view.doubt(
                options_.strict,
                fmt::format(
                    "code without names of {} cannot be compared function by function, because its builds differ: it "
                    "is compared with the limit as a whole, which may hide the growth of one function. {}",
                    both_names(*keys.begin(), *pair), remedy));
        const std::string advice = lack_sources.empty()
                                       ? std::string()
                                       : fmt::format(". Debug information (-g) has the source files{}",
                                                     lack_sources.size() == several.size()
                                                         ? std::string()
                                                         : fmt::format(" of {}", fmt::join(lack_sources, ", ")));
        if (!several.empty())
            view.doubt(options_.strict,
                       fmt::format("{}: several functions have this name, and neither image nor source file "
                                   "distinguishes them, so they are compared with the limit together{}",
                                   fmt::join(several, ", "), advice));
        return !unnamed.empty() || !several.empty();
    }
    /// Functions that --only selects and that exist on one side only. A function that was inlined, renamed or never
    /// called cannot have grown, but it was not compared either.
    [[nodiscard]] bool doubt_missing(View& view) const {
        bool any = false;
        for (const std::string& word : names_.only().words(Only::Kind::function)) {
            const bool pattern = word.find_first_of("*?[") != word.npos;
            std::vector<const Row*> alone;
            bool on_both = false;
            for (const Row& row : rows_.rows()) {
                if (rows_.is_unjudged(row) || !names_function(word, row.first.first)) continue;
                if (row.second.before.there && row.second.after.there)
                    on_both = true;
                else
                    alone.push_back(&row);
            }
            // Functions selected by a pattern may appear and vanish.
            if (alone.empty() || (on_both && pattern)) continue;
            any = true;
            const bool was = alone.front()->second.before.there;
            const std::string& name = alone.front()->second.shown;
            view.doubt(
                options_.strict,
                fmt::format("--only {}: {} ran {} alone, and nothing of that name {}: it was inlined, renamed or "
                            "not called, so it is compared with nothing. If it was renamed, give --rename {}",
                            word, name, was ? "before" : "after", was ? "after" : "before",
                            was ? fmt::format("'{}=NEW'", name) : fmt::format("'OLD={}'", name)));
        }
        return any;
    }
    static void add(Unequal& unequal, const ImagePair* pair, const std::string& image) {
        auto found = std::find_if(unequal.begin(), unequal.end(), [&](const auto& u) { return u.first == pair; });
        if (found == unequal.end()) found = unequal.insert(found, {pair, {}});
        found->second.insert(image);
    }
    /// The names of an image on both sides: `app`, or `app (app-1.1 in CAPTURE)` if they differ.
    [[nodiscard]] std::string both_names(const std::string& key, const ImagePair& pair) const {
        for (const bool before : {true, false}) {
            const std::string& name = (before ? pair.before : pair.after).name;
            if (!name.empty() && name != key)
                return fmt::format("{} ({} in {})", key, name, (before ? before_ : after_).capture);
        }
        return key;
    }
    /// Names the images for a sentence; empty if all are meant.
    [[nodiscard]] std::string in_images(const ImagePair& pair, const std::set<std::string>& keys) const {
        if (images_.is_all(&pair)) return {};
        if (images_.is_unpaired(&pair)) return fmt::format("of {} ", fmt::join(keys, ", "));
        return fmt::format("of {} ", both_names(*keys.begin(), pair));
    }
    [[nodiscard]] std::string lacking(const ImagePair& pair) const {
        if (images_.is_unpaired(&pair) && !pair.named_on_one_side())
            return fmt::format(
                "neither build IDs, names nor functions show which image of {} corresponds to which image of {}",
                before_.capture, after_.capture);
        const bool before = pair.lacks_names_before();
        const std::string_view what = images_.is_all(&pair)        ? "file for {:.1f}% of its code"
                                      : images_.is_unpaired(&pair) ? "names for {:.1f}% of files that it has alone"
                                                                   : "names for {:.1f}% of it";
        const auto part = [&](const ImageSide& side) {
            return fmt::format(fmt::runtime(what), 100 * side.share_unnamed());
        };
        return fmt::format("{} knows no {}, {} for {:.1f}%", (before ? before_ : after_).capture,
                           part(before ? pair.before : pair.after), (before ? after_ : before_).capture,
                           100 * (before ? pair.after : pair.before).share_unnamed());
    }
    [[nodiscard]] bool is_shown(const std::string& key) const {
        return std::any_of(rows_.rows().begin(), rows_.rows().end(),
                           [&](const auto& row) { return row.second.image == key; });
    }
    /// Whether a gate must fail because functions it asks about cannot be compared; gives the reason. A function grew
    /// by no more than its present cost: if the cost of all code that cannot be compared is within the limits together,
    /// the gate can pass. If --only selects a function, its unnamed code may be missing from the rows.
    [[nodiscard]] bool cannot_judge(View& view) const {
        std::map<const ImagePair*, DiffChange> most;
        Unequal unequal;
        for (const Row& row : rows_.rows()) {
            if (!rows_.is_unjudged(row)) continue;
            const ImagePair* const pair = rows_.uncompared(row.second);
            DiffChange& all = most[pair];
            all.after.cost = saturating(all.after.cost, row.second.after.cost);
            all.after.samples = saturating(all.after.samples, row.second.after.samples);
            const bool is_lost = !options_.only.empty() && !row.second.after.there &&
                                 row.first.first != DiffImages::unnamed(row.second.image);
            if (is_lost || rows_.exceeds_any(all)) add(unequal, pair, row.second.image);
        }
        for (const auto& [pair, of] : unequal)
            view.remark(Finding::Severity::bad,
                        fmt::format("functions {}cannot be compared, so no threshold is judged for them: {}",
                                    in_images(*pair, of), lacking(*pair)));
        return !unequal.empty();
    }
    [[nodiscard]] const char* unit() const { return rows_.by_share() ? " points of share" : "% of all before"; }

    const DiffRows& rows_;
    const Answers &before_, &after_;
    const DiffOptions& options_;
    const DiffNames& names_;
    const DiffImages& images_;
};

}  // namespace

void judge(View& view, const DiffRows& rows) {
    const DiffJudge judge(rows);
    judge.remark_names(view);
    judge.judge(view);
}

}  // namespace waymark::answers
