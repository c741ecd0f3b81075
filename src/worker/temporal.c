// Tasks of a Temporal server instead of one of Cairn: activities that a host (temporal/host.h) has scheduled, or that ask for a function
// of a plugin by its name. No store and no Cairn is needed here. Each channel polls for one activity at a time.
#include "worker/inside.h"

#include "temporal/parcel.h"

#include <stdio.h>
#include <string.h>

enum {
    CANCEL_GRACE_MS = 10000,
    FUNCTION_LEASE_MS = 86400000, // of an activity without a heartbeat timeout
    BEAT_MOST_MS = 10000,         // so often at least: a cancellation comes with the answer
    BEAT_CALL_MS = 5000,
    RESPOND_MS = 60000,
    IDLE_MS = 1000,
    LAST_MS = 2000
};

static struct str namespace_of(const struct worker *worker)
{
    return temporal_settings_of(worker->temporal)->namespace;
}

// ---- polls

static struct attempt *take_slot(struct channel *channel) // waits for one; NULL: no more tasks are wanted
{
    struct worker *worker = channel->worker;
    LOCKED(&worker->mutex);
    while (!channel->free && !worker->stopping && !worker->draining)
        channel_wait(channel, &channel->room, os_now().mono_ms + IDLE_MS);
    struct attempt *attempt = worker->stopping || worker->draining ? NULL : channel->free;
    if (attempt) channel->free = attempt->next;
    return attempt;
}

static void give_slot_back(struct channel *channel, struct attempt *attempt)
{
    LOCKED(&channel->worker->mutex);
    attempt->next = channel->free;
    channel->free = attempt;
}

// A function by its own name: what it is called with is the whole input.
static enum code read_plain(const struct temporal_activity_task *from, struct str input, struct remote_task *out,
                            struct error *err)
{
    struct tool_request *request = &out->request;
    struct str none = {"", 0};
    *out = (struct remote_task){.lease_ms = FUNCTION_LEASE_MS};
    *request = (struct tool_request){.form = EXECUTOR_FUNCTION,
                                     .kind = from->type->name,
                                     .function = from->type->name,
                                     .input = input,
                                     .tenant = none,
                                     .project = none,
                                     .environment = none,
                                     .logical = 1,
                                     .engine = 1,
                                     .timeout_ms = temporal_duration_ms(from->start_to_close)};
    if (!from->execution || !temporal_workflow_parse(from->execution->workflow_id, &request->tenant, &request->run) ||
        !temporal_activity_parse(from->activity_id, &request->step, &request->logical, &request->engine)) {
        request->run = from->execution ? from->execution->workflow_id : none; // of another program's workflow
        request->step = from->activity_id;
    }
    return request->run.len > 0 && request->step.len > 0 ? OK : error_set(err, E_INVALID, "an activity without an id");
}

// The task that an activity is; `attempt` learns what came with it, in `arena`.
static enum code read_activity(const struct worker *worker, const struct temporal_activity_task *from, struct arena *arena,
                               struct attempt *attempt, struct remote_task *out, struct error *err)
{
    struct str input;
    struct json sent;
    if (!from->type || from->type->name.len == 0) return error_set(err, E_INVALID, "an activity without a type");
    attempt->plain = !str_starts(from->type->name, STR(TEMPORAL_STEP_PREFIX));
    attempt->workflow = from->execution ? from->execution->workflow_id : (struct str){"", 0};
    attempt->files = (struct str){0};
    if (!temporal_json_read(from->input, &input)) return error_set(err, E_INVALID, "the activity's input is not JSON");
    enum code rc = temporal_text_get(worker->temporal, attempt->workflow, input, arena, &input, err);
    if (!rc) rc = attempt->plain ? read_plain(from, input, out, err) : remote_task_read(input, arena, out, err);
    if (!rc && !attempt->plain) rc = json_parse(input, &json_limits_result, arena, &sent, err);
    if (rc) return rc;
    const struct json *files = attempt->plain ? NULL : json_key(&sent, "files");
    struct buf text = buf_of(TEMPORAL_LARGE_MAX);
    if (files) json_canon(&text, files);
    if (files) attempt->files = buf_keep(&text, arena);
    if (files && !attempt->files.ptr) return error_nomem(err);
    out->token = from->task_token;
    out->waited_ms = 0;
    int64_t heartbeat = temporal_duration_ms(from->heartbeat);
    if (heartbeat > 0) out->lease_ms = heartbeat;
    return OK;
}

