// Private to view/: a query as it was read.
#ifndef CAIRN_VIEW_QUERY_INSIDE_H
#define CAIRN_VIEW_QUERY_INSIDE_H

#include "view/query.h"

// X(NAME, "name", type, level, values, about). Names that end in '.' take a path behind the dot.
#define QUERY_FIELD_LIST(X)                                                                                            \
    X(STATUS, "status", STATUS, HEAD, "RUNNING, FAILED, ...", "status of the run; also active and ended")              \
    X(SUBSTATUS, "substatus", TEXT, HEAD, "text", "DRAINING, RETRYING, WAITING_APPROVAL")                              \
    X(PLAN, "plan", TEXT, HEAD, "text", "id of the plan or workflow")                                                  \
    X(VERSION, "version", TEXT, HEAD, "text", "version of the plan")                                                   \
    X(NAME, "name", TEXT, HEAD, "text", "name of the document")                                                        \
    X(RUN, "run", TEXT, HEAD, "text", "id of the run; 3f2a* is a prefix")                                              \
    X(PROJECT, "project", TEXT, HEAD, "text", "id of the project")                                                     \
    X(ENVIRONMENT, "environment", TEXT, HEAD, "text", "id of the environment")                                         \
    X(PARENT, "parent", TEXT, HEAD, "text", "run that started it; parent= is: none did")                               \
    X(ORIGINAL, "original", TEXT, HEAD, "text", "run that it repeats")                                                 \
    X(VOCABULARY, "vocabulary", TEXT, HEAD, "run, nodes", "words of its log")                                          \
    X(CAUSE, "cause", TEXT, HEAD, "text", "why it failed, in one line")                                                \
    X(CREATED, "created", TIME, HEAD, "time", "when it was made")                                                      \
    X(STARTED, "started", TIME, HEAD, "time", "when it began")                                                         \
    X(ENDED, "ended", TIME, HEAD, "time", "when it ended")                                                             \
    X(UPDATED, "updated", TIME, HEAD, "time", "when its last event was stored")                                        \
    X(TOOK, "took", DURATION, HEAD, "duration", "from its start to its end, or until now")                             \
    X(AGE, "age", DURATION, HEAD, "duration", "since it was made")                                                     \
    X(EVENTS, "events", NUMBER, HEAD, "number", "events in its log")                                                   \
    X(RUNNING, "running", NUMBER, HEAD, "number", "steps that run now")                                                \
    X(FAILED, "failed", NUMBER, HEAD, "number", "steps that failed")                                                   \
    X(COMPLETED, "completed", NUMBER, HEAD, "number", "steps that succeeded")                                          \
    X(SKIPPED, "skipped", NUMBER, HEAD, "number", "steps that were skipped")                                           \
    X(OWNED, "owned", TEXT, HEAD, "yes, no", "a living process drives it")                                             \
    X(TAG, "tag", TEXT, PROGRAM, "text", "a tag of its document")                                                      \
    X(STEP, "step", TEXT, LOG, "text", "it has such a step: load, loop[2].tick")                                       \
    X(STEP_OF, "step.", STEP_STATUS, LOG, "FAILED, SUCCESS, ...", "status of that step: step.load=FAILED")             \
    X(ERROR, "error", TEXT, LOG, "text", "code of an attempt that failed: TIMEOUT, EXIT_NONZERO")                      \
    X(ERROR_OF, "error.", TEXT, LOG, "text", "the same of one step: error.load=TIMEOUT")                               \
    X(INPUT, "input.", ANY, LOG, "text or number", "an input: input.env=prod, input.n>3")

enum query_type { TYPE_STATUS = 1, TYPE_TEXT, TYPE_TIME, TYPE_DURATION, TYPE_NUMBER, TYPE_STEP_STATUS, TYPE_ANY };
enum query_level { LEVEL_HEAD = 1, LEVEL_PROGRAM, LEVEL_LOG };

enum query_field {
    FIELD_NONE = 0,
#define X(name, text, type, level, values, about) FIELD_##name,
    QUERY_FIELD_LIST(X)
#undef X
        FIELD_WORD, // a bare word: part of the run's id, its plan or its name
};

enum query_op { OP_EQ = 1, OP_NE, OP_LIKE, OP_UNLIKE, OP_LT, OP_LE, OP_GT, OP_GE };

struct query_value {
    struct str text;
    int64_t from, until; // of a time: the first ms and the one after the last; of a number or duration: both the value
    struct json number;
    uint32_t mask; // of a status
    bool is_number;
};

struct query_clause {
    enum query_field field;
    struct str path; // after the dot of step., error., input.
    enum query_op op;
    struct query_value *values; // any of them
    size_t count;
};

enum query_kind { QUERY_ALL = 1, QUERY_CLAUSE, QUERY_AND, QUERY_OR, QUERY_NOT };

struct query_node {
    enum query_kind kind;
    const struct query_node *left, *right; // NOT: left
    struct query_clause clause;
};

struct query {
    const struct query_node *root;
    int64_t now_ms;
};

enum query_type query_field_type(enum query_field field);
enum query_level query_field_level(enum query_field field);

#endif
