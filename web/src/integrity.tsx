// Integrity: the proof of a run, made here. A bundle that is dropped on the page is proved and read without any server.
import { useEffect, useState } from "preact/hooks";
import { ask, getJson, idOf, refusalOf } from "./api";
import type { Verdict } from "./fold";
import { follow } from "./live";
import { bundleOf, engine, faultWords, mayFold } from "./log";
import { canProve, type Bundle, keyId, proveBundle, proveChain, type Proof, signed } from "./proof";
import { place, setQuery } from "./route";
import { readEvent, summary } from "./run/model";
import { moved, useCommand } from "./shell";
import { Chip, Glyph, runState } from "./states";
import { Button, copy, Empty, explain, Icon, Virtual } from "./ui";
import { bytes, clock, count, short, shellWord } from "./words";

type Checkpoint = Verdict["checkpoint"] & { at: string };
interface Result { proof: Proof; head: string; server: Checkpoint; signature: "yes" | "no" | "unknown"; keyId: string; verified: boolean; faults: Verdict["faults"]; own: Verdict | string }

// Records framed as the store has them: a line about each, then its bytes.
async function records(run: string, progress: (n: number) => void): Promise<string[]> {
    const lines: string[] = [];
    for (let after = 0; ; ) {
        const answer = await ask(`/v1/store/runs/${idOf(run)}/records?limit=500&after=${after}`);
        if (!answer.ok) throw await refusalOf(answer);
        const parts = (await answer.text()).split("\n");
        let n = 0;
        for (let i = 0; i + 1 < parts.length; i += 2, n++) {
            after = (JSON.parse(parts[i]!) as { seq: number }).seq;
            lines.push(parts[i + 1]!);
        }
        progress(lines.length);
        if (n === 0) return lines;
    }
}
// Events, ledger, documents and large results, by the engine's own code. A word instead: why not.
async function ownCheck(run: string, log?: Uint8Array): Promise<Verdict | string> {
    if (!log && !mayFold()) return "not made: your role may not read the whole log";
    try {
        return await (await engine()).verify(log ?? (await bundleOf(run)), { run });
    } catch (error) {
        return "not made: " + (error as Error).message;
    }
}
const canonical = (value: unknown): string => (Array.isArray(value) ? "[" + value.map(canonical).join(",") + "]" : typeof value === "object" && value ? "{" + Object.keys(value).sort().map((k) => JSON.stringify(k) + ":" + canonical((value as Record<string, unknown>)[k])).join(",") + "}" : JSON.stringify(value));

