// Why: the verdict in words, then the chain of what it hangs on. Every link names the event that proves it.
import type { ComponentChildren } from "preact";
import { getJson, idOf, nameOf, several } from "../api";
import { type By, byTitle, byWords } from "../log";
import { now } from "../prefs";
import { hidden } from "../redacted";
import { go, place, withQuery } from "../route";
import { Chip, Glyph, runState, type State, word } from "../states";
import type { Part, Snapshot, Why, WhyArc } from "../types";
import { Button, Clock, Cmd, Failure, Hidden, Skeleton, useAsked } from "../ui";
import { absolute, ago, clock, count, left, short, span, strip } from "../words";
import { maySendEvent, sendEvent } from "../sending";
import type { RunModel } from "./model";
import { Due } from "./run";
import { Decision, Gate } from "./signals";

// A step that was visited again is, by its name alone, its last visit; the page has the first one by that name.
function visitOf(model: RunModel, step: string): string {
    return model.items.value.has(step + ":run:2") ? step + ":run:1" : step;
}

// Of a moment of the past: folded here where that can be, else by the server. Of now: by the server, which knows more than the log (who owns the run).
export function useWhy(model: RunModel, step: string | null) {
    const at = model.at.value, live = model.snapshot.value, named = step === null ? null : visitOf(model, step), path = `/v1/runs/${idOf(model.id)}${named ? "/steps/" + several(named) : ""}/why`;
    const asked = useAsked(async (): Promise<{ why: Why; by: By | null }> => {
        const here = at ? await model.own.why(named, at) : null;
        return here ? { why: here, by: "browser" } : { why: await getJson<Why>(path + (at ? "?at=" + at : "")), by: at ? "server" : null };
    }, [path, at, at ? 0 : live?.lastEventSeq, at ? 0 : live?.substatus, at ? 0 : model.entries.value.length]);
    return { ...asked, value: asked.value?.why, by: asked.value?.by ?? null };
}

const states = new Set(["waiting", "running", "event", "retrying", "approval", "held", "paused", "done", "reused", "skipped", "failed", "cancelled", "not_run"]);
const stateOf = (text: string | undefined): State => (text && states.has(text) ? (text as State) : "unknown");
// A sentence of the server: its steps lead to them, its times are written as everywhere on the page and go on counting.
function Told({ parts, text, open, own, past }: { parts: Part[] | undefined; text: string; open?: (step: string) => void; own?: string | undefined; past: boolean }) {
    if (!parts?.length) return <>{strip(text)}</>;
    return <>{parts.map((p, i) => {
        if (p.step !== undefined) return p.step === own || !open ? <b key={i} dir="auto">{p.step}</b> : <button key={i} class="link" dir="auto" onClick={() => open(p.step!)}>{p.step}</button>;
        if (p.since !== undefined) return <time key={i} dateTime={p.since} title={absolute(p.since)}>{clock(p.since).slice(0, 8)} UTC{past ? "" : ` (${span(now.value - Date.parse(p.since))})`}</time>;
        if (p.due !== undefined) return <time key={i} dateTime={p.due} title={absolute(p.due)}>{clock(p.due).slice(0, 8)} UTC{past ? "" : Date.parse(p.due) > now.value ? ` (in ${left(Date.parse(p.due) - now.value)})` : ` (${ago(p.due, now.value)})`}</time>;
        if (p.code !== undefined) return <span key={i} class="mono">{p.code}</span>;
        if (p.expr !== undefined) return <span key={i} class="mono" dir="auto">{p.expr}</span>;
        if (p.by !== undefined) return <span key={i} dir="auto" title={p.by}>{nameOf(p.by)}</span>;
        if (p.said !== undefined) return hidden(p.said) ? <Hidden key={i} /> : <span key={i} dir="auto">{strip(p.said)}</span>;
        return <span key={i}>{p.text}</span>;
    })}</>;
}

