#include "sections.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "json.h"
#include "waymark/answers/costs.h"
#include "waymark/core/numbers.h"

namespace waymark::report {

namespace {

using namespace answers;

/// `none` is -1.
std::int64_t index(Index i) { return i == none ? -1 : static_cast<std::int64_t>(i); }

/// Texts that occur more than once, each with a number.
class Texts {
public:
    std::size_t add(const std::string& text) {
        const auto [found, is_new] = numbers_.try_emplace(text, texts_.size());
        if (is_new) texts_.push_back(&found->first);
        return found->second;
    }
    void write(Json& json, std::string_view name) const {
        json.strings(name, texts_, [](const std::string* text) -> const std::string& { return *text; });
    }

private:
    std::unordered_map<std::string, std::size_t> numbers_;  // its keys stay where they are
    std::vector<const std::string*> texts_;
};

/// An array of columns, one per metric.
template <class Rows, class CostsOf>
void write_costs(Json& json, std::string_view name, const Answers& answers, const Rows& rows, CostsOf&& costs_of) {
    json.key(name).begin_array();
    for (std::size_t metric = 0; metric < answers.metrics.size(); ++metric) {
        json.begin_array();
        for (const auto& row : rows) json.number(cost_of(costs_of(row), metric));
        json.end_array();
    }
    json.end_array();
}

/// Indices of those `rows` that are greatest, in their own order; equal ones: the first.
template <class Greater>
std::vector<std::size_t> greatest(std::size_t rows, std::size_t most, Greater&& greater) {
    std::vector<std::size_t> kept(rows);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    if (rows <= most) return kept;
    std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
                     [&](std::size_t a, std::size_t b) {
                         if (greater(a, b)) return true;
                         return !greater(b, a) && a < b;
                     });
    kept.resize(most);
    std::sort(kept.begin(), kept.end());
    return kept;
}

}  // namespace

// ---- calls

PageSection calls_section(const Answers& answers, Limit most_calls) {
    const std::vector<CallNode>& nodes = answers.calls;
    const std::vector<std::uint64_t> inclusive = inclusive_costs(answers, 0);
    // A caller costs no less than what it calls and comes before it, so the callers of each kept node are kept.
    const auto kept =
        greatest(nodes.size(), most_calls, [&](std::size_t a, std::size_t b) { return inclusive[a] > inclusive[b]; });

    struct Row {
        std::int64_t parent, function;
        int kind;
        std::uint64_t calls;
        Costs self;
    };
    constexpr int folded = 4;
    std::vector<Row> rows;
    std::vector<std::size_t> row_of(nodes.size(), nodes.size());
    for (const std::size_t i : kept) {
        const CallNode& node = nodes[i];
        row_of[i] = rows.size();
        rows.push_back({node.parent == none ? -1 : static_cast<std::int64_t>(row_of[node.parent]), index(node.function),
                        static_cast<int>(node.kind), node.calls, node.self});
    }
    // What is left out becomes one node for each node that is kept.
    std::map<std::size_t, Row> rest;
    std::vector<std::size_t> above(nodes.size());
    for (std::size_t i = 0; i < nodes.size() && kept.size() < nodes.size(); ++i) {
        if (row_of[i] != nodes.size()) {
            above[i] = row_of[i];
            continue;
        }
        above[i] = nodes[i].parent == none ? 0 : above[nodes[i].parent];
        Row& row =
            rest.try_emplace(above[i], Row{static_cast<std::int64_t>(above[i]), -1, folded, 0, {}}).first->second;
        row.calls += nodes[i].calls;
        if (row.self.size() < nodes[i].self.size()) row.self.resize(nodes[i].self.size());
        for (std::size_t metric = 0; metric < nodes[i].self.size(); ++metric) row.self[metric] += nodes[i].self[metric];
    }
    for (auto& [parent, row] : rest) rows.push_back(std::move(row));

    Json json;
    json.begin_object();
    json.differences("parent", rows, [](const Row& r) { return r.parent; });
    json.column("function", rows, [](const Row& r) { return r.function; });
    json.column("kind", rows, [](const Row& r) { return r.kind; });
    json.column("calls", rows, [](const Row& r) { return r.calls; });
    write_costs(json, "self", answers, rows, [](const Row& r) -> const Costs& { return r.self; });
    json.end_object();
    if (kept.size() == nodes.size()) return {json.str()};
    return {json.str(), fmt::format("The flame graph shows the {} most costly of {} calls one by one; the others are "
                                    "summed up for each caller.",
                                    grouped(kept.size()), grouped(nodes.size()))};
}

