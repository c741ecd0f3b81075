#!/usr/bin/env bash
# Screens, in a real terminal (tmux): the tree of `run` and `watch`, and `top`.
. "$(dirname "$0")/lib.sh"

# Starts "$@" in a terminal of COLUMNSxROWS; `shot` takes its picture.
open_screen() {
    local size=$1; shift
    printf '%q ' env -u NO_COLOR -u CI TERM=screen LC_ALL="${locale:-C.UTF-8}" "$@" >screen.sh
    echo '; echo "exit=$?"; sleep 60' >>screen.sh
    tmux -S "$PWD/tmux" -f /dev/null new-session -d -x "${size%x*}" -y "${size#*x}" "bash $PWD/screen.sh" || fail "no tmux"
    trap 'tmux -S "$PWD/tmux" kill-server 2>/dev/null; kill $(jobs -p) 2>/dev/null' EXIT
}
no_screen() { ! tmux -S "$PWD/tmux" ls; }
close_screen() { tmux -S "$PWD/tmux" kill-server; wait_for no_screen; rm -f tmux; } # it goes a moment after it was told
shot() { tmux -S "$PWD/tmux" capture-pane -p >shot; }
press() { tmux -S "$PWD/tmux" send-keys "$@"; }
shot_has() { shot && grep -qF -e "$1" shot; }
shot_lacks() { shot && ! grep -qF -e "$1" shot; }
see() { wait_for shot_has "$1"; }
long() {
    cat >long.yaml <<Y
name: long
nodes:
  - {id: first, bash: "echo up; while [ ! -e go ]; do sleep 0.05; done"}
  - {id: a-step-with-a-rather-long-name-indeed, bash: "echo b", depends_on: [first]}
  - {id: broken, bash: "echo what went wrong >&2; exit ${1:-3}", depends_on: [first]}
Y
    "$CAIRN" run long.yaml "${store[@]}" --run-id long-1 --progress none >/dev/null 2>&1 &
    owner=$!
    wait_for step_is long-1 first RUNNING
}

