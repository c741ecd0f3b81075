// Signals: from this process, from the inbox of the store, and the decision records that answer them.
#include "engine/inside.h"

#include "json/make.h"

#include <stdlib.h>

static struct signal *copy_signal(struct arena *arena, const struct signal *signal)
{
    struct signal *copy = ARENA_NEW(arena, struct signal);
    if (!copy) return NULL;
    *copy = *signal;
    if (!ARENA_KEEP(arena, &copy->id, &copy->step, &copy->reason, &copy->actor, &copy->role, &copy->approves, &copy->source_ip,
                    &copy->policy_decision_id, &copy->denied))
        return NULL;
    if (signal->payload.type == 0) return copy;
    struct buf bytes SCOPED(buf_release) = buf_of((size_t)1 << 20);
    json_canon(&bytes, &signal->payload);
    struct error ignored = {0};
    bool ok = buf_ok(&bytes) && canonical(arena, buf_str(&bytes), &copy->payload, &ignored) == OK;
    return ok ? copy : NULL;
}

enum code queue_signal(struct engine *engine, struct resident *resident, const struct signal *signal, int64_t inbox_id,
                       struct error *err)
{
    struct arena *arena = arena_make((size_t)4 << 20);
    struct signal *copy = arena ? copy_signal(arena, signal) : NULL;
    struct queued *queued = copy ? queue_add(engine, resident, INPUT_SIGNAL) : NULL;
    if (!queued) {
        arena_drop(arena);
        return error_nomem(err);
    }
    queued->inbox_id = inbox_id;
    INVARIANT(inbox_id >= 0 && signal->id.len > 0);
    queued->arena = arena;
    queued->signal = copy;
    // It ends in the next turn: what the last owner left behind must be gone by then.
    if (resident->idle && (signal->type == SIGNAL_CANCEL || signal->type == SIGNAL_EMERGENCY_STOP))
        mark_adopted(engine, resident);
    return OK;
}

enum code engine_signal(struct engine *engine, struct str tenant, struct str run, const struct signal *signal,
                        struct error *err)
{
    struct resident *resident = resident_find(engine, tenant, run);
    if (!resident) {
        enum code rc = load_resident(engine, tenant, run, true, &resident, err);
        if (rc) return rc;
    }
    return queue_signal(engine, resident, signal, 0, err);
}

// The run that a posted signal is for: here, or ended (then it is loaded to say so, I23). NULL: another engine has it.
static enum code inbox_target(struct engine *engine, const struct inbox_item *item, struct resident **out,
                              struct error *err)
{
    *out = resident_find(engine, item->tenant, item->run);
    if (*out && !(*out)->begun) { // its start is in the queue: the run in the store that has the signal is another's
        COVER(signal_of_a_run_that_took_the_id);
        *out = NULL;
        return OK;
    }
    if (*out) return OK;
    struct run_head head;
    struct error local = {0};
    enum code rc = store_head(engine->store, item->tenant, item->run, &engine->turn, &head, &local);
    if (!rc && head.terminal) rc = load_resident(engine, item->tenant, item->run, true, out, &local);
    return code_is_outage(rc) ? error_set(err, rc, "%s", local.message) : OK;
}

// The signals of the inbox that are on their way from an earlier look: in the queue, or aside until they can be decided.
struct on_the_way {
    int64_t *ids; // in order
    size_t count;
};

static int compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum code find_on_the_way(struct engine *engine, struct on_the_way *out, struct error *err)
{
    const struct queue *q = &engine->queue;
    const struct aside *at = NULL;
    size_t asides = 0;
    while (aside_next(engine, &at)) asides++;
    *out = (struct on_the_way){.ids = ARENA_ARRAY(&engine->turn, q->count + asides + 1, int64_t)};
    if (!out->ids) return error_nomem(err);
    for (size_t i = 0; i < q->count; i++) {
        int64_t id = q->items[(q->head + i) & (q->capacity - 1)].inbox_id;
        if (id != 0) out->ids[out->count++] = id;
    }
    for (const struct queued *queued = aside_next(engine, &at); queued; queued = aside_next(engine, &at))
        if (queued->inbox_id != 0) out->ids[out->count++] = queued->inbox_id;
    qsort(out->ids, out->count, sizeof(*out->ids), compare_ids);
    return OK;
}

