// Asking the server. Every answer is typed by the server's own description; a problem is an error with the server's words.
import { signal } from "@preact/signals";
import createClient from "openapi-fetch";
import type { paths } from "./gen/api";
import type { Principal, Problem } from "./types";

export class Refusal extends Error {
    constructor(readonly status: number, readonly problem: Partial<Problem>) {
        super(problem.detail ?? problem.title ?? "the server answered " + status);
    }
    get code() { return this.problem.code ?? ""; }
}
export class Unreachable extends Error {
    constructor() { super("the server does not answer"); }
}

export const me = signal<Principal | null>(null);
// "out": the sign-in card stands over the page, and what was asked waits behind it.
export const session = signal<"unknown" | "in" | "out">("unknown");
let waiting: (() => void)[] = [];
export function signedIn(who: Principal): void {
    denied.clear();
    me.value = who;
    session.value = "in";
    for (const go of waiting.splice(0)) go();
}
const signIn = () => new Promise<void>((go) => { session.value = "out"; waiting.push(go); });

// A session has two halves (docs/format/sign-in.md): a cookie that scripts cannot read, and this key. Neither is of use alone.
const KEY = "cairn.key";
let key = "";
try {
    key = localStorage.getItem(KEY) ?? "";
} catch { /* it lasts as long as the tab then */ }
export async function openSession(secret: { token: string } | { ticket: string }): Promise<void> {
    let answer: Response;
    try {
        answer = await fetch("/v1/session", { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(secret) });
    } catch {
        throw new Unreachable();
    }
    if (!answer.ok) throw await refusalOf(answer);
    const made = (await answer.json()) as { key: string; principal: Principal };
    key = made.key;
    try {
        localStorage.setItem(KEY, key);
    } catch { /* as above */ }
    signedIn(made.principal);
}
export async function signOut(): Promise<void> {
    await ask("/v1/session", { method: "DELETE" }, false).catch(() => {});
    key = "";
    try {
        localStorage.removeItem(KEY);
    } catch { /* as above */ }
    me.value = null;
    session.value = "out";
}
const body = async (answer: Response): Promise<Partial<Problem>> => {
    try {
        return (await answer.json()) as Partial<Problem>;
    } catch {
        return {};
    }
};

// What this reader was denied once is denied again: every further question would only be one more record in the audit. Kept by path
// until the reader signs in, or the page is loaded anew.
const denied = new Map<string, Response>();
const aboutOf = (url: URL): string => url.pathname + (url.searchParams.has("q") ? "?q=" + url.searchParams.get("q")! : ""); // a query may be denied for what it asks about

// Each request once more after the person has signed in again, so that a session that ends does not end the work.
export async function ask(input: string | Request, init?: RequestInit, patient = true): Promise<Response> {
    for (;;) {
        const request = new Request(input instanceof Request ? input.clone() : input, { credentials: "same-origin", cache: "no-store", ...init });
        const about = request.method === "GET" ? aboutOf(new URL(request.url)) : "", before = about ? denied.get(about) : undefined;
        if (before) return before.clone();
        if (key) request.headers.set("Cairn-Session", key);
        let answer: Response;
        try {
            answer = await fetch(request);
        } catch (error) {
            if ((error as Error).name === "AbortError") throw error;
            throw new Unreachable();
        }
        if (answer.status === 403 && about) denied.set(about, answer.clone());
        if (answer.status !== 401 || !patient) return answer;
        await signIn();
    }
}

export const client = createClient<paths>({ baseUrl: location.origin, fetch: (request) => ask(request) });

export async function refusalOf(answer: Response): Promise<Refusal> {
    return new Refusal(answer.status, await body(answer));
}
export async function getJson<T>(path: string, init?: RequestInit): Promise<T> {
    const answer = await ask(path, init);
    if (!answer.ok) throw await refusalOf(answer);
    return (await answer.json()) as T;
}
export async function send<T>(method: string, path: string, value?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const init: RequestInit = { method, headers: value === undefined ? headers : { "Content-Type": "application/json", ...headers } };
    if (value !== undefined) init.body = JSON.stringify(value);
    const answer = await ask(path, init);
    if (!answer.ok) throw await refusalOf(answer);
    const text = await answer.text();
    return (text ? JSON.parse(text) : null) as T;
}
// A link cannot show the session: what is downloaded is fetched, and given to the browser to keep.
export async function download(path: string, name: string): Promise<void> {
    const answer = await ask(path);
    if (!answer.ok) throw await refusalOf(answer);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
// Of the typed client: the data, or the problem as an error.
export async function data<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
    const { data: value, error, response } = await call;
    if (response.ok) return value as T;
    throw new Refusal(response.status, (error ?? {}) as Partial<Problem>);
}

// Roles from the least to the most. A role does what those before it do.
const ROLES = ["Viewer", "Operator", "Engineer", "Admin"];
export function mayAs(role: string): boolean {
    const roles = me.value?.roles ?? [];
    return roles.some((own) => ROLES.indexOf(own) >= ROLES.indexOf(role) && ROLES.includes(own));
}
// What the token may do, in the server's own words (GET /v1/whoami).
// Whoever reads is "you": a token has a long name.
export const nameOf = (id: string): string => (id === me.value?.id ? "you" : id);
export const mayDo = (operation: string): boolean => me.value?.operations?.includes(operation) ?? false;
export const idOf = encodeURIComponent;
/** Names of plans and steps may hold slashes: they are several segments of a path. */
export const several = (text: string): string => text.split("/").map(encodeURIComponent).join("/");
// Letters of a UUID are random even where crypto.randomUUID is kept for secure origins.
export function uuid(): string {
    const b = crypto.getRandomValues(new Uint8Array(16));
    b[6] = (b[6]! & 15) | 64;
    b[8] = (b[8]! & 63) | 128;
    return [...b].map((x, i) => ([4, 6, 8, 10].includes(i) ? "-" : "") + x.toString(16).padStart(2, "0")).join("");
}
