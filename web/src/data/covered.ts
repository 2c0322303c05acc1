/// Coverage of a part of the timeline, from the order of execution.
import { type Branches, type Code, type Coverage, type Report, Seen } from "./model";
import type { Ran } from "./steps";
import type { Classes, CoveredFiles } from "./wire";

/// What code is that was not seen to run in the part. `lost`: flow was lost there, so it may have run.
function notIn(ran: Ran, lost: boolean) {
    const exact = ran.whole && ran.placed && ran.counted && !lost;
    return (seen: number) => (exact && seen !== Seen.notObserved ? Seen.notExecuted : Seen.notObserved);
}

const placeOf = (source: number, line: number) => source * 2 ** 32 + line;

/// The code with what ran in the part. Counts of a line are the instructions that ran for it. Lines that share all their
/// instructions with other lines are not known.
export function codeIn(code: Code, ran: Ran, lost: boolean): Code {
    const { instructions, lines } = code.part;
    const unseen = notIn(ran, lost);
    const times = Array.from(code.address, (address) => ran.times.get(address) ?? 0);
    const ofLines = new Map<number, number>();
    times.forEach((n, i) => {
        const place = placeOf(instructions.source[i]!, instructions.line[i]!);
        ofLines.set(place, (ofLines.get(place) ?? 0) + n);
    });
    const line = lines.source.map((source, i) => ofLines.get(placeOf(source, code.line[i]!)));
    return {
        ...code,
        part: {
            ...code.part,
            instructions: { ...instructions, times, costs: undefined, seen: times.map((n, i) => (n > 0 ? Seen.executed : unseen(instructions.seen[i]!))) },
            lines: { ...lines, times: line.map((n) => n ?? 0), costs: [], seen: line.map((n, i) => (n === undefined ? Seen.notObserved : n > 0 ? Seen.executed : unseen(lines.seen[i]!))) },
        },
    };
}

/// The branches with what ran in the part.
export function branchesIn(branches: Branches, ran: Ran, lost: boolean): Branches {
    const whole = branches.part.branches;
    const unseen = notIn(ran, lost);
    const of = (counts: Map<bigint, number>) => Array.from(branches.address, (address) => counts.get(address) ?? 0);
    const taken = of(ran.taken);
    const notTaken = of(ran.notTaken);
    const seen = (times: number[], of: number[]) => times.map((n, i) => (n > 0 ? Seen.executed : unseen(of[i]!)));
    return {
        ...branches,
        part: {
            ...branches.part,
            branches: {
                ...whole,
                taken,
                notTaken,
                seenTaken: seen(taken, whole.seenTaken),
                seenNotTaken: seen(notTaken, whole.seenNotTaken),
                mispredicted: whole.mispredicted.map(() => -1),
            },
        },
    };
}

