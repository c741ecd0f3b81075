// Answers: JSON, problem+json, pages; and the small change of requests.
#include "api/inside.h"

#include "cairn/cairn.h"

#include <stdio.h>

enum { HEADERS_MAX = 24, ANSWER_MAX = 64 << 20 };

struct headers {
    struct http_header items[HEADERS_MAX];
    size_t count;
};

static void header(struct headers *headers, const char *name, struct str value)
{
    if (value.len == 0 || headers->count == HEADERS_MAX) return;
    headers->items[headers->count++] = (struct http_header){str_from(name), value};
}

// What the answer has for a body becomes more members.
static struct json problem_json(struct ask *ask)
{
    const struct answer *answer = &ask->call->answer;
    struct arena *arena = &ask->call->arena;
    struct json out = http_problem(arena, answer->status, answer->title, answer->code);
    JSON_ADD(arena, &out, {"retryable", json_bool(answer->retryable)},
             {"retryAfterMs", json_nonzero(answer->retry_after_ms)}, {"detail", json_some(answer->detail)},
             {"hint", json_some(answer->hint)}, {"instance", json_some(ask->request->raw_path)},
             {"requestId", json_some(ask->call->request_id)});
    json_fill(arena, &out, &answer->body);
    return out;
}

// Answers to those who may not see payloads are redacted here, from whichever handler they come. The status of
// a run may also be the answer to what changed it, and alerts quote what went wrong.
static bool is_redacted(const struct ask *ask)
{
    const struct call *call = ask->call;
    const struct route *route = ask->route;
    if (!route || route->flags & ROUTE_RAW) return false;
    static const char *const about_runs[] = {"Alert", "AlertPage", "RunStatus", "Schedule", "SchedulePage", "TickPage"};
    bool about = false;
    for (size_t i = 0; route->answer && i < ARRAY_COUNT(about_runs); i++)
        about = about || str_is(str_from(route->answer), about_runs[i]);
    return call->decision.payload_redacted || (about && !auth_sees_payloads(service_auth(call->service), &call->who));
}

static struct str write_body(struct ask *ask, struct buf *out, struct headers *headers)
{
    struct answer *answer = &ask->call->answer;
    if (answer->code) {
        header(headers, "Content-Type", STR("application/problem+json"));
        struct json problem = problem_json(ask);
        json_write(out, &problem);
        return buf_str(out);
    }
    if (answer->type) {
        header(headers, "Content-Type", str_from(answer->type));
        return answer->text;
    }
    if (answer->body.type == 0) return (struct str){0};
    header(headers, "Content-Type", STR("application/json"));
    if (is_redacted(ask)) redact(&answer->body);
    if (ask->fields.len > 0 && !fields_keep(ask, &answer->body)) out->failed = true;
    if (!out->failed) json_write(out, &answer->body);
    return buf_str(out);
}

static void write_headers(struct ask *ask, struct headers *headers, char seq[24], char retry[24])
{
    const struct answer *answer = &ask->call->answer;
    header(headers, "Location", answer->location);
    header(headers, "ETag", answer->etag);
    if (answer->next.len) header(headers, "Link", call_text(ask->call, "<%.*s>; rel=\"next\"", STR_ARG(answer->next)));
    if (answer->caused_seq) {
        snprintf(seq, 24, "%llu", (unsigned long long)answer->caused_seq);
        header(headers, "Cairn-Seq", str_from(seq));
    }
    if (answer->retry_after_ms > 0) {
        snprintf(retry, 24, "%lld", (long long)(answer->retry_after_ms + 999) / 1000);
        header(headers, "Retry-After", str_from(retry));
    }
    header(headers, "RateLimit-Policy", answer->rate_policy);
    header(headers, "RateLimit", answer->rate);
    if (answer->replayed) header(headers, "Idempotency-Replayed", STR("true"));
    if (answer->status == 401) header(headers, "WWW-Authenticate", STR("Bearer"));
    if (answer->allow.len) header(headers, "Allow", answer->allow);
    if (answer->ranges) header(headers, "Accept-Ranges", STR("bytes"));
    header(headers, "Set-Cookie", answer->cookie);
    header(headers, "Content-Range", answer->range);
    header(headers, "Content-Disposition", answer->disposition);
    header(headers, "Cairn-Request-Id", ask->call->request_id);
    header(headers, "Cairn-Version", STR(CAIRN_VERSION));
}

static void count_request(struct metrics *metrics, const struct http_request *request, struct str route, int status)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE"};
    struct str method = STR("other");
    char digits[12];
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_is(request->method, known[i])) method = str_from(known[i]);
    snprintf(digits, sizeof(digits), "%d", status);
    metric_add(metrics, METRIC_HTTP_REQUESTS, (struct str[]){method, route, str_from(digits)}, 1);
}

