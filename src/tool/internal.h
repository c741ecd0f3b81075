// Inside of the tool module. One thread, the tool thread, owns every running process; other threads only put jobs into the
// queue and flags on them, under the one mutex (tools.c).
//
//   request --job_new--> job --job_launch--> process --output.c--> masked text --job_finish--> result
//                                               |
//                            exit of the main process --tree.c--> nothing is left of its tree
#ifndef CAIRN_TOOL_INTERNAL_H
#define CAIRN_TOOL_INTERNAL_H

#include "base/heap.h"
#include "base/sha256.h"
#include "reach/reach.h"
#include "tool/tool.h"

#include <linux/filter.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/types.h>


// ---- proc.c: what /proc tells
// The value of CAIRN_MARK in the environment that the process was started with; false when there is none or it is not
// ours to read. *mark borrows `scratch`.
bool proc_mark(pid_t pid, struct buf *scratch, struct str *mark);
// Calls `visit` for each process of the system, or for each child of one thread of this process; `visit` leaves `scratch`
// alone.
typedef void (*proc_visit)(void *context, pid_t pid);
void proc_each(proc_visit visit, void *context);
void proc_each_child(pid_t thread, struct buf *scratch, proc_visit visit, void *context);

// ---- secret.c
#define SECRET_SIZE_MAX 65536
bool secret_refuse(struct error *why, const struct secret_ref *ref, const char *reason); // false
// A small regular file; with `private` one that nobody else can read, and no symbolic link.
bool secret_from_file(const struct secret_ref *ref, const char *path, bool private, struct arena *arena,
                      struct str *value, struct error *why);

// ---- provider.c: references secret://
bool provider_read(const struct secret_scope *scope, const struct secret_ref *ref, struct arena *arena,
                   struct str *value, struct error *why);

// ---- environment.c
struct environment {
    const struct tool_env *env;
    const struct secret_value *secrets;
    size_t env_count, secret_count;
    struct str run, step, mark;
    uint32_t logical, engine;
    bool clean;            // from nothing instead of from ours
    struct str path, home; // of a clean one
};
// NULL-terminated NAME=value strings in `arena`, NULL when memory ran out. Wipe after use.
char **environment_build(const struct environment *with, struct arena *arena);
void environment_wipe(char **environment);
const char *environment_get(char *const *environment, const char *name);

// ---- confine.c
enum { LIMITS_MAX = 8, FILTER_MAX = 400 };
struct confine_limit {
    int resource;
    struct rlimit limit;
};
// What the child does to itself before it executes. Made by the parent, because the child may not allocate.
struct cage {
    struct confine_limit limits[LIMITS_MAX];
    size_t limit_count;
    bool run_as, drop_capabilities;
    bool may_search; // as another user, with the right to pass directories that are closed to others: there is no veil
    const struct veil *veil; // or NULL
    uint32_t uid, gid;
    int ruleset; // of Landlock; -1: none
    struct sock_filter code[FILTER_MAX];
    size_t code_count;
    struct sock_fprog filter; // points to `code`: the struct stays where it was made
};
// Where root runs the engine: makes run_as of `confinement` the user of the tenant. *searches: its artifacts or its program are behind
// directories that are closed to others.
void confinement_separate(struct tool_confinement *confinement, struct str tenant, struct str artifacts_dir,
                          struct str program, bool *searches);
// `dirs`: may be written; -1 is left out. tool_confinement_check has said yes. Close with cage_close.
enum code cage_make(const struct tool_confinement *confinement, const int *dirs, size_t count, bool searches,
                    struct cage *out, struct error *err) MUST_CHECK;
void cage_close(struct cage *cage);
extern const char confine_path_default[];

// ---- veil.c
struct veil;
// For a step of another user than the engine's: of what lies behind closed directories it sees `paths` (absolute, or left out) and nothing
// else. NULL: it cannot be done here. Close with veil_close when the step has started.
struct veil *veil_make(const struct str *paths, size_t count, struct arena *arena);
bool veil_start_in(struct veil *veil, int cwd);
void veil_close(struct veil *veil);
// In the child: 0, or what went wrong.
int veil_draw(const struct veil *veil);
int veil_enter_cwd(const struct veil *veil);

// ---- workdir.c
// A new directory of mode 0700 for `confinement`; its path is in `arena`.
enum code workdir_make(const struct tool_confinement *confinement, struct arena *arena, struct str *out,
                       struct error *err) MUST_CHECK;
