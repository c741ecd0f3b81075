// A client of a service: starts runs, waits for them, reads what happened, and steers them.
import { type Decision, Operations, type Request, type RunRow, type RunSnapshot, type RunStatus, type Why } from "./api.js";
import { parse, stringify } from "./exact.js";
import { CairnError, Problem, type Settings, Transport, Unreachable, queryOf, sleep } from "./transport.js";

/** Names of plans and steps may hold slashes: they are several segments of a path. */
const several = (text: string): string => text.split("/").map(encodeURIComponent).join("/");

const ENDED = ["COMPLETED", "FAILED", "CANCELLED"];

/** The run ended, and not well. `snapshot` is how. */
export class RunFailed extends CairnError {
    constructor(readonly snapshot: RunSnapshot) {
        const error = (snapshot as any).rootCause?.error;
        super(`run ${snapshot.runId} ended ${snapshot.status}${error?.message ? `: ${error.code ?? ""} ${error.message}` : ""}`);
    }
}

/** An event of a run, as docs/format/events.md describes it. */
export type RunEvent = Record<string, any>;

export interface Start {
    /** A plan as an object, or the text of a document. */
    document?: string | Record<string, unknown>;
    planRef?: Record<string, unknown>;
    inputs?: Record<string, unknown>;
    runId?: string;
    queue?: string;
    /** Makes this start happen once: the same key and the same request give the same run. */
    key?: string;
    /** What else the body of a start may have. */
    more?: Record<string, unknown>;
}

export interface SignalOptions {
    payload?: Record<string, unknown>;
    step?: string;
    reason?: string;
    /** The same signal again counts once. */
    id?: string;
    /** Only if nothing has happened since this event. */
    ifSeq?: number;
}

export class Client extends Operations {
    readonly transport: Transport;

    constructor(settings: Settings) {
        super();
        this.transport = new Transport(settings);
    }

    protected async operation<T>(method: string, path: string, places: Record<string, string>, request: Request = {}): Promise<T> {
        for (const [name, value] of Object.entries(places)) path = path.replace(`{${name}}`, name === "name" || name === "step" ? several(value) : encodeURIComponent(value));
        const again = request.headers?.["Idempotency-Key"] ? true : undefined;
        const answer = await this.transport.request(method, path + queryOf(request.query ?? {}), { ...request, again });
        if ((answer.headers.get("content-type") ?? "").includes("json")) return answer.json();
        return (answer.bytes.length ? answer.bytes : null) as T;
    }

    /** Starts a run. A service that takes no documents in requests gets it as a definition. */
    async start(given: Start): Promise<Run> {
        const key = given.key ?? crypto.randomUUID();
        const body: Record<string, unknown> = { ...given.more };
        for (const name of ["document", "planRef", "inputs", "runId", "queue"] as const) if (given[name] !== undefined) body[name] = given[name];
        let status: RunStatus;
        try {
            status = await this.begin(body, key);
        } catch (refused) {
            if (!(refused instanceof Problem) || refused.code !== "PLAN_INLINE_NOT_ALLOWED" || given.document === undefined) throw refused;
            const kept = await this.define(given.document);
            delete body.document;
            body.planRef = { planId: kept.planId, planVersion: kept.planVersion, schemaVersion: kept.schemaVersion || "v1.2", sha256: kept.sha256, uri: kept.uri };
            status = await this.begin(body, `${key}-ref`);
        }
        return new Run(this, status.runId);
    }

    private async begin(body: unknown, key: string): Promise<RunStatus> {
        return (await this.transport.request("POST", "/v1/runs", { body, headers: { "Idempotency-Key": key }, again: true })).json();
    }

    /** Keeps a document at the service, as a version of the plan that it is. */
    async define(document: string | Record<string, unknown>): Promise<any> {
        const text = typeof document === "string" ? document : stringify(document);
        const content = new TextEncoder().encode(text);
        const report = (await this.transport.request("POST", "/v1/plans:validate", { body: { document: text }, again: true })).json();
        const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
        const sha = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
        const path = `/v1/definitions/${several(report.planId)}/versions/${sha}`;
        return (await this.transport.request("PUT", path, { content })).json();
    }

    /** The run of that id. Nothing is asked yet. */
    run(id: string): Run {
        return new Run(this, id);
    }

    /** The runs that a query means (the language of `cairn ls`), page by page as they are needed. */
    async *runs(q?: string, filters: Record<string, unknown> = {}): AsyncGenerator<RunRow> {
        let cursor: string | null | undefined;
        do {
            const page: any = (await this.transport.request("GET", `/v1/runs${queryOf({ q, cursor, ...filters })}`)).json();
            yield* page.items;
            cursor = page.nextCursor;
        } while (cursor);
    }

    /** What happens to all runs of the tenant, as it happens. Goes on until `signal` ends it. */
    events(after?: number, filters: Record<string, unknown> = {}, signal?: AbortSignal): AsyncGenerator<RunEvent> {
        return this.follow("/v1/events", after, filters, signal);
    }

