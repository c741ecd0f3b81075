// The workflows `cairn_run`: one for each run that has attempts here. What Cairn says is shown there, what people do there becomes signals.
#include "conductor/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_MS = 100,
    ACTIVE_MS = 3000, // after an attempt came or went
    LOOK_SOON_MS = 250,
    LOOK_IDLE_MS = 5000,
    LOOKS_AT_ONCE = 40,
    UNSURE_MS = 60000, // so long may a call still be carried out whose answer nobody got
    LOOK_EACH_MS = 20  // of all runs together: so many of them, so much longer between two looks at one
};

static size_t bucket_of(struct str text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.len; i++) hash = (hash ^ (uint8_t)text.ptr[i]) * 16777619u;
    return hash % BUCKETS;
}

static struct hosted *hosted_find(const struct conductor *host, struct str correlation)
{
    struct hosted *one = host->runs[bucket_of(correlation)];
    while (one && !str_eq(one->correlation, correlation)) one = one->next;
    return one;
}

struct hosted *hosted_add(struct conductor *host, struct str tenant, struct str run)
{
    char correlation[1024];
    int size = snprintf(correlation, sizeof(correlation), "%.*s/%.*s", STR_ARG(tenant), STR_ARG(run));
    if (size < 0 || (size_t)size >= sizeof(correlation)) return NULL;
    struct str name = {correlation, (size_t)size};
    struct hosted *one = hosted_find(host, name);
    if (one) return one;
    one = calloc(1, sizeof(*one) + 2 * name.len + 2);
    if (!one) return NULL;
    memcpy(one->text, name.ptr, name.len);
    one->correlation = (struct str){one->text, name.len};
    one->tenant = (struct str){one->text, tenant.len};
    one->run = (struct str){one->text + tenant.len + 1, run.len};
    struct hosted **bucket = &host->runs[bucket_of(name)];
    one->next = *bucket;
    *bucket = one;
    return one;
}

void host_heard(struct conductor *host, struct str tenant, struct str run)
{
    struct hosted *one = hosted_add(host, tenant, run);
    if (!one) return;
    one->active_ms = os_now().mono_ms;
    one->closed = false;
    if (one->look_ms > one->active_ms + LOOK_SOON_MS) one->look_ms = one->active_ms + LOOK_SOON_MS;
}

// ---- Cairn's side
static enum mine mine_of(struct str status)
{
    return str_is(status, "PAUSED")      ? MINE_PAUSED
           : str_is(status, "COMPLETED") ? MINE_COMPLETED
           : str_is(status, "FAILED")    ? MINE_FAILED
           : str_is(status, "CANCELLED") ? MINE_CANCELLED
                                         : MINE_RUNNING;
}

static enum code read_cairn(struct watch *watch, const char *more, struct json *out, int *status, struct error *err)
{
    struct reply reply;
    struct buf path SCOPED(buf_release) = buf_of(4096);
    buf_text(&path, "/v1/runs/");
    http_percent_encode(&path, watch->at->run);
    buf_text(&path, more);
    if (!buf_ok(&path)) return error_nomem(err);
    arena_reset(&watch->line.arena);
    enum code rc = line_cairn(&watch->line, "GET", buf_str(&path), (struct str){0}, &reply, err);
    if (rc) return rc;
    *status = reply.status;
    return json_is(&reply.body, JSON_OBJECT) && json_copy(&watch->arena, &reply.body, out) ? OK : error_nomem(err);
}

// ---- Conductor's side
static enum his his_of(struct str status)
{
    return str_is(status, "RUNNING")      ? HIS_RUNNING
           : str_is(status, "PAUSED")     ? HIS_PAUSED
           : str_is(status, "COMPLETED")  ? HIS_COMPLETED
           : str_is(status, "TERMINATED") ? HIS_TERMINATED
                                          : HIS_FAILED;
}

static const char *his_word(enum his his) // of one that lives
{
    return his == HIS_PAUSED ? "PAUSED" : "RUNNING";
}

