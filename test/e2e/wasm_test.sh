# The fold in WebAssembly (web/wasm) against the engine: the same bytes at every moment of every run, and what is wrong with a log is found.
. "$(dirname "$0")/lib.sh"

wasm=$root/build/wasm/cairn.wasm
[ -e "$wasm" ] || { echo "skip wasm_test: built without the page"; echo "# wasm_test: 0 passed, 0 failed, 1 skipped"; exit 0; }

# The module of the page that drives it, as node can load it.
engine() { "$root/web/node_modules/.bin/esbuild" "$root/web/src/fold/engine.ts" --format=esm --outfile="$PWD/engine.mjs" --log-level=error; }
fold() { node "$root/test/wasm/ask.mjs" "$wasm" "$PWD/engine.mjs" "$@"; }

# Runs of every kind: documents in JSON and YAML, playbooks, children, lists, approvals, failures, retries, pauses, a cancelled one, a fork.
corpus() {
    local file
    for file in "$root"/examples/{hello.json,diamond.json,demo.yaml,joins.yaml,approval.yaml,fan-out.yaml,pages.yaml,parent.yaml,playbook.yaml,sweep.yaml} \
        "$root"/test/golden/playbooks/{failure_routing,fan_out_fan_in,retry}.yaml; do
        timeout 60 "$CAIRN" run "$file" "${store[@]}" --progress none --approve-all --run-id "$(basename "$file" | tr . -)" >/dev/null 2>&1 </dev/null || true
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
    "$CAIRN" rerun mixed "${store[@]}" --progress none >/dev/null 2>&1 </dev/null || true
    "$CAIRN" log export $("$CAIRN" ls "${store[@]}" --all -o name) "${store[@]}" --out all.cairn >/dev/null || fail "export"
}

test_the_fold_of_browsers_is_the_fold_of_the_engine_byte_for_byte() {
    engine
    corpus
    "$root/build/test/test/wasm/told" all.cairn >told.txt || fail "told"
    hasnt told.txt "$(printf '\tfailed')"
    node "$root/test/wasm/compare.mjs" "$wasm" "$PWD/engine.mjs" all.cairn told.txt >compared.txt 2>differ.txt ||
        fail "$(head -c 900 differ.txt) $(cat compared.txt)"
    [ "$(sed 's/ snapshots.*//' compared.txt)" -gt 300 ] || fail "only $(cat compared.txt)"
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

test_the_fold_of_browsers_finds_what_was_changed() {
    engine
    "$CAIRN" run "$root/examples/diamond.json" "${store[@]}" --progress none --run-id d1 >/dev/null
    "$CAIRN" log export d1 "${store[@]}" --out d.cairn >/dev/null
    fold d.cairn verify | jq -e '.verified and (.faults | length == 0)' >/dev/null || fail "an intact log"
    python3 - <<'PY'
# Each tampering keeps the form of the container, so that only the chain can find it. name, expected event
import json, re
data = open("d.cairn", "rb").read()
at = data.index(b"runs/1/events.jsonl\0")
size = int(data[at + 124:at + 135], 8)
body = data[at + 512:at + 512 + size]
lines = body.split(b"\n")[:-1]
def write(name, new):
    new = b"\n".join(new) + b"\n"
    assert len(new) == size, (name, len(new), size)
    open(name, "wb").write(data[:at + 512] + new + data[at + 512 + size:])
changed = list(lines)
changed[3] = re.sub(rb'(T\d\d:\d\d:\d\d\.)(\d)', lambda m: m.group(1) + (b"1" if m.group(2) != b"1" else b"2"), changed[3], count=1)
write("changed.cairn", changed)
swapped = list(lines)
swapped[2], swapped[3] = swapped[3], swapped[2]
write("swapped.cairn", swapped)
last = list(lines)
last[-1] = last[-1].replace(b"Completed", b"Cancelled")
write("last.cairn", last)
doc = data.rindex(b"blobs/")
byte = doc + 512 + 40
open("document.cairn", "wb").write(data[:byte] + bytes([data[byte] ^ 1]) + data[byte + 1:])
PY
    for name in changed swapped last document; do
        fold "$name.cairn" verify >mine.json 2>err || fail "$name: $(cat err)"
        jq -e '.verified == false' mine.json >/dev/null || fail "$name was not found"
        "$CAIRN" log verify d1 --store "bundle:$PWD/$name.cairn" -o json >theirs.json 2>/dev/null && fail "$name: the binary finds nothing"
        equal "$(jq -c '[.faults[] | [.seq, .what]]' mine.json)" "$(jq -c '[.faults[] | [.seq, .what]]' theirs.json)" "$name"
    done
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