// ---- code

namespace {

/// Which functions' instructions are kept: the most costly, up to `most` instructions.
std::vector<bool> costly_functions(const Answers& answers, Limit most) {
    struct Sum {
        std::uint64_t cost{}, instructions{};
        std::size_t function{};
    };
    std::vector<Sum> sums(answers.functions.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].function = i;
    for (const Instruction& i : answers.instructions) {
        if (i.function >= sums.size()) continue;
        sums[i.function].cost += i.costs.empty() ? i.times : i.costs[0];
        ++sums[i.function].instructions;
    }
    std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.cost > b.cost; });
    std::vector<bool> kept(answers.functions.size());
    std::uint64_t used = 0;
    for (const Sum& sum : sums) {
        if (used + sum.instructions > most) break;
        used += sum.instructions;
        kept[sum.function] = true;
    }
    return kept;
}

/// The inlined calls that instructions lie in, renumbered: those of instructions that were left out are left out too.
class InlinedCalls {
public:
    InlinedCalls(const Answers& answers, const std::vector<const Instruction*>& instructions)
        : number_(answers.inlined.size(), -1) {
        for (const Instruction* i : instructions)
            for (Index at = i->inlined; at < number_.size() && number_[at] < 0; at = answers.inlined[at].parent)
                number_[at] = 0;
        // Parents stand before their children, here as there.
        for (std::size_t at = 0; at < number_.size(); ++at) {
            if (number_[at] < 0) continue;
            number_[at] = static_cast<std::int64_t>(calls_.size());
            calls_.push_back(&answers.inlined[at]);
        }
    }
    [[nodiscard]] bool empty() const { return calls_.empty(); }
    [[nodiscard]] std::int64_t of(Index at) const { return at < number_.size() ? number_[at] : -1; }
    void write(Json& json, Texts& texts) const {
        json.key("inlined").begin_object();
        json.column("parent", calls_, [&](const InlinedCall* c) { return of(c->parent); });
        json.column("name", calls_, [&](const InlinedCall* c) { return texts.add(c->name); });
        json.column("source", calls_, [](const InlinedCall* c) { return index(c->source); });
        json.column("line", calls_, [](const InlinedCall* c) { return c->line; });
        json.end_object();
    }

private:
    std::vector<std::int64_t> number_;  // by index there; -1: of no instruction
    std::vector<const InlinedCall*> calls_;
};

/// The lines of a text that stand within `near` lines of one with code, as [first line, text] of each stretch.
void write_text(Json& json, const SourceFile& source, const std::vector<std::uint32_t>& with_code, std::uint32_t near) {
    const auto lines = static_cast<std::uint32_t>(source.lines.size());
    std::uint32_t written = 0;
    json.begin_array();
    for (std::size_t i = 0; i < with_code.size() && written < lines;) {
        const std::uint32_t first = std::max(written + 1, with_code[i] > near ? with_code[i] - near : 1);
        std::uint32_t last = std::min(lines, with_code[i] + near);
        for (++i; i < with_code.size() && with_code[i] <= last + near + 1; ++i)
            last = std::min(lines, with_code[i] + near);
        std::string text;
        for (std::uint32_t line = first; line <= last; ++line) {
            if (line != first) text += '\n';
            text += source.lines[line - 1];
        }
        if (first <= last) {
            json.number(first);
            json.string(text);
        }
        written = std::max(written, last);
    }
    json.end_array();
}

}  // namespace

