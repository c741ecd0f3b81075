// Runs: the list that lives and never moves under the pointer.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, nameOf, Refusal } from "./api";
import { bulk } from "./acts";
import { follow, resyncs } from "./live";
import { viewKeys } from "./palette";
import { now, views } from "./prefs";
import { needsPerson } from "./redacted";
import { go, place, setQuery } from "./route";
import { moved, useCommand } from "./shell";
import { Glyph, rowState, runSub, type State, tones, word } from "./states";
import type { HeadlinePart, RunRow } from "./types";
import { Bar, Button, Empty, explain, Failure, Icon, Seg, Since, Skeleton, Time, toast } from "./ui";
import { count, left, sha7, shellWord, short, strip } from "./words";

// Counts are queries, so that they mean on the page what they mean to `cairn ls`.
const groups = [
    ["all", "All", undefined, ""],
    ["need", "Needs you", "approval", ""],
    ["running", "Running", "running", ""],
    ["failed", "Failed", "failed", "status=FAILED"],
    ["paused", "Paused", "paused", "status=PAUSED"],
    ["done", "Completed", "done", "status=COMPLETED"],
    ["cancelled", "Cancelled", "cancelled", "status=CANCELLED"],
] as const;
const queryOf = (key: Group): string => (key === "need" ? `status=active (${needsPerson()})` : key === "running" ? `status=RUNNING not (${needsPerson()})` : groups.find((g) => g[0] === key)?.[3] ?? "");
type Group = (typeof groups)[number][0];
const PAGE = 60;

// A quoted text or parentheses may hold blanks: chips are the parts side by side.
export function parts(query: string): string[] {
    const out: string[] = [];
    let quote = "", depth = 0, word = "";
    for (const c of query) {
        if (quote) { if (c === quote) quote = ""; }
        else if (c === '"' || c === "'") quote = c;
        else if (c === "(") depth++;
        else if (c === ")") depth--;
        if (/\s/.test(c) && !quote && depth <= 0) {
            if (word) out.push(word);
            word = "";
        } else word += c;
    }
    if (word) out.push(word);
    return out;
}
const joined = (a: string, b: string) => (a && b ? `(${a}) (${b})` : a || b);

// What is going on, in one sentence: the server's parts, with times as the page writes them. A row that is fine has none.
const verbs: Partial<Record<State, [string, string]>> = { running: ["runs", "run"], approval: ["waits for a person", "wait for a person"], event: ["waits for an event", "wait for an event"], held: ["failed and waits for you", "failed and wait for you"], failed: ["failed", "failed"] };
function phrase(p: HeadlinePart): string {
    const who = p.step + (p.count ? ` and ${count(p.count - 1, "more", "more")}` : ""), many = (p.count ?? 1) > 1, ms = p.due ? Date.parse(p.due) - now.value : 0;
    if (p.state === "retrying") return `${who} ${many ? "retry" : "retries"}${ms > 0 ? " in " + left(ms) : ""}${p.attempt && p.attempts ? `, attempt ${p.attempt + 1} of ${p.attempts}` : ""}`;
    const [one, more] = verbs[p.state as State] ?? [p.state, p.state];
    return `${who} ${many ? more : one}${(p.state === "approval" || p.state === "event") && ms > 0 ? `, ${left(ms)} left` : ""}`;
}
export function sentence(row: RunRow): [string, string] {
    const state = rowState(row), tone = { bad: "bad", warn: "warn", done: "", running: "", dim: "" }[tones[state]], head = row.headline;
    if (!head) return ["", ""];
    const detail = strip(head.detail), own = head.state as State;
    if (own === "cancelled" || own === "paused") return [own === "paused" ? "warn" : "", [head.by ? "by " + nameOf(head.by) : "", detail].filter(Boolean).join(": ") || head.text];
    if (own === "failed" && head.parts[0]) return ["bad", `${head.parts[0].step}: ${detail || head.parts[0].code || "failed"}`];
    if (own === "held" && head.parts[0]) return ["bad", phrase(head.parts[0]) + (detail ? ": " + detail : "")];
    if (own === "running" || own === "event") return ["", head.parts.map(phrase).join(" · ") || head.text];
    if (head.parts.length && own !== "done") return [tone, [...head.parts].sort((a, b) => Number(b.state === "running") - Number(a.state === "running")).map(phrase).join(" · ")];
    return [own === "done" ? "" : tone, head.text + (detail ? ": " + detail : "")];
}

