#!/usr/bin/env bash
# What authors of playbooks do by habit: large results, results of SQL and HTTP under the names they are used to, scripts that end themselves.
. "$(dirname "$0")/postgres_lib.sh"
. "$(dirname "$0")/playbook_lib.sh"

# More than strangers may send (8 MiB, 100,000 values, texts of 1 MiB) is no more than a query gives.
test_large_results_are_kept_and_read_whole_NX_2u() {
    book large >large.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = {"rows": [{c: i for c in "abcdefgh"} for i in range(15000)], "count": 15000}'}
    set: {ctx.rows: "{{ start.rows }}"}
    next: {arcs: [{step: text, when: "{{ start.rows | length == 15000 }}"}]}
  - step: text
    tool: {kind: python, code: 'result = {"blob": "y" * 9_000_000, "size": 9_000_000}'}
    next: {arcs: [{step: use}]}
  - step: use
    tool:
      - name: get
        kind: artifact
        action: get
        result_ref: "{{ text._ref }}"
      - name: sum
        kind: python
        input: {a: "{{ start.rows }}", b: "{{ ctx.rows }}", c: "{{ text.blob }}", d: "{{ get.data.blob | length }}", e: "{{ start.rows | sum(attribute='a') }}"}
        code: 'result = [len(a), len(b), len(c), d, e]'
YAML
    runs large
    equal "$(result large use)" '[15000,15000,9000000,9000000,112492500]'
    book deep >deep.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = "y" * 40_000_000'}
YAML
    cairn_is 10 run deep.yaml "${store[@]}" --run-id deep --progress none
    "$CAIRN" events deep "${store[@]}" -o jsonl | jq -r 'select(.event_type=="step.failed").payload.error|.code,.message' >told
    grep -q '^PAYLOAD_TOO_LARGE$' told && grep -q 'larger than 32 MiB' told || fail "it says: $(cat told)"
    intact
}

test_results_of_loops_have_the_names_that_playbooks_use_C_47() {
    book items >items.yaml <<'YAML'
workflow:
  - step: each
    loop: {in: [3, 4], iterator: n}
    tool: {kind: sqlite, database: ":memory:", command: "SELECT {{ iter.n }} AS n"}
    next: end
  - step: end
    tool:
      kind: python
      input: {a: "{{ each.results[1].rows[0].n }}", b: "{{ each.results[0].data.command_0.row_count }}", c: "{{ each['results'] | length }}"}
      code: result = input_data
    next: by_item
  - step: by_item
    tool: {kind: python, input: {a: "{{ end['data']['a'] }}", b: "{{ end['nothing'] is defined }}"}, code: result = input_data}
YAML
    runs items
    equal "$(result items end)" '{"a":4,"b":1,"c":2}'
    equal "$(result items by_item)" '{"a":4,"b":false}'
}

test_a_program_that_ends_itself_well_has_its_result() {
    book exits >exits.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: well, kind: python, code: "import sys\nresult = {'n': 1}\nsys.exit(0)"}
      - name: badly
        kind: python
        code: "import sys\nresult = {'n': 2}\nsys.exit(3)"
        spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: continue, set: {ctx.code: "{{ output.error.code }}"}}}]}}
      - {name: told, kind: python, input: {well: "{{ well.n }}", code: "{{ ctx.code }}"}, code: result = input_data}
YAML
    runs exits
    equal "$(result exits start)" '{"code":"EXIT_NONZERO","well":1}'
}

test_rows_are_put_over_those_with_the_same_key() {
    book rows >rows.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: make, kind: sqlite, database: t.db, commands: ["CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"]}
      - name: over
        kind: transfer
        source: {rows: [{id: 2, name: B}, {id: 3, name: C}]}
        target: {tool: sqlite, database: t.db, table: t, mode: upsert, key: id}
      - name: strange
        kind: transfer
        source: {rows: [{id: 4, name: D}]}
        target: {tool: sqlite, database: t.db, table: t, mode: sideways}
        spec: {policy: {rules: [{when: "{{ output.error.code == 'MODE_UNKNOWN' }}", then: {do: continue}}, {else: {do: fail}}]}}
      - name: without
        kind: transfer
        source: {rows: [{id: 4, name: D}]}
        target: {tool: sqlite, database: t.db, table: t, mode: merge}
        spec: {policy: {rules: [{when: "{{ output.error.code == 'KEY_MISSING' }}", then: {do: continue}}, {else: {do: fail}}]}}
      - {name: all, kind: sqlite, database: t.db, query: "SELECT group_concat(name, '') AS names FROM (SELECT name FROM t ORDER BY id)"}
