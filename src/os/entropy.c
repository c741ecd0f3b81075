// getrandom in blocks of 4 KiB: an event id costs a memcpy, not a system call. Bytes are wiped as they are handed out, so
// that a core file tells nothing about past ids, and a forked child never repeats what its parent will hand out.
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#define BUFFER_SIZE 4096

struct system_entropy {
    struct entropy base;
    size_t used;
    uint8_t bytes[BUFFER_SIZE];
};

static void refill(struct system_entropy *into)
{
    size_t have = 0;
    while (have < BUFFER_SIZE) {
        ssize_t got = getrandom(into->bytes + have, BUFFER_SIZE - have, 0);
        if (got < 0 && errno == EINTR) continue;
        INVARIANT(got > 0); // the kernel always has randomness once it is up
        have += (size_t)got;
    }
    into->used = 0;
}

static void fill(struct entropy *entropy, void *bytes, size_t size)
{
    struct system_entropy *from = CONTAINER_OF(entropy, struct system_entropy, base);
    uint8_t *out = bytes;
    while (size > 0) {
        if (from->used == BUFFER_SIZE) refill(from);
        size_t part = BUFFER_SIZE - from->used < size ? BUFFER_SIZE - from->used : size;
        memcpy(out, from->bytes + from->used, part);
        explicit_bzero(from->bytes + from->used, part);
        from->used += part;
        out += part;
        size -= part;
    }
}

static struct system_entropy source = {.base = {.fill = fill}, .used = BUFFER_SIZE};

// In a forked child: what is buffered belongs to the parent.
static void forget(void)
{
    source.used = BUFFER_SIZE;
}

struct entropy *os_entropy(void)
{
    static bool watched;
    if (!watched) INVARIANT(pthread_atfork(NULL, NULL, forget) == 0);
    watched = true;
    return &source.base;
}
