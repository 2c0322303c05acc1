/// Small components shared by several views.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Metric, Trust } from "../data/wire";
import { Seen, seenWords } from "../data/model";
import { percent, shortened } from "./text";

/// A search box; the key `/` moves the focus to it.
/// `next`: what Enter does, and Shift-Enter backwards.
export function Search(props: { label: string; value: string; onInput: (value: string) => void; note?: string; next?: (step: 1 | -1) => void; title?: string }) {
    return (
        <label class="search">
            <span class="hidden">{props.label}</span>
            <input
                type="search"
                data-search
                placeholder={`${props.label}  ( / )`}
                title={`Words in any order, or a regular expression between slashes: /^str.*cpy$/.${props.title ? ` ${props.title}` : ""}${props.next ? " Enter: the next match; Shift-Enter: the previous one." : ""}`}
                value={props.value}
                onInput={(event) => props.onInput(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key === "Enter" && props.next) {
                        props.next(event.shiftKey ? -1 : 1);
                        event.preventDefault();
                    }
                    if (event.key !== "Escape") return;
                    if (props.value !== "") props.onInput("");
                    else event.currentTarget.blur();
                    event.stopPropagation();
                }}
            />
            <span class="search-note" role="status">
                {props.note ?? ""}
            </span>
        </label>
    );
}

export function Choice<T extends string | number>(props: {
    label: string;
    value: T;
    options: { value: T; name: string; title?: string }[];
    onChange: (value: T) => void;
}) {
    return (
        <label class="choice">
            <span>{props.label}</span>
            <select
                value={String(props.value)}
                onChange={(event) => {
                    const chosen = props.options.find((o) => String(o.value) === event.currentTarget.value);
                    if (chosen) props.onChange(chosen.value);
                }}
            >
                {props.options.map((o) => (
                    <option key={String(o.value)} value={String(o.value)} title={o.title}>
                        {o.name}
                    </option>
                ))}
            </select>
        </label>
    );
}

/// A group of buttons, one of which is pressed.
export function Segments<T extends string>(props: {
    label: string;
    value: T;
    options: { value: T; name: string; title?: string }[];
    onChange: (value: T) => void;
}) {
    return (
        <div class="segments" role="group" aria-label={props.label}>
            {props.options.map((o) => (
                <button
                    key={o.value}
                    type="button"
                    title={o.title}
                    aria-pressed={o.value === props.value}
                    onClick={() => props.onChange(o.value)}
                >
                    {o.name}
                </button>
            ))}
        </div>
    );
}

export function MetricChoice(props: { metrics: Metric[]; value: number; onChange: (metric: number) => void }) {
    if (props.metrics.length < 2) return null;
    return (
        <Choice
            label="Metric"
            value={props.value}
            options={props.metrics.map((m, i) => ({ value: i, name: m.figures === "exact" ? m.name : `${m.name} (${m.figures})`, title: m.note }))}
            onChange={props.onChange}
        />
    );
}

/// A name shortened in the middle; the tooltip has the whole name.
export function Name(props: { name: string; most?: number }) {
    return (
        <span class="name" title={props.name}>
            {shortened(props.name, props.most ?? 56)}
        </span>
    );
}

/// A share of a whole, as a bar and a number.
export function Share(props: { part: number; whole: number }) {
    const share = props.whole > 0 ? Math.min(1, props.part / props.whole) : 0;
    return (
        <span class="share">
            <span class="share-bar" aria-hidden="true">
                <span style={{ width: `${100 * share}%` }} />
            </span>
            <span class="share-number">{percent(props.part, props.whole)}</span>
        </span>
    );
}

/// Executed, not executed or not observed: a shape, and a word for screen readers.
export function SeenMark(props: { seen: number }) {
    return <span class={`seen seen-${props.seen}`} role="img" aria-label={seenWords[props.seen] ?? ""} title={seenWords[props.seen]} />;
}

export function SeenLegend(props: { heat?: string }) {
    return (
        <ul class="legend" aria-label="Coverage">
            {[Seen.executed, Seen.notExecuted, Seen.notObserved].map((seen) => (
                <li key={seen}>
                    <SeenMark seen={seen} />
                    {seenWords[seen]}
                    {seen === Seen.notObserved && <span class="quiet"> (it was not seen, but may have run unobserved)</span>}
                </li>
            ))}
            {props.heat !== undefined && (
                <li>
                    <span class="heat-scale" aria-hidden="true" />
                    few to many {props.heat}
                </li>
            )}
        </ul>
    );
}

/// How far figures can be trusted, in sentences.
export function TrustList(props: { trust: Trust[]; named?: boolean }) {
    if (props.trust.length === 0) return null;
    return (
        <dl class="trust">
            {props.trust.map((t) => (
                <div key={t.view}>
                    <dt class={props.named ? "" : "hidden"}>{t.view}</dt>
                    {([["exact", t.exact], ["estimated", t.estimated], ["not known", t.notKnown]] as const).map(
                        ([word, what]) =>
                            what !== "" && (
                                <dd key={word}>
                                    <span class={`chip ${word.replace(" ", "-")}`}>{word}</span> {what}
                                </dd>
                            ),
                    )}
                </div>
            ))}
        </dl>
    );
}

async function toClipboard(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // Browsers may deny the clipboard to files; the old API works after a key press or click.
        const area = document.createElement("textarea");
        area.value = text;
        area.className = "hidden";
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy");
        area.remove();
        return done;
    }
}

/// A button that copies text and confirms it.
export function Copy(props: { text: () => string; what: string; small?: boolean }) {
    const [said, setSaid] = useState("");
    useEffect(() => {
        if (said === "") return;
        const timer = window.setTimeout(() => setSaid(""), 1600);
        return () => window.clearTimeout(timer);
    }, [said]);
    return (
        <button
            type="button"
            class={`button copy${props.small ? " small" : ""}`}
            onClick={async (event) => {
                const button = event.currentTarget;
                const done = await toClipboard(props.text());
                button.focus();
                setSaid(done ? "Copied" : "This browser does not let files copy");
            }}
        >
            <span aria-live="polite">{said || props.what}</span>
        </button>
    );
}

/// The result of a promise, or why it failed.
export function useLoaded<T>(load: () => Promise<T>): T | Error | undefined {
    const [value, setValue] = useState<T | Error | undefined>(undefined);
    useEffect(() => {
        let wanted = true;
        load().then(
            (v) => wanted && setValue(v),
            (e: unknown) => wanted && setValue(e instanceof Error ? e : new Error(String(e))),
        );
        return () => {
            wanted = false;
        };
    }, []);
    return value;
}

export function Loading(props: { what: string; error?: Error }) {
    if (props.error)
        return (
            <p class="empty" role="alert">
                {props.what} cannot be read: {props.error.message}
            </p>
        );
    return (
        <p class="empty" role="status">
            Reading {props.what}…
        </p>
    );
}

/// A heading, the controls of the whole view beside it, and a note.
export function ViewHead(props: { title: string; note?: string; children?: ComponentChildren }) {
    return (
        <div class="view-head">
            <h1 tabIndex={-1}>{props.title}</h1>
            {props.note && <p class="note">{props.note}</p>}
            {props.children && <div class="tools">{props.children}</div>}
        </div>
    );
}