YAML
    runs rows
    equal "$(result rows start | jq -r '.command_0.rows[0].names')" aBC
}

test_what_postgres_says_besides_is_the_log_of_the_task() {
    postgres_up
    store=(--store "sqlite:runs.db")
    printf 'pg: {type: postgres, data: {db_host: "%s", db_user: app, db_name: postgres}}\n' "$pg_dir" >credentials.yaml
    book notice >notice.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: postgres, auth: pg, command: "DROP TABLE IF EXISTS not_here; DO $$ BEGIN RAISE WARNING 'look here'; END $$"}
YAML
    runs notice --credentials credentials.yaml
    equal "$(cat err)" '' 'what cairn run says'
    "$CAIRN" logs notice "${store[@]}" >log
    grep -q 'NOTICE: table "not_here" does not exist, skipping' log && grep -q 'WARNING: look here' log || fail "the log is: $(cat log)"
}

test_a_failed_loop_says_so_to_where_its_arc_leads_NX_2r() {
    book failed >failed.yaml <<'YAML'
workflow:
  - step: each
    loop: {in: [1, 2, 3], iterator: n}
    tool: {kind: python, input: {n: "{{ n }}"}, code: "result = 6 // (n - 2)"}
    next: {arcs: [{step: take, when: "{{ event.name == 'call.error' and not event.error.retryable }}"}]}
  - step: take
    tool: {kind: python, input: {s: "{{ each.status }}", e: "{{ each.error }}", r: "{{ each.results }}"}, code: result = input_data}
YAML
    runs failed
    equal "$(result failed take)" \
        '{"e":{"code":"ZeroDivisionError","kind":"transform","message":"integer division or modulo by zero","retryable":false},"r":[-6,null],"s":"error"}'
    "$CAIRN" events failed "${store[@]}" -o jsonl | jq -r 'select(.event_type=="step.failed").payload.error.kind' >kind
    equal "$(cat kind)" transform
    book clash >clash.yaml <<'YAML'
workflow:
  - step: each
    loop: {in: [1, 2], iterator: n, spec: {mode: parallel}}
    tool: {kind: python, input: {n: "{{ n }}"}, code: result = n, set: {ctx.last: "{{ output.data }}"}}
    next: {arcs: [{step: take, when: "{{ event.name == 'step.failed' and error.kind == 'ctx_conflict' }}"}]}
  - {step: take, tool: {kind: noop}}
YAML
    runs clash
}

test_an_entry_of_the_keychain_may_be_passed_on_whole() {
    printf 'box: {type: custom, data: {host: somewhere, port: 7}}\n' >credentials.yaml
    book whole >whole.yaml <<'YAML'
keychain:
  - {name: pair, kind: static, map: {id: id-one, secret: word-two}}
  - {name: card, kind: bearer, token: tok-three}
  - {name: box, kind: custom_credential}
workflow:
  - step: start
    tool:
      - {name: a, kind: python, input: {p: "{{ keychain.pair }}"}, code: "result = [sorted(p), p['id'] == 'id' + '-one', p['secret']]"}
      - {name: b, kind: python, input: {c: "{{ keychain.card }}", t: "{{ keychain.card.access_token }}"}, code: "result = [c['token'] == t, len(t)]"}
      - {name: c, kind: python, input: {h: "{{ keychain.box.host }}", n: "{{ keychain.pair.nothing | default('none') }}"}, code: "result = [len(h), n]"}
      - {name: all, kind: python, input: {a: "{{ a }}", b: "{{ b }}", c: "{{ c }}"}, code: result = input_data}
YAML
    runs whole --credentials credentials.yaml
    equal "$(result whole start)" '{"a":[["id","secret"],true,"***"],"b":[true,9],"c":[9,"none"]}'
    "$CAIRN" events whole "${store[@]}" -o jsonl >log
    ! grep -qE 'word-two|tok-three|somewhere' log || fail 'a secret is in the log'
}

test_what_a_tool_cannot_do_without_is_told() {
    book lacks >lacks.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: ask, kind: http, method: GET}
      - {name: count, kind: postgres, auth: pg}
      - {name: fine, kind: sqlite, query: SELECT 1}
      - {name: also, kind: python, spec: {code: result = 1}}
YAML
    cairn_is 0 validate lacks.yaml
    cat out err >told
    equal "$(grep -c 'warning\[E0204\]' told)" 2 'warnings'
    grep -q 'lacks.yaml:7:9: .*kind http needs url' told && grep -q 'lacks.yaml:8:9: .*kind postgres needs command' told || fail "it says: $(cat told)"
}

