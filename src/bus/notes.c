// Cursors and dead letters as notes, and how a sink puts them: one put at a time, whose answer comes from another thread.
#include "bus/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_MS 1000
#define NEVER INT64_MAX

// ---- JSON

static int64_t get_time(const struct json *object, const char *key)
{
    int64_t ms = 0;
    return civil_parse(json_text(json_key(object, key)), &ms) ? ms : 0;
}

static uint64_t get_number(const struct json *object, const char *key)
{
    int64_t number = json_integer(json_key(object, key), 0);
    return number > 0 ? (uint64_t)number : 0;
}

static bool written(const struct json *value, struct arena *arena, struct str *out)
{
    *out = json_canon_kept(arena, value, NOTE_VALUE_MAX);
    return out->ptr != NULL;
}

// ---- cursors

enum code cursor_load(struct store *store, struct str sink, struct arena *arena, struct sink_cursor *out, struct error *err)
{
    struct note note;
    struct json value;
    *out = (struct sink_cursor){0};
    enum code rc = store_note(store, CURSOR_SPACE, sink, arena, &note, err);
    if (!rc) rc = json_parse(note.value, NULL, arena, &value, err);
    if (rc) return rc;
    out->version = note.version;
    out->position = get_number(&value, "position");
    out->begin = get_number(&value, "begin");
    out->delivered = get_number(&value, "delivered");
    out->duplicates = get_number(&value, "duplicates");
    out->disabled = json_key(&value, "disabled") != NULL;
    snprintf(out->down, sizeof(out->down), "%.*s", STR_ARG(json_text(json_key(&value, "down"))));
    snprintf(out->stream, sizeof(out->stream), "%.*s", STR_ARG(json_text(json_key(&value, "stream"))));
    snprintf(out->created, sizeof(out->created), "%.*s", STR_ARG(json_text(json_key(&value, "created"))));
    out->stream_seq = get_number(&value, "streamSeq");
    const struct json *marks = json_key(&value, "marks");
    for (size_t i = 0; json_is(marks, JSON_ARRAY) && i < marks->count && i < MARKS_MAX; i++)
        out->marks[out->mark_count++] =
            (struct mark){get_number(&marks->items[i], "position"), get_number(&marks->items[i], "seq")};
    const struct json *retries = json_key(&value, "retries");
    for (size_t i = 0; json_is(retries, JSON_ARRAY) && i < retries->count && i < PAGE_MAX; i++) {
        const struct json *one = &retries->items[i];
        out->retries[out->retry_count++] = (struct retry){.position = get_number(one, "position"),
                                                          .attempts = (uint32_t)get_number(one, "attempts"),
                                                          .first_ms = get_time(one, "firstAt")};
    }
    return OK;
}

static struct json retries_json(const struct sink_cursor *cursor, struct arena *arena)
{
    struct json list = json_array();
    for (size_t i = 0; i < cursor->retry_count; i++) {
        const struct retry *retry = &cursor->retries[i];
        json_append(arena, &list, JSON_OF(arena, {"position", json_count(retry->position)},
                                          {"attempts", json_int(retry->attempts)},
                                          {"firstAt", json_time(arena, retry->first_ms)}));
    }
    return list;
}

static struct json marks_json(const struct sink_cursor *cursor, struct arena *arena)
{
    struct json list = json_array();
    for (size_t i = 0; i < cursor->mark_count; i++)
        json_append(arena, &list, JSON_OF(arena, {"position", json_count(cursor->marks[i].position)},
                                          {"seq", json_count(cursor->marks[i].seq)}));
    return list;
}

// The newest stay close together, the older ones thin out.
static void take_mark(struct sink_cursor *cursor)
{
    if (!cursor->stream[0] || !cursor->stream_seq) return;
    if (cursor->mark_count && cursor->marks[cursor->mark_count - 1].position >= cursor->position) return;
    if (cursor->mark_count == MARKS_MAX) {
        size_t kept = 0;
        for (size_t i = 0; i < MARKS_MAX; i++)
            if (i >= MARKS_MAX / 2 || i % 2 == 0) cursor->marks[kept++] = cursor->marks[i];
        cursor->mark_count = kept;
    }
    cursor->marks[cursor->mark_count++] = (struct mark){cursor->position, cursor->stream_seq};
}

