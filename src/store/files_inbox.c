// Blobs and the inbox: whole files, written under another name, synced, renamed, and the directory synced.
//
// An inbox item is named {seq}-{hash}.json. seq, one more than the highest in the directory, keeps the order of posting; hash, of what was
// posted, is its id: two processes may draw the same seq, and posting the same signal twice is posting it once. Settled items are removed
// after their batch is durable, and again when the batch is replayed.
#include "json/make.h"
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INBOX ".cairn/inbox"
#define ITEM_SIZE_MAX ((size_t)4 << 20)
#define BLOB_SIZE_MAX ((uint64_t)1 << 32)

// Content to `path` by way of `temporary`; durable when it returns, but for the directory.
static enum code write_whole(struct files_store *files, const char *temporary, const char *path, struct str bytes,
                             struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    struct file *file;
    enum code rc = ops->open(files->disk, temporary, OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE, &file, err);
    if (rc != OK) return rc;
    rc = ops->write(file, 0, bytes.ptr, bytes.len, err);
    if (rc == OK) rc = ops->sync(file, err);
    ops->close(file);
    if (rc == OK)
        rc = ops->rename(files->disk, temporary, path, err);
    else
        (void)!ops->remove(files->disk, temporary, NULL);
    return rc;
}

static enum code read_whole(struct files_store *files, const char *path, uint64_t max, struct arena *arena,
                            struct str *out, struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    struct file *file;
    uint64_t size = 0;
    size_t got = 0;
    enum code rc = ops->open(files->disk, path, OPEN_READ, &file, err);
    if (rc != OK) return rc;
    rc = ops->size(file, &size, err);
    if (rc == OK && size > max) rc = error_set(err, E_LIMIT, "%s is too large", path);
    char *bytes = rc == OK ? arena_alloc(arena, (size_t)size + 1) : NULL;
    if (rc == OK && !bytes) rc = error_nomem(err);
    if (rc == OK) rc = ops->read(file, 0, bytes, (size_t)size, &got, err);
    ops->close(file);
    *out = (struct str){bytes, got};
    return rc;
}

// ---- blobs

void files_blob_path(const struct digest *sha256, const char *end, char path[PATH_SIZE], char dir[32])
{
    char hex[SHA256_HEX + 1];
    digest_hex(sha256, hex);
    snprintf(dir, 32, ".cairn/blobs/%.2s", hex);
    snprintf(path, PATH_SIZE, "%s/%s%s", dir, hex, end);
}

// The directories are synced even when the blob is there: its writer may have died before.
enum code files_write_blob(struct files_store *files, const struct append_blob *blob, struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    char path[PATH_SIZE], temporary[PATH_SIZE], dir[32];
    files_blob_path(&blob->sha256, ".tmp", temporary, dir);
    files_blob_path(&blob->sha256, "", path, dir);
    struct file *file;
    enum code rc = ops->open(files->disk, path, OPEN_READ, &file, NULL);
    if (rc == OK) {
        uint64_t size = 0;
        rc = ops->size(file, &size, err);
        ops->close(file);
        if (rc == OK && size == blob->bytes.len) {
            rc = ops->sync_dir(files->disk, dir, err);
            return rc == OK ? ops->sync_dir(files->disk, ".cairn/blobs", err) : rc;
        }
    }
    rc = ops->make_dir(files->disk, dir, err);
    if (rc == OK) rc = write_whole(files, temporary, path, blob->bytes, err);
    if (rc == OK) rc = ops->sync_dir(files->disk, dir, err);
    return rc == OK ? ops->sync_dir(files->disk, ".cairn/blobs", err) : rc;
}

enum code files_blob(struct store *base, const struct digest *sha256_wanted, struct arena *arena, struct str *out,
                     struct error *err)
{
    char path[PATH_SIZE], dir[32];
    files_blob_path(sha256_wanted, "", path, dir);
    struct str bytes;
    enum code rc = read_whole(files_of(base), path, BLOB_SIZE_MAX, arena, &bytes, err);
    if (rc != OK) return rc;
    struct digest hash = sha256(bytes);
    if (!digest_eq(&hash, sha256_wanted)) return error_set(err, E_CORRUPT, "blob %s is damaged", path);
    *out = bytes;
    return OK;
}

// ---- inbox

struct item_name {
    uint64_t seq, id;
};

static bool parse_hex(struct str text, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return text.len == 16;
}

static bool parse_name(struct str name, struct item_name *out)
{
    return name.len == 38 && name.ptr[16] == '-' && str_ends(name, STR(".json")) &&
           parse_hex(str_slice(name, 0, 16), &out->seq) && parse_hex(str_slice(name, 17, 33), &out->id) &&
           out->id <= INT64_MAX;
}

static void item_path(const struct item_name *name, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, INBOX "/%016" PRIx64 "-%016" PRIx64 ".json", name->seq, name->id);
}

struct item_names {
    struct item_name *items;
    size_t count, capacity;
};

static enum code see_item(void *context, struct str name, bool directory UNUSED)
{
    struct item_names *names = context;
    struct item_name item;
    if (!parse_name(name, &item)) return OK;
    if (!LIST_ROOM(names->items, names->count, &names->capacity)) return E_NOMEM;
    names->items[names->count++] = item;
    return OK;
}

