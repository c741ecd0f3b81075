// A run: what it is, why it is so, and its six tabs with the step over them and time below.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { act, again, mayFork, whyNot } from "../acts";
import { nameOf } from "../api";
import { actions, viewKeys } from "../palette";
import { byTitle, byWords } from "../log";
import { now, recent } from "../prefs";
import { hidden, visible } from "../redacted";
import { go, place, setQuery, withQuery } from "../route";
import { command, inPast, Shell, useCommand } from "../shell";
import { Chip, Glyph, runState, runSub, type State, word } from "../states";
import type { Snapshot } from "../types";
import { Button, closeDialog, copy, Dialog, dialog, explain, Failure, Guarded, Icon, Skeleton, Time, toast } from "../ui";
import { clock, count, left, oneLine, sha7, shellWord, short, span, strip } from "../words";
import { Drawer } from "./drawer";
import { Events } from "./events";
import { GraphTab, warm } from "./graph";
import { InputOutput } from "./io";
import { type Item, resolve, RunModel } from "./model";
import { SignalsTab } from "./signals";
import { StepsTab } from "./steps";
import { Timeline } from "./timeline";
import { Travel, travelKeys } from "./travel";
import { WhyPage } from "./why";

const tabs = ["graph", "timeline", "events", "steps", "io", "signals"] as const;
type Tab = (typeof tabs)[number];
const names: Record<Tab, string> = { graph: "Graph", timeline: "Timeline", events: "Events", steps: "Steps", io: "Input & output", signals: "Signals" };

export function Run() {
    const id = place.value.path[1] ?? "";
    const [full, found] = useState<string | null>(null), [error, fail] = useState<unknown>(null);
    useEffect(() => {
        let mine = true;
        fail(null);
        if (full !== id)
            resolve(id).then((real) => {
                if (!mine) return;
                if (real !== id) go(withQuery({}, "/runs/" + encodeURIComponent(real) + (place.value.path[2] ? "/" + place.value.path[2] : ""), location.hash), "replace");
                found(real);
            }, (e) => { if (mine) fail(e); });
        return () => { mine = false; };
    }, [id]);
    const crumb = <><a href="/runs">Runs</a><span class="faint">/</span><span class="mono">{short(id)}</span></>;
    if (error) return <Shell crumb={crumb}><Failure error={error} /></Shell>;
    if (full !== id) return <Shell crumb={crumb}><Skeleton /></Shell>;
    return <Loaded id={full} key={full} />;
}

function Loaded({ id }: { id: string }) {
    const model = useMemo(() => new RunModel(id), [id]);
    useEffect(() => { if (!place.value.path[2]) warm(); }, []);
    useEffect(() => { model.begin(); return () => { model.end(); inPast.value = false; actions.value = []; viewKeys.value = null; }; }, [model]);
    const run = model.shown.value, live = model.snapshot.value;
    useEffect(() => { if (live) recent.value = [{ id, plan: live.planId ?? "" }, ...recent.peek().filter((r) => r.id !== id)].slice(0, 12); }, [live?.planId]);
    const past = model.past.value;
    useEffect(() => { inPast.value = past; }, [past]);
    const crumb = <><a href="/runs">Runs</a><span class="faint">/</span><span class="ell" dir="auto">{live?.planId ?? ""}</span><span class="mono faint">{short(id)}</span></>;
    if (model.error.value && !live) return <Shell crumb={crumb}><Failure error={model.error.value} /></Shell>;
    if (!run || !live) return <Shell crumb={crumb}><Skeleton rows={6} /></Shell>;
    return <Shell crumb={crumb}><Page model={model} run={run} live={live} /></Shell>;
}

// What a picture of steps needs; a document that has not run has it too.
export interface GraphProps { model: Pick<RunModel, "graph" | "graphError">; run: Snapshot; items: Map<string, Item>; step: string | null; past: boolean; open: (step: string | null, show?: string) => void }
export interface TabProps extends GraphProps { model: RunModel }

