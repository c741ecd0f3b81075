// Definitions: documents that runs were made of, with their versions, and the form that starts one.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, getJson, idOf, mayAs, Refusal, refusalOf, send, several, uuid } from "./api";
import type { Editor, Problem } from "./editor";
import { Grid } from "./grid";
import { follow } from "./live";
import { definitionAt, definitionHref, go, LATEST, place, PARTS, unpathable, versionInAddress } from "./route";
import { GraphTab } from "./run/graph";
import { itemsOf } from "./run/model";
import type { GraphProps } from "./run/run";
import { moved, useCommand } from "./shell";
import { Glyph, rowState, word } from "./states";
import { Table } from "./tables";
import type { Definition, Graph, RunRow, Snapshot } from "./types";
import { Button, Empty, explain, Failure, Field, Seg, Since, Skeleton, Time, toast, trouble, useAsked } from "./ui";
import { count, laidOut, oneLine, sha7, shellWord, short, span } from "./words";

interface Version { version: string; sha: string | undefined; runs: RunRow[]; kept: Definition | undefined }
interface Plan { name: string; runs: RunRow[]; kept: Definition[]; versions: Version[] }

async function plans(only?: string): Promise<Plan[]> {
    const q = only ? "&q=" + encodeURIComponent(`plan="${only}"`) : "";
    const runs: RunRow[] = [];
    for (let cursor: string | null = null, n = 0; n < (only ? 2 : 3); n++) {
        const page: { items: RunRow[]; nextCursor?: string | null } = await getJson(`/v1/runs?limit=200${q}` + (cursor ? "&cursor=" + encodeURIComponent(cursor) : ""));
        runs.push(...page.items);
        cursor = page.nextCursor ?? null;
        if (!cursor) break;
    }
    const kept = only && unpathable(only) ? [] : (await getJson<{ items: Definition[] }>(only ? `/v1/definitions/${several(only)}/versions?limit=200` : "/v1/definitions?limit=200").catch(() => ({ items: [] as Definition[] }))).items;
    const out = new Map<string, Plan>(), of = (name: string) => out.get(name) ?? out.set(name, { name, runs: [], kept: [], versions: [] }).get(name)!;
    for (const r of runs) of(r.planId).runs.push(r);
    for (const d of kept) of(d.planId).kept.push(d);
    for (const p of out.values()) {
        const by = new Map<string, Version>();
        for (const r of p.runs) (by.get(r.planVersion) ?? by.set(r.planVersion, { version: r.planVersion, sha: undefined, runs: [], kept: undefined }).get(r.planVersion)!).runs.push(r);
        for (const d of p.kept) { const v = by.get(d.planVersion) ?? by.set(d.planVersion, { version: d.planVersion, sha: d.sha256, runs: [], kept: d }).get(d.planVersion)!; v.kept = d; v.sha = d.sha256; }
        p.versions = [...by.values()];
    }
    return [...out.values()].sort((a, b) => a.name.localeCompare(b.name));
}
const took = (runs: RunRow[], share: number) => { const all = runs.filter((r) => r.status === "COMPLETED" && r.durationMs != null).map((r) => r.durationMs!).sort((a, b) => a - b); return all.length ? all[Math.min(all.length - 1, Math.floor(all.length * share))]! : null; };
function Squares({ runs }: { runs: RunRow[] }) {
    const last = runs.slice(0, 20).reverse(), ended = last.filter((r) => r.endedAt), good = ended.filter((r) => r.status === "COMPLETED").length;
    return <span class="squares" role="img" aria-label={`${good} of the last ${ended.length} completed`}>{last.map((r) => <i key={r.runId} class={rowState(r)} title={`${short(r.runId)} ${word(rowState(r))}`} />)}</span>;
}

export function Definitions() {
    const { name } = definitionAt(place.value), fresh = place.value.query.has("new");
    useEffect(() => follow("/v1/events", Number.MAX_SAFE_INTEGER, () => { moved.value++; }), []);
    if (fresh) return <Start />;
    return name ? <One name={name} key={name} /> : <List />;
}

function List() {
    useCommand("cairn ls", "Definitions");
    const all = useAsked(() => plans(), []);
    return (
        <div class="page scroll">
            <div class="row"><h1 class="grow">Definitions</h1><Button kind="pri" onClick={() => go("/definitions?new")}>Start a run</Button></div>
            {all.error && !all.value ? <Failure error={all.error} again={all.again} /> : !all.value ? <Skeleton /> : all.value.length === 0 ? <Empty title="No definition yet" command="cairn example hello">A document is kept with the first run that is made of it.</Empty> : (
                <Table label="Definitions" head={[["Name"], ["Versions", "r"], ["Last run"], ["Last 20 runs"], ["p50", "r"], ["p95", "r"]]}>
                    {all.value.map((p) => { const last = p.runs[0]; return <tr key={p.name}><td class="name"><a class="nm link" href={definitionHref(p.name)} dir="auto">{p.name}</a></td><td class="r num">{p.versions.length}</td><td>{last ? <span class="row"><Glyph state={rowState(last)} /><a class="link mono ell" href={"/runs/" + idOf(last.runId)}>{short(last.runId)}</a><span class="muted word"><Time at={last.startedAt ?? last.createdAt} /></span></span> : <span class="faint">never</span>}</td><td><Squares runs={p.runs} /></td><td class="r num">{span(took(p.runs, 0.5))}</td><td class="r num">{span(took(p.runs, 0.95))}</td></tr>; })}
                </Table>
            )}
        </div>
    );
}

