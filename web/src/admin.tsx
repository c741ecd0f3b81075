// What operators look at: the outbox, alerts, the audit and the store. Each table says when there is nothing wrong.
import { useEffect, useState } from "preact/hooks";
import { getJson, idOf, mayAs, nameOf, send } from "./api";
import { resyncs } from "./live";
import { now } from "./prefs";
import { place, setQuery } from "./route";
import { useCommand } from "./shell";
import { Glyph } from "./states";
import type { Alert, Letter, Sink, StoreUsage } from "./types";
import { Ask, does, Table, useTurn } from "./tables";
import { Button, Clock, Cmd, dialog, Empty, Failure, Icon, Json, Seg, Skeleton, Time, trouble, useAsked } from "./ui";
import { ago, bytes, count, short, span } from "./words";

// ---- outbox and dead letters

const sinkStates: Record<string, "done" | "retrying" | "failed" | "paused" | "running"> = { open: "failed", closed: "done", up: "done", ok: "done", idle: "done", delivering: "running", down: "failed", retrying: "retrying", disabled: "paused", off: "paused" };
export function Outbox() {
    useCommand("cairn outbox ls", "Outbox");
    const turn = useTurn(3000), chosen = place.value.query.get("letter");
    const sinks = useAsked(() => getJson<{ items: Sink[] }>("/v1/outbox"), [turn]), letters = useAsked(() => getJson<{ items: Letter[]; nextCursor?: string | null }>("/v1/dlq?limit=100"), [turn]);
    const open = letters.value?.items.find((l) => l.id === chosen), may = mayAs("Admin") ? undefined : "Needs the role Admin";
    const redrive = (l: Letter) => { dialog.value = () => <Ask title="Send this letter again?" about="It goes to its sink once more. Events of one run keep their order from here on; what was delivered behind it in the meantime stays delivered." verb="Redrive" send={() => send("POST", `/v1/dlq/${idOf(l.id)}:redrive`, {})} then={letters.again} />; };
    const giveUp = (l: Letter) => { dialog.value = () => <Ask title="Give this letter up?" about="It is not sent again. The event stays in the log of its run." verb="Give up" reason send={(reason) => send("DELETE", `/v1/dlq/${idOf(l.id)}?reason=${encodeURIComponent(reason)}`)} then={letters.again} />; };
    return (
        <div class="page scroll">
            <h1>Outbox</h1>
            <h2>Sinks</h2>
            {sinks.error && !sinks.value ? <Failure error={sinks.error} again={sinks.again} /> : !sinks.value ? <Skeleton rows={2} /> : sinks.value.items.length === 0 ? <Empty title="No sink is configured" command="cairn config list">Events stay in the log. A sink carries them to NATS, a webhook or a file as they are stored.</Empty> : (
                <Table label="Sinks" head={[["Sink"], ["State"], ["Waiting", "r"], ["Lag", "r"], ["Delivered", "r"], ["Last error"]]}>
                    {sinks.value.items.map((s) => <tr key={String(s.name)}><td><b>{String(s.name)}</b> <span class="faint">{String(s.type ?? "")}</span></td><td><span class="row"><Glyph state={sinkStates[String(s.state)] ?? "unknown"} />{String(s.state ?? "")}</span></td><td class="r num">{Number(s.waiting ?? 0).toLocaleString("en-US")}</td><td class="r num">{span(Number(s.lagMs ?? 0))}</td><td class="r num">{Number(s.delivered ?? 0).toLocaleString("en-US")}</td><td class="mono muted">{String(s.lastError ?? "")}{s.nextTryAt ? <span class="warn-text"> next try {ago(String(s.nextTryAt), now.value)}</span> : null}</td></tr>)}
                </Table>
            )}
            <h2>Dead letters</h2>
            {letters.error && !letters.value ? <Failure error={letters.error} again={letters.again} /> : !letters.value ? <Skeleton rows={2} /> : letters.value.items.length === 0 ? <Empty title="Every event is delivered">What a sink refuses for good is kept here, with its error.</Empty> : (
                <div class="split">
                    <Table label="Dead letters" head={[["Sink"], ["Event"], ["Error"], ["", "r"]]}>
                        {letters.value.items.map((l) => <tr key={l.id} class={l.id === chosen ? "sel" : ""}><td>{l.sink}</td><td><a class="link mono" href={`/runs/${idOf(l.runId ?? "")}/events?at=${l.runSeq ?? ""}`}>{short(l.runId ?? "")}@{l.runSeq}</a> <span class="faint">{l.eventType}</span></td><td class="mono muted">{l.error ?? ""}<span class="faint"> {count(l.attempts ?? 0, "attempt")}</span></td><td class="r"><Button small onClick={() => setQuery({ letter: l.id })}>Look</Button> <Button small why={may} onClick={() => redrive(l)}>Redrive…</Button> <Button small why={may} onClick={() => giveUp(l)}>Give up…</Button></td></tr>)}
                    </Table>
                    {open ? <section class="card" aria-label="Letter"><div class="row"><h3 class="grow">The letter as it is sent</h3><button class="icon" aria-label="Close" onClick={() => setQuery({ letter: null })}><Icon name="x" /></button></div><Json value={open} /></section> : null}
                </div>
            )}
        </div>
    );
}

