#include "cli/top.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPTURE_MS = 2000, CAPTURE_MAX = 1 << 20 };

// The environment with the width that is there to print on.
static char **make_environment(char columns[32], size_t width)
{
    size_t count = 0, at = 0;
    while (environ[count]) count++;
    char **out = malloc((count + 2) * sizeof(*out));
    if (!out) return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "COLUMNS=", 8) != 0) out[at++] = environ[i];
    snprintf(columns, 32, "COLUMNS=%zu", width);
    out[at++] = columns;
    out[at] = NULL;
    return out;
}

static void make_argv(const struct top *top, const char *const *words, bool color, const char *argv[TOP_ARGS_MAX + 8])
{
    size_t count = 0;
    argv[count++] = "cairn";
    for (size_t i = 0; i < TOP_ARGS_MAX && words[i]; i++) argv[count++] = words[i];
    argv[count++] = "--store";
    argv[count++] = top->session->address;
    argv[count++] = "--tenant";
    argv[count++] = top->session->tenant.ptr;
    argv[count++] = color ? "--color=always" : "--color=never";
    if (!top->cli->io.out.utf8) argv[count++] = "--ascii";
    argv[count] = NULL;
}

// Starts this program with stdout and stderr in one pipe. The reading end, or -1.
static int start(const struct top *top, const char *const *words, bool color, pid_t *pid)
{
    const char *argv[TOP_ARGS_MAX + 8];
    char columns[32];
    int ends[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment = make_environment(columns, top->cli->io.out.columns);
    if (!environment || pipe2(ends, O_CLOEXEC)) {
        free(environment);
        return -1;
    }
    make_argv(top, words, color, argv);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID); // no key of this terminal reaches it
    int rc = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(environment);
    close(ends[1]);
    if (rc == 0) return ends[0];
    close(ends[0]);
    return -1;
}

// False at the end of the output.
static bool drain(int fd, int wait_ms, struct buf *out)
{
    char bytes[4096];
    struct pollfd in = {.fd = fd, .events = POLLIN};
    while (poll(&in, 1, wait_ms) > 0) {
        ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n == 0 || (n < 0 && errno != EINTR)) return false;
        if (n > 0 && out->len < CAPTURE_MAX) buf_add(out, (struct str){bytes, (size_t)n});
        wait_ms = 0;
    }
    return true;
}

void top_capture(struct top *top, const char *const *words, struct buf *out)
{
    pid_t pid = 0;
    int fd = start(top, words, top->cli->io.out.color, &pid);
    int64_t until = os_now().mono_ms + CAPTURE_MS;
    if (fd < 0) {
        buf_printf(out, "cannot start cairn %s: %s\n", words[0], strerror(errno));
        return;
    }
    while (drain(fd, 50, out)) {
        if (os_now().mono_ms < until) continue;
        kill(pid, SIGKILL);
        buf_text(out, "\n(no answer in time)\n");
        break;
    }
    close(fd);
    waitpid(pid, NULL, 0);
}

void top_forget(struct top *top)
{
    if (top->command.fd >= 0) close(top->command.fd);
    if (top->command.pid > 0 && !top->command.lives_on) kill(top->command.pid, SIGKILL);
    if (top->command.pid > 0) waitpid(top->command.pid, NULL, top->command.lives_on ? WNOHANG : 0);
    top->command.fd = -1;
    top->command.pid = 0;
}

// As top_capture, in the background; the last line it prints becomes the message. With `lives_on` it is not ended with the screen.
static void launch(struct top *top, bool lives_on, const char *const *words)
{
    pid_t pid = 0;
    top_forget(top);
    buf_clear(&top->command.text);
    top->command.fd = start(top, words, false, &pid);
    top->command.pid = pid;
    top->command.lives_on = lives_on;
    if (top->command.fd < 0)
        top_say(top, "cannot start cairn %s: %s", words[0], strerror(errno));
    else
        top_say(top, "%s %s ...", words[0], words[1] ? words[1] : "");
}

