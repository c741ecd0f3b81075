// Holds the fold in WebAssembly against what build/test/test/wasm/told says of the same bundle, line by line, byte by byte.
//
//   node compare.mjs WASM ENGINE.mjs BUNDLE TOLD     prints how much was compared; exits 1 when something differs
import { createReadStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [wasm, engine, bundle, told] = process.argv.slice(2);
const { FoldEngine } = await import(pathToFileURL(engine));
const fold = await FoldEngine.start(await WebAssembly.compile(readFileSync(wasm)));
const log = new Uint8Array(readFileSync(bundle));
const counts = { snapshot: 0, why: 0, verify: 0 };
let differ = 0;

function ask(what, run, at, step) {
    try {
        if (what === "snapshot") return fold.snapshotText(log, at, { run });
        if (what === "why") return fold.whyText(log, { run, step }, at);
        return fold.verifyText(log, { run });
    } catch (error) {
        return error.name === "FoldFailure" ? "failed" : `${error}`;
    }
}

for await (const line of createInterface({ input: createReadStream(told), crlfDelay: Infinity })) {
    const [what, run, at, step, ...rest] = line.split("\t");
    const theirs = rest.join("\t"), mine = ask(what, run, at, step);
    counts[what]++;
    if (mine === theirs) continue;
    let i = 0;
    while (mine[i] === theirs[i]) i++;
    if (differ++ < 3) console.error(`${what} ${run}/${step}@${at} differs at ${i}:\n  told ${theirs.slice(Math.max(0, i - 60), i + 200)}\n  fold ${mine.slice(Math.max(0, i - 60), i + 200)}`);
}
console.log(`${counts.snapshot} snapshots, ${counts.why} whys, ${counts.verify} proofs`);
process.exit(differ || counts.snapshot === 0 ? 1 : 0);
