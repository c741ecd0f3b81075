// Artifacts whose time is over go; the log stays as it is, and says when that was. What a run has not ended yet may still need stays.
#include "archive/archive.h"

#include "reach/reach.h"
#include "reading/reading.h"

#include <unistd.h>

enum { PAGE = 200 };

struct expiring {
    struct store *store;
    const struct expiry *how;
    struct expiry_report *report;
    struct arena arena; // of a run
    struct error *err;
};

static void remove_one(struct expiring *e, int root, const struct artifact *one)
{
    struct error why = {0};
    uint64_t size = 0;
    enum code rc = reach_remove(root, one->name, one->at_ms, e->how->dry, &size, &why);
    // Written anew by a run that goes on in the same directory (E_EXISTS): its own log says when that is over.
    if (rc == E_NOT_FOUND || rc == E_EXISTS) return;
    if (rc) {
        os_log(LOG_WARN, "an expired artifact stays name=\"%.*s\" why=\"%s\"", STR_ARG(one->name), why.message);
        return;
    }
    e->report->file_count++;
    e->report->file_bytes += size;
}

// Without files, and the directory of no other run: there is nothing to look for in its log.
static enum code has_files(struct expiring *e, const struct run_head *head, bool *out)
{
    struct str dir = {0};
    uint64_t files = 0, bytes = 0;
    struct error why = {0};
    *out = true;
    if (head->original_run.len > 0) return OK;
    if (store_artifacts_dir(e->store, &head->ids, &e->arena, &dir)) return error_nomem(e->err);
    *out = dir.len > 0 && (tree_size(dir.ptr, &files, &bytes, &why) || files > 0);
    return OK;
}

static enum code expire_run(struct expiring *e, const struct run_head *head)
{
    struct artifacts all;
    struct error why = {0};
    struct str dir = {0};
    bool has;
    int root = -1;
    arena_reset(&e->arena);
    enum code rc = has_files(e, head, &has);
    if (rc || !has) return rc;
    rc = reading_artifacts(e->store, head, &e->arena, &all, &why);
    if (rc == E_NOMEM) return error_nomem(e->err);
    if (rc) return OK; // a damaged run is for others to tell
    uint64_t before = e->report->file_count;
    for (size_t i = 0; !rc && i < all.count; i++) {
        const struct artifact *one = &all.items[i];
        bool last = artifact_find(&all, one->name, (struct str){0}) == one;
        if (!last || !artifact_expired(one, e->how->now_ms)) continue;
        if (root < 0 && store_files_dir(e->store, &head->ids, all.dir, &e->arena, &dir)) rc = error_nomem(e->err);
        if (!rc && root < 0 && (dir.len == 0 || reach_root(dir.ptr, &root, &why))) break;
        if (!rc) remove_one(e, root, one);
    }
    if (root >= 0) close(root);
    e->report->run_count += e->report->file_count > before;
    return rc;
}

enum code archive_expire(struct store *store, const struct expiry *how, struct expiry_report *out, struct error *err)
{
    struct expiring e = {.store = store, .how = how, .report = out, .err = err};
    struct run_filter filter = {.tenant = how->tenant, .limit = PAGE};
    struct arena page SCOPED(arena_release) = arena_of(256 * 1024, (size_t)256 << 20);
    enum code rc = OK;
    *out = (struct expiry_report){0};
    arena_init(&e.arena, 256 * 1024, (size_t)512 << 20);
    do {
        struct run_heads heads = {0};
        arena_reset(&page);
        rc = store_list(store, &filter, &page, &heads, err);
        for (size_t i = 0; !rc && i < heads.count; i++)
            if (heads.items[i].terminal) rc = expire_run(&e, &heads.items[i]);
        filter.before = heads.next;
        if (how->rest && filter.before && !how->rest(how->context)) break;
    } while (!rc && filter.before);
    arena_release(&e.arena);
    return rc;
}
