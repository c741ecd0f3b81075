// The TypeScript client as the conformance suite drives it: adapter client URL, adapter worker URL NAME.
import { appendFileSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { Client, Permanent, Problem, Retryable, RunFailed, Worker, parse, stringify } from "../typescript/src/index.js";

const [role, url, name] = process.argv.slice(2) as [string, string, string];
const token = process.env.CAIRN_TOKEN;

async function answer(client: Client, request: any): Promise<unknown> {
    const run = client.run(request.run ?? "");
    switch (request.op) {
        case "start":
            return (await client.start({ document: request.document, inputs: request.inputs, runId: request.run, key: request.key })).id;
        case "wait":
            return (await run.wait({ timeout: request.timeout, check: false })).status;
        case "wait-checked":
            try {
                return (await run.wait()).status;
            } catch (failed) {
                if (failed instanceof RunFailed) return `raised ${failed.snapshot.status}`;
                throw failed;
            }
        case "status":
            return (await run.status()).status;
        case "events": {
            const seen: string[] = [];
            for await (const event of run.events(request.after)) seen.push(event.eventType);
            return seen;
        }
        case "output":
            return run.output(request.step);
        case "logs":
            return run.logs(request.step);
        case "signal":
            return (await run.signal(request.type, { payload: request.payload, step: request.step, reason: request.reason, id: request.id })).decision;
        case "runs": {
            const found: string[] = [];
            for await (const row of client.runs(request.q, { limit: 3 })) found.push((row as any).runId);
            return found;
        }
        case "async": {
            const runs = await Promise.all([0, 1, 2].map((n) => client.start({ document: request.document, inputs: { n } })));
            const ends = await Promise.all(runs.map((one) => one.wait()));
            let last = "";
            for await (const event of runs[0]!.events()) last = event.eventType;
            return [...ends.map((end) => end.status), last];
        }
    }
    throw new Error(request.op);
}

async function client(): Promise<void> {
    const service = new Client({ url, token });
    for await (const line of createInterface({ input: process.stdin })) {
        const request: any = parse(line);
        answer(service, request).then(
            (value) => ({ value }),
            (fault) => (fault instanceof Problem ? { code: fault.code, status: fault.status } : { code: fault?.name ?? "Error", detail: String(fault?.message) }),
        ).then((said) => process.stdout.write(`${stringify({ call: request.call, ...said })}\n`));
    }
}

async function worker(): Promise<void> {
    const served = new Worker({ url: url.split(","), token, name, concurrency: 4 });
    const until = async (mark: string, task: any) => {
        appendFileSync(`${mark}.begun`, `${name}\n`);
        while (!existsSync(mark)) await task.sleep(50);
        return name;
    };
    served.step("mirror", (given) => given);
    served.step("big", (given) => "x".repeat(given.bytes));
    served.step("slow", (given, task) => {
        task.log(`slow in ${name}`);
        return until(given.mark, task);
    });
    served.step("waiting", async (given, task) => {
        task.signal.addEventListener("abort", () => appendFileSync(`${given.mark}.cancelled`, `${name}\n`));
        return until(given.mark, task);
    });
    served.step("flaky", (_, task) => {
        if (task.attempt < 3) throw new Retryable("not yet");
        return task.attempt;
    });
    served.step("broken", () => {
        throw new Permanent("never", "BROKEN");
    });
    served.step("shaky", () => {
        throw new Retryable("not now", "SHAKY");
    });
    served.step("notjson", () => new Set([1, 2]));
    process.stdout.write("ready\n");
    await served.run();
}

await { client, worker }[role]!();
