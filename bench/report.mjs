// node report.mjs WEB CHROMIUM REPORT: measures the time until a report is visible, and each frame of its timeline.
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
await browser.close();
