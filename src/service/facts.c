// What a run was started with, from the first record that tells it.
#include "service/inside.h"

struct looking {
    struct arena *arena;
    struct run_origin *out;
    bool found;
};

static enum code look(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    struct looking *looking = context;
    (void)record;
    (void)seal;
    if (!moment || !moment->start) return OK;
    *looking->out = (struct run_origin){.triggered_by = arena_copy(looking->arena, moment->start->triggered_by),
                                        .profile = arena_copy(looking->arena, moment->start->profile),
                                        .queue = arena_copy(looking->arena, moment->start->queue)};
    looking->found = true;
    return looking->out->triggered_by.ptr && looking->out->profile.ptr && looking->out->queue.ptr ? E_CANCELLED
                                                                                                  : E_NOMEM;
}

enum code service_origin(struct store *store, const struct run_head *head, struct arena *arena, struct run_origin *out,
                         struct error *err)
{
    struct looking looking = {.arena = arena, .out = out};
    *out = (struct run_origin){0};
    enum code rc = store_replay(store, head->ids.tenant, head->ids.run, look, &looking, err);
    if (rc != E_CANCELLED) return rc;
    *err = (struct error){0};
    return looking.found ? OK : error_set(err, E_CORRUPT, "the log does not begin with a start");
}
