// Results of workers: checked, handed to the engine, and answered when what they led to is durable.
#include "remote/inside.h"

#include <stdlib.h>

// One call. Freed with its answer.
struct batch {
    struct remote *remote;
    remote_reply reply;
    void *context;
    atomic_size_t left; // elements that are not decided, and the call itself while it is being read
    struct arena memory; // of what is wrong with elements
    bool shared;         // all elements are about one task: those that are not refused have the state of the first of them
    size_t lead;         // of those, the one that was decided
    size_t count;
    struct remote_answer answers[];
};

// A result on its way through the engine, with its texts.
struct handed {
    struct batch *batch;
    size_t index;
    struct digest name; // of its token
    bool stored;
    struct remote_answer then; // when it is stored
    struct worker_task *task; // referenced until the result is delivered
    struct declared_files *files;
    struct tool_result result;
    char text[];
};

static void batch_part(struct batch *batch)
{
    if (atomic_fetch_sub(&batch->left, 1) != 1) return;
    struct buf body SCOPED(buf_release) = buf_of(1 << 20);
    for (size_t i = batch->lead + 1; batch->shared && i < batch->count; i++)
        if (!batch->answers[i].refused && !batch->answers[i].state) batch->answers[i] = batch->answers[batch->lead];
    int status = write_answer(&body, batch->answers, batch->count);
    if (!atomic_load(&batch->remote->mute)) batch->reply(batch->context, buf_ok(&body) ? status : 503, buf_str(&body));
    arena_release(&batch->memory);
    free(batch);
}

static void handed_stored(void *memory)
{
    struct handed *handed = memory;
    struct remote *r = handed->batch->remote;
    handed->stored = true;
    handed->batch->answers[handed->index] = handed->then;
    if (handed->result.only_reports) return;
    LOCKED(&r->mutex);
    struct done *done = done_find(r, &handed->name);
    if (done) done->stored = true;
    r->counts.completed++;
}

// Not stored: the run belongs to another engine now, or this server is ending and the next one will ask again.
static void handed_release(void *memory)
{
    struct handed *handed = memory;
    struct remote *r = handed->batch->remote;
    if (!handed->stored) {
        LOCKED(&r->mutex);
        struct done *done = handed->result.only_reports ? NULL : done_find(r, &handed->name);
        if (done) done_remove(r, done);
        handed->batch->answers[handed->index].state = r->shut ? REMOTE_AGAIN : REMOTE_STALE;
    }
    batch_part(handed->batch);
    declared_files_free(handed->files);
    free(handed);
}

static struct handed *handed_new(struct batch *batch, size_t index, struct worker_task *task,
                                 const struct tool_result *given)
{
    const struct fault *fault = &given->fault;
    size_t size = given->output.len + fault->code.len + fault->message.len + fault->category.len + fault->detail.len +
                  given->reports.len + 6;
    struct handed *handed = malloc(sizeof(*handed) + size);
    if (!handed) return NULL;
    *handed = (struct handed){.batch = batch, .index = index, .name = task->name, .task = task, .result = *given};
    handed->then.state = REMOTE_OK;
    struct tool_result *result = &handed->result;
    char *at = handed->text;
    result->output = text_put(&at, given->output);
    result->fault.code = text_put(&at, fault->code);
    result->fault.message = text_put(&at, fault->message);
    result->fault.category = text_put(&at, fault->category);
    result->fault.detail = text_put(&at, fault->detail);
    result->reports = text_put(&at, given->reports);
    result->ticket = task->ticket;
    result->memory = handed;
    result->release = handed_release;
    result->stored = handed_stored;
    return handed;
}

static struct digest digest_of(const struct json *item)
{
    struct buf bytes SCOPED(buf_release) = buf_of((size_t)256 << 20);
    json_canon(&bytes, item);
    return sha256(buf_str(&bytes));
}

// ---- with the lock
// A token that no task has: perhaps the same was said before, and the answer was lost on its way.
static enum remote_state repeated(struct remote *r, struct str token, const struct digest *said)
{
    struct digest name = token_name(token);
    const struct done *done = done_find(r, &name);
    if (!done || !token_genuine(&r->options.key, token) || !digest_eq(&done->result, said))
        return token_state(r, token);
    return done->stored ? REMOTE_OK : REMOTE_AGAIN;
}

// `item` NULL: only events were reported of the task, and it goes on. `said` is the digest of the item: its bytes are those of a worker,
// and may be many, so they are not read while all workers wait for the lock.
static enum remote_state take_result(struct remote *r, const struct worker_call *call, struct str token, int64_t epoch,
                                     const struct json *item, const struct digest *said, struct str reports,
                                     struct batch *batch, size_t index, struct handed **out)
{
    struct worker_task *task = task_find(r, token);
    if (r->shut) return REMOTE_AGAIN;
    if (!task) return item ? repeated(r, token, said) : token_state(r, token);
    struct remote_caller caller = {.tenant = call->tenant, .pool = call->pool};
    if (task->queue || !task_allowed(task, &caller)) return REMOTE_DENIED;
    if (epoch != (int64_t)task->epoch) return REMOTE_STALE;
    struct tool_result result = {.reports = reports, .only_reports = !item};
    struct buf value SCOPED(buf_release) = buf_of((size_t)64 << 20);
    bool read = !item || result_read(item, &value, &result);
    struct handed *handed = read ? handed_new(batch, index, task, &result) : NULL;
    if (!handed) return REMOTE_AGAIN;
    task->references++;
    if (item) {
        done_add(r, &task->name, said);
        if (r->engine) handed->files = engine_declared(r->engine, task->ticket);
        task_end(r, task);
    } else {
        task_renew(r, task);
        if (task->cancelled) handed->then = (struct remote_answer){.state = REMOTE_CANCEL, .grace_ms = task->grace_ms};
        if (task->cancelled) task_told(task, true);
    }
    *out = handed;
    return REMOTE_AGAIN; // until it is stored
}

