// Reading: snapshots, outputs, events, runs. On a store handle of their own, so that nobody waits for the engine.
#include "lib/inside.h"

#include "reading/reading.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_PER_PAGE = 128, RUNS_PER_PAGE = 64 };

static enum code give(struct str text, char **out, size_t *len, struct error *err)
{
    char *copy = malloc(text.len + 1);
    if (!copy) return error_nomem(err);
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *out = copy;
    if (len) *len = text.len;
    return OK;
}

static enum code give_json(const struct json *value, char **out, size_t *len, struct error *err)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)512 << 20);
    json_write(&text, value);
    return buf_ok(&text) ? give(buf_str(&text), out, len, err) : error_nomem(err);
}

// ---- one run

struct look {
    struct cairn *cairn;
    struct visit visit;
    struct arena arena;
    struct run_head head;
};

// look_end in every case but a failure.
static enum code look_begin(struct look *look, struct cairn *cairn, const char *run, struct error *err)
{
    look->cairn = cairn;
    enum code rc = reader_begin(cairn, &look->visit, err);
    if (rc) return rc;
    arena_init(&look->arena, 16384, (size_t)512 << 20);
    struct str id;
    rc = reading_resolve(look->visit.store, cairn->tenant, str_from(run), &look->arena, &id, err);
    if (!rc) rc = store_head(look->visit.store, cairn->tenant, id, &look->arena, &look->head, err);
    if (!rc) return OK;
    arena_release(&look->arena);
    reader_end(cairn, &look->visit);
    return rc;
}

static void look_end(struct look *look)
{
    arena_release(&look->arena);
    reader_end(look->cairn, &look->visit);
}

