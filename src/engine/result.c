// What comes back from outside, as inputs: results of tools, and of the kinds that need none.
#include "engine/inside.h"

#include "json/make.h"

#include <stdio.h>
#include <string.h>

static struct queued *queue_result(struct engine *engine, struct resident *resident, uint32_t step, uint32_t logical,
                                   uint32_t k)
{
    struct queued *queued = queue_add(engine, resident, INPUT_RESULT);
    if (!queued) return NULL;
    queued->input.step = step;
    queued->input.logical = logical;
    queued->input.engine = k;
    return queued;
}

// A half-made input must not stay in the queue.
static enum code undo(struct engine *engine, enum code rc)
{
    if (rc == OK) return OK;
    INVARIANT(queue_last(engine)->input.kind == INPUT_RESULT);
    struct queued undone = queue_take_last(engine);
    queued_release(&undone);
    return rc;
}

static bool need_arena(struct queued *queued)
{
    if (!queued->arena) queued->arena = arena_make(RESULT_ARENA_MAX);
    return queued->arena != NULL;
}

// The value as the log will give it back: canonical form turns 1.10 into 1.1, and what a step sees must not depend on
// whether the engine was restarted in between (K1).
enum code canonical(struct arena *arena, struct str bytes, struct json *out, struct error *err)
{
    struct str kept = arena_copy(arena, bytes);
    if (!kept.ptr) return error_nomem(err);
    return json_parse(kept, &json_limits_result, arena, out, err);
}

// A value becomes the result of the step: in the event when it is small, else as a blob beside it. `value` is copied.
static enum code input_value(struct engine *engine, struct queued *queued, const struct json *value, struct error *err)
{
    size_t inline_max = queued->input.member > 0 ? MEMBER_INLINE_MAX : engine->options.limits.inline_max;
    INVARIANT(queued->input.kind == INPUT_RESULT && queued->blob_count == 0);
    queued->input.ok = true;
    if (value->type == 0 || value->type == JSON_NULL) {
        queued->input.value = json_null();
        return OK;
    }
    if (!need_arena(queued)) return error_nomem(err);
    struct buf bytes SCOPED(buf_release) = buf_of(SIZE_MAX / 4);
    json_canon(&bytes, value);
    enum code rc = OK;
    if (!buf_ok(&bytes)) {
        rc = error_nomem(err);
    } else if (bytes.len > RESULT_MAX) {
        queued->input.ok = false;
        queued->input.fault = (struct fault){
            .code = STR("PAYLOAD_TOO_LARGE"), .message = STR(RESULT_TOO_LARGE), .category = STR("validation")};
    } else if (bytes.len <= inline_max) {
        rc = canonical(queued->arena, buf_str(&bytes), &queued->input.value, err);
    } else {
        struct str kept = arena_copy(queued->arena, buf_str(&bytes));
        queued->blobs = ARENA_NEW(queued->arena, struct append_blob);
        if (!kept.ptr || !queued->blobs) {
            rc = error_nomem(err);
        } else {
            queued->input.blob = sha256(kept);
            queued->input.has_blob = true;
            queued->input.blob_size = kept.len;
            queued->blobs[0] = (struct append_blob){.sha256 = queued->input.blob, .bytes = kept};
            queued->blob_count = 1;
        }
    }
    return rc;
}

enum code input_fault(struct engine *engine, struct resident *resident, uint32_t step, uint32_t logical, uint32_t k,
                      struct fault fault, struct error *err)
{
    struct queued *queued = queue_result(engine, resident, step, logical, k);
    if (!queued) return error_nomem(err);
    queued->input.fault = fault;
    INVARIANT(fault.code.len > 0 && !queued->input.ok);
    if (need_arena(queued) && fault_keep(queued->arena, &queued->input.fault)) return OK;
    return undo(engine, error_nomem(err));
}

enum code input_given(struct engine *engine, struct resident *resident, const struct run_hold *whose,
                      const struct json *value, struct error *err)
{
    struct queued *queued = queue_result(engine, resident, whose->lane, whose->logical, whose->engine);
    if (!queued) return error_nomem(err);
    queued->input.member = whose->member;
    return undo(engine, input_value(engine, queued, value, err));
}

