// What people do with schedules. Looking is of the store, on a reader thread; changing is a batch of notes with the version that was read.
#include "service/schedule_asking.h"

#include "base/civil.h"

enum { NEXT_USUAL = 10, NEXT_MAX = 1000, TICKS_USUAL = 50 };

// ---- the beginning of all of them

static bool copy_given(struct call *call, struct asking *asking, const struct schedule_call *given)
{
    struct schedule_call *g = &asking->given;
    *g = *given;
    if (!ARENA_KEEP(&call->arena, &g->name, &g->project, &g->environment, &g->document, &g->file, &g->reason, &g->request_id,
                    &g->from, &g->to, &g->order, &g->id, &g->ref.uri, &g->ref.sha256, &g->ref.schema_version, &g->ref.plan_id,
                    &g->ref.plan_version, &g->ref.compression))
        return false;
    if (!g->project.len) g->project = STR("default");
    if (!g->environment.len) g->environment = STR("default");
    asking->key = schedule_key(&call->arena, call->who.tenant, g->name, "%s", "");
    return asking->key.ptr != NULL;
}

struct asking *asking_begin(struct call *call, const struct schedule_call *given, enum operation operation)
{
    struct asking *asking = CALL_NEW(call, struct asking);
    if (!asking) return NULL;
    call->state = asking;
    asking->operation = operation;
    if (!copy_given(call, asking, given)) {
        call_nomem(call);
        return NULL;
    }
    call->resource = asking->given.name;
    if (given->name.len == 0 || schedule_name_valid(given->name)) return asking;
    call_problem(call, 400, "INVALID_REQUEST",
                 "the name of a schedule has letters, digits, '.', '_' and '-', up to 64, beginning with a letter or digit");
    return NULL;
}

static struct auth_object object_of(const struct call *call, const struct asking *asking)
{
    const struct schedule_note *note = &asking->note;
    if (!asking->there) return (struct auth_object){.tenant = call->who.tenant};
    return (struct auth_object){
        .tenant = note->tenant, .project = note->project, .environment = note->environment, .exists = true};
}

// What comes with parts was never approved as a whole (start.c), unless a set was.
static bool is_approved(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct note note;
    struct json plan;
    struct error err = {0};
    return definitions_approved(call->service, call->who.tenant, asking->note.sha256) &&
           store_note(store, SCHEDULE_PLAN_SPACE, asking->key, &call->arena, &note, &err) == OK &&
           json_parse(note.value, &json_limits_result, &call->arena, &plan, &err) == OK &&
           (!json_key(&plan, "parts") || json_key(&plan, "planRef"));
}

static enum code read_schedule(struct call *call, struct store *store, struct error *err)
{
    struct asking *asking = call->state;
    struct note note;
    enum code rc = store_note(store, SCHEDULE_SPACE, asking->key, &call->arena, &note, err);
    asking->there = rc == OK;
    if (!rc) rc = schedule_note_read(&note, &call->arena, &asking->note, err);
    asking->note.version = asking->there ? note.version : 0;
    return rc;
}

// Reads the schedule and asks who may. One that is not there, and one that the caller may not see, are the same. Reader thread.
bool asking_find(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct error err = {0};
    enum code rc = read_schedule(call, store, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    struct auth_object object = object_of(call, asking);
    if (asking->operation == OPERATION_RUN_START && asking->there && (call->who.roles & ROLE_OPERATOR))
        object.plan_approved = is_approved(call, store);
    if (!service_may_named(call, asking->operation, &object, asking->given.reason)) return false;
    return !rc || call_problem(call, 422, "TIME_ZONE_NOT_FOUND", "%s", err.message);
}

// ---- as it is answered

struct json asking_fire(struct call *call, const struct zone *zone, const struct fire *fire)
{
    static const char *const marks[] = {"", "gap", "first", "second"};
    char local[ZONE_TIME_SIZE];
    zone_format(zone, fire->at_ms, local);
    return JSON_OF(&call->arena, {"time", json_time(&call->arena, fire->at_ms)},
                   {"local", json_copied(&call->arena, str_from(local))}, {"mark", json_name(marks[fire->mark])});
}

static struct json next_json(struct call *call, const struct schedule_note *note, int64_t after_ms, size_t count)
{
    struct json list = json_array();
    struct fire fire;
    for (size_t i = 0; i < count && timing_next(&note->spec.timing, after_ms, &fire); i++) {
        json_append(&call->arena, &list, asking_fire(call, note->spec.timing.zone, &fire));
        after_ms = fire.at_ms;
    }
    return list;
}

static struct json waiting_json(struct call *call, const struct schedule_state *state)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < state->waiting_count; i++)
        json_append(&call->arena, &list, json_time(&call->arena, state->waiting[i]));
    return json_filled(list);
}

