// A sentence as text and as parts. Tellers mark in the text itself what is more than words:
//
//   \x01 kind [value \x03] text \x02        kind: enum part
//
// A text from outside comes in by a mark only, without the bytes that marks are made of, so nobody but this program makes one.
#include "explain/inside.h"

enum { MARK_BEGIN = 1, MARK_END = 2, MARK_VALUE = 3 };

static void add_clean(struct buf *out, struct str text)
{
    struct buf plain SCOPED(buf_release) = buf_of((size_t)1 << 20);
    buf_unstyled(&plain, text); // colours of terminals are none of a sentence
    for (size_t i = 0; i < plain.len; i++) {
        unsigned char c = (unsigned char)plain.ptr[i];
        buf_byte(out, c < 0x20 || c == 0x7f ? ' ' : (char)c);
    }
}

void part_told(struct buf *out, enum part kind, struct str text)
{
    buf_byte(out, MARK_BEGIN);
    buf_byte(out, (char)kind);
    add_clean(out, text);
    buf_byte(out, MARK_END);
}

void time_part_begin(struct buf *out, enum part kind, int64_t ms)
{
    buf_byte(out, MARK_BEGIN);
    buf_printf(out, "%c%lld", (char)kind, (long long)ms);
    buf_byte(out, MARK_VALUE);
}

void time_part_end(struct buf *out)
{
    buf_byte(out, MARK_END);
}

// The next part of `rest`: words, or what one mark holds.
struct piece {
    char kind; // 0: words
    struct str value, text;
};
static struct piece take(struct str *rest)
{
    struct piece piece = {0};
    if (rest->ptr[0] != MARK_BEGIN || rest->len < 2) {
        size_t end = str_find(*rest, MARK_BEGIN, 1);
        piece.text = str_slice(*rest, 0, end);
        *rest = str_slice(*rest, end, rest->len);
        return piece;
    }
    struct str inside = str_slice(*rest, 2, rest->len);
    piece.kind = rest->ptr[1];
    piece.text = str_cut(inside, MARK_END, rest);
    if (piece.kind == PART_SINCE || piece.kind == PART_UNTIL) piece.value = str_cut(piece.text, MARK_VALUE, &piece.text);
    return piece;
}

static struct json piece_json(struct maker *m, const struct piece *piece)
{
    int64_t ms;
    switch (piece->kind) {
    case PART_STEP:
        return JSON_OF(m->arena, {"step", json_string(piece->text)});
    case PART_BY:
        return JSON_OF(m->arena, {"by", json_string(piece->text)});
    case PART_CODE:
        return JSON_OF(m->arena, {"code", json_string(piece->text)});
    case PART_SAID:
        return JSON_OF(m->arena, {"said", json_string(piece->text)});
    case PART_EXPR:
        return JSON_OF(m->arena, {"expr", json_string(piece->text)});
    case PART_SINCE:
    case PART_UNTIL:
        if (!str_int64(piece->value, &ms)) break;
        return JSON_OF(m->arena, {piece->kind == PART_SINCE ? "since" : "due", json_time_some(m->arena, ms)});
    default:
        break;
    }
    return JSON_OF(m->arena, {"text", json_string(piece->text)});
}

struct json sentence_text(struct maker *m, struct str marked)
{
    struct buf out = buf_of((size_t)1 << 20);
    for (struct str rest = marked; rest.len > 0;) buf_add(&out, take(&rest).text);
    return json_some(kept(m, &out));
}

struct json sentence_parts(struct maker *m, struct str marked)
{
    struct json list = json_array();
    for (struct str rest = marked; rest.len > 0;) {
        struct piece piece = take(&rest);
        if (piece.text.len > 0) json_append(m->arena, &list, piece_json(m, &piece));
    }
    return json_filled(list);
}
