// The threads that run tasks, and the tickets of what is under way.
//
//   start --> WAITING --thread free--> running its kind --> outcome --> delivered
//
// Nothing is made before it is needed: no thread before the first task, no process tools before the first process. Cancelling and
// lateness are flags that kinds look at; a process is also stopped through the process tools, which know how to end a tree.
// Locks: the one mutex here may be taken under the engine's; nothing is delivered under it.
#include "task/kind.h"

#include "base/civil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TABLE_SIZE = 256,
    THREADS_DEFAULT = 128,
    PROCESSES_DEFAULT = 64,
    OUTPUT_DEFAULT = 8 << 20,
    STACK_SIZE = 1 << 20
};

struct task {
    struct task *next, *same; // of the waiting; of the table
    uint64_t ticket;
    struct tool_request request; // copied into the arena
    struct str name;
    // under the mutex
    bool waiting;
    int64_t since_ms; // it waits, or has its thread
    bool has_process, process_ended; // a process runs under this ticket; its result is there
    int64_t grace_ms;
    struct tool_result process;
    pthread_cond_t ended;
    atomic_bool cancelled;
    int64_t started_ms;
    struct arena arena; // holds this struct
};

struct tasks { // shared: mutex inside
    struct tools base;
    struct task_options options;
    tool_deliver deliver;
    tool_output output;
    void *context;
    struct os_log_route log; // of the thread that opened them
    pthread_mutex_t mutex;
    pthread_cond_t work;
    atomic_bool closing;
    struct task *table[TABLE_SIZE];
    struct task *first, **last; // waiting
    size_t waiting, idle;
    pthread_t *threads;
    size_t thread_count, thread_max;
    struct tools *processes; // NULL until the first
    struct token_cache *tokens;
};

static struct tasks *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct tasks, base);
}

static struct task **find(struct tasks *tasks, uint64_t ticket)
{
    struct task **at = &tasks->table[ticket % TABLE_SIZE];
    while (*at && (*at)->ticket != ticket) at = &(*at)->same;
    return at;
}

// ---- kinds

static const struct task_kind *const kinds[] = {
#define X(name) &kind_##name,
    TASK_KIND_LIST(X)
#undef X
};

static const struct task_kind *kind_of(const char *plugins, struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (str_is(name, kinds[i]->name)) return kinds[i];
    return task_plugin_known(plugins, name) ? &kind_plugin : NULL;
}

bool task_kind_known(const char *plugins, struct str kind)
{
    return kind_of(plugins, kind) != NULL;
}

const char *task_kind_name(size_t index)
{
    return index < ARRAY_COUNT(kinds) ? kinds[index]->name : NULL;
}

static bool knows(const struct task_kind *kind, struct str field)
{
    static const char *const everywhere[] = {"input",       "args",  "kind",      "name",          "desc",
                                             "description", "title", "timeout",   "assert",        "spec",
                                             "label",       "as",    "timeout_s", "output_select", NULL};
    const char *const *lists[] = {kind->fields, everywhere};
    for (size_t i = 0; kind->fields && i < ARRAY_COUNT(lists); i++)
        for (const char *const *at = lists[i]; *at; at++)
            if (str_is(field, *at)) return true;
    return !kind->fields;
}

bool task_field_known(struct str kind, struct str field)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (str_is(kind, kinds[i]->name)) return knows(kinds[i], field);
    return true;
}

// ---- the life of a task

static void task_free(struct task *task)
{
    if (task->process_ended) tool_result_free(&task->process); // came when nobody waited any more
    pthread_cond_destroy(&task->ended);
    arena_release(&task->arena);
}

static struct task *task_new(const struct tool_request *request)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, TASK_MEMORY_MAX);
    struct task *task = ARENA_NEW(&arena, struct task);
    if (!task) return NULL;
    task->ticket = request->ticket;
    task->request = *request;
    struct tool_request *own = &task->request;
    bool failed = !ARENA_KEEP(&arena, &own->run, &own->step, &own->tenant, &own->project, &own->environment, &own->kind,
                              &own->function, &own->input, &own->cwd, &own->home, &own->log, &own->artifacts_dir);
    own->argv = NULL, own->argc = 0;
    own->env = NULL, own->env_count = 0;
    own->secrets = NULL, own->secret_count = 0;
    bool spills = own->overflow == OVERFLOW_ARTIFACT && own->artifact_count > 0;
    const struct artifact_decl *last = spills ? &request->artifacts[own->artifact_count - 1] : NULL;
    struct artifact_decl *kept = last ? ARENA_NEW(&arena, struct artifact_decl) : NULL;
    if (kept) kept->path = arena_copy(&arena, last->path);
    failed |= last && (!kept || !kept->path.ptr);
    own->artifacts = kept, own->artifact_count = kept ? 1 : 0;
    task->name = own->function.len ? own->function : own->kind;
    if (failed) return NULL;
    INVARIANT(pthread_cond_init(&task->ended, NULL) == 0);
    task->arena = arena_take(&arena);
    return task;
}

