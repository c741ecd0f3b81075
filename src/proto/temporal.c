#include "proto/temporal.h"

#define NUMBER(message, member, tag) {PROTO_NUMBER, tag, offsetof(struct temporal_##message, member), 0, NULL},
#define DOUBLE(message, member, tag) {PROTO_DOUBLE, tag, offsetof(struct temporal_##message, member), 0, NULL},
#define TEXT(message, member, tag) {PROTO_TEXT, tag, offsetof(struct temporal_##message, member), 0, NULL},
#define ONE(message, member, tag, of) {PROTO_MESSAGE, tag, offsetof(struct temporal_##message, member), 0, &temporal_##of},
#define MANY(message, member, tag, of)                                                                                 \
    {PROTO_LIST, tag, offsetof(struct temporal_##message, member), offsetof(struct temporal_##message, member##_count), \
     &temporal_##of},
#define MESSAGE(message, spelled, fields)                                                                              \
    static const struct proto_field fields_of_##message[] = {fields};                                                 \
    const struct proto_message temporal_##message = {spelled, sizeof(struct temporal_##message), fields_of_##message,  \
                                                     ARRAY_COUNT(fields_of_##message)};
#include "proto/temporal_list.h"

const struct proto_message temporal_nothing = {"GetSystemInfoRequest", sizeof(struct temporal_nothing), NULL, 0};
