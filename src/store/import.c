// S13. What comes from elsewhere is believed only as far as it proves itself: every event must follow from the one before and the last
// one must be what the head says. Then it goes the way of every batch, through the backend's commit, with the bytes as they are.
#include "base/text.h"
#include "store/backend.h"

#include "base/map.h"

#include <string.h>

struct intake {
    struct store *store;
    struct run_import *runs;
    size_t run_count;
    struct arena *turn;
    struct error *err;
    struct map names;      // tenant/run of the runs so far
    struct run_log **logs; // by run; NULL: nothing to do
    struct commit_event *events;
    struct commit_ledger *ledger;
    struct commit_head *heads;
    size_t event_count, ledger_count, head_count;
};

static enum code broken(const struct intake *intake, const struct run_head *head, const char *what, uint64_t number,
                        const char *why)
{
    return error_set(intake->err, E_CORRUPT, "run %.*s, %s %llu: %s", STR_ARG(head->ids.run), what,
                     (unsigned long long)number, why);
}

// ---- proof

static bool same_text(struct str told, struct str kept)
{
    return told.len == 0 || str_eq(told, kept);
}

static bool belongs(const struct run_ids *told, const struct run_ids *ids)
{
    return same_text(told->tenant, ids->tenant) && same_text(told->project, ids->project) &&
           same_text(told->environment, ids->environment) && same_text(told->run, ids->run) &&
           same_text(told->plan_id, ids->plan_id) && same_text(told->plan_version, ids->plan_version);
}

// One event: its place in the chain, and what a backend keeps of it beside the bytes.
static enum code check_event(struct intake *intake, const struct run_import *run, size_t i, struct digest *previous,
                             bool *ended, struct commit_event *out)
{
    const struct run_head *head = run->head;
    const struct record *record = &run->events[i];
    struct moment moment;
    struct seal seal;
    struct run_ids told = {0};
    struct error why = {0};
    if (record->redacted) return broken(intake, head, "event", i + 1, "its values were taken out");
    enum code rc = contract_decode(head->vocabulary, record->bytes, intake->turn, &moment, &seal, &told, &why);
    if (rc == E_NOMEM) return error_nomem(intake->err);
    if (rc) return broken(intake, head, "event", i + 1, why.message);
    if (record->seq != i + 1 || seal.seq != i + 1) return broken(intake, head, "event", i + 1, "it is missing");
    if (!digest_eq(&seal.previous, previous))
        return broken(intake, head, "event", i + 1, "its previous hash is not the hash of the event before it");
    if (!belongs(&told, &head->ids)) return broken(intake, head, "event", i + 1, "it belongs to another run");
    if (!start_fits(&moment, &head->document))
        return broken(intake, head, "event", i + 1, "it names another document than the head of the run");
    if (*ended && moment.kind != MOMENT_RUN_PROCESSED) // S7
        return broken(intake, head, "event", i + 1, "it follows the end of the run");
    struct str slot = moment_slot(head->vocabulary, &moment, intake->turn);
    if (!slot.ptr) return error_nomem(intake->err);
    const char *word = moment.kind == MOMENT_UNKNOWN ? NULL : moment_word(moment.kind, head->vocabulary);
    struct str type = word ? str_from(word) : record->type;
    *out = (struct commit_event){
        .seq = record->seq,
        .encoded = {.type = type,
                    .bytes = record->bytes,
                    .payload = contract_parts(head->vocabulary, record->bytes).payload,
                    .key = event_key(head->ids.run, slot, moment.logical, type, head->ids.plan_version),
                    .hash = sha256(record->bytes)},
        .persisted_ms = seal.persisted_ms,
    };
    *previous = out->encoded.hash;
    *ended = *ended || moment_is_terminal(moment.kind);
    return OK;
}

static enum code check_events(struct intake *intake, const struct run_import *run, struct commit_event *events)
{
    const struct run_head *head = run->head;
    struct digest previous = {{0}};
    bool ended = false;
    struct map keys; // I3
    map_init(&keys, intake->turn);
    for (size_t i = 0; i < run->event_count; i++) {
        enum code rc = check_event(intake, run, i, &previous, &ended, &events[i]);
        if (rc) return rc;
        uint32_t there = MAP_NONE;
        const struct digest *key = &events[i].encoded.key;
        if (!map_put(&keys, (struct str){(const char *)key->b, SHA256_SIZE}, (uint32_t)i, &there))
            return error_nomem(intake->err);
        if (there != MAP_NONE) return broken(intake, head, "event", i + 1, "it is there already, with the same key");
    }
    if (run->event_count != head->last_seq)
        return broken(intake, head, "event", run->event_count + 1,
                      "the head of the run tells of another number of events");
    if (!digest_eq(&previous, &head->head))
        return broken(intake, head, "event", head->last_seq, "its hash is not the head of the run");
    if (ended != head->terminal)
        return broken(intake, head, "event", head->last_seq,
                      "the head and the events disagree about the end of the run");
    return OK;
}

