// What a service manager (systemd) is sent. The protocol is a datagram of lines; no library is needed for that.
#include "os/os.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void os_notify(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') address.sun_path[0] = '\0'; // the abstract name space
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0)
        os_log(LOG_DEBUG, "the service manager was not reached state=%s", state);
    close(fd);
}

int64_t os_watchdog_ms(void)
{
    int64_t pid, micros;
    const char *whose = getenv("WATCHDOG_PID"), *every = getenv("WATCHDOG_USEC");
    if (whose && (!str_int64(str_from(whose), &pid) || pid != getpid())) return 0;
    return every && str_int64(str_from(every), &micros) && micros >= 1000 ? micros / 1000 : 0;
}
