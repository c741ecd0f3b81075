// Holds everything the store says about a run against everything else it says: records against each other (numbers, chain,
// time, keys, one end), columns against records, heads against the last record, outputs and documents against the hashes they are known
// by. A fault never stops the search.
//
// One run is one thread's work. How many runs are looked at together is in verify_all.c.
#include "base/civil.h"
#include "store/lines.h"
#include "store/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 1024, FAULTS_MAX = 10000 };

static void fault(struct verify *verify, uint64_t seq, bool ledger, const char *format, ...) PRINTF_LIKE(4, 5);

static void fault(struct verify *verify, uint64_t seq, bool ledger, const char *format, ...)
{
    if (verify->rc || verify->faults.count >= FAULTS_MAX) return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct verify_fault one = {.run = verify->head->ids.run, .seq = seq, .ledger = ledger, .what = str_from(text)};
    if (!fault_add(&verify->faults, verify->arena, &one)) verify->rc = error_nomem(verify->err);
}

bool fault_add(struct faults *faults, struct arena *arena, const struct verify_fault *one)
{
    INVARIANT(one->what.len > 0);
    struct verify_fault kept = *one;
    if (!ARENA_KEEP(arena, &kept.run, &kept.what)) return false;
    if (!ARENA_ROOM(arena, faults->items, faults->count, &faults->capacity)) return false;
    faults->items[faults->count++] = kept;
    return true;
}

// ---- events

struct walk {
    uint64_t last; // number of the last record seen
    struct digest previous;
    int64_t persisted_ms;
    uint64_t terminal_at; // 0: none yet
    enum moment_kind end; // of that event
    bool started; // a record names the document that the run began with
    bool elsewhere; // and where it is, beyond this store
    uint64_t suspect;     // event whose previous hash did not fit; 0: none
    struct map keys;
};

// Between two events that do not fit, the one before is to blame when the one after it has a successor that fits.
static void settle(struct verify *verify, struct walk *walk, bool sound)
{
    uint64_t seq = walk->suspect;
    walk->suspect = 0;
    if (seq > 1 && sound)
        fault(verify, seq - 1, false, "its bytes are not those that event %llu was chained to",
              (unsigned long long)seq);
    else if (seq)
        fault(verify, seq, false, "its previous hash is not the hash of the event before it");
}

// False when one of the two events is not what it was; nothing more can be said about their order then.
static bool check_chain(struct verify *verify, struct walk *walk, uint64_t seq, const struct digest *previous)
{
    bool fits = digest_eq(previous, &walk->previous);
    bool explained = walk->suspect != 0;
    settle(verify, walk, fits);
    if (!fits && !explained) walk->suspect = seq;
    return fits;
}

static void check_columns(struct verify *verify, const struct record *record, const struct seal *seal,
                          const struct digest *key, struct str payload)
{
    const struct record_columns *columns = record->columns;
    if (!columns) return;
    if (!str_eq(columns->run, verify->head->ids.run))
        fault(verify, record->seq, false, "the run_id column says %.*s", STR_ARG(columns->run));
    char time[CIVIL_SIZE];
    civil_format(seal->persisted_ms, time);
    if (!str_is(columns->timestamp, time))
        fault(verify, record->seq, false, "the timestamp column says %.*s, the record %s", STR_ARG(columns->timestamp),
              time);
    if (columns->key.len < 8 || columns->key.len > SHA256_SIZE ||
        memcmp(columns->key.ptr, key->b, columns->key.len) != 0)
        fault(verify, record->seq, false, "the key column is not the idempotency key of the record");
    // The column must be exactly the payload: bytes moved over its edge would leave the record as it was.
    if (!str_eq(payload, columns->payload))
        fault(verify, record->seq, false, "the payload column is not the payload of the record");
}

static void check_ids(struct verify *verify, uint64_t seq, const struct run_ids *told)
{
    const struct run_ids *ids = &verify->head->ids;
    const struct {
        const char *name;
        struct str told, kept;
    } pairs[] = {{"tenant", told->tenant, ids->tenant},
                 {"project", told->project, ids->project},
                 {"environment", told->environment, ids->environment},
                 {"run", told->run, ids->run},
                 {"plan id", told->plan_id, ids->plan_id},
                 {"plan version", told->plan_version, ids->plan_version}};
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++)
        if (pairs[i].told.len && !str_eq(pairs[i].told, pairs[i].kept))
            fault(verify, seq, false, "it belongs to %s %.*s", pairs[i].name, STR_ARG(pairs[i].told));
}

