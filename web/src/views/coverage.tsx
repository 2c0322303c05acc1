/// Executed and not executed code of each file and function, as `waymark coverage` counts it.
import { useMemo } from "preact/hooks";

import { branchesIn, codeIn, coverageIn } from "../data/covered";
import { type Code, type Coverage, Seen, seenWords } from "../data/model";
import { matcher } from "../data/search";
import type { Classes } from "../data/wire";
import { Copy, Loading, Name, Search, Segments, SeenLegend, SeenMark, Share, TrustList, ViewHead, useLoaded } from "../ui/parts";
import { RangeBar, RanNote, useRan, WholeNote } from "../ui/range";
import { hashOf, type ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, fileName, grouped, hex, percent } from "../ui/text";
import { Source } from "./code";
import { placeText } from "./functions";

type Which = "files" | "functions" | "never" | "lines" | "code" | "ways";

export function CoverageView(props: ViewProps) {
    const loaded = useLoaded(() => Promise.all([props.report.coverage(), props.report.code(), props.report.branches()]));
    const part = useRan(props);
    const shown = useMemo(() => {
        if (loaded === undefined || loaded instanceof Error) return undefined;
        const [coverage, code, branches] = loaded;
        if (part === undefined) return { coverage, code };
        const inRange = codeIn(code, part.ran, part.lost);
        return { coverage: coverageIn(props.report, coverage, inRange, branchesIn(branches, part.ran, part.lost)), code: inRange };
    }, [loaded, part]);
    if (shown === undefined) return <Loading what="the coverage" error={loaded instanceof Error ? loaded : undefined} />;
    return <View {...props} {...shown} part={part} />;
}

/// Whether only the program's own code is shown; undefined: nothing tells it apart.
export function ownOnly(report: ViewProps["report"], place: ViewProps["place"], unless = false): boolean | undefined {
    if (!report.hasOwn) return undefined;
    return place.own === undefined ? unless : place.own === "1";
}

/// A button that shows only the program's own code.
export function OwnChoice({ report, place, keep, unless }: Pick<ViewProps, "report" | "place" | "keep"> & { unless?: boolean }) {
    const own = ownOnly(report, place, unless);
    if (own === undefined) return null;
    return (
        <button type="button" class="button" aria-pressed={own} onClick={() => keep({ own: own ? "0" : "1" }, true)}
            title="Functions of the program with lines of source, not of system libraries, the loader or the kernel">
            Only my code
        </button>
    );
}

const sumOf = (c: Classes, i: number) => c[0][i]! + c[1][i]! + c[2][i]!;

