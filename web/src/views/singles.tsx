/// The single calls of a function: how long each took, and where they are on the timeline.
import { useMemo, useState } from "preact/hooks";

import type { Report, Timeline } from "../data/model";
import { allExceptions, type Call, callsOf, durations, explained, histogram, ownCode, type Range } from "../data/range";
import { Name } from "../ui/parts";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, timeText } from "../ui/text";
import { aroundMoment } from "./timeline";

/// A slice by its row, beginning and depth, not by its number: a link stays right when the report is written again.
export const pickOf = (timeline: Timeline, slice: number) => `${timeline.track[slice]}:${timeline.begin[slice]}:${timeline.part.slices.depth[slice]}`;
export function picked(timeline: Timeline, pick: string | undefined): number {
    const found = /^(\d+):(\d+):(\d+)$/.exec(pick ?? "");
    if (!found) return -1;
    const [track, begin, depth] = found.slice(1).map(Number) as [number, number, number];
    const lane = timeline.lanes[track]?.[depth];
    const at = lane ? lane.begin.indexOf(begin) : -1;
    return at < 0 ? -1 : lane!.slice[at]!;
}

export function SingleCalls({ report, timeline, f, range, go }: { report: Report; timeline: Timeline; f: number; range: Range | undefined; go: ViewProps["go"] }) {
    const { axis, bound, resolution } = timeline.part;
    const [callees, setCallees] = useState(true);
    const [interrupts, setInterrupts] = useState(true);
    const [bar, setBar] = useState(-1);
    const { all, merged } = useMemo(() => {
        const { calls, merged } = callsOf(timeline, f, { callees, interrupts });
        const begins = (c: Call) => timeline.begin[c.slice]!;
        return { merged, all: range ? calls.filter((c) => begins(c) >= range.from && begins(c) < range.to) : calls };
    }, [f, callees, interrupts, range?.from, range?.to]);
    const why = useMemo(() => explained(timeline, f, { callees, interrupts }, all), [all]);
    const whyText = (c: Call) => {
        const found = why.get(c.slice);
        if (!found) return "";
        return `${found.part === ownCode ? "own code" : found.part === allExceptions ? "exceptions" : report.functionName(found.part)} +${grouped(found.more)}`;
    };
    const { sorted, buckets, figures } = useMemo(() => {
        const sorted = all.filter((c) => c.whole).map((c) => c.length).sort((a, b) => a - b);
        return { sorted, buckets: sorted.length > 0 ? histogram(sorted) : [], figures: sorted.length > 0 ? durations(sorted) : undefined };
    }, [all]);
    const time = (t: number) => timeText(t, axis.unit, axis.ticksPerSecond);
    const rows = useMemo(() => {
        const bucket = buckets[bar];
        return all.map((_, i) => i).filter((i) => bucket === undefined || (all[i]!.whole && all[i]!.length >= bucket.first && all[i]!.length <= bucket.last));
    }, [all, bar]);
    const columns = useMemo<Column[]>(
        () => [
            { id: "length", name: "Took", number: true, width: "minmax(110px, 150px)", value: (i) => all[i]!.length, show: (i) => time(all[i]!.length) },
            { id: "bound", name: "Bound", width: "90px", value: (i) => (all[i]!.whole ? bound : "at least") },
            { id: "begin", name: "Began at", number: true, width: "minmax(110px, 150px)", value: (i) => timeline.begin[all[i]!.slice]!, show: (i) => time(timeline.begin[all[i]!.slice]!) },
            { id: "why", name: "Longer in", title: `Of the 100 slowest: the part of the call whose length exceeds its average over the whole calls most, in ${axis.unit}`, width: "minmax(120px, 2fr)", value: (i) => whyText(all[i]!) },
            ...(new Set(all.map((c) => timeline.track[c.slice])).size > 1 ? [{ id: "track", name: "Track", width: "minmax(110px, 1fr)", value: (i: number) => timeline.part.tracks.name[timeline.track[all[i]!.slice]!] ?? "" }] : []),
            { id: "caller", name: "Called by", width: "minmax(120px, 2fr)", value: (i) => (all[i]!.caller < 0 ? "" : report.functionName(all[i]!.caller)), show: (i) => (all[i]!.caller < 0 ? <span class="quiet">not known</span> : <Name name={report.functionName(all[i]!.caller)} most={40} />) },
        ],
        [all],
    );
    if (bound === "") return null;
    const jump = (call: Call) => {
        const { slice } = call;
        const end = timeline.begin[slice]! + timeline.length[slice]!;
        go({ view: "timeline", ...aroundMoment(timeline, timeline.begin[slice]!, end), pick: pickOf(timeline, slice) });
    };
    if (all.length === 0)
        return (
            <section class="singles" aria-label="Single calls">
                <h3>Single calls</h3>
                <p class="quiet">
                    {merged > 0 ? `No call is on the timeline alone: ${counted(merged, "call")} shorter than ${time(resolution)} are merged.` : `No single call of the function is on the timeline${range ? " in the range" : ""}.`}
                </p>
            </section>
        );
    const most = buckets.reduce((m, b) => Math.max(m, b.calls), 1);
    return (
        <section class="singles" aria-label="Single calls">
            <h3>
                Single calls <span class="quiet">{counted(all.length, "call")} on the timeline{range ? ", begun in the range" : ""}, {grouped(sorted.length)} whole{bound === "exact" ? "" : " as far as is known"}</span>
            </h3>
            <div class="tools">
                <button type="button" class="button small" aria-pressed={callees} onClick={() => (setCallees(!callees), setBar(-1))}>With callees</button>
                <button type="button" class="button small" aria-pressed={interrupts} onClick={() => (setInterrupts(!interrupts), setBar(-1))}>With interrupts</button>
                <button type="button" class="button small" onClick={() => jump(all[0]!)}>Slowest on the timeline</button>
            </div>
            {figures && (
                <dl class="facts durations" data-unit={axis.unit} data-figures={[figures.least, figures.median, figures.p95, figures.p99, figures.most].join()}>
                    {(["least", "median", "p95", "p99", "most"] as const).map((name) => (
                        <div key={name}>
                            <dt>{name}</dt>
                            <dd>{time(figures[name])}</dd>
                        </div>
                    ))}
                    <div>
                        <dt>figures</dt>
                        <dd>{bound}</dd>
                    </div>
                </dl>
            )}
            {merged > 0 && <p class="note">{counted(merged, "call")} shorter than {time(resolution)} {merged === 1 ? "is" : "are"} merged, and not among these.</p>}
            {buckets.length > 1 && (
                <ul class="histogram" aria-label="How long calls took">
                    {buckets.map((b, i) => (
                        <li key={b.first}>
                            <button type="button" aria-pressed={i === bar} disabled={b.calls === 0} onClick={() => setBar(i === bar ? -1 : i)} data-first={b.first} data-calls={b.calls}>
                                <span class="number">{grouped(b.first)} to {grouped(b.last)}</span>
                                <span class="histogram-bar" aria-hidden="true">
                                    {b.calls > 0 && <span style={{ width: `${(100 * b.calls) / most}%` }} />}
                                </span>
                                <span class="number">{counted(b.calls, "call")}</span>
                            </button>
                        </li>
                    ))}
                </ul>
            )}
            <p class="note">
                {buckets[bar] ? `Calls of ${grouped(buckets[bar]!.first)} to ${grouped(buckets[bar]!.last)} ${axis.unit}.` : "All of them, the slowest first."} A row shows the call on the timeline.
                {bound === "at least" && " At least: code may have run within calls that the trace lacks, such as handlers; the summary says which."}
                {bound === "estimate" && " Estimates: between two timestamps, or where trace is missing, times are interpolated."}
            </p>
            <DataTable label="Single calls" columns={columns} rows={rows} sort={{ by: "length", down: true }} open={(i) => jump(all[i]!)} height="min(40vh, 420px)" />
        </section>
    );
}

/// From the call that is selected on the timeline to slower and faster ones of the same function.
export function Slower({ timeline, slice, choose }: { timeline: Timeline; slice: number; choose: (slice: number) => void }) {
    const f = timeline.part.slices.function[slice]!;
    const calls = useMemo(() => callsOf(timeline, f, { callees: true, interrupts: true }).calls, [timeline, f]);
    const at = calls.findIndex((c) => c.slice === slice);
    if (timeline.part.bound === "" || f < 0 || at < 0 || calls.length < 2) return null;
    return (
        <>
            <button type="button" class="button" disabled={at === 0} onClick={() => choose(calls[0]!.slice)}>Slowest</button>
            <button type="button" class="button" disabled={at === 0} onClick={() => choose(calls[at - 1]!.slice)}>Next slower</button>
            <button type="button" class="button" disabled={at === calls.length - 1} onClick={() => choose(calls[at + 1]!.slice)}>Next faster</button>
            <span class="quiet" role="status">
                {grouped(at + 1)} of {counted(calls.length, "call")}, the slowest first
            </span>
        </>
    );
}