static enum code check_ledger(struct intake *intake, const struct run_import *run, struct commit_ledger *out)
{
    const struct run_head *head = run->head;
    struct digest previous = {{0}};
    uint64_t after = 0;
    for (size_t i = 0; i < run->ledger_count; i++) {
        const struct record *record = &run->ledger[i];
        const struct str chained[] = {{(const char *)previous.b, SHA256_SIZE}, record->bytes};
        previous = sha256_parts(chained, ARRAY_COUNT(chained));
        if (record->ledger_seq != i + 1) return broken(intake, head, "ledger entry", i + 1, "it is missing");
        if (!digest_eq(&previous, &record->hash))
            return broken(intake, head, "ledger entry", i + 1,
                          "its hash is not the one of its bytes and the entry before it");
        if (record->seq < after || record->seq > head->last_seq)
            return broken(intake, head, "ledger entry", i + 1, "it follows an event that is not there");
        after = record->seq;
        out[i] = (struct commit_ledger){.ledger_seq = record->ledger_seq,
                                        .after_seq = record->seq,
                                        .kind = record->type,
                                        .signal_id = record->signal_id,
                                        .bytes = record->bytes,
                                        .hash = record->hash};
    }
    if (run->ledger_count != head->last_ledger_seq || !digest_eq(&previous, &head->ledger_head))
        return broken(intake, head, "ledger entry", head->last_ledger_seq,
                      "its hash is not the ledger head of the run");
    return OK;
}

// ---- what is there already

static bool same_log(const struct run_head *a, const struct run_head *b)
{
    return a->last_seq == b->last_seq && a->last_ledger_seq == b->last_ledger_seq && digest_eq(&a->head, &b->head) &&
           digest_eq(&a->ledger_head, &b->ledger_head);
}

static bool is_beginning(const struct run_head *there, const struct run_import *run)
{
    uint64_t events = there->last_seq, entries = there->last_ledger_seq;
    if (events > run->event_count || entries > run->ledger_count) return false;
    if (entries > 0 && !digest_eq(&there->ledger_head, &run->ledger[entries - 1].hash)) return false;
    if (events == 0) return true;
    struct digest last = sha256(run->events[events - 1].bytes);
    return digest_eq(&there->head, &last);
}

static enum code make_log(struct intake *intake, struct run_import *run, struct run_log **out)
{
    const struct run_head *head = run->head;
    struct run_head there;
    enum code rc = intake->store->ops->log.head(intake->store, head->ids.tenant, head->ids.run, intake->turn, &there, NULL);
    if (rc == E_NOT_FOUND) {
        struct run_create create = {.ids = head->ids,
                                    .vocabulary = head->vocabulary,
                                    .document = head->document,
                                    .name = head->name,
                                    .parent_run = head->parent_run,
                                    .original_run = head->original_run};
        run->result = IMPORT_NEW;
        return store_create_run(intake->store, &create, out, intake->err);
    }
    if (rc) return error_set(intake->err, rc, "cannot look for run %.*s: %s", STR_ARG(head->ids.run), code_text(rc));
    run->result = IMPORT_SAME;
    if (same_log(&there, head)) return OK;
    bool shorter = is_beginning(&there, run);
    if (!shorter || !run->extend)
        return error_set(intake->err, E_CONFLICT, "run %.*s is there already with %s log (%llu events, here %llu)",
                         STR_ARG(head->ids.run), shorter ? "the beginning of this" : "another",
                         (unsigned long long)there.last_seq, (unsigned long long)head->last_seq);
    run->result = IMPORT_EXTENDED;
    return store_claim_run(intake->store, head->ids.tenant, head->ids.run, out, intake->err);
}

// ---- the batch

static void add_head(struct intake *intake, const struct run_head *head, struct run_log *log)
{
    INVARIANT(log->touched == 0);
    intake->heads[intake->head_count++] = (struct commit_head){
        .log = log,
        .create = !log->created,
        .expect_seq = log->last_seq,
        .expect_ledger_seq = log->ledger_seq,
        .last_seq = head->last_seq,
        .ledger_seq = head->last_ledger_seq,
        .head = head->head,
        .ledger_head = head->ledger_head,
        .summary = head->summary,
        .terminal = head->terminal,
        .updated_ms = head->updated_ms,
        .backend_id = log->backend_id,
    };
    log->touched = (uint32_t)intake->head_count;
}

