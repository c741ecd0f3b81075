#include "sim/checker.h"

#include "sim/workload.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void checker_init(struct checker *checker)
{
    memset(checker, 0, sizeof(*checker));
    arena_init(&checker->arena, 64 * 1024, (size_t)1 << 30);
    arena_init(&checker->scratch, 16 * 1024, (size_t)1 << 30);
}

void checker_release(struct checker *checker)
{
    for (size_t i = 0; i < checker->run_count; i++) {
        run_free(checker->runs[i]->shadow);
        if (checker->runs[i]->dumped_at > 0) buf_release(&checker->runs[i]->dump);
    }
    arena_release(&checker->arena);
    arena_release(&checker->scratch);
}

void checker_fail(struct checker *checker, const char *name, const char *format, ...)
{
    if (checker->failed) return;
    checker->failed = name;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(checker->message, sizeof(checker->message), format, arguments);
    va_end(arguments);
}

static void *grow(struct checker *checker, void *array, size_t count, size_t size, size_t *capacity)
{
    void *grown = arena_grow(&checker->arena, array, count, count + 1, size, capacity);
    INVARIANT(grown);
    return grown;
}

static struct str copy(struct checker *checker, struct str s)
{
    struct str kept = arena_copy(&checker->arena, s);
    INVARIANT(kept.ptr);
    return kept;
}

struct model_run *checker_run(const struct checker *checker, struct str run)
{
    for (size_t i = 0; i < checker->run_count; i++)
        if (str_eq(checker->runs[i]->ids.run, run)) return checker->runs[i];
    return NULL;
}

struct model_step *model_step(const struct model_run *run, struct str path)
{
    for (size_t i = 0; i < run->step_count; i++)
        if (str_eq(run->steps[i].path, path)) return &run->steps[i];
    return NULL;
}

static struct model_step *step_for(struct checker *checker, struct model_run *run, struct str path)
{
    struct model_step *found = model_step(run, path);
    if (found) return found;
    run->steps = grow(checker, run->steps, run->step_count, sizeof(*run->steps), &run->step_capacity);
    run->steps[run->step_count] = (struct model_step){.path = copy(checker, path)};
    return &run->steps[run->step_count++];
}

static bool is_known(const struct str *list, size_t count, struct str id)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(list[i], id)) return true;
    return false;
}

// ---- what the log may say

static void absorb_started(struct checker *checker, struct model_run *run, const struct moment *m, uint64_t seq,
                           bool past)
{
    struct model_step *step = step_for(checker, run, m->step);
    bool again = m->kind == MOMENT_STEP_REDISPATCHED;
    if (checker->visited && !past && (again || run->original_run.len == 0)) // a reused result is told as a start, too
        checker_fail(checker, "E3", "%.*s: a signal started %.*s in a run that nobody drives", STR_ARG(run->ids.run),
                     STR_ARG(m->step));
    if (run->paused)
        checker_fail(checker, "I25", "%.*s: %.*s started while the run was paused", STR_ARG(run->ids.run),
                     STR_ARG(m->step));
    if (step->state == NODE_SUCCESS)
        checker_fail(checker, "I12", "%.*s: %.*s had completed and was started again", STR_ARG(run->ids.run),
                     STR_ARG(m->step));
    if (again && (m->logical != step->logical || m->engine != step->engine + 1))
        checker_fail(checker, "I13", "%.*s: %.*s redispatched as %u.%u after %u.%u", STR_ARG(run->ids.run),
                     STR_ARG(m->step), m->logical, m->engine, step->logical, step->engine);
    if (!again && (m->logical <= step->logical || m->engine != 1))
        checker_fail(checker, "I13", "%.*s: %.*s started as %u.%u after %u.%u", STR_ARG(run->ids.run), STR_ARG(m->step),
                     m->logical, m->engine, step->logical, step->engine);
    if (again && step->outcome == m->logical)
        checker_fail(checker, "I14", "%.*s: %.*s redispatched after its outcome", STR_ARG(run->ids.run),
                     STR_ARG(m->step));
    step->logical = m->logical;
    step->engine = m->engine;
    step->ordered_seq = seq;
    step->state = NODE_RUNNING;
}

