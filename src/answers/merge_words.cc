#include "merge_words.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <string_view>

#include "merge_timeline.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {
namespace {

constexpr std::string_view differs = "differs";

bool is_hexadecimal(std::string_view word) {
    return word.starts_with("0x") && word.size() > 2 &&
           word.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
}
bool is_decimal(std::string_view word) {
    return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
           word.find_first_not_of("0123456789,.%") == std::string_view::npos;
}

/// A sentence with # in place of numbers, so that captures whose sentences differ only in numbers share one. A number
/// in a name, as of a library or a build, is kept.
std::string pattern_of(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        std::string_view word = text.substr(at, end - at);
        at = end + 1;
        if (!out.empty()) out += ' ';
        const std::size_t open = word.starts_with('(') ? 1 : 0;
        out += word.substr(0, open);
        word.remove_prefix(open);
        const std::size_t last = word.find_last_not_of(".,:;)");
        const std::string_view number = word.substr(0, last == word.npos ? 0 : last + 1);
        out += is_hexadecimal(number) || is_decimal(number) ? "#" : number;
        out += word.substr(number.size());
    }
    return out;
}

bool whole_number(const std::string& text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::set<std::string> clauses_of(const std::string& text) {
    std::set<std::string> found;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find("; ", at), text.size());
        found.insert(text.substr(at, end - at));
        at = end + 2;
    }
    return found;
}
std::string joined_clauses(const std::set<std::string>& list) {
    std::string text;
    for (const std::string& c : list) text += (text.empty() ? "" : "; ") + c;
    return text;
}

void MergedWords::add(const Answers& a) {
    if (!has_only_ranges(a)) (a.calls.empty() ? some_without_calls_ : some_with_calls_) = true;
    add_health(a);
    add_trust(a);
    add_figures(a);
}

void MergedWords::add_finding(const Finding& f) {
    FindingKey key{-static_cast<int>(f.severity), pattern_of(f.what), pattern_of(f.todo), f.of_names, f.unused_file};
    health_.add(key, f, [](Finding& to, const Finding& x) {
        take_sum(to.captures, x.captures);
        if (std::tie(x.what, x.todo, x.offset) < std::tie(to.what, to.todo, to.offset))
            std::tie(to.what, to.todo, to.offset) = std::tie(x.what, x.todo, x.offset);
    });
}

void MergedWords::add_health(const Answers& a) {
    // A capture counts once, even if it has the sentence several times.
    std::set<std::pair<std::string, std::string>> counted_here;
    for (Finding f : a.health) {
        if (a.parts.empty()) f.captures = counted_here.emplace(pattern_of(f.what), pattern_of(f.todo)).second ? 1 : 0;
        add_finding(f);
    }
    if (has_timeline(a)) add_note(std::string(timeline_is_a_sample));
    if (!a.charts.empty() || !a.tables.empty())
        add_note("Charts and the unit's own tables are left out: they cannot be added up.");
}

/// A clause stays exact only if all inputs with this view have it as exact; other clauses are united.
void MergedWords::add_trust(const Answers& a) {
    for (const Trust& t : a.trust) {
        // Times of different captures cannot be related.
        if (t.view == "timeline") continue;
        const Clauses exact = clauses_of(t.exact);
        const auto [at, fresh] = views_.try_emplace(t.view, Believed{exact, {}, {}});
        if (!fresh) std::erase_if(at->second.exact, [&](const std::string& c) { return !exact.contains(c); });
        at->second.estimated.merge(clauses_of(t.estimated));
        at->second.not_known.merge(clauses_of(t.not_known));
    }
}

/// Figures of the same name that are whole numbers are added, except counts of rows of tables, which are recounted. How
/// one capture was recorded is not true of the sum.
void MergedWords::add_figures(const Answers& a) {
    constexpr std::array<std::string_view, 8> first{"sources", "instructions", "ranges",     ranges_not_decoded,
                                                    "cycles",  "calls",        "exceptions", "functions"};
    for (const Figure& f : a.summary) {
        if (f.name == recorded_figure) continue;
        figures_.add({std::find(first.begin(), first.end(), f.name) - first.begin(), f.name}, f,
                     [](Figure& to, const Figure& x) {
                         std::uint64_t one = 0, other = 0;
                         if (whole_number(to.value, one) && whole_number(x.value, other))
                             to.value = std::to_string(saturating(one, other));
                         else if (to.value != x.value)
                             to.value = differs;
                         take_text(to.note, x.note);
                     });
    }
}

void MergedWords::finish(Answers& out, const std::set<std::string>& changed_images) {
    for (const std::string& image : changed_images)
        add_finding({Finding::Severity::warning,
                     fmt::format("The captures have different code at the same addresses of {}, which has no build ID: "
                                 "counts of two builds are added up as if they were one build.",
                                 image),
                     "Merge captures of one build, or link with --build-id, which tells builds apart."});
    if (has_reason(out.account, AccountReason::no_functions))
        add_finding({Finding::Severity::warning,
                     "Some of the merged files have only the tables of compiler profiles (--only-ranges). pgo uses all "
                     "captures; functions, lines, branches and loops are the sums of the others.",
                     "Write all files with --only-ranges, or none."});
    if (have_sets(out.metrics))
        add_note(
            "Not all captures count the same metrics: a metric that only some of them count is an estimate for all.");
    if (some_with_calls_ && some_without_calls_) add_note("The call tree is left out: not all captures have one.");
    out.health = health_.take();
    // "Good" findings of some inputs are dropped if others have problems.
    if (std::any_of(out.health.begin(), out.health.end(),
                    [](const Finding& f) { return f.severity >= Finding::Severity::warning; }))
        std::erase_if(out.health, [](const Finding& f) { return f.severity == Finding::Severity::good; });
    for (const auto& [view, sum] : views_)
        out.trust.push_back(
            {view, joined_clauses(sum.exact), joined_clauses(sum.estimated), joined_clauses(sum.not_known)});
    out.summary = figures_.take();
    for (Figure& figure : out.summary)
        if (figure.name == "functions")
            figure.value = std::to_string(std::count_if(out.functions.begin(), out.functions.end(),
                                                        [](const Function& f) { return !f.synthetic; }));
}

}  // namespace waymark::answers
