// Limits of steps (ADR 0052): an attempt whose step names a limit is given to its executor when it has a place under that limit, and when
// its rate allows. Both are notes of the store, so all engines of a store count together, and a crash forgets nothing:
//
//   space "step-limit", key TENANT|NAME             what a service says of the limit; a document's own numbers stand below it
//   space "permit", key TENANT|NAME|p0 .. p999      a place, held by the attempt in its value; made only where there is none (S15)
//   space "permit", key TENANT|NAME|r               when the last attempts began; each change expects the version that was read
//
//   WAITS --look finds room--> ASKED --notes are durable--> GIVEN --into the queue--> CALLED --to its executor--> HELD
//
// A place goes in the batch that stores the end of its attempt. It belongs to the logical attempt: the engine that takes the run over finds
// it under its name. One whose attempt
// ended where nobody knew of it is found when another attempt waits.
#include "engine/batch.h"
#include "engine/permits.h"

#include "base/text.h"
#include "json/make.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACES_MOST = 1000,  // as limits may have
    LOOK_MS = 50,        // others may have given a place back
    LOOK_AGAIN_MS = 500, // ours will say so themselves; the service may have changed the limit
    REAP_MS = 1000,
    FUTURE_MS = 60000, // moments so far ahead were written by a clock that was wrong
    ASK_MOST = 256,
};

enum permit_state { PERMIT_WAITS = 1, PERMIT_ASKED, PERMIT_GIVEN, PERMIT_CALLED, PERMIT_HELD };

struct permit {
    struct permit *next; // of its key, in the order they came
    struct permit_key *key;
    struct resident *resident;   // NULL: gone, while its notes were on their way
    const struct net_task *task; // of a playbook
    const struct step_limit *said; // by its document
    struct effect effect;
    enum permit_state state;
    bool let_in; // it may begin; one that is called without that ends as one that never began
    bool numbered, over; // over: the batch under way stores the end of its attempt
    bool by_rate;        // it waits for the rate, not for a place
    bool again;       // the place is that of the attempt under its former engine, and is made ours
    uint32_t number;
    uint64_t version; // of the note of its place: one that another engine has made its own is not given back here
    int64_t since_mono;
    struct step_limit in_force; // when it was last looked at
    struct str run, step;       // copies
    char bytes[];
};

struct elsewhere {
    struct str run, step;
};

struct permit_key {
    struct permit_key *next;
    struct permits *permits;
    struct permit *first;
    int64_t next_look_mono, next_reap_mono;
    size_t asked; // notes on their way: one batch of them at a time
    int64_t next_start_ms; // wall clock, of the rate
    struct arena arena;    // the list below
    struct elsewhere *others;
    size_t other_count;
    struct str tenant, name;
    char bytes[];
};

// What other threads read (engine_places): a copy, because the rest is the engine thread's.
struct shown {
    struct arena arena;
    struct tool_place *places; // `waits` false: of one that has a place
    size_t count, capacity;
};

struct permits {
    struct engine *engine;
    struct permit_key *keys;
    size_t count;
    bool changed; // since it was shown
    bool away;    // the server of the store was, when last seen
    int64_t shown_mono;
    pthread_mutex_t mutex; // of `shown`
    struct shown shown;
};

static struct permits *permits_of(struct engine *engine)
{
    if (engine->permits) return engine->permits;
    struct permits *permits = calloc(1, sizeof(*permits));
    if (!permits) return NULL;
    permits->engine = engine;
    pthread_mutex_init(&permits->mutex, NULL);
    arena_init(&permits->shown.arena, 4096, (size_t)64 << 20);
    atomic_store(&engine->permits_shown, permits);
    return engine->permits = permits;
}

// ---- the table

static struct permit_key *key_of(struct permits *permits, struct str tenant, struct str name)
{
    struct permit_key *key = permits->keys;
    while (key && !(str_eq(key->tenant, tenant) && str_eq(key->name, name))) key = key->next;
    if (key) return key;
    key = calloc(1, sizeof(*key) + tenant.len + name.len);
    if (!key) return NULL;
    memcpy(key->bytes, tenant.ptr, tenant.len);
    memcpy(key->bytes + tenant.len, name.ptr, name.len);
    key->tenant = (struct str){key->bytes, tenant.len};
    key->name = (struct str){key->bytes + tenant.len, name.len};
    key->permits = permits;
    arena_init(&key->arena, 4096, (size_t)16 << 20);
    key->next = permits->keys;
    return permits->keys = key;
}

