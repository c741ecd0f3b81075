// Private to api/: a request on its way, the table of routes, streams.
#ifndef CAIRN_API_INSIDE_H
#define CAIRN_API_INSIDE_H

#include "api/api.h"
#include "json/make.h"
#include "reading/reading.h"
#include "remote/remote.h"

#include <pthread.h>

enum { PARAMS_MAX = 4, PAGE_DEFAULT = 50, PAGE_MAX = 500, WAIT_MAX_MS = 60000 };
#define CALL_MEMORY ((size_t)64 << 20)

struct route;

// One request until it is answered. Lives in the arena of its call.
struct ask {
    struct api *api;
    struct call *call;
    struct net_exchange *exchange;
    const struct http_request *request; // lives until the reply
    const struct route *route;
    int64_t began_us;
    struct str params[PARAMS_MAX]; // of the pattern, in order
    struct json body;              // of a request with one; type 0 = none was read
    bool (*with_run)(struct ask *ask, struct store *store, const struct run_head *head);
    enum operation operation;
    struct str reason;
    int looked;           // how often the run was looked at
    struct str fields;    // of the answer; empty = all
    int64_t total;        // of a page: how many there are in all, when that was asked for
    const char *total_is; // "exact", "atLeast"; NULL: not asked for
    void *state;
};

enum route_flags {
    ROUTE_OPEN = 1,  // needs no token
    ROUTE_BODY = 2,  // a JSON object, in ask->body
    ROUTE_JSON = 4,  // JSON that the handler reads itself
    ROUTE_MAKES = 8, // a new run: refused before anything else is done when the service is full
    ROUTE_AGAIN =
        16, // 200 instead of its status when it was so before (a repeated request), or has ended (Prefer: wait)
    ROUTE_STREAM = 32, // NDJSON and SSE as well; 204 to a client that comes back behind the end
    ROUTE_PREVIEW = 64, // of forks: nothing is started
    ROUTE_RAW = 128,    // its writer leaves out what those may not see who see no payloads
};

typedef bool route_handler(struct ask *ask); // net thread, or a reader's after a large body: must be quick
typedef bool route_tell(struct ask *ask, struct store *store, const struct run_head *head);

#define DOCUMENT_BODY_MAX (8u << 20)

struct route {
    const char *method, *pattern;   // "{x}" stands for one segment
    const char *summary;            // for people
    route_handler *handle;          // NULL: `tell` answers, with the run that the first parameter names
    route_tell *tell;               // reader thread
    enum operation operation;       // of `tell`, and of what workers send
    enum remote_call call;          // of what workers send
    const char *how;                // of forks: "fork", "rerun", "retry"
    unsigned flags;                 // enum route_flags
    uint32_t body_max;              // 0 = 1 MiB; DOCUMENT_BODY_MAX grows with the steps that documents may have
    const char *query;              // names of its parameters, with blanks between them; NULL = none
    const char *body, *answer;      // names in the components of openapi.json; NULL = none
    int status;                     // of its success; 0 = 200
};
const struct route *route_at(size_t index); // NULL past the end
size_t route_index(const struct route *route);
// "/v1/t/TENANT/p/PROJECT/e/ENVIRONMENT" before a path; false when it has none. *rest is what follows.
bool route_place(struct str path, struct auth_object *place, struct str *rest);
// 404 or 405 (then *allow lists the methods) when there is none.
const struct route *route_find(struct str method, struct str path, struct str params[PARAMS_MAX], int *status,
                               char allow[64]);

// The components of the description: what bodies must look like.
enum code bodies_open(struct api *api, struct error *err) MUST_CHECK;
// Answers the ask and gives false when its body is not what the route says.
bool body_fits(struct ask *ask);
// What the path says counts when the body says nothing, and must not differ from it. False: it does, answered.
bool body_place(struct ask *ask, const char *name, struct str path, struct str *out);
// The member "document" as text, which may also be a plan as JSON. False: no memory, answered.
bool body_document(struct ask *ask, struct str *out);
bool body_ref(struct ask *ask, struct plan_ref *out);                    // planRef; uri empty: there is none
bool body_one(struct ask *ask, const char *one, const char *other);      // of two members that say the same thing one may be there

