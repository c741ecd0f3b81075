// The messages of Temporal's API (temporal.api.*.v1) that Cairn sends and reads, and of them the fields that it uses. Numbers are
// those of the published protocol; the tables are in src/proto/temporal.c. A struct and its table have the same name.
//
// Numbers stand for enums too: the constants below are those that are used.
#ifndef CAIRN_PROTO_TEMPORAL_H
#define CAIRN_PROTO_TEMPORAL_H

#include "proto/proto.h"

// ---- shared
struct temporal_entry { // of Payload.metadata: map<string, bytes>
    struct str key, value;
};
struct temporal_payload {
    const struct temporal_entry *metadata;
    size_t metadata_count;
    struct str data;
};
struct temporal_payloads {
    const struct temporal_payload *payloads;
    size_t payloads_count;
};
struct temporal_named_payload { // of map<string, Payload>
    struct str key;
    const struct temporal_payload *value;
};
struct temporal_fields { // Memo, Header, SearchAttributes: all are one map
    const struct temporal_named_payload *fields;
    size_t fields_count;
};
struct temporal_duration { // Timestamp has the same shape
    int64_t seconds, nanos;
};
struct temporal_execution {
    struct str workflow_id, run_id;
};
struct temporal_name { // WorkflowType, ActivityType
    struct str name;
};
enum { TEMPORAL_QUEUE_NORMAL = 1, TEMPORAL_QUEUE_STICKY = 2 };
struct temporal_queue {
    struct str name;
    int64_t kind;
    struct str normal_name; // of a sticky one
};
struct temporal_retry {
    const struct temporal_duration *initial_interval;
    double backoff_coefficient;
    const struct temporal_duration *maximum_interval;
    int64_t maximum_attempts;
};
struct temporal_metadata { // UserMetadata: what a person reads in the UI
    const struct temporal_payload *summary, *details;
};

struct temporal_application_failure {
    struct str type;
    int64_t non_retryable;
    const struct temporal_payloads *details;
};
enum {
    TEMPORAL_TIMEOUT_START_TO_CLOSE = 1,
    TEMPORAL_TIMEOUT_SCHEDULE_TO_START,
    TEMPORAL_TIMEOUT_SCHEDULE_TO_CLOSE,
    TEMPORAL_TIMEOUT_HEARTBEAT
};
struct temporal_timeout_failure {
    int64_t timeout_type;
};
struct temporal_canceled_failure {
    const struct temporal_payloads *details;
};
struct temporal_server_failure {
    int64_t non_retryable;
};
struct temporal_failure {
    struct str message, source, stack_trace;
    const struct temporal_failure *cause;
    const struct temporal_application_failure *application;
    const struct temporal_timeout_failure *timeout;
    const struct temporal_canceled_failure *canceled;
    const struct temporal_server_failure *server;
    const struct temporal_payload *encoded;
};

// ---- errors: google.rpc.Status in grpc-status-details-bin
struct temporal_any {
    struct str type_url, value;
};
struct temporal_status {
    int64_t code;
    struct str message;
    const struct temporal_any *details;
    size_t details_count;
};
struct temporal_already_started {
    struct str start_request_id, run_id;
};

// ---- the server and its namespaces
struct temporal_nothing { // a request without members that we set, or an answer of which nothing is read
    char unused;
};
struct temporal_system_capabilities {
    int64_t internal_error_differentiation, eager_workflow_start;
};
struct temporal_system_info {
    struct str server_version;
    const struct temporal_system_capabilities *capabilities;
};
struct temporal_describe_namespace {
    struct str namespace;
};
struct temporal_namespace_limits {
    int64_t blob_size_error, memo_size_error;
};
struct temporal_namespace_info {
    struct str name;
    int64_t state; // 1: registered
    struct str id;
    const struct temporal_namespace_limits *limits;
};
struct temporal_namespace_config {
    const struct temporal_duration *retention;
};
struct temporal_namespace {
    const struct temporal_namespace_info *info;
    const struct temporal_namespace_config *config;
};
struct temporal_register_namespace {
    struct str namespace, description;
    const struct temporal_duration *retention;
};
struct temporal_list_attributes {
    struct str namespace;
};
struct temporal_attribute { // of map<string, enum>
    struct str key;
    int64_t value; // 2: keyword
};
struct temporal_attributes {
    const struct temporal_attribute *custom;
    size_t custom_count;
};

