// Which process it is: numbers are used again, and again after the next start of the machine.
#include "harness/test.h"
#include "os/os.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char self[OS_IDENTITY_SIZE];
static struct str pid, start, boot, space;

static void look(void)
{
    struct str rest;
    os_identity(self);
    pid = str_cut(str_from(self), '-', &rest);
    start = str_cut(rest, '-', &rest);
    boot = str_cut(rest, '-', &rest);
    space = rest;
}

static enum liveness ask(struct str a, struct str b, const char *c, const char *d)
{
    char text[256];
    snprintf(text, sizeof(text), "%.*s-%.*s-%s-%s", STR_ARG(a), STR_ARG(b), c, d);
    return os_identity_alive(str_from(text));
}

static void this_process_lives(void)
{
    look();
    CHECK(boot.len == BOOT_SIZE - 1 && space.len > 0);
    CHECK_INT(os_identity_alive(str_from(self)), LIVE_YES);
}

static void a_number_of_an_earlier_boot_is_never_taken_for_living(void)
{
    look();
    char text[64];
    snprintf(text, sizeof(text), "%.*s", STR_ARG(space));
    CHECK_INT(ask(pid, start, "00000000.0000.4000.8000.000000000000", text), LIVE_NO);
    CHECK_INT(ask(pid, start, "", text), LIVE_YES); // not known then
}

static void a_number_of_another_namespace_is_unknown(void)
{
    look();
    char text[64];
    snprintf(text, sizeof(text), "%.*s", STR_ARG(boot));
    CHECK_INT(ask(pid, start, text, "1"), LIVE_UNKNOWN);
    CHECK_INT(ask(pid, start, text, ""), LIVE_YES);
}

static void a_number_that_is_used_again_is_another_process(void)
{
    look();
    CHECK_INT(ask(pid, STR("1"), "", ""), LIVE_NO);
}

static void a_process_that_has_ended_is_dead_also_before_it_is_reaped(void)
{
    char text[64];
    siginfo_t info;
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(child > 0);
    struct process_stat stat;
    CHECK(os_process_stat(child, &stat));
    snprintf(text, sizeof(text), "%d-%llu", (int)child, (unsigned long long)stat.start);
    CHECK_INT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK_INT(os_identity_alive(str_from(text)), LIVE_NO);
    CHECK_INT(waitpid(child, NULL, 0), child);
    CHECK_INT(os_identity_alive(str_from(text)), LIVE_NO);
}

static void what_former_versions_wrote_is_understood(void)
{
    char text[64];
    look();
    snprintf(text, sizeof(text), "%.*s-%.*s", STR_ARG(pid), STR_ARG(start));
    CHECK_INT(os_identity_alive(str_from(text)), LIVE_YES);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(pid));
    CHECK_INT(os_identity_alive(str_from(text)), LIVE_UNKNOWN); // one of that number lives
    CHECK_INT(os_identity_alive(STR("")), LIVE_UNKNOWN);
    CHECK_INT(os_identity_alive(STR("somebody")), LIVE_UNKNOWN);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(this_process_lives),
        TEST(a_number_of_an_earlier_boot_is_never_taken_for_living),
        TEST(a_number_of_another_namespace_is_unknown),
        TEST(a_number_that_is_used_again_is_another_process),
        TEST(a_process_that_has_ended_is_dead_also_before_it_is_reaped),
        TEST(what_former_versions_wrote_is_understood),
    };
    return test_main("os_process", tests, ARRAY_COUNT(tests), argc, argv);
}