function Seq({ n }: { n: number | undefined }) {
    return n ? <button class="seq" title={"Go to event " + n} onClick={(e) => { e.stopPropagation(); go(withQuery({ at: String(n) }, place.value.path[2] === "why" ? "/runs/" + encodeURIComponent(place.value.path[1]!) : location.pathname)); }}>event {n}</button> : null;
}
function Link({ state, title, children }: { state: State; title: ComponentChildren; children: ComponentChildren }) {
    return <li class="link-i"><Glyph state={state} /><div class="link-b"><div class="q">{title}</div>{children}</div></li>;
}
function Arcs({ arcs, title, open }: { arcs: WhyArc[]; title: string; open: (step: string) => void }) {
    return (
        <Link state={arcs.some((a) => a.taken) ? "done" : "skipped"} title={title}>
            {arcs.slice(0, 30).map((a, i) => (
                <div class="dep" key={i}><Glyph state={a.taken ? "done" : "skipped"} /><button class="link" onClick={() => open(a.from ?? a.to!)}>{a.from ?? a.to}</button>{a.visit && a.visit > 1 ? <span class="faint">visit {a.visit}</span> : null}{a.when ? <span class="mono muted ell" title={a.values ? JSON.stringify(a.values) : undefined}>{a.when.replace(/^\{\{\s*|\s*\}\}$/g, "")} {a.holds === false ? "✗" : "✓"}</span> : null}<Seq n={a.seq} /></div>
            ))}
        </Link>
    );
}

// How long it waits before it tries again.
const waits = (backoff: string, ms: number) => (!ms ? "tried again at once" : backoff === "none" || backoff === "fixed" ? `${span(ms)} between them` : `${backoff} from ${span(ms)}`);