// The last one of those from `first` on. A client with hundreds of schedules, of hundreds of ticks each, lists all of them at once.
static enum code last_from(struct call *call, struct store *store, struct str prefix, struct str first, struct json *out,
                           struct error *err)
{
    struct arena scratch SCOPED(arena_release) = arena_of(16 * 1024, (size_t)16 << 20);
    struct notes notes;
    enum code rc = store_notes(store, TICK_SPACE, first, 4 * TICKS_KEPT, &scratch, &notes, err);
    size_t count = 0;
    while (!rc && count < notes.count && str_starts(notes.items[count].key, prefix)) count++;
    *out = json_none();
    if (rc || count == 0) return rc;
    struct str text = arena_copy(&call->arena, notes.items[count - 1].value);
    return text.ptr ? json_parse(text, NULL, &call->arena, out, err) : error_nomem(err);
}

// It stands at the time that was decided last or behind it, but where several times are one tick.
static enum code last_tick(struct call *call, struct store *store, const struct schedule_note *note, int64_t decided_ms,
                           struct json *out, struct error *err)
{
    struct str prefix = schedule_key(&call->arena, note->tenant, note->name, "|");
    struct str first = schedule_key(&call->arena, note->tenant, note->name, "|%015lld", (long long)decided_ms);
    if (!prefix.ptr || !first.ptr) return error_nomem(err);
    enum code rc = last_from(call, store, prefix, first, out, err);
    return rc || out->type ? rc : last_from(call, store, prefix, prefix, out, err);
}

// What is declared, what it has come to and when it fires next.
static enum code told(struct call *call, struct store *store, const struct schedule_note *note, size_t next,
                      struct json *out, struct error *err)
{
    static const char *const kept[] = {"schedule", "plan",      "paused",    "pausedBy",  "pausedReason",
                                       "createdAt", "createdBy", "updatedAt", "updatedBy"};
    struct schedule_state state;
    struct json tick;
    uint64_t version;
    enum code rc = schedule_state_read(store, note->tenant, note->name, &call->arena, &state, &version, err);
    if (!rc) rc = last_tick(call, store, note, state.decided_ms, &tick, err);
    if (rc) return rc;
    int64_t decided = state.decided_ms > note->since_ms ? state.decided_ms : note->since_ms;
    *out = JSON_OF(&call->arena, {"name", json_string(note->name)}, {"projectId", json_string(note->project)},
                   {"environmentId", json_string(note->environment)});
    for (size_t i = 0; i < ARRAY_COUNT(kept); i++)
        JSON_ADD(&call->arena, out, {kept[i], json_ref(json_key(&note->value, kept[i]))});
    JSON_ADD(&call->arena, out, {"zone", json_string(zone_name(note->spec.timing.zone))},
             {"decidedUntil", json_time(&call->arena, decided)}, {"waiting", waiting_json(call, &state)},
             {"lastTick", tick}, {"next", next_json(call, note, decided, next)});
    return json_made(out, err);
}

static bool tell(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct error err = {0};
    struct json body;
    if (!asking_find(call, store)) return false;
    if (told(call, store, &asking->note, NEXT_USUAL, &body, &err)) return call_failed(call, &err);
    return call_answer(call, 200, body);
}

