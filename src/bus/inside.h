// Private to bus/: a sink and what it is made of.
//
//   bus.c      the table of sinks, their threads, what readers get         settings.c the configuration
//   sink.c     the loop of a sink: which events to send, what an answer means page.c     the events that are being sent
//   notes.c    cursors and dead letters as notes, and their puts              dead_letters.c  what operators do to them
//   message.c  an event as a message                                          file.c, webhook.c, nats.c  where it goes
//   news.c     alerts as messages
//   idle.c     what the notes say of sinks that another process carries
//   objects.c  no sink: results of playbooks in an object store of NATS        object_wire.c  what its messages look like
#ifndef CAIRN_BUS_INSIDE_H
#define CAIRN_BUS_INSIDE_H

#include "base/civil.h"
#include "bus/bus.h"
#include "json/make.h"

#include <pthread.h>
#include <stdatomic.h>

#define PAGE_MAX 256          // events that are looked at together; also the most that are in flight
#define PAGE_BYTES (8u << 20) // and their size
#define CURSOR_SPACE STR("sink")
#define LETTER_SPACE STR("dlq")
#define NEWS_SPACE STR("alert-news")
#define HEADERS_MAX 40

enum sink_type { SINK_FILE = 1, SINK_STDOUT, SINK_WEBHOOK, SINK_NATS };
enum sink_format { FORMAT_RECORD = 1, FORMAT_CLOUDEVENTS };
enum sink_state { STATE_STARTING = 1, STATE_RUNNING, STATE_DOWN, STATE_PROBING, STATE_DISABLED, STATE_STOPPED };

struct secret { // by reference: read whenever it is used, never kept
    struct str variable, file;
};

struct sink_config {
    struct str name;
    enum sink_type type;
    enum sink_format format;
    bool structured;         // CloudEvents: one JSON object instead of headers and data
    const struct json *urls; // array of strings, or NULL
    struct str url, path, subject, stream, ca_file;
    const struct json *tenants, *types; // arrays, or NULL: all
    bool from_end, held;                // held: the rest of a run waits behind its dead letter (dlqBlocksRun)
    bool silence_counts;                // no answer in time is a failed attempt
    bool no_alerts;
    uint32_t max_attempts;
    int64_t backoff_ms, backoff_max_ms, probe_max_ms, timeout_ms, cursor_ms;
    struct secret signing, token, user, password, credentials;
    struct json headers;      // of a webhook: object of strings
    struct store_lives lives; // of the store, once it has been looked at
};

// The sinks of a configuration, in `arena`. E_INVALID names the place; E_DENIED.
enum code config_parse(const struct json *sinks, const struct fetch_policy *policy, struct arena *arena,
                       struct sink_config **out, size_t *count, struct error *err) MUST_CHECK;
// Where results go (bus/objects.h): an object, or nats://HOST:PORT/BUCKET. The secrets of a sink, in `arena` too.
#define BUCKET_MAX 64
#define BUCKET_DEFAULT "cairn_results"
enum code results_parse(const struct json *results, struct arena *arena, struct sink_config *out, struct str *bucket,
                        struct error *err) MUST_CHECK;
enum code nats_url_check(struct str url, struct error *err) MUST_CHECK;
bool sink_has_secret(const struct secret *secret);
// E_NOT_FOUND: it is not there now.
enum code sink_secret(const struct secret *secret, struct arena *arena, struct str *out, struct error *err) MUST_CHECK;

// ---- messages
struct message {
    // "run:seq", or "tenant/run:seq" beside the default tenant: the same whenever it is sent. What a store recorded after it was put back
    // from a backup has "~2" behind it, "~3" after the second time: another event may have been delivered under that number before.
    struct str id;
    enum vocabulary vocabulary;
    struct str tenant, project, environment, run, plan_id, plan_version, type, step, event_id, key, trace;
    uint64_t seq;
    uint32_t logical, engine;
    char time[CIVIL_SIZE];
    uint64_t missing; // lowest number of this run that is a dead letter here; 0 = none
    struct str record;
    struct str body, content_type;
    struct http_header headers[HEADERS_MAX]; // names and values are one line of visible ASCII each
    size_t header_count;
};

// E_SCHEMA: the record cannot be read, and never will be; E_NOMEM; errors of the store.
enum code message_make(const struct sink_config *config, struct store *store, const struct feed_item *item,
                       uint64_t missing, struct arena *arena, struct message *out, struct error *err) MUST_CHECK;
bool message_header(struct message *message, const char *name, struct str value, struct arena *arena) MUST_CHECK;
// The subject of a message after the template, or the default one of its vocabulary. ptr NULL: out of memory.
struct str message_subject(struct str pattern, const struct message *message, struct arena *arena);

