// What the checks of `cairn doctor` have in their hands.
#ifndef CAIRN_CLI_DOCTOR_H
#define CAIRN_CLI_DOCTOR_H

#include "cli/session.h"

struct doctor {
    struct cli *cli;
    struct session session;
    bool unopened;         // the store, or the server instead; why has been said
    const char *directory; // of the store; NULL = none (memory)
    struct json problems;
    const char *check;
    size_t problem_count, fixed_count;
    struct run_heads unfinished;
};

void doctor_problem(struct doctor *d, const char *hint, const char *format, ...) PRINTF_LIKE(3, 4);

void check_temporal(struct doctor *d); // doctor_temporal.c: the server of [serve.temporal]
// doctor_serve.c
void check_serve(struct doctor *d);  // what `cairn serve` would find here
void check_server(struct doctor *d); // how the service is that serves this store, or that --server names

#endif
