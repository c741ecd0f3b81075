// Functions of a host as tools: a registry of kinds, worker threads that call them, and the tokens of what is under way.
//
//   engine --tools->start--> WAITING --worker free--> RUNNING --DONE, FAIL--> delivered
//                                                        | PENDING
//                                                        v
//                                                     PENDING --functions_complete--> delivered
//
// Timeout and cancellation end an attempt wherever it is: its result is delivered, its token is dead, and a function that is
// still running is abandoned: it keeps its thread until it returns, and what it returns is dropped.
// Locks: the one mutex here may be taken under the engine's, and the mailbox's under this one.
#ifndef CAIRN_LIB_FUNCTIONS_H
#define CAIRN_LIB_FUNCTIONS_H

#include "engine/engine.h"

#include "cairn/plugin.h"

struct functions;

// Up to `workers` threads (0: four). The first `eager` (0: all) are made as soon as something waits, the others when those have
// taken nothing for a moment: functions that return quickly need few, those that block get theirs.
enum code functions_open(uint32_t workers, uint32_t eager, struct functions **out, struct error *err) MUST_CHECK;
// Where results and lines go. Before the first attempt; NULL: nowhere any more, and what was on its way there has arrived.
void functions_attach(struct functions *functions, struct engine *engine);
// The same for callers that are no engine. Both are called under the mutex here and must not come back.
void functions_connect(struct functions *functions, tool_deliver deliver, tool_output output, void *context);
struct tools *functions_tools(struct functions *functions);
bool functions_know(void *functions, struct str name); // any thread; also program_loader.host_kind
// The names of up to `max` kinds; they live as long as the functions. Returns how many kinds there are.
size_t functions_names(struct functions *functions, struct str *names, size_t max);

// E_EXISTS, E_INVALID, E_NOMEM. Any thread. What `kind` points to is copied.
enum code functions_add(struct functions *functions, const struct cairn_kind *kind, struct error *err) MUST_CHECK;
// A plugin: its kinds are added. E_NOT_FOUND, E_INVALID, E_VERSION.
enum code functions_load(struct functions *functions, const char *file, struct error *err) MUST_CHECK;

// Any thread. E_CONFLICT: the attempt is over. E_INVALID: the result makes no sense.
enum code functions_complete(struct functions *functions, uint64_t token, const struct cairn_result *result,
                             struct error *err) MUST_CHECK;
bool functions_cancelled(struct functions *functions, uint64_t token);
void functions_log(struct functions *functions, uint64_t token, struct str line);

// Ends everything: nothing is delivered afterwards, every token is dead. Waits for functions that are running at most
// `timeout_ms` (< 0: for ever).
void functions_close(struct functions *functions, int64_t timeout_ms);
// The owner leaves. What is left frees itself when the last function has returned, and then `freed` (may be NULL) is called.
void functions_free(struct functions *functions, void (*freed)(void *owner), void *owner);

#endif
