/// `waymark profile`: what each function, line, block, instruction or image cost.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "views.h"
#include "waymark/analysis/profile.h"

namespace waymark::cli {

namespace {

using analysis::Answers;
using analysis::Costs;
using analysis::Index;

struct ProfileRow {
    std::string name, where, image;
    std::string_view path{};
    std::uint64_t address{};
    std::uint32_t line{};
    std::uint64_t calls{}, times{};
    Costs self{}, inclusive{}, inlined{};
    std::uint64_t places{};  ///< inlined calls
    std::string frames{};    ///< of an instruction: the calls it was inlined through
};

void add(Costs& to, const Costs& costs) {
    if (to.size() < costs.size()) to.resize(costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) to[i] += costs[i];
}

bool zero(const Costs& all) {
    return std::all_of(all.begin(), all.end(), [](std::uint64_t n) { return n == 0; });
}

class ProfileView {
public:
    ProfileView(const Answers& answers, const ProfileOptions& options, std::size_t metric)
        : answers_(answers), options_(options), metric_(metric) {
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
            all_ += row.self[metric_];
            calls_known_ |= row.calls != 0;
            frames_known_ |= !row.frames.empty();
            inclusive_known_ |= !row.inclusive.empty();
        }
        sort();
    }

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    [[nodiscard]] Rows table() const {
        const std::string& name = answers_.metrics[metric_].name;
        const bool samples = answers_.metrics[metric_].unit == "samples" && !answers_.metrics[metric_].exact;
        const bool inclusive = inclusive_known_, addresses = options_.by == "instruction" || options_.by == "block";
        const bool images = options_.by != "image" && answers_.images.size() > 1, places = options_.by != "image";
        std::vector<Rows::Column> columns{{"", "share of " + name, true}, {"share", ""}};
        if (samples) {
            columns.push_back({"share_low", ""});
            columns.push_back({"share_high", ""});
            columns.push_back({"", "95 %"});
        }
        for (const analysis::Metric& m : answers_.metrics) columns.push_back({m.name, m.name});
        if (inclusive) {
            for (std::size_t m = 0; m < answers_.metrics.size(); ++m)
                columns.push_back({answers_.metrics[m].name + " inclusive", m == metric_ ? "with callees" : ""});
            columns.push_back({"share inclusive", "share"});
        }
        const bool inlined = options_.inlines && !addresses;
        if (inlined) {
            for (std::size_t m = 0; m < answers_.metrics.size(); ++m)
                columns.push_back({answers_.metrics[m].name + " inlined", m == metric_ ? "inlined" : ""});
            columns.push_back({"places", "in places"});
        }
        const auto spreads = options_.by == "function" ? spread_of_runs(name) : std::map<std::string, std::string>();
        if (!spreads.empty()) columns.push_back({name + " spread %", "spread %"});
        columns.push_back({"calls", calls_known_ ? "calls" : ""});
        columns.push_back({"times", options_.by == "block" ? "times" : ""});
        columns.push_back({"address", addresses ? "address" : "", true});
        columns.push_back({options_.by, options_.by, true});
        const bool lines = options_.by != "line";
        columns.push_back({lines ? "line" : "line number", places && lines ? "line" : "", true});
        columns.push_back({"file", ""});
        if (frames_known_) columns.push_back({"inlined through", "inlined through", true});
        if (places) columns.push_back({"image", images ? "in" : "", true});
        Rows out(columns);
        for (const ProfileRow& r : rows_) {
            const std::uint64_t self = r.self[metric_];
            std::vector<Cell> cells{Cell::bar(self, all_), Cell::share(self, all_)};
            if (samples) {
                const analysis::Interval i = analysis::wilson_95(self, all_);
                cells.emplace_back(std::string(), fmt::format("{}", i.low));
                cells.emplace_back(std::string(), fmt::format("{}", i.high));
                cells.emplace_back(fmt::format("{:.1f}-{:.1f}%", 100 * i.low, 100 * i.high), std::string(),
                                   self < analysis::few_samples ? Colour::dim : Colour::plain);
            }
            for (std::size_t m = 0; m < answers_.metrics.size(); ++m)
                cells.push_back(m < r.self.size() ? Cell(r.self[m]) : Cell());
            if (inclusive) {
                const bool known = !r.inclusive.empty();
                for (std::size_t m = 0; m < answers_.metrics.size(); ++m)
                    cells.push_back(known ? Cell(r.inclusive[m]) : Cell());
                cells.push_back(known ? Cell::share(r.inclusive[metric_], all_) : Cell());
            }
            if (inlined) {
                for (std::size_t m = 0; m < answers_.metrics.size(); ++m)
                    cells.push_back(m < r.inlined.size() ? Cell(r.inlined[m]) : Cell());
                cells.emplace_back(r.places);
            }
            if (!spreads.empty()) {
                const auto found = spreads.find(r.name);
                cells.push_back(found == spreads.end() ? Cell() : Cell(found->second));
            }
            cells.emplace_back(r.calls);
            cells.emplace_back(r.times);
            cells.push_back(addresses || r.address != 0 ? Cell::hex(r.address) : Cell());
            cells.push_back(Cell(r.name).in(Colour::bold));
            cells.emplace_back(r.where, r.line == 0 ? std::string() : std::to_string(r.line), Colour::dim);
            cells.push_back(r.path.empty() ? Cell() : Cell(r.path));
            if (frames_known_) cells.emplace_back(r.frames);
            if (places) cells.emplace_back(r.image);
            out.add(std::move(cells));
        }
        return out;
    }

private:
    /// Where runs of counters were merged: how far a metric lies apart in them, by function.
    [[nodiscard]] std::map<std::string, std::string> spread_of_runs(const std::string& metric) const {
        std::map<std::string, std::string> out;
        for (const analysis::Table& table : answers_.tables)
            if (table.title == "runs")
                for (const auto& row : table.rows)
                    if (row.size() == table.columns.size() && row[1] == metric)
                        out.try_emplace(row.front(), row.back());
        return out;
    }
    void by_function(bool by_image) {
        const std::vector<analysis::FunctionCosts> costs = analysis::function_costs(answers_);
        std::map<Index, std::size_t> images;
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const analysis::FunctionCosts& c = costs[i];
            const analysis::Function& f = answers_.functions[i];
            if (c.calls == 0 && zero(c.self) && zero(c.inclusive)) continue;
            if (by_image) {
                const auto [at, fresh] = images.try_emplace(f.image, rows_.size());
                if (fresh) {
                    rows_.emplace_back();
                    rows_.back().name = f.image == analysis::none ? "[no image]" : image_name(answers_, f.image);
                }
                add(rows_[at->second].self, c.self);
                continue;
            }
            ProfileRow row{
                f.name, line_text(answers_, f.source, f.line), std::string(image_name(answers_, f.image)), {}};
            row.path = path_text(answers_, f.source);
            row.line = f.line;
            row.address = f.synthetic ? 0 : f.address;
            row.calls = c.calls;
            row.self = c.self;
            row.inclusive = c.inclusive;
            rows_.push_back(std::move(row));
        }
    }

