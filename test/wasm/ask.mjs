// One question to the fold: node ask.mjs WASM ENGINE.mjs BUNDLE snapshot|why|verify [MOMENT [STEP]]
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [wasm, engine, bundle, what, at, step] = process.argv.slice(2);
const { FoldEngine } = await import(pathToFileURL(engine));
const fold = await FoldEngine.start(await WebAssembly.compile(readFileSync(wasm)));
const log = new Uint8Array(readFileSync(bundle));
try {
    if (what === "snapshot") console.log(fold.snapshotText(log, at));
    else if (what === "why") console.log(fold.whyText(log, { step }, at));
    else console.log(fold.verifyText(log));
} catch (error) {
    console.error(error.message);
    process.exit(1);
}
