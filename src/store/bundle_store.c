// "bundle:FILE" as a store: everything that reads a store reads a bundle. Nothing is written. Signatures and the hashes of members are the
// business of the command that wants proof (src/archive); what is here is as good as the hash chain of each run.
#include "base/map.h"
#include "store/bundle.h"
#include "store/lines.h"
#include "store/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_KEY_MAX = 512 };

struct bundle_run {
    struct run_head head;
    struct str text[2];   // events, ledger
    uint64_t *offsets[2]; // of lines; NULL: not looked for yet
    size_t counts[2];
};

struct bundle_store {
    struct store base;
    struct bundle bundle;
    bool opened, redacted;
    struct bundle_run *runs;
    size_t count;
    struct map by_path, by_run; // by_run: "tenant/run"
    struct arena arena;         // heads
};

static struct bundle_store *bundle_of(const struct store *store)
{
    return CONTAINER_OF((void *)(uintptr_t)store, struct bundle_store, base);
}

// ---- lines

bool bundle_run_write(const struct run_head *head, struct arena *arena, struct buf *out)
{
    struct json line;
    if (!run_head_json(head, arena, &line)) return false;
    json_canon(out, &line);
    buf_byte(out, '\n');
    return buf_ok(out);
}

void bundle_ledger_write(const struct record *entry, struct buf *out)
{
    ledger_line_write(out, entry);
}

// ---- opening

static enum code read_manifest(struct bundle_store *store, size_t *runs, struct error *err)
{
    const struct bundle_member *member = bundle_find(&store->bundle, STR(BUNDLE_MANIFEST));
    struct json manifest;
    if (!member) return error_set(err, E_CORRUPT, "the bundle has no %s", BUNDLE_MANIFEST);
    if (json_parse(member->bytes, &json_limits_default, &store->arena, &manifest, NULL) ||
        !str_is(json_text(json_key(&manifest, "format")), "cairn-bundle"))
        return error_set(err, E_CORRUPT, "%s of the bundle is damaged", BUNDLE_MANIFEST);
    int64_t version = json_integer(json_key(&manifest, "version"), 0);
    if (version > BUNDLE_VERSION)
        return error_set(err, E_VERSION, "the bundle has format %lld, this version of Cairn reads up to %d",
                         (long long)version, BUNDLE_VERSION);
    const struct json *redacted = json_key(&manifest, "redacted");
    store->redacted = json_true(redacted);
    int64_t count = json_integer(json_key(&manifest, "runs"), -1);
    if (count < 0 || (uint64_t)count > store->bundle.file.len || version < 1)
        return error_set(err, E_CORRUPT, "%s of the bundle is damaged", BUNDLE_MANIFEST);
    *runs = (size_t)count;
    return OK;
}

static struct str member_text(const struct bundle_store *store, const char *path)
{
    uint32_t at = map_get(&store->by_path, str_from(path));
    return at == MAP_NONE ? (struct str){"", 0} : store->bundle.members[at].bytes;
}

static enum code index_run(struct bundle_store *store, const struct run_ids *ids, struct error *err)
{
    char text[RUN_KEY_MAX];
    uint32_t twin = MAP_NONE;
    int len = snprintf(text, sizeof(text), "%.*s/%.*s", STR_ARG(ids->tenant), STR_ARG(ids->run));
    if (len >= RUN_KEY_MAX) return error_set(err, E_CORRUPT, "line %zu of %s is damaged", store->count, BUNDLE_RUNS);
    struct str key = arena_copy(&store->arena, (struct str){text, (size_t)len});
    if (!key.ptr || !map_put(&store->by_run, key, (uint32_t)(store->count - 1), &twin)) return error_nomem(err);
    if (twin == MAP_NONE) return OK;
    return error_set(err, E_CORRUPT, "the bundle has run %.*s twice", STR_ARG(ids->run));
}

