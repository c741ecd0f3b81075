// The fold, compiled from the engine's C (web/wasm): memory in and out of it. No thread, no network; used by the worker and by tests.
export interface FoldError {
    code: number;
    message: string;
}

export class FoldFailure extends Error {
    constructor(readonly code: number, message: string) {
        super(message);
        this.name = "FoldFailure";
    }
}

interface Exports {
    memory: WebAssembly.Memory;
    _initialize(): void;
    page_alloc(size: number): number;
    page_free(place: number): void;
    page_open(bytes: number, size: number): number;
    page_close(): void;
    page_ask(question: number, run: number, runSize: number, step: number, stepSize: number, event: number, entries: number): number;
    page_answer(): number;
    page_answer_size(): number;
}

enum Question {
    Runs,
    Snapshot,
    Why,
    Verify,
}

export interface Target {
    run?: string; // without it the run that started the others
    step?: string;
}

// "12": right after event 12 and all that was noted with it. "12.2": after the second ledger entry behind it, and nothing more.
function moment(at: string | undefined): { event: number; entries: number } {
    if (at === undefined) return { event: 0, entries: -1 };
    const parts = /^([1-9][0-9]*)(?:\.([0-9]+))?$/.exec(at);
    if (!parts) throw new FoldFailure(2, `a moment is written 12 or 12.2, not ${at}`);
    return { event: Number(parts[1]), entries: parts[2] === undefined ? -1 : Number(parts[2]) };
}

// The text of JSON.stringify is not that of the server; answers are given as bytes too, so that both can be compared.
export class FoldEngine {
    private bytes: Uint8Array | undefined;
    private place = 0;

    private constructor(private readonly fold: Exports) {}

    static async start(module: WebAssembly.Module): Promise<FoldEngine> {
        let memory: WebAssembly.Memory | undefined;
        let said = "";
        const wasi = {
            fd_close: () => 8, // EBADF: there are no files
            fd_seek: () => 8,
            // What a broken invariant says before it ends everything.
            fd_write: (_fd: number, vectors: number, count: number, written: number) => {
                if (!memory) return 8;
                const view = new DataView(memory.buffer);
                let total = 0;
                for (let i = 0; i < count; i++) {
                    const from = view.getUint32(vectors + 8 * i, true), size = view.getUint32(vectors + 8 * i + 4, true);
                    said += new TextDecoder().decode(new Uint8Array(memory.buffer, from, size));
                    total += size;
                }
                view.setUint32(written, total, true);
                if (said.includes("\n")) {
                    console.error(said.trimEnd());
                    said = "";
                }
                return 0;
            },
        };
        const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi });
        const fold = instance.exports as unknown as Exports;
        memory = fold.memory;
        fold._initialize();
        return new FoldEngine(fold);
    }

    private answer(): string {
        const from = this.fold.page_answer(), size = this.fold.page_answer_size();
        return new TextDecoder().decode(new Uint8Array(this.fold.memory.buffer, from, size));
    }

    private fail(code: number): never {
        let message = `the fold failed with code ${code}`;
        try {
            message = (JSON.parse(this.answer()) as { error: FoldError }).error.message;
        } catch {
            // no memory was left to say more
        }
        throw new FoldFailure(code, message);
    }

    // A log that is open already is not read again.
    private open(log: Uint8Array): void {
        if (this.bytes === log) return;
        this.fold.page_close();
        if (this.place) this.fold.page_free(this.place);
        this.bytes = undefined;
        this.place = this.fold.page_alloc(log.length);
        if (!this.place) throw new FoldFailure(1, "the log does not fit into memory");
        new Uint8Array(this.fold.memory.buffer, this.place, log.length).set(log);
        const code = this.fold.page_open(this.place, log.length);
        if (code) this.fail(code);
        this.bytes = log;
    }

    private word(text: string): { place: number; size: number } {
        const bytes = new TextEncoder().encode(text);
        const place = this.fold.page_alloc(bytes.length);
        if (!place) throw new FoldFailure(1, "no memory");
        new Uint8Array(this.fold.memory.buffer, place, bytes.length).set(bytes);
        return { place, size: bytes.length };
    }

    private ask(log: Uint8Array, question: Question, target: Target, at?: string): string {
        const { event, entries } = moment(at);
        this.open(log);
        const run = this.word(target.run ?? ""), step = this.word(target.step ?? "");
        const code = this.fold.page_ask(question, run.place, run.size, step.place, step.size, event, entries);
        this.fold.page_free(run.place);
        this.fold.page_free(step.place);
        if (code) this.fail(code);
        return this.answer();
    }

    runsText(log: Uint8Array): string {
        return this.ask(log, Question.Runs, {});
    }
    snapshotText(log: Uint8Array, at?: string, target: Target = {}): string {
        return this.ask(log, Question.Snapshot, target, at);
    }
    whyText(log: Uint8Array, target: Target, at?: string): string {
        return this.ask(log, Question.Why, target, at);
    }
    verifyText(log: Uint8Array, target: Target = {}): string {
        return this.ask(log, Question.Verify, target);
    }
}
