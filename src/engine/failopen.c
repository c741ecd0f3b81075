// Starts that go on while their store takes nothing (ES-5b, ADR 0036). What may fail open and has waited for longer than the write
// budget is made durable in the outbox, and its effects are carried out. The run is then ahead of its log by these moments, wherever it
// is folded again, and they stand first in the next batch that has anything of the run: so the log gets them in their order, once.
#include "engine/batch.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEP_MS = 10000 };

// ---- what may

// The beginning of an attempt, in every vocabulary. Everything else says what became of an attempt, what a signal wants, or what a run is.
static bool moment_may(enum moment_kind kind)
{
    return kind == MOMENT_STEP_STARTED || kind == MOMENT_STEP_REDISPATCHED || kind == MOMENT_TASK_STARTED ||
           kind == MOMENT_ATTEMPT_STARTED;
}

// Nothing but starts came of it, each of them drafted and so known to fit into the log, and nothing else is ordered or kept with it.
static bool input_may(const struct batch *batch, const struct decided *decided)
{
    const struct queued *queued = &decided->queued;
    if (decided->refused || decided->made || queued->note_count > 0 || queued->inbox_id != 0) return false;
    if (queued->blob_count + decided->outcome.blob_count > 0) return false;
    for (size_t i = 0; i < decided->item_count; i++) {
        const struct append_item *item = &batch->sealed.items[decided->first_item + i];
        if (!item->moment || !moment_may(item->moment->kind) || item->persisted_ms == 0 || item->idempotent) return false;
    }
    for (size_t i = 0; i < decided->outcome.effect_count; i++) {
        enum effect_kind kind = decided->outcome.effects[i].kind;
        if (kind != EFFECT_EXECUTE && kind != EFFECT_TIMER) return false;
    }
    return true;
}

static bool run_may(const struct batch *batch, uint32_t group)
{
    const struct resident *resident = batch->groups[group].resident;
    size_t items = 0;
    bool over = false;
    if (resident->gone || !resident->begun || resident->idle || resident->terminal) return false;
    for (size_t i = 0; i < batch->count; i++) {
        const struct decided *decided = &batch->decided[i];
        if (decided->group != group || decided->done) continue;
        if (!input_may(batch, decided)) return false;
        items += decided->item_count;
        over = over || (decided->item_count > 0 && is_over_budget(batch->engine, &decided->queued));
    }
    return items > 0 && over;
}

static bool engine_may(const struct engine *engine)
{
    const struct engine_options *options = &engine->options;
    if (!options->limits.starts_fail_open || options->limits.write_budget_ms == 0 || engine->holding) return false;
    if (!outbox_takes(&engine->outbox) || store_fenced(engine->store)) return false;
    return !options->may_start || options->may_start(options->may_start_context);
}

// ---- of one run, in memory

static struct run_outbox *run_outbox_make(const struct resident *resident)
{
    struct run_outbox *made = calloc(1, sizeof(*made));
    if (!made) return NULL;
    arena_init(&made->arena, 1024, (size_t)64 << 20);
    made->after = run_log_position(resident->log);
    return made;
}

static enum code run_outbox_add(struct run_outbox *outbox, struct str text, struct error *err)
{
    if (!ARENA_ROOM(&outbox->arena, outbox->moments, outbox->count, &outbox->capacity)) return error_nomem(err);
    struct str kept = arena_copy(&outbox->arena, text);
    if (!kept.ptr) return error_nomem(err);
    enum code rc = contract_decode_ledger(kept, &outbox->arena, &outbox->moments[outbox->count], err);
    if (!rc) outbox->count++;
    return rc;
}

void run_outbox_free(struct engine *engine, struct resident *resident)
{
    struct run_outbox *outbox = resident->outbox;
    if (!outbox) return;
    INVARIANT(engine->outboxed > 0);
    engine->outboxed--;
    resident->outbox = NULL;
    arena_release(&outbox->arena);
    free(outbox);
}

