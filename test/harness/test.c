#include "harness/internal.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_DEFAULT = 300, STATUS_FAILED = 1, STATUS_SKIPPED = 77 };

enum verdict { PASSED = 1, FAILED, SKIPPED };

// A message fits a pipe's buffer and is one write, so the child never waits for its parent.
struct report {
    char text[4000];
};

static int report_fd = -1;

static _Noreturn void finish(int status, const char *text)
{
    size_t len = strnlen(text, sizeof(struct report) - 1);
    ssize_t ignored = write(report_fd, text, len);
    (void)ignored;
    _exit(status);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    struct report report;
    int used = snprintf(report.text, sizeof(report.text), "%s:%d: ", file, line);
    size_t at = used > 0 ? (size_t)used : 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.text + at, sizeof(report.text) - at, format, arguments);
    va_end(arguments);
    finish(STATUS_FAILED, report.text);
}

void test_skip(const char *format, ...)
{
    struct report report;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.text, sizeof(report.text), format, arguments);
    va_end(arguments);
    finish(STATUS_SKIPPED, report.text);
}

void test_check_int(const char *file, int line, const char *what, int64_t got, int64_t want)
{
    if (got != want) test_fail(file, line, "%s is %" PRId64 ", not %" PRId64, what, got, want);
}

// Enough of two strings to see where they part.
void test_check_str(const char *file, int line, const char *what, struct str got, struct str want)
{
    enum { SHOWN = 400, BEFORE = 40 };
    if (str_eq(got, want)) return;
    size_t same = 0;
    while (same < got.len && same < want.len && got.ptr[same] == want.ptr[same]) same++;
    size_t from = same > BEFORE ? same - BEFORE : 0;
    struct str got_shown = str_slice(got, from, from + SHOWN);
    struct str want_shown = str_slice(want, from, from + SHOWN);
    test_fail(file, line, "%s differs at byte %zu of %zu (want %zu)\n got: %.*s\nwant: %.*s", what, same, got.len,
              want.len, STR_ARG(got_shown), STR_ARG(want_shown));
}

void test_check_ok(const char *file, int line, const char *what, int rc, const struct error *err)
{
    if (rc == OK) return;
    const char *message = err && err->code ? err->message : "no message";
    test_fail(file, line, "%s is %s: %s (%" PRIu32 ":%" PRIu32 ")", what, code_name((enum code)rc), message,
              err ? err->line : 0, err ? err->column : 0);
}

static void no_core_file(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

void test_aborts(void (*run)(void *context), void *context)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0) dup2(null, STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        run(context);
        _exit(0);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        test_fail(__FILE__, __LINE__, "expected an abort, got wait status %d", status);
}

static int time_limit_ms(void)
{
    int64_t seconds = 0;
    const char *text = getenv("CAIRN_TEST_SECONDS");
    if (!text || !str_int64(str_from(text), &seconds) || seconds < 1 || seconds > 100000) seconds = SECONDS_DEFAULT;
    return (int)seconds * 1000;
}

// Waits for the child, kills it at the time limit. Returns false in that case.
static bool wait_for(pid_t pid, int *status)
{
    bool in_time = true;
    int fd = pidfd_open(pid, 0);
    if (fd >= 0) {
        struct pollfd watch = {.fd = fd, .events = POLLIN};
        int rc;
        do {
            rc = poll(&watch, 1, time_limit_ms());
        } while (rc < 0 && errno == EINTR);
        in_time = rc != 0;
        close(fd);
    }
    // Whatever the test started and left behind goes with it.
    if (!in_time) kill(pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
    kill(-pid, SIGKILL);
    return in_time;
}

static _Noreturn void run_child(const struct test *test, int fd)
{
    setpgid(0, 0);
    no_core_file();
    report_fd = fd;
    dup2(STDERR_FILENO, STDOUT_FILENO);
    test->run();
    exit(0); // not _exit: the leak checker reports from there
}

static enum verdict judge(int status, bool in_time, struct report *report)
{
    if (!in_time) {
        snprintf(report->text, sizeof(report->text), "took longer than %d s", time_limit_ms() / 1000);
        return FAILED;
    }
    if (WIFSIGNALED(status)) {
        snprintf(report->text, sizeof(report->text), "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        return FAILED;
    }
    int code = WEXITSTATUS(status);
    if (code == 0) return PASSED;
    if (code == STATUS_SKIPPED) return SKIPPED;
    if (!report->text[0]) snprintf(report->text, sizeof(report->text), "exit status %d", code);
    return FAILED;
}

static enum verdict run_test(const struct test *test, struct report *report)
{
    int fds[2];
    *report = (struct report){{0}};
    if (pipe2(fds, O_CLOEXEC) < 0) return FAILED;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        run_child(test, fds[1]);
    }
    close(fds[1]);
    int status = 0;
    bool in_time = pid > 0 && wait_for(pid, &status);
    // A process that outlived the test may hold the other end: never wait for its end of file.
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    ssize_t got = read(fds[0], report->text, sizeof(report->text) - 1);
    report->text[got > 0 ? got : 0] = '\0';
    close(fds[0]);
    test_remove_tree(test_dir_path);
    return judge(status, in_time, report);
}

// The first line goes with the verdict; the rest follows as comments.
static void print_report(const char *word, const char *name, const struct report *report)
{
    struct str rest = str_from(report->text);
    struct str line = str_cut(rest, '\n', &rest);
    printf("%s %s: %.*s\n", word, name, STR_ARG(line));
    while (rest.len) {
        line = str_cut(rest, '\n', &rest);
        printf("#   %.*s\n", STR_ARG(line));
    }
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    if (argc < 2) return true;
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i])) return true;
    }
    return false;
}

static void name_dir(const char *program, size_t index)
{
    const char *base = getenv("TMPDIR");
    if (!base || base[0] != '/') base = "/tmp";
    int len =
        snprintf(test_dir_path, sizeof(test_dir_path), "%s/cairn-%s-%ld-%zu", base, program, (long)getpid(), index);
    INVARIANT(len > 0 && (size_t)len < sizeof(test_dir_path));
}

int test_main(const char *program, const struct test *tests, size_t count, int argc, char **argv)
{
    size_t passed = 0, failed = 0, skipped = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(tests[i].name, argc, argv)) continue;
        name_dir(program, i);
        struct report report;
        switch (run_test(&tests[i], &report)) {
        case PASSED:
            passed++;
            printf("ok %s\n", tests[i].name);
            break;
        case FAILED:
            failed++;
            print_report("not ok", tests[i].name, &report);
            break;
        case SKIPPED:
            skipped++;
            print_report("skip", tests[i].name, &report);
            break;
        }
    }
    printf("# %s: %zu passed, %zu failed, %zu skipped\n", program, passed, failed, skipped);
    return failed ? 1 : 0;
}
