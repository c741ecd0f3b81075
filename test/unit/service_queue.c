// Queues: who counts where, who is next. Without a service around them.
#include "harness/test.h"
#include "service/queue.h"

#include <stdio.h>

static struct queues queues;
static struct error err;
static char said[512];
static size_t said_len;
static enum code verdict_for_bad = E_UNSUPPORTED;

static void begin(void)
{
    queues_release(&queues);
    said_len = 0;
    said[0] = '\0';
}

static void configure(const char *tenant, const char *name, struct queue_config config)
{
    CHECK_OK(queues_configure(&queues, str_from(tenant), str_from(name), &config, &err), &err);
}

static void place(const char *tenant, const char *name, const char *run, enum queue_state where)
{
    CHECK_OK(queues_place(&queues, str_from(tenant), str_from(name), str_from(run), where, 0, 1000, &err), &err);
}

static enum code admit(void *context, struct str tenant, struct str run)
{
    (void)context;
    (void)tenant;
    return str_is(run, "bad") ? verdict_for_bad : OK;
}

static void told(void *context, struct str tenant, struct str run, const char *status)
{
    (void)context;
    int len =
        snprintf(said + said_len, sizeof(said) - said_len, "%.*s/%.*s %s\n", STR_ARG(tenant), STR_ARG(run), status);
    said_len += (size_t)len;
}

static size_t reconcile(void)
{
    struct queue_pass pass = {.admit = admit, .told = told};
    said_len = 0;
    said[0] = '\0';
    return queues_reconcile(&queues, &pass);
}

static void an_unknown_queue_has_no_limit(void)
{
    begin();
    CHECK_INT(queues_ask(&queues, STR("t"), STR(""), false), VERDICT_START);
    CHECK(queues_known(&queues, STR("t"), STR("default")));
    CHECK(!queues_known(&queues, STR("t"), STR("q")));
    for (int i = 0; i < 1000; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        place("t", "", run, QUEUE_RUNNING);
    }
    CHECK_INT(queues.running, 1000);
    CHECK_INT(queues_ask(&queues, STR("t"), STR(""), true), VERDICT_START);
    for (int i = 0; i < 1000; i++) {
        char run[16];
        snprintf(run, sizeof(run), "r%d", i);
        queues_remove(&queues, STR("t"), str_from(run));
    }
    CHECK_INT(queues.running, 0);
    CHECK_INT(queues.count, 0);
    queues_release(&queues);
}

static void each_policy_has_its_verdict_ES_3a_ES_3b_ES_3c(void)
{
    begin();
    configure("t", "r", (struct queue_config){.policy = POLICY_REJECT, .max_running = 1});
    configure("t", "q", (struct queue_config){.policy = POLICY_QUEUE, .max_running = 1, .max_queued = 1});
    configure("t", "d", (struct queue_config){.policy = POLICY_DELAY, .max_running = 1});
    const struct {
        const char *queue;
        enum queue_verdict over;
    } rows[] = {{"r", VERDICT_REJECT}, {"q", VERDICT_QUEUE}, {"d", VERDICT_DELAY}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        CHECK_INT(queues_ask(&queues, STR("t"), str_from(rows[i].queue), false), VERDICT_START);
        place("t", rows[i].queue, rows[i].queue, QUEUE_RUNNING);
        CHECK_INT(queues_ask(&queues, STR("t"), str_from(rows[i].queue), false), rows[i].over);
        CHECK_INT(queues_ask(&queues, STR("other"), str_from(rows[i].queue), false), VERDICT_START);
    }
    place("t", "q", "w", QUEUE_WAITING);
    CHECK_INT(queues_ask(&queues, STR("t"), STR("q"), false), VERDICT_FULL);
    queues_remove(&queues, STR("t"), STR("q"));
    CHECK_INT(queues_ask(&queues, STR("t"), STR("q"), false), VERDICT_FULL); // nobody overtakes who waits
    queues_release(&queues);
}

