// S15 and S16: notes travel with their batch, and the feed tells every event in the order of the commits.
#include "conformance/store_suite_private.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static enum code put_all(struct kit *kit, const struct note_put *notes, size_t count)
{
    struct store_batch batch = {.notes = notes, .note_count = count};
    kit->err = (struct error){0};
    return store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err);
}

static enum code put(struct kit *kit, const char *space, const char *key, const char *value, uint64_t expect)
{
    struct note_put note = {.space = str_from(space), .key = str_from(key), .value = str_from(value), .expect = expect};
    return put_all(kit, &note, 1);
}

static enum code drop(struct kit *kit, const char *space, const char *key, uint64_t expect)
{
    struct note_put note = {.space = str_from(space), .key = str_from(key), .remove = true, .expect = expect};
    return put_all(kit, &note, 1);
}

static uint64_t version_of(struct kit *kit, const char *space, const char *key)
{
    struct note note;
    enum code rc = store_note(kit->store, str_from(space), str_from(key), &kit->arena, &note, NULL);
    CHECK(rc == OK || rc == E_NOT_FOUND);
    return rc ? 0 : note.version;
}

static void check_note(struct kit *kit, const char *space, const char *key, const char *value, uint64_t version)
{
    struct note note;
    kit->err = (struct error){0};
    CHECK_OK(store_note(kit->store, str_from(space), str_from(key), &kit->arena, &note, &kit->err), &kit->err);
    CHECK_STR(note.space, str_from(space));
    CHECK_STR(note.key, str_from(key));
    CHECK_STR(note.value, str_from(value));
    CHECK_INT(note.version, version);
}

// ---- S15

static void S15_a_note_has_a_version_that_rises_with_each_put(void)
{
    struct kit kit;
    suite_start(&kit);
    struct note note;
    CHECK_INT(store_note(kit.store, STR("token"), STR("a"), &kit.arena, &note, NULL), E_NOT_FOUND);
    CHECK_OK(put(&kit, "token", "a", "one", 0), &kit.err);
    check_note(&kit, "token", "a", "one", 1);
    CHECK_OK(put(&kit, "token", "a", "", 1), &kit.err);
    check_note(&kit, "token", "a", "", 2);
    CHECK_OK(put(&kit, "token", "a", "three", NOTE_ANY), &kit.err);
    CHECK_OK(put(&kit, "cursor", "a", "another space", NOTE_ANY), &kit.err);
    suite_reopen(&kit, STORE_WRITE);
    check_note(&kit, "token", "a", "three", 3);
    check_note(&kit, "cursor", "a", "another space", 1);
    CHECK_OK(drop(&kit, "token", "a", 3), &kit.err);
    CHECK_OK(drop(&kit, "token", "a", NOTE_ANY), &kit.err); // there is none: nothing happens
    CHECK_INT(version_of(&kit, "token", "a"), 0);
    suite_reopen(&kit, STORE_WRITE);
    CHECK_INT(version_of(&kit, "token", "a"), 0);
    CHECK_OK(put(&kit, "token", "a", "again", 0), &kit.err);
    check_note(&kit, "token", "a", "again", 1);
    kit_release(&kit);
}

