// node serve.mjs WEB CHROMIUM URL LAST: the page that `waymark serve` sends, in a browser. LAST: the number of instructions.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [web, executablePath, url, last] = process.argv.slice(2);
const require = createRequire(join(resolve(web), "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const failures = [];
let checks = 0;
function check(what, good, detail = "") {
    ++checks;
    if (!good) failures.push(`${what}${detail === "" ? "" : `: ${detail}`}`);
}
const patience = Number(process.env.WM_PATIENCE ?? 600_000);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--js-flags=--single-threaded"], timeout: patience });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
const page = await context.newPage();
page.setDefaultTimeout(patience);
page.on("console", (message) => message.text().includes("willReadFrequently") || check("nothing on the console", false, message.text()));
page.on("pageerror", (error) => check("no error", false, error.stack));
// Nothing but the server is asked.
page.on("request", (request) => check("only the server is asked", request.url().startsWith(url) || request.url().startsWith("data:"), request.url()));

const bar = () => page.waitForSelector("form.served");
const said = async () => (await page.textContent("form.served .range-name")).trim();
const window_ = () => page.evaluate(() => location.search);
const grouped = (n) => Number(n).toLocaleString("en-US");

await page.goto(url);
await bar();
check("the page is of the run", /^(Whole run|Beginning of the run)$/.test(await said()), await said());
await page.waitForFunction(() => /instructions in all/.test(document.querySelector("form.served [role=status]").textContent));
const status = await page.textContent("form.served [role=status]");
check("how many instructions there are", status.includes(grouped(last)), status);
await page.evaluate(axe);
const wrong = await page.evaluate(async () => (await globalThis.axe.run("form.served")).violations.map((v) => `${v.id}: ${v.help}`));
check("axe has nothing to say of the bar", wrong.length === 0, wrong.join("; "));

// A window that is typed, with the keyboard alone.
await page.fill("[name=window-from]", "2000");
await page.fill("[name=window-to]", "1000");
await page.press("[name=window-to]", "Enter");
check("a window that ends before it begins", (await page.textContent("form.served .wrong")).includes("smaller one first"));
await page.fill("[name=window-from]", "2,000");
await page.fill("[name=window-to]", "3000");
await Promise.all([page.waitForNavigation(), page.press("[name=window-to]", "Enter")]);
await bar();
check("the address has the window", (await window_()) === "?from=2000&to=3000", await window_());
check("the page is of the window", (await said()) === "Window: instructions 2,000 to 3,000", await said());
await Promise.all([page.waitForNavigation(), page.click("form.served >> text=Later")]);
await bar();
check("later", (await window_()) === "?from=3000&to=4000", await window_());
await Promise.all([page.waitForNavigation(), page.click("form.served >> text=Earlier")]);
await bar();
check("earlier", (await window_()) === "?from=2000&to=3000", await window_());
await Promise.all([page.waitForNavigation(), page.click("form.served >> text=Wider")]);
await bar();
check("wider", (await window_()) === "?from=500&to=4500", await window_());

// A range of the timeline.
await page.evaluate(() => (location.hash = "#/timeline"));
await page.waitForSelector("form.range-bar [name=from]");
await page.fill("form.range-bar:not(.served) [name=from]", "100");
await page.fill("form.range-bar:not(.served) [name=to]", "900");
await page.press("form.range-bar:not(.served) [name=to]", "Enter");
await Promise.all([page.waitForNavigation(), page.click("form.served >> text=Selected range, each call")]);
await bar();
check("the range as a window", (await window_()).startsWith("?from=600&to=1400"), await window_());
await page.evaluate(() => (location.hash = "#/steps"));
await page.waitForSelector(".steps-here");
check("the window can be stepped through", await page.$eval(".steps-here", (row) => row.hasAttribute("data-address")));
await Promise.all([page.waitForNavigation(), page.click("form.served >> text=Whole run")]);
await bar();
check("back to the run", (await window_()) === "" && (await said()) !== "", await window_());

await browser.close();
console.log(`${checks} checks of the page, ${failures.length} failures`);
for (const failure of failures) console.log(`FAILED: ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);
