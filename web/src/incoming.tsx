// Events from outside: what was sent, who got it, and what nobody has taken yet.
import { useState } from "preact/hooks";
import { getJson, idOf, nameOf } from "./api";
import { place, setQuery } from "./route";
import { maySendEvent, sendEvent } from "./sending";
import { useCommand } from "./shell";
import { Glyph, type State } from "./states";
import { Table, useTurn } from "./tables";
import type { Incoming as Event } from "./types";
import { Button, Empty, Failure, Json, Seg, Skeleton, Time, useAsked } from "./ui";
import { short } from "./words";
import { visible } from "./redacted";

const shows: [string, string, State | undefined][] = [["all", "All", undefined], ["KEPT", "Kept", "waiting"], ["GIVEN", "On their way", "running"], ["DELIVERED", "Delivered", "done"]];
const glyphs: Record<string, [State, string]> = { KEPT: ["waiting", "kept"], GIVEN: ["running", "on its way"], DELIVERED: ["done", "delivered"] };

export function Incoming() {
    useCommand("cairn event ls", "Events from outside");
    const show = place.value.query.get("show") ?? "all", turn = useTurn(3000), [open, look] = useState<string | null>(null);
    const list = useAsked(() => getJson<{ items: Event[] }>("/v1/incoming?limit=200" + (show === "all" ? "" : "&state=" + show)), [turn, show]);
    return (
        <div class="page scroll">
            <div class="row"><h1 class="grow">Events from outside</h1><Button kind="pri" why={maySendEvent()} onClick={() => sendEvent(undefined, list.again)}>Send an event…</Button></div>
            <Seg label="State" value={show} onPick={(s) => setQuery({ show: s === "all" ? null : s })} items={shows.map(([k, t, s]) => [k, t, s])} />
            {list.error && !list.value ? <Failure error={list.error} again={list.again} /> : !list.value ? <Skeleton rows={3} /> : list.value.items.length === 0 ? (
                <Empty title={show === "KEPT" ? "Every event was taken" : show === "all" ? "No event has come" : "There is none"} command="cairn event send payment.received --correlation order-17">A step that waits for an event goes on when it comes. Events that come before anybody waits are kept here.</Empty>
            ) : (
                <Table label="Events from outside" head={[["Event"], ["Correlation"], ["State"], ["Taken by"], ["Received", "r"], ["", "r"]]}>
                    {list.value.items.map((e) => {
                        const [state, said] = glyphs[e.state] ?? ["unknown" as State, e.state];
                        return [
                            <tr key={e.id}>
                                <td><b class="mono" dir="auto">{e.name}</b>{e.source ? <span class="faint" dir="auto"> {e.source}</span> : null}</td>
                                <td class="mono muted word" dir="auto">{e.correlation === undefined ? "" : visible(e.correlation)}</td>
                                <td><span class="row"><Glyph state={state} />{said}</span></td>
                                <td>{e.runId ? <a class="link mono" href={`/runs/${idOf(e.runId)}${e.stepId ? "?step=" + encodeURIComponent(e.stepId) : ""}`}>{short(e.runId)}{e.stepId ? "/" + e.stepId : ""}</a> : <span class="faint">nobody yet</span>}</td>
                                <td class="r"><Time at={e.receivedAt} />{e.receivedBy ? <div class="faint">by {nameOf(e.receivedBy)}</div> : null}</td>
                                <td class="r"><Button small aria-expanded={open === e.id} onClick={() => look(open === e.id ? null : e.id)}>{open === e.id ? "Close" : "Look"}</Button></td>
                            </tr>,
                            open === e.id ? <tr key={e.id + "o"}><td colSpan={6}><Json value={e} /></td></tr> : null,
                        ];
                    })}
                </Table>
            )}
        </div>
    );
}
