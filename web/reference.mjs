// Pages of the guides that are made of what the program is made of: the manual page, the table of routes, the settings, the schemas of events, the
// codes of problems and mistakes. A table that is not found where it was, or of which nothing is left, ends the build.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

export const read = (root, path) => readFileSync(join(root, path), "utf8");
const json = (root, path) => JSON.parse(read(root, path));
const verbatim = (text) => text.replace(/\\&/g, "").replace(/\\e/g, "\\");
const marked = (text) => verbatim(text).replace(/[\\*_<>|[\]]/g, "\\$&");
const cell = (text) => text.replace(/\|/g, "\\|").replace(/\n/g, " ");
const code = (text) => "`" + cell(text) + "`";

function found(rows, least, what) {
    if (rows.length < least) throw new Error(`reference: ${what}: ${rows.length} rows, where at least ${least} were expected`);
    return rows;
}
// The words of a C initializer: texts that stand side by side are one.
function strings(source) {
    return [...source.matchAll(/"((?:[^"\\]|\\.)*)"(?:\s*"((?:[^"\\]|\\.)*)")*/g)].map((whole) =>
        [...whole[0].matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((one) => one[1]).join("").replace(/\\"/g, '"').replace(/\\\\/g, "\\"));
}

// The manual page, which `cairn man` makes of the table of commands: mdoc as Markdown.
function manual(root) {
    const out = [], flags = [];
    let literal = false, synopsis = false;
    for (const line of read(root, "docs/man/cairn.1").split("\n")) {
        const [, macro, rest = ""] = /^\.(\w\w)(?: (.*))?$/.exec(line) ?? [];
        if (macro === "Sh") synopsis = rest === "SYNOPSIS";
        if (/^\.\\"/.test(line) || ["Dd", "Dt", "Os", "Nd"].includes(macro) || (synopsis && macro !== "Sh")) continue;
        if (macro === "Bd") out.push("", "```"), (literal = true);
        else if (macro === "Ed") out.push("```", ""), (literal = false);
        else if (literal) out.push(verbatim(line));
        else if (macro === "Sh" && /^(NAME|SYNOPSIS)$/.test(rest)) continue;
        else if (macro === "Sh") out.push("", "## " + rest[0] + rest.slice(1).toLowerCase(), "");
        else if (macro === "Ss") out.push("", "### " + marked(rest), "");
        else if (macro === "Bl") flags.length = 0;
        else if (macro === "It") flags.push([verbatim(rest.replace(/^(Ic|Ev|Pa|Li|Sy) /, "")), ""]);
        else if (macro === "El") out.push("", "| | |", "|---|---|", ...flags.map(([name, text]) => `| ${code(name)} | ${text} |`), ""), (flags.length = 0);
        else if (macro === "Dl") out.push("", "```", verbatim(rest), "```", "");
        else if (macro === "Nm") continue;
        else if (macro === "Pp") out.push("");
        else if (flags.length) flags.at(-1)[1] += (flags.at(-1)[1] ? " " : "") + marked(line);
        else if (line) out.push(marked(line.replace(/^\.(Li|Ic|Sy|Pa|Ev) /, "")));
    }
    return ["# The manual: every command and flag", "", "As `cairn man` prints it.", "", ...out];
}

// What `cairn help CODE` says: of problems of runs and requests, and of mistakes in documents.
function codes(root) {
    const out = ["# Codes of problems", "", "As `cairn help CODE` says.", "", "## Problems of runs and requests"];
    for (const line of read(root, "src/cli/help/problems.txt").split("\n"))
        out.push(line.startsWith("= problem ") ? `\n### ${line.slice(10)}\n` : line.startsWith("$ ") ? "`" + line.slice(2) + "`" : marked(line));
    const list = read(root, "src/doc/diagnostic_list.h");
    const rows = [...list.slice(list.indexOf("#define DIAGNOSTIC_LIST")).replace(/\\\n/g, "\n").matchAll(/X\(\s*((?:"(?:[^"\\]|\\.)*"[\s,]*)+)\)/g)];
    out.push("", "## Mistakes in documents", "");
    for (const [, row] of found(rows, 50, "DIAGNOSTIC_LIST")) {
        const [id, title, text] = strings(row);
        out.push("", `### ${id}: ${marked(title)}`, "", marked(text));
    }
    return out.join("\n").split("\n");
}

function settings(root) {
    const client = read(root, "src/cli/config.c"), service = read(root, "src/service/settings.c");
    const own = [...client.matchAll(/^ {4}\{"([a-z-]+)", FLAG_\w+, ((?:"[^"]*"|NULL)),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}/gm)];
    const table = /members\[\] = \{\n([^]*?)\n\};/.exec(service)?.[1] ?? "";
    const rows = found([...table.matchAll(/\{((?:\s*"(?:[^"\\]|\\.)*",?)+)\}/g)].map(([, row]) => strings(row)), 30, "members of [serve]");
    return [
        "# Settings", "", "Where settings stand, and which is stronger: `cairn help config`. What is in force, and from where: `cairn config list`.", "",
        "## Of every command", "", "In a file as `NAME = \"value\"`, above all tables; as a variable; as a flag.", "",
        "| name | variable | without it | |", "|---|---|---|---|",
        "| `profile` | `CAIRN_PROFILE` | – | tables \\[profile.NAME\\] in force; in a file `default-profile` |",
        ...found(own, 15, "settings of commands").map(([, name, usual, what]) =>
            `| ${code(name)} | ${code("CAIRN_" + name.toUpperCase().replace(/-/g, "_"))} | ${strings(usual)[0] ? code(strings(usual)[0]) : "–"} | ${marked(strings(what)[0])} |`),
        "", "## Of the service", "", "In the table `[serve]` of a file, or of `[profile.NAME.serve]`. [Setting up the service](../format/serve.md) shows the members that are tables, and says more of each.", "",
        "| member | value | |", "|---|---|---|", ...rows.map(([name, what, value = ""]) => `| ${code(name)} | ${marked(value)} | ${marked(what)} |`),
    ];
}

// ---- the interface: the routes, and what they take and give

const linked = (name) => `[${name}](#${name.toLowerCase()})`;
// `known` says how a schema of a name is written: as a link on the page that has it.
const typeOf = (schema, known) => {
    if (schema.$ref) return known(schema.$ref.split("/").at(-1));
    if (schema.const !== undefined) return code(JSON.stringify(schema.const));
    if (schema.enum) return schema.enum.map((one) => code(String(one))).join(", ");
    if (schema.oneOf ?? schema.anyOf) return (schema.oneOf ?? schema.anyOf).map((one) => typeOf(one, known)).join(" or ");
    if (schema.type === "array") return "list of " + typeOf(schema.items ?? {}, known);
    const range = schema.minimum !== undefined || schema.maximum !== undefined ? ` ${schema.minimum ?? ""} to ${schema.maximum ?? ""}`.replace(/ to $/, " or more") : "";
    return ([schema.type ?? "any"].flat().join(" or ") + range).trim();
};
function operationId(method, path) {
    let name = method.toLowerCase(), upper = true;
    for (const one of path.replace(/^\/v1(?=\/)/, "")) {
        if (one === "{") name += "By";
        if (/[a-z0-9]/i.test(one)) (name += upper ? one.toUpperCase() : one), (upper = false);
        else upper = true;
    }
    return name;
}
function members(schema, all) {
    const parts = (schema.allOf ?? [schema]).map((one) => (one.$ref ? all[one.$ref.split("/").at(-1)] : one));
    return parts.flatMap((part) => Object.entries(part.properties ?? {}).map(([name, value]) => [name, value, (part.required ?? []).includes(name)]));
}
function api(root) {
    const source = read(root, "src/api/route.c");
    const table = /routes\[\] = \{\n([^]*?)\n\};/.exec(source)?.[1] ?? "";
    const rows = found([...table.matchAll(/\{"(GET|POST|PUT|DELETE)", "([^"]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)([^]*?)\}(?=,\n|,?$)/g)], 90, "the table of routes");
    const all = json(root, "schemas/openapi-components.json").schemas;
    const out = ["# Routes of the HTTP interface", "", "As `/openapi.json` of a service has them. [The HTTP interface](../format/api.md) says what they have in common.", "", "## Routes", ""];
    const word = (rest, name) => new RegExp(`\\.${name} = "([^"]*)"`).exec(rest)?.[1];
    for (const [, method, path, summary, rest] of rows) {
        const body = word(rest, "body"), answer = word(rest, "answer"), query = word(rest, "query"), status = /\.status = (\d+)/.exec(rest)?.[1] ?? "200";
        out.push("", `### ${method} ${path.replace(/[{}]/g, "\\$&")}`, "", marked(strings(summary)[0]) + ".", "");
        if (query) out.push(`- query: ${query.split(" ").map(code).join(", ")}`);
        if (body) out.push(`- body: ${linked(body)}`);
        out.push(`- answer: ${status}${answer ? " " + linked(answer) : ""}${/ROUTE_STREAM/.test(rest) ? "; also lines (`application/x-ndjson`) and a stream (`text/event-stream`)" : ""}`);
        if (/ROUTE_OPEN/.test(rest)) out.push("- needs no token");
        if (/ROUTE_AGAIN/.test(rest)) out.push("- may be sent again: the second answer is that of the first");
        out.push(`- operation: ${code(operationId(method, path))}`);
    }
    out.push("", "## What is sent and answered", "");
    for (const [name, schema] of Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))) {
        out.push("", `### ${name}`, "", ...(schema.description ? [marked(schema.description) + ".", ""] : []));
        const rows = members(schema, all);
        if (!rows.length) out.push(typeOf(schema, linked));
        else out.push("| member | type | |", "|---|---|---|", ...rows.map(([member, value, needed]) => `| ${code(member)} | ${typeOf(value, linked)} | ${[needed ? "always there" : "", marked(value.description ?? "")].filter(Boolean).join("; ")} |`));
    }
    return out;
}

// ---- events and signals, from their schemas

function events(root) {
    const out = ["# Events and signals", "", "Each from its JSON Schema, which `cairn schema event TYPE` and `GET /schemas/TYPE` give whole. [Events](../format/events.md) says what they mean together."];
    const groups = [["Execution plans", "run-events", "RunQueued"], ["Node workflows", "node-events", "node_started"], ["Playbooks", "noetl-events", "task.done"], ["Signals", "signals", "PAUSE"]];
    for (const [title, folder] of groups) {
        out.push("", `## ${title}`, "");
        const files = readdirSync(join(root, "schemas", folder)).filter((name) => !/^(common|request)\.json$/.test(name)).sort();
        for (const file of found(files, 8, folder)) {
            const name = file.slice(0, -5), schema = json(root, `schemas/${folder}/${file}`);
            const payload = folder === "signals" ? schema : schema.properties?.payload ?? {};
            out.push("", `### ${name.replace(/_/g, "\\_")}`, "", marked(schema.description ?? ""), "");
            const rows = Object.entries(payload.properties ?? {});
            if (rows.length) out.push(`| ${folder === "signals" ? "member" : "payload"} | type | |`, "|---|---|---|", ...rows.map(([member, value]) => `| ${code(member)} | ${typeOf(value, code)} | ${[(payload.required ?? []).includes(member) ? "always there" : "", marked(value.description ?? "")].filter(Boolean).join("; ")} |`));
        }
    }
    return out;
}

// What is made, by the path that a page of docs/ would have; in the order in which they are listed.
export const made = [
    ["docs/reference/manual.md", "The manual", manual],
    ["docs/reference/settings.md", "Settings", settings],
    ["docs/reference/api.md", "Routes of the HTTP interface", api],
    ["docs/reference/events.md", "Events and signals", events],
    ["docs/reference/codes.md", "Codes of problems", codes],
];
