/// The flame graph: who called whom, and the cost.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { inRange } from "../data/range";
import { lowerBound, matcher } from "../data/search";
import { contextBeganIn } from "../data/threads";
import { contexts, inclusive, inverted, Kind, type Layout, layout, narrowUntil, nodeAt, type Order, shareOf, subtree, together, type Tree, withoutContexts } from "../data/tree";
import { begin, canvasFont, fitting, useFrame, useSize } from "../ui/canvas";
import { Choice, Copy, Loading, MetricChoice, Name, Search, Segments, Share, ViewHead, useLoaded } from "../ui/parts";
import { RangeBar, RangeNote, selectedRange, useTimeline } from "../ui/range";
import { Both } from "./against";
import { hashOf, type ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, percent, short, shortened, withUnit } from "../ui/text";
import { colorOf, colors, hatch, stillness, useTheme } from "../ui/theme";

const rowHeight = 20;
type Way = "callers" | "leaves";

export function CallsView(props: ViewProps) {
    const loaded = useLoaded(() => props.report.calls());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the calls" error={loaded} />;
    return <Calls {...props} tree={loaded} />;
}

/// A core, thread, task or source: with the function that a thread began in.
export function contextName(report: ViewProps["report"], tree: Tree, cost: Float64Array, node: number): string {
    const began = report.head.unit === "DPU" ? -1 : contextBeganIn(tree, cost, report.head.functions, node);
    return report.functionName(tree.function[node]!) + (began < 0 ? "" : ` · ${report.functionName(began)}`);
}

/// The selected core, thread, task or source; 0: all of them.
export function ContextChoice(props: { report: ViewProps["report"]; tree: Tree; value: number; onChange: (node: number) => void }) {
    const { report, tree } = props;
    const all = contexts(tree);
    const cost = useMemo(() => inclusive(tree, 0), [tree]);
    if (all.length === 0) return null;
    const nameOf = (node: number): string => {
        const up = tree.parent[node]!;
        const name = contextName(report, tree, cost, node);
        return up > 0 && tree.kind[up] === Kind.root ? `${nameOf(up)} › ${name}` : name;
    };
    return (
        <Choice
            label={report.head.unit === "DPU" ? "Task" : "Context"}
            value={props.value}
            options={[{ value: 0, name: `all ${all.length}` }, ...all.map((node) => ({ value: node, name: nameOf(node) }))]}
            onChange={props.onChange}
        />
    );
}

