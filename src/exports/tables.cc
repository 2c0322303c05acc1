#include "waymark/exports/tables.h"

#include <algorithm>
#include <array>
#include <optional>

#include "look_up.h"
#include "timeline.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Branch;
using answers::CallNode;
using answers::Costs;
using answers::Index;
using answers::Seen;
using answers::TimelineMark;

constexpr Column::Type integer = Column::Type::integer, address = Column::Type::address, real = Column::Type::real,
                       string = Column::Type::text;

// ---- cells

Cell nothing() { return std::monostate{}; }
Cell index(Index i) { return i == answers::none ? nothing() : Cell(std::uint64_t{i}); }
Cell number(std::uint64_t n) { return n; }
Cell words(std::string_view t) { return t.empty() ? nothing() : Cell(t); }
/// A line, or a rate: 0 means not known.
Cell known(std::uint64_t n) { return n == 0 ? nothing() : Cell(n); }
Cell flag(bool b) { return std::uint64_t{b}; }

Cell word(Seen seen) {
    switch (seen) {
        case Seen::executed: return std::string_view("executed");
        case Seen::not_executed: return std::string_view("not executed");
        case Seen::not_observed: return std::string_view("not observed");
    }
    return nothing();
}
Cell word(Branch::Kind kind) {
    switch (kind) {
        case Branch::Kind::conditional: return std::string_view("conditional");
        case Branch::Kind::unconditional: return std::string_view("unconditional");
        case Branch::Kind::call: return std::string_view("call");
        case Branch::Kind::indirect: return std::string_view("indirect");
        case Branch::Kind::indirect_call: return std::string_view("indirect call");
        case Branch::Kind::function_return: return std::string_view("return");
    }
    return nothing();
}
Cell word(CallNode::Kind kind) {
    switch (kind) {
        case CallNode::Kind::root: return std::string_view("root");
        case CallNode::Kind::call: return std::string_view("call");
        case CallNode::Kind::interrupt: return std::string_view("interrupt");
        case CallNode::Kind::unsynchronised: return std::string_view("unsynchronised");
    }
    return nothing();
}
Cell word(TimelineMark::Kind kind) { return name(kind); }
Cell word(answers::Finding::Severity severity) {
    switch (severity) {
        case answers::Finding::Severity::good: return std::string_view("good");
        case answers::Finding::Severity::note: return std::string_view("note");
        case answers::Finding::Severity::warning: return std::string_view("warning");
        case answers::Finding::Severity::bad: return std::string_view("bad");
    }
    return nothing();
}

template <std::size_t N>
void put(const RowSink& sink, const Cell (&cells)[N]) {
    sink(std::span<const Cell>(cells, N));
}

// ---- the tables

constexpr std::array capture_columns{
    Column{"name", string, "of the capture"},
    Column{"unit", string, "that recorded it: PTM, SPE, DPU"},
    Column{"version", string, "of Waymark"},
    Column{"trace_bytes", integer, "size of the trace"},
    Column{"cut", integer, "1: it could not be read to its end; health says why"},
    Column{"time_unit", string, "of every time in slices, marks and points"},
    Column{"ticks_per_second", integer, "of that unit; null: not known, or it is no clock"},
    Column{"time_begin", integer, "where the timeline begins"},
    Column{"time_end", integer, "where it ends"},
    Column{"time_uncertainty", integer, "a place on it may be off by so much"},
    Column{"time_resolution", integer, "slices shorter than this were merged; 0: none were"},
    Column{"time_note", string, "how the timeline was made"},
};
void capture_rows(const Answers& a, const RowSink& sink) {
    const answers::TimeAxis& axis = a.timeline.axis;
    put(sink, {words(a.capture), words(a.unit), words(a.version), number(a.trace_bytes), flag(a.cut), words(axis.unit),
               known(axis.ticks_per_second), number(axis.begin), number(axis.end), number(axis.uncertainty),
               number(a.timeline.resolution), words(axis.note)});
}