static struct permit *permit_add(struct permit_key *key, struct resident *resident, const struct effect *effect,
                                 struct str path)
{
    struct str run = resident->ids.run;
    struct permit *permit = calloc(1, sizeof(*permit) + run.len + path.len);
    if (!permit) return NULL;
    memcpy(permit->bytes, run.ptr, run.len);
    memcpy(permit->bytes + run.len, path.ptr, path.len);
    permit->run = (struct str){permit->bytes, run.len};
    permit->step = (struct str){permit->bytes + run.len, path.len};
    permit->key = key;
    permit->resident = resident;
    permit->effect = *effect;
    permit->since_mono = key->permits->engine->now.mono_ms;
    struct permit **last = &key->first;
    while (*last) last = &(*last)->next;
    *last = permit;
    key->permits->count++;
    return permit;
}

static void permit_drop(struct permit *permit)
{
    struct permits *permits = permit->key->permits;
    struct permit **at = &permit->key->first;
    while (*at != permit) at = &(*at)->next;
    *at = permit->next;
    permits->count--;
    permits->changed = true;
    free(permit);
}

typedef void (*permit_visit)(struct permit *permit, void *context);

// The visit may drop the one it is given.
static void each_permit(const struct engine *engine, permit_visit visit, void *context)
{
    if (!engine->permits || engine->permits->count == 0) return;
    for (struct permit_key *key = engine->permits->keys; key; key = key->next)
        for (struct permit *permit = key->first, *next; permit; permit = next) {
            next = permit->next;
            visit(permit, context);
        }
}

static struct permit *permit_of(struct permit_key *key, const struct resident *resident, const struct effect *effect)
{
    struct permit *permit = key->first;
    while (permit && !(permit->resident == resident && !permit->over && permit->effect.step == effect->step &&
                       permit->effect.logical == effect->logical))
        permit = permit->next;
    return permit;
}

static const struct net_task *task_now(const struct run *run, uint32_t lane)
{
    return lane >= run->program->step_count ? kernel_task_of(run, lane) : NULL;
}

// Whether the attempt that it is for is still outside, or about to be. One that a pause has stopped is not, and gives its place back.
static bool is_wanted(const struct permit *permit)
{
    const struct resident *resident = permit->resident;
    struct run_hold whose = whose_of(&permit->effect);
    if (run_status_terminal(resident->run->status) || !hold_find(&resident->holds, &whose)) return false;
    return attempt_flies(resident->run, &permit->effect) && task_now(resident->run, permit->effect.step) == permit->task;
}

// ---- notes

static struct str note_key(const struct permit_key *key, struct arena *arena, char kind, uint32_t number)
{
    if (kind == 'p')
        return arena_format(arena, "%.*s|%.*s|p%u", STR_ARG(key->tenant), STR_ARG(key->name), number);
    return arena_format(arena, "%.*s|%.*s|%c", STR_ARG(key->tenant), STR_ARG(key->name), kind);
}

static struct str canon_text(const struct json *value, struct arena *arena)
{
    struct buf text = buf_of((size_t)1 << 20);
    json_canon(&text, value);
    return buf_keep(&text, arena);
}

static struct note_put place_put(const struct permit *permit, struct arena *arena, int64_t now_ms)
{
    struct json value = JSON_OF(arena, {"runId", json_string(permit->run)}, {"stepId", json_string(permit->step)},
                                {"logicalAttemptId", json_int(permit->effect.logical)}, {"since", json_time(arena, now_ms)});
    return (struct note_put){.space = ENGINE_PERMIT_SPACE,
                             .key = note_key(permit->key, arena, 'p', permit->number),
                             .value = json_ok(&value) ? canon_text(&value, arena) : (struct str){0},
                             .expect = permit->version - 1};
}

