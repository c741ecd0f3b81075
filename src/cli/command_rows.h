// Private to the two tables of commands: what several rows say.
#ifndef CAIRN_CLI_COMMAND_ROWS_H
#define CAIRN_CLI_COMMAND_ROWS_H

#include "cli/args.h"
#include "cli/commands.h"

#define LIST_FORMATS "table|wide|json|jsonl|yaml|csv|tsv|name"
#define SIGNAL_FORMATS "text|json|yaml|name"
#define STORE_FLAGS FLAG_STORE, FLAG_SERVER, FLAG_TOKEN_FILE, FLAG_CA_FILE, FLAG_TENANT, FLAG_RESULTS
#define LIST_FLAGS FLAG_OUTPUT, FLAG_FIELDS, FLAG_TIME
// Signals that may be followed by going on with the run in the foreground.
#define DRIVE_FLAGS                                                                                                    \
    FLAG_PROGRESS, FLAG_APPROVE, FLAG_APPROVE_ALL, FLAG_ON_INTERRUPT, FLAG_NO_RUN, FLAG_PLUGIN, FLAG_CONFINE,          \
        FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_TOOLS
// What is to be different in a new run that takes over from another.
#define FORK_FLAGS                                                                                                     \
    FLAG_SET, FLAG_INPUT, FLAG_EDIT, FLAG_EDIT_FILE, FLAG_PLAN, FLAG_FROM, FLAG_RUN_ID, FLAG_REASON, FLAG_DRY_RUN,     \
        FLAG_DETACH

struct command_rows {
    const struct command *items;
    size_t count;
};
extern const struct command_rows rows_of_documents_and_runs; // Author, Test, Run, Look
extern const struct command_rows rows_of_acts_and_stores;    // Act, Prove, Store, Other

#endif