static void check_key(struct verify *verify, struct walk *walk, const struct record *record, struct str told,
                      const struct digest *key)
{
    char hex[SHA256_HEX + 1];
    digest_hex(key, hex);
    if (told.len && !str_eq(told, (struct str){hex, SHA256_HEX}))
        fault(verify, record->seq, false, "its idempotency key is not the one of its facts");
    struct str kept = arena_copy(&verify->run_arena, (struct str){(const char *)key->b, SHA256_SIZE});
    uint32_t first = MAP_NONE;
    if (!kept.ptr || !map_put(&walk->keys, kept, (uint32_t)record->seq, &first))
        verify->rc = error_nomem(verify->err);
    else if (first != MAP_NONE)
        fault(verify, record->seq, false, "it has the idempotency key of event %u", (unsigned)first);
}

static void check_end(struct verify *verify, struct walk *walk, const struct record *record, enum moment_kind kind)
{
    if (moment_is_terminal(kind)) {
        if (walk->terminal_at)
            fault(verify, record->seq, false, "the run ended before, with event %llu",
                  (unsigned long long)walk->terminal_at);
        else
            walk->terminal_at = record->seq, walk->end = kind;
    } else if (walk->terminal_at && (kind != MOMENT_RUN_PROCESSED || record->seq != walk->terminal_at + 1)) {
        fault(verify, record->seq, false, "it comes after the end of the run (event %llu)",
              (unsigned long long)walk->terminal_at);
    }
}

// The output that an event only names must be there, with the hash it names.
static void check_blob(struct verify *verify, const struct record *record, const struct moment *moment)
{
    struct str bytes;
    struct error why = {0};
    if (!moment->has_blob) return;
    enum code rc = store_blob(verify->store, &moment->blob, &verify->scratch, &bytes, &why);
    struct digest found = {{0}};
    if (!rc) found = sha256(bytes);
    if (rc == E_NOT_FOUND || rc == E_CORRUPT)
        fault(verify, record->seq, false, "its output: %s", why.message);
    else if (rc)
        verify->rc = error_set(verify->err, rc, "%s", why.message);
    else if (!digest_eq(&found, &moment->blob))
        fault(verify, record->seq, false, "its output does not have the hash that the event names");
}

static void check_start(struct verify *verify, struct walk *walk, const struct record *record,
                        const struct moment *moment)
{
    walk->started = walk->started || moment->start;
    walk->elsewhere = walk->elsewhere || (moment->start && moment->start->plan_uri.len > 0);
    if (!start_fits(moment, &verify->head->document))
        fault(verify, record->ledger_seq ? record->ledger_seq : record->seq, record->ledger_seq > 0,
              "it names another document than the one that the store keeps for the run");
}

// What the record says about itself, against what the store says about it.
static void check_facts(struct verify *verify, struct walk *walk, const struct record *record,
                        const struct moment *moment, const struct seal *seal, const struct run_ids *told)
{
    const struct run_head *head = verify->head;
    const char *word = moment->kind != MOMENT_UNKNOWN ? moment_word(moment->kind, head->vocabulary) : NULL;
    if (word && !str_is(record->type, word))
        fault(verify, record->seq, false, "it is stored as %.*s and says %s", STR_ARG(record->type), word);
    check_ids(verify, record->seq, told);
    check_start(verify, walk, record, moment);
    check_end(verify, walk, record, moment->kind);
    if (record->redacted) { // its values are not there to be compared
        verify->report->redacted_count++;
        return;
    }
    struct record_parts parts = contract_parts(head->vocabulary, record->bytes);
    struct str slot = moment_slot(head->vocabulary, moment, &verify->scratch);
    struct digest key =
        event_key(head->ids.run, slot, moment->logical, word ? str_from(word) : record->type, head->ids.plan_version);
    check_columns(verify, record, seal, &key, parts.payload);
    // What an unknown type put into its key cannot be known either.
    if (word) check_key(verify, walk, record, parts.key, &key);
    check_blob(verify, record, moment); // last: it fills the scratch arena
}

