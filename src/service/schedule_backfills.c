// Backfills, as people ask for them: which times of a range would run, and that they do.
#include "service/schedule_asking.h"

#include "base/civil.h"

enum { SHOWN_MAX = 1000, PARALLEL_MAX = 100 };

struct range {
    int64_t *times;
    size_t count, all; // all: of the range, before the limit
};

static bool read_time(struct call *call, const struct zone *zone, const char *name, struct str text, int64_t *out)
{
    if (text.len > 0 && zone_time(zone, text, out)) return true;
    return call_problem(call, 400, "INVALID_REQUEST", "%s must be a time, such as 2026-03-29T00:00:00 (in the zone) or with an offset",
                        name);
}

// Times from `from` to before `to`; the newest first where that is asked for, and no more than the limit.
static bool list_times(struct call *call, struct range *out)
{
    const struct asking *asking = call->state;
    const struct schedule_call *given = &asking->given;
    const struct timing *timing = &asking->note.spec.timing;
    int64_t from, to;
    struct fire fire;
    if (!read_time(call, timing->zone, "from", given->from, &from) || !read_time(call, timing->zone, "to", given->to, &to))
        return false;
    if (to <= from) return call_problem(call, 400, "INVALID_REQUEST", "to is not after from");
    out->times = ARENA_ARRAY(&call->arena, BACKFILL_TIMES_MAX, int64_t);
    if (!out->times) return call_nomem(call);
    for (int64_t at = from - 1; timing_next(timing, at, &fire) && fire.at_ms < to; at = fire.at_ms) {
        if (out->all == BACKFILL_TIMES_MAX)
            return call_problem(call, 422, "LIMIT_EXCEEDED", "the range has more than %d times: ask for it in parts",
                                BACKFILL_TIMES_MAX);
        out->times[out->all++] = fire.at_ms;
    }
    if (str_is(given->order, "newest"))
        for (size_t i = 0; i < out->all / 2; i++) {
            int64_t kept = out->times[i];
            out->times[i] = out->times[out->all - 1 - i];
            out->times[out->all - 1 - i] = kept;
        }
    out->count = given->limit && given->limit < out->all ? given->limit : out->all;
    return true;
}

static struct json told(struct call *call, const struct range *range, struct str id)
{
    const struct asking *asking = call->state;
    const struct schedule_call *given = &asking->given;
    struct json list = json_array();
    for (size_t i = 0; i < range->count && i < SHOWN_MAX; i++) {
        struct fire fire = {.at_ms = range->times[i]};
        json_append(&call->arena, &list, asking_fire(call, asking->note.spec.timing.zone, &fire));
    }
    return JSON_OF(&call->arena, {"id", json_some(id)}, {"schedule", json_string(asking->note.name)},
                   {"from", json_string(given->from)}, {"to", json_string(given->to)},
                   {"order", json_string(given->order)}, {"parallel", json_count(given->parallel)},
                   {"dryRun", json_flag(given->dry_run)}, {"count", json_count(range->count)},
                   {"inRange", json_count(range->all)}, {"times", list});
}

static struct json kept(struct call *call, const struct range *range)
{
    const struct schedule_call *given = &((struct asking *)call->state)->given;
    struct json list = json_array();
    for (size_t i = 0; i < range->count; i++) json_append(&call->arena, &list, json_int(range->times[i]));
    return JSON_OF(&call->arena, {"times", list}, {"from", json_string(given->from)}, {"to", json_string(given->to)},
                   {"order", json_string(given->order)}, {"parallel", json_count(given->parallel)},
                   {"reason", json_some(given->reason)}, {"createdBy", json_string(call->who.id)},
                   {"createdAt", json_time(&call->arena, os_now().wall_ms)});
}

static void backfill_on_reader(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct range range = {0};
    char id[UUID_SIZE];
    uint8_t random[16];
    if (!asking_find(call, store) || !list_times(call, &range)) return;
    if (asking->given.dry_run || range.count == 0) {
        call_answer(call, 200, told(call, &range, (struct str){0}));
        return;
    }
    os_entropy()->fill(os_entropy(), random, sizeof(random));
    uuid_format(random, id);
    struct str short_id = arena_copy(&call->arena, str_slice(str_from(id), 0, 8));
    struct json value = kept(call, &range);
    asking->answer = told(call, &range, short_id);
    asking->status = 201;
    if (json_ok(&asking->answer) &&
        asking_put(call, BACKFILL_SPACE, call_text(call, "%.*s|%.*s", STR_ARG(asking->key), STR_ARG(short_id)), &value, 0))
        service_post(call, asking_change);
    else
        call_nomem(call);
}

