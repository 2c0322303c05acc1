/// The slices of the timeline that a search finds, and the next one.
import type { Timeline } from "./model";
import { matcher } from "./search";

/// A function, or with `caller > function` one that was called below another, directly or not. By slice; undefined: nothing is searched for.
export function matchedSlices(timeline: Timeline, names: string[], query: string): Uint8Array | undefined {
    const parts = (/^\s*\/.+\/\s*$/.test(query) ? [query] : query.split(" > ")).map(matcher).filter((is) => is !== undefined);
    if (parts.length === 0) return undefined;
    const found = parts.map((is) => names.map(is));
    const last = parts.length - 1;
    const { depth, function: of } = timeline.part.slices;
    const marked = new Uint8Array(of.length);
    // Calls in progress: how many of the callers are among them, in their order.
    const open: { depth: number; callers: number }[] = [];
    let track = -1;
    for (let i = 0; i < marked.length; ++i) {
        if (timeline.track[i] !== track) open.length = 0;
        track = timeline.track[i]!;
        while (open.length > 0 && open[open.length - 1]!.depth >= depth[i]!) open.pop();
        const callers = open[open.length - 1]?.callers ?? 0;
        const f = of[i]!;
        if (callers === last && found[last]![f]) marked[i] = 1;
        open.push({ depth: depth[i]!, callers: callers + (callers < last && found[callers]![f] ? 1 : 0) });
    }
    return marked;
}

/// The marked slices in the order in which they begin, callers before their callees.
export function inOrder(timeline: Timeline, marked: Uint8Array, isShown: (track: number) => boolean): number[] {
    const out: number[] = [];
    marked.forEach((is, i) => is === 1 && isShown(timeline.track[i]!) && out.push(i));
    const { depth } = timeline.part.slices;
    return out.sort((a, b) => timeline.begin[a]! - timeline.begin[b]! || timeline.track[a]! - timeline.track[b]! || depth[a]! - depth[b]!);
}

/// The one after the selected slice, or before it; none selected: the first that begins at `time` or later, or the last
/// before it. After the last comes the first.
export function nextOf(timeline: Timeline, list: number[], selected: number, time: number, step: 1 | -1): number {
    if (list.length === 0) return -1;
    const at = list.indexOf(selected);
    if (at >= 0) return list[(at + step + list.length) % list.length]!;
    const from = selected >= 0 ? timeline.begin[selected]! : time;
    const behind = list.findIndex((i) => timeline.begin[i]! >= from);
    const next = behind < 0 ? list.length : behind;
    return list[(step === 1 ? next : next - 1 + list.length) % list.length]!;
}
