// People and other processes: signals at any moment, again with the same id, directly or through the inbox of the store.
#include "sim/world.h"

#include <stdio.h>
#include <string.h>

static struct json one_member(struct world *w, const char *key, struct json value)
{
    struct json object = json_object();
    INVARIANT(json_put(&w->arena, &object, str_from(key), value));
    return object;
}

static struct json payload_for(struct world *w, enum signal_type type)
{
    switch ((int)type) {
    case SIGNAL_UPDATE_PARAMS:
        return one_member(w, "params", one_member(w, "mode", json_string(STR("no"))));
    case SIGNAL_INJECT_OVERRIDE:
        return one_member(w, "override", one_member(w, "message", json_string(STR("other"))));
    case SIGNAL_UPDATE_TARGET:
        return one_member(w, "newTarget", one_member(w, "queue", json_string(STR("big"))));
    case SIGNAL_ESCALATE_ALERT:
        return one_member(w, "level", json_string(STR("WARNING")));
    default:
        return json_object();
    }
}

static struct sent_signal *new_signal(struct world *w, struct str run, enum signal_type type, struct str step)
{
    if (w->sent_count == WORLD_SIGNALS_MAX) return NULL;
    struct sent_signal *sent = &w->sent[w->sent_count++];
    memset(sent, 0, sizeof(*sent));
    uint8_t random[16];
    choice_bytes(w->choice, random, sizeof(random));
    uuid_format(random, sent->id);
    sent->run = run;
    sent->signal = (struct signal){.type = type,
                                   .id = {sent->id, UUID_SIZE - 1},
                                   .step = step,
                                   .actor = STR("ann"),
                                   .role = STR("Admin"),
                                   .payload = payload_for(w, type)};
    if (type == SIGNAL_PAUSE || type == SIGNAL_CANCEL || type == SIGNAL_SKIP_STEP || type == SIGNAL_EMERGENCY_STOP)
        sent->signal.reason = STR("because");
    return sent;
}

static void send_now(struct world *w, struct sent_signal *sent)
{
    struct error err = {0};
    enum code rc = engine_signal(w->engine, STR("default"), sent->run, &sent->signal, &err);
    world_trace(w, "signal %s %.*s %.*s: %s", signal_name(sent->signal.type), STR_ARG(sent->run),
                STR_ARG(sent->signal.step), code_name(rc));
    if (rc == E_IO)
        w->died = true;
    else if (rc)
        checker_fail(&w->checker, "I23", "engine_signal: %s", err.message);
    w->result.signals++;
}

static void post(struct world *w, struct sent_signal *sent)
{
    struct error err = {0};
    struct str bytes;
    INVARIANT(signal_encode(&sent->signal, &w->arena, &bytes, &err) == OK);
    enum code rc = store_post(w->store, STR("default"), sent->run, sent->signal.id, bytes, &err);
    world_trace(w, "post %s %.*s %.*s: %s", signal_name(sent->signal.type), STR_ARG(sent->run),
                STR_ARG(sent->signal.step), code_name(rc));
    if (rc == OK)
        sent->posted = true;
    else if (rc == E_IO)
        w->died = true;
    else if (rc != E_FULL)
        checker_fail(&w->checker, "I23", "store_post: %s", err.message);
    w->result.signals++;
}

// Cancelling ends most of the fun: it comes less often than the rest.
static enum signal_type pick_type(struct world *w)
{
    static const enum signal_type types[] = {
        SIGNAL_PAUSE,           SIGNAL_RESUME,        SIGNAL_PAUSE,         SIGNAL_RESUME,  SIGNAL_SKIP_STEP,
        SIGNAL_RETRY_STEP,      SIGNAL_APPROVE,       SIGNAL_REJECT,        SIGNAL_CANCEL,  SIGNAL_EMERGENCY_STOP,
        SIGNAL_RETRY_RUN,       SIGNAL_PAUSE,         SIGNAL_SKIP_STEP,     SIGNAL_APPROVE, SIGNAL_UPDATE_PARAMS,
        SIGNAL_INJECT_OVERRIDE, SIGNAL_UPDATE_TARGET, SIGNAL_ESCALATE_ALERT};
    return types[choice_pick(w->choice, STREAM_CLIENT, ARRAY_COUNT(types))];
}

static bool needs_step(enum signal_type type)
{
    return type == SIGNAL_SKIP_STEP || type == SIGNAL_RETRY_STEP || type == SIGNAL_INJECT_OVERRIDE ||
           type == SIGNAL_UPDATE_TARGET;
}

// Of what waits for a second pair of eyes, the newest is answered.
static struct sent_signal *new_answer(struct world *w, const struct model_run *run, bool retries)
{
    bool retry = run->shadow->deferred && run->shadow->deferred->signal.type == SIGNAL_RETRY_RUN;
    if (!run->shadow->deferred || (retry && !retries) || choice_pick(w->choice, STREAM_CLIENT, 3) == 0) return NULL;
    bool yes = choice_pick(w->choice, STREAM_CLIENT, 3) > 0;
    struct sent_signal *sent = new_signal(w, run->ids.run, yes ? SIGNAL_APPROVE : SIGNAL_REJECT, (struct str){0});
    if (!sent) return NULL;
    sent->signal.approves = arena_copy(&w->arena, run->shadow->deferred->signal.id);
    sent->signal.actor = STR("bob");
    return sent;
}

