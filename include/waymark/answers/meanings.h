/// Meanings of columns that several tables have: the views (`--format tsv`, docs/columns.md), the exports (CSV, SQLite,
/// docs/sqlite-schema.md) and the answers file (docs/answers-file.md). The meaning of a column in a single table is
/// written beside that column. tests/columns_test.py compares the documents.
#pragma once

namespace waymark::answers::meaning {

using Meaning = const char*;

// Names and places.
inline constexpr Meaning file_path = "path of the source file", source_line = "line in the source file",
                         line_of_file = "line in the source file, behind the last part of the file's path",
                         first_line = "line at which the function, or the loop, begins",
                         enclosing_function = "function that contains it",
                         place = "function that contains it, and the distance from the function's beginning",
                         image = "program, library or memory dump that contains it",
                         image_name = "name of the program, library or memory dump, without its folder",
                         opened_path = "path of the file that was opened",
                         debug_path = "path of the source file, as the debug information has it",
                         linkage_name = "name in the symbol table", figure_name = "name of the figure",
                         figure_value = "value of the figure, as it is printed", bytes = "length in bytes",
                         disassembly = "disassembled instruction",
                         instruction_set = "instruction set: A32, T32, TEE, Jazelle or A64",
                         build_id = "build ID in hexadecimal digits";

inline constexpr Meaning function_name = "name of the function, or of the task, interrupt or gap",
                         function_address = "address of the function's first instruction, as traced",
                         synthetic = "1: not program code, but a task, an interrupt or a gap",
                         instruction_address = "address of the instruction, as traced",
                         block_address = "address of the block's first instruction";

// What ran.
inline constexpr Meaning executed_times = "times it was executed, where flow is known",
                         most_executed = "executions of the line's most often executed instruction",
                         ran_times = "times it ran",
                         seen = "executed; not executed; or not observed: it was not seen, but may have run unobserved",
                         block_instructions = "number of instructions in the block";

// Branches.
inline constexpr Meaning branch_address = "address of the branch", branch_target = "target of a direct branch",
                         branch_kind = "conditional, unconditional, call, indirect, indirect call or return",
                         taken = "times the branch was taken", not_taken = "times the branch was not taken",
                         seen_outcome = "executed, not executed or not observed",
                         mispredicted =
                             "samples in which the branch was mispredicted; unknown where the trace does not say it";

// Loops.
inline constexpr Meaning loop_head = "first instruction of the loop, to which its back edges lead",
                         loop_tail = "last instruction that leads back to the head",
                         loop_entries = "times control entered the loop from outside, or trace began anew at its entry",
                         loop_iterations = "times the loop's head ran",
                         loop_depth = "number of loops it lies in, itself included; 1: the outermost",
                         loop_outer = "head of the loop directly around it",
                         irreducible = "1: control enters the loop at several places, and `head` is one of them";

// Calls and costs.
inline constexpr Meaning calls_of_function = "times the function was called; unknown where samples were taken",
                         with_callees = "cost with the cost of all functions called, recursion counted once",
                         metric_name = "instructions, cycles, samples, or the event of a counter",
                         unit_of_values = "unit of the values";

// Exceptions and levels.
inline constexpr Meaning exception_name = "name of the exception",
                         exception_number = "number of the exception in the architecture",
                         exception_times = "times the exception was taken",
                         nested = "times it was taken while another exception was handled",
                         returned = "times its return is in the trace; the columns of times are about these",
                         least_time = "shortest time from entry to return; unknown where the handler was not traced",
                         most_time = "longest time from entry to return; unknown where the handler was not traced",
                         sum_of_times =
                             "sum of the times from entry to return; unknown where the handler was not traced",
                         unit_of_times = "unit of the times: instructions or cycles",
                         level = "exception level: EL0 to EL3, or Hyp; unknown where the trace does not carry it",
                         security = "security state: Secure, Non-secure, Root or Realm", state = "AArch64 or AArch32",
                         level_entered = "times execution changed to the level";

// Time.
inline constexpr Meaning track_name = "name of the core, thread or task",
                         merged = "number of slices that it represents",
                         finest = "slices shorter than this were merged; 0: none were";

inline constexpr Meaning slice_depth = "number of slices around it";

// Columns of the account (docs/account.md).
inline constexpr Meaning account_of = "protocol or image", account_times = "number of stretches",
                         account_bytes = "bytes of trace", account_instructions = "instructions that ran",
                         account_ranges =
                             "executions of blocks; of `no address`: waypoints; of `uncommitted`: P0 elements",
                         account_records = "samples of SPE, readings of a DPU",
                         trace_bytes = "size of the trace in bytes",
                         cut = "1: the capture could not be read to its end; `health` says why",
                         finding = "finding, as a sentence",
                         trust_view = "view with the figures: functions, timeline, coverage, tasks, …",
                         trust_exact = "figures that are exact; empty: none",
                         trust_estimated = "figures that are estimates",
                         trust_not_known = "what the capture does not contain, and how it would be recorded",
                         remedy = "what to do about it", remark = "remark to read with it",
                         version = "version of Waymark that made the file";

}  // namespace waymark::answers::meaning
