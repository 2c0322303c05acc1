/// On the first page: a small flame graph, a small timeline, and links to what is remarkable.
import { useEffect, useMemo, useRef } from "preact/hooks";

import type { Against, Branches, Report, Timeline } from "../data/model";
import { contexts, inclusive, layout, type Tree } from "../data/tree";
import { begin, canvasFont, fitting, useFrame, useSize } from "../ui/canvas";
import { useLoaded } from "../ui/parts";
import { hashOf, type Place } from "../ui/state";
import { counted, grouped, percent, shortened, timeText } from "../ui/text";
import { colorOf, colors, hatch, useTheme } from "../ui/theme";
import { contextName } from "./calls";
import { placeText } from "./functions";
import { aroundMoment, isGap, longestGap } from "./timeline";

const rowHeight = 16;

export function Glance({ report, metric }: { report: Report; metric: number }) {
    const { has } = report.head;
    const tree = useLoaded<Tree | undefined>(() => (has.calls > 1 ? report.calls() : Promise.resolve(undefined)));
    const timeline = useLoaded<Timeline | undefined>(() => (has.slices + has.marks > 0 ? report.timeline() : Promise.resolve(undefined)));
    const branches = useLoaded<Branches | undefined>(() => (has.branches > 0 ? report.branches() : Promise.resolve(undefined)));
    const against = useLoaded<Against | undefined>(() => (has.against > 0 ? report.against() : Promise.resolve(undefined)));
    const known = <T,>(value: T | Error | undefined) => (value instanceof Error ? undefined : value);
    if (has.calls <= 1 && has.slices + has.marks === 0 && has.branches === 0) return null;
    return (
        <section aria-labelledby="glance" class="glance">
            <h2 id="glance">At a glance</h2>
            {has.calls > 1 && <SmallFlame report={report} tree={known(tree)} metric={metric} />}
            {has.slices > 0 && <SmallTimeline report={report} timeline={known(timeline)} />}
            <Remarkable report={report} timeline={known(timeline)} branches={known(branches)} against={known(against)} />
        </section>
    );
}

function SmallFlame({ report, tree, metric }: { report: Report; tree: Tree | undefined; metric: number }) {
    const theme = useTheme();
    const frame = useRef<HTMLAnchorElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const size = useSize(frame);
    const named = useMemo(() => {
        const cost = tree && inclusive(tree, 0);
        return new Map(cost && contexts(tree).map((node) => [node, contextName(report, tree, cost, node)] as const));
    }, [tree]);
    const nameOf = (node: number) => named.get(node) ?? report.functionName(tree!.function[node]!);
    const map = useMemo(() => tree && layout(tree, metric, "cost", nameOf), [tree, metric]);
    const draw = useFrame(() => {
        if (!canvas.current || !map || !tree || size.width === 0 || map.total <= 0) return;
        const c = begin(canvas.current, size);
        if (!c) return;
        const palette = colors();
        c.font = canvasFont;
        c.textBaseline = "middle";
        const scale = size.width / map.total;
        // Below the root, which is the whole capture.
        for (let depth = 1; depth < map.rows.length && (depth - 1) * rowHeight < size.height; ++depth)
            for (const node of map.rows[depth]!) {
                const width = map.width[node]! * scale;
                if (width < 1) continue;
                const x = map.x[node]! * scale;
                const y = (depth - 1) * rowHeight;
                c.fillStyle = tree.function[node]! < 0 ? palette.faded : colorOf(nameOf(node));
                c.fillRect(x, y, Math.max(1, width - 0.75), rowHeight - 1);
                if (width > 46 && tree.function[node]! >= 0) {
                    c.fillStyle = palette.functionInk;
                    c.fillText(fitting(c, nameOf(node), width - 8, shortened), x + 4, y + rowHeight / 2);
                }
            }
    });
    useEffect(draw, [size.width, size.height, map, theme]);
    return (
        <a ref={frame} class="small-picture small-flame" href={hashOf({ view: "calls" })} title="The flame graph">
            <canvas ref={canvas} aria-hidden="true" style={{ width: size.width, height: size.height }} />
            <span class="hidden">The flame graph</span>
        </a>
    );
}