static struct sent_signal *new_any(struct world *w, const struct model_run *run, bool retries)
{
    struct sent_signal *sent = new_answer(w, run, retries);
    if (sent) return sent;
    enum signal_type type = pick_type(w);
    if (type == SIGNAL_RETRY_RUN && (!retries || !run->terminal || w->checker.run_count > 8)) type = SIGNAL_PAUSE;
    struct str step = {0};
    if (needs_step(type)) step = run->program->steps[choice_pick(w->choice, STREAM_CLIENT, run->program->top_count)].id;
    sent = new_signal(w, run->ids.run, type, step);
    if (sent) sent->signal.requires_approval = choice_pick(w->choice, STREAM_CLIENT, 6) == 5;
    return sent;
}

void client_disturb(struct world *w)
{
    if (w->checker.run_count == 0) return;
    if (choice_pick(w->choice, STREAM_FORK, 6) == 5 && client_fork(w, false)) return;
    struct sent_signal *sent = NULL;
    if (w->sent_count > 0 && choice_pick(w->choice, STREAM_CLIENT, 4) == 3) {
        sent = &w->sent[choice_pick(w->choice, STREAM_CLIENT, (uint32_t)w->sent_count)];
    } else {
        const struct model_run *run =
            w->checker.runs[choice_pick(w->choice, STREAM_CLIENT, (uint32_t)w->checker.run_count)];
        if (run->events.count == 0) return;
        sent = new_any(w, run, true);
    }
    if (!sent) return;
    bool by_post = sent->signal.type != SIGNAL_RETRY_RUN && choice_pick(w->choice, STREAM_CLIENT, 2) == 1;
    if (by_post)
        post(w, sent);
    else
        send_now(w, sent);
}

void client_visit(struct world *w, bool retries)
{
    if (choice_pick(w->choice, STREAM_FORK, 6) == 5 && client_fork(w, true)) return;
    const struct model_run *run =
        w->checker.runs[choice_pick(w->choice, STREAM_CLIENT, (uint32_t)w->checker.run_count)];
    if (run->events.count == 0) return;
    struct sent_signal *sent = new_any(w, run, retries);
    if (sent) send_now(w, sent);
}

// ---- forks

struct wish { // what the fork is to have different
    struct str step;
    struct fork_output output;
    struct fork_request request;
};

static void make_wish(struct world *w, const struct model_run *source, struct wish *wish)
{
    uint32_t how = choice_pick(w->choice, STREAM_FORK, 8);
    wish->step = source->program->steps[choice_pick(w->choice, STREAM_FORK, source->program->top_count)].id;
    wish->output = (struct fork_output){.step = wish->step, .value = json_string(STR("yes"))};
    wish->request = (struct fork_request){.tenant = STR("default"),
                                          .source = source->ids.run,
                                          .at = choice_pick(w->choice, STREAM_FORK, (uint32_t)source->events.count + 1),
                                          .results_only = how >= 6,
                                          .from = &wish->step,
                                          .from_count = how == 4 || how == 7,
                                          .outputs = &wish->output,
                                          .output_count = how == 5,
                                          .now_ms = w->wall_ms};
    if (choice_pick(w->choice, STREAM_FORK, 3) == 2) wish->request.at = source->events.count;
}

// Steps of the top scope that begin anew: the one that was named, and all that hang on it.
static uint64_t steps_again(const struct program *program, struct str named)
{
    uint64_t again = 0;
    for (uint32_t i = 0; i < program->top_count; i++) {
        const struct program_step *ps = &program->steps[program->order[i]];
        bool stale = str_eq(ps->id, named);
        for (uint32_t k = 0; k < ps->dep_count; k++) stale = stale || (again >> ps->deps[k] & 1) != 0;
        if (stale) again |= (uint64_t)1 << program->order[i];
    }
    return again;
}

static enum code fork_now(struct world *w, const struct model_run *source, const struct wish *wish, struct str id,
                          bool idle, struct error *err)
{
    struct fork *fork;
    char out[129];
    enum code rc = fork_open(w->store, &wish->request, &fork, err);
    if (rc) return rc;
    bool named = wish->request.from_count + wish->request.output_count > 0;
    uint64_t again = named ? steps_again(source->program, wish->step) : 0;
    struct model_fork *model =
        wish->request.results_only ? NULL : checker_fork(&w->checker, id, source, wish->request.at, again);
    if (model && wish->request.output_count > 0) model->given = wish->step;
    struct fork_start start = {.run = id, .triggered_by = STR("ann"), .how = "fork", .idle = idle};
    rc = engine_fork(w->engine, fork, &start, out, err);
    fork_close(fork);
    return rc;
}

