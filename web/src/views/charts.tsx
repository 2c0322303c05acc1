/// Histograms and shares, each with its values as a table.
import { useRef, useState } from "preact/hooks";

import type { Chart } from "../data/wire";
import { useSize } from "../ui/canvas";
import { ViewHead } from "../ui/parts";
import type { ViewProps } from "../ui/state";
import { grouped, percent, short } from "../ui/text";

export function ChartsView({ report }: ViewProps) {
    // Shares first: they are more informative than distributions.
    const charts = [...report.head.charts].sort((a, b) => b.kind - a.kind);
    return (
        <>
            <ViewHead title="Charts" />
            <div class="charts">
                {charts.map((chart, i) => (
                    <figure key={i} class={`chart ${chart.kind === 0 && chart.label.length > 10 ? "wide" : ""}`}>
                        <figcaption>
                            <h2>{chart.title}</h2>
                            {chart.note && <p class="note">{chart.note}</p>}
                        </figcaption>
                        {chart.kind === 0 && chart.label.length > 3 ? <Histogram chart={chart} /> : <Shares chart={chart} />}
                    </figure>
                ))}
            </div>
        </>
    );
}

/// Labels and notes have the format of other commands: `system_cache`, `4-7`, `20,175 cycles`.
const words = (text: string) => text.replace(/(?<=[a-z])_(?=[a-z])/g, " ").replace(/^(\d+)-(\d+)$/, "$1–$2").replace(/(?<=\d),(?=\d{3})/g, "\u202f");

/// The end of an axis: the smallest of 1, 2, 4, 5, 6, 8 times a power of ten that is not less.
export function roundUp(most: number): number {
    const ten = 10 ** Math.floor(Math.log10(Math.max(1, most)));
    return [1, 2, 4, 5, 6, 8, 10].map((k) => k * ten).find((end) => end >= most) ?? most;
}

/// Bars with their labels, values and shares, as a table.
function Shares({ chart }: { chart: Chart }) {
    const total = chart.value.reduce((sum, v) => sum + v, 0);
    const most = Math.max(...chart.value, 1);
    return (
        <div class="shares-frame" tabIndex={0} role="region" aria-label={chart.title}>
            <table class="shares">
                <thead class="hidden">
                    <tr>
                        <th>{chart.xUnit || "What"}</th>
                        <th>{chart.yUnit || "Value"}</th>
                        <th>Share</th>
                    </tr>
                </thead>
                <tbody>
                    {chart.label.map((label, i) => (
                        <tr key={i}>
                            <th scope="row" title={chart.barNote[i]}>
                                {words(label)}
                                {chart.kind === 0 && chart.xUnit && ` ${chart.xUnit}`}
                                {chart.barNote[i] && <span class="quiet bar-note">{words(chart.barNote[i]!)}</span>}
                            </th>
                            <td class="bar">
                                <span style={{ width: `${(100 * chart.value[i]!) / most}%` }} class={`fill-${i % 4}`} />
                            </td>
                            <td class="number">
                                {short(chart.value[i]!)} <span class="quiet">{percent(chart.value[i]!, total)}</span>
                            </td>
                        </tr>
                    ))}
                </tbody>
            </table>
            {chart.yUnit && <p class="note">in {chart.yUnit}</p>}
        </div>
    );
}

/// Columns over an axis; the values of the column under the pointer are shown below.
function Histogram({ chart }: { chart: Chart }) {
    const frame = useRef<HTMLDivElement>(null);
    const { width } = useSize(frame);
    const [at, setAt] = useState(-1);
    const height = 180;
    const left = 52;
    const bottom = 24;
    const most = roundUp(Math.max(...chart.value, 1));
    const total = chart.value.reduce((sum, v) => sum + v, 0);
    const bars = chart.value.length;
    const step = Math.max(1, (width - left - 4) / bars);
    // As many labels as fit side by side.
    const longest = chart.label.reduce((m, l) => Math.max(m, l.length), 1);
    const every = Math.max(1, Math.ceil((longest * 7 + 10) / step));
    return (
        <div ref={frame} class="histogram">
            {width > 0 && (
                <svg width={width} height={height + bottom} role="img" aria-label={`${chart.title}; the values are in the table below`} onMouseLeave={() => setAt(-1)}
                    onMouseMove={(event) => {
                        const x = event.clientX - event.currentTarget.getBoundingClientRect().left - left;
                        setAt(x < 0 ? -1 : Math.min(bars - 1, Math.floor(x / step)));
                    }}>
                    {[0, 0.5, 1].map((part) => (
                        <g key={part}>
                            <line class="rule" x1={left} x2={width} y1={height - part * (height - 12)} y2={height - part * (height - 12)} />
                            <text class="tick" x={left - 6} y={height - part * (height - 12) + 4} text-anchor="end">
                                {short(most * part)}
                            </text>
                        </g>
                    ))}
                    {chart.value.map((value, i) => (
                        <rect key={i} class={i === at ? "column at" : "column"} x={left + i * step + 1} width={Math.max(1, step - 2)} y={height - (value / most) * (height - 12)} height={(value / most) * (height - 12)} />
                    ))}
                    {chart.label.map((label, i) =>
                        i % every === 0 ? (
                            <text key={i} class="tick" x={left + (i + 0.5) * step} y={height + 16} text-anchor="middle">
                                {words(label)}
                            </text>
                        ) : null,
                    )}
                </svg>
            )}
            <p class="note" aria-live="polite">
                {at >= 0
                    ? `${words(chart.label[at]!)} ${chart.xUnit}: ${grouped(chart.value[at]!)} ${chart.yUnit}, ${percent(chart.value[at]!, total)}${chart.barNote[at] ? `; ${words(chart.barNote[at]!)}` : ""}`
                    : `${chart.yUnit || "number"} by ${chart.xUnit || "value"}`}
            </p>
            <details>
                <summary>Values as a table</summary>
                <Shares chart={chart} />
            </details>
        </div>
    );
}
