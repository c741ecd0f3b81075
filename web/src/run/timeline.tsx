// When everything was: attempts, waits between them, gates, pauses. Idle time that would hide the rest is cut out, and says how long it was.
import { signal } from "@preact/signals";
import { useMemo, useRef, useState } from "preact/hooks";
import { getJson, idOf } from "../api";
import { now, utc } from "../prefs";
import { Glyph, word } from "../states";
import type { Snapshot, Step } from "../types";
import { Empty, useAsked, Virtual } from "../ui";
import { clock, count, span } from "../words";
import { showCritical } from "./graph";
import { insideOf, isOver, lastSeen, type Member } from "./members";
import type { Entry, Item } from "./model";
import type { TabProps } from "./run";
import { critical } from "./shape";
import { reasonOf } from "./steps";

interface Piece { from: number; to: number; kind: string; title: string }
const at = (time: string | undefined) => (time ? Date.parse(time) : NaN);

export function piecesOf(item: Item, until: number, ready: number): Piece[] {
    const out: Piece[] = [], tries = item.step.attempts ?? [];
    const first = at(tries[0]?.startedAt);
    if (first - ready > 8) out.push({ from: ready, to: first, kind: "wait", title: `ready, not started: ${span(first - ready)}` });
    tries.forEach((a, i) => {
        const next = tries[i + 1], from = at(a.startedAt), end = a.endedAt ? at(a.endedAt) : next ? at(next.startedAt) : until;
        const lost = !a.endedAt && !!next; // the engine died, and the attempt was sent again
        const kind = lost ? "cancelled" : a.error ? (item.state === "cancelled" && i === tries.length - 1 ? "cancelled" : "failed") : a.endedAt ? "done" : item.state === "approval" || item.state === "event" ? item.state : item.state === "held" ? "failed" : "running";
        out.push({ from, to: Math.max(from, end), kind, title: `attempt ${a.logicalAttemptId}: ${span(end - from)}${a.error ? ", " + a.error.code : ""}${lost ? ", cut off: the engine died here" : ""}` });
        if (a.error && (next || item.state === "retrying")) out.push({ from: end, to: next ? at(next.startedAt) : item.step.dueAt ? Math.min(at(item.step.dueAt), Math.max(until, end)) : until, kind: "backoff", title: "waits for the next attempt" });
    });
    return out;
}

// When the run was paused: nothing began then.
export function pausesOf(entries: Entry[], last: number, until: number): { from: number; to: number }[] {
    const out: { from: number; to: number }[] = [];
    let from = NaN;
    for (let i = 0; i <= last && i < entries.length; i++) {
        const e = entries[i]!;
        if (/^(RUN_PAUSED|RunPaused|playbook\.paused)$/.test(e.type)) {
            if (Number.isNaN(from)) from = at(e.time);
        } else if (!Number.isNaN(from) && /^(RUN_RESUMED|RunResumed|playbook\.request\.evaluated|RunCancelled|RunFailed|RunCompleted|RUN_CANCELLED|workflow_(failed|cancelled|completed)|playbook\.(completed|failed|cancelled))$/.test(e.type)) {
            out.push({ from, to: at(e.time) });
            from = NaN;
        }
    }
    return Number.isNaN(from) ? out : [...out, { from, to: Math.max(from, until) }];
}

// Items of a loop, or runs of a list, in six lanes one below the other: each where the one before it has ended. Of a thousand, neighbours are one.
const LANES = 6, ITEMS = 2000;
interface Part { lane: number; from: number; to: number; state: string; n: number }
export function lanesOf(members: Member[], until: number): Part[] {
    const ends = new Array<number>(LANES).fill(-Infinity), out: Part[] = [], last: (Part | undefined)[] = [];
    for (const m of [...members].filter((m) => m.started).sort((a, b) => a.started.localeCompare(b.started) || a.n - b.n)) {
        const from = at(m.started), to = m.took !== null ? from + m.took : until, free = ends.findIndex((e) => e <= from), lane = free >= 0 ? free : ends.indexOf(Math.min(...ends));
        ends[lane] = Math.max(ends[lane]!, to);
        const before = last[lane];
        if (before && members.length > 300 && before.state === m.state && from - before.to < 5) { before.to = to; before.n++; }
        else out.push((last[lane] = { lane, from, to, state: m.state, n: 1 }));
    }
    return out;
}

