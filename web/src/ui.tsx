// Parts that every view is made of.
import { signal } from "@preact/signals";
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import { type AriaRole, type ButtonHTMLAttributes, Component, type ComponentChildren, createRef } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refusal, Unreachable } from "./api";
import { now, slowNow, utc } from "./prefs";
import { hidden, NOT_VISIBLE } from "./redacted";
import { Glyph, type State } from "./states";
import { absolute, ago, clock, day, span } from "./words";

const icons = {
    runs: "M2 4h12M2 8h12M2 12h7", defs: "M4 1.8h5.5L13 5.3v8.9H4zM9.3 2v3.5h3.4", inbox: "M2 9l2-6h8l2 6v4H2zM2 9h3.5c.3 1.4 1.2 2 2.5 2s2.2-.6 2.500-2H14",
    queue: "M2.500 3h11v3h-11zM2.500 10h11v3h-11zM5 6v4M11 6v4", out: "M2 8h9M8 4.500L11.500 8 8 11.500M14 3v10", bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2",
    shield: "M8 1.800l5 1.900v4c0 3-2 5.300-5 6.500-3-1.200-5-3.500-5-6.500v-4zM5.800 8l1.600 1.600L10.400 6.400", store: "M3 4c0-1.100 2.200-2 5-2s5 .9 5 2-2.200 2-5 2-5-.9-5-2zM3 4v8c0 1.100 2.200 2 5 2s5-.9 5-2V4M3 8c0 1.100 2.200 2 5 2s5-.9 5-2",
    cmp: "M5 2v9M2.500 8.500L5 11l2.500-2.500M11 14V5M8.500 7.500L11 5l2.500 2.500", audit: "M4 2h8v12H4zM6 5h4M6 8h4M6 11h2", find: "M7 12a5 5 0 1 1 0-10 5 5 0 0 1 0 10zM10.800 10.800L14 14",
    moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500z", x: "M4 4l8 8M12 4l-8 8", back: "M10 3L5 8l5 5", fwd: "M6 3l5 5-5 5", play: "M5 3l8 5-8 5z", stop: "M5.500 3.500v9M10.500 3.500v9",
    into: "M5.400 3.300a5.600 5.600 0 1 1 0 9.400M1.400 8h7.200M6 5.300L8.600 8 6 10.700",
    clock: "M8 14.200A6.200 6.200 0 1 1 8 1.800a6.200 6.200 0 0 1 0 12.400zM8 4.500V8l2.600 1.700",
    more: "M3 8h.01M8 8h.01M13 8h.01", down: "M4 6l4 4 4-4", right: "M6 4l4 4-4 4", plus: "M8 3v10M3 8h10", star: "M8 2l1.800 3.900 4.200.5-3.100 2.900.8 4.200L8 11.400l-3.700 2.100.8-4.200L2 6.400l4.200-.5z",
} as const;
export type IconName = keyof typeof icons;
export function Icon({ name }: { name: IconName }) {
    return (
        <svg viewBox="0 0 16 16" aria-hidden="true" class="i">
            <path fill="none" stroke="currentColor" stroke-width={name === "more" ? 2.4 : 1.4} stroke-linecap="round" stroke-linejoin="round" d={icons[name]} />
        </svg>
    );
}

type ButtonProps = Omit<ButtonHTMLAttributes, "type" | "disabled" | "kind"> & { why?: string | undefined; kind?: "pri" | "past" | "plain"; small?: boolean; type?: "button" | "submit"; disabled?: boolean };
// `why`: it cannot be pressed, and for which reason; the reason is its description for those who cannot see a tooltip.
export function Button({ why, kind, small, children, ...more }: ButtonProps) {
    const off = why !== undefined || more.disabled;
    return (
        <button type="button" {...more} class={"btn" + (kind ? " " + kind : "") + (small ? " sm" : "")} disabled={off} title={why ?? (more.title as string)} aria-label={why !== undefined && typeof children === "string" ? `${children} (${why})` : (more["aria-label"] as string)}>
            {children}
        </button>
    );
}

// ---- toast: one at a time; errors stay until they are closed

