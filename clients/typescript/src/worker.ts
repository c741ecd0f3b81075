// Functions of this program as steps of a service (docs/format/worker.md). A worker decides nothing: whether a step is tried again is
// decided by its document.
import { stringify } from "./exact.js";
import { Problem, type Settings, Transport, sleep } from "./transport.js";

const BATCH = 256; // elements of a call
const LOG_CHUNK = 64 * 1024;

/** Thrown by a function to fail its attempt with a code of its own. `retryable`: undefined leaves it to the document. */
export class StepError extends Error {
    constructor(message: string, readonly code = "STEP_FAILED", readonly retryable?: boolean, readonly category?: string) {
        super(message);
    }
}

/** Trying again would not help. */
export class Permanent extends StepError {
    constructor(message: string, code = "STEP_FAILED") {
        super(message, code, false, "business");
    }
}

/** The next attempt may go better: the policy of the step says when and how often. */
export class Retryable extends StepError {
    constructor(message: string, code = "STEP_FAILED") {
        super(message, code, true, "infrastructure");
    }
}

export type StepFunction = (input: any, task: Task) => unknown;

/** One attempt of a step, in the hands of this worker. */
export class Task {
    readonly run: string;
    readonly step: string;
    readonly kind: string;
    readonly attempt: number;
    readonly engineAttempt: number;
    /** The same for all engine attempts of an attempt: give it to what must not happen twice. */
    readonly key: string;
    readonly input: unknown;
    /** Aborted when the attempt is to end: the run was cancelled, its time is over, or another worker has it. */
    readonly signal: AbortSignal;
    /** @internal */ readonly stopping = new AbortController();
    /** @internal */ reported = false;
    /** @internal */ readonly begun = Date.now();
    private readonly texts: Record<string, string> = { stdout: "", stderr: "" };
    private readonly sent: Record<string, number> = { stdout: 0, stderr: 0 };
    private left: number;

    /** @internal */
    constructor(readonly link: Link, readonly given: any) {
        this.run = given.run;
        this.step = given.step;
        this.kind = given.kind;
        this.attempt = given.attempt;
        this.engineAttempt = given.engineAttempt;
        this.key = given.idempotencyKey;
        this.input = given.input ?? null;
        this.signal = this.stopping.signal;
        this.left = given.logMax ?? 1 << 24;
    }

    /** A line of the step's log, as `cairn logs RUN/STEP` shows it. */
    log(text: string, stream: "stdout" | "stderr" = "stdout"): void {
        this.texts[stream] += text.endsWith("\n") ? text : `${text}\n`;
    }

    /** Sleeps; throws as soon as the attempt is to end. */
    async sleep(ms: number): Promise<void> {
        await sleep(ms, this.signal);
        this.signal.throwIfAborted();
    }

    /** A file that the step declares in its document. */
    async putArtifact(path: string, content: Uint8Array): Promise<void> {
        const where = path.split("/").map(encodeURIComponent).join("/");
        await this.link.transport.request("PUT", `/v1/worker/artifacts/${encodeURIComponent(this.given.token)}/${where}`, { content });
    }

    /** @internal */
    get name(): { token: string; epoch: unknown } {
        return { token: this.given.token, epoch: this.given.epoch };
    }

    /** @internal What was logged since it was asked last. */
    chunks(): unknown[] {
        const found: unknown[] = [];
        for (const stream of ["stdout", "stderr"]) {
            let text = this.texts[stream]!;
            this.texts[stream] = "";
            while (text && this.left > 0) {
                let size = Math.min(LOG_CHUNK, text.length);
                if (size < text.length && /[\ud800-\udbff]/.test(text[size - 1]!)) size--; // not between the halves of a character
                const part = new TextDecoder().decode(new TextEncoder().encode(text.slice(0, size))); // lone halves become U+FFFD
                const bytes = new TextEncoder().encode(part).length;
                found.push({ ...this.name, stream, offset: this.sent[stream], text: part });
                this.sent[stream]! += bytes;
                this.left -= bytes;
                text = text.slice(size);
            }
        }
        return found;
    }

    /** @internal */
    end(why: string): void {
        if (!this.signal.aborted) this.stopping.abort(new Error(why));
    }

