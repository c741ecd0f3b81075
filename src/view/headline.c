// What is going on with a run, in one sentence for lists and in its parts for those who format it themselves.
//
//   {state, text, detail?, by?, role?, due?, parts: [{state, step, count?, attempt?, attempts?, code?, due?}]}
//
// Only `detail` holds what people or programs wrote: a reader who may not see that gets the rest all the same (src/api/redact.c).
#include "view/internal.h"

#include "json/make.h"

enum { DETAIL_MAX = 240 };

// What steps are doing, by what a reader has to know first.
enum doing { DOING_HELD, DOING_GATE, DOING_AGAIN, DOING_RUN, DOING_EVENT, DOING_COUNT };
static const struct {
    const char *state, *one, *many, *role;
} doings[DOING_COUNT] = {
    [DOING_HELD] = {"held", "failed and waits for a person", "failed and wait for a person", "Engineer"},
    [DOING_GATE] = {"approval", "waits for a person", "wait for a person", "Operator"},
    [DOING_AGAIN] = {"retrying", "is tried again", "are tried again", NULL},
    [DOING_RUN] = {"running", "runs", "run", NULL},
    [DOING_EVENT] = {"event", "waits for an event", "wait for an event", NULL},
};

struct group {
    const struct step_view *first;
    uint32_t count;
};

static enum doing doing_of(const struct step_view *step)
{
    if (step->held) return DOING_HELD;
    if (view_tried_again(step)) return DOING_AGAIN;
    if (step->status != STEP_STATUS_RUNNING) return DOING_COUNT;
    if (step->gate) return DOING_GATE;
    if (step->event) return DOING_EVENT;
    return step->around ? DOING_COUNT : DOING_RUN; // what runs in a loop is said, not the loop
}

static void gather(const struct run_view *view, struct group groups[DOING_COUNT])
{
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        enum doing doing = doing_of(step);
        if (doing == DOING_COUNT) continue;
        if (groups[doing].count++ == 0) groups[doing].first = step;
    }
}

// The first line that says something, without the colours of terminals and without what the other members say.
static struct json detail_json(struct arena *arena, struct str text)
{
    struct buf plain SCOPED(buf_release) = buf_of(64 * 1024);
    buf_unstyled(&plain, text);
    struct str line = {"", 0}, rest = buf_str(&plain);
    while (line.len == 0 && rest.len > 0) line = str_trim(str_cut(rest, '\n', &rest));
    if (str_starts(line, STR("exit "))) { // "exit 1: what it wrote last"
        struct str said, before = str_cut(line, ':', &said);
        int64_t code;
        if (said.len > 0 && str_int64(str_slice(before, sizeof("exit ") - 1, before.len), &code)) line = str_trim(said);
    }
    struct str copy = arena_copy(arena, str_head(line, DETAIL_MAX));
    return copy.ptr && buf_ok(&plain) ? json_some(copy) : json_failed();
}

static uint32_t attempts_of(const struct run_view *view, const struct step_view *step)
{
    const struct program_step *declared = view->program && !step->visit ? view_declared(view->program, step->id) : NULL;
    return declared ? declared->retry.max_attempts : 0;
}

static struct json part_json(const struct run_view *view, const char *state, const struct group *group, bool failed,
                             struct arena *arena)
{
    const struct step_view *step = group->first;
    uint32_t attempts = attempts_of(view, step);
    bool tells = attempts > 1 && !step->gate;
    return JSON_OF(arena, {"state", json_word(state)}, {"step", json_string(step->id)},
                   {"count", json_nonzero(group->count > 1 ? group->count : 0)},
                   {"attempt", json_nonzero(tells ? step->logical : 0)}, {"attempts", json_nonzero(tells ? attempts : 0)},
                   {"code", failed ? json_some(step->fault.code) : json_none()},
                   {"due", json_time_some(arena, step->due_ms)});
}

static void names_told(struct buf *out, const struct group *group)
{
    buf_add(out, group->first->id);
    if (group->count > 1) buf_printf(out, " and %u more", group->count - 1);
}

static void attempt_told(struct buf *out, const struct run_view *view, const struct step_view *step)
{
    uint32_t attempts = attempts_of(view, step);
    if (attempts > 1 && step->logical > 0 && !step->gate) buf_printf(out, " at attempt %u of %u", step->logical, attempts);
}

struct telling {
    const char *state;
    struct buf text;
    struct str detail, by;
    const char *role;
    int64_t due;
    struct json parts;
};

// What is under way. Names the loudest thing first, and all of them.
static void tell_steps(const struct run_view *view, struct telling *out, struct arena *arena)
{
    struct group groups[DOING_COUNT] = {0};
    gather(view, groups);
    for (int i = 0; i < DOING_COUNT; i++) {
        const struct group *group = &groups[i];
        if (group->count == 0) continue;
        bool failed = i == DOING_HELD || i == DOING_AGAIN;
        if (out->text.len > 0) buf_text(&out->text, "; ");
        names_told(&out->text, group);
        buf_printf(&out->text, " %s", group->count > 1 ? doings[i].many : doings[i].one);
        json_append(arena, &out->parts, part_json(view, doings[i].state, group, failed, arena));
        if (out->state) continue;
        out->state = doings[i].state;
        out->role = doings[i].role;
        out->due = i == DOING_RUN ? 0 : group->first->due_ms;
        if (failed) out->detail = group->first->fault.message;
    }
}

