// Stored runs into memory: the program from the bytes the run was started with, the state from the log.
#include "engine/inside.h"

// ---- the program of a stored run
struct part_source {
    struct store *store;
    const struct json *parts;
};

static enum code part_load(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    const struct part_source *source = context;
    for (uint32_t i = 0; json_is(source->parts, JSON_ARRAY) && i < source->parts->count; i++) {
        const struct json *kept = &source->parts->items[i];
        if (!str_eq(json_text(json_key(kept, "from")), part->from) ||
            !str_eq(json_text(json_key(kept, "request")), part->request))
            continue;
        struct digest sha;
        if (!digest_parse(json_text(json_key(kept, "sha256")), &sha)) break;
        part->file = arena_copy(arena, json_text(json_key(kept, "file")));
        if (!part->file.ptr) return error_nomem(err);
        return store_blob(source->store, &sha, arena, &part->text, err);
    }
    return error_set(err, E_CORRUPT, "the run does not hold the file \"%.*s\" that its document names",
                     STR_ARG(part->request));
}

// What was started with functions of a host can be read without them; only executing needs them (engine_supports).
static bool any_function(void *context, struct str kind)
{
    (void)context;
    (void)kind;
    return true;
}

struct first_facts {
    struct arena *arena;
    struct start_facts facts;
    bool found;
};

static enum code find_facts(void *context, const struct record *record, const struct moment *moment,
                            const struct seal *seal)
{
    (void)record;
    (void)seal;
    struct first_facts *first = context;
    if (!moment || !moment->start) return OK;
    first->found = true;
    first->facts.document_file = moment->start->document_file;
    first->facts.plan_uri = moment->start->plan_uri;
    first->facts.parts = moment->start->parts;
    bool kept = ARENA_KEEP(first->arena, &first->facts.document_file, &first->facts.plan_uri) &&
                json_keep(first->arena, &first->facts.parts);
    return kept ? E_CANCELLED : E_NOMEM; // seen enough
}

static enum code compile_stored(struct store *store, const struct run_head *head, struct arena *arena,
                                struct program **out, struct error *err)
{
    struct first_facts first = {.arena = arena};
    enum code rc = store_replay(store, head->ids.tenant, head->ids.run, find_facts, &first, err);
    if (rc && rc != E_CANCELLED) return rc;
    if (!first.found)
        return error_set(err, E_CORRUPT, "run %.*s: the log does not begin with a start", STR_ARG(head->ids.run));
    if (err) *err = (struct error){0};
    struct str text;
    rc = store_plan(store, head, first.facts.plan_uri, arena, &text, err);
    if (rc) return rc;
    struct digest sha = sha256(text);
    if (!digest_eq(&sha, &head->document))
        return error_set(err, E_CORRUPT,
                         "run %.*s: PLAN_INTEGRITY_VALIDATION_FAILED: the stored document does not have the hash it "
                         "was started with",
                         STR_ARG(head->ids.run));
    struct part_source source = {.store = store, .parts = &first.facts.parts};
    // What was accepted stays so: the setting is for documents that are new.
    struct program_loader loader = {
        .context = &source, .load = part_load, .host_kind = any_function, .steps_max = PROGRAM_STEPS_MAX};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena);
    rc = program_load(text, first.facts.document_file, &loader, &diagnostics, out, err);
    if (rc == E_INVALID && diagnostics.count > 0)
        return error_set(err, E_CORRUPT, "run %.*s: its stored document no longer compiles: %.*s",
                         STR_ARG(head->ids.run), STR_ARG(diagnostics.items[0].message));
    return rc;
}

enum code engine_program(struct store *store, const struct run_head *head, struct program **out, struct error *err)
{
    struct arena arena SCOPED(arena_release) =
        arena_of(4096, (size_t)256 << 20); // the text and its parts; the program has its own
    return compile_stored(store, head, &arena, out, err);
}

// Two runs share a program when the bytes of their main document, the plan id and the version agree. A program with parts
// (scripts, child documents) is not shared: the hash is of the main document alone, and its parts may differ.
static enum code entry_for_head(struct engine *engine, const struct run_head *head, struct program_entry **out,
                                struct error *err)
{
    for (struct program_entry *entry = engine->programs; entry; entry = entry->next) {
        if (!digest_eq(&entry->program->sha256, &head->document) || entry->program->part_count > 0) continue;
        if (!str_eq(entry->program->plan_version, head->ids.plan_version) ||
            !str_eq(entry->program->plan_id, head->ids.plan_id))
            continue;
        *out = entry;
        return OK;
    }
    struct program *program;
    enum code rc = engine_program(engine->store, head, &program, err);
    if (rc) return rc;
    *out = program_entry_for(engine, program);
    program_release(program);
    if (!*out) return error_nomem(err);
    (*out)->stored = true;
    return OK;
}

