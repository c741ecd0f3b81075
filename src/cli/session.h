// A command's way to the store: where it is, whose runs are meant, and which run a target names.
#ifndef CAIRN_CLI_SESSION_H
#define CAIRN_CLI_SESSION_H

#include "cli/cli.h"
#include "store/store.h"

struct session {
    struct cli *cli;
    struct store *store;             // NULL: the default store does not exist yet, so it is empty (reading only)
    const struct contract *contract; // NULL when only reading
    const char *url;                 // as people write it, without a password
    const char *address;             // where it really is
    struct str tenant;
    bool remote;       // a server's runs: nothing is written here but signals
    struct keep *keep; // --results, or NULL
};

// --store or --server, else $CAIRN_STORE or $CAIRN_SERVER, else sqlite:$XDG_STATE_HOME/cairn/cairn.db, else below ~/.local/state. Paths
// become absolute, so that the same store has the same name from every directory. STORE_WRITE makes it when it is missing; of a server
// it is refused, with what to do instead.
// EXIT_OK, or what was reported.
int session_open(struct session *session, struct cli *cli, enum store_mode mode);
// Like session_open with STORE_WRITE, but *locked is set instead of reporting that another process holds the store.
// `contract` may be NULL.
int session_open_write(struct session *session, struct cli *cli, const struct contract *contract, bool *locked);
// Where the store would be, with the directory it is in made: for who opens it by other means.
int session_url(struct cli *cli, const char **out);
// A store named by its URL instead of by flags. With STORE_READ it must be there.
int session_open_url(struct session *session, struct cli *cli, const char *url, enum store_mode mode);
const char *session_default(struct cli *cli); // the store that is meant when nothing names one
// Whether this command is for a server. EXIT_OK, or what was reported.
int session_where(struct cli *cli, bool *remote);
void session_close(struct session *session);
// What --results names, for who opens a store by other means; NULL: nothing. EXIT_OK, or what was reported.
int results_open(struct cli *cli, struct keep **out);
int session_contract(struct session *session); // when reading needs it too
bool session_is_memory(const struct session *session);

#define TARGET_NOW UINT64_MAX

struct target {
    struct run_head head;
    struct str step;  // path after the slash, "load" or "loop[2].tick"; empty = the run
    uint32_t attempt; // after '#', a logical attempt; 0 = none given
    uint64_t at;      // after '@': the moment right after event `at`; TARGET_NOW when none was given
    bool has_at;
};

// What a command can do something with, besides a run. Anything else in a target is a usage error.
enum target_part { TARGET_STEP = 1, TARGET_ATTEMPT = 2, TARGET_MOMENT = 4 };

// RUN[/STEP[#ATTEMPT]][@SEQ]. RUN is a full id, a unique prefix of at least 4 characters, @last, @last-failed, or
// plan:NAME for the newest run of a plan. A moment past the end of the log is a usage error. EXIT_OK, or what was reported.
int target_find(struct session *session, struct str text, unsigned allowed, struct target *out);

#endif