// Which of two stands for the run: the older one, and of the same age the one whose id comes first. Everybody sees it the same way.
static bool is_before(const struct json *a, const struct json *b)
{
    int64_t at = json_integer(json_key(a, "createTime"), 0), bt = json_integer(json_key(b, "createTime"), 0);
    struct str ai = json_text(json_key(a, "workflowId")), bi = json_text(json_key(b, "workflowId"));
    return at != bt ? at < bt
                    : strncmp(ai.ptr ? ai.ptr : "", bi.ptr ? bi.ptr : "", ai.len < bi.len ? ai.len : bi.len) < 0;
}

// Of a run of the same name, but of another server of Cairn or another tenant that uses this Conductor, too.
static bool is_elsewhere(const struct watch *watch, const struct json *workflow)
{
    return !is_here(watch->line.host, json_key(workflow, "input"));
}

// The open workflow of the run, if there is one. A name in a path may not have a slash, so it goes in the body.
static enum code find_workflow(struct watch *watch, struct error *err)
{
    struct hosted *run = watch->at;
    struct reply reply;
    struct buf body SCOPED(buf_release) = buf_of(4096);
    buf_byte(&body, '[');
    json_write_string(&body, run->correlation);
    buf_byte(&body, ']');
    enum code rc = line_call(&watch->line, "POST",
                             STR("/workflow/" CONDUCTOR_RUN "/correlated?includeClosed=false&includeTasks=false"),
                             buf_str(&body), &reply, err);
    if (rc) return rc;
    struct json found;
    const struct json *list = json_get(&reply.body, run->correlation), *first = NULL;
    if (!json_is(list, JSON_ARRAY) || list->count == 0) return OK;
    if (!json_copy(&watch->arena, list, &found)) return error_nomem(err);
    for (uint32_t i = 0; i < found.count; i++)
        if (!is_elsewhere(watch, &found.items[i]) && (!first || is_before(&found.items[i], first)))
            first = &found.items[i];
    if (!first) return OK;
    id_copy(run->workflow, json_text(json_key(first, "workflowId")));
    for (uint32_t i = 0; i < found.count; i++) {
        char id[ID_SIZE], why[160];
        id_copy(id, json_text(json_key(&found.items[i], "workflowId")));
        snprintf(why, sizeof(why), OURS "a duplicate of %s", run->workflow);
        if (&found.items[i] != first && !is_elsewhere(watch, &found.items[i]) &&
            (rc = workflow_end(&watch->line, id, why, err)))
            return rc;
    }
    return OK;
}

static enum code start_workflow(struct watch *watch, struct error *err)
{
    struct conductor *host = watch->line.host;
    struct hosted *run = watch->at;
    struct reply reply;
    struct buf body SCOPED(buf_release) = buf_of(1 << 16);
    struct json input = JSON_OF(&watch->arena, {"tenant", json_string(run->tenant)}, {"run", json_string(run->run)},
                                {"engineRunRef", json_ref(json_key(&watch->status, "engineRunRef"))},
                                {"host", json_name(host->id)}, {"site", json_string(host->options.site)});
    struct json value = JSON_OF(&watch->arena, {"name", json_name(CONDUCTOR_RUN)}, {"version", json_int(CONDUCTOR_RUN_VERSION)},
                                {"correlationId", json_string(run->correlation)}, {"input", input});
    json_write(&body, &value);
    if (!buf_ok(&body)) return error_nomem(err);
    enum code rc = line_call(&watch->line, "POST", STR("/workflow"), buf_str(&body), &reply, err);
    if (rc) return rc;
    if (reply.status == 404) return error_set(err, E_IO, "its definitions are not there yet"); // the sweep makes them
    if (reply.status != 200) return error_set(err, E_INVALID, "Conductor refuses a cairn_run: status %d", reply.status);
    id_copy(run->workflow, reply.text);
    run->task[0] = '\0';
    run->known = false;
    run->sent = 0;
    run->revived[0] = '\0';
    run->picture = (struct digest){0};
    return OK;
}

