/// `waymark profile`: the cost of each function, line, block, instruction or image.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "columns.h"
#include "level_view.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/interval.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/only.h"
#include "waymark/answers/sampled.h"

namespace waymark::answers {

namespace {

struct ProfileRow {
    std::string name, where, image;
    std::string_view path{};
    std::uint64_t address{};
    std::uint32_t line{};
    std::optional<std::uint64_t> calls{};  ///< calls of the function; nullopt: not known, or the row is not a function
    std::optional<std::uint64_t>
        times{};  ///< executions; nullopt: not known, or the row has more than one piece of code
    Costs self{}, inclusive{}, inlined{};
    bool unseen{};           ///< the handler of an exception that was not traced
    std::uint64_t places{};  ///< inlined calls
    std::string frames{};    ///< for an instruction: the inlined calls that it belongs to
};

bool zero(const Costs& all) {
    return std::all_of(all.begin(), all.end(), [](std::uint64_t n) { return n == 0; });
}

class ProfileView {
public:
    ProfileView(const Answers& answers, const ProfileOptions& options, const Chosen& chosen, std::size_t metric)
        : answers_(answers), options_(options), chosen_(chosen), metric_(metric) {
        executions_counted_ = std::any_of(answers.instructions.begin(), answers.instructions.end(),
                                          [](const Instruction& i) { return i.times != 0; });
        if (options.by == "line")
            by_line();
        else if (options.by == "block")
            by_block();
        else if (options.by == "instruction")
            by_instruction();
        else if (options.inlines)
            by_inlined_function();
        else
            by_function(options.by == "image");
        for (ProfileRow& row : rows_) {
            if (options.by != "block") row.self.resize(answers.metrics.size());
            calls_known_ |= row.calls.value_or(0) != 0;
            frames_known_ |= !row.frames.empty();
            inclusive_known_ |= !row.inclusive.empty();
        }
        sort();
    }

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    [[nodiscard]] View view() const {
        const std::string& name = answers_.metrics[metric_].name;
        const Metric& metric = answers_.metrics[metric_];
        const bool samples = !metric.exact && (metric.unit == "samples" || metric.stretches != 0);
        const std::uint64_t observed = metric.stretches != 0 ? metric.stretches : all_;
        const bool addresses = options_.by == "instruction" || options_.by == "block", places = options_.by != "image";
        const auto self = [this](const ProfileRow& r) { return r.self[metric_]; };
        const auto if_chosen = [this](const char* head) {
            return [this, head](std::size_t m) { return std::string(m == metric_ ? head : ""); };
        };
        Columns<ProfileRow> columns;
        columns.add(Column::bar("share of " + name), [&](const ProfileRow& r) { return Cell::bar(self(r), all_); });
        columns.add(Column::real("share", "", "part of the sum of all rows, by the metric asked for"),
                    [&](const ProfileRow& r) { return Cell::share(self(r), all_); });
        if (samples) {
            const auto interval = [=, this](const ProfileRow& r) { return wilson_95_of(self(r), all_, observed); };
            columns.add(Column::real("share_low", "", "least share, with 95 % confidence (Wilson)"),
                        [=](const ProfileRow& r) { return Cell("", interval(r).low); });
            columns.add(Column::real("share_high", "", "greatest share, with 95 % confidence"),
                        [=](const ProfileRow& r) { return Cell("", interval(r).high); });
            columns.add(Column::real("", "95 %"), [=](const ProfileRow& r) {
                const Interval i = interval(r);
                return Cell(fmt::format("{:.1f}-{:.1f}%", 100 * i.low, 100 * i.high), nullptr,
                            metric.stretches == 0 && self(r) < few_samples ? Colour::dim : Colour::plain);
            });
        }
        add_costs(
            columns, answers_, "", "own cost", [](const ProfileRow& r) -> const Costs& { return r.self; },
            [&](std::size_t m) { return answers_.metrics[m].name; },
            options_.by == "line" || options_.by == "instruction" || options_.inlines);
        if (inclusive_known_) {
            add_costs(
                columns, answers_, " inclusive", std::string(meaning::with_callees),
                [](const ProfileRow& r) -> const Costs& { return r.inclusive; }, if_chosen("with callees"));
            columns.add(Column::real("share inclusive", "share", "cost with callees, as a part of the sum of all rows"),
                        [&](const ProfileRow& r) {
                            return r.inclusive.empty() ? Cell() : Cell::share(r.inclusive[metric_], all_);
                        });
        }
        if (options_.inlines && !addresses) {
            add_costs(
                columns, answers_, " inlined", "part of its own cost where the function was inlined",
                [](const ProfileRow& r) -> const Costs& { return r.inlined; }, if_chosen("inlined"));
            columns.add(Column::count("places", "in places", "number of its inlined calls that cost something"),
                        [](const ProfileRow& r) { return r.places; });
        }
        const auto spreads = options_.by == "function" ? spread_of_runs(name) : std::map<std::string, std::string>();
        if (!spreads.empty())
            columns.add(
                Column::real(name + " spread %", "spread %", "distance between runs, as a part of their mean", "%"),
                [&](const ProfileRow& r) {
                    const auto found = spreads.find(r.name);
                    return found == spreads.end() ? Cell() : Cell(found->second);
                });
        columns.add(Column::count("calls", calls_known_ ? "calls" : "",
                                  std::string(meaning::calls_of_function) + ", and for what is no function"),
                    [](const ProfileRow& r) { return r.calls ? Cell(*r.calls) : Cell(); });
        columns.add(
            Column::count("times", options_.by == "block" ? "times" : "",
                          "times it ran; of a line: executions of its most often executed instruction; unknown for "
                          "functions and images, and where the capture does not count executions"),
            [](const ProfileRow& r) { return r.times ? Cell(*r.times) : Cell(); });
        columns.add(Column::address("address", addresses ? "address" : "",
                                    "address of its first instruction; empty: it is not program code"),
                    [=](const ProfileRow& r) { return addresses || r.address != 0 ? Cell::hex(r.address) : Cell(); });
        columns.add(Column::text(options_.by, options_.by, "what the row counts"),
                    [](const ProfileRow& r) { return Cell(r.name).in(Colour::bold); });
        const bool lines = options_.by != "line";
        columns.add(Column::text(lines ? "line" : "line number", places && lines ? "line" : "",
                                 std::string(lines ? meaning::line_of_file : meaning::source_line)),
                    [=](const ProfileRow& r) {
                        return lines ? known(r.where).in(Colour::dim) : Cell("", r.line == 0 ? Value() : Value(r.line));
                    });
        columns.add(Column::text("file", "", meaning::file_path), [](const ProfileRow& r) { return known(r.path); });
        if (frames_known_)
            columns.add(
                Column::text("inlined through", "inlined through", "inlined calls around it, the innermost first"),
                [](const ProfileRow& r) { return r.frames; });
        if (places)
            columns.add(Column::text("image", answers_.images.size() > 1 ? "in" : "", meaning::image),
                        [](const ProfileRow& r) { return r.image; });
        View out{.table = columns.table(rows_)};
        out.table.title = fmt::format("per {}: {}{}", options_.by, costs_name(answers_.metrics[metric_]),
                                      options_.by != "function" ? ""
                                      : options_.inlines        ? ", own, wherever it was inlined"
                                      : answers_.calls.empty()  ? ""
                                      : options_.interrupts     ? ", self and total"
                                                                : ", self and total without interrupts");
        if (!not_sorted_.empty()) out.remark(Finding::Severity::note, not_sorted_);
        return out;
    }

private:
    /// If runs of counters were merged: the spread of a metric among them, by function.
    [[nodiscard]] std::map<std::string, std::string> spread_of_runs(const std::string& metric) const {
        std::map<std::string, std::string> out;
        for (const Table& table : answers_.tables)
            if (table.title == "runs")
                for (const auto& row : table.rows)
                    if (row.size() == table.columns.size() && row[1].field() == metric)
                        out.try_emplace(row.front().field(), row.back().field());
        return out;
    }
    /// Adds to the base of shares, which --only does not change.
    void add_to_all(const Costs& self) { all_ = saturating(all_, cost_of(self, metric_)); }

