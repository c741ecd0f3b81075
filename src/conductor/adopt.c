// What Conductor lists as runs: which of ours to look at, and which are to become ours.
#include "conductor/inside.h"

#include <string.h>

enum { LIST_MS = 1000, ADOPT_MS = 400, PAGE = 1000, PAGES_MAX = 100 }; // of each second, so much is for runs that nobody has

// Once: who we are does not change.
static enum code learn_tenant(struct watch *watch, struct error *err)
{
    struct conductor *host = watch->line.host;
    struct reply reply;
    if (host_has_tenant(host)) return OK;
    arena_reset(&watch->line.arena);
    enum code rc = line_cairn(&watch->line, "GET", STR("/v1/whoami"), (struct str){0}, &reply, err);
    struct str tenant = rc ? (struct str){0} : json_text(json_key(&reply.body, "tenantId"));
    if (rc || reply.status != 200 || !tenant.len || tenant.len >= sizeof(host->tenant)) // the worker says so when a token is refused
        return rc ? rc : error_set(err, E_IO, "the server does not say whose the token is");
    LOCKED(&host->mutex);
    memcpy(host->tenant, tenant.ptr, tenant.len);
    return OK;
}

bool host_has_tenant(struct conductor *host)
{
    LOCKED(&host->mutex);
    return host->tenant[0];
}

bool is_here(struct conductor *host, const struct json *input)
{
    LOCKED(&host->mutex);
    return host->tenant[0] && str_is(json_text(json_key(input, "tenant")), host->tenant) &&
           str_eq(json_text(json_key(input, "site")), host->options.site);
}

// A workflow that a host started which is gone, or that a person has started once more.
static enum code adopt(struct watch *watch, struct stranger *stranger, int64_t now, struct error *err)
{
    struct conductor *host = watch->line.host;
    struct json workflow;
    const char *id = stranger->workflow;
    stranger->look_ms = now + LIST_MS;
    enum code rc = workflow_get(&watch->line, id, &workflow, err);
    if (rc) return rc == E_NOT_FOUND || rc == E_INVALID ? OK : rc;
    const struct json *input = json_key(&workflow, "input");
    struct str tenant = json_text(json_key(input, "tenant")), name = json_text(json_key(input, "run"));
    if (!name.len || !is_here(host, input)) {
        stranger->look_ms = INT64_MAX; // whose it is does not change
        return OK;
    }
    LOCKED(&host->mutex);
    struct hosted *run = hosted_add(host, tenant, name);
    bool another = run && run->workflow[0] && strcmp(run->workflow, id) != 0;
    if (run && !another) id_copy(run->workflow, str_from(id));
    if (run && another && !run->closed) run->workflow[0] = '\0'; // both are looked up, and one is kept
    if (run && another && run->closed) id_copy(run->workflow, str_from(id));
    if (run) run->look_ms = 0;
    if (run) run->closed = false;
    return OK;
}

static bool put_id(struct watch *watch, struct map *map, struct str id)
{
    struct str copy = arena_copy(&watch->arena, id);
    return copy.ptr && map_put(map, copy, 0, NULL);
}

static enum code list_running(struct watch *watch, struct map *listed, struct error *err)
{
    struct reply reply;
    enum code rc = line_ask(&watch->line, &reply, err, "GET", (struct str){0}, "/workflow/running/%s", CONDUCTOR_RUN);
    if (rc) return rc;
    if (reply.status != 200 || !json_is(&reply.body, JSON_ARRAY)) return error_set(err, E_IO, "it answers %d to a list", reply.status);
    for (uint32_t i = 0; i < reply.body.count; i++)
        if (!put_id(watch, listed, json_text(&reply.body.items[i]))) return error_nomem(err);
    return OK;
}

// Those that are paused are listed like those that are not; a search tells them apart.
static enum code list_paused(struct watch *watch, struct map *paused, struct error *err)
{
    for (int page = 0; page < PAGES_MAX; page++) {
        struct reply reply;
        enum code rc = line_ask(
            &watch->line, &reply, err, "GET", (struct str){0},
            "/workflow/search?start=%d&size=%d&query=workflowType%%20IN%%20(%s)%%20AND%%20status%%20IN%%20(PAUSED)",
            page * PAGE, PAGE, CONDUCTOR_RUN);
        const struct json *results = rc ? NULL : json_key(&reply.body, "results");
        if (rc) return rc;
        if (!json_is(results, JSON_ARRAY)) return error_set(err, E_IO, "it answers %d to a search", reply.status);
        for (uint32_t i = 0; i < results->count; i++)
            if (!put_id(watch, paused, json_text(json_key(&results->items[i], "workflowId")))) return error_nomem(err);
        if (results->count < PAGE) break;
    }
    return OK;
}

enum code runs_list(struct watch *watch, int64_t now, struct error *err)
{
    struct conductor *host = watch->line.host;
    struct map listed, paused, known;
    if (now < watch->list_ms) return OK;
    watch->list_ms = now + LIST_MS;
    arena_reset(&watch->arena);
    map_init(&listed, &watch->arena);
    map_init(&paused, &watch->arena);
    map_init(&known, &watch->arena);
    enum code rc = learn_tenant(watch, err);
    if (!rc) rc = list_running(watch, &listed, err);
    if (rc) return rc;
    bool searched = list_paused(watch, &paused, err) == OK; // a Conductor without an index: then looks at each run tell, more slowly
    watch->count = 0;
    pthread_mutex_lock(&host->mutex);
    bool complete = true;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct hosted *run = host->runs[i]; run; run = run->next) {
            watch->count++;
            struct str id = str_from(run->workflow);
            if (!id.len) continue;
            complete = complete && put_id(watch, &known, id);
            bool gone = map_get(&listed, id) == MAP_NONE, is_paused = map_get(&paused, id) != MAP_NONE;
            bool turned = searched && run->known && is_paused != (run->was.his == HIS_PAUSED);
            bool news = run->closed ? !gone : gone || turned;
            if (news) {
                run->look_ms = 0;
                run->closed = false;
            }
        }
    pthread_mutex_unlock(&host->mutex);
    if (!complete) return error_nomem(err);
    strangers_list(&watch->strangers);
    for (size_t i = 0; i < listed.capacity; i++)
        if (listed.slots[i].key.ptr && map_get(&known, listed.slots[i].key) == MAP_NONE)
            strangers_add(&watch->strangers, listed.slots[i].key, now, now);
    struct stranger *one;
    int64_t until = os_now().mono_ms + ADOPT_MS;
    while (!rc && os_now().mono_ms < until && (one = strangers_due(&watch->strangers, now))) rc = adopt(watch, one, now, err);
    return rc;
}
