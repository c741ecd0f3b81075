// Programs that tests make by hand.
#ifndef CAIRN_TEST_UNIT_SUPPORT_PROGRAM_IDS_H
#define CAIRN_TEST_UNIT_SUPPORT_PROGRAM_IDS_H

#include "harness/test.h"
#include "program/internal.h"

// A program that was made by hand, with what the compiler adds so that its steps are found.
UNUSED static const struct program *with_ids(struct program *program)
{
    static struct arena names;
    if (program->ids.arena) return program;
    if (!names.limit) arena_init(&names, 4096, 1 << 20);
    map_init(&program->ids, &names);
    for (uint32_t i = 0; i < program->step_count; i++) {
        char text[160];
        struct str key = arena_copy(&names, id_key(program->steps[i].scope, program->steps[i].id, text));
        CHECK(key.ptr && map_put(&program->ids, key, i, NULL));
    }
    return program;
}

#endif