export const note = signal<{ text: string; bad: boolean; undo?: () => void } | null>(null);
let timer = 0;
export function toast(text: string, undo?: () => void): void {
    note.value = undo ? { text, bad: false, undo } : { text, bad: false };
    clearTimeout(timer);
    timer = window.setTimeout(() => { note.value = null; }, 4000);
}
export function trouble(error: unknown): void {
    clearTimeout(timer);
    note.value = { text: explain(error), bad: true };
}
export function explain(error: unknown): string {
    if (error instanceof Unreachable) return "The server does not answer.";
    const text = (error as Error).message || String(error);
    return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
export function Toast() {
    const now = note.value;
    return (
        <div role="status" aria-live="polite">
            {now ? (
                <div class={"toast" + (now.bad ? " bad" : "")}>
                    <span>{now.text}</span>
                    {now.undo ? <button class="link" onClick={() => { now.undo!(); note.value = null; }}>Undo</button> : null}
                    {now.bad ? <button class="icon" aria-label="Close" onClick={() => { note.value = null; }}><Icon name="x" /></button> : null}
                </div>
            ) : null}
        </div>
    );
}

export async function copy(text: string, said = "Copied: " + text): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
    } catch { // an origin without TLS has no clipboard; the old way works there
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
    toast(said);
}
export function Cmd({ text }: { text: string }) {
    return <button class="cmd" onClick={() => void copy(text)}><span>{text}</span><em>Copy</em></button>;
}

// ---- time

// On screen relative, in the title exact, and copied exact.
export function Time({ at }: { at: string | null | undefined }) {
    if (!at) return null;
    return <time dateTime={at} title={absolute(at)} onCopy={(e) => { e.clipboardData?.setData("text/plain", at); e.preventDefault(); }}>{ago(at, slowNow.value)}</time>;
}
export const Clock = ({ at, withDay }: { at: string; withDay?: boolean }) => <time dateTime={at} title={absolute(at)}>{withDay ? day(at, utc.value) + " " : ""}{clock(at, utc.value)}</time>;
// How long something has gone on.
export const Since = ({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) => (from ? <>{span((to ? Date.parse(to) : now.value) - Date.parse(from))}</> : null);

// ---- what is not there

export function Empty({ title, children, command, slim }: { title: string; children?: ComponentChildren; command?: string; slim?: boolean }) {
    return (
        <div class={slim ? "empty slim" : "empty"}>
            <b>{title}</b>
            {children ? <span>{children}</span> : null}
            {command ? <Cmd text={command} /> : null}
        </div>
    );
}
export function Skeleton({ rows = 8, height = 52 }: { rows?: number; height?: number }) {
    return (
        <div class="skeleton" role="status" aria-label="Loading">
            {Array.from({ length: rows }, (_, i) => <div style={{ height: height + "px" }} key={i}><i style={{ width: 30 + ((i * 37) % 50) + "%" }} /></div>)}
        </div>
    );
}
// Why there is nothing to show: who may not, what is gone, what does not answer.
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
    const refusal = error instanceof Refusal ? error : null;
    const title = refusal?.status === 403 ? "Your token may not see this" : refusal?.status === 404 ? "There is nothing here" : refusal?.status === 410 ? "Removed" : error instanceof Unreachable ? "The server does not answer" : "The server could not answer";
    return (
        <div class="empty" role="alert">
            <Glyph state="failed" />
            <b>{title}</b>
            <span>{explain(error)}</span>
            {refusal?.problem.requestId ? <span class="faint mono">request {refusal.problem.requestId}</span> : null}
            {again && refusal?.status !== 404 && refusal?.status !== 403 ? <Button onClick={again}>Try again</Button> : null}
        </div>
    );
}

// A view that fails says so in its own place, and stays failed until the reader goes elsewhere (another `key`): drawn anew at every turn
// of the page it would ask its questions anew each time.
export class Guarded extends Component<{ children: ComponentChildren }, { error: unknown }> {
    override state = { error: null as unknown };
    static override getDerivedStateFromError(error: unknown) { return { error }; }
    render() {
        return this.state.error ? <div class="pane"><div class="empty" role="alert"><Glyph state="failed" /><b>This view cannot be shown</b><span>{explain(this.state.error)}</span></div></div> : this.props.children;
    }
}

// What a promise gave, read again when `deps` change. What was there stays until the new is.
export function useAsked<T>(read: () => Promise<T>, deps: unknown[]): { value: T | undefined; error: unknown; again: () => void; busy: boolean } {
    const [state, set] = useState<{ value: T | undefined; error: unknown; busy: boolean }>({ value: undefined, error: undefined, busy: true });
    const [turn, again] = useState(0);
    useEffect(() => {
        let mine = true;
        set((s) => ({ ...s, busy: true }));
        read().then(
            (value) => { if (mine) set({ value, error: undefined, busy: false }); },
            (error) => { if (mine && (error as Error).name !== "AbortError") set((s) => ({ value: s.value, error, busy: false })); },
        );
        return () => { mine = false; };
    }, [...deps, turn]);
    return { ...state, again: () => again((n) => n + 1) };
}

