/// Source and disassembly side by side, with the cost of each line and instruction, and whether it ran.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { branchesIn, codeIn } from "../data/covered";
import { type Branches, type Code, isaNames, Seen, seenWords } from "../data/model";
import { matcher } from "../data/search";
import { Choice, Copy, Loading, MetricChoice, Name, Search, SeenLegend, SeenMark, Segments, ViewHead, useLoaded } from "../ui/parts";
import { RangeBar, RanNote, useRan, WholeNote } from "../ui/range";
import { hashOf, type ViewProps } from "../ui/state";
import { counted, fileName, grouped, hex, percent, short, shortened } from "../ui/text";
import { placeText } from "./functions";

export function CodeView(props: ViewProps) {
    const loaded = useLoaded(() => Promise.all([props.report.code(), props.report.branches()]));
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the code" error={loaded} />;
    return <Both {...props} whole={loaded[0]} allBranches={loaded[1]} />;
}

function Both({ report, place, metric, setMetric, go, keep, whole, allBranches }: ViewProps & { whole: Code; allBranches: Branches }) {
    const { head } = report;
    const part = useRan({ report, place });
    const code = useMemo(() => (part === undefined ? whole : codeIn(whole, part.ran, part.lost)), [part]);
    const branches = useMemo(() => (part === undefined ? allBranches : branchesIn(allBranches, part.ran, part.lost)), [part]);
    const { instructions, lines } = code.part;
    const query = place.query ?? "";
    const setQuery = (query: string) => keep({ query });
    const [wanted, setSide] = useState<"source" | "code">("source");
    // On a narrow screen, a link to an instruction shows instructions.
    useEffect(() => {
        if (place.address !== undefined) setSide("code");
    }, [place.address]);
    const [line, setLine] = useState<{ source: number; line: number } | undefined>(undefined);

    // Functions with something to show, in order of decreasing cost.
    const functions = useMemo(() => {
        const cost = head.functions.self[metric] ?? [];
        const with_ = new Set(code.instructionsOf.keys());
        lines.function.forEach((f) => with_.add(f));
        with_.delete(-1);
        return [...with_].sort((a, b) => (cost[b] ?? 0) - (cost[a] ?? 0));
    }, [metric]);
    const total = useMemo(() => (head.functions.self[metric] ?? []).reduce((sum, c) => sum + c, 0), [metric]);
    const f = place.function ?? functions[0] ?? -1;

    const rows = code.instructionsOf.get(f) ?? [];
    // The file of a function is the one in which it begins, or that of most of its instructions.
    const source = useMemo(() => {
        if (place.source !== undefined) return place.source;
        const own = head.functions.source[f] ?? -1;
        if (own >= 0) return own;
        const votes = new Map<number, number>();
        for (const i of rows) if (instructions.source[i]! >= 0) votes.set(instructions.source[i]!, (votes.get(instructions.source[i]!) ?? 0) + 1);
        for (let i = 0; i < lines.source.length; ++i) if (lines.function[i] === f && lines.source[i]! >= 0) votes.set(lines.source[i]!, (votes.get(lines.source[i]!) ?? 0) + 1);
        return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
    }, [f, place.source]);

    const side = source < 0 ? "code" : wanted;

    const found = useMemo(() => {
        const is = matcher(query);
        return is ? functions.filter((i) => is(report.functionName(i))) : functions;
    }, [query, functions]);
    const costOf = (i: number) => (instructions.costs ? (instructions.costs[metric]?.[i] ?? 0) : instructions.times[i]!);
    const costName = instructions.costs ? (head.metrics[metric]?.name ?? "") : "times";
    const ran = rows.filter((i) => instructions.seen[i] === Seen.executed).length;
    const sampled = head.metrics[0]?.counted === false;
    const lost = rows.filter((i) => instructions.seen[i] === Seen.notObserved).length;

    return (
        <>
            <ViewHead title="Source and code">
                <MetricChoice metrics={head.metrics} value={metric} onChange={setMetric} />
                <SeenLegend heat={head.metrics[metric]?.name ?? "cost"} />
            </ViewHead>
            {part === undefined ? <WholeNote place={place} what="Counts are" /> : (
                <>
                    <RangeBar timeline={part.timeline} place={place} keep={keep} />
                    <RanNote {...part} what="how often each instruction ran in it. The list of functions is of the whole capture." />
                </>
            )}
            <div class={source < 0 ? "code no-source" : "code"}>
                <aside class="code-functions" aria-label="Functions">
                    <Search label="Search functions" value={query} onInput={setQuery} note={query === "" ? "" : grouped(found.length)} />
                    <ul class="function-list">
                        {found.slice(0, 500).map((i) => (
                            <li key={i}>
                                <a href={hashOf({ view: "code", function: i })} aria-current={i === f ? "true" : undefined}>
                                    <Name name={report.functionName(i)} most={30} />
                                    <span class="number">{percent(head.functions.self[metric]?.[i] ?? 0, total)}</span>
                                </a>
                            </li>
                        ))}
                    </ul>
                    {found.length > 500 && <p class="quiet">{counted(found.length - 500, "more", "more")}; use the search</p>}
                </aside>
                <div class="code-narrow">
                    <Choice label="Function" value={f} options={functions.slice(0, 500).map((i) => ({ value: i, name: report.functionName(i) }))} onChange={(i) => go({ view: "code", function: i })} />
                    <Segments
                        label="What is shown"
                        value={side}
                        onChange={setSide}
                        options={[
                            { value: "source", name: "Source" },
                            { value: "code", name: "Instructions" },
                        ]}
                    />
                </div>
                {source >= 0 && (
                    <section class={`code-pane ${side === "source" ? "" : "behind"}`} aria-label="Source">
                        <h2 title={report.sourceName(source)}>{fileName(report.sourceName(source))}</h2>
                        <Source code={code} source={source} f={f} first={head.functions.source[f] === source ? head.functions.line[f]! : 0} metric={metric} line={line?.source === source ? line.line : undefined}
                            select={(l) => setLine(line?.line === l && line.source === source ? undefined : { source, line: l })} place={place} />
                    </section>
                )}
                <section class={`code-pane ${side === "code" ? "" : "behind"}`} aria-label="Instructions">
                    <h2 title={report.functionName(f)}>
                        <Name name={report.functionName(f)} most={44} />
                        <span class="quiet">
                            {rows.length > 0 && (sampled ? ` ${counted(rows.length, "instruction")} sampled` : ` ${grouped(ran)} of ${counted(rows.length, "instruction")} ran`)}
                            {lost > 0 && `, ${grouped(lost)} not observed`}
                        </span>
                        {place.address !== undefined && head.has.steps > 0 && <a class="button small" href={hashOf({ view: "steps", address: place.address })} title="When this instruction ran: its first execution, and from there each other one">Its executions</a>}
                        {rows.length > 0 && <Copy small text={() => listing(report, code, rows, costOf, costName)} what="Copy" />}
                    </h2>
                    {source < 0 && <p class="note">There is no debug information for this function.</p>}
                    {rows.length > 0 ? (
                        <Instructions report={report} code={code} branches={branches} rows={rows} costOf={costOf} costName={costName} line={line} selectLine={setLine} address={place.address} />
                    ) : (
                        <p class="empty">The instructions of this function are not in the report.</p>
                    )}
                </section>
            </div>
        </>
    );
}

