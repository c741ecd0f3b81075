// Schedules: what starts by itself, when it does next, and what became of the times that came.
import { useEffect, useState } from "preact/hooks";
import { getJson, idOf, mayDo, nameOf, send, uuid } from "./api";
import { Grid } from "./grid";
import { now, utc } from "./prefs";
import { definitionHref, go, place } from "./route";
import { useCommand } from "./shell";
import { Chip, Glyph, type State } from "./states";
import { Ask, does, Table, useTurn } from "./tables";
import type { Backfill, Fire, Schedule, Tick } from "./types";
import { Button, closeDialog, Dialog, dialog, Empty, explain, Failure, Field, Json, Skeleton, Time, toast, useAsked } from "./ui";
import { absolute, clock, count, day, left, sha7, shellWord, short } from "./words";

// ---- words

const whenOf = (s: Schedule) => s.schedule?.cron ?? (s.schedule?.every ? "every " + s.schedule.every : s.schedule?.at ? "once, " + s.schedule.at : "");
type Way = "on" | "paused" | "broken" | "over";
const wayOf = (s: Schedule): Way => (s.error ? "broken" : s.paused ? "paused" : s.next?.length ? "on" : "over");
const glyphOf: Record<Way, State> = { on: "done", paused: "paused", broken: "failed", over: "not_run" };
const outcomes: Record<string, [State, string]> = { STARTED: ["done", "started"], QUEUED: ["waiting", "waits"], SKIPPED: ["skipped", "skipped"], FAILED: ["failed", "failed"] };
const reasons: Record<string, string> = { OVERLAP: "the run before it went on", QUEUE_FULL: "as many wait as may", LATE: "too late: no engine looked in time", PAUSED: "the schedule was paused", REPLACED: "a newer time took its place", STARTED_BEFORE: "there is a run of this name already" };
const kinds: Record<string, string> = { fire: "its time", trigger: "by hand", backfill: "backfill" };
const marks: Record<string, string> = { gap: "the clock is set forward: in place of a time that it leaves out", first: "the clock is set back: the first of two", second: "the clock is set back: the second of two" };
const why = (tick: Tick) => (tick.reasonCode ? (reasons[tick.reasonCode] ?? tick.reasonCode) : "");

// "2026-11-19T02:30:00+01:00" in its own zone: day of the week, date, time, offset. No clock of this machine is asked.
function localOf(text: string): { day: string; time: string; offset: string } {
    const [date, rest] = [text.slice(0, 10), text.slice(11)], at = rest.search(/[+Z-]/), time = rest.slice(0, at).replace(/\.000$/, "").replace(/:00$/, "");
    return { day: new Date(date + "T00:00:00Z").toLocaleDateString("en-GB", { weekday: "short", timeZone: "UTC" }) + " " + date, time, offset: rest.slice(at) };
}
// What the clock does at a time: the server's mark, or that the offset is another one than before.
const markOf = (list: Fire[], i: number): string => {
    const f = list[i]!, before = i ? localOf(list[i - 1]!.local).offset : "", here = localOf(f.local).offset;
    return f.mark ? (marks[f.mark] ?? f.mark) : before && before !== here ? `the clock was set: ${here} was ${before}` : "";
};
const hourOf = (utc: string) => utc.slice(11, 19).replace(/:00$/, "");

const mayChange = () => (mayDo("schedule.create") ? undefined : "Needs the role Engineer");
const mayStart = () => (mayDo("run.start") ? undefined : "Your token may not start runs");

// ---- what may be done