function Calls({ report, place, metric: wanted, setMetric, context, setContext, keep, tree: all }: ViewProps & { tree: Tree }) {
    const { head } = report;
    const timeline = useTimeline(report);
    const range = selectedRange(timeline, place);
    const ranged = useMemo(() => (timeline && range ? inRange(timeline, range, head.functions.name.length) : undefined), [timeline, place.range]);
    const against = selectedRange(timeline, { ...place, range: place.against });
    const both = useMemo(
        () => (timeline && ranged && against ? together([inRange(timeline, against, head.functions.name.length).tree, ranged.tree], 0, head.functions.name.length) : undefined),
        [timeline, ranged, place.against],
    );
    // The calls of a range are measured in the unit of the timeline.
    const metric = ranged ? 0 : wanted;
    const several = useMemo(() => contexts(all).length > 0, [all]);
    const asOne = place.which === "merged" && several && context === 0 && !ranged;
    const tree = useMemo(
        () => ranged?.tree ?? (context > 0 ? subtree(all, context) : asOne ? withoutContexts(all, head.functions.name.length) : all),
        [all, context, ranged, asOne],
    );
    const way: Way = place.way === "leaves" ? "leaves" : "callers";
    const setWay = (way: Way) => keep({ way, from: undefined, to: undefined }, true);
    const order = (["cost", "first", "name"] as Order[]).find((o) => o === place.order) ?? "cost";
    const setOrder = (order: Order) => keep({ order, from: undefined, to: undefined }, true);
    const query = place.query ?? "";
    const setQuery = (query: string) => keep({ query });
    const [asTable, setAsTable] = useState(false);
    const [selected, setSelected] = useState(0);
    const unit = ranged ? timeline!.part.axis.unit : (head.metrics[metric]?.name ?? "");

    const shown = useMemo(() => (way === "leaves" ? inverted(tree, metric, head.functions.name.length) : tree), [tree, way, metric]);
    const nameOf = useMemo(() => namer(report, shown, way), [shown, way]);
    const map = useMemo(() => layout(shown, metric, order, nameOf), [shown, metric, order]);
    useEffect(() => setSelected(0), [shown]);

    const matches = useMemo(() => {
        const is = query === "" && place.function !== undefined ? (i: number) => i === place.function : undefined;
        const typed = matcher(query);
        const wanted = is ?? (typed && ((i: number) => typed(report.functionName(i))));
        if (!wanted) return undefined;
        const functions = new Uint8Array(head.functions.name.length);
        let count = 0;
        for (let i = 0; i < functions.length; ++i) if (wanted(i)) count += functions[i] = 1;
        const share = shareOf(map, shown, (node) => functions[shown.function[node]!] === 1);
        return { functions, count, share };
    }, [query, place.function, map]);

    // The calls that match, the most expensive first.
    const found = useMemo(() => {
        const out: number[] = [];
        if (matches) for (let i = 1; i < shown.parent.length; ++i) if (map.width[i]! > 0 && matches.functions[shown.function[i]!] === 1) out.push(i);
        return out.sort((a, b) => map.width[b]! - map.width[a]!);
    }, [matches, map]);

    return (
        <>
            <ViewHead title="Flame graph" note={ranged ? undefined : head.metrics[metric]?.note}>
                <Search
                    label="Search functions"
                    value={query}
                    onInput={setQuery}
                    note={matches ? `${counted(matches.count, "function")}, ${percent(matches.share, 1)}` : ""}
                    next={(step) => {
                        if (found.length === 0) return;
                        const at = found.indexOf(selected);
                        setSelected(found[at < 0 ? (step === 1 ? 0 : found.length - 1) : (at + step + found.length) % found.length]!);
                    }}
                />
                {!ranged && <MetricChoice metrics={head.metrics} value={metric} onChange={setMetric} />}
                {!ranged && <ContextChoice report={report} tree={all} value={context} onChange={setContext} />}
                {several && context === 0 && !ranged && (
                    <button type="button" class="button" aria-pressed={asOne} title="Calls with the same callers are one, whichever thread or source made them" onClick={() => keep({ which: asOne ? undefined : "merged", from: undefined, to: undefined }, true)}>
                        Merged
                    </button>
                )}
                <Segments<Way>
                    label="Direction"
                    value={way}
                    onChange={setWay}
                    options={[
                        { value: "callers", name: "From callers", title: "The program's beginning is at the top" },
                        { value: "leaves", name: "From leaves", title: "Functions by what they cost themselves, their callers below" },
                    ]}
                />
                <Segments<Order>
                    label="Order"
                    value={order}
                    onChange={setOrder}
                    options={[
                        { value: "cost", name: "Heaviest first" },
                        { value: "first", name: "First called first" },
                        { value: "name", name: "A–Z" },
                    ]}
                />
                <button type="button" class="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
                    As a table
                </button>
            </ViewHead>
            {timeline && <RangeBar timeline={timeline} place={place} keep={(change, step) => keep({ ...change, from: undefined, to: undefined }, step)} />}
            {timeline && range && ranged && <RangeNote timeline={timeline} range={range} part={ranged} />}
            {place.function !== undefined && query === "" && (
                <p class="note">
                    Marked: <b>{report.functionName(place.function)}</b>. <a href={hashOf({ view: "calls" })}>Mark nothing</a>
                </p>
            )}
            {both ? (
                <Both key={`${place.range} ${place.against}`} tree={both} nameOf={namer(report, both, "callers")} unit={unit} words={["the other range", "this range"]} place={place} keep={keep} />
            ) : asTable ? (
                <TreeTable tree={shown} map={map} nameOf={nameOf} unit={unit} metric={metric} selected={selected} select={setSelected} />
            ) : (
                <Flame key={`${way} ${metric} ${context} ${place.range ?? ""} ${asOne}`} tree={shown} map={map} nameOf={nameOf} matches={matches?.functions} selected={selected} select={setSelected} unit={unit} place={place} keep={keep} />
            )}
            {!both && <Detail report={report} tree={shown} map={map} nameOf={nameOf} node={selected} metric={metric} unit={unit} way={way} select={setSelected} />}
        </>
    );
}

