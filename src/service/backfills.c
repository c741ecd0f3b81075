// Backfills: the times of a range, listed when it was asked for, begun in their order, so many at a time.
#include "service/schedules.h"

#include "base/civil.h"

#include <stdlib.h>

enum { RETRY_MS = 1000, LOOK_MS = 250 };

// ---- what there is

static void free_row(struct backfill_row *row)
{
    arena_release(&row->arena);
    free(row);
}

static struct backfill_row *find_row(struct service *service, struct str tenant, struct str name, struct str id)
{
    struct backfill_row *row = service->scheduling.backfills;
    while (row && !(str_eq(row->tenant, tenant) && str_eq(row->name, name) && str_eq(row->id, id))) row = row->next;
    return row;
}

// Of the note only the times stay in memory. E_NOT_FOUND: it has none any more.
static enum code fill_row(struct backfill_row *row, const struct note *note, struct arena *scratch, struct error *err)
{
    struct json value;
    struct str rest, key = arena_copy(&row->arena, note->key);
    if (!key.ptr) return error_nomem(err);
    row->tenant = str_cut(key, '|', &rest);
    row->name = str_cut(rest, '|', &row->id);
    enum code rc = json_parse(note->value, &json_limits_result, scratch, &value, err);
    if (rc) return rc;
    const struct json *times = json_key(&value, "times");
    if (!times && json_key(&value, "count")) return E_NOT_FOUND; // all have begun
    if (!json_is(times, JSON_ARRAY)) return error_set(err, E_CORRUPT, "a backfill has no times");
    row->parallel = (uint32_t)json_integer(json_key(&value, "parallel"), 1);
    row->count = times->count;
    int64_t *list = ARENA_ARRAY(&row->arena, times->count + 1, int64_t);
    if (!list) return error_nomem(err);
    for (uint32_t i = 0; i < times->count; i++) list[i] = json_integer(&times->items[i], 0);
    row->times = list;
    return OK;
}

static struct str key_of(const struct backfill_row *row)
{
    return (struct str){row->tenant.ptr, row->tenant.len + 1 + row->name.len + 1 + row->id.len};
}

// Rows are in the order of their keys, as notes are.
static enum code read_row(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct backfill_row ***at = context;
    struct error why = {0};
    while (**at && str_cmp(key_of(**at), note->key) < 0) *at = &(**at)->next;
    struct backfill_row *row = **at;
    if (row && str_eq(key_of(row), note->key)) {
        row->listed = true;
        return OK;
    }
    row = calloc(1, sizeof(*row));
    if (!row) return error_nomem(err);
    arena_init(&row->arena, 512, (size_t)16 << 20);
    enum code rc = fill_row(row, note, scratch, &why);
    if (rc) {
        if (rc != E_NOT_FOUND) os_log(LOG_ERROR, "backfill not read name=%.*s why=\"%s\"", STR_ARG(note->key), why.message);
        free_row(row);
        return rc == E_NOMEM ? error_nomem(err) : OK;
    }
    row->listed = true;
    row->next = **at;
    **at = row;
    return OK;
}

enum code backfills_reload(struct service *service, struct error *err)
{
    struct scheduling *scheduling = &service->scheduling;
    struct backfill_row **place = &scheduling->backfills;
    for (struct backfill_row *row = scheduling->backfills; row; row = row->next) {
        row->listed = false;
        if (!row->busy) row->known = false;
    }
    enum code rc = store_each_note(service->store, BACKFILL_SPACE, STR(""), read_row, &place, err);
    for (struct backfill_row **at = &scheduling->backfills; !rc && *at;) {
        struct backfill_row *row = *at;
        if (row->listed || row->busy) {
            at = &row->next;
            continue;
        }
        *at = row->next;
        free_row(row);
    }
    return rc;
}

void backfills_release(struct service *service)
{
    while (service->scheduling.backfills) {
        struct backfill_row *row = service->scheduling.backfills;
        service->scheduling.backfills = row->next;
        free_row(row);
    }
}

// ---- the next of its times