// ---- alerts

export function Alerts() {
    const show = place.value.query.get("show") ?? "open";
    useCommand("cairn alert ls", "Alerts");
    const turn = useTurn(4000), list = useAsked(() => getJson<{ items: Alert[] }>("/v1/alerts"), [turn]);
    const stateOf = (a: Alert) => (a.closedAt ? "closed" : a.acknowledgedAt ? "seen" : "open"), all = list.value?.items ?? [], n = (s: string) => all.filter((a) => stateOf(a) === s).length;
    const may = mayAs("Operator") ? undefined : "Needs the role Operator", shown = all.filter((a) => stateOf(a) === show);
    return (
        <div class="page scroll">
            <h1>Alerts</h1>
            <Seg label="Alerts" value={show} onPick={(s) => setQuery({ show: s === "open" ? null : s })} items={[["open", "Open", "failed", n("open")], ["seen", "Seen", "waiting", n("seen")], ["closed", "Closed", "done", n("closed")]]} />
            {list.error && !list.value ? <Failure error={list.error} again={list.again} /> : !list.value ? <Skeleton rows={3} /> : shown.length === 0 ? <Empty title={show === "open" ? "No alert is open" : show === "seen" ? "Nobody has marked an alert as seen" : "No alert was closed"} command={show === "open" ? "cairn alert ls" : undefined!}>{show === "open" ? "A pause that does not drain, events that are not delivered, a reader that falls behind: what needs somebody appears here, with the event that proves it." : null}</Empty> : (
                <Table label="Alerts" head={[["Alert"], ["What it is"], ["Since", "r"], ["Evidence"], ["", "r"]]}>
                    {shown.map((a) => {
                        const seq = a.runSeq, at = a.firstAt ?? "";
                        return <tr key={a.id}><td><span class="row"><Glyph state={a.priority === "P1" ? "failed" : "retrying"} /><b class="mono">{a.name}</b></span><span class="faint">{a.priority}{a.count && a.count > 1 ? ` · ${a.count} times` : ""}</span></td><td dir="auto">{a.text ?? ""}{a.acknowledgedBy ? <div class="faint">seen by {a.acknowledgedBy}</div> : null}</td><td class="r"><Time at={at} /></td><td>{a.runId ? <a class="link mono" href={`/runs/${idOf(a.runId)}${seq ? "?at=" + seq : ""}`}>{short(a.runId)}{seq ? "@" + seq : ""}</a> : null}</td><td class="r">{show === "open" ? <Button small why={may} onClick={() => void does(() => send("POST", `/v1/alerts/${idOf(a.id)}:ack`, {}), "Marked as seen.", list.again)}>Seen</Button> : null}</td></tr>;
                    })}
                </Table>
            )}
        </div>
    );
}

// ---- audit