// The bytes of a version: as it was brought, or as a run of it keeps them.
async function documentOf(v: Version, name: string): Promise<string> {
    let answer: Response;
    if (v.kept) answer = await ask(`/v1/definitions/${several(name)}/versions/${v.kept.sha256}/document`);
    else {
        const run = v.runs[0]!, stored = await getJson<{ document: string }>("/v1/store/runs/" + idOf(run.runId));
        answer = await ask(`/v1/store/runs/${idOf(run.runId)}/blobs/${stored.document}`);
    }
    if (!answer.ok) throw await refusalOf(answer);
    return answer.text();
}

const inAddress = (x: Version) => versionInAddress(x.version, x.sha) ?? LATEST;
function One({ name }: { name: string }) {
    const { version: wanted, part: tab } = definitionAt(place.value);
    const all = useAsked(() => plans(name), [name]), plan = all.value?.find((p) => p.name === name);
    const v = (wanted ? (plan?.versions.find((x) => x.version === wanted) ?? plan?.versions.find((x) => inAddress(x) === wanted || x.sha?.startsWith(wanted))) : undefined) ?? plan?.versions[0];
    useCommand(`cairn ls ${shellWord("plan=" + name)}`, name);
    const read = useAsked(async () => (v ? { of: v.version, text: await documentOf(v, name) } : undefined), [v?.version, v?.runs[0]?.runId]);
    const text = { ...read, value: read.value?.of === v?.version ? read.value?.text : undefined }; // never the text of the version before under the name of this one
    if (all.error && !plan) return <Failure error={all.error} again={all.again} />;
    if (!all.value) return <div class="page"><Skeleton /></div>;
    if (!plan || !v) return <Empty title="There is no such definition"><a class="link" href="/definitions">Definitions</a></Empty>;
    const to = (t: typeof tab) => go(definitionHref(name, wanted, t));
    return (
        <div class="page scroll">
            <div class="row wrap"><h1 class="grow ell" dir="auto">{name}</h1>{v.kept && !v.kept.approvedAt ? <Button why={mayAs("Admin") ? undefined : "Needs the role Admin"} onClick={() => void send("POST", `/v1/definitions/${several(name)}/versions/${v.kept!.sha256}:approve`, {}).then(() => { toast("Approved."); all.again(); }, trouble)}>Approve</Button> : null}<Button kind="pri" onClick={() => to("start")}>Start…</Button></div>
            <div class="def">
                <aside class="card" aria-label="Versions"><h3>Versions</h3>{plan.versions.map((x) => <button key={x.version} class="ver" aria-pressed={x === v} onClick={() => go(definitionHref(name, inAddress(x), tab))}><span class="mono">@{sha7(x.version)}</span><span class="faint">{count(x.runs.length, "run")}{x.kept?.approvedAt ? " · approved" : ""}</span></button>)}</aside>
                <section class="vstack">
                    <Seg label="Parts" value={tab} onPick={to} items={PARTS.map((p): [typeof tab, string] => [p, p[0]!.toUpperCase() + p.slice(1)])} />
                    {tab === "runs" ? (v.runs.length ? <div class="tablebox"><table class="grid" aria-label="Runs"><thead><tr><th scope="col">State</th><th scope="col">Run</th><th scope="col">Why</th><th scope="col" class="r">Started</th><th scope="col" class="r">Took</th></tr></thead><tbody>{v.runs.slice(0, 100).map((r) => <tr key={r.runId}><td><span class={"row " + rowState(r)}><Glyph state={rowState(r)} />{word(rowState(r))}</span></td><td><a class="link mono" href={"/runs/" + idOf(r.runId)}>{short(r.runId)}</a></td><td class="muted">{oneLine(r.cause)}</td><td class="r"><Time at={r.startedAt} /></td><td class="r num"><Since from={r.startedAt} to={r.endedAt} /></td></tr>)}</tbody></table></div> : <Empty title="This version has never run" />)
                        : tab === "grid" ? <Grid query={`plan="${name}"`} /> : tab === "graph" ? (v.runs[0] ? <Drawn run={v.runs[0].runId} key={v.version} /> : <Empty title="This version has never run">Its picture is made from the document of a run.</Empty>)
                        : text.error ? <Failure error={text.error} again={text.again} /> : text.value === undefined ? <Skeleton rows={4} /> : tab === "start" ? <Form document={text.value} from={v.runs[0]?.runId ?? null} key={v.version} /> : <Source text={laidOut(text.value)} key={v.version} />}
                </section>
            </div>
        </div>
    );
}
// The document as a picture, before anything of it has run.
function Drawn({ run }: { run: string }) {
    const asked = useAsked(() => getJson<Graph>(`/v1/runs/${idOf(run)}/graph`), [run]);
    if (asked.error) return <Failure error={asked.error} again={asked.again} />;
    return asked.value ? <Plan graph={asked.value} /> : <Skeleton rows={3} height={80} />;
}
function Plan({ graph }: { graph: Graph }) {
    const props = useMemo((): GraphProps => {
        const blank = { runId: "", status: "PENDING", steps: graph.steps.map((s) => ({ stepId: s.stepId, status: "PENDING" })) } as unknown as Snapshot;
        return { model: { graph: signal<Graph | null>(graph), graphError: signal<string | null>(null) }, run: blank, items: itemsOf(blank, graph), step: null, past: false, open: () => {} };
    }, [graph]);
    return <div class="drawn"><GraphTab {...props} /></div>;
}
function useEditor(text: string, changed: (t: string) => void, readOnly: boolean) {
    const host = useRef<HTMLDivElement>(null), editor = useRef<Editor | null>(null);
    useEffect(() => {
        let mine = true;
        void import("./editor").then((m) => { if (mine && host.current) editor.current = m.open(host.current, text, changed, readOnly); });
        return () => { mine = false; editor.current?.close(); };
    }, []);
    return { host, editor };
}
function Source({ text }: { text: string }) {
    const { host } = useEditor(text, () => {}, true);
    return <div class="editor" ref={host} />;
}

