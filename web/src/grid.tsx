// The grid: the last runs of a document side by side, a column each, and what became of every step in them. What changed, and since when.
import { useMemo, useState } from "preact/hooks";
import { getJson, idOf } from "./api";
import { Glyph, rowState, type State, stepState, word } from "./states";
import type { Graph, RunRow, Snapshot, Step } from "./types";
import { useMoved } from "./tables";
import { Empty, Failure, Skeleton, useAsked } from "./ui";
import { absolute, count, short, span } from "./words";

const COLUMNS = 25, ROWS = 300;
const fields = ["status", "steps.stepId", "steps.status", "steps.held", "steps.retrying", "steps.error", "steps.reusedFrom", "steps.durationMs", "steps.startedAt", "steps.completedAt"].join(",");

interface Cell { state: State; took: number | null }
interface Column { run: RunRow; cells: Map<string, Cell> }
interface Table { columns: Column[]; steps: string[] }

// Rounds of a loop belong to their step; what a fork took over counts as what it was.
async function read(query: string): Promise<Table> {
    const page = await getJson<{ items: RunRow[] }>(`/v1/runs?limit=${COLUMNS}&q=` + encodeURIComponent(query)), runs = page.items.slice().reverse();
    const newest = runs.at(-1), graph = newest ? await getJson<Graph>(`/v1/runs/${idOf(newest.runId)}/graph`).catch(() => null) : null;
    const kinds = new Map(graph?.steps.map((s) => [s.stepId, s.kind]));
    const columns = await Promise.all(runs.map(async (run): Promise<Column> => {
        const snapshot = await getJson<Snapshot>(`/v1/runs/${idOf(run.runId)}?fields=${fields}`), cells = new Map<string, Cell>();
        for (const s of snapshot.steps as Step[])
            if (!/\[\d+\]/.test(s.stepId)) cells.set(s.stepId, { state: stepState(s, snapshot, kinds.get(s.stepId)), took: s.durationMs ?? (s.startedAt && s.completedAt ? Date.parse(s.completedAt) - Date.parse(s.startedAt) : null) });
        return { run, cells };
    }));
    const known = new Set(graph?.steps.map((s) => s.stepId) ?? []), steps = [...known].filter((id) => columns.some((c) => c.cells.has(id)));
    for (const c of [...columns].reverse()) for (const id of c.cells.keys()) if (!known.has(id)) { known.add(id); steps.push(id); }
    return { columns, steps };
}
const differs = (t: Table, step: string) => new Set(t.columns.filter((c) => c.run.endedAt).map((c) => c.cells.get(step)?.state ?? "")).size > 1;

export function Grid({ query }: { query: string }) {
    const turn = useMoved(3000), asked = useAsked(() => read(query), [query, turn]), [only, show] = useState(false), t = asked.value;
    const longest = useMemo(() => Math.max(1, ...(t?.columns.map((c) => c.run.durationMs ?? 0) ?? [])), [t]);
    if (asked.error && !t) return <Failure error={asked.error} again={asked.again} />;
    if (!t) return <Skeleton rows={4} height={36} />;
    if (t.columns.length === 0) return <Empty title="It has never run">Each run becomes a column here, and each step a row.</Empty>;
    const changing = t.steps.filter((s) => differs(t, s)), all = only ? changing : t.steps, steps = all.slice(0, ROWS);
    // Arrows go from cell to cell; one of them is in the order of Tab.
    const walk = (e: KeyboardEvent) => {
        const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[e.key], from = (e.target as HTMLElement).closest<HTMLElement>("[data-cell]");
        if (!by || !from) return;
        const [r, c] = from.dataset.cell!.split(",").map(Number) as [number, number];
        (e.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-cell="${r + by[0]!},${c + by[1]!}"]`)?.focus();
        e.preventDefault();
        e.stopPropagation();
    };
    const first = t.columns.length - 1;
    return (
        <div class="vstack">
            <div class="row wrap"><span class="muted grow">{t.columns.length === 1 ? "One run" : `The last ${t.columns.length} runs, the newest at the right`}: {count(t.steps.length, "step")}{t.columns.length > 1 ? `, ${changing.length ? `${changing.length} of them not always the same` : "each always the same"}` : ""}.</span><label class="check"><input type="checkbox" checked={only} onChange={(e) => show(e.currentTarget.checked)} /> Only what differs</label></div>
            <div class="tablebox matrix" onKeyDown={walk}>
                <table aria-label="Runs and their steps">
                    <thead><tr><th scope="col"><span class="sr">Step</span></th>{t.columns.map(({ run }, i) => (
                        <th scope="col" key={run.runId}><a href={"/runs/" + idOf(run.runId)} data-cell={`-1,${i}`} tabIndex={i === first ? 0 : -1} aria-label={`${short(run.runId)}, ${word(rowState(run))}`} title={`${short(run.runId)}: ${word(rowState(run))}, ${run.startedAt ? absolute(run.startedAt) : ""}${run.durationMs != null ? ", " + span(run.durationMs) : ""}`}>
                            <i class={rowState(run)} style={{ height: Math.max(3, Math.round((44 * (run.durationMs ?? longest)) / longest)) + "px" }} /><Glyph state={rowState(run)} />
                        </a></th>
                    ))}</tr></thead>
                    <tbody>{steps.map((step, r) => (
                        <tr key={step}><th scope="row" class="ell" dir="auto" title={step}>{step}</th>{t.columns.map(({ run, cells }, i) => {
                            const cell = cells.get(step);
                            return <td key={run.runId}>{cell ? <a href={`/runs/${idOf(run.runId)}?step=${encodeURIComponent(step)}`} data-cell={`${r},${i}`} tabIndex={-1} class={"c-" + cell.state} aria-label={`${step}: ${word(cell.state)} in ${short(run.runId)}`} title={`${step}: ${word(cell.state)}${cell.took !== null ? ", " + span(cell.took) : ""}`}><Glyph state={cell.state} /></a> : <span class="faint" title={`${step} is not in this version`}>·</span>}</td>;
                        })}</tr>
                    ))}</tbody>
                </table>
            </div>
            {only && all.length === 0 ? <p class="muted">Every step ended the same way in each of these runs.</p> : null}
            {all.length > ROWS ? <p class="muted">{count(ROWS, "step")} of {all.length.toLocaleString("en-US")} are shown.</p> : null}
        </div>
    );
}
