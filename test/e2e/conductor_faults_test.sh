# What goes wrong between a host, its Conductor and the server of Cairn: lost, wrong and hostile answers, kills at every arrow, a Conductor that
# is away or has forgotten everything, others that share it. On the fake, and with CAIRN_CONDUCTOR_URL on a real server (make live-conductor).
. "$(dirname "$0")/conductor_lib.sh"

nothing_open() { local name; for name in cairn_run cairn_attempt cairn_attempt_ext; do ! states $name "$1" | grep -qE 'RUNNING|PAUSED' || return 1; done; }
once_each() { sort "${1:-ran}" | uniq -d >twice; empty twice; }

test_replies_that_are_lost_cut_late_or_wrong_and_updates_that_do_nothing_change_nothing() {
    conductor
    between
    site
    host h1
    for fault in lose_start lose_update ignore_update deliver_twice retryable_500 broken_500 unavailable cut slow away; do
        faults "{\"$fault\": 2}"
        start "$fault-$x" "$(shell a "echo $fault a >>$PWD/ran")" "$(shell b "echo $fault b >>$PWD/ran" '["a"]')"
        wait_for ended "$fault-$x" COMPLETED
        counted "$fault-$x" StepRedispatched 0 || fail "$fault: a step ran again"
    done
    equal "$(wc -l <ran)" 20 'executions'
    once_each
    for fault in lose_start lose_update ignore_update deliver_twice cut; do
        wait_for states_are cairn_run "$fault-$x" '1 COMPLETED'
        wait_for nothing_open "$fault-$x"
    done
    if [ -z "$live" ]; then # what follows from an update comes late: only the fake can be told to
        curl -s -X POST "${api%/api}/fake/late" -d '{}' >/dev/null
        start "late-$x" "$(shell a true)"
        wait_for ended "late-$x" COMPLETED
        wait_for states_are cairn_attempt "late-$x" '1 COMPLETED'
    fi
    intact
}

# Between a task that is leased and an outcome that Conductor has there are eight places where a host may die.
test_a_host_that_is_killed_at_any_arrow_leaves_nothing_twice_and_nothing_open() {
    conductor
    between
    site 1s
    proxy_to "$url" here
    local n=0 arrow
    for arrow in 'way|POST /workflow cairn_attempt|before' 'way|POST /workflow cairn_attempt|after' 'way|GET /tasks/poll/batch/cairn_attempt|brought' 'step' \
        'here|POST /v1/worker/complete|before' 'here|POST /v1/worker/complete|after' 'way|POST /tasks COMPLETED|before' 'way|POST /tasks COMPLETED|after'; do
        n=$((n + 1))
        local run="arrow$n-$x" where=${arrow%%|*} rest=${arrow#*|}
        [ "$where" = step ] || hold "${rest%|*}" "${rest##*|}" "$where"
        url=http://127.0.0.1:$(cat here.port) host "h$n" --silent 1s
        start "$run" "$(shell a "echo $run \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ $where != step ] || [ \$CAIRN_ENGINE_ATTEMPT -gt 1 ] || exec sleep 600")"
        if [ "$where" = step ]; then wait_for grep -q "$run" ran; else wait_for held "$where"; fi
        kill -9 "$host"
        [ "$where" = step ] || way release '' "$where" >/dev/null
        url=http://127.0.0.1:$(cat here.port) host "g$n" --silent 1s
        wait_for ended "$run" COMPLETED
        wait_for nothing_open "$run"
        counted "$run" StepCompleted 1 || fail "$arrow: not one completion"
        kill -9 "$host"
    done
    equal "$(cut -d ' ' -f 1 ran | sort -u | wc -l)" 8 'runs whose step ran'
    once_each
    intact
}

test_a_conductor_that_is_away_and_one_that_has_lost_everything_cost_no_step() {
    conductor own
    site
    host h1
    held_step() { shell "$1" "echo $1 >>$PWD/ran; until [ -e $PWD/go ]; do sleep 0.02; done"; }
    start "away-$x" "$(held_step a)" "$(shell b "echo b >>$PWD/ran" '["a"]')"
    wait_for test -s ran
    conductor_down
    touch go
    wait_for grep -q 'Conductor is away: ' h1.err
    wait_for counted "away-$x" StepCompleted 1 # what runs goes on without it
    conductor_up
    wait_for ended "away-$x" COMPLETED
    wait_for grep -q 'Conductor is back' h1.err
    wait_for states_are cairn_run "away-$x" '1 COMPLETED'
    wait_for states_are cairn_attempt "away-$x" '2 COMPLETED'
    equal "$(tr '\n' ' ' <ran)" 'a b ' 'executions'
    rm -f go ran
    start "wiped-$x" "$(held_step a)" "$(shell b "echo b >>$PWD/ran" '["a"]')"
    wait_for test -s ran
    conductor_down
    conductor_forgets
    conductor_up
    equal "$(states cairn_run "away-$x")" '' 'what it remembers'
    touch go
    wait_for ended "wiped-$x" COMPLETED
    equal "$(tr '\n' ' ' <ran)" 'a b ' 'executions'
    wait_for states_are cairn_run "wiped-$x" '1 COMPLETED'
    counted "wiped-$x" StepRedispatched 0 || fail 'a step ran again'
    intact
}

test_attempts_that_wait_for_a_conductor_that_is_away_are_given_back_and_others_are_not_taken() {
    conductor
    between
    site 30s
    host h1 --patience 500ms
    start "warm-$x" "$(shell a true)"
    wait_for ended "warm-$x" COMPLETED
    hold 'POST /workflow cairn_attempt' before
    start "gone-$x" "$(shell a "echo a >>$PWD/ran")"
    wait_for held # it is leased, and Conductor does not know it
    faults '{"away": -1}'
    way release >/dev/null
    wait_for grep -q 'waited too long for Conductor' h1.err
    has h1.err 'Conductor is away: '
    start "next-$x" "$(shell a "echo b >>$PWD/ran")"
    # A plain worker of the pool takes both.
    CAIRN_TOKEN=$host_token "$CAIRN" worker --server "$url" --pool conductor --name plain >w.out 2>w.err &
    wait_for ended "gone-$x" COMPLETED
    wait_for ended "next-$x" COMPLETED
    once_each
    equal "$(grep -c 'is away' h1.err)" 1 'it says so'
    intact
}

test_a_start_that_fails_for_reasons_of_conductor_fails_no_step() {
    conductor
    between
    site
    host h1 --patience 500ms
    faults '{"broken_500": -1, "only": "POST /workflow cairn_attempt"}'
    start "slow-$x" "$(shell a "echo a >>$PWD/ran")"
    wait_for grep -q 'waited too long for Conductor' h1.err
    faults '{"broken_500": 0}'
    wait_for ended "slow-$x" COMPLETED
    equal "$(wc -l <ran)" 1 'executions'
}

test_an_address_that_is_no_conductor_is_told_and_fails_no_step() {
    conductor
    between
    site
    for kind in absent unauthorized moved garbage other_type; do
        faults "{\"$kind\": -1}"
        host "$kind"
        wait_for grep -q 'Conductor is away: ' "$kind.err"
        start "$kind-$x" "$(shell a "echo $kind >>$PWD/ran")"
        faults "{\"$kind\": 0}"
        wait_for ended "$kind-$x" COMPLETED
        kill "$host"
        wait "$host" || fail "$kind: the host ended with $?"
    done
    has absent.err 'it answers 404'
    has absent.err 'with /api?'
    has unauthorized.err 'it answers 401'
    equal "$(wc -l <ran)" 5 'executions'
}

run_tests "$@"
