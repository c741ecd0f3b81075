// What is drawn: steps, and steps that are alike as one stack. Pure, so that it can be tested.
import { loudest, type State } from "../states";
import type { Graph } from "../types";
import type { Item } from "./model";

export interface Node { id: string; items: Item[]; state: State; stack: boolean; name: string }
export interface Edge { from: string; to: string; when: string | undefined; back: boolean }
export interface Shape { nodes: Node[]; edges: Edge[]; of: Map<string, string> }

const ALIKE = 8; // so many steps between the same neighbours are one fan-out
const LARGE = 2000; // above, whole layers become stacks

export function shapeOf(graph: Graph | null, items: Map<string, Item>, whole: boolean): Shape {
    const top = [...items.values()].filter((i) => !/\[\d+\]\./.test(i.id));
    const arcs = (graph?.arcs ?? []).filter((a) => items.has(a.from) && items.has(a.to));
    const ins = new Map<string, string[]>(), outs = new Map<string, string[]>();
    for (const a of arcs) {
        (outs.get(a.from) ?? outs.set(a.from, []).get(a.from)!).push(a.to);
        (ins.get(a.to) ?? ins.set(a.to, []).get(a.to)!).push(a.from);
    }
    const groups = new Map<string, Item[]>();
    const keyOf = (i: Item) => i.kind + "\u0000" + [...(ins.get(i.id) ?? [])].sort().join("\u0001") + "\u0000" + [...(outs.get(i.id) ?? [])].sort().join("\u0001");
    for (const item of top) {
        const key = (ins.get(item.id)?.length || outs.get(item.id)?.length) && !whole ? keyOf(item) : item.id;
        (groups.get(key) ?? groups.set(key, []).get(key)!).push(item);
    }
    let sets: Item[][] = [];
    for (const set of groups.values()) set.length >= ALIKE ? sets.push(set) : sets.push(...set.map((i) => [i]));
    if (sets.length > LARGE && !whole) sets = byLayer(sets, ins);
    const of = new Map<string, string>(), nodes: Node[] = [];
    for (const set of sets) {
        const first = set[0]!, id = set.length > 1 ? "stack:" + first.id : first.id;
        for (const item of set) of.set(item.id, id);
        const prefix = set.length > 1 ? common(set.map((i) => i.id)) : "";
        nodes.push({ id, items: set, stack: set.length > 1 || !!first.step.loop || !!first.list || first.children.length > 0, state: set.length > 1 ? loudest(set.map((i) => i.state)) : first.state, name: set.length > 1 ? (prefix ? prefix + "…" : "steps") : first.id });
    }
    const edges: Edge[] = [], seen = new Set<string>();
    for (const a of arcs) {
        const from = of.get(a.from)!, to = of.get(a.to)!, key = from + "\u0000" + to + "\u0000" + (a.when ?? "");
        if (from === to && a.from !== a.to) continue;
        if (seen.has(key)) continue;
        seen.add(key);
        edges.push({ from, to, when: a.when, back: false });
    }
    markBack(nodes, edges);
    return { nodes, edges, of };
}

// Arcs that close a circle: drawn above, not layered.
function markBack(nodes: Node[], edges: Edge[]): void {
    const outs = new Map<string, Edge[]>(), state = new Map<string, number>();
    for (const e of edges) (outs.get(e.from) ?? outs.set(e.from, []).get(e.from)!).push(e);
    for (const n of nodes) {
        if (state.get(n.id)) continue;
        const stack: [string, number][] = [[n.id, 0]];
        state.set(n.id, 1);
        while (stack.length) {
            const here = stack[stack.length - 1]!, next = outs.get(here[0])?.[here[1]++];
            if (!next) {
                state.set(here[0], 2);
                stack.pop();
            } else if (state.get(next.to) === 1) next.back = true;
            else if (!state.get(next.to)) {
                state.set(next.to, 1);
                stack.push([next.to, 0]);
            }
        }
    }
}

function byLayer(sets: Item[][], ins: Map<string, string[]>): Item[][] {
    const layer = new Map<string, number>();
    const all = sets.flat();
    for (const item of all) { // steps are listed with what they depend on before them, or it settles in a few rounds
        let l = 0;
        for (const d of ins.get(item.id) ?? []) l = Math.max(l, (layer.get(d) ?? 0) + 1);
        layer.set(item.id, l);
    }
    const out = new Map<number, Item[]>();
    for (const item of all) (out.get(layer.get(item.id)!) ?? out.set(layer.get(item.id)!, []).get(layer.get(item.id)!)!).push(item);
    return [...out.values()].flatMap((set) => (set.length > 3 ? [set] : set.map((i) => [i])));
}

function common(names: string[]): string {
    let p = names[0] ?? "";
    for (const n of names) while (!n.startsWith(p)) p = p.slice(0, -1);
    return p;
}

// The way whose steps decided when the run ended: backwards from the last, always to what ended last before it.
export function critical(graph: Graph | null, items: Map<string, Item>): Set<string> {
    const out = new Set<string>(), end = (i: Item | undefined) => (i?.step.completedAt && i.step.startedAt ? Date.parse(i.step.completedAt) : 0);
    const ins = new Map<string, string[]>();
    for (const a of graph?.arcs ?? []) (ins.get(a.to) ?? ins.set(a.to, []).get(a.to)!).push(a.from);
    let at: Item | undefined;
    for (const item of items.values()) if (end(item) > end(at)) at = item;
    while (at && !out.has(at.id)) {
        out.add(at.id);
        let best: Item | undefined;
        for (const d of ins.get(at.id) ?? []) {
            const item = items.get(d);
            if (item && !out.has(d) && end(item) > end(best)) best = item;
        }
        at = best;
    }
    return out;
}