// ---- dialog: what it will do, in words and as a command, before it does it

export function Dialog({ title, onClose, children, command, wide }: { title: string; onClose: () => void; children: ComponentChildren; command?: string | undefined; wide?: boolean }) {
    const box = useRef<HTMLDialogElement>(null);
    useLayoutEffect(() => {
        const before = document.activeElement as HTMLElement | null;
        box.current?.showModal();
        return () => before?.focus?.();
    }, []);
    return (
        <dialog ref={box} class={"dialog" + (wide ? " wide" : "")} aria-label={title} onCancel={(e) => { e.preventDefault(); onClose(); }} onClick={(e) => { if (e.target === box.current) onClose(); }}>
            <div class="dialog-in">
                <div class="row"><h2 class="grow">{title}</h2><button class="icon" aria-label="Close" onClick={onClose}><Icon name="x" /></button></div>
                {children}
            </div>
            {command ? <div class="cli in"><button onClick={() => void copy(command)} title="Copy"><span class="mono ell">{command}</span></button></div> : null}
        </dialog>
    );
}
export const dialog = signal<(() => ComponentChildren) | null>(null);
export const closeDialog = () => { dialog.value = null; };

export function Field({ label, hint, error, children }: { label: string; hint?: string | undefined; error?: string | undefined; children: ComponentChildren }) {
    return (
        <label class="field">
            <span class="lab">{label}</span>
            {children}
            {hint ? <span class="hint">{hint}</span> : null}
            {error ? <span class="err" role="alert"><Glyph state="failed" />{error}</span> : null}
        </label>
    );
}

// ---- long lists

interface VirtualProps { count: number; estimate: number; render: (index: number) => ComponentChildren; class?: string; head?: ComponentChildren; keyOf?: (index: number) => string | number; of?: unknown; showIndex?: number | null; role?: AriaRole; label?: string; stick?: boolean; foot?: ComponentChildren }
// Only what is on the screen is in the document. Rows may have any height: each is measured when it is shown.
export class Virtual extends Component<VirtualProps, { turn: number }> {
    override state = { turn: 0 }; // never empty: a component that reads signals is not drawn again for a state without members
    box = createRef<HTMLDivElement>();
    list: Virtualizer<HTMLDivElement, Element> | null = null;
    stop: (() => void) | undefined;
    shown: number | null | undefined;
    // The places of all rows are worked out anew when one of these functions is another one: they stay the same, and the one that names
    // rows changes with the list (`of`) alone. A hundred thousand rows would otherwise be gone through at every step of the wheel.
    private fixed = {
        getScrollElement: () => this.box.current, estimateSize: () => this.typical ?? this.props.estimate, overscan: 12, observeElementRect, observeElementOffset, scrollToFn: elementScroll,
        onChange: () => this.setState((s) => ({ turn: s.turn + 1 })), initialRect: { width: 800, height: 800 },
    };
    private typical: number | undefined; // the least height on the first screen: what most rows have, so that few have to move others
    private of: unknown;
    private key = (i: number) => this.props.keyOf?.(i) ?? i;
    options() {
        if (this.of !== this.props.of) {
            this.of = this.props.of;
            this.key = (i) => this.props.keyOf?.(i) ?? i;
        }
        return { ...this.fixed, count: this.props.count, getItemKey: this.key };
    }
    override componentDidMount() {
        this.list = new Virtualizer(this.options());
        this.stop = this.list._didMount();
        this.list._willUpdate();
        this.setState({ turn: 1 });
    }
    override componentDidUpdate() {
        this.list?._willUpdate();
        if (this.typical === undefined && this.list) {
            const heights = [...(this.box.current?.querySelectorAll<HTMLElement>(".virtual-row") ?? [])].map((row) => row.offsetHeight).filter((h) => h > 0);
            if (heights.length) {
                this.typical = Math.min(...heights);
                if (this.typical !== this.props.estimate) this.list.measure();
            }
        }
        const want = this.props.showIndex;
        if (want != null && want !== this.shown && want >= 0 && this.list && this.list.scrollElement) this.list.scrollToIndex(want, { align: "center" });
        this.shown = want;
        if (this.props.stick && this.list && this.props.count > 0) this.list.scrollToIndex(this.props.count - 1, { align: "end" });
    }
    override componentWillUnmount() { this.stop?.(); }
    render() {
        this.list?.setOptions(this.options());
        const items = this.list?.getVirtualItems() ?? [];
        return (
            <div class={"virtual " + (this.props.class ?? "")} ref={this.box} role={this.props.role} aria-label={this.props.label} aria-rowcount={this.props.role === "grid" || this.props.role === "treegrid" ? this.props.count : undefined} tabIndex={-1}>
                {this.props.head}
                <div class="virtual-in" role="presentation" style={{ height: (this.list?.getTotalSize() ?? 0) + "px" }}>
                    {items.map((item) => (
                        <div key={item.key as string} data-index={item.index} role="presentation" class="virtual-row" style={{ transform: `translateY(${item.start}px)` }} ref={(el) => { if (el) this.list?.measureElement(el); }}>
                            {this.props.render(item.index)}
                        </div>
                    ))}
                </div>
                {this.props.foot}
            </div>
        );
    }
}

