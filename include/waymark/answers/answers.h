/// The results of decoding a capture, in the same structure for every unit: producers (program flow, samples, counters)
/// fill it, and consumers (tables, exports, the report, comparison) read it. Plain data with integers, so that parts
/// add up to exactly the result of one pass.
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

/// Index into one of the tables below, or `none`.
using Index = std::uint32_t;
inline constexpr Index none = std::numeric_limits<Index>::max();

/// The meaning of a column of numbers.
struct Metric {
    std::string name;    ///< `instructions`, `cycles`, `samples`, `latency cycles`, or a counter's event
    std::string unit;    ///< `instructions`, `cycles`, `ns`, `samples`, `count`, `bytes`
    bool exact = true;   ///< false: an estimate from samples or stretches of the run
    std::string note{};  ///< the excluded part, in a sentence; empty: none
    /// Number of stretches of the run behind the estimate; 0: it comes from single samples, or is exact.
    std::uint64_t stretches{};
    /// In a sum of captures with different metrics (answers/metric_sets.h): the metrics that the captures behind this
    /// column count, and the number of these captures. Readers get sums without sets: scale_metrics().
    std::string set{};
    std::uint64_t captures{};
};
/// One value per metric of Answers::metrics.
using Costs = std::vector<std::uint64_t>;

// ---- places in the program

/// A program, library or memory dump.
struct Image {
    std::string name;        ///< short name for tables
    std::string path{};      ///< the opened file; empty: none
    std::string build_id{};  ///< hexadecimal; empty: none
    /// Whether the image's file has the symbols of all functions. nullopt: the image has no file, or the file is
    /// unknown.
    std::optional<bool> has_symbols{};
    /// Whether code that never ran is known too: the image has symbols (`has_symbols`), and all its code is known.
    /// Otherwise only executed code, and code covered by its symbols, is known.
    bool whole{};
    /// Address in memory minus address in the file. If it was loaded at several addresses, the lowest.
    std::uint64_t load_bias{};
    /// Parts of the image's file and their load addresses; empty if not known. Filled together with `ranges`, and for
    /// samples.
    struct Segment {
        std::uint64_t address{}, offset{},
            bytes{};  ///< address in memory without load bias; offset in the file; size in memory
        bool executable{};
        friend auto operator<=>(const Segment&, const Segment&) = default;
    };
    std::vector<Segment> segments{};
    std::string recorded{};  ///< path on the recorded machine; empty: not known
    /// Code of the image that is not listed may have run unobserved.
    bool hides{};
};

struct Function {
    std::string name;            ///< readable name; `[unknown]`, `(no symbol) in libc.so`, `[interrupt 18]`
    std::string linkage_name{};  ///< name in the symbol table; empty if there is none
    Index image = none;
    std::uint64_t address{}, bytes{};  ///< address as traced; bytes 0: not known
    Index source = none;               ///< source file of its first line, index of Answers::sources
    std::uint32_t line{};              ///< 0: not known
    /// Not code of the program: a task, an interrupt, a gap.
    bool synthetic{};
    /// The function in the source that this code belongs to, as a whole, a clone or a part, from debug information.
    /// Known if inlined calls were requested.
    std::string declared_name{};    ///< linkage name; empty: same as the symbol's, or not known
    Index declared_source = none;   ///< source file of its declaration
    std::uint32_t declared_line{};  ///< 0: not known
    /// Discriminators of its lines use LLVM's encoding.
    bool by_llvm{};
};

struct SourceFile {
    std::string path;                  ///< path in debug information
    std::vector<std::string> lines{};  ///< its text; empty if not found
};

/// A call that the compiler replaced by the callee's code, so that it is code of the caller.
struct InlinedCall {
    Index parent = none;  ///< the inlined call that contains it, an earlier one; none: the function itself contains it
    Index function = none;      ///< the function with a symbol that contains the call's code
    SharedText name;            ///< name of the called function
    SharedText linkage_name{};  ///< linkage name; empty: same as the name
    Index source = none;        ///< place of the call
    std::uint32_t line{};
    std::uint32_t discriminator{};  ///< discriminator of that line, as in image::SourceLine
    std::uint32_t declared_line{};  ///< line of the callee's declaration; 0: not known
};

/// A line of a function, inlined or not. The name lives as long as the answers.
struct InlineFrame {
    std::string_view function{}, linkage_name{};
    Index source = none;
    std::uint32_t line{};
};

