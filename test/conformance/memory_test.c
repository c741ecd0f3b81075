#include "conformance/store_kit.h"
#include "conformance/store_suite.h"

static const char *scratch(void)
{
    return "memory:";
}

static const char *several(void)
{
    return "memory:several";
}

// There is no other process, so taking a run again is all it needs.
static void usurp(struct store *store, struct str tenant, struct str run)
{
    struct run_log *log = NULL;
    CHECK_INT(store_claim_run(store, tenant, run, &log, NULL), OK);
    store_release_run(store, log);
}

static void two_handles_are_two_stores(void)
{
    struct kit a, b;
    kit_init(&a);
    kit_init(&b);
    struct store_options options = kit_options(&a, STORE_WRITE);
    CHECK_OK(store_open(STR("memory:"), &options, &a.store, &a.err), &a.err);
    CHECK_OK(store_open(STR("memory:"), &options, &b.store, &b.err), &b.err);
    struct run_log *log = kit_create(&a, "r", VOCABULARY_RUN);
    kit_step(&a, log, "a");
    struct run_head head;
    CHECK_INT(store_head(b.store, STR("default"), STR("r"), &b.arena, &head, NULL), E_NOT_FOUND);
    store_release_run(a.store, log);
    kit_release(&b);
    kit_release(&a);
}

int main(int argc, char **argv)
{
    static const struct test more[] = {TEST(two_handles_are_two_stores)};
    static const struct store_case memory = {.name = "memory",
                                             .scratch = scratch,
                                             .several = several,
                                             .usurp = usurp,
                                             .more = more,
                                             .more_count = ARRAY_COUNT(more)};
    return store_suite(&memory, argc, argv);
}
