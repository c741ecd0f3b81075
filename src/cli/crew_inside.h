// Private to the crew.
#ifndef CAIRN_CLI_CREW_INSIDE_H
#define CAIRN_CLI_CREW_INSIDE_H

#include "cli/crew.h"

#include <pthread.h>

enum job_state { JOB_FREE = 0, JOB_RUNNING, JOB_DONE };

struct job {
    enum job_state state;
    struct lane *lane;
    struct job *next;    // of the free ones
    struct tools *tools; // that execute it
    uint32_t generation;
    bool stopping, dropped; // asked to stop; the server does not want its result
    bool has_dir;
    struct str token;
    uint64_t epoch;
    int64_t lease_ms, lease_until, since_ms;
    size_t log_max;
    struct buf log[2]; // lines that the server has not taken yet
    uint64_t log_offset[2], log_size;
    struct str dir; // artifacts
    const struct artifact_decl *artifacts;
    size_t artifact_count;
    struct tool_result result;
    struct arena arena;
};

// Tasks that go together in calls: no call has more than REMOTE_BATCH_MAX of them. Each lane has three threads.
struct lane {
    struct crew *crew;
    struct job *jobs, *free;
    uint32_t slots, busy, done;
    uint32_t server; // whose tasks: 0 is options.link.url, others are more_servers
    int64_t wait_ms; // of the last heartbeat
    bool hurry;      // the last heartbeat was answered early: the next one has all tasks, however young. Its thread's
    pthread_cond_t room, results, changed; // a slot is free; a job is done; anything else, for the other two
};

struct crew {
    struct crew_options options;
    pthread_mutex_t mutex;
    pthread_t threads[3 * CREW_SLOTS_MAX / REMOTE_BATCH_MAX];
    size_t thread_count, lane_count;
    struct tools *tools;
    struct job *jobs;
    struct lane *lanes;
    bool draining, stopping;
    bool away[CREW_SERVERS_MAX];
    struct error fatal;
    uint64_t count;
    char dir[64];
};

uint64_t crew_job_ticket(const struct crew *crew, const struct job *job);
// Without the lock; nobody else has them any more.
void crew_jobs_free(struct lane *lane, struct job **jobs, size_t count);
// Executes a task in a free slot. Without the lock. What is wrong with it becomes its result.
void crew_job_start(struct crew *crew, struct job *job, const struct remote_task *task);

// crew_calls.c
struct link_of { // one thread's
    struct crew *crew;
    struct lane *lane; // whose thread it is
    struct fetch_link *link;
    struct arena arena; // of one call
    unsigned tries;
};
struct fetch_link_options crew_link(const struct crew *crew, uint32_t server); // how a server is reached
enum code link_open(struct lane *lane, struct link_of *out, struct error *err) MUST_CHECK;
void link_close(struct link_of *link);
// One call. E_IO: say it again after crew_pause. The arena is reset before.
enum code link_post(struct link_of *link, const char *path, struct str body, int64_t timeout_ms,
                    struct fetch_answer *answer, struct error *err) MUST_CHECK;
// The same for any method; without the reset.
enum code link_call(struct link_of *link, const struct fetch_call *call, struct fetch_answer *answer,
                    struct error *err) MUST_CHECK;
void link_pause(struct link_of *link); // longer each time; ends when the crew stops
// With the lock: one of a lane's conditions, until then.
void lane_wait(struct lane *lane, pthread_cond_t *condition, int64_t until);
void crew_give_up(struct crew *crew, enum code code, const char *why);
void crew_refused(struct crew *crew, const char *call, const struct fetch_answer *answer, struct arena *arena);
void *crew_poll(void *lane);
void *crew_beat(void *lane);
void *crew_send(void *lane); // crew_send.c
// A stored result for a task at hand; a struct task_results. Its own connection: tasks that want one are few.
enum code crew_read_result(void *crew, const struct tool_request *request, struct str ref, struct arena *arena,
                           struct str *out, struct error *err) MUST_CHECK;
// The token of a job at hand, in `arena`; empty: there is none such, or out of memory.
// *server: who gave it, when there is one.
struct str crew_token(struct crew *crew, uint64_t ticket, struct arena *arena, uint32_t *server);
void crew_give_back(struct lane *lane); // what is at hand, in one last call
// A body is an object that stays open.
void body_list(struct buf *body, const char *name);
void body_number(struct buf *body, const char *name, int64_t value);
void body_task(struct buf *body, const struct job *job); // {token, epoch; open
void body_begin(const struct crew *crew, struct buf *body);
void crew_say(struct crew *crew, bool warning, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
