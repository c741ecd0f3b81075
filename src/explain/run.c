// The answer about a run: why it is not finished, or why it ended as it did, root cause first.
#include "explain/inside.h"

enum { SHOWN_MAX = 20 };

static void put_counts(struct maker *m, struct json *out)
{
    const struct run *run = m->e->run;
    uint32_t failed = run->counts.failed - (run->status == RUN_STATUS_CANCELLED ? run->stopped : 0);
    struct json counts = JSON_OF(m->arena, {"total", json_int(run->counts.total)},
                                 {"done", json_int(run->counts.completed)}, {"failed", json_int(failed)},
                                 {"skipped", json_int(run->counts.skipped)}, {"inFlight", json_int(run->in_flight)},
                                 {"retrying", json_int(run->delayed)}, {"held", json_int(run->held)});
    JSON_ADD(m->arena, out, {"counts", counts});
}

static void put_step_line(struct maker *m, struct json *list, const struct view_of_step *v)
{
    struct str verdict = verdict_told(m, v);
    struct json item = JSON_OF(m->arena, {"step", json_some(v->path)},
                               {"state", json_name(explain_state_name(v->state))}, {"reason", json_name(v->reason)},
                               AT(state_place(v)), VERDICT(m, verdict));
    json_append(m->arena, list, item);
}

// Steps that keep the run from its end, or gave it the end it has; what went wrong comes first.
static bool matters(const struct run *run, enum explain_state state, int pass)
{
    bool no_step_completed = run->status == RUN_STATUS_FAILED && run->failed_step.len == 0;
    switch (state) {
    case STATE_FAILED:
    case STATE_HELD:
        return pass == 0;
    case STATE_APPROVAL:
    case STATE_RETRYING:
    case STATE_CANCELLED:
        return pass == 1;
    case STATE_RUNNING:
    case STATE_QUEUED:
        return pass == 2;
    case STATE_SKIPPED:
        return pass == 2 && no_step_completed;
    case STATE_WAITING:
    case STATE_NOT_RUN:
        return pass == 3 && run->status != RUN_STATUS_COMPLETED;
    case STATE_FIRST_UNUSED:
    case STATE_DONE:
    case STATE_REUSED:
        return false;
    }
    return false;
}

static void put_steps(struct maker *m, struct json *out)
{
    const struct run *run = m->e->run;
    struct json list = json_array();
    struct view_of_step v;
    int64_t omitted = 0;
    bool rooted = run->failed_step.len > 0 && look_at(m->e, run->failed_step, &v);
    if (rooted) put_step_line(m, &list, &v);
    for (int pass = 0; pass < 4; pass++) {
        struct str path;
        for (size_t cursor = 0; (path = explain_path(m->e, &cursor, m->arena)).ptr;) {
            if (rooted && str_eq(path, run->failed_step)) continue;
            if (!look_at(m->e, path, &v) || !matters(run, v.state, pass)) continue;
            // Inside a loop only what happens in it now.
            if (v.ps->scope != PROGRAM_TOP && (!v.current || v.state == STATE_WAITING)) continue;
            if (list.count < SHOWN_MAX)
                put_step_line(m, &list, &v);
            else
                omitted++;
        }
    }
    JSON_ADD(m->arena, out, {"steps", list}, {"stepsLeftOut", json_nonzero(omitted)});
}

static void put_run_next(struct maker *m, struct json *out)
{
    const struct run *run = m->e->run;
    struct json list = json_array();
    struct str nothing = {"", 0}, path;
    if (run->status == RUN_STATUS_PAUSED && !run->cancelling) next_command(m, &list, "resume", nothing, "");
    if (run->status == RUN_STATUS_PENDING && run->start.requires_approval)
        next_command(m, &list, "approve", nothing, "");
    for (size_t cursor = 0; list.count < 6 && (path = explain_path(m->e, &cursor, m->arena)).ptr;) {
        struct view_of_step v;
        if (run_status_terminal(run->status) || run->cancelling || !look_at(m->e, path, &v)) continue;
        if (v.state == STATE_APPROVAL) next_command(m, &list, "approve", path, "");
        if (v.state == STATE_HELD) next_command(m, &list, "retry", path, "");
        if (v.state == STATE_HELD) next_command(m, &list, "skip", path, " --reason WHY");
        if (v.state == STATE_RUNNING && v.note->child_run.len > 0) next_why(m, &list, v.note->child_run);
    }
    struct view_of_step root;
    if (run->failed_step.len > 0 && look_at(m->e, run->failed_step, &root)) {
        next_command(m, &list, "why", run->failed_step, "");
        if (root.note && root.note->child_run.len > 0) next_why(m, &list, root.note->child_run);
    }
    if (run->status == RUN_STATUS_FAILED || run->status == RUN_STATUS_CANCELLED)
        next_command(m, &list, "retry", nothing, "");
    JSON_ADD(m->arena, out, {"next", json_filled(list)});
}

enum code explain_run(const struct explain *e, int64_t now_ms, struct arena *arena, struct json *out, struct error *err)
{
    struct maker m = {.e = e, .arena = arena, .now_ms = now_ms};
    const char *reason = "";
    struct str verdict = run_verdict_told(&m, &reason);
    struct json signals = json_array();
    *out = JSON_OF(arena, {"runId", json_some(e->run->ids.run)},
                   {"at", JSON_OF(arena, {"seq", json_count(e->seq)}, {"time", json_time_some(arena, e->at_ms)})},
                   {"runStatus", json_name(run_status_name(e->run->status))},
                   {"substatus", json_name(run_substatus(e->run))}, {"reason", json_name(reason)},
                   VERDICT(&m, verdict), AT(e->end));
    if (str_is(e->run->start.trigger_source, "schedule"))
        JSON_ADD(arena, out, {"triggerSource", json_word("schedule")},
                 {"triggeredBy", json_some(e->run->start.triggered_by)});
    put_proof(&m, out, e->checked, e->reproduced, e->doubt);
    put_counts(&m, out);
    JSON_ADD(m.arena, out, {"error", e->run->fault.code.len > 0 ? fault_json(&m, &e->run->fault) : json_none()},
             {"failedStep", json_some(e->run->failed_step)});
    put_steps(&m, out);
    put_pause(&m, out);
    put_present(&m, out, NULL);
    for (size_t i = 0; i < e->signal_count; i++) json_append(arena, &signals, signal_json(&m, &e->signals[i]));
    JSON_ADD(m.arena, out, {"signals", json_filled(signals)});
    if (now_ms > 0) put_run_next(&m, out);
    return m.failed ? error_nomem(err) : json_made(out, err);
}
