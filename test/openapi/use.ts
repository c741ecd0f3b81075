// The types of openapi-typescript at work: what does not fit the description does not compile.
import createClient from "openapi-fetch";
import type { paths } from "./api";

declare const process: { argv: string[]; exit(code: number): never };
const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const plan = { planId: "p", planVersion: "1", steps: [{ stepId: "a", kind: "noop" }] };

async function main(): Promise<void> {
    const started = await client.POST("/v1/runs", { body: { runId: "from-typescript", document: JSON.stringify(plan) } });
    if (!started.data) throw new Error(JSON.stringify(started.error));
    const id: string = started.data.runId;
    for (;;) {
        const run = await client.GET("/v1/runs/{run}/status", { params: { path: { run: id } } });
        if (!run.data) throw new Error(JSON.stringify(run.error));
        if (run.data.status === "COMPLETED") break;
        await new Promise((again) => setTimeout(again, 50));
    }
    const limit = await client.PUT("/v1/step-limits/{limit}", { params: { path: { limit: "ts" } }, body: { concurrency: 2 } });
    if (limit.data?.concurrency !== 2) throw new Error(JSON.stringify(limit.error));
    const absent = await client.GET("/v1/runs/{run}", { params: { path: { run: "nobody" } } });
    if (absent.error?.code !== "NOT_FOUND") throw new Error(`not a problem: ${JSON.stringify(absent)}`);
    console.log("typescript: ok");
}
main().catch((why) => {
    console.error(why);
    process.exit(1);
});
