// node speedscope.mjs WEB CHROMIUM FILE…
//
// Opens each FILE in speedscope: the page of the npm package from disk, with the file chosen in its file input. Prints as JSON
// what it shows: the profiles in its list with their weights, and the rows of the sandwich view of each. Playwright and
// speedscope are those of WEB.
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [web, executablePath, ...files] = process.argv.slice(2);
const require = createRequire(join(resolve(web), "package.json"));
const { chromium } = require("playwright-core");
const release = join(dirname(require.resolve("speedscope/package.json")), "dist/release/index.html");

// speedscope draws flame graphs with WebGL, which must work without a graphics card here.
const args = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"];
const browser = await chromium.launch({ executablePath, args, timeout: 600_000 });

/// The rows of the sandwich view: name, and total and self as shown, such as `57,430 (54%)`. They appear after the view
/// has computed how many fit.
async function rows(page) {
    const found = await page.waitForFunction(() => {
        const table = [...document.querySelectorAll("table")].find((t) => /Symbol Name/.test(t.innerText));
        const cells = [...(table?.parentElement.querySelectorAll("tr") ?? [])].map((row) =>
            [...row.querySelectorAll("td")].map((cell) => cell.textContent.trim()),
        );
        const shown = cells.filter((row) => row.length === 3).map(([total, self, name]) => ({ name, total, self }));
        return shown.length > 0 && shown;
    });
    return found.jsonValue();
}

/// Title and weight of every profile, from the list that the title opens; a single profile has no list.
async function profiles(page) {
    return page.evaluate(() =>
        [...document.querySelectorAll("tr[title]")].map((row) => ({
            title: row.getAttribute("title"),
            weight: row.querySelector("td:last-child").textContent.trim(),
        })),
    );
}

async function open(file) {
    const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
    page.setDefaultTimeout(600_000);
    const errors = [];
    let refuse;
    const refused = new Promise((_, reject) => (refuse = reject));
    refused.catch(() => {});
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("dialog", (dialog) => {
        void dialog.dismiss();
        refuse(new Error(dialog.message()));
    });
    page.on("request", (request) => {
        if (!/^(file|data|blob):/.test(request.url())) errors.push(`asked for ${request.url()}`);
    });
    await page.goto(pathToFileURL(release).href);
    await page.setInputFiles("input[type=file]", file);
    const seen = { file, errors, profiles: [] };
    try {
        // Appears when a file was accepted; a refused file opens a dialog.
        await Promise.race([page.getByText("Sandwich").waitFor(), refused]);
        seen.profiles = await profiles(page);
        if (seen.profiles.length === 0) seen.profiles = [{}];
        await page.keyboard.press("3");
        for (const [i, profile] of seen.profiles.entries()) {
            // The title names the profile that is shown.
            if (seen.profiles.length > 1) await page.getByText(`(${i + 1}/${seen.profiles.length})`).waitFor();
            await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
            profile.rows = await rows(page);
            await page.keyboard.press("n");
        }
    } catch (error) {
        errors.push(error.message);
    }
    await page.close();
    return seen;
}

const all = [];
for (const file of files) all.push(await open(file));
await browser.close();
console.log(JSON.stringify(all));
