// How numbers, times and texts of programs are written. One name per thing, one form per number.
import { visible } from "./redacted";

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const two = (n: number) => String(n).padStart(2, "0");

// 829 ms · 10.8 s · 12m 56s · 3h 47m · 4d 2h
export function span(ms: number | null | undefined): string {
    if (ms == null || Number.isNaN(ms)) return "";
    if (ms < 0) ms = 0;
    if (ms < SECOND) return Math.round(ms) + " ms";
    if (ms < MINUTE) return (Math.floor(ms / 100) / 10).toFixed(1) + " s";
    if (ms < HOUR) return Math.floor(ms / MINUTE) + "m " + two(Math.floor(ms / SECOND) % 60) + "s";
    if (ms < DAY) return Math.floor(ms / HOUR) + "h " + (Math.floor(ms / MINUTE) % 60) + "m";
    return Math.floor(ms / DAY) + "d " + (Math.floor(ms / HOUR) % 24) + "h";
}

export function ago(time: string, now: number): string {
    const ms = now - Date.parse(time);
    if (ms < 10 * SECOND) return ms < -MINUTE ? "in " + span(-ms) : "just now";
    if (ms < MINUTE) return Math.floor(ms / SECOND) + " s ago";
    if (ms < HOUR) return Math.floor(ms / MINUTE) + " min ago";
    if (ms < DAY) return Math.floor(ms / HOUR) + " h ago";
    return Math.floor(ms / DAY) + " d ago";
}

// Until a deadline, rounded so that it does not flicker: 3h 47m, 49 s.
export function left(ms: number): string {
    if (ms <= 0) return "now";
    return ms < MINUTE ? Math.ceil(ms / SECOND) + " s" : span(ms);
}

const local = (t: Date) => new Date(t.getTime() - t.getTimezoneOffset() * MINUTE).toISOString();
// 10:22:35.068, in UTC or in the reader's zone
export function clock(time: string | number, utc = true): string {
    const t = new Date(time);
    return Number.isNaN(t.getTime()) ? String(time) : (utc ? t.toISOString() : local(t)).slice(11, 23);
}
export function day(time: string | number, utc = true): string {
    const t = new Date(time);
    return Number.isNaN(t.getTime()) ? String(time) : (utc ? t.toISOString() : local(t)).slice(0, 10);
}
// With milliseconds and zone, for titles and for copying.
export const absolute = (time: string) => time.replace("T", " ").replace("Z", " UTC");

// JSON that a program wrote in one line, laid out for people; anything else as it is.
export function laidOut(text: string): string {
    if (!/^\s*[[{]/.test(text) || text.trim().includes("\n")) return text;
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}
export const short = (id: string) => (/^[0-9a-f]{8}-[0-9a-f]{4}-/.test(id) ? id.slice(0, 8) : id);
export const sha7 = (version: string) => version.slice(0, 7);

export const count = (n: number, one: string, many = one + "s") => n.toLocaleString("en-US") + " " + (n === 1 ? one : many);

export function bytes(n: number): string {
    if (n < 1024) return n + " B";
    const units = ["KiB", "MiB", "GiB", "TiB"];
    let i = -1;
    do {
        n /= 1024;
        i++;
    } while (n >= 1024 && i < units.length - 1);
    return (n < 10 ? n.toFixed(1) : Math.round(n).toString()) + " " + units[i];
}

// Escape sequences of terminals, for places that show one line.
// eslint-disable-next-line no-control-regex
export const strip = (text: string | null | undefined) => visible(text ?? "").replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "").replace(/\u001b./g, "").replace(/ ?\[[0-9]{1,2}(?:;[0-9]{1,3})*m/g, "");

// What a program said last: the first line, without the words that the state says already.
export const oneLine = (text: string | null | undefined) => strip(text).split("\n", 1)[0] ?? "";

export function sentence(text: string): string {
    return text.charAt(0).toUpperCase() + text.slice(1);
}

// As the terminal wants it: words with anything unusual in them in quotes.
export const shellWord = (text: string) => (/^[\w@%+=:,./#-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'");

const pairs = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));
export function hex(bytes: ArrayBuffer): string {
    let out = "";
    for (const b of new Uint8Array(bytes)) out += pairs[b];
    return out;
}
