// The net thread: one epoll, one queue of notes from other threads, one turn after another.
//
// A turn: wait; take notes and connections; run what is ready (read once, answer, write once); timers; free what ended.
#include "net/inside.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS_PER_TURN = 256, WAIT_MAX_MS = 60 * 1000 };

const struct net_limits net_limits_default = {
    .http = {.line_max = 8 * 1024, .head_max = 16 * 1024, .header_max = 8 * 1024, .count_max = 64, .body_max = 1 << 20},
    .header_ms = 5000,
    .body_grace_ms = 5000,
    .body_rate = 16 * 1024,
    .idle_ms = 60 * 1000,
    .write_ms = 60 * 1000,
    .linger_ms = 1000,
    .stop_ms = 10 * 1000,
    .connections = 10000,
    .per_address = 256,
    .stream_cap = 1024 * 1024,
    .arena_max = (size_t)256 << 20,
};

// ---- notes

static bool net_on_thread(const struct net_server *server)
{
    return atomic_load(&server->running) && pthread_equal(server->thread, pthread_self());
}

static void wake(struct net_server *server)
{
    uint64_t one = 1;
    ssize_t ignored = write(server->event, &one, sizeof(one));
    (void)ignored;
}

static void enqueue(struct net_server *server, struct net_message *note)
{
    note->next = NULL;
    pthread_mutex_lock(&server->mutex);
    bool first = !server->queue_first;
    if (first)
        server->queue_first = note;
    else
        server->queue_last->next = note;
    server->queue_last = note;
    pthread_mutex_unlock(&server->mutex);
    // Only the first of a batch wakes: the others are found with it.
    if (first) wake(server);
}

void net_send(struct net_server *server, struct net_message *note)
{
    if (net_on_thread(server))
        reply_deliver(note);
    else
        enqueue(server, note);
}

static void take_notes(struct net_server *server)
{
    pthread_mutex_lock(&server->mutex);
    struct net_message *note = server->queue_first;
    server->queue_first = server->queue_last = NULL;
    pthread_mutex_unlock(&server->mutex);
    while (note) {
        struct net_message *next = note->next;
        reply_deliver(note);
        note = next;
    }
}

// ---- opening

static enum code format_headers(struct net_server *server, struct error *err)
{
    const struct net_options *options = &server->options;
    server->fixed_ends = calloc(options->header_count + 1, sizeof(*server->fixed_ends));
    if (!server->fixed_ends) return error_nomem(err);
    for (size_t i = 0; i < options->header_count; i++) {
        struct http_header header = options->headers[i];
        if (!http_header_valid(header))
            return error_set(err, E_INVALID, "header %.*s cannot be written", STR_ARG(header.name));
        buf_add(&server->fixed, header.name);
        buf_add(&server->fixed, STR(": "));
        buf_add(&server->fixed, header.value);
        buf_add(&server->fixed, STR("\r\n"));
        server->fixed_ends[i] = server->fixed.len;
    }
    return buf_ok(&server->fixed) ? OK : error_nomem(err);
}

static enum code set_up_tls(struct net_server *server, struct error *err)
{
    const struct net_options *options = &server->options;
    if (!options->tls_certificate && !options->tls_key) return OK;
    if (!options->tls_certificate || !options->tls_key)
        return error_set(err, E_INVALID, "TLS needs both a certificate and a key");
    server->certificate = strdup(options->tls_certificate);
    server->key = strdup(options->tls_key);
    if (options->tls_client_ca) server->client_ca = strdup(options->tls_client_ca);
    if (options->tls_client_crl) server->client_crl = strdup(options->tls_client_crl);
    if (!server->certificate || !server->key || !server->client_ca != !options->tls_client_ca ||
        !server->client_crl != !options->tls_client_crl)
        return error_nomem(err);
    return net_tls_make(server, &server->tls, err);
}

static enum code watch(struct net_server *server, int fd, uint32_t events, struct client_source *source, struct error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? os_errno(err, "cannot watch", "a socket") : OK;
}

static enum code set_up(struct net_server *server, struct error *err)
{
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (server->epoll < 0 || server->event < 0 || server->spare < 0) return os_errno(err, "cannot open", "epoll");
    enum code rc = format_headers(server, err);
    if (rc == OK) rc = set_up_tls(server, err);
    if (rc == OK) rc = net_listen_all(server, err);
    // Edge-triggered: a note's wake-up needs no read.
    if (rc == OK) rc = watch(server, server->event, EPOLLIN | EPOLLET, &server->wake, err);
    for (size_t i = 0; i < server->listener_count && rc == OK; i++)
        rc = watch(server, server->listeners[i].fd, EPOLLIN, &server->listeners[i].source, err);
    return rc;
}

enum code net_open(const struct net_options *options, struct net_server **out, struct error *err)
{
    INVARIANT(options->handle);
    struct net_server *server = calloc(1, sizeof(*server));
    if (!server) return error_nomem(err);
    server->options = *options;
    server->limits = options->limits ? *options->limits : net_limits_default;
    if (server->limits.body_rate == 0) server->limits.body_rate = 1;
    server->wake.kind = SOURCE_WAKE;
    server->epoll = server->event = server->spare = -1;
    pthread_mutex_init(&server->mutex, NULL);
    heap_init(&server->timers);
    buf_init(&server->fixed, 64 * 1024);
    struct moment_in_time now = os_now();
    server->now = now.mono_ms;
    atomic_store(&server->wall_s, now.wall_ms / 1000);
    enum code rc = set_up(server, err);
    if (rc != OK) {
        net_close(server);
        return rc;
    }
    *out = server;
    return OK;
}

