// Builds the page: web/src -> web/dist, each file also as .br and .gz beside it.
//
//   node build.mjs                 once
//   node build.mjs --watch         again after each change, without compression and with source maps
//                                  (cairn serve --page-dir web/dist)
//   node build.mjs --sizes         and says what each file weighs
//   node build.mjs --carry FILE    writes FILE, a C source that carries web/dist in the binary (src/api/page.h)
//
// Names of everything under assets/ have the hash of the content in them. index.html is src/index.html with the tags of the
// entry in the place of <!-- assets -->. What lies in static/ is copied as it is.
//
//   import url from "worker:./layout.worker.ts"   bundles a worker of its own and gives its URL
//   import url from "cairn.wasm"                  gives the URL of the fold (build/wasm/cairn.wasm; make builds it)
import * as esbuild from "esbuild";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const dist = join(web, "dist");
const wasm = process.env.CAIRN_WASM ?? join(root, "build/wasm/cairn.wasm");
const flags = process.argv.slice(2);
const watching = flags.includes("--watch");

const TYPES = {
    css: "text/css; charset=utf-8",
    html: "text/html; charset=utf-8",
    ico: "image/x-icon",
    js: "text/javascript; charset=utf-8",
    json: "application/json",
    map: "application/json",
    png: "image/png",
    svg: "image/svg+xml",
    txt: "text/plain; charset=utf-8",
    wasm: "application/wasm",
};

const common = {
    bundle: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: !watching,
    sourcemap: watching ? "linked" : false,
    legalComments: "none",
    logLevel: "warning",
    publicPath: "/",
    loader: { ".wasm": "file", ".svg": "file" },
    assetNames: "assets/[name]-[hash]",
    define: { "process.env.NODE_ENV": watching ? '"development"' : '"production"' },
};

function emit(name, bytes) {
    const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 10);
    const [stem, end] = [name.replace(/\.[^.]*$/, ""), name.replace(/^.*\./, "")];
    const path = `assets/${stem}-${hash}.${end}`;
    mkdirSync(join(dist, "assets"), { recursive: true });
    writeFileSync(join(dist, path), bytes);
    return "/" + path;
}

// A worker is a bundle of its own: it shares no module with the page. Paths of namespaces of our own are part of the hashes in names: they
// begin at the root of the tree, so that the same sources give the same names wherever they lie.
const workers = {
    name: "workers",
    setup(build) {
        build.onResolve({ filter: /^worker:/ }, (args) => ({ path: relative(root, resolve(args.resolveDir, args.path.slice(7))), namespace: "worker" }));
        build.onLoad({ filter: /.*/, namespace: "worker" }, async (args) => {
            const made = await esbuild.build({ ...common, entryPoints: [join(root, args.path)], write: false, metafile: true, outdir: dist, plugins: [fold], sourcemap: false });
            const script = made.outputFiles.find((file) => file.path.endsWith(".js"));
            const name = posix.basename(args.path).replace(/\.worker\.tsx?$/, "").replace(/\.tsx?$/, "");
            return {
                contents: `export default ${JSON.stringify(emit(`${name}.worker.js`, script.contents))}`,
                watchFiles: Object.keys(made.metafile.inputs).map((path) => resolve(path)),
            };
        });
    },
};

const fold = {
    name: "fold",
    setup(build) {
        build.onResolve({ filter: /^cairn\.wasm$/ }, () => ({ path: relative(root, wasm), namespace: "fold" }));
        build.onLoad({ filter: /.*/, namespace: "fold" }, () => {
            if (!existsSync(wasm)) return { errors: [{ text: `${wasm} is not there: "make page" builds it` }] };
            return { contents: `export default ${JSON.stringify(emit("cairn.wasm", readFileSync(wasm)))}`, watchFiles: [wasm] };
        });
    },
};

const pages = {
    name: "pages",
    setup(build) {
        build.onEnd((result) => {
            if (result.errors.length > 0) return;
            writePage(result.metafile);
        });
    },
};

