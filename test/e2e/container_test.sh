#!/usr/bin/env bash
# Kind container with a real runc or crun, and no daemon; what podman and docker would be asked for, with a program in their place.
. "$(dirname "$0")/container_lib.sh"

book() { printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\nkeychain: [{name: api, kind: credential}]\nworkflow:\n  - step: start\n    tool:\n%s\n' "$1" "$1" "$2" >"$1.yaml"; }
played() { # NAME [FLAG...]: runs it, whatever comes of it; its first step is in the file out
    local name=$1
    shift
    "$CAIRN" run "$name.yaml" "${store[@]}" --run-id "$name" --progress none --containers containers.json "$@" >run.out 2>run.err
    "$CAIRN" get "$name/start" "${store[@]}" -o json >out || fail "$name: $(cat run.err)"
}
says() { equal "$(jq -c "$1" out)" "$2" "$(cat out)"; }
code_of() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r 'select(.event_type=="task.attempt.failed") | .payload.error.code' | tail -n 1; }
fails() { played "$1" && equal "$(code_of "$1")" "$2" "$(cat out)"; }
left() { ls -d "${TMPDIR:-/tmp}"/cairn-container-* "${TMPDIR:-/tmp}"/cairn-containers-*/* 2>/dev/null; }

test_a_program_runs_in_a_container_without_a_daemon() {
    runtime
    book hi "      - {name: a, kind: container, image: small, files: {n.json: {n: 7}}, script: 'cat /workspace/n.json; echo careful >&2'}"
    played hi
    says '[.result.exit_code, .result.data, .result.stderr, .result.image]' '[0,{"n":7},"careful","small"]'
    has <("$CAIRN" logs hi/start "${store[@]}") careful
    book seven "      - {name: a, kind: container, image: small, command: [/bin/sh, -c, 'exit 7']}"
    played seven; says .status '"FAILED"'
    equal "$(code_of seven)" EXIT_NONZERO
    book script "      - {name: a, kind: container, image: small, files: {list.txt: 'a b'}, cwd: /workspace, script: 'cat list.txt; id -u'}"
    played script; says .result.stdout '"a b65534"'
    book noetl "      - {name: a, kind: container, runtime: {provider: kubernetes, image: small, command: [/bin/bash, -c], args: ['echo \$A'], env: {A: far}}, script: {source: inline, code: 'ls'}}"
    played noetl; says .result.stdout '"far"'
    equal "$(left)" '' 'something was left behind'
}

test_a_container_has_walls() {
    runtime
    echo outside >outside
    cat >look.sh <<'S'
echo net $(while read -r name _; do case $name in *:) echo "$name" ;; esac; done </proc/net/dev)
(echo x >/bin/x) 2>/dev/null && echo wrote
[ -e OUTSIDE ] && echo saw
while read -r name value; do case $name in CapEff:|CapBnd:|NoNewPrivs:) echo $name $value ;; esac; done </proc/self/status
(echo x >/tmp/x) && echo temporary
S
    sed -i "s|OUTSIDE|$PWD/outside|" look.sh
    book walls "      - {name: a, kind: container, image: small, script: {uri: $PWD/look.sh}}"
    SECRET_OF_THE_ENGINE=hunter2 played walls
    says .status '"SUCCESS"'
    jq -r .result.stdout out >text
    hasnt text wrote; hasnt text saw; has text 'CapEff: 0000000000000000'; has text 'CapBnd: 0000000000000000'; has text 'NoNewPrivs: 1'; has text temporary
    equal "$(grep ^net text)" 'net lo:'
    book env "      - {name: a, kind: container, image: small, command: [/bin/env]}"
    SECRET_OF_THE_ENGINE=hunter2 played env
    hasnt out hunter2
    book gone "      - {name: a, kind: container, image: ../small, command: [ls]}"; fails gone IMAGE_INVALID
    book none "      - {name: a, kind: container, image: other, command: [ls]}"; fails none IMAGE_NOT_FOUND
    ln -s / images/slash
    book link "      - {name: a, kind: container, image: slash, command: [/bin/ls]}"; fails link IMAGE_NOT_FOUND
}

test_a_container_stays_within_its_memory() {
    runtime
    [ "$(id -u)" = 0 ] || skip 'limits of memory need root'
    book eat "      - {name: a, kind: container, image: small, resources: {limits: {memory: 16Mi}}, script: 'a=0123456789abcdef; while :; do a=\$a\$a; done'}"
    played eat
    [ "$(jq -r .status out)" = FAILED ] || fail "it took what it wanted: $(cat out)"
    book more "      - {name: a, kind: container, image: small, resources: {limits: {memory: 8Gi}}, script: ls}"; fails more LIMIT_TOO_HIGH
    book what "      - {name: a, kind: container, image: small, resources: {limits: {memory: lots}}, script: ls}"; fails what LIMIT_INVALID
}

test_secrets_go_by_environment_and_file_and_never_by_arguments() {
    runtime
    printf 'api: {token: correct-horse-battery}\n' >credentials.yaml
    cat >show.sh <<'S'
cat /workspace/key.pem; echo; echo ${#TOKEN}
until [ -e /workspace/never ] || [ "$((n+=1))" = 40 ]; do sleep 0.05; done
S
    book safe "      - {name: a, kind: container, image: small, env: {TOKEN: '{{ keychain.api.token }}'}, files: {key.pem: '{{ keychain.api.token }}'}, script: {uri: $PWD/show.sh}}"
    "$CAIRN" run safe.yaml "${store[@]}" --run-id safe --progress none --containers containers.json --credentials credentials.yaml >run.out 2>&1 &
    wait_for bash -c "grep -qsaz [/]workspace/script.sh /proc/[0-9]*/cmdline"
    ! grep -la correct-horse-battery /proc/[0-9]*/cmdline 2>/dev/null || fail 'the secret is an argument'
    wait $!
    "$CAIRN" get safe/start "${store[@]}" -o json >out
    says .result.stdout '"***\n21"'
    ! grep -rqa correct-horse-battery store.db* || fail 'the secret is in the store or a log'
    book argued "      - {name: a, kind: container, image: small, command: [/bin/sh, -c, 'echo {{ keychain.api.token }}']}"
    played argued --credentials credentials.yaml
    equal "$(code_of argued)" SECRET_IN_ARGUMENT
}

