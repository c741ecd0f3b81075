// The time-travel bar: a stop for every moment, a tick for every record. The track never moves under the pointer.
import { signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { setQuery } from "../route";
import { Icon } from "../ui";
import { clock, count } from "../words";
import type { Moment, RunModel } from "./model";

const playing = signal<number | null>(null), speed = signal(1);

const kind = (m: Moment) => (/^(workflow|playbook)|^Run|^RUN_/.test(m.entry.type) ? "run" : m.entry.state === "failed" ? "bad" : m.entry.state === "retrying" || m.entry.state === "paused" || m.entry.state === "cancelled" ? "warn" : m.entry.state === "done" ? "good" : m.entry.state === "running" ? "live" : "");
export const saying = (m: Moment) => m.entry.type.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().replace(/[_.]/g, " ") + (m.entry.step ? ", " + m.entry.step : "");

export function to(model: RunModel, index: number, how: "push" | "replace" = "push"): void {
    const all = model.moments.value, i = Math.max(0, Math.min(all.length - 1, index));
    setQuery({ at: i === all.length - 1 ? null : all[i]!.at }, how);
}
function change(model: RunModel, d: 1 | -1): void {
    const all = model.moments.value;
    let i = model.momentIndex.value + d;
    while (i > 0 && i < all.length - 1 && !["failed", "done", "retrying", "skipped", "cancelled", "paused", "approval"].includes(all[i]!.entry.state)) i += d;
    to(model, i);
}
function play(model: RunModel): void {
    if (playing.value !== null) {
        clearInterval(playing.value);
        playing.value = null;
        return;
    }
    if (!model.past.value) to(model, 0);
    const step = () => {
        const i = model.momentIndex.value;
        if (!model.past.value || i >= model.moments.value.length - 1) {
            clearInterval(playing.value!);
            playing.value = null;
        } else to(model, i + Math.max(1, Math.round(speed.value / 10)), "replace");
    };
    playing.value = window.setInterval(step, speed.value === 1 ? 400 : 120);
}
export function travelKeys(model: RunModel, e: KeyboardEvent): boolean {
    const i = model.momentIndex.value, onTrack = (e.target as Element).matches?.(".track");
    if (e.key === "[" || (e.key === "ArrowLeft" && onTrack)) to(model, i - 1);
    else if (e.key === "]" || (e.key === "ArrowRight" && onTrack)) to(model, i + 1);
    else if (e.key === "{") change(model, -1);
    else if (e.key === "}") change(model, 1);
    else if (e.key === "Home" && (onTrack || !(e.target as Element).closest?.(".virtual"))) to(model, 0);
    else if (e.key === "End" && (onTrack || !(e.target as Element).closest?.(".virtual"))) to(model, Infinity);
    else if (e.key === "n") setQuery({ at: null });
    else if (e.key === " " && !(e.target as Element).closest?.("button, a, [role=row], input")) play(model);
    else if (onTrack && (e.key === "+" || e.key === "-")) speed.value = e.key === "+" ? Math.min(100, speed.value * 10) : Math.max(1, speed.value / 10);
    else return false;
    return true;
}

export function Travel({ model }: { model: RunModel }) {
    const all = model.moments.value, i = model.momentIndex.value, past = model.past.value, now = all[i], track = useRef<HTMLDivElement>(null);
    const n = all.length, x = (k: number) => (n > 1 ? (k / (n - 1)) * 100 : 100) + "%", records = model.snapshot.value?.lastEventSeq ?? n;
    // Above 400 stops the ticks would touch: each of 200 columns is as loud as the loudest moment in it.
    const ticks = useMemo(() => {
        if (n <= 400) return all.map((m, k) => <i key={k} class={"tk " + kind(m)} style={{ left: x(k) }} />);
        const columns = 200, loud = ["", "live", "good", "warn", "run", "bad"], best = new Array<number>(columns).fill(-1), many = new Array<number>(columns).fill(0);
        all.forEach((m, k) => { const c = Math.min(columns - 1, Math.floor((k / n) * columns)); best[c] = Math.max(best[c]!, loud.indexOf(kind(m))); many[c]!; many[c] = (many[c] ?? 0) + 1; });
        return best.map((b, c) => (b < 0 ? null : <i key={c} class={"tk wide " + loud[b]} style={{ left: ((c + 0.5) / columns) * 100 + "%", width: 100 / columns + "%" }} />));
    }, [all]);
    if (n === 0) return <div class="tt" />;
    const seek = (clientX: number, how: "push" | "replace") => { const r = track.current!.getBoundingClientRect(); to(model, Math.round(((clientX - r.left) / r.width) * (n - 1)), how); };
    const press = (e: PointerEvent) => {
        seek(e.clientX, "push");
        const move = (m: PointerEvent) => seek(m.clientX, "replace");
        window.addEventListener("pointermove", move);
        window.addEventListener("pointerup", () => window.removeEventListener("pointermove", move), { once: true });
    };
    return (
        <div class="tt">
            <button class="icon" aria-label={playing.value === null ? "Play" : "Stop"} onClick={() => play(model)}><Icon name={playing.value === null ? "play" : "stop"} /></button>
            <button class="icon hide" aria-label="Back one moment" disabled={i === 0} onClick={() => to(model, i - 1)}><Icon name="back" /></button>
            <button class="icon hide" aria-label="Forward one moment" disabled={!past} onClick={() => to(model, i + 1)}><Icon name="fwd" /></button>
            <div class="track" ref={track} role="slider" tabIndex={0} aria-label="Moment of the run" aria-valuemin={1} aria-valuemax={n} aria-valuenow={i + 1} aria-valuetext={now ? `event ${now.at}, ${saying(now)}` : undefined} onPointerDown={press}>
                <div class="rail" /><div class="fill" style={{ width: x(i) }} />{ticks}<div class="thumb" style={{ left: x(i) }} />
            </div>
            <span class="when num" title={now ? now.entry.time : undefined}>{past && now ? <><b>Event {now.at}</b> of {records} <span class="hide">· {saying(now)}</span></> : <><b>{model.snapshot.value?.completedAt ? "End" : "Now"}</b> · {count(records, "event")}{speed.value > 1 ? ` · ${speed.value}×` : ""}</>}</span>
            {past && now ? <span class="sr" aria-live="polite">{clock(now.entry.time)}</span> : null}
        </div>
    );
}
