// Starting one process. The child is made by clone(CLONE_VM | CLONE_VFORK): nothing of the engine's memory is copied, this
// thread sleeps until the child has executed its program or given up, and the child reports its failure by writing
// into memory it shares with us. So "not found" and "cannot start" are distinguished exactly, without a pipe.
//
// The price: between clone and exec the child runs in our memory. child_main makes raw system calls only (libc's wrappers
// and the sanitizers' keep books in memory that is ours), all signals are blocked in this thread, and it has its own stack.
#include "tool/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NO_SANITIZE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

enum {
    STACK_SIZE = 32768,
    SIGNAL_COUNT = 64,
    KERNEL_MASK_SIZE = 8,
    FIRST_FREE_FD = 3,
    REPORT_FD = 3,
    CAPABILITIES = 64,
    PROC_TRIES = 20
};

enum stage { STAGE_SESSION = 1, STAGE_ORPHAN, STAGE_FILES, STAGE_CWD, STAGE_CONFINE, STAGE_EXEC };

// Shared with the child until it has executed.
struct birth {
    const struct launch *launch;
    char *const *paths; // to try, in order
    int in, out, err;
    int report; // becomes REPORT_FD; -1: none
    pid_t engine;
    struct rlimit tagged;
    long fd_end;
    volatile enum stage stage;
    volatile int error; // 0 until something failed
};

// Some calls of prctl insist on zeros in what they do not use.
NO_SANITIZE static long call(long number, long a, long b, long c, long d)
{
    return syscall(number, a, b, c, d, 0L, 0L);
}

// Defaults for every signal (exec would keep "ignored"), none blocked.
NO_SANITIZE static void reset_signals(void)
{
    alignas(16) static const char nothing[64]; // a struct sigaction of the kernel: SIG_DFL, no flags, empty mask
    // A ^C between clone and setsid waits behind the mask and would kill the step: ignoring a signal discards what is pending.
    alignas(16) static const union {
        void (*handler)(int);
        char bytes[64];
    } ignored = {.handler = SIG_IGN};
    for (long number = 1; number <= SIGNAL_COUNT; number++) {
        call(SYS_rt_sigaction, number, (long)&ignored, 0, KERNEL_MASK_SIZE);
        call(SYS_rt_sigaction, number, (long)nothing, 0, KERNEL_MASK_SIZE);
    }
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)nothing, 0, KERNEL_MASK_SIZE);
}

NO_SANITIZE static bool place_files(const struct birth *birth)
{
    if (call(SYS_dup3, birth->in, STDIN_FILENO, 0, 0) < 0 || call(SYS_dup3, birth->out, STDOUT_FILENO, 0, 0) < 0 ||
        call(SYS_dup3, birth->err, STDERR_FILENO, 0, 0) < 0)
        return false;
    long first = FIRST_FREE_FD;
    if (birth->report >= 0 && call(SYS_dup3, birth->report, REPORT_FD, 0, 0) < 0) return false;
    if (birth->report >= 0) first = REPORT_FD + 1;
    // The filters of older container runtimes do not know close_range.
    if (call(SYS_close_range, first, ~0U, 0, 0) < 0) {
        for (long fd = first; fd < birth->fd_end; fd++) call(SYS_close, fd, 0, 0, 0);
    }
    return true;
}

// As execvp, but a file without a known format is an error and never given to a shell (X1).
NO_SANITIZE static int try_paths(const struct birth *birth)
{
    int worst = ENOENT;
    for (char *const *path = birth->paths; *path; path++) {
        call(SYS_execve, (long)*path, (long)birth->launch->argv, (long)birth->launch->environment, 0);
        if (errno == EACCES)
            worst = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENAMETOOLONG)
            return errno;
    }
    return worst;
}

// The signal comes when the thread that started us ends; the tool thread lives as long as its engine. If the engine has
// died before this line, nobody would send it.
NO_SANITIZE static int die_with_engine(const struct birth *birth)
{
    if (call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0) < 0) return errno;
    return call(SYS_getppid, 0, 0, 0, 0) == birth->engine ? 0 : ESRCH;
}

