// Starting runs: checks that need no store, the facts of the start, the first input.
#include "engine/inside.h"

#include "json/make.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAMS_KEPT 64

// Programs without a run are kept for the next run of them, but not for ever: a long life sees many documents.
static void drop_unused(struct engine *engine)
{
    for (struct program_entry **at = &engine->programs; *at;) {
        struct program_entry *entry = *at;
        if (entry->users > 0) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        engine->program_count--;
        program_release(entry->program);
        free(entry);
    }
}

struct program_entry *program_entry_for(struct engine *engine, const struct program *program)
{
    for (struct program_entry *entry = engine->programs; entry; entry = entry->next)
        if (entry->program == program) return entry;
    if (engine->program_count >= PROGRAMS_KEPT) drop_unused(engine);
    struct program_entry *entry = calloc(1, sizeof(*entry));
    if (!entry) return NULL;
    entry->program = program_retain(program);
    entry->next = engine->programs;
    engine->programs = entry;
    engine->program_count++;
    return entry;
}

static struct json describe_parts(const struct program *program, struct arena *arena)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < program->part_count; i++) {
        const struct program_part *part = &program->parts[i];
        json_append(arena, &list,
                    JSON_OF(arena, {"file", json_string(part->file)}, {"from", json_string(part->from)},
                            {"request", json_string(part->request)}, {"sha256", json_digest(arena, &part->sha256)}));
    }
    return json_filled(list);
}

bool inputs_now(const struct run *run, struct arena *arena, struct json *out)
{
    *out = json_joined(arena, &run->params, &run->start.inputs);
    return json_ok(out);
}

// Defaults of the document under what the caller gave, in the form in which the log gives them back.
enum code merge_inputs(const struct program *program, const struct json *given, struct arena *arena, struct json *out,
                       struct error *err)
{
    // A playbook's workload holds templates: the kernel renders it under what was given.
    struct json merged = json_joined(arena, given, program->net ? NULL : &program->inputs);
    struct str bytes = json_canon_kept(arena, &merged, (size_t)8 << 20);
    return bytes.ptr ? json_parse(bytes, &json_limits_result, arena, out, err) : E_NOMEM;
}

static enum code own_files(const struct engine *engine, const struct run_ids *ids, struct arena *arena, struct str *out)
{
    if (!engine->options.private_files) return store_artifacts_dir(engine->store, ids, arena, out);
    struct buf said = buf_of(512);
    buf_printf(&said, FILES_OF_RUN "%.*s", STR_ARG(ids->run));
    *out = buf_keep(&said, arena);
    return out->ptr ? OK : E_NOMEM;
}

enum code find_files(const struct store *store, struct run *run, struct str said)
{
    struct str dir;
    if (said.len == 0) return OK;
    enum code rc = store_files_dir(store, &run->ids, said, &run->arena, &dir);
    if (!rc && !str_eq(dir, said)) run->files = dir;
    return rc;
}

static enum code start_facts_of(struct engine *engine, const struct start_request *request, const struct run_ids *ids,
                                struct arena *arena, struct start_facts *facts)
{
    const struct program *program = request->program;
    *facts = (struct start_facts){
        .document_sha256 = {program->sha256_hex, SHA256_HEX},
        .document_kind = str_from(document_kind_name(program->kind)),
        .document_file = program->file,
        .schema_version = program->schema_version,
        .name = program->name,
        .requires_approval = program->requires_approval,
        .trigger_source = STR("manual"),
        .not_before_ms = request->mode == MODE_DELAY ? request->not_before_ms : 0,
    };
    const enum pause_wish cancels[] = {request->cancel_on_pause, program->cancel_on_pause, engine->options.cancel_on_pause};
    const int64_t drains[] = {request->drain_timeout_ms, program->drain_timeout_ms, engine->options.drain_timeout_ms};
    enum pause_wish cancel = WISH_NONE;
    for (size_t i = 0; i < ARRAY_COUNT(cancels); i++) {
        if (!cancel) cancel = cancels[i];
        if (facts->drain_timeout_ms == 0) facts->drain_timeout_ms = drains[i];
    }
    facts->cancel_on_pause = cancel == WISH_YES;
    if (request->mode == MODE_QUEUE) facts->admission = STR("QUEUE");
    if (request->mode == MODE_DELAY) facts->admission = STR("DELAY");
    const struct str *source[] = {&request->arguments,     &request->work_dir,   &request->triggered_by,
                                  &request->original_run,  &request->parent_run, &request->parent_step,
                                  &request->artifacts_dir, &request->queue,      &request->plan_uri,
                                  &request->plan_sha256};
    struct str *target[] = {&facts->arguments,  &facts->work_dir,    &facts->triggered_by,  &facts->original_run,
                            &facts->parent_run, &facts->parent_step, &facts->artifacts_dir, &facts->queue,
                            &facts->plan_uri,   &facts->plan_sha256};
    for (size_t i = 0; i < ARRAY_COUNT(source); i++) {
        if (source[i]->len == 0) continue;
        *target[i] = arena_copy(arena, *source[i]);
        if (!target[i]->ptr) return E_NOMEM;
    }
    if (str_eq(facts->plan_sha256, facts->document_sha256)) facts->plan_sha256 = (struct str){0};
    if (request->refusal && !json_copy(arena, request->refusal, &facts->refusal)) return E_NOMEM;
    if (request->trigger_source.len > 0) facts->trigger_source = arena_copy(arena, request->trigger_source);
    if (!facts->trigger_source.ptr) return E_NOMEM;
    struct error ignored = {0};
    enum code rc = merge_inputs(program, &request->inputs, arena, &facts->inputs, &ignored);
    if (!rc && facts->artifacts_dir.len == 0) rc = own_files(engine, ids, arena, &facts->artifacts_dir);
    if (rc) return rc;
    facts->parts = describe_parts(program, arena);
    return json_ok(&facts->parts) ? OK : E_NOMEM;
}