// Routes are those of the table, so that no client can make new series.
void count_answer(const struct ask *ask, int status)
{
    struct metrics *metrics = service_metrics(ask->call->service);
    struct str route = ask->route ? str_from(ask->route->pattern) : STR("none");
    count_request(metrics, ask->request, route, status);
    metric_time(metrics, METRIC_HTTP_DURATION, &route, os_mono_us() - ask->began_us);
}

void count_page(struct api *api, const struct http_request *request, int status)
{
    count_request(service_metrics(api->service), request, STR("page"), status);
}

void reply(struct call *call)
{
    struct ask *ask = call->context;
    struct headers headers = {.count = 0};
    char seq[24], retry[24];
    struct buf out SCOPED(buf_release) = buf_of(ANSWER_MAX);
    struct str body = write_body(ask, &out, &headers);
    write_headers(ask, &headers, seq, retry);
    count_answer(ask, buf_ok(&out) ? call->answer.status : 500);
    if (buf_ok(&out))
        net_reply(ask->exchange, call->answer.status, headers.items, headers.count, body);
    else
        reply_now(ask->exchange, 500, "ANSWER_TOO_LARGE", "the answer is larger than an answer may be");
    call_free(call);
}

// Without a call, and so without memory of its own.
void reply_now(struct net_exchange *exchange, int status, const char *code, const char *detail)
{
    const struct http_header headers[] = {{STR("Content-Type"), STR("application/problem+json")},
                                          {STR("Retry-After"), STR("1")}};
    bool later = status == 429 || status == 503;
    struct arena *arena = net_arena(exchange);
    struct json problem = http_problem(arena, status, (struct str){0}, code);
    JSON_ADD(arena, &problem, {"retryable", json_bool(later)}, {"retryAfterMs", json_nonzero(later ? 1000 : 0)},
             {"detail", json_word(detail)});
    struct buf out SCOPED(buf_release) = buf_of(4096);
    if (json_ok(&problem)) json_write(&out, &problem);
    net_reply(exchange, status, headers, later ? 2 : 1, buf_str(&out));
}

bool answer_text(struct ask *ask, int status, const char *type, struct str text)
{
    ask->call->answer.status = status;
    ask->call->answer.type = type;
    ask->call->answer.text = text;
    ask->call->done(ask->call);
    return true;
}

bool answer_kept(struct ask *ask, int status, const char *type, struct buf *text)
{
    struct str kept = buf_keep(text, &ask->call->arena);
    if (kept.ptr) return answer_text(ask, status, type, kept);
    return call_nomem(ask->call);
}

// The same request with another cursor.
static struct str next_target(struct ask *ask, struct str cursor)
{
    struct str name, value;
    struct buf out = buf_of(16 * 1024);
    buf_printf(&out, "%.*s?", STR_ARG(ask->request->raw_path));
    for (size_t at = 0; http_query_next(ask->request->query, &at, &name, &value);)
        if (!str_is(name, "cursor")) buf_printf(&out, "%.*s=%.*s&", STR_ARG(name), STR_ARG(value));
    buf_text(&out, "cursor=");
    http_percent_encode(&out, cursor);
    return buf_keep(&out, &ask->call->arena);
}

bool answer_page(struct ask *ask, struct json items, struct str cursor)
{
    if (cursor.len) cursor = service_cursor(ask->call, str_from(ask->route->pattern), cursor);
    if (cursor.len) ask->call->answer.next = next_target(ask, cursor);
    return call_answer(ask->call, 200,
                       JSON_OF(&ask->call->arena, {"items", items}, {"nextCursor", json_or_null(cursor)},
                               {"total", json_when(ask->total_is, json_int(ask->total))},
                               {"totalIs", ask->total_is ? json_word(ask->total_is) : json_none()}));
}

// ---- what requests say

bool route_takes(const struct route *route, struct str name)
{
    struct str words = str_from(route->query ? route->query : "");
    while (words.len > 0)
        if (str_eq(str_cut(words, ' ', &words), name)) return true;
    return false;
}

static bool is_repeated(struct str query, struct str name)
{
    struct str other, value;
    int count = 0;
    for (size_t at = 0; http_query_next(query, &at, &other, &value);) count += str_eq(other, name);
    return count > 1;
}

bool query_fits(struct ask *ask)
{
    const struct route *route = ask->route;
    struct str name, value;
    if (!str_starts(str_from(route->pattern), STR("/v1/"))) return true; // probes and scrapers say what they like
    for (size_t at = 0; http_query_next(ask->request->query, &at, &name, &value);) {
        if (!route_takes(route, name))
            return call_problem(ask->call, 400, "INVALID_REQUEST", "there is no parameter \"%.*s\" here; %s%s",
                                STR_ARG(name), route->query ? "there are: " : "there are none",
                                route->query ? route->query : "");
        if (is_repeated(ask->request->query, name))
            return call_problem(ask->call, 400, "INVALID_REQUEST", "parameter %.*s is given more than once",
                                STR_ARG(name));
    }
    return true;
}

