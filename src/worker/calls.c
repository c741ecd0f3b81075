// The threads of a channel and what they say to the server.
#include "worker/inside.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALL_MS = 30000, POLL_WAIT_MS = 20000, PAUSE_MS = 100, PAUSE_MAX_MS = 5000, BEAT_AFTER_MS = 250 };

void channel_wait(struct channel *channel, pthread_cond_t *condition, int64_t until)
{
    os_wait_until(condition, &channel->worker->mutex, until);
}

// ---- calls
struct fetch_link_options server_link(const struct worker *worker, uint32_t server)
{
    struct fetch_link_options options = worker->options.link;
    if (server > 0) options.url = worker->options.more_servers[server - 1];
    return options;
}

enum code link_open(struct channel *channel, struct link_of *out, struct error *err)
{
    *out = (struct link_of){.worker = channel->worker, .channel = channel};
    arena_init(&out->arena, 65536, (size_t)512 << 20);
    struct fetch_link_options options = server_link(channel->worker, channel->server);
    return fetch_link_open(&options, &out->link, err);
}

void link_close(struct link_of *link)
{
    fetch_link_close(link->link);
    arena_release(&link->arena);
}

void body_begin(const struct worker *worker, struct buf *body)
{
    buf_byte(body, '{');
    json_write_string(body, STR("worker"));
    buf_byte(body, ':');
    json_write_string(body, worker->options.name);
    buf_byte(body, ',');
    json_write_string(body, STR("pool"));
    buf_byte(body, ':');
    json_write_string(body, worker->options.pool);
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

void body_task(struct buf *body, const struct attempt *attempt) // open: a member may follow
{
    buf_byte(body, '{');
    json_write_string(body, STR("token"));
    buf_byte(body, ':');
    json_write_string(body, attempt->token);
    body_number(body, "epoch", (int64_t)attempt->epoch);
}

// People hear of a server that is away once, and once when it is back.
static void note_away(const struct channel *channel, bool away, const char *why)
{
    struct worker *worker = channel->worker;
    pthread_mutex_lock(&worker->mutex);
    bool changed = worker->away[channel->server] != away && !worker->stopping;
    worker->away[channel->server] = away;
    pthread_mutex_unlock(&worker->mutex);
    struct str name = worker->options.more_count ? server_link(worker, channel->server).url : STR("the server");
    if (changed && away) worker_say(worker, true, "%.*s does not answer: %s; trying again", STR_ARG(name), why);
    if (changed && !away) worker_say(worker, false, "%.*s answers again", STR_ARG(name));
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
    if (rc != E_NOMEM) note_away(link->channel, rc != OK, err->message);
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
    struct worker *worker = link->worker;
    int64_t pause = (int64_t)PAUSE_MS << (link->tries < 6 ? link->tries : 6);
    if (pause > PAUSE_MAX_MS) pause = PAUSE_MAX_MS;
    link->tries++;
    int64_t until = os_now().mono_ms + pause;
    LOCKED(&worker->mutex);
    while (!worker->stopping && os_now().mono_ms < until) channel_wait(link->channel, &link->channel->changed, until);
}

void worker_give_up(struct worker *worker, enum code code, const char *why)
{
    LOCKED(&worker->mutex);
    if (!worker->fatal.code) error_set(&worker->fatal, code, "%s", why);
}

// What the server says when it refuses a whole call.
void worker_refused(struct worker *worker, const char *call, const struct fetch_answer *answer, struct arena *arena)
{
    struct json problem;
    struct str why = {0};
    if (json_parse(answer->body, NULL, arena, &problem, NULL) == OK) why = json_text(json_key(&problem, "detail"));
    char text[300];
    snprintf(text, sizeof(text), "the server refuses %s: status %d %.*s", call, answer->status,
             (int)(why.len > 200 ? 200 : why.len), why.ptr ? why.ptr : "");
    if (answer->status == 401 || answer->status == 403)
        worker_give_up(worker, E_DENIED, text);
    else
        worker_say(worker, true, "%s", text);
}

// ---- asking for tasks
static size_t free_slots(struct channel *channel) // waits for one; 0: no more tasks are wanted
{
    struct worker *worker = channel->worker;
    LOCKED(&worker->mutex);
    while ((!channel->free || worker->holding) && !worker->stopping && !worker->draining)
        channel_wait(channel, &channel->room, os_now().mono_ms + 1000);
    return worker->stopping || worker->draining ? 0 : channel->slots - channel->busy;
}

static struct attempt *take_slot(struct channel *channel)
{
    LOCKED(&channel->worker->mutex);
    struct attempt *attempt = channel->free;
    if (attempt) channel->free = attempt->next;
    channel->busy += attempt != NULL;
    return attempt;
}

static void start_tasks(struct channel *channel, const struct fetch_answer *answer, int64_t asked_ms, struct arena *arena)
{
    struct worker *worker = channel->worker;
    struct remote_task *tasks;
    size_t count;
    struct error err = {0};
    if (remote_tasks_read(answer->body, arena, &tasks, &count, &err)) {
        worker_say(worker, true, "%s", err.message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct attempt *attempt = take_slot(channel);
        if (!attempt) break; // more than were asked for: they go back when their lease ends
        const struct tool_request *request = &tasks[i].request;
        if (!worker->options.quiet)
            worker_say(worker, false, "%.*s/%.*s attempt %u.%u", STR_ARG(request->run), STR_ARG(request->step),
                     request->logical, request->engine);
        attempt_start(worker, attempt, &tasks[i], asked_ms);
    }
}

// What this worker has for the server of this channel.
static int64_t server_slots(const struct channel *channel)
{
    int64_t slots = 0;
    for (size_t i = 0; i < channel->worker->channel_count; i++)
        if (channel->worker->channels[i].server == channel->server) slots += channel->worker->channels[i].slots;
    return slots;
}

static void poll_body(const struct channel *channel, struct buf *body, size_t max)
{
    const struct worker *worker = channel->worker;
    body_begin(worker, body);
    body_list(body, "kinds");
    for (size_t i = 0; i < worker->options.kind_count; i++) {
        if (i > 0) buf_byte(body, ',');
        json_write_string(body, worker->options.kinds[i]);
    }
    buf_byte(body, ']');
    body_number(body, "max", (int64_t)(max < REMOTE_BATCH_MAX ? max : REMOTE_BATCH_MAX));
    body_number(body, "waitMs", POLL_WAIT_MS);
    body_number(body, "slots", server_slots(channel));
    buf_byte(body, '}');
}

void *worker_poll(void *context)
{
    struct channel *channel = context;
    struct worker *worker = channel->worker;
    struct link_of link SCOPED(link_close) = {0};
    struct error err = {0};
    struct buf body SCOPED(buf_release) = buf_of(1 << 16);
    if (link_open(channel, &link, &err)) worker_give_up(worker, err.code, err.message);
    for (size_t max; link.link && (max = free_slots(channel)) > 0;) {
        struct fetch_answer answer;
        buf_clear(&body);
        poll_body(channel, &body, max);
        int64_t asked = os_boot_ms();
        enum code rc = link_post(&link, "/v1/worker/poll", buf_str(&body), POLL_WAIT_MS + CALL_MS, &answer, &err);
        if (rc == E_CANCELLED) break;
        if (!rc && answer.status == 200)
            start_tasks(channel, &answer, asked, &link.arena);
        else if (!rc)
            worker_refused(worker, "a poll", &answer, &link.arena);
        if (rc || answer.status != 200) link_pause(&link);
    }
    return NULL;
}

// ---- keeping leases
struct kept {
    uint64_t ticket;
    size_t index;
};

static int64_t beat_from(const struct attempt *attempt)
{
    return attempt->since_ms + (attempt->lease_ms / 4 < BEAT_AFTER_MS ? attempt->lease_ms / 4 : BEAT_AFTER_MS);
}

// Those that have been here for a moment: most are done by then, and need no call of their own.
static size_t beat_body(struct channel *channel, struct buf *body, struct kept *kept)
{
    struct worker *worker = channel->worker;
    size_t count = 0;
    int64_t now = os_now().mono_ms;
    body_begin(worker, body);
    body_list(body, "tasks");
    pthread_mutex_lock(&worker->mutex);
    int64_t wait = REMOTE_LEASE_MS / 3;
    for (uint32_t i = 0; i < channel->slots; i++) {
        const struct attempt *attempt = &channel->attempts[i];
        if (attempt->state == ATTEMPT_NONE || attempt->dropped || (!channel->hurry && now < beat_from(attempt))) continue;
        if (count > 0) buf_byte(body, ',');
        body_task(body, attempt);
        buf_byte(body, '}');
        if (attempt->lease_ms / 3 < wait) wait = attempt->lease_ms / 3;
        kept[count++] = (struct kept){.ticket = attempt_ticket(worker, attempt), .index = i};
    }
    pthread_mutex_unlock(&worker->mutex);
    channel->wait_ms = wait;
    buf_byte(body, ']');
    body_number(body, "waitMs", wait);
    buf_byte(body, '}');
    return count;
}

static void take_beat(struct channel *channel, const struct kept *kept, const struct remote_answer *answers, size_t count,
                      int64_t asked_ms)
{
    struct worker *worker = channel->worker;
    for (size_t i = 0; i < count; i++) {
        struct attempt *attempt = &channel->attempts[kept[i].index];
        int64_t grace = -1;
        pthread_mutex_lock(&worker->mutex);
        struct tools *tools = attempt->tools;
        bool held = attempt->state == ATTEMPT_HELD, told = attempt->dropped, tell = false;
        if (attempt->state != ATTEMPT_NONE && attempt_ticket(worker, attempt) == kept[i].ticket) {
            bool gone = answers[i].state == REMOTE_STALE || answers[i].state == REMOTE_DENIED;
            if (gone || (answers[i].state == REMOTE_CANCEL && !attempt->stopping)) {
                grace = gone ? 0 : answers[i].grace_ms;
                attempt->stopping = true;
                attempt->dropped = attempt->dropped || (gone && attempt->state != ATTEMPT_DONE); // a result gets that answer itself
            }
            if (!gone) attempt->lease_until = asked_ms + attempt->lease_ms;
            tell = gone && attempt->dropped && !told;
        }
        pthread_mutex_unlock(&worker->mutex);
        if (tell) worker_say(worker, true, "an attempt is over for the server: it is stopped, and its result dropped");
        if (grace >= 0 && held)
            held_cancel(worker, kept[i].ticket);
        else if (grace >= 0)
            tools->ops->cancel(tools, kept[i].ticket, grace);
    }
}

// An attempt whose lease this worker could not renew is another worker's by now.
static void drop_overdue(struct channel *channel)
{
    struct worker *worker = channel->worker;
    int64_t now = os_boot_ms();
    for (uint32_t i = 0; i < channel->slots; i++) {
        struct attempt *attempt = &channel->attempts[i];
        pthread_mutex_lock(&worker->mutex);
        struct tools *tools = attempt->tools;
        bool held = attempt->state == ATTEMPT_HELD;
        bool overdue = (held || attempt->state == ATTEMPT_RUNNING) && !attempt->dropped && now > attempt->lease_until;
        uint64_t ticket = attempt_ticket(worker, attempt);
        if (overdue) attempt->dropped = attempt->stopping = true;
        pthread_mutex_unlock(&worker->mutex);
        if (!overdue) continue;
        worker_say(worker, true, "a lease could not be renewed in time: its step is stopped");
        if (held)
            held_cancel(worker, ticket);
        else
            tools->ops->cancel(tools, ticket, 0);
    }
}

static void wait_for_old(struct channel *channel) // until a attempt has been here long enough
{
    LOCKED(&channel->worker->mutex);
    int64_t until = os_now().mono_ms + 1000;
    for (uint32_t i = 0; channel->busy > 0 && i < channel->slots; i++) {
        const struct attempt *attempt = &channel->attempts[i];
        if (attempt->state != ATTEMPT_NONE && !attempt->dropped && beat_from(attempt) < until) until = beat_from(attempt);
    }
    if (!channel->worker->stopping) channel_wait(channel, &channel->changed, until);
}

// An early answer that says nothing about the tasks in the call is about one that was not in it: the next call has all. When
// that was so already, another worker's will have it, and there is no hurry.
static void note_early(struct channel *channel, const struct remote_answer *answers, size_t count, int64_t asked)
{
    bool early = os_boot_ms() - asked < channel->wait_ms / 2;
    for (size_t i = 0; early && i < count; i++) early = answers[i].state == REMOTE_OK;
    if (early && channel->hurry) {
        LOCKED(&channel->worker->mutex);
        if (!channel->worker->stopping) channel_wait(channel, &channel->changed, os_now().mono_ms + BEAT_AFTER_MS);
    }
    channel->hurry = early && !channel->hurry;
}

static bool beat_once(struct link_of *link, struct kept *kept, struct buf *body)
{
    struct channel *channel = link->channel;
    struct error err = {0};
    struct fetch_answer answer;
    struct remote_answer *answers;
    buf_clear(body);
    size_t count = beat_body(channel, body, kept), got = 0;
    if (count == 0) {
        wait_for_old(channel);
        return true;
    }
    int64_t asked = os_boot_ms();
    enum code rc = link_post(link, "/v1/worker/heartbeat", buf_str(body), CALL_MS, &answer, &err);
    if (rc == E_CANCELLED) return false;
    if (!rc) rc = remote_answers_read(answer.body, &link->arena, &answers, &got, &err);
    if (!rc && got == count) take_beat(channel, kept, answers, count, asked);
    drop_overdue(channel);
    if (rc || got != count)
        link_pause(link);
    else
        note_early(channel, answers, count, asked);
    return true;
}

void *worker_beat(void *context)
{
    struct channel *channel = context;
    struct worker *worker = channel->worker;
    struct link_of link SCOPED(link_close) = {0};
    struct error err = {0};
    struct kept *kept = calloc(REMOTE_BATCH_MAX, sizeof(*kept));
    struct buf body SCOPED(buf_release) = buf_of(4 << 20);
    if (link_open(channel, &link, &err))
        worker_give_up(worker, err.code, err.message);
    else if (!kept)
        worker_give_up(worker, E_NOMEM, "out of memory");
    for (bool go = link.link && kept; go;) {
        pthread_mutex_lock(&worker->mutex);
        go = !worker->stopping;
        pthread_mutex_unlock(&worker->mutex);
        go = go && beat_once(&link, kept, &body);
    }
    free(kept);
    return NULL;
}
