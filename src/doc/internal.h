// Private to src/doc.
#ifndef CAIRN_DOC_INTERNAL_H
#define CAIRN_DOC_INTERNAL_H

#include "doc/doc.h"

// `text` is UTF-8 without a byte order mark and within the size limit.
enum code yaml_tree(struct str text, struct str file, const struct doc_limits *limits, struct arena *arena,
                    struct json *out, struct diagnostics *diagnostics) MUST_CHECK;

// merge.c: mappings that `<<` puts under the keys of a mapping. Of a list the first counts most, so it is kept last.
// Adds `value`, a mapping or a list of them; otherwise *fits is false. False: no memory.
bool merge_add(struct arena *arena, struct json *merges, const struct json *value, bool *fits) MUST_CHECK;
// `object` becomes what `merges` have, the later ones over the earlier, with its own members over all. E_NOMEM, E_LIMIT.
enum code merge_apply(struct arena *arena, const struct json *merges, uint32_t key_max, struct json *object) MUST_CHECK;

// Plain scalars as the YAML 1.2 core schema types them.
enum scalar {
    SCALAR_STRING = 1,
    SCALAR_NULL,
    SCALAR_BOOL,
    SCALAR_INT,
    SCALAR_FLOAT,
    SCALAR_NONFINITE, // .inf, .nan: numbers that JSON does not have
};

enum scalar scalar_kind(struct str text);
// The JSON value of `text`, which is of `kind` (not NONFINITE). Strings are borrowed. E_INVALID: an integer in
// hexadecimal or octal that does not fit int64, a float beyond all doubles; E_LIMIT: a number that is too long.
enum code scalar_value(struct str text, enum scalar kind, struct arena *arena, struct json *out) MUST_CHECK;

#endif