bool cursor_value(const struct sink_cursor *cursor, struct arena *arena, struct str *out)
{
    bool stream = cursor->stream[0];
    struct json value =
        JSON_OF(arena, {"position", json_count(cursor->position)}, {"begin", json_count(cursor->begin)},
                {"delivered", json_count(cursor->delivered)}, {"duplicates", json_count(cursor->duplicates)},
                {"disabled", json_flag(cursor->disabled)}, {"down", json_name(cursor->down)},
                {"stream", json_name(cursor->stream)}, {"created", json_when(stream, json_word(cursor->created))},
                {"streamSeq", json_when(stream, json_count(cursor->stream_seq))},
                {"marks", stream ? marks_json(cursor, arena) : json_none()},
                {"retries", json_filled(retries_json(cursor, arena))});
    return written(&value, arena, out);
}

// ---- letters

bool order_key(struct str sink, struct arena *arena, struct str *out)
{
    *out = arena_format(arena, "%.*s/order", STR_ARG(sink));
    return out->ptr != NULL;
}

static bool letter_key(struct str sink, uint64_t position, struct arena *arena, struct str *out)
{
    *out = arena_format(arena, "%.*s/%020llu", STR_ARG(sink), (unsigned long long)position);
    return out->ptr != NULL;
}

bool letter_json(const struct letter *letter, struct arena *arena, struct json *out)
{
    *out = JSON_OF(arena, {"id", json_some(letter->id)}, {"sink", json_string(letter->sink)},
                   {"position", json_count(letter->position)}, {"tenantId", json_string(letter->tenant)},
                   {"runId", json_string(letter->run)}, {"runSeq", json_count(letter->seq)},
                   {"eventId", json_string(letter->event_id)}, {"eventType", json_string(letter->type)},
                   {"class", json_string(letter->class)}, {"error", json_string(letter->why)},
                   {"attempts", json_int(letter->attempts)}, {"firstAt", json_time(arena, letter->first_ms)},
                   {"lastAt", json_time(arena, letter->last_ms)}, {"redrive", json_bool(letter->redrive)});
    return json_ok(out);
}

bool letter_value(const struct letter *letter, struct arena *arena, struct str *out)
{
    struct letter bare = *letter;
    struct json value;
    bare.id = (struct str){0}; // the key
    return letter_json(&bare, arena, &value) && written(&value, arena, out);
}

enum code letter_read(const struct note *note, struct arena *arena, struct letter *out, struct error *err)
{
    struct json value;
    enum code rc = json_parse(note->value, NULL, arena, &value, err);
    if (rc) return rc;
    const struct json *redrive = json_key(&value, "redrive");
    *out = (struct letter){.id = note->key,
                           .sink = json_text(json_key(&value, "sink")),
                           .tenant = json_text(json_key(&value, "tenantId")),
                           .run = json_text(json_key(&value, "runId")),
                           .event_id = json_text(json_key(&value, "eventId")),
                           .type = json_text(json_key(&value, "eventType")),
                           .class = json_text(json_key(&value, "class")),
                           .why = json_text(json_key(&value, "error")),
                           .position = get_number(&value, "position"),
                           .seq = get_number(&value, "runSeq"),
                           .version = note->version,
                           .attempts = (uint32_t)get_number(&value, "attempts"),
                           .first_ms = get_time(&value, "firstAt"),
                           .last_ms = get_time(&value, "lastAt"),
                           .redrive = json_true(redrive)};
    return OK;
}

// ---- which runs have dead letters

static uint64_t run_hash(struct str tenant, struct str run)
{
    struct str parts[] = {tenant, STR("\n"), run};
    struct digest digest = sha256_parts(parts, ARRAY_COUNT(parts));
    uint64_t hash;
    memcpy(&hash, digest.b, sizeof(hash));
    return hash ? hash : 1;
}

static struct dead_run *dead_slot(const struct dead_table *table, uint64_t hash)
{
    size_t at = hash & (table->capacity - 1);
    while (table->runs[at].hash && table->runs[at].hash != hash) at = (at + 1) & (table->capacity - 1);
    return &table->runs[at];
}

