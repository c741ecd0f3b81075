// Inbox: what waits for a person, oldest first. An answered card becomes its record and stays until the reader leaves.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { getJson, idOf, mayAs, several } from "./api";
import { follow, resyncs } from "./live";
import { now } from "./prefs";
import { needsPerson, visible } from "./redacted";
import { gates, moved, useCommand } from "./shell";
import { act } from "./acts";
import { Glyph } from "./states";
import type { RunRow, Snapshot, Step, Why } from "./types";
import { Button, Empty, Failure, Since, Skeleton, Value } from "./ui";
import { left, oneLine, short } from "./words";
import { Gate } from "./run/signals";

interface Waiting { run: RunRow; why: Why; held?: Step; context: { step: string; result: unknown }[] }

const sinceOf = (w: Waiting) => w.why.gate?.since ?? w.why.since ?? "";
const keyOf = (w: Waiting) => w.run.runId + "/" + (w.why.step ?? "");
// Which of the cards still wait.
const open = signal(new Set<string>());
function answered(w: Waiting): void {
    if (!open.value.has(keyOf(w))) return;
    open.value = new Set([...open.value].filter((k) => k !== keyOf(w)));
    gates.value = open.value.size;
}

async function read(): Promise<Waiting[]> {
    const page = await getJson<{ items: RunRow[] }>("/v1/runs?limit=100&q=" + encodeURIComponent(`status=active (${needsPerson()})`));
    const out: Waiting[] = [];
    await Promise.all(page.items.map(async (run) => {
        const whole = await getJson<Why>(`/v1/runs/${idOf(run.runId)}/why`), snapshot = await getJson<Snapshot>("/v1/runs/" + idOf(run.runId));
        // The run itself may wait for its approval before any of its steps.
        if (whole.reason === "NEEDS_APPROVAL") out.push({ run, why: { ...whole, gate: { message: `May ${run.planId} start?`, role: "Operator", since: run.createdAt ?? whole.at.time } }, context: [] });
        for (const s of whole.steps?.filter((x) => x.state === "approval") ?? []) {
            const why = await getJson<Why>(`/v1/runs/${idOf(run.runId)}/steps/${several(s.step)}/why`);
            const context = (why.dependencies ?? []).flatMap((d) => { const found = snapshot.steps.find((x) => x.stepId === d.step); return found?.result !== undefined ? [{ step: d.step, result: found.result }] : []; });
            if (why.gate) out.push({ run, why, context });
        }
        // A step that failed for good and is held: it is tried again, or left out.
        for (const s of snapshot.steps as Step[]) {
            if (!s.held) continue;
            const since = s.attempts?.at(-1)?.endedAt ?? s.completedAt ?? run.createdAt;
            out.push({ run, held: s, why: { ...whole, step: s.stepId, ...(since ? { since } : {}) }, context: [] });
        }
    }));
    return out.sort((a, b) => sinceOf(a).localeCompare(sinceOf(b)));
}

export function Inbox() {
    useCommand("cairn inbox", "Inbox");
    const [list, set] = useState<Waiting[] | null>(null), [error, fail] = useState<unknown>(null);
    useEffect(() => {
        let mine = true, timer = 0;
        const load = () => read().then((fresh) => {
            if (!mine) return;
            gates.value = fresh.length;
            open.value = new Set(fresh.map(keyOf));
            // What was answered stays where it is; what is new comes below.
            set((old) => { const known = new Set(old?.map(keyOf)); return [...(old ?? []), ...fresh.filter((w) => !known.has(keyOf(w)))]; });
        }, (e) => { if (mine) fail(e); });
        void load();
        const stop = follow("/v1/events", Number.MAX_SAFE_INTEGER, () => { moved.value++; if (!timer) timer = window.setTimeout(() => { timer = 0; void load(); }, 1500); });
        return () => { mine = false; stop(); clearTimeout(timer); };
    }, [resyncs.value]);
    return (
        <div class="page scroll">
            <h1>Inbox</h1>
            {error && !list ? <Failure error={error} /> : list === null ? <Skeleton rows={3} height={120} /> : list.length === 0 ? <Empty title="Nothing waits for you" command="cairn inbox --watch">Approvals appear here with their question, their deadline and what came before them; steps that failed and are held, with what they said.</Empty> : null}
            <div class="cards">
                {list?.map((w) => {
                    const waits = open.value.has(keyOf(w)), g = w.why.gate, from = Date.parse(sinceOf(w)), end = g?.deadline ? Date.parse(g.deadline) : null, share = end ? Math.max(0, Math.min(100, ((now.value - from) / (end - from)) * 100)) : null;
                    return (
                        <article class="card inbox" key={keyOf(w)}>
                            <div class="row wrap"><Glyph state={waits ? (w.held ? "held" : "approval") : "done"} /><a class="link" href={`/runs/${idOf(w.run.runId)}${w.why.step ? "?step=" + encodeURIComponent(w.why.step) : ""}`}><b dir="auto">{w.run.planId}</b></a><span class="mono faint">{short(w.run.runId)}{w.why.step ? "/" + w.why.step : ""}</span><span class="grow" /><span class="muted">{waits ? <>waits for <Since from={sinceOf(w)} /></> : "answered"}</span></div>
                            {waits && share !== null ? <div class="deadline" role="img" aria-label={`${left(end! - now.value)} left`}><i style={{ width: share + "%" }} /></div> : null}
                            {w.context.length ? <details><summary>What came before</summary>{w.context.map((c) => <div class="out" key={c.step}><b dir="auto">{c.step}</b><Value value={c.result} /></div>)}</details> : null}
                            {g ? <Gate run={w.run.runId} step={w.why.step} message={g.message} role={g.role} deadline={g.deadline} onTimeout={g.onTimeout} then={() => answered(w)} /> : w.held ? <Held w={w} waits={waits} /> : null}
                        </article>
                    );
                })}
            </div>
        </div>
    );
}

function Held({ w, waits }: { w: Waiting; waits: boolean }) {
    const step = w.why.step!, may = !waits ? "It is decided" : mayAs("Engineer") ? undefined : "Needs the role Engineer", e = w.held!.error, href = `/runs/${idOf(w.run.runId)}?step=${encodeURIComponent(step)}`;
    return (
        <div class="gate bad">
            <b dir="auto">{step} failed and is held</b>
            {e ? <div class="mono failed" dir="auto">{e.code} {visible(oneLine(e.message))}</div> : null}
            <div class="row wrap">
                <Button kind="pri" why={may} onClick={() => act("RETRY_STEP", w.run, step, () => answered(w))}>Retry…</Button>
                <Button why={may} onClick={() => act("SKIP_STEP", w.run, step, () => answered(w))}>Skip…</Button>
                <span class="grow" /><a class="link" href={href}>Why</a><a class="link" href={href + "&show=logs"}>Logs</a>
            </div>
            {may && waits ? <span class="hint">You do not have the role Engineer.</span> : null}
        </div>
    );
}
