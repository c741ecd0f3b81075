// The event bus: every event of the log, carried to sinks outside. The log is the outbox.
//
//   B1 A sink reads the store's feed (S16) behind a cursor of its own. Nothing is carried that is not durable in the log (I33).
//   B2 At least once: the cursor, a note, moves after the sink has acknowledged. A process that dies in between sends again, with the
//      same ids (I31, ES-4g). The cursor note is the truth: putting another one in its place moves the sink.
//   B3 In order per run (I32): an event is sent when the one before it of its run has been acknowledged, or is a dead letter.
//   B4 Only an answer about an event counts as a failed attempt. A sink that is not there opens its circuit: it is probed with
//      backoff, begins with one event when it is back, and costs no event an attempt (ES-4d, ES-4i).
//   B5 After `maxAttempts` failed attempts, or at once when trying again is no use, an event is a dead letter: a note that is stored
//      with the move of the cursor past it, so that it is in one place or in the other; and is reported when it is durable (ES-4e).
//   B6 The engine never waits for a sink (ES-4h): each has a thread, a reading handle and a connection, and gives notes to the engine
//      like anybody else.
//
// Notes: space "sink", key NAME, the cursor, and NAME/order, which moves when one that does not carry was given an order; space "dlq", key
// NAME/POSITION (20 digits), a dead letter; space "alert-news", key NAME/TIME.ID, an alert that is to be sent. docs/format/bus.md has them,
// the configuration, and what goes over the wire.
#ifndef CAIRN_BUS_BUS_H
#define CAIRN_BUS_BUS_H

#include "fetch/fetch.h"
#include "store/store.h"
#include "view/alerts.h"
#include "view/metrics.h"

struct bus;

#define BUS_SINK_NAME_MAX 64 // bytes; a-z, 0-9, '.', '_', '-'

// Called when notes are durable (OK), or will never be; on any thread, perhaps before the call that hands them over returns.
typedef void (*bus_done)(void *context, enum code rc, const struct error *why);

struct bus_options {
    const struct json *sinks; // array of objects (docs/format/bus.md); copied
    // Opens a handle for reading. Called on the thread that will use it; closed by the bus. NULL: there is none now.
    struct store *(*reader)(void *context);
    // Stores notes with the next batch (engine_put): copies, calls `done` once. Called on threads of the bus, must not wait for it.
    void (*put)(void *context, const struct note_put *notes, size_t count, bus_done done, void *done_context);
    // An event became a dead letter; a tenant has none left in this sink. On threads of the bus, may be NULL.
    void (*report)(void *context, const struct sink_report *report);
    void (*delivered)(void *context, struct str tenant, struct str sink, int64_t at_ms);
    struct metrics *metrics; // may be NULL
    bool idle;   // another process carries: nothing is sent here. Readers get what the notes say, and orders are taken
    bool others; // other processes over this store take orders too
    const struct fetch_policy *fetch; // webhooks go where it allows; NULL: nowhere. Must outlive the bus
    void *context;
};

// Looks at the whole configuration, then starts a thread per sink. E_INVALID names the place in the configuration; E_DENIED: a webhook
// that the policy refuses.
enum code bus_open(const struct bus_options *options, struct bus **out, struct error *err) MUST_CHECK;
// Events were appended. Any thread, never waits, costs next to nothing.
void bus_moved(struct bus *bus);
// Ends all threads. What was acknowledged in the last moment is put as cursor and waited for, half a second at most: call it while
// a thread still turns the engine, and not on that thread. A webhook that is being called is waited for. NULL is fine.
void bus_close(struct bus *bus);

// An alert is raised or ends: the notes that carry that to the sinks that want it, at most `max`. They are stored with the alert; then
// bus_news is called. The id of the message is the same whenever it is sent. Any thread.
struct bus_alert {
    struct str id, tenant; // tenant empty: of the installation
    bool open;
    uint32_t count;
    int64_t at_ms;
    const struct json *alert; // schemas/alert.json
};
size_t bus_alert(struct bus *bus, const struct bus_alert *alert, struct arena *arena, struct note_put *out, size_t max);
void bus_news(struct bus *bus);
size_t bus_sinks(const struct bus *bus); // how many there are

// ---- for readers: any thread, with a handle of its own
// One that is idle: what bus_list and the metrics say is brought up to date. Otherwise it does nothing.
enum code bus_look(struct bus *bus, struct store *reader, struct error *err) MUST_CHECK;
// An array in the order of the configuration: {name, type, state, circuit, position, waiting, lagMs, delivered, deadLetters, ...}.
// Only sinks that carry events of `tenant` (empty: all). Not `whole`: without numbers and errors, which are those of all projects.
enum code bus_list(struct bus *bus, struct str tenant, bool whole, struct arena *arena, struct json *out,
                   struct error *err) MUST_CHECK;
struct letter_range {
    struct str sink;
    struct str tenant; // empty: of all
    struct str after;  // the id that the last page ended with; empty: from the first
    size_t limit;
};
// {"items": [...], "next": id or absent}, in order of position.
enum code bus_dead_letters(struct bus *bus, struct store *reader, const struct letter_range *range, struct arena *arena,
                           struct json *out, struct error *err) MUST_CHECK;

// ---- for operators: any thread. The answer comes by `done` (may be NULL) unless the call itself fails; *count says how many.
// Which dead letters: by id, or all of a run, or (both empty) all of the sink; of `tenant` only unless that is empty.
struct dead_letter_choice {
    struct str sink, tenant;
    struct str id; // "NAME/POSITION"
    struct str run;
};
#define BUS_LETTERS_MAX 10000 // per call; those with the lowest positions
// They are sent once more, with no attempts counted. A letter stays one until the sink has acknowledged it. E_NOT_FOUND, also for all of a
// sink that carries nothing of the tenant.
enum code bus_redrive(struct bus *bus, struct store *reader, const struct dead_letter_choice *which, bus_done done,
                      void *done_context, size_t *count, struct error *err) MUST_CHECK;
// They are given up. Who did it and why is for the caller's audit. E_NOT_FOUND.
enum code bus_drop(struct bus *bus, struct store *reader, const struct dead_letter_choice *which, bus_done done,
                   void *done_context, size_t *count, struct error *err) MUST_CHECK;

// Where a sink goes on; a sink that was switched off (410) is on again.
struct bus_place {
    bool here;              // where it is
    uint64_t position;      // after this one; 0: from the first event
    struct str tenant, run; // or before event `seq` of this run
    uint64_t seq;
    struct str asker; // tenant that asks: there are only the sinks that carry its events. Empty: all
    bool may_skip;    // also events of other tenants, which then never get there
};
// E_NOT_FOUND: no such sink, no such event. E_INVALID: the log does not go so far. E_DENIED: events of other tenants would be skipped.
enum code bus_rewind(struct bus *bus, struct store *reader, struct str sink, const struct bus_place *place,
                     bus_done done, void *done_context, struct error *err) MUST_CHECK;

#endif