// ---- results of tools
static struct json artifact_ref(const struct engine *engine, const struct run *run, const struct artifact_decl *decl,
                                const struct found_file *file, struct arena *arena)
{
    bool inside = decl->path.len > 0 && decl->path.ptr[0] != '/'; // in the directory of the run; what is elsewhere is the user's
    int64_t keep_ms = inside ? retention_of(&engine->options.retention, decl->kind) : 0;
    struct str token = STR(FILES_OF_RUN), dir = run->start.artifacts_dir;
    struct str whose = str_starts(dir, token) ? str_slice(dir, token.len, dir.len) : run->ids.run;
    struct buf text SCOPED(buf_release) = buf_of(16384);
    if (inside && run->files.len > 0) {
        buf_printf(&text, FILES_URI "%.*s/%.*s", STR_ARG(whose), STR_ARG(decl->path));
    } else {
        buf_text(&text, "file://");
        if (!declared_path(run_artifacts_dir(run), decl->path, &text)) buf_clear(&text);
    }
    struct json uri = buf_ok(&text) && text.len > 0 ? json_copied(arena, buf_str(&text)) : json_failed();
    return JSON_OF(arena, {"expiresAt", json_time_some(arena, keep_ms ? engine->now.wall_ms + keep_ms : 0)},
                   {"kind", json_string(decl->kind)},
                   {"sha256", file->hashed ? json_digest(arena, &file->sha256) : json_none()},
                   {"sizeBytes", json_count(file->size)}, {"uri", uri});
}

static struct json spill_ref(const struct engine *engine, const struct run *run, const struct declared_files *files, struct arena *arena)
{
    struct artifact_decl decl = {.path = str_from(files->names[files->count - 1]), .kind = STR("output")};
    return artifact_ref(engine, run, &decl, &files->found[files->count - 1], arena);
}

// What the next steps get instead of an output that is too long: the reference, with its name beneath $ARTIFACTS_DIR.
static struct json spill_value(const struct engine *engine, const struct run *run, const struct declared_files *files, struct arena *arena)
{
    struct json ref = spill_ref(engine, run, files, arena);
    JSON_ADD(arena, &ref, {"name", json_copied(arena, str_from(files->names[files->count - 1]))});
    return ref;
}

static bool is_spilled(const struct tool_result *result, const struct declared_files *files)
{
    return result->spilled && files && files->spill && files->found[files->count - 1].there;
}

static enum code artifact_missing(struct queued *queued, struct str path, struct error *err)
{
    struct buf text SCOPED(buf_release) = buf_of(16384);
    buf_printf(&text, "declared artifact \"%.*s\" was not written", STR_ARG(path));
    struct str message = arena_copy(queued->arena, buf_str(&text));
    if (!message.ptr) return error_nomem(err);
    queued->input.ok = false;
    queued->input.fault = (struct fault){
        .code = STR("ARTIFACT_MISSING"), .message = message, .category = STR("business"), .retryable = true};
    return OK;
}

static enum code collect_artifacts(const struct engine *engine, const struct resident *resident,
                                   const struct declared_files *files, bool spilled, struct queued *queued,
                                   struct error *err)
{
    const struct run *run = resident->run;
    const struct program_step *ps = &run->program->steps[kernel_place(run, queued->input.step)];
    if ((ps->artifact_count == 0 && !spilled) || !queued->input.ok) return OK;
    if (!need_arena(queued)) return error_nomem(err);
    INVARIANT(files && files->count == ps->artifact_count + files->spill); // start
    struct json list = json_array();
    for (uint32_t i = 0; i < ps->artifact_count; i++) {
        if (!files->found[i].there) return artifact_missing(queued, ps->artifacts[i].path, err);
        json_append(queued->arena, &list, artifact_ref(engine, run, &ps->artifacts[i], &files->found[i], queued->arena));
    }
    if (spilled) json_append(queued->arena, &list, spill_ref(engine, run, files, queued->arena));
    queued->input.artifacts = list;
    return json_made(&list, err);
}

