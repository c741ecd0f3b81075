// A crew executes tasks of a server: for every 256 of them one thread asks, one keeps their leases, one hands in what came
// out, and the product's own tools and functions run them (docs/format/worker.md). It survives a server that is away, and
// gives up an attempt whose lease it could not renew in time, so that nothing runs twice for long.
#ifndef CAIRN_CLI_CREW_H
#define CAIRN_CLI_CREW_H

#include "fetch/fetch.h"
#include "lib/functions.h"
#include "remote/remote.h"
#include "task/task.h"

struct crew_options {
    struct fetch_link_options link; // `stopped` is the crew's own; `url` is the first server
    // Others that share their runs with it: each hands out the tasks of its own. Slots are divided evenly.
    const struct str *more_servers;
    size_t more_count; // below CREW_SERVERS_MAX
    struct str name, pool;
    const struct str *kinds; // that are asked for
    size_t kind_count;
    uint32_t slots; // tasks at once; CREW_SLOTS_MAX
    const struct tool_confinement *confinement;
    const struct tool_secrets *secrets;
    struct functions
        *functions;      // executes kinds that are no processes; connected to the crew while it is open. May be NULL
    struct tasks *tasks; // executes tools of playbooks; the crew's from now on, which closes them. May be NULL
    bool quiet;          // nobody wants to hear of every task
    // Something to tell people. Any thread.
    void (*say)(void *context, bool warning, const char *text);
    void *context;
};

struct crew;

enum { CREW_SLOTS_MAX = 4096, CREW_SERVERS_MAX = 16 };

enum code crew_open(const struct crew_options *options, struct crew **out, struct error *err) MUST_CHECK;
void crew_drain(struct crew *crew); // takes nothing new; what is at hand goes on
// How many tasks are at hand. *err: why the crew cannot go on (credentials, no such server); OK while it can.
size_t crew_busy(struct crew *crew, struct error *err);
uint64_t crew_count(struct crew *crew); // results that the server has taken
// Ends everything at once; what is at hand is killed and given back to the server.
void crew_close(struct crew *crew);

#endif