test_a_playbook_is_found_by_its_path_whatever_its_description_says() {
    cat >child_of_mine.yaml <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: child
  description: "a workflow: of its own"
  path: scorer
workflow:
  - {step: start, tool: {kind: python, code: result = 5}}
YAML
    book caller >caller.yaml <<'YAML'
workflow:
  - {step: start, tool: {kind: playbook, path: scorer}}
YAML
    runs caller
    equal "$(result caller start)" 5
    book lost >lost.yaml <<'YAML'
workflow:
  - {step: start, tool: {kind: playbook, path: nobody}}
YAML
    cairn_is 0 validate lost.yaml
    grep -q 'no playbook around has that metadata.path' out err || fail "it says: $(cat out err)"
}

test_a_workload_is_overridden_inside_and_by_a_file_of_yaml() {
    book given >given.yaml <<'YAML'
workload: {a: 1, db: {port: 1, more: {x: 2, y: 3}}}
workflow:
  - {step: start, tool: {kind: python, input: {w: "{{ workload }}"}, code: result = w}}
YAML
    printf 'a: 7\ndb: {more: {y: 9}}\n' >in.yaml
    runs given --input in.yaml --set db.more.x=8 --set db.port=5433
    equal "$(result given start)" '{"a":7,"db":{"more":{"x":8,"y":9},"port":5433}}'
    printf 'a: [1\nb: 2\n' >bad.yaml
    cairn_is 2 run given.yaml "${store[@]}" --input bad.yaml
    grep -q 'bad.yaml:2:' err || fail "it says: $(cat err)"
}

# A client reads what is beside the log, too.
test_runs_at_a_server_with_large_variables_are_followed_NX_2u() {
    local server url token
    CAIRN_CONFINE=none "$CAIRN" serve --store "sqlite:$PWD/served.db" --listen 127.0.0.1:0 >serve.out 2>serve.err &
    server=$!
    wait_for grep -q 'token of the first start' serve.err
    url=$(sed -n 's/^listening on //p' serve.err | head -n 1)
    token=$(cat "$(sed -n 's/^the token of the first start is in //p' serve.err)")
    book afar >afar.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = {"text": "y" * 2_000_000}'}
    set: {ctx.text: "{{ start.text }}"}
    next: [end]
  - {step: end, tool: {kind: python, input: {t: "{{ ctx.text }}"}, code: result = len(t)}}
YAML
    CAIRN_TOKEN=$token timeout 50 "$CAIRN" run afar.yaml --server "$url" --run-id afar --progress plain >out 2>err || fail "it says: $(tail -n 3 err)"
    equal "$(CAIRN_TOKEN=$token "$CAIRN" get afar/end -o json --server "$url" | jq -r .result)" 2000000
    kill "$server" && wait "$server" || true
}

test_a_step_that_leads_nowhere_is_an_error_where_the_executor_says_so() {
    book strict >strict.yaml <<'YAML'
executor: {spec: {no_next_is_error: true}}
workload: {x: 1}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.seen: true}
    next: {arcs: [{step: end, when: "{{ x > 5 }}"}]}
  - {step: end, tool: {kind: noop}}
YAML
    cairn_is 10 run strict.yaml "${store[@]}" --run-id lost --progress none
    equal "$("$CAIRN" events lost "${store[@]}" -o jsonl | jq -r 'select(.event_type=="playbook.finished").payload.error.code')" NO_NEXT
    cairn_is 0 why lost "${store[@]}"
    grep -q 'no arc of the step holds' out || fail "it says: $(cat out)"
    cairn_is 0 run strict.yaml "${store[@]}" --run-id led --progress none --set x=6
    sed 's/true}}$/false}}/' strict.yaml >loose.yaml
    cairn_is 0 run loose.yaml "${store[@]}" --run-id loose --progress none
    intact
}

test_steps_see_answers_and_rows_as_rules_do_C_47() {
    book seen >seen.yaml <<'YAML'
workflow:
  - step: rows
    tool: {kind: sqlite, database: ":memory:", command: "CREATE TABLE t (a); INSERT INTO t VALUES (5); SELECT a FROM t; SELECT 6 AS a"}
    next: answer
  - step: answer
    tool: {kind: python, code: 'result = {"status_code": 201, "headers": {"x-a": "b"}, "data": {"k": 3}}'}
    set: {ctx.code: "{{ output.http.status }}", ctx.head: "{{ output.http.headers['x-a'] }}"}
    next: {arcs: [{step: end, when: "{{ output.http.status == 201 }}"}]}
  - {step: end, tool: {kind: python, input: {c: "{{ ctx }}", a: "{{ rows.rows[0].a }}", n: "{{ rows.command_0.row_count }}"}, code: result = input_data}}
YAML
    runs seen
    equal "$(result seen end)" '{"a":6,"c":{"code":201,"head":"b"},"n":0}'
}

