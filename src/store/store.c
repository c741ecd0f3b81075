#include "program/program.h"
#include "store/backend.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// No table has a hole. Methods lie one behind the other from the first table on.
static bool is_whole(const struct store_ops *ops)
{
    const size_t from = offsetof(struct store_ops, log);
    for (size_t at = from; at < sizeof(*ops); at += sizeof(void (*)(void))) {
        void (*method)(void);
        memcpy(&method, (const char *)ops + at, sizeof(method));
        if (!method) return false;
    }
    return ops->kind && (sizeof(*ops) - from) % sizeof(void (*)(void)) == 0;
}

enum code store_open(struct str url, const struct store_options *options, struct store **out, struct error *err)
{
    INVARIANT(options->mode == STORE_READ || options->mode == STORE_WRITE);
    *out = NULL;
    struct str path;
    struct str scheme = str_cut(url, ':', &path);
    enum code rc;
    if (scheme.len == url.len)
        return error_set(err, E_INVALID,
                         "store \"%.*s\": expected sqlite:PATH, files:DIRECTORY, postgres://..., bundle:FILE, memory: "
                         "or the URL of a "
                         "server",
                         STR_ARG(url));
    if (!str_is(scheme, "memory") && path.len == 0)
        return error_set(err, E_INVALID, "store \"%.*s\": no path after the colon", STR_ARG(url));
    if (memchr(url.ptr, '\0', url.len)) return error_set(err, E_INVALID, "store: the path holds a NUL byte");
    struct store *store = NULL;
    if (str_is(scheme, "sqlite"))
        rc = store_open_sqlite(path, options, &store, err);
    else if (str_is(scheme, "files"))
        rc = store_open_files(path, options, &store, err);
    else if (str_is(scheme, "bundle"))
        rc = store_open_bundle(path, options, &store, err);
    else if (str_is(scheme, "memory"))
        rc = store_open_memory(path, options, &store, err);
    else if (str_is(scheme, "postgres") || str_is(scheme, "postgresql"))
        rc = store_open_postgres(url, options, &store, err);
    else if (STR_AMONG(scheme, "http", "https", "unix"))
        rc = store_open_server(url, options, &store, err);
    else
        return error_set(
            err, E_INVALID,
            "store \"%.*s\": unknown kind \"%.*s\" (sqlite, files, postgres, bundle, memory, http, https, unix)",
            STR_ARG(url), STR_ARG(scheme));
    if (rc) {
        char shown[200];
        store_hide_password(url, shown, sizeof(shown));
        bool server = STR_AMONG(scheme, "http", "https", "unix");
        if (rc != E_UNREACHABLE || !server) error_wrap(err, "store %s", shown);
        return rc;
    }
    INVARIANT(store && is_whole(store->ops));
    store->url = strndup(url.ptr, url.len);
    if (!store->url) {
        store_close(store);
        return error_nomem(err);
    }
    *out = store;
    return OK;
}

void store_close(struct store *store)
{
    if (!store) return;
    char *url = store->url;
    store_patience_close(store);
    store->ops->admin.close(store);
    free(url);
}

const char *store_kind(const struct store *store)
{
    return store->ops->kind;
}

struct str store_url(const struct store *store)
{
    return str_from(store->url);
}

struct str store_beside_url(const struct store *store)
{
    struct str path;
    str_cut(str_from(store->url), ':', &path);
    return path;
}

struct str store_beside(const struct store *store)
{
    return store->ops->admin.beside(store);
}

bool store_is_remote(const struct store *store)
{
    return store->ops->remote;
}

struct str store_tenant(const struct store *store)
{
    return store->tenant;
}

const struct store_recovery *store_recovered(const struct store *store)
{
    return &store->recovery;
}

enum code store_artifacts_dir(const struct store *store, const struct run_ids *ids, struct arena *arena,
                              struct str *out)
{
    if (store->options.artifacts) return run_dir_path(str_from(store->options.artifacts), "artifacts", ids, arena, out);
    return store->ops->admin.run_dir(store, ids, "artifacts", arena, out);
}

// Takes the last part of a path off it.
static struct str take_last(struct str *path)
{
    size_t from = path->len;
    while (from > 0 && path->ptr[from - 1] != '/') from--;
    struct str part = str_slice(*path, from, path->len);
    *path = str_slice(*path, 0, from > 0 ? from - 1 : 0);
    return part;
}

// One of the last two parts of such a path is the run that it is of.
static enum code own_dir(const struct store *store, const struct run_ids *ids, struct str said, struct arena *arena, struct str *out)
{
    struct run_ids other = *ids;
    struct str rest = said;
    for (int tries = 0; tries < 2; tries++) {
        other.run = take_last(&rest);
        if (!run_id_valid(other.run)) continue;
        enum code rc = store_artifacts_dir(store, &other, arena, out);
        if (rc || str_eq(*out, said)) return rc;
    }
    return store_artifacts_dir(store, ids, arena, out);
}

