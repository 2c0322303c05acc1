/// Exceptions and interrupts: how many, how long they took, and each of them.
import { useMemo } from "preact/hooks";

import { sliceAt } from "../data/lod";
import { markKinds, type Timeline } from "../data/model";
import { matcher } from "../data/search";
import { Loading, Search, useLoaded, ViewHead } from "../ui/parts";
import { RangeBar, selectedRange, WholeNote } from "../ui/range";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, timeText } from "../ui/text";
import { aroundMoment } from "./timeline";

export function ExceptionsView(props: ViewProps) {
    const { place, keep } = props;
    const { exceptions, has } = props.report.head;
    // A handler that was not traced has no time.
    const timed = (row: number) => exceptions[row]!.returned > 0 && exceptions[row]!.sum > 0;
    const mean = (i: number) => (exceptions[i]!.returned > 0 ? exceptions[i]!.sum / exceptions[i]!.returned : 0);
    const units = [...new Set(exceptions.map((e) => e.unit))];
    // A unit that all have is in the note above; the columns have no room for long ones.
    const time = (value: number, row: number) => {
        if (!timed(row)) return "–";
        const { unit } = exceptions[row]!;
        return units.length === 1 && unit !== "ns" ? grouped(Math.round(value)) : timeText(Math.round(value), unit);
    };
    const numbered = exceptions.some((e) => e.number !== 0);
    const number: Column = { id: "number", name: "Number", number: true, width: "80px", value: (i) => exceptions[i]!.number };
    const columns = useMemo<Column[]>(
        () => [
            { id: "name", name: "Exception", width: "minmax(180px, 2fr)", value: (i) => exceptions[i]!.name },
            ...(numbered ? [number] : []),
            { id: "times", name: "Taken", number: true, width: "80px", value: (i) => exceptions[i]!.times },
            { id: "nested", name: "Nested", title: "Taken while another was handled", number: true, width: "80px", value: (i) => exceptions[i]!.nested },
            { id: "returned", name: "Returned", title: "Whose return was seen", number: true, width: "100px", value: (i) => exceptions[i]!.returned },
            { id: "least", name: "Shortest", number: true, value: (i) => exceptions[i]!.least, known: timed, show: (i) => time(exceptions[i]!.least, i) },
            { id: "mean", name: "Mean", number: true, value: mean, known: timed, show: (i) => time(mean(i), i) },
            { id: "most", name: "Longest", number: true, value: (i) => exceptions[i]!.most, known: timed, show: (i) => time(exceptions[i]!.most, i) },
            { id: "sum", name: "Sum", number: true, value: (i) => exceptions[i]!.sum, known: timed, show: (i) => time(exceptions[i]!.sum, i) },
        ],
        [],
    );
    return (
        <>
            <ViewHead
                title="Exceptions"
                note={`Times are from entry to return, in ${units.join(" or ")}. A dash: no return was seen, or the handler ran where nothing is traced.`}
            />
            <WholeNote place={place} what="These figures are" />
            <DataTable label="Exceptions" columns={columns} rows={exceptions.map((_, i) => i)} sort={{ by: "times", down: true }}
                selected={exceptions.findIndex((e) => e.name === place.query)}
                open={has.marks > 0 ? (i) => keep({ query: exceptions[i]!.name === place.query ? undefined : exceptions[i]!.name }, true) : undefined} />
            {has.marks > 0 && <Each {...props} />}
        </>
    );
}

/// The innermost function on a track just before a time; -1: none is known.
function runningAt(timeline: Timeline, track: number, at: number): number {
    const lanes = timeline.lanes[track] ?? [];
    for (let depth = lanes.length - 1; depth >= 0; --depth) {
        const slice = sliceAt(lanes[depth]!, at - 1, 0);
        if (slice < 0 || timeline.begin[slice]! >= at) continue;
        const f = timeline.part.slices.function[slice]!;
        const end = timeline.begin[slice]! + timeline.length[slice]!;
        // A handler that ends just there was not interrupted.
        if (end > at || (end === at && !timeline.part.handlers.includes(f))) return f;
    }
    return -1;
}

