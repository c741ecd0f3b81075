// The audit: a chain of records per tenant, in the notes of space "audit". What a turn decides is gathered and stored with it,
// in the batch that holds its effects; the ends of the chains are kept beside, so that a missing end is found.
#include "service/inside.h"

#include <stdio.h>

#include "reading/reading.h"

#include <stdlib.h>
#include <string.h>

enum { RECORD_MAX = 64 * 1024 };

static struct audit_tenant *tenant_of(struct service *service, struct str tenant)
{
    struct audit *audit = &service->audit;
    for (size_t i = 0; i < audit->count; i++)
        if (str_eq(audit->tenants[i]->name, tenant)) return audit->tenants[i];
    if (!LIST_ROOM(audit->tenants, audit->count, &audit->capacity)) return NULL;
    struct audit_tenant *made = calloc(1, sizeof(*made) + tenant.len + 1);
    if (!made) return NULL;
    memcpy(made->bytes, tenant.ptr, tenant.len);
    made->name = (struct str){made->bytes, tenant.len};
    audit->tenants[audit->count++] = made;
    return made;
}

static enum code load_head(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct audit_tenant *tenant = tenant_of(context, str_slice(note->key, 2, note->key.len)); // audit_head_key
    return tenant ? audit_head_decode(note->value, scratch, &tenant->head, err) : error_nomem(err);
}

enum code audit_load(struct service *service, struct error *err)
{
    arena_init(&service->audit.pending, 64 * 1024, (size_t)256 << 20);
    return store_each_note(service->store, STR("audit.head"), STR(""), load_head, service, err);
}

void audit_release(struct audit *audit)
{
    for (size_t i = 0; i < audit->count; i++) free(audit->tenants[i]);
    free(audit->tenants);
    arena_release(&audit->pending);
}

static bool push(struct audit *audit, struct note_put put)
{
    if (!ARENA_ROOM(&audit->pending, audit->puts, audit->put_count, &audit->put_capacity)) return false;
    audit->puts[audit->put_count++] = put;
    return true;
}

// One chain for each tenant; among several engines each has chains of its own, so that none waits for another.
static struct audit_tenant *chain_of(struct service *service, struct str tenant)
{
    char name[512];
    if (!service->members.several) return tenant_of(service, tenant);
    int len = snprintf(name, sizeof(name), "%.*s~%llu", STR_ARG(tenant), (unsigned long long)service->members.self);
    return len > 0 && (size_t)len < sizeof(name) ? tenant_of(service, (struct str){name, (size_t)len}) : NULL;
}

enum code audit_add(struct service *service, struct audit_record *record, struct error *err)
{
    struct audit *audit = &service->audit;
    struct audit_tenant *tenant = chain_of(service, record->tenant);
    char id[UUID_SIZE];
    if (!tenant) return error_nomem(err);
    struct audit_head before = tenant->head;
    entropy_uuid(os_entropy(), id);
    record->id = str_from(id);
    record->at_ms = os_now().wall_ms;
    struct buf bytes SCOPED(buf_release) = buf_of(RECORD_MAX);
    struct buf key SCOPED(buf_release) = buf_of(1024);
    enum code rc = audit_encode(record, &tenant->head, &audit->pending, &bytes, err);
    if (!rc) audit_key(tenant->name, tenant->head.seq, &key);
    struct note_put put = {.space = STR("audit"),
                           .key = arena_copy(&audit->pending, buf_str(&key)),
                           .value = arena_copy(&audit->pending, buf_str(&bytes)),
                           .expect = 0};
    if (!rc && (!put.key.ptr || !put.value.ptr || !push(audit, put))) rc = error_nomem(err);
    if (rc)
        tenant->head = before;
    else
        tenant->moved = true;
    return rc;
}

static bool push_head(struct audit *audit, struct audit_tenant *tenant)
{
    struct buf text SCOPED(buf_release) = buf_of(1024);
    audit_head_key(tenant->name, &text);
    struct str key = arena_copy(&audit->pending, buf_str(&text));
    buf_clear(&text);
    bool ok = audit_head_encode(&tenant->head, &audit->pending, &text);
    struct str value = arena_copy(&audit->pending, buf_str(&text));
    struct note_put put = {.space = STR("audit.head"), .key = key, .value = value, .expect = NOTE_ANY};
    tenant->moved = false;
    return ok && key.ptr && value.ptr && push(audit, put);
}

// Nobody else writes these notes: a conflict means that another service writes to this store, and one of the two must go.
static void stored(void *context, enum code rc, const struct error *why)
{
    struct service *service = context;
    if (rc == OK || rc == E_CANCELLED) return;
    os_log(LOG_ERROR, "audit not stored why=\"%s\"", why->message);
    service->audit.broken = true;
    service->audit.why = *why;
    if (rc == E_CONFLICT) error_wrap(&service->audit.why, "another process writes to this store");
    error_wrap(&service->audit.why, "the audit cannot be written");
}

