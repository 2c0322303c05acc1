/// Selects the parts of a long timeline to draw at a given scale: the work is bounded by pixels, not by slices.
import { lowerBound } from "./search";

/// Slices of one track at one depth: they do not overlap, so both ends ascend.
export interface Lane {
    begin: Float64Array;
    end: Float64Array;
    slice: Int32Array;
}

export interface Columns {
    begin: Float64Array;
    length: Float64Array;
    track: Float64Array;
    depth: ArrayLike<number>;
}

/// Lanes by track and depth. Slices need not be in order.
export function lanes(slices: Columns, tracks: number): Lane[][] {
    const members: number[][][] = Array.from({ length: tracks }, () => []);
    for (let i = 0; i < slices.begin.length; ++i) {
        const track = members[slices.track[i]!];
        if (track === undefined) continue;
        const depth = slices.depth[i]!;
        while (track.length <= depth) track.push([]);
        track[depth]!.push(i);
    }
    return members.map((depths) =>
        depths.map((list) => {
            for (let k = 1; k < list.length; ++k)
                if (slices.begin[list[k]!]! < slices.begin[list[k - 1]!]!) {
                    list.sort((a, b) => slices.begin[a]! - slices.begin[b]!);
                    break;
                }
            const lane: Lane = {
                begin: new Float64Array(list.length),
                end: new Float64Array(list.length),
                slice: Int32Array.from(list),
            };
            let last = -Infinity;
            list.forEach((i, k) => {
                lane.begin[k] = slices.begin[i]!;
                last = lane.end[k] = Math.max(last, slices.begin[i]! + slices.length[i]!);
            });
            return lane;
        }),
    );
}

/// A slice, or several that are too short to be drawn separately.
export interface Drawn {
    begin: number;
    end: number;
    slice: number; // the longest of those examined
    count: number;
}

/// The parts of `lane` visible in [from, to) if a pixel is `pixel` long. At most two per pixel.
export function drawn(lane: Lane, from: number, to: number, pixel: number): Drawn[] {
    const out: Drawn[] = [];
    // Ends ascend: find the first that extends into the view.
    let i = lowerBound(lane.end, from);
    while (i < lane.begin.length && lane.begin[i]! < to) {
        const begin = lane.begin[i]!;
        const end = lane.end[i]!;
        if (end - begin >= pixel) {
            out.push({ begin, end, slice: lane.slice[i]!, count: 1 });
            ++i;
            continue;
        }
        // Merge all that begin within this pixel, up to the first that is wide enough to draw alone.
        const after = lowerBound(lane.begin, Math.min(begin + pixel, to), i + 1);
        let last = after - 1;
        if (last > i && lane.end[last]! - lane.begin[last]! >= pixel) --last;
        // If there are many, examining some of them suffices.
        const step = Math.max(1, Math.floor((last - i) / 32));
        let longest = i;
        for (let k = i; k <= last; k += step) if (lane.end[k]! - lane.begin[k]! > lane.end[longest]! - lane.begin[longest]!) longest = k;
        out.push({ begin, end: Math.max(lane.end[last]!, begin), slice: lane.slice[longest]!, count: last - i + 1 });
        i = last + 1;
    }
    return out;
}

/// The slice of `lane` at a time, or the nearest within `tolerance`; -1: none.
export function sliceAt(lane: Lane, time: number, tolerance: number): number {
    const i = lowerBound(lane.end, time);
    if (i < lane.begin.length && lane.begin[i]! <= time) return lane.slice[i]!;
    const ahead = i < lane.begin.length ? lane.begin[i]! - time : Infinity;
    const behind = i > 0 ? time - lane.end[i - 1]! : Infinity;
    if (Math.min(ahead, behind) > tolerance) return -1;
    return lane.slice[ahead < behind ? i : i - 1]!;
}

/// The least, greatest and last value in each of `columns` parts of [from, to); NaN where a part has no point. A value
/// holds until the next point.
export function extremes(
    time: Float64Array,
    value: Float64Array,
    from: number,
    to: number,
    columns: number,
): { least: Float64Array; most: Float64Array; last: Float64Array } {
    const least = new Float64Array(columns).fill(NaN);
    const most = new Float64Array(columns).fill(NaN);
    const last = new Float64Array(columns).fill(NaN);
    const step = (to - from) / columns;
    let i = Math.max(0, lowerBound(time, from) - 1);
    for (let column = 0; column < columns; ++column) {
        const end = from + step * (column + 1);
        while (i + 1 < time.length && time[i + 1]! <= from + step * column) ++i;
        for (let k = i; k < time.length && time[k]! < end; ++k) {
            const v = value[k]!;
            if (!(least[column]! <= v)) least[column] = v;
            if (!(most[column]! >= v)) most[column] = v;
            last[column] = v;
            i = k;
        }
    }
    return { least, most, last };
}
