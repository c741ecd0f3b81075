// Notes of the program around the engine (S15). They ride in the batch of a turn; what does not fit fails alone.
#include "engine/inside.h"

enum code copy_puts(struct arena *arena, const struct note_put *notes, size_t count, const struct note_put **out,
                    struct error *err)
{
    struct note_put *copies = ARENA_ARRAY(arena, count, struct note_put);
    bool ok = copies != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        copies[i] = notes[i];
        ok = ARENA_KEEP(arena, &copies[i].space, &copies[i].key, &copies[i].value);
    }
    *out = copies;
    return ok ? OK : error_nomem(err);
}

enum code engine_put(struct engine *engine, const struct note_put *notes, size_t count,
                     void (*done)(void *context, enum code rc, const struct error *why), void *context,
                     struct error *err)
{
    struct arena *arena = arena_make(SIZE_MAX);
    struct put *put = arena ? ARENA_NEW(arena, struct put) : NULL;
    enum code rc = put ? copy_puts(arena, notes, count, &put->notes, err) : error_nomem(err);
    if (rc) {
        arena_drop(arena);
        return rc;
    }
    put->count = count;
    put->done = done;
    INVARIANT(!engine->last_put == !engine->puts);
    put->context = context;
    put->arena = arena;
    struct put **last = engine->last_put ? engine->last_put : &engine->puts;
    *last = put;
    engine->last_put = &put->next;
    return OK;
}

struct put *puts_take(struct engine *engine)
{
    struct put *puts = engine->puts;
    engine->puts = NULL;
    engine->last_put = NULL;
    return puts;
}

void puts_return(struct engine *engine, struct put *puts)
{
    if (!puts) return;
    struct put **last = &puts->next;
    while (*last) last = &(*last)->next;
    *last = engine->puts;
    if (!engine->puts) engine->last_put = last;
    engine->puts = puts;
}

static void tell(struct put *put, enum code rc, const struct error *why)
{
    if (put->done) put->done(put->context, rc, rc ? why : NULL);
    arena_drop(put->arena); // which it lives in
}

void puts_tell(struct put *puts, enum code rc, const struct error *why)
{
    while (puts) {
        struct put *next = puts->next;
        tell(puts, rc, why);
        puts = next;
    }
}

// What does not fit is known before the batch is made. Everything else is a reason to try again, or to end.
bool put_is_refused(enum code rc)
{
    return rc && !code_is_outage(rc) && rc != E_FULL && rc != E_LOCKED;
}

enum code puts_draft(struct put *puts, struct note_draft *draft, struct error *err)
{
    for (struct put *put = puts; put; put = put->next) {
        put->why = (struct error){0};
        put->refused = note_draft_add(draft, put->notes, put->count, &put->why);
        if (put->refused && !put_is_refused(put->refused)) return error_set(err, put->refused, "%s", put->why.message);
    }
    return OK;
}

enum code draft_end(struct engine *engine, const struct resident *resident, const struct outcome *outcome,
                    struct note_draft *draft, struct error *err)
{
    enum { NOTES = 2 };
    const struct engine_options *options = &engine->options;
    bool ends = false;
    for (size_t i = 0; options->ending && i < outcome->moment_count && !ends; i++)
        ends = moment_is_terminal(outcome->moments[i].kind);
    if (!ends) return OK;
    struct note_put *puts = ARENA_ARRAY(&engine->turn, NOTES, struct note_put);
    if (!puts) return error_nomem(err);
    size_t count =
        options->ending(options->ending_context, resident->ids.tenant, resident->ids.run, &engine->turn, puts);
    INVARIANT(count <= NOTES);
    return count ? note_draft_add(draft, puts, count, err) : OK;
}

void puts_settle(struct put *puts)
{
    while (puts) {
        struct put *next = puts->next;
        struct error why = puts->why;
        tell(puts, puts->refused, &why);
        puts = next;
    }
}

enum code puts_one_by_one(struct engine *engine, struct put **puts, struct error *err)
{
    while (*puts) {
        struct put *put = *puts;
        struct error why = {0};
        struct store_batch batch = {.notes = put->notes, .note_count = put->count};
        enum code rc = store_append(engine->store, &batch, engine->now.wall_ms, &engine->turn, &why);
        bool lost =
            rc == E_CONFLICT && store_fenced(engine->store); // the put is as good as any: it is this engine that is not
        if (rc && (lost || !put_is_refused(rc))) return error_set(err, rc, "%s", why.message);
        *puts = put->next;
        tell(put, rc, &why);
    }
    return OK;
}
