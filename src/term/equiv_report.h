// What came of comparing hosts: for people case by case, for programs (json, junit) in one piece at the end.
#ifndef CAIRN_TERM_EQUIV_REPORT_H
#define CAIRN_TERM_EQUIV_REPORT_H

#include "equiv/equiv.h"
#include "term/term.h"

struct equiv_show {
    struct console *console;
    enum format format;
    uint32_t same, different, kills;
    int64_t took_us;
    struct json cases; // json
    struct buf xml;    // junit
};

void equiv_show_open(struct equiv_show *show, struct console *console, enum format format);
void equiv_show_close(struct equiv_show *show);
// EXIT_OK, or what was reported.
int equiv_show_case(struct equiv_show *show, struct str file, struct str name, const struct equiv_report *report);
int equiv_show_end(struct equiv_show *show);

#endif
