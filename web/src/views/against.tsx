/// Changes from this capture to another: as `waymark diff` compares them, and both call trees as one.
import { useMemo, useState } from "preact/hooks";

import type { Against } from "../data/model";
import { matcher } from "../data/search";
import { inclusive, Kind, layout, type Order, type Tree } from "../data/tree";
import { Loading, Name, Search, Segments, useLoaded, ViewHead } from "../ui/parts";
import { hashOf, type ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, percent, withUnit } from "../ui/text";
import { colors } from "../ui/theme";
import { Flame } from "./calls";

type Which = "all" | "new" | "gone" | "more" | "less";
const signs = ["✓", "i", "!", "✕"] as const;
const severities = ["good", "note", "warning", "bad"] as const;

export function AgainstView(props: ViewProps) {
    const loaded = useLoaded(() => props.report.against());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the comparison" error={loaded} />;
    return <View {...props} against={loaded} />;
}

const signed = (n: number) => (n > 0 ? `+${grouped(n)}` : n < 0 ? `−${grouped(-n)}` : "0");

function View({ report, place, keep, against }: ViewProps & { against: Against }) {
    const { part, before, after, change, callsBefore, callsAfter } = against;
    const { table } = part;
    const query = place.query ?? "";
    const which = (["all", "new", "gone", "more", "less"] as Which[]).find((w) => w === place.which) ?? "all";
    const is = useMemo<Record<Which, (i: number) => boolean>>(
        () => ({
            all: () => true,
            new: (i) => before[i] === 0 && after[i]! > 0,
            gone: (i) => after[i] === 0 && before[i]! > 0,
            more: (i) => change[i]! > 0,
            less: (i) => change[i]! < 0,
        }),
        [against],
    );
    const all = useMemo(() => table.function.map((_, i) => i), [against]);
    const rows = useMemo(() => {
        const fits = matcher(query);
        return all.filter((i) => is[which](i) && (fits === undefined || fits(`${table.function[i]} ${table.image?.[i] ?? ""} ${table.file?.[i] ?? ""}`)));
    }, [query, which]);
    // Functions of the report are identified by their names.
    const byName = useMemo(() => new Map(report.head.functions.name.map((n, f) => [n, f] as const)), []);
    const columns = useMemo<Column[]>(
        () => [
            { id: "function", name: "Function", width: "minmax(170px, 3fr)", value: (i) => table.function[i]!, show: (i) => <Name name={table.function[i]!} most={44} /> },
            { id: "before", name: "Before", number: true, value: (i) => before[i]! },
            { id: "after", name: "After", number: true, value: (i) => after[i]! },
            { id: "change", name: "Change", title: "The largest change first", number: true, value: (i) => Math.abs(change[i]!), text: (i) => String(change[i]!), show: (i) => <b class={change[i]! > 0 ? "grew" : change[i]! < 0 ? "shrank" : ""}>{signed(change[i]!)}</b> },
            { id: "of", name: "Of itself", title: "Change as a part of what the function cost before", number: true, width: "110px", value: (i) => (before[i]! > 0 ? change[i]! / before[i]! : Infinity), known: (i) => before[i]! > 0, show: (i) => (is.new(i) ? "new" : is.gone(i) ? "gone" : before[i] === 0 ? "–" : `${change[i]! < 0 ? "−" : "+"}${percent(Math.abs(change[i]!), before[i]!)}`) },
            { id: "calls before", name: "Calls before", number: true, width: "118px", value: (i) => callsBefore[i]! },
            { id: "calls after", name: "Calls after", number: true, width: "110px", value: (i) => callsAfter[i]! },
            ...(table.sure?.some((s) => s === "false") ? [{ id: "sure", name: "Sure", title: "Whether the intervals of both shares do not touch", width: "80px", value: (i: number) => (table.sure![i] === "true" ? "yes" : "no") }] : []),
        ],
        [],
    );
    const count = (w: Which) => all.filter(is[w]).length;
    const { metric } = part;
    const grown = part.after - part.before;
    const nameOf = (node: number) => (node === 0 ? "all" : against.tree.kind[node] === Kind.folded ? "[smaller calls]" : against.name[node]!);
    const place_ = (i: number) => byName.get(table.function[i]!);
    return (
        <>
            <ViewHead title="Difference" note={`From ${report.head.capture} to ${part.capture}, by ${metric}${part.counted ? "" : ", which are estimates: their shares are compared"}.`}>
                <Search label="Search functions" value={query} onInput={(query) => keep({ query })} note={query === "" ? "" : counted(rows.length, "function")} />
                <Segments<Which>
                    label="Which functions"
                    value={which}
                    onChange={(which) => keep({ which }, true)}
                    options={[
                        { value: "all", name: "All" },
                        { value: "new", name: `New ${count("new")}`, title: "Which cost nothing before" },
                        { value: "gone", name: `Gone ${count("gone")}`, title: "Which cost nothing after" },
                        { value: "more", name: `Grown ${count("more")}` },
                        { value: "less", name: `Shrunk ${count("less")}` },
                    ]}
                />
            </ViewHead>
            <dl class="figures against-sum" data-before={part.before} data-after={part.after}>
                <div>
                    <dt>before</dt>
                    <dd>{grouped(part.before)}<p class="quiet">{part.runs[0]}</p></dd>
                </div>
                <div>
                    <dt>after</dt>
                    <dd>{grouped(part.after)}<p class="quiet">{part.runs[1]}</p></dd>
                </div>
                <div>
                    <dt>change</dt>
                    <dd>{signed(grown)}<p class="quiet">{part.before > 0 ? `${grown < 0 ? "−" : "+"}${percent(Math.abs(grown), part.before)} of all before` : ""}</p></dd>
                </div>
            </dl>
            {part.remarks.length > 0 && (
                <ul class="findings">
                    {part.remarks.map((f) => (
                        <li key={f.what} class={`finding ${severities[f.severity]}`}>
                            <span class="sign" aria-hidden="true">{signs[f.severity]}</span>
                            <div>
                                <p>{f.what}</p>
                                {f.todo && <p class="todo">{f.todo}</p>}
                            </div>
                        </li>
                    ))}
                </ul>
            )}
            <DataTable key={which} label="Functions that changed" columns={columns} rows={rows} sort={{ by: "change", down: true }} height="min(48vh, 560px)"
                open={(i) => place_(i) !== undefined && (location.hash = hashOf({ view: "functions", function: place_(i) }))} />
            {part.tree && <Both place={place} keep={keep} tree={against.tree} nameOf={nameOf} unit={metric} words={["before", "after"]} />}
        </>
    );
}