uint64_t dead_lowest(const struct dead_table *table, struct str tenant, struct str run)
{
    return table->capacity ? dead_slot(table, run_hash(tenant, run))->lowest : 0;
}

static bool dead_grow(struct dead_table *table)
{
    if ((table->used + 1) * 2 <= table->capacity) return true;
    struct dead_table next = *table;
    next.capacity = table->capacity ? table->capacity * 2 : 64;
    next.runs = calloc(next.capacity, sizeof(*next.runs));
    if (!next.runs) return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->runs[i].hash) *dead_slot(&next, table->runs[i].hash) = table->runs[i];
    free(table->runs);
    *table = next;
    return true;
}

static bool dead_tenant(struct dead_table *table, struct str tenant)
{
    for (size_t i = 0; i < table->tenant_count; i++)
        if (str_is(tenant, table->tenants[i])) return true;
    void *more = realloc(table->tenants, (table->tenant_count + 1) * sizeof(*table->tenants));
    if (!more) return false;
    table->tenants = more;
    snprintf(table->tenants[table->tenant_count++], sizeof(*table->tenants), "%.*s", STR_ARG(tenant));
    return true;
}

static bool dead_add(struct dead_table *table, struct str tenant, struct str run, uint64_t seq)
{
    if (!dead_grow(table) || !dead_tenant(table, tenant)) return false;
    uint64_t hash = run_hash(tenant, run);
    struct dead_run *slot = dead_slot(table, hash);
    table->used += slot->hash == 0;
    slot->hash = hash;
    if (!slot->lowest || seq < slot->lowest) slot->lowest = seq;
    table->count++;
    return true;
}

void dead_release(struct dead_table *table)
{
    free(table->runs);
    free(table->tenants);
    *table = (struct dead_table){0};
}

static enum code load_letter(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct dead_table *table = context;
    struct letter letter;
    enum code rc = letter_read(note, scratch, &letter, err);
    if (!rc && !dead_add(table, letter.tenant, letter.run, letter.seq)) rc = error_nomem(err);
    table->marked += !rc && letter.redrive;
    return rc;
}

enum code dead_load(struct dead_table *table, struct store *store, struct str sink, struct error *err)
{
    struct dead_table next = {0};
    char prefix[BUS_SINK_NAME_MAX + 2];
    snprintf(prefix, sizeof(prefix), "%.*s/", STR_ARG(sink));
    enum code rc = store_each_note(store, LETTER_SPACE, str_from(prefix), load_letter, &next, err);
    if (rc) {
        dead_release(&next);
        return rc;
    }
    dead_release(table);
    *table = next;
    return OK;
}

// ---- puts

struct receipt {
    pthread_mutex_t mutex;
    int sides;         // that still hold it
    struct sink *sink; // NULL: nobody waits
    bool answered;
    enum code rc;
    struct error why;
    // of the sink's thread
    struct arena arena;
    struct note_put *notes;
    size_t count, capacity;
    struct sink_report *reports; // of letters that are new
    size_t report_count, report_capacity;
    bool removed; // a letter goes
    int64_t again_at;
};

static void receipt_drop(struct receipt *receipt)
{
    pthread_mutex_lock(&receipt->mutex);
    bool last = --receipt->sides == 0;
    pthread_mutex_unlock(&receipt->mutex);
    if (!last) return;
    pthread_mutex_destroy(&receipt->mutex);
    arena_release(&receipt->arena);
    free(receipt);
}

static void put_done(void *context, enum code rc, const struct error *why)
{
    struct receipt *receipt = context;
    pthread_mutex_lock(&receipt->mutex);
    receipt->answered = true;
    receipt->rc = rc;
    if (why) receipt->why = *why;
    if (receipt->sink) sink_poke(receipt->sink);
    pthread_mutex_unlock(&receipt->mutex);
    receipt_drop(receipt);
}

static void receipt_send(struct sink *sink, struct receipt *receipt)
{
    pthread_mutex_lock(&receipt->mutex);
    receipt->sides++;
    receipt->answered = false;
    pthread_mutex_unlock(&receipt->mutex);
    sink->bus->options.put(sink->bus->options.context, receipt->notes, receipt->count, put_done, receipt);
}