/// Whether code ran, as far as it is known.
enum class Seen : std::uint8_t {
    executed,
    not_executed,  ///< not seen, and it could not have run where flow was lost
    not_observed,  ///< not seen, but flow was lost where it could have run
};

/// An instruction that ran, or could have run.
struct Instruction {
    std::uint64_t address{};
    std::uint8_t bytes{};
    isa::Isa isa{};
    Seen seen{};
    Index function = none;
    Index source = none;  ///< innermost line
    std::uint32_t line{};
    std::uint64_t times{};          ///< executed; flow only
    Costs costs{};                  ///< by metric; empty: only `times` is known
    std::string text{};             ///< disassembly; empty: not requested
    Index inlined = none;           ///< innermost inlined call that contains it, index of Answers::inlined
    std::uint32_t discriminator{};  ///< discriminator of its line, as in image::SourceLine
};

struct Line {
    Index source = none;
    std::uint32_t line{};
    Seen seen{};
    Index function = none;  ///< the first function with code of this line
    std::uint64_t times{};  ///< executions; for a line, of its most executed instruction; flow only
    Costs costs{};          ///< costs of the instructions that have this as their own line, by metric
};

/// A further line whose statement begins at an instruction, besides the instruction's own: in optimised code several
/// statements begin at one address, and all of them ran if the instruction did.
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
    /// The reason if an outcome never occurred: not_executed, or not_observed.
    Seen seen_taken{}, seen_not_taken{};
    std::optional<std::uint64_t> mispredicted{};  ///< samples only
};

/// A flow of control from one place to another.
struct Edge {
    std::uint64_t from{}, to{};  ///< address of the branch; address of the next instruction
    Index from_function = none, to_function = none;
    Branch::Kind kind{};
    std::uint64_t times{};
    /// For calls and tail calls: cost until the return, by metric. Empty: not a call, or not known.
    Costs inclusive{};
};

/// Code that ran from its first to its last instruction without a branch in between.
struct Block {
    std::uint64_t address{};
    std::uint32_t bytes{}, instructions{};
    Index function = none;
    std::uint64_t times{};
};

/// A natural loop, an irreducible region, or a hardware loop of a DPU. A natural loop consists of a header, which all
/// paths into the loop pass, and of all code that leads back to that header. An irreducible region is repeated code
/// that is entered at several places. Both are found in the observed flow.
struct Loop {
    /// `head`: the header; for an irreducible region, the entry with the most flows back to it. `tail`: the last
    /// instruction that leads back to `head`.
    std::uint64_t head{}, tail{};
    Index function = none, source = none;
    std::uint32_t line{};
    /// Number of entries from outside (a trace that begins inside the loop counts as one), and number of executions of
    /// its head. For hardware loops of a DPU: number of runs in the trace (an interrupt splits one), and times the body
    /// ran.
    std::uint64_t entries{}, iterations{};
    Costs costs{};                         ///< costs of all its instructions, including inner loops, by metric
    std::uint32_t depth{};                 ///< 1: outermost; 0: not known, as for hardware loops
    bool irreducible{};                    ///< entered at several places
    std::optional<std::uint64_t> outer{};  ///< head of the directly enclosing loop
};

// ---- exact flow, by image: what compilers' tools take

/// Code of a file that ran from a first to a last instruction, both included, without a taken branch in between.
struct ImageRange {
    Index image = none;
    std::uint64_t first{}, last{};  ///< addresses of instructions in the file (ELF virtual addresses)
    isa::Isa isa{};
    std::uint32_t instructions{};
    std::uint64_t times{};
    /// How often its last instruction branched, and how often it was a branch that was not taken. The rest was
    /// interrupted, or is not a branch.
    std::uint64_t taken{}, not_taken{};
};

/// A taken branch: its address and its target, relative to the files.
struct ImageBranch {
    Index image = none;
    std::uint64_t from{};
    Index to_image = none;  ///< none: the target is outside of all files
    std::uint64_t to{};     ///< without an image: 0
    Branch::Kind kind{};
    std::uint64_t times{};
};

// ---- who called whom

struct CallNode {
    enum class Kind : std::uint8_t {
        root,            ///< the root of everything, or of the task or core in its name
        call,            ///< called
        interrupt,       ///< an exception or interrupt, and below it its handler
        unsynchronised,  ///< resumed: the caller is not in the trace
        tail_call,       ///< entered by a jump in place of a call: returns with its parent
        signal           ///< entered during an exception whose handler is not traced: a signal handler
    };
    Index parent = none;  ///< index of the parent, smaller than this node's; `none` for the root
    Index function = none;
    Kind kind{};
    std::uint64_t calls{};
    Costs self{};  ///< by metric
};

