// Calls of Conductor's REST interface, and of the server of Cairn.
#include "conductor/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    PAUSE_MS = 100,
    PAUSE_MAX_MS = 2000,
    ANSWER_MAX = 64 << 20,
    ARENA_MAX = 512 << 20,
    PATH_MAX_ = 8192,
    BODY_MAX = 1 << 20
};

void host_say(const struct conductor *host, bool warning, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    host->options.worker.say(host->options.worker.context, warning, text);
}

bool host_stops(struct conductor *host)
{
    LOCKED(&host->mutex);
    return host->stopping;
}

bool host_rests(struct conductor *host, int64_t ms)
{
    int64_t until = os_now().mono_ms + ms;
    LOCKED(&host->mutex);
    while (!host->stopping && os_now().mono_ms < until) os_wait_until(&host->expects, &host->mutex, until);
    return !host->stopping;
}

static bool stopped(void *context)
{
    return host_stops(context);
}

enum code line_open(struct conductor *host, struct line *out, struct error *err)
{
    *out = (struct line){.host = host};
    arena_init(&out->arena, 65536, ARENA_MAX);
    struct fetch_link_options there = host->options.link, here = host->options.worker.link;
    there.stopped = here.stopped = stopped;
    there.stop_context = here.stop_context = host;
    there.body_max = here.body_max = ANSWER_MAX;
    enum code rc = fetch_link_open(&there, &out->link, err);
    return rc ? rc : fetch_link_open(&here, &out->cairn, err);
}

void line_close(struct line *line)
{
    fetch_link_close(line->link);
    fetch_link_close(line->cairn);
    arena_release(&line->arena);
}

