// Many at once: the limit of processes, 200 children, exactly one result per ticket under a storm of starts and cancels, and
// what one start costs.
#include "tool_kit.h"

static void sixty_four_run_in_parallel(void)
{
    kit_open(64);
    struct moment_in_time before = os_now();
    // Each waits until all have begun: fewer at once would never end.
    char script[400];
    snprintf(script, sizeof(script),
             "touch %s/$CAIRN_STEP_ID; while [ $(ls %s | wc -l) -lt 64 ]; do sleep 0.05; done; echo $CAIRN_STEP_ID",
             test_dir(), test_dir());
    for (uint64_t i = 1; i <= 64; i++) {
        char step[16];
        snprintf(step, sizeof(step), "s%d", (int)i);
        struct kit_request r = kit_request(i, (const char *const[]){"sh", "-c", script, NULL});
        r.request.step = str_from(step);
        kit_start(&r);
    }
    kit_wait_total(64);
    for (uint64_t i = 1; i <= 64; i++) {
        char step[16];
        snprintf(step, sizeof(step), "s%d", (int)i);
        CHECK_STR(kit.results[i].output, str_from(step));
    }
    CHECK(os_now().mono_ms - before.mono_ms < 40000);
    kit_close();
}

static void two_hundred_children_at_once(void)
{
    kit_open(200);
    for (uint64_t i = 1; i <= 200; i++) kit_start_sh(i, "exec sleep 88000021");
    kit_await_count("88000021", 200);
    for (uint64_t i = 1; i <= 200; i++) kit.tools->ops->cancel(kit.tools, i, 1000);
    kit_wait_total(200);
    for (uint64_t i = 1; i <= 200; i++) kit_check_fault(&kit.results[i], "CANCELLED", false);
    CHECK_INT(kit_count("88000021"), 0);
    kit_close();
}

static void no_more_than_process_max_run_and_the_rest_wait_in_order(void)
{
    kit_open(3);
    char script[600];
    // Counts those inside; more than three would be seen by somebody.
    snprintf(script, sizeof(script),
             "cd %s; mkdir in.$CAIRN_STEP_ID; echo $CAIRN_STEP_ID >> order; ls -d in.* | wc -l; sleep 0.02; rmdir "
             "in.$CAIRN_STEP_ID",
             test_dir());
    for (uint64_t i = 1; i <= 30; i++) {
        char step[16];
        snprintf(step, sizeof(step), "%02d", (int)i);
        struct kit_request r = kit_request(i, (const char *const[]){"sh", "-c", script, NULL});
        r.request.step = str_from(step);
        kit_start(&r);
    }
    kit_wait_total(30);
    for (uint64_t i = 1; i <= 30; i++) {
        int64_t inside = 0;
        CHECK(str_int64(kit.results[i].output, &inside));
        CHECK(inside >= 1 && inside <= 3);
    }
    // First in, first out: number n starts among the last three of the first n + 2.
    char path[300];
    snprintf(path, sizeof(path), "%s/order", test_dir());
    struct str rest = test_read_file(path);
    for (int64_t place = 1; rest.len; place++) {
        int64_t number = 0;
        CHECK(str_int64(str_cut(rest, '\n', &rest), &number));
        CHECK(number >= place - 2 && number <= place + 2);
    }
    kit_close();
}

enum { STORM_THREADS = 4, STORM_EACH = 400 };

static void *storm_thread(void *context)
{
    uint64_t base = *(const uint64_t *)context;
    unsigned seed = (unsigned)base;
    for (uint64_t i = 0; i < STORM_EACH; i++) {
        uint64_t ticket = base + i;
        static const char *const scripts[] = {"true", "exit 1", "exec sleep 88000022",
                                              "setsid sleep 88000022 & exit 0"};
        unsigned pick = (unsigned)rand_r(&seed) % 4;
        kit_start_sh(ticket, scripts[pick]);
        // Cancel some at once, some twice, some later; sleepers always.
        for (unsigned n = (unsigned)rand_r(&seed) % 3; n > 0; n--)
            kit.tools->ops->cancel(kit.tools, ticket - (unsigned)rand_r(&seed) % 3,
                                   (int64_t)((unsigned)rand_r(&seed) % 3) * 100);
        if (pick == 2) kit.tools->ops->cancel(kit.tools, ticket, 10);
    }
    return NULL;
}

