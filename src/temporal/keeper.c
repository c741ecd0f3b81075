// Workflows are started and woken here, and looked after: a run that wants something of a workflow gets it, and a workflow that was ended
// by others ends its run.
#include "temporal/inside.h"

#include "json/make.h"
#include "temporal/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_MS = 1000, START_BUDGET_MS = 60000, WAKE_BUDGET_MS = 30000, TASK_MS = 20000, PAGE = 200, SWEEP_MS = 60000 };
enum { ABOUT_START = 1, ABOUT_WAKE };
enum { SIGNAL_MAX = 16 << 10 }; // bytes of what Temporal has of one

// ---- calls about a run that nobody waits for

bool about_send(struct temporal_host *host, struct hosted *run, int kind, const struct temporal_call *call, grpc_done done)
{
    struct error err = {0};
    struct about *about = malloc(sizeof(*about) + run->id.len + 1);
    if (!about) return false;
    *about = (struct about){.host = host, .kind = kind, .size = run->id.len};
    memcpy(about->id, run->id.ptr, run->id.len);
    run->calls++;
    if (temporal_send(host->client, call, done, about, NULL, &err) == OK) return true;
    run->calls--;
    free(about);
    return false;
}

struct hosted *about_back(const struct about *about)
{
    pthread_mutex_lock(&about->host->mutex);
    struct hosted *run = hosted_find(about->host, (struct str){about->id, about->size});
    INVARIANT(run && run->calls > 0);
    run->calls--;
    return run;
}

void about_end(struct about *about, const struct hosted *run)
{
    struct temporal_host *host = about->host;
    if (run && run->is_doubtful) pthread_cond_signal(&host->changed);
    pthread_mutex_unlock(&host->mutex);
    free(about);
}

static void on_called(void *context, const struct grpc_answer *got)
{
    struct about *about = context;
    struct hosted *run = about_back(about);
    bool good = got->status == GRPC_OK;
    if (about->kind == ABOUT_START) {
        run->is_starting = false;
        // A workflow of this id that has ended already: what that means for the run, the keeper finds out.
        if (good || got->status == GRPC_ALREADY_EXISTS) run->is_started = true;
        run->is_doubtful = got->status == GRPC_ALREADY_EXISTS;
    } else if (!good) {
        run->is_waking = false;
        if (got->status == GRPC_NOT_FOUND) run->is_doubtful = true;
    }
    if (!good && got->status != GRPC_ALREADY_EXISTS && got->status != GRPC_NOT_FOUND && got->status != GRPC_CANCELLED)
        os_log(LOG_WARN, "Temporal refused run=%.*s what=%s status=%s why=\"%.*s\"", STR_ARG(run->run),
               about->kind == ABOUT_START ? "start" : "wake", grpc_status_name(got->status), STR_ARG(got->message));
    about_end(about, run);
}

static bool memo_field(struct arena *arena, struct temporal_named_payload *out, struct str name, struct str value)
{
    struct buf json = buf_of(8192);
    json_write_string(&json, value);
    struct str text = buf_keep(&json, arena);
    struct temporal_json *room = ARENA_NEW(arena, struct temporal_json);
    if (!room || !text.ptr) return false;
    *out = (struct temporal_named_payload){name, &temporal_json(room, text)->payloads[0]};
    return true;
}

const struct temporal_fields *host_attributes(const struct temporal_host *host, const struct hosted *run, struct arena *arena)
{
    static const char *const names[] = TEMPORAL_ATTRIBUTES;
    const struct str values[] = {run->tenant, buf_str(&run->plan)};
    struct temporal_named_payload *fields = ARENA_ARRAY(arena, ARRAY_COUNT(names), struct temporal_named_payload);
    struct temporal_fields *out = ARENA_NEW(arena, struct temporal_fields);
    if (!host->options.settings.searchable || !fields || !out) return NULL;
    *out = (struct temporal_fields){.fields = fields};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        out->fields_count += values[i].len > 0 && memo_field(arena, &fields[out->fields_count], str_from(names[i]), values[i]);
    return out;
}

const struct temporal_fields *host_memo(const struct hosted *run, struct arena *arena)
{
    struct temporal_named_payload *fields = ARENA_ARRAY(arena, 3, struct temporal_named_payload);
    struct temporal_fields *memo = ARENA_NEW(arena, struct temporal_fields);
    bool made = fields && memo && memo_field(arena, &fields[0], STR("planId"), buf_str(&run->plan)) &&
                memo_field(arena, &fields[1], STR("runId"), run->run) &&
                memo_field(arena, &fields[2], STR("tenantId"), run->tenant);
    if (!made) return NULL; // a courtesy
    *memo = (struct temporal_fields){.fields = fields, .fields_count = 3};
    return memo;
}

