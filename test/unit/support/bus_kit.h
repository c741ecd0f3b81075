// What the tests of the bus share: a store that somebody writes while sinks read it, and puts that can be held back, lost or refused.
#ifndef CAIRN_TEST_UNIT_SUPPORT_BUS_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_BUS_KIT_H

#include "bus/inside.h"
#include "conformance/store_kit.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BUS_REPORTS_MAX = 64, BUS_PATIENCE_MS = 30000 };

struct bus_kit {
    struct kit store;
    char url[600];
    struct bus *bus;
    struct fetch_policy *policy;
    struct metrics *metrics;
    pthread_mutex_t mutex; // of everything below, and of the writing handle
    bool idle, others;     // of the next bus
    bool lose_puts;        // a process that dies before its cursor is stored
    int refuse_puts;       // so many conflicts
    bool hold_puts;        // an engine that answers later: bus_kit_answer
    struct {
        bus_done done;
        void *to;
    } held[8];
    int held_count;
    int puts, reports, cleared;
    int lone_letters; // puts of a new dead letter without the cursor
    struct {
        char run[64], why[240];
        uint64_t seq;
        uint32_t attempts;
    } report[BUS_REPORTS_MAX];
};

static inline struct store *bus_kit_reader(void *context)
{
    struct bus_kit *kit = context;
    struct store_options options = kit_options(&kit->store, STORE_READ);
    struct store *store = NULL;
    struct error err = {0};
    return store_open(str_from(kit->url), &options, &store, &err) ? NULL : store;
}

static inline void bus_kit_put(void *context, const struct note_put *notes, size_t count, bus_done done, void *to)
{
    struct bus_kit *kit = context;
    struct store_batch batch = {.notes = notes, .note_count = count};
    struct error err = {0};
    enum code rc = OK;
    pthread_mutex_lock(&kit->mutex);
    kit->puts++;
    bool letter = false, cursor = false;
    for (size_t i = 0; i < count; i++) {
        letter = letter || (str_eq(notes[i].space, LETTER_SPACE) && !notes[i].remove);
        cursor = cursor || str_eq(notes[i].space, CURSOR_SPACE);
    }
    kit->lone_letters += letter && !cursor;
    if (kit->refuse_puts > 0 && kit->refuse_puts--) rc = error_set(&err, E_CONFLICT, "refused by the test");
    bool lost = kit->lose_puts, held = kit->hold_puts;
    if (held) {
        CHECK(kit->held_count < 8);
        kit->held[kit->held_count].done = done;
        kit->held[kit->held_count++].to = to;
        pthread_mutex_unlock(&kit->mutex);
        return;
    }
    if (!lost && !rc) rc = store_append(kit->store.store, &batch, KIT_NOW, &kit->store.arena, &err);
    pthread_mutex_unlock(&kit->mutex);
    if (lost) rc = error_set(&err, E_CANCELLED, "lost by the test");
    done(to, rc, rc ? &err : NULL);
}

static inline void bus_kit_answer(struct bus_kit *kit, enum code rc)
{
    struct error err = {0};
    if (rc) error_set(&err, rc, "by the test");
    for (int i = 0; i < kit->held_count; i++) kit->held[i].done(kit->held[i].to, rc, rc ? &err : NULL);
    kit->held_count = 0;
}

static inline void bus_kit_report(void *context, const struct sink_report *report)
{
    struct bus_kit *kit = context;
    pthread_mutex_lock(&kit->mutex);
    CHECK(kit->reports < BUS_REPORTS_MAX);
    snprintf(kit->report[kit->reports].run, 64, "%.*s", STR_ARG(report->run));
    snprintf(kit->report[kit->reports].why, 240, "%.*s", STR_ARG(report->why));
    kit->report[kit->reports].seq = report->seq;
    kit->report[kit->reports++].attempts = report->attempts;
    pthread_mutex_unlock(&kit->mutex);
}

static inline void bus_kit_delivered(void *context, struct str tenant, struct str sink, int64_t at_ms)
{
    struct bus_kit *kit = context;
    (void)tenant, (void)sink, (void)at_ms;
    pthread_mutex_lock(&kit->mutex);
    kit->cleared++;
    pthread_mutex_unlock(&kit->mutex);
}

static inline void bus_kit_init(struct bus_kit *kit)
{
    memset(kit, 0, sizeof(*kit));
    kit_init(&kit->store);
    pthread_mutex_init(&kit->mutex, NULL);
    snprintf(kit->url, sizeof(kit->url), "sqlite:%s/store.db", test_dir());
    struct store_options options = kit_options(&kit->store, STORE_WRITE);
    CHECK_OK(store_open(str_from(kit->url), &options, &kit->store.store, &kit->store.err), &kit->store.err);
    kit->metrics = metrics_open(&kit->store.arena);
}

