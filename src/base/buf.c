#include "base/buf.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 128 };

// What ptr shows before the first append. Never written: it is shared by all empty bufs.
static char nothing[1];

struct buf buf_of(size_t max)
{
    INVARIANT(max < SIZE_MAX / 2);
    return (struct buf){.ptr = nothing, .max = max};
}

void buf_init(struct buf *buf, size_t max)
{
    *buf = buf_of(max);
}

void buf_release(struct buf *buf)
{
    if (buf->capacity) free(buf->ptr);
    *buf = (struct buf){.ptr = nothing, .max = buf->max};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->capacity) buf->ptr[0] = '\0';
}

bool buf_ok(const struct buf *buf)
{
    return !buf->failed;
}

struct str buf_str(const struct buf *buf)
{
    return (struct str){buf->ptr, buf->len};
}

// Out of line, so that buf_reserve stays small. `need` counts the final NUL.
static bool grow(struct buf *buf, size_t need)
{
    size_t capacity = buf->capacity ? buf->capacity * 2 : CAPACITY_MIN;
    if (capacity < need) capacity = need;
    if (capacity > buf->max + 1) capacity = buf->max + 1;
    INVARIANT(capacity >= need);
    char *ptr = realloc(buf->capacity ? buf->ptr : NULL, capacity);
    if (!ptr) return false;
    if (!buf->capacity) ptr[0] = '\0';
    buf->ptr = ptr;
    buf->capacity = capacity;
    return true;
}

char *buf_reserve(struct buf *buf, size_t size)
{
    if (buf->failed) return NULL;
    if (size < buf->capacity - buf->len) return buf->ptr + buf->len;
    INVARIANT(buf->len <= buf->max);
    buf->full = size > buf->max - buf->len;
    if (buf->full) memory_ceiling_hit();
    if (buf->full || !grow(buf, buf->len + size + 1)) {
        buf->failed = true;
        return NULL;
    }
    return buf->ptr + buf->len;
}

void buf_add(struct buf *buf, struct str s)
{
    if (s.len == 0) return;
    char *to = buf_reserve(buf, s.len);
    if (!to) return;
    memcpy(to, s.ptr, s.len);
    to[s.len] = '\0';
    buf->len += s.len;
}

void buf_byte(struct buf *buf, char c)
{
    char *to = buf_reserve(buf, 1);
    if (!to) return;
    to[0] = c;
    to[1] = '\0';
    buf->len++;
}

void buf_text(struct buf *buf, const char *text)
{
    buf_add(buf, str_from(text));
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

void buf_int(struct buf *buf, int64_t n)
{
    char digits[20];
    char *p = digits + sizeof(digits);
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    while (left >= 100) {
        p -= 2;
        memcpy(p, digit_pairs + left % 100 * 2, 2);
        left /= 100;
    }
    if (left >= 10) {
        p -= 2;
        memcpy(p, digit_pairs + left * 2, 2);
    } else {
        *--p = (char)('0' + left);
    }
    if (n < 0) *--p = '-';
    buf_add(buf, (struct str){p, (size_t)(digits + sizeof(digits) - p)});
}

void buf_hex(struct buf *buf, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    // A count that would overflow is beyond every ceiling; buf_reserve then reports it.
    char *to = buf_reserve(buf, count > SIZE_MAX / 4 ? SIZE_MAX / 2 : count * 2);
    if (!to) return;
    for (size_t i = 0; i < count; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = '\0';
    buf->len += count * 2;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    if (buf->failed) return;
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    size_t room = buf->capacity - buf->len;
    int written = vsnprintf(buf->capacity ? buf->ptr + buf->len : NULL, room, format, arguments);
    va_end(arguments);
    if (written < 0) {
        buf->failed = true;
    } else if ((size_t)written < room) {
        buf->len += (size_t)written;
    } else {
        if (buf->capacity) buf->ptr[buf->len] = '\0';
        char *to = buf_reserve(buf, (size_t)written);
        if (to) {
            vsnprintf(to, (size_t)written + 1, format, again);
            buf->len += (size_t)written;
        }
    }
    va_end(again);
}

void buf_xml(struct buf *buf, struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t size = str_utf8_size(text, i);
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '<')
            buf_text(buf, "&lt;");
        else if (c == '>')
            buf_text(buf, "&gt;");
        else if (c == '&')
            buf_text(buf, "&amp;");
        else if (c == '"')
            buf_text(buf, "&quot;");
        else if (size == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
            buf_byte(buf, '?');
        else
            buf_add(buf, str_slice(text, i, i + size));
        i += size ? size : 1;
    }
}

void buf_code_point(struct buf *buf, uint32_t c)
{
    if (c < 0x80) {
        buf_byte(buf, (char)c);
    } else if (c < 0x800) {
        buf_byte(buf, (char)(0xC0 | c >> 6));
        buf_byte(buf, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        buf_byte(buf, (char)(0xE0 | c >> 12));
        buf_byte(buf, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_byte(buf, (char)(0x80 | (c & 0x3F)));
    } else {
        buf_byte(buf, (char)(0xF0 | c >> 18));
        buf_byte(buf, (char)(0x80 | (c >> 12 & 0x3F)));
        buf_byte(buf, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_byte(buf, (char)(0x80 | (c & 0x3F)));
    }
}
