// Compare two runs, or two moments of one: a sentence first, then what differs. What is equal is folded.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, getJson, idOf, mayDo, me, refusalOf } from "./api";
import { diffJson, diffLines } from "./diff";
import { follow } from "./live";
import { place, setQuery } from "./route";
import { resolve } from "./run/model";
import { moved, useCommand } from "./shell";
import { emphasis, Chip, Glyph, runState, type State, stepState, word } from "./states";
import type { Graph, RunRow, Snapshot, Step } from "./types";
import { Button, Empty, explain, Hidden, Icon, parsed, Skeleton, useAsked } from "./ui";
import { count, oneLine, shellWord, short, span } from "./words";

interface Side { id: string; at: string | null; run: Snapshot; graph: Graph | null; inputs: unknown; document: string | null; states: Map<string, State>; steps: Map<string, Step> }
async function side(text: string): Promise<Side> {
    const [name, at] = text.split("@") as [string, string | undefined], id = await resolve(name), path = "/v1/runs/" + idOf(id);
    const [run, graph, payload] = await Promise.all([getJson<Snapshot>(path + (at ? "?at=" + at : "")), getJson<Graph>(path + "/graph").catch(() => null), mayDo("run.payload") ? getJson<{ inputs: unknown }>(path + "/payload").catch(() => ({ inputs: undefined })) : { inputs: undefined }]);
    const sha = (run.planRef as { sha256?: string } | undefined)?.sha256;
    const document = sha ? await ask(`/v1/store/runs/${idOf(id)}/blobs/${sha}`).then(async (a) => { if (!a.ok) throw await refusalOf(a); return a.text(); }).catch(() => null) : null;
    const kinds = new Map(graph?.steps.map((s) => [s.stepId, s.kind]));
    return { id, at: at ?? null, run, graph, inputs: payload.inputs, document, states: new Map((run.steps as Step[]).map((s) => [s.stepId, stepState(s, run, kinds.get(s.stepId.replace(/\[\d+\]/g, "")))])), steps: new Map((run.steps as Step[]).map((s) => [s.stepId, s])) };
}

// The last good run of the plan before this one: what one compares a failure with.
async function propose(b: string): Promise<string | null> {
    const id = await resolve(b.split("@")[0]!), run = await getJson<Snapshot>("/v1/runs/" + idOf(id));
    const find = async (q: string) => (await getJson<{ items: RunRow[] }>("/v1/runs?limit=5&q=" + encodeURIComponent(q))).items.find((r) => r.runId !== id)?.runId ?? null;
    const plan = '"' + (run.planId ?? "") + '"';
    return (await find(`plan=${plan} status=COMPLETED created<${run.startedAt ?? "now"}`)) ?? (await find(`plan=${plan}`));
}

export function Compare() {
    const a = place.value.query.get("a") ?? "", b = place.value.query.get("b") ?? "";
    useCommand(a && b ? `cairn diff ${shellWord(a.replace(/^[0-9a-f-]{36}/, short))} ${shellWord(b.replace(/^[0-9a-f-]{36}/, short))}` : "cairn diff RUN RUN", "Compare");
    useEffect(() => follow("/v1/events", Number.MAX_SAFE_INTEGER, () => { moved.value++; }), []);
    useEffect(() => {
        // A proposal that comes late replaces nothing that was chosen meanwhile.
        const offer = (name: string, run: string | null | undefined) => { if (run && place.value.path[0] === "compare" && !place.value.query.get(name)) setQuery({ [name]: run }, "replace"); };
        if (b && !a) propose(b).then((found) => offer("a", found), () => {});
        if (!a && !b) getJson<{ items: RunRow[] }>("/v1/runs?limit=1&q=status%3DFAILED").then((p) => offer("b", p.items[0]?.runId), () => {});
    }, [a, b]);
    const both = useAsked(async () => (a && b ? await Promise.all([side(a), side(b)]) : null), [a, b]);
    return (
        <div class="page scroll">
            <h1>Compare</h1>
            <div class="pickers"><Picker label="Before" value={a} name="a" other={b} /><Picker label="After" value={b} name="b" other={a} /></div>
            {both.error ? <div class="field err" role="alert"><Glyph state="failed" />{explain(both.error)}</div> : both.value ? <Differences a={both.value[0]} b={both.value[1]} /> : a && b ? <Skeleton rows={5} /> : <Empty title="Choose two runs">Two runs, or two moments of one (RUN@EVENT).</Empty>}
        </div>
    );
}
function Picker({ label, value, name, other }: { label: string; value: string; name: string; other: string }) {
    const [text, set] = useState(value), recent = useAsked(() => getJson<{ items: RunRow[] }>("/v1/runs?limit=30"), []);
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => { if (document.activeElement !== field.current) set(value); }, [value]); // nothing changes under somebody who types
    return (
        <form class="picker card" onSubmit={(e) => { e.preventDefault(); setQuery({ [name]: text.trim() || null }); }}>
            <label class="field"><span class="lab">{label}</span><span class="row"><input class="mono" ref={field} value={text} placeholder="RUN or RUN@EVENT" spellcheck={false} onInput={(e) => set(e.currentTarget.value)} onBlur={() => { if (!text.trim()) set(value); }} /><Button type="submit">Show</Button></span></label>
            <select aria-label={label + ": recent runs"} value="" onChange={(e) => { if (e.currentTarget.value) setQuery({ [name]: e.currentTarget.value }); }}><option value="">Recent runs…</option>{recent.value?.items.filter((r) => r.runId !== other).map((r) => <option key={r.runId} value={r.runId}>{r.planId} · {short(r.runId)} · {word(runState(r))}</option>)}</select>
        </form>
    );
}

