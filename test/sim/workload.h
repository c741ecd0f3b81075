// Small documents for the simulator, as embedded text, and what their tools may answer. Every kind of step and every way a
// run can end is in one of them.
#ifndef CAIRN_TEST_SIM_WORKLOAD_H
#define CAIRN_TEST_SIM_WORKLOAD_H

#include "program/program.h"

#define WORKLOAD_LIST(X)                                                                                               \
    X(LINEAR)                                                                                                          \
    X(DIAMOND)                                                                                                         \
    X(RETRY)                                                                                                           \
    X(HOLD)                                                                                                            \
    X(WHEN)                                                                                                            \
    X(RULES)                                                                                                           \
    X(WAIT)                                                                                                            \
    X(APPROVAL)                                                                                                        \
    X(LOOP)                                                                                                            \
    X(SUBRUN)                                                                                                          \
    X(CANCEL)                                                                                                          \
    X(FAN)                                                                                                             \
    X(MIXED)                                                                                                           \
    X(GATED)                                                                                                           \
    X(TIMEOUT)                                                                                                         \
    X(INSTANT)                                                                                                         \
    X(CHILDREN)                                                                                                        \
    X(NESTED)                                                                                                          \
    X(SINGLE)                                                                                                          \
    X(HOST)                                                                                                            \
    X(PATIENT)                                                                                                         \
    X(SPREAD)                                                                                                          \
    X(EVENT)                                                                                                           \
    X(NET_LINE)                                                                                                        \
    X(NET_RETRY)                                                                                                       \
    X(NET_BARRIER)                                                                                                     \
    X(NET_LOOP)                                                                                                        \
    X(NET_PAGES)                                                                                                       \
    X(NET_ROUNDS)                                                                                                      \
    X(NET_FAILURE)                                                                                                     \
    X(NET_TIMES)                                                                                                       \
    X(NET_CHILD)                                                                                                       \
    X(NET_BIG)                                                                                                         \
    X(LIMITED)

enum workload_id {
#define X(name) WORKLOAD_##name,
    WORKLOAD_LIST(X)
#undef X
        WORKLOAD_COUNT
};

struct workload {
    const char *name;
    const char *text;
    bool small;  // few enough choices to walk all of them
    bool steady; // playbooks: comes to the same end whatever the order of things (N0)
};

const struct workload *workload_at(enum workload_id id);
enum workload_id workload_find(struct str name); // WORKLOAD_COUNT when unknown

// Compiled once for the whole process.
void workloads_load(void);
void workloads_release(void);
struct program *workload_program(enum workload_id id);
enum workload_id workload_of(const struct program *program); // WORKLOAD_COUNT: it is of a child
// The program (of a workload or of a child) with this document; NULL when there is none.
const struct program *workload_by_document(const struct digest *sha256);

#endif
