// Bundles that somebody changed, asked of the fold in WebAssembly and of the page's own look at the chain.
//
//   node tampered.mjs WASM ENGINE.mjs PROOF.mjs BUNDLE...     a line each: file, whether the page's look finds something, what the engine's check finds
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [wasm, engine, proof, ...bundles] = process.argv.slice(2);
const { FoldEngine } = await import(pathToFileURL(engine)), { proveBundle } = await import(pathToFileURL(proof));
const fold = await FoldEngine.start(await WebAssembly.compile(readFileSync(wasm)));
for (const bundle of bundles) {
    const bytes = new Uint8Array(readFileSync(bundle));
    let page, found;
    try {
        page = (await proveBundle(bytes.buffer, () => {})).faults.length > 0;
    } catch {
        page = true;
    }
    try {
        const told = JSON.parse(fold.verifyText(bytes));
        found = told.verified ? "nothing" : JSON.stringify(told.faults.map((f) => [f.seq, f.what]));
    } catch {
        found = "refused";
    }
    console.log(`${bundle}\t${page}\t${found}`);
}
