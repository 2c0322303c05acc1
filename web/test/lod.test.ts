import { describe, expect, it } from "vitest";

import { drawn, extremes, lanes, sliceAt } from "../src/data/lod";

function random(seed: number) {
    return () => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32);
}

/// A lane of slices that do not overlap.
function lane(count: number, next: () => number) {
    const begin: number[] = [];
    const length: number[] = [];
    let at = 0;
    for (let i = 0; i < count; ++i) {
        at += next() < 0.5 ? 0 : next() * 20;
        begin.push(at);
        length.push(next() < 0.1 ? next() * 400 : next() * 3);
        at += length[i]!;
    }
    const columns = { begin: Float64Array.from(begin), length: Float64Array.from(length), track: new Float64Array(count), depth: begin.map(() => 0) };
    return { lane: lanes(columns, 1)[0]![0]!, end: at };
}

describe("level of detail", () => {
    it("draws what is in view, and each slice once", () => {
        const next = random(7);
        for (let round = 0; round < 200; ++round) {
            const { lane: l, end } = lane(300, next);
            const from = next() * end;
            const to = from + next() * (end - from) + 1;
            const pixel = (to - from) / 500;
            const got = drawn(l, from, to, pixel);
            const inView = [...l.begin.keys()].filter((i) => l.end[i]! >= from && l.begin[i]! < to);
            expect(got.reduce((n, d) => n + d.count, 0)).toBe(inView.length);
            expect(got.length).toBeLessThanOrEqual(2 * 500 + 2);
            for (let i = 1; i < got.length; ++i) expect(got[i]!.begin).toBeGreaterThanOrEqual(got[i - 1]!.end);
            // One that is wide enough is drawn as itself.
            const alone = new Set(got.filter((d) => d.count === 1).map((d) => d.slice));
            for (const i of inView) if (l.end[i]! - l.begin[i]! >= pixel) expect(alone.has(l.slice[i]!)).toBe(true);
        }
    });
    it("is bounded by pixels, not by slices", () => {
        const { lane: l, end } = lane(200000, random(3));
        expect(drawn(l, 0, end, end / 1000).length).toBeLessThan(2002);
    });
    it("sorts slices by track, depth and begin", () => {
        const all = lanes({ begin: Float64Array.of(9, 1, 2, 0), length: Float64Array.of(1, 8, 1, 9), track: Float64Array.of(1, 0, 0, 1), depth: [0, 0, 1, 2] }, 2);
        expect(all.map((t) => t.map((d) => [...d.slice]))).toEqual([[[1], [2]], [[0], [], [3]]]);
    });
    it("finds a slice, or the nearest", () => {
        const l = lanes({ begin: Float64Array.of(10, 30), length: Float64Array.of(5, 5), track: new Float64Array(2), depth: [0, 0] }, 1)[0]![0]!;
        expect([9, 10, 12, 16, 20, 29, 40].map((t) => sliceAt(l, t, 2))).toEqual([0, 0, 0, 0, -1, 1, -1]);
    });
    it("keeps extremes of a series", () => {
        const next = random(11);
        const time = Float64Array.from({ length: 5000 }, (_, i) => i);
        const value = time.map(() => next());
        const e = extremes(time, value, 0, 5000, 100);
        for (let k = 0; k < 100; ++k) {
            const part = value.slice(k * 50, k * 50 + 50);
            expect(e.most[k]).toBeGreaterThanOrEqual(Math.max(...part));
            expect(e.least[k]).toBeLessThanOrEqual(Math.min(...part));
        }
        expect(extremes(Float64Array.of(5), Float64Array.of(1), 0, 4, 4).most.every(Number.isNaN)).toBe(true);
    });
});
