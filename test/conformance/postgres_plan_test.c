// How the statements of the store are executed: a page, or the finding of a run, must not cost more because more is stored. What
// the server would do is asked of the session of the store itself.
#include "conformance/pg_cluster.h"
#include "conformance/store_kit.h"
#include "store/postgres.h"

enum { RUNS = 1800, BATCH = 180 };

static bool missing;

static void fill_some(struct kit *kit, int from)
{
    struct append_item items[2 * BATCH] = {0};
    struct moment moments[2 * BATCH];
    struct run_log *logs[BATCH];
    size_t count = 0;
    for (int i = 0; i < BATCH; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", from + i);
        logs[i] = kit_create(kit, name, VOCABULARY_RUN);
        for (int k = 0; k < (i % 3 ? 2 : 1); k++, count++) {
            moments[count] = kit_moment(k ? MOMENT_RUN_COMPLETED : MOMENT_RUN_STARTED, "", 1);
            items[count] = (struct append_item){.log = logs[i], .moment = &moments[count]};
        }
    }
    struct store_batch batch = {.items = items, .item_count = count};
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
    for (int i = 0; i < BATCH; i++) store_release_run(kit->store, logs[i]);
}

static void fill(struct kit *kit)
{
    char url[700];
    if (missing) test_skip("Postgres is not installed (package postgresql)");
    snprintf(url, sizeof(url), "%s&schema=q%d", pg_url("postgres", ""), (int)getpid());
    kit_init(kit);
    struct store_options options = kit_options(kit, STORE_WRITE);
    CHECK_OK(store_open(str_from(url), &options, &kit->store, &kit->err), &kit->err);
    for (int i = 0; i < RUNS; i += BATCH) fill_some(kit, i);
}

static void plan_of(struct kit *kit, enum pg_statement which, const char *parameters, char *out, size_t size)
{
    char sql[300];
    snprintf(sql, sizeof(sql), "EXPLAIN EXECUTE s%d(%s)", (int)which, parameters);
    PGresult *result = PQexec(pg_of(kit->store)->link, sql);
    CHECK_INT(PQresultStatus(result), PGRES_TUPLES_OK);
    out[0] = '\0';
    for (int i = 0; i < PQntuples(result); i++)
        snprintf(out + strlen(out), size - strlen(out), "%s\n", PQgetvalue(result, i, 0));
    PQclear(result);
}

static void list(struct kit *kit, const struct run_filter *filter, size_t count)
{
    struct run_heads heads;
    CHECK_OK(store_list(kit->store, filter, &kit->arena, &heads, &kit->err), &kit->err);
    CHECK_INT(heads.count, count);
    for (size_t i = 1; i < heads.count; i++) CHECK(heads.items[i].position < heads.items[i - 1].position);
}

// A session that began when the tables were empty does not go on reading them whole. Pages walk the index of what is asked for, from
// where the page begins: not all runs, and nothing is sorted but what was found.
static void a_run_and_a_page_are_found_by_their_index(void)
{
    static const char *const by_status = "'default',9000000000,'',0,0,false,false,'','{}',51,0,'{RUNNING,COMPLETED}'",
                             *const by_plan = "'default',9000000000,'p',0,0,false,false,'','{}',51,0";
    struct kit kit;
    char plan[8000];
    fill(&kit); // each start looks whether the run is there
    plan_of(&kit, PG_HEAD, "'default','n1'", plan, sizeof(plan));
    CHECK(strstr(plan, "runs_tenant_id_run_id_key") && strstr(plan, "run_heads_pkey"));
    list(&kit, &(struct run_filter){.tenant = STR("default"), .limit = 20}, 20);
    plan_of(&kit, PG_LIST_BY_STATUS, by_status, plan, sizeof(plan));
    CHECK(strstr(plan, "run_heads_by_status") && !strstr(plan, "run_heads_pkey"));
    struct run_head head = kit_head(&kit, "n1");
    list(&kit, &(struct run_filter){.tenant = STR("default"), .plan = head.ids.plan_id, .limit = 20}, 20);
    plan_of(&kit, PG_LIST_BY_PLAN, by_plan, plan, sizeof(plan));
    CHECK(strstr(plan, "runs_by_plan") && !strstr(plan, "Sort"));
    list(&kit, &(struct run_filter){.tenant = STR("default"), .run_prefix = STR("n179"), .limit = 20}, 11);
    list(&kit, &(struct run_filter){.unfinished = true, .limit = 1000}, RUNS / 3);
    kit_release(&kit);
}

// What the claim of a page reads is what it claims, however many runs there are: for each its name, its head and its shard.
static void the_claim_of_a_page_reads_the_runs_of_the_page(void)
{
    struct kit kit;
    struct shard_map map;
    char sql[200];
    static const char *const fetched = "SELECT sum(idx_tup_fetch)::int8 FROM pg_stat_xact_user_tables"
                                       " WHERE schemaname=current_schema() AND relname IN ('runs','run_heads')";
    fill(&kit);
    struct pg_store *store = pg_of(kit.store);
    CHECK_OK(store_shards(kit.store, 10000, KIT_NOW, &map, &kit.err), &kit.err);
    snprintf(sql, sizeof(sql), "SELECT claim_runs(%lld,ARRAY['default','default','default'],ARRAY['n3','n0','n600'])",
             (long long)store->engine);
    PQclear(PQexec(store->link, "BEGIN"));
    long long before = pg_number(store->link, fetched);
    PGresult *result = PQexec(store->link, sql);
    CHECK_INT(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    long long read = pg_number(store->link, fetched) - before;
    PQclear(PQexec(store->link, "ROLLBACK"));
    if (read < 3 || read > 12) test_fail(__FILE__, __LINE__, "%lld rows for three runs", read);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_run_and_a_page_are_found_by_their_index),
        TEST(the_claim_of_a_page_reads_the_runs_of_the_page),
    };
    missing = !pg_find_programs(pg_cluster.programs, sizeof(pg_cluster.programs));
    if (!missing && !pg_cluster_start(true)) return 1;
    return test_main("postgres_plan", tests, ARRAY_COUNT(tests), argc, argv);
}