constexpr std::array health_columns{
    Column{"severity", string, "bad, warning, note or good"},
    Column{"what", string, "a sentence"},
    Column{"todo", string, "what to do about it"},
    Column{"byte_offset", integer, "in the capture's buffer"},
};
void health_rows(const Answers& a, const RowSink& sink) {
    for (const auto& f : a.health)
        put(sink, {word(f.severity), words(f.what), words(f.todo), f.offset ? number(*f.offset) : nothing()});
}

constexpr std::array summary_columns{
    Column{"name", string, "of a figure"},
    Column{"value", string, "as it is printed"},
    Column{"note", string, "to be read with it"},
};
void summary_rows(const Answers& a, const RowSink& sink) {
    for (const auto& f : a.summary) put(sink, {words(f.name), words(f.value), words(f.note)});
}

constexpr std::array trust_columns{
    Column{"view", string, "whose figures: functions, timeline, coverage, tasks, …"},
    Column{"exact", string, "which are exact; empty: none"},
    Column{"estimated", string, "which are estimates"},
    Column{"not_known", string, "what the capture does not contain, and how it would be recorded"},
};
void trust_rows(const Answers& a, const RowSink& sink) {
    for (const auto& t : a.trust) put(sink, {words(t.view), words(t.exact), words(t.estimated), words(t.not_known)});
}

constexpr std::array metrics_columns{
    Column{"id", integer, "0: the one that columns called cost, self and inclusive count"},
    Column{"name", string, "instructions, cycles, samples, or a counter's event"},
    Column{"unit", string, "of its values"},
    Column{"exact", integer, "1; or 0 for an estimate from samples"},
    Column{"note", string, "what it leaves out"},
};
void metrics_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& m : a.metrics)
        put(sink, {number(id++), words(m.name), words(m.unit), flag(m.exact), words(m.note)});
}

constexpr std::array images_columns{
    Column{"id", integer, "of the program, library or memory dump"},
    Column{"name", string, "short"},
    Column{"path", string, "what was opened"},
    Column{"build_id", string, "hexadecimal"},
};
void images_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& i : a.images) put(sink, {number(id++), words(i.name), words(i.path), words(i.build_id)});
}

constexpr std::array sources_columns{
    Column{"id", integer, "of the source file"},
    Column{"path", string, "as debug information has it"},
};
void sources_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& s : a.sources) put(sink, {number(id++), words(s.path)});
}

constexpr std::array functions_columns{
    Column{"id", integer, "of the function"},
    Column{"name", string, "for reading"},
    Column{"linkage_name", string, "as in the symbol table"},
    Column{"image", integer, "it lies in", "images.id"},
    Column{"address", address, "of its first instruction, as traced"},
    Column{"bytes", integer, "its length; null: not known"},
    Column{"source", integer, "file it begins in", "sources.id"},
    Column{"line", integer, "it begins at"},
    Column{"synthetic", integer, "1: no code of the program, but a task, an interrupt, a gap"},
    Column{"calls", integer, "times it was entered"},
    Column{"self", integer, "its own cost in the first metric"},
    Column{"inclusive", integer, "with what it called, recursion counted once; null: who called whom is not known"},
};
void functions_rows(const Answers& a, const RowSink& sink) {
    const auto costs = answers::function_costs(a);
    const auto entries = function_entries(a);
    for (std::size_t i = 0; i < a.functions.size(); ++i) {
        const answers::Function& f = a.functions[i];
        put(sink, {number(i), words(f.name), words(f.linkage_name), index(f.image),
                   f.synthetic ? nothing() : number(f.address), known(f.bytes), index(f.source), known(f.line),
                   flag(f.synthetic), number(entries[i]), number(cost_of(costs[i].self, 0)),
                   costs[i].inclusive.empty() ? nothing() : number(cost_of(costs[i].inclusive, 0))});
    }
}

