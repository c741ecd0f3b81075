// The threads of a lane and what they say to the server.
#include "cli/crew_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALL_MS = 30000, POLL_WAIT_MS = 20000, PAUSE_MS = 100, PAUSE_MAX_MS = 5000, BEAT_AFTER_MS = 250 };

void lane_wait(struct lane *lane, pthread_cond_t *condition, int64_t until)
{
    struct timespec time = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
    pthread_cond_timedwait(condition, &lane->crew->mutex, &time);
}

// ---- calls
struct fetch_link_options crew_link(const struct crew *crew, uint32_t server)
{
    struct fetch_link_options options = crew->options.link;
    if (server > 0) options.url = crew->options.more_servers[server - 1];
    return options;
}

enum code link_open(struct lane *lane, struct link_of *out, struct error *err)
{
    *out = (struct link_of){.crew = lane->crew, .lane = lane};
    arena_init(&out->arena, 65536, (size_t)512 << 20);
    struct fetch_link_options options = crew_link(lane->crew, lane->server);
    return fetch_link_open(&options, &out->link, err);
}

void link_close(struct link_of *link)
{
    fetch_link_close(link->link);
    arena_release(&link->arena);
}

void body_begin(const struct crew *crew, struct buf *body)
{
    buf_byte(body, '{');
    json_write_string(body, STR("worker"));
    buf_byte(body, ':');
    json_write_string(body, crew->options.name);
    buf_byte(body, ',');
    json_write_string(body, STR("pool"));
    buf_byte(body, ':');
    json_write_string(body, crew->options.pool);
}

void body_list(struct buf *body, const char *name)
{
    buf_byte(body, ',');
    json_write_string(body, str_from(name));
    buf_text(body, ":[");
}

void body_number(struct buf *body, const char *name, int64_t value)
{
    buf_byte(body, ',');
    json_write_string(body, str_from(name));
    buf_byte(body, ':');
    buf_int(body, value);
}

void body_task(struct buf *body, const struct job *job) // open: a member may follow
{
    buf_byte(body, '{');
    json_write_string(body, STR("token"));
    buf_byte(body, ':');
    json_write_string(body, job->token);
    body_number(body, "epoch", (int64_t)job->epoch);
}

// People hear of a server that is away once, and once when it is back.
static void note_away(const struct lane *lane, bool away, const char *why)
{
    struct crew *crew = lane->crew;
    pthread_mutex_lock(&crew->mutex);
    bool changed = crew->away[lane->server] != away && !crew->stopping;
    crew->away[lane->server] = away;
    pthread_mutex_unlock(&crew->mutex);
    struct str name = crew->options.more_count ? crew_link(crew, lane->server).url : STR("the server");
    if (changed && away) crew_say(crew, true, "%.*s does not answer: %s; trying again", STR_ARG(name), why);
    if (changed && !away) crew_say(crew, false, "%.*s answers again", STR_ARG(name));
}

enum code link_call(struct link_of *link, const struct fetch_call *call, struct fetch_answer *answer, struct error *err)
{
    static const struct http_header type = {{"Content-Type", 12}, {"application/json", 16}};
    struct fetch_call with = *call;
    with.headers = &type;
    with.header_count = 1;
    enum code rc = fetch_link_call(link->link, &with, &link->arena, answer, err);
    if (!rc && (answer->status >= 500 || answer->status == 429)) rc = error_set(err, E_IO, "status %d", answer->status);
    if (rc == E_CANCELLED) return rc;
    if (rc == E_TIMEOUT) rc = E_IO;
    if (rc != E_NOMEM) note_away(link->lane, rc != OK, err->message);
    if (!rc) link->tries = 0;
    return rc;
}

enum code link_post(struct link_of *link, const char *path, struct str body, int64_t timeout_ms,
                    struct fetch_answer *answer, struct error *err)
{
    arena_reset(&link->arena);
    *err = (struct error){0};
    struct fetch_call call = {.method = STR("POST"), .uri = str_from(path), .body = body, .timeout_ms = timeout_ms};
    call.repeatable = true; // a poll that is sent twice leases twice, at worst for one lease
    return link_call(link, &call, answer, err);
}

