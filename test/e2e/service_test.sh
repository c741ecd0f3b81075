# What a server has besides runs, from the command line: tokens, queues, limits, workers, sinks, alerts, definitions (A4, A8).
. "$(dirname "$0")/serve_lib.sh"

served() { serve "$@"; export CAIRN_SERVER=$url CAIRN_TOKEN=$token; }
id_of() { "$CAIRN" token ls -o json | jq -r --arg n "$1" '.[] | select(.name == $n and .revokedAt == null) | .id'; }

test_tokens_are_made_rotated_and_revoked() {
    served
    cairn_is 0 token new ci --role Engineer --role Operator --expires 90d --project p --out ci.token
    has err 'is in ci.token'; equal "$(stat -c %a ci.token)" 600
    equal "$("$CAIRN" token ls -o json | jq -c '.[] | select(.name == "ci") | [.roles, .projects]')" '[["Operator","Engineer"],["p"]]'
    old=$(id_of ci); cp ci.token old.token
    CAIRN_TOKEN= cairn_is 0 ls --token-file ci.token
    count() { "$CAIRN" token ls -o json | jq length; }
    before=$(count)
    cairn_is 6 token new ci --role Engineer --out ci.token; has err 'ci.token is there already'; has err 'no token was made'
    cairn_is 6 token rotate "$old" --out ci.token; has err 'ci.token is there already'
    equal "$(count)" "$before" 'tokens'; cmp ci.token old.token
    rm ci.token
    cairn_is 0 token rotate "$old" --out ci.token; has err "token $old is revoked"
    CAIRN_TOKEN= cairn_is 4 ls --token-file old.token
    CAIRN_TOKEN= cairn_is 0 ls --token-file ci.token
    equal "$("$CAIRN" token ls -o json | jq -c '.[] | select(.name == "ci" and .revokedAt == null) | [.roles, .projects, (.expiresAt != null)]')" '[["Operator","Engineer"],["p"],true]'
    cairn_is 5 token rotate "$old"; has err 'is revoked'
    cairn_is 0 token ls -o table; has_line out 'ci +revoked'; has_line out 'ci +good'
    cairn_is 5 token revoke nosuch; has err 'there is no token nosuch here'
    cairn_is 5 alert ack nosuch; has err 'there is no alert nosuch here'
    cairn_is 5 definition get nosuch 00ff; has err 'there is no definition nosuch/00ff here'
    cairn_is 5 dlq drop bus.7 --reason x
    new=$(id_of ci)
    cairn_is 0 token revoke "${new%??}"; has err "token $new is revoked"
    CAIRN_TOKEN= cairn_is 4 ls --token-file ci.token
    cairn_is 2 token new x; has err '--role'
    cairn_is 2 token new x --role Engineer --expires soon; has err 'neither a duration'
    cairn_is 0 token ls -o table; has out 'Engineer, Admin'
    stop_serving
}
# The new token and the end of the old one are one batch: of many that exchange it at once one gets a token, and there is one good token after a crash.
test_an_exchange_of_tokens_is_whole_A4() {
    served
    ask POST /v1/tokens '{"name":"ci","roles":["Operator"]}'; answers 201; old=$(jq -r .id body)
    local i pids=()
    for i in 1 2 3 4 5 6; do
        curl -s -o "got.$i" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' --data-binary "{\"name\":\"ci\",\"roles\":[\"Operator\"],\"replaces\":\"$old\"}" "$url/v1/tokens" & pids+=($!)
    done
    wait "${pids[@]}"
    equal "$(cat got.* | jq -r 'select(.token) | .id' | wc -l)" 1 'tokens that were made'
    equal "$(id_of ci | wc -l)" 1 'good tokens'
    new=$(id_of ci)
    kill -9 "$server"; wait "$server" 2>/dev/null
    served
    equal "$(id_of ci)" "$new" 'after a crash'
    ask POST /v1/tokens "{\"name\":\"ci\",\"roles\":[\"Operator\"],\"replaces\":\"$old\"}"; answers 409; code_is TOKEN_REVOKED
    # Nobody revokes by it what is not theirs to revoke, and nothing is made then.
    ask POST /v1/tokens '{"name":"b","roles":["Admin"],"tenantId":"b"}'; answers 201
    token=$(jq -r .token body)
    ask POST /v1/tokens "{\"name\":\"mine\",\"roles\":[\"Operator\"],\"replaces\":\"$new\"}"; answers 404
    ask GET /v1/tokens; hasnt body '"mine"'
    equal "$(id_of ci)" "$new" 'the token of another tenant'
    cairn_is 5 token rotate "$new" --out no/such/directory/file
    [ "$("$CAIRN" token ls -o json | jq -r --arg n "$(id_of ci)" '.[] | select(.id == $n) | .name')" = ci ] || fail 'there is no good token'
    printf '%s' "$(tail -n 1 out)" >shown.token; chmod 600 shown.token
    CAIRN_TOKEN= cairn_is 0 ls --token-file shown.token
    stop_serving
}
test_owner_of_the_store_gets_in_without_any_token() {
    served
    cairn_is 6 token bootstrap --store "sqlite:$PWD/store.db"; has err 'has a token that is good'
    rm "$PWD"/store.db.token
    cairn_is 0 token bootstrap --store "sqlite:$PWD/store.db"; file=$(cat out)
    equal "$file" "$PWD/store.db.token"; equal "$(stat -c %a "$file")" 600
    kill -HUP "$server"
    gets_in() { CAIRN_TOKEN= "$CAIRN" token ls --token-file "$file" >/dev/null 2>&1; }
    wait_for gets_in
    stop_serving
    rm "$file"
    "$CAIRN" serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0 >/dev/null 2>again.err & server=$!
    wait_for grep -q 'token bootstrap' again.err
    ! grep -qF "$file" again.err || fail "it names a file that is not there: $(cat again.err)"
    kill -TERM $server; wait $server
    mkdir open; chmod 777 open; mkfifo pipe
    cairn_is 4 token bootstrap --store "sqlite:$PWD/store.db" --out open/x; has err 'everybody may write'
    "$CAIRN" token bootstrap --store "sqlite:$PWD/store.db" --out pipe >out 2>err && fail 'a pipe was replaced'
    has err 'not a regular file'; [ -p pipe ] || fail 'the pipe is gone'
    cairn_is 0 token bootstrap --store "sqlite:$PWD/store.db" --out other.token
    unset CAIRN_SERVER
    cairn_is 0 audit verify --store "sqlite:$PWD/store.db"
}
test_queues_limits_and_definitions_have_commands() {
    served
    cairn_is 0 queue set nightly --set maxRunning=2 --set priority=-5 -o json
    equal "$(jq -c '[.maxRunning, .priority, .policy]' out)" '[2,-5,"QUEUE"]'
    cairn_is 0 queue pause nightly; cairn_is 0 queue get nightly; has out 'paused             true'
    echo '{"planId":"p","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >p.json
    cairn_is 0 run p.json --queue nightly --run-id q1 --detach
    cairn_is 0 queue ls -o json; equal "$(jq -c '.[] | select(.name == "nightly") | .queued' out)" 1
    cairn_is 6 queue rm nightly
    cairn_is 0 queue resume nightly; cairn_is 0 wait q1 --timeout 60s
    cairn_is 0 queue rm nightly; has err 'done: queue rm nightly'
    cairn_is 5 queue get nightly; has err QUEUE_NOT_FOUND
    cairn_is 2 queue set nightly; has err '--set NAME=VALUE'
    cairn_is 0 limits set --set startsPerSecond=9; cairn_is 0 limits get; has out 'startsPerSecond    9'
    cairn_is 0 definition put p p.json; cairn_is 0 definition ls p -o name; sha=$(cat out)
    equal "$sha" "$(sha256sum p.json | cut -d' ' -f1)"; cairn_is 0 definition get p "${sha:0:9}"; has out "$sha"
    cairn_is 0 definition run p; has err COMPLETED
    cairn_is 0 definition run "p@${sha:0:9}" --run-id by-hash; cairn_is 0 definition run p@1 --run-id by-version --detach; has out by-version
    cairn_is 5 definition run p@9; has err 'there is no version 9 of definition p here'
    cairn_is 5 definition run nosuch; has err 'there is no definition nosuch here'
    jq '.steps[0].name = "other"' p.json >p2.json; cairn_is 0 definition put p p2.json
    cairn_is 2 definition run p@1; has err 'has several versions 1'
    cairn_is 0 queue rm default; has err 'the queue default cannot be removed'; cairn_is 0 queue get default
    cairn_is 0 worker ls; cairn_is 0 outbox ls; cairn_is 0 dlq ls; cairn_is 0 alert ls
    cairn_is 5 alert ack none
    CAIRN_SERVER= cairn_is 2 queue ls --no-config-env; has err 'asks a server'
    CAIRN_SERVER= cairn_is 2 run p.json --queue x --no-config-env --store "sqlite:$PWD/l.db"; has err '--queue is for runs of a server'
    stop_serving
}

run_tests "$@"