    void by_function(bool by_image) {
        const std::vector<FunctionCosts> costs = function_costs(answers_, options_.interrupts);
        std::map<Index, std::size_t> images;
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const FunctionCosts& c = costs[i];
            const Function& f = answers_.functions[i];
            if (!ran(c)) continue;
            add_to_all(c.self);
            if (!chosen_(static_cast<Index>(i), f.source)) continue;
            if (by_image) {
                // Exceptions are functions that have no image, and no cost of their own.
                if (zero(c.self)) continue;
                const auto [at, fresh] = images.try_emplace(f.image, rows_.size());
                if (fresh) {
                    rows_.emplace_back();
                    rows_.back().name = f.image == none ? "[no image]" : image_name(answers_, f.image);
                }
                add(rows_[at->second].self, c.self);
                continue;
            }
            ProfileRow row{
                f.name, line_text(answers_, f.source, f.line), std::string(image_name(answers_, f.image)), {}};
            row.path = path_text(answers_, f.source);
            row.line = f.line;
            row.address = f.synthetic ? 0 : f.address;
            row.unseen = f.synthetic && zero(c.self);
            if (!answers_.calls.empty()) row.calls = c.calls;
            row.self = c.self;
            row.inclusive = c.inclusive;
            rows_.push_back(std::move(row));
        }
    }

