// The graph: every step with its state, every way and whether it was gone. The tree beside it says the same to those who do not see it.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import workerUrl from "worker:./layout.worker.ts";
import { viewKeys } from "../palette";
import { isDark } from "../prefs";
import { scriptUrl } from "../trusted";
import { emphasis, Glyph, type State, word } from "../states";
import { Empty, Skeleton } from "../ui";
import { clock, count, oneLine, span, strip } from "../words";
import type { Answer, Ask } from "./layout.worker";
import type { Item } from "./model";
import type { GraphProps } from "./run";
import { critical, type Edge, type Node, type Shape, shapeOf } from "./shape";
import { Tree } from "./steps";

export const showCritical = signal(false);
const asTree = signal(false), only = signal<"all" | "failed" | "running" | "near">("all"), whole = signal(false), wanted = signal("");

let worker: Worker | null = null, turn = 0;
const waiting = new Map<number, (a: Answer) => void>();
// Begins to load while the run is read.
export function warm(): Worker {
    if (!worker) {
        worker = new Worker(scriptUrl(workerUrl) as string, { type: "module" });
        worker.onmessage = (e: MessageEvent<Answer>) => { waiting.get(e.data.id)?.(e.data); waiting.delete(e.data.id); };
    }
    return worker;
}
function layout(ask: Omit<Ask, "id">): Promise<Answer> {
    const id = ++turn;
    return new Promise((done) => { waiting.set(id, done); warm().postMessage({ ...ask, id }); });
}

const reasons: Record<string, string> = { condition_false: "condition is false", when: "condition is false", trigger_rule: "rule does not pass", dependency_failed: "dependency failed", operator_skip: "skipped by a person", OPERATOR_SKIP: "skipped by a person", CONDITION_FALSE: "condition is false", TRIGGER_RULE: "rule does not pass", DEPENDENCY_FAILED: "dependency failed" };
// The one fact that a box has room for.
export function fact(item: Item): string {
    const s = item.step;
    switch (item.state) {
        case "failed": case "held": return [span(item.took), s.error?.exitCode != null ? "exit " + s.error.exitCode : s.error?.code].filter(Boolean).join(" · ");
        case "retrying": return s.dueAt ? "next at " + clock(s.dueAt).slice(0, 8) : "retrying";
        case "approval": return "waits for a person";
        case "event": return "waits for " + (s.awaitedEvent?.name ?? "an event");
        case "skipped": return reasons[s.skipReason ?? ""] ?? s.skipReason ?? "skipped";
        case "running": return s.childRunId ? "runs " + s.childRunId.slice(0, 8) : "running";
        case "not_run": return "never reached";
        case "cancelled": return "stopped";
        case "waiting": return "waiting";
        case "reused": return "taken over";
        default: return span(item.took) + (item.kind === "approval" ? " · answered" : "");
    }
}

const letter: Partial<Record<State, string>> = { done: "d", reused: "d", running: "r", event: "r", retrying: "w", approval: "w", failed: "f", held: "f", skipped: "s", cancelled: "w" };
// Up to sixty: a cell each. More: parts of a bar.
function Cells({ states }: { states: State[] }) {
    if (states.length <= 60) return <div class="cells">{states.map((s, i) => <i key={i} class={letter[s] ?? ""} />)}</div>;
    const by = new Map<string, number>();
    for (const s of states) by.set(letter[s] ?? "", (by.get(letter[s] ?? "") ?? 0) + 1);
    return <div class="cells">{["d", "f", "r", "w", "s", ""].filter((k) => by.get(k)).map((k) => <i key={k} class={k} style={{ flex: by.get(k) }} />)}</div>;
}
function inner(node: Node): { states: State[]; done: number; total: number; what: string } {
    const first = node.items[0]!;
    if (node.items.length > 1) return { states: node.items.map((i) => i.state), done: node.items.filter((i) => ["done", "reused", "failed", "skipped"].includes(i.state)).length, total: node.items.length, what: "steps" };
    const loop = first.step.loop, list = first.list;
    if (list) return { states: list.members.map((m) => m.state), done: list.members.filter((m) => ["done", "failed", "cancelled"].includes(m.state)).length, total: list.total, what: "runs" };
    if (loop) return { states: Array.from({ length: loop.total }, (_, i): State => (i < loop.done ? "done" : i < loop.done + loop.failed ? "failed" : i < loop.started ? "running" : "waiting")), done: loop.done + loop.failed, total: loop.total, what: "items" };
    const rounds = new Map<string, State[]>();
    for (const c of first.children) {
        const round = /\[(\d+)\]\.[^[\]]+$/.exec(c.id)?.[1] ?? "";
        (rounds.get(round) ?? rounds.set(round, []).get(round)!).push(c.state);
    }
    const states = [...rounds.values()].map((r): State => (r.includes("failed") ? "failed" : r.every((s) => s === "done" || s === "skipped") ? "done" : "running"));
    return { states, done: states.filter((s) => s === "done").length, total: states.length, what: states.length === 1 ? "round" : "rounds" };
}

