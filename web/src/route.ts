// Where the reader is: path and query, nothing else. Filters, tab, step and moment are in the address; only ids, never data.
import { computed, signal } from "@preact/signals";

export interface Place { path: string[]; query: URLSearchParams; hash: string }
const read = (): Place => ({ path: location.pathname.split("/").filter(Boolean).map(safe), query: new URLSearchParams(location.search), hash: location.hash });
function safe(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

export const place = signal<Place>(read());
export const param = (name: string) => computed(() => place.value.query.get(name));
window.addEventListener("popstate", () => { place.value = read(); });

export function go(url: string, how: "push" | "replace" = "push"): void {
    if (url === location.pathname + location.search + location.hash) return;
    history[how === "push" ? "pushState" : "replaceState"](null, "", url);
    place.value = read();
}
// The present address with other parameters; null takes one away.
export function withQuery(change: Record<string, string | null>, path = location.pathname, hash = ""): string {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(change)) value === null ? query.delete(name) : query.set(name, value);
    // Commas, colons and comparisons read better as they are; all of them are allowed in a query.
    const text = query.toString().replace(/%3D/g, "=").replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%40/g, "@").replace(/%2F/g, "/");
    return path + (text ? "?" + text : "") + hash;
}
export const setQuery = (change: Record<string, string | null>, how: "push" | "replace" = "push") => go(withQuery(change), how);

// Links of the page are followed here; those of a browser's own (another tab, a download) are left to it.
window.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a[href^='/']");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.hasAttribute("download") || link.getAttribute("target")) return;
    event.preventDefault();
    go(link.getAttribute("href")!);
});