export function Chain({ why, by, model, open, past }: { why: Why; by: By | null; model: RunModel; open: (step: string, show?: string) => void; past: boolean }) {
    const deps = why.dependencies ?? [], bad = deps.find((d) => d.state !== "done" && d.state !== "reused");
    const id = short(model.id);
    return (
        <>
            <p class="verdict" dir="auto"><Told parts={why.verdictParts} text={why.verdict} open={open} own={why.step} past={past} /></p>
            {why.gate && !why.gate.answer && !past && why.step ? <Gate run={model.id} step={why.step} message={why.gate.message} role={why.gate.role} deadline={why.gate.deadline} onTimeout={why.gate.onTimeout} then={() => void model.refresh()} /> : null}
            <ul class="chain">
                {why.cause ? <Link state={stateOf(why.cause.state)} title="The cause"><div class="dep"><button class="link" dir="auto" onClick={() => open(why.cause!.step)}>{why.cause.step}</button><Seq n={why.cause.seq} /></div><div class="muted" dir="auto"><Told parts={why.cause.verdictParts} text={why.cause.verdict} past={past} /></div></Link> : null}
                {why.steps?.length ? <Link state={stateOf(why.steps[0]!.state)} title="The steps that matter">{why.steps.map((s) => <div key={s.step} class="matter"><div class="dep"><Glyph state={stateOf(s.state)} /><button class="link" dir="auto" onClick={() => open(s.step)}>{s.step}</button><span class="muted">{word(s.state)}</span><Seq n={s.seq} /></div><div class="muted" dir="auto"><Told parts={s.verdictParts} text={s.verdict} past={past} /></div></div>)}{why.stepsLeftOut ? <div class="faint">{count(why.stepsLeftOut, "more step")}</div> : null}</Link> : null}
                {deps.length ? <Link state={bad ? stateOf(bad.state) : "done"} title="It depends on">{deps.slice(0, 40).map((d) => <div class="dep" key={d.step}><Glyph state={stateOf(d.state)} /><button class="link" dir="auto" onClick={() => open(d.step)}>{d.step}</button><span class="muted">{word(d.state)}{d.errorCode ? ` · ${d.errorCode}` : ""}</span><Seq n={d.seq} /></div>)}{deps.length > 40 ? <div class="faint">{deps.length - 40} more</div> : null}</Link> : null}
                {why.arcs?.length ? <Arcs arcs={why.arcs} title="Arcs that led here" open={open} /> : null}
                {why.rule ? <Link state={why.rule.passes === false ? "skipped" : why.rule.passes ? "done" : "waiting"} title="Rule"><div><span class="mono">{why.rule.name}</span> needs {why.rule.needs} · {why.rule.passes === undefined ? (why.rule.outlook === "will_not_pass" ? "cannot pass any more" : "still open") : why.rule.passes ? "passes" : "does not pass"}</div></Link> : null}
                {why.when ? <Link state={why.when.result === false ? "skipped" : why.when.result ? "done" : "waiting"} title="Condition"><div class="mono">{why.when.text}{why.when.result === true ? " ✓" : why.when.result === false ? " ✗" : ""}</div>{why.when.atoms?.map((a, i) => (a.left !== undefined ? <div class="mono muted" key={i}>{a.joined ? a.joined + " " : ""}{JSON.stringify(a.left)} {a.operator} {typeof a.right === "string" ? a.right : JSON.stringify(a.right)} → {String(a.result)}</div> : a.error ? <div class="muted" key={i}>{a.error}</div> : null))}</Link> : null}
                {why.admission ? <Link state={why.admission.allowed ? "done" : "skipped"} title="Admission"><div class="dep">{why.admission.allowed ? "it was let in" : "it was not let in"}{why.admission.when ? <span class="mono muted">{why.admission.when}</span> : null}<Seq n={why.admission.seq} /></div></Link> : null}
                {why.event ? <Link state={why.state === "running" ? "event" : stateOf(why.state)} title="Event from outside"><div class="dep"><span class="mono">{why.event.name}</span>{why.event.correlation !== undefined ? <span class="muted">of <span class="mono" dir="auto">{hidden(why.event.correlation) ? <Hidden /> : why.event.correlation}</span></span> : null}{why.state === "running" && !past ? <span class="grow"><Button small why={maySendEvent()} onClick={() => sendEvent(why.event!, () => void model.refresh())}>Send it…</Button></span> : null}</div></Link> : null}
                {why.gate?.answer ? <Link state={why.gate.answer.approved ? "done" : "failed"} title="Approval"><div class="dep">{why.gate.answer.by ?? "the deadline"} {why.gate.answer.approved ? "approved" : "rejected"} it <span class="muted"><Clock at={why.gate.answer.at} /></span><Seq n={why.gate.answer.seq} /></div><div class="muted" dir="auto">{strip(why.gate.message)}</div></Link> : null}
                {why.gate && !why.gate.answer && past ? <Link state="approval" title="Approval"><div dir="auto">{strip(why.gate.message)}</div></Link> : null}
                {why.loop ? <Link state="running" title="Loop"><div>round {why.loop.iteration} of at most {why.loop.maxIterations}{why.loop.verdict ? " · " + why.loop.verdict.toLowerCase() : ""}</div></Link> : null}
                {why.attempts?.length && why.kind !== "approval" ? (
                    <Link state={why.state === "failed" || why.state === "held" ? "failed" : stateOf(why.attempts.at(-1)!.result)} title={why.attempts.length === 1 ? "One attempt" : count(why.attempts.length, "attempt")}>
                        {why.attempts.slice(-40).map((a, i) => <div class="dep" key={i}><Glyph state={stateOf(a.result)} /><button class="link num" onClick={() => go(withQuery({ step: why.step ?? null, show: "logs", attempt: String(a.attempt) }))}>#{a.attempt}</button><span class="muted num">{span(a.durationMs)}</span><span class="muted ell grow">{a.error ? a.error.code + (a.error.exitCode != null ? " exit " + a.error.exitCode : "") : a.startedBy === "person" ? "asked for by a person" : ""}{a.redispatched ? ` · sent again ${count(a.redispatched, "time")} after a crash` : ""}</span><Seq n={a.endSeq ?? a.endAfterSeq ?? a.seq} /></div>)}
                    </Link>
                ) : null}
                {why.policy?.length ? <Link state="done" title="Policies of its tasks">{why.policy.slice(-20).map((p, i) => <div class="dep" key={i}><span class="mono">{p.task}</span><span class="muted">{p.action}{p.iteration !== undefined ? ` · item ${p.iteration}` : ""}</span>{p.when ? <span class="mono muted ell">{p.when}</span> : null}<Seq n={p.seq} /></div>)}</Link> : null}
                {why.retry ? <Link state={why.retry.next ? "retrying" : why.retry.left ? "done" : "failed"} title="Retry policy"><div>{why.retry.used} of {count(why.retry.maxAttempts, "attempt")} used{why.retry.maxAttempts > 1 ? ", " + waits(why.retry.backoff, why.retry.delayMs) : ""}{why.retry.maxAttempts > 1 && why.retry.on === "transient" ? ", only for failures that may pass" : ""}</div>{why.retry.next ? <div class="warn-text">Attempt {why.retry.next.attempt} {past ? "may start at " + clock(why.retry.next.notBefore).slice(0, 8) + " UTC" : <Due at={why.retry.next.notBefore} what="may start" />}</div> : null}</Link> : null}
                {why.error && !why.step ? <Link state="failed" title="The error"><div class="mono" dir="auto">{why.error.code} {strip(why.error.message)}</div></Link> : null}
                {why.pause ? <Link state="paused" title="Paused"><div class="dep">by {why.pause.by ?? "the engine"} <Clock at={why.pause.since} /><Seq n={why.pause.seq} /></div>{why.pause.reason ? <div class="muted" dir="auto">{strip(why.pause.reason)}</div> : null}</Link> : null}
                {why.signals?.map((s, i) => <Link key={i} state={s.decision === "ACCEPTED" ? "done" : "failed"} title="Signal"><div class="dep"><b>{s.type}</b><span class="muted">{s.decision.toLowerCase()} · {s.by} as {s.role}</span><Seq n={s.seq} /></div>{s.reason ? <div class="muted" dir="auto">{strip(s.reason)}</div> : null}</Link>)}
                {why.routes?.length ? <Arcs arcs={why.routes} title="Where it led" open={open} /> : null}
                {why.childRun ? <Link state="running" title="The run that it started"><a class="link mono" href={"/runs/" + encodeURIComponent(why.childRun)}>{short(why.childRun)}</a></Link> : null}
                {why.reusedFrom ? <Link state="reused" title="Taken over from"><a class="link mono" href={"/runs/" + encodeURIComponent(why.reusedFrom)}>{short(why.reusedFrom)}</a></Link> : null}
            </ul>
            {why.decisions ? (why.decisions.checked === why.decisions.reproduced ? <div class="proof"><Glyph state="done" />{count(why.decisions.checked, "decision")} asked again, same answer as recorded</div> : <div class="proof bad"><Glyph state="failed" />{why.decisions.doubt ?? "A decision comes out differently than it was recorded"}</div>) : null}
            {by ? <p class="faint by" title={byTitle[by]}>{byWords[by]}</p> : null}
            {!past && why.next?.length ? <div class="sec"><h3>Next</h3><div class="vstack tight">{why.next.map((c) => <Cmd key={c} text={"cairn " + c.replaceAll(model.id, id)} />)}</div></div> : null}
        </>
    );
}

// The whole answer for the run (or a step, with ?step=), at a width for reading and for paper.
export function WhyPage({ model, run }: { model: RunModel; run: Snapshot }) {
    const step = place.value.query.get("step"), why = useWhy(model, step);
    const base = "/runs/" + encodeURIComponent(model.id);
    return (
        <div class="pane reading">
            <div class="row"><Chip state={step && why.value ? stateOf(why.value.state) : runState(run)} /><h1 class="grow ell" dir="auto">Why {step ?? run.planId} {step ? "" : short(model.id)}</h1><a class="btn" href={base}>The run</a></div>
            {why.error ? <Failure error={why.error} again={why.again} /> : why.value ? <Chain why={why.value} by={why.by} model={model} open={(s) => go(base + "?step=" + encodeURIComponent(s))} past={model.past.value} /> : <Skeleton rows={4} />}
        </div>
    );
}
export { Decision };