void link_pause(struct link_of *link)
{
    struct crew *crew = link->crew;
    int64_t pause = (int64_t)PAUSE_MS << (link->tries < 6 ? link->tries : 6);
    if (pause > PAUSE_MAX_MS) pause = PAUSE_MAX_MS;
    link->tries++;
    int64_t until = os_now().mono_ms + pause;
    pthread_mutex_lock(&crew->mutex);
    while (!crew->stopping && os_now().mono_ms < until) lane_wait(link->lane, &link->lane->changed, until);
    pthread_mutex_unlock(&crew->mutex);
}

void crew_give_up(struct crew *crew, enum code code, const char *why)
{
    pthread_mutex_lock(&crew->mutex);
    if (!crew->fatal.code) error_set(&crew->fatal, code, "%s", why);
    pthread_mutex_unlock(&crew->mutex);
}

// What the server says when it refuses a whole call.
void crew_refused(struct crew *crew, const char *call, const struct fetch_answer *answer, struct arena *arena)
{
    struct json problem;
    struct str why = {0};
    if (json_parse(answer->body, NULL, arena, &problem, NULL) == OK) why = json_text(json_key(&problem, "detail"));
    char text[300];
    snprintf(text, sizeof(text), "the server refuses %s: status %d %.*s", call, answer->status,
             (int)(why.len > 200 ? 200 : why.len), why.ptr ? why.ptr : "");
    if (answer->status == 401 || answer->status == 403)
        crew_give_up(crew, E_DENIED, text);
    else
        crew_say(crew, true, "%s", text);
}

// ---- asking for tasks
static size_t free_slots(struct lane *lane) // waits for one; 0: no more tasks are wanted
{
    struct crew *crew = lane->crew;
    pthread_mutex_lock(&crew->mutex);
    while (!lane->free && !crew->stopping && !crew->draining) lane_wait(lane, &lane->room, os_now().mono_ms + 1000);
    size_t count = crew->stopping || crew->draining ? 0 : lane->slots - lane->busy;
    pthread_mutex_unlock(&crew->mutex);
    return count;
}

static struct job *take_slot(struct lane *lane)
{
    pthread_mutex_lock(&lane->crew->mutex);
    struct job *job = lane->free;
    if (job) lane->free = job->next;
    lane->busy += job != NULL;
    pthread_mutex_unlock(&lane->crew->mutex);
    return job;
}