// ---- answers
enum answer_kind {
    ANSWER_DELIVERED = 1,
    ANSWER_REFUSED, // this event, this time
    ANSWER_POISON,  // this event, always
    ANSWER_LATER,   // nobody's fault: not now
    ANSWER_GONE,    // the receiver wants no more events at all
};
struct delivery {
    enum answer_kind kind;
    bool duplicate;    // delivered: it was there
    const char *class; // of a failure: one word
    char why[200];
    int64_t after_ms; // LATER: not before; 0 = by backoff
};

// ---- the page
enum slot_state { SLOT_WAITING = 1, SLOT_SENT, SLOT_SETTLED, SLOT_DEAD };

struct page_slot {
    struct feed_item item;
    struct str event_id;
    enum slot_state state;
    uint32_t before; // slot of the same run before this one; PAGE_MAX = none
    uint32_t attempts;
    int64_t due_ms, first_ms, last_ms; // due: monotonic; first and last failure: wall clock
    const char *class;
    char why[200];
    bool recorded; // a dead letter that is on its way to the store
    bool letter;   // it is one already: sent once more
    struct str note; // an alert: the key of its note
    int64_t at_ms; // of the event; 0 = not known yet
};

struct page {
    struct arena arena;
    struct page_slot *slots;
    size_t count, settled; // settled: slots at the beginning that are settled or dead
    size_t open;           // neither
    uint64_t next;         // position to go on from
    bool letters;          // dead letters that are sent once more, or
    bool news;             // alerts
};

// ---- dead letters in memory: which runs have some
struct dead_run {
    uint64_t hash; // of tenant and run; 0 = free
    uint64_t lowest;
};
struct dead_table {
    struct dead_run *runs;
    size_t capacity, used;
    uint64_t count;  // of letters
    uint64_t marked; // of them to be sent again
    char (*tenants)[129];
    size_t tenant_count;
};
uint64_t dead_lowest(const struct dead_table *table, struct str tenant, struct str run); // 0 = none
void dead_release(struct dead_table *table);
// From the notes. The old contents are kept when it fails.
enum code dead_load(struct dead_table *table, struct store *store, struct str sink, struct error *err) MUST_CHECK;

// ---- notes
struct retry { // failed attempts of an event that is still being tried
    uint64_t position;
    uint32_t attempts;
    int64_t first_ms;
};
#define MARKS_MAX 16
struct mark { // everything up to this position has a number up to `seq` in the stream
    uint64_t position, seq;
};
struct sink_cursor {
    uint64_t position, version; // version 0: there is no note
    uint64_t begin;             // where it began: nothing before is ever sent of itself
    uint64_t delivered, duplicates;
    bool disabled;
    char down[200]; // why it does not answer; empty: it does, as far as anybody knows
    // NATS: the stream, when it was made, the highest number it has given out, and what that was at earlier positions.
    char stream[128], created[48];
    uint64_t stream_seq;
    struct mark marks[MARKS_MAX];
    size_t mark_count;
    struct retry retries[PAGE_MAX];
    size_t retry_count;
};
// E_NOT_FOUND: there is none yet.
enum code cursor_load(struct store *store, struct str sink, struct arena *arena, struct sink_cursor *out,
                      struct error *err) MUST_CHECK;
bool cursor_value(const struct sink_cursor *cursor, struct arena *arena, struct str *out) MUST_CHECK;

struct letter {
    struct str id, sink, tenant, run, event_id, type, class, why;
    uint64_t position, seq, version;
    uint32_t attempts;
    int64_t first_ms, last_ms;
    bool redrive;
};
bool order_key(struct str sink, struct arena *arena, struct str *out) MUST_CHECK;
bool letter_value(const struct letter *letter, struct arena *arena, struct str *out) MUST_CHECK;
enum code letter_read(const struct note *note, struct arena *arena, struct letter *out, struct error *err) MUST_CHECK;
bool letter_json(const struct letter *letter, struct arena *arena, struct json *out) MUST_CHECK;

// What was put and has not been answered. Belongs to both sides; the last one frees it.
struct receipt;

// ---- sinks
struct sink;

struct transport {
    // Takes several events of a run at once: what fails, fails with all that came after it.
    bool ordered;
    enum code (*open)(struct sink *sink, struct error *err); // may wait, looking at sink_stopping
    void (*send)(struct sink *sink, uint32_t slot, const struct message *message);
    void (*flush)(struct sink *sink);       // may be NULL: after some sends
    int (*fd)(struct sink *sink);           // may be NULL: to be looked at for input
    void (*receive)(struct sink *sink);     // may be NULL: input came, or the deadline passed
    int64_t (*deadline)(struct sink *sink); // may be NULL: monotonic
    void (*close)(struct sink *sink);
};
extern const struct transport file_transport, webhook_transport, nats_transport;

