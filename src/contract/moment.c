#include "contract/internal.h"

enum { VOCABULARY_END = VOCABULARY_NODES + 1 };

struct moment_row {
    const char *name;
    const char *words[VOCABULARY_END];
};

static const struct moment_row rows[MOMENT_COUNT] = {[MOMENT_UNKNOWN] = {"UNKNOWN", {NULL}},
#define X(name, run, noetl, nodes) [MOMENT_##name] = {#name, {NULL, run, noetl, nodes}},
                                                     MOMENT_LIST(X)
#undef X
};

static const bool step_kinds[MOMENT_COUNT] = {
    [MOMENT_ADMIT_EVALUATED] = true, [MOMENT_STEP_SCHEDULED] = true,      [MOMENT_STEP_DELAYED] = true,
    [MOMENT_STEP_STARTED] = true,    [MOMENT_STEP_REDISPATCHED] = true,   [MOMENT_TASK_STARTED] = true,
    [MOMENT_ATTEMPT_STARTED] = true, [MOMENT_ATTEMPT_DONE] = true,        [MOMENT_ATTEMPT_FAILED] = true,
    [MOMENT_TASK_DECIDED] = true,    [MOMENT_TASK_DONE] = true,           [MOMENT_TASK_FAILED] = true,
    [MOMENT_LOOP_STARTED] = true,    [MOMENT_ITERATION_SCHEDULED] = true, [MOMENT_ITERATION_STARTED] = true,
    [MOMENT_ITERATION_DONE] = true,  [MOMENT_ITERATION_FAILED] = true,    [MOMENT_LOOP_DONE] = true,
    [MOMENT_RESULT_STORED] = true,   [MOMENT_MANIFEST_UPDATED] = true,    [MOMENT_STEP_COMPLETED] = true,
    [MOMENT_STEP_FAILED] = true,     [MOMENT_STEP_SKIPPED] = true,        [MOMENT_ROUTED] = true,
    [MOMENT_LATE_RESULT] = true,     [MOMENT_STEP_OVERDUE] = true,        [MOMENT_LIST_STARTED] = true,
    [MOMENT_CHILD_ENDED] = true,     [MOMENT_EVENT_AWAITED] = true,      [MOMENT_ATTEMPT_RESTS] = true,
};

static const char *const vocabulary_names[] = {
    [VOCABULARY_RUN] = "run", [VOCABULARY_NOETL] = "noetl", [VOCABULARY_NODES] = "nodes"};

static const char *const emitter_names[] = {[EMITTER_ENGINE] = "engine",
                                            [EMITTER_PLANNER] = "planner",
                                            [EMITTER_WORKER] = "activity-worker",
                                            [EMITTER_SYSTEM] = "system"};

static const char *const run_status_names[] = {
    [RUN_STATUS_PENDING] = "PENDING",     [RUN_STATUS_APPROVED] = "APPROVED",   [RUN_STATUS_RUNNING] = "RUNNING",
    [RUN_STATUS_PAUSED] = "PAUSED",       [RUN_STATUS_COMPLETED] = "COMPLETED", [RUN_STATUS_FAILED] = "FAILED",
    [RUN_STATUS_CANCELLED] = "CANCELLED",
};

static const char *const step_status_names[] = {[STEP_STATUS_PENDING] = "PENDING",
                                                [STEP_STATUS_RUNNING] = "RUNNING",
                                                [STEP_STATUS_SUCCESS] = "SUCCESS",
                                                [STEP_STATUS_FAILED] = "FAILED",
                                                [STEP_STATUS_SKIPPED] = "SKIPPED"};

// All enums start at 1 and 0 is the answer for "no such name".
static size_t find_name(const char *const *names, size_t count, struct str text)
{
    for (size_t i = 1; i < count; i++) {
        if (str_is(text, names[i])) return i;
    }
    return 0;
}

const char *vocabulary_name(enum vocabulary vocabulary)
{
    INVARIANT(vocabulary >= VOCABULARY_RUN && vocabulary <= VOCABULARY_NODES);
    return vocabulary_names[vocabulary];
}

enum vocabulary vocabulary_parse(struct str text)
{
    return (enum vocabulary)find_name(vocabulary_names, ARRAY_COUNT(vocabulary_names), text);
}

enum vocabulary vocabulary_of_document(struct str kind)
{
    if (str_is(kind, "playbook")) return VOCABULARY_NOETL;
    return str_is(kind, "nodes") ? VOCABULARY_NODES : VOCABULARY_RUN;
}

const char *moment_name(enum moment_kind kind)
{
    INVARIANT(kind < MOMENT_COUNT);
    return rows[kind].name;
}

