// Names are looked up, connections made and secured by a thread of their own, so that calls on a connection that works never wait for it.
#include "grpc/inside.h"

enum { DIAL_MS = 10000 };

static bool is_stopping(void *context)
{
    struct grpc *grpc = context;
    return atomic_load(&grpc->stopping);
}

static enum code dial(struct grpc *grpc, struct wire *wire, struct error *err)
{
    *wire = (struct wire){.fd = -1, .deadline = grpc_now() + DIAL_MS, .stopped = is_stopping, .stop_context = grpc};
    enum code rc = wire_dial(wire, grpc->host, grpc->port, err);
    if (rc || !grpc->tls) return rc;
    struct wire_tls tls = {.host = grpc->server_name.ptr,
                           .ca_file = grpc->ca_file,
                           .cert_file = grpc->cert_file.ptr,
                           .key_file = grpc->key_file.ptr,
                           .alpn = "h2",
                           .agreed = true};
    rc = wire_secure(wire, &tls, err);
    if (rc) wire_close(wire);
    return rc;
}

void *dial_main(void *context)
{
    struct grpc *grpc = context;
    pthread_mutex_lock(&grpc->mutex);
    while (!atomic_load(&grpc->stopping)) {
        if (!grpc->dialling || grpc->dialled) {
            pthread_cond_wait(&grpc->wanted, &grpc->mutex);
            continue;
        }
        pthread_mutex_unlock(&grpc->mutex);
        struct wire wire;
        struct error err = {0};
        enum code rc = dial(grpc, &wire, &err);
        if (rc) wire.fd = -1;
        pthread_mutex_lock(&grpc->mutex);
        grpc->fresh = wire;
        grpc->why = err;
        grpc->dialled = true;
        grpc_wake(grpc);
    }
    pthread_mutex_unlock(&grpc->mutex);
    return NULL;
}