// `config` is the list of sinks; every @DIR@ in it is the directory of the test, every @PORT@ a port.
static inline enum code bus_kit_try(struct bus_kit *kit, const char *config, uint16_t port, struct error *err)
{
    struct buf text;
    struct json sinks;
    buf_init(&text, 1 << 20);
    for (const char *at = config; *at;) {
        bool dir = strncmp(at, "@DIR@", 5) == 0, number = strncmp(at, "@PORT@", 6) == 0;
        if (dir) buf_text(&text, test_dir());
        if (number) buf_int(&text, port);
        if (!dir && !number) buf_byte(&text, *at);
        at += dir ? 5 : number ? 6 : 1;
    }
    pthread_mutex_lock(&kit->mutex);
    struct str copy = arena_copy(&kit->store.arena, buf_str(&text));
    buf_release(&text);
    CHECK_OK(json_parse(copy, NULL, &kit->store.arena, &sinks, err), err);
    pthread_mutex_unlock(&kit->mutex);
    struct bus_options options = {.sinks = &sinks,
                                  .reader = bus_kit_reader,
                                  .put = bus_kit_put,
                                  .report = bus_kit_report,
                                  .delivered = bus_kit_delivered,
                                  .metrics = kit->metrics,
                                  .idle = kit->idle,
                                  .others = kit->others,
                                  .fetch = kit->policy,
                                  .context = kit};
    return bus_open(&options, &kit->bus, err);
}

static inline void bus_kit_open(struct bus_kit *kit, const char *config, uint16_t port)
{
    struct error err = {0};
    CHECK_OK(bus_kit_try(kit, config, port, &err), &err);
}

static inline void bus_kit_stop(struct bus_kit *kit)
{
    bus_close(kit->bus);
    kit->bus = NULL;
}

static inline void bus_kit_close(struct bus_kit *kit)
{
    bus_kit_stop(kit);
    kit_release(&kit->store);
    pthread_mutex_destroy(&kit->mutex);
}

// A run of `steps` + 2 events: it starts, steps start, it ends.
static inline void bus_kit_run(struct bus_kit *kit, const char *tenant, const char *run, int steps)
{
    pthread_mutex_lock(&kit->mutex);
    struct run_create create = kit_run(tenant, run, VOCABULARY_RUN);
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit->store.store, &create, &log, &kit->store.err), &kit->store.err);
    kit_append(&kit->store, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    for (int i = 0; i < steps; i++) {
        char step[16];
        snprintf(step, sizeof(step), "s%d", i);
        kit_step(&kit->store, log, step);
    }
    kit_append(&kit->store, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit->store.store, log);
    pthread_mutex_unlock(&kit->mutex);
    if (kit->bus) bus_moved(kit->bus);
}

static inline void bus_kit_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

#define BUS_WAIT(condition)                                                                                            \
    do {                                                                                                               \
        int64_t until_ = mono_now() + BUS_PATIENCE_MS;                                                                 \
        while (!(condition)) {                                                                                         \
            if (mono_now() > until_) test_fail(__FILE__, __LINE__, "still not: %s", #condition);                       \
            bus_kit_nap();                                                                                             \
        }                                                                                                              \
    } while (0)

// What bus_list says of the first sink.
static inline struct str bus_kit_text(struct bus_kit *kit, const char *key)
{
    static struct arena arena;
    struct json list;
    struct error err = {0};
    arena_release(&arena);
    arena_init(&arena, 16 * 1024, SIZE_MAX);
    CHECK_OK(bus_list(kit->bus, (struct str){0}, true, &arena, &list, &err), &err);
    return json_text(json_key(&list.items[0], key));
}

static inline int64_t bus_kit_number(struct bus_kit *kit, const char *key)
{
    struct arena arena;
    struct json list;
    struct error err = {0};
    arena_init(&arena, 16 * 1024, SIZE_MAX);
    CHECK_OK(bus_list(kit->bus, (struct str){0}, true, &arena, &list, &err), &err);
    int64_t number = json_integer(json_key(&list.items[0], key), -1);
    arena_release(&arena);
    return number;
}

static inline int bus_kit_reports(struct bus_kit *kit)
{
    pthread_mutex_lock(&kit->mutex);
    int reports = kit->reports;
    pthread_mutex_unlock(&kit->mutex);
    return reports;
}

static inline int bus_kit_cleared(struct bus_kit *kit)
{
    pthread_mutex_lock(&kit->mutex);
    int cleared = kit->cleared;
    pthread_mutex_unlock(&kit->mutex);
    return cleared;
}

// The cursor as it is stored, in the kit's arena; position 0 and version 0 when there is none.
static inline struct sink_cursor *bus_kit_cursor(struct bus_kit *kit, const char *sink)
{
    struct error err = {0};
    pthread_mutex_lock(&kit->mutex);
    struct sink_cursor *cursor = ARENA_NEW(&kit->store.arena, struct sink_cursor);
    enum code rc = cursor_load(kit->store.store, str_from(sink), &kit->store.arena, cursor, &err);
    pthread_mutex_unlock(&kit->mutex);
    CHECK(rc == OK || rc == E_NOT_FOUND);
    return cursor;
}

static inline size_t bus_kit_letters(struct bus_kit *kit)
{
    struct notes notes;
    pthread_mutex_lock(&kit->mutex);
    CHECK_OK(
        store_notes(kit->store.store, STR("dlq"), (struct str){0}, 10000, &kit->store.arena, &notes, &kit->store.err),
        &kit->store.err);
    pthread_mutex_unlock(&kit->mutex);
    return notes.count;
}

// The lines of a file sink.
static inline size_t bus_kit_lines(const char *name, struct json *out, size_t max, struct arena *arena)
{
    char path[600];
    size_t count = 0;
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    if (access(path, R_OK) != 0) return 0;
    struct str text = test_read_file(path), rest = text;
    while (rest.len && count < max) {
        struct error err = {0};
        struct str line = arena_copy(arena, str_cut(rest, '\n', &rest));
        CHECK_OK(json_parse(line, NULL, arena, &out[count++], &err), &err);
    }
    return count;
}

#endif
