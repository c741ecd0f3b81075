// Steps as a list, and as the tree that says what the graph shows: rounds of loops and items below their step.
import { signal } from "@preact/signals";
import { Glyph, word } from "../states";
import { Virtual } from "../ui";
import { count, oneLine, span } from "../words";
import { fact } from "./graph";
import type { Item } from "./model";
import type { GraphProps, TabProps } from "./run";

export function reasonOf(item: Item): string {
    if (item.step.error) return oneLine(item.step.error.message);
    if (item.state === "skipped") return item.step.skipDetail ? oneLine(item.step.skipDetail) : fact(item);
    if (item.list) { const n = (s: string) => item.list!.members.filter((m) => m.state === s).length; return `${n("done") + n("failed") + n("cancelled")} of ${count(item.list.total, "run")}${n("failed") ? `, ${n("failed")} failed` : ""}`; }
    if (item.step.loop) return `${item.step.loop.done} of ${count(item.step.loop.total, "item")}${item.step.loop.failed ? `, ${item.step.loop.failed} failed` : ""}`;
    if (item.state === "done" && item.step.result !== undefined) return oneLine(typeof item.step.result === "string" ? item.step.result : JSON.stringify(item.step.result)).slice(0, 200);
    return item.state === "done" ? "" : fact(item);
}
const depth = (id: string) => (id.match(/\[\d+\]\./g) ?? []).length;
const closed = signal<Set<string>>(new Set());
const filter = signal("");

export function StepsTab(props: TabProps) {
    return (
        <div class="pane col">
            {props.items.size > 20 ? <div class="filter"><input placeholder="Filter by name or state" aria-label="Filter steps" value={filter.value} onInput={(e) => { filter.value = e.currentTarget.value; }} /></div> : null}
            <Tree {...props} filter={props.items.size > 20 ? filter.value : ""} />
        </div>
    );
}

export function Tree({ items, step, open, filter: needle = "" }: GraphProps & { filter?: string }) {
    const low = needle.toLowerCase();
    const list = [...items.values()].filter((i) => (!low || i.id.toLowerCase().includes(low) || word(i.state).includes(low)) && ![...closed.value].some((c) => i.id.startsWith(c + "[")));
    const at = Math.max(0, list.findIndex((i) => i.id === step));
    const fold = (id: string, shut: boolean) => { const next = new Set(closed.value); shut ? next.add(id) : next.delete(id); closed.value = next; };
    const row = (n: number) => {
        const i = list[n]!, inside = i.children.length > 0, shut = closed.value.has(i.id), tries = i.step.attempts?.length ?? 0, level = depth(i.id);
        return (
            <div class={"strow" + (step === i.id ? " sel" : "")} role="row" aria-level={level + 1} aria-expanded={inside ? !shut : undefined} aria-selected={step === i.id} data-step={i.id} tabIndex={n === at ? 0 : -1} onClick={() => open(i.id)}
                onKeyDown={(e) => {
                    const rows = [...document.querySelectorAll<HTMLElement>(".strow[data-step]")], k = rows.indexOf(e.currentTarget as HTMLElement);
                    if (e.key === "Enter") open(i.id);
                    else if (e.key === "ArrowDown") rows[k + 1]?.focus();
                    else if (e.key === "ArrowUp") rows[k - 1]?.focus();
                    else if (e.key === "ArrowLeft" && inside) fold(i.id, true);
                    else if (e.key === "ArrowRight" && inside) fold(i.id, false);
                    else return;
                    e.preventDefault();
                    e.stopPropagation();
                }}>
                <span role="gridcell" class="a ell" style={{ paddingLeft: level * 20 + "px" }}><Glyph state={i.state} /><span class="ell" dir="auto">{i.id}</span></span>
                <span role="gridcell" class={i.state}>{word(i.state)}</span>
                <span role="gridcell" class="num muted">{span(i.took)}</span>
                <span role="gridcell" class="faint c-s">{(i.step.visit ?? 0) > 1 ? i.step.visit + " visits" : tries > 1 ? tries + " attempts" : i.kind}</span>
                <span role="gridcell" class={"ell c-w mono " + (i.state === "failed" || i.state === "held" ? "failed" : "muted")} dir="auto">{reasonOf(i)}</span>
            </div>
        );
    };
    return <Virtual class="sttable" role="treegrid" label="Steps" count={list.length} estimate={37} of={items} render={row} keyOf={(n) => list[n]!.id}
        head={<div class="strow head" role="row"><span role="columnheader">Step</span><span role="columnheader">State</span><span role="columnheader">Took</span><span role="columnheader" class="c-s">Kind</span><span role="columnheader" class="c-w">Why</span></div>} />;
}
