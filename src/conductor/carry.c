// Attempts on their way through Conductor: started, brought by polls, looked up when no poll brings them, reported when they are over.
#include "conductor/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 4 << 20, EARLY_MS = 100 };

// ---- starting
static bool start_body(const struct conductor *host, const struct order *order, struct buf *body, struct arena *arena)
{
    struct json input = {0};
    struct error ignored = {0};
    if (order->external && json_parse(order->input, &json_limits_result, arena, &input, &ignored))
        input = json_string(order->input);
    struct json domain = json_object();
    json_set(arena, &domain, order->external ? STR(CONDUCTOR_REPORT) : STR(CONDUCTOR_ATTEMPT), json_name(host->id));
    struct json given = JSON_OF(
        arena, {"key", json_string(order->key)}, {"tenant", json_string(order->tenant)},
        {"run", json_string(order->run)}, {"step", json_string(order->step)}, {"kind", json_string(order->kind)},
        {"logical", json_int(order->logical)}, {"engine", json_int(order->engine)},
        {"idempotencyKey",
         json_string(arena_format(arena, "%.*s:%.*s:%u", STR_ARG(order->run), STR_ARG(order->step), order->logical))},
        {"host", json_name(host->id)}, {"site", json_string(host->options.site)}, {"taskType", json_some(order->type)},
        {"input", input});
    struct json value = JSON_OF(
        arena, {"name", json_name(order->external ? CONDUCTOR_EXTERNAL : CONDUCTOR_ATTEMPT)}, {"version", json_int(1)},
        {"correlationId", json_string(arena_format(arena, "%.*s/%.*s", STR_ARG(order->tenant), STR_ARG(order->run)))},
        {"input", given}, {"taskToDomain", domain});
    json_write(body, &value);
    return buf_ok(body);
}

static void fail_order(struct conductor *host, struct order *order, int status, struct str why)
{
    static const struct fault refused = {.code = STR_INIT("CONDUCTOR_REFUSED"),
                                         .message = STR_INIT("Conductor refuses to carry the attempt"),
                                         .category = STR_INIT("infrastructure"),
                                         .retryable = true};
    host_say(host, true, "Conductor refuses %.*s: status %d %.*s", STR_ARG(order->key), status,
             (int)(why.len < 200 ? why.len : 200), why.ptr ? why.ptr : "");
    struct tool_result result = {.fault = refused};
    worker_end(host->worker, order->ticket, &result);
}

static void order_started(struct conductor *host, struct order *order, struct str id, int64_t look_ms)
{
    pthread_mutex_lock(&host->mutex);
    bool begin = host->options.mirror && !order->external && order->state == ORDER_NEW;
    if (!order->workflow[0]) id_copy(order->workflow, id);
    order->started_ms = os_now().mono_ms;
    order->look_ms = order->started_ms + look_ms;
    order->failing_ms = 0;
    if (order->state == ORDER_NEW) order_is(host, order, begin ? ORDER_BEGUN : ORDER_STARTED);
    uint64_t ticket = order->ticket;
    pthread_mutex_unlock(&host->mutex);
    if (begin) worker_begin(host->worker, ticket);
}

// A second workflow of an attempt that we execute runs nothing. Users' workers have no table of attempts: when nobody knows whether
// theirs has begun, it is looked for, and when it is not there, the next engine attempt is what may run.
static enum code find_external(struct line *line, struct order *order, struct error *err)
{
    struct conductor *host = line->host;
    struct reply reply;
    struct arena arena SCOPED(arena_release);
    struct buf body SCOPED(buf_release) = buf_of(4096);
    arena_init(&arena, 1024, 1 << 16);
    struct str name = arena_format(&arena, "%.*s/%.*s", STR_ARG(order->tenant), STR_ARG(order->run));
    buf_byte(&body, '[');
    json_write_string(&body, name);
    buf_byte(&body, ']');
    if (!name.ptr || !buf_ok(&body)) return error_nomem(err);
    enum code rc = line_call(line, "POST", STR("/workflow/" CONDUCTOR_EXTERNAL "/correlated?includeClosed=true&includeTasks=false"),
                             buf_str(&body), &reply, err);
    if (rc) return rc;
    const struct json *list = json_get(&reply.body, name);
    if (reply.status != 200) return error_set(err, E_IO, "it answers %d when workflows are looked for", reply.status);
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->count; i++) {
        const struct json *input = json_key(&list->items[i], "input");
        if (!str_eq(json_text(json_key(input, "key")), order->key) || !str_is(json_text(json_key(input, "host")), host->id)) continue;
        order_started(host, order, json_text(json_key(&list->items[i], "workflowId")), 0);
        return OK;
    }
    host_say(host, true, "nobody knows whether %.*s was started in Conductor: it is given back", STR_ARG(order->key));
    worker_lose(host->worker, order->ticket);
    return OK;
}

