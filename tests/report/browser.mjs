// node browser.mjs WEB FOLDER CHROMIUM
//
// Opens every FOLDER/*.html in Chromium from disk, at three widths and the widest in both themes, and does in it what people do:
// search, sort, zoom, walk by keys, follow links, copy, change the theme. Nothing may be asked of a network, nothing be
// said on the console, no text be without contrast or name. With WM_KEEP_REPORTS set, pictures of what recordings show are
// in FOLDER/pictures. Playwright and axe are those of WEB.
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [web, folder, executablePath] = process.argv.slice(2);
const require = createRequire(join(resolve(web), "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const mostBytes = 10_000_000;
mkdirSync(join(folder, "pictures"), { recursive: true });
const failures = [];
let checks = 0;

function check(what, good, detail = "") {
    ++checks;
    if (!good) failures.push(`${what}${detail === "" ? "" : `: ${detail}`}`);
}

// An event that does not happen within this time never will, on any machine. Every awaited event must happen.
const patience = 600_000;
const keepPictures = process.env.WM_KEEP_REPORTS !== undefined;
/// The browser for each report. Each has a separate clipboard.
const browserOf = new Map();
/// Idle pages of a report: making a page takes longer than opening a report.
const idle = new Map();

/// A page of the browser, which fails on forbidden actions such as network requests.
async function newPage(name) {
    if (!idle.has(name)) {
        const context = await browserOf.get(name).newContext({ permissions: ["clipboard-read", "clipboard-write"] });
        idle.set(name, { context, pages: [] });
    }
    const page = await idle.get(name).context.newPage();
    page.setDefaultTimeout(patience);
    const where = { toString: () => `${name} at ${page.viewportSize().width}` };
    page.on("console", (message) => {
        // This test reads pixels again and again, the page never does: Chromium's advice concerns the test.
        if (message.text().includes("willReadFrequently")) return;
        check(`${where}: nothing on the console`, false, message.text());
    });
    page.on("pageerror", (error) => check(`${where}: no error`, false, error.stack));
    page.on("request", (request) => {
        if (!/^(file|data|blob|about):/.test(request.url())) check(`${where}: no request`, false, request.url());
    });
    return { page, where };
}

/// A page with a report, as if it was opened for the first time.
async function open(name, { width, height = 900, colorScheme = "light", reducedMotion = "reduce" }, hash = "") {
    const used = idle.get(name)?.pages.pop();
    const { page, where } = used ?? (await newPage(name));
    if (used) {
        await page.evaluate(() => (localStorage.clear(), sessionStorage.clear()));
        await page.goto("about:blank");
    }
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion });
    await page.goto(pathToFileURL(join(folder, `${name}.html`)).href + hash);
    await page.waitForSelector("h1");
    await page.waitForFunction(() => performance.getEntriesByName("waymark-ready").length > 0);
    const took = await page.evaluate(() => Math.round(performance.getEntriesByName("waymark-ready")[0].duration));
    return { page, where, took, close: () => void idle.get(name).pages.push({ page, where }) };
}

async function views(page) {
    return page.$$eval(".nav li a", (all) => all.map((a) => a.getAttribute("href").replace("#/", "")));
}

async function go(page, view) {
    await page.evaluate((v) => (location.hash = `#/${v}`), view);
    await page.waitForFunction((v) => document.querySelector(`.view-${v} h1`), view);
    // Parts are unpacked when their view is opened.
    await page.waitForFunction(() => !document.querySelector("main p.empty[role=status]"));
}

const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

async function accessible(page, where, runOnly = rules) {
    const found = await page.evaluate(async (rules) => {
        const result = await globalThis.axe.run(document, { runOnly: rules, resultTypes: ["violations"], iframes: false, preload: false });
        return result.violations.map((v) => `${v.id}, ${v.impact}: ${v.nodes.slice(0, 2).map((n) => `${n.target.join(" ")} (${n.any.map((a) => a.message).join(", ").slice(0, 200)})`).join("; ")}`);
    }, runOnly);
    check(`${where}: accessible`, found.length === 0, found.join("\n      "));
}

const widths = [390, 820, 1440];
const themes = ["light", "dark"];

