#include "host.h"

#include "os/os.h"
#include "store/store.h"

struct str host_file;

enum code os_map_file(const char *path, struct str *out, struct error *err)
{
    (void)path;
    (void)err;
    *out = host_file;
    return OK;
}

void os_unmap(struct str bytes)
{
    (void)bytes;
}

// Files of steps are beside a store, never in a bundle.
enum code store_local_file(struct store *store, const struct file_range *range, struct arena *arena, struct file_piece *out,
                           struct error *err)
{
    (void)store;
    (void)range;
    (void)arena;
    *out = (struct file_piece){0};
    return error_set(err, E_NOT_FOUND, "files of steps are not in a bundle");
}

// Results that are kept in another place are fetched by the server alone.
enum code store_keep_get(struct store *store, struct str place, const struct digest *sha256, struct arena *arena,
                         struct str *out, struct error *err)
{
    (void)store;
    (void)place;
    (void)sha256;
    (void)arena;
    (void)out;
    return error_set(err, E_NOT_FOUND, "the result is kept in another place, which a browser does not reach");
}

// A bundle has its documents in it, and there is no directory beside it.
enum code store_shelf_blob(const struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    (void)store;
    (void)sha256;
    (void)arena;
    (void)out;
    return error_set(err, E_NOT_FOUND, "there is no such blob");
}

enum code store_plan(struct store *store, const struct run_head *head, struct str uri, struct arena *arena, struct str *out,
                     struct error *err)
{
    (void)uri;
    return store_blob(store, &head->document, arena, out, err);
}

void store_patience_close(struct store *store)
{
    (void)store;
}