/// The exceptions on the timeline, one by one.
function Each(props: ViewProps) {
    const loaded = useLoaded(() => props.report.timeline());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the timeline" error={loaded} />;
    return <Moments {...props} timeline={loaded} />;
}

function Moments({ report, go, place, keep, timeline }: ViewProps & { timeline: Timeline }) {
    const { marks } = timeline;
    const { texts, tracks, axis } = timeline.part;
    const exception = markKinds.indexOf("exception");
    const all = useMemo(() => marks.kind.map((_, i) => i).filter((i) => marks.kind[i] === exception), []);
    const range = selectedRange(timeline, place);
    const what = (i: number) => texts[marks.text[i]!] ?? "";
    const query = place.query ?? "";
    const rows = useMemo(() => {
        const is = matcher(query);
        return all.filter((i) => (!range || (marks.begin[i]! >= range.from && marks.begin[i]! < range.to)) && (is === undefined || is(what(i))));
    }, [place.range, query]);
    // Of the same exception on the same track: the time that a periodic one should keep.
    const since = useMemo(() => {
        const last = new Map<string, number>();
        const out = new Map<number, number>();
        for (const i of [...all].sort((a, b) => marks.begin[a]! - marks.begin[b]!)) {
            const key = `${marks.track[i]} ${what(i)}`;
            const before = last.get(key);
            if (before !== undefined) out.set(i, marks.begin[i]! - before);
            last.set(key, marks.begin[i]!);
        }
        return out;
    }, []);
    const time = (value: number) => timeText(value, axis.unit, axis.ticksPerSecond);
    const inFunction = useMemo(() => new Map(all.map((i) => [i, runningAt(timeline, marks.track[i]!, marks.begin[i]!)] as const)), []);
    const within = all.some((i) => inFunction.get(i)! >= 0);
    const columns = useMemo<Column[]>(
        () => [
            { id: "at", name: "At", number: true, width: "150px", value: (i) => marks.begin[i]!, show: (i) => time(marks.begin[i]!) },
            { id: "since", name: "Since the last", title: "Time since the same exception was taken before, on the same track", number: true, width: "150px", value: (i) => since.get(i) ?? -1, known: (i) => since.has(i), show: (i) => (since.has(i) ? time(since.get(i)!) : "–") },
            { id: "what", name: "Exception", width: "minmax(120px, 1fr)", value: what },
            ...(within ? [{ id: "in", name: "Taken in", title: "The function that ran", width: "minmax(120px, 2fr)", value: (i: number) => (inFunction.get(i)! < 0 ? "" : report.functionName(inFunction.get(i)!)) }] : []),
            { id: "track", name: "Track", width: "minmax(120px, 1fr)", value: (i) => tracks.name[marks.track[i]!] ?? "" },
        ],
        [],
    );
    if (all.length === 0) return null;
    return (
        <section class="below" aria-labelledby="each">
            <h2 id="each">When each was taken</h2>
            <RangeBar timeline={timeline} place={place} keep={keep} />
            <div class="tools">
                <Search label="Search exceptions" value={query} onInput={(query) => keep({ query })} note={query === "" ? "" : counted(rows.length, "exception")} />
            </div>
            <p class="note">
                {range ? `${counted(rows.length, "exception")} in the range. ` : ""}A row opens the timeline there; a row of the table above shows that exception only.
            </p>
            <DataTable
                label="Each exception"
                columns={columns}
                rows={rows}
                sort={{ by: "at", down: false }}
                height="46vh"
                open={(i) => go({ view: "timeline", ...aroundMoment(timeline, marks.begin[i]!, marks.end[i]!) })}
            />
        </section>
    );
}
