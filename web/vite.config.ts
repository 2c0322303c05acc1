/// Builds the page into one file: it contains styles and script, and a policy that lets it load nothing else.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

/// Preact's licence requires that every copy has its notice.
function notice(): string {
    const text = readFileSync("node_modules/preact/LICENSE", "utf8").trim();
    if (!text.includes("Permission is hereby granted") || text.includes("--")) throw new Error("Preact's licence is not as expected");
    return `<!--\nThis page contains Preact:\n\n${text}\n-->`;
}

/// Puts the script and the styles into the page. The script comes last, when the data before it has been read.
function oneFile(): Plugin {
    return {
        name: "waymark-one-file",
        enforce: "post",
        generateBundle(_, bundle) {
            const page = bundle["index.html"];
            if (page?.type !== "asset") throw new Error("there is no page");
            let html = String(page.source).replace(/<script[^>]*\bsrc=[^>]*><\/script>/g, "").replace(/<link[^>]*stylesheet[^>]*>/g, "");
            let code = "";
            let styles = "";
            for (const [name, file] of Object.entries(bundle)) {
                if (file.type === "chunk") code += file.code;
                else if (name.endsWith(".css")) styles += file.source;
                else continue;
                delete bundle[name];
            }
            // Nothing in either may end its element.
            code = code.replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--").trim();
            const hash = createHash("sha256").update(code, "utf8").digest("base64");
            const policy =
                `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; ` +
                `base-uri 'none'; form-action 'none'`;
            html = html.replace("<!-- policy -->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`);
            html = html.replace("</head>", () => `<style>${styles.trim()}</style>\n${notice()}\n</head>`);
            html = html.replace("</body>", () => `<script>${code}</script>\n</body>`);
            page.source = html;
        },
    };
}

export default defineConfig({
    plugins: [oneFile()],
    // Nothing connects to the tests' server; by number, since not every container knows `localhost`.
    server: { host: "127.0.0.1" },
    // Children as arguments: no property names them, which makes the page 4 kB smaller.
    esbuild: { jsx: "transform", jsxFactory: "makeNode", jsxFragment: "ListOfNodes", jsxInject: `import { h as makeNode, Fragment as ListOfNodes } from "preact"` },
    build: {
        target: "es2021",
        modulePreload: false,
        assetsInlineLimit: 1 << 20,
        cssCodeSplit: false,
        rollupOptions: { output: { format: "iife" } },
    },
});
