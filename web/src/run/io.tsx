// What the run was given, what came of it, and the document that says what it does.
import { ask, getJson, idOf, mayDo, me, refusalOf } from "../api";
import { definitionHref, versionInAddress } from "../route";
import type { Step } from "../types";
import { Button, copy, Empty, explain, Hidden, Json, Skeleton, useAsked, Value } from "../ui";
import { laidOut, sha7 } from "../words";
import { Files } from "./files";
import type { TabProps } from "./run";

// What the run was given, for those who may see it.
export function Given({ run }: { run: string }) {
    const may = mayDo("run.payload");
    const given = useAsked(async () => (may ? getJson<{ inputs: Record<string, unknown>; arguments?: string }>(`/v1/runs/${idOf(run)}/payload`) : null), [run, may]);
    if (!may) return <p><Hidden /></p>;
    if (given.error) return <p class="muted">{explain(given.error)}</p>;
    if (!given.value) return <Skeleton rows={2} height={28} />;
    return <>{Object.keys(given.value.inputs).length ? <Json value={given.value.inputs} root="$INPUTS" /> : <p class="muted">It was given nothing.</p>}{given.value.arguments ? <p class="mono">{given.value.arguments}</p> : null}</>;
}

export function InputOutput({ model, run, items }: TabProps) {
    const id = model.id, live = model.snapshot.value!;
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
    return (
        <div class="pane">
            <div class="cols">
                <section class="card" aria-label="Input"><h3>Input</h3><Given run={id} /></section>
                <section class="card" aria-label="Output">
                    <h3>Output</h3>
                    {last.some((i) => i.step.result !== undefined) ? last.filter((i) => i.step.result !== undefined).slice(0, 50).map((i) => <div key={i.id} class="out"><b dir="auto">{i.id}</b><Value value={(i.step as Step).result} /></div>) : <p class="muted">{["COMPLETED", "FAILED", "CANCELLED"].includes(run.status) ? "Its last steps gave nothing." : "Nothing yet: its last steps have not ended."}</p>}
                    <Files run={id} refs={run.artifacts} />
                </section>
                <section class="card wide" aria-label="Document">
                    <div class="row"><h3 class="grow">Document <span class="mono">@{sha7(sha ?? "")}</span></h3>{document.value ? <Button small onClick={() => void copy(document.value!, "Copied the document")}>Copy</Button> : null}<a class="btn sm" href={definitionHref(live.planId ?? "", versionInAddress(live.planVersion ?? "", sha))}>Definition</a></div>
                    {document.error ? <p class="muted">{explain(document.error)}</p> : document.value !== undefined ? <pre class="text doc" tabIndex={0}>{laidOut(document.value)}</pre> : <Skeleton rows={4} height={24} />}
                </section>
            </div>
            {items.size === 0 ? <Empty title="Nothing has started" /> : null}
        </div>
    );
}