enum code temporal_lay_out(struct worker *worker, struct attempt *attempt, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(65536, (size_t)TEMPORAL_LARGE_MAX * 2);
    struct json files;
    // What came with the poll goes with it.
    enum code rc = ARENA_KEEP(&attempt->arena, &attempt->workflow, &attempt->files) ? OK : error_nomem(err);
    if (!rc && attempt->files.len > 0 && attempt->has_dir) {
        rc = json_parse(attempt->files, &json_limits_result, &arena, &files, err);
        if (!rc) rc = parcel_unpack(worker->temporal, attempt->workflow, &files, attempt->dir.ptr, err);
    }
    return rc;
}

static void respond_failed(struct worker *worker, struct str token, struct str code, struct str message, struct str json,
                           int64_t budget_ms)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    struct error err = {0};
    struct temporal_json room;
    struct temporal_application_failure info = {.type = code, .non_retryable = 1};
    if (json.len > 0) info.details = temporal_json(&room, json);
    struct temporal_failure failure = {.message = message, .source = STR("cairn"), .application = &info};
    struct temporal_fail_activity request = {.task_token = token,
                                             .failure = &failure,
                                             .identity = temporal_identity(worker->temporal),
                                             .namespace = namespace_of(worker)};
    struct temporal_call call = {.method = TEMPORAL_METHOD("RespondActivityTaskFailed"),
                                 .in = &temporal_fail_activity,
                                 .request = &request,
                                 .timeout_ms = budget_ms < TEMPORAL_CALL_MS ? budget_ms : TEMPORAL_CALL_MS,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = budget_ms};
    enum code rc = temporal_ask(worker->temporal, &call, &arena, NULL, &err);
    if (rc && rc != E_NOT_FOUND && rc != E_CANCELLED) worker_say(worker, true, "a result was not taken: %s", err.message);
}

static void respond_lost(struct worker *worker, struct str token, uint64_t epoch, struct str why, int64_t budget_ms)
{
    struct tool_result lost = {.lost = true};
    struct buf json SCOPED(buf_release) = buf_of(4096);
    remote_result_write(&json, STR(""), epoch, &lost);
    respond_failed(worker, token, STR("LOST"), why, buf_str(&json), budget_ms);
}

static bool begin(struct channel *channel, struct attempt *attempt, const struct temporal_activity_task *from,
                  struct arena *arena)
{
    struct worker *worker = channel->worker;
    struct remote_task task;
    struct error err = {0};
    enum code rc = read_activity(worker, from, arena, attempt, &task, &err);
    if (rc) {
        bool lost = rc != E_INVALID; // what belongs to it could not be had
        worker_say(worker, true, "an activity is %s: %s", lost ? "given back" : "refused", err.message);
        if (lost)
            respond_lost(worker, from->task_token, 0, str_from(err.message), RESPOND_MS);
        else
            respond_failed(worker, from->task_token, STR("TASK_INVALID"), str_from(err.message), (struct str){0}, RESPOND_MS);
        return false;
    }
    pthread_mutex_lock(&worker->mutex);
    channel->busy++;
    attempt->beat_ms = os_now().mono_ms;
    pthread_mutex_unlock(&worker->mutex);
    if (!worker->options.quiet)
        worker_say(worker, false, "%.*s/%.*s attempt %u.%u", STR_ARG(task.request.run), STR_ARG(task.request.step),
                   task.request.logical, task.request.engine);
    attempt_start(worker, attempt, &task, os_boot_ms());
    return true;
}

