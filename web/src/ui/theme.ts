/// Light and dark themes, and the colours of canvases. People with any colour vision can
/// distinguish the hues, a palette by Okabe and Ito; important facts are also shown by hatching, shape or words.
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const stored = "waymark-theme";
const listeners = new Set<() => void>();

function preferred(): Theme {
    try {
        const kept = localStorage.getItem(stored);
        if (kept === "light" || kept === "dark") return kept;
    } catch {
        // Browsers may deny storage to files.
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

let current: Theme = preferred();

function apply() {
    document.documentElement.dataset.theme = current;
    cached = undefined;
    for (const listener of listeners) listener();
}

export function setTheme(theme: Theme) {
    current = theme;
    try {
        localStorage.setItem(stored, theme);
    } catch {
        // Then the setting lasts as long as the page.
    }
    apply();
}

export function startTheme() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        current = preferred();
        apply();
    });
    apply();
}

export function useTheme(): Theme {
    const [, again] = useState(0);
    useEffect(() => {
        const listener = () => again((n) => n + 1);
        listeners.add(listener);
        return () => void listeners.delete(listener);
    }, []);
    return current;
}

export const stillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export interface Colors {
    ink: string;
    muted: string;
    panel: string;
    background: string;
    line: string;
    accent: string;
    match: string;
    matchInk: string;
    faded: string;
    merged: string;
    fadedInk: string;
    gap: string;
    exception: string;
    series: string[];
    functions: string[];
    functionInk: string;
}

let cached: Colors | undefined;

/// The colours of the current theme.
export function colors(): Colors {
    if (cached) return cached;
    const style = getComputedStyle(document.documentElement);
    const of = (name: string) => style.getPropertyValue(name).trim();
    cached = {
        ink: of("--ink"),
        muted: of("--muted"),
        panel: of("--panel"),
        background: of("--background"),
        line: of("--line"),
        accent: of("--accent"),
        match: of("--match"),
        matchInk: of("--match-ink"),
        faded: of("--faded"),
        merged: of("--merged"),
        fadedInk: of("--faded-ink"),
        gap: of("--gap"),
        exception: of("--exception"),
        series: [of("--series-1"), of("--series-2"), of("--series-3"), of("--series-4")],
        functions:
            current === "light"
                ? ["#bcd9ee", "#f6dca4", "#b9e0d2", "#f3c9ab", "#cfe6f7", "#ecd0e0", "#dfe3b4", "#d5d3ea"]
                : ["#1d4d70", "#6b4e12", "#17574a", "#71401f", "#2f5f7d", "#663a54", "#50551c", "#474473"],
        functionInk: current === "light" ? "#16202b" : "#f0f3f6",
    };
    return cached;
}

/// The colour of a function: the same in all views and in every report.
export function colorOf(name: string): string {
    let hash = 2166136261;
    for (let i = 0; i < name.length; ++i) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    const all = colors().functions;
    return all[((hash ^ (hash >>> 15)) >>> 0) % all.length]!;
}

/// Hatching, for unknown execution.
export function hatch(context: CanvasRenderingContext2D, ink: string, gap = 6): CanvasPattern | string {
    const tile = document.createElement("canvas");
    tile.width = tile.height = gap * 2;
    const c = tile.getContext("2d")!;
    c.strokeStyle = ink;
    c.lineWidth = 1.5;
    c.beginPath();
    for (let k = -1; k <= 3; ++k) {
        c.moveTo(k * gap - gap, gap * 2 + gap);
        c.lineTo(k * gap + gap * 3 - gap, -gap + gap);
    }
    c.stroke();
    return context.createPattern(tile, "repeat") ?? ink;
}
