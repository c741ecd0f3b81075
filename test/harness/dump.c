// The state of a run as text: all of it that is made of its log, one line per step, lane and place. Two runs are in the same state when
// their texts are equal, which is how the checkers ask for K1.
#include "harness/dump.h"

#include "kernel/list.h"
#include "kernel/net_inside.h"

// A member that is added to one of these is of the log or not; if it is, it has its place below.
_Static_assert(sizeof(struct run_lane) == 40, "a new member of struct run_lane is written below");
_Static_assert(sizeof(struct run_node) == 64, "a new member of struct run_node is written below");
_Static_assert(sizeof(struct walk) == 216, "a new member of struct walk is written below");
_Static_assert(sizeof(struct net_place) == 552, "a new member of struct net_place is written below");
_Static_assert(sizeof(struct net_value) == 96, "a new member of struct net_value is written below");
_Static_assert(sizeof(struct run_list) == 208, "a new member of struct run_list is written below");
_Static_assert(sizeof(struct container) == 56, "a new member of struct container is written below");
_Static_assert(sizeof(struct net_state) == 176, "a new member of struct net_state is written below");

static void put_text(struct buf *out, const char *name, struct str text)
{
    if (text.len == 0) return;
    buf_printf(out, " %s=", name);
    json_write_string(out, text);
}

static void put_number(struct buf *out, const char *name, int64_t number)
{
    if (number == 0) return;
    buf_printf(out, " %s=", name);
    buf_int(out, number);
}

static void put_json(struct buf *out, const char *name, const struct json *value)
{
    if (!value || value->type == 0) return;
    buf_printf(out, " %s=", name);
    json_canon(out, value);
}

static void put_fault(struct buf *out, const struct fault *fault)
{
    put_text(out, "code", fault->code);
    put_text(out, "message", fault->message);
    put_text(out, "category", fault->category);
    put_number(out, "retryable", fault->retryable);
}

static void put_blob(struct buf *out, const struct digest *sha256, uint64_t size)
{
    buf_text(out, " blob=");
    buf_hex(out, sha256->b, sizeof(sha256->b));
    put_number(out, "size", (int64_t)size);
}

static void put_value(struct buf *out, const char *name, const struct net_value *value)
{
    if (value->value.type == 0 && !value->has_blob && value->extracted.type == 0) return;
    buf_printf(out, " %s{", name);
    put_json(out, "value", &value->value);
    if (value->has_blob) put_blob(out, &value->blob, value->size);
    put_number(out, "store", value->has_blob ? (int64_t)value->store : 0);
    put_json(out, "extracted", &value->extracted);
    buf_text(out, " }");
}

static void dump_signals(const struct run *run, struct buf *out)
{
    struct str last = {0};
    for (bool more = !run_status_terminal(run->status); more;) { // of a run that has ended the decision records say them
        struct str next = {0};
        for (const struct seen_signal *s = run->signals; s; s = s->next) // a set: written in the order of its ids
            if (str_cmp(s->id, last) > 0 && (next.len == 0 || str_cmp(s->id, next) < 0)) next = s->id;
        put_text(out, "signal", next);
        more = next.len > 0;
        last = next;
    }
    for (const struct deferred_signal *s = run->deferred; s; s = s->next) {
        put_text(out, "deferred", s->signal.id);
        put_text(out, "as", s->decision_id);
    }
    for (const struct run_change *c = run->changes; c; c = c->next) {
        buf_printf(out, " change=%u", c->step);
        put_number(out, "for", c->logical);
        put_json(out, "override", c->override);
        put_json(out, "target", c->target);
    }
}

