// What a step was given: as the document says it, beside what became of that when the attempt began.
import { getJson, idOf, mayDo, several } from "../api";
import { place } from "../route";
import type { Step, StepInputs } from "../types";
import { explain, Hidden, Skeleton, useAsked, Value } from "../ui";
import { count, span } from "../words";
import { Given } from "./io";
import type { Item, RunModel } from "./model";

interface TaskGiven { task: string; kind?: string; iteration?: number; attempt?: number; seq?: number; with?: unknown; unknown?: { path?: string; text: string; why: string }[] }
const SHOWN = 20;
const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

export function Inputs({ model, item, past }: { model: RunModel; item: Item; past: boolean }) {
    const plain = item.id.replace(/\[\d+\]/g, "").replace(/:run:\d+$/, ""), def = model.graph.value?.steps.find((s) => s.stepId === plain), at = model.at.value;
    const deps = model.graph.value?.arcs.filter((a) => a.to === plain).map((a) => a.from) ?? [], items = model.items.value;
    return (
        <>
            <div class="sec"><h3>As the document says it</h3>{def ? <dl class="kv"><dt>Kind</dt><dd>{def.kind === "tasks" ? (def.tasks ?? []).map((t) => `${t.label} (${t.kind})`).join(" → ") || "routes" : def.kind}</dd>{def.when ? <><dt>Condition</dt><dd class="mono">{def.when}</dd></> : null}{def.triggerRule ? <><dt>Rule</dt><dd class="mono">{def.triggerRule}</dd></> : null}{def.maxAttempts ? <><dt>Attempts</dt><dd>at most {def.maxAttempts}</dd></> : null}{def.timeoutMs ? <><dt>Time limit</dt><dd>{span(def.timeoutMs)}</dd></> : null}</dl> : <p class="muted">The document cannot be read.</p>}</div>
            <Rendered model={model} item={item} at={past ? at : null} />
            <div class="sec"><h3>What it could read</h3>{deps.length ? deps.map((d) => { const s = items.get(d)?.step as Step | undefined; return <div class="out" key={d}><b dir="auto">{d}</b>{s?.result !== undefined ? <Value value={s.result} /> : <span class="faint">gave nothing</span>}</div>; }) : <p class="muted">It depends on no step.</p>}</div>
            <div class="sec"><h3>Input of the run</h3><Given run={model.id} /></div>
        </>
    );
}

function Rendered({ model, item, at }: { model: RunModel; item: Item; at: string | null }) {
    const may = mayDo("run.payload"), known = model.graph.value !== null || model.graphError.value !== null, tasks = item.def?.kind === "tasks", n = Number(place.value.query.get("item") ?? 0), attempt = tasks ? 0 : Number(place.value.query.get("attempt") ?? 0);
    const query = new URLSearchParams({ ...(at ? { at } : {}), ...(attempt ? { attempt: String(attempt) } : {}) }).toString();
    const asked = useAsked(async () => (may && known ? await getJson<StepInputs>(`/v1/runs/${idOf(model.id)}/steps/${several(item.id + (tasks && n ? `[${n}]` : ""))}/inputs${query ? "?" + query : ""}`) : null), [model.id, item.id, known, n, query, at ? "" : item.state, item.step.attempts?.length]);
    if (!may) return <div class="sec"><h3>What it was given</h3><p><Hidden /></p></div>;
    if (asked.error && !asked.value) return <div class="sec"><h3>What it was given</h3><p class="muted">{explain(asked.error)}</p></div>;
    if (!asked.value) return <Skeleton rows={2} height={40} />;
    const v = asked.value;
    if (tasks) return <Tasks given={(v.given ?? []) as unknown as TaskGiven[]} ahead={(v.ahead ?? []) as unknown as TaskGiven[]} />;
    const source = (typeof v.source === "object" && v.source ? v.source : {}) as Record<string, unknown>, rendered = v.rendered as Record<string, unknown> | null, env = Object.entries(v.env ?? {});
    return (
        <div class="sec">
            <h3>{v.attempt ? `Attempt ${v.attempt} was given` : "With what is known now it would be given"}</h3>
            {v.why ? <p class="warn-text">{v.why}</p> : null}
            {Object.keys(source).length === 0 ? <p class="muted">Nothing.</p> : Object.entries(source).map(([k, written]) => {
                const became = rendered?.[k];
                return (
                    <div class="given" key={k}>
                        <b class="mono">{k}</b>
                        {rendered === null || became === undefined || same(written, became) ? <Value value={written} /> : <div class="pair"><div><span class="faint">written</span><Value value={written} /></div><div><span class="faint">given</span><Value value={became} /></div></div>}
                    </div>
                );
            })}
            {env.length ? <dl class="kv refs">{env.map(([k, text]) => <><dt class="mono">{k}</dt><dd><Value value={text} /></dd></>)}</dl> : null}
        </div>
    );
}

function Tasks({ given, ahead }: { given: TaskGiven[]; ahead: TaskGiven[] }) {
    const one = (t: TaskGiven, i: number) => (
        <div class="given" key={i}>
            <b>{t.task} <span class="faint">{[t.kind, t.iteration ? "item " + t.iteration : "", t.attempt && t.attempt > 1 ? "attempt " + t.attempt : ""].filter(Boolean).join(" · ")}</span></b>
            <Value value={t.with ?? {}} />
            {t.unknown?.map((u, k) => <p class="warn-text" key={k}><span class="mono">{u.text}</span>: {u.why}</p>)}
        </div>
    );
    return (
        <>
            <div class="sec"><h3>What its tasks were given</h3>{given.length ? given.slice(0, SHOWN).map(one) : <p class="muted">None has begun.</p>}{given.length > SHOWN ? <p class="faint">{count(given.length - SHOWN, "more attempt")}: choose an item under Items.</p> : null}</div>
            {ahead.length ? <div class="sec"><h3>With what is known now</h3>{ahead.map(one)}</div> : null}
        </>
    );
}
