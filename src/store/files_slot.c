// Slots and index entries. An identity inside a slot is nine times a length byte and the bytes; 254 stands for "default" and 255 for
// a lower-case UUID in 16 bytes. With those two the identity of a child run with ordinary names fits beside the longest cause.
#include "store/files.h"

#include <string.h>

enum { NAME_COUNT = 9, LENGTH_MAX = 253, LENGTH_DEFAULT = 254, LENGTH_UUID = 255, CAUSE_SIZE_MAX = 159 };

_Static_assert(sizeof(((struct run_summary *)0)->cause) == CAUSE_SIZE_MAX + 1, "a cause and its NUL");
_Static_assert(sizeof(((struct run_summary *)0)->substatus) == sizeof(((struct disk_slot *)0)->substatus), "the same");

// FNV-1a, so that keys on disk do not depend on the hash of the day in memory.
static uint64_t mix(uint64_t hash, struct str text)
{
    for (size_t i = 0; i < text.len; i++) hash = (hash ^ (uint8_t)text.ptr[i]) * 0x100000001B3u;
    return hash;
}

uint64_t run_key(struct str tenant, struct str run)
{
    uint64_t hash = mix(mix(mix(0xCBF29CE484222325u, tenant), STR("/")), run);
    return hash ^ hash >> 32;
}

uint32_t text_hash(struct str text)
{
    uint64_t hash = mix(0xCBF29CE484222325u, text);
    return (uint32_t)(hash ^ hash >> 32);
}

static void names_of(const struct run_log *log, struct str names[NAME_COUNT])
{
    const struct run_ids *ids = &log->ids;
    const struct str all[NAME_COUNT] = {ids->tenant,       ids->run,  ids->project,    ids->environment, ids->plan_id,
                                        ids->plan_version, log->name, log->parent_run, log->original_run};
    memcpy(names, all, sizeof(all));
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// 36 characters in lower case to 16 bytes.
static bool pack_uuid(struct str text, uint8_t out[16])
{
    if (text.len != 36) return false;
    size_t at = 0;
    for (size_t i = 0; i < 36;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text.ptr[i++] != '-') return false;
            continue;
        }
        int high = hex_value(text.ptr[i]), low = hex_value(text.ptr[i + 1]);
        if (high < 0 || low < 0) return false;
        out[at++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return true;
}

static void unpack_uuid(const uint8_t bytes[16], char out[36])
{
    static const char digits[] = "0123456789abcdef";
    size_t to = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out[to++] = '-';
        out[to++] = digits[bytes[i] >> 4];
        out[to++] = digits[bytes[i] & 15];
    }
}

size_t names_encode(const struct run_log *log, uint8_t *out, size_t room)
{
    struct str names[NAME_COUNT];
    names_of(log, names);
    size_t at = 0;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        struct str name = names[i];
        uint8_t packed[16];
        uint8_t length;
        if (str_is(name, "default")) {
            length = LENGTH_DEFAULT;
            name.len = 0;
        } else if (pack_uuid(name, packed)) {
            length = LENGTH_UUID;
            name = (struct str){(const char *)packed, sizeof(packed)};
        } else if (name.len <= LENGTH_MAX)
            length = (uint8_t)name.len;
        else
            return 0;
        if (at + 1 + name.len > room) return 0;
        out[at++] = length;
        if (name.len > 0) memcpy(out + at, name.ptr, name.len);
        at += name.len;
    }
    return at;
}

void names_encode_outside(const struct run_log *log, struct buf *out)
{
    struct str names[NAME_COUNT];
    names_of(log, names);
    for (size_t i = 0; i < NAME_COUNT; i++) {
        uint32_t length = (uint32_t)names[i].len;
        buf_add(out, (struct str){(const char *)&length, sizeof(length)});
        buf_add(out, names[i]);
    }
}

static enum code take_inside(struct str *rest, struct arena *arena, struct str *out)
{
    if (rest->len == 0) return E_CORRUPT;
    uint8_t length = (uint8_t)rest->ptr[0];
    size_t size = length == LENGTH_UUID ? 16 : length == LENGTH_DEFAULT ? 0 : length;
    if (rest->len - 1 < size) return E_CORRUPT;
    struct str bytes = {rest->ptr + 1, size};
    *rest = str_slice(*rest, 1 + size, rest->len);
    char uuid[36];
    if (length == LENGTH_DEFAULT) bytes = STR("default");
    if (length == LENGTH_UUID) {
        unpack_uuid((const uint8_t *)bytes.ptr, uuid);
        bytes = (struct str){uuid, sizeof(uuid)};
    }
    *out = arena_copy(arena, bytes);
    return out->ptr ? OK : E_NOMEM;
}

static enum code take_outside(struct str *rest, struct arena *arena, struct str *out)
{
    uint32_t length;
    if (rest->len < sizeof(length)) return E_CORRUPT;
    memcpy(&length, rest->ptr, sizeof(length));
    if (rest->len - sizeof(length) < length) return E_CORRUPT;
    *out = arena_copy(arena, (struct str){rest->ptr + sizeof(length), length});
    *rest = str_slice(*rest, sizeof(length) + length, rest->len);
    return out->ptr ? OK : E_NOMEM;
}

static enum code decode_names(struct str bytes, bool outside, struct arena *arena, struct run_head *out)
{
    struct run_ids *ids = &out->ids;
    struct str *const names[NAME_COUNT] = {&ids->tenant,      &ids->run,        &ids->project,
                                           &ids->environment, &ids->plan_id,    &ids->plan_version,
                                           &out->name,        &out->parent_run, &out->original_run};
    for (size_t i = 0; i < NAME_COUNT; i++) {
        enum code rc = (outside ? take_outside : take_inside)(&bytes, arena, names[i]);
        if (rc != OK) return rc;
    }
    return bytes.len == 0 ? OK : E_CORRUPT;
}

