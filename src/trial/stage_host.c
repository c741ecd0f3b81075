// The stage with an engine in another process: what that one dispatched, stored and wants is fetched after each act, when nothing moves
// there any more. Everything else (what steps give back, what people send, what is due next) is as with an engine of our own.
#include "trial/inside.h"

#include <stdlib.h>

static struct trial_now now_of(const struct stage *stage)
{
    return (struct trial_now){.mono_ms = stage->mono_ms, .wall_ms = stage->wall_ms};
}

static void hand(void *context, struct tool_result *result)
{
    const struct stage *stage = context;
    stage->host->deliver(stage->host->context, result, now_of(stage));
}

void host_enter(struct stage *stage)
{
    stage->fake.hand = hand;
    stage->news.deadline_ms = INT64_MAX;
}

enum code host_begin(struct stage *stage, const struct start_request *request, struct error *err)
{
    return stage->host->start(stage->host->context, request, now_of(stage), err);
}

void host_send(struct stage *stage, struct letter *letter, struct str run)
{
    struct engine_decision decision = {.signal_id = letter->signal.id, .type = letter->signal.type};
    struct error err = {0};
    const struct trial_host *host = stage->host;
    enum code rc = host->signal(host->context, run, &letter->signal, now_of(stage), stage->arena, &decision, &err);
    if (rc) {
        letter->state = LETTER_DECIDED;
        people_refused(stage, letter, err.message);
        return;
    }
    people_decided(stage, &decision);
    stage_point(stage, BOUNDARY_DECIDED, STR(""), str_from(signal_name(letter->signal.type)));
}

// ---- what was stored

struct hearing {
    struct stage *stage;
    struct stage_run *run;
    struct str id;
};

static enum code hear(void *context, const struct record *record, const struct moment *m, const struct seal *seal)
{
    (void)seal;
    struct hearing *hearing = context;
    if (!hearing->run) hearing->run = stage_learn(hearing->stage, hearing->id, m ? m->start : NULL);
    if (hearing->run) stage_hear(hearing->stage, hearing->run, record, m);
    return OK;
}

// A run is new until its first record was read: what it is a child of stands there.
static enum code hear_run(struct stage *stage, struct str tenant, struct str id, struct error *err)
{
    struct hearing hearing = {.stage = stage, .id = id, .run = stage_run_of(stage, id)};
    struct replay_cursor cursor = hearing.run ? hearing.run->heard : (struct replay_cursor){0};
    enum code rc = store_replay_from(stage_store(stage), tenant, id, &cursor, hear, &hearing, err);
    struct stage_run *known = stage_run_of(stage, id); // others may have been learnt meanwhile
    if (known) known->heard = cursor;
    return rc;
}

static enum code hear_all(struct stage *stage, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, (size_t)256 << 20);
    struct run_heads heads = {0};
    enum code rc = stage_family(stage, &arena, &heads, err);
    for (size_t i = 0; !rc && i < heads.count; i++) { // parents first
        const struct run_head *head = &heads.items[i];
        struct str id = arena_copy(stage->arena, head->ids.run);
        rc = id.ptr ? hear_run(stage, head->ids.tenant, id, err) : error_nomem(err);
    }
    return rc;
}

// ---- what was dispatched

struct ranked {
    size_t rank, at;
    struct str path;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    int order = str_cmp(x->path, y->path);
    return order ? order : x->at < y->at ? -1 : 1;
}

static size_t rank_of(const struct trial_order *order, struct str path, uint32_t logical)
{
    for (size_t i = 0; order && i < order->count; i++)
        if (order->items[i].logical == logical && str_eq(order->items[i].path, path)) return i;
    return SIZE_MAX;
}

// Attempts that were dispatched together reach us in any order: they are begun in that of the play we are compared with.
static enum code begin_all(struct stage *stage, struct error *err)
{
    const struct trial_news *news = &stage->news;
    struct ranked *ranked = ARENA_ARRAY(stage->arena, news->request_count + 1, struct ranked);
    if (!ranked) return error_nomem(err);
    for (size_t i = 0; i < news->request_count; i++) {
        const struct tool_request *request = &news->requests[i];
        struct str path = stage_path(stage, request->run, request->step);
        ranked[i] = (struct ranked){.rank = rank_of(stage->options->order, path, request->logical), .at = i, .path = path};
    }
    qsort(ranked, news->request_count, sizeof(*ranked), by_rank);
    enum code rc = OK;
    for (size_t i = 0; !rc && !stage->died && i < news->request_count; i++)
        rc = stage->fake.base.ops->start(&stage->fake.base, &news->requests[ranked[i].at], err);
    return rc;
}

static size_t stopping(const struct stage *stage)
{
    size_t count = 0;
    for (size_t i = 0; i < stage->fake.count; i++) count += stage->fake.answers[i].cancelled;
    return count;
}

enum code host_turns(struct stage *stage, struct error *err)
{
    const struct trial_host *host = stage->host;
    enum code rc = host->settle(host->context, now_of(stage), stage->fake.count, stopping(stage), &stage->news, err);
    stage->result->turns++;
    if (!rc) rc = hear_all(stage, err);
    if (!rc) rc = begin_all(stage, err);
    for (size_t i = 0; !rc && i < stage->news.stop_count; i++)
        stage->fake.base.ops->cancel(&stage->fake.base, stage->news.stops[i], 0);
    return rc;
}
