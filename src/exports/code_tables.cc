/// Tables of answers: functions, instructions, lines, branches, loops and calls.
#include <algorithm>

#include "table_cells.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/seen_lines.h"
#include "waymark/answers/unknown_costs.h"

namespace waymark::exports {
namespace {

using namespace cells;
using answers::CallNode;
using answers::Seen;
namespace meaning = answers::meaning;
namespace schema = answers::schema;

constexpr std::array functions_columns{
    Column{"id", integer, "number of the function"},
    Column{"name", string, meaning::function_name},
    Column{"linkage_name", string, meaning::linkage_name},
    Column{"image", integer, meaning::image, "images.id"},
    Column{"address", address, meaning::function_address},
    Column{"bytes", integer, meaning::bytes},
    Column{"source", integer, "source file in which the function begins", "sources.id"},
    Column{"line", integer, meaning::first_line},
    Column{"synthetic", integer, meaning::synthetic},
    Column{"calls", integer, meaning::calls_of_function},
    Column{"self", integer, "own cost in the first metric"},
    Column{"inclusive", integer, meaning::with_callees},
};
void functions_rows(const Answers& a, const RowSink& sink) {
    const auto costs = answers::function_costs(a);
    const auto entries = function_entries(a);
    const bool entries_known = !a.calls.empty() || std::any_of(a.instructions.begin(), a.instructions.end(),
                                                               [](const auto& each) { return each.times != 0; });
    for (std::size_t i = 0; i < a.functions.size(); ++i) {
        const answers::Function& f = a.functions[i];
        put_row(sink,
                {number(i), words(f.name), words(f.linkage_name), index(f.image),
                 f.synthetic ? nothing() : number(f.address), known(f.bytes), index(f.source), known(f.line),
                 flag(f.synthetic), entries_known ? number(entries[i]) : nothing(), number(cost_of(costs[i].self, 0)),
                 costs[i].inclusive.empty() ? nothing() : number(cost_of(costs[i].inclusive, 0))});
    }
}

constexpr std::array function_costs_columns{
    Column{"function", integer, "function that has these costs", "functions.id"},
    Column{"metric", integer, "metric that is counted; there are no rows of cost 0", "metrics.id"},
    Column{"self", integer, "own cost; unknown where no count of cycles covers it"},
    Column{"inclusive", integer, meaning::with_callees},
};
void function_costs_rows(const Answers& a, const RowSink& sink) {
    const auto costs = answers::function_costs(a);
    for (std::size_t i = 0; i < costs.size(); ++i)
        for (std::size_t m = 0; m < a.metrics.size(); ++m) {
            const std::uint64_t self = cost_of(costs[i].self, m), all = cost_of(costs[i].inclusive, m);
            const bool unseen =
                a.functions[i].synthetic && costs[i].calls != 0 && is_unknown_unseen(a, costs[i].self, m);
            const bool unknown = unseen || is_unknown(a, costs[i].self, m);
            const bool no_sum = costs[i].inclusive.empty() || unseen || is_unknown(a, costs[i].inclusive, m);
            if (self != 0 || all != 0 || unknown)
                put_row(sink,
                        {number(i), number(m), unknown ? nothing() : number(self), no_sum ? nothing() : number(all)});
        }
}

constexpr std::array inlined_calls_columns{
    Column{"id", integer, "number of the inlined call"},
    Column{"parent", integer, "inlined call that makes this call; null: the function itself makes it",
           "inlined_calls.id"},
    Column{"function", integer, "function that contains the code", "functions.id"},
    Column{"name", string, "name of the called function"},
    Column{"linkage_name", string, "linkage name of the called function"},
    Column{"source", integer, "source file of the call", "sources.id"},
    Column{"line", integer, "line of the call"},
};
void inlined_calls_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t i = 0; i < a.inlined.size(); ++i) {
        const answers::InlinedCall& c = a.inlined[i];
        put_row(sink, {number(i), index(c.parent), index(c.function), words(c.name),
                       words(c.linkage_name.empty() ? c.name : c.linkage_name), index(c.source), known(c.line)});
    }
}

constexpr std::array instructions_columns{
    Column{"address", address, meaning::instruction_address},
    Column{"bytes", integer, meaning::bytes},
    Column{"isa", string, meaning::instruction_set},
    Column{"seen", string, meaning::seen},
    Column{"function", integer, meaning::enclosing_function, "functions.id"},
    Column{"source", integer, "source file of the innermost line", "sources.id"},
    Column{"line", integer, "innermost line, where code was inlined"},
    Column{"times", integer, meaning::executed_times},
    Column{"cost", integer, "cost in the first metric"},
    Column{"text", string, meaning::disassembly},
    Column{"inlined", integer, "innermost inlined call that contains the instruction", "inlined_calls.id"},
};
void instructions_rows(const Answers& a, const RowSink& sink) {
    for (const auto& i : a.instructions)
        put_row(sink, {number(i.address), number(i.bytes), isa::name(i.isa), word(schema::seen, i.seen),
                       index(i.function), index(i.source), known(i.line), number(i.times), number(cost_of(i, 0)),
                       words(i.text), index(i.inlined)});
}

