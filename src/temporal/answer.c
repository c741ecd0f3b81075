// What a workflow task is answered with: the difference between what the engine wants outside and what the workflow's history has pending.
#include "temporal/inside.h"

#include "json/make.h"

enum {
    COMMANDS_MAX = 200,       // of one answer: the rest follows with the next task
    COMMAND_BYTES = 1 << 20,  // the events of one answer must fit into one transaction of the server
    PENDING_MAX = 1000,       // activities of one workflow at a time; the server's limit is 2000
    DRAIN_FACTOR = 10,        // so many times history_max, and nothing more is scheduled until the workflow can be continued
    DRAIN_BYTES = 10 << 20,   // the same by size: 50 MiB end a workflow, and what is pending may still add to them
    RESPOND_MS = 60000,
    FUNCTION_MS = 3600000, // of a function that has no timeout: nobody else would notice that its worker is gone
    STEP_GRACE_MS = 10000, // a worker of Cairn keeps the time of a step itself
    CACHE_MS = 5000,       // a task waits so long for the process that knows the history; then it is sent whole to the owner of the queue
    TASK_MS = 20000
};
#define NEVER_MS ((int64_t)3650 * 86400 * 1000)

enum { ANSWER_PLAIN = 0, ANSWER_CLOSE, ANSWER_CONTINUE };

struct task_answer {
    struct arena *arena;
    struct temporal_command *commands;
    size_t count, bytes;
    bool more;
};

static struct temporal_command *add(struct task_answer *answer, int64_t type)
{
    struct temporal_command *command = &answer->commands[answer->count++];
    *command = (struct temporal_command){.type = type};
    return command;
}

static const struct temporal_payloads *json_in(struct arena *arena, struct str text)
{
    struct temporal_json *room = ARENA_NEW(arena, struct temporal_json);
    return room ? temporal_json(room, text) : NULL;
}

static const struct temporal_metadata *summary_of(struct arena *arena, struct str text)
{
    struct buf json = buf_of(8192);
    json_write_string(&json, text);
    struct str kept = buf_keep(&json, arena);
    struct temporal_metadata *metadata = ARENA_NEW(arena, struct temporal_metadata);
    const struct temporal_payloads *payloads = kept.ptr && metadata ? json_in(arena, kept) : NULL;
    if (!payloads) return NULL; // a summary is a courtesy
    metadata->summary = &payloads->payloads[0];
    return metadata;
}

static const struct temporal_duration *duration_in(struct arena *arena, int64_t ms)
{
    struct temporal_duration *duration = ARENA_NEW(arena, struct temporal_duration);
    if (duration) *duration = temporal_duration_of(ms);
    return duration;
}

static bool schedule(struct temporal_host *host, struct task_answer *answer, struct wanted *wanted)
{
    struct arena *arena = answer->arena;
    struct temporal_schedule_activity *made = ARENA_NEW(arena, struct temporal_schedule_activity);
    struct temporal_name *type = ARENA_NEW(arena, struct temporal_name);
    struct temporal_queue *queue = ARENA_NEW(arena, struct temporal_queue);
    struct temporal_retry *retry = ARENA_NEW(arena, struct temporal_retry);
    int64_t most = wanted->timeout_ms > 0 ? wanted->timeout_ms + (wanted->is_function ? 0 : STEP_GRACE_MS)
                   : wanted->is_function  ? FUNCTION_MS
                                          : NEVER_MS;
    const struct temporal_duration *close = duration_in(arena, most);
    const struct temporal_payloads *input = json_in(arena, wanted->input);
    if (!made || !type || !queue || !retry || !close || !input) return false;
    *type = (struct temporal_name){wanted->type};
    *queue = (struct temporal_queue){.name = wanted->queue, .kind = TEMPORAL_QUEUE_NORMAL};
    *retry = (struct temporal_retry){.maximum_attempts = 1}; // the engine names the next attempt in the log first
    *made = (struct temporal_schedule_activity){.activity_id = wanted->activity,
                                                .type = type,
                                                .task_queue = queue,
                                                .input = input,
                                                .start_to_close = close,
                                                .retry = retry};
    if (!wanted->is_function) { // a function may be served by a worker that says nothing meanwhile
        made->heartbeat = duration_in(arena, host->heartbeat_ms);
        if (!made->heartbeat) return false;
    }
    struct temporal_command *command = add(answer, TEMPORAL_SCHEDULE_ACTIVITY);
    command->schedule_activity = made;
    command->user_metadata = summary_of(arena, wanted->summary);
    answer->bytes += wanted->input.len + 512;
    wanted->is_sent = true;
    return true;
}

