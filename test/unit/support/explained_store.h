// The runs of a store, all explained. Header-only.
#ifndef CAIRN_TEST_UNIT_SUPPORT_EXPLAINED_STORE_H
#define CAIRN_TEST_UNIT_SUPPORT_EXPLAINED_STORE_H

#include "engine/engine.h"
#include "unit/support/explained.h"

UNUSED static enum code explained_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                                       struct error *err)
{
    return store_blob(context, sha256, arena, out, err);
}

UNUSED static enum code explained_record(void *context, const struct record *record, const struct moment *moment,
                                         const struct seal *seal)
{
    struct explained *x = context;
    struct error err = {0};
    struct json body;
    (void)seal;
    if (moment) {
        explained_moment(x, moment, record->seq);
        return OK;
    }
    if (!str_is(record->type, "decision")) return OK;
    CHECK_OK(json_parse(record->bytes, NULL, &x->arena, &body, &err), &err);
    CHECK_OK(explain_decision(x->explain, &body, record->seq, &err), &err);
    return OK;
}

UNUSED static void explained_store(struct store *store)
{
    struct arena arena;
    struct run_heads heads;
    struct error err = {0};
    arena_init(&arena, 64 * 1024, SIZE_MAX);
    struct run_filter filter = {.limit = 1000};
    CHECK_OK(store_list(store, &filter, &arena, &heads, &err), &err);
    for (size_t i = 0; i < heads.count; i++) {
        struct program *program;
        struct explained x;
        struct kernel_env env = {.context = store, .blob = explained_blob};
        const struct run_ids *ids = &heads.items[i].ids;
        CHECK_OK(engine_program(store, &heads.items[i], &program, &err), &err);
        explained_open(&x, program, ids, &env);
        CHECK_OK(store_replay(store, ids->tenant, ids->run, explained_record, &x, &err), &err);
        explained_close(&x);
        program_release(program);
    }
    arena_release(&arena);
}

#endif