// The place is given back at once, beside any batch.
static void give_back(struct permit *permit)
{
    struct engine *engine = permit->key->permits->engine;
    struct error err = {0};
    struct arena arena SCOPED(arena_release) = arena_of(1024, 1 << 16);
    if (!permit->numbered) return;
    struct note_put put = {.space = ENGINE_PERMIT_SPACE, .remove = true, .expect = permit->version};
    put.key = note_key(permit->key, &arena, 'p', permit->number);
    permit->numbered = false;
    if (!put.key.ptr || engine_put(engine, &put, 1, NULL, NULL, &err))
        os_log(LOG_WARN, "place under a limit not given back run=%.*s", STR_ARG(permit->run)); // it is found to be over
}

// ---- a look at a limit: what the store says of it

struct place_seen {
    struct permit *ours; // NULL: of another engine, or of nobody any more
    struct str key, run, step;
    uint64_t version;
};

struct permit_look {
    struct permit_key *key;
    struct arena *arena;
    struct json setting;        // of the service; type 0: none
    bool taken[PLACES_MOST];
    struct place_seen *places;
    size_t place_count, place_capacity;
    int64_t *starts; // ascending
    size_t start_count, start_capacity;
    uint64_t rate_version;
    int64_t kept_ms; // moments of the rate are kept so long
    bool began;      // one more
};

static enum code read_starts(struct permit_look *look, const struct note *note, struct error *err)
{
    struct json value;
    int64_t now_ms = look->key->permits->engine->now.wall_ms;
    look->rate_version = note->version;
    enum code rc = json_parse(note->value, &json_limits_record, look->arena, &value, err);
    if (rc) return rc;
    look->kept_ms = json_integer(json_key(&value, "perMs"), 0);
    const struct json *at = json_key(&value, "at");
    for (uint32_t i = 0; json_is(at, JSON_ARRAY) && i < at->count; i++) {
        int64_t ms = json_integer(&at->items[i], 0);
        if (ms > now_ms + FUTURE_MS) continue;
        if (!ARENA_ROOM(look->arena, look->starts, look->start_count, &look->start_capacity)) return error_nomem(err);
        look->starts[look->start_count++] = ms;
    }
    return OK;
}

static enum code read_place(struct permit_look *look, const struct note *note, struct str number, struct error *err)
{
    int64_t n = 0;
    struct json value;
    if (!str_int64(number, &n) || n < 0 || n >= PLACES_MOST) return OK;
    struct str text = arena_copy(look->arena, note->value); // the note goes with its page
    enum code rc = text.ptr ? json_parse(text, &json_limits_record, look->arena, &value, err) : error_nomem(err);
    if (rc) return rc;
    if (!ARENA_ROOM(look->arena, look->places, look->place_count, &look->place_capacity)) return error_nomem(err);
    struct place_seen *place = &look->places[look->place_count++];
    look->taken[n] = true;
    *place = (struct place_seen){.key = arena_copy(look->arena, note->key),
                                 .run = json_text(json_key(&value, "runId")),
                                 .step = json_text(json_key(&value, "stepId")),
                                 .version = note->version};
    int64_t logical = json_integer(json_key(&value, "logicalAttemptId"), 0);
    for (struct permit *permit = look->key->first; permit; permit = permit->next) {
        bool same = permit->resident && permit->effect.logical == logical && str_eq(permit->run, place->run) &&
                    str_eq(permit->step, place->step);
        if (!same) continue;
        place->ours = permit;
        if (permit->state != PERMIT_WAITS) continue;
        COVER(permit_is_found_again);
        permit->numbered = permit->again = true;
        permit->number = (uint32_t)n;
        permit->version = note->version;
    }
    return place->key.ptr ? OK : error_nomem(err);
}

static enum code see_note(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct permit_look *look = context;
    size_t prefix = look->key->tenant.len + look->key->name.len + 2;
    struct str rest = str_slice(note->key, prefix, note->key.len);
    (void)scratch;
    if (str_is(rest, "r")) return read_starts(look, note, err);
    return rest.ptr[0] == 'p' ? read_place(look, note, str_slice(rest, 1, rest.len), err) : OK;
}

static enum code read_setting(struct permit_look *look, struct error *err)
{
    struct note note;
    struct store *store = look->key->permits->engine->store;
    struct str key = arena_format(look->arena, "%.*s|%.*s", STR_ARG(look->key->tenant), STR_ARG(look->key->name));
    if (!key.ptr) return error_nomem(err);
    enum code rc = store_note(store, ENGINE_LIMIT_SPACE, key, look->arena, &note, err);
    if (rc == E_NOT_FOUND) return OK;
    return rc ? rc : json_parse(note.value, &json_limits_record, look->arena, &look->setting, err);
}

