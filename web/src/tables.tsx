// What the tables of operators share: reading them again, their frame, and a question before something is done.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { follow, resyncs } from "./live";
import { moved } from "./shell";
import { Glyph } from "./states";
import { Button, closeDialog, Dialog, explain, Field, toast, trouble } from "./ui";
import type { ComponentChildren } from "preact";

// Counts up when something has happened in the store, not more often than every `ms`.
export function useMoved(ms: number): number {
    const [turn, next] = useState(0);
    useEffect(() => {
        let timer = 0, before = moved.peek();
        const stop = moved.subscribe((n) => {
            if (n === before || timer) return;
            timer = window.setTimeout(() => { timer = 0; before = moved.peek(); if (!document.hidden) next((t) => t + 1); }, ms);
        });
        return () => { stop(); clearTimeout(timer); };
    }, []);
    return turn;
}
// Read again while it is looked at: these tables have no stream of their own, so they follow that of all runs, and the clock.
export function useTurn(ms: number, quick = 1500): number {
    const [turn, next] = useState(0);
    useEffect(() => {
        const timer = setInterval(() => { if (!document.hidden) next((n) => n + 1); }, ms);
        const stop = follow("/v1/events", Number.MAX_SAFE_INTEGER, () => { moved.value++; });
        return () => { clearInterval(timer); stop(); };
    }, []);
    return turn + useMoved(quick) + resyncs.value;
}
export function Table({ head, children, label }: { head: [string, string?][]; children: ComponentChildren; label: string }) {
    const box = useRef<HTMLTableElement>(null);
    useLayoutEffect(() => { for (const row of box.current?.tBodies[0]?.rows ?? []) if (row.cells.length === head.length) [...row.cells].forEach((cell, i) => { cell.dataset.l = head[i]![0]; }); });
    return <div class="tablebox"><table class="grid" aria-label={label} ref={box}><thead><tr>{head.map(([h, c]) => <th key={h} scope="col" class={c}>{h || <span class="sr">Actions</span>}</th>)}</tr></thead><tbody>{children}</tbody></table></div>;
}
export async function does(what: () => Promise<unknown>, said: string, then: () => void): Promise<void> {
    try {
        await what();
        toast(said);
        then();
    } catch (error) {
        trouble(error);
    }
}
// A question with a reason, and the request that follows from it.
export function Ask({ title, about, verb, reason, send: go, then, children, command }: { title: string; about: string; verb: string; reason?: boolean; command?: string; send: (reason: string) => Promise<unknown>; then: () => void; children?: ComponentChildren }) {
    const [text, set] = useState(""), [error, fail] = useState(""), [busy, work] = useState(false);
    return (
        <Dialog title={title} onClose={closeDialog} command={command}>
            <form class="vstack" onSubmit={(e) => { e.preventDefault(); work(true); go(text.trim()).then(() => { closeDialog(); then(); }, (x) => { fail(explain(x)); work(false); }); }}>
                <p class="muted">{about}</p>{children}
                {reason ? <Field label="Reason" hint="Kept in the audit"><input value={text} maxLength={500} onInput={(e) => set(e.currentTarget.value)} /></Field> : null}
                {error ? <div class="field err" role="alert"><Glyph state="failed" />{error}</div> : null}
                <div class="row end"><Button onClick={closeDialog}>Close</Button><Button kind="pri" type="submit" disabled={busy}>{verb}</Button></div>
            </form>
        </Dialog>
    );
}