struct api {
    struct api_options options;
    struct service *service;
    struct net_server *server;
    struct store *store; // of the net thread
    struct pump *pump; // of streams
    uint64_t request_count;        // net thread
    struct arena arena;            // lives as long
    struct str description;        // openapi.json as it is sent, made when it is first asked for. net thread
    const struct json *components; // {"components": {"schemas": ...}}
    const struct schema **bodies;  // by index of the route; NULL where there is none to check
    struct page *page;
    struct rates *rates;           // of failed authentications. net thread
};

// api.c
// Puts the principal into the call: by a token or a certificate that is good now. False: none; *rc is OK when it was good once, or is
// good elsewhere.
bool ask_is_known(struct ask *ask, enum code *rc, struct error *why);
// Counts a token that does not fit. True: too many of them came from there, and that is answered.
bool too_many_guesses(struct ask *ask, struct str bearer);
bool come_again(struct ask *ask); // answers: the keys of a token's issuer are being read

// sessions.c
// Both halves of a session, whether they fit or not. False: there are not both.
bool session_shown(const struct http_request *request, struct arena *arena, struct str *cookie, struct str *key);
// A request of a session that changes something names its origin, as every browser does; the guard lets none in but ours.
bool session_may_change(const struct http_request *request);
struct json principal_json(struct ask *ask); // the principal that asks, and what its roles let it do anywhere

// reply.c
void reply(struct call *call); // call->done of every ask; frees it
void reply_now(struct net_exchange *exchange, int status, const char *code, const char *detail);
void count_answer(const struct ask *ask, int status); // for the metrics; before the exchange is answered
void count_page(struct api *api, const struct http_request *request, int status); // of the page, which has no route
// A JSON page {items, nextCursor} and its Link header. The cursor is sealed here.
bool answer_page(struct ask *ask, struct json items, struct str next_cursor);
bool answer_text(struct ask *ask, int status, const char *type, struct str text);
bool answer_kept(struct ask *ask, int status, const char *type, struct buf *text); // and releases it

// query parameters; a bad one answers the ask and gives false
bool route_takes(const struct route *route, struct str name);
// Answers the ask and gives false when a parameter is unknown to the route or is there twice: a filter that is misspelt
// must not give everything.
bool query_fits(struct ask *ask);
bool query_text(struct ask *ask, const char *name, struct str *out); // empty when absent
bool query_number(struct ask *ask, const char *name, int64_t low, int64_t high, int64_t otherwise, int64_t *out);
bool query_cursor(struct ask *ask, struct str *out); // of this list, as answer_page gave it; empty when absent
bool query_flag(struct ask *ask, const char *name, bool *out); // there, true or 1; false: answered

// headers.c; a bad one answers the ask and gives false
bool headers_fit(struct ask *ask);                          // none that has one meaning is there twice
int64_t prefer_wait_ms(const struct http_request *request); // Prefer: wait=N; 0 = none
bool idempotency_key(struct ask *ask, struct str *out);     // without its quotes; empty = none
bool is_json(struct str type);                              // a Content-Type
bool is_plain(const struct http_request *request);          // its body is not coded
// Which of the forms is wanted. The last is the usual one; another must be named, and not less wanted than it.
size_t accept_best(const struct http_request *request, const char *const *types, size_t count);
bool accept_names(const struct http_request *request, const char *type);   // by its name, not by a range
bool coding_taken(const struct http_request *request, const char *coding); // Accept-Encoding names it
bool tag_seen(const struct http_request *request, struct str etag);        // If-None-Match has it
bool etag_seen(const struct http_request *request, uint64_t seq); // If-None-Match has it
bool etag_wanted(struct ask *ask, uint64_t *seq);                 // If-Match; 0 = whatever
bool min_seq(struct ask *ask, int64_t *out);                      // Cairn-Min-Seq; 0 = none

