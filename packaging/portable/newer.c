// What Cairn uses of glibc that Debian 11's (2.31) does not have yet, for the binary of the tarball, which is linked against that one
// (mk/release.mk). Where the machine's own glibc has more, it is not asked: what is here is enough, and the same everywhere.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int pidfd_open(pid_t pid, unsigned flags);
int pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);

int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

int pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, info, flags);
}

// Linux 5.9 has close_range; before it every number that a process may have is closed.
void closefrom(int lowest)
{
    if (syscall(SYS_close_range, lowest, ~0u, 0u) == 0) return;
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = lowest; fd < (int)(most > 0 ? most : 65536); fd++) close(fd);
}

// Cairn opens everything so that exec closes it. What the process was started with, and would pass on, is closed by name.
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int lowest)
{
    DIR *all = opendir("/proc/self/fd");
    int error = 0;
    for (struct dirent *entry; all && !error && (entry = readdir(all));) {
        int fd = atoi(entry->d_name);
        int flags = *entry->d_name == '.' ? -1 : fcntl(fd, F_GETFD);
        if (fd >= lowest && flags >= 0 && !(flags & FD_CLOEXEC)) error = posix_spawn_file_actions_addclose(actions, fd);
    }
    if (all) closedir(all);
    return error;
}

const char *strerrordesc_np(int error)
{
    static _Thread_local char text[128];
    return strerror_r(error, text, sizeof(text));
}

const char *sigabbrev_np(int number)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",     [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",       [SIGTRAP] = "TRAP",
        [SIGABRT] = "ABRT",   [SIGBUS] = "BUS",       [SIGFPE] = "FPE",   [SIGKILL] = "KILL",     [SIGUSR1] = "USR1",
        [SIGSEGV] = "SEGV",   [SIGUSR2] = "USR2",     [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM",
        [SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD",   [SIGCONT] = "CONT", [SIGSTOP] = "STOP",     [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN",   [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",     [SIGXFSZ] = "XFSZ",
        [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF",   [SIGWINCH] = "WINCH", [SIGPOLL] = "POLL",   [SIGPWR] = "PWR",
        [SIGSYS] = "SYS",
    };
    return number > 0 && number < (int)(sizeof(names) / sizeof(names[0])) ? names[number] : NULL;
}