constexpr std::array function_costs_columns{
    Column{"function", integer, "whose costs these are", "functions.id"},
    Column{"metric", integer, "what is counted; rows that would be 0 are left out", "metrics.id"},
    Column{"self", integer, "its own"},
    Column{"inclusive", integer, "with what it called, recursion counted once; null: who called whom is not known"},
};
void function_costs_rows(const Answers& a, const RowSink& sink) {
    const auto costs = answers::function_costs(a);
    for (std::size_t i = 0; i < costs.size(); ++i)
        for (std::size_t m = 0; m < a.metrics.size(); ++m) {
            const std::uint64_t self = cost_of(costs[i].self, m), all = cost_of(costs[i].inclusive, m);
            if (self != 0 || all != 0)
                put(sink, {number(i), number(m), number(self), costs[i].inclusive.empty() ? nothing() : number(all)});
        }
}

constexpr std::array inlined_calls_columns{
    Column{"id", integer, "of the call, whose callee the compiler put in its place"},
    Column{"parent", integer, "the inlined call it is made in; null: the function itself makes it", "inlined_calls.id"},
    Column{"function", integer, "whose code all of it is", "functions.id"},
    Column{"name", string, "of what was called, for reading"},
    Column{"linkage_name", string, "as its symbol would be"},
    Column{"source", integer, "file it is called in", "sources.id"},
    Column{"line", integer, "it is called at"},
};
void inlined_calls_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t i = 0; i < a.inlined.size(); ++i) {
        const answers::InlinedCall& c = a.inlined[i];
        put(sink, {number(i), index(c.parent), index(c.function), words(c.name),
                   words(c.linkage_name.empty() ? c.name : c.linkage_name), index(c.source), known(c.line)});
    }
}

constexpr std::array instructions_columns{
    Column{"address", address, "as traced"},
    Column{"bytes", integer, "its length"},
    Column{"isa", string, "A32, T32, TEE, Jazelle or A64"},
    Column{"seen", string, "executed; not executed; or not observed: flow was lost where it could have run"},
    Column{"function", integer, "it is in", "functions.id"},
    Column{"source", integer, "file of its innermost line", "sources.id"},
    Column{"line", integer, "innermost, where code was inlined"},
    Column{"times", integer, "executed, where flow is known"},
    Column{"cost", integer, "in the first metric"},
    Column{"text", string, "disassembled"},
    Column{"inlined", integer, "innermost inlined call it lies in", "inlined_calls.id"},
};
void instructions_rows(const Answers& a, const RowSink& sink) {
    for (const auto& i : a.instructions)
        put(sink,
            {number(i.address), number(i.bytes), isa::name(i.isa), word(i.seen), index(i.function), index(i.source),
             known(i.line), number(i.times), number(cost_of(i, 0)), words(i.text), index(i.inlined)});
}

constexpr std::array instruction_costs_columns{
    Column{"address", address, "of the instruction", "instructions.address"},
    Column{"metric", integer, "what is counted; rows that would be 0 are left out", "metrics.id"},
    Column{"cost", integer, "of all its executions"},
    Column{"function", integer, "it is in; code of several files may have one address", "functions.id"},
};
void instruction_costs_rows(const Answers& a, const RowSink& sink) {
    for (const auto& i : a.instructions)
        for (std::size_t m = 0; m < i.costs.size(); ++m)
            if (i.costs[m] != 0) put(sink, {number(i.address), number(m), number(i.costs[m]), index(i.function)});
}

constexpr std::array lines_columns{
    Column{"source", integer, "file", "sources.id"},
    Column{"line", integer, "from 1"},
    Column{"seen", string, "executed; not executed; or not observed: flow was lost where it could have run"},
    Column{"function", integer, "the first with code of this line", "functions.id"},
    Column{"times", integer, "the most often executed instruction of it"},
    Column{"cost", integer, "of its instructions in the first metric"},
};
void lines_rows(const Answers& a, const RowSink& sink) {
    for (const auto& l : a.lines)
        put(sink, {index(l.source), number(l.line), word(l.seen), index(l.function), number(l.times),
                   l.costs.empty() ? nothing() : number(l.costs[0])});
}