constexpr std::array instruction_costs_columns{
    Column{"address", address, "address of the instruction", "instructions.address"},
    Column{"metric", integer, "metric that is counted; there are no rows of cost 0", "metrics.id"},
    Column{"cost", integer, "cost of all executions of the instruction"},
    Column{"function", integer, "function that contains it; code of several files may have one address",
           "functions.id"},
};
void instruction_costs_rows(const Answers& a, const RowSink& sink) {
    for (const auto& i : a.instructions)
        for (std::size_t m = 0; m < i.costs.size(); ++m)
            if (i.costs[m] != 0) put_row(sink, {number(i.address), number(m), number(i.costs[m]), index(i.function)});
}

constexpr std::array lines_columns{
    Column{"source", integer, "source file", "sources.id"},
    Column{"line", integer, meaning::source_line},
    Column{"seen", string, meaning::seen},
    Column{"function", integer, "first function with code of this line", "functions.id"},
    Column{"times", integer, meaning::most_executed},
    Column{"cost", integer, "cost of the line's instructions in the first metric"},
};
void lines_rows(const Answers& a, const RowSink& sink) {
    const std::vector<answers::Seen> seen = answers::seen_of_lines(a);
    for (std::size_t row = 0; row < a.lines.size(); ++row) {
        const answers::Line& l = a.lines[row];
        put_row(sink, {index(l.source), number(l.line), word(schema::seen, seen[row]), index(l.function),
                       number(l.times), l.costs.empty() ? nothing() : number(l.costs[0])});
    }
}

constexpr std::array line_costs_columns{
    Column{"source", integer, "source file", "sources.id"},
    Column{"line", integer, meaning::source_line},
    Column{"metric", integer, "metric that is counted; there are no rows of cost 0", "metrics.id"},
    Column{"cost", integer, "cost of the line's instructions"},
};
void line_costs_rows(const Answers& a, const RowSink& sink) {
    for (const auto& l : a.lines)
        for (std::size_t m = 0; m < l.costs.size(); ++m)
            if (l.costs[m] != 0) put_row(sink, {index(l.source), number(l.line), number(m), number(l.costs[m])});
}

constexpr std::array branches_columns{
    Column{"address", address, meaning::branch_address},
    Column{"target", address, meaning::branch_target},
    Column{"kind", string, meaning::branch_kind},
    Column{"function", integer, meaning::enclosing_function, "functions.id"},
    Column{"source", integer, "source file", "sources.id"},
    Column{"line", integer, meaning::source_line},
    Column{"taken", integer, meaning::taken},
    Column{"not_taken", integer, meaning::not_taken},
    Column{"seen_taken", string, meaning::seen_outcome},
    Column{"seen_not_taken", string, meaning::seen_outcome},
    Column{"mispredicted", integer, meaning::mispredicted},
};
void branches_rows(const Answers& a, const RowSink& sink) {
    for (const auto& b : a.branches)
        put_row(sink, {number(b.address), known(b.target), word(schema::branches, b.kind), index(b.function),
                       index(b.source), known(b.line), number(b.taken), number(b.not_taken),
                       word(schema::seen, b.taken != 0 ? Seen::executed : b.seen_taken),
                       word(schema::seen, b.not_taken != 0 ? Seen::executed : b.seen_not_taken),
                       b.mispredicted ? number(*b.mispredicted) : nothing()});
}

constexpr std::array edges_columns{
    Column{"from_address", address, meaning::branch_address},
    Column{"to_address", address, "address of the instruction that came next"},
    Column{"from_function", integer, "function that contains the branch", "functions.id"},
    Column{"to_function", integer, "function to which the branch led", "functions.id"},
    Column{"kind", string, meaning::branch_kind},
    Column{"times", integer, "times control went that way"},
};
void edges_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.edges)
        put_row(sink, {number(e.from), number(e.to), index(e.from_function), index(e.to_function),
                       word(schema::branches, e.kind), number(e.times)});
}

