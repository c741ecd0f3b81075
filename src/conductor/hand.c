// What a person did in Conductor, as signals of Cairn: ordinary ones, with ids that are the same for every host that sends them,
// however often.
#include "conductor/inside.h"

#include <stdio.h>
#include <string.h>

enum code signal_send(struct line *line, const struct signal_ask *ask, struct str *refused, struct str *made,
                      struct error *err)
{
    char id[UUID_SIZE];
    struct reply reply;
    signal_id(id, ask->workflow, ask->action, ask->stamp);
    struct json payload = JSON_OF(&line->arena, {"stepId", json_some(ask->step)}, {"reason", json_some(ask->reason)});
    struct json value =
        JSON_OF(&line->arena, {"signalId", json_name(id)}, {"signalType", json_name(ask->type)}, {"payload", payload});
    struct buf body SCOPED(buf_release) = buf_of(1 << 16);
    struct buf path SCOPED(buf_release) = buf_of(4096);
    json_write(&body, &value);
    buf_text(&path, "/v1/runs/");
    http_percent_encode(&path, ask->run);
    buf_text(&path, "/signals");
    if (!buf_ok(&body) || !buf_ok(&path)) return error_nomem(err);
    enum code rc = line_cairn(line, "POST", buf_str(&path), buf_str(&body), &reply, err);
    if (rc) return rc;
    bool accepted = reply.status == 200 || reply.status == 202;
    struct str code = json_text(json_key(&reply.body, "code")), detail = json_text(json_key(&reply.body, "detail"));
    *made = json_text(json_key(&reply.body, "newRunId"));
    *refused = (struct str){0};
    if (!accepted) *refused = arena_format(&line->arena, "%s was refused: %.*s %.*s", ask->type, STR_ARG(code), STR_ARG(detail));
    if (!accepted && !refused->ptr) return error_nomem(err);
    host_say(line->host, !accepted, "%.*s: %s in Conductor: %s%.*s", STR_ARG(ask->run), ask->action,
             accepted ? ask->type : "", STR_ARG(*refused));
    return OK;
}

// A workflow that had ended and runs again keeps the time of its end, but for a restart. Then that of a run says how often it was begun,
// and that of an attempt is known while the host remembers that it ended it. All times are Conductor's: clocks of hosts do not matter.
static bool was_ended(struct conductor *host, const char *workflow)
{
    LOCKED(&host->mutex);
    for (size_t i = 0; i < ENDED_MAX; i++)
        if (strcmp(host->ended[i], workflow) == 0) return true;
    return false;
}

bool workflow_again(struct conductor *host, const struct json *workflow, char stamp[STAMP_SIZE])
{
    char id[ID_SIZE];
    id_copy(id, json_text(json_key(workflow, "workflowId")));
    int64_t end = json_integer(json_key(workflow, "endTime"), 0),
            create = json_integer(json_key(workflow, "createTime"), 0),
            lives = json_integer(json_at(workflow, STR("variables.lives")), 0);
    snprintf(stamp, STAMP_SIZE, "%lld", (long long)(end > 0 ? end : create));
    return end > 0 || lives > 1 || was_ended(host, id);
}

void workflow_ended(struct conductor *host, const char *workflow)
{
    LOCKED(&host->mutex);
    snprintf(host->ended[host->ended_next], ID_SIZE, "%s", workflow);
    host->ended_next = (host->ended_next + 1) % ENDED_MAX;
}

// RETRY_STEP of a step that a person retried in Conductor. What came of it stands where the person looks.
static void retry_step(struct line *line, const char *id, const char *task, const char *stamp, struct str run,
                       struct str step)
{
    struct str refused, made;
    struct error err = {0};
    struct signal_ask ask = {.type = "RETRY_STEP",
                             .workflow = id,
                             .action = "retry of an attempt",
                             .stamp = stamp,
                             .run = run,
                             .step = step};
    if (signal_send(line, &ask, &refused, &made, &err)) return; // again at the next sweep
    char text[REASON_MAX];
    snprintf(text, sizeof(text), OURS "%.*s",
             STR_ARG(refused.len ? refused : STR("RETRY_STEP was accepted; the step goes on as a new attempt")));
    bool ok = refused.len == 0;
    task_note(line, task, text);
    struct update update = {.workflow = id,
                            .task = task,
                            .status = ok ? "COMPLETED" : "FAILED_WITH_TERMINAL_ERROR",
                            .reason = str_from(text)};
    if (task_update(line, &update, &err) == OK) workflow_ended(line->host, id);
}

void stranger_task(struct line *line, const struct json *workflow)
{
    char id[ID_SIZE], task[ID_SIZE], stamp[STAMP_SIZE];
    struct error err = {0};
    struct arena arena SCOPED(arena_release);
    arena_init(&arena, 4096, 1 << 20);
    const struct json *input = json_key(workflow, "input"), *last = workflow_task(workflow, "attempt");
    id_copy(id, json_text(json_key(workflow, "workflowId")));
    id_copy(task, json_text(json_key(last ? last : workflow_task(workflow, "report"), "taskId")));
    struct str run = arena_copy(&arena, json_text(json_key(input, "run"))),
               step = arena_copy(&arena, json_text(json_key(input, "step")));
    if (!id[0] || !run.ptr || !step.ptr || !str_is(json_text(json_key(workflow, "status")), "RUNNING")) return;
    if (workflow_again(line->host, workflow, stamp))
        retry_step(line, id, task, stamp, run, step);
    else if (workflow_end(line, id, OURS "nobody has this attempt any more; it ran nothing", &err) == OK)
        workflow_ended(line->host, id);
}
