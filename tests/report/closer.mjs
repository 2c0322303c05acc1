// node closer.mjs WEB FOLDER CHROMIUM WANTED: compares the figures of FOLDER/closer.html, as read and copied, with
// WANTED's figures (closer_test.py). Prints the program's own functions and their coverage as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [web, folder, executablePath, file] = process.argv.slice(2);
const require = createRequire(join(resolve(web), "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const wanted = JSON.parse(readFileSync(file, "utf8"));

const failures = [];
let checks = 0;
function check(what, good, detail = "") {
    ++checks;
    if (!good) failures.push(`${what}${detail === "" ? "" : `: ${detail}`}`);
}
function equal(what, is, should) {
    if (typeof is === "string" && typeof should === "string") {
        // The first lines that differ say enough.
        const [a, b] = [is.split("\n"), should.split("\n")];
        const at = a.findIndex((line, i) => line !== b[i]);
        check(what, is === should, `${at < 0 ? "nothing more" : a[at]}, not ${b[at < 0 ? a.length : at] ?? "nothing more"}; ${a.length} and ${b.length} lines`);
    } else check(what, is === should, `${is}, not ${should}`);
}

// An event that does not happen within this time never will, on any machine.
const patience = Number(process.env.WM_PATIENCE ?? 600_000);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--js-flags=--single-threaded"], timeout: patience });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
const page = await context.newPage();
page.setDefaultTimeout(patience);
page.on("console", (message) => message.text().includes("willReadFrequently") || check("nothing on the console", false, message.text()));
page.on("pageerror", (error) => check("no error", false, error.stack));
// Copied text is kept here: the clipboard, which is slow, is not needed.
await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void (globalThis.copied = text) } }));
await page.goto(pathToFileURL(join(folder, "closer.html")).href);
await page.waitForSelector("h1");
await page.evaluate(axe);

