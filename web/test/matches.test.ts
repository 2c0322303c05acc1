import { describe, expect, it } from "vitest";

import { inOrder, matchedSlices, nextOf } from "../src/data/matches";
import { type Timeline, timelineOf } from "../src/data/model";
import { beganIn, contextBeganIn } from "../src/data/threads";
import { inclusive, type Tree, withoutContexts } from "../src/data/tree";
import type { TimelinePart } from "../src/data/wire";

const names = ["main", "parse", "malloc", "print"];
const differences = (column: number[]) => column.map((v, i) => v - (i === 0 ? 0 : column[i - 1]!));
function made(slices: [begin: number, end: number, track: number, f: number, depth: number][]): Timeline {
    const part: TimelinePart = {
        axis: { unit: "instructions", ticksPerSecond: 0, begin: "0", length: 1000, uncertainty: 0, note: "" },
        resolution: 0,
        window: false,
        handlers: [],
        resumed: [],
        bound: "exact",
        tracks: { name: ["a", "b"], parent: [-1, -1] },
        slices: {
            begin: differences(slices.map((s) => s[0])),
            length: slices.map((s) => s[1] - s[0]),
            track: differences(slices.map((s) => s[2])),
            function: slices.map((s) => s[3]),
            depth: slices.map((s) => s[4]),
            merged: slices.map(() => 1),
        },
        marks: { begin: [], length: [], track: [], kind: [], text: [] },
        texts: [""],
        series: [],
    };
    return timelineOf(part);
}
// main calls parse, which calls malloc; then malloc, and print, which calls malloc. In track b malloc alone.
const timeline = made([
    [0, 100, 0, 0, 0],
    [10, 40, 0, 1, 1],
    [20, 30, 0, 2, 2],
    [50, 55, 0, 2, 1],
    [60, 90, 0, 3, 1],
    [70, 80, 0, 2, 2],
    [25, 28, 1, 2, 0],
]);
const all = () => true;
const found = (query: string, isShown = all as (track: number) => boolean) => {
    const marked = matchedSlices(timeline, names, query);
    return marked && inOrder(timeline, marked, isShown);
};

describe("a search of the timeline", () => {
    it("finds slices in the order in which they begin", () => {
        expect(found("malloc")).toEqual([2, 6, 3, 5]);
        expect(found("malloc", (track) => track === 0)).toEqual([2, 3, 5]);
        expect(found("/^(parse|print)$/")).toEqual([1, 4]);
        expect(found("nothing like it")).toEqual([]);
        expect(found("  ")).toBeUndefined();
    });
    it("finds calls below callers", () => {
        expect(found("parse > malloc")).toEqual([2]);
        expect(found("main > malloc")).toEqual([2, 3, 5]);
        expect(found("main > print > malloc")).toEqual([5]);
        expect(found("print > parse > malloc")).toEqual([]);
        expect(found("malloc > malloc")).toEqual([]);
        expect(found("/print > malloc/")).toEqual([]);
    });
    it("goes on to the next, around the ends", () => {
        const list = found("malloc")!;
        let at = -1;
        const walk = (step: 1 | -1) => (at = nextOf(timeline, list, at, 0, step));
        expect([walk(1), walk(1), walk(1), walk(1), walk(1)]).toEqual([2, 6, 3, 5, 2]);
        expect([walk(-1), walk(-1)]).toEqual([5, 3]);
    });
    it("begins at what is seen, or at what is selected", () => {
        const list = found("malloc")!;
        expect(nextOf(timeline, list, -1, 45, 1)).toBe(3);
        expect(nextOf(timeline, list, -1, 45, -1)).toBe(6);
        expect(nextOf(timeline, list, -1, 95, 1)).toBe(2);
        expect(nextOf(timeline, list, 4, 0, 1)).toBe(5);
        expect(nextOf(timeline, list, 4, 0, -1)).toBe(3);
        expect(nextOf(timeline, [], -1, 0, 1)).toBe(-1);
    });
});

