// What came out of the tasks goes to the server: logs, then artifacts, then results in batches. Nothing is dropped because
// the server is away: it is said again until somebody answers.
#include "cli/crew_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct job *job;
    uint64_t ticket;
    bool is_stderr;
    size_t len;
};

static void piece_body(struct buf *body, const struct job *job, bool is_stderr, struct str text)
{
    body_task(body, job);
    buf_byte(body, ',');
    json_write_string(body, STR("stream"));
    buf_byte(body, ':');
    json_write_string(body, is_stderr ? STR("stderr") : STR("stdout"));
    body_number(body, "offset", (int64_t)job->log_offset[is_stderr]);
    buf_byte(body, ',');
    json_write_string(body, STR("text"));
    buf_byte(body, ':');
    json_write_string(body, text);
    buf_byte(body, '}');
}

static size_t logs_body(struct lane *lane, struct buf *body, struct piece *pieces)
{
    struct crew *crew = lane->crew;
    size_t count = 0;
    body_begin(crew, body);
    body_list(body, "chunks");
    pthread_mutex_lock(&crew->mutex);
    for (uint32_t i = 0; i < 2 * lane->slots && count < REMOTE_BATCH_MAX && body->len < LOG_BODY_MAX; i++) {
        struct job *job = &lane->jobs[i / 2];
        bool is_stderr = i % 2;
        if (job->state == JOB_FREE || job->dropped || job->log[is_stderr].len == 0) continue;
        struct str text = buf_str(&job->log[is_stderr]);
        if (text.len > LOG_PIECE_MAX) text.len = LOG_PIECE_MAX;
        while (text.len > 0 && !str_utf8(text)) text.len--; // never half a character
        if (text.len == 0) text.len = 1;                    // lines of tools are UTF-8
        if (count > 0) buf_byte(body, ',');
        piece_body(body, job, is_stderr, text);
        pieces[count++] = (struct piece){job, crew_job_ticket(crew, job), is_stderr, text.len};
    }
    pthread_mutex_unlock(&crew->mutex);
    buf_text(body, "]}");
    return count;
}

static void logs_taken(struct crew *crew, const struct piece *pieces, size_t count)
{
    pthread_mutex_lock(&crew->mutex);
    for (size_t i = 0; i < count; i++) {
        struct job *job = pieces[i].job;
        if (job->state == JOB_FREE || crew_job_ticket(crew, job) != pieces[i].ticket) continue;
        struct buf *log = &job->log[pieces[i].is_stderr];
        memmove(log->ptr, log->ptr + pieces[i].len, log->len - pieces[i].len);
        log->len -= pieces[i].len;
        log->ptr[log->len] = '\0';
        job->log_offset[pieces[i].is_stderr] += pieces[i].len;
    }
    pthread_mutex_unlock(&crew->mutex);
}

// False: the server is away. Whatever it says about the pieces, they are done with: a log never holds up a result.
static bool send_logs(struct link_of *link, struct piece *pieces, struct buf *body)
{
    struct error err = {0};
    struct fetch_answer answer;
    for (;;) {
        buf_clear(body);
        size_t count = logs_body(link->lane, body, pieces);
        if (count == 0) return true;
        if (link_post(link, "/v1/worker/logs", buf_str(body), CALL_MS, &answer, &err)) return false;
        logs_taken(link->crew, pieces, count);
    }
}

// ---- artifacts
static bool send_artifact(struct link_of *link, const struct job *job, struct str name)
{
    struct error err = {0};
    struct fetch_answer answer;
    struct str bytes;
    char path[4096];
    arena_reset(&link->arena);
    snprintf(path, sizeof(path), "%.*s/%.*s", STR_ARG(job->dir), STR_ARG(name));
    if (os_read_file(path, ARTIFACT_MAX, &link->arena, &bytes, &err)) return true; // the server sees that it is missing
    struct buf uri;
    buf_init(&uri, 16384);
    buf_printf(&uri, "/v1/worker/artifacts/%.*s/", STR_ARG(job->token));
    for (struct str rest = name; rest.len > 0;) {
        http_percent_encode(&uri, str_cut(rest, '/', &rest));
        if (rest.len > 0) buf_byte(&uri, '/');
    }
    struct fetch_call call = {.method = STR("PUT"), .uri = buf_str(&uri), .body = bytes, .timeout_ms = CALL_MS};
    bool sent = buf_ok(&uri) && link_call(link, &call, &answer, &err) == OK;
    buf_release(&uri);
    return sent;
}

static bool send_artifacts(struct link_of *link, struct job **jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; jobs[i]->result.ok && k < jobs[i]->artifact_count; k++)
            if (!send_artifact(link, jobs[i], jobs[i]->artifacts[k].path)) return false;
        jobs[i]->artifact_count = 0;
    }
    return true;
}

// ---- what is stored at the server
enum code crew_read_result(void *context, const struct tool_request *request, struct str ref, struct arena *arena,
                           struct str *out, struct error *err)
{
    struct crew *crew = context;
    struct fetch_link *link = NULL;
    struct fetch_answer answer;
    uint32_t server = 0;
    struct str token = crew_token(crew, request->ticket, arena, &server);
    if (!token.len) return error_set(err, E_CANCELLED, "the task is over");
    struct fetch_link_options options = crew_link(crew, server);
    enum code rc = fetch_link_open(&options, &link, err);
    if (rc) return rc;
    struct buf uri;
    buf_init(&uri, 16384);
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
    buf_release(&uri);
    fetch_link_close(link);
    return rc;
}

