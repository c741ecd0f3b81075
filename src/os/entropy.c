// getrandom in blocks of 4 KiB: an event id costs a memcpy, not a system call. Bytes are wiped as they are handed out, so
// that a core file tells nothing about past ids, and a forked child never repeats what its parent will hand out.
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#define BUFFER_SIZE 4096

// Of each thread: no two ever hand out the same bytes, and none waits for another.
static _Thread_local struct {
    size_t left;
    uint8_t bytes[BUFFER_SIZE];
} buffer;

static void refill(void)
{
    size_t have = 0;
    while (have < BUFFER_SIZE) {
        ssize_t got = getrandom(buffer.bytes + have, BUFFER_SIZE - have, 0);
        if (got < 0 && errno == EINTR) continue;
        INVARIANT(got > 0); // the kernel always has randomness once it is up
        have += (size_t)got;
    }
    buffer.left = BUFFER_SIZE;
}

static void fill(struct entropy *entropy, void *bytes, size_t size)
{
    (void)entropy;
    uint8_t *out = bytes;
    while (size > 0) {
        if (buffer.left == 0) refill();
        size_t part = buffer.left < size ? buffer.left : size;
        uint8_t *from = buffer.bytes + BUFFER_SIZE - buffer.left;
        memcpy(out, from, part);
        explicit_bzero(from, part);
        buffer.left -= part;
        out += part;
        size -= part;
    }
}

// In a forked child, which has the one thread that forked: what is buffered belongs to the parent.
static void forget(void)
{
    buffer.left = 0;
}

static void watch_forks(void)
{
    INVARIANT(pthread_atfork(NULL, NULL, forget) == 0);
}

struct entropy *os_entropy(void)
{
    static struct entropy source = {.fill = fill};
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    INVARIANT(pthread_once(&watched, watch_forks) == 0);
    return &source;
}

uint64_t entropy_number(struct entropy *entropy)
{
    uint64_t number;
    entropy->fill(entropy, &number, sizeof(number));
    return number;
}

void entropy_uuid(struct entropy *entropy, char out[UUID_SIZE])
{
    uint8_t bytes[16];
    entropy->fill(entropy, bytes, sizeof(bytes));
    uuid_format(bytes, out);
}
