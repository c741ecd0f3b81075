// One run as the page holds it: its fold now, its log, and its folds at moments of the past. Read once, then fed by the stream.
import { computed, signal } from "@preact/signals";
import { ask, getJson, idOf, me, Refusal, refusalOf } from "../api";
import { follow, resyncs } from "../live";
import { type By, OwnLog } from "../log";
import { place } from "../route";
import { moved } from "../shell";
import { type State, stepState, tones } from "../states";
import type { Graph, GraphStep, Snapshot, Step } from "../types";
import { hex, oneLine, strip } from "../words";
import { isOver, lastSeen, listsOf, type Members } from "./members";

// A record of the log, or an entry of the ledger behind one.
export interface Entry {
    seq: number; // of the event; of an entry: the event that it stands behind
    sub: number; // 0: an event; else which entry behind it
    type: string; step: string; attempt: number; time: string; state: State; raw: string; prev: string; hash: string; emitted: string | undefined;
}
// Where the slider stops: records that were written together are one.
export interface Past { at: string; snapshot: Snapshot; by: By }
export interface Moment { at: string; seq: number; index: number; entry: Entry; change: boolean }

export interface Item {
    id: string; step: Step; def: GraphStep | undefined; kind: string; state: State; took: number | null; children: Item[]; known: boolean;
    list: Members | undefined; // its child runs, when it is a list of them
}

const stateOf = (type: string): State => {
    if (/fail|reject|TIMEOUT|error/i.test(type)) return "failed";
    if (/DELAYED|retry/i.test(type)) return "retrying";
    if (/cancel/i.test(type)) return "cancelled";
    if (/pause/i.test(type)) return "paused";
    if (/skip/i.test(type)) return "skipped";
    if (/approv|gate/i.test(type)) return "approval";
    if (/complete|done|finished|processed|accepted|resumed|evaluated|SETTLED/i.test(type)) return "done";
    if (/start|scheduled|queued|requested|DISPATCH/i.test(type)) return "running";
    return "unknown";
};

interface Loose { [key: string]: unknown }
const text = (value: unknown) => (typeof value === "string" ? value : "");
// Three vocabularies, one row. What none of them has is shown as it was sent.
export function readEvent(raw: string, seq: number): Entry {
    let e: Loose = {};
    try {
        e = JSON.parse(raw) as Loose;
    } catch { /* shown as it is */ }
    const payload = (typeof e.payload === "object" && e.payload ? e.payload : {}) as Loose;
    const type = text(e.eventType) || text(e.event_type) || "?";
    const step = text(e.stepId) || text(payload.node_id) || (/^step:(.*):run:\d+$/.exec(text(e.step_run_id))?.[1] ?? "") || (e.entity_type === "step" ? text(e.entity_id) : "");
    const attempt = Number(payload.attempt ?? e.logicalAttemptId ?? e.attempt ?? 0);
    return { seq, sub: 0, type, step, attempt, time: text(e.persistedAt) || text(e.timestamp) || text(payload.at), emitted: text(e.emittedAt) || undefined, state: stateOf(type), raw, prev: text(e.prevHash) || text(e.prev_hash), hash: "" };
}
export function summary(entry: Entry): string {
    let e: Loose;
    try {
        e = JSON.parse(entry.raw) as Loose;
    } catch {
        return "";
    }
    const p = (typeof e.payload === "object" && e.payload ? e.payload : e) as Loose;
    const error = (p.error ?? p.fault ?? (p.outcome as Loose | undefined)?.error) as Loose | string | undefined;
    if (typeof error === "object" && error?.message) return oneLine(String(error.message));
    if (typeof error === "string") return oneLine(error);
    if (p.dueAt) return "next attempt at " + String(p.dueAt).slice(11, 23);
    if (p.signalType) return [p.signalType, p.actor ?? p.actorId, p.reason].filter(Boolean).join(" · ");
    if (p.detail) return oneLine(String(p.detail));
    if (p.reason) return oneLine(typeof p.reason === "string" ? p.reason : JSON.stringify(p.reason));
    const out = p.output ?? p.result ?? (p.outcome as Loose | undefined)?.result;
    if (out !== undefined && out !== null) return oneLine(typeof out === "string" ? out : JSON.stringify(out)).slice(0, 300);
    if (e.iteration !== undefined) return "item " + String(e.iteration);
    return entry.attempt > 1 ? "attempt " + entry.attempt : "";
}

// A long log is read after the first picture is there: whoever opens a run looks at its state first.
const LONG = 2000, PICTURE_MS = 3000;
const encoder = new TextEncoder();

