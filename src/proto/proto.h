// Protocol buffers (proto3) as bytes: the wire format, and messages described by tables.
//
// A message is a plain C struct and a table of its fields (struct proto_message). proto_write and proto_read work on any of them, so
// that a message is one table and no code. What the tables do not name is skipped when it is read, as the format wants it.
//
//  - Numbers (int32, int64, enum, bool) are int64_t, doubles are double, string and bytes are struct str. A nested message is a
//    pointer, NULL when it is absent; repeated ones are `member` and `member_count`. A map is a repeated message of key and value.
//  - A member that has its default (0, no bytes, NULL) is not written. A nested message that is there is written, also when it is empty.
//  - What was read lives in the arena; its texts are slices of the bytes that were read.
//  - The same field again: the last number or text counts, nested messages are merged, as the format wants it.
#ifndef CAIRN_PROTO_PROTO_H
#define CAIRN_PROTO_PROTO_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum proto_kind { PROTO_NUMBER = 1, PROTO_DOUBLE, PROTO_TEXT, PROTO_MESSAGE, PROTO_LIST };

struct proto_message;

struct proto_field {
    enum proto_kind kind;
    uint32_t number;
    size_t at, count_at;            // of the member, and of a list's count
    const struct proto_message *of; // of a nested message or an element
};

struct proto_message {
    const char *name; // as the protocol spells it, without its package
    size_t size;      // of the C struct
    const struct proto_field *fields; // in the order of their numbers
    size_t field_count;
};

enum { PROTO_DEPTH_MAX = 32 };

// Appends; a failure (memory, the ceiling of `out`) is the buf's.
void proto_write(struct buf *out, const struct proto_message *message, const void *value);
// Into `value`, which is zeroed first. E_INVALID: these bytes are no message; E_NOMEM: also when the arena's limit is reached.
enum code proto_read(const struct proto_message *message, struct str bytes, struct arena *arena, void *value,
                     struct error *err) MUST_CHECK;

#endif