static bool is_id(struct str text)
{
    char id[ID_SIZE];
    id_copy(id, text);
    return id[0];
}

static enum code send_start(struct line *line, struct order *order, struct str body, struct error *err)
{
    struct conductor *host = line->host;
    struct reply reply;
    enum code rc = line_call(line, "POST", STR("/workflow"), body, &reply, err);
    if (!rc && reply.status >= 500) rc = error_set(err, E_IO, "it answers %d to a start", reply.status); // why: not the attempt's fault
    pthread_mutex_lock(&host->mutex);
    if (rc != E_IO || fetch_link_sent(line->link)) order->asked = true; // Conductor may know it from now on
    if (!rc && reply.status == 404) host->defined = false;              // its database is another one
    pthread_mutex_unlock(&host->mutex);
    if (!rc && reply.status == 404) rc = error_set(err, E_IO, "it has no such workflow");
    if (rc) return rc;
    if (reply.status == 200 && is_id(reply.text))
        order_started(host, order, reply.text, LOOK_MS);
    else
        fail_order(host, order, reply.status, json_text(json_key(&reply.body, "message")));
    return OK;
}

// The order is busy: nobody frees it meanwhile.
static enum code start_order(struct line *line, struct order *order, struct error *err)
{
    struct conductor *host = line->host;
    pthread_mutex_lock(&host->mutex);
    bool defined = host->defined, asked = order->asked;
    pthread_mutex_unlock(&host->mutex);
    if (!defined) return error_set(err, E_IO, "its definitions are not there yet"); // the sweep makes them
    struct buf body SCOPED(buf_release) = buf_of(BODY_MAX);
    struct arena arena SCOPED(arena_release);
    arena_init(&arena, 4096, 2 * BODY_MAX);
    enum code rc = OK;
    if (asked && order->external)
        rc = find_external(line, order, err);
    else if (start_body(host, order, &body, &arena))
        rc = send_start(line, order, buf_str(&body), err);
    else
        fail_order(host, order, 0, STR("its input is too large for Conductor"));
    LOCKED(&host->mutex);
    if (rc && !order->failing_ms) order->failing_ms = os_now().mono_ms;
    return rc;
}

// ---- delivered
// What a worker of the user's made of it.
struct reported {
    struct tool_result result;
    struct buf text, why;
};

static void reported_free(void *memory)
{
    struct reported *reported = memory;
    buf_release(&reported->text);
    buf_release(&reported->why);
    free(reported);
}

// Payloads above a limit go to a place of their own, of which no client reads: then the workflow alone says how it ended.
static void report_result(struct conductor *host, uint64_t ticket, const struct json *workflow, const struct json *task)
{
    const struct json *input = json_key(task, "inputData"), *output = json_key(input, "output");
    const struct json *executed = workflow ? workflow_task(workflow, "execute") : NULL;
    bool elsewhere = json_text(json_key(task, "externalInputPayloadStoragePath")).len > 0;
    struct reported *reported = calloc(1, sizeof(*reported));
    if (!reported) {
        worker_lose(host->worker, ticket);
        return;
    }
    buf_init(&reported->text, (size_t)32 << 20);
    buf_init(&reported->why, 4096);
    struct tool_result *result = &reported->result;
    struct str status = json_text(json_key(input, "status")), why = json_text(json_key(input, "why"));
    if (elsewhere) {
        status = json_text(json_key(executed, "status"));
        why = json_text(json_key(executed, "reasonForIncompletion"));
    }
    *result = (struct tool_result){.memory = reported, .release = reported_free};
    bool completed = str_is(status, "COMPLETED");
    if (completed && output) json_write(&reported->text, output);
    if (completed && (elsewhere || !buf_ok(&reported->text))) {
        result->fault = (struct fault){.code = STR("PAYLOAD_TOO_LARGE"),
                                       .message = STR("the worker of Conductor gave more than Conductor hands on (3 MiB): let it give a "
                                                      "reference"),
                                       .category = STR("validation")};
    } else if (completed) {
        result->ok = result->is_json = true;
        result->output = buf_str(&reported->text);
    } else {
        buf_add(&reported->why, why.len ? why : STR("the worker of Conductor has failed"));
        bool timed_out = str_is(status, "TIMED_OUT");
        result->fault = (struct fault){.code = timed_out ? STR("TIMEOUT") : STR("CONDUCTOR_TASK_FAILED"),
                                       .message = buf_str(&reported->why),
                                       .category = timed_out ? STR("timeout") : STR("business"),
                                       .retryable = true};
    }
    struct tool_result given = *result;
    worker_end(host->worker, ticket, &given);
}

