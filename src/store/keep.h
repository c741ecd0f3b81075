// Where results may be kept outside of the store: bytes under the hash of their content.
//
// The store remembers what it has given away: a note in KEEP_SPACE, key SHA-256, value {"bytes", "place", "store"}. It is durable before
// the bytes go, so that the engine that clears up finds them whatever happens, and the event that names the result is stored after they
// have arrived. Readers ask for a hash (store_blob) and get the bytes from wherever they are.
//
// The engine that clears up looks (keep_ops.look), takes back the note at the version that was listed, and drops what was looked at: bytes
// that an engine put again meanwhile have a newer note, or a newer version, and stay.
#ifndef CAIRN_STORE_KEEP_H
#define CAIRN_STORE_KEEP_H

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"

#define KEEP_SPACE STR("result")

struct keep;

// All of them on any thread, and each waits for its answer. E_UNREACHABLE: not now; E_NOMEM.
struct keep_ops {
    const char *name; // as references have it: "nats_object"
    // Whole and acknowledged when OK; what was there under the hash is replaced. E_LIMIT, E_DENIED: it takes none like this.
    enum code (*put)(struct keep *keep, const struct digest *sha256, struct str bytes, struct error *err);
    // `place` as it was when they were put. E_NOT_FOUND; E_CORRUPT: what is there is something else.
    enum code (*get)(struct keep *keep, struct str place, const struct digest *sha256, struct arena *arena,
                     struct str *out, struct error *err);
    // The same, out of memory and without a wait; or NULL.
    bool (*have)(struct keep *keep, const struct digest *sha256, struct arena *arena, struct str *out);
    // What is there now: a number that rises with each put. E_NOT_FOUND.
    enum code (*look)(struct keep *keep, struct str place, const struct digest *sha256, uint64_t *version,
                      struct error *err);
    // That goes, unless something newer is there.
    enum code (*drop)(struct keep *keep, struct str place, const struct digest *sha256, uint64_t version,
                      struct error *err);
    void (*close)(struct keep *keep);
};

struct keep { // implementations embed this as their first member
    const struct keep_ops *ops;
    struct str place; // where it puts things: a word of its own, for notes and for people
};

static inline void keep_close(struct keep *keep)
{
    if (keep) keep->ops->close(keep);
}

#endif