void line_pause(struct line *line)
{
    int64_t pause = (int64_t)PAUSE_MS << (line->tries < 5 ? line->tries : 5);
    line->tries++;
    host_rests(line->host, pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
}

void host_away(struct conductor *host, const char *why)
{
    pthread_mutex_lock(&host->mutex);
    bool news = !host->away, tell = !host->away_told && !host->stopping;
    if (news) host->away_ms = os_now().mono_ms;
    host->away = true;
    host->away_told = host->away_told || tell;
    host->defined = false; // it may come back with another database
    pthread_mutex_unlock(&host->mutex);
    if (news) worker_hold(host->worker, true);
    if (tell) host_say(host, true, "Conductor is away: %s; trying again", why);
}

void host_back(struct conductor *host)
{
    pthread_mutex_lock(&host->mutex);
    bool news = host->away, tell = host->away_told;
    host->away = host->away_told = false;
    pthread_mutex_unlock(&host->mutex);
    if (news) worker_hold(host->worker, false);
    if (tell) host_say(host, false, "Conductor is back");
}

static enum code call(struct line *line, struct fetch_link *link, const char *method, struct str path, struct str body,
                      struct reply *out, struct error *err)
{
    static const struct http_header headers[] = {{{"Content-Type", 12}, {"application/json", 16}},
                                                 {{"Accept", 6}, {"*/*", 3}}};
    struct fetch_answer answer;
    *err = (struct error){0};
    *out = (struct reply){0};
    struct fetch_call call = {.method = str_from(method),
                              .uri = path,
                              .headers = headers,
                              .header_count = ARRAY_COUNT(headers),
                              .body = body,
                              .timeout_ms = CALL_MS};
    enum code rc = fetch_link_call(link, &call, &line->arena, &answer, err);
    if (rc && rc != E_CANCELLED && rc != E_NOMEM) rc = E_IO;
    if (rc) return rc;
    out->status = answer.status;
    out->text = answer.body;
    struct error ignored = {0};
    if (answer.body.len == 0 || json_parse(answer.body, &json_limits_result, &line->arena, &out->body, &ignored))
        out->body = (struct json){0};
    return OK;
}

// 500 is what every unforeseen exception becomes; only when it says so is it worth the same call again. Who is somewhere else, or wants
// to know who we are, has not looked at the call.
static bool says_again(const struct reply *reply)
{
    int status = reply->status;
    return status == 408 || status == 429 || (status >= 502 && status <= 504) ||
           (status == 500 && json_true(json_key(&reply->body, "retryable"))) || (status >= 300 && status < 400) ||
           status == 401 || status == 403 || status == 407;
}

enum code line_call(struct line *line, const char *method, struct str path, struct str body, struct reply *out,
                    struct error *err)
{
    arena_reset(&line->arena);
    enum code rc = call(line, line->link, method, path, body, out, err);
    if (!rc && says_again(out)) rc = error_set(err, E_IO, "it answers %d", out->status);
    if (!rc) line->tries = 0;
    return rc;
}

enum code line_cairn(struct line *line, const char *method, struct str path, struct str body, struct reply *out,
                     struct error *err)
{
    enum code rc = call(line, line->cairn, method, path, body, out, err);
    if (!rc && (out->status >= 500 || out->status == 429)) rc = error_set(err, E_IO, "status %d", out->status);
    return rc;
}

enum code line_ask(struct line *line, struct reply *out, struct error *err, const char *method, struct str body,
                   const char *path, ...)
{
    char text[PATH_MAX_];
    va_list args;
    va_start(args, path);
    int size = vsnprintf(text, sizeof(text), path, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof(text)) return error_set(err, E_LIMIT, "a path is too long");
    return line_call(line, method, (struct str){text, (size_t)size}, body, out, err);
}

void id_copy(char out[ID_SIZE], struct str id)
{
    size_t size = id.len < ID_SIZE ? id.len : 0; // a longer one is none of Conductor's
    for (size_t i = 0; i < size; i++) // what is written into paths of requests is a word
        if (!char_is_word(id.ptr[i]) && id.ptr[i] != '-') size = 0;
    if (size) memcpy(out, id.ptr, size);
    out[size] = '\0';
}

enum code workflow_get(struct line *line, const char *id, struct json *out, struct error *err)
{
    struct reply reply;
    enum code rc = line_ask(line, &reply, err, "GET", (struct str){0}, "/workflow/%s?includeTasks=true", id);
    if (rc) return rc;
    if (reply.status == 404) return error_set(err, E_NOT_FOUND, "there is no workflow %s", id);
    if (reply.status != 200 || !json_is(&reply.body, JSON_OBJECT))
        return error_set(err, E_INVALID, "status %d for workflow %s", reply.status, id);
    *out = reply.body;
    return OK;
}

const struct json *workflow_task(const struct json *workflow, const char *ref)
{
    const struct json *tasks = json_key(workflow, "tasks"), *found = NULL;
    for (uint32_t i = 0; json_is(tasks, JSON_ARRAY) && i < tasks->count; i++)
        if (str_is(json_text(json_key(&tasks->items[i], "referenceTaskName")), ref)) found = &tasks->items[i];
    return found;
}

enum code workflow_end(struct line *line, const char *id, const char *reason, struct error *err)
{
    struct reply reply;
    struct buf path SCOPED(buf_release) = buf_of(PATH_MAX_);
    buf_printf(&path, "/workflow/%s?reason=", id);
    http_percent_encode(&path, str_from(reason));
    if (!buf_ok(&path)) return error_nomem(err);
    return line_call(line, "DELETE", buf_str(&path), (struct str){0}, &reply, err); // 404 and 409: it has ended
}

enum code task_update(struct line *line, const struct update *update, struct error *err)
{
    struct reply reply;
    struct arena arena SCOPED(arena_release);
    arena_init(&arena, 4096, BODY_MAX * 2);
    struct buf body SCOPED(buf_release) = buf_of(BODY_MAX);
    struct json value =
        JSON_OF(&arena, {"workflowInstanceId", json_name(update->workflow)}, {"taskId", json_name(update->task)},
                {"status", json_name(update->status)}, {"outputData", update->output},
                {"reasonForIncompletion", json_some(update->reason)}, {"workerId", json_name(line->host->id)},
                {"callbackAfterSeconds", update->park_s ? json_int(update->park_s) : json_none()});
    json_write(&body, &value);
    if (!buf_ok(&body)) return error_nomem(err);
    enum code rc = line_call(line, "POST", STR("/tasks"), buf_str(&body), &reply, err);
    if (!rc && reply.status == 404) return error_set(err, E_NOT_FOUND, "there is no task %s", update->task);
    if (!rc && reply.status != 200)
        return error_set(err, E_INVALID, "status %d for task %s", reply.status, update->task);
    return rc;
}

void task_note(struct line *line, const char *task, const char *text)
{
    struct reply reply;
    struct error err = {0};
    if (task[0] && line_ask(line, &reply, &err, "POST", str_from(text), "/tasks/%s/log", task) == OK &&
        reply.status == 200)
        return;
    host_say(line->host, true, "%s", text);
}
