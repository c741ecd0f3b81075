# For tests with a real Temporal server (tools/temporal-server). Without one that was built they are skipped, by name.
#
#   temporal_server [FLAG...]   a server of the test's own: $temporal is its address, $temporal_pid its process
#   host [FLAG...]              cairn serve whose runs are workflows there
#   temporal_worker NAME        cairn worker for its activities; $worker is its process
. "$(dirname "${BASH_SOURCE[0]}")/serve_lib.sh"
unconfined
temporal_tool() { server_tool temporal-server "$@"; }
temporal_server() {
    temporal_binary=$(temporal_tool path) || skip "Temporal's server was not built: tools/temporal-server build"
    read -r temporal_pid temporal_port < <(temporal_tool start "$PWD/temporal" "$@") || fail "no server: $(cat temporal/server.log)"
    temporal=127.0.0.1:$temporal_port
}
tctl() { HOME=$PWD/temporal TEMPORAL_VERSION_CHECK_DISABLED=1 "$temporal_binary" "$@" --address "$temporal"; }
host() { serve --temporal "$temporal" --drain 0 "$@"; }
temporal_worker() {
    "$CAIRN" worker --temporal "$temporal" --name "$1" --concurrency "${slots:-4}" -v >"$1.out" 2>"$1.err" &
    worker=$!
}
shell() { jq -nc --arg id "$1" --arg c "$2" --argjson deps "${3:-[]}" '{stepId: $id, kind: "shell", dependsOn: $deps, with: {command: $c}}'; }
start() { ask POST /v1/runs "{\"document\":$(plan_text p "${@:2}"),\"runId\":\"$1\"}" && [ "$status" -lt 300 ] || fail "not started: $(cat body)"; }
start_file() { CAIRN_TOKEN=$token "$CAIRN" run "$2" --server "$url" --run-id "$1" --detach "${@:3}" >started.out 2>started.err || fail "not started: $(cat started.err)"; }
ended() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
workflow_is() { tctl workflow describe -w "default/$1" -o json >described 2>/dev/null && [ "$(jq -r .workflowExecutionInfo.status described)" = "WORKFLOW_EXECUTION_STATUS_$2" ]; }
# What a log says, without what names the host, the place and the time.
story() {
    "$CAIRN" events "$1" --store "$2" -o jsonl | jq -cS 'walk(if type == "object" then del(.at, .dueAt, .due_at, .emittedAt, .persistedAt, .eventId, .event_id, .prevHash,
        .startedAt, .durationMs, .duration_ms, .notBefore, .engineRunRef, .engineType, .prev_hash, .artifacts_dir, .document_file, .work_dir, .triggered_by, .started_at, .ended_at, .duration, .engine_place, .target_adapter, .engine_type, .engine_run_ref, .enginePlace, .targetAdapter, .artifactsDir, .documentFile, .context, .workDir, .triggeredBy, .trigger_source,
        .timestamp, .created_at, .validationReport, .profile, .queue, .stack, .capabilityReport, .engineCapabilities, .environment, .uri) else . end)'
}
# The same document, run by the engine alone: its log must be the same story.
same_as_embedded() { # RUN FILE [FLAG...]
    "$CAIRN" run "$2" --run-id "$1" --store "sqlite:$PWD/embedded.db" --progress none "${@:3}" >/dev/null 2>embedded.err || [ $? = 10 ] || fail "embedded: $(cat embedded.err)"
    story "$1" "sqlite:$PWD/embedded.db" >embedded.story
    story "$1" "sqlite:$PWD/store.db" >temporal.story
    diff embedded.story temporal.story >differs || fail "the logs of $1 differ: $(head -c 1500 differs)"
}
# The same where steps go on side by side: which of them is recorded first is up to the machine, what is recorded is not. $blur: a
# command of sed for what is of no run twice.
same_as_embedded_unordered() {
    "$CAIRN" run "$2" --run-id "$1" --store "sqlite:$PWD/embedded.db" --progress none "${@:3}" >/dev/null 2>embedded.err || [ $? = 10 ] || fail "embedded: $(cat embedded.err)"
    story "$1" "sqlite:$PWD/embedded.db" | jq -cS 'del(.runSeq, .seq, .sequence)' | sed -E "${blur:-}" | sort >embedded.story
    story "$1" "sqlite:$PWD/store.db" | jq -cS 'del(.runSeq, .seq, .sequence)' | sed -E "${blur:-}" | sort >temporal.story
    diff embedded.story temporal.story >differs || fail "the logs of $1 differ: $(head -c 1500 differs)"
}
