// A server as a store: "http://HOST:PORT", "https://HOST", "unix:PATH". Everything that reads a store reads what the server
// keeps, exactly as it is stored there (docs/format/store-api.md), as far as the token may. A signal is posted to the server,
// which decides it as the owner of the run; nothing else is written from here.
#include "base/text.h"
#include "fetch/fetch.h"
#include "store/backend.h"
#include "store/server.h"
#include "store/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAGE_MAX = 500,
    FILE_PIECE_MAX = 4 << 20,
    RECENT = 8,
    RECENT_SIZE = 201,
    TARGET_MAX = 16 * 1024,
    PATIENCE_MS = 5000,
    BODY_MAX = 64 << 20
};

struct server_store {
    struct store base;
    struct fetch_link *link;
    struct arena arena;               // the tenant's name
    bool redacted;                    // the token may not see payloads: records come without their values
    char recent[RECENT][RECENT_SIZE]; // runs that were asked for, newest first: whose blobs are asked for next
};

static struct server_store *server_of(const struct store *store)
{
    return CONTAINER_OF((void *)(uintptr_t)store, struct server_store, base);
}

static enum code not_understood(struct error *err)
{
    return error_set(err, E_UNREACHABLE, "the answer is not one of a Cairn server of this version");
}

// ---- asking

static const struct {
    int status;
    enum code code;
} meanings[] = {
    {400, E_INVALID}, {401, E_DENIED},  {403, E_DENIED},  {404, E_NOT_FOUND},   {409, E_CONFLICT}, {412, E_CONFLICT},
    {413, E_LIMIT},   {415, E_INVALID}, {422, E_INVALID}, {429, E_UNREACHABLE}, {507, E_FULL},     {501, E_UNSUPPORTED},
};

// When the server wants to be asked again, if it says so.
static bool wanted_again(const struct fetch_answer *answer, int64_t *seconds)
{
    bool later = answer->status == 429 || answer->status == 503;
    return later && str_int64(fetch_header(answer, "retry-after"), seconds) && *seconds >= 0;
}

// What a problem (RFC 9457) means here, in the server's words.
static enum code problem(const struct fetch_answer *answer, struct arena *arena, struct error *err)
{
    struct json body;
    enum code rc = answer->status >= 500 ? E_UNREACHABLE : E_INVALID;
    for (size_t i = 0; i < ARRAY_COUNT(meanings); i++)
        if (meanings[i].status == answer->status) rc = meanings[i].code;
    char again[64] = "";
    int64_t seconds;
    if (wanted_again(answer, &seconds)) snprintf(again, sizeof(again), "; try again in %" PRId64 " s", seconds);
    if (json_parse(answer->body, NULL, arena, &body, NULL) || body.type != JSON_OBJECT)
        return error_set(err, rc, "the server answers with status %d%s", answer->status, again);
    struct str detail = json_text(json_key(&body, "detail")), code = json_text(json_key(&body, "code"));
    if (str_is(code, "LOG_CORRUPT")) rc = E_CORRUPT;
    if (detail.len == 0) detail = json_text(json_key(&body, "title"));
    return error_set(err, rc, "%.*s%s%.*s%s%s", STR_ARG(detail), code.len ? " (" : "", STR_ARG(code),
                     code.len ? ")" : "", again);
}

// Once, as long as the server says, but not for ever.
static bool patient(const struct fetch_answer *answer, bool *waited)
{
    int64_t seconds;
    if (*waited || !wanted_again(answer, &seconds) || seconds > PATIENCE_MS / 1000) return false;
    *waited = true;
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds}, NULL);
    return true;
}

static enum code call(struct server_store *store, struct fetch_call *request, struct arena *arena,
                      struct fetch_answer *answer, struct error *err)
{
    bool waited = false;
    for (;;) {
        struct error why = {0};
        enum code rc = fetch_link_call(store->link, request, arena, answer, &why);
        if (rc == E_IO || rc == E_TIMEOUT) return error_set(err, E_UNREACHABLE, "%s", why.message);
        if (rc) return error_set(err, rc, "%s", why.message);
        if (answer->status >= 200 && answer->status < 300) return OK;
        if (!patient(answer, &waited)) return problem(answer, arena, err);
    }
}

