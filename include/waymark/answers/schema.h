/// Describes each table of answers once. The answers file is written, read, checked and documented from this
/// description, and merging uses it to find the indices. A description is a function `fields` that passes each field of
/// a row to a walker, with its name and meaning; docs/answers-file.md is made from the same words.
///
/// A walker has
///
///     number(name, value, what)           an unsigned number, a flag
///     address(name, value, what)          a number that is similar in neighbouring rows
///     text(name, value, what)
///     real(name, value, what)
///     index(name, value, table, what)     a row of another table; `none`: no row
///     choice(name, value, words, what)    an enumerator, by its place in `words`
///     maybe(name, value, what)            std::optional of a number or flag
///     list(name, values, what)            a std::vector of numbers, texts or rows
///
/// Fields are identified by their names: later versions add fields and omit others, and never change the meaning of a
/// name.
#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "waymark/answers/answers.h"
#include "waymark/answers/meanings.h"

namespace waymark::answers {

/// A table that indices refer to.
enum class IndexedTable : std::uint8_t { images, sources, functions, inlined, calls, tracks };
inline constexpr std::size_t place_count = 6;

namespace schema {

// Words of enumerators, in order.
inline constexpr std::array<std::string_view, 3> seen{"executed", "not executed", "not observed"};
inline constexpr std::array<std::string_view, 5> isas{"A32", "T32", "TEE", "Jazelle", "A64"};
inline constexpr std::array<std::string_view, 6> branches{"conditional", "unconditional", "call",
                                                          "indirect",    "indirect call", "return"};
inline constexpr std::array<std::string_view, 6> nodes{"root",           "call",      "interrupt",
                                                       "unsynchronised", "tail call", "signal"};
inline constexpr std::array<std::string_view, 6> marks{"gap",       "exception", "context",
                                                       "user data", "trigger",   "overflow"};
inline constexpr std::array<std::string_view, 4> severities{"good", "note", "warning", "bad"};
inline constexpr std::array<std::string_view, 2> charts{"histogram", "shares"};
inline constexpr std::array<std::string_view, 6> columns{"text", "integer", "real", "address", "flag", "bar"};
inline constexpr std::array<std::string_view, 7> colours{"plain", "bold", "dim", "red", "green", "yellow", "cyan"};

/// A row, const or not.
template <class T, class Row>
concept Of = std::same_as<std::remove_const_t<T>, Row>;

// NOLINTBEGIN(readability-identifier-length): a column of names and meanings reads best with short words before it.
template <class W>
void fields(W& w, Of<Finding> auto& r) {
    w.choice("severity", r.severity, severities, "how bad it is");
    w.text("what", r.what, meaning::finding);
    w.text("todo", r.todo, meaning::remedy);
    w.maybe("offset", r.offset, "offset in the capture's buffer, in bytes");
    w.number("of_names", r.of_names, "1: a warning only about names of code");
    w.text("unused_file", r.unused_file, "a file that was given and that the capture does not need");
    w.number("captures", r.captures,
             "in a sum: captures that say so, or the same with other numbers; 0: it is not of single captures");
}
template <class W>
void fields(W& w, Of<Trust> auto& r) {
    w.text("view", r.view, meaning::trust_view);
    w.text("exact", r.exact, meaning::trust_exact);
    w.text("estimated", r.estimated, meaning::trust_estimated);
    w.text("not_known", r.not_known, meaning::trust_not_known);
}
template <class W>
void fields(W& w, Of<Figure> auto& r) {
    w.text("name", r.name, meaning::figure_name);
    w.text("value", r.value, meaning::figure_value);
    w.text("note", r.note, meaning::remark);
}
template <class W>
void fields(W& w, Of<Metric> auto& r) {
    w.text("name", r.name, meaning::metric_name);
    w.text("unit", r.unit, meaning::unit_of_values);
    w.number("exact", r.exact, "1: exact; 0: an estimate from samples or stretches of the run");
    w.text("note", r.note, "what the metric leaves out");
    w.number("stretches", r.stretches, "of an estimate from stretches of the run: how many; else 0");
    w.text("set", r.set, "of a sum of captures that count different metrics: what the captures of this column count");
    w.number("captures", r.captures, "number of these captures");
}
template <class W>
void fields(W& w, Of<AccountRow> auto& r) {
    w.choice("reason", r.reason, account_reason_words, "what became of a part of the run (account.md)");
    w.text("of", r.of, meaning::account_of);
    w.number("times", r.times, meaning::account_times);
    w.maybe("bytes", r.bytes, meaning::account_bytes);
    w.maybe("instructions", r.instructions, meaning::account_instructions);
    w.maybe("ranges", r.ranges, meaning::account_ranges);
    w.maybe("records", r.records, meaning::account_records);
}
template <class W>
void fields(W& w, Of<MergedPart> auto& r) {
    w.text("capture", r.capture, "name of the capture");
    w.number("times", r.times, "how often it is among the answers");
    w.number("trace_bytes", r.trace_bytes, "size of its trace, each time");
}
template <class W>
void fields(W& w, Of<Image::Segment> auto& r) {
    w.address("address", r.address, "in memory, without a load bias");
    w.address("offset", r.offset, "in the file");
    w.number("bytes", r.bytes, "in memory");
    w.number("executable", r.executable, "1: it is code");
}
template <class W>
void fields(W& w, Of<Image> auto& r) {
    w.text("name", r.name, meaning::image_name);
    w.text("path", r.path, meaning::opened_path);
    w.text("build_id", r.build_id, meaning::build_id);
    w.text("recorded", r.recorded, "its path on the recorded machine; empty: not known");
    w.maybe("has_symbols", r.has_symbols, "its file has the symbols of all functions");
    w.number("whole", r.whole, "1: all its code is known, also code that never ran");
    w.address("load_bias", r.load_bias, "address in memory minus address in the file");
    w.list("segments", r.segments, "loaded segments of its file");
    w.number("hides", r.hides, "1: unlisted code of this image may have run unobserved");
}
template <class W>
void fields(W& w, Of<SourceFile> auto& r) {
    w.text("path", r.path, meaning::debug_path);
    w.list("lines", r.lines, "its text, where it was found");
}
template <class W>
void fields(W& w, Of<Function> auto& r) {
    w.text("name", r.name, meaning::function_name);
    w.text("linkage_name", r.linkage_name, meaning::linkage_name);
    w.index("image", r.image, IndexedTable::images, "image that contains it");
    w.address("address", r.address, meaning::function_address);
    w.number("bytes", r.bytes, meaning::bytes);
    w.index("source", r.source, IndexedTable::sources, "file in which it begins");
    w.number("line", r.line, meaning::first_line);
    w.number("synthetic", r.synthetic, meaning::synthetic);
    w.text("declared_name", r.declared_name, "linkage name of the function that its author wrote");
    w.index("declared_source", r.declared_source, IndexedTable::sources, "file of its declaration");
    w.number("declared_line", r.declared_line, "line of its declaration; 0: not known");
    w.number("by_llvm", r.by_llvm, "1: discriminators of its lines are in LLVM's encoding");
}
template <class W>
void fields(W& w, Of<InlinedCall> auto& r) {
    w.index("parent", r.parent, IndexedTable::inlined, "enclosing inlined call, an earlier row; none: the function");
    w.index("function", r.function, IndexedTable::functions, "function with a symbol that contains the code");
    w.shared("name", r.name, "name of the called function");
    w.shared("linkage_name", r.linkage_name, "as its symbol would be; empty: as the name");
    w.index("source", r.source, IndexedTable::sources, "file of the call");
    w.number("line", r.line, "line of the call");
    w.number("discriminator", r.discriminator, "discriminator of that line");
    w.number("declared_line", r.declared_line, "where the callee is declared; 0: not known");
}
template <class W>
void fields(W& w, Of<Instruction> auto& r) {
    w.address("address", r.address, meaning::instruction_address);
    w.number("bytes", r.bytes, meaning::bytes);
    w.choice("isa", r.isa, isas, "instruction set");
    w.choice("seen", r.seen, seen, "whether it ran");
    w.index("function", r.function, IndexedTable::functions, "function that contains it");
    w.index("source", r.source, IndexedTable::sources, "file of its innermost line");
    w.number("line", r.line, "innermost line, where code was inlined");
    w.number("times", r.times, meaning::executed_times);
    w.list("costs", r.costs, "by metric; empty: `times` says it all");
    w.text("text", r.text, meaning::disassembly);
    w.index("inlined", r.inlined, IndexedTable::inlined, "innermost inlined call that contains it");
    w.number("discriminator", r.discriminator, "discriminator of its line");
}
template <class W>
void fields(W& w, Of<Statement> auto& r) {
    w.address("address", r.address, "address of the instruction");
    w.index("function", r.function, IndexedTable::functions, "function that contains it");
    w.index("source", r.source, IndexedTable::sources, "file");
    w.number("line", r.line, meaning::source_line);
}
template <class W>
void fields(W& w, Of<Line> auto& r) {
    w.index("source", r.source, IndexedTable::sources, "file");
    w.address("line", r.line, meaning::source_line);
    w.choice("seen", r.seen, seen, "whether it ran");
    w.index("function", r.function, IndexedTable::functions, "the first with code of this line");
    w.number("times", r.times, meaning::most_executed);
    w.list("costs", r.costs, "costs of its instructions, by metric");
}
template <class W>
void fields(W& w, Of<Branch> auto& r) {
    w.address("address", r.address, "address of the branch");
    w.address("target", r.target, meaning::branch_target);
    w.choice("kind", r.kind, branches, "kind of the branch");
    w.index("function", r.function, IndexedTable::functions, "function that contains it");
    w.index("source", r.source, IndexedTable::sources, "file");
    w.number("line", r.line, meaning::source_line);
    w.number("taken", r.taken, meaning::taken);
    w.number("not_taken", r.not_taken, meaning::not_taken);
    w.choice("seen_taken", r.seen_taken, seen, "whether it was ever taken");
    w.choice("seen_not_taken", r.seen_not_taken, seen, "whether it was ever not taken");
    w.maybe("mispredicted", r.mispredicted, meaning::mispredicted);
}
template <class W>
void fields(W& w, Of<Edge> auto& r) {
    w.address("from", r.from, "address of the branch");
    w.address("to", r.to, "address of the next executed instruction");
    w.index("from_function", r.from_function, IndexedTable::functions, "function of the branch");
    w.index("to_function", r.to_function, IndexedTable::functions, "function of the next instruction");
    w.choice("kind", r.kind, branches, "kind of the branch");
    w.number("times", r.times, "times it was taken");
    w.list("inclusive", r.inclusive, "cost between call and return, by metric");
}
template <class W>
void fields(W& w, Of<Block> auto& r) {
    w.address("address", r.address, meaning::block_address);
    w.number("bytes", r.bytes, meaning::bytes);
    w.number("instructions", r.instructions, meaning::block_instructions);
    w.index("function", r.function, IndexedTable::functions, "function that contains it");
    w.number("times", r.times, meaning::ran_times);
}
template <class W>
void fields(W& w, Of<Loop> auto& r) {
    w.address("head", r.head, meaning::loop_head);
    w.address("tail", r.tail, meaning::loop_tail);
    w.index("function", r.function, IndexedTable::functions, "function that contains it");
    w.index("source", r.source, IndexedTable::sources, "file");
    w.number("line", r.line, meaning::source_line);
    w.number("entries", r.entries, meaning::loop_entries);
    w.number("iterations", r.iterations, meaning::loop_iterations);
    w.list("costs", r.costs, "costs of all its instructions, by metric");
    w.number("depth", r.depth, meaning::loop_depth);
    w.number("irreducible", r.irreducible, meaning::irreducible);
    w.maybe("outer", r.outer, meaning::loop_outer);
}
template <class W>
void fields(W& w, Of<ImageRange> auto& r) {
    w.index("image", r.image, IndexedTable::images, "image that contains the code");
    w.address("first", r.first, "first instruction, as in the file");
    w.address("last", r.last, "last instruction, as in the file");
    w.choice("isa", r.isa, isas, "instruction set");
    w.number("instructions", r.instructions, meaning::block_instructions);
    w.number("times", r.times, meaning::ran_times);
    w.number("taken", r.taken, "times its last instruction branched");
    w.number("not_taken", r.not_taken, "times its last instruction was a branch that was not taken");
}
template <class W>
void fields(W& w, Of<ImageBranch> auto& r) {
    w.index("image", r.image, IndexedTable::images, "image of the branch");
    w.address("from", r.from, "address of the branch, as in the file");
    w.index("to_image", r.to_image, IndexedTable::images, "image of the target; none: the target is in no file");
    w.address("to", r.to, "address of the target, as in that file");
    w.choice("kind", r.kind, branches, "kind of the branch");
    w.number("times", r.times, "times it was taken");
}
template <class W>
void fields(W& w, Of<CallNode> auto& r) {
    w.index("parent", r.parent, IndexedTable::calls, "caller, an earlier row; none: only in the first row");
    w.index("function", r.function, IndexedTable::functions, "called function");
    w.choice("kind", r.kind, nodes, "how it was entered");
    w.number("calls", r.calls, "times it was called");
    w.list("self", r.self, "its own cost, by metric");
}
template <class W>
void fields(W& w, Of<TimeAxis> auto& r) {
    w.text("unit", r.unit, "unit of all times");
    w.number("ticks_per_second", r.ticks_per_second, "frequency; 0: not known, or not a clock");
    w.number("begin", r.begin, "begin of the timeline");
    w.number("end", r.end, "end of the timeline");
    w.number("uncertainty", r.uncertainty, "largest error of the times of 95 % of what ran");
    w.text("note", r.note, "how the times were determined");
}
template <class W>
void fields(W& w, Of<Track> auto& r) {
    w.text("name", r.name, meaning::track_name);
    w.index("parent", r.parent, IndexedTable::tracks, "track below which it is drawn");
}
template <class W>
void fields(W& w, Of<TimelineSample> auto& r) {
    w.text("capture", r.capture, "name of the capture");
    w.index("track", r.track, IndexedTable::tracks, "its own track; its others are behind it");
    w.number("order", r.order, "hash of its name: captures with the smallest ones are kept");
    w.number("contents", r.contents, "hash of its timeline");
    w.number("resolution", r.resolution, "slices of it shorter than this were merged");
    w.number("uncertainty", r.uncertainty, "largest error of the times of 95 % of what ran in it");
    w.address("end", r.end, "end of its timeline, which begins at 0");
}
template <class W>
void fields(W& w, Of<Slice> auto& r) {
    w.address("begin", r.begin, "first moment");
    w.address("end", r.end, "after the last moment");
    w.index("track", r.track, IndexedTable::tracks, "track that contains it");
    w.index("function", r.function, IndexedTable::functions, "active function");
    w.number("depth", r.depth, meaning::slice_depth);
    w.number("merged", r.merged, meaning::merged);
}
template <class W>
void fields(W& w, Of<TimelineMark> auto& r) {
    w.address("begin", r.begin, "first moment");
    w.address("end", r.end, "last moment");
    w.index("track", r.track, IndexedTable::tracks, "track that contains it");
    w.choice("kind", r.kind, marks, "kind of event");
    w.text("text", r.text, "text for display");
}
template <class W>
void fields(W& w, Of<Series::Point> auto& r) {
    w.address("time", r.time, "of the value");
    w.real("value", r.value, "the value");
}
template <class W>
void fields(W& w, Of<Series> auto& r) {
    w.text("name", r.name, "name of the rate or value");
    w.text("unit", r.unit, meaning::unit_of_values);
    w.index("track", r.track, IndexedTable::tracks, "track to which it belongs");
    w.list("points", r.points, "its values");
}
template <class W>
void fields(W& w, Of<ExceptionRow> auto& r) {
    w.text("name", r.name, meaning::exception_name);
    w.number("number", r.number, meaning::exception_number);
    w.number("times", r.times, meaning::exception_times);
    w.number("nested", r.nested, meaning::nested);
    w.number("least", r.least, meaning::least_time);
    w.number("most", r.most, meaning::most_time);
    w.number("sum", r.sum, meaning::sum_of_times);
    w.number("returned", r.returned, meaning::returned);
    w.text("unit", r.unit, meaning::unit_of_times);
}
template <class W>
void fields(W& w, Of<LevelRow> auto& r) {
    w.text("security", r.security, meaning::security);
    w.text("level", r.level, meaning::level);
    w.text("state", r.state, meaning::state);
    w.number("entered", r.entered, meaning::level_entered);
    w.list("costs", r.costs, "costs of all its instructions, by metric");
}
template <class W>
void fields(W& w, Of<Chart::Bar> auto& r) {
    w.text("label", r.label, "label of the bar");
    w.number("value", r.value, "value of the bar");
    w.text("note", r.note, meaning::remark);
}
template <class W>
void fields(W& w, Of<Chart> auto& r) {
    w.choice("kind", r.kind, charts, "how the chart is drawn");
    w.text("title", r.title, "title of the chart");
    w.text("x_unit", r.x_unit, "unit of the bars' labels");
    w.text("y_unit", r.y_unit, "unit of the bars' values");
    w.text("note", r.note, meaning::remark);
    w.list("bars", r.bars, "its values");
}
template <class W>
void fields(W& w, Of<Column> auto& r) {
    w.text("name", r.name, "name for programs");
    w.text("head", r.head, "head for readers");
    w.choice("type", r.type, columns, "type of its cells");
    w.text("what", r.what, "meaning of the column");
    w.text("unit", r.unit, meaning::unit_of_values);
    w.text("refers", r.refers, "column of another table to which the values refer");
}
/// A stored cell: the alternative of its value, and the value.
struct StoredCell {
    std::string shown{}, text{};
    std::uint32_t kind{};
    std::uint64_t number{};
    double real{};
    Colour colour{};

