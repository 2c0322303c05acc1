/// All functions with their costs; one function with its callers.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";

import { inRange } from "../data/range";
import { costsByFunction, inclusive, subtree, type Tree } from "../data/tree";
import { matcher } from "../data/search";
import { guessed, guessedNote } from "../data/threads";
import { Copy, MetricChoice, Name, Search, Share, ViewHead, useLoaded } from "../ui/parts";
import { RangeBar, RangeNote, selectedRange, useTimeline } from "../ui/range";
import { hashOf, type ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { ContextChoice } from "./calls";
import { OwnChoice, ownOnly } from "./coverage";
import { SingleCalls } from "./singles";
import { counted, fileName, grouped, hex, full, timeText, withUnit } from "../ui/text";

/// The call tree, if there is one.
function useTree(report: ViewProps["report"]): Tree | undefined {
    const tree = useLoaded<Tree | undefined>(() => (report.head.has.calls > 1 ? report.calls() : Promise.resolve(undefined)));
    return tree instanceof Error ? undefined : tree;
}

export function FunctionsView({ report, place, metric, setMetric, context, setContext, go, keep }: ViewProps) {
    const { head } = report;
    const { functions } = head;
    const query = place.query ?? "";
    const setQuery = (query: string) => keep({ query });
    const tree = useTree(report);
    // For one core, thread, task or source, costs are the costs of its calls.
    const timeline = useTimeline(report);
    const range = selectedRange(timeline, place);
    const ranged = useMemo(() => (timeline && range ? inRange(timeline, range, functions.name.length) : undefined), [timeline, place.range]);
    const other = useMemo(() => {
        const against = selectedRange(timeline, { ...place, range: place.against });
        return timeline && ranged && against ? { range: against, ...costsByFunction(inRange(timeline, against, functions.name.length).tree, 0, functions.name.length) } : undefined;
    }, [timeline, ranged, place.against]);
    const part = useMemo(() => {
        if (ranged) return costsByFunction(ranged.tree, 0, functions.name.length);
        return tree && context > 0 ? costsByFunction(subtree(tree, context), metric, functions.name.length) : undefined;
    }, [tree, context, metric, ranged]);
    const own = ownOnly(report, place);
    const self: ArrayLike<number> = part?.self ?? functions.self[metric] ?? [];
    const whole: ArrayLike<number> | undefined = part?.total ?? functions.inclusive?.[metric];
    const calls: ArrayLike<number> = part?.calls ?? functions.calls;
    const total = useMemo(() => Array.from(self).reduce((sum, c) => sum + c, 0), [self]);
    const unit = ranged ? timeline!.part.axis.unit : (head.metrics[metric]?.name ?? "");
    const rows = useMemo(() => {
        const is = matcher(query);
        return functions.name
            .map((_, i) => i)
            .filter((i) => report.isFunction(i))
            .filter((i) => part === undefined || part.total[i]! > 0 || part.calls[i]! > 0 || (other !== undefined && (other.total[i]! > 0 || other.calls[i]! > 0)))
            .filter((i) => own !== true || functions.own[i] === 1)
            .filter((i) => is === undefined || is(`${functions.name[i]} ${report.imageName(i)} ${report.sourceName(functions.source[i]!)}`));
    }, [query, part, other, own]);
    const columns = useMemo<Column[]>(() => {
        const out: Column[] = [
            {
                id: "name",
                name: "Function",
                width: "minmax(170px, 3fr)",
                value: (i) => report.functionName(i),
                show: (i) => <Name name={report.functionName(i)} />,
            },
            {
                id: "self",
                name: "Self",
                title: `${unit} of the function itself`,
                number: true,
                width: "minmax(176px, 1.3fr)",
                value: (i) => self[i] ?? 0,
                show: (i) => (
                    <span class="with-share">
                        <span title={withUnit(self[i] ?? 0, unit)}>{full(self[i] ?? 0)}</span> <Share part={self[i] ?? 0} whole={total} />
                    </span>
                ),
            },
        ];
        if (whole)
            out.push({
                id: "total",
                name: "Total",
                title: `${unit} of the function and all it calls`,
                number: true,
                width: "minmax(176px, 1.3fr)",
                value: (i) => whole[i] ?? 0,
                show: (i) => (
                    <span class="with-share">
                        <span title={withUnit(whole[i] ?? 0, unit)}>{full(whole[i] ?? 0)}</span> <Share part={whole[i] ?? 0} whole={total} />
                    </span>
                ),
            });
        if (other && part) {
            const change = (id: string, name: string, now: ArrayLike<number>, then: ArrayLike<number>): Column => ({
                id,
                name,
                title: `${unit} in this range more than in the other`,
                number: true,
                width: "minmax(100px, 130px)",
                value: (i) => now[i]! - then[i]!,
                show: (i) => <span title={`${grouped(now[i]!)} here, ${grouped(then[i]!)} there`}>{now[i]! > then[i]! ? "+" : ""}{grouped(now[i]! - then[i]!)}</span>,
            });
            out.push(
                { id: "there", name: "Self there", title: `${unit} of the function itself in the other range`, number: true, width: "minmax(90px, 120px)", value: (i) => other.self[i]! },
                change("change", "Self ±", part.self, other.self),
                { id: "total there", name: "Total there", number: true, width: "minmax(90px, 120px)", value: (i) => other.total[i]! },
                change("total change", "Total ±", part.total, other.total),
            );
        }
        if (Array.from(calls).some((c) => c > 0))
            out.push({ id: "calls", name: "Calls", number: true, width: "86px", value: (i) => calls[i] ?? 0 });
        if (head.images.length > 1)
            out.push({ id: "image", name: "Program", width: "minmax(100px, 1fr)", value: (i) => report.imageName(i) });
        if (functions.source.some((s) => s >= 0))
            out.push({
                id: "place",
                name: "Defined in",
                width: "minmax(110px, 1fr)",
                value: (i) => {
                    const source = report.sourceName(functions.source[i]!);
                    return source === "" ? "" : `${fileName(source)}:${functions.line[i]}`;
                },
                show: (i) => <span title={report.sourceName(functions.source[i]!)}>{placeText(report, functions.source[i]!, functions.line[i]!)}</span>,
            });
        return out;
    }, [metric, part, other]);
    const chosen = place.function;
    // Before the browser paints: whoever sees the function can close it.
    useLayoutEffect(() => {
        if (chosen === undefined) return;
        const pressed = (event: KeyboardEvent) => {
            if (event.key === "Escape" && !(event.target as HTMLElement).closest("input, select, dialog[open]")) go({ view: "functions" });
        };
        addEventListener("keydown", pressed);
        return () => removeEventListener("keydown", pressed);
    }, [chosen]);
    return (
        <>
            <ViewHead title="Functions" note={ranged ? undefined : head.metrics[metric]?.note}>
                <Search label="Search functions" value={query} onInput={setQuery} note={query === "" ? "" : counted(rows.length, "function")} />
                {!ranged && <MetricChoice metrics={head.metrics} value={metric} onChange={setMetric} />}
                {tree && !ranged && <ContextChoice report={report} tree={tree} value={context} onChange={setContext} />}
                <OwnChoice report={report} place={place} keep={keep} />
            </ViewHead>
            {timeline && <RangeBar timeline={timeline} place={place} keep={keep} />}
            {timeline && range && ranged && <RangeNote timeline={timeline} range={range} part={ranged} />}
            {other && <p class="note">Compared with {timeText(other.range.from, unit, timeline!.part.axis.ticksPerSecond)} to {timeText(other.range.to, unit, timeline!.part.axis.ticksPerSecond)}: ± is this range less the other one.</p>}
            <DataTable
                key={other ? "compared" : ""}
                label="Functions"
                columns={columns}
                rows={rows}
                sort={{ by: other ? "change" : "self", down: true }}
                selected={chosen}
                open={(i) => go({ view: "functions", function: i })}
                height={chosen === undefined ? undefined : "min(48vh, 600px)"}
            />
            {chosen !== undefined && chosen < functions.name.length && (
                <FunctionDetail key={chosen} report={report} f={chosen} metric={metric} ranged={ranged?.tree} unit={unit}>
                    {timeline && <SingleCalls key={chosen} report={report} timeline={timeline} f={chosen} range={range} go={go} />}
                </FunctionDetail>
            )}
        </>
    );
}

export function placeText(report: ViewProps["report"], source: number, line: number): string {
    const path = report.sourceName(source);
    return path === "" ? "" : line > 0 ? `${fileName(path)}:${line}` : fileName(path);
}

/// Everything known about one function.
function FunctionDetail({ report, f, metric, ranged, unit, children }: { report: ViewProps["report"]; f: number; metric: number; ranged: Tree | undefined; unit: string; children?: ComponentChildren }) {
    const { head } = report;
    const { functions, has } = head;
    const address = report.functionAddress[f] ?? 0n;
    return (
        <section class="detail" aria-label="The chosen function">
            <h2 class="full-name">{report.functionName(f)}</h2>
            {guessed.test(report.functionName(f)) && <p class="note">{guessedNote}</p>}
            <dl class="facts">
                {functions.linkage[f] && <Fact name="linkage name" value={functions.linkage[f]!} />}
                {!functions.synthetic[f] && (
                    <Fact name="address" value={`${hex(address)}${functions.bytes[f] ? `, ${withUnit(functions.bytes[f]!, "bytes")}` : ""}`} />
                )}
                {report.imageName(f) && <Fact name="program" value={report.imageName(f)} />}
                {functions.source[f]! >= 0 && <Fact name="defined in" value={`${report.sourceName(functions.source[f]!)}:${functions.line[f]}`} />}
                {head.metrics.map((m, i) => (
                    <Fact
                        key={m.name}
                        name={m.name}
                        value={`${grouped(functions.self[i]?.[f] ?? 0)} itself${functions.inclusive ? `, ${grouped(functions.inclusive[i]?.[f] ?? 0)} with what it calls` : ""}`}
                    />
                ))}
            </dl>
            <p class="links">
                {has.instructions + has.lines > 0 && !functions.synthetic[f] && <a class="button" href={hashOf({ view: "code", function: f })}>Source and code</a>}
                {has.calls > 1 && <a class="button" href={hashOf({ view: "calls", function: f })}>In the flame graph</a>}
                <Copy text={() => functions.linkage[f] || report.functionName(f)} what="Copy the name" />
                <a class="button" href={hashOf({ view: "functions" })} title="( Esc )">Close</a>
            </p>
            {children}
            {ranged ? <AroundIn report={report} f={f} metric={0} tree={ranged} unit={unit} /> : has.calls > 1 ? <Around report={report} f={f} metric={metric} /> : has.edges > 0 && <AroundByEdges report={report} f={f} />}
        </section>
    );
}

function Fact(props: { name: string; value: string }) {
    return (
        <div>
            <dt>{props.name}</dt>
            <dd>{props.value}</dd>
        </div>
    );
}

interface Neighbour {
    calls: number;
    cost: number;
}

/// Callers and callees, from the call tree.
function Around({ report, f, metric }: { report: ViewProps["report"]; f: number; metric: number }) {
    const tree = useLoaded(() => report.calls());
    if (tree === undefined || tree instanceof Error) return <Neighbours report={report} callers={new Map()} callees={new Map()} unit="cost" />;
    return <AroundIn report={report} f={f} metric={metric} tree={tree} unit={report.head.metrics[metric]?.name ?? "cost"} />;
}

function AroundIn({ report, f, metric, tree, unit }: { report: ViewProps["report"]; f: number; metric: number; tree: Tree; unit: string }) {
    const { callers, callees } = useMemo(() => {
        const callers = new Map<number, Neighbour>();
        const callees = new Map<number, Neighbour>();
        const cost = inclusive(tree, metric);
        const add = (to: typeof callers, name: number, node: number) => {
            const entry = to.get(name) ?? { calls: 0, cost: 0 };
            entry.calls += tree.calls[node]!;
            entry.cost += cost[node]!;
            to.set(name, entry);
        };
        for (let i = 1; i < tree.parent.length; ++i) {
            const parent = tree.parent[i]!;
            if (tree.function[i] === f) add(callers, tree.function[parent] ?? -1, i);
            if (parent >= 0 && tree.function[parent] === f && tree.function[i]! >= 0) add(callees, tree.function[i]!, i);
        }
        return { callers, callees };
    }, [tree, metric]);
    return <Neighbours report={report} callers={callers} callees={callees} unit={unit} />;
}

/// The same from branches, if there is no call tree: how often a call was seen, but not its cost.
function AroundByEdges({ report, f }: { report: ViewProps["report"]; f: number }) {
    const branches = useLoaded(() => report.branches());
    const { callers, callees } = useMemo(() => {
        const callers = new Map<number, Neighbour>();
        const callees = new Map<number, Neighbour>();
        if (branches === undefined || branches instanceof Error) return { callers, callees };
        const { from, to, times } = branches.part.edges;
        from.forEach((caller, i) => {
            if (to[i] === f) callers.set(caller, { calls: 0, cost: times[i]! });
            if (caller === f) callees.set(to[i]!, { calls: 0, cost: times[i]! });
        });
        return { callers, callees };
    }, [branches]);
    const sampled = report.head.metrics[0]?.counted === false;
    return (
        <>
            <Neighbours report={report} callers={callers} callees={callees} unit={sampled ? "sampled calls" : "calls"} />
            <p class="note">From branches that were {sampled ? "sampled" : "traced"}: calls that were not are missing here.</p>
        </>
    );
}

function Neighbours({ report, callers, callees, unit }: { report: ViewProps["report"]; callers: Map<number, Neighbour>; callees: Map<number, Neighbour>; unit: string }) {
    const [all, setAll] = useState(false);
    const most = 12;
    const list = (title: string, of: typeof callers) => (
        <div>
            <h3>
                {title} <span class="quiet">{of.size > 0 ? `${grouped(of.size)}, by ${unit}` : ""}</span>
            </h3>
            {of.size === 0 && <p class="quiet">none</p>}
            <ul class="around">
                {[...of]
                    .sort((a, b) => b[1].cost - a[1].cost)
                    .slice(0, all ? of.size : most)
                    .map(([name, entry]) => (
                        <li key={name}>
                            {name >= 0 ? (
                                <a href={hashOf({ view: "functions", function: name })}>
                                    <Name name={report.functionName(name)} most={40} />
                                </a>
                            ) : (
                                <span class="quiet">[not in the trace]</span>
                            )}
                            <span class="number" title={withUnit(entry.cost, unit)}>{full(entry.cost)}</span>
                            <span class="number quiet">{entry.calls > 0 ? counted(entry.calls, "call") : ""}</span>
                        </li>
                    ))}
            </ul>
        </div>
    );
    return (
        <div class="two">
            {list("Called by", callers)}
            {list("Calls", callees)}
            {!all && Math.max(callers.size, callees.size) > most && (
                <p>
                    <button type="button" class="button" onClick={() => setAll(true)}>
                        All of them
                    </button>
                </p>
            )}
        </div>
    );
}