function SmallTimeline({ report, timeline }: { report: Report; timeline: Timeline | undefined }) {
    const theme = useTheme();
    const frame = useRef<HTMLAnchorElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const size = useSize(frame);
    const draw = useFrame(() => {
        if (!canvas.current || !timeline || size.width === 0) return;
        const c = begin(canvas.current, size);
        if (!c) return;
        const palette = colors();
        const total = Math.max(1, timeline.part.axis.length);
        // Each track has a strip: the longest call at the top of the stack in each pixel.
        const tracks = timeline.lanes.map((_, i) => i).filter((i) => timeline.lanes[i]!.length > 0);
        const high = Math.max(2, Math.min(14, Math.floor(size.height / Math.max(1, tracks.length))));
        const hatched = hatch(c, palette.gap, 4);
        tracks.slice(0, Math.floor(size.height / high)).forEach((track, row) => {
            const deepest = Math.min(timeline.lanes[track]!.length, 4);
            const each = high / deepest;
            for (let depth = 0; depth < deepest; ++depth) {
                const lane = timeline.lanes[track]![depth]!;
                let drawnTo = -1;
                for (let i = 0; i < lane.begin.length; ++i) {
                    const x0 = (lane.begin[i]! / total) * size.width;
                    const x1 = (lane.end[i]! / total) * size.width;
                    if (x1 < drawnTo + 0.5) continue;
                    drawnTo = x1;
                    c.fillStyle = colorOf(report.functionName(timeline.part.slices.function[lane.slice[i]!]!));
                    c.fillRect(x0, row * high + depth * each, Math.max(0.5, x1 - x0), each - 0.5);
                }
            }
        });
        const { marks } = timeline;
        for (let m = 0; m < marks.kind.length; ++m) {
            if (marks.kind[m] !== 0 && marks.kind[m] !== 5) continue;
            c.fillStyle = hatched;
            c.fillRect((marks.begin[m]! / total) * size.width, 0, Math.max(2, ((marks.end[m]! - marks.begin[m]!) / total) * size.width), size.height);
        }
    });
    useEffect(draw, [size.width, size.height, timeline, theme]);
    return (
        <a ref={frame} class="small-picture small-timeline" href={hashOf({ view: "timeline" })} title="The timeline">
            <canvas ref={canvas} aria-hidden="true" style={{ width: size.width, height: size.height }} />
            <span class="hidden">The timeline</span>
        </a>
    );
}

/// The functions in progress at the end of a track, the innermost first.
function endOf(timeline: Timeline, track: number): number[] {
    const lanes = timeline.lanes[track]!;
    const end = Math.max(...lanes.map((lane) => lane.end[lane.end.length - 1]!));
    return lanes.filter((lane) => lane.end[lane.end.length - 1]! >= end).map((lane) => timeline.part.slices.function[lane.slice[lane.slice.length - 1]!]!).reverse();
}

/// The index with the greatest number; -1: there is none.
function greatest(numbers: number[]): number {
    return numbers.reduce((best, n, i) => (best < 0 || n > numbers[best]! ? i : best), -1);
}