static bool stop_activity(struct task_answer *answer, struct pending *pending)
{
    struct temporal_cancel_activity *made = ARENA_NEW(answer->arena, struct temporal_cancel_activity);
    if (!made) return false;
    made->scheduled_event_id = pending->scheduled;
    pending->is_cancelled = true;
    add(answer, TEMPORAL_CANCEL_ACTIVITY)->cancel_activity = made;
    answer->bytes += 64;
    return true;
}

static struct pending *pending_find(const struct workflow_task *task, struct str activity)
{
    for (size_t i = 0; i < task->pending_count; i++)
        if (str_eq(task->pending[i].activity, activity)) return &task->pending[i];
    return NULL;
}

static const struct wanted *wanted_as(const struct hosted *run, struct str activity)
{
    for (const struct wanted *wanted = run->wanted; wanted; wanted = wanted->next)
        if (str_eq(wanted->activity, activity)) return wanted;
    return NULL;
}

static bool is_full(struct task_answer *answer)
{
    bool full = answer->count + 1 >= COMMANDS_MAX || answer->bytes >= COMMAND_BYTES;
    if (full) answer->more = true;
    return full;
}

static bool start_timers(struct hosted *run, struct task_answer *answer)
{
    for (size_t i = 0; i < run->awaited_count && !is_full(answer); i++) {
        struct awaited *awaited = run->awaited[i];
        int64_t left = awaited->due_ms - os_now().wall_ms;
        if (awaited->is_set) continue;
        awaited->is_set = true;
        if (left <= 0) continue; // the engine is about to say so
        struct temporal_start_timer *made = ARENA_NEW(answer->arena, struct temporal_start_timer);
        const struct temporal_duration *after = duration_in(answer->arena, left);
        struct str id = arena_copy(answer->arena, awaited->id);
        if (!made || !after || !id.ptr) return false;
        *made = (struct temporal_start_timer){.timer_id = id, .fires_after = after};
        struct temporal_command *command = add(answer, TEMPORAL_START_TIMER);
        command->start_timer = made;
        command->user_metadata = summary_of(answer->arena, awaited->summary);
    }
    return true;
}

static bool stop_timers(const struct hosted *run, struct task_answer *answer)
{
    const struct workflow_task *task = run->task;
    for (size_t i = 0; i < task->timer_count && !is_full(answer); i++) {
        bool wanted = false;
        for (size_t k = 0; k < run->awaited_count; k++) wanted = wanted || str_eq(run->awaited[k]->id, task->timers[i]);
        if (wanted) continue;
        struct temporal_cancel_timer *made = ARENA_NEW(answer->arena, struct temporal_cancel_timer);
        if (!made) return false;
        made->timer_id = task->timers[i];
        add(answer, TEMPORAL_CANCEL_TIMER)->cancel_timer = made;
    }
    return true;
}

