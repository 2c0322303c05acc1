/// Where the page comes from a server: what part of the run it shows, and the way to others, each call of which is there.
import { useEffect, useState } from "preact/hooks";

import type { Served } from "../data/wire";
import { selectedRange, useTimeline } from "./range";
import type { ViewProps } from "./state";
import { grouped } from "./text";

/// The address of a window, without what is before its last `/`.
function windowAt(begin: number, end: number): string {
    return `window?from=${begin}&to=${end}`;
}

/// The selected range of the timeline, as a window.
function RangeLink({ report, place }: Pick<ViewProps, "report" | "place">) {
    const timeline = useTimeline(report);
    const range = selectedRange(timeline, place);
    if (!timeline || !range) return null;
    const { axis } = timeline.part;
    const zero = BigInt(axis.begin);
    return (
        <a class="button small" href={`window?from=${zero + BigInt(range.from)}&to=${zero + BigInt(range.to)}&unit=${axis.unit}`}>
            Selected range, each call
        </a>
    );
}

export function ServedBar({ report, place }: Pick<ViewProps, "report" | "place">) {
    const served = report.head.served!;
    const { begin, end, most } = served;
    const isWindow = end > begin;
    // `ended`: why nobody is asked any more though reading did not come to its end.
    const [known, setKnown] = useState<Pick<Served, "instructions" | "complete"> & { ended?: string }>(served);
    const [text, setText] = useState({ from: String(begin), to: String(isWindow ? end : Math.min(served.instructions, 1_000_000)) });
    const [wrong, setWrong] = useState("");
    useEffect(() => {
        if (known.complete || known.ended !== undefined) return;
        // Until all is read, the server is asked how far it is.
        const timer = setTimeout(async () => {
            try {
                const answer = await fetch("status");
                const now = (await answer.json()) as { instructions: number; complete: boolean; failed: string };
                if (now.failed !== "") setKnown({ instructions: now.instructions, complete: false, ended: `reading failed: ${now.failed}` });
                else setKnown({ instructions: now.instructions, complete: now.complete });
            } catch {
                setKnown({ ...known, ended: "the server has ended" });
            }
        }, 2000);
        return () => clearTimeout(timer);
    }, [known]);
    const length = end - begin;
    const link = (name: string, first: number, size: number) => {
        const from = Math.max(0, Math.min(Math.floor(first), known.instructions - 1));
        const to = Math.min(from + size, known.instructions);
        return from < to && !(from === begin && to === end) ? <a class="button small" href={windowAt(from, to)}>{name}</a> : null;
    };
    const typed = () => {
        const [from, to] = [text.from, text.to].map((t) => Number(t.replace(/[, ]/g, "")));
        if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from! < 0 || from! >= to! || to! - from! > most)
            setWrong(`A window is two whole numbers, the smaller one first, at most ${grouped(most)} apart.`);
        else location.assign(windowAt(from!, to!));
    };
    return (
        <form class="range-bar served" aria-label="Window of the run"
            onSubmit={(event) => {
                event.preventDefault();
                typed();
            }}>
            <span class="range-name">{isWindow ? `Window: instructions ${grouped(begin)} to ${grouped(end)}` : served.part ? "Beginning of the run" : "Whole run"}</span>
            {known.instructions > 0 && (
                <>
                    <label>
                        <span>from instruction</span>
                        <input name="window-from" inputMode="numeric" autocomplete="off" value={text.from} onInput={(event) => setText({ ...text, from: event.currentTarget.value })} />
                    </label>
                    <label>
                        <span>to</span>
                        <input name="window-to" inputMode="numeric" autocomplete="off" value={text.to} onInput={(event) => setText({ ...text, to: event.currentTarget.value })} />
                    </label>
                    <button type="submit" class="button small">Window</button>
                </>
            )}
            {isWindow && link("Earlier", begin - length, length)}
            {isWindow && link("Later", end, length)}
            {isWindow && link("Wider", begin - 1.5 * length, Math.min(4 * length, most))}
            {isWindow && <a class="button small" href="./">Whole run</a>}
            {known.instructions > 0 && place.range !== undefined && <RangeLink report={report} place={place} />}
            {served.part && <a class="button small" href="./">Load again</a>}
            <span class="quiet" role="status">
                {known.instructions > 0 && `${grouped(known.instructions)} instructions ${known.complete ? "in all" : known.ended === undefined ? "read so far" : "read"}`}
                {known.ended !== undefined && `${known.instructions > 0 ? "; " : ""}${known.ended}`}
            </span>
            <span role="alert" class="wrong">{wrong}</span>
        </form>
    );
}
