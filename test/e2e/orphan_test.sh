#!/usr/bin/env bash
# Signals to a run whose process was killed in the middle of a step: decided, recorded, and nothing else happens until
# somebody drives the run (ADR 0013).
. "$(dirname "$0")/lib.sh"

# A step in flight, an approval that waits, a step after it; then kill -9.
orphan() {
    mkdir -p ran
    cat >o.json <<'PLAN'
{"planId":"o","planVersion":"1","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo x >> ran/a; [ $(wc -l < ran/a) -ge 2 ] && exit; (setsid sleep 30 & echo $! > pids); sleep 30"},"dependsOn":[]},
 {"stepId":"g","kind":"approval","dependsOn":[]},
 {"stepId":"z","kind":"shell","with":{"command":"echo x >> ran/z"},"dependsOn":["g"]}]}
PLAN
    "$CAIRN" run o.json "${store[@]}" --run-id o-1 --progress none >/dev/null 2>&1 </dev/null & pid=$!
    wait_for test -s pids
    kill -9 $pid; wait $pid 2>/dev/null
}
untouched() { equal "$(times_ran a) $(times_ran z) $(count_of o-1 StepRedispatched) $(count_of o-1 StepStarted)" "1 0 0 2" "$1"; }
alive() { [ -d "/proc/$1" ] && ! grep -q ') Z ' "/proc/$1/stat" 2>/dev/null; }

test_pause_of_an_orphaned_run_starts_nothing() {
    orphan
    cairn_is 0 pause o-1 "${store[@]}"; has out 'PAUSE accepted'
    untouched 'after pause'
    cairn_is 0 recover "${store[@]}"; has err '1 left for a person'; untouched 'recover keeps a pause'
    cairn_is 13 resume o-1 "${store[@]}"; equal "$(times_ran a)" 2; step_is o-1 a SUCCESS || fail "a did not finish"
    cairn_is 0 approve o-1 "${store[@]}"; status_is o-1 COMPLETED || fail "not COMPLETED"
    intact
}
test_rejected_signal_to_an_orphaned_run_starts_nothing() {
    orphan
    cairn_is 6 resume o-1 "${store[@]}"; has err RUN_NOT_PAUSED
    cairn_is 5 approve o-1/nosuch "${store[@]}"; has err STEP_NOT_FOUND
    cairn_is 6 skip o-1/a "${store[@]}"; has err STEP_NOT_TERMINAL
    untouched 'after rejections'
    alive "$(cat pids)" || fail "a rejected signal killed what still ran"
    cairn_is 0 recover "${store[@]}"; equal "$(times_ran a)" 2
    intact
}
test_no_run_records_the_answer_and_starts_nothing() {
    orphan
    cairn_is 0 approve o-1 --no-run "${store[@]}"; has out 'APPROVE accepted'
    step_is o-1 g SUCCESS || fail "g was not answered"
    untouched 'after approve --no-run'
    cairn_is 0 recover "${store[@]}"; has err '1 completed'
    equal "$(times_ran a) $(times_ran z)" '2 1'
    intact
}
test_cancel_of_an_orphaned_run_kills_and_ends() {
    for url in "sqlite:$PWD/s.db" "files:$PWD/f"; do
        store=(--store "$url"); rm -rf ran pids
        orphan
        cairn_is 0 cancel o-1 "${store[@]}" --reason enough; has out 'CANCEL accepted'
        status_is o-1 CANCELLED || fail "not CANCELLED"
        alive "$(cat pids)" && fail "the step of the dead engine still runs"
        untouched "$url after cancel"; equal "$(count_of o-1 RunCancelled)" 1
        intact
    done
}
test_retry_of_an_ended_run_with_no_run_starts_nothing() {
    echo '{"planId":"r","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> ran; exit 1"}}]}' >r.json
    cairn_is 10 run r.json "${store[@]}" --run-id r-1
    cairn_is 0 retry r-1 --no-run "${store[@]}" -o name; new=$(cat out)
    equal "$(wc -l <ran)" 1; status_is "$new" RUNNING || fail "$new is not RUNNING"
    cairn_is 10 recover "${store[@]}"; equal "$(wc -l <ran)" 2
    intact
}