enum code audit_flush(struct service *service, struct error *err)
{
    struct audit *audit = &service->audit;
    if (audit->put_count == 0) return OK;
    for (size_t i = 0; i < audit->count; i++)
        if (audit->tenants[i]->moved && !push_head(audit, audit->tenants[i])) return error_nomem(err);
    enum code rc = engine_put(service->engine, audit->puts, audit->put_count, stored, service, err);
    audit->puts = NULL;
    audit->put_count = audit->put_capacity = 0;
    arena_reset(&audit->pending);
    return rc;
}

// A run that is new, or that another engine has, is not here.
void audit_attempts(struct call *call, struct str run, struct str step)
{
    const struct run *here = engine_run(call->service->engine, call->who.tenant, run);
    uint32_t at = here && step.len > 0 ? kernel_find(here, step) : PROGRAM_TOP;
    struct run_attempt attempt = {.logical = 1, .engine = here ? here->segment : 0};
    if (at != PROGRAM_TOP) attempt = kernel_attempt(here, at);
    call->engine_attempt = attempt.engine;
    call->logical_attempt = attempt.engine ? attempt.logical : 0;
}

enum code audit_call(struct call *call, enum operation operation, struct str resource, struct str reason,
                     struct error *err)
{
    struct auth_ask ask = {.principal = call->who.id.len ? &call->who : NULL, .operation = operation, .reason = reason};
    struct audit_record record = audit_of(&ask, &call->decision);
    record.tenant = call->who.tenant;
    record.resource_type = STR("run");
    record.resource = resource;
    record.details = call->details;
    if (!json_ok(&record.details)) return error_nomem(err);
    record.project = call->project;
    record.environment = call->environment;
    record.engine_attempt = call->engine_attempt;
    record.logical_attempt = call->logical_attempt;
    record.ip = call->source_ip;
    record.user_agent = call->user_agent;
    record.request = call->request_id;
    return audit_add(call->service, &record, err);
}

// ---- reading. Reader thread

static struct str audit_start(struct call *call, uint64_t after)
{
    struct buf key SCOPED(buf_release) = buf_of(1024);
    audit_key(call->who.tenant, after, &key);
    return arena_copy(&call->arena, buf_str(&key));
}

// Records whose keys begin with `prefix`, behind `from`; *last is the key of the last one.
static enum code push_audit(struct call *call, struct store *store, struct str prefix, struct str from, size_t limit,
                            struct json *items, struct str *last, struct error *err)
{
    struct notes notes;
    enum code rc = store_notes(store, STR("audit"), from, limit, &call->arena, &notes, err);
    for (size_t i = 0; !rc && i < notes.count && str_starts(notes.items[i].key, prefix); i++) {
        struct json record;
        *last = notes.items[i].key;
        rc = json_parse(notes.items[i].value, NULL, &call->arena, &record, err);
        if (!rc && !json_push(&call->arena, items, record)) rc = error_nomem(err);
    }
    return rc;
}

// The tenant's own chain, then those of engines that share the store (TENANT~NUMBER).
enum code service_audit_list(struct call *call, struct store *store, struct str cursor, uint64_t after, size_t limit,
                             struct json *items, struct str *next, struct error *err)
{
    struct str last = {0}, own = call_text(call, "%.*s/", STR_ARG(call->who.tenant));
    struct str shared = call_text(call, "%.*s~", STR_ARG(call->who.tenant));
    struct str from = cursor.len > 0 ? cursor : audit_start(call, after);
    *items = json_array();
    *next = (struct str){0};
    if (!own.ptr || !shared.ptr || !from.ptr) return error_nomem(err);
    bool second = str_starts(from, shared);
    enum code rc = second ? OK : push_audit(call, store, own, from, limit, items, &last, err);
    if (!rc && items->count < limit)
        rc = push_audit(call, store, shared, second ? from : shared, limit - items->count, items, &last, err);
    if (!rc && items->count == limit) *next = last;
    return rc;
}

// ---- the newest first. Each chain is read backwards from where the reader is in it, and the newest of what was read is given.
//
// The cursor is where the reader is in each chain: "NUMBER SUFFIX" with a comma between them, SUFFIX being what stands behind the tenant's
// name ("" or "~4"). A chain that began later than the reading is not in it.

enum { CHAINS_MAX = 64 };
struct audit_chain {
    struct str suffix;
    uint64_t next;      // of the newest record that was not given; 0 = none is left
    struct json *items; // ascending, up to `next`
    size_t count;
};
struct audit_chains {
    struct audit_chain at[CHAINS_MAX];
    size_t count;
};

static bool add_chain(struct audit_chains *chains, struct str suffix, uint64_t next)
{
    if (chains->count == CHAINS_MAX) return false;
    chains->at[chains->count++] = (struct audit_chain){.suffix = suffix, .next = next};
    return true;
}