// Looks up the run of params[0] on a reader thread, asks whether the caller may do `operation` with it, then calls `then` there.
bool with_run(struct ask *ask, enum operation operation,
              bool (*then)(struct ask *ask, struct store *store, const struct run_head *head));

// Parameter `at` of a run: READING_NOW when absent. One behind the end of the log answers the ask and gives false.
bool moment_asked(struct ask *ask, const struct run_head *head, uint64_t *out);

// Looks again when the run has moved, at the latest after so long.
bool with_run_later(struct ask *ask, const struct run_head *head, int64_t wait_ms);

// Asks the engine where the run waits, and looks at the run again (call->queue_place).
bool with_queue_place(struct ask *ask);

// present.c: what only the present knows of a run. none: it has ended, a past moment was asked for, or nothing of it is here. False: the
// engine is asked first, and the run looked at again.
bool present_of(struct ask *ask, const struct run_head *head, uint64_t at, struct json *out);
void present_into(struct ask *ask, const struct json *present, struct json *snapshot); // `place` of its steps, and `queue`

// redact.c
void redact(struct json *value); // in place
enum code redact_event(struct str *text, struct arena *arena,
                       struct error *err) MUST_CHECK; // a copy without its payload

// events.c
// One event as a caller asked for it: as it is stored, or in another vocabulary (to: 0 for its own), with or without its
// payload.
// text empty: it is left out, because it has no word there or was not asked for.
struct told_event {
    struct str text, type;
};
struct stream_ask;
struct showing;
enum code event_tell(const struct showing *showing, const struct stream_ask *stream, const struct record *record,
                     struct arena *arena, struct told_event *out, struct error *err) MUST_CHECK;
bool types_have(struct str list,
                struct str type); // a comma-separated list, '*' is any text; an empty one has everything

// fields.c
bool fields_read(struct ask *ask); // false: one of them is not known, and the ask is answered
bool fields_keep(struct ask *ask, struct json *body) MUST_CHECK; // takes out what was not asked for; false: no memory

// slices.c
struct byte_range {
    uint64_t from, size, total;
    bool partial;
};
// What of `size` bytes is asked for; false: nothing of them, and the ask is answered.
bool range_of(struct ask *ask, uint64_t size, struct byte_range *out);
// These bytes, which the range means; as a file when it has a name.
bool answer_slice(struct ask *ask, const char *type, struct str bytes, const struct byte_range *range, struct str name);

// pump.c: answers that go on
struct pump *pump_new(struct api *api);
enum code pump_start(struct pump *pump, struct error *err) MUST_CHECK;
void pump_stop(struct pump *pump); // no more is sent; net may still say that a stream is over
void pump_close(struct pump *pump);
void pump_event(void *api, const struct engine_event *event);
void pump_turned(void *api);

struct stream { // first of what its source keeps
    struct stream *next;
    const struct stream_source *source;
    struct net_stream *net;
    struct arena memory;
    struct str tenant, run, token; // in `memory`; run empty: every run
    struct str session;            // in `memory`; empty: none
    int64_t session_ms;
    bool sse;                      // else it is lines or text, where nothing can be said but those
    bool open;                     // its answer has begun. The mutex of the pump
    bool closed;                   // its connection is over; set by the net thread
    bool ended;                    // net_stream_end was called
    bool moved;                    // there may be something to send. The mutex of the pump
    int64_t due_ms;                // monotonic: when it is served at the latest
    int64_t beat_ms;               // monotonic: when something was sent
    int64_t expires_ms;            // of a token that was not made here; 0 = the table of tokens knows
};

// What was read last, so that a thousand streams of one run cost one reading.
struct portion {
    struct str tenant, run;
    uint64_t after;
    struct records records;
    struct feed feed;
    struct run_head head;
    bool valid, ended, gone;
};

// What the pump lends to a source.
struct serving {
    struct api *api;
    struct store *store;
    struct arena arena, scratch; // of the portion; of one turn
    struct portion portion;
    struct buf out;
    int64_t now_ms; // monotonic
};

enum stream_turn { STREAM_WAITS = 1, STREAM_MORE, STREAM_OVER };