/// The name of a call.
function namer(report: ViewProps["report"], tree: Tree, way: Way): (node: number) => string {
    const cost = way === "callers" ? inclusive(tree, 0) : undefined;
    const named = new Map(cost && contexts(tree).map((node) => [node, contextName(report, tree, cost, node)] as const));
    return (node) => {
        const f = tree.function[node] ?? -1;
        const context = named.get(node);
        if (context !== undefined) return context;
        if (node === 0 && f < 0) return way === "leaves" ? "all, by leaf function" : "all";
        if (tree.kind[node] === Kind.folded) return "[smaller calls]";
        if (f < 0) return tree.kind[node] === Kind.unsynchronised ? "[callers not in the trace]" : "[unknown]";
        return report.functionName(f);
    };
}

interface Shown {
    tree: Tree;
    map: Layout;
    nameOf: (node: number) => string;
    selected: number;
    select: (node: number) => void;
    unit: string;
}

/// `colour`: of a call, in place of the colour of its name.
export function Flame(props: Shown & Pick<ViewProps, "place" | "keep"> & { matches: Uint8Array | undefined; colour?: (node: number) => { fill: string; ink: string; edge?: string } }) {
    const { tree, map, nameOf, matches, selected, colour } = props;
    const theme = useTheme();
    const frame = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const size = useSize(frame);
    const { place } = props;
    const asked = place.from !== undefined && place.to !== undefined && place.to > place.from && place.from < map.total;
    const view = useRef(asked ? bounded(place.from!, place.to!, map.total) : { from: 0, to: map.total });
    const goal = useRef({ ...view.current });
    const kept = useRef(0);
    const motion = useRef(0);
    const hovered = useRef(-1);
    const [tip, setTip] = useState<{ x: number; y: number; node: number } | undefined>(undefined);
    const drag = useRef<{ x: number; y: number; top: number; from: number; to: number; moved: boolean } | undefined>(undefined);

    const draw = useFrame(() => {
        const at = canvas.current;
        if (!at || size.width === 0 || map.total <= 0) return;
        const c = begin(at, size);
        if (!c) return;
        const palette = colors();
        const { from, to } = view.current;
        const scale = size.width / (to - from);
        const top = frame.current?.scrollTop ?? 0;
        c.font = canvasFont;
        c.textBaseline = "middle";
        const hatched = hatch(c, palette.gap);
        const firstRow = Math.max(0, Math.floor(top / rowHeight));
        const lastRow = Math.min(map.rows.length - 1, Math.floor((top + size.height) / rowHeight));
        for (let depth = firstRow; depth <= lastRow; ++depth) {
            const row = map.rows[depth]!;
            const begins = map.rowX[depth]!;
            const y = depth * rowHeight - top;
            let i = Math.max(0, lowerBound(begins, from) - 1);
            while (i < row.length && begins[i]! < to) {
                const node = row[i]!;
                const left = (begins[i]! - from) * scale;
                const width = map.width[node]! * scale;
                if (left + width <= 0) {
                    ++i;
                    continue;
                }
                if (width < 1.5) {
                    // Too narrow to be drawn separately: all that begin within these pixels are one.
                    const next = narrowUntil(map, depth, i, 1.5 / scale);
                    const last = row[next - 1]!;
                    const end = Math.max(left + 1, Math.min((map.x[last]! + map.width[last]! - from) * scale, left + 1.5));
                    let marked = false;
                    if (matches) for (let k = i; k < next && !marked; ++k) marked = matches[tree.function[row[k]!]!] === 1;
                    c.fillStyle = marked ? palette.match : palette.merged;
                    c.fillRect(left, y, end - left, rowHeight - 1);
                    i = next;
                    continue;
                }
                const x0 = Math.max(0, left);
                const x1 = Math.min(size.width, left + width);
                const f = tree.function[node]!;
                const match = matches !== undefined && f >= 0 && matches[f] === 1;
                const plain = f < 0 && node !== 0;
                const root = tree.kind[node] === Kind.root;
                const own = colour?.(node);
                c.fillStyle = own ? own.fill : match ? palette.match : matches || plain || root ? palette.faded : colorOf(nameOf(node));
                c.fillRect(x0, y, x1 - x0 - (left + width <= size.width ? 0.75 : 0), rowHeight - 1);
                if (own?.edge) {
                    c.fillStyle = own.edge;
                    c.fillRect(x0, y + rowHeight - 4, x1 - x0 - 0.75, 3);
                }
                if (tree.kind[node] === Kind.interrupt || tree.kind[node] === Kind.unsynchronised || tree.kind[node] === Kind.folded) {
                    c.fillStyle = hatched;
                    const across = tree.kind[node] === Kind.folded ? x1 - x0 : Math.min(12, x1 - x0);
                    c.fillRect(x0, y, across, rowHeight - 1);
                }
                if (node === selected || node === hovered.current) {
                    c.strokeStyle = node === selected ? palette.accent : palette.ink;
                    c.lineWidth = node === selected ? 2 : 1;
                    c.strokeRect(x0 + 1, y + 1, Math.max(1, x1 - x0 - 2.75), rowHeight - 3);
                }
                const room = x1 - x0 - (tree.kind[node] === Kind.interrupt || tree.kind[node] === Kind.unsynchronised ? 20 : 8);
                if (room > 38) {
                    c.fillStyle = own ? own.ink : match ? palette.matchInk : matches || plain || root ? palette.fadedInk : palette.functionInk;
                    c.fillText(fitting(c, nameOf(node), room, shortened), x1 - room - 4, y + rowHeight / 2);
                }
                ++i;
            }
        }
    });
    useEffect(draw, [size.width, size.height, map, matches, selected, theme]);
    useEffect(() => () => cancelAnimationFrame(motion.current), []);

    const moveTo = (from: number, to: number) => {
        cancelAnimationFrame(motion.current);
        const start = { ...view.current };
        const began = performance.now();
        const length = stillness() ? 0 : 180;
        const step = (now: number) => {
            const part = length === 0 ? 1 : Math.min(1, (now - began) / length);
            const eased = 1 - (1 - part) ** 3;
            view.current = { from: start.from + (from - start.from) * eased, to: start.to + (to - start.to) * eased };
            draw();
            if (part < 1) motion.current = requestAnimationFrame(step);
        };
        step(began + (length === 0 ? 1 : 0));
        frame.current?.setAttribute("data-from", String(from));
        frame.current?.setAttribute("data-to", String(to));
    };
    // The address has whole numbers, so it may differ by this much from the visible range.
    const inAddress = (v: { from: number; to: number }) =>
        v.from <= 0 && v.to >= map.total ? { from: undefined, to: undefined } : { from: Math.floor(v.from), to: Math.ceil(v.to) };
    const keepSeen = (step: boolean) => {
        goal.current = { ...view.current };
        window.clearTimeout(kept.current);
        kept.current = window.setTimeout(() => props.keep(inAddress(goal.current), step), 250);
    };
    useEffect(() => () => window.clearTimeout(kept.current), []);
    useEffect(() => {
        const is = inAddress(goal.current);
        if (place.from === is.from && place.to === is.to) return;
        goal.current = asked ? bounded(place.from!, place.to!, map.total) : { from: 0, to: map.total };
        moveTo(goal.current.from, goal.current.to);
    }, [place.from, place.to]);
    const zoomTo = (node: number) => {
        window.clearTimeout(kept.current);
        goal.current = { from: map.x[node]!, to: map.x[node]! + map.width[node]! };
        moveTo(goal.current.from, goal.current.to);
        props.keep(inAddress(goal.current), true);
    };
    const zoomed = () => view.current.to - view.current.from < map.total * 0.9999;
    const zoomOut = () => {
        // Zoom to the nearest caller that is wider than the visible range.
        const width = (view.current.to - view.current.from) * 1.0001;
        let node = selected;
        while (node > 0 && map.width[node]! <= width) node = tree.parent[node]!;
        zoomTo(Math.max(0, node));
    };
    const under = (event: MouseEvent): number => {
        const box = canvas.current!.getBoundingClientRect();
        const { from, to } = view.current;
        const x = from + ((event.clientX - box.left) / size.width) * (to - from);
        return nodeAt(map, Math.floor((event.clientY - box.top + (frame.current?.scrollTop ?? 0)) / rowHeight), x);
    };
    const reveal = (node: number) => {
        const y = map.depth[node]! * rowHeight;
        const f = frame.current!;
        if (y < f.scrollTop) f.scrollTop = y;
        else if (y + rowHeight > f.scrollTop + f.clientHeight) f.scrollTop = y + rowHeight - f.clientHeight;
        // Keep the selection visible.
        if (map.x[node]! + map.width[node]! <= view.current.from || map.x[node]! >= view.current.to) zoomTo(Math.max(0, tree.parent[node]!));
    };
    const choose = (node: number) => {
        if (node < 0) return;
        props.select(node);
        reveal(node);
    };
    const beside = (step: number): number => {
        const row = map.rows[map.depth[selected]!]!;
        return row[row.indexOf(selected) + step] ?? -1;
    };
    const below = (): number => {
        const row = map.rows[map.depth[selected]! + 1];
        let best = -1;
        if (row) for (const node of row) if (tree.parent[node] === selected && (best < 0 || map.width[node]! > map.width[best]!)) best = node;
        return best;
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "ArrowLeft") choose(beside(-1));
        else if (event.key === "ArrowRight") choose(beside(1));
        else if (event.key === "ArrowUp") choose(tree.parent[selected]!);
        else if (event.key === "ArrowDown") choose(below());
        else if (event.key === "Enter") zoomTo(selected);
        else if (event.key === "Backspace" || (event.key === "Escape" && zoomed())) zoomOut();
        else if (event.key === "Home" || event.key === "0") zoomTo(0);
        else return;
        event.preventDefault();
    };
    useEffect(() => {
        const f = frame.current!;
        const wheel = (event: WheelEvent) => {
            if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
            event.preventDefault();
            cancelAnimationFrame(motion.current);
            const { from, to } = view.current;
            if (event.ctrlKey || event.metaKey) {
                const box = f.getBoundingClientRect();
                const center = from + ((event.clientX - box.left) / size.width) * (to - from);
                const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200)));
                const least = map.total / 1e9;
                if ((to - from) * factor < least) return;
                view.current = bounded(center - (center - from) * factor, center + (to - center) * factor, map.total);
            } else {
                const by = (event.deltaX / size.width) * (to - from);
                view.current = bounded(from + by, to + by, map.total);
            }
            keepSeen(false);
            draw();
        };
        f.addEventListener("wheel", wheel, { passive: false });
        return () => f.removeEventListener("wheel", wheel);
    }, [size.width, map]);

    const whole = map.total;
    const striped = useMemo(() => {
        const seen = new Set(tree.kind.filter((_, node) => map.width[node]! > 0));
        return [[Kind.interrupt, "entered by an exception"], [Kind.unsynchronised, "caller unknown"], [Kind.folded, "several small calls"]].filter(([kind]) => seen.has(kind as Kind)).map(([, what]) => what);
    }, [tree, map]);
    return (
        <>
            <p class="note" id="flame-help">
                Click a call to select it, twice to zoom in; drag to move. Keys: arrows, Enter, Backspace. Ctrl and wheel zoom.
                <button type="button" class="button small" onClick={() => zoomTo(0)}>Show all</button>
            </p>
            {striped.length > 0 && (
                <ul class="legend" aria-label="Stripes">
                    <li><span class="mark-sign mark-0" aria-hidden="true" />{striped.join(", or ")}</li>
                </ul>
            )}
            <div
                ref={frame}
                class="flame"
                data-keys=""
                role="application"
                aria-roledescription="flame graph"
                aria-label={`Flame graph of ${counted(tree.parent.length, "call")}. Selected: ${nameOf(selected)}, ${percent(map.width[selected] ?? 0, whole)}. As a table shows the same in words.`}
                aria-describedby="flame-help"
                tabIndex={0}
                style={{ height: `min(62vh, ${Math.max(8, map.rows.length) * rowHeight + 4}px)` }}
                onScroll={draw}
                onKeyDown={onKeyDown}
                onPointerDown={(event) => {
                    if (event.button !== 0) return;
                    drag.current = { x: event.clientX, y: event.clientY, top: frame.current!.scrollTop, ...view.current, moved: false };
                }}
                onPointerMove={(event) => {
                    const d = drag.current;
                    if (d && event.buttons & 1 && event.pointerType === "mouse") {
                        if (!d.moved && Math.abs(event.clientX - d.x) + Math.abs(event.clientY - d.y) < 5) return;
                        if (!d.moved) frame.current!.setPointerCapture(event.pointerId);
                        d.moved = true;
                        const by = ((d.x - event.clientX) / size.width) * (d.to - d.from);
                        view.current = bounded(d.from + by, d.to + by, map.total);
                        frame.current!.scrollTop = d.top + d.y - event.clientY;
                        setTip(undefined);
                        keepSeen(false);
                        draw();
                        return;
                    }
                    const node = under(event);
                    if (node !== hovered.current) {
                        hovered.current = node;
                        draw();
                    }
                    setTip(node < 0 || event.pointerType === "touch" ? undefined : { x: event.clientX, y: event.clientY, node });
                }}
                onPointerUp={() => {
                    window.setTimeout(() => (drag.current = undefined));
                }}
                onPointerLeave={() => {
                    hovered.current = -1;
                    setTip(undefined);
                    draw();
                }}
                onClick={(event) => {
                    if (drag.current?.moved) return;
                    const node = under(event);
                    if (node < 0) return;
                    if (node === selected) zoomTo(node);
                    else props.select(node);
                }}
            >
                <canvas ref={canvas} aria-hidden="true" style={{ width: size.width, height: size.height }} />
                <div style={{ height: Math.max(0, map.rows.length * rowHeight - size.height) }} />
            </div>
            {tip && (
                <div class="tip" style={{ left: Math.min(tip.x + 14, innerWidth - 330), top: tip.y + 18 }}>
                    <b>{shortened(nameOf(tip.node), 160)}</b>
                    <span>
                        {withUnit(map.width[tip.node]!, props.unit)}, {percent(map.width[tip.node]!, whole)}
                    </span>
                </div>
            )}
        </>
    );
}

