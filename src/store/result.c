// Results of playbooks by their references: which blob the log means by one.
#include "store/store.h"

#include <string.h>

enum { PAGE = 256, DEPTH_MAX = 8 };

// What is looked for: a reference, or the hash alone, which templates give as NAME._ref.
static bool is_wanted(const struct json *value, struct str wanted, struct str *hash)
{
    *hash = json_text(json_key(value, "sha256"));
    if (!hash->len) *hash = json_text(json_at(value, STR("meta.sha256")));
    return hash->len && (str_eq(json_text(json_key(value, "ref")), wanted) || str_eq(*hash, wanted));
}

static bool find_hash(const struct json *value, struct str wanted, unsigned depth, struct str *hash)
{
    if (depth > DEPTH_MAX) return false;
    if (is_wanted(value, wanted, hash)) return true;
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->count; i++)
        if (find_hash(&value->members[i].value, wanted, depth + 1, hash)) return true;
    return false;
}

// An event of the run must name the blob: a hash alone opens nothing. The last that does counts.
static enum code find_stored(struct store *store, struct str tenant, struct str run, struct str wanted,
                             struct arena *arena, struct digest *out, struct error *err)
{
    uint64_t after = 0;
    bool found = false;
    for (;;) {
        struct records page;
        struct record_range range = {.tenant = tenant, .run = run, .after = after, .limit = PAGE};
        enum code rc = store_read(store, &range, arena, &page, err);
        if (rc) return rc;
        for (size_t i = 0; i < page.count; i++) {
            struct json record;
            struct str hash;
            after = page.items[i].seq;
            if (!memmem(page.items[i].bytes.ptr, page.items[i].bytes.len, wanted.ptr, wanted.len)) continue;
            if (json_parse(page.items[i].bytes, &json_limits_record, arena, &record, NULL)) continue;
            if (find_hash(&record, wanted, 0, &hash)) found |= digest_parse(hash, out);
        }
        if (page.count < PAGE) return found ? OK : error_set(err, E_NOT_FOUND, "no stored result has it");
    }
}

enum code store_result(struct store *store, struct str tenant, struct str run, struct str ref, struct arena *arena,
                       struct str *out, struct error *err)
{
    struct result_place place = {.execution = run};
    struct digest hash;
    if (!digest_parse(ref, &hash) && !result_ref_parse(ref, arena, &place))
        return error_set(err, E_INVALID, "it is no reference of a result");
    enum code rc = find_stored(store, tenant, place.execution, ref, arena, &hash, err);
    return rc ? rc : store_blob(store, &hash, arena, out, err);
}
