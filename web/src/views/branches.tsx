/// Branches with both outcomes.
import { useMemo } from "preact/hooks";

import { branchesIn } from "../data/covered";
import { type Branches, branchKinds, Seen } from "../data/model";
import { matcher } from "../data/search";
import { Loading, Name, Search, Segments, ViewHead, useLoaded } from "../ui/parts";
import { RangeBar, RanNote, useRan, WholeNote } from "../ui/range";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped, hex, percent, short } from "../ui/text";
import { OwnChoice, ownOnly } from "./coverage";
import { placeText } from "./functions";

type Which = "all" | "both" | "one" | "unknown";

export function BranchesView(props: ViewProps) {
    const loaded = useLoaded(() => props.report.branches());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the branches" error={loaded} />;
    return <Rows {...props} branches={loaded} />;
}

function Rows({ report, go, place, keep, branches }: ViewProps & { branches: Branches }) {
    const part = useRan({ report, place });
    const b = useMemo(() => (part === undefined ? branches : branchesIn(branches, part.ran, part.lost)).part.branches, [part]);
    const query = place.query ?? "";
    const setQuery = (query: string) => keep({ query });
    const which = (["all", "both", "one", "unknown"] as Which[]).find((w) => w === place.which) ?? "all";
    const own = ownOnly(report, place);
    const setWhich = (which: Which) => keep({ which }, true);
    const rows = useMemo(() => {
        const is = matcher(query);
        return b.kind
            .map((_, i) => i)
            .filter((i) => {
                if (part !== undefined && b.taken[i]! + b.notTaken[i]! === 0) return false;
                if (own && report.head.functions.own[b.function[i]!] !== 1) return false;
                const conditional = b.kind[i] === 0;
                const one = conditional && (b.taken[i] === 0) !== (b.notTaken[i] === 0);
                const unknown = conditional && ((b.taken[i] === 0 && b.seenTaken[i] === Seen.notObserved) || (b.notTaken[i] === 0 && b.seenNotTaken[i] === Seen.notObserved));
                if (which === "both" && !(b.taken[i]! > 0 && b.notTaken[i]! > 0)) return false;
                if (which === "one" && !one) return false;
                if (which === "unknown" && !unknown) return false;
                return is === undefined || is(`${report.functionName(b.function[i]!)} ${placeText(report, b.source[i]!, b.line[i]!)} ${hex(branches.address[i]!)} ${branchKinds[b.kind[i]!]}`);
            });
    }, [query, which, own, b]);
    const columns = useMemo<Column[]>(() => {
        const out: Column[] = [
            {
                id: "function",
                name: "In function",
                width: "minmax(96px, 2fr)",
                value: (i) => report.functionName(b.function[i]!),
                show: (i) => <Name name={report.functionName(b.function[i]!)} most={40} />,
            },
            {
                id: "address",
                name: "Branch",
                width: "minmax(108px, 1fr)",
                value: (i) => branches.address[i]!,
                show: (i) => (
                    <span class="mono" title={branches.target[i] ? `to ${hex(branches.target[i]!)}` : "to where a register says"}>
                        {placeText(report, b.source[i]!, b.line[i]!) || hex(branches.address[i]!)}
                    </span>
                ),
            },
            { id: "kind", name: "Kind", width: "104px", value: (i) => branchKinds[b.kind[i]!] ?? "" },
            { id: "ran", name: "Ran", number: true, width: "minmax(60px, 90px)", value: (i) => b.taken[i]! + b.notTaken[i]!, show: (i) => grouped(b.taken[i]! + b.notTaken[i]!) },
            {
                id: "share",
                name: "Taken",
                title: "Share of executions that were taken",
                number: true,
                width: "66px",
                value: (i) => b.taken[i]! / Math.max(1, b.taken[i]! + b.notTaken[i]!),
                show: (i) => percent(b.taken[i]!, b.taken[i]! + b.notTaken[i]!),
            },
            {
                id: "outcomes",
                name: "Taken, not taken",
                title: "Sorted by the rarer outcome",
                width: "minmax(212px, 2fr)",
                value: (i) => (b.kind[i] === 0 ? Math.min(b.taken[i]!, b.notTaken[i]!) : -1),
                show: (i) => (b.kind[i] === 0 ? <Outcomes taken={b.taken[i]!} notTaken={b.notTaken[i]!} seenTaken={b.seenTaken[i]!} seenNotTaken={b.seenNotTaken[i]!} inRange={part !== undefined} /> : <span class="quiet">always taken</span>),
            },
        ];
        if (b.mispredicted.some((m) => m >= 0))
            out.push({
                id: "mispredicted",
                name: "Mispredicted",
                number: true,
                width: "120px",
                value: (i) => b.mispredicted[i]!,
                show: (i) => (b.mispredicted[i]! < 0 ? "–" : `${grouped(b.mispredicted[i]!)} (${percent(b.mispredicted[i]!, b.taken[i]! + b.notTaken[i]!)})`),
            });
        return out;
    }, [b]);
    return (
        <>
            <ViewHead title="Branches">
                <Search label="Search branches" value={query} onInput={setQuery} note={query === "" && which === "all" && !own ? "" : counted(rows.length, "branch", "branches")} />
                <Segments<Which>
                    label="Which branches"
                    value={which}
                    onChange={setWhich}
                    options={[
                        { value: "all", name: "All" },
                        { value: "both", name: "Both ways" },
                        { value: "one", name: "One way", title: "Conditional, and only one outcome was seen" },
                        { value: "unknown", name: "Unknown", title: "An outcome was not seen, but may have happened unobserved" },
                    ]}
                />
                <OwnChoice report={report} place={place} keep={keep} />
            </ViewHead>
            {part === undefined ? <WholeNote place={place} what="Branches are" /> : (
                <>
                    <RangeBar timeline={part.timeline} place={place} keep={keep} />
                    <RanNote {...part} what="branches that ran in it." />
                </>
            )}
            <DataTable
                label="Branches"
                columns={columns}
                rows={rows}
                sort={{ by: "ran", down: true }}
                open={(i) => go({ view: "code", function: b.function[i]! >= 0 ? b.function[i] : undefined, address: branches.address[i] })}
            />
        </>
    );
}

/// Both outcomes side by side; an outcome that never happened is a word.
function Outcomes(props: { taken: number; notTaken: number; seenTaken: number; seenNotTaken: number; inRange: boolean }) {
    const sum = props.taken + props.notTaken;
    const never = (times: number, seen: number) => times === 0 && (props.inRange ? "0" : seen === Seen.notObserved ? "not observed" : "never");
    return (
        <span class="outcomes">
            <span class={props.taken === 0 ? "missed" : ""} title={`taken: ${grouped(props.taken)}`}>
                {never(props.taken, props.seenTaken) || short(props.taken)}
            </span>
            <span class={sum > 0 ? "both" : "both nothing"} aria-hidden="true">
                <span style={{ width: `${sum > 0 ? (100 * props.taken) / sum : 0}%` }} />
            </span>
            <span class={props.notTaken === 0 ? "missed" : ""} title={`not taken: ${grouped(props.notTaken)}`}>
                {never(props.notTaken, props.seenNotTaken) || short(props.notTaken)}
            </span>
        </span>
    );
}
