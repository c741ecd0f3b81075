// The tool thread. It sleeps in epoll on a wake-up descriptor, the pipes and pidfds of the running processes, until the next
// deadline. The life of a job:
//
//   WAITING --slot free--> RUNNING --main process ends--> SWEEPING --tree gone--> delivered (aftermath.c)
//
// Timeout and cancel do not change the state: they send TERM, and KILL at kill_at_ms; the end comes the usual way.
// Jobs end in on_due only, never while the events of one epoll_wait are being worked through, so no event can name a job
// that is gone.
#include "tool/internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TABLE_SIZE = 1024,
    EVENTS_MAX = 128,
    LAUNCHES_PER_TURN = 8,
    READS_PER_EVENT = 4,
    READS_AT_END = 64,
    REAP_EVERY_MS = 1000,
    TIMEOUT_GRACE_MS = 2000,
    LEFTOVER_GRACE_MS = 500,
    SWEEP_DELAY_MAX_MS = 50,
    STUBBORN_AFTER_MS = 5000,
};

#define SCRATCH_MAX ((size_t)256 << 20)

struct process_tools {
    struct tools base;
    struct tool_options options;
    struct os_log_route log; // of the thread that opened the tools
    pthread_t thread;
    int epoll, wake;
    pthread_mutex_t mutex;
    // under the mutex
    struct job *table[TABLE_SIZE]; // of all tickets not yet delivered
    struct job_list waiting;
    struct job *cancelled;
    bool closing;
    // owner: tool thread
    struct aftermath aftermath;
    struct family family; // with the running
    size_t running_count;
    struct heap timers;
    struct arena scratch; // of one launch
    int64_t now_ms, reaped_ms;
    int dumpable;       // of the process, before the tools were opened
    struct arena arena; // holds this struct
};

static struct process_tools *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct process_tools, base);
}

static void wake(struct process_tools *tools)
{
    uint64_t one = 1;
    ssize_t ignored = write(tools->wake, &one, sizeof(one)); // full means awake
    (void)ignored;
}

static struct job **find_job(struct process_tools *tools, uint64_t ticket)
{
    struct job **at = &tools->table[ticket % TABLE_SIZE];
    while (*at && (*at)->ticket != ticket) at = &(*at)->same_ticket;
    return at;
}

// ---- called by other threads

static enum code start(struct tools *base, const struct tool_request *request, struct error *err)
{
    struct process_tools *tools = of(base);
    struct job *job = job_new(request, tools->options.mark, tools->family.identity);
    if (!job) return error_nomem(err);
    enum code rc = OK;
    pthread_mutex_lock(&tools->mutex);
    struct job **place = find_job(tools, request->ticket);
    if (tools->closing)
        rc = E_CANCELLED;
    else if (*place)
        rc = E_EXISTS;
    if (!rc) {
        *place = job;
        job->waits = true;
        job->since_ms = os_now().mono_ms;
        job_list_add(&tools->waiting, job);
    }
    pthread_mutex_unlock(&tools->mutex);
    if (rc) {
        job_free(job);
        return error_set(err, rc, rc == E_EXISTS ? "the ticket is in use" : "the tools are closing");
    }
    wake(tools);
    return OK;
}

static void list_cancelled(struct process_tools *tools, struct job *job) // locked
{
    if (job->cancel_listed) return;
    job->cancel_listed = true;
    job->next_cancelled = tools->cancelled;
    tools->cancelled = job;
}

static void cancel(struct tools *base, uint64_t ticket, int64_t grace_ms)
{
    struct process_tools *tools = of(base);
    pthread_mutex_lock(&tools->mutex);
    struct job *job = *find_job(tools, ticket);
    if (job) {
        job->cancel_grace_ms = grace_ms;
        list_cancelled(tools, job);
    }
    pthread_mutex_unlock(&tools->mutex);
    if (job) wake(tools);
}

static void tell_place(const struct process_tools *tools, const struct job *job, size_t position,
                       tool_place_visit visit, void *context)
{
    struct tool_place place = {.among = tools,
                               .tenant = job->tenant,
                               .run = job->run,
                               .step = job->step,
                               .logical = job->logical,
                               .engine = job->engine,
                               .waits = position > 0,
                               .position = position,
                               .slots = tools->options.process_max,
                               .since_ms = job->since_ms};
    visit(context, &place);
}