export function GraphTab(props: GraphProps & { drawn?: () => void }) {
    const { model, items, step, run, open } = props;
    const graph = model.graph.value, narrow = window.innerWidth <= 640;
    const shape = useMemo(() => (graph || model.graphError.value !== null ? shapeOf(graph, items, whole.value) : { nodes: [], edges: [], of: new Map<string, string>() }), [graph, items, whole.value, model.graphError.value]);
    // The layout hangs on the document alone: states change colours, never places.
    const key = shape.nodes.map((n) => n.id).join("\n") + shape.edges.length + narrow;
    const [laid, place] = useState<{ key: string; answer: Answer } | null>(null);
    const compact = shape.nodes.length > 16, labels = shape.edges.some((e) => e.when);
    const W = compact ? 140 : narrow ? 150 : 178, H = compact ? 34 : 52;
    // Without the ways between them steps have no places: the document is waited for, or its error.
    const known = !!graph || model.graphError.value !== null;
    useEffect(() => {
        if (!known) return;
        let mine = true;
        void layout({
            nodes: shape.nodes.map((n) => ({ id: n.id, w: W, h: n.stack && compact ? 44 : H })), down: narrow, gapX: narrow ? 34 : labels ? 40 : compact ? 28 : 38, gapY: compact ? 12 : 22,
            edges: shape.edges.filter((e) => !e.back).map((e) => ({ from: e.from, to: e.to, label: e.when && !narrow ? 110 : 0 })),
        }).then((answer) => { if (mine) place({ key, answer }); });
        return () => { mine = false; };
    }, [key, known]);
    const last = useRef<string | null>(null);
    useEffect(() => () => { wanted.value = ""; }, [model]);
    useEffect(() => { if (laid || asTree.value) props.drawn?.(); }, [laid, asTree.value]);
    const failures = [...items.values()].filter((i) => i.state === "failed" || i.state === "held").length;
    const found = (n: Node) => n.items.some((i) => i.id.toLowerCase().includes(wanted.value.trim().toLowerCase()));
    // Enter goes from one to the next, in the order of the document.
    const toNext = () => {
        const all = shape.nodes.filter(found), here = all.findIndex((n) => n.id === last.current), next = all[(here + 1) % Math.max(1, all.length)];
        if (!next) return;
        last.current = next.id;
        props.open(next.items.find((i) => i.id.toLowerCase().includes(wanted.value.trim().toLowerCase()))?.id ?? next.items[0]!.id);
    };
    const tools = (
        <div class="tools">
            {items.size > 8 && !asTree.value ? <div class="grp"><input id="find-step" class="find-step" type="search" aria-label="Find a step" placeholder="Find a step" spellcheck={false} value={wanted.value} onInput={(e) => { wanted.value = e.currentTarget.value; last.current = null; }} onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); toNext(); } else if (e.key === "Escape") wanted.value = ""; }} /></div> : null}
            {shape.nodes.length > 12 ? (
                <div class="grp">
                    <label class="sr" for="show-only">Show</label>
                    <select id="show-only" value={only.value} onChange={(e) => { only.value = e.currentTarget.value as typeof only.value; }}>
                        <option value="all">All steps</option><option value="failed">Only failed{failures ? ` (${failures})` : ""}</option><option value="running">Only running</option><option value="near">Neighbours of the step</option>
                    </select>
                </div>
            ) : null}
            {items.size > 12 && items.size <= 4000 && (whole.value || shape.nodes.some((n) => n.items.length > 1)) ? <div class="grp"><button aria-pressed={!whole.value} onClick={() => { whole.value = !whole.value; }}>Stack</button></div> : null}
            <div class="grp"><button aria-pressed={asTree.value} onClick={() => { asTree.value = !asTree.value; }}>Tree</button></div>
            <div class="grp"><button aria-pressed={showCritical.value} onClick={() => { showCritical.value = !showCritical.value; }}>Critical path</button></div>
            {asTree.value ? null : <div class="grp" id="zoom"><button aria-label="Zoom out">−</button><button aria-label="Fit the graph">Fit</button><button aria-label="Zoom in">+</button></div>}
        </div>
    );
    if (items.size === 0) return <div class="pane"><Empty title="Nothing has started">The run waits. {strip(run.message)}</Empty></div>;
    if (asTree.value) return <div class="pane">{tools}<Tree {...props} /></div>;
    return (
        <div class="pane">
            {model.graphError.value ? <div class="banner warn">The document of this run cannot be read: {model.graphError.value}. Steps are those of the log.</div> : null}
            {known && laid && (laid.key === key || laid.answer.nodes.length === shape.nodes.length) ? <Picture shape={shape} laid={laid.answer} W={W} H={H} compact={compact} down={narrow} props={props} tools={tools} step={step} open={open} /> : <Skeleton rows={3} height={80} />}
        </div>
    );
}