static enum code get(struct server_store *store, struct buf *target, struct arena *arena, struct str *body,
                     struct error *err)
{
    struct fetch_answer answer = {0};
    struct fetch_call request = {.uri = buf_str(target)};
    enum code rc = buf_ok(target) ? call(store, &request, arena, &answer, err) : error_nomem(err);
    buf_release(target);
    *body = answer.body;
    return rc;
}

static void target_run(struct buf *target, struct str run, const char *what)
{
    buf_init(target, TARGET_MAX);
    buf_text(target, "/v1/store/runs/");
    http_percent_encode(target, run);
    buf_text(target, what);
}

// Where records and blobs are that the token may see.
static void target_stored(const struct server_store *store, struct buf *target, struct str run, const char *what)
{
    target_run(target, run, store->redacted ? "/redacted" : "");
    buf_text(target, what);
}

static void add_number(struct buf *target, char before, const char *name, uint64_t value)
{
    buf_printf(target, "%c%s=%" PRIu64, before, name, value);
}

static void add_text(struct buf *target, const char *name, struct str value)
{
    if (value.len == 0) return;
    buf_printf(target, "&%s=", name);
    http_percent_encode(target, value);
}

static bool of_another_tenant(const struct server_store *store, struct str tenant)
{
    return tenant.len && !str_eq(tenant, store->base.tenant);
}

static void remember(struct server_store *store, struct str run)
{
    size_t at = 0;
    if (run.len == 0 || run.len >= RECENT_SIZE) return;
    while (at + 1 < RECENT && !str_eq(str_from(store->recent[at]), run)) at++;
    memmove(store->recent[1], store->recent[0], at * RECENT_SIZE);
    memcpy(store->recent[0], run.ptr, run.len);
    store->recent[0][run.len] = '\0';
}

// ---- heads

static enum code server_head(struct store *base, struct str tenant, struct str run, struct arena *arena,
                             struct run_head *out, struct error *err)
{
    struct server_store *store = server_of(base);
    struct buf target;
    struct json value;
    struct str body;
    if (of_another_tenant(store, tenant) || run.len == 0) return run_missing(run, err);
    target_run(&target, run, "");
    enum code rc = get(store, &target, arena, &body, err);
    if (rc == E_NOT_FOUND) return run_missing(run, err);
    if (rc) return rc;
    if (json_parse(body, NULL, arena, &value, NULL) || !run_head_read(&value, out)) return not_understood(err);
    remember(store, run);
    return OK;
}

static void target_list(struct buf *target, const struct run_filter *filter, uint64_t before, size_t limit)
{
    buf_init(target, TARGET_MAX);
    buf_text(target, "/v1/store/runs");
    add_number(target, '?', "limit", limit);
    if (before) add_number(target, '&', "before", before);
    add_text(target, "plan", filter->plan);
    add_text(target, "prefix", filter->run_prefix);
    if (filter->since_ms > 0) add_number(target, '&', "since", (uint64_t)filter->since_ms);
    if (filter->until_ms > 0) add_number(target, '&', "until", (uint64_t)filter->until_ms);
    if (filter->unfinished) buf_text(target, "&unfinished=1");
    if (filter->roots) buf_text(target, "&roots=1");
    const char *between = "&status=";
    for (int status = 1; filter->status_mask && status <= RUN_STATUS_CANCELLED; status++) {
        if (!(filter->status_mask & (1u << status))) continue;
        buf_printf(target, "%s%s", between, run_status_name((enum run_status)status));
        between = ",";
    }
}