const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
async function go(hash, selector) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await page.waitForSelector(selector);
    await page.waitForFunction(() => !document.querySelector("main p.empty[role=status]"));
    await frames();
}
/// The rows of a table as it is copied.
async function table(within = "main") {
    await page.evaluate((within) => {
        globalThis.copied = undefined;
        const all = [...document.querySelectorAll(`${within} .table-foot .copy`)];
        all[0]?.click();
    }, within);
    if ((await page.$$(`${within} .table-foot`)).length === 0) return [];
    await page.waitForFunction(() => globalThis.copied !== undefined);
    const [head, ...lines] = (await page.evaluate(() => globalThis.copied)).replace(/\n$/, "").split("\n").map((line) => line.split("\t"));
    return lines.map((line) => Object.fromEntries(head.map((name, i) => [name, line[i]])));
}
async function accessible(where) {
    const found = await page.evaluate(async () => {
        const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
        const result = await globalThis.axe.run(document, { runOnly: rules, resultTypes: ["violations"], iframes: false, preload: false });
        return result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 2).map((n) => `${n.target.join(" ")} (${n.any.map((a) => a.message).join(", ").slice(0, 200)})`).join("; ")}`);
    });
    check(`${where}: accessible`, found.length === 0, found.join("\n      "));
}
const sums = (list, key, value) => list.reduce((all, row) => all.set(row[key], (all.get(row[key]) ?? 0) + Number(row[value] ?? 0)), new Map());
/// By address: a function may have several names. Code without a sized symbol is one row.
const byPlace = (costs) => [...costs].reduce((all, [name, cost]) => all.set(wanted.places[name] ?? "", (all.get(wanted.places[name] ?? "") ?? 0) + cost), new Map());

process.on("uncaughtException", (error) => {
    for (const failure of failures.slice(0, 40)) console.log(`FAILED ${failure}`);
    console.log(`FAILED ${error.stack}`);
    process.exit(1);
});

/// Which of the names of a function the page has.
const functionAt = (place, listed) => Object.keys(wanted.places).find((name) => wanted.places[name] === place && !wanted.doubled.includes(name) && listed.has(name));

// ---- a range through every view
for (const of of wanted.ranges) {
    const range = `${of.from}-${of.to}`;
    await go(`#/functions?range=${range}`, `.view-functions .range-note[data-word]`);
    await page.waitForFunction((from) => document.querySelector(".range-bar input").value === from, String(of.from));
    const functions = await table();
    const self = sums(functions, "Function", "Self");
    const places = byPlace(self);
    for (const [place, count] of Object.entries(of.self)) equal(`${range}: instructions at ${place}`, places.get(place) ?? 0, count);
    equal(`${range}: instructions of all functions`, [...self.values()].reduce((a, b) => a + b, 0), of.to - of.from);
    const total = sums(functions, "Function", "Total");
    for (const [name, length] of Object.entries(of.total)) equal(`${range}: ${name} with what it called`, total.get(name) ?? 0, length);
    const calls = sums(functions, "Function", "Calls");
    for (const [name, times] of Object.entries(of.calls)) equal(`${range}: calls of ${name}`, calls.get(name) ?? 0, times);
}
for (const of of wanted.ranges.slice(0, 5)) {
    const range = `${of.from}-${of.to}`;
    await go(`#/branches?range=${range}`, ".view-branches .range-note[data-word]");
    equal(`${range}: executions of branches`, (await table()).reduce((sum, row) => sum + Number(row.Ran), 0), of.branches);
    await go(`#/loops?range=${range}`, ".view-loops .range-note[data-word]");
    equal(`${range}: iterations of loops`, (await table()).reduce((sum, row) => sum + Number(row.Iterations), 0), of.iterations);
    await go(`#/calls?range=${range}`, ".view-calls .range-note");
    await page.click("text=As a table");
    const places = byPlace(sums(await table(), "Function", "Self"));
    for (const [place, count] of Object.entries(of.self)) equal(`${range}, flame graph: ${place}`, places.get(place) ?? 0, count);
    await go(`#/exceptions?range=${range}`, ".view-exceptions .range-bar");
    equal(`${range}: exceptions`, (await table(".below")).length, of.exceptions);
    await go(`#/blocks?range=${range}`, ".view-blocks .range-note[data-word]");
    const blocks = await table();
    equal(`${range}: blocks`, blocks.map((row) => `${BigInt(row.Block).toString(16)} ${row.Length} ${row.Times}`).sort().join("\n"), of.blocks.join("\n"));
    // Each instruction of a function that ran in it.
    const [hot] = Object.entries(of.self).reduce((a, b) => (b[0] !== "" && b[1] > a[1] ? b : a), ["", 0]);
    await go("#/functions", ".view-functions .table");
    const name = functionAt(hot, new Set((await table()).map((row) => row.Function)));
    await page.fill("[data-search]", `/^${name} /`);
    await page.click(`.table-body .row:has(.name[title="${name}"])`);
    await page.click('.detail a:has-text("Source and code")');
    await page.waitForSelector('section[aria-label="Instructions"] .line');
    await page.evaluate((range) => (location.hash += `&range=${range}`), range);
    await page.waitForSelector(".view-code .range-note[data-word]");
    await page.evaluate(() => (globalThis.copied = undefined));
    await page.click('section[aria-label="Instructions"] .copy');
    await page.waitForFunction(() => globalThis.copied !== undefined);
    const listed = (await page.evaluate(() => globalThis.copied)).trimEnd().split("\n").slice(1).map((line) => line.split("\t"));
    equal(`${range}: instructions of ${name}`, listed.reduce((sum, row) => sum + Number(row[1]), 0), of.self[hot]);
    equal(`${range}: instructions of ${name} that ran`, listed.filter((row) => row[2] === "executed").length, of.covered[hot]);
    check(`${range}: an instruction ran where it is counted`, listed.every((row) => (row[2] === "executed") === (Number(row[1]) > 0)));
    // Coverage of the range.
    await go(`#/coverage?which=functions&own=0&range=${range}`, ".view-coverage .range-note[data-word]");
    const seen = (row) => Number(row.Instructions) - Number(row["Not seen to run"]);
    const covered = await table();
    const byFunction = byPlace(covered.reduce((all, row) => all.set(row.Function, (all.get(row.Function) ?? 0) + seen(row)), new Map()));
    for (const [place, count] of Object.entries(of.covered)) equal(`${range}: covered at ${place}`, byFunction.get(place) ?? 0, count);
    equal(`${range}: covered`, covered.reduce((sum, row) => sum + seen(row), 0), Object.values(of.covered).reduce((a, b) => a + b, 0));
    equal(`${range}: covered in all`, await page.$eval('.coverage-sum [data-of="instructions"]', (d) => Number(d.dataset.ran)), Object.values(of.covered).reduce((a, b) => a + b, 0));
    await page.click('.segments >> text="Files"');
    await frames();
    equal(`${range}: covered in files`, (await table()).reduce((sum, row) => sum + seen(row), 0), Object.values(of.covered).reduce((a, b) => a + b, 0));
    await page.click('.segments >> text="Code not seen"');
    await frames();
    equal(`${range}: code that did not run in it`, (await table()).reduce((sum, row) => sum + Number(row.Instructions), 0), covered.reduce((sum, row) => sum + Number(row["Not seen to run"]), 0));
    await page.click('.segments >> text="Lines"');
    await frames();
    const ran = (await table()).filter((row) => Number(row.Ran) > 0);
    check(`${range}: lines that ran are covered`, ran.every((row) => row.Seen === "executed"), JSON.stringify(ran[0]));
}

