// Builds the site of docs/: every page as HTML, an index for its search, and nothing that asks the network for anything.
//
//   node docs.mjs OUT              the whole site, with pictures
//   node docs.mjs OUT --carried    without pictures, decisions and the history, and each file also as .gz: what the binary carries below /docs
//
// The order and the groups are those of docs/README.md. Every link and every anchor is followed; one that leads nowhere fails the build. What lies
// outside of docs/ and is no page (sources, examples) is named, not linked. Markdown is what the documents of this tree use of it:
// headings, paragraphs, lists, tables, fences, quotes, emphasis, code, links, pictures.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { made as reference } from "./reference.mjs";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const [out, ...flags] = process.argv.slice(2);
const carried = flags.includes("--carried");
// for those who build Cairn
const LEFT_OUT = carried ? /^(docs\/(requirements|requirements-notes)\.md|docs\/adr\/.*|CHANGELOG\.md|CONTRIBUTING\.md)$/ : /^docs\/(requirements|requirements-notes)\.md$/;
const BESIDE = ["ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", "clients/README.md", "clients/python/README.md", "clients/typescript/README.md", "bindings/python/README.md"];
const mistakes = [];

function markdownBelow(folder) {
    return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
        const path = posix.join(folder, entry.name);
        return entry.isDirectory() ? markdownBelow(path) : path.endsWith(".md") ? [path] : [];
    });
}
const sources = [...markdownBelow("docs"), ...BESIDE].filter((path) => !LEFT_OUT.test(path)).sort();
// docs/format/plan.md -> format/plan.html; a README is the index of its folder, what lies beside docs/ comes below more/
function place(path) {
    const inside = path.startsWith("docs/") ? path.slice(5) : "more/" + path.toLowerCase().replaceAll("/", "-").replace(/-readme\.md$/, ".md");
    return inside.replace(/(^|\/)README\.md$/, "$1index.md").replace(/\.md$/, ".html");
}
const places = new Map(sources.map((path) => [path, place(path)]));

// Pages that are made of what the program itself says.
const made = new Map(reference.map(([path, , make]) => [path, () => make(root)]));
for (const path of made.keys()) places.set(path, place(path));

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const plain = (text) => text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "").replace(/\\(.)/g, "$1");
// As the hosts of repositories make anchors, so that the documents may be read there, too.
function anchor(text, seen) {
    const name = plain(text).trim().toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replace(/ /g, "-");
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return count ? `${name}-${count}` : name;
}

class Page {
    constructor(source) {
        this.source = source;
        this.place = places.get(source);
        this.up = posix.relative(posix.dirname(this.place), ".") || ".";
        this.anchors = new Set();
        this.links = [];
        this.sections = []; // {title, anchor, text}
        this.seen = new Map();
        this.body = this.blocks(made.get(source)?.() ?? readFileSync(join(root, source), "utf8").split("\n"));
        this.title = this.sections[0]?.title ?? source;
    }

    link(text, target) {
        const shown = this.inline(text);
        if (/^(https?|mailto):/.test(target)) return `<a href="${escaped(target)}" rel="noreferrer">${shown}</a>`;
        const [path, hash] = target.split("#");
        const file = path ? posix.normalize(posix.join(posix.dirname(this.source), path)).replace(/\/$/, "") : this.source;
        const page = places.get(file) ? file : places.get(file + "/README.md") ? file + "/README.md" : file === "README.md" ? "docs/README.md" : null;
        if (!page) {
            if (!existsSync(join(root, file))) mistakes.push(`${this.source}: ${target} leads nowhere`);
            return shown;
        }
        if (hash) this.links.push([page, hash, target]);
        const to = posix.relative(posix.dirname(this.place), places.get(page)) || posix.basename(this.place);
        return `<a href="${escaped(to)}${hash ? "#" + escaped(hash) : ""}">${shown}</a>`;
    }

    inline(text) {
        const kept = []; // code and links are not looked into again
        const keep = (html) => `\u0001${kept.push(html) - 1}\u0002`;
        let rest = text.replace(/(`+)(.+?)\1/g, (_, ticks, code) => keep(`<code>${escaped(code.replace(/\\\|/g, "|"))}</code>`));
        rest = rest.replace(/\\([\\`*_{}[\]()#+.!|<>-])/g, (_, one) => keep(escaped(one)));
        rest = rest.replace(/!\[([^\]]*)\]\(([^)\s]+)\)/g, (_, alt, file) => {
            const from = posix.normalize(posix.join(posix.dirname(this.source), file));
            if (!existsSync(join(root, from))) mistakes.push(`${this.source}: there is no picture ${file}`);
            const to = posix.relative(posix.dirname(this.place), from.replace(/^docs\//, ""));
            return keep(carried || !from.startsWith("docs/") ? `<em>${escaped(alt)}</em>` : `<img src="${escaped(to)}" alt="${escaped(alt)}">`);
        });
        rest = rest.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, shown, target) => keep(this.link(shown, target)));
        rest = escaped(rest).replace(/\*\*(.+?)\*\*/g, "<strong>$1</strong>").replace(/(^|[\s(])\*([^*\s][^*]*)\*(?=[\s).,:;]|$)/g, "$1<em>$2</em>");
        for (let again = true; again; ) {
            again = false;
            rest = rest.replace(/\u0001(\d+)\u0002/g, (_, number) => ((again = true), kept[Number(number)]));
        }
        return rest;
    }

