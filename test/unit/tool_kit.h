// What the tests of the tool module share: tools with a collector of results, requests in one line, a look at the processes
// of the machine, and a helper program (this same binary, started as `PROGRAM --helper MODE ...`) that misbehaves on demand.
#ifndef CAIRN_TEST_UNIT_TOOL_KIT_H
#define CAIRN_TEST_UNIT_TOOL_KIT_H

#include "harness/test.h"
#include "tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KIT_TICKETS = 20000, KIT_ARGS = 64, KIT_OUTPUT_MAX = 1 << 20 };

struct kit {
    struct tools *tools;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tool_result results[KIT_TICKETS]; // by ticket
    unsigned delivered[KIT_TICKETS];
    size_t total;
    struct buf lines;                                               // live output: "out 1 text\n"
    void (*on_result)(struct kit *kit, struct tool_result *result); // on the tool thread; may be NULL
};

static struct kit kit = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

UNUSED static void kit_deliver(void *context, struct tool_result *result)
{
    struct kit *k = context;
    if (k->on_result) k->on_result(k, result);
    pthread_mutex_lock(&k->mutex);
    CHECK(result->ticket < KIT_TICKETS);
    k->delivered[result->ticket]++;
    k->results[result->ticket] = *result;
    k->total++;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->mutex);
}

UNUSED static void kit_line(void *context, uint64_t ticket, bool is_stderr, struct str line)
{
    struct kit *k = context;
    pthread_mutex_lock(&k->mutex);
    buf_printf(&k->lines, "%s %d %.*s\n", is_stderr ? "err" : "out", (int)ticket, STR_ARG(line));
    pthread_mutex_unlock(&k->mutex);
}

UNUSED static void kit_open_with(const char *mark, uint32_t process_max, const struct tool_confinement *confinement,
                                 const struct tool_secrets *secrets)
{
    struct error err = {0};
    buf_init(&kit.lines, 16 << 20);
    struct tool_options options = {.mark = mark,
                                   .process_max = process_max,
                                   .deliver = kit_deliver,
                                   .output = kit_line,
                                   .context = &kit,
                                   .confinement = confinement,
                                   .secrets = secrets};
    CHECK_OK(tools_open(&options, &kit.tools, &err), &err);
}

UNUSED static void kit_open_as(const char *mark, uint32_t process_max)
{
    kit_open_with(mark, process_max, NULL, NULL);
}

UNUSED static void kit_open(uint32_t process_max)
{
    kit_open_as("testmark", process_max);
}

UNUSED static void kit_close(void)
{
    kit.tools->ops->close(kit.tools);
    for (size_t i = 0; i < KIT_TICKETS; i++) tool_result_free(&kit.results[i]);
    buf_release(&kit.lines);
}

struct kit_request {
    struct tool_request request;
    struct str argv[KIT_ARGS];
};

// A request for `argv` (ends with NULL).
UNUSED static struct kit_request kit_request(uint64_t ticket, const char *const *argv)
{
    struct kit_request r = {.request = {.ticket = ticket,
                                        .run = STR("run-1"),
                                        .step = STR("build"),
                                        .logical = 2,
                                        .engine = 3,
                                        .output_max = KIT_OUTPUT_MAX}};
    while (argv[r.request.argc] && r.request.argc < KIT_ARGS) {
        r.argv[r.request.argc] = str_from(argv[r.request.argc]);
        r.request.argc++;
    }
    return r;
}

UNUSED static void kit_start(struct kit_request *r)
{
    struct error err = {0};
    r->request.argv = r->argv;
    CHECK_OK(kit.tools->ops->start(kit.tools, &r->request, &err), &err);
}

UNUSED static void kit_start_sh(uint64_t ticket, const char *script)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){"sh", "-c", script, NULL});
    kit_start(&r);
}

UNUSED static struct tool_result *kit_wait(uint64_t ticket)
{
    pthread_mutex_lock(&kit.mutex);
    while (!kit.delivered[ticket]) pthread_cond_wait(&kit.changed, &kit.mutex);
    pthread_mutex_unlock(&kit.mutex);
    return &kit.results[ticket];
}

