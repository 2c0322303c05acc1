/// The selected range of the timeline, which the views share, and the ranges that are kept to compare.
import { useEffect, useMemo, useState } from "preact/hooks";

import type { Timeline } from "../data/model";
import { type InRange, lostIn, type Range, rangeOf, rangesOf, rangesText, rangeText, rangeWord } from "../data/range";
import { type Ran, ranIn, ranWord, type Stream } from "../data/steps";
import { useLoaded } from "./parts";
import { hashOf, type ViewProps } from "./state";
import { percent, timeText } from "./text";

/// The timeline, where there is one to select a range of.
export function useTimeline(report: ViewProps["report"]): Timeline | undefined {
    const loaded = useLoaded<Timeline | undefined>(() => (report.head.has.slices > 0 ? report.timeline() : Promise.resolve(undefined)));
    return loaded instanceof Error ? undefined : loaded;
}

/// The selected range; undefined: the whole timeline.
export function selectedRange(timeline: Timeline | undefined, place: ViewProps["place"]): Range | undefined {
    const range = timeline && rangeOf(place.range);
    if (!range || range.from >= timeline.part.axis.length) return undefined;
    return { from: range.from, to: Math.min(range.to, timeline.part.axis.length) };
}

/// Shows the selection, takes a typed range, and keeps several. `seen`: the visible part of the timeline.
export function RangeBar({ timeline, place, keep, seen }: Pick<ViewProps, "place" | "keep"> & { timeline: Timeline; seen?: Range }) {
    const { axis } = timeline.part;
    const range = selectedRange(timeline, place);
    const kept = rangesOf(place.ranges);
    const against = rangeOf(place.against);
    const [wrong, setWrong] = useState("");
    const whole = () => ({ from: String(range?.from ?? 0), to: String(range?.to ?? axis.length) });
    const [text, setText] = useState(whole);
    useEffect(() => setText(whole()), [place.range]);
    const time = (t: number) => timeText(t, axis.unit, axis.ticksPerSecond);
    const said = (r: Range) => `${time(r.from)} to ${time(r.to)}`;
    const select = (r: Range | undefined) => {
        setWrong("");
        keep({ range: r && rangeText(r), against: r === undefined ? undefined : place.against }, true);
    };
    const typed = () => {
        const r = rangeOf(`${text.from.replace(/[, ]/g, "")}-${text.to.replace(/[, ]/g, "")}`);
        if (r === undefined || r.from >= axis.length) setWrong(`A range is two whole numbers, the smaller one first, within 0 and ${axis.length}.`);
        else select(r);
    };
    return (
        <form class="range-bar" aria-label="Range of the timeline"
            onSubmit={(event) => {
                event.preventDefault();
                typed();
            }}>
            <span class="range-name">{range ? "Range" : "Whole timeline"}</span>
            <label>
                <span>from</span>
                <input name="from" inputMode="numeric" autocomplete="off" value={text.from} onInput={(event) => setText({ ...text, from: event.currentTarget.value })} />
            </label>
            <label>
                <span>to</span>
                <input name="to" inputMode="numeric" autocomplete="off" value={text.to} onInput={(event) => setText({ ...text, to: event.currentTarget.value })} />
            </label>
            <span class="quiet">{axis.unit}</span>
            <button type="submit" class="button small">Select</button>
            {seen && (
                <button type="button" class="button small" title="( r )" onClick={() => select({ from: Math.floor(seen.from), to: Math.ceil(seen.to) })}>
                    What is seen
                </button>
            )}
            {range && (
                <>
                    <button type="button" class="button small" onClick={() => select(undefined)}>Whole timeline</button>
                    {!kept.some((k) => rangeText(k) === rangeText(range)) && (
                        <button type="button" class="button small" onClick={() => keep({ ranges: rangesText([...kept, range]) }, true)}>Keep</button>
                    )}
                </>
            )}
            {kept.length > 0 && (
                <ul class="kept" aria-label="Ranges that are kept">
                    {kept.map((k) => {
                        const text = rangeText(k);
                        const is = range !== undefined && rangeText(range) === text;
                        return (
                            <li key={text}>
                                <button type="button" class="as-link" aria-pressed={is} onClick={() => select(k)}>{said(k)}</button>
                                {range && !is && (
                                    <button type="button" class="button small" aria-pressed={against !== undefined && rangeText(against) === text}
                                        onClick={() => keep({ against: place.against === text ? undefined : text }, true)}>
                                        Compare
                                    </button>
                                )}
                                <button type="button" class="button small" aria-label={`Forget ${said(k)}`} onClick={() => keep({ ranges: rangesText(kept.filter((o) => rangeText(o) !== text)) || undefined, against: place.against === text ? undefined : place.against }, true)}>
                                    ×
                                </button>
                            </li>
                        );
                    })}
                </ul>
            )}
            <span role="alert" class="wrong">{wrong}</span>
        </form>
    );
}

