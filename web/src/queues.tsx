// Who waits, for what, and who works: queues with their limits, workers with their pools, and the engines that drive runs.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { getJson, idOf, mayDo, send } from "./api";
import { useCommand } from "./shell";
import { Glyph } from "./states";
import { Ask, does, Table, useTurn } from "./tables";
import type { Engines, Limits, Queue, Worker } from "./types";
import { Button, closeDialog, Dialog, dialog, Empty, explain, Failure, Field, Skeleton, Time, toast, useAsked } from "./ui";
import { count, shellWord, span } from "./words";

export function Queues() {
    useCommand("cairn queue ls", "Queues & workers");
    const turn = useTurn(3000);
    const queues = useAsked(() => getJson<{ items: Queue[] }>("/v1/queues"), [turn]), workers = useAsked(() => getJson<{ items: Worker[] }>("/v1/workers"), [turn]);
    const limits = useAsked(() => getJson<Limits>("/v1/limits"), [turn]), engines = useAsked(async () => (mayDo("metrics") ? await getJson<Engines>("/v1/engines") : null), [turn]);
    const may = mayDo("queue.change") ? undefined : "Needs the role Admin", l = limits.value;
    const edit = (q: Queue | null) => { dialog.value = () => <QueueForm queue={q} then={queues.again} />; };
    return (
        <div class="page scroll">
            <div class="row wrap">
                <h1 class="grow">Queues & workers</h1>
                {l ? <span class="muted num">{count(l.runsNow, "run")} in flight{l.runsInFlight ? ` of ${l.runsInFlight.toLocaleString("en-US")}` : ", no limit"}{l.startsPerSecond ? ` · ${l.startsPerSecond.toLocaleString("en-US")} starts a second` : ""}</span> : null}
                <Button why={mayDo("limit.change") ? undefined : "Needs the role Admin"} disabled={!l} onClick={() => { if (l) dialog.value = () => <LimitsForm limits={l} then={limits.again} />; }}>Limits…</Button>
                <Button why={may} onClick={() => edit(null)}>New queue…</Button>
            </div>
            <h2>Queues</h2>
            {queues.error && !queues.value ? <Failure error={queues.error} again={queues.again} /> : !queues.value ? <Skeleton rows={2} /> : (
                <Table label="Queues" head={[["Queue"], ["State"], ["Running", "r"], ["Waiting", "r"], ["Oldest", "r"], ["When it is full"], ["", "r"]]}>
                    {queues.value.items.map((q) => (
                        <tr key={q.name}>
                            <td><b dir="auto">{q.name}</b>{q.priority ? <span class="faint"> priority {q.priority}</span> : null}</td>
                            <td><span class="row"><Glyph state={q.paused ? "paused" : q.queued ? "waiting" : "done"} />{q.paused ? "paused" : q.queued ? "full" : "open"}</span></td>
                            <td class="r num">{q.maxRunning ? <span class="row end"><Places running={q.running} of={q.maxRunning} />{q.running} of {q.maxRunning.toLocaleString("en-US")}</span> : q.running}</td><td class="r num">{q.queued ? <a class="link" href={"/runs?q=" + encodeURIComponent("status=PENDING")}>{q.queued.toLocaleString("en-US")}</a> : 0}</td><td class="r"><Time at={q.oldestQueuedAt} /></td>
                            <td class="muted">{whenFull(q)}</td>
                            <td class="r"><span class="row end">
                                {q.paused ? <Button small why={may} onClick={() => void does(() => send("POST", `/v1/queues/${idOf(q.name)}/resume`, {}), `Runs of ${q.name} start again.`, queues.again)}>Resume</Button> : <Button small why={may} onClick={() => { dialog.value = () => <Ask title={`Pause the queue ${q.name}?`} about="What runs goes on. Nothing of it starts any more." verb="Pause" command={"cairn queue pause " + q.name} send={() => send("POST", `/v1/queues/${idOf(q.name)}/pause`, {})} then={queues.again} />; }}>Pause…</Button>}
                                <Button small why={may} onClick={() => edit(q)}>Change…</Button>
                                {q.name === "default" ? null : <Button small why={may ?? (q.queued ? "Runs wait in it" : undefined)} onClick={() => { dialog.value = () => <Ask title={`Remove the queue ${q.name}?`} about="Runs of it that are under way go on. A start that names it is refused from then on." verb="Remove" command={"cairn queue rm " + q.name} send={() => send("DELETE", `/v1/queues/${idOf(q.name)}`)} then={queues.again} />; }}>Remove…</Button>}
                            </span></td>
                        </tr>
                    ))}
                </Table>
            )}
            <h2>Workers</h2>
            {workers.error && !workers.value ? <Failure error={workers.error} again={workers.again} /> : !workers.value ? <Skeleton rows={2} /> : workers.value.items.length === 0 ? <Empty slim title="No workers are connected" command={"cairn worker --server " + location.origin}>Steps run in the server itself. A worker takes them to another machine:</Empty> : (
                <Table label="Workers" head={[["Worker"], ["Pool"], ["Slots"], ["Leases", "r"], ["Last heard of", "r"]]}>
                    {workers.value.items.map((w, i) => {
                        const slots = Number(w.slots ?? 0), leases = Number(w.leases ?? 0), silent = Number(w.silentMs ?? 0);
                        return <tr key={String(w.worker ?? i)}><td><b dir="auto">{String(w.worker ?? "")}</b>{w.draining ? <span class="warn-text"> drains</span> : null}</td><td dir="auto">{w.pool ?? ""}</td><td><Places running={leases} of={slots} what="slots are taken" /></td><td class="r num">{leases}</td><td class={"r num" + (silent > 15000 ? " failed" : "")}>{span(silent)} ago</td></tr>;
                    })}
                </Table>
            )}
            {engines.value ? <Driving engines={engines.value} /> : engines.error ? <Failure error={engines.error} again={engines.again} /> : null}
        </div>
    );
}
const whenFull = (q: Pick<Queue, "policy" | "maxRunning" | "maxQueued" | "delayMs">) => (!q.maxRunning ? "has no limit of its own" : q.policy === "REJECT" ? "starts are refused" : q.policy === "DELAY" ? `runs start, their steps ${span(q.delayMs)} later` : `up to ${q.maxQueued.toLocaleString("en-US")} wait`);
// A cell each up to what fits; more are a bar.
function Places({ running, of, what = "places are taken" }: { running: number; of: number; what?: string }) {
    const label = `${running} of ${of} ${what}`;
    if (of <= 24) return <div class="slots" role="img" aria-label={label}>{Array.from({ length: of }, (_, k) => <i key={k} class={k < running ? "r" : ""} />)}</div>;
    return <div class="slots bar" role="img" aria-label={label}><i class="r" style={{ flex: running }} /><i style={{ flex: Math.max(0, of - running) }} /></div>;
}