function View({ report, place, keep, go, coverage, code, part: range }: ViewProps & { coverage: Coverage; code: Code; part: ReturnType<typeof useRan> }) {
    const { head } = report;
    const { part } = coverage;
    const which = (["files", "functions", "never", "lines", "code", "ways"] as Which[]).find((w) => w === place.which) ?? "files";
    const query = place.query ?? "";
    const own = ownOnly(report, place, true);
    const files = own ? part.own : part.files;
    const isOwn = (f: number) => own !== true || head.functions.own[f] === 1;
    const last = files.name.length - 1; // the sum
    // A library's headers are compiled into the program's own functions: figures count them, lists of own code do not.
    const isOwnSource = (source: number) => own !== true || !report.sourceName(source).startsWith("/usr/");
    const headers = files.source.slice(0, last).filter((source) => !isOwnSource(source)).length;

    const { functions, uncovered } = part;
    const rows = useMemo(() => {
        const is = matcher(query);
        const fits = (text: () => string) => is === undefined || is(text());
        const of = (count: number, keep: (i: number) => boolean) => Array.from({ length: count }, (_, i) => i).filter(keep);
        const name = (f: number, source: number) => `${report.functionName(f)} ${report.sourceName(source)}`;
        if (which === "files") return of(last, (i) => isOwnSource(files.source[i]!) && fits(() => `${files.name[i]} ${report.sourceName(files.source[i]!)}`));
        if (which === "functions" || which === "never")
            return of(functions.function.length, (i) => {
                const f = functions.function[i]!;
                return isOwn(f) && (which === "functions" || functions.instructions[0][i] === 0) && fits(() => name(f, head.functions.source[f] ?? -1));
            });
        if (which === "lines") {
            const { lines } = code.part;
            return of(lines.source.length, (i) => isOwn(lines.function[i]!) && isOwnSource(lines.source[i]!) && fits(() => `${name(lines.function[i]!, lines.source[i]!)} ${seenWords[lines.seen[i]!]}`));
        }
        return of(uncovered.seen.length, (i) => (uncovered.what[i] === 0) === (which === "code") && isOwn(uncovered.function[i]!) && isOwnSource(uncovered.source[i]!) && fits(() => name(uncovered.function[i]!, uncovered.source[i]!)));
    }, [which, query, own, coverage]);

    const columns = useMemo<Column[]>(() => {
        if (which === "files")
            return [
                {
                    id: "name",
                    name: "File",
                    width: "minmax(150px, 2fr)",
                    value: (i) => files.name[i]!,
                    show: (i) => <span class="name" title={report.sourceName(files.source[i]!) || files.name[i]}>{files.name[i]}</span>,
                },
                ...classColumns(files),
            ];
        if (which === "functions" || which === "never") {
            const name = (i: number) => report.functionName(functions.function[i]!);
            return [
                { id: "name", name: "Function", width: "minmax(150px, 2fr)", value: name, show: (i) => <Name name={name(i)} most={40} /> },
                ...classColumns(functions),
            ];
        }
        if (which === "lines") {
            const { lines } = code.part;
            const at = (i: number) => placeText(report, lines.source[i]!, code.line[i]!);
            return [
                { id: "line", name: "Line", width: "minmax(130px, 1fr)", value: at, show: (i) => <span title={report.sourceName(lines.source[i]!)}>{at(i)}</span> },
                { id: "seen", name: "Seen", width: "150px", value: (i) => seenWords[lines.seen[i]!] ?? "", show: (i) => <Seen_ seen={lines.seen[i]!} /> },
                { id: "times", name: "Ran", number: true, width: "110px", value: (i) => lines.times[i]! },
                { id: "function", name: "Function", width: "minmax(120px, 2fr)", value: (i) => report.functionName(lines.function[i]!), show: (i) => <Name name={report.functionName(lines.function[i]!)} most={40} /> },
            ];
        }
        const at = (i: number) => {
            const text = placeText(report, uncovered.source[i]!, uncovered.first[i]!);
            return uncovered.last[i]! > uncovered.first[i]! ? `${text}-${uncovered.last[i]}` : text;
        };
        return [
            { id: "function", name: "Function", width: "minmax(130px, 2fr)", value: (i) => report.functionName(uncovered.function[i]!), show: (i) => <Name name={report.functionName(uncovered.function[i]!)} most={40} /> },
            { id: "at", name: which === "code" ? "Lines" : "Branch", width: "minmax(120px, 1fr)", value: (i) => at(i) || hex(coverage.begin[i]!), show: (i) => <span class="mono" title={hex(coverage.begin[i]!)}>{at(i) || hex(coverage.begin[i]!)}</span> },
            ...(which === "code"
                ? [{ id: "instructions", name: "Instructions", number: true, width: "120px", value: (i: number) => uncovered.instructions[i]! }]
                : [{ id: "way", name: "Went", width: "120px", value: (i: number) => (uncovered.what[i] === 1 ? "never taken" : "always taken") }]),
            { id: "seen", name: which === "code" ? "Seen" : "Other way", width: "150px", value: (i) => seenWords[uncovered.seen[i]!] ?? "", show: (i) => <Seen_ seen={uncovered.seen[i]!} /> },
        ];
    }, [which, own, coverage]);

    const open = (i: number) => {
        if (which === "files") return keep({ source: files.source[i]! >= 0 ? files.source[i] : undefined, line: undefined, function: undefined, address: undefined }, true);
        if (which === "functions" || which === "never") {
            const f = functions.function[i]!;
            const source = head.functions.source[f] ?? -1;
            return keep({ function: f >= 0 ? f : undefined, source: source >= 0 ? source : undefined, line: source >= 0 ? head.functions.line[f] : undefined, address: undefined }, true);
        }
        if (which === "lines") return keep({ function: code.part.lines.function[i]!, source: code.part.lines.source[i], line: code.line[i], address: undefined }, true);
        const source = uncovered.source[i]!;
        keep({ function: uncovered.function[i]! >= 0 ? uncovered.function[i] : undefined, source: source >= 0 ? source : undefined, line: source >= 0 ? uncovered.first[i] : undefined, address: coverage.begin[i] }, true);
    };
    const selected = useMemo(() => {
        if (which === "files") return rows.find((i) => files.source[i] === place.source && place.source !== undefined);
        if (which === "functions" || which === "never") return rows.find((i) => functions.function[i] === place.function);
        if (which === "lines") return rows.find((i) => code.part.lines.source[i] === place.source && code.line[i] === place.line);
        return rows.find((i) => coverage.begin[i] === place.address);
    }, [rows, place.source, place.function, place.line, place.address]);

    const trust = head.trust.filter((t) => t.view === "coverage");
    const source = place.source;
    const figure = (name: string, c: Classes, i: number) =>
        sumOf(c, i) > 0 && (
            <div>
                <dt>{name}</dt>
                <dd data-of={name} data-ran={c[0][i]} data-all={sumOf(c, i)}>
                    {percent(c[0][i]!, sumOf(c, i))}
                    <p class="quiet">
                        {grouped(c[0][i]!)} of {grouped(sumOf(c, i))} ran
                        {c[2][i]! > 0 && `, ${grouped(c[2][i]!)} not observed`}
                    </p>
                </dd>
            </div>
        );
    return (
        <>
            <ViewHead title="Coverage" note={head.run && range === undefined ? `Of the run: ${head.run}.` : undefined}>
                <Search label="Search" value={query} onInput={(query) => keep({ query })} note={query === "" ? "" : counted(rows.length, "row")} />
                <Segments<Which>
                    label="What is listed"
                    value={which}
                    onChange={(which) => keep({ which, address: undefined }, true)}
                    options={[
                        { value: "files", name: "Files" },
                        { value: "functions", name: "Functions" },
                        { value: "never", name: "Functions not seen", title: "Functions of which no instruction was seen to run" },
                        { value: "lines", name: "Lines" },
                        { value: "code", name: "Code not seen", title: "Stretches of code that did not run, or were not observed" },
                        { value: "ways", name: "Ways not seen", title: "Branches that ran, but of whose two ways one was not seen" },
                    ]}
                />
                <OwnChoice report={report} place={place} keep={keep} unless />
            </ViewHead>
            {range === undefined ? <WholeNote place={place} what="Coverage is" /> : (
                <>
                    <RangeBar timeline={range.timeline} place={place} keep={keep} />
                    <RanNote {...range} what="code that ran in it." />
                </>
            )}
            <dl class="figures coverage-sum">
                {figure("instructions", files.instructions, last)}
                {figure("lines", files.lines, last)}
                {figure("directions of branches", files.directions, last)}
                <div>
                    <dt>functions</dt>
                    <dd data-of="functions" data-ran={files.ran} data-all={files.functions}>
                        {percent(files.ran, files.functions)}
                        <p class="quiet">{part.bound !== "" && `${part.bound} `}{grouped(files.ran)} of {grouped(files.functions)} ran</p>
                    </dd>
                </div>
            </dl>
            <SeenLegend />
            <TrustList trust={trust} />
            {part.notWhole.length > 0 && (
                <p class="note">There may be more code in {part.notWhole.join(", ")}: nothing says where, so code there that never ran is not counted.</p>
            )}
            <div class={source === undefined ? "" : "beside"}>
                <div>
                    <DataTable key={which} label="Coverage" columns={columns} rows={rows} open={open} selected={selected}
                        sort={which === "files" || which === "functions" || which === "never" ? { by: "missing", down: true } : which === "code" ? { by: "instructions", down: true } : which === "lines" ? { by: "times", down: false } : undefined}
                        empty={query !== "" ? undefined : which === "never" ? "Every function ran." : "There is none."} />
                    <p class="note">
                        {which === "files" || which === "functions" ? "A row shows its source. " : ""}
                        {which === "functions" && "A line counts for each function that has code of the line. "}
                        Not observed: it was not seen, but may have run unobserved.
                        {headers > 0 && which !== "functions" && which !== "never" && ` Your code includes code of ${counted(headers, "library header")}: the figures count it, this list does not.`}
                    </p>
                </div>
                {source !== undefined && (
                    <section class="code-pane" aria-label="Source">
                        <h2 title={report.sourceName(source)}>
                            {fileName(report.sourceName(source))}
                            {place.function !== undefined && <a class="button small" href={hashOf({ view: "code", function: place.function, address: place.address })}>Instructions</a>}
                            <Copy small text={() => report.sourceName(source)} what="Copy the path" />
                        </h2>
                        <Source key={source} code={code} source={source} f={place.function ?? -1} first={place.line ?? 1} metric={0} line={place.line} place={place}
                            select={(line) => go({ view: "coverage", source, line, function: place.function, which })} />
                    </section>
                )}
            </div>
        </>
    );
}

