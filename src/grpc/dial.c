// Names are looked up, connections made and secured by a thread of their own, so that calls on a connection that works never wait for it.
#include "grpc/inside.h"

enum { DIAL_MS = 10000 };

static bool is_stopping(void *context)
{
    struct grpc *grpc = context;
    return atomic_load(&grpc->stopping);
}

static enum code dial(struct grpc *grpc, struct tcp *tcp, struct error *err)
{
    *tcp = (struct tcp){.fd = -1, .stopped = is_stopping, .context = grpc};
    int64_t deadline = grpc_now() + DIAL_MS;
    enum code rc = tcp_dial(tcp, grpc->host, grpc->port, deadline, err);
    if (rc || !grpc->tls) return rc;
    struct tcp_tls tls = {.host = grpc->server_name.ptr,
                          .ca_file = grpc->ca_file,
                          .cert_file = grpc->cert_file,
                          .key_file = grpc->key_file,
                          .alpn = "h2"};
    rc = tcp_secure(tcp, &tls, deadline, err);
    if (rc) tcp_close(tcp);
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
        struct tcp tcp;
        struct error err = {0};
        enum code rc = dial(grpc, &tcp, &err);
        if (rc) tcp.fd = -1;
        pthread_mutex_lock(&grpc->mutex);
        grpc->fresh = tcp;
        grpc->why = err;
        grpc->dialled = true;
        grpc_wake(grpc);
    }
    pthread_mutex_unlock(&grpc->mutex);
    return NULL;
}
