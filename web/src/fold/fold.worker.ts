// Answers one question at a time; the engine is loaded with the first one.
import wasm from "cairn.wasm";
import { FoldEngine, FoldFailure, type Target } from "./engine";

export interface FoldQuestion {
    id: number;
    what: "runs" | "snapshot" | "why" | "verify";
    log: number; // number of a log that was sent before, or comes with this
    bytes?: Uint8Array;
    target: Target;
    at?: string;
}
export type FoldAnswer = { id: number; value: unknown } | { id: number; code: number; message: string };

let engine: Promise<FoldEngine> | undefined;
let held: { log: number; bytes: Uint8Array } | undefined;

async function load(): Promise<FoldEngine> {
    return FoldEngine.start(await WebAssembly.compileStreaming(fetch(wasm)));
}

async function answer(question: FoldQuestion): Promise<unknown> {
    if (question.bytes) held = { log: question.log, bytes: question.bytes };
    if (held?.log !== question.log) throw new FoldFailure(2, "the log was not sent");
    const fold = await (engine ??= load());
    const { bytes } = held;
    switch (question.what) {
        case "runs":
            return JSON.parse(fold.runsText(bytes));
        case "snapshot":
            return JSON.parse(fold.snapshotText(bytes, question.at, question.target));
        case "why":
            return JSON.parse(fold.whyText(bytes, question.target, question.at));
        case "verify":
            return JSON.parse(fold.verifyText(bytes, question.target));
    }
}

self.addEventListener("message", (event: MessageEvent<FoldQuestion>) => {
    const { id } = event.data;
    answer(event.data).then(
        (value) => self.postMessage({ id, value } satisfies FoldAnswer),
        (error: unknown) => {
            const code = error instanceof FoldFailure ? error.code : 0;
            if (code === 0) engine = undefined; // it could not be loaded, or it broke: the next question begins anew
            self.postMessage({ id, code, message: error instanceof Error ? error.message : String(error) } satisfies FoldAnswer);
        },
    );
});
