#include "os/os.h"

#include <fcntl.h>
#include <unistd.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

static int64_t read_clock(clockid_t clock, int64_t units_per_second)
{
    struct timespec now;
    INVARIANT(clock_gettime(clock, &now) == 0);
    return (int64_t)now.tv_sec * units_per_second + (int64_t)now.tv_nsec / (1000000000 / units_per_second);
}

struct moment_in_time os_now(void)
{
    return (struct moment_in_time){.wall_ms = read_clock(CLOCK_REALTIME, 1000),
                                   .mono_ms = read_clock(CLOCK_MONOTONIC, 1000)};
}

int64_t os_mono_us(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000000);
}

int64_t os_boot_ms(void)
{
    return read_clock(CLOCK_BOOTTIME, 1000);
}

pthread_mutex_t *os_lock(pthread_mutex_t *mutex)
{
    int failed = pthread_mutex_lock(mutex);
    INVARIANT(!failed);
    return mutex;
}

void os_unlock(pthread_mutex_t *const *mutex)
{
    int failed = pthread_mutex_unlock(*mutex);
    INVARIANT(!failed);
}

int os_thread(pthread_t *out, const pthread_attr_t *how, void *(*body)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, how, body, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

void os_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    INVARIANT(pthread_condattr_init(&attributes) == 0 && pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    INVARIANT(pthread_cond_init(condition, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
}

bool os_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t mono_ms)
{
    struct timespec until = {.tv_sec = (time_t)(mono_ms / 1000), .tv_nsec = (long)(mono_ms % 1000) * 1000000};
    return pthread_cond_timedwait(condition, mutex, &until) == 0;
}

bool os_lock_lingers(int64_t pid, unsigned *tries)
{
    enum { TRIES_MAX = 2000 };
    if (pid <= 0 || (kill((pid_t)pid, 0) == 0 || errno != ESRCH) || (*tries)++ >= TRIES_MAX) return false;
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
    return true;
}

void os_boot_id(char out[BOOT_SIZE])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, out, BOOT_SIZE - 1);
    out[got > 0 ? got : 0] = '\0';
    if (fd >= 0) close(fd);
}
