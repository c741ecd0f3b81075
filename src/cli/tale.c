#include "cli/tale.h"

#include "engine/engine.h"

struct fold {
    struct explain *explain;
    struct arena *arena;
    uint64_t at;
    struct error *err;
};

static enum code fold_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    const struct fold *fold = context;
    (void)seal;
    if (record->seq > fold->at) return OK;
    if (moment) return explain_fold(fold->explain, moment, record->seq, fold->err);
    struct json body;
    if (!str_is(record->type, "decision")) return OK;
    struct str bytes = arena_copy(fold->arena, record->bytes);
    if (!bytes.ptr) return error_set(fold->err, E_NOMEM, "out of memory");
    enum code rc = json_parse(bytes, &json_limits_default, fold->arena, &body, fold->err);
    return rc ? rc : explain_decision(fold->explain, &body, record->seq, fold->err);
}

static enum code find_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    return store_blob(context, sha256, arena, out, err);
}

int tale_load(struct session *session, const struct run_head *head, uint64_t at, struct tale *out)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct kernel_env env = {.context = session->store, .blob = find_blob};
    *out = (struct tale){.head = *head};
    enum code rc = engine_program(session->store, head, &out->program, &err);
    if (!rc) rc = explain_open(out->program, &out->head.ids, &env, &out->explain, &err);
    if (rc) return cli_error(cli, &err);
    struct fold fold = {.explain = out->explain, .arena = &cli->arena, .at = at, .err = &err};
    rc = store_replay(session->store, head->ids.tenant, head->ids.run, fold_record, &fold, &err);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

void tale_release(struct tale *tale)
{
    explain_close(tale->explain);
    if (tale->program) program_release(tale->program);
    *tale = (struct tale){0};
}
