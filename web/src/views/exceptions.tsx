/// Exceptions and interrupts: how many, how long they took, and each of them.
import { useMemo } from "preact/hooks";

import { markKinds, type Timeline } from "../data/model";
import { Loading, useLoaded, ViewHead } from "../ui/parts";
import { RangeBar, selectedRange, WholeNote } from "../ui/range";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, timeText } from "../ui/text";
import { aroundMoment } from "./timeline";

export function ExceptionsView(props: ViewProps) {
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
    const number: Column = { id: "number", name: "Number", number: true, width: "90px", value: (i) => exceptions[i]!.number };
    const columns = useMemo<Column[]>(
        () => [
            { id: "name", name: "Exception", width: "minmax(160px, 2fr)", value: (i) => exceptions[i]!.name },
            ...(numbered ? [number] : []),
            { id: "times", name: "Taken", number: true, width: "100px", value: (i) => exceptions[i]!.times },
            { id: "nested", name: "Nested", title: "Taken while another was handled", number: true, width: "90px", value: (i) => exceptions[i]!.nested },
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
            <WholeNote place={props.place} what="These figures are" />
            <DataTable label="Exceptions" columns={columns} rows={exceptions.map((_, i) => i)} sort={{ by: "times", down: true }} />
            {has.marks > 0 && <Each {...props} />}
        </>
    );
}

/// The exceptions on the timeline, one by one.
function Each(props: ViewProps) {
    const loaded = useLoaded(() => props.report.timeline());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the timeline" error={loaded} />;
    return <Moments {...props} timeline={loaded} />;
}

function Moments({ go, place, keep, timeline }: ViewProps & { timeline: Timeline }) {
    const { marks } = timeline;
    const { texts, tracks, axis } = timeline.part;
    const exception = markKinds.indexOf("exception");
    const all = useMemo(() => marks.kind.map((_, i) => i).filter((i) => marks.kind[i] === exception), []);
    const range = selectedRange(timeline, place);
    const rows = useMemo(() => (range ? all.filter((i) => marks.begin[i]! >= range.from && marks.begin[i]! < range.to) : all), [place.range]);
    const columns = useMemo<Column[]>(
        () => [
            { id: "at", name: "At", number: true, width: "150px", value: (i) => marks.begin[i]!, show: (i) => timeText(marks.begin[i]!, axis.unit, axis.ticksPerSecond) },
            { id: "what", name: "Exception", width: "minmax(160px, 2fr)", value: (i) => texts[marks.text[i]!] ?? "" },
            { id: "track", name: "Track", width: "minmax(120px, 1fr)", value: (i) => tracks.name[marks.track[i]!] ?? "" },
        ],
        [],
    );
    if (all.length === 0) return null;
    return (
        <section class="below" aria-labelledby="each">
            <h2 id="each">When each was taken</h2>
            <RangeBar timeline={timeline} place={place} keep={keep} />
            <p class="note">
                {range ? `${counted(rows.length, "exception")} in the range. ` : ""}A row opens the timeline there.
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
