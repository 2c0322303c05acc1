/// A canvas with the size of its element and the resolution of the screen.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Size {
    width: number;
    height: number;
}

/// The current size of an element.
export function useSize(element: RefObject<HTMLElement>): Size {
    const [size, setSize] = useState<Size>({ width: 0, height: 0 });
    useEffect(() => {
        const at = element.current;
        if (!at) return;
        const observer = new ResizeObserver(() => setSize({ width: at.clientWidth, height: at.clientHeight }));
        observer.observe(at);
        setSize({ width: at.clientWidth, height: at.clientHeight });
        return () => observer.disconnect();
    }, [element]);
    return size;
}

/// Clears the canvas and returns its context, scaled so that a unit is a CSS pixel.
export function begin(canvas: HTMLCanvasElement, size: Size): CanvasRenderingContext2D | undefined {
    const fine = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(size.width * fine));
    const height = Math.max(1, Math.round(size.height * fine));
    if (canvas.width !== width || canvas.height !== height) {
        canvas.width = width;
        canvas.height = height;
    }
    const context = canvas.getContext("2d") ?? undefined;
    context?.setTransform(fine, 0, 0, fine, 0, 0);
    context?.clearRect(0, 0, size.width, size.height);
    return context;
}

/// Calls `draw` once before the next frame, even if requested several times.
export function useFrame(draw: () => void): () => void {
    const latest = useRef(draw);
    latest.current = draw;
    const asked = useRef(0);
    useEffect(() => () => cancelAnimationFrame(asked.current), []);
    const ask = useRef(() => {
        if (asked.current) return;
        asked.current = requestAnimationFrame(() => {
            asked.current = 0;
            latest.current();
        });
    });
    return ask.current;
}

const widths = new Map<string, number>();

/// Text cut to a width, in a monospaced font.
export function fitting(context: CanvasRenderingContext2D, text: string, width: number, cut: (t: string, n: number) => string): string {
    let letter = widths.get(context.font);
    if (letter === undefined) widths.set(context.font, (letter = context.measureText("mmmmmmmmmm").width / 10));
    const most = Math.floor(width / letter);
    return most < 2 ? "" : cut(text, most);
}

export const canvasFont = '12px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
export const labelFont = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