/// The required contents of a report of each unit, for any capture.
const present = {
    ptm: ["summary", "calls", "timeline", "steps", "functions", "code", "coverage", "branches", "blocks", "loops", "exceptions"],
    corpus: ["summary", "calls", "timeline", "steps", "functions", "code", "coverage", "branches", "blocks", "loops"],
    sort: ["summary", "calls", "timeline", "steps", "functions", "code", "coverage", "branches", "blocks", "loops"],
    spe: ["summary", "timeline", "functions", "code", "branches", "charts", "tables"],
    dpu: ["summary", "calls", "timeline", "functions", "exceptions", "tables"],
};

/// Axe takes longer than all else, and a view is the same component in each report. In the first report that has the view,
/// axe looks at a narrow and a wide page, and at the contrast of the dark theme; in others at the wide page alone, for what
/// other data may show. Pictures are for people, so with them it looks at everything.
const thoroughly = (name, view) => keepPictures || Object.keys(present).find((of) => names.includes(of) && present[of].includes(view)) === name;

/// Each view in all widths and themes: changes the size and theme of the open page.
async function lookAtAll(name, allWidths, allThemes, { axeToo = true, pictures = true } = {}) {
    const { page, where, took, close } = await open(name, { width: 1440 });
    if (axeToo) await page.evaluate(axe);
    const there = await views(page);
    for (const view of present[name] ?? []) check(`${where}: ${view} is there`, there.includes(view), there.join());
    let theme = "light"; // as it was opened
    for (const view of there) {
        await go(page, view);
        for (const width of allWidths) {
            await page.setViewportSize({ width, height: width < 500 ? 844 : 900 });
            // A theme has colours and nothing else (web/src/style.css): one width shows all of the second.
            const widest = width === Math.max(...allWidths);
            for (const colorScheme of keepPictures || widest ? allThemes : allThemes.slice(0, 1)) {
                if (colorScheme !== theme) {
                    await page.emulateMedia({ colorScheme });
                    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
                    theme = colorScheme;
                }
                await drawn(page);
                const at = `${where} ${colorScheme}, ${view}`;
                const { wide, current, empty } = await page.evaluate(() => {
                    const { left, right } = document.querySelector(".nav [aria-current]").getBoundingClientRect();
                    const parts = [...document.querySelectorAll("main section, main figure, main canvas")];
                    return {
                        wide: document.documentElement.scrollWidth,
                        current: [left, right],
                        empty: parts.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 4).map((e) => e.className),
                    };
                });
                check(`${at}: as wide as the screen`, wide <= width, `${wide} of ${width}`);
                check(`${at}: its name is in sight`, current[0] >= 0 && current[1] <= width, current.join());
                check(`${at}: nothing is empty`, empty.length === 0, empty.join());
                // Axe takes longer than all else. Contrast alone depends on the theme.
                const looked = thoroughly(name, view) ? keepPictures || width !== 820 : widest && colorScheme === "light";
                if (axeToo && looked) await accessible(page, at, colorScheme === "dark" ? { type: "rule", values: ["color-contrast"] } : rules);
                if (pictures && keepPictures) await page.screenshot({ path: join(folder, "pictures", `${name}-${view}-${width}-${colorScheme}.png`), fullPage: true });
            }
        }
    }
    check(`${where}: no script from data`, !(await page.evaluate(() => globalThis.harmed)));
    await close();
    return took;
}

/// Whether a canvas comes to show more than this number of colours.
const colorful = (page, selector, least) =>
    page.waitForFunction(([selector, least]) => {
        const canvas = document.querySelector(selector);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const seen = new Set();
        for (let i = 0; i < data.length && seen.size <= least; i += 4 * 7) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
        return seen.size > least;
    }, [selector, least]).then(() => true, () => false);

/// Everything drawn before the next frame, or at once after a key, has happened.
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/// The page has finished its reaction: it draws, reports the visible range, and keeps it in the address after 120
/// (timeline.tsx) or 250 ms (calls.tsx). A timer that begins later and is longer ends later.
async function settled(page) {
    await drawn(page);
    await drawn(page);
    await page.evaluate(() => new Promise((done) => setTimeout(done, 300)));
    await drawn(page);
}

/// Clicks on a copy button. It confirms for 1.6 seconds: waiting begins before the click.
const copy = (page, button, said) => Promise.all([page.waitForSelector(said), page.click(button)]);

