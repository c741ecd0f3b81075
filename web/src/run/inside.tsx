// What a loop or a list is made of, in the drawer: every item with its state, what it was given, what came of it, and the way to its log or run.
import { useMemo, useState } from "preact/hooks";
import { place, setQuery, withQuery } from "../route";
import { emphasis, Glyph, type State, word } from "../states";
import type { Snapshot } from "../types";
import { visible } from "../redacted";
import { Button, Empty, Seg, Skeleton, Value } from "../ui";
import { count, oneLine, span } from "../words";
import { insideOf, isOver, lastSeen, type Member, type Members } from "./members";
import type { Item, RunModel } from "./model";

const PAGE = 100;
const brief = (value: unknown) => (value === undefined ? "" : visible(typeof value === "string" ? value : JSON.stringify(value)));
// An item that went on although a task of it failed has something to say, too.
const wrong = (m: Member) => m.error ?? m.tries.filter((t) => t.error).at(-1)?.error ?? null;

export function Inside({ model, item, run }: { model: RunModel; item: Item; run: Snapshot }) {
    const entries = model.entries.value, last = lastSeen(model), over = isOver((model.shown.value ?? run).status);
    const all = useMemo(() => item.list ?? insideOf(entries, last, item.id, over), [item.list, entries, last, item.id, over]);
    const [only, show] = useState<State | "all">("all"), [text, find] = useState(""), [opened, open] = useState<number | null>(null);
    if (!model.loaded.value && !all) return <Skeleton rows={6} height={28} />;
    if (!all || all.members.length === 0) return <Empty title="It has no items yet">They appear with the first one that starts.</Empty>;
    const by = new Map<State, number>(), low = text.toLowerCase();
    for (const m of all.members) by.set(m.state, (by.get(m.state) ?? 0) + 1);
    const rank = (m: Member) => emphasis.indexOf(m.state) * 2 + (wrong(m) ? 0 : 1);
    const list = all.members.filter((m) => (only === "all" || m.state === only) && (!low || String(m.n) === low || brief(all.values?.[m.n - 1]).toLowerCase().includes(low) || (wrong(m)?.message ?? "").toLowerCase().includes(low))).sort((a, b) => rank(a) - rank(b) || a.n - b.n);
    const page = Math.min(Number(place.value.query.get("page") ?? 0) || 0, Math.max(0, Math.ceil(list.length / PAGE) - 1)), one = all.kind === "runs" ? "run" : "item";
    const states = emphasis.filter((s) => by.get(s));
    return (
        <div class="vstack">
            {states.length > 1 ? <Seg label="State" value={only} onPick={(s) => { show(s); setQuery({ page: null }, "replace"); }} items={[["all", "All", undefined, all.members.length], ...states.map((s): [State, string, State, number] => [s, word(s), s, by.get(s)!])]} /> : <h3>{count(all.members.length, one)}, all {word(states[0] ?? "waiting")}</h3>}
            {all.members.length > 12 ? <input class="find-item" type="search" placeholder="Number, value or error" aria-label={"Find among the " + one + "s"} value={text} onInput={(e) => { find(e.currentTarget.value); }} /> : null}
            {list.length === 0 ? <Empty title={`No ${one} matches`} /> : null}
            <ul class="members">
                {list.slice(page * PAGE, page * PAGE + PAGE).map((m) => {
                    const error = wrong(m), is = opened === m.n;
                    return (
                        <li key={m.n} class={is ? "open" : ""}>
                            <button class="member" aria-expanded={is} data-item={m.n} onClick={() => open(is ? null : m.n)}>
                                <Glyph state={m.state} /><span class="num faint">{m.n}</span><span class="ell mono" dir="auto">{brief(all.values?.[m.n - 1])}</span>
                                <span class={"ell why " + (m.state === "failed" ? "failed" : "muted")} dir="auto">{error ? oneLine(error.message) : m.state === "done" ? "" : word(m.state)}</span><span class="faint num">{span(m.took)}</span>
                            </button>
                            {is ? <One all={all} m={m} item={item} /> : null}
                        </li>
                    );
                })}
            </ul>
            {list.length > PAGE ? <div class="row"><Button small disabled={page === 0} onClick={() => setQuery({ page: page > 1 ? String(page - 1) : null })}>Before</Button><span class="faint num">{(page * PAGE + 1).toLocaleString("en-US")}–{Math.min(list.length, page * PAGE + PAGE).toLocaleString("en-US")} of {list.length.toLocaleString("en-US")}</span><Button small disabled={(page + 1) * PAGE >= list.length} onClick={() => setQuery({ page: String(page + 1) })}>Next</Button></div> : null}
        </div>
    );
}

function One({ all, m, item }: { all: Members; m: Member; item: Item }) {
    const error = wrong(m), given = all.values?.[m.n - 1];
    return (
        <div class="one">
            <dl class="kv">
                {given !== undefined ? <><dt>Given</dt><dd><Value value={given} /></dd></> : null}
                {error ? <><dt>Error</dt><dd class="mono failed" dir="auto">{error.code} {visible(error.message)}</dd></> : null}
                {m.result !== undefined && m.result !== null ? <><dt>{error ? "It gave" : "Output"}</dt><dd><Value value={m.result} /></dd></> : null}
                {m.run ? <><dt>Its run</dt><dd><a class="link mono" href={"/runs/" + encodeURIComponent(m.run)}>{m.run}</a></dd></> : null}
                {m.tries.map((t) => <><dt>{t.task}{t.logical > 1 ? " #" + t.logical : ""}</dt><dd class="row"><Glyph state={t.state} />{t.took !== null ? span(t.took) : word(t.state)}<button class="link" aria-label={`Logs of ${t.task}, ${item.id} ${m.n}`} onClick={() => setQuery({ show: "logs", item: String(m.n), attempt: String(t.serial), page: null })}>Logs</button></dd></>)}
            </dl>
            <div class="row">{m.at ? <a class="seq" href={withQuery({ at: m.at })}>event {m.at}</a> : null}{m.tries.length ? <button class="link" onClick={() => setQuery({ show: "input", item: String(m.n), attempt: null, page: null })}>What it was given</button> : null}</div>
        </div>
    );
}
