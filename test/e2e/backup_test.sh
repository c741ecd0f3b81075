#!/usr/bin/env bash
# Backups of a service's store, taken while it works, and the next life of a store that was put back (I46).
. "$(dirname "$0")/serve_lib.sh"

work_beside() { # starts runs until the file `enough` is there, each under a request of its own
    local i=0 doc
    doc=$(plan_text beside '{"stepId":"a","kind":"noop"}')
    while [ ! -e enough ]; do
        i=$((i + 1))
        curl -s -o /dev/null -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
            --data-binary "{\"document\":$doc,\"runRequestId\":\"beside-$1-$i\"}" "$url/v1/runs"
    done
}
sql() { python3 -c 'import sqlite3, sys; [print(*row) for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]' "$1" "$2"; }
define() {
    plan_text greet '{"stepId":"a","kind":"noop"}' | jq -j . >greet.json
    ask PUT "/v1/definitions/greet/versions/$(sha256sum greet.json | cut -c1-64)" @greet.json
    answers 201
}
note_of() { sql "$1" "select hex(value) from notes where space='$2' and key='$3'"; }

test_a_backup_of_a_working_service_is_of_one_moment_I46() {
    serve
    work_beside 1 & local one=$!
    work_beside 2 & local two=$!
    for i in 1 2 3; do
        wait_for differs "$(sql store.db 'select count(*) from runs')" sql store.db 'select count(*) from runs'
        cairn_is 0 store backup "$PWD/backup.db" --store "sqlite:$PWD/store.db"
        # Every request that is remembered has its run, and every run of a request is remembered.
        equal "$(sql backup.db "select count(*) from notes where space='request'")" "$(sql backup.db "select count(*) from runs")" "requests and runs"
        cairn_is 0 audit verify --store "sqlite:$PWD/backup.db"
    done
    touch enough
    wait $one $two
    [ "$(sql backup.db 'select count(*) from runs')" -gt 5 ] || fail "nothing went on beside"
    stop_serving
    cairn_is 0 store backup "$PWD/backup.db" --store "sqlite:$PWD/store.db"
    has out notes
    cairn_is 0 log verify --all --store "sqlite:$PWD/backup.db"
    equal "$(sql backup.db "select space, key, hex(value) from notes where space || key != 'storebackup' order by 1, 2")" \
        "$(sql store.db "select space, key, hex(value) from notes order by 1, 2")" notes
    cairn_is 0 store backup "$PWD/backup.db" --store "sqlite:$PWD/store.db" -o json
    equal "$(jq -c '[.copied, .extended, .notes]' out)" '[0,0,0]' "a second backup"
}
test_a_restored_store_begins_its_next_life_I46() {
    printf '[serve]\nsinks = [{ name = "lines", type = "file", path = "%s/lines.jsonl", cursorMs = 10 }]\n' "$PWD" >cairn.toml
    serve
    local old=$token
    define
    ask POST /v1/runs "{\"document\":$(plan_text held '{"stepId":"a","kind":"approval"}'),\"runId\":\"held\"}"
    wait_for grep -q held lines.jsonl
    cairn_is 0 store backup "$PWD/backup.db" --store "sqlite:$PWD/store.db"
    stop_serving
    cairn_is 0 store restore "$PWD/backup.db" --store "sqlite:$PWD/next/store.db"
    has err 'are void'
    cp lines.jsonl before.jsonl
    rm lines.jsonl
    service_store=sqlite:$PWD/next/store.db serve
    # Who had a token has none; keys of workers and of pages are others; what people made is there.
    [ "$token" != "$old" ] || fail "the old token is the new one"
    status=$(curl -s -o body -w '%{http_code}' -H "Authorization: Bearer $old" "$url/v1/runs")
    answers 401
    ask GET /v1/definitions
    answers 200
    equal "$(jq -r '.items | length' body)" 1 definitions
    ask GET '/v1/runs?q=run=held'
    equal "$(jq -r '.items[0].status' body)" RUNNING "the run that waits"
    for key in task cursor; do
        [ "$(note_of next/store.db key $key)" != "$(note_of store.db key $key)" ] || fail "key $key lives on"
    done
    equal "$(note_of next/store.db key bundle)" "$(note_of store.db key bundle)" "key of bundles"
    # Positions are of this store: the sink begins where its settings say.
    wait_for grep -q held lines.jsonl
    stop_serving
    cairn_is 0 audit verify --store "sqlite:$PWD/next/store.db"
    equal "$(sql next/store.db "select json_extract(value, '$.number') from notes where space='store' and key='life'")" 2 life
    [ "$(note_of next/store.db store life)" != "$(note_of store.db store life)" ] || fail "the life has the name of the former one"
    cairn_is 6 store backup "$PWD/backup.db" --store "sqlite:$PWD/next/store.db"
    has err 'another life'
}
# Killed anywhere, a restore leaves no store, one that is refused, or all of it.
test_a_killed_restore_leaves_nothing_that_looks_whole_I46() {
    [ -x "${CAIRN_FAULTY:-}" ] || skip 'needs a build with faults'
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    for i in 1 2 3; do cairn_is 0 run v.json --store "files:$PWD/f" --run-id "v-$i" --progress none; done
    cairn_is 0 store backup "files:$PWD/backup" --store "files:$PWD/f"
    local refused=0 at=20 rc=137
    while [ $rc = 137 ]; do
        rm -rf to; rc=0
        CAIRN_CRASH_AT=$at "$CAIRN_FAULTY" store restore "files:$PWD/backup" --store "files:$PWD/to" >out 2>err </dev/null || rc=$?
        at=$((at + 6))
        [ $rc = 137 ] || break
        rc=0; "$CAIRN" log verify --all --store "files:$PWD/to" >out 2>err </dev/null || rc=$?
        case $rc in
        0) grep -qE '^[^0-9]*[03] runs' out || fail "a part passes for the whole: $(cat out)" ;;
        5) ;; # there is no store yet
        8) refused=$((refused + 1)); has err 'restore into it did not end' ;;
        *) fail "verify gave $rc: $(cat err)" ;;
        esac
        cairn_is 0 store restore "files:$PWD/backup" --store "files:$PWD/to"
        equal "$("$CAIRN" ls --all --store "files:$PWD/to" -o json | jq length)" 3 'runs after another try'
        rc=137
    done
    equal "$rc" 0 'the restore that was not killed'
    [ $refused -gt 3 ] || fail "only $refused were refused"
}
test_half_backups_and_stores_in_use_are_refused_I46() {
    serve
    stop_serving
    cairn_is 0 store backup "$PWD/backup.db" --store "sqlite:$PWD/store.db"
    cairn_is 6 store restore "$PWD/backup.db" --store "sqlite:$PWD/store.db"
    has err 'not empty'
    python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute("update notes set value = ? where space = ? and key = ?", (b"begun", "store", "backup")); db.commit()' backup.db
    cairn_is 6 store restore "$PWD/backup.db" --store "sqlite:$PWD/fresh.db"
    has err 'cut short'
}
test_notes_travel_between_kinds_of_stores_and_not_into_a_store_with_its_own_I46() {
    serve
    define
    stop_serving
    cairn_is 0 store backup "files:$PWD/backup" --store "sqlite:$PWD/store.db" -o json
    [ "$(jq .notes out)" -ge 5 ] || fail "notes: $(cat out)"
    cairn_is 0 store restore "files:$PWD/backup" --store "sqlite:$PWD/again.db" -o json
    [ "$(jq .void out)" -ge 2 ] || fail "void: $(cat out)"
    equal "$(sql again.db "select count(*) from notes where space='definition'")" 1 definitions
    equal "$(sql again.db "select count(*) from notes where space='audit'")" "$(sql store.db "select count(*) from notes where space='audit'")" audit
    # A store with a service of its own takes definitions, and nobody's tokens.
    (service_store=sqlite:$PWD/own.db serve && stop_serving) || fail "no other service"
    local before
    before=$(sql own.db "select space, key from notes where space in ('token', 'key', 'audit') order by 1, 2")
    cairn_is 0 store copy "sqlite:$PWD/store.db" "sqlite:$PWD/own.db"
    equal "$(sql own.db "select space, key from notes where space in ('token', 'key', 'audit') order by 1, 2")" "$before" "its own notes"
    equal "$(sql own.db "select count(*) from notes where space='definition'")" 1 definitions
}

run_tests "$@"