// ---- engines, and what executes attempts

function Driving({ engines: e }: { engines: Engines }) {
    const workers = e.hosts.find((h) => h.kind === "workers"), temporal = e.hosts.find((h) => h.kind === "temporal"), pools = workers?.pools ?? [];
    return (
        <>
            <h2>Engines</h2>
            <Table label="Engines" head={[["Engine"], ["State"], ["Its share of the runs"], ["Duty"]]}>
                {e.items.map((x) => (
                    <tr key={x.number ?? 0}>
                        <td><b>{x.number ? "Engine " + x.number : "The engine"}</b>{x.self && e.several ? <span class="faint"> answers you</span> : null}{x.self ? <span class="faint"> {e.version}, started <Time at={e.startedAt} /></span> : null}</td>
                        <td>{x.self ? <span class="row"><Glyph state={e.ready ? "done" : "failed"} />{e.ready ? "ready" : "not ready"}<span class="faint num">{[e.turnedMs > 2000 ? `last turned ${span(e.turnedMs)} ago` : "", e.ready ? "" : `stored something ${span(e.storedMs)} ago`, e.projectorLagMs > 1000 ? `lists are ${span(e.projectorLagMs)} behind` : ""].filter(Boolean).join(", ")}</span></span> : <span class="row"><Glyph state="done" />lives</span>}</td>
                        <td>{e.several ? <span class="row"><Places running={x.shards ?? 0} of={64} what="shards" /><span class="num muted">{x.shards ?? 0} of 64 shards</span></span> : <span class="muted">all of them</span>}</td>
                        <td class="muted">{x.duty ? "sinks, and runs that nobody has" : ""}</td>
                    </tr>
                ))}
            </Table>
            {e.several && e.count > e.items.length ? <p class="muted">{count(e.count - e.items.length, "engine has", "engines have")} joined and {e.count - e.items.length === 1 ? "has" : "have"} no share yet.</p> : null}
            {e.several ? null : <p class="faint">One engine has this store. On postgres several can share it.</p>}
            <h2>Hosts</h2>
            <Table label="Hosts" head={[["What executes attempts"], ["State"], ["Waiting", "r"], ["Under way", "r"]]}>
                {temporal ? <Host name="Temporal" about={<span class="mono faint" dir="auto"> {temporal.address} · {temporal.namespace} · {temporal.queue}</span>} state="every attempt is an activity there" /> : <Host name="This server" about={<span class="faint"> processes, tasks and functions</span>} state="steps that no pool takes" />}
                {workers ? <tr><td><b>Workers</b> <span class="faint">{count(workers.workers ?? 0, "worker")}</span></td><td><span class="row"><Glyph state={workers.waiting && !workers.workers ? "retrying" : workers.workers ? "done" : "waiting"} />{workers.waiting && !workers.workers ? "nobody takes what waits" : workers.workers ? "connected" : "none connected"}</span></td><td class="r num">{workers.waiting ?? 0}</td><td class="r num">{workers.leased ?? 0}</td></tr> : null}
                {pools.map((p) => <tr key={"p" + p.name}><td class="sub"><span dir="auto">{p.name || "any pool"}</span> <span class="faint">{count(p.workers, "worker")}</span></td><td><span class="row"><Glyph state={p.waiting && !p.workers ? "retrying" : p.workers ? "done" : "waiting"} />{p.waiting && !p.workers ? "nobody takes what waits" : p.waiting ? `the oldest waits ${span(p.oldestMs)}` : p.workers ? "connected" : "none connected"}</span></td><td class="r num">{p.waiting}</td><td /></tr>)}
            </Table>
        </>
    );
}
const Host = ({ name, about, state }: { name: string; about: ComponentChildren; state: string }) => <tr><td><b>{name}</b>{about}</td><td><span class="row"><Glyph state="done" />{state}</span></td><td /><td /></tr>;