// A step that is a run of its own completes with the child of this attempt, not with one of an older attempt.
static void check_child(struct checker *checker, const struct model_run *run, const struct moment *m)
{
    char id[300];
    snprintf(id, sizeof(id), "%.*s.%.*s.%u", STR_ARG(run->ids.run), STR_ARG(m->step), m->logical);
    const struct model_run *child = checker_run(checker, str_from(id));
    if (!run_id_valid(str_from(id)) || (child && child->terminal && child->status == RUN_STATUS_COMPLETED)) return;
    checker_fail(checker, "I14", "%.*s: %.*s completed, its child %s did not", STR_ARG(run->ids.run), STR_ARG(m->step),
                 id);
}

// A list is told when every child of this attempt has ended; with all_success, when all of them completed.
static void check_list(struct checker *checker, const struct model_run *run, const struct json *how,
                       const struct moment *m)
{
    bool all = str_is(json_text(json_key(how, "join")), "all_success");
    for (uint32_t i = 0; i < json_key(how, "items")->count; i++) {
        char id[300];
        snprintf(id, sizeof(id), "%.*s.%.*s.%u.%u", STR_ARG(run->ids.run), STR_ARG(m->step), m->logical, i + 1);
        const struct model_run *child = checker_run(checker, str_from(id));
        if (child && child->terminal && (!all || child->status == RUN_STATUS_COMPLETED)) continue;
        checker_fail(checker, "I14", "%.*s: %.*s completed, its child %s did not", STR_ARG(run->ids.run),
                     STR_ARG(m->step), id);
    }
}

static void absorb_outcome(struct checker *checker, struct model_run *run, const struct moment *m)
{
    struct model_step *step = step_for(checker, run, m->step);
    bool skipped = m->kind == MOMENT_STEP_SKIPPED;
    if (step->outcome >= m->logical)
        checker_fail(checker, "I14", "%.*s: %.*s has a second outcome for attempt %u: %s", STR_ARG(run->ids.run),
                     STR_ARG(m->step), m->logical, moment_name(m->kind));
    if (!skipped && (step->state != NODE_RUNNING || step->logical != m->logical || step->engine != m->engine))
        checker_fail(checker, "I14", "%.*s: %.*s ended as %u.%u, in flight was %u.%u", STR_ARG(run->ids.run),
                     STR_ARG(m->step), m->logical, m->engine, step->logical, step->engine);
    step->outcome = m->logical;
    step->value_true = m->value.type == JSON_BOOL && m->value.boolean;
    step->skip_reason = skipped ? copy(checker, m->reason) : (struct str){0};
    switch ((int)m->kind) {
    case MOMENT_STEP_COMPLETED:
        step->state = NODE_SUCCESS;
        break;
    case MOMENT_STEP_SKIPPED:
        step->state = NODE_SKIPPED;
        break;
    case MOMENT_ATTEMPT_FAILED:
        step->state = NODE_HELD;
        break;
    default:
        step->state = NODE_FAILED;
        break;
    }
    uint32_t index = kernel_find(run->shadow, m->step);
    if (index == PROGRAM_TOP || m->kind != MOMENT_STEP_COMPLETED) return;
    step->given = model_given(checker, run, m);
    if (m->run_ref.len > 0 || step->given) return; // it came out elsewhere
    const struct json *list = json_key(&run->program->steps[index].with, "fanOut");
    if (list)
        check_list(checker, run, list, m);
    else if (run->program->steps[index].kind == STEP_SUBRUN)
        check_child(checker, run, m);
    if (run->program->steps[index].kind != STEP_LOOP) return;
    model_check_loop(checker, run, step, kernel_iteration(run->shadow, index), true);
}

static void absorb_signal(struct checker *checker, struct model_run *run, const struct moment *m)
{
    if (is_known(run->signals, run->signal_count, m->signal_id))
        checker_fail(checker, "I22", "%.*s: signal %.*s was decided twice", STR_ARG(run->ids.run),
                     STR_ARG(m->signal_id));
    run->signals = grow(checker, run->signals, run->signal_count, sizeof(struct str), &run->signal_capacity);
    run->signals[run->signal_count++] = copy(checker, m->signal_id);
    enum signal_type type = signal_parse(m->signal_type);
    if (m->kind == MOMENT_SIGNAL_ACCEPTED && (type == SIGNAL_CANCEL || type == SIGNAL_EMERGENCY_STOP))
        run->cancel_asked = true;
    if (m->kind == MOMENT_SIGNAL_ACCEPTED && type != SIGNAL_PAUSE && type != SIGNAL_RESUME) run->swayed = true;
}

