// What Conductor says it runs, against the table of attempts: what has gone, what was not taken notice of, what belongs to nobody.
#include "conductor/inside.h"

#include <stdlib.h>
#include <string.h>

enum {
    SWEEP_MS = 1000,
    TELL_AGAIN_MS = 2000,
    TELLS_MAX = 10, // with twice the pause each time: half an hour
    STRANGER_MS = 3000,
    SELDOM_MS = 60000,
    STRANGERS_AT_ONCE = 20,
    HOSTS_MS = 5000
};

struct sweep {
    struct line line;
    struct arena arena; // of one sweep
    struct map running; // ids; values are not used
    struct strangers strangers;
    int64_t asked_ms, hosts_ms;
};

static enum code list_running(struct sweep *sweep, const char *name, struct error *err)
{
    struct reply reply;
    enum code rc = line_ask(&sweep->line, &reply, err, "GET", (struct str){0}, "/workflow/running/%s", name);
    if (rc) return rc;
    if (reply.status != 200 || !json_is(&reply.body, JSON_ARRAY))
        return error_set(err, E_IO, "it answers %d when it is asked what it runs (is this the address of its interface, with /api?)",
                         reply.status);
    for (uint32_t i = 0; i < reply.body.count; i++) {
        struct str id = arena_copy(&sweep->arena, json_text(&reply.body.items[i]));
        if (!id.ptr || !map_put(&sweep->running, id, i, NULL)) return error_nomem(err);
    }
    return OK;
}

// With the lock. It cannot be started, or Conductor has been away, for longer than one waits.
static bool is_hopeless(const struct conductor *host, const struct order *order, int64_t now)
{
    int64_t patience = host->options.patience_ms, half = order->timeout_ms / 2;
    if (half > 0 && half < patience) patience = half;
    if (order->state == ORDER_NEW && order->failing_ms && now - order->failing_ms > patience) return true;
    int64_t since = host->away_ms > order->since_ms ? host->away_ms : order->since_ms;
    return host->away && (order->state == ORDER_NEW || order->state == ORDER_STARTED) && now - since > patience;
}

// One order against what is listed, with the lock.
static void sweep_order(struct sweep *sweep, struct order *order, int64_t now)
{
    struct conductor *host = sweep->line.host;
    bool listed = order->workflow[0] && map_get(&sweep->running, str_from(order->workflow)) != MAP_NONE;
    bool old = order->started_ms > 0 && order->started_ms < sweep->asked_ms;
    switch (order->state) {
    case ORDER_STARTED:
    case ORDER_BEGUN:
        order->missing = old && order->workflow[0] && !listed ? order->missing + 1 : 0;
        order->look = order->missing > 1 || (order->state == ORDER_STARTED && now >= order->look_ms);
        if (order->look) order_job(host, order);
        break;
    case ORDER_TOLD: {
        bool told_before = order->told_ms < sweep->asked_ms;
        int64_t again_ms = (int64_t)TELL_AGAIN_MS << (order->tells < TELLS_MAX ? order->tells - 1 : TELLS_MAX);
        if (told_before && (!listed || order->tells > TELLS_MAX)) {
            order_drop(host, order); // what is listed all the same is a stranger from now on
        } else if (listed && now - order->told_ms > again_ms) { // its 200 meant nothing
            order_is(host, order, ORDER_OVER);
            order_job(host, order);
        }
        break;
    }
    case ORDER_NEW:
    case ORDER_OVER:
        break;
    }
}

static void sweep_orders(struct sweep *sweep, bool answered)
{
    struct conductor *host = sweep->line.host;
    uint64_t *lost = ARENA_ARRAY(&sweep->arena, host->options.worker.slots + 1, uint64_t);
    size_t lost_count = 0;
    int64_t now = os_now().mono_ms;
    pthread_mutex_lock(&host->mutex);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct order *order = host->buckets[i], *next; order; order = next) {
            next = order->next;
            if (is_hopeless(host, order, now)) {
                if (lost && lost_count < host->options.worker.slots) lost[lost_count++] = order->ticket;
            } else if (answered) {
                sweep_order(sweep, order, now);
            }
        }
    pthread_mutex_unlock(&host->mutex);
    for (size_t i = 0; i < lost_count; i++)
        if (worker_lose(host->worker, lost[i]))
            host_say(host, true, "an attempt waited too long for Conductor: it is given back");
}

// ---- other hosts
static int64_t polled_ms(const struct json *one)
{
    int64_t at = json_integer(json_key(one, "lastPollTime"), 0);
    return at > 0 ? at : 0;
}

static void read_hosts(struct sweep *sweep)
{
    struct conductor *host = sweep->line.host;
    struct reply reply;
    struct error err = {0};
    if (line_ask(&sweep->line, &reply, &err, "GET", (struct str){0}, "/tasks/queue/polldata?taskType=%s",
                 CONDUCTOR_ATTEMPT) ||
        !json_is(&reply.body, JSON_ARRAY))
        return;
    int64_t newest = 0; // all times are Conductor's: clocks of hosts do not matter
    for (uint32_t i = 0; i < reply.body.count; i++) {
        int64_t at = polled_ms(&reply.body.items[i]);
        if (at > newest) newest = at;
    }
    LOCKED(&host->mutex);
    host->alive_count = 0;
    host->alive_known = true;
    for (uint32_t i = 0; i < reply.body.count && host->alive_count < HOSTS_MAX; i++) {
        const struct json *one = &reply.body.items[i];
        if (newest - polled_ms(one) < host->options.silent_ms)
            id_copy(host->alive[host->alive_count++], json_text(json_key(one, "domain")));
    }
}