// What the host before it knew, from the picture: what both sides were when they agreed, and what it was about to ask for. A host shows
// before it pauses, so that where nothing was shown yet a person has paused: workflows begin RUNNING.
static void take_over(struct hosted *run, const struct json *hosts)
{
    if (!hosts) {
        run->was = (struct sight){MINE_RUNNING, HIS_RUNNING};
        run->known = true;
        return;
    }
    struct str here = json_text(json_key(hosts, "here")), there = json_text(json_key(hosts, "there"));
    struct str revived = json_text(json_key(hosts, "revived"));
    const struct json *sent = json_key(hosts, "sent");
    if (revived.len > 0 && revived.len < STAMP_SIZE) snprintf(run->revived, STAMP_SIZE, "%.*s", STR_ARG(revived));
    if (!here.len || !there.len) return;
    run->was = (struct sight){mine_of(here), his_of(there)};
    run->sent = 0;
    for (uint32_t i = 0; json_is(sent, JSON_ARRAY) && i < sent->count; i++) run->sent |= 1u << his_of(json_text(&sent->items[i]));
    run->known = true;
}

// Where Conductor's side stands. A run without a workflow gets one.
static enum code look_there(struct watch *watch, struct error *err)
{
    struct hosted *run = watch->at;
    enum code rc = OK;
    if (!run->workflow[0]) rc = find_workflow(watch, err);
    if (!rc && !run->workflow[0]) rc = start_workflow(watch, err);
    if (rc) return rc;
    struct json workflow;
    watch->now.his = HIS_NONE;
    rc = workflow_get(&watch->line, run->workflow, &workflow, err);
    if (rc == E_NOT_FOUND) return OK;
    if (rc) return rc;
    if (!json_copy(&watch->arena, &workflow, &watch->workflow)) return error_nomem(err);
    const struct json *task = workflow_task(&watch->workflow, "run"), *seen = json_key(task, "outputData");
    if (!str_is(json_text(json_key(task, "taskId")), run->task)) run->picture = (struct digest){0}; // it has none yet
    id_copy(run->task, json_text(json_key(task, "taskId")));
    watch->now.his = his_of(json_text(json_key(&watch->workflow, "status")));
    bool again = workflow_again(watch->line.host, &watch->workflow, watch->stamp);
    if (!run->known) take_over(run, json_key(seen, "hosts"));
    watch->doubt =
        (struct doubt){.ours = str_starts(json_text(json_key(&watch->workflow, "reasonForIncompletion")), STR(OURS)),
                       .again = again && strcmp(watch->stamp, run->revived) != 0,
                       .recover = watch->line.host->options.recover,
                       .sent = run->sent};
    struct str keeper = json_text(json_at(seen, STR("hosts.id")));
    if (!keeper.len) keeper = json_text(json_key(json_key(&watch->workflow, "input"), "host"));
    char id[ID_SIZE];
    id_copy(id, keeper);
    run->foreign = strcmp(id, watch->line.host->id) != 0 && host_lives(watch->line.host, id);
    return OK;
}

// ---- what is shown
// A host does not see what people and programs wrote; what a pause waits for is a number.
static struct str message_of(const struct watch *watch, const struct json *run, struct arena *arena)
{
    struct str message = json_text(json_key(&watch->status, "message"));
    if (str_is(message, "(redacted)")) message = (struct str){0};
    int64_t count = json_integer(json_key(run, "runningSteps"), 0);
    bool draining = str_is(json_text(json_key(&watch->status, "substatus")), "DRAINING");
    if (message.len > 0 || !draining || count == 0) return message;
    return arena_format(arena, "waiting for %lld step%s in flight", (long long)count, count == 1 ? "" : "s");
}

