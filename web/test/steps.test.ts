import { describe, expect, it } from "vitest";

import { codeOf } from "../src/data/model";
import { type Ran, ranIn, ranWord, stepsOf } from "../src/data/steps";
import type { CodePart, StepsPart } from "../src/data/wire";

/// Rows of 2 or 4 bytes.
function codeWith(rows: [address: number, bytes: number][]) {
    const none = rows.map(() => 0);
    const differences = rows.map(([address], i) => address - (i === 0 ? 0 : rows[i - 1]![0]));
    return codeOf({ lines: { source: [], line: [] }, sources: [], instructions: { address: differences, bytes: rows.map(([, bytes]) => bytes), function: none, source: none, line: none } } as unknown as CodePart);
}

/// Ten instructions of A64 that end in a branch, ten times in turn taken and not taken; frames at places and times.
function stream(frames: [at: number, time: number][], { kept = 10, clock = true, lead = 0 } = {}) {
    const differences = (column: number[]) => column.map((v, i) => v - (i === 0 ? 0 : column[i - 1]!));
    const part = {
        streams: [
            {
                source: "cpu0",
                instructions: 100,
                window: false,
                first: 0,
                lead,
                edges: { address: [0x1000, 0], bytes: [40, 40], instructions: [10, 10], isa: [4, 4], outcome: [2, 1] },
                order: Array.from({ length: kept }, (_, i) => i % 2),
                frames: {
                    at: differences(frames.map(([at]) => at)),
                    ...(clock ? { time: differences(frames.map(([, time]) => time)) } : {}),
                    what: frames.map(() => 1),
                    depth: frames.map(() => 0),
                    function: frames.map(() => 0),
                },
                events: { at: [], kind: [], text: [] },
            },
        ],
        texts: [],
    } as unknown as StepsPart;
    return stepsOf(part, codeWith([]));
}
const sum = (map: Map<bigint, number>) => [...map.values()].reduce((a, b) => a + b, 0);
const counts = (ran: Ran) => [sum(ran.times), sum(ran.taken) + sum(ran.notTaken)];

describe("what ran in a range of time", () => {
    it("has what ran after the last call or return", () => {
        // With and without the place at which the stream ends.
        for (const end of [[], [[100, 2000]]] as [number, number][][]) {
            const ran = ranIn(stream([[0, 0], [50, 1000], ...end]), 0, 2000);
            expect(counts(ran)).toEqual([100, 10]);
            expect(ran).toMatchObject({ whole: true, placed: true, counted: false });
        }
    });
    it("has what ran before the first, after the last and between two", () => {
        const s = stream([[0, 0], [50, 1000], [100, 2000]]);
        expect(counts(ranIn(s, 1000, 2000))).toEqual([50, 5]);
        expect(counts(ranIn(s, 1400, 2000))).toEqual([30, 3]);
        expect(counts(ranIn(s, 1400, 1600))).toEqual([10, 1]);
        expect(counts(ranIn(s, 0, 600))).toEqual([30, 3]);
        expect(counts(ranIn(s, 0, 1000))).toEqual([50, 5]);
    });
    it("has all that ran at the last time", () => {
        expect(counts(ranIn(stream([[0, 0], [50, 1000], [100, 1000]]), 0, 1000))).toEqual([100, 10]);
        expect(counts(ranIn(stream([[0, 0], [50, 1000], [100, 1000]]), 0, 999))[0]).toBe(49);
    });
    it("is no whole where the stream was cut", () => {
        const s = stream([[0, 0], [20, 400]], { kept: 5 });
        expect(ranIn(s, 1500, 2000)).toMatchObject({ whole: false });
        expect(counts(ranIn(s, 1500, 2000))).toEqual([0, 0]);
        expect(ranIn(s, 0, 2000)).toMatchObject({ whole: false });
        expect(counts(ranIn(s, 0, 2000))).toEqual([50, 5]);
        expect(ranIn(s, 0, 300)).toMatchObject({ whole: true });
        expect(ranIn(s, 0, 300).times.size).toBe(10);
    });
    it("needs no times where the axis counts instructions", () => {
        const s = stream([[0, 0], [20, 20]], { kept: 5, clock: false });
        expect(ranIn(s, 0, 50)).toMatchObject({ whole: true, counted: true });
        expect(ranIn(s, 0, 51)).toMatchObject({ whole: false, counted: true });
    });
    it("begins behind what leads up to the window", () => {
        const s = stream([[0, 0], [20, 20]], { clock: false, lead: 3 });
        expect(counts(ranIn(s, 0, 10))).toEqual([10, 1]);
        expect(ranIn(s, 0, 7).times.size).toBe(7);
        expect(counts(ranIn(s, 0, 97))).toEqual([97, 10]);
        expect(ranIn(s, 0, 97)).toMatchObject({ whole: true });
    });
});

describe("what ran of code that is not in the report", () => {
    /// T32: an instruction of 2 bytes, and a branch of 4.
    const t32 = (rows: [number, number][]) =>
        stepsOf(
            {
                streams: [
                    {
                        source: "cpu0",
                        instructions: 6,
                        window: false,
                        first: 0,
                        lead: 0,
                        edges: { address: [0x8000], bytes: [6], instructions: [2], isa: [1], outcome: [2] },
                        order: [0, 0, 0],
                        frames: { at: [], what: [], depth: [], function: [] },
                        events: { at: [], kind: [], text: [] },
                    },
                ],
                texts: [],
            } as unknown as StepsPart,
            codeWith(rows),
        );
    it("is all counted where the rows are there", () => {
        const ran = ranIn(t32([[0x8000, 2], [0x8002, 4]]), 0, 6);
        expect(counts(ran)).toEqual([6, 3]);
        expect(ran).toMatchObject({ whole: true, placed: true, counted: true });
    });
    it("is not exact where they are not", () => {
        const ran = ranIn(t32([]), 0, 6);
        expect(ran).toMatchObject({ whole: true, placed: false });
        expect(ranWord(ran, "exact")).toBe("at least");
    });
});

describe("the word beside counts of a range", () => {
    it("is exact only where nothing is missing", () => {
        const all = { whole: true, placed: true, counted: true };
        expect(ranWord(all, "exact")).toBe("exact");
        expect(ranWord(all, "lower bound")).toBe("at least");
        expect(ranWord({ ...all, whole: false }, "exact")).toBe("at least");
        expect(ranWord({ ...all, placed: false }, "exact")).toBe("at least");
        expect(ranWord({ ...all, counted: false }, "exact")).toBe("estimate");
        expect(ranWord({ ...all, counted: false, whole: false }, "exact")).toBe("estimate of a part");
        expect(ranWord({ ...all, counted: false, placed: false }, "exact")).toBe("estimate of a part");
    });
});