/// The difference flame graph: as wide as one side, in colours of the change. `words`: names of the sides.
export function Both({ tree, nameOf, unit, words, place, keep }: Pick<ViewProps, "place" | "keep"> & { tree: Tree; nameOf: (node: number) => string; unit: string; words: [string, string] }) {
    const side = place.way === "before" ? 0 : 1;
    const [selected, setSelected] = useState(0);
    const map = useMemo(() => layout(tree, side, "cost" as Order, nameOf), [tree, side]);
    const sums = useMemo(() => [inclusive(tree, 0), inclusive(tree, 1)] as const, [tree]);
    const change = (node: number) => sums[1][node]! - sums[0][node]!;
    const most = useMemo(() => sums[0].reduce((m, _, i) => (i === 0 ? m : Math.max(m, Math.abs(change(i)))), 1), [tree]);
    // Transparent for small changes: the theme's own colours, of which each has its ink.
    const colour = (node: number) => {
        const palette = colors();
        const d = change(node);
        if (node === 0 || d === 0) return { fill: palette.faded, ink: palette.fadedInk };
        if (Math.abs(d) < most / 8) return { fill: palette.faded, ink: palette.fadedInk, edge: d > 0 ? palette.match : palette.series[0]! };
        return d > 0 ? { fill: palette.match, ink: palette.matchInk } : { fill: palette.series[0]!, ink: palette.background };
    };
    return (
        <section aria-labelledby="both">
            <h2 id="both">Who called whom</h2>
            <div class="tools">
                <Segments<"after" | "before">
                    label="Widths"
                    value={side === 0 ? "before" : "after"}
                    onChange={(way) => keep({ way, from: undefined, to: undefined }, true)}
                    options={[
                        { value: "after", name: `As wide as ${words[1]}` },
                        { value: "before", name: `As wide as ${words[0]}` },
                    ]}
                />
            </div>
            <ul class="legend" aria-label="Colours">
                <li><span class="patch grew" aria-hidden="true" />grew; a thin line: by little</li>
                <li><span class="patch shrank" aria-hidden="true" />shrank</li>
            </ul>
            <Flame key={side} tree={tree} map={map} nameOf={nameOf} matches={undefined} selected={selected} select={setSelected} unit={unit} place={place} keep={keep} colour={colour} />
            <section class="detail" aria-label="The selected call" aria-live="polite">
                <h3 class="full-name">{nameOf(selected)}</h3>
                <dl class="facts">
                    <div><dt>{words[0]}</dt><dd>{withUnit(sums[0][selected]!, unit)}</dd></div>
                    <div><dt>{words[1]}</dt><dd>{withUnit(sums[1][selected]!, unit)}</dd></div>
                    <div><dt>change</dt><dd>{signed(change(selected))}{sums[0][selected] === 0 ? ", new here" : sums[1][selected] === 0 ? ", gone here" : ""}</dd></div>
                </dl>
            </section>
        </section>
    );
}