void *temporal_poll_main(void *context)
{
    struct channel *channel = context;
    struct worker *worker = channel->worker;
    struct temporal_queue queue = {.name = worker->temporal_queue, .kind = TEMPORAL_QUEUE_NORMAL};
    struct temporal_poll request = {.namespace = namespace_of(worker),
                                    .task_queue = &queue,
                                    .identity = temporal_identity(worker->temporal)};
    for (struct attempt *attempt; (attempt = take_slot(channel));) {
        struct arena arena SCOPED(arena_release) = arena_of(16384, (size_t)64 << 20);
        struct temporal_activity_task task = {.attempt = 0};
        struct error err = {0};
        struct temporal_call call = {.method = TEMPORAL_METHOD("PollActivityTaskQueue"),
                                     .in = &temporal_poll,
                                     .request = &request,
                                     .out = &temporal_activity_task,
                                     .answer = &task,
                                     .timeout_ms = TEMPORAL_POLL_MS,
                                     .retry = GRPC_POLL};
        int status;
        enum code rc = temporal_ask(worker->temporal, &call, &arena, &status, &err);
        bool begun = !rc && task.task_token.len > 0 && begin(channel, attempt, &task, &arena);
        if (!begun) give_slot_back(channel, attempt);
        // A refusal stays one. An answer that cannot be read is one answer: the activity comes again when its time is over.
        bool refused = rc == E_DENIED || rc == E_NOT_FOUND || rc == E_INVALID;
        if (refused && status != GRPC_OK) worker_give_up(worker, rc, err.message);
        if (refused && status == GRPC_OK) worker_say(worker, true, "a task is passed over: %s", err.message);
        if (rc) { // ending, or refused for good
            LOCKED(&worker->mutex);
            if (!worker->stopping) channel_wait(channel, &channel->room, os_now().mono_ms + IDLE_MS);
        }
    }
    return NULL;
}

// ---- heartbeats

static int64_t beat_every(const struct attempt *attempt)
{
    int64_t asked = attempt->channel->worker->options.beat_ms;
    if (asked > 0) return asked;
    int64_t third = attempt->lease_ms / 3;
    return third < BEAT_MOST_MS ? third : BEAT_MOST_MS;
}

// Before its thread looks again by itself.
bool temporal_beats_soon(const struct attempt *attempt)
{
    return beat_every(attempt) < IDLE_MS;
}

static struct attempt *beat_due(struct channel *channel, int64_t now, int64_t *next)
{
    *next = now + IDLE_MS;
    for (uint32_t i = 0; i < channel->slots; i++) {
        struct attempt *attempt = &channel->attempts[i];
        if (attempt->state == ATTEMPT_NONE || attempt->dropped) continue; // done: its result may take a while
        int64_t due = attempt->beat_ms + beat_every(attempt);
        if (due <= now) return attempt;
        if (due < *next) *next = due;
    }
    return NULL;
}

// With the lock.
static void stop(struct attempt *attempt, uint64_t ticket, bool dropped)
{
    struct tools *tools = attempt->tools;
    struct worker *worker = attempt->channel->worker;
    bool again = attempt->stopping && !dropped;
    attempt->stopping = true;
    attempt->dropped = attempt->dropped || dropped;
    pthread_mutex_unlock(&worker->mutex);
    if (!again) tools->ops->cancel(tools, ticket, dropped ? 0 : CANCEL_GRACE_MS);
    pthread_mutex_lock(&worker->mutex);
}

// With the lock, which is open meanwhile.
static void beat(struct channel *channel, struct attempt *attempt)
{
    struct worker *worker = channel->worker;
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    uint64_t ticket = attempt_ticket(worker, attempt);
    struct str token = arena_copy(&arena, attempt->token);
    int64_t sent = os_boot_ms();
    attempt->beat_ms = os_now().mono_ms;
    pthread_mutex_unlock(&worker->mutex);
    struct temporal_heartbeat request = {.task_token = token,
                                         .identity = temporal_identity(worker->temporal),
                                         .namespace = namespace_of(worker)};
    struct temporal_heartbeat_answer answer = {0};
    struct error err = {0};
    struct temporal_call call = {.method = TEMPORAL_METHOD("RecordActivityTaskHeartbeat"),
                                 .in = &temporal_heartbeat,
                                 .request = &request,
                                 .out = &temporal_heartbeat_answer,
                                 .answer = &answer,
                                 .timeout_ms = BEAT_CALL_MS,
                                 .retry = GRPC_ONCE};
    enum code rc = token.ptr ? temporal_ask(worker->temporal, &call, &arena, NULL, &err) : E_NOMEM;
    pthread_mutex_lock(&worker->mutex);
    if (attempt->state == ATTEMPT_NONE || attempt_ticket(worker, attempt) != ticket) return;
    if (rc == OK) attempt->lease_until = sent + attempt->lease_ms;
    if (attempt->state == ATTEMPT_DONE) return;
    bool gone = rc == E_NOT_FOUND || os_boot_ms() >= attempt->lease_until; // its server has given it up, or must have by now
    if (gone) worker_say(worker, true, "an attempt is over for the server: it is stopped, and its result dropped");
    if (gone || answer.cancel_requested || answer.activity_reset || answer.activity_paused)
        stop(attempt, ticket, gone || (!answer.cancel_requested && (answer.activity_reset || answer.activity_paused)));
}