constexpr std::array line_costs_columns{
    Column{"source", integer, "file", "sources.id"},
    Column{"line", integer, "from 1"},
    Column{"metric", integer, "what is counted; rows that would be 0 are left out", "metrics.id"},
    Column{"cost", integer, "of the line's instructions"},
};
void line_costs_rows(const Answers& a, const RowSink& sink) {
    for (const auto& l : a.lines)
        for (std::size_t m = 0; m < l.costs.size(); ++m)
            if (l.costs[m] != 0) put(sink, {index(l.source), number(l.line), number(m), number(l.costs[m])});
}

constexpr std::array branches_columns{
    Column{"address", address, "of the branch"},
    Column{"target", address, "of a direct one"},
    Column{"kind", string, "conditional, unconditional, call, indirect, indirect call or return"},
    Column{"function", integer, "it is in", "functions.id"},
    Column{"source", integer, "file", "sources.id"},
    Column{"line", integer, "of the source"},
    Column{"taken", integer, "times"},
    Column{"not_taken", integer, "times"},
    Column{"seen_taken", string, "executed, not executed or not observed"},
    Column{"seen_not_taken", string, "executed, not executed or not observed"},
    Column{"mispredicted", integer, "samples of it that were; null: not in the trace"},
};
void branches_rows(const Answers& a, const RowSink& sink) {
    for (const auto& b : a.branches)
        put(sink, {number(b.address), known(b.target), word(b.kind), index(b.function), index(b.source), known(b.line),
                   number(b.taken), number(b.not_taken), word(b.taken != 0 ? Seen::executed : b.seen_taken),
                   word(b.not_taken != 0 ? Seen::executed : b.seen_not_taken),
                   b.mispredicted ? number(*b.mispredicted) : nothing()});
}

constexpr std::array edges_columns{
    Column{"from_address", address, "of the branch"},
    Column{"to_address", address, "of the instruction that came next"},
    Column{"from_function", integer, "it led out of", "functions.id"},
    Column{"to_function", integer, "it led into", "functions.id"},
    Column{"kind", string, "of the branch"},
    Column{"times", integer, "control went that way"},
};
void edges_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.edges)
        put(sink, {number(e.from), number(e.to), index(e.from_function), index(e.to_function), word(e.kind),
                   number(e.times)});
}

constexpr std::array edge_costs_columns{
    Column{"from_address", address, "of the call"},
    Column{"to_address", address, "of what was called"},
    Column{"metric", integer, "what is counted", "metrics.id"},
    Column{"inclusive", integer, "what passed between call and return"},
};
void edge_costs_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.edges)
        for (std::size_t m = 0; m < e.inclusive.size(); ++m)
            put(sink, {number(e.from), number(e.to), number(m), number(e.inclusive[m])});
}

constexpr std::array blocks_columns{
    Column{"address", address, "of its first instruction"},
    Column{"bytes", integer, "its length"},
    Column{"instructions", integer, "in it"},
    Column{"function", integer, "it is in", "functions.id"},
    Column{"times", integer, "it ran"},
};
void blocks_rows(const Answers& a, const RowSink& sink) {
    for (const auto& b : a.blocks)
        put(sink, {number(b.address), number(b.bytes), number(b.instructions), index(b.function), number(b.times)});
}

