// The whole tree of a step is gone when its result comes, however it hid (X8, I26); timeouts and cancels; orphans of a
// killed engine (X12).
#include "tool_kit.h"

static const char *self_path(void)
{
    static char path[512];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    CHECK(len > 0);
    path[len] = '\0';
    return path;
}

static void start_helper(uint64_t ticket, const char *mode, const char *needle)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){self_path(), "--helper", mode, needle, NULL});
    kit_start(&r);
}

enum { NEEDLE_BASE = 77000000 };
static size_t survivors;

// On the tool thread, at the moment of delivery.
static void count_survivors(struct kit *k, struct tool_result *result)
{
    char needle[32];
    (void)k;
    snprintf(needle, sizeof(needle), "%d", NEEDLE_BASE + (int)result->ticket);
    survivors += kit_count(needle);
}

static void nothing_survives_its_step_X8(void)
{
    enum { ROUNDS = 100 };
    kit.on_result = count_survivors;
    kit_open(16);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        char needle[32];
        snprintf(needle, sizeof(needle), "%d", NEEDLE_BASE + (int)i);
        start_helper(i, "zoo", needle);
    }
    kit_wait_total(ROUNDS);
    for (uint64_t i = 1; i <= ROUNDS; i++) CHECK_STR(kit.results[i].fault.message, STR(""));
    CHECK_INT(survivors, 0);
    // The ones without an environment go with the last step at the latest.
    for (int i = 1; i <= ROUNDS; i++) {
        char needle[32];
        snprintf(needle, sizeof(needle), "%d", NEEDLE_BASE + i);
        CHECK_INT(kit_count(needle), 0);
    }
    kit_close();
}

static void a_process_that_never_keeps_its_pid_is_caught_X8(void)
{
    kit.on_result = count_survivors;
    kit_open(4);
    for (uint64_t i = 1; i <= 5; i++) {
        char needle[32];
        snprintf(needle, sizeof(needle), "%d", NEEDLE_BASE + (int)i);
        start_helper(i, "hopper", needle);
    }
    kit_wait_total(5);
    CHECK_INT(survivors, 0);
    kit_close();
}

static void a_step_does_not_touch_the_leftovers_of_another(void)
{
    kit_open(4);
    kit_start_sh(1, "setsid sleep 88000001 & exec sleep 88000001");
    kit_await_count("88000001", 2);
    CHECK(kit_sh(2, "setsid sleep 88000002 & sleep 88000002 & sleep 0.05")->ok);
    CHECK_INT(kit_count("88000002"), 0);
    CHECK_INT(kit_count("88000001"), 2);
    kit.tools->ops->cancel(kit.tools, 1, 1000);
    kit_wait(1);
    CHECK_INT(kit_count("88000001"), 0);
    kit_close();
}

static void children_of_the_embedding_program_are_left_alone(void)
{
    pid_t child = fork();
    if (child == 0) kit_sleep();
    kit_open(4);
    CHECK(kit_sh(1, "setsid sleep 88000003 &")->ok);
    CHECK_INT(kill(child, 0), 0);
    kill(child, SIGKILL);
    siginfo_t info = {0};
    CHECK_INT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK(kit_sh(2, "setsid sleep 88000003 &")->ok);
    CHECK_INT(waitpid(child, NULL, 0), child); // its status was not taken away
    kit_close();
}

static void timeout_ends_with_term_if_the_step_listens(void)
{
    kit_open(4);
    struct kit_request r = kit_request(
        1,
        (const char *const[]){"sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done", NULL});
    r.request.timeout_ms = 300;
    struct tool_result *result = kit_run(&r);
    kit_check_fault(result, "TIMEOUT", true);
    CHECK_STR(result->fault.message, STR("timed out after 300ms (its field timeout)"));
    CHECK_STR(result->fault.category, STR("timeout"));
    CHECK_STR(result->output, STR("up\nbye"));
    CHECK(result->duration_ms >= 300);
    kit_close();
}

static void timeout_kills_after_two_seconds_of_grace(void)
{
    kit_open(4);
    struct kit_request r = kit_request(
        1,
        (const char *const[]){"sh", "-c", "trap '' TERM; setsid sleep 88000004 & while :; do sleep 0.01; done", NULL});
    r.request.timeout_ms = 100;
    struct tool_result *result = kit_run(&r);
    kit_check_fault(result, "TIMEOUT", true);
    CHECK(result->duration_ms >= 2100);
    CHECK_INT(kit_count("88000004"), 0);
    kit_close();
}