    StoredCell() = default;
    explicit StoredCell(const Cell& cell);
    /// nullopt: the kind is invalid.
    [[nodiscard]] std::optional<Cell> cell() const;
};
inline constexpr std::array<std::string_view, 6> values{"nothing",       "flag",        "number",
                                                        "signed number", "real number", "text"};
template <class W>
void fields(W& w, Of<StoredCell> auto& r) {
    w.text("shown", r.shown, "text for readers");
    w.choice("kind", r.kind, values, "kind of the value");
    w.number("number", r.number, "a flag or number; a signed one in two's complement");
    w.real("real", r.real, "a real number");
    w.text("text", r.text, "a text");
    w.choice("colour", r.colour, colours, "colour in which it is shown");
}
struct StoredTable {
    std::string title{}, note{};
    std::vector<Column> columns{};
    std::vector<StoredCell> cells{};  ///< row by row
};
template <class W>
void fields(W& w, Of<StoredTable> auto& r) {
    w.text("title", r.title, "title of the table");
    w.text("note", r.note, meaning::remark);
    w.list("columns", r.columns, "what its cells are");
    w.list("cells", r.cells, "row by row");
}
/// The parts of answers that are not tables.
struct AnswersHead {
    std::string capture{}, unit{}, version{};
    std::uint64_t trace_bytes{};
    bool cut{};
    std::uint64_t resolution{};
    bool hides_others{};
};
template <class W>
void fields(W& w, Of<AnswersHead> auto& r) {
    w.text("capture", r.capture, "name of the capture");
    w.text("unit", r.unit, "name of the unit that recorded it");
    w.text("version", r.version, meaning::version);
    w.number("trace_bytes", r.trace_bytes, meaning::trace_bytes);
    w.number("cut", r.cut, meaning::cut);
    w.number("resolution", r.resolution, meaning::finest);
    w.number("hides_others", r.hides_others, "1: code of unlisted images may have run unobserved");
}

/// The tables of answers that are stored unchanged, in the order of the file: `table(name, rows, what)` for each.
template <class T, class A>
void tables(T&& table, A& a) {
    table("parts", a.parts, "the merged captures; empty: only the capture named in the head");
    table("account", a.account, "how much of the run this is: a row for each reason why a part of it is not there");
    table("health", a.health, "what to know before trusting the rest, the worst first");
    table("trust", a.trust, "how far figures can be believed");
    table("summary", a.summary, "figures, as they are printed");
    table("metrics", a.metrics, "what the numbers count; the first is what tables are sorted by");
    table("images", a.images, "programs, libraries, memory dumps");
    table("sources", a.sources, "source files");
    table("functions", a.functions, "functions, and tasks and interrupts beside them");
    table("ranges", a.ranges, "code of files that ran from end to end without a taken branch");
    table("jumps", a.jumps, "branches that were taken, in files");
    table("inlined", a.inlined, "calls whose callees the compiler put in their places");
    table("instructions", a.instructions, "of functions with executed code, by address");
    table("statements", a.statements, "further lines that an instruction is a statement of, by address");
    table("lines", a.lines, "source lines with code");
    table("branches", a.branches, "branch instructions and their outcomes, by address");
    table("edges", a.edges, "where control went from where");
    table("blocks", a.blocks, "code that ran from end to end, by address");
    table("loops", a.loops, "code that was repeated");
    table("calls", a.calls, "who called whom: a row for each path of calls");
    table("tracks", a.timeline.tracks, "rows of the timeline");
    table("samples", a.timeline.samples,
          "captures of a sum whose timelines are kept; empty: the timeline is of one capture");
    table("slices", a.timeline.slices, "what was active when, nested");
    table("marks", a.timeline.marks, "moments of the timeline");
    table("series", a.timeline.series, "rates and values over time");
    table("exceptions", a.exceptions, "exceptions and interrupts, and how long they took");
    table("levels", a.levels, "what ran at each exception level, in each security state");
    table("charts", a.charts, "histograms and shares");
}
// NOLINTEND(readability-identifier-length)

}  // namespace schema
}  // namespace waymark::answers
