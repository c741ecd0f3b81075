// The log as it is: every record, every entry of the ledger behind it, both clocks, the bytes.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { utc } from "../prefs";
import { go, withQuery } from "../route";
import { Glyph } from "../states";
import { Button, copy, Seg, Skeleton, Virtual } from "../ui";
import { clock, span } from "../words";
import { type Entry, summary } from "./model";
import type { TabProps } from "./run";

const which = signal<"all" | "bad" | "step">("all"), words = signal(""), opened = signal<string | null>(null), both = signal(false);
const keyOf = (e: Entry) => e.seq + "." + e.sub;
const pretty = (raw: string) => { try { return JSON.stringify(JSON.parse(raw), null, 2); } catch { return raw; } };

export function Events({ model, step, past, open }: TabProps) {
    const all = model.entries.value, moments = model.moments.value, at = model.momentIndex.value;
    const kind = which.value === "step" && !step ? "all" : which.value, needle = words.value.toLowerCase();
    const list = useMemo(() => {
        let match = (e: Entry) => e.type.toLowerCase().includes(needle) || e.raw.toLowerCase().includes(needle);
        const form = /^\/(.+)\/$/.exec(words.value);
        if (form) try { const re = new RegExp(form[1]!, "i"); match = (e) => re.test(e.raw); } catch { /* not a pattern yet: as text */ }
        return all.filter((e) => (kind === "all" || (kind === "bad" ? e.state === "failed" : e.step === step || e.step.startsWith(step + "["))) && (!needle || match(e)));
    }, [all, kind, needle, step]);
    const here = moments[at], lastIndex = here?.index ?? all.length - 1, hereEntry = all[lastIndex];
    const order = useMemo(() => new Map(all.map((e, i) => [e, i])), [all]);
    const begin = all[0] ? Date.parse(all[0].time) : 0, checked = model.checked.value;
    const show = past && hereEntry ? list.indexOf(hereEntry) : null;
    const row = (i: number) => {
        const e = list[i]!, key = keyOf(e), index = order.get(e) ?? 0, isOpen = opened.value === key;
        const ok = e.sub === 0 && e.hash && (checked.broken === null || e.seq < checked.broken);
        return (
            <>
                <div class={"evt" + (past && e === hereEntry ? " at" : "") + (index > lastIndex ? " future" : "") + (e.sub ? " led" : "")} role="row" aria-level={1} tabIndex={0} aria-expanded={isOpen} data-seq={key}
                    onClick={() => { opened.value = isOpen ? null : key; }} onKeyDown={(k) => { if (k.key === "Enter") { k.preventDefault(); k.stopPropagation(); opened.value = isOpen ? null : key; } else if (k.key === "ArrowDown" || k.key === "ArrowUp") { k.preventDefault(); const rows = [...document.querySelectorAll<HTMLElement>(".evt[data-seq]")], n = rows.indexOf(k.currentTarget as HTMLElement) + (k.key === "ArrowDown" ? 1 : -1); rows[n]?.focus(); } }}>
                    <span role="gridcell" class={"mono num" + (e.sub ? " faint" : "")} title={e.sub ? "In the ledger, after event " + e.seq : undefined}>{e.sub ? "+" + e.seq : e.seq}</span>
                    <span role="gridcell" class="mono c-t num" title={e.time}>{both.value && e.emitted ? clock(e.emitted, utc.value) : clock(e.time, utc.value)}</span>
                    <span role="gridcell" class="mono faint c-d num">{both.value && e.emitted ? "+" + span(Date.parse(e.time) - Date.parse(e.emitted)) : "+" + span(Date.parse(e.time) - begin)}</span>
                    <span role="gridcell" class="ty ell"><Glyph state={e.state} /><span class="ell">{e.type}</span></span>
                    <span role="gridcell" class="ell muted" dir="auto">{e.step}{e.attempt > 1 ? <span class="faint"> #{e.attempt}</span> : null}</span>
                    <span role="gridcell" class="ell muted c-sum mono" dir="auto">{summary(e)}</span>
                    <span role="gridcell" class="hash mono">{e.sub ? "ledger" : e.hash ? <>{ok ? <Glyph state="done" /> : <Glyph state="failed" />}{e.hash.slice(0, 10)}</> : ""}</span>
                </div>
                {isOpen ? (
                    <div class="raw" role="row" aria-level={2}><div role="gridcell">
                        <div class="row wrap">
                            <Button small onClick={() => go(withQuery({ at: e.sub ? key : String(e.seq) }))}>Go to this moment</Button>
                            {e.step ? <Button small onClick={() => open(e.step)}>Open {e.step}</Button> : null}
                            <Button small onClick={() => void copy(e.raw, "Copied the record")}>Copy JSON</Button>
                            <Button small onClick={() => void copy(location.origin + withQuery({ at: e.sub ? key : String(e.seq) }), "Copied the link")}>Copy link</Button>
                            {e.prev ? <span class="faint mono">behind {e.prev.slice(0, 16)}…</span> : null}
                        </div>
                        <pre tabIndex={0}>{pretty(e.raw)}</pre>
                    </div></div>
                ) : null}
            </>
        );
    };
    return (
        <div class="pane col">
            <div class="filter">
                <Seg label="Events" value={kind} onPick={(k) => { which.value = k; }} items={[["all", "All"], ["bad", "Failures"], ...(step ? [["step", "Only " + step] as ["step", string]] : [])]} />
                <input class="mono" placeholder="text or /pattern/" aria-label="Filter events" value={words.value} onInput={(e) => { words.value = e.currentTarget.value; }} />
                <button class="link" aria-pressed={both.value} onClick={() => { both.value = !both.value; }}>{both.value ? "When it was said" : "When it was stored"}</button>
                <button class="link" onClick={() => { utc.value = !utc.value; }}>{utc.value ? "UTC" : "Local time"}</button>
                <span class="grow" />
                {list.length !== all.length ? <span class="faint num">{list.length.toLocaleString("en-US")} of {all.length.toLocaleString("en-US")}</span> : null}
                {checked.can && model.loaded.value ? (checked.broken === null ? <span class="done row"><Glyph state="done" />{checked.links.toLocaleString("en-US")} of {Math.max(0, checked.records - 1).toLocaleString("en-US")} links hold</span> : <span class="failed row"><Glyph state="failed" />broken at event {checked.broken}</span>) : null}
            </div>
            {all.length === 0 ? <Skeleton height={32} rows={12} /> : (
                <Virtual role="treegrid" label="Events" count={list.length} estimate={33} of={list} render={row} keyOf={(i) => keyOf(list[i]!)} showIndex={show}
                    head={<div class="evt head" role="row"><span role="columnheader">Event</span><span role="columnheader" class="c-t">Time ({utc.value ? "UTC" : "local"})</span><span role="columnheader" class="c-d">{both.value ? "Stored" : "Since"}</span><span role="columnheader">Type</span><span role="columnheader">Step</span><span role="columnheader" class="c-sum">Summary</span><span role="columnheader" class="hash">Hash</span></div>} />
            )}
        </div>
    );
}
