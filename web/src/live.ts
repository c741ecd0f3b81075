// The one connection of the tab: events as they are stored, by fetch, so that it can say where to go on (Last-Event-ID) and who asks.
import { signal } from "@preact/signals";
import { ask, refusalOf, Unreachable } from "./api";

export type Fresh = { state: "live" | "polling" | "stale" | "offline"; since: number; last: number };
export const fresh = signal<Fresh>({ state: "stale", since: Date.now(), last: 0 });
// Counts up whenever what was read may be old: after a gap in the connection everything on screen is read again.
export const resyncs = signal(0);

export interface LiveEvent { id: number; type: string; data: string }
type Listener = (event: LiveEvent) => void;

const RETRY_MS = [300, 1000, 2000, 5000];
const POLL_MS = 5000;
const FLOOD = 600; // events in a second: more than a person reads, and than a page should parse
let current: { path: string; abort: AbortController; last: number; listener: Listener } | null = null;

function set(state: Fresh["state"], last = fresh.value.last): void {
    if (fresh.value.state === state && fresh.value.last === last) return;
    fresh.value = { state, last, since: fresh.value.state === state ? fresh.value.since : Date.now() };
}

// Follows `path` from behind `after` until another is followed or the function it returns is called.
export function follow(path: string, after: number, listener: Listener): () => void {
    current?.abort.abort();
    const mine = { path, abort: new AbortController(), last: after, listener };
    current = mine;
    void run(mine);
    return () => {
        mine.abort.abort();
        if (current === mine) current = null;
    };
}
// The button beside "Offline".
export function retryNow(): void {
    wake?.();
}
let wake: (() => void) | null = null;
const pause = (ms: number, abort: AbortSignal) => new Promise<void>((done) => {
    const timer = setTimeout(done, ms);
    wake = () => { clearTimeout(timer); done(); };
    abort.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

async function run(mine: NonNullable<typeof current>): Promise<void> {
    const signal = mine.abort.signal;
    let tries = 0, broken = false;
    while (!signal.aborted) {
        try {
            const answer = await ask(mine.path, { signal, headers: { Accept: "text/event-stream", "Last-Event-ID": String(mine.last) } });
            if (answer.status === 204) return set("live", mine.last); // the run has ended, and all of it was read
            if (answer.status === 429) {
                set("polling");
                resyncs.value++;
                await pause(POLL_MS, signal);
                continue;
            }
            if (!answer.ok || !answer.body) throw await refusalOf(answer);
            set("live", mine.last);
            if (broken) resyncs.value++;
            broken = false;
            tries = 0;
            const ended = await read(answer.body, mine);
            if (ended) return;
        } catch (error) {
            if (signal.aborted) return;
            if (!(error instanceof Unreachable) && (error as { status?: number }).status === 404) return;
            set(error instanceof Unreachable && tries > 0 ? "offline" : "stale");
        }
        if (signal.aborted) return;
        broken = true;
        if (fresh.value.state === "live") set("stale");
        await pause(RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]!, signal);
    }
}

// True: the stream said that there is no more.
async function read(body: ReadableStream<Uint8Array>, mine: NonNullable<typeof current>): Promise<boolean> {
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = "", second = 0, seen = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return false;
        rest += value;
        let end: number;
        while ((end = rest.indexOf("\n\n")) >= 0) {
            const block = rest.slice(0, end);
            rest = rest.slice(end + 2);
            const event: LiveEvent = { id: mine.last, type: "", data: "" };
            for (const line of block.split("\n")) {
                if (line.startsWith("id: ")) event.id = Number(line.slice(4));
                else if (line.startsWith("event: ")) event.type = line.slice(7);
                else if (line.startsWith("data: ")) event.data = line.slice(6);
            }
            if (!event.type) continue;
            const fromEnd = mine.last === Number.MAX_SAFE_INTEGER; // it asked where the end is: nothing was missed
            mine.last = event.id;
            if (mine.abort.signal.aborted) return true;
            if (event.type === "end") {
                mine.listener(event);
                return true;
            }
            if (event.type === "resync") {
                if (!fromEnd) resyncs.value++;
                continue;
            }
            const now = Math.floor(performance.now() / 1000);
            seen = now === second ? seen + 1 : 1;
            second = now;
            mine.listener(event);
            if (seen > FLOOD && mine.path === "/v1/events") { // read what is there now and then instead of everything
                await reader.cancel();
                set("polling", mine.last);
                await pause(POLL_MS, mine.abort.signal);
                mine.last = Number.MAX_SAFE_INTEGER; // the server says where its end is
                resyncs.value++;
                return false;
            }
        }
        set(fresh.value.state === "polling" ? "polling" : "live", mine.last);
    }
}
