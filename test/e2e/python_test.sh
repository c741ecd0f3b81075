#!/usr/bin/env bash
# The Python binding: its own tests against the library of this tree, and its README.
. "$(dirname "$0")/lib.sh"

export CAIRN_LIBRARY=$root/build/libcairn.so.0 PYTHONPATH=$root/bindings/python PYTHONDONTWRITEBYTECODE=1
library() { [ -f "$CAIRN_LIBRARY" ] || make -s -C "$root" library >/dev/null 2>&1 || fail 'make library'; }

test_python_functions_are_durable_steps() {
    library
    python3 -W error -m unittest discover -s "$root/bindings/python/tests" -t "$root/bindings/python" >log 2>&1 || fail "$(tail -n 12 log | tr '\n' ' ')"
    has_line log '^Ran [0-9]+ tests'
}
test_python_layout_is_the_header_s() {
    library
    ${CC:-gcc} -I"$root/include" -o abi "$e2e/abi.c" || fail abi.c
    ./abi >layout
    python3 - layout <<'PY' || fail 'ctypes sees another layout than C'
import ctypes, sys
from cairn import _native as n
names = {"cairn_options": n.Options, "cairn_error": n.Error, "cairn_attempt": n.Attempt, "cairn_result": n.Result,
         "cairn_kind": n.Kind, "cairn_start": n.Start, "cairn_signal": n.Signal, "cairn_decision": n.Decision,
         "cairn_event": n.Event, "cairn_filter": n.Filter, "cairn_run": n.RunRow}
seen, current = set(), None
for line in open(sys.argv[1]):
    words = line.split()
    if words[0] == "struct":
        current = names.get(words[1])
        if current:
            seen.add(words[1])
            assert ctypes.sizeof(current) == int(words[2]), line
            fields = iter(current._fields_)
    elif line.startswith("  ") and current:
        name = next(fields)[0]
        assert (name, getattr(current, name).offset, getattr(current, name).size) == (words[0], int(words[1]), int(words[2])), line
assert seen == set(names), set(names) - seen
PY
}
test_python_readme_runs() {
    library
    awk '/^```python$/ { on = 1; next } /^```/ { on = 0 } on' "$root/bindings/python/README.md" >readme.py
    awk '/^```yaml$/ { on = 1; next } /^```/ { on = 0 } on' "$root/bindings/python/README.md" >order.yaml
    { printf 'class Declined(Exception): pass\ndef pay(card, amount, idempotency_key): return f"{card}:{amount}:{idempotency_key}"\n'; cat readme.py; } >program.py
    python3 -W error program.py >out 2>err || fail "$(tail -n 3 err)"
    equal "$(cat out)" "{'charge': {'receipt': 'tok_1:42:order-4711:charge:1'}, 'mail': None}"
    python3 program.py >again; cmp out again || fail 'a second time gives something else'
    cairn_is 0 get order-4711 --store sqlite:orders.db -o json; equal "$(jq -r .status out)" COMPLETED
}
test_python_says_what_is_missing() {
    CAIRN_LIBRARY=/nonexistent.so python3 -c 'import cairn' 2>err && fail 'imported without a library'
    has err 'CAIRN_LIBRARY'
}
run_tests "$@"