static void tell(const struct engine *engine, enum outbox_news what, const struct run_ids *ids, const struct moment *moments,
                 size_t count)
{
    const struct engine_observer *observer = &engine->options.observer;
    struct engine_outbox news = {.what = what, .tenant = ids->tenant, .run = ids->run, .moments = moments, .count = count};
    if (observer->outbox) observer->outbox(observer->context, &news);
}

enum code outbox_fold(const struct resident *resident, struct run *run, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; resident->outbox && !rc && i < resident->outbox->count; i++)
        rc = kernel_fold(run, &resident->outbox->moments[i], err);
    return rc;
}

// ---- into the outbox

static enum code add_line(const struct batch *batch, uint32_t group, struct buf *lines, struct error *err)
{
    struct arena *turn = &batch->engine->turn;
    const struct resident *resident = batch->groups[group].resident;
    struct outbox_entry entry = {.tenant = resident->ids.tenant,
                                 .run = resident->ids.run,
                                 .epoch = run_log_epoch(resident->log),
                                 .after = run_log_position(resident->log)};
    struct str *texts = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct decided *decided = &batch->decided[i];
        for (size_t k = 0; decided->group == group && !decided->done && k < decided->item_count; k++) {
            if (!ARENA_ROOM(turn, texts, entry.count, &capacity)) return error_nomem(err);
            const struct moment *moment = batch->sealed.items[decided->first_item + k].moment;
            enum code rc = contract_encode_ledger(moment, turn, &texts[entry.count], err);
            if (rc) return rc;
            entry.count++;
        }
    }
    entry.moments = texts;
    struct resident *mine = batch->groups[group].resident;
    if (!mine->outbox) {
        mine->outbox = run_outbox_make(mine);
        if (!mine->outbox) return error_nomem(err);
        batch->engine->outboxed++;
    }
    struct run_outbox *outbox = mine->outbox;
    outbox->drafted = 0;
    for (size_t i = 0; i < entry.count; i++) {
        enum code rc = run_outbox_add(outbox, texts[i], err);
        if (rc) return rc;
        outbox->drafted++;
    }
    return outbox_line(&entry, lines, err);
}

// The moments that were not written are not there.
static void take_drafts_back(struct batch *batch, const bool *may)
{
    for (uint32_t g = 0; g < batch->group_count; g++) {
        struct resident *resident = batch->groups[g].resident;
        if (!may[g] || !resident->outbox) continue;
        resident->outbox->count -= resident->outbox->drafted;
        resident->outbox->drafted = 0;
        if (resident->outbox->count == 0) run_outbox_free(batch->engine, resident);
    }
}

static enum code go_on(struct batch *batch, uint32_t group, struct error *err)
{
    struct engine *engine = batch->engine;
    struct resident *resident = batch->groups[group].resident;
    struct run_outbox *outbox = resident->outbox;
    size_t first = outbox->count - outbox->drafted;
    const struct moment *last = &outbox->moments[outbox->count - 1];
    outbox->drafted = 0;
    os_log(LOG_WARN, "the store is away, a start goes on code=STATE_STORE_WRITE_BUDGET_EXCEEDED mode=open run=%.*s step=%.*s "
                     "attempt=%u outbox=%zu",
           STR_ARG(resident->ids.run), STR_ARG(last->step), last->logical, outbox->count);
    tell(engine, OUTBOX_WRITTEN, &resident->ids, outbox->moments + first, outbox->count - first);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < batch->count; i++) {
        struct decided *decided = &batch->decided[i];
        if (decided->group != group || decided->done) continue;
        decided->done = true;
        const struct tool_result *result = &decided->queued.result;
        if (result->stored) result->stored(result->memory);
        rc = carry_out_effects(batch, decided, err);
        if (rc) rc = owe(engine, resident, rc, err);
    }
    return rc;
}