/// Instructions as text, with the cost of each.
function listing(report: ViewProps["report"], code: Code, rows: number[], costOf: (i: number) => number, costName: string): string {
    const { instructions, texts } = code.part;
    const lines = rows.map((i) => {
        const source = instructions.source[i]!;
        const place = instructions.line[i]! > 0 && source >= 0 ? `${fileName(report.sourceName(source))}:${instructions.line[i]}` : "";
        return [hex(code.address[i]!), costOf(i), seenWords[instructions.seen[i]!], texts[instructions.text[i]!] ?? "", place].join("\t");
    });
    return ["address\t" + costName + "\tcoverage\tinstruction\tline", ...lines].join("\n") + "\n";
}

const rowHeight = 20;

/// A list of rows of equal height; only visible rows are in the page.
function Rows(props: { count: number; label: string; at?: number; row: (i: number, active: string) => preact.ComponentChildren; open: (i: number) => void }) {
    const frame = useRef<HTMLDivElement>(null);
    const [active, setActive] = useState(-1);
    const [top, setTop] = useState(0);
    const [height, setHeight] = useState(600);
    useEffect(() => {
        const at = frame.current!;
        const observer = new ResizeObserver(() => setHeight(at.clientHeight));
        observer.observe(at);
        setHeight(at.clientHeight);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        const at = frame.current!;
        if (props.at === undefined || props.at < 0) return;
        const y = props.at * rowHeight;
        if (y < at.scrollTop + rowHeight || y > at.scrollTop + at.clientHeight - 3 * rowHeight) at.scrollTop = Math.max(0, y - at.clientHeight / 4);
    }, [props.at]);
    const first = Math.max(0, Math.floor(top / rowHeight) - 10);
    const last = Math.min(props.count, Math.ceil((top + height) / rowHeight) + 10);
    const rows = [];
    for (let i = first; i < last; ++i) rows.push(props.row(i, i === active ? " active" : ""));
    const onKeyDown = (event: KeyboardEvent) => {
        const from = active < 0 ? Math.max(0, props.at ?? 0) : active;
        const page = Math.max(1, Math.floor(height / rowHeight) - 2);
        const steps: Record<string, number> = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: props.count - 1 };
        const to = steps[event.key];
        if (to !== undefined) {
            const row = Math.max(0, Math.min(props.count - 1, to));
            const at = frame.current!;
            setActive(row);
            if (row * rowHeight < at.scrollTop) at.scrollTop = row * rowHeight;
            else if ((row + 1) * rowHeight > at.scrollTop + at.clientHeight - 12) at.scrollTop = (row + 1) * rowHeight - at.clientHeight + 12;
        } else if (event.key === "Enter" && active >= 0) props.open(active);
        else return;
        event.preventDefault();
    };
    return (
        <div ref={frame} class="listing" tabIndex={0} role="region" aria-label={props.label} onKeyDown={onKeyDown} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
            <div style={{ height: props.count * rowHeight }}>
                <div style={{ transform: `translateY(${first * rowHeight}px)` }}>{rows}</div>
            </div>
        </div>
    );
}