async function interact(name) {
    const { page, where, close } = await open(name, { width: 1280 });
    const there = await views(page);
    const is = (what, good, detail) => check(`${where}: ${what}`, good, detail);

    // Health comes first, the most severe finding before the others.
    const order = ["bad", "warning", "note", "good"];
    const health = await page.$$eval(".finding", (all) => all.map((f) => f.className.split(" ")[1]));
    is("the worst first", health.every((s, i) => i === 0 || order.indexOf(s) >= order.indexOf(health[i - 1])), health.join());
    is("health first", (await page.$eval("main h2", (h) => h.id)) === "health");

    // Keys: the theme, help, views by number, search.
    await page.keyboard.press("t");
    is("t makes it dark", (await page.$eval("html", (h) => h.dataset.theme)) === "dark");
    await page.keyboard.press("t");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog[open]", { state: "detached" });
    await page.keyboard.press("2");
    await page.waitForSelector(`.view-${there[1]}`);
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
        const at = document.activeElement;
        return { element: at.tagName, visible: at.matches(":focus-visible") && parseFloat(getComputedStyle(at).outlineWidth) >= 2 };
    });
    is("Tab goes on, and focus is seen", focus.element !== "BODY" && focus.visible, JSON.stringify(focus));

    if (there.includes("functions")) {
        await go(page, "functions");
        const rows = () => page.getAttribute(".table", "aria-rowcount").then(Number);
        const all = await rows();
        const sought = await page.$eval(".table-body .row .name", (n) => n.title);
        // In a search box, the slash key types a slash.
        await page.evaluate(() => document.activeElement.blur());
        await page.keyboard.press("/");
        await page.keyboard.insertText(sought);
        await page.waitForFunction((n) => Number(document.querySelector(".table").getAttribute("aria-rowcount")) < n || n <= 2, all);
        const found = await page.$$eval(".table-body .name", (c) => c.map((n) => n.title));
        is("search finds", found.includes(sought), `${sought} in ${found.join(" | ")}`);
        await page.keyboard.press("Control+a");
        await page.keyboard.insertText("no function is called so");
        await page.waitForSelector(".table .empty");
        await page.keyboard.press("Escape");
        await page.waitForFunction((n) => Number(document.querySelector(".table").getAttribute("aria-rowcount")) === n, all);
        const names = () => page.$$eval(".table-body .row .name", (c) => c.slice(0, 8).map((n) => n.title));
        const sorted = () => page.$$eval('[role="columnheader"]', (all) => all.filter((h) => h.getAttribute("aria-sort") !== "none").map((h) => `${h.textContent.replace(/[▲▼]/, "")} ${h.getAttribute("aria-sort")}`).join());
        is("sorted by cost first", /^Self descending$/.test(await sorted()), await sorted());
        await page.click('.table-head button:has-text("Function")');
        is("aria-sort says ascending", (await sorted()) === "Function ascending", await sorted());
        const up = await names();
        is("sorts up", up.every((n, i) => i === 0 || up[i - 1] <= n), up.join(" | "));
        await page.click('.table-head button:has-text("Function")');
        is("aria-sort says descending", (await sorted()) === "Function descending", await sorted());
        const down = await names();
        is("sorts down", down.every((n, i) => i === 0 || down[i - 1] >= n), down.join(" | "));
        await page.focus(".table");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await page.waitForSelector(".detail .full-name");
        is("Enter opens a row", (await page.textContent(".detail .full-name")) === (down[1] ?? down[0]));
        const copied = () => page.evaluate(() => navigator.clipboard.readText());
        await copy(page, '.table-foot >> text="Copy as text"', '.table-foot >> text="Copied"');
        const text = (await copied()).trimEnd().split("\n");
        is("a table is copied whole and in order", text.length === all && text[1].startsWith(`${down[0]}\t`), `${text.length} of ${all} lines; ${text[1]}`);
        await copy(page, '.detail >> text="Copy the name"', '.detail >> text="Copied"');
        is("a name is copied", (await copied()).length > 0);
        if (there.includes("code") && (await page.$('.detail a:has-text("Source and code")'))) {
            const opened = await page.textContent(".detail .full-name");
            await page.click('.detail a:has-text("Source and code")');
            await page.waitForSelector(".view-code .code-pane h2");
            is("a function's code is opened", (await page.$eval(".code-pane:last-of-type h2", (h) => h.title)) === opened);
            await page.goBack();
            await page.waitForSelector(".view-functions .detail");
        }
        await page.keyboard.press("Escape");
        await page.waitForSelector(".detail", { state: "detached" });
        is("Escape closes the function", (await page.evaluate(() => location.hash)) === "#/functions");
        // In samples, calls are known only from branches.
        if (name === "spe") {
            await go(page, "summary");
            await go(page, "functions");
            let around = 0;
            for (let row = 0; row < 8 && around === 0; ++row) {
                await page.click(`.table-body .row >> nth=${row}`);
                await page.waitForSelector(".detail .two");
                await drawn(page);
                around = (await page.$$(".detail .around li")).length;
            }
            is("callers and callees of branches", around > 0);
            await page.keyboard.press("Escape");
            await page.waitForSelector(".detail", { state: "detached" });
        }
        // One task or core has less than all together.
        const contexts = await page.$('.choice:has-text("Task") select, .choice:has-text("Context") select');
        if (contexts) {
            await contexts.selectOption({ index: 1 });
            await page.waitForFunction((n) => Number(document.querySelector(".table").getAttribute("aria-rowcount")) < n, all);
            await contexts.selectOption({ index: 0 });
            await page.waitForFunction((n) => Number(document.querySelector(".table").getAttribute("aria-rowcount")) === n, all);
        }
        is("a choice of tasks", name !== "dpu" || contexts !== null);
    }
    if (there.includes("calls")) {
        await go(page, "calls");
        await page.waitForSelector(".flame canvas");
        is("the flame graph is drawn", await colorful(page, ".flame canvas", 4));
        await page.focus(".flame");
        const selected = () => page.textContent(".detail .full-name");
        const root = await selected();
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("ArrowDown");
        const deeper = await selected();
        is("↓ goes to what is called", deeper !== root, deeper);
        await page.keyboard.press("Enter");
        const range = await page.$eval(".flame", (f) => [Number(f.dataset.from), Number(f.dataset.to)]);
        is("Enter zooms", range[1] > range[0], range.join());
        await page.keyboard.press("ArrowUp");
        await page.keyboard.press("ArrowUp");
        is("↑ goes back", (await selected()) === root);
        await page.keyboard.press("0");
        await drawn(page);
        const seen = () => page.$eval(".flame", (f) => [Number(f.dataset.from), Number(f.dataset.to)]);
        const whole = await seen();
        const box = await page.locator(".flame canvas").boundingBox();
        await page.mouse.click(box.x + 20, box.y + 30);
        is("a click selects", (await selected()) !== root);
        // Zoom with the mouse to a call that is narrower than the view: the last of its row.
        await page.focus(".flame");
        for (let i = 0; i < 12; ++i) await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        const deep = await seen();
        is("Enter zooms in", deep[1] - deep[0] < whole[1] - whole[0], `${deep} of ${whole}`);
        await page.keyboard.press("Escape");
        const out = await seen();
        is("Escape zooms out", out[1] - out[0] > deep[1] - deep[0], `${out} from ${deep}`);
        await page.click('text="Show all"');
        is("Show all shows all", (await seen()).join() === whole.join(), `${await seen()} of ${whole}`);
        const narrow = await page.evaluate(() => document.querySelector(".flame canvas").getBoundingClientRect().width * 0.04);
        await page.mouse.dblclick(box.x + narrow, box.y + 110);
        await drawn(page);
        is("a double click zooms", (await seen())[1] - (await seen())[0] <= whole[1] - whole[0]);
        await page.focus(".flame");
        await page.keyboard.press("0");
        is("0 shows all", (await seen()).join() === whole.join());
        await page.click("text=From leaves");
        await page.waitForFunction(() => document.querySelector(".detail .full-name").textContent === "all, by leaf function");
        await page.keyboard.press("/");
        await page.keyboard.type("a");
        await page.waitForFunction(() => document.querySelector(".search-note").textContent.includes("%"));
        await page.click("text=As a table");
        is("the table has the calls", Number(await page.getAttribute(".table", "aria-rowcount")) > 2);
    }
    if (there.includes("timeline")) {
        await go(page, "timeline");
        await page.waitForSelector(".timeline canvas");
        is("the timeline is drawn", await colorful(page, ".timeline canvas", 3));
        const seen = () => page.$eval("#timeline-seen", (s) => [Number(s.dataset.from), Number(s.dataset.to)]);
        /// Moves the timeline with `act`; returns the range that the page reports then.
        const moved = async (act) => {
            await act();
            await settled(page);
            return seen();
        };
        const all = await seen();
        const short = all[1] - all[0] <= 4;
        await page.focus(".timeline");
        const closer = await moved(() => page.keyboard.press("+"));
        is("+ zooms", closer[1] - closer[0] < (all[1] - all[0]) * 0.9 || short, closer.join());
        const right = await moved(() => page.keyboard.press("ArrowRight"));
        is("→ moves", right[0] > closer[0] || short, right.join());
        const box = await page.locator(".timeline canvas").boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + 40);
        const wheeled = await moved(() => page.mouse.wheel(0, -240));
        is("the wheel zooms", wheeled[1] - wheeled[0] < right[1] - right[0] || short, wheeled.join());
        const again = await moved(() => page.keyboard.press("0"));
        is("0 shows all", again.join() === all.join(), again.join());
        await moved(() => page.keyboard.press("+"));
        const middle = await moved(() => page.keyboard.press("+"));
        await page.mouse.move(box.x + box.width * 0.7, box.y + 40);
        const dragged = await moved(async () => {
            await page.mouse.down();
            await page.mouse.move(box.x + box.width * 0.55, box.y + 40, { steps: 4 });
            await page.mouse.up();
        });
        is("dragging moves", dragged[0] > middle[0] || short, `${dragged} from ${middle}`);
        await copy(page, 'text="Copy a link"', 'text="Copied"');
        const link = await page.evaluate(() => navigator.clipboard.readText());
        const kept = await seen();
        if (await page.$('[aria-label="Gaps"]')) {
            await page.click('[aria-label="Gaps"] button:last-child');
            is("the first gap is reported", /^Gap 1 of \d+: ./.test(await page.textContent("main > p[role=status]")), await page.textContent("main > p[role=status]"));
            await page.focus(".timeline");
            await moved(() => page.keyboard.press("g"));
        } else is("gaps of the real capture", name !== "corpus");
        const linkedTo = await moved(() => page.evaluate((hash) => (location.hash = hash), link.slice(link.indexOf("#"))));
        is("a link leads to a place in time", Math.abs(linkedTo[0] - kept[0]) <= 2 && Math.abs(linkedTo[1] - kept[1]) <= 2, `${linkedTo} for ${kept} by ${link}`);
        await page.focus(".timeline");
        await moved(() => page.keyboard.press("0"));
        await page.keyboard.press("n");
        if (await page.$(".detail")) {
            await drawn(page);
            await page.keyboard.press("n");
            is("n selects", (await page.textContent(".detail .full-name")) !== "");
        }
        await page.click("text=As a table");
        is("the table has what is seen", (await page.$$(".table")).length > 0);
    }
    if (there.includes("code")) {
        await go(page, "code");
        await page.waitForSelector(".listing .line");
        is("marks show coverage", (await page.$$(".line .seen[aria-label]")).length > 0);
        const line = await page.$('section[aria-label="Source"] .line.with-code');
        if (line) {
            await line.click();
            is("a line is chosen", (await page.$$(".line.chosen")).length > 0);
        }
        if (name === "flow" || name === "hostile")
            is("inlined calls are shown", (await page.$$eval(".inlined-head", (all) => all.map((h) => h.textContent).join(" | "))).includes("inlined from inner | inlined from "));
        if (name === "spe" || name === "ptm") {
            const texts = await page.$$eval('section[aria-label="Instructions"] .line > code', (all) => all.map((c) => c.textContent));
            is("instructions are text", texts.length > 0 && texts.every((t) => /^[a-z]/.test(t)), texts.join(" | "));
        }
        await copy(page, ".code-pane .copy >> nth=-1", '.code-pane .copy:has-text("Copied")');
        is("instructions are copied", /^address\t.*\n0x[0-9a-f]+\t/.test(await page.evaluate(() => navigator.clipboard.readText())));
    }
    if (there.includes("blocks")) {
        await go(page, "blocks");
        await page.click(".table-body .row");
        await page.waitForSelector(".view-code .line.goal");
        is("a block leads to its code", (await page.evaluate(() => location.hash)).includes("address=0x"));
    }
    if (there.includes("exceptions") && (await go(page, "exceptions"), await page.$("#each"))) {
        await page.click(".below .table-body .row");
        await page.waitForSelector(".view-timeline .timeline");
        is("an exception leads to the timeline", (await page.evaluate(() => location.hash)).includes("from="));
    }
    if (there.includes("branches")) {
        await go(page, "branches");
        const all = Number(await page.getAttribute(".table", "aria-rowcount"));
        await page.click('.segments >> text="One way"');
        is("branches of one outcome are fewer", Number(await page.getAttribute(".table", "aria-rowcount")) <= all);
    }
    // Missing views say why they are missing.
    for (const view of ["calls", "timeline", "loops", "charts", "tables"].filter((v) => !there.includes(v))) {
        await go(page, view);
        is(`${view} says why it is absent`, /\.$/.test((await page.textContent("main .empty")).trim()));
    }
    await close();
}