interface View { x: number; y: number; k: number }
function Picture({ shape, laid, W, H, compact, down, props, tools, step, open }: { shape: Shape; laid: Answer; W: number; H: number; compact: boolean; down: boolean; props: GraphProps; tools: preact.ComponentChildren; step: string | null; open: GraphProps["open"] }) {
    const { model, items } = props;
    const box = useRef<HTMLDivElement>(null), world = useRef<HTMLDivElement>(null), frame = useRef<HTMLDivElement>(null), view = useRef<View>({ x: 0, y: 0, k: 1 });
    const small = Math.min(MINI_W / Math.max(1, laid.w), MINI_H / Math.max(1, laid.h)); // of the map
    const places = useMemo(() => new Map(laid.nodes.map(([id, x, y]) => [id, [x, y] as const])), [laid]);
    const [far, setFar] = useState(false);
    const crit = useMemo(() => (showCritical.value ? critical(model.graph.value, items) : new Set<string>()), [items, showCritical.value]);
    const selected = step ? (shape.of.get(step.replace(/\[\d+\]\..*$/, "")) ?? null) : null;
    const apply = () => {
        const v = view.current;
        if (world.current) world.current.style.transform = `translate(${v.x}px,${v.y}px) scale(${v.k})`;
        setFar(v.k < 0.4);
        const el = box.current, f = frame.current;
        if (!el || !f) return;
        // Nothing is out of sight: no map is needed.
        const l = -v.x / v.k, t = -v.y / v.k, w = el.clientWidth / v.k, h = el.clientHeight / v.k;
        f.parentElement!.hidden = el.clientWidth < 480 || shape.nodes.length < 6 || l <= 0 && t <= 0 && l + w >= laid.w && t + h >= laid.h;
        const x = Math.max(0, l), y = Math.max(0, t);
        Object.assign(f.style, { left: x * small + "px", top: y * small + "px", width: Math.max(6, (Math.min(laid.w, l + w) - x) * small) + "px", height: Math.max(6, (Math.min(laid.h, t + h) - y) * small) + "px" });
    };
    const goTo = (x: number, y: number) => {
        const v = view.current, el = box.current!;
        v.x = el.clientWidth / 2 - x * v.k;
        v.y = el.clientHeight / 2 - y * v.k;
        apply();
    };
    const fit = () => {
        const el = box.current;
        if (!el || !el.clientWidth) return;
        const bw = el.clientWidth, bh = el.clientHeight, w = Math.max(1, laid.w), h = Math.max(1, laid.h);
        // Far below the least, names cannot be read: a picture that is much too large is shown in part, and then in a good size.
        const least = down ? 0.6 : compact ? 0.58 : 0.62;
        const whole = Math.min(1.15, (bw - (down ? 24 : 64)) / w, (bh - 96) / h);
        const k = whole > least * 0.85 ? whole : whole < least / 2 ? 0.9 : least; // a little smaller than it reads best, rather than with its last step cut
        view.current = { k, x: Math.max(12, (bw - w * k) / 2), y: Math.max(16, (bh - h * k) / 2 - 4) };
        keepInView(selected ?? (w * k > bw || h * k > bh ? begin() : null));
        apply();
    };
    // Where a picture begins that does not fit: at what failed, else at what goes on, else at its start.
    const begin = () => {
        const found = emphasis.slice(0, emphasis.indexOf("running") + 1).map((s) => shape.nodes.find((n) => n.state === s)).find(Boolean);
        return (found ?? shape.nodes[0])?.id ?? null;
    };
    const keepInView = (id: string | null) => {
        const el = box.current, p = id ? places.get(id) : undefined, v = view.current;
        if (!el || !p) return;
        const x = v.x + p[0] * v.k, y = v.y + p[1] * v.k, mx = (W / 2) * v.k + 12, my = (H / 2) * v.k + 48;
        if (x < mx || x > el.clientWidth - mx) v.x += el.clientWidth / 2 - x;
        if (y < my || y > el.clientHeight - my) v.y += el.clientHeight / 2 - y;
    };
    const zoom = (by: number, cx = (box.current?.clientWidth ?? 0) / 2, cy = (box.current?.clientHeight ?? 0) / 2) => {
        const v = view.current, k = Math.max(0.08, Math.min(2, v.k * by));
        view.current = { k, x: cx - ((cx - v.x) * k) / v.k, y: cy - ((cy - v.y) * k) / v.k };
        apply();
    };
    useLayoutEffect(fit, [laid]);
    useLayoutEffect(() => { if (selected) keepInView(selected); apply(); }, [selected]);
    useEffect(() => {
        const el = box.current!, buttons = document.querySelectorAll("#zoom button");
        const acts = [() => zoom(0.8), fit, () => zoom(1.25)];
        buttons.forEach((b, i) => { (b as HTMLButtonElement).onclick = acts[i]!; });
        const wheel = (e: WheelEvent) => { e.preventDefault(); const r = el.getBoundingClientRect(); zoom(Math.exp(-e.deltaY / 400), e.clientX - r.left, e.clientY - r.top); };
        const down = (e: PointerEvent) => {
            if ((e.target as Element).closest(".node, .tools, .legend")) return;
            el.setPointerCapture(e.pointerId);
            const sx = e.clientX - view.current.x, sy = e.clientY - view.current.y;
            const move = (m: PointerEvent) => { view.current = { ...view.current, x: m.clientX - sx, y: m.clientY - sy }; apply(); };
            el.addEventListener("pointermove", move);
            el.addEventListener("pointerup", () => el.removeEventListener("pointermove", move), { once: true });
        };
        el.addEventListener("wheel", wheel, { passive: false });
        el.addEventListener("pointerdown", down);
        let first = true;
        const seen = new ResizeObserver(() => { if (first) first = false; else fit(); });
        seen.observe(el);
        const before = viewKeys.value;
        viewKeys.value = (e) => {
            if (e.key === "+" || e.key === "=") zoom(1.25);
            else if (e.key === "-" || e.key === "−") zoom(0.8);
            else if (e.key === "0") fit();
            else return before?.(e) ?? false;
            return true;
        };
        return () => { el.removeEventListener("wheel", wheel); el.removeEventListener("pointerdown", down); seen.disconnect(); };
    }, [laid, selected]);

    const near = useMemo(() => {
        if (only.value !== "near" || !selected) return null;
        const set = new Set([selected]);
        for (const e of shape.edges) { if (e.from === selected) set.add(e.to); if (e.to === selected) set.add(e.from); }
        return set;
    }, [only.value, selected, shape]);
    const needle = wanted.value.trim().toLowerCase();
    const dimmed = (n: Node) => (needle ? !n.items.some((i) => i.id.toLowerCase().includes(needle)) : only.value === "failed" ? !["failed", "held"].includes(n.state) : only.value === "running" ? !["running", "retrying", "approval", "event"].includes(n.state) : near ? !near.has(n.id) : false);

    // Arrows go along the edges: into what comes next, back to what was before, to the neighbours of one layer.
    const walk = (from: string, key: string) => {
        const [fx, fy] = places.get(from)!, ahead = down ? ["ArrowDown", "ArrowUp"] : ["ArrowRight", "ArrowLeft"];
        let best: string | null = null, least = Infinity;
        const linked = key === ahead[0] ? shape.edges.filter((e) => e.from === from).map((e) => e.to) : key === ahead[1] ? shape.edges.filter((e) => e.to === from).map((e) => e.from) : null;
        for (const [id, [x, y]] of places) {
            if (id === from || (linked && !linked.includes(id))) continue;
            const side = down ? x - fx : y - fy, along = down ? y - fy : x - fx;
            if (!linked && (Math.abs(along) > 4 || (key === "ArrowDown" || key === "ArrowRight" ? side <= 0 : side >= 0))) continue;
            const d = linked ? Math.abs(side) : Math.abs(side);
            if (d < least) { least = d; best = id; }
        }
        if (best) document.querySelector<HTMLElement>(`[data-node="${CSS.escape(best)}"]`)?.focus({ preventScroll: true });
    };
    // What has the focus is seen: the picture moves, never the frame around it.
    const seen = (id: string) => { box.current?.scrollTo(0, 0); keepInView(id); apply(); };
    const first = selected ?? shape.nodes[0]?.id;
    const states = [...new Set(shape.nodes.map((n) => n.state))];
    const edgePoints = useMemo(() => { let i = 0; return shape.edges.map((e) => (e.back ? null : (laid.edges[i++] ?? null))); }, [laid, shape.edges.length]);

    return (
        <>
            <div class={"graph" + (far ? " far" : "")} ref={box}>
                <div class="world" ref={world} style={{ width: laid.w + "px", height: laid.h + "px" }}>
                    <svg width={laid.w} height={laid.h} aria-hidden="true">
                        {shape.edges.map((e, i) => <Way key={e.from + "\n" + e.to + "\n" + i} edge={e} points={edgePoints[i]?.points ?? null} shape={shape} places={places} W={W} H={H} down={down} crit={crit} items={items} />)}
                    </svg>
                    {shape.edges.map((e, i) => (e.when && !down && edgePoints[i] ? <Guard key={i} edge={e} points={edgePoints[i]!.points} items={items} /> : null))}
                    {shape.nodes.map((n) => {
                        const p = places.get(n.id);
                        if (!p) return null;
                        const item = n.items[0]!, many = n.stack ? inner(n) : null, tries = item.step.attempts?.length ?? 0, h = n.stack && compact ? 44 : H;
                        const meta = many ? `${many.done.toLocaleString("en-US")} of ${count(many.total, many.what.replace(/s$/, ""), many.what.replace(/s$/, "") + "s")}` : fact(item);
                        return (
                            <button key={n.id} data-node={n.id} data-step={item.id} tabIndex={n.id === first ? 0 : -1} class={`node s-${n.state}${compact ? " compact" : ""}${n.stack ? " stack" : ""}${selected === n.id ? " sel" : ""}${dimmed(n) ? " off" : ""}${n.items.some((x) => crit.has(x.id)) ? " crit" : ""}`}
                                style={{ left: p[0] - W / 2 + "px", top: p[1] - h / 2 + "px", width: W + "px", height: h + "px" }} title={`${n.name}: ${word(n.state)}${item.step.error ? "\n" + oneLine(item.step.error.message) : ""}`}
                                aria-pressed={selected === n.id} onClick={() => (n.stack ? open(item.id, "items") : open(item.id))} onFocus={() => seen(n.id)}
                                onKeyDown={(e) => { if (e.key.startsWith("Arrow")) { e.preventDefault(); e.stopPropagation(); walk(n.id, e.key); } }}>
                                <Glyph state={n.state} />
                                <span class="t"><span class="n ell" dir="auto">{n.name}</span><span class="sr">, {word(n.state)}, {compact && !many ? meta : ""}</span>{many ? <><Cells states={many.states} /><span class="m num">{meta}</span></> : compact ? null : <span class="m ell num">{meta}</span>}</span>
                                {!many && (item.step.visit ?? 0) > 1 ? <span class="try num">{item.step.visit} visits</span> : !many && tries > 1 ? <span class="try num" title={tries + " attempts"}>×{tries}</span> : null}
                            </button>
                        );
                    })}
                </div>
            </div>
            {tools}
            <div class="legend" aria-hidden="true">{states.map((s) => <span key={s}><Glyph state={s} />{word(s)}</span>)}</div>
            <Overview shape={shape} places={places} W={W} H={H} small={small} laid={laid} frame={frame} goTo={goTo} />
        </>
    );
}

