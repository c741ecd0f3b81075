#include "conformance/store_suite_private.h"

#include <stdlib.h>

const struct store_case *suite_case;

static enum code try_open(struct kit *kit, const char *url, enum store_mode mode, struct store **out)
{
    struct store_options options = kit_options(kit, mode);
    if (suite_case->options) suite_case->options(&options);
    kit->err = (struct error){0};
    return store_open(str_from(url), &options, out, &kit->err);
}

struct store *suite_open(struct kit *kit, const char *url, enum store_mode mode)
{
    struct store *store = NULL;
    CHECK_OK(try_open(kit, url, mode, &store), &kit->err);
    return store;
}

void suite_start(struct kit *kit)
{
    kit_init(kit);
    kit->store = suite_open(kit, suite_case->scratch(), STORE_WRITE);
}

void suite_reopen(struct kit *kit, enum store_mode mode)
{
    if (!suite_case->durable) return;
    struct str url = arena_copy(&kit->arena, store_url(kit->store));
    CHECK(url.ptr);
    store_close(kit->store);
    kit->store = suite_open(kit, url.ptr, mode);
}

// ---- opening

static void a_store_has_a_kind_and_a_url(void)
{
    struct kit kit;
    suite_start(&kit);
    CHECK_TEXT(store_kind(kit.store), suite_case->name);
    CHECK(str_starts(store_url(kit.store), str_from(suite_case->name)));
    CHECK_INT(store_recovered(kit.store)->torn_bytes, 0);
    kit_release(&kit);
}

static void a_store_that_is_missing_is_not_found(void)
{
    if (!suite_case->durable) test_skip("%s is always there", suite_case->name);
    struct kit kit;
    kit_init(&kit);
    const char *url = suite_case->scratch();
    struct store *store = NULL;
    CHECK_INT(try_open(&kit, url, STORE_READ, &store), E_NOT_FOUND);
    CHECK(!store);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    options.create = false;
    if (suite_case->options) suite_case->options(&options);
    options.create = false;
    kit.err = (struct error){0};
    CHECK_INT(store_open(str_from(url), &options, &store, &kit.err), E_NOT_FOUND);
    kit_release(&kit);
}

static void a_url_that_makes_no_sense_is_refused(void)
{
    struct kit kit;
    kit_init(&kit);
    struct store_options options = kit_options(&kit, STORE_WRITE);
    static const char *const urls[] = {"", "sqlite", "sqlite:", "files:", "postgres:x", ":x"};
    for (size_t i = 0; i < ARRAY_COUNT(urls); i++) {
        struct store *store = NULL;
        kit.err = (struct error){0};
        CHECK_INT(store_open(str_from(urls[i]), &options, &store, &kit.err), E_INVALID);
        CHECK(!store);
    }
    kit_release(&kit);
}

static void a_reader_may_not_write(void)
{
    if (!suite_case->durable) test_skip("%s has no readers", suite_case->name);
    struct kit kit;
    suite_start(&kit);
    struct run_log *log = kit_create(&kit, "r", VOCABULARY_RUN);
    kit_step(&kit, log, "a");
    store_release_run(kit.store, log);
    suite_reopen(&kit, STORE_READ);
    struct run_create create = kit_run("default", "s", VOCABULARY_RUN);
    CHECK_INT(store_create_run(kit.store, &create, &log, NULL), E_DENIED);
    CHECK_INT(store_claim_run(kit.store, STR("default"), STR("r"), &log, NULL), E_DENIED);
    struct store_batch batch = {0};
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, NULL), E_DENIED);
    CHECK_INT(kit_read(&kit, "r").count, 1);
    kit_release(&kit);
}

static void artifacts_are_beside_the_store_by_tenant(void)
{
    struct kit kit;
    suite_start(&kit);
    struct run_create create = kit_run("default", "r", VOCABULARY_RUN);
    struct str path;
    CHECK_INT(store_artifacts_dir(kit.store, &create.ids, &kit.arena, &path), OK);
    CHECK(path.len > 2 && path.ptr[0] == '/');
    CHECK(str_ends(path, STR("/r")) || strstr(path.ptr, "/r/"));
    CHECK(!memchr(path.ptr, '@', path.len));
    create.ids.tenant = STR("acme");
    struct str other;
    CHECK_INT(store_artifacts_dir(kit.store, &create.ids, &kit.arena, &other), OK);
    CHECK(str_ends(other, STR("/@acme/r")) || strstr(other.ptr, "/@acme/r/"));
    struct str logs;
    CHECK_INT(store_logs_dir(kit.store, &create.ids, &kit.arena, &logs), OK);
    CHECK(logs.len == 0 || strstr(logs.ptr, "/@acme/r"));
    CHECK(!str_eq(logs, other));
    kit_release(&kit);
}

static const struct test open_tests[] = {
    TEST(a_store_has_a_kind_and_a_url),
    TEST(a_store_that_is_missing_is_not_found),
    TEST(a_url_that_makes_no_sense_is_refused),
    TEST(a_reader_may_not_write),
    TEST(artifacts_are_beside_the_store_by_tenant),
};

int store_suite(const struct store_case *store_case, int argc, char **argv)
{
    suite_case = store_case;
    const struct {
        const struct test *tests;
        size_t count;
    } parts[] = {{open_tests, ARRAY_COUNT(open_tests)},    {suite_append_tests, suite_append_count},
                 {suite_read_tests, suite_read_count},     {suite_crash_tests, suite_crash_count},
                 {suite_verify_tests, suite_verify_count}, {suite_import_tests, suite_import_count},
                 {suite_remove_tests, suite_remove_count}, {suite_notes_tests, suite_notes_count},
                 {suite_shards_tests, suite_shards_count}, {store_case->more, store_case->more_count}};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) count += parts[i].count;
    struct test *all = calloc(count, sizeof(*all));
    if (!all) return 1;
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        for (size_t k = 0; k < parts[i].count; k++) all[at++] = parts[i].tests[k];
    char name[64];
    snprintf(name, sizeof(name), "conformance_%s", store_case->name);
    int rc = test_main(name, all, count, argc, argv);
    free(all);
    return rc;
}
