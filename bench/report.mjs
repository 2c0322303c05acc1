// node report.mjs WEB CHROMIUM REPORT: measures the time until a report is visible, each frame of its
// timeline, each view after a range was selected, and a step.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [web, executablePath, report] = process.argv.slice(2);
const { chromium } = createRequire(join(resolve(web), "package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const line = (what, value, unit) => console.log(`${what.padEnd(24)} ${value.toFixed(1).padStart(10)} ${unit}`);

let least = Infinity;
for (let i = 0; i < 5; ++i) {
    const page = await browser.newPage();
    await page.goto(pathToFileURL(resolve(report)).href);
    await page.waitForFunction(() => performance.getEntriesByName("waymark-ready").length > 0);
    least = Math.min(least, await page.evaluate(() => performance.getEntriesByName("waymark-ready")[0].duration));
    await page.close();
}
line("ready in", least, "ms");

const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
await page.goto(`${pathToFileURL(resolve(report)).href}#/timeline`);
await page.waitForSelector(".timeline canvas");
line("slices", await page.evaluate(() => Number(document.querySelector(".timeline").getAttribute("aria-label").match(/and (.+) slice/)[1].replace(/\D/g, ""))), "");
const frames = await page.evaluate(async () => {
    const timeline = document.querySelector(".timeline");
    // All drawing happens in this callback, so its time is that of the frame.
    const took = [];
    const ask = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (draw) =>
        ask((now) => {
            const began = performance.now();
            draw(now);
            took.push(performance.now() - began);
        });
    for (let i = 0; i < 100; ++i) {
        const key = i < 30 ? "+" : i < 70 ? "ArrowRight" : "-";
        timeline.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        await new Promise((done) => ask(() => ask(done)));
    }
    return took;
});
line("a frame, on average", frames.reduce((sum, f) => sum + f, 0) / frames.length, "ms");
line("the longest frame", Math.max(...frames), "ms");

// from the selection of a range until the view has drawn the range: the median, the least and the longest of 21 in each view.
const length = await page.evaluate(() => Number(document.querySelector(".range-bar input[name=to]").value));
for (const view of ["timeline", "functions", "calls", "branches", "blocks", "loops", "exceptions", "coverage", "code"]) {
    await page.evaluate((view) => (location.hash = `#/${view}?range=0-${9}`), view);
    await page.waitForSelector(`.view-${view} .range-bar`);
    const took = await page.evaluate(async (length) => {
        const out = [];
        for (let i = 0; i < 22; ++i) {
            const from = Math.floor((length * ((i * 7) % 22)) / 44);
            const to = Math.floor(from + (length * (i + 1)) / 44);
            const began = performance.now();
            location.hash = location.hash.replace(/range=\d+-\d+/, `range=${from}-${to}`);
            while (document.querySelector(".range-bar input[name=from]").value !== String(from)) await new Promise((done) => setTimeout(done));
            // What is drawn before a frame has been drawn at the next one.
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            if (i > 0) out.push(performance.now() - began);
        }
        return out.sort((a, b) => a - b);
    }, length);
    line(`a range, ${view}`, took[10], `ms, ${took[0].toFixed(1)} to ${took[20].toFixed(1)} ms`);
}
await page.evaluate(() => (location.hash = "#/steps"));
await page.waitForSelector(".steps-here");
const steps = await page.evaluate(async () => {
    const out = [];
    const here = () => document.querySelector(".steps-here").dataset.at;
    for (let i = 0; i < 200; ++i) {
        const before = here();
        const began = performance.now();
        document.querySelector(".steps").dispatchEvent(new KeyboardEvent("keydown", { key: i % 3 === 2 ? "ArrowLeft" : "ArrowRight", bubbles: true, cancelable: true }));
        while (here() === before) await new Promise((done) => setTimeout(done));
        out.push(performance.now() - began);
    }
    return out.sort((a, b) => a - b);
});
line("a step", steps[100], `ms, longest ${steps[199].toFixed(1)} ms`);
await browser.close();