static void a_stopped_step_hears_its_timeout(void)
{
    kit_open(4);
    struct kit_request r = kit_request(1, (const char *const[]){"sh", "-c", "kill -STOP $$", NULL});
    r.request.timeout_ms = 100;
    struct tool_result *result = kit_run(&r);
    kit_check_fault(result, "TIMEOUT", true);
    CHECK(result->duration_ms < 2000);
    kit_close();
}

static void cancel_gives_its_grace_then_kills_I26(void)
{
    kit_open(4);
    kit_start_sh(1, "trap 'sleep 0.1; echo tidy; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    kit_start_sh(2, "trap '' TERM; setsid sleep 88000005 & while :; do sleep 0.01; done");
    kit_start_sh(3, "trap '' TERM; exec sleep 88000005");
    kit_await_count("88000005", 2);
    kit_await_line("out 1 up");
    kit.tools->ops->cancel(kit.tools, 1, 5000);
    kit.tools->ops->cancel(kit.tools, 2, 300);
    kit.tools->ops->cancel(kit.tools, 3, 0);
    kit.tools->ops->cancel(kit.tools, 4711, 0); // nobody
    kit_wait_total(3);
    for (uint64_t i = 1; i <= 3; i++) kit_check_fault(&kit.results[i], "CANCELLED", false);
    CHECK_STR(kit.results[1].output, STR("up\ntidy"));
    CHECK(kit.results[2].duration_ms >= 300);
    CHECK(kit.results[3].duration_ms < kit.results[2].duration_ms);
    CHECK_INT(kit_count("88000005"), 0);
    kit_close();
}

static void a_second_cancel_can_shorten_the_grace(void)
{
    kit_open(4);
    kit_start_sh(1, "trap '' TERM; exec sleep 88000006");
    kit_await_count("88000006", 1);
    kit.tools->ops->cancel(kit.tools, 1, 1000000);
    kit.tools->ops->cancel(kit.tools, 1, 0);
    kit_check_fault(kit_wait(1), "CANCELLED", false);
    kit_close();
}

static void a_waiting_request_is_cancelled_without_a_start(void)
{
    kit_open(1);
    kit_start_sh(1, "exec sleep 88000007");
    char flag[256], script[300];
    snprintf(flag, sizeof(flag), "%s/started", test_dir());
    snprintf(script, sizeof(script), "touch %s; echo never", flag);
    kit_start_sh(2, script);
    kit_await_count("88000007", 1);
    kit.tools->ops->cancel(kit.tools, 2, 1000);
    struct tool_result *result = kit_wait(2);
    kit_check_fault(result, "CANCELLED", false);
    CHECK_STR(result->output, STR(""));
    CHECK_INT(result->duration_ms, 0);
    CHECK(access(flag, F_OK) != 0);
    CHECK_INT(kit.delivered[1], 0);
    kit_close();
    CHECK_INT(kit_count("88000007"), 0);
}

static void close_kills_everything_and_delivers_nothing(void)
{
    kit_open(2);
    kit_start_sh(1, "trap '' TERM; setsid sleep 88000008 & sleep 88000008 & wait; sleep 88000008");
    kit_start_sh(2, "exec sleep 88000008");
    kit_start_sh(3, "exec sleep 88000008");
    kit_await_count("88000008", 3);
    kit.tools->ops->close(kit.tools);
    CHECK_INT(kit_count("88000008"), 0);
    CHECK_INT(kit.total, 0);
    buf_release(&kit.lines);
}

// A process that plays the engine: opens tools with `mark` and starts two steps, each a tree of three sleepers.
static pid_t start_engine(const char *mark, const char *needle)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    char script[300];
    snprintf(script, sizeof(script), "setsid sleep %s & sleep %s & exec sleep %s", needle, needle, needle);
    kit_open_as(mark, 16);
    const struct str runs[] = {STR("run-1"), STR("run:2")};
    for (uint64_t i = 0; i < ARRAY_COUNT(runs); i++) {
        struct kit_request r = kit_request(i + 1, (const char *const[]){"sh", "-c", script, NULL});
        r.request.run = runs[i];
        kit_start(&r);
    }
    kit_sleep();
}