// ---- JSON: folds, copies paths, never runs what is in it

const isSecret = (text: string) => /^secret:\/\/|^env:[A-Z_]+$/.test(text);
export const Hidden = () => <span class="faint">{NOT_VISIBLE}</span>;
function Leaf({ value }: { value: unknown }) {
    if (hidden(value)) return <Hidden />;
    if (typeof value === "string") return isSecret(value) ? <span class="j-secret">•••• {value}</span> : <span class="j-s">{JSON.stringify(value)}</span>;
    return <span class={value === null ? "j-n" : "j-v"}>{String(value)}</span>;
}
function Branch({ name, value, path, depth }: { name: string | null; value: unknown; path: string; depth: number }) {
    const [open, set] = useState(depth < 2);
    const [all, setAll] = useState(false);
    const key = name === null ? null : <button class="j-k" title={"Copy the path " + path} onClick={() => void copy(path)}>{name}</button>;
    if (typeof value !== "object" || value === null) return <div class="j-row">{key}{key ? ": " : ""}<Leaf value={value} /></div>;
    const entries = Array.isArray(value) ? value.map((v, i) => [String(i), v] as const) : Object.entries(value);
    const list = Array.isArray(value), shown = all ? entries : entries.slice(0, 200);
    return (
        <div>
            <div class="j-row">
                <button class="j-fold" aria-expanded={open} aria-label={(open ? "Fold " : "Unfold ") + (name ?? "value")} onClick={() => set(!open)}><Icon name={open ? "down" : "right"} /></button>
                {key}{key ? ": " : ""}<span class="faint">{list ? `[${entries.length}]` : entries.length ? `{${entries.length}}` : "{}"}</span>
            </div>
            {open ? (
                <div class="j-in">
                    {shown.map(([k, v]) => <Branch key={k} name={k} value={v} path={list ? `${path}[${k}]` : /^[A-Za-z_]\w*$/.test(k) ? `${path}.${k}` : `${path}[${JSON.stringify(k)}]`} depth={depth + 1} />)}
                    {shown.length < entries.length ? <button class="link" onClick={() => setAll(true)}>{entries.length - shown.length} more</button> : null}
                </div>
            ) : null}
        </div>
    );
}
export function Json({ value, root = "$" }: { value: unknown; root?: string }) {
    return <div class="json mono"><Branch name={null} value={value} path={root} depth={0} /></div>;
}
// A text that is JSON is shown as what it is.
export function parsed(value: unknown): unknown {
    if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
    try {
        return JSON.parse(value) as unknown;
    } catch {
        return value;
    }
}
export function Value({ value }: { value: unknown }) {
    const v = parsed(value);
    if (hidden(v)) return <p><Hidden /></p>;
    return typeof v === "string" ? <pre class="text">{v}</pre> : <Json value={v} />;
}

export function Seg<T extends string>({ value, items, onPick, label }: { value: T; items: [T, ComponentChildren, State?, (number | string | null)?][]; onPick: (value: T) => void; label: string }) {
    return (
        <div class="seg" role="group" aria-label={label}>
            {items.map(([key, text, state, n]) => (
                <button key={key} aria-pressed={key === value} onClick={() => onPick(key)}>
                    {state ? <Glyph state={state} /> : null}
                    {text}
                    {n !== undefined && n !== null ? <b class="num">{n}</b> : null}
                </button>
            ))}
        </div>
    );
}

export function Bar({ done, failed, running, skipped, total }: { done: number; failed: number; running: number; skipped: number; total: number }) {
    const part = (n: number, c: string) => (n > 0 ? <i class={"f-" + c} style={{ flex: n }} /> : null);
    return (
        <div class="bar" role="img" aria-label={`${done} done, ${failed} failed, ${running} running, ${skipped} skipped of ${total}`}>
            {part(done, "done")}{part(failed, "failed")}{part(running, "running")}{part(skipped, "skipped")}{part(Math.max(0, total - done - failed - running - skipped), "waiting")}
        </div>
    );
}
