// Sockets that listen: TCP, Unix, and those that another process has made.
#include "net/inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, INHERITED_FIRST = 3 };

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static bool split_address(const char *text, struct str *host, uint16_t *port)
{
    struct str digits;
    int64_t number;
    if (!http_host_split(str_from(text), host, &digits) || digits.len == 0) return false;
    if (!str_int64(digits, &number)) return false;
    *port = (uint16_t)number;
    return true;
}

// Numbers and "localhost" only: what a name means may change between looking it up and binding to it.
static bool parse_tcp(const char *text, union any_address *out, socklen_t *size)
{
    struct str host;
    uint16_t port;
    char name[INET6_ADDRSTRLEN + 2];
    memset(out, 0, sizeof(*out));
    if (!split_address(text, &host, &port)) return false;
    bool v6 = host.ptr[0] == '[';
    if (v6) host = str_slice(host, 1, host.len - 1);
    if (http_name_is(host, "localhost")) host = STR("127.0.0.1");
    if (host.len >= sizeof(name)) return false;
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    if (v6) {
        *size = sizeof(out->v6);
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        return inet_pton(AF_INET6, name, &out->v6.sin6_addr) == 1;
    }
    *size = sizeof(out->v4);
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(port);
    return inet_pton(AF_INET, name, &out->v4.sin_addr) == 1;
}

static const char *unix_path(const char *text)
{
    return strncmp(text, "unix:", 5) == 0 ? text + 5 : NULL;
}

bool net_is_local(const char *address)
{
    union any_address parsed;
    socklen_t size;
    if (unix_path(address)) return true;
    if (!parse_tcp(address, &parsed, &size)) return false;
    if (parsed.any.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&parsed.v6.sin6_addr);
    return ntohl(parsed.v4.sin_addr.s_addr) >> 24 == 127;
}

static enum code bind_failed(const char *text, struct error *err)
{
    if (errno == EADDRINUSE) return error_set(err, E_EXISTS, "cannot listen on %s: the address is in use", text);
    return os_errno(err, "listen on", text);
}

static enum code listen_tcp(const char *text, int *out, struct error *err)
{
    union any_address address;
    socklen_t size;
    int on = 1;
    if (!parse_tcp(text, &address, &size))
        return error_set(err, E_INVALID,
                         "\"%s\" is no address to listen on: 127.0.0.1:PORT, [::1]:PORT, localhost:PORT or unix:PATH",
                         text);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return os_errno(err, "listen on", text);
    bool set = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
               // Accepted sockets inherit it: one call here instead of one per connection.
               setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
               (address.any.sa_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0);
    if (!set || bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0) {
        enum code rc = bind_failed(text, err);
        close(fd);
        return rc;
    }
    *out = fd;
    return OK;
}

// A socket file that nobody answers at is left over from a process that died.
static enum code clear_path(const char *path, const struct sockaddr_un *address, struct error *err)
{
    struct stat status;
    if (lstat(path, &status) < 0) return OK;
    if (!S_ISSOCK(status.st_mode)) return error_set(err, E_EXISTS, "%s exists and is no socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return os_errno(err, "listen on", path);
    int rc = connect(fd, (const struct sockaddr *)address, sizeof(*address));
    bool refused = rc < 0 && errno == ECONNREFUSED;
    close(fd);
    if (!refused) return error_set(err, E_LOCKED, "another process listens on %s", path);
    return unlink(path) < 0 ? os_errno(err, "cannot replace", path) : OK;
}

static enum code listen_unix(const char *path, int *out, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof(address.sun_path))
        return error_set(err, E_INVALID, "the path of a socket has 1 to %zu bytes: %s", sizeof(address.sun_path) - 1,
                         path);
    memcpy(address.sun_path, path, strlen(path));
    enum code rc = clear_path(path, &address, err);
    if (rc != OK) return rc;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // The mode of the descriptor is the mode of the file that bind makes: there is no moment in which others may connect.
    if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(path, 0600) < 0 || listen(fd, BACKLOG) < 0) {
        rc = bind_failed(path, err);
        if (fd >= 0) close(fd);
        return rc;
    }
    *out = fd;
    return OK;
}

static enum code add(struct net_server *server, int fd, const char *path, struct error *err)
{
    union any_address address;
    socklen_t size = sizeof(address);
    struct listener *listener = &server->listeners[server->listener_count];
    memset(&address, 0, sizeof(address));
    if (getsockname(fd, &address.any, &size) < 0) return os_errno(err, "listen on", "a descriptor");
    *listener = (struct listener){.source = {SOURCE_LISTENER}, .server = server, .fd = fd};
    listener->local = address.any.sa_family == AF_UNIX;
    if (address.any.sa_family == AF_INET) listener->port = ntohs(address.v4.sin_port);
    if (address.any.sa_family == AF_INET6) listener->port = ntohs(address.v6.sin6_port);
    server->listener_count++;
    if (!path) return OK;
    listener->path = strdup(path);
    return listener->path ? OK : error_nomem(err);
}

static enum code listen_one(struct net_server *server, const char *text, struct error *err)
{
    const char *path = unix_path(text);
    int fd = -1;
    enum code rc = path ? listen_unix(path, &fd, err) : listen_tcp(text, &fd, err);
    if (rc != OK) return rc;
    rc = add(server, fd, path, err);
    return rc;
}

static enum code adopt(struct net_server *server, int fd, struct error *err)
{
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || !listens)
        return error_set(err, E_INVALID, "descriptor %d is no listening socket", fd);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return os_errno(err, "listen on", "a descriptor");
    return add(server, fd, NULL, err);
}

enum code net_listen_all(struct net_server *server, struct error *err)
{
    const struct net_options *options = &server->options;
    if (options->listen_count + options->fd_count > LISTENERS_MAX)
        return error_set(err, E_LIMIT, "at most %d addresses to listen on", LISTENERS_MAX);
    for (size_t i = 0; i < options->listen_count; i++) {
        enum code rc = listen_one(server, options->listen[i], err);
        if (rc != OK) return rc;
    }
    for (size_t i = 0; i < options->fd_count; i++) {
        enum code rc = adopt(server, options->fds[i], err);
        if (rc != OK) return rc;
    }
    return OK;
}

void net_listen_close(struct net_server *server)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        struct listener *listener = &server->listeners[i];
        if (listener->fd >= 0) close(listener->fd);
        listener->fd = -1;
        if (listener->path) unlink(listener->path);
        free(listener->path);
        listener->path = NULL;
    }
}

size_t net_inherited(int *first)
{
    int64_t pid, count;
    if (!str_int64(str_from(getenv("LISTEN_PID")), &pid) || pid != getpid()) return 0;
    if (!str_int64(str_from(getenv("LISTEN_FDS")), &count) || count <= 0 || count > LISTENERS_MAX) return 0;
    *first = INHERITED_FIRST;
    return (size_t)count;
}