const struct tool_request *call_request(const struct task_call *call)
{
    return &call->task->request;
}

const struct task_options *tasks_options(const struct tasks *tasks)
{
    return &tasks->options;
}

void tasks_lock(struct tasks *tasks)
{
    pthread_mutex_lock(&tasks->mutex);
}

void tasks_unlock(struct tasks *tasks)
{
    pthread_mutex_unlock(&tasks->mutex);
}

struct token_cache **tasks_tokens(struct tasks *tasks)
{
    return &tasks->tokens;
}

bool call_stopped(void *context)
{
    const struct task_call *call = context;
    return atomic_load(&call->task->cancelled) || atomic_load(&call->tasks->closing) ||
           (call->deadline != INT64_MAX && os_now().mono_ms >= call->deadline);
}

int64_t call_left_ms(const struct task_call *call)
{
    if (call->deadline == INT64_MAX) return INT64_MAX;
    int64_t left = call->deadline - os_now().mono_ms;
    return left > 0 ? left : 1;
}

void call_output(struct task_call *call, bool is_stderr, struct str line)
{
    if (call->tasks->output) call->tasks->output(call->tasks->context, call->task->ticket, is_stderr, line);
}

// ---- processes

static void on_process(void *context, struct tool_result *result)
{
    struct tasks *tasks = context;
    pthread_mutex_lock(&tasks->mutex);
    struct task *task = *find(tasks, result->ticket);
    if (task) {
        task->process = *result;
        task->process_ended = true;
        pthread_cond_signal(&task->ended);
    }
    pthread_mutex_unlock(&tasks->mutex);
    if (!task) tool_result_free(result);
}

static void on_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    struct tasks *tasks = context;
    if (tasks->output) tasks->output(tasks->context, ticket, is_stderr, line);
}

static enum code open_processes(struct tasks *tasks, struct error *err) // locked
{
    if (tasks->processes) return OK;
    struct tool_options options = {.mark = tasks->options.mark,
                                   .process_max = tasks->options.process_max,
                                   .deliver = on_process,
                                   .output = on_line,
                                   .context = tasks,
                                   .confinement = tasks->options.confinement,
                                   .secrets = tasks->options.secrets};
    return tools_open(&options, &tasks->processes, err);
}

static void fill_request(const struct task_call *call, struct tool_request *request)
{
    const struct tool_request *from = call_request(call);
    request->ticket = from->ticket;
    request->run = from->run;
    request->step = from->step;
    request->tenant = from->tenant;
    request->project = from->project;
    request->environment = from->environment;
    request->epoch = from->epoch;
    request->kind = from->kind;
    request->logical = from->logical;
    request->engine = from->engine;
    if (!request->cwd.len) request->cwd = from->cwd;
    request->home = from->home;
    request->artifacts_dir = from->artifacts_dir;
    request->log = from->log;
    request->log_max = from->log_max;
    request->output_max = from->output_max ? from->output_max : OUTPUT_DEFAULT;
    request->overflow = from->overflow;
    request->artifacts = from->artifacts; // where a long output goes
    request->artifact_count = from->artifact_count;
    request->hidden = call->secrets;
    request->hidden_count = call->secret_count;
    int64_t left = call_left_ms(call);
    request->timeout_ms = left == INT64_MAX ? 0 : left;
}

bool call_process(struct task_call *call, struct tool_request *request, struct tool_result *result)
{
    struct tasks *tasks = call->tasks;
    struct task *task = call->task;
    struct error err = {0};
    fill_request(call, request);
    pthread_mutex_lock(&tasks->mutex);
    enum code rc = open_processes(tasks, &err);
    struct tools *tools = tasks->processes;
    if (!rc) rc = tools->ops->start(tools, request, &err);
    task->has_process = !rc;
    task->process_ended = false;
    if (!rc && atomic_load(&task->cancelled)) tools->ops->cancel(tools, task->ticket, task->grace_ms);
    while (!rc && !task->process_ended && !atomic_load(&tasks->closing)) pthread_cond_wait(&task->ended, &tasks->mutex);
    bool ended = task->process_ended;
    task->has_process = task->process_ended = false;
    pthread_mutex_unlock(&tasks->mutex);
    if (ended) {
        *result = task->process;
        return true;
    }
    if (rc)
        call_fail(call, TASK_UNKNOWN, "SPAWN_FAILED", "%s", err.message);
    else
        call_fail(call, TASK_UNKNOWN, "CANCELLED", "the engine ends");
    call->out.retryable = true;
    return false;
}

