// What stands around every view: navigation, the freshness of what is shown, search, and the command of what is on the screen.
import { computed, effect, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { getJson, me } from "./api";
import { fresh, resyncs, retryNow } from "./live";
import { help, palette } from "./palette";
import { now, switchTheme } from "./prefs";
import { go, place } from "./route";
import { needsPerson } from "./redacted";
import { copy, dialog, Icon, type IconName, note, Toast } from "./ui";
import { clock, span } from "./words";
import type { RunRow } from "./types";

// What the view on screen says about itself; the shell shows it.
export const command = signal("cairn ls");
export const inPast = signal(false);
export function useCommand(text: string, title: string): void {
    useEffect(() => {
        command.value = text;
        document.title = title ? title + " · Cairn" : "Cairn";
    }, [text, title]);
}

// How many runs wait for a person; read when something has moved, at most every few seconds.
export const gates = signal<number | null>(null);
export const moved = signal(0);
let asked = 0, later = 0;
async function countGates(): Promise<void> {
    clearTimeout(later);
    const wait = asked + 4000 - Date.now();
    if (wait > 0) {
        later = window.setTimeout(() => void countGates(), wait);
        return;
    }
    asked = Date.now();
    try {
        const page = await getJson<{ items: RunRow[]; total?: number }>("/v1/runs?limit=1&count=estimate&fields=runId&q=" + encodeURIComponent(`status=active (${needsPerson()})`));
        gates.value = page.total ?? page.items.length;
    } catch { /* the badge stays as it was; the view itself says what is wrong */ }
}
effect(() => {
    void moved.value;
    void resyncs.value;
    if (me.value) void countGates();
});

interface Entry { name: string; icon: IconName; path: string; key: string; extra?: boolean }
export const entries: (Entry | null)[] = [
    { name: "Runs", icon: "runs", path: "/runs", key: "g r" },
    { name: "Inbox", icon: "inbox", path: "/inbox", key: "g i" },
    { name: "Definitions", icon: "defs", path: "/definitions", key: "g d" },
    { name: "Schedules", icon: "clock", path: "/schedules", key: "g h", extra: true },
    { name: "Incoming", icon: "into", path: "/incoming", key: "g e", extra: true },
    { name: "Compare", icon: "cmp", path: "/compare", key: "g c" },
    null,
    { name: "Queues & workers", icon: "queue", path: "/queues", key: "g q", extra: true },
    { name: "Outbox", icon: "out", path: "/outbox", key: "g o", extra: true },
    { name: "Alerts", icon: "bell", path: "/alerts", key: "g a", extra: true },
    { name: "Audit", icon: "audit", path: "/audit", key: "g u", extra: true },
    { name: "Integrity", icon: "shield", path: "/integrity", key: "g v", extra: true },
    { name: "Store", icon: "store", path: "/store", key: "g s", extra: true },
];

function Mark() {
    return (
        <svg viewBox="0 0 24 24" aria-hidden="true" class="logo">
            <ellipse cx="12" cy="5" rx="3.6" ry="2.4" fill="currentColor" />
            <ellipse cx="12.6" cy="11.2" rx="6" ry="2.9" fill="currentColor" opacity=".8" />
            <ellipse cx="12" cy="18.6" rx="9.4" ry="3.6" fill="currentColor" opacity=".6" />
        </svg>
    );
}
export { Mark };

const current = computed(() => "/" + (place.value.path[0] ?? "runs"));
const moreOpen = signal(false);

function Nav() {
    const who = me.value;
    return (
        <nav class="nav" aria-label="Main">
            <a class="brand" href="/runs" aria-label="cairn, runs"><Mark /><span>cairn</span></a>
            {entries.map((e, i) =>
                e ? (
                    <a key={e.path} href={e.path} title={e.name} class={(e.extra ? "x " : "") + (e.path === "/inbox" && gates.value ? "need" : "")} aria-current={current.value === e.path ? "page" : undefined}>
                        <Icon name={e.icon} /><span>{e.name}</span>
                        {e.path === "/inbox" && gates.value ? <i class="badge hot" aria-label={gates.value + " wait for a person"}>{gates.value}</i> : null}
                    </a>
                ) : <div class="sep" key={i} />,
            )}
            <button class="nav-more" aria-expanded={moreOpen.value} onClick={() => { moreOpen.value = !moreOpen.value; }}><Icon name="more" /><span>More</span></button>
            {moreOpen.value ? (
                <div class="sheet" onClick={() => { moreOpen.value = false; }}>
                    {entries.filter((e): e is Entry => !!e?.extra).map((e) => <a href={e.path} key={e.path}><Icon name={e.icon} /><span>{e.name}</span></a>)}
                    <button onClick={() => void copy(command.value)}><Icon name="defs" /><span>Copy the command of this view</span></button>
                </div>
            ) : null}
            {who ? <div class="where" title="Sign out: ⌘K"><b>{who.tenantId ?? "default"}</b>{who.projects?.length ? " · " + who.projects.join(", ") : ""}<br /><span class="ell" title={"Signed in as " + who.id}>{who.roles.filter((r) => r !== "Worker" && r !== "Platform").join(", ") || who.roles.join(", ")}</span></div> : null}
        </nav>
    );
}

function Freshness() {
    if (inPast.value) return <span class="fresh past"><i />In the past</span>;
    const f = fresh.value;
    if (f.state === "live") return <span class="fresh live" title="Every event arrives as it is stored"><i />Live</span>;
    if (f.state === "polling") return <span class="fresh polling" title="Too many events to show each: read again every 5 s"><i />Polling</span>;
    if (f.state === "stale") return <span class="fresh stale" title={f.last ? "The last event seen is " + f.last : "Nothing was seen yet"}><i />Stale – resyncing</span>;
    return (
        <span class="fresh offline" title={"Since " + clock(f.since).slice(0, 8) + " UTC"}>
            <i />Offline for {span(Math.max(1000, now.value - f.since)).replace(/\.\d s/, " s")}
            <button class="link" onClick={retryNow}>Retry</button>
        </span>
    );
}

// What is on the screen stays; that it may be old is said where it is looked at.
function StaleBanner() {
    const f = fresh.value, long = now.value - f.since > 1500; // a blink is no news
    if (f.state === "stale" && f.last > 0 && long) return <div class="banner warn" role="status">The connection was cut. What you see is from before; it is read again as soon as the server answers.</div>;
    if (f.state === "offline") return <div class="banner bad" role="alert">The server does not answer since {clock(f.since).slice(0, 8)} UTC. What you see is from before.</div>;
    return null;
}

export function Shell({ crumb, children }: { crumb: ComponentChildren; children: ComponentChildren }) {
    return (
        <div class={"app" + (inPast.value ? " past-on" : "")}>
            <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
            <Nav />
            <header class="top">
                <div class="crumb grow">{crumb}</div>
                <Freshness />
                <button class="find" onClick={() => palette()} aria-label="Search or run a command ⌘K"><Icon name="find" /><span>Search or run a command</span><kbd>⌘K</kbd></button>
                <button class="icon" aria-label="Light or dark" title="Light or dark (t)" onClick={switchTheme}><Icon name="moon" /></button>
            </header>
            <main class="main" id="main" tabIndex={-1}><StaleBanner />{children}</main>
            <footer class="cli">
                <button onClick={() => void copy(command.value)} title="Copy"><span class="mono ell">{command.value}</span><span class="copy">Copy</span></button>
                <span class="keys"><button onClick={() => help()}><kbd>?</kbd> keys</button></span>
            </footer>
            <Toast />
            {dialog.value ? dialog.value() : null}
        </div>
    );
}
export const home = () => go("/runs");
export const dismissNote = () => { note.value = null; };
