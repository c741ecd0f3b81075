// Libraries that are loaded when they are first needed: a process that never asks a database server must not pay for Kerberos, LDAP and two
// more TLS libraries. A list of X(return, type, name, parameters, arguments) says which functions of one are used; they are called by their
// own names.
#ifndef CAIRN_OS_LIBRARY_H
#define CAIRN_OS_LIBRARY_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>

struct os_library {
    const char *file, *what, *package; // "libpq.so.5", what it is for people, which package of Debian has it
    const char *const *names;
    void **functions; // as many as names, in their order
    size_t count;
    pthread_mutex_t mutex;
    bool loaded;
};

// Any thread, any number of times. E_UNSUPPORTED: it is not on this machine, or lacks a function.
enum code os_library_load(struct os_library *library, struct error *err) MUST_CHECK;

#define LIBRARY_POINTER(give, type, name, parameters, arguments) __typeof__(name) *(name);
#define LIBRARY_NAME(give, type, name, parameters, arguments) #name,
#define LIBRARY_CALL(give, type, name, parameters, arguments)                                                          \
    type name parameters                                                                                               \
    {                                                                                                                  \
        give functions.name arguments;                                                                                 \
    }
// The library of a list, as `library`, and its functions.
#define LIBRARY(LIST, its_file, its_what, its_package)                                                                 \
    static struct {                                                                                                    \
        LIST(LIBRARY_POINTER)                                                                                          \
    } functions;                                                                                                       \
    static const char *const names[] = {LIST(LIBRARY_NAME)};                                                           \
    static struct os_library library = {.file = (its_file),                                                            \
                                        .what = (its_what),                                                            \
                                        .package = (its_package),                                                      \
                                        .names = names,                                                                \
                                        .functions = (void **)&functions,                                              \
                                        .count = ARRAY_COUNT(names),                                                   \
                                        .mutex = PTHREAD_MUTEX_INITIALIZER};                                           \
    LIST(LIBRARY_CALL)

#endif
