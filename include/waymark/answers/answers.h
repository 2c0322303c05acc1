/// The results of decoding a capture, the same structure for every unit: producers (program flow, samples, counters)
/// fill it, and consumers (tables, exports, the report, comparison) read it. Plain data; whole
/// numbers, so that parts add up to exactly what one pass over everything gives.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/answers/table.h"
#include "waymark/core/shared_text.h"
#include "waymark/isa/isa.h"

namespace waymark::answers {

/// Index into one of the tables below; `none`: there is none.
using Index = std::uint32_t;
inline constexpr Index none = std::numeric_limits<Index>::max();

/// What a number counts.
struct Metric {
    std::string name;    ///< `instructions`, `cycles`, `samples`, `latency cycles`, or a counter's event
    std::string unit;    ///< `instructions`, `cycles`, `ns`, `samples`, `count`, `bytes`
    bool exact = true;   ///< false: an estimate from samples or stretches of the run
    std::string note{};  ///< what it leaves out, in a sentence; empty: nothing
    /// Number of stretches of the run behind the estimate; 0: it is from single samples, or exact.
    std::uint64_t stretches{};
    /// Of a sum of captures that do not all count the same (answers/metric_sets.h): the metrics that the captures
    /// behind this column count, and how many captures these are. Readers get sums without sets: scale_metrics().
    std::string set{};
    std::uint64_t captures{};
};
/// One value per metric of Answers::metrics.
using Costs = std::vector<std::uint64_t>;

// ---- places in the program

/// A program, library or memory dump.
struct Image {
    std::string name;        ///< short, as tables show it
    std::string path{};      ///< what was opened; empty: nothing
    std::string build_id{};  ///< hexadecimal; empty: none
    /// The image's file has the symbols of all functions. Nothing: the image has no file, or the file is unknown.
    std::optional<bool> has_symbols{};
    /// Code that never ran is known too: `has_symbols`, and all its code is known. Otherwise the known code is the code
    /// that ran and that its symbols cover; the rest is unknown.
    bool whole{};
    /// Address in memory minus address in the file. If it was loaded at several addresses, the lowest.
    std::uint64_t load_bias{};
    /// What of its file is loaded where; empty: not known. Filled with `ranges`, and of samples.
    struct Segment {
        std::uint64_t address{}, offset{}, bytes{};  ///< in memory without a load bias; in the file; in memory
        bool executable{};
        friend auto operator<=>(const Segment&, const Segment&) = default;
    };
    std::vector<Segment> segments{};
    std::string recorded{};  ///< where it was on the recorded machine; empty: not known
};

struct Function {
    std::string name;            ///< for reading; `[unknown]`, `(no symbol) in libc.so`, `[interrupt 18]`
    std::string linkage_name{};  ///< as in the symbol table; empty: not from one
    Index image = none;
    std::uint64_t address{}, bytes{};  ///< as traced; bytes 0: not known
    Index source = none;               ///< file it begins in, index of Answers::sources
    std::uint32_t line{};              ///< 0: not known
    /// No code of the program: a task, an interrupt, a gap.
    bool synthetic{};
    /// The function its author wrote, of which this is the code, a copy or a part, as debug information has it. Known
    /// where inlined calls were asked for.
    std::string declared_name{};    ///< linkage name; empty: it has none but that of its symbol, or is not known
    Index declared_source = none;   ///< place of its name
    std::uint32_t declared_line{};  ///< 0: not known
    /// Discriminators of its lines are in LLVM's encoding.
    bool by_llvm{};
};

struct SourceFile {
    std::string path;                  ///< as debug information has it
    std::vector<std::string> lines{};  ///< its text where it was found; empty: not found
};

/// A call whose callee the compiler put in its place, so that it is code of the caller's.
struct InlinedCall {
    Index parent = none;        ///< the inlined call it is made in, before it; none: the function itself makes it
    Index function = none;      ///< the function with a symbol that contains the call's code
    SharedText name;            ///< name of the called function
    SharedText linkage_name{};  ///< as its symbol would be; empty: as the name
    Index source = none;        ///< where it is called
    std::uint32_t line{};
    std::uint32_t discriminator{};  ///< of that line, as image::SourceLine has it
    std::uint32_t declared_line{};  ///< where the callee is declared; 0: not known
};

/// A line of a function, inlined or not. The name lives as long as the answers.
struct InlineFrame {
    std::string_view function{}, linkage_name{};
    Index source = none;
    std::uint32_t line{};
};

/// How far it is known whether code ran.
enum class Seen : std::uint8_t {
    executed,
    not_executed,  ///< and no stretch of unknown flow could have run it
    not_observed,  ///< not seen, but flow was lost where it could have run
};

/// An executed, or executable, instruction.
struct Instruction {
    std::uint64_t address{};
    std::uint8_t bytes{};
    isa::Isa isa{};
    Seen seen{};
    Index function = none;
    Index source = none;  ///< innermost line
    std::uint32_t line{};
    std::uint64_t times{};          ///< executed; flow only
    Costs costs{};                  ///< by metric; empty: `times` says it all
    std::string text{};             ///< disassembled; empty: not asked for
    Index inlined = none;           ///< innermost inlined call it lies in, index of Answers::inlined
    std::uint32_t discriminator{};  ///< of its line, as image::SourceLine has it
};

struct Line {
    Index source = none;
    std::uint32_t line{};
    Seen seen{};
    Index function = none;  ///< the first one with code of this line
    std::uint64_t times{};  ///< executions of the line's most executed instruction; flow only
    Costs costs{};          ///< of the instructions whose own line it is, by metric
};

/// A line that an instruction is a statement of, besides its own: of optimised code several statements begin at one
/// address, and all of them have run when that has.
struct Statement {
    std::uint64_t address{};
    Index function = none, source = none;
    std::uint32_t line{};
};

/// A branch instruction.
struct Branch {
    enum class Kind : std::uint8_t { conditional, unconditional, call, indirect, indirect_call, function_return };
    std::uint64_t address{};
    std::uint64_t target{};  ///< direct only
    Kind kind{};
    Index function = none, source = none;
    std::uint32_t line{};
    std::uint64_t taken{}, not_taken{};
    /// Of an outcome that never happened: not_executed, or not_observed.
    Seen seen_taken{}, seen_not_taken{};
    std::optional<std::uint64_t> mispredicted{};  ///< samples only
};

/// Control went from one place to another.
struct Edge {
    std::uint64_t from{}, to{};  ///< address of the branch; of the instruction that came next
    Index from_function = none, to_function = none;
    Branch::Kind kind{};
    std::uint64_t times{};
    /// Of calls, and of jumps that are tail calls: what passed until the return, by metric. Empty: it is no call, or
    /// not known.
    Costs inclusive{};
};

/// Code that ran from its first instruction to its last without a branch in between.
struct Block {
    std::uint64_t address{};
    std::uint32_t bytes{}, instructions{};
    Index function = none;
    std::uint64_t times{};
};

/// A natural loop: a header, which all ways into the loop pass, and the code that leads back to it; all that leads back
/// to one header is one loop. Or an irreducible region: repeated code that is entered at several places. Both are found
/// in the observed flow. Or a hardware loop of a DPU.
struct Loop {
    /// The header; of an irreducible region, the place of entry it leads back to most often. The last instruction that
    /// leads back there.
    std::uint64_t head{}, tail{};
    Index function = none, source = none;
    std::uint32_t line{};
    /// Times control came into it from elsewhere; where trace began within it, that is one. Times its head ran. Of a
    /// Hardware loops of a DPU: runs in the trace (an interrupt splits one), and times the body ran.
    std::uint64_t entries{}, iterations{};
    Costs costs{};                         ///< of all its instructions, loops in it included, by metric
    std::uint32_t depth{};                 ///< 1: in no other loop; 0: not known, as of hardware loops
    bool irreducible{};                    ///< entered at several places
    std::optional<std::uint64_t> outer{};  ///< head of the loop directly around it
};

// ---- exact flow, by image: what compilers' tools take

/// Code of a file that ran from one instruction to another, both included, without a taken branch in between.
struct ImageRange {
    Index image = none;
    std::uint64_t first{}, last{};  ///< of instructions, as in the file (ELF virtual addresses)
    isa::Isa isa{};
    std::uint32_t instructions{};
    std::uint64_t times{};
    /// How often its last instruction branched, and how often it was a branch and did not. The rest is neither:
    /// interrupted, or no branch.
    std::uint64_t taken{}, not_taken{};
};

/// A branch that was taken, from its address to where it led, as in the files.
struct ImageBranch {
    Index image = none;
    std::uint64_t from{};
    Index to_image = none;  ///< none: to code of no file
    std::uint64_t to{};     ///< without an image: 0
    Branch::Kind kind{};
    std::uint64_t times{};
};

// ---- who called whom

struct CallNode {
    enum class Kind : std::uint8_t {
        root,            ///< of everything, or of a task or core: the names are of that
        call,            ///< called
        interrupt,       ///< an exception or interrupt, and below it its handler
        unsynchronised,  ///< resumed: who called it is not in the trace
        tail_call,       ///< jumped to, in place of a call and the return behind it: returns with its parent
        signal           ///< entered while an exception lasted that is not traced further: a signal handler
    };
    Index parent = none;  ///< before its children; none: the first node alone
    Index function = none;
    Kind kind{};
    std::uint64_t calls{};
    Costs self{};  ///< by metric
};

// ---- time

/// What the timeline's numbers are, and how far they can be trusted.
struct TimeAxis {
    std::string unit = "instructions";  ///< `ns`, `ticks`, `cycles`, `instructions`, `readings`
    std::uint64_t ticks_per_second{};   ///< of `ticks` or `cycles`, where known; else 0
    std::uint64_t begin{}, end{};
    std::uint64_t uncertainty{};  ///< largest error of the times of 95 % of what ran, in the unit
    std::string note{};           ///< how it was made, in a sentence
};

/// A row of the timeline: a core, a thread, a task.
struct Track {
    std::string name;
    Index parent = none;  ///< a track it is drawn below
};

/// A function, task or handler was active in [begin, end).
struct Slice {
    std::uint64_t begin{}, end{};
    Index track{}, function{};
    std::uint32_t depth{};
    /// Number of slices it represents; of several, `function` took most.
    std::uint32_t merged = 1;
};

struct TimelineMark {
    enum class Kind : std::uint8_t { gap, exception, context, user_data, trigger, overflow };
    std::uint64_t begin{}, end{};  ///< equal: a moment
    Index track{};
    Kind kind{};
    std::string text;
};

/// A rate or value over time.
struct Series {
    std::string name, unit;
    Index track = none;
    struct Point {
        std::uint64_t time{};
        double value{};
    };
    std::vector<Point> points;
};

/// A capture of a sum whose timeline is kept.
struct TimelineSample {
    std::string capture;
    Index track = none;                  ///< its own, above its others, which are behind it
    std::uint64_t order{};               ///< sample_order(capture)
    std::uint64_t contents{};            ///< hash of its timeline: captures may have one name
    std::uint64_t resolution{};          ///< Timeline::resolution of this capture alone
    std::uint64_t uncertainty{}, end{};  ///< of its axis, which begins at 0
};
/// A sum keeps at most this many timelines: the captures with the smallest `sample_order`.
inline constexpr std::size_t most_samples = 8;
[[nodiscard]] std::uint64_t sample_order(std::string_view capture);

struct Timeline {
    TimeAxis axis;
    std::vector<Track> tracks;
    std::vector<Slice> slices;        ///< by track, then begin, then depth; nested ones lie within those around them
    std::vector<TimelineMark> marks;  ///< by track, then begin
    std::vector<Series> series;
    /// Slices shorter than this were merged. 0: none were.
    std::uint64_t resolution{};
    /// Of a sum: captures whose timelines these are, in the order of their tracks. Empty: it is of one capture.
    std::vector<TimelineSample> samples;
};

// ---- the rest

struct ExceptionRow {
    std::string name;  ///< `IRQ`, `supervisor call`
    std::uint32_t number{};
    std::uint64_t times{}, nested{};
    /// From entry to return, in `unit`, of those that returned.
    std::uint64_t least{}, most{}, sum{}, returned{};
    std::string unit = "instructions";  ///< or `cycles`
    /// Without a return, or where nothing that the handler ran is in the trace, the times are unknown.
    [[nodiscard]] bool has_times() const { return returned != 0 && sum != 0; }
};

/// What ran at one exception level, in one security state and one execution state.
struct LevelRow {
    std::string security;     ///< `Secure`, `Non-secure`, `Root`, `Realm`
    std::string level{};      ///< `EL0` to `EL3`, `Hyp`; empty: the trace does not carry it
    std::string state{};      ///< `AArch64`, `AArch32`
    std::uint64_t entered{};  ///< times it was changed to, from another or from where none was known
    Costs costs{};            ///< by metric
};
/// `EL1 Non-secure`; AArch32 is named where there are exception levels.
[[nodiscard]] std::string name(const LevelRow& row);

/// A figure of the health or summary: printed in order.
struct Figure {
    std::string name, value, note{};
};

/// Something to know before trusting the rest.
struct Finding {
    enum class Severity : std::uint8_t { good, note, warning, bad };
    Severity severity{};
    std::string what;                       ///< a sentence
    std::string todo{};                     ///< what to do; empty: nothing
    std::optional<std::uint64_t> offset{};  ///< in the capture's buffer
    /// The finding warns only about names of code: no trace is missing, and no gate fails.
    bool of_names{};
    /// A file that was given and that none of the captures needs; empty: it is about no such file.
    std::string unused_file{};
    /// In a sum: the number of captures with this finding, perhaps with other numbers; the text has one capture's
    /// numbers. 0: the finding does not come from single captures.
    std::uint64_t captures{};
};

/// How far figures of one kind can be believed: clauses, empty where there is nothing of the sort.
struct Trust {
    std::string view;  ///< whose figures: `functions`, `timeline`, `coverage`, `tasks`, …
    std::string exact{}, estimated{}, not_known{};
};

/// A chart with its values: a histogram, shares of data sources.
struct Chart {
    enum class Kind : std::uint8_t { histogram, shares };
    Kind kind{};
    std::string title, x_unit{}, y_unit{}, note{};
    struct Bar {
        std::string label;
        std::uint64_t value{};
        std::string note{};
    };
    std::vector<Bar> bars;
};

/// A capture from which the results come.
struct MergedPart {
    std::string capture;
    std::uint64_t times = 1;  ///< it is among them
    std::uint64_t trace_bytes{};
};

struct Answers {
    std::string capture;  ///< its name
    std::string unit;     ///< `PTM`, `SPE`, `DPU`
    std::string version;  ///< of Waymark
    std::uint64_t trace_bytes{};
    bool cut{};  ///< the capture could not be read to its end: `health` says why