enum code batch_fail_open(struct batch *batch, struct error *err)
{
    struct engine *engine = batch->engine;
    if (!batch->ahead || !engine_may(engine)) return OK;
    bool *may = ARENA_ARRAY(&engine->turn, batch->group_count + 1, bool), any = false;
    for (uint32_t g = 0; may && g < batch->group_count; g++) any |= may[g] = run_may(batch, g);
    if (!any) return OK;
    struct buf lines SCOPED(buf_release) = buf_of(OUTBOX_SIZE_MAX);
    struct error why = {0};
    enum code rc = OK;
    for (uint32_t g = 0; !rc && g < batch->group_count; g++)
        if (may[g]) rc = add_line(batch, g, &lines, &why);
    if (!rc) rc = outbox_write(&engine->outbox, buf_str(&lines), engine->options.entropy, &why);
    if (rc) { // then they wait, as everything else does
        os_log(LOG_WARN, "the outbox takes nothing, starts wait for the store why=\"%s\"", why.message);
        take_drafts_back(batch, may);
        return OK;
    }
    COVER(start_fails_open);
    if (engine->outbox.next_sweep_mono == INT64_MAX) engine->outbox.next_sweep_mono = engine->now.mono_ms + SWEEP_MS;
    for (uint32_t g = 0; !rc && g < batch->group_count; g++)
        if (may[g]) rc = go_on(batch, g, err);
    return rc;
}

// ---- into the log

enum code outbox_collect(struct batch *batch, struct group *group, struct error *err)
{
    const struct run_outbox *outbox = group->resident->outbox;
    group->outbox_first = batch->sealed.item_count;
    for (size_t i = 0; i < outbox->count; i++) {
        struct append_item *item = item_add(batch, group->resident);
        if (!item) return error_nomem(err);
        item->moment = &outbox->moments[i];
    }
    group->outbox_count = outbox->count;
    return OK;
}

// The last run that was ahead of its log is not any more. The next owner of a lost run may have read its entry and not yet logged it.
static void outbox_done(struct engine *engine)
{
    if (engine->outboxed > 0) return;
    if (engine->outbox.left)
        outbox_leave(&engine->outbox);
    else
        outbox_clear(&engine->outbox);
}

void outbox_logged(struct batch *batch, struct group *group)
{
    struct engine *engine = batch->engine;
    struct resident *resident = group->resident;
    const struct run_outbox *outbox = resident->outbox;
    INVARIANT(outbox && outbox->count == group->outbox_count);
    COVER(outbox_is_logged);
    os_log(LOG_WARN, "a start is in the log now code=STATE_STORE_WRITE_BUDGET_EXCEEDED mode=open run=%.*s events=%zu",
           STR_ARG(resident->ids.run), outbox->count);
    tell_items(batch, resident, group->outbox_first, group->outbox_count, 0);
    tell(engine, OUTBOX_LOGGED, &resident->ids, outbox->moments, outbox->count);
    run_outbox_free(engine, resident);
    outbox_done(engine);
    if (engine->outbox.disk) engine->outbox.next_sweep_mono = engine->now.mono_ms;
}

void outbox_lost(struct engine *engine, struct resident *resident)
{
    const struct run_outbox *outbox = resident->outbox;
    if (!outbox) return;
    COVER(outbox_of_a_lost_run);
    os_log(LOG_WARN, "starts of the outbox are not in the log: the run is not this engine's any more run=%.*s events=%zu",
           STR_ARG(resident->ids.run), outbox->count);
    tell(engine, OUTBOX_LOST, &resident->ids, outbox->moments, outbox->count);
    run_outbox_free(engine, resident);
    engine->outbox.left = true;
    outbox_done(engine);
}

// When nothing else is stored of such a run, its outbox is.
enum code outbox_queue(struct engine *engine, struct error *err)
{
    for (size_t i = 0; i < engine->table_size; i++)
        for (struct resident *r = engine->table[i]; r; r = r->next) {
            if (!r->outbox || r->outbox->queued || r->gone) continue;
            if (!queue_add(engine, r, INPUT_NOTE)) return error_nomem(err);
            r->outbox->queued = true;
        }
    return OK;
}

// ---- of a process that is gone

struct finding {
    struct resident *resident;
    struct error *err;
};

static bool same_position(const struct replay_cursor *a, const struct replay_cursor *b)
{
    return a->seq == b->seq && a->ledger_seq == b->ledger_seq && digest_eq(&a->head, &b->head) &&
           digest_eq(&a->ledger_head, &b->ledger_head);
}