export class RunModel {
    readonly snapshot = signal<Snapshot | null>(null);
    readonly graph = signal<Graph | null>(null);
    readonly graphError = signal<string | null>(null);
    readonly error = signal<unknown>(null);
    readonly entries = signal<Entry[]>([]);
    readonly ended = signal(false);
    readonly loaded = signal(false); // the log was read to its end
    readonly checked = signal<{ links: number; records: number; broken: number | null; can: boolean }>({ links: 0, records: 0, broken: null, can: true });
    // The moment in the address: null is now.
    readonly at = computed(() => {
        const value = place.value.query.get("at");
        if (!value || !/^\d+(\.\d+)?$/.test(value)) return null;
        const all = this.moments.value;
        if (this.loaded.value && all.length && value === all.at(-1)!.at) return null;
        return value;
    });
    readonly pastSnapshot = signal<Past | null>(null);
    readonly pastError = signal<{ at: string; error: unknown } | null>(null);
    readonly faults = signal<string[]>([]); // what the engine's own check found in the log, once it is here
    readonly own: OwnLog;
    readonly past = computed(() => this.at.value !== null);
    // What the views show: at the moment, or now.
    readonly shown = computed<Snapshot | null>(() => (this.at.value === null ? this.snapshot.value : (this.pastSnapshot.value?.snapshot ?? this.snapshot.value)));
    readonly moments = computed<Moment[]>(() => {
        const out: Moment[] = [];
        this.entries.value.forEach((entry, index) => {
            const last = out.at(-1);
            if (entry.sub > 0 && last && last.entry.sub > 0 && last.seq === entry.seq && last.entry.time === entry.time) {
                last.at = entry.seq + "." + entry.sub; // written with the one before it
                last.index = index;
                return;
            }
            out.push({ at: entry.sub ? entry.seq + "." + entry.sub : String(entry.seq), seq: entry.seq, index, entry, change: entry.step !== "" || /run|workflow|playbook/i.test(entry.type) });
        });
        return out;
    });
    readonly momentIndex = computed(() => {
        const at = this.at.value, all = this.moments.value;
        if (at === null) return all.length - 1;
        const [seq, sub] = at.split(".").map(Number) as [number, number | undefined];
        let found = -1;
        for (let i = 0; i < all.length; i++) {
            const m = all[i]!, [s, u] = m.at.split(".").map(Number) as [number, number | undefined];
            if (s < seq || (s === seq && (u ?? 0) <= (sub ?? 0))) found = i;
            else if (found >= 0) break;
        }
        return Math.max(0, found);
    });
    private readonly lists = computed(() => (this.graph.value?.steps.some((s) => s.kind === "subrun") ? listsOf(this.id, this.entries.value, lastSeen(this), isOver(this.shown.value?.status ?? "")) : null));
    readonly items = computed(() => itemsOf(this.shown.value, this.graph.value, this.lists.value));

    private ledgerAfter = 0;
    private ledger: Entry[] = [];
    private events: Entry[] = [];
    private cache = new Map<string, Past>();
    private folding = false;
    private size = 0;
    private stops: (() => void)[] = [];
    private timer = 0;
    private took = 0;
    private gone = false;

    constructor(readonly id: string) {
        this.own = new OwnLog(id, () => ({ seq: Math.max(this.snapshot.peek()?.lastEventSeq ?? 0, this.events.at(-1)?.seq ?? 0), ledger: this.ledgerAfter, size: this.size }), (faults) => { this.faults.value = faults; });
    }

    begin(): void {
        void this.load();
        this.stops.push(resyncs.subscribe(() => {
            if (this.snapshot.peek()) void this.refresh();
            if (this.pastError.peek()) void this.travel(this.at.peek());
        }));
        this.stops.push(this.at.subscribe((at) => void this.travel(at)));
    }
    end(): void {
        this.gone = true;
        clearTimeout(this.timer);
        for (const stop of this.stops) stop();
    }

