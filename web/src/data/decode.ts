/// Converts the text in the page into columns.
import type { AddressColumn } from "./wire";

/// The inverse of src/report/pack.cc: base64 of deflated JSON.
export async function unpack<T>(text: string): Promise<T> {
    const binary = atob(text.trim());
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(plain).text()) as T;
}

/// Whether this browser can inflate.
export function canUnpack(): boolean {
    return typeof DecompressionStream === "function";
}

/// Running sums of a column of differences.
export function sums(differences: readonly number[]): Float64Array {
    const out = new Float64Array(differences.length);
    let at = 0;
    for (let i = 0; i < out.length; ++i) out[i] = at += differences[i]!;
    return out;
}

export function addresses(column: AddressColumn): BigUint64Array {
    const out = new BigUint64Array(column.length);
    let at = 0n;
    for (let i = 0; i < out.length; ++i) {
        const step = column[i]!;
        at = typeof step === "string" ? BigInt("0x" + step) : at + BigInt(step);
        out[i] = at;
    }
    return out;
}