// ---- a client
enum { TEMPORAL_REUSE_REJECT = 3, TEMPORAL_CONFLICT_USE_EXISTING = 2 };
struct temporal_start {
    struct str namespace, workflow_id;
    const struct temporal_name *workflow_type;
    const struct temporal_queue *task_queue;
    const struct temporal_payloads *input;
    const struct temporal_duration *execution_timeout, *run_timeout, *task_timeout;
    struct str identity, request_id;
    int64_t reuse_policy;
    const struct temporal_fields *memo, *search_attributes;
    const struct temporal_duration *start_delay;
    int64_t conflict_policy;
    const struct temporal_metadata *user_metadata;
};
struct temporal_started {
    struct str run_id;
    int64_t started; // by this request id
    int64_t status;
};
struct temporal_signal {
    struct str namespace;
    const struct temporal_execution *execution;
    struct str signal_name;
    const struct temporal_payloads *input;
    struct str identity, request_id;
};
struct temporal_request_cancel {
    struct str namespace;
    const struct temporal_execution *execution;
    struct str identity, request_id, first_run_id, reason;
};
struct temporal_terminate {
    struct str namespace;
    const struct temporal_execution *execution;
    struct str reason;
    const struct temporal_payloads *details;
    struct str identity, first_run_id;
};
struct temporal_describe { // of the same shape: a workflow that is to be deleted
    struct str namespace;
    const struct temporal_execution *execution;
};
enum {
    TEMPORAL_RUNNING = 1,
    TEMPORAL_COMPLETED,
    TEMPORAL_FAILED,
    TEMPORAL_CANCELED,
    TEMPORAL_TERMINATED,
    TEMPORAL_CONTINUED,
    TEMPORAL_TIMED_OUT,
    TEMPORAL_PAUSED
};
struct temporal_execution_info {
    const struct temporal_execution *execution;
    const struct temporal_name *type;
    const struct temporal_duration *start_time, *close_time;
    int64_t status, history_length;
    const struct temporal_fields *memo;
    struct str task_queue;
    int64_t history_size_bytes;
};
struct temporal_pending_activity {
    struct str activity_id;
    const struct temporal_name *type;
    int64_t state, attempt;
};
struct temporal_described {
    const struct temporal_execution_info *info;
    const struct temporal_pending_activity *activities;
    size_t activities_count;
};
struct temporal_list_executions {
    struct str namespace;
    int64_t page_size;
    struct str next_page_token, query;
};
struct temporal_executions {
    const struct temporal_execution_info *executions;
    size_t executions_count;
    struct str next_page_token;
};
enum { TEMPORAL_FILTER_ALL = 1, TEMPORAL_FILTER_CLOSE = 2 };
struct temporal_get_history {
    struct str namespace;
    const struct temporal_execution *execution;
    int64_t maximum_page_size;
    struct str next_page_token;
    int64_t wait_new_event, filter;
};

