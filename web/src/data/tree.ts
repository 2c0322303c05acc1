/// Call trees: sums, the inverted tree, and the position of each call in a flame graph.

export const enum Kind {
    root,
    call,
    interrupt,
    unsynchronised,
    tailCall,
    signal,
    folded,
}

/// Parents precede their children; the first is the root.
export interface Tree {
    parent: Int32Array; // -1: none
    function: Int32Array;
    kind: Uint8Array;
    calls: Float64Array;
    self: Float64Array[]; // by metric
}

/// The inclusive cost of each call.
export function inclusive(tree: Tree, metric: number): Float64Array {
    const sum = Float64Array.from(tree.self[metric] ?? new Float64Array(tree.parent.length));
    for (let i = sum.length; i-- > 0; ) {
        const parent = tree.parent[i]!;
        if (parent >= 0) sum[parent] = sum[parent]! + sum[i]!;
    }
    return sum;
}

/// The inverted tree: below the root the functions by self cost, below each its callers. Callers
/// beyond `most` nodes are merged.
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
            // The root is not a caller.
            if (up === 0 && tree.kind[up] === Kind.root && leaf !== 0) break;
            const key = (at * (functions + 2) + tree.function[up]! + 1) * 7 + tree.kind[up]!;
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

/// The positions of calls: from `x` to `x + width`, both in the metric, at `depth`.
export interface Layout {
    x: Float64Array;
    width: Float64Array;
    depth: Int32Array;
    /// The calls of each depth from left to right; calls without cost are omitted.
    rows: Int32Array[];
    /// Their left edges, for searching.
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
    // Level by level, so that each row is in order from left to right.
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

/// The index after the last of the calls from `i` on that are narrower than `narrow` and begin within it: they are drawn as one. A
/// wide call among them is drawn alone.
export function narrowUntil(place: Layout, depth: number, i: number, narrow: number): number {
    const row = place.rows[depth]!;
    const begins = place.rowX[depth]!;
    const until = begins[i]! + narrow;
    let next = i + 1;
    while (next < row.length && begins[next]! < until && place.width[row[next]!]! < narrow) ++next;
    return next;
}

/// `root` and all calls below it.
export function subtree(tree: Tree, root: number): Tree {
    if (root >= tree.parent.length) return tree;
    const rows: number[] = [];
    const at = new Int32Array(tree.parent.length).fill(-1);
    for (let i = root; i < at.length; ++i) {
        if (i !== root && !(tree.parent[i]! >= 0 && at[tree.parent[i]!]! >= 0)) continue;
        at[i] = rows.length;
        rows.push(i);
    }
    return {
        parent: Int32Array.from(rows, (i) => (i === root ? -1 : at[tree.parent[i]!]!)),
        function: Int32Array.from(rows, (i) => tree.function[i]!),
        kind: Uint8Array.from(rows, (i) => tree.kind[i]!),
        calls: Float64Array.from(rows, (i) => tree.calls[i]!),
        self: tree.self.map((column) => Float64Array.from(rows, (i) => column[i]!)),
    };
}

/// Two trees as one, by functions and kinds of calls. Its metrics: `metric` of each.
export function together(trees: [Tree, Tree], metric: number, functions: number): Tree {
    const parent = [-1];
    const name = [-1];
    const kind = [Kind.root as number];
    const calls = [0];
    const self = [[0], [0]] as [number[], number[]];
    const nodes = new Map<number, number>();
    trees.forEach((tree, side) => {
        const at = new Int32Array(tree.parent.length);
        for (let i = 0; i < at.length; ++i) {
            const up = tree.parent[i]!;
            if (up >= 0) {
                const key = (at[up]! * (functions + 2) + tree.function[i]! + 1) * 7 + tree.kind[i]!;
                let node = nodes.get(key);
                if (node === undefined) {
                    node = parent.length;
                    nodes.set(key, node);
                    parent.push(at[up]!);
                    name.push(tree.function[i]!);
                    kind.push(tree.kind[i]!);
                    calls.push(0);
                    self[0].push(0);
                    self[1].push(0);
                }
                at[i] = node;
            }
            calls[at[i]!]! += tree.calls[i]!;
            self[side as 0 | 1][at[i]!]! += tree.self[metric]?.[i] ?? 0;
        }
    });
    return {
        parent: Int32Array.from(parent),
        function: Int32Array.from(name),
        kind: Uint8Array.from(kind),
        calls: Float64Array.from(calls),
        self: self.map((column) => Float64Array.from(column)),
    };
}

/// The calls of all cores, threads, tasks or sources as one track: calls with the same callers are one.
export function withoutContexts(tree: Tree, functions: number): Tree {
    const parent = [-1];
    const name = [-1];
    const kind = [Kind.root as number];
    const calls = [0];
    const self = tree.self.map(() => [0]);
    const nodes = new Map<number, number>();
    const at = new Int32Array(tree.parent.length);
    for (let i = 0; i < at.length; ++i) {
        const up = tree.parent[i]!;
        if (up >= 0 && tree.kind[i] !== Kind.root) {
            const key = (at[up]! * (functions + 2) + tree.function[i]! + 1) * 7 + tree.kind[i]!;
            let node = nodes.get(key);
            if (node === undefined) {
                node = parent.length;
                nodes.set(key, node);
                parent.push(at[up]!);
                name.push(tree.function[i]!);
                kind.push(tree.kind[i]!);
                calls.push(0);
                for (const column of self) column.push(0);
            }
            at[i] = node;
            calls[node]! += tree.calls[i]!;
        }
        // A context is the root.
        self.forEach((column, m) => (column[at[i]!]! += tree.self[m]![i]!));
    }
    return {
        parent: Int32Array.from(parent),
        function: Int32Array.from(name),
        kind: Uint8Array.from(kind),
        calls: Float64Array.from(calls),
        self: self.map((column) => Float64Array.from(column)),
    };
}

/// The cost of each function below `tree`: self, inclusive (recursion counted once), and number of calls.
export function costsByFunction(tree: Tree, metric: number, functions: number): { self: Float64Array; total: Float64Array; calls: Float64Array } {
    const self = new Float64Array(functions);
    const total = new Float64Array(functions);
    const calls = new Float64Array(functions);
    const cost = inclusive(tree, metric);
    const children: number[][] = Array.from({ length: tree.parent.length }, () => []);
    for (let i = 0; i < cost.length; ++i) {
        const f = tree.function[i]!;
        if (tree.parent[i]! >= 0) children[tree.parent[i]!]!.push(i);
        if (f < 0) continue;
        self[f]! += tree.self[metric]?.[i] ?? 0;
        calls[f]! += tree.calls[i]!;
    }
    // A recursive call is counted at its outermost activation.
    const open = new Int32Array(functions);
    const todo: number[] = cost.length > 0 ? [0] : [];
    while (todo.length > 0) {
        const at = todo.pop()!;
        if (at < 0) {
            --open[tree.function[-at - 1]!]!;
            continue;
        }
        const f = tree.function[at]!;
        if (f >= 0) {
            if (open[f]!++ === 0) total[f]! += cost[at]!;
            todo.push(-at - 1);
        }
        for (const child of children[at]!) todo.push(child);
    }
    return { self, total, calls };
}

/// The cores, threads, tasks or sources with calls of their own that ran something; empty if there is only one.
export function contexts(tree: Tree): number[] {
    const out: number[] = [];
    const cost = inclusive(tree, 0);
    for (let i = 1; i < tree.parent.length; ++i) if (tree.kind[i] === Kind.root && cost[i]! > 0) out.push(i);
    return out.length > 1 ? out : [];
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

/// The share of the total that is in calls for which `is` holds, each counted once.
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