    void by_inlined_function() {
        const std::vector<analysis::FunctionCosts> all = analysis::function_costs(answers_);
        for (const analysis::InlinedCosts& c : analysis::inlined_costs(answers_)) {
            const bool own = c.function < answers_.functions.size();
            const std::uint64_t calls = own ? all[c.function].calls : 0;
            if (calls == 0 && c.places == 0 && zero(c.self)) continue;
            ProfileRow row{c.name, {}, std::string(image_name(answers_, c.image)), {}};
            if (own) {
                const analysis::Function& f = answers_.functions[c.function];
                row.where = line_text(answers_, f.source, f.line);
                row.path = path_text(answers_, f.source);
                row.line = f.line;
                row.address = f.synthetic ? 0 : f.address;
            }
            row.calls = calls;
            row.self = c.self;
            row.inlined = c.inlined;
            row.places = c.places;
            rows_.push_back(std::move(row));
        }
    }
    /// `square at main.c:5, called by cube at main.c:9`: the innermost line first, the function itself last.
    [[nodiscard]] std::string frames_text(const analysis::Instruction& i) const {
        if (i.inlined >= answers_.inlined.size()) return {};
        std::string out;
        for (const analysis::InlineFrame& frame : analysis::inline_frames(answers_, i)) {
            const std::string line = line_text(answers_, frame.source, frame.line);
            out += fmt::format("{}{}{}{}", out.empty() ? "" : ", called by ",
                               frame.function.empty() ? std::string_view("[unknown]") : frame.function,
                               line.empty() ? "" : " at ", line);
        }
        return out;
    }

    [[nodiscard]] Costs costs_of(const analysis::Instruction& i) const {
        return i.costs.empty() ? Costs{i.times} : i.costs;
    }

    void by_line() {
        std::map<std::tuple<Index, std::uint32_t, Index>, ProfileRow> found;
        for (const analysis::Instruction& i : answers_.instructions) {
            const Costs costs = costs_of(i);
            if (zero(costs)) continue;
            const bool known = i.source != analysis::none && i.line != 0;
            ProfileRow& row =
                known ? found[{i.source, i.line, analysis::none}] : found[{analysis::none, 0, i.function}];
            if (row.name.empty()) {
                row.name = known ? line_text(answers_, i.source, i.line)
                                 : fmt::format("{} (no line)", function_name(answers_, i.function));
                if (known) row.path = path_text(answers_, i.source);
                row.line = known ? i.line : 0;
                if (i.function < answers_.functions.size())
                    row.image = image_name(answers_, answers_.functions[i.function].image);
            }
            add(row.self, costs);
        }
        for (auto& [key, row] : found) rows_.push_back(std::move(row));
    }