uint16_t net_port(const struct net_server *server, size_t index)
{
    INVARIANT(index < server->listener_count);
    return server->listeners[index].port;
}

// ---- turns

static void begin_drain(struct net_server *server)
{
    // What was handed in before net_stop still counts.
    take_notes(server);
    server->draining = true;
    server->stop_at = server->now + server->limits.stop_ms;
    net_listen_close(server);
    for (struct conn *conn = server->conns; conn; conn = conn->next) conn_drain(conn);
}

static int wait_ms(const struct net_server *server)
{
    if (server->ready_first) return 0;
    int64_t until = server->now + WAIT_MAX_MS;
    const struct heap_node *timer = heap_peek(&server->timers);
    if (timer && timer->due < until) until = timer->due;
    if (server->options.tick && server->tick_at < until) until = server->tick_at;
    if (server->draining && server->stop_at < until) until = server->stop_at;
    int64_t now = os_now().mono_ms;
    return until > now ? (int)(until - now) : 0;
}

static void take_event(struct net_server *server, const struct epoll_event *event)
{
    struct client_source *source = event->data.ptr;
    if (source->kind == SOURCE_WAKE) take_notes(server);
    if (source->kind == SOURCE_CONN) conn_event((struct conn *)(void *)source, event->events);
    if (source->kind == SOURCE_LISTENER) {
        struct listener *listener = CONTAINER_OF(source, struct listener, source);
        if (listener->fd >= 0) net_accept(listener);
    }
}

static void run_ready(struct net_server *server)
{
    struct conn *conn = server->ready_first;
    server->ready_first = server->ready_last = NULL;
    while (conn) {
        struct conn *next = conn->ready_next;
        conn->is_ready = false;
        if (conn->state == CONN_DEAD)
            conn_release(conn);
        else
            conn_run(conn);
        conn = next;
    }
}

static void run_timers(struct net_server *server)
{
    for (struct heap_node *node = heap_peek(&server->timers); node && node->due <= server->now;
         node = heap_peek(&server->timers))
        conn_timer(CONTAINER_OF(node, struct conn, timer));
    if (server->options.tick && server->now >= server->tick_at) {
        server->tick_at = server->now + server->options.tick_ms;
        server->options.tick(server->options.context);
    }
}

static void reap(struct net_server *server)
{
    while (server->reap_first) {
        struct conn *conn = server->reap_first;
        server->reap_first = conn->reap_next;
        conn_free(conn);
    }
}

static void kill_all(struct net_server *server)
{
    for (struct conn *conn = server->conns; conn; conn = conn->next) conn_kill(conn, NET_END_STOP);
}

static void turn(struct net_server *server)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int count = epoll_wait(server->epoll, events, EVENTS_PER_TURN, wait_ms(server));
    struct moment_in_time now = os_now();
    server->now = now.mono_ms;
    atomic_store_explicit(&server->wall_s, now.wall_ms / 1000, memory_order_relaxed);
    for (int i = 0; i < count; i++) take_event(server, &events[i]);
    if (atomic_load(&server->stopping) && !server->draining) begin_drain(server);
    run_ready(server);
    run_timers(server);
    if (server->draining && server->now >= server->stop_at) kill_all(server);
    reap(server);
}

void net_run(struct net_server *server)
{
    sigset_t pipes;
    // libssl writes without MSG_NOSIGNAL; a client that hangs up must not end the process.
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    server->thread = pthread_self();
    atomic_store(&server->running, true);
    server->now = os_now().mono_ms;
    server->tick_at = server->now + server->options.tick_ms;
    while (!server->draining || server->conn_count) turn(server);
    take_notes(server);
    run_ready(server);
    reap(server);
    atomic_store(&server->running, false);
}

void net_stop(struct net_server *server)
{
    atomic_store(&server->stopping, true);
    wake(server);
}

void net_close(struct net_server *server)
{
    net_listen_close(server);
    kill_all(server);
    while (server->queue_first) take_notes(server);
    while (server->conns) conn_free(server->conns);
    while (server->pool) {
        struct piece *piece = server->pool;
        server->pool = piece->next;
        free(piece);
    }
    if (server->epoll >= 0) close(server->epoll);
    if (server->event >= 0) close(server->event);
    if (server->spare >= 0) close(server->spare);
    heap_release(&server->timers);
    buf_release(&server->fixed);
    free(server->fixed_ends);
    SSL_CTX_free(server->tls);
    free(server->certificate);
    free(server->key);
    free(server->client_ca);
    free(server->client_crl);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

void net_stats(const struct net_server *server, struct net_stats *out)
{
    const struct counters *c = &server->counters;
    *out = (struct net_stats){
        .open = atomic_load(&c->open),
        .accepted = atomic_load(&c->accepted),
        .over_limit = atomic_load(&c->over_limit),
        .requests = atomic_load(&c->requests),
        .refused = atomic_load(&c->refused),
        .timeouts = atomic_load(&c->timeouts),
        .handshakes_failed = atomic_load(&c->handshakes_failed),
        .streams = atomic_load(&c->streams),
        .streams_cut = atomic_load(&c->streams_cut),
        .bytes_in = atomic_load(&c->bytes_in),
        .bytes_out = atomic_load(&c->bytes_out),
    };
}
