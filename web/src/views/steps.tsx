/// Stepping through the execution: instruction by instruction, forth and back, with the call stack and the outcomes of
/// branches.
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import { type Code, isaNames } from "../data/model";
import { Outcome, type Stream } from "../data/steps";
import { Choice, Loading, Name, useLoaded, ViewHead } from "../ui/parts";
import { useTimeline } from "../ui/range";
import { hashOf, type ViewProps } from "../ui/state";
import { counted, fileName, grouped, hex } from "../ui/text";

export function StepsView(props: ViewProps) {
    const loaded = useLoaded(() => props.report.steps());
    if (loaded === undefined || loaded instanceof Error) return <Loading what="the steps" error={loaded} />;
    return <Stepping {...props} {...loaded} />;
}

interface Move {
    name: string;
    title: string;
    key: string;
    way: 1 | -1;
    to: (s: Stream, at: number) => number | undefined;
}
const pair = (name: string, key: string, on: string, back: string, to: (s: Stream, at: number, way: 1 | -1) => number | undefined): Move[] =>
    ([-1, 1] as const).map((way) => ({
        name,
        way,
        key: way === 1 || key.length > 1 ? key : key.toUpperCase(),
        title: way === 1 ? on : back,
        to: (s, at) => to(s, at, way),
    }));
const moves: Move[][] = [
    pair("Instruction", "Arrow", "One instruction on ( → )", "One instruction back ( ← )", (s, at, way) => (at + way >= 0 && at + way < s.size ? at + way : undefined)),
    pair("Over", "o", "On, over the call ( o )", "Back, over the call ( O )", (s, at, way) => s.over(at, way)),
    pair("Out", "u", "On to where the function returned ( u )", "Back to where the function was called ( U )", (s, at, way) => s.out(at, way)),
    pair("Same instruction", "a", "Next execution of this instruction ( a )", "Previous execution of this instruction ( A )", (s, at, way) => s.sameAddress(at, way)),
    pair("Same line", "l", "Next execution of this line ( l )", "Previous execution of this line ( L )", (s, at, way) => s.sameLine(at, way)),
    pair("Exception or gap", "e", "Next exception or gap ( e )", "Previous exception or gap ( E )", (s, at, way) => s.event(at, way)),
    [
        { name: "First or last", way: -1, key: "Home", title: "The first instruction ( Home )", to: (_, at) => (at > 0 ? 0 : undefined) },
        { name: "First or last", way: 1, key: "End", title: "The last instruction ( End )", to: (s, at) => (at < s.size - 1 ? s.size - 1 : undefined) },
    ],
];
const outcomes = ["", "not taken", "taken", "passed"];