static void dump_run(const struct run *run, struct buf *out)
{
    const struct start_facts *start = &run->start;
    buf_printf(out, "run %s", run_status_name(run->status));
    put_number(out, "cancelling", run->cancelling);
    put_number(out, "emergency", run->emergency);
    put_number(out, "undoing", run->undoing);
    put_number(out, "limited", run->limited);
    put_number(out, "failing", run->failing);
    put_number(out, "pauses", run->pause_cycle);
    put_number(out, "drained", run->drain_over);
    put_number(out, "paused", run->paused_ms);
    put_number(out, "rotating", run->rotating);
    put_number(out, "segment", run->segment);
    put_number(out, "flight", run->in_flight);
    put_number(out, "gates", run->gates);
    put_number(out, "loops", run->loops);
    put_number(out, "delayed", run->delayed);
    put_number(out, "retrying", run->retrying);
    put_number(out, "held", run->held);
    buf_printf(out, " counts=%u/%u/%u/%u", run->counts.total, run->counts.completed, run->counts.failed,
               run->counts.skipped);
    put_text(out, "cancel", run->cancel_reason);
    put_text(out, "by", run->cancel_signal);
    put_text(out, "failed", run->failed_step);
    put_fault(out, &run->fault);
    put_number(out, "queued", run->queued_ms);
    put_number(out, "started", run->started_ms);
    put_number(out, "ended", run->ended_ms);
    put_json(out, "inputs", &start->inputs);
    put_json(out, "params", &run->params);
    put_text(out, "admission", start->admission);
    put_text(out, "profile", start->profile);
    put_text(out, "type", start->engine_type);
    put_text(out, "place", start->engine_place);
    put_text(out, "uri", start->plan_uri);
    put_text(out, "sha256", start->plan_sha256);
    put_number(out, "not_before", start->not_before_ms);
    put_number(out, "drain", start->drain_timeout_ms);
    put_number(out, "interrupts", start->cancel_on_pause);
    put_number(out, "approval", start->requires_approval);
    put_json(out, "refusal", &start->refusal);
    dump_signals(run, out);
    buf_byte(out, '\n');
}

static void dump_attempt(const struct run_lane *s, struct buf *out)
{
    static const char *const states[] = {[NODE_WAITING] = "waiting", [NODE_DELAYED] = "delayed",
                                         [NODE_RUNNING] = "running", [NODE_HELD] = "held",
                                         [NODE_SUCCESS] = "success", [NODE_FAILED] = "failed",
                                         [NODE_SKIPPED] = "skipped"};
    buf_printf(out, " %s %u.%u", states[s->state], s->logical, s->engine);
    put_number(out, "base", s->base);
    put_number(out, "again", s->again);
    put_number(out, "begun", s->started_ms);
    put_number(out, "due", s->due_ms);
    put_number(out, "ordered", s->ordered_ms);
    put_number(out, "quick", s->quick);
}

static void dump_list(const struct run_list *list, struct buf *out)
{
    const struct container *of = &list->of;
    buf_printf(out, " list=%u/%u/%u/%u of %u", of->total, of->begun, of->done, of->failures, list->logical);
    put_number(out, "most", list->most);
    put_number(out, "all", list->all_success);
    put_number(out, "taken_up", list->taken_up);
    put_number(out, "beside", (int64_t)list->size);
    put_text(out, "as", list->as);
    put_json(out, "items", &of->items);
    if (list->has_blob) put_blob(out, &list->blob, 0);
    for (uint32_t i = 0; i < of->total; i++) {
        put_number(out, "ended", list->states[i]);
        put_value(out, "gave", &of->results[i]);
    }
}

static void dump_step(const struct run *run, uint32_t step, struct buf *out)
{
    const struct run_lane *s = &run->lanes[step];
    const struct run_node *node = &run->nodes[step];
    buf_printf(out, "step %u %.*s", step, STR_ARG(run->program->steps[step].id));
    dump_attempt(s, out);
    buf_printf(out, " parents=%u/%u/%u/%u", node->waiting, node->success, node->failed, node->skipped);
    put_number(out, "tainted", node->tainted);
    put_number(out, "tainted_parents", node->tainted_parents);
    put_number(out, "by_hand", node->by_hand);
    put_number(out, "iteration", node->iteration);
    put_number(out, "open", node->open_children);
    put_number(out, "ended", run->program->undo_count > 0 ? node->ended : 0); // nothing else asks for it
    put_json(out, "value", node->value);
    if (node->blob) put_blob(out, &node->blob->sha256, node->blob->size);
    if (list_of(run, step)) dump_list(list_of(run, step), out);
    buf_byte(out, '\n');
}

static void dump_loop(const struct net_place *p, struct buf *out)
{
    buf_printf(out, " loop=%u/%u/%u/%u", p->loop.total, p->loop.begun, p->loop.done, p->loop.failures);
    put_number(out, "over", p->loop_over);
    if (p->phase != PLACE_RUNNING) return; // then its items and members are nobody's business
    put_json(out, "items", &p->loop.items);
    for (uint32_t i = 0; i < p->loop.total; i++) {
        if (p->loop.lanes[i] != NO_LANE) buf_printf(out, " %u=lane %u", i + 1, p->loop.lanes[i]);
        put_value(out, "gave", &p->loop.results[i]);
    }
}