PageSection code_section(const Answers& answers, Limit most_instructions) {
    const bool all = answers.instructions.size() <= most_instructions && answers.lines.size() <= most_instructions;
    const std::vector<bool> of = costly_functions(answers, all ? answers.instructions.size() : most_instructions);
    std::vector<const Instruction*> instructions;
    for (const Instruction& i : answers.instructions)
        if (all || (i.function < of.size() && of[i.function])) instructions.push_back(&i);
    std::vector<const Line*> lines;
    for (const Line& l : answers.lines)
        if (all || answers.instructions.empty() || (l.function < of.size() && of[l.function])) lines.push_back(&l);
    if (lines.size() > most_instructions) lines.resize(most_instructions);

    Json json;
    json.begin_object();
    json.key("instructions").begin_object();
    json.addresses("address", instructions, [](const Instruction* i) { return i->address; });
    json.column("bytes", instructions, [](const Instruction* i) { return unsigned{i->bytes}; });
    json.column("isa", instructions, [](const Instruction* i) { return static_cast<int>(i->isa); });
    json.column("seen", instructions, [](const Instruction* i) { return static_cast<int>(i->seen); });
    json.column("function", instructions, [](const Instruction* i) { return index(i->function); });
    json.column("source", instructions, [](const Instruction* i) { return index(i->source); });
    json.column("line", instructions, [](const Instruction* i) { return i->line; });
    json.column("times", instructions, [](const Instruction* i) { return i->times; });
    const bool costs =
        std::any_of(instructions.begin(), instructions.end(), [](const Instruction* i) { return !i->costs.empty(); });
    if (costs)
        write_costs(json, "costs", answers, instructions,
                    [](const Instruction* i) -> const Costs& { return i->costs; });
    Texts texts;
    json.column("text", instructions, [&](const Instruction* i) { return texts.add(i->text); });
    const InlinedCalls inlined(answers, instructions);
    if (!inlined.empty())
        json.column("inlined", instructions, [&](const Instruction* i) { return inlined.of(i->inlined); });
    json.end_object();
    if (!inlined.empty()) inlined.write(json, texts);
    texts.write(json, "texts");

    json.key("lines").begin_object();
    json.column("source", lines, [](const Line* l) { return index(l->source); });
    json.differences("line", lines, [](const Line* l) { return l->line; });
    json.column("seen", lines, [](const Line* l) { return static_cast<int>(l->seen); });
    json.column("function", lines, [](const Line* l) { return index(l->function); });
    json.column("times", lines, [](const Line* l) { return l->times; });
    write_costs(json, "costs", answers, lines, [](const Line* l) -> const Costs& { return l->costs; });
    json.end_object();

    std::uint64_t characters = 0;
    for (const SourceFile& source : answers.sources)
        for (const std::string& line : source.lines) characters += line.size() + 1;
    constexpr std::uint64_t characters_whole = 4'000'000;
    const bool whole = all && characters <= characters_whole;
    std::vector<std::vector<std::uint32_t>> with_code(answers.sources.size());
    for (const Line* l : lines)
        if (l->source < with_code.size() && l->line != 0) with_code[l->source].push_back(l->line);
    json.key("sources").begin_array();
    for (std::size_t i = 0; i < answers.sources.size(); ++i) {
        std::vector<std::uint32_t>& code = with_code[i];
        std::sort(code.begin(), code.end());
        const auto length = static_cast<std::uint32_t>(answers.sources[i].lines.size());
        write_text(json, answers.sources[i], code, whole ? length : 30);
    }
    json.end_array();
    json.end_object();

    std::string left_out;
    if (!all)
        left_out = fmt::format("Instructions and lines are those of the most costly functions: {} of {} instructions.",
                               grouped(instructions.size()), grouped(answers.instructions.size()));
    if (!whole) left_out += fmt::format("{}Sources are shown near code that could run.", left_out.empty() ? "" : " ");
    return {json.str(), left_out};
}

// ---- branches

