/// The execution in its order, for stepping. A place is the number of instructions of the stream before it.
import { addresses, sums } from "./decode";
import type { Code } from "./model";
import type { StepsPart } from "./wire";

export const enum Outcome {
    none,
    notTaken,
    taken,
    passed,
}
export const enum Happened {
    exception,
    exceptionReturn,
    gap,
    context,
    mark,
}

/// A call on the stack, in the order in which calls began.
interface Node {
    caller: number;  // -1: the caller is unknown
    function: number; // -1: not known
    context: number;
    begin: number; // its first instruction
    depth: number;
}

export interface Edge {
    address: bigint;
    bytes: number;
    instructions: number;
    isa: number;
    outcome: Outcome;
}

const isaA32 = 0;
const isaA64 = 4;

/// A stream of program flow, or its beginning.
export class Stream {
    readonly edges: Edge[];
    readonly order: Int32Array;
    /// By range, and one more: the instructions before it.
    readonly start: Float64Array;
    readonly nodes: Node[] = [];
    /// By range: the call that it belongs to; -1: none.
    readonly node: Int32Array;
    /// By call: the first call that began after it ended. Calls that it made are between, of the same context.
    private readonly after: Int32Array;
    private readonly places = new Map<number, bigint[]>();

    constructor(
        readonly part: StepsPart["streams"][number],
        readonly eventAt: Float64Array,
        private readonly code: Code,
    ) {
        const { edges } = part;
        const address = addresses(edges.address);
        this.edges = part.edges.bytes.map((bytes, i) => ({ address: address[i]!, bytes, instructions: edges.instructions[i]!, isa: edges.isa[i]!, outcome: edges.outcome[i]! }));
        this.order = Int32Array.from(part.order);
        this.start = new Float64Array(this.order.length + 1);
        for (let r = 0; r < this.order.length; ++r) this.start[r + 1] = this.start[r]! + this.edges[this.order[r]!]!.instructions;
        this.node = new Int32Array(this.order.length).fill(-1);
        this.after = this.findCalls();
    }

    get size(): number {
        return this.start[this.order.length]!;
    }

    private findCalls(): Int32Array {
        const { depth, what, function: functions } = this.part.frames;
        const at = sums(this.part.frames.at);
        const after: number[] = [];
        const stacks = new Map<number, number[]>();
        let context = -1;
        let stack: number[] = [];
        // Frames of a context that was left before are the same calls.
        let again: number[] = [];
        const forget = () => {
            for (const n of again.slice(stack.length)) after[n] = this.nodes.length;
            again = [];
        };
        const leave = (to: number) => {
            while (stack.length > to) after[stack.pop()!] = this.nodes.length;
        };
        let next = 0;
        for (let r = 0; r < this.order.length; ++r) {
            for (; next < at.length && at[next]! <= this.start[r]!; ++next) {
                const d = depth[next]!;
                if (what[next] === 2) {
                    stacks.set(context, stack);
                    context = functions[next]!;
                    again = stacks.get(context) ?? [];
                    stack = [];
                } else if (what[next] === 1) {
                    leave(d);
                    forget();
                } else {
                    leave(d);
                    const f = functions[next]!;
                    const known = again[d];
                    if (known !== undefined && this.nodes[known]!.function === f) {
                        stack.push(known);
                        continue;
                    }
                    forget();
                    this.nodes.push({ caller: stack[stack.length - 1] ?? -1, function: f, context, begin: at[next]!, depth: d });
                    stack.push(this.nodes.length - 1);
                }
            }
            this.node[r] = stack[stack.length - 1] ?? -1;
        }
        stacks.set(context, stack);
        for (const open of stacks.values()) for (const n of open) after[n] = this.nodes.length;
        return Int32Array.from(this.nodes, (_, n) => after[n] ?? this.nodes.length);
    }

