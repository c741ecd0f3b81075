// Proving logs in the reader's own browser, with nothing but the hashes and signatures of the platform: the server is not asked whether it is right.
import { hex } from "./words";

export interface Link { seq: number; hash: string; prev: string }
export interface Proof { records: number; links: number; head: string; broken: { seq: number; expected: string; found: string; before: string; after: string } | null }

const encoder = new TextEncoder();
export const sha256 = async (bytes: BufferSource) => hex(await crypto.subtle.digest("SHA-256", bytes));
export const canProve = () => typeof crypto !== "undefined" && !!crypto.subtle;
const ZERO = "0".repeat(64);

const prevOf = (line: string) => /"prev_?[hH]ash":"([0-9a-f]{64})"/.exec(line)?.[1] ?? "";

// Lines are records byte for byte, the oldest first. One that was redacted keeps the hash that it had.
export async function proveChain(lines: string[], progress?: (done: number) => void): Promise<Proof> {
    const proof: Proof = { records: lines.length, links: 0, head: ZERO, broken: null };
    for (let i = 0; i < lines.length; i++) {
        const line = lines[i]!, prev = prevOf(line);
        if (prev !== proof.head) {
            proof.broken = { seq: i + 1, expected: proof.head, found: prev, before: lines[i - 1] ?? "", after: line };
            return proof;
        }
        const redacted = /^\{"record":.*,"redacted":\{"hash":"([0-9a-f]{64})"\}\}$/s.exec(line);
        proof.head = redacted ? redacted[1]! : await sha256(encoder.encode(line));
        if (i > 0) proof.links++;
        if (i % 500 === 0) progress?.(i);
    }
    return proof;
}

function der(pem: string): ArrayBuffer {
    const text = atob(pem.replace(/-----[^-]+-----|\s/g, ""));
    return Uint8Array.from(text, (c) => c.charCodeAt(0)).buffer as ArrayBuffer;
}
// Ed25519. "unknown": this browser cannot.
export async function signed(pem: string, signature: BufferSource, bytes: BufferSource): Promise<"yes" | "no" | "unknown"> {
    try {
        const key = await crypto.subtle.importKey("spki", der(pem), { name: "Ed25519" }, false, ["verify"]);
        return (await crypto.subtle.verify({ name: "Ed25519" }, key, signature, bytes)) ? "yes" : "no";
    } catch {
        return "unknown";
    }
}
export const keyId = (pem: string) => sha256(der(pem));

// The members of a tar archive in the one form that bundles have (docs/format/bundle.md).
export function untar(buffer: ArrayBuffer): Map<string, Uint8Array<ArrayBuffer>> {
    const out = new Map<string, Uint8Array<ArrayBuffer>>(), text = (from: number, n: number) => new TextDecoder().decode(new Uint8Array(buffer, from, n)).replace(/\0[\s\S]*$/, "");
    let at = 0;
    while (at + 512 <= buffer.byteLength) {
        const name = text(at, 100);
        if (!name) break;
        if (text(at + 257, 5) !== "ustar") throw new Error("this is no bundle: it is not a tar archive of that form");
        const prefix = text(at + 345, 155), size = parseInt(text(at + 124, 12).trim(), 8);
        if (!(size >= 0) || at + 512 + size > buffer.byteLength) throw new Error(`the bundle is cut off in ${name}`);
        out.set(prefix ? prefix + "/" + name : name, new Uint8Array(buffer, at + 512, size));
        at += 512 + Math.ceil(size / 512) * 512;
    }
    if (!out.has("SHA256SUMS") || !out.has("runs.jsonl")) throw new Error("this is no bundle: SHA256SUMS or runs.jsonl is missing");
    return out;
}

export interface BundleRun { runId: string; planId: string; status: string; lastSeq: number; head: string; startedMs?: number; endedMs?: number; name?: string }
export interface Bundle { runs: { about: BundleRun; lines: string[]; proof: Proof; headHolds: boolean }[]; faults: string[]; members: number; signer: string | null; signature: "yes" | "no" | "unknown" | "none" }

export async function proveBundle(buffer: ArrayBuffer, progress: (what: string) => void): Promise<Bundle> {
    const members = untar(buffer), faults: string[] = [], decode = (name: string) => new TextDecoder().decode(members.get(name));
    const sums = decode("SHA256SUMS").split("\n").filter(Boolean).map((l) => [l.slice(66), l.slice(0, 64)] as const), named = new Set(sums.map(([name]) => name));
    for (const [name, want] of sums) {
        progress("hashing " + name);
        const bytes = members.get(name);
        const is = bytes && (await sha256(bytes));
        if (!bytes) faults.push(`${name} is missing`);
        else if (is !== want) faults.push(`${name} is not the file that was written`);
        else if (name.startsWith("blobs/") && name !== "blobs/" + is) faults.push(`${name} is named by the hash of something else`);
    }
    for (const name of members.keys()) if (!named.has(name) && !name.startsWith("SHA256SUMS")) faults.push(`${name} is in no list`);
    let signature: Bundle["signature"] = "none", signer: string | null = null;
    if (members.has("SHA256SUMS.sig") && members.has("SHA256SUMS.pub")) {
        const pem = decode("SHA256SUMS.pub");
        signature = await signed(pem, members.get("SHA256SUMS.sig")!, members.get("SHA256SUMS")!);
        signer = await keyId(pem);
        if (signature === "no") faults.push("the signature is not that of the list of hashes");
    }
    const runs: Bundle["runs"] = [];
    const abouts = decode("runs.jsonl").split("\n").filter(Boolean).map((l) => JSON.parse(l) as BundleRun);
    for (const [i, about] of abouts.entries()) {
        progress("proving " + about.runId);
        const lines = decode(`runs/${i + 1}/events.jsonl`).split("\n").filter(Boolean), proof = await proveChain(lines);
        const headHolds = !proof.broken && proof.head === about.head;
        if (proof.broken) faults.push(`run ${about.runId}: the chain is broken at event ${proof.broken.seq}`);
        else if (!headHolds) faults.push(`run ${about.runId}: its last event is not the one that it ended with`);
        runs.push({ about, lines, proof, headHolds });
    }
    return { runs, faults, members: members.size, signature, signer };
}
