// A workflow task: its history is read whole, what it says of attempts goes to the engine, what it says of people to the run's inbox. Then
// the task is in hand, and is answered when the engine has stored what came of it.
#include "temporal/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAIL_CAUSE = 14, FOREIGN_MS = 1000 };

struct activity { // as history has it
    struct str id;
    int64_t scheduled;
    bool is_cancelled, is_closed;
    const struct temporal_event *closed;
    bool is_read; // `result` is what came out
    struct tool_result result;
};

struct asked { // a signal, or a request to cancel
    int64_t event;
    enum signal_type type;
    struct str reason, bytes;
};

struct history {
    struct arena *arena;
    struct activity *activities;
    size_t activity_count, activity_capacity;
    struct asked *asked;
    size_t asked_count, asked_capacity;
    struct map by_id;
    struct str *timers; // that have not ended
    size_t timer_count, timer_capacity;
    int64_t last, bytes; // event that was read; of the server's count
    bool suggests;
    struct str original; // run of the workflow that these events were first written for: a reset copies them
};

static struct activity *activity_at(struct history *history, int64_t scheduled)
{
    size_t low = 0, high = history->activity_count; // they are in the order of their events
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (history->activities[middle].scheduled < scheduled)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < history->activity_count && history->activities[low].scheduled == scheduled;
    return found ? &history->activities[low] : NULL;
}

static void close_activity(struct history *history, int64_t scheduled, const struct temporal_event *event)
{
    struct activity *activity = activity_at(history, scheduled);
    if (!activity) return;
    activity->is_closed = true;
    activity->closed = event;
}

static bool add_activity(struct history *history, const struct temporal_event *event)
{
    if (!ARENA_ROOM(history->arena, history->activities, history->activity_count, &history->activity_capacity)) return false;
    uint32_t index = (uint32_t)history->activity_count++;
    history->activities[index] = (struct activity){.id = event->activity_scheduled->activity_id, .scheduled = event->event_id};
    return map_put(&history->by_id, event->activity_scheduled->activity_id, index, NULL);
}

static bool add_asked(struct history *history, int64_t event, enum signal_type type, struct str reason, struct str bytes)
{
    if (!ARENA_ROOM(history->arena, history->asked, history->asked_count, &history->asked_capacity)) return false;
    history->asked[history->asked_count++] =
        (struct asked){.event = event, .type = type, .reason = reason, .bytes = bytes};
    return true;
}

static bool add_signal(struct history *history, const struct temporal_event *event)
{
    struct str bytes = {0};
    enum signal_type type = signal_parse(event->signaled->signal_name);
    if (type == SIGNAL_NONE || type == SIGNAL_DELIVER_EVENT || type == SIGNAL_ESCALATE_ALERT)
        return true; // a wake, what nobody here knows, or what no person sends
    if (!temporal_json_read(event->signaled->input, &bytes)) bytes = (struct str){0};
    struct str reason = STR("asked for in Temporal");
    return add_asked(history, event->event_id, type, reason, bytes);
}

static bool add_timer(struct history *history, struct str id)
{
    if (!ARENA_ROOM(history->arena, history->timers, history->timer_count, &history->timer_capacity)) return false;
    history->timers[history->timer_count++] = id;
    return true;
}

static void end_timer(struct history *history, struct str id)
{
    for (size_t i = 0; i < history->timer_count; i++)
        if (str_eq(history->timers[i], id)) {
            history->timers[i] = history->timers[--history->timer_count];
            return;
        }
}

// False: out of memory.
static bool fold_event(struct history *history, const struct temporal_event *event)
{
    if (event->event_id <= history->last) return true; // pages may overlap
    history->last = event->event_id;
    if (event->started) history->original = event->started->original_run_id;
    if (event->task_started) {
        history->suggests = event->task_started->suggest_continue_as_new != 0;
        history->bytes = event->task_started->history_size_bytes;
    }
    if (event->activity_completed) close_activity(history, event->activity_completed->scheduled_event_id, event);
    if (event->activity_failed) close_activity(history, event->activity_failed->scheduled_event_id, event);
    if (event->activity_timed_out) close_activity(history, event->activity_timed_out->scheduled_event_id, event);
    if (event->activity_canceled) close_activity(history, event->activity_canceled->scheduled_event_id, event);
    if (event->activity_cancel_requested) {
        struct activity *activity = activity_at(history, event->activity_cancel_requested->scheduled_event_id);
        if (activity) activity->is_cancelled = true;
    }
    if (event->timer_fired) end_timer(history, event->timer_fired->timer_id);
    if (event->timer_canceled) end_timer(history, event->timer_canceled->timer_id);
    if (event->timer_started) return add_timer(history, event->timer_started->timer_id);
    if (event->activity_scheduled) return add_activity(history, event);
    if (event->signaled) return add_signal(history, event);
    if (event->cancel_requested) {
        struct str cause = event->cancel_requested->cause;
        return add_asked(history, event->event_id, SIGNAL_CANCEL, cause.len ? cause : STR("cancelled in Temporal"), (struct str){0});
    }
    return true;
}

