// What the run was given, what came of it, and the document that says what it does.
import { idOf } from "../api";
import { ask, download, getJson, me, refusalOf } from "../api";
import type { Step } from "../types";
import { Button, copy, Empty, explain, Json, Skeleton, trouble, useAsked, Value } from "../ui";
import { bytes, sha7 } from "../words";
import type { TabProps } from "./run";

export function InputOutput({ model, run, items }: TabProps) {
    const id = model.id, live = model.snapshot.value!;
    const given = useAsked(() => getJson<{ inputs: Record<string, unknown>; arguments?: string }>(`/v1/runs/${idOf(id)}/payload`), [id]);
    const sha = (live.planRef as { sha256?: string } | undefined)?.sha256;
    const document = useAsked(async () => {
        if (!sha) throw new Error("the log does not say which document it was");
        const answer = await ask(`/v1/store/runs/${idOf(id)}/${me.value?.payloads === false ? "redacted/" : ""}blobs/${sha}`);
        if (!answer.ok) throw await refusalOf(answer);
        return answer.text();
    }, [id, sha]);
    // The output of a run is that of its last steps: those on which nothing depends.
    const used = new Set(model.graph.value?.arcs.map((a) => a.from));
    const last = [...items.values()].filter((i) => !used.has(i.id) && !/\[\d+\]/.test(i.id));
    const artifacts = (run.artifacts ?? []) as { name?: string; path?: string; stepId?: string; sizeBytes?: number }[];
    return (
        <div class="pane">
            <div class="cols">
                <section class="card" aria-label="Input"><h3>Input</h3>{given.error ? <p class="muted">{explain(given.error)}</p> : given.value ? (Object.keys(given.value.inputs).length ? <Json value={given.value.inputs} root="$INPUTS" /> : <p class="muted">It was given nothing.</p>) : <Skeleton rows={2} height={28} />}{given.value?.arguments ? <p class="mono">{given.value.arguments}</p> : null}</section>
                <section class="card" aria-label="Output">
                    <h3>Output</h3>
                    {last.some((i) => i.step.result !== undefined) ? last.filter((i) => i.step.result !== undefined).slice(0, 50).map((i) => <div key={i.id} class="out"><b dir="auto">{i.id}</b><Value value={(i.step as Step).result} /></div>) : <p class="muted">{["COMPLETED", "FAILED", "CANCELLED"].includes(run.status) ? "Its last steps gave nothing." : "Nothing yet: its last steps have not ended."}</p>}
                    {artifacts.length ? <><h3>Files</h3>{artifacts.slice(0, 100).map((a, n) => { const name = a.name ?? a.path ?? ""; return <div class="row" key={n}><button class="link mono" onClick={() => void download(`/v1/runs/${idOf(id)}/artifacts/content?name=${encodeURIComponent(name)}`, name).catch(trouble)}>{name}</button><span class="faint">{a.stepId}{a.sizeBytes !== undefined ? " · " + bytes(a.sizeBytes) : ""}</span></div>; })}</> : null}
                </section>
                <section class="card wide" aria-label="Document">
                    <div class="row"><h3 class="grow">Document <span class="mono">@{sha7(sha ?? "")}</span></h3>{document.value ? <Button small onClick={() => void copy(document.value!, "Copied the document")}>Copy</Button> : null}<a class="btn sm" href={"/definitions/" + encodeURIComponent(live.planId ?? "")}>Definition</a></div>
                    {document.error ? <p class="muted">{explain(document.error)}</p> : document.value !== undefined ? <pre class="text doc" tabIndex={0}>{document.value}</pre> : <Skeleton rows={4} height={24} />}
                </section>
            </div>
            {items.size === 0 ? <Empty title="Nothing has started" /> : null}
        </div>
    );
}