bool query_text(struct ask *ask, const char *name, struct str *out)
{
    struct str raw_name, raw;
    *out = (struct str){0};
    for (size_t at = 0; http_query_next(ask->request->query, &at, &raw_name, &raw);) {
        if (!str_is(raw_name, name)) continue;
        if (http_percent_decode(raw, true, &ask->call->arena, out)) return true;
        return call_problem(ask->call, 400, "INVALID_REQUEST", "parameter %s is not encoded as it should be", name);
    }
    return true;
}

bool query_number(struct ask *ask, const char *name, int64_t low, int64_t high, int64_t otherwise, int64_t *out)
{
    struct str text;
    *out = otherwise;
    if (!query_text(ask, name, &text)) return false;
    if (text.len == 0) return true;
    if (str_int64(text, out) && *out >= low && *out <= high) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "parameter %s must be a number from %lld to %lld", name,
                        (long long)low, (long long)high);
}

bool query_cursor(struct ask *ask, struct str *out)
{
    struct str sealed;
    *out = (struct str){0};
    if (!query_text(ask, "cursor", &sealed)) return false;
    if (sealed.len == 0 || service_cursor_open(ask->call, str_from(ask->route->pattern), sealed, out)) return true;
    return call_problem(ask->call, 400, "INVALID_CURSOR", "this cursor did not come from here");
}

// "?verbose", "?verbose=true", "?verbose=1"
bool query_flag(struct ask *ask, const char *name, bool *out)
{
    struct str value;
    *out = http_query(ask->request, name, &ask->call->arena, &value);
    if (!*out || value.len == 0 || str_is(value, "true") || str_is(value, "1")) return true;
    *out = false;
    if (str_is(value, "false") || str_is(value, "0")) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "parameter %s must be true or false", name);
}

// ---- a run, and whether the caller may

enum { LOOKS_MAX = 64, MIN_SEQ_WAIT_MS = 2000 };

// Cairn-Min-Seq: the reader has written something and wants to see it. True: not there yet, and the ask is taken care of.
static bool is_behind(struct ask *ask, const struct run_head *head)
{
    int64_t wanted;
    if (!min_seq(ask, &wanted)) return true;
    if ((int64_t)head->last_seq >= wanted) return false;
    if (!head->terminal && ask->looked < LOOKS_MAX) {
        with_run_later(ask, head, MIN_SEQ_WAIT_MS);
        return true;
    }
    ask->call->answer.retryable = true;
    call_problem(ask->call, 412, "MIN_SEQ_NOT_REACHED", "the run is at event %llu", (unsigned long long)head->last_seq);
    return true;
}

static bool find_run(struct call *call, struct store *store)
{
    struct ask *ask = call->context;
    struct run_head head = {0};
    struct error err = {0};
    enum code rc = E_NOT_FOUND;
    if (call->who.tenant.len > 0) // the token of no tenant here: nothing is there
        rc = store_head(store, call->who.tenant, ask->params[0], &call->arena, &head, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    ask->looked++;
    return service_allows(call, ask->operation, rc ? NULL : &head, ask->reason) && !is_behind(ask, &head) &&
           ask->with_run(ask, store, &head);
}

bool moment_asked(struct ask *ask, const struct run_head *head, uint64_t *out)
{
    struct str text;
    *out = READING_NOW;
    if (!query_text(ask, "at", &text)) return false;
    if (text.len == 0) return true;
    if (!reading_at_parse(text, out))
        return call_problem(ask->call, 400, "INVALID_REQUEST",
                            "parameter at must be the number of an event, or 12.2 for the second ledger entry behind event 12");
    if (reading_event(*out) <= head->last_seq) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "at is %.*s, and the log ends at event %llu", STR_ARG(text),
                        (unsigned long long)head->last_seq);
}

bool with_run_later(struct ask *ask, const struct run_head *head, int64_t wait_ms)
{
    return service_wait(ask->call, head, 0, wait_ms, find_run);
}

bool with_queue_place(struct ask *ask)
{
    return service_queue_place(ask->call, find_run);
}

bool with_run(struct ask *ask, enum operation operation,
              bool (*then)(struct ask *ask, struct store *store, const struct run_head *head))
{
    ask->operation = operation;
    ask->with_run = then;
    ask->call->resource = ask->params[0];
    return service_read(ask->call, find_run);
}
