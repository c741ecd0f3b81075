// Any bytes: the reader refuses them with a code and a position, or reads a value that writes and
// reads back equal and whose canonical form is a fixed point.
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 24 };

static struct json read_again(struct arena *arena, const struct buf *text)
{
    struct json_limits limits = json_limits_default;
    struct json value;
    // Escapes may be longer in the written text than they were in the source.
    limits.size_max = TEXT_MAX;
    INVARIANT(buf_ok(text));
    INVARIANT(json_parse(buf_str(text), &limits, arena, &value, NULL) == OK);
    return value;
}

static void check_value(struct arena *arena, const struct json *value)
{
    struct buf text, canon, again;
    buf_init(&text, TEXT_MAX);
    buf_init(&canon, TEXT_MAX);
    buf_init(&again, TEXT_MAX);

    json_write(&text, value);
    struct json back = read_again(arena, &text);
    INVARIANT(json_equal(value, &back));
    buf_clear(&text);
    json_write_pretty(&text, value);
    back = read_again(arena, &text);
    INVARIANT(json_equal(value, &back));

    json_canon(&canon, value);
    back = read_again(arena, &canon);
    json_canon(&again, &back);
    INVARIANT(str_eq(buf_str(&canon), buf_str(&again)));

    struct json copy;
    INVARIANT(json_copy(arena, value, &copy));
    INVARIANT(json_equal(value, &copy));

    buf_release(&text);
    buf_release(&canon);
    buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct json value;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 28);
    struct str text = {(const char *)data, size};
    enum code rc = json_parse(text, &json_limits_default, &arena, &value, &err);
    if (rc == OK) {
        check_value(&arena, &value);
    } else {
        INVARIANT(rc == err.code);
        INVARIANT(rc == E_INVALID || rc == E_LIMIT);
        INVARIANT(err.line > 0 && err.column > 0);
        INVARIANT(str_utf8(str_from(err.message)));
    }
    arena_release(&arena);
    return 0;
}