static void check_content(struct verify *verify, struct walk *walk, const struct record *record)
{
    struct moment moment = {0};
    struct seal seal = {0};
    struct run_ids told = {0};
    struct error why = {0};
    arena_reset(&verify->scratch);
    enum code rc =
        contract_decode(verify->head->vocabulary, record->bytes, &verify->scratch, &moment, &seal, &told, &why);
    if (rc == E_NOMEM) {
        verify->rc = error_nomem(verify->err);
    } else if (rc) {
        fault(verify, record->seq, false, "it is no event: %s", why.message);
        return;
    }
    if (verify->rc) return;
    if (seal.seq != record->seq)
        fault(verify, record->seq, false, "its record says number %llu", (unsigned long long)seal.seq);
    if (check_chain(verify, walk, record->seq, &seal.previous) && seal.persisted_ms < walk->persisted_ms)
        fault(verify, record->seq, false, "it was stored before the event before it");
    walk->persisted_ms = seal.persisted_ms;
    check_facts(verify, walk, record, &moment, &seal, &told);
}

static void check_event(struct verify *verify, struct walk *walk, const struct record *record)
{
    uint64_t expected = walk->last + 1;
    if (record->seq > expected) {
        settle(verify, walk, false);
        fault(verify, expected, false, "it is missing");
        // The chain is broken here anyway; go on with what follows as if its predecessor were right.
        struct seal seal = {0};
        struct moment moment = {0};
        if (!contract_decode(verify->head->vocabulary, record->bytes, &verify->scratch, &moment, &seal, NULL, NULL))
            walk->previous = seal.previous;
    }
    check_content(verify, walk, record);
    walk->previous = record->hash;
    walk->last = record->seq;
    verify->report->event_count++;
}

// What is beyond the head is a fault unless the head has moved meanwhile (a writer is at work).
static void check_beyond(struct verify *verify, uint64_t seq, bool ledger)
{
    struct run_head now;
    const struct run_ids *ids = &verify->head->ids;
    arena_reset(&verify->scratch);
    enum code rc = store_head(verify->store, ids->tenant, ids->run, &verify->scratch, &now, verify->err);
    if (rc)
        verify->rc = rc;
    else if (seq > (ledger ? now.last_ledger_seq : now.last_seq))
        fault(verify, seq, ledger, "it is not covered by the head of the run");
}

// Most runs of a store have a document in common with others: it is read once.
// A body that can be fetched again is no part of the store: it may be gone, and not be another.
static void check_document(struct verify *verify, bool elsewhere)
{
    const struct digest *document = &verify->head->document;
    struct str key = {(const char *)document->b, SHA256_SIZE}, bytes;
    if (map_get(&verify->documents, key) != MAP_NONE) return;
    struct error why = {0};
    arena_reset(&verify->scratch);
    enum code rc = store_blob(verify->store, document, &verify->scratch, &bytes, &why);
    struct digest found = {{0}};
    if (!rc) found = sha256(bytes);
    if (rc == E_NOT_FOUND && elsewhere) return;
    if (rc == E_NOT_FOUND || rc == E_CORRUPT)
        fault(verify, 0, false, "its document: %s", why.message);
    else if (rc)
        verify->rc = error_set(verify->err, rc, "%s", why.message);
    else if (!digest_eq(&found, document))
        fault(verify, 0, false, "its document does not have the hash that it was started with");
    else {
        struct str kept = arena_copy(&verify->document_arena, key);
        if (!kept.ptr || !map_put(&verify->documents, kept, 0, NULL)) verify->rc = error_nomem(verify->err);
    }
}

// Of the summary only the way in which the run ended is also a fact of the log.
static bool ended_otherwise(enum run_status status, enum moment_kind end)
{
    return status >= RUN_STATUS_COMPLETED && status != (end == MOMENT_RUN_COMPLETED ? RUN_STATUS_COMPLETED
                                                        : end == MOMENT_RUN_FAILED  ? RUN_STATUS_FAILED
                                                                                    : RUN_STATUS_CANCELLED);
}

