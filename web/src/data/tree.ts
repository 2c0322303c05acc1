/// Call trees: sums, the tree seen from its leaves, and where each call stands in a flame graph.

export const enum Kind {
    root,
    call,
    interrupt,
    unsynchronised,
    folded,
}

/// Parents stand before their children; the first is the root.
export interface Tree {
    parent: Int32Array; // -1: none
    function: Int32Array;
    kind: Uint8Array;
    calls: Float64Array;
    self: Float64Array[]; // by metric
}

/// What each call cost with all that it called.
export function inclusive(tree: Tree, metric: number): Float64Array {
    const sum = Float64Array.from(tree.self[metric] ?? new Float64Array(tree.parent.length));
    for (let i = sum.length; i-- > 0; ) {
        const parent = tree.parent[i]!;
        if (parent >= 0) sum[parent] = sum[parent]! + sum[i]!;
    }
    return sum;
}

/// The tree from its leaves: below the root the functions by what they cost themselves, below each its callers. Callers
/// beyond `most` nodes are not told apart.
export function inverted(tree: Tree, metric: number, functions: number, most = 250000): Tree {
    const self = tree.self[metric] ?? new Float64Array(tree.parent.length);
    const order = Array.from(self.keys()).filter((i) => self[i]! > 0);
    order.sort((a, b) => self[b]! - self[a]!);
    const parent = [-1];
    const name = [-1];
    const kind = [Kind.root as number];
    const calls = [0];
    const cost = [0];
    const children = new Map<number, number>();
    for (const leaf of order) {
        let at = 0;
        for (let up = leaf; up >= 0; up = tree.parent[up]!) {
            // The root of everything calls nobody.
            if (up === 0 && tree.kind[up] === Kind.root && leaf !== 0) break;
            const key = (at * (functions + 2) + tree.function[up]! + 1) * 5 + tree.kind[up]!;
            let next = children.get(key);
            if (next === undefined) {
                if (parent.length >= most) break;
                next = parent.length;
                children.set(key, next);
                parent.push(at);
                name.push(tree.function[up]!);
                kind.push(tree.kind[up]!);
                calls.push(0);
                cost.push(0);
            }
            calls[next]! += tree.calls[leaf]!;
            at = next;
        }
        cost[at]! += self[leaf]!;
    }
    const columns = tree.self.map((_, m) => (m === metric ? Float64Array.from(cost) : new Float64Array(cost.length)));
    return {
        parent: Int32Array.from(parent),
        function: Int32Array.from(name),
        kind: Uint8Array.from(kind),
        calls: Float64Array.from(calls),
        self: columns,
    };
}

export type Order = "cost" | "name" | "first";

/// Where calls stand: from `x` to `x + width`, both in the metric, at `depth`.
export interface Layout {
    x: Float64Array;
    width: Float64Array;
    depth: Int32Array;
    /// The calls of each depth from left to right; those without cost have no place.
    rows: Int32Array[];
    /// The beginnings of those, for searching.
    rowX: Float64Array[];
    total: number;
}

export function layout(tree: Tree, metric: number, order: Order, nameOf: (node: number) => string): Layout {
    const width = inclusive(tree, metric);
    const size = width.length;
    const x = new Float64Array(size);
    const depth = new Int32Array(size);
    const children: number[][] = Array.from({ length: size }, () => []);
    for (let i = 1; i < size; ++i) if (width[i]! > 0 && tree.parent[i]! >= 0) children[tree.parent[i]!]!.push(i);
    const rows: number[][] = [];
    // Level by level, so that rows come out from left to right.
    let level = size > 0 ? [0] : [];
    while (level.length > 0) {
        rows.push(level);
        const next: number[] = [];
        for (const node of level) {
            const below = children[node]!;
            if (order === "cost") below.sort((a, b) => width[b]! - width[a]!);
            else if (order === "name") below.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
            let at = x[node]!;
            for (const child of below) {
                x[child] = at;
                depth[child] = depth[node]! + 1;
                at += width[child]!;
                next.push(child);
            }
        }
        level = next;
    }
    return {
        x,
        width,
        depth,
        rows: rows.map((row) => Int32Array.from(row)),
        rowX: rows.map((row) => Float64Array.from(row, (node) => x[node]!)),
        total: size > 0 ? width[0]! : 0,
    };
}

/// The call of row `depth` at `x`; -1: none.
export function nodeAt(place: Layout, depth: number, x: number): number {
    const row = place.rows[depth];
    const begins = place.rowX[depth];
    if (row === undefined || begins === undefined) return -1;
    let low = 0;
    let high = row.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (begins[middle]! <= x) low = middle + 1;
        else high = middle;
    }
    if (low === 0) return -1;
    const node = row[low - 1]!;
    return x < place.x[node]! + place.width[node]! ? node : -1;
}

/// The share of everything that lies in calls for which `is` holds, each counted once.
export function shareOf(place: Layout, tree: Tree, is: (node: number) => boolean): number {
    const within = new Uint8Array(tree.parent.length);
    let sum = 0;
    for (let i = 0; i < within.length; ++i) {
        const parent = tree.parent[i]!;
        if (parent >= 0 && within[parent]) within[i] = 1;
        else if (is(i)) {
            within[i] = 1;
            sum += place.width[i]!;
        }
    }
    return place.total > 0 ? sum / place.total : 0;
}