/// An address opens the view and selection it names.
async function linked(name) {
    const { page, where, close } = await open(name, { width: 1280 }, "#/functions?function=0");
    check(`${where}: a link opens a function`, (await page.textContent(".detail .full-name").catch(() => "")) !== "");
    await page.evaluate(() => (location.hash = "#/no-such-view?function=-1&line=x"));
    await page.waitForSelector(".view-summary h1");
    await close();
}

/// The address contains the settings of a view: opened elsewhere it shows the same, and the back button undoes them.
async function addressed(name) {
    const { page, where, close } = await open(name, { width: 1280 });
    const is = (what, good, detail) => check(`${where}: ${what}`, good, detail);
    const hash = () => page.evaluate(() => location.hash);
    const until = async (what, test) =>
        is(what, await page.waitForFunction(test).then(() => true, () => false), await hash());
    const all = await views(page);

    if (all.includes("calls")) {
        await go(page, "calls");
        await page.fill("[data-search]", "a");
        await until("a search is in the address", () => /[?&]query=a(&|$)/.test(location.hash));
        await page.click('text="From leaves"');
        await until("the direction is in the address", () => /way=leaves/.test(location.hash));
        const pressed = () => page.$eval('[aria-label="Direction"] [aria-pressed="true"], [aria-label="Direction"] [aria-checked="true"], [aria-label="Direction"] :checked', (e) => (e.closest("label") ?? e).textContent.trim());
        const leaves = await pressed();
        await page.goBack();
        await until("Back undoes the direction", () => !/way=leaves/.test(location.hash));
        is("Back shows the direction of before", (await pressed()) !== leaves, leaves);
        await page.evaluate(() => document.activeElement?.blur());
        // Without focus, the keys of the view work too.
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await settled(page);
        const zoomed = await hash();
        if (/from=/.test(zoomed)) {
            const there = await open(name, { width: 1280 }, zoomed);
            await there.page.waitForSelector(".flame");
            // An address that would change would have changed by now.
            await settled(there.page);
            is("a link keeps the search", (await there.page.inputValue("[data-search]")) === "a");
            is("a link keeps the zoom", (await there.page.evaluate(() => location.hash)) === zoomed);
            await there.close();
            await page.goBack();
            await until("Back zooms out", () => !/from=/.test(location.hash));
        } else is("a flame graph that is one call wide", await page.$eval(".flame", (f) => f.getAttribute("data-to") !== null), zoomed);
    }
    if (all.includes("timeline")) {
        await go(page, "timeline");
        const seen = () => page.$eval("#timeline-seen", (s) => `${s.dataset.from} ${s.dataset.to}`);
        const whole = await seen();
        await page.evaluate(() => document.activeElement?.blur());
        await page.keyboard.press("+");
        await until("the range is in the address, by a key without focus", () => /from=\d+&to=\d+/.test(location.hash));
        is("it is the range that is seen", (await seen()) !== whole, await seen());
        await page.goBack();
        await until("Back shows the whole timeline again", () => !/from=/.test(location.hash));
        await settled(page);
        is("the whole timeline", (await seen()) === whole, await seen());
    }
    if (all.includes("branches")) {
        // Narrow, but not narrow enough to stack the columns.
        await page.setViewportSize({ width: 820, height: 900 });
        await go(page, "branches");
        // The longest possible text, whether this report contains it or not.
        const cut = await page.$$eval(".outcomes > span:not([aria-hidden])", (texts) =>
            texts.filter((t) => {
                t.classList.add("missed");
                t.textContent = "not observed";
                const range = document.createRange();
                range.selectNodeContents(t);
                const text = range.getBoundingClientRect();
                const bar = t.parentElement.children[1].getBoundingClientRect();
                const over = Math.min(text.right, bar.right) - Math.max(text.left, bar.left);
                let right = innerWidth;
                for (let e = t.parentElement; e; e = e.parentElement)
                    if (getComputedStyle(e).overflowX !== "visible") right = Math.min(right, e.getBoundingClientRect().right);
                return over > 1 || text.right > right + 1;
            }).map((t) => t.getBoundingClientRect().right),
        );
        is("outcomes of branches are whole beside the bar", cut.length === 0, cut.slice(0, 3).join());
    }
    await close();
}