static enum code take_state(struct service *service, struct backfill_row *row, struct arena *arena, struct error *err)
{
    struct note note;
    struct json value;
    struct str key = schedule_key(arena, row->tenant, row->name, "|%.*s", STR_ARG(row->id));
    if (row->known) return OK;
    enum code rc = key.ptr ? store_note(service->store, BACKFILL_STATE_SPACE, key, arena, &note, err) : error_nomem(err);
    row->begun = 0;
    row->state_version = 0;
    if (rc == E_NOT_FOUND) {
        *err = (struct error){0};
        rc = OK;
    } else if (!rc) {
        rc = json_parse(note.value, NULL, arena, &value, err);
        if (!rc) row->begun = (uint32_t)json_integer(json_key(&value, "begun"), 0);
        row->state_version = note.version;
    }
    row->known = rc == OK;
    return rc;
}

static bool add_state(struct call *call, struct firing *firing, const struct backfill_row *row)
{
    struct json value = JSON_OF(&call->arena, {"begun", json_count(row->begun + 1)});
    struct note_put put = {.space = BACKFILL_STATE_SPACE,
                           .key = schedule_key(&call->arena, row->tenant, row->name, "|%.*s", STR_ARG(row->id)),
                           .value = json_canon_kept(&call->arena, &value, 1024),
                           .expect = row->state_version};
    firing->notes[firing->note_count++] = put;
    return put.key.ptr && put.value.ptr;
}

static bool begin(struct service *service, const struct schedule_row *schedule, struct backfill_row *row)
{
    struct firing *firing;
    struct call *call = schedules_call(service, &schedule->note, &firing);
    if (!call) return false;
    char time[CIVIL_SIZE];
    firing->kind = STR("backfill");
    firing->backfill = arena_copy(&call->arena, row->id);
    firing->at_ms = row->times[row->begun];
    civil_format(firing->at_ms, time);
    firing->run = schedule_run_id(&call->arena, row->name, row->id, firing->at_ms);
    firing->triggered_by =
        call_text(call, "schedule:%.*s@%s/backfill %.*s", STR_ARG(row->name), time, STR_ARG(row->id));
    if (!firing->run.ptr || !firing->triggered_by.ptr || !firing->backfill.ptr || !add_state(call, firing, row) ||
        !firing_notes(call, firing, NOTE_ANY)) {
        call_free(call);
        return false;
    }
    row->busy = true;
    schedules_start(call);
    return true;
}

// ---- the end of one

// Which row an answer of the store is about.
struct moving {
    struct service *service;
    char tenant[129], name[129], id[65];
};

static void copy_text(struct str text, char *out, size_t size)
{
    size_t n = text.len < size - 1 ? text.len : size - 1;
    for (size_t i = 0; i < n; i++) out[i] = text.ptr[i];
    out[n] = '\0';
}

static struct moving *moving_of(struct service *service, const struct backfill_row *row)
{
    struct moving *moving = calloc(1, sizeof(*moving));
    if (!moving) return NULL;
    moving->service = service;
    copy_text(row->tenant, moving->tenant, sizeof(moving->tenant));
    copy_text(row->name, moving->name, sizeof(moving->name));
    copy_text(row->id, moving->id, sizeof(moving->id));
    return moving;
}

static void moved(void *context, enum code rc, const struct error *why)
{
    struct moving *moving = context;
    struct backfill_row *row =
        find_row(moving->service, str_from(moving->tenant), str_from(moving->name), str_from(moving->id));
    if (row) row->busy = row->known = false;
    if (rc && row) row->retry_ms = os_now().mono_ms + RETRY_MS;
    if (rc && rc != E_CONFLICT && rc != E_CANCELLED) os_log(LOG_WARN, "backfill not moved on why=\"%s\"", why->message);
    free(moving);
}

// Nothing of it is left to do, and who lists backfills wants to know how many times it had, but not which: they leave the store and the
// memory.
static void folded(void *context, enum code rc, const struct error *why)
{
    const struct moving *moving = context;
    struct backfill_row *row =
        find_row(moving->service, str_from(moving->tenant), str_from(moving->name), str_from(moving->id));
    struct backfill_row **at = &moving->service->scheduling.backfills;
    while (*at && *at != row) at = &(*at)->next;
    if (!rc && row) {
        *at = row->next;
        free_row(row);
    }
    moved(context, rc, why);
}