static struct json make_picture(struct watch *watch, struct error *err)
{
    struct conductor *host = watch->line.host;
    struct json run = {0};
    int status = 0;
    if (read_cairn(watch, "", &run, &status, err) || status != 200) run = watch->status;
    struct str url = host->options.worker.link.url;
    struct str link = str_starts(url, STR("http"))
                          ? arena_format(&watch->arena, "%.*s/#/runs/%.*s", STR_ARG(url), STR_ARG(watch->at->run))
                          : (struct str){0};
    const struct hosted *at = watch->at;
    struct json sent = json_array();
    for (enum his his = HIS_RUNNING; his <= HIS_PAUSED; his++)
        if (at->sent >> his & 1) json_append(&watch->arena, &sent, json_name(his_word(his)));
    struct json hosts =
        JSON_OF(&watch->arena, {"id", json_name(host->id)},
                {"here", at->known ? json_name(at->was.mine == MINE_PAUSED ? "PAUSED" : "RUNNING") : json_none()},
                {"there", at->known ? json_name(his_word(at->was.his)) : json_none()},
                {"sent", json_filled(sent)}, {"revived", json_some(str_from(at->revived))});
    return picture_of(&run, json_text(json_key(&watch->status, "status")),
                      json_text(json_key(&watch->status, "substatus")), message_of(watch, &run, &watch->arena),
                      link, hosts, &watch->arena);
}

static enum code update_run(struct watch *watch, const char *status, struct json picture, struct error *err)
{
    struct str message = json_text(json_key(&picture, "message"));
    if (message.len > REASON_MAX) message.len = REASON_MAX;
    while (message.len > 0 && !str_utf8(message)) message.len--;
    struct update update = {.workflow = watch->at->workflow,
                            .task = watch->at->task,
                            .status = status,
                            .reason = message,
                            .output = picture};
    if (strcmp(status, "IN_PROGRESS") == 0) update.park_s = PARK_S;
    enum code rc = task_update(&watch->line, &update, err);
    return rc == E_NOT_FOUND || rc == E_INVALID ? OK : rc;
}

static enum code show(struct watch *watch, bool at_once, struct error *err)
{
    struct hosted *run = watch->at;
    int64_t now = os_now().mono_ms;
    if (!run->task[0] || (!at_once && now - run->told_ms < watch->line.host->options.picture_ms)) return OK;
    struct json picture = make_picture(watch, err);
    struct buf text SCOPED(buf_release) = buf_of(1 << 20);
    json_canon(&text, &picture);
    if (!buf_ok(&text)) return error_nomem(err);
    struct digest digest = sha256(buf_str(&text));
    if (digest_eq(&digest, &run->picture)) return OK;
    enum code rc = update_run(watch, "IN_PROGRESS", picture, err);
    if (!rc) run->picture = digest;
    run->told_ms = now;
    return rc;
}

// ---- what is done
static enum code close_run(struct watch *watch, struct error *err)
{
    struct hosted *run = watch->at;
    struct reply reply;
    enum code rc = OK;
    if (watch->now.his == HIS_PAUSED)
        rc = line_ask(&watch->line, &reply, err, "PUT", (struct str){0}, "/workflow/%s/resume", run->workflow);
    if (rc) return rc;
    struct json picture = make_picture(watch, err);
    switch (watch->now.mine) {
    case MINE_COMPLETED:
        return update_run(watch, "COMPLETED", picture, err);
    case MINE_FAILED:
        return update_run(watch, "FAILED_WITH_TERMINAL_ERROR", picture, err);
    case MINE_CANCELLED:
        rc = update_run(watch, "IN_PROGRESS", picture, err);
        return rc ? rc : workflow_end(&watch->line, run->workflow, OURS "cancelled in Cairn", err);
    case MINE_GONE:
    case MINE_RUNNING:
    case MINE_PAUSED:
        break;
    }
    return workflow_end(&watch->line, run->workflow, OURS "there is no such run any more", err);
}

// Once for each thing that a person did.
static void note_refusal(struct watch *watch, struct str refused)
{
    struct hosted *run = watch->at;
    char text[sizeof(run->noted)];
    snprintf(text, sizeof(text), OURS "%.*s", (int)(refused.len < 150 ? refused.len : 150), refused.ptr);
    if (strcmp(text, run->noted) == 0) return;
    memcpy(run->noted, text, sizeof(text));
    task_note(&watch->line, run->task, text);
}

static enum code do_act(struct watch *watch, enum act act, struct error *err);

