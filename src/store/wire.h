// What a store says about runs, as bytes for a reader far away: bundles (docs/format/bundle.md) and servers (docs/format/store-api.md).
// Nothing is lost on the way: numbers, hashes and the bytes of records are those of the store.
//
// A record travels as a line of JSON and its bytes, so that bytes which are no text any more arrive as they are:
//   {"bytes":N,"seq":n,"type":t, ...}\n  N bytes  \n
// and a page of them ends in {"more":bool}.
#ifndef CAIRN_STORE_WIRE_H
#define CAIRN_STORE_WIRE_H

#include "store/store.h"

// A head without epoch, owner and position. False: no memory.
bool run_head_json(const struct run_head *head, struct arena *arena, struct json *out) MUST_CHECK;
// The same and epoch, owner, position.
bool run_head_json_live(const struct run_head *head, struct arena *arena, struct json *out) MUST_CHECK;
// What either of them wrote; what is not there is zero. Borrows. False: it is none.
bool run_head_read(const struct json *value, struct run_head *out) MUST_CHECK;

// False: no memory.
bool record_wire_write(struct buf *out, const struct record *record, struct arena *scratch) MUST_CHECK;
bool records_wire_end(struct buf *out, bool more, struct arena *scratch) MUST_CHECK;
// What comes next in `rest`, which is cut: a record (out->bytes.ptr is set; borrows), or the end of the page (it is NULL) with *more.
// E_CORRUPT: neither. E_NOMEM.
enum code record_wire_read(struct str *rest, struct arena *arena, struct record *out, bool *more) MUST_CHECK;

#endif