/// Strength of a background: a hundredth of the maximum is still visible.
const heat = (part: number, most: number) => (part > 0 && most > 0 ? Math.max(0.06, Math.sqrt(part / most)) : 0);

export function Source(props: { code: Code; source: number; f: number; first: number; metric: number; line: number | undefined; select: (line: number) => void; place: ViewProps["place"] }) {
    const { code, source } = props;
    const { lines } = code.part;
    const byLine = useMemo(() => {
        const out = new Map<number, number>();
        for (const i of code.linesOf[source] ?? []) out.set(code.line[i]!, i);
        return out;
    }, [source, code]);
    const costOf = (i: number) => lines.costs[props.metric]?.[i] || lines.times[i] || 0;
    const most = useMemo(() => Math.max(0, ...[...byLine.values()].map(costOf)), [byLine, props.metric, code]);
    const last = Math.max(code.lastLine(source), ...byLine.keys(), 0);
    const hasText = code.lastLine(source) > 0;
    // Without source text, only lines with code get a row; with parts of the text, those parts do.
    const shown = useMemo(() => {
        const out: number[] = [];
        for (let l = 1; l <= last; ++l) if (byLine.has(l) || code.text(source, l) !== undefined) out.push(l);
        return out;
    }, [source]);
    const firstOfFunction = useMemo(() => {
        if (props.place.line) return props.place.line;
        let hot = 0;
        let best = 0;
        let first = Infinity;
        for (const [l, i] of byLine)
            if (lines.function[i] === props.f) {
                first = Math.min(first, l);
                if (costOf(i) > best) {
                    best = costOf(i);
                    hot = l;
                }
            }
        return props.first || (Number.isFinite(first) ? first : hot);
    }, [source, props.f]);
    const goal = shown.indexOf(props.line ?? firstOfFunction);
    return (
        <>
            {!hasText && <p class="note">The text of this file was not found: these are the lines that have code.</p>}
            <Rows count={shown.length} label="Source lines; Enter shows the instructions of a line" at={goal} open={(k) => byLine.has(shown[k]!) && props.select(shown[k]!)} row={(k, active) => {
                const l = shown[k]!;
                const i = byLine.get(l);
                const cost = i === undefined ? 0 : costOf(i);
                const away = k > 0 && shown[k - 1] !== l - 1;
                return (
                    <div key={l} class={`line${l === props.line ? " chosen" : ""}${i === undefined ? "" : " with-code"}${away ? " away" : ""}${active}`} style={{ "--heat-part": heat(cost, most) }} onClick={i === undefined ? undefined : () => props.select(l)}>
                        <span class="gutter">{i === undefined ? "" : <SeenMark seen={lines.seen[i]!} />}</span>
                        <span class="line-number">{l}</span>
                        <span class="cost" title={i === undefined ? undefined : `${grouped(cost)}; ${seenWords[lines.seen[i]!]}`}>{cost > 0 ? short(cost) : ""}</span>
                        <code>{code.text(source, l) ?? ""}</code>
                    </div>
                );
            }} />
        </>
    );
}

