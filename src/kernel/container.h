// Private to kernel/: members that begin in their order, so many at a time. The iterations of a playbook's loop are lanes (route_net.c),
// the members of a list are runs of their own (list.c). The loop of a plan is none of these: its members are steps, and it has one
// iteration at a time.
#ifndef CAIRN_KERNEL_CONTAINER_H
#define CAIRN_KERNEL_CONTAINER_H

#include "kernel/inside.h"

// A result: in memory, or beside the log.
struct net_value {
    struct json value; // type 0: none
    struct digest blob;
    bool has_blob;
    enum result_store store;
    uint64_t size;
    struct json extracted;
};

struct container {
    uint32_t total, begun, done, failures; // the last two have ended
    struct json items;                     // an array; type 0: beside the log
    uint32_t *lanes;                       // loops: by member, of those under way; UINT32_MAX otherwise
    struct net_value *results;             // by member
};

static inline uint32_t container_open(const struct container *c)
{
    INVARIANT(c->begun <= c->total && c->done + c->failures <= c->begun);
    return c->begun - c->done - c->failures;
}

enum container_next { CONTAINER_BEGIN = 1 /* the member `begun`, counted from 0 */, CONTAINER_WAIT, CONTAINER_END };
// `most`: as many may be under way; `stop`: none begins any more.
enum container_next container_next(const struct container *c, uint32_t most, bool stop);
// Of a moment that begins one, in `memory`. False: out of memory.
bool container_make(struct container *c, uint32_t total, const struct json *items, struct arena *memory) MUST_CHECK;

// What a document gives as the items of a loop: null is an empty list; a text that is a JSON array is that; a mapping or a plain value is
// a list of one. False: out of memory.
bool loop_items(struct arena *arena, const struct json *value, struct json *out) MUST_CHECK;

#endif
