/// The report's data as views use it. Parts are unpacked when they are first requested.
import { addresses, sums, unpack } from "./decode";
import { type Lane, lanes } from "./lod";
import { type Stream, stepsOf } from "./steps";
import { beganIn } from "./threads";
import type { Tree } from "./tree";
import type { AgainstPart, BranchesPart, CallsPart, CodePart, CoveragePart, Head, StepsPart, TimelinePart } from "./wire";

export const enum Seen {
    executed,
    notExecuted,
    notObserved,
}

export const seenWords = ["executed", "not executed", "not observed"] as const;
export const branchKinds = ["conditional", "unconditional", "call", "indirect", "indirect call", "return"] as const;
export const markKinds = ["gap", "exception", "context", "user data", "trigger", "overflow"] as const;
export const isaNames = ["A32", "T32", "TEE", "Jazelle", "A64"] as const;

export interface Functions {
    size: number;
    address: BigUint64Array;
}

export interface Code {
    part: CodePart;
    address: BigUint64Array;
    line: Float64Array; // of CodePart.lines
    /// Rows of CodePart.lines by source.
    linesOf: number[][];
    /// Rows of CodePart.instructions by function.
    instructionsOf: Map<number, number[]>;
    /// The row of CodePart.instructions of an address; -1: it is not in the report.
    rowAt(address: bigint): number;
    /// Text of a line; undefined if it is not in the report.
    text(source: number, line: number): string | undefined;
    /// The last line of a source that is in the report.
    lastLine(source: number): number;
}

export interface Branches {
    part: BranchesPart;
    address: BigUint64Array;
    target: BigUint64Array;
    block: BigUint64Array;
}

export interface Coverage {
    part: CoveragePart;
    begin: BigUint64Array; // of uncovered
}

export interface Against {
    part: AgainstPart;
    before: number[];
    after: number[];
    change: number[];
    callsBefore: number[];
    callsAfter: number[];
    /// Its metrics: before and after.
    tree: Tree;
    name: string[];
}

export interface Timeline {
    part: TimelinePart;
    begin: Float64Array;
    length: Float64Array;
    track: Float64Array;
    lanes: Lane[][];
    marks: { begin: Float64Array; end: Float64Array; track: number[]; kind: number[]; text: number[] };
    series: { name: string; unit: string; track: number; time: Float64Array; value: Float64Array }[];
}

/// Splits the texts of a source into lines.
function reader(sources: (number | string)[][]) {
    const split: Map<number, string>[] = [];
    const last: number[] = [];
    const of = (source: number) => {
        let lines = split[source];
        if (lines === undefined) {
            lines = new Map();
            const parts = sources[source] ?? [];
            for (let i = 0; i + 1 < parts.length; i += 2) {
                let line = parts[i] as number;
                for (const text of (parts[i + 1] as string).split("\n")) lines.set(line++, text);
                last[source] = line - 1;
            }
            split[source] = lines;
        }
        return lines;
    };
    return {
        text: (source: number, line: number) => (source < 0 ? undefined : of(source).get(line)),
        lastLine: (source: number) => (source < 0 ? 0 : (of(source), last[source] ?? 0)),
    };
}

export function codeOf(part: CodePart): Code {
    const linesOf: number[][] = [];
    // Differences continue across sources: the column is one sequence.
    const line = sums(part.lines.line);
    part.lines.source.forEach((source, i) => {
        if (source >= 0) (linesOf[source] ??= []).push(i);
    });
    const instructionsOf = new Map<number, number[]>();
    part.instructions.function.forEach((f, i) => {
        const list = instructionsOf.get(f);
        if (list) list.push(i);
        else instructionsOf.set(f, [i]);
    });
    const address = addresses(part.instructions.address);
    let rows: Map<bigint, number> | undefined;
    const rowAt = (at: bigint) => {
        if (rows === undefined) {
            rows = new Map();
            for (let i = 0; i < address.length; ++i) rows.set(address[i]!, i);
        }
        return rows.get(at) ?? -1;
    };
    return { part, address, line, linesOf, instructionsOf, rowAt, ...reader(part.sources) };
}

export function treeOf(part: CallsPart): Tree {
    return {
        parent: Int32Array.from(sums(part.parent)),
        function: Int32Array.from(part.function),
        kind: Uint8Array.from(part.kind),
        calls: Float64Array.from(part.calls),
        self: part.self.map((column) => Float64Array.from(column)),
    };
}

export function againstOf(part: AgainstPart): Against {
    const { table } = part;
    const numbers = (column: string[] | undefined) => table.function.map((_, i) => Number(column?.[i] || 0));
    const tree = part.tree ?? { parent: [-1], name: [0], kind: [0], before: [0], after: [0] };
    return {
        part,
        before: numbers(table.before),
        after: numbers(table.after),
        change: numbers(table.change),
        callsBefore: numbers(table.calls_before),
        callsAfter: numbers(table.calls_after),
        name: tree.name.map((n) => part.names?.[n] ?? ""),
        tree: {
            parent: Int32Array.from(sums(tree.parent)),
            function: Int32Array.from(tree.name, () => -1),
            kind: Uint8Array.from(tree.kind),
            calls: new Float64Array(tree.parent.length),
            self: [Float64Array.from(tree.before), Float64Array.from(tree.after)],
        },
    };
}