    /** @internal The first word counts: what comes after a timeout or a cancellation is dropped. */
    report(result: Record<string, unknown>): void {
        if (this.reported) return;
        this.reported = true;
        const whole: Record<string, unknown> = { ...this.name, ...result };
        if (!result.lost) whole.durationMs = Math.max(0, Date.now() - this.begun);
        this.link.handIn(this, whole);
    }
}

export interface WorkerSettings extends Omit<Settings, "url" | "patience"> {
    /** The service, or all engines that share its store. */
    url: string | string[];
    pool?: string;
    concurrency?: number;
    name?: string;
    /** Says what goes wrong between worker and service. */
    warn?: (text: string) => void;
}

/**
 * Serves functions to a service:
 *
 *     const worker = new Worker({ url, token });
 *     worker.step("charge", async (order, task) => ({ receipt: await pay(order.amount, task.key) }));
 *     await worker.run();
 */
export class Worker {
    readonly name: string;
    readonly concurrency: number;
    readonly pool?: string;
    readonly warn: (text: string) => void;
    readonly steps = new Map<string, StepFunction>();
    /** @internal */ readonly stopping = new AbortController();
    private readonly links: Link[];
    private free: number;
    private waiting: Array<() => void> = [];
    private fatal?: unknown;

    constructor(settings: WorkerSettings) {
        const urls = Array.isArray(settings.url) ? settings.url : [settings.url];
        this.name = settings.name ?? `ts-${crypto.randomUUID().slice(0, 8)}`;
        this.concurrency = this.free = settings.concurrency ?? 8;
        this.pool = settings.pool;
        this.warn = settings.warn ?? ((text) => console.warn(text));
        this.links = urls.map((url) => new Link(this, new Transport({ ...settings, url, patience: 0 })));
    }

    /** Makes a function the step kind `kind`: its input comes in, what it returns is the step's output. */
    step(kind: string, call: StepFunction): this {
        if (this.steps.has(kind)) throw new Error(`there is a step ${kind} already`);
        this.steps.set(kind, call);
        return this;
    }

    /** Serves until `stop`; in Node also until SIGTERM or SIGINT. What is at hand is finished first, and given back at the second signal. */
    async run({ signals = true }: { signals?: boolean } = {}): Promise<void> {
        if (this.steps.size === 0) throw new Error("a worker without steps: worker.step(KIND, FUNCTION)");
        const node = (globalThis as any).process;
        const stop = () => {
            if (this.stopping.signal.aborted) for (const link of this.links) link.giveBack();
            this.stop();
        };
        if (signals && node?.on) for (const name of ["SIGTERM", "SIGINT"]) node.on(name, stop);
        try {
            await Promise.all(this.links.map((link) => link.serve()));
        } finally {
            if (signals && node?.off) for (const name of ["SIGTERM", "SIGINT"]) node.off(name, stop);
        }
        if (this.fatal) throw this.fatal;
    }

    /** Takes no more tasks; `run` ends when those at hand are handed in. */
    stop(): void {
        this.stopping.abort();
        for (const go of this.waiting.splice(0)) go();
    }

    /** @internal */
    fail(fault: unknown): void {
        this.fatal = fault;
        this.stop();
    }

    /** @internal Waits for a slot; how many this poll may ask for. 0: the worker stops. */
    async take(): Promise<number> {
        while (this.free < 1 && !this.stopping.signal.aborted) await new Promise<void>((go) => this.waiting.push(go));
        if (this.stopping.signal.aborted) return 0;
        const count = Math.max(1, Math.min(Math.floor(this.free / this.links.length), BATCH));
        this.free -= count;
        return count;
    }

    /** @internal */
    give(count: number): void {
        this.free += count;
        for (const go of this.waiting.splice(0)) go();
    }
}

/** @internal One engine: polls it, renews leases, sends logs, hands in results. */
class Link {
    private readonly tasks = new Map<string, Task>();
    private results: Array<[Task, Record<string, unknown>]> = [];
    private readonly over = new AbortController();
    private wake: () => void = () => {};

    constructor(readonly worker: Worker, readonly transport: Transport) {}