static void kill_engine(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static void orphans_of_a_killed_engine_are_killed_X12(void)
{
    pid_t dead = start_engine("mark-a", "88000011");
    pid_t other = start_engine("mark-b", "88000012");
    kit_open_as("mark-a", 4); // this process: subreaper, same store, own children
    kit_start_sh(1, "setsid sleep 88000013 & exec sleep 88000013");
    kit_await_count("88000011", 6);
    kit_await_count("88000012", 6);
    kit_await_count("88000013", 2);
    kill_engine(dead);
    kit_await_count("88000011", 4); // the main processes have died with it
    CHECK_INT(kit_kill_orphans("mark-a", "run-1", "nobody"), 0);
    CHECK_INT(kit_kill_orphans("mark-a", "run", ""), 0);
    CHECK_INT(kit_kill_orphans("mark", "", ""), 0);
    CHECK_INT(kit_kill_orphans("mark-a", "run:2", "build"), 2);
    CHECK_INT(kit_count("88000011"), 2);
    CHECK_INT(kit_kill_orphans("mark-a", "", ""), 2);
    CHECK_INT(kit_count("88000011"), 0);
    CHECK_INT(kit_kill_orphans("mark-a", "", ""), 0);
    CHECK_INT(kit_count("88000012"), 6);
    CHECK_INT(kit_count("88000013"), 2);
    kill_engine(other);
    CHECK_INT(kit_kill_orphans("mark-b", "", "") >= 4, 1);
    CHECK_INT(kit_count("88000012"), 0);
    kit_close();
    CHECK_INT(kit_count("88000013"), 0);
}

static void orphans_take_unmarked_members_of_their_group_along_X12(void)
{
    pid_t engine = fork();
    if (engine == 0) {
        kit_open_as("mark-c", 4);
        kit_start_sh(1, "sleep 88000014 & env -i sleep 88000014 & exec sleep 88000014");
        kit_sleep();
    }
    kit_await_count("88000014", 3);
    kill_engine(engine);
    kit_await_count("88000014", 2);
    CHECK_INT(kit_kill_orphans("mark-c", "", ""), 2);
    CHECK_INT(kit_count("88000014"), 0);
}

static pid_t start_marked(char *const *argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CAIRN_MARK", "mark-d:run-1:build:1:1:1-1", 1);
        execvp(argv[0], argv);
        _exit(99);
    }
    return pid;
}

static void an_engine_inside_a_step_does_not_kill_itself(void)
{
    char name[] = "sleep", number[] = "88000015", helper[] = "--helper", mode[] = "orphans", mark[] = "mark-d",
         path[512];
    snprintf(path, sizeof(path), "%s", self_path());
    pid_t sleeper = start_marked((char *const[]){name, number, NULL});
    kit_await_count(number, 1);
    pid_t inner = start_marked((char *const[]){path, helper, mode, mark, NULL});
    int status = 0;
    CHECK_INT(waitpid(inner, &status, 0), inner);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 1); // the sleeper, and nobody of its own
    CHECK_INT(waitpid(sleeper, &status, 0), sleeper);
    CHECK(WIFSIGNALED(status));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nothing_survives_its_step_X8),
        TEST(a_process_that_never_keeps_its_pid_is_caught_X8),
        TEST(a_step_does_not_touch_the_leftovers_of_another),
        TEST(children_of_the_embedding_program_are_left_alone),
        TEST(timeout_ends_with_term_if_the_step_listens),
        TEST(timeout_kills_after_two_seconds_of_grace),
        TEST(a_stopped_step_hears_its_timeout),
        TEST(cancel_gives_its_grace_then_kills_I26),
        TEST(a_second_cancel_can_shorten_the_grace),
        TEST(a_waiting_request_is_cancelled_without_a_start),
        TEST(close_kills_everything_and_delivers_nothing),
        TEST(orphans_of_a_killed_engine_are_killed_X12),
        TEST(orphans_take_unmarked_members_of_their_group_along_X12),
        TEST(an_engine_inside_a_step_does_not_kill_itself),
    };
    return kit_main("tool_tree", tests, ARRAY_COUNT(tests), argc, argv);
}
