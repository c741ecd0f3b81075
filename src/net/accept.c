// New connections, and how many there may be.
#include "net/inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { ACCEPTS_PER_TURN = 128, ARENA_BLOCK = 2048 };

static void refuse(struct net_server *server, int fd, int status, bool tls)
{
    struct buf out;
    COUNT(server, over_limit, 1);
    // Before a handshake there is no way to say so.
    if (!tls) {
        buf_init(&out, 16 * 1024);
        reply_write_refusal(server, &out, status, "too many connections");
        // Politeness only: whether it gets there makes no difference to us.
        if (send(fd, out.ptr, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) shutdown(fd, SHUT_WR);
        buf_release(&out);
        // What is already there is read, so that closing sends no reset that would overtake the answer.
        (void)recv(fd, server->input, sizeof(server->input), MSG_DONTWAIT);
    }
    close(fd);
}

static void ip_of(const struct sockaddr_storage *peer, unsigned char ip[16])
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (peer->ss_family == AF_INET6) {
        memcpy(ip, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 16);
    } else {
        memcpy(ip, mapped, 12);
        memcpy(ip + 12, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    }
}

static struct address **address_slot(struct net_server *server, const unsigned char ip[16])
{
    uint64_t hash = str_hash((struct str){(const char *)ip, 16});
    struct address **slot = &server->addresses[hash % ADDRESS_BUCKETS];
    while (*slot && memcmp((*slot)->ip, ip, 16) != 0) slot = &(*slot)->next;
    return slot;
}

// NULL: too many, or no memory.
static struct address *address_take(struct net_server *server, const struct sockaddr_storage *peer)
{
    unsigned char ip[16];
    ip_of(peer, ip);
    struct address **slot = address_slot(server, ip);
    if (!*slot) {
        *slot = calloc(1, sizeof(**slot));
        if (!*slot) return NULL;
        memcpy((*slot)->ip, ip, sizeof(ip));
    }
    if ((*slot)->count >= server->limits.per_address && !net_ip_is_proxy(server, ip)) return NULL;
    (*slot)->count++;
    return *slot;
}

void net_address_release(struct conn *conn)
{
    struct address *address = conn->address;
    conn->address = NULL;
    if (!address || --address->count) return;
    struct address **slot = address_slot(conn->server, address->ip);
    *slot = address->next;
    free(address);
}

static void name_peer(struct conn *conn, const struct sockaddr_storage *peer)
{
    struct ucred credentials;
    socklen_t size = sizeof(credentials);
    conn->uid = -1;
    if (peer->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, conn->peer,
                  sizeof(conn->peer));
    } else if (peer->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, conn->peer, sizeof(conn->peer));
    } else {
        memcpy(conn->peer, "unix", sizeof("unix"));
        if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) conn->uid = credentials.uid;
    }
    conn->proxy = net_is_proxy(conn->server, str_from(conn->peer));
}

static void start(struct conn *conn)
{
    struct net_server *server = conn->server;
    const struct net_limits *limits = &server->limits;
    arena_init(&conn->arena, ARENA_BLOCK, limits->arena_max);
    http_parser_init(&conn->parser, HTTP_REQUESTS, &limits->http, &conn->arena);
    buf_init(&conn->pending, INPUT_SIZE);
    buf_init(&conn->answer, (size_t)1 << 30);
    conn->since = conn->progress = server->now;
    conn->writable = true;
    conn->next = server->conns;
    if (conn->next) conn->next->previous = conn;
    server->conns = conn;
    server->conn_count++;
    COUNT(server, accepted, 1);
    COUNT(server, open, 1);
}

// Takes the descriptor. Edge-triggered and registered once: no epoll_ctl per request.
static void admit(struct listener *listener, int fd, const struct sockaddr_storage *peer, struct address *address)
{
    struct net_server *server = listener->server;
    bool tls = server->certificate && !listener->local;
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        if (address) address->count--;
        close(fd);
        return;
    }
    conn->x.source.kind = SOURCE_CONN;
    conn->server = server;
    conn->fd = fd;
    conn->door = (struct http_door){.port = listener->port, .tls = tls};
    conn->address = address;
    name_peer(conn, peer);
    start(conn);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = conn};
    if (tls) conn->ssl = net_tls_accept(conn);
    bool ok = !tls || conn->ssl;
    if (!ok || !heap_push(&server->timers, &conn->timer, conn_deadline(conn)) ||
        epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        conn_kill(conn, NET_END_GONE);
}

static void take(struct listener *listener, int fd, const struct sockaddr_storage *peer)
{
    struct net_server *server = listener->server;
    bool tls = server->certificate && !listener->local;
    if (server->conn_count >= server->limits.connections) {
        refuse(server, fd, 503, tls);
        return;
    }
    struct address *address = listener->local ? NULL : address_take(server, peer);
    if (!listener->local && !address) {
        refuse(server, fd, 429, tls);
        return;
    }
    admit(listener, fd, peer, address);
}

// No descriptors are left. The one we kept is given up to take the connection and close it: otherwise it would wait for
// ever, and epoll would tell of it all the time.
static void shed(struct net_server *server, int listener)
{
    if (server->spare < 0) return;
    close(server->spare);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) close(fd);
    server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    COUNT(server, over_limit, 1);
}

void net_accept(struct listener *listener)
{
    for (size_t i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t size = sizeof(peer);
        int fd = accept4(listener->fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take(listener, fd, &peer);
        } else if (errno == EMFILE || errno == ENFILE) {
            shed(listener->server, listener->fd);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}