static void check_events(struct verify *verify)
{
    const struct run_head *head = verify->head;
    struct walk walk = {.persisted_ms = INT64_MIN};
    map_init(&walk.keys, &verify->run_arena);
    for (bool more = true; more && !verify->rc;) {
        arena_reset(&verify->page);
        struct records page;
        struct record_range range = {
            .tenant = head->ids.tenant, .run = head->ids.run, .after = walk.last, .limit = PAGE};
        enum code rc = store_read(verify->store, &range, &verify->page, &page, verify->err);
        if (rc == E_CORRUPT) {
            fault(verify, walk.last + 1, false, "it cannot be read: %s", verify->err ? verify->err->message : "");
            if (verify->err) verify->err->code = OK;
            return;
        }
        if (rc) verify->rc = rc;
        more = page.count == PAGE;
        for (size_t i = 0; i < page.count && !verify->rc; i++) {
            if (page.items[i].seq > head->last_seq) {
                check_beyond(verify, page.items[i].seq, false);
                more = false;
                break;
            }
            check_event(verify, &walk, &page.items[i]);
        }
    }
    settle(verify, &walk, digest_eq(&walk.previous, &head->head));
    if (walk.started && !verify->rc) check_document(verify, walk.elsewhere);
    if (walk.last < head->last_seq)
        fault(verify, walk.last + 1, false, "it is missing; the head of the run knows %llu events",
              (unsigned long long)head->last_seq);
    else if (!digest_eq(&walk.previous, &head->head))
        fault(verify, head->last_seq, false, "its hash is not the head of the run");
    if (head->terminal != (walk.terminal_at != 0) && walk.last == head->last_seq)
        fault(verify, 0, false,
              head->terminal ? "it counts as ended without an event that says so"
                             : "it has ended but does not count as ended");
    else if (walk.terminal_at && ended_otherwise(head->summary.status, walk.end))
        fault(verify, 0, false, "its head says %s, its last event does not", run_status_name(head->summary.status));
}

// ---- ledger

static void check_entry(struct verify *verify, struct walk *walk, const struct record *record, uint64_t *after)
{
    uint64_t expected = walk->last + 1;
    const struct str chained[] = {{(const char *)walk->previous.b, SHA256_SIZE}, record->bytes};
    struct digest hash = sha256_parts(chained, ARRAY_COUNT(chained));
    if (record->ledger_seq > expected)
        fault(verify, expected, true, "it is missing");
    else if (!record->redacted && !digest_eq(&hash, &record->hash))
        fault(verify, record->ledger_seq, true, "its hash is not the one of its bytes and the entry before it");
    if (record->seq < *after || record->seq > verify->head->last_seq)
        fault(verify, record->ledger_seq, true, "it says to follow event %llu", (unsigned long long)record->seq);
    else
        *after = record->seq;
    struct moment moment = {0};
    struct json value = {0};
    struct error why = {0};
    arena_reset(&verify->scratch);
    enum code rc = str_is(record->type, "moment")
                       ? contract_decode_ledger(record->bytes, &verify->scratch, &moment, &why)
                       : json_parse(record->bytes, &json_limits_record, &verify->scratch, &value, &why);
    if (rc == E_NOMEM)
        verify->rc = error_nomem(verify->err);
    else if (rc)
        fault(verify, record->ledger_seq, true, "it cannot be read: %s", why.message);
    else
        check_start(verify, walk, record, &moment);
    walk->previous = record->hash;
    walk->last = record->ledger_seq;
}

static void check_ledger(struct verify *verify)
{
    const struct run_head *head = verify->head;
    struct walk walk = {0};
    uint64_t after = 0;
    for (bool more = true; more && !verify->rc;) {
        arena_reset(&verify->page);
        struct records page;
        struct record_range range = {
            .tenant = head->ids.tenant, .run = head->ids.run, .ledger = true, .after = walk.last, .limit = PAGE};
        enum code rc = store_read(verify->store, &range, &verify->page, &page, verify->err);
        if (rc == E_CORRUPT) {
            fault(verify, walk.last + 1, true, "it cannot be read: %s", verify->err ? verify->err->message : "");
            if (verify->err) verify->err->code = OK;
            return;
        }
        if (rc) verify->rc = rc;
        more = page.count == PAGE;
        for (size_t i = 0; i < page.count && !verify->rc; i++) {
            if (page.items[i].ledger_seq > head->last_ledger_seq) {
                check_beyond(verify, page.items[i].ledger_seq, true);
                more = false;
                break;
            }
            check_entry(verify, &walk, &page.items[i], &after);
        }
    }
    if (walk.last < head->last_ledger_seq)
        fault(verify, walk.last + 1, true, "it is missing; the head of the run knows %llu entries",
              (unsigned long long)head->last_ledger_seq);
    else if (!digest_eq(&walk.previous, &head->ledger_head))
        fault(verify, head->last_ledger_seq, true, "its hash is not the ledger head of the run");
}