enum code poll_inbox(struct engine *engine, struct error *err)
{
    struct inbox_item *items;
    size_t count;
    struct on_the_way before = {0};
    enum code rc = store_inbox(engine->store, &engine->turn, &items, &count, err);
    if (!rc && count > 0) rc = find_on_the_way(engine, &before, err);
    for (size_t i = 0; !rc && i < count; i++) {
        struct resident *resident;
        rc = inbox_target(engine, &items[i], &resident, err);
        if (rc || !resident) continue;
        if (bsearch(&items[i].id, before.ids, before.count, sizeof(*before.ids), compare_ids)) continue;
        struct signal signal;
        struct error local = {0};
        if (signal_decode(engine->options.contract, items[i].bytes, &engine->turn, &signal, &local) != OK) {
            os_log(LOG_WARN, "signal refused run=%.*s why=\"%s\"", STR_ARG(items[i].run), local.message);
            struct store_batch batch = {.inbox_done = &items[i].id, .inbox_count = 1};
            rc = store_append(engine->store, &batch, engine->now.wall_ms, &engine->turn, err);
            continue;
        }
        rc = queue_signal(engine, resident, &signal, items[i].id, err);
    }
    return rc;
}

static struct json audit_of(struct arena *arena, const struct signal *signal, const struct run_ids *ids,
                            struct json at)
{
    return JSON_OF(arena, {"actorId", json_string(signal->actor.len > 0 ? signal->actor : STR("unknown"))},
                   {"actorRole", json_string(signal->role.len > 0 ? signal->role : STR("Admin"))},
                   {"environmentId", json_some(ids->environment)}, {"projectId", json_some(ids->project)},
                   {"reason", json_some(signal->reason)}, {"sourceIp", json_some(signal->source_ip)},
                   {"tenantId", json_some(ids->tenant)}, {"timestamp", at});
}

static struct json result_of(struct arena *arena, const struct effect *effect, struct str new_run)
{
    return JSON_OF(arena, {"errorCode", json_name(effect->error_code)}, {"newRunId", json_some(new_run)},
                   {"status", json_word(effect->accepted ? "success" : "failure")});
}

static struct str verdict_of(const struct effect *effect)
{
    if (effect->deferred) return STR("REVISION_REQUIRED");
    return effect->accepted ? STR("ACCEPTED") : STR("REJECTED");
}

// The decision record of requirements §3.1. Local callers own the machine: the policy is "local", its id the decision's.
enum code decision_body(struct engine *engine, const struct queued *queued, const struct effect *effect,
                        struct str new_run, struct json *out)
{
    struct arena *arena = &engine->turn;
    const struct signal *signal = effect->signal;
    struct str id = arena_copy(arena, effect->decision_id);
    struct json at = json_time(arena, engine->now.wall_ms);
    bool decided = !effect->deferred, consent = effect->deferred || effect->settled;
    *out = JSON_OF(
        arena, {"approvalTimestamp", json_when(effect->settled, at)},
        {"approvedBy", json_some(effect->settled && effect->accepted ? effect->answer : (struct str){0})},
        {"approvalRequired", json_flag(consent)}, // by another person
        {"audit", audit_of(arena, signal, &queued->resident->ids, at)},
        {"decision", json_string(verdict_of(effect))}, {"engineProcessedAt", json_when(decided, at)},
        {"engineResult", decided ? result_of(arena, effect, new_run) : json_none()},
        {"policyDecisionId", signal->policy_decision_id.len ? json_string(signal->policy_decision_id) : json_text_made(id)},
        {"reason", json_some(effect->error_message)}, {"signalDecisionId", json_text_made(id)},
        {"signalId", json_some(signal->id)},
        {"signalPayload", signal->payload.type != 0 ? signal->payload : json_object()},
        {"signalType", json_name(signal_name(signal->type))});
    return json_ok(out) ? OK : E_NOMEM;
}