// ---- history
enum {
    TEMPORAL_EVENT_STARTED = 1,
    TEMPORAL_EVENT_COMPLETED = 2,
    TEMPORAL_EVENT_FAILED = 3,
    TEMPORAL_EVENT_TIMED_OUT = 4,
    TEMPORAL_EVENT_TASK_SCHEDULED = 5,
    TEMPORAL_EVENT_TASK_STARTED = 6,
    TEMPORAL_EVENT_TASK_COMPLETED = 7,
    TEMPORAL_EVENT_TASK_TIMED_OUT = 8,
    TEMPORAL_EVENT_TASK_FAILED = 9,
    TEMPORAL_EVENT_ACTIVITY_SCHEDULED = 10,
    TEMPORAL_EVENT_ACTIVITY_STARTED = 11,
    TEMPORAL_EVENT_ACTIVITY_COMPLETED = 12,
    TEMPORAL_EVENT_ACTIVITY_FAILED = 13,
    TEMPORAL_EVENT_ACTIVITY_TIMED_OUT = 14,
    TEMPORAL_EVENT_ACTIVITY_CANCEL_REQUESTED = 15,
    TEMPORAL_EVENT_ACTIVITY_CANCELED = 16,
    TEMPORAL_EVENT_TIMER_STARTED = 17,
    TEMPORAL_EVENT_TIMER_FIRED = 18,
    TEMPORAL_EVENT_TIMER_CANCELED = 19,
    TEMPORAL_EVENT_CANCEL_REQUESTED = 20,
    TEMPORAL_EVENT_CANCELED = 21,
    TEMPORAL_EVENT_SIGNALED = 26,
    TEMPORAL_EVENT_TERMINATED = 27,
    TEMPORAL_EVENT_CONTINUED = 28
};
struct temporal_event_started {
    const struct temporal_payloads *input;
    struct str continued_run_id, original_run_id, first_run_id;
};
struct temporal_event_task_started {
    int64_t scheduled_event_id, suggest_continue_as_new, history_size_bytes;
};
struct temporal_event_task_failed {
    int64_t cause;
    const struct temporal_failure *failure;
};
struct temporal_event_activity_scheduled {
    struct str activity_id;
    const struct temporal_name *type;
};
struct temporal_event_activity_completed {
    const struct temporal_payloads *result;
    int64_t scheduled_event_id;
};
struct temporal_event_activity_failed {
    const struct temporal_failure *failure;
    int64_t scheduled_event_id, retry_state;
};
struct temporal_event_activity_timed_out {
    const struct temporal_failure *failure;
    int64_t scheduled_event_id, retry_state;
};
struct temporal_event_activity_ref { // cancel requested
    int64_t scheduled_event_id;
};
struct temporal_event_activity_canceled {
    const struct temporal_payloads *details;
    int64_t scheduled_event_id;
};
struct temporal_event_timer { // started, fired, cancelled
    struct str timer_id;
};
struct temporal_event_signaled {
    struct str signal_name;
    const struct temporal_payloads *input;
    struct str identity, request_id;
};
struct temporal_event_cancel_requested {
    struct str cause, identity;
};
struct temporal_event_terminated {
    struct str reason, identity;
};
struct temporal_event_continued {
    struct str new_run_id;
};
struct temporal_event {
    int64_t event_id;
    const struct temporal_duration *time;
    int64_t type;
    // Of these one at most: the attributes of the type.
    const struct temporal_event_started *started;
    const struct temporal_event_task_started *task_started;
    const struct temporal_event_task_failed *task_failed;
    const struct temporal_event_activity_scheduled *activity_scheduled;
    const struct temporal_event_activity_completed *activity_completed;
    const struct temporal_event_activity_failed *activity_failed;
    const struct temporal_event_activity_timed_out *activity_timed_out;
    const struct temporal_event_timer *timer_started, *timer_fired;
    const struct temporal_event_activity_ref *activity_cancel_requested;
    const struct temporal_event_activity_canceled *activity_canceled;
    const struct temporal_event_timer *timer_canceled;
    const struct temporal_event_signaled *signaled;
    const struct temporal_event_terminated *terminated;
    const struct temporal_event_cancel_requested *cancel_requested;
    const struct temporal_event_continued *continued;
    int64_t may_ignore; // an event of a newer server that changes nothing
};
struct temporal_history {
    const struct temporal_event *events;
    size_t events_count;
};
struct temporal_blob { // a History as bytes: a server may send these instead
    int64_t encoding;  // 1: protocol buffers
    struct str data;
};
struct temporal_history_page {
    const struct temporal_history *history;
    const struct temporal_blob *raw;
    size_t raw_count;
    struct str next_page_token;
};