/// Names that contain markup are shown as text.
async function harmless(name) {
    const { page, where, close } = await open(name, { width: 1280 });
    for (const view of await views(page)) {
        await go(page, view);
        check(`${where}, ${view}: no markup from data`, (await page.$$("main img, main b > *")).length === 0);
    }
    await page.waitForTimeout(100);
    check(`${where}: no script from data`, !(await page.evaluate(() => globalThis.harmed)));
    check(`${where}: the name is shown as it is`, (await page.textContent(".capture b")).includes("script><img src=x"));
    await close();
}

/// Without a required browser feature, or with cut data, the page says so.
async function complains(name) {
    const browser = browserOf.get(name);
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    await page.addInitScript(() => delete globalThis.DecompressionStream);
    await page.goto(pathToFileURL(join(folder, `${name}.html`)).href);
    await page.waitForSelector("[role=alert]");
    check("without DecompressionStream: says so", /DecompressionStream/.test(await page.textContent("[role=alert]")));
    await context.close();
    const other = await browser.newPage();
    other.setDefaultTimeout(patience);
    await other.goto(pathToFileURL(join(folder, "cut.htm")).href);
    await other.waitForSelector("[role=alert]");
    const said = await other.textContent("[role=alert]");
    check("cut data: says so", /Was the file cut/.test(said), said);
    await other.close();
}