PageSection branches_section(const Answers& answers, Limit most_branches) {
    const auto kept = greatest(answers.branches.size(), most_branches, [&](std::size_t a, std::size_t b) {
        const Branch &one = answers.branches[a], &other = answers.branches[b];
        return one.taken + one.not_taken > other.taken + other.not_taken;
    });
    std::vector<const Branch*> branches;
    for (const std::size_t i : kept) branches.push_back(&answers.branches[i]);

    const auto hot = greatest(answers.blocks.size(), most_branches, [&](std::size_t a, std::size_t b) {
        const Block &one = answers.blocks[a], &other = answers.blocks[b];
        return one.times * one.instructions > other.times * other.instructions;
    });
    std::vector<const Block*> blocks;
    for (const std::size_t i : hot) blocks.push_back(&answers.blocks[i]);
    const auto instruction_at = [&](std::uint64_t address) -> const Instruction* {
        const auto found = std::lower_bound(answers.instructions.begin(), answers.instructions.end(), address,
                                            [](const Instruction& i, std::uint64_t at) { return i.address < at; });
        return found != answers.instructions.end() && found->address == address ? &*found : nullptr;
    };

    // The page asks who calls a function, and whom it calls: edges between the same two functions are one. A jump to
    // another function's beginning is a tail call, or a call where the unit does not distinguish calls from jumps.
    const auto is_call = [&](const Edge& e) {
        if (e.from_function >= answers.functions.size() || e.to_function >= answers.functions.size()) return false;
        switch (e.kind) {
            case Branch::Kind::call:
            case Branch::Kind::indirect_call: return true;
            case Branch::Kind::function_return: return false;
            default: return e.from_function != e.to_function && e.to == answers.functions[e.to_function].address;
        }
    };
    struct Pair {
        std::uint64_t times{};
    };
    std::map<std::pair<Index, Index>, Pair> pairs;
    for (const Edge& edge : answers.edges)
        if (is_call(edge)) pairs[{edge.from_function, edge.to_function}].times += edge.times;

    Json json;
    json.begin_object();
    json.key("branches").begin_object();
    json.addresses("address", branches, [](const Branch* b) { return b->address; });
    json.addresses("target", branches, [](const Branch* b) { return b->target; });
    json.column("kind", branches, [](const Branch* b) { return static_cast<int>(b->kind); });
    json.column("function", branches, [](const Branch* b) { return index(b->function); });
    json.column("source", branches, [](const Branch* b) { return index(b->source); });
    json.column("line", branches, [](const Branch* b) { return b->line; });
    json.column("taken", branches, [](const Branch* b) { return b->taken; });
    json.column("notTaken", branches, [](const Branch* b) { return b->not_taken; });
    json.column("seenTaken", branches, [](const Branch* b) { return static_cast<int>(b->seen_taken); });
    json.column("seenNotTaken", branches, [](const Branch* b) { return static_cast<int>(b->seen_not_taken); });
    json.column("mispredicted", branches, [](const Branch* b) {
        return b->mispredicted ? static_cast<std::int64_t>(*b->mispredicted) : std::int64_t{-1};
    });
    json.end_object();
    json.key("edges").begin_object();
    json.column("from", pairs, [](const auto& p) { return p.first.first; });
    json.column("to", pairs, [](const auto& p) { return p.first.second; });
    json.column("times", pairs, [](const auto& p) { return p.second.times; });
    json.end_object();
    json.key("blocks").begin_object();
    json.addresses("address", blocks, [](const Block* b) { return b->address; });
    json.column("bytes", blocks, [](const Block* b) { return b->bytes; });
    json.column("instructions", blocks, [](const Block* b) { return b->instructions; });
    json.column("function", blocks, [](const Block* b) { return index(b->function); });
    json.column("times", blocks, [](const Block* b) { return b->times; });
    json.column("source", blocks, [&](const Block* b) {
        const Instruction* first = instruction_at(b->address);
        return first == nullptr ? std::int64_t{-1} : index(first->source);
    });
    json.column("line", blocks, [&](const Block* b) {
        const Instruction* first = instruction_at(b->address);
        return first == nullptr ? 0U : first->line;
    });
    json.end_object();
    json.end_object();
    std::string left_out;
    if (kept.size() < answers.branches.size())
        left_out = fmt::format("Branches are the {} that ran most often, of {}.", grouped(kept.size()),
                               grouped(answers.branches.size()));
    if (hot.size() < answers.blocks.size())
        left_out += fmt::format("{}Blocks are the {} in which most instructions ran, of {}.",
                                left_out.empty() ? "" : " ", grouped(hot.size()), grouped(answers.blocks.size()));
    return {json.str(), left_out};
}