function Instructions(props: {
    report: ViewProps["report"];
    code: Code;
    branches: Branches;
    rows: number[];
    costOf: (i: number) => number;
    costName: string;
    line: { source: number; line: number } | undefined;
    selectLine: (line: { source: number; line: number } | undefined) => void;
    address: bigint | undefined;
}) {
    const { code, rows, report } = props;
    const { instructions, texts } = code.part;
    // Rows of the list: instruction i, preceded by -1 - i where the inlined call changes.
    const items = useMemo(() => {
        const of = instructions.inlined;
        if (of === undefined) return rows;
        return rows.flatMap((i, k) => ((of[i] ?? -1) !== (k === 0 ? -1 : (of[rows[k - 1]!] ?? -1)) ? [-1 - i, i] : [i]));
    }, [rows]);
    const branchAt = useMemo(() => new Map(Array.from(props.branches.address, (a, b) => [a, b] as const)), [props.branches]);
    // Relative to the hottest line of the function; if nothing is hot, nothing is highlighted.
    const most = useMemo(() => {
        let all = 0;
        for (let i = 0; i < instructions.times.length; ++i) all = Math.max(all, props.costOf(i));
        return Math.max(all / 100, ...rows.map(props.costOf));
    }, [rows, props.costName, code]);
    const isLine = (i: number) => props.line !== undefined && instructions.source[i] === props.line.source && instructions.line[i] === props.line.line;
    const choose = (i: number) => {
        if (instructions.line[i]! > 0) props.selectLine(isLine(i) ? undefined : { source: instructions.source[i]!, line: instructions.line[i]! });
    };
    const goal = props.line
        ? items.findIndex((i) => i >= 0 && isLine(i))
        : props.address !== undefined
          ? items.findIndex((i) => i >= 0 && code.address[i] === props.address)
          : -1;
    return (
        <Rows count={items.length} label={`Instructions, ${props.costName} of each; Enter shows the line of one`} at={goal} open={(k) => items[k]! >= 0 && choose(items[k]!)} row={(k, active) => {
            const i = items[k]!;
            if (i < 0) return <InlinedHead key={i} report={report} code={code} i={-1 - i} active={active} />;
            const cost = props.costOf(i);
            const before = items[k - 1]! < 0 ? undefined : items[k - 1];
            const newLine = instructions.line[i]! > 0 && (before === undefined || instructions.line[before] !== instructions.line[i] || instructions.source[before] !== instructions.source[i]);
            const source = instructions.source[i]!;
            return (
                <div key={i} class={`line instruction with-code${isLine(i) ? " chosen" : ""}${code.address[i] === props.address ? " goal" : ""}${active}`} style={{ "--heat-part": heat(cost, most) }}
                    onClick={(event) => !(event.target as HTMLElement).closest("a") && choose(i)}>
                    <span class="gutter"><SeenMark seen={instructions.seen[i]!} /></span>
                    <span class="line-number" title={isaNames[instructions.isa[i]!]}>{hex(code.address[i]!).slice(2)}</span>
                    <span class="cost" title={`${grouped(cost)}; ${seenWords[instructions.seen[i]!]}`}>{cost > 0 ? short(cost) : ""}</span>
                    <InstructionText text={texts[instructions.text[i]!] || `${isaNames[instructions.isa[i]!]}, ${counted(instructions.bytes[i]!, "byte")}`}
                        report={report} branches={props.branches} b={branchAt.get(code.address[i]!) ?? -1} at={code.address[i]!} />
                    <span class="of-line" title={report.sourceName(source)}>{newLine ? `${source >= 0 ? fileName(report.sourceName(source)) : ""}:${instructions.line[i]}` : ""}</span>
                </div>
            );
        }} />
    );
}