const rows = signal<RunRow[] | null>(null);
const next = signal<string | null>(null);
const failure = signal<unknown>(null);
const counts = signal<Partial<Record<Group, string>>>({});
const fresh = signal<RunRow[]>([]); // rows that are newer than the list: they wait in the pill
const chosen = signal<Set<string>>(new Set());
const selected = signal(0);

let reading = 0;
async function load(query: string): Promise<void> {
    const mine = ++reading;
    try {
        const page = await ask(query, null);
        if (mine !== reading) return;
        rows.value = page.items;
        next.value = page.nextCursor ?? null;
        failure.value = null;
        fresh.value = [];
        void more(query, mine);
    } catch (error) {
        if (mine === reading) failure.value = error;
    }
}
const ask = (query: string, cursor: string | null, limit = PAGE) =>
    getJson<{ items: RunRow[]; nextCursor?: string | null }>(`/v1/runs?limit=${limit}` + (query ? "&q=" + encodeURIComponent(query) : "") + (cursor ? "&cursor=" + encodeURIComponent(cursor) : ""));
// A page of a rare query may be short though there are more: it is filled up before anyone scrolls.
async function more(query: string, mine = reading): Promise<void> {
    let found = 0;
    while (next.value && found < PAGE && mine === reading && (rows.value?.length ?? 0) < PAGE) {
        const page = await ask(query, next.value);
        if (mine !== reading) return;
        found += page.items.length;
        rows.value = [...(rows.value ?? []), ...page.items];
        next.value = page.nextCursor ?? null;
    }
}
async function further(query: string): Promise<void> {
    const mine = reading, cursor = next.value;
    if (!cursor) return;
    next.value = null;
    const page = await ask(query, cursor);
    if (mine !== reading) return;
    const known = new Set(rows.value?.map((r) => r.runId));
    rows.value = [...(rows.value ?? []), ...page.items.filter((r) => !known.has(r.runId))];
    next.value = page.nextCursor ?? null;
}
async function recount(own: string): Promise<void> {
    await Promise.all(groups.map(async ([key]) => {
        const q = joined(own, queryOf(key));
        try {
            const page = await getJson<{ total?: number; totalIs?: string }>("/v1/runs?limit=1&fields=runId&count=estimate" + (q ? "&q=" + encodeURIComponent(q) : ""));
            const text = page.total === undefined ? "" : page.total.toLocaleString("en-US") + (page.totalIs === "atLeast" ? "+" : "");
            if (counts.value[key] !== text) counts.value = { ...counts.value, [key]: text };
        } catch { /* the list itself says what is wrong */ }
    }));
}

// Rows on the screen that have moved are read again in one request; runs that are not there wait in the pill.
async function refresh(query: string, ids: Set<string>): Promise<void> {
    const list = rows.value;
    if (!list || ids.size === 0) return;
    const here = list.filter((r) => ids.has(r.runId)).map((r) => r.runId).slice(0, 100);
    if (here.length) {
        const page = await getJson<{ items: RunRow[] }>("/v1/runs?limit=100&q=" + encodeURIComponent("run=" + here.map((id) => '"' + id + '"').join(",")));
        const by = new Map(page.items.map((r) => [r.runId, r]));
        rows.value = (rows.value ?? []).map((r) => by.get(r.runId) ?? r);
    }
    const known = new Set((rows.value ?? []).map((r) => r.runId));
    if ([...ids].some((id) => !known.has(id))) {
        const page = await ask(query, null, 30);
        fresh.value = page.items.filter((r) => !known.has(r.runId));
    }
}

const runOf = (data: string) => /"(?:runId|run_id|execution_id)":"((?:[^"\\]|\\.)*)"/.exec(data)?.[1];