static void S15_a_put_that_expects_another_version_stores_nothing_of_its_batch(void)
{
    struct kit kit;
    suite_start(&kit);
    CHECK_OK(put(&kit, "s", "k", "v", 0), &kit.err);
    static const uint64_t wrong[] = {0, 2, 77};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        CHECK_INT(put(&kit, "s", "k", "w", wrong[i]), E_CONFLICT);
        CHECK_INT(drop(&kit, "s", "k", wrong[i]), E_CONFLICT);
    }
    CHECK_INT(put(&kit, "s", "new", "w", 1), E_CONFLICT);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct note_put notes[] = {{.space = STR("s"), .key = STR("first"), .value = STR("x")},
                               {.space = STR("s"), .key = STR("k"), .value = STR("x"), .expect = 9}};
    struct store_batch batch = {.items = &item, .item_count = 1, .notes = notes, .note_count = 2};
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, NULL), E_CONFLICT);
    CHECK_INT(run_log_last_seq(log), 0);
    struct run_head head;
    CHECK_INT(store_head(kit.store, STR("default"), STR("r"), &kit.arena, &head, NULL), E_NOT_FOUND);
    check_note(&kit, "s", "k", "v", 1);
    CHECK_INT(version_of(&kit, "s", "first"), 0);
    notes[1].expect = 1; // and the same batch with the right expectation is stored whole
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    CHECK_INT(item.seq, 1);
    check_note(&kit, "s", "k", "x", 2);
    check_note(&kit, "s", "first", "x", 1);
    store_release_run(kit.store, log);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S15_puts_of_one_batch_build_on_each_other(void)
{
    struct kit kit;
    suite_start(&kit);
    struct note_put notes[] = {{.space = STR("s"), .key = STR("k"), .value = STR("a"), .expect = 0},
                               {.space = STR("s"), .key = STR("k"), .value = STR("b"), .expect = 1},
                               {.space = STR("s"), .key = STR("k"), .remove = true, .expect = 2},
                               {.space = STR("s"), .key = STR("k"), .value = STR("c"), .expect = 0},
                               {.space = STR("s"), .key = STR("k"), .value = STR("d"), .expect = NOTE_ANY}};
    CHECK_OK(put_all(&kit, notes, 5), &kit.err);
    check_note(&kit, "s", "k", "d", 2);
    CHECK_INT(put_all(&kit, notes, 5), E_CONFLICT);
    suite_reopen(&kit, STORE_WRITE);
    check_note(&kit, "s", "k", "d", 2);
    kit_release(&kit);
}

static void S15_a_draft_tells_beforehand_which_puts_fit_together(void)
{
    struct kit kit;
    suite_start(&kit);
    CHECK_OK(put(&kit, "s", "k", "v", 0), &kit.err);
    struct note_draft draft;
    note_draft_init(&draft, kit.store, &kit.arena);
    struct note_put fits[] = {{.space = STR("s"), .key = STR("k"), .value = STR("w"), .expect = 1},
                              {.space = STR("s"), .key = STR("m"), .value = STR("w"), .expect = 0}};
    struct note_put not [] = {{.space = STR("s"), .key = STR("n"), .value = STR("w"), .expect = 0},
                              {.space = STR("s"), .key = STR("m"), .value = STR("w"), .expect = 0}};
    CHECK_OK(note_draft_add(&draft, fits, 2, &kit.err), &kit.err);
    CHECK_INT(note_draft_add(&draft, not, 2, NULL), E_CONFLICT); // m is taken by the first; n is not kept either
    CHECK_OK(note_draft_add(&draft, not, 1, &kit.err), &kit.err);
    struct store_batch batch = {.drafted = &draft};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    check_note(&kit, "s", "k", "w", 2);
    check_note(&kit, "s", "m", "w", 1);
    check_note(&kit, "s", "n", "w", 1);
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, NULL), E_CONFLICT); // out of date
    kit_release(&kit);
}