// ---- time

/// The unit and accuracy of the timeline's numbers.
struct TimeAxis {
    std::string unit = "instructions";  ///< `ns`, `ticks`, `cycles`, `instructions`, `readings`
    std::uint64_t ticks_per_second{};   ///< rate of `ticks` or `cycles`, if known; else 0
    std::uint64_t begin{}, end{};
    std::uint64_t uncertainty{};  ///< maximum error of the times for 95 % of the executed code, in the unit
    std::string note{};           ///< how the axis was made, in a sentence
};

/// A row of the timeline: a core, a thread, a task.
struct Track {
    std::string name;
    Index parent = none;  ///< parent track, below which it is shown
};

/// A function, task or handler was active in [begin, end).
struct Slice {
    std::uint64_t begin{}, end{};
    Index track{}, function{};
    std::uint32_t depth{};
    /// Number of slices it represents; if several, `function` took most of the time.
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

/// A capture in a sum whose timeline is kept.
struct TimelineSample {
    std::string capture;
    Index track = none;                  ///< its own track, followed by its other tracks
    std::uint64_t order{};               ///< sample_order(capture)
    std::uint64_t contents{};            ///< hash of its timeline: several captures may have the same name
    std::uint64_t resolution{};          ///< Timeline::resolution for this capture
    std::uint64_t uncertainty{}, end{};  ///< of its axis, which begins at 0
};
/// Maximum number of timelines that a sum keeps: those of the captures with the smallest `sample_order`.
inline constexpr std::size_t most_samples = 8;
[[nodiscard]] std::uint64_t sample_order(std::string_view capture);

struct Timeline {
    TimeAxis axis;
    std::vector<Track> tracks;
    std::vector<Slice> slices;        ///< by track, then begin, then depth; slices are nested
    std::vector<TimelineMark> marks;  ///< by track, then begin
    std::vector<Series> series;
    /// Slices shorter than this were merged; 0: none was.
    std::uint64_t resolution{};
    /// In a sum: the captures of these timelines, in the order of their tracks. Empty: a single capture.
    std::vector<TimelineSample> samples;
};

// ---- the rest

struct ExceptionRow {
    std::string name;  ///< `IRQ`, `supervisor call`
    std::uint32_t number{};
    std::uint64_t times{}, nested{};
    /// Times from entry to return, in `unit`, of the exceptions that returned.
    std::uint64_t least{}, most{}, sum{}, returned{};
    std::string unit = "instructions";  ///< or `cycles`
    /// The times are unknown if none returned, or if nothing that the handler executed is in the trace.
    [[nodiscard]] bool has_times() const { return returned != 0 && sum != 0; }
};

/// Execution at one exception level, in one security state and one execution state.
struct LevelRow {
    std::string security;     ///< `Secure`, `Non-secure`, `Root`, `Realm`
    std::string level{};      ///< `EL0` to `EL3`, `Hyp`; empty: not in the trace
    std::string state{};      ///< `AArch64`, `AArch32`
    std::uint64_t entered{};  ///< number of changes to it, from another level or from an unknown one
    Costs costs{};            ///< by metric
};
/// Such as `EL1 Non-secure`; AArch32 is named if there are exception levels.
[[nodiscard]] std::string name(const LevelRow& row);

/// A figure of the health or summary; printed in order.
struct Figure {
    std::string name, value, note{};
};

/// Something that a reader should know before trusting the figures.
struct Finding {
    enum class Severity : std::uint8_t { good, note, warning, bad };
    Severity severity{};
    std::string what;                       ///< a sentence
    std::string todo{};                     ///< what to do; empty: nothing
    std::optional<std::uint64_t> offset{};  ///< in the capture's buffer
    /// The finding only concerns names of code: no trace is missing, and no gate fails.
    bool of_names{};
    /// A file that the user gave and that none of the captures needs; empty if the finding is about something else.
    std::string unused_file{};
    /// In a sum: the number of captures with this finding, possibly with other numbers; the text has one capture's
    /// numbers. 0: the finding does not come from single captures.
    std::uint64_t captures{};
};

/// How far figures of one kind can be trusted: clauses, empty if none applies.
struct Trust {
    std::string view;  ///< the figures: `functions`, `timeline`, `coverage`, `tasks`, …
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

/// A capture that contributed to the results.
struct MergedPart {
    std::string capture;
    std::uint64_t times = 1;  ///< how often it is included
    std::uint64_t trace_bytes{};
};

struct Answers {
    std::string capture;  ///< its name
    std::string unit;     ///< `PTM`, `SPE`, `DPU`
    std::string version;  ///< of Waymark
    std::uint64_t trace_bytes{};
    bool cut{};           ///< the capture could not be read to its end: `health` gives the reason
    bool hides_others{};  ///< code of images that are not listed may have run unobserved

