/// The views of a report, and the reasons for missing ones.
import type { ViewId } from "../ui/state";
import type { Head } from "./wire";

export interface ViewInfo {
    id: ViewId;
    name: string;
    /// Why the view is missing; undefined if it is available.
    absent?: string;
}

function reason(head: Head, ofFlow: string, ofSamples: string, ofCounters: string, ofMessages?: string): string {
    if (head.unit === "ITM" || head.unit === "STM") return ofMessages ?? ofFlow;
    return head.unit === "SPE" ? ofSamples : head.unit === "DPU" ? ofCounters : ofFlow;
}

export function viewsOf(head: Head): ViewInfo[] {
    const { has } = head;
    const info = (id: ViewId, name: string, there: boolean, why: string): ViewInfo =>
        there ? { id, name } : { id, name, absent: why };
    const nothing =
        head.unit !== "SPE" && head.unit !== "DPU" && has.instructions === 0
            ? "No program image was known: give one with --image."
            : "Nothing was decoded that could be shown here.";
    const messages = "Messages do not show the flow of a program.";
    const blind = nothing.startsWith("No program");
    return [
        { id: "summary", name: "Summary" },
        ...(has.against > 0 ? [{ id: "against" as const, name: "Difference" }] : []),
        info("calls", "Flame graph", has.calls > 1 && !blind, reason(head, nothing, "Samples do not show who called whom.",
            "Only the modes that count at each call and return show who called whom.", messages)),
        info("timeline", "Timeline", has.slices + has.marks + has.series > 0, reason(head, nothing,
            "The samples carry no time.", "The trace has no entries to place in time.")),
        info("steps", "Steps", has.steps > 0, reason(head, blind ? nothing : "The report holds no order of execution: answers files have sums, and --steps 0 leaves it out.",
            "Samples are single operations, without what ran between them.", "Counters do not show the order of instructions.", messages)),
        info("functions", "Functions", head.functions.name.length > 0 && !blind, nothing),
        info("code", "Source and code", has.instructions + has.lines > 0, reason(head,
            "No program image was known: give one with --image.", "No sample lies in a file that was found: see --symfs.",
            "Counters are of functions and tasks, not of single instructions.")),
        info("coverage", "Coverage", has.coverage > 0, reason(head, blind ? nothing : "No program flow was decoded in a known program.",
            "Samples do not show that code did not run.", "Counters do not show that code did not run.", messages)),
        info("branches", "Branches", has.branches > 0, reason(head, blind ? nothing : "No branch was seen in code that is known.",
            "No branch was sampled: record with branch_filter=1 or without a filter.", "Counters do not show outcomes of branches.", messages)),
        info("blocks", "Blocks", has.blocks > 0, reason(head, nothing,
            "Samples are of single operations, not of blocks.", "Counters are not of single instructions.", messages)),
        info("loops", "Loops", head.loops.head.length > 0, reason(head, blind ? nothing : "No loop was seen.",
            "Samples do not count the entries of a loop.", "Loops are recorded in the compressed mode.", messages)),
        info("exceptions", "Exceptions", head.exceptions.length > 0, reason(head, "No exception was traced.",
            "Samples do not show exceptions.", "No interrupt was traced.")),
        info("charts", "Charts", head.charts.length > 0, reason(head,
            "Only samples of SPE have latencies and data sources.", "No sample has a latency or a data source.",
            "This unit has no histograms.")),
        info("tables", "Tables", head.tables.length > 0, reason(head, "All results of program flow are in the other views.",
            "No table belongs to these samples.", "No task was traced.")),
    ];
}