void order_delivered(struct conductor *host, struct order *order, const struct json *workflow, const struct json *task)
{
    struct str id = json_text(json_key(task, "workflowInstanceId"));
    if (is_id(id)) id_copy(order->workflow, id);
    id_copy(order->task, json_text(json_key(task, "taskId")));
    order->missing = 0;
    if (!order->started_ms) order->started_ms = os_now().mono_ms;
    order_is(host, order, ORDER_BEGUN);
    uint64_t ticket = order->ticket;
    bool external = order->external;
    pthread_mutex_unlock(&host->mutex);
    if (external)
        report_result(host, ticket, workflow, task);
    else
        worker_begin(host->worker, ticket); // false: it is over meanwhile, and Conductor hears so
}

void deliver(struct line *line, const struct json *task)
{
    struct conductor *host = line->host;
    char id[ID_SIZE];
    struct json workflow = {0};
    struct error err = {0};
    struct str key = json_text(json_key(json_key(task, "inputData"), "key"));
    id_copy(id, json_text(json_key(task, "workflowInstanceId")));
    if (!key.len) { // its input is elsewhere
        if (!id[0] || workflow_get(line, id, &workflow, &err)) return; // it is looked up later
        key = json_text(json_key(json_key(&workflow, "input"), "key"));
    }
    pthread_mutex_lock(&host->mutex);
    struct order *order = order_find(host, key);
    bool wanted = order && (order->state == ORDER_NEW || order->state == ORDER_STARTED);
    if (wanted) {
        order_delivered(host, order, &workflow, task);
        return;
    }
    bool same = order && str_is(json_text(json_key(task, "taskId")), order->task);
    pthread_mutex_unlock(&host->mutex);
    if (same) return; // delivered twice
    if (id[0] && (json_is(&workflow, JSON_OBJECT) || workflow_get(line, id, &workflow, &err) == OK)) stranger_task(line, &workflow);
}

// ---- looking up
// A poll whose answer nobody read takes a task all the same, for ever: it is begun as if it had been brought.
static enum code look_order(struct line *line, struct order *order, struct error *err)
{
    struct conductor *host = line->host;
    struct json workflow;
    char id[ID_SIZE];
    pthread_mutex_lock(&host->mutex);
    memcpy(id, order->workflow, sizeof(id));
    pthread_mutex_unlock(&host->mutex);
    enum code rc = workflow_get(line, id, &workflow, err);
    if (rc && rc != E_NOT_FOUND) return rc == E_INVALID ? OK : rc;
    const struct json *task = rc ? NULL : workflow_task(&workflow, order->external ? "report" : "attempt");
    struct str status = !rc ? json_text(json_key(&workflow, "status")) : (struct str){0};
    struct str how = json_text(json_key(task, "status")),
               why = !rc ? json_text(json_key(&workflow, "reasonForIncompletion")) : (struct str){0};
    bool lives = str_is(status, "RUNNING") || str_is(status, "PAUSED");
    bool ours = str_starts(why, STR(OURS));
    pthread_mutex_lock(&host->mutex);
    bool waits = order->state == ORDER_STARTED;
    bool same = strcmp(order->workflow, id) == 0 && !order->gone;
    if (same && waits && lives && task && !str_is(how, "SCHEDULED")) {
        order_delivered(host, order, &workflow, task);
        return OK;
    }
    bool lost = same && !lives && !rc && !ours && order->state <= ORDER_BEGUN; // a person's doing
    lost = lost || (same && !lives && order->external && waits); // wiped: a worker of the user's may be at it all the same
    bool anew = same && !lives && !lost && waits; // wiped, or ended by a host that took ours for dead
    if (lost) host_say(host, false, "%.*s has gone from Conductor: it is given back", STR_ARG(order->key));
    if (same && !lives && order->state == ORDER_BEGUN) order->task[0] = order->workflow[0] = '\0'; // nobody to tell
    if (anew) {
        order->workflow[0] = order->task[0] = '\0';
        order_is(host, order, ORDER_NEW);
        order->again = true;
    }
    order->missing = 0;
    int64_t next = (int64_t)LOOK_MS << (order->looks < 5 ? order->looks : 5);
    order->looks++;
    order->look_ms = os_now().mono_ms + (next < LOOK_MAX_MS ? next : LOOK_MAX_MS);
    uint64_t ticket = order->ticket;
    pthread_mutex_unlock(&host->mutex);
    if (lost) worker_lose(host->worker, ticket);
    return OK;
}

