// What the files of auth/ share.
#ifndef CAIRN_AUTH_INTERNAL_H
#define CAIRN_AUTH_INTERNAL_H

#include "auth/auth.h"
#include "json/make.h"

// ---- the table
#define CONDITION_LIST(X)                                                                                              \
    X(OWN, "own")                                                                                                      \
    X(REDACTED, "redacted")                                                                                            \
    X(REASON, "reason")                                                                                                \
    X(P1, "p1")                                                                                                        \
    X(APPROVED_PLAN, "approved_plan")                                                                                  \
    X(OWN_TASK, "own_task")                                                                                            \
    X(OWN_POOL, "own_pool")                                                                                            \
    X(ASSIGNED, "assigned")                                                                                            \
    X(NOT_OWN_REQUEST, "not_own_request")                                                                              \
    X(NOT_AUTHOR, "not_author")                                                                                        \
    X(ROLE_WITHIN, "role_within")                                                                                      \
    X(TWO_PERSON, "two_person")                                                                                        \
    X(UNIX_SOCKET, "unix_socket")                                                                                      \
    X(INTERNAL, "internal")

enum condition {
#define X(name, text) CONDITION_##name,
    CONDITION_LIST(X)
#undef X
        CONDITION_COUNT
};

enum action_scope { SCOPE_OPEN = 1, SCOPE_PLACE, SCOPE_ITEM, SCOPE_TENANT, SCOPE_PLATFORM };

struct matrix_cell {
    bool allowed;
    uint32_t conditions; // bits of enum condition
};

struct rule {
    enum action_scope scope; // 0: not read yet
    bool open;        // needs no token
    int other_tenant; // status
    struct matrix_cell cells[ROLE_COUNT];
};

struct auth {
    uint8_t rank[ROLE_COUNT]; // by index of the role's bit: 0 is the least permissive
    int unauthenticated, denied, absent, outside_item, outside_place;
    struct rule rules[OPERATION_COUNT];
};

// ---- members of notes: what is empty (or 0) is left out. False: out of memory.

// Reading them back strictly: a member of another type, or one that was never asked for, makes the whole not fit.
struct reading {
    const struct json *object;
    struct arena *arena;
    uint32_t used; // members that were asked for and are there
    bool fits;
    bool memory; // false: none left
};
struct reading auth_reading_of(const struct json *object, struct arena *arena);
bool auth_reading_done(const struct reading *reading); // it fits, and nothing is left over
const struct json *auth_take(struct reading *reading, const char *key, enum json_type type); // NULL: absent
struct str auth_take_text(struct reading *reading, const char *key);
int64_t auth_take_time(struct reading *reading, const char *key);
struct digest auth_take_digest(struct reading *reading, const char *key); // must be there

// ---- base 32: digits and a-z without i, l, o, u
void base32_write(const uint8_t *bytes, size_t count, char *out); // (count * 8 + 4) / 5 characters, no NUL
// False unless `text` is exactly what base32_write makes of `count` bytes.
bool base32_read(struct str text, uint8_t *bytes, size_t count) MUST_CHECK;

#endif