    /// The range that contains a place.
    rangeOf(place: number): number {
        let low = 0;
        let high = this.order.length;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.start[middle + 1]! <= place) low = middle + 1;
            else high = middle;
        }
        return Math.min(low, this.order.length - 1);
    }
    /// The addresses of the instructions of an edge; undefined where the report does not say where one begins.
    instructionsOf(e: number): bigint[] {
        let found = this.places.get(e);
        if (found !== undefined) return found;
        const { address, bytes, instructions, isa } = this.edges[e]!;
        found = [];
        if (isa === isaA64 || isa === isaA32 || bytes === 4 * instructions) for (let k = 0; k < instructions; ++k) found.push(address + 4n * BigInt(k));
        else if (bytes === 2 * instructions) for (let k = 0; k < instructions; ++k) found.push(address + 2n * BigInt(k));
        else {
            // Instructions of 2 and of 4 bytes.
            for (let at = address; at < address + BigInt(bytes); ) {
                const row = this.code.rowAt(at);
                if (row < 0) break;
                found.push(at);
                at += BigInt(this.code.part.instructions.bytes[row]!);
            }
            if (found.length !== instructions) found = [address];
        }
        this.places.set(e, found);
        return found;
    }
    edgeAt(place: number): Edge {
        return this.edges[this.order[this.rangeOf(place)]!]!;
    }
    /// -1n: not known.
    addressAt(place: number): bigint {
        const r = this.rangeOf(place);
        return this.instructionsOf(this.order[r]!)[place - this.start[r]!] ?? -1n;
    }
    /// The outcome of a branch; none: it is no branch.
    outcomeAt(place: number): Outcome {
        const r = this.rangeOf(place);
        return place + 1 === this.start[r + 1] ? this.edges[this.order[r]!]!.outcome : Outcome.none;
    }
    /// The calls in progress, the innermost first.
    stackAt(place: number): Node[] {
        const out: Node[] = [];
        for (let n = this.node[this.rangeOf(place)] ?? -1; n >= 0; n = this.nodes[n]!.caller) out.push(this.nodes[n]!);
        return out;
    }

    /// Whether call `n` is made by `of`, or is `of` itself.
    private within(n: number, of: number): boolean {
        return n === of || (n > of && n < this.after[of]! && this.nodes[n]!.context === this.nodes[of]!.context);
    }
    private elsewhere(n: number, of: number): boolean {
        return n >= 0 && of >= 0 && this.nodes[n]!.context !== this.nodes[of]!.context;
    }
    /// The next place in the same call, or in its caller; `way` −1: the one before. undefined: there is none.
    over(place: number, way: 1 | -1): number | undefined {
        const from = this.rangeOf(place);
        if (this.rangeOf(place + way) === from && place + way >= 0 && place + way < this.size) return place + way;
        const of = this.node[from]!;
        for (let r = from + way; r >= 0 && r < this.order.length; r += way) {
            const n = this.node[r]!;
            if (this.elsewhere(n, of) || (n !== of && this.within(n, of))) continue;
            return way === 1 ? this.start[r]! : this.start[r + 1]! - 1;
        }
        return undefined;
    }
    /// The first place after the call; `way` −1: the last place before it.
    out(place: number, way: 1 | -1): number | undefined {
        const from = this.rangeOf(place);
        const of = this.node[from]!;
        if (of < 0) return undefined;
        for (let r = from + way; r >= 0 && r < this.order.length; r += way) {
            const n = this.node[r]!;
            if (this.elsewhere(n, of) || this.within(n, of)) continue;
            return way === 1 ? this.start[r]! : this.start[r + 1]! - 1;
        }
        return undefined;
    }
    /// The nearest place beyond this one where `is` holds of the instruction's address.
    private find(place: number, way: 1 | -1, is: (address: bigint) => boolean): number | undefined {
        const known = new Map<number, number[]>();
        const of = (e: number) => {
            let found = known.get(e);
            if (found === undefined) known.set(e, (found = this.instructionsOf(e).flatMap((a, k) => (is(a) ? [k] : []))));
            return found;
        };
        for (let r = this.rangeOf(place); r >= 0 && r < this.order.length; r += way) {
            const all = of(this.order[r]!);
            const start = this.start[r]!;
            const there = all.filter((k) => (way === 1 ? start + k > place : start + k < place));
            const found = way === 1 ? there[0] : there[there.length - 1];
            if (found !== undefined) return start + found;
        }
        return undefined;
    }
    /// The first execution of an instruction.
    firstAt(address: bigint): number | undefined {
        if (this.size === 0) return undefined;
        return this.addressAt(0) === address ? 0 : this.find(0, 1, (a) => a === address);
    }
    sameAddress(place: number, way: 1 | -1): number | undefined {
        const address = this.addressAt(place);
        return address < 0n ? undefined : this.find(place, way, (a) => a === address);
    }
    /// The next time that execution comes to this line, after it left it.
    sameLine(place: number, way: 1 | -1): number | undefined {
        const line = this.lineAt(this.addressAt(place));
        if (line === undefined) return undefined;
        const is = (a: bigint) => this.lineAt(a) === line;
        const left = this.find(place, way, (a) => !is(a));
        return left === undefined ? undefined : is(this.addressAt(left)) ? left : this.find(left, way, is);
    }
    /// As `source:line`; undefined: not known.
    lineAt(address: bigint): string | undefined {
        const row = this.code.rowAt(address);
        const { source, line } = this.code.part.instructions;
        return row < 0 || line[row] === 0 || source[row]! < 0 ? undefined : `${source[row]}:${line[row]}`;
    }
    /// Exceptions and gaps; not their ends and not contexts.
    event(place: number, way: 1 | -1): number | undefined {
        const { kind } = this.part.events;
        const counts = (i: number) => kind[i] === Happened.exception || kind[i] === Happened.gap;
        if (way === 1) {
            for (let i = 0; i < kind.length; ++i) if (counts(i) && this.eventAt[i]! > place && this.eventAt[i]! < this.size) return this.eventAt[i];
        } else for (let i = kind.length - 1; i >= 0; --i) if (counts(i) && this.eventAt[i]! < place) return this.eventAt[i];
        return undefined;
    }
    /// Events directly before a place.
    eventsAt(place: number): number[] {
        const out: number[] = [];
        let low = 0;
        let high = this.eventAt.length;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.eventAt[middle]! < place) low = middle + 1;
            else high = middle;
        }
        for (; low < this.eventAt.length && this.eventAt[low] === place; ++low) out.push(low);
        return out;
    }
    /// Which execution of its instruction a place is, and how many there are.
    turnOf(place: number): [number, number] {
        const address = this.addressAt(place);
        const has = new Map<number, number>();
        this.edges.forEach((_, e) => {
            const k = this.instructionsOf(e).indexOf(address);
            if (k >= 0) has.set(e, k);
        });
        let before = 0;
        let all = 0;
        for (let r = 0; r < this.order.length; ++r) {
            const k = has.get(this.order[r]!);
            if (k === undefined) continue;
            ++all;
            if (this.start[r]! + k <= place) ++before;
        }
        return [before, all];
    }
    /// The place at a time of the timeline's axis. Infinity: beyond the kept part of the stream.
    placeAtTime(time: number): number {
        const { time: times } = this.part.frames;
        if (times === undefined) return time + this.part.lead;
        const at = sums(this.part.frames.at);
        const then = sums(times);
        let i = 0;
        while (i < then.length && then[i]! < time) ++i;
        if (i === then.length) return this.end;
        if (i === 0 || then[i] === time) return at[i]!;
        // Between two places whose times are known, at an even pace.
        return at[i - 1]! + Math.floor(((at[i]! - at[i - 1]!) * (time - then[i - 1]!)) / (then[i]! - then[i - 1]!));
    }
    /// The end of all instructions that ran before a time. At the last known time, it includes all the rest.
    private endAtTime(time: number): number {
        const { time: times } = this.part.frames;
        if (times === undefined) return time + this.part.lead;
        const then = sums(times);
        return then.length === 0 || time >= then[then.length - 1]! ? this.end : this.placeAtTime(time);
    }
    placesIn(from: number, to: number): { begin: number; end: number } {
        return { begin: this.placeAtTime(from), end: this.endAtTime(to) };
    }
    /// The end of the stream; Infinity: beyond the kept part.
    private get end(): number {
        return this.size === this.part.instructions ? this.size : Infinity;
    }
}