static void dump_place(const struct run *run, uint32_t step, struct buf *out)
{
    const struct net_place *p = &run->net->places[step];
    static const char *const phases[] = {[PLACE_IDLE] = "idle", [PLACE_PENDING] = "pending",
                                         [PLACE_RUNNING] = "running", [PLACE_ENDED] = "ended"};
    buf_printf(out, "place %u %.*s %s", step, STR_ARG(run->program->steps[step].id), phases[p->phase]);
    put_number(out, "visit", p->visit);
    put_number(out, "failed", p->failed);
    put_number(out, "skipped", p->skipped);
    put_number(out, "counted", p->counted);
    put_number(out, "overdue", p->overdue);
    put_number(out, "begun", p->started_ms);
    put_number(out, "due", p->due_ms);
    if (p->lane != NO_LANE) put_number(out, "lane", p->lane);
    if (p->token) put_json(out, "token", &p->token_args);
    put_value(out, "gave", &p->value);
    for (uint32_t i = 0; p->tasks && i < net_of_run(run)->steps[step].task_count; i++)
        put_value(out, "task", &p->tasks[i]);
    if (p->looped) dump_loop(p, out);
    if (p->phase != PLACE_IDLE) {
        put_json(out, "args", &p->args);
        put_json(out, "given", &p->given);
        put_json(out, "written", &p->written);
        put_json(out, "outcome", &p->outcome);
        if (p->failed || p->loop.failures > 0) put_fault(out, &p->fault);
    }
    buf_byte(out, '\n');
}

static void dump_lane(const struct run *run, uint32_t index, struct buf *out)
{
    const struct walk *lane = walk_at(run, index);
    static const char *const phases[] = {[LANE_FREE] = "free",         [LANE_READY] = "ready",
                                         [LANE_FLIGHT] = "flight",     [LANE_ANSWERED] = "answered",
                                         [LANE_DELAYED] = "delayed",   [LANE_OVER] = "over"};
    buf_printf(out, "lane %u %s", index, phases[lane_phase(run, index)]);
    if (!lane->taken) {
        buf_printf(out, " next=%u\n", lane->next_free);
        return;
    }
    dump_attempt(lane_ref(run, index), out);
    buf_printf(out, " of %u[%u] task %u.%u", lane->place, lane->iteration, lane->pc, lane->attempt);
    put_number(out, "last", lane->last);
    put_number(out, "failed", lane->failed);
    put_number(out, "action", lane->action);
    put_number(out, "target", lane->action ? lane->target : 0);
    put_number(out, "walk", lane->started_ms);
    put_number(out, "task", lane->task_ms);
    put_json(out, "iter", &lane->iter);
    put_fault(out, &lane->fault);
    for (uint32_t i = 0; i < net_of_run(run)->steps[lane->place].task_count; i++) {
        put_number(out, "runs", lane->runs[i]);
        put_value(out, "gave", &lane->results[i]);
    }
    buf_byte(out, '\n');
}

static void dump_net(const struct run *run, struct buf *out)
{
    const struct net_state *net = run->net;
    buf_printf(out, "net lanes=%u free=%u serial=%u live=%u tokens=%u unhandled=%u last=%u now=%lld", net->lane_count,
               net->free_lane, net->serial, net->live, net->tokens, net->unhandled, net->last, (long long)net->now_ms);
    put_json(out, "workload", &net->workload);
    put_json(out, "ctx", &net->ctx);
    buf_byte(out, '\n');
    for (uint32_t i = 0; i < run->program->step_count; i++) dump_place(run, i, out);
    for (uint32_t i = run->program->step_count; i < run_step_count(run); i++) dump_lane(run, i, out);
}

static void dump_dag(const struct run *run, struct buf *out)
{
    for (uint32_t i = 0; i < run->program->step_count; i++) dump_step(run, i, out);
}

void kernel_dump(const struct run *run, struct buf *out)
{
    dump_run(run, out);
    (run->net ? dump_net : dump_dag)(run, out);
}
