// Orphans of a dead engine: processes that carry the mark of the store and the identity of an engine process that is gone. They are
// held by pidfd before they are looked at, so a pid that is used again meanwhile is never hit. Members of their groups go
// with them, also those that have wiped their environment.
#include "tool/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PASSES_MAX = 50, HUNT_MAX = 512, WAIT_MS = 5000, ANCESTORS_MAX = 64 };

#define ENVIRON_MAX ((size_t)16 << 20)

struct target {
    pid_t pid, group;
    int pidfd;
    bool dying; // waited for, not counted: its own engine's end has killed it
};

struct hunt {
    struct tool_mark mark;
    tool_orphan wanted;
    void *context;
    pid_t spared[ANCESTORS_MAX]; // this process and those it comes from
    size_t spared_count;
    pid_t own_group;
    struct target targets[HUNT_MAX];
    size_t count;
    size_t marked; // the first ones; behind them are members of their groups
    struct buf scratch, plain;
};

// Takes the last field of "a:b:c" away and returns it.
static struct str cut_last(struct str *text)
{
    size_t at = text->len;
    while (at > 0 && text->ptr[at - 1] != ':') at--;
    struct str last = str_slice(*text, at, text->len);
    *text = str_slice(*text, 0, at ? at - 1 : 0);
    return last;
}

static bool engine_is_gone(struct str identity)
{
    return os_identity_alive(identity) == LIVE_NO;
}

// 2:<store>:<identity>:<L>:<k>:<tenant>:<run>:<path>, the last three with ':' and '%' as %3A and %25.
static bool is_wanted_2(struct hunt *hunt, struct str mark)
{
    struct str store = str_cut(mark, ':', &mark), identity = str_cut(mark, ':', &mark);
    (void)str_cut(mark, ':', &mark);
    (void)str_cut(mark, ':', &mark);
    struct str tenant = str_cut(mark, ':', &mark), run = str_cut(mark, ':', &mark);
    bool ours = str_is(store, hunt->mark.store) || (hunt->mark.file && str_is(store, hunt->mark.file));
    if (!ours || !engine_is_gone(identity)) return false;
    struct buf *room = &hunt->plain;
    buf_clear(room);
    struct str *parts[] = {&tenant, &run, &mark};
    size_t ends[ARRAY_COUNT(parts)];
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        mark_unescape(room, *parts[i]);
        ends[i] = room->len;
    }
    if (!buf_ok(room)) return false;
    struct str all = buf_str(room);
    return hunt->wanted(hunt->context, str_slice(all, 0, ends[0]), str_slice(all, ends[0], ends[1]),
                        str_slice(all, ends[1], ends[2]));
}

// <hash of the store's URL>:<run>:<step>:<L>:<k>:<identity>, as engines before gave them. Where the run ends and the step begins is
// not said when they hold colons: every place is tried.
static bool is_wanted_1(const struct hunt *hunt, struct str mark)
{
    struct str identity = cut_last(&mark);
    (void)cut_last(&mark);
    (void)cut_last(&mark);
    struct str store = str_cut(mark, ':', &mark);
    if (!str_is(store, hunt->mark.url) || !engine_is_gone(identity)) return false;
    for (size_t at = str_find(mark, ':', 0); at < mark.len; at = str_find(mark, ':', at + 1))
        if (hunt->wanted(hunt->context, (struct str){0}, str_slice(mark, 0, at), str_slice(mark, at + 1, mark.len)))
            return true;
    return false;
}

static bool is_wanted(struct hunt *hunt, struct str mark)
{
    if (str_starts(mark, STR("2:"))) return is_wanted_2(hunt, str_slice(mark, 2, mark.len));
    return is_wanted_1(hunt, mark);
}

static bool is_known(const struct hunt *hunt, pid_t pid)
{
    for (size_t i = 0; i < hunt->spared_count; i++) {
        if (hunt->spared[i] == pid) return true;
    }
    for (size_t i = 0; i < hunt->count; i++) {
        if (hunt->targets[i].pid == pid) return true;
    }
    return false;
}

static void add_target(struct hunt *hunt, pid_t pid, const struct process_stat *stat, int pidfd)
{
    hunt->targets[hunt->count++] = (struct target){pid, stat->group, pidfd, stat->dying};
}