const names = readdirSync(folder).filter((f) => f.endsWith(".html")).map((f) => f.slice(0, -5)).sort();

/// A generated report, and the recorded one of the same unit: people do the same in both, so the steps use the latter
/// if there is one. Inlined calls, which `ptm` has none of, are looked for in `hostile` too.
const standsFor = { flow: "ptm", samples: "spe" };

async function look(name) {
    const bytes = statSync(join(folder, `${name}.html`)).size;
    check(`${name}: small`, bytes <= mostBytes, `${bytes} bytes`);
    const began = Date.now();
    // A timeout is a failure like any other.
    const attempt = (what) => what.catch((error) => check(`${name}: ${error.stack}`, false));
    let took = 0;
    const see = async (...how) => void (took = await lookAtAll(name, ...how));
    if (name === "large" || name === "hostile") await attempt(see([1440], ["light"], { axeToo: false, pictures: false }));
    else if (name in present) await attempt(see(widths, themes));
    else await attempt(see([390], themes, { pictures: false }));
    if (!names.includes(standsFor[name])) await attempt(interact(name));
    if (name === "hostile") await attempt(harmless(name));
    if (name === "flow") await attempt(complains(name));
    if (name in present) await attempt(linked(name));
    if (name in present) await attempt(addressed(name));
    await idle.get(name)?.context.close();
    console.log(`${name}: ${(bytes / 1e6).toFixed(2)} MB, ready in ${took} ms; looked at for ${Date.now() - began} ms`);
}

// Two reports at a time, those that take longest first.
const waiting = [...names.filter((name) => name in present), ...names.filter((name) => !(name in present))];
async function lookWithOneBrowser() {
    // Threads with which V8 compiles and collects garbage concurrently take more of the processors.
    const args = ["--no-sandbox", "--disable-gpu", "--js-flags=--single-threaded"];
    const browser = await chromium.launch({ executablePath, args, timeout: patience });
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        browserOf.set(name, browser);
        await look(name);
    }
    await browser.close();
}
await Promise.all([lookWithOneBrowser(), lookWithOneBrowser()]);
for (const failure of failures) console.log(`FAILED ${failure}`);
console.log(`${checks} checks, ${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);
