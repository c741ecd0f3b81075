// The log of a run in this browser: its bundle, read once, and the engine's own fold over it (fold/). What cannot be folded here
// (a role that may not read bundles, a log that is too large, a browser without WebAssembly) is null, and the server is asked.
import { ask, idOf, me, refusalOf, Unreachable } from "./api";
import type { Fold, Verdict } from "./fold";
import type { Snapshot, Why } from "./types";

export type By = "browser" | "server";
export const byWords = { browser: "folded in this browser", server: "the server's answer" } satisfies Record<By, string>;
export const byTitle = { browser: "Your browser has the log of this run, and folded it with the engine's own code.", server: "The server folded it: the log is too large for this, your role may not read it whole, or this browser cannot fold it." } satisfies Record<By, string>;

const LARGEST = 24 << 20; // of a bundle, as the server gives it (src/api/proofs.c)

export const engine = async (): Promise<Fold> => (await import("./fold")).loadFold();
// A refusal would be a complaint in the console: what is known to be refused is not asked for.
export const mayFold = () => typeof WebAssembly === "object" && me.value?.payloads !== false && !!me.value?.operations?.includes("run.bundle");
export async function bundleOf(run: string): Promise<Uint8Array> {
    const answer = await ask(`/v1/runs/${idOf(run)}/bundle`);
    if (!answer.ok) throw await refusalOf(answer);
    return new Uint8Array(await answer.arrayBuffer());
}
export const faultWords = (faults: Verdict["faults"]) => faults.map((f) => `${f.ledger ? "ledger entry" : "event"} ${f.seq}: ${f.what}`);

interface Held { bytes: Uint8Array; verdict: Verdict }
// How far the page knows the log, and at least how large it is.
export interface Reach { seq: number; ledger: number; size: number }

export class OwnLog {
    private held: Promise<Held> | null = null;
    private off = false;

    constructor(private readonly run: string, private readonly reach: () => Reach, private readonly found: (faults: string[]) => void) {}

    snapshot(at: string): Promise<Snapshot | null> {
        return this.asked(at, (fold, log) => fold.snapshot(log, at, { run: this.run }));
    }
    why(step: string | null, at: string): Promise<Why | null> {
        return this.asked(at, (fold, log) => fold.why(log, step === null ? { run: this.run } : { run: this.run, step }, at));
    }

    private async asked<T>(at: string, question: (fold: Fold, log: Uint8Array) => Promise<unknown>): Promise<T | null> {
        if (this.off || !mayFold() || this.reach().size > LARGEST) return null;
        try {
            const log = await this.log(Number(at.split(".")[0]));
            return (await question(await engine(), log)) as T;
        } catch {
            return null; // a moment or a step that is not there: the server says so in its words
        }
    }
    // A log only grows: what stands before its last event does not change. Where a moment at its end is asked for, it is read again
    // when the page knows of more.
    private async log(seq: number): Promise<Uint8Array> {
        const before = this.held, held = await this.kept();
        const { lastSeq, lastLedgerSeq } = held.verdict.checkpoint, known = this.reach();
        if (!before || seq < lastSeq || (seq === lastSeq && lastSeq >= known.seq && lastLedgerSeq >= known.ledger)) return held.bytes;
        if (this.held === before) this.held = null;
        return (await this.kept()).bytes;
    }
    private async kept(): Promise<Held> {
        try {
            return await (this.held ??= this.read());
        } catch (error) {
            this.held = null;
            if (!(error instanceof Unreachable)) this.off = true;
            throw error;
        }
    }
    private async read(): Promise<Held> {
        const bytes = await bundleOf(this.run), verdict = await (await engine()).verify(bytes, { run: this.run });
        this.found(faultWords(verdict.faults));
        return { bytes, verdict };
    }
}
