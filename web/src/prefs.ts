// What belongs to this browser and to no address: theme, widths, saved views, the clock of tables.
import { effect, signal, type Signal } from "@preact/signals";

function kept<T>(name: string, start: T): Signal<T> {
    let value = start;
    try {
        const text = localStorage.getItem("cairn." + name);
        if (text !== null) value = JSON.parse(text) as T;
    } catch { /* a browser that keeps nothing, or something that is not ours */ }
    const own = signal(value);
    let first = true;
    effect(() => {
        const text = JSON.stringify(own.value);
        if (first) first = false;
        else
            try {
                localStorage.setItem("cairn." + name, text);
            } catch { /* it lasts as long as the tab then */ }
    });
    return own;
}

export const theme = kept<"system" | "light" | "dark">("theme", "system");
export const utc = kept("utc", true);
export const letters = kept("letters", true); // keys of one letter (WCAG 2.1.4)
export const drawerWidth = kept("drawer", 480);
export const views = kept<{ name: string; q: string }[]>("views", []);
export const recent = kept<{ id: string; plan: string }[]>("recent", []);

const dark = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(dark.matches);
dark.addEventListener("change", () => { systemDark.value = dark.matches; });
export const isDark = () => (theme.value === "system" ? systemDark.value : theme.value === "dark");
effect(() => { document.documentElement.dataset.theme = isDark() ? "dark" : "light"; });
export const switchTheme = () => { theme.value = isDark() ? "light" : "dark"; };

// The time that "13 min ago" is counted from: moves every second while something counts, so every ten seconds elsewhere.
export const now = signal(Date.now());
window.setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);
export const slowNow = signal(Date.now());
window.setInterval(() => { slowNow.value = Date.now(); }, 10000);
// How far the server's clock is from this one, from the Date of its answers; a warning stands above 30 s.
export const skew = signal(0);