constexpr std::array loops_columns{
    Column{"head", address, "its header: what its back edges lead to"},
    Column{"tail", address, "the last instruction that leads back there"},
    Column{"function", integer, "it is in", "functions.id"},
    Column{"source", integer, "file", "sources.id"},
    Column{"line", integer, "it begins at"},
    Column{"entries", integer, "times it was begun; of a DPU: runs, of which an interrupt makes two"},
    Column{"iterations", integer, "times its head ran"},
    Column{"cost", integer, "of all its instructions in the first metric"},
    Column{"depth", integer, "1: in no other loop; of a DPU: none"},
    Column{"outer", address, "head of the loop directly around it"},
    Column{"irreducible", integer, "1: it is entered at several places, and head is one of them"},
};
void loops_rows(const Answers& a, const RowSink& sink) {
    for (const auto& l : a.loops)
        put(sink, {number(l.head), number(l.tail), index(l.function), index(l.source), known(l.line), number(l.entries),
                   number(l.iterations), l.costs.empty() ? nothing() : number(l.costs[0]), known(l.depth),
                   l.outer ? number(*l.outer) : nothing(), number(l.irreducible ? 1 : 0)});
}

constexpr std::array calls_columns{
    Column{"id", integer, "of the node of the call tree"},
    Column{"parent", integer, "node that called it", "calls.id"},
    Column{"function", integer, "that was called", "functions.id"},
    Column{"kind", string, "root, call, interrupt; unsynchronised: who called it is not in the trace"},
    Column{"calls", integer, "times this path was called"},
    Column{"self", integer, "cost at its end, in the first metric"},
    Column{"inclusive", integer, "with all below it"},
};
void calls_rows(const Answers& a, const RowSink& sink) {
    const std::vector<std::uint64_t> sums = answers::inclusive_costs(a, 0);
    for (Index i = 0; i < a.calls.size(); ++i) {
        const CallNode& c = a.calls[i];
        put(sink, {number(i), index(parent_of(a, i)), index(c.function), word(c.kind), number(c.calls),
                   number(cost_of(c.self, 0)), number(sums[i])});
    }
}

constexpr std::array call_costs_columns{
    Column{"node", integer, "of the call tree", "calls.id"},
    Column{"metric", integer, "what is counted; rows that would be 0 are left out", "metrics.id"},
    Column{"self", integer, "at its end"},
    Column{"inclusive", integer, "with all below it"},
};
void call_costs_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t m = 0; m < a.metrics.size(); ++m) {
        const std::vector<std::uint64_t> sums = answers::inclusive_costs(a, m);
        for (std::size_t i = 0; i < a.calls.size(); ++i)
            if (sums[i] != 0) put(sink, {number(i), number(m), number(cost_of(a.calls[i].self, m)), number(sums[i])});
    }
}

constexpr std::array tracks_columns{
    Column{"id", integer, "of the row of the timeline"},
    Column{"name", string, "of the core, thread or task"},
    Column{"parent", integer, "row it is drawn below", "tracks.id"},
};
void tracks_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& t : a.timeline.tracks) put(sink, {number(id++), words(t.name), index(t.parent)});
}

constexpr std::array slices_columns{
    Column{"track", integer, "row of the timeline", "tracks.id"},
    Column{"begin_time", integer, "in capture.time_unit"},
    Column{"end_time", integer, "the first moment it was over"},
    Column{"depth", integer, "slices around it"},
    Column{"function", integer, "that was active", "functions.id"},
    Column{"merged", integer, "number of slices it represents; of several, `function` took most"},
};
void slices_rows(const Answers& a, const RowSink& sink) {
    for (const auto& s : a.timeline.slices)
        put(sink,
            {number(s.track), number(s.begin), number(s.end), number(s.depth), index(s.function), number(s.merged)});
}

constexpr std::array marks_columns{
    Column{"track", integer, "row of the timeline", "tracks.id"},
    Column{"begin_time", integer, "in capture.time_unit"},
    Column{"end_time", integer, "equal: a moment"},
    Column{"kind", string, "gap, exception, context, user data, trigger or overflow"},
    Column{"what", string, "in words"},
};
void marks_rows(const Answers& a, const RowSink& sink) {
    for (const auto& m : a.timeline.marks)
        put(sink, {index(m.track), number(m.begin), number(m.end), word(m.kind), words(m.text)});
}

