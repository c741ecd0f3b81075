// Carries out a fork: the new run's ledger begins with a record of where it comes from and what is different, its log with
// what it takes over; the next turn stores all of it in one batch.
#include "engine/fork.h"

#include "json/make.h"
#include "os/copy.h"

static struct json again_of(const struct fork *fork, struct arena *arena, uint32_t step)
{
    const struct step_fate *fate = &fork->fates[step];
    bool hangs = fate->why == AGAIN_DEPENDENCY;
    return JSON_OF(arena, {"stepId", json_string(fork->program->steps[step].id)},
                   {"why", json_name(fate_why_name(fate->why))}, {"input", json_some(fate->input)},
                   {"cause", json_some(hangs ? fork->program->steps[fate->cause].id : (struct str){0})});
}

static struct json describe_steps(const struct fork *fork, struct arena *arena)
{
    struct json again = json_array(), given = json_array(), kept = json_array();
    for (uint32_t i = 0; i < fork->program->top_count; i++) {
        struct json id = json_string(fork->program->steps[i].id);
        enum fate_kind fate = fork->fates[i].fate;
        if (fate == FORK_KEPT || fate == FORK_GOES_ON) json_append(arena, &kept, id);
        if (fate == FORK_GIVEN) json_append(arena, &given, id);
        if (fate == FORK_AGAIN) json_append(arena, &again, again_of(fork, arena, i));
    }
    return JSON_OF(arena, {"again", again}, {"given", given}, {"kept", kept});
}

// {audit, how, inputsChanged, source, steps}
static struct json describe(const struct fork *fork, const struct fork_start *start, struct arena *arena)
{
    struct json audit = JSON_OF(arena, {"actorId", json_copied_some(arena, start->triggered_by)},
                                {"reason", json_copied_some(arena, start->reason)},
                                {"timestamp", json_time(arena, fork->private->now_ms)});
    struct json source = JSON_OF(arena, {"documentSha256", json_copied(arena, str_from(fork->before->sha256_hex))},
                                 {"runId", json_string(fork->head.ids.run)}, {"runSeq", json_count(fork->at)});
    struct json changed = json_array();
    for (uint32_t i = 0; i < fork->changed.count; i++) json_append(arena, &changed, fork->changed.items[i]);
    return JSON_OF(arena, {"audit", audit}, {"how", json_name(start->how)}, {"inputsChanged", changed},
                   {"source", source}, {"steps", describe_steps(fork, arena)});
}

static bool signal_is_taken(const struct past *past, struct str id)
{
    for (uint32_t i = 0; i < past->count; i++)
        if (str_eq(past->moments[i].signal_id, id)) return true;
    return false;
}

static enum code make_notes(const struct fork *fork, const struct fork_start *start, struct preface **out,
                            size_t *count, struct error *err)
{
    struct fork_private *private = fork->private;
    struct preface *notes = ARENA_ARRAY(private->arena, private->decision_count + 1, struct preface);
    if (!notes) return error_nomem(err);
    notes[0].kind = STR("fork");
    notes[0].body = describe(fork, start, private->arena);
    if (!json_ok(&notes[0].body)) return error_nomem(err);
    *count = 1;
    for (size_t i = 0; i < private->decision_count; i++)
        if (signal_is_taken(&private->past, json_text(json_key(&private->decisions[i].body, "signalId"))))
            notes[(*count)++] = private->decisions[i];
    *out = notes;
    return OK;
}

static bool takes_results(const struct fork *fork)
{
    for (uint32_t i = 0; i < fork->program->top_count; i++)
        if (fork->fates[i].fate == FORK_KEPT || fork->fates[i].fate == FORK_GOES_ON) return true;
    return false;
}