// ---- the state of a stored run
struct fold_context {
    struct run *run;
    struct extent extent;
    struct error *err;
};

static enum code fold_one(void *context, const struct record *record, const struct moment *moment,
                          const struct seal *seal)
{
    (void)seal;
    struct fold_context *fold = context;
    fold->extent.bytes += record->bytes.len + (moment && moment->has_blob ? moment->blob_size : 0);
    fold->extent.last_bytes = fold->extent.bytes;
    fold->extent.last_seq = record->seq;
    if (moment) extent_pass(&fold->extent, moment, record->seq);
    if (moment) return kernel_fold(fold->run, moment, fold->err);
    return record->signal_id.len > 0 ? kernel_decided(fold->run, record->signal_id, fold->err) : OK;
}

// log NULL: as the store has it now; else as it was claimed.
static enum code fold_run(struct store *store, const struct program *program, const struct run_ids *ids,
                          struct run_log *log, struct run **out, struct extent *extent, struct error *err)
{
    struct run *run = run_new(program, ids);
    if (!run) return error_nomem(err);
    struct fold_context fold = {.run = run, .err = err};
    const struct kernel_env env = {.context = store, .blob = store_blob_of};
    run->env = &env;
    enum code rc = log ? store_replay_log(store, log, fold_one, &fold, err)
                       : store_replay(store, ids->tenant, ids->run, fold_one, &fold, err);
    run->env = NULL;
    const char *fault = rc ? NULL : run_fault(run);
    if (fault) rc = error_set(err, E_CORRUPT, "the log of run %.*s leads to what cannot be: %s", STR_ARG(ids->run), fault);
    if (!rc && find_files(store, run, run->start.artifacts_dir)) rc = error_nomem(err);
    if (rc) {
        run_free(run);
        return rc;
    }
    *out = run;
    *extent = fold.extent;
    return OK;
}

enum code fold_stored(struct store *store, const struct program *program, const struct run_ids *ids, struct run **out,
                      struct error *err)
{
    struct extent ignored;
    return fold_run(store, program, ids, NULL, out, &ignored, err);
}

static enum code has_ended(struct str run, struct error *err)
{
    return error_set(err, E_TERMINAL, "RUN_TERMINAL: run %.*s has ended", STR_ARG(run));
}

// What the head says of itself may be older than the claim: whether the run has ended is asked again.
static enum code load_head(struct engine *engine, const struct run_head *head, bool even_ended, struct resident **out,
                           struct error *err)
{
    struct program_entry *entry = NULL;
    struct run_log *log = NULL;
    struct run *run = NULL;
    struct extent extent = {0};
    enum code rc = head->terminal && !even_ended ? has_ended(head->ids.run, err) : OK;
    if (!rc) rc = entry_for_head(engine, head, &entry, err);
    if (!rc) rc = store_claim_run(engine->store, head->ids.tenant, head->ids.run, &log, err);
    if (!rc && run_log_terminal(log) && !even_ended) rc = has_ended(head->ids.run, err);
    if (!rc) rc = fold_run(engine->store, entry->program, run_log_ids(log), log, &run, &extent, err);
    if (!rc) {
        *out = resident_add(engine, run, log, entry);
        if (!*out)
            rc = error_nomem(err);
        else
            (*out)->terminal = run_log_terminal(log);
        if (!rc) (*out)->extent = extent;
        if (!rc) (*out)->idle = !(*out)->terminal;
        if (!rc) (*out)->begun = true;
    }
    if (!rc && !(*out)->terminal) {
        rc = outbox_find(engine, *out, err);
        if (!rc && run->start.parent_run.len > 0) rc = children_count(engine, *out, err);
        if (rc) resident_remove(engine, *out);
        return rc;
    }
    if (rc) {
        run_free(run);
        if (log) store_release_run(engine->store, log);
    }
    return rc;
}

