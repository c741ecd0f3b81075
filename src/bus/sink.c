// The loop of a sink, and what answers mean. Everything here runs on the sink's own thread.
//
//   closed ──nobody answers──▶ open ──wait (backoff)──▶ one event as a probe ──answer──▶ closed, two, four, … at a time
//                               ▲                              │
//                               └─────────nobody answers───────┘
#include "bus/inside.h"

#include "os/os.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_MS 1000 // at the feed, when nobody says that it moved: another process may have
#define FACE_MS 100
#define LAST_PUT_MS 500
#define SHIFT_MAX 40
#define REPORTS_MAX 10000
#define LATER_MAX_MS 3600000

int64_t mono_now(void)
{
    return os_mono_us() / 1000;
}

int64_t wall_now(void)
{
    return os_now().wall_ms;
}

int64_t backoff_ms(int64_t base, int64_t max, uint32_t failures, uint64_t random)
{
    uint32_t shift = failures < SHIFT_MAX ? failures : SHIFT_MAX;
    int64_t most = base > (max >> shift) ? max : base << shift;
    if (most > max) most = max;
    return 1 + (int64_t)(random % (uint64_t)most);
}

// splitmix64: spreads retries, keeps no secrets.
uint64_t sink_random(struct sink *sink)
{
    uint64_t z = sink->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool sink_stopping(const struct sink *sink)
{
    return atomic_load(&sink->stopping);
}

void sink_poke(struct sink *sink)
{
    if (!atomic_exchange(&sink->poked, true)) eventfd_write(sink->wake, 1);
}

// ---- what readers see

void sink_face_error(struct sink *sink, const char *why)
{
    LOCKED(&sink->mutex);
    snprintf(sink->face.error, sizeof(sink->face.error), "%s", why);
    sink->face.error_ms = wall_now();
}

static void set_state(struct sink *sink, enum sink_state state)
{
    LOCKED(&sink->mutex);
    sink->face.state = state;
}

static int64_t head_time(struct sink *sink)
{
    struct page *page = &sink->page;
    if (page->letters || page->settled == page->count) return 0;
    struct page_slot *slot = &page->slots[page->settled];
    if (!slot->at_ms) {
        struct message message;
        struct error err = {0};
        arena_reset(&sink->scratch);
        slot->at_ms = -1;
        if (!message_make(&sink->config, NULL, &slot->item, 0, &sink->scratch, &message, &err) &&
            !civil_parse(str_from(message.time), &slot->at_ms))
            slot->at_ms = -1;
    }
    return slot->at_ms > 0 ? slot->at_ms : 0;
}

static void show_metrics(struct sink *sink, const struct sink_face *face)
{
    struct metrics *metrics = sink->bus->options.metrics;
    if (!metrics) return;
    metric_set(metrics, METRIC_OUTBOX_LAG, &sink->config.name, face->lag_ms * 1000);
    metric_set(metrics, METRIC_OUTBOX_WAITING, &sink->config.name, (int64_t)face->waiting);
    metric_set(metrics, METRIC_DEAD_LETTERS, &sink->config.name, (int64_t)face->dead);
}

void sink_show(struct sink *sink, bool now_please)
{
    int64_t now = mono_now(), at = 0, wall = wall_now();
    uint64_t end = 0;
    if (!now_please && now < sink->face_due) return;
    sink->face_due = now + FACE_MS;
    at = head_time(sink);
    if (!sink->store || store_feed_end(sink->store, &end, NULL)) end = sink->face.end;
    const struct page *page = &sink->page;
    bool held = !page->letters && page->settled < page->count;
    pthread_mutex_lock(&sink->mutex);
    struct sink_face *face = &sink->face;
    face->end = end;
    face->position = sink->cursor.position;
    if (!page->letters && page->count)
        face->position = page->settled == page->count ? page->next
                         : page->settled              ? page->slots[page->settled - 1].item.position
                                                      : face->position;
    face->waiting = end > face->position ? end - face->position : 0;
    // Positions are not dense: when all that waits has been looked at, it can be counted.
    if (page->next >= end && !page->letters) face->waiting = page->open;
    face->lag_ms = at && wall > at ? wall - at : 0;
    face->attempts = held ? page->slots[page->settled].attempts : 0;
    face->delivered = sink->cursor.delivered;
    face->duplicates = sink->cursor.duplicates;
    face->dead = sink->dead.count;
    face->next_ms = sink->open_at > now ? wall + (sink->open_at - now) : 0;
    struct sink_face copy = *face;
    pthread_mutex_unlock(&sink->mutex);
    show_metrics(sink, &copy);
}

// Readers at another engine see it in the cursor: it is put when that changes.
static void note_down(struct sink *sink, const char *why)
{
    struct sink_cursor *cursor = &sink->cursor;
    if (!cursor->down[0] == !why[0]) return;
    snprintf(cursor->down, sizeof(cursor->down), "%s", why);
    sink->cursor_dirty = true;
    if (why[0]) sink->cursor_due = 0;
}

// ---- answers

static void fail(struct page_slot *slot, const struct delivery *answer)
{
    slot->last_ms = wall_now();
    if (!slot->first_ms) slot->first_ms = slot->last_ms;
    slot->class = answer->class ? answer->class : "REFUSED";
    memcpy(slot->why, answer->why, sizeof(slot->why));
}

static void refused(struct sink *sink, struct page_slot *slot, const struct delivery *answer)
{
    const struct sink_config *config = &sink->config;
    slot->attempts++;
    fail(slot, answer);
    sink_face_error(sink, slot->why);
    if (answer->kind == ANSWER_POISON || slot->attempts >= config->max_attempts) {
        page_settle(&sink->page, slot, SLOT_DEAD);
        if (slot->note.len)
            os_log(LOG_WARN, "alert not delivered sink=%.*s id=%.*s class=%s attempts=%u why=%s", STR_ARG(config->name),
                   STR_ARG(slot->event_id), slot->class, slot->attempts, slot->why);
        else
            os_log(LOG_WARN, "event goes to the dead letters sink=%.*s run=%.*s seq=%llu class=%s attempts=%u why=%s",
               STR_ARG(config->name), STR_ARG(slot->item.run), (unsigned long long)slot->item.record.seq, slot->class,
               slot->attempts, slot->why);
        return;
    }
    slot->state = SLOT_WAITING;
    slot->due_ms =
        mono_now() + backoff_ms(config->backoff_ms, config->backoff_max_ms, slot->attempts - 1, sink_random(sink));
}

static void delivered(struct sink *sink, struct page_slot *slot, const struct delivery *answer)
{
    page_settle(&sink->page, slot, SLOT_SETTLED);
    sink->cursor.delivered++;
    sink->cursor.duplicates += answer->duplicate;
    LOCKED(&sink->mutex);
    sink->face.delivered_ms = wall_now();
}

static void later(struct sink *sink, struct page_slot *slot, const struct delivery *answer)
{
    slot->state = SLOT_WAITING;
    int64_t wait = answer->after_ms > 0
                       ? answer->after_ms
                       : backoff_ms(sink->config.backoff_ms, sink->config.probe_max_ms, sink->downs, sink_random(sink));
    if (wait > LATER_MAX_MS) wait = LATER_MAX_MS;
    sink->downs++;
    sink->open_at = mono_now() + wait;
    sink->window = 1;
    sink_face_error(sink, answer->why);
    set_state(sink, STATE_DOWN);
    note_down(sink, answer->why);
}

void sink_answer(struct sink *sink, uint32_t at, const struct delivery *answer)
{
    INVARIANT(at < sink->page.count && sink->page.slots[at].state == SLOT_SENT);
    struct page_slot *slot = &sink->page.slots[at];
    sink->in_flight--;
    sink->cursor_dirty = true;
    if (answer->kind == ANSWER_LATER) {
        later(sink, slot, answer);
        return;
    }
    if (answer->kind == ANSWER_GONE) {
        slot->state = SLOT_WAITING;
        sink->cursor.disabled = true;
        sink->cursor_due = 0;
        sink_face_error(sink, answer->why);
        os_log(LOG_WARN, "sink is switched off: its receiver is gone sink=%.*s", STR_ARG(sink->config.name));
        return;
    }
    sink->downs = 0;
    if (sink->window < PAGE_MAX) sink->window++; // twice as many a round trip
    if (sink->face.state != STATE_RUNNING) set_state(sink, STATE_RUNNING);
    note_down(sink, "");
    if (answer->kind == ANSWER_DELIVERED)
        delivered(sink, slot, answer);
    else
        refused(sink, slot, answer);
}

bool sink_down(struct sink *sink, const char *why)
{
    for (size_t i = sink->page.settled; i < sink->page.count; i++)
        if (sink->page.slots[i].state == SLOT_SENT) sink->page.slots[i].state = SLOT_WAITING;
    sink->in_flight = 0;
    sink->window = 1;
    sink->transport->close(sink);
    sink->connected = false;
    sink->open_at =
        mono_now() + backoff_ms(sink->config.backoff_ms, sink->config.probe_max_ms, sink->downs, sink_random(sink));
    if (sink->downs++ == 0) os_log(LOG_WARN, "sink does not answer sink=%.*s why=%s", STR_ARG(sink->config.name), why);
    sink_face_error(sink, why);
    set_state(sink, STATE_DOWN);
    note_down(sink, why);
    if (sink->page.news) news_later(sink);
    return false;
}

void sink_stream(struct sink *sink, struct str stream)
{
    struct sink_cursor *cursor = &sink->cursor;
    if (str_is(stream, cursor->stream)) return;
    snprintf(cursor->stream, sizeof(cursor->stream), "%.*s", STR_ARG(stream));
    cursor->created[0] = '\0';
    cursor->stream_seq = 0;
    cursor->mark_count = 0;
}

void sink_stored(struct sink *sink, struct str stream, uint64_t seq)
{
    if (sink->config.stream.len && !str_eq(sink->config.stream, stream)) return;
    sink_stream(sink, stream);
    if (seq > sink->cursor.stream_seq) sink->cursor.stream_seq = seq;
}

// Goes back to where the stream still had everything.
static void refill(struct sink *sink)
{
    sink->lost = false;
    sink->cursor.position = sink->page.next = sink->lost_position;
    sink->page.count = sink->page.settled = sink->page.open = 0;
    sink->page.letters = sink->page.news = false;
    sink->cursor_dirty = true;
    sink->next_look = 0;
}

// ---- sending

static void poisoned(struct sink *sink, struct page_slot *slot, const char *class, const char *why)
{
    struct delivery answer = {.kind = ANSWER_POISON, .class = class};
    snprintf(answer.why, sizeof(answer.why), "%.199s", why);
    refused(sink, slot, &answer);
    sink->cursor_dirty = true;
}

// The rest of a run waits with its dead letter, as a dead letter: it is sent again with it, in order.
static bool is_held(const struct sink *sink, const struct page_slot *slot, uint64_t lowest)
{
    if (!sink->config.held) return false;
    if (slot->before != PAGE_MAX && sink->page.slots[slot->before].state == SLOT_DEAD) return true;
    return !slot->letter && lowest && lowest < slot->item.record.seq;
}

static void hold(struct sink *sink, struct page_slot *slot)
{
    fail(slot, &(struct delivery){.class = "HELD", .why = "an earlier event of the run is a dead letter"});
    page_settle(&sink->page, slot, SLOT_DEAD);
    sink->cursor_dirty = true;
}

// The lowest number of its run that is a dead letter, here or on its way.
static uint64_t lowest_dead(const struct sink *sink, const struct page_slot *slot)
{
    uint64_t lowest = dead_lowest(&sink->dead, slot->item.tenant, slot->item.run);
    for (uint32_t at = slot->before; at != PAGE_MAX; at = sink->page.slots[at].before) {
        const struct page_slot *earlier_one = &sink->page.slots[at];
        if (earlier_one->state == SLOT_DEAD && (!lowest || earlier_one->item.record.seq < lowest))
            lowest = earlier_one->item.record.seq;
    }
    return lowest;
}

static void send_slot(struct sink *sink, uint32_t at)
{
    struct page_slot *slot = &sink->page.slots[at];
    struct message message;
    struct error err = {0};
    bool alert = slot->note.len > 0;
    uint64_t lowest = alert ? 0 : lowest_dead(sink, slot);
    arena_reset(&sink->scratch);
    uint64_t missing = lowest && lowest < slot->item.record.seq ? lowest : 0;
    enum code rc = alert ? message_alert(&sink->config, slot, &sink->scratch, &message, &err)
                         : message_make(&sink->config, sink->store, &slot->item, missing, &sink->scratch, &message, &err);
    if (rc == OK && !slot->event_id.ptr) slot->event_id = arena_copy(&sink->page.arena, message.event_id);
    if (rc == OK && !slot->event_id.ptr) rc = E_NOMEM;
    if (rc == E_SCHEMA) {
        poisoned(sink, slot, "UNREADABLE", err.message);
        return;
    }
    if (rc) {
        sink_down(sink, err.message);
        return;
    }
    if (!alert && is_held(sink, slot, lowest)) {
        hold(sink, slot);
        return;
    }
    slot->state = SLOT_SENT;
    sink->in_flight++;
    sink->transport->send(sink, at, &message);
}

static bool may_send(const struct sink *sink, int64_t now)
{
    return sink->connected && now >= sink->open_at && !sink->cursor.disabled && !sink_stopping(sink) &&
           sink->in_flight < sink->window;
}

static void send_some(struct sink *sink)
{
    bool sent = false;
    int64_t due = INT64_MAX;
    while (may_send(sink, mono_now())) {
        uint32_t at = page_next(sink, mono_now(), &due);
        if (at == PAGE_MAX) break;
        send_slot(sink, at);
        sent = true;
    }
    if (sent && sink->connected && sink->transport->flush) sink->transport->flush(sink);
}

static void connect_sink(struct sink *sink)
{
    struct error err = {0};
    if (sink->connected || !sink->page.open || mono_now() < sink->open_at) return;
    if (sink->downs) set_state(sink, STATE_PROBING);
    if (sink->transport->open(sink, &err)) {
        sink_down(sink, err.message);
        return;
    }
    sink->connected = true;
    sink->window = sink->downs ? 1 : PAGE_MAX;
    if (!sink->downs) set_state(sink, STATE_RUNNING);
    if (sink->lost) refill(sink);
}

// ---- from where

static void report_old(struct sink *sink)
{
    const struct bus_options *options = &sink->bus->options;
    struct json page;
    struct error err = {0};
    if (!options->report) return;
    struct letter_range first = {.sink = sink->config.name, .limit = REPORTS_MAX};
    arena_reset(&sink->loading);
    if (bus_dead_letters(sink->bus, sink->store, &first, &sink->loading, &page, &err)) return;
    const struct json *items = json_key(&page, "items");
    for (size_t i = 0; i < items->count; i++) {
        const struct json *item = &items->items[i];
        struct sink_report report = {.sink = sink->config.name,
                                     .tenant = json_text(json_key(item, "tenantId")),
                                     .run = json_text(json_key(item, "runId")),
                                     .event_id = json_text(json_key(item, "eventId")),
                                     .seq = (uint64_t)json_integer(json_key(item, "runSeq"), 0),
                                     .attempts = (uint32_t)json_integer(json_key(item, "attempts"), 0),
                                     .why = json_text(json_key(item, "error"))};
        if (!civil_parse(json_text(json_key(item, "lastAt")), &report.at_ms)) report.at_ms = 0;
        options->report(options->context, &report);
    }
}

enum code sink_cursor(struct sink *sink, struct error *err)
{
    arena_reset(&sink->loading);
    enum code rc = store_lives(sink->store, &sink->loading, &sink->config.lives, err);
    if (!rc) rc = cursor_load(sink->store, sink->config.name, &sink->loading, &sink->cursor, err);
    if (rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    sink->cursor_dirty = true; // where it began is worth a note: it is what "from" meant
    rc = sink->config.from_end ? store_feed_end(sink->store, &sink->cursor.position, err) : OK;
    sink->cursor.begin = sink->cursor.position;
    return rc;
}

static uint64_t orders_now(struct sink *sink)
{
    struct note note = {0};
    struct error err = {0};
    struct str key;
    if (!sink->bus->options.others) return 0;
    arena_reset(&sink->scratch);
    if (!order_key(sink->config.name, &sink->scratch, &key)) return sink->orders;
    enum code rc = store_note(sink->store, CURSOR_SPACE, key, &sink->scratch, &note, &err);
    return rc == E_NOT_FOUND ? 0 : rc ? sink->orders : note.version;
}

// An engine that does not carry has moved the sink, or marked dead letters.
static void look_for_orders(struct sink *sink)
{
    if (!sink->bus->options.others || mono_now() < sink->orders_due) return;
    sink->orders_due = mono_now() + LOOK_MS;
    if (orders_now(sink) != sink->orders) sink->loaded = false;
}

static bool load_sink(struct sink *sink)
{
    struct error err = {0};
    bool first = !sink->store;
    sink_forget(sink);
    if (sink->connected) sink->transport->close(sink); // answers to what was sent mean nothing any more
    sink->connected = false;
    sink->in_flight = 0;
    sink->cursor_dirty = false;
    sink->cursor_due = sink->open_at = 0;
    if (first) sink->store = sink->bus->options.reader(sink->bus->options.context);
    if (sink->store) sink->orders = orders_now(sink); // what is ordered from now on is seen later
    enum code rc = sink->store ? sink_cursor(sink, &err) : error_set(&err, E_IO, "the store cannot be opened now");
    if (!rc) rc = dead_load(&sink->dead, sink->store, sink->config.name, &err);
    if (rc) {
        sink_face_error(sink, err.message);
        return false;
    }
    if (sink->cursor.down[0]) note_down(sink, ""); // of the engine that carried it before
    if (first) report_old(sink);
    sink->page.count = sink->page.settled = sink->page.open = 0;
    sink->page.letters = sink->page.news = false;
    sink->page.next = sink->cursor.position;
    sink->next_look = sink->news_due = 0;
    sink->loaded = true;
    set_state(sink, sink->cursor.disabled ? STATE_DISABLED : STATE_RUNNING);
    return true;
}

static void next_page(struct sink *sink)
{
    struct error err = {0};
    if (!page_done(&sink->page) || sink->cursor.disabled) return;
    // Marks are known again when the last put has been answered.
    bool letters = sink->dead.marked > 0 && !sink->receipt;
    bool news = !letters && news_due(sink);
    if (!letters && !news && mono_now() < sink->next_look) return;
    // What a page settled is in the cursor before the page goes.
    const struct page *page = &sink->page;
    if (!page->letters && page->count) sink->cursor.position = page->next;
    enum code rc = letters ? page_load_letters(sink, &err) : news ? page_load_news(sink, &err) : OK;
    if (letters && !rc && !sink->page.count) sink->dead.marked = 0;
    if (!rc && !letters && !sink->page.news) rc = page_load(sink, &err);
    if (rc) {
        sink_face_error(sink, err.message);
        sink->page.count = sink->page.settled = sink->page.open = 0;
        sink->page.next = sink->cursor.position;
    }
    if (rc || !sink->page.count) sink->next_look = mono_now() + LOOK_MS;
}

// ---- waiting

static void earlier(int64_t *when, int64_t at)
{
    if (at < *when) *when = at;
}

static int64_t wait_until(struct sink *sink)
{
    int64_t now = mono_now(), when = now + LOOK_MS;
    if (!sink->loaded || sink->cursor.disabled || sink->ended) return when;
    if (page_done(&sink->page)) earlier(&when, sink->next_look);
    if (page_done(&sink->page) && !sink->receipt) earlier(&when, sink->news_due);
    if (sink->cursor_dirty && !sink->receipt) earlier(&when, sink->cursor_due);
    if (sink->page.open && (!sink->connected || now < sink->open_at)) earlier(&when, sink->open_at);
    if (may_send(sink, now) && page_next(sink, now, &when) != PAGE_MAX) when = now;
    if (sink->connected && sink->transport->deadline) earlier(&when, sink->transport->deadline(sink));
    return when;
}

static void wait_for(struct sink *sink, int64_t until)
{
    struct pollfd fds[2] = {{.fd = sink->wake, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    if (sink->connected && sink->transport->fd) fds[1].fd = sink->transport->fd(sink);
    int64_t left = until - mono_now();
    int ready = poll(fds, 2, left > 0 ? (int)left : 0);
    if (ready > 0 && fds[0].revents) {
        eventfd_t count;
        eventfd_read(sink->wake, &count);
        atomic_store(&sink->poked, false);
        sink->next_look = 0;
    }
    bool late = sink->connected && sink->transport->deadline && mono_now() >= sink->transport->deadline(sink);
    if (sink->connected && sink->transport->receive && (fds[1].revents || late)) sink->transport->receive(sink);
}

// ---- the loop

static void turn(struct sink *sink)
{
    if (atomic_exchange(&sink->reload, false)) sink->loaded = false;
    if (sink->loaded) look_for_orders(sink);
    if (!sink->loaded && !load_sink(sink)) return;
    if (atomic_exchange(&sink->redrive, false)) sink_letters(sink);
    if (!sink_take(sink)) {
        sink->loaded = false;
        return;
    }
    if (sink->ended) return;
    next_page(sink);
    if (!sink->cursor.disabled) connect_sink(sink);
    send_some(sink);
    sink_put(sink);
    if (sink->cursor.disabled && sink->face.state != STATE_DISABLED) set_state(sink, STATE_DISABLED);
}

static void last_put(struct sink *sink)
{
    int64_t until = mono_now() + LAST_PUT_MS;
    while (sink->loaded && !sink->ended && mono_now() < until) {
        if (!sink_take(sink)) break;
        sink_put(sink);
        if (!sink->receipt) break;
        struct pollfd fd = {.fd = sink->wake, .events = POLLIN};
        eventfd_t count;
        if (poll(&fd, 1, 20) > 0) eventfd_read(sink->wake, &count);
        atomic_store(&sink->poked, false);
    }
}

void *sink_main(void *argument)
{
    struct sink *sink = argument;
    while (!sink_stopping(sink)) {
        turn(sink);
        sink_show(sink, false);
        if (!sink_stopping(sink)) wait_for(sink, wait_until(sink));
    }
    last_put(sink);
    if (sink->connected) sink->transport->close(sink);
    sink->connected = false;
    set_state(sink, STATE_STOPPED);
    sink_show(sink, true);
    sink_forget(sink);
    dead_release(&sink->dead);
    store_close(sink->store);
    return NULL;
}
