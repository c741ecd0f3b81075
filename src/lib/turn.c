// Turning the engine: by its own thread, by the host's loop, or by a caller that waits. And what it reports on the way.
#include "lib/inside.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOREVER_MS INT64_C(315360000000) // ten years
enum { POLL_MS = 50 };

struct moment_in_time lib_now(const struct cairn *cairn)
{
    struct moment_in_time now = os_now();
    if (cairn->options.now) cairn->options.now(cairn->options.context, &now.wall_ms, &now.mono_ms);
    return now;
}

int64_t until_of(int64_t timeout_ms)
{
    return os_now().mono_ms + (timeout_ms >= 0 && timeout_ms < FOREVER_MS ? timeout_ms : FOREVER_MS);
}

// ---- what the engine reports, inside

static bool is_ours(const struct cairn *cairn, const struct run_ids *ids)
{
    return str_eq(ids->tenant, cairn->tenant);
}

static void add_note(struct cairn *cairn, const struct notice *like, struct str run, struct str step, struct str line)
{
    struct notice *note = calloc(1, sizeof(*note) + run.len + step.len + line.len + 3);
    if (!note) return; // hooks are for the eye; the log has it all
    *note = *like;
    char *at = note->text;
    const struct {
        struct str text;
        const char **place;
    } parts[] = {{run, &note->run}, {step, &note->step}, {line, &note->line}};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        *parts[i].place = at;
        if (parts[i].text.len > 0) memcpy(at, parts[i].text.ptr, parts[i].text.len);
        at += parts[i].text.len + 1;
    }
    *cairn->last_note = note;
    cairn->last_note = &note->next;
}

static void on_event(void *context, const struct engine_event *event)
{
    struct cairn *cairn = context;
    if (!is_ours(cairn, &event->state->ids)) return;
    bool ended = moment_is_terminal(event->moment->kind);
    for (struct waiter *waiter = cairn->waiters; waiter; waiter = waiter->next) {
        if (!str_eq(waiter->run, event->run)) continue;
        waiter->stored = true;
        waiter->ended = waiter->ended || ended;
        waiter->status = event->state->status;
        pthread_cond_signal(&waiter->changed);
    }
    if (!ended || !cairn->options.ended) return;
    struct notice like = {.kind = NOTE_ENDED, .status = event->state->status};
    add_note(cairn, &like, event->run, STR(""), STR(""));
}

static void copy_str(char *out, size_t size, struct str text)
{
    size_t len = str_head(text, size - 1).len;
    if (len > 0) memcpy(out, text.ptr, len);
    out[len] = '\0';
}

static void on_decision(void *context, const struct engine_decision *decision)
{
    struct cairn *cairn = context;
    for (struct waiter *waiter = cairn->waiters; waiter; waiter = waiter->next) {
        if (waiter->signal.len == 0 || !str_eq(waiter->signal, decision->signal_id)) continue;
        struct cairn_decision *out = waiter->decision;
        out->accepted = decision->accepted;
        out->duplicate = decision->duplicate;
        out->seq = decision->seq;
        copy_str(out->code, sizeof(out->code), decision->error_code);
        copy_str(out->message, sizeof(out->message), decision->error_message);
        copy_str(out->new_run, sizeof(out->new_run), decision->new_run);
        waiter->decided = true;
        pthread_cond_signal(&waiter->changed);
    }
}

static void on_output(void *context, struct str run, struct str step, bool is_stderr, struct str line)
{
    struct cairn *cairn = context;
    struct notice like = {.kind = NOTE_OUTPUT, .is_stderr = is_stderr};
    add_note(cairn, &like, run, step, line);
}

static void on_refused(void *context, const struct engine_refusal *refusal)
{
    struct cairn *cairn = context;
    for (struct waiter *waiter = cairn->waiters; waiter; waiter = waiter->next) {
        if (!str_eq(waiter->run, refusal->run) || waiter->stored) continue;
        waiter->refused = *refusal->why;
        pthread_cond_signal(&waiter->changed);
    }
}

struct engine_observer lib_observer(struct cairn *cairn)
{
    return (struct engine_observer){.context = cairn,
                                    .event = on_event,
                                    .decision = on_decision,
                                    .output = cairn->options.output ? on_output : NULL,
                                    .refused = on_refused};
}

struct notice *take_notes(struct cairn *cairn)
{
    struct notice *notes = cairn->notes;
    cairn->notes = NULL;
    cairn->last_note = &cairn->notes;
    return notes;
}

void tell_notes(struct cairn *cairn, struct notice *notes)
{
    const struct cairn_options *options = &cairn->options;
    while (notes) {
        struct notice *note = notes;
        notes = note->next;
        if (note->kind == NOTE_ENDED)
            options->ended(options->context, note->run, (enum cairn_status)note->status);
        else
            options->output(options->context, note->run, note->step, note->is_stderr, note->line);
        free(note);
    }
}

// ---- one turn, inside

static void die(struct cairn *cairn, const struct error *err)
{
    cairn->dead = *err;
    os_log(LOG_ERROR, "the engine stops why=\"%s\"", err->message);
    for (struct waiter *waiter = cairn->waiters; waiter; waiter = waiter->next) pthread_cond_signal(&waiter->changed);
}

