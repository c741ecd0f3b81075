// The container: ustar, with every byte decided. A header is compared with the one that we would write, so nothing can hide in it.
#include "store/bundle.h"

#include <string.h>

enum { NAME_SIZE_MAX = 100 };

// Octal digits and a NUL, as ustar has them.
static void put_octal(uint8_t *field, size_t size, uint64_t value)
{
    for (size_t i = size - 1; i > 0; i--) {
        field[i - 1] = (uint8_t)('0' + (value & 7));
        value >>= 3;
    }
}

bool bundle_header(struct str path, uint64_t size, uint8_t out[BUNDLE_BLOCK])
{
    if (path.len == 0 || path.len > NAME_SIZE_MAX || size > BUNDLE_MEMBER_MAX) return false;
    memset(out, 0, BUNDLE_BLOCK);
    memcpy(out, path.ptr, path.len);
    put_octal(out + 100, 8, 0644);  // mode
    put_octal(out + 108, 8, 0);     // owner
    put_octal(out + 116, 8, 0);     // group
    put_octal(out + 124, 12, size); // size
    put_octal(out + 136, 12, 0);    // time: the same runs give the same bytes
    memset(out + 148, ' ', 8);      // checksum, counted as blanks
    out[156] = '0';                 // a regular file
    memcpy(out + 257, "ustar\00000", 8);
    put_octal(out + 329, 8, 0);
    put_octal(out + 337, 8, 0);
    unsigned sum = 0;
    for (size_t i = 0; i < BUNDLE_BLOCK; i++) sum += out[i];
    put_octal(out + 148, 7, sum);
    out[154] = 0;
    return true;
}

uint64_t bundle_padding(uint64_t size)
{
    return (BUNDLE_BLOCK - size % BUNDLE_BLOCK) % BUNDLE_BLOCK;
}

static bool all_zero(struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.ptr[i]) return false;
    return true;
}

static uint64_t read_octal(const char *field, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    return value;
}

static enum code damaged(size_t at, const char *what, struct error *err)
{
    return error_set(err, E_CORRUPT, "the bundle is damaged at byte %zu: %s", at, what);
}

// The event that the file ends in says more to a reader than the byte.
static enum code cut_off(struct str path, struct str rest, struct error *err)
{
    unsigned long long lines = 0;
    for (size_t i = 0; i < rest.len; i++) lines += rest.ptr[i] == '\n';
    if (!str_ends(path, STR(".jsonl"))) return error_set(err, E_CORRUPT, "the bundle ends inside %.*s", STR_ARG(path));
    return error_set(err, E_CORRUPT, "the bundle ends inside %.*s: event %llu is cut off", STR_ARG(path), lines + 1);
}

static enum code add_member(struct bundle *bundle, struct str path, struct str bytes, struct error *err)
{
    struct str kept = arena_copy(&bundle->arena, path);
    if (!kept.ptr || !ARENA_ROOM(&bundle->arena, bundle->members, bundle->count, &bundle->capacity))
        return error_nomem(err);
    bundle->members[bundle->count++] = (struct bundle_member){kept, bytes};
    return OK;
}

static enum code read_member(struct bundle *bundle, size_t *at, struct error *err)
{
    const struct str file = bundle->file;
    uint8_t expected[BUNDLE_BLOCK];
    const char *header = file.ptr + *at;
    struct str path = {header, strnlen(header, NAME_SIZE_MAX)};
    uint64_t size = read_octal(header + 124, 11);
    if (!bundle_header(path, size, expected) || memcmp(header, expected, BUNDLE_BLOCK) != 0)
        return damaged(*at, "this is not the header of a member", err);
    size_t from = *at + BUNDLE_BLOCK;
    if (size > file.len - from) return cut_off(path, str_slice(file, from, file.len), err);
    size_t to = from + (size_t)size, next = to + (size_t)bundle_padding(size);
    if (next > file.len || !all_zero(str_slice(file, to, next)))
        return damaged(to, "there is something behind this member", err);
    *at = next;
    return add_member(bundle, path, str_slice(file, from, to), err);
}

static enum code read_members(struct bundle *bundle, struct error *err)
{
    const struct str file = bundle->file;
    size_t at = 0;
    if (file.len < BUNDLE_BLOCK || memcmp(file.ptr, BUNDLE_SUMS, sizeof(BUNDLE_SUMS)) != 0)
        return error_set(err, E_INVALID, "this is not a bundle: it does not begin with %s", BUNDLE_SUMS);
    while (at + BUNDLE_BLOCK <= file.len && !all_zero(str_slice(file, at, at + BUNDLE_BLOCK))) {
        enum code rc = read_member(bundle, &at, err);
        if (rc) return rc;
    }
    if (file.len - at != (size_t)2 * BUNDLE_BLOCK || !all_zero(str_slice(file, at, file.len)))
        return damaged(at, "it does not end with two blocks of zeros", err);
    return OK;
}

enum code bundle_open(const char *path, struct bundle *out, struct error *err)
{
    *out = (struct bundle){0};
    enum code rc = os_map_file(path, &out->file, err);
    if (rc) return rc;
    arena_init(&out->arena, 16 * 1024, SIZE_MAX);
    rc = read_members(out, err);
    if (rc) bundle_close(out);
    return rc;
}

void bundle_close(struct bundle *bundle)
{
    arena_release(&bundle->arena);
    os_unmap(bundle->file);
    *bundle = (struct bundle){0};
}

const struct bundle_member *bundle_find(const struct bundle *bundle, struct str path)
{
    for (size_t i = 0; i < bundle->count; i++)
        if (str_eq(bundle->members[i].path, path)) return &bundle->members[i];
    return NULL;
}
