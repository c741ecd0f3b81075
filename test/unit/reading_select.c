// Lists of many runs: they cost what they return, not what is stored, and whoever is short of time goes on later.
#include "conformance/store_kit.h"
#include "reading/reading.h"
#include "store/sqlite.h"

enum { RUNS = 6000, OPEN_EVERY = 600, FAILED_EVERY = 300 };

static enum run_status status_of(size_t i)
{
    if (i % OPEN_EVERY == 5) return RUN_STATUS_RUNNING;
    return i % FAILED_EVERY == 7 ? RUN_STATUS_FAILED : RUN_STATUS_COMPLETED;
}

static void add_runs(struct kit *kit, size_t from, size_t count)
{
    struct append_item items[200];
    struct append_summary summaries[200];
    struct moment moments[200];
    for (size_t k = 0; k < count; k++) {
        size_t i = from + k;
        char name[24];
        snprintf(name, sizeof(name), "%04zx-run", i * 40503 % 65536);
        struct run_create create = kit_run(i % 50 == 49 ? "acme" : "default", name, VOCABULARY_RUN);
        if (i % 100 == 3) create.ids.plan_id = STR("rare");
        if (i == 11) create.name = STR("needle");
        struct run_log *log = NULL;
        enum run_status status = status_of(i);
        CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
        moments[k] = kit_moment(status == RUN_STATUS_RUNNING  ? MOMENT_RUN_QUEUED
                                : status == RUN_STATUS_FAILED ? MOMENT_RUN_FAILED
                                                              : MOMENT_RUN_COMPLETED,
                                "", 1);
        items[k] = (struct append_item){.log = log, .moment = &moments[k]};
        summaries[k] = (struct append_summary){log, {.status = status, .created_ms = 1000 + (int64_t)i}};
    }
    struct store_batch batch = {.items = items, .item_count = count, .summaries = summaries, .summary_count = count};
    struct arena turn;
    arena_init(&turn, 64 * 1024, SIZE_MAX);
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &turn, &kit->err), &kit->err);
    arena_release(&turn);
    for (size_t k = 0; k < count; k++) store_release_run(kit->store, items[k].log);
}

static void start(struct kit *kit, const char *name)
{
    char url[512];
    kit_init(kit);
    snprintf(url, sizeof(url), "sqlite:%s/%s.db", test_dir(), name);
    struct store_options options = kit_options(kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &kit->store, &kit->err), &kit->err);
    for (size_t i = 0; i < RUNS; i += 200) add_runs(kit, i, 200);
}

// Steps of SQLite's machine since it was asked last.
static int64_t steps(struct kit *kit)
{
    struct sqlite_store *store = sqlite_of(kit->store);
    int64_t sum = 0;
    for (sqlite3_stmt *s = sqlite3_next_stmt(store->db, NULL); s; s = sqlite3_next_stmt(store->db, s))
        sum += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
    return sum;
}

static void lists_cost_what_they_return_whatever_is_stored(void)
{
    struct kit kit;
    start(&kit, "cost");
    const struct {
        struct run_filter filter;
        size_t count;
        int64_t steps; // a row has 31 columns
    } cases[] = {
        {{.tenant = STR("default")}, 10, 3000},
        {{.tenant = STR("default"), .before = 3000}, 10, 3000},
        {{.tenant = STR("default"), .status_mask = 1u << RUN_STATUS_FAILED}, 10, 1500},
        {{.tenant = STR("default"), .unfinished = true}, 10, 1500},
        {{.unfinished = true}, 10, 3000}, // of all tenants: what a service does when it starts
        {{.tenant = STR("default"), .plan = STR("rare")}, 10, 4000},
        {{.tenant = STR("default"), .plan = STR("none")}, 0, 500},
        {{.tenant = STR("default"), .since_ms = 1000 + RUNS - 5}, 4, 2000},
        {{.tenant = STR("default"), .since_ms = 1000 + RUNS + 5}, 0, 500},
        {{.tenant = STR("default"), .run_prefix = STR("1a0")}, 9, 3000},
        // Many of the plan, few that failed: by state.
        {{.tenant = STR("default"), .plan = STR("orders"), .status_mask = 1u << RUN_STATUS_FAILED}, 10, 60000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct run_filter filter = cases[i].filter;
        struct run_heads heads;
        filter.limit = 10;
        (void)steps(&kit);
        CHECK_OK(store_list(kit.store, &filter, &kit.arena, &heads, &kit.err), &kit.err);
        int64_t cost = steps(&kit);
        if (cost > cases[i].steps || (cases[i].count != 9 && heads.count != cases[i].count))
            test_fail(__FILE__, __LINE__, "case %zu: %zu runs in %lld steps", i, heads.count, (long long)cost);
    }
    kit_release(&kit);
}

// A reader without patience gets short pages; all of them together are what the patient one gets.
static void impatient_pages_add_up(void)
{
    static const char *const queries[] = {"", "status=FAILED", "name~needle", "plan=rare status=ended",
                                          "not status=ended"};
    struct kit kit;
    start(&kit, "patience");
    for (size_t q = 0; q < ARRAY_COUNT(queries); q++) {
        struct run_filter filter = {.tenant = STR("default")};
        struct query_fault fault;
        struct select whole, parts;
        struct run_heads all, some;
        CHECK_OK(select_open(&whole, kit.store, &filter, str_from(queries[q]), KIT_NOW, &fault), &fault.error);
        CHECK_OK(select_open(&parts, kit.store, &filter, str_from(queries[q]), KIT_NOW, &fault), &fault.error);
        CHECK_OK(select_page(&whole, RUNS, &kit.arena, &all, &kit.err), &kit.err);
        parts.patience_ms = 1;
        size_t seen = 0, pages = 0;
        do {
            CHECK_OK(select_page(&parts, 20, &kit.arena, &some, &kit.err), &kit.err);
            CHECK(some.count <= 20);
            for (size_t i = 0; i < some.count; i++) CHECK_STR(some.items[i].ids.run, all.items[seen++].ids.run);
        } while (parts.filter.before && pages++ < RUNS);
        CHECK_INT(seen, all.count);
        select_close(&whole);
        select_close(&parts);
    }
    kit_release(&kit);
}

// What a query looks at and does not keep takes no memory of the caller's.
static void looking_takes_no_memory(void)
{
    struct kit kit;
    struct arena little;
    start(&kit, "memory");
    struct run_filter filter = {.tenant = STR("default")};
    struct query_fault fault;
    struct select select;
    struct run_heads heads;
    arena_init(&little, 4096, 64 * 1024);
    CHECK_OK(select_open(&select, kit.store, &filter, STR("name~needle"), KIT_NOW, &fault), &fault.error);
    CHECK_OK(select_page(&select, 50, &little, &heads, &kit.err), &kit.err);
    CHECK_INT(heads.count, 1);
    CHECK_STR(heads.items[0].name, STR("needle"));
    select_close(&select);
    arena_release(&little);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(lists_cost_what_they_return_whatever_is_stored),
        TEST(impatient_pages_add_up),
        TEST(looking_takes_no_memory),
    };
    return test_main("reading_select", tests, ARRAY_COUNT(tests), argc, argv);
}
