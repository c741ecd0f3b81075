// The one table of states: glyph, word, tone. Silhouettes are those of the terminal (looks[] in src/cli/output.c).
import type { ComponentChildren } from "preact";
import type { RunRow, Snapshot, Step } from "./types";

export type State = "waiting" | "running" | "retrying" | "approval" | "event" | "held" | "paused" | "done" | "reused" | "skipped" | "failed" | "cancelled" | "not_run" | "unknown";
export type Tone = "done" | "running" | "warn" | "bad" | "dim";

export const tones: Record<State, Tone> = {
    waiting: "dim", running: "running", event: "running", retrying: "warn", approval: "warn", held: "bad", paused: "warn", done: "done",
    reused: "dim", skipped: "dim", failed: "bad", cancelled: "warn", not_run: "dim", unknown: "dim",
};
// Where only one of several fits.
export const emphasis: State[] = ["held", "failed", "approval", "retrying", "paused", "running", "event", "cancelled", "waiting", "unknown", "not_run", "skipped", "reused", "done"];
export const loudest = (states: Iterable<State>) => {
    const all = new Set(states);
    return emphasis.find((s) => all.has(s)) ?? "waiting";
};
export const word = (state: string) => state.replaceAll("_", " ");

const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round" } as const;
const shapes: Record<State, ComponentChildren> = {
    done: <path {...line} stroke-width={2} d="M3.2 8.6l3.2 3.2 6.4-7.4" />,
    running: [<circle class="pulse" cx="8" cy="8" r="7" fill="currentColor" />, <circle cx="8" cy="8" r="4" fill="currentColor" />],
    waiting: <circle {...line} cx="8" cy="8" r="5.6" stroke-dasharray=".1 3.4" stroke-width={1.9} />,
    retrying: <path {...line} d="M13 8a5 5 0 1 1-1.6-3.7M13 2.2v2.9h-2.9" />,
    skipped: [<circle {...line} cx="8" cy="8" r="5.4" />, <path {...line} d="M4.3 11.7l7.4-7.4" />],
    failed: [<circle cx="8" cy="8" r="7" fill="currentColor" />, <path class="g-cut" d="M5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8" />],
    held: <path fill="currentColor" d="M8 1l7 7-7 7-7-7z" />,
    approval: [<circle {...line} cx="8" cy="8" r="6" />, <path fill="currentColor" d="M8 8V2a6 6 0 0 1 6 6z" />],
    event: <path {...line} d="M5.4 3.3a5.6 5.6 0 1 1 0 9.4M1.4 8h7.2M6 5.3L8.6 8 6 10.7" />,
    paused: <path {...line} stroke-width={2.6} d="M5.4 3.5v9M10.6 3.5v9" />,
    cancelled: <rect x="3" y="3" width="10" height="10" rx="1.5" fill="currentColor" />,
    not_run: <rect {...line} x="3.2" y="3.2" width="9.6" height="9.6" rx="1.5" />,
    reused: [<circle {...line} cx="8" cy="8" r="6.2" stroke-dasharray="2 2" stroke-width={1.2} />, <path {...line} d="M5 8.3l2.1 2.1 4-4.6" />],
    unknown: <circle cx="8" cy="8" r="2" fill="currentColor" />,
};

export function Glyph({ state, class: more }: { state: State; class?: string }) {
    return <svg class={"g " + state + (more ? " " + more : "")} viewBox="0 0 16 16" aria-hidden="true">{shapes[state]}</svg>;
}
// A substatus that the table does not have is shown as it was sent.
export function Chip({ state, sub, text }: { state: State; sub?: string | undefined; text?: string }) {
    return (
        <span class={"chip " + state}>
            <Glyph state={state} />
            {text ?? word(state)}
            {sub ? <span class="sub mono">· {sub}</span> : null}
        </span>
    );
}

// ---- from the contract's words

const runStates: Record<string, State> = { PENDING: "waiting", APPROVED: "running", RUNNING: "running", PAUSED: "paused", COMPLETED: "done", FAILED: "failed", CANCELLED: "cancelled" };
const substates: Record<string, State> = { RETRYING: "retrying", WAITING_APPROVAL: "approval", DRAINING: "paused", PAUSING: "paused" };

export function runState(run: { status: string; substatus?: string | null | undefined }): State {
    const own = runStates[run.status] ?? "unknown";
    return own === "running" && run.substatus ? (substates[run.substatus] ?? own) : own;
}
// The substatus, when the state does not say it already.
export function runSub(run: { status: string; substatus?: string | null | undefined }): string | undefined {
    if (!runStates[run.status]) return run.status;
    if (!run.substatus) return undefined;
    if (run.substatus === "DRAINING") return "draining";
    return substates[run.substatus] ? undefined : run.substatus;
}

const stepStates: Record<string, State> = { PENDING: "waiting", RUNNING: "running", SUCCESS: "done", FAILED: "failed", SKIPPED: "skipped" };

export function stepState(step: Step, run: Snapshot, kind: string | undefined): State {
    const ended = run.status === "COMPLETED" || run.status === "FAILED" || run.status === "CANCELLED";
    const own = stepStates[step.status] ?? "unknown";
    if (step.held) return "held";
    if (step.retrying) return "retrying";
    if (own === "failed" && step.error?.code === "CANCELLED" && run.status === "CANCELLED") return "cancelled";
    if (own === "running" && ended) return "cancelled";
    if (own === "running" && kind === "approval") return "approval";
    if (own === "running" && step.awaitedEvent) return "event";
    if (own === "done" && step.reusedFrom) return "reused";
    if (own === "waiting" && ended) return "not_run";
    return own;
}

export function rowState(row: RunRow): State {
    const told = row.headline?.state;
    if (told === "held") return "held"; // between attempts, but only a person lets it go on
    return told === "event" && runState(row) === "running" ? "event" : runState(row); // nothing runs: all that is under way waits for something outside
}