    Account account;              ///< how much of the run this is
    std::vector<Finding> health;  ///< the worst first
    std::vector<Trust> trust;     ///< of each kind of figure that is here, or that the unit could have delivered
    std::vector<Figure> summary;
    std::vector<Metric> metrics;  ///< at least one; the first is what tables are sorted by

    std::vector<Image> images;
    std::vector<SourceFile> sources;
    std::vector<Function> functions;
    std::vector<InlinedCall> inlined;  ///< parents before children; empty: there are none, or they were not asked for
    std::vector<Instruction> instructions;  ///< by address; of functions with executed code
    std::vector<Statement> statements;      ///< by address, function, source, line
    std::vector<Line> lines;                ///< by source, line
    std::vector<Branch> branches;           ///< by address
    std::vector<Edge> edges;                ///< by from, to
    std::vector<Block> blocks;              ///< by address
    std::vector<Loop> loops;                ///< by head, an irreducible region before a natural loop
    std::vector<ImageRange> ranges;         ///< by image, first, last; of program flow
    std::vector<ImageBranch> jumps;         ///< by image, from, to; of program flow
    std::vector<CallNode> calls;            ///< parents before children; empty: who called whom is not known
    Timeline timeline;
    std::vector<ExceptionRow> exceptions;
    std::vector<LevelRow> levels;  ///< Secure states first; empty: not known, or calls were not asked for
    std::vector<Chart> charts;
    std::vector<Table> tables;  ///< those that only one unit has: DPU tasks, loops and user data, shared cache lines
    /// The captures that these answers are of, by name; empty: it is one, `capture`.
    std::vector<MergedPart> parts{};
};

/// What a function cost over all.
struct FunctionCosts {
    std::uint64_t calls{};
    Costs self{}, inclusive{};  ///< by metric; inclusive counts recursion once
};
/// By function, from the call tree; where there is none, from instructions, and then inclusive is empty. Without
/// `interrupts`, what an interrupt or signal ran is no part of what it interrupted.
[[nodiscard]] std::vector<FunctionCosts> function_costs(const Answers& answers, bool interrupts = true);

/// Every line that an instruction is a statement of: its own line, and the lines in `Answers::statements`.
[[nodiscard]] std::vector<std::pair<Index, std::uint32_t>> lines_of(const Answers& answers, const Instruction& code);

/// A function's name without what compilers append to the names of its copies and parts: `sort.isra.0`, `f() [clone
/// .part.0]`.
[[nodiscard]] std::string_view without_suffix(std::string_view name);

/// Where an instruction comes from, the innermost line first; the last is of the function that has the symbol.
[[nodiscard]] std::vector<InlineFrame> inline_frames(const Answers& answers, const Instruction& instruction);

/// A function's costs wherever its code is: in its own body, and inlined into other functions.
struct InlinedCosts {
    std::string name;
    Index function = none;    ///< the function's own code; none: the function was inlined everywhere
    Index image = none;       ///< its code lies in
    std::uint64_t places{};   ///< inlined calls of the function that cost something
    Costs self{}, inlined{};  ///< by metric: without what is inlined into it; of that where it was inlined itself
};
/// By function as its author wrote them: what was inlined counts for what was called rather than for the caller. The
/// sum of `self` is that of function_costs; of a metric in which those are less than what is inlined into a function,
/// it is that of the instructions. Needs instructions. A function without a linkage name in debug information is
/// another than the one of that name among the symbols.
[[nodiscard]] std::vector<InlinedCosts> inlined_costs(const Answers& answers);

/// All that several captures of one unit say, whatever their order: images are found by build ID (without one by name),
/// functions by image, linkage name and address in the file, code by function and address in the file, lines by file
/// and number, and their numbers add up, up to the largest there is. The result depends on nothing but the set of
/// captures, however they are put together: merging is commutative and associative, and the order of rows is part of
/// that. Captures have no time in common, so of timelines a sample is kept, at most `most_samples`, each from its own
/// begin and with less detail. What has no sum is left out: charts, tables of one unit. `health` says both.
[[nodiscard]] Answers merged(std::span<const Answers* const> all);
void merge(Answers& into, const Answers& other);

}  // namespace waymark::answers