/// Which figures of a range are exact.
export function RangeNote({ timeline, range, part }: { timeline: Timeline; range: Range; part: InRange }) {
    const { axis, resolution } = timeline.part;
    const time = (t: number) => timeText(t, axis.unit, axis.ticksPerSecond);
    const word = rangeWord(timeline);
    const sentences: string[] = [];
    if (word === "as shown") sentences.push("These are the figures that the timeline shows for the range; the summary says which of them are exact.");
    else if (word === "exact") sentences.push("Every call is in this report, so the figures of the range are exact.");
    else if (word === "estimate") sentences.push(axis.uncertainty > 0 ? `Positions are off by at most ${time(axis.uncertainty)} for 95 % of what ran, so figures at the edges are estimates.` : "Times between timestamps are estimates.");
    else if (resolution === 0) sentences.push("A lower bound: trace may have been lost within calls.");
    if (resolution > 0)
        sentences.push(`Calls shorter than ${time(resolution)} are merged or left out: calls and totals are at least these, and what a function took itself may include what such calls took.` +
            (part.merged > 0 ? ` In the range they cover ${time(part.mergedLength)}.` : ""));
    if (part.lost > 0) sentences.push(`What ran in ${time(part.lost)} of the range is not known.`);
    const chip = word === "exact" ? "exact" : word === "estimate" ? "estimated" : "not-known";
    return (
        <p class="note range-note" role="status" data-word={word} data-known={part.known}>
            <span class={`chip ${chip}`}>{word !== "as shown" && resolution > 0 ? "at least" : word}</span> {time(range.from)} to {time(range.to)}, {percent(range.to - range.from, axis.length)} of the timeline. {sentences.join(" ")}
        </p>
    );
}

/// Which figures still concern the whole capture when a range is selected.
export function WholeNote({ place, what }: Pick<ViewProps, "place"> & { what: string }) {
    if (rangeOf(place.range) === undefined) return null;
    return (
        <p class="note whole-note">
            {what} of the whole capture, not of the selected range. <a href={hashOf({ view: "timeline" })}>The range on the timeline</a>
        </p>
    );
}

/// The execution in the selected range, instruction by instruction; undefined: no range is selected, or the report
/// holds no order of execution.
export function useRan({ report, place }: Pick<ViewProps, "report" | "place">): { ran: Ran; range: Range; timeline: Timeline; lost: boolean } | undefined {
    const timeline = useTimeline(report);
    const loaded = useLoaded<Stream[] | undefined>(() => (report.head.has.steps > 0 && report.head.has.slices > 0 ? report.steps().then((s) => s.streams) : Promise.resolve(undefined)));
    return useMemo(() => {
        const range = selectedRange(timeline, place);
        return timeline && range && loaded && !(loaded instanceof Error) ? { ran: ranIn(loaded, range.from, range.to), range, timeline, lost: lostIn(timeline, range) } : undefined;
    }, [timeline, loaded, place.range]);
}

/// Which counts of `useRan` are exact.
export function RanNote({ ran, range, timeline, what }: { ran: Ran; range: Range; timeline: Timeline; what: string }) {
    const { axis, bound } = timeline.part;
    const time = (t: number) => timeText(t, axis.unit, axis.ticksPerSecond);
    const word = ranWord(ran, bound);
    return (
        <p class="note range-note" role="status" data-word={word}>
            <span class={`chip ${word === "exact" ? "exact" : word === "estimate" ? "estimated" : "not-known"}`}>{word}</span> {time(range.from)} to {time(range.to)}: {what}
            {word === "at least" && " A lower bound."}
            {!ran.whole && " Not all of the range can be stepped through; report --steps takes in more."}
            {!ran.placed && " The report does not say where all instructions of the range lie, so the counts lack them; report --max-size takes in more."}
            {word === "at least" && ran.whole && ran.placed && " Calls or trace may be missing."}
            {!ran.counted && " The ends of the range lie between two places whose time is known."}
        </p>
    );
}
