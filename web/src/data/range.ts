/// The flow within a range of the timeline: calls, costs and marks, clipped to the range.
import type { Timeline } from "./model";
import { lowerBound } from "./search";
import { Kind, type Tree } from "./tree";

/// In the unit of the timeline, since its beginning; `to` is not in it.
export interface Range {
    from: number;
    to: number;
}

/// `12-340`; undefined: the text is not a range.
export function rangeOf(text: string | undefined): Range | undefined {
    const found = /^(\d+)-(\d+)$/.exec(text ?? "");
    if (!found) return undefined;
    const from = Number(found[1]);
    const to = Number(found[2]);
    return to > from && Number.isSafeInteger(to) ? { from, to } : undefined;
}
export const rangeText = (r: Range) => `${Math.floor(r.from)}-${Math.ceil(r.to)}`;

/// Ranges that are kept: `12-340_500-600`.
export function rangesOf(text: string | undefined): Range[] {
    return (text ?? "").split("_").map(rangeOf).filter((r) => r !== undefined);
}
export const rangesText = (ranges: Range[]) => ranges.map(rangeText).join("_");

export interface InRange {
    /// Who called whom in the range; its only metric is the timeline's unit. Slices that stand for several calls are nodes
    /// of the kind `folded`.
    tree: Tree;
    merged: number; // slices that stand for several
    mergedLength: number; // what they cover
    known: number;  // time that slices of any kind cover, of all tracks
    lost: number; // what gaps cover
}

/// Slices of a track come by begin, then depth: each after those around it.
export function inRange(timeline: Timeline, range: Range, functions: number): InRange {
    const { begin, length, track, part } = timeline;
    const { depth, function: of, merged } = part.slices;
    const handlers = new Set(part.handlers);
    const parent = [-1];
    const name = [-1];
    const kind = [Kind.root as number];
    const calls = [0];
    const self = [0];
    // By node: its calls by function; 0: none. A map where that takes too much memory.
    const rows: Int32Array[] = [];
    const mostRows = 4e6 / (functions + 2);
    const nodes = new Map<number, number>();
    const out = { merged: 0, mergedLength: 0, known: 0, lost: 0 };
    // The calls that are open, by depth of the stack.
    const openNode: number[] = [];
    const openEnd: number[] = [];
    const openDepth: number[] = [];
    let last = -1;
    for (let i = 0; i < begin.length; ++i) {
        const first = begin[i]!;
        const end = first + length[i]!;
        if (first >= range.to) {
            // None of this track is left.
            i = lowerBound(track, track[i]! + 1) - 1;
            continue;
        }
        if (end <= range.from && !(first === end && first === range.from)) continue;
        if (track[i] !== last) openNode.length = openEnd.length = openDepth.length = 0;
        last = track[i]!;
        while (openDepth.length > 0 && openDepth[openDepth.length - 1]! >= depth[i]!) {
            openNode.pop();
            openEnd.pop();
            openDepth.pop();
        }
        const above = openNode.length > 0 ? openNode[openNode.length - 1]! : 0;
        // A slice of several calls may reach beyond the caller of the first call.
        const until = Math.min(end, range.to, openEnd.length > 0 ? openEnd[openEnd.length - 1]! : Infinity);
        const took = Math.max(0, until - Math.max(first, range.from));
        const several = merged[i]! > 1;
        const f = several ? -1 : of[i]!;
        const key = above * (functions + 2) + f + 1;
        const row = above < mostRows ? (rows[above] ??= new Int32Array(functions + 2)) : undefined;
        let node = row ? row[f + 1]! : (nodes.get(key) ?? 0);
        if (node === 0) {
            node = parent.length;
            if (row) row[f + 1] = node;
            else nodes.set(key, node);
            parent.push(above);
            name.push(f);
            kind.push(several ? Kind.folded : handlers.has(f) ? Kind.interrupt : Kind.call);
            calls.push(0);
            self.push(0);
        }
        self[node]! += took;
        if (above > 0) self[above]! -= took;
        else out.known += took;
        if (first >= range.from) calls[node]! += several ? merged[i]! : 1;
        if (several) {
            ++out.merged;
            out.mergedLength += took;
        }
        openNode.push(node);
        openEnd.push(until);
        openDepth.push(depth[i]!);
    }
    const { marks } = timeline;
    for (let m = 0; m < marks.kind.length; ++m)
        if (marks.kind[m] === 0 || marks.kind[m] === 5) out.lost += Math.max(0, Math.min(marks.end[m]!, range.to) - Math.max(marks.begin[m]!, range.from));
    return {
        ...out,
        tree: {
            parent: Int32Array.from(parent),
            function: Int32Array.from(name),
            kind: Uint8Array.from(kind),
            calls: Float64Array.from(calls),
            self: [Float64Array.from(self)],
        },
    };
}