const path = (name: string) => "/v1/schedules/" + idOf(name);
function pause(s: Schedule, then: () => void): void {
    dialog.value = () => <Ask title={`Pause ${s.name}?`} about="Nothing of it fires until it is resumed. What runs goes on; times that come meanwhile are noted as skipped." verb="Pause" reason command={`cairn schedule pause ${shellWord(s.name)}`} send={(reason) => send("POST", path(s.name) + "/pause", reason ? { reason } : {})} then={() => { toast(`${s.name} is paused.`); then(); }} />;
}
const resume = (s: Schedule, then: () => void) => void does(() => send("POST", path(s.name) + "/resume", {}), `${s.name} fires again, from now on.`, then);
function remove(s: Schedule): void {
    dialog.value = () => <Ask title={`Remove ${s.name}?`} about="It fires no more, and its list of times goes with it. Its runs stay." verb="Remove" command={`cairn schedule rm ${shellWord(s.name)}`} send={() => send("DELETE", path(s.name))} then={() => { toast(`${s.name} is removed.`); go("/schedules"); }} />;
}
function trigger(s: Schedule): void {
    dialog.value = () => <Trigger schedule={s} />;
}
function Trigger({ schedule: s }: { schedule: Schedule }) {
    const [inputs, set] = useState(""), [reason, say] = useState(""), [error, fail] = useState(""), [busy, work] = useState(false);
    const start = async () => {
        work(true);
        fail("");
        try {
            const given = inputs.trim() ? (JSON.parse(inputs) as unknown) : undefined;
            const run = await send<{ runId: string }>("POST", path(s.name) + "/trigger", { ...(given ? { inputs: given } : {}), ...(reason.trim() ? { reason: reason.trim() } : {}) }, { "Idempotency-Key": uuid() });
            closeDialog();
            go("/runs/" + idOf(run.runId));
        } catch (e) {
            fail(e instanceof SyntaxError ? "The inputs are no JSON." : explain(e));
            work(false);
        }
    };
    return (
        <Dialog title={`Run ${s.name} now?`} onClose={closeDialog} command={`cairn schedule trigger ${shellWord(s.name)}`}>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); void start(); }}>
                <p class="muted">A run of {s.plan?.planId ?? "its document"} begins now, beside its times and whatever pause and overlap say.</p>
                <Field label="Inputs, over those of the schedule" hint="JSON; empty: as the schedule has them"><textarea class="mono" rows={3} spellcheck={false} value={inputs} placeholder={JSON.stringify(s.schedule?.inputs ?? {})} onInput={(e) => set(e.currentTarget.value)} /></Field>
                <Field label="Reason"><input value={reason} maxLength={500} onInput={(e) => say(e.currentTarget.value)} /></Field>
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Close</Button><Button kind="pri" type="submit" disabled={busy}>Run now</Button></div>
            </form>
        </Dialog>
    );
}

