// What an attempt wrote: colours of the terminal as classes, never as markup; search, follow, a link to each line.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, download, idOf, Refusal, refusalOf, several } from "../api";
import { utc } from "../prefs";
import { go, place, setQuery } from "../route";
import { Glyph, type State } from "../states";
import { copy, Empty, Failure, Icon, Skeleton, trouble, Virtual } from "../ui";
import { clock, count, span, strip } from "../words";
import { insideOf, isOver, lastSeen, type Members } from "./members";
import type { Item, RunModel } from "./model";

export interface Line { at: string; stream: string; text: string }
export interface Piece { text: string; class: string }

const colours: Record<number, string> = { 30: "a30", 31: "a31", 32: "a32", 33: "a33", 34: "a34", 35: "a35", 36: "a36", 37: "a37", 90: "a2", 91: "a31", 92: "a32", 93: "a33", 94: "a34", 95: "a35", 96: "a36", 97: "a37" };
// SGR sequences become classes, all others disappear. What comes out is text.
export function ansi(text: string): Piece[] {
    const out: Piece[] = [];
    let colour = "", bold = false, dim = false, under = false;
    // eslint-disable-next-line no-control-regex
    for (const part of text.split(/(\u001b\[[0-9;?]*[ -/]*[@-~])/)) {
        // eslint-disable-next-line no-control-regex
        const sgr = /^\u001b\[([0-9;]*)m$/.exec(part);
        if (sgr) {
            const codes = (sgr[1] || "0").split(";").map(Number);
            for (let i = 0; i < codes.length; i++) {
                const c = codes[i]!;
                if (c === 0) { colour = ""; bold = dim = under = false; }
                else if (c === 1) bold = true;
                else if (c === 2) dim = true;
                else if (c === 4) under = true;
                else if (c === 22) bold = dim = false;
                else if (c === 24) under = false;
                else if (c === 39) colour = "";
                else if (c === 38 || c === 48) i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
                else if (colours[c]) colour = colours[c]!;
            }
        } else if (part && !part.startsWith("\u001b")) out.push({ text: part, class: [colour, bold ? "ab" : "", dim ? "a2" : "", under ? "au" : ""].filter(Boolean).join(" ") });
    }
    return out;
}

async function read(path: string, signal: AbortSignal, got: (lines: Line[]) => void): Promise<void> {
    const answer = await ask(path, { signal, headers: { Accept: "application/x-ndjson" } });
    if (!answer.ok) throw await refusalOf(answer);
    const reader = answer.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (value) rest += value;
        const end = rest.lastIndexOf("\n");
        if (end >= 0) {
            got(rest.slice(0, end).split("\n").filter(Boolean).map((l) => JSON.parse(l) as Line));
            rest = rest.slice(end + 1);
        }
        if (done) {
            if (rest.trim()) got([JSON.parse(rest) as Line]);
            return;
        }
    }
}

// What can be read: attempts of a step, or of the tasks of a step of a playbook, whose logs are numbered through the whole run.
interface Written { key: number; label: string; path: string; query: string; state: State; took: number | null; failed: boolean; ended: boolean }
function writtenOf(item: Item, tasks: boolean, inside: Members | null, n: number): Written[] {
    if (!tasks) return (item.step.attempts ?? []).map((a) => ({ key: a.logicalAttemptId, label: "#" + a.logicalAttemptId, path: item.id, query: "attempt=" + a.logicalAttemptId, state: a.error ? "failed" : a.endedAt ? "done" : "running", took: a.endedAt && a.startedAt ? Date.parse(a.endedAt) - Date.parse(a.startedAt) : null, failed: !!a.error, ended: !!a.endedAt }));
    return (n ? (inside?.members[n - 1]?.tries ?? []) : (inside?.tries ?? [])).map((t) => ({ key: t.serial, label: t.task + (t.logical > 1 ? " #" + t.logical : ""), path: t.path, query: `attempt=${t.serial}&engineAttempt=${t.engine}`, state: t.state, took: t.took, failed: t.state === "failed", ended: t.state !== "running" }));
}

export function Logs({ model, item, past }: { model: RunModel; item: Item; past: boolean }) {
    const entries = model.entries.value, last = lastSeen(model), over = isOver((model.shown.value ?? { status: "" }).status), tasks = item.def?.kind === "tasks", known = model.graph.value !== null || model.graphError.value !== null; // what has a log, the document says
    const inside = useMemo(() => (tasks ? insideOf(entries, last, item.id, over) : null), [tasks, entries, last, item.id, over]);
    // Of a loop, one item: the one in the address, else the first with something wrong.
    const many = inside?.members.length ?? 0, query = place.value.query, given = Number(query.get("item") ?? 0);
    const n = many ? Math.max(1, Math.min(many, given || inside!.members.find((m) => m.error || m.tries.some((t) => t.error))?.n || 1)) : 0;
    const tries = writtenOf(item, tasks, inside, n), wanted = Number(query.get("attempt") ?? 0), current = tries.find((t) => t.key === wanted) ?? tries.at(-1);
    const running = !!current && !current.ended && !past, path = current && known ? `/v1/runs/${idOf(model.id)}/steps/${several(current.path)}/logs?${current.query}` : "";
    const [lines, set] = useState<Line[] | null>(null), [error, fail] = useState<unknown>(null), [needle, find] = useState(""), [stick, follow] = useState(true), [wrap, fold] = useState(true);
    const shown = useRef(0);
    useEffect(() => {
        const stop = new AbortController();
        set(null);
        fail(null);
        let all: Line[] = [];
        if (!path) {
            set(known && (!tasks || model.loaded.peek()) ? [] : null);
            return;
        }
        read(path + (running ? "&follow=true" : ""), stop.signal, (more) => { all = [...all, ...more]; set(all); }).then(() => set(all), (e) => { if (!stop.signal.aborted) { set(all); fail(e); } });
        return () => stop.abort();
    }, [path, running, known, tasks && model.loaded.value]);
    const moment = past ? Date.parse(model.moments.value[model.momentIndex.value]?.entry.time ?? "") : Infinity;
    const visible = useMemo(() => (lines ?? []).map((l, i) => ({ ...l, n: i + 1 })).filter((l) => l.stream !== "end" && Date.parse(l.at) <= moment && (!needle || strip(l.text).toLowerCase().includes(needle.toLowerCase()))), [lines, needle, moment]);
    const end = lines?.find((l) => l.stream === "end");
    const target = /^#L(\d+)$/.exec(place.value.hash)?.[1];
    const jump = target ? visible.findIndex((l) => l.n === Number(target)) : null;
    shown.current = visible.length;
    return (
        <div class="logs">
            {many ? <label class="pick">Item <input type="number" min={1} max={many} value={n} onChange={(e) => setQuery({ item: e.currentTarget.value, attempt: null }, "replace")} /> of {many.toLocaleString("en-US")}</label> : null}
            {tries.length > 1 || (tasks && tries.length) ? (
                <div class="att" role="group" aria-label="Attempt">
                    {tries.map((t) => <button key={t.key} aria-pressed={t === current} onClick={() => setQuery({ attempt: String(t.key), item: n ? String(n) : null })}><Glyph state={t.state} />{t.label}<span class="faint num">{span(t.took)}</span></button>)}
                </div>
            ) : null}
            {error ? (error instanceof Refusal && error.status === 403 ? <Empty title="You may not read logs">{error.message}</Empty> : error instanceof Refusal && error.status === 404 ? <Empty title="This step wrote nothing">{tries.length ? "Nothing of this attempt was kept." : "It has not started."}</Empty> : <Failure error={error} />) : lines === null ? <Skeleton rows={6} height={20} /> : visible.length === 0 && !needle && !running ? (
                <Empty title={tries.length ? "This step wrote nothing" : "It has not started"}>{tries.length ? "Standard output that is its result is under Output." : ""}</Empty>
            ) : (
                <>
                    <div class="logbar">
                        <input placeholder="Search" aria-label="Search the log" value={needle} onInput={(e) => find(e.currentTarget.value)} />
                        {needle ? <span class="faint num">{count(visible.length, "line")}</span> : null}
                        <span class="grow" />
                        {running ? <button class="link" aria-pressed={stick} onClick={() => follow(!stick)}>{stick ? "Following" : "Follow"}</button> : null}
                        <button class="link" aria-pressed={wrap} onClick={() => fold(!wrap)}>Wrap</button>
                        <button class="link" onClick={() => void copy(visible.map((l) => strip(l.text)).join("\n"), "Copied " + count(visible.length, "line"))}>Copy</button>
                        <button class="link" onClick={() => void download(path, `${(current?.path ?? item.id).replace(/[^\w.\-[\]]+/g, "-")}-${current?.key ?? 0}.log`).catch(trouble)}>Download</button>
                    </div>
                    <Virtual class={"log" + (wrap ? "" : " nowrap")} role="log" label={"Log of " + item.id} count={visible.length} estimate={19} of={visible} keyOf={(i) => visible[i]!.n} stick={running && stick && shown.current > 0} showIndex={jump}
                        render={(i) => { const l = visible[i]!; return <div class={"ln" + (Number(target) === l.n ? " target" : "") + (l.stream === "stdout" ? " out" : "")} id={"L" + l.n}><span class="no" title="Link to this line" onClick={() => go(location.pathname + location.search + "#L" + l.n, "replace")}>{l.n}</span><span class="tm" title={l.at}>{clock(l.at, utc.value).slice(3, 11)}</span><span class="tx">{ansi(l.text).map((p, k) => (p.class ? <span key={k} class={p.class}>{p.text}</span> : p.text))}</span></div>; }} />
                    {end && !past ? <div class={"logend " + (current?.failed ? "failed" : "muted")}><Glyph state={current?.failed ? "failed" : "done"} /><span class="mono ell">{strip(end.text) || "ended"}</span></div> : null}
                </>
            )}
        </div>
    );
}
export { Icon };