// People hear of a server that is away once, and once when it is back.
static void note_away(struct worker *worker) // with the lock, which is open meanwhile
{
    struct error why = {0};
    bool away = temporal_is_away(worker->temporal, &why), changed = away != worker->away[0] && !worker->draining;
    worker->away[0] = away;
    if (!changed) return;
    struct str address = temporal_settings_of(worker->temporal)->address;
    pthread_mutex_unlock(&worker->mutex);
    if (away)
        worker_say(worker, true, "waiting for Temporal at %.*s: %s", STR_ARG(address), why.message);
    else
        worker_say(worker, false, "Temporal at %.*s answers", STR_ARG(address));
    pthread_mutex_lock(&worker->mutex);
}

void *temporal_beat_main(void *context)
{
    struct channel *channel = context;
    struct worker *worker = channel->worker;
    LOCKED(&worker->mutex);
    while (!worker->stopping) {
        int64_t next;
        if (channel == worker->channels) note_away(worker);
        struct attempt *attempt = beat_due(channel, os_now().mono_ms, &next);
        if (attempt)
            beat(channel, attempt);
        else
            channel_wait(channel, &channel->changed, next);
    }
    return NULL;
}

// ---- results

static enum code respond(struct worker *worker, const char *method, const struct proto_message *in, const void *request,
                         int64_t budget_ms, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    struct temporal_call call = {.method = method, .in = in, .request = request, .retry = GRPC_SAFE, .budget_ms = budget_ms};
    enum code rc = temporal_ask(worker->temporal, &call, &arena, NULL, err);
    return rc == E_NOT_FOUND ? OK : rc; // it was taken, and the answer lost; or nobody wants it any more
}

static enum code send_good(struct worker *worker, const struct attempt *attempt, struct str json, struct error *err)
{
    struct temporal_json room;
    struct temporal_complete_activity request = {.task_token = attempt->token,
                                                 .result = temporal_json(&room, json),
                                                 .identity = temporal_identity(worker->temporal),
                                                 .namespace = namespace_of(worker)};
    return respond(worker, TEMPORAL_METHOD("RespondActivityTaskCompleted"), &temporal_complete_activity, &request, RESPOND_MS, err);
}

static enum code send_cancelled(struct worker *worker, const struct attempt *attempt, struct str json, struct error *err)
{
    struct temporal_json room;
    struct temporal_heartbeat request = {.task_token = attempt->token,
                                         .details = temporal_json(&room, json),
                                         .identity = temporal_identity(worker->temporal),
                                         .namespace = namespace_of(worker)};
    return respond(worker, TEMPORAL_METHOD("RespondActivityTaskCanceled"), &temporal_heartbeat, &request, RESPOND_MS, err);
}

// The result as workers write it, and with it what the step wrote and the files that it has left, new or changed.
static enum code write_result(struct worker *worker, const struct attempt *attempt, struct buf *json, struct arena *arena,
                              struct error *err)
{
    struct json files;
    size_t count = 0;
    bool known = attempt->files.len > 0;
    remote_result_write(json, STR(""), attempt->epoch, &attempt->result);
    if (!buf_ok(json)) return error_set(err, E_LIMIT, "the result has more than %d bytes", TEMPORAL_LARGE_MAX);
    json->len--; // reopened
    if (attempt->log[0].len + attempt->log[1].len > 0) {
        buf_text(json, ",\"log\":");
        parcel_log_write(json, buf_str(&attempt->log[0]), buf_str(&attempt->log[1]));
    }
    enum code rc = known ? json_parse(attempt->files, &json_limits_result, arena, &files, err) : OK;
    if (!rc && attempt->has_dir && !attempt->result.lost) {
        size_t before = json->len;
        buf_text(json, ",\"files\":");
        rc = parcel_pack(worker->temporal, attempt->workflow, attempt->dir.ptr, known ? &files : NULL, json, &count, err);
        if (count == 0 && buf_ok(json)) json->len = before;
    }
    buf_byte(json, '}');
    return rc;
}

