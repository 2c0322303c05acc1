import { deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";

import { addresses, sums, unpack } from "../src/data/decode";
import { codeOf, treeOf } from "../src/data/model";
import { lowerBound, matcher } from "../src/data/search";
import { contexts, costsByFunction, inclusive, inverted, layout, narrowUntil, nodeAt, shareOf, subtree, type Tree } from "../src/data/tree";
import { viewsOf } from "../src/data/views";
import type { Head } from "../src/data/wire";
import { hashOf, placeOf } from "../src/ui/state";
import { grouped, hex, percent, short, shortened, timeText } from "../src/ui/text";

/// Node.js 18 lacks a feature that every browser has since 2023.
function inflatesRaw(): boolean {
    try {
        return !!new DecompressionStream("deflate-raw");
    } catch {
        return false;
    }
}

describe("unpacking", () => {
    it.skipIf(!inflatesRaw())("undoes base64 and deflate", async () => {
        const value = { names: ["</script>", "größer", "\u202e"], numbers: [1, -2, 2 ** 52] };
        expect(await unpack(deflateRawSync(JSON.stringify(value)).toString("base64") + "\n")).toEqual(value);
    });
    it.skipIf(!inflatesRaw())("fails on data that is cut", async () => {
        const packed = deflateRawSync(JSON.stringify(Array.from({ length: 5000 }, (_, i) => i * i))).toString("base64");
        await expect(unpack(packed.slice(0, packed.length / 2))).rejects.toThrow();
    });
    it("sums differences", () => {
        expect([...sums([5, -2, 0, 7])]).toEqual([5, 3, 3, 10]);
    });
    it("keeps all 64 bits of addresses", () => {
        expect([...addresses([0x8000, 4, "9000000012345678", -8, 16])]).toEqual([
            0x8000n, 0x8004n, 0x9000000012345678n, 0x9000000012345670n, 0x9000000012345680n,
        ]);
        // A difference below nought comes from an address near the top.
        expect([...addresses([-4096])]).toEqual([0xfffffffffffff000n]);
    });
});

describe("searching", () => {
    it("needs all words, in any case", () => {
        expect(matcher("  ")).toBeUndefined();
        expect(matcher("Vec push")!("std::vector<int>::push_back")).toBe(true);
        expect(matcher("vec pop")!("std::vector<int>::push_back")).toBe(false);
    });
    it("takes expressions, and survives broken ones", () => {
        expect(matcher("/^do_.*e$/")!("do_leave")).toBe(true);
        expect(matcher("/^do_.*e$/")!("undo_leave")).toBe(false);
        expect(matcher("/(/")!("(")).toBe(false);
        expect(matcher("a+b(")!("xa+b(c)")).toBe(true);
    });
    it("finds bounds", () => {
        const values = [1, 3, 3, 7];
        expect([0, 1, 2, 3, 4, 7, 8].map((v) => lowerBound(values, v))).toEqual([0, 0, 1, 1, 3, 3, 4]);
    });
});

// all ─ main ─┬─ sort ─ compare
//             └─ print ─ compare
const tree = treeOf({
    parent: [-1, 1, 1, 1, -1, 3], // differences
    function: [-1, 0, 1, 2, 3, 2],
    kind: [0, 1, 1, 1, 1, 1],
    calls: [0, 1, 2, 9, 3, 4],
    self: [[0, 10, 20, 30, 5, 35]],
});
const names = ["main", "sort", "compare", "print"];
const nameOf = (node: number) => names[tree.function[node]!] ?? "all";

describe("call trees", () => {
    it("sums up", () => {
        expect([...tree.parent]).toEqual([-1, 0, 1, 2, 1, 4]);
        expect([...inclusive(tree, 0)]).toEqual([100, 100, 50, 30, 40, 35]);
    });
    it("places the heaviest first", () => {
        const map = layout(tree, 0, "cost", nameOf);
        expect(map.rows.map((row) => [...row])).toEqual([[0], [1], [2, 4], [3, 5]]);
        expect(map.x[4]).toBe(50);
        expect(nodeAt(map, 3, 51)).toBe(5);
        expect(nodeAt(map, 3, 45)).toBe(-1);
        expect(nodeAt(map, 3, 86)).toBe(-1);
        expect(nodeAt(map, 9, 0)).toBe(-1);
        expect(layout(tree, 0, "name", nameOf).x[2]).toBe(40);
    });
    it("is the same tree from its leaves", () => {
        const leaves = inverted(tree, 0, names.length);
        const total = inclusive(leaves, 0);
        expect(total[0]).toBe(100);
        const compare = [...leaves.parent.keys()].find((i) => leaves.parent[i] === 0 && leaves.function[i] === 2)!;
        expect(total[compare]).toBe(65);
        const callers = [...leaves.parent.keys()].filter((i) => leaves.parent[i] === compare);
        expect(callers.map((i) => [names[leaves.function[i]!], total[i]])).toEqual([
            ["print", 35],
            ["sort", 30],
        ]);
        // Short of room, callers are not distinguished, and nothing is lost.
        expect(inclusive(inverted(tree, 0, names.length, 3), 0)[0]).toBe(100);
    });
    it("counts recursion once", () => {
        const map = layout(tree, 0, "cost", nameOf);
        expect(shareOf(map, tree, (node) => tree.function[node] === 2)).toBeCloseTo(0.65);
        expect(shareOf(map, tree, (node) => tree.function[node] === 0 || tree.function[node] === 2)).toBe(1);
    });
});

describe("code", () => {
    it("knows which lines of a file are there", () => {
        const none = { address: [], bytes: [], isa: [], seen: [], function: [], source: [], line: [], times: [], text: [] };
        const code = codeOf({
            instructions: none,
            texts: [],
            lines: { source: [0, 0, 1], line: [3, 2, -4], seen: [0, 1, 2], function: [0, 0, 0], times: [1, 0, 0], costs: [] },
            sources: [[2, "two\nthree", 9, "nine"], []],
        });
        expect([1, 2, 3, 4, 9].map((l) => code.text(0, l))).toEqual([undefined, "two", "three", undefined, "nine"]);
        expect([code.lastLine(0), code.lastLine(1)]).toEqual([9, 0]);
        expect([...code.line]).toEqual([3, 5, 1]);
        expect(code.linesOf).toEqual([[0, 1], [2]]);
    });
});

describe("views", () => {
    const head = (unit: string, there: boolean) =>
        ({
            unit,
            functions: { name: there ? ["f"] : [] },
            loops: { head: there ? [1] : [] },
            exceptions: there ? [{}] : [],
            charts: there ? [{}] : [],
            tables: there ? [{}] : [],
            has: { calls: there ? 9 : 0, instructions: there ? 1 : 0, lines: there ? 1 : 0, coverage: there ? 1 : 0, against: 0, branches: there ? 1 : 0, edges: 0, blocks: there ? 1 : 0, slices: 0, marks: there ? 1 : 0, series: 0, steps: there ? 1 : 0 },
        }) as unknown as Head;
    it("shows what has data and says why the rest is not there", () => {
        expect(viewsOf(head("PTM", true)).every((v) => v.absent === undefined)).toBe(true);
        for (const unit of ["PTM", "ETE", "SPE", "DPU"]) {
            const absent = viewsOf(head(unit, false)).filter((v) => v.absent);
            expect(absent).toHaveLength(12);
            expect(absent.every((v) => v.absent!.endsWith("."))).toBe(true);
            expect(absent.some((v) => v.absent!.includes("--image"))).toBe(unit === "PTM" || unit === "ETE");
        }
    });
    it("of messages do not promise program flow", () => {
        for (const unit of ["ITM", "STM"]) {
            const absent = new Map(viewsOf(head(unit, false)).map((v) => [v.id, v.absent]));
            for (const id of ["calls", "steps", "coverage", "branches", "blocks", "loops"] as const) expect(absent.get(id)).toMatch(/^Messages do not show/);
        }
    });
    it("are kept in the address", () => {
        const place = { view: "code", function: 7, line: 12, address: 0xffff800012345678n } as const;
        expect(placeOf(hashOf(place))).toEqual(place);
        expect(placeOf("")).toEqual({ view: "summary" });
        expect(placeOf("#/calls?function=-1&address=x")).toEqual({ view: "calls" });
    });
});

describe("text", () => {
    it("groups digits", () => {
        expect(grouped(1234567)).toBe("1,234,567");
        expect(grouped(999)).toBe("999");
        expect(grouped(12.345)).toBe("12.3");
        expect(short(1234567)).toBe("1.2\u00a0M");
        expect(percent(1, 3)).toBe("33.3%");
        expect(percent(1, 1e6)).toBe("<0.1%");
        expect(percent(1, 0)).toBe("–");
        expect(hex(0x8000n)).toBe("0x00008000");
    });
    it("shows times in a fitting unit", () => {
        expect(timeText(1500, "ns")).toBe("1.5\u00a0µs");
        expect(timeText(48, "ticks", 24e6)).toBe("2\u00a0µs");
        expect(timeText(1, "instructions")).toBe("1\u00a0instruction");
    });
    it("shortens names by their arguments, then in the middle", () => {
        const name = "std::map<std::string, std::vector<int>>::find(std::string const&) const";
        expect(shortened(name, 100)).toBe(name);
        expect(shortened(name, 40)).toBe("std::map<…>::find(…) const");
        expect(shortened("user 2 (thread 1)", 12)).toBe("user 2…ad 1)");
        expect(shortened("a_long_name_without_arguments", 11)).toBe("a_lon…ments");
        expect(shortened("bool operator<(int)", 12)).toHaveLength(12);
        expect(shortened("(no symbol) in libc.so.6", 10)).toHaveLength(10);
    });
});

describe("calls drawn narrow", () => {
    // A caller with two calls that take next to no time, and a long one that begins within the same pixel.
    const tree: Tree = {
        parent: Int32Array.from([-1, 0, 0, 0]),
        function: Int32Array.from([-1, 0, 1, 2]),
        kind: Uint8Array.from([0, 1, 1, 1]),
        calls: Float64Array.from([0, 1, 1, 1]),
        self: [Float64Array.from([0, 1, 1, 998])],
    };
    it("are one, up to the first that is wide enough to be itself", () => {
        const map = layout(tree, 0, "first", String);
        expect(narrowUntil(map, 1, 0, 10)).toBe(2);
        expect(narrowUntil(map, 1, 0, 1)).toBe(1);
        expect(narrowUntil(map, 1, 2, 10)).toBe(3);
    });
});

describe("cores, threads and tasks", () => {
    // Two tasks; in the first, f calls itself and g.
    const tree: Tree = {
        parent: Int32Array.from([-1, 0, 1, 2, 3, 0, 5]),
        function: Int32Array.from([-1, 2, 0, 0, 1, 3, 1]),
        kind: Uint8Array.from([0, 0, 1, 1, 1, 0, 1]),
        calls: Float64Array.from([0, 1, 1, 4, 2, 1, 7]),
        self: [Float64Array.from([0, 0, 10, 20, 5, 0, 3])],
    };
    it("are distinguished where there are several", () => {
        expect(contexts(tree)).toEqual([1, 5]);
        expect(contexts(subtree(tree, 1))).toEqual([]);
    });
    it("each have calls and costs of their own, recursion once", () => {
        const first = subtree(tree, 1);
        expect([...first.parent]).toEqual([-1, 0, 1, 2]);
        const costs = costsByFunction(first, 0, 4);
        expect([...costs.self]).toEqual([30, 5, 0, 0]);
        expect([...costs.total]).toEqual([35, 5, 35, 0]);
        expect([...costs.calls]).toEqual([5, 2, 1, 0]);
        expect([...costsByFunction(subtree(tree, 5), 0, 4).total]).toEqual([0, 3, 0, 3]);
    });
});

describe("shares", () => {
    it("of almost all are not all, of almost nothing not nothing", () => {
        expect(percent(4416, 4417)).toBe(">99.9%");
        expect(percent(1, 1)).toBe("100.0%");
        expect(percent(1, 10000)).toBe("<0.1%");
        expect(percent(1, 0)).toBe("–");
    });
});

describe("places", () => {
    it("in time survive the address", () => {
        expect(placeOf(hashOf({ view: "timeline", from: 5, to: 80 }))).toEqual({ view: "timeline", from: 5, to: 80 });
        expect(placeOf("#/timeline?from=-1&to=x")).toEqual({ view: "timeline" });
    });
});
