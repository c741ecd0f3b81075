// `cairn bench`: the workloads W1–W6, each figure beside the floor measured in the same run. One JSON object a line.
//
// Machines are noisy, so a figure alone says little: every latency is also printed as a ratio to one durable commit of the
// same kind (SQLite: one row in WAL mode with synchronous=FULL; Postgres: one row in an autocommitted INSERT; files: one
// append with fdatasync).
#ifndef CAIRN_BENCH_BENCH_H
#define CAIRN_BENCH_BENCH_H

#include "term/term.h"

// `store`: a kind of store or the URL of a Postgres, empty: all kinds that need no server. `only`: names of workloads with
// commas, empty: all. EXIT_OK, or what was reported.
int bench_run(struct console *console, struct str store, struct str only);

#endif