interface AuditRecord { seq: number; auditId: string; timestamp: string; action: string; decision: string; actor?: { id?: string; role?: string }; resource?: { type?: string; id?: string }; reason?: unknown; details?: unknown; context?: unknown }
export function Audit() {
    useCommand("cairn audit verify", "Audit");
    const [rows, set] = useState<AuditRecord[]>([]), [next, after] = useState<string | null>(null), [error, fail] = useState<unknown>(null), [open, show] = useState<string | null>(null), [text, find] = useState("");
    const [chain, say] = useState<{ intact?: boolean; records?: number; count?: number; verified?: boolean } | null>(null);
    const load = async (cursor: string | null) => {
        try {
            const page: { items: AuditRecord[]; nextCursor?: string | null } = await getJson("/v1/audit?sort=-timestamp&limit=200" + (cursor ? "&cursor=" + encodeURIComponent(cursor) : ""));
            set((old) => [...(cursor ? old : []), ...page.items]);
            after(page.nextCursor ?? null);
        } catch (e) {
            fail(e);
        }
    };
    useTurn(60000);
    useEffect(() => { void load(null); }, []);
    const low = text.toLowerCase(), shown = rows.filter((r) => !low || JSON.stringify(r).toLowerCase().includes(low));
    return (
        <div class="page scroll">
            <div class="row wrap"><h1 class="grow">Audit</h1>{chain ? <span class={(chain.intact ?? chain.verified) ? "done row" : "failed row"}><Glyph state={(chain.intact ?? chain.verified) ? "done" : "failed"} />{(chain.intact ?? chain.verified) ? "The chain of decisions is whole" : "The chain of decisions is broken"}</span> : null}<Button onClick={() => void getJson<typeof chain>("/v1/audit:verify").then(say, trouble)}>Verify</Button></div>
            <div class="query"><Icon name="find" /><input value={text} placeholder="Filter by actor, action, run" aria-label="Filter the audit" onInput={(e) => find(e.currentTarget.value)} /></div>
            {error ? <Failure error={error} /> : (
                <Table label="Audit" head={[["Time"], ["Decision"], ["Action"], ["Who"], ["What"], ["", "r"]]}>
                    {shown.map((r) => [
                        <tr key={r.auditId}><td class="mono word"><Clock at={r.timestamp} withDay /></td><td class="word"><span class="row"><Glyph state={r.decision === "DENIED" || r.decision === "FAILED" ? "failed" : "done"} />{r.decision.toLowerCase()}</span></td><td class="mono word">{r.action}</td><td>{r.actor?.id ? nameOf(r.actor.id) : ""} <span class="faint">{r.actor?.role}</span></td><td>{r.resource?.type === "run" && r.resource.id ? <a class="link mono" href={"/runs/" + idOf(r.resource.id)}>{short(r.resource.id)}</a> : <span class="mono">{[r.resource?.type, r.resource?.id].filter(Boolean).join(" ")}</span>}</td><td class="r"><Button small onClick={() => show(open === r.auditId ? null : r.auditId)}>{open === r.auditId ? "Close" : "Look"}</Button></td></tr>,
                        open === r.auditId ? <tr key={r.auditId + "o"}><td colSpan={6}><Json value={r} /></td></tr> : null,
                    ])}
                </Table>
            )}
            {next ? <div class="row"><span class="muted">The newest {rows.length.toLocaleString("en-US")} decisions{low ? `, ${shown.length} of them match` : ""}.</span><Button onClick={() => void load(next)}>Older ones</Button></div> : null}
        </div>
    );
}

// ---- the store

