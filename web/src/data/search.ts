/// The language of search boxes.

export type Matcher = (text: string) => boolean;

/// All words must occur, in any case and order; /…/ is a regular expression. Empty input: undefined.
export function matcher(query: string): Matcher | undefined {
    const typed = query.trim();
    if (typed === "") return undefined;
    const expression = /^\/(.+)\/$/.exec(typed);
    if (expression) {
        try {
            const compiled = new RegExp(expression[1]!, "i");
            return (text) => compiled.test(text);
        } catch {
            return () => false;
        }
    }
    const words = typed.toLowerCase().split(/\s+/);
    return (text) => {
        const lower = text.toLowerCase();
        return words.every((word) => lower.includes(word));
    };
}

/// The first index whose value is not less than `value`; `values` ascend.
export function lowerBound(values: ArrayLike<number>, value: number, from = 0, to = values.length): number {
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (values[middle]! < value) from = middle + 1;
        else to = middle;
    }
    return from;
}