// What readers see; under the mutex.
struct sink_face {
    enum sink_state state;
    uint64_t position, end, delivered, duplicates, dead, waiting;
    int64_t lag_ms, error_ms, delivered_ms, next_ms; // wall clock
    uint32_t attempts;                               // of the event that holds the cursor
    char error[240];
};

struct sink {
    struct bus *bus;
    struct sink_config config;
    const struct transport *transport;
    void *wire; // of the transport
    pthread_t thread;
    bool started;
    int wake; // eventfd
    atomic_bool poked, stopping, reload, redrive, news;
    // of its thread
    struct store *store;
    struct arena scratch, loading;
    struct page page;
    struct sink_cursor cursor;
    struct dead_table dead;
    struct receipt *receipt; // in flight, or NULL
    bool cursor_dirty, connected, loaded;
    bool ended; // the engine is closed: nothing can be recorded any more
    int64_t cursor_due, next_look, face_due, orders_due, news_due;
    uint64_t orders; // version of the note of orders
    size_t in_flight, window;
    uint32_t downs;  // in a row
    int64_t open_at; // circuit: not before
    uint64_t random;
    bool lost; // the stream has lost what came after `lost_position`
    uint64_t lost_position;
    // shared
    pthread_mutex_t mutex;
    struct sink_face face;
};

// What an order that is on its way holds on to: the bus may be closed before the engine answers.
struct gate {
    pthread_mutex_t mutex;
    size_t holders;
    bool closed;
};
struct gate *gate_make(void);
void gate_leave(struct gate *gate); // the last one frees it

struct bus {
    struct gate *gate;
    struct bus_options options;
    struct arena arena;
    struct sink *sinks;
    size_t count;
    pthread_mutex_t look; // idle: one who looks at a time
};

int64_t mono_now(void);
int64_t wall_now(void);
int64_t backoff_ms(int64_t base, int64_t max, uint32_t failures,
                   uint64_t random); // full jitter: 1 to min(max, base * 2^failures)
uint64_t sink_random(struct sink *sink);
bool sink_stopping(const struct sink *sink);
void *sink_main(void *sink); // the thread
void sink_poke(struct sink *sink);
// From transports, on the sink's thread.
void sink_answer(struct sink *sink, uint32_t slot, const struct delivery *answer);
bool sink_down(struct sink *sink, const char *why); // nobody answers: everything in flight is to be sent again
void sink_stored(struct sink *sink, struct str stream, uint64_t seq); // NATS: the number of a message in its stream
void sink_stream(struct sink *sink, struct str stream);               // another stream than before, or none
void sink_face_error(struct sink *sink, const char *why);
enum code sink_cursor(struct sink *sink, struct error *err) MUST_CHECK; // from its note, or where it begins
void sink_show(struct sink *sink, bool now_please);                     // what readers see

// page.c
bool sink_carries(const struct sink_config *config, struct str tenant); // events of it; empty: of any
bool sink_is_only_of(const struct sink_config *config, struct str tenant);
enum code page_load(struct sink *sink, struct error *err) MUST_CHECK;
enum code page_load_letters(struct sink *sink, struct error *err) MUST_CHECK;
bool sink_wants(const struct sink_config *config, struct str type);
enum code page_begin(struct page *page, bool letters, struct error *err) MUST_CHECK;
enum code page_link(struct page *page, struct error *err) MUST_CHECK; // what waits for each other

// news.c
bool news_due(struct sink *sink);
void news_later(struct sink *sink); // nobody takes them now: events are not kept waiting
enum code page_load_news(struct sink *sink, struct error *err) MUST_CHECK;
enum code message_alert(const struct sink_config *config, const struct page_slot *slot, struct arena *arena,
                        struct message *out, struct error *err) MUST_CHECK;
uint32_t page_next(const struct sink *sink, int64_t now, int64_t *due); // a slot that may be sent, or PAGE_MAX
void page_settle(struct page *page, struct page_slot *slot, enum slot_state state);
bool page_done(const struct page *page); // everything settled, and dead letters on their way

// notes.c: puts what has changed. False: nothing to put, or the last one is not answered yet.
bool sink_put(struct sink *sink);
// Takes the answer to the last put, if there is one. False: the cursor is not what we thought: load it again.
bool sink_take(struct sink *sink);
void sink_letters(struct sink *sink); // looks at the dead letters again
void sink_forget(struct sink *sink);  // whatever is in flight is answered to nobody

struct sink *bus_find(struct bus *bus, struct str name);

#endif
