// Inputs of a run from the command line: --input FILE, then --set NAME=VALUE.
#ifndef CAIRN_CLI_INPUTS_H
#define CAIRN_CLI_INPUTS_H

#include "cli/cli.h"
#include "program/program.h"

// What --input and --set give, an object: inputs of a run before its document's defaults. EXIT_OK, or what was reported.
int inputs_read(struct cli *cli, const struct program *program, struct json *inputs);
// Adds the input `env`: the variables of our environment that a playbook asks for, unless it was given.
int inputs_env(struct cli *cli, const struct program *program, struct json *inputs);
struct str arguments_read(struct cli *cli); // $ARGUMENTS
// The pieces: "NAME=VALUE" of --set, where VALUE is JSON when it parses as JSON and text otherwise, and always text when the
// program (NULL: none) declares the input as a string; a member set or replaced.
int inputs_pair(struct cli *cli, const struct program *program, struct str pair, struct str *key, struct json *value);
int inputs_put(struct cli *cli, struct json *inputs, struct str key, struct json value);
int inputs_file(struct cli *cli, struct json *inputs); // --input; an empty object without it
// A misspelt --set would otherwise leave the default in force without a word.
void inputs_warn(struct cli *cli, const struct program *program, const struct json *given);

#endif
