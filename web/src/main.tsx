import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { me, session } from "./api";
import "./prefs";
import { definitionAt, place, go } from "./route";
import { Runs } from "./runs";
import { Shell } from "./shell";
import { SignIn, takeTicket, whoAmI } from "./signin";
import "./styles.css";
import { Empty, Failure, Skeleton } from "./ui";
import type { ComponentType } from "preact";

// Views that are not the first are loaded when they are gone to.
type View = { crumb: string; deep?: boolean; /* a second part of its path is a name */ load: () => Promise<ComponentType> };
const later: Record<string, View> = {
    inbox: { crumb: "Inbox", load: () => import("./inbox").then((m) => m.Inbox) },
    definitions: { crumb: "Definitions", deep: true, load: () => import("./definitions").then((m) => m.Definitions) },
    schedules: { crumb: "Schedules", deep: true, load: () => import("./schedules").then((m) => m.Schedules) },
    incoming: { crumb: "Incoming", load: () => import("./incoming").then((m) => m.Incoming) },
    compare: { crumb: "Compare", load: () => import("./compare").then((m) => m.Compare) },
    queues: { crumb: "Queues & workers", load: () => import("./queues").then((m) => m.Queues) },
    outbox: { crumb: "Outbox", load: () => import("./admin").then((m) => m.Outbox) },
    alerts: { crumb: "Alerts", load: () => import("./admin").then((m) => m.Alerts) },
    audit: { crumb: "Audit", load: () => import("./admin").then((m) => m.Audit) },
    store: { crumb: "Store", load: () => import("./admin").then((m) => m.Store) },
    integrity: { crumb: "Integrity", load: () => import("./integrity").then((m) => m.Integrity) },
};
const loaded = new Map<string, ComponentType>();

function Later({ name, view }: { name: string; view: View }) {
    const [, turn] = useState(0);
    const [error, fail] = useState<unknown>(null);
    useEffect(() => {
        if (!loaded.has(name)) view.load().then((v) => { loaded.set(name, v); turn((n) => n + 1); }, fail);
    }, [name]);
    const Found = loaded.get(name);
    if (Found) return <Found />;
    return error ? <Failure error={error} /> : <Skeleton />;
}
const runView: View = { crumb: "Runs", load: () => import("./run/run").then((m) => m.Run) };

function App() {
    const [first, second] = place.value.path;
    useEffect(() => { if (!first) go("/runs" + location.search, "replace"); }, [first]);
    if (session.value === "unknown") return null;
    if (session.value === "out" && !me.value) return <SignIn />;
    let view;
    if (!first || (first === "runs" && !second)) view = <Shell crumb="Runs"><Runs /></Shell>;
    else if (first === "runs") view = <Later name="run" view={runView} />;
    else if (later[first]) view = <Shell crumb={(second || place.value.query.has("name")) && later[first]!.deep ? <><a href={"/" + first}>{later[first]!.crumb}</a><span class="faint">/</span><span class="ell" dir="auto">{first === "definitions" ? definitionAt(place.value).name : second}</span></> : later[first]!.crumb}><Later name={first} view={later[first]!} key={first} /></Shell>;
    else view = <Shell crumb="Not found"><Empty title="There is no such page"><a class="link" href="/runs">Runs</a></Empty></Shell>;
    return <>{view}{session.value === "out" ? <SignIn /> : null}</>;
}

async function begin(): Promise<void> {
    await takeTicket();
    for (;;)
        try {
            await whoAmI();
            return;
        } catch {
            await new Promise((r) => setTimeout(r, 1000));
        }
}
// The view that the address names is loaded while the server is asked who reads.
const wanted = place.value.path[1] && place.value.path[0] === "runs" ? runView : later[place.value.path[0] ?? ""];
void wanted?.load().catch(() => {});
const app = document.getElementById("app");
if (app) render(<App />, app);
void begin();