// What `read` finds in a run, as JSON.
static enum cairn_code tell_part(struct cairn *cairn, const char *run,
                                 enum code (*read)(struct look *look, const void *what, struct json *out,
                                                   struct error *err),
                                 const void *what, char **json, size_t *len, struct cairn_error *error)
{
    struct error err = {0};
    struct look look;
    struct json value;
    *json = NULL;
    enum code rc = look_begin(&look, cairn, run, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = read(&look, what, &value, &err);
    if (!rc) rc = give_json(&value, json, len, &err);
    look_end(&look);
    return tell(error, rc, &err, NULL);
}

static enum code read_view(struct look *look, const void *what, struct json *out, struct error *err)
{
    uint64_t at = *(const uint64_t *)what;
    return reading_snapshot(look->visit.store, &look->head, at ? at : READING_NOW, &look->arena, out, err);
}

enum cairn_code cairn_view(struct cairn *cairn, const char *run, uint64_t at, char **json, size_t *len,
                           struct cairn_error *error)
{
    return tell_part(cairn, run, read_view, &at, json, len, error);
}

static enum code read_payload(struct look *look, const void *what, struct json *out, struct error *err)
{
    (void)what;
    return reading_payload(look->visit.store, &look->head, &look->arena, out, err);
}

enum cairn_code cairn_payload(struct cairn *cairn, const char *run, char **json, size_t *len, struct cairn_error *error)
{
    return tell_part(cairn, run, read_payload, NULL, json, len, error);
}

static enum code read_proof(struct look *look, const void *what, struct json *out, struct error *err)
{
    (void)what;
    return reading_proof(look->visit.store, &look->head, lib_now(look->cairn).wall_ms, &look->arena, out, err);
}

enum cairn_code cairn_proof(struct cairn *cairn, const char *run, char **json, size_t *len, struct cairn_error *error)
{
    return tell_part(cairn, run, read_proof, NULL, json, len, error);
}

static enum code output_of(struct look *look, const char *step, char **json, size_t *len, struct error *err)
{
    struct step_output output;
    enum code rc = reading_output(look->visit.store, &look->head, str_from(step), &look->arena, &output, err);
    if (rc) return rc;
    if (!output.known) return error_set(err, E_NOT_FOUND, "the run has no step \"%s\"", step);
    if (output.status != STEP_STATUS_SUCCESS)
        return error_set(err, E_NOT_FOUND, "step \"%s\" has no output: it is %s", step,
                         step_status_name(output.status));
    if (output.bytes.ptr) return give(output.bytes, json, len, err);
    struct json value = output.value.type == 0 ? json_null() : output.value;
    return give_json(&value, json, len, err);
}

enum cairn_code cairn_output(struct cairn *cairn, const char *run, const char *step, char **json, size_t *len,
                             struct cairn_error *error)
{
    struct error err = {0};
    struct look look;
    *json = NULL;
    enum code rc = look_begin(&look, cairn, run, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = output_of(&look, step ? step : "", json, len, &err);
    look_end(&look);
    return tell(error, rc, &err, NULL);
}

// ---- files that its steps left

static enum code read_artifacts(struct look *look, const void *what, struct json *out, struct error *err)
{
    struct artifacts all;
    (void)what;
    enum code rc = reading_artifacts(look->visit.store, &look->head, &look->arena, &all, err);
    if (!rc && !artifacts_json(&all, os_now().wall_ms, &look->arena, out)) rc = error_nomem(err);
    return rc;
}

enum cairn_code cairn_artifacts(struct cairn *cairn, const char *run, char **json, size_t *len,
                                struct cairn_error *error)
{
    return tell_part(cairn, run, read_artifacts, NULL, json, len, error);
}

static enum code bytes_of(struct look *look, const char *step, const char *name, char **bytes, size_t *len,
                          struct error *err)
{
    struct artifacts all;
    struct file_piece piece;
    enum code rc = reading_artifacts(look->visit.store, &look->head, &look->arena, &all, err);
    if (rc) return rc;
    const struct artifact *artifact = artifact_find(&all, str_from(name), str_from(step));
    if (!artifact) return error_set(err, E_NOT_FOUND, "no step has left a file \"%s\"", name);
    rc = artifact_read(&all, artifact, 0, 0, &look->arena, &piece, err);
    size_t size = rc ? 0 : (size_t)piece.size;
    if (!rc) rc = artifact_read(&all, artifact, 0, size, &look->arena, &piece, err);
    if (rc) return rc;
    if (piece.bytes.len != size || !artifact_is_whole(artifact, piece.bytes))
        return error_set(err, E_CORRUPT, "the file \"%s\" is not what the step left", name);
    return give(piece.bytes, bytes, len, err);
}

enum cairn_code cairn_artifact(struct cairn *cairn, const char *run, const char *step, const char *name, char **bytes,
                               size_t *len, struct cairn_error *error)
{
    struct error err = {0};
    struct look look;
    *bytes = NULL;
    enum code rc = look_begin(&look, cairn, run, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = bytes_of(&look, step ? step : "", name ? name : "", bytes, len, &err);
    look_end(&look);
    return tell(error, rc, &err, NULL);
}

// ---- events

struct cairn_events {
    struct cairn *cairn;
    struct str run;
    uint64_t after;
    struct records page;
    size_t next;
    struct arena names, arena; // of the iterator; of the page
};

enum cairn_code cairn_events_open(struct cairn *cairn, const char *run, uint64_t after, struct cairn_events **out,
                                  struct cairn_error *error)
{
    struct error err = {0};
    struct visit visit;
    *out = NULL;
    enum code rc = reader_begin(cairn, &visit, &err);
    if (rc) return tell(error, rc, &err, NULL);
    struct cairn_events *events = calloc(1, sizeof(*events));
    if (!events) {
        reader_end(cairn, &visit);
        return tell(error, E_NOMEM, NULL, NULL);
    }
    struct run_head head;
    events->cairn = cairn;
    events->after = after;
    arena_init(&events->names, 512, (size_t)64 << 20);
    arena_init(&events->arena, 4096, (size_t)256 << 20);
    events->run = arena_copy(&events->names, str_from(run));
    rc = events->run.ptr ? store_head(visit.store, cairn->tenant, events->run, &events->arena, &head, &err)
                         : error_nomem(&err);
    reader_end(cairn, &visit);
    if (rc)
        cairn_events_close(events);
    else
        *out = events;
    return tell(error, rc, &err, NULL);
}

static enum code next_page(struct cairn_events *events, struct error *err)
{
    struct visit visit;
    enum code rc = reader_begin(events->cairn, &visit, err);
    if (rc) return rc;
    arena_reset(&events->arena);
    events->next = 0;
    events->page = (struct records){0};
    struct record_range range = {
        .tenant = events->cairn->tenant, .run = events->run, .after = events->after, .limit = EVENTS_PER_PAGE};
    rc = store_read(visit.store, &range, &events->arena, &events->page, err);
    for (size_t i = 0; !rc && i < events->page.count; i++) { // texts that end in NUL
        struct record *record = &events->page.items[i];
        if (!ARENA_KEEP(&events->arena, &record->bytes, &record->type)) rc = error_nomem(err);
    }
    if (rc) events->page.count = 0;
    reader_end(events->cairn, &visit);
    return rc;
}

enum cairn_code cairn_events_next(struct cairn_events *events, struct cairn_event *out, struct cairn_error *error)
{
    struct error err = {0};
    if (out->size < sizeof(*out)) return refuse(error, E_INVALID, "cairn_event.size is not set");
    enum code rc = events->next < events->page.count ? OK : next_page(events, &err);
    tell(error, rc, &err, NULL);
    if (rc) return (enum cairn_code)rc;
    if (events->page.count == 0) return CAIRN_END;
    const struct record *record = &events->page.items[events->next++];
    events->after = record->seq;
    out->seq = record->seq;
    out->type = record->type.ptr;
    out->bytes = record->bytes.ptr;
    out->len = record->bytes.len;
    return CAIRN_OK;
}

void cairn_events_close(struct cairn_events *events)
{
    if (!events) return;
    arena_release(&events->names);
    arena_release(&events->arena);
    free(events);
}

// ---- runs

struct cairn_runs {
    struct cairn *cairn;
    struct run_filter filter;
    struct run_heads page;
    size_t next;
    bool over;
    struct arena names, arena;
};

enum cairn_code cairn_runs_open(struct cairn *cairn, const struct cairn_filter *given, struct cairn_runs **out,
                                struct cairn_error *error)
{
    struct visit visit;
    struct cairn_filter filter = {0};
    *out = NULL;
    if (given && given->size < offsetof(struct cairn_filter, roots))
        return refuse(error, E_INVALID, "cairn_filter.size is not set");
    if (given) memcpy(&filter, given, given->size < sizeof(filter) ? given->size : sizeof(filter));
    struct error err = {0};
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    struct cairn_runs *runs = calloc(1, sizeof(*runs));
    if (!runs) {
        call_end(cairn);
        return tell(error, E_NOMEM, NULL, NULL);
    }
    visit_routes(cairn, &visit);
    runs->cairn = cairn;
    arena_init(&runs->names, 512, (size_t)1 << 20);
    arena_init(&runs->arena, 16384, (size_t)256 << 20);
    runs->filter = (struct run_filter){.tenant = cairn->tenant,
                                       .status_mask = filter.statuses,
                                       .plan = arena_copy(&runs->names, str_from(filter.plan)),
                                       .run_prefix = arena_copy(&runs->names, str_from(filter.prefix)),
                                       .since_ms = filter.since_ms,
                                       .until_ms = filter.until_ms,
                                       .unfinished = filter.unfinished != 0,
                                       .roots = filter.roots != 0,
                                       .limit = RUNS_PER_PAGE};
    visit_routes_end(&visit);
    call_end(cairn);
    if (!runs->filter.plan.ptr || !runs->filter.run_prefix.ptr) {
        cairn_runs_close(runs);
        return tell(error, E_NOMEM, NULL, NULL);
    }
    *out = runs;
    return tell(error, OK, NULL, NULL);
}

static bool end_in_nul(struct arena *arena, struct run_head *head)
{
    return ARENA_KEEP(arena, &head->ids.run, &head->ids.plan_id, &head->ids.plan_version, &head->name, &head->parent_run);
}

static enum code next_runs(struct cairn_runs *runs, struct error *err)
{
    struct visit visit;
    enum code rc = reader_begin(runs->cairn, &visit, err);
    if (rc) return rc;
    arena_reset(&runs->arena);
    runs->next = 0;
    runs->page = (struct run_heads){0};
    rc = store_list(visit.store, &runs->filter, &runs->arena, &runs->page, err);
    for (size_t i = 0; !rc && i < runs->page.count; i++)
        if (!end_in_nul(&runs->arena, &runs->page.items[i])) rc = error_nomem(err);
    if (rc) runs->page.count = 0;
    runs->filter.before = runs->page.next;
    runs->over = !rc && runs->page.next == 0;
    reader_end(runs->cairn, &visit);
    return rc;
}

enum cairn_code cairn_runs_next(struct cairn_runs *runs, struct cairn_run *out, struct cairn_error *error)
{
    struct error err = {0};
    if (out->size < sizeof(*out)) return refuse(error, E_INVALID, "cairn_run.size is not set");
    enum code rc = OK;
    while (!rc && runs->next == runs->page.count && !runs->over) rc = next_runs(runs, &err);
    tell(error, rc, &err, NULL);
    if (rc) return (enum cairn_code)rc;
    if (runs->next == runs->page.count) return CAIRN_END;
    const struct run_head *head = &runs->page.items[runs->next++];
    const struct run_summary *summary = &head->summary;
    *out = (struct cairn_run){.size = out->size,
                              .run = head->ids.run.ptr,
                              .plan = head->ids.plan_id.ptr,
                              .version = head->ids.plan_version.ptr,
                              .name = head->name.ptr,
                              .parent = head->parent_run.ptr,
                              .substatus = summary->substatus,
                              .cause = summary->cause,
                              .status = (int32_t)summary->status,
                              .owned = head->owned,
                              .last_seq = head->last_seq,
                              .created_ms = summary->created_ms,
                              .started_ms = summary->started_ms,
                              .ended_ms = summary->ended_ms,
                              .steps = summary->counts.total,
                              .completed = summary->counts.completed,
                              .failed = summary->counts.failed,
                              .skipped = summary->counts.skipped,
                              .running = summary->running};
    return CAIRN_OK;
}

void cairn_runs_close(struct cairn_runs *runs)
{
    if (!runs) return;
    arena_release(&runs->names);
    arena_release(&runs->arena);
    free(runs);
}