// ---- results
// Jobs that are done belong to this thread. Those that the server does not want are freed.
static size_t done_jobs(struct lane *lane, struct job **jobs)
{
    size_t count = 0, dropped = 0;
    struct job *gone[REMOTE_BATCH_MAX];
    pthread_mutex_lock(&lane->crew->mutex);
    for (uint32_t i = 0; lane->done > 0 && i < lane->slots; i++) {
        struct job *job = &lane->jobs[i];
        if (job->state != JOB_DONE) continue;
        if (job->dropped)
            gone[dropped++] = job;
        else
            jobs[count++] = job;
    }
    pthread_mutex_unlock(&lane->crew->mutex);
    crew_jobs_free(lane, gone, dropped);
    return count;
}

static size_t results_body(struct crew *crew, struct buf *body, struct job **jobs, size_t count)
{
    size_t used = 0;
    body_begin(crew, body);
    body_list(body, "results");
    for (; used < count && (used == 0 || body->len < RESULT_BODY_MAX); used++) {
        if (used > 0) buf_byte(body, ',');
        remote_result_write(body, jobs[used]->token, jobs[used]->epoch, &jobs[used]->result);
    }
    buf_text(body, "]}");
    return used;
}

// Whether all of them are done with; those that are become free slots.
static bool settle(struct lane *lane, struct job **jobs, const struct remote_answer *answers, size_t count)
{
    struct crew *crew = lane->crew;
    struct job *over[REMOTE_BATCH_MAX];
    size_t settled = 0, taken = 0;
    for (size_t i = 0; i < count; i++) {
        if (answers[i].state == REMOTE_AGAIN) continue;
        if (answers[i].state != REMOTE_OK)
            crew_say(crew, true, "the server did not take a result: the attempt is over");
        taken += answers[i].state == REMOTE_OK;
        over[settled++] = jobs[i];
    }
    pthread_mutex_lock(&crew->mutex);
    crew->count += taken;
    pthread_mutex_unlock(&crew->mutex);
    crew_jobs_free(lane, over, settled);
    return settled == count;
}

static void too_large(struct job *job)
{
    tool_result_free(&job->result);
    job->result = (struct tool_result){.ticket = job->result.ticket, .duration_ms = job->result.duration_ms};
    job->result.fault = (struct fault){.code = STR("PAYLOAD_TOO_LARGE"),
                                       .message = STR("the server does not take a result of that size"),
                                       .category = STR("validation")};
}

// False: nobody answers, or not yet; the same again after a pause.
static bool send_results(struct link_of *link, struct job **jobs, size_t count, struct buf *body)
{
    struct error err = {0};
    struct fetch_answer answer;
    struct remote_answer *answers;
    size_t got = 0;
    buf_clear(body);
    size_t used = results_body(link->crew, body, jobs, count);
    if (link_post(link, "/v1/worker/complete", buf_str(body), CALL_MS, &answer, &err)) return false;
    if (answer.status == 413 && used > 1) return send_results(link, jobs, 1, body);
    if (answer.status == 413) {
        too_large(jobs[0]);
        return true;
    }
    if (remote_answers_read(answer.body, &link->arena, &answers, &got, &err) || got != used) {
        crew_refused(link->crew, "results", &answer, &link->arena);
        return false;
    }
    return settle(link->lane, jobs, answers, used);
}

static bool wait_for_news(struct lane *lane) // false: the crew stops
{
    struct crew *crew = lane->crew;
    pthread_mutex_lock(&crew->mutex);
    if (lane->done == 0 && !crew->stopping) lane_wait(lane, &lane->results, os_now().mono_ms + LOG_EVERY_MS);
    bool go = !crew->stopping;
    pthread_mutex_unlock(&crew->mutex);
    return go;
}

void *crew_send(void *context)
{
    struct lane *lane = context;
    struct crew *crew = lane->crew;
    struct link_of link;
    struct error err = {0};
    struct job *jobs[REMOTE_BATCH_MAX];
    struct piece *pieces = calloc(REMOTE_BATCH_MAX, sizeof(*pieces));
    struct buf body;
    buf_init(&body, (size_t)128 << 20);
    if (link_open(lane, &link, &err))
        crew_give_up(crew, err.code, err.message);
    else if (!pieces)
        crew_give_up(crew, E_NOMEM, "out of memory");
    while (link.link && pieces && wait_for_news(lane)) {
        size_t count = done_jobs(lane, jobs);
        bool sent = send_logs(&link, pieces, &body) && send_artifacts(&link, jobs, count);
        if (sent && count > 0) sent = send_results(&link, jobs, count, &body);
        if (!sent) link_pause(&link);
    }
    free(pieces);
    buf_release(&body);
    link_close(&link);
    return NULL;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

void crew_give_back(struct lane *lane)
{
    struct crew *crew = lane->crew;
    struct link_of link;
    struct error err = {0};
    struct fetch_answer answer;
    struct buf body;
    bool first = true;
    buf_init(&body, 8 << 20);
    body_begin(crew, &body);
    body_list(&body, "results");
    for (uint32_t i = 0; i < lane->slots; i++) {
        const struct job *job = &lane->jobs[i];
        if (job->state == JOB_FREE || job->dropped) continue;
        struct tool_result lost = {.lost = true};
        if (!first) buf_byte(&body, ',');
        remote_result_write(&body, job->token, job->epoch, job->state == JOB_DONE ? &job->result : &lost);
        first = false;
    }
    buf_text(&body, "]}");
    crew->options.link.stopped = never;
    if (!first && link_open(lane, &link, &err) == OK) {
        if (link_post(&link, "/v1/worker/complete", buf_str(&body), LAST_CALL_MS, &answer, &err))
            crew_say(crew, true, "what was at hand could not be given back: %s", err.message);
        link_close(&link);
    }
    buf_release(&body);
}
