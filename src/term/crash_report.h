// What a crash test found: for people, or as JSON.
#ifndef CAIRN_TERM_CRASH_REPORT_H
#define CAIRN_TERM_CRASH_REPORT_H

#include "term/term.h"
#include "trial/trial.h"

struct crash_show {
    struct console *console;
    enum format format;
    struct str path, seed; // as given on the command line
    bool strict, sandbox;
    const struct trial_script *script;
    struct json all; // json: a report per case; an empty array at first
    size_t count;
};

int crash_show_report(struct crash_show *show, const struct crash_report *report); // EXIT_OK, or out of memory
void crash_show_line(struct crash_show *show, const char *text);                   // of a world that is played again
void crash_show_world(struct crash_show *show, const struct crash_report *report); // its verdict
void crash_show_end(struct crash_show *show);

#endif
