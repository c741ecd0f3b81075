#include "tool/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_SIZE = 64, READ_SIZE = 16384, STAT_SIZE = 1024 };

static const struct str mark_name = {"CAIRN_MARK=", sizeof("CAIRN_MARK=") - 1};

// Appends a whole file of /proc. False when it cannot be read, which is what happens to processes that end meanwhile.
static bool read_all(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got;
    do {
        char *room = buf_reserve(out, READ_SIZE);
        got = room ? read(fd, room, READ_SIZE) : 0;
        if (got > 0) out->len += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    close(fd);
    return got == 0;
}

bool proc_mark(pid_t pid, struct buf *scratch, struct str *mark)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    buf_clear(scratch);
    if (!read_all(path, scratch)) return false;
    struct str rest = buf_str(scratch);
    while (rest.len) {
        struct str entry = str_cut(rest, '\0', &rest);
        if (str_starts(entry, mark_name)) {
            *mark = str_slice(entry, mark_name.len, entry.len);
            return true;
        }
    }
    return false;
}

void proc_each(proc_visit visit, void *context)
{
    DIR *dir = opendir("/proc");
    if (!dir) return;
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        int64_t pid;
        if (str_int64(str_from(entry->d_name), &pid) && pid > 0 && pid <= INT32_MAX) visit(context, (pid_t)pid);
    }
    closedir(dir);
}

struct child_filter {
    pid_t parent;
    proc_visit visit;
    void *context;
};

static void visit_child(void *context, pid_t pid)
{
    const struct child_filter *filter = context;
    struct process_stat stat;
    if (os_process_stat(pid, &stat) && stat.parent == filter->parent) filter->visit(filter->context, pid);
}

void proc_each_child(pid_t thread, struct buf *scratch, proc_visit visit, void *context)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)thread);
    buf_clear(scratch);
    if (!read_all(path, scratch)) {
        // A kernel without CONFIG_PROC_CHILDREN: the long way, by the parent of everybody. It does not know threads, so
        // the children of the process are shown as those of its first one.
        struct child_filter filter = {getpid(), visit, context};
        if (thread == filter.parent) proc_each(visit_child, &filter);
        return;
    }
    struct str rest = buf_str(scratch);
    while (rest.len) {
        int64_t pid;
        struct str word = str_cut(rest, ' ', &rest);
        if (str_int64(word, &pid)) visit(context, (pid_t)pid);
    }
}
