#!/usr/bin/env bash
# `cairn crashtest`: every boundary of every example, what it says about effects, and that it notices a broken engine.
. "$(dirname "$0")/lib.sh"

examples=$root/examples
build=${CAIRN_BUILD:-$root/build/test}
[[ $build = /* ]] || build=$root/$build

flow() {
    cat >flow.yaml <<'DOC'
name: flow
nodes:
  - id: load
    bash: 'curl -H "Idempotency-Key: $CAIRN_IDEMPOTENCY_KEY" https://example.test/load'
  - id: mail
    depends_on: [load]
    bash: sendmail -t < mail.txt
  - id: gate
    depends_on: [load]
    approval: {message: go on}
  - id: end
    depends_on: [mail, gate]
    echo: "done with $load.output.rows rows"
DOC
}

test_every_boundary_of_every_example() {
    for f in "$examples"/*.json "$examples"/*.yaml; do
        grep -q '^kind: Playbook' "$f" && continue # what its tasks give decides its way, and here they give nothing
        cairn_is 0 crashtest "$f"
        has out 'recovered: nothing lost'; has out 'same path and outputs, no finished step ran again, every log verifies'
        hasnt out 'drawn from'; hasnt out 'FAILED'; has_line err '^[0-9]+ worlds in .* worlds/s\), seed 1$'
    done
    cairn_is 0 crashtest "$root/examples/tests/demo.test.yaml"; equal "$(grep -c 'nothing lost' out)" 6
}
test_the_report_is_the_golden_one() {
    flow
    CAIRN=$CAIRN; cairn_is 0 crashtest flow.yaml
    sed "s,$CAIRN,cairn," out >got
    diff got "$root/test/golden/crashtest.txt" >diff || fail "the report changed (cp $PWD/got): $(head -5 diff | tr '\n' ' ')"
}
test_worlds_are_the_same_every_time() {
    flow
    cairn_is 0 crashtest flow.yaml -o json; jq 'del(.tookUs)' out >first
    cairn_is 0 crashtest flow.yaml -o json; jq 'del(.tookUs)' out >second
    cmp first second || fail 'two crash tests differ'
    equal "$(jq -c '[.failed,.unguarded,(.worlds|length)==.boundaries,([.effects[].step])]' first)" '[0,1,true,["load","mail"]]'
    equal "$(jq -r '[.worlds[].killed]|unique|map(split(" ")|.[0:4]|join(" "))|length' first)" 12 'kinds of boundaries'
    # nothing is repeated by a kill before its dispatch, everything by one after it
    equal "$(jq -c '.worlds[]|select(.killed=="before the dispatch of" and .step=="load").twice' first)" '[]'
    equal "$(jq -c '.worlds[]|select(.killed=="after the dispatch of" and .step=="load").twice' first)" '["load"]'
}
test_a_world_is_told_again() {
    flow
    cairn_is 0 crashtest flow.yaml -o json; n=$(jq -r '.effects[1].example' out)
    cairn_is 0 crashtest flow.yaml --world "$n"
    has_line out '^----- killed after the dispatch of mail'; has out 'starts mail attempt 1.2  <- happens again'; has out 'happened 2 times: mail  sendmail'
    cairn_is 0 crashtest flow.yaml --world "$n.3"; equal "$(grep -c -e '----- killed' out)" 2
    cairn_is 5 crashtest flow.yaml --world 9999; has err 'there is no world 9999'
    cairn_is 2 crashtest flow.yaml --world x
}
test_strict_wants_a_guard() {
    flow
    cairn_is 20 crashtest flow.yaml --strict; has out 'without a guard'
    printf 'document: flow.yaml\nmocks: {load: {output: {rows: 3}}, mail: {idempotent: true}}\napprovals: {gate: yes}\n' >flow.test.yaml
    cairn_is 0 crashtest flow.test.yaml --strict; has out 'idempotent: true in the test file'; has out 'uses CAIRN_IDEMPOTENCY_KEY'
    printf 'name: pure\nnodes:\n  - {id: a, echo: hi}\n  - {id: b, depends_on: [a], wait: 3h}\n' >pure.yaml
    cairn_is 0 crashtest pure.yaml --strict; has out 'no effect can happen twice'
}
test_killed_twice() {
    flow
    cairn_is 0 crashtest flow.yaml --double --max 300 --seed 7; has out 'drawn from'; has err 'seed 7'
    cairn_is 0 crashtest flow.yaml --double --max 300 --seed 7 -o json; cp out a
    cairn_is 0 crashtest flow.yaml --double --max 300 --seed 7 -o json
    equal "$(jq -c '[.worlds[].world]' out)" "$(jq -c '[.worlds[].world]' a)" 'worlds drawn'
    jq -r '.worlds[].world' a | grep -q '\.' || fail 'no world was killed twice'
}
test_sandbox_counts_what_happened() {
    printf 'name: s\nnodes:\n  - {id: a, bash: "echo line >> out.txt; echo 1"}\n  - {id: b, depends_on: [a], bash: "wc -l < out.txt > count"}\n' >s.yaml
    cairn_is 0 crashtest s.yaml --sandbox --max 20
    has out 'left behind otherwise than undisturbed'; has out 'work/out.txt: 10 bytes, 2 lines instead of 5 bytes, 1 lines'
    [ ! -e out.txt ] || fail 'a step ran here'
}
test_large_documents_are_drawn_from() {
    { echo 'name: big'; echo 'nodes:'; for i in $(seq 150); do printf '  - {id: s%d, bash: "do"%s}\n' "$i" "$([ "$i" -gt 1 ] && echo ", depends_on: [s$((i - 1))]")"; done; } >big.yaml
    cairn_is 0 crashtest big.yaml --max 40; has out '40 worlds (drawn from'
    { echo 'name: twenty'; echo 'nodes:'; for i in $(seq 20); do printf '  - {id: s%d, bash: "do"%s}\n' "$i" "$([ "$i" -gt 1 ] && echo ", depends_on: [s$((i - 1))]")"; done; } >twenty.yaml
    # Every boundary, in seconds of processor time: a busy machine takes longer for it, and needs no more of it.
    TIMEFORMAT='%0U'; spent=$({ time "$CAIRN" crashtest twenty.yaml -o json >out 2>err; } 2>&1)
    equal "$(jq '(.worlds|length) == .boundaries' out)" true; [ "$spent" -lt 6 ] || fail "20 steps took $spent s of a processor"
}
test_an_interrupted_test_leaves_nothing_behind() {
    { echo 'name: big'; echo 'nodes:'; for i in $(seq 800); do printf '  - {id: s%d, bash: "do"%s}\n' "$i" "$([ "$i" -gt 1 ] && echo ", depends_on: [s$((i - 1))]")"; done; } >big.yaml
    mkdir tmp; rc=0
    TMPDIR=$PWD/tmp timeout -s TERM 1 "$CAIRN" crashtest big.yaml --max 100000 >out 2>err || rc=$?
    equal $rc 124 exit; equal "$(ls tmp | wc -l)" 0 'files left behind'
}
test_a_document_with_a_mistake() {
    printf 'name: x\nnodes:\n  - {id: a, bsh: x}\n' >x.yaml; cairn_is 3 crashtest x.yaml; has_line err 'x.yaml:3:'
    printf 'document: x.yaml\n' >x.test.yaml; cairn_is 3 crashtest x.test.yaml
    cairn_is 5 crashtest none.yaml
}

# The binary with a planted bug (test/bugs): its objects stand in for the sound ones.
command_of() { make -C "$root" -n -W "$1" V=test B="$build" "$2" 2>/dev/null | grep -- " -o $2 " | tail -n 1 | sed 's/^.*\(gcc\|clang\|cc\) /\1 /'; }
plant() {
    local patch=$root/test/bugs/$1.patch file command objects=
    mkdir -p bug
    for file in $(sed -n 's,^+++ b/,,p' "$patch" | cut -f 1); do
        mkdir -p "bug/$(dirname "$file")"; cp "$root/$file" "bug/$file"
    done
    patch -d bug -p1 -s --no-backup-if-mismatch <"$patch" || fail "$1 does not apply"
    for file in $(sed -n 's,^+++ b/,,p' "$patch" | cut -f 1); do
        command=$(command_of "$file" "$build/${file%.c}.o")
        command=${command/ -o $build\/${file%.c}.o $file/ -o $PWD/bug/${file%.c}.o $PWD/bug/$file}
        command=$(sed 's/ -Werror / /g; s/ -MMD / /; s/ -MP / /' <<<"$command ")
        (cd "$root" && bash -c "$command") || fail "$1: $file does not compile"
        objects="$objects $PWD/bug/${file%.c}.o"
    done
    command=$(command_of src/cli/main.c "$build/cairn")
    command=${command/ -o $build\/cairn / -o $PWD/broken }
    command=${command/ $build\/libcairn-all.a /$objects $build/libcairn-all.a }
    (cd "$root" && bash -c "$command") || fail "$1 cannot be linked"
}
broken_is() { # rule, document
    rc=0; ./broken crashtest "$2" >out 2>err || rc=$?
    equal $rc 20 'exit of the broken engine'; has_line out "^    $1 "
}
test_a_broken_engine_is_noticed() {
    [ -f "$build/libcairn-all.a" ] || skip "no $build/libcairn-all.a"
    flow
    plant completed-step-runs-again; broken_is AGAIN flow.yaml
    plant no-journal-sync; broken_is LOST flow.yaml
}
test_a_step_started_too_early_is_noticed() {
    [ -f "$build/libcairn-all.a" ] || skip "no $build/libcairn-all.a"
    flow; plant act-before-append; broken_is EARLY flow.yaml
}

test_tasks_of_playbooks_have_effects() {
    cat >book.yaml <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: book, path: book}
workflow:
  - {step: start, tool: {kind: shell, cmds: "charge --key $CAIRN_IDEMPOTENCY_KEY"}, next: [b]}
  - {step: b, tool: [{kind: noop}, {kind: wait, seconds: 1}], next: [c]}
  - {step: c, tool: [{name: look, kind: noop}, {name: call, kind: http, url: "http://127.0.0.1:1/"}]}
YAML
    cairn_is 0 crashtest book.yaml
    has out '3 steps ran (2 external, 1 pure)'
    cairn_is 20 crashtest book.yaml --strict
    sed -i 's|, {name: call.*}\]}|]}|' book.yaml # what is left is guarded
    cairn_is 0 crashtest book.yaml --strict; has out '3 steps ran (1 external, 2 pure)'
}
# Iterations and children at once, whose ids do not tell whose they are; steps with slashes in their names; pipelines with tries.
test_loops_pipelines_and_children_of_playbooks() {
    cat >child.yaml <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: a/child}
workload: {n: 0}
workflow:
  - {step: one, tool: {kind: shell, cmds: "echo {{ n }}"}, next: [last/one]}
  - {step: last/one, tool: {kind: python, code: result = 1}}
YAML
    cat >loops.yaml <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: loops, path: a/loops}
workflow:
  - step: begin/here
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: runs}]}
  - step: each
    loop: {in: [1, 2, 3], iterator: i, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      - name: fetch
        kind: http
        url: "http://127.0.0.1:1/{{ iter.i }}"
        spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 3, delay: 1}}]}}
      - {name: save, kind: sqlite, database: d.db, command: "INSERT INTO t VALUES ({{ iter.i }})"}
    next: [join]
  - step: runs
    loop: {in: [1, 2], iterator: i, spec: {mode: parallel}}
    tool: {kind: playbook, path: a/child, input: {n: "{{ iter.i }}"}}
    next: [join]
  - {step: join, tool: {kind: python, code: result = 1}}
YAML
    cat >loops.test.yaml <<'YAML'
document: loops.yaml
mocks:
  begin/here: {}
  each/fetch#1: {fail: {code: HTTP_503}}
  each/fetch#2: {output: {data: 1}}
  each/save: {output: {command_0: {status: success}}}
  runs/runs_task/one: {output: {stdout: "1"}}
  runs/runs_task/last/one: {output: 1}
  join: {output: 1}
cases:
  - name: tries
    expect: {status: COMPLETED}
YAML
    cairn_is 0 crashtest loops.test.yaml --max 0
    has out 'nothing lost' 'CAIRN_IDEMPOTENCY_KEY=<run>:each[2]/fetch:' 'runs[2]/runs_task/last/one' '(attempt 2)'
    cairn_is 0 crashtest loops.yaml --double --max 40
    has out 'nothing lost'
    cairn_is 0 equiv loops.yaml --on embedded,files
}

test_a_playbook_that_never_ends_is_told() {
    cat >endless.yaml <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: endless, path: endless}
workflow:
  - {step: page, tool: {kind: http, url: "http://127.0.0.1:1/"}, next: {arcs: [{step: page, when: "{{ page.data.next is not none }}"}]}}
YAML
    ! "$CAIRN" crashtest endless.yaml --max 1 >out 2>&1 || fail 'it came to an end'
    has out 'page was visited 10000 times'
}

run_tests "$@"
