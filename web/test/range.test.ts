import { describe, expect, it } from "vitest";

import { timelineOf } from "../src/data/model";
import { callsOf, durations, explained, histogram, inRange, rangeOf, rangesOf, rangesText } from "../src/data/range";
import { costsByFunction, inclusive, together } from "../src/data/tree";
import type { TimelinePart } from "../src/data/wire";

type SliceRow = [begin: number, end: number, track: number, f: number, depth: number, merged?: number];

function made(slices: SliceRow[], marks: [number, number, number, number][] = [], handlers: number[] = []) {
    const differences = (column: number[]) => column.map((v, i) => v - (i === 0 ? 0 : column[i - 1]!));
    const part: TimelinePart = {
        axis: { unit: "instructions", ticksPerSecond: 0, begin: "0", length: 1000, uncertainty: 0, note: "" },
        resolution: 0,
        window: false,
        handlers,
        resumed: [],
        bound: "exact",
        tracks: { name: ["a", "b"], parent: [-1, -1] },
        slices: {
            begin: differences(slices.map((s) => s[0])),
            length: slices.map((s) => s[1] - s[0]),
            track: differences(slices.map((s) => s[2])),
            function: slices.map((s) => s[3]),
            depth: slices.map((s) => s[4]),
            merged: slices.map((s) => s[5] ?? 1),
        },
        marks: { begin: differences(marks.map((m) => m[0])), length: marks.map((m) => m[1] - m[0]), track: marks.map((m) => m[2]), kind: marks.map((m) => m[3]), text: marks.map(() => 0) },
        texts: [""],
        series: [],
    };
    return timelineOf(part);
}

describe("ranges", () => {
    it("are read and written", () => {
        expect(rangeOf("12-340")).toEqual({ from: 12, to: 340 });
        for (const wrong of [undefined, "", "12", "5-5", "9-3", "-1-5", "1.5-2", "a-b"]) expect(rangeOf(wrong)).toBeUndefined();
        expect(rangesText(rangesOf("1-2_x_30-40"))).toBe("1-2_30-40");
    });
    it("count what ran within, against a count of each step", () => {
        let random = 1;
        const chance = (n: number) => (random = (random * 48271) % 2147483647) % n;
        for (let time = 0; time < 300; ++time) {
            // The stack at each step, and the slices made from it.
            const slices: SliceRow[] = [];
            const running: number[][] = [];
            const open: SliceRow[] = [];
            for (let t = 0; t < 60; ++t) {
                while (open.length > 0 && chance(4) === 0) open.pop()![1] = t;
                while (open.length < 5 && chance(3) === 0) {
                    const slice: SliceRow = [t, 60, 0, chance(3), open.length];
                    open.push(slice);
                    slices.push(slice);
                }
                running.push(open.map((s) => s[3]));
            }
            const from = chance(60);
            const to = from + 1 + chance(60 - from);
            const part = inRange(made(slices), { from, to }, 3);
            const { self, total, calls } = costsByFunction(part.tree, 0, 3);
            for (let f = 0; f < 3; ++f) {
                expect(self[f]).toBe(running.slice(from, to).filter((stack) => stack[stack.length - 1] === f).length);
                expect(total[f]).toBe(running.slice(from, to).filter((stack) => stack.includes(f)).length);
                expect(calls[f]).toBe(slices.filter((s) => s[3] === f && s[0] >= from && s[0] < to).length);
            }
            expect(part.known).toBe(running.slice(from, to).filter((stack) => stack.length > 0).length);
        }
    });
    it("keep tracks apart, and what stands for several", () => {
        const timeline = made([[0, 100, 0, 0, 0], [10, 60, 0, 1, 1, 7], [0, 50, 1, 2, 0]], [[20, 45, 1, 0], [90, 95, 0, 1]]);
        const part = inRange(timeline, { from: 40, to: 70 }, 3);
        expect(part).toMatchObject({ merged: 1, mergedLength: 20, known: 40, lost: 5 });
        expect([...costsByFunction(part.tree, 0, 3).self]).toEqual([10, 0, 10]);
    });
});

