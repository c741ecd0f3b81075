// The table of runs: what the engine wants outside for each of them, and results on their way through the engine.
#include "temporal/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

// ---- the table

struct hosted *hosted_find(struct temporal_host *host, struct str id)
{
    struct hosted *run = host->table[str_hash(id) % HOST_TABLE];
    while (run && !str_eq(run->id, id)) run = run->next;
    return run;
}

struct str put_text(char **at, struct str text)
{
    char *to = *at;
    if (text.len > 0) memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    *at = to + text.len + 1;
    return (struct str){to, text.len};
}

struct hosted *hosted_get(struct temporal_host *host, struct str tenant, struct str name)
{
    size_t size = 2 * (tenant.len + name.len) + 8;
    struct hosted *run = calloc(1, sizeof(*run) + size);
    if (!run) return NULL;
    char *at = run->text;
    run->tenant = put_text(&at, tenant);
    run->run = put_text(&at, name);
    run->id = (struct str){at, tenant.len + 1 + name.len};
    snprintf(at, tenant.len + name.len + 2, "%.*s/%.*s", STR_ARG(tenant), STR_ARG(name));
    struct hosted *known = hosted_find(host, run->id);
    if (known) {
        free(run);
        return known;
    }
    buf_init(&run->plan, TEXT_MAX);
    buf_init(&run->reason, TEXT_MAX);
    struct hosted **slot = &host->table[str_hash(run->id) % HOST_TABLE];
    run->next = *slot;
    *slot = run;
    return run;
}

struct hosted *hosted_known(struct temporal_host *host, struct str tenant, struct str name)
{
    struct buf id = buf_of(1024);
    buf_printf(&id, "%.*s/%.*s", STR_ARG(tenant), STR_ARG(name));
    struct hosted *run = buf_ok(&id) ? hosted_find(host, buf_str(&id)) : NULL;
    buf_release(&id);
    return run;
}

void wanted_free(struct wanted *wanted)
{
    free(wanted->packed);
    free(wanted);
}

struct wanted *wanted_find(const struct hosted *run, uint64_t ticket)
{
    struct wanted *wanted = run->wanted;
    while (wanted && wanted->ticket != ticket) wanted = wanted->next;
    return wanted;
}

void hosted_free(struct hosted *run)
{
    while (run->wanted) {
        struct wanted *next = run->wanted->next;
        wanted_free(run->wanted);
        run->wanted = next;
    }
    hosted_task_free(run->task);
    hosted_task_free(run->cached);
    hosted_timers_free(run);
    buf_release(&run->plan);
    buf_release(&run->reason);
    free(run);
}

void hosted_drop(struct temporal_host *host, struct hosted *run)
{
    bool busy = run->wanted || run->unsettled > 0 || run->calls > 0 || run->is_dirty || run->is_moved || run->task;
    if (busy || (!run->has_left && (!run->has_ended || !run->is_closed))) return;
    struct hosted **at = &host->table[str_hash(run->id) % HOST_TABLE];
    while (*at != run) at = &(*at)->next;
    *at = run->next;
    hosted_forget(host, run);
    hosted_free(run);
}

void hosted_touch(struct temporal_host *host, struct hosted *run)
{
    if (run->is_dirty) return;
    run->is_dirty = true;
    run->next_dirty = host->dirty;
    host->dirty = run;
}

bool hosted_needs_task(const struct hosted *run)
{
    if (run->is_closed) return false;
    if (run->has_ended) return true;
    for (size_t i = 0; i < run->awaited_count; i++)
        if (!run->awaited[i]->is_set) return true;
    for (const struct wanted *wanted = run->wanted; wanted; wanted = wanted->next)
        if ((wanted->is_packed && !wanted->is_sent) || wanted->is_unread || (wanted->is_cancelled && !wanted->is_stopping)) return true;
    return false;
}

