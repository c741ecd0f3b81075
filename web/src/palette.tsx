// Search and commands, and the keys. No key acts on a run without a dialog.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { getJson, signOut } from "./api";
import { letters, recent, switchTheme, theme } from "./prefs";
import { go, place } from "./route";
import { entries } from "./shell";
import { Glyph, rowState, type State } from "./states";
import type { RunRow } from "./types";
import { Dialog, dialog, closeDialog, copy } from "./ui";
import { short } from "./words";
import { command } from "./shell";

export interface Action { name: string; hint?: string; state?: State; run: () => void; why?: string | undefined }
// What the view on screen adds: its steps, its tabs, what may be done to its run.
export const actions = signal<Action[]>([]);
// Keys of the view on screen; true: it was one of them.
export const viewKeys = signal<((event: KeyboardEvent) => boolean) | null>(null);

function Palette() {
    const [text, set] = useState("");
    const [sel, pick] = useState(0);
    const [runs, found] = useState<RunRow[]>([]);
    const list = useRef<HTMLUListElement>(null);
    useEffect(() => {
        let mine = true;
        const wait = setTimeout(() => {
            const q = text.trim() ? "&q=" + encodeURIComponent('"' + text.trim().replaceAll('"', "") + '"') : "";
            getJson<{ items: RunRow[] }>("/v1/runs?limit=8" + q).then((page) => { if (mine) found(page.items); }, () => {});
        }, 120);
        return () => { mine = false; clearTimeout(wait); };
    }, [text]);
    const low = text.toLowerCase();
    const views: Action[] = entries.flatMap((e) => (e ? [{ name: "Go to " + e.name, hint: e.key, run: () => go(e.path) }] : []));
    const more: Action[] = [
        { name: "Start a run", run: () => go("/definitions?new") },
        { name: "Switch theme", hint: "t", run: switchTheme },
        { name: "Follow the system's theme", run: () => { theme.value = "system"; } },
        { name: letters.value ? "Turn keys of one letter off" : "Turn keys of one letter on", run: () => { letters.value = !letters.value; } },
        { name: "Sign out", run: () => void signOut() },
        { name: "Copy the command of this view", hint: "y", run: () => void copy(command.value) },
    ];
    const rows: Action[] = runs.map((r) => ({ name: r.planId, hint: short(r.runId), state: rowState(r), run: () => go("/runs/" + encodeURIComponent(r.runId)) }));
    const last: Action[] = low ? [] : recent.value.slice(0, 4).map((r) => ({ name: r.plan, hint: short(r.id), run: () => go("/runs/" + encodeURIComponent(r.id)) }));
    const own = [...last, ...actions.value, ...views, ...more].filter((a) => (a.name + " " + (a.hint ?? "")).toLowerCase().includes(low));
    const all = (low ? [...own.slice(0, 30), ...rows] : [...own.slice(0, last.length + actions.value.length), ...rows, ...own.slice(last.length + actions.value.length)]).slice(0, 60);
    const at = Math.min(sel, Math.max(0, all.length - 1));
    useLayoutEffect(() => { list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); });
    const take = (a: Action | undefined) => {
        if (!a || a.why !== undefined) return;
        closeDialog();
        a.run();
    };
    return (
        <div class="pal-in">
            <input
                value={text} placeholder="Go to a run, a step, a view, or act" aria-label="Command" role="combobox" aria-expanded="true" aria-controls="pal-list" aria-activedescendant={"pal-" + at} autoFocus
                onInput={(e) => { set(e.currentTarget.value); pick(0); }}
                onKeyDown={(e) => {
                    if (e.key === "ArrowDown") pick(Math.min(at + 1, all.length - 1));
                    else if (e.key === "ArrowUp") pick(Math.max(0, at - 1));
                    else if (e.key === "Enter") take(all[at]);
                    else return;
                    e.preventDefault();
                }}
            />
            <ul role="listbox" id="pal-list" aria-label="Results" ref={list}>
                {all.map((a, i) => (
                    <li key={i} id={"pal-" + i} role="option" aria-selected={i === at} aria-disabled={a.why !== undefined} onClick={() => take(a)} onPointerMove={() => pick(i)}>
                        {a.state ? <Glyph state={a.state} /> : <span class="g" />}
                        <span class="ell">{a.name}</span>
                        <em class="mono">{a.why ?? a.hint}</em>
                    </li>
                ))}
                {all.length === 0 ? <li class="muted">Nothing has this name</li> : null}
            </ul>
        </div>
    );
}
export function palette(): void {
    dialog.value = () => <Dialog title="Search and commands" onClose={closeDialog}><Palette /></Dialog>;
}

const keys: [string, string][] = [
    ["⌘K", "Search, commands"], ["/", "Query"], ["j k", "Next, previous row"], ["Enter", "Open"], ["x", "Select a run"], ["g r", "Go to runs; i inbox, d definitions, h schedules, e incoming, c compare, q queues, o outbox, a alerts, u audit, v integrity, s store"],
    ["1 – 6", "Tabs of a run"], ["w l", "Why, logs of the step"], ["[ ]", "One moment back, forward"], ["{ }", "One state change"], ["Home End", "First, last moment"], ["Space", "Play; + − change the speed"], ["n", "Back to now"], ["f", "Fork from here"],
    ["+ − 0", "Zoom of the graph"], ["y Y", "Copy the command, the link"], ["t", "Theme"], ["Esc", "Close, leave the past, back"],
];
export function help(): void {
    dialog.value = () => (
        <Dialog title="Keys" onClose={closeDialog}>
            <dl class="help">{keys.map(([k, what]) => [<dt key={k}><kbd>{k}</kbd></dt>, <dd class="muted">{what}</dd>])}</dl>
            <label class="check"><input type="checkbox" checked={letters.value} onChange={(e) => { letters.value = e.currentTarget.checked; }} /> Keys of one letter</label>
        </Dialog>
    );
}

const goKeys: Record<string, string> = { r: "/runs", i: "/inbox", d: "/definitions", e: "/incoming", h: "/schedules", c: "/compare", q: "/queues", o: "/outbox", a: "/alerts", u: "/audit", v: "/integrity", s: "/store" };
let gAt = 0;
window.addEventListener("keydown", (e) => {
    if ((e.metaKey || e.ctrlKey) && e.key.toLowerCase() === "k") {
        e.preventDefault();
        palette();
        return;
    }
    const on = (e.composedPath()[0] ?? e.target) as HTMLElement; // the editor lives in a shadow root: outside of it its letters seem to come from its frame
    if (dialog.value || e.metaKey || e.ctrlKey || e.altKey) return;
    if (on.matches?.("input, textarea, select, [contenteditable]")) {
        if (e.key === "Escape") on.blur();
        return;
    }
    const single = e.key.length === 1;
    if (single && !letters.value) return;
    const after = performance.now() - gAt < 1200;
    gAt = 0;
    if (after && goKeys[e.key]) {
        e.preventDefault();
        return go(goKeys[e.key]!);
    }
    if (viewKeys.value?.(e)) {
        e.preventDefault();
        return;
    }
    if (e.key === "g") gAt = performance.now();
    else if (e.key === "?") help();
    else if (e.key === "t") switchTheme();
    else if (e.key === "y") void copy(command.value);
    else if (e.key === "Y") void copy(location.href, "Copied the link");
    else if (e.key === "/") {
        const field = document.querySelector<HTMLInputElement>("#q, .filter input, #find-step");
        if (!field) return;
        e.preventDefault();
        field.focus();
    } else if (e.key === "Escape" && place.value.path.length > 1) go("/" + place.value.path[0]);
});
