/// The current view and what it shows. Stored after the # of the address, so that the back button works.

export type ViewId =
    | "summary"
    | "against"
    | "calls"
    | "timeline"
    | "steps"
    | "functions"
    | "code"
    | "coverage"
    | "branches"
    | "blocks"
    | "loops"
    | "exceptions"
    | "charts"
    | "tables";

export interface Place {
    view: ViewId;
    function?: number;
    source?: number;
    line?: number;
    address?: bigint;
    /// The visible range of the timeline, relative to its start, or of the flame graph, in the metric's unit.
    from?: number;
    to?: number;
    metric?: number;
    context?: number;
    /// Stepping: the source of program flow, and the number of its instructions that ran before the shown instruction.
    stream?: number;
    step?: number;
    query?: string;
    /// Direction and order of the flame graph; the selected rows of a table.
    way?: string;
    order?: string;
    which?: string;
    /// 1: only the program's own code; 0: all. In every view.
    own?: string;
    /// The selected range of the timeline (data/range.ts), the ranges that are kept, and the one it is compared with.
    range?: string;
    ranges?: string;
    against?: string;
    /// A slice of the timeline: track, begin and depth.
    pick?: string;
}

const numbers = ["line", "from", "to", "context", "stream", "step"] as const;
/// Rows of the report: an address has their names, which stay right when the report is written again.
const rows = ["function", "source", "metric"] as const;
export type LinkNames = Record<(typeof rows)[number], string[]>;
let nameOf: LinkNames = { function: [], source: [], metric: [] };
let rowOf: Record<(typeof rows)[number], Map<string, number>> = { function: new Map(), source: new Map(), metric: new Map() };

/// The names of all rows. A row whose name an earlier row has is called by its name and number.
export function setLinkNames(names: LinkNames) {
    const unique = (all: string[]) => {
        const seen = new Set<string>();
        return all.map((name, i) => {
            const own = name === "" || seen.has(name) ? `${name}#${i}` : name;
            seen.add(own);
            return own;
        });
    };
    nameOf = { function: unique(names.function), source: unique(names.source), metric: unique(names.metric) };
    const numbered = (all: string[]) => new Map(all.map((name, i) => [name, i]));
    rowOf = { function: numbered(nameOf.function), source: numbered(nameOf.source), metric: numbered(nameOf.metric) };
}

/// State that belongs to one view.
export const texts = ["query", "way", "order", "which", "pick"] as const;
/// State that all views share.
export const lasting = ["own", "range", "ranges", "against"] as const;

export function placeOf(hash: string): Place {
    const [view = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
    const values = new URLSearchParams(query);
    const place: Place = { view: (view || "summary") as ViewId };
    for (const key of numbers) {
        const text = values.get(key);
        if (text !== null && /^\d+$/.test(text)) place[key] = Number(text);
    }
    for (const key of rows) {
        const text = values.get(key);
        if (text === null) continue;
        const row = rowOf[key].get(text) ?? (/^\d+$/.test(text) ? Number(text) : undefined);
        if (row !== undefined) place[key] = row;
    }
    for (const key of [...texts, ...lasting]) {
        const text = values.get(key);
        if (text !== null && text !== "") place[key] = text;
    }
    const address = values.get("address");
    if (address !== null && /^0x[0-9a-f]+$/.test(address)) place.address = BigInt(address);
    return place;
}

export function hashOf(place: Place): string {
    const values = new URLSearchParams();
    for (const key of rows) if (place[key] !== undefined) values.set(key, nameOf[key][place[key]!] ?? String(place[key]));
    for (const key of numbers) if (place[key] !== undefined) values.set(key, String(place[key]));
    for (const key of [...texts, ...lasting]) if (place[key] !== undefined && place[key] !== "") values.set(key, place[key]!);
    if (place.address !== undefined) values.set("address", "0x" + place.address.toString(16));
    const query = values.toString();
    return `#/${place.view}${query === "" ? "" : "?" + query}`;
}

export interface ViewProps {
    report: import("../data/model").Report;
    place: Place;
    metric: number;
    setMetric: (metric: number) => void;
    /// A node of the call tree: the selected core, thread, task or source; 0: all.
    context: number;
    setContext: (node: number) => void;
    go: (place: Place) => void;
    /// Writes a change of this view into the address. `step`: the back button undoes it.
    keep: (change: Partial<Place>, step?: boolean) => void;
}