    private async load(): Promise<void> {
        const path = "/v1/runs/" + idOf(this.id);
        getJson<Graph>(path + "/graph").then((g) => { this.graph.value = g; }, (e) => { this.graphError.value = e instanceof Refusal ? e.message : String(e); });
        try {
            this.snapshot.value = await getJson<Snapshot>(path);
        } catch (error) {
            this.error.value = error;
            return;
        }
        if (this.gone) return;
        if ((this.snapshot.peek()?.lastEventSeq ?? 0) > LONG) await this.pictured();
        if (this.gone) return;
        void this.readLedger();
        if (!this.snapshot.peek()?.completedAt) this.later(2000);
        let batch: Entry[] = [], timer = 0;
        const flush = () => {
            timer = 0;
            this.events.push(...batch);
            batch = [];
            this.merge();
            if ((this.events.at(-1)?.seq ?? 0) > (this.snapshot.peek()?.lastEventSeq ?? 0)) this.later(300);
        };
        this.stops.push(follow(path + "/events", 0, (event) => {
            if (event.type === "end") {
                clearTimeout(timer);
                flush();
                this.ended.value = true;
                this.loaded.value = true;
                if (!this.snapshot.peek()?.completedAt) void this.refresh();
                // Nothing more can happen here, but the page stays true about the server.
                this.stops.push(follow("/v1/events", Number.MAX_SAFE_INTEGER, () => { moved.value++; }));
                return;
            }
            this.size += event.data.length;
            batch.push(readEvent(event.data.replace(/^\{"prevSeq":\d+,/, "{"), event.id));
            if (!timer) timer = window.setTimeout(flush, this.events.length > 20000 ? 1000 : this.events.length > 2000 ? 250 : 30);
        }));
    }
    // The view on screen says when it has drawn what it has; one that never does keeps nobody waiting.
    readonly drawn = signal(false);
    private pictured(): Promise<void> {
        return new Promise((go) => {
            const stop = this.drawn.subscribe((yes) => { if (yes) setTimeout(done); }), timer = setTimeout(() => done(), PICTURE_MS);
            const done = () => { stop(); clearTimeout(timer); go(); };
        });
    }
    private merge(): void {
        const out: Entry[] = [];
        let k = 0;
        for (const event of this.events) {
            while (k < this.ledger.length && this.ledger[k]!.seq < event.seq) out.push(this.ledger[k++]!);
            out.push(event);
        }
        out.push(...this.ledger.slice(k));
        this.entries.value = out;
        const last = this.snapshot.peek()?.lastEventSeq ?? 0;
        if (this.events.length && this.events.at(-1)!.seq >= last) {
            this.loaded.value = true;
            void this.check();
        }
    }
    // Entries that the vocabulary of the run has no word for: attempts that failed and are tried again, pauses, signals.
    private ledgerRead: Promise<void> = Promise.resolve();
    private readLedger(): Promise<void> { // one reader at a time: two would keep every entry twice
        this.ledgerRead = this.ledgerRead.then(() => this.readOn(), () => this.readOn());
        return this.ledgerRead;
    }
    private async readOn(): Promise<void> {
        const path = `/v1/store/runs/${idOf(this.id)}/${me.value?.payloads === false ? "redacted/" : ""}ledger?limit=500&after=`;
        for (;;) {
            const answer = await ask(path + this.ledgerAfter);
            if (!answer.ok) return; // a token that may not: the events are there all the same
            const lines = (await answer.text()).split("\n");
            let n = 0;
            for (let i = 0; i + 1 < lines.length; i += 2) {
                const about = JSON.parse(lines[i]!) as { seq: number; ledgerSeq: number; type: string; hash: string }, raw = lines[i + 1]!;
                this.ledgerAfter = about.ledgerSeq;
                this.size += raw.length;
                n++;
                if (about.type !== "moment") continue;
                const m = JSON.parse(raw) as Loose;
                const before = this.ledger.at(-1);
                this.ledger.push({ seq: about.seq, sub: before?.seq === about.seq ? before.sub + 1 : 1, type: text(m.moment) || about.type, step: text(m.step), attempt: Number(m.logical ?? 0), time: text(m.at), state: stateOf(text(m.moment)), raw, prev: "", hash: about.hash, emitted: undefined });
            }
            if (n) this.merge();
            if (n < 500) return;
        }
    }
    // Read again soon; a run of many thousand steps not more often than it takes a few times over.
    private later(ms: number): void {
        if (this.timer || this.gone) return;
        this.timer = window.setTimeout(() => { this.timer = 0; void this.refresh(); }, Math.max(ms, this.took * 4));
    }
    async refresh(): Promise<void> {
        const begun = performance.now();
        try {
            const [snapshot] = await Promise.all([getJson<Snapshot>("/v1/runs/" + idOf(this.id)), this.readLedger()]);
            if (this.gone) return;
            this.snapshot.value = snapshot;
            moved.value++;
        } catch (error) {
            if (error instanceof Refusal && (error.status === 404 || error.status === 410 || error.status === 403)) this.error.value = error;
        }
        this.took = performance.now() - begun;
        const s = this.snapshot.peek();
        // A retry or a pause has no event of its own in some vocabularies: what is under way is looked at now and then.
        if (s && !["COMPLETED", "FAILED", "CANCELLED"].includes(s.status) && !document.hidden) this.later(s.substatus === "WAITING_APPROVAL" || s.status === "PAUSED" ? 5000 : 2000);
    }

    // One fold at a time: while the slider moves, only the moment where it is by then comes next.
    private async travel(at: string | null): Promise<void> {
        this.pastError.value = null;
        const known = at === null ? null : this.cache.get(at);
        if (known !== undefined) {
            this.pastSnapshot.value = known;
            return;
        }
        if (at === null || this.folding) return;
        this.folding = true;
        try {
            const past = await this.foldAt(at);
            this.cache.set(at, past);
            if (this.cache.size > 300) this.cache.delete(this.cache.keys().next().value!);
            if (this.at.peek() === at) this.pastSnapshot.value = past;
        } catch (error) {
            if (this.at.peek() === at) this.pastError.value = { at, error };
        }
        this.folding = false;
        if (!this.gone && this.at.peek() !== at) void this.travel(this.at.peek());
    }
    private async foldAt(at: string): Promise<Past> {
        const here = await this.own.snapshot(at);
        if (here) return { at, snapshot: here, by: "browser" };
        return { at, snapshot: await getJson<Snapshot>(`/v1/runs/${idOf(this.id)}?at=${at}`), by: "server" };
    }

    // The hash of every record is the one that the next record names: asked here, of the bytes that were sent.
    private checking = false;
    private async check(): Promise<void> {
        if (this.checking) return;
        if (!crypto.subtle || me.value?.payloads === false) {
            this.checked.value = { links: 0, records: this.events.length, broken: null, can: false };
            return;
        }
        this.checking = true;
        let done = this.checked.peek().links, broken = this.checked.peek().broken;
        for (let from = done; broken === null && from < this.events.length; from += 256) {
            const part = this.events.slice(from, from + 256);
            const hashes = await Promise.all(part.map((e) => crypto.subtle.digest("SHA-256", encoder.encode(e.raw))));
            for (let i = 0; i < part.length; i++) {
                part[i]!.hash = hex(hashes[i]!);
                const next = this.events[from + i + 1];
                if (next && next.prev && next.prev !== part[i]!.hash) broken ??= next.seq;
                else if (next) done = from + i + 1;
            }
        }
        this.checked.value = { links: done, records: this.events.length, broken, can: true };
        this.checking = false;
    }
    get records(): Entry[] { return this.events; }
}

// What a fold says of every step, with what the document says of it.
export function itemsOf(run: Snapshot | null, graph: Graph | null, lists: Map<string, Members> | null = null): Map<string, Item> {
    const out = new Map<string, Item>();
    if (!run) return out;
    const defs = new Map(graph?.steps.map((s) => [s.stepId, s]));
    for (const step of run.steps as Step[]) {
        const plain = step.stepId.replace(/\[\d+\]/g, ""), def = defs.get(plain), kind = def ? (def.kind === "tasks" ? (def.loop ? "loop over items" : (def.tasks?.[0]?.kind ?? "route")) : def.kind === "subrun" ? (lists?.has(step.stepId) ? "a run for each item" : "child run") : def.kind) : "step";
        const state = stepState(step, run, def?.kind);
        const first = step.attempts?.[0]?.startedAt ?? step.startedAt, last = step.completedAt;
        out.set(step.stepId, { id: step.stepId, step, def, kind, state, took: step.durationMs ?? (first && last ? Date.parse(last) - Date.parse(first) : null), children: [], known: true, list: lists?.get(step.stepId) });
    }
    for (const [id, item] of out) {
        const parent = /^(.*)\[\d+\]\.[^[\]]+$/.exec(id)?.[1];
        if (parent) out.get(parent)?.children.push(item);
    }
    return out;
}

// A few letters of an id are enough where they mean one run.
export async function resolve(id: string): Promise<string> {
    if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id;
    const find = async () => (await getJson<{ items: { runId: string }[] }>("/v1/runs?limit=2&fields=runId&q=" + encodeURIComponent("run=" + id + "*"))).items;
    // The beginning of a UUID: the list is asked first, so that nothing that is not there is asked for, and stands in the audit.
    if (/^[0-9a-f-]{4,35}$/.test(id) && !/^\d{15,}$/.test(id)) {
        const found = await find();
        if (found.length === 1 && /^[0-9a-f]{8}-/.test(found[0]!.runId)) return found[0]!.runId;
    }
    const answer = await ask(`/v1/runs/${idOf(id)}/status`);
    if (answer.ok) return id;
    if (answer.status !== 404) throw await refusalOf(answer);
    const missing = await refusalOf(answer);
    if (!/^[\w-]{4,}$/.test(id)) throw missing;
    const page = await find();
    if (page.length === 1) return page[0]!.runId;
    if (page.length > 1) throw new Error(`several runs begin with ${id}: write more of it`);
    throw missing;
}

export const toneOf = (item: Item) => tones[item.state];
export const errorOf = (step: Step) => (step.error ? strip(step.error.message) : "");
// The item of a path inside of a playbook or a plan; the names in the graph have no rounds.
export function tries(item: Item): NonNullable<Step["attempts"]> {
    return item.step.attempts ?? [];
}