enum code store_files_dir(const struct store *store, const struct run_ids *ids, struct str said, struct arena *arena,
                          struct str *out)
{
    const struct str token = STR(FILES_OF_RUN);
    struct run_ids other = *ids;
    if (str_starts(said, token)) {
        other.run = str_slice(said, token.len, said.len);
        return store_artifacts_dir(store, run_id_valid(other.run) ? &other : ids, arena, out);
    }
    if (store->options.own_files) return own_dir(store, ids, said, arena, out);
    *out = arena_copy(arena, said);
    return out->ptr ? OK : E_NOMEM;
}

enum code store_logs_dir(const struct store *store, const struct run_ids *ids, struct arena *arena, struct str *out)
{
    *out = (struct str){0};
    return store->options.artifacts ? OK : store->ops->admin.run_dir(store, ids, "logs", arena, out);
}

enum code run_dir_path(struct str base, const char *what, const struct run_ids *ids, struct arena *arena,
                       struct str *out)
{
    bool plain = str_is(ids->tenant, "default");
    const struct str parts[] = {base,
                                STR("-"),
                                str_from(what),
                                STR("/"),
                                plain ? STR("") : STR("@"),
                                plain ? STR("") : ids->tenant,
                                plain ? STR("") : STR("/"),
                                ids->run};
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) len += parts[i].len;
    char *path = arena_alloc(arena, len + 1);
    if (!path) return E_NOMEM;
    *out = (struct str){path, len};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i].len) memcpy(path, parts[i].ptr, parts[i].len);
        path += parts[i].len;
    }
    return OK;
}

// ---- runs

enum { ID_SIZE_MAX = 200 };

// Ids become names of files and parts of keys.
static bool id_fits(struct str id)
{
    if (id.len == 0 || id.len > ID_SIZE_MAX || !str_utf8(id)) return false;
    if (id.ptr[0] == '.' || id.ptr[0] == '@') return false;
    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.ptr[i];
        if (c < 0x20 || c == 0x7f || c == '|' || c == '/' || c == '\\') return false;
    }
    return true;
}

static struct str keep(char **to, struct str s)
{
    char *start = *to;
    if (s.len) memcpy(start, s.ptr, s.len);
    start[s.len] = '\0';
    *to = start + s.len + 1;
    return (struct str){start, s.len};
}

// The log and its strings are one piece of memory.
static struct run_log *run_log_new(struct store *store, const struct run_create *from)
{
    const struct run_ids *ids = &from->ids;
    size_t len = ids->tenant.len + ids->project.len + ids->environment.len + ids->run.len + ids->plan_id.len +
                 ids->plan_version.len + from->name.len + from->parent_run.len + from->original_run.len + 9;
    struct run_log *log = malloc(sizeof(*log) + len);
    if (!log) return NULL;
    *log = (struct run_log){
        .store = store,
        .vocabulary = from->vocabulary,
        .document = from->document,
        .memory = (char *)(log + 1),
    };
    char *to = log->memory;
    log->ids.tenant = keep(&to, ids->tenant);
    log->ids.project = keep(&to, ids->project);
    log->ids.environment = keep(&to, ids->environment);
    log->ids.run = keep(&to, ids->run);
    log->ids.plan_id = keep(&to, ids->plan_id);
    log->ids.plan_version = keep(&to, ids->plan_version);
    log->name = keep(&to, from->name);
    log->parent_run = keep(&to, from->parent_run);
    log->original_run = keep(&to, from->original_run);
    INVARIANT((size_t)(to - log->memory) == len);
    return log;
}

static void run_log_free(struct run_log *log)
{
    INVARIANT(log->touched == 0);
    key_set_release(&log->keys);
    free(log);
}

enum code store_found_restoring(struct store *store, struct error *err)
{
    INVARIANT(store->ops && !store->dead);
    store->restoring = true;
    if (store->options.restoring) return OK;
    return error_set(err, E_CORRUPT,
                     "a restore into it did not end, so it holds only a part; `cairn store restore` goes on with it");
}

bool store_is_restoring(const struct store *store)
{
    return store->restoring;
}

enum code store_restoring(struct store *store, bool begun, struct error *err)
{
    enum code rc = store_writable(store, err);
    if (!rc) rc = store_heed(store, store->ops->admin.restoring(store, begun, err));
    if (!rc) store->restoring = begun;
    return rc;
}

enum code store_writable(const struct store *store, struct error *err)
{
    if (store->options.mode != STORE_WRITE) return error_set(err, E_DENIED, "the store is open for reading only");
    if (store->dead) return error_set(err, E_IO, "the store failed before; it must be opened again");
    return OK;
}

