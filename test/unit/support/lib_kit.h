// Library tests: an engine on a store of its own, functions that are told what to do, and short ways to say things.
// Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_LIB_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_LIB_KIT_H

#include "harness/test.h"

#include "cairn/cairn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN(steps) "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\"},\"steps\":[" steps "]}"
#define CALL(id, kind, with) "{\"stepId\":\"" id "\",\"kind\":\"" kind "\",\"with\":{" with "}}"
#define CALL_WITH(id, kind, with, more) "{\"stepId\":\"" id "\",\"kind\":\"" kind "\",\"with\":{" with "}," more "}"

#define LIB_OK(call)                                                                                                   \
    do {                                                                                                               \
        struct cairn_error error_ = {0};                                                                               \
        struct cairn_error *const e = &error_;                                                                         \
        enum cairn_code code_ = (call);                                                                                \
        if (code_ != CAIRN_OK)                                                                                         \
            test_fail(__FILE__, __LINE__, "%s: %s: %s", #call, cairn_code_name(code_), error_.message);                \
    } while (0)

UNUSED static struct cairn *lib_open(const char *url, const struct cairn_options *options)
{
    struct cairn *engine = NULL;
    LIB_OK(cairn_open(url, options, &engine, e));
    return engine;
}

UNUSED static const char *lib_url(void)
{
    static char url[4200];
    snprintf(url, sizeof(url), "sqlite:%s/store.db", test_dir());
    return url;
}

UNUSED static void lib_register(struct cairn *engine, const char *name,
                                enum cairn_answer (*run)(void *, const struct cairn_attempt *, struct cairn_result *),
                                void *context)
{
    struct cairn_kind kind = {.size = sizeof(kind), .name = name, .run = run, .context = context};
    LIB_OK(cairn_register(engine, &kind, e));
}

UNUSED static void lib_start(struct cairn *engine, const char *document, const char *run, const char *inputs)
{
    struct cairn_start start = {.size = sizeof(start), .document = document, .run = run, .inputs = inputs};
    LIB_OK(cairn_start(engine, &start, NULL, e));
}

UNUSED static enum cairn_status lib_wait(struct cairn *engine, const char *run)
{
    enum cairn_status status = 0;
    LIB_OK(cairn_wait(engine, run, 20000, &status, e));
    return status;
}

UNUSED static void lib_expect_output(struct cairn *engine, const char *run, const char *step, const char *want)
{
    char *json = NULL;
    LIB_OK(cairn_output(engine, run, step, &json, NULL, e));
    CHECK_TEXT(json, want);
    cairn_free(json);
}

// How often an event of a type stands in the log.
UNUSED static int lib_count(struct cairn *engine, const char *run, const char *type)
{
    struct cairn_events *events = NULL;
    struct cairn_event event = {.size = sizeof(event)};
    enum cairn_code code;
    int count = 0;
    LIB_OK(cairn_events_open(engine, run, 0, &events, e));
    while ((code = cairn_events_next(events, &event, NULL)) == CAIRN_OK) {
        count += strcmp(event.type, type) == 0;
        CHECK_INT(strlen(event.bytes), event.len);
    }
    CHECK_INT(code, CAIRN_END);
    cairn_events_close(events);
    return count;
}

UNUSED static void lib_until(atomic_int *value, int want)
{
    for (int i = 0; atomic_load(value) < want; i++) {
        if (i > 20000) test_fail(__FILE__, __LINE__, "%d instead of %d", atomic_load(value), want);
        usleep(1000);
    }
}

// ---- functions

// Gives its input back and counts.
UNUSED static enum cairn_answer lib_echo(void *context, const struct cairn_attempt *attempt,
                                         struct cairn_result *result)
{
    if (context) atomic_fetch_add((atomic_int *)context, 1);
    result->output = result->memory = strdup(attempt->input);
    result->release = free;
    return CAIRN_DONE;
}

#endif