    note(text) {
        const section = this.sections.at(-1);
        if (section) section.text += " " + plain(text);
    }

    heading(level, text) {
        const name = anchor(text, this.seen);
        this.anchors.add(name);
        this.sections.push({ title: plain(text), anchor: level === 1 ? "" : name, text: "" });
        return `<h${level} id="${escaped(name)}">${this.inline(text)}</h${level}>`;
    }

    table(rows) {
        const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
        const [head, , ...body] = rows;
        const line = (row, tag) => `<tr>${cells(row).map((cell) => `<${tag}>${this.inline(cell)}</${tag}>`).join("")}</tr>`;
        rows.forEach((row, i) => i !== 1 && this.note(row.replace(/\|/g, " ")));
        const bare = cells(head).every((cell) => cell === "");
        return `<div class="wide" tabindex="0"><table>${bare ? "" : `<thead>${line(head, "th")}</thead>`}<tbody>${body.map((row) => line(row, "td")).join("")}</tbody></table></div>`;
    }

    blocks(lines) {
        const html = [];
        for (let i = 0; i < lines.length; ) {
            const line = lines[i];
            const fence = /^( *)```(.*)$/.exec(line);
            const heading = /^(#{1,6}) (.*)$/.exec(line);
            const item = /^( *)([-*]|\d+\.) +(.*)$/.exec(line);
            if (fence) {
                const text = [];
                for (i++; i < lines.length && !/^ *```$/.test(lines[i]); i++) text.push(lines[i].slice(fence[1].length));
                i++;
                this.note(text.join(" "));
                html.push(`<pre tabindex="0"><code>${escaped(text.join("\n"))}</code></pre>`);
            } else if (heading) {
                html.push(this.heading(heading[1].length, heading[2]));
                i++;
            } else if (/^\s*$/.test(line)) {
                i++;
            } else if (/^\|/.test(line) && /^\|[\s:|-]+$/.test(lines[i + 1] ?? "")) {
                const rows = [];
                for (; i < lines.length && /^\|/.test(lines[i]); i++) rows.push(lines[i]);
                html.push(this.table(rows));
            } else if (item) {
                // An item goes on with what is indented further than its mark; its own blocks are read the same way.
                const ordered = /\d/.test(item[2]), depth = item[1].length, items = [];
                for (; i < lines.length; ) {
                    const next = /^( *)([-*]|\d+\.) +(.*)$/.exec(lines[i]);
                    if (!next || next[1].length !== depth || /\d/.test(next[2]) !== ordered) break;
                    const inner = [next[3]], cut = next[0].length - next[3].length;
                    for (i++; i < lines.length; i++) {
                        const indent = /^ */.exec(lines[i])[0].length;
                        const empty = lines[i].trim() === "";
                        if (empty && !(lines[i + 1] ?? "").startsWith(" ".repeat(depth + 2))) break;
                        if (!empty && indent <= depth && (/^ *([-*]|\d+\.) /.test(lines[i]) || /^ *(#|```|\|)/.test(lines[i]) || lines[i - 1].trim() === "")) break;
                        inner.push(lines[i].slice(Math.min(indent, cut)));
                    }
                    items.push(`<li>${this.blocks(inner).replace(/^<p>([^]*?)<\/p>/, "$1")}</li>`);
                    if (lines[i]?.trim() === "" && /^( *)([-*]|\d+\.) +/.test(lines[i + 1] ?? "")) i++;
                }
                html.push(ordered ? `<ol>${items.join("")}</ol>` : `<ul>${items.join("")}</ul>`);
            } else if (/^ {4}/.test(line)) {
                const text = [];
                for (; i < lines.length && (/^ {4}/.test(lines[i]) || (lines[i].trim() === "" && /^ {4}/.test(lines[i + 1] ?? ""))); i++) text.push(lines[i].slice(4));
                this.note(text.join(" "));
                html.push(`<pre tabindex="0"><code>${escaped(text.join("\n"))}</code></pre>`);
            } else if (/^> ?/.test(line)) {
                const text = [];
                for (; i < lines.length && /^> ?/.test(lines[i]); i++) text.push(lines[i].replace(/^> ?/, ""));
                html.push(`<blockquote>${this.blocks(text)}</blockquote>`);
            } else {
                const text = [];
                for (; i < lines.length && lines[i].trim() !== "" && !/^( *```|#{1,6} |\|)/.test(lines[i]) && !(text.length && /^ *([-*]|\d+\.) /.test(lines[i])); i++) text.push(lines[i].trim());
                if (!text.length) text.push(lines[i++]); // a line that looks like more than it is
                this.note(text.join(" "));
                html.push(`<p>${this.inline(text.join("\n"))}</p>`);
            }
        }
        return html.join("\n");
    }
}

const pages = new Map([...sources, ...made.keys()].map((source) => [source, new Page(source)]));
for (const page of pages.values())
    for (const [target, hash, written] of page.links)
        if (!pages.get(target).anchors.has(hash)) mistakes.push(`${page.source}: ${written}: ${target} has no such heading`);

// ---- what stands around a page: the groups of docs/README.md
const groups = [];
for (const line of readFileSync(join(root, "docs/README.md"), "utf8").split("\n")) {
    const group = /^## (.*)$/.exec(line), entry = /^- \[([^\]]+)\]\(([^)#]+)\)/.exec(line);
    if (group) groups.push({ name: group[1], entries: group[1] === "Reference" ? reference.map(([path, title]) => [title, path]) : [] });
    if (!entry) continue;
    const file = posix.normalize(posix.join("docs", entry[2]));
    if (places.has(file)) groups.at(-1).entries.push([entry[1], file]);
}

function around(title, place, body, current, script = "") {
    const up = posix.relative(posix.dirname(place), ".") || ".";
    const nav = groups.map((group) => `<h2>${escaped(group.name)}</h2><ul>${group.entries.map(([name, file]) => {
        const to = posix.relative(posix.dirname(place), places.get(file)) || posix.basename(place);
        return `<li><a href="${to}"${file === current ? ' aria-current="page"' : ""}>${escaped(name)}</a></li>`;
    }).join("")}</ul>`).join("");
    return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)} · Cairn</title>
<link rel="stylesheet" href="${up}/docs.css">${script}</head>
<body><a class="skip" href="#main">to the text</a><header><a href="${up}/index.html">Cairn</a> <a href="${up}/search.html">Search</a></header>
<div class="columns"><main id="main">
${body}
</main><nav aria-label="Guides">${nav}</nav></div></body></html>
`;
}

const written = [];
function write(path, text) {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text);
    written.push(path);
}

if (mistakes.length) {
    for (const mistake of mistakes) console.error("docs: " + mistake);
    process.exit(1);
}
rmSync(out, { recursive: true, force: true });
for (const page of pages.values()) write(page.place, around(page.title, page.place, page.body, page.source));

// The index: of each section where it is, what it is called, and which words it has, each once.
const index = [...pages.values()].flatMap((page) => page.sections.map((section) => {
    const words = new Set(section.text.toLowerCase().match(/[\p{L}\p{N}_][\p{L}\p{N}_.-]*[\p{L}\p{N}_]/gu) ?? []);
    return [page.place + (section.anchor ? "#" + section.anchor : ""), section.title, section.anchor ? page.title : "", [...words].filter((word) => word.length > 2).join(" ")];
}));
write("search-index.js", `globalThis.cairnIndex = ${JSON.stringify(index)};\n`);
write("search.js", readFileSync(join(web, "docs/search.js"), "utf8"));
write("docs.css", readFileSync(join(web, "docs/docs.css"), "utf8"));
write("search.html", around("Search", "search.html", `<h1>Search</h1>
<p><label for="q">Words, all of which are in a section</label> <input id="q" type="search" autocomplete="off" spellcheck="false"></p>
<p id="count" role="status"></p><ol id="found"></ol>`, null, '<script src="search-index.js" defer></script><script src="search.js" defer></script>'));
if (!carried) cpSync(join(root, "docs/images"), join(out, "images"), { recursive: true });

// Once more, as a reader finds it: every address of what was written leads to a file and an anchor.
const files = new Set([...written, ...(carried ? [] : readdirSync(join(root, "docs/images")).map((name) => "images/" + name))]);
for (const path of written.filter((name) => name.endsWith(".html"))) {
    const text = readFileSync(join(out, path), "utf8");
    for (const [, target] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
        if (/^(https?|mailto):/.test(target)) continue;
        const [file, hash] = target.split("#");
        const to = file ? posix.normalize(posix.join(posix.dirname(path), file)) : path;
        if (!files.has(to)) mistakes.push(`${path}: ${target} leads nowhere`);
        else if (hash && !readFileSync(join(out, to), "utf8").includes(` id="${hash}"`)) mistakes.push(`${path}: ${target} has no such heading`);
    }
}
if (mistakes.length) {
    for (const mistake of mistakes) console.error("docs: " + mistake);
    process.exit(1);
}
if (carried) for (const path of written) writeFileSync(join(out, path + ".gz"), gzipSync(readFileSync(join(out, path)), { level: 9 }));
console.log(`${pages.size} pages, ${index.length} sections`);
