#include "cli/args.h"
#include "cli/commands.h"

#define LIST_FORMATS "table|wide|json|jsonl|yaml|csv|tsv|name"
#define SIGNAL_FORMATS "text|json|yaml|name"
#define STORE_FLAGS FLAG_STORE, FLAG_SERVER, FLAG_TOKEN_FILE, FLAG_CA_FILE, FLAG_TENANT, FLAG_RESULTS
#define SERVER_FLAGS FLAG_SERVER, FLAG_TOKEN_FILE, FLAG_CA_FILE, FLAG_TENANT
#define LIST_FLAGS FLAG_OUTPUT, FLAG_FIELDS, FLAG_TIME
// Signals that may be followed by going on with the run in the foreground.
#define DRIVE_FLAGS                                                                                                    \
    FLAG_PROGRESS, FLAG_APPROVE, FLAG_APPROVE_ALL, FLAG_ON_INTERRUPT, FLAG_NO_RUN, FLAG_LIMITS, FLAG_RETENTION, FLAG_PLUGIN, \
        FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_CONTAINERS, FLAG_TOOLS
// What is to be different in a new run that takes over from another.
#define FORK_FLAGS                                                                                                     \
    FLAG_SET, FLAG_INPUT, FLAG_EDIT, FLAG_EDIT_FILE, FLAG_PLAN, FLAG_FROM, FLAG_RUN_ID, FLAG_REASON, FLAG_DRY_RUN,     \
        FLAG_DETACH, FLAG_MAX_STEPS

static const struct command commands[] = {
#define COMMAND(topic, function, name, words, summary, formats, min, max, ...)                                         \
    {topic, name, words, summary, formats, min, max, {__VA_ARGS__}, command_##function},
#define SPELLING COMMAND
#include "cli/command_list.h"
};

const struct command *command_at(size_t index)
{
    return index < ARRAY_COUNT(commands) ? &commands[index] : NULL;
}

const struct command *command_find(struct str name)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (str_is(name, command->name)) return command;
    return NULL;
}

bool command_takes(const struct command *command, enum flag flag)
{
    if (flag_is_global(flag)) return true;
    for (size_t i = 0; i < ARRAY_COUNT(command->flags) && command->flags[i] != FLAG_NONE; i++)
        if (command->flags[i] == flag) return true;
    return false;
}
