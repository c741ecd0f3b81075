// One stored run: folded into a view, or into what explains.
#include "reading/reading.h"

enum { EVENT_BITS = 48 };

uint64_t reading_at(uint64_t event, int64_t entries)
{
    INVARIANT(event < (uint64_t)1 << EVENT_BITS && entries <= READING_ENTRIES_MAX);
    return event | (entries < 0 ? 0 : (uint64_t)(entries + 1) << EVENT_BITS);
}

uint64_t reading_event(uint64_t at)
{
    return at == READING_NOW ? at : at & (((uint64_t)1 << EVENT_BITS) - 1);
}

bool reading_within(uint64_t at)
{
    return at != READING_NOW && at >> EVENT_BITS;
}

bool reading_at_parse(struct str text, uint64_t *out)
{
    struct str rest, whole = str_cut(text, '.', &rest);
    int64_t event, entries = -1;
    if (!str_int64(whole, &event) || event < 1 || event >= (int64_t)1 << EVENT_BITS) return false;
    if (whole.len < text.len && (!str_int64(rest, &entries) || entries < 0 || entries > READING_ENTRIES_MAX)) return false;
    *out = reading_at((uint64_t)event, entries);
    return true;
}

// What of a log is before a moment, asked record by record in their order.
struct until {
    uint64_t at;
    uint64_t entries; // of its event, so far
};

static bool is_before(struct until *until, const struct record *record)
{
    uint64_t event = reading_event(until->at);
    if (record->seq != event || record->ledger_seq == 0) return record->seq <= event;
    return !reading_within(until->at) || until->entries++ < (until->at >> EVENT_BITS) - 1;
}

struct folding {
    struct run_view *view;
    struct until until;
};

static enum code fold_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    struct folding *folding = context;
    (void)seal;
    if (!is_before(&folding->until, record) || !moment) return OK;
    return view_fold(folding->view, moment, record->seq) ? OK : E_NOMEM;
}

enum code reading_fold(struct store *store, const struct run_head *head, uint64_t at, struct arena *arena,
                       struct folded *out, struct error *err)
{
    *out = (struct folded){.head = *head, .past = reading_event(at) < head->last_seq || reading_within(at)};
    if (!view_init(&out->view, arena, &head->ids)) return error_nomem(err);
    // Without its document the run still has a story.
    if (engine_program(store, head, &out->program, &out->unreadable) == OK && !view_plan(&out->view, out->program))
        return error_nomem(err);
    struct folding folding = {.view = &out->view, .until = {.at = at}};
    return store_replay(store, head->ids.tenant, head->ids.run, fold_record, &folding, err);
}

// In `arena`; NULL: it has none.
static enum code read_start(struct store *store, const struct run_head *head, struct arena *arena,
                            const struct start_facts **out, struct error *err)
{
    struct records first;
    struct moment moment;
    struct seal seal;
    *out = NULL;
    struct record_range range = {.tenant = head->ids.tenant, .run = head->ids.run, .limit = 1};
    enum code rc = store_read(store, &range, arena, &first, err);
    if (rc || first.count == 0) return rc;
    rc = contract_decode(head->vocabulary, first.items[0].bytes, arena, &moment, &seal, NULL, err);
    if (!rc) *out = moment.start;
    return rc;
}

enum code reading_show(const struct showing *showing, const struct moment *moment, const struct seal *seal,
                       struct arena *arena, struct json *out, struct error *err)
{
    const struct run_head *head = showing->head;
    struct moment told = *moment;
    enum code rc = OK;
    if (told.kind == MOMENT_RUN_STARTED && !told.start && showing->to != head->vocabulary)
        rc = read_start(showing->store, head, arena, &told.start, err);
    return rc ? rc : contract_show(showing->contract, showing->to, &head->ids, &told, seal, arena, out, err);
}

void folded_release(struct folded *folded)
{
    if (folded->program) program_release(folded->program);
    folded->program = NULL;
}

struct telling {
    struct explain *explain;
    struct arena *arena;
    struct until until;
    struct error *err;
};

static enum code tell_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    struct telling *telling = context;
    (void)seal;
    if (!is_before(&telling->until, record)) return OK;
    if (moment) return explain_fold(telling->explain, moment, record->seq, telling->err);
    struct json body;
    if (!str_is(record->type, "decision")) return OK;
    struct str bytes = arena_copy(telling->arena, record->bytes);
    if (!bytes.ptr) return error_nomem(telling->err);
    enum code rc = json_parse(bytes, &json_limits_record, telling->arena, &body, telling->err);
    return rc ? rc : explain_decision(telling->explain, &body, record->seq, telling->err);
}

enum code reading_explain(struct store *store, const struct run_head *head, uint64_t at, struct str step, bool whole,
                          struct arena *arena, struct explained_run *out, struct error *err)
{
    struct kernel_env env = {.context = store, .blob = store_blob_of};
    *out = (struct explained_run){.head = *head};
    enum code rc = engine_program(store, head, &out->program, err);
    if (!rc) rc = explain_open(out->program, &out->head.ids, &env, &out->explain, err);
    if (!rc) rc = explain_watch(out->explain, step, whole, err);
    if (rc) return rc;
    struct telling telling = {.explain = out->explain, .arena = arena, .until = {.at = at}, .err = err};
    return store_replay(store, head->ids.tenant, head->ids.run, tell_record, &telling, err);
}

void explained_release(struct explained_run *explained)
{
    explain_close(explained->explain);
    if (explained->program) program_release(explained->program);
    *explained = (struct explained_run){0};
}
