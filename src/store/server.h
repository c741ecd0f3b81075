// What a server does beyond being a store: calls of its API, over the connection that a handle has.
#ifndef CAIRN_STORE_SERVER_H
#define CAIRN_STORE_SERVER_H

#include "store/store.h"

struct server_call {
    const char *method;
    struct str path;
    const struct json *body; // NULL: none
    struct str key;          // of idempotency: it may be sent again when a kept connection broke; empty: it is not
    struct str bytes;        // instead of `body`: as they are
};
// *out is the answer's JSON (type 0: an answer without content); of a problem that, when the server sent one (type 0: nothing).
// E_UNSUPPORTED: the store is no server. E_UNREACHABLE, E_DENIED, E_CONFLICT, ... with the server's words.
enum code store_server_call(struct store *store, const struct server_call *call, struct arena *arena, struct json *out,
                            struct error *err) MUST_CHECK;

// Whether the server gives this token records without their values.
bool store_server_redacted(const struct store *store);

#endif