constexpr std::array edge_costs_columns{
    Column{"from_address", address, "address of the call, or of the jump that is a tail call"},
    Column{"to_address", address, "address of the called function"},
    Column{"metric", integer, "metric that is counted", "metrics.id"},
    Column{"inclusive", integer, "cost between the call, or tail call, and the return"},
};
void edge_costs_rows(const Answers& a, const RowSink& sink) {
    for (const auto& e : a.edges)
        for (std::size_t m = 0; m < e.inclusive.size(); ++m)
            put_row(sink, {number(e.from), number(e.to), number(m), number(e.inclusive[m])});
}

constexpr std::array blocks_columns{
    Column{"address", address, meaning::block_address},
    Column{"bytes", integer, meaning::bytes},
    Column{"instructions", integer, meaning::block_instructions},
    Column{"function", integer, meaning::enclosing_function, "functions.id"},
    Column{"times", integer, meaning::ran_times},
};
void blocks_rows(const Answers& a, const RowSink& sink) {
    for (const auto& b : a.blocks)
        put_row(sink, {number(b.address), number(b.bytes), number(b.instructions), index(b.function), number(b.times)});
}

constexpr std::array loops_columns{
    Column{"head", address, meaning::loop_head},
    Column{"tail", address, meaning::loop_tail},
    Column{"function", integer, meaning::enclosing_function, "functions.id"},
    Column{"source", integer, "source file", "sources.id"},
    Column{"line", integer, meaning::first_line},
    Column{"entries", integer,
           "times control entered the loop from outside, or trace began anew at its entry; for a DPU: runs that jump "
           "back; a run that an interrupt divides counts once"},
    Column{"iterations", integer, meaning::loop_iterations},
    Column{"cost", integer, "cost of all instructions of the loop in the first metric"},
    Column{"depth", integer, "number of loops it lies in, itself included; 1: the outermost; unknown of a DPU"},
    Column{"outer", address, meaning::loop_outer},
    Column{"irreducible", integer, meaning::irreducible},
};
void loops_rows(const Answers& a, const RowSink& sink) {
    for (const auto& l : a.loops)
        put_row(sink, {number(l.head), number(l.tail), index(l.function), index(l.source), known(l.line),
                       number(l.entries), number(l.iterations), l.costs.empty() ? nothing() : number(l.costs[0]),
                       known(l.depth), l.outer ? number(*l.outer) : nothing(), number(l.irreducible ? 1 : 0)});
}

constexpr std::array calls_columns{
    Column{"id", integer, "number of the node of the call tree"},
    Column{"parent", integer, "node that called this node, or from which it was entered otherwise", "calls.id"},
    Column{"function", integer, "function that was called", "functions.id"},
    Column{"kind", string,
           "root, call, tail call, interrupt, signal; unsynchronised: who called it is not in the trace"},
    Column{"calls", integer, "times this path of calls was taken"},
    Column{"self", integer, "cost of the path's last function, in the first metric"},
    Column{"inclusive", integer, "cost with all nodes below"},
};
void calls_rows(const Answers& a, const RowSink& sink) {
    const std::vector<std::uint64_t> sums = answers::inclusive_costs(a, 0);
    for (Index i = 0; i < a.calls.size(); ++i) {
        const CallNode& c = a.calls[i];
        put_row(sink, {number(i), index(parent_of(a, i)), index(c.function), word(schema::nodes, c.kind),
                       number(c.calls), number(cost_of(c.self, 0)), number(sums[i])});
    }
}

constexpr std::array call_costs_columns{
    Column{"node", integer, "node of the call tree", "calls.id"},
    Column{"metric", integer, "metric that is counted; there are no rows of cost 0", "metrics.id"},
    Column{"self", integer, "cost of the path's last function"},
    Column{"inclusive", integer, "cost with all nodes below"},
};
void call_costs_rows(const Answers& a, const RowSink& sink) {
    for (std::size_t m = 0; m < a.metrics.size(); ++m) {
        const std::vector<std::uint64_t> sums = answers::inclusive_costs(a, m);
        for (std::size_t i = 0; i < a.calls.size(); ++i)
            if (sums[i] != 0)
                put_row(sink, {number(i), number(m), number(cost_of(a.calls[i].self, m)), number(sums[i])});
    }
}

constexpr std::array code_table_list{
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
    TableInfo{"edge_costs", "what passed in calls and tail calls, by metric", edge_costs_columns, false,
              edge_costs_rows},
    TableInfo{"blocks", "code that ran from end to end without a taken branch; blocks overlap", blocks_columns, false,
              blocks_rows},
    TableInfo{"loops", "code that was repeated", loops_columns, false, loops_rows},
    TableInfo{"calls", "the call tree: a row for each path of calls", calls_columns, true, calls_rows},
    TableInfo{"call_costs", "cost of paths of calls, by metric", call_costs_columns, false, call_costs_rows},
};

}  // namespace

std::span<const TableInfo> code_tables() { return code_table_list; }

}  // namespace waymark::exports
