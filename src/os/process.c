// Which process it is, beyond its number: numbers are used again, and again after the next start of the machine.
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 64, STAT_SIZE = 1024 };

static bool parse_stat(const char *text, struct process_stat *out)
{
    // The name of the program stands in parentheses and may hold anything, parentheses too.
    const char *after = strrchr(text, ')');
    int parent, group, session;
    if (!after || sscanf(after + 1, " %c %d %d %d", &out->state, &parent, &group, &session) != 4) return false;
    out->parent = parent;
    out->group = group;
    out->session = session;
    // The start is the 22nd field, the size of the memory the 23rd; the state was the 3rd.
    const char *at = after + 1;
    for (int field = 3; field < 22 && at; field++) at = strchr(at + 1, ' ');
    uint64_t memory;
    if (!at || sscanf(at, " %" SCNu64 " %" SCNu64, &out->start, &memory) != 2) return false;
    out->dying = memory == 0;
    return true;
}

bool os_process_stat(pid_t pid, struct process_stat *out)
{
    char path[PATH_SIZE], text[STAT_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0) return false;
    text[got] = '\0';
    return parse_stat(text, out);
}

// The namespace that its number is of; 0: not known.
static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void os_identity(char out[OS_IDENTITY_SIZE])
{
    struct process_stat self = {0};
    char boot[BOOT_SIZE];
    os_boot_id(boot);
    for (char *c = boot; *c; c++)
        if (*c == '-') *c = '.'; // it stands between dashes
    if (!os_process_stat(getpid(), &self)) self.start = 0;
    snprintf(out, OS_IDENTITY_SIZE, "%d-%" PRIu64 "-%s-%" PRIu64, (int)getpid(), self.start, boot, pid_namespace());
}

// Whether both are known and differ.
static bool differs(struct str then, struct str now)
{
    return then.len > 0 && now.len > 0 && !str_eq(then, now);
}

enum liveness os_identity_alive(struct str identity)
{
    char text[OS_IDENTITY_SIZE];
    struct str rest, now;
    int64_t pid, start = 0;
    os_identity(text);
    (void)str_cut(str_from(text), '-', &now);
    (void)str_cut(now, '-', &now);
    struct str number = str_cut(identity, '-', &rest), began = str_cut(rest, '-', &rest);
    if (!str_int64(number, &pid) || pid <= 0 || pid > INT32_MAX) return LIVE_UNKNOWN;
    struct str boot = str_cut(rest, '-', &rest), boot_now = str_cut(now, '-', &now);
    if (differs(boot, boot_now)) return LIVE_NO; // stores are on disks of this machine, and it has been started since
    if (differs(rest, now)) return LIVE_UNKNOWN; // a number of another namespace
    struct process_stat stat;
    if (!os_process_stat((pid_t)pid, &stat)) {
        if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return LIVE_NO;
        return LIVE_UNKNOWN; // it cannot be looked at: descriptors have run out, or /proc is hidden
    }
    if (stat.state == 'Z' || stat.state == 'X') return LIVE_NO;
    if (!str_int64(began, &start) || start <= 0) return LIVE_UNKNOWN; // one of that number lives
    return stat.start == (uint64_t)start ? LIVE_YES : LIVE_NO;
}