static enum code look_into(struct permit_look *look, struct error *err)
{
    struct permit_key *key = look->key;
    struct str prefix = arena_format(look->arena, "%.*s|%.*s|", STR_ARG(key->tenant), STR_ARG(key->name));
    if (!prefix.ptr) return error_nomem(err);
    enum code rc = read_setting(look, err);
    return rc ? rc : store_each_note(key->permits->engine->store, ENGINE_PERMIT_SPACE, prefix, see_note, look, err);
}

// What holds for an attempt: the service's word above the document's.
static struct step_limit terms_of(const struct permit_look *look, const struct permit *permit)
{
    struct step_limit terms = *permit->said;
    struct error err = {0};
    if (look->setting.type && step_limit_read(&look->setting, &terms, &err))
        os_log(LOG_WARN, "limit cannot be read name=%.*s why=\"%s\"", STR_ARG(look->key->name), err.message);
    return terms;
}

// ---- places of attempts that are over

static bool is_over(struct permit_look *look, const struct place_seen *place)
{
    struct engine *engine = look->key->permits->engine;
    struct str tenant = look->key->tenant;
    const struct resident *resident = resident_find(engine, tenant, place->run);
    // Ours, and we do not know the attempt: it ended where nobody knew of its place. A run that was just taken up may not have ordered it
    // yet.
    if (resident && !resident->terminal)
        return !resident->idle && !resident->needs_recover && !resident->adopted && !engine_pending(engine, tenant, place->run);
    struct run_head head;
    struct error err = {0};
    enum code rc = store_head(engine->store, tenant, place->run, look->arena, &head, &err);
    return rc == E_NOT_FOUND || (rc == OK && head.terminal);
}

static void reap(struct permit_look *look)
{
    struct engine *engine = look->key->permits->engine;
    if (engine->now.mono_ms < look->key->next_reap_mono) return;
    look->key->next_reap_mono = engine->now.mono_ms + REAP_MS;
    for (size_t i = 0; i < look->place_count; i++) {
        const struct place_seen *place = &look->places[i];
        struct error err = {0};
        if (place->ours || !is_over(look, place)) continue;
        COVER(permit_of_the_dead);
        struct note_put put = {.space = ENGINE_PERMIT_SPACE, .key = place->key, .remove = true, .expect = place->version};
        if (engine_put(engine, &put, 1, NULL, NULL, &err)) return; // another time
        look->key->next_look_mono = 0;
    }
}

// ---- who goes on

static bool rate_allows(struct permit_look *look, const struct step_limit *terms, int64_t now_ms)
{
    if (terms->starts == 0) return true;
    size_t within = 0;
    int64_t first = 0;
    for (size_t i = look->start_count; i > 0 && look->starts[i - 1] > now_ms - terms->per_ms; i--) {
        first = look->starts[i - 1];
        if (++within == terms->starts) break;
    }
    if (within < terms->starts) return true;
    look->key->next_start_ms = first + terms->per_ms;
    return false;
}

static bool note_start(struct permit_look *look, const struct step_limit *terms, int64_t now_ms)
{
    if (terms->starts == 0) return true;
    if (!ARENA_ROOM(look->arena, look->starts, look->start_count, &look->start_capacity)) return false;
    size_t at = look->start_count++; // ascending, also after a clock was set back
    for (; at > 0 && look->starts[at - 1] > now_ms; at--) look->starts[at] = look->starts[at - 1];
    look->starts[at] = now_ms;
    look->began = true;
    if (terms->per_ms > look->kept_ms) look->kept_ms = terms->per_ms;
    return true;
}

static bool find_place(struct permit_look *look, const struct step_limit *terms, struct permit *permit)
{
    for (uint32_t i = 0; i < terms->concurrency; i++) {
        if (look->taken[i]) continue;
        look->taken[i] = permit->numbered = true;
        permit->number = i;
        permit->version = 1;
        return true;
    }
    return terms->concurrency == 0;
}