static enum code fold(struct service *service, struct backfill_row *row, struct arena *arena, struct error *err)
{
    static const char *const kept[] = {"from", "to", "order", "parallel", "reason", "createdBy", "createdAt"};
    struct note note;
    struct json value;
    enum code rc = store_note(service->store, BACKFILL_SPACE, key_of(row), arena, &note, err);
    if (!rc) rc = json_parse(note.value, &json_limits_result, arena, &value, err);
    if (rc) return rc;
    struct json left = JSON_OF(arena, {"count", json_count(row->count)});
    for (size_t i = 0; i < ARRAY_COUNT(kept); i++) JSON_ADD(arena, &left, {kept[i], json_ref(json_key(&value, kept[i]))});
    struct note_put put = {.space = BACKFILL_SPACE,
                           .key = key_of(row),
                           .value = json_canon_kept(arena, &left, SCHEDULE_NOTE_MAX),
                           .expect = note.version};
    struct moving *moving = put.value.ptr ? moving_of(service, row) : NULL;
    if (!moving) return error_nomem(err);
    rc = engine_put(service->engine, &put, 1, folded, moving, err);
    row->busy = rc == OK;
    if (rc) free(moving);
    return rc;
}

static enum code look(struct service *service, struct backfill_row *row, struct arena *arena, int64_t mono_ms,
                      struct error *err)
{
    const struct schedule_row *schedule = schedules_find(service, row->tenant, row->name);
    size_t active = 0;
    struct str key = schedule_key(arena, row->tenant, row->name, "#%.*s", STR_ARG(row->id));
    enum code rc = key.ptr ? take_state(service, row, arena, err) : error_nomem(err);
    if (rc) return rc;
    if (row->begun >= row->count) return fold(service, row, arena, err);
    if (!schedule) return OK;
    rc = schedules_active(service, key, arena, NULL, &active, err);
    if (rc) return rc;
    if (active >= row->parallel) {
        row->retry_ms = mono_ms + LOOK_MS;
        return OK;
    }
    return begin(service, schedule, row) ? OK : error_nomem(err);
}

void backfills_tick(struct service *service, struct moment_in_time now)
{
    for (struct backfill_row *row = service->scheduling.backfills; row; row = row->next) {
        if (row->busy || now.mono_ms < row->retry_ms) continue;
        struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, (size_t)64 << 20);
        struct error why = {0};
        if (look(service, row, &arena, now.mono_ms, &why)) {
            os_log(LOG_WARN, "backfill not looked at name=%.*s why=\"%s\"", STR_ARG(row->name), why.message);
            row->retry_ms = now.mono_ms + RETRY_MS;
        }
    }
}

// ---- answers

// A time that can never be started is recorded as FAILED, and the next one follows.
static void give_up(struct service *service, struct backfill_row *row, struct call *call)
{
    struct firing *firing = call->context;
    struct moving *moving = moving_of(service, row);
    struct error err = {0};
    struct tick_fact fact = {.kind = "backfill",
                             .outcome = "FAILED",
                             .reason = call->answer.code,
                             .detail = call->answer.detail,
                             .run = firing->run,
                             .at_ms = firing->at_ms,
                             .count = 1,
                             .decided_ms = os_now().wall_ms};
    struct note_put notes[2] = {firing->notes[0], tick_note(&call->arena, row->tenant, row->name, &fact, NOTE_ANY)};
    if (!moving || !notes[1].key.ptr || !notes[1].value.ptr) {
        free(moving);
        row->retry_ms = os_now().mono_ms + RETRY_MS;
        return;
    }
    row->busy = true;
    if (engine_put(service->engine, notes, ARRAY_COUNT(notes), moved, moving, &err)) moved(moving, err.code, &err);
}

void backfills_fired(struct service *service, struct call *call)
{
    const struct firing *firing = call->context;
    struct backfill_row *row = find_row(service, firing->note.tenant, firing->note.name, firing->backfill);
    const struct answer *answer = &call->answer;
    if (!row) return;
    row->busy = row->known = false;
    if (!answer->code && !answer->replayed) return;
    bool later = answer->retryable || answer->status == 429 || answer->status >= 500 || str_is(str_from(answer->code), "CONFLICT");
    if (answer->code && later)
        row->retry_ms = os_now().mono_ms + (answer->retry_after_ms > RETRY_MS ? answer->retry_after_ms : RETRY_MS);
    else
        give_up(service, row, call); // or a run of that id is there already
}
