// Getting a signal decided, wherever its run lives, and telling how it came out.
//
//   owned by a living process  ->  the store's inbox, then wait for the decision record
//   without an owner           ->  this process takes the run over and decides
#ifndef CAIRN_CLI_DECISION_H
#define CAIRN_CLI_DECISION_H

#include "cli/drive.h"

struct signal_decision {
    struct json record; // as in the ledger
    bool accepted;
    bool again; // it was there before: the signal was decided earlier
    struct str error_code, error_message;
    uint64_t seq;       // of the last event that it caused, 0 = none
    struct str new_run; // RETRY_RUN
};

// Looks for the decision record of `signal_id` after ledger entry `after`. E_NOT_FOUND: not decided (yet).
enum code decision_find(struct session *session, const struct run_head *head, struct str signal_id,
                        struct signal_decision *out, struct error *err) MUST_CHECK;
// Posts and waits up to 10 s. E_TIMEOUT: its owner has not decided. E_CONFLICT: the owner is gone, decide it here.
enum code decision_post(struct session *session, const struct run_head *head, const struct signal *signal,
                        struct signal_decision *out, struct error *err) MUST_CHECK;
// Prints it: a line or the record on stdout; a refusal as an error with a hint. Returns the exit code.
int decision_print(struct session *session, const struct run_head *head, const struct signal *signal,
                   const struct signal_decision *decision);

#endif