static enum code take_heads(const struct json *page, struct arena *arena, struct run_heads *out, size_t *capacity,
                            struct error *err)
{
    const struct json *items = json_key(page, "items");
    if (!json_is(items, JSON_ARRAY)) return not_understood(err);
    out->items = arena_grow(arena, out->items, out->count, out->count + items->count, sizeof(*out->items), capacity);
    if (!out->items && items->count) return error_nomem(err);
    for (uint32_t i = 0; i < items->count; i++)
        if (!run_head_read(&items->items[i], &out->items[out->count++])) return not_understood(err);
    out->next = (uint64_t)json_integer(json_key(page, "next"), 0);
    return OK;
}

static enum code server_list(struct store *base, const struct run_filter *filter, struct arena *arena,
                             struct run_heads *out, struct error *err)
{
    struct server_store *store = server_of(base);
    size_t capacity = 0;
    if (of_another_tenant(store, filter->tenant)) return OK;
    out->next = filter->before;
    do {
        struct buf target;
        struct json page;
        struct str body;
        size_t left = filter->limit - out->count;
        target_list(&target, filter, out->next, left < PAGE_MAX ? left : PAGE_MAX);
        enum code rc = get(store, &target, arena, &body, err);
        if (!rc && json_parse(body, NULL, arena, &page, NULL)) rc = not_understood(err);
        if (!rc) rc = take_heads(&page, arena, out, &capacity, err);
        if (rc) return rc;
    } while (out->next && out->count < filter->limit);
    return OK;
}

// ---- records

static enum code take_records(struct str body, struct arena *arena, struct records *out, size_t *capacity, bool *more,
                              struct error *err)
{
    for (;;) {
        if (!ARENA_ROOM(arena, out->items, out->count, capacity)) return error_nomem(err);
        enum code rc = record_wire_read(&body, arena, &out->items[out->count], more);
        if (rc) return rc == E_NOMEM ? error_nomem(err) : not_understood(err);
        if (!out->items[out->count].bytes.ptr) return OK;
        out->count++;
    }
}

static enum code server_read(struct store *base, const struct record_range *range, struct arena *arena,
                             struct records *out, struct error *err)
{
    struct server_store *store = server_of(base);
    uint64_t after = range->after;
    size_t capacity = 0;
    bool more = true;
    if (of_another_tenant(store, range->tenant) || range->run.len == 0) return run_missing(range->run, err);
    remember(store, range->run);
    while (more && out->count < range->limit) {
        struct buf target;
        struct str body;
        size_t left = range->limit - out->count;
        const struct record *last = out->count ? &out->items[out->count - 1] : NULL;
        if (last) after = last->ledger_seq ? last->ledger_seq : last->seq;
        target_stored(store, &target, range->run, range->ledger ? "/ledger" : "/records");
        add_number(&target, '?', "after", after);
        add_number(&target, '&', "limit", left < PAGE_MAX ? left : PAGE_MAX);
        enum code rc = get(store, &target, arena, &body, err);
        if (rc == E_NOT_FOUND) return run_missing(range->run, err);
        if (!rc) rc = take_records(body, arena, out, &capacity, &more, err);
        if (rc) return rc;
    }
    return OK;
}

// ---- blobs and files

// A server returns a blob to those who may read a run that refers to it, so it is asked for by the runs that were read lately.
static enum code server_blob(struct store *base, const struct digest *digest, struct arena *arena, struct str *out,
                             struct error *err)
{
    struct server_store *store = server_of(base);
    char hex[SHA256_HEX + 1];
    digest_hex(digest, hex);
    for (size_t i = 0; i < RECENT && store->recent[i][0]; i++) {
        struct buf target;
        target_stored(store, &target, str_from(store->recent[i]), "/blobs/");
        buf_text(&target, hex);
        enum code rc = get(store, &target, arena, out, err);
        if (rc == E_NOT_FOUND) continue;
        if (rc) return rc;
        struct digest found = sha256(*out);
        if (!digest_eq(&found, digest)) return error_set(err, E_CORRUPT, "blob %s is damaged", hex);
        return OK;
    }
    return error_set(err, E_NOT_FOUND, "no run that was read refers to a blob %s", hex);
}