static void visit_marked(void *context, pid_t pid)
{
    struct hunt *hunt = context;
    struct process_stat stat;
    struct str mark;
    if (hunt->count == HUNT_MAX || is_known(hunt, pid)) return;
    // A first look without the descriptor: nearly all processes of a system are not ours.
    if (!proc_mark(pid, &hunt->scratch, &mark) || !is_wanted(hunt, mark)) return;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) return;
    if (proc_mark(pid, &hunt->scratch, &mark) && is_wanted(hunt, mark) && os_process_stat(pid, &stat) && stat.state != 'Z')
        add_target(hunt, pid, &stat, pidfd);
    else
        close(pidfd);
}

static bool is_hunted_group(const struct hunt *hunt, pid_t group)
{
    for (size_t i = 0; i < hunt->marked && group != hunt->own_group; i++) {
        if (hunt->targets[i].group == group) return true;
    }
    return false;
}

static void visit_member(void *context, pid_t pid)
{
    struct hunt *hunt = context;
    struct process_stat stat;
    if (hunt->count == HUNT_MAX || is_known(hunt, pid)) return;
    if (!os_process_stat(pid, &stat) || stat.state == 'Z' || !is_hunted_group(hunt, stat.group)) return;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) return;
    if (os_process_stat(pid, &stat) && is_hunted_group(hunt, stat.group))
        add_target(hunt, pid, &stat, pidfd);
    else
        close(pidfd);
}

// An engine that was itself started by a step carries a mark: it must not kill itself or the shell that it runs in.
static void spare_ancestors(struct hunt *hunt)
{
    struct process_stat stat;
    for (pid_t pid = getpid(); pid > 0 && hunt->spared_count < ANCESTORS_MAX; pid = stat.parent) {
        hunt->spared[hunt->spared_count++] = pid;
        if (!os_process_stat(pid, &stat)) break;
    }
}

static void wait_until_gone(const struct target *target)
{
    struct pollfd watch = {.fd = target->pidfd, .events = POLLIN};
    int rc;
    do {
        rc = poll(&watch, 1, WAIT_MS);
    } while (rc < 0 && errno == EINTR);
    if (rc <= 0) os_log(LOG_WARN, "an orphan does not die pid=%d", (int)target->pid);
    // As a subreaper we may have become its parent.
    siginfo_t ignored;
    (void)waitid(P_PIDFD, (id_t)target->pidfd, &ignored, WEXITED | WNOHANG);
}

// Returns how many were killed.
static size_t kill_targets(struct hunt *hunt)
{
    size_t killed = 0;
    bool hit[HUNT_MAX] = {false};
    for (size_t i = 0; i < hunt->count; i++) {
        hit[i] = pidfd_send_signal(hunt->targets[i].pidfd, SIGKILL, NULL, 0) == 0;
        if (!hit[i] && errno == EPERM) os_log(LOG_WARN, "an orphan cannot be killed pid=%d", (int)hunt->targets[i].pid);
        killed += hit[i] && !hunt->targets[i].dying;
    }
    for (size_t i = 0; i < hunt->count; i++) {
        if (hit[i]) wait_until_gone(&hunt->targets[i]);
        close(hunt->targets[i].pidfd);
    }
    return killed;
}

size_t tool_sweep_orphans(const struct tool_mark *mark, tool_orphan wanted, void *context)
{
    struct hunt hunt = {.mark = *mark, .wanted = wanted, .context = context, .own_group = getpgrp()};
    size_t total = 0;
    buf_init(&hunt.scratch, ENVIRON_MAX);
    buf_init(&hunt.plain, ENVIRON_MAX);
    spare_ancestors(&hunt);
    // They may start new ones while we look: only a pass that finds nobody is the end.
    for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
        hunt.count = hunt.marked = 0;
        proc_each(visit_marked, &hunt);
        hunt.marked = hunt.count;
        if (hunt.count) proc_each(visit_member, &hunt);
        size_t killed = kill_targets(&hunt);
        total += killed;
        if (!killed) break;
    }
    buf_release(&hunt.scratch);
    buf_release(&hunt.plain);
    return total;
}