static void start_tasks(struct lane *lane, const struct fetch_answer *answer, struct arena *arena)
{
    struct crew *crew = lane->crew;
    struct remote_task *tasks;
    size_t count;
    struct error err = {0};
    if (remote_tasks_read(answer->body, arena, &tasks, &count, &err)) {
        crew_say(crew, true, "%s", err.message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct job *job = take_slot(lane);
        if (!job) break; // more than were asked for: they go back when their lease ends
        const struct tool_request *request = &tasks[i].request;
        if (!crew->options.quiet)
            crew_say(crew, false, "%.*s/%.*s attempt %u.%u", STR_ARG(request->run), STR_ARG(request->step),
                     request->logical, request->engine);
        crew_job_start(crew, job, &tasks[i]);
    }
}

// What this worker has for the server of this lane.
static int64_t server_slots(const struct lane *lane)
{
    int64_t slots = 0;
    for (size_t i = 0; i < lane->crew->lane_count; i++)
        if (lane->crew->lanes[i].server == lane->server) slots += lane->crew->lanes[i].slots;
    return slots;
}

static void poll_body(const struct lane *lane, struct buf *body, size_t max)
{
    const struct crew *crew = lane->crew;
    body_begin(crew, body);
    body_list(body, "kinds");
    for (size_t i = 0; i < crew->options.kind_count; i++) {
        if (i > 0) buf_byte(body, ',');
        json_write_string(body, crew->options.kinds[i]);
    }
    buf_byte(body, ']');
    body_number(body, "max", (int64_t)(max < REMOTE_BATCH_MAX ? max : REMOTE_BATCH_MAX));
    body_number(body, "waitMs", POLL_WAIT_MS);
    body_number(body, "slots", server_slots(lane));
    buf_byte(body, '}');
}

void *crew_poll(void *context)
{
    struct lane *lane = context;
    struct crew *crew = lane->crew;
    struct link_of link;
    struct error err = {0};
    struct buf body;
    buf_init(&body, 1 << 16);
    if (link_open(lane, &link, &err)) crew_give_up(crew, err.code, err.message);
    for (size_t max; link.link && (max = free_slots(lane)) > 0;) {
        struct fetch_answer answer;
        buf_clear(&body);
        poll_body(lane, &body, max);
        enum code rc = link_post(&link, "/v1/worker/poll", buf_str(&body), POLL_WAIT_MS + CALL_MS, &answer, &err);
        if (rc == E_CANCELLED) break;
        if (!rc && answer.status == 200)
            start_tasks(lane, &answer, &link.arena);
        else if (!rc)
            crew_refused(crew, "a poll", &answer, &link.arena);
        if (rc || answer.status != 200) link_pause(&link);
    }
    buf_release(&body);
    link_close(&link);
    return NULL;
}

// ---- keeping leases
struct kept {
    uint64_t ticket;
    size_t index;
};

static int64_t beat_from(const struct job *job)
{
    return job->since_ms + (job->lease_ms / 4 < BEAT_AFTER_MS ? job->lease_ms / 4 : BEAT_AFTER_MS);
}

// Those that have been here for a moment: most are done by then, and need no call of their own.
static size_t beat_body(struct lane *lane, struct buf *body, struct kept *kept)
{
    struct crew *crew = lane->crew;
    size_t count = 0;
    int64_t now = os_now().mono_ms;
    body_begin(crew, body);
    body_list(body, "tasks");
    pthread_mutex_lock(&crew->mutex);
    int64_t wait = REMOTE_LEASE_MS / 3;
    for (uint32_t i = 0; i < lane->slots; i++) {
        const struct job *job = &lane->jobs[i];
        if (job->state == JOB_FREE || job->dropped || (!lane->hurry && now < beat_from(job))) continue;
        if (count > 0) buf_byte(body, ',');
        body_task(body, job);
        buf_byte(body, '}');
        if (job->lease_ms / 3 < wait) wait = job->lease_ms / 3;
        kept[count++] = (struct kept){.ticket = crew_job_ticket(crew, job), .index = i};
    }
    pthread_mutex_unlock(&crew->mutex);
    lane->wait_ms = wait;
    buf_byte(body, ']');
    body_number(body, "waitMs", wait);
    buf_byte(body, '}');
    return count;
}

static void take_beat(struct lane *lane, const struct kept *kept, const struct remote_answer *answers, size_t count,
                      int64_t asked_ms)
{
    struct crew *crew = lane->crew;
    for (size_t i = 0; i < count; i++) {
        struct job *job = &lane->jobs[kept[i].index];
        int64_t grace = -1;
        pthread_mutex_lock(&crew->mutex);
        struct tools *tools = job->tools;
        if (job->state != JOB_FREE && crew_job_ticket(crew, job) == kept[i].ticket) {
            bool gone = answers[i].state == REMOTE_STALE || answers[i].state == REMOTE_DENIED;
            if (gone || (answers[i].state == REMOTE_CANCEL && !job->stopping)) {
                grace = gone ? 0 : answers[i].grace_ms;
                job->stopping = true;
                job->dropped = job->dropped || (gone && job->state == JOB_RUNNING); // a result is told so itself
            }
            if (!gone) job->lease_until = asked_ms + job->lease_ms;
        }
        pthread_mutex_unlock(&crew->mutex);
        if (grace >= 0) tools->ops->cancel(tools, kept[i].ticket, grace);
    }
}

// An attempt whose lease this worker could not renew is somebody else's by now.
static void drop_overdue(struct lane *lane)
{
    struct crew *crew = lane->crew;
    int64_t now = os_now().mono_ms;
    for (uint32_t i = 0; i < lane->slots; i++) {
        struct job *job = &lane->jobs[i];
        pthread_mutex_lock(&crew->mutex);
        struct tools *tools = job->tools;
        bool overdue = job->state == JOB_RUNNING && !job->dropped && now > job->lease_until;
        uint64_t ticket = crew_job_ticket(crew, job);
        if (overdue) job->dropped = job->stopping = true;
        pthread_mutex_unlock(&crew->mutex);
        if (!overdue) continue;
        crew_say(crew, true, "a lease could not be renewed in time: its step is stopped");
        tools->ops->cancel(tools, ticket, 0);
    }
}

static void wait_for_old(struct lane *lane) // until a job has been here long enough
{
    pthread_mutex_lock(&lane->crew->mutex);
    int64_t until = os_now().mono_ms + 1000;
    for (uint32_t i = 0; lane->busy > 0 && i < lane->slots; i++) {
        const struct job *job = &lane->jobs[i];
        if (job->state != JOB_FREE && !job->dropped && beat_from(job) < until) until = beat_from(job);
    }
    if (!lane->crew->stopping) lane_wait(lane, &lane->changed, until);
    pthread_mutex_unlock(&lane->crew->mutex);
}

// An early answer that says nothing about the tasks in the call is about one that was not in it: the next call has all. When
// that was so already, somebody else's will have it, and there is no hurry.
static void note_early(struct lane *lane, const struct remote_answer *answers, size_t count, int64_t asked)
{
    int64_t now = os_now().mono_ms;
    bool early = now - asked < lane->wait_ms / 2;
    for (size_t i = 0; early && i < count; i++) early = answers[i].state == REMOTE_OK;
    if (early && lane->hurry) {
        pthread_mutex_lock(&lane->crew->mutex);
        if (!lane->crew->stopping) lane_wait(lane, &lane->changed, now + BEAT_AFTER_MS);
        pthread_mutex_unlock(&lane->crew->mutex);
    }
    lane->hurry = early && !lane->hurry;
}

static bool beat_once(struct link_of *link, struct kept *kept, struct buf *body)
{
    struct lane *lane = link->lane;
    struct error err = {0};
    struct fetch_answer answer;
    struct remote_answer *answers;
    buf_clear(body);
    size_t count = beat_body(lane, body, kept), got = 0;
    if (count == 0) {
        wait_for_old(lane);
        return true;
    }
    int64_t asked = os_now().mono_ms;
    enum code rc = link_post(link, "/v1/worker/heartbeat", buf_str(body), CALL_MS, &answer, &err);
    if (rc == E_CANCELLED) return false;
    if (!rc) rc = remote_answers_read(answer.body, &link->arena, &answers, &got, &err);
    if (!rc && got == count) take_beat(lane, kept, answers, count, asked);
    drop_overdue(lane);
    if (rc || got != count)
        link_pause(link);
    else
        note_early(lane, answers, count, asked);
    return true;
}

void *crew_beat(void *context)
{
    struct lane *lane = context;
    struct crew *crew = lane->crew;
    struct link_of link;
    struct error err = {0};
    struct kept *kept = calloc(REMOTE_BATCH_MAX, sizeof(*kept));
    struct buf body;
    buf_init(&body, 4 << 20);
    if (link_open(lane, &link, &err))
        crew_give_up(crew, err.code, err.message);
    else if (!kept)
        crew_give_up(crew, E_NOMEM, "out of memory");
    for (bool go = link.link && kept; go;) {
        pthread_mutex_lock(&crew->mutex);
        go = !crew->stopping;
        pthread_mutex_unlock(&crew->mutex);
        go = go && beat_once(&link, kept, &body);
    }
    free(kept);
    buf_release(&body);
    link_close(&link);
    return NULL;
}
