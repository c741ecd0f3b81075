#!/usr/bin/env bash
# The playbooks of the corpus: all validate, those that need no service run to the end with the results that their authors state, those
# that need HTTP or Postgres run against a stub and a real server of the test's own.
. "$(dirname "$0")/postgres_lib.sh"
corpus=${CAIRN_CORPUS:-$root/../shared/corpus}/playbooks

have_corpus() { [ -d "$corpus" ] || skip 'no corpus here; set CAIRN_CORPUS'; }
api_up() {
    python3 "$e2e/playbook_api.py" "$PWD/port" &
    api_pid=$!
    trap 'kill $api_pid 2>/dev/null; [ -z "${pg_dir:-}" ] || postgres_down' EXIT
    wait_for test -s port
    api=http://127.0.0.1:$(cat port)
}
store=(--store "sqlite:runs.db")
# runs NAME [ARGS]: to the end, under the id NAME
runs() {
    local name=$1
    shift
    cairn_is 0 run "$corpus/$name.yaml" "${store[@]}" --run-id "$name" --progress none "$@"
    status_is "$name" COMPLETED || fail "$name is not COMPLETED"
}
# result RUN STEP JQ: of what the step gave
result() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r "select(.event_type==\"step.done\" and .entity_id==\"$2\").payload.outcome.result$3" | tail -n 1; }

test_all_of_them_validate_NX_5_1() {
    have_corpus
    for file in "$corpus"/*.yaml; do
        case $file in
            */broken_*) cairn_is 3 validate "$file"; grep -qiE 'tool.*required' out err || fail 'the refusal does not say what is required' ;;
            *) cairn_is 0 validate "$file" ;;
        esac
    done
}

test_those_without_services_give_what_their_authors_state() {
    have_corpus
    for name in actions_test comprehensive_test fanout_reduce_fanout_reduce_phase6 hello_world_hello_world \
        playbook_composition_user_profile_scorer root_scripts_test_keychain root_scripts_test_simple_loop test_args_passing \
        test_end_with_action test_large_tabular_result test_loop_instance_isolation_playbook test_oversize_command_context \
        vars_test_test_vars_block; do
        runs "$name"
    done
    equal "$(result hello_world_hello_world test_step .data.message)" 'Hello World'
    equal "$(result test_args_passing use_vars .result)" 300
    equal "$(result vars_test_test_vars_block verify_vars .status)" success
    equal "$(result test_loop_instance_isolation_playbook verify_results .verification)" 'Both loops completed independently'
    equal "$(result test_large_tabular_result done .test_passed)" true
    equal "$(result test_oversize_command_context consume .verified_size_kb)" 900
    equal "$(result playbook_composition_user_profile_scorer finalize_result .score_category)" Junior
    equal "$(events_of fanout_reduce_fanout_reduce_phase6 | grep -c step.started)" 4 'steps started, each once'
    intact
}

test_pages_retries_and_overlap_against_a_stub() {
    have_corpus
    api_up
    runs pagination_cursor_test_pagination_cursor --set "api_url=$api"
    equal "$(result pagination_cursor_test_pagination_cursor validate_results .total_events)" 35
    runs pagination_basic_test_pagination_basic --set "api_url=$api" --set slow_delay_seconds=0.3
    equal "$(result pagination_basic_test_pagination_basic validate_results .status)" success
    runs examples_http_pagination_v2 --set "api_url=$api"
    equal "$(result examples_http_pagination_v2 process_results .count)" 12
    runs retry_test_http_retry_status_code --set "test_url=$api/get"
    intact
}

test_sql_against_a_real_postgres() {
    have_corpus
    api_up
    postgres_up
    store=(--store "sqlite:runs.db")
    pg_sql "create schema noetl; create table noetl.catalog (kind text); insert into noetl.catalog values ('Playbook'), ('Playbook'), ('Tool');
            create table results (item_id int primary key, data text); grant all on all tables in schema public to app; grant usage on schema noetl to app;
            grant select on noetl.catalog to app; grant create on schema public to app"
    for name in pg_noetl_k8s pg_k8s pg_test; do
        printf '%s: {type: postgres, data: {db_host: "%s", db_user: app, db_name: postgres}}\n' "$name" "$pg_dir"
    done >credentials.yaml
    runs postgres_test --credentials credentials.yaml
    equal "$(result postgres_test start '.command_0.rows[0].count')" 2
    runs v10_canonical_example --credentials credentials.yaml --set "api_url=$api"
    equal "$(pg_sql "select item_id from results")" "$(result v10_canonical_example process_data .items)" "rows that the loop stored: the number that validate gave"
    runs batch_execution_heavy_payload_pipeline_in_step_heavy_payload_pipeline_in_step --credentials credentials.yaml \
        --set execution_mode=direct_stress --set seed_rows=12 --set "details_api_url=$api/anything" --set payload_kb_per_item=64
    equal "$(pg_sql 'select count(*) from public.heavy_payload_results where http_status = 200')" 12 'rows that were fetched and stored'
    intact
}

run_tests "$@"
