// The step over any tab: why, logs, input, output, attempts. It opens from what is in memory; only logs and why are fetched.
import { useEffect, useRef } from "preact/hooks";
import { act, again, whyNot } from "../acts";
import { getJson, idOf, mayDo, several } from "../api";
import { drawerWidth } from "../prefs";
import { place, setQuery } from "../route";
import { Chip, Glyph, word } from "../states";
import type { Snapshot, Step } from "../types";
import { Button, Clock, copy, Empty, explain, Guarded, Icon, Skeleton, useAsked, Value } from "../ui";
import { count, span, strip } from "../words";
import { Files } from "./files";
import { Inputs } from "./inputs";
import { Inside } from "./inside";
import { Logs } from "./logs";
import type { Item, RunModel } from "./model";
import type { TabProps } from "./run";
import { Chain, useWhy } from "./why";

const tabs = ["why", "logs", "input", "output", "attempts"] as const;

export function Drawer({ model, items, step, past, open, live }: TabProps & { step: string; live: Snapshot }) {
    const item = items.get(step), show = (place.value.query.get("show") ?? "why") as (typeof tabs)[number] | "items";
    const title = useRef<HTMLHeadingElement>(null);
    useEffect(() => { if (document.activeElement?.id !== "find-step") title.current?.focus({ preventScroll: true }); }, [step]); // who looks for a step goes on typing
    const drag = (e: PointerEvent) => {
        const from = e.clientX, w = drawerWidth.value;
        const move = (m: PointerEvent) => { drawerWidth.value = Math.max(360, Math.min(720, w + from - m.clientX)); };
        window.addEventListener("pointermove", move);
        window.addEventListener("pointerup", () => window.removeEventListener("pointermove", move), { once: true });
    };
    if (!item) return <aside class="drawer" aria-label={"Step " + step}><div class="dh"><div class="row"><h2 class="nm ell grow" ref={title} tabIndex={-1}>{step}</h2><button class="icon" aria-label="Close" onClick={() => open(null)}><Icon name="x" /></button></div></div><Empty title="There is no such step at this moment" /></aside>;
    const tries = item.step.attempts?.length ?? 0, group = groupOf(model, items, item);
    const shown = group && show !== "logs" && !place.value.query.get("one") ? [...tabs, "items" as const] : item.children.length || item.step.loop || item.list ? [...tabs, "items" as const] : tabs;
    const it = { runId: model.id, planId: live.planId ?? "" }, ended = ["COMPLETED", "FAILED", "CANCELLED"].includes(live.status);
    return (
        <aside class="drawer" aria-label={"Step " + step} style={{ width: drawerWidth.value + "px" }}>
            <div class="grip" role="separator" aria-orientation="vertical" aria-label="Width of the drawer" aria-valuenow={drawerWidth.value} aria-valuemin={360} aria-valuemax={720} tabIndex={0} onPointerDown={drag} onKeyDown={(e) => { if (e.key === "ArrowLeft" || e.key === "ArrowRight") { e.preventDefault(); e.stopPropagation(); drawerWidth.value = Math.max(360, Math.min(720, drawerWidth.value + (e.key === "ArrowLeft" ? 24 : -24))); } }} />
            <div class="dh">
                <div class="row">
                    <Chip state={item.state} />
                    <h2 class="nm ell grow" ref={title} tabIndex={-1} dir="auto">{item.id}</h2>
                    {!past && item.state === "held" ? <><Button small onClick={() => act("RETRY_STEP", it, item.id, () => void model.refresh())}>Retry…</Button><Button small onClick={() => act("SKIP_STEP", it, item.id, () => void model.refresh())}>Skip…</Button></> : null}
                    {!past && ended && item.state === "failed" ? <Button small why={whyNot("RETRY_RUN", live)} onClick={() => again("retry", live, { step: item.id })}>Retry…</Button> : null}
                    <button class="icon" aria-label="Close" onClick={() => open(null)}><Icon name="x" /></button>
                </div>
                <div class="muted">{[item.def?.name ?? item.kind, item.took !== null ? span(item.took) : "", tries > 1 ? count(tries, "attempt") : "", (item.step.visit ?? 0) > 1 ? item.step.visit + " visits" : ""].filter(Boolean).join(" · ")}{item.step.childRunId ? <> · <a class="link" href={"/runs/" + encodeURIComponent(item.step.childRunId)}>its run</a></> : null}</div>
            </div>
            <div class="tabs" role="tablist" aria-label="About the step">
                {shown.map((t) => <button key={t} role="tab" aria-selected={t === show} tabIndex={t === show ? 0 : -1} onClick={() => setQuery({ show: t === "why" ? null : t, attempt: null })} onKeyDown={(e) => { const list = shown as readonly string[], i = list.indexOf(t) + (e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0); if (list[i] && list[i] !== t) { e.stopPropagation(); (e.currentTarget.parentElement!.children[i] as HTMLElement).focus(); setQuery({ show: list[i] === "why" ? null : list[i]!, attempt: null }); } }}>{t[0]!.toUpperCase() + t.slice(1)}</button>)}
            </div>
            <div class="dbody" key={show + step}>
                <Guarded>{show === "logs" ? <Logs model={model} item={item} past={past} /> : show === "input" ? <Inputs model={model} item={item} past={past} /> : show === "output" ? <Output model={model} item={item} past={past} /> : show === "attempts" ? <Attempts run={model.id} item={item} /> : show === "items" ? (item.step.loop || item.list) && !group ? <Inside model={model} item={item} run={live} /> : <Items group={group ?? item.children} open={open} /> : <WhyTab model={model} step={step} past={past} open={open} />}</Guarded>
            </div>
        </aside>
    );
}

