// Where two values or two texts differ. Pure.
export interface Change { path: string; kind: "added" | "removed" | "changed"; a?: unknown; b?: unknown }
export function diffJson(a: unknown, b: unknown, path = "$", out: Change[] = []): Change[] {
    if (out.length > 2000 || Object.is(a, b)) return out;
    const object = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null;
    if (object(a) && object(b) && Array.isArray(a) === Array.isArray(b)) {
        for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
            const at = Array.isArray(a) ? `${path}[${key}]` : `${path}.${key}`;
            if (!(key in a)) out.push({ path: at, kind: "added", b: b[key] });
            else if (!(key in b)) out.push({ path: at, kind: "removed", a: a[key] });
            else diffJson(a[key], b[key], at, out);
        }
        return out;
    }
    if (a === undefined) out.push({ path, kind: "added", b });
    else if (b === undefined) out.push({ path, kind: "removed", a });
    else out.push({ path, kind: "changed", a, b });
    return out;
}

export interface Row { kind: "equal" | "removed" | "added"; text: string; n: number }
// Lines of both texts by their longest common part; very long ones by their ends only.
export function diffLines(a: string, b: string): Row[] {
    const x = a.split("\n"), y = b.split("\n");
    let head = 0, tail = 0;
    while (head < x.length && head < y.length && x[head] === y[head]) head++;
    while (tail < x.length - head && tail < y.length - head && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail++;
    const p = x.slice(head, x.length - tail), q = y.slice(head, y.length - tail), out: Row[] = x.slice(0, head).map((text, i) => ({ kind: "equal", text, n: i + 1 }));
    if (p.length * q.length > 4e6) {
        out.push(...p.map((text, i): Row => ({ kind: "removed", text, n: head + i + 1 })), ...q.map((text, i): Row => ({ kind: "added", text, n: head + i + 1 })));
    } else {
        const w = q.length + 1, best = new Uint32Array((p.length + 1) * w);
        for (let i = p.length - 1; i >= 0; i--) for (let k = q.length - 1; k >= 0; k--) best[i * w + k] = p[i] === q[k] ? best[(i + 1) * w + k + 1]! + 1 : Math.max(best[(i + 1) * w + k]!, best[i * w + k + 1]!);
        let i = 0, k = 0;
        while (i < p.length || k < q.length) {
            if (i < p.length && k < q.length && p[i] === q[k]) { out.push({ kind: "equal", text: p[i]!, n: head + i + 1 }); i++; k++; }
            else if (i < p.length && (k >= q.length || best[(i + 1) * w + k]! >= best[i * w + k + 1]!)) { out.push({ kind: "removed", text: p[i]!, n: head + i + 1 }); i++; }
            else { out.push({ kind: "added", text: q[k]!, n: head + k + 1 }); k++; }
        }
    }
    out.push(...x.slice(x.length - tail).map((text, i): Row => ({ kind: "equal", text, n: x.length - tail + i + 1 })));
    return out;
}