void call_process_failed(struct task_call *call, const struct tool_result *result)
{
    const struct fault *fault = &result->fault;
    bool late = str_is(fault->code, "TIMEOUT");
    bool missing = str_is(fault->code, "COMMAND_NOT_FOUND");
    struct str code = call_printf(call, "%.*s", STR_ARG(fault->code));
    call_fail(call,
              late      ? TASK_TIMEOUT
              : missing ? TASK_NOT_FOUND
                        : TASK_UNKNOWN,
              code.ptr, "%.*s", STR_ARG(fault->message));
    call->out.retryable = fault->retryable;
}

// ---- running one

static void deliver_text(struct tasks *tasks, struct task *task, struct tool_result *result, struct buf *text)
{
    result->ticket = task->ticket;
    result->duration_ms = os_now().mono_ms - task->started_ms;
    result->memory = text->ptr;
    result->release = free;
    pthread_mutex_lock(&tasks->mutex);
    struct task **place = find(tasks, task->ticket);
    INVARIANT(*place == task);
    *place = task->same;
    bool closing = atomic_load(&tasks->closing);
    pthread_mutex_unlock(&tasks->mutex);
    if (closing || !tasks->deliver)
        tool_result_free(result);
    else
        tasks->deliver(tasks->context, result);
}

static void deliver_fault(struct tasks *tasks, struct task *task, const char *code, bool retryable, const char *what,
                          const char *more)
{
    struct buf text = buf_of(4096);
    buf_printf(&text, "%s%s", what, more);
    INVARIANT(buf_ok(&text)); // a lost result would leave the run waiting for ever; dying recovers it
    struct tool_result result = {.fault = {.code = str_from(code), .message = buf_str(&text), .retryable = retryable}};
    if (strcmp(code, "TIMEOUT") == 0) result.fault.category = STR("timeout");
    deliver_text(tasks, task, &result, &text);
}

static void deliver_outcome(struct task_call *call)
{
    struct tasks *tasks = call->tasks;
    struct task *task = call->task;
    struct buf text = buf_of(SIZE_MAX / 4);
    if (!outcome_write(call, os_now().mono_ms - task->started_ms, &text)) {
        buf_release(&text);
        deliver_fault(tasks, task, "PAYLOAD_TOO_LARGE", false, "no memory for what the task gave back", "");
        return;
    }
    struct tool_result result = {.ok = true, .is_json = true, .spilled = call->out.spilled, .output = buf_str(&text)};
    deliver_text(tasks, task, &result, &text);
}

static void warn_fields(struct task_call *call)
{
    for (uint32_t i = 0; json_is(&call->with, JSON_OBJECT) && i < call->with.count; i++) {
        struct str key = call->with.members[i].key;
        if (!knows(call->kind, key))
            call_log(call, true, "%s does not know the field %.*s, and has not looked at it", call->kind->name,
                     STR_ARG(key));
    }
}

static bool read_input(struct task_call *call)
{
    struct error err = {0};
    struct str text = call->task->request.input;
    if (!text.len) text = STR("{}");
    if (json_parse(text, &task_limits, call->arena, &call->input, &err))
        return call_fail(call, TASK_SCHEMA, "INPUT_INVALID", "what the task gets cannot be read: %s", err.message);
    const struct json *with = json_key(&call->input, "with");
    struct json none = json_object();
    return call_resolve(call, json_is(with, JSON_OBJECT) ? with : &none, &call->with);
}

static void run_kind(struct task_call *call)
{
    call->kind = kind_of(call->tasks->options.plugins, call->name);
    if (!call->kind) {
        call_fail(call, TASK_CLIENT, "UNKNOWN_KIND", "no tool is called %.*s here", STR_ARG(call->name));
        return;
    }
    bool read = read_input(call), child = read && child_wanted(call);
    if (!call->kind->process && !child) step_log_init(&call->log, call->task->request.log, call->task->request.log_max);
    if (!read) return;
    if (!child) warn_fields(call);
    (child ? child_run : call->kind->run)(call);
    if (!call->out.said) call_fail(call, TASK_UNKNOWN, "INTERNAL", "the tool gave no outcome");
}

