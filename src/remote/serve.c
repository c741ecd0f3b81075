// The calls of workers: polls and heartbeats that may wait, logs, artifacts. complete.c has the results.
#include "remote/inside.h"

#include "reach/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_SIZE_MAX = 8 << 20 }; // a poll's answer ends once it is that large

// ---- answers
void answer_later(struct remote *r, remote_reply reply, void *context, int status, struct buf *body)
{
    struct worker_answer *answer = malloc(sizeof(*answer));
    INVARIANT(answer); // as losing a result
    *answer = (struct worker_answer){.reply = reply, .context = context, .status = status, .body = *body};
    *r->last_answer = answer;
    r->last_answer = &answer->next;
}

void unlock_and_answer(struct remote *r)
{
    struct worker_answer *first = r->answers;
    r->answers = NULL;
    r->last_answer = &r->answers;
    pthread_mutex_unlock(&r->mutex);
    while (first) {
        struct worker_answer *answer = first;
        first = answer->next;
        bool whole = buf_ok(&answer->body);
        answer->reply(answer->context, whole ? answer->status : 503, whole ? buf_str(&answer->body) : STR("{}"));
        buf_release(&answer->body);
        free(answer);
    }
}

void call_refuse(remote_reply reply, void *context, int status, const char *code, const char *why)
{
    struct buf body SCOPED(buf_release) = buf_of(4096);
    wire_problem(&body, status, code, why);
    buf_byte(&body, '}');
    reply(context, status, buf_str(&body));
}

void call_refuse_nomem(const struct worker_call *call)
{
    call_refuse(call->reply, call->context, 503, "UNAVAILABLE", code_text(E_NOMEM));
}

static void write_error(struct buf *out, const struct refusal *refusal)
{
    buf_text(out, out->ptr[out->len - 1] == '[' ? "{" : ",{");
    wire_text(out, "pointer", str_from(refusal->pointer));
    wire_text(out, "message", str_from(refusal->message));
    buf_byte(out, '}');
}

void call_refuse_as(const struct worker_call *call, const struct refusal *refusal)
{
    struct buf body SCOPED(buf_release) = buf_of(8192);
    char why[REFUSAL_POINTER_MAX + sizeof(refusal->message) + 2];
    snprintf(why, sizeof(why), "%s%s%s", refusal->pointer, refusal->pointer[0] ? " " : "", refusal->message);
    wire_problem(&body, refusal->status, refusal->code, why);
    wire_list(&body, "errors");
    write_error(&body, refusal);
    buf_text(&body, "]}");
    call->reply(call->context, refusal->status, buf_str(&body));
}

static enum remote_state answer_state(const struct remote_answer *answer)
{
    if (!answer->refused) return answer->state;
    return answer->refused->status == 403 ? REMOTE_DENIED : answer->refused->status == 400 ? REMOTE_INVALID : REMOTE_AGAIN;
}

static const char *answer_code(const struct remote_answer *answer)
{
    return answer->refused ? answer->refused->code : state_code(answer->state);
}

