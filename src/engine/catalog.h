// Private to src/engine: playbooks by their path in a catalog.
#ifndef CAIRN_ENGINE_CATALOG_H
#define CAIRN_ENGINE_CATALOG_H

#include "base/arena.h"
#include "base/error.h"

// Looks in `directory` and further up. E_NOT_FOUND without a word in `err`; *file and *text are in `arena`.
enum code catalog_find(const char *directory, struct str path, struct arena *arena, struct str *file, struct str *text,
                       struct error *err);

#endif