// ---- reporting the outcome
static struct json outcome_output(const struct order *order, struct arena *arena)
{
    struct buf hex SCOPED(buf_release) = buf_of(128);
    buf_hex(&hex, order->output_hash.b, sizeof(order->output_hash.b));
    bool ok = order->ending == ENDING_OK;
    return JSON_OF(arena, {"run", json_string(order->run)}, {"step", json_string(order->step)},
                   {"logical", json_int(order->logical)}, {"engine", json_int(order->engine)},
                   {"durationMs", json_int(order->duration_ms)},
                   {"outputBytes", ok ? json_int((int64_t)order->output_size) : json_none()},
                   {"outputSha256", ok ? json_string(arena_copy(arena, buf_str(&hex))) : json_none()},
                   {"output", json_some((struct str){order->output, order->output_len})});
}

// The outcome as Conductor knows it; NULL: the workflow is ended instead.
static const char *status_told(const struct order *order)
{
    return order->ending == ENDING_OK       ? "COMPLETED"
           : order->ending == ENDING_FAILED ? "FAILED_WITH_TERMINAL_ERROR"
                                            : NULL;
}

static enum code tell_by_reference(struct line *line, const struct order *order, const char *status, struct error *err)
{
    struct reply reply;
    struct arena arena SCOPED(arena_release);
    arena_init(&arena, 4096, 1 << 20);
    struct buf body SCOPED(buf_release) = buf_of(1 << 20);
    struct json output = outcome_output(order, &arena);
    json_write(&body, &output);
    if (!buf_ok(&body)) return error_nomem(err);
    return line_ask(line, &reply, err, "POST", buf_str(&body), "/tasks/%s/%s/%s?workerid=%s", order->workflow,
                    order->external ? "report" : "attempt", status, line->host->id);
}

static enum code tell(struct line *line, const struct order *order, struct error *err)
{
    static const char *const why[] = {[ENDING_OK] = "done",
                                      [ENDING_FAILED] = "failed",
                                      [ENDING_CANCELLED] = "cancelled in Cairn",
                                      [ENDING_LOST] = "given back; it runs again as the next engine attempt",
                                      [ENDING_STALE] = "the attempt was over: another one has taken its place"};
    const char *status = status_told(order);
    if (!order->workflow[0]) return OK;
    if (!status) {
        char reason[160];
        snprintf(reason, sizeof(reason), OURS "%s", why[order->ending]);
        return workflow_end(line, order->workflow, reason, err);
    }
    if (!order->task[0]) return tell_by_reference(line, order, status, err);
    struct arena arena SCOPED(arena_release);
    arena_init(&arena, 4096, 1 << 20);
    struct update update = {.workflow = order->workflow,
                            .task = order->task,
                            .status = status,
                            .reason = str_from(order->reason ? order->reason : ""),
                            .output = outcome_output(order, &arena)};
    enum code rc = task_update(line, &update, err);
    return rc == E_NOT_FOUND || rc == E_INVALID ? OK : rc; // it has forgotten the task; the sweep sees what is left
}

