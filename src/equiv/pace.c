#include "equiv/pace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct pace {
    _Atomic uint64_t moment; // of the player; odd: being written
    _Atomic int64_t mono_ms, wall_ms;
    _Atomic uint64_t passes; // of the engine; odd: one is under way, or it has not come to rest
    _Atomic uint64_t seen, in_flight, stopping;
    _Atomic int64_t deadline_ms;
    _Atomic int64_t player; // its process, whose child the engine's is
};

static enum code map(const char *path, int flags, struct pace **out, struct error *err)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0) return os_errno(err, "open", path);
    bool sized = !(flags & O_CREAT) || ftruncate(fd, sizeof(struct pace)) == 0;
    void *at = sized ? mmap(NULL, sizeof(struct pace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    enum code rc = at == MAP_FAILED ? os_errno(err, "map", path) : OK;
    close(fd);
    if (!rc) *out = at;
    return rc;
}

// ---- the player

enum code pace_make(const char *path, struct pace **out, struct error *err)
{
    enum code rc = map(path, O_CREAT | O_TRUNC, out, err);
    if (!rc) atomic_store(&(*out)->player, getpid());
    return rc;
}

void pace_free(struct pace *pace)
{
    if (pace) munmap(pace, sizeof(*pace));
}

void pace_set(struct pace *pace, struct moment_in_time now)
{
    atomic_fetch_add(&pace->moment, 1);
    atomic_store(&pace->mono_ms, now.mono_ms);
    atomic_store(&pace->wall_ms, now.wall_ms);
    atomic_fetch_add(&pace->moment, 1);
}

bool pace_rests(const struct pace *pace, struct pace_rest *out)
{
    uint64_t passes = atomic_load(&pace->passes);
    *out = (struct pace_rest){.pass = passes,
                              .moment = atomic_load(&pace->seen),
                              .in_flight = atomic_load(&pace->in_flight),
                              .stopping = atomic_load(&pace->stopping),
                              .deadline_ms = atomic_load(&pace->deadline_ms)};
    return passes % 2 == 0 && passes == atomic_load(&pace->passes) && out->moment == atomic_load(&pace->moment);
}

// ---- the engine

static struct pace *playing;
static uint64_t moment; // of the pass under way

static struct moment_in_time now(void *context)
{
    struct pace *pace = context;
    if (atomic_load(&pace->passes) % 2 == 0) atomic_fetch_add(&pace->passes, 1); // what was said of the last one holds no longer
    for (;; sched_yield()) {
        moment = atomic_load(&pace->moment);
        struct moment_in_time at = {.mono_ms = atomic_load(&pace->mono_ms), .wall_ms = atomic_load(&pace->wall_ms)};
        if (moment % 2 == 0 && moment == atomic_load(&pace->moment)) return at;
    }
}

// The number that became odd when the pass began is even again when it was the last for now.
static void passed(void *context, bool rest, const struct engine *engine)
{
    struct pace *pace = context;
    struct engine_activity activity = engine_activity(engine);
    if (!rest || activity.queued > 0) return;
    atomic_store(&pace->seen, moment);
    atomic_store(&pace->in_flight, activity.in_flight);
    atomic_store(&pace->stopping, activity.stopping);
    atomic_store(&pace->deadline_ms, engine_deadline(engine));
    atomic_fetch_add(&pace->passes, 1);
}

enum code pace_clock(const char *path, struct service_clock *out, struct error *err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct error why = {0};
    if (map(path, 0, &playing, &why)) return error_set(err, E_INVALID, "$" PACE_VARIABLE " is no clock of cairn equiv: %s", why.message);
    // The player may have died before the first line of this function: then its death sends no signal any more.
    if (getppid() != atomic_load(&playing->player)) return error_set(err, E_INVALID, "the player of $" PACE_VARIABLE " has ended");
    *out = (struct service_clock){.context = playing, .now = now, .passed = passed};
    return OK;
}
