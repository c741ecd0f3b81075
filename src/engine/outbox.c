// The files of the outbox. A line is the first 16 hex digits of the SHA-256 of what follows the space, and an object.
#include "engine/outbox.h"

#include "base/text.h"
#include "json/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_HEX = 16, FILES_MAX = 4096 };
#define ENDING ".outbox"

// ---- the directory

static enum code open_root(struct outbox *outbox, bool make, struct error *err)
{
    if (outbox->disk) return OK;
    if (!outbox->root) return error_set(err, E_UNSUPPORTED, "this store has no place for an outbox");
    if (!make && !os_is_dir(outbox->root)) return OK;
    enum code rc = make ? os_make_kept_dirs(outbox->root, err) : OK;
    return rc ? rc : os_disk_open(outbox->root, &outbox->disk, err);
}

enum code outbox_open(struct outbox *outbox, const struct store *store, struct disk *disk, struct error *err)
{
    struct str beside = store_beside(store);
    *outbox = (struct outbox){.disk = disk, .borrowed = disk != NULL};
    if (!disk && beside.len > 0) {
        size_t size = beside.len + sizeof("-outbox");
        outbox->root = malloc(size);
        if (!outbox->root) return error_nomem(err);
        snprintf(outbox->root, size, "%.*s-outbox", STR_ARG(beside));
    }
    enum code rc = disk || outbox->root ? open_root(outbox, false, err) : OK;
    outbox->next_sweep_mono = outbox->disk ? INT64_MIN : INT64_MAX;
    if (rc) outbox_close(outbox);
    return rc;
}

void outbox_close(struct outbox *outbox)
{
    if (outbox->file && outbox->disk) outbox->disk->ops->close(outbox->file);
    if (!outbox->borrowed && outbox->disk) os_disk_close(outbox->disk);
    free(outbox->root);
    *outbox = (struct outbox){0};
}

bool outbox_takes(const struct outbox *outbox)
{
    return !outbox->broken && outbox->size < OUTBOX_SIZE_MAX && (outbox->disk || outbox->root);
}

// ---- writing

static struct json position_json(const struct replay_cursor *after, struct arena *arena)
{
    char head[SHA256_HEX + 1], ledger[SHA256_HEX + 1];
    digest_hex(&after->head, head);
    digest_hex(&after->ledger_head, ledger);
    return JSON_OF(arena, {"head", json_string(arena_copy(arena, str_from(head)))},
                   {"ledgerHead", json_string(arena_copy(arena, str_from(ledger)))},
                   {"ledgerSeq", json_count(after->ledger_seq)}, {"runSeq", json_count(after->seq)});
}

enum code outbox_line(const struct outbox_entry *entry, struct buf *out, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)64 << 20);
    struct json moments = json_array();
    for (size_t i = 0; i < entry->count; i++) {
        struct json one;
        enum code rc = json_parse(entry->moments[i], NULL, &arena, &one, err);
        if (rc) return rc;
        json_append(&arena, &moments, one);
    }
    struct json line = JSON_OF(&arena, {"after", position_json(&entry->after, &arena)}, {"epoch", json_count(entry->epoch)},
                               {"moments", moments}, {"runId", json_string(entry->run)},
                               {"tenantId", json_string(entry->tenant)});
    struct buf text SCOPED(buf_release) = buf_of(OUTBOX_SIZE_MAX);
    json_canon(&text, &line);
    struct digest digest = sha256(buf_str(&text));
    char hex[SHA256_HEX + 1];
    digest_hex(&digest, hex);
    if (buf_ok(&text)) {
        buf_add(out, (struct str){hex, CHECK_HEX});
        buf_byte(out, ' ');
        buf_add(out, buf_str(&text));
        buf_byte(out, '\n');
    }
    bool ok = buf_ok(&text) && buf_ok(out);
    return ok ? OK : error_nomem(err);
}

static enum code make_file(struct outbox *outbox, struct entropy *entropy, struct error *err)
{
    char id[UUID_SIZE];
    entropy_uuid(entropy, id);
    snprintf(outbox->name, sizeof(outbox->name), "%s" ENDING, id);
    const struct disk_ops *ops = outbox->disk->ops;
    enum code rc = ops->open(outbox->disk, outbox->name, OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_EXCLUSIVE,
                             &outbox->file, err);
    if (rc) return rc;
    rc = ops->lock(outbox->file, 0, err);
    if (!rc) rc = ops->sync_dir(outbox->disk, "", err);
    if (!rc) return OK;
    ops->close(outbox->file);
    outbox->file = NULL;
    (void)!ops->remove(outbox->disk, outbox->name, NULL);
    return rc;
}