export function timelineOf(part: TimelinePart): Timeline {
    const begin = sums(part.slices.begin);
    const length = Float64Array.from(part.slices.length);
    const track = sums(part.slices.track);
    const markBegin = sums(part.marks.begin);
    return {
        part,
        begin,
        length,
        track,
        lanes: lanes({ begin, length, track, depth: part.slices.depth }, part.tracks.name.length),
        marks: {
            begin: markBegin,
            end: markBegin.map((b, i) => b + part.marks.length[i]!),
            track: part.marks.track,
            kind: part.marks.kind,
            text: part.marks.text,
        },
        series: part.series.map((s) => ({
            name: s.name,
            unit: s.unit,
            track: s.track,
            time: sums(s.time),
            value: Float64Array.from(s.value, Number),
        })),
    };
}

export class Report {
    readonly functionAddress: BigUint64Array;
    /// Some functions are the program's own, and some are not.
    readonly hasOwn: boolean;
    private byAddress?: number[];
    private readonly parts = new Map<string, Promise<unknown>>();

    private constructor(
        readonly head: Head,
        private readonly packed: (part: string) => string,
    ) {
        this.functionAddress = addresses(head.functions.address);
        const { own, synthetic } = head.functions;
        this.hasOwn = own.some((is) => is === 1) && own.some((is, i) => is === 0 && !synthetic[i]);
    }

    /// `packed` returns the text of a part.
    static async open(packed: (part: string) => string): Promise<Report> {
        const head = await unpack<Head>(packed("head"));
        if (head.format !== 1) throw new Error(`the data is of format ${head.format}, this page reads 1`);
        return new Report(head, packed);
    }

    calls(): Promise<Tree> {
        return this.once("calls", treeOf);
    }
    code(): Promise<Code> {
        return this.once("code", codeOf);
    }
    branches(): Promise<Branches> {
        return this.once("branches", (part: BranchesPart) => ({
            part,
            address: addresses(part.branches.address),
            target: addresses(part.branches.target),
            block: addresses(part.blocks.address),
        }));
    }
    /// The function with code at an address; -1: none is known.
    functionAt(address: bigint): number {
        const { bytes, synthetic } = this.head.functions;
        this.byAddress ??= Array.from(bytes.keys())
            .filter((f) => !synthetic[f])
            .sort((a, b) => (this.functionAddress[a]! < this.functionAddress[b]! ? -1 : 1));
        let low = 0;
        let high = this.byAddress.length;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.functionAddress[this.byAddress[middle]!]! <= address) low = middle + 1;
            else high = middle;
        }
        const f = this.byAddress[low - 1] ?? -1;
        return f >= 0 && address - this.functionAddress[f]! < BigInt(bytes[f] || 1) ? f : -1;
    }
    /// `parse`, `parse+0x1c`; empty: no function is known there.
    placeName(address: bigint): string {
        const f = this.functionAt(address);
        if (f < 0) return "";
        const away = address - this.functionAddress[f]!;
        return away === 0n ? this.functionName(f) : `${this.functionName(f)}+0x${away.toString(16)}`;
    }

    against(): Promise<Against> {
        return this.once("against", againstOf);
    }
    coverage(): Promise<Coverage> {
        return this.once("coverage", (part: CoveragePart) => ({ part, begin: addresses(part.uncovered.begin) }));
    }
    timeline(): Promise<Timeline> {
        return this.once("timeline", (part: TimelinePart) => {
            const made = timelineOf(part);
            // Only program flow has single calls. The functions that threads began in name them.
            if (part.bound !== "") beganIn(made, this.head.functions).forEach((f, i) => f >= 0 && (part.tracks.name[i] += ` · ${this.functionName(f)}`));
            return made;
        });
    }
    /// In one sequence with the code, which has the instructions' addresses.
    async steps(): Promise<{ streams: Stream[]; texts: string[]; code: Code }> {
        const code = await this.code();
        const made = await this.once("steps", (part: StepsPart) => ({ streams: stepsOf(part, code), texts: part.texts }));
        return { ...made, code };
    }

    /// Whether it is a row among functions. Names of cores, threads and tasks without own costs are not, nor are
    /// functions that never ran.
    isFunction(i: number): boolean {
        const { functions } = this.head;
        return functions.calls[i]! > 0 || functions.self.some((column) => column[i]! > 0);
    }
    functionName(i: number): string {
        return i < 0 ? "[unknown]" : (this.head.functions.name[i] ?? "[unknown]");
    }
    /// Image, if there is more than one.
    imageName(f: number): string {
        return this.head.images[this.head.functions.image[f] ?? -1]?.name ?? "";
    }
    sourceName(i: number): string {
        return this.head.sources[i] ?? "";
    }

    private once<Part, T>(name: string, make: (part: Part) => T): Promise<T> {
        let made = this.parts.get(name) as Promise<T> | undefined;
        if (made === undefined) {
            made = unpack<Part>(this.packed(name)).then(make);
            this.parts.set(name, made);
        }
        return made;
    }
}