export function Integrity() {
    const run = place.value.query.get("run") ?? "";
    const [typed, type] = useState(run), [busy, say] = useState(""), [result, got] = useState<Result | null>(null), [error, fail] = useState<unknown>(null), [over, hover] = useState(false);
    const [bundle, open] = useState<{ name: string; size: number; bundle: Bundle } | null>(null);
    useCommand(bundle ? "cairn log verify " + shellWord(bundle.name) : run ? "cairn log verify " + short(run) : "cairn log verify", "Integrity");
    useEffect(() => follow("/v1/events", Number.MAX_SAFE_INTEGER, () => { moved.value++; }), []);
    const verify = async (id: string) => {
        got(null);
        fail(null);
        say("reading the log");
        try {
            const lines = await records(id, (n) => say(`read ${count(n, "record")}`));
            const proof = await proveChain(lines, (n) => say(`${n.toLocaleString("en-US")} of ${lines.length.toLocaleString("en-US")} records hold`));
            const server = await getJson<{ checkpoint: Checkpoint; verified: boolean; faults: Verdict["faults"]; signature: string; publicKey: string; keyId: string }>(`/v1/runs/${idOf(id)}/proof`);
            say("the engine's own check");
            const own = await ownCheck(id);
            const bytes2 = Uint8Array.from(server.signature.match(/../g) ?? [], (h) => parseInt(h, 16));
            got({ proof, head: proof.head, server: server.checkpoint, signature: await signed(server.publicKey, bytes2, new TextEncoder().encode(canonical(server.checkpoint))), keyId: await keyId(server.publicKey), verified: server.verified, faults: server.faults, own });
        } catch (e) {
            fail(e);
        }
        say("");
    };
    useEffect(() => { type(run); if (run && canProve()) void verify(run); }, [run]);
    const take = async (file: File | undefined) => {
        hover(false);
        if (!file) return;
        fail(null);
        say("reading " + file.name);
        try {
            const buffer = await file.arrayBuffer(), bundle = await proveBundle(buffer, say), log = new Uint8Array(buffer);
            for (const { about } of bundle.runs) {
                say("the engine's own check of " + about.runId);
                const own = await ownCheck(about.runId, log);
                bundle.faults.push(...(typeof own === "string" ? [own] : faultWords(own.faults)).map((f) => `run ${about.runId}, the engine's own check: ${f}`));
            }
            open({ name: file.name, size: file.size, bundle });
        } catch (e) {
            open(null);
            fail(e);
        }
        say("");
    };
    const own = result && typeof result.own !== "string" ? result.own : null, same = result?.head === result?.server.head;
    // The bundle was read after the server spoke: its ledger may be longer, and is never shorter.
    const ledgerSame = own && result && (own.checkpoint.lastLedgerSeq > result.server.lastLedgerSeq || own.checkpoint.ledgerHead === result.server.ledgerHead);
    // Without the engine's check here, the events are proved and the ledger is not: the verdict speaks of no more than that.
    const whole = result && !result.proof.broken && same && (!own || (own.verified && ledgerSame));
    return (
        <div class={"page scroll drop" + (over ? " over" : "")} onDragOver={(e) => { e.preventDefault(); hover(true); }} onDragLeave={() => hover(false)} onDrop={(e) => { e.preventDefault(); void take(e.dataTransfer?.files[0]); }}>
            <div class="row wrap"><h1 class="grow">Integrity</h1><label class="btn">Open a bundle…<input class="sr" type="file" accept=".cairn,.tar" onChange={(e) => void take(e.currentTarget.files?.[0])} /></label></div>
            {bundle ? <div class="banner dim" role="status"><Icon name="defs" />A bundle, not the server: {bundle.name}, {bytes(bundle.size)}<span class="grow" /><Button small onClick={() => open(null)}>Close it</Button></div> : null}
            {!canProve() ? <div class="banner warn" role="alert"><Glyph state="retrying" />This browser hashes nothing on a page without TLS. Open it by https or as localhost, or run cairn log verify.</div> : null}
            {bundle ? <Opened bundle={bundle.bundle} /> : (
                <>
                    <form class="query" onSubmit={(e) => { e.preventDefault(); if (typed.trim() === run) void verify(run); else setQuery({ run: typed.trim() || null }); }}>
                        <Icon name="shield" /><input value={typed} placeholder="Id of a run" aria-label="Id of a run" spellcheck={false} onInput={(e) => type(e.currentTarget.value)} /><Button small kind="pri" type="submit" disabled={!typed.trim() || !canProve()}>Verify here</Button>
                    </form>
                    {busy ? <p class="muted" role="status">{busy}…</p> : null}
                    {error ? <div class="field err" role="alert"><Glyph state="failed" />{explain(error)}</div> : null}
                    {result ? (
                        <section class="card vstack" aria-label="Proof">
                            <div class="row"><Glyph state={whole ? "done" : "failed"} /><p class="verdict">{whole ? `The log of ${short(run)} is whole: your browser hashed ${count(result.proof.records, "record")}, and each names the one before it.` : result.proof.broken ? `The chain is broken at event ${result.proof.broken.seq}.` : !same ? "The chain holds, but its end is not the head that the store keeps apart." : own!.verified ? "The events hold, but the ledger ends elsewhere than the server says." : `The log is not what was written: ${faultWords(own!.faults)[0]}.`}</p></div>
                            <dl class="kv"><dt>Links</dt><dd class="num">{result.proof.links.toLocaleString("en-US")} of {Math.max(0, result.proof.records - 1).toLocaleString("en-US")} hold</dd><dt>Head, here</dt><dd class="mono">{result.head}</dd><dt>Head, server</dt><dd class="mono">{result.server.head} <span class={result.head === result.server.head ? "done" : "failed"}>{result.head === result.server.head ? "the same" : "another one"}</span></dd><dt>Signature</dt><dd>{result.signature === "yes" ? <span class="done">good, by key {result.keyId.slice(0, 16)}</span> : result.signature === "no" ? <span class="failed">not that of this checkpoint</span> : "this browser cannot check Ed25519"}</dd><dt>Engine, here</dt><dd class={own ? (own.verified ? "done" : "failed") : undefined}>{own ? (own.verified ? `${count(own.checkpoint.lastSeq, "event")} and ${count(own.checkpoint.lastLedgerSeq, "ledger entry", "ledger entries")} hold` : faultWords(own.faults).join("; ")) : String(result.own)}</dd><dt>The server says</dt><dd>{result.verified ? "whole" : faultWords(result.faults).join("; ")}</dd></dl>
                            {result.proof.broken ? <div class="diff2"><div><h3>The record before, whose hash is</h3><code class="mono">{result.proof.broken.expected}</code><pre class="text">{result.proof.broken.before}</pre></div><div><h3>The record after, which names</h3><code class="mono">{result.proof.broken.found}</code><pre class="text">{result.proof.broken.after}</pre></div></div> : null}
                            <div class="row wrap"><a class="btn sm" href={"/runs/" + idOf(run) + "/events"}>Its events</a><Button small onClick={() => void copy(result.head, "Copied the head")}>Copy the head</Button></div>
                        </section>
                    ) : busy || error ? null : <Empty title="Verify a run, or drop a bundle here" command="cairn log export RUN --out run.cairn">Everything is computed in your browser. A bundle (.cairn) is opened and proved without a server behind it.</Empty>}
                </>
            )}
        </div>
    );
}