// ---- stepping, forth and back, against every instruction in its order
{
    const { addresses, outcomes, events, behind } = wanted.steps;
    await go("#/steps", ".view-steps .steps-here");
    check("all of the run can be stepped through", (await page.textContent(".steps-extent")).startsWith(`All ${addresses.length.toLocaleString("en-US")} instructions`), await page.textContent(".steps-extent"));
    let draw = wanted.seed >>> 0;
    const chance = (below) => {
        draw = (Math.imul(draw, 1664525) + 1013904223) >>> 0;
        return Math.floor((draw / 2 ** 32) * below);
    };
    const hexOf = (text) => "0x" + BigInt(text).toString(16);
    const nextOf = (list, is, at, way) => {
        for (let i = at + way; i >= 0 && i < list.length; i += way) if (is(i)) return i;
        return at;
    };
    // Events directly behind the last instruction have no place of their own.
    const isEvent = new Set(events.filter((e) => e > 0 && e < addresses.length));
    const calls = Object.keys(behind).map(Number);
    const ways = {
        ArrowRight: (at) => Math.min(at + 1, addresses.length - 1),
        ArrowLeft: (at) => Math.max(at - 1, 0),
        a: (at) => nextOf(addresses, (i) => addresses[i] === addresses[at], at, 1),
        A: (at) => nextOf(addresses, (i) => addresses[i] === addresses[at], at, -1),
        e: (at) => nextOf(addresses, (i) => isEvent.has(i), at, 1),
        E: (at) => nextOf(addresses, (i) => isEvent.has(i) || (i === 0 && events.includes(0)), at, -1),
    };
    let at = 0;
    const walk = [];
    const jump = (to) => walk.push(["jump", (at = to)]);
    for (let n = 0; n < (wanted.long ? 10_000 : 200); ++n) {
        if (n % 40 === 0) jump(chance(addresses.length));
        const over = chance(8) === 0 ? calls[chance(calls.length)] : undefined;
        if (over !== undefined) {
            jump(over);
            walk.push(["o", (at = behind[over])]);
        }
        const names = Object.keys(ways);
        const key = names[chance(2) === 0 ? chance(2) : chance(names.length)];
        walk.push([key, (at = ways[key](at))]);
    }
    // All in the page, as fast as possible: each step is drawn before it is read.
    const done = await page.evaluate(async (walk) => {
        const here = () => document.querySelector(".steps-here");
        const steps = document.querySelector(".steps");
        const input = document.querySelector(".steps-at input");
        const out = [];
        const took = [];
        for (const [key, to] of walk) {
            const begin = performance.now();
            if (key === "jump") {
                input.value = String(to);
                input.dispatchEvent(new Event("change", { bubbles: true }));
            } else steps.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
            for (let i = 0; i < 20 && Number(here().dataset.at) !== to; ++i) await new Promise((r) => setTimeout(r));
            took.push(performance.now() - begin);
            out.push([Number(here().dataset.at), here().dataset.address, here().dataset.outcome]);
        }
        took.sort((a, b) => a - b);
        return { out, median: took[took.length >> 1] };
    }, walk);
    done.out.forEach(([place, address, outcome], i) => {
        const [key, to] = walk[i];
        const from = i === 0 ? 0 : walk[i - 1][1];
        equal(`step ${i}, ${key} from ${from}`, place, to);
        if (place === to) {
            equal(`address at ${to}`, hexOf(address), addresses[to]);
            equal(`outcome at ${to}`, outcome, outcomes[to] ?? "");
        }
    });
    console.log(`${walk.length} steps, ${done.median.toFixed(1)} ms a step`);
    await accessible("steps");
    // From a place on the timeline.
    await go("#/timeline", ".view-timeline");
    await page.focus(".view-timeline [data-keys]");
    await page.keyboard.press("n");
    await page.keyboard.press("n");
    await page.click('button:has-text("Step from here")');
    await page.waitForSelector(".view-steps .steps-here");
    check("the timeline leads to steps", /stream=0&step=\d+/.test(await page.evaluate(() => location.hash)));
    // From a loop: its first iteration, and from there the next one.
    await go("#/loops?own=1", ".view-loops .table");
    await page.click(".table-body .row");
    await page.click('a:has-text("Its executions")');
    await page.waitForSelector(".view-steps .steps-here");
    const here = () => page.$eval(".steps-here", (p) => [Number(p.dataset.at), p.dataset.address]);
    const [begins, head] = await here();
    equal("a loop leads to its first iteration", begins, addresses.indexOf(hexOf(head)));
    await page.press(".steps", "a");
    await frames();
    equal("and to the next one", (await here()).join(), [nextOf(addresses, (i) => addresses[i] === hexOf(head), begins, 1), head].join());
    await go("#/steps?address=0x3", ".view-steps .steps-here");
    check("code that did not run is named", /0x0*3 was not executed in the part that can be stepped through/.test(await page.textContent(".view-steps")), await page.textContent(".view-steps"));
}

// ---- single calls: the page and the command say the same
await go("#/functions?range=", ".view-functions .table");
for (const of of wanted.calls) {
    await go("#/functions", ".view-functions .table");
    await page.fill("[data-search]", `/^${of.function} /`);
    await page.click(`.table-body .row:has(.name[title="${of.function}"])`);
    await page.waitForSelector(".singles");
    const press = async (text, on) => {
        const button = page.locator(`.singles button:has-text("${text}")`);
        if (((await button.getAttribute("aria-pressed")) === "true") !== on) await button.click();
    };
    await press("With callees", of.callees);
    await press("With interrupts", of.interrupts);
    await frames();
    const what = `${of.function}${of.callees ? "" : " without callees"}${of.interrupts ? "" : " without interrupts"}`;
    const { durations, histogram } = of.said;
    const figures = await page.$eval(".durations", (d) => d.dataset.figures).catch(() => "");
    equal(`${what}: figures`, figures, durations.whole > 0 ? ["least", "median", "p95", "p99", "most"].map((k) => durations[k]).join() : "");
    const rows = await table(".singles");
    const text = (r, length, begin) => `${r[length]} ${r[begin]} ${r.Bound ?? r.bound} ${r["Called by"] ?? r.caller} ${r["Longer in"] ?? r.longer_in}`;
    equal(`${what}: each call`, rows.map((r) => text(r, "Took", "Began at")).join("\n"), of.rows.map((r) => text(r, "length", "begin")).join("\n"));
    const bars = await page.$$eval(".histogram button", (all) => all.map((b) => [b.dataset.first, Number(b.dataset.calls)]));
    if (bars.length > 1) {
        equal(`${what}: histogram`, JSON.stringify(Object.fromEntries(bars)), JSON.stringify(histogram));
        const bar = bars.findIndex(([, calls]) => calls > 0);
        await page.click(`.histogram button >> nth=${bar}`);
        equal(`${what}: a bar lists its calls`, (await table(".singles")).length, bars[bar][1]);
    }
}
// From the slowest call to the timeline, and on to the next slower and faster ones.
await accessible("single calls");
await page.locator('.singles button:has-text("Slowest on the timeline")').press("Enter");
await page.waitForSelector(".view-timeline .detail .full-name");
const last = wanted.calls[wanted.calls.length - 1].function;
equal("the slowest call is selected", await page.textContent(".detail .full-name"), last);
const took = () => page.$$eval(".detail .facts > div", (all) => all.find((d) => d.firstChild.textContent === "takes").lastChild.textContent);
check("it is the slowest", await page.isDisabled('.detail button:has-text("Next slower")'));
const slowest = await took();
if (!(await page.isDisabled('.detail button:has-text("Next faster")'))) {
    await page.click('.detail button:has-text("Next faster")');
    await frames();
    check("the next faster call is selected", /^2 of /.test(await page.textContent(".detail .links [role=status]")));
    await page.click('.detail button:has-text("Next slower")');
    await frames();
    equal("back to the slowest", await took(), slowest);
}
check("the link has the call", /pick=\d/.test(await page.evaluate(() => location.hash)));

