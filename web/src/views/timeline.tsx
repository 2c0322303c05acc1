/// The timeline: activity on each track, losses, and values over time.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { drawn, extremes, sliceAt } from "../data/lod";
import { lowerBound, matcher } from "../data/search";
import { inOrder, matchedSlices, nextOf } from "../data/matches";
import { markKinds, type Timeline } from "../data/model";
import { begin, canvasFont, fitting, labelFont, useFrame, useSize } from "../ui/canvas";
import { Choice, Copy, Loading, Name, Search, ViewHead, useLoaded } from "../ui/parts";
import { inRange, rangeText } from "../data/range";
import { RangeBar, RangeNote, selectedRange } from "../ui/range";
import { hashOf, type ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, short, shortened, timeText } from "../ui/text";
import { picked, pickOf, Slower } from "./singles";
import { type Colors, colorOf, colors, hatch, stillness, useTheme } from "../ui/theme";

const laneHeight = 17;
const markHeight = 12;
const seriesHeight = 46;
const axisHeight = 24;
const trackGap = 8;
const enum MarkKind {
    gap,
    exception,
    context,
    userData,
    trigger,
    overflow,
}
/// Unknown execution: hatched, and found by the key g.
export const isGap = (kind: number) => kind === MarkKind.gap || kind === MarkKind.overflow;

interface Row {
    track: number; // -1: series of no track
    y: number;
    depths: number;
    marks: number[]; // without gaps, by begin
    gaps: number[];
    series: number[];
    height: number;
    indent: number;
}

export function TimelineView(props: ViewProps) {
    const loaded = useLoaded(() => props.report.timeline());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the timeline" error={loaded} />;
    return <View {...props} timeline={loaded} />;
}

/// A view with one moment of the timeline in the middle, or with a whole range.
export function aroundMoment(timeline: Timeline, begin: number, end: number): { from: number; to: number } {
    const total = Math.max(1, timeline.part.axis.length);
    const room = Math.min(total, Math.max((end - begin) * 3, total / 200, 40));
    const from = Math.max(0, Math.min(total - room, (begin + end) / 2 - room / 2));
    return { from: Math.floor(from), to: Math.ceil(from + room) };
}

/// The mark of the longest gap in the trace; -1 without gaps. An overflow of the unit's FIFO has no length.
export function longestGap({ marks }: Timeline): number {
    const length = (m: number) => marks.end[m]! - marks.begin[m]!;
    return marks.kind.reduce((best, kind, m) => (isGap(kind) && (best < 0 || length(m) > length(best)) ? m : best), -1);
}

/// Tracks from top to bottom, each below its parent; if `only` is a track, only that track and its children.
/// `above`: space for the name above each track.
function rowsOf(timeline: Timeline, only: number, above: number): { rows: Row[]; height: number } {
    const { tracks } = timeline.part;
    const children = new Map<number, number[]>();
    tracks.parent.forEach((parent, i) => {
        const list = children.get(parent);
        if (list) list.push(i);
        else children.set(parent, [i]);
    });
    const { marks } = timeline;
    const order = Array.from(marks.begin.keys()).sort((a, b) => marks.begin[a]! - marks.begin[b]!);
    const rows: Row[] = [];
    let y = 4;
    const add = (track: number, indent: number) => {
        if (track >= 0) y += above;
        const own = order.filter((m) => marks.track[m] === track);
        const row: Row = {
            track,
            y,
            indent,
            depths: timeline.lanes[track]?.length ?? 0,
            gaps: own.filter((m) => isGap(marks.kind[m]!) || marks.end[m]! > marks.begin[m]!),
            marks: own.filter((m) => !isGap(marks.kind[m]!) && marks.end[m] === marks.begin[m]),
            series: timeline.series.map((_, i) => i).filter((i) => timeline.series[i]!.track === track),
            height: 0,
        };
        row.height = Math.max(18, (row.marks.length > 0 ? markHeight : 0) + row.depths * laneHeight + row.series.length * seriesHeight);
        y += row.height + trackGap;
        rows.push(row);
        for (const child of children.get(track) ?? []) if (track >= 0) add(child, indent + 1);
    };
    if (only >= 0) {
        add(only, 0);
        return { rows, height: y };
    }
    for (const track of children.get(-1) ?? []) add(track, 0);
    if (timeline.series.some((s) => s.track < 0) || marks.track.some((t) => t < 0)) add(-1, 0);
    return { rows, height: y };
}

/// Steps of 1, 2 or 5 times a power of ten that are about `pixels` wide.
export function stepOf(pixel: number, pixels: number): number {
    const least = Math.max(pixel * pixels, 1e-9);
    const ten = 10 ** Math.floor(Math.log10(least));
    for (const step of [1, 2, 5, 10]) if (ten * step >= least) return ten * step;
    return ten * 10;
}