export function stepsOf(part: StepsPart, code: Code): Stream[] {
    return part.streams.map((s) => new Stream(s, sums(s.events.at), code));
}

/// The execution in a part of the timeline, of all streams.
export interface Ran {
    times: Map<bigint, number>; // of each instruction
    blocks: Map<string, number>; // by blockOf: executions that began in the part
    taken: Map<bigint, number>; // of branches
    notTaken: Map<bigint, number>;
    whole: boolean; // all of the part can be stepped through
    placed: boolean; // the report says where each instruction of the part lies
    counted: boolean; // the timeline counts instructions, so its ends are exact
}

/// The word for its counts. Where ends are estimated, incomplete counts are no lower bound either.
export function ranWord(ran: Pick<Ran, "whole" | "placed" | "counted">, bound: string): "exact" | "at least" | "estimate" | "estimate of a part" {
    const lacks = !ran.whole || !ran.placed;
    if (!ran.counted) return lacks ? "estimate of a part" : "estimate";
    return !lacks && bound === "exact" ? "exact" : "at least";
}

/// The name of a block in Ran.
export const blockOf = (address: bigint, bytes: number) => `${address} ${bytes}`;

export function ranIn(streams: Stream[], from: number, to: number): Ran {
    const out: Ran = { times: new Map(), blocks: new Map(), taken: new Map(), notTaken: new Map(), whole: true, placed: true, counted: true };
    const add = <K,>(map: Map<K, number>, key: K, times: number) => map.set(key, (map.get(key) ?? 0) + times);
    for (const s of streams) {
        const { begin, end } = s.placesIn(from, to);
        out.whole &&= s.size === s.part.instructions || end <= s.size;
        out.counted &&= s.part.frames.time === undefined;
        if (begin >= s.size) continue;
        const whole = new Float64Array(s.edges.length);
        const count = (e: number, first: number, last: number, times: number) => {
            const places = s.instructionsOf(e);
            for (let k = first; k < last; ++k) {
                const address = places[k];
                if (address !== undefined) add(out.times, address, times);
            }
            const edge = s.edges[e]!;
            if (first === 0) add(out.blocks, blockOf(edge.address, edge.bytes), times);
            out.placed &&= places.length === edge.instructions;
            const branch = places[edge.instructions - 1];
            if (last !== edge.instructions || branch === undefined) return;
            if (edge.outcome === Outcome.taken) add(out.taken, branch, times);
            else if (edge.outcome === Outcome.notTaken) add(out.notTaken, branch, times);
        };
        for (let r = s.rangeOf(begin); r < s.order.length && s.start[r]! < end; ++r) {
            if (s.start[r]! >= begin && s.start[r + 1]! <= end) ++whole[s.order[r]!]!;
            else count(s.order[r]!, Math.max(0, begin - s.start[r]!), Math.min(s.start[r + 1]!, end) - s.start[r]!, 1);
        }
        whole.forEach((times, e) => times > 0 && count(e, 0, s.edges[e]!.instructions, times));
    }
    return out;
}