// What would run is asked of the server at every change, and listed, before anything does.
function Fill({ schedule: s, then }: { schedule: Schedule; then: () => void }) {
    const [form, set] = useState({ from: "", to: "", order: "oldest", parallel: "1", limit: "", reason: "" }), [plan, got] = useState<Backfill | null>(null), [error, fail] = useState(""), [busy, work] = useState(false);
    const put = (name: keyof typeof form) => (e: { currentTarget: { value: string } }) => set({ ...form, [name]: e.currentTarget.value });
    // A field of a browser leaves seconds out; without an offset a time is of the zone.
    const full = (time: string) => (time.length === 16 ? time + ":00" : time);
    const body = { from: full(form.from), to: full(form.to), order: form.order, parallel: Number(form.parallel) || 1, ...(form.limit ? { limit: Number(form.limit) } : {}), ...(form.reason.trim() ? { reason: form.reason.trim() } : {}) };
    useEffect(() => {
        got(null);
        fail("");
        if (!form.from || !form.to) return;
        let mine = true;
        const wait = setTimeout(() => send<Backfill>("POST", path(s.name) + "/backfills", { ...body, dryRun: true }).then((b) => { if (mine) got(b); }, (e) => { if (mine) fail(explain(e)); }), 250);
        return () => { mine = false; clearTimeout(wait); };
    }, [form.from, form.to, form.order, form.limit, form.parallel]);
    const start = () => {
        work(true);
        send("POST", path(s.name) + "/backfills", body).then(() => { closeDialog(); toast(`${count(plan!.count, "time")} of ${s.name} will run.`); then(); }, (e) => { fail(explain(e)); work(false); });
    };
    const times = plan?.times ?? [], shown = times.length > 9 ? [...times.slice(0, 5), null, ...times.slice(-3)] : times;
    return (
        <Dialog title={`Backfill ${s.name}`} onClose={closeDialog} wide command={`cairn schedule backfill ${shellWord(s.name)} --since ${full(form.from) || "TIME"} --until ${full(form.to) || "TIME"}${form.parallel !== "1" ? " --parallel " + form.parallel : ""}${form.order !== "oldest" ? " --order newest" : ""}${form.limit ? " --limit " + form.limit : ""}`}>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); if (plan?.count && !busy) start(); }}>
                <p class="muted">Runs the times of a range, beside what the schedule does now. Times are those of {s.zone ?? "UTC"}.</p>
                <div class="fields"><Field label="From"><input type="datetime-local" required value={form.from} onInput={put("from")} /></Field><Field label="To, not included"><input type="datetime-local" required value={form.to} onInput={put("to")} /></Field></div>
                <div class="fields"><Field label="First"><select value={form.order} onChange={put("order")}><option value="oldest">the oldest</option><option value="newest">the newest</option></select></Field><Field label="At a time"><input type="number" min={1} max={100} value={form.parallel} onInput={put("parallel")} /></Field><Field label="At most"><input type="number" min={1} max={10000} placeholder="all" value={form.limit} onInput={put("limit")} /></Field></div>
                <section class="preview-times" aria-label="What would run" aria-live="polite">
                    {plan ? (plan.count === 0 ? <p class="muted">No time of the schedule is in this range.</p> : <><b>{count(plan.count, "run")}{plan.inRange && plan.inRange > plan.count ? ` of ${plan.inRange.toLocaleString("en-US")} times in the range` : ""}</b><ol class="plain">{shown.map((f, i) => (f ? <li key={f.time}><Glyph state="waiting" /><span class="num">{localOf(f.local).day} {localOf(f.local).time}</span> <span class="faint num">{localOf(f.local).offset}</span>{markOf(times, times.indexOf(f)) ? <span class="warn-text"> {markOf(times, times.indexOf(f))}</span> : null}</li> : <li key={i} class="faint">… {count(plan.count - 8, "more", "more")}</li>))}</ol></>) : <p class="faint">{form.from && form.to && !error ? "Asking what would run…" : "What would run is listed here before anything does."}</p>}
                </section>
                <Field label="Reason"><input value={form.reason} maxLength={500} onInput={put("reason")} /></Field>
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Close</Button><Button kind="pri" type="submit" disabled={busy || !plan?.count}>{plan?.count ? `Run ${count(plan.count, "time")}` : "Run"}</Button></div>
            </form>
        </Dialog>
    );
}

// ---- views

export function Schedules() {
    const name = place.value.path[1];
    return name ? <One name={name} key={name} /> : <List />;
}

function List() {
    useCommand("cairn schedule ls", "Schedules");
    const turn = useTurn(5000), list = useAsked(() => getJson<{ items: Schedule[] }>("/v1/schedules"), [turn]);
    return (
        <div class="page scroll">
            <h1>Schedules</h1>
            {list.error && !list.value ? <Failure error={list.error} again={list.again} /> : !list.value ? <Skeleton rows={4} /> : list.value.items.length === 0 ? <Empty title="Nothing starts by itself" command="cairn schedule add nightly hello.yaml --cron '30 2 * * *' --zone Europe/Berlin">A schedule starts a document at its times: cron, an interval, or once, in any time zone.</Empty> : (
                <Table label="Schedules" head={[["Schedule"], ["State"], ["When"], ["Next"], ["Last time"], ["", "r"]]}>
                    {list.value.items.map((s) => {
                        const way = wayOf(s), next = s.next?.[0], last = s.lastTick, [state, word] = outcomes[last?.outcome ?? ""] ?? ["unknown", last?.outcome ?? ""];
                        return (
                            <tr key={s.name}>
                                <td><a class="nm link" href={"/schedules/" + idOf(s.name)} dir="auto">{s.name}</a><div class="faint" dir="auto">{s.plan?.planId}</div></td>
                                <td class="word"><span class={"row " + glyphOf[way]}><Glyph state={glyphOf[way]} />{way}</span></td>
                                <td><span class="mono">{whenOf(s)}</span><div class="faint">{s.zone}</div></td>
                                <td>{way === "broken" ? <span class="failed">{s.error}</span> : way === "paused" ? <span class="muted">{s.pausedReason ?? "when it is resumed"}</span> : next ? <><span class="num" title={next.time}>{Date.parse(next.time) > now.value ? "in " + left(Date.parse(next.time) - now.value) : "now"}</span><div class="faint num">{localOf(next.local).day} {localOf(next.local).time}</div></> : <span class="faint">never again</span>}</td>
                                <td>{last ? <><span class="row"><Glyph state={state} />{last.runId ? <a class="link" href={"/runs/" + idOf(last.runId)}>{word}</a> : word}<span class="muted"><Time at={last.time} /></span></span>{why(last) ? <div class="faint">{why(last)}</div> : null}</> : <span class="faint">none yet</span>}</td>
                                <td class="r"><Button small why={mayStart()} onClick={() => trigger(s)}>Run now…</Button> {s.paused ? <Button small why={mayChange()} onClick={() => resume(s, list.again)}>Resume</Button> : <Button small why={mayChange()} onClick={() => pause(s, list.again)}>Pause…</Button>}</td>
                            </tr>
                        );
                    })}
                </Table>
            )}
        </div>
    );
}