static void the_reconciler_starts_each_run_once_ES_3d_ES_3e(void)
{
    begin();
    configure("t", "q", (struct queue_config){.policy = POLICY_QUEUE, .max_running = 2, .max_queued = 9});
    place("t", "q", "a", QUEUE_WAITING);
    place("t", "q", "bad", QUEUE_WAITING);
    place("t", "q", "b", QUEUE_WAITING);
    place("t", "q", "c", QUEUE_WAITING);
    CHECK_INT(reconcile(), 2);
    CHECK_TEXT(said, "t/a STARTED\nt/bad FAILED\nt/b STARTED\n");
    CHECK_INT(reconcile(), 0);
    CHECK_TEXT(said, "");
    place("t", "q", "a", QUEUE_NONE);
    place("t", "q", "b", QUEUE_RUNNING); // its RunStarted arrives: counted already
    CHECK_INT(reconcile(), 1);
    CHECK_TEXT(said, "t/c STARTED\n");
    queues_release(&queues);
}

static void what_is_over_or_elsewhere_is_skipped_ES_3d(void)
{
    const enum code codes[] = {E_TERMINAL, E_NOT_FOUND, E_LOCKED, E_CONFLICT};
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        begin();
        verdict_for_bad = codes[i];
        place("t", "", "bad", QUEUE_WAITING);
        place("t", "", "a", QUEUE_WAITING);
        CHECK_INT(reconcile(), 1);
        CHECK_TEXT(said, "t/bad SKIPPED\nt/a STARTED\n");
        CHECK_INT(queues_find(&queues, STR("t"), STR(""))->waiting, codes[i] == E_CONFLICT); // waits for an approval
        CHECK_INT(queues_find(&queues, STR("t"), STR(""))->running, 1);
        CHECK(!queues_find(&queues, STR("t"), STR(""))->first);
    }
    begin();
    verdict_for_bad = E_NOMEM;
    place("t", "", "bad", QUEUE_WAITING);
    CHECK_INT(reconcile(), 0);
    CHECK_TEXT(said, "t/bad FAILED\n");
    CHECK(queues_find(&queues, STR("t"), STR(""))->first); // another time
    verdict_for_bad = E_UNSUPPORTED;
    queues_release(&queues);
}

static void tenants_take_turns_and_priority_goes_before_age(void)
{
    begin();
    configure("a", "low", (struct queue_config){.policy = POLICY_QUEUE, .max_queued = 9, .priority = -1});
    configure("a", "high", (struct queue_config){.policy = POLICY_QUEUE, .max_queued = 9, .priority = 5});
    queues.running_max = 4;
    place("a", "low", "a1", QUEUE_WAITING);
    place("a", "low", "a2", QUEUE_WAITING);
    place("a", "high", "a3", QUEUE_WAITING);
    place("a", "", "a4", QUEUE_WAITING);
    place("b", "", "b1", QUEUE_WAITING);
    place("b", "", "b2", QUEUE_WAITING);
    CHECK_INT(reconcile(), 4);
    CHECK_TEXT(said, "b/b1 STARTED\na/a3 STARTED\nb/b2 STARTED\na/a4 STARTED\n");
    CHECK_INT(queues_ask(&queues, STR("c"), STR(""), false), VERDICT_QUEUE); // the service is full
    queues.running_max = 5;
    CHECK_INT(reconcile(), 1);
    CHECK_TEXT(said, "a/a1 STARTED\n");
    queues_release(&queues);
}

static void a_tenant_has_limits_of_its_own(void)
{
    begin();
    queues_tenant(&queues, STR("t"))->limits.runs_in_flight = 1;
    place("t", "x", "r1", QUEUE_RUNNING);
    CHECK_INT(queues_ask(&queues, STR("t"), STR("y"), false), VERDICT_QUEUE);
    place("t", "y", "r2", QUEUE_WAITING);
    CHECK_INT(reconcile(), 0);
    queues_remove(&queues, STR("t"), STR("r1"));
    CHECK(queues.changed);
    CHECK_INT(reconcile(), 1);
    CHECK_INT(queues_ask(&queues, STR("t"), STR("y"), true), VERDICT_QUEUE);
    queues_release(&queues);
}

static void a_paused_queue_starts_nothing(void)
{
    begin();
    configure("t", "q", (struct queue_config){.policy = POLICY_QUEUE, .max_queued = 9, .paused = true});
    CHECK_INT(queues_ask(&queues, STR("t"), STR("q"), false), VERDICT_QUEUE);
    place("t", "q", "r1", QUEUE_WAITING);
    CHECK_INT(reconcile(), 0);
    CHECK_OK(queues_configure(&queues, STR("t"), STR("q"), NULL, &err), &err);
    CHECK_INT(reconcile(), 1);
    queues_release(&queues);
}