/// What a reader would look for first.
function Remarkable({ report, timeline, branches, against }: { report: Report; timeline: Timeline | undefined; branches: Branches | undefined; against: Against | undefined }) {
    const { head } = report;
    const { loops } = head;
    const out: { text: string; place: Place }[] = [];
    if (against) {
        const { part, change } = against;
        const grown = part.after - part.before;
        const grew = change.reduce((best, c, i) => (c > (change[best] ?? 0) ? i : best), -1);
        out.push({
            text: `To ${part.capture}: ${grown < 0 ? "−" : "+"}${counted(Math.abs(grown), part.metric.replace(/s$/, ""))}${grew < 0 ? "" : `; ${part.table.function[grew]} grew most, by ${grouped(change[grew]!)}`}`,
            place: { view: "against" },
        });
    }
    const isOwn = (f: number) => report.hasOwn && report.head.functions.own[f] === 1;
    // A loop of a library says less than one of the program's own code.
    const ofOwn = greatest(loops.iterations.map((n, i) => (isOwn(loops.function[i]!) ? n : 0)));
    const most = ofOwn >= 0 && isOwn(loops.function[ofOwn]!) && loops.iterations[ofOwn]! > 1 ? ofOwn : greatest(loops.iterations);
    if (most >= 0 && loops.iterations[most]! > 1) {
        const at = placeText(report, loops.source[most]!, loops.line[most]!);
        out.push({
            text: `The loop ${isOwn(loops.function[most]!) ? "of your code " : ""}that ran most: ${report.functionName(loops.function[most]!)}${at === "" ? "" : `, ${at}`}, ${counted(loops.iterations[most]!, "iteration")}`,
            place: { view: "loops", own: isOwn(loops.function[most]!) ? "1" : undefined },
        });
    }
    if (timeline) {
        const { marks } = timeline;
        const { axis } = timeline.part;
        // Of several tracks, only their own ends are known.
        const ended = timeline.lanes.map((_, t) => t).filter((t) => timeline.lanes[t]!.length > 0);
        if (ended.length === 1 && report.head.has.steps > 0) {
            const [last, ...callers] = endOf(timeline, ended[0]!) as [number, ...number[]];
            const own = report.head.functions.own[last] === 1 ? undefined : callers.find((f) => report.head.functions.own[f] === 1);
            out.push({
                text: `What ran last: ${report.functionName(last)}${own === undefined ? "" : `, below ${report.functionName(own)}`}`,
                place: { view: "steps", stream: 0, which: "last" },
            });
        }
        const gaps = marks.kind.filter(isGap).length;
        const longest = longestGap(timeline);
        if (longest >= 0) {
            const took = marks.end[longest]! - marks.begin[longest]!;
            out.push({
                text: `${counted(gaps, "gap")} in the trace; ${took > 0 ? `the longest: ${timeText(took, axis.unit, axis.ticksPerSecond)}` : "how much each hides is not known"}`,
                place: { view: "timeline", ...aroundMoment(timeline, marks.begin[longest]!, marks.end[longest]!), which: "longest gap" },
            });
        }
    }
    if (branches) {
        const b = branches.part.branches;
        const times = (i: number) => b.taken[i]! + b.notTaken[i]!;
        const one = b.kind.map((_, i) => i).filter((i) => b.kind[i] === 0 && times(i) > 0 && (b.taken[i] === 0 || b.notTaken[i] === 0));
        const both = b.kind.map((_, i) => i).filter((i) => b.kind[i] === 0 && b.taken[i]! > 0 && b.notTaken[i]! > 0);
        const ownBoth = both.filter((i) => isOwn(b.function[i]!));
        const rarest = (ownBoth.length > 0 ? ownBoth : both).reduce((best, i) => (best < 0 || Math.min(b.taken[i]!, b.notTaken[i]!) * times(best) < Math.min(b.taken[best]!, b.notTaken[best]!) * times(i) ? i : best), -1);
        const oneOwn = one.filter((i) => isOwn(b.function[i]!));
        const some = oneOwn.length > 0 && oneOwn.length < one.length;
        if (one.length > 0)
            out.push({
                text: `${counted(one.length, "branch", "branches")} always went the same way${some ? `, ${grouped(oneOwn.length)} of them in your code` : ""}`,
                place: { view: "branches", which: "one", own: some ? "1" : undefined },
            });
        if (rarest >= 0) {
            const seldom = Math.min(b.taken[rarest]!, b.notTaken[rarest]!);
            const f = b.function[rarest]!;
            out.push({
                text: `The branch ${isOwn(f) ? "of your code " : ""}with the rarest exception to its usual way: in ${report.functionName(f)}, ${grouped(seldom)} of ${counted(times(rarest), "time")} (${percent(seldom, times(rarest))})`,
                place: { view: "code", function: f >= 0 ? f : undefined, address: branches.address[rarest] },
            });
        }
    }
    if (out.length === 0) return null;
    return (
        <ul class="remarkable">
            {out.map((o) => (
                <li key={o.text}>
                    <a href={hashOf(o.place)}>{o.text}</a>
                </li>
            ))}
        </ul>
    );
}