// The report of a plan that does not get all it requires is kept with the run (WE-4e).
static bool keep_report(struct queued *queued, const struct capability_report *report)
{
    struct buf bytes = buf_of((size_t)1 << 20);
    json_canon(&bytes, &report->json);
    struct str kept = {0}, uri = {0};
    if (buf_ok(&bytes)) kept = arena_copy(queued->arena, buf_str(&bytes));
    buf_clear(&bytes);
    struct digest sha = sha256(kept);
    char hex[SHA256_HEX + 1];
    digest_hex(&sha, hex);
    buf_printf(&bytes, "cairn://blobs/%s", hex);
    if (kept.ptr && buf_ok(&bytes)) uri = arena_copy(queued->arena, buf_str(&bytes));
    buf_release(&bytes);
    queued->blobs[queued->blob_count++] = (struct append_blob){.sha256 = sha, .bytes = kept};
    queued->facts->report = uri;
    queued->facts->warnings = report->warnings;
    queued->facts->degraded = report->degraded;
    return uri.ptr != NULL;
}

static enum code validate(struct engine *engine, const struct start_request *request, struct queued *queued,
                          struct error *err)
{
    struct capability_report report;
    if (!capability_validate(request->program, request->target_adapter, &engine->options.adapters,
                             engine->now.wall_ms, queued->arena, &report))
        return error_nomem(err);
    if (report.refused)
        return error_set(err, E_INVALID, "PlanValidationError: %s: %.*s", report.code, STR_ARG(report.message));
    const struct adapters *adapters = &engine->options.adapters;
    if (report.provider != PROVIDER_CAIRN) queued->facts->profile = str_from(provider_name(report.provider));
    if (report.provider == PROVIDER_TEMPORAL) queued->facts->engine_place = adapters->space;
    if (report.provider == PROVIDER_CONDUCTOR) queued->facts->engine_place = adapters->url;
    bool kept = report.warnings.count == 0 || keep_report(queued, &report);
    return kept ? OK : error_nomem(err);
}

static bool start_blobs(const struct program *program, bool stored, bool apart, const struct taking *taking,
                        struct queued *queued)
{
    size_t given = taking ? taking->blob_count : 0;
    queued->blobs = ARENA_ARRAY(queued->arena, program->part_count + 2 + given, struct append_blob);
    if (!queued->blobs) return false;
    for (size_t i = 0; i < given; i++) queued->blobs[queued->blob_count++] = taking->blobs[i];
    if (stored) return true;
    if (!apart)
        queued->blobs[queued->blob_count++] = (struct append_blob){.sha256 = program->sha256, .bytes = program->text};
    for (uint32_t i = 0; i < program->part_count; i++)
        queued->blobs[queued->blob_count++] =
            (struct append_blob){.sha256 = program->parts[i].sha256, .bytes = program->parts[i].text};
    return true;
}

enum code check_inputs(const struct program *program, const struct json *given, struct error *err)
{
    for (uint32_t i = 0; i < program->required_count; i++) {
        struct str name = program->required[i];
        if (!json_get(given, name))
            return error_set(err, E_INVALID, "input \"%.*s\" is required; give it with --set %.*s=VALUE", STR_ARG(name),
                             STR_ARG(name));
    }
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->count; i++) {
        struct str name = given->members[i].key;
        struct str type = program_input_type(program, name);
        if (!input_type_fits(type, &given->members[i].value))
            return error_set(err, E_INVALID, "input \"%.*s\" is declared as %.*s, and the value given is of type %s",
                             STR_ARG(name), STR_ARG(type),
                             json_type_name((enum json_type)given->members[i].value.type));
    }
    return OK;
}