static void write_states(struct buf *out, const struct remote_answer *answers, size_t count)
{
    wire_list(out, "results");
    for (size_t i = 0; i < count; i++) {
        const char *code = answer_code(&answers[i]);
        buf_text(out, i > 0 ? ",{" : "{");
        wire_text(out, "state", str_from(state_name(answer_state(&answers[i]))));
        if (code) wire_text(out, "code", str_from(code));
        if (answers[i].refused) wire_text(out, "pointer", str_from(answers[i].refused->pointer));
        if (answers[i].refused) wire_text(out, "detail", str_from(answers[i].refused->message));
        if (answers[i].state == REMOTE_CANCEL) wire_number(out, "graceMs", answers[i].grace_ms);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void write_errors(struct buf *out, const struct remote_answer *answers, size_t count)
{
    if (!answers[0].refused) return;
    wire_list(out, "errors");
    for (size_t i = 0; i < count; i++)
        if (answers[i].refused) write_error(out, answers[i].refused);
    buf_byte(out, ']');
}

// One refusal for all elements is the answer's own status, so that a call for one task reads as any other.
int write_answer(struct buf *out, const struct remote_answer *answers, size_t count)
{
    int status = count > 0 ? state_status(answer_state(&answers[0])) : 200;
    for (size_t i = 1; i < count; i++)
        if (state_status(answer_state(&answers[i])) != status) status = 200;
    if (status == 200) {
        buf_byte(out, '{');
    } else {
        const struct refusal *refused = answers[0].refused;
        wire_problem(out, status, answer_code(&answers[0]),
                     refused ? refused->message : state_title(answers[0].state));
        write_errors(out, answers, count);
    }
    write_states(out, answers, count);
    buf_byte(out, '}');
    return status;
}

// ---- polls
static bool wants(const struct waiter *w, const struct queue_of *queue)
{
    if (!queue->first || (w->tenant.len > 0 && !str_eq(w->tenant, queue->tenant)) || !str_eq(w->pool, queue->pool))
        return false;
    for (size_t i = 0; i < w->kind_count; i++)
        if (str_eq(w->kinds[i], queue->kind)) return true;
    return w->kind_count == 0;
}

// The next poll begins with the next queue, so that no tenant and no kind waits for the others to be empty.
static void rotate(struct remote *r)
{
    struct queue_of *first = r->queues, **at = &r->queues;
    if (!first || !first->next) return;
    r->queues = first->next;
    while (*at) at = &(*at)->next;
    first->next = NULL;
    *at = first;
}

static size_t take_tasks(struct remote *r, const struct waiter *w, struct buf *out)
{
    size_t count = 0, before;
    struct worker *worker = NULL;
    const struct queue_of *first = r->queues; // if it goes, the next one is the first already
    do {
        before = count;
        for (struct queue_of *queue = r->queues, *next; queue && count < w->max && out->len < ANSWER_SIZE_MAX;
             queue = next) {
            next = queue->next;
            if (!wants(w, queue)) continue;
            struct worker_task *task = queue->first;
            if (!worker) worker = worker_seen(r, w->tenant, w->pool, w->worker);
            task_lease(r, task, worker);
            if (count++ > 0) buf_byte(out, ',');
            buf_add(out, task->wire);
        }
    } while (count > before && count < w->max && out->len < ANSWER_SIZE_MAX);
    if (count > 0 && r->queues == first) rotate(r);
    return count;
}

// ---- heartbeats
static struct remote_answer beat_state(struct remote *r, const struct waiter *w, struct str token, bool *news)
{
    struct worker_task *task = task_find(r, token);
    struct remote_caller caller = {.tenant = w->tenant, .pool = w->pool};
    struct remote_answer answer = {.state = REMOTE_OK};
    if (!task || task->queue || !task_allowed(task, &caller)) {
        answer.state = !task && token_genuine(&r->options.key, token) ? REMOTE_STALE : REMOTE_DENIED;
        *news = true;
    } else if (task->cancelled) {
        answer = (struct remote_answer){.state = REMOTE_CANCEL, .grace_ms = task->grace_ms};
        *news = *news || !task->told;
    }
    return answer;
}

static bool beat_news(struct remote *r, const struct waiter *w)
{
    bool news = false;
    for (size_t i = 0; !news && i < w->token_count; i++) (void)beat_state(r, w, w->tokens[i], &news);
    return news;
}

// Whether the worker has a task that it must stop and does not know of: perhaps one that came after it had asked.
static bool owes_news(const struct remote *r, const struct waiter *w)
{
    for (const struct worker *worker = r->workers; worker; worker = worker->next)
        if (worker->untold > 0 && str_eq(worker->name, w->worker) &&
            (w->tenant.len == 0 || str_eq(worker->tenant, w->tenant)) &&
            (w->pool.len == 0 || str_eq(worker->pool, w->pool)))
            return true;
    return false;
}

// Tokens are looked up when something has happened, not at every poll.
static bool beat_is_due(struct remote *r, struct waiter *w)
{
    if (w->looked && w->news == r->news) return false;
    w->looked = true;
    w->news = r->news;
    return owes_news(r, w) || beat_news(r, w);
}

static void answer_beat(struct remote *r, struct waiter *w)
{
    struct buf body = buf_of(1 << 20);
    struct remote_answer *answers = ARENA_ARRAY(&w->arena, w->token_count + 1, struct remote_answer);
    bool news = false;
    for (size_t i = 0; answers && i < w->token_count; i++) {
        answers[i] = beat_state(r, w, w->tokens[i], &news);
        struct worker_task *task = answers[i].state == REMOTE_CANCEL ? task_find(r, w->tokens[i]) : NULL;
        if (task) task_told(task, true);
    }
    body.failed = !answers;
    buf_byte(&body, '{');
    wire_number(&body, "leaseMs", r->options.lease_ms);
    if (answers) write_states(&body, answers, w->token_count);
    buf_byte(&body, '}');
    answer_later(r, w->reply, w->context, 200, &body);
}

// ---- those who wait
static void waiter_free(struct waiter *w)
{
    arena_release(&w->arena);
    free(w);
}

static bool try_waiter(struct remote *r, struct waiter *w, int64_t now)
{
    struct buf body;
    if (r->shut || r->draining) {
        buf_init(&body, 4096);
        wire_problem(&body, 503, "UNAVAILABLE", "the server is ending");
        buf_byte(&body, '}');
        answer_later(r, w->reply, w->context, 503, &body);
        return true;
    }
    if (w->beat) {
        if (w->until > now && !beat_is_due(r, w)) return false;
        answer_beat(r, w);
        return true;
    }
    if (r->waiting == 0 && w->until > now) return false;
    const struct worker *worker = worker_find(r, w->tenant, w->pool, w->worker);
    bool gone = (w->alive && !w->alive(w->context)) || (worker && worker->suspect);
    buf_init(&body, (size_t)512 << 20);
    buf_byte(&body, '{');
    wire_list(&body, "tasks");
    size_t count = gone ? 0 : take_tasks(r, w, &body);
    if (count == 0 && w->until > now && !gone) {
        buf_release(&body);
        return false;
    }
    buf_byte(&body, ']');
    wire_number(&body, "waitedMs", now - w->since);
    buf_byte(&body, '}');
    answer_later(r, w->reply, w->context, 200, &body);
    return true;
}

void serve_waiters(struct remote *r)
{
    int64_t now = remote_now(r);
    for (struct waiter **at = &r->waiters; *at;) {
        struct waiter *w = *at;
        if (!try_waiter(r, w, now)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        waiter_free(w);
    }
    r->last_waiter = &r->waiters;
    while (*r->last_waiter) r->last_waiter = &(*r->last_waiter)->next;
}

static void wait_or_answer(struct remote *r, struct waiter *w)
{
    pthread_mutex_lock(&r->mutex);
    int64_t now = remote_now(r);
    w->since = now;
    w->until = w->until > 0 ? now + w->until : now;
    struct remote_caller caller = {.tenant = w->tenant, .pool = w->pool};
    for (size_t i = 0; i < w->token_count; i++) { // whether the answer comes now or later: the worker lives
        struct worker_task *task = task_find(r, w->tokens[i]);
        if (task && !task->queue && task_allowed(task, &caller)) task_renew(r, task);
    }
    if (try_waiter(r, w, now)) {
        waiter_free(w);
    } else {
        *r->last_waiter = w;
        r->last_waiter = &w->next;
        pthread_cond_signal(&r->changed); // its time is to be kept
    }
    unlock_and_answer(r);
}

static bool keep_strings(struct arena *arena, const struct json *list, const char *key, const struct str **out,
                         size_t *count)
{
    size_t given = json_is(list, JSON_ARRAY) ? list->count : 0;
    struct str *all = ARENA_ARRAY(arena, given + 1, struct str);
    for (size_t i = 0; all && i < given; i++) {
        struct str text = json_text(key ? json_key(&list->items[i], key) : &list->items[i]);
        all[i] = arena_copy(arena, text);
        if (!all[i].ptr) all = NULL;
    }
    *out = all;
    *count = given;
    return all != NULL;
}

static void note_worker(struct remote *r, const struct worker_call *call, const struct waiter *w)
{
    const struct json *draining = json_key(&call->body, "draining");
    LOCKED(&r->mutex);
    struct worker *worker = worker_seen(r, w->tenant, w->pool, w->worker);
    if (worker) worker->slots = json_integer(json_key(&call->body, "slots"), worker->slots);
    if (worker) worker->draining = json_true(draining);
}

static void serve_waiting_call(struct remote *r, const struct worker_call *call)
{
    struct waiter *w = calloc(1, sizeof(*w));
    if (!w) {
        call_refuse_nomem(call);
        return;
    }
    arena_init(&w->arena, 4096, (size_t)64 << 20);
    int64_t wait = json_integer(json_key(&call->body, "waitMs"), 0);
    int64_t max = json_integer(json_key(&call->body, "max"), 1);
    w->beat = call->kind == REMOTE_HEARTBEAT;
    w->until = wait < 0 ? 0 : wait > REMOTE_WAIT_MAX_MS ? REMOTE_WAIT_MAX_MS : wait;
    if (w->beat && w->until > r->options.lease_ms / 3) w->until = r->options.lease_ms / 3;
    w->max = (uint32_t)(max < 0 ? 0 : max > REMOTE_BATCH_MAX ? REMOTE_BATCH_MAX : max);
    w->reply = call->reply;
    w->alive = call->alive;
    w->context = call->context;
    w->tenant = call->tenant;
    w->pool = call->pool;
    w->worker = call->worker;
    bool kept =
        ARENA_KEEP(&w->arena, &w->tenant, &w->pool, &w->worker) &&
        keep_strings(&w->arena, json_key(&call->body, "kinds"), NULL, &w->kinds, &w->kind_count) &&
        keep_strings(&w->arena, w->beat ? json_key(&call->body, "tasks") : NULL, "token", &w->tokens, &w->token_count);
    if (!kept) {
        waiter_free(w);
        call_refuse_nomem(call);
        return;
    }
    if (!w->beat) note_worker(r, call, w);
    wait_or_answer(r, w);
}

// ---- logs
struct chunk {
    struct worker_task *task; // referenced
    bool is_stderr;
    struct str text;
};

static void live_lines(struct remote *r, const struct worker_task *task, bool is_stderr, struct str text)
{
    while (r->engine && text.len > 0) {
        size_t end = str_find(text, '\n', 0);
        struct str line = str_slice(text, 0, end);
        if (str_utf8(line)) engine_line(r->engine, task->ticket, is_stderr, line);
        text = str_slice(text, end < text.len ? end + 1 : end, text.len);
    }
}

// A chunk says at which byte of its stream it begins, so that one that comes twice is taken once.
static enum remote_state take_chunk(struct remote *r, const struct remote_caller *caller, const struct json *item,
                                    struct chunk *chunk)
{
    struct str token = json_text(json_key(item, "token")), stream = json_text(json_key(item, "stream"));
    struct str text = json_text(json_key(item, "text"));
    struct worker_task *task;
    enum remote_state state = task_leased(r, caller, token, &task);
    if (!task) return state;
    bool is_stderr = str_is(stream, "stderr");
    int64_t offset = json_integer(json_key(item, "offset"), (int64_t)task->log_next[is_stderr]);
    task_renew(r, task);
    uint64_t known = task->log_next[is_stderr] > (uint64_t)offset ? task->log_next[is_stderr] - (uint64_t)offset : 0;
    if (known >= text.len) return REMOTE_OK;
    task->log_next[is_stderr] = (uint64_t)offset + text.len;
    text = str_slice(text, (size_t)known, text.len);
    live_lines(r, task, is_stderr, text);
    task->logged = true;
    task->references++;
    *chunk = (struct chunk){.task = task, .is_stderr = is_stderr, .text = text};
    return REMOTE_OK;
}

static void serve_logs(struct remote *r, const struct worker_call *call)
{
    size_t count;
    const struct json *items = call_elements(call, &count);
    struct remote_answer *answers = ARENA_ARRAY(call->arena, count + 1, struct remote_answer);
    struct chunk *chunks = ARENA_ARRAY(call->arena, count + 1, struct chunk);
    if (!answers || !chunks) {
        call_refuse_nomem(call);
        return;
    }
    struct remote_caller caller = {.tenant = call->tenant, .pool = call->pool};
    for (size_t i = 0; i < count; i++) answers[i].refused = element_check(r, call, i);
    // What is counted as taken is written before another call takes more, and before a result ends the log.
    pthread_mutex_lock(&r->log_mutex);
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < count; i++)
        if (!answers[i].refused) answers[i].state = take_chunk(r, &caller, &items[i], &chunks[i]);
    pthread_mutex_unlock(&r->mutex);
    for (size_t i = 0; i < count; i++)
        if (chunks[i].task) step_log_take(&chunks[i].task->log, chunks[i].is_stderr, chunks[i].text);
    pthread_mutex_unlock(&r->log_mutex);
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < count; i++)
        if (chunks[i].task) task_drop(chunks[i].task);
    pthread_mutex_unlock(&r->mutex);
    struct buf body SCOPED(buf_release) = buf_of(1 << 20);
    int status = write_answer(&body, answers, count);
    call->reply(call->context, status, buf_str(&body));
}

// ---- all of them
static const char *denied_because(const struct worker_call *call)
{
    struct str pool = json_text(json_key(&call->body, "pool")), tenant = json_text(json_key(&call->body, "tenant"));
    if (pool.len > 0 && !str_eq(pool, call->pool)) return "the credentials are for another pool";
    if (tenant.len > 0 && !str_eq(tenant, call->tenant)) return "the credentials are for another tenant";
    return NULL;
}

static void serve_parsed(struct remote *r, struct worker_call *call, const struct remote_caller *caller)
{
    call->worker = json_text(json_key(&call->body, "worker"));
    call->execution = caller->execution;
    call->tenant = caller->tenant.len > 0 ? caller->tenant : json_text(json_key(&call->body, "tenant"));
    call->pool = caller->pool.len > 0 ? caller->pool : json_text(json_key(&call->body, "pool"));
    if (call->pool.len == 0 && call->kind == REMOTE_POLL) call->pool = STR("default");
    const struct refusal *refusal = call_check(r, call);
    const char *why = refusal ? NULL : denied_because(call);
    if (refusal)
        call_refuse_as(call, refusal);
    else if (why)
        call_refuse(call->reply, call->context, 403, "AUTHZ_DENIED", why);
    else if (call->kind == REMOTE_POLL || call->kind == REMOTE_HEARTBEAT)
        serve_waiting_call(r, call);
    else if (call->kind == REMOTE_LOGS)
        serve_logs(r, call);
    else if (call->kind == REMOTE_EVENTS)
        serve_events(r, call);
    else
        serve_results(r, call);
}

void remote_serve(struct remote *r, enum remote_call kind, const struct remote_caller *caller, struct str body,
                  remote_reply reply, void *context)
{
    struct error err = {0};
    struct arena arena SCOPED(arena_release) = arena_of(16384, (size_t)256 << 20);
    struct worker_call call = {
        .kind = kind, .arena = &arena, .reply = reply, .alive = caller->alive, .context = context, .caller = caller};
    enum code rc = json_parse(body, &json_limits_result, &arena, &call.body, &err);
    if (rc)
        call_refuse(reply, context, rc == E_NOMEM ? 503 : 400, "INVALID_REQUEST", err.message);
    else
        serve_parsed(r, &call, caller);
}

// ---- artifacts
static enum code artifact_dir(const struct worker_task *task, struct str name, struct buf *dir, struct error *err)
{
    bool declared = false;
    for (size_t i = 0; i < task->artifact_count; i++) declared = declared || str_eq(task->artifacts[i], name);
    if (!declared || task->artifacts_dir.len == 0)
        return error_set(err, E_NOT_FOUND, "the step declares no artifact \"%.*s\" that can be sent", STR_ARG(name));
    buf_add(dir, task->artifacts_dir);
    return buf_ok(dir) ? OK : error_set(err, E_LIMIT, "the path is too long");
}

// Steps of the run write into that directory, too: a link that one of them left is replaced, never followed.
static enum code write_artifact(const char *dir, struct str name, struct str bytes, struct error *err)
{
    int root;
    enum code rc = os_make_dirs(dir, err);
    if (!rc) rc = reach_root(dir, &root, err);
    if (rc) return rc;
    rc = reach_write(root, name, bytes, err);
    close(root);
    return rc == E_DENIED ? E_NOT_FOUND : rc;
}

// With the lock: the task that the caller has leased, or why not, in the words of a request of its own.
static enum code leased_task(struct remote *r, const struct remote_caller *caller, struct str token,
                             struct worker_task **out, struct error *err)
{
    enum remote_state state = task_leased(r, caller, token, out);
    if (*out) return OK;
    return state == REMOTE_STALE ? error_set(err, E_CONFLICT, "STALE_ATTEMPT: the attempt is over")
                                 : error_set(err, E_DENIED, "the token is of no task of the caller's");
}

enum code remote_whose(struct remote *r, const struct remote_caller *caller, struct str token, struct arena *arena,
                       struct str *tenant, struct str *run, struct error *err)
{
    struct worker_task *task;
    LOCKED(&r->mutex);
    enum code rc = leased_task(r, caller, token, &task, err);
    if (!rc) {
        *tenant = task->tenant;
        *run = task->run;
        task_renew(r, task);
        if (!ARENA_KEEP(arena, tenant, run)) rc = error_nomem(err);
    }
    return rc;
}

enum code remote_artifact(struct remote *r, const struct remote_caller *caller, struct str token, struct str name,
                          struct str bytes, struct error *err)
{
    struct buf dir SCOPED(buf_release) = buf_of(8192);
    pthread_mutex_lock(&r->mutex);
    struct worker_task *task;
    enum code rc = leased_task(r, caller, token, &task, err);
    if (!rc) rc = artifact_dir(task, name, &dir, err);
    if (!rc) task_renew(r, task);
    pthread_mutex_unlock(&r->mutex);
    if (!rc) rc = write_artifact(dir.ptr, name, bytes, err);
    return rc;
}