// ---- what no head speaks of

// A writer that is at work, or was killed, leaves events behind the head that go on with the chain.
static bool goes_on(struct verify *verify, struct surplus *at, struct str line)
{
    struct moment moment = {0};
    struct seal seal = {0};
    struct run_ids told = {0};
    if (contract_decode(verify->head->vocabulary, line, &verify->scratch, &moment, &seal, &told, NULL)) return false;
    if (seal.seq != at->last_seq + 1 || !digest_eq(&seal.previous, &at->head)) return false;
    at->last_seq = seal.seq;
    at->head = sha256(line);
    return true;
}

static bool entry_goes_on(struct verify *verify, struct surplus *at, struct str line)
{
    struct record entry = {0};
    ledger_line_read(line, at->ledger_seq + 1, &verify->scratch, &entry);
    const struct str chained[] = {{(const char *)at->ledger_head.b, SHA256_SIZE}, entry.bytes};
    struct digest hash = sha256_parts(chained, ARRAY_COUNT(chained));
    if (!digest_eq(&hash, &entry.hash)) return false;
    at->ledger_seq++;
    at->ledger_head = hash;
    return true;
}

// Half a line at the end is what a killed writer leaves, too, but not behind the end of a run.
static void check_lines(struct verify *verify, struct surplus *at, bool ledger)
{
    struct str bytes = ledger ? at->ledger : at->events;
    for (size_t from = 0; from < bytes.len && !verify->rc;) {
        size_t end = str_find(bytes, '\n', from);
        struct str line = str_slice(bytes, from, end);
        bool fits =
            end == bytes.len ? !at->terminal : (ledger ? entry_goes_on(verify, at, line) : goes_on(verify, at, line));
        if (!fits) {
            fault(verify, (ledger ? at->ledger_seq : at->last_seq) + 1, ledger,
                  "%zu byte%s here, behind the last one, never stored", bytes.len - from,
                  bytes.len - from == 1 ? " stands" : "s stand");
            return;
        }
        from = end + 1;
    }
}

static void check_surplus(struct verify *verify)
{
    const struct run_ids *ids = &verify->head->ids;
    struct surplus found = {0};
    arena_reset(&verify->page);
    arena_reset(&verify->scratch);
    enum code rc =
        verify->store->ops->log.surplus(verify->store, ids->tenant, ids->run, &verify->page, &found, verify->err);
    if (rc) {
        verify->rc = rc;
        return;
    }
    check_lines(verify, &found, false);
    check_lines(verify, &found, true);
}

// ---- runs

void verify_begin(struct verify *verify, struct store *store, struct arena *arena, struct verify_report *report,
                  struct error *err)
{
    *report = (struct verify_report){0};
    *verify = (struct verify){.store = store, .arena = arena, .report = report, .err = err};
    arena_init(&verify->page, 64 * 1024, SIZE_MAX);
    arena_init(&verify->scratch, 16 * 1024, SIZE_MAX);
    arena_init(&verify->run_arena, 16 * 1024, SIZE_MAX);
    arena_init(&verify->document_arena, 4 * 1024, SIZE_MAX);
    map_init(&verify->documents, &verify->document_arena);
}

void verify_run(struct verify *verify, const struct run_head *head)
{
    INVARIANT(!verify->rc);
    verify->head = head;
    verify->report->run_count++;
    if (head->unreadable) {
        fault(verify, 0, false, "%s", head->summary.cause);
        return;
    }
    check_events(verify);
    if (!verify->rc) check_ledger(verify);
    if (!verify->rc) check_surplus(verify);
    arena_reset(&verify->run_arena);
}

void verify_end(struct verify *verify)
{
    verify->report->faults = verify->faults.items;
    verify->report->fault_count = verify->faults.count;
    arena_release(&verify->page);
    arena_release(&verify->scratch);
    arena_release(&verify->run_arena);
    arena_release(&verify->document_arena);
}

enum code store_verify_run(struct store *store, struct str tenant, struct str run, struct arena *arena,
                           struct verify_report *out, struct error *err)
{
    struct verify verify;
    struct run_head head;
    *out = (struct verify_report){0};
    verify_begin(&verify, store, arena, out, err);
    verify.rc = store_head(store, tenant, run, arena, &head, err);
    if (!verify.rc) verify_run(&verify, &head);
    verify_end(&verify);
    return verify.rc;
}