static bool compare(struct temporal_host *host, struct hosted *run, struct task_answer *answer)
{
    struct workflow_task *task = run->task;
    size_t flying = task->pending_count;
    bool draining = task->events >= (int64_t)host->history_max * DRAIN_FACTOR || task->bytes >= DRAIN_BYTES;
    for (struct wanted *wanted = run->wanted; wanted; wanted = wanted->next) {
        struct pending *pending = pending_find(task, wanted->activity);
        if (is_full(answer)) return true;
        if (pending && wanted->is_cancelled) {
            if (!pending->is_cancelled && !stop_activity(answer, pending)) return false;
            wanted->is_stopping = true;
        }
        if (pending || wanted->is_cancelled || wanted->is_unread || !wanted->is_packed || draining || flying >= PENDING_MAX) continue;
        if (!schedule(host, answer, wanted)) return false;
        flying++;
    }
    if (!start_timers(run, answer)) return false;
    // What history has and the engine does not want was ordered by an engine that is gone. Until this one has taken the run up, that may
    // be what it will claim.
    if (!run->is_driven) return true;
    for (size_t i = 0; i < task->pending_count; i++) {
        struct pending *pending = &task->pending[i];
        if (pending->is_cancelled || wanted_as(run, pending->activity)) continue;
        if (is_full(answer)) return true;
        if (!stop_activity(answer, pending)) return false;
    }
    return stop_timers(run, answer);
}

static bool close_workflow(struct hosted *run, struct task_answer *answer)
{
    struct arena *arena = answer->arena;
    if (run->outcome == RUN_STATUS_COMPLETED) {
        struct temporal_complete_workflow *made = ARENA_NEW(arena, struct temporal_complete_workflow);
        if (!made) return false;
        add(answer, TEMPORAL_COMPLETE_WORKFLOW)->complete = made;
    } else if (run->outcome == RUN_STATUS_CANCELLED) {
        struct temporal_cancel_workflow *made = ARENA_NEW(arena, struct temporal_cancel_workflow);
        if (!made) return false;
        add(answer, TEMPORAL_CANCEL_WORKFLOW)->cancel = made;
    } else {
        struct temporal_fail_workflow *made = ARENA_NEW(arena, struct temporal_fail_workflow);
        struct temporal_failure *failure = ARENA_NEW(arena, struct temporal_failure);
        struct temporal_application_failure *info = ARENA_NEW(arena, struct temporal_application_failure);
        if (!made || !failure || !info) return false;
        *info = (struct temporal_application_failure){.type = STR("RunFailed"), .non_retryable = 1};
        *failure = (struct temporal_failure){
            .message = run->reason.len > 0 ? buf_str(&run->reason) : STR("the run has failed"),
            .source = STR("cairn"),
            .application = info};
        made->failure = failure;
        add(answer, TEMPORAL_FAIL_WORKFLOW)->fail = made;
    }
    return true;
}

// History grows with every step and is sent whole with every task. The store has what the next run of the workflow needs.
static bool continue_workflow(struct temporal_host *host, struct hosted *run, struct task_answer *answer)
{
    struct arena *arena = answer->arena;
    struct temporal_continue_workflow *made = ARENA_NEW(arena, struct temporal_continue_workflow);
    struct temporal_name *type = ARENA_NEW(arena, struct temporal_name);
    struct temporal_queue *queue = ARENA_NEW(arena, struct temporal_queue);
    const struct temporal_duration *timeout = duration_in(arena, TASK_MS);
    const struct temporal_payloads *input = json_in(arena, STR("null"));
    if (!made || !type || !queue || !timeout || !input) return false;
    *type = (struct temporal_name){STR(TEMPORAL_WORKFLOW)};
    *queue = (struct temporal_queue){.name = host->queues[run->shard], .kind = TEMPORAL_QUEUE_NORMAL};
    *made = (struct temporal_continue_workflow){.type = type,
                                                .task_queue = queue,
                                                .input = input,
                                                .task_timeout = timeout,
                                                .initiator = 1,
                                                .memo = host_memo(run, arena),
                                                .search_attributes = host_attributes(host, run, arena)};
    add(answer, TEMPORAL_CONTINUE_WORKFLOW)->continue_as_new = made;
    return true;
}

