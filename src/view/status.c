// RunStatusSnapshot (WE-2.1.2): what getRunStatus answers, in one small object.
#include "view/internal.h"

#include "base/civil.h"
#include "contract/profile.h"

static const struct step_view *find_held(const struct run_view *view, bool *held)
{
    for (size_t i = 0; i < view->step_count; i++) {
        *held = view->steps[i].held;
        if (view->steps[i].held || view->steps[i].retrying) return &view->steps[i];
    }
    return NULL;
}

static uint32_t in_flight(const struct run_view *view)
{
    uint32_t count = 0;
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        count += step->status == STEP_STATUS_RUNNING && !step->gate && step->iteration == 0;
    }
    return count;
}

const char *view_status_detail(const struct run_view *view)
{
    const char *substatus = view_substatus(view);
    bool held;
    if (substatus[0] || view->status != RUN_STATUS_RUNNING) return substatus;
    return find_held(view, &held) ? "RETRYING" : "";
}

static void name_gates(const struct run_view *view, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        if (!step->gate || step->status != STEP_STATUS_RUNNING) continue;
        if (count < 3) buf_printf(out, "%s%.*s", count ? ", " : "", STR_ARG(step->id));
        count++;
    }
    if (count > 3) buf_printf(out, " and %u more", count - 3);
}

static void tell_running(const struct run_view *view, struct str substatus, struct buf *out)
{
    bool held;
    const struct step_view *step = find_held(view, &held);
    if (str_is(substatus, "RETRYING") && step)
        buf_printf(out,
                   held ? "step %.*s failed and waits for RETRY_STEP or SKIP_STEP" : "step %.*s will be tried again",
                   STR_ARG(step->id));
    if (!str_is(substatus, "WAITING_APPROVAL")) return;
    buf_text(out, "waiting for an approval: ");
    name_gates(view, out);
}

static void tell(const struct run_view *view, struct str substatus, struct buf *out)
{
    switch (view->status) {
    case RUN_STATUS_PENDING:
    case RUN_STATUS_APPROVED:
        buf_text(out, str_is(substatus, "WAITING_APPROVAL")    ? "waiting for the approval of its start"
                      : str_is(view->start.admission, "QUEUE") ? "in the queue"
                                                               : "");
        break;
    case RUN_STATUS_RUNNING:
        tell_running(view, substatus, out);
        break;
    case RUN_STATUS_PAUSED:
        if (str_is(substatus, "DRAINING"))
            buf_printf(out, "waiting for %u step%s in flight", in_flight(view), in_flight(view) == 1 ? "" : "s");
        else if (str_is(substatus, "WAITING_APPROVAL"))
            tell_running(view, substatus, out);
        else
            buf_add(out, view->pause_reason);
        break;
    case RUN_STATUS_FAILED:
        failure_told(out, view->failed_step, &view->fault);
        break;
    case RUN_STATUS_CANCELLED:
        buf_add(out, view->cancel_reason);
        break;
    case RUN_STATUS_COMPLETED:
        break;
    }
}

static bool put_time(struct arena *arena, struct json *out, const char *key, int64_t ms)
{
    char text[CIVIL_SIZE];
    if (ms == 0) return true;
    civil_format(ms, text);
    struct str kept = arena_copy(arena, str_from(text));
    return kept.ptr && json_put(arena, out, str_from(key), json_string(kept));
}

bool view_message(const struct run_view *view, struct str substatus, struct arena *arena, struct str *out)
{
    struct buf message;
    buf_init(&message, 4096);
    tell(view, substatus, &message);
    *out = message.len > 0 ? arena_copy(arena, buf_str(&message)) : (struct str){"", 0};
    bool ok = buf_ok(&message) && out->ptr;
    buf_release(&message);
    return ok;
}

bool view_status_json(const struct run_view *view, struct str live, struct arena *arena, struct json *out)
{
    enum { MEMBERS = 6 };
    struct str substatus = live.len > 0 ? live : str_from(view_status_detail(view)), told;
    bool ok = view_message(view, substatus, arena, &told) && json_object_with(arena, MEMBERS, out);
    bool terminal = run_status_terminal(view->status);
    ok = ok && put_time(arena, out, "completedAt", terminal ? view->ended_ms : 0);
    if (ok && told.len > 0) ok = json_put(arena, out, STR("message"), json_string(told));
    ok = ok && json_put(arena, out, STR("runId"), json_string(view->ids.run)) &&
         put_time(arena, out, "startedAt", view->started_ms) &&
         json_put(arena, out, STR("status"), json_string(str_from(run_status_name(view->status))));
    if (ok && substatus.len > 0) ok = json_put(arena, out, STR("substatus"), json_string(substatus));
    return ok;
}

// Canonical, or "<provider>/<VALUE>" (WE-2.1.2h).
bool substatus_valid(struct str text)
{
    static const char *const canonical[] = {"DRAINING", "RETRYING", "CONTINUE_AS_NEW", "WAITING_APPROVAL",
                                            "RECOVERING"};
    for (size_t i = 0; i < ARRAY_COUNT(canonical); i++)
        if (str_is(text, canonical[i])) return true;
    struct str value;
    struct str provider = str_cut(text, '/', &value);
    return provider_parse(provider) != 0 && value.len > 0;
}
