// A buf is a growable run of bytes with a ceiling.
//  - ptr is never NULL after buf_make and ptr[len] is always 0, so it can be handed to a C function as it is.
//  - After the first failure (memory, ceiling) every append does nothing and buf_ok() is false: many appends, one check.
// buf knows nothing of JSON, files or arenas, and must not learn.
#ifndef CAIRN_BASE_BUF_H
#define CAIRN_BASE_BUF_H

#include "base/invariant.h"
#include "base/str.h"

struct buf {
    char *ptr;
    size_t len;
    size_t capacity;
    size_t max;
    bool failed;
    bool full; // it failed at its ceiling, and not for want of memory
};

struct buf buf_of(size_t max) MUST_CHECK;
void buf_init(struct buf *buf, size_t max); // the same, where the buf is part of something
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf); // empties, forgets a failure, keeps the memory
bool buf_ok(const struct buf *buf) MUST_CHECK;
struct str buf_str(const struct buf *buf);
void buf_add(struct buf *buf, struct str s);
void buf_byte(struct buf *buf, char c);
void buf_text(struct buf *buf, const char *text);
void buf_int(struct buf *buf, int64_t n);
void buf_hex(struct buf *buf, const uint8_t *bytes, size_t count); // lower case
void buf_code_point(struct buf *buf, uint32_t c); // as UTF-8; below 0x110000
// As text of XML 1.0: markup is escaped, and what it cannot hold becomes '?'.
void buf_xml(struct buf *buf, struct str text);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
// Room for `size` more bytes to be written by the caller at ptr+len, who then raises len. NULL on failure.
char *buf_reserve(struct buf *buf, size_t size);

#endif