static enum code note_name(struct intake *intake, const struct run_ids *ids, size_t i)
{
    const struct str parts[] = {ids->tenant, STR("/"), ids->run};
    struct buf name = buf_of(SIZE_MAX / 4);
    for (size_t k = 0; k < ARRAY_COUNT(parts); k++) buf_add(&name, parts[k]);
    struct str kept = buf_keep(&name, intake->turn);
    uint32_t there = MAP_NONE;
    if (!kept.ptr || !map_put(&intake->names, kept, (uint32_t)i, &there)) return error_nomem(intake->err);
    return there == MAP_NONE ? OK : error_set(intake->err, E_CONFLICT, "run %.*s comes twice", STR_ARG(ids->run));
}

static enum code take_in(struct intake *intake, size_t i)
{
    struct run_import *run = &intake->runs[i];
    struct commit_event *events = &intake->events[intake->event_count];
    struct commit_ledger *ledger = &intake->ledger[intake->ledger_count];
    enum code rc = note_name(intake, &run->head->ids, i);
    if (!rc) rc = check_events(intake, run, events);
    if (!rc) rc = check_ledger(intake, run, ledger);
    if (!rc) rc = make_log(intake, run, &intake->logs[i]);
    struct run_log *log = intake->logs[i];
    if (rc || !log) return rc;
    add_head(intake, run->head, log);
    // Only what is not there yet.
    size_t event_skip = (size_t)log->last_seq, ledger_skip = (size_t)log->ledger_seq;
    size_t event_count = run->event_count - event_skip, ledger_count = run->ledger_count - ledger_skip;
    memmove(events, events + event_skip, event_count * sizeof(*events));
    memmove(ledger, ledger + ledger_skip, ledger_count * sizeof(*ledger));
    for (size_t k = 0; k < event_count; k++) events[k].log = log;
    for (size_t k = 0; k < ledger_count; k++) ledger[k].log = log;
    intake->event_count += event_count;
    intake->ledger_count += ledger_count;
    return OK;
}

static enum code prepare(struct intake *intake)
{
    size_t events = 0, entries = 0;
    for (size_t i = 0; i < intake->run_count; i++) {
        events += intake->runs[i].event_count;
        entries += intake->runs[i].ledger_count;
    }
    intake->logs = ARENA_ARRAY(intake->turn, intake->run_count, struct run_log *);
    intake->heads = ARENA_ARRAY(intake->turn, intake->run_count, struct commit_head);
    intake->events = ARENA_ARRAY(intake->turn, events + 1, struct commit_event);
    intake->ledger = ARENA_ARRAY(intake->turn, entries + 1, struct commit_ledger);
    return intake->logs && intake->heads && intake->events && intake->ledger ? OK : error_nomem(intake->err);
}

static enum code check_blobs(const struct append_blob *blobs, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct digest hash = sha256(blobs[i].bytes);
        char hex[SHA256_HEX + 1];
        digest_hex(&blobs[i].sha256, hex);
        if (!digest_eq(&hash, &blobs[i].sha256)) return error_set(err, E_CORRUPT, "blob %s has other content", hex);
    }
    return OK;
}

enum code store_import(struct store *store, struct run_import *runs, size_t run_count, const struct append_blob *blobs,
                       size_t blob_count, struct arena *turn, struct error *err)
{
    enum code rc = store_writable(store, err);
    if (rc) return rc;
    struct intake intake = {.store = store, .runs = runs, .run_count = run_count, .turn = turn, .err = err};
    map_init(&intake.names, turn);
    rc = check_blobs(blobs, blob_count, err);
    if (!rc) rc = prepare(&intake);
    for (size_t i = 0; i < run_count && !rc; i++) rc = take_in(&intake, i);
    if (!rc && (intake.head_count || blob_count)) {
        struct commit commit = {.events = intake.events,
                                .event_count = intake.event_count,
                                .ledger = intake.ledger,
                                .ledger_count = intake.ledger_count,
                                .heads = intake.heads,
                                .head_count = intake.head_count,
                                .blobs = blobs,
                                .blob_count = blob_count};
        commit_check(&commit);
        rc = store_heed(store, store->ops->log.commit(store, &commit, turn, err));
        for (size_t i = 0; i < intake.head_count && !rc; i++) {
            intake.heads[i].log->backend_id = intake.heads[i].backend_id;
            intake.heads[i].log->created = true;
        }
    }
    for (size_t i = 0; intake.logs && i < run_count; i++) {
        if (!intake.logs[i]) continue;
        intake.logs[i]->touched = 0;
        store_release_run(store, intake.logs[i]);
    }
    return rc;
}