NO_SANITIZE static int become(const struct birth *birth, const struct cage *cage)
{
    if (!cage->run_as) return 0;
    if (cage->may_search) call(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0);
    if (call(SYS_setgroups, 0, 0, 0, 0) < 0 || call(SYS_setresgid, cage->gid, cage->gid, cage->gid, 0) < 0 ||
        call(SYS_setresuid, cage->uid, cage->uid, cage->uid, 0) < 0)
        return errno;
    return die_with_engine(birth); // another user: the kernel has forgotten the signal
}

// Root without its powers, also after exec. Where the bounding set may not be made smaller, no_new_privs keeps exec from
// giving them back.
NO_SANITIZE static int drop_capabilities(bool may_search)
{
    enum { SEARCH = 1 << CAP_DAC_READ_SEARCH };
    static const struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    static const struct __user_cap_data_struct none[2], search[2] = {{SEARCH, SEARCH, SEARCH}};
    call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0);
    if (call(SYS_capset, (long)&header, (long)(may_search ? search : none), 0, 0) < 0) return errno;
    bool kept = !may_search || call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0) == 0;
    return kept ? 0 : errno;
}

NO_SANITIZE static int enter_cage(const struct birth *birth, const struct cage *cage)
{
    int hidden = cage->veil ? veil_draw(cage->veil) : 0;
    if (hidden) return hidden;
    for (long capability = 0; cage->drop_capabilities && capability < CAPABILITIES; capability++)
        if (!cage->may_search || capability != CAP_DAC_READ_SEARCH) call(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0);
    int error = become(birth, cage);
    if (error) return error;
    for (size_t i = 0; i < cage->limit_count; i++) {
        const struct confine_limit *limit = &cage->limits[i];
        if (call(SYS_prlimit64, 0, limit->resource, (long)&limit->limit, 0) < 0) return errno;
    }
    if (call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0) < 0) return errno;
    if (cage->drop_capabilities) error = drop_capabilities(cage->may_search);
    if (!error && cage->ruleset >= 0 && call(SYS_landlock_restrict_self, cage->ruleset, 0, 0, 0) < 0) error = errno;
    return error;
}

NO_SANITIZE static int prepare_and_execute(struct birth *birth)
{
    static const struct rlimit no_core;
    const struct cage *cage = birth->launch->cage;
    birth->stage = STAGE_SESSION;
    if (call(SYS_setsid, 0, 0, 0, 0) < 0) return errno;
    birth->stage = STAGE_ORPHAN;
    int error = die_with_engine(birth);
    if (error) return error;
    call(SYS_prlimit64, 0, RLIMIT_CORE, (long)&no_core, 0);
    call(SYS_prlimit64, 0, RLIMIT_RTTIME, (long)&birth->tagged, 0);
    birth->stage = STAGE_CONFINE;
    if (cage) error = enter_cage(birth, cage);
    if (error) return error;
    birth->stage = STAGE_CWD;
    const char *cwd = birth->launch->cwd;
    if (cage && cage->veil)
        error = veil_enter_cwd(cage->veil);
    else if (cage ? call(SYS_fchdir, birth->launch->cwd_fd, 0, 0, 0) < 0 : cwd && call(SYS_chdir, (long)cwd, 0, 0, 0) < 0)
        error = errno;
    if (error) return error;
    birth->stage = STAGE_FILES;
    if (!place_files(birth)) return errno;
    birth->stage = STAGE_CONFINE;
    reset_signals();
    if (cage && call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&cage->filter, 0) < 0) return errno;
    birth->stage = STAGE_EXEC;
    return try_paths(birth);
}

NO_SANITIZE static int child_main(void *context)
{
    struct birth *birth = context;
    birth->error = prepare_and_execute(birth);
    call(SYS_exit_group, 127, 0, 0, 0);
    return 127;
}

#define TAG_BASE ((uint64_t)1 << 62)

uint64_t process_new_tag(void)
{
    static atomic_uint_fast32_t count;
    return TAG_BASE | (uint64_t)getpid() << 32 | (uint32_t)atomic_fetch_add(&count, 1);
}

// A root without CAP_SYS_RESOURCE may not ask for the limits of another user's process, but every user can read them in /proc.
static bool read_limit(pid_t pid, rlim_t *out)
{
    static const char name[] = "Max realtime timeout";
    char path[64], text[4096];
    unsigned long long value;
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    if (size <= 0) return false;
    text[size] = '\0';
    const char *at = strstr(text, name);
    if (!at || sscanf(at + strlen(name), "%llu", &value) != 1) return false;
    *out = value;
    return true;
}

