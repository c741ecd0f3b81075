// The fold of the engine in this browser: what a run was at any moment, why, and whether its log is whole. A log is a bundle
// (GET /v1/runs/RUN/bundle, or a .cairn file); nothing is asked of a server but the program itself, once, when it is first needed.
import worker from "worker:./fold.worker.ts";
import { scriptUrl } from "../trusted";
import { FoldFailure, type Target } from "./engine";
import type { FoldAnswer, FoldQuestion } from "./fold.worker";

export { FoldFailure } from "./engine";
export type { Target } from "./engine";

export interface Verdict {
    verified: boolean;
    checkpoint: { lastSeq: number; head: string; lastLedgerSeq: number; ledgerHead: string; runId: string; tenantId: string };
    faults: { seq: number; ledger: boolean; what: string }[];
}

export interface Fold {
    runs(log: Uint8Array): Promise<{ items: unknown[] }>;
    // RunSnapshot right after event "12", or after the second ledger entry behind it ("12.2"); without a moment at the end of the log.
    snapshot(log: Uint8Array, at?: string, target?: Target): Promise<unknown>;
    // Why of a step, or of the run when the target has no step.
    why(log: Uint8Array, target: Target, at?: string): Promise<unknown>;
    verify(log: Uint8Array, target?: Target): Promise<Verdict>;
    close(): void;
}

let loading: Promise<Fold> | undefined;

// One worker for the whole page; it starts with the first call.
export function loadFold(): Promise<Fold> {
    return (loading ??= Promise.resolve().then(start));
}

function start(): Fold {
    const thread = new Worker(scriptUrl(worker) as string, { type: "module", name: "fold" });
    const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
    const numbers = new WeakMap<Uint8Array, number>();
    let questions = 0, logs = 0, held = 0;

    thread.addEventListener("message", (event: MessageEvent<FoldAnswer>) => {
        const answer = event.data, asked = waiting.get(answer.id);
        waiting.delete(answer.id);
        if ("value" in answer) asked?.resolve(answer.value);
        else asked?.reject(new FoldFailure(answer.code, answer.message));
    });
    thread.addEventListener("error", (event) => {
        for (const asked of waiting.values()) asked.reject(new FoldFailure(0, event.message || "the fold could not be loaded"));
        waiting.clear();
        loading = undefined;
        thread.terminate();
    });

    function ask(what: FoldQuestion["what"], log: Uint8Array, target: Target, at?: string): Promise<unknown> {
        const known = numbers.get(log) ?? ++logs;
        numbers.set(log, known);
        const question: FoldQuestion = { id: ++questions, what, log: known, target };
        if (at !== undefined) question.at = at;
        if (held !== known) question.bytes = log; // the worker holds one; another one takes its place
        held = known;
        return new Promise((resolve, reject) => {
            waiting.set(question.id, { resolve, reject });
            thread.postMessage(question);
        });
    }

    return {
        runs: (log) => ask("runs", log, {}) as Promise<{ items: unknown[] }>,
        snapshot: (log, at, target = {}) => ask("snapshot", log, target, at),
        why: (log, target, at) => ask("why", log, target, at),
        verify: (log, target = {}) => ask("verify", log, target) as Promise<Verdict>,
        close: () => {
            thread.terminate();
            loading = undefined;
        },
    };
}
