// What I may send now, by form; what I may not, and why; and what was decided before.
import { useState } from "preact/hooks";
import { act, sendSignal, signals, whyNot } from "../acts";
import { getJson, idOf, mayAs, mayDo } from "../api";
import { now } from "../prefs";
import { visible } from "../redacted";
import { Glyph } from "../states";
import type { DecisionRecord, Snapshot } from "../types";
import { Button, Clock, closeDialog, Dialog, dialog, Empty, explain, Failure, Field, Skeleton, toast, useAsked } from "../ui";
import { clock, count, left, short } from "../words";
import { SchemaForm } from "./schemaform";
import type { TabProps } from "./run";

export function Decision({ record }: { record: DecisionRecord }) {
    const ok = record.decision === "ACCEPTED";
    return (
        <div class="decision">
            <Glyph state={ok ? "done" : record.decision === "REJECTED" ? "failed" : "approval"} />
            <div class="grow">
                <div><b>{record.signalType}</b> <span class={ok ? "done" : record.decision === "REJECTED" ? "failed" : "approval"}>{record.decision.toLowerCase().replaceAll("_", " ")}</span>{typeof record.signalPayload?.stepId === "string" ? <span class="mono muted" dir="auto"> {record.signalPayload.stepId}</span> : null}</div>
                <div class="muted">{record.audit.actorId} as {record.audit.actorRole}{record.audit.sourceIp ? " from " + record.audit.sourceIp : ""}{record.approvedBy ? ", agreed by " + record.approvedBy : ""}</div>
                {record.reason || record.audit.reason ? <div dir="auto">{visible(record.reason ?? record.audit.reason ?? "")}</div> : null}
                {record.engineResult?.errorCode ? <div class="failed mono">{record.engineResult.errorCode}</div> : null}
                {record.engineResult?.newRunId ? <a class="link mono" href={"/runs/" + encodeURIComponent(record.engineResult.newRunId)}>{short(record.engineResult.newRunId)}</a> : null}
            </div>
            <span class="faint mono"><Clock at={record.audit.timestamp} withDay /></span>
        </div>
    );
}

// Signals whose payload a person writes: the form is the schema of the server.
const written: [string, string, string, string, boolean][] = [
    ["UPDATE_PARAMS", "Change inputs", "Steps that start later get other inputs.", "signal.update_params", false],
    ["INJECT_OVERRIDE", "Override a step", "The next execution of a step gets other members of its `with`.", "signal.inject_override", true],
    ["UPDATE_TARGET", "Move a step", "A step is executed by another queue from now on.", "signal.update_target", true],
    ["ESCALATE_ALERT", "Tell the people on duty", "The run does not change.", "signal.escalate_alert", false],
];
function write(type: string, verb: string, run: string, steps: string[], then: () => void): void {
    dialog.value = () => (
        <Dialog title={verb + "?"} onClose={closeDialog} command={`cairn signal ${short(run)} ${type} --json '{…}'`}>
            <SchemaForm name={type + ".json"} steps={steps} verb={verb} close={closeDialog} send={async (payload, reason) => {
                const d = await sendSignal(run, type, payload, reason);
                closeDialog();
                toast(d.decision === "ACCEPTED" ? `${verb}: accepted${d.causedSeq ? `, event ${d.causedSeq}` : ""}.` : `The signal waits: ${d.decision.toLowerCase().replaceAll("_", " ")}.`);
                then();
            }} />
        </Dialog>
    );
}