static void end_log(struct task_call *call)
{
    if (call->log.path.len) {
        const struct task_outcome *out = &call->out;
        struct str how = STR("done");
        if (out->error) how = call_printf(call, "%s: %.*s", task_error_word(out->error), STR_ARG(out->message));
        struct str masked = call_mask(call, how);
        step_log_end(&call->log, masked.ptr ? masked : STR("ended"));
    }
    step_log_release(&call->log);
}

static void run_task(struct tasks *tasks, struct task *task, struct thread_room *room)
{
    char took[24], late[64];
    struct task_call call = {
        .tasks = tasks, .task = task, .name = task->name, .arena = &task->arena, .deadline = INT64_MAX, .room = room};
    int64_t timeout_ms = task->request.timeout_ms;
    task->started_ms = os_now().mono_ms;
    if (timeout_ms > 0 && timeout_ms < INT64_MAX - task->started_ms) call.deadline = task->started_ms + timeout_ms;
    step_log_init(&call.log, STR(""), 0);
    run_kind(&call);
    end_log(&call);
    duration_format(timeout_ms, took);
    snprintf(late, sizeof(late), FAULT_LATE, took);
    if (call.out.error && atomic_load(&task->cancelled))
        deliver_fault(tasks, task, "CANCELLED", false, "cancelled", "");
    else if (call.out.error && call.deadline != INT64_MAX && os_now().mono_ms >= call.deadline)
        deliver_fault(tasks, task, "TIMEOUT", true, late, "");
    else
        deliver_outcome(&call);
    mask_wipe(call.mask);
    for (size_t i = 0; i < call.secret_count; i++) secret_wipe(call.secrets[i].value);
    task_free(task);
}

static void *thread(void *context)
{
    struct tasks *tasks = context;
    struct thread_room room = {0};
    os_log_through(tasks->log);
    pthread_setname_np(pthread_self(), "cairn-task");
    pthread_mutex_lock(&tasks->mutex);
    while (!atomic_load(&tasks->closing)) {
        struct task *task = tasks->first;
        if (!task) {
            tasks->idle++;
            pthread_cond_wait(&tasks->work, &tasks->mutex);
            tasks->idle--;
            continue;
        }
        tasks->first = task->next;
        if (!tasks->first) tasks->last = &tasks->first;
        tasks->waiting--;
        task->waiting = false;
        task->since_ms = os_now().mono_ms;
        pthread_mutex_unlock(&tasks->mutex);
        run_task(tasks, task, &room);
        pthread_mutex_lock(&tasks->mutex);
    }
    pthread_mutex_unlock(&tasks->mutex);
    links_release(room.links);
    fetch_keep_close(room.keep);
    bases_release(room.bases);
    return NULL;
}

// ---- the tools

static bool more_threads(struct tasks *tasks)
{
    pthread_attr_t attr;
    if (tasks->thread_count >= tasks->thread_max || pthread_attr_init(&attr) != 0) return false;
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    bool started = os_thread(&tasks->threads[tasks->thread_count], &attr, thread, tasks) == 0;
    pthread_attr_destroy(&attr);
    if (started) tasks->thread_count++;
    return started;
}

static enum code admit(struct tasks *tasks, struct task *task, struct error *err)
{
    struct task **place = find(tasks, task->ticket);
    if (atomic_load(&tasks->closing)) return error_set(err, E_CANCELLED, "the tools are closing");
    if (*place) return error_set(err, E_EXISTS, "the ticket is in use");
    // An idle thread that was woken counts as idle until it has the lock.
    if (tasks->waiting + 1 > tasks->idle && !more_threads(tasks) && tasks->thread_count == 0)
        return error_set(err, E_LIMIT, "no thread can be made for the tools of playbooks");
    *place = task;
    task->waiting = true;
    task->since_ms = os_now().mono_ms;
    *tasks->last = task;
    tasks->last = &task->next;
    tasks->waiting++;
    if (tasks->idle) pthread_cond_signal(&tasks->work);
    return OK;
}

static enum code start(struct tools *base, const struct tool_request *request, struct error *err)
{
    struct tasks *tasks = of(base);
    struct task *task = task_new(request);
    if (!task) return error_nomem(err);
    pthread_mutex_lock(&tasks->mutex);
    enum code rc = admit(tasks, task, err);
    pthread_mutex_unlock(&tasks->mutex);
    if (rc) task_free(task);
    return rc;
}