bool service_schedule_get(struct call *call, struct str name)
{
    return asking_begin(call, &(struct schedule_call){.name = name}, OPERATION_SCHEDULE_LIST) &&
           service_read(call, tell);
}

// ---- list

struct collecting {
    struct call *call;
    struct store *store;
    struct json items;
};

static enum code collect(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct collecting *collecting = context;
    struct call *call = collecting->call;
    struct schedule_note read;
    struct json one;
    (void)scratch;
    enum code rc = schedule_note_read(note, &call->arena, &read, err);
    struct run_ids ids = {.tenant = read.tenant, .project = read.project, .environment = read.environment};
    if (rc == E_NOMEM || !service_sees(call, &ids)) return rc == E_NOMEM ? rc : OK;
    if (rc == E_NOT_FOUND || rc == E_INVALID || rc == E_CORRUPT) { // its zone is not here: it is listed without times
        json_append(&call->arena, &collecting->items,
                    JSON_OF(&call->arena, {"name", json_copied(&call->arena, read.name)},
                            {"error", json_copied(&call->arena, str_from(err->message))}));
        *err = (struct error){0};
        return json_made(&collecting->items, err);
    }
    if (rc) return rc;
    rc = told(call, collecting->store, &read, 1, &one, err);
    if (!rc) json_append(&call->arena, &collecting->items, one);
    return rc ? rc : json_made(&collecting->items, err);
}

bool asking_items(struct call *call, struct json items)
{
    return call_answer(call, 200, JSON_OF(&call->arena, {"items", items}, {"nextCursor", json_null()}));
}