constexpr std::array series_columns{
    Column{"id", integer, "of the rate or value over time"},
    Column{"name", string, "of it"},
    Column{"unit", string, "of its values"},
    Column{"track", integer, "it belongs to", "tracks.id"},
};
void series_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& s : a.timeline.series) put(sink, {number(id++), words(s.name), words(s.unit), index(s.track)});
}

constexpr std::array points_columns{
    Column{"series", integer, "it is of", "series.id"},
    Column{"time", integer, "in capture.time_unit"},
    Column{"value", real, "from then on"},
};
void points_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t i = 0; i < a.timeline.series.size(); ++i)
        for (const auto& p : a.timeline.series[i].points) put(sink, {number(i), number(p.time), Cell(p.value)});
}

constexpr std::array exceptions_columns{
    Column{"name", string, "IRQ, supervisor call, …"},
    Column{"number", integer, "as the architecture counts them"},
    Column{"times", integer, "taken"},
    Column{"nested", integer, "of these while another was handled"},
    Column{"returned", integer, "whose return is in the trace; the following are of these"},
    Column{"least", integer, "time from entry to return, in unit"},
    Column{"most", integer, "the longest"},
    Column{"total", integer, "of all"},
    Column{"unit", string, "of these times: instructions or cycles"},
};
void exceptions_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.exceptions)
        put(sink, {words(e.name), number(e.number), number(e.times), number(e.nested), number(e.returned),
                   e.returned == 0 ? nothing() : number(e.least), e.returned == 0 ? nothing() : number(e.most),
                   number(e.sum), words(e.unit)});
}

constexpr std::array levels_columns{
    Column{"id", integer, "of the level"},
    Column{"level", string, "EL0 to EL3, or Hyp; null: the trace does not carry it"},
    Column{"security", string, "Secure, Non-secure, Root or Realm"},
    Column{"state", string, "AArch64 or AArch32"},
    Column{"entered", integer, "times it was changed to"},
};
void levels_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& l : a.levels)
        put(sink, {number(id++), l.level.empty() ? nothing() : words(l.level), words(l.security), words(l.state),
                   number(l.entered)});
}

constexpr std::array level_costs_columns{
    Column{"level", integer, "it is of", "levels.id"},
    Column{"metric", integer, "what is counted", "metrics.id"},
    Column{"cost", integer, "of the code that ran there"},
};
void level_costs_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t l = 0; l < a.levels.size(); ++l)
        for (std::size_t m = 0; m < a.levels[l].costs.size(); ++m)
            put(sink, {number(l), number(m), number(a.levels[l].costs[m])});
}

constexpr std::array charts_columns{
    Column{"id", integer, "of the chart"},
    Column{"kind", string, "histogram or shares"},
    Column{"title", string, "of it"},
    Column{"x_unit", string, "of the bars' labels"},
    Column{"y_unit", string, "of the bars' values"},
    Column{"note", string, "to be read with it"},
};
void charts_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& c : a.charts)
        put(sink, {number(id++), std::string_view(c.kind == answers::Chart::Kind::histogram ? "histogram" : "shares"),
                   words(c.title), words(c.x_unit), words(c.y_unit), words(c.note)});
}

constexpr std::array bars_columns{
    Column{"chart", integer, "it is in", "charts.id"},
    Column{"position", integer, "from 0"},
    Column{"label", string, "of the bar"},
    Column{"value", integer, "of it"},
    Column{"note", string, "to be read with it"},
};
void bars_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t c = 0; c < a.charts.size(); ++c)
        for (std::size_t i = 0; i < a.charts[c].bars.size(); ++i) {
            const auto& bar = a.charts[c].bars[i];
            put(sink, {number(c), number(i), words(bar.label), number(bar.value), words(bar.note)});
        }
}

constexpr std::array unit_tables_columns{
    Column{"id", integer, "of a table that only one unit has"},
    Column{"title", string, "of it"},
    Column{"note", string, "to be read with it"},
};
void unit_tables_rows(const Answers& a, const RowSink& sink) {
    std::uint64_t id = 0;
    for (const auto& t : a.tables) put(sink, {number(id++), words(t.title), words(t.note)});
}

