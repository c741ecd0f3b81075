// What a run's log tells, with the logs of its child runs: steps, attempts, values, in the order they happened.
#include "trial/inside.h"

#include "program/net.h"

#include <stdarg.h>
#include <stdio.h>

struct reading {
    struct story *story;
    struct store *store;
    struct str tenant;
    uint32_t run;
    struct error *err;
};

struct str trial_format(struct arena *arena, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct str copy = arena_copy(arena, str_from(text));
    return copy.ptr ? copy : STR("");
}

struct str json_line(struct arena *arena, const struct json *value)
{
    struct buf text = buf_of((size_t)64 << 20);
    json_canon(&text, value);
    struct str copy = buf_keep(&text, arena);
    return copy.ptr ? copy : STR("");
}

// ---- steps

static struct story_step *step_for(struct story *story, uint32_t run, struct str step)
{
    struct story_run *owner = &story->runs[run];
    struct buf key SCOPED(buf_release) = buf_of(4096);
    buf_printf(&key, "%.*s%.*s", STR_ARG(owner->prefix), STR_ARG(step));
    uint32_t at = map_get(&story->index, buf_str(&key));
    struct story_step *found = at == MAP_NONE ? NULL : &story->steps[at];
    if (!found) {
        struct str path = arena_copy(story->arena, buf_str(&key));
        if (path.ptr && ARENA_ROOM(story->arena, story->steps, story->step_count, &story->step_capacity) &&
            map_put(&story->index, path, (uint32_t)story->step_count, NULL)) {
            found = &story->steps[story->step_count++];
            *found = (struct story_step){.path = path, .run = run, .status = STEP_STATUS_PENDING};
            found->step = path_step(owner->program, step);
            found->inner = owner->prefix.len > 0 || str_find(step, '[', 0) < step.len;
        }
    }
    return found;
}

static struct story_attempt *attempt_for(struct story *story, struct story_step *step, uint32_t logical)
{
    for (size_t i = step->attempt_count; i > 0; i--)
        if (step->attempts[i - 1].logical == logical) return &step->attempts[i - 1];
    if (!ARENA_ROOM(story->arena, step->attempts, step->attempt_count, &step->attempt_capacity)) return NULL;
    struct story_attempt *attempt = &step->attempts[step->attempt_count++];
    *attempt = (struct story_attempt){.logical = logical};
    return attempt;
}

static enum code fetch_value(struct reading *r, const struct moment *m, struct json *out)
{
    struct str bytes;
    *out = m->value;
    if (!m->has_blob) return OK;
    enum code rc = store_blob(r->store, &m->blob, r->story->arena, &bytes, r->err);
    return rc ? rc : json_parse(bytes, &json_limits_result, r->story->arena, out, r->err);
}

static enum code take_step(struct reading *r, const struct moment *m)
{
    struct story *story = r->story;
    struct story_run *run = &story->runs[r->run];
    struct story_step *step = step_for(story, r->run, m->step);
    if (!step) return error_nomem(r->err);
    if (run->program->net && (m->task.len || m->iteration)) return OK; // its tasks have stories of their own
    struct story_attempt *attempt = NULL;
    bool start = m->kind == MOMENT_STEP_STARTED || m->kind == MOMENT_STEP_REDISPATCHED;
    bool failure = m->kind == MOMENT_STEP_FAILED || m->kind == MOMENT_ATTEMPT_FAILED;
    if (start || failure || m->kind == MOMENT_STEP_COMPLETED) {
        attempt = attempt_for(story, step, run->program->net ? m->visit : m->logical);
        if (!attempt) return error_nomem(r->err);
    }
    if (start) {
        step->status = STEP_STATUS_RUNNING;
        if (step->started == 0) step->started = ++run->start_count;
        if (m->kind == MOMENT_STEP_STARTED) attempt->started_ms = m->at_ms;
    } else if (failure) {
        step->status = STEP_STATUS_FAILED;
        step->fault = attempt->fault = m->fault;
        attempt->ended = true;
        attempt->ended_ms = m->at_ms;
    } else if (m->kind == MOMENT_STEP_COMPLETED) {
        step->status = STEP_STATUS_SUCCESS;
        enum code rc = fetch_value(r, m, &step->value);
        if (rc) return rc;
        attempt->value = step->value;
        attempt->ended = attempt->ok = true;
        attempt->ended_ms = m->at_ms;
    } else if (m->kind == MOMENT_STEP_SKIPPED) {
        step->status = STEP_STATUS_SKIPPED;
        step->skip_reason = m->reason;
    }
    return OK;
}

// ---- runs

static enum code take_run(struct reading *r, const struct moment *m)
{
    struct story_run *run = &r->story->runs[r->run];
    if (m->start && run->start.document_sha256.len == 0) {
        run->queued_ms = m->at_ms;
        run->start = *m->start;
        run->start.parts = (struct json){0};
        if (!start_keep(r->story->arena, &run->start, NULL, 0)) return error_nomem(r->err);
    }
    switch ((int)m->kind) {
    case MOMENT_RUN_QUEUED:
        run->status = RUN_STATUS_PENDING;
        break;
    case MOMENT_RUN_APPROVED:
        run->status = RUN_STATUS_APPROVED;
        break;
    case MOMENT_RUN_STARTED:
    case MOMENT_RUN_RESUMED:
        run->status = RUN_STATUS_RUNNING;
        break;
    case MOMENT_RUN_PAUSED:
        run->status = RUN_STATUS_PAUSED;
        break;
    case MOMENT_RUN_COMPLETED:
        run->status = RUN_STATUS_COMPLETED;
        break;
    case MOMENT_RUN_FAILED:
        run->status = RUN_STATUS_FAILED;
        run->fault = m->fault;
        run->failed_step = m->reason;
        break;
    case MOMENT_RUN_CANCELLED:
        run->status = RUN_STATUS_CANCELLED;
        break;
    default:
        break;
    }
    if (!moment_is_terminal(m->kind)) return OK;
    run->ended = true;
    run->ended_ms = m->at_ms;
    return OK;
}