static struct receipt *receipt_make(struct sink *sink)
{
    struct receipt *receipt = calloc(1, sizeof(*receipt));
    if (!receipt) return NULL;
    pthread_mutex_init(&receipt->mutex, NULL);
    arena_init(&receipt->arena, 4096, SIZE_MAX);
    receipt->sides = 1;
    receipt->sink = sink;
    receipt->again_at = NEVER;
    return receipt;
}

static bool receipt_note(struct receipt *receipt, struct note_put note)
{
    if (!ARENA_ROOM(&receipt->arena, receipt->notes, receipt->count, &receipt->capacity)) return false;
    receipt->notes[receipt->count++] = note;
    return true;
}

static bool receipt_report(struct receipt *receipt, const struct letter *letter)
{
    struct arena *arena = &receipt->arena;
    if (!ARENA_ROOM(arena, receipt->reports, receipt->report_count, &receipt->report_capacity)) return false;
    struct sink_report *report = &receipt->reports[receipt->report_count++];
    *report = (struct sink_report){.sink = letter->sink,
                                   .tenant = letter->tenant,
                                   .run = letter->run,
                                   .event_id = letter->event_id,
                                   .seq = letter->seq,
                                   .attempts = letter->attempts,
                                   .at_ms = letter->last_ms,
                                   .why = letter->why};
    return ARENA_KEEP(arena, &report->tenant, &report->run, &report->event_id, &report->why);
}

static bool add_letter(struct sink *sink, struct receipt *receipt, struct page_slot *slot)
{
    if (slot->note.len) { // an alert: sent, or never taken
        struct str key = arena_copy(&receipt->arena, slot->note);
        return key.ptr &&
               receipt_note(receipt, (struct note_put){.space = NEWS_SPACE, .key = key, .remove = true, .expect = NOTE_ANY});
    }
    struct letter letter = {.sink = sink->config.name,
                            .tenant = slot->item.tenant,
                            .run = slot->item.run,
                            .event_id = slot->event_id,
                            .type = slot->item.record.type,
                            .class = str_from(slot->class),
                            .why = str_from(slot->why),
                            .position = slot->item.position,
                            .seq = slot->item.record.seq,
                            .attempts = slot->attempts,
                            .first_ms = slot->first_ms,
                            .last_ms = slot->last_ms};
    struct note_put note = {.space = LETTER_SPACE, .expect = NOTE_ANY, .remove = slot->state == SLOT_SETTLED};
    if (!letter_key(sink->config.name, letter.position, &receipt->arena, &note.key)) return false;
    if (!note.remove && !letter_value(&letter, &receipt->arena, &note.value)) return false;
    if (!note.remove && !receipt_report(receipt, &letter)) return false;
    receipt->removed |= slot->letter;
    return receipt_note(receipt, note);
}

// Dead letters go with the move past them; those that are sent again, whenever it is known what became of them.
static bool wants_note(const struct page *page, size_t at)
{
    const struct page_slot *slot = &page->slots[at];
    if (slot->recorded) return false;
    if (page->letters) return slot->state == SLOT_SETTLED || slot->state == SLOT_DEAD;
    return at < page->settled && slot->state == SLOT_DEAD;
}

static void take_retries(struct sink *sink)
{
    struct page *page = &sink->page;
    struct sink_cursor *cursor = &sink->cursor;
    cursor->retry_count = 0;
    for (size_t i = page->settled; !page->letters && i < page->count; i++) {
        const struct page_slot *slot = &page->slots[i];
        if (slot->attempts && (slot->state == SLOT_WAITING || slot->state == SLOT_SENT))
            cursor->retries[cursor->retry_count++] =
                (struct retry){slot->item.position, slot->attempts, slot->first_ms};
    }
}

