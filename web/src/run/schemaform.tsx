// A form made from a JSON Schema of the server: a field for each property, in the schema's own words. What a field cannot say is written as JSON.
import { useState } from "preact/hooks";
import { getJson } from "../api";
import { Button, explain, Failure, Field, Skeleton, useAsked } from "../ui";
import { Glyph } from "../states";

export interface Schema { $ref?: string; title?: string; description?: string; type?: string; enum?: unknown[]; properties?: Record<string, Schema>; required?: string[]; maxLength?: number; minLength?: number; minimum?: number; maximum?: number }

const words = (name: string) => (name.charAt(0).toUpperCase() + name.slice(1)).replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => a + " " + b.toLowerCase());
// What was typed, as the schema wants it. Throws with a sentence.
function valueOf(name: string, schema: Schema, text: string): unknown {
    if (schema.type === "integer" || schema.type === "number") {
        const n = Number(text);
        if (!Number.isFinite(n) || (schema.type === "integer" && !Number.isInteger(n))) throw new Error(`${words(name)} is ${schema.type === "integer" ? "a whole number" : "a number"}`);
        return n;
    }
    if (schema.type === "boolean") return text === "true";
    if (schema.type === "object" || schema.type === "array") {
        try {
            return JSON.parse(text) as unknown;
        } catch (e) {
            throw new Error(`${words(name)} is no JSON: ${(e as Error).message}`);
        }
    }
    return text;
}

export function SchemaForm({ name, steps, verb, leave, send, close }: { name: string; steps: string[]; verb: string; leave?: string[]; send: (payload: Record<string, unknown>, reason: string | undefined) => Promise<unknown>; close: () => void }) {
    const asked = useAsked(() => getJson<Schema>("/schemas/" + name), [name]), [values, set] = useState<Record<string, string>>({}), [reason, why] = useState(""), [error, fail] = useState(""), [busy, work] = useState(false);
    if (asked.error) return <Failure error={asked.error} again={asked.again} />;
    if (!asked.value) return <Skeleton rows={2} height={44} />;
    const schema = asked.value, required = new Set(schema.required ?? []), fields = Object.entries(schema.properties ?? {}).filter(([k]) => !leave?.includes(k));
    const type = (k: string, v: string) => { set((old) => ({ ...old, [k]: v })); fail(""); };
    const submit = async () => {
        const payload: Record<string, unknown> = {};
        work(true);
        try {
            for (const [k, s] of fields) if ((values[k] ?? "").trim() !== "") payload[k] = valueOf(k, s, values[k]!);
            await send(payload, reason.trim() || undefined);
        } catch (e) {
            fail(explain(e));
        } finally {
            work(false);
        }
    };
    return (
        <form class="vstack" onSubmit={(e) => { e.preventDefault(); void submit(); }} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) { e.preventDefault(); void submit(); } }}>
            {schema.description ? <p class="muted">{schema.description}</p> : null}
            {fields.map(([k, s]) => {
                const label = words(k) + (required.has(k) ? ", required" : ""), more = { required: required.has(k), value: values[k] ?? "", name: k }, json = s.type === "object" || s.type === "array";
                const choices = s.enum ? s.enum.map(String) : s.type === "boolean" ? ["true", "false"] : k === "stepId" && steps.length ? steps : null;
                return (
                    <Field key={k} label={label} hint={json ? (s.properties ? `JSON, with ${Object.keys(s.properties).join(", ")}` : "JSON") : s.maxLength ? `at most ${s.maxLength} letters` : undefined}>
                        {choices ? <select {...more} onChange={(e) => type(k, e.currentTarget.value)}><option value="" />{choices.map((c) => <option key={c} value={c}>{c}</option>)}</select>
                            : json ? <textarea class="mono" rows={4} spellcheck={false} placeholder={s.type === "array" ? "[]" : "{}"} {...more} onInput={(e) => type(k, e.currentTarget.value)} />
                            : <input {...more} maxLength={s.maxLength} minLength={s.minLength} inputMode={s.type === "integer" || s.type === "number" ? "decimal" : undefined} onInput={(e) => type(k, e.currentTarget.value)} />}
                    </Field>
                );
            })}
            {schema.properties?.reason ? null : <Field label="Reason" hint="Kept in the decision record"><input name="reason" value={reason} maxLength={500} onInput={(e) => { why(e.currentTarget.value); fail(""); }} /></Field>}
            {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
            <div class="row end"><Button onClick={close}>Close</Button><Button kind="pri" type="submit" disabled={busy}>{verb}</Button></div>
        </form>
    );
}
