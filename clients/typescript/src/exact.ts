// JSON without losing digits: whole numbers beyond 2^53 are bigints, both ways.

/** Like JSON.parse, but whole numbers that a double cannot hold become bigints. */
export function parse(text: string): unknown {
    return /\d{16}/.test(text) ? new Parser(text).whole() : JSON.parse(text);
}

/** Like JSON.stringify, with bigints as their digits. What is no JSON (NaN, functions, cycles) throws. */
export function stringify(value: unknown): string {
    return write(value, []);
}

function write(value: unknown, above: object[]): string {
    if (value === null || value === undefined) return "null";
    if (typeof value === "bigint") return value.toString();
    if (typeof value === "number") {
        if (!Number.isFinite(value)) throw new TypeError(`${value} is no JSON`);
        return JSON.stringify(value);
    }
    if (typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);
    if (typeof value !== "object") throw new TypeError(`a ${typeof value} is no JSON`);
    if (above.includes(value)) throw new TypeError("a value that contains itself is no JSON");
    const own = value as Record<string, unknown> & { toJSON?: (key: string) => unknown };
    if (typeof own.toJSON === "function") return write(own.toJSON(""), above);
    const inside = [...above, value];
    if (Array.isArray(value)) return `[${value.map((one) => write(one, inside)).join(",")}]`;
    if (value instanceof Map || value instanceof Set) throw new TypeError(`a ${value.constructor.name} is no JSON`);
    const members = Object.entries(own).filter(([, one]) => one !== undefined);
    return `{${members.map(([key, one]) => `${JSON.stringify(key)}:${write(one, inside)}`).join(",")}}`;
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;

class Parser {
    private at = 0;

    constructor(private readonly text: string) {}

    whole(): unknown {
        const value = this.value(0);
        this.space();
        if (this.at !== this.text.length) this.fail();
        return value;
    }

    private fail(): never {
        throw new SyntaxError(`no JSON at position ${this.at}`);
    }

    private space(): void {
        SPACE.lastIndex = this.at;
        SPACE.exec(this.text);
        this.at = SPACE.lastIndex;
    }

    private take(pattern: RegExp): RegExpExecArray {
        pattern.lastIndex = this.at;
        const found = pattern.exec(this.text);
        if (!found) this.fail();
        this.at = pattern.lastIndex;
        return found;
    }

    private value(depth: number): unknown {
        if (depth > 1000) this.fail();
        this.space();
        const first = this.text[this.at];
        if (first === "{") return this.object(depth);
        if (first === "[") return this.array(depth);
        if (first === '"') return JSON.parse(this.take(STRING)[0]);
        for (const [word, value] of [["true", true], ["false", false], ["null", null]] as const) {
            if (this.text.startsWith(word, this.at)) {
                this.at += word.length;
                return value;
            }
        }
        const [digits, fraction, exponent] = this.take(NUMBER);
        const number = Number(digits);
        return fraction || exponent || Number.isSafeInteger(number) ? number : BigInt(digits);
    }

    private array(depth: number): unknown[] {
        const items: unknown[] = [];
        for (this.at++; ; this.at++) {
            this.space();
            if (items.length === 0 && this.text[this.at] === "]") break;
            items.push(this.value(depth + 1));
            this.space();
            if (this.text[this.at] === "]") break;
            if (this.text[this.at] !== ",") this.fail();
        }
        this.at++;
        return items;
    }

    private object(depth: number): Record<string, unknown> {
        const members: Record<string, unknown> = {};
        let empty = true;
        for (this.at++; ; this.at++) {
            this.space();
            if (empty && this.text[this.at] === "}") break;
            const key = JSON.parse(this.take(STRING)[0]) as string;
            this.space();
            if (this.text[this.at++] !== ":") this.fail();
            // a member of that name must not become the prototype
            Object.defineProperty(members, key, { value: this.value(depth + 1), enumerable: true, writable: true, configurable: true });
            empty = false;
            this.space();
            if (this.text[this.at] === "}") break;
            if (this.text[this.at] !== ",") this.fail();
        }
        this.at++;
        return members;
    }
}