    /** A stream that survives cut connections and restarts of the service: it goes on behind the last event that came. */
    async *follow(path: string, after?: number, filters: Record<string, unknown> = {}, signal?: AbortSignal): AsyncGenerator<RunEvent> {
        let place = after === undefined ? undefined : String(after);
        let until = Date.now() + this.transport.patience * 1000;
        for (let pause = 50; !signal?.aborted; pause = Math.min(pause * 2, 2000)) {
            try {
                for await (const { event, id, data } of this.transport.stream(path + queryOf(filters), { "Last-Event-ID": place }, signal)) {
                    until = Date.now() + this.transport.patience * 1000;
                    pause = 50;
                    place = id || place;
                    if (event === "end") return;
                    if (event === "resync") throw new CairnError(`${path}: the service has fewer events than were read: read the run again`);
                    if (event !== "ping" && event !== "heartbeat") yield parse(data) as RunEvent;
                }
                if (place !== undefined && (await this.over(path, place))) return;
            } catch (fault) {
                if (signal?.aborted) return;
                if (fault instanceof CairnError && !(fault instanceof Unreachable) && !(fault instanceof Problem && [429, 502, 503, 504].includes(fault.status))) throw fault;
                if (Date.now() >= until) throw fault instanceof CairnError ? fault : new Unreachable(`${this.transport.url}: ${fault}`, { cause: fault });
            }
            await sleep(pause, signal);
        }
    }

    /** A stream that ended without a word: whether its run has ended, and all of it was read. */
    private async over(path: string, place: string): Promise<boolean> {
        const run = /^(\/v1\/runs\/[^/]+)\/events$/.exec(path);
        if (!run) return false;
        const status = (await this.transport.request("GET", `${run[1]}/status`)).json() as RunStatus;
        return ENDED.includes(status.status) && String(status.lastEventSeq) === place;
    }
}

/** A run of a service, by its id. */
export class Run {
    private readonly path: string;

    constructor(readonly client: Client, readonly id: string) {
        this.path = `/v1/runs/${encodeURIComponent(id)}`;
    }

    status(): Promise<RunStatus> {
        return this.client.getRunsByRunStatus(this.id);
    }

    /** The run with its steps; `at`: as it was after that event. */
    snapshot(at?: number | string): Promise<RunSnapshot> {
        return this.client.getRunsByRun(this.id, { at });
    }

    /** Until the run has ended. Throws RunFailed unless it completed, or `check` is false. `timeout` in seconds. */
    async wait({ timeout, check = true }: { timeout?: number; check?: boolean } = {}): Promise<RunSnapshot> {
        const until = timeout === undefined ? Infinity : Date.now() + timeout * 1000;
        for (let tag: string | null = null; ; ) {
            const left = Math.min(20, (until - Date.now()) / 1000);
            if (left < 0) throw new CairnError(`run ${this.id} has not ended after ${timeout} s`);
            const headers = { "If-None-Match": tag, Prefer: tag ? `wait=${Math.max(1, Math.floor(left))}` : null };
            const answer = await this.client.transport.request("GET", `${this.path}?fields=status,lastEventSeq`, { headers, wait: 20 });
            tag = answer.headers.get("etag") ?? tag;
            if (answer.status === 200 && ENDED.includes(answer.json().status)) break;
        }
        const snapshot = await this.snapshot();
        if (check && snapshot.status !== "COMPLETED") throw new RunFailed(snapshot);
        return snapshot;
    }

    /** What a step gave. */
    async output(step: string): Promise<unknown> {
        return (await this.client.getRunsByRunStepsByStepOutput(this.id, step)).result;
    }

    /** The events of the run, from the first, or behind `after`; as they happen, until it has ended. Each comes once. */
    events(after?: number, filters: Record<string, unknown> = {}, signal?: AbortSignal): AsyncGenerator<RunEvent> {
        return this.client.follow(`${this.path}/events`, after, filters, signal);
    }

    /** What a step wrote, in its last attempt unless `attempt` names another. */
    async logs(step: string, attempt?: number): Promise<string> {
        const path = `${this.path}/steps/${several(step)}/logs${queryOf({ attempt })}`;
        return new TextDecoder().decode((await this.client.transport.request("GET", path, { headers: { Accept: "text/plain" } })).bytes);
    }

    /** Why the run, or a step of it, is as it is. */
    why(step?: string): Promise<Why> {
        return step === undefined ? this.client.getRunsByRunWhy(this.id) : this.client.getRunsByRunStepsByStepWhy(this.id, step);
    }

    /** Sends a signal, once however often it travels. */
    async signal(signalType: string, { payload, step, reason, id, ifSeq }: SignalOptions = {}): Promise<Decision> {
        const body = { signalType, payload, stepId: step, reason };
        const headers = { "If-Match": ifSeq === undefined ? undefined : `"r-${ifSeq}"` };
        return (await this.client.transport.request("PUT", `${this.path}/signals/${encodeURIComponent(id ?? crypto.randomUUID())}`, { body, headers })).json();
    }

    pause(reason?: string): Promise<Decision> {
        return this.signal("PAUSE", { reason });
    }

    resume(reason?: string): Promise<Decision> {
        return this.signal("RESUME", { reason });
    }

    cancel(reason?: string): Promise<Decision> {
        return this.signal("CANCEL", { reason });
    }

    approve(step: string, payload?: Record<string, unknown>, reason?: string): Promise<Decision> {
        return this.signal("APPROVE", { step, payload, reason });
    }

    reject(step: string, reason: string): Promise<Decision> {
        return this.signal("REJECT", { step, reason });
    }

    retryStep(step: string, reason?: string): Promise<Decision> {
        return this.signal("RETRY_STEP", { step, reason });
    }

    skipStep(step: string, reason: string): Promise<Decision> {
        return this.signal("SKIP_STEP", { step, reason });
    }
}