static void each_ticket_is_delivered_exactly_once_under_a_storm(void)
{
    kit_open(16);
    pthread_t threads[STORM_THREADS];
    uint64_t bases[STORM_THREADS];
    for (size_t i = 0; i < STORM_THREADS; i++) {
        bases[i] = 1000 + i * 1000;
        CHECK_INT(pthread_create(&threads[i], NULL, storm_thread, &bases[i]), 0);
    }
    for (size_t i = 0; i < STORM_THREADS; i++) pthread_join(threads[i], NULL);
    kit_wait_total(STORM_THREADS * STORM_EACH);
    for (size_t i = 0; i < STORM_THREADS; i++) {
        for (uint64_t n = 0; n < STORM_EACH; n++) CHECK_INT(kit.delivered[bases[i] + n], 1);
    }
    CHECK_INT(kit.total, STORM_THREADS * STORM_EACH);
    CHECK_INT(kit_count("88000022"), 0);
    kit_close();
}

static void close_in_the_middle_of_a_storm(void)
{
    kit_open(16);
    pthread_t thread;
    uint64_t base = 1000;
    CHECK_INT(pthread_create(&thread, NULL, storm_thread, &base), 0);
    pthread_join(thread, NULL);
    kit.tools->ops->close(kit.tools);
    for (uint64_t i = 0; i < STORM_EACH; i++) CHECK(kit.delivered[base + i] <= 1);
    for (size_t i = 0; i < KIT_TICKETS; i++) tool_result_free(&kit.results[i]);
    buf_release(&kit.lines);
    CHECK_INT(kit_count("88000022"), 0);
}

static void files_are_not_leaked(void)
{
    kit_open(8);
    CHECK(kit_sh(1, "true")->ok);
    int before = dup(0);
    close(before);
    for (uint64_t i = 2; i < 200; i++) kit_start_sh(i, i % 2 ? "true" : "/no/such/program");
    struct kit_request r = kit_request(200, (const char *const[]){"/no/such/program", NULL});
    kit_start(&r);
    kit_wait_total(200);
    int after = dup(0);
    close(after);
    CHECK_INT(after, before);
    kit_close();
}

static void one_start_costs_less_than_a_few_milliseconds(void)
{
    enum { COUNT = 500 };
    kit_open(1);
    int64_t before = os_mono_us();
    for (uint64_t i = 1; i <= COUNT; i++) {
        struct kit_request r = kit_request(i, (const char *const[]){"true", NULL});
        CHECK(kit_run(&r)->ok);
    }
    int64_t each = (os_mono_us() - before) / COUNT;
    fprintf(stderr, "# one `true`, start to result, one after the other: %d us\n", (int)each);
    kit_close();
    CHECK(each < 50000);
}

static void throughput_of_small_steps(void)
{
    enum { COUNT = 1000 };
    kit_open(16);
    int64_t before = os_mono_us();
    for (uint64_t i = 1; i <= COUNT; i++) {
        struct kit_request r = kit_request(i, (const char *const[]){"true", NULL});
        kit_start(&r);
    }
    kit_wait_total(COUNT);
    int64_t each = (os_mono_us() - before) / COUNT;
    fprintf(stderr, "# one `true`, 16 at once: %d us\n", (int)each);
    kit_close();
    CHECK(each < 50000);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(sixty_four_run_in_parallel),
        TEST(two_hundred_children_at_once),
        TEST(no_more_than_process_max_run_and_the_rest_wait_in_order),
        TEST(each_ticket_is_delivered_exactly_once_under_a_storm),
        TEST(close_in_the_middle_of_a_storm),
        TEST(files_are_not_leaked),
        TEST(one_start_costs_less_than_a_few_milliseconds),
        TEST(throughput_of_small_steps),
    };
    return kit_main("tool_storm", tests, ARRAY_COUNT(tests), argc, argv);
}