static enum code respond_with(struct worker *worker, const struct attempt *attempt, struct str json, struct error *err)
{
    const struct tool_result *result = &attempt->result;
    if (result->ok) return send_good(worker, attempt, json, err);
    if (attempt->stopping && str_is(result->fault.code, "CANCELLED")) return send_cancelled(worker, attempt, json, err);
    respond_failed(worker, attempt->token, result->lost ? STR("LOST") : result->fault.code,
                   result->lost ? STR("what came out is not known") : result->fault.message, json, RESPOND_MS);
    return OK;
}

// Without the lock: an attempt that is done is this thread's.
static void send_result(struct channel *channel, struct attempt *attempt)
{
    struct worker *worker = channel->worker;
    struct arena arena SCOPED(arena_release) = arena_of(65536, (size_t)TEMPORAL_LARGE_MAX * 2);
    struct buf json SCOPED(buf_release) = buf_of(TEMPORAL_LARGE_MAX);
    struct error err = {0};
    struct str sent = {0};
    enum code rc = OK;
    if (attempt->plain && attempt->result.ok)
        buf_add(&json, attempt->result.output.len > 0 ? attempt->result.output : STR("null"));
    else
        rc = write_result(worker, attempt, &json, &arena, &err);
    if (!rc && !buf_ok(&json)) rc = error_set(&err, E_LIMIT, "the result has more than %d bytes", TEMPORAL_LARGE_MAX);
    if (!rc) rc = temporal_text_put(worker->temporal, attempt->workflow, buf_str(&json), &arena, &sent, &err);
    if (rc == E_LIMIT)
        respond_failed(worker, attempt->token, STR("PAYLOAD_TOO_LARGE"), str_from(err.message), (struct str){0}, RESPOND_MS);
    else if (!rc)
        rc = respond_with(worker, attempt, sent, &err); // else: the server is away, and takes the attempt for lost
    if (rc && rc != E_CANCELLED) worker_say(worker, true, "a result was not taken: %s", err.message);
    LOCKED(&worker->mutex);
    worker->count += rc == OK;
}

static struct attempt *next_done(struct channel *channel)
{
    for (uint32_t i = 0; i < channel->slots; i++)
        if (channel->attempts[i].state == ATTEMPT_DONE) return &channel->attempts[i];
    return NULL;
}

void *temporal_send_main(void *context)
{
    struct channel *channel = context;
    struct worker *worker = channel->worker;
    pthread_mutex_lock(&worker->mutex);
    while (!worker->stopping) {
        struct attempt *attempt = next_done(channel);
        if (!attempt) {
            channel_wait(channel, &channel->results, os_now().mono_ms + IDLE_MS);
            continue;
        }
        pthread_mutex_unlock(&worker->mutex);
        if (!attempt->dropped) send_result(channel, attempt);
        attempts_free(channel, &attempt, 1);
        pthread_mutex_lock(&worker->mutex);
    }
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

// What is at hand when the worker ends: its host hears that it is lost, instead of waiting for a heartbeat.
void temporal_give_back(struct channel *channel)
{
    for (uint32_t i = 0; i < channel->slots; i++) {
        struct attempt *attempt = &channel->attempts[i];
        if (attempt->state == ATTEMPT_NONE || attempt->dropped) continue;
        respond_lost(channel->worker, attempt->token, attempt->epoch, STR("its worker is ending"), LAST_MS);
    }
}

enum code temporal_worker_open(struct worker *worker, struct error *err)
{
    const struct worker_options *options = &worker->options;
    enum code rc = temporal_open(options->temporal, &worker->temporal, err);
    if (rc) return rc;
    arena_init(&worker->arena, 1024, 1 << 16);
    worker->temporal_queue = temporal_activity_queue(temporal_settings_of(worker->temporal)->queue, options->pool, &worker->arena);
    return worker->temporal_queue.ptr ? OK : error_nomem(err);
}

enum code temporal_no_result(void *context, const struct tool_request *request, struct str ref, struct arena *arena,
                             struct str *out, struct error *err)
{
    (void)context;
    (void)arena;
    (void)out;
    return error_set(err, E_UNSUPPORTED, "step %.*s needs the stored result %.*s, which a worker of Temporal cannot have",
                     STR_ARG(request->step), STR_ARG(ref));
}