bool client_fork(struct world *w, bool idle)
{
    if (w->fork_count == WORLD_FORKS_MAX) return false;
    const struct model_run *source =
        w->checker.runs[choice_pick(w->choice, STREAM_FORK, (uint32_t)w->checker.run_count)];
    if (source->events.count == 0 || source->net) return false; // F1 is about plans and node workflows
    struct wish wish;
    struct error err = {0};
    make_wish(w, source, &wish);
    char *id = w->fork_ids[w->fork_count++];
    snprintf(id, sizeof(w->fork_ids[0]), "f%u", w->fork_count);
    enum code rc = fork_now(w, source, &wish, str_from(id), idle, &err);
    world_trace(w, "fork %s of %.*s after %llu%s%s%s %.*s%s: %s", id, STR_ARG(source->ids.run),
                (unsigned long long)wish.request.at, wish.request.results_only ? " results" : "",
                wish.request.from_count ? " from" : "", wish.request.output_count ? " given" : "", STR_ARG(wish.step),
                idle ? " idle" : "", code_name(rc));
    w->result.forks += rc == OK;
    w->fork_idle = w->fork_idle || (rc == OK && idle);
    if (rc == E_IO)
        w->died = true;
    else if (rc && !(rc == E_CONFLICT && wish.request.output_count > 0))
        checker_fail(&w->checker, "F1", "%s: cannot be forked: %s", id, err.message);
    return true;
}

// What the run waits for, if it waits for a person.
static enum signal_type wanted(struct world *w, const struct model_run *model, struct str *step)
{
    const struct run *run = model->shadow;
    bool no = !w->healing && choice_pick(w->choice, STREAM_CLIENT, 3) == 2;
    if (run->status == RUN_STATUS_PAUSED) return SIGNAL_RESUME;
    if (run->status == RUN_STATUS_PENDING) return no ? SIGNAL_REJECT : SIGNAL_APPROVE;
    if (kernel_await(run, NULL)) return SIGNAL_DELIVER_EVENT;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct program_step *ps = &run->program->steps[i];
        *step = ps->id;
        if (kernel_state(run, i) == NODE_HELD) return no ? SIGNAL_SKIP_STEP : SIGNAL_RETRY_STEP;
        if (kernel_state(run, i) == NODE_RUNNING && ps->kind == STEP_APPROVAL)
            return no ? SIGNAL_REJECT : SIGNAL_APPROVE;
    }
    return SIGNAL_NONE;
}

// The first event that it waits for, under the id of its signal.
static struct json event_for(struct world *w, const struct run *run, const char *id)
{
    const struct run_await *wait = kernel_await(run, NULL);
    struct json payload = one_member(w, "id", json_string(arena_copy(&w->arena, str_from(id))));
    INVARIANT(json_put(&w->arena, &payload, STR("event"), json_string(arena_copy(&w->arena, wait->name))));
    if (wait->correlation.len > 0)
        INVARIANT(json_put(&w->arena, &payload, STR("correlation"), json_string(arena_copy(&w->arena, wait->correlation))));
    return payload;
}

// A run in the queue is let in, once or twice.
static bool admit(struct world *w, const struct model_run *model)
{
    if (!run_queued(model->shadow)) return false;
    for (uint32_t left = 1 + choice_pick(w->choice, STREAM_CLIENT, 2); left > 0 && !w->died; left--) {
        struct error err = {0};
        enum code rc = engine_admit(w->engine, STR("default"), model->ids.run, &err);
        world_trace(w, "admit %.*s: %s", STR_ARG(model->ids.run), code_name(rc));
        if (rc == E_IO)
            w->died = true;
        else if (rc)
            checker_fail(&w->checker, "K2", "engine_admit: %s", err.message);
    }
    return true;
}

bool client_answer(struct world *w)
{
    bool answered = false;
    for (size_t i = 0; i < w->checker.run_count; i++) {
        const struct model_run *model = w->checker.runs[i];
        if (model->terminal || model->events.count == 0) continue;
        struct str step = {0};
        if (admit(w, model)) {
            answered = true;
            continue;
        }
        enum signal_type type = wanted(w, model, &step);
        if (type == SIGNAL_NONE) continue;
        if (type == SIGNAL_RESUME || model->shadow->status == RUN_STATUS_PENDING) step = (struct str){0};
        struct sent_signal *sent = new_signal(w, model->ids.run, type, step);
        if (!sent) return false;
        if (type == SIGNAL_DELIVER_EVENT) sent->signal.payload = event_for(w, model->shadow, sent->id);
        send_now(w, sent);
        answered = true;
    }
    return answered;
}

void client_check(struct world *w)
{
    for (size_t i = 0; i < w->sent_count; i++) {
        const struct sent_signal *sent = &w->sent[i];
        if (!sent->posted) continue;
        const struct model_run *run = checker_run(&w->checker, sent->run);
        bool decided = false;
        for (size_t k = 0; run && k < run->ledger.count; k++)
            decided = decided || str_eq(run->ledger.items[k].signal_id, sent->signal.id);
        if (!decided)
            checker_fail(&w->checker, "I23", "%.*s: signal %s %s was posted and never decided", STR_ARG(sent->run),
                         signal_name(sent->signal.type), sent->id);
    }
}