enum code store_heed(struct store *store, enum code rc)
{
    INVARIANT(store->ops);
    if (rc == E_IO && store->options.mode == STORE_WRITE) store->dead = true;
    return rc;
}

static uint32_t next_place(struct store *store)
{
    INVARIANT(store->placed <= SHARD_COUNT);
    if (store->place == 0) return 0;
    do store->placed = store->placed % SHARD_COUNT + 1;
    while (!(store->place >> (store->placed - 1) & 1));
    return store->placed;
}

static enum code look_for(struct store *store, const struct run_create *create, struct error *err)
{
    struct arena scratch SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    struct run_head head;
    enum code rc = store->ops->log.head(store, create->ids.tenant, create->ids.run, &scratch, &head, NULL);
    if (rc == OK) return error_set(err, E_EXISTS, "run %.*s exists", STR_ARG(create->ids.run));
    if (rc == E_NOT_FOUND) return OK;
    return error_set(err, rc, "cannot look for run %.*s: %s", STR_ARG(create->ids.run), code_text(rc));
}

enum code store_create_run(struct store *store, const struct run_create *create, struct run_log **out,
                           struct error *err)
{
    *out = NULL;
    enum code rc = store_writable(store, err);
    if (rc) return rc;
    INVARIANT(create->vocabulary >= VOCABULARY_RUN && create->vocabulary <= VOCABULARY_NODES);
    if (!id_fits(create->ids.tenant))
        return error_set(err, E_INVALID, "tenant id \"%.*s\" cannot be used", STR_ARG(create->ids.tenant));
    if (!id_fits(create->ids.run))
        return error_set(err, E_INVALID, "run id \"%.*s\" cannot be used", STR_ARG(create->ids.run));
    rc = create->fresh ? OK : look_for(store, create, err);
    if (rc) return rc;
    if (store->member && store->place == 0 && create->shard == 0) // it would be nobody's when we die
        return error_set(err, E_LOCKED, "this engine has no shard just now");
    struct run_log *log = run_log_new(store, create);
    if (!log) return error_nomem(err);
    log->epoch = 1;
    log->member = store->member;
    log->shard = create->shard ? create->shard : next_place(store);
    log->keys_loaded = true;
    log->summary.status = RUN_STATUS_PENDING;
    *out = log;
    return OK;
}

enum code store_claim_run(struct store *store, struct str tenant, struct str run, struct run_log **out,
                          struct error *err)
{
    *out = NULL;
    enum code rc = store_writable(store, err);
    if (!rc && store->fenced) rc = shard_fenced(store, err); // it must join again first
    if (rc) return rc;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    struct run_head head = {0};
    int64_t backend_id = 0;
    struct run_log *log = NULL;
    rc = store_heed(store, store->ops->log.claim(store, tenant, run, &head, &scratch, &backend_id, err));
    if (!rc) {
        log = run_log_new(store, &(struct run_create){
                                     .ids = head.ids,
                                     .vocabulary = head.vocabulary,
                                     .document = head.document,
                                     .name = head.name,
                                     .parent_run = head.parent_run,
                                     .original_run = head.original_run,
                                 });
        rc = log ? OK : error_nomem(err);
    }
    if (log) {
        log->last_seq = head.last_seq;
        log->ledger_seq = head.last_ledger_seq;
        log->head = head.head;
        log->ledger_head = head.ledger_head;
        log->last_persisted_ms = head.updated_ms;
        log->summary = head.summary;
        log->terminal = head.terminal;
        log->created = true;
        log->epoch = head.epoch;
        log->shard = head.shard;
        log->member = store->member;
        log->backend_id = backend_id;
        INVARIANT(!log->keys_loaded && log->keys.count == 0); // they come with the replay
    }
    *out = log;
    return rc;
}

enum code store_claim_ahead(struct store *store, const struct run_name *runs, size_t count, struct error *err)
{
    enum code rc = store_writable(store, err);
    return rc ? rc : store_heed(store, store->ops->log.claim_ahead(store, runs, count, err));
}

void store_release_run(struct store *store, struct run_log *log)
{
    if (!log) return;
    INVARIANT(log->store == store);
    INVARIANT(log->touched == 0);
    if (log->created && !store->dead) store->ops->log.release(store, log);
    run_log_free(log);
}

const struct run_ids *run_log_ids(const struct run_log *log)
{
    return &log->ids;
}

struct replay_cursor run_log_position(const struct run_log *log)
{
    return (struct replay_cursor){
        .seq = log->last_seq, .ledger_seq = log->ledger_seq, .head = log->head, .ledger_head = log->ledger_head};
}

uint64_t run_log_last_seq(const struct run_log *log)
{
    return log->last_seq;
}

uint64_t run_log_epoch(const struct run_log *log)
{
    return log->epoch;
}