// The line that says how it came out: an error if there is one, else the first.
static struct str telling_line(struct str text)
{
    struct str first = {0}, rest = str_trim(text);
    while (rest.len > 0) {
        struct str line = str_trim(str_cut(rest, '\n', &rest));
        if (first.len == 0) first = line;
        if (str_starts(line, STR("error:"))) return line;
    }
    return first;
}

void top_listen(struct top *top)
{
    if (top->command.fd < 0) return;
    size_t before = top->command.text.len;
    bool more = drain(top->command.fd, 0, &top->command.text);
    if (top->command.text.len != before) {
        struct str line = telling_line(buf_str(&top->command.text));
        top_say(top, "%.*s", (int)(line.len < 400 ? line.len : 400), line.ptr);
    }
    if (more) return;
    int status = 0;
    close(top->command.fd);
    waitpid(top->command.pid, &status, 0);
    top->command.fd = -1;
    top->command.pid = 0;
    top->runs.looked_ms = top->run.pane_ms = 0;
    if (top->command.text.len == 0) top_say(top, "done (exit %d)", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

// ---- the keys
static void act(struct top *top, const char *verb, const char *reason)
{
    // The process that drives a run without an owner goes on until the run ends: it must not die with this screen.
    const char *words[TOP_ARGS_MAX] = {verb, top->aim};
    size_t count = 2;
    bool drives = strcmp(verb, "pause") != 0 && strcmp(verb, "cancel") != 0;
    if (reason) {
        words[count++] = "--reason";
        words[count++] = reason[0] ? reason : "from cairn top";
    }
    if (strcmp(verb, "pause") != 0) words[count++] = "--progress=none";
    words[count] = NULL;
    launch(top, drives, words);
}

static void answer_cancel(struct top *top, const char *text)
{
    act(top, "cancel", text);
}

static void answer_approve(struct top *top, const char *text)
{
    act(top, "approve", text);
}

static void answer_reject(struct top *top, const char *text)
{
    act(top, "reject", text);
}

static void answer_skip(struct top *top, const char *text)
{
    act(top, "skip", text);
}

static void answer_retry(struct top *top, const char *text)
{
    act(top, "retry", text);
}

static void aim(struct top *top, struct str run, struct str step)
{
    snprintf(top->aim, sizeof(top->aim), "%.*s%s%.*s", STR_ARG(run), step.len ? "/" : "", STR_ARG(step));
}

bool top_act(struct top *top, int key, const struct run_head *head, struct str step, enum look look)
{
    struct str run = head->ids.run;
    bool paused = head->summary.status == RUN_STATUS_PAUSED;
    switch (key) {
    case 'p':
        aim(top, run, STR(""));
        if (head->terminal)
            top_say(top, "the run has ended");
        else if (paused)
            act(top, "resume", NULL);
        else
            act(top, "pause", "");
        return true;
    case 'r':
        aim(top, run, look == LOOK_HELD ? step : STR(""));
        if (look == LOOK_HELD)
            act(top, "retry", "");
        else if (head->terminal)
            top_ask(top, answer_retry, "run %.*s again as a new run; reason", STR_ARG(run));
        else if (!head->owned && !paused)
            act(top, "recover", NULL);
        else
            top_say(top, "nothing to retry: the run has not ended and the step is not held");
        return true;
    case 'a':
        aim(top, run, look == LOOK_APPROVAL ? step : STR(""));
        top_ask(top, answer_approve, "approve %s (Esc: no); reason", top->aim);
        return true;
    case 'x':
        aim(top, run, look == LOOK_APPROVAL ? step : STR(""));
        top_ask(top, answer_reject, "reject %s; reason", top->aim);
        return true;
    case 's':
        if (step.len == 0) return false;
        aim(top, run, step);
        top_ask(top, answer_skip, "skip %s; reason", top->aim);
        return true;
    case 'c':
        aim(top, run, STR(""));
        if (head->terminal)
            top_say(top, "the run has ended");
        else
            top_ask(top, answer_cancel, "cancel %.*s; reason", STR_ARG(run));
        return true;
    default:
        return false;
    }
}
