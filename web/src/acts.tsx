// What may be done to runs: each with a dialog that says what will happen, who may, and the command that does the same.
import { useEffect, useState } from "preact/hooks";
import { getJson, idOf, mayAs, mayDo, Refusal, send, uuid } from "./api";
import { go } from "./route";
import { Chip, Glyph, type State, stepState, word } from "./states";
import type { ForkPreview, RunRow, Snapshot } from "./types";
import { Button, closeDialog, Dialog, dialog, explain, Field, toast } from "./ui";
import { count, shellWord, short } from "./words";

export interface Decision { signalId: string; signalType: string; decision: string; policyDecisionId?: string; causedSeq?: number; newRunId?: string }
interface SignalSpec { type: string; verb: string; role: string; past: string; destructive?: boolean; step?: boolean; command: (id: string, step?: string) => string; about: string }
export const signals: SignalSpec[] = [
    { type: "PAUSE", verb: "Pause", past: "paused", role: "Operator", command: (id) => "cairn pause " + id, about: "Steps that run may finish; no further step starts." },
    { type: "RESUME", verb: "Resume", past: "resumed", role: "Operator", command: (id) => "cairn resume " + id, about: "Steps start again." },
    { type: "CANCEL", verb: "Cancel", past: "cancelled", role: "Operator", command: (id) => "cairn cancel " + id, about: "Steps that run are asked to stop, and the run ends as cancelled. It cannot be taken back." },
    { type: "RETRY_RUN", verb: "Retry", past: "retried", role: "Engineer", command: (id) => "cairn retry " + id, about: "A new run takes over what was done and does the rest again. This run stays as it is." },
    { type: "RETRY_STEP", verb: "Retry step", past: "retried", role: "Engineer", step: true, command: (id, step) => `cairn retry ${id} --step ${step}`, about: "The step that failed and waits gets a new attempt." },
    { type: "SKIP_STEP", verb: "Skip step", past: "skipped", role: "Engineer", step: true, command: (id, step) => `cairn skip ${id}/${step}`, about: "The step counts as skipped, and the run goes on without it." },
    { type: "EMERGENCY_STOP", verb: "Stop at once", past: "stopped", role: "Admin", destructive: true, command: (id) => `cairn signal ${id} EMERGENCY_STOP`, about: "The run ends at once, whatever its steps do. An alert is raised." },
];
export const specOf = (type: string) => signals.find((s) => s.type === type);

// Why a signal cannot be sent now; undefined: it can.
export function whyNot(type: string, run: { status: string }): string | undefined {
    const spec = specOf(type), ended = ["COMPLETED", "FAILED", "CANCELLED"].includes(run.status);
    if (spec && !mayAs(spec.role)) return "Needs the role " + spec.role;
    if (type === "RETRY_RUN") return ended ? (run.status === "COMPLETED" ? "The run completed: run it again instead" : undefined) : "The run has not ended";
    if (ended) return "The run has ended";
    if (type === "RESUME" && run.status !== "PAUSED") return "The run is not paused";
    if (type === "PAUSE" && run.status === "PAUSED") return "The run is paused already";
    return undefined;
}

// Why no run can be made from a run; undefined: it can.
export const mayFork = () => (mayDo("run.fork") ? undefined : "Needs the role Engineer");

export const sendSignal = (run: string, signalType: string, payload: Record<string, unknown>, reason?: string) => {
    const beside = reason && !["PAUSE", "CANCEL", "SKIP_STEP", "RETRY_RUN", "EMERGENCY_STOP", "APPROVE", "REJECT"].includes(signalType);
    return send<Decision>("POST", `/v1/runs/${idOf(run)}/signals`, { signalId: uuid(), signalType, payload: reason && !beside ? { ...payload, reason } : payload, ...(beside ? { reason } : {}) });
};