static struct note_put rate_put(struct permit_look *look, int64_t now_ms)
{
    struct json at = json_array();
    for (size_t i = 0; i < look->start_count; i++)
        if (look->starts[i] > now_ms - look->kept_ms) json_append(look->arena, &at, json_int(look->starts[i]));
    struct json value = JSON_OF(look->arena, {"at", at}, {"perMs", json_int(look->kept_ms)});
    return (struct note_put){.space = ENGINE_PERMIT_SPACE,
                             .key = note_key(look->key, look->arena, 'r', 0),
                             .value = json_ok(&value) ? canon_text(&value, look->arena) : (struct str){0},
                             .expect = look->rate_version};
}

// Called within a turn of the engine, at its end. What follows is done in the next one.
static void asked_done(void *context, enum code rc, const struct error *why)
{
    struct permit_key *key = context;
    struct engine *engine = key->permits->engine;
    (void)why;
    key->asked = 0;
    for (struct permit *permit = key->first, *next; permit; permit = next) {
        next = permit->next;
        if (permit->state != PERMIT_ASKED) continue;
        permit->state = rc ? PERMIT_WAITS : PERMIT_GIVEN;
        permit->let_in = !rc;
        permit->again = false;
        if (rc) permit->numbered = false; // another engine was first
        if (permit->resident) continue;
        give_back(permit);
        permit_drop(permit);
    }
    key->next_look_mono = rc ? engine->now.mono_ms + 1 + (int64_t)(entropy_number(engine->options.entropy) % LOOK_MS) : 0;
}

static void ask(struct permit_look *look, struct note_put *puts, size_t count)
{
    struct permit_key *key = look->key;
    struct engine *engine = key->permits->engine;
    struct error err = {0};
    bool fine = true;
    if (look->began) puts[count++] = rate_put(look, engine->now.wall_ms);
    for (size_t i = 0; i < count; i++) fine = fine && puts[i].key.ptr && puts[i].value.ptr;
    key->asked = 1;
    enum code rc = fine ? engine_put(engine, puts, count, asked_done, key, &err) : error_nomem(&err);
    if (rc) asked_done(key, rc, &err);
}

// The oldest goes first, and nobody overtakes it.
static void let_in(struct permit_look *look)
{
    struct permit_key *key = look->key;
    struct engine *engine = key->permits->engine;
    int64_t now_ms = engine->now.wall_ms;
    struct note_put *puts = ARENA_ARRAY(look->arena, ASK_MOST + 1, struct note_put);
    size_t count = 0, waiting = 0;
    bool stopped = !puts, by_rate = false;
    key->next_start_ms = 0;
    for (struct permit *permit = key->first; permit; permit = permit->next) {
        if (permit->state != PERMIT_WAITS || !permit->resident) continue;
        struct step_limit terms = permit->in_force = terms_of(look, permit);
        if (permit->again && (!puts || count == ASK_MOST)) continue; // another time
        if (permit->again) {
            permit->version++;
            permit->state = PERMIT_ASKED;
            puts[count++] = place_put(permit, look->arena, now_ms);
            continue;
        }
        if (!stopped) {
            bool room = find_place(look, &terms, permit);
            by_rate = room && !rate_allows(look, &terms, now_ms);
            stopped = !room || by_rate || count == ASK_MOST || !note_start(look, &terms, now_ms);
            if (stopped && permit->numbered) look->taken[permit->number] = permit->numbered = false;
        }
        permit->by_rate = stopped && by_rate; // those behind it wait for what it waits for
        if (stopped) {
            waiting++;
        } else if (!permit->numbered && terms.starts == 0) {
            permit->state = PERMIT_GIVEN; // nothing holds it back
            permit->let_in = true;
        } else {
            permit->state = PERMIT_ASKED;
            if (permit->numbered) puts[count++] = place_put(permit, look->arena, now_ms);
        }
    }
    if (count > 0 || look->began) ask(look, puts, count);
    if (waiting > 0) reap(look);
}

static void remember_others(struct permit_look *look)
{
    struct permit_key *key = look->key;
    arena_reset(&key->arena);
    key->other_count = 0;
    key->others = ARENA_ARRAY(&key->arena, look->place_count + 1, struct elsewhere);
    for (size_t i = 0; key->others && i < look->place_count; i++) {
        struct elsewhere other = {arena_copy(&key->arena, look->places[i].run), arena_copy(&key->arena, look->places[i].step)};
        if (!look->places[i].ours && other.run.ptr && other.step.ptr) key->others[key->other_count++] = other;
    }
}