UNUSED static void kit_wait_total(size_t total)
{
    pthread_mutex_lock(&kit.mutex);
    while (kit.total < total) pthread_cond_wait(&kit.changed, &kit.mutex);
    pthread_mutex_unlock(&kit.mutex);
}

UNUSED static struct tool_result *kit_run(struct kit_request *r)
{
    kit_start(r);
    return kit_wait(r->request.ticket);
}

UNUSED static struct tool_result *kit_sh(uint64_t ticket, const char *script)
{
    kit_start_sh(ticket, script);
    return kit_wait(ticket);
}

UNUSED static void kit_pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

// Waits until `line` ("out 1 text") has been shown.
UNUSED static void kit_await_line(const char *line)
{
    for (bool seen = false; !seen; kit_pause_ms(1)) {
        pthread_mutex_lock(&kit.mutex);
        seen = memmem(kit.lines.ptr, kit.lines.len, line, strlen(line));
        pthread_mutex_unlock(&kit.mutex);
    }
}

UNUSED static void kit_check_fault(const struct tool_result *result, const char *code, bool retryable)
{
    CHECK(!result->ok);
    CHECK_STR(result->fault.code, str_from(code));
    CHECK_INT(result->fault.retryable, retryable);
}

static bool kit_has_argument(const char *pid, const char *needle)
{
    char path[300], text[4096];
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
    if (fd >= 0) close(fd);
    struct str rest = {text, got > 0 ? (size_t)got : 0};
    while (rest.len) {
        struct str argument = str_cut(rest, '\0', &rest);
        if (str_is(argument, needle)) return true;
    }
    return false;
}

// Living processes (a zombie has no arguments) with `needle` as one of their arguments.
UNUSED static size_t kit_count(const char *needle)
{
    size_t count = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    CHECK(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') count += kit_has_argument(entry->d_name, needle);
    }
    closedir(dir);
    return count;
}

UNUSED static void kit_await_count(const char *needle, size_t count)
{
    while (kit_count(needle) != count) kit_pause_ms(2);
}

// ---- the helper

static _Noreturn void kit_sleep(void)
{
    for (;;) pause();
}

// Runs `body` in a child of its own session and returns when that child has said it is ready.
static void kit_escape(void (*body)(const char *needle), const char *needle)
{
    int ends[2];
    if (pipe(ends) < 0) _exit(90);
    if (fork() == 0) {
        setsid();
        close(ends[0]);
        dup2(ends[1], 50);
        close(ends[1]);
        body(needle);
        _exit(91);
    }
    close(ends[1]);
    char ready;
    if (read(ends[0], &ready, 1) != 1) _exit(92);
    close(ends[0]);
}

static void kit_ready(void)
{
    if (write(50, "r", 1) != 1) _exit(93);
    close(50);
}

static void kit_plain(const char *needle)
{
    (void)needle;
    kit_ready();
    kit_sleep();
}

static void kit_daemon(const char *needle)
{
    (void)needle;
    if (fork() != 0) _exit(0);
    kit_ready();
    kit_sleep();
}

static void kit_stubborn(const char *needle)
{
    (void)needle;
    for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
    kit_ready();
    kit_sleep();
}

static void kit_stopped(const char *needle)
{
    (void)needle;
    kit_ready();
    raise(SIGSTOP);
    kit_sleep();
}

// Without an environment, hence without a mark.
static void kit_bare(const char *needle)
{
    char name[] = "sleep", number[32];
    snprintf(number, sizeof(number), "%s", needle);
    kit_ready();
    execve("/bin/sleep", (char *const[]){name, number, NULL}, (char *const[]){NULL});
    _exit(94);
}

// Never the same process for longer than a millisecond.
static void kit_hopper(const char *needle)
{
    (void)needle;
    kit_ready();
    for (;;) {
        setsid();
        if (fork() != 0) _exit(0);
        kit_pause_ms(1);
    }
}

