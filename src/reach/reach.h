// The one way from what a step can influence to what is outside of it: files, directories, and things that belong to a tenant.
//
// A step writes names (a working directory, an artifact, a database) and leaves files behind (links, pipes, devices). Nothing that it
// names is opened by a path of its own: there is a *root*, a directory that the owner's configuration or the engine has named, held as a
// descriptor, and a *name* that the kernel resolves beneath it (openat2 with RESOLVE_BENEATH), without links of any kind. Only a regular
// file is ever read or written, and opening it waits for nobody.
//
// Memory: nothing is kept. Descriptors that are given out are the caller's, to be closed with close(2). Any thread.
// Failure: E_NOT_FOUND; E_DENIED (it leads outside, is a link, or is in none of the roots); E_INVALID (neither a regular file nor, where
// one is wanted, a directory); E_LIMIT (larger than allowed); E_FULL, E_NOMEM, E_IO.
#ifndef CAIRN_REACH_REACH_H
#define CAIRN_REACH_REACH_H

#include "os/os.h"

// ---- whose it is
struct reach_whose {
    struct str tenant, project, environment;
};
// Whether what is bound to `bound` may be used by `whose`. An empty member of `bound` fits all.
bool reach_fits(const struct reach_whose *bound, const struct reach_whose *whose);

// ---- roots
// A directory that the owner or the engine names; links on the way to it are the owner's own.
enum code reach_root(const char *path, int *fd, struct error *err) MUST_CHECK;

// Where names may lead. The first place is what relative names are beneath.
struct reach_place {
    struct str path; // absolute; empty: left out
    bool writes;     // may be written, not only read
};
// The root of the place that `path` is in, and the name beneath it ("." is the place itself). The longest place that fits counts.
enum code reach_find(const struct reach_place *places, size_t count, struct str path, bool writes, int *root,
                     struct str *name, struct error *err) MUST_CHECK;

// ---- beneath a root
enum code reach_dir(int root, struct str name, int *fd, struct error *err) MUST_CHECK;
enum code reach_open(int root, struct str name, int *fd, uint64_t *size, struct error *err) MUST_CHECK;
enum code reach_read(int root, struct str name, size_t max, struct arena *arena, struct str *out,
                     struct error *err) MUST_CHECK;
// A whole file, synced, or none; directories on the way are made. What had the name before gives way, and is never written through.
enum code reach_write(int root, struct str name, struct str bytes, struct error *err) MUST_CHECK;
// The same piece by piece. Until it is kept, the file is a draft beside its name.
struct reach_draft {
    int dir, fd; // -1: none
    char draft[32], name[256];
};
enum code reach_begin(int root, struct str name, struct reach_draft *out, struct error *err) MUST_CHECK;
enum code reach_add(struct reach_draft *draft, struct str bytes, struct error *err) MUST_CHECK;
enum code reach_keep(struct reach_draft *draft, struct error *err) MUST_CHECK; // ends the draft, also when it fails
void reach_drop(struct reach_draft *draft);
// Takes a regular file away that was written at `until_ms` (since 1970) at the latest; a newer one stays (E_EXISTS). *size: of the file.
enum code reach_remove(int root, struct str name, int64_t until_ms, bool dry, uint64_t *size, struct error *err) MUST_CHECK;

#endif
