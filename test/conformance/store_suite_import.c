// S13: runs of another store come in as they are, whole or not at all.
#include "conformance/store_suite_private.h"

#include <stdlib.h>

enum { EVENTS = 4, ENTRIES = 3 };

// Where runs come from: a store in memory with one run, ended unless `open`.
struct source {
    struct kit kit;
    struct run_head head;
    struct records events, ledger;
};

static void source_read(struct source *source, const char *run)
{
    struct kit *kit = &source->kit;
    source->head = kit_head(kit, run);
    source->events = kit_read(kit, run);
    struct record_range range = {.tenant = STR("default"), .run = str_from(run), .ledger = true, .limit = SIZE_MAX};
    CHECK_OK(store_read(kit->store, &range, &kit->arena, &source->ledger, &kit->err), &kit->err);
}

static struct run_log *source_start(struct source *source, const char *run, const char *step)
{
    struct kit *kit = &source->kit;
    kit_init(kit);
    struct store_options options = kit_options(kit, STORE_WRITE);
    CHECK_OK(store_open(STR("memory:"), &options, &kit->store, &kit->err), &kit->err);
    struct run_log *log = kit_create(kit, run, VOCABULARY_NODES);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
    CHECK_OK(kit_decide(kit, log, "sig-1", "ACCEPTED", NULL), &kit->err);
    kit_append(kit, log, kit_moment(MOMENT_RUN_RESUMED, "", 1));
    kit_step(kit, log, step);
    source_read(source, run);
    return log;
}

