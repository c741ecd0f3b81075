// The tokens of tasks.
#include "auth/internal.h"

#include <string.h>

enum { FIELD_COUNT = 7, CLAIM_SIZE_MAX = 4096, MAC_CHARS = 52 };
static const char prefix[] = "ctask_";
enum { PREFIX_SIZE = sizeof(prefix) - 1 };

static size_t big_endian(uint64_t n, size_t size, char *out)
{
    for (size_t i = 0; i < size; i++) out[i] = (char)(n >> 8 * (size - 1 - i));
    return size;
}

// Each field with its length before it: no two claims have the same bytes. 0: it does not fit.
static size_t claim_bytes(const struct task_claim *claim, char out[CLAIM_SIZE_MAX])
{
    char numbers[3][8];
    big_endian(claim->logical, 8, numbers[0]);
    big_endian(claim->engine, 8, numbers[1]);
    big_endian(claim->epoch, 8, numbers[2]);
    const struct str fields[FIELD_COUNT] = {claim->tenant,   claim->run,      claim->step, {numbers[0], 8},
                                            {numbers[1], 8}, {numbers[2], 8}, claim->lease};
    size_t len = 0;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (fields[i].len > CLAIM_SIZE_MAX - 2 || len + 2 + fields[i].len > CLAIM_SIZE_MAX) return 0;
        len += big_endian(fields[i].len, 2, out + len);
        if (fields[i].len) memcpy(out + len, fields[i].ptr, fields[i].len);
        len += fields[i].len;
    }
    return len;
}

static struct digest claim_mac(const struct task_key *key, struct str bytes)
{
    return hmac_sha256((struct str){(const char *)key->b, sizeof(key->b)}, bytes);
}

void auth_task_seal(const struct task_key *key, const struct task_claim *claim, struct buf *out)
{
    char bytes[CLAIM_SIZE_MAX];
    size_t size = claim_bytes(claim, bytes);
    size_t chars = (size * 8 + 4) / 5;
    char *to = size ? buf_reserve(out, PREFIX_SIZE + chars + 1 + MAC_CHARS) : NULL;
    out->failed = out->failed || !to;
    if (!to) return;
    struct digest mac = claim_mac(key, (struct str){bytes, size});
    memcpy(to, prefix, PREFIX_SIZE);
    base32_write((const uint8_t *)bytes, size, to + PREFIX_SIZE);
    to[PREFIX_SIZE + chars] = '_';
    base32_write(mac.b, SHA256_SIZE, to + PREFIX_SIZE + chars + 1);
    out->len += PREFIX_SIZE + chars + 1 + MAC_CHARS;
    out->ptr[out->len] = '\0';
}

static bool next_field(struct str *rest, struct str *field)
{
    if (rest->len < 2) return false;
    size_t size = (size_t)(unsigned char)rest->ptr[0] << 8 | (unsigned char)rest->ptr[1];
    if (rest->len - 2 < size) return false;
    *field = str_slice(*rest, 2, 2 + size);
    *rest = str_slice(*rest, 2 + size, rest->len);
    return true;
}

static bool number_of(struct str field, uint64_t max, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < field.len; i++) *out = *out << 8 | (unsigned char)field.ptr[i];
    return field.len == 8 && *out <= max;
}

static bool read_claim(struct str bytes, struct task_claim *out)
{
    struct str fields[FIELD_COUNT];
    uint64_t logical, engine, epoch;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (!next_field(&bytes, &fields[i])) return false;
    if (bytes.len || !number_of(fields[3], UINT32_MAX, &logical) || !number_of(fields[4], UINT32_MAX, &engine) ||
        !number_of(fields[5], UINT64_MAX, &epoch))
        return false;
    *out = (struct task_claim){.tenant = fields[0],
                               .run = fields[1],
                               .step = fields[2],
                               .logical = (uint32_t)logical,
                               .engine = (uint32_t)engine,
                               .epoch = epoch,
                               .lease = fields[6]};
    return true;
}

enum code auth_task_open(const struct task_key *key, struct str text, struct arena *arena, struct task_claim *out,
                         struct error *err)
{
    static const char refusal[] = "this is no task token of this service";
    struct digest mac, given;
    if (!str_starts(text, str_from(prefix))) return error_set(err, E_DENIED, refusal);
    struct str tail, claim = str_cut(str_slice(text, PREFIX_SIZE, text.len), '_', &tail);
    size_t size = claim.len * 5 / 8;
    if (size > CLAIM_SIZE_MAX) return error_set(err, E_DENIED, refusal);
    char *bytes = arena_alloc(arena, size + 1);
    if (!bytes) return error_nomem(err);
    if (!base32_read(claim, (uint8_t *)bytes, size) || !base32_read(tail, given.b, SHA256_SIZE))
        return error_set(err, E_DENIED, refusal);
    mac = claim_mac(key, (struct str){bytes, size});
    if (!digest_same(&mac, &given) || !read_claim((struct str){bytes, size}, out))
        return error_set(err, E_DENIED, refusal);
    return OK;
}
