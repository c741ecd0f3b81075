// Schedules as notes: read and written, by any thread.
#include "service/schedules.h"

#include "base/civil.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum code schedule_zone(struct str name, struct arena *arena, const struct zone **out, struct error *err)
{
    struct str bytes, copy = arena_copy(arena, name);
    if (!copy.ptr) return error_nomem(err);
    if (name.len == 0 || str_is(name, "UTC")) {
        *out = zone_utc();
        return OK;
    }
    if (!zone_name_valid(name)) return error_set(err, E_INVALID, "%.*s is no name of a time zone", STR_ARG(name));
    enum code rc = os_zoneinfo(copy.ptr, arena, &bytes, err);
    return rc ? rc : zone_parse(copy, bytes, arena, out, err);
}

enum code schedule_note_read(const struct note *note, struct arena *arena, struct schedule_note *out, struct error *err)
{
    const struct zone *zone;
    struct str key = arena_copy(arena, note->key), text = arena_copy(arena, note->value);
    *out = (struct schedule_note){.version = note->version};
    if (!key.ptr || !text.ptr) return error_nomem(err);
    out->tenant = str_cut(key, '|', &out->name);
    enum code rc = json_parse(text, &json_limits_record, arena, &out->value, err);
    if (rc) return rc;
    const struct json *value = &out->value, *paused = json_key(value, "paused");
    out->project = json_text(json_key(value, "projectId"));
    out->environment = json_text(json_key(value, "environmentId"));
    out->sha256 = json_text(json_at(value, STR("plan.sha256")));
    out->paused = paused && paused->boolean;
    out->since_ms = json_integer(json_key(value, "since"), 0);
    rc = schedule_spec_read(json_key(value, "schedule"), arena, &out->spec, err);
    if (!rc) rc = schedule_zone(out->spec.zone, arena, &zone, err);
    return rc ? rc : schedule_spec_zone(&out->spec, zone, err);
}

enum code schedule_state_read(struct store *store, struct str tenant, struct str name, struct arena *arena,
                              struct schedule_state *out, uint64_t *version, struct error *err)
{
    struct note note;
    struct json value;
    struct str key = schedule_key(arena, tenant, name, "%s", "");
    *out = (struct schedule_state){0};
    *version = 0;
    if (!key.ptr) return error_nomem(err);
    enum code rc = store_note(store, SCHEDULE_STATE_SPACE, key, arena, &note, err);
    if (rc == E_NOT_FOUND) {
        *err = (struct error){0};
        return OK;
    }
    if (!rc) rc = json_parse(note.value, NULL, arena, &value, err);
    if (rc) return rc;
    *version = note.version;
    out->decided_ms = json_integer(json_key(&value, "decided"), 0);
    const struct json *waiting = json_key(&value, "waiting");
    for (uint32_t i = 0; json_is(waiting, JSON_ARRAY) && i < waiting->count && i < SCHEDULE_QUEUED_MAX; i++)
        out->waiting[out->waiting_count++] = json_integer(&waiting->items[i], 0);
    return OK;
}

struct json schedule_state_json(struct arena *arena, const struct schedule_state *state)
{
    struct json waiting = json_array();
    for (uint32_t i = 0; i < state->waiting_count; i++) json_append(arena, &waiting, json_int(state->waiting[i]));
    return JSON_OF(arena, {"decided", json_int(state->decided_ms)}, {"waiting", json_filled(waiting)});
}

struct str schedule_key(struct arena *arena, struct str tenant, struct str name, const char *format, ...)
{
    char more[320];
    va_list args;
    va_start(args, format);
    vsnprintf(more, sizeof(more), format, args);
    va_end(args);
    return arena_format(arena, "%.*s|%.*s%s", STR_ARG(tenant), STR_ARG(name), more);
}

// 2026-03-29T00:30:00.000Z without what is between the numbers; a fraction that is 0 is left out.
struct str schedule_run_id(struct arena *arena, struct str name, struct str backfill, int64_t at_ms)
{
    char text[CIVIL_SIZE], tight[CIVIL_SIZE];
    size_t n = 0;
    civil_format(at_ms, text);
    for (const char *c = text; *c; c++) {
        if (*c == '.' && at_ms % 1000 == 0) break;
        if (*c != '-' && *c != ':' && *c != 'Z') tight[n++] = *c;
    }
    tight[n] = '\0';
    if (backfill.len == 0) return arena_format(arena, "%.*s:%sZ", STR_ARG(name), tight);
    return arena_format(arena, "bf-%.*s:%.*s:%sZ", STR_ARG(backfill), STR_ARG(name), tight);
}

struct json tick_json(struct arena *arena, const struct tick_fact *fact)
{
    bool several = fact->count > 1;
    return JSON_OF(arena, {"time", json_time(arena, fact->at_ms)},
                   {"until", json_when(several, json_time(arena, fact->last_ms))},
                   {"count", json_when(several, json_count(fact->count))}, {"kind", json_word(fact->kind)},
                   {"outcome", json_word(fact->outcome)}, {"reasonCode", json_name(fact->reason)},
                   {"detail", json_some(str_head(fact->detail, 512))}, {"runId", json_some(fact->run)},
                   {"decidedAt", json_time(arena, fact->decided_ms)});
}

