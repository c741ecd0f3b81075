// The messages of Temporal's API (temporal.api.*.v1) that Cairn sends and reads, and of them the fields that it uses. Numbers are
// those of the published protocol; a message is a row of src/proto/temporal_list.h, of which its struct and its table are made.
//
// Numbers stand for enums too: the constants below are those that are used.
#ifndef CAIRN_PROTO_TEMPORAL_H
#define CAIRN_PROTO_TEMPORAL_H

#include "proto/proto.h"

enum { TEMPORAL_QUEUE_NORMAL = 1, TEMPORAL_QUEUE_STICKY = 2 };
enum { TEMPORAL_KEYWORD = 2 }; // of search attributes
enum { TEMPORAL_TIMEOUT_START_TO_CLOSE = 1 };
enum { TEMPORAL_REUSE_REJECT = 3, TEMPORAL_CONFLICT_USE_EXISTING = 2 };
enum {
    TEMPORAL_RUNNING = 1,
    TEMPORAL_COMPLETED,
    TEMPORAL_FAILED,
    TEMPORAL_CANCELED,
    TEMPORAL_TERMINATED,
    TEMPORAL_CONTINUED,
    TEMPORAL_TIMED_OUT,
    TEMPORAL_PAUSED
};
enum {
    TEMPORAL_SCHEDULE_ACTIVITY = 1,
    TEMPORAL_CANCEL_ACTIVITY = 2,
    TEMPORAL_START_TIMER = 3,
    TEMPORAL_COMPLETE_WORKFLOW = 4,
    TEMPORAL_FAIL_WORKFLOW = 5,
    TEMPORAL_CANCEL_TIMER = 6,
    TEMPORAL_CANCEL_WORKFLOW = 7,
    TEMPORAL_CONTINUE_WORKFLOW = 10
};

#define NUMBER(message, member, tag) int64_t member;
#define DOUBLE(message, member, tag) double member;
#define TEXT(message, member, tag) struct str member;
#define ONE(message, member, tag, of) const struct temporal_##of *member;
#define MANY(message, member, tag, of)                                                                                 \
    const struct temporal_##of *member;                                                                                \
    size_t member##_count;
#define MESSAGE(message, spelled, fields)                                                                              \
    struct temporal_##message {                                                                                        \
        fields                                                                                                         \
    };                                                                                                                 \
    extern const struct proto_message temporal_##message;
#include "proto/temporal_list.h"
#undef NUMBER
#undef DOUBLE
#undef TEXT
#undef ONE
#undef MANY
#undef MESSAGE

struct temporal_nothing { // a request without members that we set, or an answer of which nothing is read
    char unused;
};
extern const struct proto_message temporal_nothing;

#endif