static enum code server_file(struct store *base, const struct file_range *range, struct arena *arena,
                             struct file_piece *out, struct error *err)
{
    struct server_store *store = server_of(base);
    struct buf target;
    struct json head;
    struct str body, bytes;
    target_run(&target, range->ids->run, "/file");
    add_number(&target, '?', "limit", range->limit < FILE_PIECE_MAX ? range->limit : FILE_PIECE_MAX);
    if (range->offset == FILE_TAIL)
        buf_text(&target, "&tail=1");
    else
        add_number(&target, '&', "offset", range->offset);
    add_text(&target, "what", str_from(range->what));
    add_text(&target, "name", range->name);
    enum code rc = get(store, &target, arena, &body, err);
    if (rc) return rc;
    struct str line = str_cut(body, '\n', &bytes);
    if (json_parse(line, NULL, arena, &head, NULL) || !json_is(json_key(&head, "size"), JSON_INT))
        return not_understood(err);
    out->size = (uint64_t)json_integer(json_key(&head, "size"), 0);
    out->bytes = bytes;
    return OK;
}

// An address, for people: the server's own directories are none of ours.
static enum code server_run_dir(const struct store *base, const struct run_ids *ids, const char *what,
                                struct arena *arena, struct str *out)
{
    struct buf text = buf_of(TARGET_MAX);
    buf_printf(&text, "%s/v1/store/runs/", base->url);
    http_percent_encode(&text, ids->run);
    buf_printf(&text, "/file?what=%s&name=", what);
    *out = buf_keep(&text, arena);
    return out->ptr ? OK : E_NOMEM;
}

// ---- signals

// Decided when this returns OK, accepted or not: the record stands in the run's ledger. A refusal by the run is a decision too.
// What the sender has to say. Who it is, and in which role, is for the server to know.
static enum code as_asked(struct str bytes, struct arena *arena, struct buf *out, struct error *err)
{
    static const char *const known[] = {"signalId", "signalType", "stepId", "reason", "payload"};
    struct json given, asked = json_object();
    enum code rc = json_parse(bytes, NULL, arena, &given, err);
    for (size_t i = 0; !rc && i < ARRAY_COUNT(known); i++) {
        const struct json *value = json_key(&given, known[i]);
        if (value && !json_put(arena, &asked, str_from(known[i]), *value)) rc = error_nomem(err);
    }
    if (!rc) json_write(out, &asked);
    return rc ? rc : buf_ok(out) ? OK : error_nomem(err);
}

static enum code server_post(struct store *base, struct str tenant, struct str run, struct str signal_id UNUSED,
                             struct str bytes, struct error *err)
{
    struct server_store *store = server_of(base);
    struct http_header type = {STR("Content-Type"), STR("application/json")};
    struct fetch_call request = {
        .method = STR("POST"), .headers = &type, .header_count = 1, .repeatable = true}; // it has an id
    struct fetch_answer answer = {0};
    struct json body = {0};
    if (of_another_tenant(store, tenant)) return run_missing(run, err);
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    struct buf asked SCOPED(buf_release) = buf_of(256 * 1024);
    struct buf target SCOPED(buf_release) = buf_of(TARGET_MAX);
    buf_text(&target, "/v1/runs/");
    http_percent_encode(&target, run);
    buf_text(&target, "/signals");
    request.uri = buf_str(&target);
    enum code rc = buf_ok(&target) ? as_asked(bytes, &arena, &asked, err) : error_nomem(err);
    request.body = buf_str(&asked);
    if (!rc) rc = call(store, &request, &arena, &answer, err);
    if (rc == E_CONFLICT && json_parse(answer.body, NULL, &arena, &body, NULL) == OK && json_key(&body, "decision"))
        rc = OK;
    return rc;
}

// ---- what only the server does

#define READ_ONLY                                                                                                      \
    "the runs of a server are written by the server alone; this command needs the store itself: run it "               \
    "where the store is, with --store URL"

static void server_close(struct store *base)
{
    struct server_store *store = server_of(base);
    fetch_link_close(store->link);
    arena_release(&store->arena);
    free(store);
}