static enum code read_names(struct files_store *files, const struct disk_slot *slot, struct arena *arena,
                            struct str *out, struct error *err)
{
    struct names_ref ref;
    memcpy(&ref, slot->text, sizeof(ref));
    // A frame that is not applied yet has its identities with it.
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    if (frame_begin(buf_str(&files->frame), &header, &cursor))
        while (frame_next(&cursor, &part))
            if (part.run.position == slot->position && part.names.len == ref.size &&
                crc32c(0, part.names.ptr, part.names.len) == ref.crc) {
                *out = part.names;
                return OK;
            }
    uint64_t size = 0;
    enum code rc = files->disk->ops->size(files->names, &size, err);
    if (rc != OK) return rc;
    if (ref.size > size || ref.offset > size - ref.size)
        return error_set(err, E_CORRUPT, "the identity of the run at position %llu is missing",
                         (unsigned long long)slot->position);
    char *bytes = arena_alloc(arena, ref.size);
    if (!bytes) return error_nomem(err);
    size_t got = 0;
    rc = files->disk->ops->read(files->names, ref.offset, bytes, ref.size, &got, err);
    if (rc != OK) return rc;
    if (got != ref.size || crc32c(0, bytes, got) != ref.crc)
        return error_set(err, E_CORRUPT, "the identity of the run at position %llu is damaged",
                         (unsigned long long)slot->position);
    *out = (struct str){bytes, got};
    return OK;
}

static void decode_summary(const struct disk_slot *slot, struct run_summary *out)
{
    *out = (struct run_summary){
        .status = (enum run_status)slot->status,
        .counts = {slot->counts[0], slot->counts[1], slot->counts[2], slot->counts[3]},
        .running = slot->running,
        .created_ms = slot->created_ms,
        .started_ms = slot->started_ms,
        .ended_ms = slot->ended_ms,
    };
    memcpy(out->substatus, slot->substatus, sizeof(out->substatus) - 1);
    if (slot->cause_size <= CAUSE_SIZE_MAX) memcpy(out->cause, slot->text + slot->names_size, slot->cause_size);
    summary_read(out);
}

enum code files_decode_slot(struct files_store *files, const struct disk_slot *slot, struct arena *arena,
                            struct run_head *out, struct error *err)
{
    if (slot->names_size + slot->cause_size > sizeof(slot->text))
        return error_set(err, E_CORRUPT, "the slot of the run at position %llu is damaged",
                         (unsigned long long)slot->position);
    *out = (struct run_head){
        .vocabulary = (enum vocabulary)slot->vocabulary,
        .last_seq = slot->last_seq,
        .last_ledger_seq = slot->ledger_seq,
        .updated_ms = slot->updated_ms,
        .terminal = (slot->flags & SLOT_TERMINAL) != 0,
        .epoch = slot->epoch,
        .position = slot->position,
    };
    memcpy(out->document.b, slot->document, SHA256_SIZE);
    memcpy(out->head.b, slot->head, SHA256_SIZE);
    memcpy(out->ledger_head.b, slot->ledger_head, SHA256_SIZE);
    decode_summary(slot, &out->summary);
    bool outside = (slot->flags & SLOT_NAMES_OUTSIDE) != 0;
    struct str names = {(const char *)slot->text, slot->names_size};
    if (outside) {
        enum code rc = read_names(files, slot, arena, &names, err);
        if (rc != OK) return rc;
    }
    enum code rc = decode_names(names, outside, arena, out);
    if (rc != OK)
        return error_set(err, rc, "the identity of the run at position %llu: %s", (unsigned long long)slot->position,
                         code_text(rc));
    return OK;
}

void slot_seal(struct disk_slot *slot)
{
    INVARIANT(slot->position >= 1);
    slot->crc = crc32c(0, (const uint8_t *)slot + sizeof(slot->crc), SLOT_SIZE - sizeof(slot->crc));
}

bool slot_valid(const struct disk_slot *slot, uint64_t position)
{
    return slot->position == position &&
           slot->crc == crc32c(0, (const uint8_t *)slot + sizeof(slot->crc), SLOT_SIZE - sizeof(slot->crc)) &&
           slot->names_size + slot->cause_size <= sizeof(slot->text) && slot->vocabulary >= VOCABULARY_RUN &&
           slot->vocabulary <= VOCABULARY_NODES && slot->status < 32;
}

struct disk_index index_of(const struct disk_slot *slot, struct str tenant, struct str plan, struct str run)
{
    struct disk_index index = {
        .status = slot->status,
        .flags = slot->flags & SLOT_INDEXED,
        .key = slot->key,
        .created_ms = slot->created_ms,
        .tenant = text_hash(tenant),
        .plan = text_hash(plan),
    };
    memcpy(index.run, run.ptr, run.len < sizeof(index.run) ? run.len : sizeof(index.run));
    index_seal(&index);
    return index;
}

void index_seal(struct disk_index *index)
{
    index->crc = crc32c(0, (const uint8_t *)index + sizeof(index->crc), sizeof(*index) - sizeof(index->crc));
}

bool index_valid(const struct disk_index *index)
{
    return index->crc == crc32c(0, (const uint8_t *)index + sizeof(index->crc), sizeof(*index) - sizeof(index->crc));
}