static void absorb_pause(struct checker *checker, struct model_run *run, const struct moment *m, uint64_t seq)
{
    if (m->signal_id.len > 0 && is_known(run->applied, run->applied_count, m->signal_id)) // none: a fork goes on
        checker_fail(checker, "I22", "%.*s: signal %.*s was applied twice", STR_ARG(run->ids.run),
                     STR_ARG(m->signal_id));
    run->applied = grow(checker, run->applied, run->applied_count, sizeof(struct str), &run->applied_capacity);
    run->applied[run->applied_count++] = copy(checker, m->signal_id);
    bool pause = m->kind == MOMENT_RUN_PAUSED;
    if (run->paused == pause)
        checker_fail(checker, "I16", "%.*s: %s twice", STR_ARG(run->ids.run), moment_name(m->kind));
    run->paused = pause;
    run->paused_seq = seq;
}

// R1: what a run waits for is the same word, the same need and the same "goes on" for the kernel, for a view and for a list.
static void check_standing(struct checker *checker, const struct model_run *run, const struct moment *m)
{
    struct run_summary summary;
    engine_summary(run->shadow, &summary);
    struct standing_in in[] = {run_standing_in(run->shadow), view_standing_in(&run->view),
                               standing_stored(summary.status, str_from(summary.substatus), summary.cause[0])};
    struct standing kernel = standing_of(&in[0]);
    for (size_t i = 1; i < ARRAY_COUNT(in); i++) {
        struct standing other = standing_of(&in[i]);
        if (strcmp(kernel.substatus, other.substatus) == 0 && kernel.need == other.need &&
            kernel.goes_on == other.goes_on)
            continue;
        checker_fail(checker, "R1", "%.*s: after %s the kernel says \"%s\" %d %d, %s \"%s\" %d %d",
                     STR_ARG(run->ids.run), moment_name(m->kind), kernel.substatus, (int)kernel.need, kernel.goes_on,
                     i == 1 ? "a view" : "a list", other.substatus, (int)other.need, other.goes_on);
    }
}

static void absorb_moment(struct checker *checker, struct model_run *run, const struct moment *m, uint64_t seq)
{
    bool past = model_check_past(checker, run, m);
    model_segment(checker, run, m);
    if (run->net && m->kind != MOMENT_SIGNAL_ACCEPTED && m->kind != MOMENT_SIGNAL_REJECTED &&
        m->kind != MOMENT_RUN_PAUSED && m->kind != MOMENT_RUN_RESUMED) {
        net_model_absorb(checker, run, m, seq);
        return;
    }
    switch ((int)m->kind) {
    case MOMENT_RUN_STARTED:
        model_check_member(checker, run);
        break;
    case MOMENT_LIST_STARTED:
        model_list_started(checker, run, step_for(checker, run, m->step), m);
        break;
    case MOMENT_CHILD_ENDED:
        model_child_ended(checker, run, step_for(checker, run, m->step), m);
        break;
    case MOMENT_STEP_STARTED:
    case MOMENT_STEP_REDISPATCHED:
        absorb_started(checker, run, m, seq, past);
        break;
    case MOMENT_STEP_COMPLETED:
    case MOMENT_STEP_FAILED:
    case MOMENT_ATTEMPT_FAILED:
    case MOMENT_STEP_SKIPPED:
        absorb_outcome(checker, run, m);
        break;
    case MOMENT_STEP_DELAYED: // also a held failure that somebody wants tried again
        step_for(checker, run, m->step)->state = NODE_HELD;
        break;
    case MOMENT_ITERATION_STARTED:
        if (m->logical > 1) model_check_loop(checker, run, model_step(run, m->step), m->logical - 1, false);
        break;
    case MOMENT_SIGNAL_ACCEPTED:
    case MOMENT_SIGNAL_REJECTED:
        absorb_signal(checker, run, m);
        break;
    case MOMENT_RUN_PAUSED:
    case MOMENT_RUN_RESUMED:
        absorb_pause(checker, run, m, seq);
        break;
    case MOMENT_RUN_COMPLETED:
    case MOMENT_RUN_FAILED:
    case MOMENT_RUN_CANCELLED:
        model_check_end(checker, run, m);
        break;
    default:
        break;
    }
}