const char *moment_word(enum moment_kind kind, enum vocabulary vocabulary)
{
    INVARIANT(kind < MOMENT_COUNT);
    INVARIANT(vocabulary >= VOCABULARY_RUN && vocabulary <= VOCABULARY_NODES);
    return rows[kind].words[vocabulary];
}

enum moment_kind moment_parse(struct str name)
{
    for (size_t i = MOMENT_UNKNOWN + 1; i < MOMENT_COUNT; i++) {
        if (str_is(name, rows[i].name)) return (enum moment_kind)i;
    }
    return MOMENT_UNKNOWN;
}

enum moment_kind moment_of_word(enum vocabulary vocabulary, struct str word)
{
    for (size_t i = MOMENT_UNKNOWN + 1; i < MOMENT_COUNT; i++) {
        const char *have = rows[i].words[vocabulary];
        if (have && str_is(word, have)) return (enum moment_kind)i;
    }
    return MOMENT_UNKNOWN;
}

bool moment_is_terminal(enum moment_kind kind)
{
    return kind == MOMENT_RUN_COMPLETED || kind == MOMENT_RUN_FAILED || kind == MOMENT_RUN_CANCELLED;
}

bool moment_is_step(enum moment_kind kind)
{
    INVARIANT(kind < MOMENT_COUNT);
    return step_kinds[kind];
}

const char *emitter_name(enum emitter emitter)
{
    INVARIANT(emitter >= EMITTER_ENGINE && emitter <= EMITTER_SYSTEM);
    return emitter_names[emitter];
}

enum emitter emitter_parse(struct str text)
{
    return (enum emitter)find_name(emitter_names, ARRAY_COUNT(emitter_names), text);
}

enum emitter moment_emitter(enum moment_kind kind)
{
    static const uint8_t emitters[MOMENT_COUNT] = {
        [MOMENT_RUN_APPROVED] = EMITTER_PLANNER,   [MOMENT_STEP_STARTED] = EMITTER_WORKER,
        [MOMENT_STEP_COMPLETED] = EMITTER_WORKER,  [MOMENT_STEP_FAILED] = EMITTER_WORKER,
        [MOMENT_ATTEMPT_FAILED] = EMITTER_WORKER,  [MOMENT_ATTEMPT_STARTED] = EMITTER_WORKER,
        [MOMENT_ATTEMPT_DONE] = EMITTER_WORKER,    [MOMENT_SIGNAL_ACCEPTED] = EMITTER_SYSTEM,
        [MOMENT_SIGNAL_REJECTED] = EMITTER_SYSTEM, [MOMENT_TASK_STARTED] = EMITTER_WORKER,
        [MOMENT_TASK_DECIDED] = EMITTER_WORKER,    [MOMENT_TASK_DONE] = EMITTER_WORKER,
        [MOMENT_TASK_FAILED] = EMITTER_WORKER,     [MOMENT_ITERATION_STARTED] = EMITTER_WORKER,
        [MOMENT_ITERATION_DONE] = EMITTER_WORKER,  [MOMENT_ITERATION_FAILED] = EMITTER_WORKER,
        [MOMENT_RESULT_STORED] = EMITTER_WORKER,   [MOMENT_MANIFEST_UPDATED] = EMITTER_WORKER,
    };
    INVARIANT(kind < MOMENT_COUNT);
    return emitters[kind] ? (enum emitter)emitters[kind] : EMITTER_ENGINE;
}

const char *run_status_name(enum run_status status)
{
    INVARIANT(status >= RUN_STATUS_PENDING && status <= RUN_STATUS_CANCELLED);
    return run_status_names[status];
}

enum run_status run_status_parse(struct str text)
{
    return (enum run_status)find_name(run_status_names, ARRAY_COUNT(run_status_names), text);
}

bool run_status_terminal(enum run_status status)
{
    return status == RUN_STATUS_COMPLETED || status == RUN_STATUS_FAILED || status == RUN_STATUS_CANCELLED;
}

void failure_told(struct buf *out, struct str step, const struct fault *fault)
{
    buf_printf(out, "failed%s%.*s: %.*s %.*s", step.len ? " at " : "", STR_ARG(step), STR_ARG(fault->code),
               STR_ARG(fault->message));
}

const char *step_status_name(enum step_status status)
{
    INVARIANT(status >= STEP_STATUS_PENDING && status <= STEP_STATUS_SKIPPED);
    return step_status_names[status];
}

enum step_status step_status_parse(struct str text)
{
    return (enum step_status)find_name(step_status_names, ARRAY_COUNT(step_status_names), text);
}
