// Codes are for deciding, messages for reading: a caller may branch on the code and never on the text.
// struct error is caller-owned and of fixed size, so reporting never allocates and never fails.
// error_set keeps the first failure; error_wrap puts context before it, at module borders only.
#ifndef CAIRN_BASE_ERROR_H
#define CAIRN_BASE_ERROR_H

#include "base/invariant.h"

#include <stdbool.h>
#include <stdint.h>

// X(name, number, what it means)
#define CODE_LIST(X)                                                                                                   \
    X(NOMEM, 1, "out of memory")                                                                                       \
    X(LIMIT, 2, "a limit was reached")                                                                                 \
    X(INVALID, 3, "invalid input")                                                                                     \
    X(NOT_FOUND, 4, "not found")                                                                                       \
    X(EXISTS, 5, "already exists")                                                                                     \
    X(CONFLICT, 6, "the state has changed meanwhile")                                                                  \
    X(LOCKED, 7, "held by another process")                                                                            \
    X(IO, 8, "input/output failed; what was being stored may or may not be")                                           \
    X(FULL, 9, "no space left; nothing of the batch was stored")                                                       \
    X(CORRUPT, 10, "stored bytes are not what was written")                                                            \
    X(VERSION, 11, "written by a newer version")                                                                       \
    X(TIMEOUT, 12, "took too long")                                                                                    \
    X(CANCELLED, 13, "cancelled")                                                                                      \
    X(DENIED, 14, "not allowed")                                                                                       \
    X(SCHEMA, 15, "does not fit its schema; nothing was stored")                                                       \
    X(TERMINAL, 16, "the run has ended")                                                                               \
    X(UNSUPPORTED, 17, "not supported")                                                                                \
    X(UNREACHABLE, 18, "nobody answers there, or not now")                                                             \
    X(AWAY, 19, "the server of the store is away; nothing was stored")

enum code {
    OK = 0,
#define X(name, number, text) E_##name = (number),
    CODE_LIST(X)
#undef X
};

struct error {
    enum code code;
    uint32_t line, column; // when the fault is in a document; 1-based, 0 = not known
    char message[464];
};

// Returns `code`, so that `return error_set(err, E_IO, ...)` is one line. `err` may be NULL.
enum code error_set(struct error *err, enum code code, const char *format, ...) PRINTF_LIKE(3, 4);
enum code error_at(struct error *err, enum code code, uint32_t line, uint32_t column, const char *format, ...)
    PRINTF_LIKE(5, 6);
enum code error_nomem(struct error *err); // E_NOMEM, in the words of code_text
void error_wrap(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);
// Memory, the disk or the server of the store failed, and not what was asked: nothing follows from it, and it may be asked again.
static inline bool code_is_outage(enum code code)
{
    return code == E_NOMEM || code == E_IO || code == E_AWAY;
}
const char *code_name(enum code code); // "NOT_FOUND"
const char *code_text(enum code code);

#ifdef __clang_analyzer__
// It reads one file at a time; this is how it learns that the code given is the code that comes back, and never OK.
#define error_set(err, code, ...) (error_set(err, code, __VA_ARGS__), (code))
#define error_nomem(err) (error_nomem(err), E_NOMEM)
#define error_at(err, code, ...) (error_at(err, code, __VA_ARGS__), (code))
#endif

// How often a ceiling (the limit of an arena, that of a buf) and not the system has refused memory to this thread: E_NOMEM then comes
// again with the same work, however much memory the machine has.
uint64_t memory_ceilings(void);
void memory_ceiling_hit(void);

#endif
