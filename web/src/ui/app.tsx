/// The frame around the views: their list, the theme, the keys.
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Report } from "../data/model";
import { viewsOf } from "../data/views";
import { AgainstView } from "../views/against";
import { BlocksView } from "../views/blocks";
import { BranchesView } from "../views/branches";
import { CallsView } from "../views/calls";
import { ChartsView } from "../views/charts";
import { CodeView } from "../views/code";
import { CoverageView } from "../views/coverage";
import { ExceptionsView } from "../views/exceptions";
import { FunctionsView } from "../views/functions";
import { LoopsView } from "../views/loops";
import { StepsView } from "../views/steps";
import { SummaryView } from "../views/summary";
import { TablesView } from "../views/tables";
import { TimelineView } from "../views/timeline";
import { hashOf, lasting, type Place, placeOf, texts, type ViewId, type ViewProps } from "./state";
import { ServedBar } from "./served";
import { fileName } from "./text";
import { setTheme, useTheme } from "./theme";

const views: Record<ViewId, ComponentType<ViewProps>> = {
    summary: SummaryView,
    against: AgainstView,
    calls: CallsView,
    timeline: TimelineView,
    steps: StepsView,
    functions: FunctionsView,
    code: CodeView,
    coverage: CoverageView,
    branches: BranchesView,
    blocks: BlocksView,
    loops: LoopsView,
    exceptions: ExceptionsView,
    charts: ChartsView,
    tables: TablesView,
};

const keys: [string, string][] = [
    ["/", "search in this view"],
    ["1 … 9", "go to a view of the list"],
    ["t", "light or dark"],
    ["?", "these keys"],
    ["Esc", "close, leave the search, zoom out"],
    ["↑ ↓ Page Home End", "walk a table or listing that has the focus (Tab, or a click); Enter opens the row"],
    ["← → ↑ ↓", "flame graph: to the calls beside, to the caller, to what it calls"],
    ["Enter, Backspace", "flame graph: zoom in, zoom out"],
    ["← →", "timeline: earlier, later"],
    ["+ −", "timeline: zoom in, zoom out; 0 shows all"],
    ["n p", "timeline: next and previous slice of the track"],
    ["r", "timeline: select the range that is seen"],
    ["g G", "timeline: next and previous gap"],
    ["↑ ↓", "timeline: to the caller of the slice, to what it calls"],
    ["→ ←", "steps: one instruction on, one back"],
    ["o O", "steps: over a call, back over a call"],
    ["u U", "steps: out of the function, back to its call"],
    ["a A", "steps: next and previous execution of this instruction"],
    ["l L", "steps: next and previous execution of this line"],
    ["e E", "steps: next and previous exception or gap"],
    ["Tab", "from one part to the next"],
];

function Keys(props: { close: () => void }) {
    const dialog = useRef<HTMLDialogElement>(null);
    useLayoutEffect(() => {
        dialog.current?.showModal();
    }, []);
    return (
        <dialog ref={dialog} class="keys" aria-labelledby="keys-title" onClose={props.close}>
            <h2 id="keys-title">Keys</h2>
            <dl>
                {keys.map(([key, what]) => (
                    <div key={key + what}>
                        <dt>{key}</dt>
                        <dd>{what}</dd>
                    </div>
                ))}
            </dl>
            <form method="dialog">
                <button type="submit" class="button">
                    Close
                </button>
            </form>
        </dialog>
    );
}