void workflow_start(struct temporal_host *host, struct hosted *run)
{
    struct arena arena = arena_of(4096, 1 << 20);
    char request_id[UUID_SIZE];
    struct temporal_json input, summary;
    if (run->is_starting || !run->is_placed || atomic_load(&host->is_shut)) return;
    uuid_named(run->id, request_id);
    struct temporal_name type = {STR(TEMPORAL_WORKFLOW)};
    struct temporal_queue queue = {.name = host->queues[run->shard], .kind = TEMPORAL_QUEUE_NORMAL};
    struct temporal_duration task = temporal_duration_of(TASK_MS);
    struct buf name = buf_of(8192);
    json_write_string(&name, run->plan.len > 0 ? buf_str(&run->plan) : run->run);
    struct temporal_metadata metadata = {.summary = &temporal_json(&summary, buf_str(&name))->payloads[0]};
    struct temporal_start request = {.namespace = temporal_settings_of(host->client)->namespace,
                                     .workflow_id = run->id,
                                     .workflow_type = &type,
                                     .task_queue = &queue,
                                     .input = temporal_json(&input, STR("null")),
                                     .task_timeout = &task,
                                     .identity = temporal_identity(host->client),
                                     .request_id = str_from(request_id),
                                     .reuse_policy = TEMPORAL_REUSE_REJECT,
                                     .conflict_policy = TEMPORAL_CONFLICT_USE_EXISTING,
                                     .memo = host_memo(run, &arena),
                                     .search_attributes = host_attributes(host, run, &arena),
                                     .user_metadata = buf_ok(&name) ? &metadata : NULL};
    struct temporal_call call = {.method = TEMPORAL_METHOD("StartWorkflowExecution"),
                                 .in = &temporal_start,
                                 .request = &request,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = START_BUDGET_MS};
    run->is_starting = about_send(host, run, ABOUT_START, &call, on_called);
    buf_release(&name);
    arena_release(&arena);
}

void workflow_wake(struct temporal_host *host, struct hosted *run)
{
    char request_id[UUID_SIZE];
    if (run->is_waking || atomic_load(&host->is_shut)) return;
    entropy_uuid(os_entropy(), request_id);
    struct temporal_execution execution = {.workflow_id = run->id}; // the run of the workflow that is current
    struct temporal_signal request = {.namespace = temporal_settings_of(host->client)->namespace,
                                      .execution = &execution,
                                      .signal_name = STR(TEMPORAL_WAKE),
                                      .identity = temporal_identity(host->client),
                                      .request_id = str_from(request_id)};
    struct temporal_call call = {.method = TEMPORAL_METHOD("SignalWorkflowExecution"),
                                 .in = &temporal_signal,
                                 .request = &request,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = WAKE_BUDGET_MS};
    run->is_waking = about_send(host, run, ABOUT_WAKE, &call, on_called);
}

// ---- the store

enum code host_signal(struct temporal_host *host, struct str tenant, struct str run, enum signal_type type,
                      struct str place, struct str reason, struct str bytes, struct error *err)
{
    struct arena arena = arena_of(4096, (size_t)4 << 20);
    char id[UUID_SIZE];
    uuid_named(place, id);
    struct json given = {0};
    struct signal signal = {.type = type, .id = str_from(id), .reason = reason, .actor = STR("temporal"), .role = STR("Admin")};
    struct error bad = {0};
    // What is no signal here is refused, never tried again: a task that cannot be answered comes back for ever, and the run stands still.
    if (bytes.len > SIGNAL_MAX || reason.len > SIGNAL_MAX) return error_set(err, E_INVALID, "a signal of more than 16 KiB");
    if (bytes.len > 0 && json_parse(bytes, NULL, &arena, &given, &bad) == OK && json_is(&given, JSON_OBJECT)) {
        const struct json *payload = json_key(&given, "payload");
        const struct json *from = json_is(payload, JSON_OBJECT) ? payload : &given;
        struct str said = json_text(json_key(&given, "signalId"));
        if (uuid_valid(said)) signal.id = said;
        signal.step = json_text(json_key(from, "stepId"));
        if (json_text(json_key(from, "reason")).len > 0) signal.reason = json_text(json_key(from, "reason"));
    }
    struct str text = {0};
    enum code rc = signal_encode(&signal, &arena, &text, err);
    if (rc == E_LIMIT) rc = err->code = E_INVALID;
    if (!rc) {
        pthread_mutex_lock(&host->store_mutex);
        rc = store_post(host->store, tenant, run, signal.id, text, err);
        pthread_mutex_unlock(&host->store_mutex);
    }
    arena_release(&arena);
    return rc;
}