enum code outbox_write(struct outbox *outbox, struct str lines, struct entropy *entropy, struct error *err)
{
    INVARIANT(lines.len > 0 && lines.ptr[lines.len - 1] == '\n'); // readers look at whole lines alone
    if (outbox->broken) return error_set(err, E_IO, "the outbox failed before");
    if (outbox->size + lines.len > OUTBOX_SIZE_MAX)
        return error_set(err, E_LIMIT, "the outbox holds %" PRIu64 " bytes, and no more", outbox->size);
    enum code rc = open_root(outbox, true, err);
    if (!rc && !outbox->file) rc = make_file(outbox, entropy, err);
    if (rc) return rc;
    const struct disk_ops *ops = outbox->disk->ops;
    rc = ops->write(outbox->file, outbox->size, lines.ptr, lines.len, err);
    if (!rc) {
        rc = ops->sync(outbox->file, err);
        outbox->broken = rc != OK; // it may be on the disk and it may not
    }
    if (rc) {
        if (ops->truncate(outbox->file, outbox->size, NULL)) outbox->broken = true;
        return rc;
    }
    outbox->size += lines.len;
    INVARIANT(outbox->size <= OUTBOX_SIZE_MAX);
    return OK;
}

// Not synced: an entry that comes back after a power cut no longer stands behind the last records of its run.
void outbox_clear(struct outbox *outbox)
{
    if (!outbox->file || outbox->size == 0) return;
    struct error err = {0};
    if (outbox->disk->ops->truncate(outbox->file, 0, &err)) {
        os_log(LOG_WARN, "the outbox was not emptied why=\"%s\"", err.message);
        outbox->broken = true;
    }
    outbox->size = 0;
}

void outbox_leave(struct outbox *outbox)
{
    if (!outbox->file || outbox->size == 0) return;
    outbox->disk->ops->close(outbox->file);
    outbox->file = NULL;
    outbox->name[0] = '\0';
    outbox->size = 0;
    outbox->left = false;
    outbox->next_sweep_mono = INT64_MIN;
}

// ---- reading

static bool parse_position(const struct json *json, struct replay_cursor *out)
{
    int64_t seq = json_integer(json_key(json, "runSeq"), -1), ledger = json_integer(json_key(json, "ledgerSeq"), -1);
    out->seq = (uint64_t)seq;
    out->ledger_seq = (uint64_t)ledger;
    return seq >= 0 && ledger >= 0 && digest_parse(json_text(json_key(json, "head")), &out->head) &&
           digest_parse(json_text(json_key(json, "ledgerHead")), &out->ledger_head);
}

static bool parse_line(struct str line, struct arena *arena, struct outbox_entry *out)
{
    struct json json;
    char hex[SHA256_HEX + 1];
    if (line.len <= CHECK_HEX + 1 || line.ptr[CHECK_HEX] != ' ') return false;
    struct str text = str_slice(line, CHECK_HEX + 1, line.len);
    struct digest digest = sha256(text);
    digest_hex(&digest, hex);
    if (memcmp(hex, line.ptr, CHECK_HEX) != 0 || json_parse(text, NULL, arena, &json, NULL)) return false;
    const struct json *moments = json_key(&json, "moments");
    if (!json_is(moments, JSON_ARRAY) || !parse_position(json_key(&json, "after"), &out->after)) return false;
    struct str *texts = ARENA_ARRAY(arena, moments->count + 1, struct str);
    for (uint32_t i = 0; texts && i < moments->count; i++) {
        struct buf one = buf_of(OUTBOX_SIZE_MAX);
        json_canon(&one, &moments->items[i]);
        texts[i] = buf_keep(&one, arena);
        if (!texts[i].ptr) return false;
    }
    out->tenant = json_text(json_key(&json, "tenantId"));
    out->run = json_text(json_key(&json, "runId"));
    out->epoch = (uint64_t)json_integer(json_key(&json, "epoch"), 0);
    out->moments = texts;
    out->count = moments->count;
    return texts && out->run.len > 0;
}

struct names {
    struct arena *arena;
    struct str *items;
    size_t count, capacity;
};

static enum code see_name(void *context, struct str name, bool directory)
{
    struct names *names = context;
    if (directory || !str_ends(name, STR(ENDING)) || names->count >= FILES_MAX) return OK;
    if (!ARENA_ROOM(names->arena, names->items, names->count, &names->capacity)) return E_NOMEM;
    names->items[names->count] = arena_copy(names->arena, name);
    return names->items[names->count++].ptr ? OK : E_NOMEM;
}

static enum code list_names(struct outbox *outbox, struct arena *arena, struct names *out, struct error *err)
{
    *out = (struct names){.arena = arena};
    enum code rc = outbox->disk->ops->list(outbox->disk, "", see_name, out, err);
    if (rc == E_NOMEM) return error_nomem(err);
    return rc == E_NOT_FOUND ? OK : rc;
}