constexpr std::array unit_cells_columns{
    Column{"unit_table", integer, "it is in", "unit_tables.id"},
    Column{"row_number", integer, "from 0"},
    Column{"column_number", integer, "from 0"},
    Column{"column_name", string, "what the column is called"},
    Column{"value", string, "numbers as decimal digits"},
};
void unit_cells_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t t = 0; t < a.tables.size(); ++t)
        for (std::size_t r = 0; r < a.tables[t].rows.size(); ++r)
            for (std::size_t c = 0; c < a.tables[t].rows[r].size(); ++c)
                put(sink, {number(t), number(r), number(c),
                           c < a.tables[t].columns.size() ? words(a.tables[t].columns[c].name) : nothing(),
                           words(a.tables[t].rows[r][c].field())});
}

constexpr std::array all_tables{
    TableInfo{"capture", "the one capture all the rest is about", capture_columns, false, capture_rows},
    TableInfo{"health", "what to know before trusting the rest, the worst first", health_columns, false, health_rows},
    TableInfo{"summary", "figures, as they are printed", summary_columns, false, summary_rows},
    TableInfo{"trust", "how far figures can be believed", trust_columns, false, trust_rows},
    TableInfo{"metrics", "what the numbers count", metrics_columns, true, metrics_rows},
    TableInfo{"images", "programs, libraries, memory dumps", images_columns, true, images_rows},
    TableInfo{"sources", "source files", sources_columns, true, sources_rows},
    TableInfo{"functions", "functions, and tasks and interrupts beside them", functions_columns, true, functions_rows},
    TableInfo{"function_costs", "cost of functions, by metric", function_costs_columns, false, function_costs_rows},
    TableInfo{"inlined_calls", "calls whose callees the compiler put in their places", inlined_calls_columns, true,
              inlined_calls_rows},
    TableInfo{"instructions", "instructions of functions with executed code", instructions_columns, false,
              instructions_rows},
    TableInfo{"instruction_costs", "cost of instructions, by metric; empty: their times say it all",
              instruction_costs_columns, false, instruction_costs_rows},
    TableInfo{"lines", "source lines with code", lines_columns, false, lines_rows},
    TableInfo{"line_costs", "cost of source lines, by metric", line_costs_columns, false, line_costs_rows},
    TableInfo{"branches", "branch instructions and their outcomes", branches_columns, false, branches_rows},
    TableInfo{"edges", "where control went from where", edges_columns, false, edges_rows},
    TableInfo{"edge_costs", "what passed in calls, by metric", edge_costs_columns, false, edge_costs_rows},
    TableInfo{"blocks", "code that ran from end to end without a taken branch; blocks overlap", blocks_columns, false,
              blocks_rows},
    TableInfo{"loops", "code that was repeated", loops_columns, false, loops_rows},
    TableInfo{"calls", "the call tree: a row for each path of calls", calls_columns, true, calls_rows},
    TableInfo{"call_costs", "cost of paths of calls, by metric", call_costs_columns, false, call_costs_rows},
    TableInfo{"tracks", "rows of the timeline: cores, threads, tasks", tracks_columns, true, tracks_rows},
    TableInfo{"slices", "what was active when, nested", slices_columns, false, slices_rows},
    TableInfo{"marks", "gaps, exceptions and other moments of the timeline", marks_columns, false, marks_rows},
    TableInfo{"series", "rates and values over time", series_columns, true, series_rows},
    TableInfo{"points", "values of series", points_columns, false, points_rows},
    TableInfo{"exceptions", "exceptions and interrupts, and how long they took", exceptions_columns, false,
              exceptions_rows},
    TableInfo{"levels", "exception levels and security states at which something ran", levels_columns, true,
              levels_rows},
    TableInfo{"level_costs", "cost of levels, by metric", level_costs_columns, false, level_costs_rows},
    TableInfo{"charts", "histograms and shares", charts_columns, true, charts_rows},
    TableInfo{"bars", "values of charts", bars_columns, false, bars_rows},
    TableInfo{"unit_tables", "tables that only one unit has", unit_tables_columns, true, unit_tables_rows},
    TableInfo{"unit_cells", "their cells", unit_cells_columns, false, unit_cells_rows},
};