// Time without anything in it that is longer than three times the rest is cut.
export interface Cut { from: number; to: number; width: number }
export function scale(pieces: Piece[], t0: number, t1: number): { x: (t: number) => number; cuts: Cut[]; total: number } {
    const busy = pieces.filter((p) => p.kind !== "wait" && p.kind !== "backoff" && p.kind !== "approval" && p.kind !== "event").sort((a, b) => a.from - b.from);
    const gaps: { from: number; to: number }[] = [];
    let end = t0;
    for (const p of busy) {
        if (p.from > end) gaps.push({ from: end, to: p.from });
        end = Math.max(end, p.to);
    }
    if (t1 > end) gaps.push({ from: end, to: t1 });
    const rest = t1 - t0 - gaps.reduce((n, g) => n + (g.to - g.from), 0);
    const cuts: Cut[] = [];
    for (const g of gaps) {
        const others = t1 - t0 - (g.to - g.from) - cuts.reduce((n, c) => n + (c.to - c.from) - c.width, 0);
        if (g.to - g.from > 3 * Math.max(others, rest, 200)) cuts.push({ ...g, width: Math.max(others, rest, 200) * 0.3 });
    }
    const x = (t: number) => {
        let v = Math.max(t0, Math.min(t1, t)) - t0;
        for (const c of cuts) {
            if (t >= c.to) v -= c.to - c.from - c.width;
            else if (t > c.from) v -= (t - c.from) * (1 - c.width / (c.to - c.from));
        }
        return v;
    };
    return { x, cuts, total: Math.max(1, x(t1)) };
}

// How long each step took in runs of the same plan before this one, and when it began: the middle of the last ten that completed.
const usual = signal(false);
type Habit = Map<string, { from: number; took: number; of: number }>;
async function habitOf(run: Snapshot): Promise<Habit> {
    const out: Habit = new Map(), seen = new Map<string, { from: number; took: number }[]>();
    const page = await getJson<{ items: { runId: string; total?: number }[] }>("/v1/runs?limit=11&q=" + encodeURIComponent(`plan="${run.planId ?? ""}" status=COMPLETED created<${run.startedAt ?? "now"}`));
    const before = page.items.filter((r) => r.runId !== run.runId && (r.total ?? 0) <= 2000).slice(0, 10);
    for (const other of await Promise.all(before.map((r) => getJson<Snapshot>("/v1/runs/" + idOf(r.runId))))) {
        for (const s of other.steps as Step[]) {
            const from = at(s.attempts?.[0]?.startedAt ?? s.startedAt) - at(other.startedAt), took = at(s.completedAt) - at(other.startedAt) - from;
            if (s.status === "SUCCESS" && from >= 0 && took >= 0) (seen.get(s.stepId) ?? seen.set(s.stepId, []).get(s.stepId)!).push({ from, took });
        }
    }
    const middle = (all: number[]) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)]!;
    for (const [id, all] of seen) out.set(id, { from: middle(all.map((x) => x.from)), took: middle(all.map((x) => x.took)), of: all.length });
    return out;
}

