/// Blocks: code without a branch inside, and how often each ran.
import { useMemo } from "preact/hooks";

import type { Branches } from "../data/model";
import { matcher } from "../data/search";
import { blockOf } from "../data/steps";
import { Loading, Name, Search, Share, ViewHead, useLoaded } from "../ui/parts";
import { RangeBar, RanNote, useRan, WholeNote } from "../ui/range";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, hex, full } from "../ui/text";
import { OwnChoice, ownOnly } from "./coverage";
import { placeText } from "./functions";

export function BlocksView(props: ViewProps) {
    const loaded = useLoaded(() => props.report.branches());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the blocks" error={loaded} />;
    return <Rows {...props} branches={loaded} />;
}

function Rows({ report, go, place, keep, branches }: ViewProps & { branches: Branches }) {
    const part = useRan({ report, place });
    const b = useMemo(() => {
        const whole = branches.part.blocks;
        return part === undefined ? whole : { ...whole, times: whole.bytes.map((bytes, i) => part.ran.blocks.get(blockOf(branches.block[i]!, bytes)) ?? 0) };
    }, [part]);
    const address = branches.block;
    const query = place.query ?? "";
    const own = ownOnly(report, place);
    const setQuery = (query: string) => keep({ query });
    const ran = (i: number) => b.times[i]! * b.instructions[i]!;
    const total = useMemo(() => b.times.reduce((sum, _, i) => sum + ran(i), 0), [b]);
    const rows = useMemo(() => {
        const is = matcher(query);
        return b.times
            .map((_, i) => i)
            .filter((i) => part === undefined || b.times[i]! > 0)
            .filter((i) => !own || report.head.functions.own[b.function[i]!] === 1)
            .filter((i) => is === undefined || is(`${report.functionName(b.function[i]!)} ${placeText(report, b.source[i]!, b.line[i]!)} ${hex(address[i]!)}`));
    }, [query, own, b]);
    const columns = useMemo<Column[]>(
        () => [
            {
                id: "function",
                name: "In function",
                width: "minmax(140px, 2fr)",
                value: (i) => report.functionName(b.function[i]!),
                show: (i) => <Name name={report.functionName(b.function[i]!)} most={40} />,
            },
            {
                id: "address",
                name: "Block",
                title: "First and last byte; its first line",
                width: "minmax(190px, 1.4fr)",
                value: (i) => address[i]!,
                show: (i) => <span class="mono">{`${hex(address[i]!)} – ${hex(address[i]! + BigInt(Math.max(1, b.bytes[i]!) - 1))}`}</span>,
            },
            {
                id: "place",
                name: "Line",
                width: "minmax(110px, 1fr)",
                value: (i) => placeText(report, b.source[i]!, b.line[i]!),
                show: (i) => <span class="mono" title={report.sourceName(b.source[i]!)}>{placeText(report, b.source[i]!, b.line[i]!)}</span>,
            },
            { id: "instructions", name: "Length", title: "Instructions of the block", number: true, width: "90px", value: (i) => b.instructions[i]! },
            { id: "times", name: "Times", number: true, width: "110px", value: (i) => b.times[i]! },
            {
                id: "ran",
                name: "Instructions",
                title: "That ran in it: length by times",
                number: true,
                width: "minmax(190px, 1.4fr)",
                value: ran,
                show: (i) => (
                    <span class="with-share">
                        <span>{full(ran(i))}</span> <Share part={ran(i)} whole={total} />
                    </span>
                ),
            },
        ],
        [b],
    );
    return (
        <>
            <ViewHead title="Blocks" note="Code that ran from its first instruction to its last without a taken branch in between. Blocks overlap: code that is also entered in its middle is in two of them, and ran as often as both together.">
                <Search label="Search blocks" value={query} onInput={setQuery} note={query === "" ? "" : counted(rows.length, "block")} />
                <OwnChoice report={report} place={place} keep={keep} />
            </ViewHead>
            {part === undefined ? <WholeNote place={place} what="Blocks are" /> : (
                <>
                    <RangeBar timeline={part.timeline} place={place} keep={keep} />
                    <RanNote {...part} what="blocks that began in it." />
                </>
            )}
            <DataTable
                label="Blocks"
                columns={columns}
                rows={rows}
                sort={{ by: "ran", down: true }}
                open={(i) => go({ view: "code", function: b.function[i]! >= 0 ? b.function[i] : undefined, address: address[i] })}
            />
        </>
    );
}
