// Where the boxes of a graph stand: layers from left to right (or top to bottom), few crossings. Away from the page's own thread.
import { Graph, layout } from "@dagrejs/dagre";

export interface Ask { id: number; nodes: { id: string; w: number; h: number }[]; edges: { from: string; to: string; label: number }[]; down: boolean; gapX: number; gapY: number }
export interface Answer { id: number; nodes: [string, number, number][]; edges: { from: string; to: string; points: [number, number][] }[]; w: number; h: number }

// A step stands as early as it could run: ways that begin early weigh more, so that slack gathers at their ends.
function depths(nodes: Ask["nodes"], edges: Ask["edges"]): Map<string, number> {
    const out = new Map<string, number>(), left = new Map<string, number>(), next = new Map<string, string[]>();
    for (const e of edges) {
        left.set(e.to, (left.get(e.to) ?? 0) + 1);
        (next.get(e.from) ?? next.set(e.from, []).get(e.from)!).push(e.to);
    }
    const ready = nodes.filter((n) => !left.get(n.id)).map((n) => n.id);
    for (let id = ready.pop(); id !== undefined; id = ready.pop())
        for (const to of next.get(id) ?? []) {
            out.set(to, Math.max(out.get(to) ?? 0, (out.get(id) ?? 0) + 1));
            left.set(to, left.get(to)! - 1);
            if (left.get(to) === 0) ready.push(to);
        }
    return out;
}

self.onmessage = (event: MessageEvent<Ask>) => {
    const { id, nodes, edges, down, gapX, gapY } = event.data;
    const g = new Graph({ multigraph: true });
    g.setGraph({ rankdir: down ? "TB" : "LR", nodesep: gapY, ranksep: gapX, edgesep: 10, ranker: nodes.length > 600 ? "longest-path" : "network-simplex" });
    g.setDefaultEdgeLabel(() => ({}));
    for (const n of nodes) g.setNode(n.id, { width: n.w, height: n.h });
    const depth = depths(nodes, edges), deepest = Math.max(1, ...depth.values());
    edges.forEach((e, i) => g.setEdge(e.from, e.to, { width: e.label, height: e.label ? 16 : 0, labelpos: "c", weight: 1 + deepest - (depth.get(e.from) ?? 0) }, String(i)));
    layout(g);
    const size = g.graph() as { width?: number; height?: number };
    const answer: Answer = {
        id,
        nodes: nodes.map((n) => { const p = g.node(n.id) as { x: number; y: number }; return [n.id, p.x, p.y]; }),
        edges: edges.map((e, i) => ({ from: e.from, to: e.to, points: ((g.edge(e.from, e.to, String(i)) as { points?: { x: number; y: number }[] }).points ?? []).map((p) => [p.x, p.y] as [number, number]) })),
        w: size.width ?? 0, h: size.height ?? 0,
    };
    self.postMessage(answer);
};