static bool list(struct call *call, struct store *store)
{
    struct collecting collecting = {call, store, json_array()};
    struct error err = {0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    enum code rc = prefix.ptr ? store_each_note(store, SCHEDULE_SPACE, prefix, collect, &collecting, &err) : error_nomem(&err);
    if (rc) return call_failed(call, &err);
    return asking_items(call, collecting.items);
}

bool service_schedule_list(struct call *call)
{
    if (asking_begin(call, &(struct schedule_call){0}, OPERATION_SCHEDULE_LIST) &&
        service_may_all(call, OPERATION_SCHEDULE_LIST))
        service_read(call, list);
    return true;
}

// ---- times to come, and those that were

static bool tell_next(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    int64_t from = os_now().wall_ms;
    size_t count = asking->given.count ? asking->given.count : NEXT_USUAL;
    if (!asking_find(call, store)) return false;
    if (asking->given.from.len && !zone_time(asking->note.spec.timing.zone, asking->given.from, &from))
        return call_problem(call, 400, "INVALID_REQUEST", "from is no time");
    return asking_items(call, next_json(call, &asking->note, from, count < NEXT_MAX ? count : NEXT_MAX));
}

bool service_schedule_next(struct call *call, const struct schedule_call *given)
{
    return asking_begin(call, given, OPERATION_SCHEDULE_LIST) && service_read(call, tell_next);
}

static bool tell_ticks(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct notes notes;
    struct error err = {0};
    struct json items = json_array();
    if (!asking_find(call, store)) return false;
    struct str prefix = call_text(call, "%.*s|", STR_ARG(asking->key));
    enum code rc = prefix.ptr ? store_notes(store, TICK_SPACE, prefix, 4 * TICKS_KEPT, &call->arena, &notes, &err)
                              : error_nomem(&err);
    size_t count = 0, limit = asking->given.count ? asking->given.count : TICKS_USUAL;
    while (!rc && count < notes.count && str_starts(notes.items[count].key, prefix)) count++;
    for (size_t i = count; !rc && i > 0 && items.count < limit; i--) {
        struct json one;
        rc = json_parse(notes.items[i - 1].value, NULL, &call->arena, &one, &err);
        if (!rc) json_append(&call->arena, &items, one);
    }
    if (rc) return call_failed(call, &err);
    return asking_items(call, items);
}

bool service_schedule_ticks(struct call *call, const struct schedule_call *given)
{
    return asking_begin(call, given, OPERATION_SCHEDULE_LIST) && service_read(call, tell_ticks);
}

// ---- changes

static bool look_again(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct error err = {0};
    struct note note;
    struct json body;
    enum code rc = store_note(store, SCHEDULE_SPACE, asking->key, &call->arena, &note, &err);
    if (!rc) rc = schedule_note_read(&note, &call->arena, &asking->note, &err);
    if (!rc) rc = told(call, store, &asking->note, NEXT_USUAL, &body, &err);
    call->answer.location = call_text(call, "/v1/schedules/%.*s", STR_ARG(asking->given.name));
    if (rc) return call_failed(call, &err);
    return call_answer(call, asking->status, body);
}

static void changed(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    const struct asking *asking = call->state;
    if (rc == E_CONFLICT && !store_fenced(call->service->store)) {
        call_problem(call, 409, "CONFLICT", "the schedule was changed meanwhile");
        return;
    }
    if (rc) {
        call_failed(call, why);
        return;
    }
    schedules_changed(call->service);
    if (asking->answer.type) {
        call_answer(call, asking->status, asking->answer);
        return;
    }
    if (asking->status != 204) {
        service_read(call, look_again);
        return;
    }
    call->answer.status = 204;
    call->done(call);
}

bool asking_change(struct call *call)
{
    struct asking *asking = call->state;
    struct error err = {0};
    enum code rc = audit_call(call, asking->operation, asking->given.name, asking->given.reason, &err);
    if (!rc) rc = engine_put(call->service->engine, asking->puts, asking->put_count, changed, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

bool asking_put(struct call *call, struct str space, struct str key, const struct json *value, uint64_t expect)
{
    struct asking *asking = call->state;
    struct note_put *put = &asking->puts[asking->put_count++];
    *put = (struct note_put){.space = space, .key = key, .remove = value == NULL, .expect = expect};
    if (value) put->value = json_canon_kept(&call->arena, value, NOTE_VALUE_MAX);
    return put->key.ptr && (!value || put->value.ptr);
}

// ---- put

// What was there before keeps what the request does not say of it.
static struct json declared(struct call *call, const struct json *spec)
{
    struct asking *asking = call->state;
    struct arena *arena = &call->arena;
    const struct json *before = asking->there ? &asking->note.value : NULL;
    const struct program *program = call->program;
    int64_t now = os_now().wall_ms;
    struct json plan = JSON_OF(arena, {"planId", json_copied_some(arena, program->plan_id)},
                               {"planVersion", json_copied_some(arena, program->plan_version)},
                               {"sha256", json_string(asking->sha256)}, {"file", json_some(asking->given.file)},
                               {"uri", json_some(ref_shown(&asking->given.ref))});
    bool paused = asking->given.paused || (before && asking->note.paused);
    return JSON_OF(arena, {"projectId", json_string(asking->given.project)},
                   {"environmentId", json_string(asking->given.environment)}, {"schedule", *spec}, {"plan", plan},
                   {"paused", json_flag(paused)}, {"pausedBy", json_ref(json_key(before, "pausedBy"))},
                   {"pausedReason", json_ref(json_key(before, "pausedReason"))},
                   {"createdAt", before ? json_ref(json_key(before, "createdAt")) : json_time(arena, now)},
                   {"createdBy", before ? json_ref(json_key(before, "createdBy")) : json_string(call->who.id)},
                   {"updatedAt", json_time(arena, now)}, {"updatedBy", json_string(call->who.id)}, {"since", json_int(now)});
}

// The schedule as it will be: read once more, with its zone, so that what is kept can be read by everybody.
static bool check_spec(struct call *call, const struct json *spec)
{
    struct schedule_spec read;
    const struct zone *zone;
    struct error err = {0};
    struct fire fire;
    enum code rc = schedule_spec_read(spec, &call->arena, &read, &err);
    if (!rc) rc = schedule_zone(read.zone, &call->arena, &zone, &err);
    if (rc == E_NOT_FOUND) return call_problem(call, 422, "TIME_ZONE_NOT_FOUND", "%s", err.message);
    if (!rc) rc = schedule_spec_zone(&read, zone, &err);
    if (rc == E_INVALID) return call_problem(call, 422, "INVALID_SCHEDULE", "%s", err.message);
    if (rc) return call_failed(call, &err);
    if (timing_next(&read.timing, os_now().wall_ms, &fire)) return true;
    return call_problem(call, 422, "INVALID_SCHEDULE", "the schedule has no time after now");
}

// The document that the schedule has, and where it came from.
static bool same_document(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct schedule_call *given = &((struct asking *)call->state)->given;
    struct note note;
    struct error err = {0};
    struct json *plan = ARENA_NEW(&call->arena, struct json);
    enum code rc = plan ? store_note(store, SCHEDULE_PLAN_SPACE, asking->key, &call->arena, &note, &err) : error_nomem(&err);
    if (!rc) rc = json_parse(note.value, &json_limits_result, &call->arena, plan, &err);
    const struct json *ref = rc ? NULL : json_key(plan, "planRef");
    if (ref) rc = fetch_plan_ref(ref, &given->ref, &err);
    if (rc) return call_failed(call, &err);
    given->document = json_text(json_key(plan, "document"));
    given->file = json_text(json_key(plan, "file"));
    given->parts = json_key(plan, "parts");
    return true;
}

static bool find_document(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct schedule_call *given = &((struct asking *)call->state)->given;
    if (given->ref.uri.len > 0) return ref_document(call, store, &given->ref, &given->document, &given->file, &given->parts);
    if (given->document.len > 0) return definitions_inline(call);
    return asking->there ? same_document(call, store)
                         : call_problem(call, 400, "INVALID_REQUEST", "a new schedule needs its document, or planRef");
}

// Kept with what the reference gave: nothing is fetched when the schedule fires.
static bool take_document(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct schedule_call *given = &asking->given;
    char hex[SHA256_HEX + 1];
    if (!find_document(call, store)) return false;
    struct str file = given->file.len ? given->file : STR("<document>");
    if (documents_get(call, given->document, file, given->parts, &call->program) != DOCUMENT_OK) return false;
    if (given->ref.uri.len > 0 && !ref_fits(call, &given->ref, call->program)) return false;
    struct digest digest = sha256(given->document);
    digest_hex(&digest, hex);
    asking->sha256 = given->ref.uri.len > 0 ? given->ref.sha256 : arena_copy(&call->arena, str_from(hex));
    return asking->sha256.ptr || call_nomem(call);
}

// What the note keeps of a reference, without what may be secret in it.
static struct json ref_kept(struct arena *arena, const struct plan_ref *ref)
{
    if (ref->uri.len == 0) return json_none();
    return JSON_OF(arena, {"uri", json_string(ref_shown(ref))}, {"sha256", json_string(ref->sha256)},
                   {"schemaVersion", json_string(ref->schema_version)}, {"planId", json_string(ref->plan_id)},
                   {"planVersion", json_string(ref->plan_version)});
}

// The engine has all schedules in memory, and reads them again when one is changed.
struct schedule_room {
    struct str own;
    size_t count, bytes;
};

static enum code add_room(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct schedule_room *room = context;
    (void)scratch, (void)err;
    if (str_eq(note->key, room->own)) return OK;
    room->count++;
    room->bytes += note->value.len;
    return OK;
}

static bool has_room(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    struct schedule_room room = {.own = asking->key, .count = 1, .bytes = asking->puts[0].value.len};
    struct error err = {0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(call->who.tenant));
    enum code rc = prefix.ptr ? store_each_note(store, SCHEDULE_SPACE, prefix, add_room, &room, &err) : error_nomem(&err);
    if (rc) return call_failed(call, &err);
    if (room.count <= SCHEDULES_MAX && room.bytes <= SCHEDULES_BYTES) return true;
    return call_problem(call, 422, "LIMIT_EXCEEDED",
                        "a tenant has at most %d schedules, which declare at most %d bytes, inputs and all: it would have %zu, of "
                        "%zu bytes",
                        SCHEDULES_MAX, SCHEDULES_BYTES, room.count, room.bytes);
}

static bool put_on_reader(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct error err = {0};
    enum code rc = read_schedule(call, store, &err);
    if (rc && !asking->there && rc != E_NOT_FOUND) return call_failed(call, &err);
    if (asking->there) { // one that stands elsewhere is changed by who may there
        struct auth_object object = object_of(call, asking);
        if (!service_may(call, asking->operation, &object, (struct str){0})) return false;
    }
    if (!take_document(call, store)) return false;
    struct run_ids ids = {.tenant = call->who.tenant, .environment = asking->given.environment};
    err = (struct error){0};
    if (engine_supports(call->service->engine, &ids, call->program, &err)) { // as each start would say
        return call_failed(call, &err);
    }
    const struct json *spec = asking->given.spec ? asking->given.spec : call->program->schedule;
    if (!spec) spec = json_key(&asking->note.value, "schedule");
    if (!spec) {
        call->answer.hint = STR("give schedule in the request (cairn schedule add --cron ...), or write schedule: in the document");
        return call_problem(call, 422, "INVALID_SCHEDULE", "neither the request nor the document says when");
    }
    if (!check_spec(call, spec)) return false;
    struct json value = declared(call, spec);
    struct json plan = JSON_OF(&call->arena, {"document", json_string(asking->given.document)},
                               {"file", json_some(asking->given.file)}, {"parts", json_ref(asking->given.parts)},
                               {"planRef", ref_kept(&call->arena, &asking->given.ref)}, {"sha256", json_string(asking->sha256)});
    asking->status = asking->there ? 200 : 201;
    if (!asking_put(call, SCHEDULE_SPACE, asking->key, &value, asking->note.version) ||
        !asking_put(call, SCHEDULE_PLAN_SPACE, asking->key, &plan, NOTE_ANY))
        return call_nomem(call);
    return has_room(call, store) && service_post(call, asking_change);
}

bool service_schedule_put(struct call *call, const struct schedule_call *given)
{
    struct asking *asking = asking_begin(call, given, OPERATION_SCHEDULE_CREATE);
    if (!asking) return false;
    struct auth_object object = {.tenant = call->who.tenant,
                                 .project = asking->given.project,
                                 .environment = asking->given.environment,
                                 .exists = true};
    if (!service_may(call, OPERATION_SCHEDULE_CREATE, &object, (struct str){0})) return false;
    if (!run_id_valid(asking->given.project) || !run_id_valid(asking->given.environment))
        return call_problem(call, 400, "INVALID_REQUEST", "projectId and environmentId have the form of a run id");
    if (asking->given.ref.uri.len > 0 && !ref_accepted(call, &asking->given.ref)) return false;
    return service_read(call, put_on_reader);
}

// ---- pause and go on

// What was missed meanwhile is not made up for: its times are recorded as skipped.
static bool pause_on_reader(struct call *call, struct store *store)
{
    struct asking *asking = call->state;
    struct arena *arena = &call->arena;
    if (!asking_find(call, store)) return false;
    bool pause = asking->given.paused;
    struct json value = JSON_OF(arena, {"paused", json_flag(pause)}, {"pausedBy", json_when(pause, json_string(call->who.id))},
                                {"pausedReason", json_when(pause, json_some(asking->given.reason))},
                                {"since", json_when(!pause, json_int(os_now().wall_ms))});
    static const char *const kept[] = {"projectId", "environmentId", "schedule",  "plan",     "createdAt",
                                       "createdBy", "updatedAt",     "updatedBy", "since"};
    for (size_t i = 0; i < ARRAY_COUNT(kept); i++)
        if (!json_key(&value, kept[i])) JSON_ADD(arena, &value, {kept[i], json_ref(json_key(&asking->note.value, kept[i]))});
    asking->status = 200;
    if (asking_put(call, SCHEDULE_SPACE, asking->key, &value, asking->note.version))
        return service_post(call, asking_change);
    return call_nomem(call);
}

bool service_schedule_pause(struct call *call, const struct schedule_call *given)
{
    return asking_begin(call, given, OPERATION_SCHEDULE_CREATE) && service_read(call, pause_on_reader);
}

// ---- delete

struct removing {
    struct call *call;
    struct note_put *puts;
    size_t count, capacity;
    struct str space;
};

static enum code remove_note(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct removing *removing = context;
    struct arena *arena = &removing->call->arena;
    struct str key = arena_copy(arena, note->key);
    (void)scratch;
    if (!key.ptr || !ARENA_ROOM(arena, removing->puts, removing->count, &removing->capacity)) return error_nomem(err);
    removing->puts[removing->count++] =
        (struct note_put){.space = removing->space, .key = key, .remove = true, .expect = NOTE_ANY};
    return OK;
}

static bool delete_on_engine(struct call *call)
{
    const struct asking *asking = call->state;
    static const struct str below[] = {STR_INIT("tick"), STR_INIT("schedule.run"), STR_INIT("backfill"),
                                       STR_INIT("backfill.state")};
    static const struct str own[] = {STR_INIT("schedule.plan"), STR_INIT("schedule.state")};
    struct removing removing = {.call = call};
    struct error err = {0};
    struct str prefix = call_text(call, "%.*s|", STR_ARG(asking->key));
    struct note top = {.key = asking->key};
    removing.space = SCHEDULE_SPACE;
    enum code rc = prefix.ptr ? remove_note(&removing, &top, NULL, &err) : error_nomem(&err);
    if (!rc) removing.puts[0].expect = asking->note.version;
    for (size_t i = 0; !rc && i < ARRAY_COUNT(own); i++) {
        removing.space = own[i];
        rc = remove_note(&removing, &top, NULL, &err);
    }
    for (size_t i = 0; !rc && i < ARRAY_COUNT(below); i++) {
        removing.space = below[i];
        rc = store_each_note(call->service->store, below[i], prefix, remove_note, &removing, &err);
    }
    if (!rc) rc = audit_call(call, asking->operation, asking->given.name, asking->given.reason, &err);
    if (!rc) rc = engine_put(call->service->engine, removing.puts, removing.count, changed, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

static bool delete_on_reader(struct call *call, struct store *store)
{
    if (!asking_find(call, store)) return false;
    ((struct asking *)call->state)->status = 204;
    return service_post(call, delete_on_engine);
}

bool service_schedule_delete(struct call *call, const struct schedule_call *given)
{
    return asking_begin(call, given, OPERATION_SCHEDULE_DELETE) && service_read(call, delete_on_reader);
}

// ---- now

static bool trigger_on_reader(struct call *call, struct store *store)
{
    const struct asking *asking = call->state;
    if (!asking_find(call, store)) return false;
    struct firing *firing = CALL_NEW(call, struct firing);
    if (!firing) return false;
    firing->note = asking->note;
    firing->kind = STR("trigger");
    firing->at_ms = os_now().wall_ms;
    firing->run = schedule_run_id(&call->arena, asking->note.name, (struct str){0}, firing->at_ms);
    firing->inputs = asking->given.inputs;
    firing->request_id = asking->given.request_id;
    if (!firing->run.ptr || !firing_notes(call, firing, NOTE_ANY)) return call_nomem(call);
    call->state = firing;
    return firing_start(call, store);
}

bool service_schedule_trigger(struct call *call, const struct schedule_call *given)
{
    return asking_begin(call, given, OPERATION_RUN_START) && service_read(call, trigger_on_reader);
}