// Where the chains end now: their heads are notes of their own.
static enum code find_chains(struct call *call, struct store *store, struct audit_chains *chains, struct error *err)
{
    struct str own = call_text(call, "t/%.*s", STR_ARG(call->who.tenant)), after = STR("t/"); // audit_head_key
    if (!own.ptr) return error_nomem(err);
    for (;;) {
        struct notes notes;
        enum code rc = store_notes(store, STR("audit.head"), after, 256, &call->arena, &notes, err);
        for (size_t i = 0; !rc && i < notes.count; i++) {
            struct str key = notes.items[i].key;
            struct audit_head head;
            after = key;
            struct str suffix = str_slice(key, own.len < key.len ? own.len : key.len, key.len);
            if (!str_starts(key, own) || (suffix.len > 0 && suffix.ptr[0] != '~')) continue;
            rc = audit_head_decode(notes.items[i].value, &call->arena, &head, err);
            if (!rc && !add_chain(chains, suffix, head.seq)) return OK; // more engines than an installation has: their newest are left out
        }
        if (rc || notes.count < 256) return rc;
    }
}

static bool read_chains(struct str cursor, struct audit_chains *chains)
{
    while (cursor.len > 0) {
        struct str suffix, one = str_cut(cursor, ',', &cursor), number = str_cut(one, ' ', &suffix);
        int64_t next;
        if (!str_int64(number, &next) || next < 0 || !add_chain(chains, suffix, (uint64_t)next)) return false;
    }
    return chains->count > 0;
}

// Its last `limit` records up to `next`.
static enum code read_back(struct call *call, struct store *store, struct audit_chain *chain, size_t limit, struct error *err)
{
    struct str name = call_text(call, "%.*s%.*s", STR_ARG(call->who.tenant), STR_ARG(chain->suffix));
    struct buf key = buf_of(1024);
    struct notes notes = {0};
    if (chain->next == 0) return OK;
    audit_key(name, chain->next > limit ? chain->next - limit : 0, &key);
    struct str from = buf_keep(&key, &call->arena);
    chain->items = ARENA_ARRAY(&call->arena, limit, struct json);
    if (!name.ptr || !from.ptr || !chain->items) return error_nomem(err);
    size_t want = chain->next < limit ? (size_t)chain->next : limit;
    enum code rc = store_notes(store, STR("audit"), from, want, &call->arena, &notes, err);
    for (size_t i = 0; !rc && i < notes.count && str_starts(notes.items[i].key, name); i++)
        rc = json_parse(notes.items[i].value, NULL, &call->arena, &chain->items[chain->count++], err);
    return rc;
}

static struct audit_chain *newest_of(struct audit_chains *chains)
{
    struct audit_chain *found = NULL;
    struct str time = {0};
    for (size_t i = 0; i < chains->count; i++) {
        struct audit_chain *chain = &chains->at[i];
        if (chain->count == 0) continue;
        struct str at = json_text(json_key(&chain->items[chain->count - 1], "timestamp"));
        if (found && str_cmp(at, time) <= 0) continue;
        found = chain;
        time = at;
    }
    return found;
}

enum code service_audit_newest(struct call *call, struct store *store, struct str cursor, size_t limit, struct json *items,
                               struct str *next, struct error *err)
{
    struct audit_chains chains = {.count = 0};
    *items = json_array();
    *next = (struct str){0};
    if (cursor.len > 0 && !read_chains(cursor, &chains)) return error_set(err, E_INVALID, "this cursor did not come from here");
    enum code rc = cursor.len > 0 ? OK : find_chains(call, store, &chains, err);
    for (size_t i = 0; !rc && i < chains.count; i++) rc = read_back(call, store, &chains.at[i], limit, err);
    for (struct audit_chain *chain; !rc && items->count < limit && (chain = newest_of(&chains));) {
        if (!json_push(&call->arena, items, chain->items[--chain->count])) rc = error_nomem(err);
        chain->next--;
    }
    struct buf text = buf_of(64 * 1024);
    bool more = false;
    for (size_t i = 0; i < chains.count; i++) {
        more = more || (chains.at[i].next > 0 && chains.at[i].items && items->count == limit);
        buf_printf(&text, "%s%llu %.*s", i ? "," : "", (unsigned long long)chains.at[i].next, STR_ARG(chains.at[i].suffix));
    }
    struct str made = buf_keep(&text, &call->arena);
    if (!rc && more && !made.ptr) rc = error_nomem(err);
    if (!rc && more) *next = made;
    return rc;
}

static bool verify(struct call *call, struct store *store)
{
    struct audit_report report;
    struct error err = {0};
    struct json body;
    if (reading_audit(store, call->who.tenant, &report, &err)) return call_failed(call, &err);
    if (!audit_report_json(&report, call->who.tenant, &call->arena, &body)) return call_nomem(call);
    return call_answer(call, 200, body);
}

bool service_audit_verify(struct call *call)
{
    return service_may_all(call, OPERATION_AUDIT_VERIFY) && service_read(call, verify);
}
