// Signing in: a token becomes a session that scripts cannot read. It stands over the page, so that what was there stays.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, openSession, Refusal, refusalOf, session, signedIn } from "./api";
import { Mark } from "./shell";
import type { Principal } from "./types";
import { Button, explain, Field } from "./ui";

export async function whoAmI(): Promise<void> {
    const answer = await ask("/v1/whoami", {}, false);
    if (answer.status === 401) session.value = "out";
    else if (answer.ok) {
        refused.value = "";
        signedIn((await answer.json()) as Principal);
    } else throw await refusalOf(answer);
}
// Why the ticket of the address did not open a session: the form says it, until something is typed.
const refused = signal("");
// `cairn ui` opens the page with a ticket that is good once, behind the # that browsers send to no server.
export async function takeTicket(): Promise<void> {
    const ticket = /^#ticket=(.+)$/.exec(location.hash)?.[1];
    if (!ticket) return;
    history.replaceState(null, "", location.pathname + location.search);
    await openSession({ ticket }).catch((error) => { refused.value = error instanceof Refusal && error.status < 500 ? "This ticket is not known, was used before or has ended. Run cairn ui for a new one, or paste a token." : explain(error); });
}

export function SignIn() {
    const [token, set] = useState("");
    const [error, say] = useState(refused.value);
    const [busy, work] = useState(false);
    const field = useRef<HTMLInputElement>(null);
    const box = useRef<HTMLDialogElement>(null);
    // A dialog of its own: a session may end while another dialog is open, and what lies under that one cannot be reached.
    useLayoutEffect(() => { box.current?.showModal(); field.current?.focus(); }, []);
    const send = async () => {
        work(true);
        try {
            await openSession({ token: token.trim() });
        } catch (error) {
            say(error instanceof Refusal && (error.status === 401 || error.status === 403) ? "This token is not known, has ended or was revoked." : explain(error));
            field.current?.select();
        } finally {
            work(false);
        }
    };
    return (
        <dialog class="sign-in" ref={box} aria-label="Sign in" onCancel={(e) => e.preventDefault()} onKeyDown={(e) => e.stopPropagation()}>
            <form class="card" onSubmit={(e) => { e.preventDefault(); void send(); }}>
                <div class="row"><Mark /><h1>Sign in to Cairn</h1></div>
                <Field label="Token" error={error || undefined}>
                    <input ref={field} type="password" name="token" autocomplete="current-password" spellcheck={false} required value={token} onInput={(e) => { set(e.currentTarget.value); say(""); refused.value = ""; }} placeholder="cairn_…" />
                </Field>
                <Button kind="pri" type="submit" disabled={busy || !token.trim()}>Sign in</Button>
                <p class="muted">Paste the token or run <code>cairn ui</code> on the server's machine.</p>
            </form>
        </dialog>
    );
}
