// The contract of task/task.h as tests, run on every kind of task.
//
//   static const struct task_case python = {.kind = "python", .ok = "{\"code\":\"result = 1\"}", ...};
//   int main(int argc, char **argv) { return task_suite(&python, argc, argv); }
//
// What a kind is told is the JSON text of `with`; in it "@PORT@" becomes `port`, "@DIR@" the test's directory, "@SECRET@" the
// mark of a secret.
// A test that a kind has no request for is not run for it.
#ifndef CAIRN_TEST_CONFORMANCE_TASK_SUITE_H
#define CAIRN_TEST_CONFORMANCE_TASK_SUITE_H

#include "harness/test.h"
#include "task/task.h"

// The value of the secret that @SECRET@ stands for, and of the bearer token `token`.
#define TASK_SUITE_SECRET "s3cr3t-of-the-suite"

struct task_case {
    const char *kind;
    void (*prepare)(void);      // in the test's process, before the tools are opened; may skip the test
    uint16_t *port;             // of a server that prepare has started
    const char *ok, *ok_result; // the result, or the part of it after "DOTTED.PATH=": JSON
    const char *fails, *fails_kind;
    bool fails_retryable;
    const char *slow;   // takes much longer than a test
    const char *big;    // its outcome has more than a megabyte
    const char *bytes;  // its outcome holds something that was not UTF-8
    const char *secret; // its result holds the secret, if nobody hides it
    const char *mark;   // its result holds U+0001
    const char *plugins;
    const struct test *more;
    size_t more_count;
};
int task_suite(const struct task_case *task_case, int argc, char **argv);

// ---- for tests of a kind's own: the tools are open, and closed by task_end
struct task_options;
void task_begin(const struct task_case *task_case, void (*change)(struct task_options *options));
void task_end(void);
// Runs a task to its end; the outcome, or the fault as {"fault": CODE, "message": ...}. Lives until task_end.
struct json task_do(const char *with);
struct json task_do_in(const char *with, const char *keychain, int64_t timeout_ms);
struct json task_do_kind(const char *kind, const char *with);
// Starts one and comes back; task_wait has its outcome.
void task_start(uint64_t ticket, const char *with);
struct json task_wait(uint64_t ticket);
void task_cancel(uint64_t ticket);
struct str task_lines(void);                                        // live lines so far
struct str task_text(const struct json *outcome, const char *path); // JSON text of what is there; "" when nothing is
void task_is(const struct json *outcome, const char *path, const char *json); // fails the test

#endif