describe("single calls", () => {
    it("are measured with and without what they call", () => {
        const timeline = made([[0, 100, 0, 0, 0], [10, 60, 0, 1, 1], [20, 30, 0, 2, 2], [70, 80, 0, 1, 1]], [], [2]);
        const lengths = (callees: boolean, interrupts: boolean) => callsOf(timeline, 1, { callees, interrupts }).calls.map((c) => c.length);
        expect(lengths(true, true)).toEqual([50, 10]);
        expect(lengths(true, false)).toEqual([40, 10]);
        expect(lengths(false, true)).toEqual([50, 10]);
        expect(lengths(false, false)).toEqual([40, 10]);
        expect(callsOf(timeline, 0, { callees: false, interrupts: false }).calls[0]).toMatchObject({ length: 40, caller: -1, whole: false });
    });
    it("say what made the slow ones slow", () => {
        // A callee that takes 10 and then 50, with an interrupt of 5 in the first.
        const timeline = made([[0, 20, 0, 0, 0], [5, 15, 0, 1, 1], [6, 11, 0, 2, 2], [30, 90, 0, 0, 0], [35, 85, 0, 1, 1], [95, 99, 0, 1, 0]], [], [2]);
        const { calls } = callsOf(timeline, 0, { callees: true, interrupts: true });
        expect(calls.map((c) => c.length)).toEqual([60, 20]);
        const why = explained(timeline, 0, { callees: true, interrupts: true }, calls);
        // On average the callee takes (5 + 50) / 2, without the interrupt's time.
        expect(why.get(calls[0]!.slice)).toEqual({ part: 1, more: 23 });
        expect(why.get(calls[1]!.slice)).toEqual({ part: -2, more: 3 });
    });
    it("are not whole where trace was lost", () => {
        const timeline = made([[0, 10, 0, 0, 0], [20, 30, 0, 0, 0], [40, 50, 0, 0, 0], [90, 99, 0, 1, 0]], [[25, 27, 0, 0]]);
        expect(callsOf(timeline, 0, { callees: true, interrupts: true }).calls.map((c) => c.whole)).toEqual([true, false, true]);
    });
    it("have percentiles and bars", () => {
        expect(durations([7])).toEqual({ least: 7, median: 7, p95: 7, p99: 7, most: 7 });
        expect(durations(Array.from({ length: 200 }, (_, i) => i + 1))).toEqual({ least: 1, median: 100, p95: 190, p99: 198, most: 200 });
        expect(histogram([5, 5, 6, 25]).map((b) => [b.first, b.last, b.calls])).toEqual([[5, 7, 3], [8, 10, 0], [11, 13, 0], [14, 16, 0], [17, 19, 0], [20, 22, 0], [23, 25, 1]]);
        expect(histogram([0, 1, 3, 64]).map((b) => [b.first, b.last, b.calls])).toEqual([[0, 0, 1], [1, 1, 1], [2, 3, 1], [4, 7, 0], [8, 15, 0], [16, 31, 0], [32, 63, 0], [64, 127, 1]]);
    });
});

describe("two trees", () => {
    it("are one, with both costs", () => {
        const one = inRange(made([[0, 100, 0, 0, 0], [10, 60, 0, 1, 1]]), { from: 0, to: 100 }, 3).tree;
        const other = inRange(made([[0, 100, 0, 0, 0], [10, 30, 0, 1, 1], [40, 90, 0, 2, 1]]), { from: 0, to: 100 }, 3).tree;
        const both = together([one, other], 0, 3);
        expect([...both.function]).toEqual([-1, 0, 1, 2]);
        expect([...inclusive(both, 0)]).toEqual([100, 100, 50, 0]);
        expect([...inclusive(both, 1)]).toEqual([100, 100, 20, 50]);
        expect([...both.self[1]!]).toEqual([0, 30, 20, 50]);
    });
});