struct stream_source {
    size_t size; // of what begins with struct stream
    enum stream_turn (*serve)(struct stream *stream, struct serving *with); // sends a portion of what is new. The pump's thread
    bool moves;           // the engine says when there may be something new
    int64_t look_ms;      // without that, and where other engines drive runs too, it is served so often
    size_t most;          // open at a time; 0 = any number
    const char *too_many; // then
};

// A stream that is not open yet, for its source to fill in; NULL: answered.
struct stream *stream_new(struct ask *ask, const struct stream_source *source, struct str tenant, struct str run);
void stream_drop(struct ask *ask, struct stream *stream);             // no memory: answered
// Begins the answer, unless the token has as many streams as it may have: then it is 429. `first` is in the stream's memory.
bool stream_begin(struct ask *ask, struct stream *stream, const char *type, struct str first);
bool stream_send(struct stream *stream, struct str bytes); // false: it is closed, or will be

// stream.c: of events
struct stream_ask {
    struct str tenant, run; // run empty: everything of the tenant
    uint64_t after;         // sequence, or position for everything
    enum vocabulary as;     // 0 = as stored
    struct str types, step; // filters; empty = all
    bool sse;
    bool redacted; // payloads are left out
    bool resync;   // the reader has seen numbers that this log does not have
    // Of everything, only what happens here; empty = anywhere. Borrowed until events_stream has returned.
    struct names projects, environments;
    struct str project, environment;
};
// Whether a run of the feed is for it: its head is looked up, unless it is the run of the last question (*known).
struct feed_known {
    struct str run;
    bool seen;
};
bool stream_sees(const struct stream_ask *stream, struct store *store, struct str run, struct arena *arena,
                 struct feed_known *known);
bool events_stream(struct ask *ask, const struct stream_ask *wanted);

// handlers: one file for each family
route_handler handle_live, handle_ready, handle_metrics, handle_openapi, handle_schema_get, handle_whoami, handle_sign_in,
    handle_session_open, handle_session_close, handle_ticket,
    handle_capabilities, handle_run_list, handle_run_start, handle_run_status, handle_run_events, handle_signal_post,
    handle_signal_put, handle_run_delete, handle_fork, handle_events_all, handle_definition_list,
    handle_definition_get, handle_definition_put, handle_definition_document, handle_definition_approve,
    handle_store_list, handle_plan_validate, handle_plan_graph, handle_worker_list, handle_engine_list, handle_worker, handle_worker_read,
    handle_worker_artifact, handle_token_list, handle_token_create, handle_token_revoke, handle_run_resolve,
    handle_run_status_far, handle_ref_status, handle_ref_cancel, handle_ref_signal,
    handle_event_send, handle_incoming_list, handle_incoming_get, handle_hook,
    handle_schedule_list, handle_schedule_get, handle_schedule_put, handle_schedule_delete, handle_schedule_pause,
    handle_schedule_resume, handle_schedule_trigger, handle_schedule_next, handle_schedule_ticks,
    handle_schedule_backfill, handle_schedule_backfills, handle_schedule_backfill_end,
    handle_queue_list, handle_queue_reconcile, handle_queue_get, handle_queue_put, handle_queue_delete,
    handle_queue_pause, handle_queue_resume, handle_limits_get, handle_limits_put, handle_alert_list,
    handle_step_limit_list, handle_step_limit_get, handle_step_limit_put, handle_step_limit_delete,
    handle_alert_ack, handle_outbox_list, handle_outbox_rewind, handle_dlq_list, handle_dlq_redrive_all,
    handle_dlq_redrive, handle_dlq_drop, handle_audit_list, handle_audit_verify, handle_store_usage;
route_tell tell_steps, tell_why, tell_run, tell_head, tell_stored_events, tell_ledger, tell_redacted_events,
    tell_redacted_ledger, tell_blob, tell_run_document, tell_file, tell_logs, tell_bundle, tell_proof, tell_decisions,
    tell_artifacts, tell_content, tell_attempts, tell_output, tell_inputs, tell_payload, tell_graph, tell_places;

#endif