static void tell_places(struct tools *base, tool_place_visit visit, void *context)
{
    struct process_tools *tools = of(base);
    size_t position = 0;
    LOCKED(&tools->mutex);
    for (const struct job *job = tools->waiting.first; job; job = job->next)
        tell_place(tools, job, ++position, visit, context);
    for (size_t i = 0; i < TABLE_SIZE; i++)
        for (const struct job *job = tools->table[i]; job; job = job->same_ticket)
            if (!job->waits) tell_place(tools, job, 0, visit, context);
}

static void free_waiting(struct process_tools *tools)
{
    for (struct job *job = tools->waiting.first, *next; job; job = next) {
        next = job->next;
        job_free(job);
    }
    tools->waiting = (struct job_list){0};
}

static void destroy(struct process_tools *tools)
{
    pthread_mutex_destroy(&tools->mutex);
    heap_release(&tools->timers);
    family_release(&tools->family);
    arena_release(&tools->scratch);
    if (tools->epoll >= 0) close(tools->epoll);
    if (tools->wake >= 0) close(tools->wake);
    arena_release(&tools->arena);
}

static void close_tools(struct tools *base)
{
    struct process_tools *tools = of(base);
    pthread_mutex_lock(&tools->mutex);
    tools->closing = true;
    pthread_mutex_unlock(&tools->mutex);
    wake(tools);
    pthread_join(tools->thread, NULL);
    aftermath_close(&tools->aftermath);
    free_waiting(tools); // what was given back in the last moment
    if (tools->dumpable == 1) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    destroy(tools);
}

// ---- the end of a job

static struct line_sink sink_of(const struct process_tools *tools, struct job *job)
{
    return (struct line_sink){tools->options.output, tools->options.context, job->ticket, &job->log};
}