export function Runs() {
    const own = place.value.query.get("q") ?? "", group = (place.value.query.get("show") ?? "all") as Group;
    const query = joined(own, queryOf(group));
    const [typed, type] = useState("");
    const list = useRef<HTMLDivElement>(null);
    const field = useRef<HTMLInputElement>(null);
    const cli = "cairn ls" + (query ? " " + shellWord(query) : "");
    useCommand(cli, "Runs");
    useEffect(() => {
        selected.value = 0;
        chosen.value = new Set();
        void load(query).then(() => { if (!failure.value) void recount(own); });
    }, [query, resyncs.value]);
    useEffect(() => {
        const dirty = new Set<string>();
        let timer = 0, counted = 0;
        const flush = async () => {
            timer = 0;
            const ids = new Set(dirty);
            dirty.clear();
            moved.value++;
            await refresh(query, ids).catch(() => {});
            if (Date.now() - counted > 3000) {
                counted = Date.now();
                await recount(own);
            } else if (!timer) timer = window.setTimeout(() => void flush(), 3000);
        };
        const stop = follow("/v1/events", Number.MAX_SAFE_INTEGER, (event) => {
            const run = runOf(event.data);
            if (run) dirty.add(run);
            if (!timer) timer = window.setTimeout(() => void flush(), 400);
        });
        return () => { stop(); clearTimeout(timer); };
    }, [query]);

    const shown = rows.value ?? [];
    const at = Math.min(selected.value, Math.max(0, shown.length - 1));
    const focusRow = (i: number) => {
        selected.value = i;
        const el = list.current?.querySelectorAll<HTMLElement>("[data-row]")[i];
        el?.focus();
        el?.scrollIntoView({ block: "nearest" });
    };
    const toggle = (id: string) => {
        const now = new Set(chosen.value);
        now.has(id) ? now.delete(id) : now.add(id);
        chosen.value = now;
    };
    useEffect(() => {
        viewKeys.value = (e) => {
            const shown = rows.value ?? [], at = Math.min(selected.value, Math.max(0, shown.length - 1)); // as they are now: keys may come faster than the list is drawn
            if (e.key === "j" || (e.key === "ArrowDown" && (e.target as Element).closest?.(".table"))) focusRow(Math.min(at + 1, shown.length - 1));
            else if (e.key === "k" || (e.key === "ArrowUp" && (e.target as Element).closest?.(".table"))) focusRow(Math.max(0, at - 1));
            else if (e.key === "x" && shown[at]) toggle(shown[at]!.runId);
            else if (e.key === "Enter" && !(e.target as Element).closest?.("button, a, input") && shown[at]) go("/runs/" + encodeURIComponent(shown[at]!.runId));
            else if (e.key === "Escape" && chosen.value.size) chosen.value = new Set();
            else return false;
            return true;
        };
        return () => { viewKeys.value = null; };
    }, []);

    const chips = parts(own);
    const setOwn = (q: string) => setQuery({ q: q.trim() || null });
    const add = () => { if (typed.trim()) setOwn([own, typed.trim()].filter(Boolean).join(" ")); type(""); };
    const picked = shown.filter((r) => chosen.value.has(r.runId));
    const bad = failure.value instanceof Refusal && failure.value.status === 400 ? failure.value : null;

    return (
        <div class="page">
            <div class="row"><h1 class="grow">Runs</h1><Button kind="pri" onClick={() => go("/definitions?new")}>Start a run</Button></div>
            <Seg label="State" value={group} items={groups.map(([k, t, s]) => [k, t, s as State | undefined, counts.value[k] ?? null])} onPick={(k) => setQuery({ show: k === "all" ? null : k })} />
            {picked.length ? (
                <div class="query bulk" role="toolbar" aria-label="Selected runs">
                    <b>{count(picked.length, "run")}</b>
                    <Button small onClick={() => bulk("RETRY_RUN", picked)}>Retry…</Button>
                    <Button small onClick={() => bulk("CANCEL", picked)}>Cancel…</Button>
                    <Button small onClick={() => bulk("PAUSE", picked)}>Pause…</Button>
                    <Button small onClick={() => bulk("RESUME", picked)}>Resume…</Button>
                    <span class="grow" />
                    <Button small kind="plain" onClick={() => { chosen.value = new Set(); }}>Clear</Button>
                </div>
            ) : (
                <div>
                    <form class={"query" + (bad ? " bad" : "")} role="search" onSubmit={(e) => { e.preventDefault(); add(); }}>
                        <Icon name="find" />
                        {chips.map((c, i) => <span class="qchip mono" key={c + i}>{c}<button type="button" aria-label={"Remove " + c} onClick={() => setOwn(chips.filter((_, k) => k !== i).join(" "))}><Icon name="x" /></button></span>)}
                        <input id="q" ref={field} value={typed} placeholder={chips.length ? "" : "status=FAILED plan~orders started>2h"} aria-label="Query" spellcheck={false} autocomplete="off" onInput={(e) => type(e.currentTarget.value)} onBlur={add}
                            onKeyDown={(e) => { if (e.key === "Backspace" && !typed && chips.length) { e.preventDefault(); type(chips.at(-1)!); setOwn(chips.slice(0, -1).join(" ")); } }} />
                        {own && !views.value.some((v) => v.q === own) ? <button type="button" class="save" title="Keep this query as a view" onClick={() => { views.value = [...views.value, { name: own, q: own }]; toast("Kept as a view in this browser"); }}><Icon name="star" /> Save view</button> : null}
                        {views.value.map((v) => (
                            <span class={"view" + (v.q === own ? " on" : "")} key={v.q}>
                                <button type="button" onClick={() => setOwn(v.q)} title={v.q}>{v.name}</button>
                                {v.q === own ? <button type="button" aria-label={"Forget the view " + v.name} onClick={() => { const before = views.value; views.value = before.filter((o) => o !== v); toast("The view is gone", () => { views.value = before; }); }}><Icon name="x" /></button> : null}
                            </span>
                        ))}
                        <kbd>/</kbd>
                    </form>
                    {bad ? <div class="field err" role="alert"><Glyph state="failed" />{explain(bad)}</div> : null}
                </div>
            )}
            {fresh.value.length ? <button class="pill" onClick={() => void load(query)}>{count(fresh.value.length, "new run")}</button> : null}
            <div class="table" role="grid" aria-label="Runs" ref={list} onScroll={(e) => { const t = e.currentTarget; if (t.scrollHeight - t.scrollTop - t.clientHeight < 800) void further(query); }}>
                <div class="runrow head" role="row">
                    <span role="columnheader">State</span><span role="columnheader">Run</span><span role="columnheader">What is going on</span><span role="columnheader" class="c-steps">Steps</span><span role="columnheader" class="r">Started</span><span role="columnheader" class="r">Took</span>
                </div>
                {rows.value === null && !failure.value ? <Skeleton /> : null}
                {failure.value && !bad ? <Failure error={failure.value} again={() => void load(query)} /> : null}
                {shown.map((r, i) => <Row row={r} key={r.runId} tab={i === at} on={chosen.value.has(r.runId)} pick={() => toggle(r.runId)} focus={() => { selected.value = i; }} />)}
                {rows.value && shown.length === 0 && !next.value ? (
                    query ? <Empty title="No run matches"><button class="link" onClick={() => go("/runs")}>Clear the query</button></Empty> : <Empty title="No runs yet" command="cairn run hello.yaml">Start one here, or from a terminal:</Empty>
                ) : null}
            </div>
        </div>
    );
}

