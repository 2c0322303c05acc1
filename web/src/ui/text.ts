/// Formats numbers and names for people.

const thin = "\u202f";

/// 12345678 → 12 345 678, with thin spaces.
export function grouped(value: number): string {
    if (!Number.isFinite(value)) return "–";
    const rounded = Math.abs(value) >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(value < 1 ? 3 : 1);
    const [whole = "", part] = rounded.split(".");
    const spaced = whole.replace(/\B(?=(\d{3})+$)/g, thin);
    return part === undefined ? spaced : `${spaced}.${part}`;
}

/// 12345678 → 12.3 M
export function short(value: number): string {
    const size = Math.abs(value);
    for (const [limit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]] as const)
        if (size >= limit) {
            const scaled = value / (letter === "k" ? 1e3 : limit);
            return `${scaled.toFixed(scaled < 100 ? 1 : 0)}${thin}${letter}`;
        }
    return grouped(value);
}

export function percent(part: number, whole: number): string {
    if (!(whole > 0)) return "–";
    const share = (100 * part) / whole;
    if (part > 0 && share < 0.05) return `<${thin}0.1${thin}%`;
    // Only exactly everything is 100 %.
    if (part < whole && share >= 99.95) return `>${thin}99.9${thin}%`;
    return `${share.toFixed(1)}${thin}%`;
}

export function hex(address: bigint): string {
    return "0x" + address.toString(16).padStart(address > 0xffffffffn ? 12 : 8, "0");
}

/// `1 slice`, `2 345 slices`.
export function counted(count: number, one: string, many = one + "s"): string {
    return `${grouped(count)} ${count === 1 ? one : many}`;
}

/// Singular units are unchanged; `instructions` becomes `instruction` for a count of one.
export function withUnit(value: number, unit: string): string {
    const word = value === 1 && unit.endsWith("s") && unit !== "ns" ? unit.slice(0, -1) : unit;
    return `${grouped(value)}${unit === "" ? "" : "\u00a0" + word}`;
}

/// A time since the start of a capture.
export function timeText(value: number, unit: string, ticksPerSecond = 0): string {
    let ns = NaN;
    if (unit === "ns") ns = value;
    else if (ticksPerSecond > 0) ns = (value / ticksPerSecond) * 1e9;
    if (Number.isNaN(ns)) return withUnit(Math.round(value), unit);
    const size = Math.abs(ns);
    const [scale, name] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${grouped(Number((ns / scale).toPrecision(5)))}\u00a0${name}`;
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
