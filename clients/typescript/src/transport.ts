// Requests: patience with a service that is away or busy, refusals as errors, and streams of events.
import { parse, stringify } from "./exact.js";

/** Everything that goes wrong with a service. */
export class CairnError extends Error {}

/** The service did not answer within the patience of the client. */
export class Unreachable extends CairnError {}

/** The service refused. `code` does not change between versions; `cairn help CODE` explains it. */
export class Problem extends CairnError {
    readonly code: string;
    readonly detail: string;
    readonly hint: string;

    constructor(readonly status: number, readonly body: Record<string, unknown>) {
        const code = String(body.code ?? `HTTP_${status}`);
        const detail = String(body.detail ?? body.title ?? "");
        super(detail ? `${code}: ${detail}` : code);
        this.code = code;
        this.detail = detail;
        this.hint = String(body.hint ?? "");
    }
}

export interface Settings {
    /** Where the service is: "http://127.0.0.1:7117". */
    url: string;
    /** A token of the service; none where a session of the browser is enough. */
    token?: string;
    /** Seconds that a request may take (60). */
    timeout?: number;
    /** Seconds that a request which may be sent again is sent again for (30). */
    patience?: number;
    /** Instead of the fetch of the platform. */
    fetch?: typeof globalThis.fetch;
}

export interface Sending {
    body?: unknown;
    content?: Uint8Array;
    headers?: Record<string, unknown>;
    /** It may be sent twice. GET, PUT and DELETE may. */
    again?: boolean;
    /** Seconds that the service may take on purpose. */
    wait?: number;
    /** Statuses from 400 that are answers, not refusals. */
    accept?: number[];
    signal?: AbortSignal;
}

export interface Answer {
    status: number;
    headers: Headers;
    bytes: Uint8Array;
    json(): any;
}

export interface StreamEvent {
    event: string;
    id: string;
    data: string;
}

const BUSY = [429, 502, 503, 504];

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const timer = setTimeout(done, ms);
        function done() {
            clearTimeout(timer);
            signal?.removeEventListener("abort", done);
            resolve();
        }
        signal?.addEventListener("abort", done);
    });
}

export function queryOf(pairs: Record<string, unknown>): string {
    const given = Object.entries(pairs).filter(([, value]) => value !== undefined && value !== null);
    return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

async function problemOf(response: Response): Promise<Problem> {
    const text = await response.text();
    try {
        const body = JSON.parse(text);
        if (body && typeof body === "object") return new Problem(response.status, body);
    } catch {
        // no JSON: something between here and the service
    }
    return new Problem(response.status, { detail: text.slice(0, 200) });
}

export class Transport {
    readonly url: string;
    readonly patience: number;
    private readonly token: string;
    private readonly timeout: number;
    private readonly fetch: typeof globalThis.fetch;

    constructor(settings: Settings) {
        if (!/^https?:\/\//.test(settings.url)) throw new TypeError(`${settings.url} is no address of a service: http://HOST:PORT`);
        this.url = settings.url.replace(/\/+$/, "");
        this.token = settings.token ?? "";
        this.timeout = settings.timeout ?? 60;
        this.patience = settings.patience ?? 30;
        this.fetch = settings.fetch ?? globalThis.fetch.bind(globalThis);
    }

    private head(given: Record<string, unknown> = {}, type?: string): Record<string, string> {
        const head: Record<string, string> = { Accept: "application/json" };
        if (this.token) head.Authorization = `Bearer ${this.token}`;
        if (type) head["Content-Type"] = type;
        for (const [name, value] of Object.entries(given)) if (value !== undefined && value !== null) head[name] = String(value);
        return head;
    }

    /** Sends until there is an answer. */
    async request(method: string, path: string, sending: Sending = {}): Promise<Answer> {
        const body = sending.body !== undefined ? stringify(sending.body) : (sending.content as BodyInit | undefined);
        const type = sending.body !== undefined ? "application/json" : sending.content ? "application/octet-stream" : undefined;
        const again = sending.again ?? ["GET", "PUT", "DELETE"].includes(method);
        const until = Date.now() + this.patience * 1000;
        for (let pause = 50; ; pause = Math.min(pause * 2, 2000)) {
            let rest = pause / 2 + (Math.random() * pause) / 2;
            const limit = AbortSignal.timeout((this.timeout + (sending.wait ?? 0)) * 1000);
            const stop = sending.signal ? anyOf([sending.signal, limit]) : limit;
            try {
                const response = await this.fetch(this.url + path, { method, body, headers: this.head(sending.headers, type), signal: stop });
                if (response.status < 400 || sending.accept?.includes(response.status)) {
                    const bytes = new Uint8Array(await response.arrayBuffer());
                    const text = () => (bytes.length ? parse(new TextDecoder().decode(bytes)) : null);
                    return { status: response.status, headers: response.headers, bytes, json: text };
                }
                const refused = await problemOf(response);
                if (!BUSY.includes(response.status) || !again || Date.now() >= until) throw refused;
                const after = Number(response.headers.get("retry-after") ?? NaN);
                if (Number.isFinite(after)) rest = after * 1000;
            } catch (fault) {
                if (fault instanceof Problem || sending.signal?.aborted) throw fault;
                if (!again || Date.now() >= until) throw new Unreachable(`${this.url}: ${reason(fault)}`, { cause: fault });
            }
            await sleep(Math.min(rest, Math.max(10, until - Date.now())), sending.signal);
        }
    }

    /** Server-sent events; ends when the service ends the answer. A 204 has none. */
    async *stream(path: string, headers: Record<string, unknown>, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
        const response = await this.fetch(this.url + path, { headers: this.head({ ...headers, Accept: "text/event-stream" }), signal });
        if (response.status === 204) return;
        if (response.status >= 400) throw await problemOf(response);
        const reader = response.body!.getReader();
        const decoder = new TextDecoder();
        let kept = "";
        let next: StreamEvent = { event: "message", id: "", data: "" };
        let lines: string[] = [];
        try {
            for (;;) {
                const { value, done } = await reader.read();
                if (done) return; // an event that was not whole comes again
                kept += decoder.decode(value, { stream: true });
                const whole = kept.split("\n");
                kept = whole.pop()!;
                for (const raw of whole) {
                    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
                    if (line === "") {
                        if (lines.length) yield { ...next, data: lines.join("\n") };
                        next = { event: "message", id: next.id, data: "" };
                        lines = [];
                        continue;
                    }
                    const colon = line.indexOf(":");
                    const field = colon < 0 ? line : line.slice(0, colon);
                    const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
                    if (field === "event") next.event = text;
                    else if (field === "id") next.id = text;
                    else if (field === "data") lines.push(text);
                }
            }
        } finally {
            reader.cancel().catch(() => {});
        }
    }
}

function reason(fault: unknown): string {
    const cause = (fault as { cause?: unknown })?.cause;
    return String((cause as Error)?.message || (fault as Error)?.message || fault);
}

function anyOf(signals: AbortSignal[]): AbortSignal {
    const either = new AbortController();
    for (const signal of signals) {
        if (signal.aborted) either.abort(signal.reason);
        else signal.addEventListener("abort", () => either.abort(signal.reason), { once: true, signal: either.signal });
    }
    return either.signal;
}