/// `code` and `branches` as in the part.
export function coverageIn(report: Report, coverage: Coverage, code: Code, branches: Branches): Coverage {
    const { part } = coverage;
    const { instructions, lines } = code.part;
    const { branches: b } = branches.part;
    const { own } = report.head.functions;
    const classes = (rows: number): Classes => [new Array<number>(rows).fill(0), new Array<number>(rows).fill(0), new Array<number>(rows).fill(0)];
    const best = (all: Map<number, number>, key: number, seen: number) => {
        const was = all.get(key);
        if (was === undefined || seen === Seen.executed || was === Seen.notExecuted) all.set(key, was === Seen.executed ? was : seen);
    };
    /// By row; `last`: the row of the sum, or none.
    const count = (rows: number, row: (f: number, source: number) => number, last: number, chosen: (f: number) => boolean) => {
        const out = { instructions: classes(rows), lines: classes(rows), directions: classes(rows) };
        const add = (c: Classes, r: number, seen: number) => {
            if (r >= 0) ++c[seen as Seen][r]!;
            if (last >= 0) ++c[seen as Seen][last]!;
        };
        const linesOf = Array.from({ length: rows }, () => new Map<number, number>());
        const linesOfSum = new Map<number, number>();
        instructions.function.forEach((f, i) => {
            if (!chosen(f)) return;
            const source = instructions.source[i]!;
            add(out.instructions, row(f, source), instructions.seen[i]!);
            if (source < 0 || instructions.line[i] === 0) return;
            const place = placeOf(source, instructions.line[i]!);
            const mine = linesOf[row(f, source)];
            if (mine !== undefined) best(mine, place, instructions.seen[i]!);
            best(linesOfSum, place, instructions.seen[i]!);
        });
        if (last >= 0) linesOf[last] = linesOfSum;
        linesOf.forEach((all, r) => all.forEach((seen) => ++out.lines[seen as Seen][r]!));
        b.kind.forEach((kind, i) => {
            if (kind !== 0 || !chosen(b.function[i]!)) return;
            for (const seen of [b.seenTaken[i]!, b.seenNotTaken[i]!]) add(out.directions, row(b.function[i]!, b.source[i]!), seen);
        });
        return out;
    };
    const files = (of: CoveredFiles, chosen: (f: number) => boolean): CoveredFiles => {
        const bySource = new Map(of.source.flatMap((source, i) => (source >= 0 ? [[source, i] as const] : [])));
        const byName = new Map(of.name.map((name, i) => [name, i] as const));
        const row = (f: number, source: number) =>
            (source >= 0 ? bySource.get(source) : byName.get(`${report.head.images[report.head.functions.image[f] ?? -1]?.name || "[no image]"} (no lines)`)) ?? -1;
        const ran = new Set<number>();
        const all = new Set<number>();
        instructions.function.forEach((f, i) => {
            if (!chosen(f)) return;
            all.add(f);
            if (instructions.seen[i] === Seen.executed) ran.add(f);
        });
        return { ...of, ...count(of.name.length, row, of.name.length - 1, chosen), functions: all.size, ran: ran.size };
    };
    const rowOf = new Map(part.functions.function.map((f, i) => [f, i] as const));

    // Stretches that did not run, and branches that went one way.
    const uncovered: CoveragePartLists = { seen: [], what: [], instructions: [], function: [], source: [], first: [], last: [] };
    const begin: bigint[] = [];
    const put = (at: bigint, what: number, count: number, f: number, source: number, first: number, last: number, seen: number) => {
        begin.push(at);
        uncovered.what.push(what);
        uncovered.instructions.push(count);
        uncovered.function.push(f);
        uncovered.source.push(source);
        uncovered.first.push(first);
        uncovered.last.push(last);
        uncovered.seen.push(seen);
    };
    for (let i = 0; i < code.address.length; ) {
        const seen = instructions.seen[i]!;
        let end = i + 1;
        if (seen !== Seen.executed) {
            const f = instructions.function[i]!;
            const source = instructions.source[i]!;
            const joins = (k: number) => instructions.seen[k] === seen && instructions.function[k] === f && instructions.source[k] === source && code.address[k] === code.address[k - 1]! + BigInt(instructions.bytes[k - 1]!);
            while (end < code.address.length && joins(end)) ++end;
            const of = instructions.line.slice(i, end).filter((line) => line > 0);
            put(code.address[i]!, 0, end - i, f, source, of.length > 0 ? Math.min(...of) : 0, of.length > 0 ? Math.max(...of) : 0, seen);
        }
        i = end;
    }
    b.kind.forEach((kind, i) => {
        if (kind !== 0 || (b.taken[i] === 0) === (b.notTaken[i] === 0)) return;
        const never = b.taken[i] === 0;
        put(branches.address[i]!, never ? 1 : 2, 1, b.function[i]!, b.source[i]!, b.line[i]!, b.line[i]!, never ? b.seenTaken[i]! : b.seenNotTaken[i]!);
    });
    const all = () => true;
    return {
        begin: BigUint64Array.from(begin),
        part: {
            ...part,
            files: files(part.files, all),
            own: files(part.own, (f) => own[f] === 1),
            functions: { function: part.functions.function, ...count(part.functions.function.length, (f) => rowOf.get(f) ?? -1, -1, all) },
            uncovered: { ...part.uncovered, ...uncovered },
            bound: lines.seen.includes(Seen.notObserved) ? "at least" : "",
        },
    };
}

type CoveragePartLists = Record<"seen" | "what" | "instructions" | "function" | "source" | "first" | "last", number[]>;