describe("contexts merged", () => {
    // Two threads that both call main, which calls parse; one of them calls print too. Root kinds are contexts.
    const tree: Tree = {
        parent: Int32Array.from([-1, 0, 1, 2, 0, 4, 5, 5]),
        function: Int32Array.from([-1, 7, 0, 1, 8, 0, 1, 3]),
        kind: Uint8Array.from([0, 0, 1, 1, 0, 1, 1, 1]),
        calls: Float64Array.from([0, 0, 1, 3, 0, 1, 2, 5]),
        self: [Float64Array.from([0, 2, 10, 20, 3, 100, 200, 400]), Float64Array.from([0, 0, 1, 1, 0, 1, 1, 1])],
    };
    it("have each call once, and nothing is lost", () => {
        const one = withoutContexts(tree, 10);
        expect([...one.function]).toEqual([-1, 0, 1, 3]);
        expect([...one.parent]).toEqual([-1, 0, 1, 1]);
        expect([...one.calls]).toEqual([0, 2, 5, 5]);
        expect([...one.self[0]!]).toEqual([5, 110, 220, 400]);
        expect(inclusive(one, 0)[0]).toBe(inclusive(tree, 0)[0]);
        expect(inclusive(one, 1)[0]).toBe(inclusive(tree, 1)[0]);
    });
});

describe("a thread is called by what it began in", () => {
    const functions = { name: ["_start", "__libc_start_main", "main", "init", "__clone", "start_thread", "work", "on_irq"], own: [1, 0, 1, 0, 0, 0, 1, 1] };
    // Track a: _start → __libc_start_main → init, main (→ work). Track b: __clone → start_thread → a handler, init, work.
    const timeline = made([
        [0, 100, 0, 0, 0],
        [1, 99, 0, 1, 1],
        [2, 60, 0, 3, 2],
        [60, 90, 0, 2, 2],
        [61, 89, 0, 6, 3],
        [0, 50, 1, 4, 0],
        [1, 50, 1, 5, 1],
        [2, 40, 1, 7, 2],
        [40, 42, 1, 3, 2],
        [42, 48, 1, 6, 2],
    ]);
    it("on the timeline", () => {
        timeline.part.handlers = [7];
        expect(beganIn(timeline, functions)).toEqual([2, 6]);
        // Without code of its own: the longest.
        expect(beganIn(timeline, { ...functions, own: functions.name.map(() => 0) })).toEqual([3, 6]);
        expect(beganIn(made([[0, 10, 0, 4, 0]]), functions)).toEqual([-1, -1]);
    });
    it("not where functions take turns, as tasks of a program without an operating system do", () => {
        const tasks = { name: ["reset", "fill", "drain"], own: [1, 1, 1] };
        expect(beganIn(made([[0, 5, 0, 0, 0], [5, 20, 0, 1, 0], [20, 30, 0, 2, 0], [30, 50, 0, 1, 0]]), tasks)).toEqual([-1, -1]);
        // One that was lost on the way is the same thread.
        expect(beganIn(made([[0, 5, 0, 0, 0], [5, 20, 0, 1, 0], [30, 50, 0, 1, 0]]), tasks)).toEqual([1, -1]);
        const tree: Tree = {
            parent: Int32Array.from([-1, 0, 1, 1, 1]),
            function: Int32Array.from([-1, 8, 0, 1, 2]),
            kind: Uint8Array.from([0, 0, 1, 3, 3]),
            calls: Float64Array.from([0, 0, 1, 7, 6]),
            self: [Float64Array.from([0, 0, 5, 70, 60])],
        };
        expect(contextBeganIn(tree, inclusive(tree, 0), tasks, 1)).toBe(-1);
    });
    it("not by the nearest symbol of a library without names", () => {
        const stripped = { name: functions.name.map((n, f) => (f === 5 ? "pthread_condattr_setpshared+0x220?" : n)), own: functions.own };
        expect(beganIn(timeline, stripped)).toEqual([2, 6]);
        // The program's own code without names.
        expect(beganIn(timeline, { ...stripped, own: functions.own.map((own, f) => (f === 5 ? 1 : own)) })).toEqual([2, 5]);
    });
    it("in the call tree", () => {
        const tree: Tree = {
            parent: Int32Array.from([-1, 0, 1, 2, 3, 3, 0, 6, 7]),
            function: Int32Array.from([-1, 8, 0, 1, 3, 2, 9, 4, 6]),
            kind: Uint8Array.from([0, 0, 1, 1, 1, 1, 0, 1, 1]),
            calls: Float64Array.from([0, 0, 1, 1, 1, 1, 0, 1, 1]),
            self: [Float64Array.from([0, 0, 1, 1, 500, 20, 0, 1, 70])],
        };
        const cost = inclusive(tree, 0);
        expect(contextBeganIn(tree, cost, functions, 1)).toBe(2);
        expect(contextBeganIn(tree, cost, functions, 6)).toBe(6);
    });
});
