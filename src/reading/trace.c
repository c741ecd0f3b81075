// A run as a trace: what the view has, and the tasks of a playbook, which only the log tells one by one.
#include "reading/reading.h"

#include "view/trace.h"

struct tracing {
    struct trace_tasks tasks;
    uint64_t at;
};

static enum code trace_record(void *context, const struct record *record, const struct moment *moment,
                              const struct seal *seal)
{
    (void)seal;
    struct tracing *tracing = context;
    bool later = record->ledger_seq == 0 && record->seq > tracing->at;
    if (!moment || later) return OK;
    return trace_task_fold(&tracing->tasks, moment) ? OK : E_NOMEM;
}

enum code reading_trace(struct store *store, const struct run_head *head, uint64_t at, const struct run_view *view,
                        struct arena *arena, struct json *out, struct error *err)
{
    struct tracing tracing = {.tasks = {.arena = arena}, .at = at};
    enum code rc = OK;
    if (head->vocabulary == VOCABULARY_NOETL)
        rc = store_replay(store, head->ids.tenant, head->ids.run, trace_record, &tracing, err);
    if (!rc && !trace_json(view, &tracing.tasks, arena, out)) rc = error_nomem(err);
    return rc;
}
