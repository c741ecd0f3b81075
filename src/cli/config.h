// Settings: what a flag is when it is not given. From the strongest:
//
//   flags  >  CAIRN_* variables  >  cairn.toml of the project (the directory and its parents, up to the repository's root)
//          >  $XDG_CONFIG_HOME/cairn/config.toml  >  /etc/cairn/config.toml  >  what is built in
//
// In each file [profile.NAME] is stronger than what stands above all tables. Every value knows where it came from.
#ifndef CAIRN_CLI_CONFIG_H
#define CAIRN_CLI_CONFIG_H

#include "cli/cli.h"

struct setting {
    const char *name;     // in files; "CAIRN_" and its upper case is the variable
    enum flag flag;       // whose default it is
    const char *built_in; // shown when it is not set
    const char *what;
};
const struct setting *setting_at(size_t index); // NULL past the end
const struct setting *setting_find(struct str name);
const char *setting_variable(struct cli *cli, const struct setting *setting); // "CAIRN_ON_INTERRUPT"

enum config_level { CONFIG_PROJECT = 0, CONFIG_USER, CONFIG_SYSTEM, CONFIG_LEVELS };

struct config_file {
    const char *path; // NULL: there is no place for it (no home)
    bool exists;
    struct json root;
};

struct config_fault {
    struct str text; // "FILE:LINE:COL: ..."
    const char *hint;
    bool fatal; // the file is not what it seems; nothing may be done with half of it
};

struct config {
    struct config_file files[CONFIG_LEVELS];
    struct str profile; // in force; empty = none
    const char *profile_origin;
    struct config_fault faults[16];
    size_t fault_count;
};

// Sets a line of the user's file (--local: the project's), in [profile.PROFILE] or above all tables; an empty value takes it out.
// EXIT_OK, or what was reported.
int config_change(struct cli *cli, const char *name, struct str profile, struct str value);
// Takes [profile.PROFILE] out of the same file, whole.
int config_drop(struct cli *cli, struct str profile);
// Reads everything and puts the defaults into cli->args. Faults are kept, nothing is printed.
void config_load(struct cli *cli);
// Warns of what is wrong. False: there is a fault that forbids to go on, and it was reported; commands that are there to help
// go on all the same.
bool config_report(struct cli *cli);

#endif