function Section({ title, equal, children, open = true }: { title: string; equal: number; children: ComponentChildren; open?: boolean }) {
    return <details class="card section" open={open}><summary><b>{title}</b> {equal ? <span class="faint">{equal} equal</span> : null}</summary>{children}</details>;
}
const show = (v: unknown) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v));
const mark = { added: "+", removed: "−", changed: "≠" } as const;
function Changes({ a, b, root }: { a: unknown; b: unknown; root: string }) {
    const list = diffJson(a, b, root);
    if (!list.length) return <p class="muted">Equal.</p>;
    return <div class="diffs" role="table" aria-label="Differences">{list.slice(0, 200).map((c) => <div class={"drow " + c.kind} role="row" key={c.path}><span role="cell" class="gut" title={c.kind}>{mark[c.kind]}<span class="sr">{c.kind}</span></span><span role="cell" class="mono">{c.path}</span><span role="cell" class="mono was">{show(c.a)}</span><span role="cell" class="mono is">{show(c.b)}</span></div>)}</div>;
}

function Differences({ a, b }: { a: Side; b: Side }) {
    const ids = [...new Set([...a.states.keys(), ...b.states.keys()])], loud = (id: string) => Math.min(...[a, b].map((s) => emphasis.indexOf(s.states.get(id) ?? "done"))), differ = ids.filter((id) => a.states.get(id) !== b.states.get(id)).sort((x, y) => loud(x) - loud(y));
    const parts = differ.slice(0, 3).map((id) => `${id}: ${word(a.states.get(id) ?? "not there")} → ${word(b.states.get(id) ?? "not there")}`);
    const sentence = differ.length === 0 ? "Every step came out the same." : parts.join("; ") + (differ.length > 3 ? `; ${count(differ.length - 3, "more step")}` : "") + ".";
    const out = (s: Side) => Object.fromEntries([...s.steps].filter(([, x]) => x.result !== undefined).map(([id, x]) => [id, parsed(x.result)]));
    const took = (s: Step | undefined) => (s?.startedAt && s.completedAt ? Date.parse(s.completedAt) - Date.parse(s.attempts?.[0]?.startedAt ?? s.startedAt) : 0);
    const longest = Math.max(1, ...ids.map((id) => Math.max(took(a.steps.get(id)), took(b.steps.get(id)))));
    const lines = a.document !== null && b.document !== null ? diffLines(pretty(a.document), pretty(b.document)) : null, changed = lines?.filter((l) => l.kind !== "equal").length ?? 0;
    const name = (s: Side) => <a class="link" href={`/runs/${idOf(s.id)}${s.at ? "?at=" + s.at : ""}`}><b dir="auto">{s.run.planId}</b> <span class="mono">{short(s.id)}{s.at ? "@" + s.at : ""}</span></a>;
    return (
        <>
            <p class="verdict" dir="auto">{sentence}</p>
            <div class="row wrap"><Chip state={runState(a.run)} />{name(a)}<Icon name="right" /><Chip state={runState(b.run)} />{name(b)}</div>
            <Section title="Steps" equal={ids.length - differ.length}>
                {differ.length ? <div class="diffs" role="table" aria-label="Steps that differ">{differ.slice(0, 300).map((id) => { const x = a.states.get(id), y = b.states.get(id); return <div class={"drow " + (!x ? "added" : !y ? "removed" : "changed")} role="row" key={id}><span role="cell" class="gut">{!x ? "+" : !y ? "−" : "≠"}<span class="sr">{!x ? "added" : !y ? "removed" : "changed"}</span></span><span role="cell"><b dir="auto">{id}</b></span><span role="cell" class="row">{x ? <><Glyph state={x} /><span>{word(x)}</span></> : <span class="faint">not there</span>}</span><span role="cell" class="row">{y ? <><Glyph state={y} /><span>{word(y)}</span></> : <span class="faint">not there</span>}<span class="mono muted ell">{oneLine(b.steps.get(id)?.error?.message)}</span></span></div>; })}</div> : <p class="muted">Equal.</p>}
            </Section>
            <Section title="Input" equal={0}>{mayDo("run.payload") ? <Changes a={a.inputs ?? {}} b={b.inputs ?? {}} root="$INPUTS" /> : <p><Hidden /></p>}</Section>
            <Section title="Document" equal={lines ? lines.length - changed : 0} open={changed > 0}>{lines === null ? <p class="muted">A document cannot be read.</p> : changed === 0 ? <p class="muted">Equal.</p> : <pre class="text lines" tabIndex={0}>{lines.map((l, i) => (l.kind === "equal" && !near(lines, i) ? null : <span key={i} class={"dl " + l.kind}>{l.kind === "added" ? "+ " : l.kind === "removed" ? "− " : "  "}{l.text}{"\n"}</span>))}</pre>}</Section>
            <Section title="Output" equal={0}>{me.value?.payloads === false ? <p><Hidden /></p> : <Changes a={out(a)} b={out(b)} root="$" />}</Section>
            <Section title="Timing" equal={0}><div class="pairs">{ids.slice(0, 300).map((id) => { const x = took(a.steps.get(id)), y = took(b.steps.get(id)); return x || y ? <div class="pair" key={id}><span class="ell" dir="auto">{id}</span><span class="bars"><i class="was" style={{ width: (x / longest) * 100 + "%" }} /><i class={"is " + (b.states.get(id) === "failed" ? "bad" : "")} style={{ width: (y / longest) * 100 + "%" }} /></span><span class="num muted r">{span(x) || "–"} → {span(y) || "–"}</span></div> : null; })}</div></Section>
        </>
    );
}
const near = (lines: { kind: string }[], i: number) => lines.slice(Math.max(0, i - 2), i + 3).some((l) => l.kind !== "equal");
const pretty = (text: string) => { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } };
