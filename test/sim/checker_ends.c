// What must hold at an end: of a run, of a process, of the world.
#include "sim/checker.h"

#include "harness/dump.h"

#include "explain/explain.h"

#include <stdio.h>
#include <string.h>

// ---- the reference model of rules and loops, written apart from src/expr and src/kernel

static bool rule_holds(enum trigger_rule rule, uint32_t ok, uint32_t failed, uint32_t skipped)
{
    uint32_t all = ok + failed + skipped;
    switch ((int)rule) {
    case RULE_ALL_SUCCESS:
        return ok == all;
    case RULE_ONE_SUCCESS:
        return all == 0 || ok >= 1;
    case RULE_NONE_FAILED_MIN_ONE_SUCCESS:
        return all == 0 || (failed == 0 && ok >= 1);
    case RULE_ONE_FAILED:
        return all == 0 || failed >= 1;
    case RULE_NONE_FAILED:
        return failed == 0;
    default:
        return true;
    }
}

// The step in an iteration of a loop: "outer[2].inner[1].ask"; at the top the prefix is empty.
static const struct model_step *step_in(const struct model_run *run, const char *prefix, struct str id)
{
    char path[512];
    snprintf(path, sizeof(path), "%s%.*s", prefix, STR_ARG(id));
    return model_step(run, str_from(path));
}

static void count_parents(const struct model_run *run, const struct program_step *ps, const char *prefix,
                          uint32_t counts[4])
{
    memset(counts, 0, 4 * sizeof(counts[0]));
    for (uint32_t i = 0; i < ps->dep_count; i++) {
        const struct model_step *parent = step_in(run, prefix, run->program->steps[ps->deps[i]].id);
        enum node_state state = parent ? parent->state : NODE_WAITING;
        counts[state == NODE_SUCCESS ? 0 : state == NODE_FAILED ? 1 : state == NODE_SKIPPED ? 2 : 3]++;
    }
}

static void check_rule(struct checker *checker, const struct model_run *run, const struct program_step *ps,
                       const char *prefix)
{
    const struct model_step *step = step_in(run, prefix, ps->id);
    uint32_t parents[4];
    if (!step || step->given) return;
    count_parents(run, ps, prefix, parents);
    bool started = step->logical > 0 && step->ordered_seq > 0;
    bool by_rule = str_is(step->skip_reason, SKIP_TRIGGER_RULE) || str_is(step->skip_reason, SKIP_DEPENDENCY_FAILED);
    if ((started || by_rule) && parents[3] > 0)
        checker_fail(checker, "K5", "%.*s: %.*s was decided before its parents", STR_ARG(run->ids.run),
                     STR_ARG(ps->id));
    bool holds = rule_holds(ps->rule, parents[0], parents[1], parents[2]);
    if (started && !holds)
        checker_fail(checker, "K5", "%.*s: %.*s started against its rule", STR_ARG(run->ids.run), STR_ARG(ps->id));
    if (by_rule && holds)
        checker_fail(checker, "K5", "%.*s: %.*s was skipped against its rule", STR_ARG(run->ids.run), STR_ARG(ps->id));
}

// Every child has come to its end, none has failed, and each was decided by its rule.
static void check_iteration(struct checker *checker, const struct model_run *run, const struct program_step *loop,
                            const char *prefix)
{
    for (uint32_t i = 0; i < loop->child_count; i++) {
        const struct program_step *ps = &run->program->steps[loop->first_child + i];
        const struct model_step *step = step_in(run, prefix, ps->id);
        if (!step || (step->state != NODE_SUCCESS && step->state != NODE_SKIPPED))
            checker_fail(checker, "K5", "%.*s: %s%.*s had not come to a good end when its iteration did",
                         STR_ARG(run->ids.run), prefix, STR_ARG(ps->id));
        check_rule(checker, run, ps, prefix);
    }
}

// `iteration` is over: the condition after it says whether another one follows.
void model_check_loop(struct checker *checker, const struct model_run *run, const struct model_step *loop,
                      uint32_t iteration, bool done)
{
    if (!loop) {
        checker_fail(checker, "K5", "%.*s: an iteration of a loop that has not started", STR_ARG(run->ids.run));
        return;
    }
    uint32_t index = kernel_find(run->shadow, loop->path);
    if (index == PROGRAM_TOP) return;
    const struct program_step *ps = &run->program->steps[index];
    char prefix[300];
    snprintf(prefix, sizeof(prefix), "%.*s[%u].", STR_ARG(loop->path), iteration);
    check_iteration(checker, run, ps, prefix);
    bool over = iteration >= ps->max_iterations;
    if (ps->until != PROGRAM_TOP) {
        const struct model_step *until = step_in(run, prefix, run->program->steps[ps->until].id);
        over = until && until->state == NODE_SUCCESS && until->value_true;
        if (!done && iteration >= ps->max_iterations) over = true;
    }
    if (over == done) return;
    checker_fail(checker, "K5", "%.*s: loop %.*s %s after iteration %u", STR_ARG(run->ids.run), STR_ARG(loop->path),
                 done ? "ended" : "went on", iteration);
}

// The step of `run` whose current attempt is `child`; NULL when it is of an older one, or may have been given up for its time limit.
static const struct model_step *parent_step(const struct model_run *run, const struct model_run *child)
{
    for (size_t i = 0; i < run->step_count; i++) {
        char id[300];
        snprintf(id, sizeof(id), "%.*s.%.*s.%u", STR_ARG(run->ids.run), STR_ARG(run->steps[i].path),
                 run->steps[i].logical);
        uint32_t index = program_find(run->program, PROGRAM_TOP, run->steps[i].path);
        if (index == PROGRAM_TOP || run->program->steps[index].timeout_ms > 0) continue;
        struct str end = child->ids.run;
        bool list = json_key(&run->program->steps[index].with, "fanOut") && str_starts(end, str_from(id)) &&
                    end.len > strlen(id) && end.ptr[strlen(id)] == '.';
        if (list || str_is(end, id)) return &run->steps[i];
    }
    return NULL;
}

void model_check_end(struct checker *checker, struct model_run *run, const struct moment *m)
{
    uint32_t states[NODE_SKIPPED + 1] = {0};
    bool cancel_node = false;
    for (uint32_t i = 0; i < run->program->top_count; i++) {
        const struct program_step *ps = &run->program->steps[i];
        const struct model_step *step = model_step(run, ps->id);
        states[step && step->state ? step->state : NODE_WAITING]++;
        cancel_node = cancel_node || (ps->kind == STEP_CANCEL && step && step->state == NODE_SUCCESS);
        check_rule(checker, run, ps, "");
    }
    bool asked = run->cancel_asked || cancel_node;
    bool nodes = run->program->kind == DOCUMENT_NODES;
    enum run_status expect =
        states[NODE_FAILED] > 0 || (nodes && states[NODE_SUCCESS] == 0) ? RUN_STATUS_FAILED : RUN_STATUS_COMPLETED;
    if (asked || (states[NODE_WAITING] == run->program->top_count && m->kind == MOMENT_RUN_CANCELLED))
        expect = RUN_STATUS_CANCELLED;
    run->status = m->kind == MOMENT_RUN_COMPLETED ? RUN_STATUS_COMPLETED
                  : m->kind == MOMENT_RUN_FAILED  ? RUN_STATUS_FAILED
                                                  : RUN_STATUS_CANCELLED;
    if (run->status != expect)
        checker_fail(checker, "K5", "%.*s: ended %s, its steps say %s", STR_ARG(run->ids.run),
                     run_status_name(run->status), run_status_name(expect));
    if (states[NODE_RUNNING] > 0)
        checker_fail(checker, "I15", "%.*s: ended with %u steps running", STR_ARG(run->ids.run), states[NODE_RUNNING]);
    if (expect == RUN_STATUS_COMPLETED && states[NODE_WAITING] + states[NODE_HELD] > 0)
        checker_fail(checker, "K5", "%.*s: completed with steps left to do", STR_ARG(run->ids.run));
    for (size_t i = 0; i < checker->run_count && run->cancel_asked; i++) {
        const struct model_run *child = checker->runs[i];
        const struct model_step *step = str_eq(child->parent_run, run->ids.run) ? parent_step(run, child) : NULL;
        if (step && child->events.count > 0 && !child->terminal)
            checker_fail(checker, "K7", "%.*s: cancelled, and its child %.*s goes on", STR_ARG(run->ids.run),
                         STR_ARG(child->ids.run));
    }
    if (run->paused && run->status != RUN_STATUS_CANCELLED)
        checker_fail(checker, "I25", "%.*s: ended while it was paused", STR_ARG(run->ids.run));
    if (m->counts.completed != states[NODE_SUCCESS] || m->counts.failed != states[NODE_FAILED] ||
        m->counts.skipped != states[NODE_SKIPPED])
        checker_fail(checker, "K1", "%.*s: the counts of its end are not those of its steps", STR_ARG(run->ids.run));
    run->terminal = true;
}

// ---- live state

// The first line that differs.
static void check_dump(struct checker *checker, struct model_run *model, const struct run *live)
{
    struct buf here;
    size_t records = model->events.count + model->ledger.count; // nothing else changes the shadow
    if (model->dumped_at != records) {
        if (model->dumped_at == 0) buf_init(&model->dump, (size_t)64 << 20);
        buf_clear(&model->dump);
        kernel_dump(model->shadow, &model->dump);
        model->dumped_at = records;
    }
    buf_init(&here, (size_t)64 << 20);
    kernel_dump(live, &here);
    INVARIANT(buf_ok(&here) && buf_ok(&model->dump));
    struct str a = buf_str(&here), b = buf_str(&model->dump);
    size_t at = 0, line = 0;
    for (; at < a.len && at < b.len && a.ptr[at] == b.ptr[at]; at++)
        if (a.ptr[at] == '\n') line = at + 1;
    if (at < a.len || at < b.len)
        checker_fail(checker, "K1", "%.*s: the live run has \"%.*s\", its log says \"%.*s\"", STR_ARG(model->ids.run),
                     STR_ARG(str_slice(a, line, str_find(a, '\n', at))),
                     STR_ARG(str_slice(b, line, str_find(b, '\n', at))));
    buf_release(&here);
}

void checker_live(struct checker *checker, const struct engine *engine)
{
    for (size_t i = 0; i < checker->run_count && !checker->failed; i++) {
        struct model_run *model = checker->runs[i];
        const struct run *live = engine_run(engine, model->ids.tenant, model->ids.run);
        bool ahead = model->outbox_count > 0 || model->outbox_lost_at == model->events.count + model->ledger.count;
        if (!live || model->events.count == 0 || ahead) continue;
        checker->checks++;
        check_dump(checker, model, live);
    }
}

// ---- after a crash

static bool same_records(struct checker *checker, const struct model_run *run, const struct model_list *list,
                         const struct records *stored, bool ledger)
{
    const char *what = ledger ? "ledger entry" : "event";
    if (stored->count < list->count) {
        checker_fail(checker, "S2", "%.*s: %s %zu was acknowledged and is gone", STR_ARG(run->ids.run), what,
                     stored->count + 1);
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(stored->items[i].bytes, list->items[i].bytes)) continue;
        checker_fail(checker, "I5", "%.*s: %s %zu is not what was acknowledged", STR_ARG(run->ids.run), what, i + 1);
        return false;
    }
    return true;
}

// Drafts of this run and kind that the store turned out to hold. They must be exactly the further records.
static size_t found_drafts(struct checker *checker, const struct model_run *run, const struct model_list *list,
                           const struct records *stored, bool ledger)
{
    size_t found = 0;
    for (size_t i = 0; checker->unknown && i < checker->draft_count; i++) {
        const struct model_draft *draft = &checker->drafts[i];
        if (draft->run != run || draft->record.ledger != ledger) continue;
        size_t at = list->count + found;
        if (at >= stored->count) break;
        if (!str_eq(stored->items[at].bytes, draft->record.bytes)) break;
        found++;
    }
    if (stored->count != list->count + found)
        checker_fail(checker, "S2", "%.*s: %zu %s that nobody stored", STR_ARG(run->ids.run),
                     stored->count - list->count - found, ledger ? "ledger entries" : "events");
    return found;
}

static size_t check_run(struct checker *checker, struct store *store, const struct model_run *run)
{
    arena_reset(&checker->scratch);
    struct records events = {0}, ledger = {0};
    struct error err = {0};
    struct record_range range = {.tenant = run->ids.tenant, .run = run->ids.run, .limit = 100000};
    enum code rc = store_read(store, &range, &checker->scratch, &events, &err);
    range.ledger = true;
    if (!rc) rc = store_read(store, &range, &checker->scratch, &ledger, &err);
    if (rc && rc != E_NOT_FOUND) {
        checker_fail(checker, "S2", "%.*s: cannot be read: %s", STR_ARG(run->ids.run), err.message);
        return 0;
    }
    if (!same_records(checker, run, &run->events, &events, false) ||
        !same_records(checker, run, &run->ledger, &ledger, true))
        return 0;
    return found_drafts(checker, run, &run->events, &events, false) +
           found_drafts(checker, run, &run->ledger, &ledger, true);
}

static enum code blob_of(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                         struct error *err)
{
    return store_blob(context, sha256, arena, out, err);
}

static void check_why(struct checker *checker, const struct model_run *run, const struct explain *why)
{
    struct json answer;
    struct error err = {0};
    struct str path;
    INVARIANT(explain_run(why, 1, &checker->scratch, &answer, &err) == OK);
    if (!json_key(&answer, "reproduced")->boolean)
        checker_fail(checker, "W1", "%.*s: %.*s", STR_ARG(run->ids.run),
                     STR_ARG(json_text(json_at(&answer, STR("decisions.doubt")))));
    for (size_t cursor = 0; (path = explain_path(why, &cursor, &checker->scratch)).ptr;)
        if (explain_step(why, path, 1, &checker->scratch, &answer, &err) != OK ||
            json_text(json_key(&answer, "reason")).len == 0)
            checker_fail(checker, "W1", "%.*s: no answer for %.*s", STR_ARG(run->ids.run), STR_ARG(path));
    checker->checks++;
}