bool host_lives(struct conductor *host, const char *id)
{
    LOCKED(&host->mutex);
    if (!host->alive_known) return true;
    for (size_t i = 0; i < host->alive_count; i++)
        if (strcmp(host->alive[i], id) == 0) return true;
    return false;
}

// ---- strangers
// Its start is on its way, or it is a second one of an attempt that no poll has brought yet.
static bool is_awaited(struct conductor *host, struct str key)
{
    LOCKED(&host->mutex);
    const struct order *order = order_find(host, key);
    return order && (order->state == ORDER_NEW || order->state == ORDER_STARTED);
}

static void look_at(struct sweep *sweep, struct stranger *stranger, int64_t now)
{
    struct conductor *host = sweep->line.host;
    struct json workflow;
    struct error err = {0};
    char id[ID_SIZE];
    stranger->look_ms = now + STRANGER_MS;
    if (workflow_get(&sweep->line, stranger->workflow, &workflow, &err)) return;
    const struct json *input = json_key(&workflow, "input");
    id_copy(id, json_text(json_key(input, "host")));
    bool ours = strcmp(id, host->id) == 0;
    if (!ours && !is_here(host, input)) {
        stranger->look_ms = INT64_MAX; // whose it is does not change
        return;
    }
    if (ours && is_awaited(host, json_text(json_key(input, "key")))) return;
    bool dead = !ours && now - stranger->since_ms > host->options.silent_ms && !host_lives(host, id);
    int64_t age = now - stranger->since_ms; // one that does not end is asked to ever more seldom
    int64_t again = age < STRANGER_MS ? STRANGER_MS : age < SELDOM_MS ? age : SELDOM_MS;
    stranger->look_ms = now + (ours || dead ? again : host->options.silent_ms / 4);
    if (ours || dead) stranger_task(&sweep->line, &workflow);
}

static void sweep_strangers(struct sweep *sweep)
{
    struct conductor *host = sweep->line.host;
    struct map mine;
    int64_t now = os_now().mono_ms;
    bool complete = true;
    map_init(&mine, &sweep->arena);
    pthread_mutex_lock(&host->mutex);
    for (size_t i = 0; complete && i < BUCKETS; i++)
        for (const struct order *order = host->buckets[i]; complete && order; order = order->next) {
            struct str id = arena_copy(&sweep->arena, str_from(order->workflow));
            complete = id.ptr && map_put(&mine, id, 0, NULL);
        }
    pthread_mutex_unlock(&host->mutex);
    if (!complete) return;
    strangers_list(&sweep->strangers);
    for (size_t i = 0; i < sweep->running.capacity; i++) {
        struct str id = sweep->running.slots[i].key;
        if (id.ptr && map_get(&mine, id) == MAP_NONE) strangers_add(&sweep->strangers, id, now, now + STRANGER_MS);
    }
    struct stranger *one;
    for (int looks = 0; looks < STRANGERS_AT_ONCE && (one = strangers_due(&sweep->strangers, now)); looks++) look_at(sweep, one, now);
}

// Whether Conductor is there, and what it lists.
static enum code list_all(struct sweep *sweep, struct error *err)
{
    struct conductor *host = sweep->line.host;
    enum code rc = list_running(sweep, CONDUCTOR_ATTEMPT, err);
    if (!rc && host->options.type_count > 0) rc = list_running(sweep, CONDUCTOR_EXTERNAL, err);
    pthread_mutex_lock(&host->mutex);
    bool defined = host->defined;
    pthread_mutex_unlock(&host->mutex);
    if (!rc && !defined) rc = definitions_make(&sweep->line, err);
    LOCKED(&host->mutex);
    host->defined = rc == OK;
    return rc;
}

static void sweep_once(struct sweep *sweep)
{
    struct error err = {0};
    arena_reset(&sweep->arena);
    map_init(&sweep->running, &sweep->arena);
    sweep->asked_ms = os_now().mono_ms;
    enum code rc = list_all(sweep, &err);
    if (rc == E_CANCELLED) return;
    if (rc)
        host_away(sweep->line.host, err.message);
    else
        host_back(sweep->line.host);
    sweep_orders(sweep, rc == OK);
    if (rc || !host_has_tenant(sweep->line.host)) return; // nor whose they are
    if (sweep->asked_ms >= sweep->hosts_ms) {
        sweep->hosts_ms = sweep->asked_ms + HOSTS_MS;
        read_hosts(sweep);
    }
    sweep_strangers(sweep);
}

void *sweep_main(void *context)
{
    struct conductor *host = context;
    struct sweep sweep = {0};
    struct error err = {0};
    arena_init(&sweep.arena, 65536, (size_t)256 << 20);
    strangers_open(&sweep.strangers);
    if (line_open(host, &sweep.line, &err)) host_say(host, true, "%s", err.message);
    while (sweep.line.cairn && !host_stops(host)) {
        sweep_once(&sweep);
        host_rests(host, SWEEP_MS);
    }
    line_close(&sweep.line);
    strangers_close(&sweep.strangers);
    arena_release(&sweep.arena);
    return NULL;
}
