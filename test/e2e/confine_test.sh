#!/usr/bin/env bash
# Steps of a whole run under --confine, and secrets of providers through the whole engine. What a kernel lacks is skipped.
. "$(dirname "$0")/lib.sh"

level_is_there() {
    echo '{"planId":"l","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >level.json
    "$CAIRN" run level.json --store memory: --confine "$1" --progress none >/dev/null 2>level.err || skip "$(head -n 1 level.err)"
}
result_of() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r "select(.stepId==\"$2\" and .eventType==\"StepCompleted\").payload.result"; }

test_confined_steps_see_what_they_declare_X2() {
    level_is_there basic
    cat >p.json <<'PLAN'
{"planId":"p","planVersion":"1","steps":[
 {"stepId":"env","kind":"exec","with":{"argv":["env"],"env":{"MINE":"1"}}},
 {"stepId":"fds","kind":"exec","with":{"argv":["ls","/proc/self/fd"]}},
 {"stepId":"limits","kind":"shell","with":{"command":"ulimit -n; ulimit -c; grep -c NoNewPrivs:.1 /proc/self/status || :"}}]}
PLAN
    LEAK=leaked LD_BIND_NOW=1 cairn_is 0 run p.json "${store[@]}" --run-id p-1 --confine basic --progress none
    result_of p-1 env | cut -d= -f1 | sort >names
    hasnt names LEAK; hasnt names LD_BIND_NOW; hasnt names USER; has names MINE; has names CAIRN_IDEMPOTENCY_KEY
    equal "$(result_of p-1 env | grep -c "^HOME=$PWD\$")" 1
    equal "$(result_of p-1 fds | paste -sd,)" "0,1,2,3"
    equal "$(result_of p-1 limits | paste -sd,)" "256,0,1"
    # Without being asked nothing changes (ADR 0008).
    LEAK=leaked cairn_is 0 run p.json "${store[@]}" --run-id p-2 --progress none
    equal "$(result_of p-2 env | grep -c '^LEAK=leaked$')" 1
    intact
}
test_confined_steps_reach_only_their_files_X4() {
    level_is_there files
    mkdir work; echo top >secret
    cat >work/p.json <<PLAN
{"planId":"p","planVersion":"1","steps":[
 {"stepId":"in","kind":"shell","with":{"command":"echo mine > file; cat file; echo art > \$ARTIFACTS_DIR/a"},"artifacts":[{"path":"a","kind":"text"}]},
 {"stepId":"out","kind":"shell","with":{"command":"cat $PWD/secret"}}]}
PLAN
    (cd work && CAIRN_CONFINE=files cairn_is 10 run p.json "${store[@]}" --run-id p-1 --progress none)
    equal "$(result_of p-1 in)" mine
    cairn_is 0 events p-1 "${store[@]}" -o jsonl
    equal "$(jq -r 'select(.stepId=="out" and .eventType=="StepFailed").payload.errorCode' out)" EXIT_NONZERO
    has out 'Permission denied'; hasnt out top
    cairn_is 0 why p-1/out "${store[@]}"; has out 'the step is confined, --confine files'; has out 'read, write'
    cairn_is 0 serve --help; has out '[serve.confinement]'
}
test_a_confined_step_cannot_touch_its_engine_X3() {
    level_is_there full
    cat >p.json <<'PLAN'
{"planId":"p","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":
 "kill -0 $PPID && echo signalled; kill -9 $PPID && echo killed; cat /proc/$PPID/environ && echo read; cat /proc/$PPID/mem && echo mem; echo end"}}]}