static enum code do_signal(struct watch *watch, enum act act, struct error *err)
{
    static const struct {
        const char *type, *action, *reason;
    } words[] = {[ASK_PAUSE] = {"PAUSE", "pause", "paused in Conductor"},
                 [ASK_RESUME] = {"RESUME", "resume", ""},
                 [ASK_CANCEL] = {"CANCEL", "terminate", "terminated in Conductor"},
                 [ASK_RETRY_RUN] = {"RETRY_RUN", "retry", "retried in Conductor"}};
    struct hosted *run = watch->at;
    struct str refused, made, why = json_text(json_key(&watch->workflow, "reasonForIncompletion"));
    if (!run->stamp[0]) { // it stays the same until it is settled, whatever else happens to the workflow meanwhile
        int64_t at = json_integer(json_key(&watch->workflow, act == ASK_CANCEL ? "endTime" : "updateTime"), 0);
        snprintf(run->stamp, sizeof(run->stamp), "%lld", (long long)at);
    }
    struct str reason = act == ASK_CANCEL && why.len ? arena_format(&watch->arena, "%s: %.*s", words[act].reason,
                                                                    (int)(why.len < 400 ? why.len : 400), why.ptr)
                                                     : str_from(words[act].reason);
    struct signal_ask ask = {.type = words[act].type,
                             .workflow = run->workflow,
                             .action = words[act].action,
                             .stamp = act == ASK_RETRY_RUN ? watch->stamp : run->stamp,
                             .run = run->run,
                             .reason = reason};
    arena_reset(&watch->line.arena);
    enum code rc = signal_send(&watch->line, &ask, &refused, &made, err);
    if (rc) return rc;
    run->active_ms = os_now().mono_ms;
    if (refused.len > 0) {
        struct str kept = arena_copy(&watch->arena, refused);
        note_refusal(watch, kept);
        watch->doubt.refused = true;
        return do_act(watch, decide(&watch->now, run->known ? &run->was : NULL, &watch->doubt), err);
    }
    run->noted[0] = '\0';
    if (act != ASK_RETRY_RUN) return OK; // the next look sees what came of it
    struct json output =
        JSON_OF(&watch->arena, {"run", json_string(run->run)}, {"newRun", json_copied_some(&watch->arena, made)},
                {"message", json_name("RETRY_RUN was accepted: the run goes on as newRun")});
    rc = update_run(watch, "COMPLETED", output, err);
    if (!rc) workflow_ended(watch->line.host, run->workflow);
    return rc;
}

static enum code do_act(struct watch *watch, enum act act, struct error *err)
{
    struct hosted *run = watch->at;
    struct reply reply;
    enum code rc;
    switch (act) {
    case ACT_NONE:
        run->was = watch->now;
        run->known = true;
        run->stamp[0] = '\0';
        if (run->sent_ms == 0 || os_now().mono_ms - run->sent_ms > UNSURE_MS) run->sent = 0;
        return OK;
    case ACT_START:
        run->workflow[0] = run->stamp[0] = '\0';
        run->look_ms = 0;
        return OK;
    case ACT_PAUSE: // what it answers is read at the next look
    case ACT_RESUME:
        run->stamp[0] = '\0';
        run->sent |= 1u << (act == ACT_PAUSE ? HIS_PAUSED : HIS_RUNNING);
        rc = show(watch, true, err); // the next host, too, must not take it for a person's doing
        if (!rc)
            rc = line_ask(&watch->line, &reply, err, "PUT", (struct str){0}, "/workflow/%s/%s", run->workflow,
                          act == ACT_PAUSE ? "pause" : "resume");
        run->sent_ms = rc ? os_now().mono_ms : 0;
        return rc;
    case ACT_CLOSE:
        rc = close_run(watch, err);
        if (!rc) workflow_ended(watch->line.host, run->workflow);
        return rc;
    case ACT_FORGET:
        run->closed = true;
        return OK;
    case ASK_PAUSE:
    case ASK_RESUME:
    case ASK_CANCEL:
    case ASK_RETRY_RUN:
        return do_signal(watch, act, err);
    }
    return OK;
}

