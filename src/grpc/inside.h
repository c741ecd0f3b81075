// Private to grpc/.
//
//   grpc.c   calls from outside, the thread, tries and deadlines    conn.c   one connection: frames, streams, pings
//   dial.c   the thread that connects                               status.c  what a status means
#ifndef CAIRN_GRPC_INSIDE_H
#define CAIRN_GRPC_INSIDE_H

#include "base/buf.h"
#include "fetch/wire.h"
#include "grpc/grpc.h"
#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>

struct conn;
struct nghttp2_session;

enum { FRAME_HEAD = 5 }; // of a message: a flag and four bytes of length

// The thread of the client owns a call from the moment it takes it out of `incoming`.
struct rpc {
    struct rpc *next;
    uint64_t id;
    const char *path;
    struct buf request; // with its head
    int64_t timeout_ms, budget_ms, began, give_up; // give_up: SAFE, no further try after it
    enum grpc_class retry;
    grpc_done done;
    void *context;
    unsigned tries, throttled; // throttled: of the tries, those that an overloaded server refused
    int64_t due;               // waits until then; 0 = at once
    // ---- of the try at hand
    struct conn *conn; // NULL: it waits
    int32_t stream;
    int64_t deadline;
    size_t sent;
    int http, status; // 0, -1: not heard
    bool refused;     // the server has not looked at it
    bool too_large;
    struct buf answer, message, details;
};

struct conn {
    struct conn *next;
    struct grpc *grpc;
    struct wire wire;
    struct nghttp2_session *session;
    struct buf in, out;
    size_t sent;   // of `out`
    size_t calls;  // that are open on it
    bool draining; // no new ones
    bool more;     // it has not been read to its end
    bool dead;
    int64_t pinged, heard; // pinged: 0 = no ping is on its way
};

struct grpc {
    pthread_mutex_t mutex;
    pthread_cond_t wanted; // the dialling thread: a connection is wanted, or the end
    pthread_t thread, dialler;
    bool has_thread, has_dialler;
    atomic_ulong self; // of the thread, as it knows itself; 0: not yet
    int wake; // eventfd
    atomic_bool stopping;
    // ---- with the lock
    struct rpc *incoming, **last_incoming;
    uint64_t next_id;
    uint64_t *cancelled;
    size_t cancelled_count, cancelled_capacity;
    bool dialling, dialled, shut, polls_shut;
    struct wire fresh;      // what was dialled, or why not
    struct error why, away; // away: of the last try to connect, OK when it went well
    struct grpc_counts counts;
    // ---- the thread's own
    struct rpc *calls;
    struct conn *conns, *current;
    unsigned failures; // to connect, one after the other
    int64_t retry_at;
    struct buf token; // as it was read for the last connection: "Bearer ..."
    uint64_t random;
    // ---- settled when it was opened
    struct arena arena;
    char host[256], port[8];
    struct str authority, server_name, ca_file, cert_file, key_file, token_variable, token_file;
    bool tls;
    const struct grpc_header *headers;
    size_t header_count, answer_max;
    int64_t keepalive_ms;
};

int64_t grpc_now(void);

// status.c
bool status_again(const struct rpc *call, struct str message); // whether this outcome may be tried again
int status_of_http(int http);
void percent_decode(struct buf *out, struct str text);

// dial.c
void *dial_main(void *grpc);

// conn.c. On the client's thread.
struct conn *h2_conn_open(struct grpc *grpc,
                          struct wire *wire);                  // takes the wire; NULL: out of memory, and it is closed
bool h2_conn_submit(struct conn *conn, struct rpc *call);     // false: out of memory
void h2_conn_read(struct conn *conn);
void h2_conn_flush(struct conn *conn);
void h2_conn_tick(struct conn *conn, int64_t now);
int64_t h2_conn_due(const struct conn *conn); // when h2_conn_tick has something to do
void h2_conn_reset(struct conn *conn, struct rpc *call); // its stream: we do not wait for it any more
void h2_conn_free(struct conn *conn);

// grpc.c
void call_ended(struct rpc *call); // its stream is closed, or its connection gone
void grpc_wake(struct grpc *grpc);  // any thread: its thread looks again

#endif