// ---- timeline

namespace {

/// Slices of at least `shortest`, and for each stretch of shorter ones at one depth one slice that represents them.
std::vector<Slice> merged(const std::vector<Slice>& slices, std::uint64_t shortest) {
    struct Open {
        Slice slice;
        std::uint64_t longest{};
    };
    std::map<std::pair<Index, std::uint32_t>, Open> open;
    std::vector<Slice> out;
    const auto close = [&](Open& o) {
        if (o.slice.merged != 0 && o.slice.end - o.slice.begin >= shortest) out.push_back(o.slice);
        o = {};
        o.slice.merged = 0;
    };
    for (const Slice& slice : slices) {
        Open& o = open.try_emplace({slice.track, slice.depth}, Open{Slice{0, 0, 0, 0, 0, 0}, 0}).first->second;
        const std::uint64_t length = slice.end - slice.begin;
        if (length >= shortest) {
            close(o);
            out.push_back(slice);
            continue;
        }
        if (o.slice.merged != 0 && slice.begin > o.slice.end && slice.begin - o.slice.end >= shortest) close(o);
        if (o.slice.merged == 0) {
            o.slice = slice;
            o.longest = length;
            continue;
        }
        o.slice.end = std::max(o.slice.end, slice.end);
        o.slice.merged += slice.merged;
        if (length > o.longest) {
            o.longest = length;
            o.slice.function = slice.function;
        }
        if (o.slice.end - o.slice.begin >= shortest) close(o);
    }
    for (auto& [place, o] : open) close(o);
    std::sort(out.begin(), out.end(), [](const Slice& a, const Slice& b) {
        return std::tie(a.track, a.begin, a.depth) < std::tie(b.track, b.begin, b.depth);
    });
    return out;
}

/// The least and the greatest of each of `most / 2` stretches.
std::vector<Series::Point> thinned(const std::vector<Series::Point>& points, std::size_t most) {
    if (points.size() <= most) return points;
    std::vector<Series::Point> out;
    const std::size_t stretches = std::max<std::size_t>(1, most / 2);
    for (std::size_t i = 0; i < stretches; ++i) {
        const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * i / stretches);
        const auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (i + 1) / stretches);
        if (begin == end) continue;
        const auto by_value = [](const Series::Point& a, const Series::Point& b) { return a.value < b.value; };
        auto [least, most_] = std::minmax_element(begin, end, by_value);
        if (most_ < least) std::swap(least, most_);
        out.push_back(*least);
        if (most_ != least) out.push_back(*most_);
    }
    return out;
}

}  // namespace