static void kit_helper_zoo(const char *needle)
{
    kit_escape(kit_plain, needle);
    kit_escape(kit_daemon, needle);
    kit_escape(kit_stubborn, needle);
    kit_escape(kit_stopped, needle);
    kit_escape(kit_bare, needle);
    // In the group of the step: one that listens to TERM and one that does not.
    if (fork() == 0) kit_sleep();
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) kit_sleep();
}

static void kit_helper_args(char **argv)
{
    for (; *argv; argv++) {
        for (const char *c = *argv; *c; c++) printf("%02x", (unsigned char)*c);
        putchar('\n');
    }
    fflush(stdout);
}

static void kit_told(const char *what, long rc)
{
    printf("%s %s\n", what, rc < 0 ? strerrorname_np(errno) : "done");
}

// System calls that a confined step must not have, with arguments that would be refused otherwise only by their meaning.
static void kit_helper_calls(void)
{
    kit_told("ptrace", syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
    kit_told("mount", syscall(SYS_mount, "none", "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    kit_told("unshare", syscall(SYS_unshare, CLONE_NEWUSER));
    kit_told("clone", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    kit_told("clone3", syscall(SYS_clone3, NULL, 0));
    kit_told("bpf", syscall(SYS_bpf, 0, NULL, 0));
    kit_told("keyctl", syscall(SYS_keyctl, 0, -1, 0));
    kit_told("userfaultfd", syscall(SYS_userfaultfd, 0));
    kit_told("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
    kit_told("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    kit_told("kexec", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    kit_told("module", syscall(SYS_delete_module, "none", 0));
    kit_told("unix", syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0));
    kit_told("tcp", syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
    kit_told("udp6", syscall(SYS_socket, AF_INET6, SOCK_DGRAM, 0));
    kit_told("netlink", syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0));
    fflush(stdout);
}

// Whatever a step could try on its engine, 40 times over.
static void kit_helper_poke(pid_t engine)
{
    size_t through = 0;
    for (int i = 0; i < 40; i++) {
        static const char *const files[] = {"environ", "mem", "maps", "auxv", "fd/0"};
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)engine, files[i % 5]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        char byte;
        // maps and auxv open; reading is what is refused
        through += fd >= 0 && read(fd, &byte, 1) > 0;
        if (fd >= 0) close(fd);
        through += kill(engine, 0) == 0;
        through += syscall(SYS_pidfd_open, engine, 0) >= 0 && syscall(SYS_ptrace, PTRACE_SEIZE, engine, 0, 0) == 0;
    }
    printf("%zu\n", through);
    fflush(stdout);
}

struct kit_step {
    struct str run, step; // empty: any
};

static bool kit_is_of_step(void *context, struct str tenant, struct str run, struct str step)
{
    (void)tenant;
    const struct kit_step *one = context;
    return (!one->run.len || str_eq(run, one->run)) && (!one->step.len || str_eq(step, one->step));
}

static size_t kit_kill_orphans(const char *mark, const char *run, const char *step)
{
    struct kit_step one = {str_from(run), str_from(step)};
    return tool_sweep_orphans(&(struct tool_mark){.store = mark, .url = mark}, kit_is_of_step, &one);
}

static int kit_helper(char **argv)
{
    if (strcmp(argv[0], "args") == 0)
        kit_helper_args(argv + 1);
    else if (strcmp(argv[0], "zoo") == 0)
        kit_helper_zoo(argv[1]);
    else if (strcmp(argv[0], "hopper") == 0)
        kit_escape(kit_hopper, argv[1]);
    else if (strcmp(argv[0], "calls") == 0)
        kit_helper_calls();
    else if (strcmp(argv[0], "poke") == 0)
        kit_helper_poke(atoi(argv[1]));
    else if (strcmp(argv[0], "orphans") == 0)
        return (int)kit_kill_orphans(argv[1], "", "");
    else
        return 95;
    return 0;
}

UNUSED static int kit_main(const char *program, const struct test *tests, size_t count, int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--helper") == 0) _exit(kit_helper(argv + 2));
    return test_main(program, tests, count, argc, argv);
}

#endif