// With all that is in it; symbolic links are removed, never followed. Its writers must be gone. A step decides how much is in it: after
// `most` acts, or once *stop (or NULL) is true, it is given up, false, and may be tried again.
#define WORKDIR_ALL SIZE_MAX
bool workdir_remove(struct str path, size_t most, const atomic_bool *stop);
// Those that engines of this machine left when they were killed.
void workdir_sweep(const struct tool_confinement *confinement, const atomic_bool *stop);

// ---- process.c
enum launch_verdict { LAUNCH_OK = 1, LAUNCH_NOT_FOUND, LAUNCH_FAILED, LAUNCH_UNCONFINED };
struct launch {
    char *const *argv;
    char *const *environment;
    const char *cwd; // NULL: stay
    int cwd_fd;      // of a confined one, instead; its name is for messages only
    struct str input;
    uint64_t tag;
    const struct cage *cage; // NULL: not confined
    int report, report_as;   // a file of ours that the child has as 1 or 3; -1: none
};
struct process {
    pid_t pid; // also its process group and session
    int pidfd;
    int out, err; // read ends, never block
};
// A tag is a number that a process and all that come from it carry, whatever they do to their environment and session: the
// soft limit of real-time CPU time, more than 100000 years, so nothing else is changed by it. Unique on the machine.
uint64_t process_new_tag(void);
uint64_t process_tag(pid_t pid); // 0: none, or not ours to read
// `why` is set when the verdict is not LAUNCH_OK; its code E_LIMIT or E_NOMEM: worth another try.
enum launch_verdict process_launch(const struct launch *launch, struct arena *scratch, struct process *out,
                                   struct error *why);
bool process_rehearse(int (*act)(void *context), void *context); // in a child that makes raw system calls only: whether it gave 0
int process_report(void); // an empty file in memory for launch.report; -1: errno

// ---- output.c
// Bytes at the end of `text` that begin a character and do not finish it.
size_t text_unfinished(struct str text);
// owner: tool thread
struct stream {
    int fd; // -1 when closed
    bool is_stderr, line_cut;
    struct mask_stream mask;
    struct buf kept; // stdout: the first bytes; stderr: the last
    struct buf line; // of the live output
    size_t max;      // of kept
    uint64_t size;   // of all, masked
    bool truncated;
    struct spill *spill; // stdout: where what is longer goes; NULL: nowhere
};


// ---- spill.c. owner: tool thread
struct spill {
    struct str dir, name; // of the artifacts; beneath it
    uid_t uid;            // whose the file is; 0: the engine's
    gid_t gid;
    bool begun;
    struct reach_draft draft;
    struct error why; // of begun without a draft
};
void spill_all(struct spill *spill, struct str text); // unless it has begun
// `text` comes behind `kept`; together they are longer than max, or may become so.
void spill_take(struct spill *spill, struct str kept, struct str text, size_t max);
bool spill_keep(struct spill *spill); // false: `why`

struct line_sink {
    tool_output output; // may be NULL
    void *context;
    uint64_t ticket;
    struct step_log *log;
};
void stream_init(struct stream *stream, bool is_stderr, size_t max);
void stream_open(struct stream *stream, int fd, const struct mask *mask);
void stream_release(struct stream *stream);
// Reads what is there, at most `rounds` times. False when nothing will come any more.
bool stream_read(struct stream *stream, const struct line_sink *sink, unsigned rounds);
void stream_close(struct stream *stream);
// No more bytes: what was held back is settled, the last line is emitted.
void stream_end(struct stream *stream, const struct line_sink *sink);
// The text kept, in place: valid UTF-8, no NUL, no newlines at its end, within max.
struct str stream_text(struct stream *stream);

// ---- job.c
enum job_state { JOB_WAITING = 1, JOB_RUNNING, JOB_SWEEPING };
enum stop_reason { STOP_NONE = 0, STOP_TIMEOUT, STOP_CANCEL };

enum watch_kind { WATCH_OUT, WATCH_ERR, WATCH_EXIT, WATCH_COUNT };

enum { TERMED_MAX = 64 };

struct watch { // what epoll gives back
    struct job *job;
    enum watch_kind kind;
};