PageSection timeline_section(const Answers& answers, Limit most_slices) {
    const Timeline& timeline = answers.timeline;
    const std::uint64_t zero = timeline.axis.begin;
    const auto since = [zero](std::uint64_t time) { return time > zero ? time - zero : 0; };

    std::vector<Slice> slices = timeline.slices;
    std::uint64_t shortest = timeline.resolution;
    while (slices.size() > most_slices) {
        std::vector<std::uint64_t> lengths;
        for (const Slice& slice : slices) lengths.push_back(slice.end - slice.begin);
        const auto middle = lengths.end() - static_cast<std::ptrdiff_t>(std::max<Limit>(1, most_slices * 3 / 4));
        std::nth_element(lengths.begin(), middle, lengths.end());
        shortest = std::max(*middle, shortest + std::max<std::uint64_t>(1, shortest / 2));
        slices = merged(slices, shortest);
    }
    const std::size_t most_marks = std::max<Limit>(100, most_slices / 4);
    const auto marks = greatest(timeline.marks.size(), most_marks, [&](std::size_t a, std::size_t b) {
        // Lost flow first: it says how far to trust the rest.
        const TimelineMark &one = timeline.marks[a], &other = timeline.marks[b];
        const bool gap = one.kind == TimelineMark::Kind::gap, other_gap = other.kind == TimelineMark::Kind::gap;
        return gap != other_gap ? gap : one.end - one.begin > other.end - other.begin;
    });

    Json json;
    json.begin_object();
    json.key("axis").begin_object();
    json.key("unit").string(timeline.axis.unit);
    json.key("ticksPerSecond").number(timeline.axis.ticks_per_second);
    json.key("begin").string(std::to_string(zero));
    json.key("length").number(since(timeline.axis.end));
    json.key("uncertainty").number(timeline.axis.uncertainty);
    json.key("note").string(timeline.axis.note);
    json.end_object();
    json.key("resolution").number(shortest);
    json.key("tracks").begin_object();
    json.strings("name", timeline.tracks, [](const Track& t) -> const std::string& { return t.name; });
    json.column("parent", timeline.tracks, [](const Track& t) { return index(t.parent); });
    json.end_object();
    json.key("slices").begin_object();
    json.differences("begin", slices, [&](const Slice& s) { return since(s.begin); });
    json.column("length", slices, [](const Slice& s) { return s.end - s.begin; });
    json.differences("track", slices, [](const Slice& s) { return s.track; });
    json.column("function", slices, [](const Slice& s) { return index(s.function); });
    json.column("depth", slices, [](const Slice& s) { return s.depth; });
    json.column("merged", slices, [](const Slice& s) { return s.merged; });
    json.end_object();
    Texts texts;
    json.key("marks").begin_object();
    const auto mark = [&](std::size_t i) -> const TimelineMark& { return timeline.marks[i]; };
    json.differences("begin", marks, [&](std::size_t i) { return since(mark(i).begin); });
    json.column("length", marks, [&](std::size_t i) { return mark(i).end - mark(i).begin; });
    json.column("track", marks, [&](std::size_t i) { return index(mark(i).track); });
    json.column("kind", marks, [&](std::size_t i) { return static_cast<int>(mark(i).kind); });
    json.column("text", marks, [&](std::size_t i) { return texts.add(mark(i).text); });
    json.end_object();
    texts.write(json, "texts");
    bool thin = false;
    json.key("series").begin_array();
    const std::size_t most_points = std::max<Limit>(200, most_slices / 20);
    for (const Series& series : timeline.series) {
        const auto points = thinned(series.points, most_points);
        thin = thin || points.size() < series.points.size();
        json.begin_object();
        json.key("name").string(series.name);
        json.key("unit").string(series.unit);
        json.key("track").number(index(series.track));
        json.differences("time", points, [&](const Series::Point& p) { return since(p.time); });
        // Six digits are more than a picture shows. JSON knows no infinity.
        json.key("value").begin_array();
        for (const Series::Point& p : points) json.string(fmt::format("{:.6g}", p.value));
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.end_object();

    std::string left_out;
    if (shortest != timeline.resolution)
        left_out = fmt::format("On the timeline, what is shorter than {} {} is merged or left out.", grouped(shortest),
                               timeline.axis.unit);
    if (marks.size() < timeline.marks.size())
        left_out += fmt::format("{}It has the {} longest of {} marks.", left_out.empty() ? "" : " ",
                                grouped(marks.size()), grouped(timeline.marks.size()));
    if (thin) left_out += fmt::format("{}Its series show extremes only.", left_out.empty() ? "" : " ");
    return {json.str(), left_out};
}

// ---- the head

namespace {

void write_findings(Json& json, const Answers& answers, const std::vector<std::string>& left_out) {
    const auto write = [&json](int severity, const Finding& finding) {
        json.begin_object();
        json.key("severity").number(severity);
        json.key("what").string(finding.what);
        json.key("todo").string(finding.todo);
        if (finding.offset) json.key("offset").string(fmt::format("{:#x}", *finding.offset));
        json.end_object();
    };
    json.key("health").begin_array();
    // The worst come first, and what the report leaves out is a note.
    bool said = false;
    const auto say_left_out = [&] {
        if (!std::exchange(said, true))
            for (const std::string& what : left_out)
                write(static_cast<int>(Finding::Severity::note),
                      {Finding::Severity::note,
                       "This report is kept small: " + what,
                       "Nothing is lost in the capture: the other commands and a larger --max-size show all.",
                       {}});
    };
    for (const Finding& finding : answers.health) {
        if (finding.severity < Finding::Severity::warning) say_left_out();
        write(static_cast<int>(finding.severity), finding);
    }
    say_left_out();
    json.end_array();
}

void write_functions(Json& json, const Answers& answers) {
    const std::vector<FunctionCosts> costs = function_costs(answers);
    const std::vector<Function>& functions = answers.functions;
    json.key("functions").begin_object();
    json.strings("name", functions, [](const Function& f) -> const std::string& { return f.name; });
    json.strings("linkage", functions,
                 [](const Function& f) { return f.linkage_name == f.name ? std::string() : f.linkage_name; });
    json.column("image", functions, [](const Function& f) { return index(f.image); });
    json.addresses("address", functions, [](const Function& f) { return f.address; });
    json.column("bytes", functions, [](const Function& f) { return f.bytes; });
    json.column("source", functions, [](const Function& f) { return index(f.source); });
    json.column("line", functions, [](const Function& f) { return f.line; });
    json.column("synthetic", functions, [](const Function& f) { return f.synthetic ? 1 : 0; });
    json.column("calls", costs, [](const FunctionCosts& c) { return c.calls; });
    write_costs(json, "self", answers, costs, [](const FunctionCosts& c) -> const Costs& { return c.self; });
    if (!answers.calls.empty())
        write_costs(json, "inclusive", answers, costs,
                    [](const FunctionCosts& c) -> const Costs& { return c.inclusive; });
    json.end_object();
}

void write_charts(Json& json, const Answers& answers) {
    json.key("charts").begin_array();
    for (const Chart& chart : answers.charts) {
        json.begin_object();
        json.key("kind").number(static_cast<int>(chart.kind));
        json.key("title").string(chart.title);
        json.key("xUnit").string(chart.x_unit);
        json.key("yUnit").string(chart.y_unit);
        json.key("note").string(chart.note);
        json.strings("label", chart.bars, [](const Chart::Bar& b) -> const std::string& { return b.label; });
        json.column("value", chart.bars, [](const Chart::Bar& b) { return b.value; });
        json.strings("barNote", chart.bars, [](const Chart::Bar& b) -> const std::string& { return b.note; });
        json.end_object();
    }
    json.end_array();
}

/// Gives how many rows there was no room for.
std::uint64_t write_tables(Json& json, const Answers& answers, Limit most_rows) {
    std::uint64_t more = 0;
    json.key("tables").begin_array();
    for (const Table& table : answers.tables) {
        json.begin_object();
        json.key("title").string(table.title);
        json.key("note").string(table.note);
        // Columns that have no heading are for programs.
        std::vector<std::size_t> shown;
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            if (!table.columns[c].head.empty()) shown.push_back(c);
        json.strings("columns", shown, [&](std::size_t c) -> const std::string& { return table.columns[c].head; });
        json.column("numbers", shown, [&](std::size_t c) { return table.columns[c].left() ? 0 : 1; });
        json.key("rows").begin_array();
        for (std::size_t i = 0; i < table.rows.size() && i < most_rows; ++i) {
            json.begin_array();
            for (const std::size_t c : shown) {
                const Cell& cell = table.rows[i][c];
                json.string(table.columns[c].left() ? cell.shown : cell.field());
            }
            json.end_array();
        }
        json.end_array();
        json.key("of").number(table.rows.size());
        json.end_object();
        more += table.rows.size() - std::min<std::uint64_t>(table.rows.size(), most_rows);
    }
    json.end_array();
    return more;
}

}  // namespace

PageSection head_section(const Answers& answers, Limit most_rows, const std::vector<std::string>& left_out) {
    Json json;
    json.begin_object();
    json.key("format").number(1);
    json.key("capture").string(answers.capture);
    json.key("unit").string(answers.unit);
    json.key("version").string(answers.version);
    json.key("traceBytes").number(answers.trace_bytes);
    json.key("summary").begin_array();
    for (const Figure& figure : answers.summary) {
        json.begin_object();
        json.key("name").string(figure.name);
        json.key("value").string(figure.value);
        json.key("note").string(figure.note);
        json.end_object();
    }
    json.end_array();
    json.key("metrics").begin_array();
    for (const Metric& metric : answers.metrics) {
        json.begin_object();
        json.key("name").string(metric.name);
        json.key("unit").string(metric.unit);
        json.key("exact").boolean(metric.exact);
        json.key("note").string(metric.note);
        json.end_object();
    }
    json.end_array();
    json.key("images").begin_array();
    for (const Image& image : answers.images) {
        json.begin_object();
        json.key("name").string(image.name);
        json.key("path").string(image.path);
        json.key("buildId").string(image.build_id);
        json.end_object();
    }
    json.end_array();
    json.strings("sources", answers.sources, [](const SourceFile& s) -> const std::string& { return s.path; });
    write_functions(json, answers);
    json.key("loops").begin_object();
    json.addresses("head", answers.loops, [](const Loop& l) { return l.head; });
    json.addresses("tail", answers.loops, [](const Loop& l) { return l.tail; });
    json.column("function", answers.loops, [](const Loop& l) { return index(l.function); });
    json.column("source", answers.loops, [](const Loop& l) { return index(l.source); });
    json.column("line", answers.loops, [](const Loop& l) { return l.line; });
    json.column("entries", answers.loops, [](const Loop& l) { return l.entries; });
    json.column("iterations", answers.loops, [](const Loop& l) { return l.iterations; });
    json.column("depth", answers.loops, [](const Loop& l) { return l.depth; });
    json.column("irreducible", answers.loops, [](const Loop& l) { return l.irreducible ? 1U : 0U; });
    write_costs(json, "costs", answers, answers.loops, [](const Loop& l) -> const Costs& { return l.costs; });
    json.end_object();
    json.key("exceptions").begin_array();
    for (const ExceptionRow& e : answers.exceptions) {
        json.begin_object();
        json.key("name").string(e.name);
        json.key("number").number(e.number);
        json.key("times").number(e.times);
        json.key("nested").number(e.nested);
        json.key("returned").number(e.returned);
        json.key("least").number(e.least);
        json.key("most").number(e.most);
        json.key("sum").number(e.sum);
        json.key("unit").string(e.unit);
        json.end_object();
    }
    json.end_array();
    json.key("levels").begin_array();
    for (const LevelRow& l : answers.levels) {
        json.begin_object();
        json.key("name").string(answers::name(l));
        json.key("entered").number(l.entered);
        json.key("costs").begin_array();
        for (std::size_t metric = 0; metric < answers.metrics.size(); ++metric) json.number(cost_of(l.costs, metric));
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.key("trust").begin_array();
    for (const Trust& t : answers.trust) {
        json.begin_object();
        json.key("view").string(t.view);
        json.key("exact").string(t.exact);
        json.key("estimated").string(t.estimated);
        json.key("notKnown").string(t.not_known);
        json.end_object();
    }
    json.end_array();
    write_charts(json, answers);
    const std::uint64_t more = write_tables(json, answers, most_rows);
    std::vector<std::string> findings = left_out;
    std::string own;
    if (more != 0) findings.push_back(own = fmt::format("Tables have no room for {} rows.", grouped(more)));
    write_findings(json, answers, findings);
    // What the page shows is decided by what there is, before the other parts are unpacked.
    json.key("has").begin_object();
    json.key("calls").number(answers.calls.size());
    json.key("instructions").number(answers.instructions.size());
    json.key("lines").number(answers.lines.size());
    json.key("branches").number(answers.branches.size());
    json.key("edges").number(answers.edges.size());
    json.key("blocks").number(answers.blocks.size());
    json.key("slices").number(answers.timeline.slices.size());
    json.key("marks").number(answers.timeline.marks.size());
    json.key("series").number(answers.timeline.series.size());
    json.end_object();
    json.end_object();
    return {json.str(), own};
}

}  // namespace waymark::report