void service_schedule_backfill(struct call *call, const struct schedule_call *given)
{
    struct asking *asking = asking_begin(call, given, OPERATION_SCHEDULE_CREATE);
    if (!asking) return;
    struct schedule_call *own = &asking->given;
    if (own->order.len == 0) own->order = STR("oldest");
    if (own->parallel == 0) own->parallel = 1;
    if (!str_is(own->order, "oldest") && !str_is(own->order, "newest"))
        call_problem(call, 400, "INVALID_REQUEST", "order is oldest or newest");
    else if (own->parallel > PARALLEL_MAX)
        call_problem(call, 400, "INVALID_REQUEST", "parallel is at most %d", PARALLEL_MAX);
    else
        service_read(call, backfill_on_reader);
}

// ---- those that there are

static enum code one(struct call *call, struct store *store, const struct note *note, struct json *out, struct error *err)
{
    struct note state;
    struct json value, moved = json_none();
    struct str rest, id;
    str_cut(note->key, '|', &rest);
    str_cut(rest, '|', &id);
    enum code rc = json_parse(note->value, &json_limits_result, &call->arena, &value, err);
    if (rc) return rc;
    rc = store_note(store, BACKFILL_STATE_SPACE, note->key, &call->arena, &state, err);
    if (!rc) rc = json_parse(state.value, NULL, &call->arena, &moved, err);
    if (rc && rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    int64_t begun = json_integer(json_key(&moved, "begun"), 0);
    const struct json *times = json_key(&value, "times");
    uint32_t count = times ? times->count : 0;
    static const char *const shown[] = {"from", "to", "order", "parallel", "reason", "createdBy", "createdAt"};
    *out = JSON_OF(&call->arena, {"id", json_copied(&call->arena, id)}, {"count", json_count(count)},
                   {"begun", json_int(begun)}, {"status", json_word(begun >= count ? "DONE" : "RUNNING")});
    for (size_t i = 0; i < ARRAY_COUNT(shown); i++)
        JSON_ADD(&call->arena, out, {shown[i], json_ref(json_key(&value, shown[i]))});
    return json_made(out, err);
}

static void list_on_reader(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct notes notes;
    struct error err = {0};
    struct json items = json_array();
    if (!asking_find(call, store)) return;
    struct str prefix = call_text(call, "%.*s|", STR_ARG(asking->key));
    enum code rc = prefix.ptr ? store_notes(store, BACKFILL_SPACE, prefix, SHOWN_MAX, &call->arena, &notes, &err)
                              : error_nomem(&err);
    for (size_t i = 0; !rc && i < notes.count && str_starts(notes.items[i].key, prefix); i++) {
        struct json row;
        rc = one(call, store, &notes.items[i], &row, &err);
        if (!rc) json_append(&call->arena, &items, row);
    }
    if (rc)
        call_failed(call, &err);
    else
        asking_items(call, items);
}

void service_schedule_backfills(struct call *call, struct str name)
{
    if (asking_begin(call, &(struct schedule_call){.name = name}, OPERATION_SCHEDULE_LIST))
        service_read(call, list_on_reader);
}

// Runs that have begun go on; none begins any more.
static void end_on_reader(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct note note;
    struct error err = {0};
    if (!asking_find(call, store)) return;
    struct str key = call_text(call, "%.*s|%.*s", STR_ARG(asking->key), STR_ARG(asking->given.id));
    enum code rc = key.ptr ? store_note(store, BACKFILL_SPACE, key, &call->arena, &note, &err) : error_nomem(&err);
    asking->status = 204;
    if (rc == E_NOT_FOUND)
        call_problem(call, 404, "NOT_FOUND", "this schedule has no backfill %.*s", STR_ARG(asking->given.id));
    else if (rc)
        call_failed(call, &err);
    else if (asking_put(call, BACKFILL_SPACE, key, NULL, NOTE_ANY) && asking_put(call, BACKFILL_STATE_SPACE, key, NULL, NOTE_ANY))
        service_post(call, asking_change);
    else
        call_nomem(call);
}

void service_schedule_backfill_end(struct call *call, const struct schedule_call *given)
{
    if (asking_begin(call, given, OPERATION_SCHEDULE_CREATE)) service_read(call, end_on_reader);
}