test_a_container_ends_with_its_run() {
    runtime
    book long "      - {name: a, kind: container, image: small, script: 'trap : TERM; while :; do sleep 0.1; done'}"
    for how in cancelled late; do
        [ $how = cancelled ] || sed -i 's/kind: container,/kind: container, timeout: 1,/' long.yaml
        "$CAIRN" run long.yaml "${store[@]}" --run-id $how --progress none --containers containers.json >run.out 2>&1 &
        if [ $how = cancelled ]; then
            wait_for bash -c "grep -qsaz [/]workspace/script.sh /proc/[0-9]*/cmdline"
            "$CAIRN" cancel $how "${store[@]}" >cancel.out 2>&1 || fail "$(cat cancel.out)"
        fi
        wait $! && fail "$how: it ended well"
        ! grep -qsaz [/]workspace/script.sh /proc/[0-9]*/cmdline || fail "$how: it still runs"
        equal "$(left)" '' 'something was left behind'
    done
    # Of an engine that was killed: the next one ends it, and runs it again.
    sed -i 's/, timeout: 1,/,/' long.yaml
    "$CAIRN" run long.yaml "${store[@]}" --run-id killed --progress none --containers containers.json >run.out 2>&1 &
    wait_for bash -c "grep -qsaz [/]workspace/script.sh /proc/[0-9]*/cmdline"
    [ -n "$(left)" ] || fail 'there is nothing to sweep'
    kill -9 $!; wait $! 2>/dev/null
    book next "      - {name: a, kind: container, image: small, script: 'ls /proc'}"
    played next; says .status '"SUCCESS"'
    ! grep -qsaz [/]workspace/script.sh /proc/[0-9]*/cmdline || fail 'it still runs'
    equal "$(left)" '' 'something was left behind'
}