static void runs_found_again_stand_by_age_ES_3h(void)
{
    begin();
    for (uint64_t position = 5; position > 0; position--) { // lists are newest first
        char run[8];
        snprintf(run, sizeof(run), "r%d", (int)position);
        CHECK_OK(queues_place(&queues, STR("t"), STR("q"), str_from(run), QUEUE_WAITING, position, 7, &err), &err);
    }
    place("t", "q", "new", QUEUE_WAITING);
    CHECK_OK(queues_place(&queues, STR("t"), STR("q"), STR("late"), QUEUE_WAITING, 6, 7, &err), &err);
    CHECK_INT(queue_oldest_ms(queues_find(&queues, STR("t"), STR("q"))), 7);
    CHECK_INT(reconcile(), 7);
    CHECK_TEXT(said,
               "t/r1 STARTED\nt/r2 STARTED\nt/r3 STARTED\nt/r4 STARTED\nt/r5 STARTED\nt/late STARTED\nt/new STARTED\n");
    queues_release(&queues);
}

static void a_refused_start_gives_its_place_back(void)
{
    begin();
    place("t", "", "r1", QUEUE_RUNNING);
    place("t", "", "r2", QUEUE_RUNNING);
    queues_confirm(&queues, STR("t"), STR("r1"));
    queues_refused(&queues, STR("t"), STR("r1")); // another start of the same id
    queues_refused(&queues, STR("t"), STR("r2"));
    CHECK_INT(queues.running, 1);
    queues_remove(&queues, STR("t"), STR("r1"));
    CHECK_INT(queues.running, 0); // it was the one that was left
    queues_release(&queues);
}

static void check_config(const char *text, const char *wrong)
{
    struct arena arena;
    struct json value;
    struct queue_config config = queue_config_default;
    err = (struct error){0};
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(json_parse(str_from(text), NULL, &arena, &value, &err), &err);
    enum code rc = queue_config_read(&value, &config, &err);
    CHECK_INT(rc, wrong ? E_INVALID : OK);
    if (wrong) {
        CHECK_TEXT(err.message, wrong);
    } else {
        struct json again;
        struct queue_config back = {0};
        CHECK(queue_config_write(&config, &arena, &again));
        CHECK_OK(queue_config_read(&again, &back, &err), &err);
        CHECK(back.policy == config.policy && back.max_running == config.max_running && back.paused == config.paused &&
              back.max_queued == config.max_queued && back.delay_ms == config.delay_ms &&
              back.priority == config.priority);
    }
    arena_release(&arena);
}

static void configuration_is_read_strictly(void)
{
    check_config("{}", NULL);
    check_config(
        "{\"policy\":\"DELAY\",\"maxRunning\":3,\"maxQueued\":4,\"delayMs\":5,\"priority\":-6,\"paused\":true}", NULL);
    check_config("{\"policy\":\"delay\"}", "policy: is one of REJECT, QUEUE, DELAY");
    check_config("{\"maxRunning\":-1}", "maxRunning: must be a whole number from 0 to 1000000");
    check_config("{\"maxRunning\":1.5}", "maxRunning: must be a whole number from 0 to 1000000");
    check_config("{\"max\":1}", "there is no setting \"max\"");
    check_config("{\"paused\":1}", "paused: must be true or false");
    check_config("[]", "must be an object");
}

static void numbers_of_a_shared_limit_are_given_once(void)
{
    struct shared_limit share = {0};
    uint32_t number, seen = 0;
    CHECK(shared_limit_begin(&share, 5));
    shared_limit_mark(&share, 5, 2);
    shared_limit_mark(&share, 5, 7); // of a limit that was higher
    for (int i = 0; i < 4; i++) {
        CHECK(shared_limit_pick(&share, 5, 1000 + (uint64_t)i, &number));
        CHECK(number < 5 && number != 2 && !(seen >> number & 1));
        seen |= 1u << number;
    }
    CHECK(!shared_limit_pick(&share, 5, 3, &number));
    // What is on its way to the store counts although the store does not say so yet.
    CHECK(shared_limit_begin(&share, 5));
    CHECK(shared_limit_pick(&share, 5, 0, &number));
    CHECK_INT(number, 2);
    CHECK(!shared_limit_pick(&share, 5, 0, &number));
    shared_limit_asked(&share, 4);
    CHECK(shared_limit_begin(&share, 5));
    CHECK(shared_limit_pick(&share, 5, 0, &number));
    CHECK_INT(number, 4);
    shared_limit_release(&share);
    // Each that counts without a number takes one away.
    CHECK(shared_limit_begin(&share, 3));
    share.over = 2;
    CHECK(shared_limit_pick(&share, 3, 77, &number));
    CHECK_INT(number, 0);
    CHECK(!shared_limit_pick(&share, 3, 77, &number));
    share.over = 3;
    CHECK(!shared_limit_pick(&share, 3, 77, &number));
    shared_limit_release(&share);
}

