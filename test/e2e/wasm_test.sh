# The fold in WebAssembly (web/wasm) against the engine: the same bytes at every moment of every run, and what is wrong with a log is found.
. "$(dirname "$0")/lib.sh"

wasm=$root/build/wasm/cairn.wasm
[ -e "$wasm" ] || { echo "skip wasm_test: built without the page"; echo "# wasm_test: 0 passed, 0 failed, 1 skipped"; exit 0; }

# The module of the page that drives it, as node can load it.
engine() { "$root/web/node_modules/.bin/esbuild" "$root/web/src/fold/engine.ts" --format=esm --outfile="$PWD/engine.mjs" --log-level=error; }
fold() { node "$root/test/wasm/ask.mjs" "$wasm" "$PWD/engine.mjs" "$@"; }

# Whether the step of the run waits for its event.
waits_for_its_event() { "$CAIRN" why "$1/b" "${store[@]}" 2>/dev/null | grep -q 'waits for the event'; }

# The golden playbooks speak to a made-up tool (play() in test/unit/playbook_logs.c), whose words are programs here. What a program writes is
# below `stdout`: nested_loops adds it up, and would fail for ever, as its ways say, if it found nothing.
words() {
    mkdir words
    printf '#!/bin/sh\necho "$1"\n' >words/ok
    printf '#!/bin/sh\nhead -c "$1" /dev/zero | tr "\\0" x\n' >words/big
    printf '#!/bin/sh\necho "{\\"items\\": ${1}0}"\n' >words/page
    printf '#!/bin/sh\necho "$2" >&2\nexit 1\n' >words/fail
    chmod +x words/*
}
golden() { sed 's/+ output.data }}/+ (output.data.stdout | int) }}/' "$1" >"$(basename "$1")"; }

# Runs of every kind: documents in JSON and YAML, playbooks, children, lists, approvals, failures, retries, pauses, a cancelled one, a fork,
# and what earlier versions wrote.
corpus() {
    local file rc
    words
    for file in "$root"/examples/{hello.json,diamond.json,demo.yaml,joins.yaml,approval.yaml,fan-out.yaml,pages.yaml,parent.yaml,playbook.yaml,sweep.yaml} \
        "$root"/test/golden/playbooks/*.yaml; do
        rc=0
        case $file in */golden/*) golden "$file" && file=$(basename "$file") ;; esac
        PATH=$PWD/words:$PATH timeout 60 "$CAIRN" run "$file" "${store[@]}" --progress none --approve-all --run-id "$(basename "$file" | tr . -)" >run.out 2>&1 </dev/null || rc=$?
        case $rc in 0 | 10 | 11) ;; *) fail "$file: exit $rc: $(tail -n 3 run.out)" ;; esac # ended, well or not
    done
    cat >mixed.yaml <<'YAML'
name: mixed
nodes:
  - {id: a, bash: "printf '\\033[31mERROR\\033[0m at line 3\\n' >&2; exit 3", retry: {max_attempts: 2, delay_ms: 1}}
  - {id: b, bash: "echo ok"}
  - {id: c, depends_on: [b], when: "$b.output == 'nothing'", bash: "echo never"}
  - {id: d, depends_on: [a, b], trigger_rule: all_done, bash: "echo done"}
YAML
    "$CAIRN" run mixed.yaml "${store[@]}" --progress none --run-id mixed >/dev/null 2>&1 </dev/null || true
    # One that waits for an event, one that got its event, one that was cancelled while it waited.
    for name in waits gets ends; do
        printf '{"name":"%s","nodes":[{"id":"a","bash":"echo 1"},{"id":"b","depends_on":["a"],"event":{"name":"go.on","correlation":"$a.output"}},{"id":"c","depends_on":["b"],"bash":"true"}]}' "$name" >"$name.json"
        "$CAIRN" run "$name.json" "${store[@]}" --progress none --run-id "$name" >/dev/null 2>&1 </dev/null &
        runner=$!
        wait_for waits_for_its_event "$name"
        case $name in
        gets) "$CAIRN" signal gets DELIVER_EVENT --json '{"event":"go.on","id":"1","correlation":"1","data":{"n":1}}' "${store[@]}" >/dev/null ;;
        ends) "$CAIRN" pause ends "${store[@]}" >/dev/null && "$CAIRN" resume ends "${store[@]}" >/dev/null && "$CAIRN" cancel ends "${store[@]}" --reason enough >/dev/null ;;
        waits) kill -KILL "$runner" ;;
        esac
        wait "$runner" || true
    done
    "$CAIRN" rerun mixed "${store[@]}" --progress none >/dev/null 2>&1 </dev/null || true
    mkdir old && for file in "$root"/test/golden/stores/*.tar.gz; do
        mkdir "old/$(basename "$file")" && tar -xzf "$file" -C "old/$(basename "$file")" || fail "$file"
    done
    for file in "${store[1]}" old/*; do
        [ -d "$file" ] && file=files:$PWD/$file
        "$CAIRN" log export $("$CAIRN" ls --store "$file" --all -o name) --store "$file" --out "$(basename "$file").cairn" >/dev/null || fail "export of $file"
    done
}

test_the_fold_of_browsers_is_the_fold_of_the_engine_byte_for_byte() {
    engine
    corpus
    for bundle in *.cairn; do
        "$root/build/test/test/wasm/told" "$bundle" >told.txt || fail "told $bundle"
        hasnt told.txt "$(printf '\tfailed')"
        node "$root/test/wasm/compare.mjs" "$wasm" "$PWD/engine.mjs" "$bundle" told.txt >>compared.txt 2>differ.txt ||
            fail "$bundle: $(head -c 900 differ.txt) $(tail -n 1 compared.txt)"
    done
    [ "$(awk '{ n += $1 } END { print n }' compared.txt)" -gt 600 ] || fail "only $(cat compared.txt)"
}

test_the_fold_of_browsers_says_what_the_binary_says() {
    engine
    "$CAIRN" run "$root/examples/diamond.json" "${store[@]}" --progress none --run-id d1 >/dev/null
    "$CAIRN" log export d1 "${store[@]}" --out d.cairn >/dev/null
    for at in 1 4 9; do
        fold d.cairn snapshot "$at" | jq -S . >mine
        "$CAIRN" get "d1@$at" "${store[@]}" -o json | jq -S . >theirs
        cmp -s mine theirs || fail "event $at: $(diff mine theirs | head -5)"
    done
    fold d.cairn why 4 | jq -r .verdict >mine
    "$CAIRN" why d1@4 "${store[@]}" -o json | jq -r .verdict >theirs
    cmp -s mine theirs || fail "$(cat mine theirs)"
    fold d.cairn snapshot 99 >out 2>err && fail "a moment behind the end"
    has err 'the log ends at event'
    head -c 3000 d.cairn >cut.cairn
    fold cut.cairn snapshot >out 2>err && fail "half a bundle"
    has err 'the bundle'
}

# What `log verify` is tried with on every store (enum tamper, test/conformance/store_suite.h), done to a bundle. Its list of hashes is made to fit
# each time, so that nothing but the chains can find it.
test_the_fold_of_browsers_finds_every_tampering_that_log_verify_finds() {
    engine
    # What it needs of words.ts reads browsers' stores when it is loaded; the hashes do not.
    mkdir src && cp "$root/web/src/proof.ts" src && printf 'export const hex = (b) => Buffer.from(b).toString("hex");
' >src/words.ts
    "$root/web/node_modules/.bin/esbuild" src/proof.ts --bundle --platform=node --format=esm --outfile="$PWD/proof.mjs" --log-level=error
    cat >mixed.yaml <<'YAML'
name: mixed
nodes:
  - {id: a, bash: "exit 3", retry: {max_attempts: 3, delay_ms: 1, on_error: all}}
  - {id: b, bash: "echo ok"}
  - {id: d, depends_on: [a, b], trigger_rule: all_done, bash: "echo done"}
YAML
    "$CAIRN" run mixed.yaml "${store[@]}" --progress none --run-id d1 >/dev/null 2>&1 </dev/null || true
    "$CAIRN" log export d1 "${store[@]}" --out d.cairn >/dev/null
    fold d.cairn verify | jq -e '.verified and (.faults | length == 0)' >/dev/null || fail "an intact log"
    python3 - >names <<'PY'
import hashlib, re
data = open("d.cairn", "rb").read()
members, at = [], 0
while data[at]:
    size = int(data[at + 124:at + 135], 8)
    members.append((data[at:at + 512], data[at + 512:at + 512 + size]))
    at += 512 + (size + 511) // 512 * 512
name_of = lambda header: header[:100].rstrip(b"\0").decode()
def pack(name, changed):
    """The bundle with other bytes in some members, its hashes and headers as if it had always been so."""
    bodies = {name_of(h): changed.get(name_of(h), b) for h, b in members}
    sums = b"".join(hashlib.sha256(b).hexdigest().encode() + b"  " + n.encode() + b"\n" for n, b in bodies.items() if n != "SHA256SUMS")
    out = b""
    for header, _ in members:
        body = sums if name_of(header) == "SHA256SUMS" else bodies[name_of(header)]
        head = header[:124] + b"%011o\0" % len(body) + header[136:148] + b" " * 8 + header[156:]
        head = head[:148] + b"%06o\0 " % sum(head) + head[156:]
        out += head + body + b"\0" * (-len(body) % 512)
    open(name + ".cairn", "wb").write(out + b"\0" * 1024)
    print(name)
def of(member):
    lines = dict((name_of(h), b) for h, b in members)[member].split(b"\n")[:-1]
    return lines, lambda name, new: pack(name, {member: b"".join(line + b"\n" for line in new)})
def flipped(line, nth):
    digits = [m.start() for m in re.finditer(rb"\d\d:\d\d\.\d(?=\d\dZ)", line)]
    at = digits[0] + 6 if digits else line.index(b'"') + 1
    return line[:at] + (b"1" if line[at:at + 1] != b"1" else b"2") + line[at + 1:]
events, write = of("runs/1/events.jsonl")
for i in range(len(events)):
    write(f"flip-{i + 1}", events[:i] + [flipped(events[i], i)] + events[i + 1:])
    write(f"delete-{i + 1}", events[:i] + events[i + 1:])
    write(f"cut-{i + 1}", events[:i])
    if i + 1 < len(events): write(f"swap-{i + 1}", events[:i] + [events[i + 1], events[i]] + events[i + 2:])
write("repeat", events + [events[-1]])
write("repeat-inside", events[:3] + [events[2]] + events[3:])
ledger, write = of("runs/1/ledger.jsonl")
for i in range(len(ledger)):
    write(f"ledger-flip-{i + 1}", ledger[:i] + [flipped(ledger[i], i)] + ledger[i + 1:])
    write(f"ledger-delete-{i + 1}", ledger[:i] + ledger[i + 1:])
    write(f"ledger-cut-{i + 1}", ledger[:i])
document = next(name_of(h) for h, _ in members if name_of(h).startswith("blobs/"))
body = dict((name_of(h), b) for h, b in members)[document]
pack("document", {document: body[:-2] + bytes([body[-2] ^ 1]) + body[-1:]})
PY
    [ "$(wc -l <names)" -gt 40 ] || fail "only $(wc -l <names)"
    sed 's/$/.cairn/' names | xargs node "$root/test/wasm/tampered.mjs" "$wasm" "$PWD/engine.mjs" "$PWD/proof.mjs" >found || fail "$(tail -n 3 found)"
    equal "$(wc -l <found)" "$(wc -l <names)"
    while IFS=$'\t' read -r bundle page mine; do
        "$CAIRN" log verify d1 --store "bundle:$PWD/$bundle" -o json >theirs.json 2>/dev/null && fail "$bundle: the binary finds nothing"
        case $bundle in ledger-*) ;; *) equal "$page" true "$bundle: the page's own look at it" ;; esac # it reads events; the ledger is the engine's
        [ "$mine" = refused ] || equal "$mine" "$(jq -c '[.faults[] | [.seq, .what]]' theirs.json)" "$bundle"
    done <found
    [ "$(grep -c refused found)" -lt 5 ] || fail "$(grep refused found | head -n 5)"
}

test_the_fold_of_browsers_is_small_and_asks_for_nothing() {
    node -e '
        const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
        const imports = WebAssembly.Module.imports(module).map((i) => `${i.module}.${i.name}`);
        const known = ["fd_close", "fd_seek", "fd_write"].map((name) => `wasi_snapshot_preview1.${name}`);
        const strange = imports.filter((name) => !known.includes(name));
        if (strange.length) { console.error(strange.join(" ")); process.exit(1); }
        const size = require("zlib").brotliCompressSync(require("fs").readFileSync(process.argv[1])).length;
        if (size > 600000) { console.error(size); process.exit(1); }' "$wasm" 2>err || fail "$(cat err)"
}

run_tests "$@"
