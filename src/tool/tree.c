// What is left of a step when its main process has ended.
//
// This process is a subreaper: when a process of a step's tree ends, its children are handed to us, whatever session or
// group they have put themselves in. So after the end of the main process every root of what is left of its tree is our own
// child, and when we kill a root, its children become roots. Sweeping our children until none belongs to the step ends with
// nothing left, and costs one small file of /proc when nothing was left in the first place. The kernel hands orphans to the
// first thread of the subreaper.
//
// Whose child is it? Steps are sessions: its session is the pid of a main process (kept as a zombie until the sweep is over,
// so the number cannot be used again). It left the session: it carries the tag of its job (process.c). There are no tags on
// this machine: its environment has the mark of the attempt. It wiped that, too: it is killed with the last of the steps
// that were running when it was started.
#include "tool/internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENVIRON_MAX ((size_t)16 << 20)

void family_init(struct family *family)
{
    *family = (struct family){.self = getpid(), .session = getsid(0)};
    buf_init(&family->children, ENVIRON_MAX);
    buf_init(&family->environment, ENVIRON_MAX);
    os_identity(family->identity);
}

void family_release(struct family *family)
{
    buf_release(&family->children);
    buf_release(&family->environment);
}

static bool is_main_process(const struct family *family, pid_t pid)
{
    for (const struct job *job = family->running.first; job; job = job->next) {
        if (job->process.pid == pid) return true;
    }
    return false;
}

static void reap(pid_t pid)
{
    siginfo_t ignored;
    while (waitid(P_PID, (id_t)pid, &ignored, WEXITED | WNOHANG) < 0 && errno == EINTR) {
    }
}

enum kinship { STRANGER = 1, ADOPTED, ADOPTED_DEAD };

// Children of our own session are not from a step. The dead are reaped.
static enum kinship look_at(const struct family *family, pid_t pid, struct process_stat *stat)
{
    if (is_main_process(family, pid) || !os_process_stat(pid, stat) || stat->session == family->session) return STRANGER;
    if (stat->state != 'Z' && stat->state != 'X') return ADOPTED;
    reap(pid);
    return ADOPTED_DEAD;
}

static bool has_our_identity(const struct family *family, struct str mark)
{
    if (!str_starts(mark, STR("2:"))) return false;
    (void)str_cut(str_slice(mark, 2, mark.len), ':', &mark); // the store
    return str_is(str_cut(mark, ':', &mark), family->identity);
}

static bool was_running_at(const struct job *job, uint64_t start)
{
    struct process_stat stat;
    return os_process_stat(job->process.pid, &stat) && stat.start <= start;
}

// Nothing tells whose it is: it goes with the last step that could have started it.
static bool is_last_suspect(const struct family *family, const struct job *job, uint64_t start)
{
    if (!was_running_at(job, start)) return false;
    for (const struct job *other = family->running.first; other; other = other->next) {
        if (other != job && was_running_at(other, start)) return false;
    }
    return true;
}

static const struct job *find_by_tag(const struct family *family, uint64_t tag)
{
    const struct job *job = tag ? family->running.first : NULL;
    while (job && job->tag != tag) job = job->next;
    return job;
}

static bool belongs_to(struct family *family, const struct job *job, pid_t pid, const struct process_stat *stat)
{
    if (is_main_process(family, stat->session)) return stat->session == job->process.pid;
    const struct job *tagged = find_by_tag(family, process_tag(pid));
    if (tagged) return tagged == job;
    struct str mark;
    bool marked = proc_mark(pid, &family->environment, &mark);
    if (marked && has_our_identity(family, mark)) return str_eq(mark, job->mark);
    // No mark, or that of an engine which ran inside a step.
    return is_last_suspect(family, job, stat->start);
}

static bool had_term(struct job *job, pid_t pid)
{
    for (size_t i = 0; i < job->termed_count; i++) {
        if (job->termed[i] == pid) return true;
    }
    if (job->termed_count == TERMED_MAX) return true;
    job->termed[job->termed_count++] = pid;
    return false;
}

struct sweep {
    struct family *family;
    struct job *job;
    size_t alive, dead;
};

static void sweep_child(void *context, pid_t pid)
{
    struct sweep *sweep = context;
    struct job *job = sweep->job;
    struct process_stat stat;
    enum kinship kinship = look_at(sweep->family, pid, &stat);
    sweep->dead += kinship == ADOPTED_DEAD;
    if (kinship != ADOPTED || !belongs_to(sweep->family, job, pid, &stat)) return;
    int rc = 0;
    if (job->killing)
        rc = kill(pid, SIGKILL);
    else if (!had_term(job, pid))
        rc = kill(pid, SIGTERM) || kill(pid, SIGCONT);
    if (rc == 0) {
        sweep->alive++;
        return;
    }
    // Not ours to kill (it has changed its user): waiting for it would block the step for ever.
    if (!job->stubborn_told)
        os_log(LOG_WARN, "a process of a step cannot be killed pid=%d step=%.*s", (int)pid, STR_ARG(job->step));
    job->stubborn_told = true;
}

size_t tree_sweep(struct family *family, struct job *job)
{
    if (job->killing) kill(-job->process.pid, SIGKILL);
    struct sweep sweep = {.family = family, .job = job};
    // A process that died between the listing and the look at it has left its children to us meanwhile: only a pass without the
    // dead is complete.
    do {
        sweep.alive = sweep.dead = 0;
        proc_each_child(family->self, &family->children, sweep_child, &sweep);
    } while (sweep.dead && !sweep.alive);
    return sweep.alive;
}

static void reap_child(void *context, pid_t pid)
{
    struct process_stat stat;
    (void)look_at(context, pid, &stat);
}

void tree_reap(struct family *family)
{
    proc_each_child(family->self, &family->children, reap_child, family);
}

void tree_signal(const struct job *job, int number)
{
    kill(-job->process.pid, number);
    if (number != SIGKILL) kill(-job->process.pid, SIGCONT);
}