static void source_finish(struct source *source, struct run_log *log, const char *run, const char *step)
{
    struct kit *kit = &source->kit;
    kit_append(kit, log, kit_moment(MOMENT_STEP_COMPLETED, step, 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit->store, log);
    source_read(source, run);
    CHECK_INT(source->events.count, EVENTS);
    CHECK_INT(source->ledger.count, ENTRIES);
}

static void source_whole(struct source *source, const char *run, const char *step)
{
    source_finish(source, source_start(source, run, step), run, step);
}

static struct run_import import_of(const struct source *source)
{
    return (struct run_import){.head = &source->head,
                               .events = source->events.items,
                               .event_count = source->events.count,
                               .ledger = source->ledger.items,
                               .ledger_count = source->ledger.count};
}

static enum code take(struct kit *kit, struct run_import *import)
{
    struct append_blob document = kit_document();
    kit->err = (struct error){0};
    return store_import(kit->store, import, 1, &document, 1, &kit->arena, &kit->err);
}

// Everything that is proved by hashes or shown to people is the same on both sides.
static void check_same(struct kit *kit, const struct source *source, const char *run)
{
    struct run_head head = kit_head(kit, run);
    struct records events = kit_read(kit, run), ledger;
    struct record_range range = {.tenant = STR("default"), .run = str_from(run), .ledger = true, .limit = SIZE_MAX};
    CHECK_OK(store_read(kit->store, &range, &kit->arena, &ledger, &kit->err), &kit->err);
    CHECK_INT(head.last_seq, source->head.last_seq);
    CHECK(digest_eq(&head.head, &source->head.head) && digest_eq(&head.ledger_head, &source->head.ledger_head));
    CHECK(digest_eq(&head.document, &source->head.document));
    CHECK_INT(head.terminal, source->head.terminal);
    CHECK_INT(head.updated_ms, source->head.updated_ms);
    CHECK_INT(head.summary.status, source->head.summary.status);
    CHECK_STR(head.name, source->head.name);
    CHECK_STR(head.ids.plan_version, source->head.ids.plan_version);
    CHECK_INT(events.count, source->events.count);
    for (size_t i = 0; i < events.count; i++) {
        CHECK_INT(events.items[i].seq, i + 1);
        CHECK_STR(events.items[i].bytes, source->events.items[i].bytes);
        CHECK_STR(events.items[i].type, source->events.items[i].type);
    }
    CHECK_INT(ledger.count, source->ledger.count);
    for (size_t i = 0; i < ledger.count; i++) {
        CHECK_STR(ledger.items[i].bytes, source->ledger.items[i].bytes);
        CHECK_STR(ledger.items[i].signal_id, source->ledger.items[i].signal_id);
        CHECK_INT(ledger.items[i].seq, source->ledger.items[i].seq);
    }
}

static void check_absent(struct kit *kit, const char *run)
{
    struct run_head head;
    CHECK_INT(store_head(kit->store, STR("default"), str_from(run), &kit->arena, &head, NULL), E_NOT_FOUND);
}

static void S13_a_run_comes_in_as_it_was(void)
{
    struct kit kit;
    struct source source;
    suite_start(&kit);
    source_whole(&source, "r", "a");
    struct run_import import = import_of(&source);
    CHECK_OK(take(&kit, &import), &kit.err);
    CHECK_INT(import.result, IMPORT_NEW);
    check_same(&kit, &source, "r");
    kit_check_sound(&kit);
    suite_reopen(&kit, STORE_WRITE);
    check_same(&kit, &source, "r");
    CHECK_OK(take(&kit, &import), &kit.err);
    CHECK_INT(import.result, IMPORT_SAME);
    kit_check_sound(&kit);
    kit_release(&source.kit);
    kit_release(&kit);
}

static void S13_a_run_with_another_log_is_left_alone(void)
{
    struct kit kit;
    struct source mine, other;
    suite_start(&kit);
    source_whole(&mine, "r", "a");
    source_whole(&other, "r", "b");
    struct run_import import = import_of(&mine);
    CHECK_OK(take(&kit, &import), &kit.err);
    import = import_of(&other);
    CHECK_INT(take(&kit, &import), E_CONFLICT);
    import.extend = true;
    CHECK_INT(take(&kit, &import), E_CONFLICT);
    check_same(&kit, &mine, "r");
    kit_check_sound(&kit);
    kit_release(&mine.kit);
    kit_release(&other.kit);
    kit_release(&kit);
}

static void S13_a_run_that_went_on_is_brought_up_to_date_only_when_asked(void)
{
    struct kit kit;
    struct source source;
    suite_start(&kit);
    struct run_log *log = source_start(&source, "r", "a");
    struct run_import import = import_of(&source);
    CHECK_OK(take(&kit, &import), &kit.err);
    check_same(&kit, &source, "r");
    source_finish(&source, log, "r", "a");
    import = import_of(&source);
    CHECK_INT(take(&kit, &import), E_CONFLICT);
    import.extend = true;
    CHECK_OK(take(&kit, &import), &kit.err);
    CHECK_INT(import.result, IMPORT_EXTENDED);
    suite_reopen(&kit, STORE_WRITE);
    check_same(&kit, &source, "r");
    kit_check_sound(&kit);
    kit_release(&source.kit);
    kit_release(&kit);
}

// An unfinished run that came in can be owned and goes on where it was.
static void S13_an_unfinished_run_can_go_on_in_its_new_store(void)
{
    struct kit kit;
    struct source source;
    suite_start(&kit);
    struct run_log *theirs = source_start(&source, "r", "a");
    struct run_import import = import_of(&source);
    CHECK_OK(take(&kit, &import), &kit.err);
    struct run_log *log = kit_claim(&kit, "r");
    struct append_item again = kit_step(&kit, log, "a");
    CHECK(again.idempotent);
    CHECK_INT(again.seq, source.events.count);
    struct append_item item = kit_append(&kit, log, kit_moment(MOMENT_STEP_COMPLETED, "a", 1));
    CHECK_INT(item.seq, source.events.count + 1);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    store_release_run(source.kit.store, theirs);
    kit_release(&source.kit);
    kit_release(&kit);
}

static void refused(struct kit *kit, struct source *source, const char *what)
{
    struct run_import import = import_of(source);
    enum code rc = take(kit, &import);
    if (rc != E_CORRUPT) test_fail(__FILE__, __LINE__, "%s: code %d instead of E_CORRUPT", what, rc);
    check_absent(kit, "r");
}

static void S13_what_does_not_prove_itself_is_refused_and_nothing_is_stored(void)
{
    struct kit kit;
    struct source source;
    suite_start(&kit);
    source_whole(&source, "r", "a");
    struct record *events = source.events.items, *ledger = source.ledger.items;
    for (size_t i = 0; i < EVENTS; i++)
        for (size_t at = 0; at < events[i].bytes.len; at++) {
            char *byte = (char *)(uintptr_t)&events[i].bytes.ptr[at];
            *byte ^= 1;
            refused(&kit, &source, "a flipped bit of an event");
            *byte ^= 1;
        }
    for (size_t i = 0; i + 1 < EVENTS; i++) {
        struct record first = events[i];
        events[i] = events[i + 1];
        events[i + 1] = first;
        refused(&kit, &source, "swapped events");
        events[i + 1] = events[i];
        events[i] = first;
    }
    source.events.count--;
    refused(&kit, &source, "a missing last event");
    source.events.count++;
    source.events.items++;
    source.events.count--;
    refused(&kit, &source, "a missing first event");
    source.events.items--;
    source.events.count++;
    *(char *)(uintptr_t)&ledger[1].bytes.ptr[3] ^= 1;
    refused(&kit, &source, "a flipped bit of the ledger");
    *(char *)(uintptr_t)&ledger[1].bytes.ptr[3] ^= 1;
    source.ledger.count--;
    refused(&kit, &source, "a missing ledger entry");
    source.ledger.count++;
    source.head.terminal = false;
    refused(&kit, &source, "an end that the head does not know");
    source.head.terminal = true;
    events[2].redacted = true;
    refused(&kit, &source, "a redacted event");
    events[2].redacted = false;
    struct run_import import = import_of(&source);
    CHECK_OK(take(&kit, &import), &kit.err); // all damage was undone
    kit_release(&source.kit);
    kit_release(&kit);
}

// Whoever writes a log by hand can chain it as well; what it tells must still be what a run can tell.
static void add_forged(struct source *source, struct moment moment)
{
    struct kit *kit = &source->kit;
    struct record *events = ARENA_ARRAY(&kit->arena, source->events.count + 1, struct record);
    struct encoded encoded;
    struct seal seal = {
        .seq = source->head.last_seq + 1, .persisted_ms = KIT_NOW, .previous = source->head.head, .event_id = {0}};
    uuid_format((const uint8_t[16]){7}, seal.event_id);
    CHECK_OK(contract_encode(kit->contract, VOCABULARY_NODES, &source->head.ids, &moment, &seal, &kit->arena, &encoded,
                             &kit->err),
             &kit->err);
    for (size_t i = 0; i < source->events.count; i++) events[i] = source->events.items[i];
    events[source->events.count] =
        (struct record){.seq = seal.seq, .type = encoded.type, .bytes = encoded.bytes, .hash = encoded.hash};
    source->events.items = events;
    source->events.count++;
    source->head.last_seq = seal.seq;
    source->head.head = encoded.hash;
}

static void S13_a_chain_alone_proves_no_log_I3_I15(void)
{
    struct kit kit;
    struct source source;
    suite_start(&kit);
    source_whole(&source, "r", "a");
    add_forged(&source, kit_moment(MOMENT_STEP_STARTED, "b", 1));
    refused(&kit, &source, "an event after the end");
    kit_release(&source.kit);
    struct run_log *log = source_start(&source, "r", "a");
    add_forged(&source, kit_moment(MOMENT_STEP_STARTED, "a", 1));
    refused(&kit, &source, "an event that is there already");
    store_release_run(source.kit.store, log);
    kit_release(&source.kit);
    source_whole(&source, "r", "a");
    struct run_import twice[] = {import_of(&source), import_of(&source)};
    kit.err = (struct error){0};
    CHECK_INT(store_import(kit.store, twice, 2, NULL, 0, &kit.arena, &kit.err), E_CONFLICT);
    check_absent(&kit, "r");
    struct run_import import = import_of(&source);
    CHECK_OK(take(&kit, &import), &kit.err);
    kit_check_sound(&kit);
    kit_release(&source.kit);
    kit_release(&kit);
}

static void S13_several_runs_come_in_together_or_not_at_all_S3(void)
{
    struct kit kit;
    struct source one, two;
    suite_start(&kit);
    source_whole(&one, "r1", "a");
    source_whole(&two, "r2", "b");
    struct str text = STR("a result that is too large for a record");
    struct append_blob blob = {.sha256 = sha256(STR("another")), .bytes = text};
    struct run_import imports[] = {import_of(&one), import_of(&two)};
    CHECK_INT(store_import(kit.store, imports, 2, &blob, 1, &kit.arena, &kit.err), E_CORRUPT);
    check_absent(&kit, "r1");
    blob.sha256 = sha256(text);
    two.head.head.b[0] ^= 1;
    kit.err = (struct error){0};
    CHECK_INT(store_import(kit.store, imports, 2, &blob, 1, &kit.arena, &kit.err), E_CORRUPT);
    check_absent(&kit, "r1");
    two.head.head.b[0] ^= 1;
    kit.err = (struct error){0};
    struct append_blob blobs[] = {blob, kit_document()};
    CHECK_OK(store_import(kit.store, imports, 2, blobs, 2, &kit.arena, &kit.err), &kit.err);
    check_same(&kit, &one, "r1");
    check_same(&kit, &two, "r2");
    struct str stored;
    CHECK_OK(store_blob(kit.store, &blob.sha256, &kit.arena, &stored, &kit.err), &kit.err);
    CHECK_STR(stored, text);
    kit_check_sound(&kit);
    kit_release(&one.kit);
    kit_release(&two.kit);
    kit_release(&kit);
}

// What a restore that was killed left is a part of a store: nobody takes it for the whole.
static void S13_a_store_that_is_being_restored_is_opened_by_nobody_else_S3(void)
{
    if (!suite_case->durable) test_skip("%s ends with its handle", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct str url = arena_copy(&kit.arena, store_url(kit.store));
    CHECK_OK(store_restoring(kit.store, true, &kit.err), &kit.err);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    store_release_run(kit.store, log);
    for (int end = 0; end < 2; end++) {
        store_close(kit.store);
        kit.store = NULL;
        for (int i = 0; i < 2; i++) {
            struct store_options options = kit_options(&kit, i ? STORE_WRITE : STORE_READ);
            if (suite_case->options) suite_case->options(&options);
            struct store *store = NULL;
            kit.err = (struct error){0};
            CHECK_INT(store_open(url, &options, &store, &kit.err), end ? OK : E_CORRUPT);
            store_close(store);
        }
        struct store_options options = kit_options(&kit, STORE_WRITE);
        if (suite_case->options) suite_case->options(&options);
        options.restoring = true;
        kit.err = (struct error){0};
        CHECK_OK(store_open(url, &options, &kit.store, &kit.err), &kit.err);
        CHECK_INT(store_is_restoring(kit.store), !end);
        CHECK_INT(kit_read(&kit, "r").count, 1);
        CHECK_OK(store_restoring(kit.store, false, &kit.err), &kit.err);
    }
    kit_release(&kit);
}

const struct test suite_import_tests[] = {
    TEST(S13_a_store_that_is_being_restored_is_opened_by_nobody_else_S3),
    TEST(S13_a_run_comes_in_as_it_was),
    TEST(S13_a_run_with_another_log_is_left_alone),
    TEST(S13_a_run_that_went_on_is_brought_up_to_date_only_when_asked),
    TEST(S13_an_unfinished_run_can_go_on_in_its_new_store),
    TEST(S13_what_does_not_prove_itself_is_refused_and_nothing_is_stored),
    TEST(S13_a_chain_alone_proves_no_log_I3_I15),
    TEST(S13_several_runs_come_in_together_or_not_at_all_S3),
};
const size_t suite_import_count = ARRAY_COUNT(suite_import_tests);
