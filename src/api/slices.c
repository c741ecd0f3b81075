// Bytes in parts: Range (RFC 9110), one range of bytes.
#include "api/inside.h"

#include <string.h>

static bool whole(struct byte_range *out, uint64_t size)
{
    *out = (struct byte_range){.size = size, .total = size};
    return true;
}

bool range_of(struct ask *ask, uint64_t size, struct byte_range *out)
{
    struct str text = str_trim(http_find(ask->request, "range")), last;
    int64_t a = 0, b = 0;
    if (!str_starts(text, STR("bytes="))) return whole(out, size);
    text = str_slice(text, 6, text.len);
    if (memchr(text.ptr, ',', text.len) || !memchr(text.ptr, '-', text.len)) return whole(out, size); // as if not asked
    struct str first = str_trim(str_cut(text, '-', &last));
    last = str_trim(last);
    bool from = first.len > 0, to = last.len > 0;
    if ((!from && !to) || (from && (!str_int64(first, &a) || a < 0)) || (to && (!str_int64(last, &b) || b < 0)) ||
        (from && to && b < a))
        return whole(out, size);
    uint64_t begin = from ? (uint64_t)a : (uint64_t)b < size ? size - (uint64_t)b : 0;
    uint64_t end = from && to && (uint64_t)b < size ? (uint64_t)b + 1 : size;
    if (begin < end) {
        *out = (struct byte_range){.from = begin, .size = end - begin, .total = size, .partial = true};
        return true;
    }
    ask->call->answer.range = call_text(ask->call, "bytes */%llu", (unsigned long long)size);
    return call_problem(ask->call, 416, "RANGE_NOT_SATISFIABLE", "there are %llu bytes", (unsigned long long)size);
}

// A name that a header can carry: other bytes become underscores.
static struct str plain(struct ask *ask, struct str name)
{
    char *text = ARENA_ARRAY(&ask->call->arena, name.len + 1, char);
    for (size_t i = 0; text && i < name.len; i++) {
        char c = name.ptr[i];
        bool fine = char_is_alnum(c) || strchr("._-", c);
        text[i] = fine ? c : '_';
    }
    return (struct str){text, text ? name.len : 0};
}

bool answer_slice(struct ask *ask, const char *type, struct str bytes, const struct byte_range *range, struct str name)
{
    struct answer *answer = &ask->call->answer;
    if (name.len > 0)
        answer->disposition = call_text(ask->call, "attachment; filename=\"%.*s\"", STR_ARG(plain(ask, name)));
    answer->ranges = true;
    if (range->partial)
        answer->range =
            call_text(ask->call, "bytes %llu-%llu/%llu", (unsigned long long)range->from,
                      (unsigned long long)(range->from + range->size - 1), (unsigned long long)range->total);
    return answer_text(ask, range->partial ? 206 : 200, type, bytes);
}