function View({ report, timeline, place, keep, go }: ViewProps & { timeline: Timeline }) {
    const { axis, tracks, slices, texts } = timeline.part;
    const total = Math.max(1, axis.length);
    const theme = useTheme();
    const query = place.query ?? "";
    const setQuery = (query: string) => keep({ query });
    const [selected, select] = useState(() => picked(timeline, place.pick));
    const setSelected = (slice: number) => {
        select(slice);
        keep({ pick: slice < 0 ? undefined : pickOf(timeline, slice) });
    };
    useEffect(() => select(picked(timeline, place.pick)), [place.pick]);
    const range = selectedRange(timeline, place);
    const ranged = useMemo(() => range && inRange(timeline, range, report.head.functions.name.length), [timeline, place.range]);
    // While a range is drawn.
    const [selecting, setSelecting] = useState(false);
    const drawing = useRef<{ from: number; to: number } | undefined>(undefined);
    const [asTable, setAsTable] = useState(false);
    // Tracks with something to show can be selected.
    const [only, setOnly] = useState(-1);
    const alone = useMemo(() => tracks.name.map((_, i) => i).filter((i) => (timeline.lanes[i]?.length ?? 0) > 0 || tracks.parent.includes(i)), [timeline]);
    const first = place.from !== undefined && place.to !== undefined && place.to > place.from ? { from: Math.min(place.from, total - 1), to: Math.min(place.to, total) } : { from: 0, to: total };
    const [seen, setSeen] = useState(first);
    const { marks } = timeline;
    const [gapSaid, setGapSaid] = useState("");
    const [tip, setTip] = useState<{ x: number; y: number; lines: string[] } | undefined>(undefined);
    const frame = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const mini = useRef<HTMLCanvasElement>(null);
    const size = useSize(frame);
    const narrow = size.width < 520;
    const above = narrow ? 15 : 0;
    const left = useMemo(() => {
        const c = document.createElement("canvas").getContext("2d");
        if (!c) return 150;
        // On narrow screens names are above the tracks.
        if (narrow) return 6;
        c.font = labelFont;
        const widest = Math.max(...tracks.name.map((name) => c.measureText(name).width), ...timeline.series.map((s) => c.measureText(s.name).width), 40);
        return Math.round(Math.min(widest + 26, 230));
    }, [timeline, narrow]);
    const width = Math.max(1, size.width - left);
    const view = useRef({ ...first });
    const goal = useRef({ ...first });
    const motion = useRef(0);
    const { rows, height } = useMemo(() => rowsOf(timeline, only, above), [timeline, only, above]);
    const time = (value: number) => timeText(value, axis.unit, axis.ticksPerSecond);
    const nameOf = (slice: number) => report.functionName(slices.function[slice] ?? -1);

    const matches = useMemo(() => matchedSlices(timeline, report.head.functions.name, query), [timeline, query]);
    const matched = useMemo(() => (matches ? inOrder(timeline, matches, (track) => rows.some((r) => r.track === track)) : []), [timeline, matches, rows]);
    const matchAt = matched.indexOf(selected);
    // Text that software wrote is searched too.
    const written = useMemo(() => marks.kind.map((_, m) => m).filter((m) => marks.kind[m] === MarkKind.userData), [timeline]);
    const hits = useMemo(() => {
        const is = matcher(query);
        return is && new Set(written.filter((m) => is(texts[marks.text[m]!] ?? "")));
    }, [query]);
    const searchNote = !matches ? "" : [matchAt >= 0 ? `${grouped(matchAt + 1)} of ${counted(matched.length, "slice")}` : counted(matched.length, "slice"),
        hits && written.length > 0 ? counted(hits.size, "message") : ""].filter(Boolean).join(", ");

    // The activity in each of a fixed number of ranges, by track and call depth, for the overview.
    const density = useMemo(() => {
        const columns = 1000;
        const busy = new Float64Array(columns);
        for (const lane of timeline.lanes.flat()) {
            for (let i = 0; i < lane.begin.length; ++i) {
                const a = (lane.begin[i]! / total) * columns;
                const b = (lane.end[i]! / total) * columns;
                for (let k = Math.floor(a); k < Math.min(columns, Math.ceil(b)); ++k) busy[k]! += Math.max(0, Math.min(k + 1, b) - Math.max(k, a));
            }
        }
        const most = busy.reduce((m, v) => Math.max(m, v), 0.001);
        return busy.map((v) => v / most);
    }, [timeline]);

    const draw = useFrame(() => {
        const at = canvas.current;
        if (!at || size.width === 0) return;
        const c = begin(at, size);
        if (!c) return;
        const palette = colors();
        const { from, to } = view.current;
        const pixel = (to - from) / width;
        const x = (t: number) => left + (t - from) / pixel;
        const top = frame.current?.scrollTop ?? 0;
        const hatched = hatch(c, palette.gap);
        c.textBaseline = "middle";

        // The axis remains visible; its lines cross all tracks.
        const step = stepOf(pixel, 110);
        c.strokeStyle = palette.line;
        c.lineWidth = 1;
        c.font = labelFont;
        const ticks: [number, string][] = [];
        for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
            c.beginPath();
            c.moveTo(Math.round(x(t)) + 0.5, axisHeight);
            c.lineTo(Math.round(x(t)) + 0.5, size.height);
            c.stroke();
            ticks.push([x(t), time(t)]);
        }
        c.save();
        c.beginPath();
        c.rect(0, axisHeight, size.width, size.height - axisHeight);
        c.clip();
        for (const row of rows) {
            const y = axisHeight + row.y - top;
            if (y > size.height || y + row.height < axisHeight) continue;
            drawRow(c, row, y, palette, hatched, pixel, from, to, x);
        }
        // Labels are drawn over the scrolling content.
        for (const row of rows) {
            const y = axisHeight + row.y - top;
            if (y - above > size.height || y + row.height < axisHeight) continue;
            c.font = labelFont;
            const name = row.track < 0 ? "" : tracks.name[row.track]!;
            const room = (narrow ? size.width : left) - 16 - row.indent * 8;
            const label = (text: string) => (c.measureText(text).width <= room ? text : fitting(c, text, room, shortened));
            if (!narrow) {
                c.fillStyle = palette.panel;
                c.fillRect(0, y - 1, left - 6, row.height + 2);
            }
            c.fillStyle = palette.ink;
            c.fillText(label(name), 6 + row.indent * 8, narrow ? y - 7 : Math.max(y, axisHeight) + 9);
            c.fillStyle = palette.muted;
            const below = y + (row.marks.length > 0 ? markHeight : 0) + row.depths * laneHeight;
            row.series.forEach((s, k) => {
                const series = timeline.series[s]!;
                if (narrow) {
                    c.fillStyle = palette.panel;
                    c.globalAlpha = 0.85;
                    c.fillRect(4, below + k * seriesHeight, c.measureText(series.name).width + 6, 14);
                    c.globalAlpha = 1;
                    c.fillStyle = palette.muted;
                }
                c.fillText(label(series.name), 6, narrow ? below + k * seriesHeight + 7 : below + k * seriesHeight + (k === 0 && row.depths === 0 && name !== "" ? 26 : 12));
            });
            c.strokeStyle = palette.line;
            c.beginPath();
            c.moveTo(0, Math.round(y + row.height + trackGap / 2) + 0.5);
            c.lineTo(size.width, Math.round(y + row.height + trackGap / 2) + 0.5);
            c.stroke();
        }
        // The selected range, or the one that is being drawn.
        const marked = drawing.current ?? range;
        if (marked) {
            const x0 = Math.max(left, x(Math.min(marked.from, marked.to)));
            const x1 = Math.min(size.width, x(Math.max(marked.from, marked.to)));
            if (x1 >= left && x0 <= size.width) {
                c.fillStyle = palette.accent;
                c.globalAlpha = 0.14;
                c.fillRect(x0, axisHeight, Math.max(1, x1 - x0), size.height);
                c.globalAlpha = 1;
                c.fillRect(x0, axisHeight, 1.5, size.height);
                c.fillRect(x1 - 1.5, axisHeight, 1.5, size.height);
            }
        }
        c.restore();
        c.fillStyle = palette.panel;
        c.fillRect(0, 0, size.width, axisHeight);
        if (marked) {
            const x0 = Math.max(left, x(Math.min(marked.from, marked.to)));
            const x1 = Math.min(size.width, x(Math.max(marked.from, marked.to)));
            c.fillStyle = palette.accent;
            if (x1 > x0) c.fillRect(x0, axisHeight - 4, x1 - x0, 3);
        }
        c.fillStyle = palette.muted;
        c.font = labelFont;
        c.textAlign = "center";
        let after = left - 4;
        for (const [tx, text] of ticks) {
            const half = c.measureText(text).width / 2;
            if (tx - half <= after || tx + half >= size.width) continue;
            c.fillText(text, tx, axisHeight / 2);
            after = tx + half + 8;
        }
        c.textAlign = "start";
        c.strokeStyle = palette.line;
        c.beginPath();
        c.moveTo(0, axisHeight - 0.5);
        c.lineTo(size.width, axisHeight - 0.5);
        c.stroke();
        drawMini(palette);
    });

    const drawRow = (c: CanvasRenderingContext2D, row: Row, y: number, palette: Colors, hatched: CanvasPattern | string, pixel: number, from: number, to: number, x: (t: number) => number) => {
        const lanesTop = y + (row.marks.length > 0 ? markHeight : 0);
        c.font = canvasFont;
        for (let depth = 0; depth < row.depths; ++depth) {
            const laneY = lanesTop + depth * laneHeight;
            if (laneY > size.height || laneY + laneHeight < 0) continue;
            const lane = timeline.lanes[row.track]![depth]!;
            for (const d of drawn(lane, from, to, pixel)) {
                const x0 = Math.max(left, x(d.begin));
                const x1 = Math.min(size.width, Math.max(x(d.end), x0 + 1));
                const f = slices.function[d.slice]!;
                const match = matches?.[d.slice] === 1;
                c.fillStyle = match ? palette.match : matches ? palette.faded : colorOf(report.functionName(f));
                c.fillRect(x0, laneY, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 0.75 : 0)), laneHeight - 1.5);
                if (slices.merged[d.slice]! > 1 && x1 - x0 > 4) {
                    // Several merged into one: marked by a line below.
                    c.fillStyle = palette.muted;
                    c.fillRect(x0, laneY + laneHeight - 3, x1 - x0 - 1, 1.5);
                }
                if (d.slice === selected) {
                    c.strokeStyle = palette.accent;
                    c.lineWidth = 2;
                    c.strokeRect(x0 + 1, laneY + 1, Math.max(2, x1 - x0 - 2.5), laneHeight - 3.5);
                }
                if (x1 - x0 > 46 && d.count === 1) {
                    c.fillStyle = match ? palette.matchInk : matches ? palette.fadedInk : palette.functionInk;
                    c.fillText(fitting(c, report.functionName(f), x1 - x0 - 8, shortened), x0 + 4, laneY + laneHeight / 2 - 0.5);
                }
            }
        }
        // Where flow is unknown, an empty area must not look like idle time.
        const { marks } = timeline;
        let drawnTo = -Infinity;
        for (const m of row.gaps) {
            if (marks.end[m]! < from || marks.begin[m]! > to) continue;
            const x0 = Math.max(left, x(marks.begin[m]!));
            const x1 = Math.min(size.width, Math.max(x(marks.end[m]!), x0 + 3));
            // Slices too short to be drawn separately are one.
            if (x1 < drawnTo + 2) continue;
            drawnTo = x1;
            c.fillStyle = hatched;
            c.fillRect(x0, y, x1 - x0, row.height);
            c.fillStyle = palette.gap;
            c.fillRect(x0, y, 1, row.height);
            if (x1 - x0 > 3) c.fillRect(x1 - 1, y, 1, row.height);
        }
        let last = -Infinity;
        const first = lowerBound(row.marks.map((m) => marks.begin[m]!), from);
        for (let k = first; k < row.marks.length; ++k) {
            const m = row.marks[k]!;
            if (marks.begin[m]! > to) break;
            const mx = x(marks.begin[m]!);
            if (mx - last < 2 && !hits?.has(m)) continue;
            last = mx;
            drawMark(c, marks.kind[m]!, mx, y, palette, hits?.has(m) === true);
            // Written text is shown where there is room before the next mark.
            const next = row.marks[k + 1];
            const room = (next === undefined ? size.width : Math.min(size.width, x(marks.begin[next]!))) - mx - 12;
            if (marks.kind[m] !== MarkKind.userData || mx < left || room < 24) continue;
            c.font = labelFont;
            c.fillStyle = palette.ink;
            c.fillText(fitting(c, texts[marks.text[m]!] ?? "", room, shortened), mx + 7, y + 6);
            c.font = canvasFont;
        }
        row.series.forEach((s, k) => drawSeries(c, s, lanesTop + row.depths * laneHeight + k * seriesHeight, palette, from, to));
    };

    const drawMark = (c: CanvasRenderingContext2D, kind: number, x: number, y: number, palette: Colors, match: boolean) => {
        c.fillStyle = match ? palette.match : kind === MarkKind.exception ? palette.exception : palette.accent;
        c.beginPath();
        if (kind === MarkKind.exception) {
            c.moveTo(x - 4, y + 1);
            c.lineTo(x + 4, y + 1);
            c.lineTo(x, y + 9);
        } else if (kind === MarkKind.userData) c.arc(x, y + 5, 3.2, 0, 7);
        else if (kind === MarkKind.trigger) {
            c.moveTo(x, y);
            c.lineTo(x + 4, y + 5);
            c.lineTo(x, y + 10);
            c.lineTo(x - 4, y + 5);
        } else c.rect(x - 1, y + 1, 2, 9);
        c.fill();
    };

    const drawSeries = (c: CanvasRenderingContext2D, s: number, y: number, palette: Colors, from: number, to: number) => {
        const series = timeline.series[s]!;
        const bottom = y + seriesHeight - 4;
        const room = seriesHeight - 12;
        let most = 0;
        for (const v of series.value) if (v > most) most = v;
        const nothing = !(most > 0);
        if (nothing) most = 1;
        const columns = Math.max(1, Math.floor(width));
        const e = extremes(series.time, series.value, from, to, columns);
        const color = palette.series[s % palette.series.length]!;
        // The line is the middle of the values in each pixel, the band around it their range.
        c.fillStyle = color;
        c.strokeStyle = color;
        c.lineWidth = 1.25;
        let held = NaN;
        let drawing = false;
        const below = new Path2D();
        const band = new Path2D();
        c.beginPath();
        for (let k = 0; k < columns; ++k) {
            const empty = Number.isNaN(e.most[k]!);
            const high = empty ? held : e.most[k]!;
            const low = empty ? held : e.least[k]!;
            if (Number.isNaN(high)) continue;
            held = empty ? held : e.last[k]!;
            const top = bottom - (high / most) * room;
            const base = bottom - (Math.max(0, low) / most) * room;
            below.rect(left + k, base, 1, bottom - base);
            if (base - top > 1) band.rect(left + k, top, 1, base - top);
            if (drawing) c.lineTo(left + k, (top + base) / 2);
            else c.moveTo(left + k, (top + base) / 2);
            drawing = true;
        }
        c.globalAlpha = 0.16;
        c.fill(below);
        c.globalAlpha = 0.42;
        c.fill(band);
        c.globalAlpha = 1;
        c.stroke();
        c.font = labelFont;
        const greatest = nothing ? `0 ${series.unit} throughout` : `up to ${short(most)} ${series.unit}`;
        const wide = c.measureText(greatest).width + 8;
        c.fillStyle = palette.panel;
        c.globalAlpha = 0.85;
        c.fillRect(size.width - wide - 2, y, wide, 14);
        c.globalAlpha = 1;
        c.fillStyle = palette.muted;
        c.textAlign = "right";
        c.fillText(greatest, size.width - 6, y + 7);
        c.textAlign = "start";
    };

    const drawMini = (palette: Colors) => {
        const at = mini.current;
        if (!at) return;
        const c = begin(at, { width: at.clientWidth, height: at.clientHeight });
        if (!c) return;
        const w = at.clientWidth - left;
        const h = at.clientHeight;
        c.fillStyle = palette.series[0]!;
        c.globalAlpha = 0.55;
        // One shape: separate columns would show seams where pixels are fractional.
        c.beginPath();
        c.moveTo(left, h - 4);
        for (let px = 0; px <= w; ++px) {
            const y = h - 4 - density[Math.min(density.length - 1, Math.floor((px / w) * density.length))]! * (h - 10);
            c.lineTo(left + px, y);
            c.lineTo(left + px + 1, y);
        }
        c.lineTo(left + w, h - 4);
        c.fill();
        c.globalAlpha = 1;
        const { marks } = timeline;
        c.fillStyle = hatch(c, palette.gap, 4);
        for (const row of rows)
            for (const m of row.gaps) {
                const x0 = left + (marks.begin[m]! / total) * w;
                c.fillRect(x0, 2, Math.max(2, ((marks.end[m]! - marks.begin[m]!) / total) * w), h - 4);
            }
        const { from, to } = view.current;
        const a = left + (from / total) * w;
        const b = Math.max(a + 4, left + (to / total) * w);
        c.fillStyle = palette.background;
        c.globalAlpha = 0.66;
        c.fillRect(left, 0, a - left, h);
        c.fillRect(b, 0, left + w - b, h);
        c.globalAlpha = 1;
        if (range) {
            c.fillStyle = palette.accent;
            c.fillRect(left + (range.from / total) * w, h - 4, Math.max(2, ((range.to - range.from) / total) * w), 4);
        }
        c.strokeStyle = palette.accent;
        c.lineWidth = 1.5;
        c.strokeRect(a + 0.75, 0.75, Math.max(3, b - a - 1.5), h - 1.5);
        c.fillStyle = palette.muted;
        c.font = labelFont;
        c.textBaseline = "middle";
        if (!narrow) {
            c.fillText("whole timeline", 6, h / 2 - 8);
            c.fillText("height: calls", 6, h / 2 + 8);
        }
    };

    useEffect(draw, [size.width, size.height, rows, matches, hits, selected, theme, asTable, place.range]);
    useEffect(() => () => cancelAnimationFrame(motion.current), []);

    const bounded = (from: number, to: number) => {
        const length = Math.max(Math.min(to - from, total), Math.min(total, 1e-6 * total, 4));
        const start = Math.max(0, Math.min(from, total - length));
        return { from: start, to: start + length };
    };
    const settled = useRef(0);
    // The address has whole numbers; the whole timeline needs none.
    const inAddress = (v: { from: number; to: number }) =>
        v.from <= 0 && v.to >= total ? { from: undefined, to: undefined } : { from: Math.floor(v.from), to: Math.ceil(v.to) };
    useEffect(() => {
        const is = inAddress(goal.current);
        if (place.from === is.from && place.to === is.to) return;
        if (place.from !== undefined && place.to !== undefined) show(place.from, place.to, true);
        else show(0, total, true);
    }, [place.from, place.to]);
    useEffect(() => () => window.clearTimeout(settled.current), []);
    const show = (from: number, to: number, smooth: boolean) => {
        goal.current = bounded(from, to);
        cancelAnimationFrame(motion.current);
        const finish = () => {
            window.clearTimeout(settled.current);
            settled.current = window.setTimeout(() => {
                setSeen({ ...view.current });
                keep(inAddress(goal.current), true);
            }, 120);
        };
        if (!smooth || stillness()) {
            view.current = { ...goal.current };
            draw();
            finish();
            return;
        }
        // Each frame covers a part of the remaining distance, so that successive steps blend.
        const step = () => {
            const v = view.current;
            const g = goal.current;
            const near = Math.abs(v.from - g.from) + Math.abs(v.to - g.to) < (g.to - g.from) * 0.002;
            view.current = near ? { ...g } : { from: v.from + (g.from - v.from) * 0.35, to: v.to + (g.to - v.to) * 0.35 };
            draw();
            if (near) finish();
            else motion.current = requestAnimationFrame(step);
        };
        step();
    };
    const zoom = (factor: number, center: number, smooth = true) => {
        const { from, to } = goal.current;
        show(center - (center - from) * factor, center + (to - center) * factor, smooth);
    };
    const pan = (part: number, smooth = true) => {
        const { from, to } = goal.current;
        show(from + (to - from) * part, to + (to - from) * part, smooth);
    };
    const timeAt = (clientX: number) => {
        const box = frame.current!.getBoundingClientRect();
        const { from, to } = view.current;
        return from + ((clientX - box.left - left) / width) * (to - from);
    };
    const rowAt = (clientY: number) => {
        const y = clientY - frame.current!.getBoundingClientRect().top - axisHeight + frame.current!.scrollTop;
        const row = rows.find((r) => y >= r.y && y < r.y + r.height);
        return row && { row, inside: y - row.y };
    };
    const under = (event: MouseEvent) => {
        const place = rowAt(event.clientY);
        if (!place || event.clientX - frame.current!.getBoundingClientRect().left < left) return undefined;
        const { row, inside } = place;
        const t = timeAt(event.clientX);
        const tolerance = ((view.current.to - view.current.from) / width) * 2;
        const depth = Math.floor((inside - (row.marks.length > 0 ? markHeight : 0)) / laneHeight);
        const lane = timeline.lanes[row.track]?.[depth];
        const slice = lane && depth >= 0 ? sliceAt(lane, t, tolerance) : -1;
        const { marks } = timeline;
        const near = row.marks.find((m) => Math.abs(marks.begin[m]! - t) <= tolerance * 2);
        const mark = inside < markHeight && near !== undefined ? near : row.gaps.find((m) => marks.begin[m]! - tolerance <= t && t <= marks.end[m]! + tolerance);
        const k = Math.floor((inside - (row.marks.length > 0 ? markHeight : 0) - row.depths * laneHeight) / seriesHeight);
        return { slice, mark, series: k >= 0 && k < row.series.length ? row.series[k] : undefined, t };
    };

    useEffect(() => {
        const f = frame.current;
        if (!f) return;
        const wheel = (event: WheelEvent) => {
            event.preventDefault();
            if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / width, false);
            else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), timeAt(event.clientX), Math.abs(event.deltaY) >= 40);
        };
        f.addEventListener("wheel", wheel, { passive: false });
        return () => f.removeEventListener("wheel", wheel);
    });

    const revealSlice = (slice: number) => {
        const from = timeline.begin[slice]!;
        const length = timeline.length[slice]!;
        const { from: a, to: b } = goal.current;
        const seenWhole = b - a;
        if (from + length < a || from > b || length < seenWhole / 400) {
            const room = Math.min(total, Math.max(length * 3, from + length < a || from > b ? Math.min(seenWhole, length * 60) : length * 30));
            show(from + length / 2 - room / 2, from + length / 2 + room / 2, true);
        }
        scrollTo(slice);
    };
    const scrollTo = (slice: number) => {
        const row = rows.find((r) => r.track === timeline.track[slice]);
        const f = frame.current;
        if (!row || !f) return;
        const y = row.y + (row.marks.length > 0 ? markHeight : 0) + slices.depth[slice]! * laneHeight;
        if (y < f.scrollTop || y > f.scrollTop + f.clientHeight - axisHeight - laneHeight) f.scrollTop = Math.max(0, y - f.clientHeight / 2);
    };
    // A link may lead to a slice of a track that is further down.
    useEffect(() => {
        if (selected >= 0) scrollTo(selected);
    }, [size.height > 0, place.pick]);
    const choose = (slice: number) => {
        if (slice < 0) return;
        setSelected(slice);
        revealSlice(slice);
    };
    /// The slice next to the selected one on its lane, or its parent or child.
    const neighbour = (step: number, deeper: number): number => {
        if (selected < 0) {
            for (const lanes of timeline.lanes) for (const lane of lanes) {
                const i = lowerBound(lane.end, view.current.from);
                if (i < lane.begin.length) return lane.slice[i]!;
            }
            return -1;
        }
        const lane = timeline.lanes[timeline.track[selected]!]?.[slices.depth[selected]! + deeper];
        if (!lane) return -1;
        if (deeper === 0) return lane.slice[lowerBound(lane.begin, timeline.begin[selected]!) + step] ?? -1;
        const i = lowerBound(lane.end, timeline.begin[selected]! + (deeper > 0 ? 0 : timeline.length[selected]! / 2));
        const found = lane.slice[i];
        if (found === undefined) return -1;
        return lane.begin[i]! < timeline.begin[selected]! + timeline.length[selected]! ? found : -1;
    };
    const gaps = useMemo(() => rows.flatMap((row) => row.gaps).filter((m) => isGap(marks.kind[m]!)).sort((a, b) => marks.begin[a]! - marks.begin[b]!), [rows]);
    const gapAt = useRef(-1);
    const showGap = (at: number) => {
        gapAt.current = at;
        const m = gaps[at]!;
        const around = aroundMoment(timeline, marks.begin[m]!, marks.end[m]!);
        show(around.from, around.to, true);
        const row = rows.find((r) => r.gaps.includes(m));
        const f = frame.current;
        if (row && f && (row.y < f.scrollTop || row.y > f.scrollTop + f.clientHeight - axisHeight - laneHeight)) f.scrollTop = Math.max(0, row.y - 8);
        setGapSaid(`Gap ${gapAt.current + 1} of ${gaps.length}: ${(texts[marks.text[m]!] ?? "").replace(/^gap: /, "")}, ${marks.end[m]! > marks.begin[m]! ? `for ${time(marks.end[m]! - marks.begin[m]!)} from` : "at"} ${time(marks.begin[m]!)}`);
    };
    /// The gap after the one shown last; after the last gap, the first.
    const toGap = (step: number) => {
        if (gaps.length === 0) return;
        showGap(gapAt.current < 0 ? (step > 0 ? 0 : gaps.length - 1) : (gapAt.current + step + gaps.length) % gaps.length);
    };
    // The link of the summary; the gap may be on a track that is further down.
    useEffect(() => {
        const at = place.which === "longest gap" && size.height > 0 ? gaps.indexOf(longestGap(timeline)) : -1;
        if (at >= 0) showGap(at);
    }, [size.height > 0, place.which]);
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const center = (goal.current.from + goal.current.to) / 2;
        const far = event.shiftKey ? 0.8 : 0.2;
        const actions: Record<string, () => void> = {
            ArrowLeft: () => pan(-far),
            ArrowRight: () => pan(far),
            a: () => pan(-far),
            d: () => pan(far),
            "+": () => zoom(0.6, center),
            "=": () => zoom(0.6, center),
            w: () => zoom(0.6, center),
            "-": () => zoom(1 / 0.6, center),
            s: () => zoom(1 / 0.6, center),
            "0": () => show(0, total, true),
            Home: () => show(0, goal.current.to - goal.current.from, true),
            End: () => show(total - (goal.current.to - goal.current.from), total, true),
            n: () => choose(neighbour(1, 0)),
            p: () => choose(neighbour(-1, 0)),
            ArrowUp: () => choose(neighbour(0, -1)),
            ArrowDown: () => choose(neighbour(0, 1)),
            Enter: () => {
                if (selected >= 0) show(timeline.begin[selected]! - timeline.length[selected]! * 0.1, timeline.begin[selected]! + timeline.length[selected]! * 1.1, true);
            },
            r: () => slices.depth.length > 0 && keep({ range: rangeText(goal.current) }, true),
            g: () => toGap(1),
            G: () => toGap(-1),
            Escape: () => (selected >= 0 ? setSelected(-1) : show(0, total, true)),
        };
        const action = actions[event.key];
        if (!action) return;
        action();
        event.preventDefault();
        event.stopPropagation();
    };

    const trackName = (i: number): string => (tracks.parent[i]! >= 0 ? `${trackName(tracks.parent[i]!)} › ${tracks.name[i]}` : tracks.name[i]!);

    const drag = useRef<{ x: number; y: number; top: number; from: number; to: number; moved: boolean } | undefined>(undefined);
    const pinch = useRef(new Map<number, number>());
    return (
        <>
            <ViewHead title="Timeline" note={[axis.note, axis.uncertainty > 0 ? `Positions are off by at most ${time(axis.uncertainty)} for 95 % of what ran.` : "",
                timeline.part.resolution > 0 ? `Calls shorter than ${time(timeline.part.resolution)} are merged; a larger --max-size shows more.` : ""].filter(Boolean).join(" ")}>
                <Search label={written.length > 0 ? "Search functions and messages" : "Search functions"} value={query} onInput={setQuery} title="caller > function finds calls below a caller."
                    note={searchNote}
                    next={(step) => choose(nextOf(timeline, matched, selected, goal.current.from, step))} />
                {matched.length > 0 && (
                    <div class="segments" role="group" aria-label="Matches">
                        <button type="button" aria-label="Previous match" title="In the search box: Shift-Enter" onClick={() => choose(nextOf(timeline, matched, selected, goal.current.from, -1))}>‹</button>
                        <button type="button" aria-label="Next match" title="In the search box: Enter" onClick={() => choose(nextOf(timeline, matched, selected, goal.current.from, 1))}>›</button>
                    </div>
                )}
                <div class="segments" role="group" aria-label="Zoom">
                    <button type="button" onClick={() => zoom(1 / 0.5, (goal.current.from + goal.current.to) / 2)} aria-label="Zoom out">−</button>
                    <button type="button" onClick={() => show(0, total, true)}>All</button>
                    <button type="button" onClick={() => zoom(0.5, (goal.current.from + goal.current.to) / 2)} aria-label="Zoom in">+</button>
                </div>
                {alone.length > 1 && (
                    <Choice label="Track" value={only} options={[{ value: -1, name: `all ${tracks.name.length}` }, ...alone.map((i) => ({ value: i, name: trackName(i) }))]} onChange={setOnly} />
                )}
                {gaps.length > 0 && (
                    <div class="segments" role="group" aria-label="Gaps">
                        <button type="button" onClick={() => toGap(-1)} aria-label="Previous gap">‹</button>
                        <button type="button" onClick={() => toGap(1)} title="Next gap ( g )">{counted(gaps.length, "gap")} ›</button>
                    </div>
                )}
                {slices.depth.length > 0 && (
                    <button type="button" class="button" aria-pressed={selecting} title="Dragging selects a range: so it does with Shift, and on the scale" onClick={() => setSelecting(!selecting)}>
                        Select by dragging
                    </button>
                )}
                <button type="button" class="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
                    As a table
                </button>
                <Copy text={() => `${location.href.split("#")[0]}${hashOf({ view: "timeline", from: Math.floor(goal.current.from), to: Math.ceil(goal.current.to), range: place.range, ranges: place.ranges, pick: place.pick })}`} what="Copy a link" />
            </ViewHead>
            <p class="note" role="status">{gapSaid}</p>
            {slices.depth.length > 0 && <RangeBar timeline={timeline} place={place} keep={keep} seen={seen} />}
            {range && ranged && <RangeNote timeline={timeline} range={range} part={ranged} />}
            <div hidden={asTable}>
                <ul class="legend" aria-label="Marks">
                    {[...new Set(marks.kind)].sort().map((kind) => (
                        <li key={kind}>
                            <span class={`mark-sign mark-${kind}`} aria-hidden="true" />
                            {kind === MarkKind.gap ? "gap: what ran is not known" : kind === MarkKind.overflow ? "FIFO overflow: what ran is not known" : markKinds[kind]}
                        </li>
                    ))}
                    {slices.merged.some((m) => m > 1) && (
                        <li>
                            <span class="mark-sign merged" aria-hidden="true" />
                            stands for several
                        </li>
                    )}
                </ul>
                <canvas
                    ref={mini}
                    class="minimap"
                    aria-hidden="true"
                    onPointerDown={(event) => {
                        event.currentTarget.setPointerCapture(event.pointerId);
                        moveMini(event);
                    }}
                    onPointerMove={(event) => event.buttons & 1 && moveMini(event)}
                />
                <div
                    ref={frame}
                    class="timeline"
                    data-keys=""
                    role="application"
                    aria-roledescription="timeline"
                    aria-label={`Timeline of ${counted(tracks.name.length, "track")} and ${counted(slices.depth.length, "slice")}. As a table shows it in words.`}
                    aria-describedby="timeline-seen"
                    tabIndex={0}
                    style={{ height: `min(60vh, ${Math.max(160, height + axisHeight + 4)}px)` }}
                    onScroll={draw}
                    onKeyDown={onKeyDown}
                    onPointerDown={(event) => {
                        if (event.button !== 0) return;
                        pinch.current.set(event.pointerId, event.clientX);
                        const box = frame.current!.getBoundingClientRect();
                        if (slices.depth.length > 0 && (selecting || event.shiftKey || event.clientY - box.top < axisHeight) && event.clientX - box.left >= left && pinch.current.size === 1) {
                            frame.current!.setPointerCapture(event.pointerId);
                            const t = timeAt(event.clientX);
                            drawing.current = { from: t, to: t };
                        }
                        drag.current = { x: event.clientX, y: event.clientY, top: frame.current!.scrollTop, ...view.current, moved: false };
                    }}
                    onPointerMove={(event) => {
                        const d = drag.current;
                        if (drawing.current && event.buttons & 1) {
                            drawing.current.to = Math.max(0, Math.min(total, timeAt(event.clientX)));
                            d!.moved ||= Math.abs(event.clientX - d!.x) >= 5;
                            setTip(undefined);
                            draw();
                            return;
                        }
                        if (d && event.buttons & 1) {
                            if (pinch.current.size === 2) {
                                const [a, b] = [...pinch.current.values()] as [number, number];
                                pinch.current.set(event.pointerId, event.clientX);
                                const [a2, b2] = [...pinch.current.values()] as [number, number];
                                zoom(Math.max(8, Math.abs(a - b)) / Math.max(8, Math.abs(a2 - b2)), timeAt((a2 + b2) / 2), false);
                                d.moved = true;
                                return;
                            }
                            if (!d.moved && Math.abs(event.clientX - d.x) + Math.abs(event.clientY - d.y) < 5) return;
                            if (!d.moved) frame.current!.setPointerCapture(event.pointerId);
                            d.moved = true;
                            setTip(undefined);
                            const by = ((d.x - event.clientX) / width) * (d.to - d.from);
                            if (event.pointerType === "mouse") frame.current!.scrollTop = d.top + d.y - event.clientY;
                            show(d.from + by, d.to + by, false);
                            return;
                        }
                        const found = under(event);
                        const lines: string[] = [];
                        if (found && found.mark !== undefined) lines.push(`${markKinds[marks.kind[found.mark]!]}: ${texts[marks.text[found.mark]!]}`, marks.end[found.mark]! > marks.begin[found.mark]! ? `for ${time(marks.end[found.mark]! - marks.begin[found.mark]!)}` : `at ${time(marks.begin[found.mark]!)}`);
                        else if (found && found.slice >= 0) {
                            lines.push(shortened(nameOf(found.slice), 160), `${time(timeline.length[found.slice]!)} from ${time(timeline.begin[found.slice]!)}`);
                            if (slices.merged[found.slice]! > 1) lines.push(`represents ${counted(slices.merged[found.slice]!, "slice")}, of which this took most`);
                        } else if (found?.series !== undefined) {
                            const s = timeline.series[found.series]!;
                            const i = lowerBound(s.time, found.t + 1e-9) - 1;
                            if (i >= 0) lines.push(`${s.name}: ${grouped(s.value[i]!)} ${s.unit}`, `at ${time(s.time[i]!)}`);
                        }
                        setTip(lines.length === 0 || event.pointerType === "touch" ? undefined : { x: event.clientX, y: event.clientY, lines });
                    }}
                    onPointerUp={(event) => {
                        pinch.current.delete(event.pointerId);
                        const drawn = drawing.current;
                        drawing.current = undefined;
                        if (drawn && drag.current?.moved) {
                            const from = Math.max(0, Math.round(Math.min(drawn.from, drawn.to)));
                            keep({ range: rangeText({ from, to: Math.max(from + 1, Math.round(Math.max(drawn.from, drawn.to))) }) }, true);
                        }
                        window.setTimeout(() => (drag.current = undefined));
                    }}
                    onPointerCancel={(event) => {
                        pinch.current.delete(event.pointerId);
                        drag.current = drawing.current = undefined;
                    }}
                    onPointerLeave={() => setTip(undefined)}
                    onClick={(event) => {
                        if (!drag.current?.moved) setSelected(under(event)?.slice ?? -1);
                    }}
                    onDblClick={(event) => {
                        const slice = under(event)?.slice ?? -1;
                        if (slice >= 0) show(timeline.begin[slice]! - timeline.length[slice]! * 0.1, timeline.begin[slice]! + timeline.length[slice]! * 1.1, true);
                    }}
                >
                    <canvas ref={canvas} aria-hidden="true" style={{ width: size.width, height: size.height }} />
                    <div style={{ height: Math.max(0, height + axisHeight - size.height) }} />
                </div>
                <p class="note" id="timeline-seen" data-from={seen.from} data-to={seen.to}>
                    Showing {time(seen.from)} to {time(seen.to)} of {time(total)}. Wheel or + − zoom, drag or ← → move, double click shows a slice whole; Shift and drag, a drag on the scale, or r selects a range.
                </p>
            </div>
            {asTable && <Tables report={report} timeline={timeline} seen={seen} time={time} />}
            {selected >= 0 && !asTable && (
                <section class="detail" aria-label="The selected slice" aria-live="polite">
                    <h2 class="full-name">{nameOf(selected)}</h2>
                    <dl class="facts">
                        <div><dt>track</dt><dd>{tracks.name[timeline.track[selected]!]}</dd></div>
                        <div><dt>begins at</dt><dd>{time(timeline.begin[selected]!)}</dd></div>
                        <div><dt>takes</dt><dd>{time(timeline.length[selected]!)}</dd></div>
                        {slices.merged[selected]! > 1 && <div><dt>represents</dt><dd>{counted(slices.merged[selected]!, "slice")}, of which this took most</dd></div>}
                    </dl>
                    {slices.function[selected]! >= 0 && (
                        <p class="links">
                            <a class="button" href={hashOf({ view: "functions", function: slices.function[selected] })}>Function</a>
                            <button type="button" class="button" onClick={() => keep({ range: rangeText({ from: timeline.begin[selected]!, to: Math.max(timeline.begin[selected]! + 1, timeline.begin[selected]! + timeline.length[selected]!) }) }, true)}>Select its range</button>
                            {report.head.has.steps > 0 && <button type="button" class="button" onClick={() => void stepFrom(selected)}>Step from here</button>}
                            <Slower timeline={timeline} slice={selected} choose={choose} />
                        </p>
                    )}
                </section>
            )}
            {tip && (
                <div class="tip" style={{ left: Math.min(tip.x + 14, innerWidth - 330), top: tip.y + 18 }}>
                    <b>{tip.lines[0]}</b>
                    {tip.lines.slice(1).map((line) => (
                        <span key={line}>{line}</span>
                    ))}
                </div>
            )}
        </>
    );

    /// Steps from the beginning of a slice on, in its source.
    async function stepFrom(slice: number) {
        const { streams } = await report.steps();
        const names: string[] = [];
        for (let t = timeline.track[slice]!; t >= 0; t = tracks.parent[t]!) names.push(tracks.name[t]!);
        const stream = Math.max(0, streams.findIndex((s) => names.some((n) => n === s.part.source || n.endsWith(` on ${s.part.source}`))));
        const step = streams[stream]!.placeAtTime(timeline.begin[slice]!);
        go({ view: "steps", stream, step: Math.max(0, Math.min(step, streams[stream]!.size - 1)) });
    }
    function moveMini(event: PointerEvent) {
        const box = mini.current!.getBoundingClientRect();
        const center = ((event.clientX - box.left - left) / Math.max(1, box.width - left)) * total;
        const half = (goal.current.to - goal.current.from) / 2;
        show(center - half, center + half, false);
    }
}