static void tell_failed(const struct run_view *view, struct telling *out, struct arena *arena)
{
    const struct step_view *step = view->failed_step.len ? view_step(view, view->failed_step) : NULL;
    out->state = "failed";
    out->detail = view->fault.message;
    if (!step) {
        buf_text(&out->text, view->failed_step.len ? "" : "failed");
        if (view->failed_step.len) buf_printf(&out->text, "%.*s failed", STR_ARG(view->failed_step));
        return;
    }
    buf_printf(&out->text, "%.*s failed", STR_ARG(step->id));
    attempt_told(&out->text, view, step);
    struct group group = {step, 1};
    json_append(arena, &out->parts, part_json(view, "failed", &group, true, arena));
}

static void tell_by(struct telling *out, const char *word, struct str actor, struct str reason)
{
    buf_text(&out->text, word);
    if (actor.len > 0) buf_printf(&out->text, " by %.*s", STR_ARG(actor));
    out->by = actor;
    out->detail = reason;
}

static void tell_paused(const struct run_view *view, struct telling *out, struct arena *arena)
{
    struct standing_in in = view_standing_in(view);
    bool drains = str_is(str_from(standing_of(&in).substatus), "DRAINING");
    tell_by(out, drains ? "is being paused" : "paused", view->pause_actor, view->pause_reason);
    out->state = "paused";
    if (drains) buf_printf(&out->text, "; %u in flight may end", in.busy);
    struct group groups[DOING_COUNT] = {0};
    gather(view, groups);
    for (int i = 0; i < DOING_COUNT; i++)
        if (groups[i].count > 0)
            json_append(arena, &out->parts, part_json(view, doings[i].state, &groups[i], i == DOING_HELD, arena));
}

static void tell_completed(const struct run_view *view, struct telling *out, struct arena *arena)
{
    struct group group = {0};
    for (size_t i = 0; i < view->step_count; i++) {
        if (view->steps[i].status != STEP_STATUS_FAILED) continue;
        if (group.count++ == 0) group.first = &view->steps[i];
    }
    if (group.count == 0) return;
    out->state = "done";
    out->detail = group.first->fault.message;
    buf_text(&out->text, "completed although ");
    names_told(&out->text, &group);
    buf_text(&out->text, " failed");
    json_append(arena, &out->parts, part_json(view, "failed", &group, true, arena));
}

static void tell(const struct run_view *view, struct telling *out, struct arena *arena)
{
    if (view->cancelling && !run_status_terminal(view->status)) {
        out->state = "cancelled";
        tell_by(out, "is being cancelled", view->cancel_actor, view->cancel_reason);
        return;
    }
    switch (view->status) {
    case RUN_STATUS_PENDING:
    case RUN_STATUS_APPROVED:
        out->state = view->start.requires_approval && view->status == RUN_STATUS_PENDING ? "approval" : "waiting";
        out->role = str_is(str_from(out->state), "approval") ? "Operator" : NULL;
        buf_text(&out->text, out->role                                   ? "its start waits for a person"
                             : str_is(view->start.admission, "QUEUE") ? "waits in its queue"
                                                                      : "has not started");
        return;
    case RUN_STATUS_RUNNING:
        tell_steps(view, out, arena);
        return;
    case RUN_STATUS_PAUSED:
        tell_paused(view, out, arena);
        return;
    case RUN_STATUS_FAILED:
        tell_failed(view, out, arena);
        return;
    case RUN_STATUS_CANCELLED:
        out->state = "cancelled";
        tell_by(out, "cancelled", view->cancel_actor, view->cancel_reason);
        return;
    case RUN_STATUS_COMPLETED:
        tell_completed(view, out, arena);
        return;
    }
}

bool view_headline(const struct run_view *view, struct arena *arena, struct json *out)
{
    struct telling told = {.text = buf_of(64 * 1024), .parts = json_array()};
    tell(view, &told, arena);
    struct str text = arena_copy(arena, buf_str(&told.text));
    bool ok = buf_ok(&told.text) && (text.ptr || told.text.len == 0);
    buf_release(&told.text);
    *out = json_null();
    if (!ok || !told.state) return ok;
    *out = JSON_OF(arena, {"state", json_word(told.state)}, {"text", json_string(text)}, {"detail", detail_json(arena, told.detail)},
                   {"by", json_some(told.by)}, {"role", json_name(told.role ? told.role : "")}, {"due", json_time_some(arena, told.due)},
                   {"parts", told.parts});
    return json_ok(out);
}