function Seen_(props: { seen: number }) {
    return (
        <span>
            <SeenMark seen={props.seen} /> {seenWords[props.seen]}
        </span>
    );
}

function classColumns(of: { instructions: Classes; lines: Classes; directions: Classes }): Column[] {
    const { instructions, lines, directions } = of;
    const some = (c: Classes) => c.some((column) => column.some((n) => n > 0));
    const pair = (id: string, name: string, title: string, c: Classes): Column => ({
        id,
        name,
        title,
        number: true,
        width: "minmax(92px, 120px)",
        value: (i) => (sumOf(c, i) > 0 ? c[0][i]! / sumOf(c, i) : -1),
        known: (i) => sumOf(c, i) > 0,
        show: (i) => (sumOf(c, i) > 0 ? <span title={`${grouped(c[1][i]!)} not executed, ${grouped(c[2][i]!)} not observed`}>{grouped(c[0][i]!)} of {grouped(sumOf(c, i))}</span> : "–"),
    });
    return [
        {
            id: "ran",
            name: "Ran",
            title: "Share of instructions that ran",
            number: true,
            width: "minmax(150px, 1fr)",
            value: (i) => instructions[0][i]! / Math.max(1, sumOf(instructions, i)),
            show: (i) => <Share part={instructions[0][i]!} whole={sumOf(instructions, i)} />,
        },
        { id: "instructions", name: "Instructions", number: true, width: "110px", value: (i) => sumOf(instructions, i) },
        {
            id: "missing",
            name: "Not seen to run",
            title: "Instructions that did not run, or were not observed",
            number: true,
            width: "128px",
            value: (i) => instructions[1][i]! + instructions[2][i]!,
        },
        ...(some([[], [], instructions[Seen.notObserved]]) ? [{ id: "unknown", name: "Not observed", number: true, width: "118px", value: (i: number) => instructions[2][i]! }] : []),
        ...(some(lines) ? [pair("lines", "Lines", "Lines that ran", lines)] : []),
        ...(some(directions) ? [pair("directions", "Directions", "Directions of conditional branches that were taken", directions)] : []),
    ];
}
