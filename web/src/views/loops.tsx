/// Loops, by cost or by number of iterations.
import { useMemo } from "preact/hooks";

import { addresses } from "../data/decode";
import { matcher } from "../data/search";
import { MetricChoice, Name, Search, Share, ViewHead } from "../ui/parts";
import { RangeBar, RanNote, useRan, WholeNote } from "../ui/range";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, hex, full } from "../ui/text";
import { OwnChoice, ownOnly } from "./coverage";
import { placeText } from "./functions";

export function LoopsView({ report, metric, setMetric, go, place, keep }: ViewProps) {
    const { head } = report;
    const { loops } = head;
    const part = useRan({ report, place });
    const hardware = head.unit === "DPU";
    const query = place.query ?? "";
    const own = ownOnly(report, place);
    const setQuery = (query: string) => keep({ query });
    const first = useMemo(() => addresses(loops.head), []);
    const last = useMemo(() => addresses(loops.tail), []);
    const total = useMemo(() => (head.functions.self[metric] ?? []).reduce((sum, c) => sum + c, 0), [metric]);
    const rows = useMemo(() => {
        const is = matcher(query);
        return loops.function
            .map((_, i) => i)
            .filter((i) => part === undefined || part.ran.times.has(first[i]!))
            .filter((i) => !own || head.functions.own[loops.function[i]!] === 1)
            .filter((i) => is === undefined || is(`${report.functionName(loops.function[i]!)} ${placeText(report, loops.source[i]!, loops.line[i]!)} ${hex(first[i]!)}`));
    }, [query, own, part]);
    const columns = useMemo<Column[]>(() => {
        const out: Column[] = [
            {
                id: "function",
                name: "In function",
                width: "minmax(150px, 2fr)",
                value: (i) => report.functionName(loops.function[i]!),
                show: (i) => <Name name={report.functionName(loops.function[i]!)} />,
            },
            {
                id: "place",
                name: "Loop",
                title: "Its head; an irreducible one is entered at several places",
                width: hardware ? "minmax(200px, 1.5fr)" : "minmax(130px, 1.5fr)",
                value: (i) => first[i]!,
                show: (i) => {
                    const place = placeText(report, loops.source[i]!, loops.line[i]!);
                    const shown = place || (hardware ? `${hex(first[i]!)} – ${hex(last[i]!)}` : hex(first[i]!));
                    return <span class="mono" title={place}>{loops.irreducible[i] ? `${shown} (irreducible)` : shown}</span>;
                },
            },
            hardware
                ? { id: "entries", name: "Runs", title: "Runs of the hardware loop; an interrupt cuts one in two", number: true, width: "110px", value: (i) => loops.entries[i]! }
                : { id: "entries", name: "Entries", title: "Times it was entered", number: true, width: "110px", value: (i) => loops.entries[i]! },
            {
                id: "iterations",
                name: "Iterations",
                title: hardware ? "Times its body ran" : "Times its head ran",
                number: true,
                width: "120px",
                value: (i) => (part === undefined ? loops.iterations[i]! : (part.ran.times.get(first[i]!) ?? 0)),
            },
            {
                id: "mean",
                name: "Each",
                title: hardware ? "Iterations of a run, on average" : "Iterations of an entry, on average",
                number: true,
                width: "90px",
                value: (i) => (loops.entries[i]! > 0 ? loops.iterations[i]! / loops.entries[i]! : 0),
                show: (i) => (loops.entries[i]! > 0 ? grouped(loops.iterations[i]! / loops.entries[i]!) : "–"),
            },
        ];
        if (!hardware)
            out.push({ id: "depth", name: "Depth", title: "1: in no other loop", number: true, width: "80px", value: (i) => loops.depth[i]! });
        const costs = loops.costs[metric];
        if (costs?.some((c) => c > 0))
            out.push({
                id: "cost",
                name: head.metrics[metric]?.name ?? "Cost",
                title: "Of all its instructions",
                number: true,
                width: "minmax(180px, 1.4fr)",
                value: (i) => costs[i] ?? 0,
                show: (i) => (
                    <span class="with-share">
                        <span>{full(costs[i] ?? 0)}</span> <Share part={costs[i] ?? 0} whole={total} />
                    </span>
                ),
            });
        // For a part of the run, only the executions of heads are known.
        return part === undefined ? out : out.filter((c) => !["entries", "mean", "cost"].includes(c.id));
    }, [metric, part]);
    return (
        <>
            <ViewHead title="Loops" note={`Natural loops; everything that leads back to one head is one loop. Loops within others count in both. A row leads to the code${head.has.steps > 0 ? ", and from there to each iteration" : ""}.`}>
                <Search label="Search loops" value={query} onInput={setQuery} note={query === "" ? "" : counted(rows.length, "loop")} />
                <OwnChoice report={report} place={place} keep={keep} />
                <MetricChoice metrics={head.metrics} value={metric} onChange={setMetric} />
            </ViewHead>
            {part === undefined ? <WholeNote place={place} what="Loops are" /> : (
                <>
                    <RangeBar timeline={part.timeline} place={place} keep={keep} />
                    <RanNote {...part} what="iterations of loops that ran in it. Entries and costs are known for the whole capture." />
                </>
            )}
            <DataTable
                label="Loops"
                columns={columns}
                rows={rows}
                sort={{ by: columns.some((c) => c.id === "cost") ? "cost" : "iterations", down: true }}
                open={(i) => go({ view: "code", function: loops.function[i]! >= 0 ? loops.function[i] : undefined, address: first[i] })}
            />
        </>
    );
}