test_watch_follows_a_run_of_another_process_and_ends_with_its_exit_code() {
    long
    open_screen 100x20 "$CAIRN" watch long-1 "${store[@]}"
    see 'running  first'; see 'q leave'; see '│ up'
    touch go
    see 'exit=10'; shot_has 'FAILED' || fail "no end: $(cat shot)"
    shot_has '✗ failed   broken' || fail "the failed step is not shown: $(cat shot)"
}
test_watch_is_left_with_q_and_the_run_goes_on() {
    long 0
    open_screen 100x20 "$CAIRN" watch "${store[@]}"
    see 'running  first'
    press q; see 'goes on without being watched'; see 'exit=0'
    touch go; wait_for status_is long-1 COMPLETED
}
test_watch_pauses_with_p() {
    long 0
    open_screen 100x20 "$CAIRN" watch "${store[@]}"
    see 'running  first'
    press p; see 'asked the run to pause'; see 'PAUSED'
    touch go; wait_for step_is long-1 first SUCCESS
    status_is long-1 PAUSED || fail "it went on"
    kill -9 "$owner"
}
test_watch_tells_that_the_owner_was_killed_and_how_to_go_on() {
    long
    open_screen 300x20 "$CAIRN" watch "${store[@]}"
    see 'running  first'
    kill -9 "$owner"; wait "$owner" 2>/dev/null
    see 'is gone'; see 'recover long-1' # behind the path of the program, which may be long
    touch go; "$CAIRN" recover "${store[@]}" >/dev/null 2>&1
    see 'exit=10'
}
test_watch_tells_the_same_events_as_the_run_itself() {
    long; "$CAIRN" watch long-1 "${store[@]}" --progress json >watched 2>/dev/null & local watcher=$!
    touch go
    local rc=0; wait "$watcher" || rc=$?; equal "$rc" 10 "exit of watch"
    jq -r 'select(.data.event_type).data.event_type' watched >words
    "$CAIRN" events long-1 "${store[@]}" -o jsonl | jq -r .event_type >stored
    cmp words stored || fail "watched: $(tr '\n' ' ' <words) stored: $(tr '\n' ' ' <stored)"
}
test_watch_of_a_waiting_run_exits_13_when_asked() {
    echo '{"name":"g","nodes":[{"id":"gate","approval":{"message":"go?"}}]}' >g.json
    "$CAIRN" run g.json "${store[@]}" --run-id g-1 --exit-on-wait --progress none 2>/dev/null
    cairn_is 13 watch g-1 "${store[@]}" --exit-on-wait --progress plain
    has err 'approve g-1/gate'
}
test_watch_shows_child_runs_below_their_step() {
    echo '{"name":"kid","nodes":[{"id":"inner","bash":"while [ ! -e go ]; do sleep 0.05; done"}]}' >kid.json
    echo '{"name":"dad","nodes":[{"id":"sub","workflow":"kid.json"}]}' >dad.json
    "$CAIRN" run dad.json "${store[@]}" --run-id dad-1 --progress none >/dev/null 2>&1 &
    wait_for step_is dad-1 sub RUNNING
    open_screen 90x16 "$CAIRN" watch dad-1 "${store[@]}"
    see 'running  inner'; touch go; see 'exit=0'
}
test_tree_fits_into_40_and_into_200_columns() {
    local width
    for width in 40 200; do
        rm -f go; rm -rf store.db*; long
        open_screen "${width}x16" "$CAIRN" watch long-1 "${store[@]}"
        see 'running  first'; shot
        [ "$(LC_ALL=C.UTF-8 wc -L <shot)" -le "$width" ] || fail "too wide: $(cat shot)"
        [ "$(grep -c . shot)" = 5 ] || fail "a line was wrapped at $width: $(cat shot)"
        if [ "$width" = 40 ]; then grep -q 'a-step-with.*…' shot || fail "the long name was not cut: $(cat shot)"
        else has shot 'a-step-with-a-rather-long-name-'; has shot 'needs first'; fi
        touch go; see 'exit=10'
        close_screen; wait
    done
}
test_tree_shows_what_was_cancelled_and_fits_names_reasons_and_status_into_60_columns() {
    cat >stop.yaml <<'Y'
name: stop
nodes:
  - {id: broken-for-a-reason-that-one-would-like-to-read, bash: "echo no more room >&2; exit 3"}
  - {id: slow, bash: "sleep 60"}
  - {id: gate, approval: "go?"}
  - {id: last, bash: "true", depends_on: [slow]}
Y
    open_screen 60x30 "$CAIRN" run stop.yaml "${store[@]}"
    see '✗ failed   broken-for-a-reaso'; see 'running  slow'; see 'exit 3: no more'
    press C-c; see 'pausing'; press C-c; see 'exit=11'; shot
    grep -Eq '^run [0-9a-f]{8}  stop @ [0-9a-f]{12}  ■ CANCELLED$' shot || fail "no status: $(cat shot)"
    equal "$(grep -c '^  ■ cancelled' shot)" 3; has shot '0/4 done · 1 failed · 3 cancelled'
}
test_lists_name_runs_by_their_first_characters_where_there_is_little_room() {
    echo '{"name":"narrow-plan","nodes":[{"id":"a","noop":true}]}' >n.json
    cairn_is 0 run n.json "${store[@]}" --progress none -o name; local id; id=$(cat out)
    open_screen 60x10 "$CAIRN" ls "${store[@]}"; see 'exit=0'; shot
    grep -Eq "^${id:0:8}  ✓ COMPLETED +narrow-plan  1/1 " shot || fail "no room: $(cat shot)"
    close_screen
    open_screen 100x10 "$CAIRN" ls "${store[@]}"; see 'exit=0'; shot; has shot "$id"
    cairn_is 0 get "${id:0:8}" "${store[@]}" -o name; equal "$(cat out)" "$id"
}
test_tree_of_2000_steps_shows_what_matters_on_20_lines() {
    python3 - >wide.json <<'P'
import json
steps = [{"stepId": f"s{i}", "kind": "noop", "dependsOn": []} for i in range(1998)]
steps += [{"stepId": "bad", "kind": "shell", "with": {"command": "exit 7"}, "dependsOn": [], "onStepFailure": "hold"},
          {"stepId": "slow", "kind": "shell", "with": {"command": "while [ ! -e go ]; do sleep 0.05; done"}, "dependsOn": []}]
print(json.dumps({"planId": "wide", "planVersion": "1", "schemaVersion": "v1.2", "steps": steps}))
P
    "$CAIRN" run wide.json "${store[@]}" --run-id wide-1 --progress none >/dev/null 2>&1 &
    local pid=$!
    wait_for step_is wide-1 bad FAILED
    open_screen 80x20 "$CAIRN" watch wide-1 "${store[@]}"
    see '1998/2000 done'; see 'held'; see 'running  slow'; see 'not shown'
    shot; [ "$(head -n 1 shot | cut -c1-10)" = 'run wide-1' ] || fail "the head scrolled away: $(cat shot)"
    cairn_is 0 cancel wide-1 "${store[@]}"; wait $pid || true
}
test_tree_counts_the_items_of_a_playbooks_loop_and_the_visits_of_its_steps() {
    cat >loop.yaml <<Y
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: loop, path: loop}
workflow:
  - step: each
    loop: {in: [1, 2, 3], iterator: n}
    tool: {kind: noop}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: again, when: "{{ ctx.again is not defined }}"}
  - step: again
    tool: {kind: noop, set: {ctx.again: true}}
    next: {arcs: [{step: each}]}