// ---- a worker for workflow tasks
struct temporal_poll { // of both kinds of tasks
    struct str namespace;
    const struct temporal_queue *task_queue;
    struct str identity;
};
struct temporal_query {
    struct str query_type;
};
struct temporal_workflow_task {
    struct str task_token;
    const struct temporal_execution *execution;
    const struct temporal_name *type;
    int64_t previous_started_event_id, started_event_id, attempt;
    const struct temporal_history *history;
    struct str next_page_token;
    const struct temporal_query *query; // this task only asks
};
enum {
    TEMPORAL_SCHEDULE_ACTIVITY = 1,
    TEMPORAL_CANCEL_ACTIVITY = 2,
    TEMPORAL_START_TIMER = 3,
    TEMPORAL_COMPLETE_WORKFLOW = 4,
    TEMPORAL_FAIL_WORKFLOW = 5,
    TEMPORAL_CANCEL_TIMER = 6,
    TEMPORAL_CANCEL_WORKFLOW = 7,
    TEMPORAL_CONTINUE_WORKFLOW = 10
};
struct temporal_schedule_activity {
    struct str activity_id;
    const struct temporal_name *type;
    const struct temporal_queue *task_queue;
    const struct temporal_payloads *input;
    const struct temporal_duration *schedule_to_close, *schedule_to_start, *start_to_close, *heartbeat;
    const struct temporal_retry *retry;
};
struct temporal_start_timer {
    struct str timer_id;
    const struct temporal_duration *fires_after;
};
struct temporal_complete_workflow {
    const struct temporal_payloads *result;
};
struct temporal_fail_workflow {
    const struct temporal_failure *failure;
};
struct temporal_cancel_activity {
    int64_t scheduled_event_id;
};
struct temporal_cancel_timer {
    struct str timer_id;
};
struct temporal_cancel_workflow {
    const struct temporal_payloads *details;
};
struct temporal_continue_workflow {
    const struct temporal_name *type;
    const struct temporal_queue *task_queue;
    const struct temporal_payloads *input;
    const struct temporal_duration *task_timeout;
    int64_t initiator; // 1: the workflow itself
    const struct temporal_fields *memo, *search_attributes;
};
struct temporal_command {
    int64_t type;
    // Of these exactly one.
    const struct temporal_schedule_activity *schedule_activity;
    const struct temporal_start_timer *start_timer;
    const struct temporal_complete_workflow *complete;
    const struct temporal_fail_workflow *fail;
    const struct temporal_cancel_activity *cancel_activity;
    const struct temporal_cancel_timer *cancel_timer;
    const struct temporal_cancel_workflow *cancel;
    const struct temporal_continue_workflow *continue_as_new;
    const struct temporal_metadata *user_metadata;
};
struct temporal_respond_workflow {
    struct str task_token;
    const struct temporal_command *commands;
    size_t commands_count;
    struct str identity;
    int64_t force_new_task;
    struct str namespace;
};
struct temporal_fail_workflow_task {
    struct str task_token;
    int64_t cause; // 14: the worker failed
    const struct temporal_failure *failure;
    struct str identity, namespace;
};
struct temporal_respond_query {
    struct str task_token;
    int64_t completed_type; // 1: answered, 2: failed
    const struct temporal_payloads *result;
    struct str error_message, namespace;
};

// ---- a worker for activities
struct temporal_activity_task {
    struct str task_token;
    const struct temporal_execution *execution;
    const struct temporal_name *type;
    struct str activity_id;
    const struct temporal_payloads *input;
    int64_t attempt;
    const struct temporal_duration *start_to_close, *heartbeat;
};
struct temporal_complete_activity {
    struct str task_token;
    const struct temporal_payloads *result;
    struct str identity, namespace;
};
struct temporal_fail_activity {
    struct str task_token;
    const struct temporal_failure *failure;
    struct str identity, namespace;
};
struct temporal_heartbeat { // of the same shape: an activity that was cancelled
    struct str task_token;
    const struct temporal_payloads *details;
    struct str identity, namespace;
};
struct temporal_heartbeat_answer {
    int64_t cancel_requested, activity_paused, activity_reset;
};

#define TEMPORAL_MESSAGES(X)                                                                                           \
    X(entry) X(payload) X(payloads) X(named_payload) X(fields) X(duration) X(execution) X(name)    \
    X(queue) X(retry) X(metadata) X(application_failure) X(timeout_failure) X(canceled_failure) X(server_failure)      \
    X(failure) X(any) X(status) X(already_started) X(nothing) X(system_capabilities) X(system_info)                    \
    X(describe_namespace) X(namespace_limits) X(namespace_info) X(namespace_config) X(namespace)                       \
    X(register_namespace) X(list_attributes) X(attribute) X(attributes) X(start) X(started) X(signal)                  \
    X(request_cancel) X(terminate) X(describe) X(execution_info) X(pending_activity) X(described) X(list_executions)   \
    X(executions) X(get_history)                                                                                       \
    X(event_started) X(event_task_started) X(event_task_failed) X(event_activity_scheduled)                            \
    X(event_activity_completed) X(event_activity_failed) X(event_activity_timed_out) X(event_activity_ref)             \
    X(event_activity_canceled) X(event_timer) X(event_signaled) X(event_cancel_requested) X(event_terminated)          \
    X(event_continued) X(event) X(history) X(blob) X(history_page) X(poll) X(query) X(workflow_task)                   \
    X(schedule_activity) X(start_timer) X(complete_workflow) X(fail_workflow) X(cancel_activity) X(cancel_timer)       \
    X(cancel_workflow) X(continue_workflow) X(command) X(respond_workflow) X(fail_workflow_task) X(respond_query)      \
    X(activity_task) X(complete_activity) X(fail_activity) X(heartbeat) X(heartbeat_answer)
#define X(message) extern const struct proto_message temporal_##message;
TEMPORAL_MESSAGES(X)
#undef X

#endif
