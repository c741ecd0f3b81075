// What came out of the tasks goes to the server: logs, then artifacts, then results in batches. Nothing is dropped because
// the server is away: it is sent again until the server answers.
#include "worker/inside.h"

#include "reach/reach.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CALL_MS = 30000,
    LAST_CALL_MS = 2000,
    LOG_EVERY_MS = 200,
    LOG_PIECE_MAX = 64 << 10,
    LOG_BODY_MAX = 256 << 10,
    RESULT_BODY_MAX = 512 << 10,
    ARTIFACT_MAX = 64 << 20
};

// ---- logs
struct piece {
    struct attempt *attempt;
    uint64_t ticket;
    bool is_stderr;
    size_t len;
};

static void piece_body(struct buf *body, const struct attempt *attempt, bool is_stderr, struct str text)
{
    body_task(body, attempt);
    buf_byte(body, ',');
    json_write_string(body, STR("stream"));
    buf_byte(body, ':');
    json_write_string(body, is_stderr ? STR("stderr") : STR("stdout"));
    body_number(body, "offset", (int64_t)attempt->log_offset[is_stderr]);
    buf_byte(body, ',');
    json_write_string(body, STR("text"));
    buf_byte(body, ':');
    json_write_string(body, text);
    buf_byte(body, '}');
}

static size_t logs_body(struct channel *channel, struct buf *body, struct piece *pieces)
{
    struct worker *worker = channel->worker;
    size_t count = 0;
    body_begin(worker, body);
    body_list(body, "chunks");
    pthread_mutex_lock(&worker->mutex);
    for (uint32_t i = 0; i < 2 * channel->slots && count < REMOTE_BATCH_MAX && body->len < LOG_BODY_MAX; i++) {
        struct attempt *attempt = &channel->attempts[i / 2];
        bool is_stderr = i % 2;
        if (attempt->state == ATTEMPT_NONE || attempt->dropped || attempt->log[is_stderr].len == 0) continue;
        struct str text = buf_str(&attempt->log[is_stderr]);
        if (text.len > LOG_PIECE_MAX) text.len = LOG_PIECE_MAX;
        while (text.len > 0 && !str_utf8(text)) text.len--; // never half a character
        if (text.len == 0) text.len = 1;                    // lines of tools are UTF-8
        if (count > 0) buf_byte(body, ',');
        piece_body(body, attempt, is_stderr, text);
        pieces[count++] = (struct piece){attempt, attempt_ticket(worker, attempt), is_stderr, text.len};
    }
    pthread_mutex_unlock(&worker->mutex);
    buf_text(body, "]}");
    return count;
}

static void logs_taken(struct worker *worker, const struct piece *pieces, size_t count)
{
    LOCKED(&worker->mutex);
    for (size_t i = 0; i < count; i++) {
        struct attempt *attempt = pieces[i].attempt;
        if (attempt->state == ATTEMPT_NONE || attempt_ticket(worker, attempt) != pieces[i].ticket) continue;
        struct buf *log = &attempt->log[pieces[i].is_stderr];
        memmove(log->ptr, log->ptr + pieces[i].len, log->len - pieces[i].len);
        log->len -= pieces[i].len;
        log->ptr[log->len] = '\0';
        attempt->log_offset[pieces[i].is_stderr] += pieces[i].len;
    }
}

// False: the server is away. Whatever it says about the pieces, they are done with: a log never holds up a result.
static bool send_logs(struct link_of *link, struct piece *pieces, struct buf *body)
{
    struct error err = {0};
    struct fetch_answer answer;
    for (;;) {
        buf_clear(body);
        size_t count = logs_body(link->channel, body, pieces);
        if (count == 0) return true;
        if (link_post(link, "/v1/worker/logs", buf_str(body), CALL_MS, &answer, &err)) return false;
        logs_taken(link->worker, pieces, count);
    }
}

