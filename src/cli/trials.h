// What `test` and `crashtest` share: test files with their documents, and a directory for what a trial leaves behind.
#ifndef CAIRN_CLI_TRIALS_H
#define CAIRN_CLI_TRIALS_H

#include "cli/document.h"
#include "trial/trial.h"

struct trials {
    struct cli *cli;
    const struct contract *contract;
    const char *scratch; // removed by trials_close
    bool silent;         // who loads a test reports what is wrong with it
};
int trials_open(struct trials *trials, struct cli *cli);
void trials_close(struct trials *trials);

struct loaded_trial {
    struct trial_file file;
    struct document document;
    struct diagnostics diagnostics; // of the test file
    bool invalid;                   // reported; nothing to play
};
// Reads a test file and its document and checks one against the other. EXIT_OK, or what was reported.
int trial_load(struct trials *trials, struct str path, struct loaded_trial *out);
void trial_unload(struct loaded_trial *loaded);
bool is_test_file(struct str path); // *.test.yaml, *.test.yml, *.test.json
// `name` as seen from the directory of `file`.
const char *beside(struct cli *cli, struct str file, struct str name);
// Replaces the file whole, or not at all.
int write_file(struct cli *cli, const char *path, struct str text);

#endif