test_in_a_service_its_configuration_says_who_runs_containers() {
    runtime
    book in "      - {name: a, kind: container, image: small, script: 'echo in'}"
    serve
    CAIRN_TOKEN=$token "$CAIRN" run in.yaml --server "$url" --run-id none --progress none >/dev/null 2>&1 && fail 'it ran without the setting'
    has <(CAIRN_TOKEN=$token "$CAIRN" get none --server "$url") CONTAINERS_NOT_CONFIGURED
    stop_serving
    printf '[serve.containers]\ncommand = ["%s"]\nimages = "%s/images"\n' "$runtime" "$PWD" >cairn.toml
    rm -f store.db*; serve
    CAIRN_TOKEN=$token "$CAIRN" run in.yaml --server "$url" --run-id in --progress none >run.out 2>&1 || fail "$(CAIRN_TOKEN=$token "$CAIRN" why in --server "$url"; tail -n 2 serve.err)"
    equal "$(CAIRN_TOKEN=$token "$CAIRN" get in/start --server "$url" -o json | jq -r .result.stdout)" in
    stop_serving
    printf '[serve.containers]\ncommand = ["runc"]\n' >cairn.toml
    cairn_is 2 serve --store "sqlite:$PWD/other.db" --listen 127.0.0.1:0; has err 'images'
}

# What podman and docker are asked for: a program that writes its arguments down and does what a container would.
test_podman_and_docker_are_asked_for_a_container_with_walls() {
    cat >engine <<'P'
#!/bin/bash
printf '%s\n' "$@" >>asked; echo -- >>asked
[ "$1" = run ] || exit 0
while [ $# -gt 0 ]; do case $1 in --env-file) cp "$2" env.seen ;; --volume=*) cp -r "${1#--volume=}" files.seen 2>/dev/null || cp -r "$(cut -d= -f2 <<<"$1" | cut -d: -f1)" files.seen ;; esac; shift; done
echo ran
P
    sed -i "s|>>asked|>>$PWD/asked|g; s|env.seen|$PWD/env.seen|; s|files.seen|$PWD/files.seen|g" engine && chmod +x engine
    printf '{"command": ["%s/engine"]}' "$PWD" >containers.json
    printf 'api: {token: correct-horse-battery}\n' >credentials.yaml
    book cli "      - {name: a, kind: container, image: 'registry.example/tool:1', command: [work], args: [--fast], env: {TOKEN: '{{ keychain.api.token }}', DOCKER_HOST: 'tcp://evil'}, files: {a.txt: hi}, resources: {limits: {cpu: 500m}}}"
    played cli --credentials credentials.yaml
    says .result.stdout '"ran"'
    equal "$(cat env.seen)" $'DOCKER_HOST=tcp://evil\nTOKEN=correct-horse-battery'
    equal "$(cat files.seen/a.txt)" hi
    hasnt asked correct-horse; hasnt asked evil
    for word in --rm --init --pull=never --read-only --cap-drop=ALL --security-opt=no-new-privileges --user=65534:65534 --cpus=0.500 none; do
        grep -qxF -e "$word" asked || fail "$word is missing: $(cat asked)"
    done
    equal "$(sed -n '/^registry/,/^--$/p' asked | tr '\n' ' ')" 'registry.example/tool:1 work --fast -- '
    book lines "      - {name: a, kind: container, image: x, env: {A: \"a\\nb\"}}"; fails lines ENV_INVALID
    book name "      - {name: a, kind: container, image: x, env: {'A=B': 1}}"; fails name ENV_INVALID
    book dash "      - {name: a, kind: container, image: --privileged}"; fails dash IMAGE_MISSING
    book file "      - {name: a, kind: container, image: x, files: {../up: 1}}"; fails file FILES_INVALID
    echo '{"command": ["podman"], "network": "--privileged"}' >containers.json
    cairn_is 2 run dash.yaml "${store[@]}" --containers containers.json; has err network
    echo '{"command": ["podman"], "comand": 1}' >containers.json
    cairn_is 2 run dash.yaml "${store[@]}" --containers containers.json; has err comand
    book unset "      - {name: a, kind: container, image: x}"
    "$CAIRN" run unset.yaml "${store[@]}" --run-id unset --progress none >/dev/null 2>&1
    equal "$(code_of unset)" CONTAINERS_NOT_CONFIGURED
}

run_tests "$@"