/// Limits a view to the whole range.
function bounded(from: number, to: number, total: number) {
    const width = Math.min(to - from, total);
    const start = Math.max(0, Math.min(from, total - width));
    return { from: start, to: start + width };
}

/// The same calls as a list: each below its caller.
function TreeTable(props: Shown & { metric: number }) {
    const { tree, map, nameOf } = props;
    const rows = useMemo(() => {
        const children = new Map<number, number[]>();
        for (const row of map.rows) for (const node of row) if (node !== 0) children.set(tree.parent[node]!, [...(children.get(tree.parent[node]!) ?? []), node]);
        const out: number[] = [];
        const open = [0];
        while (open.length > 0) {
            const node = open.pop()!;
            out.push(node);
            const below = children.get(node);
            if (below) for (let i = below.length; i-- > 0; ) open.push(below[i]!);
        }
        return out;
    }, [map]);
    const self = tree.self[props.metric]!;
    const columns = useMemo<Column[]>(
        () => [
            {
                id: "name",
                name: "Function",
                width: "minmax(200px, 3fr)",
                value: (i) => nameOf(i),
                show: (i) => (
                    <span style={{ paddingLeft: Math.min(240, map.depth[i]! * 12) }}>
                        <Name name={nameOf(i)} most={48} />
                    </span>
                ),
            },
            { id: "depth", name: "Depth", number: true, width: "90px", value: (i) => map.depth[i]! },
            {
                id: "total",
                name: "Total",
                number: true,
                width: "minmax(190px, 1fr)",
                value: (i) => map.width[i]!,
                show: (i) => (
                    <span class="with-share">
                        <span>{short(map.width[i]!)}</span> <Share part={map.width[i]!} whole={map.total} />
                    </span>
                ),
            },
            { id: "self", name: "Self", number: true, width: "110px", value: (i) => self[i]!, show: (i) => grouped(self[i]!) },
            { id: "calls", name: "Calls", number: true, width: "100px", value: (i) => tree.calls[i]! },
        ],
        [map],
    );
    return <DataTable label="Calls" columns={columns} rows={rows} selected={props.selected} open={props.select} height="62vh" />;
}