enum code host_look_up(struct temporal_host *host, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                       struct error *err)
{
    LOCKED(&host->store_mutex);
    return store_head(host->store, tenant, run, arena, out, err);
}

// ---- looking after

struct subject { // a run, while the lock is open
    struct str tenant, run, id;
};

static struct hosted *doubtful(struct temporal_host *host, int64_t now)
{
    for (size_t i = 0; i < HOST_TABLE; i++)
        for (struct hosted *run = host->table[i]; run; run = run->next) {
            bool due = now - run->checked_ms >= HOST_CHECK_MS;
            if (run->is_started && !run->is_closed && !run->has_left && (run->is_doubtful || due)) return run;
        }
    return NULL;
}

static const char *how_closed(int64_t status)
{
    switch (status) {
    case TEMPORAL_TERMINATED:
        return "its workflow was terminated in Temporal";
    case TEMPORAL_TIMED_OUT:
        return "its workflow timed out in Temporal";
    case TEMPORAL_FAILED:
        return "its workflow was failed in Temporal";
    case TEMPORAL_CANCELED:
        return "its workflow was cancelled in Temporal";
    case TEMPORAL_COMPLETED:
        return "its workflow was completed in Temporal";
    default:
        return "its workflow is no longer in Temporal";
    }
}

// 0: it goes on, or nobody knows.
static int64_t ask_status(struct temporal_host *host, struct str id, struct arena *arena)
{
    struct temporal_execution execution = {.workflow_id = id};
    struct temporal_describe request = {.namespace = temporal_settings_of(host->client)->namespace, .execution = &execution};
    struct temporal_described answer = {0};
    struct error err = {0};
    int status = 0;
    struct temporal_call call = {.method = TEMPORAL_METHOD("DescribeWorkflowExecution"),
                                 .in = &temporal_describe,
                                 .request = &request,
                                 .out = &temporal_described,
                                 .answer = &answer,
                                 .retry = GRPC_SAFE};
    enum code rc = temporal_ask(host->client, &call, arena, &status, &err);
    if (rc == E_NOT_FOUND) return -1;
    if (rc || !answer.info) return 0;
    int64_t now = answer.info->status;
    return now == TEMPORAL_RUNNING || now == TEMPORAL_CONTINUED || now == TEMPORAL_PAUSED ? 0 : now;
}

static void settle_closed(struct temporal_host *host, const struct subject *subject, int64_t status, struct arena *arena)
{
    struct error err = {0};
    pthread_mutex_lock(&host->mutex);
    struct hosted *run = hosted_find(host, subject->id);
    bool ended = run && run->has_ended;
    if (run) {
        run->is_closed = true;
        hosted_settle(host, run); // what the engine has cancelled is answered; it may be gone by this
    }
    pthread_mutex_unlock(&host->mutex);
    if (!run || ended) return;
    struct str place = arena_format(arena, "temporal/%.*s/closed", STR_ARG(subject->id));
    os_log(LOG_WARN, "the workflow of a run has ended run=%.*s how=\"%s\"", STR_ARG(subject->run), how_closed(status));
    if (!place.ptr || host_signal(host, subject->tenant, subject->run, SIGNAL_EMERGENCY_STOP, place,
                                  str_from(how_closed(status)), (struct str){0}, &err))
        os_log(LOG_WARN, "a run could not be stopped run=%.*s why=\"%s\"", STR_ARG(subject->run), err.message);
}

// With the lock, which is open meanwhile. False: nothing is doubtful.
static bool look_at_one(struct temporal_host *host, int64_t now)
{
    struct hosted *run = doubtful(host, now);
    if (!run) return false;
    struct arena arena = arena_of(4096, (size_t)8 << 20);
    struct subject subject = {arena_copy(&arena, run->tenant), arena_copy(&arena, run->run), arena_copy(&arena, run->id)};
    run->is_doubtful = false;
    run->checked_ms = now;
    pthread_mutex_unlock(&host->mutex);
    int64_t status = subject.id.ptr && subject.run.ptr && subject.tenant.ptr ? ask_status(host, subject.id, &arena) : 0;
    if (status) settle_closed(host, &subject, status, &arena);
    arena_release(&arena);
    pthread_mutex_lock(&host->mutex);
    return true;
}

// Workflows that are open although their run has ended: the engine died between the two. Each gets a task, and is closed by it.
static void close_left(struct temporal_host *host, struct str id, const struct run_head *head)
{
    struct str tenant, name;
    if (!temporal_workflow_parse(id, &tenant, &name)) return;
    pthread_mutex_lock(&host->mutex);
    struct hosted *run = hosted_get(host, tenant, name);
    if (run) {
        run->is_started = true;
        run->has_ended = true;
        run->outcome = head->summary.status;
        run->shard = head->shard;
        run->is_placed = true;
        hosted_settle(host, run);
    }
    pthread_mutex_unlock(&host->mutex);
}

