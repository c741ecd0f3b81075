// Two texts line by line: the longest common subsequence, hunks with three lines around them.
#include "author/author.h"

enum { CELLS_MAX = 16000000, AROUND = 3 };

struct lines {
    struct str *items;
    uint32_t count;
};

static bool split(struct str text, struct arena *arena, struct lines *out)
{
    uint32_t count = 1;
    for (size_t i = 0; i < text.len; i++) count += text.ptr[i] == '\n';
    *out = (struct lines){.items = ARENA_ARRAY(arena, count, struct str)};
    while (out->items && text.len > 0) out->items[out->count++] = str_cut(text, '\n', &text);
    return out->items != NULL;
}

struct edit {
    char what; // ' ', '-' or '+'
    struct str line;
    uint32_t a, b; // lines before it
};

static bool compare(const struct lines *a, const struct lines *b, struct arena *arena, struct edit *edits,
                    uint32_t *edit_count)
{
    uint32_t head = 0, tail = 0, n = 0;
    while (head < a->count && head < b->count && str_eq(a->items[head], b->items[head])) head++;
    while (tail < a->count - head && tail < b->count - head &&
           str_eq(a->items[a->count - 1 - tail], b->items[b->count - 1 - tail]))
        tail++;
    uint32_t rows = a->count - head - tail, columns = b->count - head - tail;
    uint32_t *best = NULL; // best[i][k]: common lines of a from i and b from k
    size_t width = (size_t)columns + 1;
    if ((uint64_t)(rows + 1) * width <= CELLS_MAX) {
        best = ARENA_ARRAY(arena, (rows + 1) * width, uint32_t);
        if (!best) return false;
    }
    for (uint32_t i = rows; best && i > 0; i--)
        for (uint32_t k = columns; k > 0; k--) {
            size_t at = (i - 1) * width + k - 1;
            bool same = str_eq(a->items[head + i - 1], b->items[head + k - 1]);
            uint32_t down = best[at + width], right = best[at + 1];
            best[at] = same ? best[at + width + 1] + 1 : down > right ? down : right;
        }
    for (uint32_t i = 0; i < head; i++) edits[n++] = (struct edit){' ', a->items[i], i, i};
    uint32_t i = 0, k = 0;
    while (i < rows || k < columns) {
        struct edit e = {.a = head + i, .b = head + k};
        bool same = best && i < rows && k < columns && str_eq(a->items[head + i], b->items[head + k]);
        bool drop = i < rows && (k == columns || !best || best[(i + 1) * width + k] >= best[i * width + k + 1]);
        e.what = same ? ' ' : drop ? '-' : '+';
        e.line = e.what == '+' ? b->items[head + k] : a->items[head + i];
        i += e.what != '+';
        k += e.what != '-';
        edits[n++] = e;
    }
    for (uint32_t t = tail; t > 0; t--)
        edits[n++] = (struct edit){' ', a->items[a->count - t], a->count - t, b->count - t};
    *edit_count = n;
    return true;
}

static void write_hunk(struct buf *out, const struct edit *edits, uint32_t from, uint32_t end)
{
    uint32_t a = 0, b = 0;
    for (uint32_t i = from; i < end; i++) {
        a += edits[i].what != '+';
        b += edits[i].what != '-';
    }
    buf_printf(out, "@@ -%u,%u +%u,%u @@\n", edits[from].a + (a > 0), a, edits[from].b + (b > 0), b);
    for (uint32_t i = from; i < end; i++) {
        buf_byte(out, edits[i].what);
        buf_add(out, edits[i].line);
        buf_byte(out, '\n');
    }
}

enum code author_diff(struct buf *out, struct str name, struct str before, struct str after, struct arena *arena,
                      struct error *err)
{
    struct lines a, b;
    uint32_t count = 0;
    bool ok = split(before, arena, &a) && split(after, arena, &b);
    struct edit *edits = ok ? ARENA_ARRAY(arena, (size_t)a.count + b.count + 1, struct edit) : NULL;
    if (!edits || !compare(&a, &b, arena, edits, &count)) return error_nomem(err);
    buf_printf(out, "--- %.*s\n+++ %.*s\n", STR_ARG(name), STR_ARG(name));
    for (uint32_t i = 0; i < count;) {
        while (i < count && edits[i].what == ' ') i++;
        if (i == count) break;
        uint32_t from = i > AROUND ? i - AROUND : 0, last = i;
        for (; i < count && i - last <= 2 * AROUND; i++)
            if (edits[i].what != ' ') last = i;
        uint32_t end = last + 1 + AROUND < count ? last + 1 + AROUND : count;
        write_hunk(out, edits, from, end);
        i = last + 1 + AROUND < count ? last + 1 : count;
    }
    return OK;
}