// ---- without it
static void end_log(struct remote *r, const struct handed *handed)
{
    if (!handed->task->logged || handed->result.only_reports) return;
    const struct tool_result *result = &handed->result;
    struct buf how SCOPED(buf_release) = buf_of(16384);
    remote_result_told(&how, result);
    LOCKED(&r->log_mutex);
    step_log_end(&handed->task->log, buf_str(&how));
}

// Logs and artifacts may be on a slow disk: polls, heartbeats and the engine do not wait for them.
static void hand_over(struct remote *r, struct handed **all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!all[i]) continue;
        end_log(r, all[i]);
        if (all[i]->files && all[i]->result.ok) declared_files_look(all[i]->files, &all[i]->result);
    }
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < count; i++) {
        if (!all[i]) continue;
        task_drop(all[i]->task);
        if (!r->engine) continue;
        struct tool_result result = all[i]->result; // its memory is the engine's from here on
        struct declared_files *files = all[i]->files;
        all[i]->files = NULL;
        engine_deliver_looked(r->engine, &result, files);
        all[i] = NULL;
    }
    pthread_mutex_unlock(&r->mutex);
    for (size_t i = 0; i < count; i++)
        if (all[i]) handed_release(all[i]);
}

// Answers for `count` elements; NULL, and the call is refused: no memory.
static struct batch *batch_new(struct remote *r, const struct worker_call *call, size_t count)
{
    struct batch *batch = calloc(1, sizeof(*batch) + (count + 1) * sizeof(struct remote_answer));
    if (!batch) {
        call_refuse_nomem(call);
        return NULL;
    }
    *batch = (struct batch){.remote = r, .reply = call->reply, .context = call->context, .count = count};
    atomic_init(&batch->left, 1);
    arena_init(&batch->memory, 1024, 1 << 20);
    return batch;
}

static void batch_refuse(struct batch *batch, size_t index, const struct refusal *refusal)
{
    if (!refusal) return;
    batch->answers[index].refused =
        refusal_new(&batch->memory, refusal->status, refusal->code, refusal->pointer, refusal->message);
}

void serve_results(struct remote *r, const struct worker_call *call)
{
    size_t count;
    const struct json *items = call_elements(call, &count);
    struct handed **all = ARENA_ARRAY(call->arena, count + 1, struct handed *);
    struct digest *said = ARENA_ARRAY(call->arena, count + 1, struct digest);
    struct batch *batch = all && said ? batch_new(r, call, count) : NULL;
    if (!batch) {
        if (!all || !said) call_refuse_nomem(call);
        return;
    }
    for (size_t i = 0; i < count; i++) batch_refuse(batch, i, element_check(r, call, i));
    for (size_t i = 0; i < count; i++)
        if (!batch->answers[i].refused) said[i] = digest_of(&items[i]);
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < count; i++) {
        if (batch->answers[i].refused) continue;
        batch->answers[i].state =
            take_result(r, call, json_text(json_key(&items[i], "token")), json_integer(json_key(&items[i], "epoch"), -1),
                        &items[i], &said[i], (struct str){0}, batch, i, &all[i]);
        if (all[i]) atomic_fetch_add(&batch->left, 1);
    }
    pthread_mutex_unlock(&r->mutex);
    hand_over(r, all, count);
    batch_part(batch);
}

void serve_reported(struct remote *r, const struct worker_call *call, const struct json *result, struct str reports,
                    const struct remote_answer *answers, size_t count)
{
    struct handed *handed = NULL;
    struct digest said = result ? digest_of(result) : (struct digest){0};
    size_t first = 0;
    struct batch *batch = batch_new(r, call, count);
    if (!batch) return;
    batch->shared = true;
    for (size_t i = 0; i < count; i++) {
        batch->answers[i].state = answers[i].state;
        batch_refuse(batch, i, answers[i].refused);
    }
    while (first < count && (answers[first].refused || answers[first].state == REMOTE_OK)) first++;
    batch->lead = first;
    if (first < count) {
        LOCKED(&r->mutex);
        batch->answers[first].state = take_result(r, call, json_text(json_key(&call->body, "token")),
                                                  json_integer(json_key(&call->body, "epoch"), -1), result, &said, reports,
                                                  batch, first, &handed);
        if (handed) atomic_fetch_add(&batch->left, 1);
    }
    hand_over(r, &handed, 1);
    batch_part(batch);
}
