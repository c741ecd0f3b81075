// An event from outside, sent from here: what a step waits for, or what one will wait for.
import { useState } from "preact/hooks";
import { mayDo, send, uuid } from "./api";
import type { Incoming } from "./types";
import { Button, closeDialog, Dialog, dialog, explain, Field, toast } from "./ui";
import { Glyph } from "./states";
import { shellWord, short } from "./words";

export const maySendEvent = () => (mayDo("event.send") ? undefined : "Your role may not send events");

function Send({ wanted, then }: { wanted: { name: string; correlation?: string | undefined } | undefined; then: () => void }) {
    const [name, setName] = useState(wanted?.name ?? ""), [correlation, setCorrelation] = useState(wanted?.correlation ?? ""), [data, setData] = useState(""), [error, fail] = useState(""), [busy, work] = useState(false);
    const [id] = useState(uuid); // pressed twice it is one event
    const go = async () => {
        let value: unknown;
        try {
            value = data.trim() ? JSON.parse(data) : undefined;
        } catch (e) {
            fail("The data is no JSON: " + (e as Error).message);
            return;
        }
        work(true);
        try {
            const made = await send<Incoming>("POST", "/v1/events", { id, name: name.trim(), ...(correlation.trim() ? { correlation: correlation.trim() } : {}), ...(value === undefined ? {} : { data: value }) });
            closeDialog();
            toast(made.state === "DELIVERED" && made.runId ? `${made.name} went to ${made.stepId} of ${short(made.runId)}.` : `${made.name} is kept until a step takes it.`);
            then();
        } catch (e) {
            fail(explain(e));
            work(false);
        }
    };
    const command = `cairn event send ${name.trim() ? shellWord(name.trim()) : "NAME"}${correlation.trim() ? " --correlation " + shellWord(correlation.trim()) : ""}${data.trim() ? " --json " + shellWord(data.trim().replace(/\s*\n\s*/g, " ")) : ""}`;
    return (
        <Dialog title="Send an event?" onClose={closeDialog} command={command}>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); void go(); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) { e.preventDefault(); void go(); } }}>
                <p class="muted">One step that waits for it goes on with its data. When none waits, it is kept until one does.</p>
                <Field label="Name, required"><input class="mono" name="name" required maxLength={128} spellcheck={false} placeholder="payment.received" value={name} onInput={(e) => { setName(e.currentTarget.value); fail(""); }} /></Field>
                <Field label="Correlation" hint="What the step that waits tells it from others by"><input class="mono" name="correlation" maxLength={256} spellcheck={false} value={correlation} onInput={(e) => { setCorrelation(e.currentTarget.value); fail(""); }} /></Field>
                <Field label="Data" hint="JSON: the output of the step has it"><textarea class="mono" name="data" rows={4} spellcheck={false} placeholder="{}" value={data} onInput={(e) => { setData(e.currentTarget.value); fail(""); }} /></Field>
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Close</Button><Button kind="pri" type="submit" disabled={busy || !name.trim()}>Send</Button></div>
            </form>
        </Dialog>
    );
}
export function sendEvent(wanted?: { name: string; correlation?: string | undefined }, then: () => void = () => {}): void {
    dialog.value = () => <Send wanted={wanted} then={then} />;
}
