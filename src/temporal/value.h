// Values that are too large for a message of Temporal, kept by the server all the same, by their digest.
//
// A value belongs to the workflow of a run. Its bytes are cut in pieces; each piece is the input of a workflow of its own, of type
// cairn.value.v1 with the id TENANT/RUN#SHA256.PIECE, that never gets a task: its start is delayed for longer than it lives. Where
// the value itself would stand, there is {"cairn.value":{"sha256":..,"bytes":..}}. So everything that an activity needs is at the
// server, and a worker needs no other way to the host. The host deletes the values of a run when the run has ended (keeper.c); a
// value that is not deleted ends by itself.
//
// Owner: nobody; a client is all that is needed. Any thread. Both ways wait for the server.
#ifndef CAIRN_TEMPORAL_VALUE_H
#define CAIRN_TEMPORAL_VALUE_H

#include "base/sha256.h"
#include "temporal/temporal.h"

#define TEMPORAL_VALUE "cairn.value.v1"
enum {
    TEMPORAL_INLINE_MAX = 32 << 10,        // what is longer goes by digest: the whole history of a workflow has 50 MiB at most
    TEMPORAL_LARGE_MAX = 128 << 20,        // of one value
};

// Keeps the bytes. The same bytes again are the same value. E_LIMIT: too large; else as temporal_ask.
enum code temporal_value_put(struct temporal *temporal, struct str workflow, struct str bytes, struct digest *digest,
                             struct error *err) MUST_CHECK;
// E_NOT_FOUND: the server does not have it (any more); E_INVALID: what it has are other bytes.
enum code temporal_value_get(struct temporal *temporal, struct str workflow, const struct digest *digest, uint64_t size,
                             struct arena *arena, struct str *out, struct error *err) MUST_CHECK;
// The workflow that a value belongs to, by the id of one of its pieces. False: it is none.
bool temporal_value_parse(struct str id, struct str *workflow);

// Text as it is sent: itself, or the value that it was kept as. In `arena`, or `text`.
enum code temporal_text_put(struct temporal *temporal, struct str workflow, struct str text, struct arena *arena,
                            struct str *out, struct error *err) MUST_CHECK;
// And back.
enum code temporal_text_get(struct temporal *temporal, struct str workflow, struct str sent, struct arena *arena,
                            struct str *out, struct error *err) MUST_CHECK;
bool temporal_text_is_kept(struct str sent); // it stands for a value

#endif