function Detail(props: { report: ViewProps["report"]; tree: Tree; map: Layout; nameOf: (node: number) => string; node: number; metric: number; unit: string; way: Way; select: (node: number) => void }) {
    const { report, tree, map, nameOf, node } = props;
    const path: number[] = [];
    for (let up = tree.parent[node] ?? -1; up >= 0; up = tree.parent[up]!) path.push(up);
    const f = tree.function[node] ?? -1;
    const { unit } = props;
    const kind = ["", "", "entered by an exception or interrupt", "caller unknown: it was called before the trace began, or where trace was lost", "several calls, each too small to be shown"][tree.kind[node] ?? 0];
    return (
        <section class="detail" aria-label="The selected call" aria-live="polite">
            <h2 class="full-name">{nameOf(node)}</h2>
            {kind && <p class="note">{kind}</p>}
            <dl class="facts">
                <div>
                    <dt>total</dt>
                    <dd>
                        {withUnit(map.width[node] ?? 0, unit)} ({percent(map.width[node] ?? 0, map.total)})
                    </dd>
                </div>
                {props.way === "callers" && (
                    <div>
                        <dt>self</dt>
                        <dd>{withUnit(tree.self[props.metric]?.[node] ?? 0, unit)}</dd>
                    </div>
                )}
                {tree.calls[node]! > 0 && (
                    <div>
                        <dt>calls</dt>
                        <dd>{grouped(tree.calls[node]!)}</dd>
                    </div>
                )}
            </dl>
            {path.length > 0 && (
                <p class="path-of">
                    <span class="quiet">{props.way === "callers" ? "called by " : "calling "}</span>
                    {path.slice(0, 12).map((up, i) => (
                        <span key={up}>
                            {i > 0 && <span aria-hidden="true"> ‹ </span>}
                            <button type="button" class="as-link" title={nameOf(up)} onClick={() => props.select(up)}>
                                {shortened(nameOf(up), 32)}
                            </button>
                        </span>
                    ))}
                    {path.length > 12 && <span class="quiet"> and {counted(path.length - 12, "more", "more")}</span>}
                </p>
            )}
            {f >= 0 && (
                <p class="links">
                    <a class="button" href={hashOf({ view: "functions", function: f })}>Function</a>
                    {report.head.has.instructions + report.head.has.lines > 0 && !report.head.functions.synthetic[f] && (
                        <a class="button" href={hashOf({ view: "code", function: f })}>Source and code</a>
                    )}
                    <Copy text={() => [node, ...path].map(nameOf).reverse().join("\n")} what="Copy the call stack" />
                </p>
            )}
        </section>
    );
}
