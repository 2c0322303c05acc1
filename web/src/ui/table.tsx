/// A table of any length: only visible rows are in the page. Its headers sort it, arrow keys move in it.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Copy } from "./parts";
import { counted, grouped } from "./text";

export interface Column {
    id: string;
    name: string;
    title?: string;
    /// CSS of a grid track; numbers have a default.
    width?: string;
    number?: boolean;
    /// The value to sort by, and to copy as text.
    value(row: number): number | string | bigint;
    /// What is copied, if not the value.
    text?(row: number): string;
    /// Whether the value is known: an unknown one is copied as an empty cell. All are known if missing.
    known?(row: number): boolean;
    /// The content to show; the value if missing.
    show?(row: number): ComponentChildren;
}

export interface TableProps {
    label: string;
    columns: Column[];
    /// The rows to show, in their original order.
    rows: readonly number[];
    sort?: { by: string; down: boolean };
    open?: (row: number) => void;
    selected?: number;
    height?: string;
    empty?: string;
}

const rowHeight = 30;

/// Rows for pasting into a spreadsheet: values, not their formatted text.
function asText(columns: Column[], rows: readonly number[]): string {
    const cell = (value: number | string | bigint) => (typeof value === "bigint" ? "0x" + value.toString(16) : String(value)).replace(/[\t\n]/g, " ");
    return [columns.map((c) => c.name).join("\t"), ...rows.map((row) => columns.map((c) => (c.known?.(row) === false ? "" : c.text ? c.text(row) : cell(c.value(row)))).join("\t"))].join("\n") + "\n";
}

export function DataTable(props: TableProps) {
    const { columns, rows } = props;
    const [sort, setSort] = useState(props.sort);
    const [active, setActive] = useState(0);
    const [top, setTop] = useState(0);
    const [height, setHeight] = useState(600);
    const [narrow, setNarrow] = useState(false);
    const frame = useRef<HTMLDivElement>(null);

    const sorted = useMemo(() => {
        const column = sort && columns.find((c) => c.id === sort.by);
        if (!column) return rows;
        const keys = new Map<number, number | string | bigint>();
        for (const row of rows) keys.set(row, column.value(row));
        const sign = sort.down ? -1 : 1;
        return [...rows].sort((a, b) => {
            const x = keys.get(a)!;
            const y = keys.get(b)!;
            return x === y ? a - b : x < y ? -sign : sign;
        });
    }, [rows, sort, columns]);

    useEffect(() => {
        const at = frame.current;
        if (!at) return;
        const observer = new ResizeObserver(() => {
            setHeight(at.clientHeight);
            setNarrow(at.clientWidth < 620);
        });
        observer.observe(at);
        return () => observer.disconnect();
    }, []);
    useEffect(() => setActive((a) => Math.min(a, Math.max(0, rows.length - 1))), [rows]);

    const first = Math.max(0, Math.floor(top / rowHeight) - 8);
    const last = Math.min(sorted.length, Math.ceil((top + height) / rowHeight) + 8);
    // Each row is a separate grid, so widths must not depend on its contents. On narrow screens the first
    // column remains visible and numbers replace bars.
    const tracks = columns.map((c, i) => {
        if (narrow) return i === 0 ? "minmax(132px, 1.5fr)" : c.number ? "minmax(84px, 1fr)" : "minmax(132px, 1.5fr)";
        return c.width ?? (c.number ? "minmax(88px, 120px)" : "minmax(140px, 1fr)");
    });
    // The minimum widths; narrower screens scroll the table.
    const least = tracks.reduce((sum, track) => sum + Number(/\d+/.exec(track)?.[0] ?? 0) + 12, 12);
    const rowStyle = { gridTemplateColumns: tracks.join(" "), minWidth: `${least}px` };

    const goTo = (row: number) => {
        const to = Math.max(0, Math.min(sorted.length - 1, row));
        setActive(to);
        const at = frame.current;
        if (!at) return;
        const y = to * rowHeight;
        if (y < at.scrollTop) at.scrollTop = y;
        else if (y + 2 * rowHeight > at.scrollTop + at.clientHeight) at.scrollTop = y + 2 * rowHeight - at.clientHeight;
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if ((event.target as HTMLElement).closest("button")) return;
        const page = Math.max(1, Math.floor(height / rowHeight) - 2);
        const steps: Record<string, number> = {
            ArrowDown: active + 1,
            ArrowUp: active - 1,
            PageDown: active + page,
            PageUp: active - page,
            Home: 0,
            End: sorted.length - 1,
        };
        const to = steps[event.key];
        if (to !== undefined) goTo(to);
        else if (event.key === "Enter" && props.open && sorted[active] !== undefined) props.open(sorted[active]!);
        else return;
        event.preventDefault();
    };

    return (
        <>
        <div
            class={narrow ? "table narrow" : "table"}
            role="table"
            aria-label={`${props.label}, ${grouped(rows.length)} rows`}
            aria-rowcount={rows.length + 1}
            tabIndex={0}
            ref={frame}
            style={{ maxHeight: props.height ?? "min(70vh, 900px)" }}
            onScroll={(event) => setTop(event.currentTarget.scrollTop)}
            onKeyDown={onKeyDown}
        >
            <div role="rowgroup" class="table-head">
                <div role="row" aria-rowindex={1} class="row" style={rowStyle}>
                    {columns.map((c) => {
                        const by = sort?.by === c.id;
                        return (
                            <div
                                key={c.id}
                                role="columnheader"
                                class={c.number ? "number" : ""}
                                aria-sort={by ? (sort!.down ? "descending" : "ascending") : "none"}
                            >
                                <button
                                    type="button"
                                    title={c.title ?? `Sort by ${c.name}`}
                                    onClick={() => setSort({ by: c.id, down: by ? !sort!.down : !!c.number })}
                                >
                                    {c.name}
                                    {by && (
                                        <span class="arrow" aria-hidden="true">
                                            {sort!.down ? "▼" : "▲"}
                                        </span>
                                    )}
                                </button>
                            </div>
                        );
                    })}
                </div>
            </div>
            <div role="rowgroup" class="table-body" style={{ height: sorted.length * rowHeight }}>
                {sorted.slice(first, last).map((row, k) => {
                    const index = first + k;
                    return (
                        <div
                            key={row}
                            role="row"
                            aria-rowindex={index + 2}
                            aria-current={row === props.selected ? "true" : undefined}
                            class={`row${row === props.selected ? " selected" : ""}${index === active ? " active" : ""}${props.open ? " link" : ""}`}
                            style={{ ...rowStyle, top: index * rowHeight }}
                            onClick={() => {
                                setActive(index);
                                props.open?.(row);
                            }}
                        >
                            {columns.map((c) => (
                                <div key={c.id} role="cell" class={c.number ? "number" : ""}>
                                    {c.show ? c.show(row) : <span>{show(c.value(row))}</span>}
                                </div>
                            ))}
                        </div>
                    );
                })}
            </div>
            {rows.length === 0 && <p class="empty">{props.empty ?? "Nothing matches."}</p>}
        </div>
        {rows.length > 0 && (
            <div class="table-foot">
                <span class="quiet">{counted(rows.length, "row")}</span>
                <Copy small text={() => asText(columns, sorted)} what="Copy as text" />
            </div>
        )}
        </>
    );
}

function show(value: number | string | bigint): string {
    return typeof value === "number" ? grouped(value) : String(value);
}