static enum code fold(struct history *history, const struct temporal_history *page, struct error *err)
{
    for (size_t i = 0; page && i < page->events_count; i++)
        if (!fold_event(history, &page->events[i])) return error_nomem(err);
    return OK;
}

static enum code fold_raw(struct history *history, const struct temporal_history_page *page, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; !rc && i < page->raw_count; i++) {
        struct temporal_history *part = ARENA_NEW(history->arena, struct temporal_history);
        if (!part) return error_nomem(err);
        rc = proto_read(&temporal_history, page->raw[i].data, history->arena, part, err);
        if (!rc) rc = fold(history, part, err);
    }
    return rc;
}

// What is known of the workflow from the task before, so that only what is new must be read. False: it is not known, or no memory.
static bool recall(struct temporal_host *host, struct hosted *run, const struct temporal_workflow_task *task, struct history *history)
{
    const struct temporal_history *page = task->history;
    LOCKED(&host->mutex);
    const struct workflow_task *known = run->cached;
    bool follows = known && page && page->events_count > 0 && page->events[0].event_id > 1 && page->events[0].event_id <= known->events + 1;
    if (!follows || !str_eq(known->run_id, task->execution->run_id)) return false;
    for (size_t i = 0; i < known->pending_count; i++) {
        const struct pending *pending = &known->pending[i];
        struct str id = arena_copy(history->arena, pending->activity);
        if (!id.ptr || !ARENA_ROOM(history->arena, history->activities, history->activity_count, &history->activity_capacity)) return false;
        uint32_t index = (uint32_t)history->activity_count++;
        history->activities[index] = (struct activity){.id = id, .scheduled = pending->scheduled, .is_cancelled = pending->is_cancelled};
        if (!map_put(&history->by_id, id, index, NULL)) return false;
    }
    for (size_t i = 0; i < known->timer_count; i++) {
        struct str id = arena_copy(history->arena, known->timers[i]);
        if (!id.ptr || !add_timer(history, id)) return false;
    }
    history->original = arena_copy(history->arena, known->original);
    history->last = known->events;
    history->bytes = known->bytes;
    return history->original.ptr != NULL;
}

static enum code read_page(struct temporal_host *host, const struct temporal_workflow_task *task, struct history *history,
                           struct str *token, struct error *err)
{
    struct temporal_get_history request = {.namespace = temporal_settings_of(host->client)->namespace,
                                           .execution = task->execution,
                                           .next_page_token = *token};
    struct temporal_history_page *page = ARENA_NEW(history->arena, struct temporal_history_page);
    if (!page) return error_nomem(err);
    struct temporal_call call = {.method = TEMPORAL_METHOD("GetWorkflowExecutionHistory"),
                                 .in = &temporal_get_history,
                                 .request = &request,
                                 .out = &temporal_history_page,
                                 .answer = page,
                                 .retry = GRPC_SAFE};
    enum code rc = temporal_ask(host->client, &call, history->arena, NULL, err);
    if (!rc) rc = fold(history, page->history, err);
    if (!rc) rc = fold_raw(history, page, err);
    *token = page->next_page_token;
    return rc;
}

static enum code read_history(struct temporal_host *host, struct hosted *run, const struct temporal_workflow_task *task,
                              struct history *history, struct error *err)
{
    const struct temporal_history *first = task->history;
    bool whole = first && first->events_count > 0 && first->events[0].event_id == 1;
    struct str token = {0};
    if (!whole && !recall(host, run, task, history)) { // what this process knew of it is gone: all of it is asked for
        *history = (struct history){.arena = history->arena};
        map_init(&history->by_id, history->arena);
        enum code rc = read_page(host, task, history, &token, err);
        if (rc) return rc;
    } else {
        enum code rc = fold(history, first, err);
        if (rc) return rc;
        token = task->next_page_token;
    }
    enum code rc = OK;
    while (!rc && token.len > 0 && history->last < task->started_event_id) rc = read_page(host, task, history, &token, err);
    return rc;
}