static void unqueue(struct tasks *tasks, struct task *task)
{
    struct task **at = &tasks->first;
    while (*at != task) at = &(*at)->next;
    *at = task->next;
    if (!*at) tasks->last = at;
    tasks->waiting--;
    task->waiting = false;
}

static void cancel(struct tools *base, uint64_t ticket, int64_t grace_ms)
{
    struct tasks *tasks = of(base);
    pthread_mutex_lock(&tasks->mutex);
    struct task *task = *find(tasks, ticket);
    bool waiting = task && task->waiting;
    if (task) {
        atomic_store(&task->cancelled, true);
        task->grace_ms = grace_ms;
        if (task->has_process) tasks->processes->ops->cancel(tasks->processes, ticket, grace_ms);
        if (waiting) unqueue(tasks, task);
    }
    pthread_mutex_unlock(&tasks->mutex);
    if (!waiting) return;
    task->started_ms = os_now().mono_ms;
    deliver_fault(tasks, task, "CANCELLED", false, "cancelled", " before it was started");
    task_free(task);
}

static void tell_place(const struct tasks *tasks, const struct task *task, size_t position, tool_place_visit visit,
                       void *context)
{
    const struct tool_request *request = &task->request;
    struct tool_place place = {.among = tasks,
                               .tenant = request->tenant,
                               .run = request->run,
                               .step = request->step,
                               .logical = request->logical,
                               .engine = request->engine,
                               .waits = position > 0,
                               .position = position,
                               .slots = tasks->thread_max,
                               .since_ms = task->since_ms};
    visit(context, &place);
}

// A task that has started a process is where that is.
static void tell_places(struct tools *base, tool_place_visit visit, void *context)
{
    struct tasks *tasks = of(base);
    size_t position = 0;
    LOCKED(&tasks->mutex);
    for (const struct task *task = tasks->first; task; task = task->next)
        tell_place(tasks, task, ++position, visit, context);
    for (size_t i = 0; i < TABLE_SIZE; i++)
        for (const struct task *task = tasks->table[i]; task; task = task->same)
            if (!task->waiting && !task->has_process) tell_place(tasks, task, 0, visit, context);
    if (tasks->processes) tasks->processes->ops->places(tasks->processes, visit, context);
}

void tasks_close(struct tasks *tasks)
{
    if (!tasks) return;
    pthread_mutex_lock(&tasks->mutex);
    atomic_store(&tasks->closing, true);
    pthread_cond_broadcast(&tasks->work);
    for (size_t i = 0; i < TABLE_SIZE; i++)
        for (struct task *task = tasks->table[i]; task; task = task->same) pthread_cond_broadcast(&task->ended);
    pthread_mutex_unlock(&tasks->mutex);
    for (size_t i = 0; i < tasks->thread_count; i++) pthread_join(tasks->threads[i], NULL);
    if (tasks->processes) tasks->processes->ops->close(tasks->processes);
    for (struct task *task = tasks->first, *next; task; task = next) {
        next = task->next;
        task_free(task);
    }
    token_cache_release(tasks->tokens);
    pthread_cond_destroy(&tasks->work);
    pthread_mutex_destroy(&tasks->mutex);
    free(tasks->threads);
    free(tasks);
}

static void close_tools(struct tools *base)
{
    tasks_close(of(base));
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .places = tell_places, .close = close_tools};

enum code tasks_open(const struct task_options *options, struct tasks **out, struct error *err)
{
    struct tasks *tasks = calloc(1, sizeof(*tasks));
    size_t max = options->thread_max ? options->thread_max : THREADS_DEFAULT;
    pthread_t *threads = calloc(max, sizeof(*threads));
    if (!tasks || !threads) {
        free(tasks);
        free(threads);
        return error_nomem(err);
    }
    tasks->base.ops = &ops;
    tasks->options = *options;
    if (!tasks->options.process_max) tasks->options.process_max = PROCESSES_DEFAULT;
    tasks->threads = threads;
    tasks->thread_max = max;
    tasks->last = &tasks->first;
    tasks->log = os_log_through((struct os_log_route){0});
    os_log_through(tasks->log);
    INVARIANT(pthread_mutex_init(&tasks->mutex, NULL) == 0 && pthread_cond_init(&tasks->work, NULL) == 0);
    *out = tasks;
    return OK;
}

void tasks_connect(struct tasks *tasks, tool_deliver deliver, tool_output output, void *context)
{
    tasks->deliver = deliver;
    tasks->output = output;
    tasks->context = context;
}

struct tools *tasks_tools(struct tasks *tasks)
{
    return &tasks->base;
}