function writePage(metafile) {
    const outputs = Object.entries(metafile.outputs).map(([path, what]) => ({ url: "/" + relative(dist, resolve(path)), ...what }));
    const entry = outputs.find((out) => out.entryPoint && resolve(out.entryPoint) === join(web, "src/main.tsx"));
    const first = [entry.url];
    for (let i = 0; i < first.length; i++)
        for (const needed of outputs.find((out) => out.url === first[i])?.imports ?? []) {
            const url = "/" + relative(dist, resolve(needed.path));
            if (needed.kind === "import-statement" && !first.includes(url)) first.push(url);
        }
    const tags = [];
    if (entry.cssBundle) tags.push(`<link rel="stylesheet" href="/${relative(dist, resolve(entry.cssBundle))}">`);
    for (const url of first.slice(1)) tags.push(`<link rel="modulepreload" href="${url}">`);
    tags.push(`<script type="module" src="${entry.url}"></script>`);
    const html = readFileSync(join(web, "src/index.html"), "utf8");
    if (!html.includes("<!-- assets -->")) throw new Error("src/index.html has no <!-- assets -->");
    if (existsSync(join(web, "static"))) cpSync(join(web, "static"), dist, { recursive: true });
    writeFileSync(join(dist, "index.html"), html.replace("<!-- assets -->", tags.join("\n")));
    if (watching) return;
    for (const path of files(dist)) {
        const bytes = readFileSync(join(dist, path));
        writeFileSync(join(dist, path + ".br"), brotli(bytes));
        writeFileSync(join(dist, path + ".gz"), gzipSync(bytes, { level: 9 }));
    }
    if (flags.includes("--sizes")) sizes(first, entry.cssBundle);
}

function brotli(bytes) {
    return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 22, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
}

// Without the packed ones; paths with '/', in order.
function files(top, below = "") {
    const out = [];
    for (const entry of readdirSync(join(top, below), { withFileTypes: true })) {
        const path = posix.join(below, entry.name);
        if (entry.isDirectory()) out.push(...files(top, path));
        else if (!/\.(br|gz)$/.test(path) && !entry.name.startsWith(".")) out.push(path);
    }
    return out.sort();
}

function sizes(first, css) {
    let total = 0;
    for (const path of files(dist)) {
        const packed = statSync(join(dist, path + ".br")).size;
        const mark = first.includes("/" + path) ? "first view" : "";
        if (mark) total += packed;
        console.log(`${String(statSync(join(dist, path)).size).padStart(9)} ${String(packed).padStart(8)} br  ${path}  ${mark}`);
    }
    console.log(`script of the first view: ${(total / 1000).toFixed(1)} KB brotli${css ? "" : ", no styles"}`);
}

// ---- the page in the binary

function carry(out) {
    const rows = [], blobs = [];
    files(dist).forEach((path, i) => {
        const bytes = readFileSync(join(dist, path));
        const type = TYPES[path.replace(/^.*\./, "")];
        if (!type) throw new Error(`${path}: build.mjs does not know the media type of this kind of file`);
        const tag = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
        const size = (end) => statSync(join(dist, path + end)).size;
        const ends = path.startsWith("docs/") ? ["gz"] : ["br", "gz"]; // guides are read seldom: once is enough
        for (const end of ends) blobs.push(`BLOB(page_${i}_${end}, "web/dist/${path}.${end}")`);
        const packed = ["br", "gz"].map((end) => (ends.includes(end) ? `{(const char *)page_${i}_${end}, ${size("." + end)}}` : "{0}")).join(", ");
        rows.push(`    {"/${path}", "${type}", "\\"${tag}\\"", ${path.startsWith("assets/")}, ${bytes.length}, ${packed}},`);
    });
    const text = `// Written by web/build.mjs; not edited.
#include "api/page.h"

#define BLOB(name, file)                                                                          \\
    extern const unsigned char name[] __attribute__((visibility("hidden")));                      \\
    __asm__(".pushsection .rodata\\n.balign 16\\n" #name ":\\n.incbin \\"" file "\\"\\n.popsection\\n");
${blobs.join("\n")}

const struct page_file page_files[] = {
${rows.join("\n")}
};
const size_t page_file_count = ${rows.length};
`;
    writeFileSync(out + ".tmp", text);
    renameSync(out + ".tmp", out);
}

if (flags[0] === "--carry") {
    carry(flags[1]);
} else {
    // Emptied, not made anew: a server with --page-dir keeps the directory open.
    mkdirSync(dist, { recursive: true });
    for (const name of readdirSync(dist)) rmSync(join(dist, name), { recursive: true, force: true });
    const options = { ...common, entryPoints: [join(web, "src/main.tsx")], outdir: dist, splitting: true, metafile: true, entryNames: "assets/[name]-[hash]", chunkNames: "assets/[name]-[hash]", plugins: [workers, fold, pages] };
    if (watching) {
        const context = await esbuild.context(options);
        await context.watch();
        console.log("watching; cairn serve --page-dir web/dist");
    } else {
        try {
            await esbuild.build(options);
        } catch (error) {
            if (!error.errors) console.error(error.message);
            process.exit(1);
        }
    }
}
