// Files that steps left: by name and size, to keep. The log has them as addresses; the server says which of them it has, and their names.
import { download, getJson, idOf, mayDo } from "../api";
import { hidden } from "../redacted";
import { explain, Hidden, trouble, useAsked } from "../ui";
import { bytes } from "../words";

interface Left { name: string; stepId: string; sizeBytes?: number; sha256?: string; state: string }
// As the fold has them; from a role that may not see them they are kept back.
type Refs = { uri?: string; sizeBytes?: number }[] | string | undefined;

export function Files({ run, refs, step }: { run: string; refs: unknown; step?: string }) {
    const told = refs as Refs, list = Array.isArray(told) ? told : [], may = mayDo("artifact.get");
    const left = useAsked(async () => (list.length && may ? (await getJson<{ items: Left[] }>(`/v1/runs/${idOf(run)}/artifacts`)).items : []), [run, step, list.length, may]);
    if (hidden(told)) return <div class="sec"><h3>Files</h3><p><Hidden /></p></div>;
    if (!list.length) return null;
    const row = (r: (typeof list)[number], i: number) => {
        const uri = r.uri ?? "", own = left.value?.find((l) => (step === undefined || l.stepId === step) && uri.endsWith("/" + l.name)), size = own?.sizeBytes ?? r.sizeBytes;
        const about = [step === undefined ? own?.stepId : "", size !== undefined ? bytes(size) : "", own && own.state !== "ok" ? own.state : "", own?.sha256?.slice(0, 12)].filter(Boolean).join(" · ");
        const keep = (l: Left) => void download(`/v1/runs/${idOf(run)}/artifacts/content?name=${encodeURIComponent(l.name)}&step=${encodeURIComponent(l.stepId)}`, l.name.split("/").at(-1)!).catch(trouble);
        return <div key={i} class="dep">{own ? <button class="link mono" title={"Download " + own.name} onClick={() => keep(own)}>{own.name}</button> : <span class="mono">{uri}</span>}<span class="faint mono">{about}</span></div>;
    };
    return <div class="sec"><h3>Files</h3>{list.slice(0, 100).map(row)}{left.error ? <p class="muted">{explain(left.error)}</p> : null}</div>;
}