function Confirm({ type, run, step, then }: { type: string; run: { runId: string; planId: string }; step?: string | undefined; then?: ((d: Decision) => void) | undefined }) {
    const spec = specOf(type)!, [reason, set] = useState(""), [typed, type2] = useState(""), [error, fail] = useState(""), [busy, work] = useState(false);
    const id = short(run.runId), needs = spec.destructive ? 10 : 0;
    const go2 = async () => {
        work(true);
        try {
            const d = await sendSignal(run.runId, type, step ? { stepId: step } : {}, reason.trim() || undefined);
            closeDialog();
            toast(d.decision === "ACCEPTED" ? `${run.planId} ${id}: ${spec.verb.toLowerCase()} accepted${d.causedSeq ? `, event ${d.causedSeq}` : ""}.` : `The signal waits: ${d.decision.toLowerCase().replaceAll("_", " ")}.`);
            then?.(d);
            if (d.newRunId) go("/runs/" + idOf(d.newRunId));
        } catch (e) {
            fail(explain(e));
        } finally {
            work(false);
        }
    };
    return (
        <Dialog title={`${spec.verb} ${step ?? run.planId}?`} onClose={closeDialog} command={spec.command(id, step) + (reason ? " --reason " + shellWord(reason) : "")}>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); void go2(); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) void go2(); }}>
                <p class="muted">{spec.about}</p>
                <Field label={needs ? "Reason, required" : "Reason"} hint="Kept in the decision record"><input value={reason} onInput={(e) => set(e.currentTarget.value)} maxLength={500} required={needs > 0} minLength={needs || undefined} /></Field>
                {spec.destructive ? <Field label={`Type ${id} to confirm`}><input value={typed} onInput={(e) => type2(e.currentTarget.value)} required /></Field> : null}
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Keep it as it is</Button><Button kind="pri" type="submit" disabled={busy || (spec.destructive ? typed !== id || reason.trim().length < 10 : false)}>{spec.verb}</Button></div>
            </form>
        </Dialog>
    );
}
export function act(type: string, run: { runId: string; planId: string }, step?: string, then?: (d: Decision) => void): void {
    dialog.value = () => <Confirm type={type} run={run} step={step} then={then} />;
}

// ---- a new run made from a run

type How = "forks" | "rerun" | "retry";
const titles: Record<How, string> = { forks: "Fork", rerun: "Run again", retry: "Retry" };
function Again({ how, run, at, step }: { how: How; run: Snapshot; at?: number | undefined; step?: string | undefined }) {
    const [preview, show] = useState<ForkPreview | null>(null), [error, fail] = useState(""), [inputs, setInputs] = useState<string | null>(null), [reason, set] = useState(""), [busy, work] = useState(false);
    const [own, known] = useState("{}");
    const id = short(run.runId);
    const body = () => {
        const value: Record<string, unknown> = {};
        if (how === "forks" && at !== undefined) value.fromSeq = at;
        if (how === "retry") value.stepId = step;
        if (inputs !== null && inputs.trim() !== own) value.inputs = JSON.parse(inputs);
        return value;
    };
    useEffect(() => { if (mayDo("run.payload")) getJson<{ inputs: unknown }>(`/v1/runs/${idOf(run.runId)}/payload`).then((p) => { known(JSON.stringify(p.inputs, null, 2)); setInputs(JSON.stringify(p.inputs, null, 2)); }, () => {}); }, []);
    useEffect(() => {
        let mine = true;
        const wait = setTimeout(() => {
            let value: Record<string, unknown>;
            try {
                value = body();
            } catch (e) {
                fail("The inputs are no JSON: " + (e as Error).message);
                return;
            }
            send<ForkPreview>("POST", `/v1/runs/${idOf(run.runId)}/${how}/preview`, value).then((p) => { if (mine) { show(p); fail(""); } }, (e) => { if (mine) { fail(explain(e)); show(null); } });
        }, 200);
        return () => { mine = false; clearTimeout(wait); };
    }, [inputs]);
    const make = async () => {
        work(true);
        try {
            const made = await send<{ runId: string }>("POST", `/v1/runs/${idOf(run.runId)}/${how}`, { ...body(), ...(reason.trim() ? { reason: reason.trim() } : {}) }, { "Idempotency-Key": uuid() });
            closeDialog();
            toast("The new run is " + short(made.runId) + ".");
            go("/runs/" + idOf(made.runId));
        } catch (e) {
            fail(explain(e));
        } finally {
            work(false);
        }
    };
    const cli = how === "forks" ? `cairn fork ${id}${at !== undefined ? "@" + at : ""}` : how === "retry" ? `cairn retry ${id}${step ? " --step " + shellWord(step) : ""}` : `cairn rerun ${id}`;
    const kept = preview?.steps.filter((s) => /reuse|keep|kept|taken|over/i.test(s.fate)) ?? [], anew = preview?.steps.filter((s) => !kept.includes(s)) ?? [];
    return (
        <Dialog title={`${titles[how]} ${run.planId}${how === "forks" && at !== undefined ? " from event " + at : ""}?`} onClose={closeDialog} command={cli} wide>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); void make(); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) void make(); }}>
                <p class="muted">A new run is made. This run and its log stay as they are.</p>
                {inputs !== null ? <Field label="Input" hint="Change a value, and the preview tells what it means"><textarea class="mono" rows={Math.min(10, inputs.split("\n").length + 1)} value={inputs} spellcheck={false} onInput={(e) => setInputs(e.currentTarget.value)} /></Field> : null}
                <Field label="Reason" hint="Kept with the new run"><input value={reason} maxLength={500} onInput={(e) => set(e.currentTarget.value)} /></Field>
                {preview ? (
                    <div class="preview">
                        <div><h3>{count(anew.length, "step runs", "steps run")}</h3><ul>{anew.slice(0, 40).map((s) => <li key={s.stepId}><Glyph state="running" /><b dir="auto">{s.stepId}</b> <span class="muted">{s.why ?? word(s.fate.toLowerCase())}</span></li>)}{anew.length > 40 ? <li class="muted">{anew.length - 40} more</li> : null}</ul></div>
                        <div><h3>{count(kept.length, "step is", "steps are")} taken over</h3><ul>{kept.slice(0, 40).map((s) => <li key={s.stepId}><Glyph state="reused" /><b dir="auto">{s.stepId}</b></li>)}{kept.length > 40 ? <li class="muted">{kept.length - 40} more</li> : null}</ul></div>
                        {preview.endsAtOnce ? <p class="warn-text">Nothing is left to do: the new run would end at once.</p> : null}
                    </div>
                ) : error ? null : <p class="faint">Asking what would run…</p>}
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Close</Button><Button kind="pri" type="submit" disabled={busy || !preview}>{titles[how]}</Button></div>
            </form>
        </Dialog>
    );
}
export function again(how: How, run: Snapshot, more: { at?: number; step?: string } = {}): void {
    dialog.value = () => <Again how={how} run={run} at={more.at} step={more.step} />;
}

