/// How far the capture can be trusted, then its figures and the highest costs.
import { Name, Share, TrustList } from "../ui/parts";
import { hashOf, type ViewProps } from "../ui/state";
import { counted, grouped, percent, full } from "../ui/text";
import { guessed, guessedNote } from "../data/threads";
import { viewsOf } from "../data/views";
import type { Figure } from "../data/wire";
import { Glance } from "./glance";

const severities = ["good", "note", "warning", "bad"] as const;
const signs = ["✓", "i", "!", "✕"] as const;
const words = ["Good", "Note", "Warning", "Bad"] as const;

/// Groups the digits of values that are text.
function spaced(value: string): string {
    return value.replace(/^\d{4,}(?![\d.])/, (n) => grouped(Number(n)));
}

/// Functions with their own costs.
function Top({ report, list, total }: { report: ViewProps["report"]; list: { cost: number; f: number }[]; total: number }) {
    return (
        <ol class="top-functions">
            {list.map(({ cost, f }) => (
                <li key={f}>
                    <a href={hashOf({ view: "functions", function: f })}>
                        <Name name={report.functionName(f)} most={44} />
                    </a>
                    <span class="number">{full(cost)}</span>
                    <Share part={cost} whole={total} />
                </li>
            ))}
        </ol>
    );
}

/// Sentences take the whole width.
const isWide = (f: Figure) => f.name === "recorded" || f.value.length > 32;

function FigureBox(f: Figure) {
    return (
        <div class={isWide(f) ? "wide" : ""}>
            <dt>{f.name}</dt>
            <dd class={isWide(f) || f.value.length > 24 ? "long" : ""}>
                {spaced(f.value)}
                {f.note && <p class="quiet">{spaced(f.note)}</p>}
            </dd>
        </div>
    );
}

export function SummaryView({ report, metric }: ViewProps) {
    const { head } = report;
    const { functions } = head;
    const costs = functions.self[metric] ?? [];
    const total = costs.reduce((sum, c) => sum + c, 0);
    const ranked = costs
        .map((cost, f) => ({ cost, f }))
        .filter((x) => x.cost > 0)
        .sort((a, b) => b.cost - a.cost);
    const own = report.hasOwn ? ranked.filter((x) => functions.own[x.f] === 1) : [];
    const others = own.length > 0 ? ranked.filter((x) => functions.own[x.f] !== 1) : ranked;
    const sum = (list: typeof ranked) => list.reduce((all, x) => all + x.cost, 0);
    const cost = (l: { costs: number[] }) => l.costs[metric] ?? 0;
    const levels = [...head.levels].sort((a, b) => cost(b) - cost(a));
    const levelsTotal = levels.reduce((sum, l) => sum + cost(l), 0);
    const findings = [...head.health].sort((a, b) => b.severity - a.severity);
    const absent = viewsOf(head).filter((v) => v.absent !== undefined);
    return (
        <>
            <h1 tabIndex={-1}>Summary</h1>
            <section aria-labelledby="health">
                <h2 id="health">Can this capture be trusted?</h2>
                {head.run && <p>Of the run: {spaced(head.run)}.</p>}
                {findings.length === 0 ? (
                    <p class="empty">Nothing is known against it.</p>
                ) : (
                    <ul class="findings">
                        {findings.map((f) => (
                            <li key={f.what} class={`finding ${severities[f.severity]}`}>
                                <span class="sign" aria-hidden="true">
                                    {signs[f.severity]}
                                </span>
                                <div>
                                    <p>
                                        <span class="hidden">{words[f.severity]}: </span>
                                        {spaced(f.what)}
                                        {f.offset && <span class="quiet"> (first at offset {f.offset})</span>}
                                    </p>
                                    {f.todo && <p class="todo">{f.todo}</p>}
                                </div>
                            </li>
                        ))}
                    </ul>
                )}
            </section>
            <section aria-labelledby="figures">
                <h2 id="figures">Figures</h2>
                <dl class="figures">
                    {head.summary.filter(isWide).map((f) => <FigureBox key={f.name} {...f} />)}
                    <div>
                        <dt>trace</dt>
                        <dd>
                            {grouped(head.traceBytes)} <span class="quiet">bytes</span>
                        </dd>
                    </div>
                    {head.summary.filter((f) => !isWide(f)).map((f) => <FigureBox key={f.name} {...f} />)}
                </dl>
            </section>
            <Glance report={report} metric={metric} />
            {ranked.length > 0 && (
                <section aria-labelledby="top">
                    <h2 id="top">Where most {head.metrics[metric]?.name ?? ""} went</h2>
                    {own.length > 0 && (
                        <>
                            <h3>
                                Your code <span class="quiet">{percent(sum(own), total)}</span>
                            </h3>
                            <Top report={report} list={own.slice(0, 8)} total={total} />
                            {others.length > 0 && (
                                <h3>
                                    Libraries and the rest <span class="quiet">{percent(sum(others), total)}</span>
                                </h3>
                            )}
                        </>
                    )}
                    <Top report={report} list={others.slice(0, own.length > 0 ? 4 : 8)} total={total} />
                    <p class="note">
                        Of the function itself, without what it calls.{" "}
                        {ranked.some((x) => guessed.test(functions.name[x.f]!)) && <>{guessedNote} </>}
                        <a href={hashOf({ view: "functions" })}>All {counted(functions.name.filter((_, f) => report.isFunction(f)).length, "function")}</a>
                    </p>
                </section>
            )}
            {levels.length > 0 && (
                <section aria-labelledby="levels">
                    <h2 id="levels">Exception levels and security states</h2>
                    <ol class="top-functions">
                        {levels.map((l) => (
                            <li key={l.name}>
                                <span>
                                    {l.name} <span class="quiet">entered {counted(l.entered, "time")}</span>
                                </span>
                                <span class="number">{full(cost(l))}</span>
                                <Share part={cost(l)} whole={levelsTotal} />
                            </li>
                        ))}
                    </ol>
                </section>
            )}
            {head.trust.length > 0 && (
                <section aria-labelledby="trust">
                    <h2 id="trust">What is exact, and what is not</h2>
                    <TrustList trust={head.trust} named />
                </section>
            )}
            {head.images.length > 0 && (
                <section aria-labelledby="programs">
                    <h2 id="programs">Programs</h2>
                    <ul class="programs">
                        {head.images.map((i) => (
                            <li key={i.name + i.path}>
                                <b>{i.name}</b>
                                {i.path && <span class="path">{i.path}</span>}
                                {i.buildId && <span class="path">build ID {i.buildId}</span>}
                            </li>
                        ))}
                    </ul>
                </section>
            )}
            {absent.length > 0 && (
                <section aria-labelledby="absent" class="absent-below">
                    <h2 id="absent">Not in this report</h2>
                    <dl class="plain">
                        {absent.map((v) => (
                            <div key={v.id}>
                                <dt>{v.name}</dt>
                                <dd>{v.absent}</dd>
                            </div>
                        ))}
                    </dl>
                </section>
            )}
            <p class="note">Written by Waymark {head.version}.</p>
        </>
    );
}
