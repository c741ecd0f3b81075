#include "proto/proto.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_8 = 1, WIRE_BYTES = 2, WIRE_4 = 5 };

// ---- writing

enum { VARINT_MAX = 10 };

static size_t varint_bytes(uint64_t n, char out[VARINT_MAX])
{
    size_t size = 0;
    for (; n >= 0x80; n >>= 7) out[size++] = (char)(uint8_t)(n | 0x80);
    out[size++] = (char)(uint8_t)n;
    return size;
}

static void varint(struct buf *out, uint64_t n)
{
    char bytes[VARINT_MAX];
    buf_add(out, (struct str){bytes, varint_bytes(n, bytes)});
}

static void tag(struct buf *out, const struct proto_field *field, enum wire wire)
{
    varint(out, (uint64_t)field->number << 3 | (uint64_t)wire);
}

// The length of a nested message stands before it and is known behind it: what was written moves by the bytes of the length.
static void nested(struct buf *out, const struct proto_field *field, const void *value)
{
    char bytes[VARINT_MAX];
    tag(out, field, WIRE_BYTES);
    size_t start = out->len;
    proto_write(out, field->of, value);
    if (!buf_ok(out)) return;
    size_t size = out->len - start, shift = varint_bytes(size, bytes);
    if (!buf_reserve(out, shift)) return;
    memmove(out->ptr + start + shift, out->ptr + start, size);
    memcpy(out->ptr + start, bytes, shift);
    out->len += shift;
    out->ptr[out->len] = '\0';
}

static void put_double(struct buf *out, const struct proto_field *field, double n)
{
    uint64_t bits;
    memcpy(&bits, &n, sizeof(bits));
    if (!bits) return;
    tag(out, field, WIRE_8);
    for (int i = 0; i < 8; i++) buf_byte(out, (char)(uint8_t)(bits >> (8 * i)));
}

static void put_field(struct buf *out, const struct proto_field *field, const char *value)
{
    const char *at = value + field->at;
    switch (field->kind) {
    case PROTO_NUMBER: {
        int64_t n = *(const int64_t *)(const void *)at;
        if (n == 0) return;
        tag(out, field, WIRE_VARINT);
        varint(out, (uint64_t)n);
        return;
    }
    case PROTO_DOUBLE:
        put_double(out, field, *(const double *)(const void *)at);
        return;
    case PROTO_TEXT: {
        struct str text = *(const struct str *)(const void *)at;
        if (text.len == 0) return;
        tag(out, field, WIRE_BYTES);
        varint(out, text.len);
        buf_add(out, text);
        return;
    }
    case PROTO_MESSAGE: {
        const void *inner = *(void *const *)(const void *)at;
        if (inner) nested(out, field, inner);
        return;
    }
    case PROTO_LIST: {
        const char *items = *(char *const *)(const void *)at;
        size_t count = *(const size_t *)(const void *)(value + field->count_at);
        for (size_t i = 0; i < count; i++) nested(out, field, items + i * field->of->size);
        return;
    }
    }
}

void proto_write(struct buf *out, const struct proto_message *message, const void *value)
{
    for (size_t i = 0; i < message->field_count; i++) put_field(out, &message->fields[i], value);
}

// ---- reading

static bool take_varint(struct str *in, uint64_t *out)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < 10 && i < in->len; i++) {
        uint8_t byte = (uint8_t)in->ptr[i];
        if (i == 9 && byte > 1) return false; // beyond 64 bits
        n |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80) continue;
        *in = str_slice(*in, i + 1, in->len);
        *out = n;
        return true;
    }
    return false;
}

struct part { // one field as it came
    uint64_t number;
    enum wire wire;
    uint64_t n;
    struct str bytes;
};

static bool take_part(struct str *in, struct part *out)
{
    uint64_t tag_of, size = 0;
    if (!take_varint(in, &tag_of) || tag_of >> 3 == 0 || tag_of >> 32 != 0) return false;
    *out = (struct part){.number = tag_of >> 3, .wire = (enum wire)(tag_of & 7)};
    switch (out->wire) {
    case WIRE_VARINT:
        return take_varint(in, &out->n);
    case WIRE_8:
        size = 8;
        break;
    case WIRE_4:
        size = 4;
        break;
    case WIRE_BYTES:
        if (!take_varint(in, &size)) return false;
        break;
    default: // groups are of proto2
        return false;
    }
    if (size > in->len) return false;
    out->bytes = str_slice(*in, 0, (size_t)size);
    *in = str_slice(*in, (size_t)size, in->len);
    return true;
}