// ---- forms

const whole = (text: string, most: number): number | null => (/^\d{1,7}$/.test(text.trim()) && Number(text) <= most ? Number(text) : null);
function Form({ title, command, about, fail, busy, send: go, verb, off, children }: { title: string; command: string; about: ComponentChildren; fail: string; busy: boolean; send: () => void; verb: string; off: boolean; children: ComponentChildren }) {
    return (
        <Dialog title={title} onClose={closeDialog} command={command}>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); if (!off) go(); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey) && !off) { e.preventDefault(); go(); } }}>
                {children}
                <p class="muted" role="status">{about}</p>
                {fail ? <div class="field err" role="alert"><Glyph state="failed" />{fail}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Close</Button><Button kind="pri" type="submit" disabled={busy || off}>{verb}</Button></div>
            </form>
        </Dialog>
    );
}
function useSending(what: () => Promise<unknown>, said: string, then: () => void) {
    const [error, fail] = useState(""), [busy, work] = useState(false);
    const go = () => { work(true); what().then(() => { closeDialog(); toast(said); then(); }, (e) => { fail(explain(e)); work(false); }); };
    return { error, busy, go, clear: () => fail("") };
}

function QueueForm({ queue, then }: { queue: Queue | null; then: () => void }) {
    const [name, setName] = useState(queue?.name ?? ""), [policy, setPolicy] = useState<Queue["policy"]>(queue?.policy ?? "QUEUE");
    const [running, setRunning] = useState(String(queue?.maxRunning ?? 0)), [queued, setQueued] = useState(String(queue?.maxQueued ?? 10000)), [delay, setDelay] = useState(String(queue?.delayMs ?? 1000)), [priority, setPriority] = useState(String(queue?.priority ?? 0));
    const r = whole(running, 1000000), w = whole(queued, 1000000), d = whole(delay, 86400000), p = /^-?\d{1,4}$/.test(priority.trim()) && Math.abs(Number(priority)) <= 1000 ? Number(priority) : null;
    const named = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(name), ok = named && r !== null && w !== null && d !== null && p !== null;
    const value = { policy, maxRunning: r ?? 0, maxQueued: w ?? 0, delayMs: d ?? 0, priority: p ?? 0 };
    const sending = useSending(() => send("PUT", "/v1/queues/" + idOf(name), value), queue ? `${name} is changed.` : `${name} is there.`, then);
    const set = (to: (t: string) => void) => (e: { currentTarget: { value: string } }) => { to(e.currentTarget.value); sending.clear(); };
    const changed = (Object.keys(value) as (keyof typeof value)[]).filter((k) => !queue || queue[k] !== value[k]);
    return (
        <Form title={queue ? `Change the queue ${queue.name}?` : "Make a queue?"} verb={queue ? "Change" : "Make it"} off={!ok || (!!queue && changed.length === 0)} busy={sending.busy} fail={sending.error} send={sending.go}
            command={`cairn queue set ${name ? shellWord(name) : "QUEUE"}${changed.map((k) => ` --set ${k}=${value[k]}`).join("")}`}
            about={!ok ? "A number is missing, or the name is none." : `${r ? `${count(r, "run")} at a time. When there are more: ${whenFull(value)}.` : "As many runs at a time as there are."}${p ? ` Its runs go ${p > 0 ? "before" : "behind"} those of queues with ${p > 0 ? "less" : "more"} priority.` : ""}`}>
            {queue ? null : <Field label="Name, required" hint="Letters, digits and . _ : -" error={name && !named ? "This is no name of a queue." : undefined}><input class="mono" name="name" required maxLength={128} spellcheck={false} value={name} onInput={set(setName)} /></Field>}
            <Field label="Runs at a time" hint="0 is no limit of the queue's own" error={r === null ? "A whole number up to 1,000,000." : undefined}><input name="maxRunning" inputMode="numeric" value={running} onInput={set(setRunning)} /></Field>
            <Field label="When it is full"><select name="policy" value={policy} onChange={(e) => { setPolicy(e.currentTarget.value as Queue["policy"]); sending.clear(); }}><option value="QUEUE">runs wait</option><option value="REJECT">starts are refused</option><option value="DELAY">runs start, their steps wait</option></select></Field>
            {policy === "QUEUE" ? <Field label="How many may wait" error={w === null ? "A whole number up to 1,000,000." : undefined}><input name="maxQueued" inputMode="numeric" value={queued} onInput={set(setQueued)} /></Field> : null}
            {policy === "DELAY" ? <Field label="How much later steps start, in milliseconds" error={d === null ? "A whole number up to 86,400,000." : undefined}><input name="delayMs" inputMode="numeric" value={delay} onInput={set(setDelay)} /></Field> : null}
            <Field label="Priority" hint="Among the queues of the tenant; more goes first" error={p === null ? "A whole number from -1000 to 1000." : undefined}><input name="priority" inputMode="numeric" value={priority} onInput={set(setPriority)} /></Field>
        </Form>
    );
}