uint64_t process_tag(pid_t pid)
{
    struct rlimit limit;
    bool known = prlimit(pid, RLIMIT_RTTIME, NULL, &limit) == 0 || read_limit(pid, &limit.rlim_cur);
    if (!known || limit.rlim_cur == RLIM_INFINITY) return 0;
    return limit.rlim_cur & TAG_BASE ? limit.rlim_cur : 0;
}

// Where the administrator has limited real-time CPU time there are no tags, and the mark must do.
static struct rlimit tagged_limit(uint64_t tag)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_RTTIME, &limit) < 0) return (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    if (limit.rlim_max == RLIM_INFINITY) limit.rlim_cur = tag;
    return limit;
}

// One "directory/name" for each element of the child's PATH; an empty element is the working directory.
static char **list_paths(const char *name, const char *path, struct arena *arena)
{
    bool direct = strchr(name, '/') || !name[0];
    struct str rest = str_from(direct ? "" : path ? path : confine_path_default);
    size_t count = 1;
    for (size_t i = 0; i < rest.len; i++) count += rest.ptr[i] == ':';
    char **paths = ARENA_ARRAY(arena, count + 1, char *);
    for (size_t i = 0; paths && i < count; i++) {
        struct str dir = str_cut(rest, ':', &rest);
        size_t name_size = strlen(name) + 1;
        paths[i] = arena_alloc(arena, dir.len + 1 + name_size);
        if (!paths[i]) return NULL;
        size_t at = 0;
        if (!direct && dir.len) {
            memcpy(paths[i], dir.ptr, dir.len);
            paths[i][dir.len] = '/';
            at = dir.len + 1;
        }
        memcpy(paths[i] + at, name, name_size);
    }
    return paths;
}

// The child's three files must not be in each other's way when they are put to 0, 1 and 2.
static int above_standard(int fd)
{
    if (fd < 0 || fd >= FIRST_FREE_FD) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}