export function Timeline({ model, run, items, step, past, open }: TabProps) {
    const live = !run.completedAt && !past;
    const tick = live ? now.value : 0;
    const box = useRef<HTMLDivElement>(null);
    const [zoom, setZoom] = useState<[number, number] | null>(null); // shares of the whole
    const [drag, setDrag] = useState<[number, number] | null>(null);
    const rows = useMemo(() => {
        const ends = new Map([...items.values()].map((i) => [i.id, at(i.step.completedAt)]));
        const t0 = at(run.startedAt ?? model.entries.value[0]?.time), ins = new Map<string, string[]>();
        for (const a of model.graph.value?.arcs ?? []) (ins.get(a.to) ?? ins.set(a.to, []).get(a.to)!).push(a.from);
        const momentTime = past ? at(model.moments.value[model.momentIndex.value]?.entry.time) : NaN;
        const until = past ? momentTime : run.completedAt ? at(run.completedAt) : Math.max(tick, t0);
        const list = [...items.values()].map((item) => {
            const ready = Math.max(t0, ...(ins.get(item.id) ?? []).map((d) => ends.get(d) ?? NaN).filter((n) => !Number.isNaN(n)));
            const pieces = piecesOf(item, until, ready);
            const members = item.list?.members ?? (item.step.loop && item.step.loop.total <= ITEMS ? insideOf(model.entries.value, lastSeen(model), item.id, isOver(run.status))?.members : undefined);
            return { item, pieces, parts: members ? lanesOf(members, until) : [], first: pieces.find((p) => p.kind !== "wait")?.from ?? (item.state === "skipped" ? at(item.step.completedAt) : Infinity) };
        }).sort((a, b) => a.first - b.first);
        const all = list.flatMap((r) => r.pieces), t1 = Math.max(until, ...all.map((p) => p.to).slice(0, 50000));
        return { list, t0, t1: t1 > t0 ? t1 : t0 + 1, until, pauses: pausesOf(model.entries.value, lastSeen(model), until), ...scale(all, t0, t1 > t0 ? t1 : t0 + 1) };
    }, [items, run, past, model.momentIndex.value, model.loaded.value, Math.floor(tick / 1000)]);
    const crit = useMemo(() => (showCritical.value ? critical(model.graph.value, items) : new Set<string>()), [items, showCritical.value]);
    const habit = useAsked(async () => (usual.value ? await habitOf(run) : null), [usual.value, run.runId]);
    if (!run.startedAt || rows.list.length === 0) return <div class="pane"><Empty title="Nothing has started">The run waits. {run.message ?? ""}</Empty></div>;

    const [z0, z1] = zoom ?? [0, 1], part = z1 - z0;
    const pc = (t: number) => ((rows.x(t) / rows.total - z0) / part) * 100;
    const css = (n: number) => n.toFixed(3) + "%";
    const shownSpan = rows.total * part, wish = step || window.innerWidth < 1000 ? 6 : 11;
    const unit = [1, 2, 5, 10, 20, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 7200000, 21600000, 86400000].find((u) => shownSpan / u <= wish) ?? 86400000 * 7;
    const ticks: number[] = [];
    for (let t = Math.ceil((z0 * rows.total) / unit) * unit; t <= z1 * rows.total && ticks.length < 40; t += unit) ticks.push(t);
    const tickPc = (v: number) => ((v / rows.total - z0) / part) * 100;
    const clockPc = window.innerWidth <= 640 ? 26 : step ? 13 : 7; // what the first of them takes, which is a time of day
    const cutLeft = (c: Cut) => pc(c.from), cutWide = (c: Cut) => pc(c.to) - pc(c.from);

    const row = (i: number) => {
        const { item, pieces, parts } = rows.list[i]!, deep = Math.max(0, ...parts.map((p) => p.lane)) + 1, last = pieces.at(-1), c = crit.has(item.id) ? " crit" : "";
        const ghost = habit.value?.get(item.id);
        const label = item.state === "failed" || item.state === "held" ? ((item.step.attempts?.length ?? 0) > 1 ? item.step.attempts!.length + " attempts" : "failed") : item.state === "approval" || item.state === "event" ? "waits " + span(rows.until - at(item.step.startedAt)).replace(/m \d\ds$/, "m") : item.state === "retrying" ? "retries" : item.took !== null ? span(item.took) : "";
        const tone = item.state === "failed" || item.state === "held" ? " bad" : item.state === "approval" || item.state === "retrying" ? " warn" : "";
        const skipAt = item.state === "skipped" && item.step.completedAt ? pc(at(item.step.completedAt)) : null;
        return (
            <div class={"tlrow" + (step === item.id ? " sel" : "")} onClick={() => open(item.id)}>
                <button class="lab" data-step={item.id} title={item.id}><Glyph state={item.state} /><span class="ell" dir="auto">{item.id}</span></button>
                <div class="lane">
                    {ghost ? <i class="b ghost" title={`usually ${span(ghost.took)}: the middle of ${count(ghost.of, "run")} before`} style={{ left: css(pc(rows.t0 + ghost.from)), width: css(pc(rows.t0 + ghost.from + ghost.took) - pc(rows.t0 + ghost.from)) }} /> : null}
                    {parts.map((p, k) => { const l = pc(p.from), w = pc(p.to) - l; return l > 100 || l + w < 0 ? null : <i key={"p" + k} class={"part " + p.state} title={p.n > 1 ? count(p.n, "item") : word(p.state)} style={{ left: css(l), width: css(w), top: 17 - 2 * deep + p.lane * 4 + "px" }} />; })}
                    {(parts.length ? [] : pieces).map((p, k) => { const l = pc(p.from), w = pc(p.to) - l; return l > 100 || l + w < 0 ? null : <i key={k} class={"b " + p.kind + (p.kind === "wait" || p.kind === "backoff" ? "" : c)} title={p.kind === "event" ? `waits for ${item.step.awaitedEvent?.name ?? "an event"}: ${span(p.to - p.from)}` : p.title} style={{ left: css(Math.max(l, -1)), width: css(Math.min(w, 101 - Math.max(l, -1))) }} />; })}
                    {item.step.loop || item.list ? <span class="blab num over" style={pc(last?.to ?? rows.t0) > 72 ? { right: css(Math.max(0, 100 - pc(last?.to ?? rows.t0))) } : { left: css(pc(last?.to ?? rows.t0)) }}>{reasonOf(item)}</span> : last && label && pc(last.to) >= 0 && pc(last.to) <= 100 ? <span class={"blab num" + tone} style={{ left: css(pc(last.to)) }}>{label}</span> : null}
                    {skipAt !== null ? <><i class="mark" style={{ left: css(skipAt) }} /><span class="blab" style={skipAt > 85 ? { right: css(100 - skipAt), paddingRight: "12px" } : { left: css(skipAt), paddingLeft: "10px" }}>skipped</span></> : null}
                </div>
            </div>
        );
    };
    const shareOf = (clientX: number) => { const lane = box.current!.querySelector(".axis .lane")!.getBoundingClientRect(); return Math.max(0, Math.min(1, (clientX - lane.left) / lane.width)); };
    const wheel = (e: WheelEvent) => {
        if (!(e.metaKey || e.ctrlKey)) return;
        e.preventDefault();
        const p = z0 + shareOf(e.clientX) * part, by = Math.exp(e.deltaY / 300), w = Math.max(1e-4, Math.min(1, part * by)), from = Math.max(0, Math.min(1 - w, p - ((p - z0) / part) * w));
        setZoom(w >= 0.999 ? null : [from, from + w]);
    };
    const press = (e: PointerEvent) => {
        if (e.button || !(e.target as Element).closest(".axis .lane")) return;
        const a = shareOf(e.clientX);
        const move = (m: PointerEvent) => setDrag([Math.min(a, shareOf(m.clientX)), Math.max(a, shareOf(m.clientX))]);
        const up = (m: PointerEvent) => {
            window.removeEventListener("pointermove", move);
            const b = shareOf(m.clientX);
            setDrag(null);
            if (Math.abs(b - a) > 0.01) setZoom([z0 + Math.min(a, b) * part, z0 + Math.max(a, b) * part]);
        };
        window.addEventListener("pointermove", move);
        window.addEventListener("pointerup", up, { once: true });
    };
    return (
        <div class="pane tlpane" ref={box} onWheel={wheel} onPointerDown={press} onKeyDown={(e) => { if (e.key === "0") { setZoom(null); e.stopPropagation(); } }}>
            <div class="tl">
                <div class="tlrow axis">
                    <div class="lab"><button aria-pressed={showCritical.value} onClick={() => { showCritical.value = !showCritical.value; }}>Critical path</button><button class="usual" aria-pressed={usual.value} title="How long each step took in the last runs that completed" onClick={() => { usual.value = !usual.value; }}>Usual</button>{usual.value && habit.value?.size === 0 ? <span class="faint">no run before</span> : null}{zoom ? <button onClick={() => setZoom(null)}>All</button> : null}</div>
                    <div class="lane" title="Drag to zoom, double click for all" onDblClick={() => setZoom(null)}>
                        {ticks.map((t, i) => (rows.cuts.some((c) => t > rows.x(c.from) && t <= rows.x(c.to)) || (i > 0 && !zoom && tickPc(t) < clockPc) ? null : <span class="tick num" key={t} style={{ left: css(tickPc(t)) }}>{i === 0 && !zoom ? clock(rows.t0, utc.value).slice(0, 8) : "+" + span(timeOf(rows, t))}</span>))}
                        {drag ? <i class="drag" style={{ left: css(drag[0] * 100), width: css((drag[1] - drag[0]) * 100) }} /> : null}
                    </div>
                </div>
                <div class="tlwrap">
                    <div class="tlrow tlgrid"><div /><div class="lane">
                        {ticks.map((t) => <i class="gridl" key={t} style={{ left: css(tickPc(t)) }} />)}
                        {rows.pauses.map((p) => { const l = Math.max(0, pc(p.from)), w = Math.min(100, pc(p.to)) - l; return w <= 0 ? null : <i class="pausecol" key={p.from} title={`Paused for ${span(p.to - p.from)}`} style={{ left: css(l), width: css(w) }}><em>paused {span(p.to - p.from)}</em></i>; })}
                        {rows.cuts.map((c) => <i class="cut" key={c.from} title={`Nothing happened for ${span(c.to - c.from)}`} style={{ left: css(cutLeft(c) + cutWide(c) / 2) }}><em>{span(c.to - c.from)}</em></i>)}
                        {past ? <i class="atline" style={{ left: css(pc(rows.until)) }} /> : live ? <i class="nowline" style={{ left: css(pc(rows.until)) }} /> : null}
                    </div></div>
                    {rows.list.length > 200 ? <Virtual count={rows.list.length} estimate={34} of={rows.list} render={row} keyOf={(i) => rows.list[i]!.item.id} class="tlvirtual" /> : rows.list.map((_, i) => <div key={rows.list[i]!.item.id}>{row(i)}</div>)}
                </div>
            </div>
        </div>
    );
}
// From a place on the axis back to the time since the start.
function timeOf(rows: { cuts: Cut[]; x: (t: number) => number; t0: number }, v: number): number {
    let t = v;
    for (const c of rows.cuts) if (v >= rows.x(c.to)) t += c.to - c.from - c.width;
    return t;
}
