// People and other processes: signals at any moment, again with the same id, directly or through the inbox of the store.
#include "sim/world.h"

#include <string.h>

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
                                   .payload = json_object()};
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
    static const enum signal_type types[] = {SIGNAL_PAUSE,     SIGNAL_RESUME,         SIGNAL_PAUSE,     SIGNAL_RESUME,
                                             SIGNAL_SKIP_STEP, SIGNAL_RETRY_STEP,     SIGNAL_APPROVE,   SIGNAL_REJECT,
                                             SIGNAL_CANCEL,    SIGNAL_EMERGENCY_STOP, SIGNAL_RETRY_RUN, SIGNAL_PAUSE,
                                             SIGNAL_SKIP_STEP, SIGNAL_APPROVE};
    return types[choice_pick(w->choice, STREAM_CLIENT, ARRAY_COUNT(types))];
}

static bool needs_step(enum signal_type type)
{
    return type == SIGNAL_SKIP_STEP || type == SIGNAL_RETRY_STEP;
}

void client_disturb(struct world *w)
{
    if (w->checker.run_count == 0) return;
    struct sent_signal *sent = NULL;
    if (w->sent_count > 0 && choice_pick(w->choice, STREAM_CLIENT, 4) == 3) {
        sent = &w->sent[choice_pick(w->choice, STREAM_CLIENT, (uint32_t)w->sent_count)];
    } else {
        const struct model_run *run =
            w->checker.runs[choice_pick(w->choice, STREAM_CLIENT, (uint32_t)w->checker.run_count)];
        if (run->events.count == 0) return;
        enum signal_type type = pick_type(w);
        if (type == SIGNAL_RETRY_RUN && (!run->terminal || w->checker.run_count > 8)) type = SIGNAL_PAUSE;
        struct str step = {0};
        if (needs_step(type))
            step = run->program->steps[choice_pick(w->choice, STREAM_CLIENT, run->program->top_count)].id;
        sent = new_signal(w, run->ids.run, type, step);
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
    const struct model_run *run =
        w->checker.runs[choice_pick(w->choice, STREAM_CLIENT, (uint32_t)w->checker.run_count)];
    if (run->events.count == 0) return;
    enum signal_type type = pick_type(w);
    if (type == SIGNAL_RETRY_RUN && (!retries || !run->terminal || w->checker.run_count > 8)) type = SIGNAL_PAUSE;
    struct str step = {0};
    if (needs_step(type)) step = run->program->steps[choice_pick(w->choice, STREAM_CLIENT, run->program->top_count)].id;
    struct sent_signal *sent = new_signal(w, run->ids.run, type, step);
    if (sent) send_now(w, sent);
}

// What the run waits for, if it waits for a person.
static enum signal_type wanted(struct world *w, const struct model_run *model, struct str *step)
{
    const struct run *run = model->shadow;
    bool no = !w->healing && choice_pick(w->choice, STREAM_CLIENT, 3) == 2;
    if (run->status == RUN_STATUS_PAUSED) return SIGNAL_RESUME;
    if (run->status == RUN_STATUS_PENDING) return no ? SIGNAL_REJECT : SIGNAL_APPROVE;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct program_step *ps = &run->program->steps[i];
        *step = ps->id;
        if (run->steps[i].state == NODE_HELD) return no ? SIGNAL_SKIP_STEP : SIGNAL_RETRY_STEP;
        if (run->steps[i].state == NODE_RUNNING && ps->kind == STEP_APPROVAL)
            return no ? SIGNAL_REJECT : SIGNAL_APPROVE;
    }
    return SIGNAL_NONE;
}

bool client_answer(struct world *w)
{
    bool answered = false;
    for (size_t i = 0; i < w->checker.run_count; i++) {
        const struct model_run *model = w->checker.runs[i];
        if (model->terminal || model->events.count == 0) continue;
        struct str step = {0};
        enum signal_type type = wanted(w, model, &step);
        if (type == SIGNAL_NONE) continue;
        if (type == SIGNAL_RESUME || model->shadow->status == RUN_STATUS_PENDING) step = (struct str){0};
        struct sent_signal *sent = new_signal(w, model->ids.run, type, step);
        if (!sent) return false;
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