static int compare_names(const void *a, const void *b)
{
    const struct item_name *x = a, *y = b;
    if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

// In the order of posting. The caller frees items, also after a failure.
static enum code list_items(struct files_store *files, struct item_names *out, struct error *err)
{
    *out = (struct item_names){0};
    enum code rc = files->disk->ops->list(files->disk, INBOX, see_item, out, err);
    if (rc != OK) return error_set(err, rc, "cannot list the inbox");
    if (out->count > 1) qsort(out->items, out->count, sizeof(*out->items), compare_names);
    return OK;
}

static bool encode_item(struct str tenant, struct str run, struct str signal_id, struct str bytes, struct arena *arena,
                        struct buf *out)
{
    struct json item = JSON_OF(arena, {"bytes", json_string(bytes)}, {"run", json_string(run)},
                               {"signalId", json_string(signal_id)}, {"tenant", json_string(tenant)});
    json_canon(out, &item); // what could not be made fails the buf
    return buf_ok(out);
}

static enum code post_item(struct files_store *files, struct str content, struct error *err)
{
    struct digest hash = sha256(content);
    struct item_name name = {.seq = 1};
    struct item_names waiting;
    memcpy(&name.id, hash.b, sizeof(name.id));
    name.id >>= 1;
    enum code rc = list_items(files, &waiting, err);
    bool there = false;
    for (size_t i = 0; rc == OK && i < waiting.count; i++) {
        there = there || waiting.items[i].id == name.id;
        name.seq = waiting.items[i].seq + 1;
    }
    free(waiting.items);
    if (rc == OK && !there) {
        char path[PATH_SIZE], temporary[PATH_SIZE + 32];
        item_path(&name, path);
        snprintf(temporary, sizeof(temporary), "%s.%lld.tmp", path, (long long)getpid());
        rc = write_whole(files, temporary, path, content, err);
    }
    return rc == OK ? files->disk->ops->sync_dir(files->disk, INBOX, err) : rc;
}

enum code files_post(struct store *base, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                     struct error *err)
{
    struct files_store *files = files_of(base);
    struct disk_slot slot;
    uint64_t position;
    enum code rc = files_need(files, tenant, run, &position, &slot, err);
    if (rc != OK) return rc;
    if (!str_utf8(bytes) || !str_utf8(signal_id)) return error_set(err, E_INVALID, "a signal is UTF-8 text");
    struct buf content SCOPED(buf_release) = buf_of(ITEM_SIZE_MAX);
    struct arena arena SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    if (encode_item(tenant, run, signal_id, bytes, &arena, &content))
        rc = post_item(files, buf_str(&content), err);
    else
        rc = error_set(err, E_LIMIT, "the signal is too large");
    return rc;
}

// False when it is being written or removed this moment, or is no item at all.
static bool read_item(struct files_store *files, const struct item_name *name, struct arena *arena,
                      struct inbox_item *out)
{
    char path[PATH_SIZE];
    struct str bytes;
    struct json item;
    item_path(name, path);
    if (read_whole(files, path, ITEM_SIZE_MAX, arena, &bytes, NULL) != OK) return false;
    struct json_limits limits = json_limits_default;
    limits.size_max = limits.string_size_max = ITEM_SIZE_MAX;
    if (json_parse(bytes, &limits, arena, &item, NULL) != OK) return false;
    *out = (struct inbox_item){
        .id = (int64_t)name->id,
        .tenant = json_text(json_key(&item, "tenant")),
        .run = json_text(json_key(&item, "run")),
        .signal_id = json_text(json_key(&item, "signalId")),
        .bytes = json_text(json_key(&item, "bytes")),
    };
    return out->run.len > 0;
}

enum code files_inbox(struct store *base, struct arena *arena, struct inbox_item **items, size_t *count,
                      struct error *err)
{
    struct files_store *files = files_of(base);
    struct item_names names;
    enum code rc = list_items(files, &names, err);
    if (rc == OK && names.count > 0) {
        *items = ARENA_ARRAY(arena, names.count, struct inbox_item);
        if (!*items) rc = error_nomem(err);
        for (size_t i = 0; rc == OK && i < names.count; i++)
            if (read_item(files, &names.items[i], arena, &(*items)[*count])) (*count)++;
    }
    free(names.items);
    return rc;
}

static bool is_settled(struct str frame, const struct frame_header *header, uint64_t id)
{
    for (uint32_t i = 0; i < header->inbox_count; i++)
        if ((uint64_t)frame_inbox(frame, i) == id) return true;
    return false;
}

enum code files_settle_inbox(struct files_store *files, struct str frame, struct error *err)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct item_names names;
    if (!frame_begin(frame, &header, &cursor)) return error_set(err, E_CORRUPT, "a frame of the journal is malformed");
    enum code rc = list_items(files, &names, err);
    for (size_t i = 0; rc == OK && i < names.count; i++) {
        char path[PATH_SIZE];
        struct error told = {.code = OK};
        if (!is_settled(frame, &header, names.items[i].id)) continue;
        item_path(&names.items[i], path);
        rc = files->disk->ops->remove(files->disk, path, &told);
        rc = rc == E_NOT_FOUND ? OK : rc;
        if (rc != OK) error_set(err, rc, "%s", told.message);
    }
    free(names.items);
    return rc;
}