function Stepping({ report, place, keep, go, streams, texts, code }: ViewProps & { streams: Stream[]; texts: string[]; code: Code }) {
    // A link from code names an instruction: the first execution, in the first source that has one.
    const [executedIn, first] = useMemo(() => {
        const found = place.address === undefined ? [] : streams.map((stream) => stream.firstAt(place.address!));
        const stream = found.findIndex((at) => at !== undefined);
        return [stream, found[stream]];
    }, [streams, place.address]);
    const which = Math.min(place.stream ?? Math.max(executedIn, 0), streams.length - 1);
    const s = streams[which]!;
    const at = Math.min(place.step ?? (place.which === "last" ? s.size - 1 : (first ?? 0)), s.size - 1);
    const timeline = useTimeline(report);
    // As the timeline names it: with the function that the thread began in.
    const sourceName = (source: string) => timeline?.part.tracks.name.find((n) => n.startsWith(`${source} · `)) ?? source;
    const set = (step: number) => keep({ step, stream: which });
    const said = useRef<HTMLParagraphElement>(null);
    const move = (m: Move) => {
        const to = m.to(s, at);
        if (to !== undefined) set(to);
        else if (said.current) said.current.textContent = `None ${m.way === 1 ? "after" : "before"} this in the part that can be stepped through.`;
    };
    useLayoutEffect(() => {
        if (said.current) said.current.textContent = "";
    }, [at, which]);
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest("input, select")) return;
        const arrow = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : event.key === "ArrowLeft" || event.key === "ArrowUp" ? -1 : 0;
        const found = moves.flat().find((m) => (arrow !== 0 ? m.key === "Arrow" && m.way === arrow : m.key === event.key));
        if (found) move(found);
        else return;
        event.preventDefault();
    };
    const address = s.addressAt(at);
    const row = code.rowAt(address);
    const source = row < 0 ? -1 : code.part.instructions.source[row]!;
    const line = row < 0 ? 0 : code.part.instructions.line[row]!;
    const [turn, turns] = useMemo(() => s.turnOf(at), [s, at]);
    const whole = s.size === s.part.instructions;
    const part = s.part.window ? " in the window of this report" : "";
    return (
        <>
            <ViewHead title="Steps">
                {streams.length > 1 && <Choice label="Source" value={which} options={streams.map((x, i) => ({ value: i, name: sourceName(x.part.source) }))} onChange={(i) => keep({ stream: i, step: 0 })} />}
            </ViewHead>
            {place.address !== undefined && executedIn < 0 && <p class="note">{hex(place.address)} was not executed in the part that can be stepped through.</p>}
            <p class="note steps-extent">
                {whole ? `All ${counted(s.size, "instruction")} that ${s.part.source} traced${part} can be stepped through.` : `The first ${grouped(s.size)} of ${counted(s.part.instructions, "instruction")} that ${s.part.source} traced${part} can be stepped through; --steps takes more into the report.`}
                {s.part.first > 0 && ` Instruction 0 is number ${grouped(s.part.first)} of the source.`}
            </p>
            <div class="steps" data-keys onKeyDown={onKeyDown} tabIndex={-1}>
                <div class="steps-moves" role="toolbar" aria-label="Steps">
                    {moves.map(([back, on]) => (
                        <span class="steps-pair" key={on!.name}>
                            <button type="button" class="button" data-step={`${on!.name} back`} title={back!.title} aria-label={back!.title.replace(/ \(.*/, "")} onClick={() => move(back!)}>◀</button>
                            <span aria-hidden="true">{on!.name}</span>
                            <button type="button" class="button" data-step={on!.name} title={on!.title} aria-label={on!.title.replace(/ \(.*/, "")} onClick={() => move(on!)}>▶</button>
                        </span>
                    ))}
                    <label class="steps-at">
                        Instruction{" "}
                        <input type="text" inputMode="numeric" value={String(at)} onChange={(event) => {
                            const to = Number(event.currentTarget.value.replaceAll(",", ""));
                            if (Number.isInteger(to) && to >= 0) set(Math.min(to, s.size - 1));
                            else event.currentTarget.value = String(at);
                        }} />
                    </label>
                    <span class="quiet">of {grouped(s.size)}, from 0</span>
                </div>
                <p class="quiet" role="status" ref={said} />
                <p class="steps-here" data-address={address < 0n ? "" : hex(address)} data-outcome={outcomes[s.outcomeAt(at)]} data-at={at}>
                    <b>{report.placeName(address) || (address < 0n ? "an address that the report does not hold" : hex(address))}</b>
                    {source >= 0 && line > 0 && ` · ${fileName(report.sourceName(source))}:${line}`}
                    {` · execution ${grouped(turn)} of ${grouped(turns)} of this instruction in this part`}
                </p>
                <div class="steps-panes">
                    <section aria-label="Executed instructions" class="steps-list">
                        <h2>Executed</h2>
                        <Executed s={s} at={at} set={set} report={report} code={code} texts={texts} />
                    </section>
                    <div>
                        <section aria-label="Call stack" class="steps-stack">
                            <h2>Call stack</h2>
                            <ol tabIndex={0} aria-label="Call stack, the innermost call first">
                                {s.stackAt(at).slice(0, 60).map((n) => (
                                    <li key={n.begin + ":" + n.depth}>
                                        <a href={hashOf({ view: "code", function: n.function })}><Name name={report.functionName(n.function)} most={48} /></a>
                                        <button type="button" class="button small" title="To the first instruction of this call" onClick={() => set(Math.min(n.begin, s.size - 1))}>since {grouped(n.begin)}</button>
                                    </li>
                                ))}
                            </ol>
                        </section>
                        {source >= 0 && line > 0 && <SourceLines report={report} code={code} source={source} line={line} open={() => go({ view: "code", function: report.functionAt(address), source, address })} />}
                    </div>
                </div>
            </div>
        </>
    );
}

const before = 12;
const behind = 24;

/// The instructions around a place, in the order in which they ran.
function Executed({ s, at, set, report, code, texts }: { s: Stream; at: number; set: (at: number) => void; report: ViewProps["report"]; code: Code; texts: string[] }) {
    const frame = useRef<HTMLOListElement>(null);
    useEffect(() => {
        const list = frame.current!;
        const here = list.querySelector<HTMLElement>("[aria-current]");
        if (here && (here.offsetTop < list.scrollTop || here.offsetTop + here.offsetHeight > list.scrollTop + list.clientHeight)) list.scrollTop = here.offsetTop - list.clientHeight / 3;
    }, [at]);
    const rows = [];
    let last = -2;
    for (let i = Math.max(0, at - before); i <= Math.min(s.size - 1, at + behind); ++i) {
        for (const e of s.eventsAt(i)) rows.push(<li key={`e${e}`} class={`steps-event kind-${s.part.events.kind[e]}`}>{texts[s.part.events.text[e]!]}</li>);
        const address = s.addressAt(i);
        const f = report.functionAt(address);
        if (f !== last) rows.push(<li key={`f${i}`} class="steps-function"><Name name={report.functionName(f)} most={60} /></li>);
        last = f;
        const row = code.rowAt(address);
        const outcome = outcomes[s.outcomeAt(i)]!;
        const text = row < 0 ? "" : code.part.texts[code.part.instructions.text[row]!];
        rows.push(
            <li key={i} aria-current={i === at ? "step" : undefined} class={`outcome-${s.outcomeAt(i)}`} onClick={() => set(i)}>
                <span class="number">{grouped(i)}</span>
                <code class="address">{address < 0n ? "?" : hex(address)}</code>
                <code>{text || `${isaNames[s.edgeAt(i).isa] ?? ""} instruction`}</code>
                {outcome !== "" && <span class={s.outcomeAt(i) === Outcome.notTaken ? "chip not" : "chip"}>{outcome}</span>}
            </li>,
        );
    }
    return <ol ref={frame} class="steps-rows" tabIndex={0} aria-label="Executed instructions">{rows}</ol>;
}

function SourceLines({ report, code, source, line, open }: { report: ViewProps["report"]; code: Code; source: number; line: number; open: () => void }) {
    const lines = [];
    for (let l = Math.max(1, line - 8); l <= line + 8; ++l) {
        const text = code.text(source, l);
        if (text !== undefined) lines.push(<li key={l} value={l} aria-current={l === line ? "step" : undefined}><span class="number">{l}</span><code>{text}</code></li>);
    }
    return (
        <section aria-label="Source" class="steps-source">
            <h2>
                {fileName(report.sourceName(source))} <button type="button" class="button small" onClick={open}>Open</button>
            </h2>
            {lines.length === 0 ? <p class="quiet">The text of this file is not in the report.</p> : <ol class="steps-rows" tabIndex={0} aria-label="Lines of source">{lines}</ol>}
        </section>
    );
}