// Parts of the database by what they hold, in the words of people; what is left is the rest.
const kinds: [string, string[]][] = [["Events", ["table workflow_events", "events"]], ["Ledger", ["table ledger", "ledger"]], ["Documents and results", ["table blobs", "blobs"]], ["Notes, audit and definitions", ["table notes", "notes"]], ["Lists of runs", ["table run_heads", "table runs"]], ["Write-ahead log", ["write-ahead log", "journal"]], ["Free pages", ["free pages"]]];
function partsOf(usage: StoreUsage["usage"]): { name: string; bytes: number }[] {
    const by = new Map(usage.map((u) => [u.what, u.bytes])), whole = (by.get("database") ?? 0) + (by.get("write-ahead log") ?? 0);
    const found = kinds.map(([name, keys]) => ({ name, bytes: by.get(keys.find((k) => by.has(k)) ?? "") ?? 0 })).filter((p) => p.bytes > 0);
    const rest = whole - found.reduce((n, p) => n + p.bytes, 0);
    if (!found.length) return usage.filter((u) => u.bytes > 0).map((u) => ({ name: u.what, bytes: u.bytes }));
    return rest > 0 ? [...found, { name: "Indexes and the rest", bytes: rest }] : found;
}
export function Store() {
    useCommand("cairn store stat", "Store");
    const asked = useAsked(() => getJson<StoreUsage>("/v1/usage"), [resyncs.value]), chain = useAsked(() => getJson<{ intact?: boolean; records?: number }>("/v1/audit:verify"), []);
    useTurn(60000);
    const it = asked.value;
    if (asked.error && !it) return <div class="page scroll"><h1>Store</h1><Failure error={asked.error} again={asked.again} /></div>;
    if (!it) return <div class="page scroll"><h1>Store</h1><Skeleton rows={4} /></div>;
    const parts = partsOf(it.usage), whole = parts.reduce((n, p) => n + p.bytes, 0), most = Math.max(1, ...it.days.map((d) => d.events)), per = it.events ? whole / it.events : 0;
    const free = it.usage.find((u) => u.what === "free pages")?.bytes ?? 0, inbox = it.usage.find((u) => u.what === "signals waiting")?.count ?? 0;
    const wrong: { text: string; command: string }[] = [];
    if (free > whole / 4 && free > 1 << 20) wrong.push({ text: `${bytes(free)} of the database are free pages. They are used again; a copy of the store gives them back.`, command: "cairn store copy sqlite:new.db" });
    if (inbox > 0) wrong.push({ text: `${count(inbox, "signal waits", "signals wait")} for a process that drives its run.`, command: "cairn ls status=active owned=no" });
    if (chain.value?.intact === false) wrong.push({ text: "The chain of the audit is broken.", command: "cairn audit verify" });
    return (
        <div class="page scroll">
            <div class="row wrap"><h1 class="grow">Store</h1><Button onClick={asked.again}>Look again</Button></div>
            <div class="facts"><span><b>{it.kind}</b></span><span><b class="num">{bytes(whole)}</b></span><span><b class="num">{it.runs.toLocaleString("en-US")}</b> {it.runs === 1 ? "run" : "runs"}{it.removed ? `, ${it.removed.toLocaleString("en-US")} removed` : ""}</span><span><b class="num">{it.events.toLocaleString("en-US")}</b> events</span>{it.oldest ? <span>since <b><Time at={it.oldest} /></b></span> : null}</div>
            <section class="card" aria-label="Size">
                <h3>Where the bytes are</h3>
                <div class="usage" role="img" aria-label={parts.map((p) => `${p.name} ${bytes(p.bytes)}`).join(", ")}>{parts.map((p, i) => <i key={p.name} class={"u" + (i % 8)} style={{ flex: Math.max(p.bytes, whole / 200) }} />)}</div>
                <ul class="usage-key">{parts.map((p, i) => <li key={p.name}><i class={"u" + (i % 8)} aria-hidden="true" /><span class="grow">{p.name}</span><span class="num">{bytes(p.bytes)}</span><span class="num faint">{Math.round((100 * p.bytes) / Math.max(1, whole))} %</span></li>)}</ul>
            </section>
            <section class="card" aria-label="Growth">
                <h3>Growth, 30 days</h3>
                <div class="days" role="img" aria-label={`${count(it.eventsPerDay, "event")} a day in the last 7 days`}>{it.days.map((d) => <i key={d.day} class={d.events ? "" : "none"} style={{ height: (d.events ? Math.max(3, Math.round((72 * d.events) / most)) : 2) + "px" }} title={`${d.day}: ${count(d.runs, "run")}, ${count(d.events, "event")}`} />)}</div>
                <div class="row muted"><span class="grow">{it.days[0]?.day}</span><span>{it.days.at(-1)?.day}</span></div>
                <p class="muted">{count(it.eventsPerDay, "event")} a day in the last 7 days, about {bytes(Math.round(it.eventsPerDay * per))} a day. {it.eventsPerDay ? `At this pace the store doubles in ${count(Math.max(1, Math.round(it.events / it.eventsPerDay)), "day")}.` : ""}</p>
            </section>
            <section class="card" aria-label="Doctor">
                <h3>Doctor</h3>
                {wrong.length ? wrong.map((w) => <div class="vstack tight" key={w.text}><div class="row"><Glyph state="retrying" />{w.text}</div><Cmd text={w.command} /></div>) : <div class="row"><Glyph state="done" />Nothing to fix{chain.value?.intact ? `: ${count(chain.value.records ?? 0, "audit record")} verified` : ""}.</div>}
                <p class="muted">The checks that read every log run on the server's machine:</p><Cmd text="cairn doctor" />
            </section>
            {it.biggest.length ? <section class="card" aria-label="Longest logs"><h3>Longest logs</h3>{it.biggest.map((b) => <div class="dep" key={b.runId}><a class="link mono" href={"/runs/" + idOf(b.runId)}>{short(b.runId)}</a><span class="num muted">{count(b.events, "event")}</span></div>)}</section> : null}
        </div>
    );
}