    void by_inlined_function() {
        const std::vector<FunctionCosts> all = function_costs(answers_, options_.interrupts);
        for (const InlinedCosts& c : inlined_costs(answers_)) {
            const bool own = c.function < answers_.functions.size();
            const std::uint64_t calls = own ? all[c.function].calls : 0;
            if (calls == 0 && c.places == 0 && zero(c.self)) continue;
            add_to_all(c.self);
            if (own ? !chosen_(c.function, answers_.functions[c.function].source) : !chosen_.inlined(c.name, c.image))
                continue;
            ProfileRow row{c.name, {}, std::string(image_name(answers_, c.image)), {}};
            if (own) {
                const Function& f = answers_.functions[c.function];
                row.where = line_text(answers_, f.source, f.line);
                row.path = path_text(answers_, f.source);
                row.line = f.line;
                row.address = f.synthetic ? 0 : f.address;
                row.unseen = f.synthetic && zero(c.self);
            }
            if (own && !answers_.calls.empty()) row.calls = calls;
            row.self = c.self;
            row.inlined = c.inlined;
            row.places = c.places;
            rows_.push_back(std::move(row));
        }
    }
    /// Frames as text, such as `square at main.c:5, called by cube at main.c:9`: the innermost line first, the function
    /// itself last.
    [[nodiscard]] std::string frames_text(const Instruction& i) const {
        if (i.inlined >= answers_.inlined.size()) return {};
        std::string out;
        for (const InlineFrame& frame : inline_frames(answers_, i)) {
            const std::string line = line_text(answers_, frame.source, frame.line);
            out += fmt::format("{}{}{}{}", out.empty() ? "" : ", called by ",
                               frame.function.empty() ? std::string_view("[unknown]") : frame.function,
                               line.empty() ? "" : " at ", line);
        }
        return out;
    }

    [[nodiscard]] Costs costs_of(const Instruction& i) const { return i.costs.empty() ? Costs{i.times} : i.costs; }

