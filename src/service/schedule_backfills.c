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
    int64_t from = 0, to = 0;
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

// How many of its times there are, and how many have begun.
static enum code progress_of(struct store *store, const struct note *note, struct arena *arena, struct json *value,
                             int64_t *count, int64_t *begun, struct error *err)
{
    struct note state;
    struct json moved = json_none();
    enum code rc = json_parse(note->value, &json_limits_result, arena, value, err);
    if (rc) return rc;
    rc = store_note(store, BACKFILL_STATE_SPACE, note->key, arena, &state, err);
    if (!rc) rc = json_parse(state.value, NULL, arena, &moved, err);
    if (rc && rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    const struct json *times = json_key(value, "times");
    *count = times ? (int64_t)times->count : json_integer(json_key(value, "count"), 0);
    *begun = json_integer(json_key(&moved, "begun"), 0);
    return OK;
}

struct backfill_room {
    struct store *store;
    size_t count, times;
};

static enum code add_room(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct backfill_room *room = context;
    struct json value;
    int64_t count, begun;
    enum code rc = progress_of(room->store, note, scratch, &value, &count, &begun, err);
    if (rc || begun >= count) return rc;
    room->count++;
    room->times += (size_t)count;
    return OK;
}

// The engine has the times of all that go on in memory.
static bool has_room(struct call *call, struct store *store, size_t times)
{
    struct backfill_room room = {store, 1, times};
    struct error err = {0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    enum code rc = prefix.ptr ? store_each_note(store, BACKFILL_SPACE, prefix, add_room, &room, &err) : error_nomem(&err);
    if (rc) return call_failed(call, &err);
    if (room.count <= BACKFILLS_MAX && room.times <= BACKFILLS_TIMES) return true;
    return call_problem(call, 422, "LIMIT_EXCEEDED",
                        "at most %d backfills of a tenant go on at once, of %d times together: wait until one has begun all of "
                        "its times, or end one",
                        BACKFILLS_MAX, BACKFILLS_TIMES);
}

static bool backfill_on_reader(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct range range = {0};
    char id[UUID_SIZE];
    if (!asking_find(call, store) || !list_times(call, &range)) return false;
    if (asking->given.dry_run || range.count == 0) return call_answer(call, 200, told(call, &range, (struct str){0}));
    if (!has_room(call, store, range.count)) return false;
    entropy_uuid(os_entropy(), id);
    struct str short_id = arena_copy(&call->arena, str_slice(str_from(id), 0, 8));
    struct json value = kept(call, &range);
    asking->answer = told(call, &range, short_id);
    asking->status = 201;
    if (json_ok(&asking->answer) &&
        asking_put(call, BACKFILL_SPACE, call_text(call, "%.*s|%.*s", STR_ARG(asking->key), STR_ARG(short_id)), &value, 0))
        return service_post(call, asking_change);
    return call_nomem(call);
}

bool service_schedule_backfill(struct call *call, const struct schedule_call *given)
{
    struct asking *asking = asking_begin(call, given, OPERATION_SCHEDULE_CREATE);
    if (!asking) return false;
    struct schedule_call *own = &asking->given;
    if (own->order.len == 0) own->order = STR("oldest");
    if (own->parallel == 0) own->parallel = 1;
    if (!str_is(own->order, "oldest") && !str_is(own->order, "newest"))
        return call_problem(call, 400, "INVALID_REQUEST", "order is oldest or newest");
    if (own->parallel > PARALLEL_MAX)
        return call_problem(call, 400, "INVALID_REQUEST", "parallel is at most %d", PARALLEL_MAX);
    return service_read(call, backfill_on_reader);
}

// ---- those that there are

static enum code one(struct call *call, struct store *store, const struct note *note, struct json *out, struct error *err)
{
    struct json value;
    struct str rest, id;
    int64_t count, begun;
    str_cut(note->key, '|', &rest);
    str_cut(rest, '|', &id);
    enum code rc = progress_of(store, note, &call->arena, &value, &count, &begun, err);
    if (rc) return rc;
    static const char *const shown[] = {"from", "to", "order", "parallel", "reason", "createdBy", "createdAt"};
    *out = JSON_OF(&call->arena, {"id", json_copied(&call->arena, id)}, {"count", json_int(count)},
                   {"begun", json_int(begun)}, {"status", json_word(begun >= count ? "DONE" : "RUNNING")});
    for (size_t i = 0; i < ARRAY_COUNT(shown); i++)
        JSON_ADD(&call->arena, out, {shown[i], json_ref(json_key(&value, shown[i]))});
    return json_made(out, err);
}

static bool list_on_reader(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct notes notes;
    struct error err = {0};
    struct json items = json_array();
    if (!asking_find(call, store)) return false;
    struct str prefix = call_text(call, "%.*s|", STR_ARG(asking->key));
    enum code rc = prefix.ptr ? store_notes(store, BACKFILL_SPACE, prefix, SHOWN_MAX, &call->arena, &notes, &err)
                              : error_nomem(&err);
    for (size_t i = 0; !rc && i < notes.count && str_starts(notes.items[i].key, prefix); i++) {
        struct json row;
        rc = one(call, store, &notes.items[i], &row, &err);
        if (!rc) json_append(&call->arena, &items, row);
    }
    if (rc) return call_failed(call, &err);
    return asking_items(call, items);
}

bool service_schedule_backfills(struct call *call, struct str name)
{
    if (asking_begin(call, &(struct schedule_call){.name = name}, OPERATION_SCHEDULE_LIST))
        service_read(call, list_on_reader);
    return true;
}

// Runs that have begun go on; none begins any more.
static bool end_on_reader(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct note note;
    struct error err = {0};
    if (!asking_find(call, store)) return false;
    struct str key = call_text(call, "%.*s|%.*s", STR_ARG(asking->key), STR_ARG(asking->given.id));
    enum code rc = key.ptr ? store_note(store, BACKFILL_SPACE, key, &call->arena, &note, &err) : error_nomem(&err);
    asking->status = 204;
    if (rc == E_NOT_FOUND)
        return call_problem(call, 404, "NOT_FOUND", "this schedule has no backfill %.*s", STR_ARG(asking->given.id));
    if (rc) return call_failed(call, &err);
    if (asking_put(call, BACKFILL_SPACE, key, NULL, NOTE_ANY) &&
        asking_put(call, BACKFILL_STATE_SPACE, key, NULL, NOTE_ANY))
        return service_post(call, asking_change);
    return call_nomem(call);
}

bool service_schedule_backfill_end(struct call *call, const struct schedule_call *given)
{
    return asking_begin(call, given, OPERATION_SCHEDULE_CREATE) && service_read(call, end_on_reader);
}
