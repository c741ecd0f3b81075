// The outcome of tests: for people as they come, for programs (json, junit) in one piece at the end.
#ifndef CAIRN_TERM_TEST_REPORT_H
#define CAIRN_TERM_TEST_REPORT_H

#include "term/term.h"
#include "trial/trial.h"

struct test_report {
    struct console *console;
    enum format format;
    uint32_t passed, failed, invalid;
    int64_t took_us, virtual_ms;
    struct json tests; // json
    struct buf xml;    // junit: the cases
};

void test_report_open(struct test_report *report, struct console *console, enum format format);
void test_report_close(struct test_report *report);
// `err`: the test could not be played. EXIT_OK, or what was reported.
int test_report_add(struct test_report *report, const struct trial_script *script, const struct trial_result *result,
                    const struct error *err, int64_t took_us);
void test_report_invalid(struct test_report *report, struct str file);
void test_report_end(struct test_report *report);

#endif
