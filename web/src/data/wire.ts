/// The data that `waymark report` puts into the page; src/report/*_section.cc write it. Columns instead of rows;
/// an index of -1 means none.

export interface Finding {
    severity: 0 | 1 | 2 | 3; // good, note, warning, bad
    what: string;
    todo: string;
    offset?: string;
}

export interface Figure {
    name: string;
    value: string;
    note: string;
}

export interface Metric {
    name: string;
    unit: string;
    figures: "exact" | "lower bound" | "estimate"; // what sums of this metric say about the whole run
    counted: boolean; // each thing was counted; false: an estimate from samples or stretches of the run
    note: string;
}

/// Differences; where a difference is too large for a number, the address itself in hexadecimal.
export type AddressColumn = (number | string)[];

export interface Chart {
    kind: 0 | 1; // histogram, shares
    title: string;
    xUnit: string;
    yUnit: string;
    note: string;
    label: string[];
    value: number[];
    barNote: string[];
}

export interface GenericTable {
    title: string;
    note: string;
    columns: string[];
    numbers: number[];
    rows: string[][];
    of: number;
}

export interface ExceptionRow {
    name: string;
    number: number;
    times: number;
    nested: number;
    returned: number;
    least: number;
    most: number;
    sum: number;
    unit: string;
}

/// What ran at an exception level, in a security state.
export interface LevelRow {
    name: string;
    entered: number;
    costs: number[]; // by metric
}

/// How far figures of one kind can be trusted, in sentences.
export interface Trust {
    view: string;
    exact: string;
    estimated: string;
    notKnown: string;
}

/// What the server that sent the page can be asked for (src/serve).
export interface Served {
    instructions: number; // windows up to here
    most: number; // instructions of a window
    complete: boolean; // `instructions` is all there are
    part: boolean; // the page is of the beginning of the trace
    begin: number; // of the page's window; both 0: it is of the run
    end: number;
}

export interface Head {
    format: number;
    capture: string;
    unit: string;
    version: string;
    traceBytes: number;
    run: string; // how much of the run this is
    served?: Served; // absent: the page is a file
    health: Finding[];
    summary: Figure[];
    metrics: Metric[];
    images: { name: string; path: string; buildId: string }[];
    sources: string[];
    functions: {
        name: string[];
        linkage: string[];
        image: number[];
        address: AddressColumn;
        bytes: number[];
        source: number[];
        line: number[];
        own: number[]; // code of the program itself, not of the system's libraries
        synthetic: number[];
        calls: number[];
        self: number[][];
        inclusive?: number[][];
    };
    loops: {
        head: AddressColumn;
        tail: AddressColumn;
        function: number[];
        source: number[];
        line: number[];
        entries: number[];
        iterations: number[];
        depth: number[];
        irreducible: number[];
        costs: number[][];
    };
    exceptions: ExceptionRow[];
    levels: LevelRow[];
    trust: Trust[];
    charts: Chart[];
    tables: GenericTable[];
    has: {
        calls: number;
        instructions: number;
        lines: number;
        coverage: number;
        against: number;
        branches: number;
        edges: number;
        blocks: number;
        slices: number;
        marks: number;
        series: number;
        steps: number; // streams that can be stepped through
    };
}

export interface CallsPart {
    parent: number[]; // differences
    function: number[];
    kind: number[]; // root, call, interrupt, unsynchronised, tail call, signal; 6: several, folded
    calls: number[];
    self: number[][];
}

export interface CodePart {
    instructions: {
        address: AddressColumn;
        bytes: number[];
        isa: number[];
        seen: number[];
        function: number[];
        source: number[];
        line: number[];
        times: number[];
        costs?: number[][];
        text: number[];
        inlined?: number[]; // the innermost inlined call
    };
    inlined?: { parent: number[]; name: number[]; source: number[]; line: number[] }; // name: of texts
    texts: string[];
    lines: {
        source: number[];
        line: number[]; // differences
        seen: number[];
        function: number[];
        times: number[];
        costs: number[][];
    };
    sources: (number | string)[][]; // first line, text, first line, text, …
}

/// By executed, not executed, not observed; then by row.
export type Classes = [number[], number[], number[]];

export interface CoveredFiles {
    name: string[]; // the last row is the sum
    source: number[];
    instructions: Classes;
    lines: Classes;
    directions: Classes;
    functions: number;
    ran: number;
}

export interface CoveragePart {
    files: CoveredFiles;
    own: CoveredFiles; // of the program's own functions
    functions: { function: number[]; instructions: Classes; lines: Classes; directions: Classes };
    uncovered: {
        seen: number[];
        what: number[]; // code, never taken, always taken
        instructions: number[];
        begin: AddressColumn;
        function: number[];
        source: number[];
        first: number[];
        last: number[];
    };
    bound: string; // of the functions that ran: at least, about; empty: they are exact
    notWhole: string[];
}

/// Another capture and what changed: the columns of `waymark diff`, as text.
export interface AgainstPart {
    capture: string;
    metric: string;
    unit: string;
    counted: boolean;
    before: number;
    after: number;
    runs: [string, string];
    remarks: Finding[];
    table: { function: string[]; before: string[]; after: string[]; change: string[]; calls_before?: string[]; calls_after?: string[]; sure?: string[]; image?: string[]; file?: string[] };
    tree?: { parent: number[]; name: number[]; kind: number[]; before: number[]; after: number[] };
    names?: string[];
}

export interface BranchesPart {
    branches: {
        address: AddressColumn;
        target: AddressColumn;
        kind: number[];
        function: number[];
        source: number[];
        line: number[];
        taken: number[];
        notTaken: number[];
        seenTaken: number[];
        seenNotTaken: number[];
        mispredicted: number[];
    };
    edges: { from: number[]; to: number[]; times: number[] };
    blocks: {
        address: AddressColumn;
        bytes: number[];
        instructions: number[];
        function: number[];
        times: number[];
        source: number[];
        line: number[];
    };
}

export interface SeriesPart {
    name: string;
    unit: string;
    track: number;
    time: number[]; // differences
    value: string[];
}

export interface TimelinePart {
    axis: {
        unit: string;
        ticksPerSecond: number;
        begin: string;
        length: number;
        uncertainty: number;
        note: string;
    };
    resolution: number;
    window: boolean; // a part of the run: calls are cut where it begins
    handlers: number[]; // functions that stand for exceptions
    resumed: number[]; // functions whose caller was not seen
    bound: string; // what lengths of whole calls are; empty: there are no single calls
    tracks: { name: string[]; parent: number[] };
    slices: {
        begin: number[]; // differences
        length: number[];
        track: number[]; // differences
        function: number[];
        depth: number[];
        merged: number[];
    };
    marks: { begin: number[]; length: number[]; track: number[]; kind: number[]; text: number[] };
    texts: string[];
    series: SeriesPart[];
}

/// The beginning of each stream of program flow, or that of a window, in its order.
export interface StepsPart {
    streams: {
        source: string;
        instructions: number; // of all the stream, or the window
        window: boolean;
        first: number; // instructions of the stream before what is kept
        lead: number; // kept instructions before the beginning of an axis of instructions
        edges: { address: AddressColumn; bytes: number[]; instructions: number[]; isa: number[]; outcome: number[] };
        order: number[];
        frames: { at: number[]; time?: number[]; what: number[]; depth: number[]; function: number[] }; // at, time: differences; what: enter, leave, change of context
        events: { at: number[]; kind: number[]; text: number[] }; // at: differences
    }[];
    texts: string[];
}
