// The product's loop around engine_turn: wait, look into the inbox, turn.
#include "engine/permits.h"

int64_t engine_deadline(const struct engine *engine)
{
    int64_t due = timers_deadline(engine);
    if ((engine->queue.count > 0 || engine->arrived || engine->puts) && engine->full_until_mono < due)
        due = engine->full_until_mono;
    int64_t aside = asides_deadline(engine);
    int64_t permit = permits_deadline(engine);
    if (permit < due) due = permit;
    return aside < due ? aside : due;
}

void engine_wait(struct engine *engine, int64_t until_mono_ms)
{
    mailbox_wait(&engine->mailbox, until_mono_ms);
}

void engine_wake(struct engine *engine)
{
    mailbox_wake(&engine->mailbox);
}

void engine_deliver(struct engine *engine, struct tool_result *result)
{
    mailbox_result(&engine->mailbox, result);
}

struct declared_files *engine_declared(struct engine *engine, uint64_t ticket)
{
    return mailbox_files(&engine->mailbox, ticket);
}

void engine_deliver_looked(struct engine *engine, struct tool_result *result, struct declared_files *files)
{
    mailbox_looked(&engine->mailbox, result, files);
}

void engine_line(struct engine *engine, uint64_t ticket, bool is_stderr, struct str line)
{
    mailbox_line(&engine->mailbox, ticket, is_stderr, line);
}

void engine_hold(struct engine *engine)
{
    engine->holding = true;
}

enum code engine_poll(struct engine *engine, struct error *err)
{
    return poll_inbox(engine, err);
}

static bool finished(struct engine *engine, const struct engine_loop *loop)
{
    if (loop->stop && *loop->stop) return true;
    if (engine->queue.count > 0 || engine->arrived || engine->puts) return false;
    if (engine->resident_count == 0) return true;
    if (!loop->exit_on_park) return false;
    struct engine_activity activity = engine_activity(engine);
    INVARIANT(activity.parked <= activity.resident);
    return activity.parked == activity.resident;
}

enum code engine_loop(struct engine *engine, const struct engine_loop *loop, struct error *err)
{
    int64_t poll = loop->poll_ms > 0 ? loop->poll_ms : 50;
    for (;;) {
        struct moment_in_time now = os_now();
        bool worked;
        enum code rc = engine_turn(engine, now, &worked, err);
        if (!rc && engine->now.mono_ms >= engine->next_inbox_mono) {
            engine->next_inbox_mono = engine->now.mono_ms + poll;
            rc = poll_inbox(engine, err);
            if (rc == E_FULL || rc == E_LOCKED || rc == E_NOMEM) { // the next look may be luckier
                os_log(LOG_WARN, "inbox not read why=\"%s\"", err->message);
                *err = (struct error){0};
                rc = OK;
            }
        }
        if (rc) return rc;
        if (loop->tick) loop->tick(loop->context, engine, now);
        if (finished(engine, loop)) return OK;
        if (worked || ((engine->queue.count > 0 || engine->puts) && now.mono_ms >= engine->full_until_mono)) continue;
        int64_t until = engine_deadline(engine);
        if (until > engine->next_inbox_mono) until = engine->next_inbox_mono;
        if (loop->tick && loop->tick_ms > 0 && until > now.mono_ms + loop->tick_ms) until = now.mono_ms + loop->tick_ms;
        engine_wait(engine, until);
    }
}