static const struct store_ops server_ops = {
    .kind = "server",
    .read_only = READ_ONLY,
    .remote = true,
    .log = {NO_WRITING,
            .head = server_head,
            .list = server_list,
            .read = server_read,
            .blob = server_blob,
            .post = server_post},
    .notes = NO_NOTES,
    .feed = NO_FEED,
    .admin = {NO_UPKEEP,
              .freeze = absent_freeze,
              .beside = store_beside_url,
              .run_dir = server_run_dir,
              .file = server_file,
              .close = server_close},
};

bool store_server_redacted(const struct store *base)
{
    return base->ops == &server_ops && server_of(base)->redacted;
}

enum code store_server_call(struct store *base, const struct server_call *wanted, struct arena *arena, struct json *out,
                            struct error *err)
{
    struct http_header headers[2] = {{STR("Content-Type"), STR("application/json")}};
    struct fetch_call request = {.method = str_from(wanted->method), .uri = wanted->path, .headers = headers};
    struct fetch_answer answer = {0};
    *out = (struct json){0};
    if (base->ops != &server_ops) return error_set(err, E_UNSUPPORTED, "the store is no server");
    struct buf body SCOPED(buf_release) = buf_of(BODY_MAX);
    struct buf key SCOPED(buf_release) = buf_of(1024);
    if (wanted->body) json_write(&body, wanted->body);
    request.body = wanted->body ? buf_str(&body) : wanted->bytes;
    request.header_count = wanted->body ? 1 : 0;
    if (wanted->key.len) {
        json_write_string(&key, wanted->key); // a string of structured fields
        headers[request.header_count++] = (struct http_header){STR("Idempotency-Key"), buf_str(&key)};
        request.repeatable = true;
    }
    enum code rc = !buf_ok(&key)   ? error_nomem(err)
                   : buf_ok(&body) ? call(server_of(base), &request, arena, &answer, err)
                                   : error_set(err, E_LIMIT, "the request is too large to be sent");
    if (answer.body.len && json_parse(answer.body, NULL, arena, out, NULL)) *out = (struct json){0};
    if (!rc && answer.status != 204 && out->type != JSON_OBJECT) rc = not_understood(err);
    return rc;
}

// The principal of our token there. Also finds out whether a server listens at the address, and whether it is one of Cairn.
static enum code whoami(struct server_store *store, struct error *err)
{
    struct json body;
    struct str text;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, 1 << 20);
    struct buf target = buf_of(TARGET_MAX);
    buf_text(&target, "/v1/whoami");
    enum code rc = get(store, &target, &scratch, &text, err);
    if (!rc && (json_parse(text, NULL, &scratch, &body, NULL) || !json_key(&body, "roles"))) rc = not_understood(err);
    struct str tenant = rc ? STR("") : json_text(json_key(&body, "tenantId"));
    if (!rc && tenant.len == 0) rc = error_set(err, E_DENIED, "the token belongs to no tenant, and so sees no runs");
    const struct json *payloads = rc ? NULL : json_key(&body, "payloads");
    store->redacted = json_is(payloads, JSON_BOOL) && !payloads->boolean;
    store->base.tenant = arena_copy(&store->arena, tenant);
    return rc || store->base.tenant.ptr ? rc : error_nomem(err);
}

enum code store_open_server(struct str url, const struct store_options *options, struct store **out, struct error *err)
{
    if (options->mode == STORE_WRITE) return error_set(err, E_DENIED, "%s", READ_ONLY);
    struct server_store *store = calloc(1, sizeof(*store));
    if (!store) return error_nomem(err);
    store->base.ops = &server_ops;
    store->base.options = *options;
    arena_init(&store->arena, 1024, 1 << 20);
    struct fetch_link_options link = {.url = url, .token = options->token, .ca_file = options->ca_file};
    enum code rc = fetch_link_open(&link, &store->link, err);
    if (!rc) rc = whoami(store, err);
    if (rc) {
        server_close(&store->base);
        return rc;
    }
    *out = &store->base;
    return OK;
}