function One({ name }: { name: string }) {
    useCommand(`cairn schedule get ${shellWord(name)}`, name);
    const turn = useTurn(5000), one = useAsked(() => getJson<Schedule>(path(name)), [turn]), ticks = useAsked(() => getJson<{ items: Tick[] }>(path(name) + "/ticks?limit=100"), [turn]), fills = useAsked(() => getJson<{ items: Backfill[] }>(path(name) + "/backfills"), [turn]);
    const [from, look] = useState(""), s = one.value;
    const later = useAsked(async () => (from ? (await getJson<{ items: Fire[] }>(`${path(name)}/next?limit=10&from=${from}T00:00:00Z`)).items : null), [from, s?.updatedAt]);
    if (one.error && !s) return <div class="page"><Failure error={one.error} again={one.again} /></div>;
    if (!s) return <div class="page"><Skeleton /></div>;
    const way = wayOf(s), spec: Partial<NonNullable<Schedule["schedule"]>> = s.schedule ?? {}, again = () => { one.again(); ticks.again(); fills.again(); };
    const rest = Object.fromEntries(Object.entries(spec).filter(([k]) => !["cron", "every", "at", "zone", "overlap", "catchup"].includes(k)));
    return (
        <div class="page scroll">
            <div class="row wrap">
                <Chip state={glyphOf[way]} text={way} /><h1 class="grow ell" dir="auto">{s.name}</h1>
                <div class="row acts"><Button why={mayDo("schedule.delete") ? undefined : "Needs the role Engineer"} onClick={() => remove(s)}>Remove…</Button><Button why={mayChange()} onClick={() => { dialog.value = () => <Fill schedule={s} then={again} />; }}>Backfill…</Button>{s.paused ? null : <Button why={mayChange()} onClick={() => pause(s, again)}>Pause…</Button>}{s.paused ? <Button why={mayStart()} onClick={() => trigger(s)}>Run now…</Button> : null}{s.paused ? <Button kind="pri" why={mayChange()} onClick={() => resume(s, again)}>Resume</Button> : <Button kind="pri" why={mayStart()} onClick={() => trigger(s)}>Run now…</Button>}</div>
            </div>
            <div class="facts">
                <span><b class="mono">{whenOf(s)}</b> in <b>{s.zone}</b></span>
                <span>starts {s.plan?.planId ? <a class="link" href={definitionHref(s.plan.planId)} dir="auto">{s.plan.planId}</a> : "a document"} <span class="mono">@{sha7(s.plan?.planVersion ?? "")}</span></span>
                <span>while one runs: <b>{spec.overlap ?? "skip"}</b></span><span>missed times run late for <b>{spec.catchup ?? "1h"}</b></span>
                {s.waiting?.length ? <span><b class="num">{s.waiting.length}</b> {s.waiting.length === 1 ? "time waits" : "times wait"}</span> : null}
                {s.updatedAt ? <span>changed <b><Time at={s.updatedAt} /></b>{s.updatedBy ? " by " + nameOf(s.updatedBy) : ""}</span> : null}
            </div>
            {s.error ? <div class="cause" role="alert"><Glyph state="failed" /><span class="grow"><b>It cannot fire</b>: {s.error}</span></div> : s.paused ? <div class="cause warn"><Glyph state="paused" /><span class="grow"><b>Paused{s.pausedBy ? " by " + nameOf(s.pausedBy) : ""}</b>{s.pausedReason ? ": " + s.pausedReason : ""}</span></div> : null}
            <div class="cols bare">
                <section class="card" aria-label="Next times">
                    <div class="row"><h3 class="grow">Next times</h3><label class="row faint">from <input type="date" class="date" value={from} onInput={(e) => look(e.currentTarget.value)} /></label></div>
                    <Fires list={later.value ?? (from ? [] : s.next ?? [])} zone={s.zone ?? "UTC"} />
                </section>
                <section class="card" aria-label="What became of its times">
                    <h3>What became of its times</h3>
                    {!ticks.value ? (ticks.error ? <p class="muted">{explain(ticks.error)}</p> : <Skeleton rows={3} height={28} />) : ticks.value.items.length === 0 ? <p class="muted">None of its times has come yet.</p> : <div class="ticks" tabIndex={0} role="region" aria-label="Times that came">{ticks.value.items.map((t, i) => <TickRow tick={t} key={t.time + t.kind + i} />)}</div>}
                </section>
            </div>
            {fills.value?.items.length ? <section class="card" aria-label="Backfills"><h3>Backfills</h3>{fills.value.items.map((b) => <div class="tickrow wide" key={b.id}><Glyph state={b.status === "DONE" ? "done" : "running"} /><span class="num">{(b.from ?? "").replace("T", " ")} to {(b.to ?? "").replace("T", " ")}</span><span class="muted num grow">{b.begun ?? 0} of {count(b.count, "run")} begun{b.reason ? " · " + b.reason : ""}</span>{b.status !== "DONE" ? <Button small why={mayChange()} onClick={() => void does(() => send("DELETE", `${path(name)}/backfills/${idOf(b.id ?? "")}`), "No more of it begins.", again)}>Stop</Button> : null}</div>)}</section> : null}
            <h2>Runs and steps</h2>
            <Grid query={`run="${name}:*" or run="bf-*:${name}:*"`} />
            {Object.keys(rest).length ? <section class="card" aria-label="Settings"><h3>Settings</h3><Json value={rest} root="$.schedule" /></section> : null}
        </div>
    );
}