// The reader of a cut output must see that it is one. It is no longer than output_max with its mark: what is longer than the
// longest text could be stored, but no step could refer to it.
static enum code mark_cut(struct engine *engine, struct str output, struct json *out, struct error *err)
{
    char mark[64];
    size_t max = engine->options.limits.output_max;
    size_t mark_len = (size_t)snprintf(mark, sizeof(mark), "\n[output cut at %zu bytes]", max);
    size_t room = max > mark_len ? max - mark_len : 0;
    output = str_head(output, room);
    struct buf text = buf_of(output.len + sizeof(mark));
    buf_add(&text, output);
    buf_text(&text, mark);
    struct str marked = buf_keep(&text, &engine->turn);
    if (!marked.ptr) return error_nomem(err);
    *out = json_string(marked);
    return OK;
}

// `more`: what follows from it, behind the words.
static enum code too_long(struct queued *queued, uint64_t size, size_t max, const char *more, struct error *err)
{
    if (!need_arena(queued)) return error_nomem(err);
    struct str message =
        size > 0 ? arena_format(queued->arena, FAULT_OVERFLOW "%s", (unsigned long long)size, max, more)
                 : arena_format(queued->arena, "its output is above the limit of %zu bytes%s", max, more);
    if (!message.ptr) return error_nomem(err);
    queued->input.ok = false;
    queued->input.fault =
        (struct fault){.code = STR("PAYLOAD_TOO_LARGE"), .message = message, .category = STR("validation")};
    return OK;
}

// An output that is longer than is kept: what its step says of that.
static enum code overflown(struct engine *engine, const struct resident *resident, const struct program_step *ps,
                           const struct tool_result *result, const struct declared_files *files, size_t max,
                           struct queued *queued, struct error *err)
{
    struct json value;
    uint64_t size = result->output_size ? result->output_size : result->is_json ? result->output.len : 0;
    if (is_spilled(result, files)) {
        value = spill_value(engine, resident->run, files, &engine->turn);
        enum code rc = json_made(&value, err);
        return rc ? rc : input_value(engine, queued, &value, err);
    }
    const char *more = ps->overflow == OVERFLOW_ARTIFACT ? "; the file with all of it did not arrive"
                       : result->is_json                 ? ""
                                                         : FAULT_OVERFLOW_WAY;
    if (ps->overflow != OVERFLOW_TRUNCATE) return too_long(queued, size, max, more, err);
    queued->input.truncated = true;
    enum code rc = mark_cut(engine, result->output, &value, err);
    return rc ? rc : input_value(engine, queued, &value, err);
}

// What a function gave must be JSON; anything else is its fault, and trying again would not change it.
static enum code function_value(struct engine *engine, struct queued *queued, struct str output, struct error *err)
{
    struct json value = json_null();
    struct error local = {0};
    enum code rc = output.len > 0 ? json_parse(output, &json_limits_result, &engine->turn, &value, &local) : OK;
    if (rc == OK) return input_value(engine, queued, &value, err);
    if (rc == E_NOMEM || !need_arena(queued)) return error_nomem(err);
    struct str told = arena_copy(queued->arena, str_from(local.message));
    if (!told.ptr) return error_nomem(err);
    queued->input.fault = (struct fault){.code = rc == E_LIMIT ? STR("PAYLOAD_TOO_LARGE") : STR("OUTPUT_NOT_JSON"),
                                         .message = told,
                                         .category = STR("validation")};
    return OK;
}

static void outcome_fault(struct queued *queued, const char *code, struct str message)
{
    queued->input.fault = (struct fault){.code = str_from(code), .message = message, .category = STR("validation")};
}

// A large result is kept beside the log; the policy of the task sees all of it all the same.
static enum code result_apart(struct queued *queued, const struct json *result, uint64_t inline_max, struct error *err)
{
    struct buf bytes = buf_of(RESULT_MAX);
    json_canon(&bytes, result);
    bool fits = buf_ok(&bytes), apart = fits && bytes.len > inline_max;
    struct str kept = apart ? arena_copy(queued->arena, buf_str(&bytes)) : (struct str){0};
    buf_release(&bytes);
    if (!fits) {
        queued->input.ok = false;
        outcome_fault(queued, "PAYLOAD_TOO_LARGE", STR(RESULT_TOO_LARGE));
    }
    if (!apart) return OK;
    queued->blobs = ARENA_NEW(queued->arena, struct append_blob);
    if (!kept.ptr || !queued->blobs) return error_nomem(err);
    queued->input.blob = sha256(kept);
    queued->input.has_blob = true;
    queued->input.blob_size = kept.len;
    queued->blobs[0] = (struct append_blob){.sha256 = queued->input.blob, .bytes = kept};
    queued->blob_count = 1;
    return OK;
}