/// Whether a spreadsheet would take a text for a formula and run it. Some of them leave out white space before it.
bool is_formula(std::string_view text) {
    if (text.empty()) return false;
    if (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') return true;
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == text.npos) return false;
    // The same signs in the width of East Asian characters.
    static constexpr std::array<std::string_view, 8> signs{"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
    return std::any_of(signs.begin(), signs.end(),
                       [&](std::string_view sign) { return text.substr(first).starts_with(sign); });
}

/// A decimal number as text: `-12.5`, `+3`. No spreadsheet runs it.
bool is_decimal(std::string_view text) {
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    bool digits = false, point = false;
    for (const char c : text) {
        if (c == '.' && !point)
            point = true;
        else if (c >= '0' && c <= '9')
            digits = true;
        else
            return false;
    }
    return digits;
}

void csv_text(Writer& out, std::string_view value) {
    std::string text = utf8(value);
    // The mark by which spreadsheets know text; also before text that begins so itself, so that it can be taken away.
    const bool marked = (is_formula(text) && !is_decimal(text)) || text.starts_with('\'');
    if (marked) text.insert(text.begin(), '\'');
    if (!marked && text.find_first_of(",\"\r\n") == text.npos) return out.write(text);
    out.write("\"");
    for (const char c : text) out.write(c == '"' ? std::string_view("\"\"") : std::string_view(&c, 1));
    out.write("\"");
}

/// Numbers as both formats have them; false: it is none.
bool write_number(Writer& out, const Column& column, const Cell& cell) {
    if (const auto* n = std::get_if<std::uint64_t>(&cell); n != nullptr && column.type != address) {
        out.print("{}", *n);
    } else if (const auto* d = std::get_if<double>(&cell)) {
        out.print("{}", *d);
    } else {
        return false;
    }
    return true;
}

}  // namespace

std::span<const TableInfo> tables() { return all_tables; }

const TableInfo* find_table(std::string_view name) {
    const auto at =
        std::find_if(all_tables.begin(), all_tables.end(), [&](const TableInfo& t) { return t.name == name; });
    return at == all_tables.end() ? nullptr : &*at;
}

ExportReport write_csv(const Answers& answers, const TableInfo& table, ByteSink& sink) {
    Writer out(sink);
    for (const Column& c : table.columns) out.print("{}{}", c.name, &c == &table.columns.back() ? "\n" : ",");
    table.rows(answers, [&](std::span<const Cell> row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i != 0) out.write(",");
            if (write_number(out, table.columns[i], row[i])) continue;
            if (const auto* n = std::get_if<std::uint64_t>(&row[i])) out.print("{:#x}", *n);
            if (const auto* t = std::get_if<std::string_view>(&row[i])) csv_text(out, *t);
        }
        out.write("\n");
    });
    return {out.finish(), {}};
}

ExportReport write_jsonl(const Answers& answers, const TableInfo& table, ByteSink& sink) {
    Writer out(sink);
    table.rows(answers, [&](std::span<const Cell> row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            out.print("{}\"{}\":", i == 0 ? "{" : ",", table.columns[i].name);
            if (write_number(out, table.columns[i], row[i])) continue;
            if (const auto* n = std::get_if<std::uint64_t>(&row[i]))
                out.print("\"{:#x}\"", *n);
            else if (const auto* t = std::get_if<std::string_view>(&row[i]))
                out.json(*t);
            else
                out.write("null");
        }
        out.write("}\n");
    });
    return {out.finish(), {}};
}

}  // namespace waymark::exports
