// RFC 4648, the one of this tree.
#ifndef CAIRN_BASE_BASE64_H
#define CAIRN_BASE_BASE64_H

#include "base/arena.h"
#include "base/buf.h"

void buf_base64(struct buf *out, struct str bytes);                   // padded
void buf_base64url(struct buf *out, struct str bytes, bool is_padded); // '-' and '_' for '+' and '/'
// Padded text of the first alphabet; nothing else may be in it. `out` has room for 3 bytes for every 4 of the text.
bool base64_decode(struct str text, uint8_t *out, size_t *size) MUST_CHECK;
struct str base64_read(struct str text, struct arena *arena); // no ptr: it is none, or there is no memory

#endif