// ---- artifacts
static bool send_artifact(struct link_of *link, const struct attempt *attempt, struct str name)
{
    struct error err = {0};
    struct fetch_answer answer;
    struct str bytes;
    int root;
    arena_reset(&link->arena);
    // What a step has left may be anything. The server sees what is missing.
    if (reach_root(attempt->dir.ptr, &root, &err)) return true;
    enum code rc = reach_read(root, name, ARTIFACT_MAX, &link->arena, &bytes, &err);
    close(root);
    if (rc) return true;
    struct buf uri SCOPED(buf_release) = buf_of(16384);
    buf_printf(&uri, "/v1/worker/artifacts/%.*s/", STR_ARG(attempt->token));
    for (struct str rest = name; rest.len > 0;) {
        http_percent_encode(&uri, str_cut(rest, '/', &rest));
        if (rest.len > 0) buf_byte(&uri, '/');
    }
    struct fetch_call call = {.method = STR("PUT"), .uri = buf_str(&uri), .body = bytes, .timeout_ms = CALL_MS};
    return buf_ok(&uri) && link_call(link, &call, &answer, &err) == OK;
}

static bool send_artifacts(struct link_of *link, struct attempt **attempts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; attempts[i]->result.ok && k < attempts[i]->artifact_count; k++)
            if (!send_artifact(link, attempts[i], attempts[i]->artifacts[k].path)) return false;
        attempts[i]->artifact_count = 0;
    }
    return true;
}

// ---- what is stored at the server
enum code worker_read_result(void *context, const struct tool_request *request, struct str ref, struct arena *arena,
                           struct str *out, struct error *err)
{
    struct worker *worker = context;
    struct fetch_link *link = NULL;
    struct fetch_answer answer;
    uint32_t server = 0;
    struct str token = attempt_token(worker, request->ticket, arena, &server);
    if (!token.len) return error_set(err, E_CANCELLED, "the task is over");
    struct fetch_link_options options = server_link(worker, server);
    enum code rc = fetch_link_open(&options, &link, err);
    if (rc) return rc;
    struct buf uri SCOPED(buf_release) = buf_of(16384);
    buf_printf(&uri, "/v1/worker/results/%.*s?ref=", STR_ARG(token));
    http_percent_encode(&uri, ref);
    struct fetch_call call = {.method = STR("GET"), .uri = buf_str(&uri), .timeout_ms = CALL_MS, .repeatable = true};
    rc = buf_ok(&uri) ? fetch_link_call(link, &call, arena, &answer, err)
                      : error_set(err, E_INVALID, "it is no reference of a result");
    if (!rc && answer.status == 404)
        rc = error_set(err, E_NOT_FOUND, "no stored result has it");
    else if (!rc && answer.status != 200)
        rc = error_set(err, E_IO, "the server answered %d", answer.status);
    if (!rc) *out = answer.body;
    fetch_link_close(link);
    return rc;
}

// ---- results
// Jobs that are done belong to this thread. Those that the server does not want are freed.
static size_t done_attempts(struct channel *channel, struct attempt **attempts)
{
    size_t count = 0, dropped = 0;
    struct attempt *gone[REMOTE_BATCH_MAX];
    pthread_mutex_lock(&channel->worker->mutex);
    for (uint32_t i = 0; channel->done > 0 && i < channel->slots; i++) {
        struct attempt *attempt = &channel->attempts[i];
        if (attempt->state != ATTEMPT_DONE) continue;
        if (attempt->dropped)
            gone[dropped++] = attempt;
        else
            attempts[count++] = attempt;
    }
    pthread_mutex_unlock(&channel->worker->mutex);
    for (size_t i = 0; i < dropped; i++) attempt_over(channel->worker, gone[i], REMOTE_STALE);
    attempts_free(channel, gone, dropped);
    return count;
}

static size_t results_body(struct worker *worker, struct buf *body, struct attempt **attempts, size_t count)
{
    size_t used = 0;
    body_begin(worker, body);
    body_list(body, "results");
    for (; used < count && (used == 0 || body->len < RESULT_BODY_MAX); used++) {
        if (used > 0) buf_byte(body, ',');
        remote_result_write(body, attempts[used]->token, attempts[used]->epoch, &attempts[used]->result);
    }
    buf_text(body, "]}");
    return used;
}