static enum code read_bytes(const struct disk *disk, struct file *file, struct arena *arena, struct str *out, struct error *err)
{
    uint64_t size = 0;
    size_t got = 0;
    enum code rc = disk->ops->size(file, &size, err);
    if (rc) return rc;
    if (size > 2 * (uint64_t)OUTBOX_SIZE_MAX) return error_set(err, E_LIMIT, "a file of the outbox is too large");
    char *bytes = arena_alloc(arena, (size_t)size + 1);
    if (!bytes) return error_nomem(err);
    if (size > 0) rc = disk->ops->read(file, 0, bytes, (size_t)size, &got, err);
    *out = (struct str){bytes, got};
    return rc;
}

static enum code read_name(struct outbox *outbox, struct str name, struct arena *arena, struct str *out, struct error *err)
{
    struct file *file;
    *out = (struct str){0};
    enum code rc = outbox->disk->ops->open(outbox->disk, name.ptr, OPEN_READ, &file, err);
    if (rc == E_NOT_FOUND) return OK; // it was emptied and removed meanwhile
    if (rc) return rc;
    rc = read_bytes(outbox->disk, file, arena, out, err);
    outbox->disk->ops->close(file);
    return rc;
}

struct found {
    struct outbox_entry **items;
    size_t count, capacity;
};

static enum code find_in(struct str bytes, struct str tenant, struct str run, struct arena *arena, struct found *found,
                         struct error *err)
{
    struct str rest = bytes;
    while (rest.len > 0) {
        size_t end = str_find(rest, '\n', 0);
        if (end >= rest.len) return OK;
        struct str line = str_slice(rest, 0, end);
        rest = str_slice(rest, end + 1, rest.len);
        if (!memmem(line.ptr, line.len, run.ptr, run.len)) continue;
        struct outbox_entry *entry = ARENA_NEW(arena, struct outbox_entry);
        if (!entry) return error_nomem(err);
        if (!parse_line(line, arena, entry)) return OK;
        if (!str_eq(entry->run, run) || !str_eq(entry->tenant, tenant)) continue;
        if (!ARENA_ROOM(arena, found->items, found->count, &found->capacity)) return error_nomem(err);
        found->items[found->count++] = entry;
    }
    return OK;
}

enum code outbox_of_run(struct outbox *outbox, struct str tenant, struct str run, struct arena *arena, outbox_visit visit,
                        void *context, struct error *err)
{
    struct names names;
    struct found found = {0};
    enum code rc = outbox->disk || outbox->root ? open_root(outbox, false, err) : OK;
    if (rc || !outbox->disk) return rc;
    rc = list_names(outbox, arena, &names, err);
    for (size_t i = 0; !rc && i < names.count; i++) {
        struct str bytes;
        rc = read_name(outbox, names.items[i], arena, &bytes, err);
        if (!rc) rc = find_in(bytes, tenant, run, arena, &found, err);
    }
    // The lines of one file and epoch are in their order already: a sort that keeps it.
    for (size_t i = 1; !rc && i < found.count; i++)
        for (size_t k = i; k > 0 && found.items[k - 1]->epoch > found.items[k]->epoch; k--) {
            struct outbox_entry *later = found.items[k - 1];
            found.items[k - 1] = found.items[k];
            found.items[k] = later;
        }
    for (size_t i = 0; !rc && i < found.count; i++) rc = visit(context, found.items[i]);
    return rc;
}

// ---- what others left

static enum code sweep_file(struct outbox *outbox, struct str name, bool (*settled)(void *, const struct outbox_entry *),
                            void *context, struct error *err)
{
    struct file *file;
    struct str bytes;
    const struct disk_ops *ops = outbox->disk->ops;
    if (str_is(name, outbox->name)) return OK;
    enum code rc = ops->open(outbox->disk, name.ptr, OPEN_READ | OPEN_WRITE, &file, err);
    if (rc) return rc == E_NOT_FOUND ? OK : rc;
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, (size_t)512 << 20);
    bool all = true;
    rc = ops->lock(file, 0, err);
    if (!rc) rc = read_bytes(outbox->disk, file, &arena, &bytes, err);
    while (!rc && bytes.len > 0) {
        size_t end = str_find(bytes, '\n', 0);
        struct outbox_entry entry;
        if (end >= bytes.len || !parse_line(str_slice(bytes, 0, end), &arena, &entry)) break;
        bytes = str_slice(bytes, end + 1, bytes.len);
        all = settled(context, &entry) && all;
    }
    if (!rc && all) rc = ops->remove(outbox->disk, name.ptr, err);
    ops->close(file);
    return rc == E_LOCKED ? OK : rc; // its process lives
}

enum code outbox_sweep(struct outbox *outbox, bool (*settled)(void *context, const struct outbox_entry *entry),
                       void *context, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)16 << 20);
    struct names names;
    enum code rc = outbox->disk ? list_names(outbox, &arena, &names, err) : OK;
    for (size_t i = 0; !rc && outbox->disk && i < names.count; i++)
        rc = sweep_file(outbox, names.items[i], settled, context, err);
    return rc;
}
