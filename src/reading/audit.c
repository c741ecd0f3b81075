// The audit of a tenant from its first record to the end that is noted beside it.
#include "reading/reading.h"

#include "json/make.h"

enum { PAGE = 500 };

static enum code head_of(struct store *store, struct str tenant, struct arena *arena, struct audit_head *out,
                         struct error *err)
{
    struct note note;
    struct buf key SCOPED(buf_release) = buf_of(1024);
    audit_head_key(tenant, &key);
    enum code rc =
        buf_ok(&key) ? store_note(store, STR("audit.head"), buf_str(&key), arena, &note, err) : error_nomem(err);
    *out = (struct audit_head){0};
    if (rc == E_NOT_FOUND) return OK;
    return rc ? rc : audit_head_decode(note.value, arena, out, err);
}

// Records after number `after`, in `arena`.
static enum code page_of(struct store *store, struct str tenant, uint64_t after, size_t limit, struct arena *arena,
                         struct str **out, size_t *count, struct error *err)
{
    struct notes notes = {0};
    struct buf key = buf_of(1024);
    audit_key(tenant, after, &key);
    struct str from = arena_copy(arena, buf_str(&key));
    buf_release(&key);
    *count = 0;
    *out = ARENA_ARRAY(arena, limit, struct str);
    if (!from.ptr || !*out) return error_nomem(err);
    enum code rc = store_notes(store, STR("audit"), from, limit, arena, &notes, err);
    struct str prefix = str_slice(from, 0, tenant.len + 1);
    for (size_t i = 0; !rc && i < notes.count && str_starts(notes.items[i].key, prefix); i++)
        (*out)[(*count)++] = notes.items[i].value;
    return rc;
}

// Records and their end are stored together: what stands behind the end that was read belongs to a later one, or to nobody.
static enum code look_behind(struct store *store, struct str tenant, const struct audit_head *end, struct arena *arena,
                             struct audit_report *out, struct error *err)
{
    struct str *records;
    size_t count;
    struct audit_head now;
    enum code rc = page_of(store, tenant, end->seq, 1, arena, &records, &count, err);
    if (rc || count == 0) return rc;
    rc = head_of(store, tenant, arena, &now, err);
    if (rc || now.seq > end->seq) return rc;
    out->fault = AUDIT_CHANGED;
    out->seq = end->seq + 1;
    return OK;
}

static enum code follow(struct store *store, struct str tenant, const struct audit_head *end, struct arena *arena,
                        struct audit_report *out, struct error *err)
{
    struct str *records;
    struct audit_verdict verdict;
    size_t count;
    uint64_t left = end->seq - out->head.seq;
    enum code rc =
        page_of(store, tenant, out->head.seq, left < PAGE ? (size_t)left : PAGE, arena, &records, &count, err);
    bool last = count == left || count == 0;
    if (!rc) rc = audit_verify(records, count, &out->head, last ? end : NULL, arena, &verdict, err);
    if (rc) return rc;
    out->head = verdict.head;
    out->fault = verdict.fault;
    out->seq = verdict.seq;
    return OK;
}

static enum code verify_chain(struct store *store, struct str chain, struct audit_report *out, struct error *err)
{
    struct audit_head end;
    *out = (struct audit_report){0};
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, (size_t)64 << 20);
    enum code rc = head_of(store, chain, &arena, &end, err);
    while (!rc && !out->fault && out->head.seq < end.seq) {
        arena_reset(&arena);
        rc = follow(store, chain, &end, &arena, out, err);
    }
    if (!rc && !out->fault) rc = look_behind(store, chain, &end, &arena, out, err);
    return rc;
}

// Several chains are reported as one: their records counted, their ends hashed one after the other.
static void add_chain(struct audit_report *out, const struct audit_report *chain)
{
    const struct str ends[] = {{(const char *)out->head.hash.b, SHA256_SIZE},
                               {(const char *)chain->head.hash.b, SHA256_SIZE}};
    out->head.hash = out->head.seq ? sha256_parts(ends, ARRAY_COUNT(ends)) : chain->head.hash;
    out->head.seq += chain->head.seq;
    out->fault = chain->fault;
    out->seq = chain->seq;
}

struct sharing {
    struct store *store;
    size_t named; // bytes of a key before the name
    struct audit_report *out;
};

static enum code verify_one(void *context, const struct note *note, struct arena *scratch UNUSED, struct error *err)
{
    const struct sharing *sharing = context;
    struct audit_report chain;
    if (sharing->out->fault) return OK; // the first one is reported
    enum code rc = verify_chain(sharing->store, str_slice(note->key, sharing->named, note->key.len), &chain, err);
    if (!rc) add_chain(sharing->out, &chain);
    return rc;
}

// Engines that share a store have chains of their own, TENANT~NUMBER, in the order of their names after the tenant's own.
static enum code verify_shared(struct store *store, struct str tenant, struct audit_report *out, struct error *err)
{
    struct buf key SCOPED(buf_release) = buf_of(1024);
    audit_head_key(tenant, &key);
    struct sharing sharing = {.store = store, .named = key.len - tenant.len, .out = out};
    buf_add(&key, STR("~"));
    enum code rc = buf_ok(&key) ? store_each_note(store, STR("audit.head"), buf_str(&key), verify_one, &sharing, err)
                                : error_nomem(err);
    return rc;
}

enum code reading_audit(struct store *store, struct str tenant, struct audit_report *out, struct error *err)
{
    enum code rc = verify_chain(store, tenant, out, err);
    return rc || out->fault ? rc : verify_shared(store, tenant, out, err);
}

bool audit_report_json(const struct audit_report *report, struct str tenant, struct arena *arena, struct json *out)
{
    struct json fault = json_none();
    if (report->fault)
        fault = JSON_OF(arena, {"seq", json_count(report->seq)}, {"what", json_word(audit_fault_name(report->fault))});
    *out = JSON_OF(arena, {"tenantId", json_string(tenant)}, {"records", json_count(report->head.seq)},
                   {"headHash", json_digest(arena, &report->head.hash)}, {"intact", json_bool(!report->fault)},
                   {"fault", fault});
    return json_ok(out);
}