    void by_instruction() {
        for (const analysis::Instruction& i : answers_.instructions) {
            ProfileRow row{place_text(answers_, i.function, i.address), line_text(answers_, i.source, i.line), {}, {}};
            row.self = costs_of(i);
            if (zero(row.self)) continue;
            if (options_.inlines) row.frames = frames_text(i);
            if (!i.text.empty()) row.name += "  " + i.text;
            row.path = path_text(answers_, i.source);
            row.line = i.line;
            row.address = i.address;
            row.times = i.times;
            if (i.function < answers_.functions.size())
                row.image = image_name(answers_, answers_.functions[i.function].image);
            rows_.push_back(std::move(row));
        }
    }

    void by_block() {
        for (const analysis::Block& b : answers_.blocks) {
            if (b.times == 0) continue;
            // Whatever else is told, is told of instructions: a block has all that lie in it.
            ProfileRow row{place_text(answers_, b.function, b.address), {}, {}, {}};
            const auto first = std::lower_bound(
                answers_.instructions.begin(), answers_.instructions.end(), b.address,
                [](const analysis::Instruction& i, std::uint64_t address) { return i.address < address; });
            if (first != answers_.instructions.end() && first->address == b.address) {
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
        if (!known) say_not_sorted(options_.sort, fmt::format("not known by {} here", options_.by), "self");
        std::stable_sort(rows_.begin(), rows_.end(), [&](const ProfileRow& a, const ProfileRow& b) {
            const auto key = [&](const ProfileRow& r) {
                return !known                         ? r.self[metric_]
                       : options_.sort == "inclusive" ? inclusive(r)
                       : options_.sort == "calls"     ? r.calls
                       : options_.sort == "name"      ? 0
                                                      : r.self[metric_];
            };
            return std::tuple(key(b), a.name, a.address) < std::tuple(key(a), b.name, b.address);
        });
    }

    const Answers& answers_;
    const ProfileOptions& options_;
    std::size_t metric_;
    std::vector<ProfileRow> rows_;
    std::uint64_t all_ = 0;
    bool calls_known_ = false, inclusive_known_ = false, frames_known_ = false;
};

}  // namespace

Status show_profile(const Answers& answers, const ProfileOptions& options, Output& out) {
    const auto metric = find_metric(answers, options.metric);
    if (!metric) {
        say("error", metric.error().message);
        return usage;
    }
    if (options.by == "block" && *metric != 0) {
        say("error", fmt::format("blocks are known for {} only", answers.metrics.front().name));
        return usage;
    }
    if (options.inlines && answers.instructions.empty()) {
        say("error", fmt::format("{}: --inlines needs the cost of single instructions, which counters do not record",
                                 answers.capture));
        return usage;
    }
    const ProfileView profile(answers, options, *metric);
    if (profile.empty()) {
        const char* why = answers.unit == "DPU" && options.by != "function" && options.by != "image"
                              ? "counters record the cost of functions and tasks, not of each {}"
                          : answers.unit == "SPE" && options.by == "block"
                              ? "samples are of instructions, not of {}s; use --by instruction"
                              : "nothing that ran can be listed by {}";
        say("error", fmt::format("{}: {}", answers.capture, fmt::format(fmt::runtime(why), options.by)));
        return nothing;
    }
    print_rows(out, answers, options,
               fmt::format("per {}: {}{}", options.by, costs_name(answers.metrics[*metric]),
                           options.by != "function" ? ""
                           : options.inlines        ? ", own, wherever it was inlined"
                           : answers.calls.empty()  ? ""
                                                    : ", own and with what it called"),
               profile.table());
    if (options.inlines && answers.inlined.empty())
        say("note", "no code is known to be inlined; that needs debug information (programs built with -g)");
    if (options.format == "text") {
        // What several runs of counters give together, no view of one capture shows.
        const bool runs = std::any_of(answers.tables.begin(), answers.tables.end(),
                                      [](const analysis::Table& t) { return t.title == "runs"; });
        for (const analysis::Table& t : answers.tables) {
            if (!runs || t.title != "ratios" || t.rows.empty()) continue;
            bool any = false;
            for (std::size_t i = 1; i < t.columns.size(); ++i)
                if (!t.rows.front()[i].empty()) {
                    out.print("{}{} {}", any ? ", " : "", t.columns[i].name, t.rows.front()[i]);
                    any = true;
                }
            if (any) out.write("\n");
        }
        for (std::size_t m = 0; m < answers.metrics.size();) {
            std::string names;
            const std::string& note = answers.metrics[m].note;
            for (; m < answers.metrics.size() && answers.metrics[m].note == note; ++m)
                names += (names.empty() ? "" : ", ") + answers.metrics[m].name;
            if (!note.empty()) out.print("{}: {}\n", names, note);
        }
        for (const analysis::Trust& trust : answers.trust)
            if (trust.view == "functions" && !(trust.estimated + trust.not_known).empty()) print_trust(out, trust);
    }
    return decoded;
}

}  // namespace waymark::cli
