/// Starts the page.
import { render } from "preact";

import { canUnpack } from "./data/decode";
import { Report } from "./data/model";
import "./style.css";
import { App } from "./ui/app";
import { setLinkNames } from "./ui/state";
import { startTheme } from "./ui/theme";

function say(root: HTMLElement, text: string) {
    const message = document.createElement("p");
    message.className = "opening";
    message.setAttribute("role", "alert");
    message.textContent = text;
    root.replaceChildren(message);
}

async function start() {
    const root = document.getElementById("app")!;
    startTheme();
    const element = (part: string) => document.getElementById(`waymark-${part}`);
    if (!element("head")) return say(root, "This page has no data in it: it is what waymark report puts data into.");
    if (!canUnpack())
        return say(root, "This browser cannot unpack the report: it lacks DecompressionStream. Chrome 103, Firefox 113, Safari 16.4 and newer have it.");
    try {
        const report = await Report.open((part) => element(part)?.textContent ?? "");
        setLinkNames({ function: report.head.functions.name, source: report.head.sources, metric: report.head.metrics.map((m) => m.name) });
        root.replaceChildren();
        render(<App report={report} />, root);
        // Time from the start of the navigation to the first picture: performance.getEntriesByName("waymark-ready").
        requestAnimationFrame(() => setTimeout(() => performance.measure("waymark-ready", { start: 0 })));
    } catch (error) {
        say(root, `The data of this report cannot be read: ${error instanceof Error ? error.message : String(error)}. Was the file cut?`);
    }
}

void start();