static enum code find_one(void *context, const struct outbox_entry *entry)
{
    struct finding *finding = context;
    struct resident *resident = finding->resident;
    struct replay_cursor now = run_log_position(resident->log);
    if (!same_position(&entry->after, &now)) return OK;
    if (!resident->outbox) resident->outbox = run_outbox_make(resident);
    if (!resident->outbox) return error_nomem(finding->err);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < entry->count; i++) rc = run_outbox_add(resident->outbox, entry->moments[i], finding->err);
    return rc;
}

enum code outbox_find(struct engine *engine, struct resident *resident, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)512 << 20);
    struct finding finding = {.resident = resident, .err = err};
    INVARIANT(!resident->outbox);
    enum code rc = outbox_of_run(&engine->outbox, resident->ids.tenant, resident->ids.run, &arena, find_one, &finding, err);
    if (resident->outbox) engine->outboxed++;
    if (!rc) rc = outbox_fold(resident, resident->run, err);
    if (!rc && resident->outbox) {
        COVER(outbox_of_a_dead_engine);
        os_log(LOG_WARN, "starts of an engine that is gone were found in the outbox run=%.*s events=%zu",
               STR_ARG(resident->ids.run), resident->outbox->count);
    }
    return rc;
}

struct seen {
    const struct outbox_entry *entry;
    struct arena *arena;
    size_t count; // of its moments, as they follow each other in the log
};

static enum code see_record(void *context, const struct record *record, const struct moment *moment, const struct seal *seal)
{
    (void)record, (void)seal;
    struct seen *seen = context;
    struct str text = {0};
    if (!moment || contract_encode_ledger(moment, seen->arena, &text, NULL)) return OK;
    if (!str_eq(text, seen->entry->moments[seen->count])) seen->count = 0;
    seen->count += str_eq(text, seen->entry->moments[seen->count]);
    return seen->count == seen->entry->count ? E_CANCELLED : OK;
}

// Whether the log goes on with them, perhaps behind others of the outbox.
static enum code look_in_log(struct engine *engine, const struct outbox_entry *entry, struct arena *arena, bool *logged)
{
    struct replay_cursor at = entry->after;
    struct seen seen = {.entry = entry, .arena = arena};
    *logged = true;
    if (entry->count == 0) return OK;
    enum code rc = store_replay_from(engine->store, entry->tenant, entry->run, &at, see_record, &seen, NULL);
    *logged = seen.count == entry->count;
    return rc;
}

// An entry that does not stand behind the last records of its run any more: it is in the log, or never will be.
static bool is_settled(void *context, const struct outbox_entry *entry)
{
    struct engine *engine = context;
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)64 << 20);
    struct run_head head;
    struct error err = {0};
    enum code rc = store_head(engine->store, entry->tenant, entry->run, &arena, &head, &err);
    struct replay_cursor now = {
        .seq = head.last_seq, .ledger_seq = head.last_ledger_seq, .head = head.head, .ledger_head = head.ledger_head};
    bool settled = rc == E_NOT_FOUND || (!rc && (head.terminal || !same_position(&entry->after, &now))), logged = false;
    if (settled && !rc && code_is_outage(look_in_log(engine, entry, &arena, &logged))) return false; // asked again
    if (settled && !logged) {
        COVER(outbox_of_an_ended_epoch);
        os_log(LOG_WARN, "starts of the outbox are not in the log: it went on without them run=%.*s epoch=%llu events=%zu",
               STR_ARG(entry->run), (unsigned long long)entry->epoch, entry->count);
        tell(engine, OUTBOX_LOST, &(struct run_ids){.tenant = entry->tenant, .run = entry->run}, NULL, entry->count);
    }
    return settled;
}

void outbox_look(struct engine *engine)
{
    struct error err = {0};
    engine->outbox.next_sweep_mono = engine->now.mono_ms + SWEEP_MS;
    if (outbox_sweep(&engine->outbox, is_settled, engine, &err))
        os_log(LOG_WARN, "the outbox was not looked through why=\"%s\"", err.message);
}
