// Playbooks in the kernel: what tasks answer, and what came of it.
#ifndef CAIRN_TEST_UNIT_SUPPORT_PLAYBOOK_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_PLAYBOOK_KIT_H

#include "unit/support/story.h"

#include <stdio.h>
#include <string.h>

#define NET_HEAD "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\n"
#define NET_SHELL "{kind: shell, cmds: x}"

// Items of a list, each a task.
#define NET_LOOP(mode)                                                                                                 \
    NET_HEAD "workload: {xs: [1, 2, 3, 4]}\nworkflow:\n  - step: each\n    loop: {in: \"{{ xs }}\", iterator: x, spec: " \
         "{" mode "}}\n    tool: {name: t, kind: shell, cmds: \"{{ iter.x }}\"}\n    next: {arcs: [{step: end, when: " \
         "\"{{ event.name == "                                                                                         \
         "'loop.done' }}\"}]}\n  - step: end\n    tool: {kind: noop}\n    set: {ctx.sum: \"{{ each.results | sum "     \
         "}}\"}\n"

static inline void net_answer(struct story *s, const char *path, const char *outcome)
{
    struct input input = {.ok = true};
    struct error err = {0};
    struct arena arena;
    arena_init(&arena, 1024, 1 << 20);
    CHECK_OK(json_parse(str_from(outcome), &json_limits_default, &arena, &input.value, &err), &err);
    story_answer(s, path, &input);
    arena_release(&arena);
}

static inline void net_ok(struct story *s, const char *path, const char *result)
{
    char text[512];
    snprintf(text, sizeof(text), "{\"result\":%s,\"status\":\"ok\"}", result);
    net_answer(s, path, text);
}

static inline void net_bad(struct story *s, const char *path, const char *kind, bool retryable)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{\"error\":{\"kind\":\"%s\",\"message\":\"no\",\"retryable\":%s},\"status\":\"error\"}", kind,
             retryable ? "true" : "false");
    net_answer(s, path, text);
}

static inline int64_t net_ctx(const struct story *s, const char *path)
{
    return json_integer(json_at(kernel_ctx(s->run), str_from(path)), -1);
}

#endif
