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
// A definition in the address: /definitions/NAME, or /definitions/NAME/VERSION/PART. Names may hold slashes, which are borders of segments
// here as everywhere (a server takes no %2F): of an address that ends in a part, the last two segments are not of the name.
export const PARTS = ["source", "graph", "grid", "runs", "start"] as const;
export type DefinitionPart = (typeof PARTS)[number];
const isPart = (text: string | undefined): text is DefinitionPart => PARTS.includes(text as DefinitionPart);
export const LATEST = "latest";
// Versions are named by what an address can hold: the beginning of a hash is enough, and what has a slash goes by the hash of its bytes.
export function versionInAddress(version: string, sha?: string): string | null {
    if (/^[0-9a-f]{12,}$/.test(version)) return version.slice(0, 7);
    return version === "" || version === LATEST || /[/\\]|^\.{1,2}$/.test(version) ? (sha ? sha.slice(0, 7) : null) : version;
}
// Names that no path can hold (empty segments, dots) stand in the query.
export const unpathable = (name: string) => /[\\\u0000-\u001f\u007f]/.test(name) || name.split("/").some((s) => s === "" || s === "." || s === "..");
export function definitionAt({ path, query }: Place): { name: string; version: string | null; part: DefinitionPart } {
    const named = query.get("name");
    if (named !== null) return { name: named, version: query.get("version"), part: isPart(query.get("part") ?? "") ? (query.get("part") as DefinitionPart) : "source" };
    const rest = path.slice(1), part = rest.at(-1);
    if (rest.length < 3 || !isPart(part)) return { name: rest.join("/"), version: null, part: "source" };
    return { name: rest.slice(0, -2).join("/"), version: rest.at(-2) === LATEST ? null : rest.at(-2)!, part };
}
export function definitionHref(name: string, version: string | null = null, part: DefinitionPart = "source"): string {
    if (unpathable(name)) return "/definitions?" + new URLSearchParams({ name, ...(version ? { version } : {}), ...(part === "source" ? {} : { part }) }).toString();
    const segments = name.split("/"), plain = version === null && part === "source" && !(segments.length > 2 && isPart(segments.at(-1)));
    return "/definitions/" + [...segments, ...(plain ? [] : [version ?? LATEST, part])].map(encodeURIComponent).join("/");
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