struct note_put tick_note(struct arena *arena, struct str tenant, struct str name, const struct tick_fact *fact,
                          uint64_t expect)
{
    struct json value = tick_json(arena, fact);
    struct str run = strcmp(fact->kind, "fire") != 0 ? fact->run : (struct str){0};
    return (struct note_put){.space = TICK_SPACE,
                             .key = schedule_key(arena, tenant, name, "|%015lld|%s%s%.*s", (long long)fact->at_ms,
                                                 fact->kind, run.len ? "|" : "", STR_ARG(run)),
                             .value = json_canon_kept(arena, &value, SCHEDULE_NOTE_MAX),
                             .expect = expect};
}

// ---- a start

bool firing_notes(struct call *call, struct firing *firing, uint64_t tick_expect)
{
    struct arena *arena = &call->arena;
    const struct schedule_note *note = &firing->note;
    struct tick_fact fact = {.kind = firing->kind.ptr,
                             .outcome = "STARTED",
                             .run = firing->run,
                             .at_ms = firing->at_ms,
                             .count = 1,
                             .decided_ms = os_now().wall_ms};
    struct str mark = firing->backfill.len ? STR("#") : STR("");
    struct note_put run = {.space = SCHEDULE_RUN_SPACE,
                           .key = schedule_key(arena, note->tenant, note->name, "%.*s%.*s|%.*s", STR_ARG(mark),
                                               STR_ARG(firing->backfill), STR_ARG(firing->run)),
                           .value = STR("{}"),
                           .expect = NOTE_ANY};
    struct note_put tick = tick_note(arena, note->tenant, note->name, &fact, tick_expect);
    firing->notes[firing->note_count++] = run;
    firing->notes[firing->note_count++] = tick;
    return run.key.ptr && tick.key.ptr && tick.value.ptr;
}

// The time before this one, 0: none in 3000 days. Found by halves: there may be one every second.
static int64_t previous_of(const struct timing *timing, int64_t at_ms)
{
    int64_t low = at_ms - INT64_C(3000) * 86400000, high = at_ms - 1; // after low one follows that is before at_ms, after high none
    struct fire fire;
    if (!timing_next(timing, low, &fire) || fire.at_ms >= at_ms) return 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (timing_next(timing, middle, &fire) && fire.at_ms < at_ms)
            low = fire.at_ms;
        else
            high = middle;
    }
    return low;
}

static enum code inputs_of(struct call *call, const struct firing *firing, struct json *out, struct error *err)
{
    const struct schedule_spec *spec = &firing->note.spec;
    struct schedule_facts facts = {.name = firing->note.name,
                                   .kind = firing->kind,
                                   .at_ms = firing->at_ms,
                                   .previous_ms = previous_of(&spec->timing, firing->at_ms),
                                   .zone = spec->timing.zone};
    struct json all = json_joined(&call->arena, firing->inputs, spec->inputs);
    enum code rc = json_made(&all, err);
    return rc ? rc : schedule_inputs(&all, &facts, &call->arena, out, err);
}

static enum code plan_of(struct call *call, struct store *store, const struct firing *firing, struct json *out,
                         struct error *err)
{
    struct note note;
    const struct schedule_note *of = &firing->note;
    struct str key = schedule_key(&call->arena, of->tenant, of->name, "%s", "");
    enum code rc = key.ptr ? store_note(store, SCHEDULE_PLAN_SPACE, key, &call->arena, &note, err) : error_nomem(err);
    if (!rc) rc = json_parse(note.value, &json_limits_result, &call->arena, out, err);
    if (rc) return rc;
    // what is declared and its document are stored together: one of them was read before a change
    if (!str_eq(json_text(json_key(out, "sha256")), of->sha256))
        return error_set(err, E_UNREACHABLE, "the schedule is being changed");
    return OK;
}

bool firing_start(struct call *call, struct store *store)
{
    struct firing *firing = call->state;
    struct error err = {0};
    struct json *plan = ARENA_NEW(&call->arena, struct json), inputs;
    enum code rc = plan ? plan_of(call, store, firing, plan, &err) : error_nomem(&err);
    if (!rc) rc = inputs_of(call, firing, &inputs, &err);
    const struct json *ref = rc ? NULL : json_key(plan, "planRef");
    struct plan_ref named = {0};
    if (ref) rc = fetch_plan_ref(ref, &named, &err);
    if (rc) return call_failed(call, &err);
    struct start_call start = {.document = json_text(json_key(plan, "document")),
                               .file = json_text(json_key(plan, "file")),
                               .parts = json_key(plan, "parts"),
                               .ref = named,
                               .run = firing->run,
                               .request_id = firing->request_id.len ? firing->request_id : firing->run,
                               .project = firing->note.project,
                               .environment = firing->note.environment,
                               .inputs = inputs,
                               .queue = firing->note.spec.queue,
                               .trigger_source = STR("schedule"),
                               .triggered_by = firing->triggered_by,
                               .notes = firing->notes,
                               .note_count = firing->note_count};
    return start_inside(call, &start);
}
