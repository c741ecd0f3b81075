// Private to lib/: an engine with everything around it, and how to get in and out of it.
//
// One mutex guards engine, store and waiters; the turning thread lets go of it between turns. The turnstile before it makes
// callers and the turning thread take turns: a caller that waits holds the turnstile, so a busy engine cannot pass it by.
// Order of locks: turnstile, mutex, functions, mailbox. The mutex of the reader stands alone.
#ifndef CAIRN_LIB_INSIDE_H
#define CAIRN_LIB_INSIDE_H

#include "lib/functions.h"
#include "view/view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

// What a hook will get once the engine is let go.
enum note_kind { NOTE_ENDED = 1, NOTE_OUTPUT };
struct notice {
    struct notice *next;
    enum note_kind kind;
    enum run_status status;
    bool is_stderr;
    const char *run, *step, *line; // in `text`
    char text[];
};

// A thread waits for the end of a run, for its start to be stored, or for a decision. On the stack of the waiting thread.
struct waiter {
    struct waiter *next;
    struct str run;    // empty: not for a run
    struct str signal; // id; empty: not for a decision
    pthread_cond_t changed;
    bool stored, ended, decided;
    enum run_status status;
    struct error refused; // the start could not be stored
    struct cairn_decision *decision;
};

enum { PROGRAMS_CACHED = 32 };

struct cairn {
    struct cairn_options options; // as given; what a smaller struct does not have is zero
    pid_t pid;
    struct str tenant, actor;
    struct arena_source source;
    struct os_log_route log;
    struct entropy entropy;
    struct arena arena; // names, contract
    const struct contract *contract;
    struct functions *functions;
    pthread_mutex_t turnstile, mutex;
    atomic_ulong inside; // thread that holds the mutex; 0 = none
    atomic_bool stop;
    atomic_int users;    // calls under way
    atomic_bool closed;  // no call gets in any more
    atomic_bool closing; // a thread is in cairn_shutdown
    bool threaded;
    pthread_t thread;
    int fd;
    // under the mutex
    struct store *store;
    struct engine *engine;
    struct waiter *waiters;
    struct notice *notes, **last_note;
    struct error dead; // code OK: alive
    bool draining;
    int64_t next_inbox_ms;
    struct program *programs[PROGRAMS_CACHED];
    size_t next_program;
    // under the mutex of the reader
    pthread_mutex_t reader_mutex;
    struct store *reader; // NULL: not opened yet, or the store is in memory
    bool memory_store;
};

// What a thread must put back when it leaves.
struct visit {
    struct os_log_route log;
    const struct arena_source *source;
    struct store *store; // of visit_reader
    bool entered;
};

// ---- lib.c
// Every public function that uses the engine is between these two. E_UNSUPPORTED: a forked child; E_CONFLICT: it is closed.
enum code call_begin(struct cairn *cairn, struct error *err) MUST_CHECK;
void call_end(struct cairn *cairn);
// Gets the mutex. E_CONFLICT: from inside; the code of the engine's death.
enum code visit_engine(struct cairn *cairn, struct visit *visit, struct error *err) MUST_CHECK;
void visit_enter(struct cairn *cairn, struct visit *visit); // dead or not: for a thread that was inside and comes back
void visit_end(struct cairn *cairn, struct visit *visit);
// A store for reading, in visit->store.
enum code visit_reader(struct cairn *cairn, struct visit *visit, struct error *err) MUST_CHECK;
void visit_reader_end(struct cairn *cairn, struct visit *visit);
// A call of its own that only reads: call_begin and visit_reader, and their ends.
enum code reader_begin(struct cairn *cairn, struct visit *visit, struct error *err) MUST_CHECK;
void reader_end(struct cairn *cairn, struct visit *visit);
// Only the routes: for work that needs neither.
void visit_routes(struct cairn *cairn, struct visit *visit);
void visit_routes_end(const struct visit *visit);
// Puts an error of ours into one of theirs (NULL is fine) and returns its code.
enum cairn_code tell(struct cairn_error *out, enum code rc, const struct error *err, const char *hint);
enum cairn_code refuse(struct cairn_error *out, enum code rc, const char *message);

// ---- turn.c
struct moment_in_time lib_now(const struct cairn *cairn);
void *lib_thread(void *cairn);
// One turn, inside. *wait_ms as in cairn_turn. A failure is the engine's death.
void lib_turn(struct cairn *cairn, int64_t *wait_ms);
void tell_notes(struct cairn *cairn, struct notice *notes); // outside
struct notice *take_notes(struct cairn *cairn);             // inside
struct engine_observer lib_observer(struct cairn *cairn);
// Inside: lets go until the waiter is changed, `until_ms` (system's monotonic) or half a moment. Without a thread it turns.
void waiter_add(struct cairn *cairn, struct waiter *waiter);
void waiter_remove(struct cairn *cairn, struct waiter *waiter);
void waiter_wait(struct cairn *cairn, struct visit *visit, struct waiter *waiter, int64_t until_ms);
// Whether this thread may wait: not the one that turns, from a hook.
bool may_wait(const struct cairn *cairn);
int64_t until_of(int64_t timeout_ms);

// ---- functions.c, plugin.c
void plugin_host(struct functions *functions, struct cairn_host *out);
const struct cairn_host *functions_host(const struct functions *functions);

#endif