PLAN
    ENGINE_TOKEN=of-the-engine cairn_is 0 run p.json "${store[@]}" --run-id p-1 --confine full --progress none
    equal "$(result_of p-1 a)" end
    ! grep -rqF of-the-engine . || fail "the engine's environment was read"
}
test_settings_and_faults_of_confinement() {
    cairn_is 2 run p.json --confine much; has err 'none|auto|basic|files|full'
    echo '{"planId":"p","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >p.json
    cairn_is 5 run p.json "${store[@]}" --secrets nowhere.json
    echo '{"providers":[{"name":"x","type":"guess"}]}' >bad.json
    cairn_is 2 run p.json "${store[@]}" --secrets bad.json; has err 'env, file, systemd, exec'
}
test_a_secret_of_one_environment_is_not_there_in_another_RE_5b() {
    mkdir -p vault/default/prod vault/default/dev
    echo prod-value-1 >vault/default/prod/db; echo dev-value-1 >vault/default/dev/db; echo only-prod-1 >vault/default/prod/key
    chmod 600 vault/default/*/*
    echo "{\"providers\":[{\"name\":\"v\",\"type\":\"file\",\"path\":\"$PWD/vault\"}]}" >providers.json
    cat >p.json <<'PLAN'
{"planId":"p","planVersion":"1","steps":[
 {"stepId":"db","kind":"shell","secrets":[{"name":"S","ref":"secret://v/db"}],"with":{"command":"printf %s \"$S\" | rev"}},
 {"stepId":"key","kind":"shell","secrets":[{"name":"S","ref":"secret://v/key"}],"with":{"command":"printf %s \"$S\" | rev"}}]}
PLAN
    cairn_is 0 run p.json "${store[@]}" --run-id p-1 --environment prod --secrets providers.json --progress none
    equal "$(result_of p-1 db) $(result_of p-1 key)" "1-eulav-dorp 1-dorp-ylno"
    cairn_is 10 run p.json "${store[@]}" --run-id p-2 --environment dev --secrets providers.json --progress none
    equal "$(result_of p-2 db) $(result_of p-2 key)" "1-eulav-ved "
    cairn_is 0 events p-2 "${store[@]}" -o jsonl; has out SECRET_NOT_FOUND
}
# Each run has a secret of its own, printed in every form that programs print, on both streams, whole and in pieces, as the
# reason of a failure and into a live terminal. Afterwards nothing of ours holds it.
test_canaries_are_nowhere_S1_ES_2a() {
    local i canary
    mkdir -p v/default/default private
    echo "{\"providers\":[{\"name\":\"v\",\"type\":\"file\",\"path\":\"$PWD/v\"}]}" >providers.json
    cat >p.json <<'PLAN'
{"planId":"p","planVersion":"1","onStepFailure":"fail_run","steps":[
 {"stepId":"a","kind":"shell","secrets":[{"name":"S","ref":"secret://v/canary"}],"with":{"command":
  "echo \"$S\"; echo \"$S\" >&2; printf %s \"$S\" | base64; printf x%s \"$S\" | base64; printf xy%sz \"$S\" | base64; printf %s \"$S\" | xxd -p; printf %s \"$S\" | xxd -p -u; jq -rn 'env.S|@uri, @json, @base64'; printf %s \"$S\" | iconv -t utf-16le; i=0; while [ $i -lt ${#S} ]; do printf %s \"$(printf %s \"$S\" | cut -c$((i+1)))\"; i=$((i+1)); done; echo"}},
 {"stepId":"b","kind":"shell","dependsOn":["a"],"secrets":[{"name":"S","ref":"secret://v/canary"}],"with":{"command":"echo \"failed with $S\" >&2; exit 3"}}]}
PLAN
    for i in 1 2 3 4 5 6; do
        canary="can4ry/$i+\"$RANDOM\"$RANDOM\\end"
        printf %s "$canary" >v/default/default/canary; chmod 600 v/default/default/canary
        printf '%s\n' "$canary" >>private/canaries
        cairn_is 10 run p.json "${store[@]}" --run-id "c-$i" --secrets providers.json --progress plain -v
        cat out err >>shown
        cairn_is 0 logs "c-$i" "${store[@]}"; cat out >>shown
        cairn_is 0 events "c-$i" "${store[@]}" -o jsonl; cat out >>shown
    done
    rm -r v
    grep -q 'failed with \*\*\*' shown || fail "nothing was masked"
    python3 - <<'PY' || fail "a canary was found"
import base64, json, os, sys, urllib.parse
found = 0
for canary in open("private/canaries").read().split("\n")[:-1]:
    c = canary.encode()
    forms = {c, c.hex().encode(), c.hex().upper().encode(), urllib.parse.quote(canary, safe="").encode(), json.dumps(canary)[1:-1].encode(),
             canary.encode("utf-16le"), json.dumps(json.dumps(canary)[1:-1])[1:-1].encode()}
    for k in range(3): # what is certain of the code behind k bytes
        code = base64.b64encode(b"x" * k + c)
        forms.add(code[(k * 8 + 5) // 6:(k + len(c)) * 8 // 6])
    for base, dirs, files in os.walk("."):
        if "private" in dirs: dirs.remove("private")
        for f in files:
            data = open(os.path.join(base, f), "rb").read()
            for form in forms:
                if form in data:
                    print("found", form, "in", base, f, file=sys.stderr); found += 1
sys.exit(found != 0)
PY
}
run_tests "$@"