static const struct proto_field *field_of(const struct proto_message *message, uint64_t number)
{
    for (size_t i = 0; i < message->field_count; i++)
        if (message->fields[i].number == number) return &message->fields[i];
    return NULL;
}

// Room for one more element: lists double, so that no capacity has to be kept.
static void *list_add(struct arena *arena, const struct proto_field *field, char *value)
{
    void **items = (void **)(void *)(value + field->at);
    size_t *count = (size_t *)(void *)(value + field->count_at);
    size_t size = field->of->size;
    if ((*count & (*count - 1)) == 0) {
        char *room = arena_array(arena, *count ? *count * 2 : 1, size);
        if (!room) return NULL;
        if (*count) memcpy(room, *items, *count * size);
        *items = room;
    }
    return (char *)*items + (*count)++ * size;
}

static enum code read_into(const struct proto_message *message, struct str bytes, struct arena *arena, char *value,
                           unsigned depth, struct error *err);

static enum code take_message(const struct proto_field *field, struct str bytes, struct arena *arena, char *value,
                              unsigned depth, struct error *err)
{
    void **inner = (void **)(void *)(value + field->at);
    if (!*inner) *inner = arena_alloc(arena, field->of->size);
    return *inner ? read_into(field->of, bytes, arena, *inner, depth + 1, err) : error_nomem(err);
}

static double double_of(struct str bytes)
{
    uint64_t bits = 0;
    double n;
    INVARIANT(bytes.ptr && bytes.len >= 8);
    for (size_t i = 0; i < 8; i++) bits |= (uint64_t)(uint8_t)bytes.ptr[i] << (8 * i);
    memcpy(&n, &bits, sizeof(n));
    return n;
}

// A field that is not of the kind the table says is one that we do not know.
static enum code take_field(const struct proto_field *field, const struct part *part, struct arena *arena, char *value,
                            unsigned depth, struct error *err)
{
    char *at = value + field->at;
    switch (field->kind) {
    case PROTO_NUMBER:
        if (part->wire == WIRE_VARINT) *(int64_t *)(void *)at = (int64_t)part->n;
        return OK;
    case PROTO_DOUBLE:
        if (part->wire == WIRE_8) *(double *)(void *)at = double_of(part->bytes);
        return OK;
    case PROTO_TEXT:
        if (part->wire == WIRE_BYTES) *(struct str *)(void *)at = part->bytes;
        return OK;
    case PROTO_MESSAGE:
        return part->wire == WIRE_BYTES ? take_message(field, part->bytes, arena, value, depth, err) : OK;
    case PROTO_LIST: {
        if (part->wire != WIRE_BYTES) return OK;
        void *element = list_add(arena, field, value);
        return element ? read_into(field->of, part->bytes, arena, element, depth + 1, err) : error_nomem(err);
    }
    }
    return OK;
}

static enum code read_into(const struct proto_message *message, struct str bytes, struct arena *arena, char *value,
                           unsigned depth, struct error *err)
{
    if (depth > PROTO_DEPTH_MAX)
        return error_set(err, E_INVALID, "%s: messages are nested more than %d deep", message->name, PROTO_DEPTH_MAX);
    while (bytes.len > 0) {
        struct part part;
        size_t left = bytes.len;
        if (!take_part(&bytes, &part))
            return error_set(err, E_INVALID, "%s: no field begins %zu bytes before the end", message->name, left);
        const struct proto_field *field = field_of(message, part.number);
        enum code rc = field ? take_field(field, &part, arena, value, depth, err) : OK;
        if (rc) return rc;
    }
    return OK;
}

enum code proto_read(const struct proto_message *message, struct str bytes, struct arena *arena, void *value,
                     struct error *err)
{
    memset(value, 0, message->size);
    return read_into(message, bytes, arena, value, 0, err);
}
