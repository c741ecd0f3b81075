// Preloaded into the real binary: the n-th call that changes a file ($KILL_AT) is preceded by kill -9 of the process; with
// $KILL_AFTER directly followed by it. $KILL_COUNT names a file that gets the number of calls at a normal end.
// Only calls on descriptors of regular files count, and only in the process that was started, never in its children
// (the engine does not pass LD_PRELOAD on).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls;

static long limit(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : -1;
}

static int counts(int fd)
{
    struct stat st;
    return fd > 2 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static void before(void)
{
    long n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (n == limit("KILL_AT")) kill(getpid(), SIGKILL);
}

static void after(void)
{
    if (calls == limit("KILL_AFTER")) kill(getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(name, condition, args)                                                                                    \
    static __typeof__(&name) real;                                                                                     \
    if (!real) real = REAL(name);                                                                                      \
    if (!(condition)) return real args;                                                                                \
    before();                                                                                                          \
    __typeof__(real args) result = real args;                                                                          \
    after();                                                                                                           \
    return result

ssize_t write(int fd, const void *bytes, size_t size)
{
    WRAP(write, counts(fd), (fd, bytes, size));
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    WRAP(pwrite, counts(fd), (fd, bytes, size, at));
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    WRAP(pwrite64, counts(fd), (fd, bytes, size, at));
}
ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    WRAP(pwritev, counts(fd), (fd, v, n, at));
}
ssize_t writev(int fd, const struct iovec *v, int n)
{
    WRAP(writev, counts(fd), (fd, v, n));
}
int fsync(int fd)
{
    WRAP(fsync, 1, (fd));
}
int fdatasync(int fd)
{
    WRAP(fdatasync, 1, (fd));
}
int syncfs(int fd)
{
    WRAP(syncfs, 1, (fd));
}
int ftruncate(int fd, off_t size)
{
    WRAP(ftruncate, 1, (fd, size));
}
int ftruncate64(int fd, off64_t size)
{
    WRAP(ftruncate64, 1, (fd, size));
}
int unlink(const char *path)
{
    WRAP(unlink, 1, (path));
}
int unlinkat(int fd, const char *path, int flags)
{
    WRAP(unlinkat, 1, (fd, path, flags));
}
int rename(const char *from, const char *to)
{
    WRAP(rename, 1, (from, to));
}
int renameat(int a, const char *from, int b, const char *to)
{
    WRAP(renameat, 1, (a, from, b, to));
}
int mkdir(const char *path, mode_t mode)
{
    WRAP(mkdir, 1, (path, mode));
}
int mkdirat(int fd, const char *path, mode_t mode)
{
    WRAP(mkdirat, 1, (fd, path, mode));
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("KILL_COUNT");
    if (!path) return;
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "%ld\n", calls);
    fclose(file);
}