struct job {
    uint64_t ticket;
    struct job *previous, *next; // of the waiting or of the running
    struct job *same_ticket;     // chain of the table
    // under the mutex
    struct job *next_cancelled;
    int64_t cancel_grace_ms;
    int64_t since_ms; // it waits, or has its place
    bool cancel_listed;
    bool waits; // it is in the list of those
    bool away;  // a thread of the aftermath has it
    bool unwanted; // it was cancelled meanwhile
    // owner: tool thread
    enum job_state state;
    struct heap_node timer;
    struct watch watches[WATCH_COUNT];
    struct process process;
    int exit_code, exit_signal; // after the main process has ended; one of them
    enum stop_reason stop;
    bool killing, stubborn_told;
    int64_t kill_at_ms; // when TERM was not enough; 0 = nobody was asked to stop
    int64_t sweep_delay_ms, sweep_since_ms;
    pid_t termed[TERMED_MAX]; // leftovers that have had their TERM
    size_t termed_count;
    int64_t started_ms;
    // the request
    struct str run, step, mark, tenant, environment;
    uint64_t tag;
    uint32_t logical, engine;
    char **argv;
    const struct tool_env *env;
    const struct secret_ref *secrets;
    const struct secret_value *hidden;
    struct secret_value *values; // of `secrets`, then `hidden`; in `request`
    bool has_values, refuses;    // they were looked for; one of them is not there
    size_t env_count, secret_count, hidden_count;
    const struct str *reads;
    size_t read_count;
    uint64_t memory_max;
    int report, report_as;
    bool network, walled;
    bool declares; // it declares artifacts
    struct str input, home, cwd, artifacts_dir;
    const char *level;   // of its confinement; NULL: none
    const char *rule;    // of it, that the step has probably met; NULL: none
    struct str work_dir; // made for this attempt; empty: none
    int64_t timeout_ms;
    const char *refused; // what cannot be passed to a process, or NULL
    struct mask *mask;
    struct stream out, err;
    struct spill spill; // of `out`, when that has it
    struct step_log log;
    struct fault fault;
    char message[640];
    struct arena request; // needed until the process has started
    struct arena arena;   // holds this struct
};
struct job_list {
    struct job *first, *last;
};
void job_list_add(struct job_list *list, struct job *job);
void job_list_add_first(struct job_list *list, struct job *job);
void job_list_remove(struct job_list *list, struct job *job);
// NULL when memory ran out.
void mark_unescape(struct buf *out, struct str text); // a part of CAIRN_MARK, as it was
struct job *job_new(const struct tool_request *request, const char *mark, const char *identity);
void job_free(struct job *job);
// Whether its secrets are read by programs, which take the time that they take.
bool job_asks_a_provider(const struct job *job);
void job_read_secrets(struct job *job, const struct tool_options *options); // any thread; job_launch says what is wrong
// Starts the process. False: job->fault says why.
bool job_launch(struct job *job, const struct tool_options *options, struct arena *scratch);
bool job_fault(struct job *job, const char *code, bool retryable, const char *format, ...) PRINTF_LIKE(4, 5);
// What the exit means, and the result that owns the job from now on.
struct tool_result job_result(struct job *job, int64_t now_ms);
void job_end_log(struct job *job); // after job_result, before it is delivered

// ---- aftermath.c: what is left to do for a job whose processes are gone, and what comes before it has one
enum { AFTERMATH_THREADS = 4 };
struct aftermath {
    const struct tool_options *options; // of the tools
    void (*give_back)(struct aftermath *aftermath, struct job *job); // a job whose secrets were read. Any thread
    struct os_log_route log;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    // under the mutex
    struct job_list waiting;
    struct digest at_work[AFTERMATH_THREADS]; // whose job each has: of the tenant, 0: none
    pthread_t threads[AFTERMATH_THREADS];
    size_t count, idle;
    bool sweeps; // the first thread begins with what killed engines have left
    atomic_bool closing;
};
void aftermath_init(struct aftermath *aftermath, const struct tool_options *options, struct os_log_route log);
void aftermath_sweep(struct aftermath *aftermath); // takes no time of the caller's
bool aftermath_prepare(struct aftermath *aftermath, struct job *job); // false: there are no threads
// Delivers the result of the job, here when that is little work. Tool thread; the job is gone from its books.
void aftermath_take(struct aftermath *aftermath, struct job *job);
void aftermath_close(struct aftermath *aftermath); // delivers nothing any more

// ---- tree.c
struct family {
    struct job_list running;
    struct buf children, environment; // scratch
    pid_t self, session;
    char identity[OS_IDENTITY_SIZE];
};
void family_init(struct family *family);
void family_release(struct family *family);
// The main process has ended: looks for the rest of its tree, reaps what is dead, signals what lives (TERM once, KILL when
// job->killing). Returns how many still live. 0: the tree is gone.
size_t tree_sweep(struct family *family, struct job *job);
// Reaps the dead that nobody else will: grandchildren that were handed to this process.
void tree_reap(struct family *family);
void tree_signal(const struct job *job, int number); // the group of the main process, stopped members included

#endif