// In the zone first, then in UTC. Where the clock is set, the row says what that does.
function Fires({ list, zone }: { list: Fire[]; zone: string }) {
    if (list.length === 0) return <p class="muted">There is none.</p>;
    return (
        <table class="fires" aria-label="Next times"><thead><tr><th scope="col">{zone}</th><th scope="col">UTC</th><th scope="col" class="r">In</th></tr></thead><tbody>
            {list.map((f, i) => {
                const here = localOf(f.local), ms = Date.parse(f.time) - now.value, mark = markOf(list, i);
                return <tr key={f.time}><td><span class="num">{here.day} <b>{here.time}</b> <span class="faint">{here.offset}</span></span>{mark ? <div class="warn-text dst"><Glyph state="retrying" />{mark}</div> : null}</td><td class="mono muted" title={f.time}>{f.time.slice(0, 10) === f.local.slice(0, 10) ? "" : f.time.slice(5, 10) + " "}{hourOf(f.time)}</td><td class="r muted num">{ms > 0 ? left(ms) : "now"}</td></tr>;
            })}
        </tbody></table>
    );
}
function TickRow({ tick: t }: { tick: Tick }) {
    const [state, word] = outcomes[t.outcome] ?? ["unknown" as State, t.outcome];
    return (
        <div class="tickrow">
            <Glyph state={state} />
            <time class="mono" dateTime={t.time} title={absolute(t.time)}>{day(t.time, utc.value)} {clock(t.time, utc.value).replace(/\.000$/, "")}</time>
            <span class="grow"><span class={state}>{word}</span>{t.count && t.count > 1 ? <span class="num"> {t.count} times in a row</span> : null} <span class="faint">{t.kind === "fire" ? "" : (kinds[t.kind] ?? t.kind)}</span>{t.reasonCode ? <span class="muted" title={t.detail} dir="auto"> {reasons[t.reasonCode] ?? <><span class="mono">{t.reasonCode}</span> {t.detail}</>}</span> : null}</span>
            {t.runId ? <a class="link mono" href={"/runs/" + idOf(t.runId)} title={t.runId}>{short(t.runId).split(":").at(-1)}</a> : null}
        </div>
    );
}