// Input is a sealed file in memory: the child reads it at its own pace and nobody has to feed a pipe.
static int open_input(struct str input)
{
    if (!input.len) return above_standard(open("/dev/null", O_RDONLY | O_CLOEXEC));
    int fd = above_standard(memfd_create("cairn-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0) return -1;
    if (!os_write_all(fd, input) || lseek(fd, 0, SEEK_SET) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int process_report(void)
{
    int fd = memfd_create("cairn-report", MFD_CLOEXEC);
    if (fd < 0 || fd > REPORT_FD) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, REPORT_FD + 1);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}

// Only our end does not block: the flag belongs to the end, and the child expects files that wait.
static bool open_pipe(int *read_end, int *write_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return false;
    *read_end = above_standard(ends[0]);
    *write_end = above_standard(ends[1]);
    return *read_end >= 0 && *write_end >= 0 && fcntl(*read_end, F_SETFL, O_NONBLOCK) == 0;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
}

static enum code code_of_launch(int error)
{
    switch (error) {
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ETXTBSY:
    case ESRCH:
        return E_LIMIT;
    case ENOMEM:
        return E_NOMEM;
    default:
        return E_INVALID;
    }
}

static enum launch_verdict failed(struct error *why, const struct launch *launch, enum stage stage, int error)
{
    const char *name = launch->argv[0];
    const char *reason = strerrordesc_np(error);
    if (stage == STAGE_EXEC && (error == ENOENT || error == ENOTDIR)) {
        error_set(why, E_NOT_FOUND,
                  strchr(name, '/') ? "no such program, or its interpreter is missing: %s" : "command not found: %s",
                  name);
        return LAUNCH_NOT_FOUND;
    }
    if (stage == STAGE_CONFINE) {
        error_set(why, E_UNSUPPORTED, "%s cannot be confined: %s", name, reason);
        return LAUNCH_UNCONFINED;
    }
    if (stage == STAGE_CWD)
        error_set(why, code_of_launch(error), "cannot change to directory %s: %s", launch->cwd, reason);
    else if (error == ENOEXEC)
        error_set(why, E_INVALID, "cannot start %s: %s (a script needs a #! line)", name, reason);
    else
        error_set(why, code_of_launch(error), "cannot start %s: %s", name, reason);
    return LAUNCH_FAILED;
}

// clone under glibc's other name: ThreadSanitizer takes `clone` for a fork and would reset its books, which are ours, too.
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the name is glibc's
extern int __clone(int (*start)(void *), void *stack, int flags, void *context, ...);

static pid_t give_birth(int (*main)(void *), void *context, char *stack, int *pidfd)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
    pid_t pid = __clone(main, stack + STACK_SIZE, flags, context, pidfd);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static void bury(pid_t pid, int pidfd)
{
    siginfo_t ignored;
    if (pid <= 0) return;
    while (waitid(P_PID, (id_t)pid, &ignored, WEXITED) < 0 && errno == EINTR) {
    }
    close(pidfd);
}

struct rehearsal {
    int (*act)(void *context);
    void *context;
    volatile int error;
};

NO_SANITIZE static int rehearsal_main(void *context)
{
    struct rehearsal *rehearsal = context;
    rehearsal->error = rehearsal->act(rehearsal->context);
    call(SYS_exit_group, 0, 0, 0, 0);
    return 0;
}

bool process_rehearse(int (*act)(void *context), void *context)
{
    struct rehearsal rehearsal = {act, context, -1};
    struct arena arena SCOPED(arena_release) = arena_of(STACK_SIZE + 1024, 1 << 20);
    int pidfd = -1;
    char *stack = arena_alloc(&arena, STACK_SIZE);
    pid_t pid = stack ? give_birth(rehearsal_main, &rehearsal, stack, &pidfd) : -1;
    bury(pid, pidfd);
    return pid > 0 && rehearsal.error == 0;
}

// When memory runs out, the step dies and not the engine. Until its exec is over, which is a little later than the moment in
// which we go on, its files in /proc belong to root.
static void die_first(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    int fd = -1;
    for (int tries = 0; tries < PROC_TRIES && (fd = open(path, O_WRONLY | O_CLOEXEC)) < 0 && errno == EACCES; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    if (fd < 0) return;
    ssize_t ignored = write(fd, "500", 3);
    (void)ignored;
    close(fd);
}

enum launch_verdict process_launch(const struct launch *launch, struct arena *scratch, struct process *out,
                                   struct error *why)
{
    char **paths = list_paths(launch->argv[0], environment_get(launch->environment, "PATH"), scratch);
    char *stack = arena_alloc(scratch, STACK_SIZE);
    if (!paths || !stack) return failed(why, launch, STAGE_SESSION, ENOMEM);
    // Ours: stdout, stderr. The child's: stdin, stdout, stderr.
    int ours[2] = {-1, -1}, theirs[3] = {-1, -1, -1};
    theirs[0] = open_input(launch->input);
    if (theirs[0] < 0 || !open_pipe(&ours[0], &theirs[1]) || !open_pipe(&ours[1], &theirs[2])) {
        int error = errno;
        close_all(theirs, ARRAY_COUNT(theirs));
        close_all(ours, ARRAY_COUNT(ours));
        return failed(why, launch, STAGE_FILES, error);
    }
    // A program may open what it has as its output once more (/dev/stderr), as its own user.
    for (size_t i = 0; launch->cage && launch->cage->run_as && i < ARRAY_COUNT(theirs); i++)
        (void)!fchown(theirs[i], launch->cage->uid, launch->cage->gid);
    struct birth birth = {.launch = launch, .paths = paths, .in = theirs[0], .out = theirs[1], .err = theirs[2]};
    birth.report = launch->report_as == REPORT_FD ? launch->report : -1;
    if (launch->report_as == STDOUT_FILENO) birth.out = launch->report;
    birth.engine = getpid();
    birth.tagged = tagged_limit(launch->tag);
    birth.fd_end = sysconf(_SC_OPEN_MAX);
    int pidfd = -1;
    pid_t pid = give_birth(child_main, &birth, stack, &pidfd);
    int error = pid < 0 ? errno : birth.error;
    close_all(theirs, ARRAY_COUNT(theirs));
    if (error) {
        close_all(ours, ARRAY_COUNT(ours));
        bury(pid, pidfd);
        return failed(why, launch, pid < 0 ? STAGE_SESSION : birth.stage, error);
    }
    if (launch->cage) die_first(pid);
    *out = (struct process){.pid = pid, .pidfd = pidfd, .out = ours[0], .err = ours[1]};
    return LAUNCH_OK;
}