// ---- the task in hand

static struct workflow_task *task_new(const struct temporal_workflow_task *from, const struct history *history)
{
    struct arena arena = arena_of(1024, (size_t)16 << 20);
    struct workflow_task *task = ARENA_NEW(&arena, struct workflow_task);
    size_t open = 0;
    for (size_t i = 0; i < history->activity_count; i++) open += !history->activities[i].is_closed;
    struct pending *pending = task ? ARENA_ARRAY(&arena, open + 1, struct pending) : NULL;
    struct str token = pending ? arena_copy(&arena, from->task_token) : (struct str){0};
    struct str run_id = arena_copy(&arena, from->execution->run_id), original = arena_copy(&arena, history->original);
    struct str *timers = token.ptr ? ARENA_ARRAY(&arena, history->timer_count + 1, struct str) : NULL;
    bool made = timers && run_id.ptr && original.ptr;
    for (size_t i = 0; made && i < history->timer_count; i++) {
        timers[i] = arena_copy(&arena, history->timers[i]);
        made = timers[i].ptr != NULL;
    }
    size_t count = 0;
    for (size_t i = 0; made && i < history->activity_count; i++) {
        const struct activity *activity = &history->activities[i];
        if (activity->is_closed) continue;
        pending[count] = (struct pending){.scheduled = activity->scheduled,
                                          .is_cancelled = activity->is_cancelled,
                                          .activity = arena_copy(&arena, activity->id)};
        made = pending[count++].activity.ptr != NULL;
    }
    if (!made) {
        arena_release(&arena);
        return NULL;
    }
    *task = (struct workflow_task){.token = token,
                          .run_id = run_id,
                          .original = original,
                          .events = history->last,
                          .bytes = history->bytes,
                          .suggests = history->suggests,
                          .pending = pending,
                          .pending_count = count,
                          .timers = timers,
                          .timer_count = history->timer_count,
                          .arena = arena};
    return task;
}

// What came of the attempts that have ended is read before the engine hears of them: it may be large, and have files with it.
static enum code read_ended(struct temporal_host *host, struct hosted *run, struct history *history, struct error *err)
{
    size_t count = 0, most = 0;
    pthread_mutex_lock(&host->mutex);
    for (struct wanted *wanted = run->wanted; wanted; wanted = wanted->next) most++;
    struct ended *ended = ARENA_ARRAY(history->arena, most + 1, struct ended);
    for (struct wanted *wanted = run->wanted; ended && wanted; wanted = wanted->next) {
        uint32_t index = map_get(&history->by_id, wanted->activity);
        if (index == MAP_NONE || !history->activities[index].is_closed) continue;
        ended[count++] = (struct ended){.index = index,
                                        .is_function = wanted->is_function,
                                        .timeout_ms = wanted->timeout_ms,
                                        .artifacts_dir = arena_copy(history->arena, wanted->artifacts_dir),
                                        .log = arena_copy(history->arena, wanted->log),
                                        .log_max = wanted->log_max};
        if (!ended[count - 1].artifacts_dir.ptr || !ended[count - 1].log.ptr) ended = NULL;
    }
    pthread_mutex_unlock(&host->mutex);
    if (!ended) return error_nomem(err);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < count; i++) {
        struct activity *activity = &history->activities[ended[i].index];
        rc = outcome_read(host, run->id, &ended[i], activity->closed, history->arena, &activity->result, err);
        activity->is_read = rc == OK;
    }
    return rc;
}