// ---- a view that is still shown does not replace an address that has just changed
await go("#/branches", ".view-branches [data-search]");
await page.evaluate(() => {
    location.hash = "#/summary";
    const box = document.querySelector("[data-search]");
    box.value = "a";
    box.dispatchEvent(new Event("input", { bubbles: true }));
});
await frames();
await frames();
check("the address is the new one", /^#\/summary/.test(await page.evaluate(() => location.hash)));

// ---- selecting: by the mouse, by keys, typed, kept, compared
await go("#/timeline", ".view-timeline canvas");
await page.evaluate(() => (location.hash = "#/timeline?from=0&to=100"));
const hash = () => page.evaluate(() => location.hash);
const range = async () => /range=(\d+)-(\d+)/.exec(await hash())?.slice(1).map(Number);
await go("#/summary", "#health");
await go("#/timeline", ".view-timeline .timeline canvas");
const box = await page.locator(".timeline canvas").boundingBox();
await page.mouse.move(box.x + box.width * 0.4, box.y + 10);
await page.mouse.down();
await page.mouse.move(box.x + box.width * 0.6, box.y + 10, { steps: 4 });
await page.mouse.up();
await page.waitForFunction(() => /range=/.test(location.hash));
const drawn = await range();
check("a drag on the scale selects", drawn[1] - drawn[0] > wanted.instructions * 0.15 && drawn[1] - drawn[0] < wanted.instructions * 0.35, drawn.join());
check("the note says what it is", /exact|at least/.test(await page.textContent(".range-note .chip")));
await accessible("a range on the timeline");
await page.click('.range-bar button:has-text("Keep")');
await page.waitForSelector(".kept li");
await page.fill('.range-bar input[name="from"]', "100");
await page.fill('.range-bar input[name="to"]', "50");
await page.press('.range-bar input[name="to"]', "Enter");
check("a range that is none is refused", /two whole numbers/.test(await page.textContent(".range-bar .wrong")));
await page.fill('.range-bar input[name="to"]', "1,100");
await page.press('.range-bar input[name="to"]', "Enter");
await page.waitForFunction(() => /range=100-1100/.test(location.hash));
await page.goBack();
await page.waitForFunction((was) => location.hash.includes(`range=${was}`), drawn.join("-"));
await page.goForward();
await page.waitForFunction(() => /range=100-1100/.test(location.hash));
await page.click('.nav a:has-text("Functions")');
await page.waitForSelector(".view-functions .kept");
check("the range is kept in other views", (await range()).join() === "100,1100");
const here = sums(await table(), "Function", "Self");
await page.click('.kept button:has-text("Compare")');
await page.waitForFunction(() => /against=/.test(location.hash));
await page.waitForSelector('[role=columnheader]:has-text("Self ±")');
const compared = await table();
for (const row of compared) {
    equal(`compared: ${row.Function} here`, Number(row.Self), here.get(row.Function) ?? 0);
    equal(`compared: difference of ${row.Function}`, Number(row["Self ±"]), Number(row.Self) - Number(row["Self there"]));
}
equal("compared: the other range is whole", compared.reduce((sum, row) => sum + Number(row["Self there"]), 0), drawn[1] - drawn[0]);
await accessible("two ranges");
await page.click('.nav a:has-text("Flame graph")');
await page.waitForSelector(".view-calls #both");
equal("the difference flame graph is of both ranges", (await page.$$eval(".detail .facts dd", (all) => all.map((d) => d.textContent.replace(/\D/g, "")))).slice(0, 2).join(), `${drawn[1] - drawn[0]},1000`);
await accessible("the difference of two ranges");
await page.goBack();
await page.waitForSelector(".view-functions .kept");
const link = await hash();
await page.goto("about:blank");
await page.goto(pathToFileURL(join(folder, "closer.html")).href + link);
await page.waitForSelector('[role=columnheader]:has-text("Self ±")');
check("a link leads to both ranges", true);
await page.evaluate(axe);
await page.click('.range-bar button:has-text("Whole timeline")');
await page.waitForFunction(() => !/range=\d/.test(location.hash));
await go("#/timeline", ".view-timeline .timeline");
await page.focus(".timeline");
await page.keyboard.press("r");
await page.waitForFunction(() => /range=0-/.test(location.hash));
equal("r selects what is seen", (await range()).join(), `0,${wanted.instructions}`);

// ---- coverage
await go("#/coverage?own=0", ".view-coverage .table");
const of = (row, what) => (Number(row[what]) > 0 ? Number(row[`${what} executed`]) / Number(row[what]) : "");
const rowsOf = (list, key) => list.filter((r) => r[key] !== "all").map((r) => [r[key], r.instructions, Number(r["instructions not executed"]) + Number(r["instructions not observed"]), of(r, "lines"), of(r, "directions")].join(" ")).sort().join("\n");
const shown = (list, key) => list.map((r) => [r[key], r.Instructions, r["Not seen to run"], r.Lines ?? "", r.Directions ?? ""].join(" ")).sort().join("\n");
equal("coverage by file", shown(await table(), "File"), rowsOf(wanted.coverage.file, "file"));
const summed = () => page.$$eval(".coverage-sum dd", (all) => Object.fromEntries(all.map((d) => [d.dataset.of, [Number(d.dataset.ran), Number(d.dataset.all)]])));
const all = wanted.coverage.file.find((r) => r.file === "all");
for (const [page_, command] of [["instructions", "instructions"], ["lines", "lines"], ["directions of branches", "directions"]])
    equal(`coverage in all: ${page_}`, (await summed())[page_].join(), [all[`${command} executed`], all[command]].join());
await page.click('.segments >> text="Functions"');
await frames();
equal("coverage by function", shown(await table(), "Function"), rowsOf(wanted.coverage.function, "function"));
await page.click('.segments >> text="Functions not seen"');
await frames();
equal("functions that never ran", (await table()).length, wanted.coverage.function.filter((r) => r["instructions executed"] === "0" && r.function !== "all").length);
await page.click('.segments >> text="Code not seen"');
await frames();
const uncovered = wanted.coverage.uncovered;
equal("code that did not run", (await table()).map((r) => `${r.Instructions} ${r.Seen}`).sort().join("\n"), uncovered.filter((r) => r.what === "code").map((r) => `${r.instructions} ${r.class}`).sort().join("\n"));
await page.click('.segments >> text="Ways not seen"');
await frames();
equal("ways not taken", (await table()).map((r) => `${r.Went} ${r["Other way"]}`).sort().join("\n"), uncovered.filter((r) => r.what !== "code").map((r) => `${r.what} ${r.class}`).sort().join("\n"));
await page.click("text=Only my code");
await page.click('.segments >> text="Lines"');
await frames();
const lines = await table();
check("lines of own code have their source", lines.length > 10 && lines.every((r) => /^interpreter\.c:\d+$|^\w+\.[ch]:\d+$/.test(r.Line)), JSON.stringify(lines[0]));
await page.focus(".table");
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.waitForSelector('.beside section[aria-label="Source"] .line.chosen');
check("the source is beside it", (await page.$$('.beside [aria-label="Source"] .line.with-code')).length > 5);
await accessible("coverage");
const sumsOfOwn = await summed();
await page.click('.segments >> text="Functions"');
await frames();
const names = (await table()).map((r) => r.Function);
console.log(JSON.stringify({ names, sums: sumsOfOwn }));

// ---- disassembly: where branches lead
await go("#/functions", ".view-functions .table");
await page.fill("[data-search]", "/^main /");
await page.click('.table-body .row:has(.name[title="main"])');
await page.click('.detail a:has-text("Source and code")');
await page.waitForSelector('section[aria-label="Instructions"] a.target');
check("a link holds the name of the function", /[?&]function=main(&|$)/.test(await hash()), await hash());
const targets = await page.$$eval('section[aria-label="Instructions"] .line', (all) => all.filter((l) => l.querySelector("a.target")).map((l) => ({ at: l.querySelector(".line-number").textContent, text: l.querySelector("code").textContent, title: l.querySelector("a.target").title, ways: l.querySelector(".ways")?.title ?? "" })));
for (const { at, title, ways } of targets) {
    const [, name, hex] = /^(.*), (0x[0-9a-f]+)$/.exec(title);
    const branch = wanted.branches.find((b) => Number.parseInt(b.address, 16) === Number.parseInt(at, 16));
    check(`the branch at ${at} is known to waymark branches`, branch !== undefined);
    if (!branch) continue;
    equal(`where the branch at ${at} leads`, Number.parseInt(hex, 16), Number.parseInt(branch.target, 16));
    equal(`its name`, (wanted.places[name.replace(/\+0x[0-9a-f]+$/, "")] ?? "").length > 0, true);
    if (branch.kind === "conditional") equal(`how often the branch at ${at} was taken`, ways, `taken ${Number(branch.taken).toLocaleString("en")}, not taken ${Number(branch["not_taken"]).toLocaleString("en")}`);
}
await accessible("disassembly");
await page.click('section[aria-label="Instructions"] a.target');
await page.waitForSelector(".line.goal");
equal("a target is a link", Number.parseInt(await page.textContent(".line.goal .line-number"), 16), Number.parseInt(/0x[0-9a-f]+$/.exec(targets[0].title)[0], 16));

// ---- the first page
await go("#/summary", "#glance");
equal("own code comes first", await page.$eval("#top ~ h3", (h) => h.firstChild.textContent.trim()), "Your code");
const drawnColours = (selector) =>
    page.waitForFunction((selector) => {
        const canvas = document.querySelector(selector);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
        return seen.size > 3;
    }, selector).then(() => true, () => false);
check("a small flame graph", await drawnColours(".small-flame canvas"));
check("a small timeline", await drawnColours(".small-timeline canvas"));
check("links to what is remarkable", (await page.$$(".remarkable a")).length >= 2);
for (const what of ["loop", "branch"]) check(`the ${what} named first is of the program's own code`, (await page.textContent(".remarkable")).includes(`The ${what} of your code `), await page.textContent(".remarkable"));
{
    const text = await page.textContent('.remarkable a:has-text("always went the same way")');
    await page.click('.remarkable a:has-text("always went the same way")');
    await page.waitForSelector(".view-branches .table");
    const own = await table();
    equal("branches of own code that always went the same way", String(own.length), /([\d,]+) of them in your code/.exec(text)?.[1] ?? "");
    check("are conditional, and went one way", own.length > 0 && own.every((r) => r.Kind === "conditional" && (r.Taken === "0" || r.Taken === "1")), JSON.stringify(own[0]));
    await go("#/coverage?which=functions&own=1", ".view-coverage .table");
    const names = new Set((await table()).map((r) => r.Function));
    for (const view of ["branches", "blocks", "loops"]) {
        await go(`#/${view}?own=0`, `.view-${view} .table`);
        const all = await table();
        await page.click("text=Only my code");
        await frames();
        const some = await table();
        check(`${view} of own code only`, some.length > 0 && some.length < all.length && some.every((r) => names.has(r["In function"])), `${some.length} of ${all.length}`);
    }
    await go("#/summary?own=0", ".remarkable");
    await page.click('.remarkable a:has-text("What ran last")');
    await page.waitForSelector(".view-steps .steps-here");
    const last = String(wanted.steps.addresses.length - 1);
    equal("what ran last is the last instruction", await page.getAttribute(".steps-here", "data-at"), last);
    await page.click('[data-step="First or last back"]');
    await page.waitForSelector('.steps-here[data-at="0"]');
    await page.click('[data-step="First or last"]');
    await page.waitForSelector(`.steps-here[data-at="${last}"]`);
    await go("#/exceptions", ".view-exceptions .below");
    const [exception] = await table();
    await page.click(`.view-exceptions .table-body .row:has-text("${exception.Exception}")`);
    await page.waitForFunction(() => /query=/.test(location.hash));
    await frames();
    const each = await table(".below");
    equal("a row of exceptions shows each of them", each.length, Number(exception.Taken));
    check("with the time since the last", each.every((r, i) => r["Since the last"] === (i === 0 ? "" : String(Number(r.At) - Number(each[i - 1].At)))), JSON.stringify(each[1]));
    check("and the function that ran", each.some((r) => wanted.places[r["Taken in"]] !== undefined), JSON.stringify(each[0]));
    for (const view of ["functions", "coverage", "coverage?which=lines", "coverage?which=never", "coverage?which=ways", "branches", "blocks", "loops", "exceptions"]) {
        await go(`#/${view}`, `.view-${view.split("?")[0]} .table`);
        const [wide, room] = await page.$eval(".table", (t) => [t.scrollWidth, t.clientWidth]);
        check(`${view}: all columns are in view`, wide <= room, `${wide} of ${room}`);
    }
    await go("#/summary", "#glance");
}
await accessible("summary");
await page.locator(".small-flame").press("Enter");
await page.waitForSelector(".view-calls .flame");

// ---- code of headers in own functions
await page.goto(pathToFileURL(join(folder, "headers.html")).href);
await page.waitForSelector("h1");
await go("#/coverage", ".view-coverage .table");
equal("files of own code", (await table()).map((r) => r.File).join(), "headers.cc");
check("and headers are named beside them", /Your code includes code of \d+ library headers?:/.test(await page.textContent(".view-coverage")));
await go("#/coverage?which=lines", ".view-coverage .table");
check("lines of own code", (await table()).every((r) => r.Line.startsWith("headers.cc:")), JSON.stringify(await table()));
await go("#/coverage?own=0", ".view-coverage .table");
check("files of all code", (await table()).some((r) => r.File === "stl_vector.h" || r.File === "vector.tcc"), JSON.stringify(await table()));

// ---- another capture beside it
await page.goto(pathToFileURL(join(folder, "against.html")).href);
await page.waitForSelector("h1");
await page.evaluate(axe);
const grew = wanted.difference.reduce((a, b) => (Number(b.after) - Number(b.before) > Number(a.after) - Number(a.before) ? b : a));
check("the first page says what grew most", (await page.textContent('.remarkable a[href^="#/against"]')).includes(`${grew.function} grew most, by ${(Number(grew.after) - Number(grew.before)).toLocaleString("en-US")}`), await page.textContent(".remarkable"));
await page.click('.nav a:has-text("Difference")');
await page.waitForSelector(".view-against .table");
check("the threshold that is exceeded", /grew by more than 1%/.test(await page.textContent(".view-against .findings")), await page.textContent(".view-against .findings"));
const difference = wanted.difference;
const change = (r) => Number(r.after) - Number(r.before);
const changed = (list, names) => list.map((r) => names.map((n) => r[n] || "0").join(" ")).sort().join("\n");
equal("what changed", changed(await table(), ["Function", "Before", "After", "Change", "Calls before", "Calls after"]),
    changed(difference, ["function", "before", "after", "change", "calls_before", "calls_after"]));
{
    // The rows that cost nothing on either side are neither new nor in a colour.
    await page.fill("[data-search]", "[exception");
    await frames();
    const nothing = await page.$$eval(".table-body .row", (all) => all.map((r) => [...r.children].map((c) => c.textContent)).filter((r) => r[1] === "0" && r[2] === "0").map((r) => r[4]));
    check("exceptions on both sides", nothing.length > 0);
    equal("what costs nothing on both sides is not new", nothing.join(), nothing.map(() => "–").join());
    equal("no change has no colour", (await page.$$eval(".table-body .row b", (all) => all.filter((b) => b.textContent === "0" && b.className !== ""))).length, 0);
    await page.fill("[data-search]", "");
    await frames();
}
equal("the first row changed most", Math.abs(Number((await table())[0].Change)), Math.max(...difference.map((r) => Math.abs(change(r)))));
for (const [word, is] of [["New", (r) => r.before === "0" && r.after !== "0"], ["Gone", (r) => r.after === "0" && r.before !== "0"], ["Grown", (r) => change(r) > 0], ["Shrunk", (r) => change(r) < 0]]) {
    const text = await page.textContent(`.segments button:has-text("${word}")`);
    await page.click(`.segments button:has-text("${word}")`);
    await frames();
    equal(`${word} functions`, (await table()).map((r) => r.Function).sort().join(), difference.filter(is).map((r) => r.function).sort().join());
    equal(`the button counts ${word}`, text, `${word} ${difference.filter(is).length}`);
}
const [was, now] = await page.$eval(".against-sum", (s) => [Number(s.dataset.before), Number(s.dataset.after)]);
equal("all before", was, difference.reduce((sum, r) => sum + Number(r.before), 0));
equal("all after", now, difference.reduce((sum, r) => sum + Number(r.after), 0));
check("the difference flame graph is drawn", await drawnColours(".flame canvas"));
const facts = () => page.$$eval(".detail .facts dd", (all) => all.map((d) => d.textContent.replace(/\D/g, "")));
equal("its root is all", (await facts()).slice(0, 2).join(), [was, now].join());
await page.focus(".flame");
await page.keyboard.press("ArrowDown");
await frames();
check("its calls can be walked by keys", (await page.textContent(".detail .full-name")) !== "all");
await page.click('.segments button:has-text("As wide as before")');
await page.waitForFunction(() => /way=before/.test(location.hash));
await accessible("the difference");
await page.emulateMedia({ colorScheme: "dark" });
await frames();
await accessible("the difference, dark");
await page.emulateMedia({ colorScheme: "light" });
for (const width of [390, 800]) {
    await page.setViewportSize({ width, height: 844 });
    await frames();
    check(`the difference at ${width}: as wide as the screen`, (await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
}
await page.goto(pathToFileURL(join(folder, "closer.html")).href);
await page.waitForSelector("h1");

// ---- threads: their names, the next match of a search, and all as one
{
    await page.goto(pathToFileURL(join(folder, "threads.html")).href);
    await page.waitForSelector("h1");
    await page.evaluate(axe);
    await go("#/timeline", ".view-timeline .timeline");
    const named = await page.$$eval('.choice:has-text("Track") option', (all) => all.map((o) => o.textContent.split(" · ")[1]).filter(Boolean));
    equal("threads are called by the functions that they began in", named.sort().join(" "), "main work work");
    const note = (text) => page.waitForFunction((text) => document.querySelector(".search-note").textContent.trim() === text, text);
    await page.fill("[data-search]", "leaf");
    await note("180 slices");
    const before = await page.$eval("#timeline-seen", (s) => `${s.dataset.from} ${s.dataset.to}`);
    await page.fill("[data-search]", "parse > leaf");
    await note("120 slices");
    equal("typing does not move the timeline", await page.$eval("#timeline-seen", (s) => `${s.dataset.from} ${s.dataset.to}`), before);
    const picks = [];
    for (let n = 1; n <= 120; ++n) {
        await page.press("[data-search]", "Enter");
        await note(`${n} of 120 slices`);
        picks.push(await page.evaluate(() => /pick=([^&]*)/.exec(location.hash)?.[1].split("%3A").map(Number)));
    }
    check("the next match is another one", new Set(picks.map(String)).size === 120);
    check("and begins no earlier", picks.every((p, i) => i === 0 || picks[i - 1][1] <= p[1]));
    await page.press("[data-search]", "Enter");
    await note("1 of 120 slices");
    await page.press("[data-search]", "Shift+Enter");
    await note("120 of 120 slices");
    await page.click('button[aria-label="Previous match"]');
    await note("119 of 120 slices");
    await accessible("the timeline with matches");
    // A link to a slice of the last track.
    const down = picks.reduce((a, b) => (b[0] > a[0] ? b : a));
    await go("#/summary", "#glance");
    await page.setViewportSize({ width: 1280, height: 500 });
    await go(`#/timeline?pick=${down.join("%3A")}`, ".view-timeline .detail");
    const [scrolled, most] = await page.$eval(".timeline", (t) => [t.scrollTop, t.scrollHeight - t.clientHeight]);
    check("a link leads to the track of its slice", most > 0 && scrolled > 0, `${scrolled} of ${most}`);
    await page.setViewportSize({ width: 1280, height: 900 });
    await go("#/functions", ".view-functions .table");
    await page.fill("[data-search]", "/^leaf /");
    await page.click('.table-body .row:has(.name[title="leaf"])');
    await page.waitForSelector(".singles .table");
    const single = sums((await table(".singles")).map((r) => ({ ...r, one: 1 })), "Track", "one");
    equal("single calls by thread", [...single.values()].join(), "60,60,60");
    await go("#/steps", ".view-steps .steps-here");
    const sources = await page.$$eval('.choice:has-text("Source") option', (all) => all.map((o) => o.textContent.split(" · ")[1]));
    equal("steps name threads as the timeline does", sources.sort().join(" "), "main work work");
    await go("#/calls", ".view-calls .flame");
    check("stripes have a legend", (await page.textContent('[aria-label="Stripes"]')).includes("caller unknown"));
    await page.click("text=As a table");
    const threads = (await table()).map((r) => r.Function.split(" · ")[1]).filter(Boolean);
    equal("and so does the flame graph", threads.sort().join(" "), "main work work");
    await page.click("text=As a table");
    await go("#/calls?which=merged", ".view-calls");
    await page.click("text=As a table");
    const tree = await table();
    const calls = sums(tree, "Function", "Calls");
    for (const [name, times] of Object.entries({ parse: 60, show: 60, leaf: 180 })) equal(`calls of ${name} in all threads`, calls.get(name), times);
    // Costs of main itself, and of the functions that began threads.
    equal("places of parse", tree.filter((row) => row.Function === "parse").length, 2);
    await page.click("text=As a table");
    await page.fill("[data-search]", "show");
    await page.press("[data-search]", "Enter");
    equal("the match that took most", await page.textContent(".detail .full-name"), "show");
    await accessible("the flame graph of all threads");
}

// ---- threads in time: timestamps align them, and without any the page says that nothing does
{
    const tracks = async () => {
        await go("#/timeline", ".view-timeline .timeline");
        await page.click("text=As a table");
        await page.evaluate(() => {
            globalThis.copied = undefined;
            [...document.querySelectorAll("main .table-foot .copy")].at(-1).click();
        });
        await page.waitForFunction(() => globalThis.copied !== undefined);
        const rows = (await page.evaluate(() => globalThis.copied)).trimEnd().split("\n").slice(1).map((line) => line.split("\t"));
        const begins = new Map();
        for (const [begin, , , , track] of rows) begins.set(track, Math.min(begins.get(track) ?? Infinity, Number(begin)));
        const created = rows.filter(([, , name, , track]) => /^_*pthread_create/.test(name) && / main$/.test(track)).map(([begin]) => Number(begin));
        return { begins, created: created.sort((a, b) => a - b) };
    };
    const apart = await tracks();
    check("without timestamps, each thread begins at zero", apart.begins.size === 3 && [...apart.begins.values()].every((begin) => begin === 0), JSON.stringify([...apart.begins]));
    check("and the page says that they are not aligned", /no common clock: the same position in two of them is not the same moment/.test(await page.textContent("main")));
    await page.goto(pathToFileURL(join(folder, "threads-timed.html")).href);
    await page.waitForSelector("h1");
    const aligned = await tracks();
    const workers = [...aligned.begins].filter(([track]) => / work$/.test(track)).map(([, begin]) => begin).sort((a, b) => a - b);
    equal("two threads besides main, which created them", `${aligned.begins.size} ${workers.length}`, "3 2");
    check("with timestamps, threads begin after main created them", aligned.created.length >= 2 && workers.every((begin, i) => begin >= aligned.created[i]), `${workers} and ${aligned.created}`);
    check("and nothing says that they are not aligned", !/no common clock/.test(await page.textContent("main")));
}

await page.goto(pathToFileURL(join(folder, "closer.html")).href);
await page.waitForSelector("h1");

// ---- a report of a window
{
    const [begin, end, self] = wanted.window;
    await page.goto(pathToFileURL(join(folder, "window.html")).href);
    await page.waitForSelector("h1");
    await go(`#/functions?range=0-${end - begin}`, ".view-functions .range-note[data-word]");
    const places = byPlace(sums(await table(), "Function", "Self"));
    for (const [place, count] of Object.entries(self)) equal(`window ${begin}..${end}: instructions at ${place}`, places.get(place) ?? 0, count);
    await go("#/steps", ".view-steps .steps-here");
    const extent = await page.textContent(".steps-extent");
    check("the window can be stepped through", /^\s*All [\d,]+ instructions .* in the window of this report .*Instruction 0 is number/s.test(extent), extent);
    await page.keyboard.press("Home");
    const first = Number(/number ([\d,]+) of the source/.exec(extent)?.[1].replaceAll(",", ""));
    equal("the first step of the window", "0x" + BigInt(await page.getAttribute(".steps-here", "data-address")).toString(16), wanted.steps.addresses[first]);
    await page.goto(pathToFileURL(join(folder, "closer.html")).href);
    await page.waitForSelector("h1");
    await page.evaluate(axe);
}

// ---- narrow screens
for (const width of [390, 800])
    for (const view of ["timeline?range=10-200&ranges=10-200_300-400", "functions?range=10-200&ranges=10-200_300-400&against=300-400&function=0", "coverage?which=lines"]) {
        await page.setViewportSize({ width, height: 844 });
        await go(`#/${view}`, `.view-${view.split("?")[0]} h1`);
        await frames();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        check(`${view} at ${width}: as wide as the screen`, wide <= width, `${wide}`);
    }
await browser.close();
for (const failure of failures.slice(0, 40)) console.log(`FAILED ${failure}`);
console.log(`${checks} checks, ${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