function Row({ row, tab, on, pick, focus }: { row: RunRow; tab: boolean; on: boolean; pick: () => void; focus: () => void }) {
    const state = rowState(row), sub = runSub(row), [tone, text] = sentence(row);
    const ended = (row.completed ?? 0) + (row.failed ?? 0) + (row.skipped ?? 0), url = "/runs/" + encodeURIComponent(row.runId);
    return (
        <div class={"runrow" + (on ? " on" : "")} role="row" data-row={row.runId} tabIndex={tab ? 0 : -1} aria-selected={on} onFocus={focus} onClick={(e) => { if (!(e.target as Element).closest("a, input")) go(url); }}>
            <span role="gridcell" class={"st c-st " + state}>
                <span class="tick-box"><Glyph state={state} /><input type="checkbox" checked={on} aria-label={"Select " + row.planId + " " + short(row.runId)} tabIndex={-1} onChange={pick} /></span>
                <span class="ell">{word(state)}{sub ? <span class="faint mono"> · {sub}</span> : null}</span>
            </span>
            <span role="gridcell" class="c-nm">
                <a class="nm ell" href={url} tabIndex={-1} dir="auto">{row.planId}</a>
                <span class="mono faint ell">{short(row.runId)} @{sha7(row.planVersion)}</span>
            </span>
            <span role="gridcell" class={"ell c-now now " + tone} title={text} dir="auto">{text}</span>
            <span role="gridcell" class="steps c-steps num">
                <Bar done={row.completed ?? 0} failed={row.failed ?? 0} running={row.running ?? 0} skipped={row.skipped ?? 0} total={row.total ?? 0} />
                <span>{ended} of {row.total ?? 0}{row.failed ? <span class="failed"> · {row.failed} failed</span> : row.skipped ? ` · ${row.skipped} skipped` : ""}</span>
            </span>
            <span role="gridcell" class="r muted c-age"><Time at={row.startedAt ?? row.createdAt} /></span>
            <span role="gridcell" class="r num c-took"><Since from={row.startedAt} to={row.endedAt} /></span>
        </div>
    );
}