// What the tool of a task gave (task/task.h). `spilled`: the file that has what it wrote; type 0 = none.
static enum code outcome_value(struct engine *engine, struct queued *queued, const struct net_task *task,
                               struct str output, const struct json *spilled, struct error *err)
{
    struct json outcome;
    struct error local = {0};
    if (!need_arena(queued)) return error_nomem(err);
    enum code rc = json_parse(output, &json_limits_result, &engine->turn, &outcome, &local);
    if (rc == E_NOMEM) return error_nomem(err);
    struct str status = {0};
    if (!rc) status = json_text(json_key(&outcome, "status"));
    if (rc || (!str_is(status, "ok") && !str_is(status, "error"))) {
        struct str told = arena_copy(queued->arena, str_from(local.message));
        if (rc && !told.ptr) return error_nomem(err);
        if (rc == E_LIMIT)
            outcome_fault(queued, "PAYLOAD_TOO_LARGE", told);
        else
            outcome_fault(queued, "OUTPUT_NOT_JSON", rc ? told : STR("what the tool gave is not an outcome"));
        return OK;
    }
    if (!contract_outcome_fits(&outcome)) {
        outcome_fault(queued, "PAYLOAD_TOO_LARGE", STR(RESULT_UNFIT));
        return OK;
    }
    for (uint32_t i = 0; spilled->type && i < outcome.count; i++) {
        struct json *given = &outcome.members[i].value;
        if (!str_is(outcome.members[i].key, "result") || !json_is(given, JSON_OBJECT)) continue;
        JSON_ADD(&engine->turn, given, {"artifact", *spilled});
        if (json_made(given, err)) return err->code;
    }
    struct buf bytes SCOPED(buf_release) = buf_of((size_t)64 << 20);
    json_canon(&bytes, &outcome);
    rc = buf_ok(&bytes) ? canonical(queued->arena, buf_str(&bytes), &queued->input.value, err) : error_nomem(err);
    if (rc) return rc;
    queued->input.ok = true;
    const struct json *result = json_key(&queued->input.value, "result");
    uint64_t inline_max = engine->options.limits.inline_max;
    if (task->inline_max > 0 && task->inline_max < inline_max) inline_max = task->inline_max;
    rc = result ? result_apart(queued, result, inline_max, err) : OK;
    if (!rc && queued->input.has_blob && str_is(status, "ok")) want_elsewhere(engine, queued, task);
    return rc;
}

// The same for what came out of no tool: nothing, or what a child execution gave.
enum code input_outcome(struct engine *engine, struct resident *resident, uint32_t step, uint32_t logical, uint32_t k,
                        const struct json *result, struct error *err)
{
    struct queued *queued = queue_result(engine, resident, step, logical, k);
    if (!queued) return error_nomem(err);
    struct json outcome = JSON_OF(&engine->turn, {"result", result && result->type != 0 ? *result : json_null()},
                                  {"status", json_word("ok")});
    struct str bytes = json_canon_kept(&engine->turn, &outcome, (size_t)64 << 20);
    struct json none = json_none();
    enum code rc = bytes.ptr ? outcome_value(engine, queued, kernel_task_of(resident->run, step), bytes, &none, err)
                             : error_nomem(err);
    return undo(engine, rc);
}

// The log may have gone on without us: another engine has the run, and ours was folded again from what it wrote.
static bool is_of_now(const struct run *run, const struct ticket *ticket)
{
    struct run_attempt now = kernel_attempt(run, ticket->step);
    return kernel_state(run, ticket->step) == NODE_RUNNING && now.logical == ticket->logical &&
           now.engine == ticket->engine;
}