static enum code check_ids(const struct run_ids *ids, struct error *err)
{
    const struct {
        const char *name;
        struct str value;
    } names[] = {{"tenant", ids->tenant}, {"project", ids->project}, {"environment", ids->environment}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (!name_valid(names[i].value))
            return error_set(err, E_INVALID, "%s \"%.*s\" is not a valid id", names[i].name, STR_ARG(names[i].value));
    if (run_id_valid(ids->run)) return OK;
    return error_set(err, E_INVALID,
                     "INVALID_RUN_ID: \"%.*s\" is not a run id (letters, digits, . _ : - ; at most 128; the first a "
                     "letter or digit)",
                     STR_ARG(ids->run));
}

static void take_over(const struct taking *taking, const struct start_request *request, struct queued *queued)
{
    queued->input.past = taking->past;
    queued->notes = taking->notes;
    queued->note_count = taking->note_count;
    queued->facts->forked = taking->forked;
    queued->facts->forked_seq = taking->forked_seq;
    queued->facts->forked_run = taking->forked ? queued->facts->original_run : (struct str){0};
    INVARIANT(!taking->forked || request->original_run.len > 0);
    *taking->arena = NULL;
}

static enum code fill_start(struct engine *engine, const struct start_request *request, const struct taking *taking,
                            struct resident *resident, struct queued *queued, struct error *err)
{
    INVARIANT(queued->input.kind == INPUT_START && !resident->begun);
    queued->arena = taking ? *taking->arena : arena_make((size_t)64 << 20);
    queued->facts = queued->arena ? ARENA_NEW(queued->arena, struct start_facts) : NULL;
    if (!queued->facts) return error_nomem(err);
    enum code rc = start_facts_of(engine, request, &resident->ids, queued->arena, queued->facts);
    if (!rc) rc = find_files(engine->store, resident->run, queued->facts->artifacts_dir);
    if (rc) return error_set(err, rc, "cannot prepare the start of the run");
    rc = queue_reuse(queued, request->reuse, request->reuse_count, err);
    if (rc) return rc;
    // Where some bodies are apart, what one start has stored says nothing of the next.
    bool wide = engine->options.plans_apart;
    bool elsewhere = request->plan_uri.len && !str_starts(request->plan_uri, STR("cairn:"));
    bool apart = wide && elsewhere && store_plan_kept(engine->store, &request->program->sha256);
    if (!start_blobs(request->program, !wide && resident->entry->stored, apart, taking, queued)) return error_nomem(err);
    if (!request->refusal) rc = validate(engine, request, queued, err);
    if (rc) return rc;
    if (request->note_count > 0) {
        rc = copy_puts(queued->arena, request->notes, request->note_count, &queued->puts, err);
        if (rc) return rc;
        queued->put_count = request->note_count;
    }
    if (taking) take_over(taking, request, queued);
    return OK;
}

enum code engine_start(struct engine *engine, const struct start_request *request, char run_out[129], struct error *err)
{
    return start_run(engine, request, NULL, run_out, err);
}

enum code start_run(struct engine *engine, const struct start_request *request, const struct taking *taking,
                    char run_out[129], struct error *err)
{
    struct run_ids ids = {.tenant = request->tenant,
                          .project = request->project,
                          .environment = request->environment,
                          .run = request->run,
                          .plan_id = request->program->plan_id,
                          .plan_version = request->program->plan_version};
    char uuid[UUID_SIZE];
    if (ids.run.len == 0) {
        new_run_id(engine, request->program, uuid);
        ids.run = str_from(uuid);
    }
    if (ids.tenant.len == 0) ids.tenant = STR("default");
    if (ids.project.len == 0) ids.project = STR("default");
    if (ids.environment.len == 0) ids.environment = STR("default");
    enum code rc = check_ids(&ids, err);
    if (!rc) rc = check_inputs(request->program, &request->inputs, err);
    if (!rc) rc = engine_supports(engine, &ids, request->program, err);
    if (rc) return rc;
    memcpy(run_out, ids.run.ptr, ids.run.len);
    run_out[ids.run.len] = '\0';

    struct program_entry *entry = program_entry_for(engine, request->program);
    if (!entry) return error_nomem(err);
    struct run_create create = {.ids = ids,
                                .vocabulary = program_vocabulary(request->program),
                                .document = request->program->sha256,
                                .name = request->program->name,
                                .parent_run = request->parent_run,
                                .original_run = request->original_run,
                                .fresh = request->fresh || request->run.len == 0};
    if (resident_find(engine, ids.tenant, ids.run)) return error_set(err, E_EXISTS, "RUN_ALREADY_EXISTS: %s", run_out);
    const struct resident *parent =
        request->parent_run.len > 0 ? resident_find(engine, ids.tenant, request->parent_run) : NULL;
    if (parent) create.shard = run_log_shard(parent->log); // families stay together
    struct run_log *log;
    rc = store_create_run(engine->store, &create, &log, err);
    if (rc) return rc;
    struct run *run = run_new(request->program, run_log_ids(log));
    struct resident *resident = run ? resident_add(engine, run, log, entry) : NULL;
    if (!resident) {
        run_free(run);
        store_release_run(engine->store, log);
        return error_nomem(err);
    }
    rc = request->parent_run.len > 0 ? children_count(engine, resident, err) : OK;
    struct queued *queued = rc ? NULL : queue_add(engine, resident, INPUT_START);
    rc = rc ? rc : queued ? fill_start(engine, request, taking, resident, queued, err) : error_nomem(err);
    if (rc == OK) return OK;
    if (queued) {
        struct queued undone = queue_take_last(engine);
        if (taking) undone.arena = NULL; // still the caller's
        queued_release(&undone);
    }
    resident_remove(engine, resident);
    return rc;
}
