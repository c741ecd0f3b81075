#!/usr/bin/env bash
# The command line itself: usage errors and suggestions, help, formats, colours, pipes, error texts, exit codes.
. "$(dirname "$0")/lib.sh"

hello='{"planId":"hello","planVersion":"1","steps":[{"stepId":"greet","kind":"echo","with":{"message":"hi"}}]}'

test_version() {
    cairn_is 0 --version; has_line out '^cairn [0-9]+\.[0-9]+'; empty err
    cairn_is 0 version; has_line out '^cairn [0-9]'
    cairn_is 0 version -o json; jq -e .version out >/dev/null || fail "no version in JSON"
}
test_no_arguments_shows_commands() {
    cairn_is 0
    for c in run validate ls get events pause resume cancel retry skip approve reject signal recover 'log verify' 'log replay' 'log export' 'log import' 'key new' 'key show' 'key sign' 'key verify' 'store copy' bench version help; do
        has out "  $c "
    done
}
test_unknown_command_suggests() {
    cairn_is 2 rnu x; has err 'there is no command `rnu`'; has err 'did you mean `cairn run`?'
    cairn_is 2 frobnicate; has err '`cairn help` lists the commands'
    cairn_is 2 log; has err 'needs a second word'; has err 'one of: verify'
}
test_unknown_flag_suggests() {
    cairn_is 2 run x.json --stroe y; has err '`cairn run` has no flag --stroe'; has err 'did you mean --store?'
    cairn_is 2 ls --run-id x; has err '`cairn ls` has no flag --run-id'
    cairn_is 2 ls -x; has err 'has no flag -x'
}
test_flag_values_are_checked() {
    cairn_is 2 run x.json --progress fancy; has err '--progress cannot be fancy'; has err 'auto|tree|plain|json|none'
    cairn_is 2 ls -o xml; has err 'has no output format xml'; has err 'table|wide|json'
    cairn_is 2 ls --limit many; has err '--limit cannot be many'
    cairn_is 2 ls --limit; has err '--limit needs a value'
    cairn_is 2 ls --all=yes; has err '--all takes no value'
    cairn_is 2 ls --status DONE; has err 'there is no status DONE'
    cairn_is 2 ls --since yesterday; has err '--since cannot be yesterday'
}
test_missing_and_extra_words() {
    cairn_is 2 run; has err '`cairn run` needs FILE'
    cairn_is 2 get; has err 'needs RUN'
    cairn_is 2 get a b; has err 'cannot use b'
    cairn_is 2 signal abcd; has err 'needs RUN TYPE'
    cairn_is 2 log verify; has err 'give a run, or --all'
}
test_help_of_every_command() {
    for c in run validate ls get events pause resume cancel retry skip approve reject signal recover 'log verify' 'log replay' 'log export' 'log import' 'key new' 'key show' 'key sign' 'key verify' 'store copy' bench version help; do
        cairn_is 0 $c --help; has out "cairn $c"; has out 'Usage'; has out 'Examples'; empty err
        cairn_is 0 help $c; has out "cairn $c"
    done
}
test_a_file_is_signed_and_openssl_agrees() {
    cairn_is 0 key new --out me
    cairn_is 0 key new --out other
    echo 'a sum' >sums
    cairn_is 0 key sign sums --sign me.key
    openssl pkeyutl -verify -pubin -inkey me.pub -rawin -in sums -sigfile sums.sig >/dev/null || fail 'openssl does not take it'
    cairn_is 0 key verify sums --pubkey me.pub -o json
    jq -e '.keyId | length == 64' out >/dev/null || fail 'no key id'
    cairn_is 8 key verify sums --pubkey other.pub
    echo more >>sums
    cairn_is 8 key verify sums --pubkey me.pub; has err 'is not what the owner of this key signed'
    echo xx >>sums.sig
    cairn_is 8 key verify sums --pubkey me.pub
    rm sums.sig
    cairn_is 5 key verify sums --pubkey me.pub
    cairn_is 2 key verify sums; has err '--pubkey'
    printf ' {"runs": []}' >manifest # as a bundle is signed
    cairn_is 2 key sign manifest --sign me.key; has err 'a bundle'
    [ ! -e manifest.sig ] || fail 'it was signed'
    cairn_is 2 key sign sums; has err '--sign'
}
test_help_topics() {
    cairn_is 0 help exit-codes
    for n in 0 1 2 3 4 5 6 7 8 10 11 12 13 20 130 143; do has_line out "^  $n +[a-z]"; done
    cairn_is 0 help formats; has out jsonl
    cairn_is 0 help environment; has out CAIRN_STORE
    cairn_is 0 help targets; has out @last-failed
    cairn_is 0 help errors; has out E0203
    cairn_is 0 help E0203; has out 'an unknown field'
    cairn_is 0 help e0203; has out 'an unknown field'
    cairn_is 2 help E9999; has err 'no help on E9999'
    cairn_is 0 help urn:cairn:problem:RUN_HAS_MOVED; has out 'If-Match did not hold'
    cairn_is 0 help run_terminal; has out 'has ended'
    # Every code that a service answers with is explained, where its `type` leads.
    cairn_is 0 help problems; sed -n 's/^  //p' out | sort -u >told
    sources=$(dirname "$script")/../../src
    grep -rhozE '(call_problem|reply_now|call_refuse|wire_problem)\([^;]*"[A-Z_]+"' "$sources"/{api,service,remote} | tr '\0' '\n' |
        grep -oE ', "[A-Z][A-Z_]+"' | tr -d ', "' >codes
    grep -hoE 'refuse\("[A-Z_]+"' "$sources"/kernel/*.c | grep -oE '[A-Z][A-Z_]+' >>codes
    sed -n '/meanings\[\]/,/};/p' "$sources/service/call.c" | grep -oE '"[A-Z_]+"' | tr -d '"' >>codes
    [ "$(sort -u codes | wc -l)" -gt 70 ] || fail "too few codes were found: $(wc -l <codes)"
    equal "$(sort -u codes | comm -23 - told | tr '\n' ' ')" '' 'codes without a word'
    # So is every code that a step, a task or a run ends with. These words are none: variables, signals, states, references.
    grep -rhoE '"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+[":]|\.code = STR\("[A-Z]+"' "$sources"/{kernel,engine,tool,task,remote,lib,contract,auth,bus,store} |
        grep -oE '[A-Z][A-Z0-9_]+' | grep -vxE 'STR|(CAIRN|XDG|CREDENTIALS|NODE|BASH|LD)_.*|RLIMIT_.*|ARTIFACTS_DIR|WORKFLOW_ID|NATS_URL|KEYPAIR_JWT' |
        grep -vxE 'CONTINUE_AS_NEW|NEEDS_APPROVAL|NOT_STARTED|STEP_STARTED|WAITING_APPROVAL|EMERGENCY_STOP|ESCALATE_ALERT|DELIVER_EVENT|INJECT_OVERRIDE|(RETRY|SKIP)_(RUN|STEP)|UPDATE_(PARAMS|TARGET)' |
        sort -u >codes
    [ "$(wc -l <codes)" -gt 100 ] || fail "too few codes were found: $(wc -l <codes)"
    equal "$(comm -23 codes told | tr '\n' ' ')" '' 'codes of steps without a word'
    # And one of Cairn's own, so that those see it who see no payloads; two words are of triggers in SQL.
    sed -n '/codes\[\] = {/,/};/p' "$sources/contract/codes.c" | grep -oE '"[A-Z0-9_]+"' | tr -d '"' | sort -u >ours
    equal "$(comm -23 codes ours | grep -vx '.*_APPEND_ONLY' | tr '\n' ' ')" '' 'codes that are taken for those of a program'
    cairn_is 2 help exit-code; has err 'did you mean `cairn help exit-codes`?'
}
test_examples_in_help_are_commands() {
    # Every example begins with a command that exists and has flags that parse.
    "$CAIRN" help run | grep -q 'cairn run' || fail 'no example'
    "$CAIRN" | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' >names
    [ "$(wc -l <names)" -gt 15 ] || fail "the overview names only $(wc -l <names) commands"
    while read -r c; do
        # shellcheck disable=SC2086
        "$CAIRN" help $c | sed -n '/^Examples/,$p' | grep -qE 'cairn ' || fail "no example for $c"
    done <names
}
test_manual_page_is_current() {
    "$CAIRN" man >cairn.1 || fail "cairn man"
    cmp -s cairn.1 "$root/docs/man/cairn.1" || fail "run: build/cairn man > docs/man/cairn.1"
}
test_flags_may_come_first() {
    echo "$hello" >h.json
    cairn_is 0 "${store[@]}" run --progress none h.json
    cairn_is 0 --store="sqlite:$PWD/store.db" ls -oname; [ "$(wc -l <out)" = 1 ] || fail "not one run"
}
test_missing_file() {
    cairn_is 5 run nope.json; has err nope.json
    cairn_is 5 validate nope.json; has err nope.json
}
test_invalid_document_shows_every_place() {
    printf '{\n "planId": "p", "planVersion": "1",\n "steps": [\n  {"stepId": "a", "kind": "shel", "with": {"command": "x"}},\n  {"stepId": "b", "kind": "noop", "dependsOn": ["z"], "colour": 1}\n ]\n}\n' >bad.json
    cairn_is 3 validate bad.json
    has_line err '^bad.json:4:[0-9]+: error\[E[0-9]+\]'
    has_line err '^bad.json:5:[0-9]+: error\[E0302\]'
    has_line err '^bad.json:5:[0-9]+: error\[E0203\]'
    has err 'unknown_dependency:b->z'
    empty out
    cairn_is 3 run bad.json "${store[@]}"; has_line err '^bad.json:4:[0-9]+: error'
    cairn_is 3 validate bad.json -o json; jq -e 'length >= 3 and all(.[]; .file == "bad.json" and .line > 0 and .severity != null)' out >/dev/null || fail "no JSON list"
    cairn_is 3 validate bad.json -o jsonl; [ "$(wc -l <out)" -ge 3 ] || fail "no JSON lines"
    [ ! -e store.db ] || fail "an invalid document made a store"
}
test_validate_checks_every_file_it_can_read() {
    echo '{"planId":"p","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >ok.json
    echo '{"planId":"p","planVersion":"1","steps":[]}' >bad.json
    cairn_is 3 validate gone.json bad.json ok.json; has err 'cannot open gone.json'; has err 'bad.json:1:'; has out 'ok.json: plan p'
    cairn_is 5 validate gone.json ok.json; has out 'ok.json: plan p'
}
test_validate_ok_and_strict() {
    echo "$hello" >h.json
    cairn_is 0 validate h.json; has out 'h.json: plan hello, 1 step'; empty err
    printf 'name: w\nnodes:\n  - {id: a, bash: "echo $zz.output"}\n' >w.yaml
    cairn_is 0 validate w.yaml; has err 'warning[E0404]'
    cairn_is 3 validate --strict w.yaml
    cairn_is 3 validate h.json --strict w.yaml
    cairn_is 0 validate w.yaml -o json; jq -e '.[0].severity == "warning"' out >/dev/null || fail "no warning in JSON"
}
test_document_from_stdin() {
    rc=0; echo "$hello" | "$CAIRN" run - "${store[@]}" --progress none -o json >out 2>err || rc=$?
    equal $rc 0 exit; equal "$(jq -r .status out)" COMPLETED
}
test_store_must_exist_for_reading() {
    cairn_is 5 ls --store sqlite:none.db; has err 'there is no store at sqlite:none.db'
    cairn_is 5 get abcd --store files:none; has err 'there is no store'
    cairn_is 5 recover --store sqlite:none.db
    cairn_is 5 log verify --all --store sqlite:none.db
    cairn_is 2 ls --store sqlit:x; has err 'unknown kind'
    cairn_is 2 ls --store here.db; has err 'sqlite:PATH'
    [ ! -e none.db ] || fail "reading made a store"
}
test_default_store_is_below_xdg_state_home() {
    cairn_is 0 ls; empty err
    echo "$hello" >h.json
    cairn_is 0 run h.json --progress none
    [ -f state/cairn/cairn.db ] || fail "no state/cairn/cairn.db"
    cairn_is 0 ls -o name; [ "$(wc -l <out)" = 1 ] || fail "not one run"
    CAIRN_STORE=files:$PWD/f cairn_is 0 run h.json --progress none
    [ -d f ] || fail "CAIRN_STORE was ignored"
    env -u XDG_STATE_HOME HOME="$PWD/h2" "$CAIRN" run h.json --progress none || fail "exit $?"
    [ -f h2/.local/state/cairn/cairn.db ] || fail "no ~/.local/state/cairn/cairn.db"
}
test_targets() {
    echo "$hello" >h.json
    cairn_is 0 run h.json "${store[@]}" --progress none --run-id aaaa-1
    cairn_is 0 run h.json "${store[@]}" --progress none --run-id aaaa-2
    echo '{"planId":"f","planVersion":"1","steps":[{"stepId":"x","kind":"shell","with":{"command":"false"}}]}' >f.json
    cairn_is 10 run f.json "${store[@]}" --progress none --run-id ffff-1
    cairn_is 0 run h.json "${store[@]}" --progress none --run-id bbbb-1
    for t in '@last bbbb-1' '@last-failed ffff-1' 'bbbb bbbb-1' 'aaaa-2 aaaa-2'; do
        cairn_is 0 get ${t% *} "${store[@]}" -o name; equal "$(cat out)" "${t#* }" "target ${t% *}"
    done
    cairn_is 2 get aaaa "${store[@]}"; has err 'more than one run begins with aaaa'; has err aaaa-1; has err aaaa-2
    cairn_is 5 get bbb "${store[@]}"; has err 'there is no run bbb'
    cairn_is 5 get nosuch "${store[@]}"; has err 'next: '; has err ' ls '
    cairn_is 2 get @first "${store[@]}"; has err 'is not a target'
    cairn_is 5 get bbbb-1 "${store[@]}" --tenant other
}
test_list_formats() {
    echo "$hello" >h.json
    for i in 1 2 3; do cairn_is 0 run h.json "${store[@]}" --progress none --run-id "run-$i"; done
    cairn_is 0 ls "${store[@]}"; equal "$(head -n 1 out | cut -f1-2)" $'runId\tstatus' 'tsv header'; equal "$(sed -n 2p out | cut -f1-2)" $'run-3\tCOMPLETED'
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[].runId' out | tr '\n' ' ')" 'run-3 run-2 run-1 '
    cairn_is 0 ls "${store[@]}" -o jsonl; equal "$(jq -r .runId out | wc -l)" 3
    cairn_is 0 ls "${store[@]}" -o name; equal "$(tr '\n' ' ' <out)" 'run-3 run-2 run-1 '
    cairn_is 0 ls "${store[@]}" -o csv; has_line out '^runId,status,'; has_line out '^run-1,COMPLETED,'
    cairn_is 0 ls "${store[@]}" -o yaml; has out '- runId: run-3'
    cairn_is 0 ls "${store[@]}" -o table; has_line out '^RUN +STATUS'; has out '✓ COMPLETED'
    cairn_is 0 ls "${store[@]}" -o wide; has_line out 'EVENTS'
    cairn_is 0 ls "${store[@]}" -o json --fields status,runId --limit 1; equal "$(jq -c . out)" '[{"status":"COMPLETED","runId":"run-3"}]'
    cairn_is 0 ls "${store[@]}" --fields runId; equal "$(cat out)" $'runId\nrun-3\nrun-2\nrun-1'
    cairn_is 2 ls "${store[@]}" --fields runid; has err 'did you mean runId?'
    cairn_is 0 ls "${store[@]}" --limit 2 -o name; equal "$(wc -l <out)" 2
    cairn_is 0 ls "${store[@]}" --status FAILED -o json; equal "$(jq -c . out)" '[]'
    cairn_is 0 ls "${store[@]}" --status failed,completed -o name; equal "$(wc -l <out)" 3
    cairn_is 0 ls "${store[@]}" --plan hello --since 1h -o name; equal "$(wc -l <out)" 3
    cairn_is 0 ls "${store[@]}" --plan other -o name; empty out
    cairn_is 0 ls "${store[@]}" --time iso -o table; has_line out '20[0-9][0-9]-[0-9-]+T'
}
test_all_pages_of_many_runs() {
    echo "$hello" >h.json
    for i in $(seq 60); do "$CAIRN" run h.json "${store[@]}" --progress none --run-id "r-$i" || fail "run $i"; done
    cairn_is 0 ls "${store[@]}" -o name; equal "$(wc -l <out)" 50 'one page'
    cairn_is 0 ls "${store[@]}" -o name --all; equal "$(sort -u out | wc -l)" 60 'all pages'
}
test_yaml_is_yaml() {
    python3 -c 'import yaml' 2>/dev/null || skip 'python3 has no yaml module'
    printf '{"planId":"y","planVersion":"1.10","steps":[{"stepId":"a","kind":"echo","with":{"message":{"no":"yes","t":"a: b # c\\n","e":[],"n":null}}}]}' >y.json
    cairn_is 0 run y.json "${store[@]}" --progress none -o yaml
    python3 -c 'import sys,yaml; d=yaml.safe_load(open("out")); m=d["steps"][0]["result"]; assert m=={"no":"yes","t":"a: b # c\n","e":[],"n":None}, m; assert d["planVersion"]=="1.10"' || fail "YAML reads back differently"
}
test_closed_stdout_is_no_error() {
    echo "$hello" >h.json
    for i in 1 2 3; do cairn_is 0 run h.json "${store[@]}" --progress none; done
    for words in 'ls' 'ls -o json' 'events @last -o jsonl' 'get @last' 'help' 'help exit-codes' 'log verify --all'; do
        rc=0
        { "$CAIRN" $words "${store[@]}" 2>err; echo $? >rc; } | true
        [[ $words = help* ]] || equal "$(cat rc)" 0 "exit of $words into a closed pipe"
        [[ $words = help* ]] || empty err
    done
    rc=0; "$CAIRN" ls "${store[@]}" >/dev/full 2>err || rc=$?
    equal $rc 1 'exit of ls on a full disk'; has err 'cannot write to stdout'
}
test_closed_standard_descriptors() {
    echo "$hello" >h.json
    rc=0; "$CAIRN" run h.json "${store[@]}" --progress none <&- >&- 2>&- || rc=$?
    equal $rc 0; intact
}
test_terminal_escapes_are_shown_not_sent() {
    # A step, its failure and its plan try to reach the terminal.
    printf '{"planId":"evil\\u202e","name":"n\\u009b31m","planVersion":"1","steps":[{"stepId":"x","name":"\\u001b]0;title\\u0007","kind":"shell","with":{"command":"printf \x27\\\\033[31mred\\\\033]0;pwn\\\\007\x27 >&2; exit 1"}}]}' >evil.json
    cairn_is 10 run evil.json "${store[@]}" --run-id evil --progress plain -v
    for words in "get evil" "ls -o table" "ls" "events evil -o table" "events evil"; do
        cairn_is 0 $words "${store[@]}"
        LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' out err && fail "$words sent a control character"
        LC_ALL=C grep -qE $'\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' out err && fail "$words sent C1 or bidi"
    done
    python3 "$e2e/terminal.py" -- "$CAIRN" get evil "${store[@]}" -o json >tty || fail "exit $?"
    LC_ALL=C grep -qE $'\x1b\\]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' tty && fail "JSON on a terminal sent a control character"
    python3 "$e2e/terminal.py" -- "$CAIRN" run evil.json "${store[@]}" >tty
    LC_ALL=C grep -qE $'\x1b\\]|\x07|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' tty && fail "the tree sent a control character"
    has tty '\x1b[31mred'
}
test_csv_guards_formulas() {
    printf '{"planId":"=1+1","planVersion":"-2","steps":[{"stepId":"a","kind":"noop"}]}' >c.json
    cairn_is 0 run c.json "${store[@]}" --progress none
    cairn_is 0 ls "${store[@]}" -o csv --fields planId,planVersion,running; has out "\"'=1+1\",\"'-2\",0"
}
test_colours_follow_flag_environment_terminal() {
    echo "$hello" >h.json
    cairn_is 0 run h.json "${store[@]}" --progress none
    esc=$'\x1b['
    tty() { python3 "$e2e/terminal.py" -- "$@"; }
    cairn_is 0 get @last "${store[@]}"; hasnt out "$esc"
    cairn_is 0 get @last "${store[@]}" --color always; has out "$esc"
    CLICOLOR_FORCE=1 cairn_is 0 get @last "${store[@]}"; has out "$esc"
    CLICOLOR_FORCE=1 NO_COLOR=1 cairn_is 0 get @last "${store[@]}"; has out "$esc"
    CLICOLOR_FORCE=1 cairn_is 0 get @last "${store[@]}" --color never; hasnt out "$esc"
    tty "$CAIRN" get @last "${store[@]}" >out; has out "$esc"
    NO_COLOR=1 tty "$CAIRN" get @last "${store[@]}" >out; hasnt out "$esc"
    NO_COLOR= tty "$CAIRN" get @last "${store[@]}" >out; has out "$esc"
    TERM=dumb tty "$CAIRN" get @last "${store[@]}" >out; hasnt out "$esc"
    NO_COLOR=1 tty "$CAIRN" get @last "${store[@]}" --color always >out; has out "$esc"
}
test_glyphs_are_ascii_when_the_locale_is() {
    echo "$hello" >h.json
    cairn_is 0 run h.json "${store[@]}" --progress none
    cairn_is 0 get @last "${store[@]}"; has out '✓'
    cairn_is 0 get @last "${store[@]}" --ascii; hasnt out '✓'; has out '+ done'
    LC_ALL=C cairn_is 0 get @last "${store[@]}"; LC_ALL=C grep -q $'[\x80-\xff]' out && fail "not ASCII"
    LC_ALL=C cairn_is 0 run h.json "${store[@]}" --progress plain; LC_ALL=C grep -q $'[\x80-\xff]' err && fail "not ASCII"
    env -u LANG -u LC_ALL "$CAIRN" get @last "${store[@]}" >out; hasnt out '✓'
}
test_table_on_a_terminal_tsv_in_a_pipe() {
    echo "$hello" >h.json
    cairn_is 0 run h.json "${store[@]}" --progress none --run-id r-1
    python3 "$e2e/terminal.py" -- "$CAIRN" ls "${store[@]}" >out; has out 'RUN'; has out 'STATUS'; hasnt out $'\t'
    python3 "$e2e/terminal.py" -- "$CAIRN" events r-1 "${store[@]}" >out; has out 'SEQ'
    cairn_is 0 events r-1 "${store[@]}"; has_line out $'^seq\ttime\ttype'
}
test_quiet_is_quiet() {
    echo "$hello" >h.json
    cairn_is 0 run h.json "${store[@]}" -q; empty out; empty err
    cairn_is 0 run h.json "${store[@]}" --progress none; empty out; empty err
    cairn_is 5 get nosuch "${store[@]}" -q; has err error; hasnt err next
}
test_header_is_printed_once_above_no_rows() {
    echo "$hello" >p.json
    cairn_is 0 run p.json "${store[@]}" --run-id h-1
    for f in tsv csv table wide; do
        cairn_is 0 events h-1 --type Nope "${store[@]}" -o $f; equal "$(wc -l <out)" 1 "lines of $f"
    done
}
test_one_event_is_not_events() {
    echo '{"planId":"g","planVersion":"1","requiresApproval":true,"steps":[{"stepId":"a","kind":"noop"}]}' >g.json
    cairn_is 13 run g.json "${store[@]}" --run-id g-1 --exit-on-wait; has err '1 event in '
    cairn_is 0 get g-1 "${store[@]}"; has out '1 event in '
}
test_short_prefix_is_explained() {
    echo "$hello" >p.json
    cairn_is 0 run p.json "${store[@]}" --run-id short-1
    cairn_is 5 get sho "${store[@]}"; has err 'at least the first 4 characters'
    cairn_is 0 get shor "${store[@]}" -o name; equal "$(cat out)" short-1
}

run_tests "$@"