// With the lock. Results of attempts that have ended go to the engine; what it has cancelled and history does not have is over.
static void take_task(struct temporal_host *host, struct hosted *run, struct history *history, struct workflow_task *task)
{
    hosted_task_free(run->task);
    run->task = task;
    run->is_waking = false;
    run->is_started = true;
    for (struct wanted *wanted = run->wanted, *next; wanted; wanted = next) {
        next = wanted->next;
        uint32_t index = map_get(&history->by_id, wanted->activity);
        wanted->is_unread = false;
        if (index != MAP_NONE && history->activities[index].is_read) {
            wanted_end(host, run, wanted, &history->activities[index].result);
        } else if (index != MAP_NONE && history->activities[index].is_closed) {
            wanted->is_unread = true; // the engine wants it since a moment ago
        } else if (index == MAP_NONE && wanted->is_cancelled) {
            struct tool_result result = fault_of("CANCELLED", STR("cancelled before a worker took it"), "", false);
            wanted_end(host, run, wanted, &result);
        } else if (index == MAP_NONE) {
            wanted->is_sent = false; // the answer that had it did not arrive
        }
    }
    for (size_t i = 0; i < run->awaited_count; i++) {
        run->awaited[i]->is_set = false;
        for (size_t k = 0; k < task->timer_count; k++)
            if (str_eq(task->timers[k], run->awaited[i]->id)) run->awaited[i]->is_set = true;
    }
    hosted_settle(host, run);
}

// What people asked for, in order. What was posted before is not posted again by this process; by the next it is, under the same id.
static enum code post_asked(struct temporal_host *host, struct hosted *run, const struct history *history,
                            struct error *err)
{
    char seen_run[64];
    snprintf(seen_run, sizeof(seen_run), "%.*s", STR_ARG(history->original));
    pthread_mutex_lock(&host->mutex);
    int64_t seen = strcmp(run->seen_run, seen_run) == 0 ? run->seen_event : 0;
    bool ended = run->has_ended;
    pthread_mutex_unlock(&host->mutex);
    enum code rc = OK;
    for (size_t i = 0; !rc && !ended && i < history->asked_count; i++) {
        const struct asked *asked = &history->asked[i];
        if (asked->event <= seen) continue;
        struct str place = arena_format(history->arena, "temporal/%s/%lld", seen_run, (long long)asked->event);
        if (!place.ptr) return error_nomem(err);
        rc = host_signal(host, run->tenant, run->run, asked->type, place, asked->reason, asked->bytes, err);
        if (rc == E_INVALID) { // a payload that is none: the sender sees it in the history, nobody else waits for it
            os_log(LOG_WARN, "a signal of Temporal was refused run=%.*s why=\"%s\"", STR_ARG(run->run), err->message);
            *err = (struct error){0};
            rc = OK;
        }
    }
    if (rc) return rc;
    pthread_mutex_lock(&host->mutex);
    snprintf(run->seen_run, sizeof(run->seen_run), "%s", seen_run);
    run->seen_event = history->last;
    pthread_mutex_unlock(&host->mutex);
    return OK;
}

// Pinned by `calls`, so that it stays while the lock is open. NULL: it is no run of this host (E_CONFLICT) or of this store, or there is
// no memory.
static struct hosted *find_run(struct temporal_host *host, struct str id, struct arena *arena, struct error *err)
{
    struct str tenant, name;
    struct run_head head;
    {
        LOCKED(&host->mutex);
        struct hosted *run = hosted_find(host, id);
        if (run && !run->has_left) {
            run->calls++;
            return run;
        }
    }
    if (!temporal_workflow_parse(id, &tenant, &name)) {
        (void)error_set(err, E_INVALID, "the workflow id is not TENANT/RUN");
        return NULL;
    }
    if (host_look_up(host, tenant, name, arena, &head, err)) return NULL;
    LOCKED(&host->mutex);
    bool elsewhere = !head.terminal && (!host_serves(host, head.shard) || (head.shard == 0 && host->shards && head.owned));
    struct hosted *run = elsewhere ? NULL : hosted_get(host, tenant, name);
    if (elsewhere) (void)error_set(err, E_CONFLICT, "another host drives the run");
    if (!run && !elsewhere) (void)error_nomem(err);
    if (!run) return NULL;
    run->calls++;
    run->has_left = false;
    run->shard = head.shard;
    run->is_placed = true;
    run->is_started = true;
    run->checked_ms = os_now().mono_ms;
    if (run->plan.len == 0) buf_add(&run->plan, head.ids.plan_id);
    if (run_status_terminal(head.summary.status) && !run->has_ended) {
        run->has_ended = true;
        run->outcome = head.summary.status;
    }
    return run;
}