# A step that leaves a process which outlives its engine; it must be gone before the step runs again.
stray() {
    rm -f tries stray
    sed "s|TOP|$PWD|g" >stray.json <<'PLAN'
{"planId":"l","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> TOP/tries; [ $(wc -l < TOP/tries) -ge 2 ] && exit 0; (setsid sleep 40 & echo $! > TOP/stray); sleep 40"}}]}
PLAN
}
# Started at one name of the store and killed, recovered at another: $1, $2; $3 happens in between.
at_two_names() {
    stray
    "$CAIRN" run stray.json --store "$1" --run-id l-1 --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for test -s stray
    kill -9 $pid; wait $pid 2>/dev/null
    alive "$(cat stray)" || fail "$1: nothing was left behind"
    ${3:-true}
    cairn_is 0 recover --store "$2" --progress none
    ! alive "$(cat stray)" || { kill "$(cat stray)"; fail "$1, then $2: what the first attempt left runs beside the second"; }
    equal "$(wc -l <tries)" 2 "$1, then $2"
}
test_an_orphan_is_found_by_whatever_name_the_store_has() {
    mkdir d f m p; ln -s d link; ln -s "$PWD/d/real.db" other.db
    at_two_names "sqlite:$PWD/d/real.db" "sqlite:$PWD/other.db"
    at_two_names sqlite:d/x.db "sqlite:$PWD/link/x.db"
    at_two_names "files:$PWD/f" files:./f
    moved() { mv m n; }
    at_two_names "files:$PWD/m" "files:$PWD/n" moved
    moved() { mv p q; }
    at_two_names "sqlite:$PWD/p/s.db" "sqlite:$PWD/q/s.db" moved
    mkdir here; (cd here && at_two_names files:. "files:$PWD") || exit
    copied() { mkdir c; cp e/real.db* c/; rm -rf e; } # to another file, on which no engine ever was
    mkdir e; at_two_names "sqlite:$PWD/e/real.db" "sqlite:$PWD/c/real.db" copied
}
test_recovery_of_a_copy_or_of_another_tenant_kills_no_living_step() {
    stray
    "$CAIRN" run stray.json "${store[@]}" --tenant a --run-id l-1 --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for test -s stray
    echo '{"planId":"b","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> b; [ $(wc -l < b) -ge 2 ] || sleep 40"}}]}' >b.json
    "$CAIRN" run b.json "${store[@]}" --tenant b --run-id l-1 --progress none >/dev/null 2>b.err </dev/null & local other=$!
    wait_for test -s b
    kill -9 $other; wait $other 2>/dev/null
    cairn_is 0 recover "${store[@]}" --tenant b --progress none
    alive "$(cat stray)" || fail "the living step of tenant a was killed"
    mkdir copy; cp store.db* copy/ 2>/dev/null
    cairn_is 0 recover --store "sqlite:$PWD/copy/store.db" --tenant a --progress none
    alive "$(cat stray)" || fail "the recovery of a copy killed the step of its original"
    kill -9 $pid; wait $pid 2>/dev/null
    kill "$(cat stray)" 2>/dev/null
    true
}
test_the_orphan_of_a_task_in_its_second_run_of_a_visit_is_found() {
    cat >t.yaml <<YAML
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: t, path: t}
workflow:
  - step: start
    tool:
      - name: work
        kind: shell
        cmds: "echo x >> $PWD/tries; n=\$(wc -l < $PWD/tries); [ \$n = 2 ] || exit 0; (setsid sleep 40 & echo \$! > $PWD/stray); sleep 40"
      - name: again
        kind: noop
        policy: {rules: [{when: "{{ ctx.round | default(0) < 1 }}", then: {do: jump, to: work, set: {ctx.round: 1}}}]}
YAML
    "$CAIRN" run t.yaml "${store[@]}" --run-id t:1 --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for test -s stray
    kill -9 $pid; wait $pid 2>/dev/null
    cairn_is 0 recover "${store[@]}" --progress none
    ! alive "$(cat stray)" || { kill "$(cat stray)"; fail 'what the first attempt left runs beside the second'; }
    equal "$(wc -l <tries)" 3
}

