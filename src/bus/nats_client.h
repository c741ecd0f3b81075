// A connection to a NATS server for callers that ask one thing at a time and wait: results in an object store (bus/objects.h), the tasks
// of kind nats. The sinks of the bus send many at once over the same connection (bus/nats.h).
#ifndef CAIRN_BUS_NATS_CLIENT_H
#define CAIRN_BUS_NATS_CLIENT_H

#include "base/arena.h"
#include "json/json.h"

struct nats;

struct nats_identity { // empty: not this way
    struct str user, password, token;
    struct str credentials; // a creds file, or the seed of an nkey
};

struct nats_call {
    struct str url;     // nats://HOST[:PORT] or tls://HOST[:PORT]; a server that demands TLS gets it either way
    struct str ca_file; // of TLS; empty: the system's
    int64_t timeout_ms;
    struct nats_identity who;
    struct arena *arena;            // of texts while it is dialled
    bool (*stopped)(void *context); // asked while waiting; NULL: never. The context outlives the connection
    void *context;
};
// E_INVALID: the address, or credentials that cannot be read; E_DENIED: the server says no, or its certificate is not accepted; E_IO,
// E_TIMEOUT, E_CANCELLED.
enum code nats_dial(const struct nats_call *call, struct nats **out, struct error *err) MUST_CHECK;
void nats_hang_up(struct nats *nats); // NULL: nothing

// Questions over one connection. owner: one thread at a time
struct nats_client {
    struct nats *nats;
    struct arena *arena; // of answers
    int64_t deadline;    // monotonic
    uint64_t asked;
    bool broken; // nothing more can be said over it
};

enum { NATS_REPLY_SIZE = 80 };
void nats_reply_name(struct nats_client *client, char out[NATS_REPLY_SIZE]); // a new one each time
// `reply` NULL: no answer is wanted; `head` may be empty.
enum code nats_publish(struct nats_client *client, const char *subject, const char *reply, struct str head,
                       struct str body, struct error *err) MUST_CHECK;
enum code nats_settle(struct nats_client *client, struct error *err) MUST_CHECK; // until the server has read it all
// The object that answers `reply`. *none: nobody is there who would answer.
enum code nats_answer(struct nats_client *client, const char *reply, struct json *out, bool *none,
                      struct error *err) MUST_CHECK;
enum code nats_request(struct nats_client *client, const char *subject, struct str head, struct str body,
                       struct json *out, bool *none, struct error *err) MUST_CHECK;
int64_t nats_error_of(const struct json *answer, const char *which); // 0: it is none

#endif