static bool waits_here(const struct permit_key *key)
{
    const struct permit *permit = key->first;
    while (permit && permit->state != PERMIT_WAITS) permit = permit->next;
    return permit != NULL;
}

static void look_at(struct permit_key *key)
{
    struct engine *engine = key->permits->engine;
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, (size_t)64 << 20);
    struct permit_look *look = ARENA_NEW(&arena, struct permit_look);
    struct error err = {0};
    if (!look || key->asked > 0 || !waits_here(key) || engine->now.mono_ms < key->next_look_mono) return;
    look->key = key;
    look->arena = &arena;
    key->next_look_mono = engine->now.mono_ms + LOOK_AGAIN_MS;
    enum code rc = look_into(look, &err);
    if (rc == E_UNSUPPORTED) rc = OK; // a store without notes is one engine's alone
    if (rc) {
        os_log(LOG_WARN, "limit not read name=%.*s why=\"%s\"", STR_ARG(key->name), err.message);
        return;
    }
    let_in(look);
    remember_others(look);
    key->permits->changed = true;
    int64_t soon = key->other_count > 0 ? LOOK_MS : LOOK_AGAIN_MS;
    int64_t rate = key->next_start_ms > engine->now.wall_ms ? key->next_start_ms - engine->now.wall_ms : soon;
    int64_t due = engine->now.mono_ms + (rate < soon ? rate : soon);
    if (due < key->next_look_mono) key->next_look_mono = due;
}

// ---- for others to read

static void show(struct shown *shown, struct permit_key *key, const struct tool_place *place)
{
    if (!ARENA_ROOM(&shown->arena, shown->places, shown->count, &shown->capacity)) return;
    struct tool_place *copy = &shown->places[shown->count];
    *copy = *place;
    copy->among = key;
    copy->tenant = arena_copy(&shown->arena, key->tenant);
    copy->limit = arena_copy(&shown->arena, key->name);
    copy->run = arena_copy(&shown->arena, place->run);
    copy->step = arena_copy(&shown->arena, place->step);
    if (copy->tenant.ptr && copy->limit.ptr && copy->run.ptr && copy->step.ptr) shown->count++;
}

static void show_key(struct shown *shown, struct permit_key *key)
{
    size_t position = 0;
    for (const struct permit *permit = key->first; permit; permit = permit->next) {
        bool waits = permit->state == PERMIT_WAITS || permit->state == PERMIT_ASKED;
        struct tool_place place = {.run = permit->run,
                                   .step = permit->step,
                                   .logical = permit->effect.logical,
                                   .engine = permit->effect.engine,
                                   .waits = waits,
                                   .slots = permit->in_force.concurrency,
                                   .starts = permit->in_force.starts,
                                   .per_ms = permit->in_force.per_ms,
                                   .next_start_ms = permit->by_rate ? key->next_start_ms : 0,
                                   .since_ms = permit->since_mono};
        if (waits) place.position = ++position;
        if (permit->resident && (waits || permit->numbered)) show(shown, key, &place);
    }
    for (size_t i = 0; i < key->other_count; i++)
        show(shown, key, &(struct tool_place){.run = key->others[i].run, .step = key->others[i].step});
}

static void show_all(struct permits *permits)
{
    enum { FEW = 100, SHOW_MS = 20 };
    int64_t now = permits->engine->now.mono_ms;
    if (!permits->changed || (permits->count > FEW && now < permits->shown_mono + SHOW_MS)) return;
    LOCKED(&permits->mutex);
    struct shown *shown = &permits->shown;
    arena_reset(&shown->arena);
    shown->places = NULL;
    shown->count = shown->capacity = 0;
    for (struct permit_key *key = permits->keys; key; key = key->next) show_key(shown, key);
    permits->changed = false;
    permits->shown_mono = now;
}

void permits_visit(struct permits *permits, bool waiting, tool_place_visit visit, void *context)
{
    if (!permits) return;
    LOCKED(&permits->mutex);
    for (size_t i = 0; i < permits->shown.count; i++)
        if (permits->shown.places[i].waits == waiting) visit(context, &permits->shown.places[i]);
}

