// What a run was started with, from the first record that says it, and the run that an EngineRunRef names.
#include "reading/reading.h"

#include "contract/profile.h"

struct looking {
    struct arena *arena;
    struct start_facts *out;
    bool found;
};

static enum code look(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    struct looking *looking = context;
    (void)record;
    (void)seal;
    if (!moment || !moment->start) return OK;
    const struct start_facts *from = moment->start;
    struct start_facts *to = looking->out;
    *to = (struct start_facts){.triggered_by = from->triggered_by,
                               .profile = from->profile,
                               .queue = from->queue,
                               .engine_type = from->engine_type,
                               .engine_place = from->engine_place,
                               .plan_uri = from->plan_uri,
                               .plan_sha256 = from->plan_sha256};
    looking->found = true;
    bool kept = ARENA_KEEP(looking->arena, &to->triggered_by, &to->profile, &to->queue, &to->engine_type, &to->engine_place,
                           &to->plan_uri, &to->plan_sha256);
    return kept ? E_CANCELLED : E_NOMEM;
}

enum code reading_origin(struct store *store, const struct run_head *head, struct arena *arena, struct start_facts *out,
                         struct error *err)
{
    struct looking looking = {.arena = arena, .out = out};
    *out = (struct start_facts){0};
    enum code rc = store_replay(store, head->ids.tenant, head->ids.run, look, &looking, err);
    if (rc != E_CANCELLED) return rc;
    *err = (struct error){0};
    return looking.found ? OK : error_set(err, E_CORRUPT, "the log does not begin with a start");
}

enum code reading_resolve(struct store *store, struct str tenant, struct str text, struct arena *arena, struct str *run,
                          struct error *err)
{
    struct run_ref given, own;
    struct run_head head;
    struct start_facts start;
    *run = text;
    if (!run_ref_is(text)) return OK;
    enum code rc = run_ref_told(text, arena, &given, err);
    if (!rc) rc = store_head(store, tenant, given.run_id, arena, &head, err);
    if (!rc) rc = reading_origin(store, &head, arena, &start, err);
    if (rc) return rc;
    own = run_ref_of(&head.ids, &start);
    if (!run_ref_names(&given, &own))
        return error_set(err, E_NOT_FOUND, "there is no run %.*s", STR_ARG(text));
    *run = head.ids.run;
    return OK;
}
