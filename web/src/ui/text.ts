/// Formats numbers and names for people. Numbers are written as docs/numbers.md says, and as the commands write them
/// (include/waymark/core/numbers.h).

/// Before a unit: a line does not break there.
const space = "\u00a0";

/// The digits of a whole number: 12345678 → 12,345,678
function digits(value: number): string {
    return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/// 1234.5 → 1,234.5; three decimals below 1; 1.234e+15 from 1e15 on. Halves are rounded up.
export function decimal(value: number): string {
    const size = Math.abs(value);
    if (!Number.isFinite(value)) return "–";
    if (size >= 1e15) return value.toExponential(3);
    const decimals = size !== 0 && Math.floor(size * 1000 + 0.5) < 1000 ? 3 : 1;
    const scale = decimals === 3 ? 1000 : 10;
    const scaled = Math.floor(size * scale + 0.5);
    const part = String(scaled % scale).padStart(decimals, "0");
    return `${value < 0 && scaled !== 0 ? "-" : ""}${digits(Math.floor(scaled / scale))}.${part}`;
}

/// A count if it is whole, else with decimals: 12345678 → 12,345,678; 12.5 → 12.5
export function grouped(value: number): string {
    return value >= 0 && Number.isSafeInteger(value) ? digits(value) : decimal(value);
}

/// 12345678 → 12.3 M: for charts and narrow columns, which give the whole number besides.
export function short(value: number): string {
    const size = Math.abs(value);
    for (const [limit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]] as const)
        if (size >= limit) return `${decimal(value / (letter === "k" ? 1e3 : limit))}${space}${letter}`;
    return grouped(value);
}

/// All digits where there is room for nine.
export const full = (value: number): string => (Math.abs(value) < 1e9 ? grouped(value) : short(value));

/// 33.3%. A part that is not 0 is never written as 0.0%, and one that is not all never as 100.0%.
export function percent(part: number, whole: number): string {
    if (!(whole > 0)) return "–";
    const permille = Math.floor((1000 * part) / whole + 0.5);
    if (part > 0 && permille === 0) return "<0.1%";
    if (part < whole && permille >= 1000) return ">99.9%";
    return `${digits(Math.floor(permille / 10))}.${permille % 10}%`;
}

/// 12345 → 12,345 bytes; 12345678 → 12.3 MB
export function sizeText(bytes: number): string {
    if (bytes < 1e6) return counted(bytes, "byte");
    return bytes >= 1e9 ? `${decimal(bytes / 1e9)}${space}GB` : `${decimal(bytes / 1e6)}${space}MB`;
}

export function hex(address: bigint): string {
    return "0x" + address.toString(16).padStart(8, "0");
}

/// `1 slice`, `2,345 slices`.
export function counted(count: number, one: string, many = one + "s"): string {
    return `${grouped(count)} ${count === 1 ? one : many}`;
}

/// Singular units are unchanged; `instructions` becomes `instruction` for a count of one.
export function withUnit(value: number, unit: string): string {
    const word = value === 1 && unit.endsWith("s") && unit !== "ns" ? unit.slice(0, -1) : unit;
    return `${grouped(value)}${unit === "" ? "" : space + word}`;
}

/// A time since the start of a capture.
export function timeText(value: number, unit: string, ticksPerSecond = 0): string {
    let ns = NaN;
    if (unit === "ns") ns = value;
    else if (ticksPerSecond > 0) ns = (value / ticksPerSecond) * 1e9;
    if (Number.isNaN(ns)) return withUnit(Math.round(value), unit);
    const size = Math.abs(ns);
    const [scale, name] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${grouped(ns / scale)}${space}${name}`;
}

/// A name without arguments in angle brackets and parentheses. Text after a space is not an argument: `user 2 (thread 1)`.
function withoutArguments(name: string): string {
    if (name.includes("operator")) return name;
    let out = "";
    let depth = 0;
    for (const c of name) {
        if ((c === "<" || c === "(") && (depth > 0 || !out.endsWith(" "))) {
            if (depth++ === 0) out += c + "…";
        } else if ((c === ">" || c === ")") && depth > 0) {
            if (--depth === 0) out += c;
        } else if (depth === 0) out += c;
    }
    return depth === 0 ? out : name;
}

/// A name of at most `most` characters: first without arguments, then without its middle.
export function shortened(name: string, most: number): string {
    if (name.length <= most) return name;
    // A name in brackets is made by Waymark, and a name that consists of arguments only is kept.
    const bare = /^[([<]/.test(name) ? name : withoutArguments(name);
    if (bare.length <= most) return bare;
    if (most < 3) return bare.slice(0, most);
    const front = Math.ceil((most - 1) / 2);
    return bare.slice(0, front) + "…" + bare.slice(bare.length - (most - 1 - front));
}

export function fileName(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1);
}
