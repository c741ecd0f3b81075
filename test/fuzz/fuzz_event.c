// Any bytes as a record of either vocabulary, as a ledger entry and as a signal: they are refused with a code, or give a
// moment that a view can fold, that the ledger tells again unchanged, and that can be shown in both vocabularies.
// The input is a log: one record a line.
#include "contract/contract.h"
#include "view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct run_ids ids = {.tenant = {"t", 1},
                                   .project = {"p", 1},
                                   .environment = {"e", 1},
                                   .run = {"r", 1},
                                   .plan_id = {"i", 1},
                                   .plan_version = {"1", 1}};

static const struct contract *contract_once(void)
{
    static struct arena arena;
    static const struct contract *contract;
    if (!contract) {
        arena_init(&arena, 64 * 1024, 1 << 26);
        INVARIANT(contract_open(&arena, &contract, NULL) == OK);
    }
    return contract;
}

static void check_ledger(const struct moment *moment, struct arena *arena)
{
    struct str entry, again;
    struct moment back;
    struct error err = {0};
    enum code rc = contract_encode_ledger(moment, arena, &entry, &err);
    if (rc) {
        INVARIANT(rc == err.code && (rc == E_LIMIT || rc == E_INVALID));
        return;
    }
    INVARIANT(contract_decode_ledger(entry, arena, &back, &err) == OK);
    INVARIANT(contract_encode_ledger(&back, arena, &again, &err) == OK);
    INVARIANT(str_eq(entry, again));
}

// What is written of it fits its schema, or is refused: contract_encode asks the general validator about what it takes to fit.
static void check_encoded(const struct moment *moment, const struct seal *read, struct arena *arena)
{
    struct seal seal = *read;
    if (seal.seq == 0) seal.seq = 1;
    for (size_t v = VOCABULARY_RUN; v <= VOCABULARY_NODES; v++) {
        struct encoded encoded;
        struct json record;
        struct error err = {0};
        bool began = moment->kind == MOMENT_STEP_STARTED && v == VOCABULARY_NODES;
        if (!moment_word(moment->kind, (enum vocabulary)v) || (began && moment->engine > 1)) continue;
        if (moment->kind == MOMENT_STEP_REDISPATCHED && moment->engine < 2) continue;
        enum code rc = contract_encode(contract_once(), (enum vocabulary)v, &ids, moment, &seal, arena, &encoded, &err);
        INVARIANT(rc == OK || rc == err.code);
        if (rc) continue;
        INVARIANT(json_parse(encoded.bytes, &json_limits_record, arena, &record, &err) == OK);
        INVARIANT(contract_check(contract_once(), (enum vocabulary)v, &record, &err) == OK);
    }
}

static void check_moment(const struct moment *moment, const struct seal *seal, struct run_view *view,
                         struct arena *arena)
{
    struct json shown;
    struct error err = {0};
    uint64_t before = view->last_seq;
    INVARIANT(view_fold(view, moment, seal->seq));
    INVARIANT(view->last_seq >= before);
    INVARIANT(view->running_count + view->success_count + view->failed_count + view->skipped_count <= view->step_count);
    if (moment->kind == MOMENT_UNKNOWN) return;
    check_ledger(moment, arena);
    check_encoded(moment, seal, arena);
    INVARIANT(contract_show(contract_once(), VOCABULARY_RUN, &ids, moment, seal, arena, &shown, &err) == OK);
    INVARIANT(contract_show(contract_once(), VOCABULARY_NODES, &ids, moment, seal, arena, &shown, &err) == OK);
}

// What a worker reports is taken as one of its own events, or refused with a code.
static void check_ingest(struct str line, struct arena *arena)
{
    struct json event;
    struct error err = {0};
    if (json_parse(line, &json_limits_default, arena, &event, &err)) return;
    for (int first_party = 0; first_party < 2; first_party++) {
        struct ingested said;
        err = (struct error){0};
        enum code rc = noetl_ingest(&event, first_party, arena, &said, &err);
        INVARIANT(rc == OK || ((rc == E_INVALID || rc == E_DENIED) && rc == err.code && err.message[0]));
        if (rc == OK)
            INVARIANT(said.step.len && said.execution.len && (!said.ends || said.outcome.type == JSON_OBJECT));
    }
    struct result_place place, again;
    struct str ref = json_text(json_at(&event, STR("payload.result_ref.ref")));
    if (!result_ref_parse(ref, arena, &place)) return;
    INVARIANT(result_ref_parse(result_ref_format(&place, arena), arena, &again));
    INVARIANT(str_eq(place.step, again.step) && str_eq(place.task, again.task) && place.visit == again.visit &&
              place.iteration == again.iteration && place.attempt == again.attempt);
}

static void check_line(struct str line, struct run_view *view, struct arena *arena)
{
    struct moment moment;
    struct seal seal;
    for (size_t v = VOCABULARY_RUN; v <= VOCABULARY_NODES; v++) {
        struct error err = {0};
        enum code rc = contract_decode((enum vocabulary)v, line, arena, &moment, &seal, NULL, &err);
        INVARIANT(rc == OK || (rc == E_CORRUPT && rc == err.code && err.message[0]));
        if (rc == OK) check_moment(&moment, &seal, view, arena);
    }
    check_ingest(line, arena);
    struct error err = {0};
    enum code rc = contract_decode_ledger(line, arena, &moment, &err);
    INVARIANT(rc == OK || rc == E_CORRUPT);
    if (rc == OK) {
        seal = (struct seal){.seq = view->last_seq};
        check_moment(&moment, &seal, view, arena);
    }
    struct signal signal, again;
    rc = signal_decode(contract_once(), line, arena, &signal, &err);
    INVARIANT(rc == OK || rc == E_INVALID);
    if (rc == OK) {
        INVARIANT(signal_encode(&signal, arena, &line, &err) == OK);
        INVARIANT(signal_decode(contract_once(), line, arena, &again, &err) == OK);
        INVARIANT(again.type == signal.type && str_eq(again.id, signal.id));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct run_view view;
    struct json snapshot;
    arena_init(&arena, 64 * 1024, 1 << 29);
    INVARIANT(view_init(&view, &arena, &ids));
    struct str rest = {(const char *)data, size};
    while (rest.len) {
        struct str line = str_cut(rest, '\n', &rest);
        check_line(line, &view, &arena);
    }
    INVARIANT(view_json(&view, &arena, &snapshot));
    arena_release(&arena);
    return 0;
}