// A piece of a value whose run has ended. One that cannot be deleted ends by itself.
static void delete_left(struct temporal_host *host, struct str id, struct arena *arena)
{
    struct temporal_execution execution = {.workflow_id = id};
    struct temporal_describe request = {.namespace = temporal_settings_of(host->client)->namespace, .execution = &execution};
    struct temporal_call call = {.method = TEMPORAL_METHOD("DeleteWorkflowExecution"),
                                 .in = &temporal_describe,
                                 .request = &request,
                                 .retry = GRPC_ONCE};
    struct error err = {0};
    (void)!temporal_ask(host->client, &call, arena, NULL, &err);
}

static bool serves(struct temporal_host *host, uint32_t shard)
{
    LOCKED(&host->mutex);
    return host_serves(host, shard);
}

// Whether a workflow that waits in this queue is of a host with this base.
static bool is_mine(struct temporal_host *host, struct str queue)
{
    for (size_t i = 0; i <= SHARD_COUNT; i++)
        if (str_eq(queue, host->queues[i])) return true;
    return str_eq(queue, host->value_queue);
}

// Those of this host that are open and whose run has ended. Where several share the store, each looks after its own shards.
static void sweep(struct temporal_host *host, struct str query, bool of_values)
{
    struct arena arena SCOPED(arena_release) = arena_of(65536, (size_t)32 << 20);
    struct temporal_executions page = {0};
    struct error err = {0};
    struct temporal_list_executions request = {
        .namespace = temporal_settings_of(host->client)->namespace, .page_size = PAGE, .query = query};
    do {
        struct temporal_call call = {.method = TEMPORAL_METHOD("ListWorkflowExecutions"),
                                     .in = &temporal_list_executions,
                                     .request = &request,
                                     .out = &temporal_executions,
                                     .answer = &page,
                                     .retry = GRPC_SAFE};
        if (temporal_ask(host->client, &call, &arena, NULL, &err)) break;
        for (size_t i = 0; i < page.executions_count && !atomic_load(&host->is_shut); i++) {
            const struct temporal_execution_info *info = &page.executions[i];
            struct run_head head;
            struct str tenant, name, of;
            if (!info->execution || !is_mine(host, info->task_queue)) continue;
            of = info->execution->workflow_id;
            if (of_values && !temporal_value_parse(info->execution->workflow_id, &of)) continue;
            if (!temporal_workflow_parse(of, &tenant, &name)) continue;
            if (host_look_up(host, tenant, name, &arena, &head, &err) || !run_status_terminal(head.summary.status)) continue;
            if (!serves(host, head.shard)) continue;
            if (of_values)
                delete_left(host, info->execution->workflow_id, &arena);
            else
                close_left(host, of, &head);
        }
        request.next_page_token = page.next_page_token;
    } while (request.next_page_token.len > 0 && !atomic_load(&host->is_shut));
}

void host_sweep_values(struct temporal_host *host)
{
    sweep(host, STR("WorkflowType = '" TEMPORAL_VALUE "' AND ExecutionStatus = 'Running'"), true);
}

// Starts and wakes that did not get through are tried again.
static void nudge(struct temporal_host *host)
{
    for (size_t i = 0; i < HOST_TABLE; i++)
        for (struct hosted *run = host->table[i], *next; run; run = next) {
            next = run->next;
            if (!run->is_dirty) hosted_settle(host, run);
        }
}

void *host_keep(void *context)
{
    struct temporal_host *host = context;
    pthread_setname_np(pthread_self(), "cairn-temporal");
    pthread_mutex_lock(&host->mutex);
    while (!atomic_load(&host->is_shut)) {
        int64_t now = os_now().mono_ms;
        if (now >= host->sweep_at) {
            host->sweep_at = now + SWEEP_MS;
            pthread_mutex_unlock(&host->mutex);
            sweep(host, STR("WorkflowType = '" TEMPORAL_WORKFLOW "' AND ExecutionStatus = 'Running'"), false);
            host_sweep_values(host);
            pthread_mutex_lock(&host->mutex);
        }
        while (!atomic_load(&host->is_shut) && look_at_one(host, now)) continue;
        nudge(host);
        posts_look(host);
        if (!atomic_load(&host->is_shut)) os_wait_until(&host->changed, &host->mutex, now + KEEP_MS);
    }
    pthread_mutex_unlock(&host->mutex);
    return NULL;
}