    Account account;              ///< how much of the run is covered
    std::vector<Finding> health;  ///< the worst first
    std::vector<Trust> trust;     ///< for each kind of figure that is present, or that the unit could have delivered
    std::vector<Figure> summary;
    std::vector<Metric> metrics;  ///< at least one; tables are sorted by the first

    std::vector<Image> images;
    std::vector<SourceFile> sources;
    std::vector<Function> functions;
    std::vector<InlinedCall> inlined;  ///< parents before children; empty: there are none, or they were not requested
    std::vector<Instruction> instructions;  ///< by address; in functions with executed code
    std::vector<Statement> statements;      ///< by address, function, source, line
    std::vector<Line> lines;                ///< by source, line
    std::vector<Branch> branches;           ///< by address
    std::vector<Edge> edges;                ///< by from, to
    std::vector<Block> blocks;              ///< by address
    std::vector<Loop> loops;                ///< by head, an irreducible region before a natural loop
    std::vector<ImageRange> ranges;         ///< by image, first, last; of program flow
    std::vector<ImageBranch> jumps;         ///< by image, from, to; of program flow
    std::vector<CallNode> calls;            ///< parents before children; empty: calls are not known
    Timeline timeline;
    std::vector<ExceptionRow> exceptions;
    std::vector<LevelRow> levels;  ///< Secure states first; empty: not known, or calls were not requested
    std::vector<Chart> charts;
    std::vector<Table> tables;  ///< tables of a single unit: DPU tasks, loops and user data, shared cache lines
    /// The captures in a sum, by name; empty for a single one, `capture`.
    std::vector<MergedPart> parts{};
};

/// The total costs of a function.
struct FunctionCosts {
    std::uint64_t calls{};
    Costs self{}, inclusive{};  ///< by metric; inclusive costs count recursion once
};
/// By function, from the call tree; without a tree from instructions, then inclusive costs are empty. Without
/// `interrupts`, code that ran in an interrupt or signal is not included in the interrupted function.
[[nodiscard]] std::vector<FunctionCosts> function_costs(const Answers& answers, bool interrupts = true);

/// Every line whose statement an instruction begins: its own line, and the lines in `Answers::statements`.
[[nodiscard]] std::vector<std::pair<Index, std::uint32_t>> lines_of(const Answers& answers, const Instruction& code);

/// A function's name without the suffixes that compilers append for clones and parts: `sort.isra.0`, `f() [clone
/// .part.0]`.
[[nodiscard]] std::string_view without_suffix(std::string_view name);

/// The source of an instruction: the innermost line first; the last line belongs to the function with the symbol.
[[nodiscard]] std::vector<InlineFrame> inline_frames(const Answers& answers, const Instruction& instruction);

/// A function's costs in all its code: in its own body, and where it is inlined into other functions.
struct InlinedCosts {
    std::string name;
    Index function = none;    ///< the function with the symbol; none: the function was inlined everywhere
    Index image = none;       ///< image of its code
    std::uint64_t places{};   ///< number of its inlined calls that have costs
    Costs self{}, inlined{};  ///< by metric: costs without code inlined into it; the part in inlined copies
};
/// By function as declared in the source: inlined code counts for the callee, not the caller. The sum of `self` equals
/// that of function_costs; for a metric in which function_costs are smaller than the code inlined into a function, it
/// equals that of the instructions. Needs instructions. A function without a linkage name in debug information differs
/// from a symbol with that name.
[[nodiscard]] std::vector<InlinedCosts> inlined_costs(const Answers& answers);

/// The sum of several captures of one unit, in any order. Images are matched by build ID (without one by name),
/// functions by image, linkage name and address in the file, code by function and address in the file, lines by file
/// and number. Numbers of matching rows are added, and saturate. The result depends only on the set of captures:
/// merging is commutative and associative, including the order of rows. Captures have no common time, so the sum keeps
/// the timelines of at most `most_samples` captures, each from its own beginning and with less detail. Charts and
/// tables of a single unit cannot be added, and are left out. `health` reports both.
[[nodiscard]] Answers merged(std::span<const Answers* const> all);
void merge(Answers& into, const Answers& other);

}  // namespace waymark::answers