static bool decode_record(struct checker *checker, const struct model_run *run, const struct model_record *record,
                          struct moment *m, struct seal *seal)
{
    struct error err = {0};
    enum code rc;
    if (record->ledger)
        rc = contract_decode_ledger(record->bytes, &checker->scratch, m, &err);
    else
        rc = contract_decode(run->vocabulary, record->bytes, &checker->scratch, m, seal, NULL, &err);
    if (rc)
        checker_fail(checker, "I16", "%.*s: record %llu cannot be read: %s", STR_ARG(run->ids.run),
                     (unsigned long long)record->seq, err.message);
    return rc == OK;
}

// O1
static void check_outbox(struct checker *checker, struct model_run *run, const struct moment *m)
{
    struct str text = {0};
    if (run->outbox_count == 0) return;
    if (m) INVARIANT(contract_encode_ledger(m, &checker->scratch, &text, NULL) == OK);
    if (!m || !str_eq(text, run->outbox[0]))
        checker_fail(checker, "O1", "%.*s: the outbox has %.*s, and the log goes on with %.*s", STR_ARG(run->ids.run),
                     STR_ARG(run->outbox[0]), STR_ARG(m ? text : STR("something else")));
    run->outbox++;
    run->outbox_count--;
    run->outbox_capacity--;
}

void checker_outbox(struct checker *checker, const struct engine_outbox *news, bool may_lose)
{
    struct model_run *run = checker_run(checker, news->run);
    INVARIANT(run);
    if (news->what == OUTBOX_LOGGED && run->outbox_count > 0)
        checker_fail(checker, "O1", "%.*s: the outbox was emptied before the log had all of it", STR_ARG(run->ids.run));
    if (news->what == OUTBOX_LOST && run->outbox_count > 0 && !may_lose)
        checker_fail(checker, "O1", "%.*s: the outbox was given up", STR_ARG(run->ids.run));
    if (news->what == OUTBOX_LOST) {
        run->outbox_count = 0;
        run->outbox_lost_at = run->events.count + run->ledger.count;
    }
    for (size_t i = 0; news->what == OUTBOX_WRITTEN && i < news->count; i++) {
        struct str text;
        arena_reset(&checker->scratch);
        INVARIANT(contract_encode_ledger(&news->moments[i], &checker->scratch, &text, NULL) == OK);
        run->outbox = grow(checker, run->outbox, run->outbox_count, sizeof(struct str), &run->outbox_capacity);
        run->outbox[run->outbox_count++] = copy(checker, text);
    }
}

void checker_outbox_end(struct checker *checker)
{
    for (size_t i = 0; i < checker->run_count; i++)
        if (checker->runs[i]->outbox_count > 0)
            checker_fail(checker, "O1", "%.*s: the outbox still has %zu of it", STR_ARG(checker->runs[i]->ids.run),
                         checker->runs[i]->outbox_count);
}

// In the outbox stands what orders it.
static bool is_in_outbox(struct checker *checker, const struct model_run *run, const struct tool_request *request)
{
    bool found = run && run->net && run->outbox_count > 0;
    arena_reset(&checker->scratch);
    for (size_t i = 0; run && !found && i < run->outbox_count; i++) {
        struct moment m;
        INVARIANT(contract_decode_ledger(run->outbox[i], &checker->scratch, &m, NULL) == OK);
        found = str_eq(m.step, request->step) && m.logical == request->logical && m.engine == request->engine;
    }
    return found;
}

void model_absorb(struct checker *checker, struct model_run *run, const struct model_record *record)
{
    struct model_list *list = record->ledger ? &run->ledger : &run->events;
    if (record->seq != list->count + 1)
        checker_fail(checker, "S4", "%.*s: number %llu follows %zu", STR_ARG(run->ids.run),
                     (unsigned long long)record->seq, list->count);
    list->items = grow(checker, list->items, list->count, sizeof(*list->items), &list->capacity);
    list->items[list->count++] = *record;
    if (!record->ledger && run->terminal)
        checker_fail(checker, "I15", "%.*s: event %llu follows the end of the run", STR_ARG(run->ids.run),
                     (unsigned long long)record->seq);
    struct error err = {0};
    if (record->ledger && !str_is(record->kind, "moment")) {
        check_outbox(checker, run, NULL);
        if (record->signal_id.len > 0) INVARIANT(kernel_decided(run->shadow, record->signal_id, &err) == OK);
        return;
    }
    arena_reset(&checker->scratch);
    struct moment m;
    struct seal seal = {0};
    if (!decode_record(checker, run, record, &m, &seal)) return;
    bool visited = checker->visited;
    if (run->outbox_count > 0) checker->visited = false; // it began when the run was driven
    check_outbox(checker, run, &m);
    absorb_moment(checker, run, &m, run->events.count);
    checker->visited = visited;
    if (kernel_fold(run->shadow, &m, &err))
        checker_fail(checker, "K1", "%.*s: the log cannot be folded: %s", STR_ARG(run->ids.run), err.message);
    INVARIANT(view_fold(&run->view, &m, record->ledger ? run->events.count : record->seq));
    check_standing(checker, run, &m);
    checker->checks++;
}