// Where it is, in the words of the terminal.
function commandOf(tab: string, id: string, at: string | null, step: string | null, show: string, attempt: string | null, item: string | null): string {
    const moment = at ? "@" + at : "", name = step ? shellWord(step) : "";
    if (step) return show === "logs" ? item ? `cairn logs ${shellWord(`${id}/${step}[${item}]`)}` : `cairn logs ${id}/${name}${attempt ? "#" + attempt : ""}` : show === "why" ? `cairn why ${id}/${name}${moment}` : `cairn get ${id}/${name}${moment}`;
    return { timeline: `cairn trace ${id}`, events: `cairn events ${id}${moment} --ledger`, steps: `cairn get ${id}${moment}`, io: `cairn get ${id}${moment} -o json`, signals: `cairn get ${id} -o json --fields signals`, why: `cairn why ${id}${moment}` }[tab] ?? `cairn graph ${id}${moment}`;
}

function Page({ model, run, live }: { model: RunModel; run: Snapshot; live: Snapshot }) {
    const id = model.id, tab = place.value.path[2] ?? "graph", query = place.value.query;
    const step = query.get("step"), show = query.get("show") ?? "why", attempt = query.get("attempt");
    const past = model.past.value, at = model.at.value, items = model.items.value;
    const base = "/runs/" + encodeURIComponent(id);
    useCommand(commandOf(tab, short(id), at, step, show, attempt, query.get("item")), `${live.planId ?? ""} ${short(id)}`);
    const open = (to: string | null, what?: string) => {
        const from = step;
        go(withQuery({ step: to, show: what && what !== "why" ? what : null, attempt: null, item: null, page: null }));
        if (to === null && from) requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-step="${CSS.escape(from)}"]`)?.focus());
    };
    const toTab = (t: string) => go(withQuery({}, base + (t === "graph" ? "" : "/" + t)));
    const props: TabProps = { model, run, items, step, past, open }, drawn = () => { requestAnimationFrame(() => { if (!model.drawn.peek()) performance.mark("cairn:drawn"); model.drawn.value = true; }); }; // the mark is what make page-full measures
    useEffect(() => { if (tab !== "graph") drawn(); }, [tab]);
    useEffect(() => {
        const acts = actionsOf(live, past);
        actions.value = [
            ...acts.map((a) => ({ name: a.name.replace("…", ""), run: a.run, why: a.why })),
            ...[...items.values()].slice(0, 400).map((s) => ({ name: "Step " + s.id, hint: word(s.state), state: s.state, run: () => open(s.id) })),
            ...tabs.map((t, i) => ({ name: names[t], hint: String(i + 1), run: () => toTab(t) })),
        ];
        viewKeys.value = (e) => {
            if (/^[1-6]$/.test(e.key)) toTab(tabs[Number(e.key) - 1]!);
            else if (step && e.key === "w") setQuery({ show: null });
            else if (step && e.key === "l") setQuery({ show: "logs" });
            else if (e.key === "f" && past && !mayFork()) again("forks", live, { at: Number(at!.split(".")[0]) });
            else if (e.key === "Escape") {
                if (step) open(null);
                else if (past) setQuery({ at: null });
                else go("/runs");
            } else return travelKeys(model, e);
            return true;
        };
    }, [items, step, past, at, live.status]);
    const own = runState(run), is = (s: State) => [...items.values()].some((i) => i.state === s), sub = runSub(run);
    const state: State = is("held") ? "held" : own === "running" && is("event") && !is("running") ? "event" : own;
    const spoken = useSpoken(past ? "" : `${live.planId ?? "run"} is ${word(runState(live))}${live.failedSteps ? `, ${live.failedSteps} failed` : ""}`);
    if (tab === "why") return <WhyPage model={model} run={run} />;
    const counts = new Map<State, number>();
    for (const item of items.values()) counts.set(item.state, (counts.get(item.state) ?? 0) + 1);
    const order: State[] = ["done", "reused", "running", "event", "retrying", "approval", "held", "failed", "cancelled", "skipped", "waiting", "not_run", "unknown"];
    const momentTime = past ? model.moments.value[model.momentIndex.value]?.entry.time : undefined;
    const there = model.pastSnapshot.value, lost = model.pastError.value;
    const end = past ? momentTime : run.completedAt;
    return (
        <>
            <div class="rhead">
                <div class="row">
                    <Chip state={state} sub={sub} />
                    <h1 class="ell grow" dir="auto">{live.planId}</h1>
                    <div class="row acts">{actionsOf(live, past).map((a) => <Button key={a.name} kind={a.primary ? "pri" : undefined!} why={a.why} onClick={a.run}>{a.name}</Button>)}<button class="icon acts-more" aria-label="More to do" aria-haspopup="dialog" onClick={() => { dialog.value = () => <Acts acts={actionsOf(live, past)} />; }}><Icon name="more" /></button></div>
                </div>
                <div class="facts">
                    <span><b class="mono" title={id}>{short(id)}</b> of <span dir="auto">{live.planId}</span> <span class="mono">@{sha7(live.planVersion ?? "")}</span></span>
                    {live.startedAt ? <span>Started <b><Time at={live.startedAt} /></b></span> : null}
                    {live.startedAt ? <span>{past ? "At " : live.completedAt ? "Took " : "For "}<b class="num">{span((end ? Date.parse(end) : now.value) - Date.parse(live.startedAt))}</b></span> : null}
                    <span><b class="num">{items.size.toLocaleString("en-US")}</b> {items.size === 1 ? "step" : "steps"}: {order.filter((s) => counts.get(s)).map((s) => counts.get(s) + " " + word(s)).join(", ")}</span>
                    {live.forkedFrom ? <span>forked from <a class="link mono" href={"/runs/" + encodeURIComponent(live.forkedFrom.runId) + "?at=" + live.forkedFrom.runSeq}>{short(live.forkedFrom.runId)}@{live.forkedFrom.runSeq}</a></span> : live.originalRunId ? <span>repeats <a class="link mono" href={"/runs/" + encodeURIComponent(live.originalRunId)}>{short(live.originalRunId)}</a></span> : null}
                    {live.parentRunId ? <span>started by <a class="link mono" href={"/runs/" + encodeURIComponent(live.parentRunId) + (live.parentStepId ? "?step=" + encodeURIComponent(live.parentStepId) : "")}>{short(live.parentRunId)}</a></span> : null}
                    <Chain model={model} />
                </div>
                <Cause model={model} items={items} run={run} open={open} />
                <div class="tabs" role="tablist" aria-label="Views of the run">
                    {tabs.map((t) => (
                        <button key={t} role="tab" id={"tab-" + t} aria-selected={t === tab} tabIndex={t === tab ? 0 : -1} onClick={() => toTab(t)} onKeyDown={(e) => {
                            const i = tabs.indexOf(t) + (e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0);
                            if (tabs[i] && tabs[i] !== t) { e.stopPropagation(); toTab(tabs[i]!); requestAnimationFrame(() => document.getElementById("tab-" + tabs[i])?.focus()); }
                        }}>
                            {names[t]}{t === "events" && live.lastEventSeq ? <b class="num">{live.lastEventSeq.toLocaleString("en-US")}</b> : null}
                        </button>
                    ))}
                </div>
            </div>
            {past && momentTime ? (
                <div class="pastbar" role="status">
                    {lost?.at === at ? <span class="grow">Event {at} cannot be shown. <span class="muted">{explain(lost!.error)}</span></span> : there ? <span class="grow">You see this run as it was after event {there.at} of {live.lastEventSeq}. <span class="muted">{there.at === at ? clock(momentTime) + " UTC · " : ""}actions are off · <span class="by" title={byTitle[there.by]}>{byWords[there.by]}</span></span></span> : <span class="grow">Going to event {at}…</span>}
                    <Button small kind="past" why={mayFork()} onClick={() => again("forks", live, { at: Number(at!.split(".")[0]) })}>Fork from here…</Button>
                    <Button small onClick={() => setQuery({ at: null })}>Back to now</Button>
                </div>
            ) : null}
            {live.inconsistent ? <div class="banner bad" role="alert"><Glyph state="failed" />The log of this run is inconsistent: {live.message ?? "its events do not follow from each other"}.</div> : null}
            {model.checked.value.broken !== null ? <div class="banner bad" role="alert"><Glyph state="failed" />The chain is broken at event {model.checked.value.broken}: the record before it is not the one that was written. <a class="link" href={"/integrity?run=" + encodeURIComponent(id)}>Look</a></div> : null}
            {model.faults.value.length ? <div class="banner bad" role="alert"><Glyph state="failed" />The engine's own check, run in your browser, finds that this log is not what was written: {model.faults.value[0]}. <a class="link" href={"/integrity?run=" + encodeURIComponent(id)}>Look</a></div> : null}
            <div class="body" role="tabpanel" aria-labelledby={"tab-" + tab}>
                <Guarded key={tab}>{tab === "timeline" ? <Timeline {...props} /> : tab === "events" ? <Events {...props} /> : tab === "steps" ? <StepsTab {...props} /> : tab === "io" ? <InputOutput {...props} /> : tab === "signals" ? <SignalsTab {...props} live={live} /> : <GraphTab {...props} drawn={drawn} />}</Guarded>
                {step ? <Drawer {...props} step={step} live={live} /> : null}
            </div>
            <Travel model={model} />
            <span class="sr" role="status">{spoken}</span>
        </>
    );
}
// For those who listen: changes of state, not more than one in five seconds.
function useSpoken(text: string): string {
    const [said, say] = useState(""), last = useRef(0);
    useEffect(() => {
        const wait = Math.max(0, last.current + 5000 - Date.now());
        const timer = setTimeout(() => { last.current = Date.now(); say(text); }, wait);
        return () => clearTimeout(timer);
    }, [text]);
    return said;
}

interface Act { name: string; run: () => void; primary?: boolean; why?: string | undefined }
// Where there is room for one button only: what else may be done, and why not.
function Acts({ acts }: { acts: Act[] }) {
    return (
        <Dialog title="What to do" onClose={closeDialog}>
            <ul class="plain acts-list">{acts.map((a) => <li key={a.name}><Button why={a.why} onClick={() => { closeDialog(); a.run(); }}>{a.name}</Button>{a.why ? <span class="muted">{a.why}</span> : null}</li>)}<li><Button onClick={() => { closeDialog(); void copy(command.value); }}>Copy the command</Button></li></ul>
        </Dialog>
    );
}
function actionsOf(run: Snapshot, past: boolean): Act[] {
    const it = { runId: run.runId, planId: run.planId ?? "" }, off = past ? "You look at the past. Go back to now to act." : undefined;
    const compare: Act = { name: "Compare", run: () => go("/compare?b=" + encodeURIComponent(run.runId)) }, fork: Act = { name: "Fork…", why: mayFork(), run: () => again("forks", run) };
    const signal = (name: string, type: string, primary = false): Act => ({ name, run: () => act(type, it), primary, why: off ?? whyNot(type, run) });
    const state = runState(run);
    if (state === "failed" || state === "cancelled") return [compare, fork, signal("Retry…", "RETRY_RUN", true)];
    if (state === "done") return [compare, { name: "Run again…", run: () => again("rerun", run), primary: true, why: off ?? mayFork() }];
    if (state === "paused") return [signal("Cancel…", "CANCEL"), signal("Resume…", "RESUME", true)];
    if (state === "approval") return [signal("Pause…", "PAUSE"), signal("Cancel…", "CANCEL"), { name: "Answer…", primary: true, why: off, run: () => { const gate = document.querySelector<HTMLElement>(".cause .link"); gate ? gate.click() : toast("The run itself waits: answer under Signals"); } }];
    return [signal("Pause…", "PAUSE"), signal("Cancel…", "CANCEL")];
}

function Chain({ model }: { model: RunModel }) {
    const c = model.checked.value;
    if (!model.loaded.value || !c.records) return null;
    if (!c.can) return <span class="faint">{count(c.records, "record")}</span>;
    if (c.broken !== null) return <span class="failed">✗ chain broken at event {c.broken}</span>;
    return <button class="done chain-ok" title="Click for how" onClick={() => toast(`Your browser hashed ${count(c.records, "record")} and compared each with the one after it. Integrity has the rest of the proof.`)}>✓ chain of {count(c.records, "record")}</button>;
}

// The one line that says why, before any tab.
function Cause({ model, items, run, open }: { model: RunModel; items: Map<string, Item>; run: Snapshot; open: (step: string, show?: string) => void }) {
    const all = [...items.values()], find = (s: State) => all.find((i) => i.state === s);
    const root = run.rootCause?.stepId ? items.get(run.rootCause.stepId) : undefined;
    const bad = root && (root.state === "failed" || root.state === "held") ? root : (find("held") ?? find("failed"));
    const gate = find("approval"), retry = find("retrying"), state = runState(run);
    if (state === "done") return null;
    if (bad) {
        const n = tries(bad);
        return (
            <div class="cause"><Glyph state={bad.state} />
                <div class="grow"><b dir="auto">{bad.id} {bad.state === "held" ? "failed and waits for you" : "failed"}</b>{n > 1 ? ` at attempt ${n} of ${n}` : ""}: <span class="mono" dir="auto">{oneLine(bad.step.error?.message) || "it says nothing"}</span></div>
                <button class="link" onClick={() => open(bad.id)}>Why</button><button class="link" onClick={() => open(bad.id, "logs")}>Logs</button>
            </div>
        );
    }
    if (run.rootCause) return <div class="cause"><Glyph state="failed" /><div class="grow"><b>{run.rootCause.error.code}</b>: <span class="mono">{oneLine(run.rootCause.error.message)}</span></div></div>;
    if (gate) return <div class="cause warn"><Glyph state="approval" /><div class="grow"><b dir="auto">{gate.id} waits for a person</b>{gate.step.dueAt ? <> · <Due at={gate.step.dueAt} what="answers itself" /></> : null}</div><button class="link" onClick={() => open(gate.id)}>Answer</button></div>;
    if (state === "paused") return <div class="cause warn"><Glyph state="paused" /><div class="grow"><b>Paused{byWhom(model, "PAUSE")}</b>{run.pauseReason ? ": " + strip(run.pauseReason) : ""}{run.substatus === "DRAINING" ? " · steps that run may finish" : ""}</div></div>;
    if (retry) return <div class="cause warn"><Glyph state="retrying" /><div class="grow"><b dir="auto">{retry.id} retries</b> · attempt {tries(retry) + 1}{retry.step.dueAt ? <> <Due at={retry.step.dueAt} what="may start" /></> : null}</div><button class="link" onClick={() => open(retry.id)}>Why</button></div>;
    const event = find("event"), awaited = event?.step.awaitedEvent;
    if (event && !find("running")) return <div class="cause run"><Glyph state="event" /><div class="grow"><b dir="auto">{event.id} waits for {awaited?.name ?? "an event"}</b>{awaited?.correlation !== undefined ? <> of <span class="mono" dir="auto">{visible(awaited.correlation)}</span></> : null}{event.step.dueAt ? <> · <Due at={event.step.dueAt} what="gives up" /></> : null}</div><button class="link" onClick={() => open(event.id)}>Why</button></div>;
    if (state === "cancelled") return <div class="cause warn"><Glyph state="cancelled" /><div class="grow"><b>Cancelled{byWhom(model, "CANCEL|EMERGENCY_STOP")}</b>{run.cancelReason ? ": " + strip(run.cancelReason) : ""}</div></div>;
    if (run.status === "PENDING") return <div class="cause run"><Glyph state="waiting" /><div class="grow"><b>Nothing has started</b>: {strip(run.message) || "the run waits in its queue"}</div></div>;
    return null;
}
// Who sent the signal that the run follows: the log has it, the snapshot has not.
function byWhom(model: RunModel, types: string): string {
    const wanted = new RegExp(`"signalType":"(?:${types})"`), sent = [...model.entries.value].reverse().find((e) => /SIGNAL_?ACCEPTED/i.test(e.type) && wanted.test(e.raw)), name = sent && /"actor(?:Id)?":"((?:[^"\\]|\\.)*)"/.exec(sent.raw)?.[1];
    return name && !hidden(name) ? " by " + nameOf(JSON.parse(`"${name}"`) as string) : "";
}
const tries = (item: Item) => item.step.attempts?.length ?? 0;
export function Due({ at, what }: { at: string; what: string }) {
    const ms = Date.parse(at) - now.value;
    return <span title={at}>{what} {ms > 0 ? `in ${left(ms)}, at ` : "at "}{clock(at).slice(0, 8)} UTC</span>;
}
export { Icon };