// The whole log once more, into what readers see of it and into what explains it.
static void check_view(struct checker *checker, struct store *store, const struct model_run *run)
{
    arena_reset(&checker->scratch);
    struct run_view again;
    struct explain *why;
    struct error no = {0};
    const struct kernel_env env = {.context = store, .blob = blob_of};
    INVARIANT(view_init(&again, &checker->scratch, &run->ids) && view_plan(&again, run->program));
    INVARIANT(explain_open(run->program, &run->ids, &env, &why, &no) == OK);
    size_t e = 0, l = 0;
    while (e < run->events.count || l < run->ledger.count) {
        bool ledger =
            l < run->ledger.count && (e >= run->events.count || run->ledger.items[l].after < run->events.items[e].seq);
        const struct model_record *record = ledger ? &run->ledger.items[l++] : &run->events.items[e++];
        if (ledger && !str_is(record->kind, "moment")) continue;
        struct moment m;
        struct seal seal;
        struct error err = {0};
        enum code rc = ledger
                           ? contract_decode_ledger(record->bytes, &checker->scratch, &m, &err)
                           : contract_decode(run->vocabulary, record->bytes, &checker->scratch, &m, &seal, NULL, &err);
        if (rc) checker_fail(checker, "I16", "%.*s: a record cannot be read: %s", STR_ARG(run->ids.run), err.message);
        if (!rc && explain_fold(why, &m, ledger ? e : record->seq, &err))
            checker_fail(checker, "W1", "%.*s: %s", STR_ARG(run->ids.run), err.message);
        if (rc || checker->failed || !view_fold(&again, &m, ledger ? e : record->seq)) break;
    }
    if (!checker->failed) check_why(checker, run, why);
    explain_close(why);
    if (checker->failed) return;
    struct digest a, b;
    INVARIANT(view_hash(&run->view, &checker->scratch, &a) && view_hash(&again, &checker->scratch, &b));
    if (!digest_eq(&a, &b))
        checker_fail(checker, "V1", "%.*s: the view folded as it went is not the view folded from the start",
                     STR_ARG(run->ids.run));
    if (again.inconsistent)
        checker_fail(checker, "V1", "%.*s: the view takes the log for inconsistent", STR_ARG(run->ids.run));
    if (again.status != run->shadow->status)
        checker_fail(checker, "V1", "%.*s: the view says %s, the kernel %s", STR_ARG(run->ids.run),
                     run_status_name(again.status), run_status_name(run->shadow->status));
    checker->checks++;
}

void checker_reopened(struct checker *checker, struct store *store)
{
    size_t found = 0;
    for (size_t i = 0; i < checker->run_count && !checker->failed; i++)
        found += check_run(checker, store, checker->runs[i]);
    if (checker->failed) return;
    checker->checks++;
    arena_reset(&checker->scratch);
    int notes = checker->unknown ? model_find_notes(checker, store) : -1;
    bool stored = found > 0 || (checker->draft_count == 0 && notes == 1);
    if (checker->unknown && found > 0 && found != checker->draft_count)
        checker_fail(checker, "S3", "%zu of the %zu records of a batch are there", found, checker->draft_count);
    else if (checker->unknown && notes >= 0 && (notes == 1) != stored)
        checker_fail(checker, "S3", "the records of a batch are there without its notes, or the other way round");
    else if (checker->unknown && stored)
        checker_acked(checker);
    checker->unknown = false;
    checker->draft_count = checker->note_draft_count = 0;
    model_check_notes(checker, store);
    model_check_feed(checker, store);
}

void checker_end(struct checker *checker, struct store *store, bool verify)
{
    checker_reopened(checker, store);
    for (size_t i = 0; i < checker->run_count && !checker->failed; i++)
        if (checker->runs[i]->events.count > 0) check_view(checker, store, checker->runs[i]);
    if (checker->failed || !verify) return;
    arena_reset(&checker->scratch);
    struct verify_report report = {0};
    struct error err = {0};
    enum code rc = store_verify(store, (struct str){0}, (struct str){0}, &checker->scratch, &report, &err);
    if (rc) checker_fail(checker, "S9", "store_verify failed: %s", err.message);
    if (report.fault_count > 0)
        checker_fail(checker, "S9", "%.*s: %.*s", STR_ARG(report.faults[0].run), STR_ARG(report.faults[0].what));
}