static void a_queue_that_is_not_listed_any_more_is_as_if_it_had_never_been(void)
{
    begin();
    configure("t", "a", (struct queue_config){.policy = POLICY_REJECT, .max_running = 1});
    configure("t", "b", (struct queue_config){.policy = POLICY_REJECT, .max_running = 1});
    queues_list_begin(&queues);
    configure("t", "b", (struct queue_config){.policy = POLICY_REJECT, .max_running = 2});
    CHECK_OK(queues_list_end(&queues, &err), &err);
    CHECK(!queues_known(&queues, STR("t"), STR("a")));
    CHECK(queues_known(&queues, STR("t"), STR("b")));
    CHECK_INT(queues_config(&queues, STR("t"), STR("b")).max_running, 2);
    queues_release(&queues);
}

static void runs_of_other_engines_count_and_those_that_wait_there_are_not_overtaken(void)
{
    begin();
    configure("t", "q", (struct queue_config){.policy = POLICY_QUEUE, .max_running = 2, .max_queued = 3});
    configure("t", "r", (struct queue_config){.policy = POLICY_REJECT, .max_running = 1});
    struct run_queue *q = queues_find(&queues, STR("t"), STR("q")), *r = queues_find(&queues, STR("t"), STR("r"));
    CHECK(q->share.unsettled && r->share.unsettled);
    q->share.elsewhere = 1;
    CHECK_INT(queues_ask(&queues, STR("t"), STR("q"), false), VERDICT_START);
    q->share.elsewhere = 2;
    CHECK_INT(queues_ask(&queues, STR("t"), STR("q"), false), VERDICT_QUEUE);
    r->share.elsewhere = 1;
    CHECK_INT(queues_ask(&queues, STR("t"), STR("r"), false), VERDICT_REJECT);
    place("t", "q", "a", QUEUE_WAITING);
    CHECK_INT(reconcile(), 0);
    q->share.elsewhere = 1;
    q->share.waiting = 2;
    q->share.oldest_ms = 500;
    CHECK_INT(queues_ask(&queues, STR("t"), STR("q"), false), VERDICT_FULL);
    q->share.yields = true; // it is somebody else's turn
    CHECK_INT(reconcile(), 0);
    q->share.yields = false;
    CHECK_INT(reconcile(), 1);
    // The limit of a tenant.
    struct queue_tenant *tenant = queues_tenant(&queues, STR("t"));
    queues_limit(&queues, tenant, &(struct tenant_limits){.runs_in_flight = 4});
    CHECK(tenant->share.unsettled);
    tenant->share.elsewhere = 2;
    CHECK_INT(queues_ask(&queues, STR("t"), STR(""), false), VERDICT_START);
    tenant->share.elsewhere = 3;
    CHECK_INT(queues_ask(&queues, STR("t"), STR(""), false), VERDICT_QUEUE);
    queues_release(&queues);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(an_unknown_queue_has_no_limit),
        TEST(each_policy_has_its_verdict_ES_3a_ES_3b_ES_3c),
        TEST(the_reconciler_starts_each_run_once_ES_3d_ES_3e),
        TEST(what_is_over_or_elsewhere_is_skipped_ES_3d),
        TEST(tenants_take_turns_and_priority_goes_before_age),
        TEST(a_tenant_has_limits_of_its_own),
        TEST(a_paused_queue_starts_nothing),
        TEST(runs_found_again_stand_by_age_ES_3h),
        TEST(a_refused_start_gives_its_place_back),
        TEST(configuration_is_read_strictly),
        TEST(numbers_of_a_shared_limit_are_given_once),
        TEST(a_queue_that_is_not_listed_any_more_is_as_if_it_had_never_been),
        TEST(runs_of_other_engines_count_and_those_that_wait_there_are_not_overtaken),
    };
    return test_main("service_queue", tests, ARRAY_COUNT(tests), argc, argv);
}