// ---- from the engine

enum code permit_ask(struct engine *engine, struct resident *resident, const struct effect *effect,
                     const struct order *order, bool *goes, struct error *err)
{
    struct permits *permits = permits_of(engine);
    struct permit_key *key = permits ? key_of(permits, resident->ids.tenant, order->limit->name) : NULL;
    if (!key) return error_nomem(err);
    struct permit *permit = permit_of(key, resident, effect);
    *goes = false;
    if (permit && permit->state == PERMIT_HELD && permit->effect.engine == effect->engine) {
        give_back(permit); // the attempt after it has the same name: a task that jumps to itself
        permit_drop(permit);
        permit = NULL;
    }
    if (!permit) permit = permit_add(key, resident, effect, order->path);
    if (!permit) return error_nomem(err);
    if (permit->state == 0) {
        permit->state = PERMIT_WAITS;
        permit->said = order->limit;
        permit->in_force = *order->limit;
        permit->task = task_now(resident->run, effect->step);
        key->next_look_mono = 0;
    }
    permit->effect = *effect;
    permits->changed = true;
    *goes = permit->state >= PERMIT_GIVEN && permit->let_in;
    if (permit->state >= PERMIT_GIVEN) permit->state = *goes ? PERMIT_HELD : PERMIT_WAITS;
    return OK;
}

struct asked_about {
    const struct resident *resident;
    const struct run_hold *hold; // NULL: any of the run
    bool found;
};

static void find_waiting(struct permit *permit, void *context)
{
    struct asked_about *about = context;
    const struct run_hold *hold = about->hold;
    if (permit->resident != about->resident || permit->state >= PERMIT_CALLED) return;
    about->found |= !hold || (hold->lane == permit->effect.step && hold->logical == permit->effect.logical &&
                              hold->engine == permit->effect.engine);
}

bool permit_waits(const struct engine *engine, const struct resident *resident, const struct run_hold *hold)
{
    struct asked_about about = {resident, hold, false};
    each_permit(engine, find_waiting, &about);
    return about.found;
}

struct cancelled {
    const struct resident *resident;
    uint32_t step;
};

static void cancel(struct permit *permit, void *context)
{
    const struct cancelled *cancelled = context;
    bool meant = permit->resident == cancelled->resident && permit->effect.step == cancelled->step;
    if (meant && permit->state == PERMIT_WAITS) permit->state = PERMIT_GIVEN; // it is called, and ends as one that was never begun
}

void permits_cancel(struct engine *engine, const struct resident *resident, uint32_t step)
{
    struct cancelled cancelled = {resident, step};
    each_permit(engine, cancel, &cancelled);
}

struct permit_draft {
    struct engine *engine;
    struct note_draft *draft;
    struct error *err;
    enum code rc;
};

static void draft_over(struct permit *permit, void *context)
{
    struct permit_draft *d = context;
    permit->over = false; // of a try before this one
    if (d->rc || !permit->resident || permit->resident->turn != d->engine->turn_number || permit->resident->gone) return;
    if (permit->state == PERMIT_ASKED || is_wanted(permit)) return; // what is asked for is settled first
    permit->over = true;
    if (!permit->numbered) return;
    struct note_put *put = ARENA_NEW(&d->engine->turn, struct note_put);
    struct str key = note_key(permit->key, &d->engine->turn, 'p', permit->number);
    if (!put || !key.ptr) {
        d->rc = error_nomem(d->err);
        return;
    }
    *put = (struct note_put){.space = ENGINE_PERMIT_SPACE, .key = key, .remove = true, .expect = permit->version};
    struct error local = {0};
    enum code rc = note_draft_add(d->draft, put, 1, &local);
    if (rc && rc != E_CONFLICT) d->rc = error_set(d->err, rc, "%s", local.message); // CONFLICT: it is another engine's by now
}

enum code permits_draft(struct engine *engine, struct note_draft *draft, struct error *err)
{
    struct permit_draft d = {engine, draft, err, OK};
    each_permit(engine, draft_over, &d);
    return d.rc;
}

static void settle(struct permit *permit, void *context)
{
    (void)context;
    if (!permit->over) return;
    permit->key->next_look_mono = 0;
    permit_drop(permit);
}