/// Whether flow was lost in a range.
export function lostIn({ marks }: Timeline, range: Range): boolean {
    return marks.kind.some((kind, m) => (kind === 0 || kind === 5) && marks.begin[m]! < range.to && marks.end[m]! >= range.from);
}

/// How far the figures of a range can be trusted.
export function rangeWord(timeline: Timeline): "exact" | "at least" | "estimate" | "as shown" {
    const { bound } = timeline.part;
    if (bound === "") return "as shown";
    if (bound === "estimate") return "estimate";
    return bound === "exact" ? "exact" : "at least";
}

// ---- the single calls of a function, as `waymark calls` measures them

export interface Call {
    slice: number;
    caller: number; // function; -1: not known
    length: number;  // in the requested measure
    whole: boolean;
}

export interface CallOptions {
    callees: boolean;
    interrupts: boolean;
}

/// Where calls were cut: they touch a place where trace was lost or another context ran, or the ends of the trace.
function cuts(timeline: Timeline): (slice: number) => boolean {
    const { marks, begin, length, track, part } = timeline;
    const tracks = part.tracks.name.map(() => ({ begin: Infinity, end: 0, lost: [] as [number, number][] }));
    for (let i = 0; i < begin.length; ++i) {
        const t = tracks[track[i]!];
        if (t === undefined) continue;
        t.begin = Math.min(t.begin, begin[i]!);
        t.end = Math.max(t.end, begin[i]! + length[i]!);
    }
    const switches = new Set<number>();
    for (let m = 0; m < marks.kind.length; ++m) {
        if (marks.kind[m] === 2) switches.add(marks.begin[m]!);
        const t = tracks[marks.track[m]!];
        if (t !== undefined && (marks.kind[m] === 0 || marks.kind[m] === 5)) t.lost.push([marks.begin[m]!, marks.end[m]!]);
    }
    for (const t of tracks) {
        t.lost.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        for (let i = 1; i < t.lost.length; ++i) t.lost[i]![1] = Math.max(t.lost[i]![1], t.lost[i - 1]![1]);
    }
    const resumed = new Set(part.resumed);
    return (i) => {
        const t = tracks[track[i]!];
        const from = begin[i]!;
        const to = from + length[i]!;
        if (t === undefined) return false;
        if (to === t.end || (from === t.begin && (part.window || resumed.has(part.slices.function[i]!)))) return false;
        if (switches.has(from) || switches.has(to)) return false;
        let low = 0;
        let high = t.lost.length;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (t.lost[middle]![0] <= to) low = middle + 1;
            else high = middle;
        }
        return low === 0 || t.lost[low - 1]![1] < from;
    };
}

/// A part of a call: the function's own code, exceptions meanwhile, or one callee.
export const ownCode = -1;
export const allExceptions = -2;
type Parts = Map<number, number>;

/// Calls `each` for each slice of `f`, as the call that it was.
function walk(timeline: Timeline, f: number, options: CallOptions, each: (slice: number, caller: number, length: number, parts: Parts) => void) {
    const { length, track, part } = timeline;
    const { depth, function: of } = part.slices;
    const handlers = new Set(part.handlers);
    const open: { slice: number; callees: number; exceptions: number; parts: Parts | undefined }[] = [];
    const close = (to: number) => {
        while (open.length > 0 && depth[open[open.length - 1]!.slice]! >= to) {
            const done = open.pop()!;
            const i = done.slice;
            const all = length[i]!;
            const exceptions = handlers.has(of[i]!) ? all : Math.min(done.exceptions, all);
            let caller = -1;
            const up = open[open.length - 1];
            if (up !== undefined) {
                if (depth[up.slice]! + 1 === depth[i]!) caller = of[up.slice]!;
                up.exceptions += exceptions;
                up.callees += all - exceptions;
                if (up.parts && all !== exceptions) up.parts.set(of[i]!, (up.parts.get(of[i]!) ?? 0) + all - exceptions);
            }
            if (!done.parts) continue;
            const own = all - Math.min(all, done.callees + done.exceptions);
            let took = own;
            if (options.callees && options.interrupts) took = all;
            else if (options.callees) took += Math.min(all - own, done.callees);
            else if (options.interrupts) took += Math.min(all - own, done.exceptions);
            if (!options.callees) done.parts.clear();
            if (options.interrupts && done.exceptions !== 0) done.parts.set(allExceptions, done.exceptions);
            done.parts.set(ownCode, own);
            each(i, caller, took, done.parts);
        }
    };
    for (let i = 0; i < length.length; ++i) {
        const other = open.length > 0 && track[open[open.length - 1]!.slice] !== track[i];
        close(other ? 0 : depth[i]!);
        open.push({ slice: i, callees: 0, exceptions: 0, parts: of[i] === f ? new Map() : undefined });
    }
    close(0);
}