type Places = Map<string, readonly [number, number]>;
const MINI_W = 168, MINI_H = 104;
const fills: Record<string, string> = { d: "--done-f", f: "--bad-f", r: "--running-f", w: "--warn-f" };
// Where the picture is larger than its place: all of it, in colours, and what of it is seen. Those who cannot see it have arrows and the tree.
function Overview({ shape, places, W, H, small, laid, frame, goTo }: { shape: Shape; places: Places; W: number; H: number; small: number; laid: Answer; frame: preact.RefObject<HTMLDivElement | null>; goTo: (x: number, y: number) => void }) {
    const canvas = useRef<HTMLCanvasElement>(null), dark = isDark(), w = Math.ceil(laid.w * small), h = Math.ceil(laid.h * small);
    useEffect(() => {
        const el = canvas.current, pen = el?.getContext("2d");
        if (!el || !pen) return;
        const css = getComputedStyle(document.documentElement), sharp = Math.min(2, devicePixelRatio || 1), rest = css.getPropertyValue("--line-2");
        el.width = w * sharp;
        el.height = h * sharp;
        pen.scale(sharp, sharp);
        for (const n of shape.nodes) {
            const p = places.get(n.id);
            if (!p) continue;
            pen.fillStyle = css.getPropertyValue(fills[letter[n.state] ?? ""] ?? "") || rest;
            pen.fillRect((p[0] - W / 2) * small, (p[1] - H / 2) * small, Math.max(1.5, W * small), Math.max(1.5, H * small));
        }
    }, [shape, places, small, dark]);
    const point = (e: { clientX: number; clientY: number }) => { const r = canvas.current!.getBoundingClientRect(); goTo((e.clientX - r.left) / small, (e.clientY - r.top) / small); };
    const drag = (e: PointerEvent) => {
        e.preventDefault();
        const el = e.currentTarget as HTMLElement;
        el.setPointerCapture(e.pointerId);
        point(e);
        el.addEventListener("pointermove", point);
        el.addEventListener("pointerup", () => el.removeEventListener("pointermove", point), { once: true });
    };
    return <div class="mini" aria-hidden="true" hidden onPointerDown={drag}><canvas ref={canvas} style={{ width: w + "px", height: h + "px" }} /><div class="mini-frame" ref={frame} /></div>;
}
function Way({ edge, points, shape, places, W, H, down, crit, items }: { edge: Edge; points: [number, number][] | null; shape: Shape; places: Places; W: number; H: number; down: boolean; crit: Set<string>; items: Map<string, Item> }) {
    const a = places.get(edge.from), b = places.get(edge.to);
    if (!a || !b) return null;
    const from = shape.nodes.find((n) => n.id === edge.from)!, to = shape.nodes.find((n) => n.id === edge.to)!;
    const c = classOf(from, to, edge, crit, items);
    if (edge.back || !points) {
        const top = Math.min(a[1], b[1]) - H * 1.5;
        const d = down ? `M${a[0] - W / 2},${a[1]}C${a[0] - W},${a[1]} ${b[0] - W},${b[1]} ${b[0] - W / 2 - 5},${b[1]}` : `M${a[0]},${a[1] - H / 2}C${a[0]},${top} ${b[0]},${top} ${b[0]},${b[1] - H / 2 - 5}`;
        return <path class={"edge " + (c || "off")} d={d} />;
    }
    const start = down ? [a[0], a[1] + H / 2] : [a[0] + W / 2, a[1]], end = down ? [b[0], b[1] - H / 2 - 5] : [b[0] - W / 2 - 5, b[1]];
    const all = [start, ...points.slice(1, -1), end] as [number, number][];
    let d = `M${all[0]}`;
    for (let i = 1; i < all.length; i++) {
        const [x0, y0] = all[i - 1]!, [x1, y1] = all[i]!;
        if (down) { const m = (y1 - y0) / 2; d += `C${x0},${y0 + m} ${x1},${y1 - m} ${x1},${y1}`; }
        else { const m = (x1 - x0) / 2; d += `C${x0 + m},${y0} ${x1 - m},${y1} ${x1},${y1}`; }
    }
    const [tx, ty] = end as [number, number];
    return <><path class={"edge " + c} d={d} /><path class={"tip " + c} d={down ? `M${tx - 3.5},${ty - 1}h7l-3.5,6z` : `M${tx - 1},${ty - 3.5}v7l6,-3.5z`} /></>;
}
const over = (s: State) => ["done", "reused", "failed", "skipped", "cancelled"].includes(s);
function classOf(from: Node, to: Node, edge: Edge, crit: Set<string>, items: Map<string, Item>): string {
    if (from.items.some((i) => crit.has(i.id)) && to.items.some((i) => crit.has(i.id))) return "crit";
    if ((from.state === "failed" || from.state === "held") && to.state === "skipped") return "hot";
    if (to.state === "skipped" || to.state === "not_run") return "off";
    if (to.state === "running" || to.state === "event") return over(from.state) ? "live" : "";
    if (over(from.state)) return from.state === "skipped" || (edge.when && takenOf(edge, items) === false) ? "off" : "fired";
    return "";
}
// Whether an arc with a guard was taken: what it leads to was visited, or was not though its source is over.
function takenOf(edge: Edge, items: Map<string, Item>): boolean | null {
    const to = items.get(edge.to), from = items.get(edge.from);
    if (!to || !from || !over(from.state)) return null;
    return to.state !== "waiting" && to.state !== "not_run";
}
function Guard({ edge, points, items }: { edge: Edge; points: [number, number][]; items: Map<string, Item> }) {
    const mid = points[Math.floor(points.length / 2)];
    if (!mid) return null;
    const taken = takenOf(edge, items), text = edge.when!.replace(/^\{\{\s*|\s*\}\}$/g, "").replace(/event\.name == '([\w.]+)'/, (_, e: string) => e.replaceAll(".", " "));
    return <span class={"elabel" + (taken === false ? " off" : "")} style={{ left: mid[0] + "px", top: mid[1] + "px" }} title={edge.when}>{text}{taken === false ? " ✗" : taken ? " ✓" : ""}</span>;
}