static enum code look_into_inbox(struct cairn *cairn, int64_t now_ms, struct error *err)
{
    if (now_ms < cairn->next_inbox_ms) return OK;
    cairn->next_inbox_ms = now_ms + (cairn->options.poll_ms > 0 ? (int64_t)cairn->options.poll_ms : POLL_MS);
    enum code rc = engine_poll(cairn->engine, err);
    if (rc != E_FULL && rc != E_LOCKED && rc != E_NOMEM) return rc;
    os_log(LOG_WARN, "inbox not read why=\"%s\"", err->message); // the next look may be luckier
    *err = (struct error){0};
    return OK;
}

void lib_turn(struct cairn *cairn, int64_t *wait_ms)
{
    *wait_ms = -1;
    if (cairn->dead.code != OK) return;
    if (cairn->fd >= 0) {
        uint64_t ignored;
        ssize_t got = read(cairn->fd, &ignored, sizeof(ignored)); // before the turn: what comes during it wakes again
        (void)got;
    }
    struct moment_in_time now = lib_now(cairn);
    struct error err = {0};
    bool worked = false;
    enum code rc = engine_turn(cairn->engine, now, &worked, &err);
    if (!rc) rc = look_into_inbox(cairn, now.mono_ms, &err);
    if (rc) {
        if (err.code == OK) error_set(&err, rc, "the turn failed");
        die(cairn, &err);
        return;
    }
    int64_t until = engine_deadline(cairn->engine);
    if (until > cairn->next_inbox_ms) until = cairn->next_inbox_ms;
    *wait_ms = worked || until <= now.mono_ms ? 0 : until - now.mono_ms;
}

void *lib_thread(void *context)
{
    struct cairn *cairn = context;
    struct visit visit;
    pthread_setname_np(pthread_self(), "cairn-engine");
    while (!atomic_load(&cairn->stop)) {
        struct error err = {0};
        int64_t wait_ms = -1;
        if (visit_engine(cairn, &visit, &err)) break; // dead
        lib_turn(cairn, &wait_ms);
        struct notice *notes = take_notes(cairn);
        visit_end(cairn, &visit);
        tell_notes(cairn, notes);
        if (wait_ms > 0) engine_wait(cairn->engine, os_now().mono_ms + wait_ms);
    }
    return NULL;
}

// ---- waiting

bool may_wait(const struct cairn *cairn)
{
    bool self = cairn->threaded && pthread_equal(cairn->thread, pthread_self());
    return !self && atomic_load(&cairn->inside) != (unsigned long)pthread_self();
}

void waiter_add(struct cairn *cairn, struct waiter *waiter)
{
    os_condition(&waiter->changed);
    waiter->next = cairn->waiters;
    cairn->waiters = waiter;
}

void waiter_remove(struct cairn *cairn, struct waiter *waiter)
{
    struct waiter **at = &cairn->waiters;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
    pthread_cond_destroy(&waiter->changed);
}

static bool is_changed(const struct waiter *waiter)
{
    return waiter->stored || waiter->ended || waiter->decided || waiter->refused.code != OK;
}

// Nobody else turns the engine: the one who waits does.
static void turn_and_wait(struct cairn *cairn, struct visit *visit, const struct waiter *waiter, int64_t until_ms)
{
    int64_t wait_ms;
    lib_turn(cairn, &wait_ms);
    struct notice *notes = take_notes(cairn);
    bool changed = is_changed(waiter);
    visit_end(cairn, visit);
    tell_notes(cairn, notes);
    int64_t left = until_ms - os_now().mono_ms;
    if (wait_ms < 0 || wait_ms > left) wait_ms = left;
    if (wait_ms > POLL_MS) wait_ms = POLL_MS; // another thread may turn it for us
    struct pollfd poll_fd = {.fd = cairn->fd, .events = POLLIN};
    if (!changed && wait_ms > 0) (void)poll(&poll_fd, 1, (int)wait_ms);
    visit_enter(cairn, visit);
}

void waiter_wait(struct cairn *cairn, struct visit *visit, struct waiter *waiter, int64_t until_ms)
{
    if (!cairn->threaded) {
        turn_and_wait(cairn, visit, waiter, until_ms);
        return;
    }
    atomic_store(&cairn->inside, 0);
    os_wait_until(&waiter->changed, &cairn->mutex, until_ms);
    atomic_store(&cairn->inside, (unsigned long)pthread_self());
}

// ---- for the host's loop

enum cairn_code cairn_turn(struct cairn *cairn, int64_t *wait_ms, struct cairn_error *error)
{
    struct error err = {0};
    struct visit visit;
    int64_t wait = -1;
    if (cairn->threaded) return refuse(error, E_CONFLICT, "the engine has a thread of its own (CAIRN_NO_THREAD)");
    enum code rc = call_begin(cairn, &err);
    if (rc) return tell(error, rc, &err, NULL);
    rc = visit_engine(cairn, &visit, &err);
    if (!rc) {
        lib_turn(cairn, &wait);
        rc = cairn->dead.code;
        err = cairn->dead;
        struct notice *notes = take_notes(cairn);
        visit_end(cairn, &visit);
        tell_notes(cairn, notes);
    }
    call_end(cairn);
    if (wait_ms) *wait_ms = wait;
    return tell(error, rc, &err, NULL);
}

int cairn_fd(const struct cairn *cairn)
{
    return cairn->fd;
}