/// The calls of `f` on the timeline, the slowest first, and how many calls are merged into slices of `f`.
export function callsOf(timeline: Timeline, f: number, options: CallOptions): { calls: Call[]; merged: number } {
    const { begin, track, part } = timeline;
    const { merged } = part.slices;
    const whole = cuts(timeline);
    const calls: Call[] = [];
    let several = 0;
    walk(timeline, f, options, (slice, caller, length) => {
        if (merged[slice] !== 1) several += merged[slice]!;
        else calls.push({ slice, caller, length, whole: whole(slice) });
    });
    calls.sort((a, b) => b.length - a.length || track[a.slice]! - track[b.slice]! || begin[a.slice]! - begin[b.slice]!);
    return { calls, merged: several };
}

/// Of the 100 first of `calls`: the part with the largest share of the call's excess over the average of whole calls,
/// and that share, by slice.
export function explained(timeline: Timeline, f: number, options: CallOptions, calls: Call[]): Map<number, { part: number; more: number }> {
    const out = new Map<number, { part: number; more: number }>();
    const whole = new Set(calls.filter((c) => c.whole).map((c) => c.slice));
    if (whole.size === 0) return out;
    const wanted = new Map<number, Parts>(calls.slice(0, 100).map((c) => [c.slice, new Map()]));
    const sums: Parts = new Map();
    walk(timeline, f, options, (slice, _, __, parts) => {
        if (wanted.has(slice)) wanted.set(slice, parts);
        if (whole.has(slice)) for (const [part, took] of parts) sums.set(part, (sums.get(part) ?? 0) + took);
    });
    // Among equal parts: the first callee, then exceptions, then the function itself.
    for (const [slice, parts] of wanted) {
        let most = 0;
        let which = ownCode;
        const rank = (part: number) => (part === ownCode ? 2 : part === allExceptions ? 1 : 0);
        for (const [part, took] of [...parts].sort(([a], [b]) => rank(a) - rank(b) || a - b)) {
            const more = took - Math.floor((sums.get(part) ?? 0) / whole.size);
            if (more <= most) continue;
            most = more;
            which = part;
        }
        if (most > 0) out.set(slice, { part: which, more: most });
    }
    return out;
}

export interface Durations {
    least: number;
    median: number;
    p95: number;
    p99: number;
    most: number;
}

/// For ascending lengths; there is at least one.
export function durations(sorted: number[]): Durations {
    // The shortest length that this part of the calls do not exceed.
    const percentile = (perCent: number) => sorted[Math.floor((sorted.length * perCent + 99) / 100) - 1]!;
    return { least: sorted[0]!, median: percentile(50), p95: percentile(95), p99: percentile(99), most: sorted[sorted.length - 1]! };
}

export interface Bucket {
    first: number;
    last: number;
    calls: number;
}

/// Of equal widths, or where lengths differ by more than a factor of 16, of doubling ones.
export function histogram(sorted: number[]): Bucket[] {
    const least = sorted[0]!;
    const most = sorted[sorted.length - 1]!;
    const out: Bucket[] = [];
    const bits = (n: number) => (n < 1 ? 0 : Math.floor(Math.log2(n)) + 1);
    if (Math.floor(most / 16) > least) {
        for (let b = bits(least); b <= bits(most); ++b) out.push(b === 0 ? { first: 0, last: 0, calls: 0 } : { first: 2 ** (b - 1), last: 2 ** b - 1, calls: 0 });
        for (const length of sorted) ++out[bits(length) - bits(least)]!.calls;
        return out;
    }
    const width = Math.floor((most - least) / 10) + 1;
    for (let i = 0; i <= Math.floor((most - least) / width); ++i) out.push({ first: least + i * width, last: least + i * width + width - 1, calls: 0 });
    for (const length of sorted) ++out[Math.floor((length - least) / width)]!.calls;
    return out;
}