// What a worker reported becomes entries of the ledger, each stored once however often it comes (store.h, append_item.signal_id).
static enum code take_reports(struct queued *queued, struct str text, struct error *err)
{
    struct json list;
    if (text.len == 0) return OK;
    if (!need_arena(queued)) return error_nomem(err);
    enum code rc = json_parse(text, &json_limits_result, queued->arena, &list, err);
    if (rc) return rc;
    struct preface *notes = ARENA_ARRAY(queued->arena, list.count + 1, struct preface);
    if (!notes) return error_nomem(err);
    for (uint32_t i = 0; i < list.count; i++) {
        struct str id = arena_format(queued->arena, REPORT_PREFIX "%.*s",
                                     STR_ARG(json_text(json_key(&list.items[i], "event_id"))));
        notes[i] = (struct preface){.kind = STR("report"), .signal_id = id, .body = list.items[i]};
        if (!id.ptr) return error_nomem(err);
    }
    queued->notes = notes;
    queued->note_count = list.count;
    return OK;
}

static enum code input_from_reports(struct engine *engine, struct resident *resident, struct tool_result *result,
                                    struct error *err)
{
    struct queued *queued = queue_add(engine, resident, INPUT_NOTE);
    if (!queued) return error_nomem(err);
    enum code rc = take_reports(queued, result->reports, err);
    if (rc) return undo(engine, rc);
    queued->result = *result;
    memset(result, 0, sizeof(*result));
    return OK;
}

enum code input_from_result(struct engine *engine, struct tool_result *result, const struct declared_files *files,
                            struct error *err)
{
    struct ticket *ticket = ticket_find(engine, result->ticket);
    if (!ticket) return OK;
    INVARIANT(ticket->logical >= 1 && ticket->engine >= 1);
    struct resident *resident = ticket->resident;
    if (!resident || ticket->step >= run_step_count(resident->run)) { // gone, or a lane that the log does not know
        ticket_close(engine, result->ticket);
        return OK;
    }
    if (result->only_reports) return input_from_reports(engine, resident, result, err);
    struct queued *queued = queue_result(engine, resident, ticket->step, ticket->logical, ticket->engine);
    if (!queued) return error_nomem(err);
    queued->input.duration_ms = result->duration_ms;
    queued->input.lost = result->lost;
    enum code rc = OK;
    bool lane = ticket->step >= resident->run->program->step_count;
    if (result->ok && kernel_condition(resident->run, ticket->step)) {
        queued->input.ok = true;
    } else if (result->duration_ms < 0) {
        queued->input.duration_ms = 0;
        outcome_fault(queued, "PAYLOAD_TOO_LARGE", STR(RESULT_UNFIT));
    } else if (result->ok && lane && !is_of_now(resident->run, ticket)) {
        queued->input.ok = true; // too late: the lane does something else by now, and what came out is nobody's
    } else if (result->ok && lane) {
        struct json spilled = json_none();
        bool spills = is_spilled(result, files);
        if (spills) spilled = spill_value(engine, resident->run, files, &engine->turn);
        rc = outcome_value(engine, queued, kernel_task_of(resident->run, ticket->step), result->output, &spilled, err);
        if (!rc) rc = collect_artifacts(engine, resident, files, spills, queued, err);
    } else if (result->ok) {
        const struct program_step *ps = &resident->run->program->steps[kernel_place(resident->run, ticket->step)];
        struct json text = json_string(result->output);
        size_t max = result->is_json ? RESULT_MAX : engine->options.limits.output_max;
        if (result->truncated || result->spilled || (result->is_json && result->output.len > max))
            rc = overflown(engine, resident, ps, result, files, max, queued, err);
        else if (result->is_json)
            rc = function_value(engine, queued, result->output, err);
        else
            rc = input_value(engine, queued, &text, err);
        if (!rc) rc = collect_artifacts(engine, resident, files, is_spilled(result, files), queued, err);
    } else {
        queued->input.fault = result->fault;
    }
    if (!rc) rc = take_reports(queued, result->reports, err);
    if (rc) return undo(engine, rc);
    queued->result = *result; // the input owns the memory now
    memset(result, 0, sizeof(*result));
    ticket_close(engine, queued->result.ticket);
    return OK;
}