function LimitsForm({ limits, then }: { limits: Limits; then: () => void }) {
    const [runs, setRuns] = useState(String(limits.runsInFlight)), [starts, setStarts] = useState(String(limits.startsPerSecond)), r = whole(runs, 1000000), s = whole(starts, 1000000);
    const sending = useSending(() => send("PUT", "/v1/limits", { runsInFlight: r, startsPerSecond: s }), "The limits are changed.", then), ok = r !== null && s !== null;
    const set = (to: (t: string) => void) => (e: { currentTarget: { value: string } }) => { to(e.currentTarget.value); sending.clear(); };
    return (
        <Form title="Change the limits of the tenant?" verb="Change" busy={sending.busy} fail={sending.error} send={sending.go} off={!ok || (r === limits.runsInFlight && s === limits.startsPerSecond)} command={`cairn limits set --set runsInFlight=${r ?? "N"} --set startsPerSecond=${s ?? "N"}`}
            about={!ok ? "A number is missing." : `${r ? `${count(r, "run")} in flight at most, over all queues${r < limits.runsNow ? `: ${count(limits.runsNow, "run is", "runs are")} under way and go on, nothing starts until there are fewer` : ""}.` : "As many runs in flight as queues let in."} ${s ? `${count(s, "start")} a second at most; more are refused and may try again.` : "Starts are not held back."}`}>
            <Field label="Runs in flight" hint="Of all queues; 0 is no limit" error={r === null ? "A whole number up to 1,000,000." : undefined}><input name="runsInFlight" inputMode="numeric" value={runs} onInput={set(setRuns)} /></Field>
            <Field label="Starts a second" hint="0 is no limit of the tenant's own" error={s === null ? "A whole number up to 1,000,000." : undefined}><input name="startsPerSecond" inputMode="numeric" value={starts} onInput={set(setStarts)} /></Field>
        </Form>
    );
}