// Steps that are taken over may have left files that others look for. The new run has its own directory: what it does there
// does not touch the source.
static enum code copy_artifacts(struct engine *engine, const struct fork *fork, struct start_request *request,
                                struct error *err)
{
    struct arena *arena = fork->private->arena;
    struct run_ids ids = fork->head.ids;
    struct run_head taken;
    struct error ignored = {0};
    ids.run = request->run;
    if (!run_id_valid(ids.run)) return OK; // refused in a moment
    if (store_head(engine->store, ids.tenant, ids.run, arena, &taken, &ignored) == OK)
        return error_set(err, E_EXISTS, "RUN_ALREADY_EXISTS: %.*s", STR_ARG(ids.run));
    struct str from, to;
    if (fork->facts.artifacts_dir.len == 0 || !takes_results(fork)) return OK;
    if (store_files_dir(engine->store, &fork->head.ids, fork->facts.artifacts_dir, arena, &from) ||
        store_artifacts_dir(engine->store, &ids, arena, &to))
        return error_nomem(err);
    // The thread of all tenants copies.
    static const struct copy_most of_a_service = {(uint64_t)256 << 20, 10000};
    const struct copy_most *most = engine->options.private_files ? &of_a_service : NULL;
    enum code rc = os_copy_some(from.ptr, to.ptr, most, err);
    if (rc == E_LIMIT) error_wrap(err, "a fork takes the files of the run along; run it again from its start instead");
    if (rc != E_EXISTS) return rc;
    // Of no run: an engine copied it for a fork and died before that was stored.
    char ending[UUID_SIZE];
    entropy_uuid(engine->options.entropy, ending);
    if (err) *err = (struct error){0};
    os_log(LOG_WARN, "files of no run are set aside dir=%s.%s", to.ptr, ending);
    rc = os_set_aside(to.ptr, ending, err);
    return rc ? rc : os_copy_some(from.ptr, to.ptr, most, err);
}

enum code engine_fork(struct engine *engine, struct fork *fork, const struct fork_start *start, char run_out[129],
                      struct error *err)
{
    struct fork_private *private = fork->private;
    INVARIANT(private->arena && private->store == engine->store);
    // Another document is another reference's, or nobody's.
    bool same = digest_eq(&fork->program->sha256, &fork->before->sha256) && !start->plan_uri.len && !start->plan_sha256.len;
    struct start_request request = {.program = fork->program,
                                    .tenant = fork->head.ids.tenant,
                                    .project = fork->head.ids.project,
                                    .environment = fork->head.ids.environment,
                                    .run = start->run,
                                    .inputs = fork->inputs,
                                    .arguments = fork->facts.arguments,
                                    .work_dir = fork->facts.work_dir,
                                    .queue = fork->facts.queue,
                                    .plan_uri = same ? fork->facts.plan_uri : start->plan_uri,
                                    .plan_sha256 = same ? fork->facts.plan_sha256 : start->plan_sha256,
                                    .triggered_by = start->triggered_by,
                                    .trigger_source = STR("manual"),
                                    .original_run = fork->head.ids.run,
                                    .reuse = private->reuse,
                                    .reuse_count = private->reuse_count};
    char uuid[UUID_SIZE];
    if (request.run.len == 0) {
        new_run_id(engine, request.program, uuid);
        request.run = str_from(uuid);
    }
    struct preface *notes = NULL;
    struct taking taking = {.past = &private->past,
                            .blobs = private->blobs,
                            .blob_count = private->blob_count,
                            .forked = !fork->results_only || (fork->program->net && private->past.count > 0),
                            .forked_seq = fork->program->net ? private->taken_seq : fork->at,
                            .arena = &private->arena};
    for (uint32_t i = 0; i < private->reuse_count; i++)
        if (private->reuse[i].from_run.len == 0) private->reuse[i].actor = start->triggered_by;
    enum code rc = make_notes(fork, start, &notes, &taking.note_count, err);
    if (!rc) rc = copy_artifacts(engine, fork, &request, err);
    taking.notes = notes;
    // Where the queue finds it: `private` ends with the fork.
    struct past *past = rc ? NULL : ARENA_NEW(private->arena, struct past);
    if (!rc && !past) rc = error_nomem(err);
    if (rc) return rc;
    *past = private->past;
    taking.past = past;
    rc = start_run(engine, &request, &taking, run_out, err);
    if (!rc) resident_find(engine, request.tenant, request.run)->idle = start->idle;
    return rc;
}