// ---- looking
static void next_look(struct watch *watch, bool news, int64_t now)
{
    struct hosted *run = watch->at;
    bool active = now - run->active_ms < ACTIVE_MS && run->active_ms > 0;
    int64_t idle = (int64_t)watch->count * LOOK_EACH_MS;
    if (idle < LOOK_IDLE_MS) idle = LOOK_IDLE_MS;
    run->idle = active || news ? 0 : run->idle < 16 ? run->idle + 1 : 16;
    int64_t wait = (int64_t)LOOK_SOON_MS << run->idle;
    run->look_ms = now + (wait < idle ? wait : idle);
}

static enum code look(struct watch *watch, struct error *err)
{
    struct hosted *run = watch->at;
    int status = 0;
    watch->doubt = (struct doubt){0};
    enum code rc = read_cairn(watch, "/status", &watch->status, &status, err);
    if (rc) return rc;
    if (status != 200 && status != 404)
        return error_set(err, E_DENIED, "the server refuses to tell about %.*s: status %d", STR_ARG(run->run), status);
    watch->now.mine = status == 404 ? MINE_GONE : mine_of(json_text(json_key(&watch->status, "status")));
    rc = look_there(watch, err);
    if (rc) return rc;
    if (run->foreign) {
        run->known = false; // what that host knows stands in the picture
        run->sent = 0;
        run->look_ms = os_now().mono_ms + LOOK_IDLE_MS;
        return OK;
    }
    bool lives = watch->now.mine == MINE_RUNNING || watch->now.mine == MINE_PAUSED;
    bool shown = watch->now.his == HIS_RUNNING || watch->now.his == HIS_PAUSED;
    if (lives && shown && watch->doubt.again) memcpy(run->revived, watch->stamp, sizeof(watch->stamp)); // it shows the run once more
    struct sight before = run->was;
    enum act act = decide(&watch->now, run->known ? &run->was : NULL, &watch->doubt);
    int64_t now = os_now().mono_ms;
    next_look(watch, act != ACT_NONE || !run->known || memcmp(&before, &watch->now, sizeof(before)) != 0, now);
    rc = do_act(watch, act, err);
    return rc || !lives || !shown ? rc : show(watch, false, err);
}

// The next one whose time has come, or NULL. Only this thread takes runs out of the table.
static struct hosted *due_run(struct conductor *host, size_t *bucket, int64_t now)
{
    LOCKED(&host->mutex);
    for (; *bucket < BUCKETS; (*bucket)++)
        for (struct hosted **at = &host->runs[*bucket]; *at;) {
            struct hosted *run = *at;
            if (run->closed && now - run->active_ms > 4 * ACTIVE_MS) {
                *at = run->next;
                free(run);
                continue;
            }
            if (!run->closed && run->look_ms <= now) {
                run->look_ms = now + LOOK_SOON_MS;
                return run;
            }
            at = &run->next;
        }
    return NULL;
}

static enum code look_around(struct watch *watch, struct error *err)
{
    struct conductor *host = watch->line.host;
    int64_t now = os_now().mono_ms;
    enum code rc = runs_list(watch, now, err);
    size_t bucket = 0;
    for (int looks = 0; !rc && looks < LOOKS_AT_ONCE && (watch->at = due_run(host, &bucket, now)); looks++) {
        arena_reset(&watch->arena);
        rc = look(watch, err);
        if (rc == E_DENIED || rc == E_INVALID) {
            host_say(host, true, "%s", err->message);
            watch->at->look_ms = now + LOOK_IDLE_MS;
            rc = OK;
        }
    }
    return rc;
}

void *runs_main(void *context)
{
    struct conductor *host = context;
    struct watch watch = {0};
    struct error err = {0};
    arena_init(&watch.arena, 65536, (size_t)256 << 20);
    strangers_open(&watch.strangers);
    if (line_open(host, &watch.line, &err)) host_say(host, true, "%s", err.message);
    while (watch.line.cairn && host_rests(host, TICK_MS))
        if (look_around(&watch, &err)) line_pause(&watch.line);
    line_close(&watch.line);
    strangers_close(&watch.strangers);
    arena_release(&watch.arena);
    return NULL;
}
