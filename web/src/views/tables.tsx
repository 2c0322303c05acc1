/// Tables that only one unit has.
import { useMemo, useState } from "preact/hooks";

import { matcher } from "../data/search";
import type { GenericTable } from "../data/wire";
import { Choice, Search, ViewHead } from "../ui/parts";
import type { ViewProps } from "../ui/state";
import { type Column, DataTable } from "../ui/table";
import { counted, grouped } from "../ui/text";

/// Numbers in tables are digits, perhaps with a fraction; other text in such a column remains text.
const numeric = /^-?\d+(\.\d+)?$/;

export function TablesView({ report, place, keep }: ViewProps) {
    const { tables } = report.head;
    const [chosen, setChosen] = useState(0);
    const query = place.query ?? "";
    const setQuery = (query: string) => keep({ query });
    const table = tables[chosen]!;
    return (
        <>
            <ViewHead title="Tables">
                {tables.length > 1 && (
                    <Choice label="Table" value={chosen} options={tables.map((t, i) => ({ value: i, name: t.title }))} onChange={setChosen} />
                )}
                <Search label="Search rows" value={query} onInput={setQuery} />
            </ViewHead>
            <One key={chosen} table={table} query={query} />
        </>
    );
}

function One({ table, query }: { table: GenericTable; query: string }) {
    const rows = useMemo(() => {
        const is = matcher(query);
        return table.rows.map((_, i) => i).filter((i) => is === undefined || is(table.rows[i]!.join(" ")));
    }, [query]);
    const columns = useMemo<Column[]>(
        () =>
            table.columns.map((name, c): Column => {
                const number = table.numbers[c] === 1;
                const longest = table.rows.slice(0, 200).reduce((most, row) => Math.max(most, row[c]?.length ?? 0), name.length + 2);
                const width = Math.min(360, 20 + Math.round(longest * 7.4));
                return {
                    id: String(c),
                    name,
                    number,
                    width: number ? `${Math.max(76, width)}px` : `minmax(${Math.max(90, Math.min(width, 220))}px, ${Math.max(1, Math.round(longest / 10))}fr)`,
                    value: (i) => {
                        const text = table.rows[i]![c] ?? "";
                        return number && numeric.test(text) ? Number(text) : number ? -Infinity : text;
                    },
                    show: (i) => {
                        const text = table.rows[i]![c] ?? "";
                        return <span title={text}>{number && numeric.test(text) ? grouped(Number(text)) : text}</span>;
                    },
                };
            }),
        [table],
    );
    return (
        <section aria-label={table.title}>
            <h2>{table.title}</h2>
            {table.note && <p class="note">{table.note}</p>}
            <DataTable label={table.title} columns={columns} rows={rows} />
            {table.of > table.rows.length && <p class="note">These are the first {counted(table.rows.length, "row")} of {grouped(table.of)}.</p>}
        </section>
    );
}