function WhyTab({ model, step, past, open }: { model: RunModel; step: string; past: boolean; open: TabProps["open"] }) {
    const why = useWhy(model, step);
    if (why.error && !why.value) return <div class="muted">{explain(why.error)}</div>;
    if (!why.value || why.value.step !== step) return <Skeleton rows={4} height={40} />;
    return <Chain why={why.value} by={why.by} model={model} open={open} past={past} />;
}

function Output({ model, item, past }: { model: RunModel; item: Item; past: boolean }) {
    const here = item.step.result;
    const large = useAsked(async () => (here === undefined && item.state === "done" && !past && mayDo("step.output") ? await getJson<{ result: unknown; truncated: boolean }>(`/v1/runs/${idOf(model.id)}/steps/${several(item.id)}/output`) : null), [item.id, item.state]);
    const value = here !== undefined ? here : large.value?.result;
    return (
        <>
            {value !== undefined && value !== null ? <div class="card"><Value value={value} /></div> : large.busy && item.state === "done" && here === undefined ? <Skeleton rows={3} height={24} /> : item.step.artifacts?.length ? null : <Empty title="No output">{item.id} is {word(item.state)}.</Empty>}
            {item.step.truncated ? <p class="warn-text">It is cut: the step gave more than is kept.</p> : null}
            <Files run={model.id} refs={item.step.artifacts} step={item.id} />
        </>
    );
}

function Attempts({ run, item }: { run: string; item: Item }) {
    const tries = item.step.attempts ?? [];
    if (!tries.length) return <Empty title="Never started" />;
    return (
        <>
            {[...tries].reverse().map((a, i) => (
                <div class="card" key={i}>
                    <h3 class="row"><Glyph state={a.error ? "failed" : a.endedAt ? "done" : "running"} />Attempt {a.logicalAttemptId}{a.engineAttemptId > 1 ? `, sent ${a.engineAttemptId} times` : ""}</h3>
                    <dl class="kv">
                        {a.startedAt ? <><dt>Started</dt><dd class="mono"><Clock at={a.startedAt} withDay /></dd></> : null}
                        <dt>Took</dt><dd class="num">{a.endedAt && a.startedAt ? span(Date.parse(a.endedAt) - Date.parse(a.startedAt)) : "not ended"}</dd>
                        {a.error ? <><dt>Error</dt><dd class="mono failed" dir="auto">{a.error.code} {strip(a.error.message)}</dd>{a.error.detail ? <><dt>It wrote</dt><dd><pre class="text">{strip(a.error.detail)}</pre></dd></> : null}<dt>May pass</dt><dd>{a.error.retryable ? "yes" : "no"}</dd></> : null}
                        {item.def?.kind === "tasks" ? null : <><dt title="The same for every time that this attempt is sent: what a receiver tells a repetition from a new request by">Idempotency key</dt><dd><button class="link mono" title="Copy" onClick={() => void copy(`${run}:${item.id}:${a.logicalAttemptId}`)}>{run}:{item.id}:{a.logicalAttemptId}</button></dd></>}
                        <dt>Logs</dt><dd><button class="link" onClick={() => setQuery({ show: "logs", attempt: String(a.logicalAttemptId) })}>of this attempt</button></dd>
                    </dl>
                </div>
            ))}
        </>
    );
}

// Steps that the graph shows as one stack with this one.
function groupOf(model: RunModel, items: Map<string, Item>, item: Item): Item[] | null {
    const arcs = model.graph.value?.arcs ?? [];
    if (items.size < 8 || arcs.length > 60000) return null;
    const ins = new Map<string, string[]>(), outs = new Map<string, string[]>();
    for (const a of arcs) { (ins.get(a.to) ?? ins.set(a.to, []).get(a.to)!).push(a.from); (outs.get(a.from) ?? outs.set(a.from, []).get(a.from)!).push(a.to); }
    const key = (id: string) => (ins.get(id) ?? []).join("\n") + "|" + (outs.get(id) ?? []).join("\n"), own = key(item.id);
    if (own === "|") return null;
    const all = [...items.values()].filter((i) => i.kind === item.kind && key(i.id) === own);
    return all.length >= 8 ? all : null;
}
function Items({ group, open }: { group: Item[]; open: TabProps["open"] }) {
    const page = Number(place.value.query.get("page") ?? 0);
    const rank = (i: Item) => ["failed", "held", "approval", "retrying", "event", "running", "waiting", "not_run", "skipped", "done"].indexOf(i.state);
    const list = [...group].sort((a, b) => rank(a) - rank(b)), N = 100;
    return (
        <div class="sec">
            <h3>{count(list.length, "step")}</h3>
            <div class="list-items">{list.slice(page * N, page * N + N).map((i) => <button key={i.id} onClick={() => open(i.id)}><Glyph state={i.state} /><span class="ell" dir="auto">{i.id}</span><span class="faint num">{span(i.took)}</span></button>)}</div>
            {list.length > N ? <div class="row"><Button small disabled={page === 0} onClick={() => setQuery({ page: page > 1 ? String(page - 1) : null })}>Before</Button><span class="faint num">{page * N + 1}–{Math.min(list.length, page * N + N)} of {list.length.toLocaleString("en-US")}</span><Button small disabled={(page + 1) * N >= list.length} onClick={() => setQuery({ page: String(page + 1) })}>Next</Button></div> : null}
        </div>
    );
}