function Start() {
    useCommand("cairn run FILE", "Start a run");
    return <div class="page scroll"><h1>Start a run</h1><Form document={example} from={null} /></div>;
}
const example = `# A node workflow. Steps run as soon as what they depend on has succeeded.
name: hello
inputs:
  who: world
nodes:
  - id: greet
    bash: echo "hello, $INPUTS.who"
  - id: shout
    depends_on: [greet]
    bash: echo "$greet.output" | tr a-z A-Z
`;

interface Report { planId?: string; status: string; errors: Note[]; warnings: Note[] }
// What is wrong with a document is the answer that is wanted, whichever way the server gives it.
async function validated(document: string): Promise<Report> {
    try {
        return await send<Report>("POST", "/v1/plans:validate", { document });
    } catch (e) {
        const problem = e instanceof Refusal && e.status === 422 ? (e.problem as { errors?: (Note & { severity?: string })[] }) : null;
        if (!problem?.errors?.length) throw e;
        return { status: "ERRORS", errors: problem.errors.filter((n) => n.severity !== "warning"), warnings: problem.errors.filter((n) => n.severity === "warning") };
    }
}
interface Note { line?: number; column?: number; message?: string; id?: string; code?: string; hint?: string }
// Left what will run and with what, right whether it can. Nothing is sent before it is valid.
function Form({ document, from }: { document: string; from: string | null }) {
    const [text, set] = useState(document), [inputs, give] = useState<Record<string, unknown>>({}), [raw, setRaw] = useState("{}"), [asJson, switchTo] = useState(false), [report, got] = useState<Report | null>(null), [error, fail] = useState(""), [busy, work] = useState(false), [graph, draw] = useState<Graph | null>(null);
    const { host, editor } = useEditor(document, set, false);
    useEffect(() => {
        const own = defaults(text);
        if (from) getJson<{ inputs: Record<string, unknown> }>(`/v1/runs/${idOf(from)}/payload`).then((p) => { const all = { ...own, ...p.inputs }; give(all); setRaw(JSON.stringify(all, null, 2)); }, () => {});
        else { give(own); setRaw(JSON.stringify(own, null, 2)); }
    }, [from]);
    useEffect(() => {
        let mine = true;
        const wait = setTimeout(() => validated(text).then((r) => {
            if (!mine) return;
            got(r);
            fail("");
            if (r.errors.length === 0) send<Graph>("POST", "/v1/plans:graph", { document: text }).then((g) => { if (mine) draw(g); }, () => {}); // the picture of before stays until the document is one again
            const list = [...r.errors.map((e) => [e, "error"] as const), ...r.warnings.map((w) => [w, "warning"] as const)];
            editor.current?.problems(list.map(([n, severity]): Problem => ({ line: n.line ?? 1, column: n.column ?? 1, message: n.message ?? "", severity })));
        }, (e) => { if (mine) { got(null); fail(explain(e)); } }), 250);
        return () => { mine = false; clearTimeout(wait); };
    }, [text]);
    const start = async () => {
        work(true);
        fail("");
        try {
            const value = asJson ? (JSON.parse(raw) as Record<string, unknown>) : inputs;
            const run = await send<{ runId: string }>("POST", "/v1/runs", { document: text, ...(Object.keys(value).length ? { inputs: value } : {}) }, { "Idempotency-Key": uuid() });
            toast("Started " + short(run.runId) + ".");
            go("/runs/" + idOf(run.runId));
        } catch (e) {
            fail(explain(e));
        } finally {
            work(false);
        }
    };
    const notes = report ? [...report.errors.map((n) => ({ ...n, bad: true })), ...report.warnings.map((n) => ({ ...n, bad: false }))] : [];
    return (
        <form class="start" onSubmit={(e) => { e.preventDefault(); void start(); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) { e.preventDefault(); void start(); } }}>
            <div><div class="editor" ref={host} /><p class="hint">Esc, then Tab, leads out of the editor.</p></div>
            <div class="vstack">
                <div class="row"><h3 class="grow">Input</h3><button type="button" class="link" onClick={() => { if (asJson) try { give(JSON.parse(raw) as Record<string, unknown>); } catch { return; } else setRaw(JSON.stringify(inputs, null, 2)); switchTo(!asJson); }}>{asJson ? "As a form" : "As JSON"}</button></div>
                {asJson ? <Field label="Input, as JSON"><textarea class="mono" rows={8} value={raw} spellcheck={false} onInput={(e) => setRaw(e.currentTarget.value)} /></Field> : Object.keys(inputs).length === 0 ? <p class="muted">The document asks for nothing.</p> : Object.entries(inputs).map(([k, v]) => (
                    <Field label={k} key={k} hint={typeof v === "object" && v !== null ? "JSON" : typeof v === "number" ? "a number" : undefined}>
                        {typeof v === "boolean" ? <input type="checkbox" checked={v} onChange={(e) => give({ ...inputs, [k]: e.currentTarget.checked })} /> : typeof v === "number" ? <input type="number" step="any" value={v} onInput={(e) => give({ ...inputs, [k]: e.currentTarget.valueAsNumber })} /> : typeof v === "object" && v !== null ? <textarea class="mono" rows={3} defaultValue={JSON.stringify(v)} onChange={(e) => { try { give({ ...inputs, [k]: JSON.parse(e.currentTarget.value) as unknown }); fail(""); } catch { fail(k + " is no JSON."); } }} /> : <input value={String(v ?? "")} onInput={(e) => give({ ...inputs, [k]: e.currentTarget.value })} />}
                    </Field>
                ))}
                <div role="status" class="vstack tight">
                    {report ? (notes.length === 0 ? <span class="done row"><Glyph state="done" />Valid: {report.planId}</span> : notes.slice(0, 30).map((n, i) => <div class="row top" key={i}><Glyph state={n.bad ? "failed" : "retrying"} /><span>{n.line ? <span class="mono faint">line {n.line} </span> : null}{n.message}{n.hint ? <span class="muted"> {n.hint}</span> : null}</span></div>)) : <span class="faint">Checking…</span>}
                </div>
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                {graph ? <section class="will" aria-label="What would run"><h3>{count(graph.steps.length, "step")} would run</h3><Plan graph={graph} key={graph.steps.map((s) => s.stepId).join("\n") + graph.arcs.length} /></section> : null}
                <div><Button kind="pri" type="submit" disabled={busy || !report || report.errors.length > 0} why={mayAs("Operator") ? undefined : "Needs the role Operator"}>Start</Button></div>
            </div>
        </form>
    );
}
// The inputs that a document names, when it is JSON or has them as plain values in a block of YAML.
export function defaults(text: string): Record<string, unknown> {
    try {
        const value = JSON.parse(text) as { inputs?: Record<string, unknown>; workload?: Record<string, unknown> };
        return value.inputs ?? value.workload ?? {};
    } catch { /* YAML */ }
    const out: Record<string, unknown> = {}, block = /^(?:inputs|workload):[ \t]*\n((?:[ \t]+.*\n?|\s*\n)+)/m.exec(text)?.[1] ?? "";
    for (const line of block.split("\n")) {
        const found = /^ {1,8}([\w-]+):[ \t]+([^#\n[{|>&*!]+?)\s*(?:#.*)?$/.exec(line);
        if (!found) continue;
        const v = found[2]!.trim(), plain = /^(["'])(.*)\1$/.exec(v)?.[2];
        out[found[1]!] = plain ?? (v === "true" ? true : v === "false" ? false : /^-?\d+(\.\d+)?$/.test(v) ? Number(v) : v);
    }
    return out;
}