// ---- many runs at once: first what would be refused, then one after the other

function Bulk({ type, runs }: { type: string; runs: RunRow[] }) {
    const spec = specOf(type)!, [reason, set] = useState(""), [state, tell] = useState<Record<string, { ok: boolean; text: string }>>({}), [busy, work] = useState(false);
    const may = runs.filter((r) => !whyNot(type, r)), not = runs.filter((r) => whyNot(type, r)), done = Object.keys(state).length > 0;
    const all = async () => {
        work(true);
        for (const r of may) {
            try {
                const d = await sendSignal(r.runId, type, {}, reason.trim() || undefined);
                tell((s) => ({ ...s, [r.runId]: { ok: true, text: d.newRunId ? "new run " + short(d.newRunId) : spec.past } }));
            } catch (e) {
                tell((s) => ({ ...s, [r.runId]: { ok: false, text: e instanceof Refusal ? e.message : explain(e) } }));
            }
        }
        work(false);
    };
    return (
        <Dialog title={`${spec.verb} ${count(runs.length, "run")}?`} onClose={closeDialog} command={`${spec.command(may.map((r) => short(r.runId)).join(" "))}`} wide>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); void all(); }}>
                <p class="muted">{spec.about}</p>
                {may.length ? <ul class="plain">{may.slice(0, 50).map((r) => <li key={r.runId}>{state[r.runId] ? <Glyph state={state[r.runId]!.ok ? "done" : "failed"} /> : <Glyph state="waiting" />}<b dir="auto">{r.planId}</b> <span class="mono faint">{short(r.runId)}</span> <span class="muted">{state[r.runId]?.text}</span></li>)}</ul> : null}
                {not.length ? <><h3>{count(not.length, "run is", "runs are")} left out</h3><ul class="plain">{not.slice(0, 50).map((r) => <li key={r.runId}><Glyph state="skipped" /><b dir="auto">{r.planId}</b> <span class="mono faint">{short(r.runId)}</span> <span class="muted">{whyNot(type, r)}</span></li>)}</ul></> : null}
                {done ? null : <Field label="Reason" hint="Kept in each decision record"><input value={reason} maxLength={500} onInput={(e) => set(e.currentTarget.value)} /></Field>}
                <div class="row end"><Button onClick={closeDialog}>Close</Button>{done ? null : <Button kind="pri" type="submit" disabled={busy || may.length === 0}>{spec.verb} {may.length}</Button>}</div>
            </form>
        </Dialog>
    );
}
export function bulk(type: string, runs: RunRow[]): void {
    dialog.value = () => <Bulk type={type} runs={runs} />;
}
export { Chip, stepState };
export type { State };