export function App({ report }: { report: Report }) {
    const { head } = report;
    const all = useMemo(() => viewsOf(head), [head]);
    const present = all.filter((v) => v.absent === undefined);
    const [place, setPlace] = useState<Place>(placeOf(location.hash));
    const [metric, showMetric] = useState(0);
    const [context, showContext] = useState(0);
    const [help, setHelp] = useState(false);
    const theme = useTheme();
    const main = useRef<HTMLElement>(null);
    const toggleTheme = () => setTheme(theme === "light" ? "dark" : "light");

    // The address as this page last read or wrote it. Another one is a navigation whose event is still to come.
    const address = useRef(location.hash);
    useEffect(() => {
        const moved = () => {
            address.current = location.hash;
            setPlace(placeOf(location.hash));
        };
        addEventListener("hashchange", moved);
        return () => removeEventListener("hashchange", moved);
    }, []);
    const here = useRef(place);
    here.current = place;
    const go = (to: Place) => {
        const kept: Partial<Place> = {};
        if (to.view === here.current.view) for (const key of texts) if (here.current[key] !== undefined) kept[key] = here.current[key]!;
        for (const key of lasting) if (here.current[key] !== undefined) kept[key] = here.current[key]!;
        location.hash = hashOf({ ...kept, ...to });
    };
    const keep = (change: Partial<Place>, step = false) => {
        const to = { ...here.current, ...change };
        if (hashOf(to) === hashOf(here.current) || location.hash !== address.current) return;
        here.current = to;
        setPlace(to);
        try {
            if (step) history.pushState(null, "", hashOf(to));
            else history.replaceState(null, "", hashOf(to));
            address.current = location.hash;
        } catch {
            // A browser may limit how often this may be called: the address is then updated later.
        }
    };
    // Metric and context are kept when the view changes; the history entry of the old view keeps their old values.
    const setMetric = (to: number) => {
        keep({ metric, context });
        keep({ metric: to, from: undefined, to: undefined }, true);
    };
    const setContext = (to: number) => {
        keep({ metric, context });
        keep({ context: to, from: undefined, to: undefined }, true);
    };
    useLayoutEffect(() => {
        if (place.metric !== undefined && place.metric < Math.max(1, head.metrics.length)) showMetric(place.metric);
        if (place.context !== undefined) showContext(place.context);
    }, [place.metric, place.context]);
    useEffect(() => {
        // Links within a view keep its search text.
        const clicked = (event: MouseEvent) => {
            const link = (event.target as HTMLElement).closest?.<HTMLAnchorElement>('a[href^="#/"]');
            if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
            event.preventDefault();
            go(placeOf(link.getAttribute("href")!));
        };
        addEventListener("click", clicked);
        return () => removeEventListener("click", clicked);
    }, []);
    const info = all.find((v) => v.id === place.view) ?? all[0]!;
    const View = views[info.id];

    const shown = useRef(info.id);
    useEffect(() => {
        const show = () => document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
        if (shown.current !== info.id) {
            shown.current = info.id;
            scrollTo(0, 0);
            main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
        }
        show();
        // On a rotated screen the entries are in a row, and this one may be outside the visible part.
        addEventListener("resize", show);
        return () => removeEventListener("resize", show);
    }, [info.id]);

    useEffect(() => {
        const pressed = (event: KeyboardEvent) => {
            const target = event.target as HTMLElement;
            if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, dialog[open]")) return;
            if (event.key === "/") main.current?.querySelector<HTMLInputElement>("[data-search]")?.focus();
            else if (event.key === "?") setHelp(true);
            else if (event.key === "t") toggleTheme();
            else if (/^[1-9]$/.test(event.key) && present[Number(event.key) - 1]) go({ view: present[Number(event.key) - 1]!.id });
            else if (target === document.body || target === main.current || target.tagName === "H1") {
                // If nothing has the focus, the keys of the view work too.
                const own = main.current?.querySelector<HTMLElement>("[data-keys]");
                const copy = new KeyboardEvent("keydown", { key: event.key, code: event.code, shiftKey: event.shiftKey, cancelable: true });
                if (!own || own.dispatchEvent(copy)) return;
                own.focus({ preventScroll: true });
            } else return;
            event.preventDefault();
        };
        addEventListener("keydown", pressed);
        return () => removeEventListener("keydown", pressed);
    });

    return (
        <>
            <a class="skip" href="#main" onClick={(event) => {
                event.preventDefault();
                main.current?.focus();
            }}>
                To the content
            </a>
            <header class="top">
                <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
                    <rect x="1" y="2" width="14" height="3" rx="1" fill="#0072b2" />
                    <rect x="1" y="6.5" width="9" height="3" rx="1" fill="#56b4e9" />
                    <rect x="1" y="11" width="5" height="3" rx="1" fill="#e69f00" />
                </svg>
                <p class="capture">
                    <b title={head.capture}>{fileName(head.capture.replace(/\/+$/, ""))}</b>
                    <span class="unit">{head.unit}</span>
                </p>
                <button type="button" class="button" onClick={toggleTheme} aria-label={theme === "light" ? "Dark colours" : "Light colours"} title="Light or dark ( t )">
                    {theme === "light" ? "☾" : "☀"}
                </button>
                <button type="button" class="button" onClick={() => setHelp(true)} aria-label="Keys" title="Keys ( ? )">
                    ?
                </button>
            </header>
            <nav class="nav" aria-label="Views">
                <ul>
                    {present.map((v, i) => (
                        <li key={v.id}>
                            <a href={hashOf({ view: v.id })} aria-current={v.id === info.id ? "page" : undefined} title={i < 9 ? `( ${i + 1} )` : undefined}>
                                {v.name}
                            </a>
                        </li>
                    ))}
                </ul>
                {present.length < all.length && (
                    <div class="absent">
                        <h2>Not in this report</h2>
                        <dl>
                            {all.filter((v) => v.absent !== undefined).map((v) => (
                                <div key={v.id}>
                                    <dt>{v.name}</dt>
                                    <dd>{v.absent}</dd>
                                </div>
                            ))}
                        </dl>
                    </div>
                )}
            </nav>
            <main ref={main} id="main" tabIndex={-1} class={`view view-${info.id}`}>
                {head.served && <ServedBar report={report} place={place} />}
                {info.absent === undefined ? (
                    <View report={report} place={place} metric={metric} setMetric={setMetric} context={context} setContext={setContext} go={go} keep={keep} />
                ) : (
                    <>
                        <h1>{info.name}</h1>
                        <p class="empty">{info.absent}</p>
                    </>
                )}
            </main>
            {help && <Keys close={() => setHelp(false)} />}
        </>
    );
}