static bool compose(struct sink *sink, struct receipt *receipt)
{
    struct page *page = &sink->page;
    struct note_put note = {.space = CURSOR_SPACE, .key = sink->config.name, .expect = sink->cursor.version};
    if (!page->letters && page->count)
        sink->cursor.position = page->settled == page->count ? page->next
                                : page->settled              ? page->slots[page->settled - 1].item.position
                                                             : sink->cursor.position;
    take_retries(sink);
    take_mark(&sink->cursor);
    if (!cursor_value(&sink->cursor, &receipt->arena, &note.value) || !receipt_note(receipt, note)) return false;
    for (size_t i = 0; i < page->count; i++)
        if (wants_note(page, i) && !add_letter(sink, receipt, &page->slots[i])) return false;
    for (size_t i = 0; i < page->count; i++) page->slots[i].recorded |= wants_note(page, i);
    // From now on the events behind them know.
    for (size_t i = 0; i < receipt->report_count; i++) {
        const struct sink_report *report = &receipt->reports[i];
        if (!dead_add(&sink->dead, report->tenant, report->run, report->seq)) return false;
    }
    return true;
}

bool sink_put(struct sink *sink)
{
    bool letters = false;
    for (size_t i = 0; i < sink->page.count; i++) letters |= wants_note(&sink->page, i);
    if (sink->receipt || (!letters && !sink->cursor_dirty)) return false;
    if (!letters && mono_now() < sink->cursor_due && !sink_stopping(sink)) return false;
    struct receipt *receipt = receipt_make(sink);
    if (!receipt) return false;
    if (!compose(sink, receipt)) {
        receipt_drop(receipt);
        return false;
    }
    sink->receipt = receipt;
    sink->cursor_dirty = false;
    sink->cursor_due = mono_now() + sink->config.cursor_ms;
    receipt_send(sink, receipt);
    return true;
}

// A tenant whose last letter went has nothing to be alarmed about any more.
static void tell_gone(struct sink *sink, const struct dead_table *before)
{
    const struct bus_options *options = &sink->bus->options;
    for (size_t i = 0; i < before->tenant_count; i++) {
        bool left = false;
        for (size_t k = 0; k < sink->dead.tenant_count; k++)
            left |= strcmp(before->tenants[i], sink->dead.tenants[k]) == 0;
        if (!left && options->delivered)
            options->delivered(options->context, str_from(before->tenants[i]), sink->config.name, wall_now());
    }
}

void sink_letters(struct sink *sink)
{
    struct dead_table before = sink->dead;
    struct error err = {0};
    sink->dead = (struct dead_table){0};
    if (dead_load(&sink->dead, sink->store, sink->config.name, &err)) {
        sink->dead = before;
        sink_face_error(sink, err.message);
        return;
    }
    tell_gone(sink, &before);
    dead_release(&before);
}

static void take_good(struct sink *sink, struct receipt *receipt)
{
    const struct bus_options *options = &sink->bus->options;
    sink->cursor.version++;
    for (size_t i = 0; options->report && i < receipt->report_count; i++)
        options->report(options->context, &receipt->reports[i]);
    if (receipt->removed) sink_letters(sink);
}

bool sink_take(struct sink *sink)
{
    struct receipt *receipt = sink->receipt;
    if (!receipt) return true;
    pthread_mutex_lock(&receipt->mutex);
    bool answered = receipt->answered;
    enum code rc = receipt->rc;
    pthread_mutex_unlock(&receipt->mutex);
    if (!answered) return true;
    if (rc && rc != E_CONFLICT && rc != E_CANCELLED) {
        // Nothing else explains itself: the same notes are put again until they are taken.
        if (receipt->again_at == NEVER) {
            sink_face_error(sink, receipt->why.message);
            receipt->again_at = mono_now() + AGAIN_MS;
        }
        if (mono_now() < receipt->again_at) return true;
        receipt->again_at = NEVER;
        receipt_send(sink, receipt);
        return true;
    }
    sink->receipt = NULL;
    if (!rc) take_good(sink, receipt);
    sink->ended = rc == E_CANCELLED;
    receipt_drop(receipt);
    return rc != E_CONFLICT;
}

void sink_forget(struct sink *sink)
{
    struct receipt *receipt = sink->receipt;
    if (!receipt) return;
    pthread_mutex_lock(&receipt->mutex);
    receipt->sink = NULL;
    pthread_mutex_unlock(&receipt->mutex);
    sink->receipt = NULL;
    receipt_drop(receipt);
}
