// What is inside of one step: items of a loop with the tasks that were tried for each, and child runs of a list. The log has them; the
// snapshot only counts them. Read from the records as far as the moment on screen, and only while somebody looks.
import type { State } from "../states";
import type { Fail } from "../types";
import type { Entry, RunModel } from "./model";

// A task that was tried: `serial` counts the attempts of the whole run, which is how its log is named (docs/format/logs.md).
export interface Try { path: string; task: string; item: number; serial: number; engine: number; logical: number; state: State; started: string; took: number | null; error: Fail | null; result: unknown; at: string }
export interface Member { n: number; state: State; took: number | null; started: string; at: string | null; run: string | null; error: Fail | null; result: unknown; tries: Try[] }
export interface Members { kind: "items" | "runs"; total: number; values: unknown[] | null; members: Member[]; tries: Try[] }

interface Loose { [key: string]: unknown }
const parse = (entry: Entry): Loose => {
    try {
        return JSON.parse(entry.raw) as Loose;
    } catch {
        return {};
    }
};
const object = (value: unknown): Loose => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : {});
const fault = (value: unknown): Fail | null => (typeof object(value).message === "string" ? (value as Fail) : null);
const atOf = (e: Entry) => (e.sub ? e.seq + "." + e.sub : String(e.seq));

// Where a record of a playbook belongs. Read once: a loop over thousands of items has a hundred thousand of them.
interface Place { step: string; visit: number; item: number; task: string; round: number }
const places = new WeakMap<Entry, Place>();
function placeOf(entry: Entry): Place {
    let place = places.get(entry);
    if (!place) {
        const e = parse(entry), run = /^step:(.*):run:(\d+)$/.exec(String(e.step_run_id ?? "")), task = e.entity_type === "task" ? String(e.entity_id ?? "") : "";
        const round = Number(/:run:(\d+)$/.exec(String(e.task_run_id ?? ""))?.[1] ?? 1);
        places.set(entry, (place = { step: run?.[1] ?? entry.step, visit: Number(run?.[2] ?? 1), item: typeof e.iteration === "number" ? e.iteration + 1 : 0, task, round }));
    }
    return place;
}

const blank = (n: number): Member => ({ n, state: "waiting", took: null, started: "", at: null, run: null, error: null, result: undefined, tries: [] });
const until = (from: string, to: string) => (from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null);