    private async post(call: string, body: Record<string, unknown>, wait = 0, signal?: AbortSignal): Promise<any> {
        const whole: Record<string, unknown> = { worker: this.worker.name, ...body };
        if (this.worker.pool !== undefined) whole.pool = this.worker.pool;
        // a refusal that all elements share has the status of the refusal, and its elements all the same
        const answer = await this.transport.request("POST", `/v1/worker/${call}`, { body: whole, wait, accept: [400, 403, 409, 503], signal });
        let parsed: any = {};
        try {
            parsed = answer.json() ?? {};
        } catch {
            // something between here and the service
        }
        if (answer.status >= 400 && !parsed.results) throw new Problem(answer.status, parsed);
        return parsed;
    }

    async serve(): Promise<void> {
        const behind = Promise.all([this.renew(), this.write(), this.send()]);
        await this.poll();
        while (this.tasks.size) await sleep(20);
        this.over.abort();
        this.wake();
        await behind;
    }

    giveBack(): void {
        for (const task of this.tasks.values()) {
            task.report({ lost: true });
            task.end("the worker ends");
        }
    }

    private async poll(): Promise<void> {
        const stop = this.worker.stopping.signal;
        for (let pause = 100; ; ) {
            const count = await this.worker.take();
            if (count === 0) return;
            let used = 0;
            try {
                const asked = Date.now();
                const kinds = [...this.worker.steps.keys()];
                const answer = await this.post("poll", { kinds, max: count, waitMs: 10000, slots: this.worker.concurrency }, 10);
                pause = 100;
                for (const given of answer.tasks ?? []) {
                    if (Date.now() >= asked + Number(answer.waitedMs ?? 0) + given.leaseMs) continue; // the machine slept: another worker may have it
                    used++;
                    void this.execute(new Task(this, given));
                }
            } catch (fault) {
                if (fault instanceof Problem && [401, 403].includes(fault.status)) this.worker.fail(fault);
                else if (!stop.aborted) this.worker.warn(`${this.transport.url}: ${(fault as Error).message}`);
                await sleep(pause, stop);
                pause = Math.min(pause * 2, 5000);
            } finally {
                this.worker.give(count - used);
            }
        }
    }

    private async execute(task: Task): Promise<void> {
        this.tasks.set(task.given.token, task);
        const limit = Number(task.given.timeoutMs ?? 0);
        const timer = limit > 0 ? setTimeout(() => this.overdue(task, limit), limit) : undefined;
        try {
            const value = await this.worker.steps.get(task.kind)!(task.input, task);
            let fault: Record<string, unknown> | undefined;
            try {
                stringify(value);
            } catch (error) {
                fault = { code: "RESULT_NOT_JSON", message: `what ${task.kind} returned is no JSON: ${(error as Error).message}`, retryable: false };
            }
            task.report(fault ? { error: fault } : { value: value ?? null });
        } catch (error) {
            task.report({ error: task.signal.aborted ? { code: "CANCELLED", message: String((task.signal.reason as Error)?.message ?? "cancelled") } : faultOf(error) });
        } finally {
            clearTimeout(timer);
            this.worker.give(1);
        }
    }

    private overdue(task: Task, limit: number): void {
        task.end("its time is over");
        task.report({ error: { code: "TIMEOUT", message: `took longer than ${limit / 1000} s`, category: "timeout", retryable: true } });
    }

    /** Heartbeats. The answer waits for news, so that a cancellation arrives at once. */
    private async renew(): Promise<void> {
        while (!this.over.signal.aborted) {
            const tasks = [...this.tasks.values()].filter((task) => !task.reported);
            if (tasks.length === 0) {
                await sleep(50, this.over.signal);
                continue;
            }
            const third = Math.min(...tasks.map((task) => Number(task.given.leaseMs))) / 3;
            try {
                for (let first = 0; first < tasks.length; first += BATCH) {
                    const part = tasks.slice(first, first + BATCH);
                    const waitMs = first + BATCH >= tasks.length ? Math.floor(third / 2) : 0;
                    const answer = await this.post("heartbeat", { tasks: part.map((task) => task.name), waitMs }, third / 1000, this.over.signal);
                    part.forEach((task, index) => this.heard(task, answer.results?.[index]));
                }
            } catch (fault) {
                if (!this.over.signal.aborted) this.worker.warn(`${this.transport.url}: heartbeat: ${(fault as Error).message}`);
                await sleep(Math.min(1000, third / 2), this.over.signal);
            }
            await sleep(Math.min(50, third / 10), this.over.signal);
        }
    }