static enum code read_runs(struct bundle_store *store, size_t count, struct error *err)
{
    struct str rest = member_text(store, BUNDLE_RUNS);
    store->runs = ARENA_ARRAY(&store->arena, count + 1, struct bundle_run);
    if (!store->runs) return error_nomem(err);
    while (rest.len > 0 && store->count < count) {
        struct bundle_run *run = &store->runs[store->count++];
        struct json line;
        char path[64];
        if (json_parse(str_cut(rest, '\n', &rest), &json_limits_default, &store->arena, &line, NULL) ||
            !run_head_read(&line, &run->head))
            return error_set(err, E_CORRUPT, "line %zu of %s is damaged", store->count, BUNDLE_RUNS);
        enum code rc = index_run(store, &run->head.ids, err);
        if (rc) return rc;
        run->head.position = store->count;
        snprintf(path, sizeof(path), "runs/%zu/events.jsonl", store->count);
        run->text[0] = member_text(store, path);
        snprintf(path, sizeof(path), "runs/%zu/ledger.jsonl", store->count);
        run->text[1] = member_text(store, path);
    }
    if (rest.len > 0 || store->count != count)
        return error_set(err, E_CORRUPT, "%s and %s of the bundle disagree about the number of runs", BUNDLE_RUNS,
                         BUNDLE_MANIFEST);
    return OK;
}

static enum code index_members(struct bundle_store *store, struct error *err)
{
    map_init(&store->by_path, &store->arena);
    map_init(&store->by_run, &store->arena);
    for (size_t i = 0; i < store->bundle.count; i++) {
        uint32_t twin = MAP_NONE;
        if (!map_put(&store->by_path, store->bundle.members[i].path, (uint32_t)i, &twin)) return error_nomem(err);
        if (twin != MAP_NONE)
            return error_set(err, E_CORRUPT, "the bundle has %.*s twice", STR_ARG(store->bundle.members[i].path));
    }
    return OK;
}

static void bundle_store_close(struct store *base)
{
    struct bundle_store *store = bundle_of(base);
    for (size_t i = 0; i < store->count; i++) {
        free(store->runs[i].offsets[0]);
        free(store->runs[i].offsets[1]);
    }
    if (store->opened) bundle_close(&store->bundle);
    arena_release(&store->arena);
    free(store);
}

// ---- reading

// NULL: E_NOT_FOUND.
static struct bundle_run *find_run(struct bundle_store *store, struct str tenant, struct str run, struct error *err)
{
    char key[RUN_KEY_MAX];
    int len = snprintf(key, sizeof(key), "%.*s/%.*s", STR_ARG(tenant), STR_ARG(run));
    uint32_t at = len < RUN_KEY_MAX ? map_get(&store->by_run, (struct str){key, (size_t)len}) : MAP_NONE;
    if (at != MAP_NONE) return &store->runs[at];
    (void)run_missing(run, err);
    return NULL;
}

static enum code bundle_head(struct store *base, struct str tenant, struct str run, struct arena *arena UNUSED,
                             struct run_head *out, struct error *err)
{
    const struct bundle_run *found = find_run(bundle_of(base), tenant, run, err);
    if (!found) return E_NOT_FOUND;
    *out = found->head;
    return OK;
}

static enum code bundle_list(struct store *base, const struct run_filter *filter, struct arena *arena,
                             struct run_heads *out, struct error *err)
{
    const struct bundle_store *store = bundle_of(base);
    size_t capacity = 0;
    for (size_t i = store->count; i > 0; i--) {
        const struct run_head *head = &store->runs[i - 1].head;
        if (!run_filter_matches(filter, head)) continue;
        if (out->count == filter->limit) {
            out->next = out->items[out->count - 1].position;
            return OK;
        }
        if (!ARENA_ROOM(arena, out->items, out->count, &capacity)) return error_nomem(err);
        out->items[out->count++] = *head;
    }
    return OK;
}

// Where each line begins. A last line without its end counts, so that it is looked at and found wrong.
static enum code find_lines(struct bundle_run *run, int kind, struct error *err)
{
    struct str text = run->text[kind];
    if (run->offsets[kind]) return OK;
    size_t count = 0;
    for (size_t at = 0; at < text.len; at = str_find(text, '\n', at) + 1) count++;
    run->offsets[kind] = malloc((count + 1) * sizeof(uint64_t));
    if (!run->offsets[kind]) return error_nomem(err);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        run->offsets[kind][i] = at;
        at = str_find(text, '\n', at) + 1;
    }
    run->offsets[kind][count] = at; // behind the newline that ought to be there
    run->counts[kind] = count;
    return OK;
}