// Whether all of them are done with; those that are become free slots.
static bool settle(struct channel *channel, struct attempt **attempts, const struct remote_answer *answers, size_t count)
{
    struct worker *worker = channel->worker;
    struct attempt *over[REMOTE_BATCH_MAX];
    size_t settled = 0, taken = 0;
    for (size_t i = 0; i < count; i++) {
        if (answers[i].state == REMOTE_AGAIN) continue;
        if (answers[i].state != REMOTE_OK)
            worker_say(worker, true, "the server did not take a result: the attempt is over");
        taken += answers[i].state == REMOTE_OK;
        attempt_over(worker, attempts[i], answers[i].state);
        over[settled++] = attempts[i];
    }
    pthread_mutex_lock(&worker->mutex);
    worker->count += taken;
    pthread_mutex_unlock(&worker->mutex);
    attempts_free(channel, over, settled);
    return settled == count;
}

static void too_large(struct attempt *attempt)
{
    tool_result_free(&attempt->result);
    attempt->result = (struct tool_result){.ticket = attempt->result.ticket, .duration_ms = attempt->result.duration_ms};
    attempt->result.fault = (struct fault){.code = STR("PAYLOAD_TOO_LARGE"),
                                       .message = STR("the server does not take a result of that size"),
                                       .category = STR("validation")};
}

// False: nobody answers, or not yet; the same again after a pause.
static bool send_results(struct link_of *link, struct attempt **attempts, size_t count, struct buf *body)
{
    struct error err = {0};
    struct fetch_answer answer;
    struct remote_answer *answers;
    size_t got = 0;
    buf_clear(body);
    size_t used = results_body(link->worker, body, attempts, count);
    if (link_post(link, "/v1/worker/complete", buf_str(body), CALL_MS, &answer, &err)) return false;
    if (answer.status == 413 && used > 1) return send_results(link, attempts, 1, body);
    if (answer.status == 413) {
        too_large(attempts[0]);
        return true;
    }
    if (remote_answers_read(answer.body, &link->arena, &answers, &got, &err) || got != used) {
        worker_refused(link->worker, "results", &answer, &link->arena);
        return false;
    }
    return settle(link->channel, attempts, answers, used);
}

static bool wait_for_news(struct channel *channel) // false: the worker stops
{
    struct worker *worker = channel->worker;
    LOCKED(&worker->mutex);
    if (channel->done == 0 && !worker->stopping) channel_wait(channel, &channel->results, os_now().mono_ms + LOG_EVERY_MS);
    return !worker->stopping;
}

void *worker_send(void *context)
{
    struct channel *channel = context;
    struct worker *worker = channel->worker;
    struct link_of link SCOPED(link_close) = {0};
    struct error err = {0};
    struct attempt *attempts[REMOTE_BATCH_MAX];
    struct piece *pieces = calloc(REMOTE_BATCH_MAX, sizeof(*pieces));
    struct buf body SCOPED(buf_release) = buf_of((size_t)128 << 20);
    if (link_open(channel, &link, &err))
        worker_give_up(worker, err.code, err.message);
    else if (!pieces)
        worker_give_up(worker, E_NOMEM, "out of memory");
    while (link.link && pieces && wait_for_news(channel)) {
        size_t count = done_attempts(channel, attempts);
        bool sent = send_logs(&link, pieces, &body) && send_artifacts(&link, attempts, count);
        if (sent && count > 0) sent = send_results(&link, attempts, count, &body);
        if (!sent) link_pause(&link);
    }
    free(pieces);
    return NULL;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

void worker_give_back(struct channel *channel)
{
    struct worker *worker = channel->worker;
    struct link_of link;
    struct error err = {0};
    struct fetch_answer answer;
    bool first = true;
    struct buf body SCOPED(buf_release) = buf_of(8 << 20);
    body_begin(worker, &body);
    body_list(&body, "results");
    for (uint32_t i = 0; i < channel->slots; i++) {
        const struct attempt *attempt = &channel->attempts[i];
        if (attempt->state == ATTEMPT_NONE || attempt->dropped) continue;
        struct tool_result lost = {.lost = true};
        if (!first) buf_byte(&body, ',');
        remote_result_write(&body, attempt->token, attempt->epoch, attempt->state == ATTEMPT_DONE ? &attempt->result : &lost);
        first = false;
    }
    buf_text(&body, "]}");
    worker->options.link.stopped = never;
    if (!first && link_open(channel, &link, &err) == OK) {
        if (link_post(&link, "/v1/worker/complete", buf_str(&body), LAST_CALL_MS, &answer, &err))
            worker_say(worker, true, "what was at hand could not be given back: %s", err.message);
        link_close(&link);
    }
}
