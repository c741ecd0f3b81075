// Who executes an attempt: the one answer to that question, for the engine, for the check before a run is taken up and for a worker.
//
// What an attempt asks for follows from its document (executor_of_step): a process, a task of a playbook, or a function of the program
// around the engine. It is executed here, or it waits in a pool of workers. In this order:
//   1. the pool that a person sent it to (UPDATE_TARGET)
//   2. the first route that fits its tenant, its environment and its kind: that pool, or here when the route names none
//   3. here, or pool "default" where nothing is executed here (only_pools)
// What is to be executed here and is not there has no executor.
#ifndef CAIRN_EXECUTOR_EXECUTOR_H
#define CAIRN_EXECUTOR_EXECUTOR_H

#include "program/program.h"

enum executor {
    EXECUTOR_NONE = 0,
    EXECUTOR_PROCESS,  // a child process (tool/tool.h)
    EXECUTOR_TASK,     // a task of a playbook (task/task.h)
    EXECUTOR_FUNCTION, // a function of the host
    EXECUTOR_POOL,     // a worker of the chosen pool
};

// Empty = any; an empty pool = executed here.
struct executor_route {
    struct str tenant, environment;
    struct str kind; // executor_request.kind
    struct str pool;
};

struct executor_routes {
    const struct executor_route *at;
    size_t count;
    bool only_pools; // nothing is executed here
};

struct executor_request {
    enum executor form; // what it asks for: PROCESS, TASK or FUNCTION
    bool here;          // this program has it: it starts processes, has such tasks, has that function
    struct str kind;    // "shell", "exec", "script", the kind of the task, or the name of the function
    struct str tenant, environment;
    struct str pool; // where a person sent it; empty: nowhere
};

struct executor_choice {
    enum executor executor;
    struct str pool; // EXECUTOR_POOL; borrows
};

// `routes` NULL: there are no workers, everything is executed here.
struct executor_choice executor_choose(const struct executor_request *request, const struct executor_routes *routes);
// What a step of that kind asks for; NONE: the engine does it by itself.
enum executor executor_of_step(enum step_kind kind);

#endif
