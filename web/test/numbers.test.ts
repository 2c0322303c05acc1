/// Numbers are written as the commands write them: the cases are the same as in tests/core/numbers_test.cc.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { decimal, grouped, hex, percent, sizeText, timeText } from "../src/ui/text";

const kinds: Record<string, (argument: string) => string> = {
    count: (v) => grouped(Number(v)),
    decimal: (v) => decimal(Number(v)),
    quantity: (v) => grouped(Number(v)),
    share: (v) => percent(Number(v.split(" ")[0]), Number(v.split(" ")[1])),
    duration: (v) => timeText(Number(v), "ns"),
    size: (v) => sizeText(Number(v)),
    address: (v) => hex(BigInt(v)),
};

describe("numbers", () => {
    const rows = readFileSync(new URL("numbers.tsv", import.meta.url), "utf8")
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => line.split("\t"));
    it("has cases of every kind", () => {
        expect([...new Set(rows.map((row) => row[0]))].sort()).toEqual(Object.keys(kinds).sort());
    });
    for (const [kind = "", argument = "", text] of rows)
        it(`${kind} ${argument}`, () => {
            // Lines of the page do not break before a unit.
            expect(kinds[kind]?.(argument).replaceAll("\u00a0", " ")).toBe(text);
        });
});