static void S15_notes_of_a_space_come_by_the_bytes_of_their_keys_in_pages(void)
{
    struct kit kit;
    suite_start(&kit);
    static const char *const keys[] = {"b", "a", "ab", "\xc3\xa9", "B", "a/b", "z", "0"};
    static const char *const sorted[] = {"0", "B", "a", "a/b", "ab", "b", "z", "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        CHECK_OK(put(&kit, "page", keys[i], keys[i], 0), &kit.err);
        CHECK_OK(put(&kit, "pag", keys[i], "before", 0), &kit.err);
        CHECK_OK(put(&kit, "page2", keys[i], "behind", 0), &kit.err);
    }
    for (int round = 0; round < 2; round++) {
        struct str after = STR("");
        size_t seen = 0;
        for (;;) {
            struct notes page;
            CHECK_OK(store_notes(kit.store, STR("page"), after, 3, &kit.arena, &page, &kit.err), &kit.err);
            if (page.count == 0) break;
            CHECK(page.count <= 3);
            for (size_t i = 0; i < page.count; i++) {
                CHECK_STR(page.items[i].key, str_from(sorted[seen]));
                CHECK_STR(page.items[i].value, str_from(sorted[seen]));
                CHECK_STR(page.items[i].space, STR("page"));
                CHECK_INT(page.items[i].version, 1);
                seen++;
            }
            after = page.items[page.count - 1].key;
        }
        CHECK_INT(seen, ARRAY_COUNT(sorted));
        struct note_spaces spaces;
        CHECK_OK(store_note_spaces(kit.store, &kit.arena, &spaces, &kit.err), &kit.err);
        CHECK_INT(spaces.count, 3);
        CHECK_STR(spaces.items[0], STR("pag"));
        CHECK_STR(spaces.items[1], STR("page"));
        CHECK_STR(spaces.items[2], STR("page2"));
        suite_reopen(&kit, STORE_READ);
    }
    struct notes none;
    CHECK_OK(store_notes(kit.store, STR("empty"), STR(""), 10, &kit.arena, &none, &kit.err), &kit.err);
    CHECK_INT(none.count, 0);
    kit_release(&kit);
}

struct walked {
    size_t count;
    size_t stop; // at this one; 0 = never
    char last[NOTE_KEY_MAX + 1];
};

static enum code walk(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct walked *walked = context;
    char key[sizeof(walked->last)];
    CHECK(arena_alloc(scratch, 10));
    snprintf(key, sizeof(key), "%.*s", STR_ARG(note->key));
    CHECK(strcmp(walked->last, key) < 0);
    memcpy(walked->last, key, sizeof(key));
    CHECK_STR(note->value, note->key);
    return ++walked->count == walked->stop ? error_set(err, E_CANCELLED, "enough") : OK;
}

// More than a page of them, a longer key than the prefix at each end of it, and neighbours that are not meant.
static void S15_every_note_that_begins_with_a_prefix_is_visited_once(void)
{
    enum { COUNT = 1003 };
    struct kit kit;
    suite_start(&kit);
    static char keys[COUNT + 3][16];
    static struct note_put puts[COUNT + 3];
    for (size_t i = 0; i < COUNT + 3; i++) {
        if (i < COUNT)
            snprintf(keys[i], sizeof(keys[i]), "p/%04zu", i);
        else
            snprintf(keys[i], sizeof(keys[i]), "%s", i == COUNT ? "o/9" : i == COUNT + 1 ? "p/" : "p0");
        puts[i] = (struct note_put){STR("walk"), str_from(keys[i]), str_from(keys[i]), .expect = 0};
    }
    struct store_batch batch = {.notes = puts, .note_count = COUNT + 3};
    CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
    struct walked some = {0}, all = {0}, none = {0}, stopped = {.stop = 502};
    CHECK_OK(store_each_note(kit.store, STR("walk"), STR("p/"), walk, &some, &kit.err), &kit.err);
    CHECK_INT(some.count, COUNT);
    CHECK(strcmp(some.last, "p/1002") == 0);
    CHECK_OK(store_each_note(kit.store, STR("walk"), STR(""), walk, &all, &kit.err), &kit.err);
    CHECK_INT(all.count, COUNT + 3);
    CHECK_OK(store_each_note(kit.store, STR("walk"), STR("q"), walk, &none, &kit.err), &kit.err);
    CHECK_INT(none.count, 0);
    CHECK_INT(store_each_note(kit.store, STR("walk"), STR("p/"), walk, &stopped, NULL), E_CANCELLED);
    CHECK_INT(stopped.count, 502);
    kit_release(&kit);
}

static void S15_audit_records_are_only_added(void)
{
    struct kit kit;
    suite_start(&kit);
    CHECK_OK(put(&kit, "audit", "000001", "allowed", 0), &kit.err);
    CHECK_OK(put(&kit, "audit", "000002", "denied", NOTE_ANY), &kit.err);
    CHECK_INT(put(&kit, "audit", "000001", "forged", NOTE_ANY), E_CONFLICT);
    CHECK_INT(put(&kit, "audit", "000001", "forged", 1), E_CONFLICT);
    CHECK_INT(drop(&kit, "audit", "000001", NOTE_ANY), E_DENIED);
    CHECK_INT(drop(&kit, "audit", "000001", 1), E_DENIED);
    suite_reopen(&kit, STORE_WRITE);
    CHECK_INT(put(&kit, "audit", "000002", "forged", NOTE_ANY), E_CONFLICT);
    check_note(&kit, "audit", "000001", "allowed", 1);
    check_note(&kit, "audit", "000002", "denied", 1);
    kit_release(&kit);
}