Y
    open_screen 100x20 "$CAIRN" run loop.yaml "${store[@]}" --run-id l
    see 'exit=0'
    shot_has 'visit 2  3 of 3 items' || fail "no count: $(cat shot)"
    grep 'again' shot | grep -qE 'round|visit' && fail "a step that was visited once: $(cat shot)"
    return 0
}
test_tree_follows_a_resized_terminal() {
    long
    open_screen 100x20 "$CAIRN" watch long-1 "${store[@]}"
    see 'running  first'
    wide() { [ "$(tmux -S "$PWD/tmux" display-message -p '#{pane_width}x#{pane_height}')" = "$1" ]; }
    tmux -S "$PWD/tmux" resize-window -x 50 -y 12; wait_for wide 50x12; see 'running  first'
    tmux -S "$PWD/tmux" resize-window -x 120 -y 24; wait_for wide 120x24; see 'running  first'
    touch go; see 'exit=10'
}
test_tree_without_utf8_and_without_colour_is_plain_ascii() {
    echo '{"name":"g","nodes":[{"id":"a","bash":"sleep 0.3"}]}' >g.json
    LC_ALL=C NO_COLOR=1 TERM=xterm python3 "$e2e/terminal.py" -- env -u CI "$CAIRN" run g.json "${store[@]}" >tty || fail "exit $?"
    grep -q '+ done' tty || fail "no row: $(cat -v tty)"
    ! LC_ALL=C grep -qP '[\x80-\xff]' tty || fail "not ASCII"
    ! grep -qP '\x1b\[[0-9;]*m' tty || fail "colours"
}
test_a_dumb_terminal_gets_lines_and_no_top() {
    echo '{"name":"g","nodes":[{"id":"a","bash":"true"}]}' >g.json
    TERM=dumb python3 "$e2e/terminal.py" -- env -u CI "$CAIRN" run g.json "${store[@]}" >tty || fail "exit $?"
    ! grep -q $'\x1b' tty || fail "escapes on a dumb terminal"
    has tty 'status=SUCCESS'
    local rc=0; TERM=dumb python3 "$e2e/terminal.py" -- "$CAIRN" top "${store[@]}" >tty || rc=$?; equal "$rc" 2 exit
    cairn_is 2 top "${store[@]}"; has err 'needs a terminal'
}

