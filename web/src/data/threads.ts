/// Names of threads: the function in which each began.
import type { Timeline } from "./model";
import { Kind, type Tree } from "./tree";

/// Functions with which a C library starts programs and threads.
const starter = /^(_start|__libc_start_\w+|generic_start_main|_*clone\d?|thread_start|start_thread|__pthread_start)$/;

/// The name of the symbol before, and the distance from it, of code without a symbol of its own.
export const guessed = /\+0x[0-9a-f]+\?$/;

export const guessedNote = "A name with +0x…? is that of the symbol before code without a symbol of its own.";

interface Named {
    name: string[];
    own: number[];
}

/// Whether `f` says nothing about the thread that began in it.
const isStarter = (functions: Named, f: number) =>
    starter.test(functions.name[f]!) || (functions.own[f] !== 1 && guessed.test(functions.name[f]!));

/// Whether `f` says more about a thread than `other`, which took less.
const isBetter = (functions: Named, f: number, cost: number, other: number, otherCost: number) =>
    other < 0 || functions.own[f]! > functions.own[other]! || (functions.own[f] === functions.own[other] && cost > otherCost);

/// By track: the longest call that only starters called; one of the program's own code before others. -1: there is
/// none, or several functions take turns: a core on which a program of its own changes tasks.
export function beganIn(timeline: Timeline, functions: Named): number[] {
    const { tracks, slices, handlers } = timeline.part;
    const skip = new Set(handlers);
    const out = tracks.name.map(() => -1);
    const took = tracks.name.map(() => 0);
    const turns = tracks.name.map((): number[] => []);
    // How many starters are in progress, and whether there are only starters.
    let track = -1;
    let starters = 0;
    for (let i = 0; i < slices.depth.length; ++i) {
        if (timeline.track[i] !== track) starters = 0;
        track = timeline.track[i]!;
        const depth = slices.depth[i]!;
        const f = slices.function[i]!;
        if (depth > starters || f < 0) continue;
        starters = depth;
        if (slices.merged[i] !== 1 || skip.has(f)) continue;
        if (isStarter(functions, f)) {
            starters = depth + 1;
            continue;
        }
        if (turns[track]!.at(-1) !== f) turns[track]!.push(f);
        if (isBetter(functions, f, timeline.length[i]!, out[track]!, took[track]!)) {
            out[track] = f;
            took[track] = timeline.length[i]!;
        }
    }
    return out.map((best, track) => {
        const alike = turns[track]!.filter((f) => functions.own[f] === functions.own[best]);
        return alike.some((f, i) => f !== best && alike.indexOf(best) < i && alike.lastIndexOf(best) > i) ? -1 : best;
    });
}

/// The same of a context of a call tree, by what its calls cost.
export function contextBeganIn(tree: Tree, cost: Float64Array, functions: Named, context: number): number {
    let best = -1;
    let most = 0;
    const again: number[] = [];
    const within = new Set([context]);
    for (let i = context + 1; i < tree.parent.length; ++i) {
        const f = tree.function[i]!;
        if (!within.has(tree.parent[i]!) || f < 0) continue;
        if (isStarter(functions, f)) {
            within.add(i);
            continue;
        }
        if (tree.calls[i]! > 1 && tree.kind[i] !== Kind.interrupt) again.push(f);
        if (isBetter(functions, f, cost[i]!, best, most)) {
            best = f;
            most = cost[i]!;
        }
    }
    // Functions that take turns.
    return again.includes(best) && again.some((f) => f !== best && functions.own[f] === functions.own[best]) ? -1 : best;
}