static void on_answered(void *context, const struct grpc_answer *got)
{
    struct about *about = context;
    struct temporal_host *host = about->host;
    struct hosted *run = about_back(about);
    if (got->status == GRPC_OK && about->kind == ANSWER_CLOSE) run->is_closed = true;
    // The task was over, or the workflow is: which of the two, the keeper finds out.
    if (got->status == GRPC_NOT_FOUND) run->is_doubtful = true;
    if (got->status != GRPC_OK && got->status != GRPC_NOT_FOUND && got->status != GRPC_CANCELLED &&
        got->status != GRPC_INVALID_ARGUMENT) // an event came in between: there is another task with it
        os_log(LOG_WARN, "Temporal did not take the answer to a task run=%.*s status=%s why=\"%.*s\"", STR_ARG(run->run),
               grpc_status_name(got->status), STR_ARG(got->message));
    if (run->is_doubtful) pthread_cond_signal(&host->changed);
    hosted_touch(host, run);
    hosted_flush(host); // this one, which may be gone by that, and what else came
    about_end(about, NULL);
}

static bool send_answer(struct temporal_host *host, struct hosted *run, const struct task_answer *answer, int kind, bool keeps)
{
    struct temporal_queue queue = {.name = host->cache_queue, .kind = TEMPORAL_QUEUE_STICKY, .normal_name = host->queues[run->shard]};
    struct temporal_duration patience = temporal_duration_of(CACHE_MS);
    struct temporal_sticky sticky = {.queue = &queue, .schedule_to_start = &patience};
    struct temporal_respond_workflow request = {.task_token = run->task->token,
                                                .commands = answer->commands,
                                                .commands_count = answer->count,
                                                .identity = temporal_identity(host->client),
                                                .sticky = keeps ? &sticky : NULL,
                                                .force_new_task = answer->more,
                                                .namespace = temporal_settings_of(host->client)->namespace};
    struct temporal_call call = {.method = TEMPORAL_METHOD("RespondWorkflowTaskCompleted"),
                                 .in = &temporal_respond_workflow,
                                 .request = &request,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = RESPOND_MS};
    return about_send(host, run, kind, &call, on_answered);
}

static bool is_unheard(const struct hosted *run)
{
    for (const struct wanted *wanted = run->wanted; wanted; wanted = wanted->next)
        if (wanted->is_unread) return true;
    return false;
}

// With the lock. Whatever cannot be sent now is sent with a later task: an attempt that is not in history is still wanted.
void hosted_task_answer(struct temporal_host *host, struct hosted *run)
{
    struct arena arena = arena_of(16384, (size_t)64 << 20);
    struct task_answer answer = {.arena = &arena, .commands = ARENA_ARRAY(&arena, COMMANDS_MAX, struct temporal_command)};
    struct workflow_task *task = run->task;
    bool long_enough = task->suggests || task->events >= (int64_t)host->history_max;
    // Ends that the engine has not heard of yet would go with the history: only what it drives is continued.
    bool can = long_enough && task->pending_count == 0 && run->is_driven && !is_unheard(run);
    int kind = run->has_ended ? ANSWER_CLOSE : can ? ANSWER_CONTINUE : ANSWER_PLAIN;
    bool made = answer.commands != NULL;
    if (made && kind == ANSWER_CLOSE) made = close_workflow(run, &answer);
    if (made && kind == ANSWER_CONTINUE) made = continue_workflow(host, run, &answer);
    if (made && kind == ANSWER_PLAIN) made = compare(host, run, &answer);
    // What history has the end of and nobody has heard is read again with the whole of it.
    bool keeps = kind == ANSWER_PLAIN && run->is_driven && !is_unheard(run) && host->options.settings.cached_runs > 0;
    bool sent = made && send_answer(host, run, &answer, kind, keeps);
    if (!sent) os_log(LOG_WARN, "no memory to answer a task of Temporal run=%.*s", STR_ARG(run->run)); // it comes again
    if (sent && keeps)
        hosted_task_keep(host, run);
    else
        hosted_forget(host, run);
    hosted_task_free(run->task);
    run->task = NULL;
    arena_release(&arena);
}