test_a_reference_shows_how_the_result_begins_C_62() {
    book shown >shown.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: usual, kind: python, code: 'result = {"a": [1, 2], "b": "é" * 60000}'}
      - {name: short, kind: python, code: 'result = ["x" * 70000]', spec: {result: {preview_max_bytes: 5}}}
      - {name: none, kind: python, code: 'result = list(range(30000))', spec: {result: {preview_max_bytes: 0}}}
YAML
    runs shown
    "$CAIRN" events shown "${store[@]}" -o jsonl | jq -c 'select(.event_type=="result.stored").payload.result_ref.preview' >shown
    equal "$(sed -n 1p shown | jq -c '[.bytes,.truncated,.sample[0:17],(.sample|length)]')" '[1024,true,"{\"a\":[1,2],\"b\":\"é",520]'
    equal "$(sed -n 2,3p shown)" '{"bytes":5,"sample":"[\"xxx","truncated":true}
null'
    intact
}

test_words_that_are_templates_are_answered_from_the_workload_C_47() {
    book inner >inner.yaml <<'YAML'
workflow:
  - {step: start, tool: {kind: python, code: 'result = {"s": "x" * 70000}'}, next: [end]}
  - {step: end, tool: {kind: python, input: {m: "{{ start._ref.meta.bytes }}", s: "{{ start._ref.scope }}"}, code: 'result = [m, s]'}}
YAML
    book words >words.yaml <<'YAML'
workload: {how: parallel, back: end}
workflow:
  - step: start
    loop: {in: [1, 2], iterator: n, spec: {mode: "{{ how }}"}}
    tool: {kind: playbook, path: inner, return_step: "{{ back }}"}
    next: {spec: {mode: "{{ 'inclusive' if how == 'parallel' else 'exclusive' }}"}, arcs: [{step: a}, {step: b}]}
  - {step: a, tool: {kind: noop}}
  - {step: b, tool: {kind: playbook, path: inner, return_step: nowhere}}
YAML
    cairn_is 0 validate words.yaml
    grep -q 'words.yaml:11:.*no step "nowhere" (return_step)' out err || fail "it says: $(cat out err)"
    runs words
    equal "$("$CAIRN" events words "${store[@]}" -o jsonl | jq -c 'select(.event_type=="task.done" and .entity_id=="start_task").payload.outcome.result' | sort -u)" '[70008,"execution"]'
    equal "$(events_of words | grep -c '^step.started')" 3 'steps started'
}

test_two_arcs_to_one_step_are_proved_NX_3_6c() {
    book twice >twice.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = {"v": 1}'}
    next: {arcs: [{step: end, when: "{{ start.v > 5 }}"}, {step: end, when: "{{ start.v == 1 }}"}, {step: end}]}
  - {step: end, tool: {kind: noop}}
YAML
    runs twice
    cairn_is 0 why twice "${store[@]}"
    grep -q '3 decisions asked again, same answers as recorded' out || fail "it says: $(cat out)"
}

test_slips_are_told_by_name() {
    book slips >slips.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = {"v": 1}'}
    next: [end]
  - step: end
    tool:
      - {name: a, kind: python, input: {x: "{{ start.w > 0 }}"}, code: result = x, spec: {policy: {rules: [{else: {do: continue, set: {ctx.a: "{{ output.error.message }}"}}}]}}}
      - {name: b, kind: python, input: {x: "{{ 1 + nobody }}"}, code: result = x, spec: {policy: {rules: [{else: {do: continue, set: {ctx.b: "{{ output.error.message }}"}}}]}}}
      - {name: c, kind: python, input: {c: "{{ ctx }}"}, code: result = c}
YAML
    runs slips
    equal "$(result slips end)" '{"a":"input: x: template: start.w is undefined","b":"input: x: template: nobody is undefined"}'
    book braces >braces.yaml <<'YAML'
workflow:
  - {step: start, tool: {kind: python, code: 'result = "{{ workload.name }}"'}, next: [end]}
  - {step: end, tool: {kind: python, code: 'n = 1; result = f"{{not a template}} {n}"'}}
YAML
    cairn_is 0 validate braces.yaml
    equal "$(cat out err | grep -c 'in code stays as it is')" 1 'warnings'
    grep -q 'braces.yaml:5:' out err || fail "it says: $(cat out err)"
}

run_tests "$@"