// ---- commits

static struct model_run *run_for(struct checker *checker, const struct run_log *log)
{
    struct model_run *run = checker_run(checker, log->ids.run);
    if (run) return run;
    const struct program *program = workload_by_document(&log->document);
    INVARIANT(program);
    run = ARENA_NEW(&checker->arena, struct model_run);
    INVARIANT(run);
    run->vocabulary = log->vocabulary;
    run->program = program;
    run->parent_run = copy(checker, log->parent_run);
    run->original_run = copy(checker, log->original_run);
    run->ids = (struct run_ids){.tenant = copy(checker, log->ids.tenant),
                                .project = copy(checker, log->ids.project),
                                .environment = copy(checker, log->ids.environment),
                                .run = copy(checker, log->ids.run),
                                .plan_id = copy(checker, log->ids.plan_id),
                                .plan_version = copy(checker, log->ids.plan_version)};
    for (struct model_fork *fork = checker->forks; fork; fork = fork->next_fork)
        if (str_eq(fork->run, run->ids.run)) run->fork = fork;
    run->shadow = run_new(program, &run->ids);
    if (run->shadow) run->shadow->env = &checker->env;
    if (program->net) run->net = net_model_new(checker, program);
    INVARIANT(run->shadow && view_init(&run->view, &checker->arena, &run->ids) && view_plan(&run->view, program));
    checker->runs = grow(checker, checker->runs, checker->run_count, sizeof(*checker->runs), &checker->run_capacity);
    checker->runs[checker->run_count++] = run;
    return run;
}

static enum code find_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    (void)arena;
    const struct checker *checker = context;
    for (size_t i = 0; i < checker->blob_count; i++) {
        *out = checker->blobs[i].bytes;
        if (digest_eq(&checker->blobs[i].sha256, sha256)) return OK;
    }
    return error_set(err, E_NOT_FOUND, "a blob that nobody stored");
}

static void keep_blob(struct checker *checker, const struct append_blob *blob)
{
    struct str ignored;
    struct error err;
    if (find_blob(checker, &blob->sha256, NULL, &ignored, &err) == OK) return;
    checker->blobs =
        grow(checker, checker->blobs, checker->blob_count, sizeof(*checker->blobs), &checker->blob_capacity);
    checker->blobs[checker->blob_count++] = (struct model_blob){blob->sha256, copy(checker, blob->bytes)};
}

static void draft(struct checker *checker, struct model_run *run, struct model_record record)
{
    record.kind = copy(checker, record.kind);
    record.signal_id = copy(checker, record.signal_id);
    record.bytes = copy(checker, record.bytes);
    checker->drafts =
        grow(checker, checker->drafts, checker->draft_count, sizeof(*checker->drafts), &checker->draft_capacity);
    checker->drafts[checker->draft_count++] = (struct model_draft){run, record};
}

// Events and ledger entries of one run in the order in which they happened.
static void draft_run(struct checker *checker, const struct commit *commit, const struct run_log *log)
{
    struct model_run *run = run_for(checker, log);
    size_t e = 0, l = 0;
    for (;;) {
        while (e < commit->event_count && commit->events[e].log != log) e++;
        while (l < commit->ledger_count && commit->ledger[l].log != log) l++;
        const struct commit_event *event = e < commit->event_count ? &commit->events[e] : NULL;
        const struct commit_ledger *entry = l < commit->ledger_count ? &commit->ledger[l] : NULL;
        if (!event && !entry) return;
        if (entry && (!event || entry->after_seq < event->seq)) {
            draft(checker, run,
                  (struct model_record){.ledger = true,
                                        .seq = entry->ledger_seq,
                                        .after = entry->after_seq,
                                        .kind = entry->kind,
                                        .signal_id = entry->signal_id,
                                        .bytes = entry->bytes});
            l++;
        } else {
            draft(checker, run,
                  (struct model_record){.seq = event->seq, .kind = event->encoded.type, .bytes = event->encoded.bytes});
            e++;
        }
    }
}