void hosted_task_free(struct workflow_task *task)
{
    if (!task) return;
    struct arena arena = task->arena;
    arena_release(&arena);
}

void hosted_forget(struct temporal_host *host, struct hosted *run)
{
    if (!run->cached) return;
    hosted_task_free(run->cached);
    run->cached = NULL;
    host->cached--;
}

// Any of those that are known: one that is asked for again is read again.
static void forget_one(struct temporal_host *host)
{
    for (size_t i = 0; i < HOST_TABLE; i++) {
        host->cache_hand = (host->cache_hand + 1) % HOST_TABLE;
        for (struct hosted *run = host->table[host->cache_hand]; run; run = run->next)
            if (run->cached) {
                hosted_forget(host, run);
                return;
            }
    }
}

void hosted_task_keep(struct temporal_host *host, struct hosted *run)
{
    hosted_forget(host, run);
    if (host->cached >= host->options.settings.cached_runs) forget_one(host);
    run->cached = run->task;
    run->task = NULL;
    host->cached++;
}

// ---- results on their way through the engine

struct handed {
    struct temporal_host *host;
    struct str id; // of the workflow
    bool is_stored;
    struct arena arena; // owns its texts, and this
};

static void settled(struct handed *handed)
{
    struct temporal_host *host = handed->host;
    struct hosted *run = hosted_find(host, handed->id);
    if (!run) return;
    INVARIANT(run->unsettled > 0);
    run->unsettled--;
    hosted_touch(host, run); // what the result has led to is dispatched before the flush of the same turn
}

static void handed_stored(void *memory)
{
    struct handed *handed = memory;
    pthread_mutex_lock(&handed->host->mutex);
    handed->is_stored = true;
    settled(handed);
    pthread_mutex_unlock(&handed->host->mutex);
}

void hosted_flush(struct temporal_host *host)
{
    while (host->dirty) {
        struct hosted *run = host->dirty;
        host->dirty = run->next_dirty;
        run->is_dirty = false;
        hosted_settle(host, run);
    }
}

// Not stored: it came too late, or the engine is ending. There may be no flush after it.
static void handed_release(void *memory)
{
    struct handed *handed = memory;
    struct temporal_host *host = handed->host;
    if (!handed->is_stored) {
        pthread_mutex_lock(&host->mutex);
        settled(handed);
        hosted_flush(host);
        pthread_mutex_unlock(&host->mutex);
    }
    struct arena arena = handed->arena;
    arena_release(&arena);
}

static bool copy_texts(struct arena *arena, struct tool_result *result)
{
    return ARENA_KEEP(arena, &result->output, &result->errors) && fault_keep(arena, &result->fault);
}

static void unlink_wanted(struct hosted *run, const struct wanted *wanted)
{
    struct wanted **at = &run->wanted;
    while (*at != wanted) at = &(*at)->next;
    *at = wanted->next;
}

// The attempt is over: the engine hears of it, and the host forgets it. Without memory for the texts it is as good as lost.
void wanted_end(struct temporal_host *host, struct hosted *run, struct wanted *wanted, struct tool_result *result)
{
    uint64_t ticket = wanted->ticket;
    unlink_wanted(run, wanted);
    host->unpacked -= !wanted->is_packed;
    wanted_free(wanted);
    if (!host->engine) return;
    struct arena arena = arena_of(4096, (size_t)64 << 20);
    struct handed *handed = ARENA_NEW(&arena, struct handed);
    struct str id = handed ? arena_copy(&arena, run->id) : (struct str){0};
    struct tool_result out = *result;
    if (handed && id.ptr && copy_texts(&arena, &out)) {
        *handed = (struct handed){.host = host, .id = id, .arena = arena};
        out.memory = handed;
        out.stored = handed_stored;
        out.release = handed_release;
        run->unsettled++;
    } else {
        out = (struct tool_result){.lost = true};
        arena_release(&arena);
    }
    out.ticket = ticket;
    engine_deliver(host->engine, &out);
}
