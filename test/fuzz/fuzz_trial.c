// Any bytes as a test file. What the reader takes can be checked against a document; what it refuses has a diagnostic with a
// place inside the text. Names of steps from the file go through the matcher whatever they are.
#include "trial/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char document[] =
    "name: f\n"
    "inputs: {a: 1}\n"
    "nodes:\n"
    "  - {id: load, bash: x}\n"
    "  - {id: gate, depends_on: [load], approval: {message: m}}\n"
    "  - {id: loop, depends_on: [gate], loop_group: {max_iterations: 2, nodes: [{id: tick, bash: y}]}}\n";

static const struct program *program(void)
{
    static struct program *loaded;
    if (loaded) return loaded;
    static struct arena arena;
    struct diagnostics diagnostics;
    struct error err = {0};
    arena_init(&arena, 4096, (size_t)16 << 20);
    diagnostics_init(&diagnostics, &arena);
    INVARIANT(program_load(STR(document), STR("f.yaml"), NULL, &diagnostics, &loaded, &err) == OK);
    return loaded;
}

static void try_keys(const struct trial_script *script)
{
    static const char *const paths[] = {"load", "loop[2].tick", "sub/load", "sub#2/loop[1].x", "each:run:2[3]/fetch:run:2"};
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        script_mock(script, str_from(paths[i]), 2, STR("shell"));
        script_gate(script, str_from(paths[i]));
    }
    for (size_t i = 0; i < script->mock_count; i++) {
        // A key without a star or an attempt that fits itself: as a path it names the same step.
        struct str key = script->mocks[i].key;
        bool plain = key.len > 0 && str_find(key, '#', 0) == key.len && str_find(key, '*', 0) == key.len &&
                     str_find(key, '/', 0) == key.len;
        if (plain) INVARIANT(key_fits(key, key, 1) > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena arena;
    struct diagnostics diagnostics;
    struct trial_file file;
    if (size > 64 * 1024) return 0;
    arena_init(&arena, 4096, 256 * 1024 * 1024);
    diagnostics_init(&diagnostics, &arena);
    enum code rc = trial_parse(text, STR("fuzz.test.yaml"), &arena, &diagnostics, &file);
    INVARIANT(rc == OK || rc == E_INVALID);
    INVARIANT((rc == E_INVALID) == (diagnostics.error_count > 0));
    for (size_t i = 0; !rc && i < file.count; i++) {
        try_keys(&file.scripts[i]);
        trial_check(&file.scripts[i], program(), &diagnostics);
    }
    struct buf out;
    buf_init(&out, 16 * 1024 * 1024);
    for (size_t i = 0; i < diagnostics.count; i++) {
        INVARIANT(diagnostics.items[i].line >= 1 && diagnostics.items[i].column >= 1);
        diagnostic_write(&out, &diagnostics.items[i], text, false);
    }
    INVARIANT(buf_ok(&out));
    buf_release(&out);
    arena_release(&arena);
    return 0;
}