void checker_offer(struct checker *checker, const struct commit *commit)
{
    INVARIANT(!checker->unknown);
    checker->draft_count = 0;
    checker->env = (struct kernel_env){.context = checker, .blob = find_blob};
    for (size_t i = 0; i < commit->blob_count; i++) keep_blob(checker, &commit->blobs[i]);
    for (size_t i = 0; i < commit->head_count; i++) draft_run(checker, commit, commit->heads[i].log);
    model_offer_notes(checker, commit);
}

void checker_acked(struct checker *checker)
{
    for (size_t i = 0; i < checker->draft_count; i++)
        model_absorb(checker, checker->drafts[i].run, &checker->drafts[i].record);
    checker->draft_count = 0;
    model_absorb_notes(checker);
    model_check_forked(checker);
}

void checker_refused(struct checker *checker)
{
    checker->draft_count = checker->note_draft_count = 0;
}

void checker_unknown(struct checker *checker)
{
    checker->unknown = true;
}

// ---- what the engine does

void checker_tool_start(struct checker *checker, const struct tool_request *request)
{
    struct model_run *run = checker_run(checker, request->run);
    struct model_step *step = run ? model_step(run, request->step) : NULL;
    checker->checks++;
    if (is_in_outbox(checker, run, request)) return;
    if (run && run->net && !checker->visited) {
        net_model_start(checker, run, request);
        return;
    }
    if (checker->visited)
        checker_fail(checker, "E3", "%.*s: %.*s was handed to a tool, and nobody drives the run", STR_ARG(request->run),
                     STR_ARG(request->step));
    if (!step || step->logical < request->logical ||
        (step->logical == request->logical && step->engine < request->engine)) {
        checker_fail(checker, "E1", "%.*s: %.*s %u.%u was handed to a tool before the event that orders it was durable",
                     STR_ARG(request->run), STR_ARG(request->step), request->logical, request->engine);
        return;
    }
    if (step->outcome >= request->logical)
        checker_fail(checker, "I12", "%.*s: %.*s %u.%u was handed to a tool after its outcome", STR_ARG(request->run),
                     STR_ARG(request->step), request->logical, request->engine);
    if (request->logical < step->started_logical ||
        (request->logical == step->started_logical && request->engine <= step->started_engine))
        checker_fail(checker, "I13", "%.*s: %.*s %u.%u was handed to a tool after %u.%u", STR_ARG(request->run),
                     STR_ARG(request->step), request->logical, request->engine, step->started_logical,
                     step->started_engine);
    model_check_fork_start(checker, run, request);
    if (run->paused && step->ordered_seq > run->paused_seq)
        checker_fail(checker, "I25", "%.*s: %.*s was handed to a tool while the run was paused", STR_ARG(request->run),
                     STR_ARG(request->step));
    if (run->terminal)
        checker_fail(checker, "I15", "%.*s: %.*s was handed to a tool after the end of the run", STR_ARG(request->run),
                     STR_ARG(request->step));
    step->started_logical = request->logical;
    step->started_engine = request->engine;
}

void checker_told(struct checker *checker, const struct engine_event *event)
{
    const struct model_run *run = checker_run(checker, event->run);
    if (!event->item->in_log) return;
    if (!run || event->item->seq == 0 || event->item->seq > run->events.count)
        checker_fail(checker, "E2", "%.*s: event %llu was told before it was durable", STR_ARG(event->run),
                     (unsigned long long)event->item->seq);
    if (event->item->idempotent)
        checker_fail(checker, "K1", "%.*s: %s of %.*s was in the log before", STR_ARG(event->run),
                     moment_name(event->moment->kind), STR_ARG(event->moment->step));
}

void checker_decision(struct checker *checker, const struct engine_decision *decision)
{
    const struct model_run *run = checker_run(checker, decision->run);
    bool found = false;
    for (size_t i = 0; run && i < run->ledger.count; i++)
        found = found || (str_is(run->ledger.items[i].kind, "decision") &&
                          str_eq(run->ledger.items[i].signal_id, decision->signal_id));
    if (!found)
        checker_fail(checker, "E2", "%.*s: signal %.*s was answered before its decision was durable",
                     STR_ARG(decision->run), STR_ARG(decision->signal_id));
    if (decision->new_run.len > 0 && !checker_run(checker, decision->new_run))
        checker_fail(checker, "E2", "%.*s: the new run %.*s was named before it was durable", STR_ARG(decision->run),
                     STR_ARG(decision->new_run));
}