// Items and tasks of a step of a playbook. `id` names a visit: each, each:run:2.
export function insideOf(entries: Entry[], last: number, id: string, over: boolean): Members | null {
    const [, step, visit] = /^(.*?)(?::run:(\d+))?$/.exec(id)!, wanted = Number(visit ?? 1);
    const out: Members = { kind: "items", total: 0, values: null, members: [], tries: [] };
    const member = (n: number) => { while (out.members.length < n) out.members.push(blank(out.members.length + 1)); return out.members[n - 1]!; };
    let serial = 0;
    for (let i = 0; i <= last && i < entries.length; i++) {
        const e = entries[i]!;
        if (e.type === "task.attempt.started") serial++;
        if (e.step !== step) continue;
        if (e.type === "STEP_REDISPATCHED") { // in the ledger: an engine died, and the same attempt goes on under another number
            const m = parse(e), of = (m.iteration ? member(Number(m.iteration)).tries : out.tries).filter((t) => t.task === m.task).at(-1);
            if (of && Number(m.visit ?? 1) === wanted) of.engine = Number(m.engine ?? of.engine);
            continue;
        }
        if (!/^(loop|task)\./.test(e.type)) continue;
        const place = placeOf(e);
        if (place.visit !== wanted) continue;
        const m = place.item ? member(place.item) : null, tries = m ? m.tries : out.tries;
        if (m) m.at = atOf(e);
        if (e.type === "loop.started") {
            const p = object(parse(e).payload);
            out.total = Number(p.total ?? 0);
            out.values = Array.isArray(p.inputs) ? p.inputs : null;
        } else if (e.type === "loop.iteration.started" && m) {
            m.state = "running";
            m.started = e.time;
        } else if (/^loop\.iteration\.(done|failed)$/.test(e.type) && m) {
            m.state = e.type.endsWith("done") ? "done" : "failed";
            m.took = until(m.started, e.time);
            if (m.state === "failed") m.error = fault(object(parse(e).payload).error) ?? m.error;
        } else if (e.type === "task.attempt.started") {
            const path = id + (place.item ? `[${place.item}]` : "") + "/" + place.task + (place.round > 1 ? ":run:" + place.round : "");
            tries.push({ path, task: place.task, item: place.item, serial, engine: 1, logical: e.attempt || 1, state: "running", started: e.time, took: null, error: null, result: undefined, at: atOf(e) });
        } else if (/^task\.(attempt\.)?(done|failed)$/.test(e.type)) {
            const of = tries.filter((t) => t.task === place.task).at(-1);
            if (!of) continue;
            const p = object(parse(e).payload), outcome = object(p.outcome ?? object(parse(e)).outcome);
            of.state = e.type.endsWith("done") ? "done" : "failed";
            if (e.type.startsWith("task.attempt.")) of.took = until(of.started, e.time);
            of.error = of.state === "failed" ? (fault(p.error) ?? fault(outcome.error) ?? of.error) : null;
            of.at = atOf(e);
            const result = outcome.result ?? p.result;
            if (result !== undefined) of.result = result;
            if (m) m.result = of.result;
        }
    }
    if (out.total) member(out.total);
    if (over) for (const m of out.members) if (m.state === "running") m.state = "cancelled"; else if (m.state === "waiting") m.state = "not_run";
    return out.members.length || out.tries.length ? out : null;
}

// Child runs of a list: they begin in their order, so many at a time, and each end stands in the ledger.
const lists = new WeakMap<Entry, Loose>();
export function listsOf(run: string, entries: Entry[], last: number, over: boolean): Map<string, Members> {
    const out = new Map<string, Members & { most: number; logical: number }>();
    for (let i = 0; i <= last && i < entries.length; i++) {
        const e = entries[i]!;
        if (e.type !== "LIST_STARTED" && e.type !== "CHILD_ENDED") continue;
        let m = lists.get(e);
        if (!m) lists.set(e, (m = parse(e)));
        if (e.type === "LIST_STARTED") {
            const value = object(m.value), total = Number(object(m.counts).total ?? 0);
            out.set(e.step, { kind: "runs", total, values: Array.isArray(value.items) ? value.items : null, members: Array.from({ length: total }, (_, k) => blank(k + 1)), tries: [], most: Number(value.most ?? 0) || total, logical: e.attempt || 1 });
            continue;
        }
        const of = out.get(e.step), n = Number(m.iteration ?? 0), child = of?.members[n - 1];
        if (!child) continue;
        child.state = m.fault ? (m.reason === "cancelled" ? "cancelled" : "failed") : "done";
        child.took = typeof m.durationMs === "number" ? m.durationMs : null;
        child.error = fault(m.fault);
        child.result = m.value;
        child.run = typeof m.runRef === "string" ? m.runRef : null;
        child.at = atOf(e);
        if (child.took !== null) child.started = new Date(Date.parse(e.time) - child.took).toISOString();
    }
    for (const [step, of] of out) {
        let begun = of.members.filter((c) => c.state !== "waiting").length + of.most;
        for (const c of of.members) {
            if (begun-- <= 0) break;
            if (c.state !== "waiting") continue;
            c.state = over ? "not_run" : "running";
            if (!over) c.run = `${run}.${step}.${of.logical}.${c.n}`;
        }
        if (over) for (const c of of.members) if (c.state === "waiting") c.state = "not_run";
    }
    return out;
}
// What the moment on screen has seen of the log.
export const lastSeen = (model: RunModel): number => model.moments.value[model.momentIndex.value]?.index ?? model.entries.value.length - 1;
export const isOver = (status: string): boolean => ["COMPLETED", "FAILED", "CANCELLED"].includes(status);