/// An instruction; where it leads is a link with a name.
function InstructionText({ text, report, branches, b, at }: { text: string; report: ViewProps["report"]; branches: Branches; b: number; at: bigint }) {
    const space = text.indexOf(" ");
    const target = b < 0 ? 0n : branches.target[b]!;
    if (target === 0n) return <code><span class="mnemonic">{space < 0 ? text : text.slice(0, space)}</span>{space < 0 ? "" : text.slice(space)}</code>;
    const f = report.functionAt(target);
    const name = report.placeName(target);
    // The text ends with the target's address.
    const before = text.replace(/#?0x[0-9a-f]+$/i, "");
    const cut = before === text ? before + " " : before;
    const way = target === at ? "↻" : target < at ? "↑" : "↓";
    // Within a function, the distance from its beginning is enough.
    const near = f >= 0 && f === report.functionAt(at);
    const label = name === "" ? hex(target) : near ? name.slice(name.lastIndexOf("+")).replace(/^[^+].*/, "+0x0") : shortened(name, 48);
    return (
        <code>
            <span class="mnemonic">{cut.slice(0, cut.indexOf(" "))}</span>
            {cut.slice(cut.indexOf(" "))}
            {f < 0 ? <span class="target">{label}</span> : (
                <a class="target" href={hashOf({ view: "code", function: f, address: target })} title={`${name}, ${hex(target)}`}>{label}</a>
            )}
            <span class="way" aria-hidden="true"> {near ? way : "→"}</span>
            <Ways branches={branches} b={b} />
        </code>
    );
}

/// How often a branch was taken and not taken.
function Ways({ branches, b }: { branches: Branches; b: number }) {
    const { kind, taken, notTaken, seenTaken, seenNotTaken } = branches.part.branches;
    if (b < 0 || kind[b] !== 0) return null;
    const never = (times: number, seen: number) => (times > 0 ? short(times) : taken[b]! + notTaken[b]! === 0 ? "–" : seen === Seen.notObserved ? "not observed" : "never");
    return (
        <span class="ways" title={`taken ${grouped(taken[b]!)}, not taken ${grouped(notTaken[b]!)}`}>
            taken <b class={taken[b] === 0 ? "missed" : ""}>{never(taken[b]!, seenTaken[b]!)}</b>, not <b class={notTaken[b] === 0 ? "missed" : ""}>{never(notTaken[b]!, seenNotTaken[b]!)}</b>
        </span>
    );
}

/// Names the inlined call of the instructions below, or says that they are the function's own again.
function InlinedHead({ report, code, i, active }: { report: ViewProps["report"]; code: Code; i: number; active: string }) {
    const { instructions, inlined, texts } = code.part;
    const of = (call: number) => {
        const line = inlined!.line[call]!;
        const place = placeText(report, inlined!.source[call]!, line);
        return `${texts[inlined!.name[call]!] || "[unknown]"}${place === "" ? "" : ` (${place})`}`;
    };
    const calls: string[] = [];
    for (let call = instructions.inlined?.[i] ?? -1; call >= 0; call = inlined!.parent[call]!) calls.push(of(call));
    const text = calls.length > 0 ? `inlined from ${calls[0]}` : `${report.functionName(instructions.function[i]!)} itself`;
    return (
        <div class={`line inlined-head${active}`} title={calls.length > 1 ? calls.join(", in ") : undefined}>
            <span />
            <span>{text}</span>
        </div>
    );
}