# An engine that lives: its run, whatever became of the file that it has locked, is nobody else's.
living() {
    held_plan a
    "$CAIRN" run slow.json "${store[@]}" --run-id s-1 --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for step_is s-1 a RUNNING
}
owner_of() { "$CAIRN" ps "${store[@]}" -o json | jq -r '.[0].ownerPid // .[0].owner // "nobody"'; }
test_an_engine_whose_lock_file_was_deleted_or_made_anew_lives() {
    living
    rm store.db-engines
    equal "$(owner_of)" $pid 'owner without the file'
    cairn_is 0 recover "${store[@]}" --progress none; equal "$(times_ran a)" 1 'a after a recover'
    # Another engine makes the file again; the byte of the first one is free in it.
    echo '{"planId":"n","planVersion":"1","steps":[{"stepId":"x","kind":"noop"}]}' >n.json
    cairn_is 0 run n.json "${store[@]}" --run-id n-1 --progress none; [ -e store.db-engines ] || fail 'nobody made the file'
    equal "$(owner_of)" $pid 'owner with another file'
    cairn_is 0 recover "${store[@]}" --progress none; equal "$(times_ran a)" 1 'a after a second recover'
    kill -9 $pid; wait $pid 2>/dev/null
    equal "$(owner_of)" nobody 'owner after its death'
    touch go; cairn_is 0 recover "${store[@]}" --progress none; status_is s-1 COMPLETED || fail 'not COMPLETED'
    intact
}
test_an_engine_whose_lock_file_cannot_be_opened_lives() {
    living
    ln store.db-engines another # a file with two names is refused
    equal "$(owner_of)" $pid 'owner of sqlite'
    rm another
    touch go; wait $pid || fail 'the run failed'
    rm -f go; store=(--store "files:$PWD/f"); rm -rf ran; living
    ln f/.cairn/lock another
    cairn_is 0 get s-1 "${store[@]}" -o json; [ "$(owner_of)" != nobody ] || fail 'files: the owner counts as dead'
    rm another
    touch go; wait $pid || fail 'the run failed'
}
test_a_copy_without_its_lock_file_is_recovered_beside_its_original() {
    living
    mkdir copy; cp store.db store.db-wal copy/ 2>/dev/null
    cairn_is 0 recover --store "sqlite:$PWD/copy/store.db" --progress none
    equal "$(times_ran a)" 2 'a, here and in the copy'
    touch go; wait $pid || fail 'the run of the original failed'
    intact
    store=(--store "sqlite:$PWD/copy/store.db"); status_is s-1 COMPLETED || fail 'the copy is not COMPLETED'
    intact
}
test_a_store_of_a_former_version_is_read_as_it_is_and_gets_its_name_when_written() {
    orphan
    python3 - <<'SCRIPT'
import sqlite3
db = sqlite3.connect("store.db")
db.execute("ALTER TABLE engines DROP COLUMN who")
db.execute("DELETE FROM notes WHERE space='store' AND key='uuid'")
db.commit(); db.close()
SCRIPT
    rm -f store.db-engines
    chmod a-w store.db; cairn_is 0 get o-1 "${store[@]}"; cairn_is 0 ls "${store[@]}"; chmod u+w store.db
    equal "$(owner_of)" nobody 'owner by number alone'
    cairn_is 0 recover "${store[@]}" --progress none; equal "$(times_ran a)" 2
    equal "$(sqlite3 store.db "SELECT count(*) FROM notes WHERE space='store' AND key='uuid'" 2>/dev/null ||
        python3 -c 'import sqlite3; print(sqlite3.connect("store.db").execute("SELECT count(*) FROM notes WHERE space=? AND key=?", ("store", "uuid")).fetchone()[0])')" 1 'names of the store'
}
test_an_orphan_of_the_library_is_found_by_the_command_line() {
    export CAIRN_LIBRARY=$root/build/libcairn.so.0 PYTHONPATH=$root/bindings/python PYTHONDONTWRITEBYTECODE=1
    [ -f "$CAIRN_LIBRARY" ] || make -s -C "$root" library >/dev/null 2>&1 || fail 'make library'
    stray
    python3 - <<'SCRIPT' >lib.out 2>&1 & pid=$!
import cairn
with cairn.Engine("sqlite:./lib.db") as engine:
    engine.run("stray.json", run_id="l-1").result()
SCRIPT
    wait_for test -s stray
    kill -9 $pid; wait $pid 2>/dev/null
    cairn_is 0 recover --store "sqlite:$PWD/lib.db" --progress none
    ! alive "$(cat stray)" || { kill "$(cat stray)"; fail 'what the library left runs beside the second attempt'; }
    equal "$(wc -l <tries)" 2
}

run_tests "$@"
