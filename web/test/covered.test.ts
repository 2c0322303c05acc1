import { describe, expect, it } from "vitest";

import { branchesIn, codeIn, coverageIn } from "../src/data/covered";
import { type Branches, codeOf, type Coverage, type Report, Seen } from "../src/data/model";
import type { Ran } from "../src/data/steps";
import type { BranchesPart, CodePart, CoveragePart } from "../src/data/wire";

// Function 0: four instructions on lines 1, 1, 2, 3 of source 0, the last of which may have run unobserved. Line 4 shares all
// its instructions. Function 1: one instruction without a line.
const code = codeOf({
    instructions: {
        address: [0x100, 4, 4, 4, 0x40],
        bytes: [4, 4, 4, 4, 4],
        isa: [4, 4, 4, 4, 4],
        seen: [Seen.executed, Seen.executed, Seen.executed, Seen.notObserved, Seen.notExecuted],
        function: [0, 0, 0, 0, 1],
        source: [0, 0, 0, 0, -1],
        line: [1, 1, 2, 3, 0],
        times: [9, 9, 9, 0, 0],
        text: [0, 0, 0, 0, 0],
    },
    texts: [""],
    lines: { source: [0, 0, 0, 0], line: [1, 1, 1, 1], seen: [Seen.executed, Seen.executed, Seen.notObserved, Seen.executed], function: [0, 0, 0, 0], times: [9, 9, 0, 9], costs: [[18, 9, 0, 0]] },
    sources: [[]],
} as CodePart);
const branches = {
    part: { branches: { address: [], target: [], kind: [0], function: [0], source: [0], line: [2], taken: [5], notTaken: [4], seenTaken: [0], seenNotTaken: [0], mispredicted: [2] }, edges: {}, blocks: {} } as unknown as BranchesPart,
    address: BigUint64Array.from([0x108n]),
    target: BigUint64Array.from([0x100n]),
    block: BigUint64Array.from([]),
} as Branches;
const ran: Ran = { times: new Map([[0x100n, 2], [0x104n, 2]]), blocks: new Map(), taken: new Map(), notTaken: new Map(), whole: true, placed: true, counted: true };

describe("code in a range", () => {
    it("ran, did not run, or may have run", () => {
        const all = codeIn(code, ran, false).part;
        expect(all.instructions.seen).toEqual([Seen.executed, Seen.executed, Seen.notExecuted, Seen.notObserved, Seen.notExecuted]);
        expect(all.instructions.times).toEqual([2, 2, 0, 0, 0]);
        expect(all.lines.times).toEqual([4, 0, 0, 0]);
        expect(all.lines.seen).toEqual([Seen.executed, Seen.notExecuted, Seen.notObserved, Seen.notObserved]);
    });
    it("may have run where flow was lost, or where not all is known", () => {
        const missed = [Seen.executed, Seen.executed, Seen.notObserved, Seen.notObserved, Seen.notObserved];
        expect(codeIn(code, ran, true).part.instructions.seen).toEqual(missed);
        for (const what of ["whole", "placed", "counted"]) expect(codeIn(code, { ...ran, [what]: false }, false).part.instructions.seen).toEqual(missed);
    });
    it("is counted by file and function", () => {
        const zero = [[0, 0], [0, 0], [0, 0]];
        const files = { name: ["a.c", "all"], source: [0, -1], instructions: zero, lines: zero, directions: zero, functions: 2, ran: 1 };
        const coverage = { part: { files, own: files, functions: { function: [0, 1] }, uncovered: {}, bound: "", notWhole: [] } as unknown as CoveragePart, begin: BigUint64Array.from([]) } as Coverage;
        const report = { head: { functions: { own: [1, 0], image: [-1, -1] }, images: [] } } as unknown as Report;
        const { part, begin } = coverageIn(report, coverage, codeIn(code, ran, false), branchesIn(branches, ran, false));
        expect(part.files.instructions).toEqual([[2, 2], [1, 2], [1, 1]]);
        expect(part.own.instructions.map((of) => of[1])).toEqual([2, 1, 1]);
        expect(part.files.lines).toEqual([[1, 1], [1, 1], [1, 1]]);
        expect(part.files.directions).toEqual([[0, 0], [2, 2], [0, 0]]);
        expect([part.files.ran, part.files.functions, part.own.functions]).toEqual([1, 2, 1]);
        expect(part.functions.instructions).toEqual([[2, 0], [1, 1], [1, 0]]);
        expect([...begin]).toEqual([0x108n, 0x10cn, 0x14cn]);
        expect(part.uncovered.instructions).toEqual([1, 1, 1]);
    });
});