enum code load_resident(struct engine *engine, struct str tenant, struct str run_id, bool even_ended,
                        struct resident **out, struct error *err)
{
    struct run_head head;
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)64 << 20);
    enum code rc = store_head(engine->store, tenant, run_id, &arena, &head, err);
    if (!rc) rc = load_head(engine, &head, even_ended, out, err);
    return rc;
}

enum code refold(struct engine *engine, struct resident *resident, struct error *err)
{
    struct run *run = NULL;
    const struct run_ids *ids = run_log_ids(resident->log);
    INVARIANT(!resident->gone && resident->run);
    enum code rc = OK;
    if (resident->begun) {
        rc = fold_stored(engine->store, resident->entry->program, ids, &run, err);
    } else { // a run of this id in the store, if there is one, is not ours
        run = run_new(resident->entry->program, ids);
        if (run) run->files = arena_copy(&run->arena, resident->run->files); // its start is still in the queue
        rc = run && run->files.ptr ? OK : error_nomem(err);
    }
    if (!rc) rc = outbox_fold(resident, run, err);
    if (rc) {
        run_free(run);
        return rc;
    }
    run_free(resident->run);
    resident->run = run;
    resident->stale = false;
    return OK;
}

enum code engine_admit(struct engine *engine, struct str tenant, struct str run, struct error *err)
{
    enum code rc = engine_adopt(engine, tenant, run, err);
    if (rc) return rc;
    struct resident *resident = resident_find(engine, tenant, run);
    INVARIANT(resident);
    if (resident->run->status == RUN_STATUS_PENDING && resident->run->start.requires_approval)
        return error_set(err, E_CONFLICT, "run %.*s waits for its approval", STR_ARG(run));
    return queue_add(engine, resident, INPUT_ADMIT) ? OK : error_nomem(err);
}

static bool is_adopted(void *context, struct str tenant, struct str run, struct str step)
{
    (void)step;
    const struct engine *engine = context;
    for (size_t i = 0; i < engine->table_size; i++)
        for (const struct resident *r = engine->table[i]; r; r = r->next)
            if (r->adopted && str_eq(r->ids.run, run) && (tenant.len == 0 || str_eq(r->ids.tenant, tenant))) return true;
    return false;
}

// Processes that the last owner of these runs left behind must be gone before a step of theirs starts again (X12). One
// pass over the system's processes serves all runs taken over since the last turn.
void sweep_orphans(struct engine *engine)
{
    if (engine->adopted == 0) return;
    if (!engine->options.tools && !engine->options.no_processes) {
        struct engine_mark mark;
        engine_mark(engine->store, false, &mark);
        (void)tool_sweep_orphans(&(struct tool_mark){mark.store, mark.file, mark.url}, is_adopted, engine);
    }
    for (size_t i = 0; i < engine->table_size; i++)
        for (struct resident *r = engine->table[i]; r; r = r->next) r->adopted = false;
    engine->adopted = 0;
}

void mark_adopted(struct engine *engine, struct resident *resident)
{
    if (!resident->adopted) engine->adopted++;
    INVARIANT(engine->adopted > 0);
    resident->adopted = true;
}

enum code take_up(struct engine *engine, struct resident *resident, struct error *err)
{
    if (!resident->idle || resident->taken_up) return OK;
    INVARIANT(!resident->terminal && resident->begun);
    enum code rc = engine_supports(engine, &resident->ids, resident->entry->program, err);
    if (rc) return rc;
    rc = need_recover(engine, resident, err);
    if (rc) return rc;
    resident->taken_up = true;
    mark_adopted(engine, resident);
    return OK;
}

static enum code adopt(struct engine *engine, struct resident *resident, bool here, struct error *err)
{
    enum code rc = take_up(engine, resident, err);
    if (rc && !here) resident_remove(engine, resident);
    return rc;
}

enum code engine_adopt(struct engine *engine, struct str tenant, struct str run, struct error *err)
{
    struct resident *resident = resident_find(engine, tenant, run);
    bool here = resident != NULL;
    enum code rc = here ? OK : load_resident(engine, tenant, run, false, &resident, err);
    return rc ? rc : adopt(engine, resident, here, err);
}

enum code engine_adopt_listed(struct engine *engine, const struct run_head *head, struct error *err)
{
    struct resident *resident = resident_find(engine, head->ids.tenant, head->ids.run);
    bool here = resident != NULL;
    enum code rc = here ? OK : load_head(engine, head, false, &resident, err);
    return rc ? rc : adopt(engine, resident, here, err);
}
