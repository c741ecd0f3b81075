// A command that prints a secret. What it is, is configuration; a plan gives only a name, and that as a variable. It runs in
// our session, so the sweeps of steps leave it alone, and in a group of its own, so all of it can be killed.
#include "tool/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VARIABLES = 8, REAP_TRIES = 1000 };

static char *variable(struct arena *arena, const char *name, struct str value)
{
    size_t size = strlen(name) + value.len + 2;
    char *text = arena_alloc(arena, size);
    if (text) snprintf(text, size, "%s=%.*s", name, STR_ARG(value));
    return text;
}

static int start(char **argv, char **environment, int output, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(pid, argv[0], &files, &how, argv, environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

// Reads to the end, at most one byte more than a secret may have. False: too late, or it cannot be read.
static bool read_until(int fd, int64_t due_ms, char *bytes, size_t *size)
{
    for (*size = 0; *size <= SECRET_SIZE_MAX;) {
        int64_t left = due_ms - os_now().mono_ms;
        struct pollfd watch = {.fd = fd, .events = POLLIN};
        int ready = left > 0 ? poll(&watch, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        ssize_t got = read(fd, bytes + *size, SECRET_SIZE_MAX + 1 - *size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        *size += (size_t)got;
    }
    return true;
}

// Kills what is left of the group and reaps it: orphans of the command have become our children, and nobody else waits for
// children of our own session.
static void end_group(pid_t group)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    kill(-group, SIGKILL);
    for (int tries = 0; tries < REAP_TRIES; tries++) {
        pid_t got = waitpid(-group, NULL, WNOHANG);
        if (got < 0 && errno == ECHILD) break;
        if (got == 0) nanosleep(&moment, NULL);
    }
}

// True: it has ended by itself with 0, before `due_ms`. Its group is gone either way.
static bool ended_well(pid_t pid, int64_t due_ms)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    siginfo_t info = {0};
    // The status is left there until the end: its pid is that of the group.
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0 &&
           os_now().mono_ms < due_ms)
        nanosleep(&moment, NULL);
    bool well = info.si_pid == pid && info.si_code == CLD_EXITED && info.si_status == 0;
    end_group(pid);
    return well;
}

static bool run(const struct secret_provider *provider, char **argv, char **environment, char *bytes, size_t *size,
                const char **reason)
{
    int ends[2];
    pid_t pid = 0;
    *reason = "cannot be read: the provider's command cannot be started";
    if (pipe2(ends, O_CLOEXEC) < 0) return false;
    int error = start(argv, environment, ends[1], &pid);
    close(ends[1]);
    int64_t due_ms = os_now().mono_ms + (int64_t)provider->timeout_ms;
    bool whole = error == 0 && read_until(ends[0], due_ms, bytes, size);
    close(ends[0]);
    if (error) return false;
    if (!whole) kill(-pid, SIGKILL);
    *reason = whole ? "cannot be read: the provider's command failed"
                    : "cannot be read: the provider's command took too long";
    return ended_well(pid, due_ms) && whole;
}

bool provider_exec(const struct secret_provider *provider, const struct secret_scope *scope, const struct secret_ref *ref,
                   struct str name, struct str version, struct arena *arena, struct str *value, struct error *why)
{
    char **argv = ARENA_ARRAY(arena, provider->argc + 1, char *);
    char *bytes = arena_alloc(arena, SECRET_SIZE_MAX + 2);
    char *environment[VARIABLES] = {variable(arena, "PATH", str_from(confine_path_default)),
                                    variable(arena, "LANG", STR("C.UTF-8")),
                                    variable(arena, "CAIRN_SECRET_NAME", name),
                                    variable(arena, "CAIRN_SECRET_VERSION", version),
                                    variable(arena, "CAIRN_SECRET_TENANT", scope->tenant),
                                    variable(arena, "CAIRN_SECRET_ENVIRONMENT", scope->environment)};
    bool ready = argv && bytes && environment[0] && environment[1] && environment[2] && environment[3] &&
                 environment[4] && environment[5];
    for (size_t i = 0; ready && i < provider->argc; i++) {
        argv[i] = arena_alloc(arena, provider->argv[i].len + 1);
        ready = argv[i];
        if (ready) memcpy(argv[i], provider->argv[i].ptr, provider->argv[i].len);
    }
    if (!ready) return secret_refuse(why, ref, "cannot be read: out of memory");
    const char *reason = NULL;
    size_t size = 0;
    bool done = run(provider, argv, environment, bytes, &size, &reason);
    *value = (struct str){bytes, size};
    if (size > SECRET_SIZE_MAX) reason = "is larger than 64 KiB";
    if (!done || size > SECRET_SIZE_MAX) {
        secret_wipe(*value);
        return secret_refuse(why, ref, reason);
    }
    if (str_ends(*value, STR("\n"))) value->len -= str_ends(*value, STR("\r\n")) ? 2 : 1;
    return true;
}