    void by_line() {
        std::map<std::tuple<Index, std::uint32_t, Index>, ProfileRow> found;
        std::map<std::pair<Index, std::uint32_t>, std::uint64_t> times_of_lines;
        if (executions_counted_)
            for (const Line& line : answers_.lines) times_of_lines[{line.source, line.line}] = line.times;
        for (const Instruction& i : answers_.instructions) {
            const Costs costs = costs_of(i);
            if (zero(costs)) continue;
            add_to_all(costs);
            if (!chosen_(i.function, i.source)) continue;
            const bool known = i.source != none && i.line != 0;
            ProfileRow& row = known ? found[{i.source, i.line, none}] : found[{none, 0, i.function}];
            if (row.name.empty()) {
                row.name = known ? line_text(answers_, i.source, i.line)
                                 : fmt::format("{} (no line)", function_name(answers_, i.function));
                if (known) row.path = path_text(answers_, i.source);
                row.line = known ? i.line : 0;
                if (const auto times = times_of_lines.find({i.source, i.line}); known && times != times_of_lines.end())
                    row.times = times->second;
                if (i.function < answers_.functions.size())
                    row.image = image_name(answers_, answers_.functions[i.function].image);
            }
            add(row.self, costs);
        }
        for (auto& [key, row] : found) rows_.push_back(std::move(row));
    }

    void by_instruction() {
        for (const Instruction& i : answers_.instructions) {
            add_to_all(costs_of(i));
            if (!chosen_(i.function, i.source)) continue;
            ProfileRow row{place_text(answers_, i.function, i.address), line_text(answers_, i.source, i.line), {}, {}};
            row.self = costs_of(i);
            if (zero(row.self)) continue;
            if (options_.inlines) row.frames = frames_text(i);
            if (!i.text.empty()) row.name += "  " + i.text;
            row.path = path_text(answers_, i.source);
            row.line = i.line;
            row.address = i.address;
            if (executions_counted_) row.times = i.times;
            if (i.function < answers_.functions.size())
                row.image = image_name(answers_, answers_.functions[i.function].image);
            rows_.push_back(std::move(row));
        }
    }

    void by_block() {
        for (const Block& b : answers_.blocks) {
            if (b.times == 0) continue;
            // All other facts belong to instructions: a block has its instructions' facts.
            ProfileRow row{place_text(answers_, b.function, b.address), {}, {}, {}};
            const auto first =
                std::lower_bound(answers_.instructions.begin(), answers_.instructions.end(), b.address,
                                 [](const Instruction& i, std::uint64_t address) { return i.address < address; });
            const bool known = first != answers_.instructions.end() && first->address == b.address;
            add_to_all({b.times * b.instructions});
            if (!chosen_(b.function, known ? first->source : none)) continue;
            if (known) {
                row.where = line_text(answers_, first->source, first->line);
                row.path = path_text(answers_, first->source);
                row.line = first->line;
            }
            row.self = {b.times * b.instructions};
            row.times = b.times;
            row.address = b.address;
            if (b.function < answers_.functions.size())
                row.image = image_name(answers_, answers_.functions[b.function].image);
            rows_.push_back(std::move(row));
        }
    }

    void sort() {
        const auto inclusive = [&](const ProfileRow& r) { return r.inclusive.empty() ? 0 : r.inclusive[metric_]; };
        const bool known = options_.sort == "inclusive" ? inclusive_known_
                           : options_.sort == "calls"   ? calls_known_
                                                        : true;
        if (!known) not_sorted_ = not_sorted(options_.sort, fmt::format("not known by {} here", options_.by), "self");
        std::stable_sort(rows_.begin(), rows_.end(), [&](const ProfileRow& a, const ProfileRow& b) {
            const auto key = [&](const ProfileRow& r) {
                return !known                         ? r.self[metric_]
                       : options_.sort == "inclusive" ? inclusive(r)
                       : options_.sort == "calls"     ? r.calls.value_or(0)
                       : options_.sort == "name"      ? 0
                                                      : r.self[metric_];
            };
            return std::tuple(key(b), a.name, a.address) < std::tuple(key(a), b.name, b.address);
        });
    }