static bool take_redacted(struct str line, uint64_t number, enum vocabulary vocabulary, struct arena *arena,
                          struct record *out)
{
    struct str record = line_member(line, "record");
    struct str hash = line_member(line_member(line, "redacted"), "hash");
    struct digest digest;
    if (record.len == 0 || hash.len != SHA256_HEX + 2 || !digest_parse(str_slice(hash, 1, hash.len - 1), &digest))
        return false;
    event_line_read(record, number, vocabulary, arena, out);
    out->redacted = true;
    out->hash = digest;
    return true;
}

static enum code bundle_read(struct store *base, const struct record_range *range, struct arena *arena,
                             struct records *out, struct error *err)
{
    struct bundle_store *store = bundle_of(base);
    int kind = range->ledger ? 1 : 0;
    struct bundle_run *found = find_run(store, range->tenant, range->run, err);
    if (!found) return E_NOT_FOUND;
    enum code rc = find_lines(found, kind, err);
    if (rc || range->after >= found->counts[kind]) return rc;
    size_t count = found->counts[kind] - (size_t)range->after;
    if (count > range->limit) count = range->limit;
    out->items = ARENA_ARRAY(arena, count, struct record);
    if (!out->items) return error_nomem(err);
    for (; out->count < count; out->count++) {
        size_t i = (size_t)range->after + out->count;
        struct str line = str_slice(found->text[kind], found->offsets[kind][i], found->offsets[kind][i + 1] - 1);
        struct record *record = &out->items[out->count];
        if (range->ledger) {
            ledger_line_read(line, i + 1, arena, record);
            record->redacted = store->redacted;
        } else if (!store->redacted || !take_redacted(line, i + 1, found->head.vocabulary, arena, record)) {
            event_line_read(line, i + 1, found->head.vocabulary, arena, record);
        }
    }
    return OK;
}

static enum code bundle_blob(struct store *base, const struct digest *digest, struct arena *arena UNUSED,
                             struct str *out, struct error *err)
{
    char path[SHA256_HEX + 8] = "blobs/";
    digest_hex(digest, path + strlen(path));
    uint32_t at = map_get(&bundle_of(base)->by_path, str_from(path));
    if (at == MAP_NONE) return error_set(err, E_NOT_FOUND, "%s is not in the bundle", path);
    *out = bundle_of(base)->bundle.members[at].bytes;
    struct digest found = sha256(*out);
    if (!digest_eq(&found, digest)) return error_set(err, E_CORRUPT, "%s of the bundle is damaged", path);
    return OK;
}

#define READ_ONLY "a bundle can only be read; `cairn log import FILE` takes its runs into a store"
static const struct store_ops bundle_ops = {
    .kind = "bundle",
    .read_only = READ_ONLY,
    .log = {NO_WRITING,
            .head = bundle_head,
            .list = bundle_list,
            .read = bundle_read,
            .blob = bundle_blob,
            .post = absent_post},
    .notes = NO_NOTES,
    .feed = NO_FEED,
    .admin = {NO_UPKEEP,
              .freeze = absent_freezing,
              .beside = store_beside_url,
              .run_dir = absent_run_dir,
              .file = store_local_file,
              .close = bundle_store_close},
};

enum code store_open_bundle(struct str path, const struct store_options *options, struct store **out, struct error *err)
{
    if (options->mode == STORE_WRITE) return error_set(err, E_DENIED, "%s", READ_ONLY);
    struct bundle_store *store = calloc(1, sizeof(*store));
    if (!store) return error_nomem(err);
    store->base.ops = &bundle_ops;
    store->base.options = *options;
    arena_init(&store->arena, 16 * 1024, SIZE_MAX);
    struct str name = arena_copy(&store->arena, path);
    size_t runs = 0;
    enum code rc = name.ptr ? bundle_open(name.ptr, &store->bundle, err) : error_nomem(err);
    store->opened = rc == OK;
    if (!rc) rc = index_members(store, err);
    if (!rc) rc = read_manifest(store, &runs, err);
    if (!rc) rc = read_runs(store, runs, err);
    if (rc) {
        bundle_store_close(&store->base);
        return rc;
    }
    *out = &store->base;
    return OK;
}
