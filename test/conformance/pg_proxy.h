// A door to the cluster that lets connections break: after a random number of bytes in one direction or the other it closes both ends.
// What the server was asked before that is done or not; an answer that was on its way is lost.
#ifndef CAIRN_TEST_CONFORMANCE_PG_PROXY_H
#define CAIRN_TEST_CONFORMANCE_PG_PROXY_H

#include "conformance/pg_cluster.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

struct pg_proxy {
    char dir[300]; // what clients take for the place of the server
    int listener;
    atomic_int cuts[2]; // towards the server, towards the client
    atomic_bool whole;  // from now on nothing breaks
    atomic_int coming;  // so many connections are told that the server starts
    unsigned seed;
};

struct pg_relay {
    struct pg_proxy *proxy;
    int ends[2]; // the client, the server
    int side;    // where it breaks: bytes read from ends[side]
    size_t left;
};

static inline int pg_socket(const char *dir, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(to->sun_path, sizeof(to->sun_path), "%.90s/.s.PGSQL.5432", dir);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static inline bool pg_send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static inline void *pg_relay_run(void *context)
{
    struct pg_relay *relay = context;
    char bytes[4096];
    for (bool open = true; open;) {
        struct pollfd polled[2] = {{.fd = relay->ends[0], .events = POLLIN}, {.fd = relay->ends[1], .events = POLLIN}};
        if (poll(polled, 2, 20000) <= 0) break;
        for (int side = 0; side < 2 && open; side++) {
            if (!polled[side].revents) continue;
            ssize_t got = recv(relay->ends[side], bytes, sizeof(bytes), 0);
            if (got <= 0) open = false;
            size_t size = got > 0 ? (size_t)got : 0;
            bool breaks = open && side == relay->side && size >= relay->left && !atomic_load(&relay->proxy->whole);
            if (breaks) size = relay->left;
            if (side == relay->side) relay->left -= size < relay->left ? size : relay->left;
            if (open && !pg_send_all(relay->ends[1 - side], bytes, size)) open = false;
            if (breaks) {
                atomic_fetch_add(&relay->proxy->cuts[side], 1);
                open = false;
            }
        }
    }
    close(relay->ends[0]);
    close(relay->ends[1]);
    free(relay);
    return NULL;
}

static inline bool pg_refuse_start(struct pg_proxy *proxy, int client)
{
    static const char error[] = "E\0\0\0\x3eSFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0";
    char bytes[4096];
    if (atomic_load(&proxy->coming) <= 0) return false;
    atomic_fetch_sub(&proxy->coming, 1);
    (void)!recv(client, bytes, sizeof(bytes), 0);
    CHECK(pg_send_all(client, error, sizeof(error)));
    close(client);
    return true;
}

static inline void *pg_proxy_run(void *context)
{
    struct pg_proxy *proxy = context;
    for (;;) {
        int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) return NULL;
        if (pg_refuse_start(proxy, client)) continue;
        struct sockaddr_un to;
        int server = pg_socket(pg_cluster.dir, &to);
        struct pg_relay *relay = calloc(1, sizeof(*relay));
        if (!relay || connect(server, (struct sockaddr *)&to, sizeof(to)) != 0) abort();
        // A session begins with about 3000 bytes there and 1200 back; an append is some 2500 there and 100 back.
        int side = rand_r(&proxy->seed) % 2;
        size_t left = side ? 900 + (size_t)rand_r(&proxy->seed) % 1500 : 1500 + (size_t)rand_r(&proxy->seed) % 20000;
        *relay = (struct pg_relay){proxy, {client, server}, side, left};
        pthread_t thread;
        if (pthread_create(&thread, NULL, pg_relay_run, relay) != 0) abort();
        pthread_detach(thread);
    }
}

static inline void pg_proxy_start(struct pg_proxy *proxy)
{
    struct sockaddr_un to;
    pthread_t thread;
    static int count;
    snprintf(proxy->dir, sizeof(proxy->dir), "%s/p%d-%d", pg_cluster.dir, (int)getpid(), ++count);
    CHECK(mkdir(proxy->dir, 0700) == 0);
    proxy->listener = pg_socket(proxy->dir, &to);
    proxy->seed = 11;
    CHECK(bind(proxy->listener, (struct sockaddr *)&to, sizeof(to)) == 0 && listen(proxy->listener, 64) == 0);
    CHECK(pthread_create(&thread, NULL, pg_proxy_run, proxy) == 0);
    pthread_detach(thread);
}

#endif