    const Answers& answers_;
    const ProfileOptions& options_;
    const Chosen& chosen_;
    std::size_t metric_;
    std::vector<ProfileRow> rows_;
    std::uint64_t all_ = 0;
    std::string not_sorted_;
    bool calls_known_ = false, inclusive_known_ = false, frames_known_ = false;
    bool executions_counted_ = false;  // not in samples
};

/// Ratios of counters from several runs, which no view of one capture shows.
std::string ratios_of_runs(const Answers& answers) {
    const auto find = [&](std::string_view title) {
        return std::find_if(answers.tables.begin(), answers.tables.end(),
                            [&](const Table& t) { return t.title == title; });
    };
    const auto ratios = find("ratios");
    if (find("runs") == answers.tables.end() || ratios == answers.tables.end() || ratios->empty()) return {};
    std::string out;
    for (std::size_t i = 1; i < ratios->columns.size(); ++i)
        if (const Cell& ratio = ratios->rows.front()[i]; ratio.value.known())
            out += fmt::format("{}{} {}", out.empty() ? "" : ", ", ratios->columns[i].name, ratio.shown);
    return out;
}

}  // namespace

Result<View> profile_view(const Answers& answers, const ProfileOptions& options) {
    WM_ASSIGN_OR_RETURN(const std::size_t metric, find_metric(answers, options.metric));
    if (options.by == "block" && metric != 0)
        return Error{Errc::usage, fmt::format("blocks are known for {} only", answers.metrics.front().name)};
    if (options.inlines && answers.instructions.empty())
        return Error{Errc::usage,
                     fmt::format("{}: --inlines needs the cost of single instructions, which counters do not record",
                                 answers.capture)};
    if (options.by == "level") return level_view(answers, options, metric);
    const Chosen chosen(answers, options.only, options.code);
    if (std::string unknown = chosen.unknown(); !unknown.empty()) return Error{Errc::not_found, std::move(unknown)};
    const ProfileView profile(answers, options, chosen, metric);
    if (profile.empty() && !chosen.is_all())
        return Error{Errc::not_found,
                     fmt::format("{}: {}: none of this code was seen to run", chosen.options(), answers.capture)};
    if (profile.empty()) {
        const char* why = answers.unit == "DPU" && options.by != "function" && options.by != "image"
                              ? "counters record the cost of functions and tasks, not of each {}"
                          : of_messages(answers) ? "messages do not show which code ran; waymark messages lists them"
                          : of_samples(answers) && options.by == "block"
                              ? "samples are of instructions, not of {}s; use --by instruction"
                              : "nothing that ran can be listed by {}";
        return Error{Errc::not_found,
                     fmt::format("{}: {}", answers.capture, fmt::format(fmt::runtime(why), options.by))};
    }
    View view = profile.view();
    if (options.inlines && answers.inlined.empty())
        view.remark(Finding::Severity::note,
                    "no code is known to be inlined; that needs debug information (programs built with -g)");
    if (std::string ratios = ratios_of_runs(answers); !ratios.empty()) view.below.push_back(std::move(ratios));
    if (options.by == "block") {
        view.below.emplace_back(
            "Blocks overlap: where code is also entered in its middle, the code after that is in two blocks. An "
            "instruction ran as");
        view.below.emplace_back("often as all blocks that contain it together (--by instruction).");
    }
    for (std::size_t m = 0; m < answers.metrics.size();) {
        std::string names;
        const std::string& note = answers.metrics[m].note;
        for (; m < answers.metrics.size() && answers.metrics[m].note == note; ++m)
            names += (names.empty() ? "" : ", ") + answers.metrics[m].name;
        if (!note.empty()) view.below.push_back(fmt::format("{}: {}", names, note));
    }
    for (const Trust& trust : answers.trust)
        if (trust.view == "functions" && !(trust.estimated + trust.not_known).empty())
            for (std::string& line : trust_lines(trust)) view.below.push_back(std::move(line));
    // A metric of samples is an estimate by its name.
    if (std::string note = counts_note(answers.account);
        !note.empty() && (answers.metrics[metric].exact || answers.metrics[metric].stretches != 0))
        view.below.push_back(std::move(note));
    return view;
}

}  // namespace waymark::answers