// ---- looking decisions up
struct wanted {
    struct str id;
    struct arena *arena;
    struct json *out;
    bool found;
    uint64_t seq;
    struct error *err;
};

static enum code match_decision(void *context, const struct record *record, const struct moment *moment,
                                const struct seal *seal)
{
    (void)seal;
    static const char *const ids[] = {"signalId", "policyDecisionId", "signalDecisionId"};
    struct wanted *wanted = context;
    struct json body;
    if (moment && wanted->found && record->ledger_seq == 0 &&
        str_eq(moment->signal_id, json_text(json_key(wanted->out, "signalId"))))
        wanted->seq = record->seq;
    if (moment || !str_is(record->type, "decision")) return OK;
    enum code rc = json_parse(record->bytes, &json_limits_record, wanted->arena, &body, wanted->err);
    if (rc) return rc;
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        if (!str_eq(json_text(json_key(&body, ids[i])), wanted->id)) continue;
        wanted->found = true;
        return json_copy(wanted->arena, &body, wanted->out) ? OK : E_NOMEM; // the newest counts
    }
    return OK;
}

enum code engine_find_decision(struct store *store, struct str tenant, struct str run, struct str id,
                               struct arena *arena, struct json *out, uint64_t *seq, struct error *err)
{
    struct wanted wanted = {.id = id, .arena = arena, .out = out, .err = err};
    enum code rc = store_replay(store, tenant, run, match_decision, &wanted, err);
    if (rc) return rc;
    if (seq) *seq = wanted.seq;
    return wanted.found ? OK : error_set(err, E_NOT_FOUND, "SIGNAL_NOT_FOUND: no decision %.*s", STR_ARG(id));
}

bool engine_same_signal(const struct signal *signal, const struct json *record)
{
    const struct json none = json_object();
    const struct json *payload = signal->payload.type != 0 ? &signal->payload : &none;
    const struct json *stored = json_key(record, "signalPayload");
    return str_is(json_text(json_key(record, "signalType")), signal_name(signal->type)) &&
           str_eq(json_text(json_at(record, STR("audit.reason"))), signal->reason) &&
           json_equal(payload, stored ? stored : &none);
}

enum code retry_run(struct engine *engine, struct resident *ended, const struct signal *signal, char run_out[129],
                    struct error *err)
{
    const struct run *run = ended->run;
    struct start_request request = {.program = ended->entry->program,
                                    .tenant = run->ids.tenant,
                                    .project = run->ids.project,
                                    .environment = run->ids.environment,
                                    .arguments = run->start.arguments,
                                    .work_dir = run->start.work_dir,
                                    .plan_uri = run->start.plan_uri,
                                    .plan_sha256 = run->start.plan_sha256,
                                    .triggered_by = signal->actor,
                                    .trigger_source = STR("manual"),
                                    .queue = run->start.queue,
                                    .original_run = run->ids.run};
    // The new run begins with the inputs that the ended one had in the end.
    if (!inputs_now(run, &engine->turn, &request.inputs)) return error_nomem(err);
    struct reuse *reuse = NULL;
    if (!signal->force) {
        enum code rc = engine_reusable(engine->store, run, &engine->turn, &reuse, &request.reuse_count, err);
        if (rc) return rc;
    }
    request.reuse = reuse;
    // What the reused steps left there belongs to their results.
    if (request.reuse_count > 0) request.artifacts_dir = run->start.artifacts_dir;
    return engine_start(engine, &request, run_out, err);
}