// Said once: a server that hears it again and again only sends the task again and again. One that another host is to have is given back
// each time, after a moment.
static void fail_task(struct temporal_host *host, const struct temporal_workflow_task *task, const struct error *why)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct error err = {0};
    bool foreign = why->code == E_CONFLICT;
    struct temporal_failure failure = {.message = str_from(why->message), .source = STR("cairn")};
    struct temporal_fail_workflow_task request = {.task_token = task->task_token,
                                                  .cause = FAIL_CAUSE,
                                                  .failure = &failure,
                                                  .identity = temporal_identity(host->client),
                                                  .namespace = temporal_settings_of(host->client)->namespace};
    struct temporal_call call = {.method = TEMPORAL_METHOD("RespondWorkflowTaskFailed"),
                                 .in = &temporal_fail_workflow_task,
                                 .request = &request,
                                 .retry = GRPC_ONCE};
    struct str id = task->execution ? task->execution->workflow_id : STR("");
    os_log(foreign ? LOG_INFO : LOG_WARN, "a task of Temporal cannot be answered workflow=%.*s why=\"%s\"", STR_ARG(id), why->message);
    if (foreign && task->attempt > 1) {
        LOCKED(&host->mutex);
        if (!atomic_load(&host->is_shut)) os_wait_until(&host->changed, &host->mutex, os_now().mono_ms + FOREIGN_MS);
    }
    if (task->attempt <= 1 || foreign) (void)!temporal_ask(host->client, &call, &arena, NULL, &err);
    arena_release(&arena);
}

static void refuse_query(struct temporal_host *host, const struct temporal_workflow_task *task)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct error err = {0};
    struct temporal_respond_query request = {.task_token = task->task_token,
                                             .completed_type = 2,
                                             .error_message = STR("runs of Cairn answer no queries: ask Cairn for their status"),
                                             .namespace = temporal_settings_of(host->client)->namespace};
    struct temporal_call call = {.method = TEMPORAL_METHOD("RespondQueryTaskCompleted"),
                                 .in = &temporal_respond_query,
                                 .request = &request,
                                 .retry = GRPC_ONCE};
    (void)!temporal_ask(host->client, &call, &arena, NULL, &err);
    arena_release(&arena);
}

void host_task(struct temporal_host *host, const struct temporal_workflow_task *task, struct arena *arena)
{
    struct history history = {.arena = arena};
    struct error err = {0};
    map_init(&history.by_id, arena);
    if (task->query) {
        refuse_query(host, task);
        return;
    }
    struct hosted *run = NULL;
    if (task->execution)
        run = find_run(host, task->execution->workflow_id, arena, &err);
    else
        (void)error_set(&err, E_INVALID, "a task without a workflow");
    enum code rc = run ? read_history(host, run, task, &history, &err) : err.code;
    if (run && !rc) rc = post_asked(host, run, &history, &err);
    if (run && !rc) rc = read_ended(host, run, &history, &err);
    struct workflow_task *made = run && !rc ? task_new(task, &history) : NULL;
    pthread_mutex_lock(&host->mutex);
    if (run) run->calls--;
    if (made && !atomic_load(&host->is_shut))
        take_task(host, run, &history, made);
    else
        hosted_task_free(made);
    pthread_mutex_unlock(&host->mutex);
    if ((!run || !made) && !atomic_load(&host->is_shut)) {
        if (!err.code) (void)error_nomem(&err);
        fail_task(host, task, &err);
    }
}

static void on_handed_back(void *context, const struct grpc_answer *got)
{
    struct about *about = context;
    struct hosted *run = about_back(about);
    (void)got;
    hosted_touch(about->host, run);
    hosted_flush(about->host);
    about_end(about, NULL);
}

void task_hand_back(struct temporal_host *host, struct hosted *run)
{
    struct temporal_respond_workflow request = {.task_token = run->task->token,
                                                .identity = temporal_identity(host->client),
                                                .namespace = temporal_settings_of(host->client)->namespace};
    struct temporal_call call = {.method = TEMPORAL_METHOD("RespondWorkflowTaskCompleted"),
                                 .in = &temporal_respond_workflow,
                                 .request = &request,
                                 .retry = GRPC_ONCE};
    (void)!about_send(host, run, 0, &call, on_handed_back); // without commands; one that is lost comes again when its time is over
    hosted_task_free(run->task);
    run->task = NULL;
}