    private heard(task: Task, state: any): void {
        if (state?.state === "cancel" && !task.signal.aborted) {
            task.end("the run was cancelled, or the step is to stop");
            const fault = { code: "CANCELLED", message: "did not end when it was asked to" };
            setTimeout(() => task.report({ error: fault }), Math.max(50, Number(state.graceMs ?? 0)));
        } else if (state?.state === "stale" || state?.state === "denied") {
            task.end("the attempt is over");
            this.tasks.delete(task.given.token);
        }
    }

    /** Logs, a few times a second. */
    private async write(): Promise<void> {
        while (!this.over.signal.aborted) {
            await sleep(250, this.over.signal);
            await this.writeNow([...this.tasks.values()]);
        }
    }

    private async writeNow(tasks: Task[]): Promise<void> {
        const chunks = tasks.flatMap((task) => task.chunks());
        for (let first = 0; first < chunks.length; first += 32) {
            for (let tries = 0; tries < 5; tries++) {
                try {
                    await this.post("logs", { chunks: chunks.slice(first, first + 32) });
                    break;
                } catch (fault) {
                    this.worker.warn(`${this.transport.url}: logs: ${(fault as Error).message}`);
                    if (fault instanceof Problem && fault.status < 500) break;
                    await sleep(200);
                }
            }
        }
    }

    handIn(task: Task, result: Record<string, unknown>): void {
        this.results.push([task, result]);
        this.wake();
    }

    /** Hands in what came out until the service has said that it is durable, or that it does not count. */
    private async send(): Promise<void> {
        for (let pause = 50; !this.over.signal.aborted || this.results.length; ) {
            if (this.results.length === 0) {
                await new Promise<void>((go) => (this.wake = go));
                continue;
            }
            const batch = fitting(this.results);
            await this.writeNow(batch.map(([task]) => task));
            let states: any[];
            try {
                states = (await this.post("complete", { results: batch.map(([, result]) => result) })).results ?? [];
                pause = 50;
            } catch (fault) {
                if (fault instanceof Problem && [400, 413].includes(fault.status)) {
                    states = batch.map(() => ({ state: "invalid", detail: fault.message }));
                } else {
                    this.worker.warn(`${this.transport.url}: results: ${(fault as Error).message}`);
                    await sleep(pause);
                    pause = Math.min(pause * 2, 2000);
                    continue;
                }
            }
            const left: typeof this.results = [];
            batch.forEach(([task, result], index) => {
                const state = states[index];
                if (state?.state === "again") left.push([task, result]);
                else if (state?.state === "invalid" && !result.error && !result.lost) {
                    const fault = { code: "RESULT_REFUSED", message: String(state.detail ?? "the service does not take this result"), retryable: false };
                    left.push([task, { ...task.name, error: fault }]);
                } else this.tasks.delete(task.given.token);
            });
            if (left.length) await sleep(50);
            this.results = [...left, ...this.results.slice(batch.length)];
        }
    }
}

/** As many as one call may carry: some large results travel alone. */
function fitting(results: Array<[Task, Record<string, unknown>]>): typeof results {
    const batch: typeof results = [];
    let size = 0;
    for (const one of results.slice(0, BATCH)) {
        size += stringify(one[1]).length;
        if (batch.length && size > 4 << 20) break;
        batch.push(one);
    }
    return batch;
}

function faultOf(error: unknown): Record<string, unknown> {
    const thrown = error instanceof Error ? error : new Error(String(error));
    if (thrown instanceof StepError) {
        const fault: Record<string, unknown> = { code: thrown.code.slice(0, 64) || "STEP_FAILED", message: thrown.message || thrown.name };
        if (thrown.retryable !== undefined) fault.retryable = thrown.retryable;
        if (thrown.category !== undefined) fault.category = thrown.category;
        return fault;
    }
    return { code: (thrown.name || "Error").slice(0, 64), message: thrown.message || thrown.name, detail: (thrown.stack ?? "").slice(0, 8000) };
}

export type { Link };
