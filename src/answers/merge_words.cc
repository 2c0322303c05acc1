/// Merging what is said in words: findings, how far figures can be believed, and the summary.
#include <charconv>
#include <set>
#include <string>

#include "merge_rows.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {
namespace {

constexpr std::string_view differs = "differs";

bool has_timeline(const Answers& a) {
    return !a.timeline.slices.empty() || !a.timeline.marks.empty() || !a.timeline.series.empty();
}

void merge_health(std::span<const Answers* const> all, Answers& out) {
    const auto key = [](const Finding& f) {
        return std::tuple(-static_cast<int>(f.severity), f.what, f.todo, f.offset, f.of_names, f.unused_file);
    };
    MergedRows<decltype(key(Finding{})), Finding> health;
    const auto note = [&](std::string what) {
        Finding f{Finding::Severity::note, std::move(what)};
        health.add(key(f), f, [](auto&&...) {});
    };
    const auto only_ranges = [](const Answers* a) { return has_only_ranges(*a); };
    if (std::any_of(all.begin(), all.end(), only_ranges) && !std::all_of(all.begin(), all.end(), only_ranges)) {
        Finding f{Finding::Severity::warning,
                  "Some of the merged files have ranges and branches alone (--only-ranges): those are the sums of all "
                  "captures, functions, instructions and lines the sums of the others.",
                  "Write all files with --only-ranges, or none."};
        health.add(key(f), f, [](auto&&...) {});
    }
    for (const Answers* a : all) {
        for (const Finding& f : a->health) health.add(key(f), f, [](auto&&...) {});
        if (has_timeline(*a)) note("The timeline is left out: the times of merged captures cannot be related.");
        if (!a->charts.empty() || !a->tables.empty())
            note("Charts and the unit's own tables are left out: they cannot be added up.");
        if (a->calls.empty() != all.front()->calls.empty())
            note("The call tree is left out: not all captures have one.");
    }
    out.health = health.take();
    // "Good" findings of some inputs are dropped if others have problems.
    if (std::any_of(out.health.begin(), out.health.end(),
                    [](const Finding& f) { return f.severity >= Finding::Severity::warning; }))
        std::erase_if(out.health, [](const Finding& f) { return f.severity == Finding::Severity::good; });
}

/// A clause is exact only if it is exact in all inputs with this view; other clauses are united.
void merge_trust(std::span<const Answers* const> all, Answers& out) {
    using Clauses = std::set<std::string>;
    const auto clauses = [](const std::string& text) {
        Clauses found;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find("; ", at), text.size());
            found.insert(text.substr(at, end - at));
            at = end + 2;
        }
        return found;
    };
    const auto joined = [](const Clauses& list) {
        std::string text;
        for (const std::string& c : list) text += (text.empty() ? "" : "; ") + c;
        return text;
    };
    struct Sum {
        Clauses exact, estimated, not_known;
    };
    std::map<std::string, Sum> views;
    for (const Answers* a : all)
        for (const Trust& t : a->trust) {
            // Times of different captures cannot be related.
            if (t.view == "timeline") continue;
            Clauses exact = clauses(t.exact);
            const auto [at, fresh] = views.try_emplace(t.view, Sum{exact, {}, {}});
            if (!fresh) std::erase_if(at->second.exact, [&](const std::string& c) { return !exact.contains(c); });
            at->second.estimated.merge(clauses(t.estimated));
            at->second.not_known.merge(clauses(t.not_known));
        }
    for (const auto& [view, sum] : views)
        out.trust.push_back({view, joined(sum.exact), joined(sum.estimated), joined(sum.not_known)});
}

/// Figures of the same name that are whole numbers are added, except counts of rows of tables, which are recounted.
void merge_figures(std::span<const Answers* const> all, Answers& out) {
    const auto number = [](const std::string& text, std::uint64_t& value) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc{} && end == text.data() + text.size();
    };
    const auto key = [](const Figure& f) {
        constexpr std::array<std::string_view, 7> first{"sources", "instructions", "ranges",   "cycles",
                                                        "calls",   "exceptions",   "functions"};
        return std::pair(std::find(first.begin(), first.end(), f.name) - first.begin(), f.name);
    };
    MergedRows<decltype(key(Figure{})), Figure> figures;
    for (const Answers* a : all)
        for (const Figure& f : a->summary)
            figures.add(key(f), f, [&](Figure& to, const Figure& x) {
                std::uint64_t one = 0, other = 0;
                if (number(to.value, one) && number(x.value, other))
                    to.value = std::to_string(saturating(one, other));
                else if (to.value != x.value)
                    to.value = differs;
                take_text(to.note, x.note);
            });
    out.summary = figures.take();
    for (Figure& figure : out.summary)
        if (figure.name == "functions")
            figure.value = std::to_string(std::count_if(out.functions.begin(), out.functions.end(),
                                                        [](const Function& f) { return !f.synthetic; }));
}

}  // namespace

void merge_words(std::span<const Answers* const> all, Answers& out) {
    merge_health(all, out);
    merge_trust(all, out);
    merge_figures(all, out);
}

}  // namespace waymark::answers
