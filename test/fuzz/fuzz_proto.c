// Any bytes as any message: what is read is written to bytes that give the same message again, and nothing else is touched.
#include "proto/temporal.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct proto_message *const messages[] = {
#define MESSAGE(message, spelled, fields) &temporal_##message,
#include "proto/temporal_list.h"
#undef MESSAGE
    &temporal_nothing,
};

// Read, written, read and written again: from the first writing on the bytes stay the same.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const struct proto_message *message = messages[data[0] % ARRAY_COUNT(messages)];
    struct arena arena = arena_of(4096, 16 << 20);
    struct buf once = buf_of(4 << 20), twice = buf_of(4 << 20);
    struct error err = {0};
    void *value = arena_alloc(&arena, message->size), *again = arena_alloc(&arena, message->size);
    struct str bytes = {(const char *)data + 1, size - 1};
    if (value && again && proto_read(message, bytes, &arena, value, &err) == OK) {
        proto_write(&once, message, value);
        INVARIANT(buf_ok(&once));
        INVARIANT(proto_read(message, buf_str(&once), &arena, again, &err) == OK);
        proto_write(&twice, message, again);
        INVARIANT(str_eq(buf_str(&once), buf_str(&twice)));
    }
    buf_release(&once);
    buf_release(&twice);
    arena_release(&arena);
    return 0;
}