/// Describes the visible range in words.
function Tables({ report, timeline, seen, time }: { report: ViewProps["report"]; timeline: Timeline; seen: { from: number; to: number }; time: (t: number) => string }) {
    const { slices, tracks, texts } = timeline.part;
    const { marks } = timeline;
    const inView = useMemo(() => {
        const out: number[] = [];
        for (let i = 0; i < timeline.begin.length; ++i) if (timeline.begin[i]! < seen.to && timeline.begin[i]! + timeline.length[i]! > seen.from) out.push(i);
        return out;
    }, [seen]);
    const marksInView = useMemo(() => Array.from(marks.begin.keys()).filter((m) => marks.begin[m]! <= seen.to && marks.end[m]! >= seen.from), [seen]);
    const columns = useMemo<Column[]>(
        () => [
            { id: "begin", name: "Begins", number: true, width: "130px", value: (i) => timeline.begin[i]!, show: (i) => time(timeline.begin[i]!) },
            { id: "length", name: "Takes", number: true, width: "130px", value: (i) => timeline.length[i]!, show: (i) => time(timeline.length[i]!) },
            { id: "name", name: "Function", width: "minmax(160px, 3fr)", value: (i) => report.functionName(slices.function[i]!), show: (i) => <Name name={report.functionName(slices.function[i]!)} /> },
            { id: "depth", name: "Depth", number: true, width: "90px", value: (i) => slices.depth[i]! },
            { id: "track", name: "Track", width: "minmax(100px, 1fr)", value: (i) => tracks.name[timeline.track[i]!] ?? "" },
        ],
        [],
    );
    const markColumns = useMemo<Column[]>(
        () => [
            { id: "begin", name: "At", number: true, width: "130px", value: (m) => marks.begin[m]!, show: (m) => time(marks.begin[m]!) },
            { id: "length", name: "Takes", number: true, width: "130px", value: (m) => marks.end[m]! - marks.begin[m]!, show: (m) => (marks.end[m]! > marks.begin[m]! ? time(marks.end[m]! - marks.begin[m]!) : "–") },
            { id: "kind", name: "Kind", width: "110px", value: (m) => markKinds[marks.kind[m]!] ?? "" },
            { id: "text", name: "What", width: "minmax(160px, 3fr)", value: (m) => texts[marks.text[m]!] ?? "" },
            { id: "track", name: "Track", width: "minmax(100px, 1fr)", value: (m) => tracks.name[marks.track[m]!] ?? "" },
        ],
        [],
    );
    return (
        <>
            <p class="note">What lies between {time(seen.from)} and {time(seen.to)}, as the picture is zoomed.</p>
            {marksInView.length > 0 && (
                <>
                    <h2>Gaps, exceptions and other marks</h2>
                    <DataTable label="Marks" columns={markColumns} rows={marksInView} height="30vh" />
                </>
            )}
            <h2>Slices</h2>
            <DataTable label="Slices" columns={columns} rows={inView} height="50vh" />
        </>
    );
}