function Opened({ bundle }: { bundle: Bundle }) {
    const [at, pick] = useState(0), [open, show] = useState<number | null>(null), run = bundle.runs[at];
    const good = bundle.faults.length === 0;
    const lines = run?.lines ?? [], entries = lines.map((l, i) => readEvent(l.startsWith('{"record":') ? JSON.stringify((JSON.parse(l) as { record: unknown }).record) : l, i + 1));
    return (
        <>
            <section class="card vstack" aria-label="Proof of the bundle">
                <div class="row"><Glyph state={good ? "done" : "failed"} /><p class="verdict">{good ? `${count(bundle.runs.length, "run")}, ${count(bundle.runs.reduce((n, r) => n + r.lines.length, 0), "event")}: intact${bundle.signature === "yes" ? `, signed by ${bundle.signer!.slice(0, 16)}` : bundle.signature === "none" ? ", not signed" : ""}.` : `${count(bundle.faults.length, "fault")}: this bundle is not what was written.`}</p></div>
                {bundle.faults.map((f) => <div class="field err" key={f}><Glyph state="failed" />{f}</div>)}
            </section>
            <div class="row wrap">{bundle.runs.map((r, i) => <button key={r.about.runId} class="btn" aria-pressed={i === at} onClick={() => { pick(i); show(null); }}>{r.about.planId} <span class="mono faint">{short(r.about.runId)}</span></button>)}</div>
            {run ? <div class="row"><Chip state={runState({ status: run.about.status })} /><b>{run.about.planId}</b><span class="mono faint">{run.about.runId}</span><span class={run.headHolds ? "done" : "failed"}>{run.headHolds ? "✓" : "✗"} chain of {count(run.lines.length, "record")}</span></div> : null}
            <div class="bundle-log">
                <Virtual role="treegrid" label="Events of the bundle" count={entries.length} estimate={33} render={(i) => { const e = entries[i]!; return <><div class="evt" role="row" aria-level={1} aria-expanded={open === i} tabIndex={0} onClick={() => show(open === i ? null : i)} onKeyDown={(k) => { if (k.key === "Enter") show(open === i ? null : i); }}><span role="gridcell" class="mono num">{e.seq}</span><span role="gridcell" class="mono c-t">{clock(e.time)}</span><span role="gridcell" class="c-d" /><span role="gridcell" class="ty ell"><Glyph state={e.state} /><span class="ell">{e.type}</span></span><span role="gridcell" class="ell muted">{e.step}</span><span role="gridcell" class="ell muted mono c-sum">{summary(e)}</span><span role="gridcell" class="hash" /></div>{open === i ? <div class="raw" role="row" aria-level={2}><div role="gridcell"><pre tabIndex={0}>{JSON.stringify(JSON.parse(e.raw), null, 2)}</pre></div></div> : null}</>; }} />
            </div>
        </>
    );
}