// Closing does not end the watch when another thread has forked meanwhile: the copy keeps it alive.
static void unwatch(struct process_tools *tools, int fd)
{
    if (fd >= 0) epoll_ctl(tools->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void end_stream(struct process_tools *tools, struct stream *stream)
{
    unwatch(tools, stream->fd);
    stream_close(stream);
}

static void drain(struct process_tools *tools, struct job *job, struct stream *stream)
{
    struct line_sink sink = sink_of(tools, job);
    if (stream->fd >= 0) (void)stream_read(stream, &sink, READS_AT_END);
    end_stream(tools, stream);
    stream_end(stream, &sink);
}

static void forget(struct process_tools *tools, struct job *job)
{
    LOCKED(&tools->mutex);
    struct job **place = find_job(tools, job->ticket);
    INVARIANT(*place == job);
    *place = job->same_ticket;
    for (struct job **at = &tools->cancelled; *at; at = &(*at)->next_cancelled) {
        if (*at == job) {
            *at = job->next_cancelled;
            break;
        }
    }
}

static void leave_running(struct process_tools *tools, struct job *job)
{
    siginfo_t ignored;
    while (waitid(P_PIDFD, (id_t)job->process.pidfd, &ignored, WEXITED | WNOHANG) < 0 && errno == EINTR) {
    }
    unwatch(tools, job->process.pidfd);
    heap_remove(&tools->timers, &job->timer);
    job_list_remove(&tools->family.running, job);
    tools->running_count--;
}

static void finish(struct process_tools *tools, struct job *job)
{
    if (job->state != JOB_WAITING) {
        drain(tools, job, &job->out);
        drain(tools, job, &job->err);
        leave_running(tools, job);
    }
    forget(tools, job);
    aftermath_take(&tools->aftermath, job);
}

// ---- stopping and sweeping

static void set_timer(struct process_tools *tools, struct job *job, int64_t due_ms)
{
    heap_remove(&tools->timers, &job->timer);
    bool pushed = heap_push(&tools->timers, &job->timer, due_ms);
    INVARIANT(pushed); // it had its place before
}

static void stop(struct process_tools *tools, struct job *job, enum stop_reason reason, int64_t grace_ms)
{
    bool first = job->kill_at_ms == 0;
    int64_t kill_at_ms = tools->now_ms + (grace_ms > 0 ? grace_ms : 0);
    if (first || kill_at_ms < job->kill_at_ms) job->kill_at_ms = kill_at_ms;
    if (job->state == JOB_RUNNING) {
        if (job->stop == STOP_NONE) job->stop = reason;
        if (first && grace_ms > 0) tree_signal(job, SIGTERM);
        set_timer(tools, job, job->kill_at_ms);
    } else {
        set_timer(tools, job, tools->now_ms);
    }
}

static void sweep(struct process_tools *tools, struct job *job)
{
    if (job->kill_at_ms && tools->now_ms >= job->kill_at_ms) job->killing = true;
    if (tree_sweep(&tools->family, job) == 0) {
        finish(tools, job);
        return;
    }
    if (!job->kill_at_ms) job->kill_at_ms = tools->now_ms + LEFTOVER_GRACE_MS;
    if (!job->stubborn_told && tools->now_ms - job->sweep_since_ms > STUBBORN_AFTER_MS && job->killing) {
        job->stubborn_told = true;
        os_log(LOG_WARN, "a process of a step does not die step=%.*s", STR_ARG(job->step));
    }
    int64_t due_ms = tools->now_ms + job->sweep_delay_ms;
    if (!job->killing && due_ms > job->kill_at_ms) due_ms = job->kill_at_ms;
    if (job->sweep_delay_ms < SWEEP_DELAY_MAX_MS) job->sweep_delay_ms *= 2;
    set_timer(tools, job, due_ms);
}

static void on_due(struct process_tools *tools, struct job *job)
{
    if (job->state == JOB_SWEEPING) {
        sweep(tools, job);
    } else if (job->kill_at_ms == 0) {
        stop(tools, job, STOP_TIMEOUT, TIMEOUT_GRACE_MS);
    } else {
        job->killing = true;
        tree_signal(job, SIGKILL);
        set_timer(tools, job, INT64_MAX);
    }
}

// The status is looked at and left there: the zombie keeps its pid, group and session from being used again.
static bool look_at_exit(struct job *job, int options)
{
    siginfo_t info = {0};
    int rc;
    do {
        rc = waitid(P_PIDFD, (id_t)job->process.pidfd, &info, WEXITED | WNOWAIT | options);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0 && info.si_pid == 0) return false;
    if (rc < 0)
        job_fault(job, "KILLED_BY_SIGNAL", true, "the process is gone and its status is lost");
    else if (info.si_code == CLD_EXITED)
        job->exit_code = info.si_status;
    else
        job->exit_signal = info.si_status;
    return true;
}

static void begin_sweep(struct process_tools *tools, struct job *job)
{
    unwatch(tools, job->process.pidfd);
    job->state = JOB_SWEEPING;
    job->sweep_delay_ms = 1;
    job->sweep_since_ms = tools->now_ms;
    set_timer(tools, job, tools->now_ms);
}

// ---- starting

static bool watch(struct process_tools *tools, struct job *job, enum watch_kind kind, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &job->watches[kind]};
    return epoll_ctl(tools->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// A job whose secrets were read is the next to start.
static void take_back(struct aftermath *aftermath, struct job *job)
{
    struct process_tools *tools = CONTAINER_OF(aftermath, struct process_tools, aftermath);
    pthread_mutex_lock(&tools->mutex);
    job->away = false;
    job->waits = true;
    job_list_add_first(&tools->waiting, job);
    if (job->unwanted) list_cancelled(tools, job);
    pthread_mutex_unlock(&tools->mutex);
    wake(tools);
}

// Providers of secrets are programs, and may be slow: nobody else's steps wait for them.
static bool is_away(struct process_tools *tools, struct job *job)
{
    if (job->has_values || !job_asks_a_provider(job)) return false;
    pthread_mutex_lock(&tools->mutex);
    job->away = true;
    pthread_mutex_unlock(&tools->mutex);
    if (aftermath_prepare(&tools->aftermath, job)) return true; // it is not ours any more
    LOCKED(&tools->mutex);
    job->away = false;
    return false;
}

static void launch(struct process_tools *tools, struct job *job)
{
    if (is_away(tools, job)) return;
    if (!heap_push(&tools->timers, &job->timer, INT64_MAX)) {
        job_fault(job, "SPAWN_FAILED", true, "out of memory");
        finish(tools, job);
        return;
    }
    int64_t before_ms = os_now().mono_ms; // its work begins in there, perhaps long before we are asked to go on
    bool started = job_launch(job, &tools->options, &tools->scratch);
    arena_reset(&tools->scratch);
    if (!started) {
        heap_remove(&tools->timers, &job->timer);
        finish(tools, job);
        return;
    }
    job->state = JOB_RUNNING;
    job->started_ms = before_ms;
    job_list_add(&tools->family.running, job);
    tools->running_count++;
    int64_t now_ms = os_now().mono_ms;
    if (job->timeout_ms > 0 && job->timeout_ms < INT64_MAX - now_ms) set_timer(tools, job, now_ms + job->timeout_ms);
    if (watch(tools, job, WATCH_OUT, job->out.fd) && watch(tools, job, WATCH_ERR, job->err.fd) &&
        watch(tools, job, WATCH_EXIT, job->process.pidfd))
        return;
    // Nobody would tell us of its end.
    job_fault(job, "SPAWN_FAILED", true, "too many files are watched");
    job->killing = true;
    tree_signal(job, SIGKILL);
    (void)look_at_exit(job, 0);
    begin_sweep(tools, job);
}

static struct job *take_waiting(struct process_tools *tools)
{
    LOCKED(&tools->mutex);
    struct job *job = tools->closing ? NULL : tools->waiting.first;
    if (job) {
        job_list_remove(&tools->waiting, job);
        job->waits = false;
        job->since_ms = os_now().mono_ms;
    }
    return job;
}

// A few at a time, so that a long queue does not keep the running from being read. True: there may be more.
static bool fill_slots(struct process_tools *tools)
{
    for (unsigned i = 0; i < LAUNCHES_PER_TURN; i++) {
        struct job *job = tools->running_count < tools->options.process_max ? take_waiting(tools) : NULL;
        if (!job) return false;
        launch(tools, job);
    }
    return true;
}

// ---- the loop

static struct job *take_cancelled(struct process_tools *tools, int64_t *grace_ms)
{
    LOCKED(&tools->mutex);
    struct job *job = tools->cancelled;
    while (job && job->away) { // it comes back
        job->unwanted = true;
        job->cancel_listed = false;
        job = tools->cancelled = job->next_cancelled;
    }
    if (job) {
        tools->cancelled = job->next_cancelled;
        job->cancel_listed = false;
        *grace_ms = job->cancel_grace_ms;
        if (job->waits) job_list_remove(&tools->waiting, job);
        job->waits = false;
    }
    return job;
}

static void take_cancels(struct process_tools *tools)
{
    int64_t grace_ms = 0;
    struct job *job;
    while ((job = take_cancelled(tools, &grace_ms))) {
        if (job->state == JOB_WAITING) {
            job_fault(job, "CANCELLED", false, "cancelled before it was started");
            finish(tools, job);
        } else {
            stop(tools, job, STOP_CANCEL, grace_ms);
        }
    }
}

static void on_event(struct process_tools *tools, const struct watch *watch)
{
    if (!watch) {
        uint64_t ignored;
        ssize_t got = read(tools->wake, &ignored, sizeof(ignored));
        (void)got;
        return;
    }
    struct job *job = watch->job;
    if (watch->kind == WATCH_EXIT) {
        if (job->state == JOB_RUNNING && look_at_exit(job, WNOHANG)) begin_sweep(tools, job);
        return;
    }
    struct stream *stream = watch->kind == WATCH_OUT ? &job->out : &job->err;
    struct line_sink sink = sink_of(tools, job);
    if (stream->fd >= 0 && !stream_read(stream, &sink, READS_PER_EVENT)) end_stream(tools, stream);
}

static void wait_for_events(struct process_tools *tools, bool at_once)
{
    int timeout_ms = -1;
    struct heap_node *next = heap_peek(&tools->timers);
    if (next && next->due != INT64_MAX) {
        int64_t left = next->due - tools->now_ms;
        timeout_ms = left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
    }
    if (tools->running_count && (timeout_ms < 0 || timeout_ms > REAP_EVERY_MS)) timeout_ms = REAP_EVERY_MS;
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(tools->epoll, events, EVENTS_MAX, at_once ? 0 : timeout_ms);
    tools->now_ms = os_now().mono_ms;
    for (int i = 0; i < count; i++) on_event(tools, events[i].data.ptr);
}

static void run_timers(struct process_tools *tools)
{
    struct heap_node *next;
    while ((next = heap_peek(&tools->timers)) && next->due <= tools->now_ms)
        on_due(tools, CONTAINER_OF(next, struct job, timer));
    if (tools->running_count && tools->now_ms - tools->reaped_ms >= REAP_EVERY_MS) {
        tools->reaped_ms = tools->now_ms;
        tree_reap(&tools->family);
    }
}

static bool is_closing(struct process_tools *tools)
{
    LOCKED(&tools->mutex);
    return tools->closing;
}

static void discard(struct process_tools *tools, struct job *job)
{
    end_stream(tools, &job->out);
    end_stream(tools, &job->err);
    leave_running(tools, job);
    job_free(job);
}

static void kill_everything(struct process_tools *tools)
{
    int64_t give_up_ms = os_now().mono_ms + STUBBORN_AFTER_MS;
    while (tools->family.running.first) {
        bool late = os_now().mono_ms > give_up_ms;
        for (struct job *job = tools->family.running.first, *next; job; job = next) {
            next = job->next;
            job->killing = true;
            tree_signal(job, SIGKILL);
            if (job->state == JOB_RUNNING && look_at_exit(job, WNOHANG)) job->state = JOB_SWEEPING;
            bool gone = job->state == JOB_SWEEPING && tree_sweep(&tools->family, job) == 0;
            if (!gone && late) os_log(LOG_WARN, "a process of a step does not die step=%.*s", STR_ARG(job->step));
            if (gone || late) discard(tools, job);
        }
        if (tools->family.running.first) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    LOCKED(&tools->mutex);
    free_waiting(tools);
}

static void *tool_thread(void *context)
{
    struct process_tools *tools = context;
    os_log_through(tools->log);
    pthread_setname_np(pthread_self(), "cairn-tool");
    tools->now_ms = os_now().mono_ms;
    while (!is_closing(tools)) {
        take_cancels(tools);
        bool more = fill_slots(tools);
        wait_for_events(tools, more);
        run_timers(tools);
    }
    kill_everything(tools);
    return NULL;
}

// ---- opening

static const struct tool_ops ops = {.start = start, .cancel = cancel, .places = tell_places, .close = close_tools};

// Children that end while SIGCHLD is ignored leave no status; a parent that ignores it hands that down to us.
static void keep_statuses(void)
{
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) == 0 && (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT)))
        signal(SIGCHLD, SIG_DFL);
}

enum code tools_open(const struct tool_options *options, struct tools **out, struct error *err)
{
    INVARIANT(options->mark && options->deliver && options->process_max > 0);
    struct arena arena SCOPED(arena_release) = arena_of(sizeof(struct process_tools), SCRATCH_MAX);
    struct process_tools *tools = ARENA_NEW(&arena, struct process_tools);
    struct str mark = tools ? arena_copy(&arena, str_from(options->mark)) : (struct str){NULL, 0};
    if (!mark.ptr) return error_nomem(err);
    tools->base.ops = &ops;
    tools->options = *options;
    tools->log = os_log_through((struct os_log_route){0});
    os_log_through(tools->log);
    tools->options.mark = mark.ptr;
    pthread_mutex_init(&tools->mutex, NULL);
    aftermath_init(&tools->aftermath, &tools->options, tools->log);
    tools->aftermath.give_back = take_back;
    heap_init(&tools->timers);
    arena_init(&tools->scratch, 65536, SCRATCH_MAX);
    family_init(&tools->family);
    tools->arena = arena_take(&arena);
    keep_statuses();
    tools->epoll = epoll_create1(EPOLL_CLOEXEC);
    tools->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    bool ready = tools->epoll >= 0 && tools->wake >= 0 &&
                 epoll_ctl(tools->epoll, EPOLL_CTL_ADD, tools->wake, &event) == 0 &&
                 prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
    // A step of the same user could read our memory and environment, where the tokens and keys are.
    if (ready && options->confinement && options->confinement->level != TOOL_LEVEL_NONE) {
        tools->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        aftermath_sweep(&tools->aftermath);
    }
    if (ready) errno = os_thread(&tools->thread, NULL, tool_thread, tools);
    if (!ready || errno) {
        enum code rc = os_errno(err, "start the tools", NULL);
        aftermath_close(&tools->aftermath);
        destroy(tools);
        return rc;
    }
    *out = &tools->base;
    return OK;
}