static enum code tell_order(struct line *line, struct order *order, struct error *err)
{
    struct conductor *host = line->host;
    enum code rc = tell(line, order, err);
    if (rc) return rc;
    LOCKED(&host->mutex);
    order->told_ms = os_now().mono_ms;
    order->tells++;
    if (order->workflow[0])
        order_is(host, order, ORDER_TOLD); // until Conductor does not list it any more
    else
        order_drop(host, order);
    return OK;
}

// ---- threads
static enum code do_job(struct line *line, struct order *order, struct error *err)
{
    pthread_mutex_lock(&line->host->mutex);
    enum order_state state = order->state;
    bool look = order->look;
    order->look = false;
    pthread_mutex_unlock(&line->host->mutex);
    if (state == ORDER_NEW) return start_order(line, order, err);
    if (state == ORDER_OVER) return tell_order(line, order, err);
    return look ? look_order(line, order, err) : OK;
}

void *carry_main(void *context)
{
    struct conductor *host = context;
    struct line line SCOPED(line_close) = {0};
    struct error err = {0};
    if (line_open(host, &line, &err)) host_say(host, true, "%s", err.message);
    for (struct order *order; line.cairn && (order = job_take(host));) {
        enum code rc = do_job(&line, order, &err);
        pthread_mutex_lock(&host->mutex);
        order->again = order->again || (rc != OK && order->state != ORDER_TOLD && order->state != ORDER_STARTED);
        order->again = order->again || (order->state == ORDER_OVER && !order->gone);
        job_done(host, order);
        pthread_mutex_unlock(&host->mutex);
        if (rc == E_INVALID) host_say(host, true, "%s", err.message);
        if (rc) line_pause(&line);
    }
    return NULL;
}

// ---- polls
// How many tasks came. A poll for several waits until there are as many: so one waits for the first, and the rest is taken without waiting.
static enum code poll_once(struct line *line, const char *type, int count, int wait_ms, size_t *got, struct error *err)
{
    struct reply reply;
    *got = 0;
    enum code rc = line_ask(line, &reply, err, "GET", (struct str){0},
                            "/tasks/poll/batch/%s?count=%d&timeout=%d&workerid=%s&domain=%s", type, count, wait_ms,
                            line->host->id, line->host->id);
    if (rc) return rc;
    if (reply.status != 200 || !json_is(&reply.body, JSON_ARRAY))
        return error_set(err, E_IO, "it answers %d to a poll", reply.status);
    struct arena arena SCOPED(arena_release); // a delivery may make calls of its own
    arena_init(&arena, 65536, (size_t)64 << 20);
    struct json tasks;
    if (!json_copy(&arena, &reply.body, &tasks)) return error_nomem(err);
    *got = tasks.count;
    for (uint32_t i = 0; i < tasks.count; i++) deliver(line, &tasks.items[i]);
    return OK;
}

static bool expects(struct conductor *host) // waits for something to poll for, or for the time of a sign of life
{
    int64_t until = os_now().mono_ms + IDLE_POLL_MS;
    LOCKED(&host->mutex);
    while (!host->stopping && host->expected == 0 && os_now().mono_ms < until)
        os_wait_until(&host->expects, &host->mutex, until);
    return host->expected > 0;
}

void *poll_main(void *context)
{
    const struct poller *poller = context;
    struct conductor *host = poller->host;
    struct line line SCOPED(line_close) = {0};
    struct error err = {0};
    if (line_open(host, &line, &err)) host_say(host, true, "%s", err.message);
    while (line.cairn && !host_stops(host)) {
        size_t got = 0;
        bool wait = expects(host);
        int64_t asked_ms = os_now().mono_ms;
        enum code rc = poll_once(&line, poller->type, 1, wait ? POLL_MS : 0, &got, &err);
        bool early = !rc && got == 0 && os_now().mono_ms - asked_ms < EARLY_MS; // who does not wait is not asked all the time
        while (!rc && got > 0 && !host_stops(host)) rc = poll_once(&line, poller->type, DRAIN_COUNT, 0, &got, &err);
        if (early && wait) host_rests(host, EARLY_MS);
        if (rc) line_pause(&line);
    }
    return NULL;
}
