// A client of gRPC over HTTP/2 (libnghttp2): unary calls to one server that the operator named, many at a time over one connection.
//
//  - Plain (h2c) or TLS with ALPN; chain and name are verified, always; a certificate of one's own (mTLS) or a bearer key by reference.
//  - A server that says GOAWAY keeps the calls that it has; new ones go over a new connection meanwhile. What it has not looked at is sent
//    again without a word.
//  - Each call has a deadline, which the server hears of too. A connection that falls silent is found by pings.
//  - A call is tried again as its class says. What is tried again is the same bytes: a call that changes something names itself.
//
//   grpc_open -> grpc_send, grpc_call (any thread) -> grpc_close
//
// One thread does all input and output and calls `done`; one more looks up names and connects.
#ifndef CAIRN_GRPC_GRPC_H
#define CAIRN_GRPC_GRPC_H

#include "base/arena.h"
#include "base/error.h"

struct grpc;

enum {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16
};
const char *grpc_status_name(int status); // "NOT_FOUND"
enum code grpc_status_code(int status);   // what it is in this program

struct grpc_header {
    struct str name, value;
};

struct grpc_options { // texts are copied
    struct str address; // HOST:PORT, [V6]:PORT
    bool tls;
    struct str ca_file;             // instead of the system's; empty = the system's
    struct str cert_file, key_file; // PEM: shown to a server that asks for one; both or none
    struct str server_name;         // that the certificate is for; empty = the host of the address
    // A bearer key, read whenever a connection is made: a variable of the environment, or a file. Only with TLS, or to this machine.
    struct str token_variable, token_file;
    const struct grpc_header *headers; // of every call
    size_t header_count;
    int64_t keepalive_ms; // between pings while calls are open; 0 = 30 s. Half of it without an answer: the connection is given up
    size_t answer_max;    // bytes of a message; 0 = 128 MiB
};
// Nothing is sent yet. E_INVALID (the address, half a certificate, a key in the clear), E_UNSUPPORTED (libnghttp2 is not here).
enum code grpc_open(const struct grpc_options *options, struct grpc **out, struct error *err) MUST_CHECK;
// Every call that is open ends with GRPC_CANCELLED, every later one at once. Their `done` was called when this returns; not from `done`.
void grpc_shut(struct grpc *grpc);
void grpc_shut_polls(struct grpc *grpc); // the same of polls alone, and soon: they may not have ended yet when this returns
void grpc_close(struct grpc *grpc); // shuts it, if need be; NULL is fine

enum grpc_class {
    GRPC_ONCE = 1, // whatever comes of it, except that the server has certainly not looked at it
    GRPC_SAFE,     // may be repeated: when the server is away, overloaded or broke off, until budget_ms
    GRPC_POLL,     // a long poll: for ever, and a deadline that runs out is only the next try
};

struct grpc_call {
    const char *path; // "/package.Service/Method"; lives as long as the call
    struct str body;  // copied
    int64_t timeout_ms; // of one try
    enum grpc_class retry;
    int64_t budget_ms; // SAFE: of all tries together; 0 = timeout_ms
};

struct grpc_answer {
    int status;
    struct str message; // readable, of a failure
    struct str details; // grpc-status-details-bin, decoded
    struct str body;
    unsigned tries;
};

// Exactly once for each call, on the thread of the client; what the answer points to lives during the call. Must not wait for other calls.
typedef void (*grpc_done)(void *context, const struct grpc_answer *answer);
// E_NOMEM; otherwise `done` will be called, perhaps before this returns. *id (may be NULL) names the call.
enum code grpc_send(struct grpc *grpc, const struct grpc_call *call, grpc_done done, void *context, uint64_t *id,
                    struct error *err) MUST_CHECK;
// It ends with GRPC_CANCELLED, unless it has ended.
void grpc_cancel(struct grpc *grpc, uint64_t id);
// Waits. The answer is in `arena`. Not OK: what grpc_status_code says of its status, with the server's words; the answer is there too.
enum code grpc_call(struct grpc *grpc, const struct grpc_call *call, struct arena *arena, struct grpc_answer *answer,
                    struct error *err) MUST_CHECK;

// Whether the last try to connect has failed and none has gone well since; why it has. Any thread.
bool grpc_is_away(struct grpc *grpc, struct error *why);

struct grpc_counts {
    uint64_t calls, tries, connections, goaways;
};
struct grpc_counts grpc_counts(struct grpc *grpc);

#endif