void permits_settle(struct engine *engine)
{
    each_permit(engine, settle, NULL);
}

// Another engine may go on with the run: a place that it holds stays with it.
static void leave(struct permit *permit, void *context)
{
    (void)context;
    if (!permit->resident || !permit->resident->gone) return;
    if (permit->state == PERMIT_ASKED)
        permit->resident = NULL; // given back when the answer is there
    else
        permit_drop(permit);
}

void permits_bury(struct engine *engine)
{
    each_permit(engine, leave, NULL);
}

struct calling {
    struct engine *engine;
    struct error *err;
    enum code rc;
};

// That it was let in stands in the ledger of its run before it begins. An engine that has lost the run learns so by that.
static bool note_let_in(const struct permit *permit, struct queued *queued)
{
    int64_t waited_ms = permit->key->permits->engine->now.mono_ms - permit->since_mono;
    struct arena *arena = queued->arena = arena_make((size_t)1 << 16);
    struct preface *note = arena ? ARENA_NEW(arena, struct preface) : NULL;
    if (!note) return false;
    *note = (struct preface){.kind = STR("limit")};
    note->body = JSON_OF(arena, {"engineAttemptId", json_int(permit->effect.engine)}, {"limit", json_copied(arena, permit->key->name)},
                         {"logicalAttemptId", json_int(permit->effect.logical)},
                         {"place", json_when(permit->numbered, json_int(permit->number))}, {"queuedMs", json_int(waited_ms)},
                         {"stepId", json_copied(arena, permit->step)});
    queued->notes = note;
    queued->note_count = 1;
    return json_ok(&note->body);
}

static void call(struct permit *permit, void *context)
{
    struct calling *calling = context;
    struct engine *engine = calling->engine;
    if (calling->rc || permit->state != PERMIT_GIVEN || !permit->resident) return;
    calling->rc = order_later(engine, permit->resident, &permit->effect, calling->err);
    if (!calling->rc && permit->let_in && !note_let_in(permit, queue_last(engine))) {
        struct queued undone = queue_take_last(engine);
        queued_release(&undone);
        calling->rc = error_nomem(calling->err);
    }
    if (!calling->rc) permit->state = PERMIT_CALLED;
}

// What is over and was asked for when it ended: the answer is there now.
static void clear(struct permit *permit, void *context)
{
    (void)context;
    if (!permit->resident || permit->resident->stale || permit->state != PERMIT_GIVEN || is_wanted(permit)) return;
    give_back(permit);
    permit_drop(permit);
}

enum code permits_turn(struct engine *engine, struct error *err)
{
    struct calling calling = {engine, err, OK};
    if (!engine->permits || engine->holding) return OK;
    engine->permits->away = engine_away(engine);
    for (struct permit_key *key = engine->permits->keys; key && !engine->permits->away; key = key->next) look_at(key);
    each_permit(engine, clear, NULL);
    each_permit(engine, call, &calling);
    show_all(engine->permits);
    return calling.rc;
}

int64_t permits_deadline(const struct engine *engine)
{
    int64_t first = INT64_MAX;
    bool any = engine->permits && engine->permits->count > 0 && !engine->holding && !engine->permits->away;
    if (engine->permits && engine->permits->changed) first = engine->now.mono_ms + 20;
    for (const struct permit_key *key = any ? engine->permits->keys : NULL; key; key = key->next) {
        const struct permit *permit = key->first;
        while (permit && permit->state != PERMIT_GIVEN) permit = permit->next;
        if (permit) return 0;
        if (key->asked == 0 && key->next_look_mono < first && waits_here(key)) first = key->next_look_mono;
    }
    return first;
}

void permits_free(struct engine *engine)
{
    struct permits *permits = engine->permits;
    if (!permits) return;
    while (permits->keys) {
        struct permit_key *key = permits->keys;
        permits->keys = key->next;
        while (key->first) {
            struct permit *permit = key->first;
            key->first = permit->next;
            free(permit);
        }
        arena_release(&key->arena);
        free(key);
    }
    arena_release(&permits->shown.arena);
    pthread_mutex_destroy(&permits->mutex);
    engine->permits = NULL;
    free(permits);
}