export function SignalsTab({ model, live, items, past, open }: TabProps & { live: Snapshot }) {
    const records = useAsked(() => getJson<{ items: DecisionRecord[] }>(`/v1/runs/${idOf(model.id)}/signals`), [model.id, live.lastEventSeq, live.status, live.substatus, model.entries.value.length]);
    const it = { runId: model.id, planId: live.planId ?? "" }, off = past ? "You look at the past" : undefined;
    const held = [...items.values()].filter((i) => i.state === "held"), open2 = [...items.values()].filter((i) => ["waiting", "held", "retrying", "event"].includes(i.state)), gates = [...items.values()].filter((i) => i.state === "approval");
    return (
        <div class="pane">
            <div class="cols">
                <section class="card" aria-label="Send a signal">
                    <h3>Send now</h3>
                    {gates.map((g) => <div class="sig" key={g.id}><div class="grow"><b dir="auto">Answer {g.id}</b><div class="muted">An approval waits for a person.</div></div><Button kind="pri" why={off} onClick={() => open(g.id)}>Answer…</Button></div>)}
                    {signals.filter((s) => !s.step).map((s) => { const why = off ?? whyNot(s.type, live); return <div class="sig" key={s.type}><div class="grow"><b>{s.verb}</b><div class="muted">{why ?? s.about}</div></div><Button why={why} onClick={() => act(s.type, it, undefined, () => void model.refresh())}>{s.verb}…</Button></div>; })}
                    {held.map((i) => <div class="sig" key={"r" + i.id}><div class="grow"><b dir="auto">Retry {i.id}</b><div class="muted">It failed and waits.</div></div><Button why={off ?? (mayAs("Engineer") ? undefined : "Needs the role Engineer")} onClick={() => act("RETRY_STEP", it, i.id, () => void model.refresh())}>Retry…</Button></div>)}
                    {open2.slice(0, 20).map((i) => <div class="sig" key={"s" + i.id}><div class="grow"><b dir="auto">Skip {i.id}</b><div class="muted">It counts as skipped, and the run goes on without it.</div></div><Button why={off ?? (["COMPLETED", "FAILED", "CANCELLED"].includes(live.status) ? "The run has ended" : mayAs("Engineer") ? undefined : "Needs the role Engineer")} onClick={() => act("SKIP_STEP", it, i.id, () => void model.refresh())}>Skip…</Button></div>)}
                    {written.map(([type, verb, about, operation, ofStep]) => { const why = off ?? (["COMPLETED", "FAILED", "CANCELLED"].includes(live.status) ? "The run has ended" : mayDo(operation) ? undefined : "Your role may not send it"), steps = ofStep ? [...items.values()].filter((i) => !["done", "reused", "skipped"].includes(i.state)).map((i) => i.id).slice(0, 500) : []; return <div class="sig" key={type}><div class="grow"><b>{verb}</b><div class="muted">{why ?? about}</div></div><Button why={why} onClick={() => write(type, verb, model.id, steps, () => void model.refresh())}>{verb}…</Button></div>; })}
                </section>
                <section class="card" aria-label="Decisions">
                    <h3>Decisions{records.value?.items.length ? " · " + count(records.value.items.length, "record") : ""}</h3>
                    {records.error ? <Failure error={records.error} /> : !records.value ? <Skeleton rows={3} height={44} /> : records.value.items.length === 0 ? <Empty title="Nobody has sent a signal" command={"cairn pause " + short(model.id)}>Pause, resume, cancel, retry and approve appear here with who, when and why.</Empty> : [...records.value.items].reverse().map((r) => <Decision record={r} key={r.policyDecisionId + r.decision} />)}
                </section>
            </div>
        </div>
    );
}

// A gate: the question, who may answer, what happens without an answer; after it, the record of the decision.
export function Gate({ run, step, message, role, deadline, onTimeout, then }: { run: string; step?: string | undefined; message: string; role: string; deadline?: string | undefined; onTimeout?: string | undefined; then?: () => void }) {
    const [comment, set] = useState(""), [error, fail] = useState(""), [busy, work] = useState(false), [rejecting, reject] = useState(false), [answer, got] = useState<DecisionRecord | null>(null);
    const may = mayAs(role);
    const send = async (type: "APPROVE" | "REJECT") => {
        work(true);
        try {
            const d = await sendSignal(run, type, step ? { stepId: step } : {}, comment.trim() || undefined);
            toast(`${type === "APPROVE" ? "Approved" : "Rejected"}.${d.causedSeq ? ` The decision is recorded as event ${d.causedSeq}.` : ""}`);
            getJson<DecisionRecord>(`/v1/runs/${idOf(run)}/signals/${idOf(d.signalId)}`).then(got, () => {});
            then?.();
        } catch (e) {
            fail(explain(e));
        } finally {
            work(false);
        }
    };
    if (answer) return <div class="gate answered"><Decision record={answer} /></div>;
    return (
        <form class="gate" onSubmit={(e) => { e.preventDefault(); void send(rejecting ? "REJECT" : "APPROVE"); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) { e.preventDefault(); void send("APPROVE"); } }}>
            <b dir="auto">{visible(message)}</b>
            <div class="muted">{role} or above may answer.{deadline ? <> Without an answer it is {onTimeout === "approve" ? "approved" : onTimeout === "fail" ? "failed" : "rejected"} in {left(Date.parse(deadline) - now.value)}, at {clock(deadline).slice(0, 5)} UTC.</> : null}</div>
            <Field label={rejecting ? "Why is it rejected?" : "Comment"} hint="Kept in the decision record" error={error || undefined}><input value={comment} maxLength={500} required={rejecting} onInput={(e) => { set(e.currentTarget.value); fail(""); }} /></Field>
            <div class="row">
                {rejecting ? <><Button type="submit" disabled={busy}>Reject</Button><Button kind="plain" onClick={() => reject(false)}>Back</Button></> : <><Button kind="pri" type="submit" disabled={busy} why={may ? undefined : "Needs the role " + role}>Approve</Button><Button why={may ? undefined : "Needs the role " + role} onClick={() => reject(true)}>Reject…</Button></>}
            </div>
            {may ? null : <span class="hint">You do not have the role {role}.</span>}
        </form>
    );
}