bool run_log_terminal(const struct run_log *log)
{
    return log->terminal;
}

uint32_t run_log_shard(const struct run_log *log)
{
    return log->shard;
}

// ---- reading

enum code store_read(struct store *store, const struct record_range *range, struct arena *arena, struct records *out,
                     struct error *err)
{
    *out = (struct records){0};
    enum code rc = store->ops->log.read(store, range, arena, out, err);
    if (rc || range->ledger) return rc;
    for (size_t i = 0; i < out->count; i++)
        if (!out->items[i].redacted) out->items[i].hash = sha256(out->items[i].bytes);
    return OK;
}

enum code store_head(struct store *store, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                     struct error *err)
{
    *out = (struct run_head){0};
    return store->ops->log.head(store, tenant, run, arena, out, err);
}

enum { LIST_LIMIT_DEFAULT = 50 };

enum code store_list(struct store *store, const struct run_filter *filter, struct arena *arena, struct run_heads *out,
                     struct error *err)
{
    struct run_filter full = *filter;
    if (full.limit == 0) full.limit = LIST_LIMIT_DEFAULT;
    *out = (struct run_heads){0};
    INVARIANT(full.limit > 0);
    return store->ops->log.list(store, &full, arena, out, err);
}

enum code store_count(struct store *store, const struct run_filter *filter, uint64_t *out, struct error *err)
{
    return store->ops->log.count(store, filter, out, err);
}

enum code run_missing(struct str run, struct error *err)
{
    return error_set(err, E_NOT_FOUND, "there is no run %.*s", STR_ARG(run));
}

bool run_filter_matches(const struct run_filter *filter, const struct run_head *head)
{
    if (filter->tenant.len && !str_eq(filter->tenant, head->ids.tenant)) return false;
    if (filter->status_mask && !(filter->status_mask & (1u << head->summary.status))) return false;
    if (filter->plan.len && !str_eq(filter->plan, head->ids.plan_id)) return false;
    if (!str_starts(head->ids.run, filter->run_prefix)) return false;
    if (filter->since_ms && head->summary.created_ms < filter->since_ms) return false;
    if (filter->until_ms && head->summary.created_ms > filter->until_ms) return false;
    if (filter->unfinished && head->terminal) return false;
    if (filter->shards || filter->shardless) {
        bool meant = head->shard ? filter->shards >> (head->shard - 1) & 1 : filter->shardless;
        if (!meant) return false;
    }
    if (filter->roots && head->parent_run.len) return false;
    return !filter->before || head->position < filter->before;
}

enum code store_blob(struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                     struct error *err)
{
    *out = (struct str){0};
    struct error why = {0}, missing = {0};
    enum code rc = store->ops->log.blob(store, sha256, arena, out, &missing);
    if (rc == OK) return OK;
    if (rc != E_NOT_FOUND) return error_set(err, rc, "%s", missing.message);
    rc = store_keep_blob(store, sha256, arena, out, &why);
    if (rc == E_NOT_FOUND && store_shelf_blob(store, sha256, arena, out, NULL) == OK) return OK;
    return rc ? error_set(err, rc, "%s", why.code ? why.message : missing.message) : OK;
}

enum code store_blob_of(void *store, const struct digest *sha256, struct arena *arena, struct str *out,
                        struct error *err)
{
    return store_blob(store, sha256, arena, out, err);
}

struct keep *store_keep(const struct store *store)
{
    return store->options.keep;
}

enum code store_format(struct store *store, struct store_format *out, struct error *err)
{
    *out = (struct store_format){.have = 1, .newest = 1};
    return store->ops->admin.format(store, out, err);
}

enum code store_advise(struct store *store, struct arena *arena, struct advices *out, struct error *err)
{
    *out = (struct advices){0};
    return store->ops->admin.advise(store, arena, out, err);
}

enum code store_post(struct store *store, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                     struct error *err)
{
    enum code rc = store->options.mode == STORE_WRITE ? store_writable(store, err) : OK;
    return rc ? rc : store_heed(store, store->ops->log.post(store, tenant, run, signal_id, bytes, err));
}

enum code store_inbox(struct store *store, struct arena *arena, struct inbox_item **items, size_t *count,
                      struct error *err)
{
    *items = NULL;
    *count = 0;
    return store_heed(store, store->ops->log.inbox(store, arena, items, count, err));
}

static struct standing_in standing_in_of(const struct run_summary *summary)
{
    return standing_stored(summary->status, str_from(summary->substatus), summary->cause[0]);
}

void summary_read(struct run_summary *summary)
{
    struct standing_in in = standing_in_of(summary);
    summary->goes_on = standing_of(&in).goes_on;
}

struct standing head_standing(const struct run_head *head)
{
    struct standing_in in = standing_in_of(&head->summary);
    in.driven = head->owned;
    return standing_of(&in);
}
