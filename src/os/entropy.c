// getrandom in blocks of 4 KiB: an event id costs a memcpy, not a system call. Bytes are wiped as they are handed out, so
// that a core file tells nothing about past ids, and a forked child never repeats what its parent will hand out.
#include "os/os.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BUFFER_SIZE 4096

struct system_entropy {
    struct entropy base;
    pid_t owner; // process that filled the buffer
    size_t used;
    uint8_t bytes[BUFFER_SIZE];
};

static void refill(struct system_entropy *source)
{
    size_t have = 0;
    while (have < BUFFER_SIZE) {
        ssize_t got = getrandom(source->bytes + have, BUFFER_SIZE - have, 0);
        if (got < 0 && errno == EINTR) continue;
        INVARIANT(got > 0); // the kernel always has randomness once it is up
        have += (size_t)got;
    }
    source->used = 0;
    source->owner = getpid();
}

static void fill(struct entropy *entropy, void *bytes, size_t size)
{
    struct system_entropy *source = CONTAINER_OF(entropy, struct system_entropy, base);
    uint8_t *out = bytes;
    if (source->owner != getpid()) refill(source);
    while (size > 0) {
        if (source->used == BUFFER_SIZE) refill(source);
        size_t part = BUFFER_SIZE - source->used < size ? BUFFER_SIZE - source->used : size;
        memcpy(out, source->bytes + source->used, part);
        explicit_bzero(source->bytes + source->used, part);
        source->used += part;
        out += part;
        size -= part;
    }
}

struct entropy *os_entropy(void)
{
    static struct system_entropy source = {.base = {.fill = fill}, .used = BUFFER_SIZE};
    return &source.base;
}