gate() {
    cat >gate.yaml <<'Y'
name: gate
nodes:
  - {id: a, bash: "echo said-by-a"}
  - {id: ask, approval: {message: "go?"}, depends_on: [a]}
  - {id: b, bash: "echo b", depends_on: [ask]}
Y
    "$CAIRN" run gate.yaml "${store[@]}" --run-id gate-1 --exit-on-wait --progress none >/dev/null 2>&1
}
test_top_lists_runs_opens_one_and_approves_its_gate() {
    gate; echo '{"name":"g","nodes":[{"id":"a","bash":"false"}]}' >g.json
    "$CAIRN" run g.json "${store[@]}" --run-id bad-1 --progress none >/dev/null 2>&1
    open_screen 110x24 "$CAIRN" top "${store[@]}"
    see '2 runs, 1 active, 1 failed'; see '> ✗ bad-1'; see 'EXIT_NONZERO'
    press Down; see '> ● gate-1'
    press Enter; see 'approval ask'; press Down; see '>  ◔ approval ask'
    press e; see 'node_started'
    press a; see 'approve gate-1/ask'; press Escape; wait_for shot_lacks 'reason'; status_is gate-1 RUNNING || fail 'escape approved it'
    press a; see 'reason'; press Enter; see 'COMPLETED'; see '✓ done     b'
    wait_for status_is gate-1 COMPLETED
    press Escape; see '2 runs, 0 active'; press q; see 'exit=0'
}
test_top_asks_for_a_reason_before_it_cancels() {
    gate
    open_screen 100x20 "$CAIRN" top @last "${store[@]}"
    see 'approval ask'
    press c; see 'cancel gate-1; reason'; press Escape; wait_for shot_lacks 'reason'
    status_is gate-1 RUNNING || fail "escape cancelled it"
    press c; see 'reason'; press 'wrong day'; see 'wrong day_'; press Enter
    wait_for status_is gate-1 CANCELLED
    "$CAIRN" get gate-1 "${store[@]}" >card; has card 'wrong day'
}
test_top_goes_on_with_a_run_that_nobody_drives_and_does_not_end_it_when_it_is_left() {
    long 0; kill -9 "$owner"; wait "$owner" 2>/dev/null
    open_screen 100x20 "$CAIRN" top "${store[@]}"
    see 'nobody drives it'; press r
    wait_for eval '"$CAIRN" get long-1 "${store[@]}" | grep -q "owner .*process"'
    press q; see 'exit=0'
    touch go; wait_for status_is long-1 COMPLETED
}
test_top_finds_filters_and_helps() {
    gate; echo '{"name":"other","nodes":[{"id":"a","bash":"true"}]}' >o.json
    "$CAIRN" run o.json "${store[@]}" --run-id other-1 --progress none >/dev/null 2>&1
    open_screen 100x20 "$CAIRN" top "${store[@]}"
    see 'other-1'; press /; press other; press Enter
    wait_for shot_lacks gate-1; see '1 run,'
    press Escape; see gate-1
    press f; see 'active only'; wait_for shot_lacks other-1
    press '?'; see 'cairn top: keys'; press x; wait_for shot_lacks 'cairn top: keys'
}
test_top_of_an_empty_store_says_how_to_begin() {
    open_screen 80x12 "$CAIRN" top
    see 'no runs yet'; press C-c; see 'exit=0'
}

test_a_step_takes_as_long_on_the_screen_as_in_get_and_runs_are_as_far_in_top_as_in_ls() {
    cat >flaky.yaml <<'Y'
name: flaky
nodes:
  - {id: flaky, bash: '[ $CAIRN_ATTEMPT -ge 2 ]', retry: {max_attempts: 1, delay_ms: 1000}}
  - {id: bad, bash: 'exit 1'}
  - {id: never, bash: 'echo', depends_on: [bad]}
Y
    open_screen 100x20 "$CAIRN" run flaky.yaml "${store[@]}" --run-id fl-1
    see 'exit=10'; grep -qE '✓ done +flaky +[0-9]+\.[0-9]s  attempt 2' shot || fail "the step took: $(grep flaky shot)"
    close_screen
    equal "$("$CAIRN" ls "${store[@]}" -o json | jq -r '.[0].progress')" 3/3
    open_screen 100x20 "$CAIRN" top "${store[@]}"
    see fl-1; grep -q ' 3/3 ' shot || fail "top: $(grep fl-1 shot)"
}
run_tests "$@"
