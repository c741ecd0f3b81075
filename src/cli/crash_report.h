// What a crash test found: for people, or as JSON.
#ifndef CAIRN_CLI_CRASH_REPORT_H
#define CAIRN_CLI_CRASH_REPORT_H

#include "cli/cli.h"
#include "trial/trial.h"

struct crash_show {
    struct cli *cli;
    enum format format;
    struct str path; // as given on the command line
    bool strict;
    const struct trial_script *script;
    const struct program *program;
    struct json all; // json: a report per case
    size_t count;
};

void crash_show_open(struct crash_show *show, struct cli *cli, struct str path, bool strict);
int crash_show_report(struct crash_show *show, const struct crash_report *report); // EXIT_OK, or out of memory
void crash_show_line(struct crash_show *show, const char *text);                   // of a world that is told
void crash_show_world(struct crash_show *show, const struct crash_report *report); // its verdict
void crash_show_end(struct crash_show *show);

#endif