static void S15_names_and_values_have_limits(void)
{
    struct kit kit;
    suite_start(&kit);
    static char text[NOTE_KEY_MAX + 2];
    memset(text, 'k', NOTE_KEY_MAX + 1);
    CHECK_INT(put(&kit, "", "k", "v", 0), E_INVALID);
    CHECK_INT(put(&kit, "Upper", "k", "v", 0), E_INVALID);
    CHECK_INT(put(&kit, "s", "", "v", 0), E_INVALID);
    CHECK_INT(put(&kit, "s", text, "v", 0), E_INVALID);
    text[NOTE_KEY_MAX] = '\0';
    CHECK_OK(put(&kit, "s", text, "v", 0), &kit.err);
    check_note(&kit, "s", text, "v", 1);
    size_t size = NOTE_VALUE_MAX + 1;
    char *large = calloc(1, size);
    CHECK(large);
    struct note_put note = {.space = STR("s"), .key = STR("large"), .value = {large, size}};
    CHECK_INT(put_all(&kit, &note, 1), E_LIMIT);
    note.value.len = 300000; // larger than any page or block
    large[299999] = 'x';
    CHECK_OK(put_all(&kit, &note, 1), &kit.err);
    suite_reopen(&kit, STORE_WRITE);
    struct note found;
    CHECK_OK(store_note(kit.store, note.space, note.key, &kit.arena, &found, &kit.err), &kit.err);
    CHECK(str_eq(found.value, note.value));
    free(large);
    kit_release(&kit);
}