static bool keep_moment(struct arena *arena, const struct moment *from, struct moment *to)
{
    *to = *from;
    to->start = NULL;
    return fault_keep(arena, &to->fault) && json_keep(arena, &to->value) && json_keep(arena, &to->artifacts) &&
           ARENA_KEEP(arena, &to->step, &to->reason, &to->detail, &to->signal_id, &to->signal_type, &to->task,
                      &to->signal_step, &to->actor, &to->role, &to->decision_id, &to->run_ref);
}

static enum code visit(void *context, const struct record *record, const struct moment *m, const struct seal *seal)
{
    (void)seal;
    struct reading *r = context;
    struct story *story = r->story;
    if (!m || m->kind == MOMENT_UNKNOWN) return OK;
    if (!ARENA_ROOM(story->arena, story->events, story->event_count, &story->event_capacity))
        return error_nomem(r->err);
    struct story_event *event = &story->events[story->event_count++];
    *event = (struct story_event){.run = r->run, .seq = record->ledger_seq ? 0 : record->seq};
    if (!keep_moment(story->arena, m, &event->moment)) return error_nomem(r->err);
    enum code rc;
    if (m->task.len && m->has_blob) { // what the task gave
        rc = fetch_value(r, m, &event->moment.value);
        if (rc) return rc;
    }
    if (moment_is_step(m->kind)) {
        rc = take_step(r, &event->moment);
        const struct story_step *step = rc ? NULL : step_for(story, r->run, event->moment.step);
        if (step) event->path = step->path;
    } else {
        rc = take_run(r, m);
        if (m->kind == MOMENT_RUN_FAILED) { // take_run borrowed from the record
            story->runs[r->run].fault = event->moment.fault;
            story->runs[r->run].failed_step = event->moment.reason;
        }
    }
    return rc;
}

static enum code read_run(struct reading *r, struct str id, struct str prefix, const struct program *program)
{
    struct story *story = r->story;
    struct run_head head;
    enum code rc = store_head(r->store, r->tenant, id, story->arena, &head, r->err);
    if (rc) return rc;
    if (!ARENA_ROOM(story->arena, story->runs, story->run_count, &story->run_capacity)) return error_nomem(r->err);
    r->run = (uint32_t)story->run_count;
    story->runs[story->run_count++] = (struct story_run){.id = head.ids.run,
                                                         .prefix = prefix,
                                                         .program = program,
                                                         .vocabulary = head.vocabulary,
                                                         .status = RUN_STATUS_PENDING};
    return store_replay(r->store, r->tenant, id, visit, r, r->err);
}

static const struct program *child_of(const struct program *program, const struct moment *m)
{
    const struct program_step *step = path_step(program, m->step);
    if (!step || !program->net) return step ? step->child : NULL;
    const struct net_step *net = &program->net->steps[step - program->steps];
    for (uint32_t i = 0; i < net->task_count; i++)
        if (str_eq(net->tasks[i].label, m->task)) return net->tasks[i].child;
    return NULL;
}

// Child runs of the run that was just read, in the order in which they were started.
static enum code read_children(struct reading *r, uint32_t parent, size_t from, size_t to)
{
    struct story *story = r->story;
    enum code rc = OK;
    for (size_t i = from; !rc && i < to; i++) {
        const struct story_event *event = &story->events[i];
        const struct moment *m = &event->moment;
        const struct program *program = story->runs[parent].program;
        bool begins = m->kind == (program->net ? MOMENT_ATTEMPT_STARTED : MOMENT_STEP_STARTED);
        if (event->run != parent || !begins || m->run_ref.len == 0) continue;
        const struct program *child = child_of(program, m);
        if (!child) continue;
        struct str path = program->net ? task_path(story->arena, story->runs[parent].prefix, m) : event->path;
        struct str prefix = m->logical > 1 ? trial_format(story->arena, "%.*s#%u/", STR_ARG(path), m->logical)
                                           : trial_format(story->arena, "%.*s/", STR_ARG(path));
        size_t first = story->event_count;
        rc = read_run(r, m->run_ref, prefix, child);
        if (rc == E_NOT_FOUND) { // it never got so far
            *r->err = (struct error){0};
            rc = OK;
            continue;
        }
        if (!rc) rc = read_children(r, r->run, first, story->event_count);
    }
    return rc;
}

enum code story_read(struct store *store, struct str tenant, struct str run, const struct program *program,
                     struct arena *arena, struct story *out, struct error *err)
{
    *out = (struct story){.arena = arena};
    map_init(&out->index, arena);
    struct reading reading = {.story = out, .store = store, .tenant = tenant, .err = err};
    enum code rc = read_run(&reading, run, STR(""), program);
    return rc ? rc : read_children(&reading, 0, 0, out->event_count);
}

const struct story_step *story_find(const struct story *story, struct str path)
{
    uint32_t at = map_get(&story->index, path);
    return at == MAP_NONE ? NULL : &story->steps[at];
}