// The writer dies; what it was told to be stored is there, with its notes.
static void S15_notes_survive_the_death_of_their_process_S1(void)
{
    if (!suite_case->durable) test_skip("%s ends with its handle", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct str url = arena_copy(&kit.arena, store_url(kit.store));
    store_close(kit.store);
    kit.store = NULL;
    pid_t child = fork();
    if (child == 0) {
        kit.store = suite_open(&kit, url.ptr, STORE_WRITE);
        bool ok = put(&kit, "s", "k", "one", 0) == OK;
        struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
        struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
        struct append_item item = {.log = log, .moment = &moment};
        struct note_put note = {.space = STR("s"), .key = STR("k"), .value = STR("two"), .expect = 1};
        struct store_batch batch = {.items = &item, .item_count = 1, .notes = &note, .note_count = 1};
        ok = ok && store_append(kit.store, &batch, KIT_NOW, &kit.arena, NULL) == OK;
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    kit.store = suite_open(&kit, url.ptr, STORE_WRITE);
    check_note(&kit, "s", "k", "two", 2);
    CHECK_INT(kit_read(&kit, "r").count, 1);
    kit_release(&kit);
}

static void S15_S16_a_reader_sees_what_was_committed_meanwhile(void)
{
    if (!suite_case->shared) test_skip("%s has no readers", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    CHECK_OK(put(&kit, "s", "k", "one", 0), &kit.err);
    struct store *writer = kit.store;
    struct store *reader = suite_open(&kit, arena_copy(&kit.arena, store_url(writer)).ptr, STORE_READ);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    for (int i = 0; i < 5; i++) {
        kit.store = writer;
        char value[16];
        snprintf(value, sizeof(value), "v%d", i);
        CHECK_OK(put(&kit, "s", "k", value, (uint64_t)i + 1), &kit.err);
        kit_append(&kit, log, kit_moment(MOMENT_STEP_STARTED, value, 1));
        kit.store = reader;
        check_note(&kit, "s", "k", value, (uint64_t)i + 2);
        struct feed feed;
        CHECK_OK(store_feed(reader, 0, 100, &kit.arena, &feed, &kit.err), &kit.err);
        CHECK_INT(feed.count, i + 1);
        CHECK_INT(feed.items[i].record.seq, i + 1);
    }
    struct note_put note = {.space = STR("s"), .key = STR("k"), .expect = NOTE_ANY};
    CHECK_INT(put_all(&kit, &note, 1), E_DENIED); // by the reader
    store_close(reader);
    kit.store = writer;
    store_release_run(kit.store, log);
    kit_release(&kit);
}

static void S15_a_second_writer_is_seen_and_fenced_by_the_version(void)
{
    if (!suite_case->many_writers) test_skip("%s has one writer", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct store *first = kit.store;
    struct store *second = suite_open(&kit, arena_copy(&kit.arena, store_url(first)).ptr, STORE_WRITE);
    CHECK_OK(put(&kit, "s", "k", "one", 0), &kit.err);
    struct note_draft draft; // checked before the other one writes
    struct note_put note = {.space = STR("s"), .key = STR("k"), .value = STR("late"), .expect = 1};
    note_draft_init(&draft, first, &kit.arena);
    CHECK_OK(note_draft_add(&draft, &note, 1, &kit.err), &kit.err);
    kit.store = second;
    CHECK_OK(put(&kit, "s", "k", "two", 1), &kit.err);
    kit.store = first;
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    struct moment moment = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    struct append_item item = {.log = log, .moment = &moment};
    struct store_batch batch = {.items = &item, .item_count = 1, .drafted = &draft};
    CHECK_INT(store_append(first, &batch, KIT_NOW, &kit.arena, NULL), E_CONFLICT);
    check_note(&kit, "s", "k", "two", 2);
    struct feed feed;
    CHECK_OK(store_feed(first, 0, 10, &kit.arena, &feed, &kit.err), &kit.err);
    CHECK_INT(feed.count, 0);
    store_release_run(first, log);
    store_close(second);
    kit_release(&kit);
}

// ---- S16

static void make_run(struct kit *kit, const char *tenant, const char *run, size_t steps, bool ended)
{
    struct run_create create = kit_run(tenant, run, VOCABULARY_NODES);
    struct run_log *log = NULL;
    CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
    kit_append(kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    kit_append(kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1)); // to the ledger: no part of the feed
    for (size_t i = 0; i < steps; i++) {
        char step[32];
        snprintf(step, sizeof(step), "s%zu", i);
        kit_step(kit, log, step);
    }
    if (ended) kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit->store, log);
}

static struct feed whole_feed(struct kit *kit)
{
    struct feed feed;
    kit->err = (struct error){0};
    CHECK_OK(store_feed(kit->store, 0, SIZE_MAX, &kit->arena, &feed, &kit->err), &kit->err);
    return feed;
}

static uint64_t feed_end(struct kit *kit)
{
    uint64_t end = 0;
    CHECK_OK(store_feed_end(kit->store, &end, &kit->err), &kit->err);
    return end;
}

// Every event of every run once, each run's in order, as it stands in its log; pages give the same as the whole.
static void check_feed(struct kit *kit)
{
    struct feed feed = whole_feed(kit);
    struct run_heads heads;
    struct run_filter filter = {.limit = 1000};
    CHECK_OK(store_list(kit->store, &filter, &kit->arena, &heads, &kit->err), &kit->err);
    uint64_t *seen = ARENA_ARRAY(&kit->arena, heads.count + 1, uint64_t);
    uint64_t last = 0, total = 0;
    for (size_t i = 0; i < feed.count; i++) {
        const struct feed_item *item = &feed.items[i];
        CHECK(item->position > last);
        last = item->position;
        size_t k = 0;
        while (k < heads.count &&
               (!str_eq(heads.items[k].ids.run, item->run) || !str_eq(heads.items[k].ids.tenant, item->tenant)))
            k++;
        CHECK(k < heads.count);
        CHECK_INT(item->record.seq, ++seen[k]);
        CHECK_INT(item->vocabulary, heads.items[k].vocabulary);
        struct records log;
        struct record_range range = {
            .tenant = item->tenant, .run = item->run, .after = item->record.seq - 1, .limit = 1};
        CHECK_OK(store_read(kit->store, &range, &kit->arena, &log, &kit->err), &kit->err);
        CHECK_STR(item->record.bytes, log.items[0].bytes);
        CHECK_STR(item->record.type, log.items[0].type);
        CHECK(digest_eq(&item->record.hash, &log.items[0].hash));
    }
    for (size_t k = 0; k < heads.count; k++) total += heads.items[k].last_seq;
    CHECK_INT(feed.count, total);
    CHECK(feed_end(kit) >= last);
    uint64_t after = 0;
    for (size_t at = 0; at < feed.count;) {
        struct feed page;
        CHECK_OK(store_feed(kit->store, after, 3, &kit->arena, &page, &kit->err), &kit->err);
        CHECK(page.next > after);
        for (size_t i = 0; i < page.count; i++) CHECK_INT(page.items[i].position, feed.items[at++].position);
        after = page.next;
    }
}

static void S16_the_feed_tells_every_event_of_all_runs_and_tenants_in_the_order_of_commits(void)
{
    struct kit kit;
    suite_start(&kit);
    CHECK_INT(feed_end(&kit), 0);
    CHECK_INT(whole_feed(&kit).count, 0);
    make_run(&kit, "default", "a", 2, true);
    make_run(&kit, "acme", "a", 1, false);
    struct run_log *b = kit_create(&kit, "b", VOCABULARY_RUN), *c = kit_create(&kit, "c", VOCABULARY_RUN);
    for (int i = 0; i < 4; i++) { // two runs in one batch, several events each
        char name[3][32];
        struct moment moments[3];
        struct append_item items[3];
        for (int k = 0; k < 3; k++) {
            snprintf(name[k], sizeof(name[k]), "s%d%d", i, k);
            moments[k] = kit_moment(MOMENT_STEP_STARTED, name[k], 1);
            items[k] = (struct append_item){.log = k == 1 ? c : b, .moment = &moments[k]};
        }
        struct store_batch batch = {.items = items, .item_count = 3};
        uint64_t before = feed_end(&kit);
        CHECK_OK(store_append(kit.store, &batch, KIT_NOW, &kit.arena, &kit.err), &kit.err);
        struct feed news;
        CHECK_OK(store_feed(kit.store, before, 10, &kit.arena, &news, &kit.err), &kit.err);
        CHECK_INT(news.count, 3);
        CHECK_INT(news.next, feed_end(&kit));
    }
    store_release_run(kit.store, b);
    store_release_run(kit.store, c);
    check_feed(&kit);
    uint64_t end = feed_end(&kit);
    suite_reopen(&kit, STORE_WRITE);
    CHECK_INT(feed_end(&kit), end);
    check_feed(&kit);
    suite_reopen(&kit, STORE_READ);
    check_feed(&kit);
    kit_release(&kit);
}

static void S16_positions_stay_when_runs_are_removed_and_are_never_given_again(void)
{
    struct kit kit;
    suite_start(&kit);
    make_run(&kit, "default", "a", 2, false);
    make_run(&kit, "default", "old", 3, true);
    make_run(&kit, "default", "b", 1, false);
    make_run(&kit, "default", "last", 1, true);
    struct feed before = whole_feed(&kit);
    uint64_t end = feed_end(&kit);
    struct run_name names[] = {{STR("default"), STR("old")}, {STR("default"), STR("last")}};
    CHECK_OK(store_remove(kit.store, names, 2, KIT_NOW, STR("old"), &kit.err), &kit.err);
    for (int round = 0; round < 2; round++) {
        struct feed after = whole_feed(&kit);
        size_t at = 0;
        for (size_t i = 0; i < before.count; i++) {
            if (str_eq(before.items[i].run, names[0].run) || str_eq(before.items[i].run, names[1].run)) continue;
            CHECK(at < after.count);
            CHECK_INT(after.items[at].position, before.items[i].position);
            CHECK_STR(after.items[at].record.bytes, before.items[i].record.bytes);
            at++;
        }
        CHECK_INT(after.count, at);
        CHECK_INT(feed_end(&kit), end);
        suite_reopen(&kit, STORE_WRITE);
    }
    make_run(&kit, "default", "last", 1, false); // the id again, and the newest position was the removed one's
    struct feed news;
    CHECK_OK(store_feed(kit.store, end, 10, &kit.arena, &news, &kit.err), &kit.err);
    CHECK_INT(news.count, 2);
    CHECK(news.items[0].position > end);
    check_feed(&kit);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S16_positions_that_another_process_removed_are_not_given_again(void)
{
    if (!suite_case->many_writers) test_skip("%s has one writer", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct store *first = kit.store;
    struct store *second = suite_open(&kit, arena_copy(&kit.arena, store_url(first)).ptr, STORE_WRITE);
    struct run_log *log = kit_create(&kit, "going", VOCABULARY_NODES);
    kit_append(&kit, log, kit_moment(MOMENT_RUN_STARTED, "", 1));
    for (int i = 0; i < 3; i++) {
        kit.store = second;
        make_run(&kit, "default", "gone", 2, true); // the newest positions
        kit.store = first;
        uint64_t end = feed_end(&kit);
        struct run_name name = {STR("default"), STR("gone")};
        CHECK_OK(store_remove(second, &name, 1, KIT_NOW, STR("old"), &kit.err), &kit.err);
        for (int k = 0; k < 2; k++) {
            char step[32];
            snprintf(step, sizeof(step), "s%d-%d", i, k);
            kit_step(&kit, log, step);
        }
        struct feed news;
        CHECK_OK(store_feed(first, end, 10, &kit.arena, &news, &kit.err), &kit.err);
        CHECK_INT(news.count, 2);
    }
    store_release_run(first, log);
    check_feed(&kit);
    store_close(second);
    kit_release(&kit);
}

static void S16_the_feed_survives_the_death_of_its_process_S1(void)
{
    if (!suite_case->durable) test_skip("%s ends with its handle", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    make_run(&kit, "default", "a", 2, true);
    struct str url = arena_copy(&kit.arena, store_url(kit.store));
    uint64_t before = feed_end(&kit);
    store_close(kit.store);
    kit.store = NULL;
    pid_t child = fork();
    if (child == 0) {
        kit.store = suite_open(&kit, url.ptr, STORE_WRITE);
        make_run(&kit, "default", "b", 3, true);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    kit.store = suite_open(&kit, url.ptr, STORE_WRITE);
    check_feed(&kit);
    CHECK_INT(feed_end(&kit), before + 5);
    make_run(&kit, "default", "c", 1, false);
    check_feed(&kit);
    kit_release(&kit);
}

const struct test suite_notes_tests[] = {
    TEST(S15_a_note_has_a_version_that_rises_with_each_put),
    TEST(S15_a_put_that_expects_another_version_stores_nothing_of_its_batch),
    TEST(S15_puts_of_one_batch_build_on_each_other),
    TEST(S15_a_draft_tells_beforehand_which_puts_fit_together),
    TEST(S15_notes_of_a_space_come_by_the_bytes_of_their_keys_in_pages),
    TEST(S15_every_note_that_begins_with_a_prefix_is_visited_once),
    TEST(S15_audit_records_are_only_added),
    TEST(S15_names_and_values_have_limits),
    TEST(S15_notes_survive_the_death_of_their_process_S1),
    TEST(S15_S16_a_reader_sees_what_was_committed_meanwhile),
    TEST(S15_a_second_writer_is_seen_and_fenced_by_the_version),
    TEST(S16_the_feed_tells_every_event_of_all_runs_and_tenants_in_the_order_of_commits),
    TEST(S16_positions_stay_when_runs_are_removed_and_are_never_given_again),
    TEST(S16_positions_that_another_process_removed_are_not_given_again),
    TEST(S16_the_feed_survives_the_death_of_its_process_S1),
};
const size_t suite_notes_count = ARRAY_COUNT(suite_notes_tests);
